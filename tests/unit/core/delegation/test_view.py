"""The timeline: rows, ages, roll-ups, results, what waits for a person, briefs and boundaries."""

from __future__ import annotations

import json
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.delegation import canon, store
from core.delegation.boundary import boundaries, receipt_id
from core.delegation.brief import Handover, compose, handover_command, results_folder, worktree_command
from core.delegation.gates import Gate, gate
from core.delegation.place import at
from core.delegation.reader import Record
from core.delegation.view import CLAIM, Results, RollUp, Timeline, timeline
from core.delegation.waiting import waiting
from core.inbox import InboxItem
from tests.unit.core.delegation.builders import (
    DIGEST,
    HELPER,
    Bench,
    chain,
    contract,
    delegation,
    draft,
    event,
    gate_run,
    progress,
    start,
)

NOON = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def record(events: list[dict[str, Any]], **changes: Any) -> Record:
    known = chain(**changes)
    made = [{**item, "contract_id": known.live.id} for item in events]
    return Record(at(Path("/nowhere/.dwp/plans/PLAN_unit_sample")), known, progress(made, known))


def drawn(events: list[dict[str, Any]], as_of: datetime = NOON, **changes: Any) -> Timeline:
    return timeline(record(events, **changes), as_of)


def at_time(text: str, item: dict[str, Any]) -> dict[str, Any]:
    return {**item, "ts": f"2026-01-01T{text}Z"}


def test_a_row_from_launch_to_end() -> None:
    (row,) = drawn(
        [
            start(1),
            at_time("10:00:00", delegation(2, kind="claude", profile="p", target="t")),
            at_time("10:01:30", delegation(3, state="completed", result_path="r", result_digest=DIGEST)),
        ]
    ).rows
    assert (row.state, row.shown, row.age_s) == ("completed", "completed", 90)
    assert (row.launched_seq, row.launched_at) == (2, "2026-01-01T10:00:00Z")
    assert (row.ended_seq, row.ended_at) == (3, "2026-01-01T10:01:30Z")
    assert (row.kind, row.profile, row.target, row.prompt_digest) == ("claude", "p", "t", DIGEST)
    assert (row.result_path, row.result_digest, row.result) == ("r", DIGEST, None)
    assert row.claim
    assert "no evidence" in CLAIM


def test_an_open_bar_grows_with_the_moment_alone() -> None:
    made = record([start(1), at_time("11:00:00", delegation(2))])
    ages = [timeline(made, NOON + timedelta(seconds=seconds)).rows[0].age_s for seconds in (0, 1, 3600)]
    assert ages == [3600, 3601, 7200]
    (row,) = timeline(made, NOON - timedelta(hours=2)).rows
    assert (row.age_s, row.findings) == (0, ("clock-backwards",))


def test_a_clock_that_ran_backwards() -> None:
    (row,) = drawn(
        [start(1), at_time("10:00:00", delegation(2)), at_time("09:00:00", delegation(3, state="failed"))]
    ).rows
    assert (row.age_s, row.findings) == (0, ("clock-backwards",))


@pytest.mark.parametrize(
    ("events", "shown"),
    [
        ([delegation(2)], "open"),
        ([delegation(2), gate_run(3)], "open-task-completed"),
        ([delegation(2), delegation(3, state="cancelled")], "cancelled"),
        ([delegation(2), delegation(3, state="failed")], "failed"),
        ([delegation(2, state="failed")], "disordered"),
        ([delegation(2), delegation(3)], "disordered"),
        ([delegation(2), delegation(3, state="failed"), delegation(4, state="completed")], "disordered"),
        ([delegation(2), delegation(3, state="failed", via="herdr")], "disordered"),
    ],
)
def test_how_a_row_is_shown(events: list[dict[str, Any]], shown: str) -> None:
    (row,) = drawn([start(1), *events]).rows
    assert row.shown == shown


def test_a_row_without_a_launch_has_no_age() -> None:
    (row,) = drawn([start(1), delegation(2, state="failed", kind="k")]).rows
    assert (row.launched_seq, row.age_s, row.kind, row.ended_seq) == (None, None, "k", 2)
    assert row.findings == ("delegation-no-launch",)


def test_the_first_end_and_the_latest_state() -> None:
    (row,) = drawn([start(1), delegation(2), delegation(3, state="failed"), delegation(4, state="completed")]).rows
    assert (row.state, row.ended_seq) == ("completed", 3)


def test_an_unlawful_launch_is_a_finding_but_no_disorder() -> None:
    (row,) = drawn([delegation(1)]).rows
    assert (row.shown, row.findings) == ("open", ("delegation-unlawful",))


def test_observers_come_after_the_end() -> None:
    events = [start(1), delegation(2), gate_run(3, exit_code=1), delegation(4, state="completed"), gate_run(5)]
    (row,) = drawn(events).rows
    assert (row.observed_by, row.claim) == ((5,), False)
    (row,) = drawn([start(1), gate_run(2, exit_code=1), delegation(3)]).rows
    assert row.observed_by == ()


def test_refusals_join_their_task() -> None:
    def refusal(seq: int, subject: str, stage: str, kind: str = "helper") -> dict[str, Any]:
        actor = HELPER if kind == "helper" else {"kind": kind, "identity": "x"}
        return event("refusal", seq, subject=subject, stage=stage, reason="r", actor=actor)

    made = drawn(
        [
            start(1),
            refusal(2, "delegate T-mark", "dispatch"),
            delegation(3),
            refusal(4, "T-mark", "gate", "agent"),
            refusal(5, "T-plain", "gate"),
            refusal(6, "delegate T-nope", "dispatch"),
            refusal(7, "task_start", "task_start"),
            refusal(8, "T-mark", "authorize"),
        ]
    )
    assert [(item.task, item.op, item.by_helper) for item in made.refusals] == [
        ("T-mark", "delegate", True),
        ("T-mark", "complete", False),
        ("T-plain", "complete", True),
        (None, "delegate", True),
        (None, "start", True),
        ("T-mark", "authorize", True),
    ]
    assert made.rows[0].refusals == (4, 8)


def test_roll_ups() -> None:
    made = drawn(
        [
            start(1),
            start(2, "T-plain"),
            at_time("10:00:00", delegation(3, "d1")),
            at_time("11:00:00", delegation(4, "d2")),
            delegation(5, "d3"),
            delegation(6, "d3", "completed"),
            delegation(7, "d4", "failed"),
            delegation(8, "d5", task="T-plain", worktree=None),
            delegation(9, "d5", "cancelled", task="T-plain"),
        ]
    )
    assert made.rolled() == RollUp(5, 2, 1, 0, 1, 1, 1, 7200)
    assert made.rolled("T-plain") == RollUp(1, cancelled=1)
    assert made.rolled("T-none") == RollUp()
    assert made.moments == ("2026-01-01T00:00:05Z", "2026-01-01T12:00:00Z")
    assert drawn([]).moments is None


KEYS = {
    "": "plan generation contract_id revision as_of until lock journal tasks delegations refusals gaps",
    "journal": "events head_seq torn damaged seq_gaps",
    "tasks": "id title parallel_safe status started_seq criteria blockers",
    "delegations": "delegation_id task state shown transport via kind profile target worktree read_only launched_seq "
    "launched_at ended_seq ended_at age_s prompt_digest result_path result_digest result refusals observed_by findings",
}


def test_the_document_has_the_keys_of_the_specification() -> None:
    made = drawn([start(1), delegation(2)]).as_json()
    for name, keys in KEYS.items():
        found = made[name] if name else made
        assert list(found[0] if isinstance(found, list) else found) == keys.split()
    assert list(made["tasks"][0]["criteria"][0]) == "criterion satisfied via_seq trust".split()  # noqa: SIM905
    json.dumps(made)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["launched", "completed", "failed", "cancelled"]))))
def test_any_order_of_events_can_be_drawn(pairs: list[tuple[str, str]]) -> None:
    events = [delegation(index + 2, name, state) for index, (name, state) in enumerate(pairs)]
    made = drawn([start(1), *events])
    assert [row.delegation_id for row in made.rows] == list(dict.fromkeys(name for name, _ in pairs))
    for row in made.rows:
        states = [state for name, state in pairs if name == row.delegation_id]
        lawful = states in (["launched"], ["launched", states[-1]]) and states.count("launched") == 1
        assert (row.shown == "disordered") != lawful
        assert row.state == states[-1]


# ---------------------------------------------------------------- results


def test_results_are_hashed_again_only_when_their_file_changed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    from core.delegation import place

    bench.begin()
    path = bench.plan / "r.txt"
    path.write_text("done")
    made = {"result_path": "r.txt", "result_digest": canon.digest(b"done")}
    results, hashed = Results(bench.place), []
    real = place.hash_result

    def counting(where: Any, name: str) -> str | None:
        hashed.append(name)
        return real(where, name)

    monkeypatch.setattr(place, "hash_result", counting)
    assert [results.state(made) for _ in range(3)] == ["matches"] * 3
    assert len(hashed) == 1
    path.write_text("other")
    assert [results.state(made) for _ in range(3)] == ["changed"] * 3
    assert len(hashed) == 2
    path.unlink()
    assert results.state(made) == "missing"
    assert results.state({"result_path": "r.txt"}) == "unhashed"
    assert results.state({}) == "none"


def test_a_result_in_the_repository_and_one_that_leads_out(bench: Bench) -> None:
    bench.begin()
    secret = bench.root / "secret"
    secret.write_text("s")
    (bench.plan / "out").symlink_to(secret)
    results = Results(bench.place)
    assert results.state({"result_path": "src/a", "result_digest": canon.digest(b"a = 1\n")}) == "matches"
    assert results.state({"result_path": "out", "result_digest": canon.digest(b"s")}) == "missing"


# ---------------------------------------------------------------- what waits


def kinds(found: list[InboxItem]) -> list[str]:
    return [item.kind for item in found]


def test_an_open_delegation_waits_once_it_is_old(bench: Bench) -> None:
    bench.begin()
    assert bench.launch().ok
    now = bench.clock.now()
    assert waiting(bench.record(), now + timedelta(minutes=29)) == []
    (item,) = waiting(bench.record(), now + timedelta(minutes=30))
    assert (item.kind, item.lane, item.who) == ("delegation-open", "unblock", "caller")
    assert "open for 30 m" in item.why
    assert waiting(bench.record(), now + timedelta(minutes=1), age=timedelta(minutes=1)) != []
    words = shlex.split(item.command)
    assert words[:2] == ["collab", "ledger"]
    assert json.loads(words[-1]) == {"delegation_id": "d1", "state": "failed"}


def test_finished_work_waits_for_its_gate(bench: Bench) -> None:
    bench.begin()
    bench.launch()
    bench.collect()
    (item,) = waiting(bench.record(), bench.clock.now())
    assert (item.kind, item.lane) == ("delegation-ungated", "decide")
    words = shlex.split(item.command)
    assert words[-6:] == ["--task", "T-mark", "--criterion", "AC-one", "--json", '"true"']
    gate(bench.place, bench.world, Gate("T-mark", "AC-one", ["false"]))
    assert waiting(bench.record(), bench.clock.now()) == []
    bench.launch("d2")
    bench.collect("d2")
    assert kinds(waiting(bench.record(), bench.clock.now())) == ["delegation-ungated"]
    gate(bench.place, bench.world, Gate("T-mark", "AC-one", ["true"]))
    assert waiting(bench.record(), bench.clock.now()) == []


@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_what_did_not_finish_waits_for_no_gate(bench: Bench, state: str) -> None:
    bench.begin()
    bench.launch()
    _ = bench.cancel() if state == "cancelled" else bench.collect(state=state)
    assert waiting(bench.record(), bench.clock.now()) == []


def test_a_new_attempt_forgets_the_claims_of_the_old(bench: Bench) -> None:
    bench.begin()
    bench.launch()
    bench.collect()
    store.start(bench.place, bench.world, "T-mark", {"kind": "agent", "identity": "other"})
    assert waiting(bench.record(), bench.clock.now()) == []


def test_a_changed_result_is_worth_knowing(bench: Bench) -> None:
    bench.begin()
    (bench.plan / "r.txt").write_text("done")
    bench.launch()
    bench.collect(result_path="r.txt")
    gate(bench.place, bench.world, Gate("T-mark", "AC-one", ["true"]))
    check = Results(bench.place).state
    assert waiting(bench.record(), bench.clock.now(), check) == []
    (bench.plan / "r.txt").write_text("other")
    (item,) = waiting(bench.record(), bench.clock.now(), check)
    assert (item.kind, item.lane) == ("delegation-result-changed", "know")
    (bench.plan / "r.txt").unlink()
    (item,) = waiting(bench.record(), bench.clock.now(), check)
    assert item.kind == "delegation-result-missing"
    assert waiting(bench.record(), bench.clock.now()) == []


def test_ids_change_when_the_thing_changes(bench: Bench) -> None:
    bench.begin()
    bench.launch()
    later = bench.clock.now() + timedelta(hours=1)
    (one,) = waiting(bench.record(), later)
    (same,) = waiting(bench.record(), later + timedelta(hours=1))
    assert one.id == same.id
    bench.collect()
    (other,) = waiting(bench.record(), later)
    assert other.id != one.id


# ---------------------------------------------------------------- briefs


def test_a_brief_quotes_the_criteria_and_names_the_worktree() -> None:
    made = compose(contract(), "T-mark", "d1", "/wt", "Keep it small.")
    assert "T-mark" in made.text
    assert "AC-one: one works" in made.text
    assert "true exits 0" in made.text
    assert "only below /wt" in made.text
    assert "results are data" in made.text
    assert made.text.endswith("Keep it small.\n")
    assert made.digest == canon.digest(made.text.encode())
    looking = compose(contract(), "T-mark", "d1", None)
    assert "must not change" in looking.text
    assert looking.digest != made.digest
    with pytest.raises(KeyError):
        compose(contract(), "T-nope", "d1", None)


def test_a_brief_takes_nothing_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", "s3cr3t")
    assert "s3cr3t" not in compose(contract(), "T-mark", "d1", "/wt").text


def test_how_it_is_handed_over() -> None:
    made = compose(contract(), "T-mark", "d1", "/w t")
    words = shlex.split(handover_command(Handover("headless", profile="fast", worktree="/w t", timeout=60), made))
    assert words[:4] == ["ak", "run", "claude", "@fast"]
    assert words[4:] == ["--cwd", "/w t", "--timeout", "60", "--output-format", "json", "--", made.text]
    assert "--ask" in shlex.split(handover_command(Handover("headless"), made))
    words = shlex.split(handover_command(Handover("interactive", target="m:1"), made))
    assert words == ["herdr-peers", "ask", "m:1", made.text]
    assert worktree_command("PLAN_a_b", "d1", "../wt") == "git worktree add ../wt -b dwp/PLAN_a_b/d1"
    assert results_folder("d1") == "analysis_results/delegations/d1/"


# ---------------------------------------------------------------- boundaries


def test_boundaries_and_what_they_rest_on(bench: Bench) -> None:
    bench.begin()
    bench.launch()
    (bench.plan / "r.txt").write_text("done")
    bench.collect(result_path="r.txt")
    bench.launch("d2")
    bench.collect("d2", "failed", note="it broke")
    bench.launch("d3")
    bench.cancel("d3")
    gate(bench.place, bench.world, Gate("T-mark", "AC-one", ["true"]))
    made = bench.record()
    live = made.chain.live
    found = boundaries(made.chain, [entry.event for entry in made.entries])
    assert [(item.kind, item.seq, item.delegation_id, item.state) for item in found] == [
        ("dispatch", 3, "d1", "launched"),
        ("handoff", 4, "d1", "completed"),
        ("dispatch", 5, "d2", "launched"),
        ("handoff", 6, "d2", "failed"),
        ("dispatch", 7, "d3", "launched"),
        ("acceptance", 9, None, "completed"),
    ]
    ids = [item.receipt_id for item in found]
    assert ids[0] == receipt_id(live.id, 3) == f"del-{live.id[:12]}-3"
    assert found[1].parents == (ids[0],)
    assert found[5].parents == (ids[1], ids[3])
    assert found[3].reason == "it broke"
    assert found[1].digests == {"result_digest": canon.digest(b"done")}
    assert found[5].evidence == {"AC-one": "gates/T-mark/009-true.log"}
    assert found[5].payload(live.plan, {"AC-one": "0"}) == {
        "plan": live.plan,
        "seq": 9,
        "task": "T-mark",
        "delegation_id": None,
        "state": "completed",
        "digests": {"AC-one": "0"},
    }


def test_an_acceptance_waits_for_everything_that_blocks() -> None:
    known = chain(invariants=[{"id": "INV-x", "statement": "s"}])
    events = [
        start(1),
        delegation(2),
        gate_run(3),
        event("observation", 4, statement="INV-x: pass", trust="asserted"),
        delegation(5, state="completed"),
        start(6),
        event("observation", 7, statement="INV-x: pass", trust="asserted"),
        gate_run(8),
    ]
    found = boundaries(known, [{**item, "contract_id": known.live.id} for item in events])
    assert [(item.kind, item.seq) for item in found] == [
        ("dispatch", 2),
        ("handoff", 5),
        ("acceptance", 3),
        ("acceptance", 8),
    ]
    assert len({item.receipt_id for item in found}) == 4


def test_an_empty_intent_is_accepted_at_its_start() -> None:
    tasks = draft()["tasks"]
    tasks[0]["gate_intent"] = []
    known = chain(tasks=tasks)
    found = boundaries(known, [{**start(1), "contract_id": known.live.id}])
    assert [(item.kind, item.seq) for item in found] == [("acceptance", 1)]
