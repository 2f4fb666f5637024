"""Safe paths, bounded reads, atomic replacement, digests (docs/design.md §1).

Every access starts from an open folder and walks names one by one without following links, so nothing leaves
the folder: `..`, absolute paths, symbolic links, FIFOs and devices are refused. Every write, fsync, rename and
unlink of a guarded writer passes `_act`, the one place where a test may fail it or end the process.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shlex
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from core.finding import Finding, Refused, error
from core.renaming import rename_new

LINE_CAP = 1024 * 1024
DOCUMENT_CAP = 16 * 1024 * 1024
LOG_CAP = 1024 * 1024 * 1024
"""A hole costs its writer nothing and its reader all of its length."""
SWEPT = 1000
"""Files that one sweep removes at most: whoever fills a folder with them must not stop who writes beside them."""
_PREFIX = "tmp-"
_TEMPORARY = re.compile(_PREFIX + r"([0-9]{1,10})-[0-9a-f]{8}")
_PIECE = 1024 * 1024

Fault = Callable[[str, str], None]
_faults: list[Fault] = []


def set_fault(hook: Fault | None) -> None:
    """Install a hook called as `hook(operation, name)` before each write, fsync, rename, unlink and mkdir."""
    _faults[:] = [] if hook is None else [hook]


def _act(operation: str, name: str) -> None:
    for hook in _faults:
        hook(operation, name)


def sha256(data: bytes) -> str:
    """64 lower-case hex digits."""
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class Signature:
    """What tells cheaply that a file is another one or has changed: (inode, size, mtime in ns)."""

    inode: int
    size: int
    mtime: int


@dataclass(frozen=True, slots=True)
class Content:
    """Result of a bounded read: the bytes, or why there are none. `data` is None exactly when `problem` is set."""

    name: str
    data: bytes | None
    problem: Finding | None = None
    signature: Signature | None = None

    @property
    def missing(self) -> bool:
        return self.problem is not None and self.problem.code == "file_missing"


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def sign(info: os.stat_result) -> Signature:
    """The signature in a stat result."""
    return Signature(info.st_ino, info.st_size, info.st_mtime_ns)


def parts_of(name: str) -> list[str] | None:
    """The segments of a relative path, or None if it is absolute, empty, has `..`, or is no file name at all."""
    if not name or name.startswith("/") or "\0" in name or "\\" in name:
        return None
    parts = [part for part in name.split("/") if part not in ("", ".")]
    try:
        fits = all(len(os.fsencode(part)) <= 255 for part in parts)
    except UnicodeEncodeError:
        return None
    return parts if parts and fits and ".." not in parts else None


def explain(exc: OSError, name: str) -> Finding:
    """The finding for an operating system error, in a person's words."""
    if exc.errno in (errno.ENOENT, errno.ENOTDIR):
        return error("file_missing", f"missing {name}", where=name)
    if exc.errno == errno.ELOOP:
        return error("path_is_link", f"{name} is a symbolic link; links are not followed", where=name)
    if exc.errno in (errno.EACCES, errno.EPERM):
        return error("permission_denied", f"no permission for {name}", where=name)
    if exc.errno == errno.EROFS:
        return error("folder_read_only", f"{name} is on a read-only file system", where=name)
    if exc.errno in (errno.ENOSPC, errno.EDQUOT):
        return error("disk_full", f"no space left while writing {name}", where=name)
    reason = os.strerror(exc.errno) if exc.errno else str(exc)
    return error("file_unreadable", f"{name}: {reason}", where=name)


class Root:
    """An open folder; all names are relative to it. Use as a context manager."""

    def __init__(self, path: Path, scratch: str = ".collab") -> None:
        """Raises Refused (`folder_missing`, `not_a_folder`, `permission_denied`) when it cannot be opened.

        `scratch` is the folder inside it where temporary files are made.
        """
        self.path = path
        self.scratch = scratch
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise Refused(error("folder_missing", f"there is no folder {path}", where=str(path))) from None
        except NotADirectoryError:
            raise Refused(error("not_a_folder", f"{path} is not a folder", where=str(path))) from None
        except (OSError, ValueError) as exc:
            found = explain(exc, str(path)) if isinstance(exc, OSError) else None
            raise Refused(found or error("folder_missing", f"{path!r} is no path", where=str(path))) from None

    def __enter__(self) -> Root:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    @contextmanager
    def _parent(self, name: str, create: bool = False) -> Iterator[tuple[int, str]]:
        """(descriptor of the folder that holds the last segment, that segment)."""
        parts = parts_of(name)
        if parts is None:
            raise Refused(error("path_outside_folder", f"{name} does not stay inside the folder", where=name))
        fd, opened = self._fd, []
        try:
            for part in parts[:-1]:
                if create:
                    try:
                        os.stat(part, dir_fd=fd, follow_symlinks=False)
                    except FileNotFoundError:
                        _act("mkdir", part)
                        try:
                            os.mkdir(part, 0o777, dir_fd=fd)
                        except FileExistsError:
                            pass
                fd = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
                opened.append(fd)
            yield fd, parts[-1]
        finally:
            for item in reversed(opened):
                os.close(item)

    def _open(self, parent: int, leaf: str, flags: int, mode: int = 0o666) -> int:
        return os.open(leaf, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode, dir_fd=parent)

    def read(self, name: str, cap: int = DOCUMENT_CAP) -> Content:
        """The whole file, at most `cap` bytes. Never raises for what a file may be: see `Content.problem`."""
        try:
            with self._parent(name) as (parent, leaf):
                fd = self._open(parent, leaf, os.O_RDONLY)
                try:
                    info = os.fstat(fd)
                    if not stat.S_ISREG(info.st_mode):
                        return Content(name, None, error("not_a_file", f"{name} is not a regular file", where=name))
                    if info.st_size > cap:
                        return Content(name, None, too_large(name, info.st_size, cap), sign(info))
                    data = _read_fd(fd, cap + 1, info.st_size)
                    if len(data) > cap:
                        return Content(name, None, too_large(name, len(data), cap), sign(info))
                    return Content(name, data, None, sign(info))
                finally:
                    os.close(fd)
        except Refused as exc:
            return Content(name, None, exc.findings[0])
        except OSError as exc:
            return Content(name, None, self.explain(exc, name))

    def explain(self, exc: OSError, name: str) -> Finding:
        """ENOTDIR of an O_NOFOLLOW walk may hide a link or a file: look, so that the cause is the true one."""
        if exc.errno == errno.ENOTDIR:
            here = self.path
            for part in parts_of(name) or []:
                if os.path.isfile(here):
                    return error("not_a_folder", f"{here.name} is a file, so there is no {name}", where=name)
                here = here / part
                if os.path.islink(here):
                    cause = f"{name} goes through a symbolic link; links are not followed"
                    return error("path_is_link", cause, where=name)
        return explain(exc, name)

    def open_read(self, name: str, cap: int | None = None) -> tuple[int, os.stat_result]:
        """A descriptor for streaming reads of at most `cap` bytes; the caller closes it. Raises Refused or OSError."""
        with self._parent(name) as (parent, leaf):
            fd = self._open(parent, leaf, os.O_RDONLY)
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            os.close(fd)
            raise Refused(error("not_a_file", f"{name} is not a regular file", where=name))
        if cap is not None and info.st_size > cap:
            os.close(fd)
            raise Refused(too_large(name, info.st_size, cap))
        return fd, info

    def pieces(self, name: str, offset: int) -> Iterator[bytes]:
        """The bytes from `offset` to the end, piece by piece, `LOG_CAP` in all. Raises Refused or OSError."""
        fd, _ = self.open_read(name, LOG_CAP)
        try:
            while piece := os.pread(fd, _PIECE, offset):
                offset += len(piece)
                if offset > LOG_CAP:
                    raise Refused(too_large(name, offset, LOG_CAP))
                yield piece
        finally:
            os.close(fd)

    def open_lock(self, name: str) -> int:
        """A descriptor on a lock file, created when absent; the caller closes it. Raises Refused or OSError."""
        with self._parent(name, create=True) as (parent, leaf):
            fd = self._open(parent, leaf, os.O_RDWR | os.O_CREAT)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise Refused(error("not_a_file", f"{name} is not a regular file", where=name))
        return fd

    def signature(self, name: str) -> Signature | None:
        """(inode, size, mtime) of a regular file, or None."""
        try:
            with self._parent(name) as (parent, leaf):
                info = os.stat(leaf, dir_fd=parent, follow_symlinks=False)
                return sign(info) if stat.S_ISREG(info.st_mode) else None
        except (OSError, Refused):
            return None

    def exists(self, name: str) -> bool:
        """Whether anything at all has this name (a dangling link too)."""
        try:
            with self._parent(name) as (parent, leaf):
                os.stat(leaf, dir_fd=parent, follow_symlinks=False)
                return True
        except (OSError, Refused):
            return False

    def names(self, name: str = "") -> list[str]:
        """Sorted entry names of a folder inside; empty when there is none."""
        try:
            if not name:
                return sorted(os.listdir(self._fd))
            with self._parent(name) as (parent, leaf):
                fd = os.open(leaf, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
                try:
                    return sorted(os.listdir(fd))
                finally:
                    os.close(fd)
        except (OSError, Refused):
            return []

    def replace(self, name: str, data: bytes | Iterable[bytes], fresh: bool = False) -> None:
        """Replace a file atomically: temporary file in the scratch folder, write, fsync, rename, fsync of the folder.

        An existing file keeps its permission bits; with `fresh` it is refused instead (`file_exists`), whoever
        made it meanwhile. Raises Refused with the cause of any failure, leaving nothing.
        """
        digest = sha256(name.encode("utf-8", "surrogatepass"))[:8]
        temporary = f"{self.scratch}/{_PREFIX}{os.getpid()}-{digest}"
        try:
            with self._parent(temporary, True) as (tmp_dir, tmp_leaf), self._parent(name, True) as (dir_fd, leaf):
                mode = 0o666
                try:
                    info = os.stat(leaf, dir_fd=dir_fd, follow_symlinks=False)
                    if not stat.S_ISREG(info.st_mode):
                        raise Refused(error("not_a_file", f"{name} is not a regular file", where=name))
                    # The file becomes ours, so a bit that lets others act as its owner must not come with it.
                    mode = stat.S_IMODE(info.st_mode) & 0o777
                except FileNotFoundError:
                    pass
                try:
                    os.unlink(tmp_leaf, dir_fd=tmp_dir)
                except FileNotFoundError:
                    pass
                fd = self._open(tmp_dir, tmp_leaf, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
                try:
                    try:
                        if mode != 0o666:
                            os.fchmod(fd, mode)
                        for piece in (data,) if isinstance(data, bytes) else data:
                            write_all(fd, piece, name)
                        _act("fsync", name)
                        os.fsync(fd)
                    finally:
                        os.close(fd)
                    _act("rename", name)
                    if not fresh:
                        os.rename(tmp_leaf, leaf, src_dir_fd=tmp_dir, dst_dir_fd=dir_fd)
                    elif not rename_new(tmp_dir, tmp_leaf, dir_fd, leaf):
                        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
                except OSError:
                    os.unlink(tmp_leaf, dir_fd=tmp_dir)
                    raise
                _act("fsync_dir", name)
                os.fsync(dir_fd)
        except FileExistsError:
            raise Refused(error("file_exists", f"{name} is there already", where=name)) from None
        except OSError as exc:
            raise Refused(self.explain(exc, name)) from exc

    def sweep(self, locked: bool = False) -> None:
        """Remove temporary files that killed writers left in the scratch folder.

        `locked`: all who write with this scratch folder do so under a lock that is held, so each of them is a
        leftover; otherwise only those whose process is gone. At most `SWEPT` are removed, the others next time.
        """
        left = SWEPT
        for name in self.names("" if self.scratch == "." else self.scratch):
            made = _TEMPORARY.fullmatch(name)
            if made is not None and (locked or not _alive(int(made[1]))):
                if not left:
                    return
                left -= 1
                try:
                    self.remove(f"{self.scratch}/{name}")
                except Refused:
                    # Not one of ours: a folder, say. It is in nobody's way.
                    pass

    def create(self, name: str, data: bytes | Iterable[bytes]) -> bool:
        """Write a file that must not exist yet (whole or not at all); False when it was there already."""
        if self.exists(name):
            return False
        try:
            self.replace(name, data, fresh=True)
        except Refused as exc:
            if exc.findings[0].code == "file_exists":
                return False
            raise
        return True

    def append(self, name: str, data: bytes, own_line: bool = False) -> None:
        """Add bytes at the end with one write and an fsync; creates the file. Raises Refused.

        With `own_line` an unfinished last line, which a killed writer left, is ended first.
        """
        try:
            with self._parent(name, create=True) as (parent, leaf):
                fresh = not self.exists(name)
                fd = self._open(parent, leaf, os.O_RDWR | os.O_APPEND | os.O_CREAT)
                try:
                    info = os.fstat(fd)
                    if not stat.S_ISREG(info.st_mode):
                        raise Refused(error("not_a_file", f"{name} is not a regular file", where=name))
                    _alone(info, self.path / name)
                    if own_line and info.st_size and os.pread(fd, 1, info.st_size - 1) != b"\n":
                        data = b"\n" + data
                    try:
                        write_all(fd, data, name)
                        _act("fsync", name)
                        os.fsync(fd)
                        if fresh:
                            _act("fsync_dir", name)
                            os.fsync(parent)
                    except OSError:
                        # What was not acknowledged must not stay half-written.
                        os.ftruncate(fd, info.st_size)
                        raise
                finally:
                    os.close(fd)
        except OSError as exc:
            raise Refused(self.explain(exc, name)) from exc

    def truncate(self, name: str, size: int) -> None:
        """Cut a file to `size` bytes and fsync. Raises Refused."""
        try:
            with self._parent(name) as (parent, leaf):
                fd = self._open(parent, leaf, os.O_WRONLY)
                try:
                    _alone(os.fstat(fd), self.path / name)
                    _act("truncate", name)
                    os.ftruncate(fd, size)
                    _act("fsync", name)
                    os.fsync(fd)
                finally:
                    os.close(fd)
        except OSError as exc:
            raise Refused(self.explain(exc, name)) from exc

    def move(self, name: str, target: str) -> bool:
        """Rename a file or folder to a name that must be free; False when it is taken. Raises Refused."""
        try:
            with self._parent(name) as (from_fd, from_leaf), self._parent(target, create=True) as (to_fd, to_leaf):
                _act("rename", target)
                if not rename_new(from_fd, from_leaf, to_fd, to_leaf):
                    return False
                _act("fsync_dir", target)
                os.fsync(to_fd)
                return True
        except OSError as exc:
            raise Refused(self.explain(exc, target)) from exc

    def remove_tree(self, name: str) -> None:
        """Remove a folder and all in it, links as links, or a file; nothing happens when it is gone. Raises Refused."""
        try:
            with self._parent(name) as (parent, leaf):
                if not stat.S_ISDIR(os.stat(leaf, dir_fd=parent, follow_symlinks=False).st_mode):
                    return self.remove(name)
                for entry in self.names(name):
                    self.remove_tree(f"{name}/{entry}")
                _act("rmdir", name)
                os.rmdir(leaf, dir_fd=parent)
        except FileNotFoundError:
            pass
        except OSError as exc:
            raise Refused(self.explain(exc, name)) from exc
        return None

    def remove(self, name: str) -> None:
        """Remove a file; nothing happens when it is gone already. Raises Refused."""
        try:
            with self._parent(name) as (parent, leaf):
                _act("unlink", name)
                os.unlink(leaf, dir_fd=parent)
        except FileNotFoundError:
            pass
        except OSError as exc:
            raise Refused(self.explain(exc, name)) from exc


def _alone(info: os.stat_result, path: Path) -> None:
    """A file that is changed in place has one name: by another it is a file elsewhere. Raises Refused."""
    if info.st_nlink > 1:
        old, new = shlex.quote(str(path)), shlex.quote(f"{path}.own")
        cause = f"{path.name} is a file elsewhere too (a hard link), and writing would change that one"
        raise Refused(error("not_a_file", cause, f"cp -p {old} {new} && mv {new} {old}", str(path)))


_GIVEN = ("/dev/fd/", "/dev/stdin", "/dev/tty", "/proc/self/fd/")


def open_named(name: str | Path) -> BinaryIO:
    """A file that a person named, for reading; links to files are followed. Raises OSError, ValueError.

    Pipes, devices and what the kernel shows of processes are refused: whoever can write beside a file can put a link
    to one in its place. Those that the name itself says (`/dev/stdin`, and `/dev/fd/…` of a shell) are read.
    """
    if os.path.abspath(name).startswith(_GIVEN):
        return open(name, "rb")
    fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        info = os.fstat(fd)
        if stat.S_ISFIFO(info.st_mode):
            raise OSError(errno.EINVAL, "it is a named pipe")
        if stat.S_ISDIR(info.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(info.st_mode) and not _is_null(info):
            raise OSError(errno.EINVAL, "it is a device")
        if stat.S_ISREG(info.st_mode) and info.st_dev == _processes():
            raise OSError(errno.EINVAL, "it is a part of /proc")
        return os.fdopen(fd, "rb")
    except BaseException:
        os.close(fd)
        raise


def _is_null(info: os.stat_result) -> bool:
    return stat.S_ISCHR(info.st_mode) and info.st_rdev == os.stat(os.devnull).st_rdev


def _processes() -> int | None:
    try:
        return os.stat("/proc/self/").st_dev if sys.platform == "linux" else None
    except OSError:
        return None


def write_all(fd: int, data: bytes, name: str) -> None:
    """Write every byte; one system call unless the kernel takes less."""
    view = memoryview(data)
    _act("write", name)
    while view:
        view = view[os.write(fd, view) :]


def _read_fd(fd: int, limit: int, hint: int) -> bytes:
    chunks, left = [], limit
    size = min(limit, max(hint + 1, 65536))
    while left > 0:
        chunk = os.read(fd, min(left, size))
        if not chunk:
            break
        chunks.append(chunk)
        left -= len(chunk)
    return b"".join(chunks)


def too_large(name: str, size: int, cap: int) -> Finding:
    """The finding for a file above its cap, both in bytes."""
    return error("file_too_large", f"{name} has {size} bytes; at most {cap} are read", where=name)
