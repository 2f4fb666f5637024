"""The systems of the console: the mode and screen of each, and whose items of the inbox are its own."""

from __future__ import annotations

from dataclasses import dataclass

from core.inbox import InboxItem
from tui.screens.collaborations import CollaborationsScreen
from tui.screens.delegations import DelegationsScreen
from tui.screens.ecosystem import EcosystemScreen
from tui.screens.frame import ConsoleScreen
from tui.screens.inbox import InboxScreen
from tui.screens.triage import TriageScreen
from tui.screens.workflows import WorkflowsScreen


@dataclass(frozen=True, slots=True)
class System:
    """One system. `mode` is also the id of the action that opens it; `kinds` are those of its inbox items."""

    mode: str
    screen: type[ConsoleScreen]
    kinds: frozenset[str] = frozenset()


DELEGATION_KINDS = frozenset(
    {"plan", "delegation-open", "delegation-ungated", "delegation-result-changed", "delegation-result-missing"}
)

SYSTEMS: tuple[System, ...] = (
    System("inbox", InboxScreen),
    System("collaborations", CollaborationsScreen),
    System("delegations", DelegationsScreen, DELEGATION_KINDS),
    System("workflows", WorkflowsScreen, frozenset({"workflow"})),
    System("triage", TriageScreen, frozenset({"triage"})),
    System("ecosystem", EcosystemScreen, frozenset({"receipt", "status"})),
)


def mode_of(item: InboxItem) -> str | None:
    """The mode whose screen shows this item; None for a collaboration, which has a screen of its own."""
    return next((system.mode for system in SYSTEMS if item.kind in system.kinds), None)
