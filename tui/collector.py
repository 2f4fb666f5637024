"""Long logs and the collector of cycles.

A full collection stops every thread while it looks at every object: with a log of 50,000 events that was a tenth of a
second and more, in which no key is answered. The events of an open folder are no garbage, so it need not look at them.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Collector:
    """Keeps the collector away from folders with long logs while they are open. Belongs to one thread."""

    def __init__(self) -> None:
        self._kept: set[Path] = set()

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Nothing is collected while a whole log is read: all that is made then stays."""
        on = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if on:
                gc.enable()

    def keep(self, path: Path) -> None:
        """What there is now is not looked at again as long as this folder is open."""
        self._kept.add(path)
        gc.freeze()

    def let_go(self, path: Path) -> None:
        """The folder is closed: what it left may be collected."""
        if path in self._kept:
            self._kept.discard(path)
            gc.unfreeze()
            if self._kept:
                gc.freeze()


__all__ = ["Collector"]
