"""The line for a search or a filter, above the footer; Esc closes it."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from core.sanitize import inert


class FindBar(Horizontal):
    """Hidden until `open`; says what is typed, Enter goes to the next match, Esc closes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "close", show=False),
        Binding("enter,down", "next", "next match", show=False, priority=True),
        Binding("up,shift+enter", "previous", "previous match", show=False, priority=True),
    ]

    class Typed(Message):
        """The text is another one."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Moved(Message):
        """Go on to the next match (`by` 1) or back (-1)."""

        def __init__(self, by: int) -> None:
            super().__init__()
            self.by = by

    class Closed(Message):
        """The line is gone; `kept` is the text that was in it."""

        def __init__(self, kept: str) -> None:
            super().__init__()
            self.kept = kept

    def __init__(self, label: str) -> None:
        super().__init__(id="find")
        self._label = label

    def compose(self) -> ComposeResult:
        yield Static(Content(self._label), id="find-label")
        yield Input(id="find-text", compact=True, max_length=200)
        yield Static(Content(""), id="find-note")

    def open(self, label: str | None = None) -> None:
        """Show the line and put the cursor in it."""
        self.add_class("-open")
        if label is not None:
            self.query_one("#find-label", Static).update(Content(label))
        field = self.query_one(Input)
        field.focus()
        field.select_all()

    @property
    def is_open(self) -> bool:
        return self.has_class("-open")

    @property
    def text(self) -> str:
        """What is typed; empty when the line is closed."""
        return self.query_one(Input).value if self.is_open else ""

    def note(self, text: str) -> None:
        """A few words at the right end, such as `3 of 12`."""
        self.query_one("#find-note", Static).update(Content(inert(text)))

    @on(Input.Changed)
    def changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.is_open:
            self.post_message(self.Typed(event.value))

    def action_close(self) -> None:
        kept = self.text
        self.remove_class("-open")
        field = self.query_one(Input)
        with self.prevent(Input.Changed):
            field.value = ""
        self.note("")
        self.post_message(self.Closed(kept))

    def action_next(self) -> None:
        self.post_message(self.Moved(1))

    def action_previous(self) -> None:
        self.post_message(self.Moved(-1))
