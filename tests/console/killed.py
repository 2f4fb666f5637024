"""The console, ended by SIGKILL at its n-th write after a file named ARMED is there: `killed.py ARMED N ARGV…`."""

from __future__ import annotations

import os
import signal
import sys

from core.files import set_fault
from tui.cli import main

points = iter(range(1, int(sys.argv[2]) + 1))


def hook(operation: str, name: str) -> None:
    """Count what is written once the test says so."""
    if os.path.exists(sys.argv[1]) and next(points) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)


set_fault(hook)
sys.exit(main(sys.argv[3:]))
