"""A folder in each language, from the form that makes it to `completed`, by keys alone (docs/specs/acp.md §4)."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.keys import _character_to_key
from textual.pilot import Pilot
from textual.screen import Screen

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

REF = "deliverables/adr.md"
SECTIONS, PATIENCE = 6, 20.0
REFERENCE = {1: ("ACP_REFERENCE_V1", "scripts"), 2: ("ACP_REFERENCE_V2", "skills/agent-collaboration-protocol/scripts")}
SAYS = {"en": "Yes", "fr": "Décidé", "ja": "決めた", "it": "È sì", "zh": "已定"}


class Person:
    """Both participants at one console; every event goes through its form and its preview."""

    def __init__(self, app: ConsoleApp, pilot: Pilot[int], path: Path) -> None:
        self.app, self.pilot, self.path = app, pilot, path

    async def until(self, condition: Callable[[], object]) -> None:
        """Goes on as soon as it holds."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, "it never came to that"
            await asyncio.sleep(0.01)

    async def press(self, *keys: str) -> None:
        """Keys as a terminal sends them. What is bound to a key is done before a text goes on after it."""
        bound = False
        for key in keys:
            char = key if len(key) == 1 else None
            if char is not None and bound:
                await self.pilot.pause()
            bound = char is None
            named = key if char is None or char.isalnum() else _character_to_key(char)
            before, driver = self.app.focused, self.app._driver
            assert driver is not None
            driver.send_message(events.Key(named, char))
            if key == "tab":
                await self.until(lambda before=before: self.app.focused is not before)  # type: ignore[misc]

    @property
    def screen(self) -> CollaborationScreen:
        assert isinstance(self.app.base, CollaborationScreen)
        return self.app.base

    def at(self, screen: type[Screen[Any]]) -> bool:
        """Whether such a screen is on, and listens."""
        return isinstance(self.app.screen, screen) and self.app.focused is not None

    async def begin(self, text: str, language: str, schema: int) -> None:
        """`c` on the list, the answers, the preview, Enter."""
        await self.until(lambda: self.app.complete)
        await self.press("c")
        await self.until(lambda: self.at(NewScreen))
        await self.press(*text, "tab", *self.path.name, "tab", "end", *"bo", "tab", *text, "tab")
        await self.press(*["down"] * LANGUAGES.index(language), "tab", *["down"] * (schema - 1), "f2")
        await self.until(lambda: self.at(ConfirmScreen) and not self.app.screen.deaf)  # type: ignore[attr-defined]
        await self.press("enter")
        await self.until(lambda: isinstance(self.app.base, CollaborationScreen) and self.screen.view is not None)

    async def through(self, key: str, event: str, *keys: str) -> None:
        """One event by its key: the form, what is typed there, the preview, Enter."""
        seq = len(read(self.path).events)
        await self.press(key)
        await self.until(lambda: self.at(FormScreen))
        await self.press(*keys, "f2")
        await self.until(lambda: self.at(PreviewScreen) and self.app.screen.plan is not None)  # type: ignore[attr-defined]
        await self.until(lambda: not self.app.screen.deaf)  # type: ignore[attr-defined]
        await self.press("enter")
        await self.until(lambda: self.app.screen is self.app.base)
        await self.until(lambda: self.screen.view.snapshot.last().seq == seq + 1)  # type: ignore[union-attr]
        assert read(self.path).events[-1].name == event
        assert main(["validate", "--folder", str(self.path)]) == 0, event

    async def become(self, name: str) -> None:
        """`w`, and the other one."""
        await self.press("w")
        await self.until(lambda: self.at(ChooseScreen))
        await self.press("down" if name == "bo" else "up", "enter")
        await self.until(lambda: self.app.screen is self.app.base)
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


@pytest.mark.parametrize(
    ("language", "schema"),
    [*((code, 2) for code in LANGUAGES), ("en", 1), pytest.param("ja", 1, marks=pytest.mark.slow)],
)
async def test_from_a_new_folder_to_completed_by_keys(console: Any, tmp_path: Path, language: str, schema: int) -> None:
    root = tmp_path / "work"
    root.mkdir()
    path = root / "talk"
    app = console(root, me="ana")
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await play(Person(app, pilot, path), language, schema)
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
