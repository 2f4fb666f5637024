"""A plan in one line: its contract and its journal's tail, all of it only when it is small (docs/design.md §3)."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Final

from core import journal
from core.delegation import reader
from core.delegation.canon import moment
from core.delegation.contract import Chain
from core.delegation.model import CHAIN, CONTRACT, JOURNAL
from core.delegation.place import at
from core.delegation.progress import status
from core.files import Root, explain
from core.finding import Finding, Refused, error
from core.workspace import Health, Item

WHOLE_JOURNAL: Final = 64 * 1024
_TAIL: Final = 16 * 1024


def summarise(path: Path) -> Item:
    """`phase` is draft (no contract, or none that was approved), active or completed; never raises.

    A journal that is read by its tail alone is taken for approved and not completed.
    """
    try:
        with Root(path) as root:
            return _summarise(path, root)
    except Refused as exc:
        return _item(path, path.name, None, None, exc.findings[0], "unreadable")
    except OSError as exc:
        return _item(path, path.name, None, None, explain(exc, JOURNAL), "unreadable")


def _summarise(path: Path, root: Root) -> Item:
    if not root.exists(CONTRACT) and not root.exists(CHAIN):
        return _item(path, path.name, "draft", None)
    chain = reader.read_chain(root, at(path))
    title = chain.live.document.title or chain.live.plan
    signature = root.signature(JOURNAL)
    if signature is not None and signature.size > WHOLE_JOURNAL:
        last, bad = _end(root, signature.size)
        problem = (
            error("journal_damaged", "journal.ndjson holds damaged lines near its end", None, JOURNAL) if bad else None
        )
        return _item(path, title, "active", last, problem)
    record = reader.read_open(root, at(path), keep=True)
    damage = record.damaged[0] if record.damaged else None
    problem = error("journal_damaged", damage.sentence, None, damage.file) if damage is not None else None
    last = moment(record.entries[-1].event.get("ts")) if record.entries else None
    return _item(path, title, _phase(chain, record), last, problem)


def _phase(chain: Chain, record: reader.Record) -> str:
    live, progress = chain.live, record.progress
    if live.id not in progress.approvals:
        return "draft"
    return "completed" if all(status(progress, live, name) == "completed" for name in live.tasks) else "active"


def _end(root: Root, size: int) -> tuple[datetime | None, bool]:
    """When the last whole line was written, and whether a line before it is damaged."""
    fd, _ = root.open_read(JOURNAL)
    try:
        data = os.pread(fd, _TAIL, size - _TAIL)
    finally:
        os.close(fd)
    made = [journal.decode(line)[0] for line in data.split(b"\n")[1:-1] if line.strip()]
    last = next((item for item in reversed(made) if item is not None), None)
    return moment(last.get("ts")) if last is not None else None, None in made


def _item(
    path: Path,
    title: str,
    phase: str | None,
    since: datetime | None,
    problem: Finding | None = None,
    health: Health = "ok",
) -> Item:
    if problem is not None and health == "ok":
        health = "damaged"
    return Item("plan", path, title, phase, None, (), (), since, health, 0, None, None, problem)
