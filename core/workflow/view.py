"""Projections for people: runs, one escalation, a timeline, the spec with its current route (docs/specs/console.md §2).

All texts are as the files have them: whoever shows them makes them inert.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core import journal
from core.files import Root
from core.finding import Finding
from core.workflow import entries, texts
from core.workflow.closed import ClosedRuns
from core.workflow.layout import AMBIENT, SCRATCH, WORKFLOWS, log_file
from core.workflow.model import Entry
from core.workflow.rows import RunRow as RunRow
from core.workflow.rows import result_text as result_text
from core.workflow.rows import run_row as run_row
from core.workflow.rows import runs as runs
from core.workflow.state import Run, World
from core.workflow.store import Store


class Reader:
    """A root seen without its lock; `world` is read again as far as the files grew. Writes nothing.

    Runs that are over are not read while the index knows them (`rows` has them all the same) unless somebody asks.
    """

    def __init__(self, path: Path, whole: bool = True) -> None:
        """`whole`: read every run. Raises Refused when the folder cannot be opened."""
        self.path = path
        self.root = Root(path, SCRATCH)
        self._store = Store(self.root, readonly=True, closed=None if whole else ClosedRuns(self.root))

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.root.close()

    def look(self) -> World:
        """The world as the logs tell it now."""
        self._store.refresh()
        return self._store.world

    def with_runs(self, run_ids: Iterable[str]) -> World:
        """The same with these runs, over or not."""
        self._store.need(run_ids)
        return self._store.world

    def with_entries(self, names: Iterable[str]) -> World:
        """The same with the runs that these questions belong to."""
        self._store.need_entries(names)
        return self._store.world

    def with_evidence(self) -> World:
        """The same with the runs that proposals rest on."""
        proposals = self._store.world.learning.proposals.values()
        names = [name for item in proposals for name in item.evidence]
        self._store.need(names)
        return self.with_entries(names)

    def rows(self, now: int) -> list[RunRow]:
        """Every run in one line, read or not."""
        return runs(self._store.world, now, [past.row for past in self._store.unread_runs()])

    @property
    def problems(self) -> list[Finding]:
        """Damaged logs."""
        return list(self._store.problems.values())

    def events(self, run_id: str) -> list[dict[str, Any]]:
        """The event log of a run."""
        lines = journal.read(self.root, log_file(run_id)).lines
        return [line.record for line in lines if line.record is not None]


def is_root(path: Path) -> bool:
    """Whether a folder is a workflow root."""
    return (path / WORKFLOWS).is_dir() and (path / AMBIENT).is_dir()


@dataclass(frozen=True, slots=True)
class OptionView:
    id: str
    title: str
    effect: str
    recommended: bool
    args: Mapping[str, str]
    command: str


@dataclass(frozen=True, slots=True)
class EntryView:
    """One escalation with what a person needs to answer it. `facts` are the engine's; `answered` names the winner."""

    entry: Entry
    question: str
    facts: tuple[tuple[str, str], ...]
    options: tuple[OptionView, ...]
    deadline: str | None
    overdue: bool
    snoozed_until: str | None
    at_deadline: str | None
    rule: str | None
    answered: str | None
    may_respond: bool
    alike: tuple[str, ...]


def entry_view(world: World, entry: Entry, root: Path | None = None, run: Run | None = None) -> EntryView:
    """The detail of an entry. `alike`: other open entries of the same cause, which one answer may serve each.

    `run` is the one that it belongs to, where the world was read without it.
    """
    run = run or world.runs[entry.run_id]
    where = f" --root {shlex.quote(str(root))}" if root is not None else ""
    options = tuple(
        OptionView(
            option.id,
            option.title,
            option.effect,
            option.recommended,
            dict(option.args_schema or {}),
            f"collab escalation decide {entry.id} {option.id}{where}",
        )
        for option in entry.options
    )
    won = entries.winner(entry.decision, entry.closed_by)
    answered = None
    if won is not None:
        answered = f"{won['decided_by']}: {won['option_id'] or won['verb']}"
        answered += f" at {entry.decision.decided_at}" if entry.decision is not None else ""
    at_deadline = None
    if entry.deadline_at is not None:
        act = run.spec.on_escalate.on_deadline
        at_deadline = "a reminder" if act == "remind" or not entry.obeys(act) else texts.BUILT_IN[act][1]
    same = tuple(
        other.id
        for one in world.runs.values()
        for name in sorted(one.open_entries)
        if (other := one.entries.get(name)) is not None
        and other.id != entry.id
        and other.cause_key is not None
        and other.cause_key == entry.cause_key
    )
    return EntryView(
        entry,
        entry.question,
        tuple(_facts(run, entry)),
        options,
        entry.deadline_at,
        entry.overdue,
        entry.snoozed_until,
        at_deadline,
        _rule_text(world, entry),
        answered,
        entry.kind in ("fail", "error", "partial", "agent") and entry.parks != "none",
        same,
    )


def _facts(run: Run, entry: Entry) -> list[tuple[str, str]]:
    found = [("run", f"{run.run_id} ({run.mode})")]
    index = entry.item_index
    if index is not None:
        work = run.spec.work(index)
        steps = [run.steps[number] for number in run.items[index].steps]
        found += [("item", f"{entry.item} ({index + 1} of {run.total})"), ("agent", work.agent), ("zone", work.zone)]
        found.append(
            ("attempts", f"{len({step.attempt for step in steps})}, resumed {sum(s.resumes > 0 for s in steps)}")
        )
        found += [("last cause", step.cause) for step in steps[-1:] if step.cause]
    for label, value in (
        ("failed", entry.summary.failed),
        ("tried", entry.summary.tried),
        ("impact", entry.summary.impact),
        ("raised by", entry.raised_by),
        ("held by", entry.held_by),
        ("before it", entry.previous),
    ):
        if value:
            found.append((label, value))
    if entry.reasons:
        found.append(("reasons", "; ".join(texts.REASONS.get(reason, reason) for reason in entry.reasons)))
    if entry.deadlock:
        found.append(("deadlock", "this block and another wait for each other"))
    return found


def _rule_text(world: World, entry: Entry) -> str | None:
    rule = world.learning.rules.get(entry.rule or "")
    if rule is None:
        return None
    why = "is suspended: its last answer did not work" if rule.state == "suspended" else "only recommends here"
    return f"{rule.id} would answer {rule.option_id!r}; it {why}"
