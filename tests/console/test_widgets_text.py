"""Cutting and wrapping by cells, and diffs: what all viewers stand on."""

from __future__ import annotations

import shlex

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from core.sanitize import inert
from tui.widgets import diff
from tui.widgets.diff import line_changes, opcodes, split, unified
from tui.widgets.document import Changes
from tui.widgets.text import fit, fit_str, pad, wrap, wrap_command

TEXTS = st.text(st.sampled_from("ab \t界한e\u0301ｆ-\x1b\u202e"), max_size=80)
LINES = st.lists(st.sampled_from(["a", "b", "c", "d", ""]), max_size=12).map(
    lambda lines: "".join(f"{x}\n" for x in lines)
)


@given(TEXTS.map(inert), st.integers(2, 40))
def test_wrapped_lines_fit_and_lose_only_spaces(text: str, width: int) -> None:
    made = wrap(text, width)
    assert all(cell_len(line) <= width for line in made)
    assert "".join("".join(made).split()) == "".join(text.split())


@given(TEXTS.map(inert), st.integers(0, 40))
def test_cut_text_fits_and_says_that_it_was_cut(text: str, width: int) -> None:
    for made in (fit_str(text, width), fit(Text(text), width).plain):
        assert cell_len(made) <= max(0, width)
        if cell_len(text) > width > 0:
            assert made.endswith("…")
        elif width > 0:
            assert made == text
    assert cell_len(pad(text, width)) == width
    assert cell_len(pad(text, width, "right")) == width


def test_a_long_word_is_broken_and_wide_text_never_in_half() -> None:
    assert wrap("abcdefgh ij", 4) == ["abcd", "efgh", "ij"]
    assert wrap("界界界", 3) == ["界", "界", "界"]
    assert wrap("", 10) == [""]
    assert wrap("  indented text", 10) == ["  indented", "text"]
    assert fit(Text("界界界"), 4).plain == "界…"
    assert len(wrap("x" * 1_000_000, 80)) == 12_500


@given(st.lists(st.text(st.sampled_from("ab '\"$-é"), min_size=1, max_size=20), min_size=1, max_size=12))
def test_a_wrapped_command_is_still_that_command(words: list[str]) -> None:
    command = " ".join(shlex.quote(word) for word in words)
    made = wrap_command(command, 60)
    assert shlex.split("\n".join(made).replace("\\\n", "")) == words
    assert all(cell_len(line) <= 60 for line in made)


def test_a_command_that_cannot_be_read_is_wrapped_as_text() -> None:
    assert wrap_command("echo 'half " + "x" * 30, 20)[0] == "echo 'half"
    assert wrap_command("collab show --folder talk", 80) == ["collab show --folder talk"]


@given(LINES, LINES)
def test_a_diff_leads_from_one_text_to_the_other(old: str, new: str) -> None:
    before, after = split(old), split(new)
    made: list[str] = []
    for tag, i, j, k, m in opcodes(before, after):
        assert tag != "equal" or before[i:j] == after[k:m]
        made += after[k:m]
    assert made == after
    added, removed = line_changes(old, new)
    assert len(before) - removed + len(added) == len(after)
    if before == after:
        assert all(line.kind in ("gap", "same") for line in unified(old, new))
        return
    lines = unified(old, new, context=100)
    assert [line.text for line in lines if line.kind != "remove"] == after
    assert [line.text for line in lines if line.kind != "add"] == before
    assert all(after[line.new - 1] == line.text for line in lines if line.new is not None)
    assert all(before[line.old - 1] == line.text for line in lines if line.old is not None)


def test_unchanged_stretches_are_folded_and_long_diffs_cut() -> None:
    old = "".join(f"line {number}\n" for number in range(100))
    new = old.replace("line 50\n", "line fifty\n")
    lines = unified(old, new)
    assert [line.kind for line in lines] == ["gap", *["same"] * 3, "remove", "add", *["same"] * 3, "gap"]
    assert lines[0].text == "47 unchanged lines"
    assert [line.text for line in lines[4:6]] == ["line 50", "line fifty"]
    cut = unified("", old, cap=10)
    assert (len(cut), cut[-1].kind) == (11, "gap")


def test_texts_without_anything_in_common_do_not_take_for_ever() -> None:
    old = "\n".join(f"a{number}" for number in range(50_000))
    new = "\n".join(f"b{number}" for number in range(50_000))
    assert diff.BUDGET < 50_000**2
    changes = Changes.between(old, new)
    assert (len(changes.added), changes.removed) == (50_000, 50_000)
    assert len(Changes.between(old, old + "\nmore").added) == 1
