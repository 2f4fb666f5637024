"""Runs a command: no shell of its own, no stdin, a time limit, bounded output, its whole process group ended after it.

(docs/specs/delegation.md §5, §6)
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

OUTPUT_CAP: Final = 512 * 1024
TIMED_OUT: Final = 124
_TURN: Final = 0.1
_GRACE: Final = 1.0
_DRAIN: Final = 0.25
_PIECE: Final = 65536


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended: exit code (124 when its time was up, negative for a signal) and what was kept of its output.

    `left_out` is the number of bytes dropped from the middle. `cancelled` says that the caller ended it.
    """

    exit_code: int
    output: bytes
    left_out: int = 0
    timed_out: bool = False
    cancelled: bool = False


class NotFound(Exception):
    """The program is not there or cannot be started; nothing ran."""


class _Kept:
    """The beginning and the end of an output of any length."""

    def __init__(self, cap: int) -> None:
        self._half = cap // 2
        self._head, self._tail = bytearray(), bytearray()
        self.left_out = 0

    def add(self, piece: bytes) -> None:
        room = self._half - len(self._head)
        if room > 0:
            self._head += piece[:room]
            piece = piece[room:]
        self._tail += piece
        over = len(self._tail) - self._half
        if over > 0:
            del self._tail[:over]
            self.left_out += over

    def joined(self) -> bytes:
        if not self.left_out:
            return bytes(self._head + self._tail)
        return bytes(self._head) + f"\n[… {self.left_out} bytes left out …]\n".encode() + bytes(self._tail)


def run(
    argv: Sequence[str],
    cwd: Path,
    environ: Mapping[str, str],
    timeout: float,
    cap: int = OUTPUT_CAP,
    *,
    on_output: Callable[[bytes], None] | None = None,
    cancel: threading.Event | None = None,
    on_turn: Callable[[], None] | None = None,
    errors: bool = True,
) -> Ran:
    """Run `argv` to its end, its time limit or its cancellation. Raises NotFound.

    stdout and stderr come in the order in which they were written, stderr only with `errors`. `on_turn` is called
    about ten times a second. Whatever happens, an interruption too, the process group is gone when this returns.
    """
    try:
        child = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if errors else subprocess.DEVNULL,
            start_new_session=True,
        )
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
        raise NotFound(f"{argv[0]!r} cannot be started: {reason}") from None
    kept = _Kept(cap)
    try:
        ended = _follow(child, kept, time.monotonic() + timeout, on_output, cancel, on_turn)
    finally:
        _end_group(child)
        if child.stdout is not None:
            child.stdout.close()
    if ended == "cancelled":
        return Ran(child.returncode, kept.joined(), kept.left_out, cancelled=True)
    if ended == "timed out":
        return Ran(TIMED_OUT, kept.joined(), kept.left_out, timed_out=True)
    return Ran(child.returncode, kept.joined(), kept.left_out)


def _follow(
    child: subprocess.Popen[bytes],
    kept: _Kept,
    deadline: float,
    on_output: Callable[[bytes], None] | None,
    cancel: threading.Event | None,
    on_turn: Callable[[], None] | None,
) -> str:
    stream = child.stdout
    assert stream is not None  # noqa: S101 - it was asked for; this tells the type checker
    drained: float | None = None
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while True:
            now = time.monotonic()
            if cancel is not None and cancel.is_set():
                return "cancelled"
            if drained is None and child.poll() is not None:
                # What a background child still holds open does not keep the gate waiting.
                drained = now + _DRAIN
            if drained is None and now >= deadline:
                return "timed out"
            if drained is not None and now >= drained:
                return "ended"
            if selector.select(max(0.0, min(_TURN, (drained or deadline) - now))):
                piece = os.read(stream.fileno(), _PIECE)
                if not piece:
                    return _wait(child, deadline, cancel, on_turn)
                kept.add(piece)
                if on_output is not None:
                    on_output(piece)
            if on_turn is not None:
                on_turn()


def _wait(
    child: subprocess.Popen[bytes],
    deadline: float,
    cancel: threading.Event | None,
    on_turn: Callable[[], None] | None,
) -> str:
    """A command that closed its output may still be at work."""
    while True:
        if cancel is not None and cancel.is_set():
            return "cancelled"
        left = deadline - time.monotonic()
        if left <= 0 and child.poll() is None:
            return "timed out"
        try:
            child.wait(max(0.0, min(_TURN, left)))
            return "ended"
        except subprocess.TimeoutExpired:
            if on_turn is not None:
                on_turn()


def _signal(child: subprocess.Popen[bytes], number: int) -> bool:
    try:
        os.killpg(child.pid, number)
        return True
    except (ProcessLookupError, PermissionError):
        return False


def _end_group(child: subprocess.Popen[bytes]) -> None:
    """Politely first, then not; the group outlives its leader, so it is ended even when the leader is gone."""
    if child.poll() is None and _signal(child, signal.SIGTERM):
        try:
            child.wait(_GRACE)
        except subprocess.TimeoutExpired:
            pass
    _signal(child, signal.SIGKILL)
    child.wait()
