"""What this person has seen of a log, in their own state folder (docs/specs/acp.md §6).

The sidecar in the folder can be rewritten by whoever rewrites the log; what a reader remembers cannot. A log that no
longer begins with what was seen is reported until the folder is another one (another `createdAt`).
"""

from __future__ import annotations

from collections.abc import Sequence

from core.acp import history
from core.acp.memory import Memory
from core.acp.reader import Snapshot
from core.files import Root
from core.finding import Finding, errors
from core.state import UserState, key


def _name(snapshot: Snapshot) -> str:
    return f"seen/{key(snapshot.path)}.json"


def recall(state: UserState, snapshot: Snapshot) -> history.Record | None:
    """What was seen last of this collaboration, or None when nothing was."""
    if snapshot.setup is None:
        return None
    raw = state.load(_name(snapshot))
    if raw.get("created_at") != snapshot.setup.created_at:
        return None
    return history.read_record(raw)


def findings(state: UserState, snapshot: Snapshot, root: Root, memory: Memory | None = None) -> list[Finding]:
    """Whether the log still begins with what this person saw, and which documents changed out of turn since.

    `memory` is that of the folder, for whoever looks at it again and again.
    """
    known = recall(state, snapshot)
    return (memory or Memory()).against(snapshot, root, known) if known is not None else []


def remember(state: UserState, snapshot: Snapshot, found: Sequence[Finding], doubted: Sequence[Finding] = ()) -> None:
    """Keep what is seen now, unless it contradicts what was seen before: evidence is not overwritten by its forgery.

    `doubted` is what the sidecar says against the folder: a log or document that is wrong now is no evidence.
    """
    if snapshot.setup is None or not snapshot.events or found or errors(doubted):
        return
    wrong = {item.where for item in doubted}
    seq = snapshot.events[-1].seq
    documents = [*snapshot.documents.values(), *snapshot.deliverables.values()]
    digests = history.digests(documents, snapshot.setup.raw)
    record = {
        "created_at": snapshot.setup.created_at,
        "path": str(snapshot.path),
        "seq": seq,
        "at": snapshot.events[-1].at,
        "end": snapshot.mark.offset,
        "log": snapshot.mark.digest,
        "documents": {name: digest for name, digest in digests.items() if name not in wrong},
    }
    if state.load(_name(snapshot)) != record:
        state.save(_name(snapshot), record)
