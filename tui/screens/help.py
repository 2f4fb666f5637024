"""Every key, from the registry: what it does here, and why not when it is not possible now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from core.finding import Finding
from core.sanitize import inert
from tui.action import ANYWHERE, WHERE_WORDS
from tui.actions import Entry, Keys, entries, show_key
from tui.legal import Context
from tui.screens.frame import home
from tui.settings import Loaded
from tui.widgets.glyphs import Palette, palette
from tui.widgets.lines import LineView
from tui.widgets.text import wrap

_KEYS = 13
_PLAIN = {"Focus Next": "to the next field", "Focus Previous": "to the field before"}
"""What Textual calls its own bindings, in our words."""
_LABEL = 23


class HelpScreen(ModalScreen[None]):
    """Closed by any of its keys; scrolls with the arrows."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,f1", "close", "back", show=False, priority=True)
    ]

    def __init__(
        self,
        context: Context,
        keys: Keys,
        loaded: Loaded,
        problems: Sequence[Finding],
        focused: Screen[object] | None = None,
    ) -> None:
        super().__init__()
        self._of, self._keys, self._loaded, self._problems = context, keys, loaded, tuple(problems)
        self._focused = focused

    def compose(self) -> ComposeResult:
        where = "this form" if self._focused is not None else WHERE_WORDS.get(self._of.screen, self._of.screen)
        with Vertical(classes="dialog -large"):
            yield Static(Content(f"Keys: {where}"), classes="dialog-title")
            yield LineView(id="keys")
            yield Static(Content("arrows scroll  esc back"), classes="dialog-keys")

    def on_mount(self) -> None:
        self.query_one(LineView).focus()

    def on_resize(self) -> None:
        self.call_after_refresh(self._lay)

    def _lay(self) -> None:
        view = self.query_one(LineView)
        view.set_lines(self.lines(view.text_width))

    def lines(self, width: int) -> list[Text]:
        """The whole help in `width` cells, line by line."""
        colours = palette(self.app)
        made: list[Text] = []
        if self._focused is not None:
            made += self._form_lines(colours, self._focused)
        found = sorted(entries(self._of, self._keys), key=lambda entry: entry.reason is not None)
        if self._focused is not None:
            found = [entry for entry in found if ANYWHERE in entry.action.where]
        for group in dict.fromkeys(entry.action.group for entry in found):
            if made:
                made.append(Text())
            made.append(Text(group, colours.muted))
            for entry in found:
                if entry.action.group == group:
                    made += self._lines(entry, width, colours)
        made += [Text(), Text("Moving", colours.muted)]
        made += [
            self._pair(keys, text, colours)
            for keys, text in (
                ("arrows pgup pgdn", "move, or scroll"),
                ("home end", "to the first, to the last"),
                ("tab shift+tab", "to the next or previous pane"),
            )
        ]
        made += [Text(), Text("Settings", colours.muted)]
        there = "" if self._loaded.found else " (not there: defaults)"
        made += [Text(piece, colours.text) for piece in wrap(home(self._loaded.path) + there, width)]
        for problem in self._problems:
            made += [Text(piece, colours.warn) for piece in wrap(inert(problem.cause), width)]
        return made

    def _lines(self, entry: Entry, width: int, colours: Palette) -> list[Text]:
        """An entry: keys, name, and what it does or why not now, wrapped beside them."""
        keys = " ".join(show_key(key) for key in entry.keys)
        live = entry.reason is None
        note = entry.action.help if entry.reason is None else f"not now: {inert(entry.reason.text)}"
        made = []
        if width < _KEYS + 2 * _LABEL:
            head = Text(end="", no_wrap=True)
            head.append(f"{keys:<{_KEYS}}", colours.strong if live else colours.muted)
            head.append(entry.action.label, colours.text if live else colours.muted)
            return [head, *(Text(" " * _KEYS + piece, colours.muted) for piece in wrap(note, width - _KEYS))]
        for at, piece in enumerate(wrap(note, width - _KEYS - _LABEL)):
            text = Text(end="", no_wrap=True)
            text.append(f"{keys if at == 0 else '':<{_KEYS}}", colours.strong if live else colours.muted)
            label = entry.action.label if at == 0 else ""
            text.append(f"{label:<{_LABEL}}", colours.text if live else colours.muted)
            text.append(piece, colours.muted)
            made.append(text)
        return made

    def _pair(self, keys: str, text: str, colours: Palette) -> Text:
        return Text.assemble((f"{keys:<{_KEYS + 2}}", colours.strong), (text, colours.text))

    def _form_lines(self, colours: Palette, screen: Screen[object]) -> list[Text]:
        """The keys of the form or dialog that is open above the screen."""
        made = [Text("Here", colours.muted)]
        seen: dict[str, list[str]] = {}
        for key, active in screen.active_bindings.items():
            binding = active.binding
            # What a text field does with keys is known from everywhere else.
            if binding.description and active.node is screen:
                name = _PLAIN.get(binding.description, binding.description)
                seen.setdefault(name, []).append(show_key(key))
        made += [self._pair(" ".join(keys), inert(name), colours) for name, keys in seen.items()]
        return made

    def action_close(self) -> None:
        self.dismiss(None)
