"""What people meet once in years, met on purpose: many writers, clocks that jump, roots that vanish under watch.

The forms of the suite are short. The whole: `python -m pytest -m slow tests/processes/test_extremes.py`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from core import evidence
from core.acp.model import Draft
from core.acp.reader import read
from core.acp.store import append
from core.acp.templates import initialize
from core.clock import parse
from core.watch import Watcher
from core.workspace import Summaries, discover, find
from tests.conftest import START, FixedClock, console_script
from tests.console.workflow_root import FAILED, WorkflowRoot
from tests.unit.core.delegation.builders import Bench
from tests.unit.core.workflow.stage import Stepped

SLOW = pytest.mark.slow
TZ = ("UTC", "Europe/Paris", "America/St_Johns", "Pacific/Kiritimati")


def commands(argv: list[list[str]]) -> list[tuple[int, str]]:
    """All at once; (status, stderr) of each."""
    with ExitStack() as stack:
        started = [
            stack.enter_context(subprocess.Popen([console_script(), *one], stdout=-3, stderr=-1, text=True))
            for one in argv
        ]
        return [(process.returncode, err) for process in started for err in [process.communicate(timeout=600)[1]]]


@pytest.mark.parametrize("writers", [6, pytest.param(64, marks=SLOW)])
def test_many_writers_of_each_system(writers: int, quick_path: Path) -> None:
    """So many processes append to one collaboration and to one plan, and observe one signal: no line is lost."""
    people = [f"p{number:02}" for number in range(writers)]
    talk, bench = quick_path / "talk", Bench(quick_path / "bench")
    bench.begin()
    initialize(talk, "Agree.", ["owner", *people], ["Measured"], FixedClock())
    append(talk, Draft("owner", "proposal_submitted", "Submitted.", "proposal.md", 1), clock=FixedClock())
    before = len(bench.events())
    argv = [["review", "--folder", str(talk), "--as", who, "--position", who] for who in people]
    seen = json.dumps({"statement": "seen"})
    argv += [
        [
            "ledger",
            "--plan",
            str(bench.plan),
            "append",
            "--type",
            "observation",
            "--json",
            seen,
            "--actor-identity",
            who,
        ]
        for who in people
    ]
    argv += [["triage", "observe", "--text", "no such words", "--root", str(quick_path), "--as", who] for who in people]
    done = commands(argv)
    events = read(talk).events
    assert [event.seq for event in events] == list(range(1, writers + 3))
    assert {event.actor for event in events[2:]} == set(people)
    ledger = bench.events()[before:]
    wrote = [who for who, (status, _) in zip(people, done[writers : 2 * writers], strict=True) if status == 0]
    assert sorted(event["actor"]["identity"] for event in ledger) == sorted(wrote)
    assert [event["seq"] for event in bench.events()] == list(range(1, before + len(wrote) + 1))
    # The plan's lock is waited for a second, as in the public pack: whoever comes later is told who holds it.
    assert all(err.startswith(("ERROR: ", "COLLISION: ")) for status, err in done[writers : 2 * writers] if status)
    lines = (quick_path / "triage/observations.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["by"] for line in lines) == sorted(people)
    assert [status for status, _ in (*done[:writers], *done[2 * writers :])] == [0] * 2 * writers


@pytest.mark.parametrize("leap", [-86_400 * 400, -3600, 3600, 86_400 * 400], ids=lambda leap: f"{leap // 3600} h")
def test_a_clock_that_jumps(leap: int, quick_path: Path) -> None:
    """Times in a log never go back, nothing is lost, and nothing is decided that nobody decided."""
    clock, talk = FixedClock(), quick_path / "talk"
    initialize(talk, "Agree.", ["server", "reader"], ["Measured"], clock)
    clock.step(60)
    append(talk, Draft("server", "proposal_submitted", "Submitted.", "proposal.md", 1), clock=clock)
    clock.step(leap)
    append(talk, Draft("reader", "review_submitted", "Reviewed.", "review.md", 2), clock=clock)
    clock.step(-leap)
    append(talk, Draft("server", "decision_proposed", "Proposed.", "decisions.md", 3), clock=clock)
    times = [event.at or "" for event in read(talk).events]
    assert times == sorted(times)
    assert not [item for item in read(talk).findings if "at " in item.cause]

    stepped = Stepped()
    root = WorkflowRoot(quick_path / "flow", stepped, more="on_escalate: {deadline: 2h, on_deadline: remind}\n")
    root.start()
    root.reply(0, FAILED)
    stepped.step(leap)
    for _ in range(3):
        root.tick()
    (entry,) = root.entries()
    # A jump over the deadline reminds once; it answers nothing, in neither direction.
    assert (entry.state, entry.decision, entry.reminders) == ("open", None, int(leap > 7200))
    assert root.answer(entry.id, "skip").status == "accepted"
    stepped.step(-leap)
    root.tick()
    log = next((root.path / "ambient/runs").glob("*.jsonl")).read_text().splitlines()
    moments = [json.loads(line)["at"] for line in log]
    assert moments == sorted(moments)
    assert root.entries()[0].state == "applied"

    bench = Bench(quick_path / "bench")
    bench.begin()
    bench.clock.step(leap)
    assert bench.launch("d1").ok
    bench.clock.step(-leap)
    assert bench.collect("d1").ok
    assert [event["seq"] for event in bench.events()] == list(range(1, len(bench.events()) + 1))


@pytest.mark.parametrize("zone", TZ)
def test_the_night_in_which_clocks_are_put_back(zone: str, quick_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written and compared is UTC, wherever the writer sits; the hour that comes twice is two hours."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        clock, talk = FixedClock(parse("2026-10-25T00:30:00Z") or START), quick_path / "talk"
        initialize(talk, "Agree.", ["server", "reader"], ["Measured"], clock)
        for event in ("proposal_submitted", "blocked"):
            clock.step(1200)
            append(talk, Draft("server", event, "x", None, 1), clock=clock)
        times = [event.at for event in read(talk).events]
        assert times == ["2026-10-25T00:30:00Z", "2026-10-25T00:50:00Z", "2026-10-25T01:10:00Z"]
        (item,) = Summaries().items(find([talk]))
        assert item.since == parse("2026-10-25T01:10:00Z")
    finally:
        monkeypatch.undo()
        time.tzset()


HOLD = (
    "import sys,time; from pathlib import Path; from core.files import Root; from core.lock import folder_lock\n"
    "with Root(Path(sys.argv[1]), sys.argv[2]) as root, folder_lock(root, sys.argv[3]):\n"
    "    print('held', flush=True); sys.stdin.read()\n"
)


def test_locks_of_the_living_and_of_the_dead(quick_path: Path, make_folder: Any) -> None:
    """While it lives its lock holds and is named; killed, it holds nothing: for each system that has a lock."""
    talk = make_folder()
    (quick_path / "ws").mkdir()
    flow = WorkflowRoot(quick_path / "flow", Stepped())
    held = [
        (talk, ".collab", ".collab/lock", ["append", "--folder", str(talk), "--participant", "server", "--event",
         "blocked", "--summary", "x", "--reply-to", "1"]),
        (quick_path / "ws", "triage/.tmp", "triage/.lock", ["triage", "observe", "--text", "odd words", "--root",
         str(quick_path / "ws")]),
        (flow.path, "ambient/.tmp", "ambient/.lock", ["workflow", "tick", "--root", str(flow.path)]),
    ]  # fmt: skip
    for folder, scratch, lock, argv in held:
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(folder), scratch, lock], stdin=-1, stdout=-1, text=True
        )
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == "held\n"
        waiting = subprocess.Popen([console_script(), *argv], stdout=-3, stderr=-1, text=True)
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(0.5)
        holder.send_signal(signal.SIGKILL)
        _, err = waiting.communicate(timeout=60)
        assert waiting.returncode == 0, f"{lock}: {err}"
        holder.wait()
        holder.stdin.close()
        holder.stdout.close()


@pytest.mark.parametrize("times", [3, pytest.param(100, marks=SLOW)])
def test_roots_deleted_and_recreated_under_watch(times: int, quick_path: Path) -> None:
    """A watcher of everything hears of each new root, and never holds on to one that is gone."""
    root, stop = quick_path / "root", threading.Event()
    seen = evidence.Evidence(live=True)
    watcher = iter(Watcher(lambda: [quick_path, root, root / "talk"], stop, tick=0.2))
    descriptors: set[int] = set()

    def until(true: Callable[[], bool]) -> None:
        late = time.monotonic() + 60
        for _ in watcher:
            if true():
                return
            assert time.monotonic() < late, "it never saw that"

    def known() -> list[Path]:
        places = discover([quick_path])
        seen.look(place for place in places if place.kind != "acp")
        return [item.path for item in Summaries().items(place for place in places if place.kind == "acp")]

    try:
        for number in range(times):
            root.mkdir()
            initialize(root / "talk", f"Agree {number}.", ["server", "reader"], ["Measured"], FixedClock())
            WorkflowRoot(root / "flow", Stepped())
            until(lambda: known() == [root / "talk"])
            append(root / "talk", Draft("server", "blocked", f"For {number}.", None, 1), clock=FixedClock())
            until(lambda: len(read(root / "talk").events) == 2)
            shutil.rmtree(root)
            until(lambda: known() == [])
            descriptors.add(len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else 0)
    finally:
        stop.set()
        seen.close()
    assert max(descriptors) - min(descriptors) <= 4, descriptors


@pytest.mark.parametrize("count", [60, pytest.param(2000, marks=SLOW)])
def test_so_many_folders(count: int, quick_path: Path) -> None:
    """Each is found and summarised once; what did not change is not read again."""
    first = quick_path / "0000"
    initialize(first, "Agree.", ["server", "reader"], ["Measured"], FixedClock())
    for number in range(1, count):
        shutil.copytree(first, quick_path / f"{number % 37:02}" / f"{number:04}")
    places = discover([quick_path])
    assert len(places) == count
    summaries = Summaries()
    assert {item.phase for item in summaries.items(places)} == {"drafting"}
    append(first, Draft("server", "blocked", "Over.", None, 1), clock=FixedClock(START + timedelta(hours=1)))
    now = summaries.items(places)
    assert [item.path for item in now if item.phase == "blocked"] == [first]
    done = subprocess.run(
        [console_script(), "list", str(quick_path), "-o", "json"], capture_output=True, check=True, text=True
    )
    assert len(json.loads(done.stdout)["items"]) == count
