"""A document: its raw text at once, rendered as soon as that is ready (docs/specs/console.md §2, docs/design.md §6).

Decoding, wrapping and rendering happen in a thread that only posts messages. While it works the rendered part
stands above the raw rest; the source line at the top of the screen stays there whatever happens to the lines.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
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
PIECE: Final = 64 * 1024
"""Characters that are made inert at once."""
BATCH: Final = 0.15
"""Seconds between two deliveries of rendered sections."""
WORK: Final = 0.02
REST: Final = 0.005
"""Seconds of rendering, and of rest after them."""


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


Packed = str | tuple[str, tuple[int, ...]]
"""A line: plain, or with (start, end, style number) triples. Strings and numbers only: a large document is then no
work for the garbage collector, whose pauses would be felt at every key."""


class Styles:
    """The styles of rendered lines, by number."""

    def __init__(self) -> None:
        self._numbers: dict[Style, int] = {}
        self._styles: list[Style] = []

    def pack(self, text: Text) -> Packed:
        """A styled line as plain data."""
        spans: list[int] = []
        for start, end, style in text.spans:
            if isinstance(style, Style):
                number = self._numbers.setdefault(style, len(self._styles))
                if number == len(self._styles):
                    self._styles.append(style)
                spans += (start, end, number)
        return (text.plain, tuple(spans)) if spans else text.plain

    def unpack(self, line: Packed, base: Style) -> Text:
        """The line as it is drawn."""
        if isinstance(line, str):
            return Text(line, style=base, no_wrap=True, end="")
        plain, spans = line
        made = Text(plain, no_wrap=True, end="")
        for at in range(0, len(spans), 3):
            made.stylize(self._styles[spans[at + 2]], spans[at], spans[at + 1])
        return made


@dataclass(slots=True)
class Rows:
    """Lines of a view with the source line (from 0) of each, and the source lines of the block that it is part of."""

    texts: list[Packed] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)

    def add(self, text: Packed, source: int, span: tuple[int, int]) -> None:
        self.texts.append(text)
        self.sources.append(source)
        self.spans.append(span)

    def extend(self, other: Rows) -> None:
        """Add rows that stand on later source lines."""
        self.texts += other.texts
        self.sources += other.sources
        self.spans += other.spans

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(slots=True)
class Layout:
    """The lines of a view: rendered ones up to a source line, then raw ones from there; or raw ones only."""

    done: Rows = field(default_factory=Rows)
    raw: Rows = field(default_factory=Rows)
    tail: int = 0
    styles: Styles = field(default_factory=Styles)

    def __len__(self) -> int:
        return len(self.done) + len(self.raw) - self.tail

    def at(self, index: int) -> tuple[Rows, int]:
        """Where a line is kept."""
        ahead = index - len(self.done)
        return (self.done, index) if ahead < 0 else (self.raw, self.tail + ahead)

    def source(self, index: int) -> int:
        """The source line that a line stands on."""
        rows, at = self.at(index)
        return rows.sources[at]

    def find(self, source: int) -> tuple[int, int]:
        """(first, stop) of the lines that stand on a source line; empty at the place where it would be."""
        done, raw = self.done.sources, self.raw.sources
        if done and source <= done[-1]:
            return bisect_left(done, source), bisect_right(done, source)
        shift = len(done) - self.tail
        return max(0, bisect_left(raw, source, self.tail) + shift), max(0, bisect_right(raw, source, self.tail) + shift)

    def rendered(self, more: Rows, upto: int) -> None:
        """Rendered rows take the place of the raw ones up to a source line."""
        self.done.extend(more)
        self.tail = bisect_left(self.raw.sources, upto)


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
    styles: Styles = field(compare=False, default_factory=Styles)

    @property
    def key(self) -> tuple[str, int, Palette]:
        return (self.sha256, self.width, self.palette)


_kept: LRUCache[tuple[str, int, Palette], Layout] = LRUCache(16)


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
        self._layout = Layout()
        self._plain = Layout()
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
        hint = f"\n\n{empty}" if empty else ""
        if document.problem is not None:
            command = document.problem.next_command
            # What is only not known is no failure.
            failed = document.problem.severity == "error"
            sign = self.signs.state(State.FAILED if failed else State.UNKNOWN)
            return f"{sign} {document.problem.cause}{hint}" + (f"\n\n{command}" if command else "")
        return f"{document.name} is empty.{hint}"

    def toggle_raw(self) -> None:
        """Switch between the rendering and the text as it was written."""
        self._swap(self._toggle, keep=True)

    def _toggle(self) -> None:
        self.raw = not self.raw

    @property
    def _now(self) -> Layout:
        return self._plain if self.raw else self._layout

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
            self.whole = True
            self._swap(lambda: self._take(known), keep)
            self.post_message(self.Rendered(self, document.name, True))
            return
        if not keep or len(data) <= HEAD or not len(self._now):
            # Of a long text that is read anew the old lines stay: a part of it would throw the reader to its end.
            raw = raw_rows(_lines(data[:HEAD].decode("utf-8", "replace")), width)
            self._swap(lambda: self._take(Layout(raw=raw, styles=wanted.styles)), keep)
        if data:
            self.run_worker(
                lambda: _work(wanted, self),
                name=f"document {document.name!r}",
                group="document",
                exclusive=True,
                thread=True,
                exit_on_error=False,
            )

    def _take(self, layout: Layout) -> None:
        self._layout, self._plain = layout, Layout(raw=layout.raw)

    def on_document_view_ready(self, message: DocumentView.Ready) -> None:
        """Rows from the thread; those of an older request are dropped."""
        message.stop()
        if message.wanted.token != self._token:
            return

        def take() -> None:
            if message.raw is not None:
                self._take(Layout(raw=message.raw, styles=message.wanted.styles))
            if message.done is not None:
                self._layout.rendered(message.done, message.upto)
                self._layout.styles = message.wanted.styles

        self.whole = message.whole
        self._swap(take, keep=True)
        if message.whole and len(message.wanted.data) <= KEEP:
            _kept[message.wanted.key] = self._layout
        self.post_message(self.Rendered(self, message.wanted.name, message.whole))

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        event.stop()

    def _swap(self, change: Callable[[], None], keep: bool) -> None:
        """Change what the lines are and leave the reader at the source line where they were."""
        before, top = self._now, self.scroll_offset.y
        source = before.source(top) if keep and 0 < top < len(before) else None
        within = top - before.find(source)[0] if source is not None else 0
        self.replace(change)
        if source is not None:
            first, stop = self._now.find(source)
            top = first + min(within, stop - first - 1) if stop > first else max(0, first - 1)
        self._go(top if keep else 0)

    # Lines.

    @property
    def line_count(self) -> int:
        return len(self._now)

    def line_at(self, index: int, width: int) -> Text:
        rows, at = self._now.at(index)
        return self._now.styles.unpack(rows.texts[at], self.colours.text)

    def plain_at(self, index: int) -> str:
        rows, at = self._now.at(index)
        line = rows.texts[at]
        return line if isinstance(line, str) else line[0]

    def id_at(self, index: int) -> str | None:
        return None

    def index_of(self, id: str) -> int | None:
        return None

    def selectable(self, index: int) -> bool:
        return True

    def margin_at(self, index: int) -> tuple[str, Style] | None:
        rows, place = self._now.at(index)
        start, stop = rows.spans[place]
        at = bisect_right(self._added, start)
        if at < len(self._added) and self._added[at] <= stop:
            return self.signs.bar, self.colours.added
        return None

    def go_to_source(self, line: int) -> None:
        """Show the source line with this number (from 1) near the top."""
        self._go(max(0, self._now.find(line - 1)[0] - 1))


def _lines(text: str) -> list[str]:
    """Inert lines. A long text is made inert piece by piece, between which other threads have their turn."""
    lines: list[str] = []
    start = 0
    while start < len(text):
        stop = text.find("\n", start + PIECE) + 1 or len(text)
        lines += inert_block(text[start:stop]).split("\n")
        if not lines[-1]:
            lines.pop()
        start = stop
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
    batch, since, rested = Rows(), time.monotonic(), time.monotonic()
    for start, stop in markdown.sections(lines):
        if worker.is_cancelled:
            return
        try:
            pieces = markdown.render(lines[start:stop], start, wanted.width, wanted.palette)
            for piece in pieces:
                span = (piece.start, piece.stop)
                for row, text in enumerate(piece.lines):
                    batch.add(wanted.styles.pack(text), piece.source(row), span)
        except Exception:  # noqa: BLE001 - whatever a hostile text does to the parser, the reader sees it raw
            batch.extend(raw_rows(lines[start:stop], wanted.width, start))
        if time.monotonic() - rested >= WORK:
            # The thread that draws must not wait for this one at every turn.
            time.sleep(REST)
            rested = time.monotonic()
        if time.monotonic() - since >= BATCH:
            send(None, batch, stop, False)
            batch, since = Rows(), time.monotonic()
    send(None, batch, len(lines), True)


__all__ = ["Changes", "DocumentView", "Rows", "raw_rows"]
