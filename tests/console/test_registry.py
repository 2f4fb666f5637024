"""Every action of the registry on the real console: by key, by palette, in help; and what one key can never do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from textual.app import ComposeResult
from textual.screen import ModalScreen
from textual.widgets import Input

from core.acp.model import DELIVERABLE_EVENTS
from core.acp.view import options
from tests.tables import table_in
from tests.tools_keys import README
from tui.action import ANYWHERE, DELEGATIONS, ECOSYSTEM, FOLDER, INBOX, LIST, RUN, TRIAGE, WORKFLOWS, Action
from tui.actions import ACTIONS, BY_ID, Keys, here, key_table_markdown, works_in_fields
from tui.app import ConsoleApp
from tui.screens.collaboration import CollaborationScreen
from tui.screens.help import HelpScreen
from tui.screens.palette import ActionProvider
from tui.screens.run import RunScreen
from tui.settings import load

NAMES = {"?": "question_mark", ":": "colon", "/": "slash", ">": "greater_than_sign", "<": "less_than_sign"}


@pytest.fixture
def recorded(console: Any) -> Callable[..., tuple[ConsoleApp, list[str]]]:
    """A console that notes which action a key asks for instead of doing it."""

    def make(*roots: Path, **more: Any) -> tuple[ConsoleApp, list[str]]:
        app, asked = console(*roots, **more), []

        async def note(name: str) -> None:
            asked.append(name)

        app.action_act = note
        return app, asked

    return make


def press(key: str) -> str:
    return NAMES.get(key, key)


async def each_key(pilot: Any, asked: list[str], actions: Sequence[Action], fits: Callable[[str], bool]) -> None:
    """Each key asks for exactly its own action."""
    for action in actions:
        for key in Keys().of(action):
            if not action.own and fits(key):
                asked.clear()
                await pilot.press(press(key))
                assert asked == [action.id], f"{key} on this screen asks for {asked}, not for {action.id}"


@pytest.mark.parametrize("screen", [INBOX, LIST, FOLDER, DELEGATIONS, WORKFLOWS, RUN, TRIAGE, ECOSYSTEM])
async def test_every_action_is_reached_by_each_of_its_keys(
    screen: str, make_folder: Any, recorded: Any, open_folder: Any, until: Any
) -> None:
    path = make_folder()
    make_folder("other")
    app, asked = recorded(me="server")
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await until(pilot, lambda: app.complete)
        if screen == LIST:
            await app.switch_mode("collaborations")
        elif screen in (DELEGATIONS, WORKFLOWS, TRIAGE, ECOSYSTEM):
            await app.switch_mode(screen)
        elif screen == RUN:
            await app.push_screen(RunScreen(path, "w-none"))
        elif screen == FOLDER:
            await open_folder(pilot, path)
        await pilot.pause()
        await each_key(pilot, asked, here(screen), lambda key: True)


class Typing(ModalScreen[None]):
    """A text field above everything."""

    def compose(self) -> ComposeResult:
        yield Input()


async def test_every_action_of_everywhere_is_reached_inside_a_text_field(
    make_folder: Any, recorded: Any, until: Any
) -> None:
    make_folder()
    app, asked = recorded(me="server")
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await until(pilot, lambda: app.complete)
        await app.push_screen(Typing())
        await pilot.pause()
        anywhere = [action for action in ACTIONS if ANYWHERE in action.where]
        await each_key(pilot, asked, anywhere, lambda key: works_in_fields(key) and key != "escape")


async def test_palette_and_help_name_every_action_and_grey_what_decide_refuses(
    make_folder: Any, console: Any, open_folder: Any, clock: Any
) -> None:
    app = console(me="reader")
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        screen = await open_folder(pilot, make_folder())
        provider = ActionProvider(app.screen)
        offered = {str(hit.text): hit async for hit in provider.discover()}
        wanted = [one for one in here(FOLDER) if one.id != "palette" and one.event not in DELIVERABLE_EVENTS]
        assert set(offered) == {action.label for action in wanted}
        for label in offered:
            found = [str(hit.text) async for hit in provider.search(label)]
            assert label in found
        reasons = {one.draft.event: one.reasons for one in options(screen.view.snapshot, "reader", clock.now())}
        await pilot.press("question_mark")
        assert isinstance(app.screen, HelpScreen)
        written = " ".join(" ".join(line.plain for line in app.screen.lines(400)).split())
        for action in wanted:
            shown = str(offered[action.label].prompt)
            refused = reasons.get(action.event or "", ())
            assert action.label in written
            if refused:
                assert f"not now: {refused[0].cause}" in shown, action.id
                assert f"not now: {refused[0].cause}" in written, action.id
        assert any(reasons[action.event] for action in wanted if action.event in reasons)


async def test_every_act_has_a_command(make_folder: Any, console: Any, open_folder: Any) -> None:
    app = console(me="server")
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        screen = await open_folder(pilot, make_folder())
        for action in ACTIONS:
            if action.group == "Act":
                command = action.command(screen.context())
                assert command, action.id
                assert "{" not in command.replace("${EDITOR:-vi}", ""), command


def everything(path: Path) -> dict[str, bytes]:
    return {str(one.relative_to(path)): one.read_bytes() for one in sorted(path.rglob("*")) if one.is_file()}


async def test_no_single_key_writes_into_a_folder(
    make_folder: Any, act: Any, console: Any, open_folder: Any, until: Any
) -> None:
    path = make_folder()
    act(path, "server", "proposal_submitted")
    before = everything(path)
    app = console(me="reader", environ={"EDITOR": "true"})
    keys = {press(key) for action in here(FOLDER) for key in Keys().of(action)}
    keys = (keys | {"enter", "space", "f2", "f3", "ctrl+n", "delete", "backspace"}) - {"ctrl+q"}
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        for key in sorted(keys):
            if not isinstance(app.screen, CollaborationScreen):
                await open_folder(pilot, path)
            await pilot.press(key)
            await pilot.pause()
            assert everything(path) == before, f"{key} wrote something"
            await app.to_base()
            await pilot.pause()
        assert app.is_running


async def test_a_keymap_in_config_toml_changes_footer_help_and_table(
    make_folder: Any, open_folder: Any, drawn: Any, until: Any, clock: Any, tmp_path: Path
) -> None:
    path = make_folder("work/talk")
    config = tmp_path / "config.toml"
    config.write_text('[keymap]\nsubmit = "S"\nblock = "submit"\nnope = "x"\n', encoding="utf-8")
    loaded = load(config)
    state = {"COLLAB_STATE": str(tmp_path / "person"), "PATH": "/usr/bin:/bin"}
    app = ConsoleApp([tmp_path / "work"], "server", loaded, clock=clock, environ=state, tick=0.2)
    async with app.run_test(size=(100, 40), notifications=True) as pilot:
        await open_folder(pilot, path)
        await pilot.pause()
        assert drawn(app)[-1].strip().startswith("S submit the proposal")
        told = "\n".join(problem.cause for problem in app.problems)
        assert "nope" in told
        await pilot.press("question_mark")
        lines = [line.plain for line in app.screen.lines(120)]
        assert any(line.startswith("S ") and "submit the proposal" in line for line in lines)
        await pilot.press("escape", "S")
        await until(pilot, lambda: "Submit the proposal" in "\n".join(drawn(app)))
    assert "| `S` | Submit proposal.md for review |" in key_table_markdown(Keys(loaded.settings.keymap))
    assert BY_ID["submit"].keys == "p"


def test_the_key_table_of_the_readme_is_the_registry() -> None:
    assert table_in(README.read_text(encoding="utf-8")) == key_table_markdown(), (
        "run .venv/bin/python -m tests.tools_keys"
    )
