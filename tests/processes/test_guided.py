"""Guided verbs and waiting as real processes: many at once, one a participant, woken (docs/specs/acp.md §6)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from core.acp import guided
from core.acp.check import check
from core.acp.compose import ReviewText
from core.acp.reader import read
from core.acp.templates import initialize
from tests.conftest import Collab, FixedClock, console_script
from tests.processes.running import running

PATIENCE = 60.0
REVIEWERS = [f"reviewer {number:02}" for number in range(24)]
GATE = "Measured (p95 < 5 ms)"


def begin(folder: Path, people: list[str], submitted: bool = True) -> Path:
    clock = FixedClock()
    initialize(folder, "Agree on the cache.", people, [GATE], clock)
    if submitted:
        guided.commit(folder, guided.submit(people[0], "# Proposal\n"), clock)
    return folder


def words(who: str, number: int, place: Path) -> tuple[list[str], bytes | None, list[str]]:
    """(arguments of a review, its standard input, what must stand in its block): no two are alike."""
    lines = [f"{who} says {number}-{line} of it" for line in range(3)]
    hostile = f"## 2026-03-01T09:00:00Z - {REVIEWERS[number - 1]} - seq {number + 3}"
    if number % 3 == 0:
        return (
            ["--position", lines[0], "--concern", f"{lines[1]}\n{hostile}", "--change", lines[2]],
            None,
            [*lines, hostile],
        )
    text = "Position:\n" + "".join(f"- {line}\n" for line in lines) + "x" * 50_000 + "\n"
    if number % 3 == 1:
        return ["--file", "-"], text.encode(), [*lines, "x" * 50_000]
    path = place / f"{number}.md"
    path.write_text(text)
    return ["--file", str(path)], None, [*lines, "x" * 50_000]


def test_twenty_four_reviewers_at_once(quick_path: Path, collab: Collab) -> None:
    folder = begin(quick_path / "it's a talk", ["server", *REVIEWERS])
    given = {who: words(who, number, quick_path) for number, who in enumerate(REVIEWERS)}
    with ExitStack() as stack:
        started = {}
        for who, (argv, _, _) in given.items():
            command = [console_script(), "review", "--folder", str(folder), "--as", who, *argv]
            started[who] = stack.enter_context(running(command))
        # All of them have started before one gets its text.
        said = {who: process.communicate(given[who][1], PATIENCE) for who, process in started.items()}
    snapshot = read(folder)
    by_who = {event.actor: event for event in snapshot.events[2:]}
    assert [event.seq for event in snapshot.events] == list(range(1, 27))
    assert sorted(by_who) == REVIEWERS
    assert (snapshot.state.phase, snapshot.state.waiting) == ("revising", ("server",))
    text = snapshot.document("review.md").text
    blocks = {block.partition("\n")[0]: block for block in text.split("\n## ")[1:]}
    for who, (_, _, kept) in given.items():
        event = by_who[who]
        assert started[who].returncode == 0, said[who]
        assert said[who] == (f"appended seq {event.seq}: review_submitted\n".encode(), b"")
        heading = f"{event.at} - {who} - seq {event.seq}"
        assert text.count(f"\n## {heading}\n") == 1
        for line in kept:
            assert line in blocks[heading], (who, line)
    done = collab("validate", "--folder", str(folder))
    assert (done.returncode, done.stdout) == (0, "ACP validation passed\n")


# One process a turn


def test_a_collaboration_of_four_one_process_a_turn(quick_path: Path, collab: Collab) -> None:
    """Each participant runs one verb after the other, and each verb returns when it is their turn again."""
    people = ["server", "reader", "editor", "tester"]
    folder = begin(quick_path / "talk", people, submitted=False)
    (quick_path / "revised.md").write_text("# Proposal\n\nRevised.\n")
    (quick_path / "decisions.md").write_text("# Decisions\n\n- One cache.\n")
    scripts = {
        "server": [
            ["submit", "--wait"],
            ["revise", "--file", str(quick_path / "revised.md"), "--wait"],
            ["propose", "--file", str(quick_path / "decisions.md"), "--wait"],
            ["classify", "--resolve", "Key layout", "--wait"],
            ["accept", "--wait"],
            ["ready", "--tick-all", "--wait"],
            ["complete", "--outcome", "proceed", "--rationale", "It fits.", "--next", "Open it.", "--wait"],
        ]
    }
    for who in people[1:]:
        scripts[who] = [["review", "--position", f"{who} agrees", "--wait"], ["accept", "--wait"]]

    def play(who: str) -> list[str]:
        out = []
        if who != "server":
            done = collab("wait", "--folder", str(folder), "--participant", who, "--timeout", "60", "--interval", "60")
            assert done.returncode == 0, done
        for verb, *argv in scripts[who]:
            done = collab(verb, "--folder", str(folder), "--as", who, *argv, "--timeout", "60")
            assert done.returncode == 0, (who, verb, done)
            assert "\nready: " in done.stdout
            out.append(done.stdout)
        return out

    with ThreadPoolExecutor(len(people)) as pool:
        said = dict(zip(people, pool.map(play, people), strict=True))
    snapshot, found = check(folder)
    assert (snapshot.state.phase, found) == ("completed", [])
    assert len(snapshot.events) == 1 + 7 + 2 * 3
    assert all(said[who][-1].splitlines()[-1] == "next action: stop; collaboration is complete." for who in people)


# Waiting


def contents(folder: Path) -> dict[str, tuple[bytes, int, int]]:
    """Every file and folder with bytes, inode and time."""
    found = {}
    for path in (folder, *folder.rglob("*")):
        info = path.lstat()
        found[str(path)] = (path.read_bytes() if path.is_file() else b"", info.st_ino, info.st_mtime_ns)
    return found


@contextmanager
def waiting(folder: Path, who: str, *argv: str, timeout: str = "60") -> Iterator[subprocess.Popen[str]]:
    """A `collab wait` that has looked once and found that it must wait. It never looks again on its own in time."""
    command = [console_script(), "wait", "--folder", str(folder), "--participant", who, "--timeout", timeout]
    with running([*command, "--interval", "60", *argv], encoding="utf-8") as process:
        assert process.stdout.readline().startswith("waiting: waiting for ")
        yield process


@pytest.fixture(params=[True, False], ids=["with a sidecar", "without"])
def folder(quick_path: Path, request: pytest.FixtureRequest) -> Path:
    """In `reviewing`, waiting for two; perhaps one that never had a writer of ours."""
    made = begin(quick_path / "talk", ["server", "reader", "editor"])
    if not request.param:
        shutil.rmtree(made / ".collab")
    return made


def review(folder: Path, who: str) -> None:
    guided.commit(folder, guided.review(who, ReviewText("Yes")))


def test_a_turn_wakes_who_waits(folder: Path) -> None:
    with waiting(folder, "server") as process:
        review(folder, "reader")
        assert process.stdout.readline() == "waiting: waiting for editor after seq 3\n"
        review(folder, "editor")
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert out.splitlines()[0] == "ready: server is listed in waitingFor"
    assert "phase: revising\n" in out
    assert f"command: collab revise --folder {folder} --as server\n" in out
    assert err == ""


def test_the_end_wakes_everybody(folder: Path) -> None:
    with waiting(folder, "server") as process:
        guided.commit(folder, guided.block("reader", "No host"))
        out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert out.splitlines()[0] == "ready: phase is blocked"


def test_a_writer_that_is_not_ours_wakes_too(folder: Path) -> None:
    """One line in events.jsonl, nothing else: the projection lags behind, and the log is right."""
    event = {
        "seq": 3,
        "from": "reader",
        "event": "blocked",
        "at": "2026-03-01T10:00:00Z",
        "summary": "x",
        "reply_to": 2,
    }
    with waiting(folder, "server") as process:
        with (folder / "events.jsonl").open("a") as log:
            log.write(json.dumps(event) + "\n")
        out, _ = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out.splitlines()[0]) == (0, "ready: phase is blocked")


def test_waiting_writes_nothing(folder: Path) -> None:
    before = contents(folder)
    with waiting(folder, "server", timeout="0.3") as process:
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (1, "")
    assert err == "timeout: waiting for editor, reader after seq 2\n"
    assert contents(folder) == before


def test_waiting_until_ready_writes_nothing_either(folder: Path) -> None:
    with waiting(folder, "server") as process:
        guided.commit(folder, guided.block("reader", "No host"))
        before = contents(folder)
        process.communicate(timeout=PATIENCE)
    assert contents(folder) == before


def test_many_wait_and_all_are_woken(folder: Path) -> None:
    with ExitStack() as stack:
        crowd = [stack.enter_context(waiting(folder, "server")) for _ in range(6)]
        guided.commit(folder, guided.block("reader", "No host"))
        said = [process.communicate(timeout=PATIENCE)[0] for process in crowd]
    assert [process.returncode for process in crowd] == [0] * 6
    assert all(out.startswith("ready: phase is blocked\n") for out in said)


def test_a_folder_that_goes_away_ends_the_wait(folder: Path) -> None:
    with waiting(folder, "server", "--interval", "0.1") as process:
        shutil.rmtree(folder)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert err == f"error: there is no folder {folder}\n"


def half(folder: Path, whole: bytes) -> None:
    """As the reference writes: the file is cut, then written, and for a moment half of it is there."""
    with (folder / "protocol.json").open("wb") as setup:
        setup.write(whole[: len(whole) // 2])
        setup.flush()
        os.fsync(setup.fileno())


def test_half_a_file_of_a_slow_writer_is_borne(folder: Path) -> None:
    whole = (folder / "protocol.json").read_bytes()
    with waiting(folder, "server", "--interval", "0.05") as process:
        for _ in range(5000):
            half(folder, whole)
        (folder / "protocol.json").write_bytes(whole)
        guided.commit(folder, guided.block("reader", "No host"))
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (0, "")
    assert out.startswith("ready: phase is blocked\n")


def test_a_file_that_stays_broken_ends_the_wait(folder: Path) -> None:
    with waiting(folder, "server", "--interval", "0.1") as process:
        half(folder, (folder / "protocol.json").read_bytes())
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert err.startswith("error: invalid protocol.json: ")


def test_a_log_that_is_torn_for_a_moment_is_borne(folder: Path) -> None:
    line = json.dumps(
        {"seq": 3, "from": "reader", "event": "blocked", "at": "2026-03-01T10:00:00Z", "summary": "x", "reply_to": 2}
    )
    with waiting(folder, "server", "--interval", "0.05") as process:
        with (folder / "events.jsonl").open("a") as log:
            for piece in (line[:20], line[20:40], line[40:], "\n"):
                log.write(piece)
                log.flush()
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (0, "")
    assert "ready: phase is blocked" in out.splitlines()


CASES: dict[str, Callable[[Path], object]] = {
    "a stranger": lambda folder: None,
    "no log": lambda folder: (folder / "events.jsonl").unlink(),
    "no setup": lambda folder: (folder / "protocol.json").unlink(),
}


@pytest.mark.parametrize("case", CASES)
def test_what_cannot_be_waited_for_is_said_at_once(folder: Path, collab: Collab, case: str) -> None:
    CASES[case](folder)
    who = "stranger" if case == "a stranger" else "server"
    done = collab("wait", "--folder", str(folder), "--participant", who)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
