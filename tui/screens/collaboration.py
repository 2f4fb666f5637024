"""One collaboration: phases, documents, log, what is next, who is waited for, which gates stand open."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import ContentSwitcher, Static

from core.acp.model import DOCUMENTS, Event
from core.acp.view import phase_path
from core.inbox import InboxItem
from core.sanitize import inert
from tui.action import FOLDER
from tui.actions import BY_ID, entries, footer, next_id
from tui.desk import FolderView
from tui.editing import edit
from tui.forms.drafts import Drafts
from tui.legal import Context
from tui.screens.documents import EMPTY, FIRST, FIRST_FOR, NAMES, widget_id
from tui.screens.find import FindBar
from tui.screens.frame import ActionBar, bindings, home
from tui.screens.panes import (
    DeliverablesPane,
    EventDetail,
    FindingsPane,
    Loading,
    Panels,
    Summary,
    log_problem,
    next_of,
    place_of,
)
from tui.screens.searching import Searching
from tui.screens.stepping import PastBar, Stepping
from tui.screens.tabs import Tab, TabStrip
from tui.widgets.document import Changes, DocumentView
from tui.widgets.glyphs import State, glyphs, palette
from tui.widgets.lines import LineView
from tui.widgets.log import LogView
from tui.widgets.rail import PhaseRail
from tui.widgets.rows import RowList

DELIVERABLES, LOG, FINDINGS, NOW = "deliverables", "log", "findings", "now"


class CollaborationScreen(Searching, Stepping):
    """A folder, live. Everything that it shows comes from one `FolderView`."""

    WHERE = FOLDER
    BINDINGS = bindings(FOLDER)

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self._tab = "proposal.md"
        self._ticks = 0
        self._logs_shown: dict[str, object] = {}

    def body(self) -> ComposeResult:
        yield PhaseRail(id="phases")
        yield Static(Content(""), id="banner")
        yield PastBar()
        yield TabStrip()
        yield Summary()
        with Horizontal(id="work"):
            with Vertical(id="main"):
                with ContentSwitcher(initial="loading", id="panes"):
                    yield Loading()
                    for name in DOCUMENTS:
                        yield DocumentView(id=widget_id(name), classes="framed")
                    yield DeliverablesPane(id=DELIVERABLES)
                    with Vertical(id=LOG):
                        yield LogView(id="whole-log", classes="framed")
                        yield EventDetail()
                    yield FindingsPane(id=FINDINGS)
                    yield Panels(id=NOW)
                yield LogView(id="strip", classes="framed")
            yield Panels(id="rail")
        yield FindBar("find")

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#strip").border_title = Text("Log")
        self.query_one("#whole-log").border_title = Text("Log")
        self.console_app.follow(self.path)
        known = self.console_app.views.get(self.path)
        if known is not None:
            self.show(known)
        else:
            self._show_listed()

    def _show_listed(self) -> None:
        """What the list knows already, until the folder is read."""
        known = (one for one in self.console_app.items if one.kind == "acp" and one.path == self.path)
        item = next(known, None)
        if item is not None and item.state is not None:
            waiting = item.waiting_for
            state = State.MINE if self.me() in waiting else State.WAITING if waiting else State.LIVE
            self.query_one(PhaseRail).show(phase_path(item.state), state)
            self.query_one(Loading).show(item)

    def on_unmount(self) -> None:
        self.console_app.unfollow(self.path)

    # The frame.

    def place(self) -> str:
        return home(self.path)

    def me(self) -> str | None:
        return self.view.me if self.view is not None else self.console_app.who.anywhere()

    def shows(self, item: InboxItem) -> bool:
        return item.kind == "acp" and item.path == self.path

    def context(self) -> Context:
        return Context(
            FOLDER,
            me=self.me(),
            view=self.view,
            selected=self.path,
            document=self.document_name,
            event=self._event(),
            log=self._tab == LOG,
            waiting=self.console_app.waiting_count,
        )

    def _event(self) -> Event | None:
        if not self.is_mounted or self.view is None:
            return None
        return self._log().selected

    @property
    def document_name(self) -> str | None:
        """The document that the current tab holds."""
        if self._tab in NAMES:
            return self._tab
        if self._tab == DELIVERABLES and self.is_mounted:
            return self.query_one(DeliverablesPane).current
        return None

    def frame(self) -> None:
        if self.is_mounted:
            super().frame()
            self.query_one(ActionBar).show(footer(self.context(), self.console_app.keys))

    # News.

    def show(self, view: FolderView) -> None:
        """The folder as it is now."""
        if not self.is_mounted:
            return
        first = self.view is None
        if self.moved_on(view):
            self._draw(view, first)

    def redraw(self) -> None:
        if self.view is not None and self.is_mounted:
            self._draw(self.view, False)
            self._to_moment()

    def at_cursor(self) -> int | None:
        return self._log().index

    def _log(self) -> LogView:
        return self.query_one("#whole-log" if self._tab == LOG else "#strip", LogView)

    def _to_moment(self) -> None:
        """The cursor of the log goes along with the steps."""
        log, view = self._log(), self.view
        if view is not None and view.past is not None:
            log.move_to_event(view.past.index)
        else:
            log.follow()

    def _draw(self, view: FolderView, first: bool) -> None:
        app = self.console_app
        self.query_one(PastBar).show(view.past, app.keys.shown(BY_ID["now"]))
        state = State.MINE if view.my_turn else State.WAITING if view.state.waiting else State.LIVE
        self.query_one(PhaseRail).show(phase_path(view.state), state)
        self._show_banner(view)
        if first:
            self._tab = self._first_tab(view)
        if self._tab not in self._tab_ids():
            self._tab = "proposal.md"
        self._show_tabs()
        self._show_pane(focus=first)
        self._show_panels()
        self.frame()

    def _show_banner(self, view: FolderView) -> None:
        """In the place of the phases: why there is nothing to show of this folder."""
        broken = view.setup is None
        self.set_class(broken, "-broken")
        if broken:
            colours, signs = palette(self.app), glyphs(self.app)
            text = Text.assemble((f"{signs.state(State.FAILED)} ", colours.failed))
            text.append(inert(next_of(view).text), colours.text)
            self.query_one("#banner", Static).update(text)

    def _first_tab(self, view: FolderView) -> str:
        if view.setup is None:
            return FINDINGS
        event = view.next.event if view.next is not None else None
        return FIRST_FOR.get(event or "", FIRST.get(view.state.phase or "", "proposal.md"))

    def _tab_ids(self) -> list[str]:
        declared = self.view.setup.deliverables if self.view is not None and self.view.setup is not None else None
        names = list(NAMES)
        if declared is not None:
            names.insert(1, DELIVERABLES)
        return [*names, LOG, FINDINGS, *([] if self.has_class("-wide") else [NOW])]

    def _show_tabs(self) -> None:
        view = self.view
        if view is None:
            return
        # Errors come first.
        errors = bool(view.findings) and view.findings[0].severity == "error"
        made = []
        for name in self._tab_ids():
            if name in NAMES:
                made.append(Tab(name, *NAMES[name]))
            elif name == DELIVERABLES:
                made.append(Tab(name, "Deliverables", "Deliv"))
            elif name == LOG:
                made.append(Tab(name, "Log", "Log", str(len((self.now or view).snapshot.events))))
            elif name == FINDINGS:
                mark = str(len(view.findings)) if view.findings else ""
                made.append(Tab(name, "Findings", "Find", mark, "failed" if errors else "warn"))
            else:
                made.append(Tab(name, "Now", "Now"))
        self.query_one(TabStrip).show(made, self._tab)

    def _show_pane(self, focus: bool = False) -> None:
        """Bring the current tab's pane up to date and to the front."""
        view = self.view
        if view is None:
            return
        if self._tab in NAMES:
            pane = self.query_one(f"#{widget_id(self._tab)}", DocumentView)
            mark = view.marks.get(self._tab)
            changes = Changes(mark.added, mark.removed, mark.since) if mark is not None else None
            said, wanted = EMPTY[self._tab]
            keys = self.console_app.keys
            hint = "" if view.past is not None else f"{said}: {keys.shown(BY_ID[wanted])}."
            pane.show(view.snapshot.document(self._tab), changes, hint)
            pane.border_title = Text(self._tab)
            title = pane.changes_title
            if title.plain and self._tab in view.editable:
                title = Text.assemble(title, (f" {glyphs(self.app).dot} ", palette(self.app).muted))
            pane.border_subtitle = Text.assemble(
                title, f"{keys.shown(BY_ID['edit'])} edit" if self._tab in view.editable else ""
            )
        elif self._tab == DELIVERABLES:
            self.query_one(DeliverablesPane).show(view)
        elif self._tab == FINDINGS:
            self.query_one(FindingsPane).show(view.findings)
        self._show_log("whole-log" if self._tab == LOG else "strip", view)
        name = widget_id(self._tab) if self._tab in NAMES else self._tab
        switcher = self.query_one(ContentSwitcher)
        changed = switcher.current != name
        switcher.current = name
        self.query_one("#strip").set_class(self._tab == LOG, "-covered")
        if changed or focus:
            self._focus_pane()

    def _show_log(self, name: str, view: FolderView) -> None:
        """Fill the log that can be seen; a long one is not laid out twice."""
        now = self.now or view
        shown = (now.snapshot.mark, now.snapshot.pending, now.about)
        if self._logs_shown.get(name) != shown:
            self._logs_shown[name] = shown
            self.query_one(f"#{name}", LogView).show(now.snapshot.events, now.about)

    def _focus_pane(self) -> None:
        if self.query_one(FindBar).is_open:
            return
        target = self.pane_view()
        if target is not None:
            target.focus()

    def pane_view(self) -> Widget | None:
        """The widget of the current tab that takes the focus and is searched."""
        if self._tab in NAMES:
            return self.query_one(f"#{widget_id(self._tab)}", DocumentView)
        if self._tab == LOG:
            return self.query_one("#whole-log", LogView)
        if self._tab == DELIVERABLES:
            return self.query_one("#deliverable-rows", RowList)
        return self.query_one("#finding-rows", RowList) if self._tab == FINDINGS else self.query_one("#now", Panels)

    def _show_panels(self) -> None:
        view = self.view
        if view is None:
            return
        now = self.console_app.clock.now()
        keys = self._panel_keys()
        for panels in self.query(Panels):
            panels.show(view, keys, now)
        mine = view.my_turn and log_problem(view) is None
        wanted = BY_ID.get(next_id(self.context()) or "") if mine else None
        key = self.console_app.keys.shown(wanted) if wanted is not None else ""
        self.query_one(Summary).show(view, wanted.label if wanted is not None else "", key, now)

    def _panel_keys(self) -> list[tuple[str, str]]:
        """What can be done now, the next action first; what is always possible is left to the footer."""
        context = self.context()
        wanted = next_id(context)
        found = [
            entry
            for entry in entries(context, self.console_app.keys)
            if entry.reason is None and entry.action.event is not None
        ]
        found.sort(key=lambda entry: (entry.action.id != wanted, entry.action.order))
        return [(entry.key, entry.action.label) for entry in found[:4]]

    def tick(self) -> None:
        self._ticks += 1
        if self._ticks % 10 == 0:
            self._show_panels()

    def on_resize(self) -> None:
        # The breakpoint classes are set after this event; the tab `Now` comes and goes with them.
        self.call_after_refresh(self._resized)

    def _resized(self) -> None:
        if self.view is None or not self.is_mounted:
            return
        if self._tab not in self._tab_ids():
            self._tab = "proposal.md"
            self._show_pane()
        self._show_tabs()
        self._show_panels()

    # Tabs.

    def go_tab(self, name: str) -> None:
        """Show a tab."""
        if name in self._tab_ids() and self.view is not None:
            self._tab = name
            self._show_tabs()
            self._show_pane()
            self.frame()

    def _step_tab(self, by: int) -> None:
        names = self._tab_ids()
        at = names.index(self._tab) if self._tab in names else 0
        self.go_tab(names[(at + by) % len(names)])

    def do_next_tab(self) -> None:
        self._step_tab(1)

    def do_previous_tab(self) -> None:
        self._step_tab(-1)

    @on(TabStrip.Changed)
    def tab_clicked(self, event: TabStrip.Changed) -> None:
        self.go_tab(event.id)

    def do_raw(self) -> None:
        view = self.searched()
        if isinstance(view, DocumentView):
            view.toggle_raw()

    def do_validate(self) -> None:
        self.go_tab(FINDINGS)

    # Log.

    @on(LogView.EventSelected)
    def event_moved(self, event: LogView.EventSelected) -> None:
        event.stop()
        if event.view.id == "whole-log":
            self.query_one(EventDetail).show(event.view.details())
        if event.chosen:
            self._open_event(event.view.selected)
        self.frame()

    @on(LogView.NewEvents)
    def news_below(self, event: LogView.NewEvents) -> None:
        event.view.border_subtitle = event.view.notice

    def _open_event(self, event: Event | None) -> None:
        """The document that an event is about; a review's own heading in it."""
        name = event.doc if event is not None else None
        if event is None or name is None:
            return
        if name in NAMES:
            self.go_tab(name)
            if event.name == "review_submitted" and event.seq is not None:
                self.query_one(f"#{widget_id(name)}", DocumentView).find(f"seq {event.seq}")
        elif DELIVERABLES in self._tab_ids():
            self.go_tab(DELIVERABLES)
            self.query_one("#deliverable-rows", RowList).move_to_id(name)

    def do_answered(self) -> None:
        event = self._event()
        if event is None or event.reply_to is None:
            return
        if not self._log().select(event.reply_to):
            self.console_app.notify(f"seq {event.reply_to} is not in the log that is shown")

    @on(RowList.RowChosen, "#finding-rows")
    def finding_chosen(self, event: RowList.RowChosen) -> None:
        """Enter on a finding: to the place that it names."""
        event.stop()
        found = self.query_one(FindingsPane).current
        name, line = place_of(found.where if found is not None else None)
        if name in NAMES:
            self.go_tab(name)
            if line is not None:
                self.query_one(f"#{widget_id(name)}", DocumentView).go_to_source(line)
        elif name == "events.jsonl":
            self.go_tab(LOG)
            if line is not None:
                self.query_one("#whole-log", LogView).move_to_id(str(line))
        elif found is not None and found.next_command:
            self.console_app.notify(f"next: {found.next_command}")

    def searched(self) -> LineView | None:
        if self._tab == DELIVERABLES:
            return self.query_one(DeliverablesPane).document
        target = self.pane_view()
        return target if isinstance(target, LineView) else None

    # Changes and stories.

    def do_diff(self) -> None:
        from tui.screens.changes import DiffScreen

        if self.now is not None:
            until = self.past.past.index if self.past is not None and self.past.past is not None else None
            self.app.push_screen(DiffScreen(self.now, self.document_name, until))

    def do_story(self) -> None:
        from tui.screens.story import open_story

        event = self._event()
        if self.now is not None and self._tab == "decisions.md":
            open_story(self.console_app, self.now, self.query_one("#doc-decisions", DocumentView).document, event)
        elif self.now is not None and event is not None:
            open_story(self.console_app, self.now, None, event)

    # Acts.

    def do_edit(self) -> None:
        name, view = self.document_name, self.view
        if name is not None and view is not None:
            edit(self.console_app, view, name)

    def do_event(self, event: str) -> None:
        """The guided form of an event; the app calls it for every action that has no method of its own."""
        from tui.forms.guided import form_for

        view, app = self.view, self.console_app
        if view is not None and view.me is not None:
            app.open_form(form_for(event)(self.path, view.me, clock=app.clock))

    def do_append(self) -> None:
        from tui.forms.append import AppendForm

        view, app = self.view, self.console_app
        if view is not None and view.me is not None:
            app.open_form(AppendForm(self.path, view.me, clock=app.clock))

    def do_declare(self) -> None:
        from tui.screens.declare import DeclareScreen

        view, app = self.view, self.console_app
        if view is not None and view.me is not None:
            app.clear_notifications()
            app.push_screen(DeclareScreen(self.path, view.me, Drafts(app.user_state), app.clock), self._declared)

    def _declared(self, said: str | None) -> None:
        if said is not None:
            self.console_app.do_reread()
            self.go_tab(DELIVERABLES)
            self.console_app.notify(said)
