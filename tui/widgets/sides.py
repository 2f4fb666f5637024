"""A diff side by side as plain text: the console draws it in colours, a verb prints it (docs/specs/console.md §2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from core.sanitize import inert, inert_block
from tui.widgets.diff import Pair, side_by_side
from tui.widgets.text import fit_str, pad, wrap

LINES: Final = 50_000
"""Lines of a diff that are laid out; the rest is named."""
NUMBERED: Final = 72
"""Cells from which on there is room for line numbers."""
LEAST: Final = 4
"""Cells of a side, however narrow the place is."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A line of a text, or the part of it that fits: its number and sign stand before its first part only."""

    head: str
    sign: str
    text: str


@dataclass(frozen=True, slots=True)
class Look:
    """How wide the whole is, and which signs it is made of."""

    width: int
    minus: str = "-"
    cut: str = "\u2026"
    wall: str = " \u2502 "

    @property
    def half(self) -> int:
        """Cells of one side."""
        return max(LEAST, (self.width - len(self.wall)) // 2)


def flat(text: str) -> str:
    """A line as it is shown."""
    return inert_block(text).replace("\n", " ")


def digits(old: str, new: str) -> int:
    """Cells for the line numbers of both texts."""
    return len(str(max(old.count("\n"), new.count("\n")) + 1))


def pieces(text: str, sign: str, number: int | None, digits: int, width: int) -> Iterator[Piece]:
    """A line with its sign and number, wrapped beside them."""
    head = 2 + (digits + 1 if digits else 0)
    for at, piece in enumerate(wrap(flat(text), max(2, width - head))):
        shown = str(number) if number is not None and at == 0 else ""
        yield Piece(f"{shown:>{digits}} " if digits else "", f"{sign if at == 0 else ' '} ", piece)


@dataclass(frozen=True, slots=True)
class Rows:
    """A pair of lines in as many rows as the longer one needs. A gap has a sentence instead."""

    pair: Pair
    old: tuple[Piece, ...] = ()
    new: tuple[Piece, ...] = ()
    said: str = ""


def rows(old: str, new: str, look: Look) -> Iterator[Rows]:
    """The rows of a diff; nothing when the texts are the same."""
    if old == new:
        return
    numbers = digits(old, new) if look.half >= NUMBERED // 2 + 6 else 0
    for count, pair in enumerate(side_by_side(old, new)):
        if count >= LINES:
            yield Rows(pair, said=f"{look.cut} the diff goes on; only its first {LINES} lines are shown")
            return
        if pair.kind == "gap":
            yield Rows(pair, said=f"{look.cut} {pair.old}")
            continue
        same = pair.kind == "same"
        sides = ((pair.old, look.minus, pair.old_line), (pair.new, "+", pair.new_line))
        before, after = (
            tuple(pieces(text, " " if same else sign, number, numbers, look.half)) if text is not None else ()
            for text, sign, number in sides
        )
        yield Rows(pair, before, after)


def plain(old: str, new: str, since: str, until: str, look: Look) -> Iterator[str]:
    """The whole diff, a line each, under its two moments."""
    for at, row in enumerate(rows(old, new, look)):
        if at == 0:
            yield _line(fit_str(inert(since), look.half, look.cut), fit_str(inert(until), look.half, look.cut), look)
        if row.said:
            yield row.said
        for number in range(max(len(row.old), len(row.new))):
            yield _line(_text(row.old, number), _text(row.new, number), look)


def _text(side: tuple[Piece, ...], number: int) -> str:
    return f"{side[number].head}{side[number].sign}{side[number].text}" if number < len(side) else ""


def _line(one: str, other: str, look: Look) -> str:
    return f"{pad(one, look.half)}{look.wall}{other}".rstrip()


__all__ = ["LINES", "NUMBERED", "Look", "Piece", "Rows", "digits", "flat", "pieces", "plain", "rows"]
