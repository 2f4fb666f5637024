"""A folder that may be read but not written: reading verbs answer, writing verbs say so (docs/specs/acp.md §6)."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from core.acp.templates import initialize
from tests.conftest import FixedClock
from tui.cli import main

NOBODY = 65534


def run_as_other(argv: list[str], place: Path) -> tuple[int, str]:
    """Run a verb as somebody without rights to the folder; root becomes nobody first. (status, all that was said)."""
    said = place / "said.txt"
    handle = os.open(said, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    pid = os.fork()
    if pid == 0:
        status = 99
        try:
            sys.stdout = sys.stderr = os.fdopen(handle, "w", encoding="utf-8")
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            status = main(argv)
            sys.stdout.flush()
        finally:
            os._exit(status)
    os.close(handle)
    _, ended = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(ended), said.read_text()


@pytest.fixture
def folder(quick_path: Path) -> Path:
    made = quick_path / "talk"
    initialize(made, "Agree on the cache.", ["server", "reader"], ["Measured"], FixedClock())
    quick_path.chmod(0o755)
    return made


APPEND = ["append", "--participant", "server", "--event", "proposal_submitted", "--summary", "x", "--reply-to", "1"]
WRITING = (APPEND, ["submit", "--as", "server"], ["block", "--as", "reader", "--reason", "No host"], ["repair"])
READING = (["validate"], ["next", "--participant", "server"], ["wait", "--participant", "server"], ["show"], ["log"])


@pytest.mark.parametrize("sidecar", [True, False], ids=["with a sidecar", "of the reference"])
def test_what_answers_and_what_says_why_not(folder: Path, quick_path: Path, sidecar: bool) -> None:
    if not sidecar:
        shutil.rmtree(folder / ".collab")
    # Everything that a verb imports is loaded now: the other person may not be able to read our installation.
    for argv in (*WRITING, *READING):
        copy = shutil.copytree(folder, quick_path / f"copy-{argv[0]}")
        assert main([argv[0], "--folder", str(copy), *argv[1:]]) == 0
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for argv in WRITING:
        status, said = run_as_other([argv[0], "--folder", str(folder), *argv[1:]], quick_path)
        assert status == 2, (argv, said)
        assert said.startswith("error: "), said
        assert "cannot be written here: Permission denied" in said
        assert "Traceback" not in said
    for argv in READING:
        status, said = run_as_other([argv[0], "--folder", str(folder), *argv[1:]], quick_path)
        assert status == 0, (argv, said)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
