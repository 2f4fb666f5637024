"""What waits for this person, over every folder: three lanes, why me, one next action (docs/specs/console.md §2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from rich.text import Text

from core.inbox import LANES, InboxItem, groups
from core.sanitize import inert
from tui.action import INBOX
from tui.action_workflow import Picked
from tui.actions import BY_ID
from tui.legal import Context
from tui.screens.answering import Asked, asked_by, open_answer
from tui.screens.choose import Choice, ChooseScreen
from tui.screens.frame import bindings
from tui.screens.listing import AGE, ListScreen, age
from tui.widgets.glyphs import State, palette
from tui.widgets.rows import Cell, Column, Heading, Row

LANE_WORDS = {"decide": "Decide", "unblock": "Unblock", "know": "Know"}
FOLD_AT = 2
"""So many items with one cause become one row, until it is unfolded."""

SNOOZES = (("30m", "30 minutes", 30), ("2h", "2 hours", 120), ("8h", "8 hours", 480), ("24h", "a day", 1440))
_FOLDED = "fold:"


class InboxScreen(ListScreen):
    """`1`, the home screen."""

    WHERE = INBOX
    BINDINGS = bindings(INBOX)
    COLUMNS = (
        Column("state", min=11, max=11),
        AGE,
        Column("title", min=20, max=30, grow=1),
        Column("action", min=20, max=24, priority=1),
        Column("who", min=10, max=14, priority=4),
        Column("why", min=12, max=60, grow=2, priority=5),
    )

    def __init__(self) -> None:
        super().__init__()
        self._unfolded: set[str] = set()
        self._folded: dict[str, list[InboxItem]] = {}

    def make_rows(self, needle: str) -> list[Row | Heading]:
        found = [item for item in self.console_app.waiting if not needle or needle in _haystack(item)]
        made: list[Row | Heading] = []
        self._folded = {}
        for lane in LANES:
            mine = [item for item in found if item.lane == lane]
            if not mine:
                continue
            made.append(Heading(LANE_WORDS[lane], len(mine)))
            for cause, items in groups(mine):
                if len(items) < FOLD_AT:
                    made += [self._row(item) for item in items]
                    continue
                self._folded[cause] = items
                made.append(self._folded_row(cause, items))
                if cause in self._unfolded:
                    made += [self._row(item, "  ") for item in items]
        return made

    def _row(self, item: InboxItem, indent: str = "") -> Row:
        state, word = self._standing(item)
        return Row(
            _row_id(item),
            (
                Cell(word, state),
                Cell(age(item.since, self.console_app.clock.now()), role="muted"),
                Cell(indent + item.title),
                Cell(item.action),
                Cell(item.who, role="muted"),
                Cell(item.why, role="muted"),
            ),
        )

    def _folded_row(self, cause: str, items: Sequence[InboxItem]) -> Row:
        state, word = self._standing(items[0])
        names = ", ".join(inert(item.title[:80]) for item in items)
        oldest = age(items[0].since, self.console_app.clock.now())
        sign = "-" if cause in self._unfolded else "+"
        return Row(
            _FOLDED + cause,
            (
                Cell(word, state),
                Cell(oldest, role="muted"),
                Cell(f"{sign} {len(items)}: {names}"),
                Cell(items[0].action),
                Cell("", role="muted"),
                Cell(items[0].why if items[0].lane == "know" else "", role="muted"),
            ),
        )

    def _standing(self, item: InboxItem) -> tuple[State, str]:
        match item.lane:
            case "decide":
                return (State.MINE, "your turn") if self.console_app.is_mine(item) else (State.WAITING, "waiting")
            case "unblock":
                return State.FAILED, "blocked"
        return State.WARN, "look"

    def headline(self) -> Text:
        colours, app = palette(self.app), self.console_app
        text = Text.assemble(("Inbox", colours.strong), no_wrap=True, end="")
        if not app.complete:
            text.append("  reading", colours.muted)
        elif app.who.anywhere() is None and app.items:
            text.append(f"  what waits for anybody; press {self._key('who')} to say who you are", colours.muted)
        elif app.first_time:
            keys = ", ".join(f"{key} {what}" for key, what in self._hints())
            text.append(f"  new here? {keys}", colours.muted)
        for problem in app.root_problems:
            text.append(f"  {inert(problem.cause)}", colours.warn)
        return text

    def _hints(self) -> list[tuple[str, str]]:
        """The three keys that somebody needs first."""
        known = (("open", "opens"), ("next-waiting", "goes to what waits for you"), ("help", "shows every key"))
        return [(self._key(name), what) for name, what in known]

    def _key(self, action: str) -> str:
        return self.console_app.keys.shown(BY_ID[action])

    def detail(self, id: str) -> Text:
        colours = palette(self.app)
        if id.startswith(_FOLDED):
            count = len(self._folded.get(id.removeprefix(_FOLDED), ()))
            text = Text.assemble((f"{count} items share one cause.", colours.text), no_wrap=True, overflow="ellipsis")
            text.append(f"\nenter or {self._key('fold')} unfolds them; each is answered on its own", colours.muted)
            return text
        item = self.item(id)
        if item is None:
            return Text("")
        text = Text.assemble(
            ("why  ", colours.muted), (inert(item.why), colours.text), no_wrap=True, overflow="ellipsis"
        )
        text.append(f"\n{inert(item.command)}", colours.muted)
        return text

    def item(self, id: str) -> InboxItem | None:
        """The item of a row."""
        return next((one for one in self.console_app.waiting if _row_id(one) == id), None)

    def _asked(self) -> Asked | None:
        """The questions of workflows that the current row stands for."""
        row = self.rows.row if self.is_mounted else None
        if row is None:
            return None
        item = self.item(row.id)
        folded = self._folded.get(row.id.removeprefix(_FOLDED), []) if row.id.startswith(_FOLDED) else []
        return asked_by(self.console_app, [item] if item is not None else folded)

    def context(self) -> Context:
        asked = self._asked()
        return replace(super().context(), workflow=Picked(asks=len(asked[1]) if asked is not None else 0))

    def do_answer(self) -> None:
        asked, me = self._asked(), self.me()
        if asked is not None and me is not None:
            open_answer(self, *asked, me)

    def path_of(self, id: str) -> Path | None:
        item = None if id.startswith(_FOLDED) else self.item(id)
        return item.path if item is not None else None

    async def chosen(self, id: str) -> None:
        if id.startswith(_FOLDED):
            self._toggle(id.removeprefix(_FOLDED))
        elif (item := self.item(id)) is not None:
            await self.console_app.open_item(item)

    def _toggle(self, cause: str) -> None:
        self._unfolded ^= {cause}
        self.listed()

    def do_fold(self) -> None:
        row = self.rows.row
        if row is None:
            return
        for cause, items in self._folded.items():
            if row.id == _FOLDED + cause or any(_row_id(item) == row.id for item in items):
                self._toggle(cause)
                self.rows.move_to_id(_FOLDED + cause)
                return
        self.console_app.notify(f"only {FOLD_AT} or more items with one cause fold")

    def do_snooze(self) -> None:
        row = self.rows.row
        item = self.item(row.id) if row is not None else None
        if item is None:
            return
        app = self.console_app

        def hide(choice: str | None) -> None:
            minutes = next((count for name, _, count in SNOOZES if name == choice), None)
            if minutes is not None:
                app.reading.snooze(item.id, app.clock.now() + timedelta(minutes=minutes))

        app.push_screen(ChooseScreen("Snooze for", [Choice(name, text) for name, text, _ in SNOOZES]), hide)

    def empty(self) -> str:
        app = self.console_app
        if not app.complete:
            return "Reading the folders"
        me = app.who.anywhere()
        who = f"for {inert(me)}" if me else "for anybody"
        every, new, keys = self._key("collaborations"), self._key("new"), self._key("help")
        return (
            f"Nothing waits {who}.\n{every} shows every collaboration, {new} starts a new one, {keys} shows every key."
        )


def _row_id(item: InboxItem) -> str:
    """A folder keeps its row whatever happens in it; other things have a row each."""
    return str(item.path) if item.kind == "acp" else item.id


def _haystack(item: InboxItem) -> str:
    return "\n".join((item.title, item.action, item.who, item.why, str(item.path))).casefold()
