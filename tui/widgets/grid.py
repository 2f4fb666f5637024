"""Rows that only grow, built when they are seen: a hundred thousand cost as little as ten (docs/specs/pitfalls.md)."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text
from textual.message import Message

from tui.widgets.lines import LineView

Draw = Callable[[int, int], Text]


class Grid(LineView):
    """Row numbers with a cursor; `draw(index, width)` says what a row looks like now."""

    class Moved(Message):
        """The cursor stands on another row."""

        def __init__(self, grid: Grid, index: int) -> None:
            super().__init__()
            self.grid, self.index = grid, index

        @property
        def control(self) -> Grid:
            return self.grid

    def __init__(self, empty: str = "", *, id: str | None = None) -> None:
        super().__init__(cursor=True, empty=empty, id=id)
        self._count = 0
        self._draw: Draw = lambda index, width: Text("", end="")

    def show(self, count: int, draw: Draw) -> None:
        """So many rows, drawn like this, from now on. Whoever stands on the last row stays on the last."""
        at_end = self.cursor == self._count - 1

        def swap() -> None:
            self._count, self._draw = count, draw

        self.replace(swap)
        if at_end and count:
            self.move_cursor(count - 1)

    def set_empty(self, text: str) -> None:
        """What is shown when there are no rows."""
        if text != self._empty:
            self._empty = text
            self.refresh()

    @property
    def line_count(self) -> int:
        return self._count

    def line_at(self, index: int, width: int) -> Text:
        return self._draw(index, width)

    def plain_at(self, index: int) -> str:
        return self._draw(index, 400).plain

    def id_at(self, index: int) -> str | None:
        return str(index)

    def index_of(self, id: str) -> int | None:
        return int(id) if int(id) < self._count else None

    def selectable(self, index: int) -> bool:
        return True

    def cursor_moved(self) -> None:
        self.post_message(self.Moved(self, self.cursor))
