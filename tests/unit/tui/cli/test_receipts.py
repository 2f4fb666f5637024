"""Receipts and failure codes by the verbs of a collaboration (docs/design.md §4)."""

from __future__ import annotations

import json
from pathlib import Path

from tests.unit.tui.cli.conftest import At, Say

REASON = "The lease of the staging host ran out"


def receipts(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder.parent / "receipts").glob("*.json")}


def test_a_block_has_a_code_in_every_place(say: Say, at: At) -> None:
    folder = at("reviewing")
    said = say("block", "--folder", str(folder), "--as", "reader", "--reason", REASON, "-o", "json")
    code = said.document["triage_code"]
    assert code.startswith("acp_unclassified_")
    assert say("show", "--folder", str(folder), "-o", "json").document["triage_code"] == code
    assert f"failure code: {code}" in say("show", "--folder", str(folder)).out
    listed = say("triage", "list", "--root", str(folder.parent), "-o", "json").document["codes"]
    assert [(item["code"], item["sightings"]) for item in listed] == [(code, 1)]


def test_validate_receipts_is_clean_then_names_the_document(say: Say, at: At) -> None:
    folder = at("passed")
    argv = ("--folder", str(folder), "--as", "server")
    assert say("complete", *argv, "--outcome", "proceed", "--rationale", "It fits", "--next", "Open it").status == 0
    assert len(receipts(folder)) == 2
    assert say("validate", "--folder", str(folder), "--receipts").status == 0
    with (folder / "decisions.md").open("ab") as file:
        file.write(b" ")
    said = say("validate", "--folder", str(folder), "--receipts", "-o", "json")
    assert said.status == 1
    (found,) = [item for item in said.document["findings"] if item["code"] == "receipt_document_changed"]
    assert found["where"] == "decisions.md"


def test_repair_writes_the_very_same_receipts(say: Say, at: At) -> None:
    folder = at("passed")
    argv = ("--folder", str(folder), "--as", "server")
    say("complete", *argv, "--outcome", "proceed", "--rationale", "It fits", "--next", "Open it")
    before = receipts(folder)
    for name in before:
        (folder.parent / "receipts" / name).unlink()
    said = say("validate", "--folder", str(folder), "--receipts", "-o", "json")
    assert {item["code"] for item in said.document["findings"]} == {"receipt_missing"}
    assert said.status == 2
    mended = say("repair", "--folder", str(folder), "-o", "json").document["mended"]
    assert [item["code"] for item in mended] == ["receipt_rebuilt", "receipt_rebuilt"]
    assert receipts(folder) == before
    closure = next(name for name, data in before.items() if json.loads(data)["payload"]["event"] == "completed")
    path = folder.parent / "receipts"
    resolved = say(
        "envelope", "resolve", str(path / closure), "--receipts", str(path), "--root", str(folder.parent), "-o", "json"
    )
    assert resolved.document["trusted"] is True
    assert len(resolved.document["parents"]) == 1


def test_the_inbox_asks_for_a_name(say: Say, at: At) -> None:
    folder = at("reviewing")
    root = str(folder.parent)
    for _ in range(2):
        say("triage", "observe", "--text", "the flange is loose", "--root", root)
    items = say("inbox", root, "-o", "json").document["items"]
    (item,) = [item for item in items if item["kind"] == "triage"]
    assert item["title"].startswith("unknown_unclassified_")
    assert say("triage", "alias", item["title"], "disk_full", "--root", root).status == 0
    assert all(item["kind"] != "triage" for item in say("inbox", root, "-o", "json").document["items"])
