"""The actions of the screen Ecosystem (docs/specs/console.md §2)."""

from __future__ import annotations

from tui.action import ECOSYSTEM, Action
from tui.legal import always

_IN_ECOSYSTEM = frozenset({ECOSYSTEM})

ECOSYSTEM_ACTIONS: tuple[Action, ...] = (
    Action(
        "next-view",
        "t,>",
        "next view",
        "Receipts, statuses, members, graph: the next of them.",
        _IN_ECOSYSTEM,
        2,
        "Look",
        always,
        "collab members table",
    ),
    Action(
        "status-file",
        "f",
        "open a status",
        "Show a status file, and the command that it compiles to.",
        _IN_ECOSYSTEM,
        3,
        "Look",
        always,
        "collab status render FILE",
    ),
)
