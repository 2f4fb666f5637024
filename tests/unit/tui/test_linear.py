"""Every screen and every action has its verb, and the page that says so is the one that is made from the registry."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from core.acp.reader import read
from core.acp.view import gates, next_action
from tests.tables import table_in
from tests.tools_keys import TABLES
from tui.action import DIFF, FOLDER, INBOX, LIST, STORY
from tui.actions import ACTIONS
from tui.cli import MODULES, main
from tui.linear import SCREENS

MOVES = frozenset(
    [
        "back",
        "who",
        "theme",
        "reread",
        "palette",
        "help",
        "quit",
        "filter",
        "fold",
        "narrow",
        "open-only",
        "take",
        "find",
        "filter-log",
        "answered",
        "raw",
        "next-tab",
        "previous-tab",
        "story-on",
        "story-back",
    ]
)
"""Actions that change nothing but the screen itself."""


@pytest.mark.parametrize("place", TABLES, ids=lambda place: place[1])
def test_the_tables_are_those_of_the_registry(place: tuple[Path, str]) -> None:
    path, name = place
    assert table_in(path.read_text(encoding="utf-8"), name) == TABLES[place]()


def test_every_action_has_a_verb_or_only_moves() -> None:
    assert {action.id for action in ACTIONS if action.verb is None} == MOVES
    assert {where for action in ACTIONS for where in action.where} >= {INBOX, LIST, FOLDER, DIFF, STORY}


def test_every_command_of_the_page_is_a_verb_with_options_that_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    for _, _, command in SCREENS:
        words = shlex.split(command)
        assert words[:1] == ["collab"]
        assert words[1] in MODULES, command
        verbs = [word for at, word in enumerate(words) if at and re.fullmatch("[a-z-]+", word) and word[0] != "-"]
        # The ledger's verbs have options of their own.
        named = [word for word in verbs if word != "json"] if words[1] == "ledger" else [words[1]]
        assert main([*named, "--help"]) == 0
        said = capsys.readouterr().out
        for option in re.findall(r"--[a-z-]+", command):
            assert option in said, command


def test_the_verb_says_what_the_screen_says(
    make_folder: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_folder()
    assert main(["show", "--folder", str(folder), "--as", "server"]) == 0
    said = capsys.readouterr().out
    snapshot = read(folder)
    for gate in gates(snapshot):
        assert gate.text in said
    assert next_action(snapshot, "server").text in said
    assert f"phase: {snapshot.state.phase}" in said
