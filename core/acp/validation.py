"""What a valid folder is: every error and warning of `collab validate`, pure (docs/specs/acp.md §3, §5)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from core.acp import deliverables
from core.acp.ledger import Ledger
from core.acp.model import (
    DOCUMENTS,
    FORBIDDEN_FILES,
    LOG,
    PHASES,
    PROTOCOL,
    REQUIRED_FILES,
    Document,
    Setup,
    State,
)
from core.acp.rules import SHOW, Facts, Fold, completion_findings, readiness_findings
from core.finding import Finding, error, warning

REPAIR = "collab repair --folder {folder}"


@dataclass(frozen=True, slots=True)
class Report:
    """What validation says, in its order. `lines` are as many as the log has faults: errors all, no two equal, and
    their commands name the folder; what the state machine says of the log comes behind `between`.
    """

    before: list[Finding]
    lines: tuple[Collection[Finding], ...]
    between: list[Finding]
    after: list[Finding]


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


def projection_findings(setup: Setup, state: State) -> list[Finding]:
    """Where protocol.json disagrees with the log; the log is right. Before `initialized` nobody is waited for."""
    if state.phase is None:
        return _before_the_start(setup)
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


def _before_the_start(setup: Setup) -> list[Finding]:
    """As the reference has it: without `initialized` only `waitingFor` follows from the log. No mend helps here."""
    if "waitingFor" not in setup.raw or setup.raw["waitingFor"] == []:
        return []
    cause = f"protocol.json waitingFor is {setup.raw['waitingFor']!r}, expected []; {LOG} has no initialized event"
    return [error("projection_stale", cause, SHOW, PROTOCOL)]


def gate_findings(setup: Setup, ledger: Ledger, facts: Facts) -> list[Finding]:
    """The documents against what the log already says: acceptance, readiness, completion."""
    names = ledger.names
    passed, completed = "readiness_passed" in names, "completed" in names
    found: list[Finding] = []
    if passed or completed:
        found += readiness_findings(facts.readiness, "readiness_passed or completed", tick=True)
        if setup.schema >= 2 and not ledger.primary_frozen:
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
    ledger: Ledger,
    folded: Fold,
    facts: Facts,
    present: Collection[str],
    repo_problem: str | None,
) -> Report:
    """Everything that `validate` says of a folder whose protocol.json could be read."""
    before = file_findings(present, [facts.document(name) for name in DOCUMENTS])
    before += setup_findings(setup)
    declared: list[Finding] = []
    if setup.schema >= 2:
        declared = deliverables.setup_findings(setup, repo_problem)
        before += declared
    between: list[Finding] = []
    if setup.schema >= 2:
        between = deliverables.log_findings(setup, ledger.deliverables, facts.deliverable)
    after = projection_findings(setup, folded.state)
    if setup.schema >= 2 and not declared:
        decisions, review = facts.document("decisions.md").text, facts.document("review.md").text
        after += deliverables.document_findings(
            setup, ledger.names, ledger.frozen, facts.deliverable, decisions, review
        )
    after += gate_findings(setup, ledger, facts)
    return Report(before, (ledger.shape, ledger.reviews(facts.headings)), between, after)
