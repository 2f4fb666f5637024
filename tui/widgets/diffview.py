"""A viewer of what changed in a text, unified or side by side; compared and laid out in a thread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual.binding import BindingType
from textual.message import Message
from textual.worker import Worker, get_current_worker

from core.sanitize import inert
from tui.widgets import sides
from tui.widgets.diff import DiffLine, line_changes, unified, word_changes
from tui.widgets.glyphs import Glyphs, Palette
from tui.widgets.lines import LineView
from tui.widgets.sides import LINES, NUMBERED, Look, Piece, flat
from tui.widgets.text import fit_str

WORDS: Final = 2_000
"""Changed lines whose words are compared."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Two texts under their labels; `why` says, in place of a diff, what is not known of them."""

    name: str
    old: str
    new: str
    since: str
    until: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a thread was asked to lay out; answers to older requests are dropped."""

    token: int
    compared: Compared
    side: bool
    width: int
    colours: Palette
    signs: Glyphs


class DiffView(LineView, inherit_bindings=False):
    """Shows one `Compared`. Only arrows up and down scroll here: left and right belong to the screen."""

    BINDINGS: ClassVar[list[BindingType]] = LineView.BINDINGS

    class Ready(Message):
        """The lines of a diff, and how many lines came and went."""

        def __init__(self, wanted: Wanted, lines: Sequence[Text], added: int, removed: int) -> None:
            super().__init__()
            self.wanted, self.lines, self.added, self.removed = wanted, lines, added, removed

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes, empty="Comparing")
        self.side = False
        """Whether old and new stand side by side."""
        self._compared: Compared | None = None
        self._token = 0
        self._drawn_in: Palette | None = None

    def show(self, compared: Compared) -> None:
        """Show another comparison, from its top."""
        if compared != self._compared:
            self._compared = compared
            self._prepare(top=True)

    def clear(self, empty: str) -> None:
        """Show nothing but a sentence."""
        self._token += 1
        self._compared, self._empty = None, empty
        self.set_lines([])

    def toggle(self) -> None:
        """Side by side, or below each other."""
        self.side = not self.side
        self._prepare(top=True)

    def resized(self, width: int) -> None:
        self._prepare(top=False)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        if self.is_attached and self._compared is not None and self.colours is not self._drawn_in:
            self._prepare(top=False)

    def _prepare(self, top: bool) -> None:
        compared, width = self._compared, self.text_width
        self._token += 1
        if compared is None or width <= 0:
            return
        self._drawn_in = self.colours
        if top:
            self._empty = compared.why or "Comparing"
            self.set_lines([])
            self._go(0)
        if compared.why:
            return
        wanted = Wanted(self._token, compared, self.side, width, self.colours, self.signs)
        self.run_worker(
            lambda: _work(wanted, self), name="diff", group="diff", exclusive=True, thread=True, exit_on_error=False
        )

    def on_diff_view_ready(self, message: DiffView.Ready) -> None:
        """Lines from the thread."""
        if message.wanted.token != self._token:
            message.stop()
            return
        if not message.lines:
            self._empty = f"{message.wanted.compared.name} did not change {message.wanted.compared.since}."
        self.set_lines(list(message.lines))

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        event.stop()
        if event.state.name == "ERROR" and event.worker.group == "diff":
            self.clear(f"These texts could not be compared ({type(event.worker.error).__name__}).")


def _work(wanted: Wanted, view: DiffView) -> None:
    worker = get_current_worker()
    one = wanted.compared
    lay = _side if wanted.side else _unified
    lines: list[Text] = []
    for line in lay(wanted):
        if worker.is_cancelled:
            return
        lines.append(line)
    added, removed = line_changes(one.old, one.new)
    view.post_message(DiffView.Ready(wanted, lines, len(added), removed))


def _unified(wanted: Wanted) -> Iterator[Text]:
    if wanted.compared.old == wanted.compared.new:
        return
    colours, signs = wanted.colours, wanted.signs
    lines = unified(wanted.compared.old, wanted.compared.new, cap=LINES)
    spans = _emphasis(lines)
    digits = sides.digits(wanted.compared.old, wanted.compared.new) if wanted.width >= NUMBERED else 0
    for at, line in enumerate(lines):
        sign, style = {
            "add": ("+", colours.added),
            "remove": (signs.minus, colours.removed),
            "gap": (signs.cut, colours.muted),
        }.get(line.kind, (" ", colours.text))
        number = line.new if line.new is not None else line.old
        laid = sides.pieces(line.text, sign, number, digits, wanted.width)
        yield from _coloured(line.text, laid, spans.get(at, ()), style, colours)


def _emphasis(lines: Sequence[DiffLine]) -> dict[int, Sequence[tuple[int, int]]]:
    """Spans of the changed words, for lines that follow each other as old and new."""
    made: dict[int, Sequence[tuple[int, int]]] = {}
    at, left = 0, WORDS
    while at < len(lines) and left > 0:
        start = at
        while at < len(lines) and lines[at].kind == "remove":
            at += 1
        middle = at
        while at < len(lines) and lines[at].kind == "add":
            at += 1
        for one in range(min(middle - start, at - middle)):
            old, new = flat(lines[start + one].text), flat(lines[middle + one].text)
            made[start + one], made[middle + one] = word_changes(old, new)
            left -= 1
        if at == start:
            at += 1
    return made


def _coloured(
    text: str, laid: Iterable[Piece], spans: Sequence[tuple[int, int]], style: Style, colours: Palette
) -> Iterator[Text]:
    """The pieces of a line, its changed words marked."""
    whole, place = flat(text), 0
    for piece in laid:
        made = Text(end="", no_wrap=True)
        made.append(piece.head, colours.muted)
        made.append(piece.sign, style)
        base = len(made.plain)
        made.append(piece.text, style)
        found = whole.find(piece.text, place)
        place = found if found >= 0 else place
        for start, stop in spans:
            low, high = max(start, place), min(stop, place + len(piece.text))
            if low < high:
                made.stylize(Style(bold=True, underline=True), base + low - place, base + high - place)
        place += len(piece.text)
        yield made


def _side(wanted: Wanted) -> Iterator[Text]:
    one, colours, signs = wanted.compared, wanted.colours, wanted.signs
    look = Look(wanted.width, signs.minus, signs.cut, " | " if signs.ascii else " │ ")
    wall = Text(look.wall, style=colours.border, end="")
    left = WORDS
    for at, row in enumerate(sides.rows(one.old, one.new, look)):
        if at == 0:
            since, until = (
                Text(fit_str(inert(said), look.half, signs.cut), colours.muted, end="")
                for said in (one.since, one.until)
            )
            yield _row([since], [until], 0, look.half, wall)
        if row.said:
            yield Text(row.said, style=colours.muted, end="")
            continue
        pair = row.pair
        gone: Sequence[tuple[int, int]] = ()
        came: Sequence[tuple[int, int]] = ()
        if pair.kind == "change" and left > 0:
            gone, came = word_changes(flat(pair.old or ""), flat(pair.new or ""))
            left -= 1
        same = pair.kind == "same"
        before = list(_coloured(pair.old or "", row.old, gone, colours.text if same else colours.removed, colours))
        after = list(_coloured(pair.new or "", row.new, came, colours.text if same else colours.added, colours))
        for number in range(max(len(before), len(after))):
            yield _row(before, after, number, look.half, wall)


def _row(before: Sequence[Text], after: Sequence[Text], at: int, half: int, wall: Text) -> Text:
    one = before[at] if at < len(before) else Text("", end="")
    other = after[at] if at < len(after) else Text("", end="")
    return Text.assemble(one, " " * max(0, half - cell_len(one.plain)), wall, other, no_wrap=True, end="")


__all__ = ["Compared", "DiffView"]
