"""What waits for a person, in one order, each thing with an id of its own (docs/specs/console.md §2)."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from core import inbox
from core.acp import guided
from core.acp.model import Event, State
from core.finding import error
from core.inbox import InboxItem, acp_item, groups, items, ordered
from core.state import UserState
from core.workspace import Item, Place, summarise
from tests.conftest import START, FixedClock, MakeFolder
from tests.unit.core.acp.test_guided import WAY
from tui.cli import parser

PEOPLE = ("server", "reader", "editor")
NOW = START + timedelta(hours=5)
LAST = Event.read({"seq": 4, "from": "server", "event": "proposal_submitted", "summary": "Please", "at": "x"})
WHOLE = parser()


def item(**fields: object) -> Item:
    """A collaboration in `reviewing` that waits for the reader."""
    made = Item(
        "acp",
        Path("/srv/a talk"),
        "Cache",
        "reviewing",
        "server",
        PEOPLE,
        ("reader",),
        START,
        "ok",
        4,
        LAST,
        State("reviewing", "server", ("reader",), 4),
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def wanted(one: Item, me: str | None = "reader") -> InboxItem:
    made = acp_item(one, me)
    assert made is not None
    return made


# One collaboration

TURNS = {
    0: {"server": ("submit the proposal", "submit")},
    1: {"reader": ("write a review", "review"), "editor": ("write a review", "review")},
    2: {"editor": ("write a review", "review")},
    3: {"server": ("revise the proposal", "revise")},
    4: {"server": ("classify the questions", "classify")},
    5: {"server": ("classify the questions", "classify")},
    6: dict.fromkeys(PEOPLE, ("accept the decisions", "accept")),
    7: dict.fromkeys(("server", "editor"), ("accept the decisions", "accept")),
    8: {"editor": ("accept the decisions", "accept")},
    9: {"server": ("pass readiness", "ready")},
    10: {"server": ("conclude", "complete")},
    11: {},
}


def test_whose_turn_it_is_at_every_step(make_folder: MakeFolder, clock: FixedClock) -> None:
    folder = make_folder("a talk", PEOPLE)
    ids: set[str] = set()
    for step in range(12):
        if step:
            clock.step(60)
            guided.commit(folder, WAY[step - 1], clock)
        summary = summarise(Place("acp", folder))
        for who in (*PEOPLE, "stranger"):
            made = acp_item(summary, who)
            if who not in TURNS[step]:
                assert made is None, (step, who)
                continue
            assert made is not None
            action, verb = TURNS[step][who]
            assert (made.kind, made.lane, made.path, made.action) == ("acp", "decide", folder, action)
            assert shlex.split(made.command) == ["collab", verb, "--folder", str(folder), "--as", who]
            assert f"{who} is waited for, last was {summary.last and summary.last.name}" in made.why
            assert made.since == clock.now()
            assert made.deadline is None
            ids.add(made.id)
        anybody = acp_item(summary, None)
        if TURNS[step]:
            assert anybody is not None
            assert anybody.why == "waits for " + ", ".join(summary.waiting_for)
            assert shlex.split(anybody.command)[:2] == ["collab", "show"]
        else:
            assert anybody is None
    # Each event makes it another thing.
    assert len(ids) == 11


@pytest.mark.parametrize(
    ("state", "action", "verb"),
    [
        (State("drafting", "reader", ("reader",), 1), "draft the deliverable", "draft"),
        (State("drafting", "reader", ("reader",), 2, drafted=True), "submit the proposal", "submit"),
        (State("readiness_check", "reader", ("reader",), 9, drafted=True), "freeze the deliverable", "freeze"),
        (State("readiness_check", "reader", ("reader",), 10, drafted=True, frozen=True), "pass readiness", "ready"),
        (
            State("readiness_check", "reader", ("reader",), 11, readiness_passed=True, drafted=True, frozen=True),
            "conclude",
            "complete",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_deliverable_comes_first(state: State, action: str, verb: str) -> None:
    made = wanted(item(schema=2, phase=state.phase, state=state))
    assert (made.action, shlex.split(made.command)[1]) == (action, verb)


@pytest.mark.parametrize("me", ["reader", "server", None])
def test_a_block_waits_for_everybody(me: str | None) -> None:
    blocked = item(phase="blocked", waiting_for=(), last=replace_event(summary="No host"))
    made = wanted(blocked, me)
    assert (made.lane, made.why, made.who) == ("unblock", "No host", "server")
    assert shlex.split(made.command) == ["collab", "new-round", "--from", "/srv/a talk", "--folder", "/srv/a talk-2"]
    assert acp_item(blocked, "stranger") is None
    assert wanted(item(phase="blocked", last=None), me).why == "no reason given"


def replace_event(**fields: object) -> Event:
    return Event.read({**LAST.raw, **fields})


@pytest.mark.parametrize("health", ["damaged", "unreadable"])
@pytest.mark.parametrize("me", ["reader", "stranger", None])
def test_a_folder_that_cannot_be_trusted_is_something_to_know(health: str, me: str | None) -> None:
    broken = item(health=health, problem=error("log_damaged", "events.jsonl line 3: not UTF-8"))
    made = wanted(broken, me)
    assert (made.lane, made.why, made.cause) == ("know", "events.jsonl line 3: not UTF-8", "invalid:log_damaged")
    assert shlex.split(made.command) == ["collab", "validate", "--folder", "/srv/a talk"]
    assert wanted(item(health=health), me).why == "the folder cannot be read as it should"


def test_a_stale_projection_changes_no_turn() -> None:
    assert wanted(item(health="stale")).action == "write a review"


@pytest.mark.parametrize("phase", ["completed", None])
def test_what_is_over_or_unknown_asks_nothing(phase: str | None) -> None:
    assert acp_item(item(phase=phase), "reader") is None
    assert acp_item(item(phase=phase), None) is None


@pytest.mark.parametrize("me", ["reader", None])
def test_a_phase_of_others_is_looked_at(me: str | None) -> None:
    made = wanted(item(phase="voting", state=None), me)
    assert made.action == "look at it"
    assert shlex.split(made.command)[1] in ("next", "show")


def test_who_asks() -> None:
    assert wanted(item()).who == "server"
    assert wanted(item(last=replace_event(**{"from": 5}))).who == "server"
    assert wanted(item(last=None, owner=None)).who == ""


NAMES = ["a talk", "it's", '"x"', "`id`", "$(id)", "{folder}", "é\udcff", "x\ny"]


@pytest.mark.parametrize("name", NAMES)
def test_every_command_parses(name: str) -> None:
    path = Path("/srv") / name
    for one in (item(path=path), item(path=path, phase="blocked"), item(path=path, health="damaged")):
        words = shlex.split(wanted(one, "reader").command)
        assert words[0] == "collab"
        args = WHOLE.parse_args(words[1:])
        assert str(path) in (str(getattr(args, "source", "")), str(args.folder))


# Ids


def test_the_id_is_the_thing() -> None:
    one = wanted(item()).id
    assert one == wanted(item(title="Another title", since=None)).id
    others = [
        wanted(item(seq=5)),
        wanted(item(path=Path("/srv/other"))),
        wanted(item(phase="blocked")),
        wanted(item(health="damaged")),
        wanted(item(health="damaged", problem=error("x", "another damage"))),
        wanted(item(health="unreadable", seq=0, problem=error("json_malformed", "a"))),
        wanted(item(health="unreadable", seq=0, problem=error("json_malformed", "b"))),
    ]
    ids = [one, *(made.id for made in others)]
    assert len(set(ids)) == len(ids)
    assert all(made.isascii() and made.replace("-", "").isalnum() for made in ids)


def test_a_hostile_title_and_path_are_kept_as_data() -> None:
    made = wanted(item(title="\x1b[2J", path=Path("/x/\udcff")))
    assert made.title == "\x1b[2J"
    assert json.loads(json.dumps(made.as_json()))["path"] == "/x/\udcff"


def test_the_json_has_its_keys() -> None:
    assert wanted(item()).as_json() == {
        "id": wanted(item()).id,
        "kind": "acp",
        "lane": "decide",
        "path": "/srv/a talk",
        "title": "Cache",
        "who": "server",
        "why": "reviewing: reader is waited for, last was proposal_submitted",
        "since": "2026-03-01T09:00:00Z",
        "deadline": None,
        "action": "write a review",
        "command": "collab review --folder '/srv/a talk' --as reader",
    }
    late = replace(wanted(item(since=None)), deadline=START)
    assert (late.as_json()["since"], late.as_json()["deadline"]) == (None, "2026-03-01T09:00:00Z")


# The order


def named(name: str, **fields: object) -> Item:
    return item(path=Path("/w") / name, **fields)


def test_lanes_then_age_then_path() -> None:
    found = [
        named("damaged", health="damaged"),
        named("blocked", phase="blocked"),
        named("young", since=START + timedelta(hours=2)),
        named("ageless", since=None),
        named("b-old"),
        named("a-old"),
        named("done", phase="completed"),
    ]
    for given in (found, found[::-1]):
        made = items(given, lambda one: "reader", {}, NOW)
        assert [one.path.name for one in made] == ["a-old", "b-old", "young", "ageless", "blocked", "damaged"]
        assert [inbox.LANES.index(one.lane) for one in made] == sorted(inbox.LANES.index(one.lane) for one in made)


def test_a_deadline_goes_before_age() -> None:
    old, urgent = wanted(item()), replace(wanted(item(since=NOW)), deadline=NOW)
    later = replace(urgent, deadline=NOW + timedelta(days=1))
    assert ordered([old, later, urgent]) == [urgent, later, old]


def test_who_i_am_is_asked_of_each_folder() -> None:
    found = [named("a", waiting_for=("reader",)), named("b", waiting_for=("editor",)), named("c")]
    who = {"a": "reader", "b": "reader", "c": None}
    made = items(found, lambda one: who[one.path.name], {}, NOW)
    assert [(one.path.name, one.why.split(":")[0]) for one in made] == [("a", "reviewing"), ("c", "waits for reader")]


# Snoozing


@pytest.fixture
def state(tmp_path: Path) -> UserState:
    return UserState(tmp_path / "state")


def test_what_is_snoozed_is_hidden_until_then(state: UserState) -> None:
    one, other = named("a"), named("b")
    made = wanted(one)
    assert inbox.snooze(state, made.id, NOW + timedelta(hours=2), NOW)
    hidden = inbox.snoozes(state)
    assert hidden == {made.id: NOW + timedelta(hours=2)}

    def left(now: datetime, *found: Item) -> list[str]:
        return [shown.path.name for shown in items(found, lambda _: "reader", hidden, now)]

    assert left(NOW, one, other) == ["b"]
    assert left(NOW + timedelta(hours=2, seconds=-1), one, other) == ["b"]
    assert left(NOW + timedelta(hours=2), one, other) == ["a", "b"]
    # It changed: that is something else, and nobody has put it off.
    assert left(NOW, replace(one, seq=5), other) == ["a", "b"]


def test_snoozes_that_are_over_are_forgotten(state: UserState) -> None:
    for number in range(3):
        assert inbox.snooze(state, f"old-{number}", NOW + timedelta(seconds=number), NOW)
    assert inbox.snooze(state, "new", NOW + timedelta(days=1), NOW + timedelta(seconds=1))
    assert sorted(inbox.snoozes(state)) == ["new", "old-2"]


@pytest.mark.parametrize("text", ["", "[]", '{"a": 5, "b": "x", "c": null, "d": "2026-03-01T09:00:00"}', "\x00"])
def test_damaged_snoozes_hide_nothing(state: UserState, text: str) -> None:
    state.folder.mkdir()
    (state.folder / "snooze.json").write_text(text)
    assert inbox.snoozes(state) == {}
    assert inbox.snooze(state, "new", NOW, NOW - timedelta(days=1))
    assert inbox.snoozes(state) == {"new": NOW}


def test_a_snooze_that_cannot_be_kept_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert not inbox.snooze(UserState(tmp_path / "file"), "x", NOW, NOW)


# Groups


def test_alike_things_are_folded(tmp_path: Path) -> None:
    problem = error("json_malformed", "x")
    found = [
        named("a"),
        named("b"),
        named("c", health="unreadable", problem=problem),
        named("d", health="unreadable", problem=error("json_malformed", "y")),
        named("e", health="unreadable", problem=error("log_damaged", "y")),
        named("f", phase="blocked", last=replace_event(summary="No host")),
        named("g", phase="blocked", last=replace_event(summary="No host")),
        named("h", phase="blocked", last=replace_event(summary="No money")),
    ]
    made = groups(items(found, lambda _: "reader", {}, NOW))
    assert [[one.path.name for one in group] for _, group in made] == [
        ["a"],
        ["b"],
        ["f", "g"],
        ["h"],
        ["c", "d"],
        ["e"],
    ]
    assert len({name for name, _ in made}) == 6
    assert groups([]) == []


def test_times_are_utc() -> None:
    assert NOW.tzinfo is UTC
