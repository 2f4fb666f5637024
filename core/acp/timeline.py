"""A folder as it was after each event, and the story of an event or a decision (docs/specs/console.md §2).

State comes from the log; contents come from the sidecar's history. What a document held at an event that has no
record is unknown and says so: the present text is never shown as a past one.
"""

from __future__ import annotations

import shlex
from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from core.acp import history
from core.acp.history import Record, Records
from core.acp.model import DOCUMENTS, Document, Event, Setup, State
from core.acp.reader import Snapshot
from core.acp.rules import Fold, evolve
from core.clock import local, parse
from core.files import Root
from core.finding import Finding, Refused, error, warning
from core.sanitize import inert

STRIDE: Final = 256
"""Events between two kept states: a step folds at most so many."""

UNKNOWN: Final = "content_unknown"


def unknown(name: str, seq: int | None) -> Document:
    """A document whose content after that event nobody kept."""
    cause = f"the content of {name} at seq {seq} is unknown: that event was not written by this tool"
    return Document(name, None, None, warning(UNKNOWN, cause, None, name))


def is_unknown(document: Document) -> bool:
    """Whether nothing is known of a past content."""
    return document.problem is not None and document.problem.code == UNKNOWN


class Timeline:
    """The moments of one snapshot, by the index of the event in the log. Reads the sidecar, writes nothing.

    Belongs to one thread at a time.
    """

    def __init__(self, snapshot: Snapshot, before: Timeline | None = None, records: Records | None = None) -> None:
        """`before` is a timeline of an earlier snapshot: when the log has only grown, what it knows serves again.

        `records` are those of the folder, for whoever looks at it again and again.
        """
        self.snapshot = snapshot
        self._follow: Records = records or (before._follow if before is not None else Records())
        self._states: list[State] = [State()]
        self._seqs: dict[int, int] = {}
        self._records: dict[int, Record] = {}
        self._known: list[int] = []
        self._age, self._read = 0, 0
        self._early: list[Record] = []
        start = 0
        if before is not None and _grown(before.snapshot, snapshot):
            self._states, self._seqs = list(before._states), dict(before._seqs)
            start = len(before.events)
        moved = self._count(start)
        age, found = self._look()
        if before is not None and start and not moved and (age, self._follow) == (before._age, before._follow):
            self._records, self._known = dict(before._records), list(before._known)
            self._read, self._early = before._read, before._early
        self._age = age
        self._place([*self._early, *islice(found, self._read, None)])
        self._read = len(found)

    def _count(self, start: int) -> bool:
        """Number the events from `start` on; whether one of them takes the seq of an earlier one."""
        moved = False
        for at in range(start, len(self.events)):
            seq = self.events[at].seq
            if seq is not None:
                moved = moved or seq in self._seqs
                self._seqs[seq] = at
        return moved

    def _look(self) -> tuple[int, Sequence[Record]]:
        try:
            with Root(self.snapshot.path) as root:
                return self._follow.look(root)
        except Refused:
            # Without the sidecar every past content is unknown; the states are not.
            return -1, ()

    def _place(self, records: Iterable[Record]) -> None:
        """A record counts for the event that it names by seq and time; one of another log counts for none."""
        self._early = []
        for record in records:
            at = self._seqs.get(record.seq)
            if at is None:
                self._early.append(record)
            elif self.events[at].at == record.at:
                if at not in self._records:
                    insort(self._known, at)
                self._records[at] = record

    @property
    def events(self) -> tuple[Event, ...]:
        return self.snapshot.events

    def index_of(self, seq: int) -> int:
        """Where the event with this seq stands. Raises Refused."""
        found = self._seqs.get(seq)
        if found is None:
            last = self.snapshot.last()
            cause = f"there is no seq {seq}; the log ends at seq {last.seq if last is not None else 0}"
            raise Refused(error("seq_unknown", cause, f"collab log --folder {shlex.quote(str(self.snapshot.path))}"))
        return found

    # As it was.

    def state(self, index: int) -> State:
        """The state after the event at `index`."""
        setup = self._setup()
        while len(self._states) * STRIDE <= index:
            start = (len(self._states) - 1) * STRIDE
            self._states.append(self._run(setup, self._states[-1], start, start + STRIDE))
        block = index // STRIDE
        return self._run(setup, self._states[block], block * STRIDE, index + 1)

    def _run(self, setup: Setup, state: State, start: int, stop: int) -> State:
        for event in self.events[start:stop]:
            state = evolve(state, event, setup)
        return state

    def _setup(self) -> Setup:
        if self.snapshot.setup is None:
            raise Refused(*self.snapshot.problems)
        return self.snapshot.setup

    def at(self, index: int) -> Snapshot:
        """The folder as it was right after the event at `index`: state, events, and documents as far as known."""
        made = self.documents(index)
        line = self.events[index].line
        wrong = tuple(item for item in self.snapshot.folded.problems if _line(item) <= line)
        names = self.snapshot.deliverables
        return replace(
            self.snapshot,
            events=self.events[: index + 1],
            folded=Fold(self.state(index), wrong),
            documents={name: made[name] for name in DOCUMENTS},
            deliverables={name: made[name] for name in names},
            pending=b"",
            intent=None,
            problems=tuple(item.problem for item in made.values() if item.problem is not None and is_unknown(item)),
        )

    def documents(self, index: int) -> dict[str, Document]:
        """Every document as it was right after the event at `index`; unknown and missing ones say which they are."""
        seq = self.events[index].seq
        record = self._records.get(index)
        names = (*DOCUMENTS, *self.snapshot.deliverables)
        if record is None:
            return {name: unknown(name, seq) for name in names}
        made: dict[str, Document] = {}
        for name in names:
            digest = record.documents.get(name)
            if digest is None and name in self._attached():
                made[name] = unknown(name, seq)
            elif digest is None:
                cause = f"{name} was not there at seq {seq}, or could not be read"
                made[name] = Document(name, None, None, warning("file_missing", cause, None, name))
            else:
                data = self.content(name, digest)
                made[name] = Document(name, data, digest) if data is not None else unknown(name, seq)
        return made

    def _attached(self) -> frozenset[str]:
        declared = self.snapshot.setup.deliverables if self.snapshot.setup is not None else None
        return frozenset(declared.ref(file) for file in declared.attachments) if declared is not None else frozenset()

    def content(self, name: str, digest: str) -> bytes | None:
        """The content with this digest, or None when nobody kept it."""
        now = self.snapshot.document(name)
        if now.sha256 == digest and now.data is not None:
            return now.data
        try:
            with Root(self.snapshot.path) as root:
                return history.content(root, digest)
        except Refused:
            return None

    def digests(self, index: int) -> Mapping[str, str] | None:
        """Digests of the documents right after the event at `index`; None when nothing is known of that moment."""
        record = self._records.get(index)
        return record.documents if record is not None else None

    def known_until(self, index: int) -> int | None:
        """The latest moment at or before `index` of which the contents are known."""
        at = bisect_left(self._known, index + 1) - 1
        return self._known[at] if at >= 0 else None

    def known_moments(self) -> Sequence[int]:
        """Every moment of which the contents are known, in order."""
        return self._known


def _grown(before: Snapshot, now: Snapshot) -> bool:
    """Whether the log of `now` is that of `before` with more events after it, in the same setup."""
    size = len(before.events)
    return bool(
        size
        and before.setup == now.setup
        and len(now.events) >= size
        and now.events[0] is before.events[0]
        and now.events[size - 1] is before.events[size - 1]
    )


def _line(item: Finding) -> int:
    number = (item.where or "").rpartition("#line ")[2]
    return int(number) if number.isdigit() else 0


def at(snapshot: Snapshot, seq: int) -> Snapshot:
    """The folder as it was right after `seq`. Raises Refused for a seq that is not in the log."""
    line = Timeline(snapshot)
    return line.at(line.index_of(seq))


@dataclass(frozen=True, slots=True)
class Change:
    """A document that is another one after an event than before it. `before` None: it was not there, or is unknown."""

    name: str
    before: str | None
    after: str


def changes(line: Timeline, index: int) -> tuple[Change, ...] | None:
    """The documents that changed between the last known moment and the event at `index`; None when unknown.

    What a collaboration was made with is no change.
    """
    now = line.digests(index)
    if now is None:
        return None
    if index == 0:
        return ()
    earlier = line.known_until(index - 1)
    old = (line.digests(earlier) if earlier is not None else None) or {}
    names = [name for name in (*DOCUMENTS, *line.snapshot.deliverables) if name in now]
    return tuple(Change(name, old.get(name), now[name]) for name in names if old.get(name) != now[name])


def moment(event: Event | None, mine: bool = False) -> str:
    """A moment in words: `seq 3 14:02 reader review_submitted`, or `your review` when it is; `now` for None."""
    if event is None:
        return "now"
    clock = local(parse(event.at), " %H:%M")
    what = "your review" if mine else f"{inert(event.actor or '?')} {inert(event.name or '?')}"
    return f"seq {event.seq}{clock} {what}"


__all__ = ["Change", "Timeline", "at", "changes", "is_unknown", "moment", "unknown"]
