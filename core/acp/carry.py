"""What a new round of a v2 collaboration takes along: declaration and files (docs/specs/acp.md §2, §7)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.acp import compose, declare, deliverables
from core.acp.model import Deliverable, Setup
from core.acp.place import deliverables_root
from core.acp.reader import Snapshot, repo_root
from core.files import Root
from core.finding import Refused, error


def objective_gates(setup: Setup) -> tuple[str, ...]:
    """The gates that people gave; those that the declaration brings are made anew."""
    listed = setup.raw.get("completionGates")
    items = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    return tuple(str(item["text"]) for item in items if item.get("source") == "objective" and "text" in item)


def declaration(snapshot: Snapshot, setup: Setup, target: Path) -> tuple[declare.Declaration, dict[str, str]]:
    """The declaration for the next round, and old reference to new where a file gets another name. Raises Refused.

    What the round before froze must keep its bytes for ever: in external mode, where both rounds share the place,
    the new draft goes beside it.
    """
    declared = setup.deliverables
    faults = deliverables.setup_findings(setup, snapshot.repo_problem)
    if faults or declared is None:
        raise Refused(*faults)
    external = declared.mode == "external"
    root = _repo_root(snapshot, setup, target) if external else None
    frozen = deliverables.frozen_refs(snapshot.events)
    raw = setup.raw["deliverables"]
    contents: dict[str, bytes] = {}
    renamed: dict[str, str] = {}

    def carried(item: Deliverable) -> str:
        ref = declared.ref(item.file)
        data = snapshot.document(ref).data
        name = item.file
        if external and ref in frozen:
            name = _free(snapshot, setup, item.file)
            renamed[ref] = declared.ref(name)
        if data is not None:
            contents[name] = declare.with_status(data, "Draft", ref)
        return name

    primary = carried(declared.primary)
    supporting: list[dict[str, Any]] = []
    for item in declared.supporting:
        listed = next(one for one in raw["supporting"] if isinstance(one, dict) and one.get("file") == item.file)
        supporting.append({**listed, "file": carried(item), "frozen": False})
    checks = raw["primary"].get("checklist")
    made = declare.Declaration(
        declared.primary.type,
        primary,
        [text for text in checks if isinstance(text, str)] if isinstance(checks, list) else (),
        declared.mode,
        declared.dir,
        root,
        supporting,
        raw.get("attachments") if isinstance(raw.get("attachments"), list) else (),
        raw.get("coAuthors") if isinstance(raw.get("coAuthors"), list) else (),
        contents,
    )
    return made, renamed


def _repo_root(snapshot: Snapshot, setup: Setup, target: Path) -> str:
    """The same repository as seen from the new folder."""
    base, problem = repo_root(snapshot.path, setup)
    here = target.resolve()
    if base is None or (base != here and base not in here.parents):
        cause = problem or f"the deliverables lie in {base}, so the new round must be a folder inside it"
        raise Refused(error("repo_root_wrong", cause, None, "--folder"))
    return os.path.relpath(base, here)


def _free(snapshot: Snapshot, setup: Setup, file: str) -> str:
    """`name-2.md`, or the first number that no file has."""
    stem = file.removesuffix(".md")
    with Root(snapshot.path) as root, deliverables_root(snapshot.path, setup, root) as (base, prefix):
        number = 2
        while base.exists(f"{prefix}/{stem}-{number}.md"):
            number += 1
    return f"{stem}-{number}.md"


def documents(carried: Mapping[str, bytes], renamed: Mapping[str, str]) -> dict[str, bytes]:
    """Documents with the new references in them; nothing in readiness.md is ticked yet."""
    made = {}
    for name, data in carried.items():
        text = data.decode("utf-8", "surrogateescape")
        if name == "readiness.md":
            text = compose.reopen(text)
        for old, new in renamed.items():
            text = text.replace(old, new)
        made[name] = text.encode("utf-8", "surrogateescape")
    return made


def internal_files(declared: declare.Declaration | None) -> dict[str, bytes]:
    """The files that will lie in the new folder itself, by their path in it."""
    if declared is None or declared.mode == "external":
        return {}
    return {f"{declared.dir}/{file}": data for file, data in declared.contents.items()}


def attachments(snapshot: Snapshot, setup: Setup, new: Root) -> None:
    """Copy attachments into the new folder; external ones lie where they lay. Raises Refused."""
    declared = setup.deliverables
    if declared is None or declared.mode == "external" or not declared.attachments:
        return
    with Root(snapshot.path) as old:
        for file in declared.attachments:
            name = f"{declared.dir}/{file}"
            if old.exists(name):
                new.create(name, old.pieces(name, 0))
