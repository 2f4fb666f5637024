"""What a valid folder is: every error and warning of `collab validate`, pure (docs/specs/acp.md §3, §5)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from core.acp import deliverables
from core.acp.documents import Heading
from core.acp.model import (
    DELIVERABLE_EVENTS,
    DOCUMENTS,
    FORBIDDEN_FILES,
    LOG,
    PHASES,
    PROTOCOL,
    REQUIRED_FILES,
    Document,
    Event,
    Setup,
    State,
)
from core.acp.rules import Facts, Fold, completion_findings, readiness_findings
from core.clock import parse
from core.finding import Finding, error, warning

REPAIR = "collab repair --folder {folder}"


def setup_findings(setup: Setup) -> list[Finding]:
    """Field faults of protocol.json that both schemas share."""
    raw = setup.raw
    found: list[Finding] = []

    def add(code: str, cause: str) -> None:
        found.append(error(code, cause, None, PROTOCOL))

    if raw.get("currentPhase") not in PHASES:
        add("setup_invalid", f"currentPhase must be one of {', '.join(PHASES)}")
    if not isinstance(raw.get("objective"), str) or not setup.objective.strip():
        add("setup_invalid", "protocol.json objective must not be blank")
    if not setup.participants:
        add("setup_invalid", "protocol.json participants must not be empty")
    if not setup.gates:
        add("setup_invalid", "protocol.json completionGates must not be empty")
    for gate in setup.gates:
        for name in FORBIDDEN_FILES:
            if name in gate:
                add("gate_obsolete", f"completion gate must not reference obsolete file {name}")
    if setup.schema == 1 and "version" in raw:
        add("setup_invalid", "protocol.json must not include a protocol version field")
    for key in ("waitingFor", "proposalOwner"):
        if key not in raw:
            add("setup_invalid", f"protocol.json {key} must be present")
    return found


def shape_findings(setup: Setup, events: Sequence[Event]) -> list[Finding]:
    """Faults of single lines and of their order: seq, required fields, reply_to, at."""
    found: list[Finding] = []
    seen: set[int] = set()
    previous: datetime | None = None
    last_text, last_moment = "", None
    known = frozenset(setup.events)
    required = {"seq", "from", "event", "at", "summary"}
    for expected, event in enumerate(events, start=1):
        seq, raw = event.seq, event.raw
        trouble: list[tuple[str, str]] = []
        if seq != expected:
            trouble.append(("log_seq", f"events.jsonl: expected seq {expected}, found {raw.get('seq')}"))
        if not required <= raw.keys():
            for name in sorted(required - raw.keys()):
                trouble.append(("event_field_missing", f"seq {seq}: missing required field {name}"))
        if event.name not in known:
            trouble.append(("event_unknown", f"seq {seq}: unknown event {raw.get('event')!r}"))
        if event.name in DELIVERABLE_EVENTS and setup.schema >= 2:
            if event.role not in ("primary", "supporting"):
                trouble.append(("deliverable_role_missing", f"seq {seq}: deliverable events require role"))
            if event.doc is None:
                trouble.append(("deliverable_doc_missing", f"seq {seq}: deliverable events require doc"))
            if event.name == "deliverable_frozen" and not deliverables.valid_sha(raw.get("sha256")):
                trouble.append(("sha256_missing", f"seq {seq}: deliverable_frozen requires sha256"))
        reply = raw.get("reply_to")
        if reply is None:
            if event.name != "initialized":
                trouble.append(("reply_to_missing", f"seq {seq}: reply_to is required after initialized"))
        elif event.reply_to is None or event.reply_to not in seen:
            trouble.append(("reply_to_unknown", f"seq {seq}: reply_to must point to an earlier event"))
        if event.at is not None and event.at == last_text:
            moment = last_moment
        else:
            moment = parse(event.at)
            last_text, last_moment = event.at or "", moment
        if moment is None:
            trouble.append(("event_time_malformed", f"seq {seq}: at must be an ISO-8601 timestamp"))
        elif previous is not None and moment < previous:
            trouble.append(("event_time_back", f"seq {seq}: at must not be earlier than the previous event"))
        if moment is not None:
            previous = moment
        if seq is not None:
            seen.add(seq)
        for code, cause in trouble:
            found.append(error(code, cause, None, f"{LOG}#line {event.line}"))
    return found


def review_findings(headings: Sequence[Heading], events: Sequence[Event]) -> list[Finding]:
    """Each review needs exactly one heading, and each heading its review."""
    found: list[Finding] = []
    show = "collab show --folder {folder} --doc review.md"
    by_seq = {event.seq: event for event in events if event.seq is not None}
    named: dict[int, list[Heading]] = {}
    for item in headings:
        named.setdefault(item.seq, []).append(item)
    for event in events:
        if event.name == "review_submitted" and event.seq is not None and event.seq not in named:
            cause = f"seq {event.seq}: review_submitted requires matching review.md heading"
            found.append(error("review_heading_missing", cause, show, "review.md"))
    for seq, items in named.items():
        heading = items[-1]
        where = f"review.md#line {heading.line}"
        match = by_seq.get(seq)
        prefix = f"review.md heading seq {seq}: "
        if match is None:
            found.append(error("review_heading_orphan", f"{prefix}no matching event", show, where))
        elif match.name != "review_submitted":
            cause = f"{prefix}matching event is {match.name}, not review_submitted"
            found.append(error("review_heading_orphan", cause, show, where))
        else:
            for item in items:
                if item.participant != match.actor:
                    cause = f"{prefix}participant {item.participant!r} does not match event from {match.actor!r}"
                    found.append(error("review_heading_mismatch", cause, show, f"review.md#line {item.line}"))
            if len(items) > 1:
                cause = f"{prefix}stands {len(items)} times; exactly one is needed"
                found.append(error("review_heading_repeated", cause, show, where))
    return found


def projection_findings(setup: Setup, state: State) -> list[Finding]:
    """Where protocol.json disagrees with the log; the log is right."""
    if state.phase is None:
        return []
    found: list[Finding] = []
    for key, expected in (
        ("currentPhase", state.phase),
        ("proposalOwner", state.owner),
        ("waitingFor", list(state.waiting)),
    ):
        if key in setup.raw and expected is not None and setup.raw[key] != expected:
            cause = f"protocol.json {key} is {setup.raw[key]!r}, expected {expected!r}"
            found.append(error("projection_stale", cause, REPAIR, PROTOCOL))
    return found


def gate_findings(setup: Setup, events: Sequence[Event], facts: Facts) -> list[Finding]:
    """The documents against what the log already says: acceptance, readiness, completion."""
    names = {event.name for event in events}
    passed, completed = "readiness_passed" in names, "completed" in names
    found: list[Finding] = []
    if passed or completed:
        found += readiness_findings(facts.readiness, "readiness_passed or completed", tick=True)
        if setup.schema >= 2 and not any(e.name == "deliverable_frozen" and e.role == "primary" for e in events):
            found.append(error("freeze_missing", "readiness_passed requires primary deliverable_frozen", None, LOG))
    elif "decision_accepted" in names:
        found += readiness_findings(facts.readiness, "decision_accepted", tick=False)
    elif facts.readiness.without_reason:
        cause = "deferred_nonblocking readiness items should include a reason"
        line = facts.readiness.without_reason[0].line
        show = "collab show --folder {folder} --doc readiness.md"
        found.append(warning("readiness_reason_missing", cause, show, f"readiness.md#line {line}"))
    if completed:
        found += completion_findings(setup, facts)
    return found


def file_findings(present: Collection[str], documents: Sequence[Document]) -> list[Finding]:
    """Missing, forbidden and unreadable files."""
    found = [error("file_missing", f"missing {name}", None, name) for name in REQUIRED_FILES if name not in present]
    for name in FORBIDDEN_FILES:
        if name in present:
            cause = f"{name} is not part of the protocol; remove it and use events.jsonl/readiness.md instead"
            found.append(error("file_forbidden", cause, None, name))
    for document in documents:
        if document.name in present and document.problem is not None:
            found.append(document.problem)
        elif document.data is not None and not _utf8(document.data):
            found.append(error("document_not_utf8", f"{document.name} is not UTF-8", None, document.name))
    return found


def _utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def folder_findings(
    setup: Setup,
    events: Sequence[Event],
    folded: Fold,
    facts: Facts,
    present: Collection[str],
    repo_problem: str | None,
) -> list[Finding]:
    """Everything that `validate` says of a folder whose protocol.json could be read."""
    found = file_findings(present, [facts.document(name) for name in DOCUMENTS])
    found += setup_findings(setup)
    declared: list[Finding] = []
    if setup.schema >= 2:
        declared = deliverables.setup_findings(setup, repo_problem)
        found += declared
    found += shape_findings(setup, events)
    found += review_findings(facts.headings, events)
    if setup.schema >= 2:
        found += deliverables.log_findings(setup, events, facts.deliverable)
    found += folded.problems
    found += projection_findings(setup, folded.state)
    if setup.schema >= 2 and not declared:
        decisions, review = facts.document("decisions.md").text, facts.document("review.md").text
        found += deliverables.document_findings(setup, events, facts.deliverable, decisions, review)
    found += gate_findings(setup, events, facts)
    return found
