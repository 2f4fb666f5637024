"""Small apps that hold one widget or form, for tests with real keys; notifications are on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from textual.app import App, ComposeResult
from textual.message import Message
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widget import Widget
from textual.worker import WorkerCancelled

from core.state import UserState
from tui.themes import theme_name, themes

SIZES = [(60, 15), (80, 24), (120, 36)]

HOSTILE = [
    "\x1b[2J\x1b[31mred",
    "\x1b]52;c;aGVsbG8=\x07",
    "\x9b31m C1",
    "nul \x00 and \x7f",
    "bidi \u202e txet \u2066x\u2069",
    "zero\u200bwidth\ufeff",
    "[/] [bold]not markup[/bold] [/nope",
    "[@click=app.quit]x[/]",
    "中文字符 ｆｕｌｌ 한국어",
    "e\u0301\u0301\u0301 combining",
    "tab\there",
    "lone \ud800 surrogate",
]


class Host(App[object]):
    """An app in the console's own look around one widget."""

    CSS = "Screen { background: $background; color: $foreground; }"

    def __init__(self, widget: Widget | None = None, theme: str = "dark", state: Path | None = None) -> None:
        super().__init__()
        self.widget = widget
        self.ascii_glyphs = False
        self.wanted = theme
        self.results: list[Any] = []
        if state is not None:
            self.user_state = UserState(state)

    def compose(self) -> ComposeResult:
        if self.widget is not None:
            yield self.widget

    def on_mount(self) -> None:
        for theme in themes():
            self.register_theme(theme)
        self.theme = theme_name(self.wanted)

    @contextmanager
    def suspend(self) -> Any:
        """The editor of a test needs no terminal."""
        with nullcontext():
            yield

    def rows(self) -> list[str]:
        """What stands on the terminal, line by line."""
        return ["".join(segment.text for segment in strip) for strip in self.screen._compositor.render_strips()]

    def shown(self) -> str:
        return "\n".join(row.rstrip() for row in self.rows())

    def links(self) -> list[str]:
        strips = self.screen._compositor.render_strips()
        return [part.style.link for strip in strips for part in strip if part.style and part.style.link]

    def open(self, screen: Screen[Any]) -> None:
        self.push_screen(screen, self.results.append)


def listen(widget: Widget, *kinds: type[Message]) -> list[Message]:
    """Every message of these kinds that the widget posts, in order."""
    heard: list[Message] = []
    post = widget.post_message

    def recording(message: Message) -> bool:
        if isinstance(message, kinds):
            heard.append(message)
        return post(message)

    widget.post_message = recording  # type: ignore[method-assign]
    return heard


@asynccontextmanager
async def running(
    widget: Widget | None = None, size: tuple[int, int] = (80, 24), theme: str = "dark", state: Path | None = None
) -> AsyncIterator[tuple[Host, Pilot[object]]]:
    app = Host(widget, theme, state)
    async with app.run_test(size=size, notifications=True) as pilot:
        await pilot.pause()
        yield app, pilot


async def settle(pilot: Pilot[object], ready: Callable[[], object] = lambda: True) -> None:
    """Until every thread is done and `ready` holds."""
    for _ in range(600):
        with suppress(WorkerCancelled):
            await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        if ready():
            return
    raise AssertionError("it never came to that")


def is_inert(text: str) -> bool:
    """Whether nothing in the text can act on a terminal."""
    return text.replace("\n", "").isprintable()
