"""Receipts of a workspace as a person walks them (docs/specs/console.md §2, Ecosystem)."""

from __future__ import annotations

import shlex
from pathlib import Path

from core.governance import store, view
from tests.unit.core.governance.samples import CATALOG, data, envelope, ref
from tui.cli import parser


def lay(folder: Path, **parents: list[str]) -> list[view.Trust]:
    for name, refs in parents.items():
        (folder / f"{name}.json").write_bytes(data(envelope(name, parent_refs=[ref(one) for one in refs])))
    return view.trusts(store.receipts(folder, CATALOG))


def test_every_receipt_with_its_trust(tmp_path: Path) -> None:
    (tmp_path / "z.json").write_bytes(data(envelope("z", emitted_at="now")))
    made = lay(tmp_path, a=[], b=["a"], c=["none"])
    assert [(item.receipt.id, item.level, bool(item.why)) for item in made] == [
        ("a", "trusted", False),
        ("b", "trusted", False),
        ("c", "untrusted", True),
        ("z", "invalid", True),
    ]
    assert made[2].why == "there is no receipt none"
    assert made[1].parents[0].trusted


def test_the_inbox_shows_what_is_not_trusted(tmp_path: Path) -> None:
    receipts = tmp_path / "my receipts" / "receipts"
    receipts.mkdir(parents=True)
    root = receipts.parent
    made = lay(receipts, a=[], c=["none"])
    (item,) = view.inbox_items(root, made)
    assert (item.kind, item.lane, item.title, item.why) == (
        "receipt",
        "know",
        "c",
        "untrusted: there is no receipt none",
    )
    words = shlex.split(item.command)
    assert words == [
        "collab",
        "envelope",
        "resolve",
        f"{receipts}/c.json",
        "--receipts",
        str(receipts),
        "--root",
        str(root),
    ]
    parser().parse_args(words[1:])


def test_the_way_from_a_closure_to_its_proofs(tmp_path: Path) -> None:
    made = lay(tmp_path, end=["a", "b"], a=["c"], b=["c", "gone"], c=[])
    assert [
        (item.depth, item.receipt_id, item.trust is not None, item.again) for item in view.ancestry("end", made)
    ] == [
        (0, "end", True, False),
        (1, "a", True, False),
        (2, "c", True, False),
        (1, "b", True, False),
        (2, "c", True, True),
        (2, "gone", False, False),
    ]


def test_a_circle_ends(tmp_path: Path) -> None:
    made = lay(tmp_path, a=["b"], b=["a"])
    assert [(item.receipt_id, item.again) for item in view.ancestry("a", made)] == [
        ("a", False),
        ("b", False),
        ("a", True),
    ]
    assert {item.level for item in made} == {"untrusted"}


def status(**more: object) -> bytes:
    return data({"schema": "pi.agent_status.v1", "goal": "Ship it", "changed": ["a"], **more})


def test_statuses_among_the_receipts(tmp_path: Path) -> None:
    folder = tmp_path / "receipts"
    folder.mkdir()
    asked = {"action": "Renew it", "reason": "It ended"}
    (folder / "a b.json").write_bytes(status(state="needs_human", needs_human=asked))
    (folder / "b.json").write_bytes(status(state="needs_human"))
    (folder / "c.json").write_bytes(status(state="done"))
    (folder / "d.json").write_bytes(status(state="continuing", not_done=[{"item": "x", "next_command": "make"}]))
    (folder / "e.json").write_bytes(b"{not json")
    found = store.statuses(folder, CATALOG, tmp_path)
    assert [(item.file, item.made is not None) for item in found] == [
        ("a b.json", True),
        ("b.json", False),
        ("c.json", False),
        ("d.json", True),
    ]
    assert [finding.code for finding in found[2].findings] == ["done_requires_verified", "done_requires_proof"]
    (item,) = view.status_items(tmp_path, found)
    assert (item.kind, item.lane, item.title, item.action, item.why) == (
        "status",
        "unblock",
        "a b.json",
        "Renew it",
        "It ended",
    )
    assert item.since is not None
    words = shlex.split(item.command)
    assert words == ["collab", "status", "render", f"{folder}/a b.json", "--root", str(tmp_path)]
    assert vars(parser().parse_args(words[1:]))["root"] == tmp_path


def test_another_status_is_another_item(tmp_path: Path) -> None:
    ids = set()
    for reason in ("one", "two", "one"):
        (tmp_path / "a.json").write_bytes(status(state="needs_human", needs_human={"action": "x", "reason": reason}))
        ids |= {item.id for item in view.status_items(tmp_path, store.statuses(tmp_path, CATALOG, tmp_path))}
    assert len(ids) == 2
