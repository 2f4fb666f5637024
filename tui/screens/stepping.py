"""Walking the log on a collaboration's screen: the folder as it was after an event (docs/specs/console.md §2)."""

from __future__ import annotations

from rich.text import Text
from textual.message import Message
from textual.widget import Widget
from textual.worker import get_current_worker

from core.clock import local, parse
from core.sanitize import inert
from tui.desk import FolderView, Past, look_back
from tui.screens.frame import ConsoleScreen
from tui.widgets.glyphs import State, glyphs, palette
from tui.widgets.text import fit


class PastBar(Widget):
    """`as it was after seq 5 · 14:02 · 0 returns to now`; hidden while the screen shows now."""

    def __init__(self) -> None:
        super().__init__(id="past")
        self._past: Past | None = None
        self._key = ""

    def show(self, past: Past | None, key: str) -> None:
        """`key` is the one that returns."""
        self._past, self._key = past, key
        self.display = past is not None
        self.refresh()

    def render(self) -> Text:
        past = self._past
        if past is None:
            return Text("", end="")
        colours, signs = palette(self.app), glyphs(self.app)
        event, dot = past.event, f" {signs.dot} "
        clock = local(parse(event.at), "%H:%M", "--:--")
        made = Text.assemble((f"{signs.state(State.WARN)} ", colours.warn), no_wrap=True, end="")
        made.append(f"as it was after seq {event.seq}", colours.warn)
        made.append(f" of {past.count}{dot}{clock}{dot}", colours.text)
        made.append(f"{self._key} returns to now", colours.strong)
        made.append(f"{dot}{inert(event.actor or '?')} {inert(event.name or '?')}", colours.muted)
        return fit(made, self.content_size.width, signs.cut)


class Stepping(ConsoleScreen):
    """Keeps the folder as it is now, and as it was at the moment that is looked at."""

    class Read(Message):
        """A moment of the past, read by a thread; None when it could not be read."""

        def __init__(self, view: FolderView | None, token: int, cause: str = "") -> None:
            super().__init__()
            self.view, self.token, self.cause = view, token, cause

    def __init__(self) -> None:
        super().__init__()
        self.now: FolderView | None = None
        self.past: FolderView | None = None
        self._index: int | None = None
        self._token = 0

    @property
    def view(self) -> FolderView | None:
        """What the screen shows: the past while somebody looks at it, else now."""
        return self.past or self.now

    def redraw(self) -> None:
        """Show `view`; what a subclass draws."""

    def at_cursor(self) -> int | None:
        """The index of the event under the cursor of the log."""
        return None

    def do_step_back(self) -> None:
        now = self.now
        if now is None:
            return
        last, here = len(now.snapshot.events) - 1, self.at_cursor()
        if self._index is not None:
            self.step_to(self._index - 1)
        elif here is not None and here < last:
            # Somebody who stands on an event wants to see that moment.
            self.step_to(here)
        else:
            self.step_to(max(0, last - 1))

    def do_step_on(self) -> None:
        if self._index is not None:
            self.step_to(self._index + 1)

    def do_now(self) -> None:
        """Back from the past."""
        self._token += 1
        self._index = self.past = None
        self.redraw()

    def step_to(self, index: int) -> None:
        """Show the folder as it was after the event at `index`; beyond the last event it is now."""
        now = self.now
        if now is None or index >= len(now.snapshot.events):
            self.do_now()
            return
        self._index = max(0, index)
        self._token += 1
        token, wanted, timelines = self._token, self._index, self.console_app.timelines

        def read() -> None:
            worker = get_current_worker()
            with timelines.of(now) as line:
                # Keys come faster than a slow disk answers: only the last one counts.
                if not worker.is_cancelled:
                    self.post_message(self.Read(look_back(now, line, wanted), token))

        self.run_worker(read, name="past", group="past", exclusive=True, thread=True, exit_on_error=False)

    def on_stepping_read(self, message: Stepping.Read) -> None:
        """A moment is read."""
        message.stop()
        if message.token == self._token and message.view is not None:
            self.past = message.view
            self.redraw()

    def moved_on(self, now: FolderView) -> bool:
        """Keep the folder as it is now; whether the screen shows it. A rewritten log ends the look into the past."""
        before, self.now = self.now, now
        if self.past is None:
            return True
        events, index = now.snapshot.events, self._index or 0
        shown = self.past.past
        same = shown is not None and index < len(events) and events[index].raw == shown.event.raw
        if before is None or not same:
            self.do_now()
        return False
