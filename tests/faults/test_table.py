"""The command that counts the faults tells what was lost, and finds nothing."""

from __future__ import annotations

import pytest

from tests.faults.table import MODES, missing, table


def test_it_counts_what_is_gone() -> None:
    assert missing([1, 2], [1, 2], 1, False) == 0
    assert missing([1, 2], [1, 2, 3], 1, True) == 0
    assert missing([1, 2], [2], 0, False) == 1
    assert missing([1, 2], [1, 2], 1, True) == 1


def test_a_row_of_each_system(capsys: pytest.CaptureFixture[str], own_home: object) -> None:
    assert table(["acp block", "delegation roll", "triage observe"]) == 0
    rows = [line.split("|")[1:-1] for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[0].strip() for row in rows] == ["collaboration", "plan", "triage", "triage", "**all**"]
    assert all(int(row[2]) > 1 and len(row) == len(MODES) + 3 for row in rows)
    assert [row[-1].strip() for row in rows] == ["0"] * 5
