"""The console: one app over many folders (docs/specs/console.md).

The event loop draws and decides nothing about files: a reading thread hands over views, an action becomes a form, a
form becomes an event by the core.
"""

from __future__ import annotations

import inspect
import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

from textual._context import active_message_pump
from textual.binding import BindingType
from textual.css.query import NoMatches
from textual.dom import DOMNode
from textual.message import Message
from textual.notifications import SeverityLevel
from textual.screen import Screen
from textual.worker import Worker, WorkerState

from core.acp.store import Appended
from core.clock import SYSTEM, Clock
from core.evidence import View
from core.finding import Finding, Refused, error
from core.inbox import InboxItem
from core.sanitize import inert, inert_block
from core.state import UserState
from core.workspace import Item
from tui.action import ANYWHERE, Action
from tui.actions import BY_ID, Keys
from tui.ascii import AsciiSigns
from tui.desk import FolderView
from tui.forms.drafts import Drafts
from tui.legal import Reason
from tui.navigation import Navigation
from tui.past import Timelines
from tui.reading import STALE_AFTER, FolderRead, Listed, Looked, Reading, Said
from tui.screens.ask import AskScreen
from tui.screens.choose import Choice, ChooseScreen
from tui.screens.collaboration import CollaborationScreen
from tui.screens.frame import bindings
from tui.screens.help import HelpScreen
from tui.screens.palette import ActionProvider
from tui.settings import Loaded, Who, config_path, keymap_finding, load, no_colour, state_path
from tui.systems import SYSTEMS
from tui.terminal import Transitions, colour_environment, end_with_terminal, kept_title, notice_sequence, title_sequence
from tui.themes import NAMES, theme_name, themes

HINTS = "hints.json"
"""What this person was told once, in their state folder."""

GROUPS = ("reading", "watching", "act", "past", "changes", "story", "entry")
"""Groups of threads whose unexpected end is said."""


class ConsoleApp(Navigation):
    """The console over some roots, for one person."""

    TITLE = "collab"
    CSS_PATH = ["styles/console.tcss"]
    COMMANDS = {ActionProvider}
    BINDINGS: ClassVar[list[BindingType]] = bindings(ANYWHERE)
    MODES = {system.mode: system.screen for system in SYSTEMS}
    DEFAULT_MODE = "inbox"
    NOTIFICATION_TIMEOUT = 6

    def __init__(
        self,
        roots: Sequence[Path],
        me: str | None = None,
        settings: Loaded | None = None,
        *,
        clock: Clock = SYSTEM,
        state: UserState | None = None,
        environ: Mapping[str, str] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        tick: float = 1.0,
    ) -> None:
        environ = os.environ if environ is None else environ
        loaded = load(config_path(environ)) if settings is None else settings
        self.loaded, self.settings = loaded, loaded.settings
        colour = not no_colour(environ) and self.settings.theme != "plain"
        with colour_environment(colour):
            super().__init__(ansi_color=None if colour else True)
        self.roots = tuple(roots)
        self.clock, self.monotonic = clock, monotonic
        self.environ = environ
        self.ascii_glyphs = self.settings.ascii
        self.user_state = UserState(state_path(environ)) if state is None else state
        self.keys = Keys(self.settings.keymap)
        self.problems: tuple[Finding, ...] = (
            *loaded.findings,
            *(keymap_finding(loaded, name, reason) for name, reason in self.keys.problems),
        )
        self.who = Who.gather(me, environ, self.settings.identity, self.user_state)
        self.items: tuple[Item, ...] = ()
        self.waiting: tuple[InboxItem, ...] = ()
        self.waiting_items: list[InboxItem] = []
        self._mine: set[str] = set()
        self.complete = False
        self.root_problems: tuple[Finding, ...] = ()
        self.stores: tuple[View, ...] = ()
        self.views: dict[Path, FolderView] = {}
        self.mode = "live"
        self._watch_mode = "polling"
        self.followed: Counter[Path] = Counter()
        self._rung = Transitions()
        self._last_look = monotonic()
        self.timelines = Timelines()
        open_age = timedelta(minutes=self.settings.delegation_minutes)
        self.reading = Reading(self.roots, self.who, self.user_state, clock, self.post_message, tick, open_age)
        for theme in themes():
            self.register_theme(theme)
        self.theme = theme_name(self.settings.theme if colour else "plain")
        if self.settings.reduced_motion or environ.get("SSH_CONNECTION"):
            self.animation_level = "none"
        self.set_keymap(self.keys.textual())
        self.set_class(self.ascii_glyphs, "-ascii")
        if self.ascii_glyphs:
            self._filters.append(AsciiSigns())
        self.first_time = False

    # Life.

    def on_mount(self) -> None:
        self.run_worker(self.reading.run, "reading", group="reading", thread=True, exit_on_error=False)
        self.run_worker(self.reading.watch, "watching", group="watching", thread=True, exit_on_error=False)
        self.set_interval(1.0, self._heartbeat)
        for problem in self.problems:
            self.tell(problem)
        self.run_worker(self._first_run, "hint", group="hint", thread=True, exit_on_error=False)

    def _first_run(self) -> None:
        """In a thread: whether this person has never been here; from now on they have."""
        if not self.user_state.load(HINTS).get("first"):
            self.user_state.update(HINTS, {"first": True})
            self.call_from_thread(self._hint)

    def _hint(self) -> None:
        self.first_time = True
        for screen in self.console_screens():
            screen.listed()

    def on_unmount(self) -> None:
        self.reading.stop()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A thread that died is said, and the header turns stale; the screens keep what they show."""
        if event.state is WorkerState.ERROR and event.worker.group in GROUPS:
            reason = event.worker.error
            cause = f"{event.worker.group} stopped: {type(reason).__name__}: {reason}"
            self.tell(error("internal_error", cause, None, None))

    def _heartbeat(self) -> None:
        stale = self.monotonic() - self._last_look > STALE_AFTER
        self._set_mode("stale" if stale else self._watch_mode)
        for screen in self.console_screens():
            screen.tick()

    def _set_mode(self, mode: str) -> None:
        if mode != self.mode:
            self.mode = mode
            for screen in self.console_screens():
                screen.frame()

    # News from the reading thread.

    def on_looked(self, message: Looked) -> None:
        self._last_look = self.monotonic()
        self._watch_mode = message.mode
        self._set_mode(message.mode)

    def on_listed(self, message: Listed) -> None:
        first = not self.complete and message.complete
        self.items, self.waiting, self.complete = message.items, message.waiting, message.complete
        self.root_problems, self.stores = message.problems, message.views
        self._count()
        self._ring()
        for screen in self.console_screens():
            screen.listed()
        if first and len(self.items) == 1 and self.items[0].path in self.roots:
            self.run_worker(self.open_folder(self.items[0].path), group="open", exit_on_error=False)

    def on_folder_read(self, message: FolderRead) -> None:
        view = message.view
        if self.followed[view.path] <= 0:
            return
        self.views[view.path] = view
        for screen in self.console_screens():
            if isinstance(screen, CollaborationScreen) and screen.path == view.path:
                screen.show(view)

    def on_said(self, message: Said) -> None:
        self.tell(message.finding)

    def _count(self) -> None:
        """What waits for this person, to decide or to unblock; for somebody unknown nothing does."""
        known = {item.path: item for item in self.items}

        def mine(one: InboxItem) -> bool:
            if one.kind != "acp":
                return self.who.anywhere() is not None
            item = known.get(one.path)
            me = self.who.of(item.path, item.participants) if item is not None else None
            return me is not None and item is not None and (one.lane == "unblock" or me in item.waiting_for)

        self.waiting_items = [one for one in self.waiting if one.lane != "know" and mine(one)]
        self._mine = {one.id for one in self.waiting_items}
        self.title = f"collab · {self.waiting_count} waiting" if self.waiting_items else "collab"
        self._to_terminal(title_sequence(self.title))

    @property
    def waiting_count(self) -> int:
        return len(self.waiting_items)

    def _ring(self) -> None:
        """Once for each thing that begins to wait for me; what waits already at the start rings nothing."""
        mine = {item.id: item for item in self.waiting_items if item.lane == "decide"}
        fresh = self._rung.fresh(mine.keys(), self.complete)
        if fresh and self.settings.bell:
            self.bell()
        if fresh and self.settings.osc9:
            first = next(item for name, item in mine.items() if name in fresh)
            self._to_terminal(notice_sequence(f"collab: your turn: {first.title}"))

    def is_mine(self, item: InboxItem) -> bool:
        """Whether this person is the one that it waits for."""
        return item.id in self._mine

    @property
    def can_suspend(self) -> bool:
        """Whether the terminal can be lent to an editor; a test's driver cannot."""
        return self._driver is not None and self._driver.can_suspend

    def _to_terminal(self, sequence: str) -> None:
        if self._driver is not None and not self.is_headless:
            self._driver.write(sequence)

    # Saying things. Nothing that is said is markup.

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """A toast; its text is data, never markup."""
        super().notify(inert_block(message), title=inert(title), severity=severity, timeout=timeout, markup=False)

    def tell(self, finding: Finding) -> None:
        """A finding as a toast, with the command that helps."""
        text = finding.cause + (f"\nnext: {finding.next_command}" if finding.next_command else "")
        severity: SeverityLevel = "error" if finding.severity == "error" else "warning"
        self.notify(text, severity=severity, timeout=10)

    def refuse(self, action: Action, reason: Reason) -> None:
        """Why an action is not possible now."""
        text = reason.text + (f"\nnext: {reason.command}" if reason.command else "")
        self.notify(text, title=f"{action.label}: not now", severity="warning")

    # Actions.

    async def action_act(self, name: str) -> None:
        """Do an action of the registry, or say why not."""
        action, screen = BY_ID.get(name), self.base
        if action is None or screen is None:
            return
        if ANYWHERE not in action.where and screen.WHERE not in action.where:
            return
        if ANYWHERE not in action.where and self.screen is not screen:
            self.refuse(action, Reason("leave this form first: esc keeps what is typed"))
            return
        reason = action.legal(screen.context())
        if reason is not None:
            self.refuse(action, reason)
            return
        method = f"do_{name.replace('-', '_')}"
        handler = getattr(screen, method, None) or getattr(self, method, None)
        if handler is None and action.event is not None and isinstance(screen, CollaborationScreen):
            screen.do_event(action.event)
            return
        if handler is None and name in self.MODES:
            await self.go(name)
            return
        made = handler() if handler is not None else None
        if inspect.isawaitable(made):
            await made

    def do_quit(self) -> None:
        self.exit(0)

    def do_reread(self) -> None:
        self.reading.look_again()
        self.notify("reading everything again", timeout=2)

    def do_palette(self) -> None:
        self.action_command_palette()

    def do_help(self) -> None:
        if self.base is not None and not isinstance(self.screen, HelpScreen):
            focused = self.screen if self.screen is not self.base else None
            self.push_screen(HelpScreen(self.base.context(), self.keys, self.loaded, self.problems, focused))

    def do_new(self) -> None:
        from tui.screens.new import NewScreen

        root = self.roots[0] if self.roots else Path.cwd()
        screen = NewScreen(root, self.who.anywhere(), Drafts(self.user_state), self.clock)
        self.clear_notifications()
        self.push_screen(screen, self._made)

    async def _made(self, folder: str | None) -> None:
        if folder is not None:
            self.reading.look_again()
            self.notify(f"made {folder}")
            await self.open_folder(Path(folder))

    def do_theme(self) -> None:
        if self.no_color:
            self.notify("NO_COLOR is set, or the theme is plain: there is nothing to choose")
            return
        choices = [Choice(name, name, "in use" if self.theme == theme_name(name) else "") for name in NAMES[:-1]]
        self.push_screen(ChooseScreen("Theme", choices, self.theme.removeprefix("collab-")), self._set_theme)

    def _set_theme(self, name: str | None) -> None:
        if name is not None:
            self.theme = theme_name(name)

    def do_who(self) -> None:
        """Choose among the participants: of the open folder, else of all of them."""
        screen = self.base
        view = screen.context().view if screen is not None else None
        if view is not None and view.participants:
            folder: Path | None = view.path
            waiting = set(view.state.waiting)
            names = list(dict.fromkeys(view.participants))
            notes = {name: "waited for" if name in waiting else "" for name in names}
            now = view.me
            title = "Who are you in this collaboration?"
        else:
            folder, now, title = None, self.who.anywhere(), "Who are you?"
            names = sorted({name for item in self.items for name in item.participants})
            notes = {name: self._part_of(name) for name in names}
        if not names:
            # Workflows have no participants: whoever answers there says a name.
            ask = AskScreen(title, "Name", "as it is recorded with what you do")
            self.push_screen(ask, lambda name: self._become(folder, name.strip() or None if name else None))
            return
        choices = [Choice(name, name, notes[name]) for name in names]
        self.push_screen(ChooseScreen(title, choices, now), lambda name: self._become(folder, name))

    def _part_of(self, name: str) -> str:
        waits = sum(name in item.waiting_for for item in self.items)
        return f"{waits} waiting" if waits else ""

    def _become(self, folder: Path | None, name: str | None) -> None:
        if name is None:
            return
        self.who = self.who.choose(folder, name)
        self._rung.reset()
        self._count()
        self.reading.become(self.who, folder, name)
        for screen in self.console_screens():
            screen.frame()

    def open_form(self, form: Screen[Any]) -> None:
        """Show a form; what it appends is read at once. Toasts that have been seen do not cover it."""
        self.clear_notifications()
        self.push_screen(form, self._appended)

    def _appended(self, result: object) -> None:
        if isinstance(result, Appended) and isinstance(self.base, CollaborationScreen):
            self.reading.touch(self.base.path)
            waiting = ", ".join(result.state.waiting)
            then = f"; now waiting for {waiting}" if waiting else ""
            named = f"; failure code {result.code}" if result.code is not None else ""
            self.notify(f"appended seq {result.event.seq}: {result.event.name}{then}{named}")
            for finding in (*result.mended, *result.warnings):
                self.tell(finding)

    def post_message(self, message: Message) -> bool:
        """Messages of the reading thread may come while the app is closing; then they are dropped."""
        try:
            return super().post_message(message)
        except RuntimeError:
            return False

    # The end.

    def _handle_exception(self, error: Exception) -> None:
        """A screen that is closed before it has begun gets no children, and asks for them all the same: no fault."""
        asking = active_message_pump.get(None)
        nodes = asking.ancestors_with_self if isinstance(asking, DOMNode) else []
        if isinstance(error, NoMatches) and any(node._closing or node._pruning for node in nodes):
            return
        super()._handle_exception(error)

    def _fatal_error(self) -> None:
        """An unexpected fault: its details are kept in a file, a sentence is printed."""
        path = self.user_state.folder / "last-error.txt"
        fault = sys.exc_info()[1] or self._exception
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(traceback.format_exception(fault)), encoding="utf-8")
            kept = f"details are in {path}"
        except OSError:
            kept = "its details could not be kept"
        sentence = f"error: the console met an unexpected {type(fault).__name__}; {kept}. The folders are untouched."
        self._exit_renderables.append(inert(sentence))
        self._close_messages_no_wait()


def run(
    roots: Sequence[Path],
    *,
    me: str | None = None,
    ascii_only: bool = False,
    theme: str | None = None,
    clock: Clock = SYSTEM,
    environ: Mapping[str, str] | None = None,
) -> int:
    """Open the console and return its exit code: 0 after `quit`, 1 after an unexpected fault.

    Raises Refused for a theme that does not exist.
    """
    if theme is not None and theme not in NAMES:
        raise Refused(
            error("usage_wrong", f"there is no theme {theme!r}; there are {', '.join(NAMES)}", None, "--theme")
        )
    environ = os.environ if environ is None else environ
    loaded = load(config_path(environ))
    changes: dict[str, Any] = {}
    if ascii_only:
        changes["ascii"] = True
    if theme is not None:
        changes["theme"] = theme
    settings = replace(loaded.settings, **changes)
    app = ConsoleApp(roots, me, replace(loaded, settings=settings), clock=clock, environ=environ)
    end_with_terminal(sys.__stdin__.fileno() if sys.__stdin__ is not None else 0)
    with kept_title():
        app.run()
    return app.return_code or 0
