"""The actions of the console itself: those of everywhere, and of its lists (docs/specs/console.md §2, §3)."""

from __future__ import annotations

from tui.action import ANY, DELEGATIONS, ECOSYSTEM, INBOX, LISTS, TRIAGE, WORKFLOWS, Action, system
from tui.legal import always, selected, single, waiting

_NARROWED = frozenset({DELEGATIONS, WORKFLOWS, TRIAGE, ECOSYSTEM})
"""Screens whose rows a text narrows."""

SYSTEMS: tuple[Action, ...] = (
    system(1, "inbox", "f5", "inbox", "What waits for you, over every folder.", "collab inbox --as {me}"),
    system(2, "collaborations", "f6", "collaborations", "Every collaboration below the roots.", "collab list"),
    system(3, "delegations", "f7", "delegations", "What is delegated, live, over every plan.", "collab list"),
    system(4, "workflows", "f8", "workflows", "Runs, what they ask, what was learned.", "collab workflow status"),
    system(5, "triage", "f9", "triage", "One failure, one code, one next command.", "collab triage list"),
    system(6, "ecosystem", "f10", "ecosystem", "Receipts and their trust, members, statuses.", "collab members table"),
)

CONSOLE_ACTIONS: tuple[Action, ...] = (
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
        LISTS,
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
        LISTS,
        20,
        "Act",
        always,
        "collab init --folder FOLDER --participant ID --objective TEXT --completion TEXT",
    ),
    Action("filter", "/", "filter", "Show only rows that hold a text.", LISTS, 30, "Look", always),
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
        frozenset({INBOX, WORKFLOWS}),
        25,
        "Look",
        selected,
    ),
    Action("narrow", "/", "filter", "Show only rows that hold a text.", _NARROWED, 30, "Look", always),
)
