"""The engine of one root: a tick in the order of §6, and the acts of people (docs/specs/workflows.md §6, §7, §9)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from core import journal
from core.clock import SYSTEM, Clock
from core.files import Root
from core.finding import Finding, Refused, error
from core.lock import PATIENCE
from core.workflow import rules, timers, times
from core.workflow.acts import AbortRun, StartRun
from core.workflow.answers import Answer, Outcome, Settlement
from core.workflow.boundaries import CROSSINGS, Trail
from core.workflow.closed import ClosedRuns, over
from core.workflow.layout import OUTBOX, SCRATCH, SIGNALS, record_file, require_root
from core.workflow.model import ENGINE, Entry
from core.workflow.record import RecordText
from core.workflow.rules import Decided, Tick
from core.workflow.signals_in import Chance
from core.workflow.specs import ProfileSource, RootProfiles, Specs
from core.workflow.state import ENGINE_STREAM, LEARNING_STREAM, Run, World
from core.workflow.store import Store
from core.workflow.triggers import Surroundings, look, skip
from core.workflow.turn import Commands, Facts, Turn

RECORD_EVERY = 2_000
Probe = Callable[[str], None]
Leave = Callable[[Sequence[Trail]], Sequence[Finding]]
Deliver = Callable[[Mapping[str, Any]], None]


def _no_probe(_: str) -> None:
    return


def _no_delivery(_: Mapping[str, Any]) -> None:
    return


def _no_receipts(_: Sequence[Trail]) -> Sequence[Finding]:
    return ()


class Transport(Protocol):
    """How packets reach agents and come back (§6). A distributed one would stand here too."""

    def standing(self, agent: str) -> Commands:
        """Whether an agent is a process of ours, and whether this engine may start it."""
        ...

    def send(self, packet: Mapping[str, Any]) -> None:
        """A packet that is in the outbox now."""
        ...

    def poll(self) -> Sequence[Mapping[str, Any]]:
        """Packets that came in since the last time; each is returned once."""
        ...


class FileTransport:
    """The default: agents poll the outbox and answer with `collab signal`."""

    def standing(self, agent: str) -> Commands:
        return "none"

    def send(self, packet: Mapping[str, Any]) -> None:
        return

    def poll(self) -> Sequence[Mapping[str, Any]]:
        return ()


@dataclass
class _Written:
    text: RecordText = field(default_factory=RecordText)
    seq: int = 0
    outcome: str = ""
    at: int = -RECORD_EVERY


class Engine:
    """Reads, decides and writes below one root; a context manager. One thread, one process."""

    def __init__(
        self,
        path: Path,
        *,
        clock: Clock = SYSTEM,
        chance: Chance | None = None,
        profiles: ProfileSource | None = None,
        transport: Transport | None = None,
        deliver: Deliver = _no_delivery,
        leave: Leave = _no_receipts,
        probe: Probe = _no_probe,
        stems: bool = True,
        triggers: bool = True,
        patience: float = PATIENCE,
    ) -> None:
        """`triggers`: whether workflows may start by themselves (§11). `leave` writes the receipts of runs.

        `probe` is called at `before_commit`, `before_dispatch`, `after_dispatch` of each tick: a test may die there.

        Raises Refused where there is nothing of ours.
        """
        self.root = Root(path, SCRATCH)
        try:
            require_root(self.root)
        except Refused:
            self.root.close()
            raise
        self.clock, self.chance, self.patience = clock, chance or Chance(), patience
        self.profiles = profiles or RootProfiles(self.root)
        self.specs = Specs(self.root, lambda name: self.profiles(name) is not None, stems)
        self.transport: Transport = transport or FileTransport()
        self._deliver, self._leave = deliver, leave
        self.left: tuple[Finding, ...] = ()
        """What could not be done about receipts after the last act or tick; warnings."""
        self.probe = probe
        self.surroundings = Surroundings(self.root) if triggers else None
        self._index = ClosedRuns(self.root)
        self.store = Store(self.root, closed=ClosedRuns(self.root))
        self._records: dict[str, _Written] = {}
        self._looked = False

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.root.close()

    @property
    def world(self) -> World:
        """As of the last look."""
        return self.store.world

    @property
    def now(self) -> int:
        """Engine time: the clock, but never before the last event."""
        return max(times.of(self.clock.now()), self.world.last_at)

    def next_due(self) -> int | None:
        """The first timer still to come, after now."""
        return timers.following(self.world, self.now)

    def findings(self) -> list[Finding]:
        """What is wrong around the engine and does not stop it: damaged logs, files of conditions and profiles."""
        found = list(self.store.problems.values())
        if self.surroundings is not None:
            found += self.surroundings.findings
        if isinstance(self.profiles, RootProfiles):
            found += self.profiles.problems.values()
        return found

    def _facts(self) -> Facts:
        return Facts(
            specs=self.specs.hashes(),
            exists=self.root.exists,
            commands=self.transport.standing,
            token=self.chance.token,
            suffix=self._suffix,
        )

    def _suffix(self, number: int) -> str:
        """Four hex digits that no run of this root bears yet."""
        taken = {run_id.rsplit("-", 1)[-1] for run_id in self.store.run_ids()}
        made = self.chance.suffix(number)
        while made in taken and len(taken) < 0xFFFF:
            made = self.chance.suffix(number)
        return made

    def tick(self, flush: bool = True) -> Decided:
        """One tick; whatever a person asks for in the meantime waits for the lock. Raises Refused.

        `flush`: write each record that changed, not only those whose outcome did or that are 2 s old.
        """
        self.store.need_all()
        with self.store.locked(self.patience):
            self._receive()
            self._look_around()
            command = Tick(tuple(self.store.unread), self.specs.broken())
            made = self._commit(command, self.probe)
            self.store.unread = []
            self._dispatch()
            self.probe("after_dispatch")
            self._project(flush)
        names = [] if self._looked else list(self.store.trails)
        self._looked = True
        return self._crossed(made, names)

    def _crossed(self, made: Decided, also: Iterable[str] = ()) -> Decided:
        """Receipts of the boundaries among these events; outside the lock, as nothing depends on them.

        `also`: runs that may lack some, because whoever wrote their events was killed before their receipts.
        """
        names = dict.fromkeys([*also, *(event.stream for event in made.events if event.name in CROSSINGS)])
        trails = [self.store.trails[name] for name in names if name in self.store.trails]
        self.left = tuple(self._leave(trails)) if trails else ()
        return made

    def _receive(self) -> None:
        """What transports brought enters like every packet: through signals.jsonl."""
        found = [dict(packet) for packet in self.transport.poll()]
        if found:
            self.root.append(SIGNALS, b"".join(journal.encode(packet) for packet in found), own_line=True)
            self.store.refresh()

    def _look_around(self) -> None:
        """Triggers and the conditions of ambient/rules.yml; whatever they start begins in this tick."""
        if self.surroundings is None:
            return
        specs = {item.workflow: item.spec for item in self.specs.all().values() if item.spec is not None}
        before = self.surroundings.remembered()
        turn = Turn(self.world, times.of(self.clock.now()), self._facts())
        starts, after = look(turn, specs, self.surroundings, before)
        self.store.commit(turn.events, turn.world)
        for start in starts:
            reason = "a run is open" if self.world.open_run(start.workflow) is not None else None
            if reason is None:
                command = StartRun(start.workflow, self.specs.find(start.workflow), self.profiles, by=ENGINE)
                reason = None if self._commit(command).run_id is not None else "the start was refused"
            if reason is not None:
                turn = Turn(self.world, times.of(self.clock.now()))
                skip(turn, start.key, start.workflow, reason)
                self.store.commit(turn.events, turn.world)
        if after != before:
            self.surroundings.remember(after)

    def _commit(self, command: rules.Command, probe: Probe = _no_probe) -> Decided:
        for stream in (ENGINE_STREAM, LEARNING_STREAM):
            if stream in self.store.problems:
                raise Refused(self.store.problems[stream])
        decides = isinstance(command, (Answer, Settlement))
        agents = self.profiles.names() if decides else frozenset()
        made = rules.decide(self.world, command, times.of(self.clock.now()), self._facts(), agents)
        probe("before_commit")
        self.store.commit(made.events, made.world)
        probe("before_dispatch")
        return made

    def _dispatch(self) -> None:
        """Each packet and notice whose id is not yet in its file; one that this engine cannot send waits."""
        keys = [
            key
            for key, (file, record) in self.store.intents.items()
            if file != OUTBOX or self.transport.standing(str(record["to"])) in ("none", "allowed")
        ]
        for file, record in self.store.send(keys):
            if file == OUTBOX:
                self.transport.send(record)
            else:
                self._deliver(record)

    def _project(self, flush: bool) -> None:
        now = self.now
        for run in self.world.runs.values():
            self._write_record(run, now, flush)
        try:
            self._index.refresh()
            self._index.keep(run for run in self.world.runs.values() if over(run, self.world))
        except (OSError, Refused):
            # Without the index whoever looks reads the logs.
            pass

    def _write_record(self, run: Run, now: int, flush: bool) -> None:
        known = self._records.get(run.run_id)
        if known is None:
            known = self._records[run.run_id] = _Written()
        outcome = run.outcome_at(now)
        if known.seq == run.seq and known.outcome == outcome:
            return
        if not flush and known.outcome == outcome and now - known.at < RECORD_EVERY:
            return
        name = record_file(run.run_id)
        pieces = list(known.text.pieces(run, now))
        if known.seq or self.root.read(name).data != b"".join(pieces):
            self.root.replace(name, pieces)
        known.seq, known.outcome, known.at = run.seq, outcome, now

    def start(
        self,
        workflow: str,
        mode: str = "manual",
        grant: bool = False,
        parent: str | None = None,
        by: str = "operator",
        shown: str | None = None,
    ) -> Decided:
        """Start a run, or note why not. The next tick begins it.

        `shown`: the spec's hash in a preview. Raises Refused (`preview_outdated`) when the file says another one now.
        """
        with self.store.locked(self.patience):
            command = StartRun(workflow, self.specs.find(workflow), self.profiles, mode, grant, parent, by)
            if shown is not None and (command.loaded is None or command.loaded.hash != shown):
                cause = f"the file of {workflow} is no longer as the preview showed it"
                raise Refused(error("preview_outdated", cause, None, workflow))
            return self._commit(command)

    def abort(self, run: str, by: str = "operator", note: str | None = None) -> Outcome:
        return self._act(AbortRun(run, by, note), run)

    def answer(self, answer: Answer, shown: Entry | None = None) -> Outcome:
        """Decide, defer or acknowledge an entry; first wins, whatever the channel.

        `shown`: the entry as a preview showed it. Raises Refused (`preview_outdated`) when it is open and another one.
        """
        with self.store.locked(self.patience):
            self.store.need_entries([answer.entry])
            entry = self.world.entry(answer.entry)
            if shown is not None and entry is not None and entry.state == "open" and entry != shown:
                cause = f"{entry.id} is no longer as the preview showed it"
                raise Refused(error("preview_outdated", cause, None, entry.id))
            made = self._commit(answer)
        return self._crossed(made).outcome

    def settle(self, settlement: Settlement) -> Outcome:
        """Approve or reject a proposal, or revoke a rule."""
        return self._act(settlement)

    def _act(self, command: rules.Command, *runs: str) -> Outcome:
        with self.store.locked(self.patience):
            self.store.need(runs)
            made = self._commit(command)
        return self._crossed(made).outcome
