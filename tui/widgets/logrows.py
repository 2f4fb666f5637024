"""The rows of a log: its events and its damaged lines in the order of the file, however long it is.

A row is made when somebody looks at it, so that a new event costs no more in a long log than in a short one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.acp.judging import NOTHING, About
from core.acp.model import Event
from core.finding import Finding


@dataclass(frozen=True, slots=True)
class Entry:
    """A row: an event with the findings about its line, or a line that is none."""

    line: int
    event: Event | None
    findings: tuple[Finding, ...] = ()

    @property
    def damaged(self) -> bool:
        return self.event is None

    @property
    def id(self) -> str:
        """What it is called when rows are replaced; a line that is in no file yet goes by its seq."""
        return str(self.line or (self.event.seq if self.event is not None else None))


class Rows:
    """Events, with what was found about lines of the file that they stand in."""

    def __init__(self, events: Sequence[Event] = (), about: About = NOTHING) -> None:
        self.events, self.about = events, about
        self._damaged = [
            bisect_right(events, line, key=lambda event: event.line) + at for at, line in enumerate(about.damaged)
        ]

    def __len__(self) -> int:
        return len(self.events) + len(self._damaged)

    def __iter__(self) -> Iterator[Entry]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: int) -> Entry:
        if not 0 <= index < len(self):
            raise IndexError(index)
        above = bisect_right(self._damaged, index)
        if above and self._damaged[above - 1] == index:
            line = self.about.damaged[above - 1]
            return Entry(line, None, self.about.lines.get(line, ()))
        event = self.events[index - above]
        return Entry(event.line, event, self.about.lines.get(event.line, ()))

    def event_index(self, index: int) -> int | None:
        """Where the event of a row stands among the events."""
        above = bisect_right(self._damaged, index)
        return None if above and self._damaged[above - 1] == index else index - above

    def grew_from(self, before: Rows) -> bool:
        """Whether these are the rows of `before` with more of them behind."""
        old, new = before.events, self.events
        return bool(
            old
            and len(new) >= len(old)
            and new[0] is old[0]
            and new[len(old) - 1] is old[-1]
            and self.about.damaged == before.about.damaged
        )


def entries(events: Sequence[Event], findings: Sequence[Finding] = ()) -> Rows:
    """Events and damaged lines, each with what was found about it."""
    return Rows(events, About.of(events, findings))


__all__ = ["Entry", "Rows", "entries"]
