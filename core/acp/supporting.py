"""Declaring a supporting deliverable: protocol.json and the new file, or neither (docs/specs/acp.md §7)."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.acp import declare, deliverables, store
from core.acp.model import DELIVERABLE_TYPES, PROTOCOL, Deliverable, read_setup
from core.acp.place import deliverables_root
from core.acp.reader import Snapshot, locate
from core.acp.rules import quoted
from core.clock import SYSTEM, Clock, stamp
from core.files import Root
from core.finding import Finding, Refused, error
from core.lock import PATIENCE

PHASES = ("drafting", "revising")


@dataclass(frozen=True)
class Addition:
    """A supporting deliverable that may be declared now: what protocol.json will hold, and the file that begins.

    `there`: the file exists already, fits its type, and stays as it is.
    """

    item: Deliverable
    ref: str
    raw: dict[str, Any]
    data: bytes
    there: bool


def plan(snapshot: Snapshot, participant: str, file: str, kind: str, checks: Sequence[str] = ()) -> Addition:
    """Decide it on a snapshot; writes nothing. Raises Refused with every reason."""
    setup = snapshot.setup
    if setup is None:
        raise Refused(*(locate(item, snapshot.path) for item in snapshot.problems))
    found = turn_findings(snapshot, participant) or _answers(file, kind, checks)
    declared = setup.deliverables
    if not found and declared is None:
        found = deliverables.setup_findings(setup, snapshot.repo_problem)
    if found or declared is None:
        raise Refused(*(locate(item, snapshot.path) for item in found))
    item = Deliverable(kind, file, tuple(dict.fromkeys(text.strip() for text in checks if text.strip())))
    ref = declared.ref(file)
    if declared.find(ref) is not None:
        cause = f"{ref} is declared already"
        raise Refused(
            error("deliverable_declared", cause, f"collab show --folder {quoted(str(snapshot.path))}", "FILE")
        )
    listed = setup.raw["deliverables"].get("supporting")
    entry: dict[str, Any] = {"type": kind, "file": file, "checklist": list(item.checklist), "frozen": False}
    raw = dict(setup.raw)
    raw["deliverables"] = {
        **setup.raw["deliverables"],
        "supporting": [*(listed if isinstance(listed, list) else []), entry],
    }
    made, problem = read_setup(store.encode_setup(raw))
    if made is None:
        raise Refused(*((problem,) if problem is not None else ()))
    found = deliverables.setup_findings(made, snapshot.repo_problem)
    place = None if found else declare.place_finding(snapshot.path, made, item, {})
    if found or place is not None:
        raise Refused(*(locate(one, snapshot.path) for one in (*found, *((place,) if place is not None else ()))))
    there = declare.look(snapshot.path, made, item).data is not None
    return Addition(item, ref, raw, declare.begin(item, setup.objective), there)


def turn_findings(snapshot: Snapshot, participant: str) -> list[Finding]:
    """Why this participant cannot declare anything now, whatever it is."""
    return [locate(item, snapshot.path) for item in _turn(snapshot, participant)]


def _turn(snapshot: Snapshot, participant: str) -> list[Finding]:
    setup, state = snapshot.setup, snapshot.state
    show = "collab show --folder {folder}"
    following = f"collab next --folder {{folder}} --participant {quoted(participant)}"
    if setup is None or setup.schema < 2:
        cause = (
            "a schema 1 collaboration has no deliverables; `collab init --primary-deliverable-type` makes one that has"
        )
        return [error("deliverables_none", cause, show, PROTOCOL)]
    if participant not in setup.participants:
        cause = f"participant {participant!r} is not listed in protocol.json"
        return [error("participant_unknown", cause, show, "--as")]
    if participant != state.owner:
        cause = f"declaring a deliverable is reserved for {state.owner}; got {participant}"
        return [error("actor_not_expected", cause, following, "--as")]
    if state.phase not in PHASES:
        cause = f"declaring a deliverable is not allowed from phase {state.phase}, only in drafting and revising"
        return [error("phase_not_allowed", cause, following)]
    return []


def _answers(file: str, kind: str, checks: Sequence[str]) -> list[Finding]:
    found = []
    if kind not in DELIVERABLE_TYPES:
        cause = f"{kind!r} is no deliverable type; there are {', '.join(DELIVERABLE_TYPES)}"
        found.append(error("deliverable_type_unknown", cause, None, "--type"))
    if (fault := declare.file_fault(file)) is not None:
        found.append(error("deliverable_file_malformed", f"supporting deliverable {fault}", None, "FILE"))
    return found + declare.checks_findings(kind, checks, "--check")


def add(
    path: Path,
    participant: str,
    file: str,
    kind: str,
    checks: Sequence[str] = (),
    clock: Clock = SYSTEM,
    patience: float = PATIENCE,
) -> tuple[Addition, list[Finding]]:
    """Declare it, under the lock; also returns what was mended on the way. Raises Refused; nothing is written then.

    The file comes first: killed in between, a writer leaves an undeclared file, which the same command takes over.
    """
    with store.settled(path, clock, patience) as (root, snapshot, mended):
        try:
            made = plan(snapshot, participant, file, kind, checks)
            setup = snapshot.setup
            assert setup is not None  # noqa: S101 - plan() raises otherwise; this tells the type checker
            new = store.encode_setup({**made.raw, "updatedAt": stamp(clock.now())})
            with deliverables_root(path, setup, root) as (base, prefix):
                _write(root, base, f"{prefix}/{file}", made.data, new)
        except Refused as exc:
            raise Refused(*exc.findings, *mended) from None
    return made, mended


def _write(root: Root, base: Root, name: str, data: bytes, setup: bytes) -> None:
    """The file, then protocol.json. A write that fails is undone: it may have come through without its fsync."""
    before, there = root.read(PROTOCOL).data, base.exists(name)
    try:
        base.create(name, data)
        root.replace(PROTOCOL, setup)
    except Refused:
        # On a disk that fails here too, a file that nobody declared is left, or both: either is a valid folder.
        with contextlib.suppress(Refused):
            if before is not None and root.read(PROTOCOL).data == setup:
                root.replace(PROTOCOL, before)
            if not there:
                base.remove(name)
        raise
