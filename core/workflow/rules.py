"""The pure engine: `evolve(world, event) -> world`, `decide(world, input, now) -> events` (docs/specs/workflows.md §4).

No clock, no file, no lock: the moment and every fact come in, events come out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.workflow import answers, intake, starting, timers
from core.workflow.acts import AbortRun, StartRun, abort, start
from core.workflow.answers import Answer, Outcome, Settlement
from core.workflow.evolve import evolve
from core.workflow.signals import Packet
from core.workflow.state import ENGINE_STREAM, Event, World
from core.workflow.turn import Facts, Turn

__all__ = ["Decided", "Tick", "decide", "evolve"]


@dataclass(frozen=True)
class Tick:
    """One tick. `packets` in order of arrival: a packet, or (id, sender) of a line that is none.

    `broken`: spec files that cannot be used now, `{file: {workflow, digest, codes}}`; None leaves them alone.
    """

    packets: Sequence[Packet | tuple[str, str | None]] = ()
    broken: Mapping[str, Mapping[str, Any]] | None = None


Command = Tick | StartRun | AbortRun | Answer | Settlement


@dataclass(frozen=True)
class Decided:
    """What a command comes to: the events in order, the world after them, and the answer to whoever asked."""

    events: list[Event]
    world: World
    outcome: Outcome = field(default_factory=lambda: Outcome("accepted"))
    run_id: str | None = None


def decide(
    world: World, command: Command, now: int, facts: Facts | None = None, agents: frozenset[str] = frozenset()
) -> Decided:
    """Events of a command at a moment (milliseconds). A refusal has none, but for a refused start, which is noted."""
    turn = Turn(world, now, facts)
    outcome, run_id = Outcome("accepted"), None
    if isinstance(command, Tick):
        _tick(turn, command)
    elif isinstance(command, StartRun):
        outcome, run_id = start(turn, command)
    elif isinstance(command, AbortRun):
        outcome = abort(turn, command)
    elif isinstance(command, Settlement):
        outcome = answers.settle_proposal(turn, command, agents)
    else:
        outcome = answers.decide_entry(turn, command, agents)
    return Decided(turn.events, turn.world, outcome, run_id)


def _tick(turn: Turn, tick: Tick) -> None:
    """The order of §6, as far as it is decisions: 1 specs, 2 signals, 3 timers, 4 answers, 5 runs."""
    _specs(turn, tick.broken)
    for packet in tick.packets:
        if isinstance(packet, Packet):
            intake.take_in(turn, packet)
        else:
            intake.malformed(turn, *packet)
    timers.run_due(turn)
    timers.recheck(turn)
    answers.apply_decided(turn)
    starting.advance(turn)


def _specs(turn: Turn, broken: Mapping[str, Mapping[str, Any]] | None) -> None:
    known = turn.facts.specs
    for run in turn.world.in_order() if known is not None else ():
        now = (known or {}).get(run.workflow)
        if run.open and not run.spec_changed and now != run.spec_hash:
            turn.emit(run.run_id, "spec_changed", spec_hash=now)
    if broken is None:
        return
    for file, facts in sorted(broken.items()):
        known = turn.world.disabled.get(file)
        if known is None or known["digest"] != facts["digest"]:
            turn.emit(ENGINE_STREAM, "spec_disabled", file=file, **facts)
    for file in sorted(set(turn.world.disabled) - set(broken)):
        turn.emit(ENGINE_STREAM, "spec_enabled", file=file)
