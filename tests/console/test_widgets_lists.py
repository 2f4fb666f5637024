"""Rows, log, rail and panels."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.cells import cell_len
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.geometry import Size

from core.acp.model import Event
from core.acp.model import State as AcpState
from core.acp.view import Gate, NextAction, Person, phase_path
from core.finding import error, warning
from tests.console.hosts import HOSTILE, SIZES, is_inert, listen, running
from tui.screens.panes import MANY, FindingsPane
from tui.widgets.glyphs import State
from tui.widgets.log import LogView, describe, entries
from tui.widgets.panels import GatesPanel, NextPanel, WaitingPanel
from tui.widgets.rail import PhaseRail
from tui.widgets.rows import Cell, Column, Heading, Row, RowList

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def event(seq: int, name: str = "review_submitted", who: str = "reader", **more: Any) -> Event:
    raw = {
        "seq": seq,
        "from": who,
        "event": name,
        "at": "2026-03-01T09:30:00Z",
        "summary": f"summary {seq}",
        "reply_to": seq - 1,
        **more,
    }
    return Event.read(raw, seq)


def columns() -> list[Column]:
    return [
        Column("kind", min=11),
        Column("title", min=10, grow=1),
        Column("age", min=8, align="right", priority=1),
        Column("why", min=10, max=20, priority=2),
    ]


def row(id: str, title: str = "talk", state: State = State.MINE) -> Row:
    return Row(id, (Cell("your turn", state), Cell(title), Cell("2 h 10 m"), Cell("listed in waitingFor")))


async def test_rows_stand_in_columns_and_the_least_important_vanish() -> None:
    view = RowList(columns())
    async with running(view, (80, 10)) as (app, pilot):
        view.set_rows([row("a", "short"), row("b", "a longer title than the other")])
        await pilot.pause()
        first, second = app.rows()[:2]
        assert first.index("2 h 10 m") == second.index("2 h 10 m")
        assert "listed in waiting" in first
        await pilot.resize_terminal(44, 10)
        await pilot.pause()
        first = app.rows()[0]
        assert "2 h 10 m" in first
        assert "listed" not in first
        await pilot.resize_terminal(26, 10)
        await pilot.pause()
        first, second = app.rows()[:2]
        assert "2 h" not in first
        assert "● your turn  short" in first
        assert "…" in second


@pytest.mark.parametrize("size", SIZES)
async def test_hostile_rows_are_inert(size: tuple[int, int]) -> None:
    view = RowList(columns(), empty=HOSTILE[0])
    async with running(view, size) as (app, pilot):
        view.focus()
        view.set_rows([Heading(HOSTILE[1], 3), *(row(text, text) for text in HOSTILE), row("t", "x" * 100_000)])
        for _ in range(4):
            await pilot.press("pagedown")
            await pilot.pause()
            assert all(is_inert(line) and cell_len(line) == size[0] for line in app.rows())


async def test_rows_are_chosen_by_key_and_mouse_and_headings_are_not() -> None:
    view = RowList(columns())
    heard = listen(view, RowList.RowChosen, RowList.RowHighlighted)
    async with running(view) as (app, pilot):
        view.focus()
        view.set_rows([Heading("Decide", 2), row("a"), row("b"), Heading("Know"), row("c", state=State.WAITING)])
        await pilot.press("down", "down", "enter")
        assert app.rows()[0].strip() == "Decide  2"
        assert app.rows()[3].strip() == ""
        await pilot.click(view, offset=(4, 0))
        await pilot.click(view, offset=(4, 3))
        await pilot.click(view, offset=(4, 1))
        await pilot.pause()
        names = [
            (type(item).__name__, item.id)
            for item in heard
            if isinstance(item, RowList.RowChosen | RowList.RowHighlighted)
        ]
        assert names == [
            ("RowHighlighted", "a"),
            ("RowHighlighted", "b"),
            ("RowHighlighted", "c"),
            ("RowChosen", "c"),
            ("RowHighlighted", "a"),
        ]
        assert view.row is not None
        assert view.row.id == "a"
        assert [item.id for item in view.rows] == ["a", "b", "c"]


async def test_the_current_row_stays_when_rows_are_sorted_anew() -> None:
    view = RowList(columns())
    async with running(view, (80, 12)) as (_, pilot):
        view.focus()
        view.set_rows([row(str(number)) for number in range(50)])
        await pilot.press(*["down"] * 20)
        place = view.cursor - view.scroll_offset.y
        view.set_rows([row(str(number)) for number in reversed(range(50))])
        await pilot.pause()
        assert view.row is not None
        assert view.row.id == "20"
        assert view.cursor - view.scroll_offset.y == place


async def test_styled_cells_are_cut_and_aligned_too() -> None:
    view = RowList([Column("a", min=4, max=6), Column("b", min=6, align="right")])
    async with running(view, (40, 5)) as (app, pilot):
        view.set_rows(
            [Row("1", (Cell(Text("abcdefgh", "bold")), Cell(Text("12")))), Row("2", (Cell("x"), Cell("123456")))]
        )
        await pilot.pause()
        assert app.rows()[0].rstrip() == "▌ abcde…      12"
        assert app.rows()[1].rstrip() == "  x       123456"


# The log.


async def test_the_log_is_one_aligned_row_an_event() -> None:
    view = LogView(zone=UTC)
    async with running(view, (100, 10)) as (app, pilot):
        view.show([event(9, who="owner"), event(10, "proposal_submitted"), event(11, reply_to=None)])
        await pilot.pause()
        rows = [line.rstrip() for line in app.rows()[:3]]
        assert rows[0].startswith("    9   09:30  owner   review_submitted    “summary 9”")
        assert {line.index("“") for line in rows} == {rows[0].index("“")}
        assert rows[1].endswith("↩ 9")
        assert "↩" not in rows[2]
        assert rows[2].startswith("▌"), "the cursor is at the end"


async def test_the_log_follows_at_its_end_and_counts_elsewhere() -> None:
    view = LogView(zone=UTC)
    heard = listen(view, LogView.NewEvents, LogView.EventSelected)
    async with running(view, (80, 8)) as (app, pilot):
        view.focus()
        view.show([event(number) for number in range(1, 21)])
        await pilot.pause()
        assert view.selected is not None
        assert view.selected.seq == 20
        view.show([event(number) for number in range(1, 23)])
        await pilot.pause()
        assert view.selected.seq == 22
        assert (view.new_events, view.notice.plain) == (0, "")
        await pilot.press("up", "up", "up")
        view.show([event(number) for number in range(1, 26)])
        await pilot.pause()
        assert view.selected.seq == 19
        assert (view.new_events, view.notice.plain) == (3, "3 new events")
        await pilot.press("end")
        await pilot.pause()
        assert view.new_events == 0
        counts = [item.count for item in heard if isinstance(item, LogView.NewEvents)]
        assert counts == [3, 0]
        await pilot.press("enter")
        await pilot.pause()
        last = [item for item in heard if isinstance(item, LogView.EventSelected)][-1]
        assert (last.seq, last.chosen) == (25, True)
        assert view.select(7)
        assert not view.select(99)
        assert "▌" in app.shown()


async def test_the_log_is_filtered_by_name_participant_and_text() -> None:
    view = LogView(zone=UTC)
    async with running(view) as (_, pilot):
        view.show(
            [event(1, "initialized", "owner"), event(2, "proposal_submitted", "owner"), event(3), event(4, "blocked")]
        )
        view.filter(participant="owner")
        assert view.line_count == 2
        view.filter(event="blocked")
        assert view.line_count == 1
        view.filter(text="SUMMARY 3")
        assert [view.plain_at(index) for index in range(view.line_count)] == ["3 reader review_submitted summary 3"]
        assert view.filtered
        view.filter()
        await pilot.pause()
        assert (view.line_count, view.filtered) == (4, False)


async def test_damaged_lines_and_findings_are_marked() -> None:
    found = [
        error("log_damaged", "events.jsonl line 2: invalid JSON: \x1b[31m", None, "events.jsonl#line 2"),
        error("event_time_back", "seq 3: at must not be earlier", None, "events.jsonl#line 3"),
        warning("other", "elsewhere", None, "review.md#line 3"),
    ]
    view = LogView(zone=UTC)
    async with running(view, (80, 8)) as (app, pilot):
        view.show([event(1), event(3)], found)
        await pilot.pause()
        rows = app.rows()
        assert "▲ damaged  line 2  invalid JSON: ␛[31m" in rows[1]
        assert " 3 ▲ 09:30" in rows[2]
        assert "▲" not in rows[0]
        assert view.details()[-1] == "error: seq 3: at must not be earlier [event_time_back]"
        view.focus()
        await pilot.press("up")
        assert view.selected is None
        assert view.details()[0] == "line 2 is no event"


@pytest.mark.parametrize("size", SIZES)
async def test_hostile_events_are_inert(size: tuple[int, int]) -> None:
    events = [
        Event.read(
            {"seq": at, "from": text, "event": text, "at": text, "summary": text, "doc": text, text: text}, at + 1
        )
        for at, text in enumerate(HOSTILE)
    ]
    events.append(Event.read({"seq": "1", "from": None, "event": [], "at": 5, "summary": {"a": 1}}, 50))
    events.append(event(3, summary="x" * 200_000, at="9999-12-31T23:59:59Z"))
    view = LogView(zone=UTC)
    async with running(view, size) as (app, pilot):
        view.focus()
        view.show(events)
        for key in ("home", "pagedown", "end"):
            await pilot.press(key)
            await pilot.pause()
            assert all(is_inert(line) and cell_len(line) == size[0] for line in app.rows())
        for item in events:
            assert all(is_inert(line) for line in describe(item))


async def test_rows_come_and_go_as_the_file_has_them() -> None:
    """Damaged lines stand between the events, a filter picks among both, and a longer log adds to what was picked."""
    events = [event(number, who="ana" if number % 2 else "bob") for number in range(1, 9)]
    events = [one._replace(line=one.line + (one.line > 3) + (one.line > 6)) for one in events]
    torn = [
        error("log_damaged", f"events.jsonl line {line}: torn", None, f"events.jsonl#line {line}") for line in (4, 8)
    ]
    about = [error("event_time_back", "seq 2: back", None, "events.jsonl#line 2")]
    view = LogView(zone=UTC)
    async with running(view, (80, 20)) as (_, pilot):
        view.show(events[:6], [*torn[:1], *about])
        lines = [view.id_at(index) for index in range(view.line_count)]
        assert lines == ["1", "2", "3", "4", "5", "6", "7"]
        assert [view.index_of(str(line)) for line in range(1, 9)] == [0, 1, 2, 3, 4, 5, 6, None]
        assert view.select(4)
        assert (view.cursor, view.index) == (4, 3)
        view.move_cursor(3)
        assert (view.selected, view.index, view.entry.findings) == (None, None, (torn[0],))
        view.move_to_event(1)
        assert view.entry.findings == (about[0],)
        view.filter(participant="ana")
        assert [view.plain_at(index).split()[0] for index in range(view.line_count)] == ["1", "3", "5"]
        assert not view.select(2), "it is hidden"
        view.follow()
        view.show(events[:7], [*torn[:1], *about])
        assert view.selected.seq == 7, "the longer log adds what the filter lets through"
        view.show(events, [*torn, *about])
        assert view.line_count == 4
        assert view.selected.seq == 7
        assert view.index == 6
        view.filter()
        assert view.line_count == 10
        assert view.selected.seq == 7
        await pilot.pause()
    assert [entry.line for entry in entries(events, torn)] == list(range(1, 11))
    assert [entry.damaged for entry in entries(events, torn)].count(True) == 2
    with pytest.raises(IndexError):
        entries(events)[8]


async def test_the_rows_of_many_findings_are_made_once() -> None:
    pane = FindingsPane()
    found = tuple(error("log_seq", f"line {number}", None, f"events.jsonl#line {number}") for number in range(3000))
    async with running(pane, (80, 12)) as (app, pilot):
        pane.show(found)
        rows = pane.query_one(RowList)
        first = rows.rows
        assert len(first) == MANY
        assert rows.plain_at(rows.line_count - 1) == f"and {3000 - MANY} more; collab validate lists every one"
        pane.show((*found, error("log_seq", "line 3000", None, "events.jsonl#line 3000")))
        assert all(one is other for one, other in zip(rows.rows, first, strict=True))
        assert rows.plain_at(rows.line_count - 1) == f"and {3001 - MANY} more; collab validate lists every one"
        pane.show(found[1:3])
        await pilot.pause()
        assert [row.cells[1].plain for row in rows.rows] == ["line 1", "line 2"]
        assert "line 2" in app.shown()


async def test_a_hundred_thousand_events_scroll() -> None:
    view = LogView(zone=UTC)
    async with running(view) as (app, pilot):
        view.focus()
        view.show([event(number) for number in range(1, 100_001)])
        await pilot.press("home", "pagedown", "end", "up")
        await pilot.pause()
        assert view.selected is not None
        assert view.selected.seq == 99_999
        assert "summary 100000" in app.shown()


def test_details_name_foreign_fields_and_the_absolute_time() -> None:
    lines = describe(event(4, doc="review.md", mood="good", nested={"a": [1]}, role="primary"))
    assert "at: 2026-03-01T09:30:00Z" in lines
    assert "document: review.md" in lines
    assert "mood: good (not part of the protocol)" in lines
    assert 'nested: {"a": [1]} (not part of the protocol)' in lines
    long = describe(event(1, summary="y" * 5000))
    assert any(line.endswith("… (5000 characters)") for line in long)
    assert [entry.line for entry in entries([event(1), event(3)], [error("x", "c", None, "events.jsonl#line 2")])] == [
        1,
        2,
        3,
    ]


# The rail and the panels.


def rail_text(rail: PhaseRail, width: int) -> str:
    return rail.rail(width).plain


async def test_the_rail_keeps_the_current_word_at_every_width() -> None:
    rail = PhaseRail()
    async with running(rail, (120, 5)) as (app, pilot):
        rail.show(phase_path(AcpState("decision_review")), State.MINE)
        await pilot.pause()
        whole = "✓ drafting ──✓ reviewing ──✓ revising ──● decision_review ──○ readiness_check ──○ completed"
        assert app.rows()[0].strip() == whole
        assert rail_text(rail, 100) == whole
        for width in range(18, 100):
            text = rail_text(rail, width)
            assert cell_len(text) <= width
            assert "decision_review" in text or "…" in text
        assert rail_text(rail, 60).count("○") == 2
        app.ascii_glyphs = True
        assert rail_text(rail, 100).isascii()


async def test_the_rail_shows_a_block_in_its_word_and_colour() -> None:
    rail = PhaseRail()
    async with running(rail, (60, 5)) as (app, pilot):
        rail.show(phase_path(AcpState("blocked")))
        await pilot.pause()
        assert app.rows()[0].strip() == "✓ drafting ──✕ blocked"
        strip = app.screen._compositor.render_strips()[0]
        colours = {part.text.strip(): part.style.color for part in strip if part.style}
        assert colours["✕"] == colours["blocked"] != colours["drafting"]
        rail.show(phase_path(AcpState("completed")))
        assert rail_text(rail, 200).count("✓") == 6


class Side(Vertical):
    DEFAULT_CSS = "Side { width: 32; height: auto; }"

    def compose(self) -> ComposeResult:
        yield NextPanel()
        yield WaitingPanel()
        yield GatesPanel()


def gate(state: Any, text: str) -> Gate:
    return Gate(state, text, "readiness.md")


async def test_panels_say_what_is_next_who_is_waited_for_and_which_gates_stand_open() -> None:
    async with running(Side(), (40, 40)) as (app, pilot):
        keys = [("r", "write a review"), ("b", "block")]
        app.query_one(NextPanel).show(
            NextAction("append a structured review to review.md.", "review_submitted", None), keys
        )
        people = [
            Person("reader", False, True, NOW - timedelta(hours=2, minutes=10), ""),
            Person("security", False, False, None, "review_submitted"),
            Person("server", True, False, None, ""),
        ]
        app.query_one(WaitingPanel).show(people, "reader", NOW)
        app.query_one(GatesPanel).show(
            [gate("failed", "1 unresolved"), gate("done", "reasons present"), gate("open", "Ready")]
        )
        await pilot.pause()
        rows = [line.rstrip() for line in app.rows()]
        assert rows[:2] == [" Next", " ● Your turn: review"]
        assert " r  write a review" in rows
        assert " ● reader    2 h 10 m" in rows
        assert " ✓ security  reviewed" in rows
        assert " ○ server    owner" in rows
        assert rows[-1 - rows[::-1].index(" Gates") :][:4] == [
            " Gates",
            " ✕ 1 unresolved",
            " ✓ reasons present",
            " ○ Ready",
        ]
        app.query_one(NextPanel).show(NextAction("wait for the owner.", None, None))
        await pilot.pause()
        assert "Your turn" not in app.shown()


async def test_hostile_names_and_gates_are_inert_and_wrapped() -> None:
    async with running(Side(), (34, 80)) as (app, pilot):
        app.query_one(NextPanel).show(NextAction(HOSTILE[0] * 9, "x\x1b", None), [(text, text) for text in HOSTILE[:3]])
        app.query_one(WaitingPanel).show([Person(text, False, True, None, text) for text in HOSTILE], None, NOW)
        app.query_one(GatesPanel).show([gate("open", text * 5) for text in HOSTILE])
        await pilot.pause()
        assert all(is_inert(line) and cell_len(line) == 34 for line in app.rows())
        height = app.query_one(GatesPanel).get_content_height(Size(32, 80), Size(32, 80), 30)
        assert height > len(HOSTILE) + 1
