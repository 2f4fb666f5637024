"""The daemon of a root, and one tick for whoever asks (docs/specs/workflows.md §6, §9)."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from core.clock import SYSTEM, Clock
from core.files import Root
from core.finding import Finding, Refused
from core.governance.workflow_boundary import Leaver
from core.watch import Watcher
from core.workflow import desktop, times
from core.workflow.engine import Engine
from core.workflow.layout import AGENTS, AMBIENT, RUNS, SCRATCH, WORKFLOWS, require_root
from core.workflow.rules import Decided
from core.workflow.serving import running, serve
from core.workflow.transports import CommandTransport, NoCommands
from core.workflow.triggers import IDENTITY

WAKE = "ambient/.wake"
LEFT_RUNNING = 0.2
"""Seconds between two looks at what an ended daemon left running."""
QUIET = frozenset(
    {".lock", ".daemon.lock", ".tmp", ".pending.json", ".processes", "outbox.jsonl", "notifications.jsonl"}
)
Report = Callable[[Iterable[Finding]], None]


def one_tick(path: Path, clock: Clock = SYSTEM) -> tuple[Decided, list[Finding]]:
    """One tick by a process that starts no others; what is wrong around it. Raises Refused."""
    with Root(path, SCRATCH) as root:
        transport = NoCommands(root, lambda: running(root))
        with Engine(path, clock=clock, transport=transport, leave=Leaver(path).leave) as engine:
            made = engine.tick()
            return made, [*engine.findings(), *transport.problems, *engine.left]


class Daemon:
    """One per root. Ticks when something changed there, when a timer is due, and at every interval."""

    def __init__(self, path: Path, allow_commands: bool, interval: int, clock: Clock = SYSTEM) -> None:
        """`interval` in milliseconds. Raises Refused (`E_DAEMON_RUNNING`, `E_ROOT`)."""
        self.path, self.clock, self._interval = path, clock, interval / 1000
        self._stop = threading.Event()
        self._root = Root(path, SCRATCH)
        try:
            require_root(self._root)
            self._single = serve(self._root)
        except (OSError, Refused):
            self._root.close()
            raise
        self._wake_fd, self._guard = self._root.open_lock(WAKE), threading.Lock()
        self.transport = CommandTransport(self._root, allow_commands, clock, self.wake)
        leave = Leaver(path).leave
        self.engine = Engine(path, clock=clock, transport=self.transport, deliver=_deliver, leave=leave)
        self._timer: threading.Timer | None = None
        self._said: tuple[Finding, ...] = ()

    def __enter__(self) -> Daemon:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _close_files(self) -> None:
        os.close(self._single)
        self._root.close()

    def close(self) -> None:
        """End what runs, write what is not written yet, let the root go."""
        if self._timer is not None:
            self._timer.cancel()
        self.transport.close()
        try:
            self.engine.tick(flush=True)
        except Refused:
            # It is written by the next engine.
            pass
        self.engine.close()
        with self._guard:
            os.close(self._wake_fd)
            self._wake_fd = -1
        self._close_files()

    def stop(self) -> None:
        self._stop.set()

    def stop_on_signals(self) -> None:
        """SIGTERM, SIGINT and SIGHUP end the loop after the tick that is under way."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: self.stop())

    def wake(self) -> None:
        """Let the loop look now: a change in a watched folder. May come from any thread."""
        with self._guard:
            if self._wake_fd < 0:
                return
            try:
                os.pwrite(self._wake_fd, b".", 0)
            except OSError:
                # The next interval looks anyway.
                pass

    def _places(self) -> list[Path]:
        return [self.path / name for name in (AMBIENT, RUNS, WORKFLOWS, AGENTS, IDENTITY)]

    def run(self, report: Report) -> int:
        """Tick until stopped; returns how many ticks. What is wrong is reported when it changes, and survived."""
        ticks = 0
        self._tick(report)
        for changed in Watcher(self._places, self._stop, self._interval):
            if self._stop.is_set():
                break
            if changed and not any(_matters(path) for path in changed):
                continue
            ticks += 1
            self._tick(report)
        return ticks + 1

    def _tick(self, report: Report) -> None:
        found: list[Finding] = []
        try:
            left = self.transport.adopt()
            self.engine.tick(flush=False)
            found += [*self.engine.findings(), *self.transport.problems, *self.engine.left]
            self._set_timer(LEFT_RUNNING if left else self._interval)
        except Refused as exc:
            found += exc.findings
        if tuple(found) != self._said:
            self._said = tuple(found)
            report(found)

    def _set_timer(self, delay: float) -> None:
        """Wake after `delay` seconds, or at the next timer, if that is before the next look."""
        if self._timer is not None:
            self._timer.cancel()
        due = self.engine.next_due()
        if due is not None:
            delay = min(delay, max(0, due - times.of(self.clock.now())) / 1000)
        if delay < self._interval:
            self._timer = threading.Timer(delay + 0.005, self.wake)
            self._timer.daemon = True
            self._timer.start()


def _matters(path: Path) -> bool:
    """Whether a change can be news: not the lock's own, nor what only the engine writes."""
    record = path.parent.name == "runs" and path.suffix == ".yml"
    return path.name not in QUIET and not record


def _deliver(notice: Mapping[str, Any]) -> None:
    """Show a notice without waiting for the program that does: a tick holds the lock."""
    if notice.get("channel") == "desktop":
        threading.Thread(target=desktop.deliver, args=(dict(notice),), daemon=True).start()
