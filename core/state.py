"""What belongs to a person, not to a folder: identity, snoozes, what was seen (docs/design.md §3, "On disk").

Everything here is a convenience: a missing, damaged or unwritable file reads as empty and never stops a verb.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.files import Root, sha256
from core.finding import Refused
from core.lock import folder_lock


def key(path: Path) -> str:
    """How per-folder files are named: 24 hex digits of the absolute path's digest."""
    return sha256(str(path.absolute()).encode("utf-8", "surrogateescape"))[:24]


class UserState:
    """The person's state folder (`COLLAB_STATE`, else platformdirs); the caller says where it is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def load(self, name: str) -> dict[str, Any]:
        """A JSON object, or {} for anything else."""
        try:
            with Root(self.folder, ".") as root:
                data = root.read(name).data
            made = json.loads(data) if data is not None else {}
        except (Refused, ValueError, RecursionError):
            return {}
        return made if isinstance(made, dict) else {}

    def save(self, name: str, value: Mapping[str, Any]) -> bool:
        """Replace a JSON object atomically; False when this place cannot be written."""
        return self._write(name, lambda _: dict(value))

    def update(self, name: str, changes: Mapping[str, Any]) -> bool:
        """Merge keys into a JSON object under a lock; a value of None removes its key."""

        def merge(old: dict[str, Any]) -> dict[str, Any]:
            return {k: v for k, v in {**old, **changes}.items() if v is not None}

        return self._write(name, merge)

    def _write(self, name: str, change: Any) -> bool:
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with Root(self.folder, ".") as root, folder_lock(root, ".lock", patience=2.0):
                root.sweep(locked=True)
                made = change(self.load(name))
                # ASCII, because a path that is no UTF-8 holds surrogates.
                root.replace(name, (json.dumps(made, sort_keys=True, indent=1) + "\n").encode())
        except (OSError, Refused):
            return False
        return True

    def identity(self, folder: Path) -> str | None:
        """Who this person is in that folder, if they said so once."""
        found = self.load("identity.json").get(str(folder.absolute()))
        return found if isinstance(found, str) else None

    def set_identity(self, folder: Path, who: str) -> bool:
        """Remember who this person is in that folder."""
        return self.update("identity.json", {str(folder.absolute()): who})
