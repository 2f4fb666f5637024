"""Every system has a mode, an action that opens it, and inbox items of its own."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from core.inbox import InboxItem
from tui.action_console import SYSTEMS as OPENERS
from tui.actions import BY_ID
from tui.app import ConsoleApp
from tui.systems import SYSTEMS, mode_of


def item(kind: str) -> InboxItem:
    return InboxItem("x", kind, "decide", Path("/w"), "t", "", "", None, None, "", "", "")


def test_each_mode_is_opened_by_the_action_of_its_name() -> None:
    assert [system.mode for system in SYSTEMS] == [action.id for action in OPENERS]
    assert {system.mode for system in SYSTEMS} == set(ConsoleApp.MODES)
    assert all(mode in BY_ID for mode in ConsoleApp.MODES)


def test_an_item_belongs_to_one_system_and_a_collaboration_has_its_own_screen() -> None:
    kinds = Counter(kind for system in SYSTEMS for kind in system.kinds)
    assert max(kinds.values()) == 1
    assert "acp" not in kinds
    assert mode_of(item("acp")) is None
    for system in SYSTEMS:
        assert {mode_of(item(kind)) for kind in system.kinds} <= {system.mode}
