"""What the events of learning.jsonl mean (docs/specs/workflows.md §8). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.workflow.model import Proposal, Rule
from core.workflow.state import Answers, Learning

Record = Mapping[str, Any]


def evolve_learning(learning: Learning, record: Record) -> Learning:
    """The projection after one event of learning.jsonl."""
    name = record["event"]
    learning = learning._replace(seq=max(learning.seq, record["seq"]))
    if name == "answer_counted":
        return _answered(learning, record)
    if name == "error_counted":
        known = learning.errors.get(record["cause_key"]) or ()
        if record["run"] in known:
            return learning
        return learning._replace(errors=learning.errors.with_item(record["cause_key"], (*known, record["run"])))
    if name == "proposal_opened":
        proposal = Proposal.model_validate(record["proposal"], strict=False)
        return learning._replace(proposals={**learning.proposals, proposal.id: proposal})
    if name in ("proposal_approved", "proposal_rejected", "proposal_archived"):
        return _settled(learning, record, name.removeprefix("proposal_"))
    if name == "rule_made":
        rule = Rule.model_validate(record["rule"], strict=False)
        return learning._replace(rules={**learning.rules, rule.id: rule})
    if name.startswith("rule_") and record["rule"] in learning.rules:
        return _ruled(learning, record, name.removeprefix("rule_"))
    return learning


def _answered(learning: Learning, record: Record) -> Learning:
    key, entry = record["cause_key"], record["entry"]
    if entry in learning.counted:
        return learning
    known = learning.answers.get(key)
    same = known is not None and known.option == record["option"] and known.args == record["args"]
    entries = (*known.entries, entry) if known is not None and same else (entry,)
    answers = learning.answers.with_item(key, Answers(record["option"], record["args"], entries))
    return learning._replace(answers=answers, counted=learning.counted.with_item(entry, True))


def _settled(learning: Learning, record: Record, state: str) -> Learning:
    proposal = learning.proposals.get(record["proposal"])
    if proposal is None:
        return learning
    made = proposal.model_copy(update={"state": state, "decided_by": record.get("by"), "decided_at": record["at"]})
    learning = learning._replace(proposals={**learning.proposals, made.id: made})
    if state == "rejected" and made.kind == "rule":
        return learning._replace(answers=learning.answers.without(made.cause_key))
    if state in ("rejected", "approved") and made.kind == "workflow_fix":
        return learning._replace(errors=learning.errors.without(made.cause_key))
    return learning


def _ruled(learning: Learning, record: Record, act: str) -> Learning:
    rule = learning.rules[record["rule"]]
    update: dict[str, Any] = {}
    if act == "used":
        update = {"uses": rule.uses + 1}
    elif act == "confirmed":
        update = {"confidence": rule.confidence + 1}
    elif act == "suspended" and rule.state == "active":
        update = {"state": "suspended"}
    elif act == "revoked":
        update = {"state": "revoked", "revoked_by": record["by"]}
        learning = learning._replace(answers=learning.answers.without(rule.cause_key))
    return learning._replace(rules={**learning.rules, rule.id: rule.model_copy(update=update)})
