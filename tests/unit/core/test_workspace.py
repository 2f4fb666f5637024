"""Finding collaborations and summing them up: cheap, and never an exception (docs/design.md §3, "Discovery")."""

from __future__ import annotations

import json
import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core import workspace
from core.acp import guided
from core.acp.reader import read
from core.acp.templates import initialize
from core.clock import parse
from core.workspace import Place, Summaries, find, summarise
from tests.conftest import FixedClock, MakeFolder
from tests.unit.core.acp.test_guided import WAY

PEOPLE = ("server", "reader", "editor")


def mark(folder: Path, name: str = "protocol.json") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("{}")
    return folder


def names(root: Path, *roots: Path, depth: int = workspace.DEPTH) -> list[str]:
    return [str(place.path.relative_to(root)) for place in find([root, *roots], depth)]


# Discovery


def test_a_folder_with_either_file_is_one(tmp_path: Path) -> None:
    mark(tmp_path / "b")
    mark(tmp_path / "a", "events.jsonl")
    (tmp_path / "c" / "deep").mkdir(parents=True)
    mark(tmp_path / "d", "protocol.json.bak")
    assert find([tmp_path]) == [Place("acp", tmp_path / "a"), Place("acp", tmp_path / "b")]


def test_a_root_may_be_one_itself(tmp_path: Path) -> None:
    mark(tmp_path)
    mark(tmp_path / "inside")
    assert names(tmp_path) == ["."]


def test_what_is_inside_a_collaboration_is_not_looked_at(tmp_path: Path) -> None:
    mark(tmp_path / "talk" / "attachments" / "old")
    mark(tmp_path / "talk")
    assert names(tmp_path) == ["talk"]


def test_depth_six_is_the_last(tmp_path: Path) -> None:
    mark(tmp_path / "1/2/3/4/5/6")
    mark(tmp_path / "a/b/c/d/e/f/g")
    assert names(tmp_path) == ["1/2/3/4/5/6"]
    assert names(tmp_path, depth=7) == ["1/2/3/4/5/6", "a/b/c/d/e/f/g"]
    assert names(tmp_path, depth=0) == []


@pytest.mark.parametrize("name", sorted(workspace.SKIPPED))
def test_some_folders_are_never_entered(tmp_path: Path, name: str) -> None:
    mark(tmp_path / name / "talk")
    mark(tmp_path / "x" / name)
    assert names(tmp_path) == []
    # But whoever names one as a root means it.
    assert names(tmp_path / name) == ["talk"]


def test_hidden_folders_are_walked(tmp_path: Path) -> None:
    mark(tmp_path / ".hidden" / ".deeper" / "talk")
    assert names(tmp_path) == [".hidden/.deeper/talk"]


def test_links_are_not_followed(tmp_path: Path) -> None:
    mark(tmp_path / "real" / "talk")
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "link").symlink_to(tmp_path / "real")
    (tmp_path / "root" / "loop").symlink_to(tmp_path / "root")
    (tmp_path / "root" / "dead").symlink_to(tmp_path / "nowhere")
    assert names(tmp_path / "root") == []
    # A root that is a link was named by the person.
    assert names(tmp_path / "root" / "link") == ["talk"]


def test_a_file_that_is_a_link_still_marks_its_folder(tmp_path: Path) -> None:
    """It is shown, with the finding, rather than hidden."""
    (tmp_path / "talk").mkdir()
    (tmp_path / "talk" / "protocol.json").symlink_to("/etc/passwd")
    assert names(tmp_path) == ["talk"]
    item = summarise(Place("acp", tmp_path / "talk"))
    assert (item.health, item.problem and item.problem.code) == ("unreadable", "path_is_link")


def test_a_place_below_two_roots_is_there_once(tmp_path: Path) -> None:
    mark(tmp_path / "a" / "talk")
    assert names(tmp_path, tmp_path / "a", tmp_path) == ["a/talk"]


@pytest.mark.parametrize("root", ["missing", "file", "x\0y"])
def test_a_root_that_is_none_has_nothing(tmp_path: Path, root: str) -> None:
    (tmp_path / "file").write_text("x")
    assert find([tmp_path / root]) == []


@pytest.mark.parametrize("name", [b"\xff", "né 中".encode(), b"a\nb", b"\x1b[2J", b"-rf", b" "])
def test_any_name_is_found(tmp_path: Path, name: bytes) -> None:
    mark(tmp_path / os.fsdecode(name))
    assert [os.fsencode(place.path.name) for place in find([tmp_path])] == [name]


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A scratch folder that everybody may enter."""
    with tempfile.TemporaryDirectory(prefix="collab-tests-") as made:
        Path(made).chmod(0o755)
        yield Path(made)


def test_folders_that_may_not_be_read_are_skipped(open_path: Path) -> None:
    """Of a person without rights: root becomes nobody in a process of its own."""
    mark(open_path / "open" / "talk")
    mark(open_path / "closed" / "talk")
    os.chmod(open_path / "closed", 0)
    said = as_nobody(lambda: json.dumps(names(open_path)))
    os.chmod(open_path / "closed", 0o755)
    assert json.loads(said) == ["open/talk"]


def as_nobody(function: Callable[[], str]) -> str:
    """What a function says in a child process that has no special rights."""
    heard, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(heard)
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            os.write(told, function().encode())
        except BaseException as exc:  # noqa: BLE001 - the parent compares what was said
            os.write(told, repr(exc).encode())
        finally:
            os._exit(0)
    os.close(told)
    with os.fdopen(heard, "rb") as pipe:
        said = pipe.read()
    os.waitpid(pid, 0)
    return said.decode()


# Summaries


def summary(folder: Path) -> workspace.Item:
    return summarise(Place("acp", folder))


def test_a_summary_follows_the_log(make_folder: MakeFolder, clock: FixedClock) -> None:
    folder = make_folder("talk", PEOPLE)
    for act in (None, *WAY):
        if act is not None:
            clock.step(60)
            guided.commit(folder, act, clock)
        item, snapshot = summary(folder), read(folder)
        last = snapshot.events[-1]
        assert (item.kind, item.path, item.title) == ("acp", folder, "Agree on the session cache.")
        assert (item.phase, item.owner, item.waiting_for) == (snapshot.state.phase, "server", snapshot.state.waiting)
        assert (item.participants, item.seq, item.since) == (PEOPLE, last.seq, parse(last.at))
        assert (item.health, item.problem) == ("ok", None)


def line(number: int, /, **fields: object) -> str:
    event = {
        "seq": number,
        "from": "server",
        "event": "decision_proposed",
        "at": "2026-03-01T09:00:00Z",
        "summary": "x",
    }
    return json.dumps({**event, "reply_to": 1, **fields}) + "\n"


@pytest.fixture
def talk(quick_path: Path, clock: FixedClock) -> Path:
    folder = quick_path / "talk"
    initialize(folder, "Agree on the session cache.", PEOPLE, ["Measured"], clock)
    for act in WAY[:4]:
        guided.commit(folder, act, clock)
    return folder


def append(folder: Path, text: str) -> None:
    with (folder / "events.jsonl").open("a") as log:
        log.write(text)


def test_a_projection_that_lags_is_stale_and_the_log_is_right(talk: Path) -> None:
    append(talk, line(6, event="blocked", summary="No host"))
    item = summary(talk)
    assert (item.health, item.phase, item.waiting_for) == ("stale", "blocked", ())
    assert item.problem is not None
    assert item.problem.code == "projection_stale"
    assert item.problem.next_command == f"collab repair --folder {talk}"


DAMAGE = {
    "a line that is no JSON": ("rubbish\n", "log_damaged", "events.jsonl line 6: invalid JSON"),
    "a line that is no object": ("[]\n", "log_damaged", "events.jsonl line 6: event must be an object"),
    "a torn line": ('{"seq":6,"fr', "log_damaged", "events.jsonl line 6: torn"),
    "an event out of turn": (line(6, event="completed"), "readiness_not_passed", "seq 6: completed requires"),
    "an event of a stranger": (line(6, **{"from": "x"}), "participant_unknown", "seq 6: participant 'x'"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_log_is_said_to_be(talk: Path, name: str) -> None:
    text, code, cause = DAMAGE[name]
    append(talk, text)
    item = summary(talk)
    assert item.health == "damaged"
    assert item.problem is not None
    assert item.problem.code == code
    assert item.problem.cause.startswith(cause)


def test_a_whole_last_line_without_its_end_counts(talk: Path) -> None:
    append(talk, line(6).rstrip("\n"))
    item = summary(talk)
    assert (item.health, item.seq) == ("ok", 6)


UNREADABLE: dict[str, tuple[Callable[[Path], object], str]] = {
    "no protocol.json": (lambda folder: (folder / "protocol.json").unlink(), "file_missing"),
    "no JSON": (lambda folder: (folder / "protocol.json").write_text("{"), "json_malformed"),
    "an array": (lambda folder: (folder / "protocol.json").write_text("[]"), "json_not_object"),
    "no UTF-8": (lambda folder: (folder / "protocol.json").write_bytes(b"\xff"), "json_malformed"),
    "deep JSON": (lambda folder: (folder / "protocol.json").write_text('{"a":' + "[" * 99_999), "json_too_deep"),
    "a folder": (
        lambda folder: ((folder / "protocol.json").unlink(), (folder / "protocol.json").mkdir()),
        "not_a_file",
    ),
    "a FIFO": (lambda folder: ((folder / "protocol.json").unlink(), os.mkfifo(folder / "protocol.json")), "not_a_file"),
    "a log that is a FIFO": (
        lambda folder: ((folder / "events.jsonl").unlink(), os.mkfifo(folder / "events.jsonl")),
        "not_a_file",
    ),
    "a log that is a link": (
        lambda folder: ((folder / "events.jsonl").unlink(), (folder / "events.jsonl").symlink_to("/etc/passwd")),
        "path_is_link",
    ),
    "no log": (lambda folder: (folder / "events.jsonl").unlink(), "file_missing"),
    "a huge setup": (lambda folder: os.truncate(folder / "protocol.json", 17 * 1024 * 1024), "file_too_large"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_is_said_to_be(talk: Path, name: str) -> None:
    damage, code = UNREADABLE[name]
    damage(talk)
    item = summary(talk)
    assert item.health == "unreadable"
    assert item.problem is not None
    assert item.problem.code == code
    assert item.path == talk


@pytest.mark.parametrize("kind", ["gone", "a file", "a socket", "a link to nowhere"])
def test_a_place_that_went_away_is_a_summary_too(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "x"
    if kind == "a file":
        place.write_text("x")
    if kind == "a link to nowhere":
        place.symlink_to("nowhere")
    if kind == "a socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(place))
    item = summary(place)
    assert (item.health, item.title, item.seq) == ("unreadable", "x", 0)


def test_a_log_that_may_not_be_read(open_path: Path, clock: FixedClock) -> None:
    folders = [open_path / "small", open_path / "big"]
    for folder in folders:
        initialize(folder, "x", PEOPLE, ["y"], clock)
    (folders[1] / "events.jsonl").write_text(line(1) * 500)
    for folder in folders:
        os.chmod(folder / "events.jsonl", 0)
    said = as_nobody(
        lambda: json.dumps([(summary(one).health, getattr(summary(one).problem, "code", "")) for one in folders])
    )
    assert json.loads(said) == [["unreadable", "permission_denied"]] * 2


WRONG_TYPES = [None, 5, True, "text", [], {}, [None], [{}], [5, "x"], {"id": 5}, 10**400, -0.5]


@pytest.mark.parametrize(
    "field",
    [
        "objective",
        "participants",
        "completionGates",
        "currentPhase",
        "proposalOwner",
        "waitingFor",
        "schemaVersion",
        "deliverables",
    ],
)
def test_fields_of_any_type_are_borne(talk: Path, field: str) -> None:
    raw = json.loads((talk / "protocol.json").read_text())
    log = (talk / "events.jsonl").read_text()
    for value in WRONG_TYPES:
        (talk / "protocol.json").write_text(json.dumps({**raw, field: value}))
        for more in ("", "".join(line(seq) for seq in range(6, 200))):
            (talk / "events.jsonl").write_text(log + more)
            item = summary(talk)
            assert item.path == talk
            assert isinstance(item.title, str)
            assert all(isinstance(name, str) for name in (*item.participants, *item.waiting_for))
            assert item.phase is None or isinstance(item.phase, str)
            assert item.owner is None or isinstance(item.owner, str)


@pytest.mark.parametrize("field", ["seq", "from", "event", "at", "summary", "doc", "reply_to", "role"])
def test_events_of_any_type_are_borne(talk: Path, field: str) -> None:
    log = (talk / "events.jsonl").read_text()
    for value in WRONG_TYPES:
        bad = line(6, **{field: value})
        for more in ("", "".join(line(seq) for seq in range(7, 200))):
            (talk / "events.jsonl").write_text(log + more + bad)
            item = summary(talk)
            assert item.path == talk
            assert item.health in ("ok", "damaged", "stale")


# Big logs


def big(folder: Path, count: int = 2000) -> None:
    append(folder, "".join(line(seq) for seq in range(6, count)))


def test_of_a_big_log_only_the_tail_is_read(talk: Path) -> None:
    big(talk)
    path = talk / "events.jsonl"
    data = path.read_bytes()
    # Nobody looks at the beginning: what is wrong there is for `validate`.
    path.write_bytes(b"#" * 1000 + data[1000:])
    item = summary(talk)
    assert (item.health, item.phase, item.waiting_for, item.seq) == ("ok", "decision_review", ("server",), 1999)
    assert item.since == parse("2026-03-01T09:00:00Z")
    assert item.state is not None
    assert (item.state.input_seq, item.state.classified_seq) == (1999, 0)


def test_a_big_log_that_says_otherwise_is_read_whole(talk: Path) -> None:
    big(talk)
    append(talk, line(2000, event="question_classified") + line(2001, event="blocked"))
    item = summary(talk)
    assert (item.health, item.phase, item.waiting_for, item.seq) == ("stale", "blocked", (), 2001)
    assert item.problem is not None


@pytest.mark.parametrize("text", ["rubbish\n", '{"seq":2000,"fr', "[]\n" + line(2000), "[" * 100_000 + "\n"])
def test_the_end_of_a_big_log_may_be_damaged(talk: Path, text: str) -> None:
    big(talk)
    append(talk, text)
    item = summary(talk)
    assert item.health == "damaged"
    assert item.problem is not None
    assert item.problem.code == "log_damaged"


def test_a_last_line_longer_than_the_tail(talk: Path) -> None:
    big(talk)
    append(talk, line(2000, summary="x" * 100_000))
    item = summary(talk)
    assert (item.health, item.phase, item.seq) == ("ok", "decision_review", 2000)


def test_what_just_fits_is_read_whole(talk: Path) -> None:
    path = talk / "events.jsonl"
    room = workspace.WHOLE_LOG - path.stat().st_size
    bare = len(line(6, summary=""))
    append(talk, line(6, summary="x" * (room - bare)))
    assert path.stat().st_size == workspace.WHOLE_LOG
    data = path.read_bytes()
    path.write_bytes(b"#" + data[1:])
    assert summary(talk).health == "damaged"
    path.write_bytes(b"#" + data[1:] + line(7).encode())
    assert summary(talk).health == "ok"


# The cache


def test_a_summary_is_made_again_only_after_a_change(talk: Path, make_folder: MakeFolder, clock: FixedClock) -> None:
    other = make_folder("other")
    cache = Summaries()
    places = [Place("acp", talk), Place("acp", other)]
    first = cache.items(places)
    assert [item.path for item in first] == [talk, other]
    assert all(again is item for again, item in zip(cache.items(places), first, strict=True))
    guided.commit(talk, WAY[4], clock)
    changed = cache.items(places)
    assert changed[0] is not first[0]
    assert changed[0].seq == 6
    assert changed[1] is first[1]
    (other / "protocol.json").write_text("{")
    assert cache.items(places)[1].health == "unreadable"
    (other / "protocol.json").unlink()
    assert cache.items(places)[1].problem != changed[1].problem
    assert [item.path for item in cache.items(places[:1])] == [talk]
    assert cache.item(places[1]).path == other


def test_a_place_is_summed_up_once(talk: Path) -> None:
    place = Place("acp", talk)
    assert len(Summaries().items([place, place])) == 1
