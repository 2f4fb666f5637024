"""two people and an agent, real keys, real processes, from nothing to completed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.console.walkthrough import Walk


@pytest.mark.parametrize("size", [(80, 24), (60, 15)])
def test_two_people_and_an_agent_from_new_to_completed(size: tuple[int, int], tmp_path: Path) -> None:
    walk = Walk(tmp_path, size)
    walk.run()
    assert [title for title, _ in walk.steps] == [
        "new",
        "proposal_submitted",
        "review_submitted",
        "proposal_revised",
        "question_classified",
        "decision_accepted",
        "decision_accepted",
        "readiness_passed",
        "completed",
    ]
    for title, shown in walk.steps:
        last = [line for line in shown.split("\n") if line.strip()][-1]
        assert ("Enter write" if title == "new" else "Enter append") in last, f"{title}: the buttons are not at the end"
        assert "Esc back" in last, title
