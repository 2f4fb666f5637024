"""`6`: receipts with their trust, the members and their graph, statuses (docs/specs/console.md §2, Ecosystem)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from core.clock import parse
from core.evidence import Receipts, Stated
from core.finding import Finding, Refused, errors
from core.governance import escalation, members, rules, view
from core.governance.model import STATUS_SCHEMA, Graph, Member, Membership
from core.governance.store import Kept
from core.governance.view import Trust
from core.inbox import InboxItem
from core.sanitize import inert
from core.strict import read
from core.triage.store import Place
from tui.action import ECOSYSTEM
from tui.legal import Context
from tui.screens.ask import AskScreen
from tui.screens.find import FindBar
from tui.screens.frame import bindings
from tui.screens.listing import AGE, ListScreen, Table, age
from tui.widgets.glyphs import State, glyphs, palette
from tui.widgets.pane import Pane, Sheet
from tui.widgets.rows import Cell, Column, Heading, Row

VIEWS = ("receipts", "statuses", "members", "graph")
LEVELS = {"trusted": State.DONE, "untrusted": State.FAILED, "invalid": State.FAILED}
ORDER = ("invalid", "untrusted", "trusted")
STANDINGS = {"done": State.DONE, "failed": State.FAILED, "continuing": State.LIVE, "needs_human": State.FAILED}


class EcosystemScreen(ListScreen):
    """Who owns what, and which hand-overs of this workspace can be trusted."""

    WHERE = ECOSYSTEM
    BINDINGS = bindings(ECOSYSTEM)
    COLUMNS = (
        Column("state", min=11, max=20),
        AGE,
        Column("name", min=16, max=60),
        Column("schema", min=12, max=32, priority=2),
        Column("producer", min=12, max=20, priority=3),
        Column("why", min=12, max=90, grow=1, priority=4),
    )

    class Rendered(Message):
        """A status file as lines and the command that it compiles to, or what is wrong with it."""

        def __init__(self, name: str, report: str, command: str | None, reason: str, found: Sequence[Finding]) -> None:
            super().__init__()
            self.name, self.report, self.command, self.reason, self.found = name, report, command, reason, tuple(found)

    class Mapped(Message):
        """The map that ships with the product."""

        def __init__(self, map: Membership | None, graph: Graph | None, problem: Finding | None) -> None:
            super().__init__()
            self.map, self.graph, self.problem = map, graph, problem

    def __init__(self) -> None:
        super().__init__()
        self._view = 0
        self._map: Membership | None = None
        self._graph: Graph | None = None
        self._status: EcosystemScreen.Rendered | None = None
        self._go_to: str | None = None

    def body(self) -> ComposeResult:
        yield Static(Content(""), id="headline")
        yield Table(self.COLUMNS, id="rows")
        yield Pane(id="report")
        yield FindBar("filter")

    def on_mount(self) -> None:
        super().on_mount()
        self.run_worker(self._load, group="act", thread=True, exit_on_error=False)

    def _load(self) -> None:
        try:
            self.post_message(self.Mapped(members.shipped_members(), members.shipped_graph(), None))
        except Refused as exc:
            self.post_message(self.Mapped(None, None, exc.findings[0]))

    def on_ecosystem_screen_mapped(self, message: EcosystemScreen.Mapped) -> None:
        self._map, self._graph = message.map, message.graph
        if message.problem is not None:
            self.console_app.tell(message.problem)
        self.listed()

    # What is known.

    @property
    def receipts(self) -> list[Receipts]:
        """One for each workspace that keeps receipts."""
        return [one for one in self.console_app.stores if isinstance(one, Receipts)]

    def _trust(self, id: str) -> tuple[Receipts, Trust] | None:
        for store in self.receipts:
            for item in store.known:
                if _row_id(store, item) == id:
                    return store, item
        return None

    def _stated(self, id: str) -> Stated | None:
        for store in self.receipts:
            for item in store.statuses:
                if _status_id(store, item.kept) == id:
                    return item
        return None

    def _member(self, id: str) -> Member | None:
        rows = self._map.members if self._map is not None else []
        return next((item for item in rows if item.component == id), None)

    @property
    def shown(self) -> str:
        """Which of the views is on."""
        return VIEWS[self._view]

    # Drawing.

    def make_rows(self, needle: str) -> list[Row | Heading]:
        if self.shown == "receipts":
            return self._receipt_rows(needle)
        if self.shown == "statuses":
            return self._status_rows(needle)
        if self.shown == "members":
            return [
                Row(item.component, (Cell(""), Cell(""), Cell(item.component), Cell(""), Cell(""), Cell(item.owns)))
                for item in (self._map.members if self._map is not None else [])
                if not needle or needle in f"{item.component}\n{item.owns}\n{item.must}".casefold()
            ]
        lines = view.tree(self._graph).splitlines() if self._graph is not None else []
        return [
            Row(f"graph:{number}", (Cell(""), Cell(""), Cell(self._drawn(line))))
            for number, line in enumerate(lines)
            if not needle or needle in line.casefold()
        ]

    def _drawn(self, line: str) -> str:
        if not glyphs(self.app).ascii:
            return line
        for sign, plain in (("└", "`"), ("├", "|"), ("─▶", "->"), ("┄▷", "~>")):
            line = line.replace(sign, plain)
        return line

    def _receipt_rows(self, needle: str) -> list[Row | Heading]:
        now = self.console_app.clock.now()
        made: list[Row | Heading] = []
        for level in ORDER:
            rows = []
            for store in self.receipts:
                for item in store.known:
                    if item.level != level or (needle and needle not in _haystack(item)):
                        continue
                    envelope = item.receipt.envelope
                    since = parse(envelope.emitted_at) if envelope is not None else None
                    rows.append(
                        Row(
                            _row_id(store, item),
                            (
                                Cell(level, LEVELS[level]),
                                Cell(age(since, now), role="muted"),
                                Cell(str(item.receipt.id or item.receipt.file)),
                                Cell(envelope.payload_schema if envelope is not None else "", role="muted"),
                                Cell(envelope.producer if envelope is not None else "", role="muted"),
                                Cell(item.why, role="muted"),
                            ),
                        )
                    )
            if rows:
                made += [Heading(level.capitalize(), len(rows)), *rows]
        return made

    def _status_rows(self, needle: str) -> list[Row | Heading]:
        now = self.console_app.clock.now()
        made: list[Row | Heading] = []
        for store in self.receipts:
            for item in (one.kept for one in store.statuses):
                status = item.made
                word = status.state if status is not None else "invalid"
                goal = status.goal if status is not None else ""
                if needle and needle not in f"{item.file}\n{goal}\n{word}".casefold():
                    continue
                problem = next(iter(errors(item.findings)), None)
                asked = status.needs_human if status is not None else None
                why = asked.action if asked is not None else problem.cause if problem is not None else goal
                cells = (
                    Cell(word, STANDINGS.get(word, State.FAILED if status is None else State.WAITING)),
                    Cell(age(item.since, now), role="muted"),
                    Cell(item.file),
                    Cell(STATUS_SCHEMA, role="muted"),
                    Cell("", role="muted"),
                    Cell(why, role="muted"),
                )
                made.append(Row(_status_id(store, item), cells))
        # What asks for a person comes first.
        return sorted(made, key=lambda row: row.cells[0].text != "needs_human" if isinstance(row, Row) else True)

    def headline(self) -> Text:
        colours = palette(self.app)
        text = Text.assemble(("Ecosystem", colours.strong), no_wrap=True, end="")
        for name in VIEWS:
            text.append(f"  {name}", colours.accent if name == self.shown else colours.muted)
        problem = next((found for store in self.receipts for found in store.findings), None)
        if problem is not None:
            text.append(f"  {inert(problem.cause)}", colours.warn)
        return text

    def empty(self) -> str:
        if self.shown == "statuses":
            return (
                "No status lies among the receipts of this workspace.\n"
                "Agents leave one where they stop: receipts/NAME.json. Press f to look at a file elsewhere."
            )
        if self.shown != "receipts":
            return "Reading the map"
        return (
            "No receipt lies in this workspace yet: acceptances, closures and blocks leave them.\n"
            "Press t for the members and their graph, f to look at a status."
        )

    def listed(self) -> None:
        if not self.is_mounted:
            return
        super().listed()
        if self._go_to is not None and self.rows.move_to_id(self._go_to):
            self._go_to = None
            self._show_detail()

    def _show_detail(self) -> None:
        report = self.query_one("#report", Pane)
        # The graph is whole by itself.
        report.display = self.shown != "graph" or self._status is not None
        report.show(self._sheet)

    def _sheet(self, width: int) -> list[Text]:
        colours = palette(self.app)
        made = Sheet(width, colours.muted, colours.text, colours.code)
        row = self.rows.row
        if self._status is not None:
            self._say_status(made, self._status)
        elif row is not None and (found := self._trust(row.id)) is not None:
            self._say_receipt(made, *found)
        elif row is not None and (stated := self._stated(row.id)) is not None:
            kept = stated.kept
            report = view.report(kept.made) if kept.made is not None else ""
            said = self.Rendered(kept.file, report, stated.command, stated.reason, kept.findings)
            self._say_status(made, said)
        elif row is not None and (member := self._member(row.id)) is not None:
            made.put("component", member.component, colours.strong)
            made.put("owns", member.owns)
            made.put("emits", member.emits or ["none"])
            made.put("consumes", member.consumes or ["none"])
            made.put("must", member.must)
        return made.lines

    def _say_receipt(self, made: Sheet, store: Receipts, item: Trust) -> None:
        colours, signs = palette(self.app), glyphs(self.app)
        made.put("receipt", str(item.receipt.id or item.receipt.file), colours.strong)
        made.put("trust", f"{item.level}: {item.why}" if item.why else item.level)
        envelope = item.receipt.envelope
        if envelope is not None:
            made.put("goal", envelope.goal_hash or "none")
            if envelope.triage_code:
                made.put("failure", envelope.triage_code)
        lines = []
        for branch in view.ancestry(str(item.receipt.id), store.known):
            state = LEVELS[branch.trust.level] if branch.trust is not None else State.FAILED
            said = branch.trust.level if branch.trust is not None else "missing, or more than one"
            lines.append(f"{'  ' * branch.depth}{signs.state(state)} {branch.receipt_id}  {said}")
        made.put("parents", lines)
        for parent in item.parents:
            failed = [name for name, value in parent.checks.items() if value == "fail"]
            if failed:
                made.put("checks", f"{parent.receipt_id}: {', '.join(failed)} failed")
        command = next((one.command for one in view.inbox_items(store.root, [item])), None)
        if command is not None:
            made.command("next", command)

    def _say_status(self, made: Sheet, status: EcosystemScreen.Rendered) -> None:
        colours = palette(self.app)
        made.put("status", status.name, colours.strong)
        for found in status.found:
            made.put(found.severity, f"{found.cause} ({found.code})", colours.warn)
        for line in status.report.splitlines():
            made.title(line)
        made.put("reason", status.reason)
        if status.command is not None:
            made.command("command", status.command)

    def context(self) -> Context:
        base = super().context()
        return Context(ECOSYSTEM, me=base.me, row=base.row, waiting=base.waiting)

    # Actions.

    async def chosen(self, id: str) -> None:
        """A row is looked at below; there is nothing to open."""
        self.query_one("#report", Pane).focus()

    def do_next_view(self) -> None:
        self._view, self._status = (self._view + 1) % len(VIEWS), None
        self.listed()
        self.rows.focus()

    def do_narrow(self) -> None:
        self.do_filter()

    @on(Table.RowHighlighted)
    def moved(self) -> None:
        self._status = None

    def do_status_file(self) -> None:
        self.app.push_screen(AskScreen("Open a status", "File", "a path; ~ is your home"), self._open)

    def _open(self, name: str | None) -> None:
        home = self.console_app.reading.home
        if not name or home is None:
            return

        def load() -> None:
            try:
                data, catalog = read(str(Path(name).expanduser())), Place(home).load()
            except Refused as exc:
                self.post_message(self.Rendered(name, "", None, "unreadable", exc.findings))
                return
            made, _, found = rules.status(name, data, catalog)
            compiled = escalation.compile_status(name, data, home, catalog)
            report = view.report(made) if made is not None else ""
            self.post_message(
                self.Rendered(name, report, compiled.command, compiled.reason, compiled.findings or found)
            )

        self.run_worker(load, group="act", thread=True, exit_on_error=False)

    def on_ecosystem_screen_rendered(self, message: EcosystemScreen.Rendered) -> None:
        self._status = message
        self._show_detail()
        self.query_one("#report", Pane).focus()

    def _row_of(self, item: InboxItem) -> str | None:
        """The row that an item of the inbox is about."""
        for store in self.receipts:
            if store.root != item.path:
                continue
            for stated in store.statuses if item.kind == "status" else ():
                if stated.kept.file == item.title:
                    return _status_id(store, stated.kept)
            for known in store.known if item.kind == "receipt" else ():
                if str(known.receipt.id or known.receipt.file) == item.title:
                    return _row_id(store, known)
        return None

    def shows(self, item: InboxItem) -> bool:
        row = self.rows.row
        return row is not None and row.id == self._row_of(item)

    def go_to(self, item: InboxItem) -> None:
        """Show a receipt or a status of a workspace, now or once it was read."""
        self._view, self._status = VIEWS.index("statuses" if item.kind == "status" else "receipts"), None
        self._go_to = self._row_of(item)
        self.rows.focus()
        self.listed()

    def do_back(self) -> object:
        if self.query_one("#report", Pane).has_focus:
            self.rows.focus()
            return None
        return super().do_back()


def _row_id(store: Receipts, item: Trust) -> str:
    return f"receipt:{store.root}\n{item.receipt.file}"


def _status_id(store: Receipts, item: Kept) -> str:
    return f"status:{store.root}\n{item.file}"


def _haystack(item: Trust) -> str:
    envelope = item.receipt.envelope
    parts = [str(item.receipt.id), item.receipt.file, item.why]
    parts += [envelope.payload_schema, envelope.producer] if envelope is not None else []
    return "\n".join(parts).casefold()
