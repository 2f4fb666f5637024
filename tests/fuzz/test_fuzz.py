"""Every parser of untrusted input under structured and random spoiling, by the verbs and by the console's readers.

The suite plays a short fixed run. The long one has a time in all, shared by the targets, and other examples each time:
`COLLAB_FUZZ_SECONDS=3600 python -m pytest -m slow tests/fuzz -n 2`. What it finds is written as a case to
`COLLAB_FUZZ_FOUND` (default: a temporary folder, named in the failure); put into `cases/`, it is replayed by the suite.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.fuzz.examples import CASES, Example, draw, load
from tests.fuzz.mutate import Draws
from tests.fuzz.targets import TARGETS
from tests.tables import publish_row

SHORT = int(os.environ.get("COLLAB_FUZZ_EXAMPLES", "12"))
HOUR = 3600.0
TRIED: Counter[str] = Counter()


def play(data: st.DataObject, name: str) -> None:
    """Draw an example and play it; one that fails is kept."""
    example = draw(TARGETS[name], Draws(data.draw))
    TRIED[name] += 1
    try:
        example.play()
    except BaseException as exc:
        exc.add_note(f"kept as {keep(example)}")
        raise


def keep(example: Example) -> Path:
    """Write an example where it can be found; shrinking ends with the smallest."""
    folder = Path(os.environ.get("COLLAB_FUZZ_FOUND") or Path(tempfile.gettempdir()) / "collab-fuzz-found")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{example.target}.json"
    path.write_text(example.as_json(), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", TARGETS)
def test_a_short_fixed_run(name: str) -> None:
    @settings(max_examples=SHORT, phases=[Phase.generate])
    @given(st.data())
    def run(data: st.DataObject) -> None:
        play(data, name)

    run()


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_a_long_run(name: str) -> None:
    share = float(os.environ.get("COLLAB_FUZZ_SECONDS", HOUR)) / len(TARGETS)
    until, number = time.monotonic() + share, int.from_bytes(os.urandom(6))
    while time.monotonic() < until:
        number += 1

        @seed(number)
        @settings(
            max_examples=50, derandomize=False, deadline=None, database=None, suppress_health_check=list(HealthCheck)
        )
        @given(st.data())
        def run(data: st.DataObject) -> None:
            play(data, name)

        run()
    row = f"| {name} | {len(TARGETS[name].reads) + len(TARGETS[name].writes)} | {TRIED[name]} | {share:.0f} | 0 |"
    publish_row("inputs", row)
    print(row)


@pytest.mark.parametrize("path", sorted(CASES.glob("*.json")), ids=lambda path: path.stem)
def test_what_was_found_before(path: Path) -> None:
    load(path).play()


def test_the_oracles_would_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each oracle refuses a verb that does what must not happen."""
    from tests.fuzz import oracle

    def verb(act: Any) -> Any:
        def main(argv: Any) -> int:
            return int(act() or 0)

        return main

    bad = {
        "raw control": lambda: print("\x1b[2J"),
        "C1": lambda: print("\x9b"),
        "bidi": lambda: print("\u202e"),
        "exit code": lambda: 7,
        "traceback": lambda: print("Traceback (most recent call last)", file=__import__("sys").stderr),
        "outside": lambda: (Path.cwd().parent / "outside" / "new").write_text("x") and 0,
        "reader writes": lambda: (Path.cwd() / "new").write_text("x") and 0,
    }
    for name, act in bad.items():
        monkeypatch.setattr(oracle, "main", verb(act))
        writes = () if name == "reader writes" else (("list",),)
        reads = (("list",),) if name == "reader writes" else ()
        with pytest.raises(AssertionError):
            Example("person", {}, reads, writes).play()
    monkeypatch.setattr(oracle, "main", verb(lambda: time.sleep(60)))
    monkeypatch.setattr(oracle, "ASLEEP", 0.05)
    with pytest.raises(oracle.Hung):
        Example("person", {}, (("list",),), ()).play()
