"""What a diff says is what turns the old text into the new one, also where comparing everything would take too long."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.widgets import diff
from tui.widgets.diff import opcodes, side_by_side, split, unified, word_changes

LINES = st.lists(st.sampled_from(["a", "b", "c", "d", "e", "", "long line"]), max_size=30)


def whole(old: list[str], new: list[str]) -> None:
    place = (0, 0)
    for tag, i, j, k, m in opcodes(old, new):
        assert (i, k) == place
        place = (j, m)
        assert (tag == "equal") is (old[i:j] == new[k:m])
    assert place == (len(old), len(new))


@given(LINES, LINES)
def test_opcodes_cover_both_texts_without_a_gap(old: list[str], new: list[str]) -> None:
    whole(old, new)


@given(LINES, LINES)
def test_they_do_so_too_when_only_anchors_are_compared(old: list[str], new: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diff, "BUDGET", 6)
        place = (0, 0)
        for tag, i, j, k, m in opcodes(old, new):
            assert (i, k) == place
            place = (j, m)
            if tag == "equal":
                assert old[i:j] == new[k:m]
        assert place == (len(old), len(new))


def test_scattered_changes_in_a_long_text_are_found_one_by_one() -> None:
    pick = random.Random(7)
    old = [f"line {number} {pick.random()}" for number in range(5000)]
    new = list(old)
    for number in range(0, 5000, 17):
        new[number] += " changed"
    changed = [code for code in opcodes(old, new) if code[0] != "equal"]
    assert len(changed) == len(range(0, 5000, 17))
    assert all(code[2] - code[1] == code[4] - code[3] == 1 for code in changed)


@given(LINES, LINES)
def test_side_by_side_holds_each_changed_line_once(old: list[str], new: list[str]) -> None:
    one, other = "\n".join(old) + "\n", "\n".join(new) + "\n"
    rows = list(side_by_side(one, other, context=99))
    if old == new:
        # Nothing to see: one gap at most.
        assert all(row.kind in ("gap", "same") for row in rows)
        return
    assert [row.old for row in rows if row.old_line is not None] == split(one)
    assert [row.new for row in rows if row.new_line is not None] == split(other)
    for row in rows:
        assert (row.kind == "add") is (row.old_line is None)
        assert (row.kind == "remove") is (row.new_line is None)
        assert row.kind != "same" or row.old == row.new


def test_unchanged_stretches_are_folded() -> None:
    old = "\n".join(str(number) for number in range(40))
    rows = list(side_by_side(old, old.replace("20", "x")))
    assert [row.old for row in rows if row.kind == "gap"] == ["17 unchanged lines", "16 unchanged lines"]
    assert sum(line.kind == "gap" for line in unified(old, old.replace("20", "x"))) == 2


def test_the_words_that_changed() -> None:
    old, new = "Keep a session for ten minutes", "Keep a session for thirty seconds"
    gone, came = word_changes(old, new)
    assert [old[start:stop] for start, stop in gone] == ["ten", "minutes"]
    assert [new[start:stop] for start, stop in came] == ["thirty", "seconds"]
    assert word_changes("all of it", "nothing like that, really") == ([], [])
    assert word_changes("x " * 5000, "y " * 5000) == ([], [])
