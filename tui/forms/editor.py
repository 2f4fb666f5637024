"""Writing a field in the person's own editor (docs/specs/console.md §2)."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from textual.app import App, SuspendNotSupported

from core.finding import Finding, error

CAP = 16 * 1024 * 1024
"""Bytes that are read back."""


def editor_command(environ: Mapping[str, str], configured: str | None = None) -> tuple[list[str], Finding | None]:
    """The words of the editor's command line: config.toml, VISUAL, EDITOR, else vi; or why there is none."""
    source, text = next(
        (
            (name, value)
            for name, value in (
                ("editor in config.toml", configured),
                ("VISUAL", environ.get("VISUAL")),
                ("EDITOR", environ.get("EDITOR")),
            )
            if value and value.strip()
        ),
        ("the default", "vi"),
    )
    try:
        words = shlex.split(text)
    except ValueError as exc:
        return [], error("editor_malformed", f"{source} is no command line: {exc}", None, source)
    if not words:
        return [], error("editor_malformed", f"{source} is blank", None, source)
    if shutil.which(words[0], path=environ.get("PATH")) is None:
        hint = "export EDITOR=nano" if shutil.which("nano", path=environ.get("PATH")) else None
        return [], error("editor_missing", f"{source} names {words[0]!r}, which is not installed", hint, source)
    return words, None


def edit_text(
    app: App[object], text: str, name: str = "text.md", environ: Mapping[str, str] | None = None
) -> tuple[str | None, Finding | None]:
    """Lend the terminal to the editor; returns (new text, None), or (None, why it failed). Blocks until it is closed.

    The text is in a file of its own in a private folder, which is gone afterwards.
    """
    environ = getattr(app, "environ", os.environ) if environ is None else environ
    settings = getattr(app, "settings", None)
    words, problem = editor_command(environ, getattr(settings, "editor", None))
    if problem is not None:
        return None, problem
    try:
        with tempfile.TemporaryDirectory(prefix="collab-edit-") as folder:
            path = Path(folder) / Path(name).name
            ended = text if not text or text.endswith("\n") else text + "\n"
            path.write_bytes(ended.encode("utf-8", "replace"))
            with app.suspend():
                code = subprocess.run([*words, str(path)], check=False, env=dict(environ)).returncode
            if code != 0:
                return None, error("editor_failed", f"{words[0]} ended with exit code {code}; the field is as it was")
            with path.open("rb") as handle:
                data = handle.read(CAP + 1)
    except SuspendNotSupported:
        cause = "this terminal cannot be lent to an editor; write in the field instead"
        return None, error("editor_unavailable", cause)
    except OSError as exc:
        return None, error("editor_failed", f"the editor's file: {exc.strerror or exc}; the field is as it was")
    if len(data) > CAP:
        return None, error("file_too_large", f"the text has more than {CAP} bytes; the field is as it was")
    return data.decode("utf-8", "replace").replace("\r\n", "\n"), None
