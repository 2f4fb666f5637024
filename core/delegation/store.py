"""The verbs that write: materialize start append signoff complete delegate roll (docs/specs/delegation.md §4, §5, §7).

Each holds the plan's lock from reading to its last fsync. A verb returns an `Outcome`, also for a recorded refusal,
or raises `Halt` for an error.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from core.delegation import addons, canon, reader, rules
from core.delegation import place as places
from core.delegation.events import SIGNOFF_COMMAND, same_content
from core.delegation.git import Git
from core.delegation.model import JOURNAL
from core.delegation.place import Place
from core.delegation.progress import CriterionState
from core.delegation.rules import Draft
from core.delegation.writer import (
    ERROR,
    NOT_COMPLETE,
    NOT_DELEGATED,
    NOT_STARTED,
    PLAIN,
    Halt,
    Hold,
    World,
    Writer,
    halt,
    refuse_damage,
    writing,
)
from core.finding import Finding, Refused, error

CALLER: Final = {"kind": "agent", "identity": "caller"}
AUTHORITY_CAP: Final = 100


@dataclass(frozen=True)
class Outcome:
    """What a verb did. `finding` is set exactly when it was refused; `events` are those just written, in order."""

    exit: int
    message: str
    events: tuple[Mapping[str, Any], ...] = ()
    finding: Finding | None = None
    criteria: tuple[CriterionState, ...] | None = None
    warnings: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.exit == 0


def done(writer: Writer, message: str, **more: Any) -> Outcome:
    return Outcome(0, message, tuple(writer.written), **more)


def refuse(
    writer: Writer, exit_code: int, code: str, reason: str, drafts: Sequence[Draft], command: str | None = None
) -> Outcome:
    """Record a refusal, with what is recorded before it, in one write."""
    writer.commit(*drafts)
    return Outcome(exit_code, reason, tuple(writer.written), error(code, reason, command))


def command(place: Place, *words: str) -> str:
    """A `collab ledger` command that a person can paste."""
    return shlex.join(["collab", "ledger", "--plan", str(place.plan), *words])


# ---------------------------------------------------------------- start, append


def start(place: Place, world: World, task: str, actor: Mapping[str, str] = CALLER, hold: Hold = PLAIN) -> Outcome:
    """Record that a task begins; a new one reopens its evidence window, an equal earlier one answers (§5)."""
    with writing(place, world, hold) as writer:
        rules.known_task(writer.contract, task)
        if not rules.approved(writer.progress, writer.contract):
            return _not_approved(writer)
        git = Git(place.repo, world.environ)
        body = {"task": task, "fingerprint": {"revision": git.head(), "dirty": git.dirty()}}
        draft = Draft("task_start", body, actor)
        earlier = _earlier(writer, draft)
        event = earlier if earlier is not None else writer.commit(draft)[0]
        return done(writer, f"OK: task_start {task} at seq {event['seq']}")


def _not_approved(writer: Writer) -> Outcome:
    reason = rules.not_approved(writer.contract)
    draft = rules.refusal(writer.contract, "task_start", "task_start", reason)
    return refuse(writer, NOT_STARTED, "contract_not_approved", reason, [draft], command(writer.place, "inspect"))


def _earlier(writer: Writer, draft: Draft) -> Mapping[str, Any] | None:
    made = writer.event(draft, writer.next_seq)
    return next((entry.event for entry in writer.record.entries if same_content(entry.event, made)), None)


@dataclass(frozen=True, slots=True)
class Appending:
    """A raw append: the payload as given, and the flags that go over it."""

    type: str
    payload: Mapping[str, Any]
    actor: Mapping[str, str] = field(default_factory=lambda: dict(CALLER))
    trust: str | None = None
    evidence_path: str | None = None
    note: str | None = None
    idempotent: bool = False


def append(place: Place, world: World, asked: Appending, hold: Hold = PLAIN) -> Outcome:
    """Record an event as its caller declares it; `observed` and delegations have other doors (§5)."""
    with writing(place, world, hold) as writer:
        if asked.type == "gate_run":
            raise halt("gate_only", "a gate_run is produced only by `collab ledger gate` and `signoff`", "--type")
        if asked.type == "delegation":
            raise halt("delegate_only", "a delegation is produced only by `collab ledger delegate`", "--type")
        body = dict(asked.payload)
        for key, value in (("trust", asked.trust), ("evidence_path", asked.evidence_path)):
            if value is not None:
                body[key] = value
        draft = Draft(asked.type, body, asked.actor, asked.note)
        _declared(writer, draft)
        if asked.type == "task_start":
            task = body.get("task")
            if isinstance(task, str):
                rules.known_task(writer.contract, task)
            if not rules.approved(writer.progress, writer.contract):
                return _not_approved(writer)
        earlier = _earlier(writer, draft) if asked.idempotent else None
        adapter = asked.type == "resource_sample"
        event = earlier if earlier is not None else writer.commit(draft, adapter=adapter)[0]
        return done(writer, f"OK: appended {asked.type} seq {event['seq']}")


def _declared(writer: Writer, draft: Draft) -> None:
    """What the final event claims to be evidence of (§5). Raises Halt."""
    trust, pointer = draft.body.get("trust"), draft.body.get("evidence_path")
    if trust == "observed" and (draft.type != "resource_sample" or draft.actor.get("kind") != "host_adapter"):
        cause = "observed is minted by a gate run, or by a host adapter's resource_sample; declare this as asserted"
        raise halt("observed_declared", cause, "--trust")
    if (
        trust in ("observed", "imported")
        and isinstance(pointer, str)
        and places.evidence(writer.place, pointer) is None
    ):
        cause = f"evidence_path {rules.shown(pointer)} is no file in the plan or the repository"
        raise halt("evidence_missing", cause, "--evidence-path")


# ---------------------------------------------------------------- signoff, complete, roll


def signoff(
    place: Place,
    world: World,
    criterion: str,
    evidence_path: str | None,
    authority: str | None,
    task: str | None = None,
    hold: Hold = PLAIN,
) -> Outcome:
    """A person's word for a criterion that accepts it; nothing is executed and the label says so (§5)."""
    with writing(place, world, hold) as writer:
        who = (authority or "").strip()
        draft = _signoff(writer, criterion, evidence_path or "", who, task)
        event = writer.commit(draft)[0]
        message = f"OK: signoff {criterion} by {who} at seq {event['seq']} (asserted, nothing was executed)"
        return done(writer, message)


def _signoff(writer: Writer, criterion: str, pointer: str, who: str, task: str | None) -> Draft:
    contract = writer.contract
    if criterion not in contract.criteria:
        raise halt("criterion_unknown", f"{rules.shown(criterion)} is no criterion of this contract", "--criterion")
    accepted = contract.accepted(criterion)
    if "asserted" not in accepted:
        raise halt("evidence_not_accepted", f"{criterion} accepts {' or '.join(accepted)}, no signoff", "--criterion")
    if not who or len(who) > AUTHORITY_CAP:
        raise halt(
            "authority_missing", f"--authority must say who signs, in 1 to {AUTHORITY_CAP} letters", "--authority"
        )
    owners = contract.owners(criterion)
    if not owners:
        raise halt("criterion_unowned", f"no task owns {criterion}", "--criterion")
    owner = owners[0] if task is None else task
    if owner not in owners:
        raise halt(
            "criterion_unowned", f"{criterion} is owned by {', '.join(owners)}, not {rules.shown(owner)}", "--task"
        )
    if owner not in writer.progress.starts:
        raise halt(
            "task_not_started", f"{owner} has not started", "--task", command(writer.place, "start", "--task", owner)
        )
    digest = places.hash_evidence(writer.place, pointer)
    if digest is None:
        cause = f"--evidence-path {rules.shown(pointer)} is no file in the plan or the repository"
        raise halt("evidence_missing", cause, "--evidence-path")
    body = {
        "command": SIGNOFF_COMMAND,
        "cwd": ".",
        "timeout_seconds": 1,
        "exit_code": 0,
        "criterion": criterion,
        "task": owner,
        "trust": "asserted",
        "evidence_path": pointer,
    }
    return Draft("gate_run", body, {"kind": "human", "identity": who}, f"evidence sha256:{digest[:16]}")


def complete(place: Place, world: World, task: str, hold: Hold = PLAIN) -> Outcome:
    """Check a task's completion: nothing is written when it holds, a refusal when it does not (§5)."""
    with writing(place, world, hold) as writer:
        found = rules.decide_complete(writer.progress, writer.contract, task)
        names = ", ".join(state.criterion for state in found.states)
        if found.reason is None:
            return done(writer, f"OK: {task} criteria satisfied: {names}", criteria=found.states)
        draft = rules.refusal(writer.contract, task, "gate", found.reason)
        writer.commit(draft)
        finding = error("task_not_complete", f"{task}: {found.reason}", command(place, "inspect", "-o", "json"))
        return Outcome(NOT_COMPLETE, found.reason, tuple(writer.written), finding, found.states)


def roll(place: Place, world: World, hold: Hold = PLAIN) -> Outcome:
    """Move the live journal into an archive and leave an empty one; nothing is deleted, seq goes on (§5)."""
    with writing(place, world, hold) as writer:
        seqs = [entry.event["seq"] for entry in writer.record.live if type(entry.event.get("seq")) is int]
        if not seqs:
            raise halt("nothing_to_roll", "the live journal holds no event", JOURNAL)
        archive = f"journal-archive-{min(seqs):06d}-{max(seqs):06d}.ndjson"
        writer.check_position()
        if not writer.root.move(JOURNAL, archive):
            raise halt("nothing_to_roll", f"{archive} exists already", archive)
        writer.root.append(JOURNAL, b"")
        return done(writer, f"OK: journal archived to {place.plan / archive}")


# ---------------------------------------------------------------- delegate


@dataclass(frozen=True, slots=True)
class Delegating:
    """A delegate verb as asked: the task as given, `--json`, `--caps`, and who asks."""

    task: str
    payload: Mapping[str, Any]
    caps: Mapping[str, bool] = field(default_factory=dict)
    actor: Mapping[str, str] = field(default_factory=lambda: dict(CALLER))


def new_id(world: World) -> str:
    """An id nobody has: `d`, the time, six random hex digits (§7)."""
    return f"d{world.clock.now():%Y%m%dT%H%M%S}{world.token()}"


class Abilities:
    """What a host and its addons can do. Detection happens at most once, before the lock if it comes to that (§6)."""

    def __init__(self, place: Place, world: World, caps: Mapping[str, bool]) -> None:
        self._place, self._world, self._caps = place, world, caps
        self._known: dict[str, list[str]] = {}
        self.warnings: tuple[str, ...] = ()

    def addon(self, key: object) -> addons.Addon | None:
        return addons.lookup(self._place.repo, key)

    def sources(self, key: str) -> list[str]:
        if key not in self._known:
            repo, environ = self._place.repo, self._world.environ
            known = {**addons.packed(repo), **addons.shipped()}
            switches = addons.registry(self._place.registry, addons.home_of(environ), known)
            self.warnings = switches.warnings
            self._known[key] = addons.subagent_sources(key, repo, switches, self._caps, environ)
        return self._known[key]


def facts(record: reader.Record, place: Place, world: World, abilities: Abilities) -> rules.Facts:
    """What a launch is judged by, given a record."""
    git = Git(place.repo, world.environ)
    return rules.Facts(record.chain, record.progress, git.fingerprint, abilities.addon, abilities.sources)


def launch(place: Place, world: World, asked: Delegating, hold: Hold = PLAIN) -> Outcome:
    """Record that a delegate is launched, or the first condition that forbids it (§7). Nothing is started here."""
    request = rules.Launch(asked.task, asked.payload, asked.actor, new_id(world))
    abilities = Abilities(place, world, asked.caps)
    _foresee(request, place, world, abilities)
    with writing(place, world, hold) as writer:
        found = facts(writer.record, place, world, abilities)
        for check in rules.launch_checks(request, found):
            if check.check == "well-formed":
                break
            if not check.met:
                made = _refused(writer, asked, check.cause or "", [], "--dry-run")
                return replace(made, warnings=abilities.warnings)
        event = writer.commit(rules.launch_draft(request, found))[0]
        return replace(_recorded(writer, event), warnings=abilities.warnings)


def _foresee(request: rules.Launch, place: Place, world: World, abilities: Abilities) -> None:
    """Go as far as the detection without the lock, so that it does not happen under it."""
    try:
        found = facts(reader.read(place), place, world, abilities)
    except Refused:
        return
    for check in rules.launch_checks(request, found):
        if check.check == "ability" or not check.met:
            return


def _refused(
    writer: Writer, asked: Delegating, reason: str, drafts: Sequence[Draft], *flags: str, recorded: bool = False
) -> Outcome:
    if not recorded:
        drafts = [*drafts, rules.refused_delegation(writer.contract, asked.task, reason)]
    writer.commit(*drafts)
    shown = None
    if flags:
        # What has no canonical form (an endless number) cannot be pasted either.
        with suppress(ValueError):
            payload = canon.canonical(dict(asked.payload))
            shown = command(writer.place, "delegate", "launch", *flags, "--task", asked.task, "--json", payload)
    cause = f"delegation refused: {reason}"
    return Outcome(NOT_DELEGATED, cause, tuple(writer.written), error("delegation_refused", cause, shown))


def _recorded(writer: Writer, event: Mapping[str, Any]) -> Outcome:
    name, state, seq = event["delegation_id"], event["state"], event["seq"]
    message = f"OK: delegation {name} {state} at seq {seq} (asserted until a gate observes it)"
    return done(writer, message)


def end(place: Place, world: World, operation: str, asked: Delegating, hold: Hold = PLAIN) -> Outcome:
    """Record how a delegation ended; `operation` is collect or cancel. Stops nothing (§7)."""
    with writing(place, world, hold) as writer:
        git = Git(place.repo, world.environ)
        request = rules.End(operation, asked.task, asked.payload, asked.actor)
        made = rules.decide_end(
            request, writer.record.chain, writer.progress, git.fingerprint, lambda path: places.hash_result(place, path)
        )
        if made.reason is not None:
            return _refused(writer, asked, made.reason, made.drafts, recorded=True)
        return _recorded(writer, writer.commit(*made.drafts)[0])


@dataclass(frozen=True)
class DryRun:
    """Every condition of a launch, and what a launch would end with: 0, 5, or 1 when only its form is wrong."""

    checks: tuple[rules.Check, ...]

    @property
    def exit(self) -> int:
        unmet = [check.check for check in self.checks if not check.met]
        if not unmet:
            return 0
        return ERROR if unmet == ["well-formed"] else NOT_DELEGATED


def dry_run(place: Place, world: World, asked: Delegating, abilities: Abilities | None = None) -> DryRun:
    """Judge a launch without writing or locking anything (§7). Raises Halt.

    With `abilities` that were detected before nothing is detected again.
    """
    try:
        record = reader.read(place)
    except Refused as exc:
        raise Halt(ERROR, exc.findings[0]) from None
    refuse_damage(record)
    request = rules.Launch(asked.task, asked.payload, asked.actor, new_id(world))
    found = facts(record, place, world, abilities or Abilities(place, world, asked.caps))
    return DryRun(tuple(rules.launch_checks(request, found)))


def observe(place: Place, task: str | None = None) -> tuple[list[dict[str, Any]], reader.Record]:
    """The latest event of each delegation, in order of first appearance (§7). Raises Halt."""
    try:
        record = reader.read(place, keep=True)
    except Refused as exc:
        raise Halt(ERROR, exc.findings[0]) from None
    latest: dict[str, Mapping[str, Any]] = {}
    for entry in record.entries:
        event = entry.event
        if event.get("type") != "delegation" or (task is not None and event.get("task") != task):
            continue
        latest[json.dumps(event.get("delegation_id"), sort_keys=True)] = event
    keys = ("delegation_id", "task", "state", "transport", "via", "seq", "result_path")
    return [{key: event.get(key) for key in keys} for event in latest.values()], record
