"""Lines that are laid out anew for every width: what is known about the current row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rich.style import StyleType
from rich.text import Text

from core.sanitize import inert
from tui.widgets.lines import LineView
from tui.widgets.text import wrap, wrap_command

Make = Callable[[int], Sequence[Text]]


class Pane(LineView):
    """Shows what a function makes of its width."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._make: Make = lambda width: ()

    def show(self, make: Make, keep: bool = False) -> None:
        """Show this from now on, from its beginning; `keep`: it is the same thing again, and stays where it is."""
        self._make = make
        self.set_lines(make(self.text_width))
        if not keep:
            self.scroll_home(animate=False)

    def renew(self, make: Make) -> None:
        """Show this from now on, where it stands: the same thing, with news about it."""
        self._make = make
        self.set_lines(make(self.text_width))

    def resized(self, width: int) -> None:
        self.set_lines(self._make(width))


class Sheet:
    """Builds such lines: muted labels, values that wrap below each other, commands that can be pasted."""

    LABEL = 10

    def __init__(self, width: int, muted: StyleType, text: StyleType, code: StyleType) -> None:
        self.width, self._muted, self._text, self._code = max(12, width), muted, text, code
        self.lines: list[Text] = []

    def gap(self) -> None:
        """A blank line, unless there is nothing above."""
        if self.lines:
            self.lines.append(Text("", end=""))

    def title(self, text: str) -> None:
        """Muted words on lines of their own."""
        self.lines += [Text(piece, self._muted, end="") for piece in wrap(inert(text), self.width)]

    def plain(self, text: str, code: bool = False) -> Text:
        """A line as it stands, inert already."""
        return Text(text, self._code if code else self._text, end="")

    def put(self, label: str, value: str | Iterable[str], style: StyleType | None = None) -> None:
        """`label  value`; a list is one value a line, and spaces at a value's begin indent all its lines."""
        values = [value] if isinstance(value, str) else list(value)
        room = self.width - self.LABEL - 1
        first = True
        for one in values:
            indent = min(len(one) - len(one.lstrip(" ")), room // 2)
            for piece in wrap(inert(one), room - indent):
                made = Text(f"{label if first else '':<{self.LABEL}} ", self._muted, end="")
                made.append(" " * indent + piece, style or self._text)
                self.lines.append(made)
                first = False

    def command(self, label: str, command: str) -> None:
        """A command below its label, whole and ready to be pasted."""
        room = self.width - self.LABEL - 1
        for number, piece in enumerate(wrap_command(command, room)):
            made = Text(f"{label if number == 0 else '':<{self.LABEL}} ", self._muted, end="")
            made.append(piece, self._code)
            self.lines.append(made)
