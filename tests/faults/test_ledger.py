"""Every writing verb of a plan's record, killed and failed at each fault point (docs/specs/delegation.md §4)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from core.delegation import store
from core.delegation.gates import Gate, gate
from core.delegation.verify import verify
from core.finding import errors
from tests.unit.core.delegation.builders import DIGEST, Bench, draft
from tui.cli import main

HARNESS = Path(__file__).parent / "ledger_harness.py"
PLAN = "repo/.dwp/plans/PLAN_unit_sample"
MODES = ("kill", "ENOSPC", "EIO")


def launch(name: str, **fields: Any) -> str:
    known = {"transport": "headless", "via": "agentkit", "prompt_digest": DIGEST, "delegation_id": name}
    return json.dumps({**known, **fields})


def nothing(_: Bench) -> None:
    return None


def begun(bench: Bench) -> None:
    bench.begin()


def launched(bench: Bench) -> None:
    bench.begin()
    assert bench.launch("d1").ok


def looking(bench: Bench) -> None:
    bench.git()
    bench.begin("T-plain")
    assert bench.launch("d1", "T-plain", worktree=None).ok
    (bench.repo / "src" / "b").write_text("b = 2\n")


def gated(bench: Bench) -> None:
    launched(bench)
    assert gate(bench.place, bench.world, Gate("T-mark", "AC-one", ["false"])).exit == 1


def wordy(bench: Bench) -> None:
    acceptance = draft()["acceptance"]
    acceptance["criteria"][0]["accepted_evidence"] = ["asserted"]
    bench.begin(acceptance=acceptance)


def torn(bench: Bench) -> None:
    bench.begin()
    with bench.journal.open("ab") as log:
        log.write(b'{"schema": "https://deepw\xc3')


def unframed(bench: Bench) -> None:
    bench.begin()
    bench.journal.write_bytes(bench.journal.read_bytes()[:-1])


@dataclass(frozen=True)
class Verb:
    """One verb of the table: how its stage is made, its arguments, its exit code, the types of what it writes.

    `again` is the exit code once it has happened; what `mends` writes its first event alone as well; what `fails` is
    also disturbed by a full disk.
    """

    name: str
    stage: Callable[[Bench], None]
    argv: tuple[str, ...]
    types: tuple[str, ...]
    status: int = 0
    again: int = 0
    mends: bool = False
    fails: bool = False


SEEN = json.dumps({"statement": "seen", "trust": "asserted"})
TABLE = (
    Verb("materialize", nothing, ("materialize", "--contract", "{stage}/draft.json"), ("approval",)),
    Verb("start", begun, ("start", "--task", "T-plain"), ("task_start",)),
    Verb("append", begun, ("append", "--type", "observation", "--json", SEEN, "--idempotent"), ("observation",)),
    Verb(
        "gate",
        begun,
        ("gate", "--task", "T-mark", "--criterion", "AC-one", "--json", '["true"]'),
        ("gate_run",),
        fails=True,
    ),
    Verb(
        "signoff",
        wordy,
        ("signoff", "--criterion", "AC-one", "--evidence-path", "README.md", "--authority", "Ada"),
        ("gate_run",),
    ),
    Verb(
        "launch",
        begun,
        ("delegate", "launch", "--task", "T-mark", "--json", launch("d1")),
        ("delegation",),
        again=5,
    ),
    Verb(
        "refused launch",
        begun,
        ("delegate", "launch", "--task", "T-plain", "--json", launch("d1")),
        ("refusal",),
        status=5,
        again=5,
    ),
    Verb(
        "collect",
        launched,
        ("delegate", "collect", "--task", "T-mark", "--json", '{"delegation_id":"d1","state":"completed"}'),
        ("delegation",),
        again=5,
    ),
    Verb(
        "collect with a changed tree",
        looking,
        ("delegate", "collect", "--task", "T-plain", "--json", '{"delegation_id":"d1","state":"completed"}'),
        ("delegation", "refusal"),
        status=5,
        again=5,
        fails=True,
    ),
    Verb(
        "cancel",
        launched,
        ("delegate", "cancel", "--task", "T-mark", "--json", '{"delegation_id":"d1"}'),
        ("delegation",),
        again=5,
    ),
    Verb("refused completion", gated, ("complete", "--task", "T-mark"), ("refusal",), status=4, again=4),
    Verb("roll", launched, ("roll",), (), again=1, fails=True),
    Verb("mend a tail", torn, ("start", "--task", "T-plain"), ("journal_repair", "task_start"), mends=True),
    Verb("mend a newline", unframed, ("start", "--task", "T-plain"), ("journal_repair", "task_start"), mends=True),
)


def harness(mode: str, scratch: Path, template: Path, argv: tuple[str, ...]) -> list[dict[str, Any]]:
    """All runs of a verb in one mode; the last one is undisturbed."""
    done = subprocess.run(
        [sys.executable, str(HARNESS), mode, str(scratch), str(template), *argv],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def whole(plan: Path) -> list[dict[str, Any]]:
    """All events of archives and journal that can be read."""
    found = []
    for path in [*sorted(plan.glob("journal-archive-*")), plan / "journal.ndjson"]:
        for line in path.read_bytes().split(b"\n") if path.exists() else ():
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
    return found


def say(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str]:
    capsys.readouterr()
    status = main(list(argv))
    captured = capsys.readouterr()
    said = captured.out + captured.err
    assert "unexpected" not in said, said
    return status, said


def stage(verb: Verb, place: Path) -> Path:
    bench = Bench(place)
    (place / "draft.json").write_text(json.dumps(draft()))
    verb.stage(bench)
    return place


@pytest.mark.parametrize("verb", TABLE, ids=lambda verb: verb.name)
def test_each_point_of_each_verb(
    verb: Verb, quick_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    template = stage(verb, quick_path / "template")
    start = whole(template / PLAN)
    thorough = verb.name == "append"
    modes = MODES if thorough else MODES[: 1 + verb.fails]
    for mode in modes:
        (quick_path / mode).mkdir()
    argv = ("ledger", "--plan", f"{{stage}}/{PLAN}", *verb.argv)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        played = list(pool.map(lambda mode: harness(mode, quick_path / mode, template, argv), modes))
    points = {(run["operation"], run["name"].partition("-")[0]) for runs in played for run in runs if run["name"]}
    assert {("rename", ".ledger.lock"), ("fsync", "journal.ndjson")} <= points
    for mode, (*disturbed, last) in zip(modes, played, strict=True):
        assert last["status"] == verb.status, last
        assert len(disturbed) > 8
        for run in disturbed:
            if run["name"].startswith(".ledger.lock") and not thorough:
                # Taking and leaving the lock is the same for every verb.
                continue
            label = f"{verb.name} at {mode} {run['n']} {run['operation']} {run['name']}"
            plan = quick_path / mode / str(run["n"]) / PLAN
            monkeypatch.setenv("PATH", f"{plan.parents[3] / 'bin'}:/usr/local/bin:/usr/bin:/bin")
            check_run(verb, start, run, plan, capsys, label)


def check_run(
    verb: Verb, start: list[Any], run: dict[str, Any], plan: Path, capsys: pytest.CaptureFixture[str], label: str
) -> None:
    assert "Traceback" not in run["err"], run
    assert "unexpected" not in run["err"], run
    killed = run["status"] is None
    here = ("ledger", "--plan", str(plan))
    added = [event["type"] for event in whole(plan)[len(start) :]]
    assert whole(plan)[: len(start)] == start, label
    allowed = [(), verb.types, *([verb.types[:1]] if verb.mends else [])]
    assert tuple(added) in allowed, f"{label}: {added}"
    if not killed:
        assert not [name for name in os.listdir(plan) if name.startswith(".ledger.lock")], f"{label}: {run}"
        assert run["status"] in (verb.status, 1), f"{label}: {run}"
        if run["status"] == verb.status:
            assert tuple(added) == verb.types, label
        else:
            assert run["err"].startswith("ERROR: "), f"{label}: {run}"
    if (plan / "contract.json").exists():
        before = {path: path.read_bytes() for path in plan.rglob("*") if path.is_file()}
        assert say(capsys, *here, "inspect", "-o", "json")[0] == 0, label
        assert say(capsys, *here, "verify")[0] in (0, 1, 2), label
        assert {path: path.read_bytes() for path in plan.rglob("*") if path.is_file()} == before, label
    # The next writer needs nobody: first the same verb again, then any other.
    words = [word.replace("{stage}", str(plan.parents[3])) for word in verb.argv]
    happened = verb.types == tuple(added) if verb.types else bool(list(plan.glob("journal-archive-*")))
    status, said = say(capsys, *here, *words)
    assert status == (verb.again if happened else verb.status), f"{label}: {said}"
    assert say(capsys, *here, "append", "--type", "observation", "--json", SEEN)[0] == 0, label
    assert not [name for name in os.listdir(plan) if name.startswith(".ledger.lock")], label
    events = whole(plan)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1)), label
    if verb.types and verb.again == 0 and not verb.mends:
        assert [event["type"] for event in events[len(start) :]] in (
            [*verb.types, "observation"],
            [*verb.types, *verb.types, "observation"],
        ), label
    report = verify(store.Place(plan, plan.parents[2], plan.parents[1] / "config.json"))
    assert errors(finding for _, finding in report.findings) == [], label


def test_switching_an_addon(quick_path: Path) -> None:
    """The registry is the old one or the new one, whole, at whatever point."""
    template = stage(TABLE[1], quick_path / "template")
    old = json.loads((template / "repo/.dwp/config.json").read_text())
    new = {"addons": {**old["addons"], "herdr": {"enabled": True}}}
    for mode in MODES[:2]:
        (quick_path / mode).mkdir()
        *disturbed, last = harness(
            mode, quick_path / mode, template, ("addons", "enable", "herdr", "--repo", "{stage}/repo")
        )
        assert last["status"] == 0
        assert disturbed
        for run in disturbed:
            found = json.loads((quick_path / mode / str(run["n"]) / "repo/.dwp/config.json").read_text())
            assert found in (old, new)
            assert run["status"] in (None, 2)
            assert run["status"] is None or found == old or run["operation"] == "fsync_dir"


def test_the_harness_would_tell(quick_path: Path) -> None:
    template = stage(TABLE[1], quick_path / "template")
    (quick_path / "kill").mkdir()
    argv = ("ledger", "--plan", f"{{stage}}/{PLAN}", "append", "--type", "observation", "--json", SEEN)
    runs = harness("kill", quick_path / "kill", template, argv)
    writes = [run for run in runs if (run["operation"], run["name"]) == ("write", "journal.ndjson")]
    assert [run["status"] for run in writes] == [None]
    assert (quick_path / "kill" / str(writes[0]["n"]) / PLAN / ".ledger.lock" / "owner.json").exists()
    shutil.rmtree(quick_path / "kill")
