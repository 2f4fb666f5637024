"""The linear path: what every screen shows and every action does, as a verb (docs/linear.md is made from this)."""

from __future__ import annotations

from tui.action import WHERE_WORDS
from tui.actions import ACTIONS, PLAN_WORDS, Keys, show_key

SCREENS: tuple[tuple[str, str, str], ...] = (
    ("Inbox", "what waits, in its lanes, with why and the next command", "collab inbox --as ID"),
    ("Collaborations", "every folder: phase, who is waited for, since when, health", "collab list"),
    (
        "Collaboration: phases, waiting, gates, next action",
        "the same words, a line each",
        "collab show --folder F --as ID",
    ),
    ("Collaboration: a document", "its text, inert", "collab show --folder F --doc proposal.md"),
    ("Collaboration: Log", "the events, one a line", "collab log --folder F"),
    ("Collaboration: Findings", "errors and warnings, each with its next command", "collab validate --folder F"),
    ("Collaboration: Next", "whose turn it is and the command that follows", "collab next --folder F --participant ID"),
    ("As it was after an event", "phase, waiting, gates, documents of that moment", "collab show --folder F --at SEQ"),
    (
        "A document as it was",
        "its text then, or that it is unknown",
        "collab show --folder F --at SEQ --doc proposal.md",
    ),
    ("Changes since my review", "a unified diff", "collab diff --folder F --as ID --since-my-review"),
    ("Changes between two events", "a unified diff", "collab diff --folder F --since SEQ --until SEQ"),
    ("Changes side by side", "old and new in two columns", "collab diff --folder F --since SEQ --side-by-side"),
    ("Story of an event", "only what led to it, and what each event changed", "collab log --folder F --story SEQ"),
    ("Story of a decision", "where it was written, and what followed", "collab log --folder F --story D1"),
    ("Delegations", "every plan: draft, active or completed, since when, health", "collab list"),
    (
        "Delegations: timeline",
        "tasks, delegations with ages and results, refusals, idle gaps",
        "collab ledger --plan DIR inspect -o json",
    ),
    (
        "Delegations: as it was",
        "the same after an event",
        "collab ledger --plan DIR inspect --until SEQ -o json",
    ),
    ("Delegations: a launch's conditions", "each met or not", "collab ledger --plan DIR delegate launch --dry-run"),
    ("Delegations: findings", "what is wrong with the record or its receipts", "collab ledger --plan DIR verify"),
    ("Workflows: runs", "progress, outcome, what waits; refused starts, disabled specs", "collab workflow status"),
    ("Workflows: a run", "its steps with attempt, result, cause and failure code", "collab workflow status RUN"),
    ("Workflows: what waits", "every question with its options", "collab escalation list"),
    (
        "Workflows: a question",
        "the engine's facts, each option with its effect, deadline",
        "collab escalation show ESC",
    ),
    ("Workflows: what was learned", "proposals with evidence, rules with their counts", "collab proposal list"),
    ("Workflows: a spec", "its findings, or its items and routes", "collab workflow check SPEC"),
    ("Triage: a signal", "code, cause, next command, matched tokens", "collab triage classify"),
    ("Triage: met here", "unknown failures, their sightings, what they became", "collab triage list"),
    ("Triage: catalogue", "every code with its cause and next command", "collab triage catalog"),
    ("Ecosystem: a receipt", "its trust, its parents, each check by name", "collab envelope resolve"),
    ("Ecosystem: members and graph", "who owns, emits and consumes what", "collab members table"),
    ("Ecosystem: a status", "its report from validated data", "collab status render"),
    ("Ecosystem: the command of a status", "printed, never run", "collab status compile"),
    ("Live view", "returns when it is your turn", "collab wait --folder F --participant ID"),
)
"""(screen or part of one, what it shows, the verb with the same content)."""


def screens_markdown() -> str:
    """The table of screens."""
    rows = [f"| {name} | {what} | `{verb}` |" for name, what, verb in SCREENS]
    return "\n".join(["| screen | shows | as a command |", "|---|---|---|", *rows]) + "\n"


def actions_markdown() -> str:
    """The table of actions that do something, with the verb that does the same; what only moves is left out."""
    keys = Keys()
    rows = []
    for action in ACTIONS:
        if action.verb is None:
            continue
        verb = action.verb
        for place, word in (("{folder}", "F"), ("{me}", "ID"), ("{document}", "FILE"), ("FOLDER", "F"), *PLAN_WORDS):
            verb = verb.replace(place, word)
        shown = " ".join(f"`{show_key(key)}`" for key in keys.of(action))
        where = ", ".join(WHERE_WORDS[name] for name in WHERE_WORDS if name in action.where)
        rows.append(f"| {action.label} | {shown} | {where} | `{verb}` |")
    return "\n".join(["| action | key | where | as a command |", "|---|---|---|---|", *rows]) + "\n"


__all__ = ["SCREENS", "actions_markdown", "screens_markdown"]
