"""The seed writes `{{item}}` in bare scalars, which YAML reads as a mapping: such scalars are quoted first (§3)."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, field

TEMPLATE = re.compile(r"\{\{([^{}\r\n]*)\}\}")
_BREAK = re.compile("(\r\n|\n|\r|\x85|\u2028|\u2029)")
_FLOW_ENDS = ",[]{}"


@dataclass(frozen=True)
class Quoted:
    """Text ready for a YAML parser, where scalars were quoted, and the way back to the columns as written."""

    text: str
    places: tuple[tuple[int, int], ...]
    inserted: dict[int, list[int]] = field(default_factory=dict)

    def column(self, line: int, column: int) -> int:
        """The column (from 1) as written, of a column of the quoted text."""
        added = self.inserted.get(line)
        return column if added is None else column - bisect_left(added, column)


def split_lines(text: str) -> list[str]:
    """The lines without their ends, as a YAML reader counts them."""
    return _BREAK.split(text)[::2]


class _Scanner:
    """Walks the text once; knows just enough of YAML to tell bare scalars from quotes, comments and blocks."""

    def __init__(self) -> None:
        self.flow = 0
        self.quote = ""
        self.block: int | None = None
        self.plain: int | None = None
        self.places: list[tuple[int, int]] = []
        self.inserted: dict[int, list[int]] = {}

    def line(self, number: int, text: str) -> str:
        indent = len(text) - len(text.lstrip(" "))
        blank = not text.strip()
        if not self.quote and not self.flow:
            if text.startswith(("---", "...")):
                return text
            if self.block is not None:
                if blank or indent > self.block:
                    return text
                self.block = None
            if self.plain is not None and not blank:
                if indent > self.plain:
                    return text
                self.plain = None
        self._found: list[tuple[int, int]] = []
        self._walk(text, indent)
        return self._quoted(number, text)

    def _walk(self, text: str, indent: int) -> None:
        at, owner, ended = 0, indent, False
        if self.quote:
            at = self._close(text, 0)
        while at < len(text):
            char = text[at]
            if char in " \t":
                at += 1
            elif char == "#" and (at == 0 or text[at - 1] in " \t"):
                return
            elif char in "'\"":
                self.quote = char
                at = self._close(text, at + 1)
                ended = True
            elif char in "[{" and TEMPLATE.match(text, at) is None:
                self.flow += 1
                at += 1
            elif char in "]}" and self.flow:
                self.flow -= 1
                at += 1
                ended = True
            elif (char == "," and self.flow) or (char == ":" and (ended or self.flow)):
                at += 1
            elif char in "-?" and not self.flow and text[at + 1 : at + 2] in ("", " ", "\t"):
                owner = at
                at += 1
            elif char in "&!*":
                at = self._word(text, at)
            elif char in "|>" and not self.flow:
                self.block = owner
                return
            else:
                at, owner = self._bare(text, at, owner)

    def _close(self, text: str, at: int) -> int:
        """The index after the closing quote, or the line's end with the quote still open."""
        while at < len(text):
            char = text[at]
            if char == "\\" and self.quote == '"':
                at += 2
            elif char == self.quote:
                if self.quote == "'" and text[at + 1 : at + 2] == "'":
                    at += 2
                    continue
                self.quote = ""
                return at + 1
            else:
                at += 1
        return len(text)

    def _word(self, text: str, at: int) -> int:
        while at < len(text) and text[at] not in " \t" and not (self.flow and text[at] in _FLOW_ENDS):
            at += 1
        return at

    def _bare(self, text: str, start: int, owner: int) -> tuple[int, int]:
        """(index after a bare scalar, column of the mapping key that owns what follows)."""
        at, key = start, False
        while at < len(text):
            char = text[at]
            match = TEMPLATE.match(text, at) if char == "{" else None
            if match is not None:
                at = match.end()
                continue
            after = text[at + 1 : at + 2]
            if self.flow and char in _FLOW_ENDS:
                break
            if char == ":" and (after in ("", " ", "\t") or (self.flow and after in _FLOW_ENDS)):
                key = True
                break
            if char == "#" and at > start and text[at - 1] in " \t":
                break
            at += 1
        end = start + len(text[start:at].rstrip())
        if TEMPLATE.search(text, start, end):
            self._found.append((start, end))
        if key:
            return at + 1, start
        if not self.flow:
            self.plain = owner
        return max(at, start + 1), owner

    def _quoted(self, number: int, text: str) -> str:
        if not self._found:
            return text
        made, last, added = [], 0, self.inserted.setdefault(number, [])
        for start, end in self._found:
            self.places.append((number, start + 1))
            made.append(text[last:start])
            shift = len(added)
            added.append(start + 1 + shift)
            body = []
            for index in range(start, end):
                body.append(text[index])
                if text[index] == "'":
                    body.append("'")
                    added.append(index + 1 + len(added) + 1)
            added.append(end + 1 + len(added))
            made.append("'" + "".join(body) + "'")
            last = end
        made.append(text[last:])
        return "".join(made)


def quote_templates(text: str) -> Quoted:
    """Quote every bare scalar that holds `{{name}}`; places are (line, column) from 1, as written."""
    if TEMPLATE.search(text) is None:
        return Quoted(text, ())
    scanner = _Scanner()
    pieces = _BREAK.split(text)
    made = []
    for index, piece in enumerate(pieces):
        made.append(piece if index % 2 else scanner.line(index // 2 + 1, piece))
    return Quoted("".join(made), tuple(scanner.places), scanner.inserted)
