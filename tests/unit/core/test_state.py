"""A person's own state is a convenience: whatever happens to it, it reads as empty (docs/design.md §3)."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

import pytest

from core.state import UserState, key
from tests.processes.running import running


@pytest.fixture
def state(tmp_path: Path) -> UserState:
    return UserState(tmp_path / "deep" / "state")


def test_nothing_is_there_until_something_is_kept(state: UserState) -> None:
    assert state.load("identity.json") == {}
    assert state.identity(Path("/srv")) is None
    assert not state.folder.exists()


def test_what_is_kept_is_read_again(state: UserState) -> None:
    assert state.save("seen/x.json", {"a": [1, None], "é": "中"})
    assert state.load("seen/x.json") == {"a": [1, None], "é": "中"}
    assert state.save("seen/x.json", {"b": 1})
    assert state.load("seen/x.json") == {"b": 1}
    assert state.folder.stat().st_mode & 0o077 == 0


def test_a_merge_keeps_the_rest_and_none_removes(state: UserState) -> None:
    assert state.update("x.json", {"a": 1, "b": 2})
    assert state.update("x.json", {"b": None, "c": 3, "gone": None})
    assert state.load("x.json") == {"a": 1, "c": 3}


def test_who_i_am_is_kept_by_folder(state: UserState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = tmp_path / "one", tmp_path / "two \udcff\u2028\n"
    assert state.set_identity(one, "server")
    assert state.set_identity(two, "reader \udcff")
    assert (state.identity(one), state.identity(two)) == ("server", "reader \udcff")
    assert state.identity(tmp_path) is None
    monkeypatch.chdir(tmp_path)
    assert state.identity(Path("one")) == "server"


@pytest.mark.parametrize("value", [5, None, ["server"], {"who": "server"}])
def test_an_identity_of_another_type_is_none(state: UserState, tmp_path: Path, value: object) -> None:
    state.save("identity.json", {str(tmp_path): value})
    assert state.identity(tmp_path) is None


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"null", b"5", b"\xff\xfe", b"{" * 100_000, b'{"a": NaN', b"\0", b'"' + b"x" * 100],
    ids=range(10),
)
def test_a_damaged_file_reads_as_empty_and_is_replaced(state: UserState, data: bytes) -> None:
    state.save("x.json", {"a": 1})
    (state.folder / "x.json").write_bytes(data)
    assert state.load("x.json") == {}
    assert state.update("x.json", {"b": 2})
    assert state.load("x.json") == {"b": 2}


@pytest.mark.parametrize("name", ["../x.json", "/etc/passwd", "", "a\0b", "x" * 300, "a\\b"])
def test_nothing_leaves_the_state_folder(state: UserState, name: str) -> None:
    assert state.save("x.json", {})
    assert state.load(name) == {}
    assert not state.save(name, {"a": 1})
    assert not state.update(name, {"a": 1})
    assert sorted(os.listdir(state.folder.parent)) == ["state"]


@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_only_a_file_is_read_or_replaced(state: UserState, tmp_path: Path, kind: str) -> None:
    state.save("other.json", {})
    path = state.folder / "x.json"
    outside = tmp_path / "outside"
    outside.write_text('{"a": 1}')
    if kind == "link":
        path.symlink_to(outside)
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()
    assert state.load("x.json") == {}
    assert not state.save("x.json", {"b": 2})
    assert outside.read_text() == '{"a": 1}'


@pytest.mark.parametrize(
    "kind", ["a file in its place", "a file above it", "a file system that takes nothing", "a dead link"]
)
def test_a_place_that_cannot_be_written_stops_nothing(tmp_path: Path, kind: str) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "missing" / "deep")
    place = {
        "a file in its place": tmp_path / "file",
        "a file above it": tmp_path / "file" / "state",
        "a file system that takes nothing": Path("/proc/collab-state"),
        "a dead link": tmp_path / "link",
    }[kind]
    state = UserState(place)
    assert not state.save("x.json", {"a": 1})
    assert not state.update("x.json", {"a": 1})
    assert not state.set_identity(tmp_path, "server")
    assert state.load("x.json") == {}
    assert (tmp_path / "file").read_text() == "x"


def test_a_lock_that_somebody_holds_is_not_waited_for_long(state: UserState) -> None:
    state.save("x.json", {"a": 1})
    code = "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, 2); print('held', flush=True); sys.stdin.read()"
    with running([sys.executable, "-c", code, str(state.folder / ".lock")]) as holder:
        assert holder.stdout.readline() == b"held\n"
        assert not state.update("x.json", {"a": 2})
        assert state.load("x.json") == {"a": 1}
        holder.communicate()
    assert state.update("x.json", {"a": 2})


def test_two_writers_lose_nothing(state: UserState) -> None:
    def write(who: int) -> None:
        for number in range(20):
            assert state.update("x.json", {f"{who}-{number}": number})

    threads = [threading.Thread(target=write, args=(who,)) for who in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(state.load("x.json")) == 60


def test_a_key_is_a_file_name_of_one_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [tmp_path / "a", tmp_path / "b", tmp_path / "\udcff", tmp_path / "é", tmp_path / "x\n"]
    assert len({key(path) for path in names}) == len(names)
    assert all(len(key(path)) == 24 and set(key(path)) <= set("0123456789abcdef") for path in names)
    monkeypatch.chdir(tmp_path)
    assert key(Path("a")) == key(tmp_path / "a")


def test_what_is_written_is_ascii(state: UserState) -> None:
    """A terminal that somebody shows it on does nothing."""
    state.save("x.json", {"\x1b[2J": "\u202e\x9b\udcff"})
    data = (state.folder / "x.json").read_bytes()
    assert all(byte == 10 or 32 <= byte < 127 for byte in data)
    assert json.loads(data) == {"\x1b[2J": "\u202e\x9b\udcff"}
