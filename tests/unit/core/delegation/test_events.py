"""The form of journal events, type by type."""

from __future__ import annotations

from typing import Any

import pytest

from core.delegation.events import TYPES, form_problem, payload, same_content
from tests.unit.core.delegation.builders import BASE, DIGEST, HELPER, contract, delegation, event, gate_run

LISTS = {"affected_tasks": ["T-mark"], "evidence_invalidated": ["AC-one", 3], "evidence_preserved": []}
GOOD: dict[str, dict[str, Any]] = {
    "task_start": {"task": "T-mark", "fingerprint": {"revision": "none", "dirty": ""}},
    "approval": {"authority": "a", "mechanism": "pre_authorization", "plan_digest": "0" * 64},
    "gate_run": payload(gate_run(1)) | {"actor": HELPER, "env": {}},
    "observation": {"statement": "s", "trust": "asserted"},
    "resource_sample": {"source": "s", "value": 0, "unit": "u", "limit_id": "hours", "trust": "asserted"},
    "control_pair": {
        "criterion": "AC-one",
        "check_artifacts": ["t"],
        "starting_fingerprint": {"revision": "r", "dirty": ""},
        "old_leg": {"available": True, "outcome": "FAIL", "log": "l"},
        "new_leg": {"outcome": "PASS", "log": "l"},
        "verdict": "discriminating",
        "trust": "imported",
        "evidence_path": "l",
    },
    "amendment": {
        "original_criterion": "o",
        "observed_finding": "f",
        "disposition": "d",
        "revised_criterion": "r",
        "reason": "r",
        "authority": "a",
        **LISTS,
    },
    "adaptation": {
        "kind": "retry",
        "trigger_observation": 1,
        "evidence_artifact": "e",
        "hypothesis": "h",
        "action": "a",
        "rationale": "r",
        "authority": "a",
        "affected_criteria": ["AC-one"],
        "decision": "refused",
        "reason": "r",
        "resource_impact": {"declared": 1, "unit": "u"},
        **LISTS,
    },
    "intervention": {"category": "new_authority", "description": "d", "question": "q", "resolution": "r"},
    "selection": {"task": "T-mark", "priority_boost": True, "aging": {"waiting_since_seq": 1, "threshold": "t"}},
    "refusal": {"subject": "s", "stage": "authorize", "reason": "r", "proposal": 2},
    "view_render": {"view": "v", "snapshot_digest": "0" * 64, "digests": {"v": "0" * 64}},
    "reconciliation": {"trigger": "t", "editor": "e", "authority": "a"},
    "journal_repair": {"byte_offset": 0, "cause": "c"},
    "delegation": payload(delegation(1)) | {"kind": "k", "profile": "p", "target": "t"},
}
OPTIONAL = {
    "fingerprint",
    "env",
    "limit_id",
    "evidence_path",
    "resource_impact",
    "resolution",
    "proposal",
    "digests",
    "kind",
    "profile",
    "target",
    "worktree",
    "note",
}


def test_all_types_are_here() -> None:
    assert GOOD.keys() == TYPES["v7"].keys()
    assert TYPES["v7"].keys() - TYPES["v6"].keys() == {"delegation"}


@pytest.mark.parametrize("kind", GOOD)
def test_a_good_event(kind: str) -> None:
    assert form_problem(event(kind, 1, **GOOD[kind], note="n" * 500), "v7") is None


@pytest.mark.parametrize(("kind", "key"), [(kind, key) for kind, fields in GOOD.items() for key in fields])
def test_each_field_is_needed_or_optional_but_never_null(kind: str, key: str) -> None:
    made = event(kind, 1, **GOOD[kind])
    if key != "worktree":
        assert form_problem({**made, key: None}, "v7") is not None
    del made[key]
    needed = key not in OPTIONAL or (kind, key) in {("adaptation", "kind"), ("control_pair", "evidence_path")}
    if kind == "gate_run" and key == "evidence_path":
        needed = True
    assert (form_problem(made, "v7") is not None) == needed


@pytest.mark.parametrize("kind", GOOD)
def test_no_field_more(kind: str) -> None:
    assert "surplus" in (form_problem(event(kind, 1, **GOOD[kind], surplus=1), "v7") or "")
    if kind not in ("gate_run", "observation", "resource_sample", "control_pair"):
        assert "trust" in (form_problem(event(kind, 1, **GOOD[kind], trust="asserted"), "v7") or "")
        assert form_problem(event(kind, 1, **GOOD[kind], evidence_path="x"), "v7") is not None


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"schema": f"{BASE}/journal-event/v6.json"}, "schema"),
        ({"schema": None}, "schema"),
        ({"type": "unheard"}, "type"),
        ({"type": ["observation"]}, "type"),
        ({"seq": 0}, "seq"),
        ({"seq": True}, "seq"),
        ({"seq": 1.0}, "seq"),
        ({"ts": "2026-01-01T00:00:00"}, "ts"),
        ({"plan": "plan"}, "plan"),
        ({"contract_id": "0" * 63}, "contract_id"),
        ({"contract_id": "0" * 64 + "\n"}, "contract_id"),
        ({"actor": {"kind": "robot", "identity": "x"}}, "kind"),
        ({"actor": {"kind": "agent", "identity": " "}}, "identity"),
        ({"actor": {"kind": "agent", "identity": "i" * 101}}, "identity"),
        ({"actor": {"kind": "agent", "identity": "x", "more": 1}}, "more"),
        ({"actor": None}, "actor"),
        ({"note": "n" * 501}, "note"),
        ({"statement": " "}, "statement"),
        ({"trust": "seen"}, "trust"),
        ({"trust": "imported"}, "evidence_path"),
        ({"trust": "imported", "evidence_path": " "}, "evidence_path"),
        ({"trust": "observed", "evidence_path": "x"}, "observed"),
        ({"trust": "observed", "evidence_path": "x", "actor": {"kind": "host_adapter", "identity": "m"}}, None),
        ({"trust": "observed", "evidence_path": "x", "actor": HELPER}, None),
    ],
)
def test_the_envelope_and_the_label(changes: dict[str, Any], named: str | None) -> None:
    found = form_problem({**event("observation", 1, **GOOD["observation"]), **changes}, "v7")
    assert (found is None) if named is None else (found is not None and named in found)


@pytest.mark.parametrize("missing", ["schema", "type", "seq", "ts", "plan", "contract_id", "actor"])
def test_the_envelope_is_whole(missing: str) -> None:
    made = event("observation", 1, **GOOD["observation"])
    del made[missing]
    assert form_problem(made, "v7") is not None


@pytest.mark.parametrize(
    ("changes", "fine"),
    [
        ({"delegation_id": "a" * 64}, True),
        ({"delegation_id": "a" * 65}, False),
        ({"delegation_id": ".a"}, False),
        ({"delegation_id": "a\n"}, False),
        ({"via": "a" * 65}, False),
        ({"via": "Agentkit"}, False),
        ({"transport": "pigeon"}, False),
        ({"state": "Launched"}, False),
        ({"kind": "k" * 200}, True),
        ({"kind": "k" * 201}, False),
        ({"kind": ""}, False),
        ({"worktree": None}, True),
        ({"worktree": "w" * 300}, True),
        ({"worktree": "w" * 301}, False),
        ({"worktree": ""}, False),
        ({"worktree": False}, False),
        ({"prompt_digest": DIGEST.upper()}, False),
        ({"prompt_digest": DIGEST.removeprefix("sha256:")}, False),
        ({"result_path": "a"}, False),
        ({"result_digest": DIGEST}, False),
        ({"state": "cancelled", "result_path": "a"}, False),
        ({"state": "completed", "result_path": "a/b", "result_digest": DIGEST}, True),
        ({"state": "failed", "result_path": "a"}, True),
        ({"state": "completed", "result_path": "/a"}, False),
        ({"state": "completed", "result_path": "a/../b"}, False),
        ({"state": "completed", "result_path": "a..b"}, True),
        ({"state": "completed", "result_path": ""}, False),
    ],
)
def test_a_delegation(changes: dict[str, Any], fine: bool) -> None:
    assert (form_problem(delegation(1, **changes), "v7") is None) == fine


def test_only_a_launch_needs_the_prompt() -> None:
    made = delegation(1)
    del made["prompt_digest"]
    assert "prompt_digest" in (form_problem(made, "v7") or "")
    assert form_problem({**made, "state": "failed"}, "v7") is None


@pytest.mark.parametrize("dirty", ["", " M x"])
@pytest.mark.parametrize("old", [None, "PASS", "FAIL"])
@pytest.mark.parametrize("new", ["PASS", "FAIL"])
def test_the_verdict_of_a_pair(dirty: str, old: str | None, new: str) -> None:
    if dirty or old is None:
        expected = "control_unavailable"
    else:
        expected = "discriminating" if (old, new) == ("FAIL", "PASS") else "non_discriminating"
    leg: dict[str, Any] = {"available": old is not None} | ({"outcome": old} if old else {})
    for verdict in ("discriminating", "non_discriminating", "control_unavailable"):
        fields = GOOD["control_pair"] | {
            "starting_fingerprint": {"revision": "r", "dirty": dirty},
            "old_leg": leg,
            "new_leg": {"outcome": new, "log": "l"},
            "verdict": verdict,
        }
        assert (form_problem(event("control_pair", 1, **fields), "v7") is None) == (verdict == expected)


def test_a_leg_that_is_not_there_has_no_outcome() -> None:
    for leg in ({"available": False, "outcome": "PASS"}, {"available": True}, {"available": 1, "outcome": "PASS"}):
        fields = GOOD["control_pair"] | {"old_leg": leg, "verdict": "control_unavailable"}
        assert form_problem(event("control_pair", 1, **fields), "v7") is not None


def test_a_refused_adaptation_and_a_boost_need_their_reasons() -> None:
    fields = dict(GOOD["adaptation"])
    del fields["reason"]
    assert form_problem(event("adaptation", 1, **fields), "v7") is not None
    assert form_problem(event("adaptation", 1, **fields | {"decision": "authorized"}), "v7") is None
    assert form_problem(event("selection", 1, task="T-mark", priority_boost=True), "v7") is not None
    assert form_problem(event("selection", 1, task="T-mark", priority_boost=False), "v7") is None


def test_generations_are_never_mixed() -> None:
    made = contract(schema=f"{BASE}/plan-contract/v6.json", tasks=[{**contract().raw["tasks"][1]}])
    older = event("observation", 1, made, **GOOD["observation"])
    assert form_problem(older, "v6") is None
    assert form_problem(older, "v7") is not None
    assert form_problem({**delegation(1), "schema": f"{BASE}/journal-event/v6.json"}, "v6") is not None


def test_what_makes_events_equal() -> None:
    made = event("observation", 1, **GOOD["observation"])
    assert same_content(made, {**made, "seq": 9, "ts": "x", "note": "n", "actor": {**made["actor"], "kind": "human"}})
    assert not same_content(made, {**made, "statement": "t"})
    assert not same_content(made, {**made, "contract_id": "1" * 64})
    assert not same_content(made, {**made, "actor": {"kind": "agent", "identity": "other"}})
    assert not same_content(made, {**made, "actor": None})
    assert not same_content({**made, "value": 1}, {**made, "value": True})
    assert not same_content({**made, "value": [1]}, {**made, "value": [1.0]})
    assert not same_content({**made, "value": [1]}, {**made, "value": [1, 1]})
    assert same_content({**made, "value": {"a": [1]}}, {**made, "value": {"a": [1]}})
