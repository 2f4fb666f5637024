"""Where authority changes: an escalation opened, decided, a run ended (docs/design.md §4).

Receipts are made by whoever writes them; this says of which events, with what in them, and what came before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

PAYLOAD_SCHEMA = "collab.workflow_boundary.v1"
PRODUCER = "collab.workflow"


@dataclass(frozen=True)
class Boundary:
    """One boundary of a run. `seq` is its event's number; `parents` are numbers of the boundaries it rests on.

    `failure` is the text that triage classifies (layer `workflow`), None when nothing failed.
    """

    kind: Literal["escalation", "decision", "closure"]
    run_id: str
    seq: int
    at: str
    parents: tuple[int, ...]
    entry: str | None
    decision: Mapping[str, Any] | None
    outcome: str | None
    failure: str | None

    @property
    def receipt_id(self) -> str:
        """`run-<run_id>-<event number>`, so that a repeat is the same receipt."""
        return f"run-{self.run_id}-{self.seq}"

    def payload(self) -> dict[str, Any]:
        """The receipt's payload, of the schema `PAYLOAD_SCHEMA`."""
        return {
            "schema": PAYLOAD_SCHEMA,
            "run_id": self.run_id,
            "entry": self.entry,
            "decision": None if self.decision is None else dict(self.decision),
            "outcome": self.outcome,
        }


def boundaries(run_id: str, events: Iterable[Mapping[str, Any]]) -> list[Boundary]:
    """The boundaries in a run's event log, in order."""
    made: list[Boundary] = []
    opened: dict[str, int] = {}
    decided: list[int] = []
    for event in events:
        name, seq, at = event["event"], event["seq"], event["at"]
        if name == "entry_opened":
            entry = event["entry"]
            opened[entry["id"]] = seq
            failed = entry["kind"] in ("fail", "error", "partial", "block", "drift", "circuit_break")
            failure = (entry["cause"] or entry["question"]) if failed else None
            made.append(Boundary("escalation", run_id, seq, at, (), entry["id"], None, None, failure))
        elif name in ("entry_decided", "entry_expired"):
            parents = tuple(number for number in (opened.get(event["entry"]),) if number is not None)
            made.append(Boundary("decision", run_id, seq, at, parents, event["entry"], event["decision"], None, None))
            decided.append(seq)
        elif name == "run_completed":
            outcome = event["outcome"]
            failure = None if outcome in ("success", "partial") else f"the run ended as {outcome}"
            made.append(Boundary("closure", run_id, seq, at, tuple(decided), None, None, outcome, failure))
    return made
