"""Safe paths, bounded reads, atomic replacement (docs/design.md §1)."""

from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core import files
from core.files import LOG_CAP, Root, open_named, parts_of, set_fault
from core.finding import Refused


@pytest.fixture(autouse=True)
def no_fault() -> Iterator[None]:
    yield
    set_fault(None)


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Root]:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "outside.txt").write_text("secret")
    with Root(folder) as opened:
        yield opened


OUTSIDE = [
    "../outside.txt",
    "a/../../outside.txt",
    "/etc/hostname",
    "",
    ".",
    "./",
    "a\0b",
    "..",
    "a\\b",
    "x" * 256,
    "\ud800",
    "a/\udfff.md",
]


def raise_problem(root: Root, name: str) -> None:
    content = root.read(name)
    assert (content.data is None) == (content.problem is not None)
    if content.problem is not None:
        raise Refused(content.problem)


ENTRIES: dict[str, Callable[[Root, str], object]] = {
    "read": raise_problem,
    "open_read": lambda root, name: os.close(root.open_read(name)[0]),
    "open_lock": lambda root, name: os.close(root.open_lock(name)),
    "replace": lambda root, name: root.replace(name, b"x"),
    "append": lambda root, name: root.append(name, b"x"),
    "truncate": lambda root, name: root.truncate(name, 0),
    "remove": lambda root, name: root.remove(name),
    "pieces": lambda root, name: list(root.pieces(name, 0)),
}


def _refusal(entry: str, root: Root, name: str) -> str:
    """The code with which an entry refuses a name; an operating system error is explained as the product does."""
    with pytest.raises((Refused, OSError)) as caught:
        ENTRIES[entry](root, name)
    if isinstance(caught.value, Refused):
        return caught.value.findings[0].code
    return root.explain(caught.value, name).code


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("name", OUTSIDE, ids=ascii)
def test_no_entry_leaves_the_folder(root: Root, entry: str, name: str) -> None:
    assert _refusal(entry, root, name) == "path_outside_folder"
    assert not root.exists(name)
    assert root.signature(name) is None


@pytest.mark.parametrize("name", OUTSIDE, ids=ascii)
def test_a_listing_of_what_is_outside_is_empty(root: Root, name: str) -> None:
    if name:
        assert root.names(name) == []


def test_parts() -> None:
    assert parts_of("a/./b//c") == ["a", "b", "c"]
    assert parts_of("..a/b..") == ["..a", "b.."]
    assert parts_of("\udcff") == ["\udcff"]


@pytest.fixture
def planted(root: Root, tmp_path: Path) -> Root:
    """Everything that is no plain file: links to files and folders, dangling and circular, FIFO, socket, folder."""
    here = root.path
    (here / "link").symlink_to(tmp_path / "outside.txt")
    (here / "dangling").symlink_to(tmp_path / "nothing")
    (here / "circle").symlink_to(here / "circle")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_text("secret")
    (here / "door").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(here / "fifo")
    (here / "file").write_text("")
    (here / "subfolder").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        before = Path.cwd()
        os.chdir(here)  # a socket's path must be short
        try:
            listening.bind("socket")
        finally:
            os.chdir(before)
    return root


@pytest.mark.parametrize("entry", [name for name in ENTRIES if name != "remove"])
@pytest.mark.parametrize("name", ["link", "dangling", "circle", "door/file", "fifo", "socket", "subfolder", "file/x"])
def test_what_is_no_plain_file_is_refused(planted: Root, tmp_path: Path, entry: str, name: str) -> None:
    code = _refusal(entry, planted, name)
    expected = {"path_is_link"} if name in ("link", "dangling", "circle", "door/file") else set()
    if name in ("link", "dangling", "circle") and entry == "replace":
        expected = {"not_a_file"}
    if name in ("fifo", "socket", "subfolder"):
        expected = {"not_a_file", "file_unreadable"}
    if name == "file/x":
        expected = {"not_a_folder"}
    assert code in expected
    assert (tmp_path / "outside.txt").read_text() == "secret"
    assert (tmp_path / "elsewhere" / "file").read_text() == "secret"
    assert not (tmp_path / "nothing").exists()


def test_a_device_is_no_file(root: Root) -> None:
    try:
        os.mknod(root.path / "device", stat.S_IFCHR | 0o666, os.stat("/dev/null").st_rdev)
    except OSError:
        # Only the superuser makes devices; a link to one must not be followed either.
        (root.path / "device").symlink_to("/dev/null")
    for entry in ("read", "replace", "append"):
        assert _refusal(entry, root, "device") in ("not_a_file", "path_is_link")


def test_removing_a_link_removes_only_the_link(planted: Root, tmp_path: Path) -> None:
    planted.remove("link")
    planted.remove("nothing at all")
    assert not planted.exists("link")
    assert (tmp_path / "outside.txt").read_text() == "secret"
    assert _refusal("remove", planted, "door/file") == "path_is_link"


def test_the_folder_itself(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path, code in (
        (tmp_path / "missing", "folder_missing"),
        (tmp_path / "file", "not_a_folder"),
        (tmp_path / "a\0b", "folder_missing"),
    ):
        with pytest.raises(Refused) as caught:
            Root(path)
        assert caught.value.findings[0].code == code


def test_reads_are_bounded(root: Root) -> None:
    (root.path / "small").write_bytes(b"12345")
    assert root.read("small", cap=5).data == b"12345"
    problem = root.read("small", cap=4).problem
    assert problem is not None
    assert problem.code == "file_too_large"
    with (root.path / "giant").open("wb") as handle:
        handle.truncate(8 * 1024**3)
    problem = root.read("giant").problem
    assert problem is not None
    assert problem.code == "file_too_large"


def test_a_file_without_a_size_is_bounded_too(root: Root) -> None:
    """Some file systems say 0: what is read counts, not what is said."""
    with open("/dev/zero", "rb", buffering=0) as endless:
        assert len(files._read_fd(endless.fileno(), 1000, 0)) == 1000


def test_an_unreadable_file_is_a_finding(root: Root) -> None:
    (root.path / "here").mkdir()
    missing = root.read("here/not")
    assert missing.missing
    assert missing.data is None


def test_replace_keeps_permissions_and_makes_folders(root: Root) -> None:
    root.replace("a/b/c.md", b"1")
    (root.path / "a/b/c.md").chmod(0o640)
    root.replace("a/b/c.md", b"2")
    assert (root.path / "a/b/c.md").read_bytes() == b"2"
    assert stat.S_IMODE((root.path / "a/b/c.md").stat().st_mode) == 0o640
    assert root.names(".collab") == []


def test_create_never_overwrites(root: Root) -> None:
    assert root.create("one", b"1")
    assert not root.create("one", b"2")
    assert root.read("one").data == b"1"


def _points(act: Callable[[], object]) -> list[str]:
    """The fault points that an act passes."""
    seen: list[str] = []
    set_fault(lambda operation, name: seen.append(operation))
    try:
        act()
    finally:
        set_fault(None)
    return seen


def fail_at(number: int, code: int) -> files.Fault:
    """A hook that fails the n-th point with an errno."""
    left = [number]

    def hook(operation: str, name: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise OSError(code, os.strerror(code))

    return hook


@pytest.mark.parametrize(
    ("code", "finding"),
    [(errno.ENOSPC, "disk_full"), (errno.EIO, "file_unreadable"), (errno.EACCES, "permission_denied")],
)
def test_a_replacement_that_fails_leaves_old_or_new(root: Root, code: int, finding: str) -> None:
    root.replace("doc", b"old")
    points = _points(lambda: root.replace("doc", b"old"))
    assert points == ["write", "fsync", "rename", "fsync_dir"]
    for number, operation in enumerate(points, start=1):
        root.replace("doc", b"old")
        set_fault(fail_at(number, code))
        with pytest.raises(Refused) as caught:
            root.replace("doc", b"new")
        set_fault(None)
        assert caught.value.findings[0].code == finding
        assert root.read("doc").data == (b"new" if operation == "fsync_dir" else b"old")
        assert root.names(".collab") == []


def test_an_append_that_fails_leaves_nothing_of_itself(root: Root) -> None:
    points = _points(lambda: root.append("log", b"one\n"))
    assert points == ["write", "fsync", "fsync_dir"]
    for number in (1, 2):
        set_fault(fail_at(number, errno.ENOSPC))
        with pytest.raises(Refused):
            root.append("log", b"two\n")
        set_fault(None)
        assert root.read("log").data == b"one\n"
    for number in (1, 2, 3):
        set_fault(fail_at(number, errno.EIO))
        with pytest.raises(Refused):
            root.append("fresh", b"two\n")
        set_fault(None)
        assert root.read("fresh").data in (None, b"")
        root.remove("fresh")


def test_an_append_may_end_a_torn_line_first(root: Root) -> None:
    root.append("log", b"torn")
    root.append("log", b"one\n", own_line=True)
    root.append("log", b"two\n", own_line=True)
    assert root.read("log").data == b"torn\none\ntwo\n"


def test_pieces_go_on_from_an_offset(root: Root) -> None:
    data = bytes(range(256)) * 8192
    root.replace("big", data)
    assert b"".join(root.pieces("big", 1000)) == data[1000:]
    root.replace("copy", root.pieces("big", 5))
    assert root.read("copy").data == data[5:]


def test_a_failing_rename_is_not_confused_with_a_link(root: Root) -> None:
    (root.path / "door").symlink_to(root.path)
    with pytest.raises(Refused) as caught:
        root.replace("door/file", b"x")
    assert caught.value.findings[0].code == "path_is_link"
    assert "symbolic link" in caught.value.findings[0].cause


def test_a_tree_is_removed_with_links_as_links(root: Root, tmp_path: Path) -> None:
    (root.path / "tree/deep").mkdir(parents=True)
    (root.path / "tree/deep/a").write_text("x")
    (root.path / "tree/out").symlink_to(tmp_path / "outside.txt")
    (root.path / "tree/up").symlink_to(tmp_path)
    root.remove_tree("tree")
    assert not (root.path / "tree").exists()
    assert (tmp_path / "outside.txt").read_text() == "secret"
    root.remove_tree("tree")
    (root.path / "file").write_text("x")
    root.remove_tree("file")
    assert not (root.path / "file").exists()
    with pytest.raises(Refused):
        root.remove_tree("../outside.txt")


@pytest.mark.parametrize("mode", [0o4777, 0o2755, 0o1644])
def test_a_replaced_file_lets_nobody_act_as_its_owner(root: Root, mode: int) -> None:
    """Who replaces a file owns it: a bit that somebody set on the old one would act with the rights of this one."""
    root.replace("doc.md", b"")
    (root.path / "doc.md").chmod(mode)
    root.replace("doc.md", b"")
    assert stat.S_IMODE((root.path / "doc.md").stat().st_mode) == mode & 0o777


def test_a_file_that_has_another_name_elsewhere_is_not_changed_in_place(
    root: Root, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "mine"
    outside.write_bytes(b"kept\n")
    os.link(outside, root.path / "log.jsonl")
    for act in (lambda: root.append("log.jsonl", b"more\n"), lambda: root.truncate("log.jsonl", 0)):
        with pytest.raises(Refused, match="is a file elsewhere too"):
            act()
    root.replace("log.jsonl", b"new\n")
    assert outside.read_bytes() == b"kept\n"
    root.append("log.jsonl", b"more\n")
    assert root.read("log.jsonl").data == b"new\nmore\n"


def test_a_sweep_is_bounded_and_goes_on_next_time(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "SWEPT", 3)
    (root.path / ".collab").mkdir()
    for number in range(5):
        (root.path / f".collab/tmp-1-0000000{number}").touch()
    root.sweep(locked=True)
    assert len(root.names(".collab")) == 2
    root.sweep(locked=True)
    assert root.names(".collab") == []


def test_a_stream_of_holes_is_refused_at_its_size(root: Root) -> None:
    (root.path / "log").touch()
    os.truncate(root.path / "log", LOG_CAP)
    fd, _ = root.open_read("log", LOG_CAP)
    os.close(fd)
    os.truncate(root.path / "log", LOG_CAP + 1)
    with pytest.raises(Refused, match="at most"):
        next(root.pieces("log", 0))


def test_a_stream_that_grows_while_it_is_read_ends(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LOG_CAP", 4)
    (root.path / "log").write_bytes(b"1234")
    read = root.pieces("log", 0)
    assert next(read) == b"1234"
    root.append("log", b"5")
    with pytest.raises(Refused, match="at most"):
        next(read)


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("/dev/zero", "it is a device"),
        ("/proc/self/environ", "it is a part of /proc"),
        ("/proc/self/fd/PIPE", "it is a named pipe"),
    ],
)
def test_a_link_that_a_person_names_leads_to_files_only(tmp_path: Path, target: str, reason: str) -> None:
    """Its name says a file; whoever may write beside it chose what it leads to."""
    if not Path(target).parent.exists():
        pytest.skip("needs /proc")
    read, write = os.pipe()
    try:
        (tmp_path / "text").symlink_to(target.replace("PIPE", str(read)))
        with pytest.raises(OSError, match=reason):
            open_named(tmp_path / "text")
        os.write(write, b"said")
        with open_named(f"/dev/fd/{read}") as given:
            assert given.read(4) == b"said"
    finally:
        os.close(read)
        os.close(write)


def test_a_link_to_a_file_or_to_nothing_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "nothing").symlink_to(os.devnull)
    for name, text in (("link", b"text"), ("nothing", b"")):
        with open_named(tmp_path / name) as given:
            assert given.read() == text
    with pytest.raises(IsADirectoryError):
        open_named(tmp_path)
