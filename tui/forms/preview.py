"""What will be written, shown before it is: nothing is appended by one key (docs/specs/console.md §2)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.worker import Worker

from core.acp.store import Appended, Plan
from core.clock import SYSTEM, Clock
from core.finding import Finding, Refused, error
from core.sanitize import inert
from tui.forms.acts import Act, Writable, plan_now
from tui.forms.bar import Bar, Button
from tui.forms.receipt import Moved, Receipt, ReceiptView, moved
from tui.widgets.glyphs import glyphs, palette
from tui.widgets.text import fit

DEAF: Final = 0.3
"""Seconds in which a preview ignores keys: what was typed for the screen before must not append."""

Result = Appended | None
"""What a preview or a form is dismissed with: what was appended, or None when the person went back."""


class Headline(Widget):
    """`What is done` in bold and where, muted; data in it is inert."""

    DEFAULT_CSS = """
    Headline { height: 1; width: 100%; padding: 0 2; }
    """

    def __init__(self, title: str, place: str) -> None:
        super().__init__()
        self._title, self._place = title, place.replace(str(Path.home()), "~", 1) if Path.home() != Path("/") else place

    def render(self) -> Text:
        colours = palette(self.app)
        made = Text.assemble((inert(self._title), colours.strong), ("  " + inert(self._place), colours.muted))
        return fit(made, self.content_size.width, glyphs(self.app).cut)


class PreviewScreen(ModalScreen[Result]):
    """A receipt of an act. Enter appends it if the folder still is as it was shown; Esc goes back.

    When the folder moved, the preview says what moved, plans anew and asks again. Any other refusal is shown with
    its cause and its command, and Enter tries again.
    """

    DEFAULT_CSS = """
    PreviewScreen { align: center middle; background: $background 60%; }
    PreviewScreen > Vertical {
        width: 100%; max-width: 110; height: 100%; max-height: 48;
        background: $surface; padding: 1 0 0 0;
    }
    PreviewScreen.-short > Vertical { padding: 0; }
    PreviewScreen.-short ReceiptView { margin: 0; }
    PreviewScreen ReceiptView { height: 1fr; margin: 1 0 0 0; background: $surface; }
    """

    VERTICAL_BREAKPOINTS = [(0, "-short"), (20, "-normal"), (32, "-tall")]

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "append", "append", id="preview.append"),
        Binding("escape", "back", "back", id="preview.back"),
    ]

    class Planned(Message):
        """A plan was made; `since` is what moved when an earlier one had become outdated."""

        def __init__(self, plan: Plan, since: Moved | None) -> None:
            super().__init__()
            self.plan, self.since = plan, since

    class Failed(Message):
        """Planning or writing was refused. `news`: what moved, when a new plan was refused."""

        def __init__(self, findings: tuple[Finding, ...], planning: bool, news: Moved | None = None) -> None:
            super().__init__()
            self.findings, self.planning, self.news = findings, planning, news

    class Done(Message):
        """The event is in the log."""

        def __init__(self, appended: Appended) -> None:
            super().__init__()
            self.appended = appended

    def __init__(
        self,
        act: Writable,
        plan: Plan | None = None,
        *,
        clock: Clock = SYSTEM,
        monotonic: Callable[[], float] = time.monotonic,
        patience: float = 5.0,
    ) -> None:
        """`plan` is shown as it is; without one the act is planned on the folder as it is now."""
        super().__init__()
        self.act = act
        self.plan = plan
        self._clock, self._monotonic, self._patience = clock, monotonic, patience
        # Not shown yet, and so too new, however long that takes.
        self._shown_at = math.inf
        self._busy = ""

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Headline("Preview", str(self.act.path))
            yield ReceiptView(id="receipt")
            yield Bar()

    def on_mount(self) -> None:
        self._shown_at = self._monotonic()
        # Nothing covers what is about to be written.
        self.app.clear_notifications()
        self.query_one(ReceiptView).focus()
        if self.plan is not None:
            self._show(Receipt(self.plan, self.act.command_line(self.plan)))
        else:
            self._work("Reading …", self._make_plan)

    # Showing.

    def _show(self, receipt: Receipt) -> None:
        self.query_one(ReceiptView).show(receipt)
        self._shown_at = self._monotonic()
        self._busy = ""
        self._listen()

    def _listen(self) -> None:
        """The buttons are greyed as long as keys are ignored."""
        self._frame()
        if self.deaf and self.is_attached:
            self.set_timer(DEAF, self._listen)

    def _frame(self) -> None:
        ready = self.plan is not None and not self._busy and not self.deaf
        back = Button("Esc", "back", "back", enabled=self._busy != "Writing …" and not self.deaf)
        self.query_one(Bar).show((Button("Enter", "append", "append", ready), back), self._busy)

    @property
    def deaf(self) -> bool:
        """Whether this preview is too new to listen to keys."""
        return self._monotonic() - self._shown_at < DEAF

    # Acting.

    def action_append(self) -> None:
        if self.plan is not None and not self._busy and not self.deaf:
            plan = self.plan
            self._work("Writing …", lambda: self._commit(plan))

    def action_back(self) -> None:
        # A write that has begun cannot be called back, so its outcome is awaited.
        if not self.deaf and self._busy != "Writing …":
            self.workers.cancel_group(self, "preview")
            self.dismiss(None)

    def on_bar_pressed(self, message: Bar.Pressed) -> None:
        message.stop()
        if message.action == "append":
            self.action_append()
        else:
            self.action_back()

    # In threads.

    def _work(self, busy: str, call: Callable[[], None]) -> None:
        self._busy = busy
        self._frame()
        self.run_worker(call, name=busy, group="preview", exclusive=True, thread=True, exit_on_error=False)

    def _make_plan(self) -> None:
        try:
            self.post_message(self.Planned(plan_now(self.act, self._clock), None))
        except Refused as exc:
            self.post_message(self.Failed(exc.findings, True))

    def _commit(self, plan: Plan) -> None:
        try:
            self.post_message(self.Done(self.act.commit(self._clock, plan.expectation, self._patience)))
        except Refused as exc:
            if not any(finding.code == "preview_outdated" for finding in exc.findings):
                self.post_message(self.Failed(exc.findings, False))
                return
            self._plan_again(plan)

    def _plan_again(self, old: Plan) -> None:
        from core.acp.reader import require

        news = None
        try:
            snapshot = require(self.act.path)
            news = moved(old.snapshot, snapshot)
            self.post_message(self.Planned(self.act.plan(snapshot, self._clock), news))
        except Refused as exc:
            self.post_message(self.Failed(exc.findings, True, news))

    # From threads.

    def on_preview_screen_planned(self, message: PreviewScreen.Planned) -> None:
        self.plan = message.plan
        self._show(Receipt(message.plan, self.act.command_line(message.plan), news=message.since))

    def on_preview_screen_failed(self, message: PreviewScreen.Failed) -> None:
        if message.planning:
            self.plan = None
        command = self.act.command_line(self.plan) if self.plan is not None else ""
        self._show(Receipt(self.plan, command, message.findings, message.news))

    def on_preview_screen_done(self, message: PreviewScreen.Done) -> None:
        self.dismiss(message.appended)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        event.stop()
        if event.state.name == "ERROR" and event.worker.group == "preview":
            kind = type(event.worker.error).__name__
            cause = f"the preview failed unexpectedly ({kind}: {inert(event.worker.error)}); nothing is lost"
            self.post_message(self.Failed((error("internal_error", cause),), False))


__all__ = ["DEAF", "Act", "Headline", "PreviewScreen", "Result"]
