"""The person's `[keymap]` laid over the registry; unknown actions, unsendable keys and clashes are refused."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from tui.action import ANYWHERE, Action
from tui.actions import ACTIONS, BY_ID, show_key, works_in_fields

SAME_AS = {"ctrl+m": "Enter", "ctrl+j": "Enter", "ctrl+i": "Tab", "ctrl+h": "Backspace", "ctrl+[": "Esc"}
"""What a terminal sends for these."""

KEPT = {"ctrl+q": "quit", "ctrl+c": "copy"}
NAMED = frozenset(
    [
        "enter",
        "escape",
        "space",
        "tab",
        "backspace",
        "delete",
        "insert",
        "home",
        "end",
        "pageup",
        "pagedown",
        "up",
        "down",
        "left",
        "right",
    ]
)


def default_keys(action: Action) -> tuple[str, ...]:
    """The keys of the registry."""
    return tuple(key for key in action.keys.split(",") if key)


def resolve(keymap: Mapping[str, str]) -> tuple[dict[str, tuple[str, ...]], list[tuple[str, str]]]:
    """(keys of every action, what was refused of the keymap and why). A refused line leaves the default in place."""
    keys = {action.id: default_keys(action) for action in ACTIONS}
    problems: list[tuple[str, str]] = []
    accepted: dict[str, tuple[str, ...]] = {}
    for name, text in keymap.items():
        if name not in BY_ID:
            close = difflib.get_close_matches(name, list(BY_ID), n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            problems.append((name, f"there is no action of that name{hint}"))
            continue
        wanted = tuple(dict.fromkeys(normal(part) for part in _parts(text)))
        reason = next((found for key in wanted if (found := _refuse(BY_ID[name], key))), None)
        if not wanted:
            reason = "no key is named"
        if reason is not None:
            problems.append((name, f"{reason}; the default {_shown(keys[name])} stays"))
            continue
        # The keys that work inside a text field stay, unless other such keys were named.
        if not any(works_in_fields(key) for key in wanted):
            wanted += tuple(key for key in keys[name] if works_in_fields(key))
        accepted[name] = wanted
    for name, wanted in accepted.items():
        clash = _clash(name, wanted, {**keys, **accepted})
        if clash is None:
            keys[name] = wanted
        else:
            key, other = clash
            problems.append(
                (name, f"{show_key(key)} already is {other!r} there; the default {_shown(keys[name])} stays")
            )
    return keys, problems


def _parts(text: str) -> list[str]:
    """Keys of a comma-separated list; a lone comma is the key itself."""
    if text.strip() == ",":
        return ["comma"]
    return [part.strip() for part in text.split(",") if part.strip()]


def normal(key: str) -> str:
    """`Ctrl+P` and `F4` in the spelling of the registry; a single character keeps its case."""
    if len(key) == 1:
        return key
    *modifiers, last = key.split("+")
    return "+".join((*(part.lower() for part in modifiers), last if len(last) == 1 and not modifiers else last.lower()))


def _refuse(action: Action, key: str) -> str | None:
    if key in SAME_AS:
        return f"{key} is {SAME_AS[key]} in a terminal"
    if key in KEPT and KEPT[key] != action.id:
        return f"{key} is kept for {KEPT[key]}"
    *modifiers, last = key.split("+") if len(key) > 1 else [key]
    if any(part not in ("ctrl", "shift", "alt") for part in modifiers):
        return f"{key!r} is no key"
    function = last[:1] == "f" and last[1:].isdigit() and 1 <= int(last[1:]) <= 24
    if len(last) == 1 or function or last in NAMED or last.replace("_", "").isalpha():
        return None
    return f"{key!r} is no key"


def _clash(name: str, wanted: tuple[str, ...], keys: Mapping[str, tuple[str, ...]]) -> tuple[str, str] | None:
    """The first of the keys that means something else on a screen where both actions are."""
    mine = BY_ID[name].where
    for other in ACTIONS:
        shared = ANYWHERE in mine or ANYWHERE in other.where or bool(mine & other.where)
        if other.id != name and shared:
            for key in wanted:
                if key in keys[other.id]:
                    return key, other.id
    return None


def _shown(keys: tuple[str, ...]) -> str:
    return ", ".join(show_key(key) for key in keys)
