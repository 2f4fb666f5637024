"""The plan of `collab demo`: delegates carried by a script, one left open, one claim that no gate has observed.

The script is a transport of the sample's own: it hands nothing over. What it records goes the way of every launch and
collection, with receipts and failure codes.
"""

from __future__ import annotations

import json
import os
import pkgutil
import random
import shlex
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from core.clock import SYSTEM, Clock
from core.finding import Refused, error

from tui.cli.base import DONE, Out

PLACE: Final = "rollout"
PARENT: Final = "planner"
PACE: Final = (4.0, 9.0)
"""Seconds between two steps of the script at speed 1."""


def sample() -> dict[str, Any]:
    """The shipped sample: contract, addon, what has happened, what happens."""
    made: dict[str, Any] = json.loads(pkgutil.get_data("collab_templates", "demo/plan.json") or b"{}")
    return made


@dataclass
class _At:
    """A clock that stands where the script says."""

    moment: datetime

    def now(self) -> datetime:
        return self.moment


class Script:
    """The parent agent of the sample plan: takes steps of its script, under its own name."""

    def __init__(self, repo: Path, clock: Clock) -> None:
        from core.delegation.place import at
        from core.delegation.writer import World

        self.repo = repo
        self.place = at(repo / ".dwp" / "plans" / sample()["contract"]["plan"])
        self.world = World(clock, os.environ, lambda: os.urandom(3).hex())

    def lay(self) -> None:
        """The repository: an addon that is switched on, the plan's text, the plan made of its contract."""
        from core.delegation.materialize import Beginning, materialize

        known = sample()
        key = known["addon"]["key"]
        files = {
            f".agents/skills/deepworkplan/addons/{key}/addon.json": json.dumps(known["addon"], indent=2) + "\n",
            ".dwp/config.json": json.dumps({"addons": {key: {"enabled": True}}}, indent=2) + "\n",
            known["addon"]["detect"]["paths"][0]: "The delegates of this sample are played by a script.\n",
            f".dwp/plans/{self.place.name}/README.md": known["markdown"],
        }
        for name, text in files.items():
            path = self.repo / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        (self.repo / "results").mkdir(exist_ok=True)
        draft = json.dumps(known["contract"]).encode("utf-8")
        self._did(materialize(self.place, self.world, Beginning(draft, authority="reader")))

    def step(self, said: Mapping[str, Any]) -> str:
        """One step; returns what the ledger says of it."""
        from core.delegation import gates, store

        actor = {"kind": "agent", "identity": PARENT}
        task = said.get("task", "")
        if "start" in said:
            return self._did(store.start(self.place, self.world, said["start"], actor))
        if "complete" in said:
            return self._did(store.complete(self.place, self.world, said["complete"]))
        if "gate" in said:
            check = self._check(task, said["gate"])
            asked = gates.Gate(task, said["gate"], shlex.split(check), timeout=60)
            return self._did(gates.gate(self.place, self.world, asked))
        if "launch" in said:
            return self._did(
                store.launch(self.place, self.world, store.Delegating(task, self._launch(said), {}, actor))
            )
        payload = {"delegation_id": said["collect"], "state": said["state"]}
        payload.update({name: said[key] for key, name in (("result", "result_path"), ("note", "note")) if key in said})
        if "result" in said:
            (self.repo / said["result"]).write_text(said["text"], encoding="utf-8")
        return self._did(store.end(self.place, self.world, "collect", store.Delegating(task, payload, {}, actor)))

    def _check(self, task: str, criterion: str) -> str:
        tasks = {item["id"]: item for item in sample()["contract"]["tasks"]}
        return str(next(item["check"] for item in tasks[task]["gate_intent"] if item["criterion"] == criterion))

    def _launch(self, said: Mapping[str, Any]) -> dict[str, Any]:
        from core.delegation import brief, reader

        name = said["launch"]
        worktree = f"../worktrees/{name}"
        contract = reader.read(self.place).chain.live
        made = brief.compose(contract, said["task"], name, worktree)
        return {
            "transport": "headless",
            "via": sample()["addon"]["key"],
            "kind": "script",
            "worktree": worktree,
            "prompt_digest": made.digest,
            "delegation_id": name,
        }

    def _did(self, made: Any) -> str:
        """Leave the receipts of what was recorded, and say what it was."""
        from core.governance import plan_boundary

        left = plan_boundary.leave(self.place.plan, frozenset(event["seq"] for event in made.events))
        codes = "".join(f" ({code})" for code in left.codes.values())
        return str(made.message).removeprefix("OK: ") + codes


def build(folder: Path, clock: Clock = SYSTEM) -> Path:
    """A plan with a past: one task is complete, one has a claim and an open delegate, one launch was refused."""
    now, known = clock.now(), sample()
    stepping = _At(now + timedelta(minutes=known["past"][0]["at"] - 1))
    script = Script(folder / PLACE, stepping)
    script.lay()
    for said in known["past"]:
        stepping.moment = now + timedelta(minutes=said["at"])
        script.step(said)
    return script.place.plan


def serve(repo: Path, speed: float, stop: threading.Event) -> int:
    """Play what happens now, step by step, until it is over or somebody stops it."""
    from core.delegation.writer import Halt

    pace = random.Random("script")  # noqa: S311 - a pace, not a secret
    script = Script(repo, SYSTEM)
    for said in sample()["live"]:
        if stop.wait(pace.uniform(*PACE) / speed):
            return DONE
        try:
            script.step(said)
        except (Halt, Refused):
            # Somebody else is at work in this plan, which is what the demo is for.
            continue
    return DONE


def play(folder: Path, out: Out, clock: Clock = SYSTEM) -> Mapping[str, Any]:
    """The whole story at once, without a screen."""
    plan = build(folder, clock)
    script = Script(folder / PLACE, clock)
    out.line(f"{PARENT} delegates parts of {plan.name}, carried by a script")
    said: Sequence[str] = [script.step(one) for one in sample()["live"]]
    for text in said:
        out.line(f"  {text}")
    from core.delegation import reader, view

    record = reader.read(script.place)
    made = view.timeline(record, clock.now())
    rolled = made.rolled()
    complete = [task.id for task in made.tasks if task.status == "completed"]
    counts = f"{rolled.total} delegated, {rolled.open} open, {rolled.claims} not observed"
    out.line(f"plan: {counts}; complete: {', '.join(complete)}")
    if "T-rate" not in complete:
        raise Refused(error("demo_failed", f"the sample plan in {plan} did not come to its end"))
    return {
        "plan": made.plan,
        "events": made.events,
        "delegated": rolled.total,
        "open": rolled.open,
        "complete": complete,
    }
