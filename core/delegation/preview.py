"""What a verb would record, found out without a lock and without writing (docs/specs/delegation.md §8, "Acting").

A preview names the head seq it was drawn from. Who commits it passes that seq on (`Hold.expect`), so that the act is
refused if anything was recorded meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.delegation import canon, reader, rules, store
from core.delegation import place as places
from core.delegation.events import same_content
from core.delegation.git import Git
from core.delegation.place import Place
from core.delegation.rules import Draft
from core.delegation.writer import World, envelope, refuse_damage
from core.finding import Refused, error


@dataclass(frozen=True)
class Preview:
    """The events that would be written, in order. `refusal` says why the act would be refused, None when it is not.

    `mends` says that the end of the journal is repaired first, under an event of its own.
    """

    place: Place
    head: int
    events: tuple[Mapping[str, Any], ...]
    refusal: str | None = None
    mends: bool = False

    @property
    def lines(self) -> list[str]:
        """The events as the lines of the journal that they become."""
        return [canon.line(event).decode("utf-8", "backslashreplace").rstrip("\n") for event in self.events]


def read(place: Place) -> reader.Record:
    """The plan as it is, if it can be written at all. Raises Refused."""
    from core.delegation.writer import Halt

    record = reader.read(place, keep=True)
    try:
        refuse_damage(record)
    except Halt as exc:
        raise Refused(exc.finding) from None
    return record


def _preview(record: reader.Record, world: World, *drafts: Draft, refusal: str | None = None) -> Preview:
    mends = record.torn is not None or record.unframed
    first = record.head_seq + 1 + mends
    contract, now = record.chain.live, world.clock.now()
    events = tuple(envelope(contract, draft, first + number, now) for number, draft in enumerate(drafts))
    return Preview(record.place, record.head_seq, events, refusal, mends)


def start(place: Place, world: World, task: str, actor: Mapping[str, str]) -> Preview:
    """A start; an equal earlier one answers and nothing is written. Raises Refused."""
    record = read(place)
    if task not in record.chain.live.tasks:
        raise Refused(error("task_unknown", f"{rules.shown(task)} is no task of this contract"))
    if not rules.approved(record.progress, record.chain.live):
        reason = rules.not_approved(record.chain.live)
        raise Refused(error("contract_not_approved", reason, store.command(place, "inspect")))
    git = Git(place.repo, world.environ)
    body = {"task": task, "fingerprint": {"revision": git.head(), "dirty": git.dirty()}}
    made = _preview(record, world, Draft("task_start", body, actor))
    (event,) = made.events
    known = any(same_content(entry.event, event) for entry in record.entries)
    return Preview(place, made.head, (), mends=made.mends) if known else made


def launch(place: Place, world: World, asked: store.Delegating, abilities: store.Abilities | None = None) -> Launching:
    """A launch with every condition. Raises Refused when the plan cannot be read."""
    record = read(place)
    request = rules.Launch(asked.task, asked.payload, asked.actor, store.new_id(world))
    facts = store.facts(record, place, world, abilities or store.Abilities(place, world, asked.caps))
    checks = tuple(rules.launch_checks(request, facts))
    if not all(check.met for check in checks):
        return Launching(checks, None)
    return Launching(checks, _preview(record, world, rules.launch_draft(request, facts)))


@dataclass(frozen=True)
class Launching:
    """Every condition of a launch; the preview is None unless all are met."""

    checks: tuple[rules.Check, ...]
    preview: Preview | None


def end(place: Place, world: World, operation: str, asked: store.Delegating) -> Preview:
    """A collect or a cancel, also one that would be refused. Raises Refused for what is an error."""
    record = read(place)
    git = Git(place.repo, world.environ)
    request = rules.End(operation, asked.task, asked.payload, asked.actor)
    try:
        made = rules.decide_end(
            request, record.chain, record.progress, git.fingerprint, lambda path: places.hash_result(place, path)
        )
    except rules.NotAllowed as exc:
        raise Refused(error(exc.code, exc.cause)) from None
    return _preview(record, world, *made.drafts, refusal=made.reason)


def complete(place: Place, task: str) -> tuple[int, rules.Completion]:
    """(head seq, whether the task is complete). Raises Refused for a task that is none."""
    record = read(place)
    try:
        return record.head_seq, rules.decide_complete(record.progress, record.chain.live, task)
    except rules.NotAllowed as exc:
        raise Refused(error(exc.code, exc.cause)) from None


def since(place: Place, seq: int) -> list[Mapping[str, Any]]:
    """What was recorded after a position, oldest first. Raises Refused."""
    entries = reader.read(place, keep=True).entries
    return [entry.event for entry in entries if type(entry.event.get("seq")) is int and entry.event["seq"] > seq]
