"""The rows of the screen Workflows: questions, runs, what was learned, specs (docs/specs/console.md §2, Workflows)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from core.workflow.desk import Workflows
from core.workflow.loader import Loaded
from core.workflow.model import Entry, Rule
from core.workflow.view import RunRow
from core.workflow.view_inbox import moment
from core.workflow.view_learning import ProposalView
from tui.screens import workflow_sheets as sheets
from tui.screens.listing import age
from tui.widgets.glyphs import Glyphs, Palette, State
from tui.widgets.progress import bar
from tui.widgets.rows import Cell, Row

ENTRY, FOLD, RUN, PROPOSAL, RULE, SPEC, REFUSED = "entry", "fold", "run", "proposal", "rule", "spec", "refused"
"""Kinds of rows; a row's id is its kind, its root and its name, a line each."""
BAR: Final = 10
"""Cells of the bar in a row."""
RULES: Final = {
    "active": (State.LIVE, "active"),
    "suspended": (State.WARN, "suspended"),
    "revoked": (State.UNKNOWN, "revoked"),
}
PROPOSALS: Final = {"open": (State.MINE, "proposed"), "approved": (State.DONE, "approved")}


@dataclass(frozen=True, slots=True)
class Rows:
    """Makes rows. `known`: the person said who they are; `many`: there are several roots, so each row names its own."""

    now: datetime
    known: bool
    many: bool
    colours: Palette
    signs: Glyphs

    def asking(self, kind: str, name: str, desk: Workflows, entry: Entry, title: str) -> Row:
        """A question, or a row that stands for several."""
        state, word = (State.MINE, "your turn") if self.known else (State.WAITING, "waiting")
        if entry.kind == "block":
            state, word = State.FAILED, "blocked"
        if entry.overdue:
            state, word = State.WARN, "overdue"
        now = self.now
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
            self._root(desk),
        )
        return Row(f"{kind}\n{desk.root}\n{name}", cells)

    def run(self, desk: Workflows, row: RunRow) -> Row:
        """A run: outcome, progress, what waits."""
        colours, signs = self.colours, self.signs
        state, word = sheets.OUTCOMES[row.outcome]
        ended = row.completed_at is not None
        fill = colours.muted if ended and row.outcome == "success" else colours.state(state)
        progress = bar(row.done, row.total, BAR, fill, colours, signs)
        progress.append(f" {row.done}/{row.total}", colours.text)
        cells = (
            Cell(word, state),
            Cell(age(moment(row.completed_at or row.since), self.now), role="muted"),
            Cell(progress),
            Cell(row.workflow),
            Cell(f"waits: {row.waits}" if row.waits else f"{row.mode}, {row.run_id}", role="muted"),
            self._root(desk),
        )
        return Row(f"{RUN}\n{desk.root}\n{row.run_id}", cells, dim=ended)

    def _root(self, desk: Workflows) -> Cell:
        return Cell(str(desk.root) if self.many else "", role="muted")

    def proposal(self, desk: Workflows, item: ProposalView) -> Row:
        """What was learned and waits for a word."""
        state, word = PROPOSALS.get(item.state, (State.UNKNOWN, item.state))
        known = desk.world.learning.proposals[item.id]
        cells = (
            Cell(word, state),
            Cell(age(moment(known.opened_at), self.now), role="muted"),
            Cell(known.proposes.option_id or "mend it"),
            Cell(item.title),
            Cell(f"{item.id}, {len(item.evidence)} times", role="muted"),
            self._root(desk),
        )
        return Row(f"{PROPOSAL}\n{desk.root}\n{item.id}", cells, dim=item.state != "open")

    def rule(self, desk: Workflows, rule: Rule) -> Row:
        """A rule and how often it answered."""
        state, word = RULES[rule.state]
        pattern = rule.pattern
        cells = (
            Cell(word, state),
            Cell(age(moment(rule.approved_at), self.now), role="muted"),
            Cell(f"{rule.option_id}, used {rule.uses}"),
            Cell(f"{pattern.workflow}: {pattern.kind} of {pattern.agent}, cause {pattern.cause or 'none'}"),
            Cell(f"{rule.id}, confidence {rule.confidence}", role="muted"),
            self._root(desk),
        )
        return Row(f"{RULE}\n{desk.root}\n{rule.id}", cells, dim=rule.state == "revoked")

    def spec(self, desk: Workflows, loaded: Loaded) -> Row:
        """A workflow file."""
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
            self._root(desk),
        )
        return Row(f"{SPEC}\n{desk.root}\n{loaded.file}", cells)

    def refused(self, desk: Workflows, item: Mapping[str, Any]) -> Row:
        """A start that was refused, with every reason."""
        cells = (
            Cell("refused", State.FAILED),
            Cell(age(moment(item["at"]), self.now), role="muted"),
            Cell(""),
            Cell(str(item["workflow"])),
            Cell("; ".join(map(str, item.get("causes") or item["codes"])), role="muted"),
            self._root(desk),
        )
        return Row(f"{REFUSED}\n{desk.root}\n{item['seq']}", cells)


def parts(id: str) -> tuple[str, str, str]:
    """(kind, root, name) of a row."""
    kind, _, rest = id.partition("\n")
    place, _, name = rest.rpartition("\n")
    return kind, place, name


def haystack(row: Row) -> str:
    """What a filter looks through."""
    return "\n".join(cell.plain for cell in row.cells).casefold() + row.id.casefold()
