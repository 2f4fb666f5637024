"""What people see of a plan: its tasks, its delegations in time, what was refused (docs/specs/delegation.md §8).

A timeline is drawn from a record as it was read or followed; drawing runs no command and writes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from core.clock import stamp
from core.delegation import place as places
from core.delegation.canon import moment
from core.delegation.contract import Chain
from core.delegation.place import Place
from core.delegation.progress import (
    Blocker,
    CriterionState,
    Delegated,
    Gap,
    Progress,
    Refused,
    Status,
    blockers,
    criterion_states,
    observers,
    read_only,
    refused_between,
    seq_gaps,
    seq_of,
    status,
    text_of,
)
from core.delegation.reader import Damage
from core.files import Root, Signature

Shown = Literal["disordered", "open", "open-task-completed", "completed", "failed", "cancelled"]
Result = Literal["none", "unhashed", "matches", "changed", "missing"]
DISORDER: Final = frozenset(
    {"delegation-no-launch", "delegation-relaunched", "delegation-second-end", "delegation-drift"}
)
CLAIM: Final = "A completed delegation is a claim. It is no evidence until a gate of this plan has observed it."
_OPERATIONS: Final = {"dispatch": "delegate", "gate": "complete", "task_start": "start"}


class Source(Protocol):
    """What a timeline is drawn from: a record that was read, or one that is followed."""

    @property
    def place(self) -> Place: ...
    @property
    def chain(self) -> Chain: ...
    @property
    def progress(self) -> Progress: ...
    @property
    def damaged(self) -> Sequence[Damage]: ...
    @property
    def torn(self) -> Damage | None: ...


@dataclass(frozen=True, slots=True)
class Row:
    """One delegation. Times are as recorded; `age_s` seconds from launch to end or to the timeline's moment."""

    delegation_id: str
    task: str | None
    state: str
    shown: Shown
    transport: str | None
    via: str | None
    kind: str | None
    profile: str | None
    target: str | None
    worktree: str | None
    read_only: bool
    launched_seq: int | None
    launched_at: str | None
    ended_seq: int | None
    ended_at: str | None
    age_s: int | None
    prompt_digest: str | None
    result_path: str | None
    result_digest: str | None
    result: Result | None
    refusals: tuple[int, ...]
    observed_by: tuple[int, ...]
    findings: tuple[str, ...]

    @property
    def claim(self) -> bool:
        """Completed, and no gate of the task has passed since: only a claim yet."""
        return self.state == "completed" and not self.observed_by

    def as_json(self) -> dict[str, Any]:
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class TaskLine:
    """One task with its derived status and everything that keeps it from being complete."""

    id: str
    title: str
    parallel_safe: bool
    status: Status
    started_seq: int | None
    criteria: tuple[CriterionState, ...]
    blockers: tuple[Blocker, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "title": self.title,
            "parallel_safe": self.parallel_safe,
            "status": self.status,
            "started_seq": self.started_seq,
            "criteria": [state.as_json() for state in self.criteria],
            "blockers": [{"kind": item.kind, "id": item.id} for item in self.blockers],
        }


@dataclass(frozen=True, slots=True)
class RefusalLine:
    """A recorded refusal; `task` is None when it names none of the contract, `op` is delegate, complete or start."""

    seq: int
    ts: str
    task: str | None
    op: str
    reason: str
    by_helper: bool


@dataclass(frozen=True, slots=True)
class RollUp:
    """Delegations counted by how they are shown; `claims` are completed ones that no gate has observed."""

    total: int = 0
    open: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    disordered: int = 0
    claims: int = 0
    oldest_open_s: int | None = None


@dataclass(frozen=True)
class Timeline:
    """A plan at a moment: the projection of `inspect -o json`."""

    plan: str
    generation: str
    contract_id: str
    revision: int
    as_of: datetime
    until: int | None
    lock: Mapping[str, Any] | None
    events: int
    head_seq: int
    torn: bool
    damaged: tuple[Damage, ...]
    seq_gaps: tuple[tuple[int, int], ...]
    tasks: tuple[TaskLine, ...]
    rows: tuple[Row, ...]
    refusals: tuple[RefusalLine, ...]
    gaps: tuple[Gap, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "plan": self.plan,
            "generation": self.generation,
            "contract_id": self.contract_id,
            "revision": self.revision,
            "as_of": stamp(self.as_of),
            "until": self.until,
            "lock": self.lock,
            "journal": {
                "events": self.events,
                "head_seq": self.head_seq,
                "torn": self.torn,
                "damaged": [{"file": item.file, "line": item.line or None} for item in self.damaged],
                "seq_gaps": [list(gap) for gap in self.seq_gaps],
            },
            "tasks": [task.as_json() for task in self.tasks],
            "delegations": [row.as_json() for row in self.rows],
            "refusals": [asdict(item) for item in self.refusals],
            "gaps": [gap._asdict() for gap in self.gaps],
        }

    def rolled(self, task: str | None = None) -> RollUp:
        """Counts over the plan, or over one task."""
        return roll_up(row for row in self.rows if task is None or row.task == task)

    @property
    def moments(self) -> tuple[str, str] | None:
        """First launch and last end, the ends of the drawn axis; None without a launch."""
        starts = [row.launched_at for row in self.rows if row.launched_at is not None]
        ends = [row.ended_at or stamp(self.as_of) for row in self.rows if row.launched_at is not None]
        return (min(starts), max(ends)) if starts else None


def roll_up(rows: Iterable[Row]) -> RollUp:
    """Counts over rows."""
    listed = list(rows)
    count = {state: sum(row.shown == state for row in listed) for state in ("completed", "failed", "cancelled")}
    opened = [row for row in listed if row.shown in ("open", "open-task-completed")]
    return RollUp(
        total=len(listed),
        open=len(opened),
        disordered=sum(row.shown == "disordered" for row in listed),
        claims=sum(row.claim for row in listed),
        oldest_open_s=max((row.age_s for row in opened if row.age_s is not None), default=None),
        **count,
    )


@dataclass
class Results:
    """Whether results still are what they were: hashed when asked for, again only when the file changed."""

    place: Place
    _known: dict[tuple[str, str], tuple[tuple[Signature | None, ...], Result]] = field(default_factory=dict)

    def state(self, event: Mapping[str, Any]) -> Result:
        """Of an event that may name a result."""
        path, digest = text_of(event, "result_path"), text_of(event, "result_digest")
        if path is None:
            return "none"
        if digest is None:
            return "unhashed"
        signatures = tuple(_signature(base, path) for base in (self.place.plan, self.place.repo))
        known = self._known.get((path, digest))
        if known is not None and known[0] == signatures:
            return known[1]
        now = places.hash_result(self.place, path)
        found: Result = "missing" if now is None else "matches" if now == digest else "changed"
        self._known[path, digest] = (signatures, found)
        return found


def _signature(base: Path, name: str) -> Signature | None:
    real = places.within(base, name)
    if real is None:
        return None
    with Root(Path(os.path.realpath(base))) as root:
        return root.signature(real)


def timeline(
    source: Source,
    as_of: datetime,
    until: int | None = None,
    lock: Mapping[str, Any] | None = None,
    result: Callable[[Mapping[str, Any]], Result | None] | None = None,
) -> Timeline:
    """The whole projection. `result` says what a result is now; without it a result that has a path stays None.

    The source must already be what it was after `until`.
    """
    progress, live = source.progress, source.chain.live
    return Timeline(
        plan=live.plan,
        generation=live.generation,
        contract_id=live.id,
        revision=live.number,
        as_of=as_of,
        until=until,
        lock=lock,
        events=progress.events,
        head_seq=progress.head_seq,
        torn=source.torn is not None,
        damaged=tuple(source.damaged),
        seq_gaps=tuple(seq_gaps(progress)),
        tasks=tuple(task_line(source, name) for name in live.tasks),
        rows=tuple(row(source, known, as_of, result) for known in progress.delegations.values()),
        refusals=tuple(refusal_line(source, item) for item in progress.refusals),
        gaps=tuple(progress.gaps),
    )


def task_line(source: Source, name: str) -> TaskLine:
    """One task of the live contract."""
    progress, live = source.progress, source.chain.live
    task = live.tasks[name]
    return TaskLine(
        id=name,
        title=task.title,
        parallel_safe=task.marked,
        status=status(progress, live, name),
        started_seq=progress.starts.get(name),
        criteria=tuple(criterion_states(progress, live, name)),
        blockers=tuple(blockers(progress, live, name)),
    )


def refusal_line(source: Source, item: Refused) -> RefusalLine:
    """A refusal with the task that it names, if the contract has it."""
    task = item.named if item.named in source.chain.live.tasks else None
    return RefusalLine(item.seq, item.ts, task, _OPERATIONS.get(item.stage, item.stage), item.reason, item.by_helper)


def row(
    source: Source,
    known: Delegated,
    as_of: datetime,
    result: Callable[[Mapping[str, Any]], Result | None] | None = None,
) -> Row:
    """One delegation: fields of its launch (else of its first event), the state of its latest event, its first end."""
    progress = source.progress
    shown_from = known.launch or known.first
    launched, ended = known.launch, known.end
    task = text_of(shown_from, "task")
    age, backwards = _age(launched, ended, as_of)
    findings = [*known.findings, *(["clock-backwards"] if backwards else [])]
    path = text_of(known.latest, "result_path")
    ended_seq = seq_of(ended) if ended is not None else None
    return Row(
        delegation_id=known.id,
        task=task,
        state=known.state,
        shown=_shown(source, known),
        transport=text_of(shown_from, "transport"),
        via=text_of(shown_from, "via"),
        kind=text_of(shown_from, "kind"),
        profile=text_of(shown_from, "profile"),
        target=text_of(shown_from, "target"),
        worktree=text_of(shown_from, "worktree"),
        read_only=read_only(shown_from),
        launched_seq=seq_of(launched) if launched is not None else None,
        launched_at=text_of(launched, "ts") if launched is not None else None,
        ended_seq=ended_seq,
        ended_at=text_of(ended, "ts") if ended is not None else None,
        age_s=age,
        prompt_digest=text_of(shown_from, "prompt_digest"),
        result_path=path,
        result_digest=text_of(known.latest, "result_digest"),
        result="none" if path is None else result(known.latest) if result is not None else None,
        refusals=tuple(_refusals(source, known, task)),
        observed_by=tuple(observers(progress, task, ended_seq)) if ended_seq is not None else (),
        findings=tuple(findings),
    )


def _shown(source: Source, known: Delegated) -> Shown:
    if DISORDER.intersection(known.findings):
        return "disordered"
    if known.state == "completed":
        return "completed"
    if known.state == "failed":
        return "failed"
    if known.state == "cancelled":
        return "cancelled"
    task, live = known.task, source.chain.live
    done = task in live.tasks and status(source.progress, live, task or "") == "completed"
    return "open-task-completed" if done else "open"


def _age(
    launched: Mapping[str, Any] | None, ended: Mapping[str, Any] | None, as_of: datetime
) -> tuple[int | None, bool]:
    """(seconds, whether the clock ran backwards)."""
    begin = moment(launched.get("ts")) if launched is not None else None
    if begin is None:
        return None, False
    finish = (moment(ended.get("ts")) if ended is not None else None) or as_of
    seconds = int((finish - begin).total_seconds())
    return max(0, seconds), finish < begin


def _refusals(source: Source, known: Delegated, task: str | None) -> list[int]:
    """The refusals of its task between launch and end, or now."""
    first = seq_of(known.launch) if known.launch is not None else None
    if first is None or task not in source.chain.live.tasks:
        return []
    last = seq_of(known.end) if known.end is not None else None
    return refused_between(source.progress, task or "", first, last)
