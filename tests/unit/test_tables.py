"""Commands write their tables between the marks of a page, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tables import publish, publish_row, table_in, with_row

HERE = Path(__file__).parents[2]
PAGE = HERE / "docs" / "held.md"
HEAD = "| target | inputs | seconds |\n|---|---:|---:|\n"


def test_a_row_replaces_its_like_and_the_sum_follows() -> None:
    first = with_row(HEAD, "| talk | 10 | 2.5 |")
    assert first == HEAD + "| talk | 10 | 2.5 |\n| **all** | 10 |  |\n"
    both = with_row(first, "| half | 5 | 2 |")
    assert both == HEAD + "| half | 5 | 2 |\n| talk | 10 | 2.5 |\n| **all** | 15 |  |\n"
    assert with_row(both, "| talk | 1 | 1 |") == HEAD + "| half | 5 | 2 |\n| talk | 1 | 1 |\n| **all** | 6 | 3 |\n"


def test_only_a_named_page_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"a\n<!-- x:begin -->\n{HEAD}<!-- x:end -->\nb\n")
    monkeypatch.delenv("COLLAB_TABLES", raising=False)
    publish("x", "new")
    assert "new" not in page.read_text()
    monkeypatch.setenv("COLLAB_TABLES", str(page))
    publish_row("x", "| talk | 1 | 1 |")
    assert page.read_text() == f"a\n<!-- x:begin -->\n{with_row(HEAD, '| talk | 1 | 1 |')}<!-- x:end -->\nb\n"
    publish("x", "new")
    assert page.read_text() == "a\n<!-- x:begin -->\nnew\n<!-- x:end -->\nb\n"
    with pytest.raises(ValueError, match="not found"):
        publish("y", "new")


@pytest.mark.parametrize("name", ["budgets", "faults", "inputs", "guided", "soak"])
def test_the_page_has_every_table_and_none_failed(name: str) -> None:
    rows = [line for line in table_in(PAGE.read_text("utf-8"), name).splitlines() if line.startswith("|")][2:]
    assert rows
    # A budget that does not hold, a line that was lost, an input that was found.
    last = {line.rstrip("| ").rpartition("|")[2].strip() for line in rows}
    assert name == "soak" or last <= {"yes", "–", "0"}
