"""Learning: what answers and errors count for, proposals, rules (docs/specs/workflows.md §8).

Nothing becomes automatic here: a proposal waits for a person, and only an active rule answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from core.files import sha256
from core.workflow import times
from core.workflow.model import (
    BREAKER_AT,
    CONSOLE,
    EXPIRY,
    Entry,
    Pattern,
    Proposal,
    Proposes,
    Rule,
    Work,
)
from core.workflow.state import LEARNING_STREAM, Run
from core.workflow.texts import breaker_key
from core.workflow.turn import Turn, notice

LEARNED_KINDS = frozenset({"fail", "error", "partial", "agent"})
NEVER = frozenset({"resolve", "respond", "abort", "seen"})
ENOUGH = 2
_QUOTED = re.compile("\"[^\"]*\"|(?<!\\w)'[^']*'|`[^`]*`|«[^»]*»|“[^”]*”|‘[^’]*’")
_SLASHED = re.compile(r"[^\s/]*/\S*")
_DIGITS = re.compile(r"[0-9]+")


def mask(cause: str | None, item: str | None) -> str:
    """The cause in lower case with what varies replaced by marks: quotes, paths, the item's value, digits (§8)."""
    text = (cause or "").lower()
    text = _QUOTED.sub("<text>", text)
    text = _SLASHED.sub("<path>", text)
    if item:
        text = re.sub(rf"(?<!\w){re.escape(item.lower())}(?!\w)", "<item>", text)
    return _DIGITS.sub("<n>", text)


def pattern(
    workflow: str, work: Work, kind: str, item: str | None, options: Sequence[str], cause: str | None
) -> Pattern:
    """What alike questions share."""
    return Pattern(
        workflow=workflow,
        agent=work.agent,
        kind=kind,
        zone=work.zone,
        cause=mask(cause, item),
        options=tuple(sorted(options)),
    )


def cause_key(made: Pattern) -> str:
    """16 hex digits over workflow, agent, kind, zone, sorted option ids and the masked cause."""
    text = json.dumps([made.workflow, made.agent, made.kind, made.zone, list(made.options), made.cause])
    return sha256(text.encode())[:16]


def answers_itself(run: Run, index: int, rule: Rule, cause: str | None) -> bool:
    """Whether a rule may answer alone, or only recommends (§8, 4)."""
    work, item = run.spec.work(index), run.items[index]
    lost = rule.option_id == "retry" and cause == "timeout" and not run.spec.idempotent
    return (
        rule.state == "active"
        and work.zone == "project"
        and run.spec.reversible
        and not run.spec.external_effect
        and run.breakers.get(breaker_key(work), 0) < BREAKER_AT
        and not item.rule_fired
        and not lost
    )


def learnable(entry: Entry) -> tuple[str, ...]:
    """The options of an entry that may become a rule: retry, skip, an agent's own."""
    return tuple(item.id for item in entry.options if item.id not in NEVER)


def count_answer(turn: Turn, entry: Entry) -> None:
    """A person's applied answer counts for its cause; enough equal ones make a proposal."""
    decision = entry.decision
    if decision is None or entry.item_index is None or entry.cause_key is None:
        return
    if entry.kind not in LEARNED_KINDS or (entry.cause or "").startswith("block_"):
        return
    option = "respond" if decision.verb == "respond" else decision.option_id or decision.verb
    key = entry.cause_key
    run = turn.run(entry.run_id)
    work = run.spec.work(entry.item_index)
    made = pattern(run.workflow, work, entry.kind, entry.item, [item.id for item in entry.options], entry.cause)
    turn.emit(
        LEARNING_STREAM,
        "answer_counted",
        entry=entry.id,
        run=entry.run_id,
        cause_key=key,
        option=option,
        args=decision.args,
        by=decision.decided_by,
    )
    learning = turn.world.learning
    counted = learning.answers.get(key)
    if counted is None or len(counted.entries) < ENOUGH or option not in learnable(entry):
        return
    if learning.asks(key, "rule") or learning.rule_of(key) is not None:
        return
    proposes = Proposes(type="ambient_rule", option_id=option, args=decision.args, learnable=learnable(entry))
    _propose(turn, "rule", "escalate_same_cause", key, made, counted.entries, proposes, entry.run_id)


def count_error(turn: Turn, run_id: str, index: int, cause: str | None) -> None:
    """An error verdict counts for its workflow; the same cause in enough runs proposes to mend the file."""
    run = turn.run(run_id)
    work, item = run.spec.work(index), run.spec.items[index]
    made = pattern(run.workflow, work, "error", item, run.spec.on_escalate.options, cause)
    key = cause_key(made)
    if run_id in (turn.world.learning.errors.get(key) or ()):
        return
    turn.emit(LEARNING_STREAM, "error_counted", run=run_id, cause_key=key)
    learning = turn.world.learning
    runs = learning.errors.get(key) or ()
    if len(runs) < ENOUGH or learning.asks(key, "workflow_fix"):
        return
    proposes = Proposes(type="workflow_update", file=f"workflows/{run.workflow}.yml")
    _propose(turn, "workflow_fix", "error_same_workflow", key, made, runs, proposes, run_id)


def _propose(
    turn: Turn,
    kind: Any,
    trigger: Any,
    key: str,
    made: Pattern,
    evidence: tuple[str, ...],
    proposes: Proposes,
    run_id: str,
) -> None:
    proposal = Proposal(
        id=next_id(turn, "prop", 3),
        kind=kind,
        trigger=trigger,
        cause_key=key,
        pattern=made,
        evidence=evidence,
        proposes=proposes,
        opened_at=turn.at,
        expires_at=times.text(turn.now + EXPIRY),
    )
    told = notice(proposal.id, CONSOLE, "update", "PROPOSAL", run_id, None, proposal=proposal.id)
    turn.emit(LEARNING_STREAM, "proposal_opened", proposal=proposal.plain(), notices=[told])


def next_id(turn: Turn, word: str, digits: int) -> str:
    """`<word>-<yyyymmdd>-<n…>`, numbered per UTC day and root."""
    day = f"{word}-{times.day(turn.now)}"
    return f"{day}-{turn.world.days.get(day, 0) + 1:0{digits}d}"


def judge_attempt(turn: Turn, rule_id: str, result: str) -> None:
    """The attempt that a rule began has ended: it worked, or the rule rests (§8, 5)."""
    rule = turn.world.learning.rules.get(rule_id)
    if rule is None:
        return
    if result == "success":
        turn.emit(LEARNING_STREAM, "rule_confirmed", rule=rule_id)
    elif result in ("fail", "error", "partial") and rule.state == "active":
        turn.emit(LEARNING_STREAM, "rule_suspended", rule=rule_id)


def rule_from(turn: Turn, proposal: Proposal, option: str, by: str) -> Rule:
    """The rule that an approved proposal becomes."""
    return Rule(
        id=next_id(turn, "rule", 3),
        proposal=proposal.id,
        cause_key=proposal.cause_key,
        pattern=proposal.pattern,
        option_id=option,
        args=proposal.proposes.args if option == proposal.proposes.option_id else None,
        approved_by=by,
        approved_at=turn.at,
    )
