"""The actions of the screens Workflows and a run (docs/specs/console.md §2)."""

from __future__ import annotations

from dataclasses import dataclass

from tui.action import INBOX, RUN, WORKFLOWS, Action
from tui.legal import Context, Reason, always

_IN_LIST = frozenset({WORKFLOWS})
_IN_RUN = frozenset({RUN})
_IN_BOTH = frozenset({WORKFLOWS, RUN})


@dataclass(frozen=True, slots=True)
class Picked:
    """What the cursor stands on: questions that wait, a run and how it ended, a proposal or rule and why it is settled.

    `moments` are the events of the run that is unfolded, `moment` the one that is shown, None for now.
    """

    asks: int = 0
    run: str | None = None
    ended: str | None = None
    learned: str | None = None
    rule: bool = False
    settled: str = ""
    specs: int = 0
    roots: int = 0
    moments: int = 0
    moment: int | None = None


_NOTHING = Picked()
_NOBODY = Reason("say who you are first (w)")


def _picked(context: Context) -> Picked:
    return context.workflow if context.workflow is not None else _NOTHING


def asked(context: Context) -> Reason | None:
    """A question that waits, and somebody to answer it."""
    if not _picked(context).asks:
        return Reason("nothing here waits for an answer")
    return None if context.me is not None else _NOBODY


def unfoldable(context: Context) -> Reason | None:
    """A run, or a question of one."""
    return None if _picked(context).run is not None else Reason("select a run, or a question of one")


def startable(context: Context) -> Reason | None:
    """A workflow, and somebody to start it."""
    if not _picked(context).specs:
        return Reason("there is no workflow here: workflows/NAME.yml beside ambient/ makes one")
    return None if context.me is not None else _NOBODY


def stoppable(context: Context) -> Reason | None:
    """A run that is not over."""
    picked = _picked(context)
    if picked.run is None:
        return Reason("select a run, or a question of one")
    if picked.ended is not None:
        return Reason(f"this run is over: {picked.ended}")
    return None if context.me is not None else _NOBODY


def ticks(context: Context) -> Reason | None:
    """A root whose engine can look."""
    return None if _picked(context).roots else Reason("there is no workflow root here")


def approvable(context: Context) -> Reason | None:
    """A proposal that nobody has settled."""
    picked = _picked(context)
    if picked.learned is None or picked.rule:
        return Reason("select a proposal (t shows what was learned)")
    return _open(context, picked)


def rejectable(context: Context) -> Reason | None:
    """A proposal that nobody has settled, or a rule that is not revoked."""
    picked = _picked(context)
    if picked.learned is None:
        return Reason("select a proposal or a rule (t shows what was learned)")
    return _open(context, picked)


def _open(context: Context, picked: Picked) -> Reason | None:
    if picked.settled:
        return Reason(picked.settled)
    return None if context.me is not None else _NOBODY


def has_log(context: Context) -> Reason | None:
    """A run whose log was read."""
    return None if _picked(context).moments else Reason("the log of this run has not been read yet")


def earlier(context: Context) -> Reason | None:
    """An event before the one that is shown."""
    first = _picked(context).moment == 0
    return has_log(context) or (Reason("this is the first event") if first else None)


def in_the_past(context: Context) -> Reason | None:
    """A run that is shown as it was."""
    return has_log(context) or (None if _picked(context).moment is not None else Reason("this is now"))


WORKFLOW_ACTIONS: tuple[Action, ...] = (
    Action(
        "answer",
        "a",
        "answer",
        "Answer what waits; a folded row answers each of its questions.",
        frozenset({INBOX, WORKFLOWS, RUN}),
        2,
        "Act",
        asked,
        "collab escalation decide ESC OPTION --as {me}",
    ),
    Action(
        "unfold-run",
        "enter",
        "its steps",
        "Unfold a run: its steps, its timeline, its spec.",
        _IN_LIST,
        3,
        "Look",
        unfoldable,
        "collab workflow status RUN",
        own=True,
    ),
    Action(
        "start-run",
        "s",
        "start",
        "Start a workflow.",
        _IN_LIST,
        5,
        "Act",
        startable,
        "collab workflow start NAME --as {me}",
    ),
    Action(
        "stop-run",
        "x",
        "stop the run",
        "Stop a run; what is in flight is only recorded.",
        _IN_BOTH,
        12,
        "Act",
        stoppable,
        "collab workflow abort RUN --as {me}",
    ),
    Action(
        "tick-now",
        "u",
        "tick now",
        "Let the engine look once.",
        _IN_BOTH,
        8,
        "Act",
        ticks,
        "collab workflow tick",
    ),
    Action(
        "approve",
        "p",
        "approve",
        "Let what was learned become a rule, as proposed or another.",
        _IN_LIST,
        4,
        "Act",
        approvable,
        "collab proposal approve PROP --as {me}",
    ),
    Action(
        "reject",
        "r",
        "reject or revoke",
        "Reject a proposal, or revoke a rule.",
        _IN_LIST,
        6,
        "Act",
        rejectable,
        "collab proposal reject PROP --as {me}",
    ),
    Action(
        "workflow-view",
        "t,>",
        "next view",
        "Runs, what was learned, workflows: the next of them.",
        _IN_LIST,
        9,
        "Look",
        always,
        "collab proposal list",
    ),
    Action(
        "run-part",
        "t,>",
        "next part",
        "Steps, timeline, questions, spec: the next of them.",
        _IN_RUN,
        3,
        "Look",
        always,
        "collab workflow status RUN",
    ),
    Action(
        "run-back",
        "comma,[",
        "back in time",
        "Show the run as it was an event earlier.",
        _IN_RUN,
        4,
        "Step",
        earlier,
        "collab workflow status RUN",
    ),
    Action(
        "run-on",
        ".,]",
        "on in time",
        "Show the run as it was an event later.",
        _IN_RUN,
        5,
        "Step",
        in_the_past,
        "collab workflow status RUN",
    ),
    Action(
        "run-now",
        "0",
        "now",
        "Return from the past to now.",
        _IN_RUN,
        6,
        "Step",
        in_the_past,
        "collab workflow status RUN",
    ),
)
