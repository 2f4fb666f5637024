"""What the inbox and the list of collaborations share: rows, a filter, a line about the current row."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from core.clock import duration
from core.sanitize import inert
from core.workspace import Item
from tui.legal import Context
from tui.screens.find import FindBar
from tui.screens.frame import ConsoleScreen
from tui.widgets.glyphs import State, glyphs
from tui.widgets.rows import Column, Heading, Row, RowList

AGE = Column("age", min=9, max=9, align="right", priority=2)
STATE = Column("state", min=12, max=12)


def standing(item: Item, me: str | None) -> tuple[State, str]:
    """How a collaboration stands for this person: state and word."""
    if item.health in ("unreadable", "damaged"):
        return State.FAILED, item.health
    if item.phase == "completed":
        return State.DONE, "done"
    if item.phase == "blocked":
        return State.FAILED, "blocked"
    if me is not None and me in item.waiting_for:
        return State.MINE, "your turn"
    return (State.WAITING, "waiting") if item.waiting_for else (State.UNKNOWN, "idle")


def age(since: datetime | None, now: datetime) -> str:
    """How long ago, in the one form."""
    return duration((now - since).total_seconds()) if since is not None else ""


class Table(RowList):
    """Rows whose empty state depends on what has been read so far."""

    def set_empty(self, text: str) -> None:
        """What is shown when there are no rows."""
        if text != self._empty:
            self._empty = text
            self.refresh()


class ListScreen(ConsoleScreen):
    """A screen of rows. A subclass says what the rows are; they are replaced only when they changed."""

    COLUMNS: ClassVar[Sequence[Column]] = ()
    TITLE_WORD: ClassVar[str] = ""

    def __init__(self) -> None:
        super().__init__()
        self._last: list[Row | Heading] | None = None
        self._ticks = 0

    def body(self) -> ComposeResult:
        yield Static(Content(""), id="headline")
        yield Table(self.COLUMNS, id="rows")
        yield Static(Content(""), id="detail")
        yield FindBar("filter")

    def on_mount(self) -> None:
        self.rows.focus()
        super().on_mount()

    # What a subclass answers.

    def make_rows(self, needle: str) -> list[Row | Heading]:
        """All rows that hold `needle` (case-folded; empty for all)."""
        return []

    def headline(self) -> Text:
        """The line above the rows."""
        return Text("")

    def detail(self, id: str) -> Text:
        """What is said below about the current row."""
        return Text("")

    def empty(self) -> str:
        """What is said when there is no row."""
        return ""

    def path_of(self, id: str) -> Path | None:
        """The folder of a row."""
        return Path(id)

    # Drawing.

    @property
    def rows(self) -> Table:
        return self.query_one(Table)

    def listed(self) -> None:
        if not self.is_mounted:
            return
        needle = self.query_one(FindBar).text.strip().casefold()
        made, signs = self.make_rows(needle), glyphs(self.app)
        if made != self._last or not made:
            self._last = made
            self.rows.set_empty(
                f"Nothing here holds {signs.opening}{inert(needle)}{signs.closing}." if needle else self.empty()
            )
            self.rows.set_rows(made)
        self.query_one("#headline", Static).update(self.headline())
        self._show_detail()
        self.frame()

    def tick(self) -> None:
        self._ticks += 1
        if self._ticks % 10 == 0:
            self.listed()

    def _show_detail(self) -> None:
        row = self.rows.row
        detail = self.query_one("#detail", Static)
        # Hidden, not gone: the rows keep their place.
        detail.visible = row is not None
        detail.update(self.detail(row.id) if row is not None else Text(""))

    def context(self) -> Context:
        row = self.rows.row if self.is_mounted else None
        path = self.path_of(row.id) if row is not None else None
        app = self.console_app
        name = row.id if row is not None else None
        return Context(self.WHERE, me=self.me(), row=name, selected=path, waiting=app.waiting_count)

    @on(RowList.RowHighlighted)
    def highlighted(self, event: RowList.RowHighlighted) -> None:
        event.stop()
        self._show_detail()
        self.frame()

    @on(RowList.RowChosen)
    async def row_chosen(self, event: RowList.RowChosen) -> None:
        event.stop()
        await self.chosen(event.id)

    async def chosen(self, id: str) -> None:
        """A row was opened."""
        path = self.path_of(id)
        if path is not None:
            await self.console_app.open_folder(path)

    async def do_open(self) -> None:
        row = self.rows.row
        if row is not None:
            await self.chosen(row.id)

    def do_filter(self) -> None:
        self.query_one(FindBar).open()

    @on(FindBar.Typed)
    @on(FindBar.Closed)
    def filtered(self) -> None:
        bar = self.query_one(FindBar)
        self.listed()
        if bar.is_open:
            shown = len(self.rows.rows)
            bar.note(f"{shown} shown" if bar.text else "")
        else:
            self.rows.focus()

    @on(FindBar.Moved)
    def to_rows(self, event: FindBar.Moved) -> None:
        """Enter or an arrow in the filter: on to the rows, the filter stays."""
        self.rows.focus()

    def do_back(self) -> object:
        bar = self.query_one(FindBar)
        if bar.is_open:
            bar.action_close()
            return None
        return self.console_app.do_back()
