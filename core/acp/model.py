"""What is on disk in a collaboration folder (docs/specs/acp.md §1, §2, §7).

These types observe: whatever an agent wrote is kept in `raw`, and a field of the wrong type reads as None.
They are plain immutable types because agents pay for every import of a one-shot verb: building pydantic
models costs more time than everything else such a verb does (docs/design.md §6, first row).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from core.finding import Finding, error
from core.journal import too_deep

PROTOCOL: Final = "protocol.json"
LOG: Final = "events.jsonl"
DOCUMENTS: Final = ("proposal.md", "review.md", "decisions.md", "readiness.md", "conclusion.md")
REQUIRED_FILES: Final = (PROTOCOL, LOG, *DOCUMENTS)
FORBIDDEN_FILES: Final = ("state.log", "discussion.md", "opinions.md")

PHASES: Final = ("drafting", "reviewing", "revising", "decision_review", "readiness_check", "completed", "blocked")
TERMINAL: Final = frozenset({"completed", "blocked"})

EVENTS_V1: Final = (
    "initialized",
    "proposal_submitted",
    "review_submitted",
    "proposal_revised",
    "question_classified",
    "decision_proposed",
    "decision_accepted",
    "readiness_passed",
    "completed",
    "blocked",
)
DELIVERABLE_EVENTS: Final = ("deliverable_drafted", "deliverable_revised", "deliverable_frozen")
EVENTS_V2: Final = (*EVENTS_V1, *DELIVERABLE_EVENTS)

SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "adr": ("Status", "Context", "Decision", "Alternatives Considered", "Consequences", "Follow-ups"),
    "design-spec": (
        "Problem",
        "Goals",
        "Non-goals",
        "Proposed Design",
        "Interfaces / Contracts",
        "Failure Modes",
        "Validation Plan",
        "Open Questions",
    ),
    "implementation-plan": (
        "Scope",
        "Phases",
        "Tasks",
        "Dependencies",
        "Rollout / Migration",
        "Tests",
        "Risks",
        "Exit Criteria",
    ),
    "decision-memo": ("Question", "Recommendation", "Options", "Tradeoffs", "Decision", "Next Action"),
    "review-report": ("Scope", "Findings", "Risks", "Required Changes", "Open Questions", "Recommendation"),
    "test-plan": ("Scope", "Test Matrix", "Fixtures", "Automation", "Manual Tests", "Exit Criteria"),
}
DELIVERABLE_TYPES: Final = (*SECTIONS, "custom")

CONCLUSION_V1: Final = (
    "Decision Outcome",
    "Rationale",
    "Accepted Decisions",
    "Implementation Approach",
    "Assumptions",
    "Deferred Follow-ups",
    "Implementation Blockers",
    "Next Action",
)
CONCLUSION_V2: Final = (
    "Decision Outcome",
    "Rationale",
    "Deliverable Receipt",
    "Accepted Decisions Summary",
    "Readiness Result",
    "Assumptions",
    "Deferred Follow-ups",
    "Implementation Blockers",
    "Next Action",
)


_EXACT = 1 << 53
"""Integers beyond it cannot be counted on, nor printed: JSON's may have thousands of digits."""


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


class Event(NamedTuple):
    """One line of events.jsonl. `line` is its number in the file (0 for an event that is not written yet)."""

    seq: int | None
    actor: str | None
    name: str | None
    at: str | None
    summary: str | None
    doc: str | None
    reply_to: int | None
    role: str | None
    sha256: str | None
    raw: Mapping[str, Any]
    line: int = 0

    @classmethod
    def read(cls, raw: Mapping[str, Any], line: int = 0) -> Event:
        """Observe a record; never fails."""
        get = raw.get
        actor, name, at, summary = get("from"), get("event"), get("at"), get("summary")
        doc, role, digest = get("doc"), get("role"), get("sha256")
        seq, reply = get("seq"), get("reply_to")
        # A hot path: ten thousand events are read at a blow, so the checks stand inline.
        return cls(
            seq if type(seq) is int and -_EXACT < seq < _EXACT else None,
            actor if type(actor) is str else None,
            name if type(name) is str else None,
            at if type(at) is str else None,
            summary if type(summary) is str else None,
            doc if type(doc) is str else None,
            reply if type(reply) is int and -_EXACT < reply < _EXACT else None,
            role if type(role) is str else None,
            digest if type(digest) is str else None,
            raw,
            line,
        )


@dataclass(frozen=True, slots=True)
class Deliverable:
    """A declared Markdown deliverable; `file` is relative to the deliverables folder."""

    type: str
    file: str
    checklist: tuple[str, ...] = ()
    frozen: bool = False

    @property
    def sections(self) -> tuple[str, ...]:
        """The `##` headings that the file must hold."""
        return self.checklist if self.type == "custom" else SECTIONS.get(self.type, ())


@dataclass(frozen=True, slots=True)
class Deliverables:
    """`deliverables` of a v2 protocol.json, as far as it is well formed."""

    mode: str
    dir: str
    repo_root: str | None
    primary: Deliverable
    supporting: tuple[Deliverable, ...]
    attachments: tuple[str, ...]

    def ref(self, file: str) -> str:
        """How events and documents name a deliverable."""
        if self.mode == "external":
            return f"external:{file}"
        parts = [part for part in f"{self.dir}/{file}".split("/") if part not in ("", ".")]
        return "/".join(parts)

    @property
    def primary_ref(self) -> str:
        return self.ref(self.primary.file)

    def find(self, ref: str) -> Deliverable | None:
        """The deliverable declared under this reference."""
        return next((item for item in (self.primary, *self.supporting) if self.ref(item.file) == ref), None)


@dataclass(frozen=True, slots=True)
class Setup:
    """protocol.json as read: what was agreed at the start, and the projection that was written last."""

    schema: int
    objective: str
    participants: tuple[str, ...]
    gates: tuple[str, ...]
    deliverables: Deliverables | None
    raw: Mapping[str, Any] = field(repr=False)

    @property
    def events(self) -> tuple[str, ...]:
        return EVENTS_V2 if self.schema >= 2 else EVENTS_V1

    @property
    def conclusion_headings(self) -> tuple[str, ...]:
        return CONCLUSION_V2 if self.schema >= 2 else CONCLUSION_V1

    @property
    def created_at(self) -> str:
        return _text(self.raw.get("createdAt")) or ""


def _deliverable(raw: object) -> Deliverable:
    item = raw if isinstance(raw, dict) else {}
    checks = item.get("checklist")
    return Deliverable(
        _text(item.get("type")) or "",
        _text(item.get("file")) or "",
        tuple(text.strip() for text in checks if isinstance(text, str) and text.strip())
        if isinstance(checks, list)
        else (),
        bool(item.get("frozen")),
    )


def _deliverables(raw: Mapping[str, Any]) -> Deliverables | None:
    item = raw.get("deliverables")
    if not isinstance(item, dict) or not isinstance(item.get("primary"), dict):
        return None
    supporting, attachments = item.get("supporting"), item.get("attachments")
    return Deliverables(
        _text(item.get("mode")) or "internal",
        _text(item.get("dir")) or "deliverables",
        _text(raw.get("repoRoot")),
        _deliverable(item["primary"]),
        tuple(_deliverable(one) for one in supporting if isinstance(one, dict)) if isinstance(supporting, list) else (),
        tuple(one["file"] for one in attachments if isinstance(one, dict) and isinstance(one.get("file"), str))
        if isinstance(attachments, list)
        else (),
    )


def read_setup(data: bytes) -> tuple[Setup | None, Finding | None]:
    """protocol.json as a Setup, or why it is none. Field faults are `rules.setup_findings`."""
    if too_deep(data):
        return None, error("json_too_deep", f"invalid {PROTOCOL}: nested too deeply", where=PROTOCOL)
    try:
        raw = json.loads(data.decode("utf-8"))
    except UnicodeDecodeError:
        return None, error("json_malformed", f"invalid {PROTOCOL}: not UTF-8", where=PROTOCOL)
    except RecursionError:
        return None, error("json_too_deep", f"invalid {PROTOCOL}: nested too deeply", where=PROTOCOL)
    except ValueError as exc:
        reason = str(exc).splitlines()[0][:120]
        return None, error("json_malformed", f"invalid {PROTOCOL}: {reason}", where=PROTOCOL)
    if not isinstance(raw, dict):
        return None, error("json_not_object", f"invalid {PROTOCOL}: it must hold a JSON object", where=PROTOCOL)
    names: list[str] = []
    people = raw.get("participants")
    for item in people if isinstance(people, list) else ():
        name = item if isinstance(item, str) else item.get("id") if isinstance(item, dict) else None
        if isinstance(name, str):
            names.append(name)
    gates: list[str] = []
    listed = raw.get("completionGates")
    for item in listed if isinstance(listed, list) else ():
        text = item.get("text") if isinstance(item, dict) else item
        if isinstance(text, str):
            gates.append(text)
    schema = 2 if "schemaVersion" in raw else 1
    return (
        Setup(
            schema,
            _text(raw.get("objective")) or "",
            tuple(names),
            tuple(gates),
            _deliverables(raw) if schema == 2 else None,
            raw,
        ),
        None,
    )


class State(NamedTuple):
    """The projection of the log (docs/specs/acp.md §2): everything that later events can depend on.

    `input_seq` is the latest proposal_revised or decision_proposed, `classified_seq` the latest
    question_classified not made void by one, `terminal_seq` the completed or blocked that ended the folder.
    """

    phase: str | None = None
    owner: str | None = None
    waiting: tuple[str, ...] = ()
    seq: int = 0
    reviewing: frozenset[str] = frozenset()
    accepting: frozenset[str] = frozenset()
    input_seq: int = 0
    classified_seq: int = 0
    readiness_passed: bool = False
    drafted: bool = False
    frozen: bool = False
    terminal_seq: int | None = None

    @property
    def terminal(self) -> bool:
        return self.terminal_seq is not None


@dataclass(frozen=True, slots=True)
class Draft:
    """An event that somebody wants to append. `reply_to` None on a non-empty log is refused, as the reference does."""

    participant: str
    event: str
    summary: str
    doc: str | None = None
    reply_to: int | None = None
    role: str | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """A document as read. `data` is None when it is missing or unreadable, `problem` then says why."""

    name: str
    data: bytes | None
    sha256: str | None
    problem: Finding | None = None

    @property
    def text(self) -> str:
        """Its text with `\\n` line ends; undecodable bytes become U+FFFD; empty when there is none."""
        if self.data is None:
            return ""
        return self.data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
