"""The engine's state: a projection of the logs, immutable, cheap to replace (docs/specs/workflows.md §4).

Moments are milliseconds. Events are records `{seq, at, event, …}` in a stream: a run's id, `engine` or `learning`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from core.workflow.layout import ENGINE_STREAM as ENGINE_STREAM
from core.workflow.layout import LEARNING_STREAM as LEARNING_STREAM
from core.workflow.model import Entry, Profile, Proposal, Rule, Spec
from core.workflow.persistent import Table, Vector

FAR: Final = 1 << 60

_NO_ROWS: Final[Vector[Any]] = Vector()
_NO_KEYS: Final[Table[Any, Any]] = Table()
_NO_PAIRS: Final[Mapping[str, Any]] = MappingProxyType({})

ItemState = Literal["queued", "open", "settling", "backoff", "ready", "parked", "closed"]


class Event(NamedTuple):
    """One line of a log. `stream` is a run's id, `engine` or `learning`."""

    stream: str
    record: Mapping[str, Any]

    @property
    def name(self) -> str:
        made: str = self.record["event"]
        return made


class Step(NamedTuple):
    """One SPAWN and what became of it; `place` is the item's index."""

    place: int
    item: str
    agent: str
    attempt: int
    resumes: int
    spawned_at: int
    signal_in: str | None = None
    result: str = "pending"
    duration_ms: int | None = None
    cause: str | None = None
    by: str | None = None
    rule: str | None = None
    closed: bool = False
    recorded: Any = None


class Item(NamedTuple):
    """One item of a run.

    `due` is the deadline of an open SPAWN or the end of a backoff; `hold` says what goes on after an answer;
    `next_context` travels in the next SPAWN only; `last_block` is (what it was about, whether it was unblocked).
    """

    state: ItemState = "queued"
    attempt: int = 0
    resumes: int = 0
    steps: tuple[int, ...] = ()
    due: int = FAR
    why: str = "first"
    rule: str | None = None
    next_context: Mapping[str, Any] | None = None
    checkpoint: Any = None
    auto_retries: int = 0
    gate_passed: bool = False
    credentials: bool = False
    rule_fired: bool = False
    closed_result: str | None = None
    by: str | None = None
    entry: str | None = None
    hold: Mapping[str, Any] | None = None
    last_block: tuple[str, bool] | None = None


class Run(NamedTuple):
    """One run. `tally` counts items by the result that the record shows; `cursor` is the lowest index never touched."""

    run_id: str
    number: int
    workflow: str
    spec: Spec
    spec_hash: str
    mode: str
    parent: str
    by: str
    started_at: int
    profiles: Mapping[str, Profile]
    granted: bool
    seq: int = 0
    last_at: int = 0
    cursor: int = 0
    live: int = 0
    fresh: int = 0
    entry_gate: str | None = None
    items: Vector[Item] = _NO_ROWS
    steps: Vector[Step] = _NO_ROWS
    flight: frozenset[int] = frozenset()
    waiting: frozenset[int] = frozenset()
    parking: int = 0
    entry_ids: Vector[str] = _NO_ROWS
    entries: Table[str, Entry] = _NO_KEYS
    open_entries: Table[str, bool] = _NO_KEYS
    rechecks: frozenset[str] = frozenset()
    tally: Mapping[str, int] = _NO_PAIRS
    breakers: Mapping[str, int] = _NO_PAIRS
    errors: int = 0
    retries: int = 0
    blocks: int = 0
    escalations: int = 0
    auto_resolved: int = 0
    rejected: int = 0
    spec_changed: bool = False
    aborted: Mapping[str, Any] | None = None
    completed_at: int | None = None
    outcome: str | None = None
    next_due: int = FAR

    @property
    def open(self) -> bool:
        return self.completed_at is None

    @property
    def total(self) -> int:
        return len(self.spec.items)

    def result(self, index: int) -> str:
        """What the record's `final` says of an item."""
        return item_result(self.items[index], self.steps)

    def outcome_at(self, now: int) -> str:
        """`outcome` of the record: the final one, else aborted, waiting or running."""
        if self.outcome is not None:
            return self.outcome
        if self.aborted is not None:
            return "aborted"
        items = self.items
        backoff = any(items[index].state == "backoff" and items[index].due > now for index in self.waiting)
        return "waiting" if self.open_entries and not self.flight and not backoff else "running"

    def last_step(self, index: int) -> Step | None:
        steps = self.items[index].steps
        return self.steps[steps[-1]] if steps else None


def item_result(item: Item, steps: Vector[Step]) -> str:
    if item.closed_result is not None:
        return item.closed_result
    return steps[item.steps[-1]].result if item.steps else "not_started"


class Answers(NamedTuple):
    """What was answered to one cause, the last option in a row: `entries` are those that count."""

    option: str
    args: Any
    entries: tuple[str, ...]


class Learning(NamedTuple):
    """The projection of learning.jsonl. `errors`: cause to the runs that met it since the count last began."""

    seq: int = 0
    answers: Table[str, Answers] = _NO_KEYS
    errors: Table[str, tuple[str, ...]] = _NO_KEYS
    counted: Table[str, bool] = _NO_KEYS
    proposals: Mapping[str, Proposal] = _NO_PAIRS
    rules: Mapping[str, Rule] = _NO_PAIRS

    def rule_of(self, cause_key: str) -> Rule | None:
        """The rule of a cause that is not revoked."""
        return next((r for r in self.rules.values() if r.cause_key == cause_key and r.state != "revoked"), None)

    def asks(self, cause_key: str, kind: str) -> bool:
        """Whether a proposal of that kind and cause is open."""
        return any(p.cause_key == cause_key and p.kind == kind and p.state == "open" for p in self.proposals.values())


class World(NamedTuple):
    """Everything below one root. `runs` are those that were read; `decided` are entries whose answer is not applied.

    `days` counts entries, proposals and rules per UTC day; `specs` is what the last look at each workflow file said.
    """

    runs: Mapping[str, Run] = _NO_PAIRS
    order: tuple[str, ...] = ()
    started: int = 0
    last_at: int = 0
    entry_run: Table[str, str] = _NO_KEYS
    decided: tuple[str, ...] = ()
    days: Mapping[str, int] = _NO_PAIRS
    seen: Table[str, bool] = _NO_KEYS
    learning: Learning = Learning()
    engine_seq: int = 0
    refused: tuple[Mapping[str, Any], ...] = ()
    stray: tuple[Mapping[str, Any], ...] = ()
    disabled: Mapping[str, Mapping[str, Any]] = _NO_PAIRS
    fired: Mapping[str, int] = _NO_PAIRS

    def entry(self, entry_id: str) -> Entry | None:
        run = self.runs.get(self.entry_run.get(entry_id) or "")
        return None if run is None else run.entries.get(entry_id)

    def open_run(self, workflow: str) -> Run | None:
        """The open run of a workflow; there is at most one."""
        return next((run for run in self.runs.values() if run.workflow == workflow and run.open), None)

    def in_order(self) -> list[Run]:
        """Runs in order of start."""
        return [self.runs[name] for name in self.order]
