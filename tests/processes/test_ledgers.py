"""Several ledgers on one plan, one of them killed, one of them the public pack's: nothing lost, doubled or left over.

(docs/specs/delegation.md §4)
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from core.delegation import canon, store
from core.delegation.verify import verify
from tests.unit.core.delegation.builders import Bench

ROOT = Path(__file__).resolve().parents[2]
WORKER = """
import os, sys, time
from pathlib import Path
from core.clock import SYSTEM
from core.delegation import store
from core.delegation.place import at
from core.delegation.writer import Halt, World

place, name, count = at(Path(sys.argv[1])), sys.argv[2], int(sys.argv[3])
world = World(SYSTEM, os.environ, lambda: os.urandom(3).hex())
for number in range(count):
    asked = store.Appending("observation", {"statement": f"{name}-{number}", "trust": "asserted"})
    while True:
        try:
            made = store.append(place, world, asked)
            break
        except Halt as exc:
            if exc.finding.code != "plan_locked":
                raise
            time.sleep(0.001)
    for event in made.events:
        print(event["seq"], event.get("statement", "-"), flush=True)
"""
PACK = """
import json, os, shutil, sys, time

# Nothing but the protocol of the public pack: make the folder, write the owner, append, remove.
plan, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
lock, journal = os.path.join(plan, ".ledger.lock"), os.path.join(plan, "journal.ndjson")
for number in range(count):
    while True:
        try:
            os.mkdir(lock)
            break
        except FileExistsError:
            time.sleep(0.001)
    with open(os.path.join(lock, "owner.json"), "w") as owner:
        said = {"identity": name, "pid": os.getpid(), "ts": "x", "epoch_ts": time.time()}
        json.dump({**said, "host": os.uname().nodename}, owner)
    with open(journal, "rb") as log:
        last = json.loads(log.read().splitlines()[-1])
    event = {key: last[key] for key in ("schema", "ts", "plan", "contract_id")}
    event.update(type="observation", seq=last["seq"] + 1, statement=f"{name}-{number}", trust="asserted")
    event["actor"] = {"kind": "agent", "identity": "pack"}
    with open(journal, "ab") as log:
        log.write(json.dumps(event, sort_keys=True, separators=(",", ":")).encode() + b"\\n")
        log.flush()
        os.fsync(log.fileno())
    print(event["seq"], event["statement"], flush=True)
    shutil.rmtree(lock)
"""


@pytest.fixture
def bench(quick_path: Path) -> Bench:
    return Bench(quick_path)


def worker(bench: Bench, script: str, name: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, str(bench.plan), name, str(count)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def acknowledged(children: list[subprocess.Popen[str]]) -> list[tuple[int, str]]:
    found = []
    for child in children:
        out, err = child.communicate(timeout=120)
        assert child.returncode == 0, err
        found += [(int(seq), said) for seq, _, said in (line.partition(" ") for line in out.splitlines())]
    return found


def check(bench: Bench, told: list[tuple[int, str]]) -> None:
    """What was acknowledged stands there, once, and the record is whole."""
    events = bench.events()
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    written = Counter(event["statement"] for event in events if event["type"] == "observation")
    assert set(written.values()) <= {1}
    by_seq = {event["seq"]: event.get("statement", "-") for event in events}
    assert all(by_seq[seq] == said for seq, said in told)
    assert verify(bench.place).exit == 0
    assert not bench.locked()


def test_two_ledgers_at_once(bench: Bench) -> None:
    bench.begin()
    told = acknowledged([worker(bench, WORKER, name, 25) for name in ("one", "two", "three")])
    assert len(told) == 75
    check(bench, told)


def test_with_a_ledger_of_the_public_pack(bench: Bench) -> None:
    bench.begin()
    children = [worker(bench, WORKER, "ours", 20), worker(bench, PACK, "theirs", 20)]
    told = acknowledged(children)
    assert len(told) == 40
    check(bench, told)


HOLDER = """
import os, sys, time
from pathlib import Path
from core.clock import SYSTEM
from core.delegation.place import at
from core.delegation.writer import World, writing

world = World(SYSTEM, os.environ, lambda: os.urandom(3).hex())
with writing(at(Path(sys.argv[1])), world) as writer:
    if sys.argv[2] == "torn":
        with open(writer.place.plan / "journal.ndjson", "ab") as log:
            log.write(b'{"half')
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("state", ["whole", "torn"])
def test_one_is_killed_while_it_holds_the_plan(bench: Bench, state: str) -> None:
    """The others go on by themselves: its lock is taken over, its half line is cut and said."""
    bench.begin()
    held = worker(bench, HOLDER, state, 0)
    assert held.stdout is not None
    assert held.stdout.readline() == "held\n"
    waiting = [worker(bench, WORKER, name, 10) for name in ("one", "two")]
    held.send_signal(signal.SIGKILL)
    held.communicate(timeout=30)
    told = acknowledged(waiting)
    check(bench, told)
    assert [event["type"] for event in bench.events()].count("journal_repair") == (state == "torn")


def test_killed_again_and_again(bench: Bench) -> None:
    """Five writers are killed in the middle of their work; what each had acknowledged stays, a sixth finds order."""
    bench.begin()
    told: list[tuple[int, str]] = []
    for number in range(5):
        child = worker(bench, WORKER, f"w{number}", 10_000)
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(4 + number)]
        child.send_signal(signal.SIGKILL)
        rest, _ = child.communicate(timeout=30)
        for line in [*lines, *rest.splitlines()]:
            seq, _, said = line.strip().partition(" ")
            if seq and said.startswith("w"):
                told.append((int(seq), said))
    told += acknowledged([worker(bench, WORKER, "last", 3)])
    assert len(told) >= 30
    check(bench, told)


def test_gates_of_two_ledgers_exclude_each_other(bench: Bench) -> None:
    """While one runs a gate the other is told who holds the plan, at once, and nothing is written."""
    bench.begin("T-mark", "T-plain")
    held = worker(bench, HOLDER, "whole", 0)
    assert held.stdout is not None
    held.stdout.readline()
    before = bench.journal.read_bytes()
    asked = store.Appending("observation", {"statement": "s", "trust": "asserted"})
    world: Any = store.World(bench.clock, bench.environ, lambda: "000000")
    owner = json.loads((bench.plan / ".ledger.lock" / "owner.json").read_bytes())
    bench.clock.moment = bench.clock.moment.fromtimestamp(owner["epoch_ts"], bench.clock.moment.tzinfo)
    with pytest.raises(store.Halt, match=f"pid:{held.pid}"):
        store.append(bench.place, world, asked)
    assert bench.journal.read_bytes() == before
    held.kill()
    held.communicate(timeout=30)
    assert store.append(bench.place, world, asked).ok
    assert canon.line(bench.events()[-1]) in bench.journal.read_bytes()
    assert not bench.locked()
