"""Each precondition of a launch: broken alone, refused by its own words, recorded once, and nothing else changes."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.delegation import store
from core.delegation.rules import CHECKS
from core.delegation.writer import Halt, Hold
from tests.unit.core.delegation.builders import BASE, DIGEST, HELPER, Bench, draft


def v6(bench: Bench) -> None:
    made = draft(schema=f"{BASE}/plan-contract/v6.json")
    del made["tasks"][0]["parallel_safe"]
    bench.begin(**{key: made[key] for key in ("schema", "tasks")})


def ungranted(bench: Bench) -> None:
    bench.begin(permissions={"granted": [], "not_granted": ["agent_delegation"]})


def begun(bench: Bench) -> None:
    bench.begin()


def both(bench: Bench) -> None:
    bench.begin("T-mark", "T-plain")


def not_started(bench: Bench) -> None:
    bench.begin("T-plain")


def vacuous(bench: Bench) -> None:
    tasks = draft()["tasks"]
    tasks[0]["gate_intent"] = []
    bench.begin(tasks=tasks)


def taken(bench: Bench) -> None:
    bench.begin()
    assert bench.launch("d1").ok


def ended(bench: Bench) -> None:
    taken(bench)
    assert bench.collect("d1", "failed").ok


def disabled(bench: Bench) -> None:
    bench.begin()
    bench.registry({"addons": {"agentkit": {"enabled": False}, "herdr": {"enabled": True}}})


def gone(bench: Bench) -> None:
    bench.begin()
    (bench.bin / "ak").unlink()


def failing(bench: Bench) -> None:
    bench.begin()
    bench.program("ak", '{"interface": 1}', 3)


def newer(bench: Bench) -> None:
    bench.begin()
    bench.program("ak", '{"interface": 2}')


BROKEN: list[tuple[str, str, Callable[[Bench], None], dict[str, Any], str, str]] = [
    ("v7", "T-mark", v6, {}, "only v7 plans record delegation", "dwp-ledger/6.0"),
    ("grant", "T-mark", ungranted, {}, "does not grant agent_delegation", "dwp-ledger/7.0"),
    ("task", "T-nope", begun, {}, "unknown task", "dwp-ledger/7.0"),
    ("started", "T-mark", not_started, {}, "has not started", "dwp-ledger/7.0"),
    ("not-complete", "T-mark", vacuous, {}, "already complete", "dwp-ledger/7.0"),
    ("marker", "T-plain", both, {"worktree": "../wt"}, "not marked parallel_safe", "dwp-ledger/7.0"),
    ("tree", "T-plain", both, {"worktree": None}, "needs a git work tree", "dwp-ledger/7.0"),
    ("descriptor", "T-mark", begun, {"via": "teleport"}, "not a valid in-pack addon", "dwp-ledger/7.0"),
    ("transport", "T-mark", begun, {"transport": "interactive"}, "carries transport", "dwp-ledger/7.0"),
    ("ability", "T-mark", disabled, {}, r"is not enabled and detected.*sources: addon:herdr", "dwp-ledger/7.0"),
    ("ability", "T-mark", gone, {}, r"is not enabled and detected.*sources: none", "dwp-ledger/7.0"),
    ("ability", "T-mark", failing, {}, r"is not enabled and detected.*sources: none", "dwp-ledger/7.0"),
    ("ability", "T-mark", newer, {}, r"is not enabled and detected.*sources: none", "dwp-ledger/7.0"),
    ("new-id", "T-mark", taken, {}, "already recorded", "dwp-ledger/7.0"),
    ("new-id", "T-mark", ended, {}, "already recorded", "dwp-ledger/7.0"),
]
FOLLOW = {"v7": {"marker"}, "task": {"started", "marker", "well-formed"}, "descriptor": {"transport", "ability"}}
"""What cannot be met either when a condition is not: the others are judged on their own."""


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def asked(task: str, fields: dict[str, Any]) -> store.Delegating:
    known = {"transport": "headless", "via": "agentkit", "prompt_digest": DIGEST, "delegation_id": "d1"}
    return store.Delegating(task, {**known, **fields})


@pytest.mark.parametrize(
    ("check", "task", "breaks", "fields", "marker", "signed"),
    BROKEN,
    ids=[f"{row[0]}-{row[2].__name__}" for row in BROKEN],
)
def test_exactly_one_condition(
    bench: Bench, check: str, task: str, breaks: Any, fields: dict[str, Any], marker: str, signed: str
) -> None:
    breaks(bench)
    foreseen = store.dry_run(bench.place, bench.world, asked(task, fields))
    unmet = {item.check for item in foreseen.checks if not item.met}
    assert unmet - FOLLOW.get(check, set()) == {check}
    assert foreseen.exit == 5
    before, journal = contents(bench.repo), bench.journal.read_bytes()
    made = store.launch(bench.place, bench.world, asked(task, fields))
    assert made.exit == 5
    assert made.finding is not None
    assert made.finding.code == "delegation_refused"
    after = contents(bench.repo)
    name = str(bench.journal.relative_to(bench.repo))
    assert {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)} == {name}
    assert after[name].startswith(journal)
    (event,) = [json.loads(line) for line in after[name][len(journal) :].splitlines()]
    assert made.events == (event,)
    assert event["type"] == "refusal"
    assert (event["subject"], event["stage"]) == (f"delegate {task}", "dispatch")
    assert event["actor"] == {"kind": "helper", "identity": signed}
    assert made.message == f"delegation refused: {event['reason']}"
    assert re.search(marker, event["reason"])
    assert event["reason"] == next(item.cause for item in foreseen.checks if item.check == check)
    assert not bench.locked()


@pytest.mark.parametrize("row", BROKEN, ids=[f"{row[0]}-{row[2].__name__}" for row in BROKEN])
def test_a_refused_launch_blocks_nothing(bench: Bench, row: Any) -> None:
    """Whatever was refused, the task can still be done in sequence: started, gated, completed."""
    from core.delegation.gates import Gate, gate

    _, task, breaks, fields, _, _ = row
    breaks(bench)
    assert store.launch(bench.place, bench.world, asked(task, fields)).exit == 5
    for name, criterion in (("T-mark", "AC-one"), ("T-plain", "AC-two")):
        if bench.record().progress.open.get(name):
            assert bench.cancel(task=name).ok
        assert store.start(bench.place, bench.world, name).ok
        if bench.record().chain.live.intents(name):
            assert gate(bench.place, bench.world, Gate(name, criterion, ["true"])).exit == 0
        assert store.complete(bench.place, bench.world, name).ok


def test_every_condition_was_broken() -> None:
    assert [*dict.fromkeys(row[0] for row in BROKEN), "well-formed"] == list(CHECKS)


def test_all_conditions_met(bench: Bench) -> None:
    bench.begin()
    foreseen = store.dry_run(bench.place, bench.world, asked("T-mark", {}))
    assert [item.check for item in foreseen.checks] == list(CHECKS)
    assert all(item.met and item.cause is None for item in foreseen.checks)
    assert foreseen.exit == 0


def test_a_dry_run_leaves_no_trace(bench: Bench) -> None:
    bench.begin()
    before = contents(bench.repo)
    (bench.plan / ".ledger.lock").mkdir()
    assert store.dry_run(bench.place, bench.world, asked("T-mark", {})).exit == 0
    (bench.plan / ".ledger.lock").rmdir()
    assert contents(bench.repo) == before


def test_the_order_of_the_conditions(bench: Bench) -> None:
    """Everything is wrong at once; the first is what is said."""
    made = draft(schema=f"{BASE}/plan-contract/v6.json", permissions={"granted": [], "not_granted": []})
    del made["tasks"][0]["parallel_safe"]
    bench.begin("T-plain", **{key: made[key] for key in ("schema", "permissions", "tasks")})
    fields = {"via": "../x", "transport": "y", "worktree": 5, "delegation_id": ["z"], "prompt_digest": "w"}
    found = store.dry_run(bench.place, bench.world, asked("T-nope", fields))
    assert [item.check for item in found.checks if item.met] == ["not-complete", "tree", "new-id"]
    made_event = store.launch(bench.place, bench.world, asked("T-nope", fields)).events[-1]
    assert "only v7" in made_event["reason"]


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"prompt_digest": "x"}, "prompt_digest"),
        ({"prompt_digest": None}, "prompt_digest"),
        ({"delegation_id": "-x"}, "delegation_id"),
        ({"delegation_id": ["d"]}, "delegation_id"),
        ({"delegation_id": 0}, "delegation_id"),
        ({"kind": None}, "kind"),
        ({"worktree": 5}, "worktree"),
        ({"note": 5}, "note"),
        ({"note": 5, "worktree": None}, "note"),
        ({"note": "n" * 501}, "note"),
        ({"note": "read-only tree x"}, "note"),
    ],
)
def test_a_malformed_launch_is_an_error_and_recorded_nowhere(bench: Bench, fields: dict[str, Any], named: str) -> None:
    bench.begin()
    before = bench.journal.read_bytes()
    assert store.dry_run(bench.place, bench.world, asked("T-mark", fields)).exit == 1
    with pytest.raises(Halt, match=named) as caught:
        store.launch(bench.place, bench.world, asked("T-mark", fields))
    assert caught.value.exit == 1
    assert bench.journal.read_bytes() == before
    assert not bench.locked()


@pytest.mark.parametrize("given", [None, ""])
def test_an_id_of_our_own(bench: Bench, given: Any) -> None:
    bench.begin()
    made = store.launch(bench.place, bench.world, asked("T-mark", {"delegation_id": given}))
    assert re.fullmatch(r"d20260301T090000[0-9a-f]{6}", made.events[0]["delegation_id"])


def test_a_read_only_note_is_cut(bench: Bench) -> None:
    bench.git()
    bench.begin("T-plain")
    made = store.launch(bench.place, bench.world, asked("T-plain", {"worktree": None, "note": "n" * 500}))
    note = made.events[0]["note"]
    assert len(note) == 500
    assert note.startswith("read-only tree ")


@pytest.mark.parametrize("kind", ["helper", "host_adapter", "robot"])
def test_who_may_not_launch(bench: Bench, kind: str) -> None:
    bench.begin()
    one = asked("T-mark", {})
    two = store.Delegating(one.task, one.payload, actor={"kind": kind, "identity": "x"})
    with pytest.raises(Halt):
        store.launch(bench.place, bench.world, two)
    assert store.dry_run(bench.place, bench.world, two).exit == 1


def test_only_a_launch_detects(bench: Bench) -> None:
    from core.delegation.verify import verify

    bench.begin()
    bench.registry({"addons": {}})
    store.launch(bench.place, bench.world, asked("T-mark", {}))
    assert not bench.ran("ak")
    bench.registry({"addons": {"agentkit": {"enabled": True}}})
    store.launch(bench.place, bench.world, asked("T-nope", {}))
    assert not bench.ran("ak")
    assert bench.launch().ok
    assert bench.ran("ak")
    (bench.root / "ak.log").unlink()
    store.observe(bench.place)
    verify(bench.place)
    bench.collect()
    bench.launch("d2")
    (bench.root / "ak.log").unlink()
    bench.cancel("d2")
    assert not bench.ran("ak")
    assert not bench.ran("herdr-peers")


def test_detection_happens_before_the_lock(bench: Bench) -> None:
    bench.begin()
    lock = bench.plan / ".ledger.lock"
    script = f"#!/bin/sh\n[ -e '{lock}' ] && echo locked >> '{bench.root}/seen'\necho '{{\"interface\": 1}}'\n"
    (bench.bin / "ak").write_text(script)
    assert bench.launch().ok
    assert not (bench.root / "seen").exists()


def test_a_commit_is_bound_to_its_preview(bench: Bench) -> None:
    bench.begin()
    head = bench.record().head_seq
    store.append(bench.place, bench.world, store.Appending("observation", {"statement": "s", "trust": "asserted"}))
    before = bench.journal.read_bytes()
    with pytest.raises(Halt) as caught:
        store.launch(bench.place, bench.world, asked("T-mark", {}), Hold(expect=head))
    assert (caught.value.exit, caught.value.finding.code) == (2, "head_moved")
    assert bench.journal.read_bytes() == before
    assert store.launch(bench.place, bench.world, asked("T-mark", {}), Hold(expect=head + 1)).ok


# ---------------------------------------------------------------- how it ends


def test_a_read_only_delegate_must_leave_the_tree_alone(bench: Bench) -> None:
    bench.git()
    bench.begin("T-plain")
    assert bench.launch("d1", "T-plain", worktree=None).ok
    (bench.repo / "src" / "b").write_text("b = 2\n")
    made = bench.collect("d1", task="T-plain", result_path="src/b")
    assert made.exit == 5
    failed, refusal = made.events
    assert failed["state"] == "failed"
    assert "result_path" not in failed
    assert refusal["actor"] == HELPER
    assert "working tree changed" in refusal["reason"]
    assert bench.collect("d1", task="T-plain").exit == 5


def test_both_lines_of_a_changed_tree_are_one_write(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    from core.files import set_fault

    bench.git()
    bench.begin("T-plain")
    assert bench.launch("d1", "T-plain", worktree=None).ok
    (bench.repo / "src" / "b").write_text("b = 2\n")
    writes = []
    set_fault(lambda operation, name: writes.append(name) if operation == "write" else None)
    try:
        assert bench.collect("d1", task="T-plain").exit == 5
    finally:
        set_fault(None)
    assert writes.count("journal.ndjson") == 1


@pytest.mark.parametrize(
    ("path", "where", "found"),
    [
        ("r.txt", "plan", True),
        ("src/a", "repo", True),
        ("src", "repo", False),
        ("gone", "plan", False),
        ("out.txt", "link", False),
        ("in.txt", "inner link", True),
    ],
)
def test_the_digest_is_computed_not_believed(bench: Bench, path: str, where: str, found: bool) -> None:
    bench.begin()
    (bench.root / "secret").write_text("s")
    (bench.plan / "r.txt").write_text("r")
    (bench.plan / "out.txt").symlink_to(bench.root / "secret")
    (bench.plan / "in.txt").symlink_to(bench.plan / "r.txt")
    assert bench.launch().ok
    made = bench.collect(result_path=path, result_digest="sha256:" + "0" * 64)
    assert ("result_digest" in made.events[0]) == found, where
    assert made.events[0].get("result_digest") != "sha256:" + "0" * 64


@pytest.mark.parametrize("path", ["/etc/hosts", "../x", "a/../b", "", 5, ["r"], "a\0b"])
def test_a_bad_result_path_leaves_it_launched(bench: Bench, path: Any) -> None:
    bench.begin()
    assert bench.launch().ok
    with pytest.raises(Halt):
        bench.collect(result_path=path)
    assert bench.record().progress.delegations["d1"].open
    assert bench.collect(state="failed").ok


def test_the_end_copies_what_it_may_and_no_more(bench: Bench) -> None:
    bench.begin()
    assert bench.launch(kind="claude", profile="p", target="t", worktree="../wt", note="hello").ok
    made = bench.collect(note="bye").events[0]
    assert {key: made.get(key) for key in ("kind", "profile", "target", "worktree", "note")} == {
        "kind": "claude",
        "profile": "p",
        "target": "t",
        "worktree": "../wt",
        "note": "bye",
    }
    assert "prompt_digest" not in made


def test_collect_asks_for_nothing_again(bench: Bench) -> None:
    """After a disable, a completed task and a roll."""
    from core.delegation.gates import Gate, gate

    bench.begin()
    assert bench.launch().ok
    bench.registry({})
    assert gate(bench.place, bench.world, Gate("T-mark", "AC-one", ["true"])).exit == 0
    assert store.roll(bench.place, bench.world).ok
    assert bench.collect().ok


def test_git_of_the_caller_is_not_git_of_the_plan(bench: Bench) -> None:
    """A hook of another repository runs us: its variables say nothing about this one."""
    bench.git()
    other = bench.root / "other"
    other.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=other, env=bench.environ, check=True)
    bench.begin("T-plain")
    one = bench.launch("d1", "T-plain", worktree=None).events[0]["note"]
    hooked = {**bench.environ, "GIT_DIR": str(other / ".git"), "GIT_WORK_TREE": str(other)}
    world = store.World(bench.clock, hooked, lambda: "000000")
    payload = {**asked("T-plain", {}).payload, "delegation_id": "d2", "worktree": None}
    two = store.launch(bench.place, world, store.Delegating("T-plain", payload)).events[0]["note"]
    assert one == two != "read-only tree none"


@pytest.mark.parametrize("endless", [float("inf"), [float("-inf")], {"a": 1e999}])
def test_a_refusal_of_what_has_no_canonical_form(bench: Bench, endless: Any) -> None:
    bench.begin()
    made = bench.launch("d1", task="T-plain", note=endless)
    assert made.exit == 5
    assert made.finding is not None
    assert made.finding.next_command is None
    assert [event["type"] for event in made.events] == ["refusal"]
    bench.journal.write_bytes(bench.journal.read_bytes() + b'{"type":"delegation","delegation_id":1e999,"seq":9}\n')
    assert len(store.observe(bench.place)[0]) == 1
