"""What is known about a delegation, a task or a plan, as lines (docs/specs/console.md §2, Delegations)."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from datetime import datetime

from core.clock import duration
from core.delegation.desk import PlanView
from core.delegation.view import CLAIM, Result, RollUp, Row, TaskLine, Timeline
from tui.when import when
from tui.widgets.glyphs import Glyphs, Palette, State
from tui.widgets.pane import Sheet

STATES = {
    "open": (State.LIVE, "open"),
    "open-task-completed": (State.WARN, "left open"),
    "completed": (State.WAITING, "completed"),
    "failed": (State.FAILED, "failed"),
    "cancelled": (State.UNKNOWN, "cancelled"),
    "disordered": (State.WARN, "disordered"),
}
TASKS = {
    "pending": (State.UNKNOWN, "pending"),
    "in_progress": (State.LIVE, "in progress"),
    "completed": (State.DONE, "complete"),
}
RESULTS: dict[Result, str] = {
    "none": "none was named",
    "unhashed": "it was no file when it was collected, so nothing can be compared",
    "matches": "it still is what was collected",
    "changed": "it is NOT what was collected: it was changed since",
    "missing": "it is gone",
}
FINDINGS = {
    "delegation-no-launch": "it ends before or without a launch",
    "delegation-relaunched": "it is launched a second time",
    "delegation-second-end": "it ends a second time",
    "delegation-drift": "its task, transport or via differs from the launch",
    "delegation-unlawful": "the contract did not allow this launch",
    "clock-backwards": "it ended before it began: a clock ran backwards",
}


def standing(row: Row) -> tuple[State, str]:
    """State and word; a completed one is only a claim until a gate has observed it."""
    if row.shown == "completed" and row.observed_by:
        return State.DONE, "observed"
    return STATES[row.shown]


def rolled(made: RollUp) -> str:
    """`2 open, 5 completed, 1 failed`, without what there is none of."""
    names = ("open", "completed", "failed", "cancelled", "disordered")
    parts = [f"{getattr(made, name)} {name}" for name in names if getattr(made, name)]
    if made.claims:
        parts.append(f"{made.claims} not observed")
    return ", ".join(parts)


def say_delegation(
    made: Sheet,
    view: PlanView,
    shown: Timeline,
    row: Row,
    result: Result | None,
    age: int | None,
    now: datetime,
    colours: Palette,
) -> None:
    """A delegation: first what it is worth, then how it was carried, then what was refused meanwhile."""
    word = STATES[row.shown][1]
    made.put("delegate", row.delegation_id, colours.strong)
    since = f" for {duration(age)}" if age is not None and row.ended_at is None else ""
    took = f" after {duration(age)}" if age is not None and row.ended_at is not None else ""
    made.put("state", f"{word}{since}{took}")
    for finding in row.findings:
        made.put("finding", FINDINGS.get(finding, finding), colours.warn)
    if row.shown == "completed":
        observed = ", ".join(f"seq {seq}" for seq in row.observed_by)
        made.put("evidence", f"observed by a gate at {observed}" if observed else CLAIM, colours.strong)
    if row.ended_seq is not None and row.ended_seq in view.reasons:
        made.put("because", view.reasons[row.ended_seq])
    if row.ended_seq is not None and row.ended_seq in view.codes:
        made.put("code", view.codes[row.ended_seq], colours.failed)
    path = f"{row.result_path}: " if row.result_path else ""
    if result is not None:
        made.put("result", path + RESULTS[result], colours.warn if result in ("changed", "missing") else None)
    elif row.result_path:
        made.put("result", row.result_path)
    if row.result_digest:
        made.put("", row.result_digest)
    made.put("carried by", f"{row.via or '?'}, {row.transport or '?'}")
    parts = ((row.kind, "kind"), (row.profile, "profile"), (row.target, "target"))
    agent = [f"{name} {value}" for value, name in parts if value]
    if agent:
        made.put("agent", ", ".join(agent))
    made.put("worktree", "none: it may only read" if row.read_only else row.worktree or "not said")
    made.put("prompt", row.prompt_digest or "no digest")
    launched = when(row.launched_at, now) if row.launched_at else "never"
    ends = [f"launched {launched}" + (f", seq {row.launched_seq}" if row.launched_seq else "")]
    if row.ended_at is not None:
        ends.append(f"ended {when(row.ended_at, now)}, seq {row.ended_seq}")
    made.put("times", ends)
    _say_refusals(made, view, shown, row.refusals, colours)
    if row.ended_at is None and row.launched_at is not None:
        payload = f'{{"delegation_id":"{row.delegation_id}","state":"completed","result_path":"PATH"}}'
        words = ["collab", "ledger", "--plan", str(view.path), "delegate", "collect"]
        made.command("next", shlex.join([*words, "--task", row.task or "T", "--json", payload]))


def _say_refusals(made: Sheet, view: PlanView, shown: Timeline, seqs: Iterable[int], colours: Palette) -> None:
    known = {item.seq: item for item in shown.refusals}
    for seq in seqs:
        item = known.get(seq)
        if item is None:
            continue
        code = f" ({view.codes[seq]})" if seq in view.codes else ""
        who = "" if item.by_helper else "; not the ledger's own word"
        made.put("refused", f"seq {seq}, {item.op}: {item.reason}{code}{who}", colours.failed)


def say_task(made: Sheet, view: PlanView, shown: Timeline, task: TaskLine, colours: Palette, signs: Glyphs) -> None:
    """A task: what is missing of it, what counts for it, what was refused."""
    made.put("task", f"{task.id}  {task.title}", colours.strong)
    since = f", started at seq {task.started_seq}" if task.started_seq is not None else ""
    made.put("status", TASKS[task.status][1] + since)
    made.put("delegates", rolled(shown.rolled(task.id)) or "none yet; the task can be done without any")
    marked = "may be delegated with a worktree" if task.parallel_safe else "only to a delegate that reads"
    made.put("parallel", ("parallel_safe: " if task.parallel_safe else "not parallel_safe: ") + marked)
    lines = []
    for item in task.criteria:
        sign = signs.state(State.DONE if item.satisfied else State.UNKNOWN)
        how = f"{item.trust}, seq {item.via_seq}" if item.satisfied else "no accepted evidence yet"
        lines.append(f"{sign} {item.criterion}: {how}")
    made.put("criteria", lines or "none: it is complete once it has started")
    missing = [item.id for item in task.blockers if item.kind != "criterion"]
    if missing:
        made.put("blocked by", missing, colours.warn)
    _say_refusals(made, view, shown, [item.seq for item in shown.refusals if item.task == task.id], colours)


def say_plan(made: Sheet, view: PlanView, colours: Palette) -> None:
    """A plan that cannot be shown, and why."""
    made.put("plan", view.name, colours.strong)
    made.put("folder", str(view.path))
    for found in view.findings:
        made.put(found.severity, f"{found.cause} ({found.code})", colours.warn)
        if found.next_command:
            made.command("next", found.next_command)
    if not view.findings and view.timeline is None:
        made.put("draft", "a folder of markdown; nobody has made a plan of it yet")
        words = ["collab", "ledger", "--plan", str(view.path), "materialize", "--contract", "DRAFT.json"]
        made.command("next", shlex.join(words))


def say_frame(made: Sheet, view: PlanView, shown: Timeline, colours: Palette) -> None:
    """Of which plan this is, at the end of a detail."""
    made.gap()
    made.put("plan", f"{shown.plan}, revision {shown.revision}, {shown.events} events", colours.muted)
    made.put("folder", str(view.path), colours.muted)
    for found in view.findings:
        made.put(found.severity, f"{found.cause} ({found.code})", colours.warn)
