"""From an item of the inbox or a row to the form that answers it (docs/specs/console.md §2, Workflows)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from core.inbox import InboxItem
from core.workflow.desk import Workflows
from core.workflow.model import Entry
from core.workflow.view_inbox import KIND, item_id

if TYPE_CHECKING:
    from tui.app import ConsoleApp
    from tui.screens.frame import ConsoleScreen

Asked = tuple[Workflows, tuple[Entry, ...]]


def desks(app: ConsoleApp) -> list[Workflows]:
    """Every workflow root below the roots, as it was last read."""
    return [view for view in app.stores if isinstance(view, Workflows)]


def asked_by(app: ConsoleApp, items: Iterable[InboxItem]) -> Asked | None:
    """The questions that items of the inbox stand for, all of one root; None when they are no questions."""
    wanted = {item.id for item in items if item.kind == KIND}
    for desk in desks(app) if wanted else ():
        found = tuple(one for one in desk.open_entries if item_id(desk.root, one.id, one.reminders) in wanted)
        if found:
            return desk, found
    return None


def open_answer(screen: ConsoleScreen, desk: Workflows, entries: Sequence[Entry], me: str) -> None:
    """The form that answers these; what became of it is said, and everything is looked at again."""
    from tui.forms.drafts import Drafts
    from tui.forms.escalation import AnswerForm

    app = screen.console_app
    app.clear_notifications()
    app.push_screen(AnswerForm(desk, entries, me, Drafts(app.user_state)), screen.done)
