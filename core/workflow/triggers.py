"""What starts by itself: triggers of workflows and the rules of `ambient/rules.yml` (docs/specs/workflows.md §11)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from core.files import Root, Signature
from core.finding import Finding
from core.workflow import conditions
from core.workflow.conditions import AmbientRule, Looked, RulesFile
from core.workflow.model import Spec
from core.workflow.state import ENGINE_STREAM, World
from core.workflow.turn import Turn, notice
from core.workflow.yaml_nodes import parse, plain

EVERY = 60_000
IDENTITY = "identity"
RULES = "ambient/rules.yml"
MEMORY = "ambient/.conditions.json"
_CAP = 1024 * 1024


@dataclass(frozen=True)
class Start:
    """A workflow that shall start now, and the key under which a skip would be noted."""

    workflow: str
    key: str


def due(world: World, spec: Spec, now: int) -> bool:
    """Whether `{every: D}` is over since the last start, or since the last time that it was skipped."""
    start = next_start(world, spec)
    return start is not None and start <= now


def next_start(world: World, spec: Spec) -> int | None:
    """When `{every: D}` starts the workflow again, or None."""
    if spec.trigger is None or spec.trigger.every is None:
        return None
    starts = [run.started_at for run in world.runs.values() if run.workflow == spec.workflow]
    last = max([*starts, world.fired.get(f"trigger:{spec.workflow}", -1)])
    return 0 if last < 0 else last + spec.trigger.every


def rested(world: World, rule: AmbientRule, now: int) -> bool:
    """Whether the cooldown of a rule is over."""
    last = world.fired.get(f"rule:{rule.id}")
    return last is None or now - last >= rule.cooldown


def fire(turn: Turn, rule: AmbientRule) -> None:
    """Note that a rule's condition became true, and tell whom it says."""
    told = []
    if rule.notify is not None:
        made_id = f"rule:{rule.id}/{turn.at}"
        told = [
            notice(made_id, name, rule.notify.level, "CONDITION", None, None, message=rule.notify.message)
            for name in rule.notify.channels
        ]
    fields: dict[str, Any] = {"key": f"rule:{rule.id}", "rule": rule.id, "log": rule.log}
    turn.emit(ENGINE_STREAM, "condition_fired", **fields, starts=list(rule.starts), notices=told)


def skip(turn: Turn, key: str, workflow: str, reason: str) -> None:
    """Note that a start that was due did not happen."""
    turn.emit(ENGINE_STREAM, "trigger_skipped", key=key, workflow=workflow, reason=reason)


class Surroundings:
    """The files that conditions look at, read again only when they changed."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._identity: dict[str, tuple[Signature | None, Any]] = {}
        self._rules: tuple[Signature | None, RulesFile] = (None, RulesFile((), ()))
        self.findings: tuple[Finding, ...] = ()

    def identity(self) -> dict[str, Any]:
        """`{file stem: content}` of every `identity/*.yml` that can be read."""
        made = {}
        for name in self._root.names(IDENTITY):
            if not name.endswith(".yml"):
                continue
            file = f"{IDENTITY}/{name}"
            signature = self._root.signature(file)
            known = self._identity.get(file)
            if known is None or known[0] != signature:
                text = (self._root.read(file, _CAP).data or b"").decode("utf-8", "replace")
                tree = parse(text, templates=False)
                content = plain(tree.root) if tree.root is not None and not tree.problems else None
                known = self._identity[file] = (signature, content)
            if known[1] is not None:
                made[name.removesuffix(".yml")] = known[1]
        return made

    def rules(self) -> tuple[AmbientRule, ...]:
        signature = self._root.signature(RULES)
        if signature != self._rules[0]:
            data = self._root.read(RULES, _CAP).data
            read = RulesFile((), ()) if data is None else conditions.read_rules(data.decode("utf-8", "replace"))
            self._rules = (signature, read)
            self.findings = tuple(item.finding(None, RULES) for item in read.findings)
        return self._rules[1].rules

    def remembered(self) -> Looked:
        """What the last look saw; nothing when that cannot be read."""
        try:
            made = json.loads(self._root.read(MEMORY, _CAP).data or b"{}")
            was = {str(key): bool(value) for key, value in dict(made.get("was") or {}).items()}
            held = {str(key): int(value) for key, value in dict(made.get("held") or {}).items()}
            return Looked(int(made.get("at") or 0), was, held)
        except (ValueError, TypeError, AttributeError, RecursionError):
            return Looked()

    def remember(self, looked: Looked) -> None:
        text = json.dumps({"at": looked.at, "was": dict(looked.was or {}), "held": dict(looked.held or {})})
        self._root.replace(MEMORY, (text + "\n").encode())


def look(
    turn: Turn, specs: Mapping[str, Spec], surroundings: Surroundings, looked: Looked
) -> tuple[list[Start], Looked]:
    """What is due: starts by time at every look, conditions every 60 s. Returns what to start and to remember."""
    now = turn.now
    found = [Start(name, f"trigger:{name}") for name, spec in specs.items() if due(turn.world, spec, now)]
    waiting = {name: spec for name, spec in specs.items() if spec.trigger is not None and spec.trigger.when is not None}
    rules = surroundings.rules()
    if not (waiting or rules) or (looked.at and 0 <= now - looked.at < EVERY):
        return found, looked
    data = surroundings.identity()
    for name, spec in waiting.items():
        when = spec.trigger.when if spec.trigger is not None else None
        if when is not None:
            fired, looked = looked.follow(f"trigger:{name}", conditions.holds(when, data, now))
            if fired:
                found.append(Start(name, f"trigger:{name}"))
    for rule in rules:
        fired, looked = looked.follow(f"rule:{rule.id}", conditions.holds(rule.when, data, now), rule.ticks)
        if fired and rested(turn.world, rule, now):
            fire(turn, rule)
            found += [Start(name, f"rule:{rule.id}") for name in rule.starts]
    keys = [f"trigger:{name}" for name in waiting] + [f"rule:{rule.id}" for rule in rules]
    return found, replace(looked.without_others(keys), at=now)
