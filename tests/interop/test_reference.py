"""Our verbs and the reference's scripts in the same folder, at every phase (docs/specs/acp.md, docs/design.md §6)."""

from __future__ import annotations

import io
import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
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


def inside(scripts: Path) -> Side:
    """The same scripts run in this process: a way of many steps would else spend its time in starting Python."""

    def run(verb: str, folder: Path, *argv: str) -> tuple[int, str]:
        said, old = io.StringIO(), sys.argv
        sys.argv = [NAMES[verb], "--folder", str(folder), *argv]
        sys.path.insert(0, str(scripts))
        status: int | str | None = 0
        try:
            with redirect_stdout(said), redirect_stderr(said):
                runpy.run_path(str(scripts / NAMES[verb]), run_name="__main__")
        except SystemExit as exc:
            status = exc.code
        finally:
            sys.path.remove(str(scripts))
            sys.argv = old
        assert isinstance(status, int)
        return status, said.getvalue()

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


TYPES = ("adr", "design-spec", "implementation-plan", "decision-memo", "review-report", "test-plan", "custom")
CHECKS = ("Keys & values", "Was bleibt (offen)")


@dataclass(frozen=True)
class Declared:
    """A primary deliverable: the flags of `init`, its reference, and where its file lies."""

    flags: tuple[str, ...]
    ref: str
    file: Path


def declared(folder: Path, kind: str, mode: str) -> Declared:
    flags = ["--primary-deliverable-type", kind]
    name = f"{kind}.md"
    if kind == "custom":
        name = "notes/made to order.md"
        flags += ["--primary-deliverable-file", name]
        flags += [word for check in CHECKS for word in ("--primary-deliverable-check", check)]
    if mode == "internal":
        return Declared(tuple(flags), f"deliverables/{name}", folder / "deliverables" / name)
    folder.parent.mkdir()
    flags += ["--deliverables-mode", "external", "--repo-root", "..", "--deliverables-dir", "docs/agreed"]
    return Declared(tuple(flags), f"external:{name}", folder.parent / "docs/agreed" / name)


def way_2(made: Declared) -> tuple[Step, ...]:
    """Every step of a v2 collaboration, its documents written by hand."""
    ref, file = made.ref, made.file

    def fill(status: str) -> Callable[[Path, int], None]:
        return lambda folder, seq: file.write_text(filled(file.read_text(), status)) and None

    def readiness(place: Path, seq: int) -> None:
        text = (place / "readiness.md").read_text().replace("- [unresolved]", "- [resolved]").replace("TBD", "Keys")
        (place / "readiness.md").write_text(text.replace("- [ ]", "- [x]"))

    return (
        Step("server", "deliverable_drafted", ref, fill("In Review")),
        Step("server", "proposal_submitted", "proposal.md", put("proposal.md", "# P\n\nUse a cache.\n")),
        Step("reader", "review_submitted", "review.md", review("reader", ref)),
        Step("editor", "review_submitted", "review.md", review("editor", ref)),
        Step("server", "deliverable_revised", ref),
        Step("server", "proposal_revised", "proposal.md", put("decisions.md", decisions(ref))),
        Step("server", "question_classified", "readiness.md", readiness),
        Step("editor", "decision_accepted", "decisions.md"),
        Step("server", "decision_accepted", "decisions.md"),
        Step("reader", "decision_accepted", "decisions.md"),
        Step("server", "deliverable_frozen", ref, fill("Frozen")),
        Step("server", "readiness_passed", "readiness.md", readiness),
        Step("server", "completed", "conclusion.md", put("conclusion.md", conclusion(ref))),
    )


def take_2(side: Side, folder: Path, step: Step, made: Declared) -> None:
    more = {"role": "primary"} if step.event.startswith("deliverable_") else {}
    if step.write is not None:
        step.write(folder, len(log(folder)) + 1)
    if step.event == "deliverable_frozen":
        more["sha256"] = sha256(made.file.read_bytes()).hexdigest()
    append(side, folder, step, **more)


@pytest.mark.parametrize("first", [0, 1], ids=["ours begins", "the reference begins"])
@pytest.mark.parametrize("mode", ["internal", "external"])
@pytest.mark.parametrize("kind", TYPES)
def test_version_two_from_init_to_completed(tmp_path: Path, ours: Side, kind: str, first: int, mode: str) -> None:
    sides = (ours, inside(reference(2)))
    folder = tmp_path / "work" / "talk"
    made = declared(folder, kind, mode)
    begin(sides[first], folder, *made.flags)
    agree(*sides, folder, "init")
    for number, step in enumerate(way_2(made), start=first + 1):
        take_2(sides[number % 2], folder, step, made)
        agree(*sides, folder, f"{number} {step.event}")
    assert log(folder)[-1]["event"] == "completed"


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("mode", ["internal", "external"])
def test_both_begin_a_folder_alike(tmp_path: Path, ours: Side, kind: str, mode: str) -> None:
    """The same files in the same places, and the same protocol.json to the last key."""
    found = []
    for side in (ours, inside(reference(2))):
        place = tmp_path / side.name
        made = declared(place / "talk", kind, mode)
        begin(side, place / "talk", *made.flags)
        setup = json.loads((place / "talk" / "protocol.json").read_text())
        files = {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}
        kept = {name for name in files if ".collab" not in name and ".gitattributes" not in name}
        found.append(({**setup, "createdAt": "", "updatedAt": ""}, kept))
    assert found[0] == found[1]


BAD = (
    ("one participant", 1, ()),
    ("custom without a file", 3, ("--primary-deliverable-check", "A")),
    ("custom without a check", 3, ("--primary-deliverable-file", "a.md")),
    ("no Markdown", 3, ("--primary-deliverable-file", "a.txt", "--primary-deliverable-check", "A")),
    ("a way out", 3, ("--primary-deliverable-file", "../a.md", "--primary-deliverable-check", "A")),
    ("an absolute folder", 3, ("--primary-deliverable-file", "a.md", "--primary-deliverable-check", "A",
                               "--deliverables-dir", "/tmp")),
    ("external without a root", 3, ("--primary-deliverable-file", "a.md", "--primary-deliverable-check", "A",
                                    "--deliverables-mode", "external")),
    ("internal with a root", 3, ("--primary-deliverable-file", "a.md", "--primary-deliverable-check", "A",
                                 "--repo-root", "..")),
    ("an absolute root", 3, ("--primary-deliverable-file", "a.md", "--primary-deliverable-check", "A",
                             "--deliverables-mode", "external", "--repo-root", "/")),
)  # fmt: skip


@pytest.mark.parametrize(("people", "flags"), [one[1:] for one in BAD], ids=[one[0] for one in BAD])
def test_both_refuse_the_same_declarations(tmp_path: Path, ours: Side, people: int, flags: tuple[str, ...]) -> None:
    for side in (ours, inside(reference(2))):
        folder = tmp_path / side.name
        who = [word for name in PEOPLE[:people] for word in ("--participant", name)]
        argv = [*who, "--objective", "O", "--completion", "G", "--primary-deliverable-type", "custom", *flags]
        status, said = side.run("init", folder, *argv)
        assert (status, folder.exists()) == (2, False), said


GUIDED_2: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("server", ("append", "--event", "deliverable_drafted", "--role", "primary", "--doc", "{ref}")),
    ("server", ("submit", "--file", "{proposal}")),
    ("reader", ("review", "--position", "In favour", "--concern", "Eviction", "--change", "Name the policy")),
    ("editor", ("review", "--position", "Against", "--question", "Why?")),
    ("server", ("append", "--event", "deliverable_revised", "--role", "primary", "--doc", "{ref}")),
    ("server", ("revise", "--file", "{proposal}")),
    ("server", ("classify", "--resolve", "Keys", "--defer", "Sizes :: later")),
    ("editor", ("accept",)),
    ("server", ("accept",)),
    ("reader", ("accept",)),
    ("server", ("freeze",)),
    ("server", ("ready", "--tick-all")),
    ("server", ("complete", "--outcome", "proceed", "--rationale", "It fits", "--next", "Open it")),
)


@pytest.mark.parametrize("first", [0, 1, 2], ids=["guided at even steps", "guided at odd steps", "guided alone"])
@pytest.mark.parametrize("mode", ["internal", "external"])
def test_guided_verbs_of_version_two_alternate_with_the_reference(
    tmp_path: Path, ours: Side, first: int, mode: str
) -> None:
    """Our composed documents pass the v2 reference's gates after every step; `freeze` writes status and digest."""
    reference_side = inside(reference(2))
    folder = tmp_path / "work" / "talk"
    made = declared(folder, "design-spec", mode)
    (tmp_path / "proposal.md").write_text("# P\n\nUse a cache.\n")
    texts = {"{proposal}": str(tmp_path / "proposal.md"), "{ref}": made.ref}
    begin(ours, folder, *made.flags)
    steps = way_2(made)
    for number, (step, (who, (verb, *argv))) in enumerate(zip(steps, GUIDED_2, strict=True)):
        if first < 2 and number % 2 != first:
            take_2(reference_side, folder, step, made)
        elif verb == "append":
            take_2(ours, folder, step, made)
        else:
            if step.event == "proposal_revised":
                (folder / "decisions.md").write_text(decisions(made.ref))
            status, said = ours.run(verb, folder, "--as", who, *[texts.get(word, word) for word in argv])
            assert status == 0, f"{verb}: {said}"
        assert log(folder)[-1]["event"] == step.event
        agree(ours, reference_side, folder, f"{number} {step.event}")
    digest = sha256(made.file.read_bytes()).hexdigest()
    assert next(one for one in log(folder) if one["event"] == "deliverable_frozen")["sha256"] == digest


def test_a_supporting_deliverable_is_declared_and_frozen_to_the_reference_too(tmp_path: Path, ours: Side) -> None:
    reference_side = inside(reference(2))
    folder = tmp_path / "work" / "talk"
    made = declared(folder, "adr", "internal")
    begin(ours, folder, *made.flags)
    argv = ["add", "plan.md", "--type", "implementation-plan", "--folder", str(folder), "--as", "server"]
    assert main(["deliverable", *argv]) == 0
    agree(ours, reference_side, folder, "add")
    plan = folder / "deliverables/plan.md"
    plan.write_text(filled(plan.read_text(), "In Review"))
    status, said = ours.run("freeze", folder, "--as", "server", "--doc", "deliverables/plan.md")
    assert status == 0, said
    agree(ours, reference_side, folder, "freeze")
    assert "Status: Frozen" in plan.read_text()
    assert json.loads((folder / "protocol.json").read_text())["deliverables"]["supporting"][0]["frozen"] is True
    for step in way_2(made):
        take_2(reference_side, folder, step, made)
        agree(ours, reference_side, folder, step.event)


@pytest.mark.parametrize("mode", ["internal", "external"])
def test_a_new_round_of_version_two_is_one_to_the_reference(tmp_path: Path, ours: Side, mode: str) -> None:
    reference_side = inside(reference(2))
    folder = tmp_path / "work" / "talk"
    made = declared(folder, "test-plan", mode)
    begin(ours, folder, *made.flags)
    for step in way_2(made):
        take_2(ours, folder, step, made)
    second = folder.parent / "talk-2"
    status, said = ours.run("new-round", second, "--from", str(folder))
    assert status == 0, said
    agree(ours, reference_side, folder, "the round that ended")
    agree(ours, reference_side, second, "the new one")
    ref = json.loads((second / "protocol.json").read_text())["deliverables"]["primary"]["file"]
    base = second / "deliverables" if mode == "internal" else made.file.parent
    again = Declared((), f"deliverables/{ref}" if mode == "internal" else f"external:{ref}", base / ref)
    assert "Status: Draft" in again.file.read_text()
    assert "Agreed." in again.file.read_text()
    for step in way_2(again):
        take_2(reference_side, second, step, again)
        agree(ours, reference_side, second, step.event)
    agree(ours, reference_side, folder, "the round before, in the end")
