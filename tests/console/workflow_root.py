"""A workflow root for tests of the console: runs made by the engine itself, agents that answer as they are told."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.files import Root
from core.governance.workflow_boundary import Leaver
from core.workflow.answers import Answer, Outcome
from core.workflow.engine import Engine
from core.workflow.model import Entry
from core.workflow.signals_in import signal
from core.workflow.state import Run, World
from core.workflow.view import Reader
from tests.unit.core.workflow.stage import AGENTS, counted, lay, spec

FAILED = {"status": "fail", "cause": "port 443 is closed"}
LEARNABLE = "reversible: true\nexternal_effect: false\n"


class WorkflowRoot:
    """`root.reply(0, "ok")` answers the latest SPAWN of an item and ticks."""

    def __init__(
        self,
        path: Path,
        clock: Any,
        *specs: str,
        agents: Mapping[str, Any] = AGENTS,
        more: str = "",
        items: str = "[a, b, c]",
    ) -> None:
        self.path, self.clock = path, clock
        lay(path, *(specs or (spec(items, more=more),)), agents=agents)
        (path / "ambient").mkdir(exist_ok=True)

    def engine(self) -> Engine:
        return Engine(self.path, clock=self.clock, chance=counted(), leave=Leaver(self.path).leave)

    def start(self, workflow: str = "w", mode: str = "swarm", by: str = "ana") -> str:
        with self.engine() as made:
            run_id = made.start(workflow, mode, grant=True, by=by).run_id
            made.tick()
        assert run_id is not None
        return run_id

    def tick(self) -> None:
        with self.engine() as made:
            made.tick()

    def reply(self, index: int, result: Any, run: str | None = None, **packet: Any) -> None:
        self.clock.step(1)
        state = self.run(run)
        item = state.items[index]
        spawn = f"{state.run_id}/{index}/{item.attempt}" + (f".{item.resumes}" if item.resumes else "")
        made = {"from": "porter", "signal": "RETURN", "in_reply_to": spawn, "payload": {"result": result}, **packet}
        with Root(self.path, "ambient/.tmp") as folder:
            signal(folder, made, self.clock)
        self.tick()

    def answer(self, entry: str, option: str, by: str = "ben") -> Outcome:
        with self.engine() as made:
            return made.answer(Answer(entry, by, option=option))

    def world(self) -> World:
        with Reader(self.path) as reader:
            return reader.look()

    def run(self, run_id: str | None = None) -> Run:
        world = self.world()
        return world.runs[run_id or world.order[-1]]

    def entries(self) -> list[Entry]:
        runs = self.world().in_order()
        found = (run.entries.get(name) for run in runs for name in run.entry_ids)
        return [entry for entry in found if entry is not None]

    def decisions(self) -> list[tuple[str, str, str, str] | None]:
        """(who, what, how, by which channel) of each question, in order."""
        made = []
        for entry in self.entries():
            known = entry.decision
            said = None
            if known is not None:
                said = (known.decided_by, known.option_id or known.verb, known.text or known.note or "", known.channel)
            made.append(said)
        return made

    def files(self) -> dict[str, bytes]:
        """Everything that the engine keeps, by name; locks aside."""
        kept = (one for one in sorted(self.path.rglob("*")) if one.is_file() and not one.name.startswith("."))
        return {str(one.relative_to(self.path)): one.read_bytes() for one in kept}


def learned(root: WorkflowRoot, option: str = "retry") -> str:
    """Two runs in which the same answer was given; the id of the proposal that follows."""
    for _ in range(2):
        root.start()
        root.reply(0, FAILED)
        root.answer(root.entries()[-1].id, option)
        root.tick()
        for index in range(3):
            if root.run().items[index].state == "open":
                root.reply(index, "ok")
    (made,) = root.world().learning.proposals
    return made


PAGES = """workflow: check-pages
description: Check the links of six pages
for_each:
  items: [welcome, install, search, billing, limits, glossary]
  spawn: porter
  scope: {zone: project, files: ["site/{{item}}.md"]}
  on_return: {success: next_item, fail: ESCALATE pilote}
max_parallel: 3
reversible: true
external_effect: false
on_escalate: {wait: item, deadline: 6h}
on_complete: {signal: RETURN, payload: {result: "{{success_count}} of {{total}} pages checked"}}
"""
BROKEN = {"status": "fail", "cause": "the page links to /guide/setup, and nothing is there"}


def sample(path: Path, clock: Any) -> WorkflowRoot:
    """Two runs that ended, what was learned of them, one under way that asks thrice, a spec that is broken."""
    root = WorkflowRoot(path, clock, PAGES)
    (path / "workflows/w.yml").rename(path / "workflows/check-pages.yml")
    (path / "workflows/nightly.yml").write_text("workflow: nightly\nfor_each:\n  items: [...]\n", "utf-8")
    for _ in range(2):
        root.start("check-pages", "assisted", "reader")
        root.reply(0, BROKEN)
        clock.step(300)
        root.answer(root.entries()[-1].id, "retry", "reader")
        root.tick()
        while (run := root.run()).open:
            root.reply(min(run.flight), "ok")
        clock.step(1200)
    root.start("check-pages", "assisted", "reader")
    root.reply(0, "ok")
    root.reply(1, BROKEN)
    root.reply(2, BROKEN)
    root.reply(3, {"status": "partial", "cause": "two links were too slow"})
    return root
