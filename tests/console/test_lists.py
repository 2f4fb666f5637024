"""Inbox and list of collaborations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tui.screens.choose import ChooseScreen
from tui.screens.collaboration import CollaborationScreen
from tui.screens.collaborations import CollaborationsScreen
from tui.screens.find import FindBar
from tui.screens.inbox import InboxScreen
from tui.widgets.rows import RowList


def titles(app: Any) -> list[str]:
    return [row.id for row in app.base.rows.rows]


async def test_the_inbox_is_home_and_says_what_waits_and_why(
    make_folder: Any, act: Any, console: Any, until: Any, drawn: Any
) -> None:
    talk = make_folder()
    act(talk, "server", "proposal_submitted")
    make_folder("other")
    app = console(me="reader")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await until(pilot, lambda: app.complete)
        assert isinstance(app.screen, InboxScreen)
        assert titles(app) == [str(talk)]
        shown = "\n".join(drawn(app))
        assert "as reader" in shown
        assert "1 waiting" in shown
        assert "your turn" in shown
        assert "write a review" in shown
        assert f"collab review --folder {talk} --as reader"[:60] in shown
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, CollaborationScreen) and app.screen.view is not None)
        assert app.screen.path == talk
        await pilot.press("q")
        assert isinstance(app.screen, InboxScreen)


async def test_the_list_groups_by_how_things_stand(make_folder: Any, act: Any, console: Any, until: Any) -> None:
    mine, other = make_folder("mine"), make_folder("other")
    blocked = make_folder("blocked")
    act(mine, "server", "proposal_submitted")
    act(blocked, "reader", "blocked")
    app = console(me="reader")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await until(pilot, lambda: app.complete)
        await pilot.press("2")
        assert isinstance(app.screen, CollaborationsScreen)
        assert titles(app) == [str(mine), str(other), str(blocked)]
        states = [row.cells[0].plain for row in app.screen.rows.rows]
        assert states == ["your turn", "waiting", "blocked"]


async def test_a_new_folder_and_a_removed_one_are_noticed(
    make_folder: Any, console: Any, until: Any, tmp_path: Path
) -> None:
    make_folder("one")
    app = console(me="server")
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await until(pilot, lambda: app.complete)
        await pilot.press("2")
        (tmp_path / "deep").mkdir()
        two = make_folder("deep/two")
        await until(pilot, lambda: str(two) in titles(app))
        (tmp_path / "one").rename(tmp_path / "uno")
        await until(pilot, lambda: str(tmp_path / "uno") in titles(app) and len(titles(app)) == 2)


async def test_the_cursor_stays_on_its_row_while_rows_come_and_go(
    make_folder: Any, act: Any, console: Any, until: Any
) -> None:
    folders = [make_folder(f"f{number}", objective=f"Talk {number}") for number in range(6)]
    app = console(me="server")
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await until(pilot, lambda: app.complete)
        await pilot.press("2", "down", "down", "down")
        rows = app.screen.rows
        before = rows.row.id
        top = rows.cursor - rows.scroll_offset.y
        act(folders[0], "server", "proposal_submitted")
        make_folder("a-new-one")
        await until(pilot, lambda: len(titles(app)) == 7 and titles(app)[-1] == str(folders[0]))
        assert rows.row.id == before
        assert abs((rows.cursor - rows.scroll_offset.y) - top) <= 1


async def test_filter_hides_rows_and_escape_shows_them_again(make_folder: Any, console: Any, until: Any) -> None:
    cache, limits = make_folder("cache", objective="The cache"), make_folder("limits", objective="The limits")
    app = console(me="server")
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await until(pilot, lambda: app.complete)
        await pilot.press("slash", *"lim")
        await until(pilot, lambda: titles(app) == [str(limits)])
        await pilot.press("enter")
        assert isinstance(app.screen.focused, RowList)
        await pilot.press("q")
        assert not app.screen.query_one(FindBar).is_open
        await until(pilot, lambda: titles(app) == [str(cache), str(limits)])


async def test_items_with_one_cause_fold_and_unfold(make_folder: Any, act: Any, console: Any, until: Any) -> None:
    folders = [make_folder(f"f{number}") for number in range(3)]
    for path in folders[:2]:
        act(path, "reader", "blocked", "the budget is frozen")
    act(folders[2], "reader", "blocked", "nobody answers")
    app = console(me="server")
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await until(pilot, lambda: app.complete)
        folded = "fold:unblock:blocked:the budget is frozen"
        # The same reason twice is a failure that asks for a name.
        unknown, *rest = titles(app)
        assert unknown.startswith("tri-")
        assert rest == [folded, str(folders[2])]
        await pilot.press("down", "enter")
        assert titles(app) == [unknown, folded, str(folders[0]), str(folders[1]), str(folders[2])]
        await pilot.press("down", "f")
        assert titles(app) == [unknown, folded, str(folders[2])]
        assert app.screen.rows.row.id == folded
        assert app.waiting_count == 4


async def test_snooze_hides_an_item_until_its_time(
    make_folder: Any, console: Any, until: Any, clock: Any, tmp_path: Path
) -> None:
    path = make_folder()
    app = console(me="server")
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await until(pilot, lambda: app.complete and titles(app) == [str(path)])
        await pilot.press("z")
        assert isinstance(app.screen, ChooseScreen)
        await pilot.press("enter")
        await until(pilot, lambda: titles(app) == [])
        assert app.waiting_count == 0
        clock.step(31 * 60)
        await pilot.press("ctrl+r")
        await until(pilot, lambda: titles(app) == [str(path)])


async def test_who_am_i_changes_what_waits_and_is_remembered(
    make_folder: Any, console: Any, until: Any, drawn: Any
) -> None:
    path = make_folder()
    app = console()
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await until(pilot, lambda: app.complete)
        assert "as nobody yet" in drawn(app)[0]
        await pilot.press("w")
        await until(pilot, lambda: isinstance(app.screen, ChooseScreen))
        await pilot.press("down", "enter")
        await until(pilot, lambda: app.who.anywhere() == "server" and titles(app) == [str(path)])
        assert "as server" in drawn(app)[0]
    again = console()
    async with again.run_test(size=(100, 30), notifications=True) as pilot:
        await until(pilot, lambda: again.complete)
        assert again.who.anywhere() == "server"


async def test_next_waiting_walks_from_anywhere_and_round(
    make_folder: Any, act: Any, console: Any, until: Any, clock: Any
) -> None:
    first, second = make_folder("first"), make_folder("second")
    act(first, "server", "proposal_submitted")
    act(second, "server", "proposal_submitted")
    app = console(me="reader")

    def here(path: Path) -> bool:
        return isinstance(app.screen, CollaborationScreen) and app.screen.path == path

    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await until(pilot, lambda: app.complete)
        await pilot.press("n")
        await until(pilot, lambda: here(first))
        await pilot.press("n")
        await until(pilot, lambda: here(second))
        await pilot.press("n")
        await until(pilot, lambda: here(first))
        await pilot.press("N")
        await until(pilot, lambda: here(second))
        await pilot.press("slash", "x", "f4")
        await until(pilot, lambda: here(first))
        await pilot.press("2")
        assert isinstance(app.screen, CollaborationsScreen)
        await pilot.press("1")
        assert here(first), "each system keeps what was open in it"


async def test_nothing_waits_is_said_not_ignored(make_folder: Any, console: Any, until: Any, drawn: Any) -> None:
    make_folder()
    app = console(me="reader")
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await until(pilot, lambda: app.complete)
        assert "Nothing waits for reader." in "\n".join(drawn(app))
        await pilot.press("n")
        await until(pilot, lambda: "nothing waits" in "\n".join(drawn(app)))


async def test_a_root_that_is_one_collaboration_opens_it(make_folder: Any, console: Any, until: Any) -> None:
    path = make_folder()
    app = console(path, me="server")
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await until(pilot, lambda: isinstance(app.screen, CollaborationScreen) and app.screen.view is not None)
        assert app.screen.path == path


async def test_a_missing_root_is_one_sentence(console: Any, until: Any, drawn: Any, tmp_path: Path) -> None:
    app = console(tmp_path / "nowhere", me="x")
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await until(pilot, lambda: app.complete)
        assert "there is no folder" in "\n".join(drawn(app))


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 36), (200, 50)])
async def test_rows_fit_every_size(
    size: tuple[int, int], make_folder: Any, act: Any, console: Any, until: Any, drawn: Callable[..., list[str]]
) -> None:
    talk = make_folder(objective="A rather long objective that says at length what has to be agreed upon by everybody")
    act(talk, "server", "proposal_submitted")
    app = console(me="reader")
    async with app.run_test(size=size, notifications=True) as pilot:
        await until(pilot, lambda: app.complete)
        for key in ("1", "2"):
            await pilot.press(key)
            await pilot.pause()
            lines = drawn(app)
            assert len(lines) == size[1]
            assert any("your turn" in line for line in lines)
            assert "A rather long" in "\n".join(lines)
            assert "? help" in lines[-1]
