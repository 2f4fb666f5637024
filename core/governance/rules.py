"""Envelopes, statuses, goals and members, judged: pure (docs/specs/governance.md §3, §4, §7, §8).

Each reader returns (model, the object as it was written, findings); the model is there exactly when no finding is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.finding import Finding, Refused, error
from core.governance.hashing import ENVELOPE_SCHEMA, canonical_hash, goal_hash
from core.governance.model import (
    ENVELOPES,
    GOAL_CORES,
    GOALS,
    MEMBERSHIPS,
    NEEDS,
    STATUSES,
    AgentStatus,
    Envelope,
    Goal,
    Legal,
    Membership,
)
from core.strict import Where, at, fields, is_hash, load, parse
from core.triage.model import Catalog
from core.triage.rules import is_legal

COMPONENTS = (
    "project agents",
    "triage-error",
    "shame",
    "lazy-report-shame-shame-shame extension",
    "status-json-check.mjs",
    "agent_status_schema.py",
    "compile-status-command.mjs",
    "agentic-evals",
    "ask",
    "tau",
    "project-watchdog",
    "ops-herdr",
    "ponytail",
    "Memory",
    "agent-ecosystem",
    "goal-helper",
)
"""The members of the ecosystem, exactly these."""


def legal_in(catalog: Catalog) -> Legal:
    """Whether a code may stand in a decision, by this catalogue."""
    return lambda code: is_legal(code, catalog)


def envelope(name: str, data: bytes, catalog: Catalog) -> tuple[Envelope | None, dict[str, Any] | None, list[Finding]]:
    """A receipt, structurally: fields, then the rules between them."""
    made, raw, found = load(ENVELOPES, name, data, legal_in(catalog))
    if made is not None:
        found = envelope_findings(made, lambda steps: at(name, steps))
    return (None if found else made), raw, found


def envelope_findings(made: Envelope, where: Where) -> list[Finding]:
    """The rules between the fields of an envelope, in the order of the specification."""
    found, named = [], made.payload.get("schema")
    if named is None:
        cause = "the payload does not say its schema"
        found.append(error("payload_schema_missing", cause, None, where(("payload", "schema"))))
    elif named != made.payload_schema or not isinstance(named, str):
        cause = f"the payload says {named!r}, the envelope {made.payload_schema!r}"
        found.append(error("payload_schema_mismatch", cause, None, where(("payload", "schema"))))
    if made.parent_refs and made.goal_hash is None:
        cause = "an envelope with parents needs the goal hash that it shares with them"
        found.append(error("parent_refs_require_goal_hash", cause, None, where(("goal_hash",))))
    return found


def wrapped(
    payload: Mapping[str, Any],
    where: Where,
    catalog: Catalog,
    *,
    receipt_id: str,
    producer: str,
    emitted_at: str,
    goal: str | None,
    parents: Sequence[Mapping[str, Any]],
    triage_code: str | None,
) -> tuple[dict[str, Any], list[Finding]]:
    """(an envelope around a payload, what is wrong with it). What was not given is left out."""
    named = payload.get("schema")
    made: dict[str, Any] = {
        "schema": ENVELOPE_SCHEMA,
        "receipt_id": receipt_id,
        "payload_schema": named,
        "producer": producer,
        "emitted_at": emitted_at,
        "goal_hash": goal,
        "parent_refs": list(parents) or None,
        "triage_code": triage_code,
        "payload": dict(payload),
    }
    if named is None:
        cause = "the payload does not say its schema"
        return made, [error("payload_schema_missing", cause, None, where(("payload", "schema")))]
    made = {key: value for key, value in made.items() if value is not None}
    model, found = fields(ENVELOPES, made, "", legal_in(catalog), where)
    return made, found if model is None else envelope_findings(model, where)


def status(name: str, data: bytes, catalog: Catalog) -> tuple[AgentStatus | None, dict[str, Any] | None, list[Finding]]:
    """A status by its fields alone; what binds them is `status_findings`, what proves a done is in the store."""
    return load(STATUSES, name, data, legal_in(catalog))


def status_fields(raw: Mapping[str, Any], name: str, catalog: Catalog) -> tuple[AgentStatus | None, list[Finding]]:
    """The same for an object that was read already."""
    return fields(STATUSES, raw, name, legal_in(catalog))


def status_findings(made: AgentStatus, name: str) -> list[Finding]:
    """The rules between the fields of a status, in the order of the specification; proofs come after them."""
    found: list[Finding] = []
    state = made.state

    def wrong(code: str, cause: str, field: str) -> None:
        found.append(error(code, cause, None, at(name, (field,))))

    if state == "failed" and made.failure is None:
        found.append(
            error(
                "failed_requires_triage",
                "a failed turn names its failure by a code",
                "collab triage classify --receipt -",
                at(name, ("failure",)),
            )
        )
    if made.failure is not None and state != "failed":
        wrong("failure_only_with_failed", f"a turn that is {state} names no failure", "failure")
    if state == "continuing" and not made.not_done:
        wrong("continuing_requires_not_done", "a continuing turn says what is not done, and its command", "not_done")
    if made.not_done and state != "continuing":
        wrong("not_done_requires_continuing", f"a turn that is {state} leaves nothing undone", "not_done")
    if state in NEEDS and getattr(made, state) is None:
        wrong("state_payload_missing", f"the state {state} needs its payload", state)
    for need in NEEDS:
        if need != state and getattr(made, need) is not None:
            wrong("state_payload_forbidden", f"{need} belongs to another state than {state}", need)
    if not made.changed:
        wrong("changed_required", "a status says what changed", "changed")
    if state == "done":
        if not made.verified:
            wrong("done_requires_verified", "a done turn says which command verified it", "verified")
        if not made.proof:
            wrong("done_requires_proof", "a done turn names its proof", "proof")
    return found


def goal(name: str, data: bytes) -> tuple[Goal | None, dict[str, Any] | None, list[Finding]]:
    """An immutable goal: fields, what its components must do, its own hash."""
    made, raw, found = load(GOALS, name, data)
    if made is not None:
        found = goal_findings(made, lambda steps: at(name, steps))
    return (None if found else made), raw, found


def goal_findings(made: Goal, where: Where) -> list[Finding]:
    """The rules between the fields of a goal."""
    found = []
    for number, item in enumerate(made.ecosystem_must):
        for line, text in enumerate(item.must):
            if "MUST" not in text:
                cause = f"what {item.component} must do needs the word MUST: {text!r}"
                place = where(("ecosystem_must", number, "must", line))
                found.append(error("goal_must_not_normative", cause, None, place))
    expected = goal_hash(made.goal_id, made.outcome)
    if made.goal_hash != expected:
        cause = f"the goal declares {made.goal_hash}; its id and outcome give {expected}"
        found.append(error("goal_hash_mismatch", cause, None, where(("goal_hash",))))
    return found


def goal_wish(raw: Mapping[str, Any], where: Where) -> list[Finding]:
    """What is wrong with a goal that somebody wants to write, by the flags that gave it."""
    made, found = fields(GOALS, raw, "", None, where)
    return found if made is None else goal_findings(made, where)


def document_hash(name: str, data: bytes, rule: str) -> tuple[str, str | None]:
    """(hash by the rule `outcome` or `canonical`, the declared one). Raises Refused."""
    parsed = parse(name, data)
    if parsed.object is None:
        raise Refused(*parsed.findings)
    named = parsed.object.get("goal_hash")
    declared = named if isinstance(named, str) else None
    if rule == "canonical":
        try:
            return canonical_hash(parsed.object), declared
        except UnicodeEncodeError:
            raise Refused(error("field_invalid", f"{name} holds a lone surrogate", None, at(name))) from None
    core, found = fields(GOAL_CORES, parsed.object, name)
    if core is None:
        raise Refused(*found)
    return goal_hash(core.goal_id, core.outcome), declared


def members(name: str, data: bytes) -> tuple[Membership | None, dict[str, Any] | None, list[Finding]]:
    """The map of the ecosystem: fields, number, names."""
    made, raw, found = load(MEMBERSHIPS, name, data)
    if made is not None:
        found = membership_findings(made, name)
    return (None if found else made), raw, found


def membership_findings(made: Membership, name: str) -> list[Finding]:
    """The rules between the members."""
    found = []
    names = [item.component for item in made.members]
    if len(names) != len(COMPONENTS):
        cause = f"there are {len(names)} members; {len(COMPONENTS)} belong to the ecosystem"
        found.append(error("membership_count", cause, None, at(name, ("members",))))
    for number, item in enumerate(names):
        if item in names[:number]:
            cause = f"{item} is named twice in the map"
            found.append(error("membership_duplicate", cause, None, at(name, ("members", number, "component"))))
    missing = [item for item in COMPONENTS if item not in names]
    strange = [item for item in dict.fromkeys(names) if item not in COMPONENTS]
    if missing or strange:
        parts = [f"missing: {', '.join(missing)}"] if missing else []
        parts += [f"not one of them: {', '.join(strange)}"] if strange else []
        found.append(error("membership_mismatch", "; ".join(parts), None, at(name, ("members",))))
    return found


def declared_matches(declared: str | None, computed: str) -> bool | None:
    """Whether a declared hash is the computed one; None when there is none to compare."""
    return None if declared is None else is_hash(declared) and declared == computed
