"""The workflow of `collab demo`: ten pages, a scripted agent that fails on one, a question that waits for you."""

from __future__ import annotations

import pkgutil
import random
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from core.clock import SYSTEM, Clock
from core.files import Root
from core.finding import Finding, Refused, error
from core.governance.workflow_boundary import Leaver
from core.journal import Follower
from core.watch import Watcher
from core.workflow.answers import Answer
from core.workflow.daemon import Daemon
from core.workflow.engine import Engine
from core.workflow.layout import OUTBOX, SCRATCH, require_root
from core.workflow.signals_in import signal
from core.workflow.state import Run

from tui.cli.base import DONE, Out

PLACE: Final = "pages"
WORKFLOW: Final = "check-pages"
AGENT: Final = "checker"
FAILS_ON: Final = "webhooks"
CAUSE: Final = "the page links to /guide/setup, and nothing is there"
PACE: Final = (1.0, 2.5)
"""Seconds for one page at speed 1."""
INTERVAL: Final = 2_000
_FILES: Final = {f"workflows/{WORKFLOW}.yml": f"{WORKFLOW}.yml", f"agents/{AGENT}.md": f"{AGENT}.md"}


def lay(folder: Path) -> Path:
    """The workflow's root in a demo's workspace: its spec, its agent, no run."""
    root = folder / PLACE
    for name, source in _FILES.items():
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(pkgutil.get_data("collab_templates", f"demo/{source}") or b"")
    (root / "ambient").mkdir(exist_ok=True)
    return root


def build(folder: Path, you: str, clock: Clock = SYSTEM) -> Path:
    """The same with a run of yours that has come to its question."""
    root = lay(folder)
    with _engine(root, clock) as engine:
        _start(engine, you)
        _play(engine, root, clock)
    return root


def play(folder: Path, you: str, out: Out, clock: Clock = SYSTEM) -> Mapping[str, Any]:
    """The whole story at once, without a screen: the run, its question, your answer, its end."""
    root = build(folder, you, clock)
    with _engine(root, clock) as engine:
        engine.tick()
        (run,) = _runs(engine)
        entry = run.entries.get(run.entry_ids[0])
        if entry is None:
            raise Refused(error("demo_failed", f"the sample workflow in {root} asked nothing"))
        out.line(f"{AGENT} works through {run.total} pages of {WORKFLOW}; {entry.question}")
        engine.answer(Answer(entry.id, you, option="retry"))
        out.line(f"{you} answers {entry.id}: retry")
        _play(engine, root, clock)
        (run,) = _runs(engine)
        done = run.tally.get("success", 0)
        out.line(f"run: {run.outcome}, {done} of {run.total} pages, {len(run.steps)} steps")
        if run.outcome != "success":
            raise Refused(error("demo_failed", f"the sample workflow in {root} ended as {run.outcome}"))
        return {"run_id": run.run_id, "outcome": run.outcome, "done": done, "total": run.total, "asked": entry.id}


def _engine(root: Path, clock: Clock) -> Engine:
    return Engine(root, clock=clock, leave=Leaver(root).leave)


def _start(engine: Engine, you: str) -> None:
    made = engine.start(WORKFLOW, "assisted", by=you)
    if made.run_id is None:
        raise Refused(*made.outcome.findings)


def _runs(engine: Engine) -> list[Run]:
    return engine.world.in_order()


def _play(engine: Engine, root: Path, clock: Clock) -> None:
    """The agent answers everything that is sent to it, until nothing more is."""
    with _Agent(root, clock) as agent:
        engine.tick()
        while agent.answer(agent.sent()):
            engine.tick()


class _Agent:
    """Answers each SPAWN of its name once, in order, as an agent without a process of ours does."""

    def __init__(self, root: Path, clock: Clock) -> None:
        self._clock = clock
        self._root = Root(root, SCRATCH)
        require_root(self._root)
        self._outbox = Follower(self._root, OUTBOX, verify_cap=0)

    def __enter__(self) -> _Agent:
        return self

    def __exit__(self, *_: object) -> None:
        self._root.close()

    def sent(self) -> list[Mapping[str, Any]]:
        """The packets to this agent that came since the last look."""
        records = (line.record for line in self._outbox.poll().lines)
        return [one for one in records if one is not None and (one.get("to"), one.get("signal")) == (AGENT, "SPAWN")]

    def answer(self, packets: Iterable[Mapping[str, Any]]) -> int:
        """Reply to these; how many of them were not answered before."""
        return sum(self.reply(packet) for packet in packets)

    def reply(self, packet: Mapping[str, Any]) -> bool:
        """One page: it fails on its first attempt where the story says so. False when it was answered before."""
        context = packet["payload"]["context"]
        failed = context["item"] == FAILS_ON and context["attempt"] == 1
        result = {"status": "fail", "cause": CAUSE} if failed else {"status": "success", "links": 12}
        said = {"id": f"{packet['id']}/reply", "from": AGENT, "signal": "RETURN", "in_reply_to": packet["id"]}
        status, _ = signal(self._root, {**said, "payload": {"result": result}}, self._clock)
        return status == "queued"


def serve(root: Path, speed: float, stop: threading.Event) -> int:
    """The engine of the demo and its agent, until `stop`."""
    with Daemon(root, allow_commands=False, interval=INTERVAL) as daemon:
        worker = threading.Thread(target=_work, args=(root, speed, stop), daemon=True)
        worker.start()
        threading.Thread(target=_end, args=(daemon, stop), daemon=True).start()
        daemon.run(_unheard)
        stop.set()
        worker.join(timeout=5)
    return DONE


def _end(daemon: Daemon, stop: threading.Event) -> None:
    stop.wait()
    daemon.stop()


def _unheard(_: Iterable[Finding]) -> None:
    """What is wrong is seen in the console."""


def _work(root: Path, speed: float, stop: threading.Event) -> None:
    """The agent at its pace, two pages at a time as far as the engine sends them."""
    pace = random.Random("pages")  # noqa: S311 - a pace, not a secret
    with _Agent(root, SYSTEM) as agent:
        # What was sent before is answered already, or somebody waits for it.
        agent.answer(agent.sent())
        for _ in Watcher(lambda: [root / "ambient"], stop):
            for packet in agent.sent():
                if stop.wait(pace.uniform(*PACE) / speed):
                    return
                agent.reply(packet)
