"""The logs on disk: interrupted commits, torn and damaged lines, other writers (docs/specs/workflows.md §1, §6)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.files import Root, set_fault
from core.finding import Refused
from core.workflow import view
from core.workflow.answers import Answer
from core.workflow.signals_in import PACKET_CAP, signal
from core.workflow.state import World
from tests.unit.core.workflow.stage import GO, RUN, Stepped, counted, engine, lay, lines, play, reply, spec

LOG = f"ambient/runs/{RUN}.jsonl"


@pytest.fixture
def root(quick_path: Path) -> Path:
    return lay(quick_path / "root", spec())


@pytest.fixture
def clock() -> Stepped:
    return Stepped()


def begin(root: Path, clock: Stepped) -> None:
    with engine(root, clock) as made:
        made.start("w", "swarm", grant=True)
        made.tick()


def send(root: Path, clock: Stepped, **packet: object) -> tuple[str, str]:
    with Root(root, "ambient/.tmp") as opened:
        return signal(opened, {"from": "porter", "signal": "RETURN", **packet}, clock, counted())


def events(root: Path) -> list[str]:
    return [event["event"] for event in lines(root, LOG)]


def test_a_real_root_behaves_as_simulate(root: Path, clock: Stepped) -> None:
    """The same scenario by the core's own acts and a stepped clock: the same log effects, record and packets."""
    begin(root, clock)
    made = play(
        spec(), GO, reply(1, "a"), reply(2, "b", "fail"), {"at": 3, "decide": {"escalation": 1, "option": "skip"}}
    )
    for number, result in ((0, "success"), (1, "fail")):
        clock.step(1)
        send(root, clock, id=f"sim-{number + 1}", in_reply_to=f"{RUN}/{number}/1", payload={"result": result})
        with engine(root, clock) as one:
            one.tick()
    clock.step(1)
    with engine(root, clock) as people:
        people.answer(Answer("esc-20260401-0001", "operator", option="skip"))
    with engine(root, clock) as one:
        one.tick()
    assert lines(root, "ambient/outbox.jsonl") == made["emitted"]
    assert lines(root, "ambient/notifications.jsonl") == made["notifications"]
    assert (root / f"ambient/runs/{RUN}.yml").read_text("utf-8") == made["records"][0]


def test_where_there_is_nothing_of_ours_nothing_is_made(tmp_path: Path, clock: Stepped) -> None:
    with pytest.raises(Refused) as caught:
        engine(tmp_path, clock)
    assert caught.value.findings[0].code == "E_ROOT"
    with pytest.raises(Refused):
        send(tmp_path, clock)
    assert list(tmp_path.iterdir()) == []


def test_half_a_line_of_a_killed_writer_is_cut(root: Path, clock: Stepped) -> None:
    begin(root, clock)
    with (root / LOG).open("ab") as log:
        log.write(b'{"seq":3,"at":"2026')
    with engine(root, clock) as made:
        assert made.tick().events == []
    assert events(root) == ["run_started", "spawn_intended"]
    assert (root / LOG).read_bytes().endswith(b"\n")


def test_a_reader_without_the_lock_mends_nothing(root: Path, clock: Stepped) -> None:
    begin(root, clock)
    before = (root / LOG).read_bytes() + b'{"seq":3'
    (root / LOG).write_bytes(before)
    with view.Reader(root) as reader:
        assert list(reader.look().runs) == [RUN]
        assert reader.problems == []
    assert (root / LOG).read_bytes() == before


@pytest.mark.parametrize(
    "line", ["{}", "not json", '{"seq": 9, "at": "2026-04-01T08:00:00.000Z", "event": "run_completed"}', "[1]"]
)
def test_a_damaged_log_stops_its_run_and_no_other(root: Path, clock: Stepped, line: str) -> None:
    (root / "workflows/v.yml").write_text(spec("[z]").replace("workflow: w", "workflow: v").replace("f/", "g/"))
    begin(root, clock)
    with (root / LOG).open("a") as log:
        log.write(line + "\n")
    clock.step(1)
    with engine(root, clock) as made:
        made.start("v", "swarm", grant=True)
        made.tick()
        assert [item.code for item in made.findings()] == ["E_LOG_DAMAGED"]
        assert [run.workflow for run in made.world.in_order()] == ["v"]
        assert made.abort(RUN).codes == ["E_RUN_UNKNOWN"]
    assert len(lines(root, "ambient/outbox.jsonl")) == 2


def test_a_damaged_engine_log_stops_the_engine(root: Path, clock: Stepped) -> None:
    (root / "ambient").mkdir()
    (root / "ambient/engine.jsonl").write_text("{}\n")
    with engine(root, clock) as made, pytest.raises(Refused) as caught:
        made.tick()
    assert caught.value.findings[0].code == "E_LOG_DAMAGED"


def test_a_log_that_does_not_begin_with_its_start_is_no_run(root: Path, clock: Stepped) -> None:
    (root / "ambient/runs").mkdir(parents=True)
    (root / "ambient/runs/odd.jsonl").write_text('{"seq": 1, "at": "x", "event": "spawn_intended"}\n')
    (root / "ambient/runs/empty.jsonl").write_text("")
    with engine(root, clock) as made:
        made.tick()
        assert made.world.order == ()
        assert len(made.findings()) == 1


def test_a_full_disk_refuses_the_tick_and_the_next_one_does_it(root: Path, clock: Stepped) -> None:
    begin(root, clock)
    send(root, clock, id="p", in_reply_to=f"{RUN}/0/1", payload={"result": "ok"})
    full = [True]

    def hook(operation: str, name: str) -> None:
        if full[0] and operation == "write" and name == LOG:
            raise OSError(28, "No space left on device")

    set_fault(hook)
    try:
        with engine(root, clock) as made:
            with pytest.raises(Refused) as caught:
                made.tick()
            assert caught.value.findings[0].code == "disk_full"
            full[0] = False
            made.tick()
            assert made.world.runs[RUN].tally["success"] == 1
    finally:
        set_fault(None)
    assert [packet["id"] for packet in lines(root, "ambient/outbox.jsonl")] == [f"{RUN}/0/1", f"{RUN}/1/1"]


@pytest.mark.parametrize("pending", [b"", b"{", b'{"files": 3}', b'{"files": {"x": {"size": "a"}}}'])
def test_a_commit_that_was_not_written_ahead_whole_is_dropped(root: Path, clock: Stepped, pending: bytes) -> None:
    begin(root, clock)
    (root / "ambient/.pending.json").write_bytes(pending)
    with engine(root, clock) as made:
        made.tick()
    assert not (root / "ambient/.pending.json").exists()


def test_a_commit_that_was_done_is_not_done_again(root: Path, clock: Stepped) -> None:
    begin(root, clock)
    text = (root / LOG).read_text("utf-8")
    ahead = {"files": {LOG: {"size": 0, "text": text}}}
    for left in (text, text[: len(text) // 2], ""):
        (root / LOG).write_text(left, "utf-8")
        (root / "ambient/.pending.json").write_text(json.dumps(ahead))
        with engine(root, clock) as made:
            assert made.tick().events == []
        assert (root / LOG).read_text("utf-8") == text


def test_a_long_lived_engine_sees_what_others_write(root: Path, clock: Stepped) -> None:
    with engine(root, clock) as lasting:
        lasting.tick()
        begin(root, clock)
        clock.step(1)
        send(root, clock, id="p", in_reply_to=f"{RUN}/0/1", payload={"result": "fail"})
        lasting.tick()
        with engine(root, clock) as people:
            assert people.answer(Answer("esc-20260401-0001", "ana", option="skip")).status == "accepted"
        lasting.tick()
        assert lasting.world.runs[RUN].tally["skipped"] == 1
        with engine(root, clock) as other:
            other.tick()
            assert _same(other.world, lasting.world)


def _same(one: World, other: World) -> bool:
    return one.runs[RUN]._replace(next_due=0) == other.runs[RUN]._replace(next_due=0)


def test_a_log_that_was_put_back_is_read_from_the_beginning(root: Path, clock: Stepped) -> None:
    with engine(root, clock) as lasting:
        begin(root, clock)
        lasting.tick()
        kept = (root / LOG).read_bytes()
        send(root, clock, id="p", in_reply_to=f"{RUN}/0/1", payload={"result": "ok"})
        lasting.tick()
        (root / LOG).write_bytes(kept)
        (root / "ambient/signals.jsonl").write_bytes(b"")
        lasting.tick()
        assert lasting.world.runs[RUN].flight == {0}
    assert len(lines(root, "ambient/outbox.jsonl")) == 2


def test_a_cleared_outbox_sends_only_what_is_still_open_again(root: Path, clock: Stepped) -> None:
    begin(root, clock)
    send(root, clock, id="p", in_reply_to=f"{RUN}/0/1", payload={"result": "ok"})
    with engine(root, clock) as made:
        made.tick()
        (root / "ambient/outbox.jsonl").write_bytes(b"")
        made.tick()
        assert lines(root, "ambient/outbox.jsonl") == []
    with engine(root, clock) as made:
        made.tick()
        assert [packet["id"] for packet in lines(root, "ambient/outbox.jsonl")] == [f"{RUN}/1/1"]
        for number in (1, 2):
            send(root, clock, id=f"p{number}", in_reply_to=f"{RUN}/{number}/1", payload={"result": "ok"})
            made.tick()
    for name in ("outbox", "notifications"):
        (root / f"ambient/{name}.jsonl").write_bytes(b"")
        with engine(root, clock) as made:
            made.tick()
        assert lines(root, f"ambient/{name}.jsonl") == []


def test_packets_are_recorded_once(root: Path, clock: Stepped) -> None:
    (root / "ambient").mkdir()
    assert send(root, clock, id="é\n", payload={"n": 1}) == ("queued", "é\n")
    assert send(root, clock, id="é\n") == ("duplicate", "é\n")
    assert send(root, clock, id="x") == ("queued", "x")
    assert send(root, clock, id="x", payload={"id": "y"}) == ("duplicate", "x")
    assert send(root, clock, id="y") == ("queued", "y")
    assert send(root, clock) == ("queued", "sig-4")
    assert [packet.get("ts") for packet in lines(root, "ambient/signals.jsonl")] == ["2026-04-01T08:00:00.000Z"] * 4


@pytest.mark.parametrize("packet", [[], {"signal": "RETURN"}, {"id": 3, "from": "a", "signal": "ERROR"}, {"from": "a"}])
def test_what_is_no_packet_is_refused_at_the_door(root: Path, packet: object) -> None:
    with Root(root, "ambient/.tmp") as opened, pytest.raises(Refused) as caught:
        signal(opened, packet)
    assert caught.value.findings[0].code == "E_PACKET"


def test_a_packet_has_a_size(root: Path, clock: Stepped) -> None:
    with pytest.raises(Refused):
        send(root, clock, payload={"result": "x" * PACKET_CAP})
    deep: object = 1
    for _ in range(300):
        deep = [deep]
    with pytest.raises(Refused):
        send(root, clock, payload={"result": deep})


def test_lines_of_others_that_are_no_packets_are_noted_once(root: Path, clock: Stepped) -> None:
    begin(root, clock)
    with (root / "ambient/signals.jsonl").open("ab") as file:
        file.write(
            b'{"signal": "RETURN"}\nnot json\n\xff\n'
            b'{"from": "porter", "signal": "RETURN", "payload": {"result": "ok"}}\n{"half'
        )
    with engine(root, clock) as made:
        made.tick()
        assert [item["reason"] for item in made.world.stray] == ["malformed"] * 3
        assert made.world.runs[RUN].tally["success"] == 1
        assert made.tick().events == []
    send(root, clock, id="after", **{"from": "nobody"})
    with engine(root, clock) as made:
        made.tick()
        assert [item["reason"] for item in made.world.stray] == ["malformed"] * 4 + ["unknown"]


def test_a_broken_spec_is_noted_once_and_until_it_is_mended(root: Path, clock: Stepped) -> None:
    (root / "workflows/bad.yml").write_text("workflow: bad\n")
    for _ in range(2):
        with engine(root, clock) as made:
            made.tick()
            assert list(made.world.disabled) == ["workflows/bad.yml"]
    (root / "workflows/bad.yml").unlink()
    with engine(root, clock) as made:
        made.tick()
        assert made.world.disabled == {}
    assert [event["event"] for event in lines(root, "ambient/engine.jsonl")] == ["spec_disabled", "spec_enabled"]


def test_records_are_written_at_changes_of_outcome_and_else_every_two_seconds(root: Path, clock: Stepped) -> None:
    record = root / f"ambient/runs/{RUN}.yml"
    with engine(root, clock) as made:
        made.start("w", "swarm", grant=True)
        made.tick(flush=False)
        seen = [record.read_text()]
        for number in range(2):
            clock.step(0.9)
            send(root, clock, id=f"p{number}", in_reply_to=f"{RUN}/{number}/1", payload={"result": "ok"})
            made.tick(flush=False)
            seen.append(record.read_text())
        assert seen[0] == seen[1] == seen[2]
        clock.step(0.3)
        made.tick(flush=False)
        assert "success_count: 2" in record.read_text()
        send(root, clock, id="p2", in_reply_to=f"{RUN}/2/1", payload={"result": "ok"})
        made.tick(flush=False)
        assert "outcome: success" in record.read_text()


def test_ids_of_one_day_are_numbered_over_all_runs(root: Path, clock: Stepped) -> None:
    (root / "workflows/v.yml").write_text(spec("[z]").replace("workflow: w", "workflow: v").replace("f/", "g/"))
    with engine(root, clock) as made:
        made.start("w")
        made.start("v")
        made.tick()
        clock.step(86_400)
        made.abort(RUN)
        made.tick()
        made.start("w")
        made.tick()
        names = [name for run in made.world.in_order() for name in run.entry_ids]
    assert names == ["esc-20260401-0001", "esc-20260401-0002", "esc-20260402-0001"]
