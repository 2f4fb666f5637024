"""The conformance cases of governance: triage, envelopes, statuses, members, goals (docs/specs/governance.md)."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.governance_runner import VECTORS, Result, as_process, differences, in_process, play
from tui.cli import parser

WHOLE = parser()
CASES = VECTORS["cases"]


def call(argv: list[str], stdin: str) -> Result:
    return in_process(argv, stdin)


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES])
def test_case(case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    play(case, tmp_path, call)


SAMPLE = [case for case in CASES if "steps" not in case][::24]


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in SAMPLE])
def test_a_sample_in_processes_of_their_own(
    case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    play(case, tmp_path, as_process)


def test_the_vectors_are_whole() -> None:
    assert len(CASES) == 376
    assert len({case["id"] for case in CASES}) == 376


@pytest.mark.parametrize(
    ("actual", "wanted"),
    [
        (1, True),
        ({"a": 1}, {"b": 1}),
        ([1], [1, 2]),
        ({"a": 1, "b": 2}, {"$keys": ["a"]}),
        ({"a": 1}, {"a": {"$absent": True}}),
        ([1, 2], {"$contains": [3]}),
        ([{"a": 1}], {"$lacks": {"a": 1}}),
        ([2, 1], {"$first": 1}),
        ([1], {"$len": 2}),
        ("abc", {"$text": ["a", "x"]}),
        ({"k": "abc"}, {"$not_text": "abc"}),
        (3, {"$any": [1, 2]}),
    ],
)
def test_the_matcher_can_fail(actual: Any, wanted: Any) -> None:
    assert differences(actual, wanted) is not None


def test_every_offered_command_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a refusal offers to paste must at least parse."""
    monkeypatch.chdir(tmp_path)
    for argv in (
        ["triage", "classify", "--text", "BLOCKED", "--layer", "a b"],
        ["triage", "classify", "--text", "BLOCKED", "--layer=-x-"],
        ["triage", "promote", "nope", "--code", "x"],
        ["status", "validate", "-"],
        ["members", "validate", "nowhere.json"],
    ):
        result = in_process(argv, "{}")
        assert result.code == 2
        for line in result.err.splitlines():
            if line.startswith("  next: "):
                words = shlex.split(line.removeprefix("  next: "))
                assert words[0] == "collab"
                if words[-1] == "--help":
                    assert in_process(words[1:], "").code == 0
                else:
                    WHOLE.parse_args(words[1:])
