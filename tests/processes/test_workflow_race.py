"""Two consoles and a verb answer one question within the same second (docs/specs/workflows.md §7)."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from core.clock import SYSTEM
from tests.conftest import console_script
from tests.console.pty_driver import PATIENCE, PtyConsole, environment
from tests.console.workflow_root import WorkflowRoot
from tests.processes.test_workflow_daemon import daemon, until
from tests.unit.core.workflow.stage import lines

ANSWERS = {"ana": "retry", "ben": "skip", "carl": "resolve"}
WAYS = {"ana": 0, "ben": 1}
"""How far down the list of answers each of the two at a console goes."""


class LiveRoot(WorkflowRoot):
    """The same by the real clock; a daemon ticks."""

    def tick(self) -> None:
        return


@pytest.fixture
def root(tmp_path: Path) -> LiveRoot:
    class Clock:
        now = staticmethod(SYSTEM.now)

        def step(self, seconds: float) -> None:
            """It moves by itself."""

    return LiveRoot(tmp_path / "work", Clock(), more="on_escalate: {wait: item}\nmax_parallel: 4\n")


def to_preview(console: PtyConsole, way: int) -> None:
    """From the first screen to the preview of an answer that is so far down the list."""
    console.sees("Inbox", "'a' failed")
    console.press("4")
    console.sees("Waits for an answer", "'a' failed")
    console.press("a")
    console.sees("What is asked", "Try again")
    console.fill("tab")
    console.press(*["down"] * way, "f2")
    console.sees("entry_decided")
    console.listens("Enter write")


def test_one_wins_the_others_see_who_and_what_and_the_run_resumes_once(root: LiveRoot, tmp_path: Path) -> None:
    environ = environment(tmp_path)
    with daemon(root.path, "--interval", "60s"):
        run_id = root.start()
        until(root.path, lambda: bool(root.run().flight))
        root.reply(0, {"status": "fail", "cause": "port 443 is closed"})
        until(root.path, lambda: bool(root.entries()))
        entry = root.entries()[0].id
        consoles = {name: PtyConsole(str(root.path), "--as", name, environ=environ, size=(110, 40)) for name in WAYS}
        try:
            for name, way in WAYS.items():
                to_preview(consoles[name], way)
            command = [console_script(), "escalation", "decide", entry, ANSWERS["carl"], "--as", "carl", "-o", "json"]
            verb = subprocess.Popen([*command, "--root", str(root.path)], stdout=subprocess.PIPE, env=environ)
            for console in consoles.values():
                console.press("enter")
            said = json.loads(verb.communicate(timeout=PATIENCE)[0])
            until(root.path, lambda: root.entries()[0].state == "applied")
            decision = root.entries()[0].decision
            assert decision is not None
            winner = decision.decided_by
            assert decision.option_id == ANSWERS[winner]
            assert decision.channel == ("cli" if winner == "carl" else "console")
            told = f"{entry} was answered already by {winner}: {ANSWERS[winner]}"
            for name, console in consoles.items():
                if name == winner:
                    console.until(lambda shown: "Enter write" not in shown)
                else:
                    console.sees(told)
            if winner == "carl":
                assert (verb.returncode, said["status"]) == (0, "accepted")
            else:
                assert (verb.returncode, said["status"], said["codes"]) == (2, "conflict", ["E_CONFLICT"])
                assert said["winner"] == {"verb": ANSWERS[winner], "option_id": ANSWERS[winner], "decided_by": winner}
        finally:
            for console in consoles.values():
                console.close()
        spawns = 4 if winner == "ana" else 3
        until(root.path, lambda: len(lines(root.path, "ambient/outbox.jsonl")) >= spawns)
    log = lines(root.path, f"ambient/runs/{run_id}.jsonl")
    assert Counter(event["event"] for event in log)["entry_decided"] == 1
    assert Counter(event["event"] for event in log)["entry_applied"] == 1
    sent = Counter(packet["id"] for packet in lines(root.path, "ambient/outbox.jsonl"))
    assert max(sent.values()) == 1
    assert len(sent) == spawns
    resumed = [event for event in log if event["event"] == "spawn_intended" and event["attempt"] == 2]
    assert len(resumed) == (1 if winner == "ana" else 0)
    decided = list((root.path / "receipts").glob("run-*.json"))
    assert len(decided) == 2
