"""Receipts and how far they can be trusted (docs/specs/governance.md §3)."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.finding import Refused
from core.governance import rules, store
from core.governance.hashing import hash_string
from core.governance.model import is_moment
from core.strict import at
from tests.unit.core.governance.samples import CATALOG, GOAL, OTHER, data, envelope, ref


def told(document: Any) -> list[str]:
    return [item.code for item in rules.envelope("e.json", data(document), CATALOG)[2]]


@pytest.mark.parametrize(
    "text",
    [
        "2026-09-01T13:00:00Z",
        "2026-09-01T13:00:00+02:00",
        "2026-09-01T07:00:00-05:30",
        "2026-09-01T13:00:00.5Z",
        "2026-09-01T13:00:00.123456789+00:00",
        "2028-02-29T00:00:00Z",
        "0001-01-01T00:00:00Z",
    ],
)
def test_times(text: str) -> None:
    assert is_moment(text)


@pytest.mark.parametrize(
    "text",
    [
        "2026-09-01",
        "2026-09-01T13:00Z",
        "2026-09-01T13:00:00",
        "2026-09-01 13:00:00Z",
        "2026-09-01T13:00:00z",
        "2026-09-01T13:00:00,5Z",
        "2026-09-01T13:00:00.Z",
        "2026-09-01T13:00:00+0200",
        "2026-09-01T13:00:00+02",
        "2026-09-01T13:00:00+24:00",
        "2026-09-01T13:00:00+02:60",
        "2026-W36-2T13:00:00Z",
        "20260901T130000Z",
        "2026-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-09-01T24:00:00Z",
        "2026-09-01T13:60:00Z",
        "2026-09-01T13:00:60Z",
        "0000-01-01T00:00:00Z",
        "٢٠٢٦-09-01T13:00:00Z",
        "2026-09-01T13:00:00Z\n",
        " 2026-09-01T13:00:00Z",
        "",
    ],
)
def test_what_is_no_time(text: str) -> None:
    assert not is_moment(text)
    assert told(envelope(emitted_at=text)) == ["emitted_at_invalid"]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, []),
        ({"receipt_id": " ", "producer": " "}, []),
        ({"goal_hash": None, "triage_code": None}, []),
        ({"parent_refs": [ref(), ref(), ref("rc-1", digest=None)]}, []),
        ({"triage_code": "press_jam"}, []),
        ({"triage_code": "__unclassified_d2e099a3"}, []),
        ({"triage_code": "nope"}, ["ambiguous_failure_code"]),
        ({"triage_code": 7}, ["field_invalid"]),
        ({"emitted_at": 7}, ["field_invalid"]),
        ({"parent_refs": [ref(digest="x")]}, ["hash_malformed"]),
        ({"parent_refs": [ref("")]}, ["field_invalid"]),
        ({"parent_refs": [ref(more=1)]}, ["field_unknown"]),
        ({"payload": {"schema": None}}, ["payload_schema_missing"]),
        ({"payload": {"schema": ["shop.order.v1"]}}, ["payload_schema_mismatch"]),
        (
            {"goal_hash": None, "parent_refs": [ref()], "payload": {}},
            ["payload_schema_missing", "parent_refs_require_goal_hash"],
        ),
        ({"goal_hash": "x", "parent_refs": None, "payload": {}}, ["hash_malformed", "field_invalid"]),
    ],
)
def test_structure(more: dict[str, Any], expected: list[str]) -> None:
    assert told({**envelope("rc-7"), **more}) == expected


def test_an_ambiguous_code_says_what_to_do() -> None:
    item = rules.envelope("e.json", data(envelope(triage_code="BLOCKED")), CATALOG)[2][0]
    assert (item.next_command, item.where) == ("collab triage classify --receipt -", "e.json#/triage_code")


@contextmanager
def folder(**files: bytes) -> Iterator[Path]:
    """A folder of receipts; `__` in a name is a slash, the ending is added."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as made:
        for name, content in files.items():
            path = Path(made) / (name.replace("__", "/") + ".json")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        yield Path(made)


def resolve(child: Any, **files: bytes) -> store.Resolved:
    raw = child if isinstance(child, bytes) else data(child)
    made, _, found = rules.envelope("e.json", raw, CATALOG)
    assert made is not None, found
    with folder(**files) as place:
        return store.resolve(made, "e.json", hash_string(raw), store.receipts(place, CATALOG))


def codes(resolved: store.Resolved) -> list[tuple[str, str]]:
    return [(item.code, item.severity) for item in resolved.findings]


CHILD = envelope("rc-7", payload_schema="x.v1", payload={"schema": "x.v1"}, parent_refs=[ref()])


def test_a_parent_anywhere_below() -> None:
    resolved = resolve(CHILD, a__b__c=data(envelope()), other=b"{", note=b'{"schema": "n", "receipt_id": "rc-1"}')
    assert resolved.trusted
    assert resolved.parents[0].as_json() == {
        "receipt_id": "rc-1",
        "file": "a/b/c.json",
        "checks": {"exists": "pass", "schema": "pass", "producer": "pass", "goal_hash": "pass", "digest": "not_given"},
        "trusted": True,
    }


@pytest.mark.parametrize(
    ("files", "expected", "file"),
    [
        ({}, "parent_ref_receipt_missing", None),
        ({"a": data(envelope(emitted_at="yesterday"))}, "parent_ref_receipt_invalid", "a.json"),
        ({"a": data(envelope())[:-1] + b',"producer":"desk"}'}, "parent_ref_receipt_invalid", "a.json"),
        ({"a": data(envelope()), "b": data(envelope(producer="x"))}, "receipt_id_duplicate", None),
        ({"a": data(envelope()), "b": data(envelope())}, "receipt_id_duplicate", None),
        ({"a": data(envelope()), "b": data(envelope(emitted_at="x"))}, "receipt_id_duplicate", None),
    ],
)
def test_a_parent_that_does_not_exist(files: dict[str, bytes], expected: str, file: str | None) -> None:
    resolved = resolve(CHILD, **files)
    assert codes(resolved) == [(expected, "error")]
    assert resolved.parents[0].checks == {"exists": "fail", **dict.fromkeys(store.CHECKS[1:], "not_run")}
    assert resolved.parents[0].file == file


def test_every_check_is_made() -> None:
    parent = envelope(payload_schema="y.v1", payload={"schema": "y.v1"}, producer="x", goal_hash=None)
    resolved = resolve({**CHILD, "parent_refs": [ref(digest=OTHER)]}, a=data(parent))
    assert [code for code, _ in codes(resolved)] == [
        "parent_ref_schema_mismatch",
        "parent_ref_producer_mismatch",
        "parent_ref_goal_hash_mismatch",
        "parent_ref_digest_mismatch",
    ]
    assert not resolved.trusted


def test_duplicates_elsewhere() -> None:
    twice = {"a": data(envelope()), "b": data(envelope("rc-2")), "c": data(envelope("rc-2", producer="x"))}
    resolved = resolve(CHILD, **twice)
    assert codes(resolved) == [("receipt_id_duplicate", "warning")]
    assert resolved.trusted
    forged = resolve(CHILD, a=data(envelope()), b=data({**CHILD, "producer": "forger"}))
    assert codes(forged) == [("receipt_id_duplicate", "error")]
    same = resolve(CHILD, a=data(envelope()), b=data(CHILD), c=data(CHILD))
    assert codes(same) == []


def chain(**parents: list[str]) -> dict[str, bytes]:
    """Receipts by id and the ids that each refers to."""
    return {name: data(envelope(name, parent_refs=[ref(one) for one in refs])) for name, refs in parents.items()}


def test_circles() -> None:
    self_made = envelope("rc-7", parent_refs=[ref("rc-7")])
    assert codes(resolve(self_made, own=data(self_made))) == [("parent_ref_self", "error")]
    top = envelope("top", parent_refs=[ref("a"), ref("b")])
    assert codes(resolve(top, **chain(a=["c"], b=["c"], c=["d"], d=[]))) == []
    assert codes(resolve(top, **chain(a=["c"], b=[], c=["d"], d=["c"]))) == [("parent_ref_cycle", "error")]
    assert codes(resolve(top, **chain(a=["top"], b=[]))) == [("parent_ref_cycle", "error")]
    assert codes(resolve(top, **chain(a=["a"], b=[]))) == [("parent_ref_cycle", "error")]
    assert codes(resolve(top, **chain(a=[], b=[], x=["x"]))) == []
    twice = data(envelope("c", producer="mill", parent_refs=[ref("c")]))
    found = resolve(top, **chain(a=["c"], b=[], c=["top"]), other=twice)
    assert codes(found) == [("parent_ref_cycle", "error"), ("receipt_id_duplicate", "warning")]


def test_a_long_chain_is_walked() -> None:
    links = {f"n{number}": [f"n{number + 1}"] for number in range(2000)}
    assert codes(resolve(envelope("top", parent_refs=[ref("n0")]), **chain(**links))) == []


def test_links_and_odd_files_are_ignored(tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    outside.write_bytes(data(envelope()))
    receipts = tmp_path / "receipts"
    (receipts / "folder.json").mkdir(parents=True)
    (receipts / "a.json").symlink_to(outside)
    (receipts / "sub").symlink_to(tmp_path)
    os.mkfifo(receipts / "fifo.json")
    (receipts / "a.JSON").write_bytes(data(envelope()))
    assert store.receipts(receipts, CATALOG) == []


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for name in ("none", "file"):
        with pytest.raises(Refused) as caught:
            store.receipts(tmp_path / name, CATALOG)
        assert [item.code for item in caught.value.findings] == ["file_unreadable"]


def wrap(payload: Any, receipt_id: str, producer: str, goal: str | None, parents: list[Any]) -> dict[str, Any]:
    made, found = rules.wrapped(
        payload,
        lambda steps: at("p.json", steps),
        CATALOG,
        receipt_id=receipt_id,
        producer=producer,
        emitted_at="2026-09-01T12:00:00Z",
        goal=goal,
        parents=parents,
        triage_code=None,
    )
    assert not found
    return made


NAMES = st.text(min_size=1, max_size=8).filter(lambda text: not any(0xD800 <= ord(char) <= 0xDFFF for char in text))
CHANGES = st.sampled_from(["byte", "receipt_id", "producer", "payload_schema", "goal_hash", "child_goal"])


@given(NAMES, NAMES, NAMES, CHANGES, st.data())
def test_wrapped_then_resolved_and_nothing_may_change(
    parent_id: str, producer: str, schema: str, change: str, choose: st.DataObject
) -> None:
    """The round trip is trusted; one changed byte, id, producer, schema or goal is not, for a named reason."""
    parent = wrap({"schema": schema, "n": 1}, parent_id, producer, GOAL, [])
    raw = json.dumps(parent, indent=1).encode()
    refer = {
        "receipt_id": parent_id,
        "expected_schema": schema,
        "expected_producer": producer,
        "digest": hash_string(raw),
    }
    child = wrap({"schema": "child.v1"}, parent_id + "-child", "courier", GOAL, [refer])
    assert resolve(child, a=raw).trusted
    if change == "byte":
        index = choose.draw(st.integers(0, len(raw) - 1))
        value = choose.draw(st.integers(0, 255).filter(lambda byte: byte != raw[index]))
        changed = raw[:index] + bytes([value]) + raw[index + 1 :]
        resolved = resolve(child, a=changed)
        named = {"parent_ref_digest_mismatch", "parent_ref_receipt_missing", "parent_ref_receipt_invalid"}
    elif change == "child_goal":
        resolved = resolve({**child, "goal_hash": OTHER}, a=raw)
        named = {"parent_ref_goal_hash_mismatch"}
    else:
        edited = {**parent, change: OTHER if change == "goal_hash" else parent[change] + "x"}
        if change == "payload_schema":
            edited["payload"] = {"schema": edited[change]}
        resolved = resolve({**child, "parent_refs": [{**refer, "digest": None}]}, a=data(edited))
        named = {
            "receipt_id": {"parent_ref_receipt_missing"},
            "producer": {"parent_ref_producer_mismatch"},
            "payload_schema": {"parent_ref_schema_mismatch"},
            "goal_hash": {"parent_ref_goal_hash_mismatch"},
        }[change]
    assert not resolved.trusted
    assert not resolved.parents[0].trusted
    assert named & {item.code for item in resolved.findings}


def test_a_payload_without_a_schema_is_not_wrapped() -> None:
    for payload, code in (
        ({}, "payload_schema_missing"),
        ({"schema": 7}, "field_invalid"),
        ({"schema": ""}, "field_invalid"),
    ):
        _, found = rules.wrapped(
            payload,
            lambda steps: at("p.json", steps),
            CATALOG,
            receipt_id="r",
            producer="p",
            emitted_at="2026-09-01T12:00:00Z",
            goal=None,
            parents=[],
            triage_code=None,
        )
        assert [item.code for item in found] == [code]
