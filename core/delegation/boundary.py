"""Where authority changes in a plan: launches, collections, completed tasks (docs/design.md §4). Pure.

What a receipt of `collab.delegation` says about a boundary and which earlier receipts it rests on. Everything is
derived from the record, so a repeat is the same boundary and a missing receipt can be written again at any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from core.delegation.contract import Chain, Revision
from core.delegation.events import form_problem
from core.delegation.progress import Progress, blockers, criterion_states, evolve, seq_of, text_of

PRODUCER: Final = "collab.delegation"
PAYLOAD_SCHEMA: Final = "collab.delegation_boundary.v1"

Kind = Literal["dispatch", "handoff", "acceptance"]


@dataclass(frozen=True, slots=True)
class Boundary:
    """One boundary. `receipt_id` names its receipt, `parents` those it rests on; `reason` is set when it failed.

    `digests` are those of the record; `evidence` names, by criterion, files that whoever writes the receipt hashes.
    """

    kind: Kind
    receipt_id: str
    seq: int
    ts: str
    actor: str
    task: str
    delegation_id: str | None
    state: str
    digests: Mapping[str, str] = field(default_factory=dict)
    evidence: Mapping[str, str] = field(default_factory=dict)
    parents: tuple[str, ...] = ()
    reason: str | None = None

    def payload(self, plan: str, hashed: Mapping[str, str] | None = None) -> dict[str, Any]:
        """The payload of `collab.delegation_boundary.v1`; `hashed` are the digests of `evidence`, by criterion."""
        return {
            "plan": plan,
            "seq": self.seq,
            "task": self.task,
            "delegation_id": self.delegation_id,
            "state": self.state,
            "digests": {**self.digests, **(hashed or {})},
        }


def receipt_id(contract_id: str, seq: int) -> str:
    """`del-<12 hex of contract_id>-<seq>`."""
    return f"del-{contract_id[:12]}-{seq}"


def failure_reason(event: Mapping[str, Any]) -> str:
    """Why a delegation failed, as its collection says; a sentence of its own when it says nothing."""
    return text_of(event, "note") or f"the delegation ended as failed and nobody said why: {event['delegation_id']}"


def boundaries(chain: Chain, events: Iterable[Mapping[str, Any]]) -> list[Boundary]:
    """All boundaries of a plan, in order.

    A task is accepted when nothing blocks its completion any more. Its boundary has the position of the gate run that
    satisfied its last criterion, or of its start when it has none, so that it never shares one with a delegation.
    """
    walk = _Walk(chain)
    for event in events:
        walk.add(event)
    return walk.found


class _Walk:
    def __init__(self, chain: Chain) -> None:
        self._progress = Progress(chain)
        self._launches: dict[str, str] = {}
        self._collected: dict[str, list[str]] = {}
        self._events: dict[int, Mapping[str, Any]] = {}
        self._made: set[str] = set()
        self.found: list[Boundary] = []

    def add(self, event: Mapping[str, Any]) -> None:
        evolve(self._progress, event)
        seq = seq_of(event)
        if seq is None or form_problem(event, self._progress.chain.live.generation) is not None:
            return
        self._events[seq] = event
        if event["type"] == "delegation":
            self._delegation(event, seq)
        contract = self._progress.chain.judge(event["contract_id"])
        task = text_of(event, "task")
        for name in list(self._progress.starts) if task is None else [task]:
            if name in contract.tasks and name in self._progress.starts:
                self._acceptance(contract, name)

    def _add(self, boundary: Boundary) -> None:
        if boundary.receipt_id not in self._made:
            self._made.add(boundary.receipt_id)
            self.found.append(boundary)

    def _delegation(self, event: Mapping[str, Any], seq: int) -> None:
        name, state, task = event["delegation_id"], event["state"], event["task"]
        made = receipt_id(event["contract_id"], seq)
        kind: Kind = "dispatch" if state == "launched" else "handoff"
        parents: tuple[str, ...] = ()
        if state == "launched":
            self._launches.setdefault(name, made)
        elif state == "cancelled":
            return
        else:
            parents = (self._launches[name],) if name in self._launches else ()
            self._collected.setdefault(task, []).append(made)
        self._add(
            Boundary(
                kind,
                made,
                seq,
                event["ts"],
                event["actor"]["identity"],
                task,
                name,
                state,
                digests={key: event[key] for key in ("prompt_digest", "result_digest") if key in event},
                parents=parents,
                reason=failure_reason(event) if state == "failed" else None,
            )
        )

    def _acceptance(self, contract: Revision, task: str) -> None:
        if blockers(self._progress, contract, task):
            return
        states = criterion_states(self._progress, contract, task)
        seqs = {state.criterion: state.via_seq for state in states if state.via_seq is not None}
        seq = max(seqs.values(), default=self._progress.starts[task])
        event = self._events.get(seq)
        if event is None:
            return
        evidence = {
            name: path for name, at in seqs.items() if (path := text_of(self._events.get(at, {}), "evidence_path"))
        }
        self._add(
            Boundary(
                "acceptance",
                receipt_id(event["contract_id"], seq),
                seq,
                event["ts"],
                event["actor"]["identity"],
                task,
                None,
                "completed",
                evidence=evidence,
                parents=tuple(self._collected.get(task, ())),
            )
        )
