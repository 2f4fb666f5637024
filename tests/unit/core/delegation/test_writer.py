"""The guarded writer: mending, damage, collisions, and what a person, an agent and an adapter may append."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.delegation import canon, reader, store
from core.delegation.materialize import Beginning, markdown_digest, materialize
from core.delegation.rules import Draft
from core.delegation.writer import Halt, Hold, writing
from core.files import set_fault
from tests.unit.core.delegation.builders import BASE, HELPER, Bench, draft, fresh_bench, gate_run

SEEN: dict[str, Any] = {"statement": "seen", "trust": "asserted"}


def append(bench: Bench, kind: str = "observation", payload: Any = None, **more: Any) -> store.Outcome:
    hold = more.pop("hold", Hold())
    return store.append(bench.place, bench.world, store.Appending(kind, payload or SEEN, **more), hold)


def tail(bench: Bench, data: bytes) -> None:
    with bench.journal.open("ab") as log:
        log.write(data)


# ---------------------------------------------------------------- mending


@pytest.mark.parametrize(
    "torn",
    [b'{"schema": "https', b"garbage\n", b"[]\n", b"5", b'"text"\n', b"\xff\xfe\n", b"\xff", b'{"a":NaN}\n', b"{}}"],
)
@pytest.mark.parametrize("blank", [b"", b"\n \n"])
def test_a_bad_last_line_is_cut_and_said(bench: Bench, torn: bytes, blank: bytes) -> None:
    bench.begin()
    whole = bench.journal.read_bytes()
    tail(bench, torn + blank)
    made = append(bench)
    repair, event = made.events
    assert bench.journal.read_bytes() == whole + canon.line(repair) + canon.line(event)
    assert repair["type"] == "journal_repair"
    assert repair["byte_offset"] == len(whole)
    assert repair["actor"] == HELPER
    assert (repair["seq"], event["seq"]) == (3, 4)


def test_a_good_last_line_gets_its_newline_back(bench: Bench) -> None:
    bench.begin()
    whole = bench.journal.read_bytes()
    bench.journal.write_bytes(whole[:-1])
    repair, event = append(bench).events
    assert bench.journal.read_bytes() == whole + canon.line(repair) + canon.line(event)
    assert repair["byte_offset"] == len(whole) - 1


@pytest.mark.parametrize("blank", [b"\n", b"\n\n  \n", b"   ", b"\t"])
def test_blank_lines_are_skipped(bench: Bench, blank: bytes) -> None:
    bench.begin()
    tail(bench, blank)
    made = append(bench)
    assert made.events[-1]["seq"] == len(made.events) + 2
    assert [line for line in bench.journal.read_bytes().split(b"\n") if line.strip()][2:] == [
        canon.line(event).rstrip() for event in made.events
    ]


def test_a_satisfied_completion_still_mends(bench: Bench) -> None:
    bench.begin(tasks=[{**draft()["tasks"][0], "gate_intent": []}])
    tail(bench, b"{")
    made = store.complete(bench.place, bench.world, "T-mark")
    assert made.ok
    assert [event["type"] for event in made.events] == ["journal_repair"]


def test_what_was_mended_is_told_with_an_error(bench: Bench) -> None:
    bench.begin()
    tail(bench, b"{")
    with pytest.raises(Halt) as caught:
        store.start(bench.place, bench.world, "T-nope")
    assert [event["type"] for event in caught.value.events] == ["journal_repair"]


@pytest.mark.parametrize("bad", [b"garbage\n", b"\xff\n", b"[1]\n"])
@pytest.mark.parametrize("then", [b"", b"{torn", b"garbage\n"])
def test_damage_elsewhere_is_never_touched(bench: Bench, bad: bytes, then: bytes) -> None:
    bench.begin()
    first, second = bench.journal.read_bytes().splitlines(keepends=True)
    bench.journal.write_bytes(first + bad + second + then)
    before = bench.journal.read_bytes()
    for act in (
        lambda: append(bench),
        lambda: store.complete(bench.place, bench.world, "T-mark"),
        bench.launch,
        lambda: store.roll(bench.place, bench.world),
        lambda: append(bench, hold=Hold(force=True)),
    ):
        with pytest.raises(Halt, match="line 2") as caught:
            act()
        assert (caught.value.exit, caught.value.finding.code) == (1, "journal_damaged")
    assert bench.journal.read_bytes() == before
    assert not bench.locked()
    assert store.observe(bench.place)[0] == []


def test_two_bad_lines_at_the_end_are_damage(bench: Bench) -> None:
    bench.begin()
    tail(bench, b"garbage\n{torn")
    with pytest.raises(Halt, match="line 3"):
        append(bench)


def test_a_damaged_archive(bench: Bench) -> None:
    bench.begin()
    assert store.roll(bench.place, bench.world).ok
    (archive,) = bench.plan.glob("journal-archive-*")
    archive.write_bytes(archive.read_bytes() + b"{torn")
    with pytest.raises(Halt, match="archive"):
        append(bench)
    archive.unlink()
    archive.symlink_to(bench.plan / "README.md")
    with pytest.raises(Halt, match="archive"):
        append(bench)
    assert not bench.locked()


@given(cut=st.integers(1, 1400))
@settings(max_examples=40)
def test_wherever_it_is_torn_every_whole_event_stays(cut: int) -> None:
    with fresh_bench() as bench:
        bench.begin()
        append(bench)
        whole = bench.journal.read_bytes()
        kept = whole[: max(0, len(whole) - cut)]
        bench.journal.write_bytes(kept)
        good = [line for line in kept.split(b"\n") if line and line + b"\n" in whole]
        made = append(bench)
        after = bench.journal.read_bytes().splitlines()
        assert after[: len(good)] == good
        assert len(after) == len(good) + len(made.events)
        assert [json.loads(line)["seq"] for line in after] == list(range(1, len(after) + 1))


# ---------------------------------------------------------------- position


def test_a_collision_writes_nothing(bench: Bench) -> None:
    bench.begin()

    def collide() -> None:
        with writing(bench.place, bench.world) as writer:
            tail(bench, b"\n")
            writer.commit(Draft("observation", SEEN, store.CALLER))

    with pytest.raises(Halt) as caught:
        collide()
    assert (caught.value.exit, caught.value.finding.code) == (2, "journal_collision")
    assert len(bench.journal.read_bytes().split()) == 2
    assert not bench.locked()


def test_a_seq_is_never_given_twice(bench: Bench) -> None:
    bench.begin()
    assert append(bench).events[0]["seq"] == 3
    assert store.roll(bench.place, bench.world).ok
    assert append(bench).events[0]["seq"] == 4
    (bench.plan / "journal-archive-000005-000090.ndjson").write_text("")
    assert append(bench).events[0]["seq"] == 91


def test_archives_are_named_by_what_they_hold(bench: Bench) -> None:
    bench.begin()
    first = bench.journal.read_bytes()
    made = store.roll(bench.place, bench.world)
    assert made.message.endswith("journal-archive-000001-000002.ndjson")
    assert (bench.plan / "journal-archive-000001-000002.ndjson").read_bytes() == first
    assert bench.journal.read_bytes() == b""
    append(bench)
    assert store.roll(bench.place, bench.world).message.endswith("journal-archive-000003-000003.ndjson")
    with pytest.raises(Halt, match="no event"):
        store.roll(bench.place, bench.world)
    assert bench.record().progress.events == 3


def test_an_archive_is_never_overwritten(bench: Bench) -> None:
    bench.begin()
    (bench.plan / "journal-archive-000001-000002.ndjson").write_text("")
    before = bench.journal.read_bytes()
    with pytest.raises(Halt, match="exists"):
        store.roll(bench.place, bench.world)
    assert bench.journal.read_bytes() == before


def test_one_event_is_one_write(bench: Bench) -> None:
    bench.begin()
    acts = []
    set_fault(lambda operation, name: acts.append((operation, name)))
    try:
        assert append(bench).ok
    finally:
        set_fault(None)
    assert [act for act in acts if act[1] == "journal.ndjson"] == [
        ("write", "journal.ndjson"),
        ("fsync", "journal.ndjson"),
    ]


def test_a_line_that_no_reader_would_take(bench: Bench) -> None:
    bench.begin()
    before = bench.journal.read_bytes()
    with pytest.raises(Halt) as caught:
        append(bench, payload={"statement": "x" * 1024 * 1024, "trust": "asserted"})
    assert caught.value.finding.code == "line_too_long"
    assert bench.journal.read_bytes() == before


# ---------------------------------------------------------------- materialize


def begin(bench: Bench, document: Any = None, **more: Any) -> store.Outcome:
    data = document if isinstance(document, bytes) else json.dumps(document or draft()).encode()
    return materialize(bench.place, bench.world, Beginning(data, **more))


def test_manifest_contract_approval(bench: Bench) -> None:
    made = begin(bench, {**draft(), "contract_id": "anything"}, authority="Ada", note="n")
    identity = canon.contract_id(draft())
    assert made.message == f"OK: materialized PLAN_unit_sample contract {identity[:12]}"
    assert json.loads((bench.plan / "manifest.json").read_bytes()) == {
        "schema": f"{BASE}/plan-manifest/v7.json",
        "plan": "PLAN_unit_sample",
        "contract": {"id": identity, "path": "contract.json"},
    }
    assert json.loads((bench.plan / "contract.json").read_bytes()) == {**draft(), "contract_id": identity}
    (event,) = bench.events()
    assert (event["seq"], event["type"], event["actor"]) == (1, "approval", {"kind": "human", "identity": "Ada"})
    assert (event["mechanism"], event["note"]) == ("plan_authorship", "n")
    assert begin(bench, authority="Ada").events == ()


def test_what_begins_no_plan(bench: Bench) -> None:
    cases: list[tuple[Any, dict[str, Any], str]] = [
        (b"{nope", {}, "contract_invalid"),
        (b"[]", {}, "contract_invalid"),
        ({**draft(), "surplus": 1}, {}, "contract_invalid"),
        ({**draft(), "plan": "PLAN_other_name"}, {}, "contract_invalid"),
        ({**draft(), "revision": 2, "parent_contract_id": "0" * 64}, {}, "contract_invalid"),
        (None, {"mechanism": "telepathy"}, "mechanism_unknown"),
        (None, {"authority": " "}, "authority_missing"),
        (None, {"authority": "a" * 101}, "authority_missing"),
        (None, {"note": "n" * 501}, "event_invalid"),
    ]
    for document, more, code in cases:
        with pytest.raises(Halt) as caught:
            begin(bench, document, **more)
        assert (caught.value.exit, caught.value.finding.code) == (1, code)
    (bench.plan / "README.md").unlink()
    (bench.plan / "folder.md").mkdir()
    with pytest.raises(Halt, match="no markdown"):
        begin(bench)
    assert sorted(path.name for path in bench.plan.iterdir()) == ["folder.md"]


def test_what_is_there_already_must_belong(bench: Bench) -> None:
    begin(bench)
    for change in ({"title": "x"}, {"created_at": "2026-01-02T00:00:00Z"}):
        with pytest.raises(Halt, match="another"):
            begin(bench, draft(**change))
    (bench.plan / "contracts").mkdir()
    with pytest.raises(Halt, match="amendments"):
        begin(bench)
    (bench.plan / "contracts").rmdir()
    for name in ("manifest.json", "contract.json"):
        kept = (bench.plan / name).read_bytes()
        (bench.plan / name).write_text("{nope")
        with pytest.raises(Halt, match=name):
            begin(bench)
        (bench.plan / name).write_bytes(kept.replace(b"PLAN_unit_sample", b"PLAN_unit_simple"))
        with pytest.raises(Halt, match="another"):
            begin(bench)
        (bench.plan / name).write_bytes(kept)
    assert begin(bench).ok


def test_an_interrupted_beginning_goes_on(bench: Bench) -> None:
    begin(bench)
    whole = {path.name: path.read_bytes() for path in bench.plan.iterdir() if path.is_file()}
    for missing in (["journal.ndjson"], ["contract.json", "journal.ndjson"], ["contract.json"]):
        for name in missing:
            (bench.plan / name).unlink()
        assert begin(bench).ok
        assert {path.name: path.read_bytes() for path in bench.plan.iterdir() if path.is_file()} == whole


def test_the_digest_is_over_all_markdown_in_order(bench: Bench) -> None:
    import hashlib

    for name in ("z.md", "a.md", "Z.md", ".hidden.md", "é.md"):
        (bench.plan / name).write_text(name)
    (bench.plan / "deep").mkdir()
    (bench.plan / "deep" / "x.md").write_text("no")
    (bench.plan / "x.txt").write_text("no")
    names = [".hidden.md", "README.md", "Z.md", "a.md", "z.md", "é.md"]
    data = b"".join((bench.plan / name).read_bytes() for name in names)
    assert markdown_digest(bench.place) == hashlib.sha256(data).hexdigest()
    (bench.plan / "link.md").symlink_to(bench.repo / "src" / "a")
    with pytest.raises(Halt, match=r"link\.md"):
        markdown_digest(bench.place)


def test_a_warning_does_not_stop_a_beginning(bench: Bench) -> None:
    acceptance = draft()["acceptance"]
    acceptance["criteria"].append({**acceptance["criteria"][0], "id": "AC-three"})
    assert begin(bench, draft(acceptance=acceptance)).warnings == ("no task owns AC-three",)


# ---------------------------------------------------------------- contracts on disk


@pytest.mark.parametrize(
    "break_it",
    [
        lambda plan: (plan / "contract.json").unlink(),
        lambda plan: (plan / "contract.json").write_text("{nope"),
        lambda plan: (plan / "contract.json").write_text("[]"),
        lambda plan: (plan / "contract.json").write_text(
            (plan / "contract.json").read_text().replace("Marked", "Tampered")
        ),
        lambda plan: plan.rename(plan.parent / "PLAN_other_name"),
    ],
)
def test_an_invalid_contract_stops_every_verb(bench: Bench, break_it: Any) -> None:
    bench.begin()
    break_it(bench.plan)
    if not bench.plan.exists():
        bench.plan = bench.plan.parent / "PLAN_other_name"
    before = bench.journal.read_bytes()
    for act in (
        lambda: append(bench),
        bench.launch,
        lambda: store.complete(bench.place, bench.world, "T-mark"),
        lambda: store.observe(bench.place),
        lambda: store.dry_run(bench.place, bench.world, store.Delegating("T-mark", {})),
    ):
        with pytest.raises(Halt) as caught:
            act()
        assert (caught.value.exit, caught.value.finding.code) == (1, "contract_invalid")
    assert bench.journal.read_bytes() == before


def test_an_amended_plan_lives_by_its_last_revision(bench: Bench) -> None:
    bench.begin(permissions={"granted": [], "not_granted": ["agent_delegation"]})
    first = json.loads((bench.plan / "contract.json").read_bytes())
    second = {**first, "revision": 2, "parent_contract_id": first["contract_id"]}
    second["permissions"] = {"granted": ["agent_delegation"], "not_granted": []}
    second["contract_id"] = canon.contract_id(second)
    (bench.plan / "contracts").mkdir()
    (bench.plan / "contracts" / ".contract.r3.json.pending").write_text("{")
    (bench.plan / "contracts" / ".x.json").write_text("{")
    assert bench.launch().exit == 5
    (bench.plan / "contracts" / "contract.r2.json").write_text(json.dumps(second))
    made = bench.launch()
    assert made.ok
    assert made.events[0]["contract_id"] == second["contract_id"]
    assert store.start(bench.place, bench.world, "T-plain").exit == 3


def test_reading_what_it_was_after_an_event(bench: Bench) -> None:
    bench.begin()
    append(bench)
    assert reader.read(bench.place, 2).progress.events == 2
    assert reader.read(bench.place, 0).progress.events == 0
    assert reader.read(bench.place, 2).head_seq == 3


def test_a_roll_between_two_reads_is_seen_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The archives are listed, then the journal is rolled, then it is read: nothing is lost or doubled."""
    from core import journal

    bench.begin()
    real, rolled = journal.read, []

    def read(root: Any, name: str) -> Any:
        if name == "journal.ndjson" and not rolled:
            rolled.append(True)
            bench.journal.rename(bench.plan / "journal-archive-000001-000002.ndjson")
        return real(root, name)

    monkeypatch.setattr(journal, "read", read)
    assert bench.record().progress.events == 2


def test_forged_evidence_in_the_journal_counts_only_when_well_formed(bench: Bench) -> None:
    bench.begin()
    live = bench.record().chain.live
    forged = {**gate_run(3), "contract_id": live.id, "actor": {"kind": "agent", "identity": "x"}}
    tail(bench, canon.line(forged))
    assert store.complete(bench.place, bench.world, "T-mark").exit == 4
