"""Runs verbs and readers over a spoiled workspace and says what must never happen.

No traceback, no hang, no exit code outside the contract, nothing written outside the workspace or by who only reads,
no raw control byte on a terminal; with `-o json` one document whose findings have codes of the catalogue.
"""

from __future__ import annotations

import io
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from core.triage.rules import is_minted
from core.triage.store import shipped
from tui.cli import main

BUSY, ASLEEP = 20.0, 40.0
"""Seconds of computing, and of waiting, that no verb may need for a workspace of this size."""
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
Signatures = Mapping[str, tuple[int, int, int, int]]


class Hung(BaseException):
    """It took too long; no verb may catch this."""


@dataclass(frozen=True)
class Result:
    status: int
    out: str
    err: str


@contextmanager
def bounded() -> Iterator[None]:
    """Raise `Hung` inside when it computes or waits for too long."""

    def over(number: int, frame: FrameType | None) -> None:
        raise Hung(f"{'computing' if number == signal.SIGVTALRM else 'waiting'} without an end")

    before = {number: signal.signal(number, over) for number in (signal.SIGVTALRM, signal.SIGALRM)}
    signal.setitimer(signal.ITIMER_VIRTUAL, BUSY)
    signal.setitimer(signal.ITIMER_REAL, ASLEEP)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def call(argv: Sequence[str], stdin: bytes = b"") -> Result:
    """A verb in this process, as the console script runs it, without a terminal."""
    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace", write_through=True) for _ in range(2)]
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(stdin), "utf-8")
    try:
        with redirect_stdout(streams[0]), redirect_stderr(streams[1]), bounded():
            status = main(list(argv))
    finally:
        sys.stdin = before
    texts = []
    for stream in streams:
        data = stream.detach()
        assert isinstance(data, io.BytesIO)
        texts.append(data.getvalue().decode("utf-8"))
    return Result(status, *texts)


def signatures(folder: Path, skip: str = "") -> Signatures:
    """What tells whether anything below a folder was touched; a path that begins with `skip` does not count."""
    found: dict[str, tuple[int, int, int, int]] = {}
    for at, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(at, name)
            if skip and path.startswith(skip):
                continue
            info = os.lstat(path)
            moved = 0 if name in folders else info.st_mtime_ns
            found[path] = (info.st_mode, info.st_ino, 0 if name in folders else info.st_size, moved)
    return found


def touched(before: Signatures, after: Signatures) -> list[str]:
    return sorted(path for path in {*before, *after} if before.get(path) != after.get(path))


def check(result: Result, argv: Sequence[str], exits: frozenset[int], home: Path) -> None:
    """All that holds for what a verb said."""
    told = f"{argv}\nexit {result.status}\n{result.out[-2000:]}\n{result.err[-2000:]}"
    trace = home / "state" / "last-error.txt"
    assert not trace.exists(), f"{argv}\n{trace.read_text()[-4000:]}"
    assert "Traceback" not in result.err, told
    assert result.status in exits, told
    for name, text in (("stdout", result.out), ("stderr", result.err)):
        found = RAW.search(text)
        assert found is None, f"raw {found[0]!r} on {name}\n{told}"
    if "json" in argv:
        document = json.loads(result.out)
        assert isinstance(document, dict | list), told
        if isinstance(document, dict):
            findings(document.get("findings", [document["finding"]] if document.get("finding") else []), told)


def findings(found: Sequence[Any], told: str) -> None:
    known = shipped().by_code
    for item in found:
        code = item["code"] if isinstance(item, dict) else item.code
        cause = item["cause"] if isinstance(item, dict) else item.cause
        assert code in known or is_minted(code), f"{code} is in no catalogue\n{told}"
        assert cause.strip(), told


def steps(
    stage: Path,
    looks: Sequence[Callable[[Path], None]],
    reads: Sequence[Sequence[str]],
    writes: Sequence[Sequence[str]],
    exits: frozenset[int],
) -> None:
    """Readers and reading verbs, which must leave the workspace alone, then writing verbs, then the readers again."""
    home, inside = stage / "home", str(stage / "ws")
    outside = signatures(stage, inside)
    before = signatures(stage / "ws")
    for argv in reads:
        check(call(argv), argv, exits, home)
        assert not (moved := touched(before, signatures(stage / "ws"))), f"{argv} wrote {moved}"
    for look in looks:
        with bounded():
            look(stage)
        assert not (moved := touched(before, signatures(stage / "ws"))), f"{look.__name__} wrote {moved}"
    for argv in writes:
        check(call(argv), argv, exits, home)
    for look in looks if writes else ():
        with bounded():
            look(stage)
    ours = str(home)
    strayed = [path for path in touched(outside, signatures(stage, inside)) if not path.startswith(ours)]
    assert not strayed, f"written outside the workspace: {strayed}"
