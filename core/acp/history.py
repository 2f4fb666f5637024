"""The sidecar `.collab/history.jsonl`: which contents the documents had at which event (docs/specs/acp.md §6).

A record: `{seq, at, end, log, documents {name: sha256}}`; `end` is the length of the log in bytes after that event,
`log` the sha256 of those bytes. Of protocol.json it holds the digest of what was agreed, the projection left out.
Contents lie in `.collab/objects/<sha256>`. Nothing here is needed to read a folder: a missing or foreign record only
means that the content at that time is unknown.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from core import journal
from core.acp.model import PROTOCOL, Document, Event
from core.acp.reader import HISTORY, OBJECTS
from core.files import Root, sha256

_SHA = re.compile(r"[0-9a-f]{64}")
_PROJECTION = frozenset({"currentPhase", "proposalOwner", "waitingFor", "updatedAt"})

EDITABLE: Mapping[str, frozenset[str]] = {
    "proposal.md": frozenset({"drafting", "revising"}),
    "review.md": frozenset({"reviewing"}),
    "decisions.md": frozenset({"revising", "decision_review"}),
    "readiness.md": frozenset({"revising", "decision_review", "readiness_check"}),
    "conclusion.md": frozenset({"readiness_check"}),
}
"""The phases in which somebody may edit a document; files have no author, so only the phase is judged."""

DELIVERABLE_PHASES = frozenset({"drafting", "revising", "decision_review", "readiness_check"})


@dataclass(frozen=True, slots=True)
class Record:
    """What was known of the documents when `seq` was written."""

    seq: int
    at: str
    end: int
    log: str
    documents: Mapping[str, str]


def make(event: Event, end: int, log: str, documents: Mapping[str, str]) -> dict[str, Any]:
    """The JSON object of a record."""
    return {"seq": event.seq, "at": event.at, "end": end, "log": log, "documents": dict(sorted(documents.items()))}


class Records:
    """The records of one folder, followed: each look reads what is new. Threads may share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._follower: journal.Follower | None = None
        self._age = 0
        self._known: list[Record] = []

    def look(self, root: Root) -> tuple[int, Sequence[Record]]:
        """(age, well-formed records in the order they were written); of one age, records only come to the end.

        Anything else in the file is ignored.
        """
        with self._lock:
            if self._follower is None:
                self._follower = journal.Follower(root, HISTORY, sys.maxsize)
            self._follower.root = root
            fresh: list[Record] = []
            latest = self._known[-1] if self._known else None

            def take(line: journal.Line) -> None:
                nonlocal latest
                made = read_record(line.record or {}, latest)
                if made is not None:
                    fresh.append(made)
                    latest = made

            news = self._follower.poll(take)
            if news.reset is not None:
                self._age, self._known = self._age + 1, []
            if news.problem is None:
                self._known += fresh
            return self._age, self._known[:]

    def of(self, event: Event) -> Record | None:
        """The latest record of an event, as far as it was read."""
        with self._lock:
            known = (one for one in reversed(self._known) if one.seq == event.seq and one.at == event.at)
            return next(known, None)


def load(root: Root) -> Sequence[Record]:
    """The same of a folder that is looked at once."""
    return Records().look(root)[1]


def read_record(raw: Mapping[str, Any], before: Record | None = None) -> Record | None:
    """A record from its JSON object, or None when it is none. What it shares with the one `before` is kept once."""
    seq, end, log, documents = raw.get("seq"), raw.get("end"), raw.get("log"), raw.get("documents")
    if type(seq) is not int or type(end) is not int or not _is_sha(log) or not isinstance(documents, dict):
        return None
    was: Mapping[str, str] = before.documents if before is not None else {}
    kept = was
    if documents != was:
        kept = {str(name): value for name, value in documents.items() if _is_sha(value)}
        kept = {name: was[name] if was.get(name) == value else value for name, value in kept.items()}
    return Record(seq, str(raw.get("at", "")), end, str(log), kept)


def _is_sha(value: object) -> bool:
    return isinstance(value, str) and _SHA.fullmatch(value) is not None


def keep(root: Root, data: bytes) -> str:
    """Store a content under its digest, once; returns the digest. Raises Refused."""
    digest = sha256(data)
    if content(root, digest) is None:
        root.replace(f"{OBJECTS}/{digest}", data)
    return digest


def content(root: Root, digest: str) -> bytes | None:
    """A stored content, only if it still has its digest."""
    data = root.read(f"{OBJECTS}/{digest}").data if _is_sha(digest) else None
    return data if data is not None and sha256(data) == digest else None


def documents_at(records: Sequence[Record], seq: int) -> dict[str, str]:
    """Digests of the documents as they were right after `seq`; empty when nothing is known of that moment."""
    return dict(next((record.documents for record in reversed(records) if record.seq == seq), {}))


def digests(documents: Sequence[Document], setup: Mapping[str, Any]) -> dict[str, str]:
    """Name to sha256 of those that could be read, and of what protocol.json says beside the projection."""
    found = {item.name: item.sha256 for item in documents if item.sha256 is not None}
    agreed = {key: value for key, value in setup.items() if key not in _PROJECTION}
    declared = agreed.get("deliverables")
    supporting = declared.get("supporting") if isinstance(declared, dict) else None
    if isinstance(declared, dict) and isinstance(supporting, list):
        # The mark follows from the log, as the projection does; validation compares the two.
        kept = [_unmarked(item) if isinstance(item, dict) else item for item in supporting]
        agreed["deliverables"] = {**declared, "supporting": kept}
    return {**found, PROTOCOL: sha256(json.dumps(agreed, sort_keys=True).encode("ascii"))}


def _unmarked(item: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key != "frozen"}
