"""Strict JSON documents: every fault named, with its place (docs/specs/governance.md §1)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from core import strict
from core.finding import Refused


class Inner(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    text: strict.NonBlank
    number: int = Field(default=0, ge=0, le=2)


class Sample(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    inner: Inner | None = None
    items: list[Inner] = []
    digest: strict.Hash | None = None
    label: strict.Text = "x"


SAMPLE: TypeAdapter[Sample] = TypeAdapter(Sample)
DIGEST = "sha256:" + "0a" * 32


def faults(data: bytes) -> list[tuple[str, str | None]]:
    return [(item.code, item.where) for item in strict.parse("d.json", data).findings]


def told(document: Any) -> list[tuple[str, str | None]]:
    _, _, found = strict.load(SAMPLE, "d.json", json.dumps(document).encode())
    return [(item.code, item.where) for item in found]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", [("json_malformed", "d.json#")]),
        (b"{", [("json_malformed", "d.json#")]),
        (b"{} {}", [("json_malformed", "d.json#")]),
        (b"\xef\xbb\xbf{}", [("json_malformed", "d.json#")]),
        (b'{"a":"\xff"}', [("json_malformed", "d.json#")]),
        (b'{"a":' + b"1" * 5000 + b"}", [("json_malformed", "d.json#")]),
        (b"null", [("json_not_object", "d.json#")]),
        (b"[1]", [("json_not_object", "d.json#")]),
        (b'{"a":1,"a":1}', [("json_duplicate_key", "d.json#/a")]),
        (
            b'{"x":[{"k~/":1,"k~/":2,"b":1,"b":3}]}',
            [("json_duplicate_key", "d.json#/x/0/k~0~1"), ("json_duplicate_key", "d.json#/x/0/b")],
        ),
        (b'{"x":NaN,"y":[-Infinity],"z":1e999}', [("json_not_finite", f"d.json#/{at}") for at in ("x", "y/0", "z")]),
        (b'{"x":' + b"[" * 200 + b"]" * 200 + b"}", [("json_too_deep", "d.json#")]),
        (b'{"x":' + b"[" * 100_000, [("json_too_deep", "d.json#")]),
    ],
)
def test_documents_that_are_none(data: bytes, expected: list[tuple[str, str]]) -> None:
    assert faults(data) == expected


def test_the_deepest_document_that_is_one() -> None:
    assert faults(b'{"x":' + b"[" * 199 + b"]" * 199 + b"}") == []


def test_a_key_that_is_repeated_very_often_costs_little() -> None:
    assert len(faults(b"{" + b",".join(b'"k%d":1' % (number % 20_000) for number in range(40_000)) + b"}")) == 20_000


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({}, []),
        ({"inner": None, "digest": None}, []),
        ({"digest": DIGEST, "label": " "}, []),
        ({"label": ""}, [("field_invalid", "d.json#/label")]),
        ({"label": None}, [("field_invalid", "d.json#/label")]),
        ({"inner": {"text": " \n"}}, [("field_blank", "d.json#/inner/text")]),
        ({"inner": {"text": "\ud800"}}, [("field_invalid", "d.json#/inner/text")]),
        ({"inner": {"text": "a", "number": "2"}}, [("field_invalid", "d.json#/inner/number")]),
        ({"inner": {"text": "a", "number": 2.0}}, [("field_invalid", "d.json#/inner/number")]),
        ({"inner": {"text": "a", "number": True}}, [("field_invalid", "d.json#/inner/number")]),
        ({"inner": {"text": "a", "number": 3}}, [("field_invalid", "d.json#/inner/number")]),
        ({"inner": []}, [("field_invalid", "d.json#/inner")]),
        ({"items": {}}, [("field_invalid", "d.json#/items")]),
        (
            {"items": [{}, {"text": "", "a/b": 1}]},
            [
                ("field_missing", "d.json#/items/0/text"),
                ("field_blank", "d.json#/items/1/text"),
                ("field_unknown", "d.json#/items/1/a~1b"),
            ],
        ),
        ({"digest": DIGEST + "\n"}, [("hash_malformed", "d.json#/digest")]),
        ({"digest": DIGEST.upper()}, [("hash_malformed", "d.json#/digest")]),
        ({"digest": 7}, [("field_invalid", "d.json#/digest")]),
        ({"\ud800": 1}, [("field_invalid", "d.json#")]),
    ],
)
def test_field_faults(document: Any, expected: list[tuple[str, str]]) -> None:
    assert told(document) == expected


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.text(max_size=8)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(max_size=4), JSON, max_size=4))
def test_what_is_valid_reads_back(document: dict[str, Any]) -> None:
    parsed = strict.parse("d.json", json.dumps(document).encode())
    assert parsed.object == document


@given(st.binary(max_size=60))
def test_no_bytes_raise(data: bytes) -> None:
    parsed = strict.parse("d.json", data)
    assert (parsed.object is None) == bool(parsed.findings)


@given(JSON)
def test_no_document_raises(document: Any) -> None:
    made, _, found = strict.load(SAMPLE, "d.json", json.dumps(document).encode())
    assert (made is None) == bool(found)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b" " * (strict.CAP + 1))
    for name, code in (
        ("none", "file_unreadable"),
        (".", "file_unreadable"),
        ("big", "file_too_large"),
        ("a\0b", "file_unreadable"),
    ):
        with pytest.raises(Refused) as caught:
            strict.read(str(tmp_path / name))
        assert [item.code for item in caught.value.findings] == [code]
    assert [item.code for item in strict.parse("d", b" " * (strict.CAP + 1)).findings] == ["file_too_large"]
