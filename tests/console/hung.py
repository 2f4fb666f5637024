"""The console on a file system that hangs as long as a file named HUNG is there: `hung.py HUNG ARGV…`."""

from __future__ import annotations

import os
import sys
import threading

from core.acp.reader import FolderReader, Snapshot
from tui.cli import main

refresh = FolderReader.refresh
tick = threading.Event()


def hanging(reader: FolderReader) -> Snapshot:
    """As a read from a server that does not answer."""
    while os.path.exists(sys.argv[1]):
        tick.wait(0.05)
    return refresh(reader)


FolderReader.refresh = hanging  # type: ignore[method-assign]
sys.exit(main(sys.argv[2:]))
