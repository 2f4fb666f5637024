"""Simulation: the same engine, store and lock in a temporary root, a virtual clock (docs/specs/workflows.md §10)."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core import journal
from core.files import Root
from core.workflow import times
from core.workflow.findings import Placed, SpecFinding
from core.workflow.layout import NOTIFICATIONS, OUTBOX, SCRATCH, SIGNALS, WORKFLOWS, log_file
from core.workflow.loader import Loaded, load
from core.workflow.matrix import read_profile
from core.workflow.model import OPEN_PROFILE, OPERATOR
from core.workflow.record import RecordText, record
from core.workflow.script import T0, Script, ScriptStep, jump, read
from core.workflow.simulate_acts import act
from core.workflow.simulate_stage import Stage, VirtualClock
from core.workflow.specs import FixedProfiles
from core.workflow.state import ENGINE_STREAM, World


@dataclass
class Played:
    """What a simulation comes to: the output object, and whether SPEC or SCRIPT was refused."""

    output: dict[str, Any]
    refused: bool
    findings: tuple[Placed, ...] = ()


def simulate(spec_text: str, spec_name: str, script_text: str, script_name: str = "script") -> Played:
    """Play a script. The same input gives the same output; nothing outside a temporary folder is touched."""
    script = read(script_text)
    fixed = script if isinstance(script, Script) else Script(times.read(T0) or 0, None, (), ())
    stem = Path(spec_name).stem
    texts = [spec_text, *fixed.specs]
    texts_later = [str(step.value["text"]) for step in fixed.steps if step.do == "spec"]
    profiles = _profiles(fixed, [load(text, "spec.yml", stem) for text in (*texts, *texts_later)])
    stems = [stem, *(f"spec-{number}" for number in range(2, len(texts) + 1))]
    loaded = [
        load(text, f"{name}.yml", None, known=lambda name: profiles(name) is not None)
        for text, name in zip(texts, stems, strict=True)
    ]
    findings = [item for one in loaded for item in one.placed()]
    refused = loaded[0].spec is None
    with tempfile.TemporaryDirectory(prefix="collab-simulate-") as folder:
        path = Path(folder)
        _lay_out(path, loaded, texts)
        clock = VirtualClock(fixed.t0)
        stage = Stage(path, fixed, profiles, loaded[0].workflow, clock)
        try:
            answers: list[dict[str, Any]] = []
            if isinstance(script, SpecFinding):
                findings.append(script.finding(None, script_name))
                refused = True
            else:
                answers = _play(stage)
            return Played(_output(stage, findings, answers), refused, tuple(findings))
        finally:
            stage.close()


def _profiles(script: Script, specs: list[Loaded]) -> FixedProfiles:
    if script.profiles is not None:
        return FixedProfiles(script.profiles)
    named = frozenset(name for item in specs if item.spec is not None for name in item.spec.agents)
    return FixedProfiles({}, read_profile(OPEN_PROFILE), named)


def _lay_out(path: Path, loaded: list[Loaded], texts: list[str]) -> None:
    (path / "ambient").mkdir()
    with Root(path, SCRATCH) as root:
        for item, text in zip(reversed(loaded), reversed(texts), strict=True):
            root.replace(f"{WORKFLOWS}/{item.workflow}.yml", text.encode("utf-8", "surrogatepass"))


def _play(stage: Stage) -> list[dict[str, Any]]:
    script = stage.script
    if not any(step.do == "start" for step in script.steps):
        stage.people.start(stage.workflow, "swarm", True, None, OPERATOR)
        stage.tick()
    answers, leapt = [], 0
    for number, step in enumerate(script.steps):
        stage.run_until(script.t0 + step.at + leapt)
        before = stage.written()
        if step.do == "jump":
            leapt += jump(step.value) or 0
            stage.clock.moment = script.t0 + step.at + leapt
        made = act(stage, step)
        crashed = _ticks(stage, step)
        answers.append(
            {
                "step": number,
                "at": times.text(stage.clock.moment),
                "do": step.do,
                "codes": [],
                **made,
                "changed": stage.written() != before,
                "crashed": crashed,
            }
        )
    return answers


def _ticks(stage: Stage, step: ScriptStep) -> bool:
    if step.no_tick or stage.dead:
        return False
    ticks = step.value if step.do == "tick" and step.value is not True else 1
    return any(stage.tick(step.crash) for _ in range(ticks))


def _output(stage: Stage, findings: list[Placed], answers: list[dict[str, Any]]) -> dict[str, Any]:
    """Everything as it lies in the files now."""
    world, root = stage.look(), stage.engine.root
    now = max(stage.clock.moment, world.last_at)
    runs = world.in_order()
    entries = [world.entry(name) for name in stage.entries()]
    return {
        "v": 1,
        "clock": times.text(stage.clock.moment),
        "load": [item.as_json() for item in findings],
        "answers": answers,
        "runs": [record(run, now) for run in runs],
        "records": [RecordText().text(run, now) for run in runs],
        "escalations": [entry.public() for entry in entries if entry is not None],
        "proposals": [item.plain() for item in world.learning.proposals.values()],
        "rules": [item.plain() for item in world.learning.rules.values()],
        "rejected": rejected(root, world),
        "emitted": [line.record for line in journal.read(root, OUTBOX).lines],
        "notifications": [line.record for line in journal.read(root, NOTIFICATIONS).lines],
        "log": log_lines(root, world),
    }


def events_of(root: Root, name: str) -> list[dict[str, Any]]:
    """The records of a log."""
    return [line.record for line in journal.read(root, name).lines if line.record is not None]


def rejected(root: Root, world: World) -> list[dict[str, Any]]:
    """Rejected packets in order of rejection, which is that of arrival: of runs, and of none."""
    arrived: dict[str, int] = {}
    for number, line in enumerate(journal.read(root, SIGNALS).lines):
        arrived.setdefault(str((line.record or {}).get("id")), number)
    found: list[tuple[str, str | None, dict[str, Any]]] = []
    for stream in (ENGINE_STREAM, *world.order):
        for event in events_of(root, log_file(stream)):
            if event["event"] in ("packet_rejected", "signal_rejected"):
                found.append((event["at"], None if stream == ENGINE_STREAM else stream, event))
    found.sort(key=lambda item: (item[0], arrived.get(item[2]["packet"], len(arrived))))
    return [
        {
            "id": event["packet"],
            "run_id": run_id,
            "from": event["from"],
            "signal": event["signal"],
            "reason": event["reason"],
            "at": at,
        }
        for at, run_id, event in found
    ]


def log_lines(root: Root, world: World) -> list[dict[str, Any]]:
    """One line per `log` effect, in order."""
    found = []
    for run_id in world.order:
        for event in events_of(root, log_file(run_id)):
            if event["event"] == "effect_run" and event["effect"] == "log":
                line = {"at": event["at"], "run_id": run_id}
                found.append({**line, **{key: event[key] for key in ("index", "item", "verdict", "cause")}})
    return sorted(found, key=lambda line: line["at"])
