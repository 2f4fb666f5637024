"""What `decide` accepts, `judge` approves of, and `evolve` is the fold of it (docs/specs/acp.md §2)."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from core.acp.model import EVENTS_V2
from core.acp.rules import evolve, expected_actors, fold, judge
from core.clock import parse
from tests.unit.core.acp.builders import (
    NOW,
    PEOPLE,
    Talk,
    draft,
    setup,
    setup2,
)

DRAFTS = st.lists(
    st.tuples(
        st.sampled_from((*PEOPLE, "stranger")),
        st.sampled_from((*EVENTS_V2, "nonsense")),
        st.integers(0, 3),
        st.integers(-5, 90),
    ),
    max_size=25,
)
GUIDED = st.lists(st.integers(0, 9), max_size=30)


def _agree(talk: Talk, who: str, event: str, **fields: object) -> None:
    """What `decide` accepts, `judge` finds nothing wrong with, and the fold of the log is what `evolve` made of it."""
    state = talk.state
    made, found = talk.decide(draft(who, event, len(talk.events), **fields), NOW + timedelta(seconds=len(talk.events)))
    assert (made is None) == bool(found)
    if made is None:
        return
    assert judge(state, made, talk.setup) == []
    assert made.seq == len(talk.events) + 1
    talk.events.append(made)
    after = fold(talk.setup, talk.events)
    assert after.problems == ()
    assert after.state == evolve(state, made, talk.setup)
    assert set(after.state.waiting) <= set(talk.setup.participants)
    times = [parse(item.at) or NOW for item in talk.events]
    assert times == sorted(times)


@settings(max_examples=120)
@given(DRAFTS, st.booleans())
def test_decide_and_evolve_agree_on_anything(steps: list[tuple[str, str, int, int]], second: bool) -> None:
    talk = Talk(setup2() if second else setup(), ("server", "initialized"))
    for who, event, back, _ in steps:
        reply = max(1, len(talk.events) - back)
        _agree(talk, who, event, reply_to=reply)


@settings(max_examples=60)
@given(GUIDED, st.booleans())
def test_decide_and_evolve_agree_along_legal_ways(choices: list[int], second: bool) -> None:
    """Random walks that always take one of the legal events, so that every phase is reached."""
    talk = Talk(setup2() if second else setup(), ("server", "initialized"))
    for choice in choices:
        state, made = talk.state, talk.setup
        legal = [
            (who, event)
            for event in made.events
            if event != "blocked"
            for who in expected_actors(state, event, made)
            if talk.decide(draft(who, event, len(talk.events)))[0] is not None
        ]
        if not legal:
            assert state.phase in ("completed", "blocked")
            break
        _agree(talk, *legal[choice % len(legal)])
