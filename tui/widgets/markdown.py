"""Markdown as lines of styled text, section by section, away from the event loop (docs/specs/console.md §2).

Nothing is hidden: HTML is shown as text, links show where they lead and lead nowhere, images are named. Every
rendered line knows the source lines it comes from, so that changes can be marked and the scroll position kept.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import (
    Heading,
    ListElement,
    ListItem,
    Markdown,
    MarkdownElement,
    TableElement,
    TextElement,
)
from rich.padding import Padding
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from core.sanitize import inert
from tui.widgets.palette import Palette
from tui.widgets.text import wrap

SECTION = 16 * 1024
"""Characters after which a section ends at the next blank line, whether or not a heading follows."""
PIECE_CAP = 48 * 1024
"""A single paragraph or table longer than this stays raw: laying it out would take too long."""

NESTING = 18
"""A block nested as deep as this stays raw: the parser drops what lies deeper."""

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r"^#{1,6}(?:\s|$)")


def sections(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """(start, stop) of parts that can be rendered alone: cut before headings and, when long, at blank lines."""
    start, size, fence = 0, 0, ""
    for number, line in enumerate(lines):
        match = _FENCE.match(line) if line[:4].lstrip()[:1] in ("`", "~") else None
        if match and not fence:
            fence = match[1]
        elif match and match[1].startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
        elif not fence and number > start and (_HEADING.match(line) or (size > SECTION and not line.strip())):
            yield start, number
            start, size = number, 0
        if number > start and size > 16 * SECTION:
            yield start, number
            start, size, fence = number, 0, ""
        size += len(line) + 1
    if start < len(lines):
        yield start, len(lines)


@dataclass(frozen=True, slots=True)
class Piece:
    """A block as lines; it stands on the source lines `start` to `stop` (from 0, `stop` not included)."""

    lines: tuple[Text, ...]
    start: int
    stop: int

    def source(self, row: int) -> int:
        """The source line that a row of this piece stands for, as well as can be told."""
        return self.start + row * max(0, self.stop - self.start) // max(1, len(self.lines))


class _Heading(Heading):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        mark = Text("#" * int(self.tag[1:]) + " ", style=console.get_style("markdown.mark", default="none"))
        yield Text.assemble(mark, self.text, end="\n")


class _Code(TextElement):
    style_name = "markdown.code_block"
    info = ""

    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> _Code:
        made = cls()
        made.info = inert(token.info.strip())
        return made

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.info:
            yield Padding(Text(self.info, style=console.get_style("markdown.mark", default="none")), (0, 0, 0, 2))
        code = Text(self.text.plain.rstrip("\n"), style=self.style, overflow="fold")
        yield Padding(code, (0, 0, 0, 2))


class _Rule(MarkdownElement):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text("─" * min(options.max_width, 24), style=console.get_style("markdown.hr", default="none"))


class _List(ListElement):
    """A list that may begin in the middle: `last` keeps the numbers of all its items equally wide."""

    last: int | None = None

    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> _List:
        try:
            made = cls(token.type, int(str(token.attrs.get("start", 1))))
        except ValueError:
            made = cls(token.type, 1)
        made.last = token.meta.get("last")
        return made

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.list_type == "bullet_list_open":
            for item in self.items:
                yield from item.render_bullet(console, options)
            return
        number = 1 if self.list_start is None else self.list_start
        last = self.last if self.last is not None else number + len(self.items) - 1
        for index, item in enumerate(self.items):
            yield from item.render_number(console, options, number + index, last)


class _Item(ListItem):
    """Numbers as they are written, with their dot."""

    def render_number(self, console: Console, options: ConsoleOptions, number: int, last_number: int) -> RenderResult:
        size = len(str(last_number)) + 3
        lines = console.render_lines(self.elements, options.update(width=max(1, options.max_width - size)))
        style = console.get_style("markdown.item.number", default="none")
        for at, line in enumerate(lines):
            yield Segment(f"{number}. ".rjust(size) if at == 0 else " " * size, style)
            yield from line
            yield Segment("\n")


class _Table(TableElement):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(box=box.SIMPLE, pad_edge=False, show_edge=False, style="markdown.hr")
        if self.header is not None and self.header.row is not None:
            for cell in self.header.row.cells:
                title = cell.content.copy()
                title.stylize("markdown.strong")
                table.add_column(title, justify=cell.justify, overflow="fold")
        if self.body is not None:
            for row in self.body.rows:
                table.add_row(*(cell.content for cell in row.cells))
        yield table


class _Tokens(Markdown):
    """Rich's renderer over tokens that were parsed and made inert already."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
        "hr": _Rule,
        "list_item_open": _Item,
        "bullet_list_open": _List,
        "ordered_list_open": _List,
        "table_open": _Table,
    }

    def __init__(self, tokens: list[Token]) -> None:
        # Not the base's: it would build a parser for every block.
        self.markup, self.parsed, self.style, self.hyperlinks = "", tokens, "none", False
        self.justify, self.code_theme = None, "default"
        self.inline_code_lexer, self.inline_code_theme = None, "default"


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])


@lru_cache(maxsize=8)
def _console(palette: Palette) -> Console:
    styles: dict[str, str | Style] = {
        "markdown.paragraph": palette.text,
        "markdown.text": palette.text,
        "markdown.strong": palette.strong,
        "markdown.em": "italic",
        "markdown.s": "strike",
        "markdown.code": palette.code,
        "markdown.code_block": palette.code,
        "markdown.block_quote": palette.muted,
        "markdown.list": palette.text,
        "markdown.item": palette.text,
        "markdown.item.bullet": palette.muted,
        "markdown.item.number": palette.muted,
        "markdown.hr": palette.border,
        "markdown.mark": palette.muted,
        "markdown.link": "underline",
        "markdown.link_url": palette.muted,
        **{f"markdown.h{level}": palette.strong for level in range(1, 7)},
    }
    return Console(
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        no_color=False,
        legacy_windows=False,
        width=80,
        theme=Theme(styles),
        highlight=False,
        markup=False,
        emoji=False,
    )


def _tame(tokens: list[Token]) -> None:
    """Make the texts of tokens inert (entities may have made new control characters) and name images as text."""
    for token in tokens:
        if token.type in ("fence", "code_block"):
            token.content = "\n".join(inert(line) for line in token.content.split("\n"))
        else:
            token.content = inert(token.content) if token.content else token.content
        if "href" in token.attrs:
            title = f' "{token.attrs["title"]}"' if token.attrs.get("title") else ""
            token.attrs["href"] = inert(f"{token.attrs['href']}{title}")
        if token.type == "image":
            source, name = inert(token.attrs.get("src", "")), token.content
            token.type, token.tag, token.children = "text", "", None
            token.content = f"[image {name}] ({source})" if name else f"[image] ({source})"
        if token.children:
            _tame(token.children)
            token.children = _shorten(token.children)


def _shorten(tokens: list[Token]) -> list[Token]:
    """A link whose text is its own target is shown once."""
    made: list[Token] = []
    index = 0
    while index < len(tokens):
        here = tokens[index : index + 3]
        kinds = [token.type for token in here]
        if kinds == ["link_open", "text", "link_close"] and here[1].content == here[0].attrs.get("href"):
            made.append(here[1])
            index += 3
        else:
            made.append(tokens[index])
            index += 1
    return made


def _blocks(tokens: list[Token]) -> Iterator[tuple[list[Token], int, int, bool]]:
    """(tokens, start, stop, whether it goes on with the block before) of every block and top-level list item."""
    index = 0
    while index < len(tokens):
        end = _closing(tokens, index)
        token = tokens[index]
        start, stop = token.map or (0, 0)
        if token.type in ("bullet_list_open", "ordered_list_open"):
            yield from _items(tokens[index : end + 1], int(str(token.attrs.get("start", 1))))
        else:
            yield tokens[index : end + 1], start, stop, False
        index = end + 1


def _closing(tokens: list[Token], index: int) -> int:
    depth = 0
    for at in range(index, len(tokens)):
        depth += tokens[at].nesting
        if depth == 0:
            return at
    return len(tokens) - 1


def _items(tokens: list[Token], number: int) -> Iterator[tuple[list[Token], int, int, bool]]:
    opening, closing = tokens[0], tokens[-1]
    level = opening.level + 1
    total = sum(token.type == "list_item_open" and token.level == level for token in tokens)
    index, count = 1, 0
    while index < len(tokens) - 1:
        end = _closing(tokens, index)
        start, stop = tokens[index].map or (0, 0)
        head = Token(opening.type, opening.tag, 1, attrs={"start": number + count}, level=opening.level)
        head.meta = {"last": number + total - 1}
        yield [head, *tokens[index : end + 1], closing], start, stop, count > 0
        index, count = end + 1, count + 1


def render(lines: Sequence[str], first: int, width: int, palette: Palette) -> list[Piece]:
    """The blocks of a section whose first line has the number `first`; blank lines between them are pieces too."""
    tokens = _parser().parse("\n".join(lines))
    _tame(tokens)
    console = _console(palette)
    options = console.options.update(width=max(8, width), height=None, highlight=False, markup=False)
    made: list[Piece] = []
    at = 0

    def gap(stop: int, joined: bool) -> None:
        """A blank line, and whatever Markdown takes for itself without showing it, such as link definitions."""
        hidden = [(number, lines[number]) for number in range(at, stop) if lines[number].strip()]
        if made and not joined:
            made.append(Piece((Text("", end=""),), first + at, first + max(at, hidden[0][0] if hidden else stop)))
        for number, line in hidden:
            made.append(Piece(_raw([line], width, palette.muted), first + number, first + number + 1))
        if hidden and not joined:
            made.append(Piece((Text("", end=""),), first + stop, first + stop))

    for block, start, stop, joined in _blocks(tokens):
        gap(start, joined)
        if _unfit(block, width) or sum(len(line) for line in lines[start:stop]) > PIECE_CAP:
            body = _raw(lines[start:stop], width, palette.text)
        else:
            rows = console.render_lines(_Tokens(block), options, pad=False)
            body = _trim(tuple(_text(row) for row in rows))
        made.append(Piece(body or (Text("", end=""),), first + start, first + stop))
        at = stop
    if at < len(lines):
        gap(len(lines), False)
    return made


def _unfit(block: Sequence[Token], width: int) -> bool:
    """Whether rendering would drop text: nested deeper than the parser or the screen goes, or too many columns."""
    level = max(token.level for token in block)
    columns = sum(token.type == "th_open" for token in block)
    return level >= min(NESTING, max(2, (width - 16) // 4)) or columns * 6 > width


def _raw(lines: Sequence[str], width: int, style: Style) -> tuple[Text, ...]:
    return tuple(Text(piece, style=style, end="") for line in lines for piece in wrap(line, width))


def _text(row: Sequence[Segment]) -> Text:
    made = Text(end="", no_wrap=True)
    for text, style, control in row:
        if not control:
            made.append(inert(text), style)
    made.rstrip()
    return made


def _trim(lines: tuple[Text, ...]) -> tuple[Text, ...]:
    """Without blank lines at both ends; at least one line."""
    start, stop = 0, len(lines)
    while start < stop and not lines[start].plain.strip():
        start += 1
    while stop > start and not lines[stop - 1].plain.strip():
        stop -= 1
    return lines[start:stop] or (Text("", end=""),)


__all__ = ["PIECE_CAP", "Piece", "render", "sections"]
