"""A new collaboration: who, about what, when it is done; shown before it is made (docs/specs/console.md §2)."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.message import Message
from textual.screen import ModalScreen

from core.acp.declare import Declaration, generated_gates
from core.acp.model import DELIVERABLE_TYPES, DOCUMENTS, LOG, PROTOCOL
from core.acp.templates import LANGUAGES, check, cleaned, exists_finding, initialize
from core.clock import Clock
from core.finding import Finding, Refused, error
from core.sanitize import inert
from tui.forms.bar import Bar, Button
from tui.forms.base import Problems
from tui.forms.drafts import Drafts, Saved
from tui.forms.fields import AreaField, Choice, ChoiceField, Field, LineField
from tui.forms.preview import DEAF, Headline
from tui.settings import expanded
from tui.widgets.glyphs import glyphs, palette
from tui.widgets.lines import LineView
from tui.widgets.text import wrap

FORM: Final = "new"
SAVE_AFTER: Final = 0.25
WORDS = {"en": "English", "fr": "français", "ja": "日本語", "it": "italiano", "zh": "中文"}


@dataclass(frozen=True, slots=True)
class Plan:
    """The answers, as they will be written."""

    path: Path
    objective: str
    participants: tuple[str, ...]
    gates: tuple[str, ...]
    language: str
    declared: Declaration | None = None

    def check(self) -> list[Finding]:
        """What is missing or wrong; looks at the folder."""
        found = check(self.path, self.objective, self.participants, self.gates, self.language, self.declared)
        if (self.path / PROTOCOL).exists():
            found.append(exists_finding(self.path))
        elif self.path.exists() and not self.path.is_dir():
            found.append(error("not_a_folder", f"{self.path} is not a folder", None, str(self.path)))
        return found

    @property
    def command(self) -> str:
        """`collab init …` for exactly these answers."""
        words = ["collab", "init", "--folder", str(self.path)]
        for name in self.participants:
            words += ["--participant", name]
        words += ["--objective", self.objective]
        for gate in self.gates:
            words += ["--completion", gate]
        if self.language != "en":
            words += ["--language", self.language]
        if self.declared is not None:
            words += self._declared_words(self.declared)
        return " ".join(shlex.quote(word) for word in words)

    def _declared_words(self, one: Declaration) -> list[str]:
        words = ["--primary-deliverable-type", one.type]
        words += ["--primary-deliverable-file", one.file] if one.file else []
        for text in one.checks:
            words += ["--primary-deliverable-check", text]
        if one.mode != "internal":
            words += ["--deliverables-mode", one.mode]
        words += ["--deliverables-dir", one.dir] if one.dir != "deliverables" else []
        return words + (["--repo-root", one.repo_root] if one.repo_root else [])


class NewScreen(ModalScreen[Path | None]):
    """Dismissed with the folder that was made, or None. What is typed is kept as a draft."""

    VERTICAL_BREAKPOINTS = [(0, "-short"), (20, "-normal")]

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f2,ctrl+enter", "preview", "preview", id="new.preview"),
        Binding("escape", "back", "back", id="new.back"),
    ]

    class Checked(Message):
        """The answers were checked."""

        def __init__(self, plan: Plan, findings: Sequence[Finding]) -> None:
            super().__init__()
            self.plan, self.findings = plan, tuple(findings)

    class Restored(Message):
        """A draft was found."""

        def __init__(self, saved: Saved) -> None:
            super().__init__()
            self.saved = saved

    def __init__(self, root: Path, me: str | None, drafts: Drafts, clock: Clock) -> None:
        super().__init__()
        self._root, self._me, self._drafts, self._clock = root, me, drafts, clock
        self._count, self._pending, self._over = 0, False, False

    def compose(self) -> ComposeResult:
        languages = [Choice(code, WORDS.get(code, code)) for code in LANGUAGES]
        with Vertical(classes="form"):
            yield Headline("New collaboration", f"in {self._root}")
            yield Problems()
            with VerticalScroll(id="fields", can_focus=False):
                yield LineField("objective", "Objective", "what is to be agreed", ("--objective",))
                yield LineField("folder", "Folder", "its name, or a path", (str(self._root),))
                yield AreaField(
                    "participants", "Participants", "one a line; the first owns the proposal", ("--participant",),
                    value=f"{self._me}\n" if self._me else "",
                )  # fmt: skip
                yield AreaField("gates", "Completion gates", "one a line: what must hold at the end", ("--completion",))
                yield ChoiceField("language", "Language of the templates", languages, value="en")
                yield from self._deliverable_fields()
            yield Bar()

    @staticmethod
    def _deliverable_fields() -> ComposeResult:
        types = [Choice("", "none", "a version 1 folder"), *(Choice(name, name) for name in DELIVERABLE_TYPES)]
        modes = [Choice("internal", "internal", "in this folder"), Choice("external", "external", "in the repository")]
        prefix = "--primary-deliverable"
        yield ChoiceField("type", "Deliverable", types, where=(f"{prefix}-type",), value="")
        yield LineField("file", "Its file", "Markdown; blank: TYPE.md", (f"{prefix}-file",))
        yield AreaField("checks", "Its sections", "custom only, one a line", (f"{prefix}-check",))
        yield ChoiceField("mode", "It lies", modes, where=("--deliverables-mode",), value="internal")
        yield LineField("dir", "In", "blank: deliverables", ("--deliverables-dir",))
        yield LineField("root", "Repository", "external only, relative to the folder, as ..", ("--repo-root",))

    def on_mount(self) -> None:
        self._frame()
        self.query_one("#field-objective", Field).focus_control()
        self.run_worker(self._restore, group="new", thread=True, exit_on_error=False)

    def _frame(self, note: str = "") -> None:
        self.query_one(Bar).show((Button("F2", "preview", "preview"), Button("Esc", "back", "back")), note)

    def _restore(self) -> None:
        saved = self._drafts.load(self._root, FORM)
        if saved is not None:
            self.post_message(self.Restored(saved))

    def on_new_screen_restored(self, message: NewScreen.Restored) -> None:
        for field in self.query(Field):
            field.restore(message.saved.fields.get(field.key))
        self._frame("draft restored")

    # Answers.

    def _line(self, key: str) -> str:
        return self.query_one(f"#field-{key}", LineField).text

    def _items(self, key: str) -> tuple[str, ...]:
        return tuple(cleaned(self.query_one(f"#field-{key}", AreaField).text.split("\n")))

    def plan(self) -> Plan:
        """The answers as they stand."""
        language = self.query_one("#field-language", ChoiceField).choice
        name = self._line("folder")
        path = self._root / expanded(name) if name and "\0" not in name else self._root
        code = language.id if language is not None else "en"
        people, gates = self._items("participants"), self._items("gates")
        return Plan(path, self._line("objective"), people, gates, code, self._declared())

    def _declared(self) -> Declaration | None:
        kind = self.query_one("#field-type", ChoiceField).choice
        mode = self.query_one("#field-mode", ChoiceField).choice
        if kind is None or not kind.id:
            return None
        return Declaration(
            kind.id,
            self._line("file"),
            self._items("checks"),
            mode.id if mode is not None else "internal",
            self._line("dir") or "deliverables",
            self._line("root") or None,
        )

    def on_field_changed(self, event: Field.Changed) -> None:
        event.stop()
        if not self._pending:
            self._pending = True
            self.set_timer(SAVE_AFTER, self._save)

    def _save(self) -> None:
        self._pending = False
        if self._over or not self.is_attached:
            return
        self._count += 1
        values = {field.key: field.value for field in self.query(Field) if field.value is not None}
        number, now, drafts, root = self._count, self._clock.now(), self._drafts, self._root
        self.app.run_worker(
            lambda: drafts.save(root, FORM, values, {}, now, number), group="drafts", thread=True, exit_on_error=False
        )

    def action_back(self) -> None:
        self._save()
        self.dismiss(None)

    def action_preview(self) -> None:
        plan = self.plan()
        for field in self.query(Field):
            field.fail(None)
        self.query_one(Problems).show([])
        if not self._line("folder"):
            self.query_one("#field-folder", Field).fail("the folder needs a name")
            self.query_one("#field-folder", Field).focus_control()
            return
        self.run_worker(
            lambda: self.post_message(self.Checked(plan, plan.check())), group="new", thread=True, exit_on_error=False
        )

    def on_new_screen_checked(self, message: NewScreen.Checked) -> None:
        if message.findings:
            self._refuse(message.findings)
        else:
            self.app.push_screen(NewPreview(message.plan, self._clock), self._previewed)

    def _refuse(self, findings: Sequence[Finding]) -> None:
        rest = []
        failed: Field | None = None
        for finding in findings:
            at = finding.where or ""
            field = next((one for one in self.query(Field) if at in one.where), None)
            if field is None or field.failed:
                rest.append(finding)
            else:
                field.fail(finding.cause)
                failed = failed or field
        self.query_one(Problems).show(rest)
        if failed is not None:
            failed.focus_control()

    def _previewed(self, made: Path | None) -> None:
        if made is None:
            return
        self._over = True
        self._count += 1
        number, drafts, root = self._count, self._drafts, self._root
        self.app.run_worker(lambda: drafts.remove(root, FORM, number), group="drafts", thread=True, exit_on_error=False)
        self.dismiss(made)

    def on_bar_pressed(self, message: Bar.Pressed) -> None:
        message.stop()
        self.run_worker(self.run_action(message.action), group="bar", exit_on_error=False)


class NewPreview(ModalScreen[Path | None]):
    """What will be made. Enter makes it, Esc goes back; keys of the first 300 ms are ignored."""

    VERTICAL_BREAKPOINTS = [(0, "-short"), (20, "-normal")]

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "create", "create", id="new.create"),
        Binding("escape", "back", "back", id="new.cancel"),
    ]

    class Made(Message):
        """The folder is there, or it was refused."""

        def __init__(self, findings: Sequence[Finding]) -> None:
            super().__init__()
            self.findings = tuple(findings)

    def __init__(self, plan: Plan, clock: Clock, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._plan, self._clock, self._monotonic = plan, clock, monotonic
        self._since = monotonic()
        self._busy = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="form"):
            yield Headline("Preview", str(self._plan.path))
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
        """The buttons are greyed as long as keys are ignored."""
        self._frame()
        if self.deaf and self.is_attached:
            self.set_timer(DEAF, self._listen)

    def on_resize(self) -> None:
        self.call_after_refresh(self._lay)

    def _lay(self) -> None:
        view = self.query_one(LineView)
        view.set_lines(self.lines(view.text_width))

    def lines(self, width: int) -> list[Text]:
        """The receipt in `width` cells."""
        colours, signs = palette(self.app), glyphs(self.app)
        made: list[Text] = []

        def section(title: str, *texts: str) -> None:
            if made:
                made.append(Text())
            made.append(Text(title, colours.muted))
            for text in texts:
                made.extend(Text(piece, colours.text) for piece in wrap(inert(text), width))

        plan = self._plan
        section("Writes", ", ".join((PROTOCOL, LOG, *DOCUMENTS, "README.md")))
        section("Objective", plan.objective)
        owner, *others = plan.participants
        section("Participants", f"{owner} (owner)", *others)
        section("Completion gates", *(f"{signs.bullet} {gate}" for gate in plan.gates))
        one = plan.declared
        if one is not None:
            ref = f"external:{one.name}" if one.mode == "external" else f"{one.dir}/{one.name}"
            section("Deliverable", f"{ref} ({one.type})")
            section("Generated gates", *(f"{signs.bullet} {gate}" for gate in generated_gates(one.type, ref)))
        section("Effect", f"{signs.arrow} drafting, then waiting for {owner}")
        section("The same as a command", plan.command)
        return made

    def _frame(self) -> None:
        ready = not self._busy and not self.deaf
        buttons = (Button("Enter", "create", "create", ready), Button("Esc", "back", "back", ready))
        self.query_one(Bar).show(buttons, "writing" if self._busy else "")

    def action_create(self) -> None:
        if self._busy or self.deaf:
            return
        self._busy = True
        self._frame()
        self.run_worker(self._create, group="new", thread=True, exit_on_error=False)

    def _create(self) -> None:
        plan = self._plan
        try:
            initialize(
                plan.path,
                plan.objective,
                plan.participants,
                plan.gates,
                self._clock,
                plan.language,
                declared=plan.declared,
            )
        except Refused as exc:
            self.post_message(self.Made(exc.findings))
        else:
            self.post_message(self.Made(()))

    def on_new_preview_made(self, message: NewPreview.Made) -> None:
        self._busy = False
        if message.findings:
            self.query_one(Problems).show(message.findings)
            self._frame()
        else:
            self.dismiss(self._plan.path)

    def action_back(self) -> None:
        if not self._busy and not self.deaf:
            self.dismiss(None)

    def on_bar_pressed(self, message: Bar.Pressed) -> None:
        message.stop()
        self.run_worker(self.run_action(message.action), group="bar", exit_on_error=False)
