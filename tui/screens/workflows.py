"""`4`: runs and what they ask, what was learned, the workflows themselves (docs/specs/console.md §2, Workflows)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from rich.text import Text
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from core.inbox import InboxItem
from core.sanitize import inert
from core.workflow.desk import Workflows
from core.workflow.model import Entry
from core.workflow.view import RunRow
from core.workflow.view_inbox import item_id
from tui.action import WORKFLOWS
from tui.action_workflow import Picked
from tui.actions import BY_ID
from tui.forms.deeds import DeedForm
from tui.forms.drafts import Drafts
from tui.legal import Context
from tui.screens import workflow_rows as rows
from tui.screens import workflow_sheets as sheets
from tui.screens.answering import desks, open_answer
from tui.screens.choose import Choice, ChooseScreen
from tui.screens.find import FindBar
from tui.screens.frame import bindings
from tui.screens.listing import AGE, ListScreen, Table
from tui.widgets.glyphs import glyphs, palette
from tui.widgets.pane import Pane, Sheet
from tui.widgets.rows import Column, Heading, Row

VIEWS = ("runs", "learned", "workflows")
FOLD_AT = 2
ENDED = 200
"""Rows of ended runs that are shown at once; a filter looks through all of them."""


class WorkflowsScreen(ListScreen):
    """Rows of what waits, runs, and ended; below, what is known about the current one."""

    WHERE = WORKFLOWS
    BINDINGS = bindings(WORKFLOWS)
    COLUMNS = (
        Column("state", min=11, max=11),
        AGE,
        Column("progress", min=16, max=22, priority=1),
        Column("title", min=20, max=56, grow=1),
        Column("why", min=12, max=90, grow=2, priority=3),
        Column("root", min=8, max=30, priority=4),
    )

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
        kind, place, name = rows.parts(row.id)
        desk = next((one for one in self.desks if str(one.root) == place), None)
        return (kind, desk, name) if desk is not None else None

    def _entries(self) -> tuple[Workflows, list[Entry]] | None:
        """The open questions that the current row stands for."""
        picked = self._picked_desk()
        if picked is None:
            return None
        kind, desk, name = picked
        if kind == rows.FOLD:
            return self._folded.get(f"{desk.root}\n{name}")
        if kind == rows.ENTRY:
            return desk, [one for one in desk.open_entries if one.id == name]
        if kind == rows.RUN:
            return desk, [one for one in desk.open_entries if one.run_id == name][:1]
        return None

    def _run(self) -> tuple[Workflows, RunRow] | None:
        """The run of the current row, or that its question belongs to."""
        picked, asked = self._picked_desk(), self._entries()
        if picked is None:
            return None
        name = picked[2] if picked[0] == rows.RUN else asked[1][0].run_id if asked is not None and asked[1] else ""
        row = picked[1].row(name)
        return (picked[1], row) if row is not None else None

    def context(self) -> Context:
        return replace(super().context(), selected=None, workflow=self._picked())

    def _picked(self) -> Picked:
        desk_list = self.desks
        made = Picked(roots=len(desk_list), specs=sum(len(desk.specs) for desk in desk_list))
        asked, running, picked = self._entries(), self._run(), self._picked_desk()
        if asked is not None:
            made = replace(made, asks=len(asked[1]))
        if running is not None:
            made = replace(made, run=running[1].run_id, ended=sheets.over(running[1]))
        if picked is not None and picked[0] in (rows.PROPOSAL, rows.RULE):
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
        for title, found in groups[self.shown](needle):
            kept = [row for row in found if not needle or needle in rows.haystack(row)]
            if kept:
                made += [Heading(title, len(kept)), *kept]
        return made

    @property
    def _rows(self) -> rows.Rows:
        """Makes rows as of now."""
        known, many = self.me() is not None, len(self.desks) > 1
        return rows.Rows(self.console_app.clock.now(), known, many, palette(self.app), glyphs(self.app))

    def _run_groups(self, needle: str) -> Iterator[tuple[str, list[Row]]]:
        yield "Waits for an answer", [row for desk in self.desks for row in self._entry_rows(desk)]
        runs, make = [(desk, row) for desk in self.desks for row in desk.rows], self._rows
        yield "Under way", [make.run(desk, row) for desk, row in runs if row.completed_at is None]
        ended = [(desk, row) for desk, row in runs if row.completed_at is not None]
        title = "Ended" if needle or len(ended) <= ENDED else f"Ended, the latest {ENDED} of {len(ended)}"
        yield title, [make.run(desk, row) for desk, row in (ended if needle else ended[:ENDED])]

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
            yield self._rows.asking(rows.FOLD, cause, desk, found[0], f"{sign} {len(found)}: {names}")
            if cause in self._unfolded:
                for entry in found:
                    yield self._entry_row(desk, entry, "  ")

    def _entry_row(self, desk: Workflows, entry: Entry, indent: str = "") -> Row:
        return self._rows.asking(rows.ENTRY, entry.id, desk, entry, indent + entry.question)

    def _learned_groups(self, needle: str) -> Iterator[tuple[str, list[Row]]]:
        yield "Proposals", [self._rows.proposal(desk, item) for desk in self.desks for item in desk.proposals]
        order = ("active", "suspended", "revoked")
        rules = [(desk, rule) for desk in self.desks for rule in desk.world.learning.rules.values()]
        rules.sort(key=lambda pair: (order.index(pair[1].state), pair[1].id))
        yield "Rules", [self._rows.rule(desk, rule) for desk, rule in rules]

    def _spec_groups(self, needle: str) -> Iterator[tuple[str, list[Row]]]:
        yield "Workflows", [self._rows.spec(desk, one) for desk in self.desks for _, one in sorted(desk.specs.items())]
        refused = [(desk, item) for desk in self.desks for item in desk.world.refused[-20:]]
        yield "Refused starts", [self._rows.refused(desk, item) for desk, item in reversed(refused)]

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
        _, place, name = rows.parts(wanted)
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
        if kind == rows.FOLD:
            shown = self.console_app.keys
            keys = shown.shown(BY_ID["answer"]), shown.shown(BY_ID["fold"])
            sheets.say_fold(made, desk, self._folded[f"{desk.root}\n{name}"][1], keys, colours, signs)
        elif kind == rows.ENTRY and (entry := desk.world.entry(name)) is not None:
            sheets.say_entry(made, desk, entry, colours, signs)
        elif kind == rows.RUN and (run := desk.row(name)) is not None:
            sheets.say_run(made, desk, run, colours, signs)
        elif kind == rows.PROPOSAL:
            for item in desk.proposals:
                if item.id == name:
                    known = learning.proposals[name].proposes.option_id
                    sheets.say_proposal(made, desk, item, known, colours, signs)
        elif kind == rows.RULE and name in learning.rules:
            sheets.say_rule(made, desk, learning.rules[name], colours)
        elif kind == rows.SPEC and name in desk.specs:
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
                (picked[0] == rows.FOLD and picked[2] == cause) or any(one.id == picked[2] for one in entries)
            ):
                self._unfolded ^= {cause}
                self.listed()
                self.rows.move_to_id(f"{rows.FOLD}\n{desk.root}\n{cause}")
                return
        self.console_app.notify(f"only {FOLD_AT} or more questions with one cause fold")

    def do_answer(self) -> None:
        asked, me = self._entries(), self.me()
        if asked is not None and asked[1] and me is not None:
            open_answer(self, asked[0], asked[1], me)

    def do_start_run(self) -> None:
        from tui.forms.workflow import StartForm

        me, picked = self.me(), self._picked_desk()
        wanted = ""
        if picked is not None and picked[0] == rows.SPEC and picked[2] in picked[1].specs:
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
        app.push_screen(form, self.done)

    def do_stop_run(self) -> None:
        from tui.forms.workflow import AbortForm

        found, me = self._run(), self.me()
        if found is not None and me is not None:
            self._open(AbortForm(found[0], found[1].run_id, me, Drafts(self.console_app.user_state)))

    def do_tick_now(self) -> None:
        from tui.forms.workflow import ticking

        picked, clock = self._picked_desk(), self.console_app.clock
        self._in_root(
            lambda desk: self.confirm(lambda: ticking(desk.root, clock)), picked[1] if picked is not None else None
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
            self.confirm(lambda: settling(root, name, False, None, me, clock))

    # The inbox.

    def shows(self, item: InboxItem) -> bool:
        return self._row_of(item) is not None and self._row_of(item) == (self.rows.row.id if self.rows.row else None)

    def go_to(self, item: InboxItem) -> None:
        """Show a question, a proposal or a result, now or once it was read."""
        wanted = self._row_of(item)
        self._view = 1 if wanted is not None and wanted.startswith(rows.PROPOSAL) else 0
        self._go_to = wanted
        self.rows.focus()
        self.listed()

    def _row_of(self, item: InboxItem) -> str | None:
        for desk in self.desks:
            if desk.root != item.path:
                continue
            for entry in desk.open_entries:
                if item_id(desk.root, entry.id, entry.reminders) == item.id:
                    return f"{rows.ENTRY}\n{desk.root}\n{entry.id}"
            for proposal in desk.proposals:
                if item_id(desk.root, proposal.id) == item.id:
                    return f"{rows.PROPOSAL}\n{desk.root}\n{proposal.id}"
            for row in desk.rows:
                if item_id(desk.root, row.run_id) == item.id:
                    return f"{rows.RUN}\n{desk.root}\n{row.run_id}"
        return None

    def do_back(self) -> object:
        if self.query_one("#report", Pane).has_focus:
            self.rows.focus()
            return None
        return super().do_back()
