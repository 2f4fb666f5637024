"""Reads a plan without locking or mending anything (docs/specs/delegation.md §1, §4, §8)."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from core import journal
from core.delegation import canon
from core.delegation.contract import Chain, Invalid, chain
from core.delegation.lock import holder
from core.delegation.model import ARCHIVE, CHAIN, CONTRACT, JOURNAL
from core.delegation.place import Place
from core.delegation.progress import Entry, Progress, evolve, seq_of
from core.files import DOCUMENT_CAP, Root
from core.finding import Refused, error


@dataclass(frozen=True, slots=True)
class Damage:
    """A line that is not UTF-8, not JSON or no object. Line 0 stands for a file that cannot be read at all."""

    file: str
    line: int
    offset: int
    cause: str

    @property
    def sentence(self) -> str:
        return f"{self.file}, line {self.line}: {self.cause}" if self.line else f"{self.file}: {self.cause}"


@dataclass(slots=True)
class Record:
    """A plan as read. `torn` is the live journal's bad last line; `unframed` says a good one lacks its newline.

    `size` is the live journal's size in bytes, None when there is no file; `head_seq` also counts archive names.
    """

    place: Place
    chain: Chain
    progress: Progress
    damaged: list[Damage] = field(default_factory=list)
    torn: Damage | None = None
    unframed: bool = False
    size: int | None = None
    live: list[Entry] = field(default_factory=list)
    head_seq: int = 0
    entries: list[Entry] = field(default_factory=list)

    @property
    def plan(self) -> str:
        return self.chain.live.plan


def read_chain(root: Root, place: Place) -> Chain:
    """The plan's contracts. Raises Refused (`contract_invalid`) naming the file and the field."""
    documents: dict[str, Any] = {}
    names = [f"{CHAIN}/{name}" for name in root.names(CHAIN) if fnmatch.fnmatch(name, "*.json") and name[0] != "."]
    for name in (CONTRACT, *names):
        if name == CONTRACT and names and not root.exists(name):
            continue
        content = root.read(name, DOCUMENT_CAP)
        if content.problem is not None:
            raise Refused(error("contract_invalid", content.problem.cause, None, name))
        try:
            documents[name] = canon.parse_json(content.data or b"")
        except ValueError as exc:
            raise Refused(error("contract_invalid", f"{name} is not JSON: {exc}", None, name)) from None
    try:
        made = chain(documents)
    except Invalid as exc:
        raise Refused(error("contract_invalid", str(exc), None, CONTRACT)) from None
    if made.live.plan != place.name:
        cause = f"contract.plan is {made.live.plan}, but the folder is called {place.name}"
        raise Refused(error("contract_invalid", cause, None, made.live.name))
    return made


def archives(names: list[str]) -> list[tuple[int, int, str]]:
    """(first seq, last seq, name) of the retired journals, oldest first."""
    found = []
    for name in names:
        match = ARCHIVE.fullmatch(name)
        if match is not None:
            found.append((int(match[1]), int(match[2]), name))
    return sorted(found)


def read(place: Place, until: int | None = None, keep: bool = False) -> Record:
    """The whole plan, or what it was after seq `until`; with `keep` its events are kept. Raises Refused."""
    with Root(place.plan) as root:
        return read_open(root, place, until, keep)


def read_open(root: Root, place: Place, until: int | None = None, keep: bool = False) -> Record:
    """As `read`, in a folder that is open already."""
    contracts = read_chain(root, place)
    before, logs, live = _journals(root)
    record = Record(place, contracts, Progress(contracts))
    record.head_seq = max((last for _, last, _ in before), default=0)
    for name, log in logs:
        if log.problem is not None:
            record.damaged.append(Damage(name, 0, 0, log.problem.cause))
        _take(record, name, lines_of(name, log), until, keep, closed=True)
    if live.problem is not None and live.problem.code != "file_missing":
        raise Refused(live.problem)
    _take(record, JOURNAL, lines_of(JOURNAL, live), until, keep, closed=False)
    record.size = live.signature.size if live.signature is not None else None
    record.unframed = record.torn is None and bool(live.pending)
    return record


def _journals(
    root: Root, tries: int = 5
) -> tuple[list[tuple[int, int, str]], list[tuple[str, journal.Log]], journal.Log]:
    before = archives(root.names())
    logs = [(name, journal.read(root, name)) for _, _, name in before]
    live = journal.read(root, JOURNAL)
    # A roll between two of these reads would show its lines twice or not at all.
    if tries and archives(root.names()) != before:
        return _journals(root, tries - 1)
    return before, logs, live


def items(name: str, lines: Iterable[journal.Line]) -> Iterator[Entry | Damage]:
    """Terminated lines as what they are."""
    for line in lines:
        if line.record is not None:
            yield Entry(name, line.number, line.record)
        else:
            yield Damage(name, line.number, line.offset, line.problem or "unreadable")


def lines_of(name: str, log: journal.Log) -> Iterator[Entry | Damage]:
    """Each line that is not blank, the unterminated last one too."""
    yield from items(name, log.lines)
    if log.pending.strip():
        record, problem = journal.decode(log.pending)
        number = log.mark.lines + 1
        if record is not None:
            yield Entry(name, number, record)
        else:
            yield Damage(name, number, log.mark.offset, problem or "unreadable")


def _take(
    record: Record, name: str, lines: Iterator[Entry | Damage], until: int | None, keep: bool, closed: bool
) -> None:
    found = list(lines)
    if found and not closed and isinstance(last := found[-1], Damage):
        record.torn = last
        found.pop()
    for item in found:
        if isinstance(item, Damage):
            record.damaged.append(item)
            continue
        seq = seq_of(item.event)
        record.head_seq = max(record.head_seq, seq or 0)
        if until is not None and (seq is None or seq > until):
            continue
        evolve(record.progress, item.event)
        if not closed:
            record.live.append(item)
        if keep:
            record.entries.append(item)


def lock_json(place: Place, now: datetime) -> dict[str, Any] | None:
    """Who holds the plan's lock, for a projection."""
    with Root(place.plan) as root:
        owner = holder(root)
    if owner is None:
        return None
    age = owner.age(now)
    return {"identity": owner.identity, "age_s": None if age is None else max(0, int(age)), "stale": owner.stale(now)}
