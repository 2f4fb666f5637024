"""Tables in documents, between marks: what a command measured is written where it is read.

`COLLAB_TABLES=docs/held.md COMMAND` writes the table of a command there; without it, it is only printed.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def place(text: str, name: str) -> tuple[int, int]:
    """Where the table of that name stands. Raises ValueError when its marks are not there."""
    start = text.index(f"<!-- {name}:begin -->\n") + len(f"<!-- {name}:begin -->\n")
    return start, text.index(f"<!-- {name}:end -->", start)


def table_in(text: str, name: str = "keys") -> str:
    """What stands between the marks. Raises ValueError when they are not there."""
    start, end = place(text, name)
    return text[start:end]


def put(path: Path, name: str, table: str) -> None:
    """Replace what stands between the marks."""
    text = path.read_text(encoding="utf-8")
    start, end = place(text, name)
    path.write_text(text[:start] + table + text[end:], encoding="utf-8")


def publish(name: str, table: str) -> None:
    """Write a table into the page that `COLLAB_TABLES` names, if it does."""
    with _page() as path:
        if path is not None:
            put(path, name, table.rstrip("\n") + "\n")


def publish_row(name: str, row: str) -> None:
    """Replace the row that begins with the same cell, or add it; a last row named **all** is the sum of the others."""
    with _page() as path:
        if path is not None:
            put(path, name, with_row(table_in(path.read_text(encoding="utf-8"), name), row))


def with_row(table: str, row: str) -> str:
    """The table with that row, and the sums of its columns of whole numbers."""
    head, rule, *rows = table.strip().splitlines()
    cells = {cells[0]: cells for line in (*rows, row) if (cells := _cells(line))[0] != "**all**"}
    made = [cells[key] for key in sorted(cells)]
    sums = [str(sum(map(int, column))) if all(map(str.isdecimal, column)) else "" for column in zip(*made, strict=True)]
    lines = [f"| {' | '.join(one)} |" for one in (*made, ["**all**", *sums[1:]])]
    return "\n".join((head, rule, *lines)) + "\n"


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


@contextmanager
def _page() -> Iterator[Path | None]:
    """The page, with everybody else who writes into it kept out."""
    named = os.environ.get("COLLAB_TABLES")
    if not named:
        yield None
        return
    with open(named, "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield Path(named)
