"""Declare a supporting deliverable: file, type, sections, then a preview (docs/specs/console.md §2)."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from core.acp import supporting
from core.acp.model import DELIVERABLE_TYPES, PROTOCOL
from core.acp.reader import require
from core.clock import Clock
from tui.forms.confirm import Deed
from tui.forms.deeds import DeedForm
from tui.forms.drafts import Drafts
from tui.forms.fields import AreaField, Choice, ChoiceField, Field, LineField


class DeclareScreen(DeedForm):
    """Dismissed with a sentence about what was declared, or None."""

    HEADING = "Declare a deliverable"
    FORM = "declare"

    def __init__(self, path: Path, participant: str, drafts: Drafts, clock: Clock) -> None:
        super().__init__(path, participant, drafts, clock, f"in {path}", participant)

    def fields(self) -> list[Field]:
        types = [Choice(name, name) for name in DELIVERABLE_TYPES]
        return [
            LineField("file", "File", "a Markdown file below the deliverables' folder", ("FILE",)),
            ChoiceField("type", "Type", types, where=("--type",), value=DELIVERABLE_TYPES[0]),
            AreaField("checks", "Sections", "custom only, one a line", ("--check",)),
        ]

    def deed(self) -> Callable[[], Deed]:
        kind = self.query_one("#field-type", ChoiceField).choice
        named = kind.id if kind is not None else ""
        return partial(declaring, self.root, self.subject, self.line("file"), named, self.items("checks"), self.clock)


def declaring(path: Path, participant: str, file: str, kind: str, checks: Sequence[str], clock: Clock) -> Deed:
    """A declaration that would work now. Raises Refused with every reason against it."""
    made = supporting.plan(require(path), participant, file, kind, checks)
    one = made.item

    def do() -> str:
        supporting.add(path, participant, one.file, one.type, one.checklist, clock)
        return f"declared {made.ref}"

    sections = [
        ("Writes", (PROTOCOL, f"{made.ref}, as it stands" if made.there else made.ref)),
        ("Declares", (f"supporting {one.type}",)),
    ]
    if not made.there:
        sections.append(("The file begins as", tuple(made.data.decode("utf-8").splitlines())))
    words = ["collab", "deliverable", "add", one.file, "--type", one.type]
    for check in one.checklist:
        words += ["--check", check]
    words += ["--folder", str(path), "--as", participant]
    return Deed(made.ref, sections, shlex.join(words), do)
