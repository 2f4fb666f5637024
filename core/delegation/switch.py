"""Switches an addon on or off in the repository's registry (docs/specs/delegation.md §6)."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from core.delegation import addons, canon
from core.delegation.lock import guard
from core.delegation.model import RegistryEntry, fault
from core.files import Root
from core.finding import Refused, error
from core.sanitize import clip, inert

FOLDER: Final = ".dwp"
CONFIG: Final = f"{FOLDER}/config.json"


def switch(
    repo: Path, key: str, enabled: bool, version: str | None = None, note: str | None = None
) -> Mapping[str, Any]:
    """Set `addons.KEY` in `REPO/.dwp/config.json`, all else in it kept; returns the entry.

    Raises Refused and leaves the file as it was: an unknown key, a bad version or note, a file that cannot be read as
    a JSON object, a symbolic link.
    """
    entry = {
        name: value for name, value in (("enabled", enabled), ("version", version), ("note", note)) if value is not None
    }
    if addons.lookup(repo, key) is None:
        known = ", ".join(sorted([*addons.shipped(), *addons.packed(repo)]))
        cause = f"{clip(inert(key), 80)} is no addon that is described here; there are {known}"
        raise Refused(error("addon_unknown", cause, "collab addons list", "KEY"))
    try:
        RegistryEntry.model_validate(entry)
    except ValidationError as exc:
        raise Refused(error("addon_entry_invalid", fault(exc, f"addons.{key}"), None, CONFIG)) from None
    with Root(repo, FOLDER) as root, guard(root):
        root.sweep()
        document = _document(root)
        entries = document.setdefault("addons", {})
        if not isinstance(entries, dict):
            raise Refused(error("registry_unreadable", f"{CONFIG}: addons is no object; mend it by hand", None, CONFIG))
        entries[key] = entry
        root.replace(CONFIG, canon.pretty(document))
    return entry


def _document(root: Root) -> dict[str, Any]:
    content = root.read(CONFIG, addons.CONFIG_CAP)
    if content.missing and not _link(root.path / CONFIG):
        return {}
    if content.data is None:
        raise Refused(content.problem or error("registry_unreadable", f"{CONFIG} cannot be read", None, CONFIG))
    try:
        document = canon.parse_json(content.data)
        canon.pretty(document)
    except ValueError as exc:
        raise Refused(
            error("registry_unreadable", f"{CONFIG} is not JSON ({exc}); mend it by hand", None, CONFIG)
        ) from None
    if not isinstance(document, dict):
        raise Refused(error("registry_unreadable", f"{CONFIG} holds no JSON object; mend it by hand", None, CONFIG))
    return document


def _link(path: Path) -> bool:
    try:
        return stat.S_ISLNK(path.lstat().st_mode)
    except OSError:
        return False
