"""The console in a real terminal: what leaves it, how it starts and ends, and the editor that borrows it."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.acp.reader import read

PATIENCE = 20.0


class Terminal:
    """The console script under a pseudo-terminal; `output` is everything that it ever wrote."""

    def __init__(self, words: list[str], environ: dict[str, str], size: tuple[int, int] = (100, 30)) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self.process = subprocess.Popen(
            words, stdin=slave, stdout=slave, stderr=slave, env=environ, start_new_session=True, close_fds=True
        )
        os.close(slave)
        self.output = b""

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def until(self, condition: Callable[[bytes], object]) -> bytes:
        """Read until what came since the last call satisfies the condition; fails after twenty seconds."""
        start, deadline = len(self.output), time.monotonic() + PATIENCE
        while not condition(self.output[start:]):
            assert time.monotonic() < deadline, self.output[start:][-2000:]
            if not self._read(0.1) and self.process.poll() is not None:
                assert condition(self.output[start:]), self.output[start:][-2000:]
        return self.output[start:]

    def sees(self, text: str) -> None:
        """Read until `text` stands in what was written, colours left out."""
        self.until(lambda data: text in plain(data))

    def _read(self, wait: float) -> bool:
        if not select.select([self._master], [], [], wait)[0]:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:
            return False
        self.output += data
        return bool(data)

    def end(self) -> int:
        """Read to the end; the exit code."""
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < deadline
            self._read(0.1)
        while self._read(0):
            pass
        return self.process.returncode

    def vanish(self) -> None:
        """The terminal is gone; as a process of its own session without a controlling one, nobody tells it."""
        os.close(self._master)
        self._master = -1

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if self._master >= 0:
            os.close(self._master)


def plain(data: bytes) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", data.decode("utf-8", "replace"))


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    made: list[Terminal] = []
    script = str(Path(sys.executable).parent / "collab")

    def start(*words: str, size: tuple[int, int] = (100, 30), **environ: str) -> Terminal:
        base = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TERM": "xterm-256color", "LANG": "C.UTF-8"}
        base |= {"COLLAB_STATE": str(tmp_path / "state"), "COLLAB_CONFIG": str(tmp_path / "config.toml")}
        made.append(Terminal([script, *words], {**base, **environ}, size))
        return made[-1]

    yield start
    for one in made:
        one.close()


EVIL = "\x1b]52;c;RVZJTA==\x07\x1b[7777mX\x9b7777mY\x1b]0;owned\x07[/]\u202e\u200b"


def poison(path: Path) -> None:
    """Hostile text in every field that is shown."""
    setup = json.loads((path / "protocol.json").read_text())
    setup["objective"] = "objective" + EVIL
    setup["completionGates"] = ["gate" + EVIL]
    setup["participants"] += [{"id": "person" + EVIL}]
    (path / "protocol.json").write_text(json.dumps(setup), encoding="utf-8")
    event = {"seq": 2, "from": EVIL, "event": "blocked", "at": "2026-03-01T09:00:00Z", "summary": "said" + EVIL}
    with (path / "events.jsonl").open("a", encoding="utf-8") as log:
        log.write(json.dumps({**event, "reply_to": 1, "doc": EVIL}) + "\n")
    for document in path.glob("*.md"):
        document.write_text(f"# words {EVIL}\n\n{EVIL}\n", encoding="utf-8")


def test_nothing_hostile_reaches_the_terminal_raw(make_folder: Any, terminal: Any, tmp_path: Path) -> None:
    work = tmp_path / "work"
    poison(make_folder("work/ev\x1b[7777mil", participants=("server", "reader")))
    console = terminal(str(work), "--as", "reader")
    console.sees("objective")
    console.press("2")
    console.sees("Collaborations")
    console.press("\r")
    console.sees("words")
    for _ in range(7):
        console.press(">")
    console.sees("person")
    console.press("r")
    console.sees("not now")
    console.press("?")
    console.sees("Keys: a collaboration")
    console.press("\x1b")
    console.press("\x11")
    assert console.end() == 0
    for raw in (
        b"\x1b]52",
        b"\x1b[7777",
        b"\xc2\x9b",
        b"\x9b7777",
        b"]0;owned\x07",
        "\u202e".encode(),
        "\u200b".encode(),
    ):
        assert raw not in console.output, raw


def test_it_starts_shows_what_waits_and_leaves_with_zero(make_folder: Any, terminal: Any, tmp_path: Path) -> None:
    make_folder("work/talk")
    console = terminal(str(tmp_path / "work"), "--as", "server")
    console.sees("submit the proposal")
    assert b"\x1b]2;collab \xc2\xb7 1 waiting\x07" in console.output
    console.press("\x11")
    assert console.end() == 0
    assert console.output.rstrip().endswith(b"\x1b[23;2t"), "the title is put back"


def test_the_editor_borrows_the_terminal(make_folder: Any, terminal: Any, tmp_path: Path) -> None:
    path = make_folder("work/talk")
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho "EDITOR HERE"\nread line\necho "# $line" > "$1"\n', encoding="utf-8")
    editor.chmod(0o755)
    console = terminal(str(path), "--as", "server", EDITOR=str(editor))
    console.sees("Your turn")
    console.press("e")
    console.sees("EDITOR HERE")
    console.press("Typed in the editor\n")
    console.sees("Typed in the editor")
    console.until(lambda data: "e edit" in plain(data))
    assert (path / "proposal.md").read_text() == "# Typed in the editor\n"
    console.press("\x11")
    assert console.end() == 0


def test_killed_in_a_form_it_loses_no_draft(make_folder: Any, terminal: Any, tmp_path: Path) -> None:
    path = make_folder("work/talk")
    console = terminal(str(path), "--as", "server")
    console.sees("Your turn")
    console.press("b")
    console.sees("Reason")
    console.press("nobody has time")
    console.sees("draft saved")
    console.process.send_signal(signal.SIGKILL)
    console.end()
    again = terminal(str(path), "--as", "server")
    again.sees("Your turn")
    again.press("b")
    again.sees("nobody has time")
    assert len(read(path).events) == 1


def test_no_color_sends_no_colour(make_folder: Any, terminal: Any) -> None:
    path = make_folder("work/talk")
    console = terminal(str(path), "--as", "server", NO_COLOR="1")
    console.sees("Your turn")
    console.press("\x11")
    assert console.end() == 0
    for style in re.findall(rb"\x1b\[([0-9;]*)m", console.output):
        codes = [int(code) for code in style.split(b";") if code]
        assert not any(30 <= code <= 38 or 40 <= code <= 48 or 90 <= code <= 107 for code in codes), style


def test_it_ends_with_its_terminal(make_folder: Any, terminal: Any, tmp_path: Path) -> None:
    console = terminal(str(make_folder("work/talk").parent), "--as", "server")
    console.sees("Inbox")
    console.vanish()
    assert console.process.wait(timeout=PATIENCE) == 128 + signal.SIGHUP
