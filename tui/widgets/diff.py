"""What changed between two texts, in time that a hostile text cannot stretch (docs/specs/console.md §2)."""

from __future__ import annotations

import difflib
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Final, Literal

BUDGET: Final = 4_000_000
"""Line pairs that are compared; beyond it the middle counts as replaced whole."""

Opcode = tuple[Literal["equal", "replace", "delete", "insert"], int, int, int, int]
Kind = Literal["same", "add", "remove", "change", "gap"]

WORD_BUDGET: Final = 40_000
"""Word pairs that are compared in a changed line."""
ALIKE: Final = 0.35
"""Below this likeness two lines are two lines, not one that changed."""
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")


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
        made += _middle(a, b, head)
    if tail:
        made.append(("equal", len(old) - tail, len(old), len(new) - tail, len(new)))
    return made


def _middle(a: Sequence[str], b: Sequence[str], head: int) -> list[Opcode]:
    """Opcodes of two middles: compared whole when that is cheap, else between the lines that both have once."""
    if len(a) * len(b) <= BUDGET:
        return _compare(a, b, head, head)
    made: list[Opcode] = []
    left, start_a, start_b = BUDGET, 0, 0
    for i, k in [*_anchors(a, b), (len(a), len(b))]:
        part_a, part_b = a[start_a:i], b[start_b:k]
        if part_a or part_b:
            cost = len(part_a) * len(part_b)
            if cost <= left:
                left -= cost
                made += _compare(part_a, part_b, head + start_a, head + start_b)
            else:
                made.append(("replace", head + start_a, head + i, head + start_b, head + k))
        if i < len(a):
            made.append(("equal", head + i, head + i + 1, head + k, head + k + 1))
        start_a, start_b = i + 1, k + 1
    return _joined(made)


def _compare(a: Sequence[str], b: Sequence[str], at_a: int, at_b: int) -> list[Opcode]:
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    return [(tag, i + at_a, j + at_a, k + at_b, m + at_b) for tag, i, j, k, m in matcher.get_opcodes()]


def _anchors(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """Lines that stand once in each text, as far as they come in the same order (patience diff)."""
    count_a, count_b = Counter(a), Counter(b)
    places = {line: at for at, line in enumerate(b) if count_b[line] == 1}
    pairs = [(at, places[line]) for at, line in enumerate(a) if count_a[line] == 1 and line in places]
    ends: list[int] = []
    chain: list[int] = []
    last: list[int] = []
    for at, (_, k) in enumerate(pairs):
        place = bisect_left(ends, k)
        chain.append(last[place - 1] if place else -1)
        ends[place : place + 1] = [k]
        last[place : place + 1] = [at]
    found: list[tuple[int, int]] = []
    at = last[-1] if last else -1
    while at >= 0:
        found.append(pairs[at])
        at = chain[at]
    return found[::-1]


def _joined(codes: Sequence[Opcode]) -> list[Opcode]:
    """Neighbouring opcodes of one kind as one."""
    made: list[Opcode] = []
    for code in codes:
        if made and made[-1][0] == code[0]:
            tag, i, _, k, _ = made[-1]
            made[-1] = (tag, i, code[2], k, code[4])
        else:
            made.append(code)
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


@dataclass(frozen=True, slots=True)
class Pair:
    """A row of a diff side by side: the old and the new line with their numbers from 1; None where there is none."""

    kind: Kind
    old: str | None
    new: str | None
    old_line: int | None = None
    new_line: int | None = None


def side_by_side(old: str, new: str, context: int = 3) -> Iterator[Pair]:
    """The rows of a diff side by side; a `gap` says in `old` how many unchanged lines are left out."""
    a, b = split(old), split(new)
    codes = opcodes(a, b)
    last = len(codes) - 1
    for at, (tag, i, j, k, m) in enumerate(codes):
        if tag != "equal":
            for row in range(max(j - i, m - k)):
                one, other = i + row, k + row
                yield Pair(
                    "remove" if other >= m else "add" if one >= j else "change",
                    a[one] if one < j else None,
                    b[other] if other < m else None,
                    one + 1 if one < j else None,
                    other + 1 if other < m else None,
                )
            continue
        before, after = (context if at > 0 else 0), (context if at < last else 0)
        shown = list(range(i, j))
        if j - i > before + after + 1:
            shown = [*range(i, i + before), -1, *range(j - after, j)]
        for row in shown:
            if row < 0:
                yield Pair("gap", f"{j - i - before - after} unchanged lines", None)
            else:
                yield Pair("same", a[row], b[k + row - i], row + 1, k + row - i + 1)


def word_changes(old: str, new: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """(spans of `old` that are gone, spans of `new` that came), by words; nothing when the lines are not alike."""
    one, other = _WORDS.findall(old), _WORDS.findall(new)
    if not one or not other or len(one) * len(other) > WORD_BUDGET:
        return [], []
    matcher = difflib.SequenceMatcher(None, one, other, autojunk=False)
    if matcher.ratio() < ALIKE:
        return [], []
    gone, came = _offsets(one), _offsets(other)
    codes = [code for code in matcher.get_opcodes() if code[0] != "equal"]
    return (
        [(gone[i], gone[j]) for _, i, j, _, _ in codes if j > i],
        [(came[k], came[m]) for _, _, _, k, m in codes if m > k],
    )


def _offsets(words: Sequence[str]) -> list[int]:
    return [0, *accumulate(len(word) for word in words)]


def _same(lines: Sequence[str], start: int, stop: int, other: int) -> Iterator[DiffLine]:
    for number in range(start, stop):
        yield DiffLine("same", lines[number], number + 1, other + number - start + 1)
