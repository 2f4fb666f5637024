"""A plan in the console: the console over its repository, its screen, its forms, by real keys."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from tests.conftest import console_script
from tests.unit.core.delegation.builders import DIGEST, Bench
from tui.app import ConsoleApp
from tui.forms.confirm import ConfirmScreen
from tui.forms.fields import LineField
from tui.screens.delegations import DelegationsScreen

ME = "ana"


async def ready(pilot: Any, until: Any, rows: int = 1) -> DelegationsScreen:
    """The screen with so many rows."""
    app = pilot.app
    await until(pilot, lambda: app.complete)
    await pilot.press("3")
    await until(pilot, lambda: isinstance(app.base, DelegationsScreen) and len(app.base.rows.rows) >= rows)
    screen = app.base
    assert isinstance(screen, DelegationsScreen)
    return screen


async def to(pilot: Any, screen: DelegationsScreen, name: str) -> None:
    """Put the cursor on a row by its keys."""
    await pilot.press("home")
    for _ in range(len(screen.rows.rows)):
        row = screen.rows.row
        if row is not None and row.id.endswith(f"\n{name}"):
            return
        await pilot.press("down")
    raise AssertionError(f"there is no row {name}")


async def form(pilot: Any, until: Any, key: str, kind: type[Any]) -> Any:
    """Open a form by its key."""
    await pilot.press(key)
    await until(pilot, lambda: isinstance(pilot.app.screen, kind))
    return pilot.app.screen


async def preview(pilot: Any, until: Any, *names: str) -> None:
    """Press keys, then wait until a preview is there and listens."""
    await pilot.press(*names)
    await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen) and not pilot.app.screen.deaf)


def text(drawn: Any, app: ConsoleApp) -> str:
    """What stands on the terminal."""
    return "\n".join(drawn(app))


def ledger(bench: Bench, *words: str) -> None:
    """Another process records something."""
    argv = [console_script(), "ledger", "--plan", str(bench.plan), *words]
    subprocess.run(argv, env={**os.environ, **bench.environ}, check=True, capture_output=True)


def payload(name: str, **more: Any) -> str:
    """What a launch is asked with."""
    known = {"transport": "headless", "via": "agentkit", "prompt_digest": DIGEST, "worktree": f"../{name}"}
    return json.dumps({**known, "delegation_id": name, **more})


async def type_into(pilot: Any, form: Any, key: str, words: str) -> None:
    """Replace what a field says, by typing."""
    field = form.query_one(f"#field-{key}")
    field.focus_control()
    await pilot.pause()
    if isinstance(field, LineField):
        await pilot.press("end", "ctrl+u")
    await pilot.press(*("space" if sign == " " else "full_stop" if sign == "." else sign for sign in words))
