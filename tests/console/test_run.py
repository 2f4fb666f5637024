"""A run unfolded by real keys: steps, timeline, questions, spec, and the run as it was (docs/specs/console.md §2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.console.hosts import SIZES, is_inert
from tests.console.workflow_root import FAILED, WorkflowRoot
from tui.app import ConsoleApp
from tui.forms.confirm import ConfirmScreen
from tui.forms.escalation import AnswerForm
from tui.forms.workflow import AbortForm
from tui.screens.run import RunScreen
from tui.screens.workflows import WorkflowsScreen


@pytest.fixture
def root(tmp_path: Path, clock: Any) -> WorkflowRoot:
    """A run whose second item failed and waits for an answer."""
    made = WorkflowRoot(tmp_path / "work", clock)
    made.start()
    made.reply(0, "ok")
    made.reply(1, FAILED)
    return made


@pytest.fixture
def unfold(console: Any, until: Any) -> Any:
    """`await unfold(pilot)`: the run, with its log read."""

    async def open_it(pilot: Any) -> RunScreen:
        app: ConsoleApp = pilot.app
        await until(pilot, lambda: app.complete)
        await pilot.press("4")
        await until(pilot, lambda: isinstance(app.base, WorkflowsScreen) and app.base.rows.row is not None)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.base, RunScreen) and app.base.run_now is not None)
        screen = app.base
        assert isinstance(screen, RunScreen)
        return screen

    return open_it


@pytest.fixture
def text(drawn: Any) -> Any:
    return lambda app: " ".join(" ".join(drawn(app)).split())


async def test_steps_timeline_questions_and_the_spec_with_its_route(
    root: WorkflowRoot, console: Any, until: Any, unfold: Any, text: Any
) -> None:
    app = console(root.path, me="ana")
    async with app.run_test(size=(140, 36), notifications=True) as pilot:
        await unfold(pilot)
        await until(pilot, lambda: "Steps 2" in text(app))
        shown = text(app)
        assert "✓ success a" in shown
        assert "✕ fail b" in shown
        assert "port 443 is closed" in shown
        assert "workflow_unclassified_" in shown
        assert '"signal": "SPAWN"' in shown
        # The spec stands beside: where the run is, and the route that it took.
        assert "▸ each item: porter in" in shown
        assert "✓ fail: → ESCALATE" in shown
        await pilot.press("t")
        await until(pilot, lambda: "fail after 1000 ms: port 443 is closed" in text(app))
        assert "started by ana in swarm mode" in text(app)
        await pilot.press("t")
        await until(pilot, lambda: "● open esc-20260301-0001" in text(app))
        await pilot.press("t")
        await until(pilot, lambda: "Steps 2" in text(app) and "✓ success a" in text(app))


async def test_the_spec_is_a_part_where_there_is_no_room_beside(
    root: WorkflowRoot, console: Any, until: Any, unfold: Any, text: Any
) -> None:
    app = console(root.path, me="ana")
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await unfold(pilot)
        await pilot.press("t", "t", "t")
        await until(pilot, lambda: "fail: → ESCALATE pilote" in text(app))
        await pilot.resize_terminal(140, 30)
        await until(pilot, lambda: "✓ success a" in text(app) and "fail: → ESCALATE" in text(app))


async def test_stepping_shows_the_run_as_it_was(
    root: WorkflowRoot, console: Any, until: Any, unfold: Any, text: Any
) -> None:
    app = console(root.path, me="ana")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await unfold(pilot)
        count = len(screen._unfolded.events)
        await pilot.press("comma")
        await until(pilot, lambda: f"as it was after event {count - 1} of {count}" in text(app))
        assert screen.context().workflow.asks == 0
        await pilot.press("a")
        await until(pilot, lambda: "nothing here waits for an answer" in text(app))
        seen = []
        for _ in range(count):
            seen.append((len(screen.shown_run.steps), screen.shown_run.tally.get("fail", 0)))
            if screen.context().workflow.moment == 0:
                break
            before = screen._index
            await pilot.press("left_square_bracket")
            await until(pilot, lambda before=before: screen._index == before - 1 and screen._past is not None)
            await until(pilot, lambda: screen._past.seq == screen._index + 1)
        assert seen[0] == (2, 1)
        assert seen[-1] == (0, 0)
        assert sorted(seen, reverse=True) == seen
        await pilot.press("comma")
        await until(pilot, lambda: "this is the first event" in text(app))
        await pilot.press("full_stop")
        await until(pilot, lambda: screen._past is not None and screen._past.seq == 2)
        await pilot.press("0")
        await until(pilot, lambda: screen._past is None and "✕ fail b" in text(app))
        await pilot.press("0")
        await until(pilot, lambda: "this is now" in text(app))


async def test_from_an_event_of_the_timeline_one_steps_to_that_moment(
    root: WorkflowRoot, console: Any, until: Any, unfold: Any, text: Any
) -> None:
    app = console(root.path, me="ana")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await unfold(pilot)
        await pilot.press("t", "home", "down", "comma")
        await until(pilot, lambda: screen._past is not None and screen._past.seq == 2)
        assert "as it was after event 2" in text(app)
        assert screen.grid.cursor == 1


async def test_it_grows_while_it_is_looked_at_and_a_question_is_answered_from_here(
    root: WorkflowRoot, console: Any, until: Any, unfold: Any, text: Any
) -> None:
    app = console(root.path, me="ana")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await unfold(pilot)
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, AnswerForm))
        await pilot.press("f2")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen) and not app.screen.deaf)
        await pilot.press("enter")
        await until(pilot, lambda: root.decisions() == [("ana", "retry", "", "console")])
        await until(pilot, lambda: app.screen is screen)
        await pilot.press("u")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen) and not app.screen.deaf)
        await pilot.press("enter")
        await until(pilot, lambda: "Steps 3" in text(app) and "in flight b" in text(app))
        root.reply(1, "ok")
        await until(pilot, lambda: "Steps 4" in text(app))
        await pilot.press("t", "t")
        await until(pilot, lambda: "✓ applied esc-20260301-0001" in text(app))
        assert "ana: retry" in text(app)
        root.reply(2, "ok")
        await until(pilot, lambda: "✓ done" in text(app) and "3/3" in text(app))
        await pilot.press("x")
        await until(pilot, lambda: "this run is over: success" in text(app))


async def test_a_run_that_was_over_before_anybody_looked(
    root: WorkflowRoot, console: Any, until: Any, unfold: Any, text: Any
) -> None:
    root.answer("esc-20260301-0001", "skip")
    root.tick()
    root.reply(2, "ok")
    app = console(root.path, me="ana")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await unfold(pilot)
        assert screen.desk.world.runs == {}
        await pilot.press("t", "t")
        await until(pilot, lambda: "✓ applied esc-20260301-0001" in text(app))
        assert "answered by ben: skip" in text(app)
        assert "item b (2 of 3)" in text(app)
        await pilot.press("a")
        await until(pilot, lambda: "nothing here waits for an answer" in text(app))
        await pilot.press("x")
        await until(pilot, lambda: "this run is over: partial" in text(app))
        await pilot.press("escape")
        await until(pilot, lambda: app.base is not screen and "result 2 success, 1 skipped" in text(app))


async def test_it_is_stopped_from_here(root: WorkflowRoot, console: Any, until: Any, unfold: Any) -> None:
    app = console(root.path, me="ana")
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await unfold(pilot)
        await pilot.press("x")
        await until(pilot, lambda: isinstance(app.screen, AbortForm))
        await pilot.press("f2")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen) and not app.screen.deaf)
        await pilot.press("enter")
        await until(pilot, lambda: root.run().aborted is not None)
    assert root.entries()[0].state == "cancelled"


async def test_what_waits_elsewhere_leads_back_to_the_list(
    tmp_path: Path, root: WorkflowRoot, clock: Any, console: Any, until: Any, unfold: Any
) -> None:
    other = WorkflowRoot(tmp_path / "other", clock)
    other.start()
    other.reply(0, FAILED)
    app = console(root.path, other.path, me="ana")
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        screen = await unfold(pilot)
        await until(pilot, lambda: sum(item.kind == "workflow" for item in app.waiting_items) == 2)
        for _ in range(3):
            await pilot.press("n")
            await pilot.pause()
            if app.base is not screen:
                break
        await until(pilot, lambda: isinstance(app.base, WorkflowsScreen))
        assert app.base.rows.row is not None
        assert str(other.path) in app.base.rows.row.id or str(root.path) in app.base.rows.row.id


@pytest.mark.parametrize("size", SIZES)
async def test_every_part_at_every_size(
    size: tuple[int, int], root: WorkflowRoot, console: Any, until: Any, unfold: Any, drawn: Any
) -> None:
    app = console(root.path, me="ana")
    async with app.run_test(size=size, notifications=True) as pilot:
        screen = await unfold(pilot)
        for key in ("t", "comma", "comma", "t", "0", "t", "t", "down", "up"):
            await pilot.press(key)
            await pilot.pause(0.02)
            assert is_inert("".join(drawn(app)))
            assert drawn(app)[-1].strip()
        await pilot.press("escape")
        await until(pilot, lambda: app.base is not screen)
