"""What the steps of a script do on the stage (docs/specs/workflows.md §10)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core import journal
from core.finding import Refused
from core.workflow import times
from core.workflow.answers import Answer, Outcome, Settlement
from core.workflow.layout import OUTBOX, WORKFLOWS
from core.workflow.model import OPERATOR
from core.workflow.script import ScriptStep
from core.workflow.signals_in import signal
from core.workflow.simulate_stage import Stage


def act(stage: Stage, step: ScriptStep) -> dict[str, Any]:
    """Do what a step says; what is known of its answer: status, codes and what belongs to it."""
    handler = {
        "start": _start,
        "reply": _reply,
        "decide": _decide,
        "ack": _ack,
        "abort": _abort,
        "approve": _approve,
        "reject": _reject,
    }.get(step.do)
    if step.do == "signal":
        return _signal(stage, step.value)
    if handler is not None:
        return handler(stage, step.value if isinstance(step.value, dict) else {})
    if step.do == "touch":
        if not stage.engine.root.exists(step.value):
            stage.engine.root.replace(step.value, b"")
    elif step.do == "spec":
        text = str(step.value["text"]).encode("utf-8", "surrogatepass")
        stage.engine.root.replace(f"{WORKFLOWS}/{step.value['workflow']}.yml", text)
    elif step.do == "restart":
        stage.restart()
    return {"status": "done"}


def _made(stage: Stage, value: Any, listed: list[str]) -> str:
    """An id as given, or of the n-th that was made here."""
    if isinstance(value, str):
        return value
    return listed[value - 1] if 1 <= value <= len(listed) else f"#{value}"


def _runs(stage: Stage) -> list[str]:
    return list(stage.look().order)


def _answered(outcome: Outcome) -> dict[str, Any]:
    made: dict[str, Any] = {"status": outcome.status, "codes": outcome.codes}
    if outcome.replay:
        made["replay"] = True
    if outcome.status in ("conflict", "gone"):
        made["winner"] = outcome.winner
    if outcome.findings:
        made["causes"] = [item.cause for item in outcome.findings]
    return made


def _start(stage: Stage, value: Mapping[str, Any]) -> dict[str, Any]:
    made = stage.people.start(
        value.get("workflow") or stage.workflow,
        value.get("mode") or "manual",
        value.get("grant") or False,
        value.get("parent"),
        value.get("as") or OPERATOR,
    )
    if made.run_id is None:
        return _answered(made.outcome)
    return {"status": "started", "run_id": made.run_id}


def _reply(stage: Stage, value: Mapping[str, Any]) -> dict[str, Any]:
    stage.replies += 1
    runs = _runs(stage)
    run_id = _made(stage, value["run"], runs) if value.get("run") is not None else (runs[-1] if runs else "")
    spawn = None
    for line in journal.read(stage.engine.root, OUTBOX).lines:
        packet = line.record or {}
        if packet.get("signal") != "SPAWN" or packet.get("run_id") != run_id:
            continue
        context = packet["payload"]["context"]
        same = context["index"] == value["index"] if "index" in value else context["item"] == str(value["item"])
        if same and value.get("attempt") in (None, packet["attempt"]):
            spawn = packet
    if spawn is None:
        return {"status": "refused", "codes": ["E_SCRIPT"]}
    payload = {key: value[key] for key in ("result", "context", "options", "decision") if key in value}
    packet = {
        "id": value.get("id") or f"sim-{stage.replies}",
        "from": value.get("from") or spawn["to"],
        "to": "ambient",
        "signal": value.get("signal") or "RETURN",
        "in_reply_to": spawn["id"],
        "payload": payload,
    }
    return _signal(stage, packet)


def _signal(stage: Stage, packet: Any) -> dict[str, Any]:
    try:
        status, made_id = signal(stage.people.root, packet, stage.clock, stage.people.chance)
    except Refused as exc:
        return {"status": "refused", "codes": [item.code for item in exc.findings]}
    return {"status": status, "id": made_id}


def _decide(stage: Stage, value: Mapping[str, Any]) -> dict[str, Any]:
    answer = Answer(
        entry=_made(stage, value["escalation"], stage.entries()),
        by=value.get("as") or OPERATOR,
        option=value.get("option"),
        accept=value.get("accept") is True,
        respond=value.get("respond"),
        defer=None if value.get("defer") is None else times.span(value["defer"]),
        args=value.get("args"),
        note=value.get("note"),
        channel=value.get("channel") or "cli",
        key=value.get("key"),
        token=value.get("token"),
    )
    return _answered(stage.people.answer(answer))


def _ack(stage: Stage, value: Mapping[str, Any]) -> dict[str, Any]:
    answer = Answer(
        entry=_made(stage, value["escalation"], stage.entries()),
        by=value.get("as") or OPERATOR,
        ack=True,
        note=value.get("note"),
        channel=value.get("channel") or "cli",
        key=value.get("key"),
    )
    return _answered(stage.people.answer(answer))


def _abort(stage: Stage, value: Mapping[str, Any]) -> dict[str, Any]:
    runs = _runs(stage)
    run_id = _made(stage, value["run"], runs) if value.get("run") is not None else (runs[-1] if runs else "")
    return _answered(stage.people.abort(run_id, value.get("as") or OPERATOR, value.get("note")))


def _approve(stage: Stage, value: Mapping[str, Any]) -> dict[str, Any]:
    target = _made(stage, value["proposal"], list(stage.look().learning.proposals))
    settlement = Settlement(target, value.get("as") or OPERATOR, True, value.get("option"))
    return _answered(stage.people.settle(settlement))


def _reject(stage: Stage, value: Mapping[str, Any]) -> dict[str, Any]:
    learning = stage.look().learning
    listed = list(learning.proposals) if "proposal" in value else list(learning.rules)
    target = _made(stage, value.get("proposal", value.get("rule")), listed)
    return _answered(stage.people.settle(Settlement(target, value.get("as") or OPERATOR, False)))
