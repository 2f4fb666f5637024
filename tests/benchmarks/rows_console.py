"""Rows of the console, each through a real pty (docs/design.md §6)."""

from __future__ import annotations

import json
import time
from pathlib import Path

from harness import COLLAB, Console, Row, Samples, init, run, scratch
from rows_acp import TURNS, ours_append

FOLDERS, EVENTS_EACH = 200, 500


def workspace(folder: Path) -> None:
    """200 folders with 100,000 events in all, each a valid collaboration in its own phase."""
    sample = folder / "sample"
    init(sample, ("server", "reader"))
    first = (sample / "events.jsonl").read_text()
    setup = json.loads((sample / "protocol.json").read_text())
    names = ("proposal.md", "review.md", "decisions.md", "readiness.md", "conclusion.md")
    texts = {name: (sample / name).read_text() for name in names}
    for number in range(FOLDERS):
        place = folder / f"team-{number // 20:02d}" / f"folder-{number:03d}"
        place.mkdir(parents=True)
        lines, seq = [first], 1
        last = EVENTS_EACH - number % 2
        while seq < last:
            who, event = TURNS[(seq - 1) % 2]
            seq += 1
            at = f"2027-01-01T{seq // 60 % 24:02d}:{seq % 60:02d}:00Z"
            made = {"seq": seq, "from": who, "event": event, "at": at, "summary": f"Event {seq}", "reply_to": seq - 1}
            lines.append(json.dumps(made, separators=(",", ":")) + "\n")
        reviewing = last % 2 == 0
        setup.update(
            objective=f"Objective number {number:03d}",
            currentPhase="reviewing" if reviewing else "revising",
            waitingFor=["reader"] if reviewing else ["server"],
        )
        (place / "protocol.json").write_text(json.dumps(setup, indent=2, sort_keys=True) + "\n")
        (place / "events.jsonl").write_text("".join(lines))
        for name, text in texts.items():
            (place / name).write_text(text)


def many_rows() -> list[Row]:
    """200 folders: first useful paint, key to paint, memory."""
    paint, keys, memory = Samples(unit="s"), Samples(), Samples(unit="MB")
    with scratch() as folder:
        workspace(folder / "all")
        for _ in range(5):
            started = time.perf_counter()
            console = Console([COLLAB, str(folder / "all"), "--as", "reader"])
            try:
                paint.add(console.wait_for("Objective number") - started)
                console.settle(1.0)
                for _ in range(12):
                    keys.add(console.key("\x1b[B"))
                memory.add(console.memory())
            finally:
                console.close()
    return [
        Row("console, 200 folders, 100,000 events: first paint", paint.text(), "–", "–", "< 1.5 s", paint.median < 1.5),
        Row("… key to paint", keys.text(), "–", "–", "95 % < 100 ms", keys.high < 0.1),
        Row("… memory", memory.text(), "–", "–", "< 300 MB", memory.median < 300),
    ]


def live_row() -> Row:
    """Another process appends; the open collaboration has drawn it."""
    samples = Samples()
    with scratch() as folder:
        place = folder / "c"
        init(place, ("server", "reader"))
        console = Console([COLLAB, str(place), "--as", "reader"])
        try:
            console.wait_for("Measure")
            console.settle(1.0)
            seq = 1
            for turn in range(40):
                who, event = TURNS[turn % 2]
                token = f"token{turn:03d}"
                words = ours_append(place, who, event, seq)
                words[words.index("--summary") + 1] = token
                run(*words)
                written = (place / "events.jsonl").stat().st_mtime_ns
                # The clocks differ, so the moment of the write is carried over as an age.
                behind = (time.time_ns() - written) / 1e9
                now = time.perf_counter()
                drawn = console.wait_for(token)
                samples.add(drawn - now + behind)
                console.settle(0.2)
                seq += 1
        finally:
            console.close()
    holds = samples.median <= 0.150 and samples.high <= 0.300
    return Row("another process appends, drawn", samples.text(), "–", "–", "median 150 ms, 95 % 300 ms", holds)


def big_document_rows() -> list[Row]:
    """A 2 MB proposal.md: its first screen, and keys while it is being rendered."""
    paint, keys = Samples(), Samples()
    with scratch() as folder:
        place = folder / "c"
        init(place, ("server", "reader"))
        section = "## Section {n}\n\n" + "The quick brown fox jumps over the lazy dog, again and again. " * 30 + "\n\n"
        text = "# Begin here: bigdocument\n\n" + "".join(section.format(n=n) for n in range(1060))
        (place / "proposal.md").write_text(text)
        for _ in range(5):
            console = Console([COLLAB, str(place), "--as", "reader"])
            try:
                opened = console.wait_for("drafting")
                paint.add(max(0.0, console.wait_for("bigdocument") - opened))
                for _ in range(10):
                    keys.add(console.key("\x1b[B"))
            finally:
                console.close()
    size = len(text) / 1e6
    return [
        Row(f"{size:.1f} MB proposal.md: raw text drawn", paint.text(), "–", "–", "at once", paint.high < 1.0),
        Row("… key to paint meanwhile", keys.text(), "–", "–", "95 % < 100 ms", keys.high < 0.1),
    ]
