"""Rows of delegations: many plans in one timeline, while ten processes append (docs/specs/delegation.md §8)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from harness import COLLAB, PYTHON, Console, Row, Samples, scratch

from core.clock import SYSTEM, stamp
from core.delegation import canon, store
from core.delegation.contract import revision
from core.delegation.place import at
from core.delegation.writer import World
from core.governance import plan_boundary

PLANS, EACH, OPEN, WRITERS = 20, 25, 50, 10
PAUSE = 0.5
"""Seconds between two events of one writer."""
BASE = "https://deepworkplan.com/schema"
PROMPT = canon.digest(b"prompt")
ADDON = {
    "schema": f"{BASE}/addon-descriptor/v1.json",
    "key": "script",
    "detect": {"paths": ["here.txt"]},
    "provides_abilities": ["subagents"],
    "requires_grants": ["agent_delegation"],
    "transport": "headless",
}
WRITER = """
import os, sys
sys.path.insert(0, sys.argv[1])
from rows_delegation import write_on
write_on(sys.argv[2:])
"""


def contract(number: int) -> dict[str, Any]:
    """Five tasks that may be delegated, each with a criterion."""
    names = [f"part-{task}" for task in range(5)]
    made = {
        "schema": f"{BASE}/plan-contract/v7.json",
        "spec_version": "7.0.0",
        "plan": f"PLAN_bench_{number:02d}",
        "revision": 1,
        "created_at": "2027-01-01T00:00:00Z",
        "outcome": {"statement": "s", "success_definition": "d", "out_of_scope": []},
        "acceptance": {
            "criteria": [
                {"id": f"AC-{name}", "statement": "s", "observable_check": "c", "accepted_evidence": ["observed"]}
                for name in names
            ]
        },
        "invariants": [],
        "scope": {"allowed_paths": ["."], "allowed_command_classes": ["true"], "forbidden_operations": ["publish"]},
        "authorization": {
            "mechanism": "plan_authorship",
            "authority": "a",
            "timestamp": "2027-01-01T00:00:00Z",
            "boundaries": "b",
            "consent_checkpoints": [],
        },
        "permissions": {"granted": ["agent_delegation"], "not_granted": []},
        "dependencies": [],
        "resource_envelope": {"limits": [{"id": "h", "limit": 1, "unit": "h", "enforcement": "advisory"}]},
        "tasks": [
            {
                "id": f"T-{name}",
                "title": f"The {name} of plan {number}",
                "prerequisites": [],
                "touched_surface": [name],
                "gate_intent": [{"criterion": f"AC-{name}", "check": "true"}],
                "parallel_safe": True,
            }
            for name in names
        ],
    }
    return {**made, "contract_id": canon.contract_id(made)}


def lay(folder: Path) -> list[Path]:
    """20 plans with 500 delegations in all, 50 of them open, with their receipts, in a repository with an addon."""
    pack = folder / ".agents/skills/deepworkplan/addons/script/addon.json"
    pack.parent.mkdir(parents=True)
    pack.write_text(json.dumps(ADDON))
    (folder / "here.txt").write_text("")
    plans = [folder / ".dwp/plans" / contract(number)["plan"] for number in range(PLANS)]
    for number, plan in enumerate(plans):
        _plan(plan, number)
    (folder / ".dwp/config.json").write_text(json.dumps({"addons": {"script": {"enabled": True}}}))
    for plan in plans:
        plan_boundary.leave(plan)
    return plans


def _plan(plan: Path, number: int) -> None:
    plan.mkdir(parents=True)
    raw = contract(number)
    (plan / "contract.json").write_text(json.dumps(raw))
    (plan / "results").mkdir()
    made = revision(raw)
    lines: list[bytes] = []
    begun = datetime.now(UTC) - timedelta(minutes=90)

    def add(type_: str, **fields: Any) -> None:
        event = {
            "schema": f"{BASE}/journal-event/v7.json",
            "type": type_,
            "seq": len(lines) + 1,
            "ts": stamp(begun + timedelta(seconds=20 * len(lines))),
            "plan": made.plan,
            "contract_id": made.id,
            "actor": {"kind": "agent", "identity": "caller"},
            **fields,
        }
        lines.append(canon.line(event))

    add("approval", authority="a", mechanism="plan_authorship", plan_digest="0" * 64)
    tasks = list(made.tasks)
    for task in tasks:
        add("task_start", task=task, fingerprint={"revision": "none", "dirty": ""})
    opened = OPEN // PLANS + (number % 2 if OPEN % PLANS else 0)
    for index in range(EACH):
        known = {"task": tasks[index % len(tasks)], "delegation_id": f"d{number:02d}-{index:02d}"}
        known |= {"transport": "headless", "via": "script", "worktree": f"../{index}"}
        add("delegation", state="launched", prompt_digest=PROMPT, **known)
        if index < EACH - opened:
            (plan / "results" / f"{index}.md").write_text(f"result {index}\n")
            digest = canon.digest(f"result {index}\n".encode())
            add("delegation", state="completed", result_path=f"results/{index}.md", result_digest=digest, **known)
    (plan / "journal.ndjson").write_bytes(b"".join(lines))


def world() -> World:
    return World(SYSTEM, os.environ, lambda: os.urandom(3).hex())


def launch(plan: Path, name: str) -> None:
    asked = {"transport": "headless", "via": "script", "worktree": "../w", "prompt_digest": PROMPT}
    made = store.launch(at(plan), world(), store.Delegating("T-part-0", {**asked, "delegation_id": name}))
    if not made.ok:
        raise RuntimeError(made.message)
    plan_boundary.leave(plan, frozenset(event["seq"] for event in made.events))


def cancel(plan: Path, name: str) -> None:
    store.end(at(plan), world(), "cancel", store.Delegating("T-part-0", {"delegation_id": name}))


def write_on(names: list[str]) -> None:
    """What one writer does until its input ends: launches and cancels, in its plans in turn."""
    plans, count = [Path(name) for name in names], 0
    print("writing", flush=True)
    os.set_blocking(0, False)
    while sys.stdin.buffer.read(1) != b"":
        plan, name = plans[count % len(plans)], f"w{os.getpid()}-{count}"
        launch(plan, name)
        time.sleep(PAUSE)
        cancel(plan, name)
        time.sleep(PAUSE)
        count += 1


@contextmanager
def writers(plans: list[Path]) -> Iterator[None]:
    """Ten processes that append to these plans."""
    here = str(Path(__file__).parent)
    started = [
        subprocess.Popen(
            [PYTHON, "-c", WRITER, here, *(str(plan) for plan in plans[number::WRITERS])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        )
        for number in range(WRITERS)
    ]
    try:
        for process in started:
            if process.stdout is None or process.stdout.readline() != b"writing\n":
                raise RuntimeError("a writer did not start")
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def delegation_rows() -> list[Row]:
    """The timeline of 500 delegations: opening it, a key in it, and an append while ten processes append."""
    opened, keys, drawn = Samples(), Samples(), Samples()
    with scratch() as folder:
        plans = lay(folder / "repo")
        for _ in range(5):
            console = Console([COLLAB, str(folder / "repo"), "--as", "reader"])
            try:
                console.wait_for("Inbox")
                console.settle(0.5)
                pressed = console.send("3")
                opened.add(console.wait_for("PLAN_bench_00") - pressed)
                console.settle(0.5)
                for _ in range(12):
                    keys.add(console.key("\x1b[B"))
            finally:
                console.close()
        busy = Samples()
        with writers(plans[1:]):
            console = Console([COLLAB, str(folder / "repo"), "--as", "reader"])
            try:
                console.wait_for("Inbox")
                console.send("3")
                console.wait_for("PLAN_bench_00")
                console.send("o")
                time.sleep(2)
                for number in range(40):
                    name = f"token{number:03d}"
                    console.forget()
                    launch(plans[0], name)
                    now, written = time.perf_counter(), (plans[0] / "journal.ndjson").stat().st_mtime_ns
                    behind = (time.time_ns() - written) / 1e9
                    drawn.add(console.wait_for(name) - now + behind)
                    cancel(plans[0], name)
                    # The first row is a task, the next one a delegation: their details have lines of their own.
                    key, line = ("\x1b[A", "criteria") if number % 2 else ("\x1b[B", "worktree")
                    console.forget()
                    pressed = console.send(key)
                    busy.add(console.wait_for(line) - pressed)
            finally:
                console.close()
    what = f"{PLANS * EACH} delegations in {PLANS} plans"
    return [
        Row(f"{what}: timeline opens", opened.text(), "–", "–", "< 1 s", opened.high < 1.0),
        Row("… key to paint", keys.text(), "–", "–", "95 % < 100 ms", keys.high < 0.1),
        Row(f"… and {WRITERS} processes appending: drawn", drawn.text(), "–", "–", "95 % < 300 ms", drawn.high < 0.3),
        Row("… key to paint meanwhile", busy.text(), "–", "–", "95 % < 100 ms", busy.high < 0.1),
    ]
