"""The actions of the screen Delegations (docs/specs/console.md §2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tui.action import DELEGATIONS, Action
from tui.legal import Context, Reason, always, selected

_HERE = frozenset({DELEGATIONS})


@dataclass(frozen=True, slots=True)
class Standing:
    """What the cursor stands on: a plan, a task of it, a delegation; None where it stands on none.

    `until` is the event after which the plan is shown, None for now; `events` is how many it has. `unread` says why
    the plan cannot be read. `gates` are the criteria that a gate may be run for, `missing` what blocks completion.
    """

    plan: str | None = None
    unread: str = ""
    task: str | None = None
    status: str = "pending"
    gates: int = 0
    missing: tuple[str, ...] = ()
    delegation: str | None = None
    state: str = ""
    claim: bool = False
    events: int = 0
    until: int | None = None

    @property
    def words(self) -> Mapping[str, str]:
        """What stands for the places of a command."""
        known = {"{plan}": self.plan, "{task}": self.task, "{delegation}": self.delegation}
        return {place: word for place, word in known.items() if word is not None}

    @property
    def next(self) -> str:
        """The action that is the next one here."""
        if self.until is not None:
            return "plan-now"
        if self.state == "launched":
            return "collect"
        if self.task is None or self.claim:
            return "run-gate" if self.claim else "launch"
        if self.status == "pending":
            return "begin-task"
        return "open-only" if self.status == "completed" else "launch"


_NOTHING = Standing()


def _standing(context: Context) -> Standing:
    return context.plan if context.plan is not None else _NOTHING


def _writable(context: Context) -> Reason | None:
    """A plan that can be read, as it is now, and somebody to act in it."""
    here = _standing(context)
    if here.plan is None:
        return Reason("there is no plan here: .dwp/plans/PLAN_NAME makes one")
    if here.unread:
        return Reason(here.unread)
    if here.until is not None:
        return Reason("this is the past; 0 returns to now")
    return None if context.me is not None else Reason("say who you are first (w)")


def launchable(context: Context) -> Reason | None:
    """A plan; the form says whether a launch is possible, condition by condition."""
    return _writable(context)


def startable(context: Context) -> Reason | None:
    """A task of a plan that can be written."""
    return _writable(context) or (None if _standing(context).task else Reason("select a task first"))


def endable(context: Context) -> Reason | None:
    """A delegation that is still open."""
    here = _standing(context)
    reason = _writable(context)
    if reason is not None:
        return reason
    if here.delegation is None:
        return Reason("select a delegation first")
    return None if here.state == "launched" else Reason(f"{here.delegation} is {here.state} already")


def gateable(context: Context) -> Reason | None:
    """A task that has started and whose criteria a gate can observe."""
    here = _standing(context)
    reason = startable(context)
    if reason is not None:
        return reason
    if here.status == "pending":
        return Reason(f"{here.task} has not started (s starts it)")
    return None if here.gates else Reason(f"no gate belongs to {here.task}")


def completable(context: Context) -> Reason | None:
    """A task of which nothing is missing any more."""
    here = _standing(context)
    reason = startable(context)
    if reason is not None:
        return reason
    if here.status == "pending":
        return Reason(f"{here.task} has not started (s starts it)")
    return Reason(f"missing: {', '.join(here.missing)}") if here.missing else None


def steps_back(context: Context) -> Reason | None:
    """An event before the one that is shown."""
    here = _standing(context)
    if here.plan is None or here.unread or not here.events:
        return Reason(here.unread or "there is no event to step to")
    return Reason("this is the first event") if here.until is not None and here.until <= 1 else None


def in_the_past(context: Context) -> Reason | None:
    """A plan that is shown as it was."""
    return None if _standing(context).until is not None else Reason("this is now")


DELEGATION_ACTIONS: tuple[Action, ...] = (
    Action(
        "launch",
        "l,f2",
        "launch",
        "Record that a delegate is launched, if nothing forbids it.",
        _HERE,
        2,
        "Act",
        launchable,
        "collab ledger --plan {plan} delegate launch --task {task} --json OBJ",
    ),
    Action(
        "collect",
        "c",
        "collect",
        "Record how a delegate ended, and its result.",
        _HERE,
        3,
        "Act",
        endable,
        "collab ledger --plan {plan} delegate collect --task {task} --json OBJ",
    ),
    Action(
        "run-gate",
        "r",
        "run gate",
        "Run a gate of this task and record what was observed.",
        _HERE,
        4,
        "Act",
        gateable,
        "collab ledger --plan {plan} gate --task {task} --criterion AC --json CMD",
    ),
    Action(
        "cancel",
        "x",
        "cancel",
        "Record that a delegate was cancelled; it is stopped elsewhere.",
        _HERE,
        5,
        "Act",
        endable,
        "collab ledger --plan {plan} delegate cancel --task {task} --json OBJ",
    ),
    Action(
        "begin-task",
        "s",
        "start task",
        "Record that this task begins.",
        _HERE,
        11,
        "Act",
        startable,
        "collab ledger --plan {plan} start --task {task}",
    ),
    Action(
        "complete-task",
        "e",
        "complete task",
        "Check that nothing is missing of this task.",
        _HERE,
        6,
        "Act",
        completable,
        "collab ledger --plan {plan} complete --task {task}",
    ),
    Action(
        "open-only",
        "o",
        "open only",
        "Show only what is still open, or everything.",
        _HERE,
        12,
        "Look",
        always,
    ),
    Action(
        "read-detail",
        "enter",
        "read below",
        "Go to the detail of this row.",
        _HERE,
        20,
        "Look",
        selected,
        "collab ledger --plan {plan} inspect",
        own=True,
    ),
    Action(
        "plan-back",
        "comma,[",
        "step back",
        "Show the plan as it was an event earlier.",
        _HERE,
        14,
        "Step",
        steps_back,
        "collab ledger --plan {plan} inspect --until SEQ -o json",
    ),
    Action(
        "plan-on",
        ".,]",
        "step on",
        "Show the plan as it was an event later.",
        _HERE,
        9,
        "Step",
        in_the_past,
        "collab ledger --plan {plan} inspect --until SEQ -o json",
    ),
    Action(
        "plan-now",
        "0",
        "now",
        "Return to the present.",
        _HERE,
        1,
        "Step",
        in_the_past,
        "collab ledger --plan {plan} inspect -o json",
    ),
)
