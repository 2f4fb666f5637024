"""Runs one ledger verb over and over, in a copy of a stage each time, and ends it at its n-th fault point.

`python ledger_harness.py MODE SCRATCH TEMPLATE ARGV…`: MODE is `kill` or the name of an errno. TEMPLATE is a folder
with `repo/`, `home/`, `bin/`; `{stage}` in ARGV is its copy. For n = 1, 2, … a child process runs `tui.cli.main` and
dies by SIGKILL, or gets the error, at the n-th point; the copy stays in SCRATCH/n. One JSON line a run:
{n, operation, name, status, out, err}; status is null for a killed child. The last run reaches no point any more.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import sys
from pathlib import Path

from core.delegation import addons, gates, materialize, store, switch, verify  # noqa: F401 - each child has them
from core.delegation.events import TYPES
from core.delegation.model import CONTRACTS, Descriptor, RegistryEntry
from core.files import set_fault
from tui.cli import command, main


def install(mode: str, number: int, told: int) -> None:
    """Count the points, tell the parent about the n-th, then end it there."""
    left = [number]

    def hook(operation: str, name: str) -> None:
        left[0] -= 1
        if left[0]:
            return
        os.write(told, json.dumps([operation, name]).encode())
        if mode == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise OSError(getattr(errno, mode), os.strerror(getattr(errno, mode)))

    set_fault(hook)


def child(mode: str, number: int, argv: list[str], told: int, place: Path) -> None:
    for descriptor, name in ((1, "out"), (2, "err")):
        handle = os.open(place / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(handle, descriptor)
    os.environ["HOME"] = str(place / "home")
    os.environ["PATH"] = f"{place / 'bin'}:/usr/local/bin:/usr/bin:/bin"
    install(mode, number, told)
    status = 99
    try:
        status = main(argv)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


def play(mode: str, scratch: Path, template: Path, argv: list[str], number: int) -> bool:
    """One run; whether it reached its n-th point."""
    place = scratch / str(number)
    shutil.copytree(template, place, symlinks=True)
    heard, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        child(mode, number, [word.replace("{stage}", str(place)) for word in argv], told, place)
    os.close(told)
    _, ended = os.waitpid(pid, 0)
    point = os.read(heard, 4096)
    os.close(heard)
    operation, name = json.loads(point) if point else (None, None)
    status = None if os.WIFSIGNALED(ended) else os.WEXITSTATUS(ended)
    record = {"n": number, "operation": operation, "name": name, "status": status}
    record["out"], record["err"] = ((place / stream).read_text() for stream in ("out", "err"))
    sys.__stdout__.write(json.dumps(record) + "\n")
    sys.__stdout__.flush()
    return bool(point)


def run(mode: str, scratch: Path, template: Path, argv: list[str]) -> None:
    command(argv[0])
    # Each child inherits what would otherwise be built anew in every one of them.
    for model in (*CONTRACTS.values(), *TYPES["v7"].values(), Descriptor, RegistryEntry):
        model.model_rebuild()
    addons.shipped()
    number = 1
    while play(mode, scratch, template, argv, number):
        number += 1


if __name__ == "__main__":
    run(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])
