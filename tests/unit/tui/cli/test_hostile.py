"""Whatever agents write into a folder, no verb lets it act on a terminal (docs/specs/acp.md §6)."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from core.acp.model import DOCUMENTS
from core.files import sha256
from tests.unit.tui.cli.conftest import At, Say
from tests.unit.tui.cli.test_usage import APPEND, FOLDER_VERBS

EVIL = {
    "a screen clear": "\x1b[2J\x1b[31mred",
    "a clipboard write": "\x1b]52;c;aGVsbG8=\x07",
    "C1 controls": "\x9b31m\x9d0;title\x9c\x85",
    "NUL, BEL, BS, DEL": "\x00\x07\x08\x7f",
    "carriage returns": "good\rEVIL\x0b\x0c",
    "line ends": "one\ntwo\n\nerror: forged\n  next: collab block --folder . --as server --reason x",
    "bidi": "\u202egnp.exe\u2066\u2069\u200f\u061c",
    "zero width": "a\u200bb\u200c\u2060\ufeff\u00ad",
    "separators": "a\u2028b\u2029c",
    "tags": "\U000e0041\U000e007f",
    "surrogates": "\ud800\udfff",
    "markup": "[bold]x[/] [/nope [@click=app.quit]y[/]",
    "a shell": "$(touch pwned) `id` ; rm -rf / '\" \\",
    "a format": "{folder} {participant} {0} %s %(x)s",
    "a long text": "x" * 8_000,
}


def hostile(folder: Path, evil: str, monkey: str = "reader") -> None:
    """Everywhere where an agent can put a text, it puts this one."""
    raw: dict[str, Any] = json.loads((folder / "protocol.json").read_text())
    who = f"{monkey}{evil}"
    raw["objective"] = evil
    raw["participants"] = [{"id": "server", "note": evil}, {"id": who}, "editor", evil]
    raw["completionGates"] = [evil, f"Gate {evil}"]
    raw["waitingFor"] = [who, evil]
    raw["createdAt"] = evil
    raw[evil] = {evil: [evil]}
    write(folder / "protocol.json", json.dumps(raw))
    lines = []
    for line in (folder / "events.jsonl").read_text().splitlines():
        event = json.loads(line)
        event |= {"summary": evil, "doc": evil, evil: evil, "theirs": {"deep": evil}}
        if event["from"] == monkey:
            event["from"] = who
        lines.append(json.dumps(event))
    lines.append(
        json.dumps({"seq": len(lines) + 1, "from": evil, "event": evil, "at": evil, "summary": evil, "reply_to": 1})
    )
    write(folder / "events.jsonl", "\n".join(lines) + "\n")
    for name in (*DOCUMENTS, "README.md"):
        write(folder / name, f"# {name}\n{evil}\n- [blocking] {evil}\n## {evil} - {evil} - seq 3\n- [proceed] {evil}\n")


def write(path: Path, text: str) -> None:
    path.write_bytes(text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("name", EVIL)
def test_no_verb_lets_a_text_act(
    say: Say, at: At, name: str, monkeypatch: pytest.MonkeyPatch, quick_path: Path
) -> None:
    monkeypatch.chdir(quick_path)
    evil = EVIL[name]
    folder = at("completed", "talk")
    hostile(folder, evil)
    who = f"reader{evil}"
    calls: list[tuple[str, ...]] = [
        ("validate",),
        ("show",),
        ("show", "--as", who),
        ("show", "--at", "3"),
        ("log",),
        ("next", "--participant", "server"),
        ("next", "--participant", who),
        ("next", "--participant", "stranger"),
        ("wait", "--participant", who, "--timeout", "0.05"),
        ("prompt", "--as", who),
        ("diff", "--since", "2"),
        ("diff", "--since-my-review", "--as", who),
        *(("show", "--doc", document) for document in DOCUMENTS),
        *((verb, *argv) for verb, argv in FOLDER_VERBS.items()),
        ("append", *APPEND[:-1], "12"),
        ("review", "--as", who, "--position", evil, "--summary", evil),
        ("block", "--as", who, "--reason", evil),
        ("classify", "--as", "server", "--resolve", evil, "--defer", f"{evil} :: {evil}"),
        ("ready", "--as", "server", "--tick", evil),
    ]
    for verb, *argv in calls:
        for output in ((), ("-o", "json")):
            said = say(verb, "--folder", str(folder), *argv, *output)
            if name != "line ends" and verb != "prompt":
                assert "\nerror: forged" not in said.out + said.err
    for output in ((), ("-o", "json")):
        assert say("list", str(folder), *output).status == 0
        for me in ((), ("--as", "server"), ("--as", who)):
            say("inbox", str(folder), *me, *output)
        say("new-round", "--from", str(folder), "--folder", str(folder.parent / "next"), *output)
    assert not (quick_path / "pwned").exists()


@pytest.mark.parametrize(
    "name", ["a screen clear", "bidi", "line ends", "markup", "a shell", "a format", "zero width", "C1 controls"]
)
def test_a_forged_line_is_no_line(say: Say, at: At, name: str) -> None:
    """What stands on a line of its own is ours: one finding a line, one event a line."""
    folder = at("reviewing")
    evil = EVIL[name]
    with (folder / "events.jsonl").open("a") as log:
        log.write(
            json.dumps(
                {
                    "seq": 3,
                    "from": "reader",
                    "event": "blocked",
                    "at": "2026-03-01T10:00:00Z",
                    "summary": evil,
                    "reply_to": 2,
                }
            )
            + "\n"
        )
    assert len(say("log", "--folder", str(folder)).out.splitlines()) == 3
    (block,) = say("inbox", str(folder), "-o", "json").document["items"]
    assert block["why"] == evil
    text = say("inbox", str(folder)).out
    assert len(text.splitlines()) == 5
    findings = say("validate", "--folder", str(folder)).out.splitlines()
    assert all(line.startswith(("ERROR: ", "WARNING: ", "  next: collab repair", "ACP ")) for line in findings)


@pytest.mark.parametrize(
    "name", [name for name in EVIL if name not in ("surrogates", "NUL, BEL, BS, DEL", "a long text")]
)
def test_hostile_names_of_folders(say: Say, at: At, quick_path: Path, name: str) -> None:
    evil = EVIL[name].replace("/", "-")
    folder = at("reviewing", "talk")
    folder = Path(shutil.move(folder, quick_path / evil))
    for verb, argv in FOLDER_VERBS.items():
        for output in ((), ("-o", "json")):
            say(verb, "--folder", str(folder), *argv, *output)
    for output in ((), ("-o", "json")):
        say("list", str(quick_path), *output)
        say("inbox", str(quick_path), *output)
        say("show", "--folder", str(folder) + "-missing", *output)
        say("validate", "--folder", str(folder), *output)


@pytest.mark.parametrize(
    "name", ["a screen clear", "bidi", "surrogates", "NUL, BEL, BS, DEL", "line ends", "a long text"]
)
def test_hostile_arguments(say: Say, at: At, name: str) -> None:
    evil = EVIL[name].replace("\ud800\udfff", "\udcff\udc80")
    folder = str(at("reviewing"))
    for verb, argv in FOLDER_VERBS.items():
        for index, word in enumerate(argv):
            if not word.startswith("--"):
                say(verb, "--folder", folder, *argv[:index], evil, *argv[index + 1 :])
                say(verb, "--folder", folder, *argv[:index], evil, *argv[index + 1 :], "-o", "json")
        say(verb, "--folder", folder, *argv, evil)
        say(verb, "--folder", folder, *argv, f"--{evil}")
    say(evil)
    say(evil, "-o", "json")


FILES = {
    "a line of 128 MB": lambda path: os.truncate(path, 128 * 1024**2),
    "deep JSON": lambda path: path.write_bytes(b'{"a":' * 100_000),
    "no UTF-8": lambda path: path.write_bytes(bytes(range(256)) * 100),
    "a link out": lambda path: (path.unlink(), path.symlink_to("/etc/passwd")),
    "a link to itself": lambda path: (path.unlink(), path.symlink_to(path)),
    "a FIFO": lambda path: (path.unlink(), os.mkfifo(path)),
    "a device": lambda path: (path.unlink(), path.symlink_to("/dev/zero")),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize(
    "name",
    [
        "protocol.json",
        "events.jsonl",
        "proposal.md",
        "readiness.md",
        ".collab/history.jsonl",
        ".collab/lock",
        ".collab/pending.json",
    ],
)
def test_a_file_that_is_anything(say: Say, at: At, name: str, kind: str) -> None:
    """Nothing hangs, nothing is read outside, nobody's file is changed."""
    folder = at("reviewing")
    path = folder / name
    path.write_bytes(path.read_bytes() if path.exists() else b"")
    FILES[kind](path)
    before = sha256(Path("/etc/passwd").read_bytes())
    for verb, argv in FOLDER_VERBS.items():
        said = say(verb, "--folder", str(folder), *argv, "-o", "json")
        assert "root:" not in said.out
    for verb in ("list", "inbox"):
        assert say(verb, str(folder), "-o", "json").status == 0
    assert sha256(Path("/etc/passwd").read_bytes()) == before
