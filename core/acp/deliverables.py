"""What version 2 adds: declared, frozen Markdown deliverables (docs/specs/acp.md §7)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from core.acp.documents import deliverable_status, has_label, scan_decisions, section_filled
from core.acp.model import DELIVERABLE_TYPES, Deliverable, Deliverables, Document, Event, Setup
from core.finding import Finding, error

_SHA = re.compile(r"[0-9a-f]{64}")
SHOW = "collab show --folder {folder}"
Reader = Callable[[str], Document]


def escapes(path: str) -> bool:
    """Absolute, or with a `..` segment."""
    pure = PurePosixPath(path)
    return pure.is_absolute() or ".." in pure.parts


def valid_sha(value: object) -> bool:
    """64 lower-case hex digits."""
    return isinstance(value, str) and _SHA.fullmatch(value) is not None


def reference_finding(setup: Setup, event: Event, read: Reader) -> Finding | None:
    """The first failure of role, doc, sha256, file and digest, in the order that callers rely on."""
    if event.role not in ("primary", "supporting"):
        return error("deliverable_role_missing", "deliverable events require role", SHOW, "--role")
    if not event.doc:
        return error("deliverable_doc_missing", "deliverable events require doc", SHOW, "--doc")
    declared = setup.deliverables
    found = None if declared is None else _named(declared, event.doc, event.role)
    if declared is None or found is None:
        which = "the primary deliverable" if event.role == "primary" else "a declared supporting deliverable"
        return error("deliverable_doc_wrong", f"doc must reference {which}", SHOW, "--doc")
    if event.name != "deliverable_frozen":
        return None
    if not valid_sha(event.sha256):
        return error("sha256_missing", "deliverable_frozen requires sha256", SHOW, "--sha256")
    document = read(event.doc)
    if document.data is None:
        return document.problem or error("deliverable_missing", "deliverable_frozen doc does not exist", SHOW)
    if document.sha256 != event.sha256:
        cause = f"deliverable_frozen sha256 does not match current file; it is {document.sha256}"
        return error("sha256_mismatch", cause, SHOW, "--sha256")
    return None


def _named(declared: Deliverables, doc: str, role: str) -> Deliverable | None:
    if role == "primary":
        return declared.primary if declared.primary_ref == doc else None
    return next((item for item in declared.supporting if declared.ref(item.file) == doc), None)


def freeze_findings(setup: Setup, event: Event, read: Reader) -> list[Finding]:
    """A file is frozen for ever: its status must say so and no section may be empty."""
    declared = setup.deliverables
    item = declared.find(event.doc or "") if declared is not None else None
    if item is None:
        return []
    label = "primary deliverable" if event.role == "primary" else f"supporting deliverable {event.doc}"
    return list(content_findings(item, label, read(event.doc or "").text, frozen=True))


def content_findings(item: Deliverable, label: str, text: str, frozen: bool) -> Iterator[Finding]:
    """Status line and sections of a deliverable; `frozen` asks for `Status: Frozen` and filled sections."""
    status = deliverable_status(text)
    if status is None:
        cause = f"{label} must include Status: Draft, In Review, or Frozen"
        yield error("deliverable_status_missing", cause, SHOW, item.file)
    if frozen and status != "Frozen":
        yield error("deliverable_not_frozen", f"{label} status must be Frozen", SHOW, item.file)
    for section in item.sections:
        filled = section_filled(text, section)
        if filled is None:
            yield error("deliverable_section_missing", f"{label} missing required section: {section}", SHOW, item.file)
        elif frozen and not filled:
            cause = f"{label} section must not be empty when frozen: {section}"
            yield error("deliverable_section_empty", cause, SHOW, item.file)


def setup_findings(setup: Setup, repo_problem: str | None) -> list[Finding]:
    """Field faults of a v2 protocol.json; `repo_problem` is what is wrong with `repoRoot` on disk, or None."""
    raw = setup.raw
    found: list[Finding] = []

    def add(cause: str) -> None:
        found.append(error("setup_invalid", cause, None, "protocol.json"))

    if raw.get("protocol") != "acp":
        add("protocol.json protocol must be 'acp'")
    if raw.get("schemaVersion") != 2 or isinstance(raw.get("schemaVersion"), bool):
        add("protocol.json schemaVersion must be 2")
    gates = raw.get("completionGates")
    for index, gate in enumerate(gates if isinstance(gates, list) else [], start=1):
        if (
            not isinstance(gate, dict)
            or gate.get("source") not in ("objective", "generated")
            or not isinstance(gate.get("text"), str)
            or not gate["text"].strip()
        ):
            add(f"completionGates[{index}] must include source and text")
    declared = raw.get("deliverables")
    if not isinstance(declared, dict) or not declared:
        add("protocol.json deliverables.primary is required")
        return found
    mode = declared.get("mode")
    if mode not in ("internal", "external"):
        add("deliverables.mode must be internal or external")
    if mode == "internal" and "repoRoot" in raw:
        add("repoRoot is not allowed for internal deliverables")
    if mode == "external" and repo_problem is not None:
        add(repo_problem)
    directory = declared.get("dir")
    if not isinstance(directory, str) or not directory.strip():
        add("deliverables.dir is required")
    elif escapes(directory):
        add("deliverables.dir must be relative and must not contain ..")
    if setup.deliverables is None:
        add("protocol.json deliverables.primary is required")
        return found
    primary = setup.deliverables.primary
    for cause in _file_faults(primary, "primary"):
        add(cause)
    if primary.type == "custom" and not primary.sections:
        add("custom primary deliverable requires checklist")
    seen: set[str] = set()
    for item in setup.deliverables.supporting:
        for cause in _file_faults(item, "supporting"):
            add(cause)
        if item.file in seen:
            add("supporting deliverable files must be unique")
        elif item.file == primary.file:
            add("supporting deliverable must not reuse the primary deliverable file")
        seen.add(item.file)
    attachments = declared.get("attachments", [])
    for entry in attachments if isinstance(attachments, list) else []:
        file = entry.get("file") if isinstance(entry, dict) else None
        if not isinstance(file, str) or not file:
            add("attachment file is required")
        elif escapes(file):
            add("attachment file must be relative and must not contain ..")
    return found


def _file_faults(item: Deliverable, role: str) -> Iterator[str]:
    if item.type not in DELIVERABLE_TYPES:
        yield f"{role} deliverable type is invalid"
    if not item.file.endswith(".md"):
        yield f"{role} deliverable file must be Markdown"
    elif escapes(item.file):
        yield f"{role} deliverable file must be relative and must not contain .."


def notable(declared: Deliverables, event: Event) -> bool:
    """Whether `log_findings` may have to say something of an event about a deliverable."""
    if event.role not in ("primary", "supporting") or event.doc is None:
        return False
    return event.name == "deliverable_frozen" or _named(declared, event.doc, event.role) is None


def log_findings(setup: Setup, events: Sequence[Event], read: Reader) -> list[Finding]:
    """Freezes against the files as they are now, and against the `frozen` marks; `events` are the notable ones."""
    declared = setup.deliverables
    if declared is None:
        return []
    found: list[Finding] = []
    frozen_refs: set[str] = set()
    for event in events:
        if event.doc is None or event.role is None:
            continue
        where = f"events.jsonl#line {event.line}"
        if _named(declared, event.doc, event.role) is None:
            which = "the primary deliverable" if event.role == "primary" else "a declared supporting deliverable"
            found.append(error("deliverable_doc_wrong", f"seq {event.seq}: doc must reference {which}", None, where))
            continue
        if event.name != "deliverable_frozen" or not valid_sha(event.sha256):
            continue
        document = read(event.doc)
        if document.data is None:
            cause = f"seq {event.seq}: deliverable_frozen doc does not exist"
            found.append(error("deliverable_missing", cause, None, where))
            continue
        if document.sha256 != event.sha256:
            cause = f"seq {event.seq}: deliverable_frozen sha256 does not match current file"
            found.append(error("sha256_mismatch", cause, SHOW, where))
        frozen_refs.add(event.doc)
    for item in declared.supporting:
        ref = declared.ref(item.file)
        if item.frozen and ref not in frozen_refs:
            cause = f"supporting deliverable requires deliverable_frozen: {ref}"
            found.append(error("supporting_freeze_missing", cause, SHOW, "protocol.json"))
        if not item.frozen and ref in frozen_refs:
            cause = f"supporting deliverable has freeze event but is not marked frozen: {ref}"
            found.append(error("supporting_freeze_unmarked", cause, SHOW, "protocol.json"))
    return found


def frozen_refs(events: Sequence[Event]) -> frozenset[str]:
    """The references that a freeze in the log names."""
    return frozenset(event.doc for event in events if event.name == "deliverable_frozen" and event.doc is not None)


def marked(setup: Setup, events: Sequence[Event]) -> Mapping[str, Any]:
    """protocol.json with `frozen: true` on every supporting deliverable that the log froze; itself when all are."""
    declared = setup.deliverables
    if declared is None:
        return setup.raw
    frozen = {event.doc for event in events if event.name == "deliverable_frozen" and event.role == "supporting"}
    files = {item.file for item in declared.supporting if not item.frozen and declared.ref(item.file) in frozen}
    if not files:
        return setup.raw
    # Entries of the wrong type stay where they are; only what the log froze is marked.
    entries = [
        {**item, "frozen": True} if isinstance(item, dict) and item.get("file") in files else item
        for item in setup.raw["deliverables"]["supporting"]
    ]
    return {**setup.raw, "deliverables": {**setup.raw["deliverables"], "supporting": entries}}


def document_findings(
    setup: Setup,
    names: Collection[str | None],
    frozen_docs: Collection[str | None],
    read: Reader,
    decisions: str,
    review: str,
) -> list[Finding]:
    """Deliverables, decisions.md, review.md and attachments of a folder whose declaration is well formed.

    `names` are those of the events in its log, `frozen_docs` what they froze.
    """
    declared = setup.deliverables
    if declared is None:
        return []
    primary_frozen = declared.primary_ref in frozen_docs or not {"readiness_passed", "completed"}.isdisjoint(names)
    found: list[Finding] = []
    primary = read(declared.primary_ref)
    if primary.data is None:
        found.append(_gone(primary, f"primary deliverable missing: {declared.primary_ref}"))
    else:
        found += content_findings(declared.primary, "primary deliverable", primary.text, primary_frozen)
    for item in declared.supporting:
        ref = declared.ref(item.file)
        document = read(ref)
        if document.data is None:
            found.append(_gone(document, f"supporting deliverable missing: {ref}"))
        else:
            label = f"supporting deliverable {ref}"
            found += content_findings(item, label, document.text, item.frozen or ref in frozen_docs)
    for file in declared.attachments:
        attached = read(declared.ref(file))
        if attached.data is None and attached.problem is not None and attached.problem.code != "file_too_large":
            found.append(error("attachment_missing", f"attachment missing: {file}", None, "protocol.json"))
    return found + decision_findings(declared, decisions) + review_findings(declared, names, review)


def _gone(document: Document, cause: str) -> Finding:
    if document.problem is not None and document.problem.code != "file_missing":
        return document.problem
    return error("deliverable_missing", cause, None, document.name)


def decision_findings(declared: Deliverables, text: str) -> list[Finding]:
    """Accepted decisions are `### D1. …` in order, each with Decision and Reflected in."""
    found: list[Finding] = []
    seen: set[str] = set()
    for index, decision in enumerate(scan_decisions(text), start=1):
        where = f"decisions.md#line {decision.line}"

        def add(cause: str, place: str = where) -> None:
            found.append(error("decision_malformed", cause, "collab show --folder {folder} --doc decisions.md", place))

        name = decision.id or f"D{index}"
        if decision.id is None:
            add("accepted decision headings must use D<number>")
        else:
            if name in seen:
                add(f"duplicate accepted decision id {name}")
            if name != f"D{index}":
                add("accepted decision ids must be sequential")
        seen.add(name)
        if "- Decision:" not in decision.body:
            add(f"accepted decision {name} requires Decision")
        if "- Reflected in:" not in decision.body:
            add(f"accepted decision {name} requires Reflected in")
        elif not decision.reflected_in(declared):
            add(f"accepted decision {name} Reflected in must point to declared deliverable")
    return found


def review_findings(declared: Deliverables, names: Collection[str | None], text: str) -> list[Finding]:
    """What every v2 review.md must declare once a review is in the log."""
    if "review_submitted" not in names:
        return []
    found: list[Finding] = []

    def add(cause: str) -> None:
        found.append(error("review_incomplete", cause, "collab show --folder {folder} --doc review.md", "review.md"))

    if not has_label(text, "Reviewed primary deliverable"):
        add("review.md must declare Reviewed primary deliverable")
    if not has_label(text, "Review Scope"):
        add("review.md must declare Review Scope")
    if "Primary deliverable completeness" not in text:
        add("review.md Review Scope must include Primary deliverable completeness")
    if declared.primary_ref not in text:
        add("review.md must reference the primary deliverable")
    return found
