"""Verbs as real processes on streams that are closed, full, broken or of another encoding (docs/design.md §3)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Collab, console_script
from tests.processes.running import running, until_asleep
from tests.unit.tui.cli.conftest import At, tree
from tui.cli import main


def run(*argv: str | bytes, shell: str = "", **environment: str) -> subprocess.CompletedProcess[bytes]:
    """The console script, its streams as a shell redirects them."""
    words = [os.fsencode(word) if isinstance(word, str) else word for word in argv]
    command = ["sh", "-c", f'exec "$0" "$@" {shell}', console_script(), *words]
    return subprocess.run(
        command,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **environment},
        timeout=60,
        check=False,
    )


def sound(done: subprocess.CompletedProcess[bytes]) -> None:
    assert b"Traceback" not in done.stdout + done.stderr
    assert b"internal_error" not in done.stdout
    assert b"unexpected " not in done.stderr
    assert b"Exception ignored" not in done.stderr


def test_a_full_disk_behind_stdout(at: At) -> None:
    folder = str(at("reviewing"))
    for argv in (("next", "--participant", "server"), ("validate",), ("log", "-o", "json")):
        done = run(argv[0], "--folder", folder, *argv[1:], shell=">/dev/full")
        sound(done)
        assert done.returncode == 2
        assert done.stderr == b"error: standard output cannot be written: No space left on device\n"


def test_what_was_appended_stays_although_nobody_could_be_told(at: At) -> None:
    folder = at("reviewing")
    done = run("review", "--folder", str(folder), "--as", "reader", "--position", "x", shell=">/dev/full")
    sound(done)
    assert done.returncode == 2
    assert (folder / "events.jsonl").read_bytes().count(b"\n") == 3


@pytest.mark.parametrize("shell", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams(at: At, shell: str) -> None:
    folder = str(at("reviewing"))
    done = run("next", "--folder", folder, "--participant", "reader", shell=shell)
    sound(done)
    assert done.returncode == 0
    done = run("next", "--folder", folder, "--participant", "nobody", shell=shell)
    sound(done)
    assert done.returncode == 2
    done = run("init", "--folder", folder + "-new", shell=shell)
    sound(done)
    assert done.returncode == 2


def test_a_reader_that_went_away(at: At) -> None:
    folder = at("completed")
    with (folder / "proposal.md").open("a") as proposal:
        proposal.write("a line\n" * 100_000)
    done = run("show", "--folder", str(folder), "--doc", "proposal.md", shell="| head -n 1")
    sound(done)
    assert (done.stdout, done.stderr) == (b"# Proposal\n", b"")


@pytest.mark.parametrize("locale", ["C", "xx_YY"])
def test_an_ascii_terminal_gets_no_exception(at: At, locale: str) -> None:
    folder = at("reviewing")
    done = run("log", "--folder", str(folder), LC_ALL=locale, LANG=locale, PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    sound(done)
    assert done.returncode == 0
    # The arrow of an answer cannot be written in ASCII.
    assert b"\\u21a9 1\n" in done.stdout


def test_arguments_that_are_no_utf8(at: At, quick_path: Path) -> None:
    folder = at("reviewing")
    before = tree(folder)
    raw = b"a\xff"
    calls: list[tuple[str | bytes, ...]] = [
        ("review", "--folder", str(folder), "--as", "reader", "--position", raw),
        ("block", "--folder", str(folder), "--as", raw, "--reason", "x"),
        ("append", "--folder", str(folder), "--participant", "reader", "--event", raw, "--summary", "x"),
        ("init", "--folder", bytes(quick_path / "new"), "--participant", raw, "--objective", "o", "--completion", "c"),
        (raw,),
    ]
    for argv in calls:
        done = run(*argv)
        sound(done)
        assert done.returncode == 2, argv
        assert done.stderr.startswith(b"error: "), argv
        done.stderr.decode()
    made = run("next", "--folder", bytes(folder) + raw, "--participant", "reader", "-o", "json")
    sound(made)
    assert json.loads(made.stdout)["findings"][0]["code"] == "folder_missing"
    assert tree(folder) == before
    assert not (quick_path / "new").exists()


def test_a_folder_whose_name_is_no_utf8(quick_path: Path) -> None:
    folder = bytes(quick_path) + b"/talk \xff\x1b[2J"
    argv = (b"--folder", folder)
    people = ("--participant", "server", "--participant", "reader", "--objective", "o", "--completion", "c")
    for words in (
        ("init", *argv, *people),
        ("validate", *argv),
        ("submit", *argv, "--as", "server"),
        ("block", *argv, "--as", "reader", "--reason", "x"),
        ("new-round", "--from", folder, "--folder", folder + b"-2"),
        ("show", "--folder", folder + b"-2"),
        ("inbox", bytes(quick_path), "-o", "json"),
    ):
        done = run(*words)
        sound(done)
        assert done.returncode == 0, (words, done)
        done.stdout.decode()
        assert b"\x1b" not in done.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_waiting_verb_can_be_stopped(at: At, number: signal.Signals) -> None:
    folder = at("reviewing")
    command = [console_script(), "wait", "--folder", str(folder), "--participant", "server"]
    with running(command) as waiting:
        assert waiting.stdout.readline() == b"waiting: waiting for editor, reader after seq 2\n"
        assert main(["review", "--folder", str(folder), "--as", "reader", "--position", "x"]) == 0
        assert waiting.stdout.readline() == b"waiting: waiting for editor after seq 3\n"
        before = tree(folder)
        until_asleep(waiting.pid)
        waiting.send_signal(number)
        out, err = waiting.communicate(timeout=30)
    assert b"Traceback" not in err
    if number == signal.SIGINT:
        assert (waiting.returncode, out, err) == (130, b"", b"interrupted\n")
    else:
        assert waiting.returncode == -signal.SIGTERM
    assert tree(folder) == before


def test_the_folder_that_is_current_runs_nothing(collab: Collab, at: At, quick_path: Path) -> None:
    """A workspace that holds packages of our names: none of them is imported."""
    for name in ("core", "tui", "catalog", "collab_templates", "json", "argparse"):
        (quick_path / name).mkdir()
        (quick_path / name / "__init__.py").write_text("raise SystemExit('ran ' + __name__)")
    (quick_path / "sitecustomize.py").write_text("raise SystemExit('ran sitecustomize')")
    folder = at("reviewing")
    for argv in (
        ("next", "--folder", "talk", "--participant", "reader"),
        ("list",),
        ("validate", "--folder", str(folder)),
    ):
        done = collab(*argv, cwd=quick_path)
        assert (done.returncode, done.stderr) == (0, "")
