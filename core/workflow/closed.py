"""An index of runs that are over, beside their logs: whoever looks need not fold them again (docs/design.md §6).

`ambient/.closed.jsonl`, a line a run, the last one counts. It says nothing that the logs do not say, and a log that is
longer, shorter or younger than its line is read itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from core import journal
from core.files import Root, Signature
from core.journal import Follower
from core.workflow.layout import log_file
from core.workflow.rows import RunRow, run_row
from core.workflow.shapes import NOT_ONE
from core.workflow.state import Run, World

FILE: Final = "ambient/.closed.jsonl"
_STALE: Final = 100
"""Lines that are no longer the last of their run, beyond as many as count, before the file is written anew."""


@dataclass(frozen=True, slots=True)
class Past:
    """A run that is over: its row, the ids of its questions, and what tells that its log is still the same."""

    row: RunRow
    entries: tuple[str, ...]
    size: int
    mtime: int
    last_at: int

    def fits(self, signature: Signature | None) -> bool:
        """Whether the log is still as it was."""
        return signature is not None and (signature.size, signature.mtime) == (self.size, self.mtime)


def over(run: Run, world: World) -> bool:
    """Whether nothing of a run is open: it has ended, nothing is asked, and every answer was applied."""
    return (
        not run.open and not run.open_entries and all(world.entry_run.get(name) != run.run_id for name in world.decided)
    )


def past_of(run: Run, signature: Signature) -> Past:
    entries = tuple(run.entry_ids)
    return Past(run_row(run, run.last_at), entries, signature.size, signature.mtime, run.last_at)


def _line(past: Past) -> bytes:
    made = {"row": past.row.as_json(), "entries": list(past.entries), "size": past.size, "mtime": past.mtime}
    return journal.encode({"run_id": past.row.run_id, "last_at": past.last_at, **made})


def _read(record: Mapping[str, Any]) -> Past | None:
    try:
        row = RunRow.read(record["row"])
        entries = tuple(str(name) for name in record["entries"])
        return Past(row, entries, int(record["size"]), int(record["mtime"]), int(record["last_at"]))
    except NOT_ONE:
        return None


class ClosedRuns:
    """The index as one reader knows it. Lines that cannot be read are as if they were not there."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._follower = Follower(root, FILE, verify_cap=0)
        self._lines = 0
        self.known: dict[str, Past] = {}
        self._runs: dict[str, str] = {}

    def refresh(self) -> None:
        """Take in what was added."""
        news = self._follower.poll()
        if news.reset is not None:
            self.known, self._runs, self._lines = {}, {}, 0
        for line in news.lines:
            self._lines += 1
            past = None if line.record is None else _read(line.record)
            if past is not None:
                self.known[past.row.run_id] = past
                self._runs.update(dict.fromkeys(past.entries, past.row.run_id))

    def fits(self, run_id: str) -> bool:
        """Whether a run is known and its log is still the same."""
        past = self.known.get(run_id)
        return past is not None and past.fits(self._root.signature(log_file(run_id)))

    def run_of(self, entry: str) -> str | None:
        """The run that a question belonged to."""
        return self._runs.get(entry)

    def keep(self, runs: Iterable[Run]) -> None:
        """Note runs that are over; for the engine, under its lock. Raises Refused or OSError."""
        found = [
            past_of(run, signature)
            for run in runs
            if (known := self.known.get(run.run_id)) is None or known.row.seq != run.seq
            if (signature := self._root.signature(log_file(run.run_id))) is not None
        ]
        if not found:
            return
        self.known.update((past.row.run_id, past) for past in found)
        if self._lines + len(found) > 2 * len(self.known) + _STALE:
            self._root.replace(FILE, b"".join(_line(past) for past in self.known.values()))
        else:
            self._root.append(FILE, b"".join(_line(past) for past in found), own_line=True)
        self.refresh()
