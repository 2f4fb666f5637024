"""What a valid folder is (docs/specs/acp.md §1, §3, §5); the cases of the reference are in tests/conformance."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.acp.check import check
from core.acp.model import DOCUMENTS, FORBIDDEN_FILES, REQUIRED_FILES
from core.acp.store import mend
from core.acp.templates import initialize
from core.acp.view import gates, next_action, options, people
from core.finding import Finding
from tests.conftest import FixedClock, MakeFolder

EVENT = {
    "seq": 2,
    "from": "server",
    "event": "proposal_submitted",
    "at": "2026-03-01T09:00:01Z",
    "summary": "x",
    "reply_to": 1,
}


@pytest.fixture
def folder(make_folder: MakeFolder) -> Path:
    return make_folder("talk", ("server", "reader"))


def found(folder: Path) -> list[tuple[str, str]]:
    return [(item.code, item.severity) for item in check(folder)[1]]


def causes(folder: Path) -> str:
    return "\n".join(item.cause for item in check(folder)[1])


def setup_with(folder: Path, **changes: Any) -> None:
    """Change protocol.json; a value of `...` removes its key."""
    raw = {**json.loads((folder / "protocol.json").read_bytes()), **changes}
    kept = {key: value for key, value in raw.items() if value is not ...}
    (folder / "protocol.json").write_text(json.dumps(kept))


def log_with(folder: Path, *events: dict[str, Any] | str) -> None:
    """Add lines to the log and bring the projection along."""
    with (folder / "events.jsonl").open("a") as log:
        for event in events:
            log.write((event if isinstance(event, str) else json.dumps(event)) + "\n")
    state = check(folder)[0].state
    setup_with(folder, currentPhase=state.phase, proposalOwner=state.owner, waitingFor=list(state.waiting))


def test_a_new_folder_is_valid(folder: Path) -> None:
    assert found(folder) == []


@pytest.mark.parametrize("name", REQUIRED_FILES)
def test_every_required_file(folder: Path, name: str) -> None:
    (folder / name).unlink()
    codes = [code for code, _ in found(folder)]
    assert "file_missing" in codes or "not_a_collaboration" in codes
    assert f"missing {name}" in causes(folder)


@pytest.mark.parametrize("name", FORBIDDEN_FILES)
def test_every_forbidden_file(folder: Path, name: str) -> None:
    (folder / name).write_text("")
    assert found(folder) == [("file_forbidden", "error")]
    assert f"{name} is not part of the protocol" in causes(folder)
    (folder / name).unlink()
    setup_with(folder, completionGates=[f"All is in {name}"])
    assert found(folder) == [("gate_obsolete", "error")]
    assert f"completion gate must not reference obsolete file {name}" in causes(folder)


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("kind", ["link", "fifo", "folder", "giant", "not UTF-8"])
def test_a_document_that_cannot_be_read(folder: Path, tmp_path: Path, name: str, kind: str) -> None:
    path = folder / name
    path.unlink()
    match kind:
        case "link":
            (tmp_path / "secret").write_text("- [resolved] x")
            path.symlink_to(tmp_path / "secret")
        case "fifo":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "giant":
            with path.open("wb") as handle:
                handle.truncate(10 * 1024**3)
        case "not UTF-8":
            path.write_bytes(b"\xff\xfe\x00")
    codes = [code for code, _ in found(folder)]
    expected = {
        "link": "path_is_link",
        "fifo": "not_a_file",
        "folder": "not_a_file",
        "giant": "file_too_large",
        "not UTF-8": "document_not_utf8",
    }
    assert expected[kind] in codes


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"objective": " "}, "objective must not be blank"),
        ({"objective": ...}, "objective must not be blank"),
        ({"objective": ["x"]}, "objective must not be blank"),
        ({"participants": []}, "participants must not be empty"),
        ({"participants": "server"}, "participants must not be empty"),
        ({"completionGates": []}, "completionGates must not be empty"),
        ({"completionGates": {}}, "completionGates must not be empty"),
        ({"version": 1}, "must not include a protocol version field"),
        ({"waitingFor": ...}, "waitingFor must be present"),
        ({"proposalOwner": ...}, "proposalOwner must be present"),
        ({"currentPhase": "thinking"}, "currentPhase must be one of"),
        ({"currentPhase": ["drafting"]}, "currentPhase must be one of"),
        ({"currentPhase": "revising"}, "protocol.json currentPhase is 'revising', expected 'drafting'"),
        ({"waitingFor": ["reader"]}, "protocol.json waitingFor is ['reader'], expected ['server']"),
        ({"proposalOwner": "reader"}, "protocol.json proposalOwner is 'reader', expected 'server'"),
    ],
)
def test_faults_of_the_setup(folder: Path, changes: dict[str, Any], cause: str) -> None:
    setup_with(folder, **changes)
    assert cause in causes(folder)
    assert ("setup_invalid", "error") in found(folder) or ("projection_stale", "error") in found(folder)


@pytest.mark.parametrize("log", ["", "{}\n"])
def test_nobody_is_waited_for_before_the_log_begins(folder: Path, log: str) -> None:
    (folder / "events.jsonl").write_text(log)
    stale = [item for item in check(folder)[1] if item.code == "projection_stale"]
    assert [item.cause for item in stale] == [
        "protocol.json waitingFor is ['server'], expected []; events.jsonl has no initialized event"
    ]
    assert stale[0].next_command == f"collab show --folder {folder}"
    before = (folder / "protocol.json").read_bytes()
    assert mend(folder) == []
    assert (folder / "protocol.json").read_bytes() == before
    setup_with(folder, waitingFor=[])
    assert "projection_stale" not in [code for code, _ in found(folder)]


@pytest.mark.parametrize(
    ("changes", "code", "cause"),
    [
        ({"seq": 3}, "log_seq", "events.jsonl: expected seq 2, found 3"),
        ({"seq": "2"}, "log_seq", "expected seq 2, found 2"),
        ({"event": "review_finished"}, "event_unknown", "unknown event 'review_finished'"),
        ({"event": "deliverable_drafted"}, "event_unknown", "unknown event 'deliverable_drafted'"),
        ({"reply_to": None}, "reply_to_missing", "reply_to is required after initialized"),
        ({"reply_to": 2}, "reply_to_unknown", "reply_to must point to an earlier event"),
        ({"reply_to": "1"}, "reply_to_unknown", "reply_to must point to an earlier event"),
        ({"at": "2026-03-01T08:59:59Z"}, "event_time_back", "at must not be earlier than the previous event"),
        ({"at": "2026-03-01T10:00:00+02:00"}, "event_time_back", "at must not be earlier than the previous event"),
        ({"at": "2026-03-01T10:00:00"}, "event_time_malformed", "at must be an ISO-8601 timestamp"),
        ({"at": 5}, "event_time_malformed", "at must be an ISO-8601 timestamp"),
        ({"from": "stranger"}, "participant_unknown", "participant 'stranger' is not listed in protocol.json"),
        ({"from": "reader"}, "actor_not_expected", "proposal submission is reserved for server; got reader"),
    ],
)
def test_faults_of_a_line(folder: Path, changes: dict[str, Any], code: str, cause: str) -> None:
    log_with(folder, {**EVENT, **changes})
    assert (code, "error") in found(folder)
    assert cause in causes(folder)
    assert any(item.where == "events.jsonl#line 2" for item in check(folder)[1] if item.code == code)


@pytest.mark.parametrize("name", ["seq", "from", "event", "at", "summary"])
def test_every_required_field(folder: Path, name: str) -> None:
    log_with(folder, {key: value for key, value in EVENT.items() if key != name})
    assert f"missing required field {name}" in causes(folder)


def test_unknown_fields_are_no_fault(folder: Path) -> None:
    log_with(folder, {**EVENT, "mood": "calm", "cost": {"tokens": [1, 2]}})
    assert found(folder) == []


def test_a_torn_and_a_damaged_line(folder: Path) -> None:
    with (folder / "events.jsonl").open("ab") as log:
        log.write(b'nonsense\n{"seq":')
    found_here = check(folder)[1]
    assert [item.code for item in found_here if item.severity == "error"][:2] == ["log_damaged", "log_torn"]
    assert "events.jsonl line 2: invalid JSON" in causes(folder)
    assert found_here[1].next_command == f"collab repair --folder {folder}"


def test_two_lines_of_one_seq(folder: Path) -> None:
    log_with(folder, EVENT, {**EVENT, "from": "reader", "event": "review_submitted"})
    assert "expected seq 3, found 2" in causes(folder)


def heading(who: str, seq: int) -> str:
    return f"\n## 2026-03-01T09:00:02Z - {who} - seq {seq}\n\nPosition:\n- Yes.\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [("review_heading_missing", "seq 3: review_submitted requires matching review.md heading")]),
        (heading("reader", 3), []),
        (
            heading("server", 3),
            [("review_heading_mismatch", "participant 'server' does not match event from 'reader'")],
        ),
        (heading("reader", 3) * 2, [("review_heading_repeated", "review.md heading seq 3: stands 2 times")]),
        (
            heading("reader", 3) + heading("reader", 2),
            [("review_heading_orphan", "matching event is proposal_submitted, not review_submitted")],
        ),
        (
            heading("reader", 3) + heading("reader", 9),
            [("review_heading_orphan", "review.md heading seq 9: no matching event")],
        ),
    ],
)
def test_headings_and_reviews(folder: Path, text: str, expected: list[tuple[str, str]]) -> None:
    log_with(
        folder, EVENT, {**EVENT, "seq": 3, "from": "reader", "event": "review_submitted", "at": "2026-03-01T09:00:02Z"}
    )
    with (folder / "review.md").open("a") as review:
        review.write(text)
    made = [item for item in check(folder)[1] if item.where is not None and item.where.startswith("review.md")]
    assert [item.code for item in made] == [code for code, _ in expected]
    assert all(cause in item.cause for item, (_, cause) in zip(made, expected, strict=True))


def test_a_deferred_item_without_a_reason_is_a_warning_until_somebody_accepts(folder: Path) -> None:
    (folder / "readiness.md").write_text("- [deferred_nonblocking] Later.\n")
    assert ("readiness_reason_missing", "warning") in found(folder)
    log_with(
        folder,
        EVENT,
        {**EVENT, "seq": 3, "from": "reader", "event": "review_submitted"},
        {**EVENT, "seq": 4, "event": "proposal_revised"},
        {**EVENT, "seq": 5, "event": "question_classified"},
        {**EVENT, "seq": 6, "from": "reader", "event": "decision_accepted"},
    )
    (folder / "review.md").write_text(heading("reader", 3))
    assert ("readiness_reason_missing", "error") in found(folder)


def test_an_event_past_the_end_is_an_error(folder: Path) -> None:
    log_with(folder, {**EVENT, "event": "blocked"}, {**EVENT, "seq": 3})
    assert found(folder) == [("event_after_terminal", "error")]
    assert check(folder)[0].state.phase == "blocked"


def test_errors_come_first_and_nothing_is_said_twice(folder: Path) -> None:
    (folder / "readiness.md").write_text("- [deferred_nonblocking] Later.\n")
    setup_with(folder, objective="")
    made = check(folder)[1]
    assert [item.severity for item in made] == sorted((item.severity for item in made), key=lambda s: s != "error")
    assert len(set(made)) == len(made)


HOSTILE = st.one_of(
    st.binary(max_size=80),
    st.sampled_from(
        [
            b"{}",
            b"[]",
            b"null",
            b"{" * 5000,
            b"[" * 300 + b"]" * 300,
            b"\xff\xfe",
            b"\0" * 50,
            b'{"participants": [{"id": "\\ud800"}], "completionGates": [[]], "schemaVersion": {}}',
            b'{"schemaVersion": 2, "repoRoot": "\\u0000", "deliverables": {"mode": "external", "primary": {}}}',
            b'{"schemaVersion": 2, "deliverables": {"dir": "a/../..", "primary": {"type": [], "file": "\\ud800.md"}}}',
            b'{"schemaVersion": 2, "deliverables": {"primary": {"file": "../a.md"}, "supporting": [1, {}]}}',
            b'{"seq": 1e999, "from": {}, "event": [], "at": "\\ud800", "summary": 5}\n',
            b'{"seq":1,"from":"server","event":"initialized","at":"9999-12-31T23:59:59-23:59","summary":"\\u001b[2J"}\n',
            b"## \xe2\x80\xae - \x1b[2J - seq 1\n",
            b"- [blocking] \x1b]52;c;aGk=\x07\n",
        ]
    ),
)


def _sound(item: Finding) -> bool:
    return (
        item.severity in ("error", "warning")
        and bool(item.cause.strip())
        and (item.next_command is None or item.next_command.startswith("collab "))
        and "{folder}" not in (item.next_command or "")
        and "{participant}" not in (item.next_command or "")
    )


@settings(max_examples=50)
@given(st.dictionaries(st.sampled_from(REQUIRED_FILES), HOSTILE, min_size=1), st.booleans())
def test_nothing_that_a_folder_holds_raises(
    tmp_path_factory: pytest.TempPathFactory, contents: dict[str, bytes], append: bool
) -> None:
    folder = tmp_path_factory.mktemp("hostile") / "talk"
    initialize(folder, "O", ("server", "reader"), ("G",), FixedClock())
    for name, data in contents.items():
        before = (folder / name).read_bytes() if append else b""
        (folder / name).write_bytes(before + data)
    snapshot, findings = check(folder)
    assert all(_sound(item) for item in findings)
    for who in (*(snapshot.setup.participants if snapshot.setup else ()), "stranger"):
        next_action(snapshot, who)
        options(snapshot, who, FixedClock().now())
    gates(snapshot)
    people(snapshot)


Edit = Callable[[Path], None]


@pytest.mark.parametrize(
    "edit",
    [
        lambda folder: folder.joinpath("proposal.md").write_text("x"),
        lambda folder: folder.joinpath("notes.txt").write_text("x"),
        lambda folder: folder.joinpath("sub").mkdir(),
    ],
)
def test_other_files_are_nobody_business(folder: Path, edit: Edit) -> None:
    edit(folder)
    assert found(folder) == []
