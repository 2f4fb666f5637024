"""`5`: from a signal to one code, one cause, one next command (docs/specs/console.md §2, Triage)."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from pathlib import Path

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static, TextArea

from core.clock import parse
from core.evidence import Vocabulary
from core.finding import Finding, Refused
from core.inbox import InboxItem
from core.sanitize import inert
from core.strict import read
from core.triage import rules
from core.triage.model import Entry, Report, Seen
from core.triage.view import entries
from tui.action import TRIAGE
from tui.actions import BY_ID
from tui.forms.drafts import Drafts
from tui.forms.fields import AREA_CAP, SafeArea, editable_text
from tui.forms.naming import AliasForm, NamingForm, PromoteForm, recording
from tui.legal import Context
from tui.screens.ask import AskScreen
from tui.screens.choose import Choice, ChooseScreen
from tui.screens.find import FindBar
from tui.screens.frame import bindings
from tui.screens.listing import AGE, ListScreen, Table, age
from tui.when import when
from tui.widgets.glyphs import State, palette
from tui.widgets.pane import Pane, Sheet
from tui.widgets.rows import Cell, Column, Heading, Row, RowList

STANDING = {
    "recurring": (State.MINE, "recurring"),
    "new": (State.UNKNOWN, "new"),
    "promoted": (State.DONE, "promoted"),
    "aliased": (State.DONE, "aliased"),
}
LAYERS = ("acp", "delegation", "workflow", "envelope", "status", "triage", "console", "files")
GROUPS = (("Waiting for a name", ("recurring",)), ("Met once", ("new",)), ("Settled", ("promoted", "aliased")))
SETTLE = 0.15
"""Seconds without a key after which a signal is classified."""
_CODE, _ENTRY = "code:", "entry:"


class TriageScreen(ListScreen):
    """A signal and what it is; below, what was met in this workspace, or the catalogue."""

    WHERE = TRIAGE
    BINDINGS = bindings(TRIAGE)
    COLUMNS = (
        Column("state", min=11, max=11),
        AGE,
        Column("count", min=5, max=8, align="right", priority=1),
        Column("code", min=24, max=56),
        Column("cause", min=16, max=90, grow=1, priority=3),
        Column("root", min=8, max=30, priority=4),
    )

    class Classified(Message):
        """The signal was classified, or why it cannot be."""

        def __init__(self, text: str, report: Report | None, problem: Finding | None) -> None:
            super().__init__()
            self.text, self.report, self.problem = text, report, problem

    class Opened(Message):
        """A file was read, or why it cannot be."""

        def __init__(self, text: str, problem: Finding | None) -> None:
            super().__init__()
            self.text, self.problem = text, problem

    def __init__(self) -> None:
        super().__init__()
        self._catalogue = False
        self._layer: str | None = None
        self._report: Report | None = None
        self._problem: Finding | None = None
        self._about_signal = False
        self._go_to: str | None = None

    def body(self) -> ComposeResult:
        yield Static(Content(""), id="headline")
        area = SafeArea("", soft_wrap=True, show_line_numbers=False, tab_behavior="focus", id="signal")
        area.highlight_cursor_line = False
        area.border_title = "Signal"
        yield area
        yield Pane(id="report")
        yield Table(self.COLUMNS, id="rows")
        yield FindBar("filter")

    def on_screen_resume(self) -> None:
        self.console_app.reading.want_vocabulary()
        super().on_screen_resume()

    # What is known.

    @property
    def vocabularies(self) -> list[Vocabulary]:
        """One for each workspace with failure codes; the first is where signals are recorded."""
        home = self.console_app.reading.home
        found = [view for view in self.console_app.stores if isinstance(view, Vocabulary)]
        return sorted(found, key=lambda view: (view.root != home, str(view.root)))

    @property
    def vocabulary(self) -> Vocabulary | None:
        """The one of this workspace, once it was read."""
        return next(iter(self.vocabularies), None)

    @property
    def _area(self) -> SafeArea:
        return self.query_one("#signal", SafeArea)

    @property
    def signal(self) -> str:
        """What stands in the field."""
        return self._area.text if self.is_mounted else ""

    def _seen(self, id: str) -> tuple[Vocabulary, Seen] | None:
        for view in self.vocabularies:
            for seen in view.codes:
                if id == _row_id(view, seen):
                    return view, seen
        return None

    def _entry(self, id: str) -> Entry | None:
        view = self.vocabulary
        known = view.catalog.by_code if view is not None and view.catalog is not None else {}
        return known.get(id.removeprefix(_ENTRY)) if id.startswith(_ENTRY) else None

    def subject(self) -> tuple[Vocabulary, Seen] | None:
        """The minted code in question: the signal's while that is shown, else the row's; None when it is none here."""
        if self._about_signal:
            view, report = self.vocabulary, self._report
            if view is None or report is None:
                return None
            seen = next((one for one in view.codes if one.code == report.minted), None)
            return (view, seen) if seen is not None else None
        row = self.rows.row
        return self._seen(row.id) if row is not None else None

    def context(self) -> Context:
        base = super().context()
        if not self.is_mounted:
            return base
        found = self.subject()
        minted, settled = (found[1].code, "") if found is not None else (None, "")
        if found is None and self._about_signal and self._report is not None and self._report.ambiguous:
            minted, settled = self._report.code, "record it first (o): nobody has met it here"
        if found is not None and found[1].target is not None:
            settled = f"it is {found[1].status} already: {found[1].target}"
        return Context(
            TRIAGE,
            me=self.me(),
            row=base.row,
            waiting=base.waiting,
            signal=bool(self.signal.strip()),
            obstacle=self._problem.cause if self._problem is not None else "",
            minted=minted,
            settled=settled,
        )

    # Drawing.

    def make_rows(self, needle: str) -> list[Row | Heading]:
        return self._entry_rows(needle) if self._catalogue else self._code_rows(needle)

    def _code_rows(self, needle: str) -> list[Row | Heading]:
        many, now = len(self.vocabularies) > 1, self.console_app.clock.now()
        made: list[Row | Heading] = []
        for title, wanted in GROUPS:
            rows = []
            for view in self.vocabularies:
                for seen in view.codes:
                    if seen.status not in wanted or (needle and needle not in _haystack(seen)):
                        continue
                    state, word = STANDING[seen.status]
                    told = seen.target or rules.telling(seen.signal)
                    rows.append(
                        Row(
                            _row_id(view, seen),
                            (
                                Cell(word, state),
                                Cell(age(_moment(seen), now), role="muted"),
                                Cell(f"{seen.sightings}"),
                                Cell(seen.code),
                                Cell(told, role="muted"),
                                Cell(str(view.root) if many else "", role="muted"),
                            ),
                            dim=seen.target is not None,
                        )
                    )
            if rows:
                made += [Heading(title, len(rows)), *rows]
        return made

    def _entry_rows(self, needle: str) -> list[Row | Heading]:
        view = self.vocabulary
        if view is None or view.catalog is None:
            return []
        return [
            Row(
                _ENTRY + entry.code,
                (
                    Cell(entry.layer, role="muted"),
                    Cell(""),
                    Cell(""),
                    Cell(entry.code),
                    Cell(entry.cause, role="muted"),
                ),
            )
            for entry in entries(view.catalog, self._layer if self._catalogue else None, needle)
        ]

    def headline(self) -> Text:
        colours, view = palette(self.app), self.vocabulary
        text = Text.assemble(("Triage", colours.strong), no_wrap=True, end="")
        text.append(f"  layer {inert(self._layer)}" if self._layer else "  any layer", colours.muted)
        if view is None:
            text.append("  reading", colours.muted)
        else:
            shown = "catalogue" if self._catalogue else "met here"
            text.append(f"  {shown} {len(self.rows.rows)}", colours.muted)
            for problem in view.findings[:1]:
                text.append(f"  {inert(problem.cause)}", colours.warn)
        return text

    def empty(self) -> str:
        if self.vocabulary is None:
            return "Reading the vocabulary"
        if self._catalogue:
            return "The catalogue in use cannot be read; the line above says why."
        return "No unknown failure was met here.\nPress s to type or paste a signal, t for the catalogue."

    def listed(self) -> None:
        if not self.is_mounted:
            return
        super().listed()
        if self._go_to is not None and self.rows.move_to_id(self._go_to):
            self._go_to, self._about_signal = None, False
            self._show_detail()
            self.frame()

    def _show_detail(self) -> None:
        pane = self.query_one("#report", Pane)
        pane.show(self._sheet)

    def _sheet(self, width: int) -> list[Text]:
        colours = palette(self.app)
        made = Sheet(width, colours.muted, colours.text, colours.code)
        row = self.rows.row
        if self._about_signal and self.signal.strip():
            self._say_signal(made)
        elif row is not None and (known := self._seen(row.id)) is not None:
            self._say_seen(made, known[1])
        elif row is not None and (entry := self._entry(row.id)) is not None:
            self._say_report(made, Report.of(entry, entry.match), "match")
        elif self.vocabulary is not None and self.vocabulary.findings:
            for found in self.vocabulary.findings:
                made.put(found.severity, f"{found.cause} ({found.code})", colours.warn)
        else:
            made.title("s: type or paste the message of a failure, f: take it from a file.")
        return made.lines

    def _say_signal(self, made: Sheet) -> None:
        colours = palette(self.app)
        if self._problem is not None:
            made.put("refused", self._problem.cause, colours.failed)
            if self._problem.next_command:
                made.command("next", self._problem.next_command)
        elif self._report is None:
            made.title("Classifying")
        else:
            self._say_report(made, self._report, "matched")
            found = self.subject()
            if found is not None:
                self._say_sightings(made, found[1])

    def _say_report(self, made: Sheet, report: Report, word: str) -> None:
        colours = palette(self.app)
        fresh = "  (new: nobody has named it yet)" if report.ambiguous else ""
        made.put("code", report.code + fresh, colours.strong)
        made.put("cause", report.cause)
        if report.next_command:
            made.command("next", report.next_command)
        made.put("layer", report.layer or "any")
        if report.matched_tokens:
            made.put(word, report.matched_tokens)
        if report.recoverable is not None:
            made.put("recover", "yes" if report.recoverable else "no, trying again is useless")
        if report.not_this:
            made.put("not this", report.not_this)

    def _say_seen(self, made: Sheet, seen: Seen) -> None:
        colours = palette(self.app)
        made.put("code", seen.code, colours.strong)
        self._say_sightings(made, seen)
        made.put("signal", seen.signal.splitlines()[:12] or [""])

    def _say_sightings(self, made: Sheet, seen: Seen) -> None:
        if seen.target is not None:
            made.put("settled", f"{seen.status}: {seen.target}")
        elif seen.status == "recurring":
            promote, alias = (self.console_app.keys.shown(BY_ID[name]) for name in ("promote", "alias"))
            made.put("waits", f"for a name: {promote} promotes it to a code, {alias} makes it mean one that exists")
        now = self.console_app.clock.now()
        made.put("sightings", f"{seen.sightings}" + (f", the last by {seen.by}" if seen.by else ""))
        made.put("first", when(seen.first_seen, now))
        if seen.sightings > 1:
            made.put("last", when(seen.last_seen, now))

    # The signal.

    @on(TextArea.Changed, "#signal")
    def typed(self, event: TextArea.Changed) -> None:
        event.stop()
        self._about_signal, self._report, self._problem = True, None, None
        self.set_timer(SETTLE, partial(self._classify, self.signal))

    def _classify(self, text: str) -> None:
        """Classify what is typed, unless typing went on; a long signal takes its time in a thread."""
        view = self.vocabulary
        if text != self.signal or view is None or view.catalog is None:
            return
        layer, catalog = self._layer, view.catalog

        def classify() -> None:
            try:
                self.post_message(self.Classified(text, rules.classify(text, layer, catalog), None))
            except Refused as exc:
                self.post_message(self.Classified(text, None, exc.findings[0]))

        if text.strip():
            self.run_worker(classify, group="act", exclusive=True, thread=True, exit_on_error=False)
        else:
            self._about_signal = False
            self._show_detail()
            self.frame()

    def on_triage_screen_classified(self, message: TriageScreen.Classified) -> None:
        if message.text == self.signal:
            self._report, self._problem = message.report, message.problem
            self._show_detail()
            self.frame()

    def on_triage_screen_opened(self, message: TriageScreen.Opened) -> None:
        if message.problem is not None:
            self.console_app.tell(message.problem)
        else:
            self._put(message.text)
            self._area.focus()

    def _put(self, text: str) -> None:
        self._area.load_text(editable_text(text[:AREA_CAP]))

    @on(RowList.RowHighlighted)
    def highlighted(self, event: RowList.RowHighlighted) -> None:
        if self.rows.has_focus:
            self._about_signal = False
        super().highlighted(event)

    async def chosen(self, id: str) -> None:
        found = self._seen(id)
        if found is not None:
            self._layer = found[1].layer
            self._put(found[1].signal)

    # Actions.

    def do_signal(self) -> None:
        self._area.focus()

    def on_paste(self, event: events.Paste) -> None:
        """What is pasted while no field has the focus is a signal."""
        if not isinstance(self.focused, (Input, TextArea)):
            self._area.focus()
            self._area.insert(editable_text(event.text))

    def do_open_signal(self) -> None:
        self.app.push_screen(AskScreen("Open a signal", "File", "a path; ~ is your home"), self._open)

    def _open(self, name: str | None) -> None:
        if not name:
            return

        def load() -> None:
            try:
                data = read(str(Path(name).expanduser()))
            except Refused as exc:
                self.post_message(self.Opened("", exc.findings[0]))
            else:
                self.post_message(self.Opened(data.decode("utf-8", "replace"), None))

        self.run_worker(load, group="act", thread=True, exit_on_error=False)

    def do_layer(self) -> None:
        view = self.vocabulary
        known = [entry.layer for entry in view.catalog.entries] if view is not None and view.catalog is not None else []
        known += [seen.layer for one in self.vocabularies for seen in one.codes if seen.layer]
        layers = dict.fromkeys((*LAYERS, *known))
        choices = [Choice("", "any", "every code is tried"), *(Choice(name, name) for name in layers)]
        self.app.push_screen(ChooseScreen("Layer", choices, self._layer or ""), self._set_layer)

    def _set_layer(self, name: str | None) -> None:
        if name is None:
            return
        self._layer = name or None
        self._report, self._problem = None, None
        self._about_signal = bool(self.signal.strip())
        self.listed()
        self._classify(self.signal)

    def do_catalogue(self) -> None:
        self._catalogue = not self._catalogue
        self._about_signal = False
        self.listed()
        self.rows.focus()

    def do_narrow(self) -> None:
        self.do_filter()

    def do_record(self) -> None:
        view, signal, layer, app = self.vocabulary, self.signal, self._layer, self.console_app
        if view is None or view.catalog is None:
            return
        root, catalog, me, clock = view.root, view.catalog, self.me(), app.clock
        self.confirm(lambda: recording(root, signal, layer, catalog, me, clock), self._recorded)

    def _recorded(self, _: str) -> None:
        view, report = self.vocabulary, self._report
        if view is not None and report is not None and report.minted is not None:
            self._catalogue = False
            self._go_to = f"{_CODE}{view.root}\n{report.minted}"
            self.rows.focus()

    def do_promote(self) -> None:
        self._settle(PromoteForm)

    def do_alias(self) -> None:
        self._settle(AliasForm)

    def _settle(self, form: type[NamingForm]) -> None:
        found, app = self.subject(), self.console_app
        if found is None or found[0].catalog is None:
            return
        view, seen = found
        catalog = view.catalog
        assert catalog is not None  # noqa: S101 - checked above; this tells the type checker
        app.clear_notifications()
        app.push_screen(form(view.root, seen, catalog, self.me(), Drafts(app.user_state), app.clock), self._named)

    def _named(self, said: str | None) -> None:
        self.done(said, lambda _: self._classify(self.signal))

    def shows(self, item: InboxItem) -> bool:
        found = self.subject()
        return item.kind == "triage" and found is not None and (found[0].root, found[1].code) == (item.path, item.title)

    def go_to(self, item: InboxItem) -> None:
        """Show a minted code of a workspace, now or once it was read."""
        self._catalogue = False
        self._go_to = f"{_CODE}{item.path}\n{item.title}"
        self.rows.focus()
        self.listed()

    def do_back(self) -> object:
        if self._area.has_focus:
            self.rows.focus()
            return None
        return super().do_back()


def _row_id(view: Vocabulary, seen: Seen) -> str:
    return f"{_CODE}{view.root}\n{seen.code}"


def _haystack(seen: Seen) -> str:
    return "\n".join((seen.code, seen.layer or "", seen.signal, seen.target or "")).casefold()


def _moment(seen: Seen) -> datetime | None:
    return parse(seen.last_seen)
