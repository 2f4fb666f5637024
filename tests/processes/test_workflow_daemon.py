"""The daemon as a process, with agents that are processes (docs/specs/workflows.md §6, §9)."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from core.watch import Watcher
from core.workflow.view import Reader
from tests.conftest import console_script
from tests.unit.core.workflow.stage import lay, lines, spec

AGENT = """#!/bin/sh
# Says which attempt it is, and whether the packet came in; fails where the item says so.
read -r packet
echo "$1 $2" >> "$CALLS"
case "$packet" in *'"signal":"SPAWN"'*) ;; *) exit 9 ;; esac
case "$1" in
  silent*) exit 3 ;;
  slow*) sleep 300 & echo $! >> "$CALLS.pids"; sleep 300 ;;
  half*) result=partial ;;
esac
[ -z "$PAUSE" ] || sleep "$PAUSE"
echo '{"signal": "RETURN", "payload": {"result": "'"${result:-success}"'"}}'
"""


def agents(root: Path, *names: str) -> None:
    program = root / "agent.sh"
    program.write_text(AGENT)
    program.chmod(0o755)
    argv = json.dumps(["./agent.sh", "{{item}}", "{{attempt}}"])
    (root / "ambient").mkdir(exist_ok=True)
    (root / "ambient/agents.toml").write_text(
        f'[agents.porter]\ntransport = "command"\nargv = {argv}\nenv = ["PATH", "CALLS", "PAUSE"]\n'
    )


@contextmanager
def daemon(root: Path, *flags: str, **env: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [console_script(), "workflow", "run", "--interval", "1s", *flags, "--root", str(root)],
        env={**os.environ, "CALLS": str(root / "calls"), **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def verb(root: Path, *argv: str) -> dict[str, Any]:
    done = subprocess.run(
        [console_script(), *argv, "--root", str(root), "-o", "json"], capture_output=True, text=True, check=False
    )
    made: dict[str, Any] = json.loads(done.stdout)
    return made


def until(root: Path, true: Callable[[], bool], patience: float = 60) -> None:
    """Wait until something holds; looked at whenever a file below the root changes."""
    stop, late = threading.Event(), time.monotonic() + patience
    for _ in Watcher(lambda: [root, root / "ambient", root / "ambient/runs"], stop, tick=0.5):
        if true():
            return
        assert time.monotonic() < late, "it never came true"


def ended(root: Path) -> bool:
    with Reader(root) as reader:
        runs = reader.look().in_order()
    return bool(runs) and not runs[-1].open


def start(root: Path) -> str:
    run_id: str = verb(root, "workflow", "start", "w", "--mode", "swarm", "--grant")["run_id"]
    return run_id


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] if Path("/proc").is_dir() else True


def test_a_batch_of_processes_runs_to_its_end(tmp_path: Path) -> None:
    root = lay(
        tmp_path / "root", spec("[a, b, 'c d', silent-1]", "{success: next_item, error: next_item}", "max_parallel: 2")
    )
    agents(root)
    run_id = start(root)
    with daemon(root, "--allow-commands") as process:
        until(root, lambda: ended(root))
        second = subprocess.run(
            [console_script(), "workflow", "run", "--root", str(root), "-o", "json"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert second.returncode == 2
        assert json.loads(second.stdout)["findings"][0]["code"] == "E_DAEMON_RUNNING"
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, "Traceback" in err) == (0, "", False)
    record = verb(root, "workflow", "status", run_id)["run"]
    assert [(step["result"], step["cause"]) for step in record["steps"]] == [("success", None)] * 3 + [
        ("error", "exit_3")
    ]
    assert sorted((root / "calls").read_text().splitlines()) == ["a 1", "b 1", "c d 1", "silent-1 1"]
    assert list((root / "ambient/.processes").iterdir()) == []


def test_nothing_is_started_that_nobody_allowed(tmp_path: Path) -> None:
    root = lay(tmp_path / "root", spec("[a]"))
    agents(root)
    start(root)
    with daemon(root) as process:
        until(root, lambda: bool(verb(root, "escalation", "list")["escalations"]))
        (entry,) = verb(root, "escalation", "list")["escalations"]
        assert (entry["kind"], entry["cause"]) == ("block", "commands_not_allowed")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0
    assert not (root / "calls").exists()
    assert verb(root, "escalation", "ack", entry["id"])["status"] == "accepted"
    with daemon(root, "--allow-commands"):
        until(root, lambda: ended(root))
    assert (root / "calls").read_text() == "a 1\n"


def test_a_tick_by_hand_leaves_processes_to_the_daemon(tmp_path: Path) -> None:
    root = lay(tmp_path / "root", spec("[a, b]"))
    agents(root)
    with daemon(root, "--allow-commands", PAUSE="0.2"):
        until(root, (root / "ambient/.daemon.lock").exists)
        start(root)
        while not ended(root):
            verb(root, "workflow", "tick")
    assert (root / "calls").read_text() == "a 1\nb 1\n"
    assert verb(root, "escalation", "list", "--all")["escalations"] == []


def test_at_the_deadline_the_whole_group_ends(tmp_path: Path) -> None:
    root = lay(tmp_path / "root", spec("[slow-1]", "{success: next_item, error: next_item}", "timeout: 1500ms"))
    agents(root)
    run_id = start(root)
    with daemon(root, "--allow-commands"):
        until(root, lambda: ended(root))
        pids = [int(line) for line in (root / "calls.pids").read_text().split()]
        until(root, lambda: not any(alive(pid) for pid in pids))
    record = verb(root, "workflow", "status", run_id)["run"]
    assert [(step["result"], step["cause"]) for step in record["steps"]] == [("error", "timeout")]


def test_a_stop_ends_what_still_runs(tmp_path: Path) -> None:
    root = lay(tmp_path / "root", spec("[slow-1]"))
    agents(root)
    start(root)
    with daemon(root, "--allow-commands") as process:
        until(root, lambda: (root / "calls.pids").exists() and bool((root / "calls.pids").read_text().strip()))
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
    pids = [int(line) for line in (root / "calls.pids").read_text().split()]
    until(root, lambda: not any(alive(pid) for pid in pids))
    assert lines(root, "ambient/signals.jsonl") == []


def test_agents_without_processes_answer_and_wake_it(tmp_path: Path) -> None:
    root = lay(tmp_path / "root", spec("[a, b]"))
    (root / "workflows/bad.yml").write_text("workflow: [\n")
    run_id = start(root)
    with daemon(root, "--interval", "60s"):
        for number in range(2):
            until(root, lambda number=number: len(lines(root, "ambient/outbox.jsonl")) > number)  # type: ignore[misc]
            packet = {
                "from": "porter",
                "signal": "RETURN",
                "in_reply_to": f"{run_id}/{number}/1",
                "payload": {"result": "ok"},
            }
            assert verb(root, "signal", "--json", json.dumps(packet))["status"] == "queued"
        until(root, lambda: ended(root), patience=30)
    assert verb(root, "workflow", "status")["disabled_specs"][0]["file"] == "workflows/bad.yml"


ROUTES = '{success: next_item, partial: next_item, error: "retry(5) + ESCALATE"}'


def laid(root: Path, items: int) -> Path:
    """Items of which every seventh is only half done: so that a result that is not its own would show."""
    listed = ", ".join(f"{'half' if number % 7 == 3 else 'whole'}{number}" for number in range(items))
    lay(root, spec(f"[{listed}]", ROUTES, "max_parallel: 2\nidempotent: true\ntimeout: 5s"))
    agents(root)
    return root


def killed(root: Path, items: int, kills: int, gap: float, pause: str) -> list[dict[str, Any]]:
    """Runs of processes, one after the other, whose daemon is killed until it was so often; their records.

    Each kill comes at least `gap` seconds after the one before, and into a run that has not ended.
    """
    laid(root, items)
    stop, dice, done, runs = threading.Event(), random.Random(5), 0, [start(root)]
    while done < kills:
        if ended(root):
            runs.append(start(root))
        with daemon(root, "--allow-commands", PAUSE=pause) as process:
            # The pause is the test's own subject: kills lie at least so far apart.
            stop.wait(gap + dice.random() / 2)
            over = ended(root)
            process.send_signal(signal.SIGKILL)
        done += not over
    with daemon(root, "--allow-commands", PAUSE=pause):
        until(root, lambda: ended(root), patience=300)
    return [verb(root, "workflow", "status", run_id)["run"] for run_id in runs]


def undisturbed(root: Path, items: int) -> dict[str, Any]:
    """The record of the same run without a kill."""
    laid(root, items)
    run_id = start(root)
    with daemon(root, "--allow-commands"):
        until(root, lambda: ended(root), patience=300)
    record: dict[str, Any] = verb(root, "workflow", "status", run_id)["run"]
    return record


MOVED = frozenset({"run_id", "started_at", "completed_at", "steps", "errors", "retries"})
"""What times, timeouts and declared retries change in a record; the steps are compared on their own."""


def check_killed(root: Path, records: list[dict[str, Any]], quiet: dict[str, Any]) -> None:
    """Each record differs from the undisturbed one in times, timeouts and declared retries, and in nothing else."""
    calls = Counter((root / "calls").read_text().splitlines())
    steps = [step for record in records for step in record["steps"]]
    started = Counter(_call(step) for step in steps)
    # No process was started twice under one attempt, and no result is one that no process gave.
    assert all(calls[key] <= started[key] for key in calls)
    told = Counter(_call(step) for step in steps if step["cause"] != "timeout")
    assert all(calls[key] >= told[key] for key in told)
    for record in records:
        assert {key: value for key, value in record.items() if key not in MOVED} == {
            key: value for key, value in quiet.items() if key not in MOVED
        }
        lost = [step for step in record["steps"] if (step["result"], step["cause"]) == ("error", "timeout")]
        assert record["errors"] == record["retries"] == len(lost)
        assert len(record["steps"]) == record["total"] + record["retries"]
        kept = [_told(step) for step in record["steps"] if step not in lost]
        assert sorted(kept) == sorted(_told(step) for step in quiet["steps"])


def _call(step: dict[str, Any]) -> str:
    return f"{step['item']} {step['attempt']}"


def _told(step: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(step[key]) for key in ("item", "agent", "signal_out", "signal_in", "result", "cause", "by"))


def test_a_killed_daemon_loses_nothing(tmp_path: Path) -> None:
    quiet = undisturbed(tmp_path / "quiet", 16)
    check_killed(tmp_path / "root", killed(tmp_path / "root", 16, 2, 0.7, "0.2"), quiet)
    assert [quiet[f"{name}_count"] for name in ("success", "partial")] == [14, 2]


@pytest.mark.slow
def test_a_daemon_that_is_killed_fifty_times(tmp_path: Path) -> None:
    """Agents of 50 ms do 200 items long before 50 kills that lie 2 s apart: the kills go on through further runs."""
    quiet = undisturbed(tmp_path / "quiet", 200)
    records = killed(tmp_path / "root", 200, 50, 2.0, "0.05")
    check_killed(tmp_path / "root", records, quiet)
    assert len(records) >= 2
