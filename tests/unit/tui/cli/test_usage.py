"""Wrong usage, wrong folders, wrong participants: a sentence, exit code 2, nothing written (docs/design.md §2, §3)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from core.acp.model import EVENTS_V1
from tests.unit.tui.cli.conftest import At, Said, Say, tree
from tui.cli import MODULES, main, parser

APPEND = ("--participant", "server", "--event", "proposal_submitted", "--summary", "x", "--reply-to", "1")
FOLDER_VERBS: dict[str, tuple[str, ...]] = {
    "append": APPEND,
    "next": ("--participant", "server"),
    "wait": ("--participant", "server", "--timeout", "0.1"),
    "validate": (),
    "submit": ("--as", "server"),
    "review": ("--as", "reader", "--position", "Yes"),
    "revise": ("--as", "server"),
    "classify": ("--as", "server", "--resolve", "A"),
    "propose": ("--as", "server"),
    "accept": ("--as", "server"),
    "ready": ("--as", "server", "--tick-all"),
    "complete": ("--as", "server", "--outcome", "proceed", "--rationale", "a", "--next", "b"),
    "block": ("--as", "server", "--reason", "x"),
    "show": (),
    "log": (),
    "diff": ("--since", "1"),
    "repair": (),
    "prompt": ("--as", "server"),
}
"""Every verb that works on one folder, with arguments that are right."""

WRITING = (
    "append",
    "submit",
    "review",
    "revise",
    "classify",
    "propose",
    "accept",
    "ready",
    "complete",
    "block",
    "repair",
)


def test_the_table_is_whole() -> None:
    elsewhere = {"init", "new-round", "list", "inbox", "demo", "completion", "deliverable", "skill", "freeze", "draft"}
    governance = {"triage", "envelope", "status", "goal", "members"}
    plans, workflows = {"ledger", "addons"}, {"workflow", "signal", "escalation", "proposal"}
    assert {*FOLDER_VERBS, *elsewhere, *governance, *plans, *workflows} == set(MODULES)


def runs(say: Say, said: Said) -> None:
    """Every command that was offered is one that a person can paste."""
    for words in said.commands:
        assert words[0] == "collab"
        again = say(*words[1:], *(() if "--help" in words else ("-o", "json")))
        if "--help" not in words:
            assert "usage_wrong" not in again.codes, words


def both(say: Say, *argv: str) -> Said:
    """The same refusal as text and as JSON; the JSON one is given back."""
    text = say(*argv)
    made = say(*argv, "-o", "json")
    assert text.status == made.status == 2
    for item in made.findings:
        assert (
            item["severity"] == "warning"
            or item["cause"].isprintable() is False
            or item["cause"] in text.out + text.err
        )
    assert text.commands == made.commands
    runs(say, made)
    return made


# Folders

KINDS: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda place: None, "folder_missing"),
    "a file": (lambda place: place.write_text("x"), "not_a_folder"),
    "empty": (lambda place: place.mkdir(), "not_a_collaboration"),
    "of something else": (lambda place: (place.mkdir(), (place / "README.md").write_text("x")), "not_a_collaboration"),
    "a dead link": (lambda place: place.symlink_to(place.parent / "nowhere"), "folder_missing"),
    "a loop": (lambda place: place.symlink_to(place), "usage_wrong"),
    "below a file": (lambda place: place.parent.write_text("x"), "folder_missing"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("verb", FOLDER_VERBS)
def test_a_folder_that_is_no_collaboration(say: Say, quick_path: Path, verb: str, kind: str) -> None:
    make, code = KINDS[kind]
    place = quick_path / ("x/talk" if kind == "below a file" else "it's a talk")
    make(place)
    before = tree(quick_path)
    said = both(say, verb, "--folder", str(place), *FOLDER_VERBS[verb])
    assert said.codes[0] in (code, "not_a_folder", "folder_missing")
    assert tree(quick_path) == before
    assert not (place / ".collab").exists()
    if verb != "validate" or code == "usage_wrong":
        assert set(said.document) == {"findings"}
        assert len(said.findings) == 1
    else:
        assert said.document["valid"] is False


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/passwd")


SETUPS: dict[str, tuple[Callable[[Path], object], str]] = {
    "half of it": (lambda path: path.write_text('{"objective": "'), "json_malformed"),
    "empty": (lambda path: path.write_text(""), "json_malformed"),
    "no UTF-8": (lambda path: path.write_bytes(b'{"a": "\xff"}'), "json_malformed"),
    "an array": (lambda path: path.write_text("[]"), "json_not_object"),
    "deep": (lambda path: path.write_text('{"a":' + "[" * 50_000 + "]" * 50_000 + "}"), "json_too_deep"),
    "a FIFO": (fifo, "not_a_file"),
    "a link": (link, "path_is_link"),
    "a folder": (lambda path: (path.unlink(), path.mkdir()), "not_a_file"),
    "huge": (lambda path: os.truncate(path, 17 * 1024 * 1024), "file_too_large"),
}


@pytest.mark.parametrize("kind", SETUPS)
def test_an_unreadable_setup(say: Say, at: At, kind: str) -> None:
    folder = at("drafting")
    damage, code = SETUPS[kind]
    damage(folder / "protocol.json")
    before = tree(folder)
    for verb, argv in FOLDER_VERBS.items():
        said = both(say, verb, "--folder", str(folder), *argv)
        assert said.codes[0] == code, verb
        assert tree(folder) == before, verb


LOGS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a bad line": (lambda path: path.write_text(path.read_text() + "rubbish\n"), "log_damaged"),
    "no UTF-8": (lambda path: path.write_bytes(path.read_bytes() + b"\xff\n"), "log_damaged"),
    "deep": (lambda path: path.write_text(path.read_text() + '{"a":' + "[" * 9000 + "]" * 9000 + "}\n"), "log_damaged"),
    "a long line": (lambda path: path.write_text(path.read_text() + "x" * 2_000_000 + "\n"), "log_damaged"),
    "a FIFO": (fifo, "not_a_file"),
    "a link": (link, "path_is_link"),
    "gone": (lambda path: path.unlink(), "file_missing"),
}


@pytest.mark.parametrize("kind", LOGS)
def test_an_unreadable_log(say: Say, at: At, kind: str) -> None:
    """Nothing is appended to it, nobody is told that it is their turn, and people still see what there is."""
    folder = at("drafting")
    damage, code = LOGS[kind]
    damage(folder / "events.jsonl")
    before = tree(folder)
    for verb, argv in FOLDER_VERBS.items():
        said = say(verb, "--folder", str(folder), *argv, "-o", "json")
        if verb in ("show", "log", "prompt", "diff"):
            assert said.status in (0, 1, 2), verb
        else:
            assert said.status == 2, verb
            assert said.codes, verb
            assert kind == "gone" or code in said.codes, (verb, said.codes)
        runs(say, said)
        assert tree(folder) == before, verb


# Arguments


@pytest.mark.parametrize("verb", MODULES)
@pytest.mark.parametrize("argv", [("--nonsense",), ("-o",), ("-o", "yaml"), ("--folder",), ("stray", "words")])
def test_wrong_usage_is_a_finding(say: Say, quick_path: Path, verb: str, argv: tuple[str, ...]) -> None:
    if verb in ("list", "inbox") and argv[0] == "stray":
        assert both(say, verb, str(quick_path / "stray")).codes == ["folder_missing"]
        return
    text = say(verb, *argv)
    assert text.status == 2
    # The ledger has the form of its own specification.
    assert text.err.startswith("ERROR: " if verb == "ledger" else "error: ")
    assert text.commands == [["collab", verb, "--help"]]
    assert "usage:" not in text.err
    if "-o" not in argv:
        made = say(verb, *argv, "-o", "json") if argv != ("--folder",) else say(verb, "-o", "json", *argv)
        if verb == "ledger":
            assert (made.status, made.document["exit"], made.document["finding"]["code"]) == (2, 2, "usage_wrong")
        else:
            assert (made.status, made.codes, set(made.document)) == (2, ["usage_wrong"], {"findings"})


@pytest.mark.parametrize("folder", ["", " ", "\t\n", "~nobody-of-that-name/x", "x\0y"])
@pytest.mark.parametrize("verb", ["next", "append", "review", "show", "init"])
def test_a_blank_folder_is_refused(
    say: Say, verb: str, folder: str, monkeypatch: pytest.MonkeyPatch, quick_path: Path
) -> None:
    monkeypatch.chdir(quick_path)
    argv = FOLDER_VERBS.get(verb, ("--participant", "a", "--objective", "o", "--completion", "c"))
    said = both(say, verb, "--folder", folder, *argv)
    assert said.codes == ["usage_wrong"]
    assert "--folder" in said.findings[0]["cause"]
    assert tree(quick_path) == {}


@pytest.mark.parametrize(
    "json_flag", [("-o", "json"), ("-ojson",), ("--output", "json"), ("--output=json",), ("-o=json",)]
)
def test_json_however_it_is_asked_for(capsys: pytest.CaptureFixture[str], json_flag: tuple[str, ...]) -> None:
    assert main(["next", *json_flag]) == 2
    made = json.loads(capsys.readouterr().out)
    assert made["findings"][0]["code"] == "usage_wrong"


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e999", "soon", "", "1,5"])
@pytest.mark.parametrize("flag", ["--timeout", "--interval"])
def test_a_span_is_a_number(say: Say, at: At, flag: str, number: str) -> None:
    said = both(say, "wait", "--folder", str(at("drafting")), "--participant", "reader", f"{flag}={number}")
    assert said.codes == ["usage_wrong"]


@pytest.mark.parametrize("number", ["x", "1.5", "", "9" * 5000, "0x10"], ids=range(5))
@pytest.mark.parametrize(
    ("verb", "flag"), [("append", "--reply-to"), ("show", "--at"), ("diff", "--since"), ("log", "--from-seq")]
)
def test_a_seq_is_a_whole_number(say: Say, at: At, verb: str, flag: str, number: str) -> None:
    argv = APPEND[:-2] if verb == "append" else ()
    assert both(say, verb, "--folder", str(at("drafting")), *argv, f"{flag}={number}").codes == ["usage_wrong"]


@pytest.mark.parametrize("number", ["0", "-1", "99", "99999999999999999999999"])
def test_a_seq_that_is_not_there(say: Say, at: At, number: str) -> None:
    folder = str(at("drafting"))
    assert both(say, "append", "--folder", folder, *APPEND[:-1], number).codes == ["reply_to_unknown"]
    assert both(say, "show", "--folder", folder, f"--at={number}").codes == ["seq_unknown"]
    assert both(say, "diff", "--folder", folder, f"--since={number}").codes == ["seq_unknown"]
    assert both(say, "diff", "--folder", folder, "--since=1", f"--until={number}").codes == ["seq_unknown"]


def test_an_unknown_event_is_wrong_usage(say: Say, at: At) -> None:
    folder = at("drafting")
    for event in ("", "nonsense", "proposal", "\x1b[2J"):
        said = both(say, "append", "--folder", str(folder), *APPEND[:2], "--event", event, *APPEND[4:])
        assert said.codes == ["usage_wrong"]
    later = both(say, "append", "--folder", str(folder), *APPEND[:2], "--event", "deliverable_drafted", *APPEND[4:])
    assert later.codes == ["event_unknown"]


# People


@pytest.mark.parametrize(
    "who",
    ["stranger", "", " ", "Server", "server ", "\x1b[31m", "a\u202eb", "é", "\udcff", "x" * 5000],
    ids=range(10),
)
def test_an_unknown_participant(say: Say, at: At, who: str) -> None:
    folder = at("reviewing")
    before = tree(folder)
    for verb, argv in FOLDER_VERBS.items():
        if not {"--as", "--participant"} & set(argv):
            continue
        given = [
            f"--as={who}" if word == "--as" else f"--participant={who}" if word == "--participant" else word
            for word in argv
        ]
        given = [word for word, one in zip(given, (None, *argv), strict=False) if one not in ("--as", "--participant")]
        said = both(say, verb, "--folder", str(folder), *given)
        assert said.codes in (["participant_unknown"], ["identity_missing"], ["text_not_utf8"]), verb
        assert tree(folder) == before, verb


def test_who_acts_is_never_guessed(say: Say, at: At) -> None:
    folder = at("reviewing")
    for verb in ("submit", "review", "block", "prompt", "accept"):
        argv = [word for word in FOLDER_VERBS[verb] if word not in ("--as", "server", "reader")]
        said = both(say, verb, "--folder", str(folder), *argv)
        assert said.codes == ["identity_missing"]


def test_the_environment_says_who_acts(say: Say, at: At, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = at("reviewing")
    monkeypatch.setenv("COLLAB_AS", "reader")
    said = say("review", "--folder", str(folder), "--position", "Yes", "-o", "json")
    assert (said.status, said.document["event"]["from"]) == (0, "reader")
    said = say("review", "--folder", str(folder), "--as", "editor", "--position", "Yes", "-o", "json")
    assert said.document["event"]["from"] == "editor"


# Turns

TURNS = {
    "proposal_submitted": {("drafting", "server"), ("revising", "server")},
    "review_submitted": {("reviewing", "reader"), ("reviewing", "editor"), ("one review", "editor")},
    "proposal_revised": {("revising", "server")},
    "decision_proposed": {(where, "server") for where in ("revising", "revised", "proposed", "classified")},
    "question_classified": {(where, "server") for where in ("revised", "proposed", "classified")},
    "decision_accepted": {("classified", who) for who in ("server", "reader", "editor")},
    "readiness_passed": {("accepted", "server"), ("passed", "server")},
    "completed": {("passed", "server")},
    "initialized": set(),
}
SITUATIONS = (
    "drafting",
    "reviewing",
    "one review",
    "revising",
    "revised",
    "proposed",
    "classified",
    "accepted",
    "passed",
    "completed",
    "blocked",
)
LEGAL_ENOUGH = ("readiness_unresolved", "readiness_not_ticked", "gates_unticked", "conclusion_")


@pytest.mark.parametrize("situation", SITUATIONS)
def test_an_event_out_of_turn(say: Say, at: At, situation: str) -> None:
    """Every event by everybody, in every situation: done exactly when the table says so."""
    folder = at(situation)
    before = tree(folder)
    last = before["events.jsonl"].count(b"\n")
    phase = json.loads(before["protocol.json"])["currentPhase"]
    for event in EVENTS_V1:
        for who in ("server", "reader", "editor"):
            legal = (situation, who) in TURNS.get(event, set())
            if legal or (event == "blocked" and phase not in ("completed", "blocked")):
                continue
            argv = ["--participant", who, "--event", event, "--summary", "x", "--reply-to", str(last)]
            argv += ["--doc", "conclusion.md"] if event == "completed" else []
            said = say("append", "--folder", str(folder), *argv, "-o", "json")
            assert said.status == 2, (event, who)
            assert set(said.document) == {"findings"}
            assert tree(folder) == before, (event, who)
            causes = " ".join(item["cause"] for item in said.findings)
            assert any(
                phrase in causes
                for phrase in (
                    f"{event} is not allowed from phase {phase}",
                    "is reserved for",
                    "completed requires",
                    "initialized must be seq 1",
                )
            ), (event, who, causes)
    said = say(
        "append",
        "--folder",
        str(folder),
        "--participant",
        "server",
        "--event",
        "completed",
        "--summary",
        "x",
        "--reply-to",
        str(last),
    )
    assert said.status == 2
    runs(say, said)


# Help and the bare command


def test_help_and_version(say: Say) -> None:
    for argv in ((), ("-h",), ("--help",), ("help",)):
        if argv:
            said = say(*argv)
            assert said.status == 0
            assert all(f"\n  {verb} " in said.out for verb in MODULES)
    assert say("--version").out.startswith("collab ")
    for verb in MODULES:
        said = say(verb, "--help")
        assert (said.status, said.err) == (0, "")
        assert said.out.startswith("usage: collab " + verb)
    assert parser().prog == "collab"


def test_without_a_terminal_there_is_no_console(say: Say, quick_path: Path) -> None:
    said = both(say, str(quick_path))
    assert said.codes == ["terminal_missing"]
    assert both(say, str(quick_path / "missing")).codes == ["folder_missing"]
    assert both(say, "nonsense").codes == ["folder_missing"]
    assert both(say, "--nonsense").codes == ["usage_wrong"]
    assert both(say, "").codes == ["usage_wrong"]
