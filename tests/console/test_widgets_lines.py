"""The base of every viewer: keys, cursor, search, hostile and huge content."""

from __future__ import annotations

from typing import Any

import pytest
from rich.cells import cell_len
from rich.text import Text
from textual.pilot import Pilot

from tests.console.hosts import HOSTILE, SIZES, Host, is_inert, listen, running, settle
from tui.widgets.lines import Line, LineView
from tui.widgets.search import FIND_AT_ONCE


def numbered(count: int, first: int = 0) -> list[Line]:
    return [Line(f"line {number}", str(number)) for number in range(first, first + count)]


async def press(pilot: Pilot[object], *keys: str) -> None:
    await pilot.press(*keys)
    await pilot.pause()


async def test_a_million_lines_open_and_answer_to_keys() -> None:
    lines = [f"line number {number}" for number in range(1_000_000)]
    view = LineView(lines)
    async with running(view) as (app, pilot):
        view.focus()
        assert "line number 0" in app.rows()[0]
        await press(pilot, "end")
        assert "line number 999999" in app.rows()[-1]
        await press(pilot, "k", "pageup")
        assert "line number 999952" in app.rows()[0]
        await press(pilot, "home", "j", "pagedown")
        assert "line number 24" in app.rows()[0]


async def test_a_million_lines_are_searched_between_other_events() -> None:
    view = LineView([f"line number {number}" for number in range(1_000_000)])
    heard = listen(view, LineView.Found)
    async with running(view) as (app, pilot):
        view.find("number 999999")
        assert view.matches == 0, "the key returns before the whole text is searched"
        await settle(pilot)
        assert view.matches == 1
        assert "line number 999999" in app.shown()
        assert [(item.count, item.done) for item in heard if isinstance(item, LineView.Found)][-1] == (1, True)
        assert FIND_AT_ONCE < 1_000_000


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", ["str", "text"])
async def test_hostile_lines_are_inert_and_fit(size: tuple[int, int], kind: str) -> None:
    lines = [text if kind == "str" else Text(text) for text in HOSTILE * 3]
    lines += ["x" * 5000, "界" * 5000, "\x1b" * 5000]
    view = LineView(lines, cursor=True)
    async with running(view, size) as (app, pilot):
        view.focus()
        for key in ("down", "end", "pageup", "home"):
            await press(pilot, key)
            for row in app.rows():
                assert is_inert(row)
                assert cell_len(row) == size[0]
        view.find("[/")
        await settle(pilot)
        assert view.matches == 3 * sum("[/" in text for text in HOSTILE)
        assert not app.links()


async def test_long_text_is_cut_at_its_end_by_cells() -> None:
    view = LineView(["界" * 40, "a" * 80])
    async with running(view, (21, 5)) as (app, _):
        first, second = app.rows()[:2]
        assert first.rstrip() == "  " + "界" * 8 + "…"
        assert second.rstrip() == "  " + "a" * 16 + "…"


async def test_the_cursor_skips_what_cannot_be_chosen_and_says_where_it_is() -> None:
    lines: list[Line] = [Line("A", None, False), *numbered(3), Line("B", None, False), *numbered(3, 3)]
    view = LineView(lines, cursor=True)
    heard = listen(view, LineView.CursorMoved)
    async with running(view) as (app, pilot):
        view.focus()
        assert view.cursor_id == "0"
        await press(pilot, "down", "down", "down")
        assert view.cursor_id == "3"
        await press(pilot, "up")
        assert view.cursor_id == "2"
        await press(pilot, "home", "up")
        assert (view.cursor, view.scroll_offset.y) == (1, 0)
        await press(pilot, "G")
        assert view.cursor_id == "5"
        ids = [item.id for item in heard if isinstance(item, LineView.CursorMoved)]
        assert ids == ["1", "2", "3", "2", "0", "5"]
        assert app.rows()[7].startswith("▌ line 5")


async def test_a_row_stays_where_it_is_when_lines_come_and_go() -> None:
    view = LineView(numbered(100), cursor=True)
    async with running(view) as (_, pilot):
        view.focus()
        await press(pilot, "pagedown", "pagedown", "down", "down", "up")
        assert view.cursor_id is not None
        kept, place = view.cursor_id, view.cursor - view.scroll_offset.y
        view.set_lines([*[Line(f"new {n}", f"n{n}") for n in range(7)], *numbered(100)])
        await pilot.pause()
        assert (view.cursor_id, view.cursor - view.scroll_offset.y) == (kept, place)
        view.set_lines(numbered(100 - int(kept), int(kept)))
        await pilot.pause()
        assert (view.cursor_id, view.cursor) == (kept, 0)
        view.set_lines([Line("other", "other")])
        await pilot.pause()
        assert view.cursor_id == "other"
        view.set_lines([])
        assert (view.cursor, view.cursor_id) == (-1, None)


async def test_search_goes_round_both_ways_and_survives_other_lines() -> None:
    view = LineView([f"{'needle' if number % 10 == 3 else 'hay'} {number}" for number in range(100)])
    heard = listen(view, LineView.Found)
    async with running(view) as (app, pilot):
        assert view.find("NEEDLE") == 10
        view.find_next()
        view.find_previous()
        view.find_previous()
        await pilot.pause()
        assert "needle 93" in app.shown()
        view.find_next()
        await pilot.pause()
        assert "needle 3" in app.shown()
        found = [(item.count, item.current) for item in heard if isinstance(item, LineView.Found)]
        assert found == [(10, 1), (10, 2), (10, 1), (10, 10), (10, 1)]
        view.set_lines(["needle", *[f"hay {number}" for number in range(50)]])
        assert view.matches == 1
        view.clear_find()
        assert (view.matches, view.needle) == (0, "")
        assert view.find("(") == 0
        assert view.find("") == 0


async def test_matches_are_marked_and_the_shown_one_differently() -> None:
    view = LineView(["one needle here", "two needle needle"])
    async with running(view) as (app, pilot):
        view.find("needle")
        await pilot.pause()
        strips = app.screen._compositor.render_strips()
        marked = [
            {part.style.bgcolor.triplet.hex for part in strip if part.text == "needle" and part.style.bgcolor}
            for strip in strips[:2]
        ]
        assert len(marked[0]) == len(marked[1]) == 1
        assert marked[0] != marked[1]


async def test_mouse_chooses_and_scrolls() -> None:
    chosen: list[int] = []

    class Choosing(LineView):
        def choose(self, index: int) -> None:
            chosen.append(index)

    view = Choosing(numbered(100), cursor=True)
    async with running(view) as (_, pilot):
        await pilot.click(view, offset=(5, 4))
        assert (view.cursor, chosen) == (4, [])
        await pilot.pause()
        await pilot.click(view, offset=(5, 4))
        assert chosen == [4]
        await pilot._post_mouse_events([__import__("textual.events").events.MouseScrollDown], view)
        await pilot.pause()
        assert view.scroll_offset.y > 0
        assert view.cursor == 4


@pytest.mark.parametrize("size", SIZES)
async def test_an_empty_view_says_what_would_be_here(size: tuple[int, int]) -> None:
    view = LineView(empty="Nothing [/] here \x1b[0m yet.\nPress a to add the first one, which takes a moment or two.")
    async with running(view, size) as (app, pilot):
        view.focus()
        await press(pilot, "down", "up", "pagedown", "end", "home")
        assert "Nothing [/] here ␛[0m yet." in app.shown()
        assert "Press a" in app.shown()


async def test_selected_text_is_what_is_shown() -> None:
    view = LineView(["alpha \x1b beta", "gamma", "delta"])
    async with running(view) as (app, pilot):
        view.text_select_all()
        await pilot.pause()
        assert app.screen.get_selected_text() == "alpha ␛ beta\ngamma\ndelta"


async def test_without_colour_the_cursor_row_shows_by_mark_and_weight() -> None:
    view = LineView(numbered(3), cursor=True)
    async with running(view) as (app, _):
        assert isinstance(app, Host)
        app.no_color = True
        view._strips.clear()
        view.refresh()
        view.focus()
        row: Any = app.screen._compositor.render_strips()[0]
        assert "".join(part.text for part in row).startswith("▌ line 0")
        assert any(part.style.bold for part in row if part.text.strip() == "line 0")
