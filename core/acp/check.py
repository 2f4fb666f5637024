"""`collab validate` as a whole: the folder's own findings and what the sidecar remembers (docs/specs/acp.md §5, §6)."""

from __future__ import annotations

from pathlib import Path

from core.acp import seen
from core.acp.memory import Memory
from core.acp.reader import Snapshot, read
from core.files import Root
from core.finding import Finding, Refused
from core.lock import wait_for_writer
from core.state import UserState

UNFINISHED = frozenset(
    {"projection_stale", "intent_pending", "log_torn", "review_heading_missing", "review_heading_orphan"}
)
"""Findings that a writer at work causes for a moment."""


def check(path: Path, state: UserState | None = None) -> tuple[Snapshot, list[Finding]]:
    """A snapshot and everything that is wrong with it, errors first. Writes nothing into the folder, never raises.

    With the person's `state`, what they saw before is compared too, and what they see now is remembered there.
    """
    snapshot = _settled(path)
    found = list(snapshot.findings)
    try:
        with Root(path) as root:
            witnessed = remembered(snapshot, root)
            found += witnessed
            if state is not None:
                known = seen.findings(state, snapshot, root)
                seen.remember(state, snapshot, known, witnessed)
                found += known
    except Refused:
        # The folder itself is unreadable; the snapshot says so already.
        pass
    unique = dict.fromkeys(found)
    return snapshot, sorted(unique, key=lambda item: item.severity != "error")


def _settled(path: Path) -> Snapshot:
    """A look that no writer was in the middle of: what looks unfinished is looked at again once it is done."""
    snapshot = read(path)
    if any(item.code in UNFINISHED for item in snapshot.findings):
        try:
            with Root(path) as root:
                wait_for_writer(root)
        except Refused:
            return snapshot
        return read(path)
    return snapshot


def remembered(snapshot: Snapshot, root: Root) -> list[Finding]:
    """What the sidecar knows against the log and the documents as they are now."""
    return Memory().findings(snapshot, root)
