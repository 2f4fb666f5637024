"""What will be written, shown before it is, for acts that are no events (docs/specs/console.md §2)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.screen import ModalScreen
from textual.worker import Worker, WorkerState

from core.finding import Finding, Refused, error
from core.sanitize import inert
from tui.forms.bar import Bar, Button
from tui.forms.preview import DEAF, Headline
from tui.forms.problems import Problems
from tui.widgets.glyphs import palette
from tui.widgets.pane import Pane, Sheet
from tui.widgets.text import wrap, wrap_command

OUTDATED = frozenset({"preview_outdated", "head_moved"})
"""Codes of a refusal that says: what was shown is no longer so."""


@dataclass(frozen=True)
class Deed:
    """Something that can be done: what it writes and changes, its command, and the doing itself.

    `do` returns a sentence about what was done, or raises Refused; it runs in a thread. `again` makes the deed anew
    when `do` was refused because something moved since it was shown.
    """

    place: str
    sections: Sequence[tuple[str, Sequence[str]]]
    command: str
    do: Callable[[], str]
    note: str = ""
    again: Callable[[], Deed] | None = None
    verb: str = "write"
    more: Sequence[str] = ()
    """Further commands, when one is not enough to do the same."""


class ConfirmScreen(ModalScreen[str | None]):
    """Enter does it, Esc goes back; keys of the first 300 ms are ignored. Dismissed with what was done, or None.

    When something moved since it was shown, it says what, shows the deed as it would be now, and asks again.
    """

    VERTICAL_BREAKPOINTS = [(0, "-short"), (20, "-normal")]

    DEFAULT_CSS = """
    ConfirmScreen { align: center middle; background: $background 60%; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "write", "write", id="confirm.write"),
        Binding("escape", "back", "back", id="confirm.back"),
    ]

    class Done(Message):
        """It was done, or refused."""

        def __init__(self, said: str | None, findings: Sequence[Finding]) -> None:
            super().__init__()
            self.said, self.findings = said, tuple(findings)

    class Renewed(Message):
        """What was shown is no longer so; this is."""

        def __init__(self, deed: Deed, findings: Sequence[Finding]) -> None:
            super().__init__()
            self.deed, self.findings = deed, tuple(findings)

    def __init__(self, deed: Deed, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._deed, self._monotonic = deed, monotonic
        # Not shown yet, and so too new, however long that takes.
        self._since = math.inf
        self._busy = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="form"):
            yield Headline("Preview", self._deed.place)
            yield Problems()
            yield Pane(id="receipt")
            yield Bar()

    def on_mount(self) -> None:
        self._since = self._monotonic()
        self.app.clear_notifications()
        self._show()
        self.query_one(Pane).focus()
        self._listen()

    def _show(self) -> None:
        self.query_one(Pane).show(lambda width: self.sheet(width).lines)

    def sheet(self, width: int) -> Sheet:
        """The receipt in `width` cells."""
        colours = palette(self.app)
        made = Sheet(width, colours.muted, colours.text, colours.code)
        for title, lines in self._deed.sections:
            made.gap()
            made.title(title)
            for line in lines:
                made.lines += [made.plain(piece) for piece in wrap(inert(line), made.width)]
        made.gap()
        made.title(("The same as commands" if self._deed.more else "The same as a command") + self._deed.note)
        for command in (self._deed.command, *self._deed.more):
            made.lines += [made.plain(piece, code=True) for piece in wrap_command(command, made.width)]
        return made

    @property
    def deaf(self) -> bool:
        """Whether this preview is too new to listen to keys."""
        return self._monotonic() - self._since < DEAF

    def _listen(self) -> None:
        self._frame()
        if self.deaf and self.is_attached:
            self.set_timer(DEAF, self._listen)

    def _frame(self) -> None:
        ready = not self._busy and not self.deaf
        buttons = (Button("Enter", self._deed.verb, "write", ready), Button("Esc", "back", "back", ready))
        self.query_one(Bar).show(buttons, "writing" if self._busy else "")

    def action_write(self) -> None:
        if not self._busy and not self.deaf:
            self._busy = True
            self._frame()
            self.run_worker(self._write, group="confirm", thread=True, exit_on_error=False)

    def _write(self) -> None:
        try:
            self.post_message(self.Done(self._deed.do(), ()))
        except Refused as exc:
            self._refused(exc.findings)

    def _refused(self, findings: Sequence[Finding]) -> None:
        again = self._deed.again
        if again is None or not any(item.code in OUTDATED for item in findings):
            self.post_message(self.Done(None, findings))
            return
        try:
            self.post_message(self.Renewed(again(), findings))
        except Refused as exc:
            self.post_message(self.Done(None, exc.findings))

    def on_confirm_screen_renewed(self, message: ConfirmScreen.Renewed) -> None:
        self._deed, self._busy, self._since = message.deed, False, self._monotonic()
        self.query_one(Problems).show(message.findings)
        self._show()
        self._listen()

    def on_confirm_screen_done(self, message: ConfirmScreen.Done) -> None:
        self._busy = False
        if message.said is None:
            self.query_one(Problems).show(message.findings)
            self._frame()
        else:
            self.dismiss(message.said)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        event.stop()
        if event.state is WorkerState.ERROR and event.worker.group == "confirm":
            kind = type(event.worker.error).__name__
            cause = (
                f"the preview failed unexpectedly ({kind}: {inert(event.worker.error)}); look again before you retry"
            )
            self.post_message(self.Done(None, (error("internal_error", cause),)))

    def action_back(self) -> None:
        if not self._busy and not self.deaf:
            self.dismiss(None)

    def on_bar_pressed(self, message: Bar.Pressed) -> None:
        message.stop()
        self.run_worker(self.run_action(message.action), group="bar", exit_on_error=False)
