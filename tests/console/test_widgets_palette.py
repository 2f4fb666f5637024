"""Colours are readable in every theme, signs have an ASCII twin."""

from __future__ import annotations

from typing import get_args

import pytest
from rich.style import Style
from textual.color import Color
from textual.theme import BUILTIN_THEMES

from tests.console.hosts import running
from tui.themes import theme_name
from tui.widgets.glyphs import ASCII, LOOKS, UNICODE, Role, State, glyphs, palette
from tui.widgets.palette import CONTRAST, contrast

THEMES = [*(theme_name(name) for name in ("dark", "light", "high-contrast")), *BUILTIN_THEMES]


def colour(style: Style, ground: bool = False) -> Color:
    found = style.bgcolor if ground else style.color
    assert found is not None
    return Color.from_rich_color(found)


@pytest.mark.parametrize("name", [name for name in THEMES if not name.startswith("ansi") and name != "textual-ansi"])
async def test_every_text_colour_reads_on_every_surface(name: str) -> None:
    async with running() as (app, pilot):
        app.theme = name
        await pilot.pause()
        made = palette(app)
        background = Color.parse(app.theme_variables["background"])
        for role in get_args(Role):
            if role == "border":
                continue
            ink = colour(made.role(role))
            for paper in (background, colour(made.surface, True), colour(made.cursor, True)):
                assert contrast(ink, paper) >= CONTRAST, (role, ink.hex, paper.hex)
        for pair in (made.match, made.current_match):
            assert contrast(colour(pair), colour(pair, True)) >= CONTRAST
        for state in State:
            assert made.state(state).color is not None
        assert made.cursor.bgcolor != made.surface.bgcolor


@pytest.mark.parametrize("name", ["ansi-dark", "ansi-light"])
async def test_terminal_colours_are_named_not_mixed(name: str) -> None:
    async with running() as (app, pilot):
        app.theme = name
        await pilot.pause()
        made = palette(app)
        assert made.failed.color is not None
        assert made.failed.color.triplet is None


async def test_without_colour_states_differ_by_sign_and_weight() -> None:
    async with running() as (app, _):
        app.no_color = True
        made = palette(app)
        assert not made.colour
        assert all(made.role(role).color is None for role in get_args(Role))
        assert made.accent.bold
        assert made.cursor.bold


async def test_signs_are_one_cell_and_have_an_ascii_twin() -> None:
    async with running() as (app, _):
        assert glyphs(app) is UNICODE
        app.ascii_glyphs = True
        assert glyphs(app) is ASCII
    for state in State:
        assert len(UNICODE.state(state)) == 1
        assert ASCII.state(state).isascii()
        assert ASCII.word(state).isascii()
        assert LOOKS[state].variable.startswith("$")
    assert len({UNICODE.state(state) for state in State}) == len(State)
    assert len({ASCII.state(state) for state in State}) == len(State)
    signs = ("reply", "arrow", "cursor", "cut", "line", "bar", "minus", "dash", "bullet", "opening", "closing")
    assert all(getattr(ASCII, sign).isascii() and len(getattr(UNICODE, sign)) == 1 for sign in signs)
