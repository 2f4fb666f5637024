"""Learning: counts, proposals, rules (docs/specs/workflows.md §8)."""

from __future__ import annotations

from typing import Any

import pytest

from core.workflow.learn import cause_key, mask, pattern
from core.workflow.model import Work
from core.workflow.routes import default_route
from tests.unit.core.workflow.stage import codes, decide, play, reply, spec

SAFE = "reversible: true\nexternal_effect: false"
ROUTES: dict[str, Any] = {
    "success": default_route("success", "for_each"),
    "fail": default_route("fail", "for_each"),
    "partial": default_route("partial", "for_each"),
    "error": default_route("error", "for_each"),
}


def start(at: float) -> dict[str, Any]:
    return {"at": at, "start": {"mode": "swarm", "grant": True}}


def failing(at: float, cause: str = "c", status: str = "fail") -> list[dict[str, Any]]:
    """A run whose one item fails."""
    return [start(at), reply(at + 1, "a", {"status": status, "cause": cause})]


def answered(at: float, number: int, option: str = "skip", cause: str = "c", **more: Any) -> list[dict[str, Any]]:
    """A run whose one item fails and is answered, and is over then."""
    steps = [*failing(at, cause), decide(at + 2, number, option, **more)]
    return [*steps, reply(at + 3, "a")] if option == "retry" else steps


@pytest.mark.parametrize(
    ("cause", "masked"),
    [
        (None, ""),
        ("Quota 17 reached", "quota <n> reached"),
        ("can't read 'a file' or \"another\"", "can't read <text> or <text>"),
        ("no etc/hosts here", "no <path> here"),
        ("web-01 is down, web-012 too", "<item> is down, web-<n> too"),
        ("WEB-01 down", "<item> down"),
    ],
)
def test_what_varies_is_masked(cause: str | None, masked: str) -> None:
    assert mask(cause, "web-01") == masked


def test_unlike_questions_have_unlike_keys() -> None:
    work = Work(agent="p", **ROUTES)
    base = cause_key(pattern("w", work, "fail", "a", ["skip", "retry"], "x 1"))
    assert base == cause_key(pattern("w", work, "fail", "b", ["retry", "skip"], "X 22"))
    others = [
        pattern("v", work, "fail", "a", ["skip", "retry"], "x 1"),
        pattern("w", work, "error", "a", ["skip", "retry"], "x 1"),
        pattern("w", work, "fail", "a", ["skip"], "x 1"),
        pattern("w", work, "fail", "a", ["skip", "retry"], "y 1"),
        pattern("w", Work(agent="q", **ROUTES), "fail", "a", ["skip", "retry"], "x 1"),
        pattern("w", Work(agent="p", zone="kernel", **ROUTES), "fail", "a", ["skip", "retry"], "x 1"),
    ]
    assert base not in {cause_key(made) for made in others}


def proposals(*steps: Any, text: str = spec("[a]")) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = play(text, *steps)["proposals"]
    return made


def test_two_equal_answers_propose() -> None:
    (made,) = proposals(*answered(0, 1, cause="port 443"), *answered(10, 2, cause="port 80"))
    assert made["id"] == "prop-20260401-001"
    assert made["evidence"] == ["esc-20260401-0001", "esc-20260401-0002"]
    assert made["proposes"]["option_id"] == "skip"
    assert made["pattern"]["cause"] == "port <n>"


@pytest.mark.parametrize(
    "steps",
    [
        [*answered(0, 1, "skip"), *answered(10, 2, "retry")],
        [*answered(0, 1, "skip", cause="c"), *answered(10, 2, "skip", cause="d")],
        [*answered(0, 1, "abort"), *answered(10, 2, "abort")],
        [*answered(0, 1, "resolve"), *answered(10, 2, "resolve")],
    ],
)
def test_unlike_answers_or_such_that_are_never_learned_propose_nothing(steps: list[dict[str, Any]]) -> None:
    assert proposals(*steps) == []


def test_another_answer_begins_the_count_anew() -> None:
    made = proposals(
        *answered(0, 1, "skip"), *answered(10, 2, "resolve"), *answered(20, 3, "skip"), *answered(30, 4, "skip")
    )
    assert made[0]["evidence"] == ["esc-20260401-0003", "esc-20260401-0004"]


def test_answers_of_deadlines_and_blocks_do_not_count() -> None:
    text = spec("[a]", more="on_escalate: {deadline: 1s, on_deadline: skip}")
    assert proposals(*failing(0), *failing(10), {"at": 20, "tick": True}, text=text) == []
    blocked = [
        step
        for at, number in ((0, 1), (10, 3))
        for step in (
            start(at),
            reply(at + 1, "a", signal="BLOCKED_ON", context="x"),
            decide(at + 2, number, "escalate"),
            decide(at + 3, number + 1, "skip"),
        )
    ]
    assert proposals(*blocked) == []


def test_one_open_proposal_a_cause_and_a_new_one_after_it_was_archived() -> None:
    made = proposals(*answered(0, 1), *answered(10, 2), *answered(20, 3))
    assert len(made) == 1
    late = 72 * 3600 + 100
    made = proposals(*answered(0, 1), *answered(10, 2), *answered(late, 3))
    assert [item["state"] for item in made] == ["archived", "open"]
    assert made[1]["evidence"] == ["esc-20260401-0001", "esc-20260401-0002", "esc-20260404-0001"]


def test_a_rejected_proposal_begins_the_count_anew() -> None:
    reject = {"at": 15, "reject": {"proposal": 1, "as": "ana"}}
    made = proposals(*answered(0, 1), *answered(10, 2), reject, *answered(20, 3))
    assert [item["state"] for item in made] == ["rejected"]
    made = proposals(*answered(0, 1), *answered(10, 2), reject, *answered(20, 3), *answered(30, 4))
    assert [item["state"] for item in made] == ["rejected", "open"]


def approved(text: str, *steps: Any, **approve: Any) -> dict[str, Any]:
    """What happens after two equal answers were approved as a rule."""
    return play(text, *answered(0, 1), *answered(10, 2), {"at": 15, "approve": {"proposal": 1, **approve}}, *steps)


@pytest.mark.parametrize(
    ("more", "answers"),
    [
        (SAFE, True),
        ("reversible: true", False),
        ("external_effect: false", False),
        (f"{SAFE}\non_escalate: {{wait: item}}", True),
    ],
)
def test_a_rule_answers_only_what_can_be_undone(more: str, answers: bool) -> None:
    made = approved(spec("[a]", more=more), *failing(20))
    assert made["rules"][0]["uses"] == int(answers)
    assert len(made["escalations"]) == (2 if answers else 3)
    if answers:
        assert made["runs"][2]["final"][0]["by"] == f"rule:{made['rules'][0]['id']}"
        assert made["runs"][2]["auto_resolved"] == 1
    else:
        assert [option["id"] for option in made["escalations"][2]["options"] if option["recommended"]] == ["skip"]


def test_another_learnable_option_may_be_approved() -> None:
    made = approved(spec("[a]", more=SAFE), *failing(20), option="retry")
    assert made["rules"][0]["option_id"] == "retry"
    assert [step["attempt"] for step in made["runs"][2]["steps"]] == [1, 2]
    made = approved(spec("[a]", more=SAFE), option="resolve")
    assert codes(made)[-1] == ["E_OPTION"]
    assert made["rules"] == []


def test_a_rule_that_does_not_work_rests() -> None:
    text = spec("[a]", more=SAFE)
    made = approved(text, *failing(20), reply(22, "a", {"status": "fail", "cause": "c"}), option="retry")
    (rule,) = made["rules"]
    assert (rule["state"], rule["uses"], rule["confidence"]) == ("suspended", 1, 0)
    last = made["escalations"][-1]
    assert (last["rule"], any(option["recommended"] for option in last["options"])) == (rule["id"], False)
    made = approved(text, *failing(20), reply(22, "a"), *failing(30), reply(32, "a"), option="retry")
    assert (made["rules"][0]["uses"], made["rules"][0]["confidence"]) == (2, 2)


def test_a_rule_fires_once_an_item_and_run() -> None:
    text = spec("[a]", more=f"{SAFE}\nidempotent: true")
    steps = [*failing(20), reply(22, "a", signal="BLOCKED_ON", context="x"), {"at": 23, "ack": {"escalation": 3}}]
    made = approved(text, *steps, reply(24, "a", {"status": "fail", "cause": "c"}), option="retry")
    assert made["rules"][0]["uses"] == 1
    assert made["escalations"][-1]["kind"] == "fail"


def test_a_lost_reply_is_not_retried_by_rule_either() -> None:
    text = spec("[a]", more=f"{SAFE}\ntimeout: 5s")
    lost = [
        step
        for at, number in ((0, 1), (20, 2))
        for step in (start(at), {"at": at + 6, "tick": True}, decide(at + 7, number, "retry"), reply(at + 8, "a"))
    ]
    made = play(text, *lost, {"at": 30, "approve": {"proposal": 2}}, start(40), {"at": 46, "tick": True})
    assert [item["kind"] for item in made["proposals"]] == ["workflow_fix", "rule"]
    (rule,) = made["rules"]
    assert (rule["option_id"], rule["uses"]) == ("retry", 0)
    last = made["escalations"][-1]
    assert (last["cause"], last["state"], last["rule"]) == ("timeout", "open", rule["id"])
    assert [option["id"] for option in last["options"] if option["recommended"]] == ["retry"]


def test_an_agents_own_option_can_be_learned() -> None:
    def asking(at: float, number: int | None) -> list[dict[str, Any]]:
        steps = [start(at), reply(at + 1, "a", signal="ESCALATE", options=[{"id": "x"}, {"id": "y"}])]
        if number is not None:
            steps.append(decide(at + 2, number, "x"))
        return [*steps, reply(at + 3, "a")]

    text = spec("[a]", more=SAFE)
    made = play(text, *asking(0, 1), *asking(10, 2), {"at": 15, "approve": {"proposal": 1}}, *asking(20, None))
    assert made["runs"][2]["outcome"] == "success"
    assert made["emitted"][-1]["payload"]["context"]["decision"] == {"option_id": "x", "args": None, "note": None}
    assert made["rules"][0]["confidence"] == 1


@pytest.mark.parametrize("name", ["retry", "skip", "unblocked", "approve"])
def test_an_agents_own_option_is_its_own_whatever_its_name(name: str) -> None:
    """What a rule does is what the person's answer did: a new attempt that hears the choice."""

    def asking(item: str, at: float) -> dict[str, Any]:
        return reply(at, item, signal="ESCALATE", options=[name, "y"])

    steps = [start(0)]
    for number, item in enumerate("ab", 1):
        steps += [asking(item, number * 10), decide(number * 10 + 1, number, name), reply(number * 10 + 2, item)]
    made = play(spec("[a, b, c]", more=SAFE), *steps, {"at": 25, "approve": {"proposal": 1}}, asking("c", 30))
    record = made["runs"][0]
    assert made["emitted"][-1]["payload"]["context"]["decision"] == {"option_id": name, "args": None, "note": None}
    assert (record["auto_resolved"], record["retries"], record["outcome"]) == (1, 0, "running")
    assert record["final"][2] == {"index": 2, "item": "c", "result": "pending", "by": None}


def test_revoking_is_immediate_and_begins_the_count_anew() -> None:
    text = spec("[a]", more=SAFE)
    made = approved(
        text,
        {"at": 16, "reject": {"rule": 1, "as": "ana"}},
        {"at": 17, "reject": {"rule": 1, "as": "bo"}},
        *answered(20, 3),
        *answered(30, 4),
    )
    assert codes(made)[7:9] == [[], ["E_CONFLICT"]]
    assert [rule["state"] for rule in made["rules"]] == ["revoked"]
    assert [item["state"] for item in made["proposals"]] == ["approved", "open"]


@pytest.mark.parametrize("who", ["ambient", "orchestrator", "porter", "rule:x"])
def test_only_people_approve(who: str) -> None:
    made = approved(spec("[a]", more=SAFE), **{"as": who})
    assert codes(made)[-1] == ["E_DECIDER"]


def test_proposals_are_answered_once() -> None:
    made = approved(
        spec("[a]", more=SAFE),
        {"at": 16, "approve": {"proposal": 1}},
        {"at": 17, "reject": {"proposal": "prop-x"}},
        {"at": 18, "approve": {"proposal": "rule-20260401-001"}},
    )
    assert codes(made)[-3:] == [["E_CONFLICT"], ["E_PROPOSAL_UNKNOWN"], ["E_PROPOSAL_UNKNOWN"]]
    late = 80 * 3600
    made = play(spec("[a]"), *answered(0, 1), *answered(10, 2), {"at": late, "approve": {"proposal": 1}})
    assert (made["answers"][-1]["status"], codes(made)[-1]) == ("gone", ["E_GONE"])


def erring(at: float, cause: str = "e 1") -> list[dict[str, Any]]:
    return [start(at), reply(at + 1, "a", signal="ERROR", context=cause)]


def test_the_same_error_in_two_runs_asks_to_mend_the_file() -> None:
    text = spec("[a]", "{success: next_item, error: next_item}")
    made = play(text, *erring(0), *erring(10, "e 2"), *erring(20), {"at": 25, "approve": {"proposal": 1}}, *erring(30))
    assert [(item["kind"], item["state"]) for item in made["proposals"]] == [("workflow_fix", "approved")]
    assert made["rules"] == []
    made = play(text, *erring(0), *erring(10, "other"))
    assert made["proposals"] == []
    again = [*erring(0), *erring(10), {"at": 15, "reject": {"proposal": 1}}, *erring(20), *erring(30)]
    assert [item["state"] for item in play(text, *again)["proposals"]] == ["rejected", "open"]


def test_an_error_counts_once_a_run() -> None:
    text = spec("[a, b]", "{success: next_item, error: next_item}")
    made = play(text, start(0), reply(1, "a", signal="ERROR", context="x"), reply(2, "b", signal="ERROR", context="x"))
    assert made["proposals"] == []
