"""What may be appended, started, signed and completed, and by whom."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.delegation import store
from core.delegation.events import TYPES
from core.delegation.verify import verify
from core.delegation.writer import Halt, Hold
from tests.unit.core.delegation.builders import DIGEST, HELPER, Bench, draft, fresh_bench

SEEN: dict[str, Any] = {"statement": "seen", "trust": "asserted"}


def append(bench: Bench, kind: str = "observation", payload: Any = None, **more: Any) -> store.Outcome:
    hold = more.pop("hold", Hold())
    return store.append(bench.place, bench.world, store.Appending(kind, payload or SEEN, **more), hold)


@pytest.mark.parametrize(
    ("kind", "payload", "more", "code"),
    [
        ("gate_run", {}, {}, "gate_only"),
        ("delegation", {}, {}, "delegate_only"),
        ("unheard", {}, {}, "event_invalid"),
        ("observation", {"statement": "s"}, {}, "event_invalid"),
        ("observation", {"statement": "s", "trust": "seen"}, {}, "event_invalid"),
        ("observation", {"statement": "s"}, {"trust": "observed", "evidence_path": "README.md"}, "observed_declared"),
        ("observation", {"statement": "s", "trust": "observed"}, {}, "observed_declared"),
        ("observation", SEEN, {"actor": HELPER}, "actor_forbidden"),
        ("observation", SEEN, {"actor": {"kind": "host_adapter", "identity": "m"}}, "actor_forbidden"),
        ("observation", SEEN, {"actor": {"kind": "robot", "identity": "m"}}, "event_invalid"),
        ("observation", SEEN, {"actor": {"kind": "agent", "identity": ""}}, "event_invalid"),
        ("observation", SEEN, {"note": "n" * 501}, "event_invalid"),
        ("observation", {"statement": "s"}, {"trust": "imported", "evidence_path": "none"}, "evidence_missing"),
        ("observation", {"statement": "s", "trust": "imported", "evidence_path": "../.."}, {}, "evidence_missing"),
        ("observation", {"statement": "s", "trust": "imported", "evidence_path": "/etc/hosts"}, {}, "evidence_missing"),
        ("observation", {"statement": "s", "trust": "imported", "evidence_path": 5}, {}, "event_invalid"),
        ("observation", {"statement": "s", "trust": "imported"}, {}, "event_invalid"),
        ("task_start", {"task": "T-nope"}, {}, "task_unknown"),
        ("task_start", {}, {}, "event_invalid"),
        ("task_start", {"task": 5}, {}, "event_invalid"),
        ("refusal", {"subject": "s", "stage": "lunch", "reason": "r"}, {}, "event_invalid"),
    ],
)
def test_what_is_not_appended(bench: Bench, kind: str, payload: Any, more: dict[str, Any], code: str) -> None:
    bench.begin()
    before = bench.journal.read_bytes()
    with pytest.raises(Halt) as caught:
        store.append(bench.place, bench.world, store.Appending(kind, payload, **more))
    assert (caught.value.exit, caught.value.finding.code) == (1, code)
    assert bench.journal.read_bytes() == before
    assert not bench.locked()


def test_envelope_fields_of_the_payload_lose(bench: Bench) -> None:
    bench.begin()
    payload = {**SEEN, "seq": 99, "type": "gate_run", "plan": "x", "contract_id": "y", "ts": "z", "actor": HELPER}
    (event,) = append(bench, payload={**payload, "schema": "s"}).events
    assert (event["seq"], event["type"], event["plan"]) == (3, "observation", "PLAN_unit_sample")
    assert event["actor"] == store.CALLER


def test_flags_go_over_the_payload(bench: Bench) -> None:
    bench.begin()
    payload = {"statement": "s", "trust": "asserted", "note": "mine"}
    (event,) = append(bench, payload=payload, trust="imported", evidence_path="src/a").events
    assert (event["trust"], event["evidence_path"], event["note"]) == ("imported", "src/a", "mine")
    (event,) = append(bench, payload=payload, note="flag").events
    assert event["note"] == "flag"


@pytest.mark.parametrize("path", ["README.md", "src/a", "../../../src/a"])
def test_evidence_lies_in_the_plan_or_the_repository(bench: Bench, path: str) -> None:
    bench.begin()
    assert append(bench, payload={"statement": "s"}, trust="imported", evidence_path=path).ok
    absolute = str(bench.plan / "README.md")
    assert append(bench, payload={"statement": "s"}, trust="imported", evidence_path=absolute).ok


def test_the_one_append_of_a_host_adapter(bench: Bench) -> None:
    bench.begin()
    meter = {"kind": "host_adapter", "identity": "meter"}
    payload = {"source": "s", "value": 1, "unit": "h", "limit_id": "hours"}
    made = append(bench, "resource_sample", payload, trust="observed", evidence_path="README.md", actor=meter)
    assert made.events[0]["trust"] == "observed"
    with pytest.raises(Halt):
        append(bench, "resource_sample", payload, trust="observed", evidence_path="none", actor=meter)
    with pytest.raises(Halt):
        append(bench, "resource_sample", payload, trust="observed", evidence_path="README.md")


def test_an_equal_earlier_event_answers(bench: Bench) -> None:
    bench.begin()
    first = append(bench, idempotent=True, note="one")
    again = append(bench, idempotent=True, note="two")
    assert again.events == ()
    assert again.message == first.message
    assert append(bench).events
    assert append(bench, idempotent=True, actor={"kind": "agent", "identity": "other"}).events
    assert store.roll(bench.place, bench.world).ok
    assert append(bench, idempotent=True).events == ()


# ---------------------------------------------------------------- start, signoff, complete


def test_an_equal_start_answers_and_a_new_one_reopens(bench: Bench) -> None:
    bench.git()
    bench.begin()
    again = store.start(bench.place, bench.world, "T-mark")
    assert (again.events, again.message) == ((), "OK: task_start T-mark at seq 2")
    (bench.repo / "src" / "a").write_text("a = 2\n")
    changed = store.start(bench.place, bench.world, "T-mark")
    assert changed.events[0]["fingerprint"]["dirty"] == "M src/a"
    (bench.repo / "src" / "a").write_text("a = 1\n")
    assert store.start(bench.place, bench.world, "T-mark").message.endswith("seq 2")
    assert store.start(bench.place, bench.world, "T-mark", {"kind": "agent", "identity": "other"}).events


def unapproved(bench: Bench) -> None:
    bench.begin()
    lines = bench.journal.read_bytes().splitlines(keepends=True)
    bench.journal.write_bytes(b"".join(line for line in lines if b'"approval"' not in line))


def test_without_an_approval_nothing_starts(bench: Bench) -> None:
    unapproved(bench)
    for act in (
        lambda: store.start(bench.place, bench.world, "T-plain"),
        lambda: append(bench, "task_start", {"task": "T-plain"}),
    ):
        made = act()
        assert made.exit == 3
        (event,) = made.events
        assert (event["subject"], event["stage"], event["actor"]) == ("task_start", "task_start", HELPER)


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"criterion": "AC-none"}, "criterion_unknown"),
        ({"criterion": "AC-two"}, "evidence_not_accepted"),
        ({"authority": " "}, "authority_missing"),
        ({"authority": None}, "authority_missing"),
        ({"authority": "a" * 101}, "authority_missing"),
        ({"evidence_path": None}, "evidence_missing"),
        ({"evidence_path": "none"}, "evidence_missing"),
        ({"evidence_path": "../../../.."}, "evidence_missing"),
        ({"task": "T-plain"}, "criterion_unowned"),
        ({"task": "T-nope"}, "criterion_unowned"),
    ],
)
def test_what_is_no_signoff(bench: Bench, more: dict[str, Any], code: str) -> None:
    acceptance = draft()["acceptance"]
    acceptance["criteria"][0]["accepted_evidence"] = ["asserted"]
    bench.begin("T-mark", "T-plain", acceptance=acceptance)
    known = {"criterion": "AC-one", "evidence_path": "README.md", "authority": "Ada", **more}
    with pytest.raises(Halt) as caught:
        store.signoff(bench.place, bench.world, **known)
    assert (caught.value.exit, caught.value.finding.code) == (1, code)


def test_a_signoff_is_a_persons_word(bench: Bench) -> None:
    acceptance = draft()["acceptance"]
    acceptance["criteria"][0]["accepted_evidence"] = ["asserted"]
    bench.begin("T-plain", acceptance=acceptance)
    with pytest.raises(Halt, match="has not started"):
        store.signoff(bench.place, bench.world, "AC-one", "README.md", "Ada")
    store.start(bench.place, bench.world, "T-mark")
    (event,) = store.signoff(bench.place, bench.world, "AC-one", "README.md", " Ada ").events
    assert event["command"] == "signoff (asserted, not executed)"
    assert (event["cwd"], event["timeout_seconds"], event["exit_code"]) == (".", 1, 0)
    assert event["actor"] == {"kind": "human", "identity": "Ada"}
    assert store.complete(bench.place, bench.world, "T-mark").ok


def test_the_first_cause_of_a_refused_completion_wins(bench: Bench) -> None:
    bench.begin(invariants=[{"id": "INV-x", "statement": "s"}])
    for name in ("d2", "d1"):
        assert bench.launch(name).ok

    def reason() -> str:
        made = store.complete(bench.place, bench.world, "T-mark")
        assert made.exit == 4
        (event,) = made.events
        assert (event["subject"], event["stage"], event["actor"]) == ("T-mark", "gate", HELPER)
        return str(event["reason"])

    assert "still open: d1, d2" in reason()
    for name in ("d2", "d1"):
        bench.cancel(name)
    assert "INV-x" in reason()
    append(bench, payload={"statement": "INV-x: pass", "trust": "asserted"})
    assert "AC-one" in reason()


# ---------------------------------------------------------------- anything at all

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.sampled_from(["agentkit", "headless", "d1", "T-mark", "AC-one", "asserted", "completed", DIGEST, "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = (
    *("transport", "via", "kind", "profile", "target", "worktree", "prompt_digest", "delegation_id", "note", "state"),
    *("result_path", "result_digest", "task", "trust", "evidence_path", "statement", "seq", "ts", "actor", "schema"),
    *("type", "criterion", "exit_code"),
)


@given(
    verb=st.sampled_from(["launch", "collect", "cancel", *TYPES["v7"], "unheard"]),
    payload=st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=4), JSON, max_size=8),
    task=st.sampled_from(["T-mark", "T-plain", "", "\ud800", "T-\n"]),
)
@settings(max_examples=120)
def test_whatever_is_asked_the_record_stays_whole(verb: str, payload: dict[str, Any], task: str) -> None:
    """An answer, a refusal or an error that says why; never a malformed event, never a lock left behind."""
    with fresh_bench() as bench:
        bench.begin()
        bench.launch("d1")
        before = bench.journal.read_bytes()
        made = asked(bench, verb, payload, task)
        if isinstance(made, Halt):
            assert made.exit == 1
            assert made.finding.cause.strip()
            assert bench.journal.read_bytes() == before
        else:
            assert made.exit in (0, 3, 5)
            assert made.events
        assert bench.journal.read_bytes().startswith(before)
        assert "event-invalid" not in verify(bench.place).rules
        assert not bench.locked()


def asked(bench: Bench, verb: str, payload: dict[str, Any], task: str) -> store.Outcome | Halt:
    try:
        if verb == "launch":
            return store.launch(bench.place, bench.world, store.Delegating(task, payload))
        if verb in ("collect", "cancel"):
            return store.end(bench.place, bench.world, verb, store.Delegating(task, payload))
        return store.append(bench.place, bench.world, store.Appending(verb, payload))
    except Halt as exc:
        return exc
