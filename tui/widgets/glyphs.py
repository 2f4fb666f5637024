"""State is glyph, word and colour: the table of docs/specs/console.md §4, with its ASCII twin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from tui.widgets.palette import ROLES, Palette, Role, palette

if TYPE_CHECKING:
    from textual.app import App

__all__ = ["LOOKS", "ROLES", "Glyphs", "Look", "Palette", "Role", "State", "glyphs", "palette"]


class State(StrEnum):
    """How something stands, as seen by the person at the console."""

    MINE = "mine"
    WAITING = "waiting"
    LIVE = "live"
    DONE = "done"
    FAILED = "failed"
    WARN = "warn"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Look:
    """How a state is shown; `variable` is the theme's CSS variable nearest to its colour."""

    glyph: str
    ascii: str
    word: str
    variable: str


LOOKS: Final[Mapping[State, Look]] = {
    State.MINE: Look("●", "*", "your turn", "$accent"),
    State.WAITING: Look("◐", "o", "waiting", "$secondary"),
    State.LIVE: Look("▸", ">", "running", "$accent"),
    State.DONE: Look("✓", "v", "done", "$success"),
    State.FAILED: Look("✕", "x", "failed", "$error"),
    State.WARN: Look("▲", "!", "stale", "$warning"),
    State.UNKNOWN: Look("○", ".", "–", "$text-muted"),
}


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The signs of one choice (Unicode or ASCII); every sign is one cell wide unless its name says more."""

    ascii: bool
    reply: str
    arrow: str
    cursor: str
    cut: str
    line: str
    bar: str
    minus: str
    dash: str
    bullet: str
    opening: str
    closing: str
    dot: str
    ticked: str
    unticked: str

    def state(self, state: State) -> str:
        """The glyph of a state."""
        look = LOOKS[state]
        return look.ascii if self.ascii else look.glyph

    def word(self, state: State) -> str:
        """The word of a state; the dash of an unknown one is plain in ASCII."""
        return self.dash if state is State.UNKNOWN else LOOKS[state].word


UNICODE: Final = Glyphs(False, "↩", "→", "▌", "…", "─", "▎", "−", "–", "•", "“", "”", "·", "✓", " ")
ASCII: Final = Glyphs(True, "<", ">", "|", "~", "-", "|", "-", "-", "*", '"', '"', "-", "x", " ")


def glyphs(app: App[object]) -> Glyphs:
    """The signs of this app: ASCII when it was started with `--ascii` (its attribute `ascii_glyphs` is true)."""
    return ASCII if getattr(app, "ascii_glyphs", False) else UNICODE
