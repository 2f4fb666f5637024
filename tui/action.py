"""What an action is, where it belongs, and the actions of the systems beside collaborations."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from tui.legal import Context, Legal, always

ANYWHERE, INBOX, LIST, FOLDER = "anywhere", "inbox", "collaborations", "collaboration"
DIFF, STORY = "diff", "story"
TRIAGE, ECOSYSTEM = "triage", "ecosystem"
WHERE_WORDS: Mapping[str, str] = {
    ANYWHERE: "everywhere",
    INBOX: "inbox",
    LIST: "collaborations",
    FOLDER: "a collaboration",
    DIFF: "a diff",
    STORY: "a story",
    TRIAGE: "triage",
    ECOSYSTEM: "ecosystem",
}
LISTS = frozenset({INBOX, LIST})


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that a person can do. `keys` are separated by commas; the first is the one that is shown.

    `verb` is the equivalent command with `{folder}` and `{me}`; None when it only moves or looks. `own` means that
    the focused widget handles the key itself. `event` is what the action appends in the end.
    """

    id: str
    keys: str
    label: str
    help: str
    where: frozenset[str]
    order: int
    group: str
    legal: Legal
    verb: str | None = None
    own: bool = False
    event: str | None = None

    def command(self, context: Context) -> str | None:
        """The equivalent command line for this context, or None."""
        if self.verb is None:
            return None
        folder = shlex.quote(str(context.folder)) if context.folder is not None else "FOLDER"
        me = context.view.me if context.view is not None and context.view.me else context.me
        command = self.verb.replace("{folder}", folder).replace("{me}", shlex.quote(me) if me else "ID")
        return command.replace("{document}", shlex.quote(context.document or "FILE"))


ANY = frozenset({ANYWHERE})


def system(number: int, name: str, key: str, label: str, text: str, verb: str | None) -> Action:
    """The action that opens the screen of one system; a new system needs this line and a mode of the app."""
    return Action(name, f"{number},{key}", label, text, ANY, 80 + number, "Go", always, verb)
