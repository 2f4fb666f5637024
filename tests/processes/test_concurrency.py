"""Many writers at once, and writers killed at any moment, as real processes (docs/specs/acp.md §6)."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from core.acp import history
from core.acp.model import Draft
from core.acp.reader import read
from core.acp.store import append
from core.acp.templates import initialize
from core.files import Root
from tests.conftest import FixedClock, console_script
from tui.cli import main

MANY = 25


@pytest.fixture
def folder(quick_path: Path) -> Path:
    """A folder in `reviewing` that waits for 25 reviewers."""
    path = quick_path / "talk"
    people = ["server", *(f"reviewer-{number:02}" for number in range(MANY))]
    clock = FixedClock()
    initialize(path, "Agree on the cache.", people, ["Measured"], clock)
    append(path, Draft("server", "proposal_submitted", "Submitted.", "proposal.md", 1), clock=clock)
    return path


def events(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "events.jsonl").read_bytes().splitlines()]


def protocol(folder: Path) -> dict[str, Any]:
    made: dict[str, Any] = json.loads((folder / "protocol.json").read_bytes())
    return made


def run_all(commands: list[list[str]]) -> list[tuple[int, str, str]]:
    """Start all of them at once; (status, stdout, stderr) of each."""
    with ExitStack() as stack:
        running = [
            stack.enter_context(
                subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
            )
            for command in commands
        ]
        done = [process.communicate(timeout=120) for process in running]
        return [(process.returncode, out, err) for process, (out, err) in zip(running, done, strict=True)]


def check_whole(folder: Path, expected: int) -> None:
    """seq 1..N without a gap, and a projection that is the fold of the log."""
    made = events(folder)
    assert [event["seq"] for event in made] == list(range(1, expected + 1))
    times = [event["at"] for event in made]
    assert times == sorted(times)
    state, now = read(folder).state, protocol(folder)
    assert (now["currentPhase"], now["proposalOwner"], now["waitingFor"]) == (
        state.phase,
        state.owner,
        list(state.waiting),
    )
    with Root(folder) as root:
        assert [record.seq for record in history.load(root)] == list(range(1, expected + 1))
    assert not (folder / ".collab/pending.json").exists()
    assert not list((folder / ".collab").glob("tmp-*"))


def reviewers() -> list[str]:
    return [f"reviewer-{number:02}" for number in range(MANY)]


def test_twenty_five_processes_append_at_once(folder: Path) -> None:
    command = [console_script(), "append", "--folder", str(folder), "--event", "review_submitted", "--reply-to", "2"]
    done = run_all([[*command, "--participant", who, "--summary", f"From {who} é\u2028"] for who in reviewers()])
    check_whole(folder, MANY + 2)
    made = events(folder)
    for who, (status, out, err) in zip(reviewers(), done, strict=True):
        assert status == 0, err
        (mine,) = [event for event in made if event["from"] == who]
        assert mine["summary"] == f"From {who} é\u2028"
        assert out == f"appended seq {mine['seq']}: review_submitted\n"
    assert protocol(folder)["currentPhase"] == "revising"


def test_of_many_that_may_not_all_append_exactly_one_does(folder: Path) -> None:
    """The same event by the same participant, many times at once: one is first, the others are told."""
    many = 10
    command = [console_script(), "append", "--folder", str(folder), "--event", "blocked", "--reply-to", "2"]
    done = run_all([[*command, "--participant", "server", "--summary", str(number)] for number in range(many)])
    check_whole(folder, 3)
    assert sorted(status for status, _, _ in done) == [0] + [2] * (many - 1)
    assert all("blocked is not allowed from phase blocked" in err for status, _, err in done if status == 2)


def test_reviewers_review_at_once(folder: Path) -> None:
    """Text and event of each, none mixed with another's."""
    command = [console_script(), "review", "--folder", str(folder)]
    chosen = reviewers()[:24]
    done = run_all([[*command, "--as", who, "--position", f"Position of {who}"] for who in chosen])
    assert [status for status, _, _ in done] == [0] * 24, done
    check_whole(folder, 26)
    text = (folder / "review.md").read_text()
    for event in events(folder)[2:]:
        heading = f"## {event['at']} - {event['from']} - seq {event['seq']}\n"
        assert text.count(heading) == 1
        assert f"Position of {event['from']}\n" in text.partition(heading)[2].partition("\n## ")[0]
    assert main(["validate", "--folder", str(folder)]) == 0


def writers(folder: Path) -> Iterator[list[str]]:
    """Commands that are legal for ever: the owner proposes decisions again and again."""
    number = 0
    while True:
        number += 1
        argv = ["append", "--folder", str(folder), "--participant", "server", "--event", "decision_proposed"]
        yield [console_script(), *argv, "--summary", f"Written by {number}", "--reply-to", "1"]


READING = ("validate", "next", "wait", "show", "log", "list", "inbox")


def read_with_every_verb(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for verb in READING:
        argv = [verb, str(folder.parent)] if verb in ("list", "inbox") else [verb, "--folder", str(folder)]
        argv += ["--participant", "server"] if verb in ("next", "wait") else []
        capsys.readouterr()
        status = main(argv)
        captured = capsys.readouterr()
        assert status in ((0, 1, 2) if verb == "validate" else (0,)), f"{verb}: {captured}"
        assert "unexpected" not in captured.err
        assert captured.out
        if verb == "next":
            assert "phase: decision_review\n" in captured.out
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def lifetime(command: list[str]) -> float:
    """How long such a process takes from its start to its end."""
    begun = time.monotonic()
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    return time.monotonic() - begun


def kill_after(command: list[str], delay: float) -> tuple[bool, str]:
    """Run it, kill it after so many seconds; whether that was in time, and what it had acknowledged."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8") as process:
        try:
            process.wait(delay)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        out = process.communicate()[0]
        return process.returncode == -signal.SIGKILL, out


def stamps(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def deciding(path: Path) -> Path:
    """A valid folder in decision_review, with a document whose record takes a moment to write."""
    clock = FixedClock()
    initialize(path, "Agree on the cache.", ["server", "reader"], ["Measured"], clock)
    for seq, (who, event) in enumerate(
        (("server", "proposal_submitted"), ("reader", "review_submitted"), ("server", "proposal_revised")), start=2
    ):
        append(path, Draft(who, event, "Done.", reply_to=seq - 1), clock=clock)
    with (path / "review.md").open("a") as review:
        review.write("\n## 2026-03-01T09:00:00Z - reader - seq 3\n")
    (path / "decisions.md").write_text("- A decision.\n" * 20_000)
    return path


def test_a_hundred_writers_killed_at_random(quick_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = deciding(quick_path / "talk")
    commands = writers(folder)
    centre = sorted(lifetime(next(commands)) for _ in range(3))[1]
    chance = random.Random(20260301)
    acknowledged: dict[int, str] = {}
    killed = killed_while_writing = 0
    while killed < 100:
        command, before = next(commands), stamps(folder)
        in_time, out = kill_after(command, centre * (0.7 + 0.6 * chance.random()))
        # Machines differ and change their pace: the centre follows the moment at which the writing happens.
        centre *= 1.02 if in_time else 0.96
        if out:
            acknowledged[int(out.split()[2].rstrip(":"))] = command[command.index("--summary") + 1]
        if not in_time:
            continue
        killed += 1
        killed_while_writing += int(stamps(folder) != before)
        torn = b'{"seq":%d,"from":"ser' % killed
        if killed % 10 == 0:
            # What a kernel that went down with its writer may leave.
            with (folder / "events.jsonl").open("ab") as log:
                log.write(torn)
        read_with_every_verb(folder, capsys)
        command = next(commands)
        assert main(command[1:]) == 0
        captured = capsys.readouterr()
        acknowledged[int(captured.out.split()[2].rstrip(":"))] = command[command.index("--summary") + 1]
        if killed % 10 == 0:
            assert torn in {path.read_bytes() for path in (folder / ".collab/damaged").iterdir()}
            assert "a torn last line of events.jsonl" in captured.err
    made = events(folder)
    assert [event["seq"] for event in made] == list(range(1, len(made) + 1))
    by_seq = {event["seq"]: event["summary"] for event in made}
    assert {seq: by_seq[seq] for seq in acknowledged} == acknowledged
    assert len(acknowledged) >= 100
    assert killed_while_writing > 0
    assert main(["validate", "--folder", str(folder)]) == 0, capsys.readouterr().out
