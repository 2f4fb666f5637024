"""The receipts of a plan follow from its journal, and git does not see them (docs/design.md §4)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from core.delegation import gates, store
from core.delegation.git import Git
from core.governance import boundary, plan_boundary
from core.governance import store as receipt_store
from core.governance.hashing import hash_string
from core.triage import store as triage
from core.triage.store import Place
from tests.unit.core.delegation.builders import Bench
from tests.unit.core.governance.samples import goal

NOTE = "The lease of the staging host ran out"


@pytest.fixture
def bench(quick_path: Path) -> Bench:
    return Bench(quick_path).begin("T-mark")


def receipts(bench: Bench) -> dict[str, dict[str, Any]]:
    found = (bench.repo / "receipts").glob("*.json")
    return {path.stem: json.loads(path.read_bytes()) for path in sorted(found)}


def leave(bench: Bench) -> plan_boundary.Left:
    """What a verb does after its events."""
    seqs = frozenset(event["seq"] for event in bench.events()[-2:])
    made = plan_boundary.leave(bench.plan, seqs)
    assert made.findings == ()
    return made


def run_gate(bench: Bench) -> gates.Gated:
    return gates.gate(bench.place, bench.world, gates.Gate("T-mark", "AC-one", ["true"], reuse=False))


def whole(bench: Bench) -> dict[str, dict[str, Any]]:
    """Launch, collect, gate: a dispatch, a handoff, an acceptance."""
    (bench.plan / "result.md").write_text("done\n")
    assert bench.launch(worktree="../wt").ok
    leave(bench)
    bench.clock.step(60)
    assert bench.collect(result_path="result.md").ok
    leave(bench)
    bench.clock.step(60)
    assert run_gate(bench).exit == 0
    leave(bench)
    return receipts(bench)


def test_what_each_boundary_leaves(bench: Bench) -> None:
    made = whole(bench)
    digits = bench.record().chain.live.id[:12]
    assert list(made) == [f"del-{digits}-3", f"del-{digits}-4", f"del-{digits}-5"]
    launched, collected, accepted = made.values()
    assert launched["payload"]["schema"] == "collab.delegation_boundary.v1"
    assert (launched["producer"], launched["parent_refs"], launched["triage_code"]) == ("collab.delegation", [], None)
    payload = {key: value for key, value in launched["payload"].items() if key not in ("schema", "digests")}
    assert payload == {
        "plan": "PLAN_unit_sample",
        "seq": 3,
        "task": "T-mark",
        "delegation_id": "d1",
        "state": "launched",
    }
    assert list(launched["payload"]["digests"]) == ["prompt_digest"]
    assert list(collected["payload"]["digests"]) == ["result_digest"]
    assert (accepted["payload"]["state"], accepted["payload"]["delegation_id"]) == ("completed", None)
    assert list(accepted["payload"]["digests"]) == ["AC-one"]
    for child, parent in ((collected, launched), (accepted, collected)):
        (reference,) = child["parent_refs"]
        data = (bench.repo / "receipts" / f"{parent['receipt_id']}.json").read_bytes()
        assert (reference["receipt_id"], reference["digest"]) == (parent["receipt_id"], hash_string(data))
    assert len({item["goal_hash"] for item in made.values()}) == 1
    assert [item["emitted_at"] for item in made.values()] == [event["ts"] for event in bench.events()[2:]]
    catalog = Place(bench.repo).load()
    known = receipt_store.receipts(bench.repo / "receipts", catalog)
    assert [item.id for item in known] == list(made)
    assert plan_boundary.check(bench.plan) == []


def test_they_are_written_once_and_rebuilt_alike(bench: Bench) -> None:
    whole(bench)
    folder = bench.repo / "receipts"
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.glob("*.json")}
    leave(bench)
    assert plan_boundary.rebuild(bench.plan) == []
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.glob("*.json")} == before
    for name in before:
        (folder / name).unlink()
    assert [item.code for item in plan_boundary.check(bench.plan)] == ["receipt_missing"] * 3
    command = f"collab repair --plan {bench.plan}"
    assert {item.next_command for item in plan_boundary.check(bench.plan)} == {command}
    assert [item.code for item in plan_boundary.rebuild(bench.plan)] == ["receipt_rebuilt"] * 3
    assert {path.name: path.read_bytes() for path in folder.glob("*.json")} == {
        name: data for name, (data, _) in before.items()
    }
    assert plan_boundary.check(bench.plan) == []


def test_a_receipt_that_was_changed_is_told(bench: Bench) -> None:
    launched = next(iter(whole(bench)))
    path = bench.repo / "receipts" / f"{launched}.json"
    path.write_bytes(path.read_bytes().replace(b'"T-mark"', b'"T-none"'))
    assert "receipt_changed" in {item.code for item in plan_boundary.check(bench.plan)}


def test_evidence_and_results_that_changed_are_told_and_the_receipts_stand(bench: Bench) -> None:
    whole(bench)
    log = bench.plan / bench.events()[-1]["evidence_path"]
    log.write_bytes(log.read_bytes() + b"more\n")
    (bench.plan / "result.md").unlink()
    found = plan_boundary.check(bench.plan)
    assert [(item.code, item.severity, item.where) for item in found] == [
        ("receipt_document_changed", "warning", "result.md"),
        ("receipt_document_changed", "warning", str(log.relative_to(bench.plan))),
    ]


def test_a_goal_of_its_own(bench: Bench) -> None:
    said = goal()
    (bench.plan / boundary.GOAL).write_text(json.dumps(said))
    made = whole(bench)
    assert {item["goal_hash"] for item in made.values()} == {said["goal_hash"]}


def test_a_failure_is_observed_once_and_named_by_its_receipt(bench: Bench) -> None:
    bench.launch(worktree="../wt")
    leave(bench)
    bench.collect(state="failed", note=NOTE)
    (code,) = leave(bench).codes.values()
    assert code.startswith("delegation_unclassified_")
    made = receipts(bench).values()
    (handoff,) = [one for one in made if one["payload"].get("state") == "failed"]
    assert handoff["triage_code"] == code
    assert [line.observation["code"] for line in triage.lines(bench.repo) if line.observation] == [code]
    leave(bench)
    plan_boundary.rebuild(bench.plan)
    assert len(triage.lines(bench.repo)) == 1
    assert plan_boundary.check(bench.plan) == []


@pytest.mark.parametrize(
    ("task", "fields", "code"),
    [
        ("T-plain", {}, "task_not_started"),
        ("T-none", {}, "task_unknown"),
        ("T-mark", {"via": "herdr", "transport": "interactive"}, "delegation_refused"),
        ("T-mark", {"via": "none"}, "delegation_refused"),
        ("T-mark", {"transport": "interactive"}, "delegation_refused"),
    ],
)
def test_a_refusal_is_observed_and_leaves_no_receipt(bench: Bench, task: str, fields: Any, code: str) -> None:
    assert bench.launch(task=task, worktree="../wt", **fields).exit == 5
    assert list(leave(bench).codes.values()) == [code]
    assert receipts(bench) == {}
    assert [line.observation["code"] for line in triage.lines(bench.repo) if line.observation] == [code]


def test_a_refused_completion(bench: Bench) -> None:
    assert store.complete(bench.place, bench.world, "T-mark").exit == 4
    assert list(leave(bench).codes.values()) == ["task_not_complete"]


def test_what_others_append_as_a_refusal_is_no_failure_of_the_ledger(bench: Bench) -> None:
    said = {"subject": "T-mark", "stage": "gate", "reason": "so be it"}
    store.append(bench.place, bench.world, store.Appending("refusal", said))
    assert leave(bench).codes == {}


def test_git_sees_nothing_of_it(quick_path: Path) -> None:
    bench = Bench(quick_path)
    bench.git()
    bench.begin("T-mark", "T-plain")
    git = Git(bench.repo, bench.environ)
    assert bench.launch("r1", "T-plain", worktree=None).ok
    before = git.fingerprint()
    leave(bench)
    bench.launch("w1", worktree="../wt")
    leave(bench)
    bench.collect("w1", "failed", note=NOTE)
    leave(bench)
    assert len(receipts(bench)) > 2
    assert (git.fingerprint(), git.dirty()) == (before, "")
    assert bench.collect("r1", task="T-plain").ok


@pytest.mark.parametrize("beside", [False, True], ids=["in this plan", "in one beside it"])
def test_folders_that_git_sees_wait_until_a_reader_has_ended(quick_path: Path, beside: bool) -> None:
    bench = Bench(quick_path)
    (bench.repo / "receipts").mkdir()
    (bench.repo / "receipts" / "kept.txt").write_text("x")
    bench.git()
    bench.begin("T-mark", "T-plain")
    other = bench
    if beside:
        other = Bench(quick_path / "other")
        other.plan, other.repo = bench.plan.parent / "PLAN_unit_beside", bench.repo
        other.plan.mkdir()
        (other.plan / "README.md").write_text("# Goal\n")
        other.begin("T-plain", plan="PLAN_unit_beside")
    assert other.launch("r1", "T-plain", worktree=None).ok
    assert bench.launch("w1", worktree="../wt").ok
    assert leave(bench).codes == {}
    assert receipts(bench) == {}
    assert [item.code for item in plan_boundary.rebuild(bench.plan)] == ["receipts_wait"]
    assert {(item.code, item.severity) for item in plan_boundary.check(bench.plan)} == {("receipts_wait", "warning")}
    assert other.collect("r1", task="T-plain").ok
    leave(bench)
    assert len(receipts(bench)) == (1 if beside else 3)


def test_without_a_place_to_write_it_is_a_warning(bench: Bench) -> None:
    (bench.repo / "receipts").write_text("a file")
    bench.launch(worktree="../wt")
    made = plan_boundary.leave(bench.plan, frozenset({3}))
    assert [item.severity for item in made.findings] == ["warning"]
    assert bench.events()[-1]["state"] == "launched"


def test_a_plan_that_cannot_be_read_is_a_warning(quick_path: Path) -> None:
    found = plan_boundary.leave(quick_path / "none").findings
    assert [item.severity for item in found] == ["warning"]
    assert [item.severity for item in plan_boundary.check(quick_path / "none")] == ["error"]
    assert os.listdir(quick_path) == []
