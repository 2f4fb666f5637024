"""A list with columns, groups and a cursor: inbox, folders, the choices of a form (docs/specs/console.md §2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from rich.cells import cell_len
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.message import Message

from core.sanitize import inert
from tui.widgets.glyphs import Role, State
from tui.widgets.lines import LineView
from tui.widgets.text import fit, pad

GAP = 2
"""Cells between two columns."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One field of a row. A `str` is data and is made inert; a state adds its glyph before the text, in its colour."""

    text: str | Text
    state: State | None = None
    role: Role | None = None

    @property
    def plain(self) -> str:
        return self.text.plain if isinstance(self.text, Text) else inert(self.text)


@dataclass(frozen=True, slots=True)
class Column:
    """How wide a field may be, in cells. `grow` shares what is left over; of the columns that do not fit, the one
    with the highest `priority` number vanishes first, and 0 never does."""

    key: str
    min: int = 1
    max: int | None = None
    grow: int = 0
    align: Literal["left", "right"] = "left"
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """A row that can be chosen; `dim` greys all of its text that has no state."""

    id: str
    cells: tuple[Cell, ...]
    dim: bool = False


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of a group: muted, not selectable, set apart by a blank line."""

    text: str
    count: int | None = None


class RowList(LineView):
    """Rows in aligned columns. Widths follow the widest field and change only when rows or the screen do."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "choose", "open", show=False, id="rows.choose")]

    class RowChosen(Message):
        """A row was chosen with Enter or the mouse."""

        def __init__(self, list: RowList, id: str) -> None:
            super().__init__()
            self.list, self.id = list, id

        @property
        def control(self) -> RowList:
            return self.list

    class RowHighlighted(Message):
        """The cursor stands on another row."""

        def __init__(self, list: RowList, id: str) -> None:
            super().__init__()
            self.list, self.id = list, id

        @property
        def control(self) -> RowList:
            return self.list

    def __init__(
        self,
        columns: Sequence[Column],
        *,
        empty: str | Text = "",
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(cursor=True, empty=empty, name=name, id=id, classes=classes)
        self.columns = tuple(columns)
        self._rows: list[Row | Heading | None] = []
        self._index: dict[str, int] = {}
        self._natural: list[int] = []
        self._layout: tuple[int, list[int]] = (-1, [])

    def set_rows(self, rows: Sequence[Row | Heading]) -> None:
        """Replace all rows; the cursor stays on its row, which stays where it is on the screen."""
        made: list[Row | Heading | None] = []
        for row in rows:
            if isinstance(row, Heading) and made:
                made.append(None)
            made.append(row)

        real = [row for row in made if isinstance(row, Row)]
        same = real == self.rows

        def swap() -> None:
            self._rows = made
            self._index = {row.id: at for at, row in enumerate(made) if isinstance(row, Row)}
            if not same:
                self._natural = [
                    max((self._cells(row, at) for row in real), default=0) for at in range(len(self.columns))
                ]
                self._layout = (-1, [])

        self.replace(swap)

    def _cells(self, row: Row, column: int) -> int:
        if column >= len(row.cells):
            return 0
        cell = row.cells[column]
        plain = cell.plain
        return cell_len(plain[:512]) + (0 if cell.state is None else 2 if plain else 1)

    @property
    def rows(self) -> list[Row]:
        """The rows without their headings."""
        return [row for row in self._rows if isinstance(row, Row)]

    @property
    def row(self) -> Row | None:
        """The current row."""
        at = self._rows[self.cursor] if 0 <= self.cursor < len(self._rows) else None
        return at if isinstance(at, Row) else None

    @property
    def line_count(self) -> int:
        return len(self._rows)

    def id_at(self, index: int) -> str | None:
        row = self._rows[index]
        return row.id if isinstance(row, Row) else None

    def index_of(self, id: str) -> int | None:
        return self._index.get(id)

    def selectable(self, index: int) -> bool:
        return isinstance(self._rows[index], Row)

    def plain_at(self, index: int) -> str:
        row = self._rows[index]
        if isinstance(row, Row):
            return "  ".join(cell.plain for cell in row.cells)
        return "" if row is None else inert(row.text)

    def widths(self, room: int) -> list[int]:
        """Cells of each column in `room` cells; 0 for a column that vanished."""
        if self._layout[0] == room:
            return self._layout[1]
        shown = [at for at, width in enumerate(self._natural) if width]
        least = {at: min(self.columns[at].min, max(1, self._natural[at])) for at in shown}
        while shown and sum(least[at] for at in shown) + GAP * (len(shown) - 1) > room:
            worst = max(shown, key=lambda at: (self.columns[at].priority, at))
            if self.columns[worst].priority <= 0:
                break
            shown.remove(worst)
        widths = [0] * len(self.columns)
        left = room - GAP * (len(shown) - 1) - sum(least[at] for at in shown)
        for at in sorted(shown, key=lambda at: (self.columns[at].priority, self.columns[at].grow > 0, at)):
            column = self.columns[at]
            wanted = min(self._natural[at], column.max if column.max is not None else self._natural[at])
            more = max(0, min(left, wanted - least[at]))
            widths[at] = least[at] + more
            left -= more
        growing = [at for at in shown if self.columns[at].grow]
        total = sum(self.columns[at].grow for at in growing)
        spare = max(0, left)
        for at in growing:
            widths[at] += spare * self.columns[at].grow // total
        self._layout = (room, widths)
        return widths

    def line_at(self, index: int, width: int) -> Text:
        row = self._rows[index]
        if row is None:
            return Text("", end="")
        if isinstance(row, Heading):
            count = "" if row.count is None else f"  {row.count}"
            return fit(Text(f"{inert(row.text)}{count}", style=self.colours.muted, end=""), width)
        return self._row_text(row, self.widths(width))

    def _row_text(self, row: Row, widths: Sequence[int]) -> Text:
        colours = self.colours
        made = Text(end="", no_wrap=True)
        for at, size in enumerate(widths):
            if not size:
                continue
            if made.plain:
                made.append(" " * GAP)
            cell = row.cells[at] if at < len(row.cells) else Cell("")
            role = cell.role or ("muted" if row.dim else "text")
            style = colours.role(role)
            if cell.state is not None:
                style = colours.state(cell.state)
            glyph = "" if cell.state is None else self.signs.state(cell.state)
            room = size - (0 if not glyph else 2 if cell.plain else 1)
            right = self.columns[at].align == "right"
            if isinstance(cell.text, Text):
                body = fit(cell.text, room, self.signs.cut)
                fill = " " * max(0, room - cell_len(body.plain))
            else:
                body = Text(pad(inert(cell.text[: 4 * size + 64]), room, self.columns[at].align), style=style)
                fill = ""
            if glyph:
                made.append(glyph if not room else f"{glyph} ", style)
            if right:
                made.append(fill)
            made.append_text(body)
            if not right:
                made.append(fill)
        made.rstrip()
        return made

    def cursor_moved(self) -> None:
        if self.row is not None:
            self.post_message(self.RowHighlighted(self, self.row.id))

    def action_choose(self) -> None:
        if self.row is not None:
            self.choose(self.cursor)

    def choose(self, index: int) -> None:
        id = self.id_at(index)
        if id is not None:
            self.post_message(self.RowChosen(self, id))
