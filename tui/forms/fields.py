"""Fields of forms: one line, many lines, one of several, any of several (docs/specs/console.md §2).

A field's value is JSON data, so that drafts can hold it. Everything that comes in, typed, pasted, restored or read
from a document, is made inert before a widget shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Static, TextArea

from core.sanitize import inert, inert_block
from tui.widgets.glyphs import State, glyphs, palette
from tui.widgets.lines import LineView
from tui.widgets.rows import Cell, Column, Row, RowList
from tui.widgets.text import wrap

AREA_CAP = 256 * 1024
"""Characters that a text area takes; a longer text is written in the editor."""


def editable_text(text: str) -> str:
    """Text for a text area: inert, but with its tabs, which a text area shows by itself."""
    return "\t".join(inert_block(part) for part in text.split("\t"))


class SafeInput(Input):
    """An input whose pasted text cannot act on the terminal."""

    def on_paste(self, event: events.Paste) -> None:
        event.text = inert((event.text.splitlines() or [""])[0])


class SafeArea(TextArea):
    """A text area whose pasted text cannot act on the terminal; ctrl+home and ctrl+end go to its ends."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+home", "to_end(True)", "first line", show=False, id="area.home"),
        Binding("ctrl+end", "to_end(False)", "last line", show=False, id="area.end"),
        Binding("ctrl+shift+home", "to_end(True, True)", "select to the first line", show=False, id="area.select-home"),
        Binding("ctrl+shift+end", "to_end(False, True)", "select to the last line", show=False, id="area.select-end"),
    ]

    def action_to_end(self, first: bool, select: bool = False) -> None:
        """Go to the beginning or the end of the text."""
        self.move_cursor(self.document.start if first else self.document.end, select=select)

    def on_paste(self, event: events.Paste) -> None:
        event.text = editable_text(event.text)


class Field(Vertical):
    """A labelled control with its own error below. `where` are the findings' places that belong to it."""

    DEFAULT_CSS = """
    Field { height: auto; }
    .-tall Field { margin: 0 0 1 0; }
    Field > .control {
        border: round $border-blurred; border-title-color: $text-muted; border-subtitle-color: $text-muted;
        background: $surface; padding: 0 1;
    }
    Field > .control:focus { border: round $accent; border-title-color: $accent; background-tint: $surface 0%; }
    Field > .control:focus { border-title-style: bold; }
    Field > .control:focus:nocolor { border: heavy $accent; }
    Field > .error { height: auto; padding: 0 1; display: none; }
    Field.-failed > .error { display: block; }
    """

    class Changed(Message):
        """The person changed the value."""

        def __init__(self, field: Field) -> None:
            super().__init__()
            self.field = field

    text_editable: ClassVar[bool] = False
    """Whether F3 can write this field in the editor."""

    def __init__(self, key: str, label: str, hint: str = "", where: Sequence[str] = ()) -> None:
        super().__init__(id=f"field-{key}")
        self.key, self.label, self.hint, self.where = key, label, hint, tuple(where)
        self._error = Static(classes="error")

    def control(self) -> Widget:
        """The widget that takes the focus."""
        raise TypeError(f"{type(self).__name__} has no control")

    def compose(self) -> ComposeResult:
        control = self.control()
        control.add_class("control")
        control.border_title = self.label
        if self.hint:
            control.border_subtitle = self.hint
        yield control
        yield self._error

    @property
    def value(self) -> object:
        """The value as JSON data."""
        return None

    def restore(self, value: object) -> None:
        """Take a value from a draft; one that does not fit is ignored."""

    def fail(self, cause: str | None) -> None:
        """Show an error next to the field, or take it away."""
        self.set_class(cause is not None, "-failed")
        if cause is not None:
            sign, colours = glyphs(self.app).state(State.FAILED), palette(self.app)
            self._error.update(Text.assemble((f"{sign} ", colours.failed), (inert(cause), colours.text)))

    @property
    def failed(self) -> bool:
        """Whether an error is shown."""
        return self.has_class("-failed")

    def focus_control(self) -> None:
        """Put the focus into the control."""
        self.query_one(".control").focus()

    def changed(self) -> None:
        """The person changed something: the old error is no longer about it."""
        self.fail(None)
        self.post_message(self.Changed(self))


class LineField(Field):
    """One line of text."""

    text_editable = True

    def __init__(
        self, key: str, label: str, hint: str = "", where: Sequence[str] = (), value: str = "", placeholder: str = ""
    ) -> None:
        super().__init__(key, label, hint, where)
        self._input = SafeInput(inert(value), placeholder=placeholder, select_on_focus=False)
        self._known = self._input.value

    def control(self) -> Widget:
        return self._input

    @property
    def text(self) -> str:
        """What is typed, without spaces at its ends."""
        return self._input.value.strip()

    @text.setter
    def text(self, value: str) -> None:
        self._input.value = self._known = " ".join(inert_block(value).split())
        self._input.cursor_position = len(self._input.value)

    @property
    def value(self) -> object:
        return self._input.value

    def restore(self, value: object) -> None:
        if isinstance(value, str):
            with self.prevent(Input.Changed):
                self.text = value

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        # The input tells of what it was given, too, a moment late.
        if event.value != self._known:
            self._known = event.value
            self.changed()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.screen.focus_next()


class AreaField(Field):
    """Many lines of text. Above `AREA_CAP` characters only the editor changes it."""

    DEFAULT_CSS = """
    AreaField > SafeArea { height: auto; min-height: 4; max-height: 10; }
    AreaField.-document > SafeArea { min-height: 8; max-height: 26; }
    AreaField > .large { height: auto; }
    """

    text_editable = True

    def __init__(
        self,
        key: str,
        label: str,
        hint: str = "",
        where: Sequence[str] = (),
        value: str = "",
        document: bool = False,
    ) -> None:
        super().__init__(key, label, hint, where)
        self.set_class(document, "-document")
        self._large = value if len(value) > AREA_CAP else None
        shown = self._large_note(value) if self._large is not None else editable_text(value)
        self._area = SafeArea(shown, soft_wrap=True, show_line_numbers=False, tab_behavior="focus")
        self._area.read_only = self._large is not None
        self._area.highlight_cursor_line = False
        self._known = self._area.text

    def control(self) -> Widget:
        return self._area

    def on_mount(self) -> None:
        # One goes on writing a list at its end, and reads a document from its beginning.
        if not self.has_class("-document"):
            self._area.move_cursor(self._area.document.end)

    def _large_note(self, value: str) -> str:
        lines = value.count("\n") + 1
        return f"{len(value)} characters in {lines} lines: too long to edit here. F3 opens it in your editor."

    @property
    def text(self) -> str:
        """The text as it is now."""
        return self._large if self._large is not None else self._area.text

    @text.setter
    def text(self, value: str) -> None:
        self._large = value if len(value) > AREA_CAP else None
        self._area.read_only = self._large is not None
        self._area.load_text(self._large_note(value) if self._large is not None else editable_text(value))
        self._known = self._area.text

    @property
    def items(self) -> list[str]:
        """The text as a list: one entry a line, `- ` before it left out, indented lines go on with the entry above."""
        made: list[str] = []
        for line in self.text.split("\n"):
            if line.strip() in ("", "-"):
                continue
            if line[0] == " " and made:
                made[-1] += "\n" + line.strip()
            else:
                made.append(line.strip().removeprefix("- ").strip())
        return [item for item in made if item]

    @property
    def value(self) -> object:
        return self.text

    def restore(self, value: object) -> None:
        if isinstance(value, str):
            with self.prevent(TextArea.Changed):
                self.text = value
            if not self.has_class("-document"):
                self._area.move_cursor(self._area.document.end)

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        event.stop()
        if self._area.text != self._known:
            self._known = self._area.text
            self.changed()


class ReadingField(Field):
    """Something to read before deciding: lines that scroll, no value."""

    DEFAULT_CSS = """
    ReadingField > LineView { height: auto; min-height: 3; max-height: 12; }
    """

    def __init__(self, key: str, label: str, text: str, empty: str, hint: str = "") -> None:
        super().__init__(key, label, hint)
        self._view = ReadingView(inert_block(text).strip("\n"), empty)

    def control(self) -> Widget:
        return self._view


class ReadingView(LineView):
    """Inert text, wrapped, as high as it is."""

    def __init__(self, text: str, empty: str) -> None:
        super().__init__(empty=empty)
        self._source = text.split("\n") if text else []

    def resized(self, width: int) -> None:
        self.set_lines([piece for line in self._source for piece in wrap(line, width)])

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        rows = sum(len(wrap(line, max(8, width - self.GUTTER - 1))) for line in self._source[:40])
        return max(3, rows)


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several; `reason` says why it is not possible now, `note` explains it."""

    id: str
    label: str
    note: str = ""
    reason: str = ""
    state: State | None = None


class ChoiceList(RowList):
    """Rows of which the current one is the choice."""

    DEFAULT_CSS = """
    ChoiceList { height: auto; min-height: 3; max-height: 12; }
    """

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        return max(1, self.line_count)


class ChoiceField(Field):
    """One of several: the current row is the choice. What is not possible is greyed with its reason."""

    def __init__(
        self,
        key: str,
        label: str,
        choices: Sequence[Choice],
        hint: str = "",
        where: Sequence[str] = (),
        value: str = "",
    ) -> None:
        super().__init__(key, label, hint, where)
        columns = (Column("label", min=8, max=24), Column("note", min=12, grow=1, priority=1))
        self._list = ChoiceList(columns, empty="There is nothing to choose.")
        self._choices: dict[str, Choice] = {}
        self._wanted = value
        self._given = tuple(choices)

    def control(self) -> Widget:
        return self._list

    def on_mount(self) -> None:
        self.set_choices(self._given, self._wanted)

    def set_choices(self, choices: Sequence[Choice], value: str = "") -> None:
        """Offer these; `value` becomes the choice if it is among them."""
        self._choices = {choice.id: choice for choice in choices}
        with self._list.prevent(RowList.RowHighlighted):
            self._list.set_rows([self._row(choice) for choice in choices])
            if value:
                self._list.move_to_id(value)
        self._list.refresh(layout=True)

    def _row(self, choice: Choice) -> Row:
        note = Cell(choice.reason or choice.note, role="muted")
        return Row(choice.id, (Cell(choice.label, choice.state), note), dim=bool(choice.reason))

    @property
    def choice(self) -> Choice | None:
        """What is chosen."""
        row = self._list.row
        return self._choices.get(row.id) if row is not None else None

    @property
    def value(self) -> object:
        return self.choice.id if self.choice is not None else None

    def restore(self, value: object) -> None:
        if isinstance(value, str) and value in self._choices:
            with self._list.prevent(RowList.RowHighlighted):
                self._list.move_to_id(value)

    def on_row_list_row_highlighted(self, event: RowList.RowHighlighted) -> None:
        event.stop()
        self.changed()

    def on_row_list_row_chosen(self, event: RowList.RowChosen) -> None:
        event.stop()
        self.screen.focus_next()


@dataclass(frozen=True, slots=True)
class Check:
    """A line that can be ticked; a `fixed` one is ticked already and stays so."""

    id: str
    label: str
    ticked: bool = False
    fixed: bool = False


class CheckList(ChoiceList):
    """Rows that Space and Enter tick."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "choose", "tick", show=False, id="checks.tick"),
        Binding("asterisk", "tick_all", "tick all", show=False, id="checks.all"),
    ]

    def action_tick_all(self) -> None:
        field = self.parent
        if isinstance(field, CheckField):
            field.tick_all()


class CheckField(Field):
    """Any of several. Its value is the list of ids that the person ticked."""

    def __init__(
        self, key: str, label: str, checks: Sequence[Check], hint: str = "space ticks", where: Sequence[str] = ()
    ) -> None:
        super().__init__(key, label, hint, where)
        columns = (Column("tick", min=3), Column("label", min=12, grow=1))
        self._list = CheckList(columns, empty="There is nothing to tick.")
        self._checks = tuple(checks)
        self._ticked = {check.id for check in checks if check.ticked and not check.fixed}

    def control(self) -> Widget:
        return self._list

    def on_mount(self) -> None:
        self._draw()

    def _draw(self) -> None:
        signs = glyphs(self.app)
        rows = []
        for check in self._checks:
            on = check.fixed or check.id in self._ticked
            box = Cell(f"[{signs.ticked if on else signs.unticked}]", role="done" if on else "text")
            rows.append(Row(check.id, (box, Cell(check.label)), dim=check.fixed))
        with self._list.prevent(RowList.RowHighlighted):
            self._list.set_rows(rows)
        self._list.refresh(layout=True)

    @property
    def ticked(self) -> list[str]:
        """The ids that the person ticked, in the order of the list."""
        return [check.id for check in self._checks if check.id in self._ticked]

    @property
    def value(self) -> object:
        return self.ticked

    def restore(self, value: object) -> None:
        if isinstance(value, list):
            known = {check.id for check in self._checks if not check.fixed}
            self._ticked = {item for item in value if isinstance(item, str) and item in known}
            self._draw()

    def tick_all(self) -> None:
        """Tick every line."""
        self._ticked = {check.id for check in self._checks if not check.fixed}
        self._draw()
        self.changed()

    def on_row_list_row_highlighted(self, event: RowList.RowHighlighted) -> None:
        event.stop()

    def on_row_list_row_chosen(self, event: RowList.RowChosen) -> None:
        event.stop()
        if any(check.id == event.id and not check.fixed for check in self._checks):
            self._ticked ^= {event.id}
            self._draw()
            self.changed()


__all__ = [
    "AreaField",
    "Check",
    "CheckField",
    "Choice",
    "ChoiceField",
    "Field",
    "LineField",
    "ReadingField",
    "SafeArea",
    "SafeInput",
    "editable_text",
]
