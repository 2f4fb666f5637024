"""Acting in Delegations by keys alone: forms, previews, gates; nothing by one key (docs/specs/console.md §2)."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.delegation import gates, store
from tests.console.conftest import PATIENCE
from tests.console.plans import ME, form, ledger, preview, ready, text, to, type_into
from tests.unit.core.delegation.builders import Bench, draft
from tui.forms import delegation as forms
from tui.forms.checks import ChecksField
from tui.forms.delegation import CancelForm, CollectForm, HandoverScreen, LaunchForm
from tui.forms.gate import GateForm, GateScreen, needs_shell

# The launch form.


def run_gate(bench: Bench) -> None:
    assert gates.gate(bench.place, bench.world, gates.Gate("T-mark", "AC-one", ["true"])).exit == 0


def leave_as_it_is(bench: Bench) -> None:
    """What is broken is in the contract."""


UNGRANTED = {"permissions": {"granted": ["context_export"], "not_granted": []}}
BROKEN: dict[str, tuple[str, Callable[[Bench], object], dict[str, Any]]] = {
    "grant": ("does not grant", leave_as_it_is, UNGRANTED),
    "started": ("T-mark has not started", leave_as_it_is, {"start": "T-plain"}),
    "not-complete": ("T-mark is already complete", run_gate, {}),
    "marker": ("is not marked", leave_as_it_is, {"task": "T-plain", "start": "T-plain"}),
    "ability": ("is not enabled and detected", lambda bench: bench.registry({}), {}),
}


SHOWN = ("grant", "marker", "ability")
"""Looked at always; each of them alone is a test of the core."""


@pytest.mark.parametrize(
    "broken", [name if name in SHOWN else pytest.param(name, marks=pytest.mark.slow) for name in BROKEN]
)
async def test_the_form_shows_the_one_condition_that_is_not_met(
    bench: Bench, app: Any, until: Any, drawn: Any, broken: str
) -> None:
    cause, break_it, changes = BROKEN[broken]
    changes = dict(changes)
    task = changes.pop("task", "T-mark")
    bench.begin(changes.pop("start", "T-mark"), **changes)
    break_it(bench)
    before = bench.journal.read_bytes()
    console = app()
    async with console.run_test(size=(120, 40), notifications=True) as pilot:
        screen = await ready(pilot, until, 2)
        await to(pilot, screen, task)
        opened = await form(pilot, until, "l", LaunchForm)
        checks = opened.query_one(ChecksField)
        await until(pilot, lambda: "11 of 12 met" in text(drawn, console))
        lines = [line for line in drawn(console) if "not met" in line]
        assert len(lines) == 1
        assert cause in text(drawn, console)
        assert checks is not None
        # A launch that would be refused is not even asked for.
        await pilot.press("f2")
        await until(pilot, lambda: "not met: " in text(drawn, console))
        assert console.screen is opened
    assert bench.journal.read_bytes() == before


async def test_a_launch_by_keys(bench: Bench, app: Any, until: Any, drawn: Any) -> None:
    bench.begin("T-mark")
    before = bench.journal.read_bytes()
    console = app()
    async with console.run_test(size=(120, 40), notifications=True) as pilot:
        screen = await ready(pilot, until, 2)
        await to(pilot, screen, "T-mark")
        opened = await form(pilot, until, "l", LaunchForm)
        await until(pilot, lambda: "12 of 12 met" in text(drawn, console))
        await type_into(pilot, opened, "id", "by-keys")
        await type_into(pilot, opened, "instructions", "owner!")
        await preview(pilot, until, "f2")
        assert bench.journal.read_bytes() == before
        assert "by-keys is open. Nothing is started" in text(drawn, console)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(console.screen, HandoverScreen))
        shown = text(drawn, console)
        assert "git worktree add" in shown
        assert "owner!" in shown
        await pilot.press("escape")
        await until(pilot, lambda: console.screen is screen and " by-keys " in text(drawn, console))
    event = bench.events()[-1]
    assert (event["state"], event["delegation_id"], event["actor"]) == (
        "launched",
        "by-keys",
        {"kind": "human", "identity": ME},
    )
    assert len(list((bench.repo / "receipts").glob("del-*.json"))) == 1


async def test_a_draft_outlives_the_form(bench: Bench, app: Any, until: Any, drawn: Any) -> None:
    bench.begin("T-mark")
    console = app()
    async with console.run_test(size=(120, 40), notifications=True) as pilot:
        screen = await ready(pilot, until, 2)
        await to(pilot, screen, "T-mark")
        opened = await form(pilot, until, "l", LaunchForm)
        await type_into(pilot, opened, "id", "kept")
        await pilot.press("escape")
        await until(pilot, lambda: console.screen is screen)
        again = await form(pilot, until, "l", LaunchForm)
        await until(pilot, lambda: again.line("id") == "kept")


async def test_a_preview_is_bound_to_the_head(bench: Bench, app: Any, until: Any, drawn: Any) -> None:
    bench.begin("T-mark")
    bench.launch("d1", worktree="../1")
    console = app()
    async with console.run_test(size=(120, 40), notifications=True) as pilot:
        screen = await ready(pilot, until, 3)
        await to(pilot, screen, "d1")
        await form(pilot, until, "x", CancelForm)
        await preview(pilot, until, "f2")
        ledger(bench, "append", "--type", "observation", "--json", '{"statement": "meanwhile"}', "--trust", "asserted")
        await pilot.press("enter")
        await until(pilot, lambda: "Recorded meanwhile" in text(drawn, console))
        assert "4 observation" in text(drawn, console)
        assert bench.events()[-1]["type"] == "observation"
        await preview(pilot, until)
        await pilot.press("enter")
        await until(pilot, lambda: console.screen is screen)
    assert [event["type"] for event in bench.events()[-2:]] == ["observation", "delegation"]
    assert bench.events()[-1]["state"] == "cancelled"


async def test_a_preview_of_what_is_over_meanwhile_is_refused(bench: Bench, app: Any, until: Any, drawn: Any) -> None:
    bench.begin("T-mark")
    bench.launch("d1", worktree="../1")
    console = app()
    async with console.run_test(size=(120, 40), notifications=True) as pilot:
        screen = await ready(pilot, until, 3)
        await to(pilot, screen, "d1")
        await form(pilot, until, "c", CollectForm)
        await preview(pilot, until, "f2")
        ledger(bench, "delegate", "cancel", "--task", "T-mark", "--json", '{"delegation_id": "d1"}')
        before = bench.journal.read_bytes()
        await pilot.press("enter")
        await until(pilot, lambda: "d1 is already cancelled" in text(drawn, console))
    assert bench.journal.read_bytes() == before


async def test_nothing_is_recorded_by_one_key(bench: Bench, app: Any, until: Any) -> None:
    tasks = [*draft()["tasks"], {**draft()["tasks"][0], "id": "T-free", "title": "Free", "gate_intent": []}]
    bench.begin("T-mark", "T-free", tasks=tasks)
    bench.launch("d1", worktree="../1")
    bench.collect("d1")
    bench.launch("d2", worktree="../2")
    before = {path: path.read_bytes() for path in bench.repo.rglob("*") if path.is_file()}
    console = app()
    async with console.run_test(size=(100, 30), notifications=True) as pilot:
        screen = await ready(pilot, until, 4)
        where = {
            "l": "d1",
            "c": "d2",
            "x": "d2",
            "r": "T-mark",
            "s": "T-plain",
            "e": "T-free",
            "enter": "d1",
            "f2": "d2",
        }
        for key, name in where.items():
            await to(pilot, screen, name)
            await pilot.press(key)
            await until(pilot, lambda: not [one for one in screen.workers if one.group == "act" and one.is_running])
            while console.screen is not screen:
                await until(pilot, lambda: not getattr(console.screen, "deaf", False))
                await pilot.press("escape")
                await pilot.pause()
            screen.rows.focus()
    assert {path: path.read_bytes() for path in bench.repo.rglob("*") if path.is_file()} == before


# Ending, starting, completing.


async def test_collect_then_gate_then_complete(bench: Bench, app: Any, until: Any, drawn: Any) -> None:
    bench.begin("T-mark")
    bench.launch("d1", worktree="../1")
    (bench.plan / "out.md").write_text("done\n")
    console = app()
    async with console.run_test(size=(120, 40), notifications=True) as pilot:
        screen = await ready(pilot, until, 3)
        await to(pilot, screen, "d1")
        opened = await form(pilot, until, "c", CollectForm)
        await type_into(pilot, opened, "result_path", "out.md")
        await preview(pilot, until, "f2")
        assert "That is a claim until a gate" in text(drawn, console)
        await pilot.press("enter")
        await until(pilot, lambda: console.screen is screen and "◐ completed" in text(drawn, console))
        await until(pilot, lambda: [item.kind for item in console.waiting] == ["delegation-ungated"])
        await form(pilot, until, "r", GateForm)
        await preview(pilot, until, "f2")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(console.screen, GateScreen) and "RAN: exit 0" in text(drawn, console))
        await pilot.press("enter")
        await until(pilot, lambda: console.screen is screen and "✓ observed" in text(drawn, console))
        await until(pilot, lambda: console.waiting == ())
        await to(pilot, screen, "T-mark")
        await preview(pilot, until, "e")
        assert "completion is derived" in text(drawn, console)
        await pilot.press("enter")
        await until(pilot, lambda: console.screen is screen)
    assert [event["type"] for event in bench.events()[-2:]] == ["delegation", "gate_run"]
    assert bench.events()[-2]["result_path"] == "out.md"


async def test_a_task_is_started_and_what_is_missing_is_payload(bench: Bench, app: Any, until: Any, drawn: Any) -> None:
    bench.begin("T-mark")
    console = app()
    async with console.run_test(size=(120, 40), notifications=True) as pilot:
        screen = await ready(pilot, until, 2)
        await to(pilot, screen, "T-plain")
        await preview(pilot, until, "s")
        await pilot.press("enter")
        await until(pilot, lambda: console.screen is screen and bench.events()[-1]["task"] == "T-plain")
        await until(pilot, lambda: screen.context().plan is not None and screen.context().plan.status != "pending")
        await pilot.press("e")
        await until(pilot, lambda: "missing: AC-two" in text(drawn, console))
    assert bench.events()[-1]["actor"] == {"kind": "human", "identity": ME}


async def test_a_changed_tree_is_shown_before_it_is_recorded(bench: Bench, app: Any, until: Any, drawn: Any) -> None:
    bench.git()
    bench.begin("T-plain")
    assert bench.launch("r1", task="T-plain", worktree=None).ok
    (bench.repo / "src" / "new").write_text("x")
    console = app()
    async with console.run_test(size=(120, 40), notifications=True) as pilot:
        screen = await ready(pilot, until, 2)
        await to(pilot, screen, "r1")
        assert "none: it may only read" in text(drawn, console)
        await form(pilot, until, "c", CollectForm)
        await preview(pilot, until, "f2")
        assert "this is refused: the working tree changed" in text(drawn, console)
        assert bench.events()[-1]["state"] == "launched"
        await pilot.press("enter")
        await until(pilot, lambda: console.screen is screen)
    assert [event.get("state") or event["type"] for event in bench.events()[-2:]] == ["failed", "refusal"]


# Gates.


def sleeper(bench: Bench, place: Path) -> Bench:
    """A task whose check says something, then waits for a file."""
    check = f"echo begun; echo $$ > {place}/pid; while [ ! -e {place}/go ]; do sleep 0.02; done; echo over"
    tasks = draft()["tasks"]
    tasks[0]["gate_intent"] = [{"criterion": "AC-one", "check": check}]
    scope = {**draft()["scope"], "allowed_command_classes": ["echo", "true", "false"]}
    return bench.begin("T-mark", tasks=tasks, scope=scope)


def alive(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}")


@pytest.mark.parametrize("end", ["over", "cancelled"])
async def test_a_gates_output_comes_while_it_runs(bench: Bench, app: Any, until: Any, drawn: Any, end: str) -> None:
    sleeper(bench, bench.root)
    before = bench.journal.read_bytes()
    console = app()
    async with console.run_test(size=(120, 40), notifications=True) as pilot:
        screen = await ready(pilot, until, 2)
        await to(pilot, screen, "T-mark")
        opened = await form(pilot, until, "r", GateForm)
        assert opened.query_one("#field-how").choice.id == "shell"
        await preview(pilot, until, "f2")
        assert "by /bin/sh" in text(drawn, console)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(console.screen, GateScreen) and "begun" in text(drawn, console))
        assert "over" not in text(drawn, console)
        await until(pilot, lambda: (bench.root / "pid").exists() and (bench.root / "pid").read_text().strip())
        pid = int((bench.root / "pid").read_text())
        if end == "cancelled":
            await pilot.press("escape")
            await until(pilot, lambda: "cancelled: its process group was ended" in text(drawn, console))
            assert bench.journal.read_bytes() == before
            assert not alive(pid)
        else:
            (bench.root / "go").write_text("")
            await until(pilot, lambda: "RAN: exit 0" in text(drawn, console))
            assert bench.events()[-1]["trust"] == "observed"
        await pilot.press("enter")
        await until(pilot, lambda: console.screen is screen)
    assert not bench.locked()


async def test_leaving_the_console_ends_the_gate(bench: Bench, app: Any, until: Any, drawn: Any) -> None:
    sleeper(bench, bench.root)
    before = bench.journal.read_bytes()
    console = app()
    async with console.run_test(size=(120, 40), notifications=True) as pilot:
        screen = await ready(pilot, until, 2)
        await to(pilot, screen, "T-mark")
        await form(pilot, until, "r", GateForm)
        await preview(pilot, until, "f2")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(console.screen, GateScreen) and "begun" in text(drawn, console))
    deadline = time.monotonic() + PATIENCE
    while bench.locked() and time.monotonic() < deadline:  # noqa: ASYNC110 - another thread lets go of the plan
        await asyncio.sleep(0.01)
    assert not bench.locked()
    assert bench.journal.read_bytes() == before


async def test_a_gate_that_fails_says_so(bench: Bench, app: Any, until: Any, drawn: Any) -> None:
    bench.begin("T-mark")
    console = app()
    async with console.run_test(size=(120, 40), notifications=True) as pilot:
        screen = await ready(pilot, until, 2)
        await to(pilot, screen, "T-mark")
        opened = await form(pilot, until, "r", GateForm)
        await type_into(pilot, opened, "command", "git push")
        await pilot.press("f2")
        await until(pilot, lambda: "git is no allowed command class" in text(drawn, console))
        await type_into(pilot, opened, "command", "false")
        await preview(pilot, until, "f2")
        await pilot.press("enter")
        await until(pilot, lambda: "RAN: exit 1" in text(drawn, console))
        assert "the gate of AC-one ended with 1" in text(drawn, console)
        await pilot.press("enter")
        await until(pilot, lambda: console.screen is screen)
    assert (bench.events()[-1]["exit_code"], bench.events()[-1]["command"]) == (1, "false")


@pytest.mark.parametrize(
    ("check", "shell"),
    [("true", False), ("test -s results/a.md", False), ("a | b", True), ("A=1 b", True), ("x > y", True), ("'", True)],
)
def test_a_check_goes_without_a_shell_if_it_can(check: str, shell: bool) -> None:
    assert needs_shell(check) is shell


def test_the_store_is_what_a_launch_is_judged_by() -> None:
    """The form asks the very function of the verb's dry run."""
    assert forms.store.dry_run is store.dry_run
