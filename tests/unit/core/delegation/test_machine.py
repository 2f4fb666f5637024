"""No sequence of delegate verbs, raw appends or delegates' results completes a task other than as §5 accepts it.

The machine tries whatever a caller can say, and keeps its own account of what counts: gates that the ledger ran, a
person's signoff, an empty intent. A task that the plan calls completed without that account is the failure.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from core.delegation import store
from core.delegation.gates import Gate, gate
from core.delegation.progress import status
from core.delegation.verify import verify
from core.delegation.writer import Halt
from tests.unit.core.delegation.builders import HELPER, Bench, delegation, draft, gate_run

TASKS = ("T-mark", "T-plain", "T-word", "T-empty")
INTENTS = {"T-mark": ["AC-one", "AC-two"], "T-plain": ["AC-two"], "T-word": ["AC-word"], "T-empty": []}
ids = st.sampled_from(["d1", "d2", "d3"])
tasks = st.sampled_from(TASKS)
criteria = st.sampled_from(["AC-one", "AC-two", "AC-word", "AC-none"])
pairs = st.sampled_from([(task, name) for task, names in INTENTS.items() for name in names]) | st.tuples(
    tasks, criteria
)
"""A task and a criterion, mostly one of its own."""
kinds = st.sampled_from(["agent", "human", "helper", "host_adapter"])
actors = st.fixed_dictionaries({"kind": kinds, "identity": st.sampled_from(["x", "dwp-ledger/7.0"])})
"""Somebody, and somebody who signs as the ledger does."""
trusts = st.sampled_from([None, "observed", "imported", "asserted"])


def forged(kind: str, task: str, criterion: str) -> Mapping[str, Any]:
    """What somebody would write who wants a task to look done."""
    run = {key: value for key, value in gate_run(1, task, criterion).items() if key != "seq"}
    claims: dict[str, Mapping[str, Any]] = {
        "gate_run": run,
        "delegation": delegation(1, "d9", "completed", task=task),
        "observation": {"statement": f"{criterion}: pass", "trust": "observed", "evidence_path": "README.md"},
        "resource_sample": {"source": "s", "value": 0, "unit": "u", **run},
        "control_pair": {
            "criterion": criterion,
            "check_artifacts": ["x"],
            "starting_fingerprint": {"revision": "r", "dirty": ""},
            "old_leg": {"available": True, "outcome": "FAIL", "log": "l"},
            "new_leg": {"outcome": "PASS", "log": "l"},
            "verdict": "discriminating",
            "trust": "observed",
            "evidence_path": "README.md",
        },
        "approval": {"authority": "a", "mechanism": "plan_authorship", "plan_digest": "0" * 64, "actor": HELPER},
        "reconciliation": {"trigger": f"{task} is complete", "editor": "e", "authority": "a"},
        "refusal": {"subject": task, "stage": "gate", "reason": "none"},
        "selection": {"task": task, "priority_boost": False, "type": "gate_run", "exit_code": 0},
        "journal_repair": {"byte_offset": 0, "cause": "c"},
        "amendment": {
            "original_criterion": criterion,
            "observed_finding": "f",
            "disposition": "met",
            "revised_criterion": "none",
            "reason": "r",
            "authority": "a",
            "affected_tasks": [task],
            "evidence_invalidated": [],
            "evidence_preserved": [criterion],
        },
        "complete": {"task": task},
    }
    return claims[kind]


CLAIMS = (
    "gate_run",
    "delegation",
    "observation",
    "resource_sample",
    "control_pair",
    "approval",
    "reconciliation",
    "refusal",
    "selection",
    "journal_repair",
    "amendment",
    "complete",
)


class Ledger(RuleBasedStateMachine):
    """A plan, and what really counts towards each task: `earned[task]` since its latest start."""

    def __init__(self) -> None:
        super().__init__()
        memory = Path("/dev/shm")
        self.scratch = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None, prefix="collab-tests-"))
        self.bench = Bench(self.scratch)
        self.started: set[str] = set()
        self.earned: dict[str, set[str]] = {task: set() for task in TASKS}
        self.heads = [0]

    def teardown(self) -> None:
        shutil.rmtree(self.scratch)

    @initialize()
    def begin(self) -> None:
        made = draft()
        made["acceptance"]["criteria"].append(
            {**made["acceptance"]["criteria"][0], "id": "AC-word", "accepted_evidence": ["asserted"]}
        )
        made["tasks"] = [
            {
                "id": task,
                "title": task,
                "prerequisites": [],
                "touched_surface": ["src/a"],
                "gate_intent": [{"criterion": name, "check": "true"} for name in INTENTS[task]],
                "parallel_safe": task != "T-plain",
            }
            for task in TASKS
        ]
        self.bench.begin("T-mark", "T-word", acceptance=made["acceptance"], tasks=made["tasks"])
        self.started |= {"T-mark", "T-word"}

    def attempt(self, act: Any) -> Any:
        """A verb's outcome, None when it was an error."""
        try:
            return act()
        except Halt:
            return None

    @rule(task=tasks, touch=st.booleans())
    def start(self, task: str, touch: bool) -> None:
        who = {"kind": "agent", "identity": f"caller-{len(self.heads)}" if touch else "caller"}
        made = self.attempt(lambda: store.start(self.bench.place, self.bench.world, task, who))
        if made is not None and made.events:
            self.started.add(task)
            self.earned[task] = set()

    @rule(task=tasks, name=ids, looks=st.booleans())
    def launch(self, task: str, name: str, looks: bool) -> None:
        self.attempt(lambda: self.bench.launch(name, task, worktree=None if looks else "../wt"))

    @rule(task=tasks, name=ids, state=st.sampled_from(["completed", "failed", "cancelled"]), path=st.booleans())
    def end(self, task: str, name: str, state: str, path: bool) -> None:
        extra: dict[str, Any] = {"result_path": f"analysis_results/{name}.txt"} if path else {}
        extra |= {"trust": "observed", "evidence_path": "README.md", "exit_code": 0, "criterion": "AC-one"}
        if state == "cancelled":
            self.attempt(lambda: self.bench.cancel(name, task))
        else:
            self.attempt(lambda: self.bench.collect(name, state, task, **extra))

    @rule(name=ids, text=st.sampled_from(["AC-one: pass", '{"type":"gate_run","exit_code":0}', "done"]))
    def deliver(self, name: str, text: str) -> None:
        """A delegate's result may say what it likes."""
        folder = self.bench.plan / "analysis_results"
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.txt").write_text(text)

    @rule(claim=st.sampled_from(CLAIMS), pair=pairs, actor=actors, trust=trusts, idempotent=st.booleans())
    def declare(
        self, claim: str, pair: tuple[str, str], actor: dict[str, str], trust: str | None, idempotent: bool
    ) -> None:
        self.forge(claim, claim, pair, actor, trust, idempotent)

    @rule(pair=pairs, actor=actors, trust=trusts, smuggled=st.booleans())
    def declare_a_gate(self, pair: tuple[str, str], actor: dict[str, str], trust: str | None, smuggled: bool) -> None:
        """A perfect gate run, under its own name or another's."""
        self.forge("observation" if smuggled else "gate_run", "gate_run", pair, actor, trust, False)

    def forge(
        self,
        declared: str,
        claim: str,
        pair: tuple[str, str],
        actor: dict[str, str],
        trust: str | None,
        idempotent: bool,
    ) -> None:
        asked = store.Appending(
            declared,
            forged(claim, *pair),
            actor,
            trust,
            "README.md" if trust else None,
            idempotent=idempotent,
        )
        self.attempt(lambda: store.append(self.bench.place, self.bench.world, asked))

    @rule(task=tasks)
    def declare_start(self, task: str) -> None:
        asked = store.Appending("task_start", {"task": task})
        if self.attempt(lambda: store.append(self.bench.place, self.bench.world, asked)) is not None:
            self.started.add(task)
            self.earned[task] = set()

    @rule(criterion=criteria)
    def invalidate(self, criterion: str) -> None:
        body = {**forged("amendment", "T-mark", criterion), "evidence_invalidated": [criterion]}
        asked = store.Appending("amendment", body)
        if self.attempt(lambda: store.append(self.bench.place, self.bench.world, asked)) is not None:
            for earned in self.earned.values():
                earned.discard(criterion)

    @rule(pair=pairs, word=st.sampled_from(["true", "true", "false"]), reuse=st.booleans())
    def gate(self, pair: tuple[str, str], word: str, reuse: bool) -> None:
        task, criterion = pair
        made = self.attempt(
            lambda: gate(self.bench.place, self.bench.world, Gate(task, criterion, [word], reuse=reuse))
        )
        if made is not None and made.exit == 0:
            assert word == "true"
            if criterion != "AC-word":
                assert not made.reused or criterion in self.earned[task]
                self.earned[task].add(criterion)

    @rule(criterion=st.just("AC-word") | criteria, task=st.none() | tasks)
    def signoff(self, criterion: str, task: str | None) -> None:
        made = self.attempt(
            lambda: store.signoff(self.bench.place, self.bench.world, criterion, "README.md", "Ada", task)
        )
        if made is not None:
            assert criterion == "AC-word"
            self.earned["T-word"].add(criterion)

    @rule()
    def roll(self) -> None:
        self.attempt(lambda: store.roll(self.bench.place, self.bench.world))

    @rule(task=st.sampled_from(["T-mark", "T-word"]), name=ids)
    def hurry(self, task: str, name: str) -> None:
        """Launch, and do what completes the task while the delegate is still at work."""
        self.launch(task, name, False)
        if task == "T-word":
            self.signoff("AC-word", None)
        else:
            for criterion in INTENTS[task]:
                self.gate((task, criterion), "true", False)
        self.complete(task)

    @rule(task=tasks)
    def complete(self, task: str) -> None:
        made = self.attempt(lambda: store.complete(self.bench.place, self.bench.world, task))
        assert made is not None
        opened = bool(self.bench.record().progress.open.get(task))
        assert made.ok == (self.done(task) and not opened)
        assert bool(made.events) != made.ok

    def done(self, task: str) -> bool:
        """By the machine's own account; nothing else is asked."""
        return set(INTENTS[task]) <= self.earned[task]

    @invariant()
    def only_what_counts_completes(self) -> None:
        if not self.bench.journal.exists():
            return
        record = self.bench.record()
        live = record.chain.live
        for task in TASKS:
            found = status(record.progress, live, task)
            expected = "pending" if task not in self.started else "completed" if self.done(task) else "in_progress"
            assert found == expected, task
        assert record.head_seq >= self.heads[-1]
        self.heads.append(record.head_seq)
        assert not self.bench.locked()

    @invariant()
    def the_record_stays_valid(self) -> None:
        """Every verb leaves a record without errors, whatever was asked of it."""
        if self.bench.journal.exists():
            report = verify(self.bench.place)
            assert set(report.rules) <= {"result-changed", "result-missing", "delegation-open-done"}, report.findings


Ledger.TestCase.settings = settings(
    settings.get_profile("suite"),
    max_examples=25,
    stateful_step_count=30,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    phases=[Phase.generate],
)
TestLedger = Ledger.TestCase
