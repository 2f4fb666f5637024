"""A plan followed for people: what is handed over, what is drawn again, what waits (docs/specs/delegation.md §8)."""

from __future__ import annotations

import json
import os
import random
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from core.delegation import canon, desk, reader, store, view
from core.delegation.desk import CHECKED_EVERY, PlanDesk
from core.delegation.summary import WHOLE_JOURNAL, summarise
from core.delegation.writer import Halt
from tests.unit.core.delegation.builders import Bench, delegation, draft


@pytest.fixture
def plan(bench: Bench) -> Bench:
    return bench.begin("T-mark")


def follow(bench: Bench, **more: object) -> PlanDesk:
    return PlanDesk(bench.plan, bench.clock, **more)  # type: ignore[arg-type]


def same(bench: Bench, shown: view.Timeline | None) -> bool:
    """Whether what was followed is what a reader who begins now would see; ages and results aside."""
    made = view.timeline(reader.read(bench.place), bench.clock.now()).as_json()
    assert shown is not None
    mine = shown.as_json()
    for one in (made, mine):
        for key in ("as_of", "lock"):
            del one[key]
        del one["journal"]["seq_gaps"]
        for row in one["delegations"]:
            del row["age_s"]
    return made == mine


def test_a_view_is_the_same_until_something_happens_and_never_changes_afterwards(plan: Bench) -> None:
    plan.launch("d1", worktree="../1")
    followed = follow(plan)
    first = followed.look()
    assert followed.look() is first
    assert first.timeline is not None
    before = first.timeline.as_json()
    plan.launch("d2", worktree="../2")
    second = followed.look()
    assert second is not first
    assert first.timeline.as_json() == before
    assert second.timeline is not None
    assert [row.delegation_id for row in second.timeline.rows] == ["d1", "d2"]
    followed.close()


@pytest.mark.parametrize("seed", range(6))
def test_following_comes_to_what_reading_comes_to(plan: Bench, seed: int) -> None:
    chance = random.Random(seed)
    followed = follow(plan)
    followed.look()
    for number in range(30):
        plan.clock.step(chance.choice((1, 60, 1200)))
        name = f"d{chance.randrange(8)}"
        match chance.randrange(6):
            case 0 | 1:
                plan.launch(name, worktree="../w")
            case 2:
                plan.collect(name, chance.choice(("completed", "failed")))
            case 3:
                plan.cancel(name)
            case 4:
                store.complete(plan.place, plan.world, "T-mark")
            case 5 if number > 20:
                with suppress(Halt):
                    store.roll(plan.place, plan.world)
        if chance.random() < 0.6:
            assert same(plan, followed.look().timeline)
    assert same(plan, followed.look().timeline)
    followed.close()


def test_an_event_costs_no_look_at_the_other_rows(plan: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [{**draft()["tasks"][0], "id": f"T-{name}"} for name in "abcdefgh"]
    bench = plan
    for path in (bench.plan / name for name in ("contract.json", "manifest.json", "journal.ndjson")):
        path.unlink()
    bench.begin(*(task["id"] for task in tasks), tasks=tasks)
    for task in tasks:
        for number in range(5):
            bench.launch(f"{task['id']}-{number}", task=task["id"], worktree="../w")
    followed = follow(bench)
    followed.look()
    drawn: list[str] = []
    row = view.row

    def counted(*words: object) -> view.Row:
        drawn.append(words[1].id)  # type: ignore[attr-defined]
        return row(*words)  # type: ignore[arg-type]

    monkeypatch.setattr(view, "row", counted)
    bench.cancel("T-a-3", task="T-a")
    followed.look()
    assert sorted(drawn) == [f"T-a-{number}" for number in range(5)]
    followed.close()


def test_a_task_that_is_complete_by_an_approval_shows_in_its_open_rows(plan: Bench) -> None:
    """What names no task is looked at for every task that has something open."""
    plan.launch("d1", worktree="../1")
    followed = follow(plan)
    followed.look()
    said = {"statement": "nothing of note"}
    store.append(plan.place, plan.world, store.Appending("observation", said, trust="asserted"))
    assert same(plan, followed.look().timeline)
    followed.close()


def test_failures_have_their_reason_and_code(plan: Bench) -> None:
    plan.launch("d1", worktree="../1")
    plan.collect("d1", "failed", note="out of memory")
    plan.launch("d1", worktree="../1")
    asked: list[tuple[str, str | None]] = []

    def code_of(reason: str, by: str | None, at: str) -> str:
        asked.append((reason, by))
        return f"code of {reason.split()[0]}"

    followed = follow(plan, code_of=code_of)
    shown = followed.look()
    assert shown.reasons == {4: "out of memory"}
    assert shown.codes == {4: "code of out", 5: "code of delegation_id"}
    assert asked == [("out of memory", "caller"), ("delegation_id d1 is already recorded", None)]
    followed.look()
    assert len(asked) == 2
    followed.close()


def test_what_cannot_be_read_is_a_finding_and_an_item_of_the_inbox(plan: Bench) -> None:
    followed = follow(plan)
    assert followed.look().inbox == []
    contract = (plan.plan / "contract.json").read_bytes()
    (plan.plan / "contract.json").write_text("{")
    shown = followed.look()
    assert (shown.timeline, [item.code for item in shown.findings]) == (None, ["contract_invalid"])
    (item,) = shown.inbox
    assert (item.kind, item.lane, item.path) == ("plan", "know", plan.plan)
    (plan.plan / "contract.json").write_bytes(contract)
    assert followed.look().findings == ()
    with plan.journal.open("ab") as file:
        file.write(b"garbage\n")
    plan.journal.write_bytes(b"garbage\n" + plan.journal.read_bytes())
    shown = followed.look()
    assert shown.timeline is not None
    assert {item.code for item in shown.findings} == {"journal_rewritten", "journal_damaged"}
    followed.close()


def test_a_folder_of_markdown_is_a_draft(bench: Bench) -> None:
    followed = follow(bench)
    shown = followed.look()
    assert (shown.timeline, shown.findings, shown.inbox) == (None, (), [])
    bench.begin()
    assert followed.look().timeline is not None
    followed.close()


def test_results_are_looked_at_in_turns_and_at_once_where_something_happened(plan: Bench) -> None:
    for number in range(6):
        plan.launch(f"d{number}", worktree="../w")
        (plan.plan / f"{number}.md").write_text("x")
        plan.collect(f"d{number}", result_path=f"{number}.md")
    followed = follow(plan, slice=2)
    followed.look()

    def changed() -> set[str]:
        followed.look()
        return {item.title[-2:] for item in followed.look().inbox if item.kind == "delegation-result-changed"}

    assert changed() == set()
    for number in range(6):
        (plan.plan / f"{number}.md").write_text("y")
    seen = [changed()]
    for _ in range(3):
        plan.clock.step(CHECKED_EVERY.total_seconds())
        seen.append(changed())
    assert [len(names) for names in seen] == [0, 2, 4, 6]
    followed.close()
    # Whoever asks once gets it all.
    once = follow(plan)
    assert len([item for item in once.look().inbox if item.kind == "delegation-result-changed"]) == 6
    once.close()


def test_the_age_from_which_an_open_one_waits_can_be_set(plan: Bench) -> None:
    plan.launch("d1", worktree="../1")
    followed = follow(plan, open_age=timedelta(minutes=5))
    plan.clock.step(299)
    assert followed.look().inbox == []
    plan.clock.step(16)
    assert [item.kind for item in followed.look().inbox] == ["delegation-open"]
    followed.close()


def test_as_it_was(plan: Bench) -> None:
    plan.launch("d1", worktree="../1")
    plan.clock.step(600)
    plan.collect("d1")
    shown, event = desk.was(plan.plan, 3, plan.clock.now())
    assert event is not None
    assert (event["seq"], [row.shown for row in shown.rows], shown.rows[0].age_s) == (3, ["open"], 0)
    shown, event = desk.was(plan.plan, 0, plan.clock.now())
    assert (shown.rows, event) == ((), None)


# One line of a plan.


def test_a_plan_in_one_line(bench: Bench) -> None:
    item = summarise(bench.plan)
    assert (item.kind, item.phase, item.health, item.title) == ("plan", "draft", "ok", "PLAN_unit_sample")
    bench.begin("T-mark", title="A sample")
    item = summarise(bench.plan)
    assert (item.phase, item.title, item.since) == ("active", "A sample", bench.clock.now())
    with bench.journal.open("ab") as file:
        file.write(b"garbage\n{}\n")
    item = summarise(bench.plan)
    assert (item.health, item.problem.code if item.problem else None) == ("damaged", "journal_damaged")
    (bench.plan / "contract.json").write_text("{")
    assert summarise(bench.plan).health == "unreadable"
    assert summarise(bench.plan / "none").health == "unreadable"


def test_a_plan_whose_tasks_are_all_complete(bench: Bench) -> None:
    tasks = [{**draft()["tasks"][0], "gate_intent": []}]
    criteria = [{**draft()["acceptance"]["criteria"][0], "accepted_evidence": ["asserted"]}]
    bench.begin(tasks=tasks, acceptance={"criteria": criteria})
    assert summarise(bench.plan).phase == "completed"


def test_of_a_long_journal_only_the_tail_is_read(plan: Bench) -> None:
    made = plan.record().chain.live
    seqs = range(3, 3 + WHOLE_JOURNAL // 300)
    known = {"contract_id": made.id, "note": "x" * 400}
    lines = [canon.line({**delegation(seq, f"d{seq}"), **known}) for seq in seqs]
    plan.journal.write_bytes(plan.journal.read_bytes() + b"".join(lines))
    item = summarise(plan.plan)
    assert (item.phase, item.health) == ("active", "ok")
    assert item.since is not None
    before = plan.journal.read_bytes()
    plan.journal.write_bytes(b"\x00" * 200 + before[200:])
    assert summarise(plan.plan).health == "ok"
    plan.journal.write_bytes(before + b"garbage\n" + lines[-1])
    assert summarise(plan.plan).health == "damaged"


def test_marks_tell_what_changed(plan: Bench) -> None:
    before = desk.marks(plan.plan)
    assert desk.marks(plan.plan) == before
    plan.launch("d1", worktree="../1")
    assert desk.marks(plan.plan) != before
    before = desk.marks(plan.plan)
    chain = plan.plan / "contracts"
    chain.mkdir()
    (chain / "contract.r2.json").write_text(json.dumps({}))
    assert desk.marks(plan.plan) != before
    assert desk.marks(Path(os.devnull) / "x") == ((), ())
