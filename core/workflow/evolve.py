"""`evolve(world, event) -> world`: what every logged event means (docs/specs/workflows.md §4, "Log events").

Pure: no clock, no file, no lock. Decisions are made elsewhere; an event carries everything that the state needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from core.workflow import times
from core.workflow.evolve_learning import evolve_learning
from core.workflow.matrix import read_profile
from core.workflow.model import CHANNELS, HOLD, Decision, Entry, Notified, Option, Spec
from core.workflow.persistent import Vector
from core.workflow.state import ENGINE_STREAM, FAR, LEARNING_STREAM, Event, Item, Run, Step, World, item_result
from core.workflow.texts import COUNTED_AS_BLOCK

Record = Mapping[str, Any]


def evolve(world: World, event: Event) -> World:
    """The world after an event; the world itself is left as it was."""
    record = event.record
    at = times.read(record["at"]) or 0
    if event.stream == LEARNING_STREAM:
        made = world._replace(learning=evolve_learning(world.learning, record))
        for name in ("proposal", "rule"):
            if event.name in (f"{name}_opened", f"{name}_made"):
                made = _numbered(made, record[name]["id"])
    elif event.stream == ENGINE_STREAM:
        made = _engine(world, record)
    elif event.name == "run_started":
        made = _started(world, event.stream, record, at)
    else:
        made = _in_run(world, event.stream, record, at)
    return made if at <= made.last_at else made._replace(last_at=at)


def _numbered(world: World, made_id: str) -> World:
    """Ids are `<word>-<day>-<number>`; the highest number of a day is remembered."""
    day, number = made_id.rsplit("-", 1)
    return world._replace(days={**world.days, day: max(world.days.get(day, 0), int(number))})


def _engine(world: World, record: Record) -> World:
    name = record["event"]
    world = world._replace(engine_seq=max(world.engine_seq, record["seq"]))
    if name == "start_refused":
        return world._replace(refused=(*world.refused, record))
    if name == "packet_rejected":
        return world._replace(stray=(*world.stray, record), seen=world.seen.with_item(record["packet"], True))
    if name == "spec_disabled":
        return world._replace(disabled={**world.disabled, record["file"]: record})
    if name == "spec_enabled":
        return world._replace(disabled={k: v for k, v in world.disabled.items() if k != record["file"]})
    if name in ("trigger_skipped", "condition_fired"):
        at = times.read(record["at"]) or 0
        return world._replace(fired={**world.fired, record["key"]: max(at, world.fired.get(record["key"], 0))})
    return world


def _started(world: World, run_id: str, record: Record, at: int) -> World:
    spec = Spec.model_validate(record["spec"], strict=False)
    run = Run(
        run_id=run_id,
        number=record["number"],
        workflow=record["workflow"],
        spec=spec,
        spec_hash=record["spec_hash"],
        mode=record["mode"],
        parent=record["parent"],
        by=record["by"],
        started_at=at,
        profiles={name: read_profile(value) for name, value in record["agents"].items()},
        granted=record["grant"] or record["mode"] != "swarm",
        seq=record["seq"],
        last_at=at,
        items=Vector((Item(),) * len(spec.items)),
        tally={"not_started": len(spec.items)},
    )
    order = (*world.order, run_id)
    if world.order and world.runs[world.order[-1]].number > run.number:
        numbers = {**{name: world.runs[name].number for name in world.order}, run_id: run.number}
        order = tuple(sorted(order, key=lambda name: numbers[name]))
    runs = {**world.runs, run_id: run}
    return world._replace(runs=runs, order=order, started=max(world.started, run.number))


def _in_run(world: World, run_id: str, record: Record, at: int) -> World:
    run, name = world.runs[run_id], record["event"]
    handler = _HANDLERS.get(name)
    if handler is not None:
        run = handler(run, record, at)
    run = run._replace(seq=record["seq"], last_at=at)
    packet = record.get("packet")
    seen = world.seen if packet is None else world.seen.with_item(packet, True)
    world = world._replace(runs={**world.runs, run_id: run}, seen=seen)
    if name == "entry_opened":
        entry_id = record["entry"]["id"]
        world = _numbered(world, entry_id)
        return _deadlocked(world._replace(entry_run=world.entry_run.with_item(entry_id, run_id)), record)
    if name == "entry_decided":
        return world._replace(decided=(*world.decided, record["entry"]))
    if name in ("entry_applied", "entry_cancelled") and record["entry"] in world.decided:
        return world._replace(decided=tuple(one for one in world.decided if one != record["entry"]))
    return world


def _deadlocked(world: World, record: Record) -> World:
    """The other of two blocks that wait for each other learns of it from this one's opening."""
    other = record["entry"].get("deadlock_with")
    run = world.runs.get(world.entry_run.get(other) or "") if other else None
    entry = run.entries.get(other) if run is not None and other is not None else None
    if run is None or entry is None:
        return world
    run = run._replace(entries=run.entries.with_item(entry.id, entry.model_copy(update={"deadlock": True})))
    return world._replace(runs={**world.runs, run.run_id: run})


def _set(run: Run, index: int, item: Item) -> Run:
    """One item replaced, with everything that is counted over items."""
    old = run.items[index]
    tally, before, after = run.tally, item_result(old, run.steps), item_result(item, run.steps)
    if before != after:
        tally = {**tally, before: tally.get(before, 0) - 1, after: tally.get(after, 0) + 1}
    untouched = ("queued", "closed")
    live = run.live + (item.state not in untouched) - (old.state not in untouched)
    fresh = run.fresh + _fresh(item) - _fresh(old)
    flight, waiting = run.flight, run.waiting
    if (item.state == "open") != (old.state == "open"):
        flight = flight | {index} if item.state == "open" else flight - {index}
    waits = item.state in ("ready", "backoff")
    if waits != (index in waiting):
        waiting = waiting | {index} if waits else waiting - {index}
    return run._replace(
        items=run.items.with_item(index, item),
        tally=tally,
        live=live,
        fresh=fresh,
        flight=flight,
        waiting=waiting,
        next_due=min(run.next_due, item.due) if item.state in ("open", "backoff") else run.next_due,
    )


def _fresh(item: Item) -> int:
    """1 for an item that was looked at, never spawned and is not closed."""
    return int(not item.steps and item.state not in ("queued", "closed"))


def _spawned(run: Run, record: Record, at: int) -> Run:
    index, packet = record["index"], record["sends"]
    old = run.items[index]
    step = Step(
        index,
        run.spec.items[index],
        packet["to"],
        record["attempt"],
        record["resumes"],
        at,
        rule=record.get("rule"),
    )
    item = old._replace(
        state="open",
        attempt=record["attempt"],
        resumes=record["resumes"],
        steps=(*old.steps, len(run.steps)),
        due=times.read(packet["deadline"]) or FAR,
        rule=record.get("rule"),
        next_context=None,
        checkpoint=old.checkpoint if old.attempt == record["attempt"] else None,
        hold=None,
        entry=None,
    )
    run = run._replace(
        steps=run.steps.added(step),
        cursor=max(run.cursor, index + 1),
        retries=run.retries + (record["why"] == "retry" and record["attempt"] > 1),
    )
    return _set(run, index, item)


def _accepted(run: Run, record: Record, at: int) -> Run:
    entry = run.entries.get(record.get("entry") or "")
    if entry is None:
        return run
    update: dict[str, Any] = {}
    if record.get("recommends"):
        update["options"] = recommend(entry.options, record["recommends"])
    if record.get("tells"):
        update.update(_told(run, entry, record["at"]))
    return _entry(run, entry, update)


def _told(run: Run, entry: Entry, at: str) -> dict[str, Any]:
    """People are notified of an entry now."""
    return {"told_at": at, "notified": entry.notified + notices(run.spec, at)}


def notices(spec: Spec, at: str) -> tuple[Notified, ...]:
    """One notice to each channel of the spec; `ok` says whether somebody serves it."""
    return tuple(Notified(channel=name, at=at, ok=name in CHANNELS) for name in spec.on_escalate.notify)


def _entry(run: Run, entry: Entry, update: Mapping[str, Any]) -> Run:
    made = entry.model_copy(update=dict(update))
    opened, rechecks = run.open_entries, run.rechecks
    if made.state != "open":
        opened, rechecks = opened.without(entry.id), rechecks - {entry.id}
    elif entry.id not in opened:
        opened = opened.with_item(entry.id, True)
        if made.kind == "block" and isinstance(made.context, dict) and "recheck" in made.context:
            rechecks = rechecks | {entry.id}
    parks = made.parks == "run" and made.state in ("open", "decided")
    parked = entry.parks == "run" and entry.state in ("open", "decided") and entry.id in run.entries
    return run._replace(
        entries=run.entries.with_item(entry.id, made),
        open_entries=opened,
        rechecks=rechecks,
        parking=run.parking + parks - parked,
        next_due=min(run.next_due, entry_due(made)),
    )


def recommend(options: tuple[Option, ...], wanted: str | None) -> tuple[Option, ...]:
    """The options with that one recommended and no other."""
    return tuple(item.model_copy(update={"recommended": item.id == wanted}) for item in options)


def entry_due(entry: Entry) -> int:
    """When an open entry next wants something by itself: a deadline, a reminder, the end of a snooze or of a hold."""
    if entry.state != "open":
        return FAR
    found = [times.read(entry.remind_at), times.read(entry.snoozed_until)]
    if not entry.overdue:
        found.append(times.read(entry.deadline_at))
    if entry.told_at is None:
        found.append((times.read(entry.opened_at) or 0) + HOLD)
    return min((moment for moment in found if moment is not None), default=FAR)


def _checkpoint(run: Run, record: Record, at: int) -> Run:
    index = record["index"]
    item = run.items[index]._replace(checkpoint=record["value"])
    if record.get("deadline"):
        item = item._replace(due=times.read(record["deadline"]) or item.due)
    return _set(run, index, item)


def _rejected(run: Run, record: Record, at: int) -> Run:
    return run._replace(rejected=run.rejected + 1)


def _closed_step(run: Run, record: Record, at: int) -> Run:
    number, index, result = record["step"], record["index"], record["result"]
    old = run.steps[number]
    step = old._replace(
        signal_in=record["signal"],
        result=result,
        duration_ms=record["duration_ms"],
        cause=record["cause"],
        by=record["by"],
        closed=True,
        recorded=record.get("recorded"),
    )
    before, steps = old.result, run.steps.with_item(number, step)
    tally = run.tally
    if before != result:
        tally = {**tally, before: tally.get(before, 0) - 1, result: tally.get(result, 0) + 1}
    breakers = run.breakers
    key = record["breaker"]
    if result in ("fail", "error"):
        breakers = {**breakers, key: breakers.get(key, 0) + 1}
    elif result == "success":
        breakers = {**breakers, key: 0}
    run = run._replace(steps=steps, tally=tally, breakers=breakers, errors=run.errors + (result == "error"))
    final = record.get("final", False)
    return _set(run, index, run.items[index]._replace(state="closed" if final else "settling", due=FAR))


def _effect(run: Run, record: Record, at: int) -> Run:
    if record["effect"] != "retry":
        return run
    index = record["index"]
    item = run.items[index]
    planned = item._replace(
        state="backoff",
        due=times.read(record["due"]) or at,
        why="retry",
        auto_retries=item.auto_retries + 1,
        hold=None,
        entry=None,
    )
    return _set(run, index, planned)


def _opened(run: Run, record: Record, at: int) -> Run:
    entry = Entry.model_validate(record["entry"], strict=False)
    index = entry.item_index
    met = entry.kind == "block" or entry.cause in COUNTED_AS_BLOCK
    run = run._replace(
        entry_ids=run.entry_ids.added(entry.id),
        escalations=run.escalations + (entry.kind != "block"),
        blocks=run.blocks + met,
        entry_gate=entry.id if index is None else run.entry_gate,
    )
    run = _entry(run, entry, {})
    if index is None or entry.parks == "none":
        return run
    item = run.items[index]._replace(state="parked", entry=entry.id, hold=record.get("hold"), due=FAR)
    if record.get("block") is not None:
        item = item._replace(last_block=(record["block"], False))
    return _set(run, index, item)._replace(cursor=max(run.cursor, index + 1))


def _decided(run: Run, record: Record, at: int) -> Run:
    entry = run.entries.get(record["entry"])
    if entry is None:
        return run
    return _entry(
        run, entry, {"state": "decided", "decision": Decision.model_validate(record["decision"], strict=False)}
    )


def _deferred(run: Run, record: Record, at: int) -> Run:
    entry = run.entries.get(record["entry"])
    return run if entry is None else _entry(run, entry, {"snoozed_until": record["until"]})


def _applied(run: Run, record: Record, at: int) -> Run:
    entry = run.entries.get(record["entry"])
    if entry is None:
        return run
    state = entry.state if entry.state == "expired" else "applied"
    run = _entry(run, entry, {"state": state, "applied_at": record["at"]})
    if record.get("granted"):
        run = run._replace(granted=True)
    then = record.get("then")
    return run if then is None or entry.item_index is None else _then(run, entry.item_index, then)


def _then(run: Run, index: int, then: Record) -> Run:
    """What an answer or a rule makes of an item: it may start, with another attempt or the same one resumed."""
    old = run.items[index]
    unblocked = then.get("unblocked", False)
    item = old._replace(
        state="ready",
        why=then["why"],
        rule=then.get("rule"),
        next_context=then.get("context"),
        gate_passed=old.gate_passed or then.get("gate", False),
        credentials=old.credentials or then.get("credentials", False),
        last_block=(old.last_block[0], True) if unblocked and old.last_block is not None else old.last_block,
        entry=None,
        hold=then,
        due=FAR,
    )
    return _set(run, index, item)


def _expired(run: Run, record: Record, at: int) -> Run:
    entry = run.entries.get(record["entry"])
    if entry is None:
        return run
    decision = Decision.model_validate(record["decision"], strict=False)
    return _entry(run, entry, {"state": "expired", "decision": decision, "overdue": True})


def _cancelled(run: Run, record: Record, at: int) -> Run:
    entry = run.entries.get(record["entry"])
    return run if entry is None else _entry(run, entry, {"state": "cancelled", "closed_by": dict(record["closed_by"])})


def _reminded(run: Run, record: Record, at: int) -> Run:
    entry = run.entries.get(record["entry"])
    if entry is None:
        return run
    if record["why"] == "hold":
        return _entry(run, entry, _told(run, entry, record["at"]))
    update: dict[str, Any] = {
        "reminders": entry.reminders + 1,
        "overdue": entry.overdue or record["overdue"],
        "notified": entry.notified + notices(run.spec, record["at"]),
        "remind_at": record["next"],
    }
    if record["woken"]:
        update["snoozed_until"] = None
    return _entry(run, entry, update)


def _closed_item(run: Run, record: Record, at: int) -> Run:
    index, by = record["index"], record["by"]
    item = run.items[index]._replace(state="closed", due=FAR, hold=None, next_context=None)
    if record["result"] is not None:
        item = item._replace(closed_result=record["result"])
    if by is not None:
        item = item._replace(by=by)
        if item.steps:
            last = item.steps[-1]
            run = run._replace(steps=run.steps.with_item(last, run.steps[last]._replace(by=by)))
    run = _set(run, index, item)._replace(cursor=max(run.cursor, index + 1))
    if record.get("resolved"):
        run = run._replace(breakers={**run.breakers, record["breaker"]: 0})
    if record.get("cursor") is not None:
        run = run._replace(cursor=max(run.cursor, record["cursor"]))
    return run


def _breaker_reset(run: Run, record: Record, at: int) -> Run:
    return run._replace(breakers={**run.breakers, record["breaker"]: 0})


def _rule_fired(run: Run, record: Record, at: int) -> Run:
    index = record["index"]
    run = run._replace(auto_resolved=run.auto_resolved + 1)
    run = _set(run, index, run.items[index]._replace(rule_fired=True))
    return run if record.get("then") is None else _then(run, index, record["then"])


def _spec_changed(run: Run, record: Record, at: int) -> Run:
    return run._replace(spec_changed=True)


def _aborted(run: Run, record: Record, at: int) -> Run:
    return run._replace(aborted={"verb": "abort", "option_id": "abort", "decided_by": record["by"]})


def _completed(run: Run, record: Record, at: int) -> Run:
    return run._replace(completed_at=at, outcome=record["outcome"])


_HANDLERS: Mapping[str, Callable[[Run, Record, int], Run]] = {
    "spawn_intended": _spawned,
    "signal_accepted": _accepted,
    "signal_rejected": _rejected,
    "step_closed": _closed_step,
    "effect_run": _effect,
    "checkpoint_kept": _checkpoint,
    "entry_opened": _opened,
    "entry_decided": _decided,
    "entry_deferred": _deferred,
    "entry_applied": _applied,
    "entry_expired": _expired,
    "entry_cancelled": _cancelled,
    "reminder_due": _reminded,
    "item_closed": _closed_item,
    "breaker_reset": _breaker_reset,
    "rule_fired": _rule_fired,
    "spec_changed": _spec_changed,
    "run_aborted": _aborted,
    "run_completed": _completed,
}
