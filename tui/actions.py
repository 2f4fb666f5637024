"""The one registry of actions (docs/specs/console.md §3): keys, footer, help, palette and README come from here.

An action says when it is legal; an illegal one stays visible, greyed, with its reason. What an action does is the
method `do_<id>` of the screen that is on, else of the app. Each system declares its own in `tui/action_<system>.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from core.acp.model import DELIVERABLE_EVENTS
from tui.action import ANYWHERE, LISTS, WHERE_WORDS, Action
from tui.action_acp import ACP_ACTIONS
from tui.action_console import CONSOLE_ACTIONS
from tui.action_delegation import DELEGATION_ACTIONS
from tui.action_ecosystem import ECOSYSTEM_ACTIONS
from tui.action_triage import TRIAGE_ACTIONS
from tui.action_workflow import WORKFLOW_ACTIONS
from tui.legal import Context, Reason

FOOTER = 8
PLAN_WORDS = (("{plan}", "DIR"), ("{task}", "T"), ("{delegation}", "ID"))

ACTIONS: tuple[Action, ...] = (
    *CONSOLE_ACTIONS,
    *ACP_ACTIONS,
    *DELEGATION_ACTIONS,
    *WORKFLOW_ACTIONS,
    *TRIAGE_ACTIONS,
    *ECOSYSTEM_ACTIONS,
)

BY_ID: Mapping[str, Action] = {action.id: action for action in ACTIONS}
ACT_FOR: Mapping[str, str] = {
    **{action.event: action.id for action in ACTIONS if action.event is not None},
    **dict.fromkeys((name for name in DELIVERABLE_EVENTS if name != "deliverable_frozen"), "deliverable"),
}
"""Event to the action that appends it."""


def here(where: str) -> list[Action]:
    """Actions of a screen, its own first, then those of everywhere."""
    own = [action for action in ACTIONS if where in action.where]
    return own + [action for action in ACTIONS if ANYWHERE in action.where and where not in action.where]


@dataclass(frozen=True, slots=True)
class Entry:
    """An action as footer, help and palette show it now."""

    action: Action
    keys: tuple[str, ...]
    reason: Reason | None

    @property
    def key(self) -> str:
        """The key that is shown."""
        return show_key(self.keys[0]) if self.keys else ""


def works_in_fields(key: str) -> bool:
    """Whether a key does its work while a text field has the focus."""
    return key.startswith(("ctrl+", "alt+", "escape")) or bool(_function(key))


def _function(key: str) -> bool:
    last = key.rpartition("+")[2]
    return len(last) > 1 and last[0] == "f" and last[1:].isdigit()


_SHOWN = {
    "escape": "esc",
    "comma": ",",
    "pagedown": "pgdn",
    "pageup": "pgup",
    "question_mark": "?",
    "colon": ":",
    "slash": "/",
}


def show_key(key: str) -> str:
    """A key as people read it: `F4`, `shift+F4`, `ctrl+p`, `esc`, `?`."""
    *modifiers, last = key.split("+") if len(key) > 1 else [key]
    last = last.upper() if _function(last) else _SHOWN.get(last, last)
    return "+".join((*modifiers, last))


class Keys:
    """Which keys do what, with the person's keymap applied. `problems` are (action id, reason) pairs."""

    def __init__(self, keymap: Mapping[str, str] | None = None) -> None:
        from tui.keymap import default_keys, resolve

        self._keys, self.problems = resolve(keymap or {})
        self._moved = [action for action in ACTIONS if self._keys[action.id] != default_keys(action)]

    def of(self, action: Action) -> tuple[str, ...]:
        """The keys of an action, the shown one first."""
        return self._keys[action.id]

    def shown(self, action: Action) -> str:
        """The key that is shown for an action."""
        return show_key(self.of(action)[0]) if self.of(action) else ""

    def textual(self) -> dict[str, str]:
        """Keys that are others than the registry's, as Textual's keymap: binding id to keys.

        It is laid over all bindings at every key that is pressed, so what stays as it is has no place in it.
        """
        made = {}
        for action in self._moved:
            plain, field = split(self.of(action))
            for name, keys in ((action.id, plain), (f"{action.id}.field", field)):
                if keys:
                    made[name] = ",".join(keys)
        return made


def split(keys: Iterable[str]) -> tuple[list[str], list[str]]:
    """(keys that a text field takes for itself, keys that work there too)."""
    known = list(keys)
    return [key for key in known if not works_in_fields(key)], [key for key in known if works_in_fields(key)]


def entries(context: Context, keys: Keys) -> list[Entry]:
    """Every action of this screen, legal or not, in the order of the registry; none that this folder never has."""
    setup = context.view.setup if context.view is not None else None
    never = DELIVERABLE_EVENTS if setup is not None and setup.schema < 2 else frozenset()
    return [
        Entry(action, keys.of(action), action.legal(context))
        for action in here(context.screen)
        if action.event not in never
    ]


def footer(context: Context, keys: Keys, most: int = FOOTER) -> list[Entry]:
    """At most `most` entries that make sense now: the next action first, help last."""
    found = [entry for entry in entries(context, keys) if entry.reason is None and entry.keys]
    wanted = next_id(context)
    help_entry = [entry for entry in found if entry.action.id == "help"]
    rest = [
        entry
        for entry in found
        if entry.action.id != "help" and (entry.action.order < 60 or entry.action.id in ("next-waiting", "back"))
    ]
    rest.sort(key=lambda entry: (entry.action.id != wanted, entry.action.order))
    back = [entry for entry in rest if entry.action.id == "back" and context.screen not in LISTS]
    rest = [entry for entry in rest if entry.action.id != "back"]
    return rest[: most - len(help_entry) - len(back)] + back + help_entry


def next_id(context: Context) -> str | None:
    """The action that is the next one here, if there is one."""
    if context.view is not None and context.view.next is not None and context.view.next.event is not None:
        return ACT_FOR.get(context.view.next.event)
    if context.plan is not None:
        return context.plan.next
    return "open" if context.screen in LISTS else None


def key_table_markdown(keys: Keys | None = None) -> str:
    """The key table of the README."""
    known = keys or Keys()
    lines = ["| key | does | where | as a command |", "|---|---|---|---|"]
    for group in dict.fromkeys(action.group for action in ACTIONS):
        for action in ACTIONS:
            if action.group != group:
                continue
            shown = " ".join(f"`{show_key(key)}`" for key in known.of(action))
            where = ", ".join(WHERE_WORDS[name] for name in WHERE_WORDS if name in action.where)
            verb = action.verb or ""
            for place, word in (
                ("{folder}", "F"),
                ("{me}", "ID"),
                ("{document}", "FILE"),
                ("FOLDER", "F"),
                *PLAN_WORDS,
            ):
                verb = verb.replace(place, word)
            command = f"`{verb}`" if verb else ""
            lines.append(f"| {shown.replace('|', chr(92) + '|')} | {action.help.rstrip('.')} | {where} | {command} |")
    return "\n".join(lines) + "\n"
