"""Every other writing act, killed and failed at each of its fault points: nothing is lost, nobody has to help."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.faults.acts import ACTS, Act, filled
from tests.faults.test_acp import MODES, contents, every_mode, say
from tui.cli import MODULES


def logs(folder: Path) -> dict[str, list[bytes]]:
    """The whole lines of each log by name. A cache that can be made again is none."""
    found = (path for path in folder.rglob("*.jsonl") if not path.name.startswith("."))
    return {str(path.relative_to(folder)): path.read_bytes().split(b"\n")[:-1] for path in found}


def shape(folder: Path) -> tuple[Counter[str], Counter[str]]:
    """How many files of each kind there are, and how long the logs of each folder are; names and times may differ.

    A log that was begun and never written is none yet.
    """
    names = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    kept = (name for name in names if not any(part.startswith(".") for part in name.parts))
    lengths = Counter[str]()
    for name, lines in logs(folder).items():
        lengths[str(Path(name).parent)] += len(lines)
    return Counter(f"{name.parent}/*{name.suffix}" for name in kept), lengths


def check_whole(folder: Path, before: dict[str, list[bytes]], label: str) -> None:
    """No line that was there is gone or changed, and every document is whole."""
    after = logs(folder)
    for name, lines in before.items():
        assert after[name][: len(lines)] == lines, f"{label}: {name}"
    for name, data in contents(folder).items():
        if name.endswith(".json"):
            assert json.loads(data) is not None, f"{label}: {name}"


def check_run(act: Act, start: Path, named: str, run: dict[str, Any], folder: Path, done: Any, say_: Any) -> None:
    label = f"{act.name} at point {run['n']} {run['operation']} {run['name']}"
    before = logs(start)
    assert run["status"] in (None, 0, 1, 2), run
    assert "Traceback" not in run["err"], run
    said = {0: "", 1: "warning: ", 2: "error: "}.get(run["status"], "")
    assert run["err"].startswith(said), f"{label}: {run}"
    if run["status"] is not None:
        assert not list(folder.rglob("tmp-*")), label
    check_whole(folder, before, label)
    left = contents(folder)
    for read in act.reads:
        status, said = say_(*filled(read, folder))
        assert status in (0, 1), f"{label}: {said}"
    assert contents(folder) == left, label
    # The next writer settles what there is to settle; then the act itself is done, or was.
    status, said = say_(*filled(act.argv, folder, named))
    assert status in (0, 2), f"{label}: {said}"
    if act.after:
        assert say_(*filled(act.after, folder, named))[0] == 0, label
    check_whole(folder, before, label)
    kinds, lengths = shape(folder)
    if act.once:
        whole_kinds, whole_lengths = shape(done)
        assert kinds - whole_kinds == whole_kinds - kinds == Counter(), f"{label}: {said}"
        assert lengths == whole_lengths, f"{label}: {said}"
    else:
        assert lengths >= shape(done)[1], f"{label}: {said}"
    assert not list(folder.rglob("tmp-*")), label


@pytest.mark.parametrize("act", ACTS, ids=lambda act: f"{act.system}: {act.name}")
def test_each_point_of_each_act(act: Act, quick_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start = quick_path / "start" / "work"
    named = act.made(start)
    argv = filled(act.argv, "{folder}", named)
    played = every_mode(start, quick_path, argv, MODES[:2], least=1)
    assert {"write", "fsync", "rename"} & {run["operation"] for run, _ in played}
    last = max(int(path.name) for path in (quick_path / "kill").iterdir())
    done = quick_path / "kill" / str(last) / "work"
    if act.after:
        assert say(capsys, *filled(act.after, done, named))[0] == 0
    for run, folder in played:
        check_run(act, start, named, run, folder, done, lambda *words: say(capsys, *words))


READING = {
    *("next", "wait", "validate", "show", "log", "diff", "prompt", "list", "inbox", "status", "members", "completion"),
    "demo",
}
"""Verbs that write nothing into a folder; a demo makes one of its own, by the other verbs."""


def test_every_writing_verb_is_tried() -> None:
    from tests.faults.test_acp import ADD, DRAFT, FREEZES, RAW, WAY

    tried = {verb.argv[0] for verb in (*RAW, *WAY, *FREEZES, DRAFT)} | {act.argv[0] for act in ACTS} | {ADD[0]}
    # These have tests of their own, or a table (tests/faults/test_acp.py, tests/faults/test_ledger.py).
    tried |= {"init", "new-round", "repair", "ledger"}
    assert sorted(MODULES) == sorted(tried | READING)
