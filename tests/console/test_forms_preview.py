"""Nothing is appended by one key: the preview."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from core.acp import guided, store, view
from core.acp.compose import ReviewText
from core.acp.reader import read
from core.acp.store import Appended
from core.files import Root
from core.lock import folder_lock
from tests.console.hosts import SIZES, Host, is_inert, running, settle
from tui.forms.acts import Act, GuidedAct, Writable
from tui.forms.bar import Bar
from tui.forms.confirm import ConfirmScreen, Deed
from tui.forms.preview import DEAF, PreviewScreen
from tui.forms.receipt import ReceiptView


class Ticker:
    """A monotonic clock that stands still until it is told to go on."""

    def __init__(self) -> None:
        self.value = 100.0

    def __call__(self) -> float:
        return self.value


@pytest.fixture
def ticker() -> Ticker:
    return Ticker()


@pytest.fixture
def talk(make_folder: Any, act: Any) -> Path:
    folder: Path = make_folder(participants=("server", "reader", "other"))
    act(folder, "server", "proposal_submitted")
    return folder


def review(folder: Path, text: str = "fine, two changes", who: str = "reader") -> GuidedAct:
    made = ReviewText(text, ["too slow"], ["say how long"], [])
    return GuidedAct(folder, guided.review(who, made), ("--position", text))


Open = Callable[..., Any]


@pytest.fixture
def preview(clock: Any, ticker: Ticker) -> Open:
    async def open_it(app: Host, pilot: Pilot[object], act: Writable, **more: Any) -> PreviewScreen:
        screen = PreviewScreen(act, clock=clock, monotonic=ticker, patience=0.05, **more)
        app.open(screen)
        await settle(pilot, lambda: screen.plan is not None or not screen._busy)
        return screen

    return open_it


def log(folder: Path) -> list[str]:
    return (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()


def body(app: Host) -> str:
    receipt = app.screen.query_one(ReceiptView)
    return "\n".join(receipt.plain_at(index) for index in range(receipt.line_count))


def flat(text: str) -> str:
    """Wrapped commands in one line."""
    return " ".join(text.replace("\\\n", " ").split())


async def test_it_reads_like_a_receipt_and_enter_writes_exactly_that(talk: Path, preview: Open, ticker: Ticker) -> None:
    before = (talk / "review.md").read_text()
    async with running(size=(120, 50)) as (app, pilot):
        await preview(app, pilot, review(talk))
        shown = body(app)
        line = next(part for part in shown.split("\n") if part.startswith('{"seq":3'))
        assert "+ ## 2026-03-01" in shown
        assert "+ - fine, two changes" in shown
        assert "Document review.md  +" in shown
        assert "stays in reviewing, then waiting for other" in shown
        assert f"collab review --folder {talk} --as reader --position 'fine, two changes'" in flat(shown)
        assert len(log(talk)) == 2, "nothing is written yet"
        ticker.value += 1
        await pilot.press("enter")
        await settle(pilot, lambda: app.results)
        assert isinstance(app.results[0], Appended)
        assert log(talk)[-1].startswith(line.rstrip())
        assert (talk / "review.md").read_text().startswith(before)
        assert not [item for item in read(talk).findings if item.severity == "error" and "review" in item.code]


async def test_keys_of_the_first_moment_do_nothing(talk: Path, preview: Open, ticker: Ticker) -> None:
    async with running() as (app, pilot):
        screen = await preview(app, pilot, review(talk))
        ticker.value += DEAF * 0.9
        await pilot.press("enter", "escape", "enter")
        await settle(pilot)
        assert app.screen is screen
        assert len(log(talk)) == 2
        ticker.value += DEAF * 0.2
        await pilot.press("escape")
        await settle(pilot, lambda: app.results)
        assert app.results == [None]
        assert len(log(talk)) == 2


async def test_a_moved_log_is_said_and_asked_again(talk: Path, preview: Open, ticker: Ticker, act: Any) -> None:
    async with running(size=(100, 44)) as (app, pilot):
        await preview(app, pilot, review(talk))
        act(talk, "other", "review_submitted", "mine \x1b[31m first")
        (talk / "decisions.md").write_text("# Decisions\n\n- other\n")
        ticker.value += 1
        await pilot.press("enter")
        await settle(pilot, lambda: "moved" in body(app))
        shown = body(app)
        assert "new event: 3 other review_submitted “mine ␛[31m first”" in shown
        assert "changed: decisions.md +1 −" in shown
        assert '{"seq":4' in shown
        assert "reviewing → revising, then waiting for server" in shown
        assert len(log(talk)) == 3
        await pilot.press("enter")
        await settle(pilot)
        assert len(log(talk)) == 3, "the new preview ignores keys at first, too"
        ticker.value += 1
        await pilot.press("enter")
        await settle(pilot, lambda: app.results)
        assert json.loads(log(talk)[-1])["seq"] == 4
        assert "seq 4" in (talk / "review.md").read_text()


async def test_a_plain_event_is_bound_to_what_was_shown_too(
    talk: Path, preview: Open, ticker: Ticker, act: Any
) -> None:
    draft = view.default_draft(read(talk), "reader", "blocked")
    async with running(size=(100, 40)) as (app, pilot):
        await preview(app, pilot, Act(talk, draft))
        act(talk, "other", "review_submitted")
        ticker.value += 1
        await pilot.press("enter")
        await settle(pilot, lambda: "moved" in body(app))
        assert len(log(talk)) == 3
        ticker.value += 1
        await pilot.press("enter")
        await settle(pilot, lambda: app.results)
        assert json.loads(log(talk)[-1])["reply_to"] == 3, "it answers the latest event"


async def test_what_became_illegal_is_refused_with_its_reason(
    talk: Path, preview: Open, ticker: Ticker, act: Any
) -> None:
    async with running(size=(100, 40)) as (app, pilot):
        screen = await preview(app, pilot, review(talk))
        act(talk, "other", "blocked", "stop")
        ticker.value += 1
        await pilot.press("enter")
        await settle(pilot, lambda: screen.plan is None)
        shown = body(app)
        assert "is not allowed from phase blocked" in shown
        assert "new event: 3 other blocked" in shown
        assert "collab new-round --from" in shown
        ticker.value += 1
        await pilot.press("enter")
        await settle(pilot)
        assert len(log(talk)) == 3
        await pilot.press("escape")
        await settle(pilot, lambda: app.results)
        assert app.results == [None]


async def test_a_busy_lock_names_its_holder_and_nothing_is_lost(talk: Path, preview: Open, ticker: Ticker) -> None:
    async with running(size=(100, 40)) as (app, pilot):
        screen = await preview(app, pilot, review(talk))
        ticker.value += 1
        with Root(talk) as root, folder_lock(root):
            await pilot.press("enter")
            await settle(pilot, lambda: "locked by" in body(app))
            assert len(log(talk)) == 2
            assert screen.plan is not None
        ticker.value += 1
        await pilot.press("enter")
        await settle(pilot, lambda: app.results)
        assert len(log(talk)) == 3


async def test_an_illegal_act_shows_why_and_its_command(talk: Path, preview: Open, ticker: Ticker, clock: Any) -> None:
    draft = view.default_draft(read(talk), "reader", "proposal_revised")
    async with running(size=(100, 30)) as (app, pilot):
        screen = await preview(app, pilot, Act(talk, draft))
        assert screen.plan is None
        shown = body(app)
        assert "Refused; nothing was written" in shown
        assert "proposal_revised is not allowed from phase reviewing" in shown
        assert f"collab next --folder {talk} --participant reader" in flat(shown)
    gone = Act(talk.parent / "gone", draft)
    async with running(size=(100, 30)) as (app, pilot):
        await preview(app, pilot, gone)
        assert "there is no folder" in body(app)


async def test_a_plain_event_changes_no_document(talk: Path, preview: Open, ticker: Ticker) -> None:
    draft = view.default_draft(read(talk), "reader", "blocked")
    async with running(size=(100, 30)) as (app, pilot):
        await preview(app, pilot, Act(talk, draft))
        shown = body(app)
        assert "No document changes." in shown
        assert "reviewing → blocked, then waiting for nobody" in shown
        assert "collab append --folder" in shown
        ticker.value += 1
        await pilot.click(Bar, offset=(4, 1))
        await settle(pilot, lambda: app.results)
        assert json.loads(log(talk)[-1])["event"] == "blocked"


@pytest.mark.parametrize("size", SIZES)
async def test_the_bar_stays_and_the_body_scrolls(
    size: tuple[int, int], talk: Path, preview: Open, ticker: Ticker
) -> None:
    hostile = "\x1b]52;c;aGk=\x07 [/] \u202e 中文 " + "long words " * 60
    async with running(size=size) as (app, pilot):
        await preview(app, pilot, review(talk, hostile))
        for key in ("down", "pagedown", "end"):
            await pilot.press(key)
            await pilot.pause()
            rows = app.rows()
            assert "Enter append" in rows[-1]
            assert "Esc back" in rows[-1]
            assert all(is_inert(row) for row in rows)
        assert "The same as a command" in body(app)
        assert app.screen.query_one(ReceiptView).scroll_offset.y > 0


async def test_a_huge_change_is_cut_and_still_written_whole(
    talk: Path, preview: Open, ticker: Ticker, clock: Any
) -> None:
    text = "\n".join(f"line {number}" for number in range(30_000))
    draft = view.default_draft(read(talk), "reader", "blocked")
    change = store.Change("review.md", lambda event, old: text)
    async with running(size=(100, 30)) as (app, pilot):
        await preview(app, pilot, Act(talk, draft, change, command="collab block"))
        shown = body(app)
        assert "only its first 2000 lines are shown" in shown
        assert "+30000" in shown
        assert "collab block" in shown
        ticker.value += 1
        await pilot.press("enter")
        await settle(pilot, lambda: app.results)
        assert (talk / "review.md").read_text() == text


@pytest.mark.parametrize("kind", ["event", "deed"])
async def test_its_first_moments_begin_when_it_is_shown(talk: Path, ticker: Ticker, clock: Any, kind: str) -> None:
    """However long it took to come: a key that was pressed before is meant for something else."""
    done: list[str] = []
    deed = Deed("here", [("Writes", ["a line"])], "collab x", lambda: done.append("done") or "done")
    event = PreviewScreen(review(talk), clock=clock, monotonic=ticker)
    screen = event if kind == "event" else ConfirmScreen(deed, ticker)
    ticker.value += 10
    assert screen.deaf
    before = log(talk)
    async with running(size=SIZES[0]) as (app, pilot):
        app.push_screen(screen)
        await settle(pilot, lambda: app.screen is screen and screen.is_mounted and (kind == "deed" or event.plan))
        assert screen.deaf
        await pilot.press("enter")
        assert (app.screen, log(talk), done) == (screen, before, [])
        ticker.value += DEAF + 0.01
        await pilot.press("enter")
        await settle(pilot, lambda: app.screen is not screen)
    assert (len(log(talk)) - len(before), done) == ((1, []) if kind == "event" else (0, ["done"]))
