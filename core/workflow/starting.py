"""The end of a run, its gates, and what is started next (docs/specs/workflows.md §4, §5, §6 step 5)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from core.files import LINE_CAP
from core.workflow import entries, paths, templates, timers, times, verdicts
from core.workflow.filling import files_of, variables
from core.workflow.model import CONSOLE, ENGINE, Work
from core.workflow.state import Item, Run
from core.workflow.turn import Turn, notice, packet, spawn_id

_ROOM = 64 * 1024


def advance(turn: Turn) -> None:
    """Each open run in order of start: its end, its gates, its SPAWN intents."""
    held: paths.Held | None = None
    for run in turn.world.in_order():
        if not run.open or _end(turn, run.run_id):
            continue
        if run.aborted is None:
            held = held or timers.locks(turn.world)
            _start(turn, run.run_id, held)


def _end(turn: Turn, run_id: str) -> bool:
    run = turn.run(run_id)
    if run.flight:
        return False
    if run.aborted is not None:
        _complete(turn, run, "aborted")
        return True
    if run.live or run.cursor < run.total:
        return False
    done = [name for name, count in run.tally.items() if count and name != "not_started"]
    outcome = "success" if done in ([], ["success"]) else "partial" if "success" in done else "failed"
    _complete(turn, run, outcome)
    return True


def _complete(turn: Turn, run: Run, outcome: str) -> None:
    made = run.spec.on_complete
    fields: dict[str, Any] = {
        "outcome": outcome,
        "total": run.total,
        "counts": {name: count for name, count in run.tally.items() if count},
    }
    if made is not None and (outcome != "aborted" or made.on_abort):
        payload = templates.fill_all(made.payload, variables(run, None))
        if outcome == "aborted":
            payload = {"result": "aborted"}
        to = made.to or run.parent
        fields["sends"] = packet(f"{run.run_id}/complete", turn.at, to, "RETURN", payload, run.run_id)
    if outcome != "aborted":
        fields["notices"] = [notice(run.run_id, CONSOLE, "info", "DONE", run.run_id)]
    turn.emit(run.run_id, "run_completed", **fields)


def _start(turn: Turn, run_id: str, held: paths.Held) -> None:
    if not turn.run(run_id).granted:
        if turn.run(run_id).entry_gate is None:
            entries.open_entry(turn, run_id, None, "gate", reasons=("entry",))
        return
    while True:
        run = turn.run(run_id)
        if run.parking:
            return
        index = _next(run, turn.now, turn)
        if index is None:
            return
        files = files_of(run, index)
        if not all(held.free(path) for path in files):
            return
        if _asks_first(turn, run, index):
            continue
        _spawn(turn, run, index, files)
        held.take(files)


def _next(run: Run, now: int, turn: Turn) -> int | None:
    """The lowest index that may start now: a free slot, its backoff over, its agent's processes not elsewhere."""
    used = len(run.flight) + sum(run.items[index].state == "backoff" for index in run.waiting)
    free = used < run.spec.max_parallel
    found = []
    for index in run.waiting:
        item = run.items[index]
        if item.due <= now if item.state == "backoff" else free:
            found.append(index)
    if free and run.cursor < run.total and (run.spec.grammar != "chain" or not run.live):
        found.append(run.cursor)
    for index in sorted(found):
        if turn.facts.commands(run.spec.work(index).agent) != "elsewhere":
            return index
    return None


def gate_reasons(run: Run, work: Work) -> list[str]:
    """Why a person is asked before an item, in the order of §5."""
    made = []
    if run.mode == "manual":
        made.append("mode_manual")
    if run.spec.external_effect and run.mode != "swarm":
        made.append("external_effect")
    if work.zone != "project":
        made.append(f"zone_{work.zone}")
    if work.before == "human":
        made.append("declared")
    return made


def _asks_first(turn: Turn, run: Run, index: int) -> bool:
    """Open a gate or a block before the item, if one stands there; the item then waits behind it."""
    item, work = run.items[index], run.spec.work(index)
    pending = _pending(item)
    if not item.gate_passed and not item.steps:
        reasons = gate_reasons(run, work)
        if reasons:
            hold = {"at": "start", "pending": pending}
            entries.open_entry(turn, run.run_id, index, "gate", reasons=reasons, hold=hold)
            return True
    if work.before == "credentials" and not item.credentials and not item.steps:
        hold = {"at": "credentials", "pending": pending}
        verdicts.block(turn, run.run_id, index, cause="credentials", hold=hold)
        return True
    if turn.facts.commands(work.agent) == "refused":
        hold = {"at": "command", "pending": pending}
        verdicts.block(turn, run.run_id, index, cause="commands_not_allowed", hold=hold)
        return True
    return False


def _pending(item: Item) -> dict[str, Any]:
    """What the item is about to start as."""
    if item.state == "backoff":
        return {"why": "retry", "attempt": item.attempt + 1, "resumes": 0}
    if item.state == "ready" and item.hold is not None:
        return {key: value for key, value in item.hold.items() if key != "unblocked"}
    return {"why": "first", "attempt": 1, "resumes": 0}


def _spawn(turn: Turn, run: Run, index: int, files: list[str]) -> None:
    item, work = run.items[index], run.spec.work(index)
    pending = _pending(item)
    attempt, resumes = pending["attempt"], pending["resumes"]
    made_id = spawn_id(run.run_id, index, attempt, resumes)
    context: dict[str, Any] = {
        "workflow": run.workflow,
        "item": run.spec.items[index],
        "index": index,
        "total": run.total,
        "attempt": attempt,
        "resumes": resumes,
        **(pending.get("context") or {}),
    }
    if item.checkpoint is not None and attempt == item.attempt:
        context["checkpoint"] = _bounded(item.checkpoint, made_id)
    if run.spec.grammar == "chain":
        for key, value in (("task", work.task), ("agents", list(work.agents)), ("input_contract", work.input_contract)):
            if value:
                context[key] = value
        previous = _previous(run, index)
        if previous is not None:
            context["previous"] = _bounded(previous, made_id)
    sent = packet(
        made_id,
        turn.at,
        work.agent,
        "SPAWN",
        {"context": context},
        run.run_id,
        index,
        attempt,
        deadline=times.text(turn.now + run.spec.timeout),
        scope={"files": files, "zone": work.zone},
        return_to=ENGINE,
    )
    fields: dict[str, Any] = {"index": index, "attempt": attempt, "resumes": resumes, "why": pending["why"]}
    if pending.get("rule") is not None:
        fields["rule"] = pending["rule"]
    turn.emit(run.run_id, "spawn_intended", **fields, sends=sent)


def _previous(run: Run, index: int) -> Any:
    """The result of the last step that ended before this one began, in a chain."""
    for number in range(len(run.steps) - 1, -1, -1):
        step = run.steps[number]
        if step.place != index and step.closed:
            return step.recorded
    return None


def _bounded(value: Any, made_id: str) -> Any:
    """What an agent said, unless two of them would not fit one line of a log."""
    size = len(json.dumps(value))
    if size <= LINE_CAP // 2 - _ROOM:
        return value
    note: Mapping[str, Any] = {"omitted_bytes": size, "see": f"ambient/signals.jsonl, before {made_id}"}
    return dict(note)
