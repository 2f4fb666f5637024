"""The stage of a simulation: a temporary root, a virtual clock, an engine that may die, and people (§10)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from core.workflow import timers
from core.workflow.engine import Engine
from core.workflow.script import Script
from core.workflow.signals_in import Chance
from core.workflow.specs import FixedProfiles
from core.workflow.state import World

_DUE_CAP = 100_000


class Crash(Exception):
    """The engine process dies here."""


@dataclass
class VirtualClock:
    """Milliseconds since 1970; moved by the simulation alone."""

    moment: int

    def now(self) -> datetime:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=self.moment)


CHANCE = Chance(
    token=lambda number: f"tok-{number}",
    suffix=lambda number: f"{number:04x}",
    packet=lambda number: f"sim-signal-{number}",
)
"""Ids in order of making."""


@dataclass
class Stage:
    """The temporary root and everything that acts on it."""

    path: Path
    script: Script
    profiles: FixedProfiles
    workflow: str
    clock: VirtualClock
    replies: int = 0
    crash: str | None = None
    dead: bool = False
    last_tick: int = -1
    appended: int = 0

    def __post_init__(self) -> None:
        self.people = self._made()
        self.engine = self._made()

    def _made(self) -> Engine:
        return Engine(
            self.path,
            clock=self.clock,
            chance=CHANCE,
            profiles=self.profiles,
            probe=self._probe,
            stems=False,
            triggers=False,
        )

    def _probe(self, point: str) -> None:
        if point == self.crash:
            raise Crash(point)

    def close(self) -> None:
        self.people.close()
        self.engine.close()

    def written(self) -> int:
        """How many lines of the engine's own files have been appended so far."""
        return self.appended + self.people.store.appended + self.engine.store.appended

    def tick(self, crash: str | None = None) -> bool:
        """One tick, unless the engine is dead. Returns whether it died in it."""
        if self.dead:
            return False
        self.last_tick = self.clock.moment
        self.crash = crash
        try:
            self.engine.tick()
        except Crash:
            self.dead = True
        finally:
            self.crash = None
        return self.dead

    def restart(self) -> None:
        self.appended += self.engine.store.appended
        self.engine.close()
        self.engine = self._made()
        self.dead = False

    def run_until(self, moment: int) -> None:
        """Tick at every timer that is due before a moment; leave the clock there."""
        for _ in range(_DUE_CAP):
            due = None if self.dead else self._next_due()
            if due is None or due >= moment:
                break
            self.clock.moment = max(due, self.clock.moment)
            self.tick()
        self.clock.moment = moment

    def _next_due(self) -> int | None:
        """The next timer that the last tick has not met. People may have made some since."""
        return timers.following(self.look(), self.last_tick)

    def look(self) -> World:
        """The world as the files tell it now."""
        with self.people.store.locked():
            return self.people.store.world

    def entries(self) -> list[str]:
        """Ids of the escalations in order of making."""
        found = [entry for run in self.look().runs.values() for entry in run.entries.values()]
        return [entry.id for entry in sorted(found, key=lambda entry: (entry.opened_at, entry.id))]
