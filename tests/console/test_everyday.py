"""What somebody meets who has the console open all day: nothing kept that nobody typed, nothing cut off without a sign,
times that can be read, and no turn that cannot be taken (docs/specs/console.md §2, §4)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.console.hosts import running
from tests.console.plans import form, ready, to
from tests.console.workflow_root import FAILED, WorkflowRoot
from tests.unit.core.delegation.builders import Bench
from tui.app import ConsoleApp
from tui.forms.deeds import DeedForm
from tui.forms.delegation import LaunchForm
from tui.forms.escalation import AnswerForm
from tui.forms.gate import GateForm
from tui.forms.workflow import AbortForm, StartForm
from tui.screens.collaboration import CollaborationScreen
from tui.screens.inbox import InboxScreen
from tui.screens.new import NewScreen
from tui.screens.run import RunScreen
from tui.screens.workflows import WorkflowsScreen
from tui.when import when
from tui.widgets.rows import Cell, Column, Heading, Row, RowList
from tui.widgets.text import aligned


@pytest.fixture
def text(drawn: Any) -> Any:
    """What stands on the screen as one text, its lines cut to single spaces."""
    return lambda app: " ".join(" ".join(drawn(app)).split())


def kept(app: ConsoleApp) -> list[Path]:
    return sorted((app.user_state.folder / "drafts").glob("*.json"))


def asking(tmp_path: Path, clock: Any) -> WorkflowRoot:
    """A run that asks, with a deadline."""
    root = WorkflowRoot(tmp_path / "work", clock, more="on_escalate: {wait: item, deadline: 2h}\n")
    root.start()
    root.reply(0, FAILED)
    return root


async def on_workflows(pilot: Any, until: Any) -> None:
    """The Workflows screen, with something on it."""
    app = pilot.app
    await until(pilot, lambda: app.complete)
    await pilot.press("4")
    await until(pilot, lambda: isinstance(app.base, WorkflowsScreen) and app.base.rows.row is not None)


async def look_and_leave(pilot: Any, until: Any) -> None:
    """Through the fields and back, with nothing typed."""
    app = pilot.app
    below = app.screen_stack[-2]
    assert isinstance(app.screen, DeedForm)
    await pilot.press("tab", "shift+tab", "escape")
    await until(pilot, lambda: app.screen is below)
    await until(pilot, lambda: all(one.is_finished for one in app.workers if one.group == "drafts"))
    assert kept(app) == []


@pytest.mark.parametrize(("key", "kind"), [("s", StartForm), ("a", AnswerForm), ("x", AbortForm)])
async def test_a_form_of_a_workflow_that_was_only_looked_at_keeps_no_draft(
    tmp_path: Path, clock: Any, console: Any, until: Any, key: str, kind: type[DeedForm]
) -> None:
    app = console(asking(tmp_path, clock).path, me="ana")
    async with app.run_test(size=(100, 40), notifications=True) as pilot:
        await on_workflows(pilot, until)
        await form(pilot, until, key, kind)
        await look_and_leave(pilot, until)
        await form(pilot, until, key, kind)
        app.screen.query_one({"s": "#field-parent", "a": "#field-note", "x": "#field-note"}[key]).focus_control()
        await pilot.press(*"because", "escape")
        await until(pilot, lambda: len(kept(app)) == 1)


@pytest.mark.parametrize(("key", "kind"), [("l", LaunchForm), ("r", GateForm)])
async def test_a_form_of_a_plan_that_was_only_looked_at_keeps_no_draft(
    bench: Bench, app: Any, until: Any, key: str, kind: type[DeedForm]
) -> None:
    bench.begin("T-mark")
    console = app()
    async with console.run_test(size=(100, 40), notifications=True) as pilot:
        await to(pilot, await ready(pilot, until, 2), "T-mark")
        await form(pilot, until, key, kind)
        await look_and_leave(pilot, until)


async def test_a_new_collaboration_that_was_only_looked_at_keeps_no_draft(
    make_folder: Any, console: Any, until: Any
) -> None:
    make_folder()
    app = console(me="server")
    async with app.run_test(size=(100, 40), notifications=True) as pilot:
        await until(pilot, lambda: app.complete)
        await form(pilot, until, "c", NewScreen)
        await look_and_leave(pilot, until)


@pytest.mark.parametrize("width", [60, 80])
async def test_what_a_headline_has_no_room_for_is_cut_with_a_sign(
    bench: Bench, app: Any, until: Any, drawn: Any, width: int
) -> None:
    bench.begin("T-mark")
    for number in range(4):
        bench.launch(f"task-{number}")
    bench.collect("task-0")
    bench.collect("task-1", "failed")
    bench.cancel("task-2")
    console = app()
    async with console.run_test(size=(width, 24), notifications=True) as pilot:
        screen = await ready(pilot, until, 2)
        (line,) = (line for line in drawn(console) if line.startswith(" Delegations"))
        whole = f" {screen.headline().plain}"
        assert line == whole or (line.endswith("…") and len(line) == width - 1 and whole.startswith(line[:-1]))
        if width == 60:
            assert len(whole) > width


async def test_a_list_that_grows_shows_the_title_of_its_first_group_again() -> None:
    rows = RowList([Column("name", grow=1)])
    async with running(rows, (40, 1)) as (app, pilot):
        rows.set_rows([Heading("Decide"), *(Row(f"{number}", (Cell(f"row {number}"),)) for number in range(30))])
        await pilot.press("down", "up")
        assert app.shown().strip().endswith("row 0")
        await pilot.resize_terminal(40, 10)
        await pilot.pause()
        assert "Decide" in app.shown()
        # A row in the middle stays where it is.
        await pilot.press("pagedown", "pagedown", "up")
        top = rows.scroll_offset.y
        await pilot.resize_terminal(40, 12)
        await pilot.pause()
        assert rows.scroll_offset.y == top > 0


async def test_a_deadline_is_told_as_the_time_that_is_left(
    tmp_path: Path, clock: Any, console: Any, until: Any, text: Any
) -> None:
    root = WorkflowRoot(tmp_path / "work", clock, more="on_escalate: {wait: item, deadline: 2h}\n")
    root.start()
    root.reply(0, FAILED)
    clock.step(600)
    app = console(root.path, me="ana")
    async with app.run_test(size=(110, 44), notifications=True) as pilot:
        await until(pilot, lambda: app.complete)
        await pilot.press("4")
        await until(pilot, lambda: "deadline in 1 h 50 m (" in text(app))
        await form(pilot, until, "a", AnswerForm)
        await until(pilot, lambda: "deadline: in 1 h 50 m (" in text(app))


async def test_a_step_in_flight_says_for_how_long(
    tmp_path: Path, clock: Any, console: Any, until: Any, drawn: Any
) -> None:
    root = WorkflowRoot(tmp_path / "work", clock, more="max_parallel: 3\n")
    root.start()
    clock.step(180)
    root.reply(0, "ok")
    clock.step(240)
    app = console(root.path, me="ana")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await on_workflows(pilot, until)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.base, RunScreen) and app.base.run_now is not None)
        await until(pilot, lambda: sum("in flight" in line and " 7 m" in line for line in drawn(app)) == 2)
        clock.step(600)
        await until(pilot, lambda: sum("in flight" in line and " 17 m" in line for line in drawn(app)) == 2)
        await pilot.press("comma")
        # As it was: after the answer of the first, three minutes in.
        await until(pilot, lambda: any("as it was after event" in line for line in drawn(app)))
        assert not any(" 17 m" in line for line in drawn(app))


async def test_a_sentence_of_a_pane_is_never_cut(console: Any, tmp_path: Path, until: Any, text: Any) -> None:
    app = console(tmp_path, me="ana")
    async with app.run_test(size=(60, 20), notifications=True) as pilot:
        await until(pilot, lambda: app.complete)
        await pilot.press("5")
        await until(pilot, lambda: "s: type or paste the message of a failure, f: take it from a file." in text(app))


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_a_damaged_log_is_nobodys_turn(
    make_folder: Any, console: Any, open_folder: Any, until: Any, text: Any, size: tuple[int, int]
) -> None:
    folder = make_folder()
    app = console(me="server")
    async with app.run_test(size=size, notifications=True) as pilot:
        await open_folder(pilot, folder)
        await until(pilot, lambda: "Your turn: submit" in text(app))
        with (folder / "events.jsonl").open("ab") as log:
            log.write(b"no event\n")
        await until(pilot, lambda: "✕ Nothing can be appended:" in text(app))
        assert "Your turn" not in text(app)


async def test_a_torn_last_line_leaves_the_turn(
    make_folder: Any, console: Any, open_folder: Any, until: Any, text: Any
) -> None:
    folder = make_folder()
    with (folder / "events.jsonl").open("ab") as log:
        log.write(b'{"half')
    app = console(me="server")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await open_folder(pilot, folder)
        await until(pilot, lambda: "Findings 1" in text(app) and "Your turn: submit" in text(app))


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_a_blocked_folder_says_by_whom_and_why(
    make_folder: Any, act: Any, console: Any, open_folder: Any, until: Any, text: Any, size: tuple[int, int]
) -> None:
    folder = make_folder()
    act(folder, "reader", "blocked", "No host until May")
    app = console(me="server")
    async with app.run_test(size=size, notifications=True) as pilot:
        await open_folder(pilot, folder)
        await until(pilot, lambda: "✕ Blocked by reader: No host" in text(app))
        if size[0] == 120:
            assert "✕ reader blocked" in text(app)


def test_moments_are_relative_first_and_always_in_one_form() -> None:
    now = datetime(2026, 3, 1, 9, tzinfo=UTC)
    assert when("2026-03-01T06:50:00.250Z", now) == "2 h 9 m ago (2026-03-01T06:50:00Z)"
    assert when("2026-03-01T15:00:00+01:00", now) == "in 5 h (2026-03-01T14:00:00Z)"
    assert when((now - timedelta(0)).isoformat(), now) == "0 s ago (2026-03-01T09:00:00Z)"
    assert when("some day\x1b[2J", now).isprintable()
    assert when(None, now) == ""


@pytest.mark.parametrize(("key", "kind"), [("s", StartForm), ("a", AnswerForm), ("x", AbortForm)])
async def test_a_form_of_a_workflow_says_as_whom(
    tmp_path: Path, clock: Any, console: Any, until: Any, text: Any, key: str, kind: type[DeedForm]
) -> None:
    app = console(asking(tmp_path, clock).path, me="ana")
    async with app.run_test(size=(60, 15), notifications=True) as pilot:
        await on_workflows(pilot, until)
        screen = await form(pilot, until, key, kind)
        await until(pilot, lambda: f"{screen.HEADING} as ana, " in text(app))


async def test_a_form_of_a_plan_says_as_whom(bench: Bench, app: Any, until: Any, text: Any) -> None:
    bench.begin("T-mark")
    bench.launch("one")
    console = app()
    async with console.run_test(size=(60, 15), notifications=True) as pilot:
        await to(pilot, await ready(pilot, until, 2), "T-mark")
        screen = await form(pilot, until, "l", LaunchForm)
        await until(pilot, lambda: f"{screen.HEADING} as ana, " in text(console))


async def test_titles_of_tasks_begin_in_one_column(bench: Bench, app: Any, until: Any, drawn: Any) -> None:
    bench.begin("T-mark")
    console = app()
    async with console.run_test(size=(120, 36), notifications=True) as pilot:
        await ready(pilot, until, 2)
        lines = drawn(console)
        names = {"T-mark": "Marked", "T-plain": "Unmarked"}
        places = {
            name: next(line.index(title) for line in lines if f" {name} " in line) for name, title in names.items()
        }
        assert len(set(places.values())) == 1, places


def test_names_are_filled_up_to_the_widest_that_is_not_too_long() -> None:
    assert aligned(["a", "bcd", "x" * 9], 8) == {"a": "a  ", "bcd": "bcd", "x" * 9: "x" * 9}
    assert aligned(["日", "abc"], 8) == {"日": "日 ", "abc": "abc"}
    assert aligned([], 8) == {}


async def test_at_120_cells_an_inbox_says_why(make_folder: Any, console: Any, until: Any) -> None:
    make_folder()
    app = console(me="server")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await until(pilot, lambda: app.complete and isinstance(app.base, InboxScreen) and app.base.rows.row is not None)
        long = Row("long", (*(Cell("word " * 20) for _ in range(6)),))
        app.base.rows.set_rows([long])
        await pilot.pause()
        room = app.base.rows.content_size.width
        assert app.base.rows.widths(room)[-1] >= 20


async def test_a_toast_covers_neither_the_filter_nor_its_count(
    make_folder: Any, console: Any, until: Any, drawn: Any
) -> None:
    make_folder()
    app = console(me="server")
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(
            pilot, lambda: app.complete and app.base is not None and app.base.query_one(RowList).row is not None
        )
        app.notify("something that happened " * 6, timeout=60)
        await until(pilot, lambda: any("something that happened" in line for line in drawn(app)))
        await pilot.press("slash", "e")
        await until(pilot, lambda: any(line.rstrip().endswith("1 shown") for line in drawn(app)))
        assert any("something that happened" in line for line in drawn(app))


async def test_what_says_which_key_fills_it_names_the_key_of_the_keymap(
    make_folder: Any, console: Any, until: Any, text: Any
) -> None:
    (make_folder() / "review.md").unlink()
    app = console(me="nobody-here", keymap={"review": "Y", "new": "K", "collaborations": "L"})
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: app.complete)
        await until(pilot, lambda: "L shows every collaboration, K starts a new one, ? shows every key." in text(app))
        await pilot.press("L", "enter")
        await until(pilot, lambda: isinstance(app.base, CollaborationScreen) and app.base.view is not None)
        app.base.go_tab("review.md")
        await until(pilot, lambda: "A reviewer writes one: Y." in text(app))
