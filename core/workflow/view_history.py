"""How a run came about: its log, event by event; its spec with the current route marked (docs/specs/console.md §2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from core.workflow.evolve import evolve
from core.workflow.model import Route, Spec, Verdict
from core.workflow.shapes import problem
from core.workflow.state import Event, Run, Step, World

_EVERY = 256
"""Events between two worlds that are kept, so that stepping costs the same at the end of a long log."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One line of a run's timeline. `tone`: done, running, failed, waits, note."""

    seq: int
    at: str
    tone: str
    text: str
    item: str | None
    event: Mapping[str, Any]


_TONES = {
    "spawn_intended": "running",
    "entry_opened": "waits",
    "entry_decided": "done",
    "run_completed": "done",
    "run_aborted": "failed",
    "signal_rejected": "failed",
    "breaker_opened": "failed",
}


def timeline(events: Iterable[Mapping[str, Any]], spec: Spec) -> list[Moment]:
    """A run's events in words, for a timeline and for stepping through."""
    made = []
    for event in events:
        name = event["event"]
        index = event.get("index")
        if name == "entry_opened":
            index = event["entry"]["item_index"]
        item = spec.items[index] if isinstance(index, int) and index < len(spec.items) else None
        tone = _TONES.get(name, "note")
        if name == "step_closed":
            tone = {"success": "done", "escalated": "waits", "blocked": "waits"}.get(event["result"], "failed")
        made.append(Moment(event["seq"], event["at"], tone, _words(name, event), item, event))
    return made


def event_words(event: Mapping[str, Any]) -> str:
    """One event of any log, in words."""
    return _words(event["event"], event)


def _words(name: str, event: Mapping[str, Any]) -> str:
    if name == "run_started":
        return f"started by {event['by']} in {event['mode']} mode"
    if name == "spawn_intended":
        resumed = f".{event['resumes']}" if event["resumes"] else ""
        return f"attempt {event['attempt']}{resumed} to {event['sends']['to']}"
    if name == "step_closed":
        cause = f": {event['cause']}" if event["cause"] else ""
        return f"{event['result']} after {event['duration_ms']} ms{cause}"
    if name == "signal_accepted":
        return f"{event['signal']} from {event['from']}"
    if name == "signal_rejected":
        return f"{event['signal']} from {event['from']} rejected: {event['reason']}"
    if name == "effect_run":
        return "a retry is due at " + event["due"] if event["effect"] == "retry" else f"{event['effect']}"
    if name == "entry_opened":
        return f"{event['entry']['id']}: {event['entry']['question']}"
    if name in ("entry_decided", "entry_expired"):
        decision = event["decision"]
        return f"{event['entry']}: {decision['option_id'] or decision['verb']} by {decision['decided_by']}"
    if name == "item_closed":
        return (
            f"closed{' as ' + event['result'] if event['result'] else ''}{' by ' + event['by'] if event['by'] else ''}"
        )
    if name == "rule_fired":
        return f"{event['rule']} answered {event['option_id']}"
    if name == "run_completed":
        return f"ended: {event['outcome']}"
    if name == "run_aborted":
        return f"aborted by {event['by']}"
    named = event.get("entry")
    return name.replace("_", " ") + (f" ({named})" if isinstance(named, str) else "")


@dataclass(frozen=True, slots=True)
class SpecLine:
    """One line of a compiled spec; `current` marks where the run stands, `taken` what it took last."""

    text: str
    current: bool = False
    taken: bool = False


def route_text(route: Route) -> str:
    """A route in the words of §3."""
    words = [effect.do if effect.target is None else f"{effect.do} {effect.target}" for effect in route.effects]
    if route.retry is not None:
        words.append(f"retry({route.retry})")
    control = route.control
    named = {
        "next": "next",
        "goto": f"goto step at {control.step}",
        "escalate": f"ESCALATE {control.target}",
        "block": f"BLOCKED_ON {control.target}",
        "gate": "gate:human" + (f' → "{control.text}"' if control.text else ""),
        "abort": "abort",
    }
    return "→ " + " + ".join([*words, named[control.do]])


def spec_lines(spec: Spec, run: Run | None = None) -> list[SpecLine]:
    """The compiled spec as lines, with the items in flight or waiting and the last route of each kind marked."""
    busy = set() if run is None else {*run.flight, *run.waiting}
    if run is not None:
        busy |= {e.item_index for name in run.open_entries if (e := run.entries.get(name)) and e.item_index is not None}
    last = run.steps[len(run.steps) - 1] if run is not None and len(run.steps) else None
    made = [SpecLine(f"{spec.workflow} ({spec.grammar}, {len(spec.items)} items, {spec.max_parallel} at once)")]
    verdicts: tuple[Verdict, ...] = ("success", "fail", "partial", "error")
    for number, work in enumerate(spec.works):
        chain = spec.grammar == "chain"
        label = spec.items[number] if chain else "each item"
        current = number in busy if chain else bool(busy)
        gate = "".join(f", gate {name}" for name in (work.before, work.after) if name)
        made.append(
            SpecLine(f"  {label}: {work.agent} in {work.zone} on {', '.join(work.files) or '–'}{gate}", current)
        )
        for verdict in verdicts:
            mine = last is not None and last.result == verdict and (last.place == number or not chain)
            made.append(SpecLine(f"    {verdict}: {route_text(work.route(verdict))}", taken=mine))
    return made


class History:
    """A run's log as far as it was read, and the run as it was after any of its events."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.events: list[Mapping[str, Any]] = []
        self._kept: list[World] = [World()]
        self._last = World()

    def add(self, events: Iterable[Mapping[str, Any]]) -> None:
        """More events of the log, in order. Raises one of `shapes.NOT_ONE` at the first that is none."""
        for record in events:
            wrong = problem(self.run_id, record, self._last.runs.get(self.run_id))
            if wrong is not None:
                raise ValueError(wrong)
            self._last = evolve(self._last, Event(self.run_id, record))
            self.events.append(record)
            if len(self.events) % _EVERY == 0:
                self._kept.append(self._last)

    def at(self, index: int) -> Run | None:
        """The run right after the event at `index`; None before its first."""
        kept = min((index + 1) // _EVERY, len(self._kept) - 1)
        world = self._kept[kept]
        for record in self.events[kept * _EVERY : index + 1]:
            world = evolve(world, Event(self.run_id, record))
        return world.runs.get(self.run_id)


@dataclass(frozen=True, slots=True)
class Lane:
    """Where a step lies on a line of so many cells: from the cell `start`, over `length` of them (at least one)."""

    start: int
    length: int


def lanes(steps: Sequence[Step], width: int, now: int) -> list[Lane]:
    """Each step as a piece of one line of time; a span in which no step is at work takes one cell at most."""
    spans = [(step.spawned_at, _ended(step, now)) for step in steps]
    marks = sorted({moment for span in spans for moment in span})
    if not marks or width < 1:
        return []
    busy, reach = [], -1
    begins = sorted(spans)
    at = 0
    for left, right in pairwise(marks):
        while at < len(begins) and begins[at][0] <= left:
            reach = max(reach, begins[at][1])
            at += 1
        busy.append(right - left if reach > left else 0)
    worked = max(1, sum(busy))
    places, place = {marks[0]: 0.0}, 0.0
    for (left, right), length in zip(pairwise(marks), busy, strict=True):
        place += length or min(right - left, worked / width)
        places[right] = place
    scale = width / max(place, 1.0)
    made = []
    for begin, end in spans:
        start = min(width - 1, int(places[begin] * scale))
        made.append(Lane(start, max(1, min(width - start, round(places[end] * scale) - start))))
    return made


def _ended(step: Step, now: int) -> int:
    return step.spawned_at + step.duration_ms if step.duration_ms is not None else max(now, step.spawned_at)
