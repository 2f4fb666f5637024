"""What makes a contract valid, a draft fit, and a chain whole."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.delegation import canon
from core.delegation.contract import Invalid, chain, draft_problems, head, revision
from tests.unit.core.delegation.builders import BASE, contract, draft


def changed(path: str, value: Any) -> dict[str, Any]:
    """The draft with one place set, or dropped when `value` is `...`."""
    made = draft()
    *steps, last = path.split(".")
    spot: Any = made
    for step in steps:
        spot = spot[int(step) if step.isdigit() else step]
    key: Any = int(last) if last.isdigit() else last
    if value is ...:
        del spot[key]
    else:
        spot[key] = value
    return made


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        ("schema", 7, "schema"),
        ("schema", f"{BASE}/plan-contract/v8.json", "schema"),
        ("spec_version", "7", "spec_version"),
        ("spec_version", "7.0.0\n", "spec_version"),
        ("plan", "PLAN_one", "plan"),
        ("plan", "PLAN_a_b_c_d_e_f", "plan"),
        ("plan", "PLAN_12_a", None),
        ("plan", "PLAN_12_a_b_c_d", None),
        ("plan", "PLAN_12_a_b_c_d_e", "plan"),
        ("plan", "PLAN_123_a_b_c_d_e", None),
        ("revision", 0, "revision"),
        ("revision", 1.0, "revision"),
        ("created_at", "2026-02-30T00:00:00Z", "created_at"),
        ("title", None, "title"),
        ("title", "", None),
        ("outcome.out_of_scope", ["  "], "out_of_scope"),
        ("outcome.out_of_scope", ..., "out_of_scope"),
        ("acceptance.criteria.0.id", "AC-One", "id"),
        ("acceptance.criteria.0.id", "AC-one-", "id"),
        ("acceptance.criteria.0.accepted_evidence", ["seen"], "accepted_evidence"),
        ("acceptance.criteria.0.control", None, "control"),
        ("acceptance.criteria.0.control", {"kind": "exempt"}, "rationale"),
        ("invariants", None, "invariants"),
        ("scope.allowed_command_classes", ["true", "true"], "allowed_command_classes"),
        ("scope.allowed_command_classes", ["true", "false", " "], "allowed_command_classes"),
        ("authorization.timestamp", "today", "timestamp"),
        ("authorization.consent_checkpoints", ..., "consent_checkpoints"),
        ("permissions.granted", ["agent_delegation", "agent_delegation"], "granted"),
        ("permissions.granted", [["agent_delegation"]], "granted"),
        ("permissions.not_granted", ["agent_delegation"], "permissions"),
        ("dependencies", [{"name": "n", "kind": "credential"}], "detail"),
        ("resource_envelope.limits.0.limit", True, "limit"),
        ("resource_envelope.limits.0.limit", 1e400, "limit"),
        ("resource_envelope.limits.0.reserve", 2, "reserve"),
        ("resource_envelope.limits.0.reserve", 1, None),
        ("resource_envelope.limits.0.reserve", None, "reserve"),
        ("resource_envelope.limits.0.id", "Hours", "id"),
        ("resource_envelope.limits.0.metering_source", " ", "metering_source"),
        ("scheduling", {}, None),
        ("scheduling", None, "scheduling"),
        ("scheduling", {"max_retries_per_gate": -1}, "max_retries_per_gate"),
        ("scheduling", {"handoff": {"fresh_context": True}}, "fresh_context"),
        ("scheduling", {"handoff": {"fresh_context": "long"}}, None),
        ("tasks.0.id", "T-", "id"),
        ("tasks.0.gate_intent.0.criterion", "AC-none", "criterion"),
        ("tasks.0.gate_intent.0.check", "", "check"),
        ("tasks.0.prerequisites", ["T-mark"], "prerequisites"),
        ("tasks.0.prerequisites", ["T-plain", "T-plain"], "prerequisites"),
        ("tasks.0.parallel_safe", "true", "parallel_safe"),
        ("tasks.0.parallel_safe", ..., None),
        ("contract_id", "0" * 64, "contract_id"),
        ("contract_id", None, "contract_id"),
        ("parent_contract_id", "0" * 64, "parent_contract_id"),
    ],
)
def test_one_field_at_a_time(path: str, value: Any, named: str | None) -> None:
    document = changed(path, value)
    if named is None:
        assert revision(document).id == canon.contract_id(document)
        return
    with pytest.raises(Invalid, match=named):
        revision(document)


def test_every_object_is_closed() -> None:
    def objects(value: Any, steps: tuple[Any, ...] = ()) -> Any:
        if isinstance(value, dict):
            yield steps
        pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, item in pairs:
            yield from objects(item, (*steps, key))

    found = list(objects(draft()))
    assert len(found) > 12
    for steps in found:
        document = draft()
        spot: Any = document
        for step in steps:
            spot = spot[step]
        spot["surplus"] = 1
        with pytest.raises(Invalid, match="surplus"):
            revision(document)


@pytest.mark.parametrize("value", [None, [], "text", 5, {}])
def test_what_is_no_contract_at_all(value: Any) -> None:
    with pytest.raises(Invalid):
        revision(value)


def test_the_generation_decides_about_the_marker() -> None:
    older = {**draft(), "schema": f"{BASE}/plan-contract/v6.json"}
    with pytest.raises(Invalid, match="parallel_safe"):
        revision(older)
    del older["tasks"][0]["parallel_safe"]
    made = revision(older)
    assert made.generation == "v6"
    assert not made.tasks["T-mark"].marked
    assert contract().tasks["T-mark"].marked
    assert not contract().tasks["T-plain"].marked


def test_a_circle_of_prerequisites_is_named() -> None:
    document = draft()
    document["tasks"][0]["prerequisites"] = ["T-plain"]
    revision(document)
    document["tasks"][1]["prerequisites"] = ["T-mark"]
    with pytest.raises(Invalid, match="T-mark, T-plain go in a circle"):
        revision(document)


def owned(accepted: list[str], check: str, control: str | None = None) -> list[str]:
    document = draft()
    document["acceptance"]["criteria"][0]["accepted_evidence"] = accepted
    document["tasks"][0]["gate_intent"][0]["check"] = check
    if control is not None:
        document["acceptance"]["criteria"][0]["control"] = {"kind": control, "rationale": "r"}
    return draft_problems(revision(document))[0]


def test_what_a_draft_must_heed_besides() -> None:
    assert owned(["observed"], "true") == []
    assert owned(["observed"], "/usr/bin/true -x") == []
    assert "make" in owned(["observed"], "make test")[0]
    assert owned(["asserted"], "read it") == []
    assert "neither" in owned(["imported"], "true")[0]
    assert owned(["imported"], "make", "regression") == []
    assert owned(["observed"], "make", "discrimination") == []
    assert owned(["observed"], "make", "exempt") != []


def test_a_criterion_nobody_owns_is_a_warning() -> None:
    document = draft()
    document["acceptance"]["criteria"].append({**document["acceptance"]["criteria"][0], "id": "AC-three"})
    assert draft_problems(revision(document)) == ([], ["no task owns AC-three"])


def test_a_draft_is_revision_one() -> None:
    document = {**draft(), "revision": 2, "parent_contract_id": "0" * 64}
    assert "revision" in draft_problems(revision(document))[0][0]


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("true", "true"),
        ("  /bin/true x", "true"),
        ("", ""),
        (["/bin/sh", "-c"], "sh"),
        (["a b"], "a b"),
        ("a;b", "a;b"),
    ],
)
def test_the_command_class(command: Any, word: str) -> None:
    assert head(command) == word


def links(count: int) -> dict[str, Any]:
    """contract.json and its amendments, by file name."""
    first = draft()
    first["contract_id"] = canon.contract_id(first)
    made = {"contract.json": first}
    for number in range(2, count + 1):
        parent = made[f"contracts/contract.r{number - 1}.json" if number > 2 else "contract.json"]
        body = {**copy.deepcopy(parent), "revision": number, "parent_contract_id": parent["contract_id"]}
        body["title"] = f"revision {number}"
        body["contract_id"] = canon.contract_id(body)
        made[f"contracts/contract.r{number}.json"] = body
    return made


def test_the_live_contract_is_the_last_of_a_whole_chain() -> None:
    made = chain(links(12))
    assert made.live.number == 12
    assert [item.number for item in made.revisions] == list(range(1, 13))
    assert made.cited(made.revisions[3].id) is made.revisions[3]
    assert made.cited("0" * 64) is None
    assert made.judge(None) is made.live


def restamped(document: dict[str, Any], **changes: Any) -> dict[str, Any]:
    made = {**document, **changes}
    return {**made, "contract_id": canon.contract_id(made)}


def test_a_broken_chain() -> None:
    r2 = "contracts/contract.r2.json"
    whole = links(2)
    for change, named in (
        ({r2: restamped(whole[r2], revision=3)}, "follows"),
        ({r2: restamped(whole[r2], parent_contract_id="0" * 64)}, "parent_contract_id"),
        ({r2: restamped({**whole[r2], "title": ""}, title=whole["contract.json"].get("title", ""))}, ""),
        ({r2: {**whole[r2], "title": "tampered"}}, "identity"),
        ({"contract.json": {**whole["contract.json"], "title": "tampered"}}, "identity"),
        ({"contracts/other.json": restamped(whole[r2], title="another")}, "two revisions"),
    ):
        documents = {**whole, **change}
        if named:
            with pytest.raises(Invalid, match=named):
                chain(documents)
        else:
            chain(documents)


def test_a_revision_must_change_something() -> None:
    first = links(1)["contract.json"]
    second = restamped(first, revision=2, parent_contract_id=first["contract_id"])
    with pytest.raises(Invalid, match="changes nothing"):
        chain({"contract.json": first, "contracts/contract.r2.json": second})


def test_a_plan_keeps_its_generation() -> None:
    first = links(1)["contract.json"]
    body = copy.deepcopy(first)
    del body["tasks"][0]["parallel_safe"]
    second = restamped(
        body, schema=f"{BASE}/plan-contract/v6.json", revision=2, parent_contract_id=first["contract_id"]
    )
    with pytest.raises(Invalid, match="generation"):
        chain({"contract.json": first, "contracts/contract.r2.json": second})


def test_what_is_no_revision_is_passed_over() -> None:
    odd = {"contracts/notes.json": {"x": 1}, "contracts/list.json": [], "contracts/true.json": {"revision": True}}
    assert chain({**links(2), **odd}).live.number == 2
    with pytest.raises(Invalid, match="there is no contract"):
        chain({})


@given(st.permutations(range(6)))
def test_the_order_of_the_files_does_not_matter(order: list[int]) -> None:
    items = list(links(6).items())
    assert chain(dict(items[index] for index in order)).live.number == 6
