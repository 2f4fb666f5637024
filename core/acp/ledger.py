"""What validation asks of a log, gathered event by event (docs/specs/acp.md §3, §5).

A log only grows: whoever follows one pays for its new events alone, and whoever looks once gathers all of them by the
same code. Findings of single lines are errors, and no two are equal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from core.acp import deliverables
from core.acp.documents import Heading
from core.acp.model import DELIVERABLE_EVENTS, EVENTS_V1, EVENTS_V2, LOG, Deliverables, Event
from core.acp.rules import quoted
from core.clock import parse
from core.finding import Finding, error

REQUIRED: Final = frozenset({"seq", "from", "event", "at", "summary"})
_DELIVERABLE: Final = frozenset(DELIVERABLE_EVENTS)


class Ledger:
    """The log of one folder as far as it was gathered. Belongs to one thread."""

    def __init__(self, path: Path, schema: int, declared: Deliverables | None) -> None:
        self._schema, self._declared = schema, declared
        self._known = frozenset(EVENTS_V2 if schema >= 2 else EVENTS_V1)
        self._count = 0
        self._seqs: set[int] = set()
        self._previous: datetime | None = None
        self._last_text = ""
        self._last_moment: datetime | None = None
        self.shape: dict[Finding, None] = {}
        """Faults of single lines and of their order: seq, required fields, reply_to, at."""
        self.names: set[str | None] = set()
        self.acts: dict[str, str] = {}
        """Participant to the event that they wrote last."""
        self.reviewed: dict[str, int] = {}
        """Participant to the index of their latest review."""
        self.frozen: set[str | None] = set()
        """The references that a freeze in the log names."""
        self.primary_frozen = False
        self.deliverables: list[Event] = []
        """Events about deliverables of which something may have to be said."""
        self._reviews = _Reviews(path)

    def extend(self, events: Sequence[Event]) -> None:
        """Gather more events; they come after those gathered before."""
        seqs, known, previous = self._seqs, self._known, self._previous
        names, acts, expected = self.names, self.acts, self._count
        last_text, last_moment = self._last_text, self._last_moment
        for event in events:
            expected += 1
            seq, raw, name = event.seq, event.raw, event.name
            trouble: list[tuple[str, str]] = []
            if seq != expected:
                trouble.append(("log_seq", f"events.jsonl: expected seq {expected}, found {raw.get('seq')}"))
            if not raw.keys() >= REQUIRED:
                for key in sorted(REQUIRED - raw.keys()):
                    trouble.append(("event_field_missing", f"seq {seq}: missing required field {key}"))
            if name not in known:
                trouble.append(("event_unknown", f"seq {seq}: unknown event {raw.get('event')!r}"))
            if name in _DELIVERABLE:
                trouble += self._deliverable(event)
            reply = raw.get("reply_to")
            if reply is None:
                if name != "initialized":
                    trouble.append(("reply_to_missing", f"seq {seq}: reply_to is required after initialized"))
            elif event.reply_to is None or event.reply_to not in seqs:
                trouble.append(("reply_to_unknown", f"seq {seq}: reply_to must point to an earlier event"))
            if event.at is not None and event.at == last_text:
                moment = last_moment
            else:
                moment = parse(event.at)
                last_text, last_moment = event.at or "", moment
            if moment is None:
                trouble.append(("event_time_malformed", f"seq {seq}: at must be an ISO-8601 timestamp"))
            elif previous is not None and moment < previous:
                trouble.append(("event_time_back", f"seq {seq}: at must not be earlier than the previous event"))
            if moment is not None:
                previous = moment
            if seq is not None:
                seqs.add(seq)
            names.add(name)
            if event.actor is not None:
                acts[event.actor] = name or ""
                if name == "review_submitted":
                    self.reviewed[event.actor] = expected - 1
            for code, cause in trouble:
                self.shape[error(code, cause, None, f"{LOG}#line {event.line}")] = None
        self._count, self._previous = expected, previous
        self._last_text, self._last_moment = last_text, last_moment
        self._reviews.extend(events)

    def _deliverable(self, event: Event) -> list[tuple[str, str]]:
        if event.name == "deliverable_frozen":
            self.frozen.add(event.doc)
            self.primary_frozen = self.primary_frozen or event.role == "primary"
        if self._declared is not None and deliverables.notable(self._declared, event):
            self.deliverables.append(event)
        if self._schema < 2:
            return []
        seq, trouble = event.seq, []
        if event.role not in ("primary", "supporting"):
            trouble.append(("deliverable_role_missing", f"seq {seq}: deliverable events require role"))
        if event.doc is None:
            trouble.append(("deliverable_doc_missing", f"seq {seq}: deliverable events require doc"))
        if event.name == "deliverable_frozen" and not deliverables.valid_sha(event.raw.get("sha256")):
            trouble.append(("sha256_missing", f"seq {seq}: deliverable_frozen requires sha256"))
        return trouble

    def reviews(self, headings: Sequence[Heading]) -> Collection[Finding]:
        """Each review needs exactly one heading in review.md, and each heading its review."""
        return self._reviews.findings(headings)

    def plus(self, events: Sequence[Event]) -> Ledger:
        """A ledger of its own that holds these events too."""
        made = Ledger.__new__(Ledger)
        made.__dict__.update(self.__dict__)
        for name in ("_seqs", "shape", "names", "acts", "reviewed", "frozen", "deliverables", "_reviews"):
            setattr(made, name, getattr(self, name).copy())
        made.extend(events)
        return made


class _Reviews:
    """Reviews in the log against headings in review.md."""

    def __init__(self, path: Path) -> None:
        self._show = f"collab show --folder {quoted(str(path))} --doc review.md"
        self._by_seq: dict[int, Event] = {}
        self._submitted: list[int] = []
        self._headings: Sequence[Heading] | None = None
        self._named: dict[int, list[Heading]] = {}
        self._judged = 0
        self._news: list[int] = []
        self._missing: dict[Finding, None] = {}
        self._about: dict[int, list[Finding]] = {}
        self._said: tuple[Finding, ...] = ()

    def extend(self, events: Sequence[Event]) -> None:
        by_seq, submitted = self._by_seq, self._submitted
        for event in events:
            seq = event.seq
            if seq is not None:
                by_seq[seq] = event
                if event.name == "review_submitted":
                    submitted.append(seq)
        if self._headings is not None:
            self._news += [event.seq for event in events if event.seq is not None]

    def copy(self) -> _Reviews:
        made = _Reviews.__new__(_Reviews)
        made.__dict__.update(self.__dict__)
        for name in ("_by_seq", "_submitted", "_news", "_missing", "_about"):
            setattr(made, name, getattr(self, name).copy())
        return made

    def findings(self, headings: Sequence[Heading]) -> Collection[Finding]:
        news: Iterable[int] = self._news
        others = headings is not self._headings and headings != self._headings
        if others:
            self._named, self._missing, self._about, self._judged = {}, {}, {}, 0
            for item in headings:
                self._named.setdefault(item.seq, []).append(item)
            news = self._named
        self._headings = headings
        for seq in self._submitted[self._judged :]:
            if seq not in self._named:
                cause = f"seq {seq}: review_submitted requires matching review.md heading"
                self._missing[error("review_heading_missing", cause, self._show, "review.md")] = None
        touched = [seq for seq in news if seq in self._named]
        for seq in touched:
            self._about[seq] = self._heading(seq)
        if touched or others:
            self._said = tuple(item for found in self._about.values() for item in found)
        self._judged, self._news = len(self._submitted), []
        return (*self._missing, *self._said)

    def _heading(self, seq: int) -> list[Finding]:
        """What is wrong with the headings of one seq."""
        items, match = self._named[seq], self._by_seq.get(seq)
        heading, found = items[-1], []
        where, prefix = f"review.md#line {heading.line}", f"review.md heading seq {seq}: "
        if match is None:
            return [error("review_heading_orphan", f"{prefix}no matching event", self._show, where)]
        if match.name != "review_submitted":
            cause = f"{prefix}matching event is {match.name}, not review_submitted"
            return [error("review_heading_orphan", cause, self._show, where)]
        for item in items:
            if item.participant != match.actor:
                cause = f"{prefix}participant {item.participant!r} does not match event from {match.actor!r}"
                found.append(error("review_heading_mismatch", cause, self._show, f"review.md#line {item.line}"))
        if len(items) > 1:
            cause = f"{prefix}stands {len(items)} times; exactly one is needed"
            found.append(error("review_heading_repeated", cause, self._show, where))
        return found
