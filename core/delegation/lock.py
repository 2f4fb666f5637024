"""The plan's lock: a directory with its owner's file, as the public pack makes it (docs/specs/delegation.md §4).

Directory and owner file appear together: they are built aside and renamed, never over anything. Ledgers of this kind
do so one after another, under an advisory lock on the plan folder that the kernel drops with the process; between
them no lock is taken twice. A dead, old or unreadable lock is taken over, so that none ever needs a person.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from core.clock import Clock, stamp
from core.delegation import canon
from core.delegation.model import LOCK, OWNER
from core.files import Root
from core.finding import Finding, Refused, error

STALE_SECONDS: Final = 900.0
OWNERLESS_SECONDS: Final = 1.0
_ASIDE: Final = f"{LOCK}-"
_CAP: Final = 64 * 1024
_PATIENCE: Final = 5.0
_held: set[tuple[str, int]] = set()
"""(plan folder, inode of the owner file) of the locks that this process holds."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Who holds a lock. `epoch` is seconds since 1970; what cannot be read is None, then anybody may take over."""

    identity: str | None
    pid: int | None
    epoch: float | None
    host: str | None
    data: bytes | None
    readable: bool
    key: tuple[str, int] = ("", 0)

    def age(self, now: datetime) -> float | None:
        """Seconds since it was taken."""
        return None if self.epoch is None else now.timestamp() - self.epoch

    def stale(self, now: datetime) -> bool:
        """Whether nobody who lives can hold it: unreadable, older than 900 s, or its process is dead on this host."""
        age = self.age(now)
        if not self.readable or age is None or age > STALE_SECONDS:
            return True
        return self.host == os.uname().nodename and self.pid is not None and not _alive(self)


def _alive(owner: Owner) -> bool:
    pid = owner.pid or 0
    if pid == os.getpid():
        # A process of ours that ended had this number before us, unless we hold it ourselves.
        return owner.key in _held
    return _exists(pid)


def _exists(pid: int) -> bool:
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def holder(root: Root) -> Owner | None:
    """Who holds the lock of an open plan folder, None when nobody does. Never raises."""
    if not root.exists(LOCK):
        return None
    content = root.read(OWNER, _CAP)
    data = content.data
    if data is None:
        return Owner(None, None, None, None, None, readable=False) if root.exists(LOCK) else None
    try:
        said: Any = canon.parse_json(data)
    except ValueError:
        said = None
    if not isinstance(said, dict):
        return Owner(None, None, None, None, data, readable=False)
    epoch, pid = said.get("epoch_ts"), said.get("pid")
    identity, host = said.get("identity"), said.get("host")
    timed = (
        float(epoch) if isinstance(epoch, int | float) and not isinstance(epoch, bool) and abs(epoch) < 1e12 else None
    )
    return Owner(
        identity if isinstance(identity, str) else None,
        pid if type(pid) is int else None,
        timed,
        host if isinstance(host, str) else None,
        data,
        True,
        (str(root.path), content.signature.inode if content.signature is not None else 0),
    )


class PlanLock:
    """One hold of a plan's lock."""

    def __init__(self, root: Root, identity: str, clock: Clock, token: str) -> None:
        """`token` makes the name of what is built aside unique."""
        self._root, self._identity, self._clock = root, identity, clock
        self._aside = f"{_ASIDE}{os.getpid()}-{token}"
        self._data = b""
        self._key = ("", 0)

    def _owner(self) -> bytes:
        now, pid = self._clock.now(), os.getpid()
        said = {
            "identity": f"{self._identity} pid:{pid}",
            "pid": pid,
            "ts": stamp(now),
            "epoch_ts": now.timestamp(),
            "host": os.uname().nodename,
        }
        return canon.pretty(said)

    def acquire(self, force: bool = False, sleep: Callable[[float], None] = time.sleep) -> None:
        """Take the lock, or raise Refused (`plan_locked`) naming its holder."""
        waited = False
        while True:
            with guard(self._root):
                self._sweep()
                owner = holder(self._root)
                ownerless = owner is not None and owner.data is None
                if owner is not None and (force or (waited if ownerless else owner.stale(self._clock.now()))):
                    self._discard()
                    owner = None
                if owner is None and self._build():
                    return
            if not ownerless or waited:
                raise Refused(self._busy(owner))
            # Whoever makes the directory first and its owner second needs a moment.
            sleep(OWNERLESS_SECONDS)
            waited = True

    def _busy(self, owner: Owner | None) -> Finding:
        name = owner.identity if owner is not None and owner.identity else "another ledger"
        age = owner.age(self._clock.now()) if owner is not None else None
        since = f" for {max(0, int(age))} s" if age is not None else ""
        cause = f"the plan is locked by {name}{since}; --force takes it over once that one is known to be dead"
        return error("plan_locked", cause, None, LOCK)

    def _build(self) -> bool:
        self._data = self._owner()
        try:
            self._root.append(f"{self._aside}/owner.json", self._data)
            if not self._root.move(self._aside, LOCK):
                _quietly(self._root.remove_tree, self._aside)
                return False
        except BaseException:
            # The rename may have happened before its failure.
            _quietly(self._root.remove_tree, self._aside)
            found = holder(self._root)
            if found is not None and found.data == self._data:
                _quietly(self._root.remove_tree, LOCK)
            raise
        self._note()
        return True

    def _note(self) -> None:
        found = holder(self._root)
        self._data, key = (found.data or b"", found.key) if found is not None else (b"", ("", 0))
        _held.discard(self._key)
        _held.add(key)
        self._key = key

    def _discard(self) -> None:
        """Rename first: a lock is there whole or not at all."""
        grave = f"{self._aside}-old"
        if self._root.move(LOCK, grave):
            self._root.remove_tree(grave)

    def _sweep(self) -> None:
        """What killed ledgers built aside and never used."""
        for name in self._root.names():
            pid = name.removeprefix(_ASIDE).split("-")[0] if name.startswith(_ASIDE) else ""
            if pid.isascii() and pid.isdigit() and (int(pid) == os.getpid() or not _exists(int(pid))):
                _quietly(self._root.remove_tree, name)

    def mine(self) -> bool:
        """Whether the lock is still this hold's: somebody may have forced it away."""
        found = holder(self._root)
        return found is not None and found.key == self._key and found.data == self._data

    def renew(self) -> None:
        """Make the lock young again; a long gate would grow older than 900 s. Raises Refused when it was lost."""
        with guard(self._root):
            if not self.mine():
                raise Refused(error("lock_lost", "somebody took the plan's lock over meanwhile", None, LOCK))
            self._root.replace(OWNER, self._owner())
            self._note()

    def release(self) -> None:
        """Give the lock up, unless somebody else has it by now. Never raises."""
        for _ in range(2):
            try:
                with guard(self._root):
                    if self.mine():
                        self._discard()
                break
            except (Refused, OSError):
                # Once more: a failure that stays leaves a lock that is free as soon as this process is gone.
                continue
        _quietly(self._root.remove_tree, f"{self._aside}-old")
        _held.discard(self._key)


def _quietly(act: Callable[[str], None], name: str) -> None:
    try:
        act(name)
    except (Refused, OSError):
        pass


@contextmanager
def guard(root: Root) -> Iterator[None]:
    """Those who write in an open folder come one after another; where folders cannot be locked, they do not.

    The lock is the kernel's, on the folder itself: it leaves nothing behind and ends with the process. Raises Refused.
    """
    try:
        fd = os.open(root.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as exc:
        raise Refused(root.explain(exc, ".")) from None
    try:
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as exc:
                if exc.errno not in (errno.EAGAIN, errno.EACCES, errno.EINTR):
                    break
                if time.monotonic() >= deadline:
                    cause = "other ledgers keep the plan folder busy"
                    raise Refused(error("plan_locked", cause, None, LOCK)) from None
                time.sleep(0.002)
        yield
    finally:
        os.close(fd)
