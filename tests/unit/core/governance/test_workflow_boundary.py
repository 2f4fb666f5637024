"""The receipts of runs: left once, whatever happens, and rebuilt byte for byte (docs/design.md §4)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.governance import boundary, workflow_boundary
from core.governance.hashing import goal_hash, hash_string
from core.triage import store
from core.triage.store import Place
from core.workflow.answers import Answer
from core.workflow.boundaries import failure_of
from tests.console.workflow_root import FAILED, WorkflowRoot
from tests.unit.core.workflow.stage import Stepped


@pytest.fixture
def root(quick_path: Path) -> WorkflowRoot:
    return WorkflowRoot(quick_path / "work", Stepped())


def receipts(root: WorkflowRoot) -> dict[str, dict[str, Any]]:
    """Receipts of runs by what they are: escalation, decision, closure and so on, in order."""
    found = sorted((root.path / "receipts").glob("run-*.json"), key=lambda one: int(one.stem.rsplit("-", 1)[1]))
    return {one.stem: json.loads(one.read_text("utf-8")) for one in found}


def through(root: WorkflowRoot) -> None:
    """A run with a failed item that somebody skips."""
    root.start()
    root.reply(0, "ok")
    root.reply(1, FAILED)
    root.answer("esc-20260401-0001", "skip")
    root.tick()
    root.reply(2, "ok")


def test_an_escalation_its_decision_and_the_end_leave_receipts(root: WorkflowRoot) -> None:
    through(root)
    opened, decided, ended = receipts(root).values()
    run = root.run()
    assert opened["payload"] == {
        "schema": "collab.workflow_boundary.v1",
        "run_id": run.run_id,
        "entry": "esc-20260401-0001",
        "decision": None,
        "outcome": None,
    }
    assert opened["producer"] == "collab.workflow"
    assert opened["parent_refs"] == []
    assert [ref["receipt_id"] for ref in decided["parent_refs"]] == [opened["receipt_id"]]
    assert decided["parent_refs"][0]["digest"] == hash_string(
        (root.path / "receipts" / f"{opened['receipt_id']}.json").read_bytes()
    )
    assert decided["payload"]["decision"]["option_id"] == "skip"
    assert [ref["receipt_id"] for ref in ended["parent_refs"]] == [decided["receipt_id"]]
    assert ended["payload"]["outcome"] == "partial"
    assert {one["goal_hash"] for one in (opened, decided, ended)} == {opened["goal_hash"]}
    assert opened["emitted_at"] == "2026-04-01T08:00:02Z"
    assert workflow_boundary.check(root.path) == []


def test_what_failed_is_observed_once_and_its_code_stands_on_the_receipt(root: WorkflowRoot) -> None:
    through(root)
    opened, decided, ended = receipts(root).values()
    (seen,) = [line.observation for line in store.lines(root.path)]
    assert seen is not None
    assert (seen["signal"], seen["layer"], seen["by"]) == ("port 443 is closed", "workflow", "ambient")
    assert opened["triage_code"] == seen["code"]
    assert (decided["triage_code"], ended["triage_code"]) == (None, None)
    root.tick()
    assert len(store.lines(root.path)) == 1


def test_a_stopped_run_names_its_failure(root: WorkflowRoot) -> None:
    root.start()
    with root.engine() as engine:
        engine.abort(root.run().run_id, "ana")
    root.reply(0, "ok")
    (ended,) = receipts(root).values()
    assert (ended["triage_code"], ended["payload"]["outcome"]) == ("run_aborted", "aborted")


def test_engines_causes_are_entries_of_the_catalogue(root: WorkflowRoot) -> None:
    root.start()
    root.clock.step(3600)
    root.tick()
    (opened,) = receipts(root).values()
    assert opened["triage_code"] == "item_timeout"
    assert failure_of("circuit_break", "x", "3 failures in a row") == "3 failures in a row"
    assert failure_of("gate", "x", "Start?") is None


def test_missing_receipts_are_rebuilt_byte_for_byte(root: WorkflowRoot, collab: Any) -> None:
    through(root)
    before = {path: path.read_bytes() for path in (root.path / "receipts").glob("run-*.json")}
    for path in before:
        path.unlink()
    seen = (root.path / "triage/observations.jsonl").read_bytes()
    said = collab("validate", "--folder", str(root.path), "--receipts", "-o", "json")
    found = json.loads(said.stdout)["findings"]
    assert (said.returncode, {item["code"] for item in found}) == (2, {"receipt_missing"})
    assert found[0]["next_command"] == f"collab repair --folder {root.path}"
    mended = collab("repair", "--folder", str(root.path), "-o", "json")
    assert mended.returncode == 0
    assert [item["code"] for item in json.loads(mended.stdout)["mended"]] == ["receipt_rebuilt"] * 3
    assert {path: path.read_bytes() for path in before} == before
    assert (root.path / "triage/observations.jsonl").read_bytes() == seen
    assert collab("validate", "--folder", str(root.path), "--receipts").returncode == 0
    assert collab("repair", "--folder", str(root.path)).stdout == "nothing to mend\n"


def test_an_engine_makes_up_for_what_a_killed_one_did_not_leave(root: WorkflowRoot) -> None:
    root.start()
    root.reply(0, FAILED)
    (lost,) = (root.path / "receipts").glob("run-*.json")
    data = lost.read_bytes()
    lost.unlink()
    root.answer("esc-20260401-0001", "skip")
    assert lost.read_bytes() == data
    assert len(receipts(root)) == 2


def test_a_changed_receipt_is_noticed(root: WorkflowRoot) -> None:
    through(root)
    first = next((root.path / "receipts").glob("run-*.json"))
    first.write_bytes(first.read_bytes().replace(b"pi.receipt", b"pi.Receipt"))
    assert "receipt_changed" in {item.code for item in workflow_boundary.check(root.path)}


def test_a_receipt_that_cannot_be_written_is_a_warning_and_the_run_goes_on(root: WorkflowRoot) -> None:
    root.start()
    (root.path / "receipts").write_text("a file")
    root.reply(0, FAILED)
    with root.engine() as engine:
        assert engine.answer(Answer("esc-20260401-0001", "ana", option="skip")).status == "accepted"
        assert [item.severity for item in engine.left] == ["warning"]
        assert engine.left[0].cause.startswith("the receipt was not written")
    assert root.decisions() == [("ana", "skip", "", "cli")]


def test_a_goal_of_the_root_is_the_goal_of_its_runs(root: WorkflowRoot) -> None:
    run = root.start()
    trail = next(one for one in workflow_boundary.trails(root.path) if one.run_id == run)
    made = workflow_boundary.Receipts(root.path, lambda *_: "x")
    assert made._goal(trail) == goal_hash(trail.spec_hash, "")
    assert boundary.root_for(root.path / "any") == root.path
    assert Place(root.path).load()


def test_logs_that_are_none_of_ours_are_passed_over(root: WorkflowRoot) -> None:
    through(root)
    (root.path / "ambient/runs/x.jsonl").write_text('{"event": "entry_opened"}\n{"no": "event"}\n')
    (root.path / "ambient/runs/y.jsonl").write_text("not json\n")
    assert workflow_boundary.check(root.path) == []
    assert workflow_boundary.rebuild(root.path) == []
    assert workflow_boundary.rebuild(root.path / "gone")[0].severity == "warning"
    assert workflow_boundary.check(root.path / "gone")[0].code == "folder_missing"
