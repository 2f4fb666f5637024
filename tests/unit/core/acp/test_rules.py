"""The state machine: the whole transition table, and `evolve` and `decide` in agreement (docs/specs/acp.md §2, §3)."""

from __future__ import annotations

from itertools import product

import pytest

from core.acp.model import EVENTS_V1, EVENTS_V2, Event, State
from core.acp.rules import decide, evolve, fold, judge
from core.clock import parse
from tests.unit.core.acp.builders import (
    ACCEPTED,
    CLASSIFIED,
    DELIVERABLE,
    GATE,
    NOW,
    PASSED,
    PEOPLE,
    READINESS,
    REF,
    REVIEWED,
    SITUATIONS,
    SUBMITTED,
    Talk,
    draft,
    setup,
    setup2,
)

OWNER, ALL = ("server",), PEOPLE

LEGAL: dict[str, dict[str, tuple[str, ...]]] = {
    "empty": {"initialized": ALL},
    "drafting": {"proposal_submitted": OWNER, "blocked": ALL},
    "reviewing": {"review_submitted": ("reader", "editor"), "blocked": ALL},
    "one review": {"review_submitted": ("reader",), "blocked": ALL},
    "revising": {
        "proposal_submitted": OWNER,
        "proposal_revised": OWNER,
        "decision_proposed": OWNER,
        "blocked": ALL,
    },
    "revised": {"decision_proposed": OWNER, "question_classified": OWNER, "blocked": ALL},
    "classified": {
        "decision_proposed": OWNER,
        "question_classified": OWNER,
        "decision_accepted": ALL,
        "blocked": ALL,
    },
    "one accepted": {
        "decision_proposed": OWNER,
        "question_classified": OWNER,
        "decision_accepted": ("server", "editor"),
        "blocked": ALL,
    },
    "readiness_check": {"readiness_passed": OWNER, "blocked": ALL},
    "passed": {"readiness_passed": OWNER, "completed": OWNER, "blocked": ALL},
    "completed": {},
    "blocked": {},
}
"""Who may append what, as the table of the specification says it, situation by situation."""

AFTER: dict[tuple[str, str, str], tuple[str, tuple[str, ...]]] = {
    ("empty", "initialized", "reader"): ("drafting", ("reader",)),
    ("drafting", "proposal_submitted", "server"): ("reviewing", ("editor", "reader")),
    ("reviewing", "review_submitted", "reader"): ("reviewing", ("editor",)),
    ("one review", "review_submitted", "reader"): ("revising", OWNER),
    ("revising", "proposal_submitted", "server"): ("reviewing", ("editor", "reader")),
    ("revising", "proposal_revised", "server"): ("decision_review", OWNER),
    ("revising", "decision_proposed", "server"): ("decision_review", OWNER),
    ("revised", "decision_proposed", "server"): ("decision_review", OWNER),
    ("revised", "question_classified", "server"): ("decision_review", ("editor", "reader", "server")),
    ("classified", "decision_accepted", "reader"): ("decision_review", ("editor", "server")),
    ("classified", "decision_proposed", "server"): ("decision_review", OWNER),
    ("one accepted", "question_classified", "server"): ("decision_review", ("editor", "reader", "server")),
    ("one accepted", "decision_accepted", "server"): ("decision_review", ("editor",)),
    ("readiness_check", "readiness_passed", "server"): ("readiness_check", OWNER),
    ("passed", "completed", "server"): ("completed", ()),
    ("drafting", "blocked", "editor"): ("blocked", ()),
    ("passed", "blocked", "reader"): ("blocked", ()),
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_every_event_by_everybody(situation: str) -> None:
    """Each event × situation × actor: legal exactly where the specification says so."""
    talk = Talk(setup(), *SITUATIONS[situation])
    state = talk.state
    for event, who in product(EVENTS_V1, (*PEOPLE, "stranger")):
        made, found = talk.decide(draft(who, event, len(talk.events)))
        legal = who in LEGAL[situation].get(event, ())
        assert (made is not None) == legal, (situation, event, who, found)
        assert (found == []) == legal
        if made is not None:
            assert judge(state, made, talk.setup) == []
            assert (made.actor, made.name, made.seq) == (who, event, len(talk.events) + 1)
            continue
        assert all(item.severity == "error" for item in found)
        text = " · ".join(item.cause for item in found)
        if who == "stranger":
            assert text == "participant 'stranger' is not listed in protocol.json"
        elif event == "initialized":
            # A second one has nothing to answer that would make it the first.
            assert "initialized must be seq 1" in text
        elif event == "completed" and situation != "passed":
            assert "completed requires a prior readiness_passed event" in text
        elif event == "decision_accepted" and state.phase == "decision_review" and not state.classified_seq:
            assert "requires question_classified after the latest" in text
        elif event not in LEGAL[situation] and state.phase is not None:
            assert f"{event} is not allowed from phase {state.phase}" in text
        elif state.phase is None:
            assert "is not allowed from phase none" in text
        else:
            assert "is reserved for" in text
            assert f"got {who}" in text


@pytest.mark.parametrize(("situation", "event", "who"), AFTER)
def test_what_follows(situation: str, event: str, who: str) -> None:
    talk = Talk(setup(), *SITUATIONS[situation])
    before = talk.state
    assert talk.take(who, event) == []
    after = talk.state
    assert (after.phase, after.waiting) == AFTER[situation, event, who]
    assert after.owner == (who if event == "initialized" else "server")
    assert after == evolve(before, talk.events[-1], talk.setup)
    assert after.terminal == (event in ("completed", "blocked"))


def test_every_legal_event_has_been_asked_for_what_follows() -> None:
    asked = {(situation, event) for situation, event, _ in AFTER}
    wanted = {(situation, event) for situation, events in LEGAL.items() for event in events if event != "blocked"}
    assert wanted - asked <= {
        ("classified", "question_classified"),
        ("one accepted", "decision_proposed"),
        ("passed", "readiness_passed"),
    }


def test_events_of_the_other_schema_are_unknown() -> None:
    talk = Talk(setup(), *SUBMITTED)
    for event in set(EVENTS_V2) - set(EVENTS_V1) | {"review_finished", ""}:
        made, found = talk.decide(draft("server", event, 2))
        assert made is None
        assert found[0].code == "event_unknown"


def test_a_second_classification_restarts_the_acceptances() -> None:
    talk = Talk(setup(), *CLASSIFIED, ("reader", "decision_accepted"), ("server", "question_classified"))
    assert talk.state.waiting == ("editor", "reader", "server")
    assert talk.take("reader", "decision_accepted") == []


@pytest.mark.parametrize("event", ["decision_proposed", "proposal_revised"])
def test_new_input_asks_for_a_new_classification(event: str) -> None:
    steps = REVIEWED if event == "proposal_revised" else CLASSIFIED
    talk = Talk(setup(), *steps, ("server", event))
    found = talk.take("server", "decision_accepted")
    assert found[0].code == "classification_missing"
    assert "requires question_classified after the latest proposal or decision" in found[0].cause


def test_a_proposal_needs_a_reviewer() -> None:
    talk = Talk(setup(people=("server",)), ("server", "initialized"))
    assert [item.code for item in talk.take("server", "proposal_submitted")] == ["reviewer_missing"]
    assert talk.take("server", "blocked") == []


def test_who_initializes_owns_the_proposal() -> None:
    talk = Talk(setup(), ("editor", "initialized"))
    assert talk.take("server", "proposal_submitted") != []
    assert talk.take("editor", "proposal_submitted") == []
    assert talk.state.waiting == ("reader", "server")


def test_a_name_that_stands_twice_is_one_participant() -> None:
    talk = Talk(
        setup(people=("server", "reader", "reader")), ("server", "initialized"), ("server", "proposal_submitted")
    )
    assert talk.state.waiting == ("reader",)
    assert talk.take("reader", "review_submitted") == []
    assert talk.state.phase == "revising"


def test_reply_to() -> None:
    talk = Talk(setup(), *SUBMITTED)
    assert talk.take("reader", "review_submitted", reply_to=1) == []
    assert [item.code for item in talk.take("editor", "review_submitted", reply_to=9)] == ["reply_to_unknown"]
    made, found = decide(
        talk.state, talk.setup, talk.events, draft("editor", "review_submitted", None), talk.facts, NOW
    )
    assert made is None
    assert "reply_to is required after initialized" in found[0].cause


@pytest.mark.parametrize("summary", ["", " ", "\n\t"])
def test_a_blank_summary_is_refused(summary: str) -> None:
    talk = Talk(setup(), *SUBMITTED)
    assert [item.code for item in talk.take("reader", "review_submitted", summary=summary)] == ["summary_blank"]


def test_completed_names_its_document() -> None:
    talk = Talk(setup(), *PASSED)
    for doc in (None, "decisions.md", "./conclusion.md"):
        found = talk.take("server", "completed", doc=doc or "")
        assert [item.code for item in found] == ["completed_doc_wrong"]
        assert "completed must reference conclusion.md" in found[0].cause
    assert talk.take("server", "completed") == []


@pytest.mark.parametrize(
    ("readiness", "codes"),
    [
        (READINESS.replace("[resolved]", "[blocking]"), ["readiness_blocking"]),
        (READINESS.replace("[resolved]", "[unresolved]"), ["readiness_unresolved"]),
        (READINESS.replace("Key layout.", "TBD."), ["readiness_unresolved"]),
        (READINESS.replace(" Reason: defaults will do.", ""), ["readiness_reason_missing"]),
        (READINESS + "- [blocking] A.\n- [unresolved] B.\n", ["readiness_blocking", "readiness_unresolved"]),
    ],
)
def test_open_readiness_items_stop_acceptance_and_all_after_it(readiness: str, codes: list[str]) -> None:
    for steps, who, event in (
        (CLASSIFIED, "reader", "decision_accepted"),
        (ACCEPTED, "server", "readiness_passed"),
        (PASSED, "server", "completed"),
    ):
        talk = Talk(setup(), *steps)
        talk.facts = Talk(setup(), readiness_md=readiness).facts
        found = talk.take(who, event)
        assert [item.code for item in found] == codes
        assert all(item.where is not None and item.where.startswith("readiness.md#line ") for item in found)
        # The reference's own trap: it would refuse even this.
        assert talk.take(who, "blocked") == []


def test_readiness_needs_its_tick_and_completion_its_gates() -> None:
    untick = READINESS.replace("[x] Ready", "[ ] Ready")
    for steps, event in ((ACCEPTED, "readiness_passed"), (PASSED, "completed")):
        talk = Talk(setup(), *steps)
        talk.facts = Talk(setup(), readiness_md=untick).facts
        assert [item.code for item in talk.take("server", event)] == ["readiness_not_ticked"]
    talk = Talk(setup(gates=(GATE, "Second")), *PASSED)
    found = talk.take("server", "completed")
    assert [item.code for item in found] == ["gates_unticked"]
    assert "completion gates" in found[0].cause
    assert "Second" in found[0].cause
    assert GATE not in found[0].cause


def test_all_reasons_are_given_at_once() -> None:
    talk = Talk(setup(), *PASSED)
    talk.facts = Talk(setup(), readiness_md="- [blocking] A.\n", conclusion_md="").facts
    codes = [item.code for item in talk.take("server", "completed", doc="x.md")]
    assert codes == [
        "completed_doc_wrong",
        "readiness_blocking",
        "readiness_not_ticked",
        "gates_unticked",
        "conclusion_section_missing",
        "conclusion_outcome_count",
    ]


def test_a_heading_of_somebody_else_refuses_the_review() -> None:
    talk = Talk(setup(), *SUBMITTED)
    theirs, mine = "## 2026-03-01T09:00:00Z - editor - seq 3\n", "## 2026-03-01T09:00:00Z - reader - seq 3\n"
    talk.facts = Talk(setup(), review_md=theirs).facts
    found = talk.take("reader", "review_submitted")
    assert [item.code for item in found] == ["review_heading_mismatch"]
    assert "review.md heading seq 3: participant 'editor' does not match event from 'reader'" in found[0].cause
    talk.facts = Talk(setup(), review_md=theirs + mine).facts
    assert talk.take("reader", "review_submitted") == []


@pytest.mark.parametrize(
    ("last", "now", "at"),
    [
        ("2026-03-01T09:00:00Z", "2026-03-01T09:00:00Z", "2026-03-01T09:00:00Z"),
        ("2026-03-01T09:00:00Z", "2026-03-01T09:00:01.9Z", "2026-03-01T09:00:01Z"),
        ("2026-03-01T12:00:00Z", "2026-03-01T09:00:00Z", "2026-03-01T12:00:00Z"),
        ("2026-03-01T12:00:00+02:00", "2026-03-01T09:00:00Z", "2026-03-01T10:00:00Z"),
        ("2026-03-01T09:00:00.5Z", "2026-03-01T09:00:00.7Z", "2026-03-01T09:00:00.500000Z"),
        ("9999-12-31T23:59:59Z", "2026-03-01T09:00:00Z", "9999-12-31T23:59:59Z"),
        ("yesterday", "2026-03-01T07:00:00Z", "2026-03-01T08:00:00Z"),
    ],
)
def test_a_clock_that_is_behind_is_lifted(last: str, now: str, at: str) -> None:
    """`at` never goes back, whatever the other writer's clock, zone or precision was."""
    talk = Talk(setup())
    talk.take("server", "initialized", parse("2026-03-01T08:00:00Z") or NOW)
    talk.events.append(
        Event.read(
            {"seq": 2, "from": "server", "event": "proposal_submitted", "at": last, "summary": "x", "reply_to": 1}
        )
    )
    moment = parse(now)
    assert moment is not None
    assert talk.take("reader", "review_submitted", moment) == []
    assert talk.events[-1].at == at
    before = parse(last)
    assert before is None or (parse(at) or NOW) >= before


def test_nothing_moves_after_the_end() -> None:
    made = setup()
    ended = Talk(made, *SITUATIONS["blocked"])
    state = ended.state
    for number, name in enumerate(EVENTS_V1, start=len(ended.events) + 1):
        event = Event.read({"seq": number, "from": "server", "event": name})
        later = evolve(state, event, made)
        assert (later.phase, later.waiting, later.terminal_seq) == ("blocked", (), len(ended.events))
        assert judge(state, event, made) != []
    found = fold(made, [*ended.events, Event.read({"seq": 8, "from": "server", "event": "completed"}, 8)]).problems
    assert {item.code for item in found} >= {"readiness_not_passed"}


def test_problems_of_a_log_name_seq_and_line() -> None:
    made = setup()
    events = [*Talk(made, *SUBMITTED).events, Event.read({"seq": 3, "from": "server", "event": "proposal_revised"}, 7)]
    found = fold(made, events).problems
    assert [(item.cause, item.where) for item in found] == [
        ("seq 3: proposal_revised is not allowed from phase reviewing", "events.jsonl#line 7")
    ]


def test_a_fold_can_go_on_from_a_state() -> None:
    made = setup()
    events = Talk(made, *PASSED).events
    whole = fold(made, events)
    for cut in range(len(events) + 1):
        first = fold(made, events[:cut])
        assert fold(made, events[cut:], first.state).state == whole.state


V2_INIT = (("server", "initialized"), ("server", "deliverable_drafted"))
V2_ACCEPTED = (
    *V2_INIT,
    ("server", "proposal_submitted"),
    ("reader", "review_submitted"),
    ("editor", "review_submitted"),
    ("server", "proposal_revised"),
    ("server", "question_classified"),
    ("server", "decision_accepted"),
    ("reader", "decision_accepted"),
    ("editor", "decision_accepted"),
)
V2_LEGAL = {
    "deliverable_drafted": ("drafting", "revising", "decision_review"),
    "deliverable_revised": ("revising", "decision_review"),
    "deliverable_frozen": ("readiness_check",),
}


@pytest.mark.parametrize("event", V2_LEGAL)
def test_primary_deliverable_events_by_phase_and_actor(event: str) -> None:
    for cut in range(1, len(V2_ACCEPTED) + 1):
        talk = Talk(setup2(), *V2_ACCEPTED[:cut])
        before = talk.state
        for who in (*PEOPLE, "stranger"):
            made, found = talk.decide(draft(who, event, len(talk.events)))
            legal = who == "server" and before.phase in V2_LEGAL[event]
            assert (made is not None) == legal, (event, before.phase, who, found)
            if made is not None:
                after = evolve(before, made, talk.setup)
                assert (after.phase, after.waiting) == (before.phase, before.waiting)
                assert after.frozen == (event == "deliverable_frozen")


def test_version_two_wants_a_draft_before_and_a_freeze_after() -> None:
    talk = Talk(setup2(), ("server", "initialized"))
    assert [item.cause for item in talk.take("server", "proposal_submitted")] == [
        "proposal_submitted requires prior primary deliverable_drafted"
    ]
    talk = Talk(setup2(), *V2_ACCEPTED)
    assert [item.cause for item in talk.take("server", "readiness_passed")] == [
        "readiness_passed requires primary deliverable_frozen"
    ]
    assert talk.take("server", "deliverable_frozen") == []
    assert [item.code for item in talk.take("server", "deliverable_frozen")] == ["freeze_repeated"]
    assert talk.take("server", "readiness_passed") == []
    assert talk.take("server", "completed") == []


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"role": ""}, "deliverable events require role"),
        ({"doc": ""}, "deliverable events require doc"),
        ({"doc": "deliverables/other.md"}, "doc must reference the primary deliverable"),
        ({"role": "supporting"}, "doc must reference a declared supporting deliverable"),
        ({"sha256": ""}, "deliverable_frozen requires sha256"),
        ({"sha256": "A" * 64}, "deliverable_frozen requires sha256"),
        ({"sha256": "0" * 64}, "sha256 does not match"),
        ({"role": "", "doc": "", "sha256": ""}, "deliverable events require role"),
        ({"doc": "x", "sha256": ""}, "doc must reference the primary deliverable"),
    ],
)
def test_a_freeze_is_checked_in_order(fields: dict[str, str], cause: str) -> None:
    """The first failure is what the caller reads, before phase and owner."""
    for steps, who in ((V2_ACCEPTED, "server"), (V2_INIT, "reader")):
        talk = Talk(setup2(), *steps)
        found = talk.take(who, "deliverable_frozen", **fields)
        assert len(found) == 1
        assert cause in found[0].cause


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (DELIVERABLE.replace("Frozen", "Draft"), "deliverable_not_frozen"),
        (DELIVERABLE.replace("## Goals\n\nb\n", "## Goals\n\n"), "deliverable_section_empty"),
        (DELIVERABLE.replace("## Goals\n\nb\n", ""), "deliverable_section_missing"),
        (DELIVERABLE.replace("h\n", ""), "deliverable_section_empty"),
    ],
)
def test_a_draft_is_not_frozen_for_ever(text: str, code: str) -> None:
    from core.files import sha256
    from tests.unit.core.acp.builders import facts

    talk = Talk(setup2(), *V2_ACCEPTED)
    talk.facts = facts(talk.setup, **{REF: text})
    found = talk.take("server", "deliverable_frozen", sha256=sha256(text.encode()))
    assert [item.code for item in found] == [code]


def test_supporting_events_change_no_state_at_any_phase() -> None:
    for cut in range(1, len(V2_ACCEPTED) + 1):
        talk = Talk(setup2(), *V2_ACCEPTED[:cut])
        before = talk.state
        fields = {"role": "supporting", "doc": "deliverables/test-plan.md"}
        assert talk.take("reader", "deliverable_drafted", **fields) == []
        assert talk.state == before._replace(seq=before.seq + 1)


def test_an_observed_log_never_stops_the_fold() -> None:
    """Whatever others wrote, there is a state and there are findings."""
    made = setup()
    rubbish = [
        Event.read(raw, line)
        for line, raw in enumerate(
            [
                {},
                {"seq": "1", "from": 5, "event": ["initialized"], "at": None},
                {"seq": True, "event": "initialized"},
                {"seq": 10**4000, "from": "server", "event": "proposal_submitted"},
                {"event": "review_submitted", "from": {"id": "server"}},
                {"seq": -1, "event": "decision_accepted", "from": "server"},
            ],
            start=1,
        )
    ]
    found = fold(made, rubbish)
    assert isinstance(found.state, State)
    assert found.problems != ()
