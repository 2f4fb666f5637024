"""Every collaboration below the roots: how it stands, who is waited for, since when (docs/specs/console.md §2)."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from core.sanitize import inert
from core.workspace import Item
from tui.action import LIST
from tui.screens.frame import bindings, home
from tui.screens.listing import AGE, STATE, ListScreen, age, standing
from tui.widgets.glyphs import State, glyphs, palette
from tui.widgets.rows import Cell, Column, Heading, Row

GROUPS = ("Your turn", "Waiting for others", "Blocked or broken", "Done")


def group_of(state: State) -> str:
    """The heading under which a state is listed."""
    match state:
        case State.MINE:
            return GROUPS[0]
        case State.FAILED:
            return GROUPS[2]
        case State.DONE:
            return GROUPS[3]
    return GROUPS[1]


class CollaborationsScreen(ListScreen):
    """`2`. Rows keep to their group and path, so they move only when their state changes."""

    WHERE = LIST
    BINDINGS = bindings(LIST)
    COLUMNS = (
        STATE,
        AGE,
        Column("title", min=24, grow=3),
        Column("phase", min=15, max=15, priority=4),
        Column("waiting", min=12, max=28, priority=1),
        Column("path", min=16, max=40, grow=1, priority=5),
        Column("health", min=7, max=9, priority=3),
    )

    def make_rows(self, needle: str) -> list[Row | Heading]:
        groups: dict[str, list[Row]] = {name: [] for name in GROUPS}
        for item in self.console_app.items:
            if needle and needle not in self._haystack(item):
                continue
            state, word = standing(item, self._me_in(item))
            groups[group_of(state)].append(self._row(item, state, word))
        made: list[Row | Heading] = []
        for name, rows in groups.items():
            if rows:
                made.append(Heading(name, len(rows)))
                made += rows
        return made

    def _me_in(self, item: Item) -> str | None:
        return self.console_app.who.of(item.path, item.participants)

    def _haystack(self, item: Item) -> str:
        parts = (item.title, str(item.path), item.phase or "", *item.participants, item.health)
        return "\n".join(parts).casefold()

    def _row(self, item: Item, state: State, word: str) -> Row:
        muted, dash = state is State.DONE, glyphs(self.app).dash
        health = Cell("") if item.health in ("ok", "unreadable", "damaged") else Cell(item.health, State.WARN)
        return Row(
            str(item.path),
            (
                Cell(word, state),
                Cell(age(item.since, self.console_app.clock.now()), role="muted"),
                Cell(item.title),
                Cell((item.phase or dash).replace("_", " "), role="muted"),
                Cell(", ".join(item.waiting_for) or dash, role="muted" if not item.waiting_for else "text"),
                Cell(self.relative(item.path), role="muted"),
                health,
            ),
            dim=muted,
        )

    def relative(self, path: Path) -> str:
        """A path below its root, else the whole one."""
        for root in self.console_app.roots:
            try:
                inside = path.relative_to(root)
            except ValueError:
                continue
            return inert(str(inside)) if str(inside) != "." else home(path)
        return home(path)

    def headline(self) -> Text:
        colours = palette(self.app)
        app = self.console_app
        text = Text.assemble(("Collaborations", colours.strong), no_wrap=True, end="")
        text.append(f"  {len(app.items)}", colours.muted)
        if not app.complete:
            text.append("  reading", colours.muted)
        for problem in app.root_problems:
            text.append(f"  {inert(problem.cause)}", colours.warn)
        return text

    def detail(self, id: str) -> Text:
        item = next((one for one in self.console_app.items if str(one.path) == id), None)
        colours = palette(self.app)
        if item is None:
            return Text("")
        text = Text.assemble((home(item.path), colours.muted), no_wrap=True, overflow="ellipsis")
        last = item.last
        if item.problem is not None:
            text.append(f"\n{inert(item.problem.cause)}", colours.warn)
        elif last is not None:
            said = f"\n{last.seq} {inert(last.name or '')} by {inert(last.actor or '')}: {inert(last.summary or '')}"
            text.append(said, colours.text)
        return text

    def empty(self) -> str:
        if not self.console_app.complete:
            return "Reading the folders"
        roots = ", ".join(home(root) for root in self.console_app.roots) or "no folder"
        return f"No collaboration below {roots} yet.\nPress c to start one, or give other folders: collab DIR"
