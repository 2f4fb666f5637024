"""One advisory lock per folder, given back by the kernel however its holder ends (docs/specs/acp.md §6)."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.files import Root
from core.finding import Refused
from core.lock import LOCK, folder_lock

HOLDER = """
import sys
from pathlib import Path
from core.files import Root
from core.lock import folder_lock
with Root(Path(sys.argv[1])) as root, folder_lock(root, patience=0.0):
    print("held", flush=True)
    sys.stdin.readline()
print("released", flush=True)
"""


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Root]:
    with Root(tmp_path) as opened:
        yield opened


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A real process that holds the lock until it is killed or gets a line."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def refusal(root: Root, patience: float = 0.0) -> str:
    with pytest.raises(Refused) as caught, folder_lock(root, patience=patience):
        pass
    return f"{caught.value.findings[0].code}: {caught.value.findings[0].cause}"


def test_a_busy_lock_names_its_holder(root: Root, holder: subprocess.Popen[str]) -> None:
    assert refusal(root) == (
        f"lock_busy: the folder is locked by pid {holder.pid} on {socket.gethostname()}; waited 0 s"
    )


def test_it_is_released_when_the_holder_is_killed(root: Root, holder: subprocess.Popen[str]) -> None:
    assert refusal(root).startswith("lock_busy")
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    with folder_lock(root, patience=0.0):
        assert f"pid {os.getpid()} " in (root.read(LOCK).data or b"").decode()


def test_it_is_released_when_the_holder_is_done(root: Root, holder: subprocess.Popen[str]) -> None:
    assert holder.stdin is not None
    assert holder.stdout is not None
    holder.stdin.write("\n")
    holder.stdin.flush()
    with folder_lock(root, patience=20.0):
        pass
    assert holder.stdout.readline() == "released\n"


def test_it_excludes_another_reader_of_the_same_process(root: Root, tmp_path: Path) -> None:
    with folder_lock(root), Root(tmp_path) as other:
        assert refusal(other).startswith("lock_busy")


def test_a_failure_inside_releases_it(root: Root) -> None:
    with pytest.raises(ZeroDivisionError), folder_lock(root):
        raise ZeroDivisionError
    with folder_lock(root, patience=0.0):
        pass


def test_a_lock_file_that_was_removed_meanwhile_locks_nobody(
    root: Root, holder: subprocess.Popen[str], tmp_path: Path
) -> None:
    """`git clean` in a live folder: who comes later locks the new file, and so must who waited for the old one."""
    (tmp_path / LOCK).unlink()
    with folder_lock(root, patience=0.0), Root(tmp_path) as other:
        assert (tmp_path / LOCK).exists()
        assert refusal(other).startswith("lock_busy")


WAITER = HOLDER.replace("patience=0.0", "patience=20.0").replace(
    "with Root", 'print("waits", flush=True)\nwith Root', 1
)


def test_who_waited_for_a_removed_lock_file_takes_the_new_one(
    root: Root, holder: subprocess.Popen[str], tmp_path: Path
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WAITER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as waiting:
        assert waiting.stdout is not None
        assert waiting.stdout.readline() == "waits\n"
        while str(tmp_path / LOCK) not in open_files(waiting.pid):
            assert waiting.poll() is None
        (tmp_path / LOCK).unlink()
        os.kill(holder.pid, signal.SIGKILL)
        assert waiting.stdout.readline() == "held\n"
        assert (
            refusal(root)
            == f"lock_busy: the folder is locked by pid {waiting.pid} on {socket.gethostname()}; waited 0 s"
        )
        waiting.kill()


def open_files(pid: int) -> list[str]:
    """What a process has open, where the system says so."""
    folder = Path(f"/proc/{pid}/fd")
    if not folder.exists():
        pytest.skip("needs /proc to see that another process has opened the lock file")
    found = []
    for entry in folder.iterdir():
        try:
            found.append(os.readlink(entry))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("kind", ["link", "fifo", "folder", "sidecar link", "sidecar file"])
def test_what_cannot_be_a_lock_is_refused(
    root: Root, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, kind: str
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    sidecar = tmp_path / ".collab"
    if kind == "sidecar link":
        sidecar.symlink_to(outside)
    elif kind == "sidecar file":
        sidecar.write_text("")
    else:
        sidecar.mkdir()
    if kind == "link":
        (tmp_path / LOCK).symlink_to(outside / "lock")
    elif kind == "fifo":
        os.mkfifo(tmp_path / LOCK)
    elif kind == "folder":
        (tmp_path / LOCK).mkdir()
    code = refusal(root).partition(":")[0]
    assert (
        code
        == {
            "link": "path_is_link",
            "fifo": "not_a_file",
            "folder": "file_unreadable",
            "sidecar link": "path_is_link",
            "sidecar file": "not_a_folder",
        }[kind]
    )
    assert list(outside.iterdir()) == []


def test_a_lock_file_that_is_a_file_elsewhere_too_keeps_its_text(
    root: Root, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "mine"
    outside.write_bytes(b"what a person wrote\n")
    (tmp_path / ".collab").mkdir()
    os.link(outside, tmp_path / LOCK)
    with folder_lock(root, patience=0.0), Root(tmp_path) as other:
        assert refusal(other).startswith("lock_busy")
    assert outside.read_bytes() == b"what a person wrote\n"
