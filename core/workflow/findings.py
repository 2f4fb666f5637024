"""Findings of a spec: with the workflow and a place in its text (docs/specs/workflows.md §3, "Loading")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core.finding import Finding, Severity


@dataclass(frozen=True)
class Placed(Finding):
    """A finding that also says, as data, which workflow and where in its file."""

    workflow: str | None = None
    line: int = 1
    column: int = 1

    def as_json(self) -> dict[str, Any]:
        """The five keys of a finding, and workflow, line, column."""
        five = Finding.as_json(self)
        return {**five, "workflow": self.workflow, "line": self.line, "column": self.column}


@dataclass(frozen=True, slots=True)
class SpecFinding:
    """What is wrong at one place; line and column from 1, in characters."""

    code: str
    severity: Severity
    cause: str
    line: int
    column: int

    def finding(self, workflow: str | None, file: str) -> Placed:
        """In the shape that every failure has."""
        where = f"{file}:{self.line}:{self.column}"
        return Placed(self.code, self.severity, self.cause, None, where, workflow, self.line, self.column)


class Findings:
    """Collects; a position is a pair (line, column)."""

    def __init__(self) -> None:
        self.found: list[SpecFinding] = []

    def error(self, code: str, place: tuple[int, int], cause: str) -> None:
        self.found.append(SpecFinding(code, "error", cause, *place))

    def warning(self, code: str, place: tuple[int, int], cause: str) -> None:
        self.found.append(SpecFinding(code, "warning", cause, *place))

    def sorted(self) -> tuple[SpecFinding, ...]:
        """By line and column; each once."""
        return tuple(sorted(dict.fromkeys(self.found), key=lambda item: (item.line, item.column)))
