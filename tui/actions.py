"""The one registry of actions (docs/specs/console.md §3): keys, footer, help, palette and README come from here.

An action says when it is legal; an illegal one stays visible, greyed, with its reason. What an action does is the
method `do_<id>` of the screen that is on, else of the app.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from core.acp.model import DELIVERABLE_EVENTS
from tui.action import (
    ANY,
    ANYWHERE,
    DIFF,
    FOLDER,
    INBOX,
    LISTS,
    STORY,
    WHERE_WORDS,
    Action,
    system,
)
from tui.action_systems import ECOSYSTEM_ACTIONS, TRIAGE_ACTIONS
from tui.legal import (
    CONCLUSION,
    Context,
    Legal,
    Reason,
    always,
    answers,
    appends,
    declares,
    deliverable,
    document,
    freezes,
    has_story,
    in_past,
    log_open,
    may_edit,
    opened,
    participant,
    readable,
    selected,
    several,
    single,
    steps,
    steps_back,
    waiting,
)

FOOTER = 8

_IN_LISTS = LISTS
_IN_FOLDER = frozenset({FOLDER})
_IN_DIFF, _IN_STORY = frozenset({DIFF}), frozenset({STORY})
_TABS = frozenset({FOLDER, DIFF, STORY})


_APPEND = "collab append --folder {folder} --participant {me} --reply-to SEQ --summary TEXT --event"


def _act(
    name: str, key: str, label: str, text: str, order: int, event: str, verb: str, legal: Legal | None = None
) -> Action:
    command = verb if " " in verb else f"collab {verb} --folder {{folder}} --as {{me}}"
    return Action(name, key, label, text, _IN_FOLDER, order, "Act", legal or appends(event), command, event=event)


SYSTEMS: tuple[Action, ...] = (
    system(1, "inbox", "f5", "inbox", "What waits for you, over every folder.", "collab inbox --as {me}"),
    system(2, "collaborations", "f6", "collaborations", "Every collaboration below the roots.", "collab list"),
    system(5, "triage", "f9", "triage", "One failure, one code, one next command.", "collab triage list"),
    system(6, "ecosystem", "f10", "ecosystem", "Receipts and their trust, members, statuses.", "collab members table"),
)

ACTIONS: tuple[Action, ...] = (
    *SYSTEMS,
    Action(
        "next-waiting",
        "n,f4",
        "next waiting",
        "Open the next item that waits for you.",
        ANY,
        60,
        "Go",
        waiting,
        "collab inbox --as {me}",
    ),
    Action(
        "previous-waiting",
        "N,shift+f4",
        "previous waiting",
        "Open the item before it.",
        ANY,
        61,
        "Go",
        waiting,
        "collab inbox --as {me}",
    ),
    Action("back", "q,escape", "back", "Close this screen and go back.", ANY, 90, "Go", always),
    Action("who", "w,ctrl+o", "who am I", "Choose which participant you are.", ANY, 70, "Console", always),
    Action("theme", "T,ctrl+t", "theme", "Choose dark, light or high contrast.", ANY, 95, "Console", always),
    Action("reread", "ctrl+r", "read again", "Look at every file again now.", ANY, 96, "Console", always),
    Action("palette", ":,ctrl+p", "commands", "Find an action by its name.", ANY, 97, "Console", always),
    Action("help", "?,f1", "help", "Every key, and what each does here.", ANY, 99, "Console", always),
    Action("quit", "ctrl+q", "quit", "Leave the console.", ANY, 98, "Console", always),
    Action(
        "open",
        "enter",
        "open",
        "Open the selected row.",
        _IN_LISTS,
        1,
        "Look",
        selected,
        "collab show --folder {folder}",
        own=True,
    ),
    Action(
        "new",
        "c",
        "new",
        "Start a new collaboration.",
        _IN_LISTS,
        20,
        "Act",
        always,
        "collab init --folder FOLDER --participant ID --objective TEXT --completion TEXT",
    ),
    Action("filter", "/", "filter", "Show only rows that hold a text.", _IN_LISTS, 30, "Look", always),
    Action(
        "snooze",
        "z",
        "snooze",
        "Hide this item for a while.",
        frozenset({INBOX}),
        10,
        "Act",
        single,
        "collab inbox --snooze ITEM --for 2h",
    ),
    Action(
        "fold",
        "f",
        "fold",
        "Fold items with one cause into a row, or unfold them.",
        frozenset({INBOX}),
        25,
        "Look",
        selected,
    ),
    _act("submit", "p", "submit the proposal", "Submit proposal.md for review.", 2, "proposal_submitted", "submit"),
    _act("review", "r", "write a review", "Write a structured review.", 2, "review_submitted", "review"),
    _act("revise", "u", "submit the revision", "Submit the revised proposal.", 2, "proposal_revised", "revise"),
    _act(
        "classify",
        "c",
        "classify questions",
        "Give every open question its status.",
        3,
        "question_classified",
        "classify",
    ),
    _act("propose", "P", "propose decisions", "Put decisions.md up for acceptance.", 4, "decision_proposed", "propose"),
    _act("accept", "y", "accept the decisions", "Accept what decisions.md says.", 2, "decision_accepted", "accept"),
    _act(
        "ready",
        "R",
        "pass readiness",
        "Tick the gates and pass readiness.",
        2,
        "readiness_passed",
        "ready",
        appends("readiness_passed", "readiness_not_ticked"),
    ),
    _act(
        "conclude",
        "C",
        "conclude",
        "Write the conclusion and complete.",
        2,
        "completed",
        "complete",
        appends("completed", "gates_unticked", *CONCLUSION),
    ),
    _act(
        "deliverable",
        "m",
        "record the deliverable",
        "Record that the primary deliverable was drafted or revised.",
        3,
        "deliverable_drafted",
        f"{_APPEND} deliverable_drafted --role primary --doc DOC",
        deliverable,
    ),
    _act(
        "freeze",
        "Z",
        "freeze the deliverable",
        "Freeze a deliverable for ever: its status and its digest.",
        2,
        "deliverable_frozen",
        "freeze",
        freezes,
    ),
    Action(
        "declare",
        "D",
        "declare a deliverable",
        "Declare a supporting deliverable and begin its file.",
        _IN_FOLDER,
        45,
        "Act",
        declares,
        "collab deliverable add FILE --type TYPE --folder {folder} --as {me}",
    ),
    _act("block", "b", "block", "Stop the collaboration and say why.", 40, "blocked", "block"),
    Action(
        "append",
        "a",
        "append any event",
        "Choose any event and append it.",
        _IN_FOLDER,
        50,
        "Act",
        participant,
        f"{_APPEND} NAME",
    ),
    Action(
        "edit",
        "e",
        "edit",
        "Edit this document in your editor.",
        _IN_FOLDER,
        10,
        "Act",
        may_edit,
        "${EDITOR:-vi} {folder}/{document}",
    ),
    Action(
        "validate",
        "v",
        "validate",
        "Every error and warning of this folder.",
        _IN_FOLDER,
        30,
        "Look",
        opened,
        "collab validate --folder {folder}",
    ),
    Action("find", "/", "find", "Find a text in this document or log.", _IN_FOLDER, 32, "Look", readable),
    Action(
        "filter-log",
        "f",
        "filter the log",
        "Show only events that hold a text, a name or a participant.",
        _IN_FOLDER,
        33,
        "Look",
        log_open,
    ),
    Action(
        "answered", "o", "what it answers", "Go to the event that this one answers.", _IN_FOLDER, 64, "Look", answers
    ),
    Action("raw", "x", "as written", "Show the document as written, or rendered.", _IN_FOLDER, 65, "Look", document),
    Action("next-tab", ">", "next tab", "Show the next tab, or document.", _TABS, 71, "Look", always),
    Action("previous-tab", "<", "previous tab", "Show the tab before, or document.", _TABS, 72, "Look", always),
    Action(
        "diff",
        "d",
        "diff",
        "What changed in the documents.",
        _IN_FOLDER,
        12,
        "Look",
        steps,
        "collab diff --folder {folder} --since SEQ",
    ),
    Action(
        "story",
        "s",
        "story",
        "What led to this event or decision.",
        _IN_FOLDER,
        16,
        "Look",
        has_story,
        "collab log --folder {folder} --story SEQ",
    ),
    Action(
        "step-back",
        "comma,[",
        "step back",
        "Show the folder as it was an event earlier.",
        _IN_FOLDER,
        14,
        "Step",
        steps_back,
        "collab show --folder {folder} --at SEQ",
    ),
    Action(
        "step-on",
        ".,]",
        "step on",
        "Show the folder as it was an event later.",
        _IN_FOLDER,
        9,
        "Step",
        in_past,
        "collab show --folder {folder} --at SEQ",
    ),
    Action(
        "now",
        "0",
        "now",
        "Return from the past to now.",
        _IN_FOLDER,
        1,
        "Step",
        in_past,
        "collab show --folder {folder}",
    ),
    Action(
        "side",
        "t",
        "side by side",
        "Show old and new side by side, or below each other.",
        _TABS - _IN_FOLDER,
        3,
        "Look",
        always,
    ),
    Action(
        "since",
        "f",
        "since",
        "Choose the moment that is compared with.",
        _IN_DIFF,
        1,
        "Look",
        always,
        "collab diff --folder {folder} --since SEQ",
    ),
    Action(
        "until",
        "u",
        "until",
        "Choose the moment up to which is compared.",
        _IN_DIFF,
        2,
        "Look",
        always,
        "collab diff --folder {folder} --since SEQ --until SEQ",
    ),
    Action("story-on", "right,.,]", "on", "To the next entry of the story.", _IN_STORY, 1, "Step", several),
    Action("story-back", "left,comma,[", "back in time", "To the entry before.", _IN_STORY, 2, "Step", several),
    Action(
        "then",
        "o",
        "as it was then",
        "Show the folder as it was after this entry.",
        _IN_STORY,
        4,
        "Step",
        always,
        "collab show --folder {folder} --at SEQ",
    ),
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
        from tui.keymap import resolve

        self._keys, self.problems = resolve(keymap or {})

    def of(self, action: Action) -> tuple[str, ...]:
        """The keys of an action, the shown one first."""
        return self._keys[action.id]

    def shown(self, action: Action) -> str:
        """The key that is shown for an action."""
        return show_key(self.of(action)[0]) if self.of(action) else ""

    def textual(self) -> dict[str, str]:
        """The same as Textual's keymap, by binding id."""
        made = {}
        for action in ACTIONS:
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
            for place, word in (("{folder}", "F"), ("{me}", "ID"), ("{document}", "FILE"), ("FOLDER", "F")):
                verb = verb.replace(place, word)
            command = f"`{verb}`" if verb else ""
            lines.append(f"| {shown.replace('|', chr(92) + '|')} | {action.help.rstrip('.')} | {where} | {command} |")
    return "\n".join(lines) + "\n"
