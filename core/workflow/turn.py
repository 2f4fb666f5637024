"""The working set of one decision: the world as it becomes, and the events that made it so (§6).

Everything here is pure; what must be known from outside comes in as `Facts`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from core.workflow import times
from core.workflow.evolve import evolve
from core.workflow.model import CHANNELS, CONSOLE, ENGINE
from core.workflow.state import ENGINE_STREAM, LEARNING_STREAM, Event, Item, Run, Step, World

Commands = Literal["none", "allowed", "refused", "elsewhere"]


def _nothing(_: str) -> bool:
    return False


def _no_command(_: str) -> Commands:
    return "none"


@dataclass(frozen=True)
class Facts:
    """What decisions may know besides the world.

    `specs`: workflow to the hash of its file now, None for a broken one; None: nobody looked.
    `exists`: whether a path below the root is there. `commands`: how an agent's processes stand in this engine.
    `token`: the resume token of the n-th entry. `run_id` suffix of the n-th run.
    """

    specs: Mapping[str, str | None] | None = None
    exists: Callable[[str], bool] = _nothing
    commands: Callable[[str], Commands] = _no_command
    token: Callable[[int], str] = lambda number: f"tok-{number}"
    suffix: Callable[[int], str] = lambda number: f"{number:04x}"


class Turn:
    """Emits events and lets the world follow each of them at once."""

    def __init__(self, world: World, now: int, facts: Facts | None = None) -> None:
        self.world = world
        self.now = max(now, world.last_at)
        self.facts = facts or Facts()
        self.events: list[Event] = []
        self.reminded: set[str] = set()

    @property
    def at(self) -> str:
        return times.text(self.now)

    def run(self, run_id: str) -> Run:
        return self.world.runs[run_id]

    def item(self, run_id: str, index: int) -> Item:
        return self.world.runs[run_id].items[index]

    def last_step(self, run_id: str, index: int) -> Step:
        step = self.world.runs[run_id].last_step(index)
        if step is None:
            raise ValueError(f"{run_id}/{index} was never started")
        return step

    def emit(self, stream: str, event: str, **fields: Any) -> None:
        """Log an event now; the world follows."""
        if stream == LEARNING_STREAM:
            seq = self.world.learning.seq + 1
        elif stream == ENGINE_STREAM:
            seq = self.world.engine_seq + 1
        else:
            run = self.world.runs.get(stream)
            seq = 1 if run is None else run.seq + 1
        made = Event(stream, {"seq": seq, "at": self.at, "event": event, **fields})
        self.events.append(made)
        self.world = evolve(self.world, made)


def spawn_id(run_id: str, index: int, attempt: int, resumes: int) -> str:
    """`<run_id>/<index>/<attempt>`, after a block `.<resumes>` (§2)."""
    return f"{run_id}/{index}/{attempt}" + (f".{resumes}" if resumes else "")


def packet(
    made_id: str,
    at: str,
    to: str,
    signal: str,
    payload: Mapping[str, Any],
    run_id: str,
    index: int | None = None,
    attempt: int | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A packet of the engine; `id` stands at its head, so that it is found in whatever is cut."""
    return {
        "v": 1,
        "id": made_id,
        "in_reply_to": None,
        "ts": at,
        "from": ENGINE,
        "to": to,
        "signal": signal,
        "run_id": run_id,
        "item_index": index,
        "attempt": attempt,
        "deadline": None,
        **more,
        "payload": {key: value for key, value in payload.items() if value is not None},
    }


def notice(
    made_id: str, channel: str, level: str, event: str, run_id: str | None, entry: str | None = None, **more: Any
) -> dict[str, Any]:
    """A notification; its moment is that of the event that carries it."""
    name = CONSOLE if channel in ("pilote", "human") else channel
    return {
        "id": f"{made_id}/{event}/{name}",
        "channel": name,
        "level": level,
        "event": event,
        "entry": entry,
        "run_id": run_id,
        "ok": name in CHANNELS,
        **more,
    }
