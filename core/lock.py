"""One advisory lock per folder: read, decide, write and fsync happen inside it (docs/specs/acp.md §6)."""

from __future__ import annotations

import errno
import fcntl
import os
import random
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

from core.files import Root, explain
from core.finding import Refused, error

LOCK = ".collab/lock"
PATIENCE = 20.0


def _holder(fd: int) -> str:
    """Who wrote its name into the lock file last, for the refusal's text."""
    try:
        text = os.pread(fd, 300, 0).decode("utf-8", "replace").strip()
    except OSError:
        text = ""
    return text or "another process"


def _open(root: Root, name: str) -> int:
    try:
        return root.open_lock(name)
    except OSError as exc:
        if exc.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            cause = f"{root.path} cannot be written here: {os.strerror(exc.errno)}"
            raise Refused(error("folder_read_only", cause, where=str(root.path))) from None
        raise Refused(root.explain(exc, name)) from None


def _acquire(root: Root, fd: int, name: str, deadline: float, patience: float) -> None:
    pause = 0.001
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as exc:
            if exc.errno not in (errno.EAGAIN, errno.EACCES, errno.EINTR):
                raise Refused(explain(exc, name)) from None
            if time.monotonic() >= deadline:
                cause = f"the folder is locked by {_holder(fd)}; waited {patience:g} s"
                raise Refused(error("lock_busy", cause, where=str(root.path))) from None
            time.sleep(pause * (0.5 + random.random()))  # noqa: S311 - jitter, not a secret
            pause = min(pause * 1.5, 0.02)


@contextmanager
def folder_lock(root: Root, name: str = LOCK, patience: float = PATIENCE) -> Iterator[None]:
    """Hold the folder's lock. The kernel releases it when the process ends, however it ends.

    Waits at most `patience` seconds. Raises Refused: `lock_busy` names the holder, `folder_read_only` and
    `permission_denied` say that this folder cannot be written.
    """
    deadline = time.monotonic() + patience
    fd = _open(root, name)
    try:
        _acquire(root, fd, name, deadline, patience)
        # Somebody may have removed the file while we waited for it: then this lock excludes nobody.
        while (now := root.signature(name)) is None or now.inode != os.fstat(fd).st_ino:
            os.close(fd)
            fd = -1
            fd = _open(root, name)
            _acquire(root, fd, name, deadline, patience)
        text = f"pid {os.getpid()} on {socket.gethostname()}\n".encode()
        try:
            # A hard link is a file elsewhere, whose text is nobody's to change.
            if os.fstat(fd).st_nlink == 1:
                os.pwrite(fd, text.ljust(80), 0)
        except OSError:
            # A full disk must not forbid the lock itself; the name is only a courtesy.
            pass
        yield
    finally:
        if fd >= 0:
            os.close(fd)


def wait_for_writer(root: Root, name: str = LOCK, patience: float = 2.0) -> bool:
    """Wait until no writer holds the lock, writing nothing; False when one still does after `patience` seconds.

    What a reader sees while a writer is at work may be half an act; what it sees afterwards is whole.
    """
    try:
        fd, _ = root.open_read(name)
    except (OSError, Refused):
        return True
    deadline = time.monotonic() + patience
    try:
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return True
            except OSError as exc:
                if exc.errno not in (errno.EAGAIN, errno.EACCES, errno.EINTR) or time.monotonic() >= deadline:
                    return False
                time.sleep(0.002)
    finally:
        os.close(fd)
