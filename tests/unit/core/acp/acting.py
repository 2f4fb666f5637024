"""Acts in a folder on disk, and writers that are killed or failed at a fault point."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from core.acp.store import Change
from core.files import set_fault
from core.finding import Refused


class Killed(BaseException):
    """Stands for a SIGKILL: nobody catches it, nothing is cleaned up but what the kernel cleans up."""


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "events.jsonl").read_bytes().splitlines()]


def protocol(folder: Path) -> dict[str, Any]:
    made: dict[str, Any] = json.loads((folder / "protocol.json").read_bytes())
    return made


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def kill_at(operation: str, name: str) -> None:
    """From now on die at this fault point."""

    def hook(seen: str, where: str) -> None:
        if (seen, where) == (operation, name):
            raise Killed

    set_fault(hook)


def fail_at(operation: str, name: str, code: int = errno.ENOSPC) -> None:
    """Fail this fault point once."""
    left = [1]

    def hook(seen: str, where: str) -> None:
        if (seen, where) == (operation, name) and left[0]:
            left[0] -= 1
            raise OSError(code, os.strerror(code))

    set_fault(hook)


def codes(refused: pytest.ExceptionInfo[Refused]) -> list[str]:
    return [item.code for item in refused.value.findings]


def proposal(text: str) -> Change:
    return Change("proposal.md", lambda event, old: f"{text} by {event.actor} at seq {event.seq}\n")
