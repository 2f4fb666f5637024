"""A console in a real pseudo-terminal, and what stands on its screen: keys go in, lines come out.

A thread reads all that the process writes, so nobody blocks on a full terminal, and wakes whoever waits for the screen.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from rich.cells import cell_len

from tests.conftest import console_script

PATIENCE = 30.0
KEYS = {
    "enter": "\r", "esc": "\x1b", "tab": "\t", "up": "\x1b[A", "down": "\x1b[B", "left": "\x1b[D", "right": "\x1b[C",
    "f1": "\x1bOP", "f2": "\x1bOQ", "f3": "\x1bOR", "f4": "\x1bOS", "f8": "\x1b[19~", "ctrl+q": "\x11",
    "ctrl+p": "\x10", "backspace": "\x7f", "space": " ",
}  # fmt: skip
_ESCAPE = re.compile(
    rb"\x1b(?:\[(?P<args>[0-?]*)[ -/]*(?P<final>[@-~])|[\]P_^X][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-Z]|[^\[\]P_^X()])"
)


class Screen:
    """The few terminal functions that a full-screen program uses; the rest is read over."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self._x = self._y = 0
        self._bold = False
        self._left = b""
        self._clear()

    def _clear(self) -> None:
        self.cells = [[" "] * self.columns for _ in range(self.rows)]
        self.bold = [[False] * self.columns for _ in range(self.rows)]

    def feed(self, data: bytes) -> None:
        """Bytes as the program wrote them; a sequence that is cut off waits for its rest."""
        data, at = self._left + data, 0
        self._left = b""
        while at < len(data):
            byte = data[at]
            if byte == 0x1B:
                found = _ESCAPE.match(data, at)
                if found is None:
                    self._left = data[at:]
                    return
                if found["final"] is not None:
                    self._control(found["args"].decode(), found["final"].decode())
                at = found.end()
                continue
            if byte < 0x20 or byte == 0x7F:
                self._plain(byte)
                at += 1
                continue
            size = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            if at + size > len(data):
                self._left = data[at:]
                return
            self._put(data[at : at + size].decode("utf-8", "replace"))
            at += size

    def _plain(self, byte: int) -> None:
        if byte == 0x0D:
            self._x = 0
        elif byte == 0x0A:
            self._y = min(self._y + 1, self.rows - 1)
        elif byte == 0x08:
            self._x = max(0, self._x - 1)

    def _put(self, char: str) -> None:
        width = cell_len(char)
        if width and 0 <= self._y < self.rows and self._x + width <= self.columns:
            self.cells[self._y][self._x : self._x + width] = [char, *[""] * (width - 1)]
            self.bold[self._y][self._x : self._x + width] = [self._bold] * width
        self._x += width

    def _control(self, args: str, final: str) -> None:
        if args[:1] in ("?", ">", "<", "="):
            if args == "?1049" and final == "h":
                self._clear()
            return
        numbers = [int(part) if part.isdigit() else 0 for part in args.split(";")]
        first = max(1, numbers[0])
        match final:
            case "H" | "f":
                self._y = min(first, self.rows) - 1
                self._x = min(max(1, numbers[1]) if len(numbers) > 1 else 1, self.columns) - 1
            case "A" | "B":
                self._y = max(0, min(self.rows - 1, self._y + (first if final == "B" else -first)))
            case "C" | "D":
                self._x = max(0, min(self.columns - 1, self._x + (first if final == "C" else -first)))
            case "J" if numbers[0] == 2:
                self._clear()
            case "K":
                self.cells[self._y][self._x :] = [" "] * (self.columns - self._x)
            case "m":
                self._style(numbers)

    def _style(self, numbers: Sequence[int]) -> None:
        skip = 0
        for at, number in enumerate(numbers):
            if skip:
                skip -= 1
            elif number in (38, 48):
                skip = 4 if numbers[at + 1 : at + 2] == [2] else 2
            elif number in (0, 22):
                self._bold = False
            elif number == 1:
                self._bold = True

    @property
    def lines(self) -> list[str]:
        """The rows, without what is blank at their ends."""
        return ["".join(row).rstrip() for row in self.cells]

    def strong(self) -> str:
        """Only what is drawn bold, by rows."""
        return "\n".join(
            "".join(char if bold else " " for char, bold in zip(row, marks, strict=True)).rstrip()
            for row, marks in zip(self.cells, self.bold, strict=True)
        )

    def title(self) -> str:
        """The title of the framed field that has the focus: it alone is bold in its frame."""
        for line, strong in zip(self.lines, self.strong().split("\n"), strict=True):
            if line.strip().startswith("╭") and strong.strip():
                return strong.strip()
        return ""


class PtyConsole:
    """`collab …` in a pseudo-terminal. `output` is every byte that it wrote; `screen` is what a person sees now."""

    def __init__(
        self,
        *words: str,
        environ: Mapping[str, str],
        size: tuple[int, int] = (80, 24),
        program: Sequence[str] = (),
    ) -> None:
        """`program` is what starts the console instead of the installed script."""
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self.screen, self.output = Screen(*size), bytearray()
        self.process = subprocess.Popen(
            [*(program or [console_script()]), *words], stdin=slave, stdout=slave, stderr=slave, env=dict(environ),
            start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        self._news = threading.Condition()
        self._over = False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._master, 65536)
            except OSError:
                data = b""
            with self._news:
                self.output += data
                self.screen.feed(data)
                self._over = self._over or not data
                self._news.notify_all()
            if not data:
                return

    # What a person does.

    def press(self, *keys: str) -> None:
        """Named keys, or text as it is typed."""
        for key in keys:
            os.write(self._master, KEYS.get(key, key).encode())

    def fill(self, *keys: str) -> None:
        """Keys into a form. Around a Tab it waits for the field, as a person does: its title is drawn bold."""
        for key in keys:
            before = self._until(self.screen.title, bool, PATIENCE)
            self.press(key)
            if key == "tab":
                self._until(self.screen.title, lambda shown, old=before: shown not in ("", old), PATIENCE)

    def press_until(self, key: str, condition: Callable[[str], object]) -> str:
        """Press a key that does no harm until the screen satisfies the condition."""
        for _ in range(100):
            self.press(key)
            with suppress(AssertionError):
                return self.until(condition, 0.3)
        return self.until(condition, 0.0)

    # What a person sees.

    @property
    def text(self) -> str:
        """The screen as text."""
        with self._news:
            return "\n".join(self.screen.lines)

    def until(self, condition: Callable[[str], object], patience: float = PATIENCE) -> str:
        """Wait for the screen to satisfy the condition; returns it."""
        return self._until(lambda: "\n".join(self.screen.lines), condition, patience)

    def sees(self, *texts: str, patience: float = PATIENCE) -> str:
        """Wait until all of these stand on the screen."""
        return self.until(lambda shown: all(text in shown for text in texts), patience)

    def listens(self, button: str) -> str:
        """Wait until this button of a bar is drawn as one that can be used."""
        return self._until(self.screen.strong, lambda shown: button in shown, PATIENCE)

    def _until(self, look: Callable[[], str], condition: Callable[[str], object], patience: float) -> str:
        deadline = time.monotonic() + patience
        with self._news:
            while not condition(shown := look()):
                left = deadline - time.monotonic()
                assert left > 0, "it never came to that:\n" + "\n".join(self.screen.lines)
                assert not self._over, "the console ended:\n" + "\n".join(self.screen.lines)
                self._news.wait(left)
            return shown

    # Its end.

    def kill(self) -> None:
        """SIGKILL, and nothing of the process is left."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self) -> int:
        """`ctrl+q`; the exit code."""
        self.press("ctrl+q")
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._thread.join(PATIENCE)
        os.close(self._master)


def environment(home: Path, **more: str) -> dict[str, str]:
    """The environment of a person whose home, state and settings are below `home`."""
    base = {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    base |= {"COLLAB_STATE": str(home / "state"), "COLLAB_CONFIG": str(home / "config.toml"), "PYTHONWARNINGS": "error"}
    return {**base, **more}
