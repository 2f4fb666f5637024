"""The registry: every surface takes its keys, words and reasons from the same declarations."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.acp import store
from core.acp.live import Live
from core.acp.model import EVENTS_V2, Draft
from core.acp.reader import read
from core.acp.view import VERBS, options
from core.state import UserState
from tui.action import ANYWHERE, FOLDER, INBOX, LIST
from tui.actions import ACT_FOR, ACTIONS, BY_ID, Keys, entries, footer, key_table_markdown, show_key, works_in_fields
from tui.cli import MODULES
from tui.desk import FolderView, look
from tui.legal import Context
from tui.settings import Who

SCREENS = (INBOX, LIST, FOLDER)
NOW = datetime(2026, 3, 1, 10, tzinfo=UTC)


def seen(path: Path, me: str | None) -> FolderView:
    live = Live(path, UserState(path.parent / "state"))
    try:
        return look(live.judge(live.refresh()), Who(flag=me), NOW)
    finally:
        live.close()


def in_folder(view: FolderView, **more: object) -> Context:
    return Context(FOLDER, me=view.me, view=view, selected=view.path, **more)  # type: ignore[arg-type]


def test_ids_are_unique_and_every_action_has_a_key_a_label_and_a_sentence() -> None:
    assert len(BY_ID) == len(ACTIONS)
    for action in ACTIONS:
        assert action.keys, action.id
        assert 0 < len(action.label) <= 22, action.id
        assert action.help.endswith("."), action.id


@pytest.mark.parametrize("screen", SCREENS)
def test_no_key_means_two_things_on_one_screen(screen: str) -> None:
    keys = Keys()
    taken: dict[str, str] = {}
    for action in ACTIONS:
        if screen in action.where or ANYWHERE in action.where:
            for key in keys.of(action):
                assert key not in taken, f"{key}: {action.id} and {taken.get(key)}"
                taken[key] = action.id


def test_the_forbidden_keys_are_no_defaults() -> None:
    forbidden = {"ctrl+b", "ctrl+a", "ctrl+s", "ctrl+j", "ctrl+h", "ctrl+m"}
    assert not forbidden & {key for action in ACTIONS for key in Keys().of(action)}


def test_every_action_of_everywhere_works_inside_a_text_field() -> None:
    for action in ACTIONS:
        if ANYWHERE in action.where:
            assert any(works_in_fields(key) for key in Keys().of(action)), action.id


def test_each_verb_is_a_verb_of_the_command_line() -> None:
    for action in ACTIONS:
        if action.verb is not None and action.verb.startswith("collab "):
            assert action.verb.split()[1] in MODULES, action.id


def test_every_event_that_a_person_appends_has_an_action() -> None:
    assert set(ACT_FOR) == set(EVENTS_V2) - {"initialized"}
    for event, verb in VERBS.items():
        if verb in MODULES:
            assert f"collab {verb} " in (BY_ID[ACT_FOR[event]].verb or ""), event


def test_illegal_acts_keep_the_reason_that_decide_gives(make_folder: Callable[..., Path]) -> None:
    path = make_folder()
    view = seen(path, "reader")
    given = {one.draft.event: one for one in options(read(path), "reader", NOW)}
    found = {entry.action.event: entry for entry in entries(in_folder(view), Keys()) if entry.action.event}
    for event, option in given.items():
        if event == "deliverable_drafted" or event not in found or event == "deliverable_revised":
            continue
        reason = found[event].reason
        if option.legal:
            assert reason is None, event
        else:
            assert reason is not None, event
            assert reason.text == option.reasons[0].cause
            assert reason.command == option.reasons[0].next_command
    assert found["blocked"].reason is None
    assert found["review_submitted"].reason is not None


def test_what_a_form_puts_right_does_not_stop_it(make_folder: Callable[..., Path], clock: object) -> None:
    path = make_folder()
    readiness = "# Readiness\n\n- [resolved] all\n\n- [ ] The cache is measured\n- [ ] Ready to implement\n"
    reply = 1
    for who, event in (
        ("server", "proposal_submitted"),
        ("reader", "review_submitted"),
        ("server", "proposal_revised"),
        ("server", "question_classified"),
        ("server", "decision_accepted"),
        ("reader", "decision_accepted"),
    ):
        (path / "readiness.md").write_text(readiness, encoding="utf-8")
        store.append(path, Draft(who, event, "so it is", None, reply), clock=clock)  # type: ignore[arg-type]
        reply += 1
    view = seen(path, "server")
    assert view.state.phase == "readiness_check"
    context = in_folder(view)
    assert view.options["readiness_passed"].reasons[0].code == "readiness_not_ticked"
    assert BY_ID["ready"].legal(context) is None
    reason = BY_ID["conclude"].legal(context)
    assert reason is not None
    assert "requires a prior readiness_passed" in reason.text


def test_nobody_acts_before_they_said_who_they_are(make_folder: Callable[..., Path]) -> None:
    view = seen(make_folder(), None)
    for action in ACTIONS:
        if action.event is not None or action.id in ("append", "edit"):
            reason = action.legal(in_folder(view, document="proposal.md"))
            assert reason is not None
            assert "say who you are" in reason.text
    assert BY_ID["who"].legal(in_folder(view)) is None


def test_editing_is_for_the_role_and_the_phase(make_folder: Callable[..., Path]) -> None:
    path = make_folder()
    edit = BY_ID["edit"].legal
    assert edit(in_folder(seen(path, "server"), document="proposal.md")) is None
    other = edit(in_folder(seen(path, "reader"), document="proposal.md"))
    assert other is not None
    assert other.text == "proposal.md is edited by server now, not by reader"
    early = edit(in_folder(seen(path, "server"), document="conclusion.md"))
    assert early is not None
    assert early.text == "conclusion.md may be edited in readiness_check; the phase is drafting"
    nothing = edit(in_folder(seen(path, "server")))
    assert nothing is not None
    assert nothing.text.startswith("open a document first")


def test_a_folder_that_cannot_be_read_gives_its_own_cause(tmp_path: Path) -> None:
    view = seen(tmp_path / "gone", "reader")
    reason = BY_ID["review"].legal(in_folder(view))
    assert reason is not None
    assert "there is no folder" in reason.text


def test_the_footer_has_eight_keys_the_next_action_first_and_help_last(make_folder: Callable[..., Path]) -> None:
    view = seen(make_folder(), "server")
    shown = footer(in_folder(view, document="proposal.md"), Keys())
    assert len(shown) <= 8
    assert shown[0].action.id == "submit"
    assert shown[-1].action.id == "help"
    assert all(entry.reason is None for entry in shown)
    for screen in (INBOX, LIST):
        names = [entry.action.id for entry in footer(Context(screen, row="x", selected=Path("x"), waiting=2), Keys())]
        assert names[0] == "open"
        assert names[-1] == "help"


def test_commands_name_the_folder_and_the_person(make_folder: Callable[..., Path]) -> None:
    view = seen(make_folder("a folder"), "server")
    command = BY_ID["submit"].command(in_folder(view))
    assert command == f"collab submit --folder '{view.path}' --as server"


def test_a_keymap_changes_keys_help_footer_and_table(make_folder: Callable[..., Path]) -> None:
    keys = Keys({"submit": "S", "next-waiting": "J"})
    assert keys.problems == []
    assert keys.of(BY_ID["submit"]) == ("S",)
    assert keys.of(BY_ID["next-waiting"]) == ("J", "f4"), "the key that works inside a field stays"
    view = seen(make_folder(), "server")
    assert footer(in_folder(view), keys)[0].key == "S"
    table = key_table_markdown(keys)
    assert "| `S` | Submit proposal.md for review |" in table
    assert "| `J` `F4` |" in table
    assert keys.textual()["submit"] == "S"
    assert keys.textual()["next-waiting.field"] == "f4"


@pytest.mark.parametrize(
    ("keymap", "part"),
    [
        ({"sumbit": "S"}, "did you mean 'submit'?"),
        ({"review": "ctrl+m"}, "ctrl+m is Enter in a terminal"),
        ({"review": "ctrl+q"}, "kept for quit"),
        ({"review": "b"}, "b already is 'block'"),
        ({"review": "?"}, "? already is 'help'"),
        ({"review": ""}, "no key is named"),
        ({"review": "super+x+"}, "is no key"),
        ({"review": "12"}, "is no key"),
    ],
)
def test_a_keymap_line_that_cannot_be_is_refused_and_the_default_stays(keymap: dict[str, str], part: str) -> None:
    keys = Keys(keymap)
    assert len(keys.problems) == 1
    assert part in keys.problems[0][1]
    assert keys.of(BY_ID["review"]) == ("r",)


def test_two_actions_may_swap_their_keys() -> None:
    keys = Keys({"review": "b", "block": "r"})
    assert keys.problems == []
    assert keys.of(BY_ID["review"]) == ("b",)
    assert keys.of(BY_ID["block"]) == ("r",)


@pytest.mark.parametrize(
    ("key", "shown"),
    [("f4", "F4"), ("shift+f4", "shift+F4"), ("escape", "esc"), ("?", "?"), ("ctrl+p", "ctrl+p"), ("P", "P")],
)
def test_keys_are_shown_as_people_read_them(key: str, shown: str) -> None:
    assert show_key(key) == shown
