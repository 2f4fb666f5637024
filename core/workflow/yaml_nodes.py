"""YAML 1.2 as a tree in which every node knows its line and column (docs/specs/workflows.md §3, "Loading").

Scalars keep their written text. Duplicate keys, aliases, tags, further documents and deep nesting are findings.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from ruamel.yaml.main import YAML
from ruamel.yaml.reader import ReaderError

from core.workflow.yaml_quoting import Quoted, quote_templates, split_lines

DEPTH = 60
_INT = re.compile(r"[-+]?[0-9]{1,18}")
_OTHER_INT = re.compile(r"0o[0-7]{1,20}|0x[0-9a-fA-F]{1,16}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,3})?")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE, _FALSE = frozenset({"true", "True", "TRUE"}), frozenset({"false", "False", "FALSE"})


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a text is no YAML that we read; line and column from 1."""

    line: int
    column: int
    cause: str


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar: its text as written (quotes and escapes undone), and whether it was bare."""

    line: int
    column: int
    text: str
    bare: bool

    @property
    def value(self) -> str | int | float | bool | None:
        """What YAML 1.2's core schema makes of it."""
        text = self.text
        if not self.bare:
            return text
        if text in _NULLS:
            return None
        if text in _TRUE or text in _FALSE:
            return text in _TRUE
        if _INT.fullmatch(text):
            return int(text)
        if _OTHER_INT.fullmatch(text):
            return int(text[2:], 8 if text[1] == "o" else 16)
        if _FLOAT.fullmatch(text) and math.isfinite(number := float(text)):
            return number
        return text


@dataclass(frozen=True, slots=True)
class Sequence:
    line: int
    column: int
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Mapping:
    """Pairs in order of writing; the first of a repeated key counts."""

    line: int
    column: int
    pairs: tuple[tuple[Scalar, Node], ...]

    def find(self, name: str) -> tuple[Scalar, Node] | None:
        return next((pair for pair in self.pairs if pair[0].text == name), None)

    def get(self, name: str) -> Node | None:
        found = self.find(name)
        return None if found is None else found[1]


@dataclass(frozen=True, slots=True)
class Unknown:
    """Stands where something was that is refused: an alias, or what nests too deeply."""

    line: int
    column: int


Node = Scalar | Sequence | Mapping | Unknown


@dataclass(frozen=True)
class Tree:
    """A parsed text. `root` is None when there is nothing to look at; `unquoted` are bare templates' places."""

    root: Node | None
    problems: tuple[Problem, ...]
    unquoted: tuple[tuple[int, int], ...]
    lines: tuple[str, ...]

    def place_in(self, scalar: Scalar, offset: int) -> tuple[int, int]:
        """(line, column) of the character of the scalar's text at `offset`; of the scalar when that is unclear."""
        source = self.lines[scalar.line - 1][scalar.column - 1 :] if scalar.line <= len(self.lines) else ""
        for skip in (0, 1):
            if source[skip : skip + len(scalar.text)] == scalar.text:
                return scalar.line, scalar.column + skip + offset
        if source[:1] == '"':
            at, value = 1, 0
            while value < offset and at < len(source):
                at += _escape_width(source, at)
                value += 1
            if at < len(source):
                return scalar.line, scalar.column + at
        return scalar.line, scalar.column


def _escape_width(source: str, at: int) -> int:
    if source[at] != "\\":
        return 1
    return {"x": 4, "u": 6, "U": 10}.get(source[at + 1 : at + 2], 2)


class _Composer:
    def __init__(self, events: Iterator[Event], quoted: Quoted) -> None:
        self.events = events
        self.quoted = quoted
        self.problems: list[Problem] = []

    def place(self, event: Event) -> tuple[int, int]:
        line = event.start_mark.line + 1
        return line, self.quoted.column(line, event.start_mark.column + 1)

    def problem(self, line: int, column: int, cause: str) -> None:
        self.problems.append(Problem(line, column, cause))

    def document(self) -> Node | None:
        root: Node | None = None
        documents = 0
        for event in self.events:
            if isinstance(event, DocumentStartEvent):
                documents += 1
                if documents == 2:
                    self.problem(*self.place(event), "a second document in one file")
                    return root
            elif isinstance(event, (ScalarEvent, SequenceStartEvent, MappingStartEvent, AliasEvent)):
                root = self.node(event, 0)
        return root

    def node(self, event: Event, depth: int) -> Node:
        line, column = self.place(event)
        if isinstance(event, AliasEvent):
            self.problem(line, column, f"an alias (*{event.anchor}) is not read here")
            return Unknown(line, column)
        tag = getattr(event, "tag", None)
        if tag is not None:
            self.problem(line, column, f"a tag ({tag}) is not read here")
        if isinstance(event, ScalarEvent):
            value: str = event.value
            if _SURROGATE.search(value):
                self.problem(line, column, "half a character stands there alone (\\ud800 to \\udfff)")
                value = _SURROGATE.sub("\ufffd", value)
            return Scalar(line, column, value, not event.style)
        if depth >= DEPTH:
            self.problem(line, column, f"nested deeper than {DEPTH} levels")
            self._skip()
            return Unknown(line, column)
        if isinstance(event, SequenceStartEvent):
            items = []
            for inner in self.events:
                if isinstance(inner, SequenceEndEvent):
                    break
                items.append(self.node(inner, depth + 1))
            return Sequence(line, column, tuple(items))
        return self._mapping(line, column, depth)

    def _mapping(self, line: int, column: int, depth: int) -> Mapping:
        pairs: list[tuple[Scalar, Node]] = []
        seen: set[str] = set()
        for inner in self.events:
            if isinstance(inner, MappingEndEvent):
                break
            key = self.node(inner, depth + 1)
            value = self.node(next(self.events), depth + 1)
            if not isinstance(key, Scalar):
                self.problem(key.line, key.column, "a key must be a scalar")
            elif key.text in seen:
                self.problem(key.line, key.column, f"a key stands there twice: {key.text!r}")
            else:
                seen.add(key.text)
                pairs.append((key, value))
        return Mapping(line, column, tuple(pairs))

    def _skip(self) -> None:
        level = 1
        while level:
            event = next(self.events)
            if isinstance(event, (SequenceStartEvent, MappingStartEvent)):
                level += 1
            elif isinstance(event, (SequenceEndEvent, MappingEndEvent)):
                level -= 1


def parse(text: str, templates: bool = True) -> Tree:
    """Read a text; never raises. With `templates`, bare scalars that hold `{{name}}` are quoted first."""
    text = text.removeprefix("\ufeff")
    quoted = quote_templates(text) if templates else Quoted(text, ())
    lines = tuple(split_lines(text))
    composer = _Composer(iter(()), quoted)
    root: Node | None = None
    try:
        composer.events = iter(YAML(typ="safe", pure=True).parse(quoted.text))
        root = composer.document()
    except ReaderError as exc:
        before = split_lines(quoted.text[: exc.position])
        composer.problem(len(before), quoted.column(len(before), len(before[-1]) + 1), "a character that YAML forbids")
    except MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        line = 1 if mark is None else mark.line + 1
        column = 1 if mark is None else quoted.column(line, mark.column + 1)
        composer.problem(line, column, str(exc.problem or exc.context or "this is no YAML")[:200])
    except (YAMLError, StopIteration, RecursionError, ValueError, AttributeError, IndexError, TypeError) as exc:
        # A scanner that stumbles over odd input in its own code has still said that this is no YAML.
        composer.problem(1, 1, f"this is no YAML ({type(exc).__name__})")
    return Tree(root, tuple(composer.problems), quoted.places, lines)


def plain(node: Node) -> Any:
    """The node as plain data: dicts, lists, texts, numbers, booleans, None."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Sequence):
        return [plain(item) for item in node.items]
    if isinstance(node, Mapping):
        return {key.text: plain(value) for key, value in node.pairs}
    return None
