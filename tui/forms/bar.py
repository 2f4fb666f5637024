"""The docked bar of forms and previews: the primary button always at the same place (docs/specs/console.md §4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text
from textual import events
from textual.message import Message
from textual.widget import Widget

from core.sanitize import inert
from tui.widgets.glyphs import palette


@dataclass(frozen=True, slots=True)
class Button:
    """A key, what it does, and the screen's action that a click runs; the action itself knows whether it may."""

    key: str
    label: str
    action: str
    enabled: bool = True


class Bar(Widget):
    """`Enter append   Esc back` and a status at the right; everything in it is a key too, so it takes no focus."""

    DEFAULT_CSS = """
    Bar { dock: bottom; height: 2; width: 100%; padding: 0 2; border-top: solid $border-blurred; }
    """

    class Pressed(Message):
        """A button was clicked."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._buttons: tuple[Button, ...] = ()
        self._note = ""
        self._places: list[tuple[int, int, str]] = []

    def show(self, buttons: Sequence[Button], note: str = "") -> None:
        """The primary button comes first. `note` is one line of plain text."""
        if (tuple(buttons), note) != (self._buttons, self._note):
            self._buttons, self._note = tuple(buttons), note
            self.refresh()

    @property
    def note(self) -> str:
        """The status at the right."""
        return self._note

    def render(self) -> Text:
        colours = palette(self.app)
        made = Text(no_wrap=True, end="")
        self._places = []
        for at, button in enumerate(self._buttons):
            if at:
                made.append("   ")
            start = made.cell_len
            key = colours.muted if not button.enabled else colours.accent if at == 0 else colours.strong
            made.append(button.key, key)
            label = colours.muted if not button.enabled else colours.strong if at == 0 else colours.text
            made.append(f" {button.label}", label)
            self._places.append((start, made.cell_len, button.action))
        note = inert(self._note)
        room = self.content_size.width - made.cell_len - 3
        if note and room > 8:
            tail = Text(note, style=colours.muted)
            tail.truncate(room, overflow="ellipsis")
            made.append(" " * (self.content_size.width - made.cell_len - tail.cell_len))
            made.append_text(tail)
        made.truncate(max(0, self.content_size.width), overflow="ellipsis")
        return made

    def on_click(self, event: events.Click) -> None:
        x = event.get_content_offset(self)
        if x is None:
            return
        for start, end, action in self._places:
            if start <= x.x < end:
                self.post_message(self.Pressed(action))
