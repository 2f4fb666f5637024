"""What an action is, and where it belongs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from tui.legal import Context, Legal, always

ANYWHERE, INBOX, LIST, FOLDER = "anywhere", "inbox", "collaborations", "collaboration"
DIFF, STORY = "diff", "story"
DELEGATIONS = "delegations"
WORKFLOWS, RUN = "workflows", "run"
TRIAGE, ECOSYSTEM = "triage", "ecosystem"
WHERE_WORDS: Mapping[str, str] = {
    ANYWHERE: "everywhere",
    INBOX: "inbox",
    LIST: "collaborations",
    FOLDER: "a collaboration",
    DIFF: "a diff",
    STORY: "a story",
    DELEGATIONS: "delegations",
    WORKFLOWS: "workflows",
    RUN: "a run",
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
        command = command.replace("{document}", shlex.quote(context.document or "FILE"))
        for place, word in (context.plan.words if context.plan is not None else {}).items():
            command = command.replace(place, shlex.quote(word))
        return command.replace("{plan}", "DIR").replace("{task}", "T").replace("{delegation}", "ID")


ANY = frozenset({ANYWHERE})


def system(number: int, name: str, key: str, label: str, text: str, verb: str | None) -> Action:
    """The action that opens the screen of one system; `name` is its mode in `tui/systems.py`."""
    return Action(name, f"{number},{key}", label, text, ANY, 80 + number, "Go", always, verb)
