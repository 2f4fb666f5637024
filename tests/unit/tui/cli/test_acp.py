"""The protocol's own verbs to the letter: texts, markers, exit codes, JSON (docs/specs/acp.md §5)."""

from __future__ import annotations

import json
import os
import pty
import re
from pathlib import Path

import pytest

from core.acp.model import DOCUMENTS
from tests.conftest import console_script
from tests.processes.running import running
from tests.unit.tui.cli.conftest import GATE, At, Say, tree

INIT = (
    "--participant",
    "server",
    "--participant",
    "reader",
    "--objective",
    "Décider du cache",
    "--completion",
    "Mesuré",
)
STATE_KEYS = ["phase", "owner", "waitingFor"]
NEXT_KEYS = ["phase", "owner", "waitingFor", "last_event", "action", "command", "findings"]


def log(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "events.jsonl").read_bytes().splitlines()]


def protocol(folder: Path) -> dict[str, object]:
    made: dict[str, object] = json.loads((folder / "protocol.json").read_bytes())
    return made


# init


@pytest.mark.parametrize(
    "name", ["talk", "deep/er/talk", "a talk", "it's", "`id`", "é", "-talk", "new\nline", "\udcff"]
)
def test_init_makes_a_valid_folder(say: Say, quick_path: Path, name: str) -> None:
    folder = quick_path / name
    said = say("init", f"--folder={folder}", *INIT)
    assert said.status == 0
    if name.isprintable():
        assert said.out == f"Initialized ACP collaboration folder: {folder}\nstate seq: 1\n"
    assert {*DOCUMENTS, "protocol.json", "events.jsonl", "README.md"} <= set(os.listdir(folder))
    (event,) = log(folder)
    assert (event["seq"], event["from"], event["event"], event["doc"]) == (1, "server", "initialized", "protocol.json")
    setup = protocol(folder)
    assert setup["participants"] == [{"id": "server"}, {"id": "reader"}]
    assert (setup["objective"], setup["completionGates"]) == ("Décider du cache", ["Mesuré"])
    assert (setup["currentPhase"], setup["waitingFor"]) == ("drafting", ["server"])
    assert "schemaVersion" not in setup
    assert "version" not in setup
    assert say("validate", f"--folder={folder}").status == 0


def test_init_as_json(say: Say, quick_path: Path) -> None:
    folder = quick_path / "talk"
    said = say("init", "--folder", str(folder), *INIT, "-o", "json")
    assert said.document == {"folder": str(folder), "schema": 1, "findings": []}
    again = say("init", "--folder", str(folder), *INIT, "--resume", "-o", "json")
    assert again.document == said.document


def test_init_collapses_and_drops(say: Say, quick_path: Path) -> None:
    folder = quick_path / "talk"
    people = ("server", " server ", "", "reader", "  ", "server")
    words = [word for who in people for word in ("--participant", who)]
    assert (
        say(
            "init", "--folder", str(folder), *words, "--objective", " o ", "--completion", " ", "--completion", "c"
        ).status
        == 0
    )
    assert protocol(folder)["participants"] == [{"id": "server"}, {"id": "reader"}]
    assert protocol(folder)["completionGates"] == ["c"]
    assert protocol(folder)["objective"] == "o"


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (("--participant", "a", "--objective", " ", "--completion", "c"), "objective_blank"),
        (("--participant", "a", "--completion", "c"), "objective_blank"),
        (("--participant", " ", "--objective", "o", "--completion", "c"), "participant_missing"),
        (("--objective", "o", "--completion", "c"), "participant_missing"),
        (("--participant", "a", "--objective", "o", "--completion", "\t"), "gate_missing"),
        (("--participant", "a", "--objective", "o"), "gate_missing"),
        (("--participant", "a", "--objective", "o", "--completion", "See discussion.md"), "gate_obsolete"),
        (("--participant", "a", "--objective", "o", "--completion", "c\nd"), "gate_multiline"),
        (("--participant", "a - b", "--objective", "o", "--completion", "c"), "participant_malformed"),
        (("--participant", "a\x1b", "--objective", "o", "--completion", "c"), "participant_malformed"),
        (("--participant", "a", "--objective", "\udcff", "--completion", "c"), "text_not_utf8"),
        (("--participant", "a", "--objective", "o\0", "--completion", "c"), "text_not_utf8"),
        (("--participant", "a", "--objective", "o", "--completion", "c", "--language", "tlh"), "language_unknown"),
    ],
)
def test_init_refuses_and_writes_nothing(say: Say, quick_path: Path, argv: tuple[str, ...], code: str) -> None:
    folder = quick_path / "talk"
    said = say("init", "--folder", str(folder), *argv, "-o", "json")
    assert said.status == 2
    assert code in said.codes
    assert set(said.document) == {"findings"}
    assert say("init", "--folder", str(folder), *argv).status == 2
    assert not folder.exists()


def test_init_says_all_that_is_missing_at_once(say: Say, quick_path: Path) -> None:
    said = say("init", "--folder", str(quick_path / "talk"), "-o", "json")
    assert said.codes == ["objective_blank", "participant_missing", "gate_missing"]


def test_init_on_a_collaboration(say: Say, at: At) -> None:
    folder = at("reviewing")
    before = tree(folder)
    said = say("init", "--folder", str(folder), *INIT, "-o", "json")
    assert (said.status, said.codes) == (2, ["collaboration_exists"])
    said = say("init", "--folder", str(folder), *INIT, "--resume")
    assert (said.status, said.out) == (0, f"Collaboration folder already exists: {folder}\n")
    # It only acknowledges: nothing of what it was told is looked at.
    assert say("init", "--folder", str(folder), "--resume").status == 0
    assert tree(folder) == before


def test_init_resume_of_a_broken_folder_says_so(say: Say, at: At) -> None:
    folder = at("reviewing")
    (folder / "protocol.json").write_text("{")
    assert say("init", "--folder", str(folder), "--resume", "-o", "json").codes == ["json_malformed"]


def test_init_overwrites_nobodys_files(say: Say, quick_path: Path) -> None:
    folder = quick_path / "talk"
    folder.mkdir()
    (folder / "proposal.md").write_text("mine")
    (folder / "notes").write_text("mine too")
    assert say("init", "--folder", str(folder), *INIT).status == 0
    assert (folder / "proposal.md").read_text() == "mine"
    assert say("validate", "--folder", str(folder)).status == 0
    other = quick_path / "other"
    other.mkdir()
    (other / "events.jsonl").write_text('{"seq":1}\n{"seq":2}\n')
    before = tree(other)
    assert say("init", "--folder", str(other), *INIT, "-o", "json").codes == ["log_exists"]
    assert tree(other)["events.jsonl"] == before["events.jsonl"]
    assert not (other / "protocol.json").exists()


@pytest.mark.parametrize("place", ["/proc/collab", "/sys/collab", "/dev/null/talk", "/proc", "/sys/kernel"])
def test_init_where_nothing_can_be_written(say: Say, place: str) -> None:
    said = say("init", "--folder", place, *INIT, "-o", "json")
    assert said.status == 2
    assert said.codes[0] in ("folder_read_only", "permission_denied", "file_missing", "not_a_folder", "file_unreadable")
    assert say("init", "--folder", place, *INIT).err.startswith("error: ")
    assert not Path("/proc/protocol.json").exists()


def test_init_in_french(say: Say, quick_path: Path) -> None:
    folder = quick_path / "talk"
    assert say("init", "--folder", str(folder), *INIT, "--language", "fr").status == 0
    assert (folder / "readiness.md").read_text().startswith("# Préparation\n")
    assert say("validate", "--folder", str(folder)).status == 0


def terminal(argv: list[str], answers: str) -> tuple[int, str]:
    """Run a verb as a process on a terminal of its own and type answers."""
    ours, its = pty.openpty()
    with running([console_script(), *argv], stdin=its, stdout=its, stderr=its) as process:
        os.close(its)
        os.write(ours, answers.encode())
        said = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:
                break
            if not piece:
                break
            said += piece
        os.close(ours)
        return int(process.wait(60)), said.decode().replace("\r\n", "\n")


def test_init_asks_on_a_terminal_for_what_is_missing(quick_path: Path) -> None:
    folder = quick_path / "talk"
    status, said = terminal(["init", "--folder", str(folder)], "Decide\nserver\nreader\n\nMeasured\n\n")
    assert status == 0, said
    assert said.count("Participant (blank line ends): ") == 3
    assert protocol(folder)["participants"] == [{"id": "server"}, {"id": "reader"}]
    assert protocol(folder)["completionGates"] == ["Measured"]
    assert protocol(folder)["objective"] == "Decide"


def test_init_invents_no_gate(quick_path: Path) -> None:
    folder = quick_path / "talk"
    status, said = terminal(["init", "--folder", str(folder), "--participant", "a", "--objective", "o"], "\n")
    assert status == 2
    assert "at least one non-blank --completion is required" in said
    assert "Objective:" not in said
    assert not folder.exists()


# append


def test_append(say: Say, at: At) -> None:
    folder = at("drafting")
    argv = ("append", "--folder", str(folder), "--participant", "server", "--event", "proposal_submitted")
    argv += ("--summary", "Éprouvé \u2028 \x1b[2J", "--doc", "proposal.md", "--reply-to", "1")
    said = say(*argv)
    assert (said.status, said.out, said.err) == (0, "appended seq 2: proposal_submitted\n", "")
    event = log(folder)[-1]
    assert event["summary"] == "Éprouvé \u2028 \x1b[2J"
    assert b"\\u2028" in (folder / "events.jsonl").read_bytes()
    assert (event["doc"], event["reply_to"]) == ("proposal.md", 1)
    assert protocol(folder)["waitingFor"] == ["editor", "reader"]


def test_append_as_json(say: Say, at: At) -> None:
    folder = at("reviewing")
    argv = ("append", "--folder", str(folder), "--participant", "reader", "--event", "blocked", "--summary", "x")
    said = say(*argv, "--reply-to", "2", "-o", "json")
    assert list(said.document) == ["event", "state", "next", "triage_code", "findings"]
    assert said.document["event"] == log(folder)[-1]
    assert list(said.document["state"]) == STATE_KEYS
    assert said.document["state"] == {"phase": "blocked", "owner": "server", "waitingFor": []}
    assert list(said.document["next"]) == ["participant", "action", "command"]
    assert said.document["next"]["participant"] == "reader"
    assert said.document["next"]["command"] == f"collab new-round --from {folder} --folder {folder}-2"
    assert said.findings == []


def test_append_needs_an_answer(say: Say, at: At) -> None:
    folder = at("drafting")
    before = tree(folder)
    said = say("append", "--folder", str(folder), "--participant", "server", "--event", "blocked", "--summary", "x")
    assert said.status == 2
    assert said.err.startswith("error: reply_to is required after initialized")
    assert said.out == ""
    assert tree(folder) == before


def test_a_raw_review_is_told_the_heading_it_still_needs(say: Say, at: At) -> None:
    folder = at("reviewing")
    argv = ("append", "--folder", str(folder), "--event", "review_submitted", "--summary", "x", "--reply-to", "2")
    said = say(*argv, "--participant", "reader")
    assert (said.status, said.out) == (0, "appended seq 3: review_submitted\n")
    (heading,) = re.findall(
        r"^warning: review.md still needs this heading: (## \S+ - reader - seq 3)$", said.err, re.MULTILINE
    )
    assert heading == f"## {log(folder)[-1]['at']} - reader - seq 3"
    invalid = say("validate", "--folder", str(folder))
    assert "ERROR: seq 3: review_submitted requires matching review.md heading\n" in invalid.out
    assert invalid.status == 2
    with (folder / "review.md").open("a") as review:
        review.write(f"\n{heading}\n")
    assert say("validate", "--folder", str(folder)).status == 0
    with (folder / "review.md").open("a") as review:
        review.write("\n## 2026-03-01T09:00:00Z - reader - seq 4\n")
    refused = say(*argv, "--participant", "editor")
    assert "review.md heading seq 4: participant 'reader' does not match event from 'editor'" in refused.err


def test_append_names_a_document_inside_the_folder(say: Say, at: At) -> None:
    folder = at("drafting")
    before = tree(folder)
    for doc in ("../secret", "/etc/passwd", "a/../../b", "x\0y", "\udcff"):
        argv = ("--participant", "server", "--event", "blocked", "--summary", "x", "--reply-to", "1", f"--doc={doc}")
        said = say("append", "--folder", str(folder), *argv, "-o", "json")
        assert said.codes[0] in ("path_outside_folder", "text_has_nul", "text_not_utf8")
        assert tree(folder) == before


@pytest.mark.parametrize("summary", ["", "  ", "\n", "a\0b", "\udcff", "x" * 1_100_000], ids=range(6))
def test_a_summary_that_cannot_stand(say: Say, at: At, summary: str) -> None:
    folder = at("drafting")
    before = tree(folder)
    argv = ("--participant", "server", "--event", "blocked", "--reply-to", "1", f"--summary={summary}")
    said = say("append", "--folder", str(folder), *argv, "-o", "json")
    assert said.codes[0] in ("summary_blank", "text_has_nul", "text_not_utf8", "line_too_long")
    assert tree(folder) == before


def test_append_before_the_end_says_what_is_wrong_but_appends(say: Say, at: At) -> None:
    """Raw `readiness_passed` stays with the reference: errors of the folder are only warnings."""
    folder = at("accepted")
    readiness = folder / "readiness.md"
    readiness.write_text(readiness.read_text().replace("- [ ]", "- [x]"))
    (folder / "state.log").write_text("")
    argv = ("--participant", "server", "--event", "readiness_passed", "--summary", "x", "--reply-to", "10")
    said = say("append", "--folder", str(folder), *argv)
    assert said.status == 0
    assert "warning: state.log is not part of the protocol" in said.err


@pytest.mark.parametrize(
    ("situation", "event", "doc", "marker"),
    [
        ("accepted", "completed", "conclusion.md", "completed requires"),
        ("passed", "completed", "proposal.md", "completed must reference conclusion.md"),
        (
            "passed",
            "completed",
            "conclusion.md",
            "conclusion.md must declare exactly one final outcome|cannot be completed while blocked",
        ),
        ("classified", "decision_accepted", "decisions.md", "unresolved readiness"),
        (
            "revised",
            "decision_accepted",
            "decisions.md",
            "decision_accepted requires question_classified after the latest",
        ),
    ],
)
def test_markers_of_refusals(say: Say, at: At, situation: str, event: str, doc: str, marker: str) -> None:
    folder = at(situation)
    if event == "decision_accepted" and situation == "classified":
        with (folder / "readiness.md").open("a") as readiness:
            readiness.write("- [unresolved] Something\n")
    last = len(log(folder))
    argv = ("--participant", "server", "--event", event, "--summary", "x", "--doc", doc, "--reply-to", str(last))
    said = say("append", "--folder", str(folder), *argv)
    assert said.status == 2
    assert re.search(marker, said.err), said.err
    assert len(log(folder)) == last


def test_gates_that_are_not_ticked(say: Say, at: At) -> None:
    folder = at("passed")
    readiness = folder / "readiness.md"
    readiness.write_text(readiness.read_text().replace(f"- [x] {GATE}", f"- [ ] {GATE}"))
    argv = ("--participant", "server", "--event", "completed", "--summary", "x", "--doc", "conclusion.md")
    said = say("append", "--folder", str(folder), *argv, "--reply-to", "11")
    assert f"completion gates must be checked before completed: {GATE}" in said.err


# next

TEXTS = {
    ("drafting", "server"): "update proposal.md",
    ("reviewing", "reader"): "append a structured review",
    ("reviewing", "server"): "wait for the listed reviewer(s); do not edit proposal.md",
    ("revising", "server"): "revise proposal.md",
    ("revised", "server"): "classify every question",
    ("classified", "editor"): "append decision_accepted",
    ("accepted", "server"): "complete the final design checklist in readiness.md.",
    ("passed", "server"): "write conclusion.md",
    ("completed", "reader"): "stop; collaboration is complete.",
    ("blocked", "server"): "resolve the blocker or start a new collaboration round.",
}


@pytest.mark.parametrize(("situation", "who"), TEXTS)
def test_next(say: Say, at: At, situation: str, who: str) -> None:
    folder = at(situation)
    said = say("next", "--folder", str(folder), "--participant", who)
    setup, last = protocol(folder), log(folder)[-1]
    waiting = ", ".join(setup["waitingFor"]) or "none"  # type: ignore[arg-type]
    lines = said.out.splitlines()
    assert lines[:4] == [
        f"phase: {setup['currentPhase']}",
        "proposal owner: server",
        f"waiting for: {waiting}",
        f"last event: seq {last['seq']} {last['event']} from {last['from']}",
    ]
    assert lines[4].startswith("next action: ")
    assert TEXTS[situation, who] in lines[4]
    assert sum(line.startswith("next action: ") for line in lines) == 1
    made = say("next", "--folder", str(folder), "--participant", who, "-o", "json")
    assert list(made.document) == NEXT_KEYS
    assert made.document["action"] == lines[4].removeprefix("next action: ")
    assert made.document["last_event"] == last
    assert made.document["waitingFor"] == setup["waitingFor"]
    assert (said.status, made.status, made.findings) == (0, 0, [])


def test_next_answers_from_the_log(say: Say, at: At) -> None:
    folder = at("reviewing")
    setup = protocol(folder)
    (folder / "protocol.json").write_text(json.dumps({**setup, "currentPhase": "completed", "waitingFor": []}))
    before = tree(folder)
    assert "phase: reviewing\n" in say("next", "--folder", str(folder), "--participant", "reader").out
    assert say("wait", "--folder", str(folder), "--participant", "reader").status == 0
    assert say("validate", "--folder", str(folder)).status == 2
    assert tree(folder) == before


def test_a_log_without_events(say: Say, at: At) -> None:
    folder = at("drafting")
    (folder / "events.jsonl").write_text("")
    made = say("next", "--folder", str(folder), "--participant", "server", "-o", "json")
    assert (made.status, made.document["last_event"], made.document["phase"]) == (0, None, None)
    assert "append initialized" in made.document["action"]


# wait


@pytest.mark.parametrize(
    ("situation", "who", "reason"),
    [
        ("drafting", "server", "server is listed in waitingFor"),
        ("one review", "editor", "editor is listed in waitingFor"),
        ("completed", "reader", "phase is completed"),
        ("blocked", "editor", "phase is blocked"),
    ],
)
def test_wait_ends_at_once_when_it_may(say: Say, at: At, situation: str, who: str, reason: str) -> None:
    folder = at(situation)
    before = tree(folder)
    said = say("wait", "--folder", str(folder), "--participant", who)
    assert said.status == 0
    assert said.out.splitlines()[0] == f"ready: {reason}"
    assert "\nnext action: " in said.out
    made = say("wait", "--folder", str(folder), "--participant", who, "-o", "json")
    assert sorted(made.document) == sorted([*NEXT_KEYS, "ready"])
    assert made.document["ready"] is True
    assert tree(folder) == before


def test_wait_runs_out_of_time(say: Say, at: At) -> None:
    folder = at("reviewing")
    before = tree(folder)
    argv = ("wait", "--folder", str(folder), "--participant", "server", "--timeout", "0.05", "--interval", "0.01")
    said = say(*argv)
    assert said.status == 1
    assert said.err == "timeout: waiting for editor, reader after seq 2\n"
    assert said.out == "waiting: waiting for editor, reader after seq 2\n"
    made = say(*argv, "-o", "json")
    assert made.status == 1
    assert sorted(made.document) == sorted([*NEXT_KEYS, "ready"])
    assert made.document["ready"] is False
    assert made.document["action"].startswith("wait for the listed reviewer")
    assert tree(folder) == before


def test_wait_with_a_time_that_is_over(say: Say, at: At) -> None:
    assert say("wait", "--folder", str(at("reviewing")), "--participant", "server", "--timeout=-1").status == 1


# validate


@pytest.mark.parametrize("situation", ["drafting", "reviewing", "revised", "passed", "completed", "blocked"])
def test_validate_a_valid_folder(say: Say, at: At, situation: str) -> None:
    folder = at(situation)
    said = say("validate", "--folder", str(folder))
    assert (said.status, said.out, said.err) == (0, "ACP validation passed\n", "")
    made = say("validate", "--folder", str(folder), "-o", "json")
    assert made.document == {"valid": True, "errors": [], "warnings": [], "findings": []}


def test_validate_warns(say: Say, at: At) -> None:
    folder = at("revised")
    (folder / "readiness.md").write_text("- [deferred_nonblocking] Sizes\n")
    said = say("validate", "--folder", str(folder))
    cause = "deferred_nonblocking readiness items should include a reason"
    assert said.status == 1
    assert said.out.splitlines()[:2] == ["ACP validation passed with warnings", f"WARNING: {cause}"]
    made = say("validate", "--folder", str(folder), "-o", "json")
    assert (made.status, made.document["valid"]) == (1, True)
    assert (made.document["errors"], made.document["warnings"]) == ([], [cause])
    assert made.codes == ["readiness_reason_missing"]


def test_validate_says_everything_a_line_each(say: Say, at: At) -> None:
    folder = at("revised")
    (folder / "opinions.md").write_text("")
    (folder / "proposal.md").write_text("changed out of turn")
    (folder / "review.md").write_text("# Review\n")
    (folder / "protocol.json").write_text(json.dumps({**protocol(folder), "currentPhase": "drafting", "version": 1}))
    said = say("validate", "--folder", str(folder))
    assert said.status == 2
    lines = said.out.splitlines()
    assert lines[0] == "ACP validation failed"
    errors = [line for line in lines if line.startswith("ERROR: ")]
    warnings = [line for line in lines if line.startswith("WARNING: ")]
    assert any(line.startswith("ERROR: opinions.md is not part of the protocol") for line in errors)
    assert "ERROR: protocol.json must not include a protocol version field" in errors
    assert "ERROR: protocol.json currentPhase is 'drafting', expected 'decision_review'" in errors
    assert sum("requires matching review.md heading" in line for line in errors) == 2
    assert any("proposal.md changed after seq 5, in phase decision_review" in line for line in warnings)
    # Errors first, and every line is a finding or the command that helps with it.
    assert lines.index(errors[-1]) < lines.index(warnings[0])
    assert all(line.startswith(("ERROR: ", "WARNING: ", "  next: collab ")) for line in lines[1:])
    made = say("validate", "--folder", str(folder), "-o", "json")
    assert [f"ERROR: {cause}" for cause in made.document["errors"]] == errors
    assert [f"WARNING: {cause}" for cause in made.document["warnings"]] == warnings
    assert made.document["valid"] is False
