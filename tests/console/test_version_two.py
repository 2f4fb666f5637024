"""A v2 folder in the console: begun, drafted, frozen and concluded by keys; what the Deliverables tab says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from core.acp.declare import Declaration
from core.acp.reader import read
from core.acp.templates import initialize
from core.files import sha256
from tui.forms.base import FormScreen
from tui.forms.preview import PreviewScreen
from tui.screens.choose import ChooseScreen
from tui.screens.declare import DeclarePreview, DeclareScreen
from tui.screens.new import NewPreview, NewScreen

REF = "deliverables/adr.md"


def begin(path: Path, clock: Any, language: str = "en") -> None:
    people = ["ana", "bob"]
    initialize(path, "Agree on the cache.", people, ["Measured"], clock, language, declared=Declaration("adr"))
    adr = path / REF
    adr.write_text(adr.read_text().replace("\n\n## ", "\n\nAgreed.\n\n## ") + "\nAgreed.\n")


async def test_a_french_folder_goes_to_completed_by_keys(
    console: Any, open_folder: Any, until: Any, drawn: Any, tmp_path: Path, clock: Any
) -> None:
    path = tmp_path / "talk"
    begin(path, clock, "fr")
    app = console(me="ana")
    async with app.run_test(size=(100, 40), notifications=True) as pilot:
        screen = await open_folder(pilot, path)

        async def through(key: str, event: str, *keys: str) -> None:
            seq = len(read(path).events)
            await pilot.press(key)
            await until(pilot, lambda: isinstance(app.screen, FormScreen) and app.screen.all_fields)
            await pilot.pause()
            await pilot.press(*keys, "f2")
            await until(pilot, lambda: isinstance(app.screen, PreviewScreen) and app.screen.plan is not None)
            await until(pilot, lambda: not app.screen.deaf)
            await pilot.press("enter")
            await until(pilot, lambda: app.screen is screen)
            await until(pilot, lambda: screen.view.snapshot.last().seq == seq + 1)
            assert read(path).events[-1].name == event
            assert [found for found in read(path).findings if found.severity == "error"] == []

        async def become(name: str) -> None:
            await pilot.press("w")
            assert isinstance(app.screen, ChooseScreen)
            await pilot.press("down" if name == "bob" else "up", "enter")
            await until(pilot, lambda: screen.view.me == name)

        await through("m", "deliverable_drafted")
        await through("p", "proposal_submitted")
        await become("bob")
        await through("r", "review_submitted", *"Bien", "tab", *"Rien")
        await become("ana")
        (path / "decisions.md").write_text(
            f"# D\n\n### D1. Une heure\n\n- Decision: Oui.\n- Reflected in: `{REF}#context`\n"
        )
        await through("u", "proposal_revised")
        await through("c", "question_classified", "tab", *"Qui paie")
        await through("y", "decision_accepted")
        await become("bob")
        await through("y", "decision_accepted")
        await become("ana")
        screen.go_tab("deliverables")
        await until(pilot, lambda: "not frozen" in "\n".join(drawn(app)))
        shown = "\n".join(drawn(app))
        assert "Context D1" in shown
        assert "generated gates 0/6" in shown
        assert "Primary deliverable SHA-256 snapshot recorded" in shown
        await through("Z", "deliverable_frozen")
        digest = sha256((path / REF).read_bytes())
        assert read(path).events[-1].sha256 == digest
        assert "Status: Frozen" in (path / REF).read_text()
        await until(pilot, lambda: f"sha256 {digest[:16]}" in "\n".join(drawn(app)))
        await through("R", "readiness_passed", "asterisk")
        await through("C", "completed", "tab", "tab", *"Assez", "tab", "tab", "tab", *"ana construit")
    assert "## Résultat de la Décision" in (path / "conclusion.md").read_text()
    assert digest in (path / "conclusion.md").read_text()
    assert read(path).findings == ()


async def test_a_supporting_deliverable_is_declared_after_a_preview(
    console: Any, open_folder: Any, until: Any, drawn: Any, tmp_path: Path, clock: Any
) -> None:
    path = tmp_path / "talk"
    begin(path, clock)
    app = console(me="ana")
    async with app.run_test(size=(100, 40), notifications=True) as pilot:
        screen = await open_folder(pilot, path)
        await pilot.press("D")
        await until(pilot, lambda: isinstance(app.screen, DeclareScreen))
        await pilot.press(*"../x.md", "f2")
        await until(pilot, lambda: "must be relative" in "\n".join(drawn(app)))
        await pilot.press(*["backspace"] * 7, *"plan.md", "tab", "down", "f2")
        await until(pilot, lambda: isinstance(app.screen, DeclarePreview) and not app.screen.deaf)
        shown = "\n".join(drawn(app))
        assert "supporting design-spec" in shown
        assert "collab deliverable add plan.md --type design-spec" in shown
        assert not (path / "deliverables/plan.md").exists()
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is screen)
        await until(pilot, lambda: "deliverables/plan.md" in "\n".join(drawn(app)))
    assert "## Non-goals" in (path / "deliverables/plan.md").read_text()
    assert read(path).findings == ()


async def test_a_new_folder_with_a_deliverable(console: Any, until: Any, drawn: Any, tmp_path: Path) -> None:
    app = console(tmp_path, me="ana")
    async with app.run_test(size=(100, 60), notifications=True) as pilot:
        await until(pilot, lambda: app.complete)
        await pilot.press("c")
        await until(pilot, lambda: isinstance(app.screen, NewScreen))
        await pilot.press(*"Agree", "tab", *"talk", "tab", "end", *"bob", "tab", *"Measured", "tab", "tab")
        await pilot.press("down", "tab", *"cache.md", "f2")
        await until(pilot, lambda: isinstance(app.screen, NewPreview) and not app.screen.deaf)
        shown = "\n".join(drawn(app))
        assert "deliverables/cache.md (adr)" in shown
        assert "Primary deliverable exists: `deliverables/cache.md`" in shown
        await pilot.press("enter")
        made = tmp_path / "talk/protocol.json"
        await until(pilot, made.exists)
    raw = json.loads((tmp_path / "talk/protocol.json").read_text())
    assert (raw["schemaVersion"], raw["deliverables"]["primary"]["file"]) == (2, "cache.md")
    assert read(tmp_path / "talk").findings == ()
