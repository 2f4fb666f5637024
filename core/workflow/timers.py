"""What is due by itself: timeouts, deadlines, reminders, holds, expiries, rechecks (docs/specs/workflows.md §6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from core.workflow import answers, entries, paths, times, verdicts
from core.workflow.evolve import entry_due
from core.workflow.filling import files_of
from core.workflow.model import ENGINE, HOLD, Decision, Entry
from core.workflow.state import FAR, LEARNING_STREAM, Run, World
from core.workflow.turn import Facts, Turn, notice


class Due(NamedTuple):
    """A timer: when, run (by number), item (-1 without), and what it is about."""

    at: int
    run: int
    item: int
    kind: str
    run_id: str
    name: str


def of_run(run: Run) -> Iterator[Due]:
    """The timers of one run, whether due or not."""
    for index in run.flight:
        yield Due(run.items[index].due, run.number, index, "timeout", run.run_id, "")
    for index in run.waiting:
        if run.items[index].state == "backoff":
            yield Due(run.items[index].due, run.number, index, "backoff", run.run_id, "")
    for name in run.open_entries:
        entry = run.entries.get(name)
        if entry is None:
            continue
        due = entry_due(entry)
        if due < FAR:
            index = -1 if entry.item_index is None else entry.item_index
            yield Due(due, run.number, index, "entry", run.run_id, name)


def of_learning(world: World) -> Iterator[Due]:
    for proposal in world.learning.proposals.values():
        if proposal.state == "open":
            yield Due(times.read(proposal.expires_at) or FAR, FAR, -1, "proposal", "", proposal.id)


def following(world: World, after: int) -> int | None:
    """The first timer later than a moment, or None."""
    found = [due.at for run in world.runs.values() for due in of_run(run) if due.at > after]
    found += [due.at for due in of_learning(world) if due.at > after]
    return min(found, default=None)


def run_due(turn: Turn) -> None:
    """Everything that is due, by due time, run, index."""
    due = [
        timer
        for run in turn.world.runs.values()
        if run.next_due <= turn.now
        for timer in of_run(run)
        if timer.at <= turn.now
    ]
    due += [timer for timer in of_learning(turn.world) if timer.at <= turn.now]
    for timer in sorted(due):
        if timer.kind == "timeout":
            _timeout(turn, timer)
        elif timer.kind == "entry":
            entry = turn.world.entry(timer.name)
            if entry is not None and entry.state == "open":
                _entry(turn, entry)
        elif timer.kind == "proposal":
            turn.emit(LEARNING_STREAM, "proposal_archived", proposal=timer.name)
    _look_again(turn)


def _look_again(turn: Turn) -> None:
    """The moment of a run's next timer is only a lower bound: once it has passed it is found anew."""
    runs = dict(turn.world.runs)
    passed = [run for run in runs.values() if run.next_due <= turn.now]
    for run in passed:
        runs[run.run_id] = run._replace(next_due=exact_next_due(run, turn.now))
    if passed:
        turn.world = turn.world._replace(runs=runs)


def exact_next_due(run: Run, now: int) -> int:
    """The earliest timer of a run that is still to come: what is due already waits for something else."""
    return min((due.at for due in of_run(run) if due.at > now), default=FAR)


def _timeout(turn: Turn, timer: Due) -> None:
    item = turn.item(timer.run_id, timer.item)
    if item.state != "open" or item.due > turn.now:
        return
    if verdicts.close_step(turn, timer.run_id, timer.item, "error", signal=None, cause="timeout", by=ENGINE):
        verdicts.settle(turn, timer.run_id, timer.item)


def _entry(turn: Turn, entry: Entry) -> None:
    """A deadline, a reminder, the end of a snooze or of a hold: at most one reminder a tick."""
    spec, now = turn.run(entry.run_id).spec.on_escalate, turn.now
    deadline, remind = times.read(entry.deadline_at), times.read(entry.remind_at)
    snoozed = times.read(entry.snoozed_until)
    late = deadline is not None and deadline <= now and not entry.overdue
    if late and spec.on_deadline != "remind" and entry.obeys(spec.on_deadline):
        _expire(turn, entry, spec.on_deadline)
        return
    if entry.told_at is None and (times.read(entry.opened_at) or 0) + HOLD <= now:
        told = entries.announce(turn, entry)
        turn.emit(entry.run_id, "reminder_due", entry=entry.id, why="hold", notices=told)
    woken = snoozed is not None and snoozed <= now
    again = entry.overdue and remind is not None and remind <= now
    if not (late or woken or again):
        return
    overdue = entry.overdue or late
    number = entry.reminders + 1
    channels = spec.notify
    turn.emit(
        entry.run_id,
        "reminder_due",
        entry=entry.id,
        why="deadline" if late else "again" if again else "snooze",
        overdue=overdue,
        woken=woken,
        next=times.text(now + spec.remind_every) if overdue else None,
        notices=[
            notice(f"{entry.id}/{number}", name, "urgent", "REMINDER", entry.run_id, entry.id) for name in channels
        ],
    )


def _expire(turn: Turn, entry: Entry, option: str) -> None:
    decision = Decision(
        verb=option,
        option_id=option,
        decided_by="deadline",
        channel=ENGINE,
        decided_at=turn.at,
    )
    turn.emit(entry.run_id, "entry_expired", entry=entry.id, decision=decision.plain())
    expired = turn.world.entry(entry.id)
    if expired is not None:
        answers.apply_entry(turn, expired)


def recheck(turn: Turn) -> None:
    """Blocks that say how to see that they are over are tested at every tick (§7)."""
    if not any(run.rechecks for run in turn.world.runs.values()):
        return
    held = locks(turn.world)
    for run in turn.world.in_order():
        if not run.open or run.aborted is not None:
            continue
        for name in sorted(run.rechecks):
            entry = run.entries.get(name)
            if entry is None or entry.deadlock or not isinstance(entry.context, Mapping):
                continue
            if _over(entry.context.get("recheck"), turn.facts, held):
                decision = Decision(
                    verb="unblocked",
                    option_id="unblocked",
                    decided_by="recheck",
                    channel=ENGINE,
                    decided_at=turn.at,
                )
                turn.emit(run.run_id, "entry_decided", entry=name, decision=decision.plain())


def _over(test: object, facts: Facts, held: paths.Held) -> bool:
    if not isinstance(test, Mapping) or len(test) != 1:
        return False
    (kind, value), *_ = test.items()
    path = paths.normal(value) if isinstance(value, str) else None
    if path is None:
        return False
    return facts.exists(path) if kind == "file_exists" else kind == "lock_free" and held.free(path)


def locks(world: World) -> paths.Held:
    """The files of every open SPAWN, across runs."""
    held = paths.Held()
    for run in world.runs.values():
        for index in run.flight:
            held.take(files_of(run, index))
    return held
