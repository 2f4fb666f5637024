"""Processes that tests start and that end with them, whatever happens in between."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def running(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """A process with pipes where nothing else is said; killed at the end if it has not ended by itself."""
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    with subprocess.Popen(command, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def until_asleep(pid: int) -> None:
    """Until the kernel says that the process waits for something, as it does in the middle of a blocking call."""
    place = Path(f"/proc/{pid}/stat")
    while place.exists() and place.read_text().rpartition(")")[2].split()[0] != "S":
        continue
