"""Writes the key table of the README from the registry of actions: `.venv/bin/python -m tests.tools_keys`."""

from __future__ import annotations

import sys
from pathlib import Path

from tui.actions import key_table_markdown

README = Path(__file__).parent.parent / "README.md"
BEGIN, END = "<!-- keys:begin -->\n", "<!-- keys:end -->"


def table_in(text: str) -> str:
    """What stands between the marks. Raises ValueError when they are not there."""
    start = text.index(BEGIN) + len(BEGIN)
    return text[start : text.index(END, start)]


def main() -> int:
    """Write the table where it belongs."""
    text = README.read_text(encoding="utf-8")
    start = text.index(BEGIN) + len(BEGIN)
    README.write_text(text[:start] + key_table_markdown() + text[text.index(END, start) :], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
