"""Plans for tests: a contract to vary, a repository with programs, a world that stands still."""

from __future__ import annotations

import copy
import itertools
import json
import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.delegation import addons, canon, materialize, reader, store
from core.delegation.contract import Chain, Revision, revision
from core.delegation.place import Place, at
from core.delegation.progress import Progress, fold
from core.delegation.writer import World
from tests.conftest import FixedClock

DIGEST = canon.digest(b"prompt")
BASE = "https://deepworkplan.com/schema"
PATH = "/usr/local/bin:/usr/bin:/bin"


def draft(**changes: Any) -> dict[str, Any]:
    """A valid v7 contract: T-mark is marked, T-plain is not, both own one observed criterion."""
    made: dict[str, Any] = {
        "schema": f"{BASE}/plan-contract/v7.json",
        "spec_version": "7.0.0",
        "plan": "PLAN_unit_sample",
        "revision": 1,
        "created_at": "2026-01-01T00:00:00Z",
        "outcome": {"statement": "s", "success_definition": "d", "out_of_scope": []},
        "acceptance": {
            "criteria": [
                {
                    "id": f"AC-{name}",
                    "statement": f"{name} works",
                    "observable_check": "true exits 0",
                    "accepted_evidence": ["observed"],
                }
                for name in ("one", "two")
            ]
        },
        "invariants": [],
        "scope": {
            "allowed_paths": ["src/"],
            "allowed_command_classes": ["true", "false", "sh", "sleep", "echo", "env"],
            "forbidden_operations": ["publish"],
        },
        "authorization": {
            "mechanism": "plan_authorship",
            "authority": "a",
            "timestamp": "2026-01-01T00:00:00Z",
            "boundaries": "b",
            "consent_checkpoints": [],
        },
        "permissions": {"granted": ["agent_delegation"], "not_granted": ["network_access"]},
        "dependencies": [],
        "resource_envelope": {"limits": [{"id": "hours", "limit": 1, "unit": "h", "enforcement": "advisory"}]},
        "tasks": [
            {
                "id": "T-mark",
                "title": "Marked",
                "prerequisites": [],
                "touched_surface": ["src/a"],
                "gate_intent": [{"criterion": "AC-one", "check": "true"}],
                "parallel_safe": True,
            },
            {
                "id": "T-plain",
                "title": "Unmarked",
                "prerequisites": [],
                "touched_surface": ["src/b"],
                "gate_intent": [{"criterion": "AC-two", "check": "true"}],
            },
        ],
    }
    return {**made, **copy.deepcopy(changes)}


def contract(**changes: Any) -> Revision:
    return revision(draft(**changes))


def chain(**changes: Any) -> Chain:
    return Chain((contract(**changes),))


def event(type_: str, seq: int, made: Revision | None = None, /, **fields: Any) -> dict[str, Any]:
    """A well-formed event, unless `fields` say otherwise."""
    revised = made or contract()
    return {
        "schema": f"{BASE}/journal-event/{revised.generation}.json",
        "type": type_,
        "seq": seq,
        "ts": f"2026-01-01T00:{seq // 60:02d}:{seq % 60:02d}Z",
        "plan": revised.plan,
        "contract_id": revised.id,
        "actor": {"kind": "agent", "identity": "caller"},
        **fields,
    }


HELPER = {"kind": "helper", "identity": "dwp-ledger/7.0"}


def gate_run(seq: int, task: str = "T-mark", criterion: str = "AC-one", **fields: Any) -> dict[str, Any]:
    known = {
        "command": "true",
        "cwd": "/r",
        "timeout_seconds": 600,
        "exit_code": 0,
        "task": task,
        "criterion": criterion,
        "trust": "observed",
        "evidence_path": "README.md",
        "actor": HELPER,
    }
    return event("gate_run", seq, **{**known, **fields})


def delegation(seq: int, name: str = "d1", state: str = "launched", **fields: Any) -> dict[str, Any]:
    known: dict[str, Any] = {
        "task": "T-mark",
        "delegation_id": name,
        "transport": "headless",
        "via": "agentkit",
        "state": state,
        "worktree": "../wt",
    }
    if state == "launched":
        known["prompt_digest"] = DIGEST
    return event("delegation", seq, **{**known, **fields})


def approval(seq: int, made: Revision | None = None) -> dict[str, Any]:
    return event("approval", seq, made, authority="a", mechanism="plan_authorship", plan_digest="0" * 64)


def start(seq: int, task: str = "T-mark") -> dict[str, Any]:
    return event("task_start", seq, task=task)


def progress(events: Iterable[Mapping[str, Any]], known: Chain | None = None) -> Progress:
    return fold(known or chain(), events)


@contextmanager
def fresh_bench() -> Iterator[Bench]:
    """A bench for one example of a property: in memory where there is memory to write in."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory, prefix="collab-tests-") as made:
        yield Bench(Path(made))


@dataclass
class Bench:
    """A repository with one plan in it, and programs that answer detections."""

    root: Path
    clock: FixedClock = field(default_factory=FixedClock)

    def __post_init__(self) -> None:
        self.repo, self.home, self.bin = self.root / "repo", self.root / "home", self.root / "bin"
        for folder in (self.repo / "src", self.home, self.bin):
            folder.mkdir(parents=True)
        for name in ("a", "b"):
            (self.repo / "src" / name).write_text(f"{name} = 1\n")
        (self.repo / ".gitignore").write_text(".dwp/\n")
        self.program("ak", '{"interface": 1}')
        self.program("herdr-peers", "herdr-peers 0.1.0 (protocol 1)")
        self.plan = self.repo / ".dwp" / "plans" / "PLAN_unit_sample"
        self.plan.mkdir(parents=True)
        (self.plan / "README.md").write_text("# Goal\n")
        self.registry({"addons": {"agentkit": {"enabled": True}}})
        tokens = itertools.count()
        self.world = World(self.clock, self.environ, lambda: f"{next(tokens):06x}", lambda _: None)

    @property
    def environ(self) -> dict[str, str]:
        return {
            "PATH": f"{self.bin}:{PATH}",
            "HOME": str(self.home),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
        }

    @property
    def place(self) -> Place:
        return at(self.plan)

    def program(self, name: str, output: str, code: int = 0) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\necho \"$@\" >> '{self.root}/{name}.log'\necho '{output}'\nexit {code}\n")
        path.chmod(0o755)

    def ran(self, name: str) -> bool:
        return (self.root / f"{name}.log").exists()

    def registry(self, document: Any) -> None:
        path = self.repo / ".dwp" / "config.json"
        path.write_text(document if isinstance(document, str) else json.dumps(document))

    def git(self) -> None:
        """Put the repository under git, with one commit."""
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
            subprocess.run(
                ["git", "-c", "user.name=t", "-c", "user.email=t@t", *words],
                cwd=self.repo,
                env=self.environ,
                check=True,
                capture_output=True,
            )

    def begin(self, *tasks: str, **changes: Any) -> Bench:
        """Materialize the plan and start tasks (T-mark unless others are named)."""
        data = json.dumps(draft(**changes)).encode()
        assert materialize.materialize(self.place, self.world, materialize.Beginning(data)).ok
        for task in tasks or ("T-mark",):
            assert store.start(self.place, self.world, task).ok
        return self

    def launch(self, name: str = "d1", task: str = "T-mark", **fields: Any) -> store.Outcome:
        known = {"transport": "headless", "via": "agentkit", "prompt_digest": DIGEST, "delegation_id": name}
        payload = {key: value for key, value in {**known, **fields}.items() if value != "absent"}
        return store.launch(self.place, self.world, store.Delegating(task, payload))

    def collect(self, name: str = "d1", state: str = "completed", task: str = "T-mark", **fields: Any) -> store.Outcome:
        asked = store.Delegating(task, {"delegation_id": name, "state": state, **fields})
        return store.end(self.place, self.world, "collect", asked)

    def cancel(self, name: str = "d1", task: str = "T-mark") -> store.Outcome:
        return store.end(self.place, self.world, "cancel", store.Delegating(task, {"delegation_id": name}))

    @property
    def journal(self) -> Path:
        return self.plan / "journal.ndjson"

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.journal.read_bytes().splitlines()]

    def record(self) -> reader.Record:
        return reader.read(self.place, keep=True)

    def locked(self) -> bool:
        return any(name.startswith(".ledger.lock") for name in os.listdir(self.plan))

    def addon(self, key: str) -> addons.Addon | None:
        return addons.lookup(self.repo, key)
