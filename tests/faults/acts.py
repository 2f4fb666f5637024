"""Every writing act that has no table of its own: triage, receipts, goals, addons, workflows, and whole folders."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.console.workflow_root import FAILED, LEARNABLE, WorkflowRoot, learned
from tests.unit.core.governance.samples import envelope
from tests.unit.core.workflow.stage import Stepped
from tui.cli import main

BLOCKED = {"signal": "BLOCKED_ON", "payload": {"context": "no key"}}
NEW = ("triage", "observe", "--text", "no such words", "--root", "{folder}")
TICK = ("workflow", "tick", "--root", "{folder}")
GOAL = (
    *("goal", "new", "--root", "{folder}", "--out", "{folder}/goal.json", "--goal-id", "g", "--outcome", "Ship."),
    *("--proof-command", "make proof", "--proof-expected", "clean", "--criterion", "All.", "--scope", "All."),
    *("--drift", "None.", "--retry-budget", "1", "--stop-condition", "Done.", "--report-rule", "Short."),
    *("--must", "core=MUST work"),
)


@dataclass(frozen=True)
class Act:
    """A command line in a copy of a folder, `{folder}`.

    `made` fills the folder and names what `{id}` stands for. `once`: done again, it changes nothing more, not
    even by a record of its refusal.
    `reads` answer in whatever state the folder was left, and write nothing. `after` is what the next writer does.
    """

    system: str
    name: str
    made: Callable[[Path], str]
    argv: tuple[str, ...]
    reads: tuple[tuple[str, ...], ...]
    once: bool = True
    after: tuple[str, ...] = ()


def quiet(argv: list[str]) -> int:
    """Run a verb whose words are not of interest."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return main(argv)


def filled(words: tuple[str, ...], folder: Path | str, named: str = "") -> list[str]:
    return [word.replace("{folder}", str(folder)).replace("{id}", named) for word in words]


def empty(folder: Path) -> str:
    folder.mkdir(parents=True)
    return ""


def observed(folder: Path) -> str:
    """A workspace in which an unknown signal was met; its minted code."""
    empty(folder)
    assert quiet(filled(NEW, folder)) == 0
    line = (folder / "triage/observations.jsonl").read_text().splitlines()[0]
    return str(json.loads(line)["minted"])


def wrapped(folder: Path) -> str:
    """A payload that waits for its envelope."""
    (folder / "receipts").mkdir(parents=True)
    (folder / "payload.json").write_text(json.dumps(envelope()["payload"]))
    return ""


def repository(folder: Path) -> str:
    """A repository in which one addon is switched on."""
    (folder / ".git").mkdir(parents=True)
    assert quiet(filled(("addons", "enable", "agentkit", "--repo", "{folder}"), folder)) == 0
    return ""


def asking(folder: Path, more: str = "") -> WorkflowRoot:
    root = WorkflowRoot(folder, Stepped(), more=more)
    root.start()
    root.reply(0, FAILED)
    return root


def asked(folder: Path) -> str:
    """A run that asks; the question's id."""
    return asking(folder).entries()[-1].id


def answered(folder: Path) -> str:
    """A run whose question was just answered."""
    assert quiet(["escalation", "decide", asked(folder), "retry", "--root", str(folder), "--as", "ben"]) == 0
    return ""


def idle(folder: Path) -> str:
    """A workflow that nobody started."""
    WorkflowRoot(folder, Stepped())
    return ""


def running(folder: Path) -> str:
    return asking(folder).run().run_id


def blocked(folder: Path) -> str:
    """A run that an agent blocked; the entry's id."""
    root = WorkflowRoot(folder, Stepped())
    root.start()
    root.reply(0, "", **BLOCKED)
    return root.entries()[-1].id


def proposed(folder: Path) -> str:
    return learned(WorkflowRoot(folder, Stepped(), more=LEARNABLE))


def ruled(folder: Path) -> str:
    """A rule that a person approved."""
    root = WorkflowRoot(folder, Stepped(), more=LEARNABLE)
    assert quiet(["proposal", "approve", learned(root), "--root", str(folder), "--as", "ben"]) == 0
    (rule,) = root.world().learning.rules
    return rule


CATALOGUE = (("triage", "list", "--root", "{folder}"), ("triage", "catalog", "--root", "{folder}"))
ROOT = (("workflow", "status", "--root", "{folder}"), ("escalation", "list", "--root", "{folder}"),
        ("proposal", "list", "--root", "{folder}"))  # fmt: skip
AT = ("--root", "{folder}", "--as", "ben")
PACKET = '{"from": "porter", "signal": "RETURN", "run_id": "{id}", "item_index": 1, "payload": {"result": "ok"}}'
NAMED = ("--code", "talk_odd_words", "--layer", "talk", "--match", "no such words", "--cause", "Odd words.")

ACTS = (
    Act("triage", "observe something new", empty, NEW, CATALOGUE, once=False),
    Act("triage", "observe it again", observed, NEW, CATALOGUE, once=False),
    Act("triage", "promote", observed, ("triage", "promote", "{id}", *NAMED, "--no-next-command", *AT), CATALOGUE),
    Act("triage", "alias", observed, ("triage", "alias", "{id}", "folder_missing", *AT), CATALOGUE),
    Act("governance", "wrap a receipt", wrapped, ("envelope", "wrap", "{folder}/payload.json", "--out",
        "{folder}/receipts/rc.json", "--receipt-id", "rc", "--producer", "desk", "--goal-hash", "sha256:" + "a" * 64,
        "--root", "{folder}"), CATALOGUE),
    Act("governance", "write a goal", empty, GOAL, CATALOGUE),
    Act("delegation", "switch an addon on", repository, ("addons", "enable", "herdr", "--repo", "{folder}"),
        (("addons", "list", "--repo", "{folder}"),)),
    Act("delegation", "switch an addon off", repository, ("addons", "disable", "agentkit", "--repo", "{folder}"),
        (("addons", "list", "--repo", "{folder}"),)),
    Act("workflow", "start", idle, ("workflow", "start", "w", *AT), ROOT, once=False, after=TICK),
    Act("workflow", "tick after an answer", answered, TICK, ROOT, once=False, after=TICK),
    Act("workflow", "signal", running, ("signal", "--json", PACKET, "--root", "{folder}"), ROOT, once=False,
        after=TICK),
    Act("workflow", "decide", asked, ("escalation", "decide", "{id}", "retry", *AT), ROOT, after=TICK),
    Act("workflow", "ack a block", blocked, ("escalation", "ack", "{id}", *AT), ROOT, after=TICK),
    Act("workflow", "approve a proposal", proposed, ("proposal", "approve", "{id}", *AT), ROOT, after=TICK),
    Act("workflow", "reject a proposal", proposed, ("proposal", "reject", "{id}", *AT), ROOT, after=TICK),
    Act("workflow", "revoke a rule", ruled, ("proposal", "reject", "{id}", *AT), ROOT, after=TICK),
    Act("workflow", "abort", running, ("workflow", "abort", "{id}", *AT), ROOT, after=TICK),
    Act("protocol", "install the skill", empty, ("skill", "install", "{folder}/skill"), (("list", "{folder}"),)),
)  # fmt: skip


def copied(folder: Path, place: Path) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copytree(folder, place / folder.name))
