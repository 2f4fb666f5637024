"""The looks: one accent, three steps of one neutral, half-strength states (docs/specs/console.md §4).

Besides Textual's own variables each theme sets `$muted`, `$cursor-row`, `$warm`, `$waiting`, `$running`, `$done`,
`$failed` and `$overdue`. `PAIRS` lists every text colour and what it stands on; a test keeps each at 4.5:1.
"""

from __future__ import annotations

from dataclasses import dataclass

from textual.theme import Theme

NAMES = ("dark", "light", "high-contrast", "plain")
"""What `theme` in config.toml may say. `plain` is the terminal's own two colours."""


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours of one theme as `#rrggbb`. Neutrals are nearly grey, so that they keep their steps in 256 colours."""

    ground: str
    raised: str
    cursor: str
    line: str
    text: str
    muted: str
    accent: str
    waiting: str
    running: str
    done: str
    failed: str
    overdue: str
    dark: bool


PALETTES: dict[str, Palette] = {
    "dark": Palette(
        ground="#15171a",
        raised="#1c1f23",
        cursor="#282c33",
        line="#3a4048",
        text="#d8dbe0",
        muted="#989fa9",
        accent="#5cb8ff",
        waiting="#c8a579",
        running="#86aac6",
        done="#7fb68b",
        failed="#f2837c",
        overdue="#e2b04c",
        dark=True,
    ),
    "light": Palette(
        ground="#fbfaf7",
        raised="#f3f1ec",
        cursor="#e7e4dc",
        line="#cbc6bb",
        text="#23272e",
        muted="#5a616b",
        accent="#0a5dc2",
        waiting="#775520",
        running="#3a6485",
        done="#2b6a3b",
        failed="#b1261f",
        overdue="#815200",
        dark=False,
    ),
    "high-contrast": Palette(
        ground="#000000",
        raised="#0c0c0c",
        cursor="#123a63",
        line="#b8b8b8",
        text="#ffffff",
        muted="#d2d2d2",
        accent="#6fe3ff",
        waiting="#ffd29a",
        running="#b4ddff",
        done="#8dffa6",
        failed="#ff9d94",
        overdue="#ffe066",
        dark=True,
    ),
}

PAIRS: tuple[tuple[str, str], ...] = tuple(
    (ink, paper)
    for ink in ("text", "muted", "accent", "waiting", "running", "done", "failed", "overdue")
    for paper in ("ground", "raised", "cursor")
)


def theme_name(name: str) -> str:
    """How a theme is registered with the app."""
    return f"collab-{name}"


def themes() -> list[Theme]:
    """Every theme of the console, ready to be registered."""
    return [*(_theme(name, palette) for name, palette in PALETTES.items()), _plain()]


def _theme(name: str, palette: Palette) -> Theme:
    p = palette
    return Theme(
        name=theme_name(name),
        primary=p.accent,
        secondary=p.waiting,
        accent=p.accent,
        warning=p.overdue,
        error=p.failed,
        success=p.done,
        foreground=p.text,
        background=p.ground,
        surface=p.raised,
        panel=p.raised,
        boost=p.cursor,
        dark=p.dark,
        variables={
            "text": p.text,
            "text-muted": p.muted,
            "text-disabled": p.muted,
            "text-accent": p.accent,
            "text-primary": p.accent,
            "text-error": p.failed,
            "text-warning": p.overdue,
            "text-success": p.done,
            "foreground-muted": p.muted,
            "foreground-disabled": p.muted,
            "border": p.accent,
            "border-blurred": p.line,
            "muted": p.muted,
            "cursor-row": p.cursor,
            "warm": p.waiting,
            "waiting": p.waiting,
            "running": p.running,
            "done": p.done,
            "failed": p.failed,
            "overdue": p.overdue,
            "block-cursor-foreground": p.text,
            "block-cursor-background": p.cursor,
            "block-cursor-text-style": "none",
            "block-cursor-blurred-foreground": p.text,
            "block-cursor-blurred-background": p.raised,
            "block-hover-background": p.cursor,
            "surface-active": p.cursor,
            "input-cursor-background": p.text,
            "input-cursor-foreground": p.ground,
            "input-selection-background": p.line,
            "input-selection-foreground": p.ground if name == "high-contrast" else p.text,
            "screen-selection-background": p.line,
            "scrollbar": p.line,
            "scrollbar-hover": p.muted,
            "scrollbar-active": p.accent,
            "scrollbar-background": p.ground,
            "scrollbar-background-hover": p.ground,
            "scrollbar-background-active": p.ground,
            "scrollbar-corner-color": p.ground,
            "link-color": p.accent,
            "link-color-hover": p.accent,
            "link-background-hover": p.cursor,
            "button-foreground": p.text,
            "button-color-foreground": p.ground,
            "button-focus-text-style": "bold",
            "footer-background": p.ground,
            "footer-key-foreground": p.accent,
            "footer-description-foreground": p.muted,
        },
    )


def _plain() -> Theme:
    """The terminal's own colours: state is glyph and word, the cursor row is reversed."""
    default = "ansi_default"
    roles = ("muted", "warm", "waiting", "running", "done", "failed", "overdue")
    texts = ("text", "text-muted", "text-disabled", "text-accent", "text-primary", "text-error", "text-warning")
    return Theme(
        name=theme_name("plain"),
        primary=default,
        secondary=default,
        accent=default,
        warning=default,
        error=default,
        success=default,
        foreground=default,
        background=default,
        surface=default,
        panel=default,
        boost=default,
        dark=True,
        ansi=True,
        variables={
            **dict.fromkeys((*roles, *texts, "text-success", "foreground-muted", "foreground-disabled"), default),
            "ansi-background": default,
            "ansi-foreground": default,
            "cursor-row": default,
            "surface-active": default,
            "border": default,
            "border-blurred": default,
            "block-cursor-foreground": default,
            "block-cursor-background": default,
            "block-cursor-text-style": "reverse",
            "block-cursor-blurred-text-style": "none",
            "scrollbar": default,
            "scrollbar-hover": default,
            "scrollbar-active": default,
            "scrollbar-background": default,
            "scrollbar-background-hover": default,
            "scrollbar-background-active": default,
            "link-color": default,
            "link-color-hover": default,
            "link-background-hover": default,
            "input-selection-background": default,
            "footer-key-foreground": default,
            "screen-selection-background": default,
        },
    )
