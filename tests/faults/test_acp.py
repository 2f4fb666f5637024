"""Every writing verb of a collaboration, killed and failed at each of its fault points (docs/specs/acp.md §6)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from core.acp.reader import read
from tui.cli import main

HARNESS = Path(__file__).parent / "harness.py"
MARK = "Marked text that must not be lost"
PROPOSAL, DECISIONS = f"# Proposal\n\n{MARK}.\n", f"# Decisions\n\n- {MARK}.\n"


@dataclass(frozen=True)
class Verb:
    """One verb of the table: its arguments (files are texts of `{name}`), and the document that it writes."""

    name: str
    argv: tuple[str, ...]
    document: str | None = None


INIT = [
    "init",
    "--folder",
    "{folder}",
    "--participant",
    "server",
    "--participant",
    "reader",
    "--objective",
    "Cache",
    "--completion",
    "Measured",
]
WAY = (
    Verb("submit", ("submit", "--as", "server", "--file", "{proposal}"), "proposal.md"),
    Verb("review", ("review", "--as", "reader", "--position", MARK, "--change", "Name the policy"), "review.md"),
    Verb("revise", ("revise", "--as", "server", "--file", "{revised}"), "proposal.md"),
    Verb("propose", ("propose", "--as", "server", "--file", "{decisions}"), "decisions.md"),
    Verb("classify", ("classify", "--as", "server", "--resolve", MARK), "readiness.md"),
    Verb("accept with a text", ("accept", "--as", "server", "--file", "{accepted}"), "decisions.md"),
    Verb("accept", ("accept", "--as", "reader")),
    Verb("ready", ("ready", "--as", "server", "--tick-all"), "readiness.md"),
    Verb(
        "complete",
        ("complete", "--as", "server", "--outcome", "proceed", "--rationale", MARK, "--next", "Open it"),
        "conclusion.md",
    ),
)
"""The guided verbs in the order in which a collaboration needs them: each begins where the one before it ended."""

RAW = (
    Verb(
        "append",
        ("append", "--participant", "server", "--event", "proposal_submitted", "--summary", MARK, "--reply-to", "1"),
    ),
    Verb("block", ("block", "--as", "server", "--reason", MARK)),
)
"""Verbs that begin in a new folder."""

MODES = ("kill", "ENOSPC", "EIO", "EACCES")


def words(verb: Verb, texts: Path, folder: Path | str) -> list[str]:
    """Its whole command line."""
    named = {f"{{{path.stem}}}": str(path) for path in texts.iterdir()}
    first, *rest = [named.get(word, word) for word in verb.argv]
    return [first, "--folder", str(folder), *rest]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("texts")
    (place / "proposal.md").write_text(PROPOSAL)
    (place / "revised.md").write_text(PROPOSAL + "\nRevised.\n")
    (place / "decisions.md").write_text(DECISIONS)
    (place / "accepted.md").write_text(DECISIONS + "- And this.\n")
    return place


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory, texts: Path) -> dict[str, Path]:
    """For each verb the folder in which it begins."""
    place = tmp_path_factory.mktemp("starts")
    folder = place / "way"
    assert main([word.replace("{folder}", str(folder)) for word in INIT]) == 0
    found = {}
    for verb in RAW:
        found[verb.name] = shutil.copytree(folder, place / verb.name / "talk")
    for verb in WAY:
        found[verb.name] = shutil.copytree(folder, place / verb.name / "talk")
        assert main(words(verb, texts, folder)) == 0, verb.name
    return found


def harness(mode: str, scratch: Path, template: Path, argv: list[str]) -> list[dict[str, Any]]:
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


def events(folder: Path) -> list[Any]:
    return [json.loads(line) for line in (folder / "events.jsonl").read_bytes().splitlines()]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def say(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str]:
    """Run a verb in this process; (status, everything that it said)."""
    capsys.readouterr()
    status = main(argv)
    captured = capsys.readouterr()
    said = captured.out + captured.err
    assert "unexpected" not in said, said
    return status, said


READERS = (
    ("validate",),
    ("next", "--participant", "server"),
    ("show",),
)


def check_readers(folder: Path, capsys: pytest.CaptureFixture[str], label: str) -> None:
    """Reading verbs answer, and write nothing."""
    before = contents(folder)
    for verb, *rest in READERS:
        status, said = say(capsys, verb, "--folder", str(folder), *rest)
        assert status in ((0, 1, 2) if verb == "validate" else (0, 1)), f"{label}: {verb}: {said}"
    assert contents(folder) == before, label


def check_settled(verb: Verb, start: Path, folder: Path, label: str, said: str, acknowledged: bool) -> None:
    """Document and event are both there or both not, no text is lost, and what could not be used is named."""
    before, after = events(start), events(folder)
    assert after[: len(before)] == before, label
    happened = len(after) > len(before)
    assert len(after) - len(before) <= 1, label
    assert happened or not acknowledged, label
    if verb.document is not None:
        old, new = (start / verb.document).read_bytes(), (folder / verb.document).read_bytes()
        assert (new != old) == happened, f"{label}: {verb.document}\n{said}"
        kept = {path.read_bytes() for path in (folder / ".collab").rglob("*") if path.is_file()}
        assert old == new or old in kept, label
        drafts = list((folder / ".collab/damaged").glob("draft-*"))
        assert all(draft.name in said for draft in drafts), f"{label}: {said}"
        assert not (drafts and happened), label
    assert not (folder / ".collab/pending.json").exists(), label
    assert not list((folder / ".collab").glob("tmp-*")), label
    snapshot = read(folder)
    assert snapshot.findings == (), f"{label}: {snapshot.findings}"


def check_run(
    verb: Verb, start: Path, texts: Path, run: dict[str, Any], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    label = f"{verb.name} at point {run['n']} {run['operation']} {run['name']}"
    acknowledged = run["status"] == 0
    grown = len(read(folder).events) - len(read(start).events)
    if run["status"] is not None:
        assert grown == int(acknowledged), f"{label}: {run}"
        assert acknowledged or run["err"].startswith("error: "), f"{label}: {run}"
    killed = run["status"] is None
    if killed:
        check_readers(folder, capsys, label)
        again = shutil.copytree(folder, folder.parent / "again")
    # The next writing verb is a repair …
    status, said = say(capsys, "repair", "--folder", str(folder))
    assert status == 0, f"{label}: {said}"
    check_settled(verb, start, folder, label, said + run["err"], acknowledged)
    assert say(capsys, "validate", "--folder", str(folder)) == (0, "ACP validation passed\n"), label
    if not killed:
        return
    # … or the same verb again.
    status, said = say(capsys, *words(verb, texts, again))
    settled = len(events(again)) - len(events(start))
    # What had been interrupted was finished first; some verbs may then be repeated.
    finished = int("was appended" in said or "were both written" in said or bool(grown))
    assert settled == finished + int(status == 0), f"{label}: {said}"
    assert settled > 0, f"{label}: {said}"
    assert read(again).findings == (), label


def every_mode(template: Path, scratch: Path, argv: list[str]) -> list[tuple[dict[str, Any], Path]]:
    """(run, its folder) of every disturbed run in every mode."""
    for mode in MODES:
        (scratch / mode).mkdir()
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        played = list(pool.map(lambda mode: harness(mode, scratch / mode, template, argv), MODES))
    found = []
    for mode, (*disturbed, last) in zip(MODES, played, strict=True):
        assert last["status"] == 0, last
        assert len(disturbed) > 3
        for run in disturbed:
            assert run["status"] in (None, 0, 2), run
            assert "Traceback" not in run["err"], run
            assert "unexpected" not in run["err"], run
            found.append((run, scratch / mode / str(run["n"]) / template.name))
    return found


@pytest.mark.parametrize("verb", [*RAW, *WAY], ids=lambda verb: verb.name)
def test_each_point_of_each_verb(
    verb: Verb, starts: dict[str, Path], texts: Path, quick_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start = starts[verb.name]
    played = every_mode(start, quick_path, words(verb, texts, "{folder}"))
    operations = {(run["operation"], run["name"]) for run, _ in played}
    assert {("write", "events.jsonl"), ("rename", "protocol.json")} <= operations
    if verb.document is not None:
        assert {("rename", verb.document), ("unlink", ".collab/pending.json")} <= operations
    for run, folder in played:
        check_run(verb, start, texts, run, folder, capsys)


@pytest.mark.parametrize("verb", ["init", "new-round"])
def test_a_folder_that_was_half_made_is_made_whole(
    verb: str, starts: dict[str, Path], texts: Path, quick_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = INIT
    if verb == "new-round":
        ended = shutil.copytree(starts["block"], quick_path / "ended")
        assert main(["block", "--folder", str(ended), "--as", "server", "--reason", MARK]) == 0
        argv = ["new-round", "--from", str(ended), "--folder", "{folder}"]
    for run, folder in every_mode(quick_path / "talk", quick_path, argv):
        label = f"{verb} at point {run['n']} {run['operation']} {run['name']}"
        made = (folder / "protocol.json").exists()
        assert made or run["status"] != 0, label
        status, said = say(capsys, *[word.replace("{folder}", str(folder)) for word in argv])
        assert status == (2 if made else 0), f"{label}: {said}"
        assert say(capsys, "validate", "--folder", str(folder)) == (0, "ACP validation passed\n"), label
        assert len(events(folder)) == 1, label


def test_a_repair_that_was_interrupted_is_done_again(
    starts: dict[str, Path], texts: Path, quick_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Torn bytes, an interrupted act and a stale projection at once, and the mending itself disturbed at each point."""
    start = starts["submit"]
    (quick_path / "broken").mkdir()
    broken = harness("kill", quick_path / "broken", start, words(WAY[0], texts, "{folder}"))
    spot = next(run for run in broken if (run["operation"], run["name"]) == ("write", "events.jsonl"))
    template = quick_path / "broken" / str(spot["n"]) / start.name
    torn = b'{"seq":2,"from":"ser\xc3'
    with (template / "events.jsonl").open("ab") as log:
        log.write(torn)
    stale = json.loads((template / "protocol.json").read_text()) | {"currentPhase": "revising"}
    (template / "protocol.json").write_text(json.dumps(stale))
    for run, folder in every_mode(template, quick_path, ["repair", "--folder", "{folder}"]):
        label = f"repair at point {run['n']} {run['operation']} {run['name']}"
        if run["status"] is None:
            check_readers(folder, capsys, label)
        status, said = say(capsys, "repair", "--folder", str(folder))
        assert status == 0, f"{label}: {said}"
        assert [event["event"] for event in events(folder)] == ["initialized", "proposal_submitted"], label
        assert (folder / "proposal.md").read_text() == PROPOSAL, label
        assert torn in {path.read_bytes() for path in (folder / ".collab/damaged").iterdir()}, label
        assert say(capsys, "validate", "--folder", str(folder)) == (0, "ACP validation passed\n"), label
