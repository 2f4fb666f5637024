"""What the tests of the engine share: small specs, played scripts, a root on disk with a stepped clock."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from core.workflow.engine import Engine
from core.workflow.signals_in import Chance
from core.workflow.simulate import simulate

T0 = datetime(2026, 4, 1, 8, tzinfo=UTC)
PROFILE = {"receives_from": ["orchestrator"], "sends_to": ["orchestrator"], "zone_access": ["project"]}
AGENTS = {"porter": {**PROFILE, "signals": ["SPAWN", "RETURN", "BLOCKED_ON", "ESCALATE", "HANDOFF"]}}
GO = {"at": 0, "start": {"mode": "swarm", "grant": True}}
RUN = "w-20260401T080000Z-0001"


def spec(items: str = "[a, b, c]", routes: str = "{success: next_item}", more: str = "", zone: str = "project") -> str:
    """A for_each workflow `w` of the agent porter; `more` are further lines."""
    return (
        f"workflow: w\nfor_each:\n  items: {items}\n  spawn: porter\n"
        f'  scope: {{zone: {zone}, files: ["f/{{{{item}}}}"]}}\n  on_return: {routes}\n{more}\n'
    )


def chain(*steps: str, more: str = "external_effect: false") -> str:
    """A chain `w`; each step is the inside of a flow mapping, its number is its place."""
    lines = "".join(f"  - {{step: {number}, {text}}}\n" for number, text in enumerate(steps, 1))
    return f"name: w\nchain:\n{lines}{more}\n"


def play(
    text: str,
    *steps: Mapping[str, Any],
    agents: Mapping[str, Any] | None = AGENTS,
    specs: Sequence[str] = (),
) -> dict[str, Any]:
    """The output of a simulation."""
    script: dict[str, Any] = {"steps": list(steps)}
    if agents is not None:
        script["agents"] = agents
    if specs:
        script["specs"] = list(specs)
    return simulate(text, "spec.yml", json.dumps(script)).output


def reply(at: float, item: str, result: Any = "success", **more: Any) -> dict[str, Any]:
    """A step: the agent answers for an item."""
    value: dict[str, Any] = {"item": item, **more}
    if "signal" not in more:
        value["result"] = result
    return {"at": at, "reply": value}


def decide(at: float, number: int, option: str | None = None, **more: Any) -> dict[str, Any]:
    """A step: a person answers the n-th escalation."""
    value: dict[str, Any] = {"escalation": number, **more}
    if option is not None:
        value["option"] = option
    return {"at": at, "decide": value}


def codes(output: Mapping[str, Any]) -> list[list[str]]:
    return [answer["codes"] for answer in output["answers"]]


class Stepped:
    """A clock that a test moves."""

    def __init__(self, moment: datetime = T0) -> None:
        self.moment = moment

    def now(self) -> datetime:
        return self.moment

    def step(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


def counted() -> Chance:
    """Chance without chance."""
    return Chance(
        token=lambda number: f"tok-{number}",
        suffix=lambda number: f"{number:04x}",
        packet=lambda number: f"sig-{number}",
    )


def lay(path: Path, *specs: str, agents: Mapping[str, Any] = AGENTS) -> Path:
    """A root on disk with those specs (named w, w2, …) and agents."""
    (path / "workflows").mkdir(parents=True)
    (path / "agents").mkdir()
    for number, text in enumerate(specs, 1):
        (path / "workflows" / ("w.yml" if number == 1 else f"w{number}.yml")).write_text(text, "utf-8")
    for name, profile in agents.items():
        ipc = json.dumps(profile)
        (path / "agents" / f"{name}.md").write_text(f"---\nbrain:\n  ipc: {ipc}\n---\n\n# {name}\n", "utf-8")
    return path


def engine(path: Path, clock: Stepped, **more: Any) -> Engine:
    return Engine(path, clock=clock, chance=counted(), **more)


def lines(path: Path, name: str) -> list[dict[str, Any]]:
    """The records of a log below a root."""
    file = path / name
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []
