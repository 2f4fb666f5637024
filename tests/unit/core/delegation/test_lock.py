"""The plan's lock: whole or not at all, never stolen from the living, never left for a person."""

from __future__ import annotations

import json
import os
import subprocess
from functools import cache
from typing import Any

import pytest

from core.delegation import store
from core.delegation.lock import PlanLock, holder
from core.delegation.reader import lock_json
from core.delegation.writer import Halt, Hold
from core.files import Root, set_fault
from core.finding import Refused
from tests.conftest import START
from tests.unit.core.delegation.builders import Bench

NOW = START.timestamp()


@cache
def dead() -> int:
    ended = subprocess.Popen(["true"])
    ended.wait()
    return ended.pid


def owner(**changes: Any) -> dict[str, Any]:
    known = {
        "identity": "other ledger",
        "pid": os.getppid(),
        "ts": "2026-03-01T09:00:00Z",
        "epoch_ts": NOW,
        "host": os.uname().nodename,
    }
    return {**known, **changes}


def put(bench: Bench, text: str | None) -> None:
    lock = bench.plan / ".ledger.lock"
    lock.mkdir()
    if text is not None:
        (lock / "owner.json").write_text(text)


def append(bench: Bench, **more: Any) -> store.Outcome:
    asked = store.Appending("observation", {"statement": "s", "trust": "asserted"})
    return store.append(bench.place, bench.world, asked, **more)


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        (json.dumps(owner()), False),
        (json.dumps(owner(epoch_ts=NOW - 900)), False),
        (json.dumps(owner(epoch_ts=NOW - 901)), True),
        (json.dumps(owner(epoch_ts=NOW + 10**6)), False),
        (json.dumps(owner(host="elsewhere")), False),
        (json.dumps(owner(host="elsewhere", epoch_ts=NOW - 901)), True),
        (json.dumps(owner(pid="x")), False),
        (json.dumps(owner(pid=True)), False),
        (json.dumps(owner(pid=-1)), True),
        (json.dumps(owner(pid=0)), True),
        (json.dumps(owner(pid=10**30)), True),
        (json.dumps(owner(epoch_ts=None)), True),
        (json.dumps(owner(epoch_ts="now")), True),
        (json.dumps(owner(epoch_ts=True)), True),
        (json.dumps(owner(epoch_ts=10**400)), True),
        (json.dumps({"identity": "x"}), True),
        ("[]", True),
        ("{nope", True),
        ("", True),
        (None, True),
    ],
)
def test_who_is_taken_over(bench: Bench, text: str | None, taken: bool) -> None:
    bench.begin()
    before = bench.journal.read_bytes()
    put(bench, text)
    if taken:
        assert append(bench).ok
        assert not bench.locked()
        return
    with pytest.raises(Halt, match="other ledger") as caught:
        append(bench)
    assert (caught.value.exit, caught.value.finding.code) == (1, "plan_locked")
    assert bench.journal.read_bytes() == before
    assert (bench.plan / ".ledger.lock" / "owner.json").read_text() == text
    assert append(bench, hold=Hold(force=True)).ok
    assert not bench.locked()


def test_a_dead_process_is_taken_over_only_here(bench: Bench) -> None:
    bench.begin()
    put(bench, json.dumps(owner(pid=dead())))
    assert append(bench).ok
    put(bench, json.dumps(owner(pid=dead(), host="elsewhere")))
    with pytest.raises(Halt):
        append(bench)


def test_a_lock_that_is_no_folder(bench: Bench) -> None:
    bench.begin()
    (bench.plan / ".ledger.lock").write_text("x")
    assert append(bench).ok
    assert not bench.locked()


def test_an_ownerless_lock_gets_a_second(bench: Bench) -> None:
    """Whoever makes the folder first may still be about to write its owner."""
    bench.begin()
    put(bench, None)
    waits = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        (bench.plan / ".ledger.lock" / "owner.json").write_text(json.dumps(owner()))

    world = store.World(bench.clock, bench.environ, lambda: "000000", wait)
    with pytest.raises(Halt, match="other ledger"):
        store.append(bench.place, world, store.Appending("observation", {"statement": "s", "trust": "asserted"}))
    assert waits == [1.0]


def test_our_own_number_of_an_earlier_life(bench: Bench) -> None:
    """After a restart in a container a ledger may have the very pid of the one that died."""
    bench.begin()
    put(bench, json.dumps(owner(pid=os.getpid())))
    assert append(bench).ok


def test_we_do_not_take_our_own_lock_twice(bench: Bench) -> None:
    bench.begin()
    with Root(bench.plan, ".ledger.lock") as root:
        lock = PlanLock(root, "me", bench.clock, "000001")
        lock.acquire()
        assert lock.mine()
        with pytest.raises(Halt, match="me pid"):
            append(bench)
        assert lock.mine()
        lock.release()
        assert append(bench).ok


def test_what_was_forced_away_is_not_released(bench: Bench) -> None:
    bench.begin()
    with Root(bench.plan, ".ledger.lock") as root:
        one, two = (PlanLock(root, name, bench.clock, name) for name in ("one", "two"))
        one.acquire()
        two.acquire(force=True)
        assert not one.mine()
        with pytest.raises(Refused):
            one.renew()
        one.release()
        assert two.mine()
        two.renew()
        assert two.mine()
        two.release()
    assert not bench.locked()


def test_folder_and_owner_appear_together(bench: Bench) -> None:
    """At no point of taking it is there a lock without an owner."""
    bench.begin()
    lock = bench.plan / ".ledger.lock"
    seen = []

    def look(operation: str, name: str) -> None:
        if lock.exists():
            seen.append((lock / "owner.json").exists())

    set_fault(look)
    try:
        assert append(bench).ok
    finally:
        set_fault(None)
    assert seen
    assert all(seen)


def test_what_a_killed_ledger_built_aside_is_swept(bench: Bench) -> None:
    bench.begin()
    for name in (f".ledger.lock-{dead()}-abc", f".ledger.lock-{dead()}-abc-old", f".ledger.lock-{os.getpid()}-x"):
        (bench.plan / name).mkdir()
        (bench.plan / name / "owner.json").write_text("{}")
    (bench.plan / f".ledger.lock-{os.getppid()}-abc").mkdir()
    (bench.plan / ".ledger.lock-notes").mkdir()
    assert append(bench).ok
    left = sorted(name for name in os.listdir(bench.plan) if name.startswith(".ledger"))
    assert left == sorted([f".ledger.lock-{os.getppid()}-abc", ".ledger.lock-notes"])


def test_the_projection_names_the_holder(bench: Bench) -> None:
    bench.begin()
    assert lock_json(bench.place, bench.clock.now()) is None
    put(bench, json.dumps(owner(epoch_ts=NOW - 60)))
    assert lock_json(bench.place, bench.clock.now()) == {"identity": "other ledger", "age_s": 60, "stale": False}
    (bench.plan / ".ledger.lock" / "owner.json").write_text("{nope")
    assert lock_json(bench.place, bench.clock.now()) == {"identity": None, "age_s": None, "stale": True}
    (bench.plan / ".ledger.lock" / "owner.json").unlink()
    assert lock_json(bench.place, bench.clock.now()) == {"identity": None, "age_s": None, "stale": True}


def test_the_owner_file_is_that_of_the_public_pack(bench: Bench) -> None:
    bench.begin()
    with Root(bench.plan, ".ledger.lock") as root:
        lock = PlanLock(root, "dwp-ledger/7.0", bench.clock, "000001")
        lock.acquire()
        data = (bench.plan / ".ledger.lock" / "owner.json").read_text()
        found = holder(root)
        lock.release()
    said = json.loads(data)
    assert said.keys() == {"identity", "pid", "ts", "epoch_ts", "host"}
    assert said["identity"] == f"dwp-ledger/7.0 pid:{os.getpid()}"
    assert said["ts"] == "2026-03-01T09:00:00Z"
    assert found is not None
    assert found.epoch == NOW


def test_an_unwritable_plan(bench: Bench) -> None:
    bench.begin()

    def refuse(operation: str, name: str) -> None:
        if operation == "mkdir":
            raise PermissionError(13, "no")

    set_fault(refuse)
    try:
        with pytest.raises(Halt) as caught:
            append(bench)
    finally:
        set_fault(None)
    assert caught.value.finding.code == "permission_denied"
