"""What git says about a repository; it is asked, never told (docs/specs/delegation.md §5, §7)."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from core.delegation.canon import legal, tree_fingerprint

NONE: Final = "none"
_TIMEOUT: Final = 30
_FLAGS: Final = ("-c", "core.fsmonitor=false")
_ELSEWHERE: Final = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX", "GIT_NAMESPACE")


class Git:
    """One repository, asked anew each time. A command that fails reads as None."""

    def __init__(self, repo: Path, environ: Mapping[str, str]) -> None:
        self._repo = repo
        # The caller may itself be a git hook: its variables would point git somewhere else than `repo`.
        kept = {name: value for name, value in environ.items() if name not in _ELSEWHERE}
        self._environ = {**kept, "GIT_OPTIONAL_LOCKS": "0"}

    def ask(self, *words: str) -> bytes | None:
        """What a git command prints, None when it fails."""
        try:
            done = subprocess.run(
                ["git", *_FLAGS, *words],
                cwd=self._repo,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_TIMEOUT,
                check=False,
            )
        except (OSError, subprocess.SubprocessError, ValueError):
            return None
        return done.stdout if done.returncode == 0 else None

    def _text(self, *words: str) -> str | None:
        found = self.ask(*words)
        return None if found is None else found.decode("utf-8", "surrogateescape").strip()

    def head(self) -> str:
        """The commit HEAD names, `none` when there is none."""
        return self._text("rev-parse", "HEAD") or NONE

    def dirty(self) -> str:
        """`git status --porcelain`, trimmed at both ends."""
        return legal(self._text("status", "--porcelain") or "")

    def fingerprint(self) -> str:
        """The tree's fingerprint of §7, `none` if a command fails."""
        head = self._text("rev-parse", "HEAD")
        status = self._text("status", "--porcelain=v1", "-uall")
        return NONE if head is None or status is None else tree_fingerprint(head, status)

    def changed(self) -> list[tuple[str, str]]:
        """(state, path relative to the top of the work tree) of what `git status` names; empty without git."""
        found = self.ask("status", "--porcelain=v1", "-uall", "-z", "--no-renames")
        if found is None:
            return []
        entries = found.decode("utf-8", "surrogateescape").split("\0")
        return [(entry[:2], entry[3:]) for entry in entries if len(entry) > 3]

    def top(self) -> Path | None:
        """The top of the work tree."""
        found = self._text("rev-parse", "--show-toplevel")
        return Path(found) if found else None
