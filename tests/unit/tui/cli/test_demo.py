"""`collab demo` leaves nothing behind: no folder, no process, however it ends (docs/design.md §3)."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from core.acp.check import check
from core.acp.reader import read
from tests.conftest import console_script
from tests.processes.running import running
from tests.unit.tui.cli.conftest import Say
from tui.cli.demo import BLOCKED, DONE_ONE, LIVE, YOU, YOURS, build, play, samples

PATIENCE = 60.0


def processes(word: str) -> list[int]:
    """Processes whose command line names this."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if word.encode() in line and int(entry.name) != os.getpid():
                found.append(int(entry.name))
    return found


def bare(place: Path) -> dict[str, str]:
    """The environment of somebody who has nothing: no home to speak of, no terminal."""
    for name in ("home", "cwd", "tmp"):
        (place / name).mkdir()
    return {"HOME": str(place / "home"), "TERM": "dumb", "TMPDIR": str(place / "tmp"), "PATH": os.environ["PATH"]}


def test_headless_from_nowhere(quick_path: Path) -> None:
    environment = bare(quick_path)
    done = subprocess.run(
        [console_script(), "demo", "--headless"],
        cwd=quick_path / "cwd",
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    lines = done.stdout.splitlines()
    sample = samples()[LIVE]
    assert lines[0] == f"{', '.join(sample['participants'])} decide: {sample['objective']}"
    end = lines.index("phase: completed")
    assert lines[-1] == "run: success, 10 of 10 pages, 11 steps"
    assert "reader answers esc-" in lines[-2]
    events = [line.split()[3] for line in lines[1:end]]
    assert (events[0], events[-1]) == ("initialized", "completed")
    assert events.count("review_submitted") == 2
    assert events.count("decision_accepted") == 3
    assert os.listdir(quick_path / "tmp") == []
    assert os.listdir(quick_path / "cwd") == []
    if Path("/proc/self/cmdline").exists():
        assert processes(str(quick_path / "tmp")) == []


def test_without_a_terminal_into_a_folder_of_ones_own(quick_path: Path) -> None:
    folder = quick_path / "demo"
    done = subprocess.run(
        [console_script(), "demo", "--folder", str(folder), "-o", "json"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    made = json.loads(done.stdout)
    assert list(made) == ["phase", "events", "plan", "run", "findings"]
    assert {key: made["run"][key] for key in ("outcome", "done", "total")} == {
        "outcome": "success",
        "done": 10,
        "total": 10,
    }
    assert (made["phase"], made["findings"]) == ("completed", [])
    assert [event["seq"] for event in made["events"]] == list(range(1, len(made["events"]) + 1))
    snapshot, found = check(folder / LIVE)
    assert found == []
    assert [dict(event.raw) for event in snapshot.events] == made["events"]


def test_what_the_demo_shows(quick_path: Path) -> None:
    build(quick_path)
    snapshots = {name: read(quick_path / name) for name in (YOURS, BLOCKED, DONE_ONE, LIVE)}
    assert {name: one.state.phase for name, one in snapshots.items()} == {
        YOURS: "reviewing",
        BLOCKED: "blocked",
        DONE_ONE: "completed",
        LIVE: "drafting",
    }
    assert snapshots[YOURS].state.waiting == (YOU,)
    assert all(check(quick_path / name)[1] == [] for name in snapshots)


@pytest.mark.parametrize("name", [name for name, sample in samples().items() if "outcome" in sample])
def test_every_sample_can_be_played_to_its_end(quick_path: Path, name: str) -> None:
    play(quick_path / name, samples()[name])
    snapshot, found = check(quick_path / name)
    assert (snapshot.state.phase, found) == ("completed", [])


def test_wrong_use(say: Say, quick_path: Path) -> None:
    (quick_path / "mine").write_text("x")
    said = say("demo", "--headless", "--folder", str(quick_path), "-o", "json")
    assert (said.status, said.codes) == (2, ["folder_not_empty"])
    assert os.listdir(quick_path) == ["mine"]
    for speed in ("0", "-1", "nan"):
        assert say("demo", "--headless", f"--speed={speed}", "-o", "json").codes == ["speed_wrong"]
    for speed in ("x", ""):
        assert say("demo", "--headless", f"--speed={speed}", "-o", "json").codes == ["usage_wrong"]
    for folder in ("", "/proc/collab", str(quick_path / "mine"), str(quick_path / "mine" / "deeper")):
        assert say("demo", "--headless", f"--folder={folder}").status == 2
    assert "--act-as" not in say("demo", "--help").out


STARTER = """
import sys
from pathlib import Path
from tui.cli.demo import LIVE, YOURS, Actor, participants, play, samples
place, known = Path(sys.argv[1]), samples()
play(place / YOURS, known[YOURS], "reviewing")
Actor(place / LIVE, "planner", known[LIVE]).init()
with participants(place, 0.001):
    print("started", flush=True)
    sys.stdin.read()
print("ended", flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="this system cannot wait for another's processes")
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, None], ids=["killed", "terminated", "left"])
def test_participants_end_with_whoever_started_them(quick_path: Path, end: signal.Signals | None) -> None:
    with running([sys.executable, "-c", STARTER, str(quick_path)], stderr=None, encoding="utf-8") as parent:
        assert parent.stdout.readline() == "started\n"
        children: list[int] = []
        deadline = time.monotonic() + PATIENCE
        # Of a process that has just been started the command line cannot be read yet.
        while len(children) < 5 and time.monotonic() < deadline:
            children = [pid for pid in processes(str(quick_path)) if pid != parent.pid]
        assert len(children) == 5
        waiting = select.poll()
        watched = {os.pidfd_open(pid): pid for pid in children}
        for handle in watched:
            waiting.register(handle, select.POLLIN)
        assert waiting.poll(0) == []
        if end is None:
            parent.stdin.close()
        else:
            parent.send_signal(end)
        while watched and time.monotonic() < deadline:
            for handle, _ in waiting.poll(1000 * PATIENCE):
                waiting.unregister(handle)
                os.close(handle)
                del watched[handle]
        assert watched == {}
        assert parent.wait(PATIENCE) == (0 if end is None else -end)
    assert processes(str(quick_path)) == []
