"""What a journal adds up to: windows, satisfaction, invariants, delegations."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.delegation.progress import (
    Blocker,
    blockers,
    criterion_states,
    observers,
    ordering,
    refused_between,
    seq_gaps,
    status,
    tree_mark,
    window,
)
from tests.unit.core.delegation.builders import (
    HELPER,
    approval,
    chain,
    contract,
    delegation,
    draft,
    event,
    gate_run,
    progress,
    start,
)


def status_of(events: list[dict[str, Any]], **changes: Any) -> str:
    known = chain(**changes)
    for item in events:
        item["contract_id"] = known.live.id
    return status(progress(events, known), known.live, "T-mark")


def test_the_derived_status() -> None:
    assert status_of([]) == "pending"
    assert status_of([gate_run(1)]) == "pending"
    assert status_of([start(1)]) == "in_progress"
    assert status_of([start(1), gate_run(2)]) == "completed"
    assert status_of([start(1), gate_run(2), gate_run(3, exit_code=1)]) == "completed"
    assert status_of([start(1), gate_run(2), start(3)]) == "in_progress"
    assert status_of([start(1), gate_run(2), start(3), gate_run(4)]) == "completed"
    assert status_of([gate_run(1), start(2)]) == "in_progress"


@pytest.mark.parametrize(
    "fields",
    [
        {"exit_code": 1},
        {"trust": "asserted"},
        {"trust": "imported"},
        {"task": "T-plain"},
        {"criterion": "AC-two"},
        {"actor": {"kind": "agent", "identity": "caller"}},
        {"evidence_path": ""},
        {"exit_code": False},
        {"exit_code": "0"},
        {"surplus": 1},
    ],
)
def test_what_satisfies_nothing(fields: dict[str, Any]) -> None:
    assert status_of([start(1), {**gate_run(2), **fields}]) == "in_progress"


def test_the_position_decides_not_the_order() -> None:
    assert status_of([gate_run(5), start(3)]) == "completed"
    assert status_of([gate_run(2), start(3)]) == "in_progress"


def test_the_latest_accepted_pass_is_cited() -> None:
    made = draft()
    made["acceptance"]["criteria"][0]["accepted_evidence"] = ["observed", "asserted"]
    known = chain(acceptance=made["acceptance"])
    word = {"trust": "asserted", "actor": {"kind": "human", "identity": "Ada"}}
    events = [start(1), gate_run(2), {**gate_run(3), **word}, gate_run(4, exit_code=2)]
    for item in events:
        item["contract_id"] = known.live.id
    (found,) = criterion_states(progress(events, known), known.live, "T-mark")
    assert (found.satisfied, found.via_seq, found.trust) == (True, 3, "asserted")


def test_an_empty_intent_is_complete_as_soon_as_started() -> None:
    made = draft()
    made["tasks"][0]["gate_intent"] = []
    assert status_of([], tasks=made["tasks"]) == "pending"
    assert status_of([start(1)], tasks=made["tasks"]) == "completed"


def amendment(seq: int, *criteria: str, note: str | None = None) -> dict[str, Any]:
    said = {
        "original_criterion": "o",
        "observed_finding": "f",
        "disposition": "d",
        "revised_criterion": "r",
        "reason": "r",
        "authority": "a",
        "affected_tasks": [],
        "evidence_invalidated": list(criteria),
        "evidence_preserved": [],
    }
    return event("amendment", seq, **said, **({"note": note} if note is not None else {}))


def test_an_amendment_moves_the_window_of_what_it_names() -> None:
    made = progress([start(1), gate_run(2), amendment(3, "AC-one")])
    assert status(made, contract(), "T-mark") == "in_progress"
    assert window(made, "T-mark", "AC-one") == 3
    assert window(made, "T-mark", "AC-two") == 1
    assert status_of([start(1), gate_run(2), amendment(3, "AC-two")]) == "completed"
    assert status_of([start(1), gate_run(2), amendment(3, "AC-one"), gate_run(4)]) == "completed"


def test_an_amendment_of_a_contract_waits_for_its_approval() -> None:
    identity = "a" * 64
    note = f"amendment to revision 2 contract {identity}"
    events = [start(1), gate_run(2), amendment(3, "AC-one", note=note)]
    assert status(progress(events), contract(), "T-mark") == "completed"
    agreed = {**approval(4), "contract_id": identity}
    assert status(progress([*events, agreed]), contract(), "T-mark") == "in_progress"
    assert status(progress([agreed, *events]), contract(), "T-mark") == "in_progress"
    assert status(progress([*events, {**agreed, "contract_id": "b" * 64}]), contract(), "T-mark") == "completed"
    assert status(progress([*events, {**agreed, "plan_digest": "x"}]), contract(), "T-mark") == "completed"


def said(seq: int, text: str) -> dict[str, Any]:
    return event("observation", seq, statement=text, trust="asserted")


@pytest.mark.parametrize(
    ("statements", "holds"),
    [
        ([], False),
        (["INV-x: pass"], True),
        (["INV-x: fail"], False),
        (["INV-x: pass", "INV-x: fail: it broke\nagain"], False),
        (["INV-x: fail", "INV-x: pass"], True),
        (["INV-x: pass", "INV-x: passed"], True),
        (["INV-x:pass"], False),
        (["INV-x: pass "], False),
        (["INV-x: pass\n"], False),
        (["INV-x: pass", "INV-x: fail: "], True),
        (["INV-y: pass"], False),
    ],
)
def test_invariants(statements: list[str], holds: bool) -> None:
    known = chain(invariants=[{"id": "INV-x", "statement": "s"}])
    events = [start(1), *(said(index + 2, text) for index, text in enumerate(statements))]
    found = blockers(progress(events, known), known.live, "T-mark")
    assert (Blocker("invariant", "INV-x") not in found) == holds


def test_an_invariant_counts_from_the_start_on() -> None:
    known = chain(invariants=[{"id": "INV-x", "statement": "s"}])
    for events in ([said(1, "INV-x: pass"), start(2)], [said(1, "INV-x: pass")]):
        assert Blocker("invariant", "INV-x") in blockers(progress(events, known), known.live, "T-mark")


def test_blockers_come_in_their_order_and_whole() -> None:
    known = chain(invariants=[{"id": "INV-x", "statement": "s"}])
    made = progress([start(1), delegation(2, "d2"), delegation(3, "d1"), delegation(4, "d3", "failed")], known)
    assert blockers(made, known.live, "T-mark") == [
        ("delegation", "d1"),
        ("delegation", "d2"),
        ("invariant", "INV-x"),
        ("criterion", "AC-one"),
    ]
    assert blockers(made, known.live, "T-plain") == [("invariant", "INV-x"), ("criterion", "AC-two")]


def test_delegations_by_id() -> None:
    made = progress(
        [
            start(1),
            delegation(2),
            delegation(3, "d2"),
            delegation(4, state="completed"),
            delegation(5, "d3", "cancelled"),
            {**delegation(6), "delegation_id": 7},
            {**delegation(7), "state": "resting"},
        ]
    )
    assert list(made.delegations) == ["d1", "d2", "d3"]
    assert made.open == {"T-mark": {"d2"}}
    assert list(made.of_task["T-mark"]) == ["d1", "d2", "d3"]
    assert made.delegations["d3"].findings == ["delegation-no-launch"]
    assert made.ids == {"d1", "d2", "d3"}


def test_an_id_that_moves_to_another_task() -> None:
    made = progress([start(1), delegation(2), delegation(3, state="completed", task="T-plain")])
    assert made.delegations["d1"].findings == ["delegation-drift"]
    assert made.open == {"T-mark": set()}


def test_the_rules_of_order() -> None:
    made = progress([start(1), delegation(2), delegation(3, state="failed")])
    known = made.delegations["d1"]
    assert ordering(None, delegation(1)) == []
    assert ordering(None, delegation(1, state="failed")) == ["delegation-no-launch"]
    assert ordering(known, delegation(4)) == ["delegation-relaunched"]
    assert ordering(known, delegation(4, state="failed")) == ["delegation-second-end"]
    assert ordering(known, delegation(4, state="failed", via="herdr")) == ["delegation-drift", "delegation-second-end"]


def test_only_well_formed_events_are_judged() -> None:
    made = progress([start(1), {**delegation(2), "trust": "asserted"}, delegation(3, state="failed")])
    known = made.delegations["d1"]
    assert known.launch is not None
    assert known.sound_launch is None
    assert known.findings == ["delegation-no-launch"]


@pytest.mark.parametrize(
    ("fields", "mark"),
    [
        ({"worktree": None, "note": "read-only tree abc"}, "abc"),
        ({"worktree": None, "note": "read-only tree abc | more"}, "abc"),
        ({"worktree": None, "note": "read-only tree none"}, "none"),
        ({"worktree": None, "note": "look"}, None),
        ({"worktree": None}, None),
        ({"worktree": "../wt", "note": "read-only tree abc"}, None),
        ({"note": "read-only tree abc"}, None),
    ],
)
def test_the_mark_counts_beside_an_explicit_null(fields: dict[str, Any], mark: str | None) -> None:
    assert tree_mark(fields) == mark


def test_observers_and_refusals_between() -> None:
    refusals = [
        event("refusal", seq, subject=subject, stage=stage, reason="r", actor=HELPER)
        for seq, subject, stage in (
            (2, "delegate T-mark", "dispatch"),
            (4, "T-mark", "gate"),
            (5, "T-plain", "gate"),
            (6, "T-mark", "dispatch"),
        )
    ]
    made = progress([start(1), *refusals, gate_run(7), gate_run(8, exit_code=1), gate_run(9)])
    assert observers(made, "T-mark", 7) == [9]
    assert observers(made, "T-mark", 0) == [7, 9]
    assert observers(made, None, 0) == []
    assert refused_between(made, "T-mark", 2, None) == [4, 6]
    assert refused_between(made, "T-mark", 1, 4) == [2]


@given(st.lists(st.integers(1, 60), max_size=40))
def test_gaps_in_seq(seqs: list[int]) -> None:
    made = progress([event("selection", seq, task="T-mark", priority_boost=False) for seq in seqs])
    missing = [number for first, last in seq_gaps(made) for number in range(first, last + 1)]
    assert missing == [number for number in range(1, max(seqs, default=0)) if number not in seqs]
    assert all(one[1] + 1 < two[0] for one, two in pairwise(seq_gaps(made)))


def test_idle_gaps() -> None:
    moments = ["00:00:00", "00:14:59", "00:30:00", "00:20:00", "01:00:00"]
    events = [{**said(index + 1, "s"), "ts": f"2026-01-01T{text}Z"} for index, text in enumerate(moments)]
    assert progress(events).gaps == [(2, 3, 901), (4, 5, 2400)]
    odd = [{**said(1, "s"), "ts": "never"}, {**said(2, "s"), "ts": "2026-01-01T00:00:00Z"}]
    assert progress(odd).gaps == []


@given(st.lists(st.sampled_from(["start", "pass", "fail", "other", "word", "amend"]), max_size=25))
def test_status_is_what_the_words_of_the_rule_say(kinds: list[str]) -> None:
    """Against the rule, read off the whole list anew."""
    makers = {
        "start": start,
        "pass": gate_run,
        "fail": lambda seq: gate_run(seq, exit_code=1),
        "other": lambda seq: gate_run(seq, task="T-plain", criterion="AC-two"),
        "word": lambda seq: gate_run(seq, trust="asserted"),
        "amend": lambda seq: amendment(seq, "AC-one"),
    }
    made = progress([makers[kind](index + 1) for index, kind in enumerate(kinds)])
    starts = [index for index, kind in enumerate(kinds) if kind == "start"]
    floors = [index for index, kind in enumerate(kinds) if kind in ("start", "amend")]
    passed = [index for index, kind in enumerate(kinds) if kind == "pass" and floors and index > floors[-1]]
    expected = "pending" if not starts else "completed" if passed else "in_progress"
    assert status(made, contract(), "T-mark") == expected
