"""Clocks, crashes, restarts, scripts (docs/specs/workflows.md §6, §10)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.workflow.simulate import simulate
from tests.unit.core.workflow.stage import AGENTS, GO, decide, play, reply, spec

TIMED = spec("[a]", more="timeout: 60s\nidempotent: true\nretry: {max: 1}")


def spawn_times(output: dict[str, Any]) -> list[str]:
    return [packet["ts"][11:19] for packet in output["emitted"] if packet["signal"] == "SPAWN"]


def test_time_never_goes_back_for_the_engine() -> None:
    made = play(
        spec("[a, b]"),
        GO,
        {"at": 10, "tick": True},
        reply(20, "a"),
        {"at": 21, "jump": "-1h"},
        reply(22, "b"),
        {"at": 23, "tick": True},
    )
    run = made["runs"][0]
    assert made["clock"] == "2026-04-01T07:00:23.000Z"
    assert run["completed_at"] == "2026-04-01T08:00:20.000Z"
    assert run["steps"][1]["duration_ms"] == 0
    assert made["answers"][4]["at"] == "2026-04-01T07:00:22.000Z"


def test_timers_that_a_leap_passes_are_met_by_its_own_tick() -> None:
    made = play(TIMED, GO, {"at": 1, "jump": "1h"}, {"at": 2, "tick": True})
    assert spawn_times(made) == ["08:00:00", "09:00:01"]


def test_timers_that_a_dead_engine_misses_are_met_by_the_next_one() -> None:
    made = play(
        TIMED,
        GO,
        {"at": 1, "tick": True, "crash": "before_commit"},
        {"at": 300, "tick": True},
        {"at": 400, "restart": True},
    )
    assert spawn_times(made) == ["08:00:00", "08:06:40"]
    assert [answer["crashed"] for answer in made["answers"]] == [False, True, False, False]
    assert made["answers"][2]["changed"] is False


def test_without_a_tick_nothing_happens() -> None:
    made = play(spec(), {**GO, "no_tick": True}, {"at": 5, "tick": True})
    assert made["emitted"][0]["ts"] == "2026-04-01T08:00:05.000Z"
    assert made["runs"][0]["started_at"] == "2026-04-01T08:00:00.000Z"
    assert made["answers"][0]["changed"] is True


@pytest.mark.parametrize("point", ["before_commit", "before_dispatch", "after_dispatch"])
def test_wherever_it_dies_the_end_is_the_same(point: str) -> None:
    steps = [GO, {**reply(1, "a"), "crash": point}, {"at": 2, "restart": True}, reply(3, "b"), reply(4, "c")]
    made = play(spec(), *steps)
    usual = play(spec(), GO, reply(1, "a"), reply(3, "b"), reply(4, "c"))
    assert [packet["id"] for packet in made["emitted"]] == [packet["id"] for packet in usual["emitted"]]
    assert made["runs"][0]["final"] == usual["runs"][0]["final"]
    assert made["rejected"] == []


def test_people_act_while_the_engine_is_dead() -> None:
    made = play(
        spec("[a]"),
        GO,
        reply(1, "a", "fail"),
        {"at": 2, "tick": True, "crash": "after_dispatch"},
        decide(3, 1, "retry"),
        {"at": 3, "signal": {"from": "porter", "signal": "RETURN", "in_reply_to": "x"}},
        {"at": 9, "restart": True},
    )
    assert [answer["status"] for answer in made["answers"]] == [
        "started",
        "queued",
        "done",
        "accepted",
        "queued",
        "done",
    ]
    assert [packet["id"][-4:] for packet in made["emitted"]] == ["/0/1", "/0/2"]
    assert made["emitted"][1]["ts"] == "2026-04-01T08:00:09.000Z"


def test_a_reply_to_what_was_never_sent_is_refused() -> None:
    made = play(spec(), GO, reply(1, "b"), {"at": 2, "reply": {"index": 9, "result": "ok"}})
    assert [answer["codes"] for answer in made["answers"]] == [[], ["E_SCRIPT"], ["E_SCRIPT"]]


def test_a_spec_that_breaks_or_goes_changes_no_open_run() -> None:
    made = play(
        spec(),
        GO,
        {"at": 1, "spec": {"workflow": "w", "text": "workflow: w\n"}},
        reply(2, "a"),
        {"at": 3, "start": {"mode": "swarm", "grant": True}},
        {"at": 4, "spec": {"workflow": "w", "text": spec()}},
    )
    run = made["runs"][0]
    assert run["spec_changed"] is True
    assert run["success_count"] == 1
    assert made["answers"][3]["codes"] == ["E_SPEC_INVALID", "E_RUN_OPEN"]


def test_a_comment_is_no_change() -> None:
    made = play(spec(), GO, {"at": 1, "spec": {"workflow": "w", "text": "# new\n" + spec()}})
    assert "spec_changed" not in made["runs"][0]
    assert made["answers"][1]["changed"] is False


def test_several_ticks_and_no_news() -> None:
    made = play(spec(), GO, {"at": 1, "tick": 5}, {"at": 2, "tick": True})
    assert [answer["changed"] for answer in made["answers"]] == [True, False, False]


def test_refused_starts_leave_no_run_and_name_every_reason() -> None:
    made = play(
        spec(),
        {"at": 0, "start": {"workflow": "ghost"}},
        GO,
        {"at": 1, "start": {"mode": "swarm", "grant": True}},
        agents={"porter": {**AGENTS["porter"], "signals": ["SPAWN"]}},
    )
    assert [answer["codes"] for answer in made["answers"]] == [
        ["E_WORKFLOW_UNKNOWN"],
        ["E_MATRIX_SIGNAL"],
        ["E_MATRIX_SIGNAL"],
    ]
    assert made["runs"] == []
    assert all(answer["changed"] for answer in made["answers"])


@pytest.mark.parametrize("accepts", ["ambient", "orchestrator", "*", "any", "all"])
def test_who_takes_work_from_the_engine(accepts: str) -> None:
    agents = {"porter": {**AGENTS["porter"], "receives_from": [accepts]}}
    assert play(spec(), GO, agents=agents)["answers"][0]["status"] == "started"


def test_a_list_is_a_script_and_every_agent_is_open_then() -> None:
    made = simulate(spec(), "spec.yml", "- {at: 1s, reply: {item: a, result: ok}}\n- {at: 2s, tick: true}\n").output
    assert made["runs"][0]["success_count"] == 1
    made = simulate(spec(), "spec.yml", json.dumps({"t0": "2027-01-01T00:00:00Z"})).output
    assert made["clock"] == "2027-01-01T00:00:00.000Z"
    assert made["runs"][0]["run_id"] == "w-20270101T000000Z-0001"


@pytest.mark.parametrize(
    "script",
    [
        "3",
        "{steps: {}}",
        "[{}]",
        "[{at: 1}]",
        "[{at: 1, tick: true, touch: x}]",
        "[{at: -1, tick: true}]",
        "[{at: soon, tick: true}]",
        "[{at: true, tick: true}]",
        "[{at: 2, tick: true}, {at: 1, tick: true}]",
        "[{fly: true}]",
        "[{tick: 0}]",
        "[{tick: true, crash: never}]",
        "[{tick: true, no_tick: 1}]",
        "[{jump: 1}]",
        "[{jump: 1w}]",
        "[{restart: false}]",
        "[{touch: ../x}]",
        "[{spec: {workflow: w}}]",
        "[{spec: {workflow: a/b, text: x}}]",
        "[{start: {mode: fast}}]",
        "[{start: {colour: red}}]",
        "[{reply: {result: ok}}]",
        "[{reply: {item: a, index: 0}}]",
        "[{decide: {option: skip}}]",
        "[{decide: {escalation: 1, option: skip, accept: true}}]",
        "[{decide: {escalation: 1}}]",
        "[{decide: {escalation: 1, defer: 0s}}]",
        "[{reject: {}}]",
        "{t0: yesterday, steps: []}",
        "{agents: [], steps: []}",
        "{agents: {a: 1}, steps: []}",
        "{specs: [1], steps: []}",
        "{steps: [], more: 1}",
        "[{at: 1, at: 1, tick: true}]",
        '[{"at": 1, "at": 2, "tick": true}]',
        "[",
    ],
)
def test_a_malformed_script_plays_nothing(script: str) -> None:
    played = simulate(spec(), "spec.yml", script)
    assert played.refused
    assert [item["code"] for item in played.output["load"]] == ["E_SCRIPT"]
    assert played.output["runs"] == []
    assert played.output["answers"] == []


def test_the_same_input_prints_the_same() -> None:
    script = json.dumps({"agents": AGENTS, "steps": [GO, reply(1, "a", "fail"), decide(2, 1, "retry")]})
    one, other = (json.dumps(simulate(spec(), "spec.yml", script).output) for _ in range(2))
    assert one == other


def test_the_record_is_yaml_with_the_seeds_keys_first() -> None:
    text = spec("['no', 'a: b', '{{x}}', \"\\u2028é\\U0001F600\", '  ']")
    made = play(
        text, GO, {"at": 1, "reply": {"index": 0, "result": {"status": "fail", "cause": "line\nbreak \u0085 \x7f"}}}
    )
    from ruamel.yaml import YAML

    run: Any = YAML(typ="safe", pure=True).load(made["records"][0])["run"]
    assert run == made["runs"][0]
    assert list(made["runs"][0])[:7] == [
        "workflow",
        "started_at",
        "completed_at",
        "steps",
        "escalations",
        "errors",
        "outcome",
    ]
