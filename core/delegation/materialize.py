"""From a draft to a plan: manifest, stamped contract, approval, in this order and again until it is whole.

(docs/specs/delegation.md §2, §5)
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.delegation import canon
from core.delegation import place as places
from core.delegation.contract import Invalid, Revision, draft_problems, revision
from core.delegation.events import NOTE_CAP
from core.delegation.model import CHAIN, CONTRACT, MANIFEST, MANIFEST_URLS, MECHANISMS
from core.delegation.place import Place
from core.delegation.rules import Draft
from core.delegation.store import AUTHORITY_CAP, Outcome, done
from core.delegation.writer import PLAIN, Hold, World, halt, locked, opened
from core.files import DOCUMENT_CAP, Root
from core.finding import Refused

DEVELOPER: Final = "developer"


@dataclass(frozen=True, slots=True)
class Beginning:
    """What begins a plan: the draft's bytes, who approves it, by which mechanism."""

    draft: bytes
    authority: str = DEVELOPER
    mechanism: str = "plan_authorship"
    note: str | None = None


def materialize(place: Place, world: World, asked: Beginning, hold: Hold = PLAIN) -> Outcome:
    """Make a plan of a folder with its markdown. Raises Halt (1); what is there already is skipped."""
    contract, warnings = _draft(asked.draft)
    if asked.mechanism not in MECHANISMS:
        raise halt("mechanism_unknown", f"--mechanism must be {' or '.join(MECHANISMS)}", "--mechanism")
    if not asked.authority.strip() or len(asked.authority) > AUTHORITY_CAP:
        cause = f"--authority must say who approves, in 1 to {AUTHORITY_CAP} letters"
        raise halt("authority_missing", cause, "--authority")
    if asked.note is not None and len(asked.note) > NOTE_CAP:
        raise halt("event_invalid", f"--note is longer than a note may be: {NOTE_CAP} characters", "--note")
    if contract.plan != place.name:
        cause = f"contract.plan is {contract.plan}, but the folder is called {place.name}"
        raise halt("contract_invalid", cause, "--contract")
    digest = markdown_digest(place)
    with Root(place.plan) as root:
        _fits(root, contract)
    with locked(place, world, contract.generation, hold) as (root, lock):
        try:
            _fits(root, contract)
            manifest = {
                "schema": MANIFEST_URLS[contract.generation],
                "plan": contract.plan,
                "contract": {"id": contract.id, "path": CONTRACT},
            }
            root.create(MANIFEST, canon.pretty(manifest))
            root.create(CONTRACT, canon.pretty({**contract.raw, "contract_id": contract.id}))
        except Refused as exc:
            raise halt(exc.findings[0].code, exc.findings[0].cause, exc.findings[0].where) from None
        writer = opened(root, lock, place, world, hold)
        if contract.id not in writer.progress.approvals:
            body = {"authority": asked.authority, "mechanism": asked.mechanism, "plan_digest": digest}
            writer.commit(Draft("approval", body, {"kind": "human", "identity": asked.authority}, asked.note))
        message = f"OK: materialized {contract.plan} contract {contract.id[:12]}"
        return done(writer, message, warnings=tuple(warnings))


def _draft(data: bytes) -> tuple[Revision, list[str]]:
    """(the contract without a stamp, warnings). Raises Halt naming the first fault."""
    try:
        raw = canon.parse_json(data)
    except ValueError as exc:
        raise halt("contract_invalid", f"the draft is not JSON: {exc}", "--contract") from None
    if isinstance(raw, dict):
        raw.pop("contract_id", None)
    try:
        made = revision(raw, "draft")
    except Invalid as exc:
        raise halt("contract_invalid", str(exc), "--contract") from None
    errors, warnings = draft_problems(made)
    if errors:
        raise halt("contract_invalid", errors[0], "--contract")
    return made, warnings


def markdown_digest(place: Place) -> str:
    """64 hex digits over every `*.md` directly in the folder, in code-point order, nothing between (§5)."""
    running, count = hashlib.sha256(), 0
    with Root(place.plan) as root:
        names = [name for name in root.names() if name.endswith(".md")]
        for name in names:
            if not stat.S_ISREG(_mode(place.plan / name)):
                continue
            real = places.within(place.plan, name)
            if real is None:
                raise halt("path_is_link", f"{name} leads out of the plan folder", name)
            try:
                for piece in root.pieces(real, 0):
                    running.update(piece)
            except (Refused, OSError):
                raise halt("file_unreadable", f"{name} cannot be read", name) from None
            count += 1
    if not count:
        raise halt("plan_text_missing", "the folder holds no markdown, so there is nothing to approve", str(place.plan))
    return running.hexdigest()


def _mode(path: Path) -> int:
    try:
        return os.stat(path).st_mode
    except OSError:
        return 0


def _fits(root: Root, contract: Revision) -> None:
    """Whether what is there already belongs to this contract. Raises Halt."""
    if root.exists(CHAIN):
        raise halt("contract_exists", f"{CHAIN}/ holds revisions: the contract belongs to its amendments now", CHAIN)
    manifest = _existing(root, MANIFEST)
    if manifest is not None:
        pointer = manifest.get("contract")
        wanted = (MANIFEST_URLS[contract.generation], contract.plan, contract.id)
        found = (manifest.get("schema"), manifest.get("plan"), pointer.get("id") if isinstance(pointer, dict) else None)
        for name, one, other in zip(("schema", "plan", "contract.id"), found, wanted, strict=True):
            if one != other:
                raise halt("contract_exists", f"{MANIFEST} has another {name} than this contract", MANIFEST)
    stamped = _existing(root, CONTRACT)
    if stamped is not None and (stamped.get("contract_id"), canon.contract_id(stamped)) != (contract.id, contract.id):
        raise halt("contract_exists", f"{CONTRACT} holds another contract; to change it is an amendment", CONTRACT)


def _existing(root: Root, name: str) -> Mapping[str, Any] | None:
    content = root.read(name, DOCUMENT_CAP)
    if content.missing:
        return None
    try:
        value = canon.parse_json(content.data) if content.data is not None else None
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise halt("contract_exists", f"{name} stands where a contract or manifest should be, and is none", name)
    return value
