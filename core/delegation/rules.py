"""What may be recorded: decisions on a plan's progress, without clock, file or lock (docs/specs/delegation.md §5, §7).

A decision returns drafts of events, or raises `NotAllowed` for what is an error and recorded nowhere. Facts that cost
something (a git call, a detection) come as functions and are asked for only when a decision gets that far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from core.delegation import canon, git
from core.delegation.addons import Addon
from core.delegation.contract import Chain, Revision
from core.delegation.events import NOTE_CAP, READ_ONLY_MARK, form_problem
from core.delegation.model import ADDON_KEY, EVENT_URLS, LEDGERS
from core.delegation.progress import (
    Blocker,
    CriterionState,
    Progress,
    blockers,
    criterion_states,
    read_only,
    status,
    tree_mark,
)
from core.sanitize import clip, inert

CHECKS: Final = (
    "v7",
    "grant",
    "task",
    "started",
    "not-complete",
    "marker",
    "tree",
    "descriptor",
    "transport",
    "ability",
    "new-id",
    "well-formed",
)
_LAUNCH_KEYS: Final = ("transport", "via", "kind", "profile", "target", "worktree", "prompt_digest")
_END_KEYS: Final = ("task", "delegation_id", "transport", "via", "kind", "profile", "target", "worktree")
_UNJUDGED: Final = "cannot be judged yet"


class NotAllowed(Exception):
    """An act that is an error, not a refusal: nothing is recorded. `code` is of the failure catalogue."""

    def __init__(self, code: str, cause: str) -> None:
        super().__init__(cause)
        self.code, self.cause = code, cause


@dataclass(frozen=True, slots=True)
class Draft:
    """An event before it has its place: type, payload, actor, note. `own` is what the ledger itself says."""

    type: str
    body: Mapping[str, Any]
    actor: Mapping[str, str]
    note: Any = None
    own: bool = False


def own(contract: Revision, type_: str, body: Mapping[str, Any]) -> Draft:
    """What the ledger itself says, under its own signature; nobody else may use it (§4)."""
    return Draft(type_, body, {"kind": "helper", "identity": LEDGERS[contract.generation]}, own=True)


def shown(value: object, width: int = 100) -> str:
    """Anything that a caller wrote, fit for a recorded sentence."""
    return clip(inert(canon.legal(value if isinstance(value, str) else str(value))), width)


def refusal(contract: Revision, subject: str, stage: str, reason: str) -> Draft:
    """The record of a refusal, signed by the ledger."""
    body = {"subject": canon.legal(subject), "stage": stage, "reason": reason}
    return own(contract, "refusal", body)


def refused_delegation(contract: Revision, task: str, reason: str) -> Draft:
    return refusal(contract, f"delegate {task}", "dispatch", reason)


def approved(progress: Progress, contract: Revision) -> bool:
    """Whether an approval cites the live contract."""
    return contract.id in progress.approvals


def not_approved(contract: Revision) -> str:
    return f"no approval cites the live contract {contract.id[:12]}"


# ---------------------------------------------------------------- launch


@dataclass(frozen=True, slots=True)
class Check:
    """One condition of a launch; `cause` says why it is not met, else None."""

    check: str
    met: bool
    cause: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {"check": self.check, "met": self.met, "cause": self.cause}


@dataclass(frozen=True, slots=True)
class Launch:
    """What a caller asks for: the task as given, the payload, who asks, the id if none was given."""

    task: str
    payload: Mapping[str, Any]
    actor: Mapping[str, str]
    fallback_id: str

    @property
    def id(self) -> Any:
        given = self.payload.get("delegation_id")
        return self.fallback_id if given is None or given == "" else given


@dataclass(frozen=True, slots=True)
class Facts:
    """What a launch is judged by. `tree`, `addon` and `sources` cost something and are asked for once they matter."""

    chain: Chain
    progress: Progress
    tree: Callable[[], str]
    addon: Callable[[object], Addon | None]
    sources: Callable[[str], Sequence[str]]


def launch_checks(launch: Launch, facts: Facts) -> Iterator[Check]:
    """Every condition of §7 in its order; a launch stops at the first that is not met, a dry run reads them all."""
    contract, progress = facts.chain.live, facts.progress
    name = shown(launch.task)
    yield _check(
        "v7", contract.generation == "v7", f"this plan is {contract.generation}: only v7 plans record delegation"
    )
    yield _check("grant", contract.grants("agent_delegation"), "the contract does not grant agent_delegation")
    task = contract.tasks.get(launch.task)
    yield _check("task", task is not None, f"unknown task {name}")
    started = task is not None and launch.task in progress.starts
    yield _check("started", started, f"{name} has not started")
    complete = started and status(progress, contract, launch.task) == "completed"
    yield _check("not-complete", not complete, f"{name} is already complete")
    looks = read_only(launch.payload)
    marked = task is not None and task.marked
    reason = f"{name} is not marked parallel_safe, and the delegate is not read-only (worktree null)"
    yield _check("marker", marked or (looks and task is not None), reason)
    needs_tree = looks and not marked
    reason = f"a read-only delegate on {name}, which is not marked parallel_safe, needs a git work tree"
    yield _check("tree", not needs_tree or facts.tree() != git.NONE, reason)
    yield from _carrier(launch, facts)
    known = isinstance(launch.id, str) and launch.id in progress.ids
    yield _check("new-id", not known, f"delegation_id {shown(launch.id)} is already recorded")
    problem = launch_problem(launch, facts)
    yield Check("well-formed", problem is None, problem)


def _check(name: str, met: bool, reason: str) -> Check:
    return Check(name, met, None if met else reason)


def _carrier(launch: Launch, facts: Facts) -> Iterator[Check]:
    via, transport = launch.payload.get("via"), launch.payload.get("transport")
    addon = facts.addon(via)
    valid = addon is not None and addon.descriptor is not None
    if not isinstance(via, str) or ADDON_KEY.fullmatch(via) is None:
        reason = "via is no addon key, so it is not a valid in-pack addon"
    else:
        why = addon.problem if addon is not None and addon.problem else "nothing describes it"
        reason = f"via {via} is not a valid in-pack addon: {shown(why, 200)}"
    yield _check("descriptor", valid, reason)
    if addon is None or addon.descriptor is None:
        yield Check("transport", False, _UNJUDGED)
        yield Check("ability", False, _UNJUDGED)
        return
    carries = addon.transport
    reason = f"addon {addon.key} carries transport {carries or 'none'}, not {shown(transport)}"
    yield _check("transport", carries is not None and carries == transport, reason)
    sources = list(facts.sources(addon.key))
    reason = (
        f"addon {addon.key} is not enabled and detected with a compatible interface "
        f"(sources: {', '.join(sources) or 'none'})"
    )
    yield _check("ability", f"addon:{addon.key}" in sources, reason)


def launch_draft(launch: Launch, facts: Facts) -> Draft:
    """The launched event of a request that passed. Raises NotAllowed for a note that is none (§7)."""
    body = {key: launch.payload[key] for key in _LAUNCH_KEYS if key in launch.payload}
    body.update(task=launch.task, delegation_id=launch.id, state="launched")
    note = launch.payload.get("note")
    if note is not None and not isinstance(note, str):
        raise NotAllowed("event_invalid", "event.note of a delegation is no text")
    if read_only(launch.payload):
        mark = f"{READ_ONLY_MARK}{facts.tree()}"
        note = (f"{mark} | {note}" if note else mark)[:NOTE_CAP]
    elif note is not None and note.startswith(READ_ONLY_MARK):
        raise NotAllowed("event_invalid", f"event.note of a writing delegate must not begin with {READ_ONLY_MARK!r}")
    return Draft("delegation", body, launch.actor, note)


def launch_problem(launch: Launch, facts: Facts) -> str | None:
    """Why the event of a launch would be malformed, None when it would not."""
    try:
        draft = launch_draft(launch, facts)
    except NotAllowed as exc:
        return exc.cause
    return actor_problem(launch.actor) or form_problem(provisional(draft, facts.chain.live), "v7")


def provisional(draft: Draft, contract: Revision) -> dict[str, Any]:
    """A draft with an envelope that is right, so that only what the caller wrote can be wrong."""
    event = {
        **draft.body,
        "schema": EVENT_URLS["v7"],
        "type": draft.type,
        "seq": 1,
        "ts": "2000-01-01T00:00:00Z",
        "plan": contract.plan,
        "contract_id": contract.id,
        "actor": dict(draft.actor),
    }
    return event if draft.note is None else {**event, "note": draft.note}


def actor_problem(actor: Mapping[str, Any], adapter: bool = False) -> str | None:
    """`helper` and `host_adapter` are the ledger's (§4); with `adapter` the latter is allowed."""
    kind = actor.get("kind")
    if kind == "helper" or (kind == "host_adapter" and not adapter):
        return f"--actor-kind {kind} is the ledger's own"
    return None


# ---------------------------------------------------------------- collect and cancel


@dataclass(frozen=True, slots=True)
class End:
    """A request to end a delegation: `operation` is collect or cancel."""

    operation: str
    task: str
    payload: Mapping[str, Any]
    actor: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Ended:
    """What ending comes to: the drafts to record and, when the request is refused, the reason."""

    drafts: tuple[Draft, ...]
    reason: str | None = None


def decide_end(
    end: End, chain: Chain, progress: Progress, tree: Callable[[], str], digest: Callable[[str], str | None]
) -> Ended:
    """§7, in its order. Raises NotAllowed for what is an error."""
    contract = chain.live
    name = end.payload.get("delegation_id")
    known = progress.delegations.get(name) if isinstance(name, str) else None

    def refuse(reason: str, *before: Draft) -> Ended:
        return Ended((*before, refused_delegation(contract, end.task, reason)), reason)

    if known is None or known.task != end.task:
        return refuse(f"there is no launched delegation {shown(name)} for {shown(end.task)}")
    if not known.open:
        return refuse(f"delegation {shown(known.id)} is already {known.state}")
    state = "cancelled" if end.operation == "cancel" else end.payload.get("state")
    if end.operation == "collect" and state not in ("completed", "failed"):
        raise NotAllowed("state_invalid", "--json.state must be completed or failed")
    body = {key: known.latest[key] for key in _END_KEYS if key in known.latest}
    mark = tree_mark(known.latest)
    if mark is not None and mark != tree():
        note = f"read-only delegate: the working tree changed between launch and {end.operation}"
        failed = Draft("delegation", {**body, "state": "failed"}, end.actor, note)
        reason = f"the working tree changed since {shown(known.id)} was launched read-only; it is recorded as failed"
        return refuse(reason, failed)
    body["state"] = state
    path = end.payload.get("result_path")
    if end.operation == "collect" and path is not None:
        if not isinstance(path, str) or not path or path.startswith("/") or ".." in path.split("/") or "\0" in path:
            raise NotAllowed("path_outside_folder", "--json.result_path must be a relative path without a .. segment")
        body["result_path"] = path
        found = digest(path)
        if found is not None:
            body["result_digest"] = found
    return Ended((Draft("delegation", body, end.actor, end.payload.get("note")),))


# ---------------------------------------------------------------- complete


@dataclass(frozen=True, slots=True)
class Completion:
    """Whether a task's criteria are satisfied, and why not: `blocked` holds only what the first cause names."""

    states: tuple[CriterionState, ...]
    blocked: tuple[Blocker, ...]
    reason: str | None


def decide_complete(progress: Progress, contract: Revision, task: str) -> Completion:
    """The completion check of §5; the first cause wins. Raises NotAllowed for a task that is none."""
    known_task(contract, task)
    states = tuple(criterion_states(progress, contract, task))
    found = blockers(progress, contract, task)
    for kind, sentence in _SENTENCES.items():
        named = tuple(item for item in found if item.kind == kind)
        if named:
            return Completion(states, named, sentence.format(", ".join(item.id for item in named)))
    return Completion(states, (), None)


_SENTENCES: Final = {
    "delegation": "delegations are still open: {}; collect or cancel them first",
    "invariant": "invariants without a passing observation since the task's start: {}",
    "criterion": "criteria without accepted evidence since the task's start: {}",
}


def known_task(contract: Revision, task: str) -> None:
    """Raises NotAllowed for a task that is not in the contract."""
    if task not in contract.tasks:
        raise NotAllowed("task_unknown", f"{shown(task)} is no task of this contract")
