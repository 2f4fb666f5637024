"""Triage in a real terminal: a pasted stack trace becomes a promoted code, and its inbox item goes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from core.triage.rules import mint
from tests.conftest import console_script
from tests.console.pty_driver import PtyConsole, environment

TRACE = (
    "Traceback (most recent call last):\n"
    '  File "job.py", line 3, in <module>\n'
    "    run()\n"
    "FlangeError: the flange of the pump is loose"
)
CODE = mint(TRACE, None)


@contextmanager
def console(root: Path, home: Path, size: tuple[int, int]) -> Iterator[PtyConsole]:
    made = PtyConsole(str(root), "--as", "reader", environ=environment(home), size=size)
    try:
        yield made
    finally:
        made.close()


def collab(root: Path, *words: str) -> dict[str, object]:
    done = subprocess.run(
        [console_script(), *words, "--root", str(root), "-o", "json"], capture_output=True, encoding="utf-8", check=True
    )
    return dict(json.loads(done.stdout))


def paste(made: PtyConsole, text: str) -> None:
    """What a terminal sends when a person pastes."""
    made.press(f"\x1b[200~{text}\x1b[201~")


@pytest.mark.parametrize("size", [(80, 24), (60, 15)])
def test_a_pasted_trace_becomes_a_promoted_code(size: tuple[int, int], tmp_path: Path) -> None:
    root, home = tmp_path / "work", tmp_path / "home"
    (root / "triage").mkdir(parents=True)
    home.mkdir()
    with console(root, home, size) as made:
        made.sees("Nothing waits for reader")
        made.press("5")
        made.sees("No unknown failure was met here")
        made.press("s")
        paste(made, TRACE)
        made.sees(CODE)
        for key, sightings in (("f2", ""), ("o", "1 waiting")):
            made.press(key)
            made.sees("observations.jsonl")
            made.listens("Enter")
            made.press("enter")
            made.until(lambda shown, told=sightings: "Enter write" not in shown and told in shown and CODE in shown)
        made.press("1")
        made.sees("Inbox", CODE[:20])
        made.press("enter")
        made.sees("Triage")
        made.press("p")
        made.fill("flange_loose", "tab", "pumps", "tab", "tab", "The flange is loose.")
        made.press("f2")
        made.sees("code: flange_loose")
        made.listens("Enter")
        made.press("enter")
        made.sees("promoted")
        made.press("1")
        made.sees("Nothing waits for reader", "0 waiting")
        assert made.end() == 0
    found = collab(root, "triage", "classify", "--text", TRACE)
    assert (found["code"], found["layer"]) == ("flange_loose", "pumps")
