"""Damage really done by another process, and what is said of it (docs/specs/acp.md §6)."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.acp.reader import FolderReader, read
from tests.conftest import Collab, MakeFolder

WORK = (
    ("append", "--participant", "server", "--event", "proposal_submitted", "--reply-to", "1"),
    ("review", "--as", "reader", "--position", "In favour"),
    ("append", "--participant", "server", "--event", "proposal_revised", "--reply-to", "3"),
)


@pytest.fixture
def folder(make_folder: MakeFolder, collab: Collab) -> Path:
    """In decision_review, seen by this person."""
    made = make_folder("talk", ("server", "reader"))
    for verb, *argv in WORK:
        done = collab(verb, "--folder", str(made), *argv, "--summary", "Done.")
        assert done.returncode == 0, done
    assert collab("validate", "--folder", str(made)).returncode == 0
    return made


@pytest.fixture
def watching(folder: Path) -> Iterator[FolderReader]:
    """A reader that has been open all the time, as a console is."""
    reader = FolderReader(folder)
    assert reader.refresh().findings == ()
    yield reader
    reader.close()


def shell(folder: Path, command: str) -> None:
    """Another process at work in the folder."""
    subprocess.run(["sh", "-ec", command], cwd=folder, check=True, timeout=60)


DAMAGE = {
    "a line changed in place": ("sed -i '2s/Done/Gone/' events.jsonl", "log_rewritten"),
    "a line changed in an editor": (
        "sed '2s/Done/DONE/' events.jsonl > x; cat x > events.jsonl; rm x",
        "log_rewritten",
    ),
    "two lines reordered": (
        "{ sed -n 2p events.jsonl; sed -n 1p events.jsonl; sed 1,2d events.jsonl; } > x; mv x events.jsonl",
        "log_rewritten",
    ),
    "the last line cut off": ("sed '$d' events.jsonl > x; cat x > events.jsonl; rm x", "log_truncated"),
    "emptied": (": > events.jsonl", "log_truncated"),
    "forked": ("sed '$s/proposal_revised/decision_proposed/' events.jsonl > x; mv x events.jsonl", "log_rewritten"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_log_that_was_damaged(folder: Path, watching: FolderReader, collab: Collab, damage: str) -> None:
    command, code = DAMAGE[damage]
    shell(folder, command)
    assert "log_rewritten" in {item.code for item in watching.refresh().findings}
    assert "log_rewritten" in {item.code for item in watching.refresh().findings}
    done = collab("validate", "--folder", str(folder))
    assert done.returncode == 2
    text = "lost events" if code == "log_truncated" else "was rewritten at or before seq"
    assert any(line.startswith("ERROR: ") and text in line for line in done.stdout.splitlines()), done.stdout
    # Without the sidecar the person's own memory of the folder still tells.
    shell(folder, "rm -r .collab")
    assert text in collab("validate", "--folder", str(folder)).stdout


def test_a_torn_line_of_a_dead_writer(folder: Path, watching: FolderReader, collab: Collab) -> None:
    shell(folder, """printf '{"seq":5,"from":"serv' >> events.jsonl""")
    assert [item.code for item in watching.refresh().findings] == ["log_torn"]
    assert collab("next", "--folder", str(folder), "--participant", "server").returncode == 0
    done = collab("block", "--folder", str(folder), "--as", "reader", "--reason", "No host")
    assert done.returncode == 0
    assert "a torn last line of events.jsonl (21 bytes) was set aside in .collab/damaged/" in done.stderr
    assert [path.read_bytes() for path in (folder / ".collab/damaged").iterdir()] == [b'{"seq":5,"from":"serv']
    assert watching.refresh().findings == ()


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("proposal.md", False),
        ("review.md", False),
        ("decisions.md", True),
        ("readiness.md", True),
        ("conclusion.md", False),
    ],
)
def test_a_document_edited_out_of_turn(folder: Path, collab: Collab, name: str, allowed: bool) -> None:
    """In decision_review the decisions and the readiness are worked on, and nothing else."""
    shell(folder, f"sed -i '1s/^/changed /' {name}")
    done = collab("validate", "--folder", str(folder))
    assert done.returncode == (0 if allowed else 1), done.stdout
    expected = f"WARNING: {name} changed after seq 4, in phase decision_review, when nobody may edit it"
    assert (expected in done.stdout.splitlines()) is not allowed
    offered = [line.removeprefix("  next: collab ") for line in done.stdout.splitlines() if line.startswith("  next: ")]
    assert len(offered) == int(not allowed)
    for command in offered:
        shown = collab(*command.split())
        assert shown.returncode == 0
        assert "+changed " in shown.stdout


def test_reading_leaves_a_read_only_folder_alone(folder: Path, collab: Collab) -> None:
    shell(folder, "chmod -R a-w .")
    try:
        before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
        for verb, *argv in (
            ("validate",),
            ("next", "--participant", "server"),
            ("wait", "--participant", "server"),
            ("show",),
            ("log",),
            ("diff", "--since", "2"),
        ):
            assert collab(verb, "--folder", str(folder), *argv).returncode == 0
        assert collab("list", str(folder)).returncode == 0
        assert collab("inbox", str(folder), "--as", "server").returncode == 0
        assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    finally:
        shell(folder, "chmod -R u+w .")
    assert read(folder).findings == ()
