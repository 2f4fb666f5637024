"""Goals that nobody may change (docs/specs/governance.md §8)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.finding import Refused
from core.governance import rules
from core.governance.hashing import canonical_hash, goal_hash
from tests.unit.core.governance.samples import data, goal


def told(document: Any) -> list[tuple[str, str | None]]:
    return [(item.code, item.where) for item in rules.goal("g.json", data(document))[2]]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, []),
        ({"ecosystem_must": [{"component": "c", "must": ["MUST", "MUST NOT x"]}], "final_report_rule": "Cite."}, []),
        ({"ecosystem_must": []}, []),
        ({"ecosystem_must": None}, [("field_invalid", "g.json#/ecosystem_must")]),
        ({"ecosystem_must": [{"component": "c", "must": []}]}, [("field_invalid", "g.json#/ecosystem_must/0/must")]),
        ({"final_report_rule": None}, [("field_invalid", "g.json#/final_report_rule")]),
        ({"final_report_rule": " "}, [("field_blank", "g.json#/final_report_rule")]),
        ({"outcome": "\t"}, [("field_blank", "g.json#/outcome")]),
        ({"goal_hash": "x"}, [("hash_malformed", "g.json#/goal_hash")]),
        ({"goal_id": "spring-2"}, [("goal_hash_mismatch", "g.json#/goal_hash")]),
        (
            {"goal_id": "x", "ecosystem_must": [{"component": "c", "must": ["must", "MUST", "shall"]}]},
            [
                ("goal_must_not_normative", "g.json#/ecosystem_must/0/must/0"),
                ("goal_must_not_normative", "g.json#/ecosystem_must/0/must/2"),
                ("goal_hash_mismatch", "g.json#/goal_hash"),
            ],
        ),
        ({"completion_criteria": []}, [("field_invalid", "g.json#/completion_criteria")]),
        (
            {"retry_stop_rule": {"attempts_per_blocker": True, "stop_condition": "x"}},
            [("field_invalid", "g.json#/retry_stop_rule/attempts_per_blocker")],
        ),
    ],
)
def test_goals(more: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert told(goal(**more)) == expected


def test_a_hash_needs_two_fields_only() -> None:
    made, declared = rules.document_hash("g", data({"goal_id": "a", "outcome": "b", "more": None}), "outcome")
    assert (made, declared) == (goal_hash("a", "b"), None)
    assert rules.document_hash("g", data({"goal_id": "a", "outcome": "b", "goal_hash": 7}), "outcome")[1] is None
    for document, code in (
        ({"goal_id": "a"}, "field_missing"),
        ({"goal_id": "a", "outcome": 1}, "field_invalid"),
        ([], "json_not_object"),
    ):
        with pytest.raises(Refused) as caught:
            rules.document_hash("g", data(document), "outcome")
        assert [item.code for item in caught.value.findings] == [code]


def test_the_canonical_hash_is_over_any_object() -> None:
    assert rules.document_hash("g", b"{}", "canonical")[0] == canonical_hash({})
    with pytest.raises(Refused) as caught:
        rules.document_hash("g", b'{"a": "\\ud800"}', "canonical")
    assert [item.code for item in caught.value.findings] == ["field_invalid"]


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
        st.integers() | st.booleans() | st.none(),
        max_size=6,
    )
)
def test_order_and_the_hash_itself_do_not_matter(document: dict[str, Any]) -> None:
    turned = dict(reversed(list(document.items())))
    assert canonical_hash(document) == canonical_hash({**turned, "goal_hash": "anything"}) or "goal_hash" in document


def test_what_a_declared_hash_says() -> None:
    right = goal_hash("a", "b")
    assert rules.declared_matches(None, right) is None
    assert rules.declared_matches(right, right) is True
    assert rules.declared_matches(right.upper(), right) is False
