"""The engine's own words for people: options, questions, summaries (docs/specs/workflows.md §7).

Facts of the engine only (item, attempts, causes, scope); an agent's context never comes in here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from core.workflow.model import Kind, Option, Spec, Summary, Work
from core.workflow.state import Run

COUNTED_AS_BLOCK = frozenset({"block_repeated"})
BUILT_IN: dict[str, tuple[str, str]] = {
    "retry": ("Try again", "a new attempt of this item"),
    "skip": ("Skip it", "the item is closed as skipped"),
    "resolve": ("I did it myself", "the item is closed as a success"),
    "abort": ("Stop the run", "nothing more is started; what is in flight is only recorded"),
    "unblocked": ("It is unblocked", "the same attempt is started again"),
    "escalate": ("Make it a decision", "a new question opens instead of this block"),
    "approve": ("Go on", "what waited goes on"),
    "continue": ("Go on", "the count of failures begins again and the run goes on"),
    "seen": ("Seen", "nothing changes; the question leaves the list"),
}
BY_KIND: dict[Kind, tuple[str, ...]] = {
    "block": ("unblocked", "skip", "escalate", "abort"),
    "gate": ("approve", "skip", "abort"),
    "drift": ("approve", "skip", "abort"),
    "circuit_break": ("continue", "abort"),
}
REASONS = {
    "mode_manual": "manual mode asks before every item",
    "external_effect": "the work has effects outside",
    "zone_kernel": "the work is in the zone kernel",
    "zone_personal": "the work is in the zone personal",
    "declared": "the step asks for a person first",
    "entry": "a swarm starts only when a person says so",
    "route": "the route asks for a person",
}


def option(name: str) -> Option:
    """A built-in option."""
    title, effect = BUILT_IN[name]
    return Option(id=name, title=title, effect=effect)


def options(kind: Kind, spec: Spec, entry_gate: bool = False) -> tuple[Option, ...]:
    """The options of a kind, before any agent's own."""
    names: Iterable[str] = BY_KIND.get(kind, spec.on_escalate.options)
    return tuple(option(name) for name in names if not (entry_gate and name == "skip"))


def question(kind: Kind, run: Run, index: int | None, cause: str | None, reasons: Sequence[str]) -> str:
    """What is asked, in one sentence."""
    spec = run.spec
    if index is None:
        return f"Start {spec.workflow} with {len(spec.items)} items in swarm mode?"
    item = spec.items[index]
    why = f": {cause}" if cause else ""
    if kind == "gate":
        before = "Go on after" if "route" in reasons else "Start"
        told = "; ".join(REASONS.get(reason, reason) for reason in reasons)
        return f"{before} {item!r}? ({told})"
    if kind == "agent":
        return f"{spec.work(index).agent} asks how to go on with {item!r}."
    if kind == "block":
        return f"{item!r} is blocked{why}. Unblock it?"
    if kind == "drift":
        return f"{item!r} reports changes outside its scope. Accept them?"
    if kind == "circuit_break":
        return (
            f"{run.breakers.get(breaker_key(spec.work(index)), 0)} failures in a row, the last at {item!r}{why}. Go on?"
        )
    words = {"fail": "failed", "partial": "is only partly done", "error": "ended in an error"}
    return f"{item!r} {words.get(kind, kind)}{why}. What now?"


def breaker_key(work: Work) -> str:
    """Agent, zone and scope template: what the breaker counts for (§4)."""
    return "|".join((work.agent, work.zone, *work.files))


def summary(run: Run, index: int | None, cause: str | None, files: Sequence[str] = ()) -> Summary:
    """What failed, what was tried, what it affects. `files`: the item's, filled."""
    if index is None:
        return Summary(failed=None, tried=None, impact=f"{len(run.spec.items)} items wait for the answer")
    item, steps = run.items[index], [run.steps[at] for at in run.items[index].steps]
    failed = None
    if cause or (steps and steps[-1].result != "success"):
        failed = f"{run.spec.items[index]}: {cause or steps[-1].result}"
    tried = None
    if steps:
        causes = list(dict.fromkeys(step.cause for step in steps[-3:] if step.cause))
        attempts = len({step.attempt for step in steps})
        tried = f"{attempts} attempt{'s' if attempts > 1 else ''} by {steps[-1].agent}"
        tried += f", {item.auto_retries} automatic retries" if item.auto_retries else ""
        tried += f"; last causes: {'; '.join(causes)}" if causes else ""
    work = run.spec.work(index)
    waits = {"human_decision": "the run waits", "item": "this item waits", "none": "the run goes on"}
    scope = ", ".join(files) or "no files"
    return Summary(failed=failed, tried=tried, impact=f"{work.zone}: {scope}; {waits[run.spec.on_escalate.wait]}")
