"""What a plan asks of a person (docs/specs/console.md §2, Inbox). Runs and writes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from core.clock import duration
from core.delegation.canon import moment
from core.delegation.progress import Delegated, criterion_states, seq_of, status, text_of
from core.delegation.store import command
from core.delegation.view import Result, Source
from core.files import sha256

if TYPE_CHECKING:
    from core.inbox import InboxItem

OPEN_AGE: Final = timedelta(minutes=30)
"""From this age on an open delegation is a person's business; a setting of the caller's goes over it."""

Check = Callable[[Mapping[str, Any]], Result | None]


def waiting(source: Source, now: datetime, check: Check | None = None, age: timedelta = OPEN_AGE) -> list[InboxItem]:
    """Open delegations older than `age`, results that are not what they were, finished work whose gate has not run.

    `check` says what a result is now (`view.Results.state`); without it results are not looked at.
    """
    found = [*_old(source, now, age), *_ungated(source)]
    return found + list(_changed(source, check)) if check is not None else found


def _item(source: Source, known: Delegated, kind: str, lane: Any, why: str, action: str, words: str, cause: str) -> Any:
    from core.inbox import InboxItem

    plan = source.place.plan
    token = sha256(str(plan).encode("utf-8", "surrogateescape"))[:12]
    since = moment((known.end or known.launch or known.first).get("ts"))
    seq = seq_of(known.latest) or 0
    return InboxItem(
        id=f"del-{token}-{known.id}-{seq}-{kind}",
        kind=f"delegation-{kind}",
        lane=lane,
        path=plan,
        title=f"{source.chain.live.plan}: {known.task or '?'} / {known.id}",
        who=_who(known),
        why=why,
        since=since,
        deadline=None,
        action=action,
        command=words,
        cause=cause,
    )


def _who(known: Delegated) -> str:
    actor = known.latest.get("actor")
    identity = actor.get("identity") if isinstance(actor, Mapping) else None
    return identity if isinstance(identity, str) else ""


def _old(source: Source, now: datetime, age: timedelta) -> Iterator[Any]:
    """A dead delegate reads launched for ever: its age is all there is to see."""
    for name in sorted(name for names in source.progress.open.values() for name in names):
        known = source.progress.delegations[name]
        begun = moment((known.launch or known.first).get("ts"))
        if begun is None or now - begun < age:
            continue
        why = f"open for {duration((now - begun).total_seconds())}; nobody has said how it ended"
        payload = json.dumps({"delegation_id": known.id, "state": "failed"})
        words = command(source.place, "delegate", "collect", "--task", known.task or "", "--json", payload)
        yield _item(source, known, "open", "unblock", why, "collect it or cancel it", words, "delegation:open")


def _ungated(source: Source) -> Iterator[Any]:
    """A task with a completed delegation of this attempt, and no gate has run since."""
    live, progress = source.chain.live, source.progress
    for task, begun in progress.starts.items():
        if task not in live.tasks or status(progress, live, task) == "completed" or progress.open.get(task):
            continue
        known = [progress.delegations[name] for name in progress.of_task.get(task, ())]
        claims = {seq_of(one.end) or 0: one for one in known if one.state == "completed" and one.end is not None}
        last = max(claims, default=0)
        if last <= max(begun, progress.ran.get(task, 0)):
            continue
        missing = [state.criterion for state in criterion_states(progress, live, task) if not state.satisfied]
        check = next(intent.check for intent in live.tasks[task].gate_intent if intent.criterion == missing[0])
        words = command(source.place, "gate", "--task", task, "--criterion", missing[0], "--json", json.dumps(check))
        why = f"{claims[last].id} says it is done; no gate of {task} has run since"
        yield _item(source, claims[last], "ungated", "decide", why, "run the gate", words, "delegation:ungated")


def _changed(source: Source, check: Check) -> Iterator[Any]:
    for known in source.progress.delegations.values():
        found = check(known.latest)
        if found not in ("changed", "missing"):
            continue
        path = text_of(known.latest, "result_path") or ""
        why = f"{path} is {'gone' if found == 'missing' else 'not what was collected'}"
        words = command(source.place, "verify")
        yield _item(source, known, f"result-{found}", "know", why, "look at the result", words, f"delegation:{found}")
