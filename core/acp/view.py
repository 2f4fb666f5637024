"""Projections for people: next action, gates, what may be done, what changes (docs/specs/acp.md §5, console.md §2)."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from core.acp.deliverables import frozen_refs
from core.acp.history import DELIVERABLE_PHASES, EDITABLE
from core.acp.model import DELIVERABLE_EVENTS, PHASES, Draft, Event, Setup, State
from core.acp.reader import Snapshot, locate
from core.acp.rules import conclusion_findings, decide, expected_actors, next_seq, quoted
from core.acp.vocabulary import say
from core.clock import parse
from core.finding import Finding

DEFAULTS: dict[str, tuple[str, str | None]] = {
    "initialized": ("Collaboration initialized.", "protocol.json"),
    "proposal_submitted": ("Proposal submitted for review.", "proposal.md"),
    "review_submitted": ("Review submitted.", "review.md"),
    "proposal_revised": ("Proposal revised after review.", "proposal.md"),
    "question_classified": ("Open questions classified.", "readiness.md"),
    "decision_proposed": ("Decisions proposed.", "decisions.md"),
    "decision_accepted": ("Decisions accepted.", "decisions.md"),
    "readiness_passed": ("Readiness checked and passed.", "readiness.md"),
    "completed": ("Collaboration concluded.", "conclusion.md"),
    "blocked": ("Collaboration blocked.", None),
    "deliverable_drafted": ("Primary deliverable drafted.", None),
    "deliverable_revised": ("Primary deliverable revised.", None),
    "deliverable_frozen": ("Primary deliverable frozen.", None),
}
"""A sensible summary and the usual document of each event."""

VERBS: dict[str, str] = {
    "proposal_submitted": "submit",
    "review_submitted": "review",
    "proposal_revised": "revise",
    "question_classified": "classify",
    "decision_proposed": "propose",
    "decision_accepted": "accept",
    "readiness_passed": "ready",
    "completed": "complete",
    "blocked": "block",
    "deliverable_drafted": "draft",
    "deliverable_revised": "draft",
    "deliverable_frozen": "freeze",
}
"""The guided verb that writes an event together with its document."""


@dataclass(frozen=True, slots=True)
class NextAction:
    """What a participant does next. `event` is None when there is nothing to append but to wait or stop."""

    text: str
    event: str | None
    command: str | None

    @property
    def mine(self) -> bool:
        return self.event is not None


def next_action(snapshot: Snapshot, participant: str) -> NextAction:
    """The one next action (docs/specs/acp.md §5), answered from the log, never from the projection."""
    setup, state = snapshot.setup, snapshot.state
    if setup is None or state.phase is None:
        if setup is not None and not snapshot.events and participant in setup.participants:
            return _act("append initialized; the log is empty.", "initialized", snapshot, participant)
        return NextAction("run collab validate; current phase is invalid.", None, None)
    mine = participant in state.waiting
    match state.phase:
        case "completed":
            return NextAction("stop; collaboration is complete.", None, None)
        case "blocked":
            folder = shlex.quote(str(snapshot.path))
            command = f"collab new-round --from {folder} --folder {shlex.quote(f'{snapshot.path}-2')}"
            return NextAction("resolve the blocker or start a new collaboration round.", None, command)
        case "drafting" if mine:
            return _drafting(snapshot, setup, state, participant)
        case "drafting":
            return NextAction("wait for the proposal owner to submit the proposal.", None, None)
        case "reviewing" if mine:
            if setup.schema >= 2:
                text = (
                    "review proposal.md and the primary deliverable, update review.md with Review Scope, "
                    "then append review_submitted."
                )
            else:
                text = "append a structured review to review.md, then append review_submitted."
            return _act(text, "review_submitted", snapshot, participant)
        case "reviewing" if participant == state.owner:
            keep = (
                "do not edit proposal.md or deliverables while reviewing"
                if setup.schema >= 2
                else "do not edit proposal.md, decisions.md, readiness.md, or protocol.json"
            )
            text = f"wait for the listed reviewer(s); {keep} unless blocking the collaboration."
            return NextAction(text, None, None)
        case "reviewing":
            text = "wait for the listed reviewer(s) to submit review_submitted or blocked."
            return NextAction(text, None, None)
        case "revising" if mine:
            if setup.schema >= 2:
                text = (
                    "revise proposal.md and deliverables as needed, append deliverable_revised if the deliverable "
                    "changed, then append proposal_revised."
                )
            else:
                text = "revise proposal.md, address required changes, then append proposal_revised."
            return _act(text, "proposal_revised", snapshot, participant)
        case "revising":
            return NextAction("wait for the proposal owner to revise.", None, None)
        case "decision_review":
            return _deciding(snapshot, state, participant, mine)
    if not mine:
        return NextAction("wait for the proposal owner to pass readiness and conclude.", None, None)
    return _closing(snapshot, setup, state, participant)


def _act(text: str, event: str, snapshot: Snapshot, participant: str) -> NextAction:
    return NextAction(text, event, command_for(snapshot, participant, event))


def command_for(snapshot: Snapshot, participant: str, event: str) -> str:
    """The command line that appends this event now, guided where there is a guided verb."""
    folder, who = quoted(str(snapshot.path)), quoted(participant)
    if event in VERBS:
        return f"collab {VERBS[event]} --folder {folder} --as {who}"
    draft = default_draft(snapshot, participant, event)
    return append_command(snapshot.path, draft)


def append_command(path: Path, draft: Draft) -> str:
    """`collab append …` for exactly this draft."""
    words = ["collab", "append", "--folder", str(path), "--participant", draft.participant, "--event", draft.event]
    words += ["--summary", draft.summary]
    for flag, value in (
        ("--doc", draft.doc),
        ("--reply-to", None if draft.reply_to is None else str(draft.reply_to)),
        ("--role", draft.role),
        ("--sha256", draft.sha256),
    ):
        if value is not None:
            words += [flag, value]
    return " ".join(shlex.quote(word) for word in words)


def _drafting(snapshot: Snapshot, setup: Setup, state: State, participant: str) -> NextAction:
    if setup.schema >= 2 and not state.drafted:
        text = (
            "draft the primary deliverable, append deliverable_drafted, update proposal.md, "
            "then append proposal_submitted."
        )
        return _act(text, "deliverable_drafted", snapshot, participant)
    text = "update proposal.md, then append proposal_submitted."
    return _act(text, "proposal_submitted", snapshot, participant)


def _deciding(snapshot: Snapshot, state: State, participant: str, mine: bool) -> NextAction:
    if mine and state.classified_seq <= state.input_seq:
        text = (
            "record accepted decisions in decisions.md, classify every question in readiness.md, "
            "then append question_classified."
        )
        return _act(text, "question_classified", snapshot, participant)
    if mine:
        if not snapshot.facts.readiness.clean:
            text = "wait until readiness.md has no blocking, unresolved or unexplained item, then accept or block."
            if participant == state.owner:
                text = "classify readiness.md questions and clear blockers, then append question_classified again."
                return _act(text, "question_classified", snapshot, participant)
            return NextAction(text, None, None)
        text = "review decisions.md and append decision_accepted only if decisions are explicit."
        return _act(text, "decision_accepted", snapshot, participant)
    return NextAction("wait for remaining participants to accept decisions.", None, None)


def _closing(snapshot: Snapshot, setup: Setup, state: State, participant: str) -> NextAction:
    readiness = snapshot.facts.readiness
    before = "completed" if state.readiness_passed else "readiness_passed"
    if not readiness.clean:
        text = f"classify readiness.md questions and clear blockers before {before}."
        return _act(text, before, snapshot, participant)
    if setup.schema >= 2 and not state.frozen:
        text = (
            "freeze the primary deliverable with deliverable_frozen, run collab validate, then append readiness_passed."
        )
        return _act(text, "deliverable_frozen", snapshot, participant)
    if not readiness.ready:
        text = "complete the final design checklist in readiness.md."
        return _act(text, before, snapshot, participant)
    if not state.readiness_passed:
        text = "run collab validate, then append readiness_passed."
        return _act(text, "readiness_passed", snapshot, participant)
    if conclusion_findings(setup, snapshot.facts.conclusion):
        receipt = "deliverable receipt, readiness result" if setup.schema >= 2 else "rationale, implementation approach"
        text = f"write conclusion.md with the final outcome, {receipt}, and next action."
        return _act(text, "completed", snapshot, participant)
    return _act(
        "run collab validate, then append completed with doc=conclusion.md.", "completed", snapshot, participant
    )


def default_draft(snapshot: Snapshot, participant: str, event: str) -> Draft:
    """A draft of this event with summary, document, reply and role filled in as they usually are."""
    usual, doc = DEFAULTS.get(event, (event, None))
    last = snapshot.last()
    declared = snapshot.setup.deliverables if snapshot.setup is not None else None
    role = sha = None
    if event in DELIVERABLE_EVENTS and declared is not None:
        role, doc = "primary", declared.primary_ref
        if event == "deliverable_frozen":
            sha = snapshot.document(doc).sha256
    summary = said(snapshot, usual)
    return Draft(participant, event, summary, doc, last.seq if last is not None else None, role, sha)


def said(snapshot: Snapshot, phrase: str, **places: str) -> str:
    """A sentence of ours in the folder's language, its places in capitals filled."""
    text = say(snapshot.language, phrase)
    for place, value in places.items():
        text = text.replace(place, value)
    return text


@dataclass(frozen=True, slots=True)
class Option:
    """An event that a participant may or may not append now. `reasons` is empty exactly when it is legal."""

    draft: Draft
    reasons: tuple[Finding, ...]
    effect: str

    @property
    def legal(self) -> bool:
        return not self.reasons


def options(snapshot: Snapshot, participant: str, now: datetime) -> list[Option]:
    """Every event of the schema, legal ones first, each with the reason that `decide` gives."""
    setup = snapshot.setup
    if setup is None:
        return []
    made, seq = [], next_seq(snapshot.events)
    for name in setup.events:
        if name == "initialized" and snapshot.events:
            continue
        draft = default_draft(snapshot, participant, name)
        event, found = decide(snapshot.state, setup, snapshot.events, draft, snapshot.facts, now, seq)
        reasons = tuple(locate(item, snapshot.path) for item in found)
        made.append(Option(draft, reasons, "" if event is None else effect(snapshot, event)))
    return sorted(made, key=lambda option: not option.legal)


def effect(snapshot: Snapshot, event: Event) -> str:
    """`reviewing → revising, then waiting for server`."""
    from core.acp.rules import evolve

    if snapshot.setup is None:
        return ""
    before, after = snapshot.state, evolve(snapshot.state, event, snapshot.setup)
    return describe_effect(before, after)


def describe_effect(before: State, after: State) -> str:
    """Phase change and who is waited for, in one phrase."""
    phases = f"{before.phase} → {after.phase}" if before.phase != after.phase else f"stays in {after.phase}"
    if before.phase is None:
        phases = f"→ {after.phase}"
    return f"{phases}, then waiting for {', '.join(after.waiting) or 'nobody'}"


GateState = Literal["done", "failed", "open"]


@dataclass(frozen=True, slots=True)
class Gate:
    """One thing that must hold before the collaboration can end. `where` names the document to look at."""

    state: GateState
    text: str
    where: str


def gates(snapshot: Snapshot) -> list[Gate]:
    """The gates of acceptance, readiness and completion as they stand now."""
    setup = snapshot.setup
    if setup is None:
        return []
    scan = snapshot.facts.readiness
    made: list[Gate] = []

    def add(state: GateState, text: str, where: str = "readiness.md") -> None:
        problem = snapshot.document(where).problem if where in snapshot.documents else None
        if problem is not None and problem.code == "content_unknown":
            # In the past nobody may know what a document said then.
            state, text = "open", f"unknown then: {text}"
        made.append(Gate(state, text, where))

    add("failed" if scan.blocking else "done", _count(scan.blocking, "blocking", "nothing blocking"))
    add("failed" if scan.unresolved else "done", _count(scan.unresolved, "unresolved", "all questions resolved"))
    add(
        "failed" if scan.without_reason else "done",
        _count(scan.without_reason, "deferred without reason", "deferred items have reasons"),
    )
    add("done" if scan.ready else "open", "Ready to implement")
    declared = setup.deliverables
    if declared is not None:
        add("done" if snapshot.state.frozen else "open", f"frozen: {declared.primary_ref}", declared.primary_ref)
    add("done" if snapshot.state.readiness_passed else "open", "readiness passed", "events.jsonl")
    for gate in setup.gates:
        add("done" if scan.gate_ticked(gate) else "open", gate)
    missing = conclusion_findings(setup, snapshot.facts.conclusion)
    add("open" if missing else "done", "conclusion written", "conclusion.md")
    return made


def _count(items: Sequence[object], what: str, fine: str) -> str:
    return f"{len(items)} {what}" if items else fine


@dataclass(frozen=True, slots=True)
class Person:
    """A participant as the waiting list shows them; `since` is when they were first waited for in this phase."""

    id: str
    owner: bool
    waited_for: bool
    since: datetime | None
    did: str


def people(snapshot: Snapshot, acts: Mapping[str, str] | None = None) -> list[Person]:
    """Every participant: waited for since when, or what they did last.

    `acts` are the last events of participants, for whoever knows them already.
    """
    setup, state = snapshot.setup, snapshot.state
    if setup is None:
        return []
    since = waiting_since(snapshot)
    last = acts
    if last is None:
        last = {event.actor: event.name or "" for event in snapshot.events if event.actor is not None}
    return [
        Person(
            name,
            name == state.owner,
            name in state.waiting,
            since if name in state.waiting else None,
            last.get(name, ""),
        )
        for name in dict.fromkeys(setup.participants)
    ]


def waiting_since(snapshot: Snapshot) -> datetime | None:
    """When the state last changed: the time of the latest event."""
    last = snapshot.last()
    return parse(last.at) if last is not None else None


def editable(snapshot: Snapshot, participant: str, frozen: Collection[str | None] | None = None) -> tuple[str, ...]:
    """The documents that this participant's role may edit now (docs/specs/acp.md §6).

    `frozen` are the references that the log froze, for whoever knows them already.
    """
    setup, state = snapshot.setup, snapshot.state
    if setup is None or state.terminal or state.phase is None:
        return ()
    names = []
    for name, phases in EDITABLE.items():
        if state.phase in phases and participant in _editors(state, name, setup):
            names.append(name)
    declared = setup.deliverables
    if declared is not None and participant == state.owner and state.phase in DELIVERABLE_PHASES:
        refs = [declared.ref(item.file) for item in (declared.primary, *declared.supporting)]
        frozen = frozen_refs(snapshot.events) if frozen is None else frozen
        names += [ref for ref in refs if ref not in frozen]
    return tuple(names)


def _editors(state: State, name: str, setup: Setup) -> tuple[str, ...]:
    if name == "review.md":
        return expected_actors(state, "review_submitted", setup)
    return (state.owner,) if state.owner is not None else ()


def phase_path(state: State) -> list[tuple[str, GateState]]:
    """The phases for the rail: done, current (`open`) or to come (`failed` only for blocked)."""
    current = state.phase
    if current == "blocked":
        return [*((name, "done") for name in PHASES[:1]), ("blocked", "failed")]
    order = list(PHASES[:-1])
    at = order.index(current) if current in order else -1
    return [(name, "done" if index < at or current == "completed" else "open") for index, name in enumerate(order)]
