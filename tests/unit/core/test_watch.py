"""Something changed there: told by the system where it tells, found by looking everywhere (docs/design.md §1)."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from core.watch import Watcher
from tests.processes.running import running, until_asleep

PATIENCE = 30.0
"""Seconds until something that must come is missed; nothing here takes nearly as long."""
NEVER = 3600.0
"""A tick that no test lives to see: what comes before it came by notification."""

Start = Callable[..., "Watching"]


class Watching:
    """A watcher in its own thread; what it yields is put into a queue."""

    def __init__(self, paths: Callable[[], Sequence[Path]], tick: float) -> None:
        self.stop = threading.Event()
        self.watcher = Watcher(paths, self.stop, tick)
        self.told: queue.Queue[tuple[frozenset[Path], str]] = queue.Queue()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        for changed in self.watcher:
            self.told.put((changed, self.watcher.mode))

    def next(self) -> tuple[frozenset[Path], str]:
        return self.told.get(timeout=PATIENCE)

    def until(self, path: Path) -> str:
        """Until this path is among the changes; the mode then."""
        while True:
            changed, mode = self.next()
            if path in changed:
                return mode

    def until_mode(self, mode: str) -> None:
        while self.next()[1] != mode:
            pass

    def end(self) -> None:
        self.stop.set()
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()


@pytest.fixture
def start() -> Iterator[Start]:
    running: list[Watching] = []

    def begin(paths: Callable[[], Sequence[Path]], tick: float = NEVER) -> Watching:
        made = Watching(paths, tick)
        running.append(made)
        return made

    yield begin
    for one in running:
        one.end()


def armed(folder: Path, watching: Watching) -> None:
    """Until the watcher hears of this folder: files are touched until one is noticed."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        (folder / "arm").write_text("x")
        try:
            if any(path.parent == folder for path in watching.told.get(timeout=0.05)[0]):
                return
        except queue.Empty:
            continue
    raise AssertionError("the watcher never heard of it")


def elsewhere(code: str, *argv: str) -> None:
    subprocess.run([sys.executable, "-c", code, *argv], check=True, timeout=60)


APPEND = "import sys; open(sys.argv[1], 'a').write('x')"
REPLACE = "import os, sys; open(sys.argv[1] + '.tmp', 'w').write('y'); os.replace(sys.argv[1] + '.tmp', sys.argv[1])"
REMOVE = "import os, sys; os.remove(sys.argv[1])"


@pytest.mark.parametrize("code", [APPEND, REPLACE, REMOVE], ids=["append", "replace", "remove"])
def test_a_change_by_another_process_wakes(tmp_path: Path, start: Start, code: str) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text("x")
    watching = start(lambda: [tmp_path])
    armed(tmp_path, watching)
    elsewhere(code, str(path))
    assert watching.until(path) == "live"


def test_one_of_many_folders_is_named(tmp_path: Path, start: Start) -> None:
    folders = [tmp_path / f"{number}" for number in range(20)]
    for folder in folders:
        folder.mkdir()
    watching = start(lambda: folders)
    armed(folders[0], watching)
    elsewhere(APPEND, str(folders[17] / "x"))
    watching.until(folders[17] / "x")


@pytest.mark.parametrize("name", [".hidden", "node_modules", ".git", "é 中", "x.pyc", ".collab"])
def test_no_name_is_hidden(tmp_path: Path, start: Start, name: str) -> None:
    watching = start(lambda: [tmp_path])
    armed(tmp_path, watching)
    elsewhere(APPEND, str(tmp_path / name))
    watching.until(tmp_path / name)


def test_the_first_look_is_due_as_soon_as_it_watches(tmp_path: Path, start: Start) -> None:
    """What happened between somebody's own look and the watch would go unnoticed for a whole tick."""
    assert start(lambda: [tmp_path], NEVER).next() == (frozenset(), "live")


def test_a_quiet_folder_is_looked_at_all_the_same(tmp_path: Path, start: Start) -> None:
    watching = start(lambda: [tmp_path], tick=0.1)
    assert watching.next() == (frozenset(), "live")
    assert watching.next() == (frozenset(), "live")


def test_a_folder_that_is_removed_and_made_again_is_heard_again(tmp_path: Path, start: Start) -> None:
    folder = tmp_path / "talk"
    folder.mkdir()
    watching = start(lambda: [folder], tick=0.1)
    armed(folder, watching)
    elsewhere("import shutil, sys; shutil.rmtree(sys.argv[1])", str(folder))
    watching.until_mode("polling")
    elsewhere("import os, sys; os.mkdir(sys.argv[1])", str(folder))
    armed(folder, watching)
    elsewhere(APPEND, str(folder / "x"))
    assert watching.until(folder / "x") == "live"


def test_a_folder_that_is_replaced_is_heard_again(tmp_path: Path, start: Start) -> None:
    """Another folder in the same place, from one moment to the next: the old watch is deaf to it."""
    folder = tmp_path / "talk"
    folder.mkdir()
    watching = start(lambda: [folder], tick=0.1)
    armed(folder, watching)
    elsewhere("import os, sys; os.rename(sys.argv[1], sys.argv[1] + '-old'); os.mkdir(sys.argv[1])", str(folder))
    armed(folder, watching)


def test_a_folder_that_appears_is_heard(tmp_path: Path, start: Start) -> None:
    watching = start(lambda: [tmp_path / "later"], tick=0.1)
    assert watching.next() == (frozenset(), "polling")
    (tmp_path / "later").mkdir()
    armed(tmp_path / "later", watching)


def test_what_is_watched_may_change(tmp_path: Path, start: Start) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    wanted = folders[:1]
    watching = start(lambda: list(wanted), tick=0.1)
    armed(folders[0], watching)
    wanted[:] = folders[1:]
    armed(folders[1], watching)


UNWATCHABLE = os.fsdecode(b"no \xff text")


def test_what_the_system_cannot_watch_is_looked_at(tmp_path: Path, start: Start) -> None:
    """A name that is no UTF-8 is refused by the notifier; others in the same list are still looked after."""
    bad = tmp_path / UNWATCHABLE
    bad.mkdir()
    watching = start(lambda: [tmp_path, bad], tick=0.1)
    for _ in range(3):
        assert watching.next() == (frozenset(), "polling")


def test_after_polling_it_is_live_again(tmp_path: Path, start: Start) -> None:
    bad = tmp_path / UNWATCHABLE
    bad.mkdir()
    wanted = [bad]
    watching = start(lambda: list(wanted), tick=0.1)
    assert watching.next() == (frozenset(), "polling")
    wanted[:] = [tmp_path]
    armed(tmp_path, watching)
    assert watching.watcher.mode == "live"


EXHAUSTED = """
import os, resource, sys, threading, watchfiles
from pathlib import Path
from core.watch import Watcher
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
highest = os.open(os.devnull, os.O_RDONLY)
resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, hard))
watcher = Watcher(lambda: [Path(sys.argv[1])], threading.Event(), 0.05)
looks = iter(watcher)
print(next(looks), watcher.mode)
print(next(looks), watcher.mode)
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
print(next(looks), watcher.mode)
"""


def test_without_a_free_descriptor_it_looks_and_later_hears_again(tmp_path: Path) -> None:
    """The kernel refuses a notifier: it has none left for this process."""
    made = subprocess.run(
        [sys.executable, "-c", EXHAUSTED, str(tmp_path)], capture_output=True, encoding="utf-8", timeout=60, check=False
    )
    assert made.stderr == ""
    assert made.stdout.splitlines() == ["frozenset() polling", "frozenset() polling", "frozenset() live"]


@pytest.mark.parametrize("kind", ["nothing", "a file", "missing"])
def test_nothing_to_watch_is_no_busy_loop(tmp_path: Path, start: Start, kind: str) -> None:
    (tmp_path / "file").write_text("x")
    found = {"nothing": [], "a file": [tmp_path / "file"], "missing": [tmp_path / "missing"]}[kind]
    watching = start(lambda: found, tick=0.2)
    assert watching.next() == (frozenset(), "polling")
    assert watching.told.qsize() <= 1


@pytest.mark.parametrize("kind", ["live", "polling"])
def test_stop_ends_it_soon(tmp_path: Path, start: Start, kind: str) -> None:
    watching = start(lambda: [tmp_path] if kind == "live" else [], NEVER)
    if kind == "live":
        armed(tmp_path, watching)
    watching.end()


def test_a_stopped_watcher_yields_nothing(tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    assert list(Watcher(lambda: [tmp_path], stop)) == []


def test_an_interrupt_reaches_whoever_waits(tmp_path: Path) -> None:
    """Ctrl-C ends a waiting command; the notifier must not swallow it."""
    code = (
        "import sys, threading; from pathlib import Path; from core.watch import Watcher\n"
        "looks = iter(Watcher(lambda: [Path(sys.argv[1])], threading.Event(), 3600))\n"
        "try:\n"
        "    print(next(looks), flush=True)\n"
        "    for _ in looks: pass\n"
        "except KeyboardInterrupt: print('interrupted', flush=True)\n"
    )
    with running([sys.executable, "-c", code, str(tmp_path)], encoding="utf-8") as waiter:
        assert waiter.stdout.readline() == "frozenset()\n"
        until_asleep(waiter.pid)
        waiter.send_signal(signal.SIGINT)
        assert waiter.communicate(timeout=PATIENCE)[0] == "interrupted\n"
