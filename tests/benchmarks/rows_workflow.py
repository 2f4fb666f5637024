"""Rows of the workflow engine: a big run is as quick at its end; runs that are over cost little (docs/design.md §6)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from harness import Row, Samples, scratch, timed

from core import journal
from core.workflow.engine import Engine
from core.workflow.view import Reader

ITEMS, PARALLEL, BLOCK = 10_000, 8, 1_000
SPEC = (
    "workflow: big\nfor_each:\n  items: [{items}]\n  spawn: porter\n"
    '  scope: {{zone: project, files: ["f/{{{{item}}}}"]}}\n  on_return: {{success: next_item}}\n'
    f"max_parallel: {PARALLEL}\n"
)
PROFILE = '---\nbrain:\n  ipc: {receives_from: ["*"], sends_to: ["*"], zone_access: ["*"], signals: ["*"]}\n---\n'


class Clock:
    """A millisecond a tick: no timer is ever due, and records are written at their usual pace."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 4, 1, 8, tzinfo=UTC)

    def now(self) -> datetime:
        self.moment += timedelta(milliseconds=1)
        return self.moment


def lay(folder: Path, items: int) -> None:
    for name in ("workflows", "agents", "ambient"):
        (folder / name).mkdir()
    (folder / "agents/porter.md").write_text(PROFILE)
    (folder / "workflows/big.yml").write_text(SPEC.format(items=", ".join(f"i{number}" for number in range(items))))


def answer(engine: Engine, run_id: str, sent: int) -> int:
    """The agents answer for all that is in flight; one tick takes it in. Returns how many."""
    flight = sorted(engine.world.runs[run_id].flight)
    packets = [
        {
            "id": f"p{sent + number}",
            "from": "porter",
            "signal": "RETURN",
            "in_reply_to": f"{run_id}/{index}/1",
            "payload": {"result": "success"},
        }
        for number, index in enumerate(flight)
    ]
    engine.root.append("ambient/signals.jsonl", b"".join(journal.encode(packet) for packet in packets))
    engine.tick(flush=False)
    return len(flight)


def items_row(items: int = ITEMS) -> Row:
    """A run of many items in one engine: cost per item in the first and in the last thousand."""
    first, last = Samples(), Samples()
    with scratch() as folder:
        lay(folder, items)
        with Engine(folder, clock=Clock()) as engine:
            run_id = engine.start("big", "swarm", grant=True).run_id or ""
            engine.tick(flush=False)
            done = 0
            while engine.world.runs[run_id].open:
                count = 0

                def one(sent: int = done) -> None:
                    nonlocal count
                    count = answer(engine, run_id, sent)

                took = timed(one) / max(1, count)
                done += count
                if done <= BLOCK:
                    first.add(took)
                elif done > items - BLOCK:
                    last.add(took)
    ratio = last.median / first.median
    name = f"one item, the last {BLOCK} of {items} against the first, {PARALLEL} at once"
    return Row(name, last.text(), first.text(), f"{ratio:.2f} ×", "≤ 1.5 ×", ratio <= 1.5)


def closed_row(runs: int = 1_000) -> Row:
    """What `collab workflow status` reads below a root whose runs are over, against reading them all."""
    indexed, whole = Samples(), Samples()
    with scratch() as folder:
        lay(folder, 10)
        with Engine(folder, clock=Clock()) as engine:
            run_id = engine.start("big", "swarm", grant=True).run_id or ""
            engine.tick()
            sent = 0
            while engine.world.runs[run_id].open:
                sent += answer(engine, run_id, sent)
        _multiply(folder, run_id, runs)
        with Engine(folder, clock=Clock()) as engine:
            engine.tick()

        def look(everything: bool) -> None:
            with Reader(folder, everything) as reader:
                reader.look()
                found = len(reader.rows(0))
            if found != runs:
                raise RuntimeError(f"{found} runs instead of {runs}")

        for _ in range(5):
            indexed.add(timed(lambda: look(False)))
            whole.add(timed(lambda: look(True)))
    ratio = whole.median / indexed.median
    return Row(
        f"looking at {runs} runs that are over", indexed.text(), whole.text(), f"{ratio:.1f} × faster", "–", None
    )


def _multiply(folder: Path, run_id: str, count: int) -> None:
    """The same run so many times, under other ids."""
    log = (folder / f"ambient/runs/{run_id}.jsonl").read_text("utf-8")
    record = (folder / f"ambient/runs/{run_id}.yml").read_text("utf-8")
    for number in range(2, count + 1):
        other = f"{run_id.rsplit('-', 1)[0]}-c{number:04x}"
        made = [json.loads(line) for line in log.replace(run_id, other).splitlines()]
        made[0]["number"] = number
        for event in made:
            if "packet" in event:
                event["packet"] += f"-{number}"
        (folder / f"ambient/runs/{other}.jsonl").write_bytes(b"".join(journal.encode(event) for event in made))
        (folder / f"ambient/runs/{other}.yml").write_text(record.replace(run_id, other), "utf-8")


def workflow_rows() -> list[Row]:
    return [items_row(), closed_row()]
