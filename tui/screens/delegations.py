"""`3`: what is delegated, live, over every plan: a line of time for each delegate (docs/specs/console.md §2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from core.clock import duration, local, parse
from core.delegation import desk
from core.delegation.axis import axis, span
from core.delegation.desk import PlanView
from core.delegation.view import Result, Results, Timeline, roll_up
from core.finding import Finding, Refused
from core.inbox import InboxItem
from core.sanitize import inert
from tui.action import DELEGATIONS
from tui.action_delegation import Standing
from tui.legal import Context
from tui.screens import delegated
from tui.screens.bars import Bar, BarTable
from tui.screens.delegating import DelegatingScreen, Subject
from tui.screens.delegation_rows import DELEGATION, PLAN, Asked, Drawn, Spot, aged, plan_rows, row_id, unread
from tui.screens.find import FindBar
from tui.screens.frame import bindings
from tui.widgets.glyphs import palette
from tui.widgets.pane import Pane, Sheet
from tui.widgets.rows import Column, Heading, Row


@dataclass(frozen=True)
class Past:
    """A plan as it was after an event; `what` says so."""

    path: Path
    until: int
    what: str
    timeline: Timeline


class DelegationsScreen(DelegatingScreen):
    """One row a delegation, by plan and task; below, what is known about the current one."""

    WHERE = DELEGATIONS
    BINDINGS = bindings(DELEGATIONS)
    COLUMNS = (
        Column("state", min=13, max=13),
        Column("age", min=9, max=9, align="right", priority=3),
        Column("name", min=18, max=36),
        Column("via", min=8, max=12, priority=4),
        Column("bar", min=10, grow=1, priority=2),
    )

    class Looked(Message):
        """Whether a result still is what was collected."""

        def __init__(self, key: tuple[Path, str, str | None], result: Result) -> None:
            super().__init__()
            self.key, self.result = key, result

    class Went(Message):
        """A plan as it was, or why it cannot be shown."""

        def __init__(self, path: Path, past: Past | None, problem: Finding | None) -> None:
            super().__init__()
            self.path, self.past, self.problem = path, past, problem

    def __init__(self) -> None:
        super().__init__()
        self._open_only = False
        self._past: Past | None = None
        self._drawn: dict[Path, Drawn] = {}
        self._spots: dict[str, Spot] = {}
        self._results: dict[tuple[Path, str, str | None], Result] = {}
        self._asked: tuple[Path, str, str | None] | None = None
        self._go_to: str | None = None
        self._said_last: tuple[str | None, list[str]] = (None, [])

    def body(self) -> ComposeResult:
        yield Static(Content(""), id="headline")
        yield BarTable(self.COLUMNS, id="rows")
        yield Pane(id="report")
        yield FindBar("filter")

    def on_mount(self) -> None:
        super().on_mount()
        # Rows that came before there was room for them have moved their heading out of sight.
        self.call_after_refresh(self.rows.scroll_home, animate=False)

    # What is known.

    @property
    def plans(self) -> list[PlanView]:
        """Every plan below the roots."""
        return [view for view in self.console_app.stores if isinstance(view, PlanView)]

    def plan(self, path: Path) -> PlanView | None:
        """The plan of a folder."""
        return next((view for view in self.plans if view.path == path), None)

    def shown(self, view: PlanView) -> Timeline | None:
        """A plan's timeline as it is shown: now, or as it was."""
        if self._past is not None and self._past.path == view.path:
            return self._past.timeline
        return view.timeline

    @property
    def spot(self) -> Spot | None:
        """What the cursor stands on."""
        row = self.rows.row if self.is_mounted else None
        return self._spots.get(row.id) if row is not None else None

    def subject(self) -> Subject | None:
        """Plan, timeline, task and delegation under the cursor; without one the only plan there is."""
        spot = self.spot
        view = self.plan(spot.path) if spot is not None else self.plans[0] if len(self.plans) == 1 else None
        if view is None:
            return None
        timeline = self.shown(view)
        if timeline is None or spot is None or spot.kind == PLAN:
            return view, timeline, None, None
        row = None
        name: str | None = spot.name
        if spot.kind == DELEGATION:
            row = next((one for one in timeline.rows if one.delegation_id == spot.name), None)
            name = row.task if row is not None else None
        task = next((one for one in timeline.tasks if one.id == name), None)
        return view, timeline, task, row

    def context(self) -> Context:
        base = super().context()
        standing: Standing | None = None
        found = self.subject() if self.is_mounted else None
        if found is not None:
            view, timeline, task, row = found
            problem = next((item.cause for item in view.findings), "")
            standing = Standing(
                plan=str(view.path),
                unread="" if timeline is not None else problem or "nobody has made a plan of this folder yet",
                task=task.id if task is not None else None,
                status=task.status if task is not None else "pending",
                gates=len(task.criteria) if task is not None else 0,
                missing=tuple(item.id for item in task.blockers) if task is not None else (),
                delegation=row.delegation_id if row is not None else None,
                state=row.state if row is not None else "",
                claim=row.claim if row is not None else False,
                events=timeline.head_seq if timeline is not None else 0,
                until=self._past.until if self._past is not None and self._past.path == view.path else None,
            )
        return Context(DELEGATIONS, me=self.me(), row=base.row, waiting=base.waiting, plan=standing)

    def path_of(self, id: str) -> Path | None:
        spot = self._spots.get(id)
        return spot.path if spot is not None else None

    # Drawing.

    def make_rows(self, needle: str) -> list[Row | Heading]:
        made: list[Row | Heading] = []
        known, self._drawn, self._spots = self._drawn, {}, {}
        names = [view.name for view in self.plans]
        for view in self.plans:
            if self._past is not None and view.path != self._past.path:
                continue
            timeline, asked = self.shown(view), Asked(needle, self._open_only, names.count(view.name) > 1)
            drawn = known.get(view.path)
            if timeline is None:
                drawn = unread(view, asked)
            elif drawn is None or drawn.timeline is not timeline or drawn.asked != asked:
                drawn = plan_rows(view, timeline, asked)
            self._drawn[view.path] = drawn
            self._spots.update(drawn.spots)
            made += aged(drawn, self._now) if drawn.open else drawn.rows
        return made

    @property
    def _now(self) -> datetime:
        return self._past.timeline.as_of if self._past is not None else self.console_app.clock.now()

    def _bars(self) -> dict[str, Bar]:
        bars: dict[str, Bar] = {}
        for drawn in self._drawn.values():
            line = axis((place for place, _ in drawn.spans.values()), self._now)
            if line is not None:
                bars.update({name: Bar(line, place, state) for name, (place, state) in drawn.spans.items()})
        return bars

    def listed(self) -> None:
        if not self.is_mounted:
            return
        super().listed()
        self.query_one(BarTable).set_bars(self._bars())
        if self._go_to is not None and self.rows.move_to_id(self._go_to):
            self._go_to = None
            self._show_detail()
            self.frame()

    def tick(self) -> None:
        """Bars of what is open grow every second, unless motion is off; then they grow with the ages."""
        moving = self.app.animation_level != "none" and any(drawn.open for drawn in self._drawn.values())
        if moving and self._past is None and self.console_app.screen is self:
            self._age()
        super().tick()

    def _age(self) -> None:
        needle = self.query_one(FindBar).text.strip().casefold()
        made = self.make_rows(needle)
        if made != self._last:
            self._last = made
            self.rows.set_rows(made)
        self.query_one(BarTable).set_bars(self._bars())

    def headline(self) -> Text:
        colours = palette(self.app)
        text = Text.assemble(("Delegations", colours.strong), no_wrap=True, end="")
        if self._past is not None:
            text.append(f"  {inert(self._past.what)}", colours.warn)
            text.append("  , . step  0 now", colours.muted)
            return text
        rows = [row for view in self.plans if view.timeline is not None for row in view.timeline.rows]
        total = roll_up(rows)
        if total.open:
            text.append(f"  {total.open} open", colours.accent)
            if total.oldest_open_s is not None:
                text.append(f", the oldest for {duration(self._oldest())}", colours.muted)
        said = delegated.rolled(replace(total, open=0))
        text.append(f"  {said}" if said else "", colours.muted)
        text.append(f"  {len(self.plans)} plans" if len(self.plans) != 1 else "  1 plan", colours.muted)
        if self._open_only:
            text.append("  open only", colours.muted)
        return text

    def _oldest(self) -> int:
        now = self._now.timestamp()
        starts = [d.spans[name][0].start for d in self._drawn.values() for name in d.open]
        return max(0, int(now - min(starts))) if starts else 0

    def empty(self) -> str:
        if self._open_only and self.plans:
            return "Nothing is delegated and open now.\nPress o for everything, l to launch."
        if not self.console_app.complete:
            return "Looking for plans"
        return (
            "No plan lies below these roots: a folder in .dwp/plans, or one with contract.json and journal.ndjson.\n"
            "collab ledger --plan DIR materialize --contract DRAFT.json makes one; collab demo shows some."
        )

    # The detail.

    def _show_detail(self) -> None:
        self._ask_result()
        self._say()

    def _say(self) -> None:
        """Say it anew only if it is another row or there is news: somebody may be reading it."""
        pane, row = self.query_one("#report", Pane), self.rows.row
        name = row.id if row is not None else None
        said = (name, [palette(self.app).name, *(line.plain for line in self._sheet(pane.text_width))])
        if said[0] != self._said_last[0]:
            pane.show(self._sheet)
        elif said != self._said_last:
            pane.renew(self._sheet)
        self._said_last = said

    def _sheet(self, width: int) -> list[Text]:
        colours = palette(self.app)
        made = Sheet(width, colours.muted, colours.text, colours.code)
        found = self.subject()
        if found is None or self.rows.row is None:
            return made.lines
        view, timeline, task, row = found
        if timeline is None:
            delegated.say_plan(made, view, colours)
            return made.lines
        if row is not None:
            key = (view.path, row.delegation_id, row.result_digest)
            result = self._results.get(key) if self._past is None else row.result
            place = span(row)
            age = row.age_s
            if place is not None and place.end is None:
                age = max(0, int(self._now.timestamp() - place.start))
            delegated.say_delegation(made, view, timeline, row, result, age, self._now, colours)
        elif task is not None:
            delegated.say_task(made, view, timeline, task, colours, self.rows.signs)
        delegated.say_frame(made, view, timeline, colours)
        return made.lines

    def _ask_result(self) -> None:
        """Look in a thread whether the result of the row that was opened still is what was collected."""
        found = self.subject()
        row = found[3] if found is not None else None
        if found is None or row is None or self._past is not None or found[1] is None:
            return
        if row.result_path is None:
            self._results[found[0].path, row.delegation_id, row.result_digest] = "none"
            return
        key = (found[0].path, row.delegation_id, row.result_digest)
        if key == self._asked and key in self._results:
            return
        self._asked = key
        event = {"result_path": row.result_path, "result_digest": row.result_digest}
        place = found[0].place

        def look() -> None:
            self.post_message(self.Looked(key, Results(place).state(event)))

        self.run_worker(look, group="result", exclusive=True, thread=True, exit_on_error=False)

    def on_delegations_screen_looked(self, message: DelegationsScreen.Looked) -> None:
        if self._results.get(message.key) != message.result:
            self._results[message.key] = message.result
            self._say()

    @on(BarTable.RowHighlighted)
    def moved(self) -> None:
        self._asked = None

    async def chosen(self, id: str) -> None:
        """A row is read below."""
        self.query_one("#report", Pane).focus()

    # Looking.

    def do_narrow(self) -> None:
        self.do_filter()

    def do_open_only(self) -> None:
        self._open_only = not self._open_only
        self.listed()
        self.rows.focus()

    def do_read_detail(self) -> None:
        self.query_one("#report", Pane).focus()

    def do_plan_back(self) -> None:
        self._step(-1)

    def do_plan_on(self) -> None:
        self._step(1)

    def do_plan_now(self) -> None:
        self._past = None
        self.listed()

    def _step(self, by: int) -> None:
        found = self.subject()
        if found is None or found[0].timeline is None:
            return
        view = found[0]
        head = view.timeline.head_seq if view.timeline is not None else 0
        now = self._past.until if self._past is not None else head + 1 if by < 0 else head
        until = now + by
        if until > head:
            self.do_plan_now()
            return
        clock = self.console_app.clock

        def go() -> None:
            try:
                timeline, event = desk.was(view.path, max(1, until), clock.now())
            except Refused as exc:
                self.post_message(self.Went(view.path, None, exc.findings[0]))
                return
            name = f"{event.get('type')}" if event is not None else "nothing"
            about = (event.get("delegation_id") or event.get("task") or "") if event is not None else ""
            when = f", {local(parse(event.get('ts')), '%H:%M', '--:--')}" if event is not None else ""
            what = f"as it was after seq {max(1, until)}: {name} {about}".rstrip() + when
            self.post_message(self.Went(view.path, Past(view.path, max(1, until), what, timeline), None))

        self.run_worker(go, group="past", exclusive=True, thread=True, exit_on_error=False)

    def on_delegations_screen_went(self, message: DelegationsScreen.Went) -> None:
        if message.problem is not None:
            self.console_app.tell(message.problem)
            return
        self._past = message.past
        self.listed()

    def shows(self, item: InboxItem) -> bool:
        found = self.subject()
        if found is None or found[0].path != item.path:
            return False
        return item.kind == "plan" or (found[3] is not None and item.title.endswith(f"/ {found[3].delegation_id}"))

    def go_to(self, item: InboxItem) -> None:
        """Show a delegation of the inbox, now or once it was read."""
        self._past, self._open_only = None, False
        name = item.title.rpartition(" / ")[2]
        self._go_to = row_id(PLAN if item.kind == "plan" else DELEGATION, item.path, name)
        self.rows.focus()
        self.listed()

    def do_back(self) -> object:
        if self.query_one("#report", Pane).has_focus:
            self.rows.focus()
            return None
        if self._past is not None:
            self.do_plan_now()
            return None
        return super().do_back()
