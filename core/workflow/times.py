"""Moments and spans of the engine: whole milliseconds since 1970 inside, ISO 8601 with `Z` on disk (§1)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from core.clock import parse as parse_time

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SPAN = re.compile(r"([0-9]{1,12})(ms|s|m|h|d)")
_LAST = (datetime(9999, 12, 31, tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)


def of(moment: datetime) -> int:
    """Milliseconds since 1970 of an aware time, cut."""
    return (moment - _EPOCH) // timedelta(milliseconds=1)


@lru_cache(maxsize=4096)
def text(moment: int) -> str:
    """`2026-04-01T08:00:00.000Z`; the texts of two moments sort as the moments do."""
    made = _EPOCH + timedelta(milliseconds=max(0, min(moment, _LAST)))
    return f"{made:%Y-%m-%dT%H:%M:%S}.{made.microsecond // 1000:03d}Z"


def read(value: object) -> int | None:
    """Milliseconds of an ISO text with a zone, else None."""
    made = parse_time(value)
    return None if made is None else of(made)


def compact(moment: int) -> str:
    """`20260401T080000Z`, as run ids carry it."""
    return f"{_EPOCH + timedelta(milliseconds=moment):%Y%m%dT%H%M%SZ}"


def day(moment: int) -> str:
    """`20260401`, the UTC day."""
    return compact(moment)[:8]


def span(value: str) -> int | None:
    """Milliseconds of `<integer><ms|s|m|h|d>`, else None (docs/specs/workflows.md §1)."""
    match = _SPAN.fullmatch(value)
    if match is None:
        return None
    made = int(match[1]) * _UNITS[match[2]]
    return made if made <= _LAST else None
