"""What a killed or failed writer left is settled by the next one (docs/specs/acp.md §6)."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.acp import history, reader, store
from core.acp.model import DOCUMENTS, Draft
from core.acp.store import Appended
from core.files import LINE_CAP, Root, set_fault, sha256
from core.finding import Refused
from tests.conftest import FixedClock
from tests.unit.core.acp.acting import Killed, codes, fail_at, files, kill_at, lines, proposal, protocol


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
    (folder / ".collab/tmp-1-0a1b2c3d").write_text("left by a killed writer")
    act("server", "proposal_submitted")
    assert not (folder / ".collab/tmp-1-0a1b2c3d").exists()


@pytest.mark.parametrize("event", ["initialized", "proposal_submitted", "blocked"])
def test_a_log_that_went_away_is_not_begun_anew(folder: Path, event: str) -> None:
    (folder / "events.jsonl").unlink()
    before = (folder / "protocol.json").read_bytes()
    with pytest.raises(Refused) as refused:
        store.append(folder, Draft("server", event, "x"))
    assert codes(refused) == ["file_missing"]
    assert not (folder / "events.jsonl").exists()
    assert (folder / "protocol.json").read_bytes() == before


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


def test_reading_writes_nothing(folder: Path, act: Callable[..., Appended]) -> None:
    interrupted(folder, act)
    (folder / "protocol.json").write_text(json.dumps({**protocol(folder), "currentPhase": "revising"}))
    with (folder / "events.jsonl").open("ab") as log:
        log.write(b"torn")
    before = files(folder)
    assert {"log_torn", "intent_pending", "projection_stale"} <= {item.code for item in reader.read(folder).findings}
    assert files(folder) == before
