"""Paths below a root as text: normalised, compared, never touched (docs/specs/workflows.md §2, §4)."""

from __future__ import annotations

from collections.abc import Collection, Iterable

HERE = "."


def normal(path: str) -> str | None:
    """Without `.`, `..`, doubled or trailing slashes; `.` for the root itself; None when it leaves the root."""
    if path.startswith("/") or "\0" in path or not path.strip():
        return None
    made: list[str] = []
    for part in path.split("/"):
        if part in ("", "."):
            continue
        if part == "..":
            if not made:
                return None
            made.pop()
        else:
            made.append(part)
    return "/".join(made) or HERE


def covers(folder: str, path: str) -> bool:
    """Whether a normalised path equals the other or lies below it."""
    return folder in (HERE, path) or path.startswith(folder + "/")


def above(path: str) -> Iterable[str]:
    """Every folder above a normalised path, the root last."""
    while "/" in path:
        path = path.rsplit("/", 1)[0]
        yield path
    if path != HERE:
        yield HERE


class Held:
    """The paths that open items hold: equal, above and below are all in the way (§4, "File locks")."""

    def __init__(self) -> None:
        self._paths: dict[str, int] = {}
        self._above: dict[str, int] = {}

    def take(self, paths: Collection[str]) -> None:
        for path in paths:
            self._paths[path] = self._paths.get(path, 0) + 1
            for folder in above(path):
                self._above[folder] = self._above.get(folder, 0) + 1

    def free(self, path: str) -> bool:
        """Whether nothing open holds this path, anything above it or anything below it."""
        if path in self._paths or path in self._above:
            return False
        return not any(folder in self._paths for folder in above(path))
