"""An agent that starts from `collab prompt` alone finishes its part: it parses nothing but what our verbs print."""

from __future__ import annotations

import re
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from core.acp.check import check
from core.acp.reader import read
from tests.conftest import Collab, console_script

ANSWERS = {
    "PROPOSAL": "# Proposal\n\nOne cache of 20,000 sessions.\n",
    "DECISIONS": "# Decisions\n\n- One cache.\n",
    "QUESTION": "How large it is",
    "OTHER QUESTION :: REASON": "When it is emptied :: nobody needs to know yet",
    "WHERE YOU STAND": "In favour",
    "WHY": "It is measured and it fits.",
    "WHAT IS DONE NEXT": "Open the change.",
    "…": "Name an owner",
}
"""What the agent would think up; capitals in the prompt say what is wanted."""


class Agent:
    """A participant that knows a folder, its own name and how to run a command. The prompt is all it starts from."""

    def __init__(self, folder: Path, who: str, desk: Path) -> None:
        self.who, self.desk = who, desk
        self.said: list[str] = []
        self.prompt = self.run(["collab", "prompt", "--folder", str(folder), "--as", who])

    def run(self, words: list[str]) -> str:
        """A command as given; a refusal is the end of this agent."""
        assert words[0] == "collab"
        done = subprocess.run(
            [console_script(), *words[1:]], capture_output=True, encoding="utf-8", timeout=120, check=False
        )
        self.said.append(f"$ {shlex.join(words)}\n{done.stdout}{done.stderr}")
        assert done.returncode == 0, "\n".join(self.said)
        return done.stdout

    def fill(self, line: str) -> list[str]:
        """A command line of the prompt with something said in every place that asks for it."""
        words = []
        for word in shlex.split(line):
            text = ANSWERS.get(word, word)
            if word in ("PROPOSAL", "DECISIONS"):
                path = self.desk / f"{word} of {self.who}.md"
                path.write_text(text)
                text = str(path)
            assert re.fullmatch(r"[A-Z][A-Z :]+", text) is None, f"{word} is not explained"
            words.append(text)
        return words

    def steps(self, phase: str) -> list[list[str]]:
        """The commands below the line of this phase."""
        section = self.prompt.partition("Your steps, phase by phase\n")[2]
        found: dict[str, list[list[str]]] = {}
        current = ""
        for line in section.splitlines():
            if line.startswith("- "):
                current = line.removeprefix("- ").partition(":")[0]
                found[current] = []
            elif line.strip().startswith("collab "):
                found[current].append(self.fill(line))
        return found.get(phase, [])

    def work(self) -> str:
        """Wait for the turn, do what stands there, until it is over; the last phase."""
        (wait,) = [line.strip() for line in self.prompt.splitlines() if line.strip().startswith("collab wait ")]
        while True:
            told = self.run(shlex.split(wait))
            assert told.splitlines()[-1].startswith(("next action: ", "command: ")), told
            (phase,) = re.findall(r"^phase: (\w+)$", told, re.MULTILINE)
            if phase in ("completed", "blocked"):
                return str(phase)
            steps = self.steps(phase)
            assert steps, f"{self.who} has no step for {phase}:\n{self.prompt}"
            for words in steps:
                self.run(words)


def test_three_agents_with_nothing_but_the_prompt(quick_path: Path, collab: Collab) -> None:
    folder = quick_path / "it's `a` talk"
    people = ["the owner", "reader", "editor"]
    argv = [word for who in people for word in ("--participant", who)]
    gates = ("--completion", "Measured (p95 < 5 ms) [cache]", "--completion", "It has an owner")
    begun = collab("init", "--folder", str(folder), *argv, "--objective", "Decide the cache", *gates)
    assert begun.returncode == 0, begun
    agents = [Agent(folder, who, quick_path) for who in people]
    with ThreadPoolExecutor(len(agents)) as pool:
        assert list(pool.map(Agent.work, agents)) == ["completed"] * 3
    snapshot, found = check(folder)
    assert (snapshot.state.phase, found) == ("completed", [])
    assert [event.name for event in snapshot.events].count("review_submitted") == 2
    for text, document in (
        (ANSWERS["PROPOSAL"], "proposal.md"),
        ("Name an owner", "review.md"),
        (ANSWERS["QUESTION"], "readiness.md"),
        (ANSWERS["DECISIONS"], "decisions.md"),
        (ANSWERS["WHAT IS DONE NEXT"], "conclusion.md"),
    ):
        assert text in snapshot.document(document).text
    done = collab("validate", "--folder", str(folder))
    assert (done.returncode, done.stdout) == (0, "ACP validation passed\n")


def test_an_agent_that_cannot_go_on(quick_path: Path, collab: Collab) -> None:
    """The command that the prompt gives for it ends the round for everybody who waits."""
    folder = quick_path / "talk"
    argv = ("--participant", "server", "--participant", "reader", "--objective", "o", "--completion", "c")
    assert collab("init", "--folder", str(folder), *argv).returncode == 0
    server, reader = (Agent(folder, who, quick_path) for who in ("server", "reader"))
    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(reader.work)
        (line,) = re.findall(r"collab block .*$", server.prompt, re.MULTILINE)
        server.run([word.replace("WHAT MUST BE RESOLVED", "There is no host") for word in shlex.split(line)])
        assert ended.result(timeout=120) == "blocked"
    assert read(folder).events[-1].summary == "There is no host"
