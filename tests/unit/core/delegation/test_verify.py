"""The rules of verification, one broken at a time."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.delegation import canon, store
from core.delegation.verify import Report, code_of, verify
from tests.unit.core.delegation.builders import (
    BASE,
    DIGEST,
    HELPER,
    Bench,
    approval,
    delegation,
    event,
    gate_run,
    start,
)


def lines(bench: Bench, *events: dict[str, Any]) -> None:
    live = bench.record().chain.live
    with bench.journal.open("ab") as log:
        for item in events:
            log.write(canon.line({"contract_id": live.id, **item, **_id(item, live.id)}))


def _id(item: dict[str, Any], live: str) -> dict[str, Any]:
    """Events of the builders cite the unchanged sample; here they cite the plan's contract."""
    return {"contract_id": live} if item["contract_id"] != "f" * 64 else {}


def rules(bench: Bench) -> set[str]:
    return set(verify(bench.place).rules)


def ended(seq: int, state: str = "failed", **fields: Any) -> dict[str, Any]:
    return delegation(seq, state=state, **fields)


CASES: list[tuple[str, list[dict[str, Any]], set[str]]] = [
    ("nothing more", [], set()),
    ("a delegation", [delegation(3), ended(4)], set()),
    ("open", [delegation(3)], set()),
    ("form", [{**delegation(3), "kind": ""}], {"event-invalid"}),
    ("a type unheard of", [event("unheard", 3)], {"event-invalid"}),
    ("another plan", [{**delegation(3), "plan": "PLAN_other_name"}], {"event-invalid"}),
    ("another generation", [{**start(3), "schema": f"{BASE}/journal-event/v6.json"}], {"event-invalid"}),
    ("a criterion of another task", [gate_run(3, criterion="AC-two")], {"event-invalid"}),
    ("a repeat", [start(2)], {"seq-order"}),
    ("a step back", [event("selection", 9, task="T-mark", priority_boost=False), start(3)], {"seq-order"}),
    ("a gap", [start(9)], set()),
    ("another contract", [{**start(3), "contract_id": "f" * 64}], {"contract-unknown"}),
    ("another task", [event("selection", 3, task="T-nope", priority_boost=False)], {"task-unknown"}),
    ("a start of another task", [start(3, "T-nope")], {"task-unknown"}),
    ("no launch", [ended(3)], {"delegation-no-launch"}),
    ("end, then launch", [ended(3), delegation(4)], {"delegation-no-launch"}),
    ("two launches", [delegation(3), delegation(4)], {"delegation-relaunched"}),
    ("two ends", [delegation(3), ended(4), ended(5, "completed")], {"delegation-second-end"}),
    ("another transport", [delegation(3), ended(4, transport="interactive")], {"delegation-drift"}),
    ("another via", [delegation(3), ended(4, via="herdr")], {"delegation-drift"}),
    ("another task at its end", [delegation(3), ended(4, task="T-plain")], {"delegation-drift"}),
    ("before its start", [delegation(3, task="T-plain", worktree=None)], {"delegation-unlawful"}),
    ("not marked", [start(3, "T-plain"), delegation(4, task="T-plain")], {"delegation-unlawful"}),
    ("read-only", [start(3, "T-plain"), delegation(4, task="T-plain", worktree=None)], set()),
    ("when complete", [gate_run(3), delegation(4), ended(5)], {"delegation-unlawful"}),
    ("complete, then begun anew", [gate_run(3), start(4), delegation(5)], set()),
    ("open when complete", [delegation(3), gate_run(4)], {"delegation-open-done"}),
    (
        "minted",
        [event("observation", 3, statement="s", trust="observed", evidence_path="README.md", actor=HELPER)],
        {"evidence-minted"},
    ),
    ("evidence gone", [gate_run(3, evidence_path="gates/none.log")], {"evidence-missing"}),
    (
        "imported evidence gone",
        [event("observation", 3, statement="s", trust="imported", evidence_path="none")],
        {"evidence-missing"},
    ),
    ("a word needs no file", [event("observation", 3, statement="s", trust="asserted", evidence_path="x")], set()),
    ("result gone", [delegation(3), ended(4, result_path="none", result_digest=DIGEST)], {"result-missing"}),
    ("result changed", [delegation(3), ended(4, result_path="README.md", result_digest=DIGEST)], {"result-changed"}),
    ("result never hashed", [delegation(3), ended(4, result_path="none")], set()),
    ("only well-formed events are judged", [{**ended(3), "surplus": 1}], {"event-invalid"}),
]


@pytest.mark.parametrize(("events", "found"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_one_rule_at_a_time(bench: Bench, events: list[dict[str, Any]], found: set[str]) -> None:
    bench.begin()
    before = bench.journal.read_bytes()
    lines(bench, *events)
    report = verify(bench.place)
    assert set(report.rules) == found
    assert bench.journal.read_bytes().startswith(before)
    assert {code_of(rule) for rule in found} == {finding.code for _, finding in report.findings}
    assert not bench.ran("ak")


def test_a_launch_without_a_grant(bench: Bench) -> None:
    bench.begin(permissions={"granted": [], "not_granted": []})
    lines(bench, delegation(3))
    assert rules(bench) == {"delegation-unlawful"}


def test_a_launch_is_judged_by_the_contract_that_it_cites(bench: Bench) -> None:
    bench.begin()
    lines(bench, delegation(3), ended(4))
    first = json.loads((bench.plan / "contract.json").read_bytes())
    second = {**first, "revision": 2, "parent_contract_id": first["contract_id"]}
    second["permissions"] = {"granted": [], "not_granted": ["agent_delegation"]}
    second["contract_id"] = canon.contract_id(second)
    (bench.plan / "contracts").mkdir()
    (bench.plan / "contracts" / "contract.r2.json").write_text(json.dumps(second))
    assert rules(bench) == {"not-approved"}
    with bench.journal.open("ab") as log:
        log.write(canon.line({**approval(5), "contract_id": second["contract_id"]}))
    assert rules(bench) == set()
    with bench.journal.open("ab") as log:
        log.write(canon.line({**delegation(6, "d2"), "contract_id": second["contract_id"]}))
    assert rules(bench) == {"delegation-unlawful"}


def test_the_spots(bench: Bench) -> None:
    bench.begin()
    lines(bench, delegation(3), delegation(4), {**start(5), "seq": "x"})
    report = verify(bench.place)
    assert report.rules == {"delegation-relaunched": [4], "event-invalid": [5]}
    assert report.exit == 2
    assert not report.as_json()["ok"]


@pytest.mark.parametrize(
    ("tail", "found", "code"),
    [
        (b"", {}, 0),
        (b"{torn", {"journal-torn": [3]}, 1),
        (b"garbage\n", {"journal-torn": [3]}, 1),
        (b"garbage\n{torn", {"journal-damaged": [3], "journal-torn": [4]}, 2),
        (b"\n\n", {}, 0),
    ],
)
def test_damage(bench: Bench, tail: bytes, found: dict[str, Any], code: int) -> None:
    bench.begin()
    with bench.journal.open("ab") as log:
        log.write(tail)
    before = bench.journal.read_bytes()
    report = verify(bench.place)
    assert (report.rules, report.exit) == (found, code)
    assert bench.journal.read_bytes() == before


def test_a_missing_newline(bench: Bench) -> None:
    bench.begin()
    bench.journal.write_bytes(bench.journal.read_bytes()[:-1])
    assert rules(bench) == {"journal-torn"}


def test_a_damaged_archive_is_named(bench: Bench) -> None:
    bench.begin()
    store.roll(bench.place, bench.world)
    (archive,) = bench.plan.glob("journal-archive-*")
    archive.write_bytes(archive.read_bytes() + b"{torn")
    report = verify(bench.place)
    assert report.rules == {"journal-damaged": [archive.name]}


@pytest.mark.parametrize(
    "change",
    [
        None,
        "{nope",
        "[]",
        {"schema": f"{BASE}/plan-manifest/v6.json"},
        {"plan": "PLAN_other_name"},
        {"contract": {"id": "0" * 64, "path": "contract.json"}},
        {"surplus": 1},
    ],
)
def test_the_manifest(bench: Bench, change: Any) -> None:
    bench.begin()
    path = bench.plan / "manifest.json"
    known = json.loads(path.read_bytes())
    if change is None:
        path.unlink()
    else:
        path.write_text(change if isinstance(change, str) else json.dumps({**known, **change}))
    assert rules(bench) == {"manifest-mismatch"}


def test_an_invalid_contract_ends_it(bench: Bench) -> None:
    bench.begin()
    (bench.plan / "manifest.json").unlink()
    (bench.plan / "contract.json").write_text("{}")
    report = verify(bench.place)
    assert report.rules == {"contract-invalid": ["contract.json"]}
    assert report.exit == 2


def test_without_an_approval(bench: Bench) -> None:
    bench.begin()
    kept = [line for line in bench.journal.read_bytes().splitlines(keepends=True) if b'"approval"' not in line]
    bench.journal.write_bytes(b"".join(kept))
    assert rules(bench) == {"not-approved"}


def test_a_report_without_findings() -> None:
    assert Report().as_json() == {"ok": True, "exit": 0, "rules": {}, "findings": []}
