"""The conformance cases of the delegation record, through the verbs (docs/specs/delegation.md)."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from core.delegation import canon
from tests.conformance.delegation_runner import VECTORS, Result, Stage, bare_repository, contract, play
from tests.conftest import console_script
from tui.cli import main, parser

WHOLE = parser()
"""Every command that a refusal offers must at least be one."""


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bare_repository(tmp_path_factory.mktemp("delegation"))


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The verbs' own entry point, in this process, in the stage's environment."""

    def run(argv: list[str], stage: Stage) -> Result:
        with monkeypatch.context() as patch:
            for name in list(os.environ):
                if not name.startswith(("PYTEST", "COLLAB", "XDG")):
                    patch.delenv(name)
            for name, value in stage.environment.items():
                patch.setenv(name, value)
            patch.chdir(stage.repo)
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b""), encoding="utf-8"))
            capsys.readouterr()
            status = main(argv)
        captured = capsys.readouterr()
        for line in captured.err.splitlines():
            if line.startswith("  next: "):
                offered = shlex.split(line.removeprefix("  next: "))
                assert offered[0] == "collab"
                if "--help" not in offered:
                    WHOLE.parse_args(offered[1:])
        return Result(status, captured.out, captured.err)

    return run


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in VECTORS["cases"]])
def test_case(case: dict[str, Any], quick_path: Path, template: Path, call: Any) -> None:
    play(case, quick_path, template, call)


def answer(fact: dict[str, Any]) -> Any:
    given = fact["input"]
    if isinstance(given, str) and given in VECTORS["contracts"]:
        given = contract(given)
    makers: dict[str, Any] = {
        "canonical": canon.canonical,
        "canonical_sha256": lambda value: hashlib.sha256(canon.canonical(value).encode()).hexdigest(),
        "canonical_bytes": lambda value: len(canon.canonical(value).encode()),
        "contract_id": canon.contract_id,
        "sha256_text": lambda text: hashlib.sha256(text.encode()).hexdigest(),
        "digest_text": lambda text: canon.digest(text.encode()),
        "tree_fingerprint": lambda tree: canon.tree_fingerprint(tree["head"], tree["status"]),
        "journal_line_sha256": lambda event: hashlib.sha256(canon.line(event)).hexdigest(),
        "journal_line_bytes": lambda event: len(canon.line(event)),
    }
    return makers[fact["is"]](given)


@pytest.mark.parametrize("fact", [pytest.param(fact, id=fact["id"]) for fact in VECTORS["facts"]])
def test_fact(fact: dict[str, Any]) -> None:
    assert answer(fact) == fact["result"]


def test_a_sample_in_processes_of_their_own(quick_path: Path, template: Path) -> None:
    """Every fortieth case through the console script itself."""
    program = console_script()

    def run(argv: list[str], stage: Stage) -> Result:
        environment = {**stage.environment, "COLLAB_STATE": str(stage.work / "state")}
        done = subprocess.run(
            [program, *argv],
            cwd=stage.repo,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    chosen = VECTORS["cases"][::40]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        played = [
            pool.submit(play, case, quick_path / str(number), template, run) for number, case in enumerate(chosen)
        ]
        for one in played:
            one.result()


def test_no_case_of_the_file_is_left_out() -> None:
    names = [case["id"] for case in VECTORS["cases"]]
    assert len(names) == len(set(names)) == 338
    assert json.dumps(VECTORS["facts"])
