"""Guided verbs on the command line: texts from flags, files and standard input (docs/design.md §3)."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from core.acp.reader import read
from core.sanitize import inert
from tests.unit.tui.cli.conftest import GATE, At, Said, Say, tree
from tests.unit.tui.cli.test_usage import runs


def events(folder: Path) -> list[str | None]:
    return [event.name for event in read(folder).events]


def refused(say: Say, folder: Path, *argv: str) -> Said:
    """Refused as text and as JSON alike, nothing written, every offered command fit to be run."""
    before = tree(folder)
    text = say(*argv[:1], "--folder", str(folder), *argv[1:])
    made = say(*argv[:1], "--folder", str(folder), *argv[1:], "-o", "json")
    assert (text.status, made.status) == (2, 2)
    assert text.out == ""
    assert set(made.document) == {"findings"}
    assert [f"error: {inert(item['cause'])}" for item in made.findings] == [
        line for line in text.err.splitlines() if line.startswith("error: ")
    ]
    assert tree(folder) == before
    runs(say, made)
    return made


def done(say: Say, folder: Path, *argv: str) -> dict[str, object]:
    made = say(*argv[:1], "--folder", str(folder), *argv[1:], "-o", "json")
    assert made.status == 0, made
    assert list(made.document)[:3] == ["event", "state", "next"]
    assert made.findings == []
    assert say("validate", "--folder", str(folder)).status == 0
    event: dict[str, object] = made.document["event"]
    return event


def text_file(place: Path, text: str, name: str = "text.md") -> str:
    path = place / name
    path.write_text(text)
    return str(path)


def test_a_whole_collaboration_by_verbs(say: Say, quick_path: Path) -> None:
    folder = quick_path / "it's a talk"
    argv = ["--participant", "server", "--participant", "reader", "--objective", "o", "--completion", GATE]
    assert say("init", "--folder", str(folder), *argv).status == 0
    proposal = text_file(quick_path, "# Proposal\n")
    way = (
        ("submit", "--as", "server", "--file", proposal),
        (
            "review",
            "--as",
            "reader",
            "--position",
            "Yes",
            "--concern",
            "Slow",
            "--change",
            "Faster",
            "--question",
            "How?",
        ),
        ("revise", "--as", "server", "--file", text_file(quick_path, "# Proposal\n\nFaster.\n")),
        ("propose", "--as", "server", "--file", text_file(quick_path, "# Decisions\n\n- Faster.\n")),
        ("classify", "--as", "server", "--resolve", "How", "--defer", "Sizes :: defaults :: will do"),
        ("accept", "--as", "reader"),
        ("accept", "--as", "server", "--file", text_file(quick_path, "# Decisions\n\n- Much faster.\n")),
        ("ready", "--as", "server", "--tick", GATE, "--tick", "Ready to implement"),
        (
            "complete",
            "--as",
            "server",
            "--outcome",
            "defer",
            "--rationale",
            "Not now",
            "--next",
            "Wait",
            "--approach",
            "x",
            "--assumption",
            "y",
        ),
    )
    for seq, step in enumerate(way, start=2):
        event = done(say, folder, *step)
        assert (event["seq"], event["from"], event["reply_to"]) == (seq, step[2], seq - 1)
    assert events(folder)[-1] == "completed"
    texts = {name: (folder / f"{name}.md").read_text() for name in ("review", "readiness", "decisions", "conclusion")}
    assert "Concerns:\n- Slow\n\nRequired Changes:\n- Faster\n\nQuestions:\n- How?\n" in texts["review"]
    assert "- [deferred_nonblocking] Sizes Reason: defaults :: will do\n" in texts["readiness"]
    assert texts["decisions"] == "# Decisions\n\n- Much faster.\n"
    assert "- [defer] Not now\n" in texts["conclusion"]
    assert "## Assumptions\n\n- y\n" in texts["conclusion"]


@pytest.mark.parametrize(
    ("situation", "argv", "text"),
    [
        ("drafting", ("submit", "--as", "server"), "appended seq 2: proposal_submitted\n"),
        ("reviewing", ("review", "--as", "reader", "--position", "x"), "appended seq 3: review_submitted\n"),
        ("revising", ("revise", "--as", "server"), "appended seq 5: proposal_revised\n"),
        ("revised", ("propose", "--as", "server"), "appended seq 6: decision_proposed\n"),
        ("revised", ("classify", "--as", "server", "--resolve", "x"), "appended seq 6: question_classified\n"),
        ("classified", ("accept", "--as", "editor"), "appended seq 8: decision_accepted\n"),
        ("accepted", ("ready", "--as", "server", "--tick-all"), "appended seq 11: readiness_passed\n"),
        (
            "passed",
            ("complete", "--as", "server", "--outcome", "proceed", "--rationale", "a", "--next", "b"),
            "appended seq 12: completed\n",
        ),
        (
            "revising",
            ("block", "--as", "editor", "--reason", "x"),
            "appended seq 5: blocked\nfailure code: acp_unclassified_401c3a95\n",
        ),
    ],
)
def test_what_each_says(say: Say, at: At, situation: str, argv: tuple[str, ...], text: str) -> None:
    folder = at(situation)
    said = say(argv[0], "--folder", str(folder), *argv[1:], "--summary", "Mine é")
    assert (said.status, said.out, said.err) == (0, text, "")
    # The reason of a block is its summary.
    assert read(folder).events[-1].summary == ("Mine é: x" if argv[0] == "block" else "Mine é")


# Texts


def give_stdin(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data), isatty=lambda: False))


def test_a_text_from_standard_input(say: Say, at: At, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = at("drafting")
    give_stdin(monkeypatch, "# Proposé\r\n".encode())
    done(say, folder, "submit", "--as", "server", "--file", "-")
    assert (folder / "proposal.md").read_text() == "# Proposé\n"
    give_stdin(monkeypatch, b"Position:\n- Yes.\n")
    done(say, folder, "review", "--as", "reader", "--file", "-")
    assert "- Yes.\n" in (folder / "review.md").read_text()


@pytest.mark.parametrize("data", [b"\xff", b"a\xc3", b"\xed\xa0\x80"])
def test_a_text_must_be_utf8(say: Say, at: At, quick_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    folder = at("drafting")
    path = quick_path / "text"
    path.write_bytes(data)
    for name in (str(path), "-"):
        give_stdin(monkeypatch, data)
        said = say("submit", "--folder", str(folder), "--as", "server", "--file", name, "-o", "json")
        assert said.codes == ["text_not_utf8"]
        assert said.findings[0]["where"] == "--file"


@pytest.mark.parametrize(
    "name", ["missing", "folder", "", " ", "a\0b", "~nobody-of-that-name/x", "\udcff", "x" * 5000], ids=range(8)
)
def test_a_text_that_cannot_be_read(
    say: Say, at: At, quick_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = at("drafting")
    (quick_path / "folder").mkdir()
    monkeypatch.chdir(quick_path)
    for verb in ("submit", "review", "classify", "complete", "propose"):
        said = refused(say, folder, verb, "--as", "server", f"--file={name}")
        assert said.codes == ["file_unreadable"], verb


def test_a_text_of_any_size_the_protocol_takes(say: Say, at: At, quick_path: Path) -> None:
    folder = at("drafting")
    big = quick_path / "big.md"
    with big.open("wb") as handle:
        handle.truncate(16 * 1024 * 1024 + 1)
    assert refused(say, folder, "submit", "--as", "server", "--file", str(big)).codes == ["file_too_large"]
    # It fits as it is, but not with the line end that a document has.
    big.write_bytes(b"x" * 16 * 1024 * 1024)
    assert refused(say, folder, "submit", "--as", "server", "--file", str(big)).codes == ["file_too_large"]
    big.write_bytes(b"x" * (16 * 1024 * 1024 - 1) + b"\n")
    done(say, folder, "submit", "--as", "server", "--file", str(big))


def test_a_file_name_may_begin_with_a_tilde(say: Say, at: At, own_home: Path) -> None:
    (own_home / "text.md").write_text("# From home\n")
    folder = at("drafting")
    done(say, folder, "submit", "--as", "server", "--file", "~/text.md")
    assert (folder / "proposal.md").read_text() == "# From home\n"


# Contradictions and blanks

FILE_AND_PARTS = {
    "review": (
        "reviewing",
        "reader",
        (("--position", "x"), ("--concern", "x"), ("--change", "x"), ("--question", "x")),
    ),
    "classify": ("revised", "server", (("--resolve", "x"), ("--defer", "x :: y"), ("--blocking", "x"))),
    "complete": (
        "passed",
        "server",
        (("--outcome", "proceed"), ("--rationale", "x"), ("--next", "x"), ("--approach", "x"), ("--assumption", "x")),
    ),
}


@pytest.mark.parametrize("verb", FILE_AND_PARTS)
def test_a_file_and_its_parts_contradict_each_other(say: Say, at: At, quick_path: Path, verb: str) -> None:
    situation, who, parts = FILE_AND_PARTS[verb]
    folder = at(situation)
    path = text_file(quick_path, "A text\n")
    for part in parts:
        said = refused(say, folder, verb, "--as", who, "--file", path, *part)
        assert said.codes == ["usage_contradiction"], part
        assert said.findings[0]["where"] == part[0]


@pytest.mark.parametrize(
    ("situation", "argv", "code"),
    [
        ("reviewing", ("review", "--as", "reader", "--concern", "x"), "position_missing"),
        ("reviewing", ("review", "--as", "reader", "--position", " ", "--concern", "x"), "position_missing"),
        ("reviewing", ("review", "--as", "reader", "--position", ""), "position_missing"),
        ("reviewing", ("review", "--as", "reader"), "review_text_missing"),
        ("revised", ("classify", "--as", "server", "--resolve", ""), "question_blank"),
        ("revised", ("classify", "--as", "server", "--blocking", " "), "question_blank"),
        ("revised", ("classify", "--as", "server", "--defer", "x"), "readiness_reason_missing"),
        ("revised", ("classify", "--as", "server", "--defer", "x ::"), "readiness_reason_missing"),
        ("revised", ("classify", "--as", "server", "--defer", " :: y"), "question_blank"),
        ("revised", ("classify", "--as", "server", "--resolve", "x", "--blocking", "x"), "question_repeated"),
        ("accepted", ("ready", "--as", "server", "--tick", "no such line"), "tick_unknown"),
        ("accepted", ("ready", "--as", "server", "--tick", ""), "tick_unknown"),
        ("accepted", ("ready", "--as", "server"), "readiness_not_ticked"),
        ("accepted", ("ready", "--as", "server", "--tick", "no such line", "--tick-all"), "tick_unknown"),
        ("passed", ("complete", "--as", "server", "--rationale", "x"), "outcome_missing"),
        ("passed", ("complete", "--as", "server", "--next", "x"), "outcome_missing"),
        ("passed", ("complete", "--as", "server", "--approach", "x"), "outcome_missing"),
        ("passed", ("complete", "--as", "server", "--assumption", "x"), "outcome_missing"),
        ("passed", ("complete", "--as", "server", "--outcome", "proceed"), "conclusion_part_missing"),
        (
            "passed",
            ("complete", "--as", "server", "--outcome", "proceed", "--rationale", "x"),
            "conclusion_part_missing",
        ),
        (
            "passed",
            ("complete", "--as", "server", "--outcome", "proceed", "--rationale", " ", "--next", "x"),
            "conclusion_part_missing",
        ),
        (
            "passed",
            ("complete", "--as", "server", "--outcome", "blocked", "--rationale", "x", "--next", "x"),
            "usage_wrong",
        ),
        (
            "passed",
            ("complete", "--as", "server", "--outcome", "proceed", "--rationale", "TBD", "--next", "x"),
            "conclusion_placeholder",
        ),
        ("passed", ("complete", "--as", "server"), "conclusion_outcome_blocked"),
        ("drafting", ("block", "--as", "server", "--reason", ""), "reason_blank"),
        ("drafting", ("block", "--as", "server", "--reason", " \n"), "reason_blank"),
        ("drafting", ("block", "--as", "server"), "usage_wrong"),
        ("drafting", ("submit", "--as", "server", "--summary", ""), "summary_blank"),
        ("drafting", ("submit", "--as", "server", "--timeout", "soon"), "usage_wrong"),
    ],
)
def test_blank_and_contradictory_input(say: Say, at: At, situation: str, argv: tuple[str, ...], code: str) -> None:
    said = refused(say, at(situation), *argv)
    assert said.codes[0] == code


def test_several_reasons_are_all_said(say: Say, at: At) -> None:
    folder = at("passed")
    (folder / "state.log").write_text("")
    (folder / "readiness.md").write_text("- [blocking] Something\n")
    said = refused(say, folder, "complete", "--as", "server", "--outcome", "proceed", "--rationale", "x", "--next", "y")
    assert {"readiness_blocking", "readiness_not_ticked", "gates_unticked", "file_forbidden"} <= set(said.codes)


# Mending


def test_what_was_mended_on_the_way_is_said(say: Say, at: At) -> None:
    folder = at("reviewing")
    with (folder / "events.jsonl").open("a") as log:
        log.write('{"seq":3,"fr')
    said = say("review", "--folder", str(folder), "--as", "reader", "--position", "x")
    assert said.status == 0
    assert "warning: a torn last line of events.jsonl (12 bytes) was set aside in .collab/damaged/" in said.err
    made = say("review", "--folder", str(folder), "--as", "editor", "--position", "x", "-o", "json")
    assert made.findings == []
    assert min(os.listdir(folder / ".collab/damaged")).startswith("events.jsonl-")


def test_a_mend_is_said_beside_a_refusal(say: Say, at: At) -> None:
    folder = at("reviewing")
    with (folder / "events.jsonl").open("a") as log:
        log.write('{"seq":3,"fr')
    said = say("submit", "--folder", str(folder), "--as", "server", "-o", "json")
    assert said.status == 2
    assert said.codes == ["phase_not_allowed", "log_torn_mended"]


# Waiting afterwards


def test_wait_after_the_last_event_ends_at_once(say: Say, at: At) -> None:
    folder = at("passed")
    argv = ("--as", "server", "--outcome", "proceed", "--rationale", "a", "--next", "b", "--wait")
    said = say("complete", "--folder", str(folder), *argv, "-o", "json")
    assert said.status == 0
    assert said.document["event"]["event"] == "completed"
    assert (said.document["ready"], said.document["phase"]) == (True, "completed")


def test_wait_after_an_event_runs_out_of_time(say: Say, at: At) -> None:
    folder = at("drafting")
    said = say("submit", "--folder", str(folder), "--as", "server", "--wait", "--timeout", "0.05")
    assert said.status == 1
    assert said.out == "appended seq 2: proposal_submitted\nwaiting: waiting for editor, reader after seq 2\n"
    assert said.err == "timeout: waiting for editor, reader after seq 2\n"
    assert events(folder)[-1] == "proposal_submitted"


def test_wait_after_an_act_that_gives_the_turn_back(say: Say, at: At) -> None:
    folder = at("revising")
    said = say("revise", "--folder", str(folder), "--as", "server", "--wait")
    assert said.status == 0
    assert said.out.splitlines()[1] == "ready: server is listed in waitingFor"


def test_a_refusal_does_not_wait(say: Say, at: At) -> None:
    assert say("submit", "--folder", str(at("reviewing")), "--as", "server", "--wait", "-o", "json").status == 2


def test_what_others_added_is_kept(say: Say, at: At) -> None:
    folder = at("reviewing")
    lines = (folder / "events.jsonl").read_text().splitlines(keepends=True)
    lines[-1] = lines[-1].replace('"summary"', '"theirs":{"é":[1]},"summary"')
    (folder / "events.jsonl").write_text("".join(lines))
    (folder / ".collab/history.jsonl").unlink()
    done(say, folder, "review", "--as", "reader", "--position", "x")
    assert json.loads((folder / "events.jsonl").read_text().splitlines()[1])["theirs"] == {"é": [1]}
    assert say("log", "--folder", str(folder), "-o", "json").document["events"][1]["theirs"] == {"é": [1]}


def test_a_deliverable_is_written_by_a_verb(say: Say, quick_path: Path) -> None:
    folder = quick_path / "talk"
    argv = ["--participant", "server", "--participant", "reader", "--objective", "o", "--completion", GATE]
    assert say("init", "--folder", str(folder), *argv, "--primary-deliverable-type", "adr").status == 0
    assert say("next", "--folder", str(folder), "--participant", "server", "-o", "json").document["command"] == (
        f"collab draft --folder {folder} --as server"
    )
    text = (folder / "deliverables/adr.md").read_text() + "\nOurs.\n"
    event = done(say, folder, "draft", "--as", "server", "--file", text_file(quick_path, text))
    assert (event["event"], event["doc"], event["role"]) == ("deliverable_drafted", "deliverables/adr.md", "primary")
    assert (folder / "deliverables/adr.md").read_text() == text
    assert (
        say("deliverable", "add", "p.md", "--type", "test-plan", "--folder", str(folder), "--as", "server").status == 0
    )
    event = done(say, folder, "draft", "--as", "server", "--doc", "deliverables/p.md", "--summary", "Begun")
    assert (event["doc"], event["role"], event["summary"]) == ("deliverables/p.md", "supporting", "Begun")
    assert refused(say, folder, "draft", "--as", "reader").codes == ["actor_not_expected"]
    assert refused(say, folder, "draft", "--as", "server", "--doc", "p.md").codes == ["deliverable_doc_wrong"]
