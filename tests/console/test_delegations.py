"""Delegations as they are drawn: live, with their worth, inert, in the past (docs/specs/console.md §2)."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest

from core.delegation import canon
from core.delegation.view import CLAIM
from tests.console.hosts import HOSTILE
from tests.console.plans import form, ledger, payload, ready, text, to
from tests.unit.core.delegation.builders import DIGEST, Bench, draft
from tui.app import ConsoleApp
from tui.forms.checks import ChecksView
from tui.forms.delegation import LaunchForm
from tui.screens.delegations import DelegationsScreen
from tui.widgets.pane import Pane

# What is shown.


async def test_rows_by_plan_and_task_with_their_bars(bench: Bench, app: Any, until: Any, drawn: Any) -> None:
    bench.begin("T-mark")
    bench.launch("d1", worktree="../1")
    bench.clock.step(300)
    bench.launch("d2", worktree="../2")
    bench.clock.step(7200)
    bench.collect("d1")
    bench.cancel("d2")
    bench.launch("d3", worktree="../3")
    bench.clock.step(120)
    bench.collect("d3", "failed", note="out of memory")
    bench.launch("d4", worktree="../4")
    console = app()
    async with console.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await ready(pilot, until, 6)
        assert [row.id.rpartition("\n")[2] for row in screen.rows.rows] == ["T-mark", "d1", "d2", "d3", "d4", "T-plain"]
        shown = text(drawn, console)
        assert "PLAN_unit_sample  1 open, 1 completed, 1 failed, 1 cancelled, 1 not observed" in shown
        for line in ("◐ completed", "○ cancelled", "✕ failed", "▸ open", "▸ in progress"):
            assert line in shown, line
        line = next(line for line in drawn(console) if " d1 " in line)
        # Two hours without an event take no more room than a quarter of an hour.
        assert "━┊━" in line
        assert line.rstrip().endswith("━")
        assert next(line for line in drawn(console) if " d4 " in line).rstrip().endswith("▸")


async def test_a_claim_is_no_evidence_until_a_gate_observed_it(bench: Bench, app: Any, until: Any, drawn: Any) -> None:
    bench.begin("T-mark")
    bench.launch("d1", worktree="../1")
    (bench.plan / "result.md").write_text("done\n")
    bench.collect("d1", result_path="result.md")
    console = app()
    async with console.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await ready(pilot, until, 3)
        await to(pilot, screen, "d1")
        await until(pilot, lambda: "it still is what was collected" in text(drawn, console))
        shown = text(drawn, console)
        assert CLAIM in shown
        for part in ("agentkit, headless", "../1", DIGEST):
            assert part in shown
        # Looked at again when the row is opened again.
        (bench.plan / "result.md").write_text("other\n")
        await pilot.press("up", "down")
        await until(pilot, lambda: "it is NOT what was collected" in text(drawn, console))
        ledger(bench, "gate", "--task", "T-mark", "--criterion", "AC-one", "--json", '["true"]')
        await until(pilot, lambda: "✓ observed" in text(drawn, console))
        assert "observed by a gate at seq 5" in text(drawn, console)


async def test_refusals_stand_with_their_task_and_have_a_code(bench: Bench, app: Any, until: Any, drawn: Any) -> None:
    bench.begin("T-mark")
    bench.launch("d1", worktree="../1")
    assert bench.launch("d1", worktree="../1").exit == 5
    assert bench.launch("d9", task="T-plain", worktree="../9").exit == 5
    console = app()
    async with console.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await ready(pilot, until, 3)
        await to(pilot, screen, "d1")
        reason = "seq 4, delegate: delegation_id d1 is already recorded (delegation_refused)"
        await until(pilot, lambda: reason in text(drawn, console))
        await to(pilot, screen, "T-plain")
        await until(pilot, lambda: "T-plain has not started (task_not_started)" in text(drawn, console))
        assert "1 refused" in next(line for line in drawn(console) if "T-plain  Unmarked" in line)


async def test_what_others_record_is_drawn_by_itself(bench: Bench, app: Any, until: Any, drawn: Any) -> None:
    bench.begin("T-mark")
    console = app()
    async with console.run_test(size=(100, 30), notifications=True) as pilot:
        screen = await ready(pilot, until, 2)
        await to(pilot, screen, "T-plain")
        ledger(bench, "delegate", "launch", "--task", "T-mark", "--json", payload("elsewhere"))
        await until(pilot, lambda: " elsewhere " in text(drawn, console))
        assert screen.rows.row is not None
        assert screen.rows.row.id.endswith("T-plain")
        state = '{"delegation_id": "elsewhere", "state": "failed", "note": "gone"}'
        ledger(bench, "delegate", "collect", "--task", "T-mark", "--json", state)
        await until(pilot, lambda: "✕ failed" in text(drawn, console))
        ledger(bench, "roll")
        ledger(bench, "delegate", "launch", "--task", "T-mark", "--json", payload("after"))
        await until(pilot, lambda: " after " in text(drawn, console))
        assert " elsewhere " in text(drawn, console)


@pytest.mark.parametrize("still", [False, True])
async def test_bars_and_ages_grow_only_where_motion_is_allowed(
    bench: Bench, app: Any, until: Any, drawn: Any, still: bool
) -> None:
    bench.begin("T-mark")
    bench.launch("d1", worktree="../1")
    bench.clock.step(60)
    bench.launch("d2", worktree="../2")
    console = app(reduced_motion=still)
    async with console.run_test(size=(100, 30), notifications=True) as pilot:
        screen = await ready(pilot, until, 4)

        def line() -> str:
            return next(line for line in drawn(console) if " d2 " in line)

        before = line()
        bench.clock.step(600)
        screen.tick()
        await pilot.pause()
        assert (line() == before) is still
        for _ in range(10):
            screen.tick()
        await pilot.pause()
        assert "10 m" in line()


async def test_open_only_and_the_filter(bench: Bench, app: Any, until: Any, drawn: Any) -> None:
    bench.begin("T-mark", "T-plain")
    for name in ("d1", "d2"):
        bench.launch(name, worktree=f"../{name}")
    bench.collect("d1")
    console = app()
    async with console.run_test(size=(100, 30), notifications=True) as pilot:
        screen = await ready(pilot, until, 4)
        await pilot.press("o")
        await pilot.pause()
        assert [row.id.rpartition("\n")[2] for row in screen.rows.rows] == ["T-mark", "d2"]
        bench.cancel("d2")
        await until(pilot, lambda: "Nothing is delegated and open now" in text(drawn, console))
        await pilot.press("o", "slash", *"cancelled")
        await until(pilot, lambda: [row.id[-2:] for row in screen.rows.rows if row.id.startswith("del")] == ["d2"])


async def test_plans_that_cannot_be_read_are_one_row_each(bench: Bench, app: Any, until: Any, drawn: Any) -> None:
    bench.begin("T-mark")
    bad, bare = bench.plan.parent / "PLAN_unit_bad", bench.plan.parent / "PLAN_unit_bare"
    for folder, files in ((bad, {"contract.json": "{"}), (bare, {"README.md": "# Goal\n"})):
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_text(content)
    console = app()
    async with console.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await ready(pilot, until, 4)
        shown = text(drawn, console)
        assert "✕ unreadable" in shown
        assert "○ draft" in shown
        assert re.search(r"T-mark +Marked", shown)
        assert [(item.kind, item.lane) for item in console.waiting] == [("plan", "know")]
        await pilot.press("home")
        await until(pilot, lambda: "contract_invalid" in text(drawn, console))
        assert console.screen is screen
        await pilot.press("l")
        await pilot.pause()
        assert console.screen is screen
        # It is shown as soon as it can be read.
        made = draft(plan="PLAN_unit_bad")
        (bad / "contract.json").write_text(json.dumps({**made, "contract_id": canon.contract_id(made)}))
        await until(pilot, lambda: "✕ unreadable" not in text(drawn, console))


async def test_hostile_text_is_inert(bench: Bench, app: Any, until: Any, drawn: Any) -> None:
    tasks = draft()["tasks"]
    legal = [one.encode("utf-8", "replace").decode() for one in HOSTILE]
    tasks[0]["title"] = " ".join(legal)
    bench.begin("T-mark", tasks=tasks)
    for number, words in enumerate(legal):
        bench.launch(f"d{number}", worktree=f"../{words}"[:250], kind=words, target=words)
        bench.collect(f"d{number}", "failed", note=words)
    bench.launch(via="x", task=legal[0])
    console = app()
    async with console.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await ready(pilot, until, len(legal))
        for row in list(screen.rows.rows):
            screen.rows.move_to_id(row.id)
            await pilot.pause()
            shown = text(drawn, console)
            assert all(sign.isprintable() or sign == "\n" for sign in shown)
        await pilot.press("home")
        opened = await form(pilot, until, "l", LaunchForm)
        await until(pilot, lambda: opened.query_one(ChecksView).line_count)
        assert all(sign.isprintable() or sign == "\n" for sign in text(drawn, console))


# History.


async def test_stepping_shows_the_plan_as_it_was(bench: Bench, app: Any, until: Any, drawn: Any) -> None:
    bench.begin("T-mark")
    bench.launch("d1", worktree="../1")
    bench.clock.step(600)
    bench.collect("d1")
    console = app()
    async with console.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await ready(pilot, until, 3)
        await to(pilot, screen, "d1")
        await pilot.press("comma")
        await until(pilot, lambda: "as it was after seq 4: delegation d1" in text(drawn, console))
        await pilot.press("comma")
        await until(pilot, lambda: "as it was after seq 3" in text(drawn, console))
        assert "▸ open" in text(drawn, console)
        # Nobody acts in the past.
        before = bench.journal.read_bytes()
        await pilot.press("c")
        await pilot.pause()
        assert console.screen is screen
        await pilot.press("comma")
        await until(pilot, lambda: "as it was after seq 2" in text(drawn, console))
        assert " d1 " not in text(drawn, console)
        await pilot.press("full_stop", "full_stop")
        await until(pilot, lambda: "as it was after seq 4" in text(drawn, console))
        await pilot.press("0")
        await until(pilot, lambda: "as it was" not in text(drawn, console))
        assert bench.journal.read_bytes() == before


# The inbox.


async def test_the_inbox_leads_to_the_delegation(bench: Bench, app: Any, until: Any, drawn: Any) -> None:
    bench.begin("T-mark")
    bench.launch("d1", worktree="../1")
    bench.launch("d2", worktree="../2")
    console = app(delegation_minutes=45)
    async with console.run_test(size=(120, 36), notifications=True) as pilot:
        await until(pilot, lambda: console.complete)
        assert console.waiting == ()
        bench.clock.step(44 * 60)
        await pilot.press("ctrl+r")
        await until(pilot, lambda: "reading everything again" in text(drawn, console))
        assert console.waiting == ()
        bench.clock.step(120)
        await until(pilot, lambda: len(console.waiting) == 2)
        assert {item.lane for item in console.waiting} == {"unblock"}
        await pilot.press("n")
        await until(pilot, lambda: isinstance(console.base, DelegationsScreen) and console.base.spot is not None)
        screen = console.base
        assert isinstance(screen, DelegationsScreen)
        await until(pilot, lambda: screen.spot is not None and screen.spot.name == "d1")
        await pilot.press("n")
        await until(pilot, lambda: screen.spot is not None and screen.spot.name == "d2")
        await pilot.press("enter")
        assert screen.query_one("#report", Pane).has_focus
        assert timedelta(minutes=45) == console.reading._evidence._open_age


async def test_whoever_is_nobody_is_asked_first(bench: Bench, console: Any, until: Any, drawn: Any) -> None:
    bench.begin("T-mark")
    app: ConsoleApp = console(bench.repo, environ=bench.environ)
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await ready(pilot, until, 2)
        await pilot.press("l")
        await until(pilot, lambda: "say who you are first" in text(drawn, app))
        assert app.screen is screen
