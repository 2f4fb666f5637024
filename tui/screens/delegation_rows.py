"""The rows of the screen Delegations: each plan, its tasks, their delegations (docs/specs/console.md §2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from core.clock import duration
from core.delegation.axis import Span, span
from core.delegation.desk import PlanView
from core.delegation.view import Row as Delegation
from core.delegation.view import TaskLine, Timeline, roll_up
from tui.screens import delegated
from tui.widgets.glyphs import State
from tui.widgets.rows import Cell, Heading, Row
from tui.widgets.text import aligned

TASK, DELEGATION, PLAN = "task", "delegation", "plan"
LOST = "no task of this contract"
ID_CELLS = 16
"""A task id that is longer than this is whole, too, but nobody is aligned to it."""


@dataclass(frozen=True, slots=True)
class Spot:
    """What a row stands for."""

    kind: str
    path: Path
    name: str


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be shown: a case-folded text that a row must hold, what is open only, where plans have one name."""

    needle: str = ""
    open_only: bool = False
    twice: bool = False


@dataclass(frozen=True)
class Drawn:
    """The rows of a plan, made once for a timeline; only what ages is made again."""

    timeline: Timeline | None
    asked: Asked
    rows: tuple[Row | Heading, ...]
    spots: Mapping[str, Spot]
    spans: Mapping[str, tuple[Span, State]]
    open: frozenset[str]


def row_id(kind: str, path: Path, name: str) -> str:
    """The identity of a row."""
    return f"{kind}:{path}" if kind == PLAN else f"{kind}:{path}\n{name}"


def unread(view: PlanView, asked: Asked) -> Drawn:
    """A plan that cannot be read, or that nobody has made one yet."""
    problem = next(iter(view.findings), None)
    hidden = asked.needle not in view.name.casefold() or (problem is None and asked.open_only)
    name = row_id(PLAN, view.path, view.name)
    state, word = (State.FAILED, "unreadable") if problem is not None else (State.UNKNOWN, "draft")
    said = problem.cause if problem is not None else "no contract yet"
    rows = () if hidden else (Heading(view.name), Row(name, (Cell(word, state), Cell(""), Cell(said))))
    return Drawn(None, asked, rows, {name: Spot(PLAN, view.path, view.name)}, {}, frozenset())


def plan_rows(view: PlanView, timeline: Timeline, asked: Asked) -> Drawn:
    """The rows of one plan: each task, then its delegations."""
    rows: list[Row | Heading] = []
    spots: dict[str, Spot] = {}
    spans: dict[str, tuple[Span, State]] = {}
    opened: set[str] = set()
    of_task: dict[str | None, list[Delegation]] = {}
    for one in timeline.rows:
        of_task.setdefault(one.task, []).append(one)
    known = {task.id for task in timeline.tasks}
    names = aligned([task.id for task in timeline.tasks], ID_CELLS)
    groups: list[tuple[TaskLine | None, list[Delegation]]] = [
        (task, of_task.get(task.id, [])) for task in timeline.tasks
    ]
    groups += [(None, listed) for name, listed in of_task.items() if name not in known]
    for task, listed in groups:
        kept = [one for one in listed if _wanted(one, task, timeline.plan, asked)]
        if not kept and (asked.open_only or not _named(task, timeline.plan, asked)):
            continue
        task_id = task.id if task is not None else ""
        name = row_id(TASK, view.path, task_id)
        spots[name] = Spot(TASK, view.path, task_id)
        rows.append(_task_row(name, task, names.get(task_id, ""), listed, timeline))
        for one in kept:
            name = row_id(DELEGATION, view.path, one.delegation_id)
            spots[name] = Spot(DELEGATION, view.path, one.delegation_id)
            rows.append(_delegation_row(name, one))
            place = span(one)
            if place is not None:
                spans[name] = (place, delegated.standing(one)[0])
                if one.ended_at is None:
                    opened.add(name)
    if rows:
        rows.insert(0, Heading(_title(view, timeline, asked)))
    return Drawn(timeline, asked, tuple(rows), spots, spans, frozenset(opened))


def aged(drawn: Drawn, now: datetime) -> Iterator[Row | Heading]:
    """The rows with the ages of what is open as they are now."""
    seconds = now.timestamp()
    for row in drawn.rows:
        if isinstance(row, Row) and row.id in drawn.open:
            age = duration(max(0, int(seconds - drawn.spans[row.id][0].start)))
            yield replace(row, cells=(row.cells[0], Cell(age, role="muted"), *row.cells[2:]))
        else:
            yield row


def _title(view: PlanView, timeline: Timeline, asked: Asked) -> str:
    said = delegated.rolled(timeline.rolled()) or "nothing delegated"
    where = str(view.path.parent) if asked.twice else ""
    damage = next((item.cause for item in view.findings), "")
    return "  ".join(part for part in (timeline.plan, where, said, damage) if part)


def _named(task: TaskLine | None, plan: str, asked: Asked) -> bool:
    return not asked.needle or (task is not None and asked.needle in f"{plan}\n{task.id}\n{task.title}".casefold())


def _wanted(row: Delegation, task: TaskLine | None, plan: str, asked: Asked) -> bool:
    if asked.open_only and row.shown not in ("open", "open-task-completed"):
        return False
    words = (row.delegation_id, row.via or "", row.kind or "", delegated.standing(row)[1])
    return _named(task, plan, asked) or asked.needle in "\n".join(words).casefold()


def _task_row(name: str, task: TaskLine | None, shown: str, listed: list[Delegation], timeline: Timeline) -> Row:
    state, word = delegated.TASKS[task.status] if task is not None else (State.WARN, "unknown")
    title = f"{shown}  {task.title}" if task is not None else LOST
    refused = sum(item.task == task.id for item in timeline.refusals) if task is not None else 0
    said = ", ".join(filter(None, (delegated.rolled(roll_up(listed)), f"{refused} refused" if refused else "")))
    return Row(name, (Cell(word, state), Cell(""), Cell(title), Cell(""), Cell(said, role="muted")))


def _delegation_row(name: str, row: Delegation) -> Row:
    state, word = delegated.standing(row)
    age = duration(row.age_s) if row.age_s is not None else ""
    return Row(
        name,
        (
            Cell(word, state),
            Cell(age, role="muted"),
            Cell(f"  {row.delegation_id}"),
            Cell(row.via or "", role="muted"),
            Cell(" " * 10),
        ),
    )
