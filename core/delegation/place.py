"""Where a plan lies: folder, repository, registry, and what may be read there (docs/specs/delegation.md §1)."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from core.files import Content, Root
from core.finding import Refused, error


@dataclass(frozen=True, slots=True)
class Place:
    """A plan folder (absolute) and what its position says: `repo` is R, `registry` the repository's config.json."""

    plan: Path
    repo: Path
    registry: Path

    @property
    def name(self) -> str:
        return self.plan.name


def find(text: str) -> Place:
    """The plan that `--plan` names: its folder, or a file directly in a folder called `PLAN_…`. Raises Refused."""
    try:
        path = Path(os.path.abspath(os.path.expanduser(text)))
        info = path.stat()
    except (OSError, ValueError):
        raise Refused(error("plan_missing", f"there is no plan at {text}", None, "--plan")) from None
    if stat.S_ISDIR(info.st_mode):
        return at(path)
    if stat.S_ISREG(info.st_mode) and path.parent.name.startswith("PLAN_"):
        return at(path.parent)
    raise Refused(error("plan_missing", f"{text} is no plan folder and no file in one", None, "--plan"))


def at(plan: Path) -> Place:
    """The place of a plan folder, given by its absolute path."""
    above = plan.parent.parent
    return Place(plan, above.parent if above.name == ".dwp" else plan.parent, above / "config.json")


def within(base: Path, name: str) -> str | None:
    """The real path of `base/name`, relative to the real `base`, if it is a regular file that does not leave it."""
    try:
        real_base = os.path.realpath(base)
        real = os.path.realpath(os.path.join(real_base, name))
        if not stat.S_ISREG(os.stat(real).st_mode):
            return None
    except (OSError, ValueError):
        return None
    return os.path.relpath(real, real_base) if _below(real, real_base) else None


def _below(real: str, base: str) -> bool:
    return real != base and os.path.commonpath([real, base]) == base


def read_within(base: Path, name: str, cap: int) -> Content:
    """A file below `base`, links followed as long as they stay there."""
    real = within(base, name)
    if real is None:
        return Content(name, None, error("file_missing", f"missing {name}", where=name))
    with Root(Path(os.path.realpath(base))) as root:
        return root.read(real, cap)


def read_anywhere(path: Path, cap: int) -> Content:
    """A file of the person's own, links followed."""
    real = os.path.realpath(path)
    if not os.path.exists(real):
        return Content(str(path), None, error("file_missing", f"missing {path}", where=str(path)))
    with Root(Path(os.path.dirname(real))) as root:
        return root.read(os.path.basename(real), cap)


def evidence(place: Place, pointer: str) -> Path | None:
    """The real path of the regular file an evidence path leads to, in the plan or in the repository (§5), else None."""
    owners = [Path(os.path.realpath(base)) for base in (place.plan, place.repo)]
    for base in owners:
        try:
            real = Path(os.path.realpath(base / pointer))
            regular = bool(pointer) and stat.S_ISREG(real.stat().st_mode)
        except (OSError, ValueError):
            continue
        if regular and any(_below(str(real), str(owner)) for owner in owners):
            return real
    return None


def hash_file(base: Path, name: str) -> str | None:
    """64 hex digits of a file below `base`, read piece by piece; None when it is no file there or cannot be read."""
    real = within(base, name)
    if real is None:
        return None
    running = sha256()
    try:
        with Root(Path(os.path.realpath(base))) as root:
            for piece in root.pieces(real, 0):
                running.update(piece)
    except (Refused, OSError):
        return None
    return running.hexdigest()


def hash_result(place: Place, name: str) -> str | None:
    """`sha256:…` of a result in the plan, else in the repository (§7); None when it is no file in either."""
    for base in (place.plan, place.repo):
        found = hash_file(base, name)
        if found is not None:
            return f"sha256:{found}"
    return None


def hash_evidence(place: Place, pointer: str) -> str | None:
    """64 hex digits of the file behind an evidence path, None when there is none."""
    found = evidence(place, pointer)
    return hash_file(found.parent, found.name) if found is not None else None
