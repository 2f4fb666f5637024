"""Help texts, mistyped words and places that are not there, for every verb and sub-verb (docs/design.md §2, §3)."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import console_script
from tests.unit.tui.cli.conftest import At, Said, Say
from tui.cli import MODULES, command, main
from tui.cli.base import Parser
from tui.cli.examples import EXAMPLES


def _below(parser: Parser, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Parser]]:
    yield words, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from _below(inner, (*words, name))


EVERY = [one for verb in MODULES for one in _below(command(verb).parser(), (verb,))]
"""The words of every verb and sub-verb, and its parser."""

LEAVES = [
    (words, parser)
    for words, parser in EVERY
    if not any(isinstance(action, argparse._SubParsersAction) for action in parser._actions)
]


def test_examples_are_of_verbs_and_every_verb_has_some() -> None:
    assert set(EXAMPLES) == {"", *(" ".join(words) for words, _ in EVERY)}


@pytest.mark.parametrize("words", [words for words, _ in EVERY], ids=" ".join)
def test_help_ends_with_examples_that_are_right(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main((*words, "--help")) == 0
    said = capsys.readouterr().out
    lines = EXAMPLES[" ".join(words)]
    assert said.endswith("examples:\n" + "".join(f"  {line}\n" for line in lines))
    for line in lines:
        # Of an `eval`, what the shell runs inside.
        run = shlex.split(line)[1].removeprefix("$(").removesuffix(")") if line.startswith("eval ") else line
        typed = [word for word in shlex.split(run) if "=" not in word[:9]]
        typed = typed[: typed.index("<")] if "<" in typed else typed
        assert typed[0] == "collab"
        assert set(words) <= set(typed[1:])
        if "--help" not in typed:
            args = command(words[0]).parser().parse_args(typed[2:])
            assert not hasattr(args, "wrong"), args.wrong


@pytest.mark.parametrize("verb", MODULES)
def test_help_verb_is_verb_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main((verb, "--help")) == 0
    said = capsys.readouterr().out
    assert main(("help", verb)) == 0
    assert capsys.readouterr().out == said


def test_help_is_text_whatever_else_was_asked_for(say: Say, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(("next", "-o", "json", "--help")) == 0
    assert capsys.readouterr().out.startswith("usage: collab next")


def _finding(said: Said) -> dict[str, object]:
    found: dict[str, object] = said.document["finding"] if "finding" in said.document else said.findings[0]
    return found


@pytest.mark.parametrize("words", [words for words, _ in LEAVES], ids=" ".join)
def test_a_mistyped_flag_is_refused_by_the_verb_that_has_no_such_flag(words: tuple[str, ...], say: Say) -> None:
    lines = [line for line in EXAMPLES[" ".join(words)] if line.startswith("collab ") and "<" not in line]
    if not lines:
        return
    typed = shlex.split(lines[0])[1:]
    found = _finding(say(*typed, "-o", "json", "--outpt"))
    assert found["code"] == "usage_wrong"
    assert str(found["cause"]).startswith("unrecognized arguments: --outpt (did you mean --out")
    shown = words[:1] if words[0] in ("deliverable", "skill") else words
    assert found["next_command"] == f"collab {' '.join(shown)} --help"


def test_a_mistyped_verb(say: Say, quick_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(quick_path)
    near = say("valdate", "-o", "json")
    assert (near.status, near.codes) == (2, ["folder_missing"])
    assert near.findings[0]["cause"].endswith("and 'valdate' is no verb; did you mean validate?")
    assert near.commands == [["collab", "validate", "--help"]]
    far = say("zzzz", "--folder", "x")
    assert far.status == 2
    assert far.commands == [["collab", "--help"]]
    assert say("zzzz", "-o", "json").commands == [["collab", "--help"]]


@pytest.mark.parametrize("words", [("--help",), ("help",), ("--version",), ("append", "--help"), ("ledger", "--help")])
def test_help_on_a_full_disk_and_a_closed_pipe(words: tuple[str, ...]) -> None:
    full = subprocess.run(
        ["sh", "-c", 'exec "$0" "$@" >/dev/full', console_script(), *words],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert full.returncode == 2
    assert full.stderr.lower().startswith(b"error: standard output cannot be written: ")
    assert full.stderr.count(b"\n") == 1
    reader, writer = os.pipe()
    os.close(reader)
    gone = subprocess.run([console_script(), *words], stdout=writer, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(writer)
    assert (gone.returncode, gone.stderr) == (0, b"")


HERE = (
    (),
    ("list",),
    ("inbox",),
    ("triage", "observe", "--text", "x"),
    ("triage", "list"),
    ("addons", "list"),
    ("addons", "enable", "herdr"),
    ("workflow", "tick"),
    ("workflow", "status"),
    ("workflow", "start", "x"),
    ("escalation", "list"),
    ("proposal", "list"),
    ("signal", "--json", '{"from": "a", "signal": "RETURN"}'),
    ("show", "--folder", "x"),
    ("init", "--folder", "x", "--participant", "a", "--objective", "b", "--completion", "c"),
)
"""Verbs that look at the folder that they are started in."""


@pytest.fixture
def nowhere(tmp_path: Path) -> Iterator[None]:
    """The current folder is deleted meanwhile."""
    before, place = os.getcwd(), tmp_path / "gone"
    place.mkdir()
    os.chdir(place)
    place.rmdir()
    yield
    os.chdir(before)


@pytest.mark.usefixtures("nowhere")
@pytest.mark.parametrize("words", HERE, ids=lambda words: " ".join(words[:2]) or "console")
def test_the_current_folder_is_gone(words: tuple[str, ...], say: Say) -> None:
    said = say(*words, "-o", "json")
    assert said.status == 2
    assert said.findings[0]["cause"] == "the folder that you are in is gone; go to one that is there"
    assert said.findings[0]["next_command"] == "cd"


def test_other_places_are_reached_from_a_folder_that_is_gone(at: At, request: pytest.FixtureRequest, say: Say) -> None:
    folder = str(at("reviewing"))
    request.getfixturevalue("nowhere")
    assert say("next", "--folder", folder, "--participant", "reader").status == 0
    assert say("addons", "list", "--repo", folder).status == 0
    assert say("list", folder).status == 0
    assert say("workflow", "status", "--root", folder).status == 0
    assert say("completion", "bash").status == 0


def test_commands_that_are_offered_name_the_place_that_was_named(
    quick_path: Path, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(quick_path)
    for name in ("here", "there and away"):
        (quick_path / name).mkdir()
    away = str(quick_path / "there and away")
    promote = ("--code", "a_b", "--layer", "acp", "--match", "x", "--cause", "y", "--no-next-command")
    for argv, offered in (
        (("triage", "promote", "acp_unclassified_00000000", *promote), ("collab", "triage", "list")),
        (("triage", "alias", "nothing", "file_exists"), ("collab", "triage", "list")),
    ):
        assert say(*argv, "--root", away, "-o", "json").commands == [[*offered, "--root", away]]
        assert say(*argv, "-o", "json").commands == [list(offered)]
    catalog = quick_path / "bad.json"
    catalog.write_text("{}", encoding="utf-8")
    refused = say("status", "check", "--catalog", str(catalog), "--root", away, "-o", "json", os.devnull)
    assert ["collab", "triage", "catalog", "--root", away, "--catalog", str(catalog)] in refused.commands
    assert say("addons", "enable", "zz", "--repo", away, "-o", "json").commands[0][-2:] == ["--repo", away]
    assert say("addons", "enable", "zz", "-o", "json").commands[0] == ["collab", "addons", "list"]
    assert say("inbox", away, "--snooze", "zz", "--for", "2h", "-o", "json").commands == [["collab", "inbox", away]]
    monkeypatch.setenv("TERM", "dumb")
    assert say(away).commands == [["collab", "inbox", away]]
    assert json.loads(say(away, "-o", "json").out)["findings"][0]["code"] == "terminal_missing"


def test_what_a_document_lacks_leads_to_the_help_of_its_flags(quick_path: Path, say: Say) -> None:
    payload, parent = quick_path / "p.json", quick_path / "a.json"
    payload.write_text('{"schema": "x.v1"}', encoding="utf-8")
    wrap = ("envelope", "wrap", str(payload))
    assert say(*wrap, "--receipt-id", "a", "--producer", "p", "--out", str(parent)).status == 0
    for argv in (
        wrap,
        (*wrap, "--receipt-id", "b", "--producer", "p", "--parent", str(parent)),
        ("goal", "new"),
        ("triage", "promote", "acp_unclassified_00000000", "--root", str(quick_path)),
    ):
        said = say(*argv, "-o", "json")
        assert said.status == 2
        assert said.commands == [["collab", *argv[:2], "--help"]] * len(said.findings)


def test_a_wrong_line_of_the_configuration_is_said_by_the_inbox(
    quick_path: Path, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = quick_path / "config.toml"
    config.write_text('delegation_minutes = "long"\n', encoding="utf-8")
    monkeypatch.setenv("COLLAB_CONFIG", str(config))
    said = say("inbox", str(quick_path), "-o", "json")
    assert (said.status, said.codes) == (0, ["config_invalid"])
    assert "line 1" in say("inbox", str(quick_path)).err


def test_flags_that_contradict_each_other_lead_to_the_help_of_the_verb(at: At, say: Say) -> None:
    folder = ("--folder", str(at("reviewing")))
    for argv in (
        ("diff", *folder),
        ("diff", *folder, "--since", "1", "--since-my-review", "--as", "reader"),
        ("review", *folder, "--as", "reader", "--file", "-", "--position", "x"),
        ("classify", *folder, "--as", "server", "--file", "-", "--resolve", "x"),
        ("workflow", "run", "--interval", "never"),
        ("status", "validate"),
        ("envelope", "resolve", "-"),
    ):
        said = say(*argv, "-o", "json")
        words = argv[:2] if argv[1][0] != "-" else argv[:1]
        assert said.status == 2
        assert said.codes[0] in ("usage_wrong", "usage_contradiction"), argv
        assert said.commands == [["collab", *words, "--help"]]
