"""What an act would come to, decided on what lies there and written nowhere: previews (docs/specs/console.md §2)."""

from __future__ import annotations

from pathlib import Path

from core.clock import Clock
from core.files import Root
from core.workflow import rules, times
from core.workflow.acts import AbortRun, StartRun
from core.workflow.answers import Answer
from core.workflow.closed import ClosedRuns
from core.workflow.layout import SCRATCH
from core.workflow.loader import Loaded
from core.workflow.rules import Command, Decided, Tick
from core.workflow.serving import running
from core.workflow.specs import RootProfiles, Specs
from core.workflow.state import World
from core.workflow.store import Store
from core.workflow.transports import NoCommands
from core.workflow.triggers import Surroundings, look
from core.workflow.turn import Facts, Turn


class Planner:
    """A root as it is now, for one decision; a context manager. Not shared between threads."""

    def __init__(self, path: Path, clock: Clock) -> None:
        """Raises Refused when the folder cannot be opened."""
        self.root, self._clock = Root(path, SCRATCH), clock
        self._profiles = RootProfiles(self.root)
        self._specs = Specs(self.root, lambda name: self._profiles(name) is not None)
        self._store = Store(self.root, readonly=True, closed=ClosedRuns(self.root))
        self._store.refresh()
        self.world: World = self._store.world
        self._assumed: World | None = None

    def __enter__(self) -> Planner:
        return self

    def __exit__(self, *_: object) -> None:
        self.root.close()

    def assume(self, made: Decided) -> None:
        """What is decided next comes after this."""
        self.world = self._assumed = made.world

    @property
    def served(self) -> bool:
        """Whether a daemon is at work here."""
        return running(self.root)

    def spec(self, workflow: str) -> Loaded | None:
        """The file of a workflow as it is now."""
        return self._specs.find(workflow)

    def start(self, workflow: str, mode: str, grant: bool, parent: str | None, by: str) -> Decided:
        """What `collab workflow start` would come to."""
        return self.decide(StartRun(workflow, self.spec(workflow), self._profiles, mode, grant, parent, by))

    def tick(self) -> tuple[Decided, list[str]]:
        """What one tick would come to, and the workflows that would start by themselves in it."""
        self._store.need_all()
        self._store.refresh()
        self.world = self._store.world
        made = self.decide(Tick(tuple(self._store.unread), self._specs.broken()))
        surroundings = Surroundings(self.root)
        specs = {item.workflow: item.spec for item in self._specs.all().values() if item.spec is not None}
        turn = Turn(self.world, times.of(self._clock.now()), self._facts())
        starts, _ = look(turn, specs, surroundings, surroundings.remembered())
        return made, [start.workflow for start in starts if self.world.open_run(start.workflow) is None]

    def decide(self, command: Command) -> Decided:
        """Events and answer of a command at this moment."""
        if isinstance(command, Answer):
            self._store.need_entries([command.entry])
        elif isinstance(command, AbortRun):
            self._store.need([command.run])
        if self._assumed is None:
            self.world = self._store.world
        now = times.of(self._clock.now())
        return rules.decide(self.world, command, now, self._facts(), self._profiles.names())

    def _facts(self) -> Facts:
        commands = NoCommands(self.root, lambda: running(self.root))
        return Facts(self._specs.hashes(), self.root.exists, commands.standing)
