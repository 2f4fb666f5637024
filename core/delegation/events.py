"""Journal events: their form, type by type, and what a contract asks of them (docs/specs/delegation.md §3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from core.delegation.model import (
    EVENT_URLS,
    GIVEN,
    Amount,
    Closed,
    CriterionId,
    Hex64,
    LimitId,
    Mechanism,
    Names,
    PlanName,
    Positive,
    Said,
    TaskId,
    Time,
    Trust,
    fault,
    non_blank,
)

ENVELOPE: Final = frozenset({"schema", "type", "seq", "ts", "plan", "contract_id", "actor", "note"})
NOTE_CAP: Final = 500
READ_ONLY_MARK: Final = "read-only tree "
SIGNOFF_COMMAND: Final = "signoff (asserted, not executed)"
EXECUTORS: Final = ("helper", "host_adapter")

Seq = Annotated[int, Field(ge=1)]
Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
Label = Annotated[str, Field(min_length=1, max_length=200)]
State = Literal["launched", "completed", "failed", "cancelled"]
STATES: Final = ("launched", "completed", "failed", "cancelled")


class Actor(Closed):
    kind: Literal["helper", "agent", "host_adapter", "human"]
    identity: Annotated[str, Field(max_length=100), AfterValidator(non_blank)]


class Event(Closed):
    """The envelope, which every event has."""

    schema_: str = Field(alias="schema")
    type: str
    seq: Seq
    ts: Time
    plan: PlanName
    contract_id: Hex64
    actor: Actor
    note: Annotated[str, Field(max_length=NOTE_CAP)] = ""


class Evidence(Event):
    """An event that carries a trust label; the only ones that may."""

    trust: Trust
    evidence_path: str = ""

    @model_validator(mode="after")
    def _trusted(self) -> Evidence:
        if self.trust in ("observed", "imported") and not self.evidence_path.strip():
            raise PydanticCustomError("trust", f"{self.trust} evidence needs an evidence_path")
        if self.trust == "observed" and self.actor.kind not in EXECUTORS:
            raise PydanticCustomError("trust", "observed is the label of a helper or a host adapter")
        return self


class Fingerprint(Closed):
    revision: Said
    dirty: str


class TaskStart(Event):
    task: TaskId
    fingerprint: Annotated[Fingerprint | None, GIVEN] = None


class Approval(Event):
    authority: Said
    mechanism: Mechanism
    plan_digest: Hex64


class GateRun(Evidence):
    command: Said
    cwd: Said
    timeout_seconds: Positive
    exit_code: int
    task: TaskId
    criterion: CriterionId
    env: Annotated[dict[str, Any] | None, GIVEN] = None


class Observation(Evidence):
    statement: Said


class ResourceSample(Evidence):
    source: Said
    value: Amount
    unit: Said
    limit_id: LimitId = ""


class OldLeg(Closed):
    available: bool
    outcome: Annotated[Literal["PASS", "FAIL"] | None, GIVEN] = None
    log: Said = ""


class NewLeg(Closed):
    outcome: Literal["PASS", "FAIL"]
    log: Said


class ControlPair(Evidence):
    criterion: CriterionId
    check_artifacts: Names
    starting_fingerprint: Fingerprint
    old_leg: OldLeg
    new_leg: NewLeg
    verdict: Literal["discriminating", "non_discriminating", "control_unavailable"]

    @model_validator(mode="after")
    def _consistent(self) -> ControlPair:
        old = self.old_leg
        if old.available != (old.outcome is not None):
            raise PydanticCustomError("verdict", "old_leg has an outcome exactly when it is available")
        if self.starting_fingerprint.dirty or not old.available:
            expected = "control_unavailable"
        elif (old.outcome, self.new_leg.outcome) == ("FAIL", "PASS"):
            expected = "discriminating"
        else:
            expected = "non_discriminating"
        if self.verdict != expected:
            raise PydanticCustomError("verdict", f"verdict must be {expected} for these legs")
        return self


class _Lists(Event):
    authority: Said
    affected_tasks: list[TaskId]
    evidence_invalidated: list[Any]
    evidence_preserved: list[Any]


class Amendment(_Lists):
    original_criterion: Said
    observed_finding: Said
    disposition: Said
    revised_criterion: Said
    reason: Said


class Impact(Closed):
    declared: Amount
    unit: Said


class Adaptation(_Lists):
    kind: Literal["split", "reorder", "insert", "change_strategy", "retry"]
    trigger_observation: Seq
    evidence_artifact: Said
    hypothesis: Said
    action: Said
    rationale: Said
    affected_criteria: list[CriterionId]
    decision: Literal["authorized", "refused"]
    reason: Said = ""
    resource_impact: Annotated[Impact | None, GIVEN] = None

    @model_validator(mode="after")
    def _reasoned(self) -> Adaptation:
        if self.decision == "refused" and not self.reason:
            raise PydanticCustomError("reason", "a refused adaptation needs a reason")
        return self


class Intervention(Event):
    category: Literal["missing_intent", "new_authority", "environment_repair", "engineering_rescue"]
    description: Said
    question: Said
    resolution: Said = ""


class Aging(Closed):
    waiting_since_seq: Seq
    threshold: Said


class Selection(Event):
    task: TaskId
    priority_boost: bool
    aging: Annotated[Aging | None, GIVEN] = None

    @model_validator(mode="after")
    def _aged(self) -> Selection:
        if self.priority_boost and self.aging is None:
            raise PydanticCustomError("aging", "a boosted selection needs aging")
        return self


class Refusal(Event):
    subject: Said
    stage: Literal["task_start", "authorize", "dispatch", "gate"]
    reason: Said
    proposal: Seq = 1


class ViewRender(Event):
    view: Said
    snapshot_digest: Hex64
    digests: Annotated[Annotated[dict[Said, Hex64], Field(min_length=1)] | None, GIVEN] = None


class Reconciliation(Event):
    trigger: Said
    editor: Said
    authority: Said


class JournalRepair(Event):
    byte_offset: Annotated[int, Field(ge=0)]
    cause: Said


def relative_path(text: str) -> str:
    """A path below some folder, else a fault: relative, no `..` segment, no NUL (§3)."""
    if not text or text.startswith("/") or ".." in text.split("/") or "\0" in text:
        raise PydanticCustomError("path", "must be a relative path without a .. segment")
    return text


class Delegation(Event):
    task: TaskId
    delegation_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    transport: Literal["headless", "interactive"]
    via: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,63}$")]
    state: State
    kind: Label = ""
    profile: Label = ""
    target: Label = ""
    worktree: Annotated[str, Field(min_length=1, max_length=300)] | None = None
    prompt_digest: Digest = ""
    result_path: Annotated[str, AfterValidator(relative_path)] = ""
    result_digest: Digest = ""

    @model_validator(mode="after")
    def _complete(self) -> Delegation:
        if self.state == "launched" and not self.prompt_digest:
            raise PydanticCustomError("prompt_digest", "a launch needs a prompt_digest")
        if self.state not in ("completed", "failed") and (self.result_path or self.result_digest):
            raise PydanticCustomError("result_path", "only a completed or failed delegation has a result")
        return self


_COMMON: Final[dict[str, type[Event]]] = {
    "task_start": TaskStart,
    "approval": Approval,
    "gate_run": GateRun,
    "observation": Observation,
    "resource_sample": ResourceSample,
    "control_pair": ControlPair,
    "amendment": Amendment,
    "adaptation": Adaptation,
    "intervention": Intervention,
    "selection": Selection,
    "refusal": Refusal,
    "view_render": ViewRender,
    "reconciliation": Reconciliation,
    "journal_repair": JournalRepair,
}
TYPES: Final[dict[str, dict[str, type[Event]]]] = {"v6": _COMMON, "v7": {**_COMMON, "delegation": Delegation}}


def form_problem(event: Mapping[str, Any], generation: str) -> str | None:
    """What is wrong with an event's form in this generation, naming the field; None when nothing is."""
    if event.get("schema") != EVENT_URLS[generation]:
        return f"event.schema must be {EVENT_URLS[generation]}"
    name = event.get("type")
    model = TYPES[generation].get(name) if isinstance(name, str) else None
    if model is None:
        return "event.type is no type of this generation"
    try:
        model.model_validate(event)
    except ValidationError as exc:
        return fault(exc, "event")
    return None


def payload(event: Mapping[str, Any]) -> dict[str, Any]:
    """Everything but the envelope."""
    return {key: value for key, value in event.items() if key not in ENVELOPE}


def same_content(event: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Equal type, payload, actor identity and contract: what makes an earlier event answer a repeated one (§5)."""

    def identity(one: Mapping[str, Any]) -> Any:
        actor = one.get("actor")
        return actor.get("identity") if isinstance(actor, Mapping) else None

    return (
        event.get("type") == other.get("type")
        and event.get("contract_id") == other.get("contract_id")
        and identity(event) == identity(other)
        and _strictly_equal(payload(event), payload(other))
    )


def _strictly_equal(one: Any, other: Any) -> bool:
    """Equal as JSON: `true` is not 1, and 1 is not 1.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_strictly_equal(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_strictly_equal, one, other))
    return bool(one == other)
