"""Append-only JSONL: read, follow, notice torn tails and rewritten history (docs/specs/acp.md §1, §6).

An unterminated last line is *pending* (its writer may be at work or dead), a terminated line that is no JSON
object is *damaged* and keeps its number. Lines end at `\\n` only and are decoded one by one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from core.files import LINE_CAP, LOG_CAP, Root, Signature, explain, sign, too_large
from core.finding import Finding, Refused, error

_SEPARATORS = {"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_CHUNK = 1024 * 1024
_TAIL = 4096
DEPTH_CAP = 200
LINES_CAP = 1_000_000
_NO_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+"?)++', re.DOTALL)


def encode(record: dict[str, Any]) -> bytes:
    """One compact line with its `\\n`: non-ASCII kept, U+0085, U+2028 and U+2029 escaped, lone surrogates too."""
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for char, escaped in _SEPARATORS.items():
        if char in text:
            text = text.replace(char, escaped)
    try:
        return text.encode("utf-8") + b"\n"
    except UnicodeEncodeError:
        return json.dumps(record, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


def _reject(token: str) -> Any:
    raise ValueError(f"{token} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_reject)


def too_deep(raw: bytes) -> bool:
    """Whether JSON nests deeper than `DEPTH_CAP`: what is read must be writable again. Cheap for flat records."""
    if raw.count(b"[") + raw.count(b"{") <= DEPTH_CAP:
        return False
    depth = 0
    for bracket in _NO_BRACKET.sub(b"", raw):
        if bracket in b"[{":
            depth += 1
            if depth > DEPTH_CAP:
                return True
        else:
            depth -= 1
    return False


def decode(raw: bytes) -> tuple[dict[str, Any] | None, str | None]:
    """(record, None) or (None, why it is none). Never raises, whatever the bytes are."""
    if len(raw) > LINE_CAP:
        return None, f"longer than {LINE_CAP} bytes"
    if too_deep(raw):
        return None, "nested too deeply"
    try:
        value = _DECODER.decode(raw.decode("utf-8"))
    except UnicodeDecodeError:
        return None, "not UTF-8"
    except RecursionError:
        return None, "nested too deeply"
    except ValueError as exc:
        return None, f"invalid JSON: {str(exc).splitlines()[0][:80]}"
    if not isinstance(value, dict):
        return None, "event must be an object"
    return value, None


class Line(NamedTuple):
    """A terminated, non-blank line: its number (from 1), byte offset, bytes without `\\n`, record or problem."""

    number: int
    offset: int
    raw: bytes
    record: dict[str, Any] | None
    problem: str | None


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a log was consumed: enough to follow it cheaply and to notice rewriting.

    `digest` is the sha256 of the first `offset` bytes (whole lines), `lines` their number, blank ones included.
    """

    inode: int
    offset: int
    lines: int
    digest: str


@dataclass(frozen=True, slots=True)
class Log:
    """A log as read once. `pending` are the bytes after the last `\\n`; `problem` says why it is unreadable."""

    lines: tuple[Line, ...]
    pending: bytes
    mark: Mark
    signature: Signature | None
    problem: Finding | None = None


EMPTY = Mark(0, 0, 0, hashlib.sha256(b"").hexdigest())


def read(root: Root, name: str) -> Log:
    """The whole log. A missing or unreadable file is a `problem`, not an exception."""
    return _consume(root, name, EMPTY, hashlib.sha256())[0]


Take = Callable[[Line], None]


def _consume(
    root: Root, name: str, mark: Mark, digest: hashlib._Hash, take: Take | None = None
) -> tuple[Log, hashlib._Hash]:
    """The lines after `mark`, and the digest of everything up to the last `\\n`.

    Of a line above the cap only the beginning is kept in memory, so its length does not matter. A log of more than
    `LOG_CAP` bytes or `LINES_CAP` lines is a problem. With `take` each line goes there and is not kept.
    """
    lines: list[Line] = []
    take = take or lines.append
    number, offset = mark.lines, mark.offset
    held, length = bytearray(), 0
    running = digest.copy()
    try:
        fd, info = root.open_read(name, LOG_CAP)
        try:
            at = os.lseek(fd, mark.offset, os.SEEK_SET)
            while chunk := os.read(fd, _CHUNK):
                at += len(chunk)
                if at > LOG_CAP:
                    raise Refused(too_large(name, at, LOG_CAP))
                if number + chunk.count(b"\n") > LINES_CAP:
                    cause = f"{name} has more than the {LINES_CAP} lines that are read"
                    raise Refused(error("file_too_large", cause, where=name))
                pieces = chunk.split(b"\n")
                for part in pieces[:-1]:
                    size, piece = length + len(part) + 1, part
                    if length:
                        held += part[: LINE_CAP + 1]
                        piece = bytes(held)
                        held.clear()
                        length = 0
                    number += 1
                    if size > LINE_CAP:
                        take(Line(number, offset, piece[:200], None, f"longer than {LINE_CAP} bytes"))
                    elif piece.strip():
                        take(Line(number, offset, piece, *decode(piece)))
                    offset += size
                if rest := pieces[-1]:
                    length += len(rest)
                    if len(held) <= LINE_CAP:
                        held += rest
                running.update(chunk[: len(chunk) - len(rest)])
                if len(pieces) > 1:
                    digest = running.copy()
                running.update(rest)
        finally:
            os.close(fd)
    except Refused as exc:
        return Log((), b"", EMPTY, None, exc.findings[0]), digest
    except OSError as exc:
        return Log((), b"", EMPTY, None, explain(exc, name)), digest
    done = Mark(info.st_ino, offset, number, digest.hexdigest())
    return Log(tuple(lines), bytes(held[:LINE_CAP]), done, sign(info)), digest


def terminated(root: Root, name: str) -> tuple[int, str]:
    """(length, sha256) of the log up to its last `\\n`, without reading a record. Raises Refused or OSError."""
    running, whole, size, at = hashlib.sha256(), hashlib.sha256(), 0, 0
    for chunk in root.pieces(name, 0):
        cut = chunk.rfind(b"\n") + 1
        if cut:
            running.update(chunk[:cut])
            whole, size = running.copy(), at + cut
        running.update(chunk[cut:])
        at += len(chunk)
    return size, whole.hexdigest()


Reset = Literal["gone", "replaced", "truncated", "rewritten"]


@dataclass(frozen=True, slots=True)
class News:
    """What a follower found since the last look. `reset` means: forget everything, `lines` are the whole log."""

    lines: tuple[Line, ...]
    pending: bytes
    reset: Reset | None
    problem: Finding | None = None


class Follower:
    """Reads a growing log once: each `poll` costs one `stat` when nothing happened, else only the new bytes.

    A changed prefix is noticed by its digest: always when the file is another one or shrank, and when it grew
    as long as the prefix is below `verify_cap` bytes; beyond that its last 4 KiB are compared.
    """

    def __init__(self, root: Root, name: str, verify_cap: int = 8 * 1024 * 1024) -> None:
        self.root = root
        """The open folder; it may be opened anew."""
        self._name, self._cap = name, verify_cap
        self._digest = hashlib.sha256()
        self._tail = b""
        self._pending = b""
        self._seen: Signature | None = None
        self._problem: Finding | None = None
        self.mark = EMPTY

    def poll(self, take: Take | None = None) -> News:
        """New lines since the last call, and what is pending now. With `take` each line goes there and is not kept."""
        signature = self.root.signature(self._name)
        if signature is None:
            known = self.mark.offset > 0 or self._seen is not None
            self._forget()
            problem = self.root.read(self._name, 0).problem
            return News((), b"", "gone" if known else None, problem)
        if signature == self._seen:
            return News((), self._pending, None, self._problem)
        reset = self._changed(signature)
        if reset is not None:
            self._forget()
        log, self._digest = _consume(self.root, self._name, self.mark, self._digest, take)
        if log.problem is not None:
            self._forget()
            if log.problem.code == "file_too_large":
                # Looking again would cost as much again.
                self._seen, self._problem = signature, log.problem
            return News((), b"", reset or "gone", log.problem)
        self.mark, self._pending, self._seen = log.mark, log.pending, log.signature
        if self.mark.offset > self._cap:
            self._tail = self._last_bytes()
        return News(log.lines, log.pending, reset)

    def _last_bytes(self) -> bytes:
        try:
            fd, _ = self.root.open_read(self._name)
        except (OSError, Refused):
            return b""
        try:
            return os.pread(fd, _TAIL, max(0, self.mark.offset - _TAIL))[: self.mark.offset]
        finally:
            os.close(fd)

    def _forget(self) -> None:
        self._digest, self._tail, self._seen, self.mark = hashlib.sha256(), b"", None, EMPTY
        self._pending, self._problem = b"", None

    def _changed(self, signature: Signature) -> Reset | None:
        if self.mark.offset == 0:
            return None
        if signature.size < self.mark.offset:
            return "truncated"
        whole = signature.inode != self.mark.inode or self.mark.offset <= self._cap
        if prefix_matches(self.root, self._name, self.mark, None if whole else self._tail):
            return None
        return "replaced" if signature.inode != self.mark.inode else "rewritten"


def prefix_matches(root: Root, name: str, mark: Mark, tail: bytes | None = None) -> bool:
    """Whether the file still begins with the bytes of `mark`; with `tail`, only those before its end are compared."""
    try:
        fd, _ = root.open_read(name)
    except (OSError, Refused):
        return False
    try:
        if tail is not None:
            return os.pread(fd, len(tail), mark.offset - len(tail)) == tail
        digest, left = hashlib.sha256(), mark.offset
        while left > 0:
            chunk = os.read(fd, min(left, _CHUNK))
            if not chunk:
                return False
            digest.update(chunk)
            left -= len(chunk)
        return digest.hexdigest() == mark.digest
    except OSError:
        return False
    finally:
        os.close(fd)
