"""Time as data (docs/specs/acp.md §1)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.clock import SYSTEM, duration, parse, parse_duration, stamp


def test_stamp_is_utc_in_whole_seconds() -> None:
    moment = datetime(2026, 3, 1, 10, 30, 59, 999_999, tzinfo=timezone(timedelta(hours=2)))
    assert stamp(moment) == "2026-03-01T08:30:59Z"


@given(st.datetimes(timezones=st.just(UTC)).filter(lambda moment: moment.year >= 1000))
def test_what_is_stamped_can_be_read(moment: datetime) -> None:
    assert parse(stamp(moment)) == moment.replace(microsecond=0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-03-01T09:00:00Z", datetime(2026, 3, 1, 9, tzinfo=UTC)),
        ("2026-03-01T09:00:00+02:00", datetime(2026, 3, 1, 7, tzinfo=UTC)),
        ("2026-03-01T09:00:00.250Z", datetime(2026, 3, 1, 9, 0, 0, 250_000, tzinfo=UTC)),
        ("2026-03-01T09:00:00", None),
        ("2026-03-01", None),
        ("yesterday", None),
        ("", None),
        ("0001-01-01T00:00:00+23:59", None),
        ("9999-12-31T23:59:59-23:59", None),
        (1740819600, None),
        (None, None),
        (["2026-03-01T09:00:00Z"], None),
    ],
)
def test_times_of_others(text: object, expected: datetime | None) -> None:
    assert parse(text) == expected


@given(st.text(max_size=40))
def test_any_text_is_a_time_or_none(text: str) -> None:
    moment = parse(text)
    assert moment is None or moment.utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0 s"),
        (0.9, "0 s"),
        (59.9, "59 s"),
        (60, "1 m"),
        (3599, "59 m"),
        (3600, "1 h"),
        (7800, "2 h 10 m"),
        (86400, "1 d"),
        (86400 * 3 + 4 * 3600, "3 d 4 h"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        (" 5 m ", 300),
        ("2h", 7200),
        ("1d", 86400),
        ("250ms", 0.25),
        ("", None),
        ("5", None),
        ("m", None),
        ("-5m", None),
        ("1.5h", None),
        ("2h30m", None),
        ("9" * 5000 + "s", None),
    ],
)
def test_spans(text: str, seconds: float | None) -> None:
    assert parse_duration(text) == seconds


def test_the_machine_clock_is_aware() -> None:
    before = datetime.now(UTC)
    now = SYSTEM.now()
    assert now.utcoffset() == timedelta(0)
    assert abs(now - before) < timedelta(minutes=1)
