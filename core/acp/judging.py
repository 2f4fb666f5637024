"""All that `collab validate` says of a folder, for one look and for a folder that is looked at again and again."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from core.acp import validation
from core.acp.ledger import Ledger
from core.acp.model import LOG, Deliverables, Event
from core.acp.reader import Snapshot, locate
from core.finding import Finding

_LINE = re.compile(rf"{re.escape(LOG)}#line (\d{{1,9}})")


def line_of(finding: Finding) -> int | None:
    """The number of the log's line that a finding is about."""
    match = _LINE.fullmatch(finding.where) if finding.where is not None else None
    return int(match[1]) if match is not None else None


@dataclass(frozen=True, slots=True)
class About:
    """What was found about lines of the log, by their numbers; `damaged` are those that are no event, in order."""

    lines: Mapping[int, tuple[Finding, ...]]
    damaged: tuple[int, ...]

    @classmethod
    def of(cls, events: Sequence[Event], findings: Iterable[Finding]) -> About:
        """The same from any findings."""
        lines: dict[int, tuple[Finding, ...]] = {}
        _note(lines, findings)
        return cls(lines, tuple(sorted(lines.keys() - {event.line for event in events})) if lines else ())


NOTHING = About({}, ())


def _note(lines: dict[int, tuple[Finding, ...]], findings: Iterable[Finding]) -> None:
    for finding in findings:
        number = line_of(finding)
        if number is not None:
            lines[number] = (*lines.get(number, ()), finding)


class Grown:
    """Whether the log of a snapshot is the one that was seen before, with more events after it.

    A reader makes its events once and makes all of them anew when the log was not just appended to. A last line
    without a line end may still become another event, so it is not counted.
    """

    def __init__(self) -> None:
        self._first: Event | None = None
        self._last: Event | None = None
        self.seen = 0
        """How many events were seen and stand."""

    def look(self, snapshot: Snapshot) -> bool:
        """Whether what was gathered from the events seen so far still holds."""
        events, seen = snapshot.events, self.seen
        return settled(snapshot) >= seen and (
            seen == 0 or (events[0] is self._first and events[seen - 1] is self._last)
        )

    def advance(self, snapshot: Snapshot) -> None:
        """The events of this snapshot were seen."""
        self.seen = settled(snapshot)
        if self.seen:
            self._first, self._last = snapshot.events[0], snapshot.events[self.seen - 1]


def settled(snapshot: Snapshot) -> int:
    """How many events end in a line end."""
    events = snapshot.events
    return len(events) - (bool(events) and events[-1].line > snapshot.mark.lines)


class Judge:
    """Judges the snapshots of one reader, one after the other; each costs what is new in it. Belongs to one thread."""

    def __init__(self) -> None:
        self._grown = Grown()
        self._key: tuple[int, Deliverables | None, tuple[str, ...]] | None = None
        self._ledger: Ledger | None = None
        self._illegal: dict[Finding, None] = {}
        self._folded = 0
        self._about: dict[int, tuple[Finding, ...]] = {}
        self._noted = 0
        self._between: Sequence[Finding] = ()

    def ledger(self, snapshot: Snapshot) -> Ledger:
        """What validation asks of the log of a snapshot that could be read."""
        setup = snapshot.setup
        assert setup is not None  # noqa: S101 - who asks has looked
        key = (setup.schema, setup.deliverables, setup.participants)
        if self._ledger is None or key != self._key or not self._grown.look(snapshot):
            self._grown, self._key = Grown(), key
            self._ledger = Ledger(snapshot.path, setup.schema, setup.deliverables)
            self._illegal, self._folded = {}, 0
            self._about, self._noted = {}, 0
        end = settled(snapshot)
        self._ledger.extend(snapshot.events[self._grown.seen : end])
        self._grown.advance(snapshot)
        _note(self._about, islice(self._ledger.shape, self._noted, None))
        self._noted = len(self._ledger.shape)
        return self._ledger if end == len(snapshot.events) else self._ledger.plus(snapshot.events[end:])

    def findings(self, snapshot: Snapshot) -> tuple[Finding, ...]:
        """All that `collab validate` says of the folder itself, errors first; commands name it."""
        wrong, doubtful = self.parts(snapshot)
        return (*wrong, *doubtful)

    def parts(self, snapshot: Snapshot) -> tuple[list[Finding], list[Finding]]:
        """The same, in two: (errors, warnings)."""
        if snapshot.setup is None:
            found = list(snapshot.problems)
            # Of a folder that is not there, nothing else needs saying.
            if snapshot.documents:
                found += validation.file_findings(snapshot.present, list(snapshot.documents.values()))
            return _ordered(snapshot, [(False, found)])
        ledger = self.ledger(snapshot)
        report = validation.folder_findings(
            snapshot.setup, ledger, snapshot.folded, snapshot.facts, snapshot.present, snapshot.repo_problem
        )
        self._between = report.between
        return _ordered(
            snapshot,
            [
                (False, [*snapshot.problems, *report.before]),
                *((True, found) for found in report.lines),
                (False, report.between),
                (True, self._order(snapshot)),
                (False, report.after),
            ],
        )

    def about(self, snapshot: Snapshot) -> About:
        """What was found about the lines of the snapshot that was judged last."""
        lines, ledger = dict(self._about), self.ledger(snapshot)
        _note(lines, islice(ledger.shape, self._noted, None))
        _note(lines, snapshot.folded.problems[self._folded :])
        _note(lines, (locate(item, snapshot.path) for item in (*snapshot.problems, *self._between)))
        unread = (line_of(item) for item in snapshot.problems)
        return About(lines, tuple(sorted({number for number in unread if number is not None})))

    def _order(self, snapshot: Snapshot) -> Collection[Finding]:
        """What the state machine says of the log."""
        problems = snapshot.folded.problems
        if settled(snapshot) < len(snapshot.events):
            return dict.fromkeys(problems)
        _note(self._about, problems[self._folded :])
        self._illegal.update(dict.fromkeys(problems[self._folded :]))
        self._folded = len(problems)
        return self._illegal


def _ordered(snapshot: Snapshot, parts: list[tuple[bool, Collection[Finding]]]) -> tuple[list[Finding], list[Finding]]:
    """(errors, warnings), each once. Parts are (many, findings): of many nothing equals another, and all are errors."""
    known: set[Finding] = set()
    wrong: list[Finding] = []
    doubtful: list[Finding] = []
    for many, found in parts:
        if many:
            wrong.extend(found)
            continue
        for item in found:
            made = locate(item, snapshot.path)
            if made not in known:
                known.add(made)
                (wrong if made.severity == "error" else doubtful).append(made)
    return wrong, doubtful
