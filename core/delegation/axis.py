"""Where moments lie on a line of time whose idle stretches are compressed (docs/specs/console.md §2). Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

from core.delegation.canon import moment
from core.delegation.progress import IDLE_SECONDS
from core.delegation.view import Row


class Span(NamedTuple):
    """A delegation in time, in seconds of the epoch; `end` is None while it is open."""

    start: float
    end: float | None


@dataclass(frozen=True, slots=True)
class Axis:
    """Moments in seconds of the epoch and their places from 0 to 1; `breaks` are the places of compressed stretches."""

    moments: tuple[float, ...]
    places: tuple[float, ...]
    breaks: tuple[float, ...]

    def at(self, when: float) -> float:
        """The place of a moment; what lies outside is put on the nearer end."""
        if when <= self.moments[0]:
            return 0.0
        if when >= self.moments[-1]:
            return 1.0
        after = bisect_right(self.moments, when)
        first, last = self.moments[after - 1], self.moments[after]
        begin, end = self.places[after - 1], self.places[after]
        return begin + (end - begin) * (when - first) / (last - first)


def span(row: Row) -> Span | None:
    """A row's place in time; None without a launch that says when."""
    begun = moment(row.launched_at)
    if begun is None:
        return None
    ended = moment(row.ended_at) if row.ended_at is not None else None
    start = begun.timestamp()
    return Span(start, None if ended is None else max(start, ended.timestamp()))


def axis(spans: Iterable[Span], now: datetime) -> Axis | None:
    """A line from the first launch to the last end, or to now while one is open; None without any.

    Nothing is longer than the shortest stretch that counts as idle, however long it took.
    """
    listed = list(spans)
    if not listed:
        return None
    known = {item.start for item in listed} | {item.end for item in listed if item.end is not None}
    if any(item.end is None for item in listed):
        known.add(max(now.timestamp(), *known))
    moments = sorted(known)
    reached, weights, idle = 0.0, [0.0], []
    for before, after in pairwise(moments):
        long = after - before >= IDLE_SECONDS
        weight = IDLE_SECONDS if long else after - before
        if long:
            idle.append(reached + weight / 2)
        reached += weight
        weights.append(reached)
    total = reached or 1.0
    return Axis(tuple(moments), tuple(weight / total for weight in weights), tuple(weight / total for weight in idle))


def cells(place: Axis, item: Span, width: int) -> tuple[int, int]:
    """(first cell, number of cells) of a delegation on a line of `width` cells; never less than one."""
    start = min(width - 1, int(place.at(item.start) * width))
    end = 1.0 if item.end is None else place.at(item.end)
    return start, max(1, min(width, round(end * width)) - start)
