"""Panes of the collaboration screen that are no plain document: findings, deliverables, the rail of panels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from core.acp.declare import generated_gates
from core.acp.documents import deliverable_status, scan_decisions, section_filled
from core.acp.model import LOG, Deliverable, Deliverables, Document, Event
from core.acp.view import NextAction
from core.clock import duration
from core.finding import Finding
from core.sanitize import cells, inert
from core.workspace import Item
from tui.desk import FolderView
from tui.widgets.document import DocumentView
from tui.widgets.glyphs import State, glyphs, palette
from tui.widgets.panels import GatesPanel, NextPanel, WaitingPanel
from tui.widgets.rows import Cell, Column, Heading, Row, RowList
from tui.widgets.text import fit_str

_PLACE = re.compile(r"^(?P<file>[^#]+)#line (?P<line>\d+)$")


def place_of(where: str | None) -> tuple[str, int | None]:
    """(file, line) of a finding's `where`; an empty file when it names none."""
    found = _PLACE.match(where or "")
    return (found["file"], int(found["line"])) if found and len(found["line"]) < 10 else (where or "", None)


MANY = 2000
"""Findings that are listed; a folder with more of them has one cause for most."""


REASON = 160
"""Cells of the reason of a block that are shown beside what is next; the log has all of it."""


class Loading(Static):
    """What the list knows of a folder, while it is being read."""

    def __init__(self) -> None:
        super().__init__(Content("Reading the folder"), id="loading")

    def show(self, item: Item) -> None:
        """Objective and who is waited for."""
        colours = palette(self.app)
        names = ", ".join(inert(name) for name in item.waiting_for)
        text = Text.assemble((inert(item.title), colours.strong), "\n\n")
        text.append(f"waits for {names}\n\n" if names else "", colours.text)
        self.update(text.append("Reading the folder", colours.muted))


class Panels(VerticalScroll):
    """Next, waiting, gates: the right rail, or the tab `Now` where there is no room for a rail."""

    def compose(self) -> ComposeResult:
        yield NextPanel()
        yield WaitingPanel()
        yield GatesPanel()

    def show(self, view: FolderView, keys: Sequence[tuple[str, str]], now: datetime) -> None:
        """The three panels for a view; `keys` are (key, label) of what can be done, the next action first."""
        self.query_one(NextPanel).show(next_of(view), keys, tone_of(view))
        self.query_one(WaitingPanel).show(view.people, view.me, now)
        self.query_one(GatesPanel).show(view.gates)


def log_problem(view: FolderView) -> Finding | None:
    """Why the log takes no more events; a torn last line is no reason, the next writer sets it aside."""
    wrong = (item for item in view.findings if item.severity == "error" and place_of(item.where)[0] == LOG)
    return next((item for item in wrong if item.code not in ("log_torn", "event_after_terminal")), None)


def tone_of(view: FolderView) -> State:
    """How what is next is marked where it is not this person's turn."""
    stopped = view.past is None and (view.state.phase == "blocked" or log_problem(view) is not None)
    return State.FAILED if stopped else State.UNKNOWN


def next_of(view: FolderView) -> NextAction:
    """The next action, or what must be said before there can be one."""
    if view.next is not None and view.past is None:
        problem, last = log_problem(view), next(reversed(view.snapshot.events), None)
        if problem is not None:
            text = f"nothing can be appended: {problem.cause}. The tab Findings shows all."
            return NextAction(text, None, problem.next_command)
        if view.state.phase == "blocked" and last is not None and last.name == "blocked" and last.summary:
            text = f"blocked by {last.actor}: {fit_str(last.summary, REASON)} - {view.next.text}"
            return NextAction(text, None, view.next.command)
    if view.next is not None:
        return view.next
    if view.setup is None:
        problem = next(iter(view.findings), None)
        return NextAction(problem.cause if problem is not None else "this folder cannot be read.", None, None)
    return NextAction("say who you are: press w.", None, None)


class Summary(Widget):
    """The rail folded into one line, for screens without room for it: what is next, who is waited for, the gates."""

    def __init__(self) -> None:
        super().__init__(id="summary")
        self._view: FolderView | None = None
        self._label, self._key = "", ""
        self._now: datetime | None = None

    def show(self, view: FolderView, label: str, key: str, now: datetime) -> None:
        """`label` and `key` are those of the next action when it is this person's turn, else empty."""
        self._view, self._label, self._key, self._now = view, label, key, now
        self.refresh()

    def render(self) -> Text:
        view = self._view
        if view is None:
            return Text("")
        colours, signs = palette(self.app), glyphs(self.app)
        width = max(10, self.size.width)
        text = Text(no_wrap=True, end="")
        if self._label:
            text.append(f"{signs.state(State.MINE)} Your turn: {self._label}", colours.accent)
            text.append(f"  {self._key}", colours.strong)
        else:
            tone, said = tone_of(view), inert(next_of(view).text)
            if tone is State.FAILED:
                text.append(f"{signs.state(tone)} ", colours.state(tone))
            text.append(fit_str(said[:1].upper() + said[1:], width - text.cell_len, signs.cut), colours.text)
        right = self._right(view, signs.dot, signs.cut, width - text.cell_len - 2)
        text.append(" " * max(0, width - text.cell_len - cells(right)))
        text.append(right, colours.muted)
        return text

    def _right(self, view: FolderView, dot: str, cut: str, room: int) -> str:
        waits = [person for person in view.people if person.waited_for and not (self._label and person.id == view.me)]
        parts = [f"waits for {', '.join(inert(person.id) for person in waits)}"] if waits else []
        since = next((person.since for person in view.people if person.since is not None), None)
        if since is not None and self._now is not None:
            parts.append(duration((self._now - since).total_seconds()))
        if view.gates:
            done = sum(gate.state == "done" for gate in view.gates)
            parts.append(f"gates {done}/{len(view.gates)}")
        return fit_str(f" {dot} ".join(parts), room, cut) if room >= 12 else ""


class EventDetail(Static):
    """Everything about the current event of the log, a line each."""

    def __init__(self) -> None:
        super().__init__(Content(""), id="event-detail", classes="detail")
        self._rows = 0

    def show(self, lines: Sequence[str]) -> None:
        """The screen is laid out anew only when more or fewer lines are needed."""
        room = self.content_size.width
        rows = len(lines) if all(cells(line) <= room for line in lines) else 0
        self.update(Text("\n".join(lines)), layout=not rows or rows != self._rows)
        self._rows = rows


class FindingsPane(Vertical):
    """All that validation says, errors first; below, the current one in full with the command that helps."""

    def compose(self) -> ComposeResult:
        columns = [
            Column("severity", min=7, max=9),
            Column("cause", min=36, grow=3),
            Column("where", min=16, max=28, priority=2),
            Column("code", min=20, max=28, priority=4),
        ]
        yield RowList(columns, id="finding-rows", empty="This folder is valid: no error, no warning.")
        yield Static(Content(""), id="finding-detail", classes="detail")

    def on_mount(self) -> None:
        self._findings: tuple[Finding, ...] = ()
        self._rows: list[Row] = []

    def show(self, findings: Sequence[Finding]) -> None:
        """Replace the rows when they are others."""
        if tuple(findings) == self._findings and findings:
            return
        before, self._findings = self._findings[:MANY], tuple(findings)
        if self._findings[:MANY] != before or not self._rows:
            self._rows = [_finding_row(str(index), one) for index, one in enumerate(self._findings[:MANY])]
        left = len(self._findings) - MANY
        more = [Heading(f"and {left} more; collab validate lists every one")] if left > 0 else []
        self.query_one(RowList).set_rows([*self._rows, *more])
        self._detail()

    @property
    def current(self) -> Finding | None:
        """The finding under the cursor."""
        row = self.query_one(RowList).row
        return self._findings[int(row.id)] if row is not None and int(row.id) < len(self._findings) else None

    @on(RowList.RowHighlighted)
    def moved(self, event: RowList.RowHighlighted) -> None:
        event.stop()
        self._detail()

    def _detail(self) -> None:
        one, colours = self.current, palette(self.app)
        text = Text("")
        if one is not None:
            text = Text.assemble((inert(one.cause), colours.text))
            text.append(f"\n{inert(one.code)}" + (f"  {inert(one.where)}" if one.where else ""), colours.muted)
            if one.next_command:
                text.append("\nnext  ", colours.muted)
                text.append(inert(one.next_command), colours.text)
        detail = self.query_one("#finding-detail", Static)
        detail.display = one is not None
        detail.update(text)


def _finding_row(id: str, one: Finding) -> Row:
    state = State.FAILED if one.severity == "error" else State.WARN
    cells = (Cell(one.severity, state), Cell(one.cause), Cell(one.where or "", role="muted"))
    return Row(id, (*cells, Cell(one.code, role="muted")))


class DeliverablesPane(Vertical):
    """Each declared deliverable with its status and sections; below, the text of the current one."""

    def compose(self) -> ComposeResult:
        columns = [
            Column("status", min=8, max=14),
            Column("ref", min=16, grow=2),
            Column("type", min=6, max=22, priority=2),
            Column("sections", min=6, max=18, priority=1),
            Column("decisions", min=4, max=24, priority=3),
        ]
        yield RowList(columns, id="deliverable-rows", empty="No deliverable is declared.")
        yield Static(Content(""), id="deliverable-detail", classes="detail")
        yield DocumentView(id="deliverable-text")

    def on_mount(self) -> None:
        self._view: FolderView | None = None

    def show(self, view: FolderView) -> None:
        """Rows and text for a view."""
        self._view = view
        declared = view.setup.deliverables if view.setup is not None else None
        rows: list[Row] = []
        if declared is not None:
            named = _decisions(view, declared)
            for role, item in (("primary", declared.primary), *(("supporting", one) for one in declared.supporting)):
                rows.append(self._row(view, declared, role, item, named))
            for file in declared.attachments:
                rows.append(self._attachment(view, declared.ref(file)))
        table = self.query_one(RowList)
        table.set_rows(rows)
        table.styles.height = max(2, min(len(rows) + 2, 7))
        self._text()

    def _row(
        self, view: FolderView, declared: Deliverables, role: str, item: Deliverable, named: dict[str, list[str]]
    ) -> Row:
        ref = declared.ref(item.file)
        document = view.snapshot.document(ref)
        state, word = standing(document, view.state.frozen if role == "primary" else item.frozen)
        filled = [section_filled(document.text, name) for name in item.sections]
        count = f"{sum(one is True for one in filled)}/{len(filled)} sections"
        decisions = ", ".join(named.get(ref, ())) or "-"
        cells = (Cell(word, state), Cell(ref), Cell(f"{role} {item.type}", role="muted"))
        return Row(ref, (*cells, Cell(count if item.sections else "", role="muted"), Cell(decisions, role="muted")))

    def _attachment(self, view: FolderView, ref: str) -> Row:
        there = view.snapshot.document(ref).data is not None
        state, word = (State.DONE, "there") if there else (State.FAILED, "missing")
        return Row(ref, (Cell(word, state), Cell(ref), Cell("attachment", role="muted"), Cell(""), Cell("")))

    @property
    def current(self) -> str | None:
        """The reference of the deliverable under the cursor."""
        row = self.query_one(RowList).row
        return row.id if row is not None else None

    @property
    def document(self) -> DocumentView:
        return self.query_one(DocumentView)

    @on(RowList.RowHighlighted)
    def moved(self, event: RowList.RowHighlighted) -> None:
        event.stop()
        self._text()

    @on(RowList.RowChosen)
    def chosen(self, event: RowList.RowChosen) -> None:
        event.stop()
        self.document.focus()

    def _text(self) -> None:
        ref = self.current
        if self._view is not None and ref is not None:
            document = self._view.snapshot.document(ref)
            self.document.show(document, empty=f"{inert(ref)} holds nothing yet.")
            self.document.border_title = Text(inert(ref))
            self.query_one("#deliverable-detail", Static).update(self._detail(self._view, ref, document))

    def _detail(self, view: FolderView, ref: str, document: Document) -> Text:
        """Sections and what each decision says of them; the digest once it is frozen; the generated gates."""
        colours, signs = palette(self.app), glyphs(self.app)
        declared = view.setup.deliverables if view.setup is not None else None
        item = declared.find(ref) if declared is not None else None
        text = Text("")
        if declared is None or item is None:
            return text
        traced = reflected(view, ref, item)
        for name in item.sections:
            filled = section_filled(document.text, name)
            state = State.DONE if filled else State.FAILED if filled is None else State.UNKNOWN
            text.append(f"{signs.state(state)} {inert(name)}", colours.text)
            text.append(f" {', '.join(traced[name])}" if traced.get(name) else "", colours.accent)
            text.append("  ")
        freeze = next((one for one in reversed(view.snapshot.events) if _freezes(one, ref)), None)
        if freeze is not None:
            same = document.sha256 == freeze.sha256
            text.append(f"\nfrozen at seq {freeze.seq}  sha256 {inert(freeze.sha256 or '')[:16]}", colours.muted)
            text.append("" if same else f"  {signs.state(State.FAILED)} the file has changed since", colours.failed)
        elif document.sha256 is not None:
            text.append(f"\nnot frozen  sha256 {document.sha256[:16]}", colours.muted)
        if ref == declared.primary_ref:
            ticked = {gate.text: gate.state for gate in view.gates}
            wanted = generated_gates(item.type, ref)
            done = sum(ticked.get(gate) == "done" for gate in wanted)
            text.append(f"  generated gates {done}/{len(wanted)}", colours.text)
            for gate in wanted:
                state = State.DONE if ticked.get(gate) == "done" else State.UNKNOWN
                text.append(f"\n{signs.state(state)} {inert(gate)}", colours.muted)
        return text


def standing(document: Document, frozen: bool) -> tuple[State, str]:
    """How a deliverable stands: by the log when it is frozen, else by its `Status:` line."""
    if document.data is None:
        return State.FAILED, "missing"
    if frozen:
        return State.DONE, "Frozen"
    said = deliverable_status(document.text)
    if said is None:
        return State.WARN, "no status"
    return (State.WAITING if said == "In Review" else State.UNKNOWN), said


def _freezes(event: Event, ref: str) -> bool:
    return event.name == "deliverable_frozen" and event.doc == ref


def reflected(view: FolderView, ref: str, item: Deliverable) -> dict[str, list[str]]:
    """Section to the decisions that name it behind the reference, as in `adr.md#context` or `adr.md` Context."""
    made: dict[str, list[str]] = {}
    for decision in scan_decisions(view.snapshot.document("decisions.md").text):
        for line in decision.body.splitlines():
            _, found, rest = line.partition(ref)
            if not found or "Reflected in:" not in line:
                continue
            for name in item.sections:
                if name.casefold() in rest.casefold() or f"#{_anchor(name)}" in rest.casefold():
                    made.setdefault(name, []).append(decision.id or "?")
    return made


def _anchor(heading: str) -> str:
    """How Markdown renderers name a heading in a link."""
    return re.sub(r"[^\w\- ]", "", heading.casefold()).replace(" ", "-")


def _decisions(view: FolderView, declared: Deliverables) -> dict[str, list[str]]:
    """Reference to the ids of the accepted decisions that say they are reflected in it."""
    made: dict[str, list[str]] = {}
    for decision in scan_decisions(view.snapshot.document("decisions.md").text):
        for ref in decision.reflected_in(declared):
            made.setdefault(ref, []).append(decision.id or "?")
    return made
