"""What is on disk where somebody decides: closed, strict, frozen (docs/specs/governance.md §3-8)."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationInfo
from pydantic_core import PydanticCustomError

from core.strict import Hash, NonBlank, Text

STATUS_SCHEMA: Final = "pi.agent_status.v1"
GOAL_SCHEMA: Final = "shame.immutable_goal.v1"
MEMBERSHIP_SCHEMA: Final = "agent_ecosystem.membership.v1"
MEMBERSHIP_GOAL: Final = "shame-deterministic-instruction-obedience-v1"
COMMANDS_SCHEMA: Final = "collab.escalation_commands.v1"
GRAPH_SCHEMA: Final = "collab.ecosystem_graph.v1"

_MOMENT = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]+)?(?:Z|[+-]([0-9]{2}):([0-9]{2}))"
)

Legal = Callable[[str], bool]
"""Whether a code is in the catalogue in use or minted: the context that a validation with codes needs."""


def is_moment(text: str) -> bool:
    """Whether a text is an RFC 3339 time with `Z` or `±hh:mm`, on a day that exists."""
    match = _MOMENT.fullmatch(text)
    if match is None:
        return False
    year, month, day, hour, minute, second, zone_hour, zone_minute = (int(part or 0) for part in match.groups())
    try:
        datetime(year, month, day, hour, minute, second)  # noqa: DTZ001 - only whether these numbers are a time
    except ValueError:
        return False
    return zone_hour < 24 and zone_minute < 60


def _moment(text: str) -> str:
    if not is_moment(text):
        raise PydanticCustomError("emitted_at_invalid", "must be an RFC 3339 time with Z or an offset")
    return text


def _legal(code: str, info: ValidationInfo) -> str:
    legal: Legal | None = info.context
    if legal is None or not legal(code):
        raise PydanticCustomError("ambiguous_failure_code", "is neither in the catalogue in use nor a minted code")
    return code


Moment = Annotated[str, AfterValidator(_moment)]
Code = Annotated[str, AfterValidator(_legal)]
NamedCode = Annotated[NonBlank, AfterValidator(_legal)]


class Closed(BaseModel):
    """A decision: no further field, no conversion, no change afterwards."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class Ref(Closed):
    """A parent receipt as its child expects it; `digest` is of the file's raw bytes."""

    receipt_id: Text
    expected_schema: Text
    expected_producer: Text
    digest: Hash | None = None


class Envelope(Closed):
    """A receipt where authority changes."""

    schema_: Literal["pi.receipt_envelope.v1"] = Field(alias="schema")
    receipt_id: Text
    payload_schema: Text
    producer: Text
    emitted_at: Moment
    goal_hash: Hash | None = None
    parent_refs: list[Ref] = []
    triage_code: Code | None = None
    payload: dict[str, Any]


class Verified(Closed):
    """A command that was run and what it said."""

    command: NonBlank
    result: NonBlank


class NotDone(Closed):
    """What is left, and the command that goes on with it."""

    item: NonBlank
    next_command: NonBlank


class Triage(Closed):
    """A classification, projected to what a status holds."""

    code: NamedCode
    cause: NonBlank
    next_command: NonBlank | None = None


class Failure(Closed):
    triage: Triage
    escalation_rung: int = Field(default=0, ge=0, le=2)


class NeedsHuman(Closed):
    action: NonBlank
    reason: NonBlank


class NeedsBraveSearch(Closed):
    queries: list[NonBlank] = Field(min_length=1)


class NeedsAgent(Closed):
    handler: NonBlank
    question: NonBlank


class NamedRef(Closed):
    """A parent reference inside a status, where every text says something."""

    receipt_id: NonBlank
    expected_schema: NonBlank
    expected_producer: NonBlank
    digest: Hash | None = None


class NeedsWebgpt(Closed):
    question: NonBlank
    parent_refs: list[NamedRef] = Field(min_length=2)


class NeedsRoundtable(Closed):
    immutable_goal: NonBlank
    question: NonBlank
    handlers: list[NonBlank] = Field(min_length=3)


class NeedsCompetition(Closed):
    immutable_goal: NonBlank
    task: NonBlank
    handlers: list[NonBlank] = Field(min_length=2)
    criteria: list[NonBlank] = Field(min_length=1)


NEEDS: Final = (
    "needs_human",
    "needs_brave_search",
    "needs_agent",
    "needs_webgpt",
    "needs_roundtable",
    "needs_competition",
)
State = Literal[
    "done",
    "continuing",
    "failed",
    "needs_human",
    "needs_brave_search",
    "needs_agent",
    "needs_webgpt",
    "needs_roundtable",
    "needs_competition",
]


class AgentStatus(Closed):
    """How a turn ended. Which fields belong to which state is `rules.status_findings`."""

    schema_: Literal["pi.agent_status.v1"] = Field(alias="schema")
    goal: NonBlank
    state: State
    changed: list[NonBlank] = []
    goal_id: NonBlank | None = None
    goal_hash: Hash | None = None
    verified: list[Verified] = []
    proof: list[NonBlank] = []
    not_done: list[NotDone] = []
    failure: Failure | None = None
    needs_human: NeedsHuman | None = None
    needs_brave_search: NeedsBraveSearch | None = None
    needs_agent: NeedsAgent | None = None
    needs_webgpt: NeedsWebgpt | None = None
    needs_roundtable: NeedsRoundtable | None = None
    needs_competition: NeedsCompetition | None = None


class Member(Closed):
    """One component of the ecosystem: what it owns, emits, consumes and must do."""

    component: Text
    owns: Text
    emits: list[Text]
    consumes: list[Text]
    must: Text


class Membership(Closed):
    schema_: Literal["agent_ecosystem.membership.v1"] = Field(alias="schema")
    goal_id: Literal["shame-deterministic-instruction-obedience-v1"]
    members: list[Member]


class PrimaryProof(Closed):
    command: NonBlank
    expected: NonBlank


class RetryStopRule(Closed):
    attempts_per_blocker: int = Field(ge=1, le=2)
    stop_condition: NonBlank


class EcosystemMust(Closed):
    component: NonBlank
    must: list[NonBlank] = Field(min_length=1)


class Goal(Closed):
    """A goal that nobody may change: its hash is over id and outcome."""

    schema_: Literal["shame.immutable_goal.v1"] = Field(alias="schema")
    goal_id: NonBlank
    goal_hash: Hash
    outcome: NonBlank
    primary_proof: PrimaryProof
    completion_criteria: list[NonBlank] = Field(min_length=1)
    allowed_scope: list[NonBlank] = Field(min_length=1)
    forbidden_drift: list[NonBlank] = Field(min_length=1)
    retry_stop_rule: RetryStopRule
    ecosystem_must: list[EcosystemMust] = []
    final_report_rule: NonBlank = ""


class GoalCore(BaseModel):
    """The two fields that a goal's hash needs; all others are left alone."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    goal_id: NonBlank
    outcome: NonBlank


class Each(Closed):
    """Words repeated for every item of a list of the payload."""

    each: Text
    argv: list[str] = Field(min_length=1)


class Template(Closed):
    reason: NonBlank
    argv: list[str | Each] = Field(min_length=1)


class EscalationCommands(Closed):
    """How a `needs_*` state becomes a command line."""

    schema_: Literal["collab.escalation_commands.v1"] = Field(alias="schema")
    directory: NonBlank | None = None
    states: dict[str, Template]


class Edge(Closed):
    from_: Text = Field(alias="from")
    to: Text
    label: Text | None
    style: Literal["solid", "dotted"]


class Group(Closed):
    name: Text
    nodes: list[Text] = Field(min_length=1)


class Graph(Closed):
    """The drawing of the ecosystem."""

    schema_: Literal["collab.ecosystem_graph.v1"] = Field(alias="schema")
    groups: list[Group]
    edges: list[Edge]


ENVELOPES: TypeAdapter[Envelope] = TypeAdapter(Envelope)
STATUSES: TypeAdapter[AgentStatus] = TypeAdapter(AgentStatus)
GOALS: TypeAdapter[Goal] = TypeAdapter(Goal)
GOAL_CORES: TypeAdapter[GoalCore] = TypeAdapter(GoalCore)
MEMBERSHIPS: TypeAdapter[Membership] = TypeAdapter(Membership)
COMMANDS: TypeAdapter[EscalationCommands] = TypeAdapter(EscalationCommands)
GRAPHS: TypeAdapter[Graph] = TypeAdapter(Graph)
