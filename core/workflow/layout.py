"""Where the files of a root lie (docs/specs/workflows.md §1)."""

from __future__ import annotations

from typing import Final

from core.files import Root
from core.finding import Refused, error

AMBIENT, WORKFLOWS, AGENTS = "ambient", "workflows", "agents"
SCRATCH = "ambient/.tmp"
"""Where temporary files of a root are made."""
LOCK = "ambient/.lock"
PENDING = "ambient/.pending.json"
RUNS = "ambient/runs"
SIGNALS = "ambient/signals.jsonl"
OUTBOX = "ambient/outbox.jsonl"
NOTIFICATIONS = "ambient/notifications.jsonl"
ENGINE_STREAM: Final = "engine"
LEARNING_STREAM: Final = "learning"
_FILES = {ENGINE_STREAM: "ambient/engine.jsonl", LEARNING_STREAM: "ambient/learning.jsonl"}


def log_file(stream: str) -> str:
    """Where the events of a stream lie."""
    return _FILES.get(stream) or f"{RUNS}/{stream}.jsonl"


def record_file(run_id: str) -> str:
    return f"{RUNS}/{run_id}.yml"


def require_root(root: Root) -> None:
    """Raises Refused where there is neither `workflows/` nor `ambient/`: nothing is made in a folder by mistake."""
    if not (root.exists(WORKFLOWS) or root.exists(AMBIENT)):
        cause = f"there is neither workflows/ nor ambient/ in {root.path}"
        raise Refused(error("E_ROOT", cause, None, str(root.path)))
