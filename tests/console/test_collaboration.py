"""One collaboration: tabs, rail, log, findings, and everything that other processes do to it."""

from __future__ import annotations

import gc
import json
import os
from pathlib import Path
from typing import Any

import pytest

from core.acp.model import Draft
from core.acp.reader import read
from core.acp.store import append
from tests.unit.core.acp.test_live import long_log
from tui.forms.base import FormScreen
from tui.reading import LONG
from tui.screens.collaboration import CollaborationScreen
from tui.screens.find import FindBar
from tui.screens.tabs import TabStrip
from tui.widgets.document import DocumentView
from tui.widgets.log import LogView

PROPOSAL = "# Proposal\n\n## Purpose\n\nKeep sessions for *an hour*.\n"


def tabs(screen: CollaborationScreen) -> list[str]:
    return screen._tab_ids()


async def test_it_shows_phases_document_log_and_rail(
    make_folder: Any, act: Any, console: Any, open_folder: Any, drawn: Any, until: Any
) -> None:
    path = make_folder()
    act(path, "server", "proposal_submitted", proposal=PROPOSAL)
    app = console(me="reader")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await open_folder(pilot, path)
        await until(pilot, lambda: "Keep sessions for an hour." in "\n".join(drawn(app)))
        shown = "\n".join(drawn(app))
        for part in (
            "● reviewing",
            "Your turn: review",
            "write a review",
            "proposal_submitted",
            "Waiting",
            "Gates",
            "The cache is measured",
            "r write a review",
        ):
            assert part in shown, part


async def test_tabs_go_round_by_keys(make_folder: Any, console: Any, open_folder: Any) -> None:
    app = console(me="server")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await open_folder(pilot, make_folder())
        names = tabs(screen)
        assert names == [
            "proposal.md", "review.md", "decisions.md", "readiness.md", "conclusion.md", "log", "findings",
        ]  # fmt: skip
        for name in [*names[1:], names[0]]:
            await pilot.press(">")
            assert screen._tab == name
            assert screen.focused is screen.pane_view()
        await pilot.press("<")
        assert screen._tab == "findings"
        await pilot.press("<")
        assert screen._tab == "log"


async def test_a_click_on_a_tab_opens_it(make_folder: Any, console: Any, open_folder: Any) -> None:
    app = console(me="server")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await open_folder(pilot, make_folder())
        strip = screen.query_one(TabStrip)
        start, _, _ = next(place for place in strip._places if place[2] == "decisions.md")
        await pilot.click(TabStrip, offset=(start + 2, 0))
        assert screen._tab == "decisions.md"


@pytest.mark.parametrize(
    ("size", "rail", "now", "strip"),
    [((120, 36), True, False, True), ((80, 24), False, True, True), ((60, 15), False, True, False)],
)
async def test_the_rail_folds_and_becomes_a_tab(
    size: tuple[int, int],
    rail: bool,
    now: bool,
    strip: bool,
    make_folder: Any,
    console: Any,
    open_folder: Any,
    drawn: Any,
) -> None:
    app = console(me="server")
    async with app.run_test(size=size, notifications=True) as pilot:
        screen = await open_folder(pilot, make_folder())
        await pilot.pause()
        assert screen.query_one("#rail").display is rail
        assert ("now" in tabs(screen)) is now
        assert screen.query_one("#strip").display is strip
        lines = drawn(app)
        assert len(lines) == size[1]
        assert "? help" in lines[-1]
        if not rail:
            assert any("Your turn: submit the proposal  p" in line for line in lines)
            await pilot.press("<")
            assert screen._tab == "now"
            assert "Waiting" in "\n".join(drawn(app))


async def test_resizing_takes_the_tab_away_with_its_room(
    make_folder: Any, console: Any, open_folder: Any, until: Any
) -> None:
    app = console(me="server")
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        screen = await open_folder(pilot, make_folder())
        await pilot.press("<")
        assert screen._tab == "now"
        await pilot.resize_terminal(130, 30)
        await until(pilot, lambda: screen._tab == "proposal.md")
        assert screen.query_one("#rail").display


async def test_what_another_process_appends_is_drawn(
    make_folder: Any, console: Any, open_folder: Any, until: Any, drawn: Any, collab: Any
) -> None:
    path = make_folder()
    app = console(me="reader")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await open_folder(pilot, path)
        assert "wait for the proposal owner" in "\n".join(drawn(app)).replace("Wait", "wait")
        done = collab(
            "append", "--folder", str(path), "--participant", "server", "--event", "proposal_submitted",
            "--summary", "here it is", "--doc", "proposal.md", "--reply-to", "1",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        await until(pilot, lambda: "here it is" in "\n".join(drawn(app)))
        shown = "\n".join(drawn(app))
        assert "● reviewing" in shown
        assert "Your turn" in shown
        assert app.waiting_count == 1


async def test_a_document_that_somebody_edits_is_shown_anew(
    make_folder: Any, console: Any, open_folder: Any, until: Any, drawn: Any
) -> None:
    path = make_folder()
    app = console(me="server")
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await open_folder(pilot, path)
        (path / "proposal.md").write_text("# New words\n", encoding="utf-8")
        await until(pilot, lambda: "New words" in "\n".join(drawn(app)))


async def test_the_findings_tab_shows_what_validate_says_and_goes_there(
    make_folder: Any, act: Any, console: Any, open_folder: Any, until: Any, drawn: Any
) -> None:
    path = make_folder()
    act(path, "server", "proposal_submitted")
    append(path, Draft("reader", "review_submitted", "fine", "review.md", 2))
    app = console(me="server")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await open_folder(pilot, path)
        await pilot.press("v")
        shown = "\n".join(drawn(app))
        cause = read(path).findings[0].cause
        assert cause[:50] in shown
        assert "review_heading_missing" in shown
        await pilot.press("enter")
        assert screen._tab == "review.md"


async def test_a_rewritten_log_is_an_error_for_whoever_saw_it_before(
    make_folder: Any, act: Any, console: Any, open_folder: Any, until: Any, drawn: Any
) -> None:
    path = make_folder()
    act(path, "server", "proposal_submitted", "what was really said")
    app = console(me="server")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await open_folder(pilot, path)
        assert screen.view.findings == ()
    log = path / "events.jsonl"
    log.write_text(log.read_text().replace("really said", "falsely put"), encoding="utf-8")
    (path / ".collab" / "history.jsonl").unlink()
    again = console(me="server")
    async with again.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await open_folder(pilot, path)
        assert [found.code for found in screen.view.findings] == ["log_rewritten"]
        await pilot.press("v")
        assert "earlier lines must never change" in "\n".join(drawn(again))


async def test_an_edit_out_of_turn_is_a_warning(
    make_folder: Any, act: Any, console: Any, open_folder: Any, until: Any
) -> None:
    path = make_folder()
    act(path, "server", "proposal_submitted")
    app = console(me="server")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await open_folder(pilot, path)
        (path / "proposal.md").write_text("# Changed while it is reviewed\n", encoding="utf-8")
        await until(pilot, lambda: [found.code for found in screen.view.findings] == ["edit_out_of_turn"])


async def test_a_broken_folder_is_one_finding_never_a_blank_screen(
    make_folder: Any, console: Any, open_folder: Any, until: Any, drawn: Any
) -> None:
    path = make_folder()
    (path / "protocol.json").write_text('{"objective": ', encoding="utf-8")
    app = console(me="server")
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        screen = await open_folder(pilot, path)
        assert screen._tab == "findings"
        assert "invalid protocol.json" in "\n".join(drawn(app))
        await pilot.press("r")
        await until(pilot, lambda: "not now" in "\n".join(drawn(app)))
        assert app.screen is screen


async def test_a_folder_that_goes_away_and_comes_back(
    make_folder: Any, act: Any, console: Any, open_folder: Any, until: Any, drawn: Any, tmp_path: Path
) -> None:
    path = make_folder()
    app = console(me="server")
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await open_folder(pilot, path)
        path.rename(tmp_path / "elsewhere")
        await until(pilot, lambda: "there is no folder" in "\n".join(drawn(app)))
        (tmp_path / "elsewhere").rename(path)
        await until(pilot, lambda: "● drafting" in "\n".join(drawn(app)))
        act(path, "server", "proposal_submitted")
        await until(pilot, lambda: "● reviewing" in "\n".join(drawn(app)).replace("◐", "●"))


async def test_unreadable_files_are_said_in_their_place(
    make_folder: Any, console: Any, open_folder: Any, until: Any, drawn: Any
) -> None:
    path = make_folder()
    (path / "proposal.md").unlink()
    os.symlink("/etc/passwd", path / "proposal.md")
    (path / "review.md").unlink()
    os.mkfifo(path / "review.md")
    app = console(me="server")
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await open_folder(pilot, path)
        await until(pilot, lambda: "symbolic link" in "\n".join(drawn(app)))
        assert "root:" not in "\n".join(drawn(app))
        await pilot.press("e")
        await until(pilot, lambda: "links are not followed" in "\n".join(drawn(app)))
        await pilot.press(">")
        await until(pilot, lambda: "not a regular file" in "\n".join(drawn(app)))


async def test_enter_on_an_event_opens_its_document_and_o_what_it_answers(
    make_folder: Any, act: Any, console: Any, open_folder: Any
) -> None:
    path = make_folder()
    act(path, "server", "proposal_submitted")
    act(path, "reader", "review_submitted")
    app = console(me="server")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await open_folder(pilot, path)
        screen.go_tab("log")
        await pilot.pause()
        log = screen.query_one("#whole-log", LogView)
        assert log.selected is not None
        assert log.selected.seq == 3
        await pilot.press("o")
        assert log.selected.seq == 2
        await pilot.press("enter")
        assert screen._tab == "proposal.md"


async def test_the_log_is_filtered_and_found(
    make_folder: Any, act: Any, console: Any, open_folder: Any, until: Any
) -> None:
    path = make_folder()
    act(path, "server", "proposal_submitted")
    act(path, "reader", "review_submitted", "nothing to add")
    app = console(me="server")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await open_folder(pilot, path)
        await pilot.press("f")
        assert not screen.query_one(FindBar).is_open, "there is nothing to filter outside the log"
        screen.go_tab("log")
        await pilot.pause()
        log = screen.query_one("#whole-log", LogView)
        await pilot.press("f", *"reader")
        assert log.line_count == 1
        await pilot.press("escape")
        assert log.line_count == 3
        await pilot.press("slash", *"nothing")
        await until(pilot, lambda: log.matches == 1)
        await pilot.press("escape")
        assert log.matches == 0


async def test_find_in_a_document_counts_and_walks(
    make_folder: Any, console: Any, open_folder: Any, until: Any, drawn: Any
) -> None:
    path = make_folder()
    (path / "proposal.md").write_text("# One\n\nword\n\nword\n\nother\n\nword\n", encoding="utf-8")
    app = console(me="server")
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        screen = await open_folder(pilot, path)
        await until(pilot, lambda: screen.query_one("#doc-proposal", DocumentView).whole)
        await pilot.press("slash", *"WORD")
        await until(pilot, lambda: "1 of 3" in "\n".join(drawn(app)))
        await pilot.press("enter")
        await until(pilot, lambda: "2 of 3" in "\n".join(drawn(app)))
        await pilot.press("up")
        await until(pilot, lambda: "1 of 3" in "\n".join(drawn(app)))


async def test_a_long_log_is_shown_first_and_then_what_is_remembered_of_it(
    quick_path: Path, clock: Any, act: Any, console: Any, open_folder: Any, until: Any, drawn: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    path = quick_path / "long"
    long_log(path, clock, LONG + 100, True)
    (path / "decisions.md").write_text("- Out of turn.\n", encoding="utf-8")
    views: list[Any] = []
    show = CollaborationScreen.show
    monkeypatch.setattr(CollaborationScreen, "show", lambda self, view: (views.append(view), show(self, view)))
    app = console(me="bob")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await open_folder(pilot, path)
        await until(pilot, lambda: any(one.code == "edit_out_of_turn" for one in screen.view.findings))
        known = [one.code for one in read(path).findings]
        # Where reading is quicker than drawing, what is remembered is there at once.
        first = [view for view in views if all(one.code != "edit_out_of_turn" for one in view.findings)]
        assert all([one.code for one in view.findings] == known for view in first)
        assert views[0].state == screen.view.state
        await until(pilot, lambda: gc.get_freeze_count() > LONG)
        act(path, "bob", "review_submitted", "as it came")
        await until(pilot, lambda: "as it came" in "\n".join(drawn(app)))
        assert screen.view.people[1].did == "review_submitted"
        await pilot.press("q")
        await until(pilot, lambda: gc.get_freeze_count() == 0)


@pytest.mark.parametrize(("key", "name"), [("p", "SubmitForm"), ("b", "BlockForm"), ("a", "AppendForm")])
async def test_an_act_opens_its_form_and_escape_comes_back(
    key: str, name: str, make_folder: Any, console: Any, open_folder: Any, until: Any
) -> None:
    path = make_folder()
    app = console(me="server")
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        screen = await open_folder(pilot, path)
        await pilot.press(key)
        await until(pilot, lambda: isinstance(app.screen, FormScreen))
        assert type(app.screen).__name__ == name
        await until(pilot, lambda: app.screen.snapshot is not None)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen)
        assert len(read(path).events) == 1, "nothing is appended by one key"


async def test_an_act_that_is_not_possible_says_why(
    make_folder: Any, console: Any, open_folder: Any, until: Any, drawn: Any
) -> None:
    path = make_folder()
    app = console(me="reader")
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        screen = await open_folder(pilot, path)
        await pilot.press("r")
        await until(pilot, lambda: "review_submitted is not allowed from phase" in "\n".join(drawn(app)))
        assert app.screen is screen


async def test_who_am_i_chooses_a_participant_of_this_folder(
    make_folder: Any, console: Any, open_folder: Any, until: Any, drawn: Any
) -> None:
    path = make_folder()
    app = console()
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        screen = await open_folder(pilot, path)
        assert screen.view.me is None
        assert "say who you are" in "\n".join(drawn(app)).lower()
        await pilot.press("w", "enter")
        await until(pilot, lambda: screen.view.me == "server")
        assert "as server" in drawn(app)[0]
        assert json.loads((app.user_state.folder / "identity.json").read_text())[str(path)] == "server"


async def test_e_edits_the_document_in_the_editor_and_reads_it_again(
    make_folder: Any, console: Any, open_folder: Any, until: Any, drawn: Any, tmp_path: Path
) -> None:
    path = make_folder()
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\nprintf "# Edited\\n" > "$1"\n', encoding="utf-8")
    editor.chmod(0o755)
    app = console(me="server", environ={"EDITOR": str(editor)})
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await open_folder(pilot, path)
        await pilot.press("e")
        await until(pilot, lambda: "Edited" in "\n".join(drawn(app)))
        assert (path / "proposal.md").read_text() == "# Edited\n"


async def test_e_is_refused_to_who_may_not_edit(
    make_folder: Any, console: Any, open_folder: Any, until: Any, drawn: Any
) -> None:
    path = make_folder()
    app = console(me="reader", environ={"EDITOR": "false"})
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await open_folder(pilot, path)
        await pilot.press("e")
        await until(pilot, lambda: "proposal.md is edited by server now" in "\n".join(drawn(app)))


async def test_a_missing_editor_is_a_sentence(
    make_folder: Any, console: Any, open_folder: Any, until: Any, drawn: Any
) -> None:
    path = make_folder()
    app = console(me="server", editor="no-such-editor --wait")
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await open_folder(pilot, path)
        await pilot.press("e")
        await until(pilot, lambda: "not installed" in "\n".join(drawn(app)))
