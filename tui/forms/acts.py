"""An act that a form prepared: what a preview plans, shows and commits (docs/specs/console.md §2)."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from core.acp import guided, store, view
from core.acp.model import Draft
from core.acp.reader import Snapshot, require
from core.acp.store import Appended, Change, Check, Expectation, Plan
from core.clock import Clock


class Writable(Protocol):
    """Whatever can be planned on a snapshot and then written; a plan can be made again when the folder moved."""

    @property
    def path(self) -> Path: ...

    def plan(self, snapshot: Snapshot, clock: Clock) -> Plan:
        """What would be written now. Raises Refused with every reason."""
        ...

    def commit(self, clock: Clock, expect: Expectation, patience: float) -> Appended:
        """Write it, if the folder still is as expected. Raises Refused."""
        ...

    def command_line(self, plan: Plan) -> str:
        """The equivalent `collab …` command."""
        ...


@dataclass(frozen=True)
class Act:
    """One event from a draft, with a document change if there is one. `follow`: it always answers the latest event."""

    path: Path
    draft: Draft
    change: Change | None = None
    check: Check | None = None
    command: str = ""
    follow: bool = True

    def _draft(self, snapshot: Snapshot) -> Draft:
        last = snapshot.last()
        return replace(self.draft, reply_to=last.seq if last is not None else None) if self.follow else self.draft

    def plan(self, snapshot: Snapshot, clock: Clock) -> Plan:
        return store.plan(snapshot, self._draft(snapshot), clock, self.change, self.check)

    def commit(self, clock: Clock, expect: Expectation, patience: float) -> Appended:
        return store.append_with(self.path, lambda snapshot: self.plan(snapshot, clock), clock, expect, patience)

    def command_line(self, plan: Plan) -> str:
        return self.command or view.append_command(self.path, self._draft(plan.snapshot))


@dataclass(frozen=True)
class GuidedAct:
    """A guided act of the core; `words` are the flags of its verb after `--folder F --as ID`, `note` what they omit."""

    path: Path
    act: guided.Act
    words: tuple[str, ...] = ()

    def plan(self, snapshot: Snapshot, clock: Clock) -> Plan:
        return guided.prepare(self.act, snapshot, clock)

    def commit(self, clock: Clock, expect: Expectation, patience: float) -> Appended:
        return guided.commit(self.path, self.act, clock, expect, patience)

    def command_line(self, plan: Plan) -> str:
        verb = view.VERBS.get(self.act.event, "append")
        words = ["collab", verb, "--folder", str(self.path), "--as", self.act.participant, *self.words]
        return " ".join(shlex.quote(word) for word in words)


def plan_now(act: Writable, clock: Clock) -> Plan:
    """Plan an act on the folder as it is at this moment; reads files. Raises Refused."""
    return act.plan(require(act.path), clock)


__all__ = ["Act", "GuidedAct", "Writable", "plan_now"]
