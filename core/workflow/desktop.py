"""Notifications on the desktop, where there is a program for them (docs/specs/workflows.md §3, "Channels")."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from typing import Any

from core.sanitize import clip, inert

_WORDS = {
    "ESCALATE": "a decision is needed",
    "GATE_PENDING": "something waits for your word",
    "BLOCKED": "something is blocked",
    "CIRCUIT_BREAK": "failures in a row: the run waits",
    "REMINDER": "a question still waits",
}


def argv(program: str, notice: Mapping[str, Any]) -> list[str]:
    """The command that shows a notice; all that came from outside is one inert argument."""
    urgent = "critical" if notice.get("level") == "urgent" else "low"
    title = f"collab: {_WORDS.get(str(notice.get('event')), str(notice.get('event')).lower())}"
    body = str(notice.get("message") or notice.get("entry") or notice.get("run_id") or "")
    return [program, f"--urgency={urgent}", "--app-name=collab", "--", clip(inert(title), 120), clip(inert(body), 300)]


def deliver(notice: Mapping[str, Any]) -> None:
    """Show a notice of the channel `desktop`; a desktop that cannot loses nothing, the notice is recorded."""
    program = shutil.which("notify-send") if notice.get("channel") == "desktop" else None
    if program is None:
        return
    try:
        subprocess.run(argv(program, notice), stdin=subprocess.DEVNULL, capture_output=True, timeout=5, check=False)
    except (OSError, subprocess.SubprocessError):
        return
