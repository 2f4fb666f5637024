"""The past of open folders: one timeline each, used by one thread at a time, and what changed since a person looked."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from core.acp import history
from core.acp.model import Document
from core.acp.reader import Snapshot
from core.acp.timeline import Timeline
from core.files import Root
from core.finding import Refused
from tui.desk import Marked
from tui.widgets.diff import line_changes

LOOKED, REVIEWED = "since you last looked", "since your review"


class Timelines:
    """Timelines by folder; a newer snapshot takes over what is known of the older one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[Path, Timeline] = {}

    @contextmanager
    def of(self, snapshot: Snapshot) -> Iterator[Timeline]:
        """The timeline of a snapshot, for this thread alone until the block ends."""
        with self._lock:
            known = self._kept.get(snapshot.path)
            if known is None or known.snapshot is not snapshot:
                known = Timeline(snapshot, known)
                self._kept[snapshot.path] = known
            yield known

    def forget(self, path: Path) -> None:
        """The folder is closed."""
        self._kept.pop(path, None)


def last_review(snapshot: Snapshot, me: str | None) -> int | None:
    """The index of this person's latest review."""
    events = snapshot.events
    wanted = (at for at in range(len(events) - 1, -1, -1) if events[at].name == "review_submitted")
    return next((at for at in wanted if events[at].actor == me), None) if me is not None else None


class Marks:
    """What changed in a folder's documents since this person last looked, else since their latest review."""

    def __init__(self, looked: history.Record | None) -> None:
        """`looked` is what the person had seen when the folder was opened."""
        self._looked = looked
        self._key: object = None
        self._made: Mapping[str, Marked] = {}

    def of(self, snapshot: Snapshot, me: str | None) -> Mapping[str, Marked]:
        """Changes by document; those that did not change, or of which the old text is unknown, are not there."""
        documents = {**snapshot.documents, **snapshot.deliverables}
        review = last_review(snapshot, me)
        key = (review, me, tuple(item.sha256 for item in documents.values()))
        if key != self._key:
            self._key, self._made = key, self._find(snapshot, documents, review)
        return self._made

    def _find(self, snapshot: Snapshot, documents: Mapping[str, Document], review: int | None) -> dict[str, Marked]:
        made: dict[str, Marked] = {}
        looked = self._looked.documents if self._looked is not None else {}
        reviewed: Mapping[str, str] = {}
        if review is not None and snapshot.events[review].seq is not None:
            reviewed = self._at(snapshot, review)
        try:
            with Root(snapshot.path) as root:
                for name, document in documents.items():
                    for since, old in ((LOOKED, looked.get(name)), (REVIEWED, reviewed.get(name))):
                        found = _mark(root, document, old, since)
                        if found is not None:
                            made[name] = found
                            break
        except Refused:
            # An unreadable sidecar only means that there is nothing to compare with.
            return {}
        return made

    def _at(self, snapshot: Snapshot, index: int) -> Mapping[str, str]:
        return Timeline(snapshot).digests(index) or {}


def _mark(root: Root, document: Document, old: str | None, since: str) -> Marked | None:
    if old is None or document.data is None or old == document.sha256:
        return None
    data = history.content(root, old)
    if data is None:
        return None
    before = data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    added, removed = line_changes(before, document.text)
    return Marked(added, removed, since)
