"""Follows a plan's journal for a live screen (docs/specs/delegation.md §8, "Live").

Nothing is polled per delegation: a look costs one `stat` when nothing happened, else only the new lines are read and
added to what is known. A shrunk journal with a new archive that holds what was read is a roll; any other change of
what was read is a finding and everything is read again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from core import journal
from core.delegation import reader
from core.delegation.contract import Chain
from core.delegation.model import JOURNAL
from core.delegation.place import Place, at
from core.delegation.progress import Entry, Progress, evolve
from core.delegation.reader import Damage
from core.files import Root
from core.finding import Finding, Refused, warning


@dataclass(frozen=True, slots=True)
class News:
    """What a look found. `reread` means that everything was read anew: nothing drawn before is good any more.

    `delegations` and `tasks` are the ids that new events name; only their rows have to be drawn again.
    """

    events: int = 0
    reread: bool = False
    delegations: frozenset[str] = frozenset()
    tasks: frozenset[str] = frozenset()
    finding: Finding | None = None

    @property
    def any(self) -> bool:
        return bool(self.events or self.reread or self.finding)


class PlanFollower:
    """A plan that is looked at again and again; a `Source` of timelines. Belongs to one thread.

    A plan that cannot be read has no progress; `problem` then says why, and the next looks try again.
    """

    def __init__(self, plan: Path) -> None:
        """`plan` is the plan folder, absolute. Reads nothing yet."""
        self.place: Place = at(plan)
        self.problem: Finding | None = None
        self.record: reader.Record | None = None
        self.damaged: list[Damage] = []
        self.torn: Damage | None = None
        self._root: Root | None = None
        self._follower: journal.Follower | None = None
        self._archives: set[str] = set()
        self._bad: Damage | None = None
        self._foreign: set[str] = set()

    @property
    def chain(self) -> Chain:
        return self._known().chain

    @property
    def progress(self) -> Progress:
        return self._known().progress

    @property
    def readable(self) -> bool:
        return self.record is not None

    def _known(self) -> reader.Record:
        if self.record is None:
            raise Refused(
                self.problem or warning("plan_unread", "the plan was not read yet", None, str(self.place.plan))
            )
        return self.record

    def close(self) -> None:
        if self._root is not None:
            self._root.close()
            self._root = None

    def look(self) -> News:
        """Read what is new. Never raises for what a plan may be: see `problem` and `News.finding`."""
        if self.record is None or self._root is None or self._follower is None:
            return self._begin(None)
        before = self._follower.mark
        # Nothing of an empty journal can change, so it may have been filled and rolled unseen.
        earlier = self._rolled(before) if before.offset == 0 else []
        news = self._follower.poll()
        if news.reset is None and (news.problem is None or before.offset == 0):
            return _joined(self._evolve(earlier or []), self._take(news.lines, news.pending))
        rest = self._rolled(before)
        if rest is None:
            said = f"{JOURNAL} is not what was read before ({news.reset or 'unreadable'}); the plan was read anew"
            return self._begin(warning("journal_rewritten", said, None, JOURNAL))
        if self._bad is not None:
            # What was the journal's last line stands in an archive now, and archives are never mended.
            self.damaged.append(self._bad)
            self._bad = None
        return _joined(self._evolve(rest), self._take(news.lines, news.pending))

    def refresh(self) -> News:
        """Read everything anew, because something else than the journal changed (the contract, an archive)."""
        return self._begin(None)

    def _begin(self, finding: Finding | None) -> News:
        self.close()
        self.record, self.problem = None, None
        self.damaged, self.torn, self._bad = [], None, None
        try:
            self._root = Root(self.place.plan)
            chain = reader.read_chain(self._root, self.place)
        except Refused as exc:
            self.problem = exc.findings[0]
            self.close()
            return News(reread=True, finding=finding or self.problem)
        self.record = reader.Record(self.place, chain, Progress(chain))
        listed = reader.archives(self._root.names())
        self._archives = {name for _, _, name in listed}
        for name in [name for _, _, name in listed]:
            log = journal.read(self._root, name)
            if log.problem is not None:
                self.damaged.append(Damage(name, 0, 0, log.problem.cause))
            self._evolve(reader.lines_of(name, log))
        self._follower = journal.Follower(self._root, JOURNAL)
        news = self._follower.poll()
        if {name for _, _, name in reader.archives(self._root.names())} != self._archives:
            # A roll between two reads: once more, then it is seen as the roll that it is.
            return self._begin(finding)
        made = self._take(news.lines, news.pending)
        return News(self.progress.events, True, made.delegations, made.tasks, finding)

    def _rolled(self, before: journal.Mark) -> list[Entry | Damage] | None:
        """What new archives hold that was not read yet, if the first of them begins with all that was read."""
        assert self._root is not None  # noqa: S101 - look() began
        names = [name for _, _, name in reader.archives(self._root.names()) if name not in self._archives]
        if not names or not journal.prefix_matches(self._root, names[0], before):
            return None
        self._archives.update(names)
        found: list[Entry | Damage] = []
        for index, name in enumerate(names):
            log = journal.read(self._root, name)
            skipped = before.lines if index == 0 else 0
            found += [item for item in reader.lines_of(name, log) if item.line > skipped]
        return found

    def _take(self, lines: Iterable[journal.Line], pending: bytes) -> News:
        listed = list(lines)
        if listed and self._bad is not None:
            # It is not the last line any more, so it is damage and no torn tail.
            self.damaged.append(self._bad)
            self._bad = None
        if listed and listed[-1].record is None:
            last = listed.pop()
            self._bad = Damage(JOURNAL, last.number, last.offset, last.problem or "unreadable")
        found = self._evolve(reader.items(JOURNAL, listed))
        self.torn = self._bad
        if pending.strip():
            known, problem = journal.decode(pending)
            if known is None:
                # Its writer may be at work; it is shown as torn and read when it is whole.
                mark = self._follower.mark if self._follower is not None else journal.EMPTY
                self.torn = Damage(JOURNAL, mark.lines + 1, mark.offset, problem or "unfinished")
        return found

    def _evolve(self, items: Iterable[Entry | Damage]) -> News:
        record = self._known()
        count = 0
        delegations: set[str] = set()
        tasks: set[str] = set()
        for item in items:
            if isinstance(item, Damage):
                self.damaged.append(item)
                continue
            event = item.event
            cited = event.get("contract_id")
            if isinstance(cited, str) and record.chain.cited(cited) is None and cited not in self._foreign:
                self._reload(record, cited)
            evolve(record.progress, event)
            count += 1
            for names, key in ((delegations, "delegation_id"), (tasks, "task")):
                value = event.get(key)
                if isinstance(value, str):
                    names.add(value)
        return News(count, False, frozenset(delegations), frozenset(tasks))

    def _reload(self, record: reader.Record, cited: str) -> None:
        """An event cites a contract that is new: the plan was amended. What is known of the journal stays."""
        self._foreign.add(cited)
        if self._root is None:
            return
        try:
            chain = reader.read_chain(self._root, self.place)
        except Refused:
            return
        record.chain = record.progress.chain = chain


def _joined(one: News, two: News) -> News:
    return News(
        one.events + two.events,
        one.reread or two.reread,
        one.delegations | two.delegations,
        one.tasks | two.tasks,
    )
