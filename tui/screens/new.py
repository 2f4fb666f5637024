"""A new collaboration: who, about what, when it is done; shown before it is made (docs/specs/console.md §2)."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from core.acp.declare import Declaration, generated_gates
from core.acp.model import DELIVERABLE_TYPES, DOCUMENTS, LOG, PROTOCOL
from core.acp.templates import LANGUAGES, check, cleaned, exists_finding, initialize
from core.clock import Clock
from core.finding import Finding, Refused, error
from tui.forms.confirm import Deed
from tui.forms.deeds import DeedForm
from tui.forms.drafts import Drafts
from tui.forms.fields import AreaField, Choice, ChoiceField, Field, LineField
from tui.settings import expanded
from tui.widgets.glyphs import Glyphs, glyphs

WORDS: Final = {"en": "English", "fr": "français", "ja": "日本語", "it": "italiano", "zh": "中文"}


@dataclass(frozen=True, slots=True)
class Plan:
    """The answers, as they will be written."""

    path: Path
    objective: str
    participants: tuple[str, ...]
    gates: tuple[str, ...]
    language: str
    declared: Declaration | None = None

    def check(self) -> list[Finding]:
        """What is missing or wrong; looks at the folder."""
        found = check(self.path, self.objective, self.participants, self.gates, self.language, self.declared)
        if (self.path / PROTOCOL).exists():
            found.append(replace(exists_finding(self.path), where="--folder"))
        elif self.path.exists() and not self.path.is_dir():
            found.append(error("not_a_folder", f"{self.path} is not a folder", None, "--folder"))
        return found

    @property
    def command(self) -> str:
        """`collab init …` for exactly these answers."""
        words = ["collab", "init", "--folder", str(self.path)]
        for name in self.participants:
            words += ["--participant", name]
        words += ["--objective", self.objective]
        for gate in self.gates:
            words += ["--completion", gate]
        if self.language != "en":
            words += ["--language", self.language]
        if self.declared is not None:
            words += self._declared_words(self.declared)
        return " ".join(shlex.quote(word) for word in words)

    def _declared_words(self, one: Declaration) -> list[str]:
        words = ["--primary-deliverable-type", one.type]
        words += ["--primary-deliverable-file", one.file] if one.file else []
        for text in one.checks:
            words += ["--primary-deliverable-check", text]
        if one.mode != "internal":
            words += ["--deliverables-mode", one.mode]
        words += ["--deliverables-dir", one.dir] if one.dir != "deliverables" else []
        return words + (["--repo-root", one.repo_root] if one.repo_root else [])


class NewScreen(DeedForm):
    """Dismissed with the folder that was made, or None."""

    HEADING = "New collaboration"
    FORM = "new"

    def __init__(self, root: Path, me: str | None, drafts: Drafts, clock: Clock) -> None:
        super().__init__(root, "", drafts, clock, f"in {root}")
        self._me = me

    def fields(self) -> list[Field]:
        languages = [Choice(code, WORDS.get(code, code)) for code in LANGUAGES]
        who = f"{self._me}\n" if self._me else ""
        return [
            LineField("objective", "Objective", "what is to be agreed", ("--objective",)),
            LineField("folder", "Folder", "its name, or a path", ("--folder",)),
            AreaField(
                "participants", "Participants", "one a line; the first owns the proposal", ("--participant",), who
            ),
            AreaField("gates", "Completion gates", "one a line: what must hold at the end", ("--completion",)),
            ChoiceField("language", "Language of the templates", languages, value="en"),
            *self._deliverable_fields(),
        ]

    @staticmethod
    def _deliverable_fields() -> list[Field]:
        types = [Choice("", "none", "a version 1 folder"), *(Choice(name, name) for name in DELIVERABLE_TYPES)]
        modes = [Choice("internal", "internal", "in this folder"), Choice("external", "external", "in the repository")]
        prefix = "--primary-deliverable"
        return [
            ChoiceField("type", "Deliverable", types, where=(f"{prefix}-type",), value=""),
            LineField("file", "Its file", "Markdown; blank: TYPE.md", (f"{prefix}-file",)),
            AreaField("checks", "Its sections", "custom only, one a line", (f"{prefix}-check",)),
            ChoiceField("mode", "It lies", modes, where=("--deliverables-mode",), value="internal"),
            LineField("dir", "In", "blank: deliverables", ("--deliverables-dir",)),
            LineField("root", "Repository", "external only, relative to the folder, as ..", ("--repo-root",)),
        ]

    def _entries(self, key: str) -> tuple[str, ...]:
        return tuple(cleaned(self.query_one(f"#field-{key}", AreaField).text.split("\n")))

    def plan(self) -> Plan:
        """The answers as they stand."""
        language = self.query_one("#field-language", ChoiceField).choice
        name = self.line("folder")
        path = self.root / expanded(name) if name and "\0" not in name else self.root
        code = language.id if language is not None else "en"
        people, gates = self._entries("participants"), self._entries("gates")
        return Plan(path, self.line("objective"), people, gates, code, self._declared())

    def _declared(self) -> Declaration | None:
        kind = self.query_one("#field-type", ChoiceField).choice
        mode = self.query_one("#field-mode", ChoiceField).choice
        if kind is None or not kind.id:
            return None
        return Declaration(
            kind.id,
            self.line("file"),
            self._entries("checks"),
            mode.id if mode is not None else "internal",
            self.line("dir") or "deliverables",
            self.line("root") or None,
        )

    def problems(self) -> dict[str, str]:
        return {} if self.line("folder") else {"folder": "the folder needs a name"}

    def deed(self) -> Callable[[], Deed]:
        return partial(making, self.plan(), self.clock, glyphs(self.app))


def making(plan: Plan, clock: Clock, signs: Glyphs) -> Deed:
    """A collaboration that could be made now; what it says is its folder. Raises Refused with what is wrong."""
    found = plan.check()
    if found:
        raise Refused(*found)

    def do() -> str:
        answers = (plan.path, plan.objective, plan.participants, plan.gates)
        initialize(*answers, clock, plan.language, declared=plan.declared)
        return str(plan.path)

    owner, *others = plan.participants
    sections: list[tuple[str, tuple[str, ...]]] = [
        ("Writes", (", ".join((PROTOCOL, LOG, *DOCUMENTS, "README.md")),)),
        ("Objective", (plan.objective,)),
        ("Participants", (f"{owner} (owner)", *others)),
        ("Completion gates", tuple(f"{signs.bullet} {gate}" for gate in plan.gates)),
    ]
    one = plan.declared
    if one is not None:
        ref = f"external:{one.name}" if one.mode == "external" else f"{one.dir}/{one.name}"
        gates = tuple(f"{signs.bullet} {gate}" for gate in generated_gates(one.type, ref))
        sections += [("Deliverable", (f"{ref} ({one.type})",)), ("Generated gates", gates)]
    sections.append(("Effect", (f"{signs.arrow} drafting, then waiting for {owner}",)))
    return Deed(str(plan.path), sections, plan.command, do)
