"""From a new collaboration to completed: two people at consoles of their own, and one agent that uses the verbs.

Nobody opens a file; every act of a person goes through its form and its preview. Run it to see every screen on the way:
`.venv/bin/python -m tests.console.walkthrough`
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from core.files import Root
from core.lock import folder_lock
from tests.conftest import console_script
from tests.console.pty_driver import PATIENCE, PtyConsole, environment

OBJECTIVE = "Agree how long a session lives"
AGENT = """\
set -e
"$1" wait --folder "$2" --participant agent --interval 0.1 --timeout 120
"$1" review --folder "$2" --as agent --position "In favour." --question "Who measures it?"
"$1" wait --folder "$2" --participant agent --interval 0.1 --timeout 120
"$1" accept --folder "$2" --as agent
"""


@dataclass
class Walk:
    """The work of the three; `steps` are the events that people appended, with the screen of each preview."""

    home: Path
    size: tuple[int, int] = (80, 24)
    watch: Callable[[str, str], None] = lambda title, screen: None
    steps: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.environ = environment(self.home)
        self.root = self.home / "work"
        self.folder = self.root / "session"
        self.root.mkdir(parents=True)

    def run(self) -> None:
        ana = PtyConsole(str(self.root), "--as", "ana", environ=self.environ, size=self.size)
        bob = PtyConsole(str(self.root), "--as", "bob", environ=self.environ, size=self.size)
        agent: subprocess.Popen[bytes] | None = None
        try:
            self.start(ana)
            agent = subprocess.Popen(
                ["sh", "-c", AGENT, "agent", console_script(), str(self.folder)], env=self.environ,
                stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
            )  # fmt: skip
            self.go(ana, bob)
            assert agent.wait(PATIENCE) == 0
            assert ana.end() == 0
            assert bob.end() == 0
        finally:
            ana.close()
            bob.close()
            if agent is not None and agent.poll() is None:
                agent.kill()
                agent.wait()

    def start(self, ana: PtyConsole) -> None:
        """A new collaboration, from the empty inbox."""
        ana.sees("Nothing waits for ana")
        ana.press("c")
        ana.sees("New collaboration", "Objective")
        ana.fill(OBJECTIVE, "tab", "session", "tab", "bob", "enter", "agent", "tab", "It is measured", "f2")
        self.look("new", ana, "Enter write")
        ana.press("enter")
        ana.sees("Your turn: submit the proposal")
        self.valid()

    def go(self, ana: PtyConsole, bob: PtyConsole) -> None:
        """From drafting to completed."""
        self.act(ana, "p", "proposal_submitted", "Sessions live for an hour.", "enter", form="proposal.md")
        self.happened("agent", "review_submitted")
        bob.sees("write a review", OBJECTIVE[:12])
        bob.press("enter")
        bob.sees("Your turn: write a review")
        self.act(bob, "r", "review_submitted", "Fine", "tab", "None", form="Position")
        ana.sees("Your turn: submit the revision")
        self.act(ana, "u", "proposal_revised", "Measured by bob.", "enter", form="proposal.md")
        ana.sees("Your turn: classify questions")
        self.act(ana, "c", "question_classified", "tab", "Who measures it: bob", form="Questions in")
        self.happened("agent", "decision_accepted")
        ana.sees("Your turn: accept the decisions")
        self.act(ana, "y", "decision_accepted", "- Sessions live for an hour.", "enter", form="decisions.md")
        bob.sees("Your turn: accept the decisions")
        self.act(bob, "y", "decision_accepted", form="Decisions")
        ana.sees("Your turn: pass readiness")
        self.act(ana, "R", "readiness_passed", "*", form="readiness.md")
        ana.sees("Your turn: conclude")
        self.act(
            ana, "C", "completed", "tab", "tab", "An hour is enough", "tab", "tab", "tab", "bob measures",
            form="Conclusion",
        )  # fmt: skip
        ana.sees("Stop; collaboration is complete.")
        bob.sees("Stop; collaboration is complete.")

    def act(self, who: PtyConsole, key: str, event: str, *keys: str, form: str) -> None:
        """The form of a key, its preview, and back with the event in the log."""
        before = self.log()
        who.press(key)
        who.sees(form, "F2 preview")
        who.fill(*keys, "f2")
        self.look(event, who, "Enter append")
        assert self.log() == before, "something was appended before the preview was accepted"
        who.press("enter")
        who.until(lambda shown: "Enter append" not in shown and "F2 preview" not in shown)
        made = self.log()[len(before) :]
        assert [one["event"] for one in made] == [event], made
        self.valid()

    def look(self, title: str, who: PtyConsole, button: str) -> None:
        """Read a preview until it listens."""
        who.sees("Preview")
        who.listens("append" if "append" in button else "write")
        shown = who.sees(button, "Esc back")
        self.steps.append((title, shown))
        self.watch(title, shown)

    def log(self) -> list[dict[str, object]]:
        lines = (self.folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def happened(self, who: str, event: str) -> None:
        """Wait until somebody's event is in the log, as `collab wait` would."""
        from watchfiles import watch

        for _ in watch(self.folder, yield_on_timeout=True, rust_timeout=50, step=10, debounce=50):
            if any(one["from"] == who and one["event"] == event for one in self.log()):
                break
        self.valid()

    def valid(self) -> None:
        """What `collab validate` says must be 0, between two writes: nobody writes while the lock is held here."""
        words = [console_script(), "validate", "--folder", str(self.folder)]
        with Root(self.folder) as root, folder_lock(root):
            done = subprocess.run(
                words, env=self.environ, capture_output=True, text=True, timeout=PATIENCE, check=False
            )
        assert done.returncode == 0, done.stdout + done.stderr


def main() -> int:
    """Play it and print every preview on the way."""

    def show(title: str, screen: str) -> None:
        os.write(1, f"\n── {title}\n{screen}\n".encode())

    with tempfile.TemporaryDirectory() as home:
        Walk(Path(home), watch=show).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
