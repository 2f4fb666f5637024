"""An agent that does exactly what SKILL.md says takes part; drop-in scripts call `collab` (docs/design.md §3)."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.acp import skill
from core.acp.check import check
from core.finding import Refused
from tests.conftest import Collab
from tui.cli import main

PEOPLE = ("owner", "first", "second", "third")
WORDS = {
    "WHERE YOU STAND": "In favour",
    "CONCERN": "Eviction is not named",
    "CHANGE": "Name the policy",
    "QUESTION": "Who pays?",
    "QUESTION THAT WAITS :: REASON": "Which size? :: the default will do",
    "OUTCOME": "proceed",
    "WHY": "It fits",
    "WHO DOES WHAT NEXT": "owner opens the first change",
}


def section(text: str, title: str) -> str:
    """The lines below a heading, up to the next one."""
    found = re.search(rf"^#+ {re.escape(title)}$(.*?)(?=^#+ |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, f"SKILL.md has no section {title!r}"
    return found[1]


def blocks(text: str) -> list[list[str]]:
    """Every shell block, as its commands."""
    found = re.findall(r"^ *```sh\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)
    return [[line.strip() for line in block.splitlines() if line.strip()] for block in found]


class Agent:
    """Knows SKILL.md, its folder and its id; everything else it reads from what the commands print."""

    def __init__(self, text: str, folder: Path, who: str, run: Callable[[list[str]], str]) -> None:
        self.text, self.folder, self.who, self.run = text, folder, who, run
        self.done = False

    def command(self, line: str) -> str:
        words = shlex.split(line)
        assert words[0] == "collab"
        known = {"FOLDER": str(self.folder), "ID": self.who, **WORDS}
        made = [known.get(word, word) for word in words[1:]]
        assert not any(word.isupper() and len(word) > 1 for word in made), line
        return self.run(made)

    def turn(self) -> None:
        """Steps 1 to 3 of the loop."""
        said = self.command(blocks(section(self.text, "The loop"))[0][0].replace("--timeout 0", "--timeout 0.1"))
        facts = dict(re.findall(r"^([a-z ]+): (.*)$", said, re.MULTILINE))
        phase = facts["phase"]
        if phase in ("completed", "blocked"):
            self.done = True
            return
        role = "owner" if facts["proposal owner"] == self.who else "reviewer"
        steps = blocks(section(self.text, f"{phase}, {role}"))
        getattr(self, f"{phase}_{role}")(steps, facts)

    def drafting_owner(self, steps: list[list[str]], facts: dict[str, str]) -> None:
        file = self.folder / self.deliverable()
        file.write_text(re.sub(r"^(## .+)\n+(?=## |\Z)", r"\1\n\nAgreed.\n\n", file.read_text(), flags=re.MULTILINE))
        said = self.command(steps[0][0])
        while "append deliverable_drafted" in said:
            found = re.search(r"^command: (.*)$", said, re.MULTILINE)
            assert found is not None
            self.command(found[1])
            said = self.command(steps[0][0])
        (self.folder / "proposal.md").write_text("# Proposal\n\nKeep sessions for an hour.\n")
        self.command(steps[1][0])

    def deliverable(self) -> str:
        shown = self.run(["show", "--folder", str(self.folder)])
        found = re.search(r"^ +(deliverables/\S+) ", shown, re.MULTILINE)
        assert found is not None, shown
        return found[1]

    def reviewing_reviewer(self, steps: list[list[str]], facts: dict[str, str]) -> None:
        self.command(steps[0][0])

    def revising_owner(self, steps: list[list[str]], facts: dict[str, str]) -> None:
        text = section(self.text, "revising, owner")
        assert "`### D1. TITLE`" in text
        ref = self.deliverable()
        decided = f"- Decision: An hour.\n- Reflected in: `{ref}`\n"
        (self.folder / "decisions.md").write_text(f"# Decisions\n\n### D1. Sessions live an hour\n\n{decided}")
        self.command(steps[0][0])

    def decision_review_owner(self, steps: list[list[str]], facts: dict[str, str]) -> None:
        self.command(steps[0 if "question_classified" in facts["next action"] else 1][0])

    def decision_review_reviewer(self, steps: list[list[str]], facts: dict[str, str]) -> None:
        for line in steps[0]:
            self.command(line)

    def readiness_check_owner(self, steps: list[list[str]], facts: dict[str, str]) -> None:
        for line in steps[0]:
            self.command(line)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[[list[str]], str]:
    def call(argv: list[str]) -> str:
        capsys.readouterr()
        status = main(argv)
        captured = capsys.readouterr()
        waited = argv[0] == "wait" and status == 1
        assert status == 0 or waited, f"{argv}: {captured.out}{captured.err}"
        return "phase: none\nproposal owner: -\n" if waited else captured.out

    return call


def test_whoever_does_what_the_skill_says_completes_a_collaboration(
    tmp_path: Path, run: Callable[[list[str]], str]
) -> None:
    run(["skill", "install", str(tmp_path / "skill")])
    text = (tmp_path / "skill" / "SKILL.md").read_text(encoding="utf-8")
    folder = tmp_path / "talk"
    start = shlex.split(blocks(section(text, "Starting one"))[0][0])[1:]
    known = {
        "FOLDER": str(folder),
        "ID": "owner",
        "OTHER": "first",
        "OBJECTIVE": "Agree",
        "GATE": "Measured",
        "TYPE": "adr",
    }
    run([known.get(word, word) for word in start] + ["--participant", "second", "--participant", "third"])
    agents = [Agent(text, folder, who, run) for who in PEOPLE]
    for _ in range(12):
        setup = json.loads((folder / "protocol.json").read_text())
        # The order of the list is nobody's: each acts when it is waited for, the last one first.
        waited = [one for one in reversed(agents) if one.who in setup["waitingFor"]]
        for agent in waited or agents:
            agent.turn()
        if all(agent.done for agent in agents):
            break
    assert all(agent.done for agent in agents)
    assert check(folder)[1] == []
    assert json.loads((folder / "protocol.json").read_text())["currentPhase"] == "completed"
    names = [json.loads(line)["event"] for line in (folder / "events.jsonl").read_text().splitlines()]
    assert names.count("review_submitted") == 3
    assert names.count("decision_accepted") == 4


def lists(text: str) -> Iterator[tuple[str, list[str]]]:
    for name in ("Produces", "Consumes", "Boundary events"):
        found = re.search(rf"^{name}:\n((?:- .+\n)+)", section(text, "Ecosystem"), re.MULTILINE)
        assert found is not None, name
        yield name, re.findall(r"^- `([^`]+)`", found[1], re.MULTILINE)


def test_the_ecosystem_section_names_what_crosses_the_boundary() -> None:
    found = dict(lists(skill.files()["SKILL.md"].decode()))
    assert found == {
        "Produces": ["pi.receipt_envelope.v1", "collab.acp_boundary.v1"],
        "Consumes": ["shame.immutable_goal.v1"],
        "Boundary events": ["decision_accepted", "completed", "blocked"],
    }


def test_installing_again_changes_nothing_and_mends_an_older_version(tmp_path: Path) -> None:
    skill.install(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert {str(path.relative_to(tmp_path)) for path in before} == set(skill.files())
    old = b"#!/usr/bin/env python3\n"
    sealed = old + f"# collab skill, sha256 of what stands above: {skill.sha256(old)}\n".encode()
    (tmp_path / "scripts" / "next_action.py").write_bytes(sealed)
    skill.install(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("name", ["SKILL.md", "scripts/append_event.py"])
def test_files_of_others_and_edited_ones_stay(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    for content in (b"theirs\n", skill.files()[name] + b"mine\n", skill.files()[name].replace(b"collab", b"Collab", 1)):
        path.write_bytes(content)
        with pytest.raises(Refused) as caught:
            skill.install(tmp_path)
        assert caught.value.findings[0].code == "skill_file_foreign"
        assert [one.name for one in tmp_path.rglob("*") if one.is_file()] == [path.name]
        assert path.read_bytes() == content


def script(place: Path, name: str, *argv: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(place / "scripts" / name), *argv],
        capture_output=True, encoding="utf-8", timeout=60, check=False, env=environment or None,
    )  # fmt: skip


def test_the_scripts_are_the_verbs(tmp_path: Path, collab: Collab) -> None:
    skill.install(tmp_path / "skill")
    folder = str(tmp_path / "talk")
    place = tmp_path / "skill"
    people = ["--participant", "server", "--participant", "reader"]
    flags = ["--objective", "O", "--completion", "G", "--primary-deliverable-type", "adr"]
    assert script(place, "init_collaboration.py", "--folder", folder, *people, *flags).returncode == 0
    said = script(place, "next_action.py", "--folder", folder, "--participant", "server")
    assert said.stdout == collab("next", "--folder", folder, "--participant", "server").stdout
    draft = [
        "--event",
        "deliverable_drafted",
        "--summary",
        "Drafted",
        "--role",
        "primary",
        "--doc",
        "deliverables/adr.md",
    ]
    said = script(place, "append_event.py", "--folder", folder, "--participant", "server", *draft, "--reply-to", "1")
    assert (said.returncode, said.stdout) == (0, "appended seq 2: deliverable_drafted\n")
    said = script(place, "append_event.py", "--folder", folder, "--participant", "reader", *draft, "--reply-to", "9")
    assert (said.returncode, said.stderr.startswith("error: ")) == (2, True)
    wait = ["--folder", folder, "--participant", "reader", "--timeout", "0.1", "--interval", "0.1"]
    assert script(place, "wait_for_turn.py", *wait).returncode == 1
    assert script(place, "validate_collaboration.py", "--folder", folder).returncode == 0


def test_without_collab_a_script_says_how_to_install_it(tmp_path: Path) -> None:
    skill.install(tmp_path)
    # An interpreter that stands beside no `collab`.
    python = tmp_path / "python3"
    python.symlink_to(Path(sys.executable).resolve())
    for name in skill.SCRIPTS:
        done = subprocess.run(
            [str(python), "-I", str(tmp_path / "scripts" / name)],
            capture_output=True, encoding="utf-8", timeout=60, check=False, env={"PATH": str(tmp_path)},
        )  # fmt: skip
        assert done.returncode == 2
        assert "pip install" in done.stderr
        assert done.stderr.startswith("error: ")
