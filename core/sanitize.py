"""Untrusted text made inert: nothing that an agent wrote may act on a terminal (docs/specs/console.md §1).

Control characters become visible pictures, bidi and invisible format characters become `⟨202E⟩`. What is
left is printable text, so the functions are idempotent and safe to apply twice.
"""

from __future__ import annotations

import re
import unicodedata

_FORMAT = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufe00-\ufe0f\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd\U00013430-\U0001343f"
)
_UNSAFE = re.compile(f"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef{_FORMAT}]")
_UNSAFE_BLOCK = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef{_FORMAT}]")
_NEWLINES = re.compile("\r\n|\r|\x0b|\x0c|\x85|\u2028|\u2029")


def _picture(match: re.Match[str]) -> str:
    point = ord(match[0])
    if point < 0x20:
        return chr(0x2400 + point)
    if point == 0x7F:
        return "\u2421"
    if 0xD800 <= point <= 0xDFFF:
        return "\ufffd"
    return f"\u27e8{point:04X}\u27e9"


def inert(value: object) -> str:
    """One line of printable text; line breaks and tabs become pictures (`␊`, `␉`)."""
    text = value if isinstance(value, str) else str(value)
    if text.isascii() and text.isprintable():
        return text
    return _UNSAFE.sub(_picture, text)


def inert_block(text: str, tab: int = 4) -> str:
    """Printable text that keeps its lines; every kind of line break becomes `\\n`, tabs become spaces."""
    text = _NEWLINES.sub("\n", text)
    if "\t" in text:
        text = text.expandtabs(tab)
    return _UNSAFE_BLOCK.sub(_picture, text)


def cells(text: str) -> int:
    """Width of inert text in terminal cells: wide and full-width characters take two, combining marks none."""
    if text.isascii():
        return len(text)
    width = 0
    for char in text:
        if unicodedata.category(char) in ("Mn", "Me"):
            continue
        width += 2 if unicodedata.east_asian_width(char) in "WF" else 1
    return width


def clip(text: str, width: int) -> str:
    """`text` cut at its end to `width` cells, with … when something was cut."""
    if cells(text) <= width:
        return text
    if width <= 0:
        return ""
    used, kept = 0, []
    for char in text:
        size = cells(char)
        if used + size > width - 1:
            break
        used += size
        kept.append(char)
    return "".join(kept) + "\u2026"
