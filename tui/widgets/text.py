"""Cutting, wrapping and aligning text by terminal cells, as the screen will measure it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.segment import Segment
from rich.text import Text

from core.sanitize import inert


def fit(text: Text, width: int, cut: str = "…") -> Text:
    """`text` itself when it fits in `width` cells, else a copy that is cut at its end."""
    if width <= 0:
        return Text("", end="")
    if cell_len(text.plain) <= width:
        return text
    made = text[: width + 1] if len(text.plain) > width + 1 else text.copy()
    while cell_len(made.plain) > width - 1 and made.plain:
        made.right_crop(max(1, (cell_len(made.plain) - width + 1) // 2))
    made.append(cut)
    return made


def fit_str(text: str, width: int, cut: str = "…") -> str:
    """`text` when it fits in `width` cells, else cut at its end."""
    if width <= 0:
        return ""
    if len(text) > 2 * width + 64:
        text = text[: 2 * width + 64]
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + cut


def segments(text: Text, console: Console) -> list[Segment]:
    """The segments of a line; a style of the whole text counts even where no part has one."""
    base = console.get_style(text.style)
    made = [segment for segment in text.render(console) if not segment.control and segment.text]
    return made if text.spans else [Segment(part, base) for part, _, _ in made]


def pad(text: str, width: int, align: str = "left") -> str:
    """Exactly `width` cells: cut when longer, filled with spaces when shorter."""
    shown = fit_str(text, width)
    space = " " * (width - cell_len(shown))
    return space + shown if align == "right" else shown + space


def aligned(names: Sequence[str], limit: int) -> dict[str, str]:
    """Each name filled up to the widest that has at most `limit` cells; a longer one stays as it is, whole."""
    width = max((size for name in names if (size := cell_len(inert(name))) <= limit), default=0)
    return {name: name + " " * max(0, width - cell_len(inert(name))) for name in names}


def wrap(text: str, width: int) -> list[str]:
    """One inert line as lines of at most `width` cells, broken at spaces where there are any.

    Linear in the length of the text, and of no use for terminals narrower than two cells: there it cuts.
    """
    width = max(2, width)
    if len(text) <= width and (text.isascii() or cell_len(text) <= width):
        return [text]
    made: list[str] = []
    start = 0
    while start < len(text):
        end = _reach(text, start, width)
        if end >= len(text):
            made.append(text[start:])
            break
        space = text.rfind(" ", start + 1, end + 1)
        if space > start and text[start:space].strip():
            made.append(text[start:space])
            start = space + 1
        else:
            made.append(text[start:end])
            start = end
    return made or [""]


def wrap_command(command: str, width: int) -> list[str]:
    """A command line in several lines that can be pasted as they stand: broken between words, `\\` at the ends."""
    if cell_len(command) <= width and "\n" not in command:
        return [command]
    try:
        words = [shlex.quote(word) for word in shlex.split(command)]
    except ValueError:
        return wrap(command, width)
    made = [""]
    for word in words:
        line = f"{made[-1]} {word}" if made[-1].strip() else made[-1] + word
        if cell_len(line) > width - 2 and made[-1].strip():
            made[-1] += " \\"
            line = "  " + word
            made.append("")
        made[-1] = line
    return [piece for line in made for part in line.split("\n") for piece in wrap(inert(part), width)]


def _reach(text: str, start: int, width: int) -> int:
    """The index after the last character that fits in `width` cells; always at least one character on."""
    piece = text[start : start + width]
    if piece.isascii():
        return start + len(piece)
    used, index, limit = 0, start, min(len(text), start + 4 * width)
    while index < limit:
        used += cell_len(text[index])
        if used > width:
            break
        index += 1
    return max(index, start + 1)
