"""One collaboration with a log of 50,000 events, open in the console while another process appends (docs/design.md §6).

The baseline of each figure is the same on a log of 200 events in the same run: nothing may depend on the length.
"""

from __future__ import annotations

import hashlib
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from harness import COLLAB, Console, Row, Samples, scratch
from rows_acp import TURNS, big_folder, ours_append

from core.acp import history
from core.acp.reader import read
from core.journal import encode

EVENTS, SHORT = 50_000, 200
OPENED, APPENDS, KEYS = 5, 30, 100
UP, PAUSE = "\x1b[A", 0.07


@dataclass
class Figures:
    """What is measured on one log."""

    paint: Samples = field(default_factory=lambda: Samples(unit="s"))
    whole: Samples = field(default_factory=lambda: Samples(unit="s"))
    drawn: Samples = field(default_factory=Samples)
    keys: Samples = field(default_factory=Samples)
    memory: Samples = field(default_factory=lambda: Samples(unit="MB"))


def remembered_folder(folder: Path, count: int) -> Path:
    """A valid folder of `count` events, every one of them written by this tool: the sidecar remembers it."""
    big_folder(folder, count)
    now = read(folder)
    assert now.setup is not None
    documents = history.digests(list(now.documents.values()), now.setup.raw)
    digest, end = hashlib.sha256(), 0
    with (folder / ".collab" / "history.jsonl").open("wb") as sidecar:
        for line, event in zip((folder / "events.jsonl").read_bytes().splitlines(True), now.events, strict=True):
            digest.update(line)
            end += len(line)
            record = history.make(event, end, digest.hexdigest(), documents)
            sidecar.write(encode(record))
    return folder


def _append(place: Path, seq: int, token: str) -> subprocess.Popen[bytes]:
    """Another process appends the event after `seq`, with the token as its summary."""
    who, event = TURNS[(seq - 1) % 2]
    words = ours_append(place, who, event, seq)
    words[words.index("--summary") + 1] = token
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _ended(process: subprocess.Popen[bytes]) -> None:
    if process.wait(timeout=60) != 0:
        raise RuntimeError(f"the append ended with {process.returncode}")


def _measure(folder: Path, count: int) -> Figures:
    """Open the folder five times; then watch other processes append, and press keys while they do."""
    made = Figures()
    place = remembered_folder(folder, count)
    for turn in range(OPENED):
        started = time.perf_counter()
        console = Console([COLLAB, str(place), "--as", "reader"])
        try:
            made.paint.add(console.wait_for("Measure") - started)
            made.whole.add(console.wait_for(f"Event {count}") - started)
            if turn == OPENED - 1:
                console.settle(2.0)
                _keys(console, place, _appends(console, place, count, made.drawn), made.keys)
                made.memory.add(console.memory())
        finally:
            console.close()
    return made


def _appends(console: Console, place: Path, seq: int, drawn: Samples) -> int:
    """From the moment an event is in the log until the console has drawn it; returns the last seq."""
    for turn in range(APPENDS):
        token = f"token{turn:04d}"
        process = _append(place, seq, token)
        seen = console.wait_for(token)
        # The clocks differ, so the moment of the write is carried over as an age.
        ahead = time.time_ns() / 1e9 - time.perf_counter()
        drawn.add(seen + ahead - (place / "events.jsonl").stat().st_mtime_ns / 1e9)
        _ended(process)
        console.settle(0.2)
        seq += 1
    return seq


def _keys(console: Console, place: Path, seq: int, keys: Samples) -> None:
    """The cursor goes up in the log, event by event, while one append follows the other."""
    for key in ("v", "<"):
        console.send(key)
        console.settle(0.5)
    here, process = seq, _append(place, seq, "more")
    for _ in range(KEYS):
        if process.poll() is not None:
            _ended(process)
            seq += 1
            process = _append(place, seq, "more")
        console.forget()
        here -= 1
        pressed = console.send(UP)
        keys.add(console.wait_for(f"seq {here}") - pressed)
        # As fast as somebody presses who looks at what there is.
        due = pressed + PAUSE
        console.read_until(lambda due=due: time.perf_counter() >= due)
    _ended(process)


def long_rows() -> list[Row]:
    """First paint, an append that is drawn, keys meanwhile, memory."""
    with scratch() as folder:
        long = _measure(folder / "long", EVENTS)
        short = _measure(folder / "short", SHORT)

    def row(name: str, wanted: str, budget: str, holds: bool | None) -> Row:
        ours, base = getattr(long, wanted), getattr(short, wanted)
        return Row(name, ours.text(), base.text(), f"{ours.median / base.median:.1f} ×", budget, holds)

    first = f"one log of {EVENTS:,} events, all remembered: first paint"
    return [
        row(first, "paint", "< 1.5 s", long.paint.median < 1.5),
        row("… its last event drawn", "whole", "–", None),
        row("… another process appends, drawn", "drawn", "95 % < 300 ms", long.drawn.high < 0.3),
        row("… key to paint while another process appends", "keys", "95 % < 100 ms", long.keys.high < 0.1),
        row("… memory", "memory", "< 300 MB", long.memory.median < 300),
    ]
