"""The systems of the console: the mode and screen of each, and whose items of the inbox are its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from core.inbox import InboxItem
from tui.screens.collaborations import CollaborationsScreen
from tui.screens.frame import ConsoleScreen
from tui.screens.inbox import InboxScreen


@dataclass(frozen=True, slots=True)
class System:
    """One system. `mode` is also the id of the action that opens it; `kinds` are those of its inbox items.

    `screen` makes its screen the first time that it is opened.
    """

    mode: str
    screen: Callable[[], ConsoleScreen]
    kinds: frozenset[str] = frozenset()


def _made(module: str, name: str) -> Callable[[], ConsoleScreen]:
    """A screen whose module is read when it is opened: the first paint does not wait for what nobody looks at."""

    def make() -> ConsoleScreen:
        kind: type[ConsoleScreen] = getattr(import_module(f"tui.screens.{module}"), name)
        return kind()

    return make


DELEGATION_KINDS = frozenset(
    {"plan", "delegation-open", "delegation-ungated", "delegation-result-changed", "delegation-result-missing"}
)

SYSTEMS: tuple[System, ...] = (
    System("inbox", InboxScreen),
    System("collaborations", CollaborationsScreen),
    System("delegations", _made("delegations", "DelegationsScreen"), DELEGATION_KINDS),
    System("workflows", _made("workflows", "WorkflowsScreen"), frozenset({"workflow"})),
    System("triage", _made("triage", "TriageScreen"), frozenset({"triage"})),
    System("ecosystem", _made("ecosystem", "EcosystemScreen"), frozenset({"receipt", "status"})),
)


def mode_of(item: InboxItem) -> str | None:
    """The mode whose screen shows this item; None for a collaboration, which has a screen of its own."""
    return next((system.mode for system in SYSTEMS if item.kind in system.kinds), None)
