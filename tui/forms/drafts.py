"""Drafts of forms, kept across restarts and kills (docs/specs/console.md §2).

One JSON file a folder and form: `<state>/drafts/<sha256 of folder path and form id>.json`, replaced atomically.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from core.clock import parse, stamp
from core.files import Root
from core.finding import Refused
from core.state import UserState


@dataclass(frozen=True, slots=True)
class Saved:
    """What was typed, when, and the digests of documents that it was written about."""

    fields: Mapping[str, Any]
    at: datetime | None
    base: Mapping[str, Any]


class Drafts:
    """Reads and writes drafts; may be used from threads. What cannot be written is said by a False, never raised."""

    def __init__(self, state: UserState) -> None:
        self.state = state
        self._lock = threading.Lock()
        self._newest: dict[str, int] = {}

    def name(self, folder: Path, form: str) -> str:
        """The file of a form's draft, relative to the state folder."""
        key = f"{folder.absolute()}\n{form}".encode("utf-8", "surrogateescape")
        return f"drafts/{hashlib.sha256(key).hexdigest()}.json"

    def load(self, folder: Path, form: str) -> Saved | None:
        """The draft of this form, or None when there is none that can be read."""
        raw = self.state.load(self.name(folder, form))
        fields, base = raw.get("fields"), raw.get("base")
        if not isinstance(fields, dict) or raw.get("form") != form:
            return None
        return Saved(fields, parse(raw.get("at")), base if isinstance(base, dict) else {})

    def save(
        self, folder: Path, form: str, fields: Mapping[str, Any], base: Mapping[str, Any], at: datetime, number: int
    ) -> bool:
        """Keep a draft. Of two saves the one with the higher `number` stays, whichever thread comes last."""
        name = self.name(folder, form)
        with self._lock:
            if number <= self._newest.get(name, -1):
                return True
            self._newest[name] = number
            made = {"folder": str(folder), "form": form, "at": stamp(at), "fields": dict(fields), "base": dict(base)}
            return self.state.save(name, made)

    def remove(self, folder: Path, form: str, number: int) -> None:
        """Forget the draft, and every save that began before this one."""
        name = self.name(folder, form)
        with self._lock:
            self._newest[name] = max(number, self._newest.get(name, -1))
            try:
                with Root(self.state.folder, ".") as root:
                    root.remove(name)
            except Refused:
                # A state folder that is not there holds no draft; a read-only one keeps it, harmlessly.
                pass
