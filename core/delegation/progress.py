"""What a plan's journal adds up to, event by event (docs/specs/delegation.md §5, §8). Pure: no clock, no file, no lock.

`Progress` is an accumulator: `evolve` adds one event to it at a cost that does not depend on how many delegations
there are, so a screen follows a journal with it and a writer decides on it. Evidence, observations and approvals
count only when their form is right; delegations and starts count as they stand, since ignoring them would allow more.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from core.delegation.canon import moment
from core.delegation.contract import Chain, Revision
from core.delegation.events import READ_ONLY_MARK, STATES, form_problem

IDLE_SECONDS: Final = 900
_CHECKED: Final = frozenset({"gate_run", "observation", "approval", "amendment", "delegation"})
_INVARIANT: Final = re.compile(r"(INV-[a-z0-9]+(?:-[a-z0-9]+)*): (pass|fail|fail: .+)", re.DOTALL)
_AMENDS: Final = re.compile(r"amendment to revision [0-9]+ contract ([0-9a-f]{64})(?![0-9a-f])")

Status = Literal["pending", "in_progress", "completed"]
BlockerKind = Literal["delegation", "invariant", "criterion"]


class Entry(NamedTuple):
    """An event where it stands: file, line number from 1, and the object."""

    file: str
    line: int
    event: Mapping[str, Any]


class Blocker(NamedTuple):
    """One thing that `complete` would name."""

    kind: BlockerKind
    id: str


@dataclass(frozen=True, slots=True)
class CriterionState:
    """Whether a criterion is satisfied for a task, and by which event under which trust."""

    criterion: str
    satisfied: bool
    via_seq: int | None = None
    trust: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "criterion": self.criterion,
            "satisfied": self.satisfied,
            "via_seq": self.via_seq,
            "trust": self.trust,
        }


@dataclass(slots=True)
class Delegated:
    """All that the journal says about one delegation id. What is `sound` is well-formed: only that is judged."""

    id: str
    first: Mapping[str, Any]
    latest: Mapping[str, Any]
    launch: Mapping[str, Any] | None = None
    end: Mapping[str, Any] | None = None
    sound_launch: Mapping[str, Any] | None = None
    sound_end: Mapping[str, Any] | None = None
    sound_latest: Mapping[str, Any] | None = None
    findings: list[str] = field(default_factory=list)

    @property
    def state(self) -> str:
        return str(self.latest["state"])

    @property
    def task(self) -> str | None:
        return text_of(self.latest, "task")

    @property
    def open(self) -> bool:
        return self.state == "launched"

    def found(self, rule: str) -> None:
        if rule not in self.findings:
            self.findings.append(rule)


@dataclass(frozen=True, slots=True)
class Refused:
    """A recorded refusal, as it stands: `subject` and `stage` tell what was refused."""

    seq: int
    ts: str
    subject: str
    stage: str
    reason: str
    by_helper: bool

    @property
    def named(self) -> str:
        """What it may name a task by: `delegate T` for a dispatch, T itself else."""
        return self.subject.removeprefix("delegate ") if self.stage == "dispatch" else self.subject


class Gap(NamedTuple):
    """Neighbouring events with 900 s or more between them."""

    after_seq: int
    before_seq: int
    seconds: int


@dataclass(slots=True)
class Progress:
    """The accumulated journal, indexed by what is asked of it; `of_task` keeps ids in order of appearance."""

    chain: Chain
    events: int = 0
    head_seq: int = 0
    seqs: list[int] = field(default_factory=list)
    last_moment: datetime | None = None
    last_seq: int | None = None
    gaps: list[Gap] = field(default_factory=list)
    starts: dict[str, int] = field(default_factory=dict)
    approvals: set[str] = field(default_factory=set)
    passes: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    observed: dict[str, list[int]] = field(default_factory=dict)
    ran: dict[str, int] = field(default_factory=dict)
    invariants: dict[str, tuple[int, bool]] = field(default_factory=dict)
    floors: dict[str, int] = field(default_factory=dict)
    amended: dict[str, list[tuple[int, tuple[str, ...]]]] = field(default_factory=dict)
    delegations: dict[str, Delegated] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)
    open: dict[str, set[str]] = field(default_factory=dict)
    of_task: dict[str, dict[str, None]] = field(default_factory=dict)
    refusals: list[Refused] = field(default_factory=list)
    refused: dict[str, list[int]] = field(default_factory=dict)


def text_of(event: Mapping[str, Any], key: str) -> str | None:
    """A text field, None for anything else."""
    value = event.get(key)
    return value if isinstance(value, str) else None


def seq_of(event: Mapping[str, Any]) -> int | None:
    """The event's position, None when it has none."""
    value = event.get("seq")
    return value if type(value) is int and value >= 1 else None


def evolve(progress: Progress, event: Mapping[str, Any]) -> Progress:
    """Add one event; returns the same accumulator."""
    seq = seq_of(event)
    _position(progress, event, seq)
    kind = text_of(event, "type")
    if kind == "delegation":
        _delegation(progress, event, seq or 0)
        return progress
    if seq is None:
        return progress
    if kind == "task_start":
        task = text_of(event, "task")
        if task is not None:
            progress.starts[task] = max(seq, progress.starts.get(task, 0))
    elif kind == "refusal":
        _refusal(progress, event, seq)
    elif kind in _CHECKED and form_problem(event, progress.chain.live.generation) is None:
        _checked(progress, event, seq, str(kind))
    return progress


def fold(chain: Chain, events: Iterable[Mapping[str, Any]]) -> Progress:
    """The progress of a whole journal."""
    progress = Progress(chain)
    for event in events:
        evolve(progress, event)
    return progress


def _position(progress: Progress, event: Mapping[str, Any], seq: int | None) -> None:
    progress.events += 1
    if seq is None:
        return
    progress.head_seq = max(progress.head_seq, seq)
    insort(progress.seqs, seq)
    when = moment(event.get("ts"))
    if when is None:
        return
    if progress.last_moment is not None and progress.last_seq is not None:
        idle = int((when - progress.last_moment).total_seconds())
        if idle >= IDLE_SECONDS:
            progress.gaps.append(Gap(progress.last_seq, seq, idle))
    progress.last_moment, progress.last_seq = when, seq


def _checked(progress: Progress, event: Mapping[str, Any], seq: int, kind: str) -> None:
    if kind == "gate_run":
        task, criterion = str(event["task"]), str(event["criterion"])
        progress.ran[task] = max(seq, progress.ran.get(task, 0))
        if event["exit_code"] != 0 or criterion not in progress.chain.judge(event["contract_id"]).intents(task):
            return
        best = progress.passes.setdefault((task, criterion), {})
        best[event["trust"]] = max(seq, best.get(event["trust"], 0))
        if event["trust"] == "observed":
            insort(progress.observed.setdefault(task, []), seq)
    elif kind == "observation":
        match = _INVARIANT.fullmatch(event["statement"])
        if match is not None and seq >= progress.invariants.get(match[1], (0, False))[0]:
            progress.invariants[match[1]] = (seq, match[2] == "pass")
    elif kind == "approval":
        progress.approvals.add(event["contract_id"])
        for amended in progress.amended.pop(event["contract_id"], ()):
            _invalidate(progress, *amended)
    else:
        named = tuple(item for item in event["evidence_invalidated"] if isinstance(item, str))
        match = _AMENDS.search(event.get("note", ""))
        if match is None or match[1] in progress.approvals:
            _invalidate(progress, seq, named)
        else:
            progress.amended.setdefault(match[1], []).append((seq, named))


def _invalidate(progress: Progress, seq: int, criteria: Iterable[str]) -> None:
    for criterion in criteria:
        progress.floors[criterion] = max(seq, progress.floors.get(criterion, 0))


def _refusal(progress: Progress, event: Mapping[str, Any], seq: int) -> None:
    actor = event.get("actor")
    helper = isinstance(actor, Mapping) and actor.get("kind") == "helper"
    said = {key: text_of(event, key) or "" for key in ("ts", "subject", "stage", "reason")}
    made = Refused(seq, by_helper=helper, **said)
    progress.refusals.append(made)
    insort(progress.refused.setdefault(made.named, []), seq)


def _delegation(progress: Progress, event: Mapping[str, Any], seq: int) -> None:
    name = text_of(event, "delegation_id")
    if name is None:
        return
    progress.ids.add(name)
    if event.get("state") not in STATES:
        return
    known = progress.delegations.get(name)
    if known is None:
        known = progress.delegations[name] = Delegated(name, event, event)
    before = known.task
    if before is not None:
        progress.open.get(before, set()).discard(name)
    known.latest = event
    after = known.task
    if after is not None:
        if known.open:
            progress.open.setdefault(after, set()).add(name)
        progress.of_task.setdefault(after, {}).setdefault(name)
    launched = event["state"] == "launched"
    if launched:
        known.launch = known.launch or event
    else:
        known.end = known.end or event
    if form_problem(event, progress.chain.live.generation) is None:
        for rule in ordering(known, event):
            known.found(rule)
        contract = progress.chain.cited(event["contract_id"])
        if launched and contract is not None and unlawful(progress, contract, event) is not None:
            known.found("delegation-unlawful")
        known.sound_latest = event
        if launched:
            known.sound_launch = known.sound_launch or event
        else:
            known.sound_end = known.sound_end or event


def ordering(known: Delegated | None, event: Mapping[str, Any]) -> list[str]:
    """Rules of §8 that a well-formed delegation event breaks, given what is known of its id before it."""
    launch = known.sound_launch if known is not None else None
    end = known.sound_end if known is not None else None
    if event["state"] == "launched":
        return [] if launch is None else ["delegation-relaunched"]
    found = []
    if launch is None:
        found.append("delegation-no-launch")
    elif any(event.get(key) != launch.get(key) for key in ("task", "transport", "via")):
        found.append("delegation-drift")
    if end is not None:
        found.append("delegation-second-end")
    return found


def unlawful(before: Progress, contract: Revision, launch: Mapping[str, Any]) -> str | None:
    """Why a launch should not have been recorded, judged by the contract it cites and what came before it (§8)."""
    name = str(launch["task"])
    task = contract.tasks.get(name)
    if not contract.grants("agent_delegation"):
        return "the contract does not grant agent_delegation"
    if task is None or name not in before.starts:
        return f"{name} had not started"
    if status(before, contract, name) == "completed":
        return f"{name} was complete"
    if not task.marked and not read_only(launch):
        return f"{name} is not marked parallel_safe and the delegate is not read-only"
    return None


def refused_between(progress: Progress, task: str, after: int, before: int | None) -> list[int]:
    """Positions of the refusals that name a task, after one position and before another, or up to now."""
    seqs = progress.refused.get(task, [])
    return seqs[bisect_right(seqs, after) : len(seqs) if before is None else bisect_left(seqs, before)]


def read_only(event: Mapping[str, Any]) -> bool:
    """Read-only is the explicit null; an absent key is a writing delegate (§7)."""
    return "worktree" in event and event["worktree"] is None


def tree_mark(launch: Mapping[str, Any]) -> str | None:
    """The fingerprint in the mark of a read-only launch, None when there is no mark (§7)."""
    note = text_of(launch, "note") or ""
    if not read_only(launch) or not note.startswith(READ_ONLY_MARK):
        return None
    return note[len(READ_ONLY_MARK) :].split(" ", 1)[0]


def criterion_states(progress: Progress, contract: Revision, task: str) -> list[CriterionState]:
    """Each criterion of a task's gate_intent: the latest accepted pass inside the evidence window (§5)."""
    return [criterion_state(progress, contract, task, name) for name in contract.intents(task)]


def criterion_state(progress: Progress, contract: Revision, task: str, criterion: str) -> CriterionState:
    start = progress.starts.get(task)
    if start is None:
        return CriterionState(criterion, False)
    floor = window(progress, task, criterion)
    best = progress.passes.get((task, criterion), {})
    accepted = [(best[trust], trust) for trust in contract.accepted(criterion) if best.get(trust, 0) >= floor]
    if not accepted:
        return CriterionState(criterion, False)
    seq, trust = max(accepted)
    return CriterionState(criterion, True, seq, trust)


def window(progress: Progress, task: str, criterion: str) -> int:
    """The first seq that counts for a criterion: latest start, last effective amendment that invalidated it (§5)."""
    return max(progress.starts.get(task, 0), progress.floors.get(criterion, 0))


def status(progress: Progress, contract: Revision, task: str) -> Status:
    """Derived, never declared (§5)."""
    if task not in progress.starts:
        return "pending"
    states = criterion_states(progress, contract, task)
    return "completed" if all(item.satisfied for item in states) else "in_progress"


def blockers(progress: Progress, contract: Revision, task: str) -> list[Blocker]:
    """All that `complete` would name: open delegations, invariants, criteria, in this order (§5, §8)."""
    found = [Blocker("delegation", name) for name in sorted(progress.open.get(task, ()))]
    start = progress.starts.get(task)
    for item in contract.document.invariants:
        seq, passed = progress.invariants.get(item.id, (0, False))
        if not passed or start is None or seq < start:
            found.append(Blocker("invariant", item.id))
    found += [
        Blocker("criterion", item.criterion)
        for item in criterion_states(progress, contract, task)
        if not item.satisfied
    ]
    return found


def observers(progress: Progress, task: str | None, after: int) -> list[int]:
    """Passing `observed` gate runs of a task after a position."""
    seqs = progress.observed.get(task or "", [])
    return seqs[bisect_right(seqs, after) :]


def seq_gaps(progress: Progress) -> list[tuple[int, int]]:
    """[(first, last)] missing positions below the head."""
    found, expected = [], 1
    for seq in progress.seqs:
        if seq > expected:
            found.append((expected, seq - 1))
        expected = max(expected, seq + 1)
    return found
