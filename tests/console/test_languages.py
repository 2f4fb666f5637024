"""A folder in each language, from the form that makes it to `completed`, by keys alone (docs/specs/acp.md §4)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.keys import _character_to_key
from textual.pilot import Pilot

from core.acp.language import language_of
from core.acp.model import CONCLUSION_V1, CONCLUSION_V2
from core.acp.reader import read
from core.acp.templates import LANGUAGES
from core.acp.vocabulary import vocabulary
from tui.app import ConsoleApp
from tui.cli import main
from tui.forms.base import FormScreen
from tui.forms.confirm import ConfirmScreen
from tui.forms.preview import PreviewScreen
from tui.screens.choose import ChooseScreen
from tui.screens.collaboration import CollaborationScreen
from tui.screens.new import NewScreen

Until = Callable[[Pilot[int], Callable[[], object]], Awaitable[None]]
REF = "deliverables/adr.md"
SECTIONS = 6
REFERENCE = {1: ("ACP_REFERENCE_V1", "scripts"), 2: ("ACP_REFERENCE_V2", "skills/agent-collaboration-protocol/scripts")}
SAYS = {"en": "Yes", "fr": "Décidé", "ja": "決めた", "it": "È sì", "zh": "已定"}


class Person:
    """Both participants at one console; every event goes through its form and its preview."""

    def __init__(self, app: ConsoleApp, pilot: Pilot[int], until: Until, path: Path) -> None:
        self.app, self.pilot, self.path = app, pilot, path
        self._until = until

    async def until(self, condition: Callable[[], object]) -> None:
        await self._until(self.pilot, condition)

    async def press(self, *keys: str) -> None:
        """Keys in their order. A text comes as fast as a terminal sends it, any other key when all is worked off."""
        for typed, group in groupby(keys, lambda key: len(key) == 1):
            if not typed:
                await self.pilot.press(*group)
                continue
            for char in group:
                assert self.app._driver is not None
                self.app._driver.send_message(events.Key(char if char.isalnum() else _character_to_key(char), char))
            await self.pilot.pause()

    @property
    def screen(self) -> CollaborationScreen:
        assert isinstance(self.app.base, CollaborationScreen)
        return self.app.base

    async def begin(self, text: str, language: str, schema: int) -> None:
        """`c` on the list, the answers, the preview, Enter."""
        await self.until(lambda: self.app.complete)
        await self.pilot.press("c")
        await self.until(lambda: isinstance(self.app.screen, NewScreen))
        await self.press(*text, "tab", *self.path.name, "tab", "end", *"bo", "tab", *text, "tab")
        await self.press(*["down"] * LANGUAGES.index(language), "tab", *["down"] * (schema - 1), "f2")
        await self.until(lambda: isinstance(self.app.screen, ConfirmScreen) and not self.app.screen.deaf)
        await self.pilot.press("enter")
        await self.until(lambda: isinstance(self.app.base, CollaborationScreen) and self.screen.view is not None)

    async def through(self, key: str, event: str, *keys: str) -> None:
        """One event by its key: the form, what is typed there, the preview, Enter."""
        seq = len(read(self.path).events)
        await self.pilot.press(key)
        await self.until(lambda: isinstance(self.app.screen, FormScreen) and self.app.screen.all_fields)
        await self.press(*keys, "f2")
        await self.until(lambda: isinstance(self.app.screen, PreviewScreen) and self.app.screen.plan is not None)
        await self.until(lambda: not self.app.screen.deaf)  # type: ignore[attr-defined]
        await self.pilot.press("enter")
        await self.until(lambda: self.app.screen is self.app.base)
        await self.until(lambda: self.screen.view.snapshot.last().seq == seq + 1)
        assert read(self.path).events[-1].name == event
        assert main(["validate", "--folder", str(self.path)]) == 0, event

    async def become(self, name: str) -> None:
        """`w`, and the other one."""
        await self.pilot.press("w")
        await self.until(lambda: isinstance(self.app.screen, ChooseScreen))
        await self.pilot.press("down" if name == "bo" else "up", "enter")
        await self.until(lambda: self.screen.view is not None and self.screen.view.me == name)


def lines(*texts: str) -> list[str]:
    """Keys that type these lines at the end of a text."""
    return ["ctrl+end", *(key for text in texts for key in (*text, "enter"))]


async def play(person: Person, language: str, schema: int) -> None:
    said = SAYS[language]
    await person.begin(said, language, schema)
    if schema == 2:
        # From the end up: a word below each heading.
        fill = ["tab", "ctrl+end", *said, *["up", "up", *said] * (SECTIONS - 1)]
        await person.through("m", "deliverable_drafted", *fill)
    await person.through("p", "proposal_submitted", *lines(said))
    await person.become("bo")
    await person.through("r", "review_submitted", *said)
    await person.become("ana")
    await person.through("u", "proposal_revised", *lines(said))
    decided = (f"### D1. {said}", "", f"- Decision: {said}", f"- Reflected in: `{REF}`")
    await person.through("P", "decision_proposed", *lines(*(decided if schema == 2 else (f"- {said}",))))
    await person.through("c", "question_classified", "tab", *said)
    await person.through("y", "decision_accepted")
    await person.become("bo")
    await person.through("y", "decision_accepted")
    await person.become("ana")
    if schema == 2:
        await person.through("Z", "deliverable_frozen")
    await person.through("R", "readiness_passed", "asterisk")
    await person.through("C", "completed", "tab", "tab", *said, "tab", "tab", "tab", *said)


@pytest.mark.parametrize(("language", "schema"), [*((code, 2) for code in LANGUAGES), ("en", 1), ("ja", 1)])
async def test_from_a_new_folder_to_completed_by_keys(
    console: Any, until: Until, tmp_path: Path, language: str, schema: int
) -> None:
    root = tmp_path / "work"
    root.mkdir()
    path = root / "talk"
    app = console(root, me="ana")
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await play(Person(app, pilot, until, path), language, schema)
    snapshot = read(path)
    assert (snapshot.state.phase, snapshot.findings) == ("completed", ())
    assert main(["validate", "--folder", str(path)]) == 0
    words = vocabulary()
    for name in ("review.md", "readiness.md", "conclusion.md"):
        assert language_of((path / name).read_text()) == language, name
    conclusion = (path / "conclusion.md").read_text()
    for heading in CONCLUSION_V2 if schema == 2 else CONCLUSION_V1:
        assert f"\n## {words.word(language, 'headings', heading)}\n" in conclusion
    assert f"- [{words.word(language, 'outcomes', 'proceed')}] {SAYS[language]}" in conclusion
    assert f"- {words.word(language, 'phrases', 'None.')}" in conclusion
    assert snapshot.events[0].summary == words.word(language, "phrases", "Collaboration initialized.")
    raw = json.loads((path / "protocol.json").read_text())
    assert raw.get("schemaVersion", 1) == schema
    if language == "en":
        agrees(path, schema)


def agrees(path: Path, schema: int) -> None:
    """The reference's validator says the same of an English folder, where a checkout of it is given."""
    variable, inside = REFERENCE[schema]
    root = os.environ.get(variable)
    if root is None:
        return
    script = Path(root) / inside / "validate_collaboration.py"
    argv = [sys.executable, str(script), "--folder", str(path)]
    done = subprocess.run(argv, capture_output=True, encoding="utf-8", timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
