"""The line of time: idle stretches are compressed, order and touch are kept (docs/specs/console.md §2)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.delegation.axis import Span, axis, cells, span
from core.delegation.progress import IDLE_SECONDS
from core.delegation.view import timeline
from tests.unit.core.delegation.builders import Bench

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
BASE = NOW.timestamp() - 100_000

SPANS = st.lists(
    st.tuples(st.integers(0, 90_000), st.one_of(st.none(), st.integers(0, 9_000))).map(
        lambda made: Span(BASE + made[0], None if made[1] is None else BASE + made[0] + made[1])
    ),
    min_size=1,
    max_size=20,
)


def test_nothing_makes_no_line() -> None:
    assert axis([], NOW) is None


def test_short_stretches_keep_their_proportion() -> None:
    made = axis([Span(BASE, BASE + 100), Span(BASE + 300, BASE + 400)], NOW)
    assert made is not None
    assert [made.at(BASE + second) for second in (0, 100, 200, 300, 400)] == [0, 0.25, 0.5, 0.75, 1]
    assert made.breaks == ()


@pytest.mark.parametrize("hours", [1, 5, 500])
def test_a_long_stretch_takes_what_the_shortest_idle_one_takes(hours: int) -> None:
    end = BASE + hours * 3600
    made = axis([Span(BASE, BASE + 100), Span(end, end + 100)], NOW)
    assert made is not None
    total = 200 + IDLE_SECONDS
    assert made.places == (0, 100 / total, 1 - 100 / total, 1)
    assert made.breaks == (0.5,)


@given(SPANS)
def test_order_is_kept_and_every_bar_has_a_place(spans: list[Span]) -> None:
    made = axis(spans, NOW)
    assert made is not None
    assert (made.places[0], made.places[-1]) in ((0, 1), (0, 0))
    assert list(made.places) == sorted(made.places)
    for width in (1, 10, 77):
        for one in spans:
            start, length = cells(made, one, width)
            assert 0 <= start < width
            assert 1 <= length <= width - start
        open_ones = [cells(made, one, width) for one in spans if one.end is None]
        assert all(start + length == width for start, length in open_ones)


def test_of_a_row(bench: Bench) -> None:
    bench.begin("T-mark")
    bench.launch("d1", worktree="../1")
    bench.clock.step(90)
    bench.collect("d1")
    bench.launch("d2", worktree="../2")
    first, second = (span(row) for row in timeline(bench.record(), bench.clock.now()).rows)
    assert first is not None
    assert second is not None
    assert (first.end or 0) - first.start == 90
    assert second.end is None
