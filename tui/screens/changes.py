"""What changed in the documents: since my review, since an event, between two events (docs/specs/console.md §2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message
from textual.widgets import Static
from textual.worker import get_current_worker

from core.acp.model import DOCUMENTS, Document
from core.acp.timeline import Timeline, moment
from core.sanitize import inert
from tui.action import DIFF
from tui.desk import FolderView
from tui.legal import Context
from tui.screens.choose import Choice, ChooseScreen
from tui.screens.find import FindBar
from tui.screens.frame import bindings, home
from tui.screens.searching import Searching
from tui.screens.tabs import Tab, TabStrip
from tui.widgets.diff import line_changes
from tui.widgets.diffview import Compared, DiffView
from tui.widgets.glyphs import glyphs, palette
from tui.widgets.text import fit

NOW = "now"
RECENT = 1000
"""Events that are offered to choose from, the latest ones; any other is chosen in the log."""


@dataclass(frozen=True, slots=True)
class Part:
    """A document between two moments, and how many lines came and went; None when that is unknown."""

    compared: Compared
    counts: tuple[int, int] | None

    @property
    def mark(self) -> str:
        """`+12 -3`, or `?`."""
        return "?" if self.counts is None else f"+{self.counts[0]} -{self.counts[1]}"


def compare(old: Document, new: Document, since: str, until: str) -> Part | None:
    """A document at two moments; None when it is the same, or was not there at either."""
    if old.data is not None and new.data is not None:
        if old.sha256 == new.sha256:
            return None
        one = Compared(new.name, old.text, new.text, since, until)
        added, removed = line_changes(old.text, new.text)
        return Part(one, (len(added), removed))
    lost = [item.problem for item in (old, new) if item.problem is not None and item.problem.code != "file_missing"]
    if lost:
        why = lost[0].cause[:1].upper() + lost[0].cause[1:] + "."
        return Part(Compared(new.name, "", "", since, until, why), None)
    if old.data is None and new.data is None:
        return None
    one = Compared(new.name, old.text, new.text, since, until)
    added, removed = line_changes(old.text, new.text)
    return Part(one, (len(added), removed))


def first_since(view: FolderView) -> int:
    """The moment that a person most likely wants to compare with: their review, else their last act, else the start."""
    if view.reviewed is not None:
        return view.reviewed
    events = view.snapshot.events
    acts = (at for at in range(len(events) - 1, -1, -1) if view.me is not None and events[at].actor == view.me)
    return next(acts, 0)


class DiffScreen(Searching):
    """One tab a document that changed; `f` and `u` choose the two moments, `t` puts old and new side by side."""

    WHERE = DIFF
    OF_FOLDER = True
    BINDINGS = bindings(DIFF)

    class Loaded(Message):
        """What changed between the two moments."""

        def __init__(self, parts: Sequence[Part], token: int) -> None:
            super().__init__()
            self.parts, self.token = tuple(parts), token

    def __init__(self, view: FolderView, document: str | None, until: int | None = None, since: int | None = None):
        """`since` and `until` are indexes of events; `until` None is now."""
        super().__init__()
        self.of_view = view
        self.since = first_since(view) if since is None else since
        self.until = until
        self._wanted = document
        self._parts: tuple[Part, ...] | None = None
        self._token = 0

    def body(self) -> ComposeResult:
        yield Static(Content(""), id="place")
        yield TabStrip()
        yield DiffView(id="diff", classes="framed")
        yield FindBar("find")

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one(DiffView).focus()
        self._load()

    def searched(self) -> DiffView:
        return self.query_one(DiffView)

    def pane_view(self) -> DiffView:
        return self.searched()

    def place(self) -> str:
        return home(self.of_view.path)

    def me(self) -> str | None:
        return self.of_view.me

    def context(self) -> Context:
        view = self.of_view
        count = len(self._parts or ())
        waiting = self.console_app.waiting_count
        return Context(
            DIFF, me=view.me, view=view, selected=view.path, document=self._wanted, parts=count, waiting=waiting
        )

    @property
    def loaded(self) -> bool:
        """Whether it is known what changed."""
        return self._parts is not None

    # Moments.

    def moment(self, index: int | None) -> str:
        """A moment in words."""
        event = self.of_view.snapshot.events[index] if index is not None else None
        return moment(event, index is not None and index == self.of_view.reviewed)

    def _load(self) -> None:
        view, since, until = self.of_view, self.since, self.until
        self._token += 1
        token, timelines = self._token, self.console_app.timelines
        words = (f"since {self.moment(since)}", f"until {self.moment(until)}")

        def load() -> None:
            worker = get_current_worker()
            with timelines.of(view) as line:
                parts = _parts(line, since, until, words, worker.is_cancelled)
            if not worker.is_cancelled:
                self.post_message(self.Loaded(parts, token))

        self.query_one(DiffView).clear("Comparing")
        self._headline()
        self.run_worker(load, name="changes", group="changes", exclusive=True, thread=True, exit_on_error=False)

    def on_diff_screen_loaded(self, message: DiffScreen.Loaded) -> None:
        """The documents that changed are known."""
        message.stop()
        if message.token != self._token:
            return
        self._parts = message.parts
        names = [part.compared.name for part in message.parts]
        if self._wanted not in names and names:
            self._wanted = names[0]
        self._show()

    def _show(self) -> None:
        parts = self._parts or ()
        view = self.query_one(DiffView)
        tabs = [Tab(one.compared.name, inert(one.compared.name), inert(one.compared.name), one.mark) for one in parts]
        self.query_one(TabStrip).show(tabs, self._wanted or "")
        shown = next((part for part in parts if part.compared.name == self._wanted), None)
        if shown is not None:
            view.show(shown.compared)
            view.border_title = Text(inert(shown.compared.name))
        else:
            view.clear(f"No document changed since {self.moment(self.since)}.\nf compares with another moment.")
            view.border_title = Text("")
        self._headline()
        self.frame()

    def _headline(self) -> None:
        colours, signs = palette(self.app), glyphs(self.app)
        text = Text.assemble(("Changes ", colours.strong), no_wrap=True, end="")
        text.append(f"since {self.moment(self.since)} ", colours.text)
        text.append(f"{signs.arrow} {self.moment(self.until)}", colours.text)
        side = "side by side" if self.query_one(DiffView).side else "unified"
        text.append(f"  {side}", colours.muted)
        self.query_one("#place", Static).update(fit(text, max(10, self.size.width - 2), signs.cut))

    def on_resize(self) -> None:
        self._headline()

    # Actions.

    def do_side(self) -> None:
        self.query_one(DiffView).toggle()
        self._headline()

    def do_next_tab(self) -> None:
        self._step(1)

    def do_previous_tab(self) -> None:
        self._step(-1)

    def _step(self, by: int) -> None:
        names = [part.compared.name for part in self._parts or ()]
        if names:
            at = names.index(self._wanted) if self._wanted in names else 0
            self._wanted = names[(at + by) % len(names)]
            self._show()

    @on(TabStrip.Changed)
    def tab_clicked(self, event: TabStrip.Changed) -> None:
        event.stop()
        self._wanted = event.id
        self._show()

    def _choices(self) -> list[Choice]:
        events = self.of_view.snapshot.events
        made = [Choice(str(at), self.moment(at)) for at in range(max(0, len(events) - RECENT), len(events))]
        return made[::-1]

    def do_since(self) -> None:
        choices = self._choices()
        review = self.of_view.reviewed
        if review is not None:
            choices = [choices[at] for at, one in enumerate(choices) if one.id == str(review)] + [
                one for one in choices if one.id != str(review)
            ]
        self.app.push_screen(ChooseScreen("What changed since", choices, str(self.since)), self._since)

    def do_until(self) -> None:
        choices = [Choice(NOW, NOW), *self._choices()]
        current = NOW if self.until is None else str(self.until)
        self.app.push_screen(ChooseScreen("What changed until", choices, current), self._until)

    def _since(self, chosen: str | None) -> None:
        if chosen is not None:
            self.since = int(chosen)
            if self.until is not None and self.until < self.since:
                self.until = None
            self._load()

    def _until(self, chosen: str | None) -> None:
        if chosen is not None:
            self.until = None if chosen == NOW else int(chosen)
            if self.until is not None and self.until < self.since:
                self.since = self.until
            self._load()


def _parts(line: Timeline, since: int, until: int | None, words: tuple[str, str], cancelled: bool) -> list[Part]:
    """What changed in each document between two moments; `until` None is now."""
    old = line.documents(since)
    names = (*DOCUMENTS, *line.snapshot.deliverables)
    new = line.documents(until) if until is not None else {name: line.snapshot.document(name) for name in names}
    found = (compare(old[name], new[name], *words) for name in names if not cancelled)
    return [part for part in found if part is not None]


__all__ = ["DiffScreen", "Part", "compare"]
