"""The guarded writer: decide, write, mend (docs/specs/acp.md §6)."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.acp import history, reader, store
from core.acp.model import DOCUMENTS, EVENTS_V1, Draft, Event
from core.acp.store import Appended, Change, append
from core.files import LINE_CAP, Root, set_fault, sha256
from core.finding import Refused
from tests.conftest import FixedClock, MakeFolder

Files = dict[str, bytes]


class Killed(BaseException):
    """Stands for a SIGKILL: nobody catches it, nothing is cleaned up but what the kernel cleans up."""


@pytest.fixture(autouse=True)
def no_fault() -> Iterator[None]:
    yield
    set_fault(None)


@pytest.fixture
def folder(make_folder: MakeFolder) -> Path:
    return make_folder("talk", ("server", "reader", "editor"))


@pytest.fixture
def act(folder: Path, clock: FixedClock) -> Callable[..., Appended]:
    """`act(who, event, …)`: append to the folder, answering the latest event unless told otherwise."""

    def run(who: str, event: str, summary: str = "Done.", change: Change | None = None, **fields: Any) -> Appended:
        clock.step(1)
        if "reply_to" not in fields:
            fields["reply_to"] = len(lines(folder))
        return append(folder, Draft(who, event, summary, **fields), clock=clock, change=change)

    return run


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "events.jsonl").read_bytes().splitlines()]


def protocol(folder: Path) -> dict[str, Any]:
    made: dict[str, Any] = json.loads((folder / "protocol.json").read_bytes())
    return made


def files(folder: Path) -> Files:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def kill_at(operation: str, name: str) -> None:
    """From now on die at this fault point."""

    def hook(seen: str, where: str) -> None:
        if (seen, where) == (operation, name):
            raise Killed

    set_fault(hook)


def fail_at(operation: str, name: str, code: int = errno.ENOSPC, times: int = 1) -> None:
    left = [times]

    def hook(seen: str, where: str) -> None:
        if (seen, where) == (operation, name) and left[0]:
            left[0] -= 1
            raise OSError(code, os.strerror(code))

    set_fault(hook)


def codes(refused: pytest.ExceptionInfo[Refused]) -> list[str]:
    return [item.code for item in refused.value.findings]


def proposal(text: str) -> Change:
    return Change("proposal.md", lambda event, old: f"{text} by {event.actor} at seq {event.seq}\n")


def test_one_event(folder: Path, act: Callable[..., Appended], clock: FixedClock) -> None:
    before = (folder / "events.jsonl").read_bytes()
    made = act("server", "proposal_submitted", "Soumis \u2028 été", doc="proposal.md")
    raw = (folder / "events.jsonl").read_bytes()
    assert raw.startswith(before)
    assert (
        raw[len(before) :]
        == (
            '{"seq":2,"from":"server","event":"proposal_submitted","at":"2026-03-01T09:00:01Z",'
            '"summary":"Soumis \\u2028 été","doc":"proposal.md","reply_to":1}\n'
        ).encode()
    )
    assert made.event.raw == lines(folder)[-1]
    assert made.state.waiting == ("editor", "reader")
    now = protocol(folder)
    assert (now["currentPhase"], now["proposalOwner"], now["waitingFor"]) == (
        "reviewing",
        "server",
        ["editor", "reader"],
    )
    assert now["updatedAt"] == "2026-03-01T09:00:01Z"
    text = (folder / "protocol.json").read_text(encoding="utf-8")
    assert text == json.dumps(now, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
    assert made.mended == ()


def test_what_else_is_in_protocol_json_is_kept(folder: Path, act: Callable[..., Appended]) -> None:
    raw = {**protocol(folder), "mood": {"\ud800": [1.5, None, "é"]}}
    (folder / "protocol.json").write_text(json.dumps(raw))
    act("server", "proposal_submitted")
    assert protocol(folder)["mood"] == {"\ud800": [1.5, None, "é"]}


def test_a_refusal_writes_nothing_but_the_lock(folder: Path, act: Callable[..., Appended]) -> None:
    before = files(folder)
    for who, event, fields in (
        ("reader", "review_submitted", {}),
        ("stranger", "blocked", {}),
        ("server", "nonsense", {}),
        ("server", "proposal_submitted", {"reply_to": 7}),
        ("server", "proposal_submitted", {"reply_to": None}),
        ("server", "proposal_submitted", {"summary": " "}),
        ("server", "proposal_submitted", {"summary": "a\0b"}),
        ("server", "proposal_submitted", {"summary": "\udcff"}),
        ("server", "proposal_submitted", {"doc": "../secret"}),
        ("server", "proposal_submitted", {"doc": "/etc/passwd"}),
        ("server", "proposal_submitted", {"doc": "a/../../b"}),
        ("server", "proposal_submitted", {"summary": "x" * LINE_CAP}),
    ):
        with pytest.raises(Refused) as refused:
            act(who, event, **fields)
        assert all(item.severity == "error" and item.cause for item in refused.value.findings)
    after = files(folder)
    before.pop(".collab/lock", None)
    after.pop(".collab/lock", None)
    assert after == before


def test_the_clock_behind_is_lifted(folder: Path, act: Callable[..., Appended], clock: FixedClock) -> None:
    clock.step(3600)
    act("server", "proposal_submitted")
    clock.step(-7200)
    made = act("reader", "review_submitted")
    assert made.event.at == "2026-03-01T10:00:01Z"


def test_no_folder_becomes_a_collaboration_by_being_asked(tmp_path: Path, clock: FixedClock) -> None:
    (tmp_path / "plain").mkdir()
    for path, code in ((tmp_path / "plain", "not_a_collaboration"), (tmp_path / "missing", "folder_missing")):
        with pytest.raises(Refused) as refused:
            append(path, Draft("a", "initialized", "x"), clock=clock)
        assert codes(refused) == [code]
    assert list((tmp_path / "plain").iterdir()) == []


def test_a_log_that_is_damaged_takes_no_more(folder: Path, act: Callable[..., Appended]) -> None:
    whole = (folder / "events.jsonl").read_bytes()
    for damage in (b"rubbish\n", b"[1]\n", b"\xff\n", b'{"a":NaN}\n', b'{"a":' + b"[" * 9999 + b"]" * 9999 + b"}\n"):
        (folder / "events.jsonl").write_bytes(whole + damage)
        with pytest.raises(Refused) as refused:
            act("server", "proposal_submitted", reply_to=1)
        assert codes(refused) == ["log_damaged"]
        assert (folder / "events.jsonl").read_bytes() == whole + damage


def test_an_illegal_event_of_somebody_else_is_named(folder: Path, act: Callable[..., Appended]) -> None:
    with (folder / "events.jsonl").open("a") as log:
        log.write(
            '{"seq":2,"from":"reader","event":"completed","at":"2026-03-01T09:00:00Z","summary":"x","reply_to":1}\n'
        )
    with pytest.raises(Refused) as refused:
        act("server", "proposal_submitted")
    assert "seq 2: completed requires" in str(refused.value)


@pytest.mark.parametrize("name", ["events.jsonl", "protocol.json", "proposal.md", ".collab/history.jsonl"])
def test_a_link_in_the_place_of_a_file_leads_nowhere(
    folder: Path, act: Callable[..., Appended], tmp_path: Path, name: str
) -> None:
    outside = tmp_path / "outside"
    (folder / name).rename(outside)
    (folder / name).symlink_to(outside)
    before = outside.read_bytes()
    change = proposal("new") if name == "proposal.md" else None
    try:
        act("server", "proposal_submitted", reply_to=1, change=change)
    except Refused as refused:
        assert "path_is_link" in [item.code for item in refused.findings]  # noqa: PT017
    else:
        assert name == ".collab/history.jsonl"
    assert outside.read_bytes() == before


def test_numbers_that_cannot_be_printed_are_no_numbers(folder: Path, act: Callable[..., Appended]) -> None:
    with (folder / "events.jsonl").open("a") as log:
        log.write(
            '{"seq":%s,"from":"server","event":"proposal_submitted","at":"2026-03-01T09:00:00Z","summary":"x",'
            '"reply_to":1}\n' % ("9" * 4300)
        )
    made = act("reader", "review_submitted", reply_to=1)
    assert made.event.seq == 2
    assert any("expected seq 2" in item.cause for item in reader.read(folder).findings)


def test_deep_json_in_the_setup_is_refused_before_anything_is_written(
    folder: Path, act: Callable[..., Appended]
) -> None:
    raw = json.dumps(protocol(folder))[:-1]
    (folder / "protocol.json").write_text(raw + ',"deep":' + "[" * 400 + "]" * 400 + "}")
    before = (folder / "events.jsonl").read_bytes()
    with pytest.raises(Refused) as refused:
        act("server", "proposal_submitted")
    assert codes(refused) == ["json_too_deep"]
    assert (folder / "events.jsonl").read_bytes() == before


def test_a_preview_that_is_outdated_is_not_committed(
    folder: Path, act: Callable[..., Appended], clock: FixedClock
) -> None:
    draft = Draft("server", "proposal_submitted", "Done.", reply_to=1)
    shown = store.plan(reader.read(folder), draft, clock).expectation
    (folder / "proposal.md").write_text("changed meanwhile")
    with pytest.raises(Refused) as refused:
        append(folder, draft, clock=clock, expect=shown)
    assert codes(refused) == ["preview_outdated"]
    shown = store.plan(reader.read(folder), draft, clock).expectation
    act("editor", "blocked")
    with pytest.raises(Refused) as refused:
        append(folder, draft, clock=clock, expect=shown)
    assert "seq 2 blocked from editor" in str(refused.value)


def test_document_and_event_together(folder: Path, act: Callable[..., Appended]) -> None:
    old = (folder / "proposal.md").read_bytes()
    act("server", "proposal_submitted", change=proposal("Text"))
    assert (folder / "proposal.md").read_text() == "Text by server at seq 2\n"
    assert not (folder / ".collab/pending.json").exists()
    with Root(folder) as root:
        records = history.load(root)
        assert [record.seq for record in records] == [1, 2]
        assert history.content(root, records[0].documents["proposal.md"]) == old
        assert history.content(root, records[1].documents["proposal.md"]) == b"Text by server at seq 2\n"


def test_a_text_that_cannot_be_written_is_refused(folder: Path, act: Callable[..., Appended]) -> None:
    for text, code in (("\udcff", "text_not_utf8"), ("x" * (16 * 1024 * 1024 + 1), "file_too_large")):
        with pytest.raises(Refused) as refused:
            act("server", "proposal_submitted", change=Change("proposal.md", lambda event, old, text=text: text))
        assert codes(refused) == [code]
    assert len(lines(folder)) == 1


def test_a_torn_tail_goes_whole_into_the_sidecar(folder: Path, act: Callable[..., Appended]) -> None:
    whole = (folder / "events.jsonl").read_bytes()
    torn = b'{"seq":2,"from":"server","ev\xc3'
    (folder / "events.jsonl").write_bytes(whole + torn)
    assert [item.code for item in reader.read(folder).findings] == ["log_torn"]
    made = act("server", "proposal_submitted", reply_to=1)
    assert [item.code for item in made.mended] == ["log_torn_mended"]
    kept = made.mended[0].where
    assert kept is not None
    assert (folder / kept).read_bytes() == torn
    assert [event["seq"] for event in lines(folder)] == [1, 2]
    assert (folder / "events.jsonl").read_bytes().startswith(whole)
    assert reader.read(folder).findings == ()


def test_a_torn_tail_of_any_size_is_kept(folder: Path, act: Callable[..., Appended]) -> None:
    size = 48 * 1024 * 1024
    with (folder / "events.jsonl").open("ab") as log:
        log.write(b"{")
        log.truncate(log.tell() + size)
    made = act("server", "proposal_submitted", reply_to=1)
    kept = folder / str(made.mended[0].where)
    assert kept.stat().st_size == size + 1
    assert str(size + 1) in made.mended[0].cause
    assert len(lines(folder)) == 2


def test_a_whole_event_without_its_line_end_counts(folder: Path, act: Callable[..., Appended]) -> None:
    act("server", "proposal_submitted")
    log = folder / "events.jsonl"
    log.write_bytes(log.read_bytes().removesuffix(b"\n"))
    shown = reader.FolderReader(folder)
    assert shown.refresh().state.phase == "reviewing"
    assert shown.refresh().state.phase == "reviewing"
    shown.close()
    made = act("reader", "review_submitted", reply_to=2)
    assert [item.code for item in made.mended] == ["log_line_ended"]
    assert [event["seq"] for event in lines(folder)] == [1, 2, 3]


def test_a_torn_tail_stays_reported_at_every_look(folder: Path) -> None:
    with (folder / "events.jsonl").open("ab") as log:
        log.write(b'{"seq":2')
    shown = reader.FolderReader(folder)
    first, second = shown.refresh(), shown.refresh()
    shown.close()
    assert [item.code for item in first.findings] == ["log_torn"]
    assert second.findings == first.findings


def test_a_stale_projection_is_rebuilt(folder: Path, act: Callable[..., Appended], clock: FixedClock) -> None:
    act("server", "proposal_submitted")
    (folder / "protocol.json").write_text(
        json.dumps({**protocol(folder), "currentPhase": "drafting", "proposalOwner": "editor", "waitingFor": ["x"]})
    )
    assert {item.code for item in reader.read(folder).findings} == {"projection_stale"}
    assert [item.code for item in store.mend(folder, clock)] == ["projection_rebuilt"]
    assert protocol(folder)["waitingFor"] == ["editor", "reader"]
    assert store.mend(folder, clock) == []
    assert reader.read(folder).findings == ()


def test_mending_and_being_refused_says_both(folder: Path, act: Callable[..., Appended]) -> None:
    (folder / "protocol.json").write_text(json.dumps({**protocol(folder), "currentPhase": "revising"}))
    with pytest.raises(Refused) as refused:
        act("reader", "review_submitted")
    assert codes(refused) == ["phase_not_allowed", "actor_not_expected", "projection_rebuilt"]
    assert protocol(folder)["currentPhase"] == "drafting"


def test_what_is_in_the_way_of_temporary_files_stops_nobody(folder: Path, act: Callable[..., Appended]) -> None:
    (folder / ".collab/tmp-folder").mkdir()
    (folder / ".collab/tmp-1-abc").write_text("left by a killed writer")
    act("server", "proposal_submitted")
    assert not (folder / ".collab/tmp-1-abc").exists()


def test_a_torn_line_in_the_history_costs_only_itself(folder: Path, act: Callable[..., Appended]) -> None:
    with (folder / ".collab/history.jsonl").open("ab") as log:
        log.write(b'{"seq":9')
    act("server", "proposal_submitted")
    with Root(folder) as root:
        assert [record.seq for record in history.load(root)] == [1, 2]


def test_a_planted_object_does_not_replace_a_content(folder: Path, act: Callable[..., Appended]) -> None:
    (folder / "proposal.md").write_text("mine")
    planted = folder / ".collab/objects" / sha256(b"mine")
    planted.write_text("not what it says")
    act("server", "proposal_submitted", change=proposal("Text"))
    assert planted.read_text() == "mine"


POINTS = (
    ("rename", ".collab/pending.json", "before"),
    ("write", "proposal.md", "before"),
    ("rename", "proposal.md", "before"),
    ("fsync_dir", "proposal.md", "done"),
    ("write", "events.jsonl", "done"),
    ("fsync", "events.jsonl", "done"),
    ("write", ".collab/history.jsonl", "done"),
    ("rename", "protocol.json", "done"),
    ("unlink", ".collab/pending.json", "done"),
)


@pytest.mark.parametrize(("operation", "name", "outcome"), POINTS)
def test_a_writer_killed_anywhere_leaves_both_or_neither(
    folder: Path, act: Callable[..., Appended], clock: FixedClock, operation: str, name: str, outcome: str
) -> None:
    old = (folder / "proposal.md").read_bytes()
    kill_at(operation, name)
    with pytest.raises(Killed):
        act("server", "proposal_submitted", change=proposal("Text"))
    set_fault(None)
    before = files(folder)
    looked = reader.read(folder)
    assert looked.readable
    assert files(folder) == before
    mended = store.mend(folder, clock)
    text = (folder / "proposal.md").read_bytes()
    if outcome == "done":
        assert text == b"Text by server at seq 2\n"
        assert [event["event"] for event in lines(folder)] == ["initialized", "proposal_submitted"]
    else:
        assert text == old
        assert len(lines(folder)) == 1
        if name != ".collab/pending.json":
            assert [item.code for item in mended] == ["intent_undone"]
            kept = mended[0].where
            assert kept is not None
            assert (folder / kept).read_bytes() == b"Text by server at seq 2\n"
    assert not (folder / ".collab/pending.json").exists()
    assert not list((folder / ".collab").glob("tmp-*"))
    assert reader.read(folder).findings == ()
    assert store.mend(folder, clock) == []


def interrupted(
    folder: Path, act: Callable[..., Appended], point: tuple[str, str] = ("write", "events.jsonl")
) -> bytes:
    """Kill an act between its document and its event; the old text of the document."""
    old = (folder / "proposal.md").read_bytes()
    kill_at(*point)
    with pytest.raises(Killed):
        act("server", "proposal_submitted", change=proposal("Text"))
    set_fault(None)
    return old


def raw_append(folder: Path, **event: Any) -> None:
    """Another writer, who knows nothing of intents."""
    with (folder / "events.jsonl").open("a") as log:
        log.write(json.dumps({"at": "2026-03-01T09:00:01Z", "summary": "x", "reply_to": 1, **event}) + "\n")


def test_an_act_whose_place_was_taken_is_undone(folder: Path, act: Callable[..., Appended], clock: FixedClock) -> None:
    """Somebody appended meanwhile: the seq in the text would be wrong."""
    old = interrupted(folder, act)
    raw_append(folder, seq=2, **{"from": "server", "event": "proposal_submitted"})
    mended = store.mend(folder, clock)
    assert [item.code for item in mended] == ["intent_undone", "projection_rebuilt"]
    assert (folder / "proposal.md").read_bytes() == old
    assert (folder / str(mended[0].where)).read_text() == "Text by server at seq 2\n"
    assert len(lines(folder)) == 2


def test_an_act_that_is_no_longer_legal_is_undone(
    folder: Path, act: Callable[..., Appended], clock: FixedClock
) -> None:
    old = interrupted(folder, act)
    raw_append(folder, seq=2, **{"from": "editor", "event": "blocked"})
    mended = store.mend(folder, clock)
    assert mended[0].code == "intent_undone"
    assert (folder / "proposal.md").read_bytes() == old


def test_a_document_that_somebody_changed_since_is_left_alone(
    folder: Path, act: Callable[..., Appended], clock: FixedClock
) -> None:
    interrupted(folder, act)
    (folder / "proposal.md").write_text("a third text")
    mended = store.mend(folder, clock)
    assert [item.code for item in mended] == ["intent_undone"]
    assert (folder / "proposal.md").read_text() == "a third text"
    assert (folder / str(mended[0].where)).read_text() == "Text by server at seq 2\n"
    assert len(lines(folder)) == 1


def test_a_document_that_was_not_there_goes_again(
    folder: Path, act: Callable[..., Appended], clock: FixedClock
) -> None:
    (folder / "proposal.md").unlink()
    kill_at("write", "events.jsonl")
    with pytest.raises(Killed):
        act("server", "proposal_submitted", change=proposal("Text"))
    set_fault(None)
    raw_append(folder, seq=2, **{"from": "editor", "event": "blocked"})
    store.mend(folder, clock)
    assert not (folder / "proposal.md").exists()


def test_the_event_may_be_there_already(folder: Path, act: Callable[..., Appended], clock: FixedClock) -> None:
    interrupted(folder, act, ("write", ".collab/history.jsonl"))
    assert len(lines(folder)) == 2
    assert protocol(folder)["currentPhase"] == "drafting"
    mended = store.mend(folder, clock)
    assert [item.code for item in mended] == ["intent_finished"]
    assert protocol(folder)["currentPhase"] == "reviewing"
    assert len(lines(folder)) == 2
    with Root(folder) as root:
        assert [record.seq for record in history.load(root)] == [1, 2]


def test_a_mend_that_was_interrupted_itself_is_finished(
    folder: Path, act: Callable[..., Appended], clock: FixedClock
) -> None:
    """Its event bears a later time than the one that was intended."""
    interrupted(folder, act)
    clock.step(60)
    kill_at("write", ".collab/history.jsonl")
    with pytest.raises(Killed):
        store.mend(folder, clock)
    set_fault(None)
    assert [item.code for item in store.mend(folder, clock)] == ["intent_finished"]
    assert (folder / "proposal.md").read_text() == "Text by server at seq 2\n"
    assert len(lines(folder)) == 2
    assert reader.read(folder).findings == ()


def test_a_mend_whose_disk_is_full_leaves_the_act_to_the_next_one(
    folder: Path, act: Callable[..., Appended], clock: FixedClock
) -> None:
    interrupted(folder, act)
    fail_at("write", "events.jsonl")
    with pytest.raises(Refused) as refused:
        store.mend(folder, clock)
    set_fault(None)
    assert codes(refused) == ["disk_full"]
    assert [item.code for item in store.mend(folder, clock)] == ["intent_finished"]


def test_an_event_torn_in_the_middle_is_written_again(
    folder: Path, act: Callable[..., Appended], clock: FixedClock
) -> None:
    interrupted(folder, act)
    with (folder / "events.jsonl").open("ab") as log:
        log.write(b'{"seq":2,"from":"ser')
    mended = store.mend(folder, clock)
    assert [item.code for item in mended] == ["log_torn_mended", "intent_finished"]
    assert lines(folder)[-1]["event"] == "proposal_submitted"


@pytest.mark.parametrize(
    "intent",
    [
        b"",
        b"rubbish",
        b"[" * 100_000,
        b"[1]",
        b'{"line": 5, "document": "proposal.md", "after": "x"}',
        b'{"line": "{}", "document": "../../secret", "before": null, "after": "x"}',
        b'{"line": "{}", "document": "events.jsonl", "before": null, "after": "x"}',
        b'{"line": "no json", "document": "proposal.md", "before": null, "after": "x"}',
        b'{"line": "{}", "document": "proposal.md", "before": 7, "after": "x"}',
        b'{"line": "{}", "document": ["proposal.md"], "before": null, "after": "x"}',
        b"\xff\xfe",
    ],
    ids=range(11),
)
def test_an_unreadable_intent_is_set_aside(
    folder: Path, act: Callable[..., Appended], clock: FixedClock, intent: bytes
) -> None:
    before = {name: (folder / name).read_bytes() for name in (*DOCUMENTS, "events.jsonl")}
    (folder / ".collab/pending.json").write_bytes(intent)
    mended = store.mend(folder, clock)
    assert [item.code for item in mended] == ["intent_damaged"]
    assert (folder / str(mended[0].where)).read_bytes() == intent
    assert {name: (folder / name).read_bytes() for name in before} == before
    act("server", "proposal_submitted")


def test_a_forged_intent_loses_no_text(folder: Path, clock: FixedClock) -> None:
    """Its `after` is the digest of what stands there, its `before` is nothing: the text goes, but is kept."""
    (folder / "proposal.md").write_text("a week of work")
    line = json.dumps({"seq": 9, "from": "stranger", "event": "blocked", "summary": "x", "reply_to": 1})
    forged = {"seq": 9, "line": line, "document": "proposal.md", "before": None, "after": sha256(b"a week of work")}
    (folder / ".collab/pending.json").write_text(json.dumps(forged))
    mended = store.mend(folder, clock)
    assert [item.code for item in mended] == ["intent_undone"]
    assert (folder / str(mended[0].where)).read_text() == "a week of work"
    assert len(lines(folder)) == 1


def test_an_intent_of_a_long_line_is_read(folder: Path, act: Callable[..., Appended], clock: FixedClock) -> None:
    """Escaped, the line is longer than a line may be."""
    kill_at("write", "events.jsonl")
    with pytest.raises(Killed):
        act("server", "proposal_submitted", "é" * 400_000, change=proposal("Text"))
    set_fault(None)
    assert (folder / ".collab/pending.json").stat().st_size > LINE_CAP
    assert [item.code for item in store.mend(folder, clock)] == ["intent_finished"]
    assert lines(folder)[-1]["summary"] == "é" * 400_000


def test_a_full_disk_takes_the_document_back(folder: Path, act: Callable[..., Appended]) -> None:
    old = (folder / "proposal.md").read_bytes()
    fail_at("write", "events.jsonl")
    with pytest.raises(Refused) as refused:
        act("server", "proposal_submitted", change=proposal("Text"))
    set_fault(None)
    assert codes(refused) == ["disk_full", "intent_undone"]
    assert (folder / "proposal.md").read_bytes() == old
    assert (folder / str(refused.value.findings[1].where)).read_text() == "Text by server at seq 2\n"
    assert not (folder / ".collab/pending.json").exists()
    assert len(lines(folder)) == 1
    assert reader.read(folder).findings == ()


def test_a_disk_that_stays_full_leaves_it_to_the_next_writer(
    folder: Path, act: Callable[..., Appended], clock: FixedClock
) -> None:
    def hook(operation: str, name: str) -> None:
        if operation == "write" and (name == "events.jsonl" or "draft" in name):
            raise OSError(errno.ENOSPC, "full")

    set_fault(hook)
    with pytest.raises(Refused) as refused:
        act("server", "proposal_submitted", change=proposal("Text"))
    set_fault(None)
    assert codes(refused) == ["disk_full", "intent_pending"]
    assert [item.code for item in reader.read(folder).findings] == ["intent_pending"]
    assert refused.value.findings[1].next_command == f"collab repair --folder {folder}"
    assert [item.code for item in store.mend(folder, clock)] == ["intent_finished"]
    assert (folder / "proposal.md").read_text() == "Text by server at seq 2\n"


@pytest.mark.parametrize(
    ("operation", "name"),
    [("write", ".collab/history.jsonl"), ("rename", "protocol.json"), ("unlink", ".collab/pending.json")],
)
def test_once_the_event_is_in_the_log_it_is_done(
    folder: Path, act: Callable[..., Appended], operation: str, name: str
) -> None:
    """Whatever fails after the event does not turn the act into a failure."""
    fail_at(operation, name, errno.EIO)
    made = act("server", "proposal_submitted", change=proposal("Text"))
    set_fault(None)
    assert made.event.seq == 2
    act("reader", "review_submitted")
    assert protocol(folder)["waitingFor"] == ["editor"]


def test_a_raw_review_is_told_its_heading(folder: Path, act: Callable[..., Appended]) -> None:
    act("server", "proposal_submitted")
    made = act("reader", "review_submitted")
    assert [item.cause for item in made.warnings] == [
        "review.md still needs this heading: ## 2026-03-01T09:00:02Z - reader - seq 3"
    ]
    with (folder / "review.md").open("a") as review:
        review.write("\n## 2026-03-01T09:00:02Z - reader - seq 3\n\n## 2026-03-01T09:00:03Z - editor - seq 4\n")
    assert act("editor", "review_submitted").warnings == ()
    assert reader.read(folder).findings == ()


def version_two(folder: Path, **declared: Any) -> None:
    """Declare an external adr in `../docs`."""
    raw = {
        **protocol(folder),
        "protocol": "acp",
        "schemaVersion": 2,
        "repoRoot": "..",
        "deliverables": {"mode": "external", "dir": "docs", "primary": {"type": "adr", "file": "adr.md"}, **declared},
    }
    (folder / "protocol.json").write_text(json.dumps(raw))


DRAFTED = Draft("server", "deliverable_drafted", "x", "external:adr.md", 1, "primary")


def test_an_external_deliverable_leaves_no_trace_in_the_repository(
    folder: Path, tmp_path: Path, clock: FixedClock
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/adr.md").write_text("Status: Draft\n")
    version_two(folder)
    append(folder, DRAFTED, clock=clock, change=Change("external:adr.md", lambda event, old: old + "more\n"))
    assert (tmp_path / "docs/adr.md").read_text() == "Status: Draft\nmore\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["docs", folder.name]
    assert [path.name for path in (tmp_path / "docs").iterdir()] == ["adr.md"]


def test_an_attachment_is_not_copied_into_the_folder(folder: Path, tmp_path: Path, clock: FixedClock) -> None:
    """Whoever declares attachments must not get at other files of the repository by it."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/adr.md").write_text("Status: Draft\n")
    (tmp_path / "docs/.env").write_text("SECRET=1")
    version_two(folder, attachments=[{"file": ".env"}])
    append(folder, DRAFTED, clock=clock)
    kept = files(folder)
    assert b"Status: Draft\n" in kept.values()
    assert b"SECRET=1" not in kept.values()


def test_reading_writes_nothing(folder: Path, act: Callable[..., Appended]) -> None:
    interrupted(folder, act)
    (folder / "protocol.json").write_text(json.dumps({**protocol(folder), "currentPhase": "revising"}))
    with (folder / "events.jsonl").open("ab") as log:
        log.write(b"torn")
    before = files(folder)
    assert {"log_torn", "intent_pending", "projection_stale"} <= {item.code for item in reader.read(folder).findings}
    assert files(folder) == before


STEPS = st.lists(
    st.tuples(
        st.sampled_from(("server", "reader", "editor", "stranger")),
        st.sampled_from([name for name in EVENTS_V1 if name != "blocked"] * 3 + ["blocked"]),
        st.integers(0, 2),
        st.text(max_size=6),
        st.booleans(),
    ),
    max_size=10,
)


@settings(max_examples=25)
@given(STEPS)
def test_the_projection_is_the_fold_of_the_log(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, int, str, bool]]
) -> None:
    """Whatever is accepted, protocol.json says what folding the log from the beginning says."""
    from core.acp.rules import fold
    from core.acp.templates import initialize

    clock = FixedClock()
    folder = tmp_path_factory.mktemp("walk") / "talk"
    initialize(folder, "O", ("server", "reader", "editor"), ("G",), clock)
    accepted = 1
    for who, event, back, summary, with_document in steps:
        change = Change("decisions.md", lambda event, old: f"{old}{event.seq}\n") if with_document else None
        before = (folder / "events.jsonl").read_bytes()
        draft = Draft(who, event, summary or "x", reply_to=max(1, accepted - back))
        try:
            append(folder, draft, clock=clock, change=change)
            accepted += 1
        except Refused:
            assert (folder / "events.jsonl").read_bytes() == before
        assert (folder / "events.jsonl").read_bytes().startswith(before)
        snapshot = reader.read(folder)
        assert snapshot.setup is not None
        made = fold(snapshot.setup, [Event.read(raw) for raw in lines(folder)]).state
        now = protocol(folder)
        assert (now["currentPhase"], now["proposalOwner"], tuple(now["waitingFor"])) == (
            made.phase,
            made.owner,
            made.waiting,
        )
        assert len(lines(folder)) == accepted
        with Root(folder) as root:
            assert [record.seq for record in history.load(root)] == list(range(1, accepted + 1))
