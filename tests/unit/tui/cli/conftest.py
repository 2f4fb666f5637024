"""Verbs run in this process through `tui.cli.main`, on folders copied from one that was played to its end."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from core.acp import guided
from core.acp.templates import initialize
from tests.conftest import FixedClock
from tests.unit.core.acp.test_guided import WAY
from tui.cli import main

PEOPLE = ("server", "reader", "editor")
GATE = "Measured (p95 < 5 ms) [cache]"
STEPS = {
    "drafting": 0,
    "reviewing": 1,
    "one review": 2,
    "revising": 3,
    "revised": 4,
    "proposed": 5,
    "classified": 6,
    "accepted": 9,
    "passed": 10,
    "completed": 11,
}
"""Name of a situation to the number of acts that lead there; `blocked` is made from `reviewing`."""

UNSAFE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e0fff]"
)
"""What may act on a terminal or hide on it: everything of the kind but the line end."""

FINDING_KEYS = ["code", "severity", "cause", "next_command", "where"]
NEXT = re.compile(r"^ *next: (collab .*)$", re.MULTILINE)


@dataclass(frozen=True)
class Said:
    """What a verb said; made only when it kept to the rules that hold for every verb."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        made: dict[str, Any] = json.loads(self.out)
        return made

    @property
    def findings(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.document["findings"]
        return found

    @property
    def codes(self) -> list[str]:
        return [item["code"] for item in self.findings]

    @property
    def commands(self) -> list[list[str]]:
        """Every command that was offered, split into words as a shell does."""
        if self.out.startswith("{"):
            return [shlex.split(item["next_command"]) for item in self.findings if item["next_command"]]
        return [shlex.split(found) for found in NEXT.findall(self.out + self.err)]


Say = Callable[..., Said]


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    """`say(verb, …)`: run it and check what holds for every verb, well used or not."""

    def run(*argv: str) -> Said:
        capsys.readouterr()
        status = main(argv)
        captured = capsys.readouterr()
        said = Said(status, captured.out, captured.err)
        check(argv, said)
        return said

    return run


def check(argv: tuple[str, ...], said: Said) -> None:
    both = said.out + said.err
    assert said.status in (0, 1, 2), argv
    assert "Traceback" not in both, argv
    assert "internal_error" not in both, (argv, both)
    assert "error: unexpected " not in both, (argv, both)
    assert UNSAFE.search(both) is None, (argv, both)
    if "json" in argv or "-ojson" in argv:
        assert said.err == "", argv
        assert said.out.isascii(), argv
        document = said.document
        assert isinstance(document, dict)
        if argv[0] == "ledger":
            # It has the form of its own specification.
            assert list(document)[-1] == "finding"
            return
        assert list(document)[-1] == "findings"
        for item in document["findings"]:
            assert list(item) == FINDING_KEYS
            assert item["severity"] in ("error", "warning")
            assert item["cause"]
            assert item["code"] == item["code"].lower()
        if said.status == 2:
            assert any(item["severity"] == "error" for item in document["findings"]), argv
    elif said.status == 2:
        assert re.search(r"^(error|ERROR): \S", both, re.MULTILINE), (argv, both)


@pytest.fixture(scope="session")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A collaboration in every situation, never to be written."""
    place = tmp_path_factory.mktemp("played")
    folder = place / "way"
    clock = FixedClock()
    initialize(folder, "Agree on the session cache.", PEOPLE, [GATE], clock)
    found: dict[str, Path] = {}
    by_step = {step: name for name, step in STEPS.items()}
    for step in range(len(WAY) + 1):
        if step:
            clock.step(60)
            guided.commit(folder, WAY[step - 1], clock)
        if step in by_step:
            found[by_step[step]] = Path(shutil.copytree(folder, place / str(step)))
    blocked = Path(shutil.copytree(found["reviewing"], place / "blocked"))
    guided.commit(blocked, guided.block("reader", "No host until Monday"), clock)
    return {**found, "blocked": blocked}


At = Callable[..., Path]


@pytest.fixture
def at(quick_path: Path, played: dict[str, Path]) -> At:
    """`at("reviewing")`: a folder of one's own in that situation; a name may be given."""

    def copy(situation: str, name: str = "talk") -> Path:
        return Path(shutil.copytree(played[situation], quick_path / name))

    return copy


def tree(place: Path) -> dict[str, bytes]:
    """Every file below, the lock aside: whoever is refused may have taken it."""
    return {
        str(path.relative_to(place)): path.read_bytes()
        for path in place.rglob("*")
        if path.is_file() and path.name != "lock"
    }
