"""Time as data: the clock comes in from outside, times are written and read in one form."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, tzinfo
from typing import Protocol


class Clock(Protocol):
    """What the core may ask about time."""

    def now(self) -> datetime:
        """The present moment, aware, in UTC."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.fromtimestamp(time.time(), UTC)


SYSTEM = SystemClock()


def stamp(moment: datetime) -> str:
    """`2026-03-01T09:00:00Z`: UTC, whole seconds (docs/specs/acp.md §1)."""
    return moment.astimezone(UTC).replace(microsecond=0).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse(value: object) -> datetime | None:
    """An ISO-8601 text with a zone as an aware UTC time, else None."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        return None if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def local(moment: datetime | None, form: str, unknown: str = "", zone: tzinfo | None = None) -> str:
    """A moment where the reader is, as `strftime` writes it; at the ends of the calendar, where that day does not
    exist there, in UTC. `unknown` stands for None.
    """
    if moment is None:
        return unknown
    try:
        return moment.astimezone(zone).strftime(form)
    except (OverflowError, ValueError, OSError):
        return moment.strftime(form)


def duration(seconds: float) -> str:
    """A span in the one form the product uses: `12 s`, `4 m`, `2 h 10 m`, `3 d 4 h`. Never negative."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if minutes < 60:
        return f"{minutes} m"
    if hours < 24:
        return f"{hours} h {minutes % 60} m" if minutes % 60 else f"{hours} h"
    return f"{days} d {hours % 24} h" if hours % 24 else f"{days} d"


_SPAN = re.compile(r"(\d{1,15})\s*(ms|s|m|h|d)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_duration(text: str) -> float | None:
    """Seconds of `90s`, `5m`, `2h`, `1d`, `250ms` (docs/specs/workflows.md §1), else None."""
    match = _SPAN.fullmatch(text.strip())
    return None if match is None else int(match[1]) * _UNITS[match[2]]
