"""Packets taken in, in order of arrival: the first row of the table that fits (docs/specs/workflows.md §2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core.workflow import entries, signals, texts, times, verdicts
from core.workflow.matrix import may_send
from core.workflow.model import ENGINE, Decision, Entry
from core.workflow.signals import Packet
from core.workflow.state import ENGINE_STREAM, Run, Step
from core.workflow.turn import Turn, spawn_id

AGENT = "agent"


@dataclass(frozen=True, slots=True)
class Target:
    """What a packet answers: a SPAWN (its step), or an entry that was handed to an agent."""

    run_id: str
    step: int | None = None
    entry: str | None = None


def take_in(turn: Turn, packet: Packet) -> None:
    """One packet: accepted with what follows from it, rejected with a reason, or ignored when its id is known."""
    if packet.id in turn.world.seen:
        return
    if packet.signal == "SPAWN":
        _reject(turn, packet, "direction", None)
        return
    found = correlate(turn, packet)
    if isinstance(found, str):
        _reject(turn, packet, found, None)
    elif found.entry is not None:
        _answer_of_agent(turn, packet, found.run_id, found.entry)
    elif found.step is not None:
        _reply(turn, packet, turn.run(found.run_id), found.step)


def malformed(turn: Turn, packet_id: str, sender: str | None) -> None:
    """A line in signals.jsonl that is no packet: noted once, then passed over."""
    if packet_id not in turn.world.seen:
        fields = {"packet": packet_id, "from": sender, "signal": None, "reason": "malformed"}
        turn.emit(ENGINE_STREAM, "packet_rejected", **fields)


def _reject(turn: Turn, packet: Packet, reason: str, run_id: str | None, **more: Any) -> None:
    fields = {"packet": packet.id, "from": packet.sender, "signal": packet.signal, "reason": reason, **more}
    if run_id is None:
        turn.emit(ENGINE_STREAM, "packet_rejected", **fields)
    else:
        turn.emit(run_id, "signal_rejected", **fields)


def correlate(turn: Turn, packet: Packet) -> Target | str:
    """What the packet answers, or `unknown`, `ambiguous`."""
    if packet.in_reply_to is not None:
        return _by_id(turn, packet.in_reply_to)
    if isinstance(packet.run_id, str) and type(packet.item_index) is int:
        return _by_place(turn, packet.run_id, packet.item_index, packet.attempt)
    open_steps = [
        Target(run.run_id, run.items[index].steps[-1])
        for run in turn.world.runs.values()
        for index in run.flight
        if run.steps[run.items[index].steps[-1]].agent == packet.sender
    ]
    if len(open_steps) == 1:
        return open_steps[0]
    return "ambiguous" if open_steps else "unknown"


def _by_id(turn: Turn, reply_to: object) -> Target | str:
    if not isinstance(reply_to, str):
        return "unknown"
    entry = turn.world.entry(reply_to)
    if entry is not None:
        return Target(entry.run_id, entry=entry.id) if entry.held_by is not None else "unknown"
    run_id, _, rest = reply_to.partition("/")
    index, _, tail = rest.partition("/")
    run = turn.world.runs.get(run_id)
    if run is None or not (tail and index.isascii() and index.isdecimal() and len(index) < 10):
        return "unknown"
    for number in _steps(run, int(index)):
        step = run.steps[number]
        if spawn_id(run_id, step.place, step.attempt, step.resumes) == reply_to:
            return Target(run_id, number)
    return "unknown"


def _steps(run: Run, index: int) -> tuple[int, ...]:
    return run.items[index].steps if 0 <= index < run.total else ()


def _by_place(turn: Turn, run_id: str, index: int, attempt: object) -> Target | str:
    run = turn.world.runs.get(run_id)
    if run is None:
        return "unknown"
    found = [
        number for number in _steps(run, index) if type(attempt) is not int or run.steps[number].attempt == attempt
    ]
    return Target(run_id, found[-1]) if found else "unknown"


def _reply(turn: Turn, packet: Packet, run: Run, number: int) -> None:
    step = run.steps[number]
    place = {"index": step.place, "attempt": step.attempt}
    if step.closed:
        _reject(turn, packet, "closed", run.run_id, **place)
        return
    if packet.sender != step.agent:
        _reject(turn, packet, "sender", run.run_id, **place)
        return
    carried = packet.carried()
    profile = run.profiles.get(step.agent)
    options = signals.read_options(carried.get("options")) if carried is not None else None
    lacks = profile is not None and not may_send(profile, packet.signal)
    if carried is None or options is None or lacks:
        _reject(turn, packet, "violation", run.run_id, **place)
        following = verdicts.close_step(
            turn, run.run_id, step.place, "error", signal=None, cause="packet_violation", by=ENGINE
        )
        if following:
            verdicts.settle(turn, run.run_id, step.place)
        return
    if packet.signal in ("CHECKPOINT", "HANDOFF"):
        _keep(turn, packet, run, step, carried)
        return
    turn.emit(
        run.run_id,
        "signal_accepted",
        packet=packet.id,
        signal=packet.signal,
        index=step.place,
        attempt=step.attempt,
        resumes=step.resumes,
        **{"from": packet.sender},
    )
    _follow(turn, packet, run, step, carried)


def _keep(turn: Turn, packet: Packet, run: Run, step: Step, carried: dict[str, Any]) -> None:
    """A checkpoint; a hand-over keeps both parts and lets the timeout start anew."""
    fields: dict[str, Any] = {"packet": packet.id, "signal": packet.signal, "from": packet.sender}
    if packet.signal == "HANDOFF":
        fields["value"] = {"context": carried.get("context"), "decision": carried.get("decision")}
        fields["deadline"] = times.text(turn.now + run.spec.timeout)
    else:
        fields["value"] = carried.get("context")
    turn.emit(run.run_id, "checkpoint_kept", index=step.place, attempt=step.attempt, **fields)


def _follow(turn: Turn, packet: Packet, run: Run, step: Step, carried: dict[str, Any]) -> None:
    run_id, index = run.run_id, step.place
    context, options = carried.get("context"), signals.read_options(carried.get("options")) or []
    if packet.signal == "ESCALATE":
        if verdicts.close_step(turn, run_id, index, "escalated", signal="ESCALATE", cause=None, by=AGENT):
            defaulted = not options
            offered = tuple(options) or texts.options("agent", run.spec)
            if all(option.id != "abort" for option in offered):
                offered = (*offered, texts.option("abort"))
            verdicts.ask(
                turn,
                run_id,
                index,
                "agent",
                cause=None,
                raised_by=packet.sender,
                options=offered,
                defaulted=defaulted,
            )
        return
    if packet.signal == "BLOCKED_ON":
        cause = signals.cause_text(context)
        if verdicts.close_step(turn, run_id, index, "blocked", signal="BLOCKED_ON", cause=cause, by=AGENT):
            verdicts.block(turn, run_id, index, cause=cause, context=context, raised_by=packet.sender)
        return
    verdict, cause, by, modified = _verdict(packet, run, index, carried)
    recorded = carried.get("result") if run.spec.grammar == "chain" else None
    if verdicts.close_step(turn, run_id, index, verdict, signal=packet.signal, cause=cause, by=by, recorded=recorded):
        verdicts.settle(turn, run_id, index, modified)


def _verdict(
    packet: Packet, run: Run, index: int, carried: dict[str, Any]
) -> tuple[str, str | None, str, list[object]]:
    """(verdict, cause, by, files that a RETURN says it modified)."""
    if packet.signal == "ERROR":
        return "error", signals.cause_text(carried.get("context")), AGENT, []
    result = carried.get("result")
    verdict, cause, given = signals.classify(result)
    if verdict == "success" and run.spec.work(index).after == "0-failures":
        failed = signals.tests_verdict(result)
        if failed is not None:
            verdict, cause = "fail", failed
    return verdict, cause, AGENT if given else ENGINE, signals.files_modified(result)


def _answer_of_agent(turn: Turn, packet: Packet, run_id: str, entry_id: str) -> None:
    """The answer of an agent that an entry was handed to: it decides only what can be undone (§7, "Target")."""
    entry = turn.world.entry(entry_id)
    if entry is None or entry.state != "open":
        _reject(turn, packet, "closed", run_id, entry=entry_id)
        return
    if packet.sender != entry.held_by:
        _reject(turn, packet, "sender", run_id, entry=entry_id)
        return
    run, carried = turn.run(run_id), packet.carried()
    profile = run.profiles.get(packet.sender)
    lacks = profile is not None and not may_send(profile, packet.signal)
    answer = carried.get("result") if carried is not None and packet.signal == "RETURN" else None
    chosen = answer.get("option_id") if isinstance(answer, dict) else None
    offered = next((option for option in entry.options if option.id == chosen), None)
    args = answer.get("args") if isinstance(answer, dict) else None
    wrong = packet.signal == "RETURN" and (offered is None or signals.check_args(args, offered.args_schema) is not None)
    if carried is None or lacks or wrong:
        _reject(turn, packet, "violation", run_id, entry=entry_id)
        return
    fields: dict[str, Any] = {"packet": packet.id, "signal": packet.signal, "entry": entry_id, "from": packet.sender}
    if packet.signal == "RETURN" and offered is not None:
        if run.spec.reversible and not run.spec.external_effect:
            turn.emit(run_id, "signal_accepted", **fields)
            _decide(turn, entry, packet.sender, offered.id, args or None, answer)
            return
        fields["recommends"] = offered.id
    if packet.signal in ("RETURN", "ESCALATE", "BLOCKED_ON", "ERROR") and entry.told_at is None:
        fields.update(tells=True, notices=entries.announce(turn, entry))
    turn.emit(run_id, "signal_accepted", **fields)


def _decide(turn: Turn, entry: Entry, agent: str, option: str, args: Any, answer: Any) -> None:
    note = answer.get("note") if isinstance(answer, dict) else None
    decision = Decision(
        verb=("edit" if args else "choose") if entry.agents_own(option) else option,
        option_id=option,
        args=args,
        note=note if isinstance(note, str) else None,
        decided_by=agent,
        channel="signal",
        decided_at=turn.at,
    )
    turn.emit(entry.run_id, "entry_decided", entry=entry.id, decision=decision.plain(), agent=True)
