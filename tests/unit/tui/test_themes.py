"""Every text colour reads at 4.5:1 on everything that it stands on, in every theme."""

from __future__ import annotations

from typing import get_args, get_type_hints

import pytest
from rich.cells import cell_len
from rich.color import Color as RichColor
from textual.app import App
from textual.color import Color

from tui.ascii import SIGNS
from tui.settings import Settings
from tui.themes import NAMES, PAIRS, PALETTES, theme_name, themes
from tui.widgets.glyphs import LOOKS, State, palette


def luminance(color: Color) -> float:
    parts = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in color.normalized]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(Color.parse(one)), luminance(Color.parse(other))))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", sorted(PALETTES))
@pytest.mark.parametrize(("ink", "paper"), PAIRS)
def test_contrast(name: str, ink: str, paper: str) -> None:
    palette = PALETTES[name]
    assert contrast(getattr(palette, ink), getattr(palette, paper)) >= 4.5


STYLES = ("accent", "live", "warm", "done", "failed", "warn", "muted", "text", "strong", "added", "removed", "code")


@pytest.mark.parametrize("name", sorted(PALETTES))
async def test_what_is_drawn_reads_on_every_surface_that_it_is_drawn_on(name: str) -> None:
    """Computed from the styles that widgets get, after everything that makes them."""
    app: App[None] = App()
    async with app.run_test() as pilot:
        for theme in themes():
            app.register_theme(theme)
        app.theme = theme_name(name)
        await pilot.pause()
        colours = palette(app)
        papers = [PALETTES[name].ground, drawn(colours.surface.bgcolor), drawn(colours.cursor.bgcolor)]
        for style in STYLES:
            for paper in papers:
                assert contrast(drawn(getattr(colours, style).color), paper) >= 4.5, style
        for style in (colours.match, colours.current_match):
            assert contrast(drawn(style.color), drawn(style.bgcolor)) >= 4.5


def drawn(color: RichColor | None) -> str:
    assert color is not None
    assert color.triplet is not None
    return str(color.triplet.hex)


def test_no_state_is_told_by_colour_alone() -> None:
    assert set(LOOKS) == set(State)
    for signs in ([look.glyph for look in LOOKS.values()], [look.ascii for look in LOOKS.values()]):
        assert len(set(signs)) == len(signs)
        assert all(cell_len(sign) == 1 for sign in signs)
    assert all(look.ascii.isascii() for look in LOOKS.values())
    words = [look.word for look in LOOKS.values()]
    assert len(set(words)) == len(words)


def test_every_sign_of_the_drawing_has_an_ascii_form_of_its_own_width() -> None:
    for sign, plain in SIGNS.items():
        assert cell_len(chr(sign)) == cell_len(plain) == 1
        assert plain.isascii()


def test_the_themes_are_those_of_the_settings() -> None:
    assert [theme.name for theme in themes()] == [theme_name(name) for name in NAMES]
    assert get_args(get_type_hints(Settings)["theme"]) == NAMES


def test_every_theme_has_every_variable_of_the_first() -> None:
    wanted = set(themes()[0].variables) - {"block-cursor-blurred-foreground", "block-cursor-blurred-background"}
    for theme in themes():
        missing = wanted - {*theme.to_color_system().generate(), *theme.variables}
        assert not missing, theme.name
