"""The base of every viewer: lines by number, a cursor, a search (docs/specs/console.md §3, §4).

Only the visible lines are ever built, so a million of them cost no more than a screenful. Every text is made
inert here once more and never parsed as markup.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.geometry import Size
from textual.message import Message
from textual.selection import Selection
from textual.strip import Strip

from core.sanitize import inert
from tui.widgets.glyphs import Glyphs, Palette, glyphs, palette
from tui.widgets.search import SearchableView
from tui.widgets.text import fit, segments, wrap


@dataclass(frozen=True, slots=True)
class Line:
    """A line with an identity. A bare `Text` or `str` is a line too; a `str` costs nothing until it is seen."""

    text: Text | str
    id: str | None = None
    selectable: bool = True


class LineView(SearchableView, can_focus=True):
    """Lines that scroll; with `cursor=True` one of them is current, and stays so by its id when lines are replaced."""

    GUTTER: ClassVar[int] = 2
    """Cells before the text: the cursor's or a margin's mark, and a space."""

    DEFAULT_CSS = """
    LineView {
        height: 1fr;
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-gutter: stable;
        scrollbar-size: 0 1;
        scrollbar-background: transparent;
        scrollbar-background-hover: transparent;
        scrollbar-background-active: transparent;
        scrollbar-color: $foreground 20%;
        scrollbar-color-hover: $foreground 35%;
        scrollbar-color-active: $accent;
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "line_up", "up", show=False, id="lines.up"),
        Binding("down,j", "line_down", "down", show=False, id="lines.down"),
        Binding("pageup", "line_page_up", "page up", show=False, id="lines.page_up"),
        Binding("pagedown,space", "line_page_down", "page down", show=False, id="lines.page_down"),
        Binding("home,g", "line_home", "first", show=False, id="lines.home"),
        Binding("end,G", "line_end", "last", show=False, id="lines.end"),
    ]

    class CursorMoved(Message):
        """The current line is another one."""

        def __init__(self, view: LineView, index: int, id: str | None) -> None:
            super().__init__()
            self.view, self.index, self.id = view, index, id

        @property
        def control(self) -> LineView:
            return self.view

    def __init__(
        self,
        lines: Sequence[Line | Text | str] = (),
        *,
        cursor: bool = False,
        empty: str | Text = "",
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._lines: Sequence[Line | Text | str] = lines
        self._by_id: dict[str, int] | None = None
        self._has_cursor = cursor
        self._cursor = -1
        self._empty = empty
        self._strips: LRUCache[tuple[object, ...], Strip] = LRUCache(512)
        self._width = 0

    # What a subclass may answer itself.

    @property
    def line_count(self) -> int:
        """How many lines there are."""
        return len(self._lines)

    def line_at(self, index: int, width: int) -> Text | str:
        """The text of a line, to be shown in `width` cells; longer text is cut."""
        line = self._lines[index]
        return line.text if isinstance(line, Line) else line

    def plain_at(self, index: int) -> str:
        """The whole text of a line, for searching and copying."""
        line = self.line_at(index, 0)
        return line.plain if isinstance(line, Text) else inert(line)

    def id_at(self, index: int) -> str | None:
        """The identity of a line, by which the cursor stays on it."""
        line = self._lines[index]
        return line.id if isinstance(line, Line) else None

    def index_of(self, id: str) -> int | None:
        """The line with this identity."""
        if self._by_id is None:
            self._by_id = {
                line.id: index for index, line in enumerate(self._lines) if isinstance(line, Line) and line.id
            }
        return self._by_id.get(id)

    def selectable(self, index: int) -> bool:
        """Whether the cursor may stand on a line."""
        line = self._lines[index]
        return line.selectable if isinstance(line, Line) else True

    def margin_at(self, index: int) -> tuple[str, Style] | None:
        """A mark for the left margin of a line."""
        return None

    def resized(self, width: int) -> None:
        """Called when the text width has changed, before anything is drawn in it."""

    # Lines and cursor.

    def set_lines(self, lines: Sequence[Line | Text | str]) -> None:
        """Replace all lines; the current one stays current, and where it is on the screen, if it still exists."""

        def swap() -> None:
            self._lines, self._by_id = lines, None

        self.replace(swap)

    def replace(self, swap: Callable[[], None], grown: bool = False) -> None:
        """Run `swap`, which changes what the lines are, and keep the cursor and the scroll position sensible.

        `grown` says that lines have only come behind the old ones, which look as they did.
        """
        old, top = self._cursor, self.scroll_offset.y
        kept = self.cursor_id
        swap()
        self.relayout(grown)
        if not self._has_cursor:
            return
        found = self.index_of(kept) if kept is not None else None
        index = found if found is not None else self._nearest(min(max(old, 0), self.line_count - 1))
        if found is not None and old >= 0:
            self.scroll_to(y=found - (old - top), animate=False, immediate=True, force=True)
        self._set_cursor(index, kept)
        if index >= 0:
            self._reveal(index)

    def relayout(self, grown: bool = False) -> None:
        """The lines are others now: forget what was drawn, search again, fix the scrollable size."""
        if not grown:
            self._strips.clear()
        self.virtual_size = Size(1, max(1, self.line_count))
        self.scroll_to(y=min(self.scroll_offset.y, self.max_scroll_y), animate=False, immediate=True, force=True)
        self.search_again()
        self.refresh()

    @property
    def cursor(self) -> int:
        """The number of the current line, from 0; -1 when there is none."""
        return self._cursor

    @property
    def cursor_id(self) -> str | None:
        """The identity of the current line."""
        return self.id_at(self._cursor) if 0 <= self._cursor < self.line_count else None

    def move_cursor(self, index: int) -> None:
        """Make the selectable line nearest to `index` current and visible."""
        index = self._nearest(max(0, min(index, self.line_count - 1)))
        self._set_cursor(index, self.cursor_id)
        if index >= 0:
            self._reveal(index)

    def move_to_id(self, id: str) -> bool:
        """Make the line with this identity current; False when there is none."""
        index = self.index_of(id)
        if index is None:
            return False
        self.move_cursor(index)
        return True

    def _nearest(self, index: int, forward: bool = True) -> int:
        if not self.line_count or index < 0:
            return -1
        ways = (range(index, self.line_count), range(index - 1, -1, -1))
        for way in ways if forward else (range(index, -1, -1), range(index + 1, self.line_count)):
            for at in way:
                if self.selectable(at):
                    return at
        return -1

    def _set_cursor(self, index: int, before: str | None) -> None:
        changed = index != self._cursor
        if changed:
            self.refresh_lines(self._cursor)
            self._cursor = index
            self.refresh_lines(index)
        now = self.cursor_id
        if changed or now != before:
            self.cursor_moved()
            self.post_message(self.CursorMoved(self, index, now))

    def cursor_moved(self) -> None:
        """Called when the current line is another one."""

    def _reveal(self, index: int, headed: bool = False) -> None:
        """Bring a line into view; `headed`: with the heading above it, even if the line itself is in view."""
        height = max(1, self.scrollable_content_region.height)
        top = self.scroll_offset.y
        # The heading of a group comes into view with its first row.
        first = index
        while first > 0 and index - first < height - 1 and not self.selectable(first - 1):
            first -= 1
        if index < top or (headed and first < top <= index):
            self._go(first)
        elif index >= top + height:
            self._go(index - height + 1)

    def _go(self, y: int) -> None:
        self.scroll_to(y=max(0, y), animate=False, immediate=True, force=True)

    @property
    def page(self) -> int:
        """Lines moved by a page key: a screenful less one, for context."""
        return max(1, self.scrollable_content_region.height - 1)

    def _step(self, by: int) -> None:
        if not self._has_cursor:
            self._go(self.scroll_offset.y + by)
            return
        target = max(0, min(self._cursor + by, self.line_count - 1))
        index = self._nearest(target, forward=by > 0)
        if index == self._cursor and by < 0:
            self._go(self.scroll_offset.y + by)
        self._set_cursor(index, self.cursor_id)
        if index >= 0:
            self._reveal(index)

    def action_line_up(self) -> None:
        self._step(-1)

    def action_line_down(self) -> None:
        self._step(1)

    def action_line_page_up(self) -> None:
        self._step(-self.page)

    def action_line_page_down(self) -> None:
        self._step(self.page)

    def action_line_home(self) -> None:
        self._go(0)
        if self._has_cursor:
            self._set_cursor(self._nearest(0), self.cursor_id)

    def action_line_end(self) -> None:
        self._go(self.line_count)
        if self._has_cursor:
            self._set_cursor(self._nearest(self.line_count - 1, forward=False), self.cursor_id)

    def on_click(self, event: events.Click) -> None:
        """A click makes a line current; on the current one, or twice, it chooses."""
        index = event.y - self.gutter.top + self.scroll_offset.y
        if not self._has_cursor or not 0 <= index < self.line_count or not self.selectable(index):
            return
        again = index == self._cursor
        self._set_cursor(index, self.cursor_id)
        if again or event.chain == 2:
            self.choose(index)

    def choose(self, index: int) -> None:
        """Called when a line was chosen with the mouse."""

    # Search.

    @property
    def search_from(self) -> int:
        return self._cursor if self._has_cursor else self.scroll_offset.y

    def show_match(self, index: int) -> None:
        if self._has_cursor:
            self.move_cursor(index)
            return
        height = max(1, self.scrollable_content_region.height)
        if not self.scroll_offset.y <= index < self.scroll_offset.y + height:
            self._go(index - height // 3)

    def matches_changed(self) -> None:
        self._strips.clear()
        self.refresh()

    # Drawing.

    @property
    def text_width(self) -> int:
        """Cells for the text of a line: one stays free at its right."""
        return max(0, self.scrollable_content_region.width - self.GUTTER - 1)

    @property
    def colours(self) -> Palette:
        """The palette of the active theme."""
        return palette(self.app)

    @property
    def signs(self) -> Glyphs:
        """Unicode or ASCII glyphs."""
        return glyphs(self.app)

    def notify_style_update(self) -> None:
        self._strips.clear()
        super().notify_style_update()

    def on_resize(self) -> None:
        """Lines are laid out again when the width is another one; the current line stays in view."""
        if self.text_width != self._width:
            self._width = self.text_width
            self._strips.clear()
            self.resized(self._width)
        if self._has_cursor and self._cursor >= 0:
            self._reveal(self._cursor, headed=True)

    def on_mount(self) -> None:
        self.virtual_size = Size(1, max(1, self.line_count))
        if self._has_cursor and self._cursor < 0:
            self._cursor = self._nearest(0)

    def on_focus(self) -> None:
        self._strips.clear()
        self.refresh()

    def on_blur(self) -> None:
        self._strips.clear()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """The strip of a visible row."""
        index = self.scroll_offset.y + y
        width = self.size.width
        if self.line_count == 0:
            return self._empty_strip(index, width)
        if index >= self.line_count:
            return Strip.blank(width, self.rich_style)
        selection = self.text_selection
        colours, current = self.colours, self._has_cursor and index == self._cursor
        key = (index, width, self.scrollable_content_region.width, current, self.has_focus, colours.name)
        if selection is None and (known := self._strips.get(key)) is not None:
            return known
        strip = self._strip(index, width, current, colours, selection)
        if selection is None:
            self._strips[key] = strip
        return strip

    def _strip(self, index: int, width: int, current: bool, colours: Palette, selection: Selection | None) -> Strip:
        base = self.rich_style
        room = self.text_width
        text = self._text(index, room)
        text = self.search.highlight(text, index, colours)
        if selection is not None and (span := selection.get_span(index)) is not None:
            start, end = span
            text = text.copy()
            text.stylize(
                self.screen.get_component_rich_style("screen--selection"), start, len(text) if end < 0 else end
            )
        line = Strip(segments(fit(text, room, self.signs.cut), self.app.console))
        strip = Strip.join([self._mark(index, current, colours), line.apply_offsets(0, index)])
        if current:
            base = base + colours.cursor
        strip = strip.crop_extend(0, max(0, self.scrollable_content_region.width), None).apply_style(base)
        return strip.extend_cell_length(width, self.rich_style)

    def _text(self, index: int, width: int) -> Text:
        line = self.line_at(index, width)
        if isinstance(line, str):
            # Only what can be seen is made inert, however long the line is.
            return Text(inert(line[: 4 * width + 64]), no_wrap=True, end="")
        return line if line.plain.isprintable() else Text(inert(line.plain), no_wrap=True, end="")

    def _mark(self, index: int, current: bool, colours: Palette) -> Strip:
        if current:
            sign, style = self.signs.cursor, colours.accent if self.has_focus else colours.border
        else:
            sign, style = self.margin_at(index) or (" ", Style())
        return Strip([Segment(sign, style), Segment(" " * (self.GUTTER - 1))], self.GUTTER)

    def _empty_strip(self, index: int, width: int) -> Strip:
        base, muted = self.rich_style, self.colours.muted
        text = self._empty if isinstance(self._empty, Text) else Text(self._empty)
        lines = [piece for line in text.plain.split("\n") for piece in wrap(inert(line), self.text_width)]
        if self.scrollable_content_region.height > 2:
            lines.insert(0, "")
        if not 0 <= index < len(lines):
            return Strip.blank(width, base)
        cells = [Segment(" " * self.GUTTER), Segment(lines[index], muted)]
        return Strip(cells).apply_style(base).extend_cell_length(width, base)

    # Copying.

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text, as it is shown."""
        if not self.line_count:
            return None
        start, end = selection.start, selection.end
        first, last = (start.y if start else 0), (min(end.y, self.line_count - 1) if end else self.line_count - 1)
        lines = [self.plain_at(index) for index in range(first, last + 1)]
        if lines and end is not None and end.y <= last:
            lines[-1] = lines[-1][: end.x]
        if lines and start is not None:
            lines[0] = lines[0][start.x :]
        return "\n".join(lines), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self._strips.clear()
        self.refresh()
