"""Walking the log, stories and changes, by real keys: what is shown is what was, and nothing can be written there."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from core.acp import store
from core.acp.reader import read
from core.acp.rules import fold
from core.acp.timeline import Timeline
from core.acp.view import default_draft, gates
from tui.action import DIFF, FOLDER, STORY
from tui.actions import ACTIONS, entries
from tui.cli import demo
from tui.screens.changes import DiffScreen
from tui.screens.choose import ChooseScreen
from tui.screens.find import FindBar
from tui.screens.story import StoryScreen
from tui.widgets.diffview import DiffView


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A completed collaboration that was written by the verbs."""
    folder = tmp_path_factory.mktemp("samples")
    demo.play(folder / "done", demo.samples()[demo.DONE_ONE])
    return folder


@pytest.fixture
def done(samples: Path, tmp_path: Path) -> Path:
    shutil.copytree(samples / "done", tmp_path / "done")
    return tmp_path / "done"


async def test_every_step_shows_the_folder_as_it_was(
    done: Path, console: Any, open_folder: Any, until: Any, drawn: Any
) -> None:
    now = read(done)
    line = Timeline(now)
    app = console(me="reader")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await open_folder(pilot, done)
        last = len(now.events) - 1
        for index in range(last - 1, -1, -1):
            await pilot.press("comma" if index % 2 else "left_square_bracket")
            await until(pilot, lambda index=index: screen.past is not None and screen.past.past.index == index)
            assert screen.view.state == fold(now.setup, now.events[: index + 1]).state
            assert list(screen.view.gates) == gates(line.at(index))
            shown = "\n".join(drawn(app))
            assert f"as it was after seq {index + 1} of {last + 1}" in shown
            assert "0 returns to now" in shown
            assert screen._event().seq == index + 1
            for name in ("proposal.md", "readiness.md"):
                screen.go_tab(name)
                await pilot.pause()
                document = screen.pane_view().document
                assert document.sha256 == line.documents(index)[name].sha256
        await pilot.press("comma")
        assert screen.past.past.index == 0, "there is nothing before the first event"
        for _ in range(last):
            await pilot.press(".")
        await until(pilot, lambda: screen.past is not None and screen.past.past.index == last)
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: screen.past is None)
        assert "as it was" not in "\n".join(drawn(app))
        assert screen.view.state == now.state


async def test_nothing_is_written_in_the_past(
    make_folder: Any, act: Any, console: Any, open_folder: Any, until: Any, drawn: Any
) -> None:
    path = make_folder()
    act(path, "server", "proposal_submitted")
    app = console(me="reader")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await open_folder(pilot, path)
        await pilot.press("comma")
        await until(pilot, lambda: screen.past is not None)
        for entry in entries(screen.context(), app.keys):
            if entry.action.event is not None or entry.action.id in ("append", "edit"):
                assert entry.reason is not None, entry.action.id
                assert entry.reason.text == "this is the past; 0 returns to now"
        await pilot.press("r")
        await pilot.pause()
        assert app.screen is screen
        assert "this is the past" in "\n".join(drawn(app))
        assert len(read(path).events) == 2
        # An event that comes meanwhile is kept for the return.
        act(path, "reader", "review_submitted")
        await until(pilot, lambda: len(screen.now.snapshot.events) == 3)
        assert screen.view.past is not None
        await pilot.press("0")
        await until(pilot, lambda: screen.past is None)
        assert screen.view.state.phase == "revising"


async def test_a_moment_that_nobody_recorded_says_so(
    make_folder: Any, act: Any, console: Any, open_folder: Any, until: Any, drawn: Any
) -> None:
    path = make_folder()
    act(path, "server", "proposal_submitted", proposal="# First\n")
    act(path, "reader", "review_submitted")
    shutil.rmtree(path / ".collab")
    app = console(me="reader")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await open_folder(pilot, path)
        screen.go_tab("proposal.md")
        await pilot.press("comma")
        await until(pilot, lambda: screen.past is not None)
        await pilot.pause()
        shown = "\n".join(drawn(app))
        assert "the content of proposal.md at seq 2 is unknown" in shown
        assert "# First" not in shown
        assert "unknown then: " in shown


async def test_stepping_starts_at_the_event_under_the_cursor(
    done: Path, console: Any, open_folder: Any, until: Any
) -> None:
    app = console(me="reader")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await open_folder(pilot, done)
        screen.go_tab("log")
        await pilot.press("home", "down", "down", "comma")
        await until(pilot, lambda: screen.past is not None)
        assert screen.past.past.event.seq == 3


async def test_a_log_that_was_rewritten_ends_the_look_into_the_past(
    make_folder: Any, act: Any, console: Any, open_folder: Any, until: Any
) -> None:
    path = make_folder()
    act(path, "server", "proposal_submitted")
    app = console(me="reader")
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        screen = await open_folder(pilot, path)
        await pilot.press("comma")
        await until(pilot, lambda: screen.past is not None)
        log = path / "events.jsonl"
        log.write_text(log.read_text().replace("initialized.", "other."), encoding="utf-8")
        await until(pilot, lambda: screen.past is None)


# Stories.


async def test_the_story_of_a_decision_walks_by_arrows(
    done: Path, console: Any, open_folder: Any, until: Any, drawn: Any
) -> None:
    app = console(me="reader")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await open_folder(pilot, done)
        screen.go_tab("decisions.md")
        await pilot.press("s")
        assert isinstance(app.screen, ChooseScreen)
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(app.screen, StoryScreen) and app.screen.moments)
        story = app.screen
        assert story.about.text.startswith("Order: gateway")
        names = []
        for place in range(len(story.moments)):
            await until(pilot, lambda place=place: story.current == place)
            names.append(story.moments[story.current].event.name)
            await pilot.press("right")
        assert names[0] == "initialized"
        assert names[-1] == "completed"
        assert story.current == len(story.moments) - 1, "the last entry stays"
        while story.moments[story.current].event.name != "decision_proposed":
            await pilot.press("left")
        await until(pilot, lambda: "+ - Order: gateway" in "\n".join(drawn(app)))
        shown = "\n".join(drawn(app))
        assert f"{story.current + 1} of {len(story.moments)}" in shown
        assert "decision_proposed" in shown
        await pilot.press("o")
        await until(pilot, lambda: app.screen is screen and screen.past is not None)
        assert screen.past.past.event.name == "decision_proposed"


async def test_the_story_of_an_event_opens_at_it(
    done: Path, console: Any, open_folder: Any, until: Any, drawn: Any
) -> None:
    app = console(me="reader")
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        screen = await open_folder(pilot, done)
        screen.go_tab("log")
        await pilot.press("home", "down", "down", "s")
        await until(pilot, lambda: isinstance(app.screen, StoryScreen) and app.screen.moments)
        assert [one.event.seq for one in app.screen.moments] == [1, 2, 3]
        assert app.screen.current == 2
        await until(pilot, lambda: "review.md" in "\n".join(drawn(app)))
        await pilot.press("q")
        assert app.screen is screen


async def test_a_story_without_records_says_so(
    make_folder: Any, act: Any, console: Any, open_folder: Any, until: Any, drawn: Any
) -> None:
    path = make_folder()
    act(path, "server", "proposal_submitted")
    shutil.rmtree(path / ".collab")
    app = console(me="reader")
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await open_folder(pilot, path)
        await pilot.press("s")
        await until(pilot, lambda: "not written by this tool" in "\n".join(drawn(app)))


# Changes.


async def test_the_diff_since_my_review_and_between_two_events(
    done: Path, console: Any, open_folder: Any, until: Any, drawn: Any
) -> None:
    app = console(me="reader")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await open_folder(pilot, done)
        screen.go_tab("proposal.md")
        await pilot.press("d")
        await until(pilot, lambda: isinstance(app.screen, DiffScreen) and app.screen.context().parts)
        diff = app.screen
        assert diff.of_view.snapshot.events[diff.since].name == "review_submitted"
        await until(pilot, lambda: "Answers to the reviews" in "\n".join(drawn(app)))
        assert "your review" in "\n".join(drawn(app))
        assert "unified" in "\n".join(drawn(app))
        await pilot.press("t")
        await until(pilot, lambda: "side by side" in drawn(app)[1] + drawn(app)[2])
        assert app.screen.query_one(DiffView).side
        await pilot.press("greater_than_sign")
        await until(pilot, lambda: "decisions.md" in app.screen.query_one(DiffView).border_title)
        await pilot.press("u")
        assert isinstance(app.screen, ChooseScreen)
        await pilot.press("end", "up", "enter")
        await until(pilot, lambda: app.screen is diff and diff.until == 1)
        assert diff.since == 1, "the moments stay in their order"
        await pilot.press("f", "end", "enter")
        await until(pilot, lambda: diff.since == 0 and "seq 2" in "\n".join(drawn(app)))
        await pilot.press("q")
        assert app.screen is screen


@pytest.mark.parametrize("side", [False, True])
async def test_find_in_a_diff_counts_walks_and_lets_go(
    side: bool, make_folder: Any, act: Any, console: Any, open_folder: Any, until: Any, drawn: Any
) -> None:
    path = make_folder()
    act(path, "server", "proposal_submitted", proposal="# One\n\nOld word.\n\nSame.\n\nLast.\n")
    act(path, "reader", "review_submitted")
    (path / "proposal.md").write_text("# One\n\nNew WORD.\n\nSame.\n\nA word more.\n", encoding="utf-8")
    app = console(me="reader")
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        folder = await open_folder(pilot, path)
        await pilot.press("d")
        await until(pilot, lambda: isinstance(app.screen, DiffScreen) and app.screen.context().parts)
        diff = app.screen
        view = diff.query_one(DiffView)
        if side:
            await pilot.press("t")
        await until(pilot, lambda: view.line_count > 5)
        await pilot.press("slash", *"word")
        lines = 2 if side else 3
        await until(pilot, lambda: f"1 of {lines}" in "\n".join(drawn(app)))
        assert view.matches == lines
        await pilot.press("enter")
        await until(pilot, lambda: f"2 of {lines}" in "\n".join(drawn(app)))
        await pilot.press("up")
        await until(pilot, lambda: f"1 of {lines}" in "\n".join(drawn(app)))
        assert "word" in view.plain_at(view.search.shown).lower()
        # What is searched for stays so when the lines are laid out anew.
        await pilot.resize_terminal(100, 30)
        await until(pilot, lambda: view.text_width > 80 and view.matches == lines)
        await pilot.press("backspace", "backspace", *"zz")
        await until(pilot, lambda: "not found" in "\n".join(drawn(app)))
        await pilot.press("escape")
        assert app.screen is diff, "the first escape closes the line"
        assert view.matches == 0
        assert view.has_focus
        await pilot.press("slash")
        assert diff.query_one("#find-text").value == ""
        await pilot.press("escape", "escape")
        await until(pilot, lambda: app.screen is folder)


async def test_where_nothing_changed_there_is_nothing_to_find(
    make_folder: Any, act: Any, console: Any, open_folder: Any, until: Any, drawn: Any
) -> None:
    path = make_folder()
    act(path, "server", "proposal_submitted")
    act(path, "reader", "review_submitted")
    app = console(me="reader")
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await open_folder(pilot, path)
        await pilot.press("d")
        await until(pilot, lambda: isinstance(app.screen, DiffScreen) and app.screen.loaded)
        await pilot.press("slash")
        await until(pilot, lambda: "there is nothing to look through" in "\n".join(drawn(app)))
        assert not app.screen.query_one(FindBar).is_open


async def test_find_in_a_story_leaves_the_arrows_to_the_scrubber(
    done: Path, console: Any, open_folder: Any, until: Any, drawn: Any
) -> None:
    app = console(me="reader")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await open_folder(pilot, done)
        screen.go_tab("log")
        await pilot.press("home", "down", "down", "s")
        await until(pilot, lambda: isinstance(app.screen, StoryScreen) and app.screen.moments)
        view = app.screen.query_one(DiffView)
        await until(pilot, lambda: view.line_count > 3)
        await pilot.press("slash", *"position")
        await until(pilot, lambda: view.matches and f"1 of {view.matches}" in "\n".join(drawn(app)))
        await pilot.press("escape", "left")
        assert app.screen.current == 1
        assert view.matches == 0


async def test_five_thousand_lines_are_compared_in_a_thread(
    make_folder: Any, act: Any, console: Any, open_folder: Any, until: Any, drawn: Any
) -> None:
    path = make_folder()
    lines = [f"Line {number} of a long proposal." for number in range(5000)]
    act(path, "server", "proposal_submitted", proposal="\n".join(lines) + "\n")
    act(path, "reader", "review_submitted")
    for number in range(0, 5000, 11):
        lines[number] += " Changed."
    (path / "proposal.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    app = console(me="reader")
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await open_folder(pilot, path)
        await pilot.press("d")
        await until(pilot, lambda: isinstance(app.screen, DiffScreen) and app.screen.context().parts)
        await until(pilot, lambda: app.screen.query_one(DiffView).line_count > 1000)
        assert "+455 -455" in "\n".join(drawn(app))
        top = app.screen.query_one(DiffView).scroll_offset.y
        await pilot.press("pagedown")
        assert app.screen.query_one(DiffView).scroll_offset.y > top


async def test_hostile_text_is_inert_in_a_diff(
    make_folder: Any, act: Any, console: Any, open_folder: Any, until: Any, drawn: Any
) -> None:
    path = make_folder()
    act(path, "server", "proposal_submitted")
    act(path, "reader", "review_submitted")
    (path / "proposal.md").write_text("\x1b[2J\x1b]52;c;eA==\x07 [/bold] \u202e中文字符\n" * 3, encoding="utf-8")
    app = console(me="reader")
    async with app.run_test(size=(60, 15), notifications=True) as pilot:
        await open_folder(pilot, path)
        await pilot.press("d", "t")
        await until(pilot, lambda: "中" in "\n".join(drawn(app)))
        assert "\n".join(drawn(app)).replace("\n", "").isprintable()


async def test_change_marks_since_my_review_and_since_i_last_looked(
    make_folder: Any, act: Any, console: Any, open_folder: Any, until: Any, drawn: Any, clock: Any
) -> None:
    path = make_folder()
    act(path, "server", "proposal_submitted", proposal="# Proposal\n\nOne.\n")
    act(path, "reader", "review_submitted")
    (path / "proposal.md").write_text("# Proposal\n\nOne.\n\nTwo.\n", encoding="utf-8")
    store.append(path, default_draft(read(path), "server", "proposal_revised"), clock=clock)
    for since in ("since your review", "since you last looked"):
        app = console(me="reader")
        async with app.run_test(size=(120, 36), notifications=True) as pilot:
            screen = await open_folder(pilot, path)
            screen.go_tab("proposal.md")
            await pilot.pause()
            mark = screen.view.marks["proposal.md"]
            assert mark.since == since
            assert f"{since}" in "\n".join(drawn(app))
        (path / "proposal.md").write_text("# Proposal\n\nTwo.\n", encoding="utf-8")


@pytest.mark.parametrize("where", [FOLDER, DIFF, STORY])
def test_every_action_of_these_screens_has_a_verb_or_only_moves(where: str) -> None:
    only = {"find", "filter-log", "answered", "raw", "next-tab", "previous-tab", "story-on", "story-back"}
    for action in ACTIONS:
        if where in action.where and action.id not in only:
            assert action.verb is not None, action.id
