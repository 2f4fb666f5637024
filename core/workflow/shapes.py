"""The shape of every logged event (docs/specs/workflows.md §4, "Log events"). Pure.

A log is read from disk, where anybody may have written: what is not shaped as the engine writes it is no event, and
the log is damaged from there on. Further keys are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic import ValidationError

from core.workflow import times
from core.workflow.model import Control
from core.workflow.state import ENGINE_STREAM, LEARNING_STREAM, Run

NOT_ONE: Final = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
"""What evolving by a record raises that is shaped as an event and cannot be one."""
_Fields = tuple[tuple[str, str, bool], ...]
_LARGEST = 1 << 53


def _fields(text: str) -> _Fields:
    """`name:kinds` by name, kinds and whether it must be there: s text, i number, b boolean, o object, l list of texts,
    n list of notices, p packet, t what an answer leads to, h what goes on after it, a anything; with `?` null too;
    `~` before the name: or absent.
    """
    found = []
    for word in text.split():
        name, kinds = word.split(":")
        found.append((name.lstrip("~"), kinds, not name.startswith("~")))
    return tuple(found)


_PLACE = "index:i attempt:i"
_RUN: Final = {
    "run_started": "run_id:s number:i workflow:s spec:o spec_hash:s mode:s grant:b parent:s by:s agents:o",
    "spawn_intended": f"{_PLACE} resumes:i why:s sends:p ~rule:s?",
    "signal_accepted": "packet:s signal:s from:s ~index:i ~attempt:i ~resumes:i ~entry:s ~recommends:s? ~tells:b",
    "signal_rejected": "packet:s signal:s from:s reason:s ~index:i ~attempt:i ~entry:s?",
    "step_closed": f"{_PLACE} resumes:i step:i result:s signal:s? cause:s? by:s duration_ms:i breaker:s ~final:b",
    "effect_run": f"{_PLACE} effect:s ~item:s ~verdict:s ~cause:s? ~due:s ~target:s?",
    "checkpoint_kept": f"{_PLACE} packet:s signal:s from:s value:a ~deadline:s?",
    "entry_opened": "entry:o hold:h? ~block:s?",
    "entry_decided": "entry:s decision:o ~agent:b",
    "entry_deferred": "entry:s until:s by:s ~note:s?",
    "entry_applied": "entry:s ~then:t? ~granted:b",
    "entry_expired": "entry:s decision:o",
    "entry_cancelled": "entry:s closed_by:o",
    "reminder_due": "entry:s why:s ~overdue:b ~woken:b ~next:s?",
    "item_closed": "index:i result:s? by:s? ~cursor:i? ~resolved:b ~breaker:s",
    "breaker_opened": "index:i breaker:s entry:s",
    "breaker_reset": "breaker:s entry:s",
    "rule_fired": f"{_PLACE} rule:s option_id:s kind:s cause:s? cause_key:s then:t?",
    "spec_changed": "spec_hash:s?",
    "run_aborted": "by:s ~entry:s? ~note:s?",
    "run_completed": "outcome:s total:i counts:o",
}
_ENGINE: Final = {
    "start_refused": "workflow:s codes:l causes:l mode:s by:s",
    "packet_rejected": "packet:s from:s? signal:s? reason:s",
    "spec_disabled": "file:s workflow:s digest:s codes:l",
    "spec_enabled": "file:s",
    "trigger_skipped": "key:s workflow:s reason:s",
    "condition_fired": "key:s rule:s log:b starts:l",
}
_LEARNING: Final = {
    "answer_counted": "entry:s run:s cause_key:s option:s args:o? by:s",
    "error_counted": "run:s cause_key:s",
    "proposal_opened": "proposal:o",
    "proposal_approved": "proposal:s by:s",
    "proposal_rejected": "proposal:s by:s",
    "proposal_archived": "proposal:s",
    "rule_made": "rule:o",
    "rule_used": "rule:s run:s",
    "rule_confirmed": "rule:s",
    "rule_suspended": "rule:s",
    "rule_revoked": "rule:s by:s",
}
_EVERY: Final = _fields("~sends:p ~notices:n?")
_SHAPES: Final = {
    ENGINE_STREAM: {name: _fields(text) for name, text in _ENGINE.items()},
    LEARNING_STREAM: {name: _fields(text) for name, text in _LEARNING.items()},
    "": {name: _fields(text) for name, text in _RUN.items()},
}
_PACKET: Final = _fields("id:s from:s to:s signal:s run_id:s item_index:i? attempt:i? deadline:s? payload:o ~ts:s")
_NOTICE: Final = _fields("id:s channel:s level:s event:s ~entry:s? ~run_id:s? ~ok:b")
_WORK: Final = _fields("item:s index:i attempt:i")
_HOLD: Final = _fields("at:s ~control:c? ~pending:t?")
_THEN: Final = _fields("why:s attempt:i resumes:i ~rule:s? ~context:o? ~unblocked:b ~gate:b ~credentials:b")


def _is(kind: str, value: Any) -> bool:
    test = _TESTS.get(kind)
    return test is None or test(value)


def _is_packet(value: Any) -> bool:
    if _fits(value, _PACKET) is not None:
        return False
    return value["signal"] != "SPAWN" or _fits(value["payload"].get("context"), _WORK) is None


def _is_control(value: Any) -> bool:
    try:
        Control.model_validate(value, strict=False)
    except ValidationError:
        return False
    return True


def _fits(record: Any, fields: _Fields) -> str | None:
    """The first field that is not as it must be, None when all are."""
    if not isinstance(record, dict):
        return "it"
    for name, kinds, needed in fields:
        if name not in record:
            if needed:
                return name
        elif (value := record[name]) is None:
            if not kinds.endswith("?") and kinds != "a":
                return name
        elif (kind := _PLAIN.get(kinds)) is not None:
            if type(value) is not kind:
                return name
        elif not _is(kinds[0], value):
            return name
    return None


_PLAIN: Final = {"s": str, "s?": str, "o": dict, "o?": dict, "b": bool}
_TESTS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "i": lambda value: type(value) is int and 0 <= value < _LARGEST,
    "l": lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
    "n": lambda value: isinstance(value, list) and all(_fits(item, _NOTICE) is None for item in value),
    "p": _is_packet,
    "t": lambda value: _fits(value, _THEN) is None,
    "h": lambda value: _fits(value, _HOLD) is None,
    "c": _is_control,
}


def problem(stream: str, record: Mapping[str, Any], run: Run | None) -> str | None:
    """Why a record is no event of its stream, None when it is one. `run`: the run of the stream as it is before it.

    An event of a name that is not known is one of a later version: it has a seq and a time.
    """
    name = record["event"]
    if not isinstance(name, str):
        return "no event"
    if times.read(record.get("at")) is None:
        return f"{name} without its time"
    shape = _SHAPES.get(stream, _SHAPES[""]).get(name, ())
    wrong = _fits(record, shape) or _fits(record, _EVERY)
    if wrong is None and stream not in _SHAPES:
        wrong = _place(stream, name, record, run)
    return None if wrong is None else f"{name} with a wrong {wrong}"


def _place(run_id: str, name: str, record: Mapping[str, Any], run: Run | None) -> str | None:
    """Whether an event of a run speaks of what the run has."""
    if (run is None) != (name == "run_started"):
        return "place"
    if run is None:
        return _started(run_id, record)
    sends = record.get("sends") or {"run_id": run_id}
    if sends["run_id"] != run_id or (sends.get("signal") == "SPAWN" and not _within(sends["item_index"], run)):
        return "packet"
    if name in _RUN and "index" in record and not _within(record["index"], run):
        return "index"
    if name == "step_closed" and record["step"] >= len(run.steps):
        return "step"
    if name == "entry_opened":
        entry = record["entry"]
        index = entry.get("item_index")
        if entry.get("run_id") != run_id or not (index is None or _within(index, run)):
            return "entry"
    return None


def _within(index: Any, run: Run) -> bool:
    return _is("i", index) and int(index) < run.total


def _started(run_id: str, record: Mapping[str, Any]) -> str | None:
    spec = record["spec"]
    items, works = spec.get("items"), spec.get("works")
    if record["run_id"] != run_id or not isinstance(items, list) or not isinstance(works, list):
        return "run"
    wanted = len(items) if spec.get("grammar") == "chain" else 1
    return None if len(works) == wanted else "spec"
