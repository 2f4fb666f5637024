"""What the workflows of a root ask of people, as items of the one inbox (docs/specs/console.md §2, Inbox)."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from core.files import sha256
from core.inbox import InboxItem, Lane
from core.workflow import times
from core.workflow.model import Entry
from core.workflow.rows import RunRow
from core.workflow.state import Run, World
from core.workflow.view_learning import proposals

KIND: Final = "workflow"
RESULT_FOR: Final = 24 * 3_600_000
"""Milliseconds for which the result of the last run of a workflow lies in the inbox: its final acceptance (§5)."""


def inbox_items(world: World, rows: Iterable[RunRow], path: Path, now: int, me: str | None = None) -> list[InboxItem]:
    """Open entries that people were told of, open proposals, and how the last run of each workflow ended."""
    where = f" --root {shlex.quote(str(path))}"
    token = sha256(str(path).encode("utf-8", "surrogateescape"))[:12]
    made = [
        _entry_item(entry, run, path, where, token, me)
        for run in world.in_order()
        for name in sorted(run.open_entries)
        if (entry := run.entries.get(name)) is not None and asked(entry, now)
    ]
    return [*made, *_proposal_items(world, path, where, token), *_result_items(rows, path, where, token, now)]


def asked(entry: Entry, now: int) -> bool:
    """Whether an open entry is in front of people now: they were told of it, and nobody hid it until later."""
    until = times.read(entry.snoozed_until)
    return entry.told_at is not None and (until is None or until <= now)


def item_id(path: Path, name: str, reminders: int = 0) -> str:
    """The id of an inbox item: of a question, another one after each reminder, of a proposal, of a run's result."""
    return f"wf-{sha256(str(path).encode('utf-8', 'surrogateescape'))[:12]}-{name}-{reminders}"


def _entry_item(entry: Entry, run: Run, path: Path, where: str, token: str, me: str | None) -> InboxItem:
    lane: Lane = "unblock" if entry.kind == "block" else "know" if entry.parks == "none" else "decide"
    late = "overdue; " if entry.overdue else ""
    why = "you started the run" if me is not None and me == run.by else f"{run.workflow} waits for {entry.target}"
    return InboxItem(
        item_id(path, entry.id, entry.reminders),
        KIND,
        lane,
        path,
        entry.question,
        entry.raised_by,
        late + why,
        moment(entry.opened_at),
        moment(entry.deadline_at),
        "unblock it" if lane == "unblock" else "see it" if lane == "know" else "answer it",
        f"collab escalation show {entry.id}{where}",
        f"{KIND}:{token}:{entry.cause_key or entry.id}",
    )


def _proposal_items(world: World, path: Path, where: str, token: str) -> Iterator[InboxItem]:
    for proposal in proposals(world):
        if proposal.state != "open":
            continue
        yield InboxItem(
            item_id(path, proposal.id),
            KIND,
            "know",
            path,
            proposal.after[0],
            "ambient",
            "the same answer was given again" if proposal.kind == "rule" else "the same error came back",
            moment(world.learning.proposals[proposal.id].opened_at),
            moment(proposal.expires_at),
            "approve or reject it",
            f"collab proposal list{where}",
            f"{KIND}:{token}:{proposal.id}",
        )


def _result_items(rows: Iterable[RunRow], path: Path, where: str, token: str, now: int) -> Iterator[InboxItem]:
    last = {run.workflow: run for run in sorted(rows, key=lambda row: row.number)}
    for run in last.values():
        ended = times.read(run.completed_at)
        if ended is None or now - ended > RESULT_FOR:
            continue
        well = run.counts.get("success", 0)
        ruled = f"; {run.by_rule} answered by a rule" if run.by_rule else ""
        yield InboxItem(
            item_id(path, run.run_id),
            KIND,
            "know",
            path,
            f"{run.workflow} has ended: {run.outcome}, {well} of {run.total} done well{ruled}",
            run.by,
            run.run_id,
            moment(run.completed_at),
            None,
            "look at the result",
            f"collab workflow status {run.run_id}{where}",
            f"{KIND}:{token}:{run.run_id}",
        )


def moment(text: str | None) -> datetime | None:
    """An ISO text as a time, or None."""
    made = times.read(text)
    return None if made is None else datetime.fromtimestamp(made / 1000, UTC)
