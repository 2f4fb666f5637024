"""Whether a daemon of a root is at work: it holds a lock of its own, apart from the writers' (docs/design.md §3)."""

from __future__ import annotations

import fcntl
import os
import threading
from typing import Final

from core.files import Root
from core.finding import Refused, error

SINGLE: Final = "ambient/.daemon.lock"
_TRIES: Final = 20
_PAUSE: Final = 0.01
"""Seconds; somebody who only looks holds the lock for less."""


def running(root: Root) -> bool:
    """Whether a daemon of this root is at work."""
    try:
        fd, _ = root.open_read(SINGLE)
    except (OSError, Refused):
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


def serve(root: Root) -> int:
    """The open lock of the one daemon of this root. Raises Refused (`E_DAEMON_RUNNING`) or OSError."""
    fd = root.open_lock(SINGLE)
    for _ in range(_TRIES):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            threading.Event().wait(_PAUSE)
        else:
            return fd
    os.close(fd)
    raise Refused(error("E_DAEMON_RUNNING", f"a daemon of {root.path} is running already", None, SINGLE))
