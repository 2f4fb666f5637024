"""The code of a failure that a boundary records: as it was observed at its moment (docs/design.md §4)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from core.clock import stamp
from core.finding import Finding, Refused, warning

NO_SIGNAL: Final = ("signal_empty", "signal_is_verdict")


@dataclass(frozen=True, slots=True)
class At:
    """A clock that stands at the moment of an event: it is then that the failure was met."""

    moment: datetime

    def now(self) -> datetime:
        return self.moment


def observed(root: Path, text: str, layer: str, by: str | None, moment: datetime, trouble: list[Finding]) -> str:
    """Observe a failure now, unless it was at its moment; what could not be done is added to `trouble` (warnings)."""
    from core.triage import rules, store

    try:
        known = store.recorded_code(root, text, layer, by, stamp(moment))
        return known or store.observe(store.Place(root), text, layer, by, At(moment)).report.code
    except Refused as exc:
        # A reason that is blank or a mere verdict is no signal; it gets a code of its own all the same.
        trouble += [unwritten(item) for item in exc.findings if item.code not in NO_SIGNAL]
        return rules.mint(text, layer)


def recorded(root: Path, text: str, layer: str, by: str | None, moment: datetime) -> str:
    """The code of a failure, without recording anything."""
    from core.triage import rules, store

    try:
        known = store.recorded_code(root, text, layer, by, stamp(moment))
        return known or rules.code_of(text, layer, store.Place(root).load())
    except Refused:
        return rules.mint(text, layer)


def unwritten(item: Finding) -> Finding:
    """A refusal as the warning that a receipt was not written."""
    return warning(item.code, f"the receipt was not written: {item.cause}", item.next_command, item.where)
