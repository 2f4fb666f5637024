"""Writes the tables of README.md and docs/linear.md from the registry: `.venv/bin/python -m tests.tools_keys`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.tables import put
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


def main() -> int:
    """Write each table where it belongs."""
    for (path, name), make in TABLES.items():
        put(path, name, make())
    return 0


if __name__ == "__main__":
    sys.exit(main())
