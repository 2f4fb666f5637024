"""How a turn may end, and what proves a done (docs/specs/governance.md §4, §6)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.finding import Finding
from core.governance import rules, store, view
from core.governance.model import NEEDS, AgentStatus
from tests.unit.core.governance.samples import CATALOG, data, done, envelope, status

PAYLOADS: dict[str, Any] = {
    "needs_human": {"action": "a", "reason": "r"},
    "needs_brave_search": {"queries": ["q"]},
    "needs_agent": {"handler": "h", "question": "q"},
    "needs_webgpt": {
        "question": "q",
        "parent_refs": [{"receipt_id": "r", "expected_schema": "s", "expected_producer": "p"}] * 2,
    },
    "needs_roundtable": {"immutable_goal": "g", "question": "q", "handlers": ["a", "a", "a"]},
    "needs_competition": {"immutable_goal": "g", "task": "t", "handlers": ["a", "a"], "criteria": ["c"]},
}
FAILURE = {"triage": {"code": "press_jam", "cause": "c"}}


def judge(document: Any, root: Path = Path()) -> list[Finding]:
    made, _, found = rules.status("s.json", data(document), CATALOG)
    return found if made is None else store.judged(made, "s.json", root, CATALOG)


def told(document: Any, root: Path = Path()) -> list[str]:
    return [item.code for item in judge(document, root)]


@pytest.mark.parametrize("state", NEEDS)
def test_every_need_with_its_payload(state: str) -> None:
    assert told(status(state, **{state: PAYLOADS[state]})) == []
    assert told({**status(state), state: None}) == ["state_payload_missing"]


@pytest.mark.parametrize(
    ("state", "payload"),
    [
        ("needs_brave_search", {"queries": []}),
        ("needs_webgpt", {**PAYLOADS["needs_webgpt"], "parent_refs": PAYLOADS["needs_webgpt"]["parent_refs"][:1]}),
        ("needs_roundtable", {**PAYLOADS["needs_roundtable"], "handlers": ["a", "b"]}),
        ("needs_competition", {**PAYLOADS["needs_competition"], "handlers": ["a"]}),
        ("needs_competition", {**PAYLOADS["needs_competition"], "criteria": []}),
    ],
)
def test_too_few(state: str, payload: Any) -> None:
    assert told(status(state, **{state: payload})) == ["field_invalid"]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (status("failed", failure=FAILURE), []),
        (status("continuing", not_done=[{"item": "a", "next_command": "b"}]), []),
        (status("failed"), ["failed_requires_triage"]),
        (status(failure=FAILURE), ["failure_only_with_failed"]),
        (status("continuing"), ["continuing_requires_not_done"]),
        (status(not_done=[{"item": "a", "next_command": "b"}]), ["not_done_requires_continuing"]),
        (status(needs_agent=PAYLOADS["needs_agent"]), ["state_payload_forbidden"]),
        (status(changed=[]), ["changed_required"]),
        (status("done"), ["done_requires_verified", "done_requires_proof"]),
        (
            status(
                "done",
                changed=[],
                failure=FAILURE,
                not_done=[{"item": "a", "next_command": "b"}],
                needs_human=PAYLOADS["needs_human"],
            ),
            [
                "failure_only_with_failed",
                "not_done_requires_continuing",
                "state_payload_forbidden",
                "changed_required",
                "done_requires_verified",
                "done_requires_proof",
            ],
        ),
        (
            status("needs_competition", needs_human=PAYLOADS["needs_human"], changed=[]),
            ["state_payload_missing", "state_payload_forbidden", "changed_required"],
        ),
        (status(changed=None), ["field_invalid"]),
        (status(changed=["x", " "]), ["field_blank"]),
        (status("failed", failure={"triage": {"code": " ", "cause": "c"}}), ["field_blank"]),
        (
            status("failed", failure={"triage": {"code": "x", "cause": "c", "next_command": " "}}),
            ["ambiguous_failure_code", "field_blank"],
        ),
        (status("failed", failure={**FAILURE, "escalation_rung": 3}), ["field_invalid"]),
        (status("failed", failure={**FAILURE, "escalation_rung": 2}), []),
        (status("failed", failure={**FAILURE, "escalation_rung": None}), ["field_invalid"]),
        (status(goal_id=" "), ["field_blank"]),
        (status("blocked"), ["field_invalid"]),
    ],
)
def test_rules_between_the_fields(document: Any, expected: list[str]) -> None:
    assert told(document) == expected


def test_a_missing_list_is_an_empty_one() -> None:
    document = status()
    del document["changed"]
    assert told(document) == ["changed_required"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ws" / "out").mkdir(parents=True)
    (tmp_path / "ws" / "out" / "proof.txt").write_text("command: make proof\nresult: 12 sheets clean\n")
    (tmp_path / "up.txt").write_text("make proof 12 sheets clean")
    return tmp_path / "ws"


@pytest.mark.parametrize(
    ("proof", "expected"),
    [
        ("out/proof.txt", []),
        ("./out/../out/proof.txt", []),
        ("out/none.txt", ["proof_path_missing"]),
        ("ticket-17", ["proof_path_missing"]),
        ("HTTP://x", ["proof_path_missing"]),
        ("a\0b", ["proof_path_missing"]),
        ("x" * 5000, ["proof_path_missing"]),
        ("../up.txt", ["proof_path_outside_root"]),
        ("../ws/../up.txt", ["proof_path_outside_root"]),
        ("/", ["proof_path_outside_root"]),
        ("out", ["verified_not_backed_by_proof"]),
        (".", ["verified_not_backed_by_proof"]),
        ("https://x", ["proof_not_checked"]),
    ],
)
def test_proofs(root: Path, proof: str, expected: list[str]) -> None:
    assert told(done(proof), root) == expected


def test_a_proof_by_its_absolute_path_inside(root: Path) -> None:
    assert told(done(str(root / "out" / "proof.txt")), root) == []


def test_links_that_leave_and_links_that_stay(root: Path) -> None:
    (root / "stays").symlink_to(root / "out")
    (root / "leaves").symlink_to(root.parent)
    (root / "dangling").symlink_to(root / "none")
    assert told(done("stays/proof.txt"), root) == []
    assert told(done("leaves/up.txt"), root) == ["proof_path_outside_root"]
    assert told(done("dangling"), root) == ["proof_path_missing"]


def test_a_proof_that_would_block_is_not_read(root: Path) -> None:
    os.mkfifo(root / "fifo")
    assert told(done("fifo"), root) == ["proof_path_missing"]


def test_command_and_result_must_occur_together(root: Path) -> None:
    (root / "a.txt").write_text("make proof")
    (root / "b.bin").write_bytes(b"\xff12 sheets\xfe clean")
    assert told(done("a.txt", "b.bin"), root) == []
    assert told(done("a.txt"), root) == ["verified_not_backed_by_proof"]
    assert told(done("a.txt", "none", "../up.txt"), root) == [
        "proof_path_missing",
        "proof_path_outside_root",
        "verified_not_backed_by_proof",
    ]


def test_only_the_beginning_of_a_file_counts(root: Path) -> None:
    (root / "long.txt").write_bytes(b"\xff" * 1000 + b"x" * (store.TEXT_CAP - 10) + b"make proof" + b"12 sheets clean")
    assert told(done("long.txt", result="make"), root) == []
    assert told(done("long.txt"), root) == ["verified_not_backed_by_proof"]


LOG = "make proof: 12 sheets clean"


@pytest.mark.parametrize(
    ("proof", "expected"),
    [
        ({"schema": "agentic_evals.report.v2", "readiness": "READY", "outcome_counts": {"PASS": 3, "FAIL": 0}}, []),
        ({"schema": "agentic_evals.report.v2", "readiness": "READY"}, []),
        ({"schema": "agentic_evals.report.v2", "readiness": "NOT_READY"}, ["agentic_eval_proof_not_ready"]),
        (
            {"schema": "agentic_evals.report.v2", "readiness": "READY", "outcome_counts": {"NOT_TESTED": 1}},
            ["agentic_eval_proof_not_ready"],
        ),
        (
            {"schema": "agentic_evals.report.v2", "readiness": "READY", "outcome_counts": []},
            ["agentic_eval_proof_not_ready"],
        ),
        ({"schema": "lazy_report_shame.report_check.v2", "decision": "pass"}, []),
        ({"schema": "lazy_report_shame.report_check.v2"}, ["status_check_proof_not_pass"]),
        ({"schema": "debugger.proof.v1", "frames": []}, []),
        ({"schema": "debugger.proof.v1"}, ["debugger_proof_missing_runtime_evidence"]),
        (envelope(payload={"schema": "shop.order.v1", "log": LOG}), []),
        (envelope(emitted_at="now", payload={"schema": "shop.order.v1"}), ["envelope_proof_invalid"]),
        ({"schema": "else.v1"}, []),
    ],
)
def test_proofs_of_a_known_schema(root: Path, proof: dict[str, Any], expected: list[str]) -> None:
    known = proof["schema"] == "pi.receipt_envelope.v1"
    (root / "p.json").write_text(json.dumps(proof if known else {**proof, "log": LOG}))
    (root / "log.txt").write_text(LOG)
    assert told(done("p.json", "log.txt"), root) == expected


def test_a_report_is_not_hidden_by_its_length(root: Path) -> None:
    report = {"schema": "agentic_evals.report.v2", "readiness": "NO", "log": LOG, "padding": "x" * (2 * store.TEXT_CAP)}
    (root / "p.json").write_text(json.dumps(report))
    assert told(done("p.json"), root) == ["agentic_eval_proof_not_ready"]


def rendered(document: Any) -> str:
    made, _, _ = rules.status("s.json", data(document), CATALOG)
    assert made is not None
    return view.report(made)


def test_a_report_has_a_line_for_everything() -> None:
    assert rendered(done("p", "q", changed=["a", "b"])) == (
        "Status report\n- Goal: ship\n- State: done\n- Changed: a\n- Changed: b\n"
        "- Verified: make proof -> 12 sheets clean\n- Proof: p\n- Proof: q\n- Not done: none\n"
    )
    assert rendered(status("failed", failure=FAILURE)).endswith("- Not done: none\n- Failure: press_jam: c\n")
    assert "- Not done: i -> c\n" in rendered(status("continuing", not_done=[{"item": "i", "next_command": "c"}]))
    assert rendered(status()).endswith("- Needs human: sign (only the editor may)\n")


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip))
def test_a_value_cannot_start_a_line_or_act(text: str) -> None:
    lines = rendered(status(goal=text, changed=[text], needs_human={"action": text, "reason": text})).split("\n")
    assert len(lines) == 7
    assert all(line.startswith(("Status report", "- ")) for line in lines[:-1])
    assert all(line.isprintable() or " " in line for line in lines)
    assert not any(
        ord(char) < 32 or 0x7F <= ord(char) < 0xA0 or char in "\u2028\u2029\u202e\u2066"
        for line in lines
        for char in line
    )


def test_the_model_is_frozen() -> None:
    made, _, _ = rules.status("s.json", data(status()), CATALOG)
    assert isinstance(made, AgentStatus)
    with pytest.raises(ValueError, match="frozen"):
        made.state = "done"  # type: ignore[misc]
