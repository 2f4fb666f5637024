"""The console over real folders, driven by real keys; notifications are on, so what a toast may break, breaks here."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from textual import _wait
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot

from core.acp import store
from core.acp.reader import read
from core.acp.view import default_draft
from tests.unit.core.delegation.builders import Bench
from tui.app import ConsoleApp
from tui.screens.collaboration import CollaborationScreen
from tui.settings import Loaded, Settings

PATIENCE = 10.0

# After each key a pilot waits until the process has been idle for this long, three times over.
_wait.SLEEP_GRANULARITY = 0.01
_parse_rules = Stylesheet._parse_rules
_parsed: dict[tuple[object, ...], list[RuleSet]] = {}


def _parse_once(sheet: Stylesheet, css: str, *rest: Any, **more: Any) -> list[RuleSet]:
    """Every app parses the same sheets again, a seventh of the time of these tests; one process parses them once."""
    key = (css, rest, frozenset(more.items()), frozenset(sheet._variables.items()))
    if key not in _parsed:
        _parsed[key] = _parse_rules(sheet, css, *rest, **more)
    return _parsed[key]


Stylesheet._parse_rules = _parse_once  # type: ignore[method-assign]


@pytest.fixture
def console(tmp_path: Path, clock: Any) -> Callable[..., ConsoleApp]:
    """`console(*roots, me=…, environ=…, **settings)`: an app that looks around every fifth of a second."""

    def make(*roots: Path, me: str | None = None, environ: dict[str, str] | None = None, **settings: Any) -> ConsoleApp:
        base = {"COLLAB_STATE": str(tmp_path / "person"), "PATH": "/usr/bin:/bin"}
        loaded = Loaded(Settings(**settings), tmp_path / "config.toml", found=False)
        return ConsoleApp(roots or (tmp_path,), me, loaded, clock=clock, environ={**base, **(environ or {})}, tick=0.2)

    return make


@pytest.fixture
def bench(quick_path: Path, clock: Any) -> Bench:
    """A repository with a plan folder that nobody materialized yet."""
    return Bench(quick_path, clock)


@pytest.fixture
def app(bench: Bench, console: Callable[..., ConsoleApp]) -> Callable[..., ConsoleApp]:
    """`app(**settings)`: a console over that repository."""

    def make(**settings: Any) -> ConsoleApp:
        return console(bench.repo, me="ana", environ=bench.environ, **settings)

    return make


Until = Callable[[Pilot[int], Callable[[], object]], Awaitable[None]]


@pytest.fixture
def until() -> Until:
    """`await until(pilot, condition)`: goes on as soon as the condition holds; fails after ten seconds."""

    async def wait(pilot: Pilot[int], condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, "it never came to that"
            await pilot.pause(0.01)
        await pilot.pause()

    return wait


@pytest.fixture
def act(clock: Any) -> Callable[..., None]:
    """`act(folder, participant, event, name=text…)`: appends as another participant would, documents first."""

    def append(folder: Path, who: str, event: str, summary: str = "", **documents: str) -> None:
        for name, text in documents.items():
            (folder / f"{name}.md").write_text(text, encoding="utf-8")
        draft = default_draft(read(folder), who, event)
        if summary:
            draft = type(draft)(
                draft.participant, draft.event, summary, draft.doc, draft.reply_to, draft.role, draft.sha256
            )
        clock.step(60)
        store.append(folder, draft, clock=clock)

    return append


@pytest.fixture
def open_folder(until: Until) -> Callable[[Pilot[int], Path], Awaitable[CollaborationScreen]]:
    """Open a folder and wait until it is shown."""

    async def open_it(pilot: Pilot[int], path: Path) -> CollaborationScreen:
        app = pilot.app
        assert isinstance(app, ConsoleApp)
        await until(pilot, lambda: app.complete)
        await app.open_folder(path)
        await until(pilot, lambda: isinstance(app.base, CollaborationScreen) and app.base.view is not None)
        screen = app.base
        assert isinstance(screen, CollaborationScreen)
        return screen

    return open_it


@pytest.fixture
def drawn() -> Callable[[ConsoleApp], list[str]]:
    """What stands on the terminal, line by line."""

    def lines(app: ConsoleApp) -> list[str]:
        strips: Sequence[Any] = app.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip).rstrip() for strip in strips]

    return lines
