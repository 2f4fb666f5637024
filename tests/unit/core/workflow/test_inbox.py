"""Entries: options, effects, deciding once, deadlines, targets, rechecks, parking (docs/specs/workflows.md §7)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.core.workflow.stage import GO, RUN, codes, decide, play, reply, spec

KEYS = [
    "id", "run_id", "workflow", "item", "item_index", "attempt", "kind", "cause", "cause_key", "raised_by", "target",
    "held_by", "reasons", "rule", "question", "summary", "options", "options_defaulted", "opened_at", "deadline_at",
    "remind_at", "overdue", "reminders", "snoozed_until", "notified", "state", "decision", "applied_at",
    "resume_token", "previous", "deadlock",
]  # fmt: skip


def entry(output: dict[str, Any], number: int = 1) -> dict[str, Any]:
    made: dict[str, Any] = output["escalations"][number - 1]
    return made


def statuses(output: dict[str, Any]) -> list[str]:
    return [answer["status"] for answer in output["answers"]]


def contexts(output: dict[str, Any]) -> list[dict[str, Any]]:
    return [packet["payload"]["context"] for packet in output["emitted"] if packet["signal"] == "SPAWN"]


ASKED = {
    "signal": "ESCALATE",
    "options": [{"id": "old", "title": "Old", "args_schema": {"n": "integer"}}, {"id": "new"}],
}


def test_every_key_is_present() -> None:
    made = entry(play(spec("[a]"), GO, reply(1, "a", "fail")))
    assert list(made) == KEYS
    assert set(made["summary"]) == {"failed", "tried", "impact"}
    assert set(made["options"][0]) == {"id", "title", "effect", "args_schema", "recommended"}
    assert made["resume_token"] == "tok-1"


def test_words_make_a_new_attempt_with_an_instruction() -> None:
    made = play(
        spec("[a]"),
        GO,
        reply(1, "a", "fail"),
        decide(2, 1, respond="use the new one"),
        reply(3, "a", "fail"),
        decide(4, 2, "retry"),
    )
    assert [context.get("instruction") for context in contexts(made)] == [None, "use the new one", None]
    assert (entry(made)["decision"]["verb"], entry(made)["decision"]["option_id"]) == ("respond", None)
    assert made["runs"][0]["retries"] == 1


def test_an_agents_own_option_travels_with_args_and_note() -> None:
    made = play(spec("[a]"), GO, reply(1, "a", **ASKED), decide(2, 1, "old", args={"n": 3}, note="why"))
    assert contexts(made)[1]["decision"] == {"option_id": "old", "args": {"n": 3}, "note": "why"}
    assert entry(made)["decision"]["verb"] == "edit"
    assert made["runs"][0]["retries"] == 0


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ({"option": "nope"}, "E_OPTION"),
        ({"option": "retry"}, "E_OPTION"),
        ({"option": "old", "args": {"n": "3"}}, "E_ARGS"),
        ({"option": "old", "args": {"n": True}}, "E_ARGS"),
        ({"option": "old", "args": {"m": 3}}, "E_ARGS"),
        ({"option": "old", "args": [3]}, "E_ARGS"),
        ({"option": "new", "args": {"n": 3}}, "E_ARGS"),
        ({"accept": True}, "E_NO_RECOMMENDATION"),
        ({"respond": "x", "args": {"n": 3}}, "E_ARGS"),
        ({"option": "old", "as": "porter"}, "E_DECIDER"),
        ({"option": "old", "as": "orchestrator"}, "E_DECIDER"),
        ({"option": "old", "as": "ambient"}, "E_DECIDER"),
        ({"option": "old", "as": "rule:rule-1"}, "E_DECIDER"),
        ({"option": "old", "as": "deadline"}, "E_DECIDER"),
        ({"option": "old", "as": "recheck"}, "E_DECIDER"),
        ({"option": "old", "token": "tok-2"}, "E_TOKEN"),
        ({"option": "old", "channel": "link"}, "E_TOKEN"),
        ({"escalation": 9, "option": "old"}, "E_ESCALATION_UNKNOWN"),
        ({"escalation": "esc-1", "option": "old"}, "E_ESCALATION_UNKNOWN"),
    ],
)
def test_answers_that_are_refused(answer: dict[str, Any], code: str) -> None:
    step = {"at": 2, "decide": {"escalation": 1, **answer}}
    made = play(spec("[a]"), GO, reply(1, "a", **ASKED), step)
    assert (made["answers"][2]["status"], made["answers"][2]["codes"]) == ("refused", [code])
    assert entry(made)["state"] == "open"
    assert made["answers"][2]["changed"] is False


def test_the_token_opens_the_door_of_links() -> None:
    made = play(spec("[a]"), GO, reply(1, "a", **ASKED), decide(2, 1, "old", channel="link", token="tok-1"))
    assert statuses(made)[2] == "accepted"


def test_a_recommended_option_can_be_accepted() -> None:
    options = [{"id": "old"}, {"id": "new", "recommended": True}]
    made = play(spec("[a]"), GO, reply(1, "a", signal="ESCALATE", options=options), decide(2, 1, accept=True))
    decision = entry(made)["decision"]
    assert (decision["verb"], decision["option_id"]) == ("accept", "new")
    assert contexts(made)[1]["decision"]["option_id"] == "new"


def test_an_agent_without_options_gets_the_usual_ones() -> None:
    made = entry(play(spec("[a]", more="on_escalate: {options: [skip, retry]}"), GO, reply(1, "a", signal="ESCALATE")))
    assert [option["id"] for option in made["options"]] == ["skip", "retry", "abort"]
    assert made["options_defaulted"] is True


def test_the_first_answer_wins_and_its_key_is_answered_alike() -> None:
    made = play(
        spec("[a]"),
        GO,
        reply(1, "a", "fail"),
        {**decide(2, 1, "skip", key="k", **{"as": "ana"}), "no_tick": True},
        {**decide(2, 1, "retry", key="k", **{"as": "bo"}), "no_tick": True},
        {**decide(2, 1, "retry", key="other", **{"as": "bo"}), "no_tick": True},
        {"at": 3, "tick": True},
        decide(4, 1, "skip", key="k"),
        decide(5, 1, "skip"),
    )
    assert statuses(made)[2:] == ["accepted", "accepted", "conflict", "done", "accepted", "conflict"]
    assert made["answers"][3]["replay"] is True
    assert made["answers"][4]["winner"] == {"verb": "skip", "option_id": "skip", "decided_by": "ana"}
    assert codes(made)[4] == ["E_CONFLICT"]
    assert made["runs"][0]["outcome"] == "failed"


def test_whoever_started_the_run_may_be_kept_from_deciding() -> None:
    made = play(
        spec("[a]", more="on_escalate: {self_approval: false}"),
        {"at": 0, "start": {"mode": "swarm", "grant": True, "as": "ana"}},
        reply(1, "a", "fail"),
        decide(2, 1, "skip", **{"as": "ana"}),
        decide(3, 1, "skip", **{"as": "bo"}),
    )
    assert codes(made)[2:] == [["E_SELF_APPROVAL"], []]


def test_an_answer_while_the_engine_is_down_counts_past_the_deadline() -> None:
    made = play(
        spec("[a]", more="on_escalate: {deadline: 10s, on_deadline: abort}"),
        GO,
        reply(1, "a", "fail"),
        {"at": 2, "tick": True, "crash": "before_commit"},
        decide(100, 1, "resolve"),
        {"at": 101, "restart": True},
    )
    assert made["runs"][0]["outcome"] == "success"
    assert entry(made)["state"] == "applied"


@pytest.mark.parametrize(
    ("act", "options", "state", "outcome"),
    [
        ("skip", "[retry, skip]", "expired", "failed"),
        ("abort", "[retry, abort]", "expired", "aborted"),
        ("skip", "[retry, abort]", "open", "waiting"),
        ("remind", "[retry, skip]", "open", "waiting"),
    ],
)
def test_deadlines(act: str, options: str, state: str, outcome: str) -> None:
    more = f"on_escalate: {{deadline: 1m, on_deadline: {act}, options: {options}, remind_every: 10m}}"
    made = play(spec("[a]", more=more), GO, reply(1, "a", "fail"), {"at": 700, "tick": True}, decide(701, 1, "retry"))
    found = entry(made)
    assert (
        found["state"] if state == "expired" else "open",
        made["runs"][0]["outcome"] if state == "expired" else outcome,
    ) == (state, outcome)
    reminders = [notice["at"][14:19] for notice in made["notifications"] if notice["event"] == "REMINDER"]
    assert reminders == ([] if state == "expired" else ["01:01", "11:01"])
    if state == "expired":
        assert codes(made)[3] == ["E_GONE"]
        assert made["answers"][3]["winner"]["decided_by"] == "deadline"
        assert made["runs"][0]["final"][0]["by"] == ("deadline" if act == "skip" else "agent")
    else:
        assert found["overdue"] is True


def test_a_deadline_never_picks_an_option_of_an_agent() -> None:
    """An agent's `skip` is its own, so the deadline's is not offered: only a reminder is left."""
    more = "on_escalate: {deadline: 1m, on_deadline: skip, remind_every: 10m}"
    asked = reply(1, "a", signal="ESCALATE", options=["skip", "wait"])
    made = play(spec("[a]", more=more), GO, asked, {"at": 700, "tick": True})
    found = entry(made)
    assert (found["state"], found["overdue"], found["decision"], len(made["emitted"])) == ("open", True, None, 1)
    assert [notice["event"] for notice in made["notifications"]] == ["ESCALATE", "REMINDER", "REMINDER"]
    usual = play(spec("[a]", more=more), GO, reply(1, "a", signal="ESCALATE"), {"at": 700, "tick": True})
    assert (entry(usual)["state"], usual["runs"][0]["final"][0]["result"]) == ("expired", "skipped")


def test_a_deferred_question_reminds_once_and_may_be_deferred_again() -> None:
    made = play(
        spec("[a]"),
        GO,
        reply(1, "a", "fail"),
        decide(2, 1, defer="10s"),
        decide(3, 1, defer="20s"),
        {"at": 30, "tick": True},
    )
    found = entry(made)
    assert (found["reminders"], found["overdue"], found["snoozed_until"], found["state"]) == (1, False, None, "open")
    assert [notice["at"][17:19] for notice in made["notifications"]] == ["01", "23"]


def test_one_reminder_an_entry_and_tick() -> None:
    made = play(
        spec("[a]", more="on_escalate: {deadline: 10s, remind_every: 30s, notify: [brain-ui, desktop]}"),
        GO,
        reply(1, "a", "fail"),
        decide(2, 1, defer="9s"),
        {"at": 3, "jump": "10m"},
    )
    assert entry(made)["reminders"] == 1
    assert [notice["event"] for notice in made["notifications"]] == ["ESCALATE", "ESCALATE", "REMINDER", "REMINDER"]


# Blocks


def test_a_block_may_be_skipped_or_stop_the_run() -> None:
    for option, outcome in (("skip", "failed"), ("abort", "aborted")):
        made = play(spec("[a]"), GO, reply(1, "a", signal="BLOCKED_ON", context="x"), decide(2, 1, option))
        assert made["runs"][0]["outcome"] == outcome


@pytest.mark.parametrize(
    ("context", "again", "kind"),
    [
        ({"message": "x", "n": 1}, {"n": 1, "message": "x"}, "error"),
        ({"message": "x", "n": 1}, {"message": "x", "n": 2}, "block"),
        ("x", "x", "error"),
    ],
)
def test_the_same_block_again_is_a_decision(context: Any, again: Any, kind: str) -> None:
    made = play(
        spec("[a]"),
        GO,
        reply(1, "a", signal="BLOCKED_ON", context=context),
        {"at": 2, "ack": {"escalation": 1}},
        reply(3, "a", signal="BLOCKED_ON", context=again),
    )
    assert entry(made, 2)["kind"] == kind
    assert made["runs"][0]["blocks"] == 2


def test_by_route_the_same_cause_counts() -> None:
    made = play(
        spec("[a]", "{success: next_item, fail: BLOCKED_ON}"),
        GO,
        reply(1, "a", {"status": "fail", "cause": "c"}),
        {"at": 2, "ack": {"escalation": 1}},
        reply(3, "a", {"status": "fail", "cause": "c"}),
    )
    assert (entry(made, 2)["kind"], entry(made, 2)["cause"]) == ("error", "block_repeated")
    assert spawned(made) == ["0/1", "0/1.1"]


def spawned(output: dict[str, Any]) -> list[str]:
    return [packet["id"].split("/", 1)[1] for packet in output["emitted"] if packet["signal"] == "SPAWN"]


def test_an_escalated_block_names_what_was_before_it() -> None:
    made = play(
        spec("[a]"),
        GO,
        reply(1, "a", signal="BLOCKED_ON", context="x"),
        decide(2, 1, "escalate"),
        decide(3, 2, "retry"),
    )
    assert (entry(made, 2)["cause"], entry(made, 2)["previous"]) == ("block_escalated", "esc-20260401-0001")
    assert spawned(made) == ["0/1", "0/2"]


def test_a_block_that_says_how_to_see_its_end_ends_by_itself() -> None:
    made = play(
        spec("[a]"),
        GO,
        reply(1, "a", signal="BLOCKED_ON", context={"cause": "no key", "recheck": {"file_exists": "keys/k"}}),
        {"at": 5, "tick": True},
        {"at": 6, "touch": "keys/k"},
    )
    assert [answer["changed"] for answer in made["answers"]] == [True, True, False, True]
    assert (entry(made)["state"], entry(made)["decision"]["decided_by"]) == ("applied", "recheck")
    assert spawned(made) == ["0/1", "0/1.1"]


@pytest.mark.parametrize("recheck", [{"file_exists": "../x"}, {"file_exists": "/etc/passwd"}, {"magic": "x"}, "x", {}])
def test_a_recheck_below_the_root_or_none(recheck: Any) -> None:
    made = play(
        spec("[a]"), GO, reply(1, "a", signal="BLOCKED_ON", context={"recheck": recheck}), {"at": 2, "tick": True}
    )
    assert entry(made)["state"] == "open"


def test_a_lock_that_is_free_again() -> None:
    made = play(
        spec("[a, b]", more="max_parallel: 2\non_escalate: {wait: item}"),
        GO,
        reply(1, "a", signal="BLOCKED_ON", context={"recheck": {"lock_free": "f/b/deep"}}),
        {"at": 2, "tick": True},
        reply(3, "b"),
    )
    assert entry(made)["applied_at"] == "2026-04-01T08:00:03.000Z"


def test_two_blocks_that_wait_for_each_other_are_marked_and_never_end_alone() -> None:
    made = play(
        spec("[a, b]", more="max_parallel: 2"),
        GO,
        reply(1, "a", signal="BLOCKED_ON", context={"waits_for": f"{RUN}/1", "recheck": {"file_exists": "k"}}),
        reply(2, "b", signal="BLOCKED_ON", context={"waits_for": f"{RUN}/0"}),
        {"at": 3, "touch": "k"},
        {"at": 4, "restart": True},
    )
    assert [item["deadlock"] for item in made["escalations"]] == [True, True]
    assert [item["state"] for item in made["escalations"]] == ["open", "open"]


# Parking and targets


def test_wait_none_lets_the_verdict_stand() -> None:
    made = play(
        spec("[a, b]", more="on_escalate: {wait: none, deadline: 1s}"),
        GO,
        reply(1, "a", "fail"),
        reply(2, "b"),
        {"at": 10, "ack": {"escalation": 1}},
    )
    assert [option["id"] for option in entry(made)["options"]] == ["seen"]
    assert entry(made)["deadline_at"] is None
    assert (made["runs"][0]["outcome"], made["runs"][0]["completed_at"][17:19]) == ("partial", "02")
    assert statuses(made)[3] == "accepted"
    assert entry(made)["state"] == "applied"


def test_wait_none_still_parks_an_item_that_asks() -> None:
    made = play(
        spec("[a, b]", more="on_escalate: {wait: none}"),
        GO,
        reply(1, "a", signal="ESCALATE", options=["x"]),
        reply(2, "b"),
    )
    assert made["runs"][0]["outcome"] == "waiting"
    assert [option["id"] for option in entry(made)["options"]] == ["x", "abort"]


def test_wait_item_lets_the_others_go_on_but_a_breaker_stops_all() -> None:
    made = play(
        spec("[a, b, c, d]", "{success: next_item, fail: retry(9)}", "on_escalate: {wait: item}"),
        GO,
        reply(1, "a", "fail"),
        reply(2, "a", "fail"),
        reply(3, "a", "fail"),
        {"at": 4, "tick": True},
    )
    assert spawned(made) == ["0/1", "0/2", "0/3"]


@pytest.mark.parametrize("target", ["", " pilote", " human", " porter"])
def test_targets_that_are_the_inbox(target: str) -> None:
    made = play(spec("[a]", f"{{success: next_item, fail: ESCALATE{target}}}"), GO, reply(1, "a", "fail"))
    assert entry(made)["held_by"] is None
    assert [notice["event"] for notice in made["notifications"]] == ["ESCALATE"]


HELD = "{success: next_item, fail: ESCALATE boss}"


def to_entry(at: float, name: str = "RETURN", sender: str = "boss", **payload: Any) -> dict[str, Any]:
    packet = {"from": sender, "signal": name, "in_reply_to": "esc-20260401-0001", "payload": payload}
    return {"at": at, "signal": packet}


def test_an_agent_only_recommends_what_cannot_be_undone() -> None:
    made = play(
        spec("[a]", HELD),
        GO,
        reply(1, "a", "fail"),
        to_entry(2, result={"option_id": "skip"}),
        decide(3, 1, accept=True),
    )
    assert entry(made)["notified"][0]["at"] == "2026-04-01T08:00:02.000Z"
    assert [option["id"] for option in entry(made)["options"] if option["recommended"]] == ["skip"]
    assert made["runs"][0]["final"][0] == {"index": 0, "item": "a", "result": "skipped", "by": "human"}


def test_an_agent_that_cannot_answer_hands_on_to_people() -> None:
    made = play(
        spec("[a]", HELD), GO, reply(1, "a", "fail"), to_entry(2, "ESCALATE", options=["y"]), {"at": 700, "tick": True}
    )
    assert [notice["at"][14:19] for notice in made["notifications"]] == ["00:02"]
    assert entry(made)["state"] == "open"


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        (to_entry(2, sender="porter", result={"option_id": "skip"}), "sender"),
        (to_entry(2, result={"option_id": "fly"}), "violation"),
        (to_entry(2, result="skip"), "violation"),
        (to_entry(2, result={"option_id": "skip", "args": {"x": 1}}), "violation"),
        (to_entry(2, result={"option_id": "skip"}, context="x"), "violation"),
    ],
)
def test_answers_of_agents_that_do_not_count(packet: dict[str, Any], reason: str) -> None:
    text = spec("[a]", HELD, "reversible: true\nexternal_effect: false")
    made = play(text, GO, reply(1, "a", "fail"), packet)
    assert [item["reason"] for item in made["rejected"]] == [reason]
    assert entry(made)["state"] == "open"
    assert made["runs"][0]["steps"][0]["result"] == "fail"


def test_an_answer_of_an_agent_comes_too_late() -> None:
    text = spec("[a, b]", HELD, "reversible: true\nexternal_effect: false")
    made = play(text, GO, reply(1, "a", "fail"), decide(2, 1, "skip"), to_entry(3, result={"option_id": "retry"}))
    assert [item["reason"] for item in made["rejected"]] == ["closed"]
    assert entry(made)["decision"]["decided_by"] == "operator"


def test_an_entry_that_nobody_was_handed_is_no_correlation() -> None:
    made = play(spec("[a]"), GO, reply(1, "a", "fail"), to_entry(2, result={"option_id": "skip"}))
    assert [item["reason"] for item in made["rejected"]] == ["unknown"]
