"""A run unfolded: steps as table and timeline, questions, spec, event by event (docs/specs/console.md §2)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from core.clock import local, parse
from core.finding import Finding, Refused
from core.inbox import InboxItem
from core.sanitize import inert
from core.workflow import view
from core.workflow.desk import Workflows
from core.workflow.follow import RunFollower, Unfolded
from core.workflow.model import Entry
from core.workflow.state import Run, Step
from core.workflow.view_history import Lane, lanes, spec_lines
from core.workflow.view_inbox import item_id
from tui.action import RUN
from tui.action_workflow import Picked
from tui.forms.drafts import Drafts
from tui.legal import Context
from tui.screens import workflow_sheets as sheets
from tui.screens.answering import desks, open_answer
from tui.screens.frame import ConsoleScreen, bindings, home
from tui.screens.run_rows import Lines, lane_room
from tui.screens.tabs import Tab, TabStrip
from tui.widgets.glyphs import State, glyphs, palette
from tui.widgets.grid import Grid
from tui.widgets.pane import Pane, Sheet
from tui.widgets.progress import bar
from tui.widgets.text import fit

STEPS, TIMELINE, QUESTIONS, SPEC = "steps", "timeline", "questions", "spec"
PARTS = (STEPS, TIMELINE, QUESTIONS, SPEC)
WIDE = 108


class RunScreen(ConsoleScreen):
    """One run, live, or as it was after one of its events."""

    WHERE = RUN
    BINDINGS = bindings(RUN)

    class Read(Message):
        """The log as it is now, or why it cannot be read."""

        def __init__(self, unfolded: Unfolded | None, findings: Sequence[Finding] = ()) -> None:
            super().__init__()
            self.unfolded, self.findings = unfolded, tuple(findings)

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, RunScreen.Read)

    class Was(Message):
        """The run as it was after an event."""

        def __init__(self, index: int, run: Run | None) -> None:
            super().__init__()
            self.index, self.run = index, run

    def __init__(self, root: Path, run_id: str) -> None:
        super().__init__()
        self.root, self.run_id = root, run_id
        self._follower = RunFollower(root, run_id)
        self._unfolded: Unfolded | None = None
        self._problem = ""
        self._past: Run | None = None
        self._index: int | None = None
        self._part = STEPS
        self._lanes: tuple[object, list[Lane]] = (None, [])
        self._read_seq = -1

    def body(self) -> ComposeResult:
        yield Static(Content(""), id="headline")
        yield Static(Content(""), id="past")
        yield TabStrip()
        with Horizontal(id="work"):
            with Vertical(id="main"):
                yield Grid("Reading the log of this run", id="rows")
                yield Pane(id="report")
            yield Pane(id="spec")

    def on_mount(self) -> None:
        self.query_one("#rows").focus()
        super().on_mount()

    def on_unmount(self) -> None:
        self._follower.close()

    # What is known.

    @property
    def desk(self) -> Workflows | None:
        """The root of this run, as it was last read."""
        return next((one for one in desks(self.console_app) if one.root == self.root), None)

    @property
    def run_now(self) -> Run | None:
        """The run as it is now."""
        return self._unfolded.run if self._unfolded is not None else None

    @property
    def shown_run(self) -> Run | None:
        """What the screen shows: the past while somebody looks at it, else now."""
        return self._past or self.run_now

    @property
    def grid(self) -> Grid:
        return self.query_one(Grid)

    @property
    def _wide(self) -> bool:
        return self.size.width >= WIDE

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts that have a tab: the spec stands beside them where there is room."""
        return PARTS[:-1] if self._wide else PARTS

    def place(self) -> str:
        return home(self.root)

    def asks(self) -> list[Entry]:
        """The question to answer: that under the cursor, else what waits first in this run."""
        desk = self.desk
        if desk is None or self._past is not None:
            return []
        mine = [one for one in desk.open_entries if one.run_id == self.run_id]
        under = self._entry_at_cursor() if self._part == QUESTIONS else None
        if under is not None and any(one.id == under.id for one in mine):
            return [one for one in mine if one.id == under.id]
        return mine[:1]

    def context(self) -> Context:
        run = self.run_now
        over = None
        if run is not None:
            over = run.outcome or ("it was stopped" if run.aborted is not None else None)
        made = Picked(
            asks=len(self.asks()) if self.is_mounted else 0,
            run=self.run_id,
            ended=over,
            roots=1,
            moments=len(self._unfolded.events) if self._unfolded is not None else 0,
            moment=self._index,
        )
        return Context(RUN, me=self.me(), waiting=self.console_app.waiting_count, workflow=made)

    # News.

    def listed(self) -> None:
        """The root changed: read on where this run's log has grown."""
        if not self.is_mounted:
            return
        self.frame()
        desk = self.desk
        row = desk.row(self.run_id) if desk is not None else None
        if row is None or row.seq != self._read_seq:
            self._read_seq = row.seq if row is not None else -1
            self.run_worker(self._read, group="act", thread=True, exit_on_error=False)
        self._draw()

    def _read(self) -> None:
        try:
            self.post_message(self.Read(self._follower.look()))
        except Refused as exc:
            self.post_message(self.Read(None, exc.findings))

    def on_run_screen_read(self, message: RunScreen.Read) -> None:
        self._problem = message.findings[0].cause if message.findings else ""
        if message.unfolded is not None:
            self._unfolded = message.unfolded
        self._draw()
        self.frame()

    def tick(self) -> None:
        if self.run_now is not None and self.run_now.open and self._past is None:
            self._draw_head()
            if self.app.animation_level != "none":
                # What is in flight grows.
                self._lanes = (None, [])
            self.grid.relayout()

    # Drawing.

    def on_resize(self) -> None:
        if self._part == SPEC and self._wide:
            self._part = STEPS
        self._draw()

    def _draw(self) -> None:
        if not self.is_mounted:
            return
        self._draw_head()
        run = self.shown_run
        self.query_one("#spec").display = self._wide
        self.query_one("#spec", Pane).show(self._spec_sheet, keep=True)
        self.query_one(TabStrip).show([self._tab(name) for name in self.parts], self._part)
        if run is None:
            self.grid.set_empty(self._problem or "Reading the log of this run")
            return
        count = {
            STEPS: len(run.steps),
            TIMELINE: len(self._unfolded.moments) if self._unfolded is not None else 0,
            QUESTIONS: len(run.entry_ids),
            SPEC: len(spec_lines(run.spec, run)),
        }[self._part]
        self._lanes = (None, [])
        self.grid.set_empty("Nothing was started yet." if self._part == STEPS else "Nothing was asked.")
        self.grid.show(count, self._row)
        self._draw_detail()

    def _tab(self, name: str) -> Tab:
        run = self.shown_run
        counts = {STEPS: len(run.steps), QUESTIONS: len(run.entry_ids)} if run is not None else {}
        return Tab(name, name.capitalize(), name.capitalize(), str(counts.get(name) or ""))

    def _draw_head(self) -> None:
        colours, signs = palette(self.app), glyphs(self.app)
        run, past = self.shown_run, self.query_one("#past", Static)
        past.display = self._past is not None
        if run is None:
            self.query_one("#headline", Static).update(Text(inert(self.run_id), colours.strong))
            return
        row = view.run_row(run, self.desk.now if self.desk is not None else run.last_at)
        state, word = sheets.OUTCOMES[row.outcome]
        head = Text.assemble((inert(run.workflow), colours.strong), "  ", no_wrap=True, end="")
        head.append(f"{signs.state(state)} {word}  ", colours.state(state))
        head.append_text(bar(row.done, row.total, 16, colours.state(state), colours, signs))
        head.append(f" {row.done}/{row.total}", colours.text)
        if row.in_flight:
            head.append(f"  {row.in_flight} in flight", colours.muted)
        if row.waits:
            head.append(f"  waits: {inert(row.waits)}", colours.text)
        self.query_one("#headline", Static).update(fit(head, max(8, self.size.width - 2), signs.cut))
        if self._index is not None and self._unfolded is not None:
            moment = self._unfolded.moments[self._index]
            line = Text.assemble(
                (f"{signs.state(State.WARN)} as it was after event {moment.seq}", colours.warn), end=""
            )
            clock = local(parse(moment.at), "%H:%M:%S", "--:--:--")
            line.append(f" of {len(self._unfolded.moments)}, {clock}  ", colours.text)
            line.append("0 returns to now  ", colours.strong)
            line.append(inert(moment.text), colours.muted)
            past.update(fit(line, max(8, self.size.width - 2), signs.cut))

    @property
    def _lines(self) -> Lines:
        return Lines(palette(self.app), glyphs(self.app))

    def _row(self, index: int, width: int) -> Text:
        run, unfolded = self.shown_run, self._unfolded
        if run is None or unfolded is None:
            return Text("", end="")
        if self._part == STEPS:
            place = self._lane_of(run, index, lane_room(width))
            return self._lines.step(run.steps[index], place, self._moment(run), width)
        if self._part == TIMELINE:
            later = self._index is not None and index > self._index
            return self._lines.moment(unfolded.moments[index], later, width)
        if self._part == QUESTIONS:
            entry = run.entries.get(run.entry_ids[index])
            return self._lines.question(entry, width) if entry is not None else Text("", end="")
        return self._lines.spec(run)[index]

    def _moment(self, run: Run) -> int:
        """Up to when open steps have lasted: now, or the event that is looked back to."""
        now = self.desk.now if self.desk is not None and self._past is None else run.last_at
        return min(now, run.completed_at or now)

    def _lane_of(self, run: Run, index: int, width: int) -> Lane | None:
        """Where a step lies among the five hundred around it."""
        if not width:
            return None
        first = index // 500 * 500
        key = (first, width, len(run.steps))
        if self._lanes[0] != key:
            now = self._moment(run)
            steps = [run.steps[at] for at in range(first, min(len(run.steps), first + 500))]
            self._lanes = (key, lanes(steps, width, now))
        return self._lanes[1][index - first]

    def _spec_sheet(self, width: int) -> list[Text]:
        run = self.shown_run
        return self._lines.spec_beside(run, width) if run is not None else []

    def _draw_detail(self) -> None:
        self.query_one("#report", Pane).show(self._detail, keep=True)

    def _detail(self, width: int) -> list[Text]:
        colours, signs = palette(self.app), glyphs(self.app)
        made = Sheet(width, colours.muted, colours.text, colours.code)
        run, index, desk = self.shown_run, self.grid.cursor, self.desk
        if run is None or index < 0:
            return made.lines
        if self._part == STEPS and index < len(run.steps):
            self._say_step(made, run.steps[index])
        elif self._part == TIMELINE and self._unfolded is not None and index < len(self._unfolded.events):
            self._lines.say_event(made, self._unfolded.events[index])
        elif self._part == QUESTIONS and desk is not None and (entry := self._entry_at_cursor()) is not None:
            # Only now has answers; of the past the question itself is shown.
            sheets.say_entry(made, desk, desk.world.entry(entry.id) or entry, colours, signs, run)
        return made.lines

    def _entry_at_cursor(self) -> Entry | None:
        run, index = self.shown_run, self.grid.cursor
        if run is None or not 0 <= index < len(run.entry_ids):
            return None
        return run.entries.get(run.entry_ids[index])

    def _say_step(self, made: Sheet, step: Step) -> None:
        code = self.desk.names.cause(step.cause) if self.desk is not None else None
        spawns = self._unfolded.spawns if self._unfolded is not None else {}
        self._lines.say_step(made, step, code, spawns.get((step.place, step.attempt, step.resumes)))

    @on(Grid.Moved)
    def moved(self) -> None:
        self.query_one("#report", Pane).show(self._detail)
        self.frame()

    @on(TabStrip.Changed)
    def tab_clicked(self, event: TabStrip.Changed) -> None:
        self._go_part(event.id)

    def _go_part(self, name: str) -> None:
        self._part = name
        self._draw()
        self.grid.move_cursor(self._first(name))
        self.grid.focus()

    def _first(self, name: str) -> int:
        """Where somebody begins to look: at the last step or event, at the first question that is open."""
        run = self.shown_run
        if name == TIMELINE and self._index is not None:
            return self._index
        if name == QUESTIONS and run is not None:
            opened = (at for at, key in enumerate(run.entry_ids) if key in run.open_entries)
            return next(opened, 0)
        return 0 if name == SPEC else self.grid.line_count - 1

    # Actions.

    def do_run_part(self) -> None:
        known = self.parts
        self._go_part(known[(known.index(self._part) + 1) % len(known)])

    def do_run_back(self) -> None:
        if self._unfolded is None:
            return
        last, here = len(self._unfolded.events) - 1, self.grid.cursor
        if self._index is not None:
            self._step_to(self._index - 1)
        elif self._part == TIMELINE and 0 <= here < last:
            # Somebody who stands on an event wants to see that moment.
            self._step_to(here)
        else:
            self._step_to(max(0, last - 1))

    def do_run_on(self) -> None:
        if self._index is not None:
            self._step_to(self._index + 1)

    def do_run_now(self) -> None:
        self._index = self._past = None
        self._draw()
        self.frame()

    def _step_to(self, index: int) -> None:
        """Show the run as it was after the event at `index`; beyond the last one it is now."""
        if self._unfolded is None or index >= len(self._unfolded.events) - 1:
            self.do_run_now()
            return
        wanted = self._index = max(0, index)

        def read() -> None:
            self.post_message(self.Was(wanted, self._follower.at(wanted)))

        self.run_worker(read, group="past", exclusive=True, thread=True, exit_on_error=False)

    def on_run_screen_was(self, message: RunScreen.Was) -> None:
        if message.index == self._index and message.run is not None:
            self._past = message.run
            self._draw()
            if self._part == TIMELINE:
                self.grid.move_cursor(message.index)
            self.frame()

    def do_answer(self) -> None:
        desk, me, asked = self.desk, self.me(), self.asks()
        if desk is not None and me is not None and asked:
            open_answer(self, desk, asked, me)

    def do_stop_run(self) -> None:
        from tui.forms.workflow import AbortForm

        desk, me, app = self.desk, self.me(), self.console_app
        if desk is not None and me is not None:
            app.clear_notifications()
            form = AbortForm(desk, self.run_id, me, Drafts(app.user_state))
            app.push_screen(form, self.done)

    def do_tick_now(self) -> None:
        from tui.forms.workflow import ticking

        root, clock = self.root, self.console_app.clock
        self.confirm(lambda: ticking(root, clock))

    # The inbox.

    def shows(self, item: InboxItem) -> bool:
        desk = self.desk
        asked = desk.open_entries if desk is not None and item.path == self.root else ()
        return any(one.run_id == self.run_id and item_id(self.root, one.id, one.reminders) == item.id for one in asked)

    def go_to(self, item: InboxItem) -> None:
        """Another item of this system: back to the list, which shows it."""
        if self.shows(item):
            self._go_part(QUESTIONS)
            return
        below = self.app.screen_stack[-2]
        self.app.pop_screen()
        if isinstance(below, ConsoleScreen):
            below.go_to(item)
