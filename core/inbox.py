"""What waits for a person, over all systems, in one order (docs/specs/console.md §2, Inbox)."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from core.acp.view import VERBS
from core.clock import parse, stamp
from core.files import sha256
from core.state import UserState
from core.workspace import Item

Lane = Literal["decide", "unblock", "know"]
LANES: tuple[Lane, ...] = ("decide", "unblock", "know")
SNOOZED = "snooze.json"


@dataclass(frozen=True, slots=True)
class InboxItem:
    """One thing that waits. `id` changes whenever the thing itself changes; `cause` is what alike items share."""

    id: str
    kind: str
    lane: Lane
    path: Path
    title: str
    who: str
    why: str
    since: datetime | None
    deadline: datetime | None
    action: str
    command: str
    cause: str

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "kind": self.kind,
            "lane": self.lane,
            "path": str(self.path),
            "title": self.title,
            "who": self.who,
            "why": self.why,
            "since": stamp(self.since) if self.since is not None else None,
            "deadline": stamp(self.deadline) if self.deadline is not None else None,
            "action": self.action,
            "command": self.command,
        }


_ACTIONS: Mapping[str, tuple[str, str]] = {
    "drafting": ("submit the proposal", "proposal_submitted"),
    "reviewing": ("write a review", "review_submitted"),
    "revising": ("revise the proposal", "proposal_revised"),
    "decision_review": ("accept the decisions", "decision_accepted"),
    "readiness_check": ("pass readiness", "readiness_passed"),
}


def _turn(item: Item, me: str) -> tuple[str, str]:
    """(what to do, event) for a participant whose turn it is."""
    text, event = _ACTIONS.get(item.phase or "", ("look at it", ""))
    state = item.state
    if state is not None and item.schema >= 2 and item.phase == "drafting" and not state.drafted:
        return "draft the deliverable", "deliverable_drafted"
    if state is not None and item.schema >= 2 and item.phase == "readiness_check" and not state.frozen:
        return "freeze the deliverable", "deliverable_frozen"
    if state is not None and item.phase == "decision_review" and state.classified_seq <= state.input_seq:
        return "classify the questions", "question_classified"
    if state is not None and item.phase == "readiness_check" and state.readiness_passed:
        return "conclude", "completed"
    return text, event


def acp_item(item: Item, me: str | None) -> InboxItem | None:
    """What a collaboration asks of this person, if anything. Without an identity: what it asks of anybody."""
    token = sha256(str(item.path).encode("utf-8", "surrogateescape"))[:12]
    folder = shlex.quote(str(item.path))
    asked_by = (item.last.actor if item.last is not None else None) or item.owner or ""

    def made(lane: Lane, why: str, action: str, command: str, cause: str) -> InboxItem:
        made_id = f"acp-{token}-{item.seq}-{lane}"
        return InboxItem(
            made_id, "acp", lane, item.path, item.title, asked_by, why, item.since, None, action, command, cause
        )

    if item.health in ("unreadable", "damaged"):
        why = item.problem.cause if item.problem is not None else "the folder cannot be read as it should"
        code = item.problem.code if item.problem is not None else item.health
        found = made("know", why, "look at the findings", f"collab validate --folder {folder}", f"invalid:{code}")
        return replace(found, id=f"{found.id}-{sha256(why.encode('utf-8', 'surrogatepass'))[:6]}")
    if item.phase == "blocked" and (me is None or me in item.participants):
        said = item.last.summary if item.last is not None else None
        command = f"collab new-round --from {folder} --folder {shlex.quote(f'{item.path}-2')}"
        return made(
            "unblock", said or "no reason given", "resolve it, then start a new round", command, f"blocked:{said}"
        )
    if item.phase in (None, "completed", "blocked") or not item.waiting_for:
        return None
    if me is None:
        names = ", ".join(item.waiting_for)
        action = _turn(item, item.waiting_for[0])[0]
        command = f"collab show --folder {folder}"
        return made("decide", f"waits for {names}", action, command, token)
    if me not in item.waiting_for:
        return None
    action, event = _turn(item, me)
    verb = VERBS.get(event)
    command = (
        f"collab {verb} --folder {folder} --as {shlex.quote(me)}"
        if verb
        else f"collab next --folder {folder} --participant {shlex.quote(me)}"
    )
    why = f"{item.phase}: {me} is waited for" + (f", last was {item.last.name}" if item.last is not None else "")
    return made("decide", why, action, command, token)


def items(
    summaries: Iterable[Item],
    me: Callable[[Item], str | None],
    snoozed: Mapping[str, datetime],
    now: datetime,
    more: Iterable[InboxItem] = (),
) -> list[InboxItem]:
    """Everything that waits and is not snoozed, by lane, then deadline, then age (oldest first).

    `more` is what the other systems ask for.
    """
    found = [made for item in summaries if (made := acp_item(item, me(item))) is not None]
    found += more
    return ordered(one for one in found if one.id not in snoozed or snoozed[one.id] <= now)


def ordered(found: Iterable[InboxItem]) -> list[InboxItem]:
    """The one order of the inbox."""
    far = datetime.max.replace(tzinfo=UTC)
    return sorted(
        found,
        key=lambda one: (LANES.index(one.lane), one.deadline or far, one.since or far, str(one.path), one.id),
    )


def snoozes(state: UserState) -> dict[str, datetime]:
    """Item id to the moment until which it is hidden."""
    raw = state.load(SNOOZED)
    return {name: until for name, text in raw.items() if (until := parse(text)) is not None}


def snooze(state: UserState, item: str, until: datetime, now: datetime) -> bool:
    """Hide an item until a moment; snoozes that are over are forgotten. False when it cannot be kept."""
    over = {name: None for name, end in snoozes(state).items() if end <= now}
    return state.update(SNOOZED, {**over, item: stamp(until)})


def groups(found: Sequence[InboxItem]) -> list[tuple[str, list[InboxItem]]]:
    """Items of one lane that share a cause, folded; the order of the first of each is kept."""
    made: dict[str, list[InboxItem]] = {}
    for one in found:
        made.setdefault(f"{one.lane}:{one.cause}", []).append(one)
    return list(made.items())
