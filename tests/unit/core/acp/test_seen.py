"""What a person has seen stays theirs: evidence against whoever rewrites a folder (docs/specs/acp.md §6)."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from core.acp import guided, seen
from core.acp.check import check
from core.acp.model import DOCUMENTS
from core.acp.reader import Snapshot, read
from core.files import Root, sha256
from core.finding import Finding
from core.state import UserState, key
from tests.conftest import FixedClock, MakeFolder
from tests.unit.core.acp.test_guided import WAY

Look = Callable[[], list[str]]


@pytest.fixture
def folder(make_folder: MakeFolder, clock: FixedClock) -> Path:
    made = make_folder("talk", ("server", "reader", "editor"))
    for act in WAY[:4]:
        guided.commit(made, act, clock)
    return made


@pytest.fixture
def state(tmp_path: Path) -> UserState:
    return UserState(tmp_path / "state")


@pytest.fixture
def look(folder: Path, state: UserState) -> Look:
    return lambda: [item.code for item in check(folder, state)[1]]


def kept(state: UserState, folder: Path) -> dict[str, object]:
    return state.load(f"seen/{key(folder)}.json")


def rewrite(folder: Path, old: str = "initialized.", new: str = "Initialized!") -> None:
    path = folder / "events.jsonl"
    path.write_text(path.read_text().replace(old, new))


def without_sidecar(folder: Path) -> None:
    shutil.rmtree(folder / ".collab")


def test_a_look_remembers_log_and_documents(folder: Path, state: UserState, look: Look) -> None:
    assert kept(state, folder) == {}
    assert look() == []
    record = kept(state, folder)
    data = (folder / "events.jsonl").read_bytes()
    assert (record["seq"], record["end"], record["log"]) == (5, len(data), sha256(data))
    assert record["path"] == str(folder)
    documents = record["documents"]
    assert isinstance(documents, dict)
    assert documents["proposal.md"] == sha256((folder / "proposal.md").read_bytes())
    assert sorted(documents) == sorted([*DOCUMENTS, "protocol.json"])


def test_a_look_that_finds_nothing_new_writes_nothing(folder: Path, state: UserState, look: Look) -> None:
    look()
    path = state.folder / f"seen/{key(folder)}.json"
    before = path.stat()
    look()
    assert path.stat().st_ino == before.st_ino
    assert path.stat().st_mtime_ns == before.st_mtime_ns


def test_without_a_state_nothing_is_remembered(folder: Path, state: UserState) -> None:
    check(folder)
    assert not state.folder.exists()


def test_evidence_is_not_overwritten_by_its_forgery(folder: Path, state: UserState, look: Look) -> None:
    look()
    before = kept(state, folder)
    without_sidecar(folder)
    rewrite(folder)
    for _ in range(3):
        assert look() == ["log_rewritten"]
    assert kept(state, folder) == before


def test_a_warning_is_not_forgotten_either(folder: Path, state: UserState, look: Look, clock: FixedClock) -> None:
    look()
    without_sidecar(folder)
    (folder / "proposal.md").write_text("changed in decision_review")
    assert look() == ["edit_out_of_turn"]
    assert look() == ["edit_out_of_turn"]


def test_what_grows_by_the_rules_is_seen_anew(folder: Path, state: UserState, look: Look, clock: FixedClock) -> None:
    for act in WAY[4:]:
        guided.commit(folder, act, clock)
        assert look() == []
        assert kept(state, folder)["seq"] == read(folder).state.seq


def test_another_collaboration_in_the_same_place_is_another(
    folder: Path, state: UserState, look: Look, make_folder: MakeFolder, clock: FixedClock
) -> None:
    look()
    shutil.rmtree(folder)
    clock.step(60)
    make_folder("talk")
    assert look() == []
    assert kept(state, folder)["seq"] == 1


def test_a_copy_is_another_folder(folder: Path, state: UserState, look: Look) -> None:
    look()
    copy = Path(shutil.copytree(folder, folder.parent / "copy"))
    without_sidecar(copy)
    rewrite(copy)
    assert check(copy, state)[1] == []
    assert look() == []


@pytest.mark.parametrize(
    "text",
    ["", "rubbish", "[]", "null", '{"created_at": 5}', "{" * 5000, "\udcff", '{"created_at": "2026-03-01T09:00:00Z"}'],
    ids=range(8),
)
def test_a_damaged_memory_accuses_nobody(folder: Path, state: UserState, look: Look, text: str) -> None:
    look()
    (state.folder / f"seen/{key(folder)}.json").write_bytes(os.fsencode(text))
    assert look() == []
    assert kept(state, folder)["seq"] == 5


@pytest.mark.parametrize("kind", ["file", "link", "proc"])
def test_a_memory_that_cannot_be_kept_stops_nothing(folder: Path, tmp_path: Path, kind: str) -> None:
    place = tmp_path / "nowhere"
    if kind == "file":
        place.write_text("x")
    if kind == "link":
        place.symlink_to(tmp_path / "missing" / "deeper")
    state = UserState(Path("/proc/collab") if kind == "proc" else place)
    assert check(folder, state)[1] == []
    assert check(folder, state)[1] == []
    assert seen.recall(state, read(folder)) is None or kind == "link"


def test_an_unreadable_folder_is_neither_seen_nor_forgotten(folder: Path, state: UserState, look: Look) -> None:
    look()
    before = kept(state, folder)
    whole = (folder / "protocol.json").read_bytes()
    (folder / "protocol.json").write_bytes(whole[:40])
    assert look() == ["json_malformed"]
    assert kept(state, folder) == before
    (folder / "protocol.json").write_bytes(whole)
    (folder / "events.jsonl").unlink()
    assert "log_truncated" in look()
    assert kept(state, folder) == before
    shutil.rmtree(folder)
    assert look() == ["folder_missing"]
    assert kept(state, folder) == before


@pytest.mark.parametrize("name", ["a folder", "é", "\udcff", "new\nline"])
def test_any_path_can_be_remembered(make_folder: MakeFolder, state: UserState, name: str) -> None:
    folder = make_folder(name)
    assert check(folder, state)[1] == []
    assert kept(state, folder)["path"] == str(folder)
    without_sidecar(folder)
    rewrite(folder)
    assert [item.code for item in check(folder, state)[1]] == ["log_rewritten"]


def test_both_witnesses_say_it_once(folder: Path, state: UserState) -> None:
    """The sidecar and the person remember the same: one finding, not two."""
    check(folder, state)
    (folder / "conclusion.md").write_text("too early")
    assert [item.cause for item in check(folder, state)[1]] == [
        "conclusion.md changed after seq 5, in phase decision_review, when nobody may edit it"
    ]


def test_recall_and_findings_write_nothing(folder: Path, state: UserState) -> None:
    snapshot: Snapshot = read(folder)
    with Root(folder) as root:
        assert seen.findings(state, snapshot, root) == []
    assert seen.recall(state, snapshot) is None
    assert not state.folder.exists()
    seen.remember(state, snapshot, [])
    record = seen.recall(state, snapshot)
    assert record is not None
    assert (record.seq, record.at) == (5, snapshot.events[-1].at)
    before = kept(state, folder)
    seen.remember(state, snapshot, [Finding("x", "warning", "x")])
    assert kept(state, folder) == before


def test_what_is_kept_is_only_digests(folder: Path, state: UserState, look: Look) -> None:
    (folder / "proposal.md").write_text("a secret")
    look()
    assert "secret" not in json.dumps(kept(state, folder))
