"""What is on disk in a plan: contract, manifest, descriptors, registry (docs/specs/delegation.md §1, §2, §6).

Closed, strict and frozen: a contract decides. Every pattern matches its whole text, without a trailing newline.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from core.delegation.canon import moment

BASE: Final = "https://deepworkplan.com/schema"
Generation = Literal["v6", "v7"]
GENERATIONS: Final[tuple[str, ...]] = get_args(Generation)
CONTRACT_URLS: Final = {f"{BASE}/plan-contract/{name}.json": name for name in GENERATIONS}
MANIFEST_URLS: Final = {name: f"{BASE}/plan-manifest/{name}.json" for name in GENERATIONS}
EVENT_URLS: Final = {name: f"{BASE}/journal-event/{name}.json" for name in GENERATIONS}
DESCRIPTOR_URL: Final = f"{BASE}/addon-descriptor/v1.json"
LEDGERS: Final = {"v6": "dwp-ledger/6.0", "v7": "dwp-ledger/7.0"}

CONTRACT: Final = "contract.json"
CHAIN: Final = "contracts"
MANIFEST: Final = "manifest.json"
JOURNAL: Final = "journal.ndjson"
EVIDENCE: Final = "evidence.jsonl"
GATES: Final = "gates"
LOCK: Final = ".ledger.lock"
OWNER: Final = f"{LOCK}/owner.json"
ARCHIVE: Final = re.compile(r"journal-archive-([0-9]{6,})-([0-9]{6,})\.ndjson")

Grant = Literal[
    "gate_command_exec",
    "fs_write_plan_scope",
    "fs_write_repo_scope",
    "git_operations",
    "network_access",
    "host_adapter_metering",
    "agent_delegation",
    "context_export",
    "model_routing",
]
Ability = Literal[
    "stop_agent",
    "meter_spend",
    "meter_tokens",
    "meter_wall_clock",
    "cancel_children",
    "model_routing",
    "subagents",
    "telemetry",
]
ABILITIES: Final[tuple[Ability, ...]] = get_args(Ability)
Trust = Literal["observed", "imported", "asserted"]
Mechanism = Literal["plan_authorship", "pre_authorization"]
Transport = Literal["headless", "interactive"]
MECHANISMS: Final[tuple[Mechanism, ...]] = get_args(Mechanism)

TASK_ID: Final = re.compile(r"T-[a-z0-9]+(-[a-z0-9]+)*")
ADDON_KEY: Final = re.compile(r"[a-z][a-z0-9-]{0,63}")
TAG: Final = re.compile(r"v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?")


class Closed(BaseModel):
    """Unknown fields are refused, types are taken as they stand."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True, protected_namespaces=())


def _given(value: Any) -> Any:
    if value is None:
        raise PydanticCustomError("null", "must not be null")
    return value


GIVEN: Final = BeforeValidator(_given)
"""A field that may be left out and then reads as None, but may not be null."""


def non_blank(text: str) -> str:
    """A text that is not only white space, else a fault."""
    if not text.strip():
        raise PydanticCustomError("blank", "must not be blank")
    return text


def _number(value: Any) -> Any:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise PydanticCustomError("number", "must be a number")
    return value


def _time(text: str) -> str:
    if moment(text) is None:
        raise PydanticCustomError("time", "must be an RFC 3339 time with a zone")
    return text


def _unique(values: list[Any]) -> list[Any]:
    if len(set(values)) != len(values):
        raise PydanticCustomError("unique", "must not repeat an entry")
    return values


def _number_at_least(low: float, strictly: bool = False) -> Any:
    def check(value: Any) -> Any:
        if value < low or (strictly and value == low):
            raise PydanticCustomError("range", f"must be {'above' if strictly else 'at least'} {low:g}")
        return value

    return AfterValidator(check)


Said = Annotated[str, AfterValidator(non_blank)]
"""Not only white space."""
Number = Annotated[Any, BeforeValidator(_number)]
Amount = Annotated[Any, BeforeValidator(_number), _number_at_least(0)]
Positive = Annotated[Any, BeforeValidator(_number), _number_at_least(0, strictly=True)]
Time = Annotated[str, AfterValidator(_time)]
Hex64 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
PlanName = Annotated[str, Field(pattern=r"^PLAN_([0-9]{3,}_)?[a-z0-9]+(_[a-z0-9]+){1,4}$")]
TaskId = Annotated[str, Field(pattern=r"^T-[a-z0-9]+(-[a-z0-9]+)*$")]
CriterionId = Annotated[str, Field(pattern=r"^AC-[a-z0-9]+(-[a-z0-9]+)*$")]
InvariantId = Annotated[str, Field(pattern=r"^INV-[a-z0-9]+(-[a-z0-9]+)*$")]
LimitId = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Key = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,63}$")]
Tag = Annotated[str, Field(pattern=r"^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$")]
Evidence = Annotated[list[Trust], Field(min_length=1), AfterValidator(_unique)]
Names = Annotated[list[Said], Field(min_length=1)]


class Outcome(Closed):
    statement: Said
    success_definition: Said
    out_of_scope: list[Said]


class Control(Closed):
    kind: Literal["regression", "discrimination", "exempt"]
    rationale: Said


class Criterion(Closed):
    id: CriterionId
    statement: Said
    observable_check: Said
    accepted_evidence: Evidence
    control: Annotated[Control | None, GIVEN] = None


class Acceptance(Closed):
    criteria: Annotated[list[Criterion], Field(min_length=1)]


class Invariant(Closed):
    id: InvariantId
    statement: Said


class Scope(Closed):
    allowed_paths: Names
    allowed_command_classes: Annotated[Names, AfterValidator(_unique)]
    forbidden_operations: Names


class Authorization(Closed):
    mechanism: Mechanism
    authority: Said
    timestamp: Time
    boundaries: Said
    consent_checkpoints: list[Said]


class Permissions(Closed):
    granted: Annotated[list[Grant], AfterValidator(_unique)]
    not_granted: Annotated[list[Grant], AfterValidator(_unique)]


class Dependency(Closed):
    name: Said
    kind: Literal["external_system", "credential", "pinned_input"]
    detail: Said


class Limit(Closed):
    id: LimitId
    limit: Amount
    unit: Said
    enforcement: Literal["enforced", "advisory"]
    metering_source: Said = ""
    reserve: Amount = 0


class Envelope(Closed):
    limits: Annotated[list[Limit], Field(min_length=1)]


class Handoff(Closed):
    fresh_context: Said = ""
    cross_host_resume: Said = ""


class Scheduling(Closed):
    starvation_threshold_events: Annotated[int, Field(ge=1)] = 1
    max_adaptations_per_task: Annotated[int, Field(ge=0)] = 0
    max_retries_per_gate: Annotated[int, Field(ge=0)] = 0
    handoff: Annotated[Handoff | None, GIVEN] = None


class GateIntent(Closed):
    criterion: CriterionId
    check: Said


class TaskV6(Closed):
    id: TaskId
    title: Said
    prerequisites: Annotated[list[TaskId], AfterValidator(_unique)]
    touched_surface: Names
    gate_intent: list[GateIntent]

    @property
    def marked(self) -> bool:
        """Whether the plan's author marked it `parallel_safe`; absent is not."""
        return False


class TaskV7(TaskV6):
    parallel_safe: bool = False

    @property
    def marked(self) -> bool:
        return self.parallel_safe


class _ContractBase(Closed):
    schema_: str = Field(alias="schema")
    spec_version: Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$")]
    plan: PlanName
    revision: Annotated[int, Field(ge=1)]
    contract_id: Hex64 = ""
    parent_contract_id: Hex64 = ""
    created_at: Time
    title: str = ""
    outcome: Outcome
    acceptance: Acceptance
    invariants: list[Invariant]
    scope: Scope
    authorization: Authorization
    permissions: Permissions
    dependencies: list[Dependency]
    resource_envelope: Envelope
    scheduling: Annotated[Scheduling | None, GIVEN] = None


class ContractV6(_ContractBase):
    tasks: Annotated[list[TaskV6], Field(min_length=1)]


class ContractV7(_ContractBase):
    tasks: Annotated[list[TaskV7], Field(min_length=1)]


Document = ContractV6 | ContractV7
CONTRACTS: Final[dict[str, type[ContractV6] | type[ContractV7]]] = {"v6": ContractV6, "v7": ContractV7}


class Pointer(Closed):
    id: Hex64
    path: Literal["contract.json"]


class Manifest(Closed):
    schema_: str = Field(alias="schema")
    plan: PlanName
    contract: Pointer


class Product(Closed):
    repo: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+/[A-Za-z0-9._-]+$")]
    tag: Tag
    interface: Annotated[int, Field(ge=1)] = 0


def _plain_path(text: str) -> str:
    if ".." in text.split("/"):
        raise PydanticCustomError("path", "must not climb with ..")
    return text


PlainPath = Annotated[str, Field(pattern=r"^(~/)?[A-Za-z0-9._][A-Za-z0-9._/-]*$"), AfterValidator(_plain_path)]
PlainPaths = Annotated[list[PlainPath], Field(min_length=1), AfterValidator(_unique)]
_FIELD = "[A-Za-z_][A-Za-z0-9_]*"


def _interface_source(text: str) -> str:
    kind, _, rest = text.partition(":")
    if kind == "json" and re.fullmatch(_FIELD, rest):
        return text
    if kind == "regex" and rest:
        return text
    if kind == "file-json" and re.fullmatch(rf"~/[A-Za-z0-9._][A-Za-z0-9._/-]*#{_FIELD}", rest):
        return _plain_path(text.partition("#")[0] + "#x") and text
    raise PydanticCustomError("interface_from", "must be json:FIELD, regex:PATTERN or file-json:~/PATH#FIELD")


class Detect(Closed):
    command: Annotated[str, Field(max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/ -]*$")] = ""
    paths: Annotated[PlainPaths | None, GIVEN] = None
    legacy_paths: Annotated[PlainPaths | None, GIVEN] = None
    interface_from: Annotated[str, AfterValidator(_interface_source)] = ""


class Descriptor(Closed):
    """What an addon is, how it is found and what it provides."""

    schema_: Literal["https://deepworkplan.com/schema/addon-descriptor/v1.json"] = Field(alias="schema")
    key: Key
    product: Annotated[Product | None, GIVEN] = None
    detect: Detect
    provides_abilities: Annotated[list[Ability], AfterValidator(_unique)]
    requires_grants: Annotated[list[Grant], AfterValidator(_unique)]
    transport: Annotated[Transport | None, GIVEN] = None


class RegistryEntry(Closed):
    """Whether a repository or a person switched an addon on."""

    enabled: bool
    version: Tag = ""
    note: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f\u0085\u2028\u2029]+$")] = ""


def fault(exc: ValidationError, name: str) -> str:
    """The first fault of a validation in words: the field's full name and what is wrong with it."""
    first = exc.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join([name, *(str(step) for step in first["loc"])])
    if first["type"] == "missing":
        return f"{place} is missing"
    if first["type"] == "extra_forbidden":
        return f"{place} is no field of this object"
    message = str(first["msg"])
    return f"{place}: {message[:1].lower()}{message[1:]}"
