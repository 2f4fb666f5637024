"""When an action is possible, and in whose words it is not: the reasons are those that `decide` gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.acp.history import DELIVERABLE_PHASES, EDITABLE
from core.acp.model import Event
from core.acp.supporting import turn_findings

if TYPE_CHECKING:
    from pathlib import Path

    from tui.action_delegation import Standing
    from tui.action_workflow import Picked
    from tui.desk import FolderView


@dataclass(frozen=True, slots=True)
class Reason:
    """Why an action is not possible now, and a command that helps, if there is one."""

    text: str
    command: str | None = None


@dataclass(frozen=True)
class Context:
    """What the legality of an action may depend on: the screen, the person, the folder and what is selected.

    In triage: whether there is a signal and why it cannot be recorded, the minted code in question and why it cannot
    be settled.
    """

    screen: str
    me: str | None = None
    view: FolderView | None = None
    row: str | None = None
    selected: Path | None = None
    document: str | None = None
    event: Event | None = None
    log: bool = False
    waiting: int = 0
    parts: int = 0
    signal: bool = False
    obstacle: str = ""
    minted: str | None = None
    settled: str = ""
    workflow: Picked | None = None
    plan: Standing | None = None

    @property
    def folder(self) -> Path | None:
        """The folder that a command of this action would name."""
        return self.view.path if self.view is not None else self.selected


Legal = Callable[[Context], Reason | None]


def always(_: Context) -> Reason | None:
    """Whenever the screen is there."""
    return None


def selected(context: Context) -> Reason | None:
    """A row under the cursor."""
    return None if context.row is not None else Reason("nothing is selected")


def single(context: Context) -> Reason | None:
    """A row that stands for one folder."""
    return selected(context) or (None if context.selected is not None else Reason("unfold this row first (f)"))


def waiting(context: Context) -> Reason | None:
    """Something that waits for this person."""
    if context.waiting:
        return None
    return Reason("nothing waits for you" if context.me else "nobody knows yet who you are: w")


def opened(context: Context) -> Reason | None:
    """A folder that has been looked at, readable or not."""
    if context.view is None:
        return Reason("the folder has not been read yet")
    return None


def readable(context: Context) -> Reason | None:
    """A folder with a protocol.json."""
    if context.view is None:
        return Reason("the folder has not been read yet")
    if context.view.setup is None:
        problem = next(iter(context.view.findings), None)
        return (
            Reason(problem.cause, problem.next_command) if problem is not None else Reason("there is nothing to read")
        )
    return None


def participant(context: Context) -> Reason | None:
    """A folder in which this person is somebody."""
    reason = readable(context)
    if reason is None and context.view is not None and context.view.past is not None:
        return Reason("this is the past; 0 returns to now")
    if reason is None and context.view is not None and context.view.me is None:
        return Reason("say who you are first (w)")
    return reason


def appends(name: str, *cured: str) -> Legal:
    """Legal when `decide` has nothing against this event but what the form itself puts right (`cured` codes)."""

    def legal(context: Context) -> Reason | None:
        reason = participant(context)
        if reason is not None or context.view is None:
            return reason
        option = context.view.options.get(name)
        if option is None:
            schema = context.view.setup.schema if context.view.setup is not None else 1
            return Reason(f"{name} is no event of a schema {schema} collaboration")
        stops = next((item for item in option.reasons if item.code not in cured), None)
        return Reason(stops.cause, stops.next_command) if stops is not None else None

    return legal


def deliverable(context: Context) -> Reason | None:
    """Drafting or revising the primary deliverable, whichever is possible, or a supporting one."""
    reasons = [appends(name)(context) for name in ("deliverable_drafted", "deliverable_revised")]
    return None if None in reasons or _supporting(context) else reasons[0]


def _supporting(context: Context) -> bool:
    """Whether a supporting deliverable may be written now."""
    view = context.view
    declared = view.setup.deliverables if view is not None and view.setup is not None else None
    if view is None or declared is None or participant(context) is not None:
        return False
    return bool({declared.ref(item.file) for item in declared.supporting} & set(view.editable))


def freezes(context: Context) -> Reason | None:
    """The primary deliverable, or a supporting one that is not frozen yet; the form sets the status itself."""
    reason = appends("deliverable_frozen", "deliverable_not_frozen")(context)
    return None if _supporting(context) else reason


def declares(context: Context) -> Reason | None:
    """The owner of a v2 proposal, while it is drafted or revised."""
    reason = participant(context)
    view = context.view
    if reason is not None or view is None or view.me is None:
        return reason
    found = turn_findings(view.snapshot, view.me)
    return Reason(found[0].cause, found[0].next_command) if found else None


def may_edit(context: Context) -> Reason | None:
    """A document that this person's role may edit now (docs/specs/acp.md §6)."""
    reason = participant(context)
    view = context.view
    if reason is not None or view is None:
        return reason
    name = context.document
    if name is None:
        return Reason("open a document first; this tab holds none")
    if name in view.editable:
        return None
    if view.state.terminal:
        return Reason(f"nothing is edited once the collaboration is {view.state.phase}")
    phases = EDITABLE.get(name, DELIVERABLE_PHASES)
    if view.state.phase not in phases:
        allowed = " or ".join(sorted(phases))
        return Reason(f"{name} may be edited in {allowed}; the phase is {view.state.phase}")
    if name not in EDITABLE and view.state.frozen:
        return Reason(f"{name} is frozen")
    editors = ", ".join(view.state.waiting if name == "review.md" else filter(None, (view.state.owner,)))
    return Reason(f"{name} is edited by {editors or 'nobody'} now, not by {view.me}")


def document(context: Context) -> Reason | None:
    """A tab that holds a document."""
    reason = readable(context)
    return reason or (None if context.document is not None else Reason("this tab holds no document"))


def answers(context: Context) -> Reason | None:
    """An event that answers another one."""
    if context.event is None:
        return Reason("no event is selected")
    return None if context.event.reply_to is not None else Reason("this event answers none")


def steps(context: Context) -> Reason | None:
    """A log with an event to step to."""
    reason = readable(context)
    if reason is None and context.view is not None and not context.view.snapshot.events:
        return Reason("the log is empty")
    return reason


def steps_back(context: Context) -> Reason | None:
    """An event before the one that is shown."""
    reason = steps(context)
    past = context.view.past if context.view is not None else None
    return reason or (Reason("this is the first event") if past is not None and past.index == 0 else None)


def in_past(context: Context) -> Reason | None:
    """A folder that is shown as it was."""
    past = context.view.past if context.view is not None else None
    return steps(context) or (None if past is not None else Reason("this is now"))


def has_story(context: Context) -> Reason | None:
    """An event under the cursor, or the decisions on the screen."""
    reason = steps(context)
    if reason is None and context.event is None and context.document != "decisions.md":
        return Reason("select an event of the log, or open decisions.md")
    return reason


def searchable(context: Context) -> Reason | None:
    """A folder that was read; where changes are shown, there must be some."""
    from tui.action import DIFF, STORY

    reason = readable(context)
    if reason is None and context.screen in (DIFF, STORY) and not context.parts:
        return Reason("there is nothing to look through")
    return reason


def several(context: Context) -> Reason | None:
    """More than one part to choose from."""
    return None if context.parts > 1 else Reason("there is no other")


def log_open(context: Context) -> Reason | None:
    """The tab Log."""
    return None if context.log else Reason("open the tab Log first")


CONCLUSION = (
    "conclusion_section_missing",
    "conclusion_outcome_count",
    "conclusion_outcome_blocked",
    "conclusion_placeholder",
    "conclusion_reference_missing",
)
