"""The guarded writer: lock, mend, read, decide, write, fsync, project (docs/specs/acp.md §6).

Whatever a killed writer left is settled by the next one before it decides: an interrupted document-and-event act
is finished or undone, a torn last line goes whole into `.collab/damaged/`, a stale projection is rebuilt.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from core import journal
from core.acp import deliverables, history
from core.acp.model import DOCUMENTS, LOG, PROTOCOL, Document, Draft, Event, Setup, State
from core.acp.place import deliverables_root
from core.acp.reader import DAMAGED, HISTORY, PENDING, FolderReader, Snapshot, locate
from core.acp.rules import decide, evolve, latest_at, next_seq, record
from core.acp.validation import projection_findings
from core.clock import SYSTEM, Clock, stamp
from core.files import DOCUMENT_CAP, LINE_CAP, Root, sha256
from core.finding import Finding, Refused, error, errors, warning
from core.lock import PATIENCE, folder_lock

Compose = Callable[[Event, str], str]


@dataclass(frozen=True, slots=True)
class Change:
    """A document that is written in the same act as its event: `compose(event, old text) -> new text`."""

    name: str
    compose: Compose


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a preview showed: the log up to `mark`, and digests of documents. A commit refuses if either moved."""

    mark: journal.Mark
    documents: Mapping[str, str | None]


@dataclass(frozen=True)
class Appended:
    """An event that is in the log, the state after it, and what was mended on the way.

    `code` is what a block is called (docs/specs/governance.md §2); None for every other event.
    """

    event: Event
    state: State
    mended: tuple[Finding, ...]
    warnings: tuple[Finding, ...]
    code: str | None = None


Check = Callable[[Snapshot], list[Finding]]


@dataclass(frozen=True)
class Plan:
    """A decided act before anything is written: what a preview shows and a commit does."""

    snapshot: Snapshot
    event: Event
    line: bytes
    before: State
    after: State
    document: str | None
    old: bytes | None
    new: bytes | None

    @property
    def expectation(self) -> Expectation:
        shown = (*self.snapshot.documents.values(), *self.snapshot.deliverables.values())
        known = {item.name: item.sha256 for item in shown}
        return Expectation(self.snapshot.mark, known)


def plan(
    snapshot: Snapshot, draft: Draft, clock: Clock, change: Change | None = None, check: Check | None = None
) -> Plan:
    """Decide an act on a snapshot. Raises Refused with every reason; writes nothing."""
    setup = snapshot.setup
    if setup is None:
        raise Refused(*(locate(item, snapshot.path) for item in snapshot.problems))
    _appendable(snapshot)
    _encodable(draft)
    now = clock.now()
    judged, new, old = snapshot, None, None
    if change is not None:
        old_document = snapshot.document(change.name)
        if old_document.data is None and old_document.problem and old_document.problem.code != "file_missing":
            raise Refused(old_document.problem)
        old = old_document.data
        seq = next_seq(snapshot.events)
        provisional = Event.read(record(draft, seq, latest_at(snapshot.events, now)))
        new = _encoded(change.compose(provisional, old_document.text), change.name)
        judged = snapshot.overlay(Document(change.name, new, sha256(new)))
    found = [locate(item, snapshot.path) for item in check(judged)] if check is not None else []
    event, refused = decide(snapshot.state, setup, snapshot.events, draft, judged.facts, now)
    found = [*(locate(item, snapshot.path) for item in refused), *found]
    if event is None or errors(found):
        raise Refused(*dict.fromkeys(found))
    line = journal.encode(dict(event.raw))
    if len(line) > LINE_CAP:
        raise Refused(error("line_too_long", f"the event has {len(line)} bytes; at most {LINE_CAP} fit a line"))
    after = evolve(snapshot.state, event, setup)
    name = change.name if change is not None and new != old else None
    return Plan(snapshot, event, line, snapshot.state, after, name, old, new if name else None)


def _encoded(text: str, name: str) -> bytes:
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError:
        raise Refused(error("text_not_utf8", f"the text for {name} is not valid UTF-8", None, name)) from None
    if len(data) > DOCUMENT_CAP:
        cause = f"{name} would have {len(data)} bytes; at most {DOCUMENT_CAP} are read"
        raise Refused(error("file_too_large", cause, None, name))
    return data


def _encodable(draft: Draft) -> None:
    for flag, value in (
        ("--participant", draft.participant),
        ("--summary", draft.summary),
        ("--doc", draft.doc),
        ("--sha256", draft.sha256),
    ):
        if value is None:
            continue
        if "\0" in value:
            raise Refused(error("text_has_nul", f"{flag} holds a NUL character", None, flag))
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise Refused(error("text_not_utf8", f"{flag} is not valid UTF-8", None, flag)) from None
    doc = draft.doc or ""
    if not doc.startswith("external:") and (doc.startswith("/") or ".." in doc.split("/")):
        raise Refused(error("path_outside_folder", f"doc must be a path inside the folder, not {doc!r}", None, "--doc"))


def _appendable(snapshot: Snapshot) -> None:
    """A log that cannot be trusted to be whole takes no more events."""
    blocking = [item for item in snapshot.problems if item.code in ("log_damaged", "log_rewritten")]
    unreadable = [item for item in snapshot.problems if item.where == LOG and item.severity == "error"]
    if LOG not in snapshot.present:
        # A log that went away is not begun anew: what it said is known to somebody.
        unreadable.append(error("file_missing", f"missing {LOG}", "collab validate --folder {folder}", LOG))
    illegal = [item for item in snapshot.folded.problems if item.code != "event_after_terminal"]
    found = dict.fromkeys([*blocking, *unreadable, *illegal[:3]])
    if found:
        raise Refused(*(locate(item, snapshot.path) for item in found))


def append(
    path: Path,
    draft: Draft,
    *,
    clock: Clock = SYSTEM,
    change: Change | None = None,
    check: Check | None = None,
    expect: Expectation | None = None,
    patience: float = PATIENCE,
) -> Appended:
    """Append one event, with its document if there is one: both or neither. Raises Refused with every reason."""
    return append_with(path, lambda snapshot: plan(snapshot, draft, clock, change, check), clock, expect, patience)


def append_with(
    path: Path,
    decide_on: Callable[[Snapshot], Plan],
    clock: Clock = SYSTEM,
    expect: Expectation | None = None,
    patience: float = PATIENCE,
) -> Appended:
    """Lock, mend, read, let `decide_on` make the plan, write it. Raises Refused; mends are said all the same."""
    with Root(_collaboration(path)) as root, folder_lock(root, patience=patience):
        reader = FolderReader(path)
        mended: list[Finding] = []
        try:
            mended, snapshot = _mend(root, reader, clock)
            if expect is not None:
                _still(snapshot, expect)
            made = decide_on(snapshot)
            _commit(root, made, clock)
        except Refused as exc:
            raise Refused(*exc.findings, *mended) from None
        finally:
            reader.close()
    code, trouble = _leave_receipt(path, made.event, made.after)
    return Appended(made.event, made.after, tuple(mended), (*_heading_needed(made), *trouble), code)


def _leave_receipt(path: Path, event: Event, after: State) -> tuple[str | None, tuple[Finding, ...]]:
    """After an event that changed authority (docs/design.md §4): (code of a block, what could not be done)."""
    if event.name not in ("completed", "blocked") and (event.name, after.phase) != (
        "decision_accepted",
        "readiness_check",
    ):
        return None, ()
    # Agents pay for this import three times in a collaboration at most, never in between.
    from core.governance import acp_boundary

    left = acp_boundary.leave(path)
    return left.code if event.name == "blocked" else None, left.findings


def _collaboration(path: Path) -> Path:
    """Only a folder that already is a collaboration gets a `.collab`."""
    with Root(path) as root:
        if not root.exists(PROTOCOL):
            command = "collab init --folder {folder}"
            cause = f"missing {PROTOCOL} in {path}: this is no collaboration folder"
            raise Refused(locate(error("not_a_collaboration", cause, command, PROTOCOL), path))
    return path


def _still(snapshot: Snapshot, expect: Expectation) -> None:
    moved = []
    if snapshot.mark != expect.mark:
        last = snapshot.last()
        news = f"; the latest is seq {last.seq} {last.name} from {last.actor}" if last is not None else ""
        moved.append(f"{LOG} has other events than the preview showed{news}")
    for name, digest in expect.documents.items():
        if snapshot.document(name).sha256 != digest:
            moved.append(f"{name} changed since the preview")
    if moved:
        raise Refused(*(error("preview_outdated", cause, None, cause.split(" ")[0]) for cause in moved))


def _heading_needed(made: Plan) -> tuple[Finding, ...]:
    """The reference's agents append a review first: tell them the exact heading that review.md still needs."""
    from core.acp.documents import review_heading

    event = made.event
    if event.name != "review_submitted" or made.document is not None or event.seq is None:
        return ()
    if any(item.seq == event.seq for item in made.snapshot.facts.headings):
        return ()
    heading = review_heading(event.at or "", event.actor or "", event.seq)
    cause = f"review.md still needs this heading: {heading}"
    return (warning("review_heading_missing", cause, None, "review.md"),)


def _commit(root: Root, made: Plan, clock: Clock) -> None:
    """Write a decided act. Order matters: evidence, intent, document, event, record, projection, intent gone."""
    seq = made.event.seq or 0
    if made.document is not None and made.new is not None:
        if made.old is not None:
            history.keep(root, made.old)
        history.keep(root, made.new)
        intent = {
            "seq": seq,
            "line": made.line.decode("utf-8"),
            "document": made.document,
            "before": sha256(made.old) if made.old is not None else None,
            "after": sha256(made.new),
        }
        root.replace(PENDING, (json.dumps(intent, ensure_ascii=True, sort_keys=True) + "\n").encode())
        try:
            _write_document(root, made.snapshot, made.document, made.new)
            root.append(LOG, made.line)
        except Refused as exc:
            raise Refused(*exc.findings, *_undo(root, made)) from exc
    else:
        root.append(LOG, made.line)
    snapshot = made.snapshot
    if made.document is not None and made.new is not None:
        snapshot = snapshot.overlay(Document(made.document, made.new, sha256(made.new)))
    # The event is in the log: from here on nothing may turn this act into a failure.
    _settle(root, snapshot, made.event, made.line, made.after, clock)


def _undo(root: Root, made: Plan) -> list[Finding]:
    """Take back a document whose event could not be written; what cannot be done now, the next writer does."""
    name, new = made.document or "", made.new or b""
    try:
        kept = _keep_draft(root, name, made.event, sha256(new))
        _put_back(root, made.snapshot, name, sha256(new), made.old)
        root.remove(PENDING)
    except Refused:
        cause = f"{name} and its event are settled together by the next writing command"
        return [warning("intent_pending", cause, locate_repair(made.snapshot.path), PENDING)]
    return [warning("intent_undone", f"nothing was written; the text for {name} is kept in {kept}", None, kept)]


def locate_repair(path: Path) -> str:
    """The command that mends this folder."""
    return f"collab repair --folder {shlex.quote(str(path))}"


def _put_back(root: Root, snapshot: Snapshot, name: str, after: str, old: bytes | None) -> None:
    """Restore the old text, unless somebody has changed the document again since."""
    with_new = FolderReader(snapshot.path)
    try:
        now = with_new.refresh().document(name)
    finally:
        with_new.close()
    if now.sha256 != after:
        return
    if old is not None:
        _write_document(root, snapshot, name, old)
    elif name in DOCUMENTS:
        root.remove(name)


def _settle(root: Root, snapshot: Snapshot, event: Event, line: bytes, after: State, clock: Clock) -> None:
    if snapshot.setup is not None:
        marked = deliverables.marked(snapshot.setup, (*snapshot.events, event))
        snapshot = replace(snapshot, setup=replace(snapshot.setup, raw=marked))
    try:
        _remember(root, snapshot, event, line)
    except Refused:
        # Without a record the contents at this event are unknown later; the log itself is whole.
        pass
    try:
        _project(root, snapshot.setup, after, clock)
        if root.exists(PENDING):
            root.remove(PENDING)
    except Refused:
        # A stale projection and a finished intent are what the next writer mends.
        pass


def _remember(root: Root, snapshot: Snapshot, event: Event, line: bytes) -> None:
    end, digest = journal.terminated(root, LOG)
    known = [*snapshot.documents.values(), *snapshot.deliverables.values()]
    declared = snapshot.setup.deliverables if snapshot.setup is not None else None
    if declared is not None:
        # An attachment may be any file of the repository; a copy of it has no place in a shared folder.
        attached = {declared.ref(file) for file in declared.attachments}
        known = [document for document in known if document.name not in attached]
    for document in known:
        if document.data is not None:
            history.keep(root, document.data)
    agreed = snapshot.setup.raw if snapshot.setup is not None else {}
    made = history.make(event, end, digest, history.digests(known, agreed))
    root.append(HISTORY, journal.encode(made), own_line=True)


def _project(root: Root, setup: Setup | None, state: State, clock: Clock) -> None:
    """Write the projection into protocol.json, everything else in it kept."""
    if setup is None or state.phase is None:
        return
    raw: dict[str, Any] = dict(setup.raw)
    raw["currentPhase"] = state.phase
    raw["proposalOwner"] = state.owner
    raw["waitingFor"] = list(state.waiting)
    raw["updatedAt"] = stamp(clock.now())
    root.replace(PROTOCOL, encode_setup(raw))


def encode_setup(raw: Mapping[str, Any]) -> bytes:
    """protocol.json as the protocol writes it: indent 2, sorted keys, non-ASCII kept, final newline."""
    text = json.dumps(raw, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
    return text.encode("utf-8", "backslashreplace")


def _write_document(root: Root, snapshot: Snapshot, name: str, data: bytes) -> None:
    if name in DOCUMENTS:
        root.replace(name, data)
        return
    declared = snapshot.setup.deliverables if snapshot.setup is not None else None
    item = declared.find(name) if declared is not None else None
    if declared is None or item is None or snapshot.setup is None:
        raise Refused(error("deliverable_doc_wrong", f"{name} is no declared deliverable", None, name))
    with deliverables_root(snapshot.path, snapshot.setup, root) as (base, prefix):
        base.replace(f"{prefix}/{item.file}", data)


@contextmanager
def settled(
    path: Path, clock: Clock = SYSTEM, patience: float = PATIENCE
) -> Iterator[tuple[Root, Snapshot, list[Finding]]]:
    """The folder under its lock, mended: (open folder, how it is, what was mended). Raises Refused."""
    with Root(_collaboration(path)) as root, folder_lock(root, patience=patience):
        reader = FolderReader(path)
        try:
            done, snapshot = _mend(root, reader, clock)
            yield root, snapshot, done
        finally:
            reader.close()


def mend(path: Path, clock: Clock = SYSTEM, patience: float = PATIENCE) -> list[Finding]:
    """`collab repair`: settle what a killed writer left; returns what was done, as warnings. Raises Refused."""
    with settled(path, clock, patience) as (_, _, done):
        return done


def _mend(root: Root, reader: FolderReader, clock: Clock) -> tuple[list[Finding], Snapshot]:
    done: list[Finding] = []
    root.sweep(locked=True)
    snapshot = reader.refresh()
    if snapshot.pending.strip():
        done.append(_mend_tail(root, snapshot))
        snapshot = reader.refresh()
    if snapshot.intent is not None and snapshot.setup is not None:
        done.append(_mend_intent(root, snapshot, clock))
        snapshot = reader.refresh()
    marked = deliverables.marked(snapshot.setup, snapshot.events) if snapshot.setup is not None else {}
    if (
        snapshot.setup is not None
        and snapshot.state.phase is not None
        and (projection_findings(snapshot.setup, snapshot.state) or marked is not snapshot.setup.raw)
    ):
        _project(root, replace(snapshot.setup, raw=marked), snapshot.state, clock)
        phase = snapshot.state.phase
        cause = f"{PROTOCOL} was stale; it now says {phase}, as the log does"
        done.append(warning("projection_rebuilt", cause, None, PROTOCOL))
        snapshot = reader.refresh()
    return [locate(item, snapshot.path) for item in done], snapshot


def _mend_tail(root: Root, snapshot: Snapshot) -> Finding:
    if not snapshot.torn:
        root.append(LOG, b"\n")
        return warning("log_line_ended", f"the last line of {LOG} had no line end; it has one now", None, LOG)
    offset, now = snapshot.mark.offset, root.signature(LOG)
    length = now.size - offset if now is not None else len(snapshot.pending)
    name = f"{DAMAGED}/{LOG}-{offset}-{length}-{sha256(snapshot.pending)[:12]}"
    root.create(name, root.pieces(LOG, offset))
    root.truncate(LOG, offset)
    cause = f"a torn last line of {LOG} ({length} bytes) was set aside in {name}"
    return warning("log_torn_mended", cause, None, name)


def _mend_intent(root: Root, snapshot: Snapshot, clock: Clock) -> Finding:
    """Finish or undo an interrupted act (docs/specs/acp.md §6): event in the log, else legal, else put back."""
    intent = _read_intent(snapshot)
    if intent is None:
        name = f"{DAMAGED}/pending-{sha256(snapshot.intent or b'')[:12]}.json"
        root.create(name, snapshot.intent or b"")
        root.remove(PENDING)
        return warning("intent_damaged", f"{PENDING} was unreadable and was set aside in {name}", None, name)
    line, name, before, after = intent
    event = Event.read(journal.decode(line)[0] or {})
    current = snapshot.document(name)
    written = next((item for item in snapshot.events if item.seq == event.seq), None)
    # A mend that was interrupted itself has appended the event with a later `at`.
    if written is not None and {**written.raw, "at": event.at} == event.raw:
        _settle(root, snapshot, event, line, snapshot.state, clock)
        return warning("intent_finished", f"seq {event.seq} {event.name} and {name} were both written", None, name)
    draft = Draft(
        event.actor or "",
        event.name or "",
        event.summary or "",
        event.doc,
        event.reply_to,
        event.role,
        event.sha256,
    )
    if current.sha256 == after:
        made: Plan | None
        try:
            made = plan(snapshot, draft, clock)
        except Refused:
            # The act is no longer legal; the text goes back below.
            made = None
        if made is not None and made.event.seq == event.seq:
            # A disk that fails here leaves the intent to the next writer.
            root.append(LOG, made.line)
            _settle(root, snapshot, made.event, made.line, made.after, clock)
            cause = f"seq {event.seq} {event.name} was appended: {name} had been written already"
            return warning("intent_finished", cause, None, name)
    if current.data is not None and current.sha256 == after:
        history.keep(root, current.data)
    kept = _keep_draft(root, name, event, after)
    old = history.content(root, before) if before is not None else None
    if before is None or old is not None:
        _put_back(root, snapshot, name, after, old)
    root.remove(PENDING)
    cause = f"an interrupted {event.name} was undone; its text for {name} is kept in {kept}"
    return warning("intent_undone", cause, None, kept)


def _keep_draft(root: Root, name: str, event: Event, digest: str) -> str:
    data = history.content(root, digest)
    safe = name.replace("/", "-").replace(":", "-")
    kept = f"{DAMAGED}/draft-seq{event.seq}-{digest[:12]}-{safe}"
    if data is not None:
        root.create(kept, data)
    return kept


def _read_intent(snapshot: Snapshot) -> tuple[bytes, str, str | None, str] | None:
    try:
        # An escaped line may be longer than a line may be, so this is no journal line.
        raw = json.loads(snapshot.intent or b"")
    except (ValueError, RecursionError):
        return None
    if not isinstance(raw, dict):
        return None
    line, name, before, after = raw.get("line"), raw.get("document"), raw.get("before"), raw.get("after")
    known = {*DOCUMENTS, *snapshot.deliverables}
    if not isinstance(line, str) or not isinstance(name, str) or name not in known or not isinstance(after, str):
        return None
    data = line.encode("utf-8", "replace")
    if journal.decode(data.strip())[0] is None or not (before is None or isinstance(before, str)):
        return None
    return data, name, before, after


def edited(made: Plan) -> Snapshot:
    """The snapshot with the plan's document in it."""
    if made.document is None or made.new is None:
        return made.snapshot
    return replace(made.snapshot.overlay(Document(made.document, made.new, sha256(made.new))))
