"""What is remembered of a folder: contents, rewritten logs, edits out of turn (docs/specs/acp.md §6)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.acp import history, store
from core.acp.check import check
from core.acp.memory import Memory
from core.acp.model import DOCUMENTS, Draft
from core.acp.reader import read
from core.acp.store import Change, append
from core.files import Root, sha256
from core.state import UserState
from tests.conftest import FixedClock, MakeFolder
from tests.unit.core.acp.builders import CONCLUSION, READINESS

Append = Callable[..., None]


@pytest.fixture
def folder(make_folder: MakeFolder) -> Path:
    return make_folder("talk", ("server", "reader"), gates=("Measured (p95 < 5 ms) [cache]",))


@pytest.fixture
def act(folder: Path, clock: FixedClock) -> Append:
    def run(who: str, event: str, change: Change | None = None, **fields: Any) -> None:
        clock.step(1)
        number = (folder / "events.jsonl").read_bytes().count(b"\n")
        append(folder, Draft(who, event, "Done.", reply_to=number, **fields), clock=clock, change=change)

    return run


def found(folder: Path, state: UserState | None = None) -> list[str]:
    return [item.code for item in check(folder, state)[1]]


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text, encoding="utf-8")


def review(folder: Path, who: str, seq: int) -> None:
    with (folder / "review.md").open("a") as handle:
        handle.write(f"\n## 2026-03-01T09:00:00Z - {who} - seq {seq}\n\nPosition:\n- Yes.\n")


REVIEWING = (("server", "proposal_submitted"),)
REVISING = (*REVIEWING, ("reader", "review_submitted"))
DECIDING = (*REVISING, ("server", "proposal_revised"))
READY = (
    *DECIDING,
    ("server", "question_classified"),
    ("server", "decision_accepted"),
    ("reader", "decision_accepted"),
)
PHASES = {"drafting": (), "reviewing": REVIEWING, "revising": REVISING, "decision_review": DECIDING}


def play(folder: Path, act: Append, steps: tuple[tuple[str, str], ...]) -> None:
    """Bring the folder to a point, every document written when its turn was."""
    for number, (who, event) in enumerate(steps, start=2):
        change = None
        if event == "review_submitted":
            change = Change("review.md", lambda made, old: f"{old}\n## {made.at} - {made.actor} - seq {made.seq}\n")
        if event == "question_classified":
            change = Change("readiness.md", lambda made, old: READINESS)
        act(who, event, change)
        assert number == (folder / "events.jsonl").read_bytes().count(b"\n")
    assert found(folder) == []


def test_a_folder_worked_in_by_the_rules_is_clean_to_the_end(folder: Path, act: Append) -> None:
    play(folder, act, READY)
    act("server", "readiness_passed")
    act("server", "completed", Change("conclusion.md", lambda made, old: CONCLUSION), doc="conclusion.md")
    assert found(folder) == []


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("name", DOCUMENTS)
def test_an_edit_is_judged_by_the_phase(folder: Path, act: Append, phase: str, name: str) -> None:
    play(folder, act, PHASES[phase])
    text = (folder / name).read_text()
    write(folder, name, "changed\n" + text)
    snapshot, findings = check(folder)
    allowed = phase in history.EDITABLE[name]
    assert [item.code for item in findings] == ([] if allowed else ["edit_out_of_turn"])
    for item in findings:
        seq = snapshot.state.seq
        assert item.severity == "warning"
        assert item.where == name
        assert item.cause == f"{name} changed after seq {seq}, in phase {phase}, when nobody may edit it"
        assert item.next_command == f"collab diff --folder {folder} --doc {name} --since {seq}"
    write(folder, name, text)
    assert found(folder) == []


def test_an_edit_in_an_earlier_window_names_it(folder: Path, act: Append) -> None:
    play(folder, act, REVIEWING)
    write(folder, "proposal.md", "changed while it was being reviewed")
    act("reader", "review_submitted")
    review(folder, "reader", 3)
    act("server", "proposal_revised")
    _, findings = check(folder)
    assert [item.cause for item in findings] == [
        "proposal.md changed after seq 2 and before seq 3, in phase reviewing, when nobody may edit it"
    ]


def test_a_window_with_a_turn_in_it_is_no_fault(folder: Path, act: Append) -> None:
    """Between two records of ours another writer may have moved the phase: some of it allowed the edit."""
    play(folder, act, REVIEWING)
    events = [("reader", "review_submitted", 3), ("server", "proposal_revised", 4)]
    with (folder / "events.jsonl").open("a") as log:
        for who, event, seq in events:
            log.write(
                json.dumps(
                    {
                        "seq": seq,
                        "from": who,
                        "event": event,
                        "at": "2026-03-01T09:00:09Z",
                        "summary": "x",
                        "reply_to": seq - 1,
                    }
                )
                + "\n"
            )
    review(folder, "reader", 3)
    write(folder, "proposal.md", "revised")
    store.mend(folder)
    assert found(folder) == []
    write(folder, "conclusion.md", "too early")
    assert found(folder) == ["edit_out_of_turn"]


def test_a_review_written_after_its_event_is_late_but_in_order(folder: Path, act: Append) -> None:
    play(folder, act, REVIEWING)
    act("reader", "review_submitted")
    assert found(folder) == ["review_heading_missing"]
    review(folder, "reader", 3)
    assert found(folder) == []
    act("server", "proposal_revised")
    assert found(folder) == []
    write(folder, "review.md", "# Review\n\n## 2026-03-01T09:00:00Z - reader - seq 3\n\nPosition:\n- No!\n")
    assert found(folder) == ["edit_out_of_turn"]


def test_a_review_written_late_by_the_reference_is_no_fault(folder: Path, act: Append, tmp_path: Path) -> None:
    """Nothing of ours was in the folder when it was seen: its old text is unknown, and that accuses nobody."""
    import shutil

    state = UserState(tmp_path / "state")
    play(folder, act, REVIEWING)
    shutil.rmtree(folder / ".collab")
    with (folder / "events.jsonl").open("a") as log:
        log.write(
            '{"seq":3,"from":"reader","event":"review_submitted","at":"2026-03-01T09:00:09Z","summary":"x","reply_to":2}\n'
        )
    raw = json.loads((folder / "protocol.json").read_text())
    write(folder, "protocol.json", json.dumps({**raw, "currentPhase": "revising", "waitingFor": ["server"]}))
    assert found(folder, state) == ["review_heading_missing"]
    review(folder, "reader", 3)
    assert found(folder, state) == []


DAMAGE = {
    "a changed line": lambda data: data.replace(b"Collaboration initialized", b"Collaboration Initialized"),
    "a reordered log": lambda data: b"".join(
        [data.splitlines(True)[i] for i in (0, 2, 1, *range(3, data.count(b"\n")))]
    ),
    "a lost last event": lambda data: b"".join(data.splitlines(True)[:-1]),
    "a lost first event": lambda data: b"".join(data.splitlines(True)[1:]),
    "an inserted line": lambda data: data.splitlines(True)[0] + b"\n" + b"".join(data.splitlines(True)[1:]),
    "an empty log": lambda data: b"",
    "another ending": lambda data: (
        b"".join(data.splitlines(True)[:-1]) + b'{"seq":4,"from":"server"}' + b" " * 200 + b"\n"
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("witness", ["sidecar", "person"])
def test_a_rewritten_log_is_noticed(folder: Path, act: Append, tmp_path: Path, damage: str, witness: str) -> None:
    import shutil

    state = UserState(tmp_path / "state") if witness == "person" else None
    play(folder, act, DECIDING)
    assert found(folder, state) == []
    if witness == "person":
        # Who rewrites the log can rewrite the sidecar too, but not what somebody else remembers.
        shutil.rmtree(folder / ".collab")
    before = (folder / "events.jsonl").read_bytes()
    after = DAMAGE[damage](before)
    (folder / "events.jsonl").write_bytes(after)
    codes = set(found(folder, state))
    expected = "log_truncated" if len(after) < len(before) else "log_rewritten"
    assert expected in codes
    assert all(item.severity == "error" for item in check(folder, state)[1] if item.code == expected)
    # It stays said, however often it is looked at, until the log is whole again.
    assert expected in found(folder, state)
    (folder / "events.jsonl").write_bytes(before)
    assert found(folder, state) == []


def test_the_place_of_a_rewrite_is_found(folder: Path, act: Append) -> None:
    play(folder, act, READY)
    data = (folder / "events.jsonl").read_bytes().splitlines(True)
    for seq in range(1, len(data) + 1):
        changed = [*data]
        changed[seq - 1] = changed[seq - 1].replace(b'"summary":"', b'"summary":"X')[:-3] + b"}\n"
        with Root(folder) as root:
            (folder / "events.jsonl").write_bytes(b"".join(changed))
            made = Memory().findings(read(folder), root)
        assert [item.cause for item in made] == [
            f"events.jsonl was rewritten at or before seq {seq}; earlier lines must never change"
        ]


def test_growth_by_others_is_no_rewrite(folder: Path, act: Append, tmp_path: Path) -> None:
    state = UserState(tmp_path / "state")
    play(folder, act, REVIEWING)
    assert found(folder, state) == []
    with (folder / "events.jsonl").open("a") as log:
        log.write(
            '{"seq":3,"from":"reader","event":"blocked","at":"2026-03-01T09:00:09Z","summary":"x","reply_to":2}\n'
        )
    assert found(folder, state) == ["projection_stale"] * 2
    other = folder / "copy"
    other.write_bytes((folder / "events.jsonl").read_bytes())
    os.replace(other, folder / "events.jsonl")
    assert "log_rewritten" not in found(folder, state)


@pytest.mark.parametrize(
    "line",
    [
        b"rubbish\n",
        b"[]\n",
        b'{"seq":"1"}\n',
        b'{"seq":1,"end":-5,"log":"' + b"0" * 64 + b'","documents":{}}\n',
        b'{"seq":1,"at":5,"end":1,"log":"x","documents":{}}\n',
        b'{"seq":true,"end":1,"log":"' + b"0" * 64 + b'","documents":{}}\n',
        b'{"seq":1,"end":1,"log":"' + b"0" * 64 + b'","documents":[]}\n',
        b"\xff\xfe\n",
        b"{" * 9999 + b"\n",
    ],
    ids=range(9),
)
def test_a_damaged_history_stops_nothing(folder: Path, act: Append, line: bytes) -> None:
    play(folder, act, REVIEWING)
    path = folder / ".collab/history.jsonl"
    path.write_bytes(line + path.read_bytes())
    assert found(folder) == []
    act("reader", "review_submitted")


def test_contents_are_kept_once_and_checked(folder: Path) -> None:
    with Root(folder) as root:
        digest = history.keep(root, b"text")
        assert digest == sha256(b"text") == history.keep(root, b"text")
        assert history.content(root, digest) == b"text"
        (folder / ".collab/objects" / digest).write_bytes(b"TEXT")
        assert history.content(root, digest) is None
        for name in ("../../secret", "", "a" * 63, "A" * 64):
            assert history.content(root, name) is None


def test_documents_at_an_event(folder: Path, act: Append) -> None:
    first = sha256((folder / "proposal.md").read_bytes())
    act("server", "proposal_submitted", Change("proposal.md", lambda made, old: "second"))
    with Root(folder) as root:
        records = history.load(root)
    assert history.documents_at(records, 1)["proposal.md"] == first
    assert history.documents_at(records, 2)["proposal.md"] == sha256(b"second")
    assert history.documents_at(records, 3) == {}


def test_a_document_that_stood_there_before_the_folder_is_remembered_as_it_is(
    tmp_path: Path, make_folder: MakeFolder
) -> None:
    (tmp_path / "old").mkdir()
    write(tmp_path / "old", "decisions.md", "what was decided before\n")
    folder = make_folder("old")
    assert (folder / "decisions.md").read_text() == "what was decided before\n"
    assert found(folder) == []
