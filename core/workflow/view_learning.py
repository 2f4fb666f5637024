"""Proposals with evidence and diff, counts, and what speaks for swarm mode (docs/specs/workflows.md §5, §8)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from core.workflow.rows import RunRow
from core.workflow.state import World


@dataclass(frozen=True, slots=True)
class ProposalView:
    """A proposal with its evidence in words and what approving would change, as lines before and after."""

    id: str
    kind: str
    state: str
    title: str
    evidence: tuple[tuple[str, str], ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    choices: tuple[str, ...]
    expires_at: str


def proposals(world: World) -> list[ProposalView]:
    """Open ones first, then by id."""
    made = []
    for item in world.learning.proposals.values():
        pattern, proposes = item.pattern, item.proposes
        what = f"{pattern.workflow}: {pattern.kind} of {pattern.agent}, cause {pattern.cause or 'none'}"
        if item.kind == "rule":
            before = (f"{what} → a person is asked",)
            after = (f"{what} → {proposes.option_id}, by rule; a person is told",)
        else:
            before = (f"{proposes.file}: the same error came back ({pattern.cause or 'no cause'})",)
            after = (f"{proposes.file}: a person mends it; the engine changes no file",)
        found = tuple((name, _evidence(world, name)) for name in item.evidence)
        made.append(
            ProposalView(
                item.id, item.kind, item.state, what, found, before, after, proposes.learnable, item.expires_at
            )
        )
    return sorted(made, key=lambda one: (one.state != "open", one.id))


def _evidence(world: World, name: str) -> str:
    entry = world.entry(name)
    if entry is not None:
        decision = entry.decision
        said = "" if decision is None else f", {decision.decided_by} said {decision.option_id or decision.verb}"
        return f"{entry.run_id}, {entry.item}: {entry.cause or 'no cause'}{said}"
    run = world.runs.get(name)
    return "not read" if run is None else f"{run.workflow}, {run.outcome or 'open'}, {run.errors} errors"


def counts(world: World) -> list[dict[str, Any]]:
    """How often the same answer was given to each cause, the highest first."""
    made = [
        {"cause_key": key, "option_id": found.option, "args": found.args, "count": len(found.entries)}
        for key, found in world.learning.answers.items()
    ]
    return sorted(made, key=lambda one: (-one["count"], one["cause_key"]))


def readiness(rows: Iterable[RunRow]) -> dict[str, dict[str, bool]]:
    """Whether a manual and an assisted run of each workflow have ended well: asked for before swarm (§5)."""
    made: dict[str, dict[str, bool]] = {}
    for run in sorted(rows, key=lambda row: row.number):
        known = made.setdefault(run.workflow, {"manual": False, "assisted": False})
        if run.outcome == "success" and run.mode in known:
            known[run.mode] = True
    return made
