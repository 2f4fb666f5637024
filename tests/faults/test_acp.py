"""Every writing verb of a collaboration, killed and failed at each of its fault points (docs/specs/acp.md §6)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
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
    """One verb of the table: its arguments (files are texts of `{name}`), and the document that it writes.

    `place` is the collaboration in what is copied for each run, where that is more than the collaboration.
    """

    name: str
    argv: tuple[str, ...]
    document: str | None = None
    place: str = ""


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

FREEZES = (
    Verb("freeze", ("freeze", "--as", "server"), "deliverables/adr.md"),
    Verb(
        "freeze a supporting one", ("freeze", "--as", "server", "--doc", "deliverables/plan.md"), "deliverables/plan.md"
    ),
    Verb("freeze outside", ("freeze", "--as", "server"), "../docs/adr.md", "talk"),
)
"""Version 2, in readiness_check: the file, its event, and for a supporting one its mark in protocol.json."""

DRAFT = Verb("draft", ("draft", "--as", "server", "--file", "{drafted}"), "deliverables/adr.md")
"""Version 2, in drafting."""

ADD = ("deliverable", "add", "plan.md", "--type", "test-plan", "--as", "server")

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
    """Its whole command line; `folder` is what was copied."""
    named = {f"{{{path.stem}}}": str(path) for path in texts.iterdir()}
    first, *rest = [named.get(word, word) for word in verb.argv]
    return [first, "--folder", f"{folder}/{verb.place}".rstrip("/"), *rest]


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
    for verb in FREEZES:
        found[verb.name] = to_readiness(place / verb.name.replace(" ", "-") / "whole", verb.place)
    found[DRAFT.name] = to_draft(place / "draft" / "talk", texts)
    found["deliverable add"] = begin_version_two(place / "add" / "talk", "")
    return found


def begin_version_two(whole: Path, inside: str) -> Path:
    """A v2 collaboration in drafting; with `inside` its deliverable lies in the repository around it."""
    outside = ("--deliverables-mode", "external", "--deliverables-dir", "docs", "--repo-root", "..") if inside else ()
    init = [word.replace("{folder}", str(whole / inside)) for word in INIT]
    whole.mkdir(parents=True)
    assert main([*init, "--primary-deliverable-type", "adr", *outside]) == 0
    return whole


def to_draft(whole: Path, texts: Path) -> Path:
    """A v2 collaboration in drafting, and beside the other texts one for its deliverable."""
    begin_version_two(whole, "")
    template = (whole / "deliverables/adr.md").read_text()
    (texts / "drafted.md").write_text(template.replace("\n\n## ", f"\n\n{MARK}\n\n## "))
    return whole


def to_readiness(whole: Path, inside: str) -> Path:
    """A v2 collaboration whose deliverables, a supporting one among them, are written and not frozen yet."""
    begin_version_two(whole, inside)
    folder = whole / inside
    ref = "external:adr.md" if inside else "deliverables/adr.md"

    def done(verb: str, *argv: str) -> None:
        assert main([verb, "--folder", str(folder), *argv]) == 0, verb

    done(*ADD)
    for path in ((whole / "docs") if inside else (folder / "deliverables")).iterdir():
        path.write_text(path.read_text().replace("\n\n## ", f"\n\n{MARK}\n\n## ") + f"\n{MARK}\n")
    drafted = ("--event", "deliverable_drafted", "--role", "primary", "--doc", ref, "--summary", "Drafted")
    done("append", "--participant", "server", *drafted, "--reply-to", "1")
    done("submit", "--as", "server")
    done("review", "--as", "reader", "--position", "Fine")
    (folder / "decisions.md").write_text(f"# Decisions\n\n### D1. One\n\n- Decision: So.\n- Reflected in: `{ref}`\n")
    done("revise", "--as", "server")
    done("classify", "--as", "server", "--resolve", "All")
    done("accept", "--as", "server")
    done("accept", "--as", "reader")
    return whole


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
    verb: Verb, begun: Path, texts: Path, run: dict[str, Any], whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start, folder = begun / verb.place, whole / verb.place
    label = f"{verb.name} at point {run['n']} {run['operation']} {run['name']}"
    acknowledged = run["status"] == 0
    grown = len(read(folder).events) - len(read(start).events)
    if run["status"] is not None:
        assert grown == int(acknowledged), f"{label}: {run}"
        assert acknowledged or run["err"].startswith("error: "), f"{label}: {run}"
    killed = run["status"] is None
    if killed:
        check_readers(folder, capsys, label)
        again = shutil.copytree(whole, whole.parent / "again")
    # The next writing verb is a repair …
    status, said = say(capsys, "repair", "--folder", str(folder))
    assert status == 0, f"{label}: {said}"
    check_settled(verb, start, folder, label, said + run["err"], acknowledged)
    assert say(capsys, "validate", "--folder", str(folder)) == (0, "ACP validation passed\n"), label
    if not killed:
        return
    # … or the same verb again.
    status, said = say(capsys, *words(verb, texts, again))
    settled = len(events(again / verb.place)) - len(events(start))
    # What had been interrupted was finished first; some verbs may then be repeated.
    finished = int("was appended" in said or "were both written" in said or bool(grown))
    assert settled == finished + int(status == 0), f"{label}: {said}"
    assert settled > 0, f"{label}: {said}"
    assert read(again / verb.place).findings == (), label


def every_mode(
    template: Path, scratch: Path, argv: list[str], modes: Sequence[str] = MODES, least: int = 3
) -> list[tuple[dict[str, Any], Path]]:
    """(run, its folder) of every disturbed run in these modes."""
    for mode in modes:
        (scratch / mode).mkdir()
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        played = list(pool.map(lambda mode: harness(mode, scratch / mode, template, argv), modes))
    found = []
    for mode, (*disturbed, last) in zip(modes, played, strict=True):
        assert last["status"] == 0, last
        assert len(disturbed) > least
        for run in disturbed:
            assert run["status"] in (None, 0, 1, 2), run
            assert "Traceback" not in run["err"], run
            assert "unexpected" not in run["err"], run
            found.append((run, scratch / mode / str(run["n"]) / template.name))
    return found


@pytest.mark.parametrize("verb", [*RAW, *WAY, *FREEZES, DRAFT], ids=lambda verb: verb.name)
def test_each_point_of_each_verb(
    verb: Verb, starts: dict[str, Path], texts: Path, quick_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start = starts[verb.name]
    played = every_mode(start, quick_path, words(verb, texts, "{folder}"))
    operations = {(run["operation"], run["name"]) for run, _ in played}
    assert {("write", "events.jsonl"), ("rename", "protocol.json")} <= operations
    if verb.document is not None:
        assert {("rename", verb.document.removeprefix("../")), ("unlink", ".collab/pending.json")} <= operations
    for run, folder in played:
        check_run(verb, start, texts, run, folder, capsys)


@pytest.mark.parametrize("verb", ["init", "init with a deliverable", "new-round", "new-round with a deliverable"])
def test_a_folder_that_was_half_made_is_made_whole(
    verb: str, starts: dict[str, Path], texts: Path, quick_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = [*INIT, "--primary-deliverable-type", "adr"] if "deliverable" in verb else INIT
    if verb.startswith("new-round"):
        ended = shutil.copytree(starts["freeze" if "deliverable" in verb else "block"], quick_path / "ended")
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


def test_a_declaration_is_whole_or_the_same_command_makes_it_whole(
    starts: dict[str, Path], texts: Path, quick_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start = starts["deliverable add"]
    argv = [ADD[0], "--folder", "{folder}", *ADD[1:]]
    played = every_mode(start, quick_path, argv)
    operations = {(run["operation"], run["name"]) for run, _ in played}
    assert {("rename", "protocol.json"), ("rename", "deliverables/plan.md")} <= operations
    for run, folder in played:
        label = f"deliverable add at point {run['n']} {run['operation']} {run['name']}"
        assert events(folder) == events(start), label
        file, declared = folder / "deliverables/plan.md", (folder / "protocol.json").read_text().count('"plan.md"')
        if run["status"] is None:
            check_readers(folder, capsys, label)
            # A killed writer leaves at most the file, which nobody declared.
            assert file.exists() or not declared, label
        else:
            assert (file.exists(), declared) == ((True, 1) if run["status"] == 0 else (False, 0)), f"{label}: {run}"
            assert run["status"] == 0 or run["err"].startswith("error: "), label
        assert say(capsys, "validate", "--folder", str(folder)) == (0, "ACP validation passed\n"), label
        status, said = say(capsys, *[word.replace("{folder}", str(folder)) for word in argv])
        assert status == (2 if declared else 0), f"{label}: {said}"
        assert "## Test Matrix" in file.read_text(), label
        assert (folder / "protocol.json").read_text().count('"plan.md"') == 1, label
        assert not list((folder / ".collab").glob("tmp-*")), label
        assert say(capsys, "validate", "--folder", str(folder)) == (0, "ACP validation passed\n"), label


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
