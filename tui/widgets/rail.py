"""The phases of a collaboration on one line (docs/specs/console.md §2)."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text
from textual.widget import Widget

from core.acp.view import GateState
from core.sanitize import inert
from tui.widgets.glyphs import State, glyphs, palette


class PhaseRail(Widget):
    """`✓ drafting ──● reviewing ──○ revising …`; when it is narrow, phases lose their words, the current one never."""

    DEFAULT_CSS = """
    PhaseRail { height: 1; width: 1fr; padding: 0 1; }
    """

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._path: tuple[tuple[str, GateState], ...] = ()
        self._state = State.LIVE

    def show(self, path: Sequence[tuple[str, GateState]], state: State = State.LIVE) -> None:
        """The phases of `view.phase_path`; `state` is how the current one stands for this person."""
        made = tuple((inert(name), gate) for name, gate in path)
        if (made, state) != (self._path, self._state):
            self._path, self._state = made, state
            self.refresh()

    def states(self) -> list[tuple[str, State, bool]]:
        """(phase, state, whether it is the current one)."""
        made, found = [], False
        for name, gate in self._path:
            if gate == "done":
                made.append((name, State.DONE, False))
            elif gate == "failed":
                made.append((name, State.FAILED, True))
                found = True
            else:
                made.append((name, State.UNKNOWN if found else self._state, not found))
                found = True
        if made and not found:
            made[-1] = (made[-1][0], State.DONE, True)
        return made

    def render(self) -> Text:
        return self.rail(self.size.width)

    def rail(self, width: int) -> Text:
        """The rail in `width` cells: all words, or those nearest to the current phase, or only its own."""
        states = self.states()
        if not states:
            return Text("", end="")
        now = next((at for at, (_, _, current) in enumerate(states) if current), 0)
        order = sorted(range(len(states)), key=lambda at: (abs(at - now), at < now))
        for link in (2, 1):
            if self._width(states, set(order), link) <= width:
                return self._draw(states, set(order), link)
        for count in range(len(order) - 1, 0, -1):
            if self._width(states, set(order[:count]), 1) <= width:
                return self._draw(states, set(order[:count]), 1)
        return self._short(states, now, width)

    def _width(self, states: Sequence[tuple[str, State, bool]], words: set[int], link: int) -> int:
        named = sum(1 + cell_len(states[at][0]) for at in words)
        gaps = sum(link + (1 if at in words else 0) for at in range(len(states) - 1))
        return len(states) + named + gaps

    def _draw(self, states: Sequence[tuple[str, State, bool]], words: set[int], link: int) -> Text:
        colours, signs = palette(self.app), glyphs(self.app)
        made = Text(end="", no_wrap=True)
        for at, (name, state, current) in enumerate(states):
            if at:
                made.append((" " if at - 1 in words else "") + signs.line * link, colours.border)
            style = colours.state(state)
            made.append(signs.state(state), style)
            if at in words:
                word = colours.strong if current else colours.muted
                made.append(f" {name}", colours.failed if state is State.FAILED else word)
        return made

    def _short(self, states: Sequence[tuple[str, State, bool]], now: int, width: int) -> Text:
        colours, signs = palette(self.app), glyphs(self.app)
        name, state, _ = states[now]
        made = Text(end="", no_wrap=True)
        made.append(f"{signs.state(state)} ", colours.state(state))
        made.append(name, colours.failed if state is State.FAILED else colours.strong)
        place = f"  {now + 1}/{len(states)}"
        if made.cell_len + len(place) <= width:
            made.append(place, colours.muted)
        made.truncate(max(0, width), overflow="ellipsis")
        return made
