"""The words of routes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.workflow import routes
from core.workflow.model import Route, Verdict
from core.workflow.view_history import route_text

LABELS = {10: 0, 20: 1, 30: 2}


def parsed(text: str, verdict: Verdict = "fail", grammar: routes.Grammar = "chain", position: int = 0) -> Route:
    made, faults = routes.parse(text, verdict, grammar, position, LABELS)
    assert made is not None, faults
    return made


@pytest.mark.parametrize(
    ("text", "control"),
    [
        ("next_item", ("next", None, None)),
        ("→ next_item", ("next", None, None)),
        ("->next_step", ("next", None, None)),
        ("trigger:next", ("next", None, None)),
        ("goto 30", ("goto", None, 2)),
        ("trigger:20", ("goto", None, 1)),
        ("ESCALATE", ("escalate", "pilote", None)),
        ("→ ESCALATE   bob", ("escalate", "bob", None)),
        ("signal → ESCALATE bob", ("escalate", "bob", None)),
        ("signal->BLOCKED_ON", ("block", "pilote", None)),
        ("signal:BLOCKED_ON", ("block", "pilote", None)),
        ("BLOCKED_ON ops", ("block", "ops", None)),
        ("abort", ("abort", None, None)),
        ("gate:human", ("gate", None, None)),
        ("log + abort + ERROR", ("abort", None, None)),
    ],
)
def test_controls(text: str, control: tuple[str, str | None, int | None]) -> None:
    made = parsed(text).control
    assert (made.do, made.target, made.step) == control


@pytest.mark.parametrize("text", ['gate:human → "Ship it?"', 'gate:human "Ship it?"', "→gate:human->'Ship it?'"])
def test_a_gate_may_ask_in_its_own_words(text: str) -> None:
    assert parsed(text, "success").control.text == "Ship it?"


def test_effects_keep_their_order_and_defaults() -> None:
    made = parsed("ERROR + log + notify → ops + notify:desktop + notify + CHECKPOINT + CHECKPOINT x + ESCALATE")
    assert [(effect.do, effect.target) for effect in made.effects] == [
        ("ERROR", None),
        ("log", None),
        ("notify", "ops"),
        ("notify", "desktop"),
        ("notify", "pilote"),
        ("CHECKPOINT", "pilote"),
        ("CHECKPOINT", "x"),
    ]


@pytest.mark.parametrize(
    ("text", "times"), [("retry + abort", 1), ("retry(3) + abort", 3), ("retry ( 2 ) + abort", 2), ("retry", 1)]
)
def test_retries(text: str, times: int) -> None:
    assert parsed(text).retry == times


@pytest.mark.parametrize(
    ("verdict", "grammar", "control"),
    [
        ("success", "for_each", "next"),
        ("fail", "for_each", "escalate"),
        ("partial", "for_each", "escalate"),
        ("error", "for_each", "escalate"),
        ("success", "chain", "next"),
        ("fail", "chain", "block"),
        ("partial", "chain", "escalate"),
        ("error", "chain", "block"),
    ],
)
def test_defaults(verdict: Verdict, grammar: routes.Grammar, control: str) -> None:
    assert routes.default_route(verdict, grammar).control.do == control
    if verdict != "success":
        assert parsed("retry(2)", verdict, grammar).control.do == control


def test_an_error_says_so_first_by_default() -> None:
    assert [effect.do for effect in routes.default_route("error", "for_each").effects] == ["ERROR", "log"]
    fail = parsed("log + retry(2) + abort")
    made = routes.default_route("error", "chain", fail)
    assert [effect.do for effect in made.effects] == ["ERROR", "log", "log"]
    assert (made.retry, made.control.do) == (2, "abort")


def test_escalate_on_success_is_a_gate() -> None:
    assert parsed("ESCALATE", "success").control.do == "gate"
    assert parsed("log", "success").control.do == "next"


@pytest.mark.parametrize(
    ("text", "offsets"),
    [
        ("→ ESCALAT pilote", [2]),
        ("next_item now", [10]),
        ("ESCALATE a b", [11]),
        ("ERROR x + abort", [6]),
        ("log → ops", [4]),
        ("Next_item", [0]),
        ("goto there", [5]),
        ("trigger:there", [0]),
        ("signal → RETURN x", [9]),
        ("signal:SPAWN", [0]),
        ("retry(x) + abort", [0]),
        ("bad + worse + abort", [0, 6]),
        ('"text" + abort', [0]),
        ("signal:ESCALATE bob", [16]),
    ],
)
def test_words_that_are_none(text: str, offsets: list[int]) -> None:
    made, faults = routes.parse(text, "fail", "chain", 0, LABELS)
    assert made is None
    assert [(fault.code, fault.offset) for fault in faults] == [("E_ROUTE_WORD", at) for at in offsets]


@pytest.mark.parametrize(
    ("text", "verdict", "grammar", "position"),
    [
        ("", "fail", "chain", 0),
        ("→", "fail", "chain", 0),
        ("log + + abort", "fail", "chain", 0),
        ("next_item + next_item", "success", "chain", 0),
        ("abort + retry", "fail", "chain", 0),
        ("retry + retry + abort", "fail", "chain", 0),
        ("retry", "success", "chain", 0),
        ("BLOCKED_ON", "success", "chain", 0),
        ("log", "fail", "chain", 0),
        ("ERROR + log", "error", "for_each", 0),
        ("goto 20", "fail", "for_each", 0),
        ("goto 10", "fail", "chain", 0),
        ("goto 10", "fail", "chain", 2),
        ("goto 99", "fail", "chain", 0),
        ("goto", "fail", "chain", 0),
        ("signal", "fail", "chain", 0),
        ("gate:human →", "fail", "chain", 0),
    ],
)
def test_shapes_that_are_none(text: str, verdict: Verdict, grammar: routes.Grammar, position: int) -> None:
    made, faults = routes.parse(text, verdict, grammar, position, LABELS)
    assert made is None
    assert [(fault.code, fault.offset) for fault in faults] == [("E_ROUTE_SHAPE", None)]


WORDS = [
    "→", "->", "+", "log", "ERROR", "retry", "retry(2)", "next_item", "goto", "20", "ESCALATE", "signal",
    "signal:ERROR", "trigger:next", "notify", "notify:x", "gate:human", "abort", "bob", "BLOCKED_ON", "CHECKPOINT",
    '"q?"',
]  # fmt: skip


@given(st.lists(st.sampled_from(WORDS), max_size=7), st.sampled_from(["success", "fail", "partial", "error"]))
def test_a_route_is_right_or_says_why(words: list[str], verdict: Verdict) -> None:
    text = " ".join(words)
    made, faults = routes.parse(text, verdict, "chain", 0, LABELS)
    assert (made is None) == bool(faults)
    for fault in faults:
        assert (fault.offset is None) == (fault.code == "E_ROUTE_SHAPE")
        if fault.offset is not None:
            assert any(text.startswith(word, fault.offset) for word in WORDS)
    if made is not None:
        assert route_text(made).startswith("→ ")


@given(st.text(max_size=30))
def test_any_text_is_a_route_or_none(text: str) -> None:
    made, faults = routes.parse(text, "fail", "for_each")
    assert (made is None) == bool(faults)
