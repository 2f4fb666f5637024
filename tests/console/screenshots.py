"""Makes the pictures of the README: `.venv/bin/python tests/console/screenshots.py docs/screenshots`.

The demo's samples, a clock that goes on by fixed steps, real keys; each picture is an SVG that Textual draws.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

sys.path.insert(0, str(Path(__file__).parents[2]))

from core import clock
from core.state import UserState
from tests.console import workflow_root
from tests.unit.core.workflow.stage import Stepped
from tui.app import ConsoleApp
from tui.cli import demo, demo_plan
from tui.forms.base import FormScreen
from tui.forms.escalation import AnswerForm
from tui.forms.preview import PreviewScreen
from tui.screens.changes import DiffScreen
from tui.screens.collaboration import CollaborationScreen
from tui.screens.story import StoryScreen
from tui.settings import Loaded, Settings

START = datetime(2026, 3, 2, 14, 2, tzinfo=UTC)
WIDE, NARROW = (120, 36), (80, 24)
PLACE = Path("/tmp/collab-demo")
"""Where the samples are made: the path is in the pictures."""


class StepClock:
    """Goes on by seven minutes at each event that is written, and stands still while the console looks."""

    def __init__(self) -> None:
        self.moment, self.step = START, timedelta(minutes=7)

    def now(self) -> datetime:
        self.moment += self.step
        return self.moment


async def until(pilot: Pilot[int], ready: Callable[[], object]) -> None:
    """Wait for a condition; a picture of anything else is worth nothing."""
    deadline = time.monotonic() + 20
    while not ready():
        if time.monotonic() > deadline:
            raise SystemExit("the console did not come to what was to be drawn")
        await pilot.pause(0.02)
    await settled(pilot)


async def settled(pilot: Pilot[int]) -> None:
    """Until nothing is being prepared any more."""
    waiting = {"hint", "document", "diff", "changes", "story", "entry", "past"}
    for _ in range(200):
        await pilot.pause(0.02)
        busy = [one for one in pilot.app.workers if one.group in waiting and not one.is_finished]
        if not busy:
            break
    await pilot.pause(0.05)


async def opened(pilot: Pilot[int], app: ConsoleApp, name: str) -> CollaborationScreen:
    """The screen of one sample."""
    await until(pilot, lambda: app.complete)
    await app.open_folder(PLACE / name)
    await until(pilot, lambda: isinstance(app.screen, CollaborationScreen) and app.screen.view is not None)
    assert isinstance(app.screen, CollaborationScreen)
    return app.screen


async def inbox(pilot: Pilot[int], app: ConsoleApp) -> None:
    await until(pilot, lambda: app.complete)


async def collaboration(pilot: Pilot[int], app: ConsoleApp) -> None:
    await opened(pilot, app, demo.YOURS)


async def review(pilot: Pilot[int], app: ConsoleApp) -> None:
    await opened(pilot, app, demo.YOURS)
    await pilot.press("r")
    await until(pilot, lambda: isinstance(app.screen, FormScreen) and app.screen.all_fields)
    await pilot.press(*"Fine, with one change", "tab", "tab", *"Name who may clear the cache")
    await settled(pilot)


async def preview(pilot: Pilot[int], app: ConsoleApp) -> None:
    await review(pilot, app)
    await pilot.press("f2")
    await until(pilot, lambda: isinstance(app.screen, PreviewScreen) and app.screen.plan is not None)


async def diff(pilot: Pilot[int], app: ConsoleApp) -> None:
    await opened(pilot, app, demo.DONE_ONE)
    await pilot.press("d")
    await until(pilot, lambda: isinstance(app.screen, DiffScreen) and app.screen.context().parts)
    await pilot.press("t")
    await settled(pilot)


async def story(pilot: Pilot[int], app: ConsoleApp) -> None:
    screen = await opened(pilot, app, demo.DONE_ONE)
    screen.go_tab("decisions.md")
    await pilot.press("s", "enter")
    await until(pilot, lambda: isinstance(app.screen, StoryScreen) and app.screen.moments)
    while (
        isinstance(app.screen, StoryScreen) and app.screen.moments[app.screen.current].event.name != "decision_proposed"
    ):
        await pilot.press("right")
        await settled(pilot)


async def stepping(pilot: Pilot[int], app: ConsoleApp) -> None:
    screen = await opened(pilot, app, demo.DONE_ONE)
    screen.go_tab("proposal.md")
    screen.step_to(3)
    await until(pilot, lambda: screen.past is not None)


async def delegations(pilot: Pilot[int], app: ConsoleApp) -> None:
    await until(pilot, lambda: app.complete)
    await pilot.press("3")
    await until(pilot, lambda: app.base is not None and "T-warm" in shown(app))
    await pilot.press("down", "down", "down", "down")
    await settled(pilot)


async def workflows(pilot: Pilot[int], app: ConsoleApp) -> None:
    await until(pilot, lambda: app.complete)
    await pilot.press("4")
    await until(pilot, lambda: "Waits for an answer" in shown(app))


async def answer(pilot: Pilot[int], app: ConsoleApp) -> None:
    await workflows(pilot, app)
    await pilot.press("a")
    await until(pilot, lambda: isinstance(app.screen, AnswerForm))
    await settled(pilot)


def shown(app: ConsoleApp) -> str:
    """What is on the screen, as text."""
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


Draw = Callable[[Pilot[int], ConsoleApp], Awaitable[None]]
PICTURES: tuple[tuple[str, Draw, tuple[int, int], str], ...] = (
    ("inbox", inbox, WIDE, "dark"),
    ("collaboration", collaboration, WIDE, "dark"),
    ("review", review, WIDE, "dark"),
    ("preview", preview, WIDE, "dark"),
    ("diff", diff, WIDE, "dark"),
    ("story", story, WIDE, "dark"),
    ("stepping", stepping, WIDE, "dark"),
    ("delegations", delegations, WIDE, "dark"),
    ("workflows", workflows, WIDE, "dark"),
    ("answer", answer, WIDE, "dark"),
    ("collaboration-light", collaboration, NARROW, "light"),
    ("inbox-light", inbox, NARROW, "light"),
)


async def picture(draw: Draw, size: tuple[int, int], theme: str, moment: datetime) -> str:
    """One SVG."""
    with tempfile.TemporaryDirectory() as state:
        UserState(Path(state)).save("hints.json", {"first": True})
        environ = {"COLLAB_STATE": state, "PATH": os.environ.get("PATH", "")}
        loaded = Loaded(Settings(theme=theme, reduced_motion=True), Path(state) / "config.toml", found=False)
        app = ConsoleApp([PLACE], demo.YOU, loaded, clock=_Still(moment), environ=environ)
        async with app.run_test(size=size, notifications=True) as pilot:
            await draw(pilot, app)
            return app.export_screenshot(title="collab")


class _Still:
    """The moment at which the pictures are taken."""

    def __init__(self, moment: datetime) -> None:
        self._moment = moment

    def now(self) -> datetime:
        return self._moment


def main(argv: list[str]) -> int:
    """Draw every picture into a folder."""
    if len(argv) != 2:
        print(f"usage: {argv[0]} FOLDER", file=sys.stderr)
        return 2
    os.environ["TZ"] = "UTC"
    time.tzset()
    os.environ.pop("NO_COLOR", None)
    target = Path(argv[1])
    target.mkdir(parents=True, exist_ok=True)
    steps = StepClock()
    real: Any = clock.SystemClock.now
    clock.SystemClock.now = lambda _: steps.now()  # type: ignore[method-assign]
    try:
        with suppress(FileNotFoundError):
            shutil.rmtree(PLACE)
        PLACE.mkdir()
        demo.build(PLACE)
        moment = steps.now()
        demo_plan.build(PLACE / "cache-rollout", _Still(moment))
        workflow_root.sample(PLACE / "pages", Stepped(moment - timedelta(hours=1)))
        for name, draw, size, theme in PICTURES:
            svg = asyncio.run(picture(draw, size, theme, moment))
            (target / f"{name}.svg").write_text(svg, encoding="utf-8")
            print(target / f"{name}.svg")
    finally:
        clock.SystemClock.now = real  # type: ignore[method-assign]
        shutil.rmtree(PLACE, ignore_errors=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv))
