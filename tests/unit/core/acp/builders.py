"""Setups, documents and drafts for tests of the pure part: no folder, no clock."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from core.acp.model import Document, Draft, Event, Setup, State, read_setup
from core.acp.rules import Facts, decide, fold
from core.files import sha256
from core.finding import Finding, error

NOW = datetime(2026, 3, 1, 9, 0, 0, tzinfo=UTC)
PEOPLE = ("server", "reader", "editor")
GATE = "Measured (p95 < 5 ms) [cache]"

READINESS = f"""\
# Readiness

- [resolved] Key layout.
- [deferred_nonblocking] Sizes. Reason: defaults will do.

- [x] Ready to implement
- [x] {GATE}
"""

CONCLUSION = """\
# Conclusion

## Decision Outcome

- [proceed] Build it.

## Rationale

It fits.

## Accepted Decisions

- One.

## Implementation Approach

In steps.

## Assumptions

- None.

## Deferred Follow-ups

- None.

## Implementation Blockers

- None.

## Next Action

Open the change.
"""

DELIVERABLE = """\
# Design

Status: Frozen

## Problem

a

## Goals

b

## Non-goals

c

## Proposed Design

d

## Interfaces / Contracts

e

## Failure Modes

f

## Validation Plan

g

## Open Questions

h
"""
REF = "deliverables/design-spec.md"


def setup(people: Sequence[str] = PEOPLE, gates: Sequence[Any] = (GATE,), **extra: Any) -> Setup:
    """A schema 1 setup, read as from a file."""
    raw = {
        "objective": "Agree on the cache.",
        "participants": [{"id": name} for name in people],
        "completionGates": list(gates),
        "currentPhase": "drafting",
        "proposalOwner": people[0] if people else None,
        "waitingFor": list(people[:1]),
        "createdAt": "2026-03-01T08:00:00Z",
        "updatedAt": "2026-03-01T08:00:00Z",
        **extra,
    }
    made, problem = read_setup(json.dumps(raw).encode())
    assert made is not None, problem
    return made


def setup2(**extra: Any) -> Setup:
    """A schema 2 setup with a design-spec as its primary deliverable and a supporting test-plan."""
    return setup(
        gates=[{"source": "objective", "text": GATE}],
        protocol="acp",
        schemaVersion=2,
        deliverables={
            "mode": "internal",
            "dir": "deliverables",
            "owner": "server",
            "primary": {"type": "design-spec", "file": "design-spec.md", "checklist": []},
            "supporting": [{"type": "test-plan", "file": "test-plan.md"}],
            "attachments": [],
        },
        **extra,
    )


DOCUMENTS = {
    "proposal.md": "# Proposal\n",
    "review.md": "# Review\n",
    "decisions.md": "# Decisions\n",
    "readiness.md": READINESS,
    "conclusion.md": CONCLUSION,
    REF: DELIVERABLE,
}


def document(name: str, text: str | None) -> Document:
    if text is None:
        return Document(name, None, None, error("file_missing", f"missing {name}", where=name))
    return Document(name, text.encode(), sha256(text.encode()))


def facts(made: Setup, **changes: str | None) -> Facts:
    """Documents that stand in no event's way; `readiness_md=…` replaces one."""
    known = {**DOCUMENTS, **{name.replace("_md", ".md"): text for name, text in changes.items()}}
    if made.schema >= 2 and "conclusion_md" not in changes:
        known["conclusion.md"] = (
            CONCLUSION.replace(
                "## Accepted Decisions\n", f"## Deliverable Receipt\n\n- `{REF}`\n\n## Readiness Result\n"
            )
            + "\n## Accepted Decisions Summary\n\n- One.\n"
        )
    return Facts(lambda name: document(name, known.get(name)), lambda name: document(name, known.get(name)), made)


def draft(who: str, event: str, last: int | None, **fields: Any) -> Draft:
    """A draft with what its event needs: the document of `completed`, role and digest of a deliverable."""
    if event == "completed":
        fields.setdefault("doc", "conclusion.md")
    if event.startswith("deliverable_"):
        fields.setdefault("doc", REF)
        fields.setdefault("role", "primary")
        if event == "deliverable_frozen":
            fields.setdefault("sha256", sha256(DELIVERABLE.encode()))
    fields.setdefault("reply_to", last or None)
    return Draft(who, event, fields.pop("summary", "What was done."), **fields)


class Talk:
    """A log in memory that grows by what `decide` accepts."""

    def __init__(self, made: Setup, *steps: tuple[str, str], **documents: str | None) -> None:
        self.setup = made
        self.facts = facts(made, **documents)
        self.events: list[Event] = []
        for who, event in steps:
            found = self.take(who, event)
            assert found == [], (who, event, found)

    @property
    def state(self) -> State:
        return fold(self.setup, self.events).state

    def take(self, who: str, event: str, now: datetime = NOW, **fields: Any) -> list[Finding]:
        """Append if it is legal; the findings if it is not."""
        made, found = self.decide(draft(who, event, len(self.events), **fields), now)
        if made is not None:
            self.events.append(made)
        return found

    def decide(self, wanted: Draft, now: datetime = NOW) -> tuple[Event | None, list[Finding]]:
        return decide(self.state, self.setup, self.events, wanted, self.facts, now)


INIT = (("server", "initialized"),)
SUBMITTED = (*INIT, ("server", "proposal_submitted"))
ONE_REVIEW = (*SUBMITTED, ("editor", "review_submitted"))
REVIEWED = (*ONE_REVIEW, ("reader", "review_submitted"))
REVISED = (*REVIEWED, ("server", "proposal_revised"))
CLASSIFIED = (*REVISED, ("server", "question_classified"))
ONE_ACCEPTED = (*CLASSIFIED, ("reader", "decision_accepted"))
ACCEPTED = (*ONE_ACCEPTED, ("server", "decision_accepted"), ("editor", "decision_accepted"))
PASSED = (*ACCEPTED, ("server", "readiness_passed"))
COMPLETED = (*PASSED, ("server", "completed"))
BLOCKED = (*REVISED, ("editor", "blocked"))

SITUATIONS: dict[str, tuple[tuple[str, str], ...]] = {
    "empty": (),
    "drafting": INIT,
    "reviewing": SUBMITTED,
    "one review": ONE_REVIEW,
    "revising": REVIEWED,
    "revised": REVISED,
    "classified": CLASSIFIED,
    "one accepted": ONE_ACCEPTED,
    "readiness_check": ACCEPTED,
    "passed": PASSED,
    "completed": COMPLETED,
    "blocked": BLOCKED,
}
