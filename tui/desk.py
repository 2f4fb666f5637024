"""What the reading thread hands to the screens: everything about a folder that they show, decided once.

Plain data without Textual: the event loop only draws it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from core.acp.history import Records
from core.acp.judging import NOTHING, About
from core.acp.live import Judged
from core.acp.model import Event, Setup, State
from core.acp.reader import Snapshot, locate
from core.acp.timeline import Timeline
from core.acp.view import (
    Gate,
    NextAction,
    Option,
    Person,
    editable,
    gates,
    next_action,
    options,
    people,
)
from core.finding import Finding
from tui.settings import Who


@dataclass(frozen=True, slots=True)
class Marked:
    """What changed in a document: numbers (from 1) of new lines, how many went away, since when."""

    added: tuple[int, ...]
    removed: int
    since: str


@dataclass(frozen=True, slots=True)
class Past:
    """The moment that a view of the past shows: its event, and where that stands among so many."""

    index: int
    event: Event
    count: int


@dataclass(frozen=True)
class FolderView:
    """A folder as one person sees it at one moment. `me` is None until they said who they are there."""

    snapshot: Snapshot
    me: str | None
    next: NextAction | None
    options: Mapping[str, Option]
    gates: tuple[Gate, ...]
    people: tuple[Person, ...]
    editable: tuple[str, ...]
    findings: tuple[Finding, ...]
    at: datetime
    reviewed: int | None = None
    """The index of this person's latest review."""
    about: About = field(default=NOTHING, repr=False)
    """What was found about the lines of the log."""
    records: Records | None = field(default=None, repr=False)
    """What is remembered of the folder, for whoever looks into its past."""
    marks: Mapping[str, Marked] = field(default_factory=dict)
    past: Past | None = None

    @property
    def path(self) -> Path:
        return self.snapshot.path

    @property
    def setup(self) -> Setup | None:
        return self.snapshot.setup

    @property
    def state(self) -> State:
        return self.snapshot.state

    @property
    def participants(self) -> tuple[str, ...]:
        return self.snapshot.setup.participants if self.snapshot.setup is not None else ()

    @property
    def my_turn(self) -> bool:
        return self.past is None and self.me is not None and self.me in self.state.waiting

    @property
    def title(self) -> str:
        """The objective, else the folder's name."""
        setup = self.snapshot.setup
        return setup.objective if setup is not None and setup.objective else self.path.name


def look(judged: Judged, who: Who, now: datetime) -> FolderView:
    """A judged folder as a person sees it; one that cannot be read has findings and nothing else."""
    snapshot = judged.snapshot
    if snapshot.setup is None:
        return FolderView(snapshot, None, None, {}, (), (), (), judged.findings, now)
    me = who.of(snapshot.path, snapshot.setup.participants)
    return FolderView(
        snapshot,
        me,
        next_action(snapshot, me) if me is not None else None,
        {option.draft.event: option for option in options(snapshot, me, now)} if me is not None else {},
        tuple(gates(snapshot)),
        tuple(people(snapshot, judged.acts)),
        editable(snapshot, me, judged.frozen) if me is not None else (),
        judged.findings,
        now,
        judged.reviewed.get(me) if me is not None else None,
        judged.about,
        judged.records,
    )


def look_back(view: FolderView, line: Timeline, index: int) -> FolderView:
    """The same folder as it was right after the event at `index`: nothing can be done there, nothing is marked."""
    snapshot = line.at(index)
    event = line.events[index]
    found = [locate(item, view.path) for item in (*snapshot.folded.problems, *snapshot.problems)]
    return replace(
        view,
        snapshot=snapshot,
        next=NextAction("nothing is written in the past.", None, None),
        options={},
        gates=tuple(gates(snapshot)),
        people=tuple(replace(person, since=None) for person in people(snapshot)),
        editable=(),
        findings=tuple(dict.fromkeys(found)),
        marks={},
        past=Past(index, event, len(line.events)),
    )
