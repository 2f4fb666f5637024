"""An agent that means harm writes into folders while a real console shows them: nothing acts, hangs or ends it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.console.pty_driver import PtyConsole, environment

EVIL = "\x1b]52;c;RVZJTA==\x07\x1b[7777mX\x9b7777mY\x1b]0;owned\x07[/][@click=app.quit]q[/]\u202e\u200b\x00"
RAW = (b"\x1b]52", b"\x1b[7777", b"\xc2\x9b", b"\x9b7777", b"]0;owned\x07", "\u202e".encode(), "\u200b".encode(), b"\0")
EVENT = {"seq": 3, "from": "other", "event": "blocked", "at": "2026-03-01T09:05:00Z", "reply_to": 2}
DEEP = 100_000
BIG = 10 * 1024 * 1024

Attack = Callable[[Path], None]


def replaced(name: str, make: Attack) -> Attack:
    def attack(path: Path) -> None:
        (path / name).unlink()
        make(path / name)

    return attack


def appended(line: str) -> Attack:
    def attack(path: Path) -> None:
        with (path / "events.jsonl").open("a", encoding="utf-8", errors="surrogatepass") as log:
            log.write(line + "\n")

    return attack


def written(name: str, text: str) -> Attack:
    return lambda path: (path / name).write_bytes(text.encode("utf-8", "surrogatepass"))


def everywhere(path: Path) -> None:
    """Every document, every field of the protocol, an event, and names of files."""
    setup = json.loads((path / "protocol.json").read_text())
    setup |= {"objective": "goal" + EVIL, "completionGates": ["gate" + EVIL], EVIL: EVIL}
    setup["participants"] += [{"id": "person" + EVIL}]
    (path / "protocol.json").write_text(json.dumps(setup), encoding="utf-8")
    for document in path.glob("*.md"):
        document.write_text(f"# words {EVIL}\n\n- [unresolved] {EVIL}\n\n## 2026 - {EVIL} - seq 3\n", encoding="utf-8")
    appended(json.dumps({**EVENT, "summary": EVIL, "doc": EVIL, EVIL: EVIL}))(path)
    (path / EVIL.replace("\0", "").replace("/", "")).write_text(EVIL)
    (os.fsencode(path) and open(os.fsencode(path) + b"/\xff\xfe", "wb")).close()  # noqa: SIM115


ATTACKS: dict[str, Attack] = {
    "escapes": everywhere,
    "long-line": appended(json.dumps({**EVENT, "summary": EVIL * (BIG // len(EVIL))}, ensure_ascii=False)),
    "deep-line": appended("[" * DEEP),
    "log-fifo": replaced("events.jsonl", os.mkfifo),
    "log-link": replaced("events.jsonl", lambda path: path.symlink_to("/dev/zero")),
    "deep-protocol": written("protocol.json", '{"participants":' + "[" * DEEP + "]" * DEEP + "}"),
    "long-protocol": written("protocol.json", '{"objective":"' + "x" * BIG + '"}'),
    "protocol-fifo": replaced("protocol.json", os.mkfifo),
    "proposal-fifo": replaced("proposal.md", os.mkfifo),
    "proposal-link": replaced("proposal.md", lambda path: path.symlink_to("/etc/passwd")),
    "proposal-long": written("proposal.md", "# " + EVIL * (BIG // len(EVIL))),
    "proposal-marks": written("proposal.md", "[" * DEEP + "\n" + ">" * DEEP + "\n" + "*_`" * 20_000),
}


@pytest.fixture
def console(tmp_path: Path, make_folder: Any, act: Any) -> Iterator[PtyConsole]:
    sample = make_folder("sample", participants=("server", "reader", "other"))
    act(sample, "server", "proposal_submitted")
    for name in (*ATTACKS, "zzz-good"):
        shutil.copytree(sample, tmp_path / "work" / name)
    made = PtyConsole(str(tmp_path / "work"), "--as", "reader", environ=environment(tmp_path), size=(120, 40))
    yield made
    made.close()


def filtering(shown: str) -> bool:
    return any(line.split()[:1] == ["filter"] for line in shown.split("\n"))


def open_row(console: PtyConsole, name: str) -> None:
    """By the filter of the list, as a person finds a folder among many."""
    console.press("/")
    console.until(filtering)
    console.press(name)
    console.sees("1 shown", name)
    # From the filter to its rows, and into the row.
    console.press_until("enter", lambda shown: f"work/{name} " in shown and "q back" in shown)


def test_nothing_that_is_written_while_it_watches_acts_or_hangs(console: PtyConsole, tmp_path: Path) -> None:
    console.sees(f"{len(ATTACKS) + 1} waiting")
    console.press("2")
    console.sees("Collaborations")
    for name, attack in ATTACKS.items():
        attack(tmp_path / "work" / name)
    console.until(lambda shown: "zzz-good" in shown and shown.count("unreadable") + shown.count("damaged") >= 7)
    for name in ATTACKS:
        open_row(console, name)
        for _ in range(7):
            console.press(">")
        console.press("q")
        console.sees("Collaborations", "c new")
        console.press("esc")
        console.until(lambda shown: "Collaborations" in shown and not filtering(shown))
    open_row(console, "zzz-good")
    shown = console.sees("Your turn: review")
    assert "● live" in shown
    assert console.end() == 0
    for raw in RAW:
        assert raw not in console.output, raw
