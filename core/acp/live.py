"""One collaboration that is looked at again and again: each look costs what is new, and says what a fresh one says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from core.acp import seen
from core.acp.history import Record, Records
from core.acp.judging import NOTHING, About, Judge
from core.acp.memory import Memory
from core.acp.model import Event
from core.acp.reader import FolderReader, Snapshot
from core.files import Root
from core.finding import Finding, Refused
from core.state import UserState


@dataclass(frozen=True)
class Judged:
    """A snapshot with everything that is wrong with it, errors first, and what its log says of the participants."""

    snapshot: Snapshot
    findings: tuple[Finding, ...]
    acts: Mapping[str, str]
    """Participant to the event that they wrote last."""
    reviewed: Mapping[str, int]
    """Participant to the index of their latest review."""
    frozen: frozenset[str | None]
    """The references that a freeze in the log names."""
    about: About = NOTHING
    """What was found about the lines of the log."""
    records: Records | None = None
    """What is remembered of the folder."""


class Live:
    """The folder, followed for a person: what they saw of it is compared too. Belongs to one thread."""

    def __init__(self, path: Path, state: UserState) -> None:
        self.path, self.records = path, Records()
        self._reader, self._state = FolderReader(path), state
        self._judge, self._memory = Judge(), Memory(self.records)
        self._witnessed: list[Finding] = []
        self._known: list[Finding] = []

    def close(self) -> None:
        self._reader.close()

    def refresh(self) -> Snapshot:
        """The folder now."""
        return self._reader.refresh()

    def judge(self, snapshot: Snapshot, remembered: bool = True) -> Judged:
        """Judge the latest snapshot; without `remembered` by itself alone, which is done sooner."""
        wrong, doubtful = self._judge.parts(snapshot)
        if snapshot.setup is None:
            return Judged(snapshot, (*wrong, *doubtful), {}, {}, frozenset())
        ledger = self._judge.ledger(snapshot)
        for item in dict.fromkeys(self._remembered(snapshot) if remembered else ()):
            # None of these is said of the snapshot itself.
            (wrong if item.severity == "error" else doubtful).append(item)
        found = (*wrong, *doubtful)
        acts, reviewed, frozen = dict(ledger.acts), dict(ledger.reviewed), frozenset(ledger.frozen)
        return Judged(snapshot, found, acts, reviewed, frozen, self._judge.about(snapshot), self.records)

    def _remembered(self, snapshot: Snapshot) -> list[Finding]:
        self._witnessed, self._known = [], []
        try:
            with Root(self.path) as root:
                self._witnessed = self._memory.findings(snapshot, root)
                self._known = seen.findings(self._state, snapshot, root, self._memory)
        except Refused as exc:
            self._known = list(exc.findings)
        return self._witnessed + self._known

    def remember(self, snapshot: Snapshot) -> None:
        """Keep what this person sees now; the snapshot is the one that was judged last."""
        seen.remember(self._state, snapshot, self._known, self._witnessed)

    def record_of(self, event: Event) -> Record | None:
        """What the documents held right after an event, as far as it was read."""
        return self.records.of(event)
