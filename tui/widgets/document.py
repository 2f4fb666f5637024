"""A document: its raw text at once, rendered as soon as that is ready (docs/specs/console.md §2, docs/design.md §6).

Decoding, wrapping and rendering happen in a thread that only posts messages. While it works the rendered part
stands above the raw rest; the source line at the top of the screen stays there whatever happens to the lines.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from rich.style import Style
from rich.text import Text
from textual.cache import LRUCache
from textual.message import Message
from textual.worker import Worker, get_current_worker

from core.acp.model import Document
from core.sanitize import inert, inert_block
from tui.widgets import markdown
from tui.widgets.diff import line_changes
from tui.widgets.glyphs import Palette, State
from tui.widgets.lines import LineView
from tui.widgets.text import wrap

HEAD: Final = 64 * 1024
"""Bytes that are shown before the key returns; the rest comes from the thread."""
KEEP: Final = 2 * 1024 * 1024
"""Rendered documents up to this size are kept, so that coming back to them costs nothing."""
BATCH: Final = 0.15
"""Seconds between two deliveries of rendered sections."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed in a document: numbers (from 1) of added or changed lines, how many went away, since when."""

    added: tuple[int, ...]
    removed: int
    since: str = "since you last looked"

    @classmethod
    def between(cls, old: str, new: str, since: str = "since you last looked") -> Changes:
        """The changes that lead from one text to another."""
        added, removed = line_changes(old, new)
        return cls(added, removed, since)

    def title(self, minus: str = "−") -> str:
        """`+12 −3 since you last looked`, or that nothing changed."""
        if not self.added and not self.removed:
            return f"unchanged {self.since}"
        return f"+{len(self.added)} {minus}{self.removed} {self.since}"


@dataclass(slots=True)
class Rows:
    """Lines of a view with the source line (from 0) of each, and whether a change touches it."""

    texts: list[Text | str] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)

    def add(self, text: Text | str, source: int, span: tuple[int, int]) -> None:
        self.texts.append(text)
        self.sources.append(source)
        self.spans.append(span)

    def __add__(self, other: Rows) -> Rows:
        return Rows(self.texts + other.texts, self.sources + other.sources, self.spans + other.spans)

    def after(self, source: int) -> Rows:
        """The rows that stand on this source line or a later one."""
        at = bisect_left(self.sources, source)
        return Rows(self.texts[at:], self.sources[at:], self.spans[at:])


def raw_rows(lines: Sequence[str], width: int, first: int = 0) -> Rows:
    """Inert source lines, wrapped."""
    made = Rows()
    for number, line in enumerate(lines, start=first):
        for piece in wrap(line, width):
            made.add(piece, number, (number, number + 1))
    return made


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a thread was asked to prepare; an answer to an older request is dropped."""

    token: int
    name: str
    sha256: str
    data: bytes
    width: int
    palette: Palette

    @property
    def key(self) -> tuple[str, int, Palette]:
        return (self.sha256, self.width, self.palette)


_kept: LRUCache[tuple[str, int, Palette], tuple[Rows, Rows]] = LRUCache(16)


class DocumentView(LineView):
    """Shows one document at a time; `toggle_raw` switches between the text and its rendering."""

    class Rendered(Message):
        """The rendering grew; `whole` once all of it is there."""

        def __init__(self, view: DocumentView, name: str, whole: bool) -> None:
            super().__init__()
            self.view, self.name, self.whole = view, name, whole

        @property
        def control(self) -> DocumentView:
            return self.view

    class Ready(Message):
        """Work of a thread for a request: all raw rows, or the rendered ones up to a source line."""

        def __init__(self, wanted: Wanted, raw: Rows | None, done: Rows | None, upto: int, whole: bool) -> None:
            super().__init__()
            self.wanted, self.raw, self.done, self.upto, self.whole = wanted, raw, done, upto, whole

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self.raw = False
        """Whether the text is shown as it was written."""
        self.whole = False
        """Whether the rendering is complete."""
        self._document: Document | None = None
        self._changes: Changes | None = None
        self._added: list[int] = []
        self._raw_rows = Rows()
        self._done_rows = Rows()
        self._upto = 0
        self._rows = Rows()
        self._token = 0
        self._drawn_in: Palette | None = None

    # What is shown.

    @property
    def document(self) -> Document | None:
        """The document on the screen."""
        return self._document

    @property
    def changes_title(self) -> Text:
        """`+12 −3 since you last looked`; empty when nothing is marked."""
        if self._changes is None:
            return Text("")
        style = self.colours.muted if not (self._changes.added or self._changes.removed) else self.colours.text
        return Text(inert(self._changes.title(self.signs.minus)), style=style, end="")

    def show(self, document: Document, mark: Changes | None = None, empty: str = "") -> None:
        """Show a document. `empty` says what would be here when there is none, and which key fills it.

        The scroll position stays when it is the same document, whether or not its text changed.
        """
        before, self._document = self._document, document
        self._empty = self._why_empty(document, empty)
        same = before is not None and before.name == document.name
        self._changes, self._added = mark, sorted(mark.added) if mark else []
        if same and before is not None and before.sha256 == document.sha256 and document.data is not None:
            self._strips.clear()
            self.refresh()
            return
        if not same:
            self.clear_find()
        self._prepare(keep=same)

    def _why_empty(self, document: Document, empty: str) -> str:
        cross, hint = self.signs.state(State.FAILED), f"\n\n{empty}" if empty else ""
        if document.problem is not None:
            command = document.problem.next_command
            return f"{cross} {document.problem.cause}{hint}" + (f"\n\n{command}" if command else "")
        return f"{document.name} is empty.{hint}"

    def toggle_raw(self) -> None:
        """Switch between the rendering and the text as it was written."""
        self.raw = not self.raw
        self._lay(keep=True)

    # Preparing.

    def resized(self, width: int) -> None:
        if self._document is not None:
            self._prepare(keep=True)

    def notify_style_update(self) -> None:
        """Rendered lines carry the colours of a theme: with another theme they are made anew."""
        super().notify_style_update()
        if self._document is not None and self.is_attached and self.colours is not self._drawn_in:
            self._prepare(keep=True)

    def _prepare(self, keep: bool) -> None:
        """Begin anew for this document at this width."""
        document, width = self._document, self.text_width
        self._token += 1
        if document is None or width <= 0:
            return
        self.whole = False
        self._drawn_in = self.colours
        data = document.data or b""
        wanted = Wanted(self._token, document.name, document.sha256 or "", data, width, self.colours)
        known = _kept.get(wanted.key) if data else None
        if known is not None:
            self._raw_rows, self._done_rows = known
            self._upto, self.whole = 1 << 62, True
            self._lay(keep)
            self.post_message(self.Rendered(self, document.name, True))
            return
        head = data[:HEAD].decode("utf-8", "replace")
        lines = _lines(head)
        if keep and len(data) > HEAD and self._rows.texts:
            # The old lines stay until all new ones are there: a shorter text would throw the reader to its end.
            pass
        else:
            self._raw_rows, self._done_rows, self._upto = raw_rows(lines, width), Rows(), 0
            self._lay(keep)
        if data:
            self.run_worker(
                lambda: _work(wanted, self),
                name=f"document {document.name!r}",
                group="document",
                exclusive=True,
                thread=True,
                exit_on_error=False,
            )

    def on_document_view_ready(self, message: DocumentView.Ready) -> None:
        """Rows from the thread; those of an older request are dropped."""
        message.stop()
        if message.wanted.token != self._token:
            return
        if message.raw is not None:
            self._raw_rows, self._done_rows, self._upto = message.raw, Rows(), 0
        if message.done is not None:
            self._done_rows, self._upto = self._done_rows + message.done, message.upto
        self.whole = message.whole
        if message.whole and len(message.wanted.data) <= KEEP:
            _kept[message.wanted.key] = (self._raw_rows, self._done_rows)
        self._lay(keep=True)
        self.post_message(self.Rendered(self, message.wanted.name, message.whole))

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        event.stop()

    def _lay(self, keep: bool) -> None:
        """Put the lines together and leave the reader at the source line where they were."""
        top = self.scroll_offset.y
        source = self._rows.sources[top] if keep and 0 < top < len(self._rows.sources) else None
        first = bisect_left(self._rows.sources, source) if source is not None else 0
        rows = self._raw_rows if self.raw else self._done_rows + self._raw_rows.after(self._upto)

        def swap() -> None:
            self._rows = rows

        self.replace(swap)
        if source is None:
            self._go(0 if not keep or top == 0 else top)
            return
        low, high = bisect_left(rows.sources, source), bisect_right(rows.sources, source)
        place = low + min(top - first, max(0, high - low - 1)) if high > low else max(0, low - 1)
        self._go(place)

    # Lines.

    @property
    def line_count(self) -> int:
        return len(self._rows.texts)

    def line_at(self, index: int, width: int) -> Text | str:
        line = self._rows.texts[index]
        return Text(line, style=self.colours.text, no_wrap=True, end="") if isinstance(line, str) else line

    def id_at(self, index: int) -> str | None:
        return None

    def index_of(self, id: str) -> int | None:
        return None

    def selectable(self, index: int) -> bool:
        return True

    def margin_at(self, index: int) -> tuple[str, Style] | None:
        start, stop = self._rows.spans[index]
        at = bisect_right(self._added, start)
        if at < len(self._added) and self._added[at] <= stop:
            return self.signs.bar, self.colours.added
        return None

    def go_to_source(self, line: int) -> None:
        """Show the source line with this number (from 1) near the top."""
        self._go(max(0, bisect_left(self._rows.sources, line - 1) - 1))


def _lines(text: str) -> list[str]:
    lines = inert_block(text).split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return lines


def _work(wanted: Wanted, view: DocumentView) -> None:
    """In a thread: all raw rows first when they were not shown yet, then section after section."""
    worker = get_current_worker()
    lines = _lines(wanted.data.decode("utf-8", "replace"))

    def send(raw: Rows | None, done: Rows | None, upto: int, whole: bool) -> None:
        view.post_message(DocumentView.Ready(wanted, raw, done, upto, whole))

    if len(wanted.data) > HEAD:
        rows = raw_rows(lines, wanted.width)
        if worker.is_cancelled:
            return
        send(rows, None, 0, False)
    batch, since = Rows(), time.monotonic()
    for start, stop in markdown.sections(lines):
        if worker.is_cancelled:
            return
        try:
            pieces = markdown.render(lines[start:stop], start, wanted.width, wanted.palette)
            for piece in pieces:
                span = (piece.start, piece.stop)
                for row, text in enumerate(piece.lines):
                    batch.add(text, piece.source(row), span)
        except Exception:  # noqa: BLE001 - whatever a hostile text does to the parser, the reader sees it raw
            batch += raw_rows(lines[start:stop], wanted.width, start)
        if time.monotonic() - since >= BATCH:
            send(None, batch, stop, False)
            batch, since = Rows(), time.monotonic()
    send(None, batch, len(lines), True)


__all__ = ["Changes", "DocumentView", "Rows", "raw_rows"]
