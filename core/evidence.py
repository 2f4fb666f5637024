"""What a workspace holds beside its collaborations: failure codes that were met, receipts (docs/specs/console.md §2).

Read again only when a file changed. Nothing here raises: what cannot be read is a finding of its own view.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from core.finding import Finding, Refused
from core.workspace import Place

if TYPE_CHECKING:
    from core.governance.view import Trust
    from core.inbox import InboxItem
    from core.triage.model import Catalog, Seen

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
class Receipts:
    """The receipts of a workspace, each with its trust."""

    root: Path
    known: tuple[Trust, ...]
    findings: tuple[Finding, ...]

    @property
    def inbox(self) -> list[InboxItem]:
        from core.governance import view

        return view.inbox_items(self.root, self.known)


View = Vocabulary | Receipts


class Evidence:
    """Views of stores, kept as long as nothing in them changes."""

    def __init__(self) -> None:
        self._known: dict[Place, tuple[Marks, View]] = {}

    def look(self, places: Iterable[Place]) -> tuple[View, ...]:
        """The views of these stores, in their order; what is gone is forgotten."""
        made = {place: self._view(place) for place in places}
        self._known = {place: entry for place, entry in self._known.items() if place in made}
        return tuple(made.values())

    def _view(self, place: Place) -> View:
        marks = _marks(place)
        known = self._known.get(place)
        if known is not None and known[0] == marks:
            return known[1]
        made = vocabulary(place.path) if place.kind == "triage" else receipts(place.path)
        self._known[place] = (marks, made)
        return made


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


def receipts(root: Path) -> Receipts:
    """Every receipt below `<root>/receipts`, its references followed."""
    from core.governance import boundary, store, view
    from core.triage.store import Place as Workspace

    try:
        catalog = Workspace(root).load()
        return Receipts(root, tuple(view.trusts(store.receipts(root / boundary.RECEIPTS, catalog))), ())
    except Refused as exc:
        return Receipts(root, (), exc.findings)


def _marks(place: Place) -> Marks:
    """What tells that a store changed; a promotion or alias leaves its trace in the folder itself."""
    folder = place.path / place.kind
    codes = place.path / "triage" / "failure_codes.json"
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
