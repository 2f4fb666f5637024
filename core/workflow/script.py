"""Scripts of a simulation: read, and refused as a whole when anything is wrong (docs/specs/workflows.md §10)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from core.workflow import paths, times
from core.workflow.findings import SpecFinding
from core.workflow.matrix import read_profile
from core.workflow.model import MODES, Profile
from core.workflow.yaml_nodes import parse, plain

T0 = "2026-04-01T08:00:00.000Z"
CRASHES = ("before_commit", "before_dispatch", "after_dispatch")
TICKS_CAP = 100_000
_SHARED = frozenset({"at", "no_tick", "crash"})


@dataclass(frozen=True)
class ScriptStep:
    """One step: its action, the action's value, true milliseconds since t0."""

    do: str
    value: Any
    at: int
    no_tick: bool
    crash: str | None


@dataclass(frozen=True)
class Script:
    t0: int
    profiles: Mapping[str, Profile] | None
    specs: tuple[str, ...]
    steps: tuple[ScriptStep, ...]


class Malformed(Exception):
    """Why a script is refused."""


def read(text: str) -> Script | SpecFinding:
    """The script, or the finding `E_SCRIPT`; YAML or JSON."""
    try:
        data = _data(text)
        return _script(data)
    except Malformed as exc:
        return SpecFinding("E_SCRIPT", "error", str(exc), 1, 1)


def _data(text: str) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            raise Malformed("a key is there twice")
        return made

    try:
        return json.loads(text, object_pairs_hook=once)
    except RecursionError:
        raise Malformed("nested too deeply") from None
    except ValueError:
        tree = parse(text, templates=False)
        if tree.problems:
            problem = tree.problems[0]
            raise Malformed(f"line {problem.line}, column {problem.column}: {problem.cause}") from None
        return None if tree.root is None else plain(tree.root)


def _script(data: Any) -> Script:
    if isinstance(data, list):
        data = {"steps": data}
    if not isinstance(data, dict):
        raise Malformed("a script is a list of steps, or {t0, agents, specs, steps}")
    _known(data, {"t0", "agents", "specs", "steps"}, "the script")
    t0 = times.read(data.get("t0", T0))
    if t0 is None:
        raise Malformed("t0 is no time with a zone")
    specs, listed = data.get("specs"), data.get("steps")
    if specs is not None and not (isinstance(specs, list) and all(isinstance(text, str) for text in specs)):
        raise Malformed("specs is a list of texts")
    if listed is not None and not isinstance(listed, list):
        raise Malformed("steps is a list")
    steps: list[ScriptStep] = []
    for number, raw in enumerate(listed or ()):
        steps.append(_step(raw, number, steps[-1].at if steps else 0))
    return Script(t0, _profiles(data), tuple(specs or ()), tuple(steps))


def _profiles(data: Mapping[str, Any]) -> Mapping[str, Profile] | None:
    given = data.get("agents")
    if given is None:
        return None
    if not isinstance(given, dict) or not all(isinstance(item, dict) for item in given.values()):
        raise Malformed("agents maps names to profiles")
    return {str(name): read_profile(item) for name, item in given.items()}


def _known(value: Mapping[str, Any], known: set[str], what: str) -> None:
    odd = sorted(str(key) for key in value if key not in known)
    if odd:
        raise Malformed(f"{what} has no key {odd[0]!r}")


def _step(raw: Any, number: int, before: int) -> ScriptStep:
    if not isinstance(raw, dict):
        raise Malformed(f"step {number} is no mapping")
    actions = [key for key in raw if key not in _SHARED]
    if len(actions) != 1 or actions[0] not in ACTIONS:
        raise Malformed(f"step {number} needs exactly one action of {', '.join(ACTIONS)}")
    at = before if raw.get("at") is None else _moment(raw["at"], number)
    if at < before:
        raise Malformed(f"step {number} lies before the step ahead of it")
    crash, no_tick = raw.get("crash"), raw.get("no_tick", False)
    if crash is not None and crash not in CRASHES:
        raise Malformed(f"step {number}: crash is one of {', '.join(CRASHES)}")
    if not isinstance(no_tick, bool):
        raise Malformed(f"step {number}: no_tick is true or false")
    do = actions[0]
    try:
        ACTIONS[do](raw[do])
    except Malformed as exc:
        raise Malformed(f"step {number}, {do}: {exc}") from None
    return ScriptStep(do, raw[do], at, no_tick, crash)


def _moment(value: Any, number: int) -> int:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and 0 <= value < 1e10:
        return round(value * 1000)
    made = times.span(value) if isinstance(value, str) else None
    if made is None:
        raise Malformed(f"step {number}: at is seconds since t0, or a duration")
    return made


def _mapping(value: Any, known: set[str]) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Malformed("the value is a mapping")
    _known(value, known, "it")
    return value


def _texts(value: Mapping[str, Any], *keys: str) -> None:
    for key in keys:
        if value.get(key) is not None and not isinstance(value[key], str):
            raise Malformed(f"{key} is a text")


def _flag(value: Mapping[str, Any], key: str) -> None:
    if value.get(key) is not None and not isinstance(value[key], bool):
        raise Malformed(f"{key} is true or false")


def _reference(value: Mapping[str, Any], key: str, required: bool) -> None:
    given = value.get(key)
    if given is None and not required:
        return
    if not isinstance(given, str) and type(given) is not int:
        raise Malformed(f"{key} is an id or a number")


def _start(raw: Any) -> None:
    value = _mapping(raw, {"workflow", "mode", "grant", "as", "parent"})
    _texts(value, "workflow", "mode", "as", "parent")
    _flag(value, "grant")
    if value.get("mode") not in (None, *MODES):
        raise Malformed(f"mode is one of {', '.join(MODES)}")


def _reply(raw: Any) -> None:
    known = {"item", "index", "run", "attempt", "signal", "result", "context", "options", "decision", "from", "id"}
    value = _mapping(raw, known)
    _texts(value, "from", "id", "signal")
    _reference(value, "run", required=False)
    if ("item" in value) == ("index" in value):
        raise Malformed("it needs item or index")
    for key in ("index", "attempt"):
        if value.get(key) is not None and type(value[key]) is not int:
            raise Malformed(f"{key} is a number")
    if "item" in value and isinstance(value["item"], (dict, list)):
        raise Malformed("item is a text")


def _signal(raw: Any) -> None:
    return


def _decide(raw: Any) -> None:
    known = {"escalation", "option", "accept", "respond", "defer", "args", "note", "as", "channel", "key", "token"}
    value = _mapping(raw, known)
    _reference(value, "escalation", required=True)
    _texts(value, "option", "respond", "defer", "note", "as", "channel", "key", "token")
    _flag(value, "accept")
    ways = [key for key in ("option", "respond", "defer") if value.get(key) is not None]
    if len(ways) + (value.get("accept") is True) != 1:
        raise Malformed("it needs one of option, accept, respond, defer")
    if value.get("defer") is not None and not times.span(value["defer"]):
        raise Malformed("defer is a duration")


def _ack(raw: Any) -> None:
    value = _mapping(raw, {"escalation", "as", "key", "note", "channel"})
    _reference(value, "escalation", required=True)
    _texts(value, "as", "key", "note", "channel")


def _abort(raw: Any) -> None:
    value = _mapping(None if raw is True else raw, {"run", "as", "note"})
    _reference(value, "run", required=False)
    _texts(value, "as", "note")


def _approve(raw: Any) -> None:
    value = _mapping(raw, {"proposal", "option", "as"})
    _reference(value, "proposal", required=True)
    _texts(value, "option", "as")


def _reject(raw: Any) -> None:
    value = _mapping(raw, {"proposal", "rule", "as"})
    if ("proposal" in value) == ("rule" in value):
        raise Malformed("it needs proposal or rule")
    _reference(value, "proposal" if "proposal" in value else "rule", required=True)
    _texts(value, "as")


def _tick(raw: Any) -> None:
    if raw is not True and not (type(raw) is int and 1 <= raw <= TICKS_CAP):
        raise Malformed("it is true, or how many ticks")


def _touch(raw: Any) -> None:
    if not isinstance(raw, str) or paths.normal(raw) in (None, paths.HERE):
        raise Malformed("it is a path below the root")


def _spec(raw: Any) -> None:
    value = _mapping(raw, {"workflow", "text"})
    _texts(value, "workflow", "text")
    name = value.get("workflow")
    if not isinstance(value.get("text"), str):
        raise Malformed("it needs text")
    if not isinstance(name, str) or "/" in name or name.startswith(".") or "\0" in name:
        raise Malformed("it needs the name of a workflow")


def _jump(raw: Any) -> None:
    if jump(raw) is None:
        raise Malformed("it is a duration, '-' before it to go back")


def jump(raw: Any) -> int | None:
    """Milliseconds by which the wall clock moves."""
    if not isinstance(raw, str):
        return None
    made = times.span(raw.removeprefix("-").strip())
    return None if made is None else -made if raw.startswith("-") else made


def _restart(raw: Any) -> None:
    if raw is not True:
        raise Malformed("it is true")


ACTIONS: Mapping[str, Callable[[Any], None]] = {
    "start": _start,
    "reply": _reply,
    "signal": _signal,
    "decide": _decide,
    "ack": _ack,
    "abort": _abort,
    "approve": _approve,
    "reject": _reject,
    "tick": _tick,
    "touch": _touch,
    "spec": _spec,
    "jump": _jump,
    "restart": _restart,
}
