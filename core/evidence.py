"""What a workspace holds beside its collaborations: failure codes that were met, receipts (docs/specs/console.md §2).

Read again only when a file changed. Nothing here raises: what cannot be read is a finding of its own view.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from core.clock import SYSTEM, Clock
from core.files import explain
from core.finding import Finding, Refused
from core.workspace import STORES, Item, Place

if TYPE_CHECKING:
    from core.delegation.desk import PlanDesk, PlanView
    from core.governance.store import Kept, Shelf
    from core.governance.view import Trust
    from core.inbox import InboxItem
    from core.triage.model import Catalog, Seen
    from core.workflow.desk import Desk, Workflows

RESTS = 5
"""So many times as long as it took to read is a store left alone by whoever watches."""

Marks = tuple[object, ...]


@dataclass(frozen=True)
class Vocabulary:
    """The failure vocabulary of a workspace. `catalog` is None when the one in use is not valid."""

    root: Path
    catalog: Catalog | None
    codes: tuple[Seen, ...]
    findings: tuple[Finding, ...]

    @property
    def inbox(self) -> list[InboxItem]:
        from core.triage import view

        return view.inbox_items(self.root, [seen for seen in self.codes if seen.status == "recurring"])


@dataclass(frozen=True)
class Stated:
    """A status of a workspace and the command that follows it; None when nothing follows, or it is not valid."""

    kept: Kept
    command: str | None
    reason: str


@dataclass(frozen=True)
class Receipts:
    """The receipts of a workspace, each with its trust, and the statuses that lie among them."""

    root: Path
    known: tuple[Trust, ...]
    findings: tuple[Finding, ...]
    statuses: tuple[Stated, ...] = ()

    @property
    def inbox(self) -> list[InboxItem]:
        from core.governance import view

        return [
            *view.inbox_items(self.root, self.known),
            *view.status_items(self.root, [one.kept for one in self.statuses]),
        ]


View: TypeAlias = "Vocabulary | Receipts | Workflows | PlanView"


class Evidence:
    """Views of stores, kept as long as nothing in them changes. Not shared between threads."""

    def __init__(self, clock: Clock = SYSTEM, open_age: timedelta | None = None, live: bool = False) -> None:
        """`open_age`: from when on an open delegation asks for a person; `live` spreads over looks what costs time."""
        self._clock, self._open_age, self._live = clock, open_age, live
        self._known: dict[Place, tuple[Marks, View]] = {}
        self._desks: dict[Path, Desk] = {}
        self._plans: dict[Path, PlanDesk] = {}
        self._shelves: dict[Path, Shelf] = {}
        self._rest: dict[Place, float] = {}

    def look(self, places: Iterable[Place]) -> tuple[View, ...]:
        """The views of these stores, in their order; what is gone is forgotten."""
        made = {place: self._view(place) for place in places}
        self._known = {place: entry for place, entry in self._known.items() if place in made}
        for path in [path for path in self._desks if Place("workflow", path) not in made]:
            self._desks.pop(path).close()
        for path in [path for path in self._plans if Place("plan", path) not in made]:
            self._plans.pop(path).close()
        return tuple(made.values())

    def close(self) -> None:
        """Let go of the folders that are followed."""
        while self._desks:
            self._desks.popitem()[1].close()
        while self._plans:
            self._plans.popitem()[1].close()

    def _view(self, place: Place) -> View:
        known = self._known.get(place)
        if known is not None and self._live and place.kind in STORES and time.monotonic() < self._rest.get(place, 0.0):
            return known[1]
        marks, started = _marks(place), time.monotonic()
        if known is not None and known[0] == marks:
            return known[1]
        if place.kind == "workflow":
            made: View = self._workflows(place.path)
        elif place.kind == "plan":
            made = self._plan(place.path)
        elif place.kind == "triage":
            made = vocabulary(place.path)
        else:
            made = self._receipts(place.path)
        self._known[place] = (marks, made)
        # What takes long to read is not read at every change, so that what is quick is shown at once.
        self._rest[place] = time.monotonic() + RESTS * (time.monotonic() - started)
        return made

    def _workflows(self, path: Path) -> Workflows:
        from core.workflow.desk import Desk, unreadable

        try:
            if path not in self._desks:
                self._desks[path] = Desk(path, self._clock)
            return self._desks[path].look()
        except (Refused, OSError) as exc:
            desk = self._desks.pop(path, None)
            if desk is not None:
                desk.close()
            found = exc.findings if isinstance(exc, Refused) else (explain(exc, str(path)),)
            return unreadable(path, found, self._clock)

    def _receipts(self, path: Path) -> Receipts:
        if path not in self._shelves:
            from core.governance import boundary, store

            self._shelves[path] = store.Shelf(path / boundary.RECEIPTS, path)
        return receipts(path, self._shelves[path])

    def _plan(self, path: Path) -> PlanView:
        if path not in self._plans:
            from core.delegation.desk import CHECKED_AT_ONCE, PlanDesk
            from core.delegation.waiting import OPEN_AGE
            from core.governance import boundary, plan_boundary

            code_of = partial(plan_boundary.code_of, boundary.root_for(path))
            age, slice = self._open_age or OPEN_AGE, CHECKED_AT_ONCE if self._live else None
            self._plans[path] = PlanDesk(path, self._clock, code_of, age, slice)
        return self._plans[path].look()


def folders(place: Place) -> tuple[Path, ...]:
    """The folders of which a change may change the view of a store."""
    if place.kind == "workflow":
        from core.workflow.layout import AGENTS, AMBIENT, RUNS, WORKFLOWS

        return tuple(place.path / name for name in (AMBIENT, RUNS, WORKFLOWS, AGENTS))
    if place.kind == "plan":
        return (place.path, place.path / "contracts")
    return (place.path / place.kind,)


def listed(views: Iterable[View]) -> list[Item]:
    """What these stores add to the list, a line each."""
    return [item for view in views for item in getattr(view, "items", ())]


def inbox_items(views: Iterable[View]) -> list[InboxItem]:
    """What these stores ask of people."""
    return [item for view in views for item in view.inbox]


def vocabulary(root: Path) -> Vocabulary:
    """The catalogue in use and every minted code with its sightings."""
    from core.triage import view
    from core.triage.store import Place as Workspace

    place, catalog = Workspace(root), None
    try:
        catalog = place.load()
        made = view.listing(place)
    except Refused as exc:
        return Vocabulary(root, catalog, (), exc.findings)
    return Vocabulary(root, catalog, made.codes, (*catalog.warnings, *made.findings))


def receipts(root: Path, shelf: Shelf | None = None) -> Receipts:
    """Every receipt below `<root>/receipts`, its references followed, and every status.

    A shelf that was looked at before has read the rest already.
    """
    from core.governance import boundary, store, view
    from core.triage.store import Place as Workspace

    try:
        found, kept = (shelf or store.Shelf(root / boundary.RECEIPTS, root)).look(Workspace(root).load())
        return Receipts(root, tuple(view.trusts(found)), (), tuple(_stated(one) for one in kept))
    except Refused as exc:
        return Receipts(root, (), exc.findings)


def _stated(kept: Kept) -> Stated:
    from core.governance import escalation

    if kept.made is None:
        return Stated(kept, None, "invalid_agent_status_json")
    made = escalation.follow(kept.made, kept.findings)
    return Stated(kept, made.command, made.reason)


def _marks(place: Place) -> Marks:
    """What tells that a store changed; a promotion or alias leaves its trace in the folder itself."""
    codes = place.path / "triage" / "failure_codes.json"
    if place.kind == "workflow":
        from core.workflow.desk import marks

        return (_mark(codes), *marks(place.path))
    if place.kind == "plan":
        from core.delegation.desk import marks as plan_marks

        return plan_marks(place.path)
    folder = place.path / place.kind
    if place.kind == "triage":
        return (_mark(folder), _mark(folder / "observations.jsonl"), _mark(codes))
    return (_mark(codes), *_marks_below(folder))


def _mark(path: Path) -> Marks:
    try:
        info = os.lstat(path)
    except (OSError, ValueError):
        return ()
    return (info.st_ino, info.st_size, info.st_mtime_ns)


def _marks_below(folder: Path) -> Sequence[object]:
    found: list[object] = []
    for at, folders, files in os.walk(folder):
        folders.sort()
        found += [(at, name, _mark(Path(at, name))) for name in sorted(files)]
    return found
