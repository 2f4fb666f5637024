"""One line of tabs: the current one stands out by weight, colour and underline; a click or `<` `>` changes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text
from textual import events
from textual.message import Message
from textual.widget import Widget

from core.sanitize import cells
from tui.widgets.glyphs import Role, glyphs, palette


@dataclass(frozen=True, slots=True)
class Tab:
    """A tab; `short` is its name where there is little room, `mark` a count or sign behind it."""

    id: str
    name: str
    short: str
    mark: str = ""
    role: Role = "muted"


class TabStrip(Widget):
    """Names of the tabs; what does not fit is shortened, then scrolled so that the current one is seen."""

    class Changed(Message):
        """A tab was clicked."""

        def __init__(self, id: str) -> None:
            super().__init__()
            self.id = id

    def __init__(self) -> None:
        super().__init__(id="tabs")
        self._tabs: tuple[Tab, ...] = ()
        self._current = ""
        self._places: list[tuple[int, int, str]] = []

    def show(self, tabs: Sequence[Tab], current: str) -> None:
        """Redraw when something changed."""
        if (tuple(tabs), current) != (self._tabs, self._current):
            self._tabs, self._current = tuple(tabs), current
            self.refresh()

    def render(self) -> Text:
        width = self.size.width
        for short, gap in ((False, 3), (False, 2), (True, 2), (True, 1)):
            if self._width(self._tabs, short, gap) <= width:
                return self._draw(self._tabs, short, gap)
        return self._window(width)

    def _width(self, tabs: Sequence[Tab], short: bool, gap: int) -> int:
        return sum(cells(_label(tab, short)) for tab in tabs) + gap * max(0, len(tabs) - 1)

    def _draw(self, tabs: Sequence[Tab], short: bool, gap: int, before: str = "", after: str = "") -> Text:
        colours = palette(self.app)
        text = Text.assemble((before, colours.muted), no_wrap=True, end="")
        self._places = []
        for index, tab in enumerate(tabs):
            if index:
                text.append(" " * gap)
            start = text.cell_len
            name = tab.short if short else tab.name
            current = tab.id == self._current
            text.append(name, colours.accent if current else colours.muted)
            if current:
                text.stylize("underline", len(text) - len(name))
            if tab.mark:
                text.append(f" {tab.mark}", colours.role(tab.role))
            self._places.append((start, text.cell_len, tab.id))
        text.append(after, colours.muted)
        return text

    def _window(self, width: int) -> Text:
        at = next((index for index, tab in enumerate(self._tabs) if tab.id == self._current), 0)
        first, last = at, at + 1
        while True:
            if first > 0 and self._width(self._tabs[first - 1 : last], True, 1) <= width - 4:
                first -= 1
            elif last < len(self._tabs) and self._width(self._tabs[first : last + 1], True, 1) <= width - 4:
                last += 1
            else:
                break
        cut = glyphs(self.app).cut
        before = f"{cut} " if first else ""
        after = f" {cut}" if last < len(self._tabs) else ""
        return self._draw(self._tabs[first:last], True, 1, before, after)

    def on_click(self, event: events.Click) -> None:
        for start, end, name in self._places:
            if start <= event.x < end:
                self.post_message(self.Changed(name))


def _label(tab: Tab, short: bool) -> str:
    return (tab.short if short else tab.name) + (f" {tab.mark}" if tab.mark else "")
