"""What is remembered of a folder against what it is now: rewritten logs, edits out of turn (docs/specs/acp.md §6).

Between two records the phases are known, and so is who was allowed to edit what. Neither log nor records change but at
their end, so whoever follows a folder judges each stretch once; whoever looks once judges all of them by the same code.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from core import journal
from core.acp.history import DELIVERABLE_PHASES, EDITABLE, Record, Records, content, digests
from core.acp.judging import Grown, settled
from core.acp.model import LOG, PROTOCOL, Document, Setup, State
from core.acp.reader import HISTORY, OBJECTS, Snapshot, locate
from core.acp.rules import evolve, quoted
from core.files import Root
from core.finding import Finding, error, warning


def _integrity(root: Root, records: Sequence[Record], latest: Record, mark: journal.Mark) -> list[Finding]:
    """Whether the log still begins with everything that was written before: rewritten, cut, reordered or forked."""
    if (latest.end, latest.log) == (mark.offset, mark.digest) or _stands(root, latest, mark):
        return []
    if mark.offset < latest.end:
        cause = f"{LOG} lost events: it ends before seq {latest.seq}, which was written at {latest.at}"
        return [error("log_truncated", cause, None, LOG)]
    ordered = sorted(records, key=lambda record: record.end)
    at = bisect_left(ordered, True, hi=len(ordered) - 1, key=lambda record: not _stands(root, record, mark))
    cause = f"{LOG} was rewritten at or before seq {ordered[at].seq}; earlier lines must never change"
    return [error("log_rewritten", cause, None, LOG)]


def _stands(root: Root, record: Record, mark: journal.Mark) -> bool:
    """Whether the log on disk begins with what it held at a record."""
    return journal.prefix_matches(root, LOG, journal.Mark(mark.inode, record.end, 0, record.log))


class Memory:
    """Judges the snapshots of one reader, one after the other; each costs what is new in it. Belongs to one thread."""

    def __init__(self, records: Records | None = None) -> None:
        self.records = records or Records()
        self._phases = _Phases()
        self._edits = _Edits(self._phases)
        self._seen = (0, 0)
        self._latest: Record | None = None

    def findings(self, snapshot: Snapshot, root: Root) -> list[Finding]:
        """What the sidecar knows against the log and the documents as they are now."""
        if snapshot.setup is None or not root.exists(HISTORY):
            return []
        age, records = self.records.look(root)
        latest = self._reach(age, records)
        found = _integrity(root, records, latest, snapshot.mark) if latest is not None else []
        # A log that was changed says nothing reliable about who was allowed to edit when.
        return found or self._edits.findings(snapshot, snapshot.setup, age, records, root)

    def against(self, snapshot: Snapshot, root: Root, known: Record) -> list[Finding]:
        """The same for one record that somebody else remembers."""
        if snapshot.setup is None:
            return []
        found = _integrity(root, [known], known, snapshot.mark)
        return found or _Edits(self._phases).findings(snapshot, snapshot.setup, 0, [known], root)

    def _reach(self, age: int, records: Sequence[Record]) -> Record | None:
        """The record that covers most of the log."""
        if age != self._seen[0]:
            self._seen, self._latest = (age, 0), None
        for record in islice(records, self._seen[1], None):
            if self._latest is None or record.end > self._latest.end:
                self._latest = record
        self._seen = (age, len(records))
        return self._latest


class _Stand(NamedTuple):
    """What decides after an event who may edit what."""

    phase: str | None
    frozen: bool


class _Phases:
    """How a folder stood after each of its events. The events of a long log are folded when somebody asks."""

    def __init__(self) -> None:
        self._grown = Grown()
        self._rules: object = None
        self._state = State()
        self._stands: list[_Stand] = []
        self._known: dict[_Stand, _Stand] = {}
        self._reviews: set[int | None] = set()
        self.age = 0
        """Another one whenever what was known holds no more."""

    def follow(self, snapshot: Snapshot, setup: Setup) -> None:
        """Forget what does not hold for this snapshot."""
        rules = (setup.schema, setup.participants)
        if rules != self._rules or not self._grown.look(snapshot):
            self._rules, self._grown = rules, Grown()
            self._state, self._stands, self._reviews = State(), [], set()
            self.age += 1

    def stands(self, snapshot: Snapshot, setup: Setup) -> Sequence[_Stand]:
        """How it stood after each event of the snapshot that was followed last."""
        end = settled(snapshot)
        state = self._state
        for event in snapshot.events[self._grown.seen : end]:
            state = evolve(state, event, setup)
            made = _Stand(state.phase, state.frozen)
            self._stands.append(self._known.setdefault(made, made))
            if event.name == "review_submitted":
                self._reviews.add(event.seq)
        self._state = state
        self._grown.advance(snapshot)
        if end == len(snapshot.events):
            return self._stands
        state = evolve(state, snapshot.events[end], setup)
        return [*self._stands, _Stand(state.phase, state.frozen)]

    def reviews(self, snapshot: Snapshot, setup: Setup) -> Collection[int | None]:
        """The seq of every review in the snapshot that was followed last."""
        self.stands(snapshot, setup)
        tail = [event.seq for event in snapshot.events[settled(snapshot) :] if event.name == "review_submitted"]
        return self._reviews.union(tail) if tail else self._reviews


@dataclass(slots=True)
class _Late:
    """A change of review.md out of turn, which is excused when only a review came to its end."""

    finding: Finding
    before: str
    now: str
    seq: int
    evidence: object = None
    excused: bool = False


class _Edits:
    """Documents that changed in a window in which nobody was allowed to edit them (warnings)."""

    def __init__(self, phases: _Phases) -> None:
        self._phases = phases
        self._key: object = None
        self._judged = 0
        self._found: list[Finding | _Late] = []

    def findings(
        self, snapshot: Snapshot, setup: Setup, age: int, records: Sequence[Record], root: Root
    ) -> list[Finding]:
        phases = self._phases
        phases.follow(snapshot, setup)
        # What was written after the snapshot was taken is judged with the next one.
        count = len(records)
        while count and records[count - 1].end > snapshot.mark.offset:
            count -= 1
        if not count:
            return []
        key = (age, phases.age, setup.deliverables)
        if key != self._key or count - 1 < self._judged:
            self._key, self._judged, self._found = key, 0, []
        self._judge(snapshot, setup, records, count)
        now = digests([*snapshot.documents.values(), *snapshot.deliverables.values()], setup.raw)
        found = self._found[:]
        for at in range(self._judged, count - 1):
            found += self._window(snapshot, setup, records[at], records[at + 1].documents, records[at + 1].seq)
        found += self._window(snapshot, setup, records[count - 1], now, None)
        return self._weigh(found, snapshot, setup, root)

    def _judge(self, snapshot: Snapshot, setup: Setup, records: Sequence[Record], count: int) -> None:
        """Every stretch between two records whose events are all known and stand, once."""
        pairs = zip(islice(records, self._judged, count - 1), islice(records, self._judged + 1, count), strict=True)
        for old, new in pairs:
            if _others(old, new.documents):
                if max(new.seq - 1, old.seq) > settled(snapshot):
                    return
                self._found += self._window(snapshot, setup, old, new.documents, new.seq)
            self._judged += 1

    def _window(
        self, snapshot: Snapshot, setup: Setup, start: Record, documents: Mapping[str, str], until: int | None
    ) -> list[Finding | _Late]:
        if not _others(start, documents):
            # Mostly nothing changed, and then no state of a long log needs to be computed.
            return []
        after = self._phases.stands(snapshot, setup)
        # The event at a record's own seq was decided in the phase before it, so the window opens after the earlier one.
        last = until - 1 if until is not None else len(after)
        window = after[max(0, start.seq - 1) : max(0, last, start.seq)]
        found: list[Finding | _Late] = []
        for name, digest in start.documents.items():
            now = documents.get(name)
            if now is None or now == digest or any(_may_edit(setup, name, stand) for stand in window):
                continue
            span = f"after seq {start.seq}" + (f" and before seq {until}" if until is not None else "")
            phase = window[0].phase if window else "unknown"
            cause = f"{name} changed {span}, in phase {phase}, when nobody may edit it"
            command = f"collab diff --folder {{folder}} --doc {quoted(name)} --since {start.seq}"
            if name == PROTOCOL:
                command = "collab show --folder {folder}"
            made = locate(warning("edit_out_of_turn", cause, command, name), snapshot.path)
            found.append(_Late(made, digest, now, start.seq) if name == "review.md" else made)
        return found

    def _weigh(self, found: Sequence[Finding | _Late], snapshot: Snapshot, setup: Setup, root: Root) -> list[Finding]:
        """Agents of the reference append their review first and write its text after, when the phase has moved on."""
        late = [item for item in found if isinstance(item, _Late)]
        if late:
            kept, review = frozenset(root.names(OBJECTS)), snapshot.document("review.md")
            reviewed = self._phases.reviews(snapshot, setup)
            for item in late:
                evidence = (item.before in kept, item.now in kept, item.now == review.sha256, item.seq in reviewed)
                if item.evidence != evidence:
                    item.evidence, item.excused = evidence, _excused(item, review, root, item.seq in reviewed)
        return [item if isinstance(item, Finding) else item.finding for item in found if not _is_excused(item)]


def _others(start: Record, documents: Mapping[str, str]) -> bool:
    """Whether a document is another one than at a record."""
    was = start.documents
    return documents is not was and any(documents.get(name, digest) != digest for name, digest in was.items())


def _may_edit(setup: Setup, name: str, stand: _Stand) -> bool:
    if name in EDITABLE:
        return stand.phase in EDITABLE[name]
    if name == PROTOCOL:
        return stand.phase != "reviewing"
    primary = setup.deliverables.primary_ref if setup.deliverables is not None else name
    return stand.phase in DELIVERABLE_PHASES and not (stand.frozen and name == primary)


def _is_excused(item: Finding | _Late) -> bool:
    return isinstance(item, _Late) and item.excused


def _excused(item: _Late, review: Document, root: Root, reviewed: bool) -> bool:
    old = content(root, item.before)
    if old is None:
        # What stood there is unknown; right after a review nothing else is to be expected.
        return reviewed
    new = content(root, item.now)
    if new is None and review.sha256 == item.now:
        new = review.data
    return new is not None and new.startswith(old.rstrip())
