"""Rows of triage: classify, open the screen, list and observe with 10,000 entries and 100,000 observations."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from harness import COLLAB, Console, Row, Samples, scratch, timed

from core.triage import rules, store, view
from core.triage.store import Place

ENTRIES, OBSERVATIONS = 10_000, 100_000
TRACE = "Traceback (most recent call last):\n" + "\n".join(
    f'  File "/srv/press/step_{number}.py", line {number}, in run\n    roll(sheet_{number})' for number in range(60)
)


def workspace(root: Path) -> Place:
    """A workspace with a large catalogue and a long history, half of it of 500 unknown signals."""
    codes = [
        {
            "code": f"press_fault_{number}",
            "layer": f"layer-{number % 20}",
            "cause": f"Fault {number} of the press.",
            "match": [f"fault {number} in the press", f"roller {number} reports", f"E{number:05d}"],
            "next_command": f"press fix {number}",
            "recoverable": True,
            "not_this": [],
        }
        for number in range(ENTRIES)
    ]
    (root / "triage").mkdir()
    document = {"schema": "triage_error.catalog.v1", "codes": codes, "aliases": {}}
    (root / store.CODES).write_text(json.dumps(document, indent=2) + "\n", "utf-8")
    with (root / store.OBSERVATIONS).open("w", encoding="utf-8") as log:
        for number in range(OBSERVATIONS):
            unknown = number % 2 == 0
            signal = f"gizmo {number % 1000} exploded" if unknown else f"fault {number % ENTRIES} in the press"
            minted = rules.mint(signal, "press") if unknown else None
            record = {
                "schema": "collab.triage_observation.v1",
                "at": "2026-03-01T09:00:00Z",
                "by": "ada",
                "code": minted or f"press_fault_{number % ENTRIES}",
                "minted": minted,
                "layer": "press",
                "signal": signal,
            }
            log.write(json.dumps(record, separators=(",", ":")) + "\n")
    return Place(root)


def _row(name: str, act: Callable[[], object], budget: str, limit: float | None, turns: int) -> Row:
    samples = Samples()
    for _ in range(turns):
        samples.add(timed(act))
    return Row(name, samples.text(), "–", "–", budget, None if limit is None else samples.high <= limit)


def _screen(root: Path) -> list[Row]:
    """From the key to the codes that were met here, and keys on them, each through a real pty."""
    opens, keys = Samples(unit="s"), Samples()
    for _ in range(3):
        console = Console([COLLAB, str(root), "--as", "ada"])
        try:
            console.wait_for("waiting")
            started = time.perf_counter()
            os.write(console.fd, b"5")
            opens.add(console.wait_for("Waiting for a name") - started)
            console.settle(1.0)
            for _ in range(10):
                keys.add(console.key("\x1b[B"))
        finally:
            console.close()
    return [
        Row("open the triage screen on them", opens.text(), "–", "–", "under 1 s", opens.high < 1.0),
        Row("… key to paint", keys.text(), "–", "–", "95 % < 100 ms", keys.high < 0.1),
    ]


def triage_rows() -> list[Row]:
    """Classify in process (budget 50 ms), and what a screen or an observer pays for the whole history."""
    with scratch() as folder:
        place = workspace(folder)
        catalog = place.load()
        size = f"{ENTRIES:,} entries"
        signals = ("a wholly unknown signal", f"{TRACE}\nfault 9999 in the press", TRACE)
        rows = [
            _row(
                f"classify, {size}: {label}",
                lambda text=text: rules.classify(text, None, catalog),
                "95 % under 50 ms",
                0.050,
                40,
            )
            for label, text in zip(("unknown", "the last entry, 5 KB", "unknown, 5 KB"), signals, strict=True)
        ]
        history = f"{OBSERVATIONS:,} observations"
        rows.append(_row(f"load a catalogue of {size}", place.load, "–", None, 5))
        rows.append(_row(f"list, {history}", lambda: view.listing(place), "–", None, 3))
        rows.append(
            _row(f"observe, {history}", lambda: store.observe(place, "gizmo 7 exploded", "press", "ada"), "–", None, 5)
        )
        return [*rows, *_screen(folder)]
