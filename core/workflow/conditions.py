"""Conditions over `identity/*.yml` and the rules of `ambient/rules.yml` (docs/specs/workflows.md §11). Pure.

A path is `file.key.key…` (a list's entry by its number): `budget.rest` is the key `rest` of `identity/budget.yml`.
A test on something that is not there, or of another type, is false.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.workflow import grammar, times
from core.workflow.fields import Fields, is_null
from core.workflow.findings import Findings, SpecFinding
from core.workflow.model import CONSOLE, Check, Condition, Strict
from core.workflow.yaml_nodes import Mapping as YamlMapping
from core.workflow.yaml_nodes import Node, Scalar, parse
from core.workflow.yaml_nodes import Sequence as YamlSequence

LEVELS = ("urgent", "update", "info")
_MISSING = object()


class Notify(Strict):
    channels: tuple[str, ...] = (CONSOLE,)
    level: str = "update"
    message: str = ""


class AmbientRule(Strict):
    """Once its condition has held for `ticks` looks in a row: log, start workflows, tell; then rest `cooldown` ms."""

    id: str
    when: Condition
    ticks: int = 1
    log: bool = False
    starts: tuple[str, ...] = ()
    notify: Notify | None = None
    cooldown: int = 0


@dataclass(frozen=True)
class RulesFile:
    """`ambient/rules.yml` as read: the rules that are right, and findings about the others."""

    rules: tuple[AmbientRule, ...]
    findings: tuple[SpecFinding, ...]


def value_at(data: Mapping[str, Any], path: str) -> Any:
    """What a path leads to in `{file stem: content}`, or a mark that there is nothing."""
    here: Any = data
    for part in path.split("."):
        if isinstance(here, Mapping) and part in here:
            here = here[part]
        elif isinstance(here, list) and part.isdecimal() and int(part) < len(here):
            here = here[int(part)]
        else:
            return _MISSING
    return here


def holds(condition: Condition, data: Mapping[str, Any], now: int) -> bool:
    """Whether a condition is true now (milliseconds)."""
    found = [passes(test, value_at(data, test.path), now) for test in condition.tests]
    return all(found) if condition.match == "all" else any(found)


def passes(test: Check, actual: Any, now: int) -> bool:
    """One test on the value that its path leads to."""
    wanted = test.value
    if test.op == "exists":
        return (actual is not _MISSING and actual is not None) == (wanted is not False)
    if actual is _MISSING:
        return False
    if test.op in ("eq", "ne"):
        return _same(actual, wanted) == (test.op == "eq")
    if test.op == "in":
        return isinstance(wanted, list) and any(_same(actual, item) for item in wanted)
    if test.op == "contains":
        if isinstance(actual, str):
            return isinstance(wanted, str) and wanted in actual
        return isinstance(actual, list) and any(_same(item, wanted) for item in actual)
    if test.op == "age_gt":
        moment, age = times.read(actual), times.span(wanted) if isinstance(wanted, str) else None
        return moment is not None and age is not None and now - moment > age
    return _compares(test.op, actual, wanted)


def _same(one: Any, other: Any) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _compares(op: str, actual: Any, wanted: Any) -> bool:
    numbers = all(isinstance(item, (int, float)) and not isinstance(item, bool) for item in (actual, wanted))
    if not numbers and not (isinstance(actual, str) and isinstance(wanted, str)):
        return False
    return bool(
        {"lt": actual < wanted, "le": actual <= wanted, "gt": actual > wanted, "ge": actual >= wanted}[op],
    )


def read_rules(text: str) -> RulesFile:
    """Read `ambient/rules.yml`; a rule with an error is left out, the others stay."""
    tree, findings = parse(text, templates=False), Findings()
    for problem in tree.problems:
        findings.error("E_YAML", (problem.line, problem.column), problem.cause)
    made: list[AmbientRule] = []
    if isinstance(tree.root, YamlMapping):
        top = Fields(tree.root, (1, 1), "rules.yml", findings)
        top.unknown(("rules",))
        listed = tree.root.get("rules")
        if isinstance(listed, YamlSequence):
            for node in listed.items:
                rule = _rule(node, findings)
                if rule is not None and any(known.id == rule.id for known in made):
                    findings.error("E_VALUE", (node.line, node.column), f"two rules are called {rule.id!r}")
                elif rule is not None:
                    made.append(rule)
        elif top.require("rules"):
            top.wrong_type("rules", "a list")
    elif not tree.problems and tree.root is not None and not is_null(tree.root):
        findings.error("E_TYPE", (1, 1), "rules.yml holds a mapping")
    return RulesFile(tuple(made), findings.sorted())


def _rule(node: Node, findings: Findings) -> AmbientRule | None:
    if not isinstance(node, YamlMapping):
        findings.error("E_TYPE", (node.line, node.column), "a rule is a mapping")
        return None
    before = len(findings.found)
    fields = Fields(node, (node.line, node.column), "rule", findings)
    fields.unknown(("id", "when", "for", "do", "notify", "cooldown"))
    name = fields.text("id", required=True) if fields.require("id") else None
    when = grammar.condition(fields, "when") if fields.require("when") else None
    log, starts = _actions(fields)
    rule_ticks, cooldown = fields.integer("for", 1, 1), fields.span("cooldown", 0, 0) or 0
    notify = _notify(fields.inner("notify"))
    failed = any(item.severity == "error" for item in findings.found[before:])
    if name is None or when is None or failed:
        return None
    return AmbientRule(id=name, when=when, ticks=rule_ticks, log=log, starts=starts, notify=notify, cooldown=cooldown)


def _actions(fields: Fields) -> tuple[bool, tuple[str, ...]]:
    listed = fields.mapping.get("do")
    if is_null(listed):
        return False, ()
    if not isinstance(listed, YamlSequence):
        fields.wrong_type("do", "a list of log and {start: NAME}")
        return False, ()
    log, starts = False, []
    for item in listed.items:
        start = item.get("start") if isinstance(item, YamlMapping) and len(item.pairs) == 1 else None
        if isinstance(item, Scalar) and item.text == "log":
            log = True
        elif isinstance(start, Scalar) and isinstance(start.value, str):
            starts.append(start.value)
        else:
            fields.findings.error("E_VALUE", (item.line, item.column), "an action is log or {start: NAME}")
    return log, tuple(starts)


def _notify(fields: Fields | None) -> Notify | None:
    if fields is None:
        return None
    fields.unknown(("channels", "level", "message"))
    channels = fields.scalars("channels")
    for item in channels or ():
        grammar.channel(item.text, (item.line, item.column), fields.findings)
    return Notify(
        channels=tuple(item.text for item in channels) if channels is not None else (CONSOLE,),
        level=fields.choice("level", LEVELS, "update"),
        message=fields.written("message") or "",
    )


@dataclass(frozen=True)
class Looked:
    """What was seen at the last look: `was` and `held` by key, the moment `at`. Kept between looks."""

    at: int = 0
    was: Mapping[str, bool] | None = None
    held: Mapping[str, int] | None = None

    def follow(self, key: str, true: bool, ticks: int = 1) -> tuple[bool, Looked]:
        """(whether the condition has just become true for so many looks in a row, what is remembered now)."""
        was, held = dict(self.was or {}), dict(self.held or {})
        held[key] = held.get(key, 0) + 1 if true else 0
        now = held[key] >= ticks
        fired = now and not was.get(key, False)
        was[key] = now
        return fired, Looked(self.at, was, held)

    def without_others(self, keys: Sequence[str]) -> Looked:
        """Forget conditions that nobody asks for any more."""
        was, held = self.was or {}, self.held or {}
        kept = [key for key in keys if key in was]
        return Looked(self.at, {key: was[key] for key in kept}, {key: held.get(key, 0) for key in kept})
