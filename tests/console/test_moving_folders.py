"""The ground moves under a real console: others write, folders come and go, notifications fail, it is killed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.acp.reader import read
from tests.conftest import console_script
from tests.console.pty_driver import PtyConsole, environment

SOON = 3.0
"""Seconds within which the view must be right again (docs/specs/console.md)."""
WITHOUT_INOTIFY = (
    "unshare", "-Ur", "sh", "-c", 'echo 0 > /proc/sys/user/max_inotify_instances && exec "$@"', "sh",
)  # fmt: skip

Open = Callable[..., PtyConsole]


@pytest.fixture
def open_console(tmp_path: Path) -> Iterator[Open]:
    made: list[PtyConsole] = []

    def start(*words: str, **more: Any) -> PtyConsole:
        made.append(PtyConsole(*words, environ=environment(tmp_path), **more))
        return made[-1]

    yield start
    for one in made:
        one.close()


def talk(make_folder: Any, act: Any, name: str = "work/talk") -> Path:
    path: Path = make_folder(name, participants=("server", "reader", "other"))
    act(path, "server", "proposal_submitted")
    return path


def write_review(console: PtyConsole, text: str) -> None:
    """Up to the preview, which listens."""
    console.sees("Your turn: write a review")
    console.press("r")
    console.sees("Position", "F2 preview")
    console.fill(text, "f2")
    console.sees("Effect", "Enter append")
    console.listens("append")


def verb(collab: Any, *words: str) -> None:
    done = collab(*words)
    assert done.returncode == 0, done.stderr


def test_a_preview_says_what_moved_and_goes_on_after_a_second_look(
    make_folder: Any, act: Any, collab: Any, open_console: Open
) -> None:
    path = talk(make_folder, act)
    console = open_console(str(path), "--as", "reader", size=(100, 34))
    write_review(console, "Mine")
    verb(collab, "review", "--folder", str(path), "--as", "other", "--position", "I was faster")
    console.press("enter")
    console.sees(
        "The folder moved since this preview was made",
        "new event: 3 other review_submitted “I was faster”",
        "changed: review.md +",
        '{"seq":4,"from":"reader"',
    )
    assert len(read(path).events) == 3, "nothing was written on what had moved"
    console.listens("append")
    console.press("enter")
    console.sees("appended seq 4: review_submitted")
    assert [event.actor for event in read(path).events] == ["server", "server", "other", "reader"]
    verb(collab, "validate", "--folder", str(path))


def test_a_preview_says_when_the_act_is_no_longer_possible(
    make_folder: Any, act: Any, collab: Any, open_console: Open
) -> None:
    path = talk(make_folder, act)
    console = open_console(str(path), "--as", "reader", size=(100, 34))
    write_review(console, "Mine")
    verb(collab, "block", "--folder", str(path), "--as", "other", "--reason", "No host")
    console.press("enter")
    console.sees("The folder moved", "Refused now", "new event: 3 other blocked “No host”")
    assert len(read(path).events) == 3


@pytest.mark.parametrize("point", [1, 3, 5, 8])
def test_killed_in_the_middle_of_an_append_it_leaves_a_whole_folder(
    point: int, make_folder: Any, act: Any, collab: Any, open_console: Open, tmp_path: Path
) -> None:
    path = talk(make_folder, act)
    armed = tmp_path / "armed"
    program = (sys.executable, str(Path(__file__).parent / "killed.py"), str(armed), str(point))
    console = open_console(str(path), "--as", "reader", program=program)
    write_review(console, "Mine")
    armed.touch()
    console.press("enter")
    assert console.process.wait(20) == -9
    before = read(path)
    assert len(before.events) in (2, 3)
    # Whatever it left is read by everybody, and settled by the next writer.
    verb(collab, "next", "--folder", str(path), "--participant", "other")
    verb(collab, "review", "--folder", str(path), "--as", "other", "--position", "Next")
    after = read(path)
    headings = [line for line in after.document("review.md").text.split("\n") if line.startswith("## 20")]
    reviews = [event for event in after.events if event.name == "review_submitted"]
    assert len(headings) == len(reviews), "a document change and its event are there together, or neither"
    assert after.events[: len(before.events)] == before.events
    verb(collab, "validate", "--folder", str(path))


def summary(path: Path, text: str) -> None:
    """Another program writes a block, without our lock."""
    event = {"seq": 3, "from": "other", "event": "blocked", "at": "2026-03-01T09:05:00Z", "summary": text}
    with (path / "events.jsonl").open("a", encoding="utf-8") as log:
        log.write(json.dumps({**event, "reply_to": 2}) + "\n")


def test_a_folder_that_is_removed_and_made_again(
    make_folder: Any, act: Any, open_console: Open, tmp_path: Path
) -> None:
    path = talk(make_folder, act)
    kept = tmp_path / "kept"
    shutil.copytree(path, kept)
    console = open_console(str(path), "--as", "reader")
    console.sees("Your turn: write a review", "● live")
    shutil.rmtree(path)
    gone = console.sees("there is no folder", patience=SOON)
    assert "● live" not in gone or "there is no folder" in gone
    shutil.copytree(kept, path)
    console.sees("Your turn: write a review", patience=SOON)
    summary(path, "seen again")
    console.sees("seen again", patience=SOON)


def test_a_root_that_is_renamed_and_comes_back(make_folder: Any, act: Any, open_console: Open, tmp_path: Path) -> None:
    path = talk(make_folder, act)
    console = open_console(str(tmp_path / "work"), "--as", "reader")
    console.sees("write a review", " 1 waiting")
    (tmp_path / "work").rename(tmp_path / "elsewhere")
    console.sees("there is no folder", " 0 waiting", patience=SOON)
    (tmp_path / "elsewhere").rename(tmp_path / "work")
    console.sees("write a review", " 1 waiting", patience=SOON)
    summary(path, "seen again")
    console.sees("seen again", patience=SOON)


def can_unshare() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*WITHOUT_INOTIFY, "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not can_unshare(), reason="this machine allows no user namespaces")
def test_without_notifications_it_polls_and_says_so(make_folder: Any, act: Any, open_console: Open) -> None:
    path = talk(make_folder, act)
    console = open_console(str(path), "--as", "reader", program=(*WITHOUT_INOTIFY, console_script()))
    console.sees("Your turn: write a review", "polling")
    summary(path, "seen by looking")
    shown = console.sees("seen by looking", "blocked", "polling", patience=SOON)
    assert "● live" not in shown


def test_a_reader_that_hangs_is_said(make_folder: Any, act: Any, open_console: Open, tmp_path: Path) -> None:
    path = talk(make_folder, act)
    hung = tmp_path / "hang"
    program = (sys.executable, str(Path(__file__).parent / "hung.py"), str(hung))
    console = open_console(str(path), "--as", "reader", program=program)
    console.sees("Your turn: write a review", "live")
    hung.touch()
    console.sees("stale", patience=15)
    hung.unlink()
    summary(path, "seen again")
    shown = console.sees("seen again", patience=SOON)
    assert "stale" not in console.sees("live", patience=SOON)
    assert shown
