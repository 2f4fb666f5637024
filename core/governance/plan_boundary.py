"""The receipts that a plan leaves, from its journal alone (docs/design.md §4).

A launch (dispatch), a collection (handoff, its parent is the launch), a task that is complete (acceptance, its
parents are the collections of that task). What failed or was refused is observed once, in the layer `delegation`, so
that every failure that a person sees has a code.

Git must not see what is kept about a plan: a file that appears would be taken for a change by a delegate that may
only read. Folders that are made here are hidden from git; while such a delegate is at work, nothing is written into
one that is not.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from core.clock import parse, stamp
from core.delegation import boundary as plan_boundaries
from core.delegation import place as places
from core.delegation import reader
from core.delegation.boundary import PAYLOAD_SCHEMA, PRODUCER, Boundary
from core.delegation.git import NONE
from core.delegation.model import JOURNAL
from core.delegation.place import Place
from core.delegation.progress import Progress, tree_mark
from core.files import Root
from core.finding import Finding, Refused, warning
from core.governance import boundary
from core.governance.boundary import RECEIPTS, Receipt
from core.governance.failures import observed, recorded, unwritten

LAYER: Final = "delegation"
EVENTS: Final = frozenset({"delegation", "gate_run", "task_start", "observation", "amendment", "approval", "refusal"})
"""Events after which there may be something to leave."""
_IGNORE: Final = ".gitignore"
_HIDDEN: Final = {RECEIPTS: b"*\n", "triage": b"*\n!failure_codes.json\n"}
_READ_ONLY: Final = b"read-only tree "

CodeOf = Callable[[str, str | None, datetime], str]


@dataclass(frozen=True)
class Look:
    """A plan with what its receipts depend on."""

    place: Place
    record: reader.Record
    root: Path
    goal: str

    @property
    def events(self) -> Iterator[Mapping[str, Any]]:
        return (entry.event for entry in self.record.entries)

    @property
    def boundaries(self) -> list[Boundary]:
        return plan_boundaries.boundaries(self.record.chain, self.events)

    def wanted(self, code_of: CodeOf, kept: bool = False) -> list[Receipt]:
        """The receipts that must exist, always the same for the same journal, in its order.

        The journal says what evidence a task was accepted on, not what was in it: a receipt fixes that when it is
        written. With `kept` those that are there already are believed, without it the files are hashed anew.
        """
        made: dict[str, Receipt] = {}
        for item in self.boundaries:
            made[item.receipt_id] = self._receipt(item, made, code_of, kept)
        return list(made.values())

    def _receipt(self, item: Boundary, made: Mapping[str, Receipt], code_of: CodeOf, kept: bool) -> Receipt:
        moment = parse(item.ts) or datetime.fromtimestamp(0, UTC)
        digests = self.fixed(item) if kept else None
        payload = item.payload(self.record.plan, self.hashed(item) if digests is None else digests)
        return boundary.receipt(
            item.receipt_id,
            PRODUCER,
            {"schema": PAYLOAD_SCHEMA, **payload, "digests": dict(sorted(payload["digests"].items()))},
            stamp(moment),
            self.goal,
            [made[name] for name in item.parents if name in made],
            None if item.reason is None else code_of(item.reason, item.actor, moment),
        )

    def hashed(self, item: Boundary) -> dict[str, str]:
        """The evidence of a boundary as it is now, by criterion; what is gone is left out."""
        found = {name: places.hash_evidence(self.place, path) for name, path in item.evidence.items()}
        return {name: digest for name, digest in found.items() if digest is not None}

    def fixed(self, item: Boundary) -> dict[str, str] | None:
        """What the receipt that is there says about that evidence; None without one that can be read."""
        if not item.evidence:
            return {}
        with Root(self.root) as root:
            data = root.read(f"{RECEIPTS}/{item.receipt_id}.json").data
        try:
            said = json.loads(data or b"")["payload"]["digests"]
            return {name: said[name] for name in item.evidence if isinstance(said.get(name), str)}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None


def look(plan: Path, named: Path | None = None) -> Look:
    """A plan as its receipts see it. Raises Refused when it cannot be read."""
    place = places.at(plan.absolute())
    record = reader.read(place, keep=True)
    live = record.chain.live
    with Root(place.plan) as folder:
        goal = boundary.goal_of(folder, live.plan, live.document.outcome.statement)
    return Look(place, record, boundary.root_for(place.plan, named.absolute() if named is not None else None), goal)


@dataclass(frozen=True, slots=True)
class Left:
    """After an event: the codes of what failed or was refused, by seq, and what could not be done (warnings)."""

    codes: Mapping[int, str]
    findings: tuple[Finding, ...]


def leave(plan: Path, seqs: frozenset[int] = frozenset(), named: Path | None = None) -> Left:
    """After events: observe those of `seqs` that failed or were refused, write the receipts that are missing.

    Never raises. What could not be done is a warning; the events stand whatever happens here.
    """
    left = _rebuild(plan, seqs, named)
    quiet = ("receipt_rebuilt", "receipts_wait")
    return Left(left.codes, tuple(item for item in left.findings if item.code not in quiet))


def rebuild(plan: Path, named: Path | None = None) -> list[Finding]:
    """The same for `collab repair --plan`, which says what was missing. Never raises."""
    return list(_rebuild(plan, None, named).findings)


def _rebuild(plan: Path, seqs: frozenset[int] | None, named: Path | None) -> Left:
    codes: dict[int, str] = {}
    trouble: list[Finding] = []
    try:
        found = look(plan, named)
        held = _held(found)

        def code_of(reason: str, by: str | None, moment: datetime) -> str:
            if held is not None:
                return recorded(found.root, reason, LAYER, by, moment)
            _hide(found.root)
            return observed(found.root, reason, LAYER, by, moment, trouble)

        codes = _failures(found, seqs, code_of)
        receipts = found.wanted(code_of)
        missing = boundary.missing(found.root, receipts)
        if held is not None:
            return Left(codes, (held,) if missing else ())
        if missing:
            _hide(found.root)
        return Left(codes, (*boundary.rebuild(found.root, missing), *trouble))
    except Refused as exc:
        return Left(codes, (*(unwritten(item) for item in exc.findings), *trouble))
    except (OSError, ValueError, RecursionError) as exc:
        cause = f"the receipt was not written: {type(exc).__name__}: {exc}"
        return Left(codes, (warning("receipt_not_written", cause, repair_command(plan), str(plan)), *trouble))


def _failures(found: Look, seqs: frozenset[int] | None, code_of: CodeOf) -> dict[int, str]:
    """Codes of refusals and failed delegations, all of them or those of some positions."""
    codes = {}
    for event in found.events:
        seq, reason = event.get("seq"), failure(event)
        if type(seq) is not int or reason is None or (seqs is not None and seq not in seqs):
            continue
        moment = parse(str(event.get("ts"))) or datetime.fromtimestamp(0, UTC)
        codes[seq] = code_of(reason, _who(event), moment)
    return codes


def failure(event: Mapping[str, Any]) -> str | None:
    """Why an event is a failure: a refusal of the ledger's own, or a delegation that ended as failed; else None."""
    actor = event.get("actor")
    if event.get("type") == "refusal" and isinstance(actor, Mapping) and actor.get("kind") == "helper":
        return str(event.get("reason"))
    if event.get("type") == "delegation" and event.get("state") == "failed":
        return plan_boundaries.failure_reason(event)
    return None


def _who(event: Mapping[str, Any]) -> str | None:
    actor = event.get("actor")
    return actor.get("identity") if isinstance(actor, Mapping) else None


def code_of(root: Path, reason: str, by: str | None, ts: str) -> str:
    """What a failure of a plan below `root` is called. Writes nothing."""
    return recorded(root, reason, LAYER, by, parse(ts) or datetime.fromtimestamp(0, UTC))


# ---------------------------------------------------------------- what git sees


def _hide(path: Path) -> None:
    """Make the folders of receipts and failures, hidden from git, where they are not there yet."""
    if not any(os.path.lexists(parent / ".git") for parent in (path, *path.parents)):
        return
    for name, text in _HIDDEN.items():
        if not os.path.lexists(path / name):
            with Root(path) as root:
                root.create(f"{name}/{_IGNORE}", text)


def _held(found: Look) -> Finding | None:
    """Why nothing may be written now: git would see it, and a delegate that may only read would be blamed for it."""
    if all(_is_hidden(found.root / name, text) for name, text in _HIDDEN.items()):
        return None
    reading = next(_reading(found), None)
    if reading is None:
        return None
    cause = f"receipts wait: git would see them, and {reading} may change nothing in its working tree"
    return warning("receipts_wait", cause, repair_command(found.place.plan), str(found.root))


def _is_hidden(folder: Path, text: bytes) -> bool:
    if not os.path.lexists(folder):
        return True
    try:
        with Root(folder) as root:
            return text.split(b"\n")[0] in (root.read(_IGNORE).data or b"").split(b"\n")
    except Refused:
        return False


def _reading(found: Look) -> Iterator[str]:
    """Open delegations whose launch fixed the working tree, in this plan and in those beside it."""
    yield from _fixing(found.record.progress)
    if found.place.plan.parent.name != "plans":
        return
    try:
        beside = sorted(entry.path for entry in os.scandir(found.place.plan.parent) if entry.is_dir())
    except OSError:
        return
    for path in map(Path, beside):
        try:
            if path == found.place.plan or not _mentions(path, _READ_ONLY):
                continue
            yield from _fixing(reader.read(places.at(path)).progress)
        except (Refused, OSError):
            continue


def _mentions(plan: Path, words: bytes) -> bool:
    """Whether a plan's journal holds these bytes. Raises Refused or OSError."""
    rest = b""
    with Root(plan) as root:
        for piece in root.pieces(JOURNAL, 0):
            if words in rest + piece:
                return True
            rest = piece[-len(words) :]
    return False


def _fixing(progress: Progress) -> Iterator[str]:
    for names in progress.open.values():
        for name in sorted(names):
            if tree_mark(progress.delegations[name].latest) not in (None, NONE):
                yield name


# ---------------------------------------------------------------- checking


def repair_command(plan: Path) -> str:
    return f"collab repair --plan {shlex.quote(str(plan))}"


def check(plan: Path, named: Path | None = None) -> list[Finding]:
    """What `collab ledger verify --receipts` adds: receipts missing, changed or not trusted."""
    try:
        found = look(plan, named)
        receipts = found.wanted(lambda reason, by, moment: recorded(found.root, reason, LAYER, by, moment), kept=True)
        held = _held(found)
    except Refused as exc:
        return list(exc.findings)
    made = boundary.check(found.root, receipts, repair_command(plan))
    if held is not None:
        made = [held if item.code == "receipt_missing" else item for item in made]
    return [*dict.fromkeys(made), *_changed(found)]


def _changed(found: Look) -> Iterator[Finding]:
    """Evidence and results that are not what the receipts that are there name."""
    results = {event.get("seq"): event.get("result_path") for event in found.events if "result_digest" in event}
    for item in found.boundaries:
        if not os.path.lexists(found.root / RECEIPTS / f"{item.receipt_id}.json"):
            continue
        now = found.hashed(item)
        for name, digest in (found.fixed(item) or {}).items():
            if now.get(name) != digest:
                yield _other(found, item, item.evidence[name])
        path, collected = str(results.get(item.seq)), item.digests.get("result_digest")
        if collected is not None and places.hash_result(found.place, path) != collected:
            yield _other(found, item, path)


def _other(found: Look, item: Boundary, path: str) -> Finding:
    cause = f"{path} is not what the receipt {item.receipt_id} names: it changed after seq {item.seq}"
    command = f"collab ledger --plan {shlex.quote(str(found.place.plan))} inspect"
    return warning("receipt_document_changed", cause, command, path)
