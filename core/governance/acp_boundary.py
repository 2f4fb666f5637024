"""Which receipts a collaboration must have left, and what they say, from its log alone (docs/design.md §4).

The last decision_accepted that makes the decisions everybody's is the acceptance, `completed` the closure with the
acceptance as its parent, `blocked` the escalation. Events that were not legal leave none.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from core.acp import history
from core.acp.history import DELIVERABLE_PHASES, EDITABLE, Record
from core.acp.model import PROTOCOL, Event, Setup, State
from core.acp.reader import Snapshot, read, states
from core.acp.rules import evolve, judge
from core.clock import parse, stamp
from core.files import Root
from core.finding import Finding, Refused, warning
from core.governance import boundary
from core.governance.boundary import Receipt
from core.governance.failures import observed, recorded, unwritten

LAYER = "acp"
EVENTS = frozenset({"decision_accepted", "completed", "blocked"})
"""Events after which there may be something to leave."""

CodeOf = Callable[[Event], str]


@dataclass(frozen=True, slots=True)
class Crossing:
    """A legal event that changed authority, and the state after it. `at` is UTC in whole seconds."""

    event: Event
    seq: int
    at: str
    state: State


def crossings(snapshot: Snapshot) -> list[Crossing]:
    """The boundaries in a log: the last acceptance by everybody, then how it ended."""
    setup = snapshot.setup
    if setup is None:
        return []
    state = State()
    accepted: Crossing | None = None
    ended: Crossing | None = None
    for event in snapshot.events:
        before, state = state, evolve(state, event, setup)
        moment = parse(event.at)
        if event.name not in EVENTS or event.seq is None or moment is None or judge(before, event, setup):
            continue
        made = Crossing(event, event.seq, stamp(moment), state)
        if event.name != "decision_accepted":
            ended = ended or made
        elif state.phase == "readiness_check":
            accepted = made
    return [item for item in (accepted, ended) if item is not None]


def wanted(snapshot: Snapshot, records: Sequence[Record], root: Path, goal: str, code_of: CodeOf) -> list[Receipt]:
    """The receipts that must exist, always the same for the same log; `code_of` says what a block is called."""
    found: list[Receipt] = []
    for item in crossings(snapshot):
        blocked = item.event.name == "blocked"
        found.append(
            boundary.acp(
                Path(os.path.relpath(snapshot.path, root)).as_posix(),
                item.seq,
                item.event.name or "",
                item.state.phase or "",
                documents_at(records, item.seq),
                emitted_at=item.at,
                goal=goal,
                parents=found if item.event.name == "completed" else (),
                triage_code=code_of(item.event) if blocked else None,
            )
        )
    return found


def documents_at(records: Sequence[Record], seq: int) -> dict[str, str]:
    """Digests of the documents right after `seq`; protocol.json is no document, its projection changes with events."""
    return {name: digest for name, digest in history.documents_at(records, seq).items() if name != PROTOCOL}


def goal_of(folder: Root, setup: Setup, owner: str | None) -> str:
    """The goal of a collaboration: its `goal.json`, else who began it when, and its objective."""
    return boundary.goal_of(folder, f"{setup.created_at}{owner or ''}", setup.objective)


@dataclass(frozen=True)
class Folder:
    """A collaboration with what its receipts depend on."""

    snapshot: Snapshot
    records: Sequence[Record]
    root: Path
    goal: str

    def wanted(self, code_of: CodeOf) -> list[Receipt]:
        return wanted(self.snapshot, self.records, self.root, self.goal, code_of)


def look(path: Path, named: Path | None = None) -> Folder | None:
    """A collaboration as its receipts see it, or None when there is none to read. Raises Refused."""
    path = path.absolute()
    snapshot = read(path)
    if snapshot.setup is None:
        return None
    root = boundary.root_for(path, named.absolute() if named is not None else None)
    with Root(path) as folder:
        goal = goal_of(folder, snapshot.setup, snapshot.state.owner)
        return Folder(snapshot, history.load(folder), root, goal)


@dataclass(frozen=True, slots=True)
class Left:
    """After an event: the code of a block if there is one, and what had to be or could not be done (warnings)."""

    code: str | None
    findings: tuple[Finding, ...]


def leave(path: Path, named: Path | None = None) -> Left:
    """After an event: observe a block once, write the receipts that are missing. Never raises.

    What could not be done is a warning; the event itself stands whatever happens here.
    """
    left = _rebuild(path, named)
    return Left(left.code, tuple(item for item in left.findings if item.code != "receipt_rebuilt"))


def rebuild(path: Path, named: Path | None = None) -> list[Finding]:
    """The same for `collab repair`, which says what was missing. Never raises."""
    return list(_rebuild(path, named).findings)


def _rebuild(path: Path, named: Path | None) -> Left:
    code: str | None = None
    try:
        folder = look(path, named)
        if folder is None:
            return Left(None, ())
        trouble: list[Finding] = []
        receipts = folder.wanted(lambda event: _observed(folder.root, event, trouble))
        code = next((item.envelope["triage_code"] for item in receipts if item.envelope["triage_code"]), None)
        return Left(code, (*boundary.rebuild(folder.root, receipts), *trouble))
    except Refused as exc:
        return Left(code, tuple(unwritten(item) for item in exc.findings))
    except (OSError, ValueError, RecursionError) as exc:
        cause = f"the receipt was not written: {type(exc).__name__}: {exc}"
        return Left(code, (warning("receipt_not_written", cause, _repair_command(path), str(path)),))


def code_of(path: Path, named: Path | None = None) -> str | None:
    """The code of a collaboration's block, as it was observed; None when it is not blocked. Writes nothing."""
    try:
        folder = look(path, named)
        if folder is None or folder.snapshot.state.phase != "blocked":
            return None
        blocked = next((item.event for item in crossings(folder.snapshot) if item.event.name == "blocked"), None)
        return _recorded(folder.root, blocked) if blocked is not None else None
    except (Refused, OSError, ValueError, RecursionError):
        return None


def _repair_command(path: Path) -> str:
    return f"collab repair --folder {shlex.quote(str(path))}"


def _moment(event: Event) -> datetime:
    """When an event was; `crossings` keeps only those that can tell."""
    return parse(event.at) or datetime.fromtimestamp(0, UTC)


def _observed(root: Path, event: Event, trouble: list[Finding]) -> str:
    """The code of a block's reason: as it was observed at its moment, else observed now."""
    return observed(root, event.summary or "", LAYER, event.actor, _moment(event), trouble)


def _recorded(root: Path, event: Event) -> str:
    """The code of a block's reason, without recording anything."""
    return recorded(root, event.summary or "", LAYER, event.actor, _moment(event))


def check(path: Path, named: Path | None = None) -> list[Finding]:
    """What `collab validate --receipts` adds: receipts missing or not trusted, documents that changed since."""
    try:
        folder = look(path, named)
        if folder is None:
            return []
        receipts = folder.wanted(lambda event: _recorded(folder.root, event))
    except Refused as exc:
        return list(exc.findings)
    found = boundary.check(folder.root, receipts, _repair_command(path))
    return [*found, *changed(folder.snapshot, receipts)]


def changed(snapshot: Snapshot, receipts: Sequence[Receipt]) -> list[Finding]:
    """Documents that nobody was allowed to edit since a receipt named their digest, and that are others now."""
    found: dict[str, Finding] = {}
    for item in receipts:
        payload = item.envelope["payload"]
        seq, since = payload["seq"], _states_since(snapshot, payload["seq"])
        for name, digest in payload["documents"].items():
            if any(_may_edit(name, state) for state in since) or snapshot.document(name).sha256 == digest:
                continue
            cause = f"{name} is not what the receipt {item.id} names: it changed after seq {seq}"
            folder = shlex.quote(str(snapshot.path))
            command = f"collab diff --folder {folder} --doc {shlex.quote(name)} --since {seq}"
            found.setdefault(name, warning("receipt_document_changed", cause, command, name))
    return list(found.values())


def _states_since(snapshot: Snapshot, seq: int) -> list[State]:
    """The states of the folder from right after `seq` until now."""
    return [state for event, state in zip(snapshot.events, states(snapshot), strict=True) if (event.seq or 0) >= seq]


def _may_edit(name: str, state: State) -> bool:
    """Whether somebody may edit a document in this state."""
    if name in EDITABLE:
        return state.phase in EDITABLE[name]
    return state.phase in DELIVERABLE_PHASES and not state.frozen
