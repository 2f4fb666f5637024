"""How far something is, and where its parts lie in time: thin bars in text (docs/specs/console.md §4)."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text

from tui.widgets.glyphs import Glyphs, Palette


def bar(done: int, total: int, width: int, fill: Style, colours: Palette, signs: Glyphs) -> Text:
    """`━━━━──── ` of so many cells; full only when everything is done, begun as soon as anything is."""
    cells = width if total <= 0 or done >= total else min(width - 1, max(done and 1, done * width // total))
    full, rest = ("=", "-") if signs.ascii else ("━", "─")
    made = Text(end="", no_wrap=True)
    made.append(full * cells, fill)
    made.append(rest * (width - cells), colours.border)
    return made


def lane(start: int, length: int, width: int, fill: Style, signs: Glyphs) -> Text:
    """A piece of a line of time of so many cells."""
    made = Text(" " * start, end="", no_wrap=True)
    made.append(("=" if signs.ascii else "━") * length, fill)
    made.append(" " * max(0, width - start - length))
    return made
