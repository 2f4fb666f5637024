"""The app itself: actions, settings, colours, alerts, what it says of its own state, and how it ends."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input

from core.acp.model import DELIVERABLE_EVENTS
from core.acp.reader import read
from tui.action import ANYWHERE, ECOSYSTEM, FOLDER, INBOX, LIST, TRIAGE
from tui.actions import ACTIONS, entries, show_key
from tui.app import ConsoleApp, run
from tui.cli import MODULES
from tui.forms.confirm import ConfirmScreen
from tui.screens.choose import ChooseScreen
from tui.screens.collaboration import CollaborationScreen
from tui.screens.collaborations import CollaborationsScreen
from tui.screens.frame import ActionBar
from tui.screens.help import HelpScreen
from tui.screens.inbox import InboxScreen
from tui.screens.new import NewScreen
from tui.screens.palette import ActionProvider
from tui.settings import Loaded, Settings, load
from tui.themes import theme_name


@pytest.mark.parametrize("where", [INBOX, LIST, FOLDER, TRIAGE, ECOSYSTEM])
async def test_every_action_is_reached_by_key_by_palette_and_by_verb(
    where: str, make_folder: Any, act: Any, console: Any, until: Any, open_folder: Any
) -> None:
    path = make_folder()
    act(path, "server", "proposal_submitted")
    app = console(me="reader")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await until(pilot, lambda: app.complete)
        if where == LIST:
            await pilot.press("2")
        if where in (TRIAGE, ECOSYSTEM):
            await pilot.press("5" if where == TRIAGE else "6")
        if where == FOLDER:
            await open_folder(pilot, path)
        assert where == app.base.WHERE
        palette = ActionProvider(app.screen)
        hits = [hit async for hit in palette.discover()]
        found = {hit.text for hit in hits}
        bound = app.screen.active_bindings
        for action in ACTIONS:
            if where not in action.where and ANYWHERE not in action.where:
                continue
            # What a folder of this schema never has is not offered.
            if action.id != "palette" and action.event not in DELIVERABLE_EVENTS:
                assert action.label in found, action.id
            for key in app.keys.of(action):
                name = {
                    "?": "question_mark",
                    "/": "slash",
                    ":": "colon",
                    "<": "less_than_sign",
                    ">": "greater_than_sign",
                    ".": "full_stop",
                    "[": "left_square_bracket",
                    "]": "right_square_bracket",
                }
                active = bound[name.get(key, key)]
                assert action.own or active.binding.action == f"app.act('{action.id}')", (key, active.binding.action)
            if action.verb is not None and action.verb.startswith("collab "):
                assert action.verb.split()[1] in MODULES
        # What is not possible now is in the palette with its reason.
        for entry in entries(app.screen.context(), app.keys):
            if entry.reason is not None:
                assert any(entry.reason.text[:20] in str(hit.display) for hit in hits), entry.action.id


async def test_help_lists_every_action_with_keys_and_reasons(
    make_folder: Any, console: Any, open_folder: Any, until: Any
) -> None:
    app = console(me="reader")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await open_folder(pilot, make_folder())
        await pilot.press("?")
        assert isinstance(app.screen, HelpScreen)
        text = "\n".join(line.plain for line in app.screen.lines(110))
        for entry in entries(screen.context(), app.keys):
            assert " ".join(show_key(key) for key in entry.keys) in text
            assert entry.action.label in text
        assert "not now: review_submitted is not allowed from phase drafting" in text
        await pilot.press("?")
        assert app.screen is screen


async def test_help_in_a_form_is_about_the_form(make_folder: Any, console: Any, open_folder: Any, until: Any) -> None:
    app = console(me="server")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await open_folder(pilot, make_folder())
        await pilot.press("b")
        await until(pilot, lambda: getattr(app.screen, "all_fields", None))
        form = app.screen
        await pilot.press("f1")
        assert isinstance(app.screen, HelpScreen)
        text = "\n".join(line.plain for line in app.screen.lines(110))
        assert "preview" in text
        assert "in your editor" in text
        assert "write a review" not in text
        await pilot.press("escape")
        assert app.screen is form
        await pilot.press(*"typed", "f6")
        await until(pilot, lambda: isinstance(app.screen, CollaborationsScreen))
        await until(pilot, lambda: any((app.user_state.folder / "drafts").glob("*.json")))


async def test_one_folder_that_breaks_the_reader_is_one_finding(
    make_folder: Any, console: Any, until: Any, drawn: Any, open_folder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tui.reading as reading
    from core.workspace import Summaries

    good, bad = make_folder("good"), make_folder("bad")
    whole, looked = Summaries.item, reading.look

    def item(self: Summaries, place: Any) -> Any:
        return whole(self, place) if place.path != bad else 1 / 0

    def look(judged: Any, *rest: Any) -> Any:
        snapshot = judged.snapshot
        return looked(judged, *rest) if snapshot.path != bad or snapshot.setup is None else 1 / 0

    monkeypatch.setattr(Summaries, "item", item)
    monkeypatch.setattr(reading, "look", look)
    app = console(me="server")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await until(pilot, lambda: app.complete)
        assert "ZeroDivisionError" in "\n".join(drawn(app))
        screen = await open_folder(pilot, bad)
        assert [found.code for found in screen.view.findings][:1] == ["internal_error"]
        assert "could not be read" in "\n".join(drawn(app))
        screen = await open_folder(pilot, good)
        assert screen.view.setup is not None


async def test_a_keymap_changes_key_footer_and_help(
    make_folder: Any, console: Any, open_folder: Any, until: Any, drawn: Any
) -> None:
    app = console(me="server", keymap={"submit": "S", "validate": "V", "next-waiting": "J"})
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await open_folder(pilot, make_folder())
        assert drawn(app)[-1].strip().startswith("S submit the proposal")
        await pilot.press("v")
        assert screen._tab == "proposal.md"
        await pilot.press("V")
        assert screen._tab == "findings"
        await pilot.press("?")
        text = "\n".join(line.plain for line in app.screen.lines(110))
        assert "S            submit the proposal" in text
        assert "J F4" in text
        await pilot.press("escape", "S")
        await until(pilot, lambda: type(app.screen).__name__ == "SubmitForm")


async def test_global_keys_work_inside_a_text_field(make_folder: Any, console: Any, until: Any) -> None:
    make_folder()
    app = console(me="server")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await until(pilot, lambda: app.complete)
        await pilot.press("slash")
        assert isinstance(app.screen.focused, Input)
        await pilot.press("n", "1", "q", "?")
        assert app.screen.focused.value == "n1q?"
        await pilot.press("f1")
        assert isinstance(app.screen, HelpScreen)
        await pilot.press("f1", "ctrl+o")
        assert isinstance(app.screen, ChooseScreen)
        await pilot.press("escape", "ctrl+t")
        assert isinstance(app.screen, ChooseScreen)
        await pilot.press("escape", "f6")
        assert isinstance(app.screen, CollaborationsScreen)
        await pilot.press("f5")
        assert isinstance(app.screen, InboxScreen)


async def test_wrong_settings_are_said_with_line_and_reason_and_help_keeps_them(
    make_folder: Any, clock: Any, until: Any, drawn: Any, tmp_path: Path
) -> None:
    make_folder()
    path = tmp_path / "config.toml"
    path.write_text('theme = "pink"\n[keymap]\nsubmit = "b"\n', encoding="utf-8")
    app = ConsoleApp((tmp_path,), "server", load(path), clock=clock, environ={"COLLAB_STATE": str(tmp_path / "s")})
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await until(pilot, lambda: app.complete)
        shown = "\n".join(drawn(app))
        assert "line 1: theme" in shown
        assert "line 3: keymap.submit" in shown
        assert app.theme == theme_name("dark")
        await pilot.press("?")
        text = "\n".join(line.plain for line in app.screen.lines(110))
        assert "config.toml: line 1: theme" in text
        assert "b already is 'block'" in " ".join(text.split())


async def test_themes_are_chosen_by_key(make_folder: Any, console: Any, until: Any) -> None:
    app = console(theme="light")
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: app.complete)
        assert app.theme == theme_name("light")
        assert not app.current_theme.dark
        await pilot.press("T", "down", "enter")
        assert app.theme == theme_name("high-contrast")


@pytest.mark.parametrize(
    ("environ", "theme", "plain"),
    [({"NO_COLOR": "1"}, "dark", True), ({"NO_COLOR": ""}, "dark", False), ({}, "plain", True), ({}, "dark", False)],
)
async def test_no_color_leaves_no_colour_at_all(
    environ: dict[str, str], theme: str, plain: bool, make_folder: Any, act: Any, console: Any, open_folder: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    path = make_folder()
    act(path, "server", "proposal_submitted")
    app = console(me="reader", environ=environ, theme=theme)
    assert os.environ.get("NO_COLOR") == environ.get("NO_COLOR")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await open_folder(pilot, path)
        await pilot.pause()
        assert app.no_color is plain
        colours = set()
        for y in range(36):
            for segment in app.screen._compositor.render_strips()[y]:
                for name in (segment.style.color, segment.style.bgcolor) if segment.style else ():
                    if name is not None and not name.is_default:
                        colours.add(name)
        assert bool(colours) is not plain


async def test_ascii_draws_no_other_glyph(
    make_folder: Any, act: Any, console: Any, open_folder: Any, drawn: Any, until: Any
) -> None:
    path = make_folder()
    act(path, "server", "proposal_submitted")
    app = console(me="reader", ascii=True)
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        for key in ("1", "2"):
            await until(pilot, lambda: app.complete)
            await pilot.press(key)
            assert "".join(drawn(app)).isascii()
        screen = await open_folder(pilot, path)
        for name in screen._tab_ids():
            screen.go_tab(name)
            await pilot.pause()
            assert "".join(drawn(app)).isascii()
        await pilot.press("w")
        assert "".join(drawn(app)).isascii()


async def test_the_bell_rings_once_when_something_begins_to_wait(
    make_folder: Any, act: Any, console: Any, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = make_folder("first"), make_folder("second")
    act(first, "server", "proposal_submitted")
    rung: list[str] = []
    app = console(me="reader", osc9=True)
    monkeypatch.setattr(app, "bell", lambda: rung.append("bell"))
    monkeypatch.setattr(app, "_to_terminal", lambda text: rung.append(text) if text.startswith("\x1b]9;") else None)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: app.complete)
        assert rung == [], "what waits at the start is no news"
        act(second, "server", "proposal_submitted")
        await until(pilot, lambda: app.waiting_count == 2)
        assert rung == ["bell", "\x1b]9;collab: your turn: Agree on the session cache.\x07"]
        (second / "proposal.md").write_text("again", encoding="utf-8")
        app.reading.look_again()
        await until(pilot, lambda: app.complete)
        assert len(rung) == 2


async def test_the_bell_is_off_by_config(
    make_folder: Any, act: Any, console: Any, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_folder()
    app = console(me="reader", bell=False)
    monkeypatch.setattr(app, "bell", lambda: pytest.fail("it rang"))
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: app.complete)
        act(path, "server", "proposal_submitted")
        await until(pilot, lambda: app.waiting_count == 1)


async def test_the_header_says_live_and_stale(make_folder: Any, console: Any, until: Any, drawn: Any) -> None:
    make_folder()
    app = console(me="reader")
    now = [0.0]
    app.monotonic = lambda: now[0]
    async with app.run_test(size=(100, 24), notifications=True) as pilot:
        await until(pilot, lambda: app.complete)
        await until(pilot, lambda: "● live" in drawn(app)[0])
        app.reading.stop()
        await pilot.pause(0.3)
        now[0] += 60
        await until(pilot, lambda: "▲ stale" in drawn(app)[0])


async def test_without_notifications_it_polls_and_says_so(
    make_folder: Any, act: Any, console: Any, until: Any, drawn: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import watchfiles

    def none_left(*_: object, **__: object) -> object:
        raise OSError(28, "inotify watch limit reached")

    monkeypatch.setattr(watchfiles, "watch", none_left)
    path = make_folder()
    app = console(me="reader")
    async with app.run_test(size=(100, 24), notifications=True) as pilot:
        await until(pilot, lambda: "polling" in drawn(app)[0])
        act(path, "server", "proposal_submitted")
        await until(pilot, lambda: app.waiting_count == 1)


async def test_a_new_collaboration_is_made_by_keys(console: Any, until: Any, drawn: Any, tmp_path: Path) -> None:
    app = console(me="ana")
    async with app.run_test(size=(100, 40), notifications=True) as pilot:
        await until(pilot, lambda: app.complete)
        await pilot.press("c")
        assert isinstance(app.screen, NewScreen)
        await pilot.press(*"Agree", "f2")
        assert "the folder needs a name" in "\n".join(drawn(app))
        await pilot.press(*"talk", "f2")
        await until(pilot, lambda: "at least one non-blank --completion" in "\n".join(drawn(app)))
        assert app.screen.focused.parent.key == "gates"
        await pilot.press(*"Done", "enter", *"Measured", "shift+tab", "pagedown", "end", *"bob", "f2")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        shown = "\n".join(drawn(app))
        assert "collab init --folder" in shown
        assert not (tmp_path / "talk").exists(), "nothing is written by one key"
        await until(pilot, lambda: app.screen._monotonic() - app.screen._since > 0.3)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, CollaborationScreen) and app.screen.view is not None)
        setup = read(tmp_path / "talk").setup
        assert setup is not None
        assert setup.participants == ("ana", "bob")
        assert setup.gates == ("Done", "Measured")


async def test_what_was_typed_for_a_new_collaboration_is_kept(console: Any, until: Any) -> None:
    app = console(me="ana")
    async with app.run_test(size=(100, 40), notifications=True) as pilot:
        await until(pilot, lambda: app.complete)
        await pilot.press("c", *"Half a sen", "escape")
        await until(pilot, lambda: any((app.user_state.folder / "drafts").glob("*.json")))
    again = console(me="ana")
    async with again.run_test(size=(100, 40), notifications=True) as pilot:
        await until(pilot, lambda: again.complete)
        await pilot.press("c")
        await until(pilot, lambda: again.screen.plan().objective == "Half a sen")


async def test_the_footer_is_clickable_and_short(make_folder: Any, console: Any, open_folder: Any, until: Any) -> None:
    app = console(me="server")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await open_folder(pilot, make_folder())
        bar = screen.query_one(ActionBar)
        assert len(bar.shown) <= 8
        assert bar.shown[0] == "submit"
        start = next(place[0] for place in bar._places if place[2] == "validate")
        await pilot.click(ActionBar, offset=(start + 2, 0))
        await until(pilot, lambda: screen._tab == "findings")


async def test_quit_leaves_with_zero(make_folder: Any, console: Any, until: Any) -> None:
    app = console()
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: app.complete)
        await pilot.press("q")
        assert app.is_running
        await pilot.press("ctrl+q")
        await pilot.pause()
    assert app.return_code == 0


async def test_an_unexpected_fault_is_a_sentence_and_a_file(
    make_folder: Any, console: Any, until: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    app = console()

    def broken() -> None:
        raise ZeroDivisionError

    async def until_it_breaks() -> None:
        async with app.run_test(size=(80, 24), notifications=True) as pilot:
            await until(pilot, lambda: app.complete)
            app.call_later(broken)
            await pilot.pause()

    with pytest.raises(ZeroDivisionError):
        await until_it_breaks()
    said = capsys.readouterr().err
    assert "unexpected ZeroDivisionError" in said
    assert "Traceback" not in said
    assert "broken" in (app.user_state.folder / "last-error.txt").read_text()


def test_an_unknown_theme_is_refused() -> None:
    from core.finding import Refused

    with pytest.raises(Refused, match="there is no theme 'pink'"):
        run([], theme="pink", environ={})


def test_settings_may_be_given(tmp_path: Path, clock: Any) -> None:
    app = ConsoleApp((), None, Loaded(Settings(ascii=True), tmp_path), clock=clock, environ={})
    assert app.ascii_glyphs
