"""What the console shows of a root: desk, history, follower, previews that write nothing (docs/specs/console.md §2)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.evidence import Evidence, folders, listed
from core.files import Root
from core.finding import Refused
from core.workflow.acts import AbortRun
from core.workflow.answers import Answer, Settlement
from core.workflow.desk import Desk, Workflows, marks, served
from core.workflow.follow import RunFollower
from core.workflow.naming import Names
from core.workflow.planning import Planner
from core.workflow.serving import running, serve
from core.workflow.state import Step
from core.workflow.view import Reader, result_text, run_row
from core.workflow.view_history import History, lanes
from core.workspace import Place, discover, is_workflow
from tests.console.workflow_root import FAILED, LEARNABLE, WorkflowRoot, learned
from tests.unit.core.workflow.stage import Stepped, spec

END = "on_complete: {signal: RETURN, payload: {result: '{{success_count}} of {{total}}'}}\n"


@pytest.fixture
def root(quick_path: Path) -> WorkflowRoot:
    """A run whose second item failed and waits for an answer."""
    made = WorkflowRoot(quick_path / "work", Stepped(), more=END)
    made.start()
    made.reply(0, "ok")
    made.reply(1, FAILED)
    return made


@pytest.fixture
def desk(root: WorkflowRoot) -> Iterator[Desk]:
    made = Desk(root.path, root.clock)
    yield made
    made.close()


def test_a_root_is_found_by_its_two_folders_and_nothing_in_them_is(tmp_path: Path) -> None:
    (tmp_path / "a/workflows").mkdir(parents=True)
    assert discover([tmp_path]) == []
    assert not is_workflow(tmp_path / "a")
    (tmp_path / "a/ambient/deep").mkdir(parents=True)
    (tmp_path / "a/ambient/deep/events.jsonl").write_text("")
    assert discover([tmp_path]) == [Place("workflow", tmp_path / "a")]
    assert is_workflow(tmp_path / "a")
    os.symlink(tmp_path / "a", tmp_path / "link")
    (tmp_path / "b/workflows").mkdir(parents=True)
    os.symlink(tmp_path / "a/ambient", tmp_path / "b/ambient")
    assert discover([tmp_path]) == [Place("workflow", tmp_path / "a")]
    assert [folder.name for folder in folders(Place("workflow", tmp_path))] == [
        "ambient",
        "runs",
        "workflows",
        "agents",
    ]


def test_the_list_has_the_root_and_its_open_runs(root: WorkflowRoot) -> None:
    evidence = Evidence(root.clock)
    place = Place("workflow", root.path)
    (view,) = evidence.look([place])
    assert evidence.look([place]) == (view,)
    items = listed([view])
    assert [(item.kind, item.phase, item.waiting_for, item.health) for item in items] == [
        ("workflow", "waiting", ("pilote",), "ok"),
        ("run", "waiting", ("pilote",), "ok"),
    ]
    assert items[1].title.endswith(" 1/3")
    assert [item.lane for item in view.inbox] == ["decide"]
    root.answer("esc-20260401-0001", "skip")
    root.tick()
    (after,) = evidence.look([place])
    assert after is not view
    assert [item.phase for item in listed([after])] == ["running", "running"]
    root.reply(2, "ok")
    (ended,) = evidence.look([place])
    assert [(item.kind, item.phase) for item in listed([ended])] == [("workflow", "idle")]
    (result,) = ended.inbox
    assert (result.lane, result.title) == ("know", "w has ended: partial, 2 of 3 done well")
    root.clock.step(25 * 3600)
    assert ended.inbox == []
    evidence.close()


def test_a_root_that_cannot_be_read_is_one_finding(tmp_path: Path) -> None:
    evidence = Evidence()
    (view,) = evidence.look([Place("workflow", tmp_path / "gone")])
    assert isinstance(view, Workflows)
    assert [item.code for item in view.findings] == ["folder_missing"]
    (item,) = listed([view])
    assert item.health == "damaged"
    assert view.inbox == []


def test_marks_change_with_the_files_and_with_the_daemon(root: WorkflowRoot) -> None:
    before = marks(root.path)
    assert marks(root.path) == before
    root.tick()
    assert marks(root.path) == before
    root.reply(2, "late")
    after = marks(root.path)
    assert after != before
    with Root(root.path, "ambient/.tmp") as folder:
        assert not running(folder)
        fd = serve(folder)
        assert running(folder)
        assert served(root.path)
        assert marks(root.path) != after
        with pytest.raises(Refused) as refused:
            serve(folder)
        assert refused.value.findings[0].code == "E_DAEMON_RUNNING"
        os.close(fd)
        assert not running(folder)
    assert not served(root.path / "gone")


def test_looking_writes_nothing(root: WorkflowRoot, desk: Desk) -> None:
    before = root.files()
    view = desk.look()
    assert view.rows[0].waits is not None
    with Planner(root.path, root.clock) as planner:
        assert planner.decide(Answer("esc-20260401-0001", "ana", option="skip")).events
        assert planner.decide(AbortRun(root.run().run_id, "ana")).events
        made, starts = planner.tick()
        assert (made.events, starts) == ([], [])
        assert planner.start("w", "manual", False, None, "ana").run_id is None
        assert planner.start("other", "manual", False, None, "ana").outcome.codes == ["E_WORKFLOW_UNKNOWN"]
        assert not planner.served
    assert root.files() == before


def test_a_preview_says_what_is_then_done(root: WorkflowRoot) -> None:
    answer = Answer("esc-20260401-0001", "ana", option="skip", channel="console", key="k")
    with Planner(root.path, root.clock) as planner:
        planned = planner.decide(answer)
        planner.assume(planned)
        assert planner.decide(answer).outcome.replay
    with root.engine() as engine:
        shown = root.entries()[0]
        assert engine.answer(answer, shown).status == "accepted"
    with Reader(root.path) as reader:
        assert reader.events(root.run().run_id)[-1] == dict(planned.events[0].record)
    with Planner(root.path, root.clock) as planner:
        foreseen = [(event.stream, event.record) for event in planner.tick()[0].events]
    with root.engine() as engine:
        done = [(event.stream, event.record) for event in engine.tick().events]
    assert [(stream, _without_tokens(record)) for stream, record in foreseen] == [
        (stream, _without_tokens(record)) for stream, record in done
    ]


def _without_tokens(record: Any) -> Any:
    return {key: value for key, value in record.items() if key != "entry" or isinstance(value, str)}


def test_an_engine_refuses_what_a_preview_showed_otherwise(root: WorkflowRoot) -> None:
    shown = root.entries()[0]
    other = shown.model_copy(update={"reminders": 3})
    with root.engine() as engine, pytest.raises(Refused) as refused:
        engine.answer(Answer(shown.id, "ana", option="skip"), other)
    assert refused.value.findings[0].code == "preview_outdated"
    with root.engine() as engine:
        assert engine.answer(Answer(shown.id, "ana", option="skip"), shown).status == "accepted"
        assert engine.answer(Answer(shown.id, "ben", option="skip"), other).status == "conflict"
    with root.engine() as engine, pytest.raises(Refused) as refused:
        engine.start("w", shown="another hash")
    assert refused.value.findings[0].code == "preview_outdated"


def test_what_would_start_by_itself_is_foreseen(quick_path: Path) -> None:
    made = WorkflowRoot(quick_path / "work", Stepped(), spec(more="trigger: {every: 1h}"))
    with Planner(made.path, made.clock) as planner:
        assert planner.tick()[1] == ["w"]
    made.tick()
    with Planner(made.path, made.clock) as planner:
        assert planner.tick()[1] == []


def test_a_settlement_is_planned(quick_path: Path) -> None:
    made = WorkflowRoot(quick_path / "work", Stepped(), more=LEARNABLE)
    proposal = learned(made)
    with Planner(made.path, made.clock) as planner:
        names = [event.name for event in planner.decide(Settlement(proposal, "ana", True)).events]
    assert names == ["proposal_approved", "rule_made"]
    assert made.world().learning.rules == {}


def test_a_history_knows_the_run_after_each_event(root: WorkflowRoot) -> None:
    with Reader(root.path) as reader:
        events = reader.events(root.run().run_id)
    history = History(root.run().run_id)
    history.add(events[:5])
    history.add(events[5:])
    for index in range(len(events)):
        run = history.at(index)
        assert run is not None
        assert run.seq == index + 1
    assert history.at(len(events) - 1) == root.run()
    assert history.at(-1) is None


def test_a_long_history_steps_from_the_nearest_world_it_kept() -> None:
    history = History("r")
    start = {
        "event": "run_started", "run_id": "r", "number": 1, "workflow": "w", "spec_hash": "h", "mode": "swarm",
        "grant": True, "parent": "orchestrator", "by": "ana", "agents": {}, "seq": 1, "at": "2026-04-01T08:00:00.000Z",
        "spec": {"grammar": "for_each", "workflow": "w", "items": ["a"], "works": [WORK]},
    }  # fmt: skip
    notes = [{**start, "event": "spec_changed", "seq": seq, "spec_hash": None} for seq in range(2, 1000)]
    history.add([start, *notes])
    assert [run.seq for at in (0, 254, 255, 256, 700, 998) if (run := history.at(at))] == [1, 255, 256, 257, 701, 999]


CONTROL = {"control": {"do": "next"}}
WORK = {"agent": "porter", "success": CONTROL, "fail": CONTROL, "partial": CONTROL, "error": CONTROL}


def test_a_run_is_followed_as_its_log_grows(root: WorkflowRoot) -> None:
    follower = RunFollower(root.path, root.run().run_id)
    first = follower.look()
    assert first is not None
    assert follower.look() is first
    assert first.spawns[(1, 1, 0)]["to"] == "porter"
    assert len(first.moments) == len(first.events) == first.run.seq
    root.answer("esc-20260401-0001", "retry")
    root.tick()
    second = follower.look()
    assert second is not None
    assert second.run.seq > first.run.seq
    assert (1, 2, 0) in second.spawns
    earlier = follower.at(first.run.seq - 1)
    assert earlier == first.run
    follower.close()
    nobody = RunFollower(root.path, "w-none")
    assert nobody.look() is None
    nobody.close()
    with pytest.raises(Refused):
        RunFollower(root.path / "gone", "w").look()


def test_a_damaged_log_is_shown_up_to_the_damage(root: WorkflowRoot) -> None:
    name = root.run().run_id
    follower = RunFollower(root.path, name)
    whole = follower.look()
    with (root.path / f"ambient/runs/{name}.jsonl").open("a") as handle:
        handle.write("not json\n")
    assert follower.look() is whole
    follower.close()


def test_a_result_is_what_the_completion_says(root: WorkflowRoot) -> None:
    assert result_text(root.run()) is None
    root.answer("esc-20260401-0001", "skip")
    root.tick()
    root.reply(2, "ok")
    assert result_text(root.run()) == "2 of 3"


def test_progress_counts_closed_items(root: WorkflowRoot) -> None:
    row = run_row(root.run(), 0)
    assert (row.done, row.total, row.in_flight) == (1, 3, 0)


def test_failures_have_names_by_the_catalogue_in_use(root: WorkflowRoot) -> None:
    names = Names(root.path)
    entry = root.entries()[0]
    assert names.entry(entry) == names.cause("port 443 is closed")
    assert names.cause("timeout") == "item_timeout"
    assert names.cause("exit_3") == "agent_exit"
    assert names.cause(None) is None
    assert set(names.of(["timeout", None, "timeout"])) == {"timeout"}
    gate = entry.model_copy(update={"kind": "gate"})
    assert names.entry(gate) is None
    (root.path / "triage/failure_codes.json").write_text("{")
    assert Names(root.path).cause("timeout") is None


@st.composite
def spans(draw: st.DrawFn) -> list[tuple[int, int | None]]:
    made, at = [], 0
    for _ in range(draw(st.integers(1, 12))):
        at += draw(st.sampled_from([0, 1, 50, 10_000_000]))
        made.append((at, draw(st.one_of(st.none(), st.integers(0, 5000)))))
    return made


@given(spans(), st.integers(1, 40))
def test_lanes_lie_in_their_line_in_the_order_of_time(made: list[tuple[int, int | None]], width: int) -> None:
    steps = [Step(0, "a", "porter", 1, 0, begin, duration_ms=took) for begin, took in made]
    now = max(begin + (took or 0) for begin, took in made) + 10
    found = lanes(steps, width, now)
    assert len(found) == len(steps)
    for lane in found:
        assert lane.start >= 0
        assert lane.length >= 1
        assert lane.start + lane.length <= width
    starts = [lane.start for lane in found]
    assert starts == sorted(starts)
    assert lanes([], width, now) == []


def test_an_idle_span_takes_little_of_the_line() -> None:
    steps = [Step(0, "a", "p", 1, 0, 0, duration_ms=1000), Step(1, "b", "p", 1, 0, 86_400_000, duration_ms=1000)]
    first, second = lanes(steps, 20, 86_401_000)
    assert first.length >= 8
    assert second.start <= 12
