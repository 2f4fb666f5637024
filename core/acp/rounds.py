"""A new round continues a collaboration that ended blocked or completed (docs/specs/acp.md §2)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from core import journal
from core.acp import carry, compose, reader, templates
from core.acp.model import PROTOCOL
from core.acp.reader import HISTORY, Snapshot, require
from core.acp.vocabulary import say, vocabulary
from core.clock import Clock
from core.files import Root
from core.finding import Refused, error


@lru_cache(maxsize=1)
def _predecessor() -> re.Pattern[str]:
    """`- Previous round: `…`` in any of the languages."""
    words = vocabulary()
    labels = "|".join(re.escape(words.word(code, "phrases", "Previous round")) for code in words.languages)
    return re.compile(rf"^- (?:{labels}) ?[:\uff1a] `(.+)`$", re.MULTILINE)


def new_round(source: Path, target: Path, clock: Clock) -> None:
    """A fresh folder with objective, participants, gates, documents and deliverables carried over. Raises Refused.

    Reviews, ticks and the conclusion belong to the round that they ended: they begin anew, in the folder's language.
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
    carried = {one.name: one.data for one in documents if one.data is not None}
    gates, declared = setup.gates, None
    renamed: dict[str, str] = {}
    if setup.schema >= 2:
        declared, renamed = carry.declaration(snapshot, setup, target)
        gates = carry.objective_gates(setup)
    carried = carry.documents(carried, renamed)
    _check_free(target, {**carried, **carry.internal_files(declared)})
    language = snapshot.language
    templates.initialize(
        target,
        setup.objective,
        setup.participants,
        gates,
        clock,
        language,
        extra=carried,
        notes=_notes(language, source, snapshot),
        previous=source,
        declared=declared,
        before=lambda root: carry.attachments(snapshot, setup, root),
    )


def _notes(language: str, source: Path, snapshot: Snapshot) -> str:
    """The lines of README.md that name the round before."""
    colon = compose.colon(language)
    ended = say(language, "It ended PHASE at seq SEQ.")
    ended = ended.replace("PHASE", snapshot.state.phase or "").replace("SEQ", str(snapshot.state.seq))
    named = f"- {say(language, 'Previous round')}{colon} `{source}`"
    return f"\n## {say(language, 'Round')}\n\n{named}\n- {ended}\n"


def _check_free(target: Path, carried: Mapping[str, bytes]) -> None:
    """Nothing of the round before may be lost because something else has its name already."""
    try:
        with Root(target) as root:
            if root.exists(PROTOCOL):
                command = f"collab show --folder {shlex.quote(str(target))}"
                raise Refused(
                    error("collaboration_exists", f"{target} already holds a collaboration", command, str(target))
                )
            taken = [name for name, data in carried.items() if root.exists(name) and root.read(name).data != data]
    except Refused as exc:
        if exc.findings[0].code == "folder_missing":
            return
        raise
    if taken:
        cause = f"{target} already holds {', '.join(taken)}; a new round begins in a folder without them"
        raise Refused(error("round_folder_taken", cause, None, "--folder"))


def predecessor(snapshot: Snapshot) -> Path | None:
    """The folder of the round before: as the sidecar remembers it, else as README.md names it."""
    try:
        with Root(snapshot.path) as root:
            first = next(iter(journal.read(root, HISTORY).lines), None)
            data = root.read("README.md").data
    except Refused:
        return None
    named = first.record.get("previous") if first is not None and first.record is not None else None
    if not isinstance(named, str) and data is not None:
        # The objective stands above and may hold such a line too.
        lines = _predecessor().findall(data.decode("utf-8", "surrogateescape"))
        named = lines[-1] if lines else None
    return Path(named) if isinstance(named, str) and named.startswith("/") else None


def chain(path: Path, limit: int = 50) -> list[Path]:
    """This round and those before it, newest first."""
    found = [path]
    while len(found) < limit:
        before = predecessor(reader.read(found[-1], documents=False))
        if before is None or before in found:
            break
        found.append(before)
    return found
