"""The conditions of a launch as a field: each met or not, before anything is recorded (docs/specs/console.md §2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from rich.text import Text
from textual.widget import Widget

from core.delegation.rules import Check
from core.sanitize import inert
from tui.forms.fields import Field
from tui.widgets.glyphs import State
from tui.widgets.lines import LineView
from tui.widgets.text import wrap

WORDS: Final[Mapping[str, str]] = {
    "v7": "the plan is of generation v7",
    "grant": "the contract grants agent_delegation",
    "task": "the task is in the contract",
    "started": "the task has started",
    "not-complete": "the task is not complete yet",
    "marker": "the task is parallel_safe, or the delegate only reads",
    "tree": "there is a git work tree to compare afterwards",
    "descriptor": "somebody describes what carries it",
    "transport": "the transport is that of its carrier",
    "ability": "its carrier is enabled and answers here",
    "new-id": "the id is new in this plan",
    "well-formed": "the event is well-formed",
}
"""What a condition asks, by its name in the dry run."""


class ChecksField(Field):
    """Read, not written: it has no value and keeps none in a draft."""

    def __init__(self, key: str, label: str) -> None:
        super().__init__(key, label)
        self._view = ChecksView()

    def control(self) -> Widget:
        return self._view

    def show(self, checks: Sequence[Check], problem: str = "") -> None:
        """These conditions, what is not met first; `problem` when they cannot be judged at all."""
        met = sum(check.met for check in checks)
        self._view.border_subtitle = f"{met} of {len(checks)} met" if checks else ""
        self._view.show(checks, problem)


class ChecksView(LineView):
    """A line a condition, in the order in which a launch asks them, unmet ones first."""

    def __init__(self) -> None:
        super().__init__(empty="Asking …")
        self._checks: tuple[Check, ...] = ()
        self._problem = ""

    def show(self, checks: Sequence[Check], problem: str) -> None:
        self._checks, self._problem = tuple(sorted(checks, key=lambda check: check.met)), problem
        self.resized(self.text_width)
        self.refresh(layout=True)

    def _laid(self, width: int) -> list[Text]:
        colours, made = self.colours, []
        if self._problem:
            made += [Text(piece, colours.failed, end="") for piece in wrap(inert(self._problem), max(8, width))]
        for check in self._checks:
            state, word = (State.DONE, "met") if check.met else (State.FAILED, "not met")
            said = WORDS.get(check.check, check.check) + ("" if check.met else f": {check.cause}")
            for at, piece in enumerate(wrap(inert(said), max(8, width - 10))):
                line = Text(end="", no_wrap=True)
                line.append(f"{self.signs.state(state)} {word:<7} " if at == 0 else " " * 10, colours.state(state))
                line.append(piece, colours.muted if check.met else colours.text)
                made.append(line)
        return made

    def resized(self, width: int) -> None:
        self.set_lines(self._laid(width))

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        return max(3, len(self._laid(max(8, width - self.GUTTER - 1))))
