"""Finds every collaboration below the roots and summarises it cheaply (docs/design.md §3, "Discovery")."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from core import journal
from core.acp.model import LOG, PROTOCOL, Event, Setup, State, read_setup
from core.acp.reader import locate
from core.acp.rules import Fold, fold
from core.acp.validation import projection_findings
from core.clock import parse
from core.files import Root, Signature, explain
from core.finding import Finding, Refused, error

DEPTH = 6
SKIPPED = frozenset({".git", "node_modules", ".venv", "__pycache__"})
WHOLE_LOG = 16 * 1024
_TAIL = 16 * 1024

Health = Literal["ok", "stale", "damaged", "unreadable"]


STORES = {"triage": "triage/observations.jsonl", "receipts": "receipts"}
"""Kind of a place to what a folder of that kind holds: failure codes that were met, receipts."""


PLAN = frozenset({"contract.json", "journal.ndjson"})
"""The files that make a folder a plan; one in `.dwp/plans` needs none of them."""


WORKFLOW = frozenset({"workflows", "ambient"})
"""The folders that make their parent a workflow root; nothing else is looked for in them."""


@dataclass(frozen=True, slots=True)
class Place:
    """Something that the console can open: `kind` says which system it belongs to.

    The path of a store (`triage`, `receipts`) is the workspace that holds it.
    """

    kind: str
    path: Path


def find(roots: Iterable[Path], depth: int = DEPTH) -> list[Place]:
    """Every collaboration at or below the roots, sorted by path; no link is followed, the unreadable skipped."""
    return [place for place in discover(roots, depth) if place.kind == "acp"]


def discover(roots: Iterable[Path], depth: int = DEPTH) -> list[Place]:
    """The same, and every store; a store above a root counts when what lies in that root uses it."""
    found: dict[tuple[Path, str], Place] = {}
    for root in roots:
        for place in (*_walk(root, depth), *_stores(store_root(root))):
            found.setdefault((place.path, place.kind), place)
    return [found[key] for key in sorted(found)]


def is_workflow(folder: Path) -> bool:
    """Whether a folder is a workflow root and no collaboration: it holds `workflows/` and `ambient/`."""
    acp = os.path.lexists(folder / PROTOCOL) or os.path.lexists(folder / LOG)
    return not acp and all(os.path.isdir(folder / name) for name in WORKFLOW)


def store_root(root: Path) -> Path:
    """Where what happens in a folder leaves its receipts and failure codes (docs/design.md §4)."""
    from core.governance.boundary import root_for

    return root_for(root / "any")


def _stores(folder: Path) -> Iterator[Place]:
    for kind, inside in STORES.items():
        if os.path.exists(folder / inside) and not os.path.islink(folder / kind):
            yield Place(kind, folder)


def _walk(folder: Path, depth: int) -> Iterator[Place]:
    try:
        with os.scandir(folder) as listing:
            entries = list(listing)
    except (OSError, ValueError):
        return
    names = {entry.name for entry in entries}
    if PROTOCOL in names or LOG in names:
        yield Place("acp", folder)
        return
    if names >= PLAN or folder.parent.parts[-2:] == (".dwp", "plans"):
        yield Place("plan", folder)
        return
    stores = {place.kind for place in _stores(folder)} if names & STORES.keys() else set()
    yield from (Place(kind, folder) for kind in stores)
    if names >= WORKFLOW and all(entry.is_dir(follow_symlinks=False) for entry in entries if entry.name in WORKFLOW):
        yield Place("workflow", folder)
        stores |= WORKFLOW
    if depth <= 0:
        return
    for entry in entries:
        try:
            if entry.name not in SKIPPED | stores and entry.is_dir(follow_symlinks=False):
                yield from _walk(folder / entry.name, depth - 1)
        except OSError:
            continue


@dataclass(frozen=True, slots=True)
class Item:
    """A collaboration in one line. `since` is when its state last changed; `problem` is what is wrong with it.

    `schema` is the protocol's: from 2 on there is a deliverable, to be drafted first and frozen at the end.
    """

    kind: str
    path: Path
    title: str
    phase: str | None
    owner: str | None
    participants: tuple[str, ...]
    waiting_for: tuple[str, ...]
    since: datetime | None
    health: Health
    seq: int
    last: Event | None
    state: State | None
    problem: Finding | None = None
    schema: int = 1


class Summaries:
    """Summaries of many folders, each read again only when protocol.json or the log changed."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[tuple[Signature | None, Signature | None], Item]] = {}

    def item(self, place: Place) -> Item:
        """The summary of one place; never raises."""
        marks = (_signature(place.path / PROTOCOL), _signature(place.path / LOG))
        known = self._known.get(place.path)
        if known is not None and known[0] == marks:
            return known[1]
        made = summarise(place)
        self._known[place.path] = (marks, made)
        return made

    def items(self, places: Iterable[Place]) -> list[Item]:
        """Summaries in the order of the places; what is gone is forgotten."""
        made = {place.path: self.item(place) for place in places}
        self._known = {path: entry for path, entry in self._known.items() if path in made}
        return list(made.values())


def _signature(path: Path) -> Signature | None:
    try:
        info = os.lstat(path)
    except (OSError, ValueError):
        return None
    return Signature(info.st_ino, info.st_size, info.st_mtime_ns) if stat.S_ISREG(info.st_mode) else None


def summarise(place: Place) -> Item:
    """One line about a collaboration: protocol.json and the log's tail, the whole log only when it is small."""
    try:
        with Root(place.path) as root:
            return _summarise(place, root)
    except Refused as exc:
        return _broken(place, exc.findings[0])
    except OSError as exc:
        return _broken(place, explain(exc, LOG))


def _broken(place: Place, problem: Finding) -> Item:
    return Item("acp", place.path, place.path.name, None, None, (), (), None, "unreadable", 0, None, None, problem)


def _summarise(place: Place, root: Root) -> Item:
    content = root.read(PROTOCOL)
    setup, problem = read_setup(content.data) if content.data is not None else (None, content.problem)
    if setup is None:
        return _broken(place, problem or error("file_unreadable", f"{PROTOCOL} cannot be read", None, PROTOCOL))
    signature = root.signature(LOG)
    if signature is not None and signature.size > WHOLE_LOG:
        item = _from_tail(place, root, setup, signature.size)
        if item is not None:
            return item
    log = journal.read(root, LOG)
    events = [Event.read(line.record, line.number) for line in log.lines if line.record is not None]
    tail = journal.decode(log.pending)[0] if log.pending.strip() else None
    if tail is not None:
        events.append(Event.read(tail, log.mark.lines + 1))
    folded = fold(setup, events)
    bad = next((line for line in log.lines if line.record is None), None)
    stale = next(iter(projection_findings(setup, folded.state)), None)
    health: Health = "ok"
    problem = log.problem
    if problem is not None:
        health = "unreadable"
    elif bad is not None:
        health, problem = "damaged", _damaged(f"line {bad.number}: {bad.problem}")
    elif log.pending.strip() and tail is None:
        health, problem = "damaged", _damaged(f"line {log.mark.lines + 1}: torn, without a line end")
    elif folded.problems:
        health, problem = "damaged", folded.problems[0]
    elif stale is not None:
        health, problem = "stale", locate(stale, place.path)
    return _item(place, setup, folded, events, health, problem)


def _damaged(what: str) -> Finding:
    return error("log_damaged", f"{LOG} {what}", None, LOG)


def _item(
    place: Place, setup: Setup, folded: Fold, events: list[Event], health: Health, problem: Finding | None
) -> Item:
    last = events[-1] if events else None
    state = folded.state
    return Item(
        place.kind,
        place.path,
        setup.objective or place.path.name,
        state.phase,
        state.owner,
        setup.participants,
        state.waiting,
        parse(last.at) if last is not None else None,
        health,
        state.seq,
        last,
        state,
        problem,
        setup.schema,
    )


def _from_tail(place: Place, root: Root, setup: Setup, size: int) -> Item | None:
    """A big log is trusted to agree with its projection; None when its end says otherwise, or nothing."""
    fd, _ = root.open_read(LOG)
    try:
        data = os.pread(fd, _TAIL, size - _TAIL)
    finally:
        os.close(fd)
    records = [journal.decode(line)[0] for line in data.split(b"\n")[1:] if line.strip()]
    if not records:
        # One line is longer than all that was read.
        return None
    events = [Event.read(record) for record in records if record is not None]
    raw = setup.raw
    phase, owner, waiting = raw.get("currentPhase"), raw.get("proposalOwner"), raw.get("waitingFor")
    last = events[-1] if events else None
    fixed = {
        "proposal_submitted": "reviewing",
        "proposal_revised": "decision_review",
        "decision_proposed": "decision_review",
        "question_classified": "decision_review",
        "readiness_passed": "readiness_check",
        "completed": "completed",
        "blocked": "blocked",
    }
    if last is not None and fixed.get(last.name or "", phase) != phase:
        return None
    damaged = _damaged("holds damaged lines near its end") if None in records else None
    now = phase if isinstance(phase, str) else None
    state = _recent(events)._replace(phase=now)
    return Item(
        place.kind,
        place.path,
        setup.objective or place.path.name,
        now,
        owner if isinstance(owner, str) else None,
        setup.participants,
        tuple(name for name in waiting if isinstance(name, str)) if isinstance(waiting, list) else (),
        parse(last.at) if last is not None else None,
        "damaged" if damaged is not None else "ok",
        state.seq,
        last,
        state,
        damaged,
        setup.schema,
    )


def _recent(events: list[Event]) -> State:
    """What the last events alone tell of a state: enough for the one next action."""
    latest = {event.name: event.seq or 0 for event in events}
    return State(
        seq=max(latest.values(), default=0),
        input_seq=max(latest.get("proposal_revised", 0), latest.get("decision_proposed", 0)),
        classified_seq=latest.get("question_classified", 0),
        readiness_passed="readiness_passed" in latest,
        drafted="deliverable_drafted" in latest,
        frozen="deliverable_frozen" in latest,
    )
