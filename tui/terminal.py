"""What the console asks of the terminal besides drawing: colour or none, a title, a bell, a notice."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Iterator, Set
from contextlib import contextmanager

from core.sanitize import clip, inert


@contextmanager
def colour_environment(colour: bool) -> Iterator[None]:
    """Textual reads `NO_COLOR` itself and lets an empty one count; ours counts when it is not empty."""
    before = os.environ.pop("NO_COLOR", None)
    if not colour:
        os.environ["NO_COLOR"] = "1"
    try:
        yield
    finally:
        os.environ.pop("NO_COLOR", None)
        if before is not None:
            os.environ["NO_COLOR"] = before


@contextmanager
def kept_title() -> Iterator[None]:
    """The terminal's title is put back at the end."""
    terminal = sys.__stderr__ if sys.__stderr__ is not None and sys.__stderr__.isatty() else None
    if terminal is not None:
        terminal.write("\x1b[22;2t")
    try:
        yield
    finally:
        if terminal is not None:
            terminal.write("\x1b[23;2t")
            terminal.flush()


def title_sequence(text: str) -> str:
    """Sets the title."""
    return f"\x1b]2;{clip(inert(text), 200)}\x07"


def notice_sequence(text: str) -> str:
    """OSC 9: a desktop notice."""
    return f"\x1b]9;{clip(inert(text), 200)}\x07"


class Transitions:
    """Tells each thing that begins to wait once; what waits at the first whole look is no news."""

    def __init__(self) -> None:
        self._known: set[str] | None = None

    def fresh(self, waiting: Set[str], complete: bool) -> set[str]:
        """What began to wait since the last call."""
        if self._known is None:
            self._known = set(waiting) if complete else None
            return set()
        made = set(waiting) - self._known
        self._known |= waiting
        return made

    def reset(self) -> None:
        """Another person looks now."""
        self._known = None


def end_with_terminal(fd: int) -> None:
    """End this process once the terminal behind `fd` is gone, with the status of a hang-up.

    A process without a controlling terminal gets no SIGHUP: Textual would read end-of-file for ever. Drafts are on
    disk by then, and what a killed act leaves the next writer mends.
    """
    poll = getattr(select, "poll", None)
    if poll is None:
        return
    gone = poll()
    gone.register(fd, 0)

    def wait() -> None:
        gone.poll()
        os._exit(128 + signal.SIGHUP)

    threading.Thread(target=wait, name="terminal", daemon=True).start()
