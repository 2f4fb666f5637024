"""What changed between two texts, in time that a hostile text cannot stretch (docs/specs/console.md §2)."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

BUDGET: Final = 4_000_000
"""Line pairs that are compared; beyond it the middle counts as replaced whole."""

Opcode = tuple[Literal["equal", "replace", "delete", "insert"], int, int, int, int]
Kind = Literal["same", "add", "remove", "gap"]


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a unified diff; `old` and `new` are its numbers from 1, None on the side where it is not.

    A `gap` stands for unchanged lines left out, or for the rest of a diff that is too long.
    """

    kind: Kind
    text: str
    old: int | None = None
    new: int | None = None


def split(text: str) -> list[str]:
    """Lines at `\\n` only; a last line end makes no further line."""
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return lines


def opcodes(old: Sequence[str], new: Sequence[str]) -> list[Opcode]:
    """Like difflib's, but equal beginnings and ends cost nothing and a huge middle is not compared."""
    head = 0
    limit = min(len(old), len(new))
    while head < limit and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < limit - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    a, b = old[head : len(old) - tail], new[head : len(new) - tail]
    made: list[Opcode] = []
    if head:
        made.append(("equal", 0, head, 0, head))
    if a or b:
        if len(a) * len(b) > BUDGET:
            made.append(("replace", head, head + len(a), head, head + len(b)))
        else:
            matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
            made += [(tag, i + head, j + head, k + head, m + head) for tag, i, j, k, m in matcher.get_opcodes()]
    if tail:
        made.append(("equal", len(old) - tail, len(old), len(new) - tail, len(new)))
    return made


def line_changes(old: str, new: str) -> tuple[tuple[int, ...], int]:
    """(numbers from 1 of the lines of `new` that were added or changed, number of lines of `old` that are gone)."""
    added: list[int] = []
    removed = 0
    for tag, i, j, k, m in opcodes(split(old), split(new)):
        if tag != "equal":
            added.extend(range(k + 1, m + 1))
            removed += j - i
    return tuple(added), removed


@lru_cache(maxsize=16)
def unified(old: str, new: str, context: int = 3, cap: int = 2000) -> tuple[DiffLine, ...]:
    """A unified diff of at most `cap` lines, unchanged stretches folded into gaps."""
    made: list[DiffLine] = []
    for line in _unified(split(old), split(new), context):
        if len(made) >= cap:
            made.append(DiffLine("gap", f"the diff goes on; only its first {cap} lines are shown"))
            break
        made.append(line)
    return tuple(made)


def _unified(old: Sequence[str], new: Sequence[str], context: int) -> Iterator[DiffLine]:
    codes = opcodes(old, new)
    last = len(codes) - 1
    for at, (tag, i, j, k, m) in enumerate(codes):
        if tag == "equal":
            before, after = (context if at > 0 else 0), (context if at < last else 0)
            if j - i > before + after + 1:
                yield from _same(old, i, i + before, k)
                yield DiffLine("gap", f"{j - i - before - after} unchanged lines")
                yield from _same(old, j - after, j, m - after)
            else:
                yield from _same(old, i, j, k)
            continue
        for number in range(i, j):
            yield DiffLine("remove", old[number], number + 1, None)
        for number in range(k, m):
            yield DiffLine("add", new[number], None, number + 1)


def _same(lines: Sequence[str], start: int, stop: int, other: int) -> Iterator[DiffLine]:
    for number in range(start, stop):
        yield DiffLine("same", lines[number], number + 1, other + number - start + 1)
