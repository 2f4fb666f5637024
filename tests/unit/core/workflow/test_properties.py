"""Over any order, duplication, delay and loss of signals and answers, and any point where the engine dies."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.files import Root, set_fault
from core.workflow.answers import Answer
from core.workflow.engine import Engine
from core.workflow.record import record
from core.workflow.signals_in import signal
from core.workflow.state import Run
from tests.unit.core.workflow.stage import RUN, Stepped, engine, lay, lines, spec

RESULTS = ("success", "fail", "partial", "odd", "ERROR", "ESCALATE", "BLOCKED_ON", "CHECKPOINT", "HANDOFF", "violation")
OPTIONS = ("retry", "skip", "resolve", "unblocked", "escalate", "approve", "continue", "seen", "x", "abort")

specs = st.builds(
    lambda routes, parallel, wait, retry, deadline, more: spec(
        "[a, b, c, d, e, f]",
        routes,
        f"max_parallel: {parallel}\ntimeout: 60s\nretry: {{backoff: {retry}}}\n{more}\n"
        f"on_escalate: {{wait: {wait}, {deadline}, remind_every: 50s}}",
    ),
    st.sampled_from(
        [
            "{success: next_item}",
            "{success: next_item, fail: next_item, error: retry(2) + next_item}",
            "{success: next_item, fail: retry + BLOCKED_ON, partial: next_item}",
            "{success: gate:human, fail: abort, error: ERROR + log + notify + ESCALATE orchestrator}",
        ]
    ),
    st.integers(1, 3),
    st.sampled_from(["human_decision", "item", "none"]),
    st.sampled_from(["0s", "7s"]),
    st.sampled_from(["deadline: 90s", "deadline: 40s, on_deadline: skip", "deadline: 80s, on_deadline: abort"]),
    st.sampled_from(["idempotent: true", "idempotent: false", "reversible: true\nexternal_effect: false"]),
)
acts = st.lists(
    st.one_of(
        st.tuples(st.just("reply"), st.integers(0, 30), st.sampled_from(RESULTS)),
        st.tuples(st.just("again"), st.integers(0, 30), st.just("")),
        st.tuples(st.just("decide"), st.integers(0, 12), st.sampled_from(OPTIONS)),
        st.tuples(st.just("wait"), st.integers(0, 70), st.just("")),
        st.tuples(st.just("tick"), st.integers(0, 0), st.just("")),
        st.tuples(st.just("die"), st.integers(0, 25), st.just("")),
        st.tuples(st.just("restart"), st.integers(0, 0), st.just("")),
    ),
    min_size=5,
    max_size=40,
)


class Death(BaseException):
    """The process ends at this very write."""


@contextmanager
def dying(after: int) -> Iterator[None]:
    """The n-th write, fsync, rename or unlink from here on is never done, nor anything after it."""
    left = [after]

    def hook(operation: str, name: str) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Death(f"{operation} {name}")

    set_fault(hook)
    try:
        yield
    finally:
        set_fault(None)


class World:
    """A root, an engine that may die, agents that answer what they saw in the outbox, and people."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.clock = lay(path, text), Stepped()
        self.engine: Engine = engine(path, self.clock)
        self.sent: list[dict[str, Any]] = []
        self.engine.start("w", "swarm", grant=True)
        self.engine.tick()

    def close(self) -> None:
        self.engine.close()

    def restart(self) -> None:
        self.engine.close()
        self.engine = engine(self.path, self.clock)

    def act(self, name: str, number: int, word: str) -> None:
        self.clock.step(1)
        if name == "reply":
            self.reply(number, word)
        elif name == "again" and self.sent:
            self.send(self.sent[number % len(self.sent)])
        elif name == "decide":
            self.decide(number, word)
        elif name == "wait":
            self.clock.step(number)
        elif name == "tick":
            self.engine.tick()
        elif name == "die":
            try:
                with dying(number):
                    self.engine.tick()
            except Death:
                self.restart()
        elif name == "restart":
            self.restart()

    def reply(self, number: int, word: str) -> None:
        spawns = [packet for packet in lines(self.path, "ambient/outbox.jsonl") if packet["signal"] == "SPAWN"]
        if not spawns:
            return
        spawn = spawns[-1 - number % len(spawns)]
        payloads: dict[str, Any] = {
            "ERROR": {"context": "boom"},
            "ESCALATE": {"options": [{"id": "x"}]},
            "BLOCKED_ON": {"context": "no key"},
            "CHECKPOINT": {"context": {"n": number}},
            "HANDOFF": {"context": 1, "decision": 2},
            "violation": {"result": "success", "context": "secret"},
        }
        made = word if word in ("ERROR", "ESCALATE", "BLOCKED_ON", "CHECKPOINT", "HANDOFF") else "RETURN"
        packet = {
            "id": f"p{len(self.sent)}",
            "from": spawn["to"],
            "signal": made,
            "in_reply_to": spawn["id"],
            "payload": payloads.get(word, {"result": word}),
        }
        self.sent.append(packet)
        self.send(packet)

    def send(self, packet: dict[str, Any]) -> None:
        with Root(self.path, "ambient/.tmp") as root:
            signal(root, packet, self.clock)

    def decide(self, number: int, option: str) -> None:
        with engine(self.path, self.clock) as people:
            with people.store.locked():
                pass
            entries = [name for run in people.world.in_order() for name in run.entry_ids]
            if entries:
                people.answer(Answer(entries[number % len(entries)], "ana", option=option))


def recount(events: list[dict[str, Any]], total: int) -> Counter[str]:
    """The results of all items, counted from the log alone, in another way than the engine's."""
    results = dict.fromkeys(range(total), "not_started")
    for event in events:
        if event["event"] == "spawn_intended":
            results[event["index"]] = "pending"
        elif event["event"] == "step_closed" or (event["event"] == "item_closed" and event["result"] is not None):
            results[event["index"]] = event["result"]
    return Counter(results.values())


def check(world: World) -> None:
    run: Run = world.engine.world.runs[RUN]
    events = lines(world.path, f"ambient/runs/{RUN}.jsonl")
    names = Counter(event["event"] for event in events)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))

    spawns = [event["sends"]["id"] for event in events if event["event"] == "spawn_intended"]
    assert len(spawns) == len(set(spawns)), "an item was spawned twice under one attempt"
    outbox = [packet["id"] for packet in lines(world.path, "ambient/outbox.jsonl")]
    assert len(outbox) == len(set(outbox)), "a packet went out twice"
    notices = [notice["id"] for notice in lines(world.path, "ambient/notifications.jsonl")]
    assert len(notices) == len(set(notices)), "people were told twice"

    for kind in ("entry_decided", "entry_applied", "entry_expired", "entry_cancelled"):
        entries = [event["entry"] for event in events if event["event"] == kind]
        assert len(entries) == len(set(entries)), f"{kind} twice"

    found = record(run, world.engine.now)
    counts = recount(events, run.total)
    assert counts == Counter({name: count for name, count in run.tally.items() if count})
    assert [item["result"] for item in found["final"]] == [run.result(index) for index in range(run.total)]
    for name in ("success", "fail", "error", "partial", "skipped"):
        assert found[f"{name}_count"] == counts[name]
    assert len(found["steps"]) == names["spawn_intended"]
    assert found["errors"] == sum(step["result"] == "error" for step in found["steps"])
    assert found["rejected_signals"] == names["signal_rejected"]
    assert found["escalation_ids"] == [event["entry"]["id"] for event in events if event["event"] == "entry_opened"]
    assert found["auto_resolved"] == names["rule_fired"]
    assert names["run_completed"] <= 1
    assert len(run.flight) <= run.spec.max_parallel
    assert run.flight == {index for index in range(run.total) if run.result(index) == "pending"}
    assert run.live == sum(item.state not in ("queued", "closed") for item in run.items)


@settings(max_examples=60)
@given(text=specs, script=acts)
def test_nothing_happens_twice_and_counts_equal_the_log(text: str, script: list[tuple[str, int, str]]) -> None:
    with memory() as folder:
        world = World(folder / "root", text)
        try:
            for name, number, word in script:
                world.act(name, number, word)
            world.engine.tick()
            check(world)
            before = snapshot(world.path)
            assert world.engine.tick().events == []
            assert snapshot(world.path) == before, "a tick without news changed a file"
            kept = world.engine.world.runs[RUN]
            world.restart()
            assert world.engine.tick().events == []
            assert snapshot(world.path) == before, "a new engine on the same files changed one"
            assert world.engine.world.runs[RUN]._replace(next_due=0) == kept._replace(next_due=0)
        finally:
            world.close()


@contextmanager
def memory() -> Iterator[Path]:
    """A scratch folder, in memory where there is one."""
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None, prefix="collab-tests-") as made:
        yield Path(made)


def snapshot(path: Path) -> dict[str, bytes]:
    """All files but the lock, which bears the name of its last holder."""
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file() and file.name != ".lock"
    }


@pytest.mark.parametrize("point", range(40))
def test_a_death_at_every_write_of_one_tick(point: int, quick_path: Path) -> None:
    """The tick that takes in two replies, opens an entry and spawns: whatever was written, the next one ends it."""
    world = World(quick_path / "root", spec("[a, b, c]", more="max_parallel: 2\non_escalate: {wait: item}"))
    try:
        world.reply(0, "success")
        world.reply(1, "fail")
        world.clock.step(1)
        try:
            with dying(point):
                world.engine.tick()
        except Death:
            world.restart()
        world.clock.step(1)
        world.engine.tick()
        check(world)
        run = world.engine.world.runs[RUN]
        assert (run.tally["success"], run.tally["fail"], len(run.open_entries)) == (1, 1, 1)
        assert sorted(packet["id"] for packet in lines(world.path, "ambient/outbox.jsonl")) == [
            f"{RUN}/0/1",
            f"{RUN}/1/1",
            f"{RUN}/2/1",
        ]
    finally:
        world.close()
