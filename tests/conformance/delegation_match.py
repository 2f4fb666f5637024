"""Compares what a step of `vectors/delegation.json` did with what it should have done."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

ENVELOPE = {"schema", "type", "seq", "ts", "plan", "contract_id", "actor"}


def same(one: Any, other: Any) -> bool:
    if isinstance(one, bool) != isinstance(other, bool):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


MISSING = object()


def mismatch(expected: Any, actual: Any, place: str = "") -> str | None:
    """Why `actual` is not what was expected, None when it is."""
    if isinstance(expected, dict) and any(key.startswith("$") for key in expected):
        return _operators(expected, actual, place)
    if actual is MISSING:
        return f"{place} is missing"
    if isinstance(expected, dict):
        if not isinstance(actual, dict):
            return f"{place} is {actual!r}, not an object"
        for key, value in expected.items():
            found = mismatch(value, actual.get(key, MISSING), f"{place}.{key}")
            if found:
                return found
        return None
    if isinstance(expected, list):
        if not isinstance(actual, list) or len(expected) != len(actual):
            return f"{place} is {actual!r}, expected {len(expected)} entries"
        for index, (one, other) in enumerate(zip(expected, actual, strict=True)):
            found = mismatch(one, other, f"{place}[{index}]")
            if found:
                return found
        return None
    return None if same(expected, actual) else f"{place} is {actual!r}, not {expected!r}"


def _operators(expected: dict[str, Any], actual: Any, place: str) -> str | None:
    plain = {key: value for key, value in expected.items() if not key.startswith("$")}
    for key, value in expected.items():
        if key in PRESENCE:
            if (actual is MISSING) != (value == PRESENCE[key]):
                return f"{place} is {'missing' if actual is MISSING else repr(actual)}"
        elif key.startswith("$"):
            if actual is MISSING:
                return f"{place} is missing"
            if not OPERATORS[key](value, actual):
                return f"{place} is {actual!r}, not {key} {value!r}"
    return mismatch(plain, actual, place) if plain else None


PRESENCE = {"$absent": True, "$present": False}
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "$re": lambda wanted, actual: isinstance(actual, str) and re.search(wanted, actual, re.DOTALL) is not None,
    "$is": same,
    "$keys": lambda wanted, actual: isinstance(actual, dict) and set(actual) == set(wanted),
    "$has": lambda wanted, actual: all(any(not mismatch(item, one) for one in actual) for item in wanted),
    "$lacks": lambda wanted, actual: not any(not mismatch(item, one) for one in actual for item in wanted),
    "$len": lambda wanted, actual: len(actual) == wanted,
    "$fields": lambda wanted, actual: set(actual) - ENVELOPE == set(wanted),
}
