"""Moments in the one form of the console: relative first, the moment itself behind it (docs/specs/console.md §4)."""

from __future__ import annotations

from datetime import datetime

from core.clock import duration, parse, stamp
from core.sanitize import inert


def when(value: str | None, now: datetime) -> str:
    """`2 h 10 m ago (2026-03-01T09:00:00Z)` or `in 5 h (…)`, of an ISO text; what is no time stays as it is, inert."""
    moment = parse(value)
    if moment is None:
        return inert(value or "")
    seconds = (moment - now).total_seconds()
    said = f"in {duration(seconds)}" if seconds > 0 else f"{duration(-seconds)} ago"
    return f"{said} ({stamp(moment)})"


__all__ = ["when"]
