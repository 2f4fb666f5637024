"""The one thread that reads files for the console (docs/specs/console.md §3).

It owns every reader, answers requests from a queue, looks at what the watcher points at, and hands over finished
views as messages. The event loop never opens a file; a folder that fails is one finding in its own view.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from textual.message import Message

from core import inbox
from core.acp import seen
from core.acp.live import Judged, Live
from core.acp.model import State
from core.acp.reader import Snapshot
from core.acp.rules import Fold
from core.clock import Clock
from core.evidence import Evidence, View, folders, inbox_items
from core.finding import Finding, error, warning
from core.inbox import InboxItem
from core.journal import EMPTY
from core.state import UserState
from core.watch import Watcher
from core.workspace import Item, Place, Summaries, discover, store_root
from tui.collector import Collector
from tui.desk import FolderView, look
from tui.past import Marks
from tui.settings import Who, remember

TICK = 1.0
SLICE = 25
LONG = 2000
"""Events from which on a log is long."""
STALE_AFTER = 5.0
Mode = Literal["live", "polling"]


class Listed(Message):
    """The list and the inbox, as far as they are read; `complete` once every folder has been looked at."""

    def __init__(
        self,
        items: Sequence[Item],
        waiting: Sequence[InboxItem],
        complete: bool,
        problems: Sequence[Finding] = (),
        views: Sequence[View] = (),
    ) -> None:
        super().__init__()
        self.items, self.waiting, self.complete = tuple(items), tuple(waiting), complete
        self.problems, self.views = tuple(problems), tuple(views)

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, Listed)


class FolderRead(Message):
    """An open folder, read and judged."""

    def __init__(self, view: FolderView) -> None:
        super().__init__()
        self.view = view

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, FolderRead) and message.view.path == self.view.path


class Looked(Message):
    """A look is over; how the next one will be noticed."""

    def __init__(self, mode: Mode) -> None:
        super().__init__()
        self.mode = mode

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, Looked)


class Said(Message):
    """Something that a person should know at once."""

    def __init__(self, finding: Finding) -> None:
        super().__init__()
        self.finding = finding


@dataclass(frozen=True, slots=True)
class _Open:
    path: Path


@dataclass(frozen=True, slots=True)
class _Close:
    path: Path


@dataclass(frozen=True, slots=True)
class _Changed:
    """`paths` are files that changed; empty: look at everything."""

    paths: frozenset[Path]


@dataclass(frozen=True, slots=True)
class _Me:
    """The person said who they are; `folder` None means everywhere."""

    who: Who
    folder: Path | None
    name: str


@dataclass(frozen=True, slots=True)
class _Snooze:
    item: str
    until: datetime


@dataclass(frozen=True, slots=True)
class _Rescan:
    pass


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    """Somebody looks at the failure vocabulary, whether or not anything was met yet."""


_Request = _Open | _Close | _Changed | _Me | _Snooze | _Rescan | _Vocabulary


class Reading:
    """Requests go in from the event loop, messages come out by `post`; `run` and `watch` are the two threads."""

    def __init__(
        self,
        roots: Sequence[Path],
        who: Who,
        state: UserState,
        clock: Clock,
        post: Callable[[Message], object],
        tick: float = TICK,
        open_age: timedelta | None = None,
    ) -> None:
        self.roots = tuple(roots)
        self._who, self._state, self._clock, self._post, self._tick = who, state, clock, post, tick
        self._queue: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        self._stop, self._scanned_once = threading.Event(), threading.Event()
        self._summaries = Summaries()
        self._places: dict[Path, Place] = {}
        self._items: dict[Path, Item] = {}
        self._left: list[Path] = []
        self._readers: dict[Path, Live] = {}
        self._collector = Collector()
        self._marks: dict[Path, object] = {}
        self._changed: dict[Path, Marks] = {}
        self._extra: dict[Path, tuple[Path, ...]] = {}
        self._shown: tuple[tuple[Item, ...], tuple[InboxItem, ...], bool, tuple[View, ...]] | None = None
        self._evidence = Evidence(clock, open_age, live=True)
        self._stores: tuple[Place, ...] = ()
        self._views: tuple[View, ...] = ()
        self._wanted = False
        self.home: Path | None = None
        """Where signals of this person are recorded: the workspace of the first root."""
        self._scan_cost, self._scanned, self._looked = 0.0, -1e9, -1e9
        self._watched: tuple[Path, ...] = ()
        self._turned, self._watching = False, True
        self._watcher = Watcher(lambda: self._watched, self._stop, tick)

    # What the event loop asks.

    def open(self, path: Path) -> None:
        """Follow a folder; its views come as `FolderRead`."""
        self._queue.put(_Open(path))

    def close(self, path: Path) -> None:
        """Stop following a folder."""
        self._queue.put(_Close(path))

    def look_again(self) -> None:
        """Discover and read everything anew."""
        self._queue.put(_Rescan())

    def touch(self, path: Path) -> None:
        """A file in this folder was just written by us."""
        self._queue.put(_Changed(frozenset({path / "events.jsonl"})))

    def become(self, who: Who, folder: Path | None, name: str) -> None:
        """The person is `name` from now on, here or everywhere; kept for the next session."""
        self._queue.put(_Me(who, folder, name))

    def want_vocabulary(self) -> None:
        """The failure vocabulary is looked at from now on."""
        self._queue.put(_Vocabulary())

    def snooze(self, item: str, until: datetime) -> None:
        """Hide an inbox item until a moment."""
        self._queue.put(_Snooze(item, until))

    def stop(self) -> None:
        """End both threads."""
        self._stop.set()
        self._scanned_once.set()
        self._queue.put(None)

    # The threads.

    def watch(self) -> None:
        """Turn file notifications and the slow tick into requests."""
        self._scanned_once.wait()
        try:
            for changed in self._watcher:
                self._turned = True
                self._queue.put(_Changed(changed))
        finally:
            # Whatever ends the watcher, the slow tick goes on.
            self._watching = False

    def run(self) -> None:
        """Read until `stop`."""
        try:
            self._scan()
            self._scanned_once.set()
            while not self._stop.is_set():
                requests = self._take()
                if requests is None:
                    return
                self._serve(requests)
                if self._left:
                    self._summarise_some()
                # Until the watcher has had its first turn nobody knows better.
                mode = self._watcher.mode if self._turned else "live"
                self._post(Looked(mode if self._watching else "polling"))
        finally:
            for path, live in self._readers.items():
                live.close()
                self._collector.let_go(path)
            self._evidence.close()

    def _take(self) -> list[_Request] | None:
        """Everything that was asked since; waits only when nothing is left to read. None: the end."""
        taken: list[_Request] = []
        with contextlib.suppress(queue.Empty):
            first = self._queue.get_nowait() if self._left else self._queue.get(timeout=self._tick)
            while True:
                if first is None:
                    return None
                taken.append(first)
                first = self._queue.get_nowait()
        return taken

    def _serve(self, requests: Iterable[_Request]) -> None:
        changed: set[Path] = set()
        now = time.monotonic()
        # Notifications may be lost, and a busy folder may starve the slow tick: look at everything now and then.
        everything = now - self._looked > 2 * self._tick
        rescan = relist = restore = False
        for request in requests:
            match request:
                case _Open(path):
                    if path not in self._readers:
                        self._readers[path] = Live(path, self._state)
                    # Whoever asks wants a view, changed or not.
                    self._marks.pop(path, None)
                    changed.add(path)
                case _Close(path):
                    reader = self._readers.pop(path, None)
                    if reader is not None:
                        reader.close()
                    self._extra.pop(path, None)
                    self._marks.pop(path, None)
                    self._changed.pop(path, None)
                    self._collector.let_go(path)
                    self._rewatch()
                case _Changed(paths):
                    everything = everything or not paths
                    changed |= {place for path in paths for place in self._place_of(path)}
                    stored = {path for path in paths if self._in_store(path)}
                    restore = restore or bool(stored)
                    rescan = rescan or any(self._unknown(path) for path in paths - stored)
                case _Me():
                    self._who = request.who
                    if not remember(self._state, request.folder, request.name):
                        cause = f"your choice is used now, but it could not be kept in {self._state.folder}"
                        self._post(Said(warning("state_unwritable", cause, None, str(self._state.folder))))
                    everything = relist = True
                case _Snooze(item, until):
                    if not inbox.snooze(self._state, item, until, self._clock.now()):
                        cause = f"the snooze could not be kept in {self._state.folder}"
                        self._post(Said(warning("state_unwritable", cause, None, str(self._state.folder))))
                    relist = True
                case _Rescan():
                    everything = rescan = True
                case _Vocabulary():
                    rescan = rescan or not self._wanted
                    self._wanted = True
        # Open folders come first: somebody is looking at them.
        for path in list(self._readers):
            if everything or path in changed:
                self._read(path)
        # A tree that takes long to walk is walked seldom.
        if everything:
            self._looked = now
        if rescan or (everything and now - self._scanned > max(2 * self._tick, 20 * self._scan_cost)):
            self._scan()
        elif everything or changed or restore:
            if everything or restore:
                self._views = self._evidence.look(self._stores)
            for path, place in self._places.items():
                if (everything or path in changed) and path not in self._left:
                    self._items[path] = self._summary(place)
            self._list()
        elif relist:
            self._list()

    # Reading.

    def _scan(self) -> None:
        """Discover folders; summaries that are not known yet follow slice by slice."""
        started = time.monotonic()
        places = discover(self.roots)
        found = {place.path: place for place in places if place.kind == "acp"}
        self._scan_cost, self._scanned = time.monotonic() - started, time.monotonic()
        self._places = found
        self._items = {path: item for path, item in self._items.items() if path in found}
        known = [path for path in found if path in self._items]
        self._left = [path for path in found if path not in self._items]
        for path in known:
            self._items[path] = self._summary(found[path])
        stores = dict.fromkeys(place for place in places if place.kind != "acp")
        self.home = store_root(self.roots[0]) if self.roots else None
        if self._wanted:
            stores.update(dict.fromkeys(Place("triage", store_root(root)) for root in self.roots))
        self._stores = tuple(stores)
        self._views = self._evidence.look(self._stores)
        self._rewatch()
        self._list()

    def _summary(self, place: Place) -> Item:
        try:
            return self._summaries.item(place)
        except Exception as exc:  # noqa: BLE001 - one bad folder is one row with its cause, never the end of the thread
            problem = error("internal_error", f"{type(exc).__name__}: {exc}", None, str(place.path))
            name = place.path.name
            return Item(place.kind, place.path, name, None, None, (), (), None, "unreadable", 0, None, None, problem)

    def _summarise_some(self) -> None:
        now, self._left = self._left[:SLICE], self._left[SLICE:]
        for path in now:
            if path in self._places:
                self._items[path] = self._summary(self._places[path])
        self._list()

    def _list(self) -> None:
        """Hand over the list and the inbox, if they are others than before."""
        items = tuple(self._items[path] for path in self._places if path in self._items)
        asked = inbox_items(self._views)
        waiting = tuple(inbox.items(items, self._me, inbox.snoozes(self._state), self._clock.now(), asked))
        shown = (items, waiting, not self._left, self._views)
        if shown != self._shown:
            self._shown = shown
            problems = [
                error("folder_missing", f"there is no folder {root}", None, str(root))
                for root in self.roots
                if not root.is_dir()
            ]
            self._post(Listed(items, waiting, not self._left, problems, self._views))

    def _me(self, item: Item) -> str | None:
        return self._who.of(item.path, item.participants) or self._who.anywhere()

    def _read(self, path: Path) -> None:
        first = path not in self._changed
        with self._collector.resting() if first else contextlib.nullcontext():
            judged = self._look(path, first)
        if judged is not None:
            if first and len(judged.snapshot.events) > LONG:
                self._collector.keep(path)
            self._readers[path].remember(judged.snapshot)

    def _look(self, path: Path, first: bool) -> Judged | None:
        """Read, judge and hand over a folder; None when it is as it was, or could not be read."""
        live, judged = self._readers[path], None
        try:
            snapshot = live.refresh()
            mark = (_fingerprint(snapshot), self._who)
            if self._marks.get(path) == mark:
                return None
            self._marks[path] = mark
            if first:
                self._changed[path] = Marks(seen.recall(self._state, snapshot))
                if len(snapshot.events) > LONG:
                    # Of a long log much is remembered: it is shown before all of that is read.
                    self._post(FolderRead(look(live.judge(snapshot, False), self._who, self._clock.now())))
            judged = live.judge(snapshot)
            view = look(judged, self._who, self._clock.now())
            view = replace(view, marks=self._changed[path].of(view, live.record_of))
        except Exception as exc:  # noqa: BLE001 - one bad folder is one finding, never the end of the thread
            judged = None
            cause = f"{path} could not be read: {type(exc).__name__}: {exc}"
            view = look(_nothing(path, error("internal_error", cause, None, str(path))), self._who, self._clock.now())
            live.close()
            self._readers[path] = Live(path, self._state)
            self._marks.pop(path, None)
        else:
            self._follow(path, snapshot)
        self._post(FolderRead(view))
        return judged

    def _follow(self, path: Path, snapshot: Snapshot) -> None:
        """Deliverables lie in folders of their own, which the watcher must see too."""
        declared = snapshot.setup.deliverables if snapshot.setup is not None else None
        extra: tuple[Path, ...] = ()
        if declared is not None:
            base = path / (declared.repo_root or ".") if declared.mode == "external" else path
            parts = (declared.primary, *declared.supporting)
            extra = tuple(dict.fromkeys((base / declared.dir / item.file).parent for item in parts if item.file))
        if self._extra.get(path) != extra:
            self._extra[path] = extra
            self._rewatch()

    def _rewatch(self) -> None:
        watched = dict.fromkeys([*self._readers, *self._places])
        watched.update(dict.fromkeys(path.parent for path in self._places))
        watched.update(dict.fromkeys(self.roots))
        for place in self._stores:
            watched.update(dict.fromkeys(folders(place)))
        for paths in self._extra.values():
            watched.update(dict.fromkeys(paths))
        self._watched = tuple(watched)

    def _place_of(self, path: Path) -> set[Path]:
        """The folders that a changed file belongs to."""
        found = {place for place, extra in self._extra.items() if path.parent in extra}
        found |= {place for place in (path, path.parent) if place in self._places or place in self._readers}
        return found

    def _in_store(self, path: Path) -> bool:
        """Whether a changed file belongs to a store that is followed."""
        return any(path.is_relative_to(folder) for place in self._stores for folder in folders(place))

    def _unknown(self, path: Path) -> bool:
        """Whether a change may mean that a collaboration came or went."""
        if path.name == ".collab" or path.parent in self._places:
            return path.name in ("protocol.json", "events.jsonl") and path.parent not in self._places
        return path in self._places or path.parent in self._watched


def _nothing(path: Path, problem: Finding) -> Judged:
    """A folder that could not be read at all."""
    empty = Fold(State(), ())
    nothing = Snapshot(path, None, (), empty, {}, {}, frozenset(), EMPTY, b"", None, None, (problem,))
    return Judged(nothing, nothing.findings, {}, {}, frozenset())


def _fingerprint(snapshot: Snapshot) -> object:
    """What a view is made from: a folder with the same one need not be judged again."""
    documents = (*snapshot.documents.values(), *snapshot.deliverables.values())
    return (
        snapshot.mark,
        snapshot.pending,
        snapshot.intent,
        snapshot.present,
        snapshot.setup.raw if snapshot.setup is not None else None,
        tuple((item.name, item.sha256, item.problem) for item in documents),
        snapshot.repo_problem,
        snapshot.problems,
    )
