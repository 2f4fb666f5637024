"""`--ascii`: the signs that Textual and the texts of the console draw, in seven bits and one cell each.

What documents say in other letters stays as it is: only signs that belong to the drawing are replaced.
"""

from __future__ import annotations

from typing import Final

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

SIGNS: Final = str.maketrans(
    {
        **dict.fromkeys("▁▂▃▄▅▆▇█", " "),
        **dict.fromkeys("─━═▔", "-"),
        **dict.fromkeys("│┃║▎▌▐▏▕▍▊", "|"),
        **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╰╯", "+"),
        "…": "~",
        "·": "-",
        "•": "*",
        "→": ">",
        "−": "-",
        "–": "-",
        "“": '"',
        "”": '"',
    }
)
"""Scrollbar blocks become spaces: their colour stays."""


class AsciiSigns(LineFilter):
    """Replaces signs in every line that is drawn."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The same segments with plain signs."""
        return [
            segment
            if segment.text.isascii()
            else Segment(segment.text.translate(SIGNS), segment.style, segment.control)
            for segment in segments
        ]


__all__ = ["SIGNS", "AsciiSigns"]
