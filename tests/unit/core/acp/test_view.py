"""Projections for people: next action, options, gates, who waits, who may edit (docs/specs/acp.md §5, §6)."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable

import pytest

from core.acp import view
from core.acp.history import EDITABLE
from core.acp.model import DOCUMENTS, EVENTS_V1, Event
from core.acp.reader import Snapshot, read
from core.acp.rules import judge
from core.acp.store import encode_setup
from core.clock import parse
from tests.conftest import MakeFolder
from tests.unit.core.acp.builders import (
    CONCLUSION,
    GATE,
    NOW,
    PEOPLE,
    READINESS,
    SITUATIONS,
    Talk,
    setup,
)
from tests.unit.core.acp.test_rules import LEGAL
from tui.cli import parser

WHOLE = parser()

At = Callable[..., Snapshot]


@pytest.fixture
def at(make_folder: MakeFolder) -> At:
    """`at(situation, readiness=…, conclusion=…)`: a folder on disk whose log is that of a situation."""

    def make(situation: str, readiness: str = READINESS, conclusion: str = CONCLUSION) -> Snapshot:
        folder = make_folder(situation.replace(" ", "-"), PEOPLE, (GATE,))
        talk = Talk(setup(), *SITUATIONS[situation])
        lines = [json.dumps(dict(event.raw)) + "\n" for event in talk.events]
        (folder / "events.jsonl").write_text("".join(lines))
        (folder / "readiness.md").write_text(readiness)
        (folder / "conclusion.md").write_text(conclusion)
        made = read(folder)
        assert made.setup is not None
        (folder / "protocol.json").write_bytes(
            encode_setup({**made.setup.raw, "currentPhase": made.state.phase, "waitingFor": list(made.state.waiting)})
        )
        return read(folder)

    return make


NEXT = {
    ("drafting", "server"): ("update proposal.md", "proposal_submitted"),
    ("drafting", "reader"): ("wait for the proposal owner", None),
    ("reviewing", "reader"): ("append a structured review to review.md", "review_submitted"),
    ("reviewing", "server"): ("wait for the listed reviewer(s); do not edit proposal.md", None),
    ("one review", "editor"): ("wait for the listed reviewer", None),
    ("one review", "reader"): ("append a structured review", "review_submitted"),
    ("revising", "server"): ("revise proposal.md", "proposal_revised"),
    ("revising", "reader"): ("wait for the proposal owner to revise", None),
    ("revised", "server"): ("classify every question", "question_classified"),
    ("revised", "reader"): ("wait for remaining participants", None),
    ("classified", "server"): ("append decision_accepted", "decision_accepted"),
    ("classified", "editor"): ("append decision_accepted", "decision_accepted"),
    ("one accepted", "reader"): ("wait for remaining participants", None),
    ("readiness_check", "server"): ("append readiness_passed", "readiness_passed"),
    ("readiness_check", "reader"): ("wait for the proposal owner", None),
    ("passed", "server"): ("append completed with doc=conclusion.md", "completed"),
    ("completed", "server"): ("stop; collaboration is complete", None),
    ("completed", "reader"): ("stop; collaboration is complete", None),
    ("blocked", "server"): ("start a new collaboration round", None),
}


@pytest.mark.parametrize(("situation", "who"), NEXT)
def test_the_one_next_action(at: At, situation: str, who: str) -> None:
    snapshot = at(situation)
    text, event = NEXT[situation, who]
    action = view.next_action(snapshot, who)
    assert text in action.text
    assert action.event == event
    assert action.mine == (event is not None)
    if event is not None:
        assert snapshot.setup is not None
        assert (
            judge(snapshot.state, Event.read({"from": who, "event": event, "doc": "conclusion.md"}), snapshot.setup)
            == []
        )
    if action.command is not None:
        words = shlex.split(action.command)
        assert words[0] == "collab"
        WHOLE.parse_args(words[1:])


def test_every_situation_has_been_asked() -> None:
    assert {situation for situation, _ in NEXT} == set(SITUATIONS) - {"empty"}


@pytest.mark.parametrize(
    ("readiness", "conclusion", "text"),
    [
        ("- [blocking] A.\n", CONCLUSION, "clear blockers before"),
        (READINESS.replace("[x] Ready", "[ ] Ready"), CONCLUSION, "final design checklist"),
        (READINESS, "", "write conclusion.md"),
        (READINESS, CONCLUSION, "append completed"),
    ],
)
def test_what_is_missing_before_the_end(at: At, readiness: str, conclusion: str, text: str) -> None:
    assert text in view.next_action(at("passed", readiness, conclusion), "server").text


def test_an_open_item_stops_acceptance(at: At) -> None:
    snapshot = at("classified", "- [blocking] A.\n")
    assert view.next_action(snapshot, "server").event == "question_classified"
    waits = view.next_action(snapshot, "reader")
    assert (waits.event, waits.command) == (None, None)


def test_the_projection_is_never_asked(at: At) -> None:
    snapshot = at("reviewing")
    raw = json.loads((snapshot.path / "protocol.json").read_text())
    raw.update(currentPhase="completed", waitingFor=["server"], proposalOwner="editor")
    (snapshot.path / "protocol.json").write_text(json.dumps(raw))
    stale = read(snapshot.path)
    assert view.next_action(stale, "reader") == view.next_action(snapshot, "reader")
    assert stale.state == snapshot.state


@pytest.mark.parametrize("situation", SITUATIONS)
def test_options_are_what_may_be_done(at: At, situation: str) -> None:
    snapshot = at(situation)
    for who in PEOPLE:
        made = view.options(snapshot, who, NOW)
        legal = {option.draft.event for option in made if option.legal}
        assert legal == {event for event, actors in LEGAL[situation].items() if who in actors}
        assert {option.draft.event for option in made} >= set(EVENTS_V1) - {"initialized"}
        assert [option.legal for option in made] == sorted((option.legal for option in made), reverse=True)
        for option in made:
            assert bool(option.reasons) != option.legal
            assert bool(option.effect) == option.legal
            words = shlex.split(view.append_command(snapshot.path, option.draft))
            WHOLE.parse_args(words[1:])


def test_effects(at: At) -> None:
    made = {option.draft.event: option.effect for option in view.options(at("one review"), "reader", NOW)}
    assert made["review_submitted"] == "reviewing → revising, then waiting for server"
    assert made["blocked"] == "reviewing → blocked, then waiting for nobody"
    made = {option.draft.event: option.effect for option in view.options(at("classified"), "reader", NOW)}
    assert made["decision_accepted"] == "stays in decision_review, then waiting for editor, server"


def test_a_command_survives_its_quoting(at: At, make_folder: MakeFolder) -> None:
    folder = make_folder("it's $(a) `folder`; rm -rf {folder}", ("o'server", "{folder}; x", "--as"))
    snapshot = read(folder)
    for who in ("o'server", "{folder}; x"):
        for option in view.options(snapshot, who, NOW):
            command = view.append_command(folder, option.draft)
            args = WHOLE.parse_args(shlex.split(command)[1:])
            assert args.folder == folder.resolve()
            assert args.participant == who
            for reason in option.reasons:
                if reason.next_command is not None:
                    args = WHOLE.parse_args(shlex.split(reason.next_command)[1:])
                    assert args.folder == folder.resolve()
                    assert getattr(args, "participant", who) == who
        action = view.next_action(snapshot, who)
        if action.command is not None:
            args = WHOLE.parse_args(shlex.split(action.command)[1:])
            assert (args.folder, args.as_) == (folder.resolve(), who)


def test_gates(at: At) -> None:
    made = {gate.text: gate.state for gate in view.gates(at("passed"))}
    assert set(made.values()) == {"done"}
    assert made[GATE] == "done"
    assert made["conclusion written"] == "done"
    open_ones = view.gates(at("drafting", "- [blocking] A.\n- [blocking] B.\n- [unresolved] C.\n", ""))
    by_text = {gate.text: gate.state for gate in open_ones}
    assert by_text["2 blocking"] == "failed"
    assert by_text["1 unresolved"] == "failed"
    assert by_text["deferred items have reasons"] == "done"
    assert by_text["Ready to implement"] == "open"
    assert by_text[GATE] == "open"
    assert by_text["readiness passed"] == "open"
    assert by_text["conclusion written"] == "open"


def test_people(at: At) -> None:
    snapshot = at("one review")
    made = {person.id: person for person in view.people(snapshot)}
    assert list(made) == list(PEOPLE)
    assert made["server"].owner
    assert not made["server"].waited_for
    assert made["reader"].waited_for
    assert made["reader"].since == parse(snapshot.events[-1].at)
    assert made["editor"].did == "review_submitted"
    assert made["reader"].did == ""


@pytest.mark.parametrize("situation", [name for name in SITUATIONS if name != "empty"])
def test_who_may_edit(at: At, situation: str) -> None:
    snapshot = at(situation)
    state = snapshot.state
    for who in (*PEOPLE, "stranger"):
        expected = set()
        for name in DOCUMENTS:
            if not state.terminal and state.phase in EDITABLE[name]:
                editors = state.reviewing if name == "review.md" else {"server"}
                expected |= {name} if who in editors else set()
        assert set(view.editable(snapshot, who)) == expected


def test_the_path_of_phases(at: At) -> None:
    made = view.phase_path(at("revising").state)
    assert made[:4] == [("drafting", "done"), ("reviewing", "done"), ("revising", "open"), ("decision_review", "open")]
    assert all(state == "done" for _, state in view.phase_path(at("completed").state))
    assert view.phase_path(at("blocked").state)[-1] == ("blocked", "failed")
