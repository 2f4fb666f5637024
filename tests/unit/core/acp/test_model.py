"""What is on disk is observed: kept in raw, and a field of the wrong type reads as None (docs/specs/acp.md §1, §7)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.acp.model import Deliverable, Document, Event, read_setup

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ["seq", "from", "event", "at", "summary", "doc", "reply_to", "role", "sha256"]


@given(st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=5), JSON))
def test_any_object_is_an_observed_event(raw: dict[str, Any]) -> None:
    made = Event.read(raw, 4)
    assert made.raw is raw
    assert made.line == 4
    for value in (made.actor, made.name, made.at, made.summary, made.doc, made.role, made.sha256):
        assert value is None or isinstance(value, str)
    for number in (made.seq, made.reply_to):
        assert number is None or type(number) is int


def test_unknown_fields_are_kept() -> None:
    assert Event.read({"seq": 1, "mood": "calm", "cost": {"tokens": 12}}).raw["cost"] == {"tokens": 12}


@pytest.mark.parametrize("seq", [True, 1.0, "1", None, [1], 10**20, -(10**20), 10**4300], ids=range(8))
def test_what_is_no_usable_number(seq: object) -> None:
    """A number that cannot be counted on from, or not even printed, is none."""
    assert Event.read({"seq": seq, "reply_to": seq}).seq is None
    assert Event.read({"seq": seq, "reply_to": seq}).reply_to is None


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "json_malformed"),
        (b"{", "json_malformed"),
        (b"\xff", "json_malformed"),
        (b"\xef\xbb\xbf{}", "json_malformed"),
        (b'{"a": ' + b"1" * 5000 + b"}", "json_malformed"),
        (b"[]", "json_not_object"),
        (b"null", "json_not_object"),
        (b"[" * 100_000, "json_too_deep"),
        (b'{"a":' * 300 + b"1" + b"}" * 300, "json_too_deep"),
    ],
    ids=range(9),
)
def test_what_is_no_setup(data: bytes, code: str) -> None:
    made, problem = read_setup(data)
    assert made is None
    assert problem is not None
    assert problem.code == code
    assert problem.where == "protocol.json"
    assert "\n" not in problem.cause


@given(JSON)
def test_any_json_is_a_setup_or_a_finding(value: object) -> None:
    made, problem = read_setup(json.dumps(value).encode())
    assert (made is None) == (problem is not None)


@given(
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(
            ("objective", "participants", "completionGates", "schemaVersion", "deliverables", "repoRoot"), JSON
        ),
    )
)
def test_fields_of_any_type_are_observed(raw: dict[str, Any]) -> None:
    made, problem = read_setup(json.dumps(raw).encode())
    assert made is not None, problem
    assert made.schema == (2 if "schemaVersion" in raw else 1)
    assert all(isinstance(name, str) for name in (*made.participants, *made.gates))


def test_participants_and_gates_in_both_spellings() -> None:
    made, _ = read_setup(
        json.dumps(
            {
                "participants": ["server", {"id": "reader", "mood": "calm"}, {"name": "nobody"}, 5, None, {"id": 3}],
                "completionGates": ["One", {"source": "objective", "text": "Two"}, 3, {"text": 4}],
            }
        ).encode()
    )
    assert made is not None
    assert made.participants == ("server", "reader")
    assert made.gates == ("One", "Two")


def _declared(**fields: Any) -> Any:
    raw = {"schemaVersion": 2, "deliverables": {"primary": {"type": "adr", "file": "adr.md"}, **fields}}
    made, _ = read_setup(json.dumps(raw).encode())
    assert made is not None
    assert made.deliverables is not None
    return made.deliverables


def test_references() -> None:
    inside = _declared(mode="internal", dir="deliverables", supporting=[{"type": "test-plan", "file": "b/plan.md"}])
    assert inside.primary_ref == "deliverables/adr.md"
    assert inside.find("deliverables/b/plan.md") == inside.supporting[0]
    assert inside.find("adr.md") is None
    outside = _declared(mode="external", dir="docs/out")
    assert outside.primary_ref == "external:adr.md"
    assert outside.find("external:adr.md") == outside.primary
    assert _declared(dir="./a/").primary_ref == "a/adr.md"


def test_sections() -> None:
    assert Deliverable("custom", "x.md", ("Summary", "Costs")).sections == ("Summary", "Costs")
    assert Deliverable("adr", "x.md", ("Summary",)).sections[0] == "Status"
    assert Deliverable("nonsense", "x.md").sections == ()


def test_a_document_has_text_whatever_its_bytes_are() -> None:
    assert Document("a", b"one\r\ntwo\rthree\xff", None).text == "one\ntwo\nthree\ufffd"
    assert Document("a", None, None).text == ""
