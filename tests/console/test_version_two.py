"""The deliverables of a v2 folder in the console: declared, written, frozen; what the Deliverables tab says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from core.acp import guided, supporting
from core.acp.declare import Declaration
from core.acp.reader import read
from core.acp.templates import initialize
from core.files import sha256
from tui.forms.base import FormScreen
from tui.forms.confirm import ConfirmScreen
from tui.forms.guided import DeliverableForm
from tui.forms.preview import PreviewScreen
from tui.screens.declare import DeclareScreen
from tui.screens.new import NewScreen

REF, PLAN = "deliverables/adr.md", "deliverables/plan.md"


def begin(path: Path, clock: Any, language: str = "en") -> None:
    people = ["ana", "bob"]
    initialize(path, "Agree on the cache.", people, ["Measured"], clock, language, declared=Declaration("adr"))
    adr = path / REF
    adr.write_text(adr.read_text().replace("\n\n## ", "\n\nAgreed.\n\n## ") + "\nAgreed.\n")


def to_readiness(path: Path, clock: Any) -> None:
    """Everything up to the freeze, by the core."""

    def done(*acts: guided.Act) -> None:
        for act in acts:
            guided.commit(path, act, clock)

    done(guided.deliver(read(path), "ana"), guided.submit("ana"))
    done(guided.review("bob", guided.compose.ReviewText("Bien")))
    (path / "decisions.md").write_text(
        f"# D\n\n### D1. Une heure\n\n- Decision: Oui.\n- Reflected in: `{REF}#context`\n"
    )
    done(guided.submit("ana", revise=True), guided.classify("ana", guided.compose.Classification(["Qui paie"])))
    done(*(guided.decisions(name, None, accept=True) for name in ("ana", "bob")))


async def test_the_deliverables_tab_says_what_is_frozen(
    console: Any, open_folder: Any, until: Any, drawn: Any, tmp_path: Path, clock: Any
) -> None:
    path = tmp_path / "talk"
    begin(path, clock, "fr")
    to_readiness(path, clock)
    app = console(me="ana")
    async with app.run_test(size=(100, 40), notifications=True) as pilot:
        screen = await open_folder(pilot, path)
        screen.go_tab("deliverables")
        await until(pilot, lambda: "not frozen" in "\n".join(drawn(app)))
        shown = "\n".join(drawn(app))
        assert "Context D1" in shown
        assert "generated gates 0/6" in shown
        assert "Primary deliverable SHA-256 snapshot recorded" in shown
        await pilot.press("Z")
        await until(pilot, lambda: isinstance(app.screen, FormScreen) and app.screen.all_fields)
        await pilot.press("f2")
        await until(pilot, lambda: isinstance(app.screen, PreviewScreen) and app.screen.plan is not None)
        assert app.screen.act.command_line(app.screen.plan) == f"collab freeze --folder {path} --as ana"
        await until(pilot, lambda: not app.screen.deaf)
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is screen)
        digest = sha256((path / REF).read_bytes())
        await until(pilot, lambda: f"sha256 {digest[:16]}" in "\n".join(drawn(app)))
    assert read(path).events[-1].sha256 == digest
    assert read(path).events[-1].summary == "Livrable principal figé."
    assert "Status: Frozen" in (path / REF).read_text()


async def test_a_deliverable_is_written_and_recorded_in_one_form(
    console: Any, open_folder: Any, until: Any, tmp_path: Path, clock: Any
) -> None:
    """`m`: its text and the event together; which event it is follows from the log."""
    path = tmp_path / "talk"
    begin(path, clock)
    supporting.add(path, "ana", "plan.md", "test-plan", clock=clock)
    app = console(me="ana")
    async with app.run_test(size=(100, 50), notifications=True) as pilot:
        screen = await open_folder(pilot, path)

        async def through(*keys: str) -> str:
            await pilot.press("m")
            await until(pilot, lambda: isinstance(app.screen, DeliverableForm) and app.screen.all_fields)
            await pilot.press(*keys, "f2")
            await until(pilot, lambda: isinstance(app.screen, PreviewScreen) and app.screen.plan is not None)
            await until(pilot, lambda: not app.screen.deaf)
            command: str = app.screen.act.command_line(app.screen.plan)
            await pilot.press("enter")
            await until(pilot, lambda: app.screen is screen)
            return command.removeprefix(f"collab draft --folder {path} --as ana")

        before = (path / REF).read_text()
        assert await through() == ""
        assert (path / REF).read_text() == before
        assert await through("tab", "ctrl+home", *"Our ") == " --file -"
        assert (path / REF).read_text() == "Our " + before
        # The other one has a text of its own; going back and forth loses nothing.
        typed = ("tab", *"lost", "shift+tab", "down", "tab", "ctrl+end", *"New", "shift+tab", "up", "down")
        assert await through(*typed) == f" --doc {PLAN} --file -"
        assert (path / "deliverables/plan.md").read_text().endswith("\nNew\n")
        assert (path / REF).read_text() == "Our " + before
        await through("down")
    made = [(event.name, event.doc, event.role, event.summary) for event in read(path).events[1:]]
    assert made == [
        ("deliverable_drafted", REF, "primary", "Primary deliverable drafted."),
        ("deliverable_drafted", REF, "primary", "Primary deliverable drafted."),
        (
            "deliverable_drafted",
            "deliverables/plan.md",
            "supporting",
            "Supporting deliverable deliverables/plan.md drafted.",
        ),
        (
            "deliverable_revised",
            "deliverables/plan.md",
            "supporting",
            "Supporting deliverable deliverables/plan.md revised.",
        ),
    ]
    assert read(path).findings == ()


async def test_what_was_typed_about_a_deliverable_is_kept(
    console: Any, open_folder: Any, until: Any, tmp_path: Path, clock: Any
) -> None:
    """Across restarts, for the form that writes one and for the form that declares one."""
    path = tmp_path / "talk"
    begin(path, clock)
    app = console(me="ana")
    async with app.run_test(size=(100, 40), notifications=True) as pilot:
        await open_folder(pilot, path)
        await pilot.press("D")
        await until(pilot, lambda: isinstance(app.screen, DeclareScreen))
        await pilot.press(*"plan.md", "tab", "down", "down", "tab", *"One", "escape")
        await pilot.press("m")
        await until(pilot, lambda: isinstance(app.screen, DeliverableForm) and app.screen.all_fields)
        await pilot.press("tab", "ctrl+home", *"Half", "escape")
        await until(pilot, lambda: len(list((tmp_path / "person/drafts").glob("*.json"))) == 2)
    assert not (path / "deliverables/plan.md").exists()
    app = console(me="ana")
    async with app.run_test(size=(100, 40), notifications=True) as pilot:
        screen = await open_folder(pilot, path)
        await pilot.press("m")
        await until(pilot, lambda: isinstance(app.screen, DeliverableForm) and app.screen.all_fields)
        assert app.screen.text_of("text").startswith("Half# ")
        await pilot.press("escape", "D")
        await until(pilot, lambda: isinstance(app.screen, DeclareScreen))
        await until(pilot, lambda: app.screen.line("file") == "plan.md")
        assert app.screen.items("checks") == ("One",)
        await pilot.press("f2")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen) and not app.screen.deaf)
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is screen)
        assert "## Phases" in (path / "deliverables/plan.md").read_text()
        # What was declared is no draft any more.
        await until(pilot, lambda: len(list((tmp_path / "person/drafts").glob("*.json"))) == 1)
        await pilot.press("D")
        await until(pilot, lambda: isinstance(app.screen, DeclareScreen))
        await pilot.press(*"x.md", "escape", "D")
        await until(pilot, lambda: isinstance(app.screen, DeclareScreen) and app.screen.line("file") == "x.md")
        await pilot.press("ctrl+n")
        await until(pilot, lambda: app.screen.line("file") == "")
        await until(pilot, lambda: len(list((tmp_path / "person/drafts").glob("*.json"))) == 1)


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
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen) and not app.screen.deaf)
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
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen) and not app.screen.deaf)
        shown = "\n".join(drawn(app))
        assert "deliverables/cache.md (adr)" in shown
        assert "Primary deliverable exists: `deliverables/cache.md`" in shown
        await pilot.press("enter")
        made = tmp_path / "talk/protocol.json"
        await until(pilot, made.exists)
    raw = json.loads((tmp_path / "talk/protocol.json").read_text())
    assert (raw["schemaVersion"], raw["deliverables"]["primary"]["file"]) == (2, "cache.md")
    assert read(tmp_path / "talk").findings == ()
