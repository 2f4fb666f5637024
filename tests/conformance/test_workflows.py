"""The conformance cases of the workflow engine, played by `collab workflow simulate` (docs/specs/workflows.md)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.workflow_runner import VECTORS, as_process, differences, in_process, play

CASES = VECTORS["cases"]
PARAMS = [pytest.param(case, id=case["id"]) for case in CASES]


@pytest.mark.parametrize("case", PARAMS)
def test_case_twice(case: dict[str, Any], tmp_path: Path, quick_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(quick_path))
    play(case, tmp_path, in_process, in_process)
    assert list(quick_path.iterdir()) == []


@pytest.mark.parametrize("case", PARAMS[::12])
def test_a_sample_in_processes_of_their_own(
    case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    play(case, tmp_path, as_process, in_process)


def test_the_vectors_are_whole() -> None:
    assert VECTORS["system"] == "workflows"
    assert len(CASES) == 75


@pytest.mark.parametrize(
    ("expected", "actual", "matches"),
    [
        ({}, None, True),
        ({"a": {"$absent": True}}, {"b": 1}, True),
        ({"a": {"$absent": True}}, {"a": None}, False),
        ({"$has": [{"a": 1}, {"a": 2}]}, [{"a": 2}, {"a": 1, "b": 3}], True),
        ({"$has": [{"a": 4}]}, [{"a": 2}], False),
        ({"$first_keys": ["x", "y"]}, {"x": 1, "y": 2, "z": 3}, True),
        ({"$first_keys": ["y"]}, {"x": 1, "y": 2}, False),
        (1, True, False),
        (1, 1.0, True),
        ([1], [1, 2], False),
        ({"$re": "^run:"}, "run:\n", True),
    ],
)
def test_the_matcher_itself(expected: Any, actual: Any, matches: bool) -> None:
    assert (not differences(expected, actual, "")) is matches
