"""Rows of the protocol: append, a whole collaboration, wait, validate (docs/design.md §6)."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from types import ModuleType

from harness import COLLAB, PYTHON, Row, Samples, init, reference, run, scratch, timed

from core.acp.check import check

TURNS = (("server", "proposal_submitted"), ("reader", "review_submitted"))


def ours_append(folder: Path, who: str, event: str, seq: int) -> list[str]:
    words = [COLLAB, "append", "--folder", str(folder), "--participant", who, "--event", event]
    return [*words, "--summary", "A short sentence", "--reply-to", str(seq)]


def theirs_append(scripts: Path, folder: Path, who: str, event: str, seq: int) -> list[str]:
    return [PYTHON, str(scripts / "append_event.py"), *ours_append(folder, who, event, seq)[2:]]


def append_row() -> Row:
    """`collab append` as a whole process, log of 30 events, against the reference's script."""
    name, budget = "one append, whole process, 30 events", "≤ 5 ×"
    scripts = reference()
    ours, theirs, ratios = Samples(), Samples(), Samples(unit="×")
    with scratch() as folder:
        for place in ("a", "b"):
            init(folder / place, ("server", "reader"))
        seq = 1
        for turn in range(60):
            who, event = TURNS[turn % 2]
            measured = turn >= 30
            mine = timed(partial(run, *ours_append(folder / "a", who, event, seq)))
            if scripts is not None:
                other = timed(partial(run, *theirs_append(scripts, folder / "b", who, event, seq)))
                if measured:
                    theirs.add(other)
                    ratios.add(mine / other)
            if measured:
                ours.add(mine)
            seq += 1
    if scripts is None:
        return Row(name, ours.text(), "ACP_REFERENCE_V1 is not set", "–", budget, None)
    return Row(name, ours.text(), theirs.text(), f"{ratios.median:.2f} ×", budget, ratios.median <= 5)


def _agent_ours(folder: Path, who: str, log: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([PYTHON, str(Path(__file__).parent / "agent_ours.py"), COLLAB, str(folder), who, str(log)])


def _agent_theirs(scripts: Path, folder: Path, who: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([PYTHON, str(Path(__file__).parent / "agent_reference.py"), str(scripts), str(folder), who])


def collaboration_row() -> Row:
    """Four participants without thinking time: one process a turn against wait, next, append at their defaults."""
    name, budget = "a collaboration of 4, no thinking time", "≥ 2 × faster"
    people = ("server", "reader", "security", "ops")
    scripts = reference()
    ours, theirs = Samples(unit="s"), Samples(unit="s")
    for _ in range(3):
        with scratch() as folder:
            init(folder / "c", people)
            started = time.perf_counter()
            agents = [_agent_ours(folder / "c", who, folder / f"{who}.log") for who in people]
            if any(agent.wait(timeout=120) != 0 for agent in agents):
                raise RuntimeError("a participant failed")
            ours.add(time.perf_counter() - started)
            if scripts is not None:
                init(folder / "d", people)
                started = time.perf_counter()
                agents = [_agent_theirs(scripts, folder / "d", who) for who in people]
                if _all_ended(agents, 90):
                    theirs.add(time.perf_counter() - started)
    if scripts is None or not theirs.values:
        why = "ACP_REFERENCE_V1 is not set" if scripts is None else "did not come to its end"
        return Row(name, ours.text(), why, "–", budget, None)
    ratio = theirs.median / ours.median
    return Row(name, ours.text(), theirs.text(), f"{ratio:.1f} × faster", budget, ratio >= 2)


def _all_ended(agents: list[subprocess.Popen[bytes]], seconds: float) -> bool:
    """Whether all came to their end in time; the reference may lose an event when two append at once."""
    deadline = time.perf_counter() + seconds
    fine = True
    for agent in agents:
        try:
            fine = agent.wait(timeout=max(0.1, deadline - time.perf_counter())) == 0 and fine
        except subprocess.TimeoutExpired:
            fine = False
            agent.kill()
            agent.wait()
    return fine


def wait_row() -> Row:
    """From another process's append to the line `ready:` of a running `collab wait`."""
    samples = Samples()
    with scratch() as folder:
        place = folder / "c"
        init(place, ("server", "reader"))
        seq = 1
        for turn in range(40):
            who, event = TURNS[turn % 2]
            other = TURNS[(turn + 1) % 2][0]
            words = [COLLAB, "wait", "--folder", str(place), "--participant", other]
            with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, bufsize=1) as waiter:
                assert waiter.stdout is not None
                while not waiter.stdout.readline().startswith("waiting:"):
                    pass
                _until_watching(waiter.pid)
                # The moment the event is in the log is what counts, not the end of the process that wrote it.
                before = (place / "protocol.json").stat().st_mtime_ns
                run(*ours_append(place, who, event, seq))
                while not waiter.stdout.readline().startswith("ready:"):
                    pass
                woke = time.time_ns()
                written = (place / "events.jsonl").stat().st_mtime_ns
                assert before < written
                samples.add((woke - written) / 1e9)
                waiter.stdout.read()
            seq += 1
    holds = samples.median <= 0.030 and samples.high <= 0.100
    return Row("`wait` wakes after an append", samples.text(), "–", "–", "median 30 ms, 95 % 100 ms", holds)


def _until_watching(pid: int) -> None:
    """Until the process has its inotify instance: `once running` means watching."""
    deadline = time.perf_counter() + 10
    while time.perf_counter() < deadline:
        for entry in os.listdir(f"/proc/{pid}/fd"):
            try:
                if "inotify" in os.readlink(f"/proc/{pid}/fd/{entry}"):
                    return
            except OSError:
                continue
        time.sleep(0.002)


def big_folder(folder: Path, count: int) -> Path:
    """A valid folder of `count` events, rounds of proposal and review."""
    init(folder, ("server", "reader"))
    lines, headings, seq = [(folder / "events.jsonl").read_text()], ["# Review\n"], 1
    while seq < count:
        who, event = TURNS[(seq - 1) % 2]
        seq += 1
        at = f"2027-01-{1 + seq // 8640:02d}T{seq // 360 % 24:02d}:{seq // 6 % 60:02d}:{seq % 6}0Z"
        record = {"seq": seq, "from": who, "event": event, "at": at, "summary": f"Event {seq}", "reply_to": seq - 1}
        lines.append(json.dumps(record, separators=(",", ":")) + "\n")
        if event == "review_submitted":
            headings.append(f"## {at} - {who} - seq {seq}\n\nPosition:\n- Fine.\n")
    (folder / "events.jsonl").write_text("".join(lines))
    (folder / "review.md").write_text("\n".join(headings))
    (folder / ".collab" / "history.jsonl").unlink(missing_ok=True)
    run(COLLAB, "repair", "--folder", str(folder))
    return folder


def _load(scripts: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("_acp", scripts / "_acp.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["_acp"] = module
    spec.loader.exec_module(module)
    return module


def validate_rows() -> list[Row]:
    """Validating in process, 5,000 and 10,000 events: the ratio, and whether it grows faster."""
    scripts = reference()
    found: list[Row] = []
    growth: dict[str, list[float]] = {"ours": [], "theirs": []}
    with scratch() as folder:
        module = _load(scripts) if scripts is not None else None
        for count in (5000, 10000):
            place = big_folder(folder / str(count), count)
            ours, theirs, ratios = Samples(), Samples(), Samples(unit="×")
            for turn in range(9):
                mine = timed(partial(check, place))
                if turn:
                    ours.add(mine)
                if module is not None:
                    other = timed(partial(module.validate_folder, place))
                    if turn:
                        theirs.add(other)
                        ratios.add(mine / other)
            growth["ours"].append(ours.median)
            name = f"validate {count:,} events in process"
            if module is None:
                found.append(Row(name, ours.text(), "ACP_REFERENCE_V1 is not set", "–", "≤ 2 ×", None))
            else:
                growth["theirs"].append(theirs.median)
                ratio = ratios.median
                found.append(Row(name, ours.text(), theirs.text(), f"{ratio:.2f} ×", "≤ 2 ×", ratio <= 2))
    mine = growth["ours"][1] / growth["ours"][0]
    if growth["theirs"]:
        other = growth["theirs"][1] / growth["theirs"][0]
        row = Row(
            "… growth from 5,000 to 10,000",
            f"× {mine:.2f}",
            f"× {other:.2f}",
            f"{mine / other:.2f}",
            "no faster",
            mine <= other * 1.15,
        )
    else:
        row = Row(
            "… growth from 5,000 to 10,000", f"× {mine:.2f}", "ACP_REFERENCE_V1 is not set", "–", "no faster", None
        )
    return [*found, row]
