"""The conformance cases of the collaboration protocol, both schema generations (docs/specs/acp.md)."""

from __future__ import annotations

import os
import random
import shlex
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.acp_runner import VECTORS, Result, Walk, build, check_validate
from tests.conftest import Collab
from tui.cli import main, parser

WHOLE = parser()
"""Every command that a refusal offers must at least be one."""


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Any:
    """The verbs' own entry point, in this process."""

    def run(argv: list[str]) -> Result:
        capsys.readouterr()
        status = main(argv)
        captured = capsys.readouterr()
        for line in (captured.out + captured.err).splitlines():
            if line.startswith("  next: "):
                offered = shlex.split(line.removeprefix("  next: "))
                assert offered[0] == "collab"
                WHOLE.parse_args(offered[1:])
        return Result(status, captured.out, captured.err)

    return run


def _cases(group: str) -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in VECTORS[group]]


def test_the_vectors_are_whole() -> None:
    counts = VECTORS["counts"]
    assert len(VECTORS["walks"]) == counts["walks"]
    assert sum(len(walk["steps"]) for walk in VECTORS["walks"]) == counts["steps"]
    assert len(VECTORS["validate"]) == counts["validate"]


@pytest.mark.parametrize("walk", _cases("walks"))
def test_walk(walk: dict[str, Any], tmp_path: Path, call: Any) -> None:
    Walk(walk, tmp_path).play(call)


@pytest.mark.parametrize("case", _cases("validate"))
def test_validate(case: dict[str, Any], tmp_path: Path, call: Any) -> None:
    folder = build(tmp_path, case["base"], case)
    check_validate(folder, call, case["exit"], case["id"])


def _sample(steps: int) -> list[dict[str, Any]]:
    """A fixed choice of walks with so many steps in all, the last one cut short."""
    chosen: list[dict[str, Any]] = []
    walks = list(VECTORS["walks"])
    random.Random(7).shuffle(walks)
    while steps:
        walk = walks.pop()
        if len(walk["steps"]) > steps:
            walk = {**walk, "steps": walk["steps"][:steps], "end": {}}
        chosen.append(walk)
        steps -= len(walk["steps"])
    return chosen


@pytest.mark.parametrize("steps", [60, pytest.param(150, marks=pytest.mark.slow)])
def test_a_sample_in_processes_of_their_own(steps: int, tmp_path: Path, collab: Collab) -> None:
    """So many steps through the console script itself."""

    def run(argv: list[str]) -> Result:
        done = collab(*argv)
        return Result(done.returncode, done.stdout, done.stderr)

    def play(number: int, walk: dict[str, Any]) -> None:
        root = tmp_path / str(number)
        root.mkdir()
        Walk(walk, root).play(run)

    chosen = _sample(steps)
    assert {walk["schema"] for walk in chosen} == {1, 2}
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for played in [pool.submit(play, number, walk) for number, walk in enumerate(chosen)]:
            played.result()
