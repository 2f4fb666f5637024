"""The past of open folders: one timeline each, used by one thread at a time, and what changed since a person looked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from core.acp import history
from core.acp.model import Document, Event
from core.acp.reader import Snapshot
from core.acp.timeline import Timeline
from core.files import Root
from core.finding import Refused
from tui.desk import FolderView, Marked
from tui.widgets.diff import line_changes

LOOKED, REVIEWED = "since you last looked", "since your review"


class Timelines:
    """Timelines by folder; a newer snapshot takes over what is known of the older one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[Path, Timeline] = {}

    @contextmanager
    def of(self, view: FolderView) -> Iterator[Timeline]:
        """The timeline of a folder, for this thread alone until the block ends."""
        with self._lock:
            known = self._kept.get(view.path)
            if known is None or known.snapshot is not view.snapshot:
                known = Timeline(view.snapshot, known, view.records)
                self._kept[view.path] = known
            yield known

    def forget(self, path: Path) -> None:
        """The folder is closed."""
        self._kept.pop(path, None)


class Marks:
    """What changed in a folder's documents since this person last looked, else since their latest review."""

    def __init__(self, looked: history.Record | None) -> None:
        """`looked` is what the person had seen when the folder was opened."""
        self._looked = looked
        self._key: object = None
        self._made: Mapping[str, Marked] = {}

    def of(self, view: FolderView, record_of: Callable[[Event], history.Record | None]) -> Mapping[str, Marked]:
        """Changes by document; those that did not change, or of which the old text is unknown, are not there."""
        snapshot, review = view.snapshot, view.reviewed
        documents = {**snapshot.documents, **snapshot.deliverables}
        key = (review, view.me, tuple(item.sha256 for item in documents.values()))
        if key != self._key:
            reviewed = record_of(snapshot.events[review]) if review is not None else None
            self._key, self._made = key, self._find(snapshot, documents, reviewed)
        return self._made

    def _find(
        self, snapshot: Snapshot, documents: Mapping[str, Document], reviewed: history.Record | None
    ) -> dict[str, Marked]:
        made: dict[str, Marked] = {}
        looked = self._looked.documents if self._looked is not None else {}
        then = reviewed.documents if reviewed is not None else {}
        try:
            with Root(snapshot.path) as root:
                for name, document in documents.items():
                    for since, old in ((LOOKED, looked.get(name)), (REVIEWED, then.get(name))):
                        found = _mark(root, document, old, since)
                        if found is not None:
                            made[name] = found
                            break
        except Refused:
            # An unreadable sidecar only means that there is nothing to compare with.
            return {}
        return made


def _mark(root: Root, document: Document, old: str | None, since: str) -> Marked | None:
    if old is None or document.data is None or old == document.sha256:
        return None
    data = history.content(root, old)
    if data is None:
        return None
    before = data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    added, removed = line_changes(before, document.text)
    return Marked(added, removed, since)
