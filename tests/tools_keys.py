"""Writes the tables of README.md and docs/linear.md from the registry: `.venv/bin/python -m tests.tools_keys`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tui.actions import key_table_markdown
from tui.linear import actions_markdown, screens_markdown

ROOT = Path(__file__).parent.parent
README, LINEAR = ROOT / "README.md", ROOT / "docs" / "linear.md"
TABLES: Mapping[tuple[Path, str], Callable[[], str]] = {
    (README, "keys"): key_table_markdown,
    (LINEAR, "screens"): screens_markdown,
    (LINEAR, "actions"): actions_markdown,
}
"""Each generated table: its file and the name of its marks."""


def _place(text: str, name: str) -> tuple[int, int]:
    start = text.index(f"<!-- {name}:begin -->\n") + len(f"<!-- {name}:begin -->\n")
    return start, text.index(f"<!-- {name}:end -->", start)


def table_in(text: str, name: str = "keys") -> str:
    """What stands between the marks. Raises ValueError when they are not there."""
    start, end = _place(text, name)
    return text[start:end]


def main() -> int:
    """Write each table where it belongs."""
    for (path, name), make in TABLES.items():
        text = path.read_text(encoding="utf-8")
        start, end = _place(text, name)
        path.write_text(text[:start] + make() + text[end:], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
