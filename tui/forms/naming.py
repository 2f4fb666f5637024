"""A minted code gets a name, or means one that exists; a signal is recorded (docs/specs/governance.md §2)."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.message import Message
from textual.screen import ModalScreen
from textual.worker import Worker, WorkerState

from core.clock import Clock
from core.finding import Finding, Refused, error
from core.sanitize import inert
from core.triage import rules, store
from core.triage.model import Catalog, Seen
from core.triage.rules import Wish
from core.triage.store import OBSERVATIONS, RESOLUTION, TRIAGE, Place
from tui.forms.bar import Bar, Button
from tui.forms.confirm import ConfirmScreen, Deed
from tui.forms.drafts import Drafts, Saved
from tui.forms.fields import AreaField, Choice, ChoiceField, Field, LineField
from tui.forms.preview import Headline
from tui.forms.problems import Problems

SAVE_AFTER: Final = 0.25
SHOWN: Final = 12
"""Entries that an alias may be chosen among at once; a longer list is narrowed by typing."""


class NamingForm(ModalScreen[str | None]):
    """Dismissed with what was done, or None. What is typed is kept as a draft."""

    HEADING: ClassVar[str] = ""
    FORM: ClassVar[str] = ""
    VERTICAL_BREAKPOINTS = [(0, "-short"), (20, "-normal")]
    DEFAULT_CSS = """
    NamingForm { align: center middle; background: $background 60%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f2,ctrl+enter", "preview", "preview", id="naming.preview"),
        Binding("escape", "back", "back", id="naming.back"),
    ]

    class Checked(Message):
        """The answers were checked: a deed, or why there is none."""

        def __init__(self, deed: Deed | None, findings: Sequence[Finding]) -> None:
            super().__init__()
            self.deed, self.findings = deed, tuple(findings)

    class Restored(Message):
        """A draft was found."""

        def __init__(self, saved: Saved) -> None:
            super().__init__()
            self.saved = saved

    def __init__(self, root: Path, seen: Seen, catalog: Catalog, by: str | None, drafts: Drafts, clock: Clock) -> None:
        super().__init__()
        self.root, self.seen, self.catalog, self.by, self.clock = root, seen, catalog, by, clock
        self._drafts = drafts
        self._count, self._pending, self._over = 0, False, False

    @property
    def _draft(self) -> str:
        return f"{self.FORM}:{self.seen.code}"

    def fields(self) -> list[Field]:
        """The fields, filled from the sighting."""
        return []

    def deed(self) -> Callable[[], Deed]:
        """What the fields describe, to be checked in a thread. Raises Refused there."""
        raise Refused(error("nothing_to_do", f"the form {self.FORM!r} describes no act"))

    def compose(self) -> ComposeResult:
        with Vertical(classes="form"):
            yield Headline(self.HEADING, self.seen.code)
            yield Problems()
            with VerticalScroll(id="fields", can_focus=False):
                yield from self.fields()
            yield Bar()

    def on_mount(self) -> None:
        self._frame()
        self.query(Field).first().focus_control()
        self.run_worker(self._restore, group="naming", thread=True, exit_on_error=False)

    def _frame(self, note: str = "") -> None:
        self.query_one(Bar).show((Button("F2", "preview", "preview"), Button("Esc", "back", "back")), note)

    def _restore(self) -> None:
        saved = self._drafts.load(self.root, self._draft)
        if saved is not None:
            self.post_message(self.Restored(saved))

    def on_naming_form_restored(self, message: NamingForm.Restored) -> None:
        for field in self.query(Field):
            field.restore(message.saved.fields.get(field.key))
        self._frame("draft restored")

    def line(self, key: str) -> str:
        """What a line field says."""
        return self.query_one(f"#field-{key}", LineField).text

    def items(self, key: str) -> tuple[str, ...]:
        """The entries of a list field."""
        return tuple(self.query_one(f"#field-{key}", AreaField).items)

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
        save = partial(self._drafts.save, self.root, self._draft, values, {}, self.clock.now(), self._count)
        self.app.run_worker(save, group="drafts", thread=True, exit_on_error=False)

    def action_back(self) -> None:
        self._save()
        self.dismiss(None)

    def action_preview(self) -> None:
        for field in self.query(Field):
            field.fail(None)
        self.query_one(Problems).show([])
        make = self.deed()

        def check() -> None:
            try:
                self.post_message(self.Checked(make(), ()))
            except Refused as exc:
                self.post_message(self.Checked(None, exc.findings))

        self.run_worker(check, group="naming", thread=True, exclusive=True, exit_on_error=False)

    def on_naming_form_checked(self, message: NamingForm.Checked) -> None:
        if message.deed is not None:
            self.app.push_screen(ConfirmScreen(message.deed), self._confirmed)
            return
        rest, failed = [], []
        for finding in message.findings:
            field = next((one for one in self.query(Field) if finding.where in one.where and not one.failed), None)
            if field is None:
                rest.append(finding)
            else:
                field.fail(finding.cause)
                failed.append(field)
        self.query_one(Problems).show(rest)
        if failed:
            failed[0].focus_control()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        event.stop()
        if event.state is WorkerState.ERROR and event.worker.group == "naming":
            kind = type(event.worker.error).__name__
            cause = f"the form failed unexpectedly ({kind}: {inert(event.worker.error)}); what was typed is kept"
            self.post_message(self.Checked(None, (error("internal_error", cause),)))

    def _confirmed(self, said: str | None) -> None:
        if said is None:
            return
        self._over = True
        self._count += 1
        remove = partial(self._drafts.remove, self.root, self._draft, self._count)
        self.app.run_worker(remove, group="drafts", thread=True, exit_on_error=False)
        self.dismiss(said)

    def on_bar_pressed(self, message: Bar.Pressed) -> None:
        message.stop()
        self.run_worker(self.run_action(message.action), group="bar", exit_on_error=False)


def telling(seen: Seen) -> str:
    """A text that the signals of this code contain: the first line that tells what went wrong, normalised."""
    return rules.normalise(rules.telling(seen.signal))[:120].strip()


class PromoteForm(NamingForm):
    """Code, layer, what its signals contain, cause, next command."""

    HEADING = "Promote an unknown failure"
    FORM = "promote"

    def fields(self) -> list[Field]:
        seen = self.seen
        yes_no = [Choice("yes", "yes", "trying again may help"), Choice("no", "no", "trying again is useless")]
        return [
            LineField("code", "Code", "its name from now on, words_with_underscores", ("--code",)),
            LineField("layer", "Layer", "where it belongs", ("--layer",), value=seen.layer or ""),
            AreaField("match", "Match", "one a line: texts that its signals contain", ("--match",), telling(seen)),
            LineField("cause", "Cause", "what is wrong, one sentence", ("--cause",)),
            LineField("next", "Next command", "exact and runnable; blank for none", ("--next-command",)),
            ChoiceField("recoverable", "Recoverable", yes_no, value="yes"),
            AreaField("not_this", "Not this", "one a line: what it is not", ("--not-this",)),
        ]

    def deed(self) -> Callable[[], Deed]:
        recoverable = self.query_one("#field-recoverable", ChoiceField).choice
        wish = Wish(
            self.line("code"),
            self.line("layer"),
            self.items("match"),
            self.line("cause"),
            self.line("next") or None,
            recoverable is None or recoverable.id == "yes",
            self.items("not_this"),
        )
        return partial(promotion, self.root, self.seen, wish, self.by, self.clock)


def promotion(root: Path, seen: Seen, wish: Wish, by: str | None, clock: Clock) -> Deed:
    """A promotion that would work now. Raises Refused with every reason against it."""
    place = Place(root)
    if not wish.match:
        raise Refused(error("field_missing", "a required field is missing: --match", None, "--match"))
    made = store.check_promotion(place, seen.code, wish)
    entry = [
        f"{key}: {', '.join(value) if isinstance(value, list) else value}" for key, value in wish.as_json().items()
    ]
    words = ["collab", "triage", "promote", seen.code, "--root", str(root), "--code", wish.code, "--layer", wish.layer]
    for text in wish.match:
        words += ["--match", text]
    words += ["--cause", wish.cause]
    words += ["--next-command", wish.next_command] if wish.next_command is not None else ["--no-next-command"]
    words += [] if wish.recoverable else ["--not-recoverable"]
    for text in wish.not_this:
        words += ["--not-this", text]

    def do() -> str:
        store.promote(place, seen.code, wish, by, clock)
        return f"{seen.code} is {wish.code} from now on"

    sections = (
        ("Writes", (made.catalog, str(root / TRIAGE / seen.code / RESOLUTION))),
        ("The last entry of the catalogue", entry),
        ("Effect", (f"{seen.sightings} recorded sightings of {seen.code} are {wish.code}; it waits no longer",)),
    )
    return Deed(seen.code, sections, shlex.join(words), do)


class AliasForm(NamingForm):
    """Choose the entry that a minted code means."""

    HEADING = "Alias of a code that exists"
    FORM = "alias"

    def fields(self) -> list[Field]:
        return [
            LineField("find", "Find a code", "narrows the list below"),
            ChoiceField("code", "It means", self._matching(""), where=(rules.CATALOG, "--code")),
        ]

    def _matching(self, text: str) -> list[Choice]:
        from core.triage.view import entries

        return [Choice(one.code, one.code, one.cause) for one in entries(self.catalog, None, text)[:SHOWN]]

    def on_field_changed(self, event: Field.Changed) -> None:
        if event.field.key == "find":
            self.query_one("#field-code", ChoiceField).set_choices(self._matching(self.line("find")))
        super().on_field_changed(event)

    def on_naming_form_restored(self, message: NamingForm.Restored) -> None:
        find = message.saved.fields.get("find")
        if isinstance(find, str):
            self.query_one("#field-code", ChoiceField).set_choices(self._matching(find.strip()))
        super().on_naming_form_restored(message)

    def deed(self) -> Callable[[], Deed]:
        choice = self.query_one("#field-code", ChoiceField).choice
        return partial(aliasing, self.root, self.seen, choice.id if choice is not None else "", self.by, self.clock)


def aliasing(root: Path, seen: Seen, code: str, by: str | None, clock: Clock) -> Deed:
    """An alias that would work now. Raises Refused with every reason against it."""
    place = Place(root)
    catalog = place.load()
    found = [
        error(fault, cause, None, "--code") for fault, cause in rules.alias_faults(seen.code, code, catalog.by_code)
    ]
    if found:
        raise Refused(*found)

    def do() -> str:
        store.alias(place, seen.code, code, by, clock)
        return f"{seen.code} means {code} from now on"

    sections = (
        ("Writes", (str(place.target()), str(root / TRIAGE / seen.code / RESOLUTION))),
        ("Alias", (f"{seen.code}: {code}", catalog.by_code[code].cause)),
        ("Effect", (f"its signals are {code}; it waits no longer",)),
    )
    words = ["collab", "triage", "alias", seen.code, code, "--root", str(root)]
    return Deed(seen.code, sections, shlex.join(words), do)


def recording(root: Path, signal: str, layer: str | None, catalog: Catalog, by: str | None, clock: Clock) -> Deed:
    """Observing a signal: one line, and what an unknown one leaves the first time. Raises Refused."""
    report = rules.classify(signal, layer, catalog)

    def do() -> str:
        made = store.observe(Place(root), signal, layer, by, clock)
        return f"{made.report.code}: {made.sightings} sighting{'s' if made.sightings != 1 else ''}"

    writes = [f"one line of {root / OBSERVATIONS}"]
    if report.ambiguous:
        writes.append(f"ticket, evaluation case and memory below {root / TRIAGE / report.code}, unless they are there")
    lines = signal.splitlines()
    shown = [*lines[:8], f"and {len(lines) - 8} more lines"] if len(lines) > 9 else lines
    words = ["collab", "triage", "observe", "--receipt", "-", "--root", str(root)]
    words += ["--layer", layer] if layer else []
    effect = (
        "one more sighting; from the second on the inbox asks for a name" if report.ambiguous else "one more sighting"
    )
    sections = (("Writes", writes), ("Signal", shown), ("Code", (report.code, report.cause)), ("Effect", (effect,)))
    return Deed(str(root), sections, shlex.join(words), do, ", given the signal on standard input")
