"""Receipts of our own systems: what they say, where they lie, written once (docs/design.md §4)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.files import set_fault
from core.finding import Refused
from core.governance import boundary, rules, store
from core.governance.boundary import Receipt
from core.governance.hashing import goal_hash, hash_string
from core.triage.store import Place, shipped
from tests.unit.core.governance.samples import GOAL, goal

AT = "2026-03-01T09:00:00Z"


def acceptance(seq: int = 7, **documents: str) -> Receipt:
    return boundary.acp("talk", seq, "decision_accepted", "readiness_check", documents, emitted_at=AT, goal=GOAL)


def closure(*parents: Receipt) -> Receipt:
    return boundary.acp(
        "talk", 9, "completed", "completed", {"b": "2", "a": "1"}, emitted_at=AT, goal=GOAL, parents=parents
    )


@pytest.fixture(autouse=True)
def no_fault() -> Iterator[None]:
    yield
    set_fault(None)


def test_ids_and_payloads() -> None:
    first = acceptance()
    made = closure(first)
    assert made.id == "acp-aaaaaaaaaaaa-9"
    assert made.where == "receipts/acp-aaaaaaaaaaaa-9.json"
    assert made.envelope["payload"] == {
        "schema": "collab.acp_boundary.v1",
        "folder": "talk",
        "seq": 9,
        "event": "completed",
        "state": "completed",
        "documents": {"a": "1", "b": "2"},
    }
    assert made.envelope["parent_refs"] == [first.reference]
    launched = boundary.delegation(
        "plan", 4, "T-1", "d-1", "launched", {"prompt": "ab"}, contract_id="0123456789abcdef", emitted_at=AT, goal=GOAL
    )
    assert launched.id == "del-0123456789ab-4"
    assert list(launched.envelope["payload"]) == ["schema", "plan", "seq", "task", "delegation_id", "state", "digests"]
    ended = boundary.workflow(
        "w-20260301T090000Z-00ff", 12, None, None, "failed", emitted_at=AT, goal=GOAL, triage_code="disk_full"
    )
    assert ended.id == "run-w-20260301T090000Z-00ff-12"
    assert ended.envelope["triage_code"] == "disk_full"
    minted = boundary.triage("a_unclassified_00000000", None, "x", emitted_at=AT)
    assert (minted.id, minted.envelope["goal_hash"]) == ("tri-a_unclassified_00000000", None)


def test_every_kind_is_a_valid_receipt() -> None:
    made = [
        acceptance(),
        closure(acceptance()),
        boundary.delegation(
            "p", 1, "t", None, "s", {}, contract_id="ab" * 32, emitted_at=AT, goal=GOAL, parents=[closure()]
        ),
        boundary.workflow("r", 1, "e", "d", None, emitted_at=AT, goal=GOAL, parents=[closure(), acceptance()]),
        boundary.triage("a_unclassified_00000000", "l", "\ud800", emitted_at=AT),
    ]
    for item in made:
        assert rules.envelope(item.where, item.data, shipped())[2] == []


@pytest.mark.parametrize("run", ["../x", "a/b", "", "x" * 300, "a\nb", "é"])
def test_an_id_that_is_no_file_name(run: str) -> None:
    if run:
        with pytest.raises(Refused):
            boundary.receipt(run, "p", {"schema": "s"}, AT)
    with pytest.raises(Refused):
        boundary.receipt(f"run-{run}/1", "p", {"schema": "s"}, AT)


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=5))
def test_the_same_event_gives_the_same_bytes(documents: dict[str, str]) -> None:
    turned = dict(reversed(list(documents.items())))
    assert acceptance(7).data == acceptance().data
    first = boundary.acp("t", 1, "blocked", "blocked", documents, emitted_at=AT, goal=GOAL)
    again = boundary.acp("t", 1, "blocked", "blocked", turned, emitted_at=AT, goal=GOAL)
    assert first.data == again.data
    assert json.loads(first.data)["payload"]["documents"] == documents


def test_the_root_is_the_nearest_folder_that_is_marked(tmp_path: Path) -> None:
    talk = tmp_path / "repo" / "a" / "talk"
    talk.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    assert boundary.root_for(talk) == tmp_path
    (tmp_path / "repo" / "receipts").mkdir()
    assert boundary.root_for(talk) == tmp_path / "repo"
    (talk / "triage").mkdir()
    assert boundary.root_for(talk) == tmp_path / "repo"
    assert boundary.root_for(talk, tmp_path / "else") == tmp_path / "else"


def test_without_a_mark_it_is_the_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boundary, "MARKS", ("no-such-mark",))
    assert boundary.root_for(tmp_path / "a" / "talk") == tmp_path / "a"


def test_written_once(tmp_path: Path) -> None:
    wanted = [acceptance(), closure(acceptance())]
    assert boundary.missing(tmp_path, wanted) == wanted
    assert boundary.write(tmp_path, wanted) == wanted
    assert boundary.write(tmp_path, wanted) == []
    path = tmp_path / wanted[0].where
    path.write_text("somebody's", "utf-8")
    assert boundary.rebuild(tmp_path, wanted) == []
    assert path.read_text("utf-8") == "somebody's"
    path.unlink()
    assert [(item.code, item.where) for item in boundary.rebuild(tmp_path, wanted)] == [
        ("receipt_rebuilt", wanted[0].where)
    ]
    assert path.read_bytes() == wanted[0].data
    assert boundary.missing(tmp_path / "none", wanted) == wanted


def test_killed_while_writing_it_is_whole_or_not_there(tmp_path: Path) -> None:
    item = acceptance()

    class Killed(BaseException):
        pass

    for number in range(12):
        root, left = tmp_path / str(number), [number]
        root.mkdir()

        def hook(operation: str, name: str, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise Killed

        set_fault(hook)
        try:
            boundary.write(root, [item])
        except Killed:
            pass
        set_fault(None)
        path = root / item.where
        assert not path.exists() or path.read_bytes() == item.data
        boundary.write(root, [item])
        assert path.read_bytes() == item.data
        assert not list((root / boundary.SCRATCH).iterdir())


def check(root: Path, wanted: list[Receipt]) -> list[tuple[str, str | None]]:
    return [(item.code, item.where) for item in boundary.check(root, wanted, "collab repair --folder talk")]


def test_checked_against_what_the_event_says(tmp_path: Path) -> None:
    first = acceptance()
    last = closure(first)
    assert check(tmp_path, []) == []
    assert check(tmp_path, [first, last]) == [("receipt_missing", first.where), ("receipt_missing", last.where)]
    boundary.write(tmp_path, [first, last])
    assert check(tmp_path, [first, last]) == []
    path = tmp_path / first.where
    path.write_bytes(first.data.replace(b'"talk"', b'"walk"'))
    assert check(tmp_path, [first, last]) == [
        ("receipt_changed", first.where),
        ("parent_ref_digest_mismatch", f"{last.where}#/parent_refs/0"),
    ]
    path.unlink()
    assert check(tmp_path, [last]) == [("parent_ref_receipt_missing", f"{last.where}#/parent_refs/0")]


def test_what_was_written_is_resolved_by_anybody(tmp_path: Path) -> None:
    first = acceptance()
    last = closure(first)
    boundary.write(tmp_path, [first, last])
    catalog = Place(tmp_path).load()
    made, _, _ = rules.envelope(last.where, last.data, catalog)
    assert made is not None
    resolved = store.resolve(made, last.where, hash_string(last.data), store.receipts(tmp_path / "receipts", catalog))
    assert resolved.trusted
    assert resolved.findings == ()
    assert resolved.parents[0].checks == dict.fromkeys(store.CHECKS, "pass")


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (None, goal_hash("id", "outcome")),
        (goal(), goal()["goal_hash"]),
        (goal(goal_id="other"), goal_hash("id", "outcome")),
        ("{", goal_hash("id", "outcome")),
    ],
)
def test_the_goal_is_the_folders_own_if_it_is_valid(document: Any, expected: str, tmp_path: Path) -> None:
    if document is not None:
        (tmp_path / "goal.json").write_text(document if isinstance(document, str) else json.dumps(document), "utf-8")
    from core.files import Root

    with Root(tmp_path) as folder:
        assert boundary.goal_of(folder, "id", "outcome") == expected
