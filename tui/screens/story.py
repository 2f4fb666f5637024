"""The story of an event or a decision: only what led to it, on one scrubber (docs/specs/console.md §2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from core.acp import story
from core.acp.model import Document, Event
from core.acp.story import Moment, Named
from core.acp.timeline import Timeline, unknown
from core.clock import local, parse
from core.finding import Refused
from core.sanitize import inert
from tui.action import STORY
from tui.desk import FolderView
from tui.legal import Context
from tui.screens.changes import Part, compare
from tui.screens.choose import Choice, ChooseScreen
from tui.screens.find import FindBar
from tui.screens.frame import bindings, home
from tui.screens.searching import Searching
from tui.screens.tabs import Tab, TabStrip
from tui.widgets.diffview import DiffView
from tui.widgets.glyphs import State, glyphs, palette
from tui.widgets.log import STATES
from tui.widgets.text import fit, fit_str

if TYPE_CHECKING:
    from tui.app import ConsoleApp


def open_story(app: ConsoleApp, view: FolderView, decisions: Document | None, event: Event | None) -> None:
    """The story of a decision that the person chooses, else of an event."""
    known = story.named(decisions.text) if decisions is not None else ()

    def chosen(place: str | None) -> None:
        if place is not None:
            app.push_screen(StoryScreen(view, known[int(place)]))

    if len(known) == 1:
        chosen("0")
    elif known:
        choices = [
            Choice(str(at), one.text if one.id == one.text else f"{one.id}  {one.text}") for at, one in enumerate(known)
        ]
        app.push_screen(ChooseScreen("The story of which decision?", choices), chosen)
    elif event is not None:
        at = next(at for at, one in enumerate(view.snapshot.events) if one.line == event.line)
        app.push_screen(StoryScreen(view, at))
    else:
        app.notify("decisions.md holds no decision yet")


class Scrubber(Widget):
    """The entries as marks on a line with their seq below; the current one stands out. A click goes there."""

    class Chosen(Message):
        """An entry was clicked."""

        def __init__(self, place: int) -> None:
            super().__init__()
            self.place = place

    def __init__(self) -> None:
        super().__init__(id="scrubber")
        self._title = ""
        self._moments: tuple[Moment, ...] = ()
        self._current = 0
        self._places: list[tuple[int, int, int]] = []

    def show(self, title: str, moments: Sequence[Moment], current: int) -> None:
        """Draw anew."""
        self._title, self._moments, self._current = title, tuple(moments), current
        self.refresh()

    def render(self) -> Text:
        colours, signs = palette(self.app), glyphs(self.app)
        width = max(8, self.content_size.width)
        moments = self._moments
        count = f"{self._current + 1} of {len(moments)}" if moments else ""
        title = fit_str(inert(self._title), width - len(count) - 2, signs.cut)
        made = Text(title, style=colours.strong, no_wrap=True, end="")
        made.append(" " * max(1, width - made.cell_len - len(count)) + count + "\n", colours.muted)
        self._places = []
        if not moments:
            return made
        step = max(len(str(one.event.seq)) for one in moments) + 2
        room = max(1, width // step)
        first = max(0, min(self._current - room // 2, len(moments) - room))
        marks, numbers = Text(end=""), Text(end="")
        for at in range(first, min(len(moments), first + room)):
            state = State.MINE if at == self._current else STATES.get(moments[at].event.name or "", State.UNKNOWN)
            style = colours.state(state)
            if at > first:
                marks.append(signs.line * (step - 1), colours.border)
            self._places.append((marks.cell_len, marks.cell_len + step, at))
            marks.append(signs.state(state), style)
            seq = str(moments[at].event.seq)
            numbers.append(f"{seq:<{step}}", colours.accent if at == self._current else colours.muted)
        return Text.assemble(made, marks, "\n", numbers, no_wrap=True, end="")

    def on_click(self, event: events.Click) -> None:
        for start, stop, place in self._places:
            if start <= event.x - 1 < stop:
                self.post_message(self.Chosen(place))


class StoryScreen(Searching):
    """One entry at a time: its event, and what it changed in the documents."""

    WHERE = STORY
    OF_FOLDER = True
    BINDINGS = bindings(STORY)

    class Told(Message):
        """The entries of the story, or why there is none."""

        def __init__(self, moments: Sequence[Moment], cause: str = "") -> None:
            super().__init__()
            self.moments, self.cause = tuple(moments), cause

    class Opened(Message):
        """The documents that an entry changed; `cause` when that is unknown."""

        def __init__(self, place: int, parts: Sequence[Part], cause: str = "") -> None:
            super().__init__()
            self.place, self.parts, self.cause = place, tuple(parts), cause

    def __init__(self, view: FolderView, about: int | Named) -> None:
        """`about` is the index of an event, or a decision."""
        super().__init__()
        self.of_view, self.about = view, about
        self.moments: tuple[Moment, ...] = ()
        self.current = 0
        self._parts: tuple[Part, ...] = ()
        self._wanted = ""
        self._told = False

    def body(self) -> ComposeResult:
        yield Scrubber()
        yield Static(Content(""), id="happened")
        yield TabStrip()
        yield DiffView(id="diff", classes="framed")
        yield FindBar("find")

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one(DiffView).focus()
        self.query_one(Scrubber).show(self.title_of(), (), 0)
        view, about, timelines = self.of_view, self.about, self.console_app.timelines

        def tell() -> None:
            try:
                with timelines.of(view) as line:
                    made = story.of_event(line, about) if isinstance(about, int) else story.of_decision(line, about)
                self.post_message(self.Told(made))
            except Refused as exc:
                self.post_message(self.Told((), exc.findings[0].cause))

        self.run_worker(tell, name="story", group="story", exclusive=True, thread=True, exit_on_error=False)

    def title_of(self) -> str:
        """What the story is about."""
        if isinstance(self.about, int):
            event = self.of_view.snapshot.events[self.about]
            return f"The story of seq {event.seq} {event.name}"
        one = self.about
        return f"The story of {one.text}" if one.id == one.text else f"The story of {one.id}: {one.text}"

    def searched(self) -> DiffView:
        return self.query_one(DiffView)

    def pane_view(self) -> DiffView:
        return self.searched()

    def place(self) -> str:
        return home(self.of_view.path)

    def me(self) -> str | None:
        return self.of_view.me

    def context(self) -> Context:
        view = self.of_view
        waiting = self.console_app.waiting_count
        event = self.moments[self.current].event if self.moments else None
        return Context(
            STORY, me=view.me, view=view, selected=view.path, event=event, parts=len(self.moments), waiting=waiting
        )

    # Entries.

    def on_story_screen_told(self, message: StoryScreen.Told) -> None:
        """The story is known: it opens at its end, or at the event that it is about."""
        message.stop()
        self.moments, self._told = message.moments, True
        if not self.moments:
            cause = message.cause or "nothing is known of it"
            self.query_one(DiffView).clear(cause[:1].upper() + cause[1:] + ".")
            return
        places = [at for at, one in enumerate(self.moments) if one.index == self.about]
        self.go(places[0] if places else 0)

    def go(self, place: int) -> None:
        """Show an entry."""
        if not self.moments:
            return
        self.current = max(0, min(place, len(self.moments) - 1))
        moment = self.moments[self.current]
        self.query_one(Scrubber).show(self.title_of(), self.moments, self.current)
        self._happened()
        view, timelines, current = self.of_view, self.console_app.timelines, self.current

        def read() -> None:
            with timelines.of(view) as line:
                self.post_message(self.Opened(current, *_opened(line, moment)))

        self.run_worker(read, name="entry", group="entry", exclusive=True, thread=True, exit_on_error=False)
        self.frame()

    def _happened(self) -> None:
        colours, signs = palette(self.app), glyphs(self.app)
        event = self.moments[self.current].event
        clock = local(parse(event.at), "%H:%M", "--:--")
        state = STATES.get(event.name or "")
        text = Text.assemble(
            (f"{event.seq}  {clock}  ", colours.muted), (inert(event.actor or "?"), colours.text), end=""
        )
        text.append(f"  {inert(event.name or '?')}", colours.state(state) if state else colours.strong)
        if event.reply_to is not None:
            text.append(f"  {signs.reply} {event.reply_to}", colours.muted)
        width = max(10, self.size.width - 2)
        said = fit_str(inert((event.summary or "")[:2000]), 3 * width - 2, signs.cut)
        text = fit(text, width, signs.cut)
        self.query_one("#happened", Static).update(
            Text.assemble(text, "\n", (f"{signs.opening}{said}{signs.closing}", colours.text))
        )

    def on_story_screen_opened(self, message: StoryScreen.Opened) -> None:
        """The changes of an entry are read."""
        message.stop()
        if message.place != self.current:
            return
        self._parts = message.parts
        names = [part.compared.name for part in self._parts]
        if self._wanted not in names:
            self._wanted = names[0] if names else ""
        self._show(message.cause)

    def _show(self, cause: str = "") -> None:
        view = self.query_one(DiffView)
        tabs = [
            Tab(one.compared.name, inert(one.compared.name), inert(one.compared.name), one.mark) for one in self._parts
        ]
        self.query_one(TabStrip).show(tabs, self._wanted)
        shown = next((part for part in self._parts if part.compared.name == self._wanted), None)
        view.border_title = Text(inert(self._wanted))
        if shown is None:
            view.clear(cause or "This event changed no document.")
        else:
            view.show(shown.compared)

    def on_resize(self) -> None:
        if self.moments:
            self._happened()

    # Actions.

    def do_story_on(self) -> None:
        self.go(self.current + 1)

    def do_story_back(self) -> None:
        self.go(self.current - 1)

    @on(Scrubber.Chosen)
    def scrubbed(self, event: Scrubber.Chosen) -> None:
        event.stop()
        self.go(event.place)

    def do_side(self) -> None:
        self.query_one(DiffView).toggle()

    def do_next_tab(self) -> None:
        self._step(1)

    def do_previous_tab(self) -> None:
        self._step(-1)

    def _step(self, by: int) -> None:
        names = [part.compared.name for part in self._parts]
        if names:
            self._wanted = names[(names.index(self._wanted) + by) % len(names)]
            self._show()

    @on(TabStrip.Changed)
    def tab_clicked(self, event: TabStrip.Changed) -> None:
        event.stop()
        self._wanted = event.id
        self._show()

    async def do_then(self) -> None:
        """The whole folder as it was after this entry."""
        from tui.screens.collaboration import CollaborationScreen

        if not self.moments:
            return
        index, app = self.moments[self.current].index, self.console_app
        await app.open_folder(self.of_view.path)
        if isinstance(app.screen, CollaborationScreen):
            app.screen.step_to(index)


def _opened(line: Timeline, moment: Moment) -> tuple[list[Part], str]:
    """The documents that an entry changed, or why that is unknown."""
    if moment.changes is None:
        return [], "What this event changed is unknown: it was not written by this tool."
    seq = moment.event.seq
    parts: list[Part] = []
    for change in moment.changes:
        old = _document(line, change.name, change.before, moment)
        new = _document(line, change.name, change.after, moment)
        part = compare(old, new, f"before seq {seq}", f"seq {seq}")
        if part is not None:
            parts.append(part)
    return parts, ""


def _document(line: Timeline, name: str, digest: str | None, moment: Moment) -> Document:
    if digest is None:
        return Document(name, b"", None)
    data = line.content(name, digest)
    return Document(name, data, digest) if data is not None else unknown(name, moment.event.seq)


__all__ = ["StoryScreen", "open_story"]
