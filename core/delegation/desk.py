"""A plan as people see it, followed live and handed over whole (docs/specs/delegation.md §8, docs/specs/console.md §2).

A look evolves what is known by the new events only and draws again only the rows that they touch. What is handed
over never changes afterwards, so another thread may show it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from core.clock import Clock
from core.delegation import view
from core.delegation.contract import Revision
from core.delegation.follow import News, PlanFollower
from core.delegation.model import CHAIN, JOURNAL
from core.delegation.place import Place
from core.delegation.progress import Delegated, seq_of
from core.delegation.view import Result, Results, Row, TaskLine, Timeline
from core.delegation.waiting import OPEN_AGE, waiting
from core.files import sha256
from core.finding import Finding, error
from core.inbox import InboxItem

CHECKED_AT_ONCE: Final = 100
"""Results that one turn of a live watcher looks at; the rest is looked at in the turns that follow."""
CHECKED_EVERY: Final = timedelta(seconds=5)
"""Time between two such turns; what an event names is looked at at once."""
AGED_EVERY: Final = 15
"""Seconds for which what waits stays as it was worked out, if nothing happens."""
FAILURE: Final = "failed"

CodeOf = Callable[[str, str | None, str], str]


@dataclass(frozen=True, eq=False)
class PlanView:
    """A plan at a moment. `timeline` is None when it cannot be read; `reasons` and `codes` of failures are by seq.

    `contract` is the live one, None with the timeline. `waiting` gives its items of the inbox at this moment.
    """

    path: Path
    name: str
    timeline: Timeline | None
    contract: Revision | None
    findings: tuple[Finding, ...]
    reasons: Mapping[int, str]
    codes: Mapping[int, str]
    waiting: Callable[[], list[InboxItem]] = field(repr=False)

    @property
    def inbox(self) -> list[InboxItem]:
        """What it asks of a person now; only for the thread that looks."""
        return self.waiting()

    @property
    def place(self) -> Place:
        from core.delegation.place import at

        return at(self.path)


class PlanDesk:
    """Follows one plan; writes nothing and runs no command. Not shared between threads.

    `code_of` names a failure (reason, who, when). `slice` bounds how many results a turn may look at, None all.
    """

    def __init__(
        self,
        path: Path,
        clock: Clock,
        code_of: CodeOf | None = None,
        open_age: timedelta = OPEN_AGE,
        slice: int | None = None,
    ) -> None:
        self.path, self._clock, self._code_of = path, clock, code_of
        self._open_age, self._slice = open_age, slice
        self._follower = PlanFollower(path)
        self._results = Results(self._follower.place)
        self._found: dict[str, Result] = {}
        self._turn, self._changes, self._checked = 0, 0, datetime.min.replace(tzinfo=UTC)
        self._items: tuple[tuple[object, ...], list[InboxItem]] = ((), [])
        self._rows: dict[str, Row] = {}
        self._tasks: dict[str, TaskLine] = {}
        self._refusals: list[view.RefusalLine] = []
        self._codes: dict[int, str] = {}
        self._reasons: dict[int, str] = {}
        self._said: tuple[Finding, ...] = ()
        self._fixed: tuple[object, ...] = ()
        self._view: PlanView | None = None

    def close(self) -> None:
        self._follower.close()

    def look(self) -> PlanView:
        """How the plan stands now; the same view as before when nothing happened. Never raises for what a plan is."""
        fixed = _fixed(self.path)
        known = self._view
        anew = known is not None and fixed != self._fixed
        news = self._follower.refresh() if anew else self._follower.look()
        self._fixed = fixed
        if known is None or news.any:
            self._view = known = self._draw(news)
        return known

    def _draw(self, news: News) -> PlanView:
        follower, now = self._follower, self._clock.now()
        if news.finding is not None and follower.readable:
            self._said = (news.finding,)
        if not follower.readable:
            self._forget()
            # A folder of markdown is a plan that nobody made one yet.
            problem = (follower.problem,) if follower.problem is not None and any(self._fixed) else ()
            return self._made(None, None, problem)
        progress, live = follower.progress, follower.chain.live
        if news.reread:
            self._forget()
        fresh = [view.refusal_line(follower, item) for item in progress.refusals[len(self._refusals) :]]
        self._refusals += fresh
        names = set(progress.delegations) if news.reread else self._touched(news)
        names |= {name for line in fresh for name in progress.of_task.get(line.task or "", ())}
        # Ids that are new come last, in the order of their first appearance.
        for name in sorted(names, key=lambda name: (name in self._rows, _first(progress.delegations.get(name)))):
            if name in progress.delegations:
                self._rows[name] = view.row(follower, progress.delegations[name], now)
                self._name(progress.delegations[name])
        for name in () if news.reread else news.delegations:
            self._look_at(progress.delegations.get(name))
        for line in fresh:
            if self._code_of is not None and line.by_helper:
                self._codes[line.seq] = self._code_of(line.reason, None, line.ts)
        self._tasks = {name: view.task_line(follower, name) for name in live.tasks}
        timeline = Timeline(
            plan=live.plan,
            generation=live.generation,
            contract_id=live.id,
            revision=live.number,
            as_of=now,
            until=None,
            lock=None,
            events=progress.events,
            head_seq=progress.head_seq,
            torn=follower.torn is not None,
            damaged=tuple(follower.damaged),
            seq_gaps=(),
            tasks=tuple(self._tasks.values()),
            rows=tuple(self._rows.values()),
            refusals=tuple(self._refusals),
            gaps=tuple(progress.gaps),
        )
        return self._made(timeline, live, (*self._said, *_damage(follower)))

    def _forget(self) -> None:
        self._rows, self._tasks, self._refusals, self._codes, self._reasons = {}, {}, [], {}, {}

    def _touched(self, news: News) -> set[str]:
        """The rows that new events may have changed: those they name, and those of the tasks they name."""
        progress = self._follower.progress
        # What names no task (an amendment, an approval) may complete any of them.
        tasks = news.tasks if news.tasks or news.delegations else progress.open.keys()
        return {*news.delegations, *(name for task in tasks for name in progress.of_task.get(task, ()))}

    def _name(self, known: Delegated) -> None:
        seq = seq_of(known.end) if known.end is not None else None
        if known.state != FAILURE or known.end is None or seq is None or seq in self._reasons:
            return
        from core.delegation.boundary import failure_reason

        actor = known.end.get("actor")
        who = actor.get("identity") if isinstance(actor, Mapping) else None
        self._reasons[seq] = failure_reason(known.end)
        if self._code_of is not None:
            self._codes[seq] = self._code_of(self._reasons[seq], who, str(known.end.get("ts")))

    def _made(self, timeline: Timeline | None, live: Revision | None, findings: tuple[Finding, ...]) -> PlanView:
        return PlanView(
            self.path,
            timeline.plan if timeline is not None else self.path.name,
            timeline,
            live,
            findings,
            dict(self._reasons),
            dict(self._codes),
            self._waiting,
        )

    def _waiting(self) -> list[InboxItem]:
        now = self._clock.now()
        self._check(now)
        key = (self._view, int(now.timestamp()) // AGED_EVERY, self._changes)
        if self._items[0] != key:
            self._items = (key, self._made_waiting(now))
        return self._items[1]

    def _made_waiting(self, now: datetime) -> list[InboxItem]:
        problem = next((item for item in self._view.findings if item.severity == "error"), None) if self._view else None
        found = [_invalid(self.path, problem)] if problem is not None else []
        if self._follower.readable:
            found += waiting(self._follower, now, self._known_result, self._open_age)
        return found

    def _known_result(self, event: Mapping[str, Any]) -> Result | None:
        return self._found.get(str(event["delegation_id"]))

    def _check(self, now: datetime) -> None:
        """Look whether results are what they were: at all of them, or at as many as a turn may."""
        if not self._follower.readable or (self._slice is not None and now - self._checked < CHECKED_EVERY):
            return
        self._checked = now
        known = [item for item in self._follower.progress.delegations.values() if "result_path" in item.latest]
        if self._slice is not None and len(known) > self._slice:
            start = self._turn % len(known)
            known = (known + known)[start : start + self._slice]
        self._turn += len(known)
        for item in known:
            self._look_at(item)

    def _look_at(self, known: Delegated | None) -> None:
        if known is None or "result_path" not in known.latest:
            return
        now = self._results.state(known.latest)
        if self._found.get(known.id) != now:
            self._found[known.id] = now
            self._changes += 1


def _first(known: Delegated | None) -> int:
    return (seq_of(known.first) or 0) if known is not None else 0


def _damage(follower: PlanFollower) -> Iterator[Finding]:
    if follower.damaged:
        first, more = follower.damaged[0], len(follower.damaged) - 1
        said = f" (and {more} more)" if more else ""
        verify = f"collab ledger --plan {shlex.quote(str(follower.place.plan))} verify"
        cause = f"{first.sentence}{said}; restore it before anything is written"
        yield error("journal_damaged", cause, verify, first.file)


def _invalid(path: Path, problem: Finding) -> InboxItem:
    token = sha256(str(path).encode("utf-8", "surrogateescape"))[:12]
    said = sha256(problem.cause.encode("utf-8", "surrogatepass"))[:6]
    return InboxItem(
        id=f"del-{token}-{said}-invalid",
        kind="plan",
        lane="know",
        path=path,
        title=path.name,
        who="",
        why=problem.cause,
        since=None,
        deadline=None,
        action="look at the findings",
        command=f"collab ledger --plan {shlex.quote(str(path))} verify",
        cause=f"invalid:{problem.code}",
    )


def marks(path: Path) -> tuple[object, ...]:
    """What tells that a plan changed: its journal and what is fixed."""
    return (_mark(path / JOURNAL), *_fixed(path))


def _fixed(path: Path) -> tuple[object, ...]:
    """The contract's files, whose change needs everything read anew."""
    chain = path / CHAIN
    try:
        with os.scandir(chain) as entries:
            names = sorted(entry.name for entry in entries if entry.name.endswith(".json") and entry.name[0] != ".")
    except (OSError, ValueError):
        names = []
    return (_mark(path / "contract.json"), *((name, _mark(chain / name)) for name in names))


def _mark(path: Path) -> tuple[int, ...]:
    try:
        info = os.lstat(path)
    except (OSError, ValueError):
        return ()
    return info.st_ino, info.st_size, info.st_mtime_ns


def was(path: Path, until: int, clock_now: datetime) -> tuple[Timeline, Mapping[str, Any] | None]:
    """A plan as it was after an event, and that event; ages are those of that moment. Raises Refused."""
    from core.delegation import reader
    from core.delegation.canon import moment
    from core.delegation.place import at

    record = reader.read(at(path), until, keep=True)
    last = record.entries[-1].event if record.entries else None
    as_of = moment(last.get("ts")) if last is not None else None
    return view.timeline(record, as_of or clock_now, until), last
