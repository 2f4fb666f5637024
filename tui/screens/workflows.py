"""`4`: runs and what they ask, what was learned, the workflows themselves (docs/specs/console.md §2, Workflows)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rich.text import Text
from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from core.finding import Finding, Refused
from core.inbox import InboxItem
from core.sanitize import inert
from core.workflow.desk import Workflows
from core.workflow.loader import Loaded
from core.workflow.model import Entry, Rule
from core.workflow.state import Run
from core.workflow.view import RunRow
from core.workflow.view_inbox import item_id, moment
from core.workflow.view_learning import ProposalView
from tui.action import WORKFLOWS
from tui.action_workflow import Picked
from tui.forms.confirm import ConfirmScreen, Deed
from tui.forms.deeds import DeedForm
from tui.forms.drafts import Drafts
from tui.legal import Context
from tui.screens import workflow_sheets as sheets
from tui.screens.answering import desks, open_answer, tell_done
from tui.screens.choose import Choice, ChooseScreen
from tui.screens.find import FindBar
from tui.screens.frame import bindings
from tui.screens.listing import AGE, ListScreen, Table, age
from tui.widgets.glyphs import State, glyphs, palette
from tui.widgets.pane import Pane, Sheet
from tui.widgets.progress import bar
from tui.widgets.rows import Cell, Column, Heading, Row

VIEWS = ("runs", "learned", "workflows")
FOLD_AT = 2
BAR = 10
"""Cells of the bar in a row."""
RULES = {
    "active": (State.LIVE, "active"),
    "suspended": (State.WARN, "suspended"),
    "revoked": (State.UNKNOWN, "revoked"),
}
PROPOSALS = {"open": (State.MINE, "proposed"), "approved": (State.DONE, "approved")}
_ENTRY, _FOLD, _RUN, _PROPOSAL, _RULE, _SPEC = "entry", "fold", "run", "proposal", "rule", "spec"


class WorkflowsScreen(ListScreen):
    """Rows of what waits, runs, and ended; below, what is known about the current one."""

    WHERE = WORKFLOWS
    BINDINGS = bindings(WORKFLOWS)
    COLUMNS = (
        Column("state", min=11, max=11),
        AGE,
        Column("progress", min=16, max=22, priority=1),
        Column("title", min=20, max=72, grow=1),
        Column("why", min=12, max=90, grow=2, priority=3),
        Column("root", min=8, max=30, priority=4),
    )

    class Prepared(Message):
        """What an act without a form would do, or why it cannot be done."""

        def __init__(self, deed: Deed | None, findings: Sequence[Finding]) -> None:
            super().__init__()
            self.deed, self.findings = deed, tuple(findings)

    def __init__(self) -> None:
        super().__init__()
        self._view = 0
        self._unfolded: set[str] = set()
        self._folded: dict[str, tuple[Workflows, list[Entry]]] = {}
        self._go_to: str | None = None
        self._detailed: str | None = None

    def body(self) -> ComposeResult:
        yield Static(Content(""), id="headline")
        yield Table(self.COLUMNS, id="rows")
        yield Pane(id="report")
        yield FindBar("filter")

    # What is known.

    @property
    def desks(self) -> list[Workflows]:
        """Every workflow root below the roots."""
        return desks(self.console_app)

    @property
    def shown(self) -> str:
        """Which of the views is on."""
        return VIEWS[self._view]

    def _picked_desk(self) -> tuple[str, Workflows, str] | None:
        """(kind, root, name) of the current row."""
        row = self.rows.row if self.is_mounted else None
        if row is None:
            return None
        kind, place, name = _parts(row.id)
        desk = next((one for one in self.desks if str(one.root) == place), None)
        return (kind, desk, name) if desk is not None else None

    def _entries(self) -> tuple[Workflows, list[Entry]] | None:
        """The open questions that the current row stands for."""
        picked = self._picked_desk()
        if picked is None:
            return None
        kind, desk, name = picked
        if kind == _FOLD:
            return self._folded.get(f"{desk.root}\n{name}")
        if kind == _ENTRY:
            return desk, [one for one in desk.open_entries if one.id == name]
        if kind == _RUN:
            return desk, [one for one in desk.open_entries if one.run_id == name][:1]
        return None

    def _run(self) -> tuple[Workflows, Run] | None:
        """The run of the current row, or that its question belongs to."""
        picked, asked = self._picked_desk(), self._entries()
        if picked is None:
            return None
        name = picked[2] if picked[0] == _RUN else asked[1][0].run_id if asked is not None and asked[1] else ""
        run = picked[1].world.runs.get(name)
        return (picked[1], run) if run is not None else None

    def context(self) -> Context:
        return replace(super().context(), selected=None, workflow=self._picked())

    def _picked(self) -> Picked:
        desk_list = self.desks
        made = Picked(roots=len(desk_list), specs=sum(len(desk.specs) for desk in desk_list))
        asked, running, picked = self._entries(), self._run(), self._picked_desk()
        if asked is not None:
            made = replace(made, asks=len(asked[1]))
        if running is not None:
            run = running[1]
            over = run.outcome or ("it was stopped" if run.aborted is not None else None)
            made = replace(made, run=run.run_id, ended=over)
        if picked is not None and picked[0] in (_PROPOSAL, _RULE):
            learning = picked[1].world.learning
            rule, proposal = learning.rules.get(picked[2]), learning.proposals.get(picked[2])
            if rule is not None:
                gone = f"it was revoked by {rule.revoked_by}" if rule.state == "revoked" else ""
                made = replace(made, learned=rule.id, rule=True, settled=gone)
            elif proposal is not None:
                over = "" if proposal.state == "open" else f"it is {proposal.state} by {proposal.decided_by or 'time'}"
                made = replace(made, learned=proposal.id, settled=over)
        return made

    def path_of(self, id: str) -> Path | None:
        return None

    # Drawing.

    def make_rows(self, needle: str) -> list[Row | Heading]:
        self._folded = {}
        groups = {"runs": self._run_groups, "learned": self._learned_groups, "workflows": self._spec_groups}
        made: list[Row | Heading] = []
        for title, rows in groups[self.shown]():
            kept = [row for row in rows if not needle or needle in _haystack(row)]
            if kept:
                made += [Heading(title, len(kept)), *kept]
        return made

    def _run_groups(self) -> Iterator[tuple[str, list[Row]]]:
        yield "Waits for an answer", [row for desk in self.desks for row in self._entry_rows(desk)]
        rows = [(desk, row) for desk in self.desks for row in desk.rows]
        yield "Under way", [self._run_row(desk, row) for desk, row in rows if row.completed_at is None]
        yield "Ended", [self._run_row(desk, row) for desk, row in rows if row.completed_at is not None]

    def _entry_rows(self, desk: Workflows) -> Iterator[Row]:
        alike: dict[str, list[Entry]] = {}
        for entry in desk.open_entries:
            alike.setdefault(entry.cause_key or entry.id, []).append(entry)
        for cause, found in alike.items():
            if len(found) < FOLD_AT:
                yield self._entry_row(desk, found[0])
                continue
            self._folded[f"{desk.root}\n{cause}"] = desk, found
            sign = "-" if cause in self._unfolded else "+"
            names = ", ".join(inert(one.item or one.workflow) for one in found)
            yield self._asking_row(_FOLD, cause, desk, found[0], f"{sign} {len(found)}: {names}")
            if cause in self._unfolded:
                for entry in found:
                    yield self._entry_row(desk, entry, "  ")

    def _entry_row(self, desk: Workflows, entry: Entry, indent: str = "") -> Row:
        return self._asking_row(_ENTRY, entry.id, desk, entry, indent + entry.question)

    def _asking_row(self, kind: str, name: str, desk: Workflows, entry: Entry, title: str) -> Row:
        mine = self.me() is not None
        state, word = (State.MINE, "your turn") if mine else (State.WAITING, "waiting")
        if entry.kind == "block":
            state, word = State.FAILED, "blocked"
        if entry.overdue:
            state, word = State.WARN, "overdue"
        now = self.console_app.clock.now()
        due = moment(entry.deadline_at)
        why = entry.run_id
        if due is not None:
            why = f"due in {age(now, due)}, {why}" if due > now else f"due {age(due, now)} ago, {why}"
        cells = (
            Cell(word, state),
            Cell(age(moment(entry.opened_at), now), role="muted"),
            Cell(""),
            Cell(title),
            Cell(why, role="muted"),
            self._root_cell(desk),
        )
        return Row(f"{kind}\n{desk.root}\n{name}", cells)

    def _run_row(self, desk: Workflows, row: RunRow) -> Row:
        colours, signs = palette(self.app), glyphs(self.app)
        state, word = sheets.OUTCOMES[row.outcome]
        ended = row.completed_at is not None
        fill = colours.muted if ended and row.outcome == "success" else colours.state(state)
        progress = bar(row.done, row.total, BAR, fill, colours, signs)
        progress.append(f" {row.done}/{row.total}", colours.text)
        cells = (
            Cell(word, state),
            Cell(age(moment(row.completed_at or row.since), self.console_app.clock.now()), role="muted"),
            Cell(progress),
            Cell(f"{row.workflow}  {row.run_id.removeprefix(row.workflow + '-')}"),
            Cell(f"waits: {row.waits}" if row.waits else row.mode, role="muted"),
            self._root_cell(desk),
        )
        return Row(f"{_RUN}\n{desk.root}\n{row.run_id}", cells, dim=ended)

    def _root_cell(self, desk: Workflows) -> Cell:
        return Cell(str(desk.root) if len(self.desks) > 1 else "", role="muted")

    def _learned_groups(self) -> Iterator[tuple[str, list[Row]]]:
        yield "Proposals", [self._proposal_row(desk, item) for desk in self.desks for item in desk.proposals]
        order = ("active", "suspended", "revoked")
        rules = [(desk, rule) for desk in self.desks for rule in desk.world.learning.rules.values()]
        rules.sort(key=lambda pair: (order.index(pair[1].state), pair[1].id))
        yield "Rules", [self._rule_row(desk, rule) for desk, rule in rules]

    def _proposal_row(self, desk: Workflows, item: ProposalView) -> Row:
        state, word = PROPOSALS.get(item.state, (State.UNKNOWN, item.state))
        known = desk.world.learning.proposals[item.id]
        cells = (
            Cell(word, state),
            Cell(age(moment(known.opened_at), self.console_app.clock.now()), role="muted"),
            Cell(known.proposes.option_id or "mend it"),
            Cell(item.title),
            Cell(f"{item.id}, {len(item.evidence)} times", role="muted"),
            self._root_cell(desk),
        )
        return Row(f"{_PROPOSAL}\n{desk.root}\n{item.id}", cells, dim=item.state != "open")

    def _rule_row(self, desk: Workflows, rule: Rule) -> Row:
        state, word = RULES[rule.state]
        pattern = rule.pattern
        cells = (
            Cell(word, state),
            Cell(age(moment(rule.approved_at), self.console_app.clock.now()), role="muted"),
            Cell(rule.option_id),
            Cell(f"{pattern.workflow}: {pattern.kind} of {pattern.agent}, cause {pattern.cause or 'none'}"),
            Cell(f"{rule.id}, used {rule.uses} times, confidence {rule.confidence}", role="muted"),
            self._root_cell(desk),
        )
        return Row(f"{_RULE}\n{desk.root}\n{rule.id}", cells, dim=rule.state == "revoked")

    def _spec_groups(self) -> Iterator[tuple[str, list[Row]]]:
        yield "Workflows", [self._spec_row(desk, one) for desk in self.desks for _, one in sorted(desk.specs.items())]
        refused = [(desk, item) for desk in self.desks for item in desk.world.refused[-20:]]
        now = self.console_app.clock.now()
        yield (
            "Refused starts",
            [
                Row(
                    f"refused\n{desk.root}\n{item['seq']}",
                    (
                        Cell("refused", State.FAILED),
                        Cell(age(moment(item["at"]), now), role="muted"),
                        Cell(""),
                        Cell(str(item["workflow"])),
                        Cell("; ".join(map(str, item.get("causes") or item["codes"])), role="muted"),
                        self._root_cell(desk),
                    ),
                )
                for desk, item in reversed(refused)
            ],
        )

    def _spec_row(self, desk: Workflows, loaded: Loaded) -> Row:
        state, word = (State.DONE, "valid") if loaded.spec is not None else (State.FAILED, "disabled")
        if loaded.spec is not None and loaded.findings:
            state, word = State.WARN, "warnings"
        spec = loaded.spec
        cells = (
            Cell(word, state),
            Cell(""),
            Cell(f"{len(spec.items)} items" if spec is not None else ""),
            Cell(loaded.workflow),
            Cell((spec.description or "") if spec is not None else loaded.findings[0].cause, role="muted"),
            self._root_cell(desk),
        )
        return Row(f"{_SPEC}\n{desk.root}\n{loaded.file}", cells)

    def headline(self) -> Text:
        colours = palette(self.app)
        text = Text.assemble(("Workflows", colours.strong), no_wrap=True, end="")
        for name in VIEWS:
            count = (
                sum(item.state == "open" for desk in self.desks for item in desk.proposals) if name == "learned" else 0
            )
            text.append(f"  {name}", colours.accent if name == self.shown else colours.muted)
            if count:
                text.append(f" {count}", colours.accent)
        for desk in self.desks:
            for found in desk.findings[:1]:
                text.append(f"  {inert(found.cause)}", colours.warn)
        if self.desks and not any(desk.served for desk in self.desks):
            text.append("  no engine is at work here: u ticks once", colours.muted)
        return text

    def empty(self) -> str:
        if not self.console_app.complete:
            return "Reading the folders"
        if not self.desks:
            return "No workflow root lies here: a folder with workflows/ and ambient/ is one."
        texts = {
            "runs": "Nothing has run here yet.\nPress s to start a workflow, t for the workflows and what was learned.",
            "learned": "Nothing was learned yet: the same answer given twice to one cause becomes a proposal.",
            "workflows": "workflows/ holds no file.",
        }
        return texts[self.shown]

    def listed(self) -> None:
        if not self.is_mounted:
            return
        super().listed()
        if self._go_to is not None and self._move_to(self._go_to):
            self._go_to = None
            self._show_detail()
            self.frame()

    def _move_to(self, wanted: str) -> bool:
        """The row of a question, unfolded if it must be; of anything else by its name."""
        if self.rows.move_to_id(wanted):
            return True
        _, place, name = _parts(wanted)
        for key, (desk, entries) in self._folded.items():
            if str(desk.root) == place and any(one.id == name for one in entries):
                self._unfolded.add(key.rpartition("\n")[2])
                super().listed()
                return self.rows.move_to_id(wanted)
        return False

    def _show_detail(self) -> None:
        row = self.rows.row
        name = row.id if row is not None else None
        self.query_one("#report", Pane).show(self._sheet, keep=name == self._detailed)
        self._detailed = name

    def _sheet(self, width: int) -> list[Text]:
        colours, signs = palette(self.app), glyphs(self.app)
        made = Sheet(width, colours.muted, colours.text, colours.code)
        picked = self._picked_desk()
        if picked is None:
            return made.lines
        kind, desk, name = picked
        learning = desk.world.learning
        if kind == _FOLD:
            sheets.say_fold(made, desk, self._folded[f"{desk.root}\n{name}"][1], colours, signs)
        elif kind == _ENTRY and (entry := desk.world.entry(name)) is not None:
            sheets.say_entry(made, desk, entry, colours, signs)
        elif kind == _RUN and (run := desk.world.runs.get(name)) is not None:
            sheets.say_run(made, desk, run, colours, signs)
        elif kind == _PROPOSAL:
            for item in desk.proposals:
                if item.id == name:
                    sheets.say_proposal(made, item, colours, signs)
        elif kind == _RULE and name in learning.rules:
            sheets.say_rule(made, learning.rules[name], colours)
        elif kind == _SPEC and name in desk.specs:
            sheets.say_workflow(made, desk, desk.specs[name], colours)
        return made.lines

    # Actions.

    async def chosen(self, id: str) -> None:
        """A run, or the run of a question, is unfolded; everything else is looked at below."""
        found = self._run()
        if found is None:
            self.query_one("#report", Pane).focus()
            return
        from tui.screens.run import RunScreen

        await self.app.push_screen(RunScreen(found[0].root, found[1].run_id))

    def do_workflow_view(self) -> None:
        self._view = (self._view + 1) % len(VIEWS)
        self.listed()
        self.rows.focus()

    def do_narrow(self) -> None:
        self.do_filter()

    def do_fold(self) -> None:
        picked = self._picked_desk()
        for key, (desk, entries) in self._folded.items():
            cause = key.rpartition("\n")[2]
            if picked is not None and (
                (picked[0] == _FOLD and picked[2] == cause) or any(one.id == picked[2] for one in entries)
            ):
                self._unfolded ^= {cause}
                self.listed()
                self.rows.move_to_id(f"{_FOLD}\n{desk.root}\n{cause}")
                return
        self.console_app.notify(f"only {FOLD_AT} or more questions with one cause fold")

    def do_answer(self) -> None:
        asked, me = self._entries(), self.me()
        if asked is not None and asked[1] and me is not None:
            open_answer(self.console_app, asked[0], asked[1], me)

    def do_start_run(self) -> None:
        from tui.forms.workflow import StartForm

        me, picked = self.me(), self._picked_desk()
        wanted = ""
        if picked is not None and picked[0] == _SPEC and picked[2] in picked[1].specs:
            wanted = picked[1].specs[picked[2]].workflow

        def start(desk: Workflows) -> None:
            if me is not None:
                self._open(StartForm(desk, me, Drafts(self.console_app.user_state), wanted))

        self._in_root(start, picked[1] if picked is not None else None)

    def _in_root(self, act: Callable[[Workflows], None], picked: Workflows | None) -> None:
        """Act in the root of the current row, in the only one, or in one that the person chooses."""
        known = self.desks
        if picked is not None or len(known) == 1:
            act(picked or known[0])
            return
        choices = [Choice(str(desk.root), str(desk.root)) for desk in known]
        by_path = {str(desk.root): desk for desk in known}
        self.app.push_screen(
            ChooseScreen("In which root?", choices), lambda name: act(by_path[name]) if name is not None else None
        )

    def _open(self, form: DeedForm) -> None:
        app = self.console_app
        app.clear_notifications()
        app.push_screen(form, lambda said: tell_done(app, said))

    def do_stop_run(self) -> None:
        from tui.forms.workflow import AbortForm

        found, me = self._run(), self.me()
        if found is not None and me is not None:
            self._open(AbortForm(found[0], found[1].run_id, me, Drafts(self.console_app.user_state)))

    def do_tick_now(self) -> None:
        from tui.forms.workflow import ticking

        picked, clock = self._picked_desk(), self.console_app.clock
        self._in_root(
            lambda desk: self._prepare(lambda: ticking(desk.root, clock)), picked[1] if picked is not None else None
        )

    def do_approve(self) -> None:
        from tui.forms.workflow import ApproveForm

        picked, me = self._picked_desk(), self.me()
        item = next((one for one in picked[1].proposals if one.id == picked[2]), None) if picked is not None else None
        if picked is not None and item is not None and me is not None:
            self._open(ApproveForm(picked[1], item, me, Drafts(self.console_app.user_state)))

    def do_reject(self) -> None:
        from tui.forms.workflow import settling

        picked, me, clock = self._picked_desk(), self.me(), self.console_app.clock
        if picked is not None and me is not None:
            root, name = picked[1].root, picked[2]
            self._prepare(lambda: settling(root, name, False, None, me, clock))

    def _prepare(self, make: Callable[[], Deed]) -> None:
        """Plan an act in a thread, then show its preview."""

        def prepare() -> None:
            try:
                self.post_message(self.Prepared(make(), ()))
            except Refused as exc:
                self.post_message(self.Prepared(None, exc.findings))

        self.run_worker(prepare, group="act", exclusive=True, thread=True, exit_on_error=False)

    def on_workflows_screen_prepared(self, message: WorkflowsScreen.Prepared) -> None:
        app = self.console_app
        for found in message.findings:
            app.tell(found)
        if message.deed is not None:
            app.push_screen(ConfirmScreen(message.deed), lambda said: tell_done(app, said))

    # The inbox.

    def shows(self, item: InboxItem) -> bool:
        return self._row_of(item) is not None and self._row_of(item) == (self.rows.row.id if self.rows.row else None)

    def go_to(self, item: InboxItem) -> None:
        """Show a question, a proposal or a result, now or once it was read."""
        wanted = self._row_of(item)
        self._view = 1 if wanted is not None and wanted.startswith(_PROPOSAL) else 0
        self._go_to = wanted
        self.rows.focus()
        self.listed()

    def _row_of(self, item: InboxItem) -> str | None:
        for desk in self.desks:
            if desk.root != item.path:
                continue
            for entry in desk.open_entries:
                if item_id(desk.root, entry.id, entry.reminders) == item.id:
                    return f"{_ENTRY}\n{desk.root}\n{entry.id}"
            for proposal in desk.proposals:
                if item_id(desk.root, proposal.id) == item.id:
                    return f"{_PROPOSAL}\n{desk.root}\n{proposal.id}"
            for row in desk.rows:
                if item_id(desk.root, row.run_id) == item.id:
                    return f"{_RUN}\n{desk.root}\n{row.run_id}"
        return None

    def do_back(self) -> object:
        if self.query_one("#report", Pane).has_focus:
            self.rows.focus()
            return None
        return super().do_back()


def _parts(id: str) -> tuple[str, str, str]:
    """(kind, root, name) of a row."""
    kind, _, rest = id.partition("\n")
    place, _, name = rest.rpartition("\n")
    return kind, place, name


def _haystack(row: Row) -> str:
    return "\n".join(cell.plain for cell in row.cells).casefold() + row.id.casefold()
