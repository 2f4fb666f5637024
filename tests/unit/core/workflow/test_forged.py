"""What others write into a root's own files: fields of events, the announced commit, notes of processes, the index."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.files import Root
from core.workflow import shapes, transports
from core.workflow.layout import PENDING
from core.workflow.rows import RunRow, run_row
from core.workflow.view import Reader
from tests.conftest import FixedClock
from tests.console.workflow_root import WorkflowRoot, sample
from tests.unit.core.workflow.stage import Stepped, engine, spec

WRONG: tuple[Any, ...] = (None, True, -1, 10**40, 1.5, "x", [], {}, [[]], {"id": []})


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> WorkflowRoot:
    return sample(tmp_path_factory.mktemp("forged") / "root", Stepped())


def logs(root: Path) -> list[Path]:
    return [*sorted((root / "ambient/runs").glob("*.jsonl")), root / "ambient/learning.jsonl"]


def forgeries(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The record without each of its fields, and with each of them wrong in three ways, others for the next."""
    for place, name in enumerate(record):
        if name not in ("seq", "event"):
            yield {key: value for key, value in record.items() if key != name}
        yield from ({**record, name: WRONG[(3 * place + way) % len(WRONG)]} for way in range(3))


def test_an_event_of_any_other_shape_is_damage_and_never_an_error(root: WorkflowRoot) -> None:
    """Each event of a root, forged in each field: the readers and the engine say so or go on, and raise nothing."""
    seen = set()
    for log in logs(root.path):
        whole = log.read_text().splitlines()
        for number, line in enumerate(whole):
            record = json.loads(line)
            if record["event"] in seen:
                continue
            seen.add(record["event"])
            for forged in forgeries(record):
                log.write_text("\n".join([*whole[:number], json.dumps(forged), *whole[number + 1 :]]) + "\n")
                with Reader(root.path) as reader:
                    reader.look()
                    reader.rows(0)
                    assert all(item.code == "E_LOG_DAMAGED" for item in reader.problems)
        log.write_text("\n".join(whole) + "\n")
    assert {"run_started", "spawn_intended", "step_closed", "entry_opened", "entry_decided", "answer_counted"} <= seen


def test_what_the_engine_writes_has_the_shapes(root: WorkflowRoot) -> None:
    with Reader(root.path) as reader:
        reader.look()
        assert reader.problems == []


def test_a_damaged_run_does_not_stop_the_others(tmp_path: Path) -> None:
    clock = Stepped()
    made = sample(tmp_path / "root", clock)
    log = logs(made.path)[0]
    lines = log.read_text().splitlines()
    forged = {**json.loads(lines[1]), "index": "0"}
    log.write_text("\n".join([lines[0], json.dumps(forged), *lines[2:]]) + "\n")
    (made.path / "ambient/.closed.jsonl").unlink(missing_ok=True)
    with engine(made.path, clock) as one:
        one.tick()
        assert [(item.code, item.where) for item in one.findings() if item.severity == "error"][:1] == [
            ("E_LOG_DAMAGED", f"ambient/runs/{log.name}:2")
        ]
        assert one.abort(made.world().order[-1], "ana", None).status == "accepted"


@pytest.mark.parametrize(
    "announced",
    [
        "[" * 100_000,
        '{"files": {"ambient/engine.jsonl": {"size": 1e999, "text": ""}}}',
        '{"files": {"ambient/engine.jsonl": {"size": -1, "text": "x"}}}',
        '{"files": {"workflows/w.yml": {"size": 0, "text": "x"}}}',
        '{"files": {"ambient/runs/../../workflows/w.yml": {"size": 0, "text": "x"}}}',
        '{"files": {"ambient/runs/w/x.jsonl": {"size": 0, "text": "x"}}}',
        '{"files": {"ambient/engine.jsonl": {"size": 0, "text": "\\ud800"}}}',
        '{"files": []}',
    ],
)
def test_an_announced_commit_touches_logs_alone(announced: str, tmp_path: Path) -> None:
    made = WorkflowRoot(tmp_path / "root", Stepped(), spec())
    (made.path / PENDING).write_text(announced)
    made.tick()
    assert not (made.path / PENDING).exists()
    assert (made.path / "workflows/w.yml").read_text() == spec()
    assert not (made.path / "ambient/engine.jsonl").exists()
    assert not (made.path / "ambient/runs/w").exists()


@pytest.fixture
def noted(tmp_path: Path) -> tuple[Path, Any]:
    """A root with notes of a process: `note(pid, held)`."""
    place = tmp_path / "root" / transports.PROCESSES
    place.mkdir(parents=True)
    packet = {"id": "r/0/1", "to": "porter", "from": "ambient", "deadline": "2020-01-01T00:00:00.000Z"}

    def note(pid: Any) -> None:
        (place / "x.json").write_text(json.dumps({"packet": packet, "pid": pid}))

    (place / "x.out").write_bytes(b"")
    return place, note


@pytest.mark.parametrize("pid", ["bystander", 0, 1, -1, True, 2**40, 10**30, "1", None])
def test_a_forged_note_ends_no_process(pid: Any, noted: Any, tmp_path: Path) -> None:
    """Somebody holds the output and names the number of another process: nobody is ended but who writes there."""
    place, note = noted
    bystander = subprocess.Popen(["sleep", "60"], start_new_session=True, stdout=subprocess.DEVNULL)
    try:
        note(bystander.pid if pid == "bystander" else pid)
        with (place / "x.out").open("ab") as held, Root(tmp_path / "root", "ambient/.tmp") as opened:
            fcntl.flock(held, fcntl.LOCK_EX)
            transport = transports.CommandTransport(opened, True, FixedClock())
            transport.adopt()
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()
    assert list(place.iterdir()) == []


def test_what_writes_there_past_its_deadline_is_ended(noted: Any, tmp_path: Path) -> None:
    place, note = noted
    with (place / "x.out").open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        late = subprocess.Popen(["sleep", "60"], start_new_session=True, stdout=held)
    note(late.pid)
    with Root(tmp_path / "root", "ambient/.tmp") as opened:
        transports.CommandTransport(opened, True, FixedClock()).adopt()
    assert late.wait(10) < 0


def test_where_the_system_does_not_show_files_only_a_session_is_ended(noted: Any, tmp_path: Path) -> None:
    place, _ = noted
    with Root(tmp_path / "root", "ambient/.tmp") as opened:
        output = opened.signature(f"{transports.PROCESSES}/x.out")
    leader = subprocess.Popen(["sleep", "60"], start_new_session=True)
    member = subprocess.Popen(["sleep", "60"])
    try:
        nowhere = str(place / "nowhere")
        assert transports.holds(leader.pid, output, nowhere)
        assert not transports.holds(member.pid, output, nowhere)
        assert not transports.holds(os.getpgrp(), output, nowhere)
    finally:
        for one in (leader, member):
            one.kill()
            one.wait()


def test_notes_that_are_none_are_cleared(noted: Any, tmp_path: Path) -> None:
    place, _ = noted
    for text in ("", "{", "[" * 100_000, "[]", '{"packet": 1, "pid": 2}', '{"packet": {}, "pid": 2}'):
        (place / "x.json").write_text(text)
        with Root(tmp_path / "root", "ambient/.tmp") as opened:
            assert transports.CommandTransport(opened, True, FixedClock()).adopt() is False
        assert not (place / "x.json").exists()


def test_a_row_of_the_index_is_typed(root: WorkflowRoot) -> None:
    run = root.run()
    whole = run_row(run, 0).as_json()
    assert RunRow.read(json.loads(json.dumps(whole))) == run_row(run, 0)
    for name, value in whole.items():
        wrong = [] if isinstance(value, str | int) or value is None else [1]
        with pytest.raises((TypeError, ValueError)):
            RunRow.read({**whole, name: wrong})


def test_every_kind_of_field_is_told_from_others() -> None:
    """The table of shapes is read as it is written: an event of each name fits, and does not without a field."""
    for shape in shapes._SHAPES.values():
        for name, fields in shape.items():
            if fields:
                assert shapes._fits({}, fields) == next((one for one, _, needed in fields if needed), None), name
    assert shapes.problem("r", {"seq": 1, "event": "later_word", "at": "2026-01-01T00:00:00Z"}, None) is not None
    assert shapes.problem("engine", {"seq": 1, "event": "later_word", "at": "2026-01-01T00:00:00Z"}, None) is None
