"""A console that is left open over agents at work: nothing grows that does not have to.

`COLLAB_SOAK_SECONDS=1800 python -m pytest -m slow tests/console/test_soak.py -s`: a console in a terminal, the daemon
of a workflow whose agent is a process, and six agents that write without a pause; memory, descriptors, watches and
threads of console and daemon are read from `/proc`, and their table is printed. Default: 30 minutes.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from textual._styles_cache import StylesCache

from core.acp.templates import initialize
from tests.conftest import FixedClock, MakeFolder, console_script
from tests.console.pty_driver import PtyConsole, environment
from tests.console.workflow_root import WorkflowRoot
from tests.tables import publish
from tests.unit.core.workflow.stage import lay, spec
from tui.app import ConsoleApp
from tui.screens.choose import ChooseScreen
from tui.screens.collaboration import CollaborationScreen
from tui.screens.run import RunScreen

HALF_AN_HOUR = 1800.0
WARM_AFTER = 200.0
"""Seconds of quick keys, until every cache is as full as it gets; a run takes at least twice as long."""
QUICK = 0.1
"""Seconds between two of those keys: what Textual keeps of each row that it drew is full after some hundred screens."""
AGENT = """
import itertools, shutil, sys, time
from pathlib import Path
from core.acp.model import Draft
from core.acp.store import append
from core.acp.templates import initialize
from core.clock import SYSTEM

place, name, until = Path(sys.argv[1]), sys.argv[2], time.monotonic() + float(sys.argv[3])
for number in itertools.count():
    talk = place / name / str(number % 3)
    shutil.rmtree(talk, ignore_errors=True)
    initialize(talk, f"Round {number} of {name}", ["reader", name], ["Measured"], SYSTEM)
    append(talk, Draft("reader", "proposal_submitted", "Submitted.", "proposal.md", 1))
    for turn in range(40):
        if time.monotonic() > until:
            sys.exit()
        time.sleep(0.2)
        (talk / "proposal.md").write_text(f"# {name}\\n\\n" + f"Turn {turn} of round {number}.\\n" * 40)
        event = "review_submitted" if turn == 0 else "decision_proposed"
        append(talk, Draft(name if turn == 0 else "reader", event, f"Turn {turn}", None, 1))
    append(talk, Draft(name, "blocked", f"Round {number} is over", None, 1))
"""


@dataclass(frozen=True)
class Figures:
    """What a process holds: resident memory in KiB, descriptors, inotify watches, threads."""

    memory: int
    descriptors: int
    watches: int
    threads: int

    @classmethod
    def of(cls, pid: int) -> Figures:
        place = Path(f"/proc/{pid}")
        status = dict(line.split(":", 1) for line in (place / "status").read_text().splitlines())
        watches = 0
        for info in (place / "fdinfo").iterdir():
            try:
                watches += info.read_text().count("inotify wd:")
            except OSError:
                continue
        memory, threads = int(status["VmRSS"].split()[0]), int(status["Threads"])
        return cls(memory, len(os.listdir(place / "fd")), watches, threads)


@contextmanager
def daemon(root: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The engine of a workflow that starts again and again, with an agent that is a process."""
    text = spec("[a, b, c]", "{success: next_item, error: next_item}", "trigger: {every: 60s}")
    lay(root, text)
    (root / "ambient").mkdir(exist_ok=True)
    argv = json.dumps(["sh", "-c", 'cat >/dev/null; echo \'{"signal":"RETURN","payload":{"result":"ok"}}\''])
    agents = f'[agents.porter]\ntransport = "command"\nargv = {argv}\nenv = ["PATH"]\n'
    (root / "ambient" / "agents.toml").write_text(agents)
    process = subprocess.Popen(
        [console_script(), "workflow", "run", "--allow-commands", "--interval", "1s", "--root", str(root)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


def flat(name: str, found: list[Figures], warm: int) -> None:
    """From `warm` on, the second half holds no more than the first: of memory a twentieth at most."""
    steady = found[warm:]
    early, late = steady[: len(steady) // 2], steady[len(steady) // 2 :]
    for figure, slack in (("descriptors", 4), ("watches", 12), ("threads", 2)):
        before, after = (max(getattr(one, figure) for one in part) for part in (early, late))
        assert after <= before + slack, f"{name}: {figure} grew from {before} to {after}"
    before, after = (sorted(one.memory for one in part)[len(part) // 2] for part in (early, late))
    assert after <= before * 1.05 + 4096, f"{name}: memory grew from {before} to {after} KiB"


def table(seconds: float, found: Mapping[str, list[Figures]], warm: int) -> str:
    """Of each process the figures when it had begun, when it was warm, at the end, and the most."""
    lines = [
        f"| after {seconds:g} s | when | memory MiB | descriptors | watches | threads |",
        "|---|---|" + "---:|" * 4,
    ]
    for name, figures in found.items():
        for when, one in (("begun", figures[0]), ("warm", figures[warm]), ("end", figures[-1])):
            lines.append(
                f"| {name} | {when} | {one.memory // 1024} | {one.descriptors} | {one.watches} | {one.threads} |"
            )
        most = [max(getattr(one, key) for one in figures) for key in ("memory", "descriptors", "watches", "threads")]
        lines.append(f"| {name} | most | {most[0] // 1024} | {' | '.join(map(str, most[1:]))} |")
        course = " ".join(str(one.memory // 1024) for one in figures[:: len(figures) // 20 or 1])
        lines.append(f"| {name} | by twentieths | {course} | | | |")
    return "\n".join(lines)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fdinfo").is_dir(), reason="figures are read from /proc")
def test_nothing_grows(tmp_path: Path, own_home: Any) -> None:
    seconds = float(os.environ.get("COLLAB_SOAK_SECONDS", HALF_AN_HOUR))
    assert seconds >= 2 * WARM_AFTER, "too short to tell"
    work = tmp_path / "work"
    (work / "receipts").mkdir(parents=True)
    initialize(work / "sample", "The sample that stays.", ["server", "reader"], ["Measured"], FixedClock())
    with ExitStack() as stack:
        engine = stack.enter_context(daemon(work / "flow"))
        for number in range(6):
            argv = [sys.executable, "-c", AGENT, str(work), f"agent{number}", str(seconds + 5)]
            agent = stack.enter_context(subprocess.Popen(argv, stdin=subprocess.DEVNULL))
            stack.callback(agent.kill)
        console = PtyConsole(str(work), "--as", "reader", environ=environment(tmp_path), size=(120, 40))
        stack.callback(console.close)
        console.sees("waiting", patience=60)
        found: dict[str, list[Figures]] = {"console": [], "daemon": []}
        keys = cycle(
            ("2", "down", "down", "enter", ">", ">", "q", "4", "enter", "q", "1", "down", "n", "q", "?", "esc")
        )
        begun, rest, warm = time.monotonic(), max(0.5, seconds / 200), 0
        while (gone := time.monotonic() - begun) < seconds:
            if gone < WARM_AFTER:
                warm += 1
            for _ in range(4 if gone >= WARM_AFTER else round(rest / QUICK)):
                console.press(next(keys))
                time.sleep(rest / 4 if gone >= WARM_AFTER else QUICK)
            assert console.process.poll() is None, f"it ended after {gone:.0f} s:\n{console.text}"
            # The screen's bytes are of no use here.
            console.output.clear()
            found["console"].append(Figures.of(console.process.pid))
            found["daemon"].append(Figures.of(engine.pid))
        assert engine.poll() is None
        shown = console.press_until("1", lambda text: "Inbox" in text)
        assert "internal" not in shown
        assert console.end() == 0
    shown = table(seconds, found, warm)
    print(f"\n{shown}")
    for name, figures in found.items():
        flat(name, figures, warm)
    publish("soak", shown)


async def test_closed_screens_leave_nothing(
    console: Callable[..., ConsoleApp], make_folder: MakeFolder, until: Any
) -> None:
    make_folder("talk")
    app = console(me="reader")

    def kept() -> int:
        gc.collect()
        return sum(isinstance(one, StylesCache) for one in gc.get_objects())

    async with app.run_test(size=(120, 36)) as pilot:
        held = []
        for _ in range(6):
            await pilot.press("2")
            await until(pilot, lambda: app.current_mode == "collaborations" and len(app.screen_stack) == 1)
            held.append(kept())
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, CollaborationScreen))
            await pilot.pause()
        # A screen that closes may be drawn once more on its way out; nothing of those before it is there.
        assert held[-1] <= held[2] + 5, held


async def test_a_screen_that_is_closed_before_it_has_begun_is_no_fault(
    console: Callable[..., ConsoleApp], make_folder: MakeFolder, until: Any, clock: Any
) -> None:
    talk = make_folder("talk")
    root = WorkflowRoot(talk.parent / "flow", clock)
    run_id = root.start()
    app = console(me="reader")
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: app.complete)
        for _ in range(3):
            for screen in (CollaborationScreen(talk), RunScreen(root.path, run_id), ChooseScreen("who", [])):
                app.push_screen(screen)
                app.pop_screen()
                await pilot.pause()
        await pilot.press("2")
        await until(pilot, lambda: app.current_mode == "collaborations")
    assert not app.return_code


def test_what_grows_would_be_told() -> None:
    steady = [Figures(80_000, 20, 30, 8)] * 40
    flat("steady", steady, 4)
    for grown in (
        [Figures(80_000 + 1000 * n, 20, 30, 8) for n in range(40)],
        [Figures(80_000, 20 + n, 30, 8) for n in range(40)],
        [Figures(80_000, 20, 30 + n, 8) for n in range(40)],
        [Figures(80_000, 20, 30, 8 + n // 4) for n in range(40)],
    ):
        with pytest.raises(AssertionError):
            flat("grown", grown, 4)
