"""Reading a collaboration folder: never writes, never follows a link, never raises for what it finds.

`FolderReader` follows the log, so that a long-lived reader pays only for what is new; `read` looks once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from core import journal
from core.acp import validation
from core.acp.language import folder_language
from core.acp.model import DOCUMENTS, LOG, PROTOCOL, Document, Event, Setup, State, read_setup
from core.acp.rules import Facts, Fold, Scans, evolve, fold, quoted
from core.files import Content, Root, Signature, sha256
from core.finding import Finding, Refused, error, warning

PENDING = ".collab/pending.json"
HISTORY = ".collab/history.jsonl"
DAMAGED = ".collab/damaged"
OBJECTS = ".collab/objects"
VERIFIED = 64 * 1024 * 1024
"""Bytes of a log that are compared whole whenever it has grown: a tenth of a second, while other threads go on."""


def locate(item: Finding, folder: Path) -> Finding:
    """Fill `{folder}` in a finding's command with the quoted path; what is filled in is not filled in again."""
    if item.next_command is None or "{folder}" not in item.next_command:
        return item
    command = item.next_command.replace("{folder}-2", quoted(f"{folder}-2")).replace("{folder}", quoted(str(folder)))
    return replace(item, next_command=command)


def to_document(content: Content, name: str | None = None) -> Document:
    """A document from a bounded read."""
    digest = sha256(content.data) if content.data is not None else None
    return Document(name or content.name, content.data, digest, content.problem)


@dataclass(frozen=True)
class Snapshot:
    """A folder at one moment. `problems` are what stopped or disturbed the reading, in a person's words."""

    path: Path
    setup: Setup | None
    events: tuple[Event, ...]
    folded: Fold
    documents: Mapping[str, Document] = field(repr=False)
    deliverables: Mapping[str, Document] = field(repr=False)
    present: frozenset[str]
    mark: journal.Mark
    pending: bytes
    intent: bytes | None
    repo_problem: str | None
    problems: tuple[Finding, ...]
    scans: Scans = field(default_factory=Scans, repr=False, compare=False)

    @property
    def state(self) -> State:
        return self.folded.state

    @property
    def readable(self) -> bool:
        """Whether there is a collaboration to show at all."""
        return self.setup is not None

    @property
    def torn(self) -> bool:
        """Whether the bytes after the last line end are no whole event."""
        return bool(self.pending.strip()) and journal.decode(self.pending)[0] is None

    def document(self, name: str) -> Document:
        """A protocol document by name, a deliverable by its reference; missing ones say so."""
        found = self.documents.get(name) or self.deliverables.get(name)
        return found or Document(name, None, None, error("file_missing", f"missing {name}", where=name))

    @cached_property
    def facts(self) -> Facts:
        if self.setup is None:
            raise Refused(*self.problems)
        return Facts(self.document, self.document, self.setup, self.scans)

    @cached_property
    def language(self) -> str:
        """The language that this folder is written in."""
        return self.language_of("readiness.md")

    def language_of(self, name: str) -> str:
        """The language of a document; where it tells none, that of the others."""
        return folder_language(lambda one: self.document(one).text, name)

    def overlay(self, changed: Document) -> Snapshot:
        """The same folder with one document replaced: what a preview or a guided verb judges."""
        if changed.name in self.deliverables:
            return replace(self, deliverables={**self.deliverables, changed.name: changed})
        return replace(
            self,
            documents={**self.documents, changed.name: changed},
            present=self.present | {changed.name},
        )

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """All that `collab validate` says, errors first; commands name this folder."""
        from core.acp.judging import Judge

        return Judge().findings(self)

    def last(self, name: str | None = None) -> Event | None:
        """The latest event, or the latest of that name."""
        return next((event for event in reversed(self.events) if name is None or event.name == name), None)


class FolderReader:
    """Keeps what it read of one folder; `refresh` reads only what changed. One reader belongs to one thread."""

    def __init__(self, path: Path, documents: bool = True) -> None:
        self.path = path
        self._want_documents = documents
        self._root: Root | None = None
        self._inode = 0
        self._follower: journal.Follower | None = None
        self._forget()

    def _forget(self) -> None:
        self._events: list[Event] = []
        self._bad: list[Finding] = []
        self._state = State()
        self._illegal: list[Finding] = []
        self._folded = 0
        self._rules: tuple[int, tuple[str, ...]] | None = None
        self._setup_bytes: bytes | None = None
        self._setup: Setup | None = None
        self._setup_problem: Finding | None = None
        self._cache: dict[str, tuple[Signature | None, Document]] = {}
        self._tail = b""
        self._reset: journal.Reset | None = None
        self._scans = Scans()

    def close(self) -> None:
        if self._root is not None:
            self._root.close()
            self._root = None

    def refresh(self) -> Snapshot:
        """The folder now. A missing folder is a snapshot with that problem."""
        try:
            inode = self.path.stat().st_ino
            if self._root is None or inode != self._inode:
                self.close()
                self._root = Root(self.path)
                self._inode = inode
                self._follower = None
                self._forget()
        except (OSError, ValueError):
            self.close()
            self._forget()
            cause = f"there is no folder {self.path}"
            return self._empty(error("folder_missing", cause, None, str(self.path)))
        except Refused as exc:
            return self._empty(*exc.findings)
        return self._look(self._root)

    def _empty(self, *problems: Finding) -> Snapshot:
        state = Fold(State(), ())
        return Snapshot(self.path, None, (), state, {}, {}, frozenset(), journal.EMPTY, b"", None, None, problems)

    def _look(self, root: Root) -> Snapshot:
        present = frozenset(root.names())
        problems: list[Finding] = []
        setup = self._read_setup(root, problems)
        log = self._read_log(root, problems)
        tail_event = self._tail_event(problems)
        events = (*self._events, *tail_event)
        folded = self._fold(setup, tail_event)
        intent = root.read(PENDING).data if ".collab" in present else None
        if intent is not None:
            cause = "a document change and its event were interrupted; the next writing command settles them"
            problems.append(warning("intent_pending", cause, validation.REPAIR, PENDING))
        documents = {name: self._document(root, name) for name in DOCUMENTS} if self._want_documents else {}
        more, repo_problem = self._deliverables(root, setup)
        return Snapshot(
            self.path,
            setup,
            events,
            folded,
            documents,
            more,
            present,
            log,
            self._tail,
            intent,
            repo_problem,
            tuple(problems),
            self._scans,
        )

    def _read_setup(self, root: Root, problems: list[Finding]) -> Setup | None:
        content = root.read(PROTOCOL)
        if content.data is None:
            self._setup_bytes = None
            cause = content.problem.cause if content.problem else f"missing {PROTOCOL}"
            if content.missing:
                command = "collab init --folder {folder}"
                cause = f"missing {PROTOCOL} in {self.path}: this is no collaboration folder"
                problems.append(error("not_a_collaboration", cause, command, PROTOCOL))
            elif content.problem is not None:
                problems.append(content.problem)
            return None
        if content.data != self._setup_bytes:
            self._setup_bytes = content.data
            self._setup, self._setup_problem = read_setup(content.data)
        if self._setup_problem is not None:
            problems.append(self._setup_problem)
        return self._setup

    def _read_log(self, root: Root, problems: list[Finding]) -> journal.Mark:
        if self._follower is None:
            self._follower = journal.Follower(root, LOG, VERIFIED)
        news = self._follower.poll()
        if news.reset is not None:
            self._events.clear()
            self._bad.clear()
            self._folded = 0
            self._reset = news.reset
        if news.lines or news.reset or news.pending != self._tail:
            self._tail = news.pending
        for line in news.lines:
            if line.record is not None:
                self._events.append(Event.read(line.record, line.number))
            else:
                cause = f"{LOG} line {line.number}: {line.problem}"
                self._bad.append(error("log_damaged", cause, None, f"{LOG}#line {line.number}"))
        if news.problem is not None and news.problem.code != "file_missing":
            problems.append(news.problem)
        if self._reset not in (None, "gone"):
            cause = f"{LOG} was {self._reset} since it was first read here; earlier lines must never change"
            problems.append(error("log_rewritten", cause, None, LOG))
        problems.extend(self._bad)
        return self._follower.mark

    def _tail_event(self, problems: list[Finding]) -> tuple[Event, ...]:
        """A whole event whose line end is missing counts, as the reference counts it; a torn one is reported."""
        if not self._tail.strip():
            return ()
        made, reason = journal.decode(self._tail)
        number = self._follower.mark.lines + 1 if self._follower else 1
        if made is not None:
            return (Event.read(made, number),)
        cause = f"{LOG} line {number}: torn, {len(self._tail)} bytes without a line end ({reason})"
        problems.append(error("log_torn", cause, validation.REPAIR, f"{LOG}#line {number}"))
        return ()

    def _fold(self, setup: Setup | None, tail: tuple[Event, ...]) -> Fold:
        if setup is None:
            return Fold(State(), ())
        # The projection in protocol.json is written after every event; the fold does not depend on it.
        rules = (setup.schema, setup.participants)
        if self._folded == 0 or rules != self._rules:
            self._state, self._illegal, self._folded = State(), [], 0
        self._rules = rules
        made = fold(setup, self._events[self._folded :], self._state)
        self._state = made.state
        self._illegal.extend(made.problems)
        self._folded = len(self._events)
        last = fold(setup, tail, self._state)
        return Fold(last.state, (*self._illegal, *last.problems))

    def _document(self, root: Root, name: str) -> Document:
        signature = root.signature(name)
        known = self._cache.get(name)
        if known is not None and signature is not None and known[0] == signature:
            return known[1]
        content = root.read(name)
        made = to_document(content)
        self._cache[name] = (content.signature, made)
        return made

    def _deliverables(self, root: Root, setup: Setup | None) -> tuple[dict[str, Document], str | None]:
        declared = setup.deliverables if setup is not None else None
        if declared is None or setup is None:
            return {}, None
        base, repo_problem = root, None
        prefix = declared.dir
        opened: Root | None = None
        if declared.mode == "external":
            target, repo_problem = repo_root(self.path, setup)
            if target is None:
                return {}, repo_problem
            try:
                opened = base = Root(target)
            except Refused as exc:
                return {}, exc.findings[0].cause
        try:
            files = [declared.primary.file, *(item.file for item in declared.supporting), *declared.attachments]
            return {
                declared.ref(file): replace(self._document(base, f"{prefix}/{file}"), name=declared.ref(file))
                for file in files
                if file
            }, repo_problem
        finally:
            if opened is not None:
                opened.close()


def repo_root(folder: Path, setup: Setup) -> tuple[Path | None, str | None]:
    """The folder that external deliverables live under, or what is wrong with `repoRoot` (docs/specs/acp.md §7)."""
    named = setup.raw.get("repoRoot")
    if not isinstance(named, str) or not named.strip():
        return None, "repoRoot is required for external deliverables"
    if named.startswith("/"):
        return None, "repoRoot must be relative"
    try:
        here = folder.resolve()
        target = (here / named).resolve()
        if not target.is_dir():
            return None, "repoRoot must resolve to an existing directory"
    except (OSError, ValueError, RuntimeError):
        return None, "repoRoot must resolve to an existing directory"
    if target.parent == target:
        return None, "repoRoot must not resolve to filesystem root"
    if target != here and target not in here.parents:
        return None, "collaboration folder must be inside repoRoot"
    return target, None


def read(path: Path, documents: bool = True) -> Snapshot:
    """Look at a folder once."""
    reader = FolderReader(path, documents)
    try:
        return reader.refresh()
    finally:
        reader.close()


def require(path: Path, documents: bool = True) -> Snapshot:
    """A snapshot that can be acted on. Raises Refused with what made it unreadable."""
    snapshot = read(path, documents)
    if not snapshot.readable:
        raise Refused(*(locate(item, path) for item in snapshot.problems if item.severity == "error"))
    return snapshot


def states(snapshot: Snapshot) -> list[State]:
    """The state after each event, in order: what stepping shows."""
    if snapshot.setup is None:
        return []
    made, state = [], State()
    for event in snapshot.events:
        state = evolve(state, event, snapshot.setup)
        made.append(state)
    return made
