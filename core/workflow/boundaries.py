"""Where authority changes: an escalation opened, decided, a run ended (docs/design.md §4).

Receipts are made by whoever writes them; this says of which events, with what in them, and what came before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

LAYER = "workflow"
FAILURES = frozenset({"fail", "error", "partial", "block", "drift", "circuit_break"})
"""Kinds of questions that stand for something that went wrong."""
CROSSINGS = frozenset({"entry_opened", "entry_decided", "entry_expired", "run_completed"})
"""Events of a run's log that are boundaries."""
Kind = Literal["escalation", "decision", "closure"]
_SPELLED: Final = {
    "timeout": "no reply came by the deadline of the item",
    "credentials": "the step waits for credentials",
}
_EXIT: Final = re.compile(r"exit_-?\d+")


@dataclass(frozen=True)
class Boundary:
    """One boundary of a run. `seq` is its event's number; `parents` are numbers of the boundaries it rests on.

    `failure` is the text that triage classifies (layer `workflow`), None when nothing failed; `by` is whose it was.
    """

    kind: Kind
    run_id: str
    seq: int
    at: str
    parents: tuple[int, ...] = ()
    entry: str | None = None
    decision: Mapping[str, Any] | None = None
    outcome: str | None = None
    failure: str | None = None
    by: str | None = None

    @property
    def receipt_id(self) -> str:
        """`run-<run_id>-<event number>`, so that a repeat is the same receipt."""
        return f"run-{self.run_id}-{self.seq}"


def failure_text(cause: str) -> str:
    """A cause as a sentence of its own: a bare word of the engine's would be found in anybody's text."""
    return f"the agent ended with {cause}" if _EXIT.fullmatch(cause) else _SPELLED.get(cause, cause)


def failure_of(kind: str, cause: str | None, question: str) -> str | None:
    """The text of what went wrong when a question of this kind was opened, or None when nothing did."""
    if kind not in FAILURES:
        return None
    return failure_text(question if kind == "circuit_break" else cause or question)


class Trail:
    """The boundaries of one run, as its events come; `found` holds them in order."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.spec_hash, self.description = "", ""
        self.found: list[Boundary] = []
        self._opened: dict[str, int] = {}
        self._decided: list[int] = []

    def add(self, event: Mapping[str, Any]) -> None:
        """The next event of the log; most of them are no boundary."""
        name = event["event"]
        if name == "run_started":
            self.spec_hash, self.description = event["spec_hash"], event["spec"].get("description") or ""
        elif name == "entry_opened":
            self._add_opened(event)
        elif name in ("entry_decided", "entry_expired"):
            parents = tuple(number for number in (self._opened.get(event["entry"]),) if number is not None)
            self._add("decision", event, parents=parents, entry=event["entry"], decision=event["decision"])
            self._decided.append(event["seq"])
        elif name == "run_completed":
            outcome = event["outcome"]
            failure = None if outcome in ("success", "partial") else f"the run ended as {outcome}"
            self._add("closure", event, parents=tuple(self._decided), outcome=outcome, failure=failure)

    def _add_opened(self, event: Mapping[str, Any]) -> None:
        entry = event["entry"]
        self._opened[entry["id"]] = event["seq"]
        failure = failure_of(entry["kind"], entry["cause"], entry["question"])
        self._add("escalation", event, entry=entry["id"], failure=failure, by=entry["raised_by"])

    def _add(self, kind: Kind, event: Mapping[str, Any], **fields: Any) -> None:
        self.found.append(Boundary(kind, self.run_id, event["seq"], event["at"], **fields))


def boundaries(run_id: str, events: Iterable[Mapping[str, Any]]) -> list[Boundary]:
    """The boundaries in a run's event log, in order."""
    trail = Trail(run_id)
    for event in events:
        trail.add(event)
    return trail.found
