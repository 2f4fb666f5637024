"""Every text colour reads at 4.5:1 on everything that it stands on, in every theme."""

from __future__ import annotations

from typing import get_args, get_type_hints

import pytest
from textual.color import Color

from tui.settings import Settings
from tui.themes import NAMES, PAIRS, PALETTES, theme_name, themes


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


def test_the_themes_are_those_of_the_settings() -> None:
    assert [theme.name for theme in themes()] == [theme_name(name) for name in NAMES]
    assert get_args(get_type_hints(Settings)["theme"]) == NAMES


def test_every_theme_has_every_variable_of_the_first() -> None:
    wanted = set(themes()[0].variables) - {"block-cursor-blurred-foreground", "block-cursor-blurred-background"}
    for theme in themes():
        missing = wanted - {*theme.to_color_system().generate(), *theme.variables}
        assert not missing, theme.name
