"""The rules of the engine, each seen by playing it (docs/specs/workflows.md §2, §4, §5, §7)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.core.workflow.stage import AGENTS, GO, PROFILE, RUN, chain, codes, decide, play, reply, spec


def finals(output: dict[str, Any], run: int = 0) -> list[tuple[str, str | None]]:
    return [(item["result"], item["by"]) for item in output["runs"][run]["final"]]


def spawned(output: dict[str, Any]) -> list[str]:
    return [packet["id"].split("/", 1)[1] for packet in output["emitted"] if packet["signal"] == "SPAWN"]


def signal(at: float, **packet: Any) -> dict[str, Any]:
    return {"at": at, "signal": packet}


# Packets


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        ({"signal": "SPAWN"}, "direction"),
        ({"signal": "RETURN", "in_reply_to": f"{RUN}/9/1"}, "unknown"),
        ({"signal": "RETURN", "in_reply_to": f"{RUN}/0/2"}, "unknown"),
        ({"signal": "RETURN", "in_reply_to": f"{RUN}/0/1.1"}, "unknown"),
        ({"signal": "RETURN", "in_reply_to": f"{RUN}/0/01"}, "unknown"),
        ({"signal": "RETURN", "in_reply_to": 7}, "unknown"),
        ({"signal": "RETURN", "run_id": RUN, "item_index": 2}, "unknown"),
        ({"signal": "RETURN", "run_id": RUN, "item_index": 0, "attempt": 2}, "unknown"),
        ({"signal": "RETURN", "run_id": RUN, "item_index": 0, "from": "vps"}, "sender"),
        ({"signal": "RETURN", "from": "vps"}, "unknown"),
        ({"signal": "RETURN"}, "ambiguous"),
        ({"signal": "RETURN", "in_reply_to": f"{RUN}/0/1", "payload": {"result": "ok", "note": 1}}, "violation"),
        ({"signal": "RETURN", "in_reply_to": f"{RUN}/0/1", "payload": "ok"}, "violation"),
        ({"signal": "ESCALATE", "in_reply_to": f"{RUN}/0/1", "payload": {"options": [{"id": "Bad id"}]}}, "violation"),
        ({"signal": "ESCALATE", "in_reply_to": f"{RUN}/0/1", "payload": {"options": ["a", "a"]}}, "violation"),
        ({"signal": "ESCALATE", "in_reply_to": f"{RUN}/0/1", "payload": {"options": {"a": 1}}}, "violation"),
    ],
)
def test_packets_that_are_rejected(packet: dict[str, Any], reason: str) -> None:
    made = play(spec(more="max_parallel: 2"), GO, signal(1, id="x", **{"from": "porter", **packet}))
    assert [item["reason"] for item in made["rejected"]] == [reason]
    known = reason in ("sender", "violation")
    assert made["rejected"][0]["run_id"] == (RUN if known else None)
    assert made["runs"][0]["rejected_signals"] == int(known)


def test_rejected_packets_stand_in_order_of_arrival_whatever_they_belong_to() -> None:
    stray, known = {"in_reply_to": "x/0/1"}, {"in_reply_to": f"{RUN}/0/1", "from": "vps"}
    packets = [{"from": "porter", "signal": "RETURN", **one} for one in (known, stray, known, stray)]
    made = play(spec(), GO, *(signal(1, id=f"p{number}", **one) for number, one in enumerate(packets)))
    assert [(item["id"], item["reason"]) for item in made["rejected"]] == [
        ("p0", "sender"),
        ("p1", "unknown"),
        ("p2", "sender"),
        ("p3", "unknown"),
    ]


def test_a_packet_is_matched_by_place_and_extra_nulls_do_not_count() -> None:
    payload = {"result": "ok", "context": None, "odd": None}
    packet = {
        "from": "porter",
        "signal": "RETURN",
        "run_id": RUN,
        "item_index": 1,
        "payload": payload,
        "to": 5,
        "scope": 7,
    }
    made = play(spec(more="max_parallel: 2"), GO, signal(1, **packet))
    assert finals(made)[1] == ("success", "agent")
    assert made["answers"][1]["id"] == "sim-signal-1"


def test_a_signal_that_the_profile_lacks_is_a_violation_but_errors_and_checkpoints_go_upward() -> None:
    agents = {"porter": {**PROFILE, "signals": ["SPAWN", "RETURN"]}}
    for name, result in (("BLOCKED_ON", "packet_violation"), ("ERROR", "x")):
        made = play(spec("[a]"), GO, reply(1, "a", signal=name, context="x"), agents=agents)
        assert made["runs"][0]["steps"][0]["cause"] == result
    made = play(spec("[a]"), GO, reply(1, "a", signal="CHECKPOINT", context="x"), agents=agents)
    assert made["runs"][0]["steps"][0]["result"] == "pending"


@pytest.mark.parametrize(
    ("result", "verdict", "cause"),
    [
        ("success", "success", None),
        ("ok", "success", None),
        ({"status": "done", "summary": "fine"}, "success", None),
        ("failed", "fail", None),
        ({"status": "fail", "message": "m", "reason": "r"}, "fail", "m"),
        ({"status": "partial", "cause": 5, "summary": "s"}, "partial", "s"),
        ("SUCCESS", "error", "unclassifiable_result"),
        (None, "error", "unclassifiable_result"),
        (True, "error", "unclassifiable_result"),
        ({"state": "ok"}, "error", "unclassifiable_result"),
        ({"status": ["ok"]}, "error", "unclassifiable_result"),
    ],
)
def test_results(result: Any, verdict: str, cause: str | None) -> None:
    step = play(spec("[a]"), GO, reply(1, "a", result))["runs"][0]["steps"][0]
    assert (step["result"], step["cause"]) == (verdict, cause)
    assert step["by"] == ("ambient" if cause == "unclassifiable_result" else "agent")


@pytest.mark.parametrize(
    ("context", "cause"),
    [
        ("boom", "boom"),
        ({"reason": "r", "cause": "c"}, "c"),
        ({"text": "t"}, None),
        (None, None),
        ("x" * 600, "x" * 500),
    ],
)
def test_causes_of_errors(context: Any, cause: str | None) -> None:
    step = play(spec("[a]"), GO, reply(1, "a", signal="ERROR", context=context))["runs"][0]["steps"][0]
    assert (step["result"], step["cause"], step["by"]) == ("error", cause, "agent")


def test_a_handover_keeps_both_parts_and_starts_the_timeout_anew() -> None:
    made = play(
        spec("[a]", more="timeout: 60s"),
        GO,
        reply(50, "a", signal="HANDOFF", context={"n": 2}, decision="d"),
        reply(100, "a", signal="BLOCKED_ON", context="x"),
        {"at": 101, "ack": {"escalation": 1}},
    )
    assert made["runs"][0]["errors"] == 0
    assert made["emitted"][1]["payload"]["context"]["checkpoint"] == {"context": {"n": 2}, "decision": "d"}


def test_a_checkpoint_travels_within_its_attempt_only() -> None:
    made = play(
        spec("[a]"),
        GO,
        reply(1, "a", signal="CHECKPOINT", context={"n": 1}),
        reply(2, "a", signal="CHECKPOINT", context={"n": 2}),
        reply(3, "a", signal="BLOCKED_ON", context="x"),
        {"at": 4, "ack": {"escalation": 1}},
        reply(5, "a", "fail"),
        decide(6, 2, "retry"),
    )
    checkpoints = [packet["payload"]["context"].get("checkpoint") for packet in made["emitted"]]
    assert checkpoints == [None, {"n": 2}, None]


# Slots, locks, retries


def test_the_lowest_index_starts_next_respawns_included() -> None:
    made = play(
        spec("[a, b, c, d]", more="max_parallel: 2\non_escalate: {wait: item}"),
        GO,
        reply(1, "a", "fail"),
        reply(2, "b"),
        decide(3, 1, "retry"),
        reply(4, "c"),
    )
    assert spawned(made) == ["0/1", "1/1", "2/1", "3/1", "0/2"]


def test_a_retry_in_its_backoff_keeps_its_slot() -> None:
    made = play(
        spec(routes="{success: next_item, fail: retry(2)}", more="retry: {backoff: 10s}"),
        GO,
        reply(1, "a", "fail"),
        {"at": 5, "tick": True},
        {"at": 12, "tick": True},
    )
    assert [packet["ts"][17:23] for packet in made["emitted"]] == ["00.000", "11.000"]
    assert made["runs"][0]["retries"] == 1


def test_an_item_waits_for_a_file_and_so_do_later_ones() -> None:
    made = play(
        spec("[a/x, a, b]", more="max_parallel: 3"),
        GO,
        {"at": 1, "tick": True},
        reply(2, "a/x"),
    )
    assert spawned(made) == ["0/1", "1/1", "2/1"]
    assert [packet["ts"][17:19] for packet in made["emitted"]] == ["00", "02", "02"]


def test_a_timeout_frees_files() -> None:
    other = spec("[z]", more="timeout: 5s").replace("workflow: w", "workflow: v").replace("f/{{item}}", "f")
    made = play(
        spec("[a]"),
        {"at": 0, "start": {"workflow": "v", "mode": "swarm", "grant": True}},
        {"at": 1, "start": {"mode": "swarm", "grant": True}},
        {"at": 6, "tick": True},
        specs=[other],
    )
    starts = [packet["ts"][17:19] for packet in made["emitted"] if packet["signal"] == "SPAWN"]
    assert starts == ["00", "05"]


def test_retries_of_an_item_are_bounded_over_the_whole_run() -> None:
    made = play(
        spec("[a]", "{success: next_item, fail: retry(1) + ESCALATE, error: retry(2) + ESCALATE}"),
        GO,
        reply(1, "a", "fail"),
        reply(2, "a", signal="ERROR", context="x"),
        reply(3, "a", "fail"),
        decide(4, 1, "retry"),
        reply(5, "a"),
    )
    assert [step["attempt"] for step in made["runs"][0]["steps"]] == [1, 2, 3, 4]
    assert made["runs"][0]["retries"] == 3
    assert made["runs"][0]["outcome"] == "success"


def test_retry_max_serves_routes_without_a_retry() -> None:
    more = "retry: {max: 1, on: [fail]}"
    made = play(spec("[a]", more=more), GO, reply(1, "a", "fail"), reply(2, "a", signal="ERROR", context="x"))
    assert [step["attempt"] for step in made["runs"][0]["steps"]] == [1, 2]
    assert made["escalations"][0]["kind"] == "error"


# Breaker, drift, ends


def failing(count: int, at: float = 1) -> list[dict[str, Any]]:
    return [{"at": at + number, "reply": {"index": number, "result": "fail"}} for number in range(count)]


def test_three_failures_in_a_row_stop_what_would_go_on_by_itself() -> None:
    made = play(
        spec("[a, b, c, d, e]", "{success: next_item, fail: next_item}"),
        GO,
        *failing(3),
        decide(9, 1, "skip"),
        decide(10, 1, "continue"),
    )
    entry = made["escalations"][0]
    assert (entry["kind"], entry["item"], [option["id"] for option in entry["options"]]) == (
        "circuit_break",
        "c",
        ["continue", "abort"],
    )
    assert codes(made)[4] == ["E_OPTION"]
    assert finals(made)[:3] == [("fail", "agent")] * 3
    assert spawned(made) == ["0/1", "1/1", "2/1", "3/1"]
    assert made["notifications"][0]["event"] == "CIRCUIT_BREAK"


def test_the_last_item_breaks_nothing_and_a_resolve_begins_again() -> None:
    made = play(spec(routes="{success: next_item, fail: next_item}"), GO, *failing(3))
    assert made["runs"][0]["outcome"] == "failed"
    made = play(
        spec("[a, b, c, d, e]", "{success: next_item, fail: retry(1) + ESCALATE}"),
        GO,
        reply(1, "a", "fail"),
        reply(2, "a", "fail"),
        decide(3, 1, "resolve"),
        reply(4, "b", "fail"),
        reply(5, "b", "fail"),
    )
    assert [entry["kind"] for entry in made["escalations"]] == ["fail", "fail"]


def test_an_interrupted_retry_goes_on_after_continue() -> None:
    made = play(
        spec("[a]", "{success: next_item, fail: retry(9)}"),
        GO,
        reply(1, "a", "fail"),
        reply(2, "a", "fail"),
        reply(3, "a", "fail"),
        decide(4, 1, "continue"),
        reply(5, "a"),
    )
    assert [entry["kind"] for entry in made["escalations"]] == ["circuit_break"]
    assert (made["runs"][0]["retries"], made["runs"][0]["outcome"]) == (3, "success")


@pytest.mark.parametrize(
    ("paths", "drifts"),
    [
        (["f/a"], False),
        (["f/a/deep"], False),
        ("f/a", False),
        ([], False),
        (None, False),
        (["f/a", "g"], True),
        (["f"], True),
        (["f/ab"], True),
        (["f/a/../b"], True),
        (["/f/a"], True),
        ([7], True),
    ],
)
def test_drift(paths: Any, drifts: bool) -> None:
    made = play(spec("[a, b]"), GO, reply(1, "a", {"status": "ok", "files_modified": paths}), decide(2, 1, "approve"))
    assert [entry["cause"] for entry in made["escalations"]] == (["scope_drift"] if drifts else [])
    assert finals(made)[0] == ("success", "agent")
    assert spawned(made) == ["0/1", "1/1"]


def test_a_drift_that_is_skipped_never_takes_its_route() -> None:
    routes = "{success: log + next_item}"
    made = play(spec("[a]", routes), GO, reply(1, "a", {"status": "ok", "files_modified": ["g"]}), decide(2, 1, "skip"))
    assert finals(made) == [("skipped", "human")]
    assert made["log"] == []


def test_goto_and_never_leave_steps_out_of_reach() -> None:
    made = play(
        chain(
            "type: porter, on_done: goto 3",
            "type: porter",
            "type: porter, gate: never",
            "type: porter",
            more="swarm_ready: false\nexternal_effect: false",
        ),
        {"at": 0, "start": {"mode": "assisted"}},
        reply(1, "step-1", "ok"),
        reply(2, "step-3", "ok"),
    )
    assert finals(made) == [("success", "agent"), ("not_started", None), ("success", "agent"), ("not_started", None)]
    assert (made["runs"][0]["outcome"], made["runs"][0]["total"]) == ("success", 4)


def test_never_is_no_end_when_the_step_did_not_go_well() -> None:
    made = play(
        chain("type: porter, gate: never, on_fail: next_step", "type: porter"),
        {"at": 0, "start": {"mode": "assisted"}},
        reply(1, "step-1", "fail"),
    )
    assert spawned(made) == ["0/1", "1/1"]


def test_credentials_block_before_the_step() -> None:
    made = play(
        chain("type: porter, gate: human.CREDENTIALS"),
        {"at": 0, "start": {"mode": "assisted"}},
        {"at": 1, "ack": {"escalation": 1}},
    )
    entry = made["escalations"][0]
    assert (entry["kind"], entry["cause"], entry["raised_by"]) == ("block", "credentials", "ambient")
    assert (made["runs"][0]["blocks"], made["runs"][0]["escalations"]) == (1, 0)
    assert spawned(made) == ["0/1"]


@pytest.mark.parametrize(
    ("result", "cause"),
    [
        ({"status": "ok", "tests": {"failed": 0}}, None),
        ({"status": "ok", "tests": {"failed": 2}}, "tests_failed"),
        ({"status": "ok", "tests": {"failed": False}}, "tests_failed"),
        ({"status": "ok", "tests": {}}, "tests_missing"),
        ("ok", "tests_missing"),
    ],
)
def test_zero_failures(result: Any, cause: str | None) -> None:
    made = play(
        chain("type: porter, gate: 0-failures, on_fail: next_step"),
        {"at": 0, "start": {"mode": "assisted"}},
        reply(1, "step-1", result),
    )
    step = made["runs"][0]["steps"][0]
    assert (step["result"], step["cause"]) == ("success" if cause is None else "fail", cause)


def test_the_result_of_the_step_before_travels_on() -> None:
    made = play(
        chain("type: porter", "type: porter, story_angle: tidy, input_contract: files"),
        {"at": 0, "start": {"mode": "assisted"}},
        reply(1, "step-1", {"status": "ok", "files": ["x"]}),
    )
    first, second = (packet["payload"]["context"] for packet in made["emitted"])
    assert "previous" not in first
    assert second["previous"] == {"status": "ok", "files": ["x"]}
    assert (second["task"], second["input_contract"]) == ("tidy", "files")


def test_an_aborted_run_only_records_what_is_in_flight() -> None:
    made = play(
        spec("[a, b, c]", "{success: log + next_item}", "max_parallel: 2"),
        GO,
        {"at": 1, "abort": {"as": "ana"}},
        reply(2, "a"),
        reply(3, "b", signal="ESCALATE", options=[]),
    )
    run = made["runs"][0]
    assert (run["outcome"], run["completed_at"][17:19]) == ("aborted", "03")
    assert finals(made) == [("success", "agent"), ("escalated", "agent"), ("not_started", None)]
    assert made["log"] == []
    assert made["escalations"] == []


def test_a_timeout_ends_the_waiting_of_an_aborted_run() -> None:
    made = play(spec("[a]", more="timeout: 30s"), GO, {"at": 1, "abort": {}}, {"at": 40, "tick": True})
    assert made["runs"][0]["completed_at"] == "2026-04-01T08:00:30.000Z"
    assert made["runs"][0]["errors"] == 1


# Modes and gates


@pytest.mark.parametrize(
    ("mode", "more", "zone", "reasons"),
    [
        ("manual", "", "project", ["mode_manual", "external_effect"]),
        ("manual", "external_effect: false", "project", ["mode_manual"]),
        ("assisted", "", "project", ["external_effect"]),
        ("assisted", "external_effect: false", "personal", ["zone_personal"]),
        ("swarm", "", "personal", ["zone_personal"]),
        ("swarm", "", "project", []),
    ],
)
def test_reasons_for_a_gate(mode: str, more: str, zone: str, reasons: list[str]) -> None:
    agents = {"porter": {**AGENTS["porter"], "zone_access": ["*"]}}
    start = {"at": 0, "start": {"mode": mode, "grant": True}}
    made = play(spec("[a]", more=more, zone=zone), start, agents=agents)
    assert [entry["reasons"] for entry in made["escalations"]] == ([reasons] if reasons else [])


def test_a_gate_stands_once_for_all_attempts() -> None:
    made = play(
        spec("[a]", "{success: next_item, fail: retry(2)}"),
        {"at": 0, "start": {"mode": "assisted"}},
        decide(1, 1, "approve"),
        reply(2, "a", "fail"),
        reply(3, "a"),
    )
    assert len(made["escalations"]) == 1
    assert made["runs"][0]["outcome"] == "success"


@pytest.mark.parametrize("route", ["next_item", "retry(3) + BLOCKED_ON"])
def test_partial_never_goes_on_by_itself_under_eyes(route: str) -> None:
    text = spec("[a, b]", f"{{success: next_item, partial: {route}}}", "external_effect: false")
    made = play(text, {"at": 0, "start": {"mode": "assisted"}}, reply(1, "a", "partial"))
    assert [entry["kind"] for entry in made["escalations"]] == ["partial"]
    made = play(text, GO, reply(1, "a", "partial"))
    assert made["escalations"] == []


def test_an_entry_gate_may_be_refused() -> None:
    made = play(spec(), {"at": 0, "start": {"mode": "swarm"}}, decide(1, 1, "skip"), decide(2, 1, "abort"))
    assert codes(made)[1] == ["E_OPTION"]
    assert made["runs"][0]["outcome"] == "aborted"
    assert made["emitted"] == []


def test_an_empty_swarm_needs_no_gate() -> None:
    made = play(spec("[]"), {"at": 0, "start": {"mode": "swarm"}})
    assert made["escalations"] == []
    assert made["runs"][0]["outcome"] == "success"
