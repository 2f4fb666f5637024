"""Receipts that our own systems leave where authority changes (docs/design.md §4).

A receipt follows from an event that is written already: same event, same id, same bytes. It is written once, to
`<root>/receipts/<receipt_id>.json`, and can be rebuilt. Nothing here imports a model: agents pay for this on their way.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from core.files import Root, sha256
from core.finding import Finding, Refused, error, warning
from core.governance.hashing import ENVELOPE_SCHEMA, goal_hash, hash_string
from core.lock import folder_lock

RECEIPTS = "receipts"
SCRATCH = f"{RECEIPTS}/.tmp"
LOCK = f"{RECEIPTS}/.lock"
GOAL = "goal.json"
MARKS = (RECEIPTS, "triage", "ambient", ".dwp", ".git")
"""What makes a folder the root of receipts for everything below it."""
_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,200}")


@dataclass(frozen=True)
class Receipt:
    """An envelope that must exist. `where` is its path below the root."""

    id: str
    envelope: Mapping[str, Any] = field(repr=False)

    @property
    def where(self) -> str:
        return f"{RECEIPTS}/{self.id}.json"

    @cached_property
    def data(self) -> bytes:
        """Its bytes: indent 2, keys in the order of the specification, non-ASCII kept, final newline."""
        text = json.dumps(self.envelope, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
        try:
            return text.encode("utf-8")
        except UnicodeEncodeError:
            return (json.dumps(self.envelope, indent=2, allow_nan=False) + "\n").encode("ascii")

    @property
    def reference(self) -> dict[str, Any]:
        """How a child refers to it: by id, schema, producer, and the digest of its bytes."""
        return {
            "receipt_id": self.id,
            "expected_schema": self.envelope["payload_schema"],
            "expected_producer": self.envelope["producer"],
            "digest": hash_string(self.data),
        }


def receipt(
    receipt_id: str,
    producer: str,
    payload: Mapping[str, Any],
    emitted_at: str,
    goal: str | None = None,
    parents: Sequence[Receipt] = (),
    triage_code: str | None = None,
) -> Receipt:
    """An envelope around a payload that says its `schema`. Raises Refused for an id that is no file name."""
    if _SAFE.fullmatch(receipt_id) is None:
        raise Refused(error("receipt_id_unsafe", f"{receipt_id!r} cannot be the name of a file", None, receipt_id))
    made: dict[str, Any] = {
        "schema": ENVELOPE_SCHEMA,
        "receipt_id": receipt_id,
        "payload_schema": payload["schema"],
        "producer": producer,
        "emitted_at": emitted_at,
        "goal_hash": goal,
        "parent_refs": [item.reference for item in parents],
        "triage_code": triage_code,
        "payload": dict(payload),
    }
    return Receipt(receipt_id, made)


def _digits(hash_text: str) -> str:
    """The first 12 hex digits of a hash, with or without `sha256:` before it."""
    return hash_text.rpartition(":")[2][:12]


def acp(
    folder: str,
    seq: int,
    event: str,
    state: str,
    documents: Mapping[str, str],
    *,
    emitted_at: str,
    goal: str,
    parents: Sequence[Receipt] = (),
    triage_code: str | None = None,
) -> Receipt:
    """Acceptance, closure or escalation of a collaboration. `folder` is relative to the root, digests are hex."""
    payload = {
        "schema": "collab.acp_boundary.v1",
        "folder": folder,
        "seq": seq,
        "event": event,
        "state": state,
        "documents": dict(sorted(documents.items())),
    }
    return receipt(f"acp-{_digits(goal)}-{seq}", "collab.acp", payload, emitted_at, goal, parents, triage_code)


def delegation(
    plan: str,
    seq: int,
    task: str,
    delegation_id: str | None,
    state: str,
    digests: Mapping[str, str],
    *,
    contract_id: str,
    emitted_at: str,
    goal: str,
    parents: Sequence[Receipt] = (),
    triage_code: str | None = None,
) -> Receipt:
    """A launch (dispatch), a collection (handoff) or a completed task (acceptance) of a plan."""
    payload = {
        "schema": "collab.delegation_boundary.v1",
        "plan": plan,
        "seq": seq,
        "task": task,
        "delegation_id": delegation_id,
        "state": state,
        "digests": dict(sorted(digests.items())),
    }
    name = f"del-{_digits(contract_id)}-{seq}"
    return receipt(name, "collab.delegation", payload, emitted_at, goal, parents, triage_code)


def workflow_id(run_id: str, number: int) -> str:
    """The id of the receipt of that event of a run."""
    return f"run-{run_id}-{number}"


def workflow(
    run_id: str,
    number: int,
    entry: str | None,
    decision: Mapping[str, Any] | str | None,
    outcome: str | None,
    *,
    emitted_at: str,
    goal: str,
    parents: Sequence[Receipt] = (),
    triage_code: str | None = None,
) -> Receipt:
    """An escalation opened or decided, or the end of a run; `number` is that of its event."""
    payload = {
        "schema": "collab.workflow_boundary.v1",
        "run_id": run_id,
        "entry": entry,
        "decision": decision,
        "outcome": outcome,
    }
    return receipt(workflow_id(run_id, number), "collab.workflow", payload, emitted_at, goal, parents, triage_code)


def triage(code: str, layer: str | None, signal: str, *, emitted_at: str) -> Receipt:
    """A code that was minted the first time: a failure that will last until somebody names it."""
    payload = {
        "schema": "collab.triage_boundary.v1",
        "code": code,
        "layer": layer,
        "signal_sha256": sha256(signal.encode("utf-8", "surrogatepass")),
    }
    return receipt(f"tri-{code}", "collab.triage", payload, emitted_at, None, (), code)


def root_for(path: Path, named: Path | None = None) -> Path:
    """Where receipts and triage of a folder or plan belong.

    The named root, else the nearest folder above that holds receipts, triage, ambient, .dwp or .git, else its parent.
    """
    if named is not None:
        return named
    path = path.absolute()
    for parent in path.parents:
        if any(os.path.lexists(parent / mark) for mark in MARKS):
            return parent
    return path.parent


def goal_of(folder: Root, goal_id: str, outcome: str) -> str:
    """The hash of the folder's `goal.json` if it is a valid goal, else of what the folder itself says."""
    data = folder.read(GOAL).data
    if data is not None:
        from core.governance import rules

        made, _, _ = rules.goal(GOAL, data)
        if made is not None:
            return made.goal_hash
    return goal_hash(goal_id, outcome)


def missing(root: Path, wanted: Iterable[Receipt]) -> list[Receipt]:
    """Those of the receipts that are not there."""
    try:
        with Root(root) as folder:
            return [item for item in wanted if not folder.exists(item.where)]
    except Refused:
        return list(wanted)


def write(root: Path, wanted: Iterable[Receipt]) -> list[Receipt]:
    """Write those that are not there yet, each whole or not at all; returns what was made. Raises Refused."""
    with Root(root, SCRATCH) as folder, folder_lock(folder, LOCK):
        folder.sweep(locked=True)
        return [item for item in wanted if folder.create(item.where, item.data)]


def rebuild(root: Path, wanted: Sequence[Receipt]) -> list[Finding]:
    """What `collab repair` does: write the missing receipts and say so. Raises Refused."""
    made = write(root, lacking) if (lacking := missing(root, wanted)) else []
    return [
        warning("receipt_rebuilt", f"the receipt {item.id} was missing; it was written again", None, item.where)
        for item in made
    ]


def check(root: Path, wanted: Sequence[Receipt], repair: str) -> list[Finding]:
    """Whether the receipts are there, are what their events say, and can be trusted. `repair` writes missing ones."""
    if not wanted:
        return []
    from core.governance import rules, store
    from core.triage.store import Place

    found: list[Finding] = []
    try:
        catalog = Place(root).load()
        with Root(root) as folder:
            read = {item.id: folder.read(item.where) for item in wanted}
        known = store.Known(
            store.receipts(root / RECEIPTS, catalog) if any(item.data for item in read.values()) else ()
        )
    except Refused as exc:
        return list(exc.findings)
    for item in wanted:
        data = read[item.id].data
        if data is None:
            cause = f"an event must have left the receipt {item.id}; it is not there"
            found.append(error("receipt_missing", cause, repair, item.where))
            continue
        if data != item.data:
            cause = f"the receipt {item.id} is not what its event says; it was changed, or belongs to something else"
            found.append(error("receipt_changed", cause, None, item.where))
        made, _, faults = rules.envelope(item.where, data, catalog)
        found += faults if made is None else store.resolve(made, item.where, hash_string(data), known).findings
    return list(dict.fromkeys(found))
