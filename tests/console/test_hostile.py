"""Whatever a confused or hostile agent wrote, nothing of it acts on the terminal and nothing crashes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.acp.model import DOCUMENTS
from core.sanitize import inert
from tui.screens.collaboration import CollaborationScreen
from tui.screens.help import HelpScreen

EVIL = (
    "[/]a[red]b[/red]\x1b[2J\x1b]52;c;aGk=\x07\u202eevil\u200b[@click=app.quit]x[/] "
    "$error \\[ [link=file:///etc] \x9b31m"
)
LONG = "漢字" * 40


def hostile(tmp_path: Path, **setup: Any) -> Path:
    """A folder with hostile text in every field of every file, and in its own name."""
    path = tmp_path / "ev\x1b[2J[red]il\n[b]"
    path.mkdir()
    people = [EVIL, "reader", f"[b]{LONG}"]
    raw = {
        "objective": EVIL + LONG,
        "participants": [{"id": name} for name in people],
        "completionGates": [EVIL, LONG],
        "currentPhase": EVIL,
        "proposalOwner": EVIL,
        "waitingFor": [EVIL],
        "createdAt": EVIL,
        "updatedAt": EVIL,
        EVIL: EVIL,
        **setup,
    }
    (path / "protocol.json").write_text(json.dumps(raw), encoding="utf-8")
    at = "2026-03-01T09:00:00Z"
    events: list[dict[str, Any]] = [
        {"seq": 1, "from": EVIL, "event": "initialized", "at": at, "summary": EVIL, "doc": EVIL},
        {"seq": 2, "from": EVIL, "event": "proposal_submitted", "at": at, "summary": EVIL, "doc": EVIL, "reply_to": 1},
        {
            "seq": 3,
            "from": EVIL,
            "event": EVIL,
            "at": EVIL,
            "summary": LONG,
            "doc": "../../x",
            "reply_to": 2,
            EVIL: EVIL,
        },
        {"seq": "x", "from": [EVIL], "event": {"a": EVIL}, "at": 3, "summary": None, "reply_to": True},
    ]
    lines = [json.dumps(event) for event in events]
    (path / "events.jsonl").write_text(
        "\n".join([*lines, "{" + EVIL, '{"seq": 5}']) + "\n{torn " + EVIL, encoding="utf-8"
    )
    for name in DOCUMENTS:
        text = f"# {EVIL}\n\n- [unresolved] {EVIL}\n\n## 2026 - {EVIL} - seq 3\n\n```\n{EVIL}\n```\n\n{LONG}\n"
        (path / name).write_bytes(text.encode() + b"\xff\xfe\x00\n")
    return path


def check(lines: list[str]) -> None:
    for line in lines:
        assert line == inert(line), f"something acts: {line!r}"


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 36)])
async def test_every_screen_shows_hostile_text_inert(
    size: tuple[int, int], console: Any, until: Any, open_folder: Any, drawn: Any, tmp_path: Path
) -> None:
    path = hostile(tmp_path)
    app = console(me="reader")
    async with app.run_test(size=size, notifications=True) as pilot:
        await until(pilot, lambda: app.complete)
        for key in ("1", "2"):
            await pilot.press(key)
            check(drawn(app))
        await open_folder(pilot, path)
        screen = app.screen
        assert isinstance(screen, CollaborationScreen)
        for name in screen._tab_ids():
            screen.go_tab(name)
            await pilot.pause()
            await pilot.press("down", "down")
            check(drawn(app))
        # Refusals name what was written, and so do toasts, dialogs, help, palette and forms.
        for key in ("r", "e", "p", "y"):
            await pilot.press(key)
        await pilot.pause()
        check(drawn(app))
        await pilot.press("w")
        check(drawn(app))
        await pilot.press("escape", "?")
        assert isinstance(app.screen, HelpScreen)
        await pilot.pause()
        check(drawn(app))
        await pilot.press("escape", "ctrl+p")
        await pilot.pause(0.1)
        check(drawn(app))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen)
        for key in ("a", "b"):
            await pilot.press(key)
            await pilot.pause(0.1)
            check(drawn(app))
            await app.to_base()
        assert app.is_running


async def test_a_hostile_participant_can_be_chosen(
    console: Any, until: Any, open_folder: Any, drawn: Any, tmp_path: Path
) -> None:
    path = hostile(tmp_path)
    app = console()
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        screen = await open_folder(pilot, path)
        await pilot.press("w", "enter")
        await until(pilot, lambda: screen.view.me == EVIL)
        check(drawn(app))
        assert "as [/]a[red]b" in drawn(app)[0]


async def test_toasts_are_data(console: Any, until: Any, drawn: Any) -> None:
    app = console()
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await until(pilot, lambda: app.complete)
        app.notify(EVIL, title=EVIL)
        app.screen.notify(EVIL, title=EVIL, markup=True)
        await pilot.pause(0.1)
        shown = drawn(app)
        check(shown)
        assert "[red]b[/red]" in "\n".join(shown)


@pytest.mark.parametrize(
    "setup",
    [
        {"participants": 3, "completionGates": "x"},
        {"participants": [[]], "objective": None},
        {"schemaVersion": 2, "protocol": "acp", "deliverables": {"primary": {"type": EVIL, "file": EVIL}}},
        {
            "schemaVersion": 2,
            "deliverables": {"mode": "external", "dir": "../..", "primary": {"file": "../../etc/passwd"}},
        },
        {"schemaVersion": EVIL, "deliverables": []},
    ],
)
async def test_wrong_types_are_findings(
    setup: dict[str, Any], console: Any, open_folder: Any, drawn: Any, tmp_path: Path
) -> None:
    path = hostile(tmp_path, **setup)
    app = console(me="reader")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await open_folder(pilot, path)
        for name in screen._tab_ids():
            screen.go_tab(name)
            await pilot.pause()
            check(drawn(app))
        assert screen.view.findings
