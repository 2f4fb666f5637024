"""Rows with a piece of a line of time in one of their columns (docs/specs/console.md §2, Delegations)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rich.text import Text

from core.delegation.axis import Axis, Span, cells
from tui.screens.listing import Table
from tui.widgets.glyphs import State
from tui.widgets.rows import Cell, Column, Row

ROOM_OF_A_CUT = 5
"""Cells that a line must have for each cut to be drawn: below that they would be all there is to see."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A delegation on the line of its plan."""

    axis: Axis
    span: Span
    state: State


class BarTable(Table):
    """A table whose column `bar` is drawn in the width that it gets."""

    def __init__(self, columns: Sequence[Column], *, id: str | None = None) -> None:
        super().__init__(columns, id=id)
        self._at = next(at for at, column in enumerate(columns) if column.key == "bar")
        self._bars: Mapping[str, Bar] = {}

    def set_bars(self, bars: Mapping[str, Bar]) -> None:
        """The bars by row; the rows themselves stay."""
        self._bars = bars
        self._strips.clear()
        self.refresh()

    def _row_text(self, row: Row, widths: Sequence[int]) -> Text:
        bar = self._bars.get(row.id)
        width = widths[self._at] if self._at < len(widths) else 0
        if bar is None or width <= 0:
            return super()._row_text(row, widths)
        drawn = list(row.cells)
        drawn[self._at] = Cell(self.drawn(bar, width))
        return super()._row_text(replace(row, cells=tuple(drawn)), widths)

    def drawn(self, bar: Bar, width: int) -> Text:
        """The bar in so many cells: `━` while it ran, `▸` where it still runs, `┊` where idle time is cut out."""
        colours, plain = self.colours, self.signs.ascii
        line, cut = ("=", ":") if plain else ("━", "┊")
        start, length = cells(bar.axis, bar.span, width)
        cuts = {min(width - 1, int(place * width)) for place in bar.axis.breaks}
        if len(cuts) * ROOM_OF_A_CUT > width:
            cuts = set()
        made = Text(end="", no_wrap=True)
        style = colours.state(bar.state)
        for at in range(width):
            if start <= at < start + length:
                last = at == start + length - 1
                sign = self.signs.state(State.LIVE) if last and bar.span.end is None else cut if at in cuts else line
                made.append(sign, style)
            elif at in cuts:
                made.append(cut, colours.border)
            else:
                made.append(" ")
        return made
