"""Spoils files the way that confused and hostile writers do: by structure, by line, by byte, by kind of file.

Every choice is drawn by Hypothesis, so that it can be shrunk, replayed and steered by a coverage-guided fuzzer.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

from hypothesis import strategies as st

Pick = TypeVar("Pick")

ACTING = (
    "\x1b]52;c;aGk=\x07", "\x1b[2J", "\x9b31m", "\x00", "\x7f", "\u202eevil\u2066", "\u200b\ufeff", "\x85", "\u2028",
    "\r", "\n", "\r\n- [x] Ready to implement\n", "\ud800", "[/]", "[@click=app.quit]x[/]", "{{item}}", "{0.__class__}",
    "{each", "%s", "$(id)", "`id`", "-rf", "--as", "| cell |", "\ufdd0", "e\u0301" * 3, "漢字", "\U000e0001",
)  # fmt: skip
"""Texts that do something where somebody lets them."""
ODD = (
    "", " ", "\t", ".", "..", "/", "../../../etc/passwd", "/etc/passwd", "a/../b", "~root/x", "con\\nul", "x" * 300,
    "y " * 40_000, "9" * 5000, "1e999", "-0", "NaN", "Infinity", "null", "true", "²", "٣", "0x10", "010", "no",
    "2026-99-99T99:99:99Z", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2026-03-01T09:00:00",
    "2026-10-25T02:30:00+01:00", "sha256:" + "0" * 64, "a" * 64, "0" * 64, "999999999999999999d", "PT1H", "0s",
    "external:../../x", "D1", "T-mark", "AC-one", "server", "completed", "initialized", "blocked", "v7", "*", "any",
)  # fmt: skip
"""Texts that are nearly right, or right elsewhere."""
TEXTS = ACTING + ODD
DEPTHS = (3, 60, 190, 201, 1000)
NUMBERS = (
    0,
    -1,
    1,
    2,
    3,
    2**31,
    2**53 + 1,
    2**63,
    2**64,
    -(2**63),
    10**30,
    10**4000,
    0.5,
    1.0,
    2.0,
    -0.0,
    1e308,
    1e999,
)
BYTES = (
    b"\0", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\r\n", b"\n", b"\n\n", b"{", b"[", b'"', b"\\", b"}",
    b"\\ud800", b"\\u0000", b",", b":", b"- ", b"# ", b"---\n", b"&a *a", b"!!python/object:os.system {}", b"<<: *a",
    b"\t", b"\x1b[2J", b"\xc2\x9b", b"\xe2\x80\xae", b"[" * 300, b"> " * 300, b"z" * 9000, b"NaN", b"1e999",
)  # fmt: skip


class Draws:
    """Choices from Hypothesis, in the words of this module."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self._draw = draw

    def below(self, count: int) -> int:
        drawn: int = self._draw(_integers(count))
        return drawn

    def of(self, items: Sequence[Pick]) -> Pick:
        return items[self.below(len(items))]

    def text(self) -> str:
        """A text that is hostile, odd, or anything at all."""
        kind = self.below(8)
        if kind == 0:
            anything: str = self._draw(_ANYTHING)
            return anything
        return self.of(ACTING if kind < 4 else ODD)

    def bytes(self) -> bytes:
        made: bytes = self._draw(_BYTES)
        return made


_ANYTHING = st.text(max_size=20)
_BYTES = st.binary(max_size=200)


@cache
def _integers(count: int) -> st.SearchStrategy[int]:
    return st.integers(0, count - 1)


class Written(str):
    """JSON that is written as it stands: repeated keys, numbers and depths that no encoder makes."""

    __slots__ = ()


def value(draws: Draws) -> Any:
    """Any JSON value, most of them out of place."""
    match draws.below(7):
        case 0:
            return draws.of((None, True, False))
        case 1:
            return draws.of(NUMBERS)
        case 2 | 3:
            return draws.text()
        case 4:
            return draws.of(([], {}, [[]], [None], [{}], {"": ""}, {"id": 1}, {"id": None}, ["", ""], {"a": {"b": []}}))
        case 5:
            opening, closing = draws.of((("[", "]"), ('{"a":', "}")))
            depth = draws.of(DEPTHS)
            return Written(opening * depth + "1" + closing * depth)
        case _:
            return Written(
                draws.of(('{"a":1,"a":2}', "NaN", "-Infinity", "1E400", "-", "01", '"\\ud800"', '"\\u0000"'))
            )


def encode(document: Any, indent: int | None = None) -> bytes:
    """JSON text; what is `Written` stands in it as it is."""
    marks: list[str] = []

    def marked(item: Any) -> Any:
        if isinstance(item, Written):
            marks.append(str(item))
            return f"\ue000{len(marks) - 1}\ue000"
        if isinstance(item, dict):
            return {key: marked(one) for key, one in item.items()}
        if isinstance(item, list):
            return [marked(one) for one in item]
        return item

    try:
        text = json.dumps(marked(document), ensure_ascii=False, indent=indent)
    except ValueError:
        text = "9" * 5000
    for number, mark in enumerate(marks):
        text = text.replace(f'"\ue000{number}\ue000"', mark)
    return text.encode("utf-8", "surrogatepass")


def _places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    inside = (
        document.items() if isinstance(document, dict) else enumerate(document if isinstance(document, list) else ())
    )
    for key, item in inside:
        found += _places(item, (*path, key))
    return found


def structure(document: Any, draws: Draws) -> Any:
    """A copy with one change: a value, a key, a repetition, an order, a text inside a text."""
    made = copy.deepcopy(document)
    places = _places(made)
    path = places[draws.below(len(places))]
    if not path:
        return draws.of((value(draws), [made, made])) if draws.below(3) == 0 else _keyed(made, draws)
    holder = made
    for step in path[:-1]:
        holder = holder[step]
    key, old = path[-1], holder[path[-1]]
    match draws.below(7):
        case 0:
            del holder[key]
        case 1:
            holder[key] = value(draws)
        case 2:
            holder[key] = [old] if draws.below(2) else {"id": old}
        case 3 if isinstance(old, str):
            at = draws.below(len(old) + 1)
            holder[key] = old[:at] + draws.text() + old[at:]
        case 4 if isinstance(old, list) and old:
            holder[key] = old * draws.of((2, 3, 40)) if draws.below(2) else old[::-1]
        case 5 if isinstance(old, int) and not isinstance(old, bool):
            holder[key] = old + draws.of((-2, -1, 1, 2, 1000))
        case 6 if isinstance(holder, dict):
            holder[draws.text()] = holder.pop(key)
        case _:
            other: Any = made
            for step in places[draws.below(len(places))]:
                other = other[step]
            holder[key] = copy.deepcopy(other)
    return made


def _keyed(document: Any, draws: Draws) -> Any:
    if isinstance(document, dict):
        document[draws.text()] = value(draws)
    elif isinstance(document, list):
        document.append(value(draws))
    return document


def raw(data: bytes, draws: Draws) -> bytes:
    """A change of the bytes: an insertion, a cut, a flip, another order of lines, another line end."""
    at = draws.below(len(data) + 1)
    match draws.below(9):
        case 0 | 1:
            return data[:at] + draws.of(BYTES) + data[at:]
        case 2:
            return data[:at]
        case 3 if data:
            at = min(at, len(data) - 1)
            return data[:at] + bytes([data[at] ^ (1 << draws.below(8))]) + data[at + 1 :]
        case 4:
            return data.replace(b"\n", draws.of((b"\r\n", b"\r", b"", b"\n\n", b"\xe2\x80\xa8")))
        case 5:
            lines = data.split(b"\n")
            lines.insert(draws.below(len(lines) + 1), lines[draws.below(len(lines))])
            return b"\n".join(lines)
        case 6:
            lines = data.split(b"\n")
            del lines[draws.below(len(lines))]
            return b"\n".join(lines)
        case 7:
            text = draws.text().encode("utf-8", "surrogatepass")
            return data[:at] + text + data[at + draws.of((0, 1, 5)) :]
        case _:
            return draws.bytes()


def words(data: bytes, draws: Draws) -> bytes:
    """One word of a text replaced: in YAML, TOML and Markdown that is a key, a value or a mark."""
    parts = data.split(b" ")
    at = draws.below(len(parts))
    head, newline, tail = parts[at].partition(b"\n")
    text = draws.text().encode("utf-8", "surrogatepass")
    parts[at] = text + newline + tail if draws.below(2) else head + newline + text
    return b" ".join(parts)


def spoiled(name: str, data: bytes, draws: Draws) -> bytes:
    """A changed content for a file, by what its name says that it is."""
    for _ in range(1 + draws.below(3)):
        data = _once(name, data, draws)
    return data


def _once(name: str, data: bytes, draws: Draws) -> bytes:
    if draws.below(4) == 0:
        return raw(data, draws)
    if name.endswith((".jsonl", ".ndjson")):
        lines = data.split(b"\n")
        at = draws.below(max(1, len(lines) - 1))
        try:
            lines[at] = encode(structure(json.loads(lines[at]), draws))
        except (ValueError, RecursionError):
            return raw(data, draws)
        return b"\n".join(lines)
    if name.endswith(".json"):
        try:
            return encode(structure(json.loads(data), draws), 2)
        except (ValueError, RecursionError):
            return raw(data, draws)
    return words(data, draws)
