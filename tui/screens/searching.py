"""Find in a document or a diff, filter the log: what the find line does on a screen."""

from __future__ import annotations

from textual import on
from textual.widget import Widget

from tui.screens.find import FindBar
from tui.screens.frame import ConsoleScreen
from tui.widgets.lines import LineView
from tui.widgets.log import LogView


class Searching(ConsoleScreen):
    """A screen with a `FindBar` and a view that is searched; where it has a log, that is filtered."""

    _search = ""

    def pane_view(self) -> Widget | None:
        """The widget that has the focus while nothing is searched."""
        return None

    def searched(self) -> LineView | None:
        """The view that is searched."""
        return None

    def do_find(self) -> None:
        self._open_bar("find")

    def do_filter_log(self) -> None:
        self._open_bar("filter")

    def _open_bar(self, what: str) -> None:
        self._search = what
        self.query_one(FindBar).open(what)

    @on(FindBar.Typed)
    def typed(self, event: FindBar.Typed) -> None:
        view = self.searched()
        if self._search == "filter":
            log = self.query_one("#whole-log", LogView)
            log.filter(text=event.text)
            self.query_one(FindBar).note(f"{log.line_count} shown" if event.text else "")
        elif view is not None:
            view.find(event.text)
            if not event.text:
                self.query_one(FindBar).note("")

    @on(LineView.Found)
    def found(self, event: LineView.Found) -> None:
        bar = self.query_one(FindBar)
        if bar.is_open and self._search == "find" and event.needle:
            bar.note(f"{event.current} of {event.count}" if event.count else "not found")

    @on(FindBar.Moved)
    def find_on(self, event: FindBar.Moved) -> None:
        view = self.searched()
        if self._search == "filter" or view is None:
            self._focus_target()
        elif event.by > 0:
            view.find_next()
        else:
            view.find_previous()

    @on(FindBar.Closed)
    def find_closed(self) -> None:
        for view in self.query(LineView):
            view.clear_find()
        if self._search == "filter":
            self.query_one("#whole-log", LogView).filter()
        self._focus_target()

    def do_back(self) -> object:
        """The way back closes the find line first."""
        bar = self.query_one(FindBar)
        if bar.is_open:
            bar.action_close()
            return None
        return self.console_app.do_back()

    def _focus_target(self) -> None:
        target = self.pane_view()
        if target is not None:
            target.focus()
