"""What the rows share: samples, their spread, processes, and consoles in a real pty."""

from __future__ import annotations

import gc
import os
import pty
import select
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fcntl import ioctl
from pathlib import Path

PYTHON = sys.executable
COLLAB = str(Path(sys.executable).parent / "collab")


@dataclass
class Samples:
    """Figures of one thing, in seconds unless `unit` says otherwise."""

    values: list[float] = field(default_factory=list)
    unit: str = "ms"

    def add(self, value: float) -> None:
        self.values.append(value)

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def high(self) -> float:
        """The value that 95 % do not exceed."""
        ordered = sorted(self.values)
        return ordered[min(len(ordered) - 1, round(0.95 * (len(ordered) - 1)))]

    def text(self) -> str:
        scale = 1000.0 if self.unit == "ms" else 1.0
        digits = 2 if self.unit == "s" else 0
        low, middle, high, top = (
            f"{value * scale:.{digits}f}" for value in (min(self.values), self.median, self.high, max(self.values))
        )
        return f"{middle} {self.unit}, 95 % {high} ({low}–{top}, n={len(self.values)})"


@dataclass(frozen=True)
class Row:
    """One line of the table. `holds` is None when the row has no figure here."""

    name: str
    ours: str
    baseline: str
    ratio: str
    budget: str
    holds: bool | None


def timed(act: Callable[[], object]) -> float:
    # Nobody pays for what the one before left behind.
    gc.collect()
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def run(*words: str, check: bool = True, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """One whole process; its failure is an error of the benchmark."""
    made = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=env, check=False)
    if check and made.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: exit {made.returncode}\n{made.stderr}")
    return made


def reference() -> Path | None:
    """The scripts of the v1 reference, if `ACP_REFERENCE_V1` names its checkout."""
    named = os.environ.get("ACP_REFERENCE_V1")
    return Path(named) / "scripts" if named else None


@contextmanager
def scratch() -> Iterator[Path]:
    """A temporary folder, with the person's own settings and state kept out of it."""
    folder = Path(tempfile.mkdtemp(prefix="collab-bench-"))
    os.environ["COLLAB_STATE"] = str(folder / "state")
    os.environ["COLLAB_CONFIG"] = str(folder / "config.toml")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def init(folder: Path, people: Sequence[str]) -> None:
    words = [COLLAB, "init", "--folder", str(folder), "--objective", "Measure", "--completion", "Done"]
    for name in people:
        words += ["--participant", name]
    run(*words)


class Console:
    """A console in a real pty. `wait_for` reads until a text has been drawn and returns when that was read."""

    def __init__(self, words: Sequence[str], columns: int = 120, rows: int = 36) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm-256color", COLUMNS=str(columns), LINES=str(rows))
            os.execv(words[0], list(words))
        ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.seen = b""
        self._arrived: list[tuple[int, float]] = []

    def wait_for(self, text: str, timeout: float = 30.0) -> float:
        wanted = text.encode()
        deadline = time.perf_counter() + timeout
        while wanted not in self.seen:
            left = deadline - time.perf_counter()
            if left <= 0:
                raise RuntimeError(f"{text!r} was not drawn within {timeout} s; last: {self.seen[-400:]!r}")
            self._read(left)
        end = self.seen.index(wanted) + len(wanted)
        return next(moment for length, moment in self._arrived if length >= end)

    def _read(self, patience: float) -> bool:
        """Read what is there, or comes in time; whether anything did."""
        if not select.select([self.fd], [], [], patience)[0]:
            return False
        self.seen += os.read(self.fd, 1 << 16)
        self._arrived.append((len(self.seen), time.perf_counter()))
        return True

    def read_until(self, condition: Callable[[], bool]) -> None:
        """Read whatever is drawn until something else is true."""
        while not condition():
            self._read(0.005)

    def send(self, text: str) -> float:
        """Press a key; the moment at which it was."""
        pressed = time.perf_counter()
        os.write(self.fd, text.encode())
        return pressed

    def settle(self, quiet: float = 0.3) -> None:
        """Read until nothing has been drawn for a while."""
        while self._read(quiet):
            pass
        self.forget()

    def forget(self) -> None:
        """What was drawn so far is not looked at again."""
        self.seen, self._arrived = b"", []

    def key(self, text: str) -> float:
        """Seconds from a key to the first bytes that are drawn because of it."""
        self.settle()
        started = time.perf_counter()
        os.write(self.fd, text.encode())
        if not select.select([self.fd], [], [], 5.0)[0]:
            raise RuntimeError(f"nothing was drawn after {text!r}")
        return time.perf_counter() - started

    def memory(self) -> float:
        """Resident memory in MB."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        return 0.0

    def close(self) -> None:
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
        os.close(self.fd)
