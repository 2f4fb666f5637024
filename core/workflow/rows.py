"""Runs in one line each: result, escalation, progress (docs/specs/console.md §2, Workflows)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from types import NoneType
from typing import Any, Final

from core.workflow import templates, times
from core.workflow.filling import variables
from core.workflow.state import Run, World

_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "str": (str,),
    "int": (int,),
    "bool": (bool,),
    "str | None": (str, NoneType),
}


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run in one line: result, escalation, progress. `waits` says for what, in words; None when it does not."""

    run_id: str
    workflow: str
    mode: str
    done: int
    total: int
    outcome: str
    waits: str | None
    started_at: str
    completed_at: str | None
    since: str
    counts: Mapping[str, int]
    open_entries: tuple[str, ...]
    in_flight: int
    overdue: bool
    spec_changed: bool
    number: int
    seq: int
    by: str
    result: str | None
    steps: int
    stopped_by: str | None
    by_rule: int

    def as_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__ if name != "counts"} | {
            "counts": dict(self.counts)
        }

    @classmethod
    def read(cls, made: Mapping[str, Any]) -> RunRow:
        """The row of `as_json`. Raises TypeError or ValueError for anything else."""
        row = cls(**{**made, "open_entries": tuple(made["open_entries"]), "counts": dict(made["counts"])})
        typed = all(isinstance(getattr(row, one.name), _KINDS.get(str(one.type), object)) for one in fields(cls))
        texts, numbers = (*row.open_entries, *row.counts), row.counts.values()
        if not typed or not all(isinstance(one, str) for one in texts) or not all(isinstance(n, int) for n in numbers):
            raise TypeError("a row of other types")
        return row


def run_row(run: Run, now: int) -> RunRow:
    opened = [entry for name in sorted(run.open_entries) if (entry := run.entries.get(name)) is not None]
    closed = sum(item.state == "closed" for item in run.items)
    waits = None
    if opened:
        waits = opened[0].question if len(opened) == 1 else f"{opened[0].question} (and {len(opened) - 1} more)"
    return RunRow(
        run.run_id,
        run.workflow,
        run.mode,
        closed,
        run.total,
        run.outcome_at(now),
        waits,
        times.text(run.started_at),
        None if run.completed_at is None else times.text(run.completed_at),
        times.text(run.last_at),
        {name: count for name, count in run.tally.items() if count},
        tuple(entry.id for entry in opened),
        len(run.flight),
        any(entry.overdue for entry in opened),
        run.spec_changed,
        run.number,
        run.seq,
        run.by,
        result_text(run),
        len(run.steps),
        None if run.aborted is None else str(run.aborted["decided_by"]),
        run.auto_resolved,
    )


def runs(world: World, now: int, past: Iterable[RunRow] = ()) -> list[RunRow]:
    """Every run: what waits for people first, then what runs, then what ended, the latest first.

    `past` are rows of runs that were not read, because they are over.
    """
    rows = [*(run_row(run, now) for run in world.in_order()), *past]
    rank = {"waiting": 0, "running": 1}
    return sorted(rows, key=lambda row: (not row.open_entries, rank.get(row.outcome, 2), -row.number))


def result_text(run: Run) -> str | None:
    """What the completion of a run said, filled from its counts; None while it goes on, or when it says nothing."""
    said = run.spec.on_complete
    if run.completed_at is None or said is None or (run.aborted is not None and not said.on_abort):
        return None
    result = templates.fill_all(said.payload, variables(run, None)).get("result")
    return result if isinstance(result, str) else None
