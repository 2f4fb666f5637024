"""Concrete colours of the active theme, every text colour readable on every surface (docs/specs/console.md §4).

Themes name a few colours; a reader needs 4.5:1. What is too faint is moved towards the text colour until it
reads on the background, on a surface and on the cursor row alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

from rich.style import Style
from textual.color import Color, ColorParseError

if TYPE_CHECKING:
    from textual.app import App

    from tui.widgets.glyphs import State

Role = Literal[
    "accent", "live", "warm", "done", "failed", "warn", "muted", "text", "border", "added", "removed", "code"
]

ROLES: Final[Mapping[str, Role]] = {
    "mine": "accent",
    "waiting": "warm",
    "live": "live",
    "done": "done",
    "failed": "failed",
    "warn": "warn",
    "unknown": "muted",
}
"""The role of each state's colour."""

CONTRAST: Final = 4.5


@dataclass(frozen=True, slots=True)
class Palette:
    """Rich styles of one theme. All but `cursor`, `match` and `surface` are foregrounds only.

    Without colour (`NO_COLOR`) the foregrounds differ by weight alone, and the cursor row by its mark and weight.
    """

    name: str
    dark: bool
    colour: bool
    accent: Style
    live: Style
    warm: Style
    done: Style
    failed: Style
    warn: Style
    muted: Style
    text: Style
    strong: Style
    border: Style
    added: Style
    removed: Style
    code: Style
    surface: Style
    cursor: Style
    match: Style
    current_match: Style

    def state(self, state: State) -> Style:
        """The foreground style of a state's glyph and word."""
        return self.role(ROLES[state.value])

    def role(self, role: Role) -> Style:
        """The foreground style of a role."""
        style: Style = getattr(self, role)
        return style


def luminance(color: Color) -> float:
    """Relative luminance of WCAG 2, from 0 (black) to 1 (white)."""
    parts = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in color.normalized)
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True))


def contrast(one: Color, other: Color) -> float:
    """The contrast ratio of WCAG 2, from 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def readable(color: Color, grounds: tuple[Color, ...], text: Color) -> Color:
    """`color`, or the nearest mix of it with `text` that has the wanted contrast on every ground."""
    for step in range(21):
        made = color.blend(text, step / 20)
        if all(contrast(made, ground) >= CONTRAST for ground in grounds):
            return made
    return text


_VARIABLES: Final = (
    "accent",
    "running",
    "warm",
    "success",
    "error",
    "warning",
    "foreground",
    "muted",
    "border-blurred",
    "background",
    "surface",
    "cursor-row",
)


def palette(app: App[object]) -> Palette:
    """The palette of the app's active theme; variables that a theme does not set follow from those that it does."""
    theme, variables = app.current_theme, app.theme_variables
    if app.no_color or (theme.ansi and theme.accent == "ansi_default"):
        return _plain(theme.name, theme.dark)
    if theme.ansi:
        return _ansi(theme.name, theme.dark)
    return _make(theme.name, theme.dark, tuple(variables.get(name, "") for name in _VARIABLES))


def _parse(text: str, fallback: Color) -> Color:
    try:
        color = Color.parse(text) if text else fallback
    except ColorParseError:
        return fallback
    return fallback if color.ansi is not None or color.auto else color


@lru_cache(maxsize=16)
def _make(name: str, dark: bool, values: tuple[str, ...]) -> Palette:
    given = dict(zip(_VARIABLES, values, strict=True))
    background = _parse(given["background"], Color.parse("#121212" if dark else "#f4f4f4"))

    def pick(variable: str, fallback: Color) -> Color:
        return background + _parse(given[variable], fallback)

    text = pick("foreground", Color.parse("#e0e0e0" if dark else "#202020"))
    surface, cursor = pick("surface", background), pick("cursor-row", background.blend(text, 0.11))
    grounds = (background, surface, cursor)
    extreme = Color.parse("white" if luminance(background) < 0.18 else "black")
    text = readable(text, grounds, extreme)

    def clear(color: Color) -> Color:
        return readable(color, grounds, text)

    accent = clear(pick("accent", Color.parse("#4c9aff")))
    warning = pick("warning", Color.parse("#d9a441"))
    added, removed = clear(pick("success", Color.parse("#4ebf71"))), clear(pick("error", Color.parse("#e0566f")))
    match = background.blend(warning, 0.35)
    return Palette(
        name,
        dark,
        True,
        accent=_fore(accent, bold=True),
        live=_fore(clear(pick("running", accent.blend(background, 0.35)))),
        warm=_fore(clear(pick("warm", warning.blend(background, 0.35)))),
        done=_fore(added),
        failed=_fore(removed, bold=True),
        warn=_fore(clear(warning)),
        muted=_fore(clear(pick("muted", text.blend(background, 0.42)))),
        text=_fore(text),
        strong=_fore(text, bold=True),
        border=_fore(pick("border-blurred", text.blend(background, 0.7))),
        added=_fore(added),
        removed=_fore(removed),
        code=_fore(clear(text.blend(accent, 0.35))),
        surface=Style(bgcolor=surface.rich_color),
        cursor=Style(bgcolor=cursor.rich_color),
        match=Style(color=readable(text, (match,), extreme).rich_color, bgcolor=match.rich_color),
        current_match=Style(color=background.rich_color, bgcolor=clear(warning).rich_color, bold=True),
    )


def _fore(color: Color, bold: bool | None = None) -> Style:
    return Style(color=color.rich_color, bold=bold)


def _named(name: str, bold: bool | None = None) -> Style:
    return Style(color=name, bold=bold)


@lru_cache(maxsize=4)
def _ansi(name: str, dark: bool) -> Palette:
    """The terminal's own sixteen colours: their contrast is the terminal's business."""
    live, warm = ("cyan", "yellow") if dark else ("blue", "magenta")
    return Palette(
        name,
        dark,
        True,
        accent=_named(live, True),
        live=_named(live),
        warm=_named(warm),
        done=_named("green"),
        failed=_named("red", True),
        warn=_named(warm),
        muted=_named("default"),
        text=_named("default"),
        strong=_named("default", True),
        border=_named("bright_black"),
        added=_named("green"),
        removed=_named("red"),
        code=_named(live),
        surface=Style(),
        cursor=Style(bold=True),
        match=Style(underline=True, bold=True),
        current_match=Style(reverse=True),
    )


@lru_cache(maxsize=4)
def _plain(name: str, dark: bool) -> Palette:
    none, bold = Style(), Style(bold=True)
    return Palette(
        name,
        dark,
        False,
        accent=bold,
        live=none,
        warm=none,
        done=none,
        failed=bold,
        warn=bold,
        muted=none,
        text=none,
        strong=bold,
        border=none,
        added=none,
        removed=none,
        code=none,
        surface=none,
        cursor=bold,
        match=Style(underline=True),
        current_match=Style(reverse=True),
    )
