"""Open questions and their answers: each one resolved, deferred with a reason, or blocking (docs/specs/acp.md §3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input

from core.acp.documents import Item
from core.sanitize import inert
from tui.forms.fields import ChoiceList, Field, SafeInput
from tui.widgets.glyphs import State
from tui.widgets.rows import Cell, Column, Row, RowList

STATUSES: Final = ("resolved", "deferred_nonblocking", "blocking")
WORDS: Final[Mapping[str, tuple[str, State]]] = {
    "resolved": ("resolved", State.DONE),
    "deferred_nonblocking": ("deferred", State.WAITING),
    "blocking": ("blocking", State.FAILED),
    "unresolved": ("open", State.UNKNOWN),
}


class AnswerList(ChoiceList):
    """Questions; Space goes through the answers, a letter gives one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "answer('')", "next answer", show=False, id="answers.next"),
        Binding("r", "answer('resolved')", "resolved", show=False, id="answers.resolved"),
        Binding("d", "answer('deferred_nonblocking')", "deferred", show=False, id="answers.deferred"),
        Binding("b", "answer('blocking')", "blocking", show=False, id="answers.blocking"),
    ]

    class Answered(Message):
        """A key gave the current question an answer; an empty status means the next one."""

        def __init__(self, id: str, status: str) -> None:
            super().__init__()
            self.id, self.status = id, status

    def action_answer(self, status: str) -> None:
        if self.row is not None:
            self.post_message(self.Answered(self.row.id, status))


class AnswersField(Field):
    """The questions of readiness.md. Its value: the text of each answered one to `[status, reason]`."""

    DEFAULT_CSS = """
    AnswersField > SafeInput { display: none; }
    AnswersField.-reason > SafeInput {
        display: block; border: round $border-blurred; background: $surface; padding: 0 1;
    }
    AnswersField.-reason > SafeInput:focus { border: round $accent; background-tint: $surface 0%; }
    """

    def __init__(self, key: str, label: str, items: Sequence[Item], where: Sequence[str] = ()) -> None:
        super().__init__(key, label, "space or r d b", where)
        self._items = tuple({item.text: item for item in items}.values())
        self._answers: dict[str, tuple[str, str]] = {}
        columns = (Column("status", min=10), Column("text", min=12, grow=1))
        self._list = AnswerList(columns, empty="readiness.md has no questions yet. Write them below.")
        self._reason = SafeInput(placeholder="why it can wait")
        self._reason.border_title = "Reason"

    def control(self) -> Widget:
        return self._list

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield self._reason

    def on_mount(self) -> None:
        self._draw()

    def status(self, item: Item) -> str:
        """How a question stands with the answers given here."""
        return self._answers.get(item.text, (item.status, ""))[0]

    def _draw(self) -> None:
        rows = []
        for number, item in enumerate(self._items):
            word, state = WORDS[self.status(item)]
            reason = self._answers.get(item.text, ("", ""))[1]
            text = inert(item.text) + (f"  Reason: {inert(reason)}" if reason else "")
            rows.append(Row(str(number), (Cell(word, state), Cell(text)), dim=item.text not in self._answers))
        with self._list.prevent(RowList.RowHighlighted):
            self._list.set_rows(rows)
        self._list.refresh(layout=True)
        self._show_reason()

    def _current(self) -> Item | None:
        row = self._list.row
        return self._items[int(row.id)] if row is not None else None

    def _show_reason(self) -> None:
        item = self._current()
        answer = self._answers.get(item.text) if item is not None else None
        deferred = answer is not None and answer[0] == "deferred_nonblocking"
        self.set_class(deferred, "-reason")
        if deferred and answer is not None and self._reason.value.strip() != answer[1]:
            with self._reason.prevent(Input.Changed):
                self._reason.value = inert(answer[1])

    def on_answer_list_answered(self, event: AnswerList.Answered) -> None:
        event.stop()
        item = self._items[int(event.id)]
        now = self._answers.get(item.text)
        order = ("", *STATUSES)
        status = event.status or order[(order.index(now[0] if now else "") + 1) % len(order)]
        if not status or (event.status and now is not None and now[0] == event.status):
            self._answers.pop(item.text, None)
        else:
            self._answers[item.text] = (status, now[1] if now and status == "deferred_nonblocking" else "")
        self._draw()
        self.changed()

    def on_row_list_row_highlighted(self, event: RowList.RowHighlighted) -> None:
        event.stop()
        self._show_reason()

    def on_row_list_row_chosen(self, event: RowList.RowChosen) -> None:
        event.stop()
        self.on_answer_list_answered(AnswerList.Answered(event.id, ""))

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        item = self._current()
        if item is not None and item.text in self._answers:
            self._answers[item.text] = (self._answers[item.text][0], event.value.strip())
            self._draw()
            self.changed()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._list.focus()

    @property
    def answers(self) -> dict[str, tuple[str, str]]:
        """Question to (status, reason), only those that were answered here."""
        return dict(self._answers)

    @property
    def without_reason(self) -> str | None:
        """A question that is deferred and does not say why."""
        return next(
            (
                text
                for text, (status, reason) in self._answers.items()
                if status == "deferred_nonblocking" and not reason
            ),
            None,
        )

    @property
    def value(self) -> object:
        return {text: list(answer) for text, answer in self._answers.items()}

    def restore(self, value: object) -> None:
        if not isinstance(value, dict):
            return
        known = {item.text for item in self._items}
        for text, answer in value.items():
            if text in known and isinstance(answer, list) and len(answer) == 2 and answer[0] in STATUSES:
                self._answers[text] = (answer[0], str(answer[1]))
        self._draw()


__all__ = ["AnswersField"]
