"""What people see: runs, an escalation, a timeline, the spec, proposals, the inbox (docs/specs/console.md §2)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from core.files import Root
from core.workflow import desktop, times, view, view_history, view_inbox, view_learning
from core.workflow.answers import Answer
from core.workflow.boundaries import boundaries
from core.workflow.record import scalar
from core.workflow.signals_in import signal
from core.workflow.state import World
from tests.unit.core.workflow.stage import RUN, Stepped, counted, engine, lay, spec

FAILED = {"status": "fail", "cause": "port 443"}


class Scene:
    """A root in which a run of three items has begun."""

    def __init__(self, path: Path, more: str = "", mode: str = "swarm") -> None:
        self.path, self.clock = lay(path / "root", spec(more=more)), Stepped()
        with engine(self.path, self.clock) as made:
            made.start("w", mode, grant=True, by="ana")
            made.tick()

    def reply(self, index: int, result: Any, run: str = RUN, attempt: int = 1) -> None:
        self.clock.step(1)
        packet = {"from": "porter", "signal": "RETURN", "in_reply_to": f"{run}/{index}/{attempt}"}
        with Root(self.path, "ambient/.tmp") as root:
            signal(root, {**packet, "payload": {"result": result}}, self.clock, counted())
        self.tick()

    def answer(self, number: int, option: str, **more: Any) -> None:
        self.clock.step(1)
        with engine(self.path, self.clock) as made:
            assert made.answer(Answer(f"esc-20260401-{number:04d}", "ana", option=option, **more)).status == "accepted"
        self.tick()

    def tick(self) -> None:
        with engine(self.path, self.clock) as made:
            made.tick()

    @property
    def now(self) -> int:
        return times.of(self.clock.now())

    def world(self) -> World:
        with view.Reader(self.path) as reader:
            return reader.look()

    def rows(self) -> list[view.RunRow]:
        return view.runs(self.world(), self.now)

    def events(self, run: str = RUN) -> list[dict[str, Any]]:
        with view.Reader(self.path) as reader:
            return reader.events(run)


def test_a_root_is_known_by_its_folders(tmp_path: Path) -> None:
    assert not view.is_root(tmp_path)
    (tmp_path / "workflows").mkdir()
    (tmp_path / "ambient").mkdir()
    assert view.is_root(tmp_path)


def test_a_run_in_one_line(quick_path: Path) -> None:
    scene = Scene(quick_path)
    scene.reply(0, "ok")
    scene.reply(1, FAILED)
    (row,) = view.runs(scene.world(), scene.now)
    assert (row.run_id, row.done, row.total, row.outcome, row.in_flight) == (RUN, 1, 3, "waiting", 0)
    assert row.waits == "'b' failed: port 443. What now?"
    assert row.open_entries == ("esc-20260401-0001",)
    assert row.as_json()["counts"] == {"success": 1, "fail": 1, "not_started": 1}
    scene.answer(1, "skip")
    (row,) = view.runs(scene.world(), scene.now)
    assert (row.done, row.outcome, row.waits, row.in_flight) == (2, "running", None, 1)


def test_what_waits_for_people_comes_first(quick_path: Path) -> None:
    scene = Scene(quick_path)
    scene.reply(0, FAILED)
    scene.answer(1, "abort")
    with engine(scene.path, scene.clock) as made:
        made.start("w", "assisted")
    scene.tick()
    rows = view.runs(scene.world(), scene.now)
    assert [row.outcome for row in rows] == ["waiting", "aborted"]


def test_an_escalation_in_detail(quick_path: Path) -> None:
    scene = Scene(quick_path, "on_escalate: {deadline: 1h, on_deadline: skip, wait: item}")
    scene.reply(0, FAILED)
    scene.reply(1, FAILED)
    world = scene.world()
    entry = world.entry("esc-20260401-0001")
    assert entry is not None
    made = view.entry_view(world, entry, Path("/a b"))
    assert made.question == "'a' failed: port 443. What now?"
    facts = dict(made.facts)
    assert (facts["item"], facts["agent"], facts["attempts"], facts["last cause"]) == (
        "a (1 of 3)",
        "porter",
        "1, resumed 0",
        "port 443",
    )
    assert facts["impact"] == "project: f/a; this item waits"
    assert [option.id for option in made.options] == ["retry", "skip", "resolve", "abort"]
    assert made.options[0].command == "collab escalation decide esc-20260401-0001 retry --root '/a b'"
    assert made.at_deadline == "the item is closed as skipped"
    assert made.may_respond
    assert made.alike == ("esc-20260401-0002",)
    assert made.answered is None
    scene.answer(1, "resolve")
    world = scene.world()
    entry = world.entry("esc-20260401-0001")
    assert entry is not None
    assert view.entry_view(world, entry).answered == "ana: resolve at 2026-04-01T08:00:03.000Z"


def test_a_timeline_in_words(quick_path: Path) -> None:
    scene = Scene(quick_path, "retry: {max: 1, on: [fail]}")
    scene.reply(0, FAILED)
    scene.reply(0, "partial", attempt=2)
    scene.answer(1, "skip")
    moments = view_history.timeline(scene.events(), scene.world().runs[RUN].spec)
    assert [moment.seq for moment in moments] == list(range(1, len(moments) + 1))
    words = [moment.text for moment in moments]
    assert words[0] == "started by ana in swarm mode"
    assert "attempt 1 to porter" in words
    assert "fail after 1000 ms: port 443" in words
    assert "a retry is due at 2026-04-01T08:00:01.000Z" in words
    assert "esc-20260401-0001: skip by ana" in words
    assert "closed as skipped by human" in words
    assert {moment.item for moment in moments} == {None, "a", "b"}
    assert {moment.tone for moment in moments} <= {"done", "running", "failed", "waits", "note"}


def test_the_spec_with_its_current_route(quick_path: Path) -> None:
    scene = Scene(quick_path)
    scene.reply(0, FAILED)
    run = scene.world().runs[RUN]
    lines = view_history.spec_lines(run.spec, run)
    assert lines[0].text == "w (for_each, 3 items, 1 at once)"
    assert [line.text for line in lines if line.current] == ["  each item: porter in project on f/{{item}}"]
    assert [line.text for line in lines if line.taken] == ["    fail: → ESCALATE pilote"]
    assert not any(line.current or line.taken for line in view_history.spec_lines(run.spec))


def learned(scene: Scene) -> None:
    for number in (1, 2):
        run = RUN if number == 1 else scene.world().order[-1]
        scene.reply(0, FAILED, run)
        scene.answer(number, "skip")
        for index in (1, 2):
            scene.reply(index, "ok", run)
        if number == 1:
            with engine(scene.path, scene.clock) as made:
                made.start("w", "swarm", grant=True)
            scene.tick()


def test_a_proposal_with_evidence_and_difference(quick_path: Path) -> None:
    scene = Scene(quick_path)
    learned(scene)
    world = scene.world()
    (made,) = view_learning.proposals(world)
    assert made.state == "open"
    assert made.choices == ("retry", "skip")
    assert [name for name, _ in made.evidence] == ["esc-20260401-0001", "esc-20260401-0002"]
    assert made.evidence[0][1] == f"{RUN}, a: port 443, ana said skip"
    assert made.before[0].endswith("a person is asked")
    assert made.after[0].endswith("skip, by rule; a person is told")
    assert view_learning.counts(world)[0]["count"] == 2


def test_what_speaks_for_swarm(quick_path: Path) -> None:
    scene = Scene(quick_path, "external_effect: false", mode="assisted")
    assert view_learning.readiness(scene.rows()) == {"w": {"manual": False, "assisted": False}}
    for index in range(3):
        scene.reply(index, "ok")
    assert view_learning.readiness(scene.rows()) == {"w": {"manual": False, "assisted": True}}


def test_the_inbox_holds_what_people_were_told(quick_path: Path) -> None:
    scene = Scene(quick_path, "on_escalate: {deadline: 1h}")
    scene.reply(0, FAILED)
    (item,) = view_inbox.inbox_items(scene.world(), scene.rows(), scene.path, scene.now, "ana")
    assert (item.lane, item.kind, item.who, item.why) == ("decide", "workflow", "ambient", "you started the run")
    assert item.command == f"collab escalation show esc-20260401-0001 --root {scene.path}"
    assert item.since == datetime(2026, 4, 1, 8, 0, 1, tzinfo=UTC)
    assert item.deadline == datetime(2026, 4, 1, 9, 0, 1, tzinfo=UTC)
    with engine(scene.path, scene.clock) as made:
        made.answer(Answer("esc-20260401-0001", "ana", defer=5000))
    assert view_inbox.inbox_items(scene.world(), scene.rows(), scene.path, scene.now) == []
    scene.clock.step(6)
    assert len(view_inbox.inbox_items(scene.world(), scene.rows(), scene.path, scene.now)) == 1
    scene.answer(1, "skip")
    assert view_inbox.inbox_items(scene.world(), scene.rows(), scene.path, scene.now) == []


def test_proposals_and_blocks_have_their_lanes(quick_path: Path) -> None:
    scene = Scene(quick_path)
    learned(scene)
    with engine(scene.path, scene.clock) as made:
        made.start("w", "swarm", grant=True)
    scene.tick()
    with Root(scene.path, "ambient/.tmp") as root:
        signal(
            root, {"from": "porter", "signal": "BLOCKED_ON", "payload": {"context": "no key"}}, scene.clock, counted()
        )
    scene.tick()
    found = view_inbox.inbox_items(scene.world(), scene.rows(), scene.path, scene.now)
    assert [(item.kind, item.lane) for item in found] == [("workflow", "unblock"), ("workflow", "know")]


def test_boundaries_of_a_run(quick_path: Path) -> None:
    scene = Scene(quick_path)
    scene.reply(0, FAILED)
    scene.answer(1, "abort")
    made = boundaries(RUN, scene.events())
    assert [item.kind for item in made] == ["escalation", "decision", "closure"]
    opened, decided, ended = made
    assert opened.receipt_id == f"run-{RUN}-{opened.seq}"
    assert decided.parents == (opened.seq,)
    assert ended.parents == (decided.seq,)
    assert opened.failure == "port 443"
    assert (decided.failure, ended.failure) == (None, "the run ended as aborted")
    assert (ended.entry, ended.decision, ended.outcome) == (None, None, "aborted")
    assert (decided.decision or {})["option_id"] == "abort"


def test_nothing_from_outside_is_an_option_of_the_desktops_program() -> None:
    made = desktop.argv("notify-send", {"level": "urgent", "event": "ESCALATE", "entry": "--icon=x\x1b[2J"})
    assert made[:4] == ["notify-send", "--urgency=critical", "--app-name=collab", "--"]
    assert made[4] == "collab: a decision is needed"
    assert "\x1b" not in made[5]
    desktop.deliver({"channel": "brain-ui"})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (7, "7"),
        ("plain text", "plain text"),
        ("yes", '"yes"'),
        ("null", '"null"'),
        ("01", '"01"'),
        ("2026-04-01T08:00:00.000Z", '"2026-04-01T08:00:00.000Z"'),
        ("a: b", '"a: b"'),
        ("é", '"é"'),
        ("\x85\u2028", '"\\u0085\\u2028"'),
        ("", '""'),
        ("- x", '"- x"'),
        ("x #y", '"x #y"'),
    ],
)
def test_scalars_that_every_reader_takes_alike(value: Any, text: str) -> None:
    assert scalar(value) == text
