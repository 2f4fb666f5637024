"""A new round continues a collaboration that ended blocked or completed (docs/specs/acp.md §2)."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from core.acp import reader, templates
from core.acp.reader import Snapshot, require
from core.clock import Clock
from core.files import Root
from core.finding import Refused, error

PREDECESSOR = re.compile(r"^- Previous round: `(.+)`$", re.MULTILINE)


def new_round(source: Path, target: Path, clock: Clock) -> None:
    """A fresh v1 folder with objective, participants, gates and documents carried over. Raises Refused.

    Reviews and the conclusion belong to the round that they ended: they begin from the templates again.
    """
    snapshot = require(source)
    setup = snapshot.setup
    if setup is None or not snapshot.state.terminal:
        owner = shlex.quote(snapshot.state.owner or "ID")
        command = f"collab next --folder {shlex.quote(str(source))} --participant {owner}"
        cause = f"{source} is in phase {snapshot.state.phase}; a new round continues a blocked or completed one"
        raise Refused(error("round_not_over", cause, command, "--from"))
    if target == source:
        raise Refused(error("round_same_folder", "the new round needs a folder of its own", None, "--folder"))
    documents = [snapshot.document(name) for name in ("proposal.md", "decisions.md", "readiness.md")]
    ended = f"- It ended {snapshot.state.phase} at seq {snapshot.state.seq}."
    notes = f"\n## Round\n\n- Previous round: `{source}`\n{ended}\n"
    templates.initialize(
        target,
        setup.objective,
        setup.participants,
        setup.gates,
        clock,
        extra={one.name: one.data for one in documents if one.data is not None},
        notes=notes,
    )


def predecessor(snapshot: Snapshot) -> Path | None:
    """The folder of the round before, as the README.md names it."""
    try:
        with Root(snapshot.path) as root:
            data = root.read("README.md").data
    except Refused:
        return None
    found = PREDECESSOR.search(data.decode("utf-8", "replace")) if data is not None else None
    return Path(found[1]) if found is not None else None


def chain(path: Path, limit: int = 50) -> list[Path]:
    """This round and those before it, newest first."""
    found = [path]
    while len(found) < limit:
        before = predecessor(reader.read(found[-1], documents=False))
        if before is None or before in found:
            break
        found.append(before)
    return found
