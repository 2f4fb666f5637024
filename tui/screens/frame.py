"""What every screen of the console has: the header, the footer, the bindings and the context of its actions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget

from core.finding import Finding, Refused
from core.sanitize import cells, inert
from tui.action import ANYWHERE
from tui.actions import ACTIONS, Entry, Keys, footer, split
from tui.legal import Context
from tui.widgets.glyphs import State, glyphs, palette
from tui.widgets.text import fit_str

if TYPE_CHECKING:
    from core.inbox import InboxItem
    from tui.app import ConsoleApp
    from tui.forms.confirm import Deed

MODES = {"live": (State.DONE, "live"), "polling": (State.WAITING, "polling"), "stale": (State.WARN, "stale")}


def bindings(where: str) -> list[BindingType]:
    """Textual bindings of the actions that belong to one screen, or to everywhere."""
    made: list[BindingType] = []
    keys = Keys()
    for action in ACTIONS:
        if where not in action.where or action.own:
            continue
        plain, field = split(keys.of(action))
        call = f"app.act('{action.id}')"
        if plain:
            made.append(Binding(",".join(plain), call, action.label, show=False, id=action.id))
        if field:
            # Only keys of everywhere go before a field's own: a field may use the others for itself.
            first = where == ANYWHERE and field != ["escape"]
            made.append(Binding(",".join(field), call, action.label, False, priority=first, id=f"{action.id}.field"))
    return made


def home(path: Path) -> str:
    """A path for people: `~` for the home folder, inert."""
    try:
        return inert("~/" + str(path.relative_to(Path.home()))).rstrip("/.") or "~"
    except (ValueError, RuntimeError):
        return inert(str(path))


class HeaderBar(Widget):
    """`collab · as reader · place` on the left, `● live   3 waiting` on the right."""

    def __init__(self) -> None:
        super().__init__(id="header")
        self._shown: tuple[str, str | None, str, int] = ("", None, "live", 0)

    def show(self, place: str, me: str | None, mode: str, waiting: int) -> None:
        """Redraw when something changed."""
        shown = (place, me, mode, waiting)
        if shown != self._shown:
            self._shown = shown
            self.refresh()

    def render(self) -> Text:
        place, me, mode, waiting = self._shown
        colours, signs = palette(self.app), glyphs(self.app)
        state, word = MODES[mode]
        sign = signs.state(State.MINE) if mode == "live" else signs.state(state)
        style = colours.warn if mode == "stale" else colours.muted
        right = Text.assemble((f"{sign} {word}", style), "   ")
        right.append(f"{waiting:>2} waiting", colours.accent if waiting else colours.muted)
        left = Text.assemble(("collab", colours.strong))
        dot = f" {signs.dot} "
        left.append(dot, colours.muted)
        left.append(f"as {inert(me)}" if me else "as nobody yet", colours.text if me else colours.warn)
        room = self.size.width - right.cell_len - 2
        if place and room - left.cell_len > 8:
            left.append(dot, colours.muted)
            left.append(fit_str(inert(place), room - left.cell_len, signs.cut), colours.muted)
        left.truncate(max(0, room), overflow="ellipsis")
        gap = max(1, self.size.width - left.cell_len - right.cell_len)
        return Text.assemble(left, " " * gap, right, no_wrap=True, end="")


class ActionBar(Widget):
    """The footer: what makes sense now, the next action first. A click on an entry does it."""

    def __init__(self) -> None:
        super().__init__(id="footer")
        self._entries: tuple[tuple[str, str, str], ...] = ()
        self._next: str | None = None
        self._places: list[tuple[int, int, str]] = []

    def show(self, entries: Iterable[Entry]) -> None:
        """Redraw when the entries are others."""
        shown = tuple((entry.key, entry.action.label, entry.action.id) for entry in entries)
        if shown != self._entries:
            self._entries = shown
            self.refresh()

    @property
    def shown(self) -> tuple[str, ...]:
        """The action ids in the footer, as far as they fit."""
        return tuple(name for _, _, name in self._places)

    def render(self) -> Text:
        colours = palette(self.app)
        text = Text(no_wrap=True, end="")
        self._places = []
        for index, (key, label, name) in enumerate(self._fitting()):
            if index:
                text.append("  ")
            start = text.cell_len
            text.append(key, colours.accent if index == 0 else colours.strong)
            text.append(f" {label}", colours.text if index == 0 else colours.muted)
            self._places.append((start, text.cell_len, name))
        return text

    def _fitting(self) -> Sequence[tuple[str, str, str]]:
        """As many entries as fit; help stays, what is least urgent goes."""
        kept = list(self._entries)
        while len(kept) > 2 and sum(cells(f"{key} {label}") + 2 for key, label, _ in kept) - 2 > self.size.width:
            del kept[-3 if kept[-2][2] == "back" and len(kept) > 3 else -2]
        return kept

    def on_click(self, event: events.Click) -> None:
        for start, end, name in self._places:
            if start <= event.x < end:
                self.run_worker(self.app.run_action(f"act('{name}')"), group="act", exit_on_error=False)


class ConsoleScreen(Screen[None]):
    """A screen with header, body and footer. `WHERE` names it in the registry."""

    WHERE: ClassVar[str] = ANYWHERE
    OF_FOLDER: ClassVar[bool] = False
    """Whether it lies above the screen of a folder and goes with it."""

    class Prepared(Message):
        """What an act without a form would do, or why it cannot be done."""

        def __init__(self, deed: Deed | None, findings: Sequence[Finding], said: Callable[[str], None] | None) -> None:
            super().__init__()
            self.deed, self.findings, self.said = deed, tuple(findings), said

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (72, "-medium"), (108, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (20, "-normal"), (32, "-tall")]

    @property
    def console_app(self) -> ConsoleApp:
        return cast("ConsoleApp", self.app)

    def compose(self) -> ComposeResult:
        yield HeaderBar()
        yield from self.body()
        yield ActionBar()

    def body(self) -> ComposeResult:
        """The widgets between header and footer."""
        yield from ()

    def place(self) -> str:
        """Where this screen is, for the header."""
        roots = self.console_app.roots
        return home(roots[0]) + (f" +{len(roots) - 1}" if len(roots) > 1 else "") if roots else ""

    def me(self) -> str | None:
        """Who the person is here."""
        return self.console_app.who.anywhere()

    def context(self) -> Context:
        """What the legality of actions depends on here."""
        return Context(self.WHERE, me=self.me(), waiting=self.console_app.waiting_count)

    def frame(self) -> None:
        """Bring header and footer up to date."""
        if not self.is_mounted:
            return
        app = self.console_app
        self.query_one(HeaderBar).show(self.place(), self.me(), app.mode, app.waiting_count)
        self.query_one(ActionBar).show(footer(self.context(), app.keys))

    def confirm(self, make: Callable[[], Deed], said: Callable[[str], None] | None = None) -> None:
        """Plan an act without a form in a thread, then show its preview; `said` is called once it was done."""

        def prepare() -> None:
            try:
                self.post_message(self.Prepared(make(), (), said))
            except Refused as exc:
                self.post_message(self.Prepared(None, exc.findings, said))

        self.run_worker(prepare, group="act", exclusive=True, thread=True, exit_on_error=False)

    def on_console_screen_prepared(self, message: ConsoleScreen.Prepared) -> None:
        from tui.forms.confirm import ConfirmScreen

        for found in message.findings:
            self.console_app.tell(found)
        if message.deed is not None:
            self.app.push_screen(ConfirmScreen(message.deed), lambda told: self.done(told, message.said))

    def done(self, told: str | None, said: Callable[[str], None] | None = None) -> None:
        """Say what an act came to; None when it was not done."""
        if told is not None:
            self.console_app.notify(told)
            if said is not None:
                said(told)
            self.console_app.reading.look_again()

    def shows(self, item: InboxItem) -> bool:
        """Whether this screen is about an item of the inbox now."""
        return False

    def go_to(self, item: InboxItem) -> None:
        """Show what an item of this screen's system is about, now or once it was read."""

    def listed(self) -> None:
        """The list or the inbox changed."""
        self.frame()

    def tick(self) -> None:
        """A second has passed."""

    def on_screen_resume(self) -> None:
        self.listed()

    def on_mount(self) -> None:
        self.listed()
