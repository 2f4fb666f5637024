"""`collab demo`: a sample workspace whose other participants are separate processes using the verbs."""

from __future__ import annotations

import argparse
import json
import pkgutil
import random
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Any

from core.acp import reader, view
from core.files import explain
from core.finding import Refused, error
from core.watch import Watcher

from tui.cli.base import DONE, REFUSED, Command, Out, Parser, folder_path

YOU = "reader"
LIVE, YOURS, BLOCKED, DONE_ONE = "release-plan", "cache-design", "queue-choice", "log-format"
WORKFLOW = "workflow"
"""The sample that is no collaboration: a run of pages, its engine and its agent."""
PLAN = "plan"
"""The other one: a plan whose parent delegates to a script."""
PACE = (4.0, 9.0)
"""Seconds between two acts of one participant at speed 1."""


def _arguments(parser: Parser) -> None:
    parser.add_argument("--folder", type=folder_path, help="where to make the workspace (default: a temporary folder)")
    parser.add_argument("--speed", type=float, default=1.0, help="how much faster than people the participants act")
    parser.add_argument("--headless", action="store_true", help="play one collaboration to its end and print its log")
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII glyphs only")
    parser.add_argument("--theme", help="dark, light or high-contrast")
    parser.add_argument("--act-as", help=argparse.SUPPRESS)
    parser.add_argument("--sample", help=argparse.SUPPRESS)


def samples() -> dict[str, Any]:
    """The shipped sample collaborations by name."""
    data = pkgutil.get_data("collab_templates", "demo/samples.json") or b"{}"
    made: dict[str, Any] = json.loads(data)
    return made


def _run(args: argparse.Namespace, out: Out) -> int:
    from tui.cli.console import open_console, terminal_finding

    if not args.speed > 0:
        raise Refused(error("speed_wrong", "--speed must be above 0", None, "--speed"))
    if args.sample in (WORKFLOW, PLAN):
        return _serve(args)
    if args.act_as:
        return _participate(args)
    headless = args.headless or out.as_json or terminal_finding() is not None
    with _workspace(args.folder) as folder:
        if headless:
            return _play_headless(folder, out)
        from tui.cli import demo_plan, demo_workflow

        build(folder)
        demo_plan.build(folder)
        demo_workflow.build(folder, YOU)
        with participants(folder, args.speed):
            return open_console([folder], YOU, args.ascii, args.theme)


@contextmanager
def _workspace(folder: Path | None) -> Iterator[Path]:
    with ExitStack() as stack:
        yield _made(folder, stack)


def _made(folder: Path | None, stack: ExitStack) -> Path:
    try:
        if folder is None:
            temporary = tempfile.TemporaryDirectory(prefix="collab-demo-", ignore_cleanup_errors=True)
            return Path(stack.enter_context(temporary))
        if folder.exists() and any(folder.iterdir()):
            cause = f"{folder} is not empty; the demo makes its workspace in a folder of its own"
            raise Refused(error("folder_not_empty", cause, "collab demo", "--folder"))
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise Refused(explain(exc, str(folder or "a temporary folder"))) from None
    return folder


class Actor:
    """One scripted participant of one folder, acting through the verbs."""

    def __init__(self, folder: Path, who: str, sample: Mapping[str, Any]) -> None:
        self.folder, self.who, self.sample = folder, who, sample

    def verb(self, name: str, *words: str) -> int:
        """Run a verb in this process, without its output."""
        from tui.cli import main

        said, sys.stdout = sys.stdout, StringIO()
        try:
            return main([name, "--folder", str(self.folder), *words])
        finally:
            sys.stdout = said

    def guided(self, name: str, *words: str) -> int:
        return self.verb(name, "--as", self.who, *words)

    def with_text(self, name: str, text: str) -> int:
        """A guided verb with a document's text from a file."""
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".md") as handle:
            handle.write(text)
            handle.flush()
            return self.guided(name, "--file", handle.name)

    def init(self) -> int:
        words: list[str] = ["--objective", self.sample["objective"]]
        for name in self.sample["participants"]:
            words += ["--participant", name]
        for gate in self.sample["gates"]:
            words += ["--completion", gate]
        return self.verb("init", *words)

    def act(self) -> int:
        """Do what is next for this participant; 2 when it could not be done."""
        snapshot = reader.read(self.folder)
        action = view.next_action(snapshot, self.who)
        sample = self.sample
        match action.event:
            case "proposal_submitted":
                return self.with_text("submit", sample["proposal"])
            case "review_submitted":
                return self.guided("review", *self._review())
            case "proposal_revised":
                revised = snapshot.document("proposal.md").text + sample.get("revision", "")
                return self.with_text("revise", revised)
            case "question_classified" if snapshot.last("decision_proposed") is None:
                return self.with_text("propose", sample["decisions"])
            case "question_classified":
                words = [word for text in sample["resolved"] for word in ("--resolve", text)]
                words += [word for text in sample["deferred"] for word in ("--defer", text)]
                return self.guided("classify", *words)
            case "decision_accepted":
                return self.guided("accept")
            case "readiness_passed":
                return self.guided("ready", "--tick-all")
            case "completed":
                parts = ("--outcome", sample["outcome"], "--rationale", sample["rationale"], "--next", sample["next"])
                return self.guided("complete", *parts)
        return REFUSED

    def _review(self) -> list[str]:
        review = self.sample["reviews"].get(self.who, {"position": "In favour"})
        words = ["--position", review["position"]]
        for flag in ("concern", "change", "question"):
            for text in review.get(flag, []):
                words += [f"--{flag}", text]
        return words


def play(folder: Path, sample: Mapping[str, Any], until: str | None = None) -> None:
    """Play a sample in this process, at once, to the phase `until` or to its end."""
    people: Sequence[str] = sample["participants"]
    actors = {name: Actor(folder, name, sample) for name in people}
    if actors[people[0]].init() != DONE:
        raise Refused(error("demo_failed", f"the sample in {folder} could not be started"))
    while not (state := reader.read(folder).state).terminal and state.phase != until:
        if actors[state.waiting[0]].act() != DONE:
            raise Refused(error("demo_failed", f"the sample in {folder} stopped in phase {state.phase}"))


def build(folder: Path) -> None:
    """The workspace: one waits for you, one is blocked, one is completed, one has just begun and moves."""
    known = samples()
    yours, blocked = known[YOURS], known[BLOCKED]
    play(folder / YOURS, yours, "reviewing")
    Actor(folder / YOURS, "security", yours).act()
    play(folder / BLOCKED, blocked, "reviewing")
    Actor(folder / BLOCKED, blocked["block_by"], blocked).guided("block", "--reason", blocked["block"])
    play(folder / DONE_ONE, known[DONE_ONE])
    Actor(folder / LIVE, "planner", known[LIVE]).init()


@contextmanager
def participants(folder: Path, speed: float) -> Iterator[None]:
    """Everybody but you, each a process of its own; they end with this one, however it ends."""
    from tui.cli import demo_plan, demo_workflow

    known = samples()
    started: list[subprocess.Popen[bytes]] = []
    try:
        for name in (LIVE, YOURS):
            for who in known[name]["participants"]:
                if who != YOU:
                    started.append(_start(folder / name, who, name, speed))
        if (folder / demo_workflow.PLACE).is_dir():
            started.append(_start(folder / demo_workflow.PLACE, demo_workflow.AGENT, WORKFLOW, speed))
        if (folder / demo_plan.PLACE).is_dir():
            started.append(_start(folder / demo_plan.PLACE, demo_plan.PARENT, PLAN, speed))
        yield
    finally:
        for process in started:
            if process.stdin is not None:
                process.stdin.close()
        for process in started:
            try:
                process.wait(timeout=2)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _start(folder: Path, who: str, sample: str, speed: float) -> subprocess.Popen[bytes]:
    # Isolated: the workspace that is current may hold a package of the same name as ours.
    command = [sys.executable, "-I", "-c", "from tui.cli import run; run()", "demo", "--act-as", who]
    command += ["--sample", sample, "--folder", str(folder), "--speed", str(speed)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def _participate(args: argparse.Namespace) -> int:
    """One scripted participant: waits for its turn, takes its time, acts. Ends when its standard input ends."""
    stop = threading.Event()
    threading.Thread(target=_until_eof, args=(stop,), daemon=True).start()
    sample = samples()[args.sample]
    pace = random.Random(f"{args.act_as}-{args.sample}")  # noqa: S311 - a pace, not a secret
    actor = Actor(args.folder, args.act_as, sample)
    fails = 0
    for _ in chain([frozenset[Path]()], Watcher(lambda: [args.folder], stop)):
        while not stop.is_set():
            state = reader.read(args.folder).state
            if state.terminal:
                return DONE
            if args.act_as not in state.waiting:
                break
            if stop.wait(pace.uniform(*PACE) / args.speed):
                return DONE
            if actor.act() != DONE:
                fails += 1
                if fails > 20:
                    return REFUSED
                break
    return DONE


def _serve(args: argparse.Namespace) -> int:
    """The engine of the sample workflow and its agent, or the parent of the sample plan. Ends with standard input."""
    from tui.cli import demo_plan, demo_workflow

    stop = threading.Event()
    threading.Thread(target=_until_eof, args=(stop,), daemon=True).start()
    if args.sample == PLAN:
        return demo_plan.serve(args.folder, args.speed, stop)
    return demo_workflow.serve(args.folder, args.speed, stop)


def _until_eof(stop: threading.Event) -> None:
    """The parent holds the other end of this pipe; when it is gone, so are we."""
    while sys.stdin.buffer.read(1):
        pass
    stop.set()


def _play_headless(folder: Path, out: Out) -> int:
    """One collaboration to `completed`, three participants in three processes, and its log."""
    sample = samples()[LIVE]
    target = folder / LIVE
    if Actor(target, sample["participants"][0], sample).init() != DONE:
        raise Refused(error("demo_failed", f"the sample in {target} could not be started"))
    out.line(f"{', '.join(sample['participants'])} decide: {sample['objective']}")
    out.flush()
    started = [_start(target, who, LIVE, 1000.0) for who in sample["participants"]]
    try:
        for process in started:
            process.wait(timeout=120)
    except subprocess.TimeoutExpired:
        raise Refused(error("demo_failed", "the participants did not come to an end within 120 s")) from None
    finally:
        for process in started:
            if process.stdin is not None:
                process.stdin.close()
            process.kill()
            process.wait()
    snapshot = reader.read(target)
    from tui.cli import demo_plan, demo_workflow
    from tui.cli.folder import log_line

    for event in snapshot.events:
        out.line(log_line(event, 2, 7))
    bad = [item for item in snapshot.findings if item.severity == "error"]
    out.notes(bad)
    out.line(f"phase: {snapshot.state.phase}")
    out.put(phase=snapshot.state.phase, events=[dict(event.raw) for event in snapshot.events])
    out.put(plan=demo_plan.play(folder, out))
    out.put(run=demo_workflow.play(folder, YOU, out))
    return DONE if snapshot.state.phase == "completed" and not bad else REFUSED


COMMANDS = {
    "demo": Command(
        "demo",
        "a live sample workspace; without a terminal it plays one collaboration",
        _arguments,
        _run,
    )
}
