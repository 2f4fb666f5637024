"""Conditions, the rules of ambient/rules.yml, triggers (docs/specs/workflows.md §11)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.workflow import times
from core.workflow.conditions import Looked, holds, passes, read_rules, value_at
from core.workflow.model import Check, Condition
from tests.unit.core.workflow.stage import Stepped, engine, lay, lines, spec

NOW = times.read("2026-04-01T08:00:00Z") or 0
DATA: dict[str, Any] = {
    "budget": {
        "rest": 12,
        "tags": ["a", 2],
        "name": "home",
        "seen": "2026-03-30T08:00:00Z",
        "deep": {"n": [{"x": 5}]},
        "no": None,
    }
}


def true_of(path: str, op: Any, value: Any = None) -> bool:
    return passes(Check(path=path, op=op, value=value), value_at(DATA, path), NOW)


@pytest.mark.parametrize(
    ("path", "op", "value", "true"),
    [
        ("budget.rest", "eq", 12, True),
        ("budget.rest", "eq", 12.0, True),
        ("budget.rest", "eq", "12", False),
        ("budget.rest", "eq", True, False),
        ("budget.rest", "ne", 13, True),
        ("budget.rest", "lt", 13, True),
        ("budget.rest", "le", 12, True),
        ("budget.rest", "gt", 12, False),
        ("budget.rest", "ge", 12, True),
        ("budget.rest", "lt", "13", False),
        ("budget.name", "lt", "zoo", True),
        ("budget.rest", "in", [1, 12], True),
        ("budget.rest", "in", 12, False),
        ("budget.tags", "contains", 2, True),
        ("budget.tags", "contains", "b", False),
        ("budget.name", "contains", "om", True),
        ("budget.rest", "contains", 1, False),
        ("budget.deep.n.0.x", "eq", 5, True),
        ("budget.deep.n.1.x", "eq", 5, False),
        ("budget.nothing", "eq", None, False),
        ("budget.nothing", "ne", 1, False),
        ("budget.no", "eq", None, True),
        ("budget.rest", "exists", None, True),
        ("budget.rest", "exists", False, False),
        ("budget.nothing", "exists", None, False),
        ("budget.nothing", "exists", False, True),
        ("budget.no", "exists", True, False),
        ("other.rest", "exists", False, True),
        ("budget.seen", "age_gt", "1d", True),
        ("budget.seen", "age_gt", "2d", False),
        ("budget.seen", "age_gt", 1, False),
        ("budget.name", "age_gt", "1d", False),
    ],
)
def test_one_test(path: str, op: str, value: Any, true: bool) -> None:
    assert true_of(path, op, value) is true


def test_all_and_any() -> None:
    tests = (Check(path="budget.rest", op="eq", value=12), Check(path="budget.rest", op="eq", value=13))
    assert not holds(Condition(match="all", tests=tests), DATA, NOW)
    assert holds(Condition(match="any", tests=tests), DATA, NOW)


def test_edges_and_ticks_in_a_row() -> None:
    looked, fired = Looked(), []
    for true in (True, True, True, False, True, True, True, True):
        now, looked = looked.follow("k", true, ticks=2)
        fired.append(now)
    assert fired == [False, True, False, False, False, True, False, False]
    assert looked.without_others([]) == Looked(0, {}, {})


GOOD = """
rules:
  - id: low
    when: {all: [{path: budget.rest, op: lt, value: 10}]}
    for: 2
    do: [log, {start: w}]
    notify: {channels: [brain-ui, file], level: urgent, message: "low {{item}}"}
    cooldown: 1h
"""


def test_a_rules_file() -> None:
    made = read_rules(GOOD)
    (rule,) = made.rules
    assert made.findings == ()
    assert (rule.id, rule.ticks, rule.log, rule.starts, rule.cooldown) == ("low", 2, True, ("w",), 3_600_000)
    assert rule.notify is not None
    assert rule.notify.message == "low {{item}}"


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("", []),
        ("rules: []\n", []),
        ("rules: 3\n", ["E_TYPE"]),
        ("- a\n", ["E_TYPE"]),
        ("other: 1\n", ["W_UNKNOWN_KEY", "E_KEY_MISSING"]),
        ("rules: [3]\n", ["E_TYPE"]),
        ("rules:\n  - {id: a}\n", ["E_KEY_MISSING"]),
        ("rules:\n  - {id: a, when: {all: [{path: x.y, op: eq}]}, do: [fly]}\n", ["E_VALUE"]),
        ("rules:\n  - {id: a, when: {all: [{path: x.y, op: eq}]}, do: fly}\n", ["E_TYPE"]),
        ("rules:\n  - {id: a, when: {all: [{path: x.y, op: eq}]}, notify: {level: loud}}\n", ["E_VALUE"]),
        ("rules:\n  - {id: a, when: {all: [{path: x.y, op: eq}]}, cooldown: 5}\n", ["E_VALUE"]),
        ("rules: [\n", ["E_YAML"]),
        (GOOD + GOOD.replace("\nrules:\n", ""), ["E_VALUE"]),
    ],
)
def test_rules_that_are_wrong(text: str, codes: list[str]) -> None:
    assert [item.code for item in read_rules(text).findings] == codes


def identity(root: Path, rest: int) -> None:
    (root / "identity").mkdir(exist_ok=True)
    (root / "identity/budget.yml").write_text(f"rest: {rest}\n")


def runs(root: Path) -> int:
    return sum(
        event["event"] == "run_started"
        for file in (root / "ambient/runs").glob("*.jsonl")
        for event in lines(root, str(file.relative_to(root)))
    )


def test_a_rule_fires_at_the_edge_tells_and_rests(quick_path: Path) -> None:
    root, clock = lay(quick_path / "root", spec()), Stepped()
    (root / "ambient").mkdir()
    (root / "ambient/rules.yml").write_text(GOOD)
    identity(root, 5)
    for _ in range(5):
        with engine(root, clock) as made:
            made.tick()
        clock.step(60)
    assert [event["at"][14:19] for event in lines(root, "ambient/engine.jsonl")] == ["01:00"]
    told = lines(root, "ambient/notifications.jsonl")[:2]
    assert [(notice["channel"], notice["level"], notice["message"]) for notice in told] == [
        ("brain-ui", "urgent", "low {{item}}"),
        ("file", "urgent", "low {{item}}"),
    ]
    assert runs(root) == 1
    for rest in (50, 5, 5):
        identity(root, rest)
        with engine(root, clock) as made:
            made.tick()
        clock.step(60)
    assert len(lines(root, "ambient/engine.jsonl")) == 1, "the rule rests for an hour"


def test_conditions_are_looked_at_every_sixty_seconds(quick_path: Path) -> None:
    root, clock = (
        lay(quick_path / "root", spec(more="trigger: {when: {all: [{path: budget.rest, op: lt, value: 9}]}}")),
        Stepped(),
    )
    identity(root, 50)
    with engine(root, clock) as made:
        made.tick()
        identity(root, 5)
        clock.step(59)
        assert made.tick().events == []
        clock.step(1)
        made.tick()
    assert runs(root) == 1
    with engine(root, clock) as made:
        for _ in range(3):
            clock.step(60)
            made.tick()
    assert runs(root) == 1


def test_every_starts_after_the_last_start_and_skips_while_a_run_is_open(quick_path: Path) -> None:
    root, clock = lay(quick_path / "root", spec("[a]", more="trigger: {every: 1h}\nexternal_effect: false")), Stepped()
    with engine(root, clock) as made:
        made.tick()
        assert [run.by for run in made.world.in_order()] == ["ambient"]
        for _ in range(3):
            clock.step(1800)
            made.tick()
        skipped = lines(root, "ambient/engine.jsonl")
        assert [(event["event"], event["reason"], event["at"][11:16]) for event in skipped] == [
            ("trigger_skipped", "a run is open", "09:00")
        ]
        made.abort(made.world.order[0])
        clock.step(60)
        made.tick()
        assert len(made.world.order) == 1
        clock.step(1800)
        made.tick()
        assert len(made.world.order) == 2


def test_a_start_that_is_refused_is_not_tried_at_every_tick(quick_path: Path) -> None:
    root, clock = lay(quick_path / "root", spec(more="trigger: {every: 1h}"), agents={}), Stepped()
    with engine(root, clock) as made:
        for _ in range(4):
            made.tick()
            clock.step(60)
    assert [event["event"] for event in lines(root, "ambient/engine.jsonl")] == ["start_refused", "trigger_skipped"]


def test_memory_that_cannot_be_read_is_none(quick_path: Path) -> None:
    root, clock = lay(quick_path / "root", spec()), Stepped()
    (root / "ambient").mkdir()
    (root / "ambient/rules.yml").write_text(GOOD.replace("for: 2", "for: 1"))
    (root / "ambient/.conditions.json").write_text('{"was": [1], "at": {}}')
    (root / "identity").mkdir()
    (root / "identity/broken.yml").write_text("a: [\n")
    identity(root, 5)
    with engine(root, clock) as made:
        made.tick()
    assert runs(root) == 1
