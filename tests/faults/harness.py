"""Runs one verb over and over, in a copy of a folder each time, and ends it at its n-th fault point.

`python harness.py MODE SCRATCH TEMPLATE ARGV…`: MODE is `kill` or the name of an errno. `{folder}` in ARGV is the copy.
For n = 1, 2, … a child process runs `tui.cli.main` and dies by SIGKILL, or gets the error, at the n-th point; the copy
stays in SCRATCH/n. One JSON line a run: {n, operation, name, status, out, err}; status is null for a killed child.
The last run reaches no point any more: it is the act undisturbed.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import sys
from pathlib import Path

from core.acp import check, history, templates, view  # noqa: F401 - each child has them already
from core.acp.vocabulary import vocabulary
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
    place.mkdir()
    folder = place / template.name
    if template.exists():
        shutil.copytree(template, folder)
    heard, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        child(mode, number, [word.replace("{folder}", str(folder)) for word in argv], told, place)
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
    vocabulary()
    number = 1
    while play(mode, scratch, template, argv, number):
        number += 1


if __name__ == "__main__":
    run(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])
