"""The actions of the screen Triage (docs/specs/console.md §2)."""

from __future__ import annotations

from tui.action import TRIAGE, Action
from tui.legal import Context, Reason, always, selected

_IN_TRIAGE = frozenset({TRIAGE})


def has_signal(context: Context) -> Reason | None:
    """A signal that is no mere verdict, and a catalogue to classify it with."""
    if not context.signal:
        return Reason("give a signal first (s), or open a file with one (f)")
    return Reason(context.obstacle) if context.obstacle else None


def unresolved(context: Context) -> Reason | None:
    """A minted code that was met here and that nobody has settled."""
    if context.minted is None:
        return Reason("this is no minted code: select one, or give an unknown signal (s)")
    return Reason(context.settled) if context.settled else None


TRIAGE_ACTIONS: tuple[Action, ...] = (
    Action(
        "signal",
        "s",
        "signal",
        "Type or paste a signal.",
        _IN_TRIAGE,
        1,
        "Look",
        always,
        "collab triage classify --text TEXT",
    ),
    Action(
        "open-signal",
        "f",
        "open a file",
        "Take the signal from a file.",
        _IN_TRIAGE,
        12,
        "Look",
        always,
        "collab triage classify --receipt FILE",
    ),
    Action(
        "layer",
        "l",
        "layer",
        "Choose the layer that the signal came from.",
        _IN_TRIAGE,
        6,
        "Look",
        always,
        "collab triage classify --layer LAYER --receipt FILE",
    ),
    Action(
        "record",
        "o,f2",
        "record",
        "Record that this signal was met.",
        _IN_TRIAGE,
        3,
        "Act",
        has_signal,
        "collab triage observe --receipt -",
    ),
    Action(
        "promote",
        "p",
        "promote",
        "Give this unknown failure a name.",
        _IN_TRIAGE,
        2,
        "Act",
        unresolved,
        "collab triage promote MINTED",
    ),
    Action(
        "alias",
        "a",
        "alias",
        "Make this unknown failure mean a code that exists.",
        _IN_TRIAGE,
        4,
        "Act",
        unresolved,
        "collab triage alias MINTED CODE",
    ),
    Action(
        "take",
        "enter",
        "take its signal",
        "Put the signal of this row into the field.",
        _IN_TRIAGE,
        8,
        "Look",
        selected,
        own=True,
    ),
    Action(
        "catalogue",
        "t",
        "catalogue",
        "Show the catalogue, or what was met.",
        _IN_TRIAGE,
        10,
        "Look",
        always,
        "collab triage catalog",
    ),
)
