"""Runs that are over cost nothing to look at, and everything is as if they had been read (docs/design.md §6)."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.files import Root
from core.workflow.answers import Answer
from core.workflow.closed import FILE, ClosedRuns
from core.workflow.engine import Engine
from core.workflow.rows import RunRow
from core.workflow.signals_in import signal
from core.workflow.view import Reader
from tests.console.workflow_root import FAILED, LEARNABLE, WorkflowRoot, learned
from tests.unit.core.workflow.stage import Stepped, counted, lines


@pytest.fixture
def root(quick_path: Path) -> WorkflowRoot:
    """Two runs that are over, one with a question that was answered, and one that asks."""
    made = WorkflowRoot(quick_path / "work", Stepped())
    for _ in range(2):
        made.start()
        made.reply(0, FAILED)
        made.answer(made.entries()[-1].id, "skip")
        made.tick()
        made.reply(1, "ok")
        made.reply(2, "ok")
    made.start()
    made.reply(0, FAILED)
    return made


def rows(root: WorkflowRoot, whole: bool) -> list[RunRow]:
    with Reader(root.path, whole) as reader:
        reader.look()
        return reader.rows(0)


def unread(root: WorkflowRoot) -> int:
    with Reader(root.path, whole=False) as reader:
        return len(rows(root, False)) - len(reader.look().runs)


def test_rows_are_the_same_whether_runs_are_read_or_not(root: WorkflowRoot) -> None:
    assert unread(root) == 2
    assert rows(root, False) == rows(root, True)
    assert [row.number for row in rows(root, False)] == [3, 2, 1]
    (root.path / FILE).unlink()
    assert unread(root) == 0
    assert rows(root, False) == rows(root, True)
    root.tick()
    assert unread(root) == 2


def test_a_row_survives_its_own_json(root: WorkflowRoot) -> None:
    for row in rows(root, True):
        assert RunRow.read(json.loads(json.dumps(row.as_json()))) == row


def test_a_late_packet_makes_the_log_be_read_again(root: WorkflowRoot) -> None:
    first = rows(root, True)[-1].run_id
    with Root(root.path, "ambient/.tmp") as folder:
        late = {"from": "porter", "signal": "RETURN", "in_reply_to": f"{first}/0/1", "payload": {"result": "ok"}}
        signal(folder, late, root.clock)
    before = (root.path / FILE).read_bytes()
    with root.engine() as engine:
        engine.tick()
        assert engine.world.runs[first].rejected == 1
    assert (root.path / FILE).read_bytes() != before
    assert unread(root) == 2
    assert rows(root, False) == rows(root, True)
    with (root.path / f"ambient/runs/{first}.jsonl").open("a") as handle:
        handle.write('{"seq": 99}\n')
    assert unread(root) == 1


def test_acts_know_what_was_left_out(root: WorkflowRoot) -> None:
    old = rows(root, True)[-1]
    with Engine(root.path, clock=root.clock, chance=counted()) as engine:
        gone = engine.answer(Answer("esc-20260401-0001", "ana", option="retry"))
        assert (gone.status, gone.winner and gone.winner["decided_by"]) == ("conflict", "ben")
        assert engine.store.run_ids() == {row.run_id for row in rows(root, True)}
    with Engine(root.path, clock=root.clock, chance=counted()) as engine:
        assert engine.abort(old.run_id, "ana").status == "gone"
        assert engine.abort("w-none", "ana").codes == ["E_RUN_UNKNOWN"]
    with Engine(root.path, clock=Stepped(), chance=counted()) as engine:
        # A clock that went back: engine time does not.
        assert engine.abort(rows(root, True)[0].run_id, "ana").status == "accepted"
    log = lines(root.path, f"ambient/runs/{rows(root, True)[0].run_id}.jsonl")
    assert log[-1]["at"] >= log[-3]["at"]


def test_a_start_after_runs_that_are_over_has_its_own_number_and_id(root: WorkflowRoot) -> None:
    root.answer(root.entries()[-1].id, "abort")
    root.tick()
    assert unread(root) == 3
    with Engine(root.path, clock=root.clock, chance=counted()) as engine:
        made = engine.start("w", "swarm", True).run_id
        assert len(engine.world.runs) == 1
    assert made is not None
    assert made.endswith("-0004")
    root.tick()
    assert [row.number for row in rows(root, True)] == [4, 3, 2, 1]


def test_a_proposal_keeps_its_evidence(quick_path: Path) -> None:
    made = WorkflowRoot(quick_path / "work", Stepped(), more=LEARNABLE)
    learned(made)
    with Reader(made.path, whole=False) as reader:
        assert reader.look().runs == {}
        assert len(reader.with_evidence().runs) == 2
        assert reader.with_runs(["w-none"]).entry("esc-20260401-0001") is not None
    with Reader(made.path, whole=False) as reader:
        reader.look()
        assert reader.with_entries(["esc-20260401-0002", "esc-none"]).entry("esc-20260401-0002") is not None


BAD = [
    b"not json\n",
    b"{}\n",
    b'{"run_id": "w", "row": 3}\n',
    b'{"row": {"run_id": [1]}}\n',
    b"\x00\xff\n",
    b'{"row": {}',
]


@settings(max_examples=25)
@given(st.lists(st.sampled_from(BAD), max_size=4))
def test_lines_that_are_none_count_for_nothing(tail: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as place:
        made = WorkflowRoot(Path(place) / "work", Stepped(), items="[a]")
        made.start()
        made.reply(0, "ok")
        file = made.path / FILE
        file.write_bytes(b"".join(tail) + (b"\n" if tail else b"") + file.read_bytes() + b"".join(tail))
        assert rows(made, False) == rows(made, True)
        made.start()
        made.reply(0, "ok")
        assert rows(made, False) == rows(made, True)
        assert unread(made) == 2


def test_a_row_of_other_types_is_none() -> None:
    with pytest.raises((TypeError, KeyError)):
        RunRow.read({"open_entries": [], "counts": {}})


def test_the_index_is_written_anew_when_most_of_it_is_old(root: WorkflowRoot) -> None:
    with Root(root.path, "ambient/.tmp") as folder:
        index = ClosedRuns(folder)
        index.refresh()
        file = root.path / FILE
        file.write_bytes(file.read_bytes() * 60)
        root.reply(0, "late")
        root.answer(root.entries()[-1].id, "abort")
        root.tick()
        index.refresh()
        assert len(index.known) == 3
    assert len(file.read_bytes().splitlines()) == 3
    assert rows(root, False) == rows(root, True)


def test_an_index_that_cannot_be_written_stops_nothing(root: WorkflowRoot) -> None:
    (root.path / FILE).unlink()
    (root.path / FILE).mkdir()
    root.tick()
    assert rows(root, False) == rows(root, True)


def test_many_closed_runs_are_looked_at_without_reading_one(quick_path: Path) -> None:
    made = WorkflowRoot(quick_path / "work", Stepped(), items="[a, b]")
    first = made.start()
    for index in range(2):
        made.reply(index, "ok")
    multiply(made, first, 40)
    made.tick()
    assert unread(made) == 40
    assert rows(made, False) == rows(made, True)


def multiply(root: WorkflowRoot, run_id: str, count: int) -> None:
    """The same run so many times, under other ids."""
    log = (root.path / f"ambient/runs/{run_id}.jsonl").read_text("utf-8")
    record = (root.path / f"ambient/runs/{run_id}.yml").read_text("utf-8")
    for number in range(2, count + 1):
        other = f"{run_id[:-4]}{number:04x}"
        text = log.replace(run_id, other).replace('"number":1,', f'"number":{number},')
        (root.path / f"ambient/runs/{other}.jsonl").write_text(_packets(text, number), "utf-8")
        (root.path / f"ambient/runs/{other}.yml").write_text(record.replace(run_id, other), "utf-8")


def _packets(text: str, number: int) -> str:
    made: list[Any] = [json.loads(line) for line in text.splitlines()]
    for event in made:
        if "packet" in event:
            event["packet"] += f"-{number}"
    return "".join(json.dumps(event, separators=(",", ":")) + "\n" for event in made)
