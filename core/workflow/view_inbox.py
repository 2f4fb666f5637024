"""What the workflows of a root ask of people, as items of the one inbox (docs/specs/console.md §2, Inbox)."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from pathlib import Path

from core.inbox import InboxItem, Lane
from core.workflow import times
from core.workflow.model import Entry
from core.workflow.state import World
from core.workflow.view_learning import proposals


def inbox_items(world: World, path: Path, now: int, me: str | None = None) -> list[InboxItem]:
    """What the workflows of a root ask of people: open entries that people were told of, and open proposals."""
    made = []
    where = f" --root {shlex.quote(str(path))}"
    for run in world.in_order():
        for name in sorted(run.open_entries):
            entry = run.entries.get(name)
            if entry is None or _hidden(entry, now) or entry.told_at is None:
                continue
            lane: Lane = "unblock" if entry.kind == "block" else "know" if entry.parks == "none" else "decide"
            why = "you started the run" if me is not None and me == run.by else f"waits for {entry.target}"
            made.append(
                InboxItem(
                    f"wf-{entry.id}-{entry.reminders}",
                    entry.kind,
                    lane,
                    path,
                    entry.question,
                    entry.raised_by,
                    why,
                    _moment(entry.opened_at),
                    _moment(entry.deadline_at),
                    "answer it" if lane != "unblock" else "unblock it",
                    f"collab escalation show {entry.id}{where}",
                    f"workflow:{entry.cause_key or entry.id}",
                )
            )
    for proposal in proposals(world):
        if proposal.state == "open":
            opened = world.learning.proposals[proposal.id].opened_at
            made.append(
                InboxItem(
                    f"wf-{proposal.id}",
                    "proposal",
                    "know",
                    path,
                    proposal.after[0],
                    "ambient",
                    "the same answer was given again" if proposal.kind == "rule" else "the same error came back",
                    _moment(opened),
                    _moment(proposal.expires_at),
                    "approve or reject it",
                    f"collab proposal list{where}",
                    f"proposal:{proposal.id}",
                )
            )
    return made


def _hidden(entry: Entry, now: int) -> bool:
    until = times.read(entry.snoozed_until)
    return until is not None and until > now


def _moment(text: str | None) -> datetime | None:
    made = times.read(text)
    return None if made is None else datetime.fromtimestamp(made / 1000, UTC)
