"""The last status in a text, and the work that a ledger holds open (docs/specs/governance.md §5)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.finding import Refused, error
from core.governance import turn
from core.governance.turn import Guard, Ledger
from tests.unit.core.governance.samples import CATALOG, done, status

FORCED = Guard(force=True)


def fenced(document: Any, opens: str = "```json", closes: str = "```") -> str:
    body = document if isinstance(document, str) else json.dumps(document)
    return f"{opens}\n{body}\n{closes}"


def check(text: str, guard: Guard = FORCED, ledger: Any = None, root: Path = Path()) -> turn.Verdict:
    return turn.check(text, "-", guard, root, CATALOG, ledger)


def reason(text: str, **more: Any) -> str:
    verdict = check(text, **more)
    assert len(verdict.reason_codes) == 1
    assert (verdict.decision == "pass") != any(item.severity == "error" for item in verdict.findings)
    return verdict.reason_codes[0]


VALID, INVALID = fenced(status()), fenced(status(changed=[]))
PASSED, MISSING, WRONG = "valid_agent_status_json", "missing_agent_status_json", "invalid_agent_status_json"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (VALID, PASSED),
        (f"prose\n{VALID}\nall done", PASSED),
        (f"{INVALID}\n{VALID}", PASSED),
        (f"{VALID}\n{INVALID}", WRONG),
        (f"{VALID}\n{fenced({'schema': 'other'})}", PASSED),
        (f"{VALID}\n{fenced('{broken')}", PASSED),
        (f"{VALID}\n{fenced('null')}\n{fenced('[1]')}\n{fenced('7')}", PASSED),
        (fenced(status(), "~~~json", "~~~"), PASSED),
        (fenced(status(), "  ```json \r", "\t```\r"), PASSED),
        (fenced(status(), "```json", "~~~"), MISSING),
        (fenced(status(), "~~~json", "```"), MISSING),
        (fenced(status(), "```JSON"), MISSING),
        (fenced(status(), "``` json"), MISSING),
        (fenced(status(), "````json", "````"), MISSING),
        (fenced(status(), "```json", "```json"), MISSING),
        ("```json\n" + json.dumps(status()), MISSING),
        (json.dumps(status()), MISSING),
        ("The work is done.", MISSING),
        ("", MISSING),
        (fenced(status(), "~~~json", "") + f"\n{VALID}", MISSING),
        ("```markdown\n" + VALID + "\n```", PASSED),
        (fenced('{"schema": "pi.agent_status.v1", "goal": NaN}'), MISSING),
        (fenced('{"schema": "pi.agent_status.v1", "goal": 1e999}'), WRONG),
        (fenced('{"schema": "x", "schema": "pi.agent_status.v1"}'), "duplicate_agent_status_key"),
        (fenced('{"schema": "pi.agent_status.v1", "x": {"a": 1, "a": 1}}'), "duplicate_agent_status_key"),
        (fenced('{"schema": "pi.agent_status.v1", "x": ' + "[" * 300 + "]" * 300 + "}"), WRONG),
        (fenced('{"schema": "pi.agent_status.v1", "x": ' + "[" * 9999 + "]" * 9999 + "}"), MISSING),
        (fenced(status(changed=["a\u2028```\u2028b"])), PASSED),
        (fenced(done("none.txt")), "proof_path_missing"),
    ],
)
def test_the_last_closed_block_decides(text: str, expected: str) -> None:
    assert reason(text) == expected


def test_an_unguarded_turn_needs_no_status_but_an_invalid_one_is_refused() -> None:
    assert reason("prose", guard=Guard()) == "no_status_required_non_mutating_turn"
    assert reason(INVALID, guard=Guard()) == WRONG
    for guard in (Guard(mutating=True), Guard(strict=True), Guard(force=True)):
        assert reason("prose", guard=guard) == MISSING


def test_features_of_a_valid_turn() -> None:
    verdict = check(f"x\n{VALID}\n  and more \n", Guard(mutating=True))
    assert verdict.as_json() == {
        "schema": "lazy_report_shame.report_check.v2",
        "checker_version": turn.CHECKER_VERSION,
        "decision": "pass",
        "reason_codes": [PASSED],
        "features": {
            "force_status": False,
            "mutating_turn": True,
            "strict_status": False,
            "state": "needs_human",
            "status": status(),
            "ignored_trailing_content_chars": 8,
        },
        "footer_failures": [],
    }


def test_the_most_telling_reason_comes_first(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("nothing")
    assert reason(fenced(done("a.txt", "b.txt")), root=tmp_path) == "proof_path_missing"
    assert reason(fenced(done("a.txt")), root=tmp_path) == "verified_not_backed_by_proof"
    assert reason(fenced(done("a.txt", changed=[])), root=tmp_path) == "verified_not_backed_by_proof"


def test_what_cannot_be_used_is_said_before_anything_else() -> None:
    broken = Refused(error("catalog_schema_wrong", "c"))
    verdict = turn.check("prose", "-", Guard(), Path(), broken, turn.ledger_of("nowhere.json"))
    assert (verdict.decision, verdict.reason_codes) == ("error", ("catalog_invalid", "continuation_ledger_invalid"))
    assert [item.code for item in verdict.findings] == [
        "catalog_invalid",
        "catalog_schema_wrong",
        "continuation_ledger_invalid",
    ]


TICKET = {"ref": "shop#4", "state": "open", "labels": ["agent-work"], "next_command": "shop ticket 4"}


def ledger(**more: Any) -> Ledger:
    document = {"schema": "lazy_report_shame.continuation_guard.v1", **more}
    return turn.read_ledger("l.json", json.dumps(document).encode())


@pytest.mark.parametrize(
    ("more", "failures", "command"),
    [
        ({}, (), None),
        ({"tickets": [TICKET]}, ("open_relevant_agent_work_ticket",), "shop ticket 4"),
        ({"tickets": [{**TICKET, "state": " Merged "}]}, (), None),
        ({"tickets": [{**TICKET, "state": "in progress"}]}, ("open_relevant_agent_work_ticket",), "shop ticket 4"),
        ({"tickets": [{"labels": ["AGENT-WORK"]}]}, ("open_relevant_agent_work_ticket",), None),
        (
            {"tickets": [{**TICKET, "labels": [{"name": "Agent-Work"}]}]},
            ("open_relevant_agent_work_ticket",),
            "shop ticket 4",
        ),
        ({"tickets": [{**TICKET, "labels": ["bug"]}]}, (), None),
        ({"tickets": [{**TICKET, "labels": ["agent-work", {"name": "Next:Human"}]}]}, (), None),
        ({"tickets": [{**TICKET, "blocked_by": "shop#3"}]}, (), None),
        ({"tickets": [{**TICKET, "blocked_by": None}]}, ("open_relevant_agent_work_ticket",), "shop ticket 4"),
        ({"gates": [{"id": "g", "status": "OK"}, {"id": "h", "status": " Closed "}]}, (), None),
        ({"gates": [{"id": "g"}]}, ("unresolved_acceptance_gate",), None),
        (
            {"gates": [{"id": "g", "status": "failed", "next_command": "run g"}]},
            ("unresolved_acceptance_gate",),
            "run g",
        ),
        ({"obvious_next_steps": ["", " ", "bind it"]}, ("obvious_next_step_not_enacted",), "bind it"),
        ({"obvious_next_steps": []}, (), None),
        ({"next_command": " "}, (), None),
        ({"next_command": "go"}, ("obvious_next_step_not_enacted",), "go"),
        (
            {
                "tickets": [{"labels": ["agent-work"]}, TICKET],
                "gates": [{"status": "x", "next_command": "g"}],
                "obvious_next_steps": ["s"],
            },
            ("open_relevant_agent_work_ticket", "unresolved_acceptance_gate", "obvious_next_step_not_enacted"),
            "shop ticket 4",
        ),
        (
            {"unknown": {"kept": True}, "active": None, "tickets": [TICKET]},
            ("open_relevant_agent_work_ticket",),
            "shop ticket 4",
        ),
    ],
)
def test_open_work(more: dict[str, Any], failures: tuple[str, ...], command: str | None) -> None:
    made = ledger(**more)
    assert (made.active, made.failures, made.next_command) == (True, failures, command)


def test_a_ledger_that_is_switched_off_is_still_read() -> None:
    assert ledger(active=False, tickets=[TICKET]) == Ledger(False)
    with pytest.raises(Refused):
        ledger(active=False, tickets=["x"])


@pytest.mark.parametrize(
    "more",
    [
        {"schema": "x"},
        {"tickets": {}},
        {"tickets": None},
        {"tickets": ["shop#4"]},
        {"tickets": [{"labels": "agent-work"}]},
        {"gates": [None]},
        {"gates": "x"},
        {"obvious_next_steps": "x"},
    ],
)
def test_a_ledger_that_cannot_be_used(more: dict[str, Any]) -> None:
    with pytest.raises(Refused) as caught:
        ledger(**more)
    assert [item.code for item in caught.value.findings] == ["continuation_ledger_invalid"]


@pytest.mark.parametrize("data", [b"{", b"[]", b"\xff", b"[" * 5000, b'{"schema":' + b"[" * 300 + b"]" * 300 + b"}"])
def test_bytes_that_are_no_ledger(data: bytes) -> None:
    refused = turn.ledger_of("l.json", data)
    assert isinstance(refused, Refused)
    assert [item.code for item in refused.findings] == ["continuation_ledger_invalid"]


def test_open_work_stops_a_done_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text("make proof 12 sheets clean")
    held = ledger(tickets=[TICKET])
    verdict = check(fenced(done("p.txt")), Guard(), held, tmp_path)
    assert (verdict.decision, verdict.reason_codes) == ("reject", ("continuation_guard_unresolved_work",))
    assert verdict.features["next_command"] == verdict.findings[-1].next_command == "shop ticket 4"
    assert verdict.features["state"] == "done"
    assert reason(VALID, ledger=held, guard=Guard()) == PASSED
    assert reason(fenced(done("p.txt")), ledger=ledger(), guard=Guard(), root=tmp_path) == PASSED
    assert reason("prose", ledger=ledger(), guard=Guard()) == MISSING
    assert reason("prose", ledger=ledger(active=False), guard=Guard()) == "no_status_required_non_mutating_turn"


@given(st.text(st.sampled_from('```~json\n {}[]"a:\r'), max_size=80))
def test_any_text_is_judged(text: str) -> None:
    verdict = check(text)
    assert verdict.decision in ("pass", "reject")


def test_very_many_blocks_cost_little() -> None:
    text = "```json\n{}\n```\n" * 50_000
    assert reason(text) == MISSING
