"""Our verbs and the reference's scripts in the same folder, at every phase (docs/specs/acp.md, docs/design.md §6)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tui.cli import main

GATE = "Measured (p95 < 5 ms) [cache]"
SCRIPTS = {1: ("ACP_REFERENCE_V1", "scripts"), 2: ("ACP_REFERENCE_V2", "skills/agent-collaboration-protocol/scripts")}


def reference(schema: int) -> Path:
    """Where the scripts of a generation lie; skips when no checkout of the public repository was given."""
    variable, inside = SCRIPTS[schema]
    root = os.environ.get(variable)
    if not root:
        pytest.skip(
            "The reference is the public repository agi-connect/agent-collaboration-protocol (v1 = commit c12ba73, "
            "scripts in scripts/; v2 = HEAD, scripts in skills/agent-collaboration-protocol/scripts/), "
            f"given by {variable}, which is not set."
        )
    found = Path(root) / inside
    assert (found / "append_event.py").is_file(), f"{variable} is no checkout of the reference: {found}"
    return found


@dataclass(frozen=True)
class Step:
    who: str
    event: str
    doc: str
    write: Callable[[Path, int], None] | None = None


@dataclass
class Side:
    """One of the two tools: how it runs a verb in a folder."""

    name: str
    run: Callable[..., tuple[int, str]]


@pytest.fixture
def ours(capsys: pytest.CaptureFixture[str]) -> Side:
    def run(verb: str, folder: Path, *argv: str) -> tuple[int, str]:
        capsys.readouterr()
        status = main([verb, "--folder", str(folder), *argv])
        captured = capsys.readouterr()
        return status, captured.out + captured.err

    return Side("ours", run)


NAMES = {
    "init": "init_collaboration.py",
    "append": "append_event.py",
    "next": "next_action.py",
    "wait": "wait_for_turn.py",
    "validate": "validate_collaboration.py",
}


def theirs(scripts: Path) -> Side:
    def run(verb: str, folder: Path, *argv: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, str(scripts / NAMES[verb]), "--folder", str(folder), *argv],
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    return Side("the reference", run)


def put(name: str, text: str) -> Callable[[Path, int], None]:
    return lambda folder, seq: (folder / name).write_text(text, encoding="utf-8") and None


def add(name: str, text: str) -> Callable[[Path, int], None]:
    def write(folder: Path, seq: int) -> None:
        with (folder / name).open("a", encoding="utf-8") as handle:
            handle.write(text.replace("{seq}", str(seq)))

    return write


def review(who: str, ref: str | None = None) -> Callable[[Path, int], None]:
    scope = (
        f"Reviewed primary deliverable: `{ref}`\n\nReview Scope:\n- Primary deliverable completeness\n\n" if ref else ""
    )
    return add("review.md", f"\n## 2026-03-01T09:00:00Z - {who} - seq {{seq}}\n\n{scope}Position:\n- In favour.\n")


READINESS = (
    "# Readiness\n\n- [resolved] Keys.\n- [deferred_nonblocking] Sizes. Reason: later.\n\n"
    f"- [x] {GATE}\n- [x] Ready to implement\n"
)
HEADINGS = (
    "Rationale",
    "Accepted Decisions",
    "Implementation Approach",
    "Assumptions",
    "Deferred Follow-ups",
    "Implementation Blockers",
    "Next Action",
)
CONCLUSION = "# C\n\n## Decision Outcome\n\n- [proceed] Build it.\n\n" + "".join(
    f"## {one}\n\nText.\n\n" for one in HEADINGS
)

WAY_1 = (
    Step("server", "proposal_submitted", "proposal.md", put("proposal.md", "# P\n\nUse a cache.\n")),
    Step("reader", "review_submitted", "review.md", review("reader")),
    Step("editor", "review_submitted", "review.md", review("editor")),
    Step("server", "proposal_revised", "proposal.md", put("proposal.md", "# P\n\nUse a small cache.\n")),
    Step("server", "decision_proposed", "decisions.md", put("decisions.md", "# D\n\n- One cache.\n")),
    Step("server", "question_classified", "readiness.md", put("readiness.md", READINESS)),
    Step("editor", "decision_accepted", "decisions.md"),
    Step("server", "decision_accepted", "decisions.md"),
    Step("reader", "decision_accepted", "decisions.md"),
    Step("server", "readiness_passed", "readiness.md"),
    Step("server", "completed", "conclusion.md", put("conclusion.md", CONCLUSION)),
)
PEOPLE = ("server", "reader", "editor")


def log(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "events.jsonl").read_bytes().splitlines()]


def begin(side: Side, folder: Path, *extra: str) -> None:
    people = [word for who in PEOPLE for word in ("--participant", who)]
    status, said = side.run("init", folder, *people, "--objective", "Décider du cache", "--completion", GATE, *extra)
    assert status == 0, said


def append(side: Side, folder: Path, step: Step, **more: str) -> None:
    seq = len(log(folder)) + 1
    argv = ["--participant", step.who, "--event", step.event, "--summary", f"By {side.name} é", "--doc", step.doc]
    argv += [word for flag, value in more.items() for word in (f"--{flag}", value)]
    status, said = side.run("append", folder, *argv, "--reply-to", str(seq - 1))
    assert status == 0, f"{side.name}: {step.event}: {said}"
    assert f"appended seq {seq}: {step.event}\n" in said
    assert log(folder)[-1]["from"] == step.who


def agree(one: Side, other: Side, folder: Path, label: str) -> None:
    """Both validators say the same status, and both name the same phase, owner, and who is waited for."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    mine, said = one.run("validate", folder)
    their, they_said = other.run("validate", folder)
    assert mine == their == 0, f"{label}: {one.name} {mine}: {said}{other.name} {their}: {they_said}"
    for who in PEOPLE:
        lines = [_facts(side.run("next", folder, "--participant", who)) for side in (one, other)]
        assert lines[0] == lines[1], label
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def _facts(result: tuple[int, str]) -> list[str]:
    status, said = result
    assert status == 0, said
    kept = ("phase: ", "proposal owner: ", "waiting for: ", "last event: ")
    return [line for line in said.splitlines() if line.startswith(kept)]


def take(side: Side, folder: Path, step: Step, **more: str) -> None:
    if step.write is not None:
        step.write(folder, len(log(folder)) + 1)
    append(side, folder, step, **more)


@pytest.mark.parametrize("first", [0, 1], ids=["ours begins", "the reference begins"])
def test_alternating_from_init_to_completed(tmp_path: Path, ours: Side, first: int) -> None:
    sides = (ours, theirs(reference(1)))
    folder = tmp_path / "talk"
    begin(sides[first], folder)
    agree(*sides, folder, "init")
    for number, step in enumerate(WAY_1, start=first + 1):
        take(sides[number % 2], folder, step)
        agree(*sides, folder, f"{step.event} by {sides[number % 2].name}")
    assert log(folder)[-1]["event"] == "completed"


@pytest.mark.parametrize("cut", range(len(WAY_1)))
def test_either_continues_the_other_at_every_phase(tmp_path: Path, ours: Side, cut: int) -> None:
    reference_side = theirs(reference(1))
    for name, before, after in (("a", ours, reference_side), ("b", reference_side, ours)):
        folder = tmp_path / name
        begin(before, folder)
        for step in WAY_1[:cut]:
            take(before, folder, step)
        for step in WAY_1[cut:]:
            take(after, folder, step)
        agree(ours, reference_side, folder, f"cut {cut} {name}")


GUIDED = (
    ("server", ("submit", "--file", "{proposal}")),
    ("reader", ("review", "--position", "In favour", "--concern", "Eviction", "--change", "Name the policy")),
    ("editor", ("review", "--position", "Against", "--question", "Why?")),
    ("server", ("revise", "--file", "{proposal}")),
    ("server", ("propose", "--file", "{decisions}")),
    ("server", ("classify", "--resolve", "Keys", "--defer", "Sizes :: later")),
    ("editor", ("accept",)),
    ("server", ("accept",)),
    ("reader", ("accept",)),
    ("server", ("ready", "--tick-all")),
    ("server", ("complete", "--outcome", "proceed", "--rationale", "It fits", "--next", "Open it")),
)


@pytest.mark.parametrize("first", [0, 1], ids=["guided verbs at even steps", "guided verbs at odd steps"])
def test_guided_verbs_alternate_with_the_reference(tmp_path: Path, ours: Side, first: int) -> None:
    """Our composed documents pass the reference's gates, and it goes on where we left off."""
    reference_side = theirs(reference(1))
    (tmp_path / "proposal.md").write_text("# P\n\nUse a cache.\n")
    (tmp_path / "decisions.md").write_text("# D\n\n- One cache.\n")
    texts = {f"{{{name}}}": str(tmp_path / f"{name}.md") for name in ("proposal", "decisions")}
    folder = tmp_path / "talk"
    begin((ours, reference_side)[first], folder)
    # The reference's own template forgets to list the gates.
    readiness = folder / "readiness.md"
    readiness.write_text(readiness.read_text().replace("{gate_checks}", f"- [ ] {GATE}"))
    for number, (step, (who, (verb, *argv))) in enumerate(zip(WAY_1, GUIDED, strict=True)):
        if number % 2 == first:
            status, said = ours.run(verb, folder, "--as", who, *[texts.get(word, word) for word in argv])
            assert status == 0, f"{verb}: {said}"
            assert log(folder)[-1]["event"] == step.event
        else:
            take(reference_side, folder, step)
        agree(ours, reference_side, folder, f"{number} {step.event}")


def test_correct_work_of_the_reference_raises_no_finding(tmp_path: Path, ours: Side) -> None:
    """Its agents append first and write after; whoever watches with our verbs between the two sees no offence in it."""
    reference_side = theirs(reference(1))
    folder = tmp_path / "talk"
    begin(reference_side, folder)
    for step in WAY_1:
        if step.event == "review_submitted" and step.write is not None:
            append(reference_side, folder, step)
            status, said = ours.run("validate", folder)
            assert status == 2, said
            assert "requires matching review.md heading" in said
            step.write(folder, len(log(folder)))
        else:
            take(reference_side, folder, step)
        agree(ours, reference_side, folder, step.event)
    assert not (folder / ".collab").exists()


def test_both_wait_for_the_same(tmp_path: Path, ours: Side) -> None:
    sides = (ours, theirs(reference(1)))
    folder = tmp_path / "talk"
    begin(ours, folder)
    take(ours, folder, WAY_1[0])
    for side in sides:
        status, said = side.run("wait", folder, "--participant", "reader")
        assert (status, said.splitlines()[0]) == (0, "ready: reader is listed in waitingFor")
        status, said = side.run("wait", folder, "--participant", "server", "--timeout", "0.1", "--interval", "0.1")
        assert status == 1
        assert "timeout: waiting for editor, reader" in said
        status, said = side.run("wait", folder, "--participant", "stranger")
        assert status == 2
        assert "is not listed in protocol.json" in said


def filled(text: str, status: str) -> str:
    """A deliverable with every section filled and this status."""
    text = re.sub(r"^Status: .*$", f"Status: {status}", text, flags=re.MULTILINE)
    return re.sub(r"^(## .+)\n\s*", r"\1\n\nAgreed.\n\n", text, flags=re.MULTILINE)


def decisions(ref: str) -> str:
    return f"# Decisions\n\n### D1. One cache\n\n- Decision: One cache.\n- Reflected in: `{ref}`\n"


def conclusion(ref: str) -> str:
    names = (
        "Rationale",
        "Deliverable Receipt",
        "Accepted Decisions Summary",
        "Readiness Result",
        "Assumptions",
        "Deferred Follow-ups",
        "Implementation Blockers",
        "Next Action",
    )
    body = "".join(f"## {one}\n\n- `{ref}`\n\n" for one in names)
    return f"# C\n\n## Decision Outcome\n\n- [proceed] Build it.\n\n{body}"


@pytest.mark.parametrize("first", [0, 1], ids=["ours at even steps", "ours at odd steps"])
@pytest.mark.parametrize("mode", ["internal", "external"])
def test_version_two_from_init_to_completed(tmp_path: Path, ours: Side, first: int, mode: str) -> None:
    reference_side = theirs(reference(2))
    sides = (ours, reference_side)
    folder = tmp_path / "work" / "talk"
    extra = ["--primary-deliverable-type", "design-spec"]
    ref, file = "deliverables/design-spec.md", folder / "deliverables/design-spec.md"
    if mode == "external":
        (tmp_path / "work").mkdir()
        extra += ["--deliverables-mode", "external", "--repo-root", "..", "--deliverables-dir", "docs"]
        ref, file = "external:design-spec.md", tmp_path / "work/docs/design-spec.md"
    begin(reference_side, folder, *extra)
    agree(*sides, folder, "init")

    def freeze(place: Path, seq: int) -> None:
        file.write_text(filled(file.read_text(), "Frozen"))

    def readiness(place: Path, seq: int) -> None:
        text = (place / "readiness.md").read_text().replace("- [unresolved]", "- [resolved]").replace("- [ ]", "- [x]")
        (place / "readiness.md").write_text(text)

    def draft(place: Path, seq: int) -> None:
        file.write_text(filled(file.read_text(), "In Review"))

    way = (
        Step("server", "deliverable_drafted", ref, draft),
        Step("server", "proposal_submitted", "proposal.md", put("proposal.md", "# P\n\nUse a cache.\n")),
        Step("reader", "review_submitted", "review.md", review("reader", ref)),
        Step("editor", "review_submitted", "review.md", review("editor", ref)),
        Step("server", "deliverable_revised", ref),
        Step("server", "proposal_revised", "proposal.md", put("decisions.md", decisions(ref))),
        Step("server", "question_classified", "readiness.md", readiness),
        Step("editor", "decision_accepted", "decisions.md"),
        Step("server", "decision_accepted", "decisions.md"),
        Step("reader", "decision_accepted", "decisions.md"),
        Step("server", "deliverable_frozen", ref, freeze),
        Step("server", "readiness_passed", "readiness.md"),
        Step("server", "completed", "conclusion.md", put("conclusion.md", conclusion(ref))),
    )
    for number, step in enumerate(way):
        more = {"role": "primary"} if step.event.startswith("deliverable_") else {}
        if step.write is not None:
            step.write(folder, len(log(folder)) + 1)
        if step.event == "deliverable_frozen":
            more["sha256"] = sha256(file.read_bytes()).hexdigest()
        append(sides[(number + first) % 2], folder, step, **more)
        agree(*sides, folder, f"{number} {step.event}")
    assert log(folder)[-1]["event"] == "completed"
