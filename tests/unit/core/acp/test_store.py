"""The guarded writer: decide and write, or refuse and leave everything alone (docs/specs/acp.md §6)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.acp import history, reader, store
from core.acp.model import EVENTS_V1, Draft, Event
from core.acp.rules import fold
from core.acp.store import Appended, Change, append
from core.acp.templates import initialize
from core.files import LINE_CAP, Root
from core.finding import Refused
from tests.conftest import FixedClock
from tests.unit.core.acp.acting import codes, files, lines, proposal, protocol


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
