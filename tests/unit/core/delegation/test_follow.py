"""Following a journal: new lines only, rolls, rewriting, and the same state as reading it all."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core import journal
from core.delegation import canon, store
from core.delegation.follow import News, PlanFollower
from core.delegation.materialize import Beginning
from core.delegation.view import timeline
from tests.unit.core.delegation.builders import Bench, fresh_bench


@pytest.fixture
def followed(bench: Bench) -> Any:
    bench.begin()
    follower = PlanFollower(bench.plan)
    assert follower.look().reread
    yield follower
    follower.close()


def append(bench: Bench, text: str = "s") -> None:
    payload = {"statement": text, "trust": "asserted"}
    assert store.append(bench.place, bench.world, store.Appending("observation", payload)).ok


def same(bench: Bench, follower: PlanFollower) -> bool:
    now = bench.clock.now()
    return timeline(follower, now).as_json() == timeline(bench.record(), now).as_json()


def test_only_what_is_new(bench: Bench, followed: PlanFollower) -> None:
    assert followed.look() == News()
    bench.launch()
    assert followed.look() == News(1, False, frozenset({"d1"}), frozenset({"T-mark"}))
    bench.collect()
    append(bench)
    assert followed.look() == News(2, False, frozenset({"d1"}), frozenset({"T-mark"}))
    assert not followed.look().any
    assert same(bench, followed)


def test_a_quiet_look_costs_one_stat(bench: Bench, followed: PlanFollower, monkeypatch: pytest.MonkeyPatch) -> None:
    from core.files import Root

    calls = []
    real = Root.signature
    monkeypatch.setattr(Root, "signature", lambda self, name: (calls.append(name), real(self, name))[1])
    for name in ("read", "names", "open_read", "pieces"):
        monkeypatch.setattr(Root, name, lambda *_: pytest.fail("a quiet look reads nothing"))
    for _ in range(3):
        followed.look()
    assert calls == ["journal.ndjson"] * 3


def test_an_unfinished_line_is_pending(bench: Bench, followed: PlanFollower) -> None:
    line = canon.line({**bench.events()[-1], "seq": 3})
    with bench.journal.open("ab") as log:
        log.write(line[:40])
    assert followed.look().events == 0
    assert followed.torn is not None
    assert (followed.torn.line, followed.torn.file) == (3, "journal.ndjson")
    with bench.journal.open("ab") as log:
        log.write(line[40:])
    assert followed.look().events == 1
    assert followed.torn is None


def test_a_bad_last_line_becomes_damage_when_others_follow(bench: Bench, followed: PlanFollower) -> None:
    with bench.journal.open("ab") as log:
        log.write(b"garbage\n")
    followed.look()
    assert followed.torn is not None
    assert followed.damaged == []
    assert same(bench, followed)
    with bench.journal.open("ab") as log:
        log.write(canon.line({**bench.record().entries[-1].event, "seq": 3}))
    followed.look()
    assert followed.torn is None
    assert [item.line for item in followed.damaged] == [3]
    assert same(bench, followed)


def test_a_mended_tail_is_read_anew(bench: Bench, followed: PlanFollower) -> None:
    with bench.journal.open("ab") as log:
        log.write(b"garbage\n")
    followed.look()
    append(bench)
    news = followed.look()
    assert news.reread
    assert news.finding is not None
    assert news.finding.code == "journal_rewritten"
    assert same(bench, followed)


def test_a_roll_is_no_rewriting(bench: Bench, followed: PlanFollower) -> None:
    bench.launch()
    followed.look()
    bench.collect()
    append(bench)
    assert store.roll(bench.place, bench.world).ok
    append(bench)
    news = followed.look()
    assert (news.events, news.reread, news.finding) == (3, False, None)
    assert same(bench, followed)
    assert store.roll(bench.place, bench.world).ok
    assert not followed.look().reread
    assert same(bench, followed)


def test_a_roll_in_steps_as_the_public_pack_does_it(bench: Bench, followed: PlanFollower) -> None:
    data = bench.journal.read_bytes()
    (bench.plan / "journal-archive-000001-000002.ndjson").write_bytes(data)
    assert not followed.look().any
    bench.journal.unlink()
    assert not followed.look().reread
    bench.journal.write_bytes(b"")
    assert not followed.look().reread
    append(bench)
    assert followed.look().events == 1
    assert same(bench, followed)


@pytest.mark.parametrize("change", ["edit", "replace", "cut", "remove"])
def test_a_changed_prefix_is_a_finding(bench: Bench, followed: PlanFollower, change: str) -> None:
    append(bench)
    followed.look()
    data = bench.journal.read_bytes()
    if change == "edit":
        bench.journal.write_bytes(data.replace(b'"agent"', b'"human"') + canon.line({**bench.events()[-1], "seq": 9}))
    elif change == "replace":
        bench.journal.unlink()
        bench.journal.write_bytes(data[: data.index(b"\n") + 1])
    elif change == "cut":
        bench.journal.write_bytes(data[: data.index(b"\n") + 1])
    else:
        bench.journal.unlink()
    news = followed.look()
    assert news.reread
    assert news.finding is not None
    assert same(bench, followed)


def test_a_plan_that_is_not_there_yet(bench: Bench) -> None:
    import json

    from core.delegation.materialize import materialize
    from tests.unit.core.delegation.builders import draft

    follower = PlanFollower(bench.plan)
    news = follower.look()
    assert news.finding is not None
    assert not follower.readable
    assert follower.problem is not None
    assert follower.problem.code == "contract_invalid"
    materialize(bench.place, bench.world, Beginning(json.dumps(draft()).encode()))
    assert follower.look().events == 1
    assert follower.readable
    follower.close()


def test_an_amended_plan_is_noticed_by_its_events(bench: Bench, followed: PlanFollower) -> None:
    import json

    first = json.loads((bench.plan / "contract.json").read_bytes())
    second = {**first, "revision": 2, "parent_contract_id": first["contract_id"], "title": "two"}
    second["contract_id"] = canon.contract_id(second)
    (bench.plan / "contracts").mkdir()
    (bench.plan / "contracts" / "contract.r2.json").write_text(json.dumps(second))
    assert followed.chain.live.number == 1
    append(bench)
    followed.look()
    assert followed.chain.live.number == 2
    assert same(bench, followed)


def test_refresh_reads_all_again(bench: Bench, followed: PlanFollower) -> None:
    (bench.plan / "contract.json").write_text("{nope")
    assert not followed.look().any
    assert followed.refresh().reread
    assert not followed.readable


def test_the_cost_of_an_event_does_not_grow(bench: Bench, followed: PlanFollower) -> None:
    """The work for one more event is counted, not timed: lines read and events added."""
    for number in range(60):
        assert bench.launch(f"a{number}").ok
    followed.look()
    read = []
    real = journal.decode
    bench.launch("last")
    journal.decode = lambda raw: (read.append(raw), real(raw))[1]  # type: ignore[assignment]
    try:
        news = followed.look()
    finally:
        journal.decode = real  # type: ignore[assignment]
    assert (news.events, len(read)) == (1, 1)
    assert news.delegations == {"last"}


@given(acts=st.lists(st.sampled_from(["launch", "collect", "append", "roll", "look", "torn"]), max_size=12))
@example(acts=["roll", "launch", "roll"])
@example(acts=["roll", "look", "launch", "roll"])
@settings(max_examples=25)
def test_following_is_reading(acts: list[str]) -> None:
    with fresh_bench() as bench:
        bench.begin()
        follower = PlanFollower(bench.plan)
        follower.look()
        for count, act in enumerate(acts):
            if act == "launch":
                bench.launch(f"d{count}")
            elif act == "collect":
                bench.collect(f"d{count - 1}")
            elif act == "append":
                append(bench)
            elif act == "roll" and bench.journal.read_bytes():
                store.roll(bench.place, bench.world)
            elif act == "torn":
                with bench.journal.open("ab") as log:
                    log.write(b'{"half')
                append(bench)
            elif act == "look":
                follower.look()
        follower.look()
        assert same(bench, follower)
        follower.close()
