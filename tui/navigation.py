"""Going from screen to screen: systems, folders, what waits, and back (docs/specs/console.md §2)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from textual._styles_cache import StylesCache
from textual.app import App
from textual.await_complete import AwaitComplete

from core.inbox import InboxItem
from tui.screens.collaboration import CollaborationScreen
from tui.screens.frame import ConsoleScreen
from tui.systems import mode_of

if TYPE_CHECKING:
    from tui.desk import FolderView
    from tui.past import Timelines
    from tui.reading import Reading


class Navigation(App[int]):
    """The way through the screens; what the console reads and knows is the app's."""

    reading: Reading
    timelines: Timelines
    views: dict[Path, FolderView]
    waiting_items: list[InboxItem]
    followed: Counter[Path]
    """How many screens show a folder."""

    def console_screens(self) -> list[ConsoleScreen]:
        """The screens of the console that lie on each other, the topmost last; without forms and dialogs."""
        return [screen for screen in self.screen_stack if isinstance(screen, ConsoleScreen)] if self._running else []

    @property
    def base(self) -> ConsoleScreen | None:
        """The topmost screen of the console, below any form or dialog."""
        screens = self.console_screens()
        return screens[-1] if screens else None

    def pop_screen(self) -> AwaitComplete:
        """Close the topmost screen, and let go of it."""
        # Textual remembers two colours for each widget, and with them the widget's lines (Textualize/textual#6665).
        clear = getattr(StylesCache.get_inner_outer, "cache_clear", None)
        if clear is not None:
            clear()
        return super().pop_screen()

    async def to_base(self) -> bool:
        """Close forms and dialogs; what was written in them is kept as a draft. False when one does not close now."""
        while self.screen is not self.base and len(self.screen_stack) > 1:
            top = self.screen
            leave = getattr(top, "action_back", None)
            if leave is not None:
                # A form keeps its draft on the way out, and a preview that is writing stays.
                leave()
            else:
                await top.dismiss(None)
            if self.screen is top:
                return False
        return True

    async def go(self, mode: str) -> None:
        """Another system's screen; on it already: back to its list."""
        if not await self.to_base():
            return
        if self.current_mode == mode:
            while len(self.screen_stack) > 1:
                await self.pop_screen()
        else:
            await self.switch_mode(mode)

    async def do_next_waiting(self) -> None:
        await self._step_waiting(1)

    async def do_previous_waiting(self) -> None:
        await self._step_waiting(-1)

    async def _step_waiting(self, by: int) -> None:
        items = self.waiting_items
        at = next((number for number, item in enumerate(items) if self._is_open(item)), None)
        start = at if at is not None else -1 if by > 0 else len(items)
        following = (start + by) % len(items)
        if following == at:
            self.notify("nothing else waits for you")
        await self.open_item(items[following])

    def _is_open(self, item: InboxItem) -> bool:
        """Whether the topmost screen shows this item."""
        return self.base is not None and self.base.shows(item)

    async def open_item(self, item: InboxItem) -> None:
        """Show what an item of the inbox is about."""
        mode = mode_of(item)
        if mode is None:
            await self.open_folder(item.path)
            return
        if not await self.to_base():
            return
        if self.current_mode != mode:
            await self.switch_mode(mode)
        if self.base is not None:
            self.base.go_to(item)

    async def open_folder(self, path: Path) -> None:
        """Show a collaboration; another open one makes room."""
        if not await self.to_base():
            return
        while isinstance(self.screen, ConsoleScreen) and self.screen.OF_FOLDER:
            await self.pop_screen()
        top = self.screen
        if isinstance(top, CollaborationScreen):
            if top.path != path:
                await self.switch_screen(CollaborationScreen(path))
        else:
            await self.push_screen(CollaborationScreen(path))

    def follow(self, path: Path) -> None:
        """A screen shows this folder from now on."""
        self.followed[path] += 1
        self.reading.open(path)

    def unfollow(self, path: Path) -> None:
        """A screen shows this folder no longer."""
        self.followed[path] -= 1
        if self.followed[path] <= 0:
            del self.followed[path]
            self.views.pop(path, None)
            self.timelines.forget(path)
            self.reading.close(path)

    async def do_back(self) -> None:
        if self.screen is not self.base:
            await self.to_base()
        elif len(self.screen_stack) > 1:
            await self.pop_screen()
        elif self.current_mode != self.DEFAULT_MODE:
            await self.switch_mode(self.DEFAULT_MODE)
        else:
            self.notify("ctrl+q leaves the console")
