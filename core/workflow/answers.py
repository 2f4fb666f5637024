"""Deciding an entry exactly once, and what an applied decision does (docs/specs/workflows.md §7)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from core.finding import Finding, error
from core.workflow import entries, learn, signals, texts, times, verdicts
from core.workflow.model import ENGINE, PARENT, Control, Decision, Entry, Option
from core.workflow.state import LEARNING_STREAM, Run
from core.workflow.turn import Turn

Status = Literal["accepted", "deferred", "conflict", "gone", "refused"]
LINK_CHANNELS = frozenset({"link", "webhook"})
RESERVED = frozenset({ENGINE, "deadline", "recheck"})


@dataclass(frozen=True)
class Answer:
    """What a person says to an entry. Exactly one of option, accept, respond, defer (milliseconds), ack."""

    entry: str
    by: str
    option: str | None = None
    accept: bool = False
    respond: str | None = None
    defer: int | None = None
    ack: bool = False
    args: Any = None
    note: str | None = None
    channel: str = "cli"
    key: str | None = None
    token: str | None = None


@dataclass(frozen=True)
class Outcome:
    """What became of an act. `winner` is `{verb, option_id, decided_by}` for conflict and gone."""

    status: Status
    findings: tuple[Finding, ...] = ()
    winner: Mapping[str, Any] | None = None
    replay: bool = False

    @property
    def codes(self) -> list[str]:
        return list(dict.fromkeys(item.code for item in self.findings))


def refused(*findings: Finding) -> Outcome:
    return Outcome("refused", findings)


def decide_entry(turn: Turn, answer: Answer, agents: Collection[str] = ()) -> Outcome:
    """Record an answer, or say why not; the checks in the order of §7. `agents` are names that never decide."""
    entry = turn.world.entry(answer.entry)
    if entry is None:
        command = "collab escalation list"
        return refused(error("E_ESCALATION_UNKNOWN", f"there is no escalation {answer.entry!r}", command, answer.entry))
    known = entry.decision
    if answer.key is not None and known is not None and known.idempotency_key == answer.key:
        return Outcome("accepted", replay=True)
    if entry.state != "open":
        return _late(entry)
    wrong = _token(entry, answer) or _decider(turn, entry, answer.by, agents)
    if wrong is not None:
        return refused(wrong)
    if answer.defer is not None:
        until = times.text(turn.now + answer.defer)
        fields = {"entry": entry.id, "until": until, "by": answer.by, "note": answer.note}
        turn.emit(entry.run_id, "entry_deferred", **fields)
        return Outcome("deferred")
    made = _decision(turn, entry, answer)
    if isinstance(made, Finding):
        return refused(made)
    turn.emit(entry.run_id, "entry_decided", entry=entry.id, decision=made.plain())
    return Outcome("accepted")


def _late(entry: Entry) -> Outcome:
    won = entries.winner(entry.decision, entry.closed_by)
    who = "" if won is None else f" by {won['decided_by']}: {won['option_id'] or won['verb']}"
    command = f"collab escalation show {entry.id}"
    if entry.state in ("expired", "cancelled"):
        found = error("E_GONE", f"{entry.id} is {entry.state}{who}", command, entry.id)
        return Outcome("gone", (found,), won)
    found = error("E_CONFLICT", f"{entry.id} was answered already{who}", command, entry.id)
    return Outcome("conflict", (found,), won)


def _token(entry: Entry, answer: Answer) -> Finding | None:
    if answer.token is None and answer.channel not in LINK_CHANNELS:
        return None
    if answer.token == entry.resume_token:
        return None
    return error("E_TOKEN", "the token does not belong to this question", None, "--token")


def no_person(name: str) -> bool:
    """Whether a name is one of the engine's own."""
    return name in RESERVED or name.startswith("rule:")


def _decider(turn: Turn, entry: Entry, by: str, agents: Collection[str]) -> Finding | None:
    run = turn.run(entry.run_id)
    mechanical = {*agents, *run.spec.agents, run.parent, PARENT, entry.held_by}
    if no_person(by) or by in mechanical:
        return error("E_DECIDER", f"{by!r} is no person; only people decide here", None, "--as")
    if by == run.by and not run.spec.on_escalate.self_approval:
        cause = f"{by!r} started the run; {run.workflow} wants somebody else to decide"
        return error("E_SELF_APPROVAL", cause, None, "--as")
    return None


def _decision(turn: Turn, entry: Entry, answer: Answer) -> Decision | Finding:
    command = f"collab escalation show {entry.id}"
    option: Option | None = None
    if answer.respond is not None:
        if entry.kind not in ("fail", "error", "partial", "agent") or entry.parks == "none":
            return error("E_OPTION", f"a {entry.kind} cannot be answered in words", command, entry.id)
        if answer.args is not None and answer.args != {}:
            return error("E_ARGS", "an answer in words has no args", command, "--args")
    elif answer.accept:
        option = entry.recommended
        if option is None:
            return error("E_NO_RECOMMENDATION", f"nothing is recommended for {entry.id}", command, entry.id)
    else:
        wanted = answer.option
        if answer.ack:
            wanted = next((name for name in ("unblocked", "seen") if entry.offers(name)), "unblocked")
        option = next((item for item in entry.options if item.id == wanted), None)
        if option is None:
            offered = ", ".join(item.id for item in entry.options)
            return error("E_OPTION", f"{wanted!r} is not offered; there are {offered}", command, entry.id)
    if option is not None:
        wrong = signals.check_args(answer.args, option.args_schema)
        if wrong is not None:
            return error("E_ARGS", wrong, command, "--args")
    args = answer.args or None
    return Decision(
        verb=_verb(entry, answer, option, args),
        option_id=None if option is None else option.id,
        args=args,
        note=answer.note,
        decided_by=answer.by,
        channel=answer.channel,
        decided_at=turn.at,
        idempotency_key=answer.key,
        text=answer.respond,
    )


def _verb(entry: Entry, answer: Answer, option: Option | None, args: Any) -> str:
    if option is None:
        return "respond"
    if answer.accept:
        return "accept"
    if entry.agents_own(option.id):
        return "edit" if args else "choose"
    return option.id


def apply_decided(turn: Turn) -> None:
    """Every decided entry, in order of decision, in the commit that holds what follows from it."""
    for name in turn.world.decided:
        entry = turn.world.entry(name)
        if entry is not None and entry.state == "decided":
            apply_entry(turn, entry)


def apply_entry(turn: Turn, entry: Entry) -> None:
    """Let a decision have its effect. The entry is decided, or expired with a decision of its deadline."""
    decision = entry.decision
    if decision is None:
        return
    run = turn.run(entry.run_id)
    option = decision.option_id
    by = _by(entry, decision)
    then = _then(run, entry, decision)
    fields: dict[str, Any] = {"entry": entry.id}
    if then is not None:
        fields["then"] = then
    if option == "approve" and entry.item_index is None:
        fields["granted"] = True
    turn.emit(entry.run_id, "entry_applied", **fields)
    if by == "human":
        learn.count_answer(turn, entry)
    if option == "abort":
        entries.abort_run(turn, entry.run_id, decision.decided_by, entry.id, decision.note)
        return
    index = entry.item_index
    if index is None or then is not None or not run.open:
        return
    _effect(turn, entry, index, option, by)


def _by(entry: Entry, decision: Decision) -> str:
    if decision.decided_by in ("deadline", "recheck"):
        return decision.decided_by
    return "agent" if entry.held_by is not None and decision.decided_by == entry.held_by else "human"


def _effect(turn: Turn, entry: Entry, index: int, option: str | None, by: str) -> None:
    """The effects that do not make the item start."""
    run_id, hold = entry.run_id, turn.item(entry.run_id, index).hold or {}
    if option == "skip":
        verdicts.close_item(turn, run_id, index, "skipped", by)
    elif option == "resolve":
        verdicts.close_item(turn, run_id, index, "success", by)
    elif option == "escalate":
        entries.open_entry(
            turn, run_id, index, "error", cause="block_escalated", previous=entry.id, hold={"at": "verdict"}
        )
    elif option == "approve" and hold.get("at") == "route":
        verdicts.follow_route(turn, run_id, index)
    elif option == "approve" and hold.get("at") == "next":
        verdicts.close_item(turn, run_id, index)
    elif option == "continue":
        work = turn.run(run_id).spec.work(index)
        turn.emit(run_id, "breaker_reset", breaker=texts.breaker_key(work), entry=entry.id)
        control = hold.get("control")
        verdicts.perform(
            turn, run_id, index, None if control is None else Control.model_validate(control, strict=False)
        )


def _then(run: Run, entry: Entry, decision: Decision) -> Mapping[str, Any] | None:
    """How the item starts again because of this answer, or None when it does not."""
    index, option = entry.item_index, decision.option_id
    if index is None or not run.open or run.aborted is not None:
        return None
    item = run.items[index]
    hold = item.hold or {}
    # An item that a block stopped before its first SPAWN starts for the first time, whatever the answer was.
    anew: dict[str, Any] = {"attempt": item.attempt + 1, "resumes": 0, "credentials": item.attempt == 0}
    if decision.verb == "respond":
        return {"why": "answer", **anew, "context": {"instruction": decision.text}}
    if option is not None and entry.agents_own(option):
        made = {"option_id": option, "args": decision.args, "note": decision.note}
        return {"why": "answer", **anew, "context": {"decision": made}}
    if option == "retry":
        return {"why": "retry", **anew}
    if option == "approve" and hold.get("at") == "start":
        return {"why": "first", "attempt": 1, "resumes": 0, "gate": True}
    if option == "unblocked":
        return cast("Mapping[str, Any]", {**_resumed(item.attempt, item.resumes, hold), "unblocked": True})
    return None


def _resumed(attempt: int, resumes: int, hold: Mapping[str, Any]) -> dict[str, Any]:
    """An unblocked item: the same attempt again, or what was about to start when the block stood before it."""
    pending = hold.get("pending")
    if isinstance(pending, Mapping):
        return {**pending, "credentials": True} if hold.get("at") == "credentials" else dict(pending)
    return {"why": "resume", "attempt": attempt, "resumes": resumes + 1}


@dataclass(frozen=True)
class Settlement:
    """A person's word on a proposal or a rule. `option`: another learnable option than the proposed one."""

    target: str
    by: str
    approve: bool
    option: str | None = None


def settle_proposal(turn: Turn, settlement: Settlement, agents: Collection[str] = ()) -> Outcome:
    """Approve or reject a proposal, or revoke a rule (§8)."""
    learning, by = turn.world.learning, settlement.by
    proposal, rule = learning.proposals.get(settlement.target), learning.rules.get(settlement.target)
    if proposal is None and (rule is None or settlement.approve):
        cause = f"there is no proposal {settlement.target!r}"
        return refused(error("E_PROPOSAL_UNKNOWN", cause, "collab proposal list", settlement.target))
    if no_person(by) or by in {*agents, PARENT}:
        return refused(error("E_DECIDER", f"{by!r} is no person; only people decide here", None, "--as"))
    if rule is not None:
        if rule.state == "revoked":
            won = {"verb": "reject", "option_id": None, "decided_by": rule.revoked_by}
            found = error("E_CONFLICT", f"{rule.id} was revoked by {rule.revoked_by}", None, rule.id)
            return Outcome("conflict", (found,), won)
        turn.emit(LEARNING_STREAM, "rule_revoked", rule=rule.id, by=by)
        return Outcome("accepted")
    if proposal is None:
        return refused()
    if proposal.state == "archived":
        won = {"verb": "archived", "option_id": None, "decided_by": "deadline"}
        return Outcome("gone", (error("E_GONE", f"{proposal.id} was not answered in time", None, proposal.id),), won)
    if proposal.state != "open":
        verb = "approve" if proposal.state == "approved" else "reject"
        won = {"verb": verb, "option_id": None, "decided_by": proposal.decided_by}
        found = error("E_CONFLICT", f"{proposal.id} was {proposal.state} by {proposal.decided_by}", None, proposal.id)
        return Outcome("conflict", (found,), won)
    if not settlement.approve:
        turn.emit(LEARNING_STREAM, "proposal_rejected", proposal=proposal.id, by=by)
        return Outcome("accepted")
    option = settlement.option or proposal.proposes.option_id
    if settlement.option is not None and settlement.option not in proposal.proposes.learnable:
        offered = ", ".join(proposal.proposes.learnable) or "none"
        return refused(
            error("E_OPTION", f"{settlement.option!r} cannot be learned; there are {offered}", None, "--option")
        )
    turn.emit(LEARNING_STREAM, "proposal_approved", proposal=proposal.id, by=by)
    if proposal.kind == "rule" and option is not None:
        turn.emit(LEARNING_STREAM, "rule_made", rule=learn.rule_from(turn, proposal, option, by).plain())
    return Outcome("accepted")
