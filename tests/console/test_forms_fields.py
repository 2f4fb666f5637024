"""Forms: fields with their errors, drafts, the editor."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.app import App
from textual.pilot import Pilot

from core.acp.reader import read
from core.acp.store import Appended
from core.state import UserState
from tests.console.hosts import HOSTILE, SIZES, Host, is_inert, running, settle
from tui.forms.append import AppendForm
from tui.forms.base import FormScreen, Problems
from tui.forms.drafts import Drafts
from tui.forms.editor import edit_text, editor_command
from tui.forms.fields import AREA_CAP, AreaField, ChoiceField, LineField
from tui.forms.guided import BlockForm, ReviewForm, SubmitForm
from tui.forms.preview import PreviewScreen


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def talk(make_folder: Any, act: Any) -> Path:
    folder: Path = make_folder(participants=("server", "reader", "other"))
    act(folder, "server", "proposal_submitted")
    return folder


class Later:
    """Always long enough after the last look for a preview to listen."""

    def __init__(self) -> None:
        self.value = 0.0

    def __call__(self) -> float:
        self.value += 1
        return self.value


async def open_form(app: Host, pilot: Pilot[object], form: FormScreen) -> FormScreen:
    app.open(form)
    await settle(pilot, lambda: form.all_fields or form.query_one(Problems).has_class("-shown"))
    return form


async def type_text(pilot: Pilot[object], text: str) -> None:
    await pilot.press(*({" ": "space", "\n": "enter"}.get(char, char) for char in text))


def drafts_in(state: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted((state / "drafts").glob("*.json"))]


async def test_a_review_goes_from_fields_to_the_log_and_leaves_no_draft(talk: Path, state: Path, clock: Any) -> None:
    async with running(size=(100, 40), state=state) as (app, pilot):
        form = await open_form(app, pilot, ReviewForm(talk, "reader", clock=clock, monotonic=Later()))
        await type_text(pilot, "good\nwith one doubt")
        await pilot.press("tab")
        await type_text(pilot, "first doubt\n second half\n- second doubt")
        await settle(pilot, lambda: drafts_in(state))
        await pilot.press("f2")
        await settle(pilot, lambda: isinstance(app.screen, PreviewScreen))
        await pilot.press("enter")
        await settle(pilot, lambda: app.results)
        assert isinstance(app.results[0], Appended)
        assert form not in app.screen_stack
        snapshot = read(talk)
        last = snapshot.last()
        assert last is not None
        assert (last.name, last.summary) == ("review_submitted", "good")
        written = snapshot.document("review.md").text
        assert "- good\n  with one doubt" in written
        assert "- first doubt\n  second half\n- second doubt" in written
        await settle(pilot, lambda: not drafts_in(state))


async def test_errors_stand_at_their_field_and_go_when_it_changes(talk: Path, state: Path, clock: Any) -> None:
    async with running(size=(80, 24), state=state) as (app, pilot):
        form = await open_form(app, pilot, ReviewForm(talk, "reader", clock=clock))
        await pilot.press("tab", "tab", "f2")
        await settle(pilot)
        field = form.field("position")
        assert field.failed
        assert form._focused_field() is field
        assert "✕ a review needs a position, in a sentence" in app.shown()
        await type_text(pilot, "x")
        await pilot.pause()
        assert not field.failed
        assert "needs a position" not in app.shown()


async def test_a_refusal_of_the_core_stands_at_its_field_too(talk: Path, state: Path, clock: Any, act: Any) -> None:
    async with running(size=(100, 30), state=state) as (app, pilot):
        form = await open_form(app, pilot, ReviewForm(talk, "reader", clock=clock))
        await type_text(pilot, "fine")
        act(talk, "other", "blocked", "stop")
        await pilot.press("f2")
        await settle(pilot, lambda: form.query_one(Problems).has_class("-shown"))
        assert "review_submitted is not allowed from phase blocked" in app.shown()
        assert "collab new-round" in app.shown()
        assert form.text_of("position") == "fine", "nothing is lost"
        other = ReviewForm(talk.parent / "gone", "reader", clock=clock)
        await open_form(app, pilot, other)
        assert "there is no folder" in app.shown()
        await pilot.press("f2", "f3", "escape")
        await settle(pilot, lambda: app.screen is form)


async def test_a_draft_comes_back_and_can_be_thrown_away(talk: Path, state: Path, clock: Any) -> None:
    async with running(size=(80, 24), state=state) as (app, pilot):
        await open_form(app, pilot, ReviewForm(talk, "reader", clock=clock))
        await type_text(pilot, "half a thought")
        await pilot.press("escape")
        await settle(pilot, lambda: app.results == [None] and drafts_in(state))
    assert [item["fields"]["position"] for item in drafts_in(state)] == ["half a thought"]
    assert stat.S_IMODE(os.stat(state).st_mode) == 0o700
    clock.step(2 * 3600)
    (talk / "proposal.md").write_text("changed")
    async with running(size=(80, 24), state=state) as (app, pilot):
        form = await open_form(app, pilot, ReviewForm(talk, "reader", clock=clock))
        await settle(pilot, lambda: form.text_of("position") == "half a thought" and "restored" in app.shown())
        assert "draft from 2 h ago restored" in app.shown()
        assert "proposal.md changed since it was written" in app.shown()
        await pilot.press("ctrl+n")
        await settle(pilot, lambda: form.text_of("position") == "" and not drafts_in(state))
        assert "restored" not in app.shown()
        await pilot.press("escape")
        await settle(pilot, lambda: app.results == [None])
    assert drafts_in(state) == []
    async with running(size=(80, 24), state=state) as (app, pilot):
        form = await open_form(app, pilot, ReviewForm(talk, "other", clock=clock))
        assert form.text_of("position") == "", "a draft belongs to one participant"


@pytest.mark.parametrize("made", [AppendForm, ReviewForm, BlockForm])
async def test_a_form_that_was_only_looked_at_leaves_no_draft(
    made: type[FormScreen], talk: Path, state: Path, clock: Any
) -> None:
    async with running(size=(80, 24), state=state) as (app, pilot):
        form = await open_form(app, pilot, made(talk, "reader", clock=clock))
        assert form.all_fields
        await pilot.press("tab", "tab")
        assert "draft" not in app.shown()
        await pilot.press("escape")
        await settle(pilot, lambda: app.results == [None])
        await app.workers.wait_for_complete()
    assert drafts_in(state) == []


def test_drafts_of_unwritable_and_damaged_places_stop_nothing(tmp_path: Path, clock: Any) -> None:
    (tmp_path / "file").write_text("")
    blocked = Drafts(UserState(tmp_path / "file" / "below"))
    assert not blocked.save(tmp_path, "f", {"a": "b"}, {}, clock.now(), 1)
    assert blocked.load(tmp_path, "f") is None
    blocked.remove(tmp_path, "f", 2)
    drafts = Drafts(UserState(tmp_path / "state"))
    assert drafts.save(tmp_path, "f", {"a": "new"}, {}, clock.now(), 5)
    assert drafts.save(tmp_path, "f", {"a": "late"}, {}, clock.now(), 4)
    saved = drafts.load(tmp_path, "f")
    assert saved is not None
    assert (saved.fields, saved.at) == ({"a": "new"}, clock.now())
    path = tmp_path / "state" / drafts.name(tmp_path, "f")
    for data in (b"{", b"[]", b'{"fields": 5}', b'{"fields": {}, "form": "g"}', b"\xff", b"[" * 100_000):
        path.write_bytes(data)
        assert drafts.load(tmp_path, "f") is None
    drafts.remove(tmp_path, "f", 6)
    assert drafts.save(tmp_path, "f", {"a": "under way"}, {}, clock.now(), 6)
    assert not path.exists(), "a save that began before the removal does not bring it back"


async def test_a_draft_that_does_not_fit_is_left_out(talk: Path, state: Path, clock: Any) -> None:
    fields = {"position": 5, "concerns": HOSTILE[0], "participant": "nobody", "event": ["x"], "summary": HOSTILE[1]}
    drafts = Drafts(UserState(state))
    assert drafts.save(talk, "review:reader", fields, {"proposal.md": None}, clock.now(), 1)
    assert drafts.save(talk, "append:reader:any", fields, {}, clock.now(), 1)
    async with running(size=(80, 40), state=state) as (app, pilot):
        form = await open_form(app, pilot, ReviewForm(talk, "reader", clock=clock))
        assert (form.text_of("position"), form.text_of("concerns")) == ("", "␛[2J␛[31mred")
        other = await open_form(app, pilot, AppendForm(talk, "reader", clock=clock))
        assert other.field("participant").value == "reader"
        assert other.text_of("summary") == "␛]52;c;aGVsbG8=␇"
        assert all(is_inert(row) for row in app.rows())


KILLED = """
import sys
from pathlib import Path
from core.state import UserState
from textual.app import App
from tui.forms.guided import ReviewForm
from tui.themes import themes

class Host(App):
    def on_mount(self):
        for theme in themes():
            self.register_theme(theme)
        self.theme = "collab-dark"
        self.user_state = UserState(Path(sys.argv[2]))
        self.push_screen(ReviewForm(Path(sys.argv[1]), "reader"))

Host().run()
"""


def type_and_kill(script: Path, talk: Path, state: Path) -> None:
    """A console on a terminal of its own: typed into, then killed as soon as it says that the draft is saved."""
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
    environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[2]), environment.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        [sys.executable, str(script), str(talk), str(state)], stdin=slave, stdout=slave, stderr=slave, env=environment
    )
    os.close(slave)
    try:
        await_output(master, b"Position")
        os.write(master, b"typed before the kill")
        await_output(master, b"draft saved")
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
        os.close(master)


async def test_a_draft_survives_a_kill(talk: Path, state: Path, tmp_path: Path, clock: Any) -> None:
    script = tmp_path / "host.py"
    script.write_text(KILLED)
    type_and_kill(script, talk, state)
    async with running(size=(80, 24), state=state) as (app, pilot):
        form = await open_form(app, pilot, ReviewForm(talk, "reader", clock=clock))
        assert form.text_of("position")
        assert "typed before the kill".startswith(form.text_of("position"))


def await_output(master: int, wanted: bytes) -> None:
    """Read a terminal until it has shown a text."""
    seen, deadline = b"", time.monotonic() + 30
    while wanted not in seen:
        ready, _, _ = select.select([master], [], [], deadline - time.monotonic())
        assert ready, f"{wanted!r} was never shown: {seen[-500:]!r}"
        seen += os.read(master, 65536)


# Fields.


async def test_pasted_text_is_inert(talk: Path, state: Path, clock: Any) -> None:
    hostile = "\n".join(HOSTILE)
    async with running(size=(80, 40), state=state) as (app, pilot):
        form = await open_form(app, pilot, ReviewForm(talk, "reader", clock=clock))
        assert app.focused is not None
        app.focused.post_message(events.Paste(hostile))
        await pilot.pause()
        assert "␛]52;c;aGVsbG8=␇" in form.text_of("position")
        summary = form.field("summary")
        summary.focus_control()
        await pilot.pause()
        app.focused.post_message(events.Paste(hostile))
        await pilot.pause()
        assert form.text_of("summary") == "␛[2J␛[31mred"
        assert all(is_inert(row) for row in app.rows())


@pytest.mark.parametrize("size", SIZES)
async def test_every_size_has_its_bar_and_all_fields_in_reach(
    size: tuple[int, int], talk: Path, state: Path, clock: Any
) -> None:
    async with running(size=size, state=state) as (app, pilot):
        form = await open_form(app, pilot, ReviewForm(talk, "reader", clock=clock))
        for field in form.all_fields:
            assert form._focused_field() is field
            await pilot.pause()
            assert field.label in app.shown()
            rows = app.rows()
            assert "F2 preview" in rows[-1]
            assert "Esc back" in rows[-1]
            assert all(is_inert(row) for row in rows)
            await pilot.press("tab")


async def test_lists_are_one_entry_a_line() -> None:
    async with running() as (app, _):
        field = AreaField("a", "A", value="- one\n\n  more of one\ntwo\n-\n- - three\n")
        await app.mount(field)
        assert field.items == ["one\nmore of one", "two", "- three"]


async def test_a_text_too_long_for_a_field_is_left_whole_for_the_editor() -> None:
    text = "x" * (AREA_CAP + 1)
    async with running() as (app, pilot):
        field = AreaField("a", "A", value=text)
        await app.mount(field)
        await pilot.pause()
        assert field.text == text
        assert "F3 opens it in your editor" in field._area.text
        field.focus_control()
        await pilot.press("y")
        assert field.text == text
        field.text = "short"
        await pilot.press("y")
        await pilot.pause()
        assert "y" in field.text


# The editor.


def editor(folder: Path, body: str) -> str:
    path = folder / "my editor"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return f"'{path}' --flag"


async def test_f3_writes_the_field_in_the_persons_editor(
    talk: Path, state: Path, clock: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "seen"
    body = f'[ "$1" = --flag ] || exit 9\nls -ld "$(dirname "$2")" > {seen}\n'
    body += 'printf "from \\033[31m outside\\nsecond" >> "$2"'
    monkeypatch.setenv("VISUAL", editor(tmp_path, body))
    monkeypatch.setenv("EDITOR", "false")
    async with running(size=(80, 24), state=state) as (app, pilot):
        form = await open_form(app, pilot, ReviewForm(talk, "reader", clock=clock))
        await type_text(pilot, "begun ")
        await pilot.press("f3")
        await settle(pilot, lambda: "second" in form.text_of("position"))
        assert form.text_of("position") == "begun \nfrom ␛[31m outside\nsecond"
        assert seen.read_text().startswith("drwx------")
        await settle(pilot, lambda: drafts_in(state)[0]["fields"]["position"].endswith("second"))
        await pilot.press("shift+tab", "f3")
        await settle(pilot)


@pytest.mark.parametrize(
    ("command", "code"),
    [("false", "exit code 1"), ("no-such-editor-anywhere", "which is not installed"), ("'", "is no command line")],
)
async def test_a_failing_editor_is_said_and_changes_nothing(
    command: str, code: str, talk: Path, state: Path, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", command)
    async with running(size=(80, 24), state=state) as (app, pilot):
        form = await open_form(app, pilot, ReviewForm(talk, "reader", clock=clock))
        await type_text(pilot, "kept")
        await pilot.press("f3")
        await settle(pilot, lambda: form.query_one(Problems).has_class("-shown"))
        assert code in app.shown()
        assert form.text_of("position") == "kept"


async def test_a_terminal_that_cannot_be_lent_is_said(tmp_path: Path) -> None:
    app: App[object] = App()
    async with app.run_test():
        text, problem = edit_text(app, "a", environ={"PATH": os.environ["PATH"], "EDITOR": "true"})
        assert text is None
        assert problem is not None
        assert problem.code == "editor_unavailable"


def test_the_editor_comes_from_config_then_visual_then_editor_then_vi(tmp_path: Path) -> None:
    path = {"PATH": str(tmp_path)}
    for name in ("one", "two", "three", "vi"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    assert editor_command({**path, "VISUAL": "two", "EDITOR": "three"}, "one -w")[0] == ["one", "-w"]
    assert editor_command({**path, "VISUAL": "two", "EDITOR": "three"})[0] == ["two"]
    assert editor_command({**path, "VISUAL": " ", "EDITOR": "three"})[0] == ["three"]
    assert editor_command(path)[0] == ["vi"]
    missing = editor_command({**path, "EDITOR": "emacs -nw"})[1]
    assert missing is not None
    assert missing.code == "editor_missing"


# Any event.


async def test_any_event_is_offered_the_illegal_ones_with_their_reason(talk: Path, state: Path, clock: Any) -> None:
    async with running(size=(120, 44), state=state) as (app, pilot):
        form = await open_form(app, pilot, AppendForm(talk, "reader", clock=clock, monotonic=Later()))
        events_field = form.field("event")
        assert isinstance(events_field, ChoiceField)
        assert events_field.value == "review_submitted"
        assert "proposal_revised is not allowed from phase reviewing" in app.shown()
        assert form.text_of("reply_to") == "2"
        await pilot.press("tab", "down")
        await pilot.pause()
        assert events_field.value == "blocked"
        assert form.text_of("summary") == "Collaboration blocked."
        assert form.text_of("doc") == ""
        await pilot.press("down", "f2")
        await settle(pilot)
        assert events_field.failed
        assert app.screen is form
        await pilot.press("up", "tab")
        await type_text(pilot, " really")
        await pilot.press("tab", "tab")
        await type_text(pilot, "x")
        await pilot.press("f2")
        await settle(pilot)
        assert form.field("reply_to").failed
        await pilot.press("backspace", "f2")
        await settle(pilot, lambda: isinstance(app.screen, PreviewScreen))
        await pilot.press("enter")
        await settle(pilot, lambda: app.results)
        last = read(talk).last()
        assert last is not None
        assert (last.name, last.summary, last.reply_to) == ("blocked", "Collaboration blocked. really", 2)


async def test_another_participant_has_other_events(talk: Path, state: Path, clock: Any) -> None:
    async with running(size=(120, 44), state=state) as (app, pilot):
        form = await open_form(app, pilot, AppendForm(talk, "reader", clock=clock))
        await pilot.press("up")
        await pilot.pause()
        assert form.field("participant").value == "server"
        field = form.field("event")
        assert isinstance(field, ChoiceField)
        assert field.choice is not None
        assert field.choice.reason == "review submission is reserved for other, reader; got server"


async def test_a_participant_that_is_none_is_refused_not_crashed(talk: Path, state: Path, clock: Any) -> None:
    async with running(size=(100, 40), state=state) as (app, pilot):
        form = await open_form(app, pilot, AppendForm(talk, "no[/]body\x1b", clock=clock))
        await pilot.press("f2")
        await settle(pilot)
        assert app.screen is form or isinstance(app.screen, PreviewScreen)
        assert all(is_inert(row) for row in app.rows())


async def test_fields_take_data_with_markup_and_a_summary_of_several_lines(state: Path) -> None:
    async with running() as (app, pilot):
        field = LineField("a", "A", value="[/] [bold]x")
        await app.mount(field)
        field.text = "two\nlines\x1b"
        assert field.text == "two lines␛"
        await pilot.pause()
        field.fail("[/] broken \x1b[0m")
        await settle(pilot, lambda: "✕ [/] broken ␛[0m" in app.shown())


async def test_the_proposal_is_edited_in_place_and_tabs_stay(make_folder: Any, state: Path, clock: Any) -> None:
    folder = make_folder()
    (folder / "proposal.md").write_text("# Proposal\n\n\tcode\n")
    async with running(size=(100, 40), state=state) as (app, pilot):
        await open_form(app, pilot, SubmitForm(folder, "server", clock=clock, monotonic=Later()))
        await pilot.press("down", "down", "down", "down")
        await type_text(pilot, "More.")
        await pilot.press("f2")
        await settle(pilot, lambda: isinstance(app.screen, PreviewScreen))
        assert "on standard input" in app.shown()
        await pilot.press("enter")
        await settle(pilot, lambda: app.results)
    assert (folder / "proposal.md").read_text() == "# Proposal\n\n\tcode\nMore.\n"
