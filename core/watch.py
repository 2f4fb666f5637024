"""Something changed there: by notification where possible, by a slow look everywhere (docs/specs/pitfalls, design §1).

Notifications are a hint, never the truth: each turn of a watcher ends in a look by the caller, after a change or
at the latest after `tick` seconds, so lost events, recreated folders and silent file systems only cost time.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

Mode = Literal["live", "polling"]
_PULSE = 50
"""Milliseconds after which the notifier lets us think: when to look anyway, and first of all right after arming."""


class Watcher:
    """Yields the paths that changed, or an empty set when it is time to look anyway. Belongs to one thread.

    The first set comes as soon as the folders are watched: what happened before that would go unnoticed.
    """

    def __init__(self, paths: Callable[[], Sequence[Path]], stop: threading.Event, tick: float = 2.0) -> None:
        """`paths` are the folders to watch, asked again at every turn; `stop` ends the iteration."""
        self._paths, self._stop, self._tick = paths, stop, tick
        self.mode: Mode = "polling"

    def __iter__(self) -> Iterator[frozenset[Path]]:
        while not self._stop.is_set():
            wanted = self._existing()
            marks = _marks(wanted)
            try:
                yield from self._notified(wanted, marks)
            except (OSError, RuntimeError, ValueError):
                # Out of watches or instances, a name that is no UTF-8, a file system that cannot: look instead.
                self.mode = "polling"
                if self._stop.wait(self._tick):
                    return
                yield frozenset()

    def _existing(self) -> list[Path]:
        return sorted({path for path in self._paths() if os.path.isdir(path)})

    def _notified(self, wanted: Sequence[Path], marks: dict[Path, int]) -> Iterator[frozenset[Path]]:
        if not wanted:
            self.mode = "polling"
            if not self._stop.wait(self._tick):
                yield frozenset()
            return
        from watchfiles import watch

        last, fresh = time.monotonic(), True
        for changes in watch(
            *wanted,
            watch_filter=None,
            debounce=200,
            step=10,
            stop_event=self._stop,
            rust_timeout=_PULSE,
            yield_on_timeout=True,
            raise_interrupt=True,
            recursive=False,
            ignore_permission_denied=True,
        ):
            self.mode = "live"
            due = time.monotonic() - last >= self._tick
            if changes or due or fresh:
                fresh = False
                yield frozenset(Path(path) for _, path in changes)
            if due:
                last = time.monotonic()
                if self._existing() != list(wanted) or _marks(wanted) != marks:
                    return


def _marks(paths: Sequence[Path]) -> dict[Path, int]:
    """Inodes: a folder that was removed and made again is another one, and its old watch is deaf."""
    found = {}
    for path in paths:
        try:
            found[path] = path.stat().st_ino
        except OSError:
            continue
    return found
