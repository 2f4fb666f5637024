"""Opening, telling and cancelling inbox entries (docs/specs/workflows.md §7)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from core.files import sha256
from core.workflow import learn, texts, times
from core.workflow.evolve import notices, recommend
from core.workflow.filling import files_of
from core.workflow.model import ENGINE, INBOX, Decision, Entry, Kind, Option, Parks, Rule, Spec
from core.workflow.routes import PILOTE
from core.workflow.state import Run
from core.workflow.turn import Turn, notice, packet

EVENTS: Mapping[Kind, str] = {
    "fail": "ESCALATE",
    "error": "ESCALATE",
    "partial": "ESCALATE",
    "agent": "ESCALATE",
    "gate": "GATE_PENDING",
    "drift": "GATE_PENDING",
    "block": "BLOCKED",
    "circuit_break": "CIRCUIT_BREAK",
}


def block_about(context: object, cause: str | None, by_route: bool) -> str:
    """What a block is about: its context, or by route its cause."""
    text = f"cause:{cause}" if by_route else "context:" + json.dumps(context, sort_keys=True, default=str)
    return sha256(text.encode("utf-8", "surrogatepass"))[:16]


def parks(run: Run, kind: Kind, index: int | None, verdict: bool) -> Parks:
    """What stands still until an answer (§7, "Parking"). `verdict`: the entry asks about a step's own verdict."""
    if index is None or kind == "circuit_break" or run.spec.on_escalate.wait == "human_decision":
        return "run"
    return "none" if run.spec.on_escalate.wait == "none" and verdict else "item"


def open_entry(
    turn: Turn,
    run_id: str,
    index: int | None,
    kind: Kind,
    *,
    cause: str | None = None,
    raised_by: str = ENGINE,
    target: str | None = None,
    reasons: Sequence[str] = (),
    options: Sequence[Option] | None = None,
    defaulted: bool = False,
    question: str | None = None,
    previous: str | None = None,
    hold: Mapping[str, Any] | None = None,
    verdict: bool = False,
    context: Any = None,
    block: str | None = None,
    rule: Rule | None = None,
    recommended: bool = False,
) -> Entry:
    """Ask: one entry, its notices, and for an agent's eyes its packet."""
    run = turn.run(run_id)
    spec, wait = run.spec, parks(run, kind, index, verdict)
    offered = tuple(options) if options is not None else texts.options(kind, spec, entry_gate=index is None)
    if wait == "none":
        offered = (texts.option("seen"),)
    if rule is not None:
        offered = recommend(offered, rule.option_id if recommended else None)
    own = kind == "agent" and not defaulted
    target = target or PILOTE
    work = None if index is None else spec.work(index)
    held = None
    if target not in INBOX and target != raised_by and (work is None or target != work.agent):
        held = target
    made_id = learn.next_id(turn, "esc", 4)
    deadline = None if wait == "none" or spec.on_escalate.deadline is None else turn.now + spec.on_escalate.deadline
    item = None if index is None else spec.items[index]
    key = None
    if work is not None:
        key = learn.cause_key(learn.pattern(run.workflow, work, kind, item, [option.id for option in offered], cause))
    told = () if held is not None else notices(spec, turn.at)
    other = _waits_for_me(turn, run_id, index, context)
    entry = Entry(
        id=made_id,
        run_id=run_id,
        workflow=run.workflow,
        item=item,
        item_index=index,
        attempt=None if index is None else max(run.items[index].attempt, 1),
        kind=kind,
        cause=cause,
        cause_key=key,
        raised_by=raised_by,
        target=target,
        held_by=held,
        reasons=tuple(reasons),
        rule=None if rule is None else rule.id,
        question=question or texts.question(kind, run, index, cause, reasons),
        summary=texts.summary(run, index, cause, () if index is None else files_of(run, index)),
        options=offered,
        options_defaulted=defaulted,
        opened_at=turn.at,
        deadline_at=None if deadline is None else times.text(deadline),
        remind_at=times.text(deadline)
        if deadline is not None and _reminds(spec, [one.id for one in offered if one.id == "abort" or not own])
        else None,
        notified=told,
        resume_token=turn.facts.token(len(turn.world.entry_run) + 1),
        previous=previous,
        deadlock=True if other is not None else None,
        parks=wait,
        told_at=turn.at if held is None else None,
        context=context,
        deadlock_with=other,
    )
    fields: dict[str, Any] = {"entry": entry.plain(), "hold": None if hold is None else dict(hold)}
    if block is not None:
        fields["block"] = block
    if held is not None:
        payload = {"options": [option.plain() for option in offered]}
        more: dict[str, Any] = {"return_to": ENGINE, "deadline": entry.deadline_at}
        fields["sends"] = packet(made_id, turn.at, held, "ESCALATE", payload, run_id, index, entry.attempt, **more)
    else:
        fields["notices"] = announce(turn, entry)
    turn.emit(run_id, "entry_opened", **fields)
    return entry


def _reminds(spec: Spec, ours: Collection[str]) -> bool:
    """Whether the deadline only reminds: because the spec says so, or because what it says is not offered."""
    act = spec.on_escalate.on_deadline
    return act == "remind" or act not in ours


def announce(turn: Turn, entry: Entry) -> list[dict[str, Any]]:
    """The urgent notices of an entry that people shall see now."""
    channels = turn.run(entry.run_id).spec.on_escalate.notify
    return [notice(entry.id, name, "urgent", EVENTS[entry.kind], entry.run_id, entry.id) for name in channels]


def _waits_for_me(turn: Turn, run_id: str, index: int | None, context: Any) -> str | None:
    """The open block of the item that this one waits for, when that one waits for this: nobody can move alone."""
    wanted = waits_for(context)
    me = f"{run_id}/{index}"
    for place in wanted:
        other_run, _, other_index = place.rpartition("/")
        run = turn.world.runs.get(other_run)
        if run is None or not other_index.isdecimal() or int(other_index) >= run.total:
            continue
        entry = run.entries.get(run.items[int(other_index)].entry or "")
        if entry is not None and entry.kind == "block" and entry.state == "open" and me in waits_for(entry.context):
            return entry.id
    return None


def waits_for(context: Any) -> list[str]:
    """`<run_id>/<index>` of whom a blocked item says it waits for."""
    found = context.get("waits_for") if isinstance(context, Mapping) else None
    listed = [found] if isinstance(found, str) else found if isinstance(found, list) else []
    return [place for place in listed if isinstance(place, str)]


def block_facts(context: Any) -> dict[str, Any] | None:
    """The parts of a block's context that the engine itself reads; the rest stays where it came in."""
    if not isinstance(context, Mapping):
        return None
    kept = {key: context[key] for key in ("recheck", "waits_for") if context.get(key) is not None}
    return kept or None


def abort_run(turn: Turn, run_id: str, by: str, entry: str | None = None, note: str | None = None) -> None:
    """No more SPAWN; whatever was asked and is not answered and applied is cancelled (§4, "End")."""
    run = turn.run(run_id)
    if run.aborted is not None or not run.open:
        return
    turn.emit(run_id, "run_aborted", by=by, entry=entry, note=note)
    closed_by = {"verb": "abort", "option_id": "abort", "decided_by": by}
    for name in run.entry_ids:
        asked = run.entries.get(name)
        if asked is not None and name != entry and asked.state in ("open", "decided"):
            turn.emit(run_id, "entry_cancelled", entry=name, closed_by=closed_by)


def winner(decision: Decision | None, closed_by: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """`{verb, option_id, decided_by}` of what closed an entry."""
    if closed_by is not None:
        return {key: closed_by.get(key) for key in ("verb", "option_id", "decided_by")}
    if decision is None:
        return None
    return {"verb": decision.verb, "option_id": decision.option_id, "decided_by": decision.decided_by}
