"""The state machine, pure: `evolve`, `decide` and what a valid log is (docs/specs/acp.md §2, §3).

`evolve` observes: it follows every event that somebody managed to write, as the reference does, and `judge`
says what was wrong with it. `decide` is strict. `{folder}` in a command stands for the quoted folder.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

from core.acp import deliverables
from core.acp.documents import Conclusion, Heading, Readiness, review_headings, scan_conclusion, scan_readiness
from core.acp.model import DELIVERABLE_EVENTS, PHASES, TERMINAL, Document, Draft, Event, Setup, State
from core.clock import parse, stamp
from core.finding import Finding, error

ALLOWED_FROM: dict[str, frozenset[str]] = {
    "proposal_submitted": frozenset({"drafting", "revising"}),
    "review_submitted": frozenset({"reviewing"}),
    "proposal_revised": frozenset({"revising"}),
    "decision_proposed": frozenset({"revising", "decision_review"}),
    "question_classified": frozenset({"decision_review"}),
    "decision_accepted": frozenset({"decision_review"}),
    "readiness_passed": frozenset({"readiness_check"}),
    "completed": frozenset({"readiness_check"}),
    "blocked": frozenset(PHASES) - TERMINAL,
    "deliverable_drafted": frozenset({"drafting", "revising", "decision_review"}),
    "deliverable_revised": frozenset({"revising", "decision_review"}),
    "deliverable_frozen": frozenset({"readiness_check"}),
}
"""The transition table's first column; who may and what follows is in `judge` and `evolve`."""

_ACT = {
    "proposal_submitted": "proposal submission",
    "review_submitted": "review submission",
    "proposal_revised": "proposal revision",
    "decision_proposed": "decision proposal",
    "question_classified": "question classification",
    "decision_accepted": "decision acceptance",
    "readiness_passed": "readiness pass",
    "completed": "completion",
    "deliverable_drafted": "deliverable draft",
    "deliverable_revised": "deliverable revision",
    "deliverable_frozen": "deliverable freeze",
}

T = TypeVar("T")

NEXT = "collab next --folder {folder} --participant {participant}"
SHOW = "collab show --folder {folder}"


class Scans:
    """What was read of the documents of a folder that is looked at again and again: mostly they are what they were."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Document, object, Any]] = {}

    def of(self, document: Document, scan: Callable[[str], T], key: object = None) -> T:
        """What `scan` makes of a text; a document is always scanned in one way. `key` is what else counts."""
        known = self._known.get(document.name)
        if known is None or known[:2] != (document, key):
            known = self._known[document.name] = (document, key, scan(document.text))
        made: T = known[2]
        return made


@dataclass(frozen=True)
class Facts:
    """What decisions may know of the documents, read only when a rule asks."""

    document: Callable[[str], Document]
    deliverable: Callable[[str], Document]
    setup: Setup
    scans: Scans = field(default_factory=Scans, compare=False)

    @cached_property
    def readiness(self) -> Readiness:
        return self.scans.of(self.document("readiness.md"), scan_readiness)

    @cached_property
    def conclusion(self) -> Conclusion:
        wanted = self.setup.conclusion_headings
        return self.scans.of(self.document("conclusion.md"), lambda text: scan_conclusion(text, wanted), wanted)

    @cached_property
    def headings(self) -> tuple[Heading, ...]:
        return self.scans.of(self.document("review.md"), review_headings)


def evolve(state: State, event: Event, setup: Setup) -> State:
    """The state after an event, whether or not the event was legal. Nothing follows a terminal event."""
    seq = event.seq if event.seq is not None else state.seq + 1
    if state.terminal:
        return state._replace(seq=max(state.seq, seq))
    owner = (state.owner,) if state.owner else ()
    match event.name:
        case "initialized":
            return State("drafting", event.actor, (event.actor,) if event.actor else (), seq)
        case "proposal_submitted":
            lead = event.actor or state.owner
            others = frozenset(name for name in setup.participants if name != lead)
            # `_replace` takes longer than everything else here, and a long log has many of these.
            return State("reviewing", lead, tuple(sorted(others)), seq, others, *state[5:])
        case "review_submitted":
            left = state.reviewing - {event.actor}
            waiting = tuple(sorted(left)) if left else owner
            return State("reviewing" if left else "revising", state.owner, waiting, seq, left, *state[5:])
        case "proposal_revised" | "decision_proposed":
            return state._replace(phase="decision_review", waiting=owner, input_seq=seq, classified_seq=0, seq=seq)
        case "question_classified":
            everyone = frozenset(setup.participants)
            return state._replace(
                phase="decision_review",
                waiting=tuple(sorted(everyone)),
                accepting=everyone,
                classified_seq=seq,
                seq=seq,
            )
        case "decision_accepted":
            left = state.accepting - {event.actor}
            return state._replace(
                phase="decision_review" if left else "readiness_check",
                waiting=tuple(sorted(left)) if left else owner,
                accepting=left,
                seq=seq,
            )
        case "readiness_passed":
            return state._replace(phase="readiness_check", waiting=owner, readiness_passed=True, seq=seq)
        case "completed" | "blocked":
            return state._replace(phase=event.name, waiting=(), terminal_seq=seq, seq=seq)
        case "deliverable_drafted" | "deliverable_revised" if event.role == "primary" and setup.schema >= 2:
            return state._replace(drafted=True, seq=seq)
        case "deliverable_frozen" if event.role == "primary" and setup.schema >= 2:
            return state._replace(frozen=True, seq=seq)
    return state._replace(seq=seq)


def expected_actors(state: State, name: str, setup: Setup) -> tuple[str, ...]:
    """Who may append this event in this state, sorted; what the phase allows is another question."""
    if name == "review_submitted":
        return tuple(sorted(state.reviewing))
    if name == "decision_accepted":
        return tuple(sorted(state.accepting))
    if name in ("blocked", "initialized"):
        return tuple(sorted(setup.participants))
    return (state.owner,) if state.owner else ()


def judge(state: State, event: Event, setup: Setup) -> list[Finding]:
    """What is wrong with an event in this state: phase, actor, order. Documents are not asked."""
    name, actor = event.name or "", event.actor
    if name not in setup.events:
        return [error("event_unknown", f"unknown event {name!r} in a schema {setup.schema} collaboration", SHOW)]
    found: list[Finding] = []
    if name == "initialized":
        if event.seq != 1 or state.phase is not None:
            found.append(error("initialized_not_first", "initialized must be seq 1", NEXT))
        if actor not in setup.participants:
            found.append(
                error("participant_unknown", f"initialized participant {actor!r} is not listed in protocol.json", SHOW)
            )
        return found
    if name in DELIVERABLE_EVENTS and event.role != "primary":
        # Supporting deliverables change no state; only the end of the folder stops them.
        if state.terminal or state.phase is None:
            return [_phase(name, state)]
        return []
    if actor not in setup.participants:
        found.append(error("participant_unknown", f"participant {actor!r} is not listed in protocol.json", SHOW))
    if name == "completed":
        if state.phase != "readiness_check" or not state.readiness_passed:
            found.append(error("readiness_not_passed", "completed requires a prior readiness_passed event", NEXT))
        if event.doc != "conclusion.md":
            found.append(error("completed_doc_wrong", "completed must reference conclusion.md", NEXT))
    elif name == "deliverable_revised" and state.frozen:
        found.append(error("revised_after_freeze", "deliverable_revised is not allowed after deliverable_frozen", NEXT))
    elif name == "deliverable_frozen" and state.frozen:
        found.append(error("freeze_repeated", "primary deliverable can be frozen only once", NEXT))
    if name != "completed" and state.phase not in ALLOWED_FROM[name]:
        found.append(_phase(name, state))
    if name == "proposal_submitted":
        if setup.schema >= 2 and not state.drafted:
            cause = "proposal_submitted requires prior primary deliverable_drafted"
            found.append(error("draft_missing", cause, NEXT))
        if not any(item != (state.owner or actor) for item in setup.participants):
            cause = "proposal_submitted requires at least one reviewer"
            found.append(error("reviewer_missing", cause, SHOW))
    if name == "decision_accepted" and state.input_seq and state.classified_seq <= state.input_seq:
        cause = "decision_accepted requires question_classified after the latest proposal or decision"
        found.append(error("classification_missing", cause, NEXT))
    if name == "readiness_passed" and setup.schema >= 2 and not state.frozen:
        found.append(error("freeze_missing", "readiness_passed requires primary deliverable_frozen", NEXT))
    if name != "blocked":
        turn = name in ("review_submitted", "decision_accepted")
        waited: Collection[str | None] = state.reviewing if name == "review_submitted" else state.accepting
        if actor not in waited if turn else state.owner is not None and actor != state.owner:
            expected = ", ".join(expected_actors(state, name, setup)) or "no participant"
            found.append(error("actor_not_expected", f"{_ACT[name]} is reserved for {expected}; got {actor}", NEXT))
    return found


def _phase(name: str, state: State) -> Finding:
    phase = state.phase or "none (initialized comes first)"
    if state.terminal:
        cause = f"{name} is not allowed from phase {phase}: nothing follows {phase}; continue in a new round"
        return error("phase_terminal", cause, "collab new-round --from {folder} --folder {folder}-2")
    return error("phase_not_allowed", f"{name} is not allowed from phase {phase}", NEXT)


@dataclass(frozen=True, slots=True)
class Fold:
    """A log folded: the state, and the problems of each illegal event."""

    state: State
    problems: tuple[Finding, ...]


def fold(setup: Setup, events: Sequence[Event], state: State | None = None) -> Fold:
    """Fold a log, or go on from a state. Problems carry `seq N:` and the line they stand on."""
    state = state or State()
    problems: list[Finding] = []
    for event in events:
        for item in judge(state, event, setup):
            # An event that nobody knows is a fault of shape (`shape_findings`), not of order.
            if item.code != "event_unknown":
                problems.append(_at(item, event))
        state = evolve(state, event, setup)
    return Fold(state, tuple(problems))


def _at(item: Finding, event: Event) -> Finding:
    code = "event_after_terminal" if item.code == "phase_terminal" else item.code
    cause = f"seq {event.seq}: {item.cause}"
    return Finding(code, "error", cause, None, f"events.jsonl#line {event.line}")


def readiness_findings(scan: Readiness, before: str, tick: bool) -> list[Finding]:
    """Open items of readiness.md that stop `before`; with `tick` the Ready line is wanted too."""
    found: list[Finding] = []
    edit = "collab show --folder {folder} --doc readiness.md"
    if scan.blocking:
        where = f"readiness.md#line {scan.blocking[0].line}"
        cause = f"blocking readiness items must be cleared before {before} ({len(scan.blocking)})"
        found.append(error("readiness_blocking", cause, edit, where))
    if scan.unresolved:
        where = f"readiness.md#line {scan.unresolved[0].line}"
        cause = f"unresolved readiness questions must be classified before {before} ({len(scan.unresolved)})"
        found.append(error("readiness_unresolved", cause, edit, where))
    if scan.without_reason:
        where = f"readiness.md#line {scan.without_reason[0].line}"
        cause = f"deferred_nonblocking readiness items require a reason before {before} ({len(scan.without_reason)})"
        found.append(error("readiness_reason_missing", cause, edit, where))
    if tick and not scan.ready:
        cause = f"readiness.md must check 'Ready to implement' before {before}"
        found.append(error("readiness_not_ticked", cause, edit, "readiness.md"))
    return found


def open_gates(setup: Setup, scan: Readiness) -> list[str]:
    """Completion gates that are not ticked on a line of their own."""
    return [gate for gate in setup.gates if not scan.gate_ticked(gate)]


def completion_findings(setup: Setup, facts: Facts) -> list[Finding]:
    """What `completed` still needs of readiness.md's gates and of conclusion.md."""
    found: list[Finding] = []
    if missing := open_gates(setup, facts.readiness):
        cause = "completion gates must be checked before completed: " + ", ".join(missing)
        found.append(error("gates_unticked", cause, "collab show --folder {folder} --doc readiness.md", "readiness.md"))
    return found + conclusion_findings(setup, facts.conclusion)


def conclusion_findings(setup: Setup, scan: Conclusion) -> list[Finding]:
    """What conclusion.md still lacks for `completed`."""
    found: list[Finding] = []
    edit, where = "collab show --folder {folder} --doc conclusion.md", "conclusion.md"
    if scan.missing:
        cause = "conclusion.md is missing required sections: " + ", ".join(scan.missing)
        found.append(error("conclusion_section_missing", cause, edit, where))
    if len(scan.outcomes) != 1:
        cause = f"conclusion.md must declare exactly one final outcome; it has {len(scan.outcomes)}"
        found.append(error("conclusion_outcome_count", cause, edit, where))
    elif scan.outcomes[0][0] == "blocked":
        cause = "conclusion.md outcome cannot be completed while blocked"
        found.append(error("conclusion_outcome_blocked", cause, edit, where))
    if scan.placeholders:
        cause = f"conclusion.md must not contain unresolved placeholders before completed: {scan.placeholders[0]}"
        found.append(error("conclusion_placeholder", cause, edit, where))
    declared = setup.deliverables
    if declared is not None and declared.primary_ref not in scan.text:
        cause = f"conclusion.md must reference the primary deliverable {declared.primary_ref}"
        found.append(error("conclusion_reference_missing", cause, edit, where))
    return found


def decide(
    state: State,
    setup: Setup,
    events: Sequence[Event],
    draft: Draft,
    facts: Facts,
    now: datetime,
    seq: int | None = None,
) -> tuple[Event | None, list[Finding]]:
    """The event that this draft becomes, or every reason why not (docs/specs/acp.md §2, §3, §7).

    `at` is the present moment, lifted to the last event's when the clock is behind. `seq` is the next one, for whoever
    knows it.
    """
    seq = next_seq(events) if seq is None else seq
    event = Event.read(record(draft, seq, stamp(now)))
    found = _draft_findings(setup, events, draft)
    if found:
        return None, _for(found, draft)
    if draft.event in DELIVERABLE_EVENTS:
        first = deliverables.reference_finding(setup, event, facts.deliverable)
        if first is not None:
            return None, _for([first], draft)
    found = judge(state, event, setup)
    if draft.event == "decision_accepted":
        found += readiness_findings(facts.readiness, draft.event, tick=False)
    elif draft.event in ("readiness_passed", "completed"):
        found += readiness_findings(facts.readiness, draft.event, tick=True)
    if draft.event == "completed":
        found += completion_findings(setup, facts)
    if draft.event == "review_submitted":
        found += _heading_conflict(facts.headings, seq, draft.participant)
    if draft.event == "deliverable_frozen" and not found:
        found += deliverables.freeze_findings(setup, event, facts.deliverable)
    if found:
        return None, _for(found, draft)
    at = latest_at(events, now)
    return Event.read(record(draft, seq, at)), []


def turn_findings(state: State, setup: Setup, events: Sequence[Event], draft: Draft) -> list[Finding]:
    """Why this draft cannot be appended now, whatever the documents say."""
    found = _draft_findings(setup, events, draft)
    if not found:
        found = judge(state, Event.read(record(draft, state.seq + 1, "")), setup)
    return _for(found, draft)


def next_seq(events: Sequence[Event]) -> int:
    """One more than the highest seq in the log; a log without gaps need not be searched for it."""
    if events and events[-1].seq == len(events):
        return len(events) + 1
    return max((event.seq for event in events if event.seq is not None), default=0) + 1


def latest_at(events: Sequence[Event], now: datetime) -> str:
    """The `at` of an event written now, in whole seconds: never earlier than the latest time in the log."""
    last = next((moment for event in reversed(events) if (moment := parse(event.at)) is not None), None)
    return stamp(now) if last is None or last <= now.replace(microsecond=0) else _exact(last)


def _exact(moment: datetime) -> str:
    text = stamp(moment)
    return text if moment.microsecond == 0 else moment.isoformat().replace("+00:00", "Z")


def record(draft: Draft, seq: int, at: str) -> dict[str, Any]:
    """The JSON object of an event, keys in the reference's order."""
    made: dict[str, Any] = {
        "seq": seq,
        "from": draft.participant,
        "event": draft.event,
        "at": at,
        "summary": draft.summary,
    }
    for key, value in (
        ("doc", draft.doc or None),
        ("reply_to", draft.reply_to),
        ("role", draft.role or None),
        ("sha256", draft.sha256 or None),
    ):
        if value is not None:
            made[key] = value
    return made


def _draft_findings(setup: Setup, events: Sequence[Event], draft: Draft) -> list[Finding]:
    if draft.event not in setup.events:
        cause = f"unknown event {draft.event!r} in a schema {setup.schema} collaboration"
        return [error("event_unknown", cause, SHOW, "--event")]
    if draft.participant not in setup.participants:
        cause = f"participant {draft.participant!r} is not listed in protocol.json"
        return [error("participant_unknown", cause, SHOW, "--participant")]
    if not draft.summary.strip():
        return [error("summary_blank", "the summary is blank; one short sentence is needed", NEXT, "--summary")]
    if draft.reply_to is None:
        if events:
            cause = f"reply_to is required after initialized; the latest event is seq {events[-1].seq}"
            return [error("reply_to_missing", cause, "collab log --folder {folder}", "--reply-to")]
    elif not any(event.seq == draft.reply_to for event in reversed(events)):
        cause = f"reply_to must point to an existing event; there is no seq {draft.reply_to}"
        return [error("reply_to_unknown", cause, "collab log --folder {folder}", "--reply-to")]
    return []


def _heading_conflict(headings: Sequence[Heading], seq: int, participant: str) -> list[Finding]:
    standing = [item for item in headings if item.seq == seq]
    if not standing or any(item.participant == participant for item in standing):
        return []
    first = standing[0]
    cause = f"review.md heading seq {seq}: participant {first.participant!r} does not match event from {participant!r}"
    show = "collab show --folder {folder} --doc review.md"
    return [error("review_heading_mismatch", cause, show, f"review.md#line {first.line}")]


def quoted(text: str) -> str:
    """One word of a command; a text that holds `{folder}` itself is not filled in by whoever fills in the folder."""
    return shlex.quote(text).replace("{folder}", "{''folder}")


def _for(found: Sequence[Finding], draft: Draft) -> list[Finding]:
    who = quoted(draft.participant)
    return [
        replace(item, next_command=item.next_command.replace("{participant}", who)) if item.next_command else item
        for item in found
    ]
