"""The logs below a root: read under the lock, followed, appended whole or not at all (docs/specs/workflows.md §1, §6).

A commit that has more than one line is written ahead to `ambient/.pending.json`; whoever takes the lock next
finishes it. Each reader keeps the world that it has folded and only reads what is new.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from core import journal
from core.files import Root, sha256
from core.finding import Finding, Refused, error
from core.journal import Follower
from core.lock import PATIENCE, folder_lock
from core.workflow.boundaries import Trail
from core.workflow.closed import ClosedRuns, Past
from core.workflow.evolve import evolve
from core.workflow.layout import LOCK, NOTIFICATIONS, OUTBOX, PENDING, RUNS, SIGNALS, log_file, record_file
from core.workflow.shapes import NOT_ONE, problem
from core.workflow.signals import Packet
from core.workflow.state import ENGINE_STREAM, LEARNING_STREAM, Event, Run, World
from core.workflow.turn import spawn_id


class Store:
    """One reader and writer of a root. Not shared between threads."""

    def __init__(self, root: Root, readonly: bool = False, closed: ClosedRuns | None = None) -> None:
        """`readonly`: nothing is mended or written; half a line is passed over.

        `closed`: runs that it knows are not read until they are needed; without it every run is.
        """
        self.root = root
        self.readonly = readonly
        self.closed = closed
        self._left: set[str] = set()
        self.world = World()
        self.problems: dict[str, Finding] = {}
        self.appended = 0
        self.intents: dict[str, tuple[str, Mapping[str, Any]]] = {}
        self.trails: dict[str, Trail] = {}
        self.unread: list[Packet | tuple[str, str | None]] = []
        self._followers: dict[str, Follower] = {}
        self._sent: set[str] = set()

    @contextmanager
    def locked(self, patience: float = PATIENCE) -> Iterator[None]:
        """Hold the root's lock with everything read. Raises Refused."""
        with folder_lock(self.root, LOCK, patience):
            self.recover()
            self.refresh()
            yield

    def recover(self) -> None:
        """Finish a commit that a killed writer began, cut what is half a line, and remove its temporary files."""
        self.root.sweep()
        if self.root.exists(PENDING):
            for name, size, lines in _plan(self.root.read(PENDING).data):
                self._finish(name, size, lines)
            self.root.remove(PENDING)

    def _finish(self, name: str, size: int, lines: bytes) -> None:
        signature = self.root.signature(name)
        now = 0 if signature is None else signature.size
        if now >= size + len(lines):
            return
        if now > size:
            self.root.truncate(name, size)
        if now >= size:
            self.root.append(name, lines)

    def refresh(self) -> None:
        """Fold whatever is new in the logs, and remember packets and dispatched ids; under the lock unless readonly."""
        names = [name for name in self.root.names(RUNS) if name.endswith(".jsonl")]
        gone = [name for name in self._followers if name.startswith(RUNS) and name.rsplit("/", 1)[1] not in names]
        stems = [name.removesuffix(".jsonl") for name in names]
        fresh = [name for name in stems if name not in self.world.runs and name not in self.problems]
        fresh = self._without_closed(fresh)
        news = {stream: self._poll(log_file(stream)) for stream in (ENGINE_STREAM, LEARNING_STREAM)}
        news.update({run_id: self._poll(log_file(run_id)) for run_id in self.world.runs})
        if gone or any(item.reset is not None for item in news.values()):
            self._forget()
            self.refresh()
            return
        for stream, item in news.items():
            self._fold(stream, item)
        self._take_new_runs(fresh)
        self._take_ids(OUTBOX)
        self._take_ids(NOTIFICATIONS)
        self._take_packets()

    def _without_closed(self, run_ids: Sequence[str]) -> list[str]:
        """The runs that must be read; of the others only what any decision may depend on is taken over."""
        if self.closed is None:
            return list(run_ids)
        self.closed.refresh()
        self._left = {run_id for run_id in run_ids if self.closed.fits(run_id)}
        for run_id in self._left:
            past = self.closed.known[run_id]
            if past.row.number > self.world.started or past.last_at > self.world.last_at:
                self.world = self.world._replace(
                    started=max(self.world.started, past.row.number), last_at=max(self.world.last_at, past.last_at)
                )
        return [run_id for run_id in run_ids if run_id not in self._left]

    def need(self, run_ids: Iterable[str]) -> None:
        """Read these runs, if they were left out."""
        wanted = self._left.intersection(run_ids)
        self._left -= wanted
        if wanted:
            self._take_new_runs(sorted(wanted))

    def need_entries(self, names: Iterable[str]) -> None:
        """Read the runs that these questions belong to, if they were left out."""
        closed = self.closed
        if closed is not None:
            self.need([run_id for name in names if (run_id := closed.run_of(name)) is not None])

    def need_all(self) -> None:
        """Read every run from now on, in order of start."""
        self.closed = None
        if self._left:
            self._left = set()
            self._forget()

    def unread_runs(self) -> list[Past]:
        """Runs that were left out."""
        known = self.closed.known if self.closed is not None else {}
        return [known[run_id] for run_id in self._left]

    def run_ids(self) -> set[str]:
        """Every run below this root, read or not."""
        return {*self.world.runs, *self._left}

    def _forget(self) -> None:
        self.world, self.intents, self.trails, self.unread = World(), {}, {}, []
        self.problems.clear()
        self._followers.clear()
        self._sent.clear()

    def _poll(self, name: str) -> journal.News:
        follower = self._followers.get(name)
        if follower is None:
            follower = self._followers[name] = Follower(self.root, name, verify_cap=0)
        news = follower.poll()
        if news.pending and name != SIGNALS and not self.readonly:
            self.root.truncate(name, follower.mark.offset)
        return news

    def _fold(self, stream: str, news: journal.News) -> None:
        if stream in self.problems:
            return
        for line in news.lines:
            record = line.record
            if record is None or not isinstance(record.get("seq"), int) or "event" not in record:
                self._damaged(stream, line.number, line.problem)
                return
            if record["seq"] > self._seq(stream):
                if record["seq"] != self._seq(stream) + 1:
                    self._damaged(stream, line.number, "an event is missing before it")
                    return
                wrong = self._take(Event(stream, record))
                if wrong is not None:
                    self._damaged(stream, line.number, wrong)
                    return

    def _take(self, event: Event) -> str | None:
        """Evolve by an event that was read; why it is none, and then nothing changed."""
        wrong = problem(event.stream, event.record, self.world.runs.get(event.stream))
        if wrong is not None:
            return wrong
        try:
            self.world = evolve(self.world, event)
        except NOT_ONE as exc:
            return f"{event.name} that cannot be: {type(exc).__name__}"
        self._intend(event)
        return None

    def _seq(self, stream: str) -> int:
        if stream == ENGINE_STREAM:
            return self.world.engine_seq
        if stream == LEARNING_STREAM:
            return self.world.learning.seq
        run = self.world.runs.get(stream)
        return 0 if run is None else run.seq

    def _damaged(self, stream: str, number: int, problem: str | None) -> None:
        name = log_file(stream)
        cause = f"{name}, line {number}, is damaged ({problem or 'no event'}): what follows it is not read"
        self.problems[stream] = error("E_LOG_DAMAGED", cause, None, f"{name}:{number}")
        if stream in self.world.runs:
            runs = {run_id: run for run_id, run in self.world.runs.items() if run_id != stream}
            order = tuple(run_id for run_id in self.world.order if run_id != stream)
            self.world = self.world._replace(runs=runs, order=order)

    def _take_new_runs(self, run_ids: Sequence[str]) -> None:
        """New runs, in order of start. A log that does not begin with its start is left alone."""
        found = []
        for run_id in run_ids:
            news = self._poll(log_file(run_id))
            first = news.lines[0].record if news.lines else None
            if first is None or first.get("event") != "run_started" or first.get("run_id") != run_id:
                if news.lines:
                    self._damaged(run_id, 1, "a run's log begins with run_started")
                continue
            number = first.get("number")
            found.append((number if isinstance(number, int) else 0, run_id, news))
        for _, run_id, news in sorted(found, key=lambda item: item[:2]):
            self._fold(run_id, news)
        if len(found) > 1:
            self._set_cross_marks()
        self._drop_old_intents([run_id for _, run_id, _ in found])

    def _drop_old_intents(self, run_ids: Sequence[str]) -> None:
        """A cleared outbox is no reason to send again what is over.

        That is the SPAWN of a closed step, and everything of a run whose record says that it has ended: the record
        is written after the dispatch.
        """
        over = {run_id for run_id in run_ids if self._recorded_end(run_id)}
        for key, (_, record) in list(self.intents.items()):
            run = self.world.runs.get(record.get("run_id") or "")
            if run is None or run.run_id not in run_ids:
                continue
            if run.run_id in over or (record.get("signal") == "SPAWN" and not _awaited(run, record)):
                del self.intents[key]

    def _recorded_end(self, run_id: str) -> bool:
        run = self.world.runs.get(run_id)
        if run is None or run.open:
            return False
        data = self.root.read(record_file(run_id)).data or b""
        return b'\n  completed_at: "' in data[:400]

    def _set_cross_marks(self) -> None:
        """What one run's log says about another's entry, and the order of decisions, need all logs."""
        world = self.world
        for run in world.runs.values():
            for name in run.entry_ids:
                entry = run.entries.get(name)
                other = None if entry is None else world.entry(entry.deadlock_with or "")
                if other is not None and not other.deadlock:
                    owner = world.runs[other.run_id]
                    marked = owner.entries.with_item(other.id, other.model_copy(update={"deadlock": True}))
                    world = world._replace(runs={**world.runs, owner.run_id: owner._replace(entries=marked)})
        entries = [entry for name in world.decided if (entry := world.entry(name)) is not None]
        entries.sort(key=lambda entry: entry.decision.decided_at if entry.decision is not None else "")
        self.world = world._replace(decided=tuple(entry.id for entry in entries))

    def _take_ids(self, name: str) -> None:
        news = self._poll(name)
        for line in news.lines:
            made_id = (line.record or {}).get("id")
            if isinstance(made_id, str):
                self._sent.add(f"{name} {made_id}")
                self.intents.pop(f"{name} {made_id}", None)

    def _take_packets(self) -> None:
        news = self._poll(SIGNALS)
        for line in news.lines:
            fallback = f"line-{line.number}-{sha256(line.raw)[:12]}"
            packet = None if line.record is None else Packet.read(line.record, fallback)
            if packet is not None:
                if packet.id not in self.world.seen:
                    self.unread.append(packet)
            elif fallback not in self.world.seen:
                sender = (line.record or {}).get("from")
                self.unread.append((fallback, sender if isinstance(sender, str) else None))

    def _intend(self, event: Event) -> None:
        """Packets and notices that an event carries, dispatched once, by id; and what it is for the run's receipts."""
        if event.stream not in (ENGINE_STREAM, LEARNING_STREAM):
            self.trails.setdefault(event.stream, Trail(event.stream)).add(event.record)
        sends, notices = event.record.get("sends"), event.record.get("notices") or ()
        if sends is not None:
            self._want(OUTBOX, sends)
        for item in notices:
            self._want(NOTIFICATIONS, {"id": item["id"], "at": event.record["at"], **item})

    def _want(self, name: str, record: Mapping[str, Any]) -> None:
        key = f"{name} {record['id']}"
        if key not in self._sent:
            self.intents[key] = (name, record)

    def commit(self, events: Sequence[Event], world: World) -> None:
        """Append events to their logs, all or none, and take over the world that they make. Raises Refused."""
        lines: dict[str, list[bytes]] = {}
        for event in events:
            if event.stream in self.problems:
                raise Refused(self.problems[event.stream])
            lines.setdefault(log_file(event.stream), []).append(journal.encode(dict(event.record)))
        texts = {name: b"".join(found) for name, found in lines.items()}
        if len(events) == 1:
            name, text = next(iter(texts.items()))
            self.root.append(name, text)
        elif events:
            self.root.replace(PENDING, self._ahead(texts))
            for name, text in texts.items():
                self.root.append(name, text)
            self.root.remove(PENDING)
        self.world = world
        self.appended += len(events)
        for event in events:
            self._intend(event)
        for name in texts:
            # Our own lines are consumed, so that a log which is put back later is noticed.
            self._poll(name)

    def _ahead(self, texts: Mapping[str, bytes]) -> bytes:
        files = {}
        for name, text in texts.items():
            signature = self.root.signature(name)
            files[name] = {"size": 0 if signature is None else signature.size, "text": text.decode()}
        return json.dumps({"files": files}, ensure_ascii=False).encode("utf-8", "surrogatepass")

    def send(self, keys: Iterable[str]) -> list[tuple[str, Mapping[str, Any]]]:
        """Append intended packets and notices to their files, in order; returns (file, record) of each."""
        done = [self.intents[key] for key in keys]
        for name in (OUTBOX, NOTIFICATIONS):
            found = [record for file, record in done if file == name]
            if found:
                self.root.append(name, b"".join(journal.encode(dict(record)) for record in found))
                self.appended += len(found)
                self._sent.update(f"{name} {record['id']}" for record in found)
        for name, record in done:
            self.intents.pop(f"{name} {record['id']}", None)
        return done


def _awaited(run: Run, spawn: Mapping[str, Any]) -> bool:
    """Whether a SPAWN is the open one of its item."""
    index: int = spawn["item_index"]
    item = run.items[index]
    return item.state == "open" and spawn["id"] == spawn_id(run.run_id, index, item.attempt, item.resumes)


def _plan(data: bytes | None) -> list[tuple[str, int, bytes]]:
    """(log, its size before, lines) of a commit that was announced; nothing when it is no announcement of ours."""
    try:
        files = json.loads(data or b"")["files"]
        plan = [(str(name), int(files[name]["size"]), str(files[name]["text"]).encode()) for name in files]
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return []
    return plan if all(_is_log(name) and size >= 0 for name, size, _ in plan) else []


def _is_log(name: str) -> bool:
    stem = name.removeprefix(f"{RUNS}/").removesuffix(".jsonl")
    return name in map(log_file, (ENGINE_STREAM, LEARNING_STREAM)) or ("/" not in stem and name == log_file(stem))
