"""What a viewer searches for and where it was found (docs/specs/console.md §3)."""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_left
from collections.abc import Callable
from typing import Final

from rich.text import Text
from textual.message import Message
from textual.scroll_view import ScrollView

from core.sanitize import inert
from tui.widgets.palette import Palette

FIND_AT_ONCE: Final = 20_000
"""So many lines are searched before the key returns; longer texts are searched in slices, between other events."""


class Search:
    """A needle, the numbers of the lines that hold it as far as they were searched, and the one that is shown."""

    def __init__(self) -> None:
        self.needle = ""
        self.matches: list[int] = []
        self.current = -1
        self._pattern: re.Pattern[str] | None = None

    @property
    def active(self) -> bool:
        """Whether anything is searched for."""
        return self._pattern is not None

    @property
    def shown(self) -> int | None:
        """The line of the match that is shown."""
        return self.matches[self.current] if 0 <= self.current < len(self.matches) else None

    def begin(self, text: str) -> None:
        """Search for this text, in any case; empty for nothing."""
        self.needle = inert(text)
        self._pattern = re.compile(re.escape(self.needle), re.IGNORECASE) if text else None
        self.restart()

    def restart(self) -> int | None:
        """Forget what was found, because the lines are others; returns the line that was shown."""
        before = self.shown
        self.matches, self.current = [], -1
        return before

    def scan(self, plain: Callable[[int], str], start: int, stop: int) -> None:
        """Search these lines; they come after those searched before."""
        if self._pattern is not None:
            seek = self._pattern.search
            self.matches.extend(index for index in range(start, stop) if seek(plain(index)))

    def from_line(self, index: int) -> int:
        """The number of the first match at or after a line, else of the first one of all."""
        return bisect_left(self.matches, index) % len(self.matches) if self.matches else -1

    def highlight(self, text: Text, index: int, colours: Palette) -> Text:
        """A copy of a line with its matches marked."""
        if self._pattern is None:
            return text
        made = text.copy()
        style = colours.current_match if index == self.shown else colours.match
        for found in self._pattern.finditer(made.plain):
            if found.end() > found.start():
                made.stylize(style, found.start(), found.end())
        return made


class SearchableView(ScrollView):
    """A scroll view of numbered lines that can be searched. A subclass says what its lines are."""

    class Found(Message):
        """A search has news: `count` lines hold the needle, `current` (from 1) of them is shown, 0 when none is.

        `done` is false while a long text is still being searched.
        """

        def __init__(self, view: SearchableView, needle: str, count: int, current: int, done: bool) -> None:
            super().__init__()
            self.view, self.needle, self.count, self.current, self.done = view, needle, count, current, done

        @property
        def control(self) -> SearchableView:
            return self.view

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, SearchableView.Found) and message.view is self.view

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self.search = Search()

    @property
    def line_count(self) -> int:
        """How many lines there are."""
        return 0

    def plain_at(self, index: int) -> str:
        """The whole text of a line, for searching and copying."""
        return ""

    @property
    def search_from(self) -> int:
        """The line where a new search begins."""
        return 0

    def show_match(self, index: int) -> None:
        """Bring a line into view."""

    def matches_changed(self) -> None:
        """Called when other lines, or other parts of them, are to be marked."""

    @property
    def needle(self) -> str:
        """What is searched for; empty when nothing is."""
        return self.search.needle

    @property
    def matches(self) -> int:
        """How many lines hold the needle, as far as they have been searched."""
        return len(self.search.matches)

    def find(self, text: str) -> int:
        """Search every line in any case and show the first match from here on; returns the lines found so far."""
        if text:
            self.search.begin(text)
            self._search_all(True)
        else:
            self.clear_find()
        return self.matches

    def clear_find(self) -> None:
        """Forget the search and its highlights."""
        self.workers.cancel_group(self, "find")
        self.search.begin("")
        self.matches_changed()

    def find_next(self) -> None:
        """Show the next match, from the last one on to the first."""
        if self.matches:
            self._show((self.search.current + 1) % self.matches, True)

    def find_previous(self) -> None:
        """Show the match before, from the first one on to the last."""
        if self.matches:
            self._show((self.search.current - 1) % self.matches, True)

    def search_again(self) -> None:
        """The lines are others now: search them for the same needle, without leaving the place."""
        if self.search.active:
            shown = self.search.restart()
            self._search_all(False)
            if shown is not None and self.matches:
                found = self.search.matches
                self.search.current = found.index(shown) if shown in found else self.search.from_line(self.search_from)

    def _search_all(self, jump: bool) -> None:
        self.workers.cancel_group(self, "find")
        self.search.scan(self.plain_at, 0, min(FIND_AT_ONCE, self.line_count))
        if self.line_count > FIND_AT_ONCE:
            self.run_worker(self._search_on(jump), group="find", exclusive=True, exit_on_error=False)
        self._scanned(self.line_count <= FIND_AT_ONCE, jump)

    async def _search_on(self, jump: bool) -> None:
        start = FIND_AT_ONCE
        while start < self.line_count:
            stop = min(start + FIND_AT_ONCE // 4, self.line_count)
            self.search.scan(self.plain_at, start, stop)
            start = stop
            await asyncio.sleep(0)
        self._scanned(True, jump and self.search.current < 0)

    def _scanned(self, done: bool, jump: bool) -> None:
        self.matches_changed()
        if jump and self.matches:
            self._show(self.search.from_line(self.search_from), done)
        else:
            self.post_message(self.Found(self, self.needle, self.matches, self.search.current + 1, done))

    def _show(self, number: int, done: bool) -> None:
        self.search.current = number
        self.show_match(self.search.matches[number])
        self.matches_changed()
        self.post_message(self.Found(self, self.needle, self.matches, number + 1, done))


__all__ = ["FIND_AT_ONCE", "Search", "SearchableView"]
