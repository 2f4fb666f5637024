"""Previews of what is recorded in a plan: the exact lines, what they change, the command (docs/specs/console.md §2).

Each is bound to the head seq it was drawn from: if anything was recorded meanwhile it is refused and drawn again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from core.delegation import brief, canon, preview, store
from core.delegation.boundary import receipt_id
from core.delegation.place import Place
from core.delegation.preview import Preview
from core.delegation.store import CALLER, Delegating, Outcome
from core.delegation.writer import Halt, Hold, World
from core.finding import Refused, error
from core.governance import plan_boundary
from core.governance.boundary import RECEIPTS, root_for
from tui.forms.confirm import Deed

Section = tuple[str, Sequence[str]]


def actor(me: str | None) -> dict[str, str]:
    """Who acts in the console: a person, under their own name."""
    return {"kind": "human", "identity": me} if me else dict(CALLER)


def command(place: Place, *words: str, me: str | None = None) -> str:
    """The same act as a command line."""
    who = ("--actor-kind", "human", "--actor-identity", me) if me else ()
    return store.command(place, *words, *who)


def recorded(place: Place, act: Callable[[], Outcome], expected: bool = False) -> str:
    """Do it, leave its receipts, and say what happened; raises Refused. An `expected` refusal is said, not raised."""
    try:
        made = act()
    except Halt as exc:
        raise Refused(exc.finding) from None
    left = plan_boundary.leave(place.plan, frozenset(event["seq"] for event in made.events))
    codes = "".join(f"\nfailure code: {code}" for code in left.codes.values())
    trouble = "".join(f"\n{item.cause}" for item in left.findings)
    if made.finding is not None and not expected:
        raise Refused(made.finding)
    return made.message.removeprefix("OK: ") + codes + trouble


def _writes(place: Place, made: Preview) -> list[Section]:
    """What is written: the end of the journal mended first where it must be, then these lines."""
    sections: list[Section] = []
    where = [f"{len(made.events)} line{'s' if len(made.events) != 1 else ''} of {place.plan / 'journal.ndjson'}"]
    if made.mends:
        where.insert(0, "the end of the journal, which a killed writer left unfinished, is mended first")
    where += [str(root_for(place.plan) / RECEIPTS / f"{name}.json") for name in _receipts(made)]
    sections.append(("Writes", where if made.events else ["nothing: an equal event is there already"]))
    if made.events:
        sections.append(("The event, as this line of journal.ndjson", made.lines))
    return sections


def _receipts(made: Preview) -> list[str]:
    """The receipts of launches and collections; what a task's completion leaves depends on more than its event."""
    return [
        receipt_id(event["contract_id"], event["seq"])
        for event in made.events
        if event["type"] == "delegation" and event["state"] != "cancelled"
    ]


def moved(place: Place, head: int) -> list[Section]:
    """What was recorded since a preview was drawn."""
    said = [f"{event.get('seq')} {event.get('type')} {_about(event)}".rstrip() for event in preview.since(place, head)]
    return [("Recorded meanwhile", said[-8:])] if said else []


def _about(event: Mapping[str, Any]) -> str:
    words = (event.get("task"), event.get("delegation_id"), event.get("state"), event.get("reason"))
    return " ".join(str(word) for word in words if word)


def starting(place: Place, world: World, task: str, me: str, news: Sequence[Section] = ()) -> Deed:
    """A task begins. Raises Refused."""
    made = preview.start(place, world, task, actor(me))
    effect = f"{task} has started; evidence counts from here on"
    act = partial(store.start, place, world, task, actor(me), Hold(expect=made.head))

    def again() -> Deed:
        return starting(place, world, task, me, moved(place, made.head))

    sections = (*news, *_writes(place, made), ("Effect", (effect,)))
    words = command(place, "start", "--task", task, me=me)
    return Deed(str(place.plan), sections, words, partial(recorded, place, act), again=again)


def completing(place: Place, world: World, task: str, news: Sequence[Section] = ()) -> Deed:
    """Nothing is missing of a task. Raises Refused naming what is."""
    head, found = preview.complete(place, task)
    if found.reason is not None:
        raise Refused(error("task_not_complete", f"{task}: {found.reason}", command(place, "inspect")))
    met = [f"{item.criterion}: {item.trust}, seq {item.via_seq}" for item in found.states]
    act = partial(store.complete, place, world, task, Hold(expect=head))

    def again() -> Deed:
        return completing(place, world, task, moved(place, head))

    sections = (
        *news,
        ("Writes", ("nothing in the journal: completion is derived", "its receipt, if that is missing")),
        ("Criteria", met or ["none: it was complete once it had started"]),
        ("Effect", (f"{task} is complete",)),
    )
    return Deed(
        str(place.plan),
        sections,
        command(place, "complete", "--task", task),
        partial(recorded, place, act),
        again=again,
    )


def launching(place: Place, world: World, asked: Delegating, made: brief.Brief, news: Sequence[Section] = ()) -> Deed:
    """A launch whose conditions are all met now. Raises Refused with every one that is not."""
    found = preview.launch(place, world, asked)
    if found.preview is None:
        unmet = [check for check in found.checks if not check.met]
        raise Refused(*(error("delegation_refused", f"not met: {check.cause}", None, check.check) for check in unmet))
    head = found.preview.head
    act = partial(store.launch, place, world, asked, Hold(expect=head))

    def again() -> Deed:
        return launching(place, world, asked, made, moved(place, head))

    sections = (
        *news,
        *_writes(place, found.preview),
        ("Effect", (f"{asked.payload['delegation_id']} is open. Nothing is started: the next screen says how to.",)),
        (f"The brief, {made.digest}", made.text.rstrip("\n").split("\n")),
    )
    words = _delegate(place, "launch", asked)
    return Deed(str(place.plan), sections, words, partial(recorded, place, act), again=again)


def ending(place: Place, world: World, operation: str, asked: Delegating, news: Sequence[Section] = ()) -> Deed:
    """A collect or a cancel, with what it comes to. Raises Refused for what is an error."""
    made = preview.end(place, world, operation, asked)
    name = asked.payload["delegation_id"]
    if made.refusal is not None and len(made.events) == 1:
        # Only the refusal would be recorded.
        raise Refused(error("delegation_refused", f"delegation refused: {made.refusal}"))
    if made.refusal is not None:
        effect = [f"this is refused: {made.refusal}", "both are recorded; the task goes on in sequence"]
    elif operation == "cancel":
        effect = [f"{name} is cancelled; nothing is stopped by that: stop the transport first"]
    elif asked.payload["state"] == "completed":
        effect = [f"{name} says it is done. That is a claim until a gate of this plan has observed it."]
    else:
        effect = [f"{name} failed; the parent does the task itself"]
    act = partial(store.end, place, world, operation, asked, Hold(expect=made.head))

    def again() -> Deed:
        return ending(place, world, operation, asked, moved(place, made.head))

    sections = (*news, *_writes(place, made), ("Effect", effect))
    do = partial(recorded, place, act, made.refusal is not None)
    return Deed(str(place.plan), sections, _delegate(place, operation, asked), do, again=again)


def _delegate(place: Place, operation: str, asked: Delegating) -> str:
    payload = canon.canonical(dict(asked.payload))
    me = asked.actor["identity"] if asked.actor.get("kind") == "human" else None
    return command(place, "delegate", operation, "--task", asked.task, "--json", payload, me=me)
