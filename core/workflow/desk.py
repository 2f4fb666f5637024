"""A workflow root as people see it, decided once and handed over whole (docs/specs/console.md §2, Workflows)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from core.clock import Clock
from core.files import Root
from core.finding import Finding, Refused
from core.inbox import InboxItem
from core.workflow import times, view_inbox, view_learning
from core.workflow.layout import AGENTS, AMBIENT, RUNS, WORKFLOWS
from core.workflow.loader import Loaded
from core.workflow.model import Entry
from core.workflow.naming import Names
from core.workflow.serving import running
from core.workflow.specs import RootProfiles, Specs
from core.workflow.state import World
from core.workflow.view import Reader, RunRow
from core.workflow.view_inbox import moment
from core.workflow.view_learning import ProposalView
from core.workspace import Item

LEARNED_BY = ("ambient/agents.toml", "ambient/engine.jsonl", "ambient/learning.jsonl")


@dataclass(frozen=True, eq=False)
class Workflows:
    """Everything that is shown about a root. `served`: a daemon is at work there; `names` calls failures."""

    root: Path
    world: World
    rows: tuple[RunRow, ...]
    proposals: tuple[ProposalView, ...]
    specs: Mapping[str, Loaded]
    readiness: Mapping[str, Mapping[str, bool]]
    served: bool
    findings: tuple[Finding, ...]
    names: Names
    clock: Clock = field(repr=False)

    @property
    def now(self) -> int:
        """Engine time of this moment, in milliseconds."""
        return max(times.of(self.clock.now()), self.world.last_at)

    @property
    def inbox(self) -> list[InboxItem]:
        return view_inbox.inbox_items(self.world, self.rows, self.root, self.now)

    @property
    def open_entries(self) -> list[Entry]:
        """What waits for an answer, by deadline, then age; what is hidden until later or held by an agent is not."""
        now = self.now
        found = [
            entry
            for run in self.world.in_order()
            for name in run.open_entries
            if (entry := run.entries.get(name)) is not None and view_inbox.asked(entry, now)
        ]
        return sorted(found, key=lambda one: (one.deadline_at or "~", one.opened_at, one.id))

    def row(self, run_id: str) -> RunRow | None:
        """A run in one line."""
        return next((row for row in self.rows if row.run_id == run_id), None)

    @property
    def items(self) -> list[Item]:
        """The root, and each of its open runs, as lines of the list."""
        return list(_items(self))


def _items(desk: Workflows) -> Iterator[Item]:
    opened = [row for row in desk.rows if row.completed_at is None]
    asked = desk.open_entries
    problem = next((one for one in desk.findings if one.severity == "error"), None)
    last = max((row.since for row in desk.rows), default=None)
    names, many = len({loaded.workflow for loaded in desk.specs.values()}), len(desk.rows)
    title = f"{desk.root.name}: {names} workflow{'s' if names != 1 else ''}, {many} run{'s' if many != 1 else ''}"
    phase = "waiting" if asked else "running" if opened else "idle"
    made = _line("workflow", desk.root, title, phase, _people(asked), moment(last))
    yield made if problem is None else replace(made, health="damaged", problem=problem)
    for row in opened:
        mine = _people(entry for entry in asked if entry.run_id == row.run_id)
        title = f"{row.run_id} {row.done}/{row.total}"
        yield _line("run", desk.root, title, row.outcome, mine, moment(row.since))


def _line(kind: str, path: Path, title: str, phase: str, waiting: tuple[str, ...], since: datetime | None) -> Item:
    return Item(kind, path, title, phase, None, (), waiting, since, "ok", 0, None, None)


def _people(asked: Iterable[Entry]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(entry.target for entry in asked))


class Desk:
    """Follows a root and says how it stands; writes nothing. Not shared between threads."""

    def __init__(self, path: Path, clock: Clock) -> None:
        """Raises Refused when the folder cannot be opened."""
        self.path, self._clock = path, clock
        self._reader = Reader(path, whole=False)
        profiles = RootProfiles(self._reader.root)
        self._specs = Specs(self._reader.root, lambda name: profiles(name) is not None)

    def close(self) -> None:
        self._reader.close()

    def look(self) -> Workflows:
        """How the root stands now. Raises Refused or OSError when it cannot be read at all."""
        self._reader.look()
        # What a proposal rests on is shown with it.
        world = self._reader.with_evidence()
        found = list(self._reader.problems)
        now = max(times.of(self._clock.now()), world.last_at)
        rows = self._reader.rows(now)
        return Workflows(
            self.path,
            world,
            tuple(rows),
            tuple(view_learning.proposals(world)),
            dict(self._specs.all()),
            view_learning.readiness(rows),
            running(self._reader.root),
            tuple(found),
            Names(self.path),
            self._clock,
        )


def unreadable(path: Path, findings: Sequence[Finding], clock: Clock) -> Workflows:
    """A root that cannot be read: its findings, and nothing else."""
    return Workflows(path, World(), (), (), {}, {}, False, tuple(findings), Names(path), clock)


def marks(path: Path) -> tuple[object, ...]:
    """What tells that a root changed: its logs, specs and profiles, and whether a daemon is at work."""
    found: list[object] = [_mark(path / name) for name in LEARNED_BY]
    for folder, ending in ((RUNS, ".jsonl"), (WORKFLOWS, ".yml"), (AGENTS, ".md")):
        found += _listed(path / folder, ending)
    return (*found, served(path))


def served(path: Path) -> bool:
    """Whether a daemon of this root is at work."""
    try:
        with Root(path, f"{AMBIENT}/.tmp") as root:
            return running(root)
    except (Refused, OSError):
        return False


def _listed(folder: Path, ending: str) -> Sequence[object]:
    try:
        with os.scandir(folder) as entries:
            known = [entry for entry in entries if entry.name.endswith(ending)]
            return sorted((entry.name, *_signs(entry.stat(follow_symlinks=False))) for entry in known)
    except (OSError, ValueError):
        return []


def _mark(path: Path) -> tuple[int, ...]:
    try:
        return _signs(os.lstat(path))
    except (OSError, ValueError):
        return ()


def _signs(info: os.stat_result) -> tuple[int, int, int]:
    return info.st_ino, info.st_size, info.st_mtime_ns
