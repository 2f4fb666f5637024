"""The one shape of every failure (docs/design.md §2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One refusal, validation result or unreadable input.

    `code` is an entry of `catalog/failure_codes.json` or a minted code; `cause` one sentence; `next_command`
    an exact command line that works when pasted, or None; `where` a file, a place in it, a flag, or None.
    """

    code: str
    severity: Severity
    cause: str
    next_command: str | None = None
    where: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The five keys every `-o json` document uses for a finding."""
        return {
            "code": self.code,
            "severity": self.severity,
            "cause": self.cause,
            "next_command": self.next_command,
            "where": self.where,
        }


def error(code: str, cause: str, next_command: str | None = None, where: str | None = None) -> Finding:
    """A finding that stops the act."""
    return Finding(code, "error", cause, next_command, where)


def warning(code: str, cause: str, next_command: str | None = None, where: str | None = None) -> Finding:
    """A finding that is worth reading and stops nothing."""
    return Finding(code, "warning", cause, next_command, where)


class Refused(Exception):
    """An act that was not done; carries at least one error finding."""

    def __init__(self, *findings: Finding) -> None:
        super().__init__("; ".join(item.cause for item in findings))
        self.findings: tuple[Finding, ...] = findings


def errors(findings: Iterable[Finding]) -> list[Finding]:
    """Only the findings that stop an act."""
    return [item for item in findings if item.severity == "error"]
