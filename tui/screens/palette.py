"""The command palette: every action of the registry, illegal ones greyed with their reason."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from core.sanitize import inert
from tui.actions import Entry, entries, show_key

if TYPE_CHECKING:
    from tui.app import ConsoleApp


class ActionProvider(Provider):
    """Answers with what is possible on the screen below the palette."""

    def _entries(self) -> list[Entry]:
        app = cast("ConsoleApp", self.app)
        if app.base is None:
            return []
        found = [entry for entry in entries(app.base.context(), app.keys) if entry.action.id != "palette"]
        return sorted(found, key=lambda entry: (entry.reason is not None, entry.action.order))

    def _display(self, entry: Entry, name: Content) -> Content:
        keys = " ".join(show_key(key) for key in entry.keys)
        head = Content.assemble(name, ("   " + keys, "$text-muted"))
        if entry.reason is None:
            return Content.assemble(head, "\n", (entry.action.help, "$text-muted"))
        reason = inert(entry.reason.text[:200])
        return Content.assemble(head.stylize("$text-muted"), "\n", (f"not now: {reason}", "$text-muted"))

    async def discover(self) -> Hits:
        for entry in self._entries():
            name = entry.action.label
            yield DiscoveryHit(self._display(entry, Content.styled(name, "bold")), self._do(entry), name)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for entry in self._entries():
            name = entry.action.label
            score = max(matcher.match(name), 0.6 * matcher.match(entry.action.help))
            if score > 0:
                # What is possible comes before what is not.
                weight = score if entry.reason is None else score * 0.5
                yield Hit(weight, self._display(entry, matcher.highlight(name)), self._do(entry), name)

    def _do(self, entry: Entry) -> Callable[[], object]:
        app = cast("ConsoleApp", self.app)
        return partial(app.run_action, f"act('{entry.action.id}')")
