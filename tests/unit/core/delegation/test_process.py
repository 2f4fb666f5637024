"""Running a command: its time, its output, and that nothing of it is left."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from core.delegation.process import NotFound, Ran, run
from tests.conftest import gone

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="asks the kernel when a process is gone")
ENVIRON = {"PATH": "/usr/local/bin:/usr/bin:/bin"}


def sh(script: str, cwd: Path, timeout: float = 20, **more: object) -> Ran:
    return run(["/bin/sh", "-c", script], cwd, ENVIRON, timeout, **more)  # type: ignore[arg-type]


def test_exit_code_and_output_in_order(tmp_path: Path) -> None:
    made = sh("echo one; echo two >&2; echo three; exit 3", tmp_path)
    assert made == Ran(3, b"one\ntwo\nthree\n")


def test_it_runs_there_without_stdin_in_that_environment(tmp_path: Path) -> None:
    made = run(["/bin/sh", "-c", "pwd; cat; echo $X"], tmp_path, {**ENVIRON, "X": "y"}, 20)
    assert made.output.decode().split() == [str(tmp_path.resolve()), "y"]


def test_an_array_is_no_shell(tmp_path: Path) -> None:
    assert run(["echo", "$HOME; ls", "*"], tmp_path, ENVIRON, 20).output == b"$HOME; ls *\n"


def test_stderr_can_be_left_out(tmp_path: Path) -> None:
    assert sh("echo out; echo err >&2", tmp_path, errors=False).output == b"out\n"


@pytest.mark.parametrize("argv", [["no-such-program-here"], ["/"], ["a\0b"], ["./x"]])
def test_what_cannot_be_started(argv: list[str], tmp_path: Path) -> None:
    (tmp_path / "x").write_text("no program")
    with pytest.raises(NotFound):
        run(argv, tmp_path, ENVIRON, 20)


def test_a_signal_is_a_negative_code(tmp_path: Path) -> None:
    assert sh("kill -9 $$", tmp_path).exit_code == -9


def test_time_is_up_for_the_whole_group(tmp_path: Path) -> None:
    begun = time.monotonic()
    made = sh("sleep 60 & echo $!; sleep 60", tmp_path, 0.2)
    assert made.exit_code == 124
    assert made.timed_out
    assert time.monotonic() - begun < 10
    assert gone(int(made.output))


def test_one_that_does_not_listen(tmp_path: Path) -> None:
    """SIGTERM is ignored by the leader and by its child: both end all the same."""
    made = sh("trap '' TERM; (trap '' TERM; echo $$; exec sleep 60) & echo $!; sleep 60", tmp_path, 0.2)
    assert made.timed_out
    assert all(gone(int(pid)) for pid in made.output.split())


def test_cancelling(tmp_path: Path) -> None:
    cancel = threading.Event()
    heard = []

    def hear(piece: bytes) -> None:
        heard.append(piece)
        cancel.set()

    made = sh("sleep 60 & echo $!; sleep 60", tmp_path, 60, on_output=hear, cancel=cancel)
    assert made.cancelled
    assert gone(int(b"".join(heard)))


def test_what_is_left_in_the_background_is_ended(tmp_path: Path) -> None:
    """It holds the output open; the gate does not wait for it, and does not leave it behind."""
    begun = time.monotonic()
    made = sh("sleep 60 & echo $!", tmp_path)
    assert made.exit_code == 0
    assert time.monotonic() - begun < 10
    assert gone(int(made.output))


def test_a_command_that_closes_its_output_is_waited_for(tmp_path: Path) -> None:
    assert sh("exec >&- 2>&-; sleep 0.3; exit 5", tmp_path).exit_code == 5
    assert sh("exec >&- 2>&-; sleep 60", tmp_path, 0.3).timed_out


def test_an_interruption_ends_the_group_too(tmp_path: Path) -> None:
    pids: list[bytes] = []

    def interrupt(piece: bytes) -> None:
        pids.append(piece)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sh("echo $$; sleep 60", tmp_path, on_output=interrupt)
    assert gone(int(b"".join(pids)))


def test_output_is_bounded(tmp_path: Path) -> None:
    made = sh("yes 0123456789 | head -c 3000000; echo; echo end", tmp_path, cap=1000)
    assert made.exit_code == 0
    assert made.output.startswith(b"0123456789\n")
    assert made.output.endswith(b"end\n")
    assert made.left_out == 3000000 + 5 - 1000
    assert len(made.output) < 1100
    assert f"{made.left_out} bytes left out".encode() in made.output


def test_a_flood_does_not_outlast_its_time(tmp_path: Path) -> None:
    made = sh("yes", tmp_path, 0.3)
    assert made.timed_out
    assert made.left_out > 0


def test_turns_are_reported(tmp_path: Path) -> None:
    turns: list[None] = []
    sh("sleep 0.35", tmp_path, on_turn=lambda: turns.append(None))
    assert len(turns) >= 2


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(3):
        sh("true", tmp_path)
    assert (len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0) == before
