"""The run record: a projection of the log, as data and as YAML text (docs/specs/workflows.md §4, "Run record").

The text is built from cached pieces: a step that did not change since the last time costs a comparison.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from core.workflow import times
from core.workflow.state import Item, Run, Step

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*")
_WORDS = frozenset({"y", "n", "yes", "no", "true", "false", "on", "off", "null"})
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")
_FINAL_COUNTS = (
    ("success_count", "success"),
    ("fail_count", "fail"),
    ("error_count", "error"),
    ("partial_count", "partial"),
    ("skipped_count", "skipped"),
)


def step_record(step: Step) -> dict[str, Any]:
    return {
        "item": step.item,
        "agent": step.agent,
        "signal_out": "SPAWN",
        "signal_in": step.signal_in,
        "result": step.result,
        "duration_ms": step.duration_ms,
        "attempt": step.attempt,
        "resumes": step.resumes,
        "cause": step.cause,
        "by": step.by,
    }


def final_record(run: Run, index: int) -> dict[str, Any]:
    """Of one item: what the record says of it in the end, and who did it."""
    item = run.items[index]
    by = item.by
    if by is None and item.steps:
        by = run.steps[item.steps[-1]].by
    return {"index": index, "item": run.spec.items[index], "result": run.result(index), "by": by}


def head(run: Run) -> dict[str, Any]:
    return {
        "workflow": run.workflow,
        "started_at": times.text(run.started_at),
        "completed_at": None if run.completed_at is None else times.text(run.completed_at),
    }


def counts(run: Run, now: int) -> dict[str, Any]:
    """The keys between the steps and `final`."""
    made: dict[str, Any] = {
        "escalations": run.escalations,
        "errors": run.errors,
        "outcome": run.outcome_at(now),
        "run_id": run.run_id,
        "spec_hash": run.spec_hash,
        "mode": run.mode,
        "total": run.total,
    }
    made.update({name: run.tally.get(result, 0) for name, result in _FINAL_COUNTS})
    made.update(
        retries=run.retries,
        blocks=run.blocks,
        auto_resolved=run.auto_resolved,
        rejected_signals=run.rejected,
        escalation_ids=list(run.entry_ids),
    )
    return made


def tail(run: Run) -> dict[str, Any]:
    return {"spec_changed": True} if run.spec_changed else {}


def record(run: Run, now: int) -> dict[str, Any]:
    """The run record below its root key `run`, keys in order."""
    return {
        **head(run),
        "steps": [step_record(step) for step in run.steps],
        **counts(run, now),
        "final": [final_record(run, index) for index in range(run.total)],
        **tail(run),
    }


def scalar(value: Any) -> str:
    """A scalar that YAML 1.1 and 1.2 readers understand alike."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    text = str(value)
    if len(text) < 120 and _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False))


def _pairs(values: dict[str, Any], indent: str) -> str:
    lines = []
    for key, value in values.items():
        if isinstance(value, list):
            lines.append(f"{indent}{key}:" + (" []" if not value else ""))
            lines += [f"{indent}- {scalar(item)}" for item in value]
        else:
            lines.append(f"{indent}{key}: {scalar(value)}")
    return "\n".join(lines) + "\n"


def _entry(values: dict[str, Any]) -> str:
    """One item of a list of mappings."""
    return "  - " + _pairs(values, "    ")[4:]


class RecordText:
    """The record's YAML of one run, rendered anew only where the run changed."""

    def __init__(self) -> None:
        self._steps: list[tuple[Step, str]] = []
        self._final: list[tuple[Item, Step | None, str]] = []

    def pieces(self, run: Run, now: int) -> Iterator[bytes]:
        """The text in pieces, in order."""
        self._update(run)
        yield ("run:\n" + _pairs(head(run), "  ") + ("  steps:\n" if self._steps else "  steps: []\n")).encode()
        yield "".join([text for _, text in self._steps]).encode()
        yield (_pairs(counts(run, now), "  ") + ("  final:\n" if self._final else "  final: []\n")).encode()
        yield "".join([text for _, _, text in self._final]).encode()
        if run.spec_changed:
            yield _pairs(tail(run), "  ").encode()

    def text(self, run: Run, now: int) -> str:
        return b"".join(self.pieces(run, now)).decode()

    def _update(self, run: Run) -> None:
        known = len(self._steps)
        for number, step in enumerate(run.steps):
            if number >= known:
                self._steps.append((step, _entry(step_record(step))))
            elif self._steps[number][0] is not step:
                self._steps[number] = (step, _entry(step_record(step)))
        known = len(self._final)
        for index, item in enumerate(run.items):
            last = run.steps[item.steps[-1]] if item.steps else None
            if index >= known:
                self._final.append((item, last, _entry(final_record(run, index))))
            elif self._final[index][0] is not item or self._final[index][1] is not last:
                self._final[index] = (item, last, _entry(final_record(run, index)))
