"""The right rail: what is next, who is waited for, which gates stand open (docs/specs/console.md §2)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual.widget import Widget

from core.acp.view import Gate, NextAction, Person
from core.clock import duration
from core.sanitize import inert
from tui.widgets.glyphs import State, glyphs, palette
from tui.widgets.text import fit_str, pad, wrap

EVENT_WORDS = {
    "initialized": "begin",
    "proposal_submitted": "submit the proposal",
    "review_submitted": "review",
    "proposal_revised": "revise the proposal",
    "question_classified": "classify the questions",
    "decision_proposed": "propose decisions",
    "decision_accepted": "accept the decisions",
    "readiness_passed": "pass readiness",
    "completed": "conclude",
    "blocked": "block",
    "deliverable_drafted": "draft the deliverable",
    "deliverable_revised": "revise the deliverable",
    "deliverable_frozen": "freeze the deliverable",
}
"""What a person does, in a few words, when the next event is theirs."""

DONE_WORDS = {
    "initialized": "began",
    "proposal_submitted": "submitted",
    "review_submitted": "reviewed",
    "proposal_revised": "revised",
    "question_classified": "classified",
    "decision_proposed": "proposed",
    "decision_accepted": "accepted",
    "readiness_passed": "passed",
    "completed": "concluded",
    "blocked": "blocked",
    "deliverable_drafted": "drafted",
    "deliverable_revised": "revised",
    "deliverable_frozen": "froze",
}
"""What a participant did last, in a word."""


class Panel(Widget):
    """A muted title and lines below it, no frame; as high as its content."""

    TITLE: ClassVar[str] = ""

    DEFAULT_CSS = """
    Panel { height: auto; width: 1fr; padding: 0 1; margin-bottom: 1; }
    """

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._revision = 0

    def lines(self, width: int) -> list[Text]:
        """The content in `width` cells."""
        return []

    def body(self, width: int) -> Text:
        """Title and content."""
        title = Text(fit_str(self.TITLE, width), style=palette(self.app).muted)
        return Text("\n", end="").join([title, *self.lines(max(1, width))])

    def render(self) -> Text:
        return self.body(self.size.width)

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        return self.body(width).plain.count("\n") + 1

    def changed(self) -> None:
        """Draw again, and as high as the content is now."""
        self.refresh(layout=True)


def hanging(glyph: str, style: Style, text: str, width: int, text_style: Style) -> list[Text]:
    """A glyph and inert text wrapped beside it."""
    made = []
    for at, piece in enumerate(wrap(inert(text), max(2, width - 2))):
        line = Text(end="", no_wrap=True)
        line.append(f"{glyph} " if at == 0 else "  ", style)
        line.append(piece, text_style)
        made.append(line)
    return made


class NextPanel(Panel):
    """`Your turn: review`, the keys that do it; otherwise what is waited for."""

    TITLE = "Next"

    _action: NextAction | None = None
    _keys: tuple[tuple[str, str], ...] = ()
    _tone = State.UNKNOWN

    def show(self, action: NextAction, keys: Sequence[tuple[str, str]] = (), tone: State = State.UNKNOWN) -> None:
        """`keys` are (key, label) pairs of what makes sense now, the next action first; `tone` marks what is nobody's
        turn."""
        if (action, tuple(keys), tone) != (self._action, self._keys, self._tone):
            self._action, self._keys, self._tone = action, tuple(keys), tone
            self.changed()

    def lines(self, width: int) -> list[Text]:
        colours, signs = palette(self.app), glyphs(self.app)
        action = self._action
        if action is None:
            return [Text(fit_str("Open a collaboration to see.", width), style=colours.muted)]
        if action.mine:
            word = EVENT_WORDS.get(action.event or "", action.event or "")
            made = hanging(signs.state(State.MINE), colours.accent, f"Your turn: {word}", width, colours.accent)
            made += hanging(" ", colours.muted, action.text, width, colours.muted)
        else:
            text = action.text[:1].upper() + action.text[1:]
            made = hanging(signs.state(self._tone), colours.state(self._tone), text, width, colours.text)
        if self._keys:
            made.append(Text(""))
        size = max((cell_len(key) for key, _ in self._keys), default=0)
        for at, (key, label) in enumerate(self._keys):
            line = Text(end="", no_wrap=True)
            line.append(pad(inert(key), size) + "  ", colours.accent if at == 0 and action.mine else colours.strong)
            line.append(fit_str(inert(label), width - size - 2, signs.cut), colours.text)
            made.append(line)
        return made


class WaitingPanel(Panel):
    """Every participant: waited for and since when, or what they did last."""

    TITLE = "Waiting"

    _people: tuple[Person, ...] = ()
    _me: str | None = None
    _now: datetime | None = None

    def show(self, people: Sequence[Person], me: str | None, now: datetime) -> None:
        """`now` is the moment that ages are counted to."""
        self._people, self._me, self._now = tuple(people), me, now
        self.changed()

    def lines(self, width: int) -> list[Text]:
        colours, signs = palette(self.app), glyphs(self.app)
        if not self._people:
            return [Text(fit_str("No participants are known.", width), style=colours.muted)]
        rows = [(person, *self._row(person)) for person in self._people]
        right = max(cell_len(text) for _, _, text in rows)
        size = max(3, min(max(cell_len(inert(person.id)) for person in self._people), width - right - 4))
        made = []
        for person, state, text in rows:
            line = Text(end="", no_wrap=True)
            line.append(f"{signs.state(state)} ", colours.state(state))
            name = colours.strong if person.id == self._me else colours.text
            line.append(pad(inert(person.id), size) + "  ", name)
            since = colours.state(state) if person.waited_for else colours.muted
            line.append(fit_str(text, width - size - 4), since)
            made.append(line)
        return made

    def _row(self, person: Person) -> tuple[State, str]:
        if person.waited_for:
            age = duration((self._now - person.since).total_seconds()) if self._now and person.since else "waited for"
            return (State.MINE if person.id == self._me else State.WAITING), age
        if not person.did:
            return State.UNKNOWN, "owner" if person.owner else "nothing yet"
        state = State.FAILED if person.did == "blocked" else State.DONE
        return state, DONE_WORDS.get(person.did, inert(person.did))


class GatesPanel(Panel):
    """What must hold before the end: each gate with its glyph, the open ones first in the eye by colour."""

    TITLE = "Gates"

    _gates: tuple[Gate, ...] = ()

    def show(self, gates: Sequence[Gate]) -> None:
        """The gates of `view.gates`."""
        if tuple(gates) != self._gates:
            self._gates = tuple(gates)
            self.changed()

    def lines(self, width: int) -> list[Text]:
        colours, signs = palette(self.app), glyphs(self.app)
        if not self._gates:
            return [Text(fit_str("No gates are known.", width), style=colours.muted)]
        made: list[Text] = []
        for gate in self._gates:
            state = {"done": State.DONE, "failed": State.FAILED, "open": State.UNKNOWN}[gate.state]
            text = colours.muted if gate.state == "done" else colours.text
            made += hanging(signs.state(state), colours.state(state), gate.text, width, text)
        return made
