"""A run unfolded: its log followed as it grows, with everything that is shown of it (docs/specs/console.md §2)."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.files import Root
from core.finding import Refused, error
from core.journal import Follower
from core.workflow.layout import SCRATCH, log_file
from core.workflow.shapes import NOT_ONE
from core.workflow.state import Run
from core.workflow.view_history import History, Moment, timeline


@dataclass(frozen=True, eq=False)
class Unfolded:
    """A run's log as far as it was read. `moments` are its events in words; `run` is as of the last.

    `spawns` finds the packet of a step, by index, attempt and resumes.
    """

    run: Run
    events: tuple[Mapping[str, Any], ...]
    moments: tuple[Moment, ...]
    spawns: Mapping[tuple[int, int, int], Any]


class RunFollower:
    """Reads a run's log, each line once. May be used from threads, one at a time."""

    def __init__(self, path: Path, run_id: str) -> None:
        self.path, self.run_id = path, run_id
        self._guard = threading.Lock()
        self._root: Root | None = None
        self._follower: Follower | None = None
        self._history = History(run_id)
        self._known: Unfolded | None = None

    def close(self) -> None:
        with self._guard:
            if self._root is not None:
                self._root.close()
            self._root = self._follower = None

    def look(self) -> Unfolded | None:
        """The log as it is now, None when it holds no run that can be read. Raises Refused."""
        with self._guard:
            if self._root is None or self._follower is None:
                self._root = Root(self.path, SCRATCH)
                self._follower = Follower(self._root, log_file(self.run_id))
            news = self._follower.poll()
            if news.reset is not None:
                self._history, self._known = History(self.run_id), None
            records: list[Mapping[str, Any]] = []
            for line in news.lines:
                if line.record is None or line.record.get("seq") != len(self._history.events) + len(records) + 1:
                    # A damaged log is said by the list; here it ends before the damage.
                    break
                records.append(line.record)
            try:
                self._history.add(records)
            except NOT_ONE as exc:
                name = log_file(self.run_id)
                raise Refused(error("E_LOG_DAMAGED", f"{name} is damaged ({exc})", None, name)) from None
            return self._made(bool(records))

    def _made(self, grown: bool) -> Unfolded | None:
        run = self._history.at(len(self._history.events) - 1)
        if run is not None and (grown or self._known is None):
            events = tuple(self._history.events)
            spawns = {
                (event["index"], event["attempt"], event["resumes"]): event["sends"]
                for event in events
                if event["event"] == "spawn_intended"
            }
            self._known = Unfolded(run, events, tuple(timeline(events, run.spec)), spawns)
        return self._known

    def at(self, index: int) -> Run | None:
        """The run right after the event at `index`."""
        with self._guard:
            return self._history.at(index)
