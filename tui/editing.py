"""A document in the person's own editor, with the console out of the way (docs/specs/console.md §2)."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from core.acp.model import DOCUMENTS
from core.acp.reader import repo_root
from core.finding import Finding, error
from tui.desk import FolderView
from tui.forms.editor import editor_command

if TYPE_CHECKING:
    from tui.app import ConsoleApp


def file_of(view: FolderView, name: str) -> Path | None:
    """Where a document or deliverable lies on disk."""
    if name in DOCUMENTS:
        return view.path / name
    declared = view.setup.deliverables if view.setup is not None else None
    item = declared.find(name) if declared is not None else None
    if declared is None or item is None or view.setup is None:
        return None
    base = view.path if declared.mode != "external" else repo_root(view.path, view.setup)[0]
    return base / declared.dir / item.file if base is not None else None


def edit(app: ConsoleApp, view: FolderView, name: str) -> None:
    """Open the editor and wait for it; what was written is read at once."""
    problem = _edit(app, view, name)
    if problem is not None:
        app.tell(problem)
    app.reading.touch(view.path)


def _edit(app: ConsoleApp, view: FolderView, name: str) -> Finding | None:
    held = view.snapshot.document(name).problem
    if held is not None and held.code != "file_missing":
        # A link or device is not followed, by an editor neither.
        return held
    path = file_of(view, name)
    if path is None:
        return error("deliverable_doc_wrong", f"{name} is no declared deliverable", None, name)
    words, missing = editor_command(app.environ, app.settings.editor)
    if missing is not None:
        return missing
    with app.suspend() if app.can_suspend else contextlib.nullcontext():
        try:
            code = subprocess.run([*words, str(path)], check=False, env=dict(app.environ)).returncode
        except (OSError, ValueError) as exc:
            return error("editor_failed", f"{words[0]} did not start: {exc}", None, name)
    return error("editor_failed", f"{words[0]} ended with code {code}", None, name) if code else None
