"""The guarded writer of one plan: lock, read, mend, then append what was decided (docs/specs/delegation.md §4)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from core.clock import Clock, stamp
from core.delegation import canon, reader
from core.delegation.contract import Revision
from core.delegation.events import form_problem
from core.delegation.lock import PlanLock
from core.delegation.model import EVENT_URLS, JOURNAL, LEDGERS, LOCK
from core.delegation.place import Place
from core.delegation.progress import Entry, Progress, evolve
from core.delegation.rules import Draft, NotAllowed, actor_problem, known_task, own
from core.files import LINE_CAP, Root
from core.finding import Finding, Refused, error

ERROR, USAGE, NOT_STARTED, NOT_COMPLETE, NOT_DELEGATED = 1, 2, 3, 4, 5


@dataclass(frozen=True, slots=True)
class World:
    """What comes in from outside: time, environment, six random hex digits at a time, and how to wait."""

    clock: Clock
    environ: Mapping[str, str]
    token: Callable[[], str]
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True, slots=True)
class Hold:
    """How a plan is taken: `force` takes a lock over, `expect` is the head seq that a preview was drawn from (§8)."""

    force: bool = False
    expect: int | None = None


PLAIN: Final = Hold()


class Halt(Exception):
    """An act that ended in an error. `exit` is 1 or 2; `events` is what was written before that (a repair)."""

    def __init__(self, exit_code: int, finding: Finding, events: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(finding.cause)
        self.exit, self.finding, self.events = exit_code, finding, tuple(events)


def halt(code: str, cause: str, where: str | None = None, command: str | None = None) -> Halt:
    """An error with exit code 1."""
    return Halt(ERROR, error(code, cause, command, where))


@dataclass
class Writer:
    """A held plan: what was read, and what was written since."""

    root: Root
    record: reader.Record
    lock: PlanLock
    world: World
    size: int
    written: list[dict[str, Any]] = field(default_factory=list)

    @property
    def place(self) -> Place:
        return self.record.place

    @property
    def contract(self) -> Revision:
        return self.record.chain.live

    @property
    def progress(self) -> Progress:
        return self.record.progress

    @property
    def next_seq(self) -> int:
        return self.record.head_seq + 1

    def event(self, draft: Draft, seq: int) -> dict[str, Any]:
        return envelope(self.contract, draft, seq, self.world.clock.now())

    def checked(self, draft: Draft, seq: int, adapter: bool = False) -> dict[str, Any]:
        """The event of a draft. Raises Halt (1) naming the field that is wrong."""
        problem = None if draft.own else actor_problem(draft.actor, adapter)
        if problem is not None:
            raise halt("actor_forbidden", problem, "--actor-kind")
        event = self.event(draft, seq)
        problem = form_problem(event, self.contract.generation)
        if problem is not None:
            raise halt("event_invalid", f"the {draft.type} event would be malformed: {problem}")
        if draft.type == "gate_run":
            known_task(self.contract, event["task"])
        return event

    def commit(self, *drafts: Draft, adapter: bool = False) -> list[dict[str, Any]]:
        """Append events in one write. Raises Halt: 1 when one is malformed, 2 when somebody wrote past the lock."""
        events = [self.checked(draft, self.next_seq + index, adapter) for index, draft in enumerate(drafts)]
        self._append(b"".join(_line(event) for event in events), events)
        return events

    def check_position(self) -> None:
        """The journal must be what this writer last saw (§4)."""
        signature = self.root.signature(JOURNAL)
        size = signature.size if signature is not None else 0
        if size != self.size:
            cause = f"{JOURNAL} has {size} bytes, not {self.size}: somebody wrote past the lock; nothing was written"
            raise Halt(USAGE, error("journal_collision", cause, None, JOURNAL), self.written)
        if not self.lock.mine():
            raise halt("lock_lost", "somebody took the plan's lock over meanwhile; nothing was written", LOCK)

    def _append(self, data: bytes, events: Sequence[dict[str, Any]]) -> None:
        self.check_position()
        try:
            self.root.append(JOURNAL, data)
        except Refused as exc:
            raise Halt(ERROR, exc.findings[0], self.written) from None
        self.size += len(data)
        for event in events:
            evolve(self.record.progress, event)
            self.record.head_seq = max(self.record.head_seq, event["seq"])
            for entries in (self.record.entries, self.record.live):
                entries.append(Entry(JOURNAL, 0, event))
            self.written.append(event)

    def mend(self) -> None:
        """Cut a bad last line or end a good one, and say so first (§4)."""
        torn = self.record.torn
        if torn is not None:
            self.check_position()
            try:
                self.root.truncate(JOURNAL, torn.offset)
            except Refused as exc:
                raise Halt(ERROR, exc.findings[0]) from None
            self.size = torn.offset
            self.record.torn = None
            body = {"byte_offset": torn.offset, "cause": f"the last line was cut: {torn.cause}"}
            self.commit(own(self.contract, "journal_repair", body))
        elif self.record.unframed:
            body = {"byte_offset": self.size, "cause": "the last line was complete, its newline was restored"}
            event = self.checked(own(self.contract, "journal_repair", body), self.next_seq)
            # The newline and the record of it in one write: neither is there without the other.
            self._append(b"\n" + _line(event), [event])
            self.record.unframed = False


def envelope(contract: Revision, draft: Draft, seq: int, now: datetime) -> dict[str, Any]:
    """A draft with its envelope; fields of the envelope in the draft lose (§5)."""
    made = {
        **draft.body,
        "schema": EVENT_URLS[contract.generation],
        "type": draft.type,
        "seq": seq,
        "ts": stamp(now),
        "plan": contract.plan,
        "contract_id": contract.id,
        "actor": dict(draft.actor),
    }
    return made if draft.note is None else {**made, "note": draft.note}


def _line(event: Mapping[str, Any]) -> bytes:
    try:
        data = canon.line(event)
    except ValueError as exc:
        raise halt("event_invalid", f"the {event['type']} event has no canonical form: {exc}") from None
    if len(data) > LINE_CAP:
        raise halt("line_too_long", f"the {event['type']} event has {len(data)} bytes; at most {LINE_CAP} fit a line")
    return data


@contextmanager
def locked(place: Place, world: World, generation: str, hold: Hold = PLAIN) -> Iterator[tuple[Root, PlanLock]]:
    """Hold a plan's lock; every way out releases it. Raises Halt (1) naming the holder."""
    try:
        # Temporary files live in the lock's own folder: they vanish with it, also when a killed writer left them.
        root = Root(place.plan, LOCK)
    except Refused as exc:
        raise Halt(ERROR, exc.findings[0]) from None
    with root:
        lock = PlanLock(root, LEDGERS[generation], world.clock, world.token())
        try:
            lock.acquire(hold.force, world.sleep)
        except Refused as exc:
            raise Halt(ERROR, exc.findings[0]) from None
        try:
            yield root, lock
        finally:
            lock.release()


@contextmanager
def writing(place: Place, world: World, hold: Hold = PLAIN) -> Iterator[Writer]:
    """Contract, lock, read, mend (§4), then the body decides and commits. Raises Halt."""
    try:
        with Root(place.plan) as root:
            generation = reader.read_chain(root, place).live.generation
    except Refused as exc:
        raise Halt(ERROR, exc.findings[0]) from None
    with locked(place, world, generation, hold) as (root, lock):
        writer = opened(root, lock, place, world, hold)
        try:
            yield writer
        except Halt as exc:
            raise Halt(exc.exit, exc.finding, writer.written) from exc
        except NotAllowed as exc:
            raise Halt(ERROR, error(exc.code, exc.cause), writer.written) from exc
        except Refused as exc:
            raise Halt(ERROR, exc.findings[0], writer.written) from exc


def opened(root: Root, lock: PlanLock, place: Place, world: World, hold: Hold = PLAIN) -> Writer:
    """A writer on a plan whose lock is held, its journal mended. Raises Halt."""
    try:
        record = reader.read_open(root, place, keep=True)
    except Refused as exc:
        raise Halt(ERROR, exc.findings[0]) from None
    refuse_damage(record)
    if hold.expect is not None and record.head_seq != hold.expect:
        cause = f"the journal is at seq {record.head_seq}, the preview was drawn at {hold.expect}; look at it again"
        raise Halt(USAGE, error("head_moved", cause, None, JOURNAL))
    writer = Writer(root, record, lock, world, record.size or 0)
    writer.mend()
    return writer


def refuse_damage(record: reader.Record) -> None:
    """A damaged record takes no more events and is never cut in its middle. Raises Halt (1)."""
    if record.damaged:
        first = record.damaged[0]
        more = f" (and {len(record.damaged) - 1} more)" if len(record.damaged) > 1 else ""
        raise halt("journal_damaged", f"{first.sentence}{more}; restore it before anything is written", first.file)
