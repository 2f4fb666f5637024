"""The one shape of every failure (docs/design.md §2)."""

from __future__ import annotations

import dataclasses

import pytest

from core.finding import Finding, Refused, error, errors, warning


def test_as_json_has_exactly_the_five_keys() -> None:
    made = error("file_missing", "missing proposal.md", "collab init --folder x", "proposal.md").as_json()
    assert list(made) == ["code", "severity", "cause", "next_command", "where"]
    assert made["severity"] == "error"
    assert warning("c", "cause").as_json()["next_command"] is None


def test_findings_are_values() -> None:
    one = error("c", "cause")
    assert one == error("c", "cause")
    assert one != warning("c", "cause")
    assert len({one, error("c", "cause")}) == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.code = "other"  # type: ignore[misc]


def test_only_errors_stop_an_act() -> None:
    found = [warning("a", "a"), error("b", "b"), warning("c", "c")]
    assert errors(found) == [Finding("b", "error", "b")]


def test_a_refusal_says_every_cause() -> None:
    refused = Refused(error("a", "first cause"), error("b", "second cause"))
    assert str(refused) == "first cause; second cause"
    assert [item.code for item in refused.findings] == ["a", "b"]
