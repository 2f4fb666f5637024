"""A small dialog: choose one of a few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from core.sanitize import inert
from tui.widgets.rows import Cell, Column, Row, RowList


@dataclass(frozen=True, slots=True)
class Choice:
    """What can be chosen: `text` and a muted note beside it."""

    id: str
    text: str
    note: str = ""


class ChooseScreen(ModalScreen[str | None]):
    """Returns the id of the choice, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "cancel", "back", show=False)]

    def __init__(self, title: str, choices: Sequence[Choice], current: str | None = None) -> None:
        super().__init__()
        self._title, self._choices, self._current = title, tuple(choices), current

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(Content(inert(self._title)), classes="dialog-title")
            yield RowList([Column("text", min=8, grow=1), Column("note", min=0, priority=1)], id="choices")
            yield Static(Content("enter choose  esc back"), classes="dialog-keys")

    def on_mount(self) -> None:
        rows = self.query_one(RowList)
        rows.set_rows([Row(one.id, (Cell(one.text), Cell(one.note, role="muted"))) for one in self._choices])
        rows.styles.height = min(max(len(self._choices), 1), 12)
        if self._current is not None:
            rows.move_to_id(self._current)
        rows.focus()

    @on(RowList.RowChosen)
    def chosen(self, event: RowList.RowChosen) -> None:
        event.stop()
        self.dismiss(event.id)

    def action_cancel(self) -> None:
        self.dismiss(None)
