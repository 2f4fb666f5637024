"""The sidecar `.collab/history.jsonl`: which contents the documents had at which event (docs/specs/acp.md §6).

A record: `{seq, at, end, log, documents {name: sha256}}`; `end` is the length of the log in bytes after that event,
`log` the sha256 of those bytes. Of protocol.json it holds the digest of what was agreed, the projection left out.
Contents lie in `.collab/objects/<sha256>`. Nothing here is needed to read a folder: a missing or foreign record only
means that the content at that time is unknown.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from core import journal
from core.acp.model import PROTOCOL, Document, Event, Setup, State
from core.acp.reader import HISTORY, OBJECTS, Snapshot, locate, states
from core.acp.rules import quoted
from core.files import Root, sha256
from core.finding import Finding, error, warning

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


def load(root: Root) -> list[Record]:
    """Well-formed records in the order they were written; anything else in the file is ignored."""
    read = (read_record(line.record or {}) for line in journal.read(root, HISTORY).lines)
    return [record for record in read if record is not None]


def read_record(raw: Mapping[str, Any]) -> Record | None:
    """A record from its JSON object, or None when it is none."""
    seq, end, log, documents = raw.get("seq"), raw.get("end"), raw.get("log"), raw.get("documents")
    if type(seq) is not int or type(end) is not int or not _is_sha(log) or not isinstance(documents, dict):
        return None
    kept = {str(name): value for name, value in documents.items() if _is_sha(value)}
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


def integrity_findings(root: Root, records: Sequence[Record], mark: journal.Mark, log_name: str) -> list[Finding]:
    """Whether the log still begins with everything that was written before: rewritten, cut, reordered or forked."""
    latest = max(records, key=lambda record: record.end, default=None)
    if latest is None:
        return []
    if mark.offset < latest.end:
        cause = f"{log_name} lost events: it ends before seq {latest.seq}, which was written at {latest.at}"
        return [error("log_truncated", cause, None, log_name)]
    whole = journal.Mark(mark.inode, latest.end, 0, latest.log)
    if journal.prefix_matches(root, log_name, whole):
        return []
    ordered = sorted(records, key=lambda record: record.end)
    at = bisect_left(
        ordered,
        True,
        hi=len(ordered) - 1,
        key=lambda record: (
            not journal.prefix_matches(root, log_name, journal.Mark(mark.inode, record.end, 0, record.log))
        ),
    )
    cause = f"{log_name} was rewritten at or before seq {ordered[at].seq}; earlier lines must never change"
    return [error("log_rewritten", cause, None, log_name)]


def edit_findings(snapshot: Snapshot, records: Sequence[Record], root: Root) -> list[Finding]:
    """Documents that changed in a window in which nobody was allowed to edit them (warnings)."""
    setup = snapshot.setup
    if setup is None or not records:
        return []
    now = digests([*snapshot.documents.values(), *snapshot.deliverables.values()], setup.raw)
    known = [*(record.documents for record in records), now]
    if all(new.get(name, was) == was for old, new in pairwise(known) for name, was in old.items()):
        # Mostly nothing changed, and then no state of a long log needs to be computed.
        return []
    after = states(snapshot)
    found: list[Finding] = []
    previous = records[0]
    # The event at a record's own seq was decided in the phase before it, so the window opens after the earlier one.
    for record in records[1:]:
        found += _window(setup, snapshot, root, after, previous, record.documents, record.seq)
        previous = record
    found += _window(setup, snapshot, root, after, previous, now, None)
    return [locate(item, snapshot.path) for item in found]


def _window(
    setup: Setup,
    snapshot: Snapshot,
    root: Root,
    after: Sequence[State],
    start: Record,
    documents: Mapping[str, str | None],
    until: int | None,
) -> list[Finding]:
    last = until - 1 if until is not None else len(after)
    window = after[max(0, start.seq - 1) : max(last, start.seq)]
    found: list[Finding] = []
    for name, digest in start.documents.items():
        now = documents.get(name)
        if now is None or now == digest or any(_may_edit(setup, name, state) for state in window):
            continue
        if name == "review.md" and _late_heading(root, snapshot, digest, now, start.seq):
            continue
        span = f"after seq {start.seq}" + (f" and before seq {until}" if until is not None else "")
        phase = window[0].phase if window else "unknown"
        cause = f"{name} changed {span}, in phase {phase}, when nobody may edit it"
        command = f"collab diff --folder {{folder}} --doc {quoted(name)} --since {start.seq}"
        if name == PROTOCOL:
            command = "collab show --folder {folder}"
        found.append(warning("edit_out_of_turn", cause, command, name))
    return found


def _may_edit(setup: Setup, name: str, state: State) -> bool:
    if name in EDITABLE:
        return state.phase in EDITABLE[name]
    if name == PROTOCOL:
        return state.phase != "reviewing"
    primary = setup.deliverables.primary_ref if setup.deliverables is not None else name
    return state.phase in DELIVERABLE_PHASES and not (state.frozen and name == primary)


def _late_heading(root: Root, snapshot: Snapshot, before: str, now: str, seq: int) -> bool:
    """Agents of the reference append their review first and write its text after, when the phase has moved on."""
    old = content(root, before)
    if old is None:
        # What stood there is unknown; right after a review nothing else is to be expected.
        return any(event.seq == seq and event.name == "review_submitted" for event in snapshot.events)
    new = content(root, now)
    if new is None and snapshot.document("review.md").sha256 == now:
        new = snapshot.document("review.md").data
    return new is not None and new.startswith(old.rstrip())


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
