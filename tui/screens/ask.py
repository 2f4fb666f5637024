"""A small dialog: one line of text."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from core.sanitize import inert
from tui.forms.fields import LineField


class AskScreen(ModalScreen[str | None]):
    """Returns what was typed, or None."""

    DEFAULT_CSS = """
    AskScreen { align: center middle; background: $background 60%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", show=False),
        Binding("enter", "answer", "go on", show=False, priority=True),
    ]

    def __init__(self, title: str, label: str, hint: str) -> None:
        super().__init__()
        self._title, self._label, self._hint = title, label, hint

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(Content(inert(self._title)), classes="dialog-title")
            yield LineField("answer", self._label, self._hint)
            yield Static(Content("enter go on  esc back"), classes="dialog-keys")

    def on_mount(self) -> None:
        self.query_one(LineField).focus_control()

    def action_answer(self) -> None:
        self.dismiss(self.query_one(LineField).text)

    def action_back(self) -> None:
        self.dismiss(None)
