"""Nothing that an agent wrote may act on a terminal (docs/specs/console.md §1)."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.sanitize import cells, clip, inert, inert_block

# Every control, format, surrogate and separator character, and text around them.
HOSTILE = st.text(
    st.one_of(
        st.characters(),
        st.characters(categories=["Cc", "Cf", "Cs", "Zl", "Zp", "Mn", "Me"]),
        st.sampled_from("\x1b\x9b\x07\u202e\u2066\u200b\u200f\ufeff\r\n\t\U000e0041ab漢字e\u0301"),
    ),
    max_size=60,
)


def acts(char: str) -> bool:
    """Whether a character may move, hide, reorder or colour something."""
    return unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")


@given(HOSTILE)
def test_one_line_of_inert_text(text: str) -> None:
    made = inert(text)
    assert not any(acts(char) for char in made)
    assert inert(made) == made
    assert len(made.splitlines()) <= 1


@given(HOSTILE)
def test_a_block_keeps_only_its_lines(text: str) -> None:
    made = inert_block(text)
    assert not any(acts(char) for char in made if char != "\n")
    assert inert_block(made) == made
    made.encode("utf-8")


def test_every_acting_character_there_is() -> None:
    found = [chr(point) for point in range(0x110000) if acts(chr(point))]
    assert len(found) > 2000
    assert [char for char in found if inert(char) == char] == []
    assert [char for char in found if char != "\n" and inert_block(char) == char] == []


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain text", "plain text"),
        ("é 漢字 🙂", "é 漢字 🙂"),
        ("\x1b]52;c;aGk=\x07", "␛]52;c;aGk=␇"),
        ("\x1b[2J", "␛[2J"),
        ("\x9b2J", "⟨009B⟩2J"),
        ("a\nb\tc\r", "a␊b␉c␍"),
        ("\x00\x7f", "␀␡"),
        ("user\u202etxt.exe", "user⟨202E⟩txt.exe"),
        ("zero\u200bwidth", "zero⟨200B⟩width"),
        ("\ud800", "\ufffd"),
        ("\U000e0041", "⟨E0041⟩"),
    ],
    ids=ascii,
)
def test_what_a_person_sees_instead(raw: str, shown: str) -> None:
    assert inert(raw) == shown


def test_other_things_than_text() -> None:
    assert inert(None) == "None"
    assert inert(["\x1b"]) == "['\\x1b']"


def test_blocks() -> None:
    assert inert_block("a\r\nb\rc\u2028d\x85e\x0bf") == "a\nb\nc\nd\ne\nf"
    assert inert_block("a\tb\n\tc") == "a   b\n    c"
    assert inert_block("\x1b[31mred") == "␛[31mred"


@given(HOSTILE, st.integers(-2, 30))
def test_clipping_never_exceeds_its_width(text: str, width: int) -> None:
    shown = inert(text)
    made = clip(shown, width)
    assert cells(made) <= max(width, 0)
    if cells(shown) <= width:
        assert made == shown
    elif width > 0:
        assert made.endswith("\u2026")
        assert shown.startswith(made[:-1])
        # Nothing that still fitted was cut: one more cluster would not have left room for the mark.
        rest = shown[len(made) - 1 :]
        assert cells(made[:-1]) + cells(rest[:1]) > width - 1


@pytest.mark.parametrize(
    ("text", "width"), [("", 0), ("abc", 3), ("漢字", 4), ("e\u0301", 1), ("ｆ", 2), ("🙂", 2), ("\u20dd", 0), ("…", 1)]
)
def test_widths(text: str, width: int) -> None:
    assert cells(text) == width


def test_clips() -> None:
    assert clip("漢字漢字", 5) == "漢字…"
    assert clip("漢字漢字", 4) == "漢…"
    assert clip("abc", 0) == ""
    assert clip("abc", 1) == "…"
