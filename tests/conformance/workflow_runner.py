"""Runs the cases of `vectors/workflows.json` through `collab workflow simulate` (docs/specs/workflows.md §10)."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conftest import console_script
from tui.cli import main

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent / "vectors" / "workflows.json").read_text("utf-8"))
ARGV = ["workflow", "simulate", "spec.yml", "--script", "script.json", "-o", "json"]


@dataclass(frozen=True)
class Result:
    """What a simulation left: exit code, stdout, stderr."""

    code: int
    out: str
    err: str


Call = Callable[[], Result]


def in_process() -> Result:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(ARGV)
    return Result(code, out.getvalue(), err.getvalue())


def as_process() -> Result:
    environment = {**os.environ, "TZ": "Pacific/Kiritimati", "PYTHONHASHSEED": "7"}
    made = subprocess.run(
        [console_script(), *ARGV],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        env=environment,
        timeout=120,
        check=False,
    )
    return Result(made.returncode, made.stdout, made.stderr)


def lay(case: Mapping[str, Any], folder: Path) -> None:
    """Write SPEC and SCRIPT of a case."""
    script = {"agents": case["agents"], "steps": case["script"]}
    if "specs" in case:
        script["specs"] = case["specs"]
    (folder / "spec.yml").write_text(case["spec"], "utf-8")
    (folder / "script.json").write_text(json.dumps(script, ensure_ascii=False), "utf-8")


def play(case: Mapping[str, Any], folder: Path, *calls: Call) -> None:
    """Lay a case out in the current folder and play it with each call: all print the same bytes, all as expected."""
    lay(case, folder)
    before = {path: path.read_bytes() for path in folder.rglob("*")}
    results = [call() for call in calls]
    for result in results:
        assert "Traceback" not in result.err
        assert result.code == case.get("exit", 0), result.err
        for text in case.get("absent_text", ()):
            assert text not in result.out
            assert text not in result.err
        found = json.loads(result.out)
        assert isinstance(found, dict)
        wrong = list(differences(case["expect"], found, ""))
        assert not wrong, wrong[0]
    assert len({result.out for result in results}) == 1
    assert {path: path.read_bytes() for path in folder.rglob("*")} == before


def differences(expected: Any, actual: Any, where: str) -> list[str]:
    """Where the actual value does not match, in words; empty when it does."""
    if isinstance(expected, dict):
        found = []
        for key, value in expected.items():
            if key.startswith("$"):
                found += _operator(key, value, actual, where)
            elif isinstance(value, dict) and value.get("$absent") is True:
                if isinstance(actual, dict) and key in actual:
                    found.append(f"{where}/{key} is there: {actual[key]!r}")
            elif not isinstance(actual, dict) or key not in actual:
                found.append(f"{where}/{key} is missing")
            else:
                found += differences(value, actual[key], f"{where}/{key}")
        return found
    if isinstance(expected, list):
        if not isinstance(actual, list) or len(actual) != len(expected):
            return [f"{where} should have {len(expected)} entries: {json.dumps(actual)[:400]}"]
        return [
            wrong
            for at, pair in enumerate(zip(expected, actual, strict=True))
            for wrong in differences(*pair, f"{where}/{at}")
        ]
    numbers = all(isinstance(item, (int, float)) and not isinstance(item, bool) for item in (expected, actual))
    if expected == actual and (numbers or type(expected) is type(actual)):
        return []
    return [f"{where} is {actual!r}, not {expected!r}"]


def _operator(name: str, value: Any, actual: Any, where: str) -> list[str]:
    if name == "$has":
        return [f"{where} has no {one!r}" for one in value if all(differences(one, item, "") for item in actual)]
    if name == "$len":
        return [] if len(actual) == value else [f"{where} has length {len(actual)}, not {value}"]
    if name == "$first_keys":
        return [] if list(actual)[: len(value)] == value else [f"{where} begins with {list(actual)[: len(value)]}"]
    if name == "$re":
        return [] if isinstance(actual, str) and re.search(value, actual) else [f"{where}: {actual!r} lacks {value!r}"]
    raise ValueError(f"no operator {name}")
