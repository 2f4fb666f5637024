"""Projections of a failure vocabulary: sightings, what waits, the catalogue (docs/specs/governance.md §2)."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from core.clock import parse
from core.files import sha256
from core.finding import Finding, Refused, warning
from core.strict import at
from core.triage import store
from core.triage.model import STATUSES, Catalog, Entry, Observation, Resolution, Seen, Status
from core.triage.store import OBSERVATIONS, Place

if TYPE_CHECKING:
    from core.inbox import InboxItem


@dataclass(frozen=True, slots=True)
class Listing:
    """Every minted code that was met here, recurring ones first, and the lines that could not be read."""

    codes: tuple[Seen, ...]
    findings: tuple[Finding, ...]


def summarise(
    observations: Iterable[Observation], catalog: Catalog, resolutions: Mapping[str, Resolution]
) -> list[Seen]:
    """Sightings by minted code: recurring, new, then what is settled; the latest first within each."""
    grouped: dict[str, list[Observation]] = {}
    for item in observations:
        if item["minted"] is not None:
            grouped.setdefault(item["minted"], []).append(item)
    made = [_seen(code, items, catalog, resolutions.get(code)) for code, items in grouped.items()]
    made.sort(key=lambda seen: seen.code)
    made.sort(key=lambda seen: seen.last_seen, reverse=True)
    made.sort(key=lambda seen: STATUSES.index(seen.status))
    return made


def _seen(code: str, items: Sequence[Observation], catalog: Catalog, done: Resolution | None) -> Seen:
    status: Status = "recurring" if len(items) > 1 else "new"
    target = None
    if done is not None:
        status, target = done.action, done.target
    elif code in catalog.aliases:
        status, target = "aliased", catalog.aliases[code]
    first, last = items[0], items[-1]
    return Seen(
        code, first["layer"], status, len(items), first["at"], last["at"], target, last["signal"], last.get("by")
    )


def listing(place: Place, name: str = OBSERVATIONS) -> Listing:
    """The minted codes of a workspace. Raises Refused when its catalogue or its observations cannot be read."""
    catalog = place.load()
    good: list[Observation] = []
    damaged: list[Finding] = []
    for line in store.lines(place.root):
        if line.observation is not None:
            good.append(line.observation)
        else:
            cause = f"{OBSERVATIONS} line {line.number} is no observation; it is not counted"
            damaged.append(warning("observation_damaged", cause, None, at(name, (line.number - 1,))))
    codes = list(dict.fromkeys(item["minted"] for item in good if item["minted"] is not None))
    return Listing(tuple(summarise(good, catalog, store.resolutions(place.root, codes))), tuple(damaged))


def waiting(root: Path) -> list[Seen]:
    """What the inbox asks for: minted codes seen more than once that nobody has promoted or aliased.

    Never raises: an unreadable catalogue or file is what `collab triage list` tells about.
    """
    try:
        return [seen for seen in listing(Place(root)).codes if seen.status == "recurring"]
    except Refused:
        return []


def inbox_items(root: Path, recurring: Sequence[Seen] | None = None) -> list[InboxItem]:
    """The same as the inbox shows it; the command asks in a terminal for what a promotion needs."""
    from core.inbox import InboxItem

    token = sha256(str(root).encode("utf-8", "surrogateescape"))[:12]
    return [
        InboxItem(
            f"tri-{token}-{seen.code}",
            "triage",
            "decide",
            root,
            seen.code,
            seen.by or "",
            f"seen {seen.sightings} times and unknown: {seen.signal[:200]}",
            parse(seen.last_seen),
            None,
            "promote it to a code, or alias it",
            f"collab triage promote {seen.code} --root {shlex.quote(str(root))}",
            f"triage:{seen.code}",
        )
        for seen in (waiting(root) if recurring is None else recurring)
    ]


def entries(catalog: Catalog, layer: str | None = None, text: str | None = None) -> list[Entry]:
    """The entries of one layer, or that speak of a text (any case), in file order."""
    wanted = (text or "").lower()
    return [
        entry
        for entry in catalog.entries
        if (layer is None or entry.layer == layer) and (not wanted or wanted in _words(entry))
    ]


def _words(entry: Entry) -> str:
    parts = (entry.code, entry.layer, entry.cause, entry.next_command or "", *entry.match, *entry.not_this)
    return "\n".join(parts).lower()
