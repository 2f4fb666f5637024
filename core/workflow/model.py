"""What the engine decides and keeps: compiled specs, access profiles, inbox entries, proposals, rules (§1–§3, §7, §8).

Specs, entries, proposals and rules are ours: strict, frozen, without further keys. Packets are observed: whatever
else an agent wrote stays where it came in. Spans are whole milliseconds; moments on disk are ISO texts.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict

PAYLOAD: Final = ("context", "decision", "options", "result")
ENGINE: Final = "ambient"
PARENT: Final = "orchestrator"
OPERATOR: Final = "operator"
INBOX: Final = ("pilote", "human")
CHANNELS: Final = ("brain-ui", "desktop", "file")
RESERVED_CHANNELS: Final = ("webhook",)
CONSOLE: Final = "brain-ui"
ZONES: Final = ("kernel", "project", "personal")
MODES: Final = ("manual", "assisted", "swarm")
BREAKER_AT: Final = 3
HOLD: Final = 600_000
EXPIRY: Final = 72 * 3_600_000
CAUSE_CAP: Final = 500

Verdict = Literal["success", "fail", "partial", "error"]
Zone = Literal["kernel", "project", "personal"]
Mode = Literal["manual", "assisted", "swarm"]
Kind = Literal["fail", "error", "partial", "agent", "block", "gate", "drift", "circuit_break"]
EntryState = Literal["open", "decided", "applied", "expired", "cancelled"]
Parks = Literal["run", "item", "none"]


class Strict(BaseModel):
    """The base of everything that we decide."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    def plain(self) -> dict[str, Any]:
        """As JSON data, keys in the order of the class."""
        return self.model_dump(mode="json")


class Effect(Strict):
    """What a route does besides its control; `target` of ERROR and log is None."""

    do: Literal["ERROR", "log", "notify", "CHECKPOINT"]
    target: str | None = None


class Control(Strict):
    """Where a route leads. `step` is an index into the items (goto), `text` the question of a gate."""

    do: Literal["next", "goto", "escalate", "block", "gate", "abort"]
    target: str | None = None
    step: int | None = None
    text: str | None = None


class Route(Strict):
    """A parsed route: effects in order, at most one retry (its N), one control."""

    effects: tuple[Effect, ...] = ()
    retry: int | None = None
    control: Control


class Work(Strict):
    """What one item asks of an agent. In grammar A all items share one, in grammar B each step has its own."""

    agent: str
    zone: Zone = "project"
    files: tuple[str, ...] = ()
    success: Route
    fail: Route
    partial: Route
    error: Route
    before: Literal["human", "credentials"] | None = None
    after: Literal["0-failures", "never"] | None = None
    task: str | None = None
    agents: tuple[str, ...] = ()
    input_contract: str | None = None

    def route(self, verdict: Verdict) -> Route:
        made: Route = getattr(self, verdict)
        return made


class Retry(Strict):
    max: int = 0
    backoff: int = 0
    on: tuple[Verdict, ...] = ("error",)


class OnEscalate(Strict):
    notify: tuple[str, ...] = (CONSOLE,)
    wait: Literal["human_decision", "item", "none"] = "human_decision"
    deadline: int | None = None
    on_deadline: Literal["remind", "skip", "abort"] = "remind"
    remind_every: int = 86_400_000
    options: tuple[Literal["retry", "skip", "resolve", "abort"], ...] = ("retry", "skip", "resolve", "abort")
    self_approval: bool = True


class OnComplete(Strict):
    to: str | None = None
    payload: dict[str, Any] = {}
    on_abort: bool = False


class Check(Strict):
    """One comparison of a condition: `path` leads into identity/*.yml."""

    path: str
    op: Literal["eq", "ne", "lt", "le", "gt", "ge", "in", "contains", "exists", "age_gt"]
    value: Any = None


class Condition(Strict):
    match: Literal["all", "any"]
    tests: tuple[Check, ...]


class Trigger(Strict):
    every: int | None = None
    when: Condition | None = None


class Spec(Strict):
    """A workflow as compiled from either grammar; `spec_hash` is over its canonical JSON."""

    grammar: Literal["for_each", "chain"]
    workflow: str
    description: str | None = None
    items: tuple[str, ...]
    works: tuple[Work, ...]
    labels: tuple[int, ...] = ()
    swarm_ready: bool = False
    max_parallel: int = 1
    timeout: int = 1_800_000
    retry: Retry = Retry()
    idempotent: bool = False
    reversible: bool = False
    external_effect: bool = True
    trigger: Trigger | None = None
    on_complete: OnComplete | None = None
    on_escalate: OnEscalate = OnEscalate()
    branch: str | None = None
    pilote: str | None = None
    status: str | None = None
    note: str | None = None

    def work(self, index: int) -> Work:
        """What the item at `index` asks for."""
        return self.works[index] if self.grammar == "chain" else self.works[0]

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents that it spawns, each once, in order."""
        return tuple(dict.fromkeys(work.agent for work in self.works))

    @property
    def zones(self) -> tuple[tuple[str, Zone], ...]:
        """(agent, zone) pairs that it needs, each once."""
        return tuple(dict.fromkeys((work.agent, work.zone) for work in self.works))


class Profile(BaseModel):
    """`brain.ipc` of agents/<name>.md. Observed, so further keys are kept."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    receives_from: tuple[str, ...] = ()
    sends_to: tuple[str, ...] = ()
    zone_access: tuple[str, ...] = ()
    signals: tuple[str, ...] = ()


OPEN_PROFILE: Final = {"receives_from": ["*"], "sends_to": ["*"], "zone_access": ["*"], "signals": ["*"]}


class Option(Strict):
    id: str
    title: str
    effect: str
    args_schema: dict[str, Literal["string", "integer", "number", "boolean"]] | None = None
    recommended: bool = False


class Decision(Strict):
    """An answer. `text` is what `respond` said; `decided_at` an ISO text."""

    verb: str
    option_id: str | None
    args: dict[str, Any] | None = None
    note: str | None = None
    decided_by: str
    channel: str
    decided_at: str
    idempotency_key: str | None = None
    text: str | None = None


class Summary(Strict):
    failed: str | None
    tried: str | None
    impact: str | None


class Notified(Strict):
    channel: str
    at: str
    ok: bool


class Entry(Strict):
    """One question in the inbox (§7). The keys after `deadlock` are the engine's own bookkeeping."""

    id: str
    run_id: str
    workflow: str
    item: str | None
    item_index: int | None
    attempt: int | None
    kind: Kind
    cause: str | None
    cause_key: str | None
    raised_by: str
    target: str
    held_by: str | None
    reasons: tuple[str, ...]
    rule: str | None
    question: str
    summary: Summary
    options: tuple[Option, ...]
    options_defaulted: bool
    opened_at: str
    deadline_at: str | None
    remind_at: str | None
    overdue: bool = False
    reminders: int = 0
    snoozed_until: str | None = None
    notified: tuple[Notified, ...] = ()
    state: EntryState = "open"
    decision: Decision | None = None
    applied_at: str | None = None
    resume_token: str
    previous: str | None = None
    deadlock: bool | None = None
    parks: Parks = "run"
    told_at: str | None = None
    context: Any = None
    closed_by: dict[str, Any] | None = None
    deadlock_with: str | None = None

    def offers(self, option: str) -> bool:
        return any(item.id == option for item in self.options)

    def agents_own(self, option: str) -> bool:
        """Whether an option is the agent's, not one of ours."""
        return self.kind == "agent" and not self.options_defaulted and option != "abort"

    def obeys(self, act: str) -> bool:
        """Whether a deadline can do this here: an agent's own option of the same name is another thing."""
        return self.offers(act) and not self.agents_own(act)

    @property
    def recommended(self) -> Option | None:
        return next((item for item in self.options if item.recommended), None)

    def public(self) -> dict[str, Any]:
        """The keys of §7, every one present."""
        made = self.plain()
        for name in ("parks", "told_at", "context", "closed_by", "deadlock_with"):
            del made[name]
        return made


class Pattern(Strict):
    """What alike questions share; `cause` is the text after normalisation."""

    workflow: str
    agent: str
    kind: str
    zone: str
    cause: str
    options: tuple[str, ...] = ()


class Proposes(Strict):
    """What approving would do. `type` is `ambient_rule` or `workflow_update`."""

    type: str
    option_id: str | None = None
    args: dict[str, Any] | None = None
    learnable: tuple[str, ...] = ()
    file: str | None = None


class Proposal(Strict):
    id: str
    kind: Literal["rule", "workflow_fix"]
    trigger: Literal["escalate_same_cause", "error_same_workflow"]
    cause_key: str
    pattern: Pattern
    evidence: tuple[str, ...]
    proposes: Proposes
    requires: Literal["human_approval"] = "human_approval"
    opened_at: str
    expires_at: str
    state: Literal["open", "approved", "rejected", "archived"] = "open"
    decided_by: str | None = None
    decided_at: str | None = None


class Rule(Strict):
    id: str
    proposal: str
    cause_key: str
    pattern: Pattern
    option_id: str
    args: dict[str, Any] | None = None
    state: Literal["active", "suspended", "revoked"] = "active"
    uses: int = 0
    confidence: int = 0
    approved_by: str
    approved_at: str
    revoked_by: str | None = None
