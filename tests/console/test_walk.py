"""From drafting to completed by keys alone at 80×24, each act through its form, in everybody's name in turn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.acp.reader import read
from tui.forms.base import FormScreen
from tui.forms.preview import PreviewScreen
from tui.screens.choose import ChooseScreen

EDITOR = """\
#!/bin/sh
case "$1" in
  */proposal.md) printf '# Proposal\\n\\n## Purpose\\n\\nKeep sessions for an hour.\\n' > "$1" ;;
  */decisions.md) printf '# Decisions\\n\\n## Accepted Decisions\\n\\n- Sessions live an hour.\\n' > "$1" ;;
esac
"""


@pytest.mark.slow
async def test_two_people_and_an_agent_take_a_folder_to_completed(
    make_folder: Any, act: Any, console: Any, open_folder: Any, until: Any, drawn: Any, collab: Any, tmp_path: Path
) -> None:
    path = make_folder(participants=("ana", "bob", "agent"), gates=("The cache is measured",))
    editor = tmp_path / "editor"
    editor.write_text(EDITOR, encoding="utf-8")
    editor.chmod(0o755)
    app = console(me="ana", environ={"EDITOR": str(editor)})
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        screen = await open_folder(pilot, path)

        def agent(event: str) -> None:
            line = collab(
                "append", "--folder", str(path), "--participant", "agent", "--event", event, "--summary", "agreed",
                "--reply-to", str(read(path).events[-1].seq),
            )  # fmt: skip
            assert line.returncode == 0, line.stderr

        async def through(key: str, event: str, *keys: str) -> None:
            """The form of a key: its fields, its preview, and back on the screen with the event in the log."""
            seq = len(read(path).events)
            await pilot.press(key)
            await until(pilot, lambda: isinstance(app.screen, FormScreen) and app.screen.all_fields)
            await pilot.pause()
            await pilot.press(*keys, "f2")
            await until(pilot, lambda: isinstance(app.screen, PreviewScreen) and app.screen.plan is not None)
            shown = "\n".join(drawn(app))
            assert "Enter append" in shown
            assert len(read(path).events) == seq, "nothing is appended before the preview was accepted"
            await until(pilot, lambda: not app.screen.deaf)
            await pilot.press("enter")
            await until(pilot, lambda: app.screen is screen)
            await until(pilot, lambda: screen.view.snapshot.last().seq == seq + 1)
            assert read(path).events[-1].name == event
            assert [found for found in read(path).findings if found.severity == "error"] == []

        async def become(name: str) -> None:
            await pilot.press("w")
            assert isinstance(app.screen, ChooseScreen)
            names = list(screen.view.participants)
            steps = names.index(name) - names.index(screen.view.me)
            await pilot.press(*["down" if steps > 0 else "up"] * abs(steps), "enter")
            await until(pilot, lambda: screen.view.me == name)

        await pilot.press("e")
        await until(pilot, lambda: b"an hour" in (path / "proposal.md").read_bytes())
        await through("p", "proposal_submitted")
        await become("bob")
        await through("r", "review_submitted", *"Fine", "tab", *"None")
        act(path, "agent", "review_submitted", "fine")
        review = (path / "review.md").read_text(encoding="utf-8")
        last = read(path).events[-1]
        (path / "review.md").write_text(f"{review}\n## {last.at} - agent - seq {last.seq}\n\nFine.\n", encoding="utf-8")
        await until(pilot, lambda: screen.view.state.phase == "revising")
        await become("ana")
        await through("u", "proposal_revised")
        await pilot.press(">")
        screen.go_tab("decisions.md")
        await pilot.pause()
        await pilot.press("e")
        await until(pilot, lambda: b"live an hour" in (path / "decisions.md").read_bytes())
        await through("c", "question_classified", "tab", *"Who pays", "enter", *"Who measures")
        await through("y", "decision_accepted")
        await become("bob")
        await through("y", "decision_accepted")
        agent("decision_accepted")
        await until(pilot, lambda: screen.view.state.phase == "readiness_check")
        await become("ana")
        await through("R", "readiness_passed", "asterisk")
        await through("C", "completed", "tab", "tab", *"It is enough", "tab", "tab", "tab", *"ana builds it")
        assert screen.view.state.phase == "completed"
        assert "stop; collaboration is complete" in "\n".join(drawn(app)).lower()
        await pilot.press("r")
        await until(pilot, lambda: "write a review: not now" in "\n".join(drawn(app)))
    done = collab("validate", "--folder", str(path))
    assert done.returncode == 0, done.stdout + done.stderr
