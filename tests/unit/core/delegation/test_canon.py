"""Canonical form, identities and times."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.delegation import canon

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_canonical_is_ascii_stable_and_says_the_same(value: Any) -> None:
    text = canon.canonical(value)
    assert text.isascii()
    assert canon.parse_json(text) == value
    assert canon.canonical(canon.parse_json(text)) == text


@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_keys_are_in_code_point_order(value: dict[str, Any]) -> None:
    assert list(json.loads(canon.canonical(value))) == sorted(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.0, "2.0"),
        (1e22, "1e+22"),
        (0.1, "0.1"),
        (10**30, "1" + "0" * 30),
        ("é😀", '"\\u00e9\\ud83d\\ude00"'),
        ({"b": 1, "B": 2, "a": 3}, '{"B":2,"a":3,"b":1}'),
    ],
)
def test_canonical_numbers_and_texts(value: Any, text: str) -> None:
    assert canon.canonical(value) == text


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "{", "", b"\xff", "[" * 500 + "]" * 500, '"\udcff"'])
def test_what_is_no_json_has_a_reason(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        canon.parse_json(text)


def test_the_identity_does_not_depend_on_the_stamp() -> None:
    body = {"z": 1, "a": [True, None]}
    assert canon.contract_id(body) == canon.contract_id({**body, "contract_id": "anything"})
    assert canon.contract_id(body) == hashlib.sha256(b'{"a":[true,null],"z":1}').hexdigest()


def test_substance_is_all_but_the_chain() -> None:
    one = {"a": 1, "revision": 1, "contract_id": "x"}
    assert canon.substance(one) == canon.substance({"a": 1, "revision": 2, "parent_contract_id": "y"})
    assert canon.substance(one) != canon.substance({"a": 2})


@given(st.text(), st.text())
def test_the_fingerprint_ignores_space_at_both_ends(head: str, status: str) -> None:
    made = canon.tree_fingerprint(head, status)
    assert len(made) == 32
    assert canon.tree_fingerprint(f" {head}\n", f"\n{status}\n") == made


EPOCH = datetime(1971, 1, 1, tzinfo=UTC)
MOMENTS = st.timedeltas(timedelta(0), timedelta(days=80_000)).map(lambda span: EPOCH + span)


@given(MOMENTS)
def test_a_written_time_is_read_back(when: datetime) -> None:
    assert canon.moment(when.isoformat()) == when
    assert canon.moment(when.strftime("%Y-%m-%dt%H:%M:%Sz")) == when.replace(microsecond=0)


@given(MOMENTS, st.integers(-14 * 60, 14 * 60))
def test_a_zone_is_a_shift(when: datetime, minutes: int) -> None:
    local = (when + timedelta(minutes=minutes)).replace(microsecond=0)
    sign = "-" if minutes < 0 else "+"
    text = f"{local:%Y-%m-%d %H:%M:%S}{sign}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
    assert canon.moment(text) == when.replace(microsecond=0)


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-01T00:00:00",
        "2026-01-01T00:00:00Z\n",
        "2026-13-01T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:60:00Z",
        "2026-01-01T00:00:61Z",
        "2026-01-01T00:00:00+24:00",
        "2026-01-01T00:00:00+00:60",
        "0000-01-01T00:00:00Z",
        "2026-W01-1T00:00:00Z",
        "２026-01-01T00:00:00Z",
        "2026-01-01",
        "",
        None,
        5,
    ],
)
def test_what_is_no_time(text: object) -> None:
    assert canon.moment(text) is None


def test_a_leap_second_and_the_ends_of_time() -> None:
    assert canon.moment("2016-12-31T23:59:60Z") == datetime(2016, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert canon.moment("2024-02-29T00:00:00.123456789Z") == datetime(2024, 2, 29, 0, 0, 0, 123456, tzinfo=UTC)
    assert canon.moment("0001-01-01T00:00:00+01:00") is None


def test_legal_text_can_always_be_written() -> None:
    assert canon.legal("a\udcffb") == "a\ufffdb"
    assert canon.legal("abcdef", 4) == "abc…"
    assert canon.legal("abcd", 4) == "abcd"
