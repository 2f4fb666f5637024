"""Many observers at once: one set of side-effect records, an exact count (docs/specs/governance.md §2)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from core.triage import view
from core.triage.store import Place

PROCESSES = 8

OBSERVER = """
import sys
from pathlib import Path
from core.triage.store import Place, observe

place, who, times = Place(Path(sys.argv[1])), sys.argv[2], int(sys.argv[3])
sys.stdin.readline()
created = []
for number in range(times):
    made = observe(place, "the  gearbox COUGHS " if number % 2 else "The gearbox coughs", "press", who)
    created += made.created
print(" ".join(created))
"""


@pytest.mark.parametrize("times", [25, pytest.param(200, marks=pytest.mark.slow)])
def test_8_processes_observe_the_same_signal(times: int, quick_path: Path) -> None:
    """200 times in all; the slow one 200 times each."""
    words = [sys.executable, "-c", OBSERVER, str(quick_path)]
    observers = [
        subprocess.Popen([*words, f"p{number}", str(times)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for number in range(PROCESSES)
    ]
    for observer in observers:
        assert observer.stdin is not None
        observer.stdin.write("go\n")
        observer.stdin.flush()
    told = [observer.communicate(timeout=120)[0] for observer in observers]
    assert [observer.returncode for observer in observers] == [0] * PROCESSES
    assert sorted(" ".join(told).split()) == ["eval_case", "memory", "ticket"]
    lines = (quick_path / "triage" / "observations.jsonl").read_text("utf-8").splitlines()
    assert len({json.loads(line)["by"] for line in lines}) == PROCESSES
    seen = view.listing(Place(quick_path))
    assert not seen.findings
    assert [(item.status, item.sightings) for item in seen.codes] == [("recurring", PROCESSES * times)]
    assert len(view.waiting(quick_path)) == 1
    code = seen.codes[0].code
    assert sorted(path.name for path in (quick_path / "triage" / code).iterdir()) == [
        "eval_case.json",
        "memory.json",
        "ticket.json",
    ]
    assert [path.name for path in (quick_path / "receipts").glob("*.json")] == [f"tri-{code}.json"]
