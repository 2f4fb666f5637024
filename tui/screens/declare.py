"""Declare a supporting deliverable: file, type, sections, then a preview (docs/specs/console.md §2)."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.message import Message
from textual.screen import ModalScreen

from core.acp import supporting
from core.acp.model import DELIVERABLE_TYPES, PROTOCOL
from core.acp.reader import require
from core.acp.supporting import Addition
from core.clock import Clock
from core.finding import Finding, Refused
from core.sanitize import inert
from tui.forms.bar import Bar, Button
from tui.forms.fields import AreaField, Choice, ChoiceField, Field, LineField
from tui.forms.preview import DEAF, Headline
from tui.forms.problems import Problems
from tui.widgets.glyphs import palette
from tui.widgets.lines import LineView
from tui.widgets.text import wrap


class DeclareScreen(ModalScreen[str | None]):
    """Dismissed with the reference that was declared, or None."""

    VERTICAL_BREAKPOINTS = [(0, "-short"), (20, "-normal")]

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f2,ctrl+enter", "preview", "preview", id="declare.preview"),
        Binding("escape", "back", "back", id="declare.back"),
    ]

    class Planned(Message):
        """The answers were judged on the folder as it is."""

        def __init__(self, addition: Addition | None, findings: Sequence[Finding]) -> None:
            super().__init__()
            self.addition, self.findings = addition, tuple(findings)

    def __init__(self, path: Path, participant: str, clock: Clock) -> None:
        super().__init__()
        self._path, self._participant, self._clock = path, participant, clock

    def compose(self) -> ComposeResult:
        types = [Choice(name, name) for name in DELIVERABLE_TYPES]
        with Vertical(classes="form"):
            yield Headline("Declare a deliverable", f"as {self._participant}, in {self._path}")
            yield Problems()
            with VerticalScroll(id="fields", can_focus=False):
                yield LineField("file", "File", "a Markdown file below the deliverables' folder", ("FILE",))
                yield ChoiceField("type", "Type", types, where=("--type",), value=DELIVERABLE_TYPES[0])
                yield AreaField("checks", "Sections", "custom only, one a line", ("--check",))
            yield Bar()

    def on_mount(self) -> None:
        self.query_one(Bar).show((Button("F2", "preview", "preview"), Button("Esc", "back", "back")), "")
        self.query_one("#field-file", Field).focus_control()

    def _answers(self) -> tuple[str, str, list[str]]:
        kind = self.query_one("#field-type", ChoiceField).choice
        checks = self.query_one("#field-checks", AreaField).items
        return self.query_one("#field-file", LineField).text, kind.id if kind is not None else "", checks

    def action_preview(self) -> None:
        answers = self._answers()
        for field in self.query(Field):
            field.fail(None)
        self.query_one(Problems).show([])
        self.run_worker(lambda: self._plan(answers), group="declare", thread=True, exit_on_error=False)

    def _plan(self, answers: tuple[str, str, list[str]]) -> None:
        try:
            made = supporting.plan(require(self._path), self._participant, *answers)
        except Refused as exc:
            self.post_message(self.Planned(None, exc.findings))
        else:
            self.post_message(self.Planned(made, ()))

    def on_declare_screen_planned(self, message: DeclareScreen.Planned) -> None:
        if message.addition is not None:
            screen = DeclarePreview(self._path, self._participant, message.addition, self._clock)
            self.app.push_screen(screen, self._previewed)
            return
        rest = []
        for finding in message.findings:
            field = next((one for one in self.query(Field) if finding.where in one.where and not one.failed), None)
            if field is None:
                rest.append(finding)
            else:
                field.fail(finding.cause)
                field.focus_control()
        self.query_one(Problems).show(rest)

    def _previewed(self, ref: str | None) -> None:
        if ref is not None:
            self.dismiss(ref)

    def action_back(self) -> None:
        self.dismiss(None)

    def on_bar_pressed(self, message: Bar.Pressed) -> None:
        message.stop()
        self.run_worker(self.run_action(message.action), group="bar", exit_on_error=False)


class DeclarePreview(ModalScreen[str | None]):
    """What protocol.json gets and how the file begins. Enter writes both, Esc goes back."""

    VERTICAL_BREAKPOINTS = [(0, "-short"), (20, "-normal")]

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "declare", "declare", id="declare.enter"),
        Binding("escape", "back", "back", id="declare.cancel"),
    ]

    class Made(Message):
        """It was declared, or refused."""

        def __init__(self, findings: Sequence[Finding]) -> None:
            super().__init__()
            self.findings = tuple(findings)

    def __init__(
        self,
        path: Path,
        participant: str,
        addition: Addition,
        clock: Clock,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._path, self._participant, self._addition, self._clock = path, participant, addition, clock
        self._monotonic, self._since, self._busy = monotonic, monotonic(), False

    def compose(self) -> ComposeResult:
        with Vertical(classes="form"):
            yield Headline("Preview", self._addition.ref)
            yield Problems()
            yield LineView(id="receipt")
            yield Bar()

    def on_mount(self) -> None:
        # Nothing covers what is about to be written.
        self.app.clear_notifications()
        self.query_one(LineView).focus()
        self._listen()

    @property
    def deaf(self) -> bool:
        """Whether this preview is too new to listen to keys."""
        return self._monotonic() - self._since < DEAF

    def _listen(self) -> None:
        self._frame()
        if self.deaf and self.is_attached:
            self.set_timer(DEAF, self._listen)

    def _frame(self) -> None:
        ready = not self._busy and not self.deaf
        buttons = (Button("Enter", "declare", "declare", ready), Button("Esc", "back", "back", ready))
        self.query_one(Bar).show(buttons, "writing" if self._busy else "")

    def on_resize(self) -> None:
        self.call_after_refresh(self._lay)

    def _lay(self) -> None:
        view = self.query_one(LineView)
        view.set_lines(self.lines(view.text_width))

    def lines(self, width: int) -> list[Text]:
        """The receipt in `width` cells."""
        colours = palette(self.app)
        made: list[Text] = []

        def part(title: str, *texts: str) -> None:
            if made:
                made.append(Text())
            made.append(Text(title, colours.muted))
            for text in texts:
                made.extend(Text(piece, colours.text) for piece in wrap(inert(text), width))

        one = self._addition
        part("Writes", PROTOCOL, f"{one.ref}, as it stands" if one.there else one.ref)
        part("Declares", f"supporting {one.item.type}")
        if not one.there:
            part("The file begins as", *one.data.decode("utf-8").splitlines())
        part("The same as a command", self.command)
        return made

    @property
    def command(self) -> str:
        """`collab deliverable add …` for exactly this."""
        one = self._addition.item
        words = ["collab", "deliverable", "add", one.file, "--type", one.type]
        for check in one.checklist:
            words += ["--check", check]
        words += ["--folder", str(self._path), "--as", self._participant]
        return " ".join(shlex.quote(word) for word in words)

    def action_declare(self) -> None:
        if not self._busy and not self.deaf:
            self._busy = True
            self._frame()
            self.run_worker(self._declare, group="declare", thread=True, exit_on_error=False)

    def _declare(self) -> None:
        one = self._addition.item
        try:
            supporting.add(self._path, self._participant, one.file, one.type, one.checklist, self._clock)
        except Refused as exc:
            self.post_message(self.Made(exc.findings))
        else:
            self.post_message(self.Made(()))

    def on_declare_preview_made(self, message: DeclarePreview.Made) -> None:
        self._busy = False
        if message.findings:
            self.query_one(Problems).show(message.findings)
            self._frame()
        else:
            self.dismiss(self._addition.ref)

    def action_back(self) -> None:
        if not self._busy and not self.deaf:
            self.dismiss(None)

    def on_bar_pressed(self, message: Bar.Pressed) -> None:
        message.stop()
        self.run_worker(self.run_action(message.action), group="bar", exit_on_error=False)
