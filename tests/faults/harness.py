"""Runs one verb over and over, in a copy of a folder each time, and ends it at its n-th fault point.

`python harness.py MODE SCRATCH TEMPLATE ARGV…`: MODE is `kill` or the name of an errno. `{folder}` in ARGV is the copy.
For n = 1, 2, … `tui.cli.main` runs and dies by SIGKILL (in a child process), or gets the error, at the n-th point; the
copy stays in SCRATCH/n. One JSON line a run: {n, operation, name, status, out, err}; status is null when it was killed.
The last run reaches no point any more: it is the act undisturbed.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

from core.acp import check, history, templates, view  # noqa: F401 - each child has them already
from core.acp.vocabulary import vocabulary
from core.files import set_fault
from tui.cli import command, main

Point = tuple[str | None, str | None]


def said(argv: list[str]) -> tuple[int, str, str]:
    """Run a verb; (status, stdout, stderr)."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(argv)
    return status, out.getvalue(), err.getvalue()


def fail(code: int, number: int, argv: list[str]) -> tuple[Point, int | None, str, str]:
    """Run a verb whose n-th point raises an error of the operating system."""
    left, point = [number], [(None, None)]

    def hook(operation: str, name: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            point[0] = (operation, name)
            raise OSError(code, os.strerror(code))

    set_fault(hook)
    result = said(argv)
    set_fault(None)
    return point[0], *result


def kill(number: int, argv: list[str]) -> tuple[Point, int | None, str, str]:
    """Run a verb in a child process that kills itself at its n-th point, having told which one it is."""
    heard, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        left = [number]

        def hook(operation: str, name: str) -> None:
            left[0] -= 1
            if left[0] == 0:
                os.write(told, json.dumps([operation, name]).encode())
                os.kill(os.getpid(), signal.SIGKILL)

        set_fault(hook)
        status = 99
        try:
            status = said(argv)[0]
        finally:
            os._exit(status)
    os.close(told)
    _, ended = os.waitpid(pid, 0)
    point = os.read(heard, 4096)
    os.close(heard)
    operation, name = json.loads(point) if point else (None, None)
    return (operation, name), None if os.WIFSIGNALED(ended) else os.WEXITSTATUS(ended), "", ""


def play(mode: str, scratch: Path, template: Path, argv: list[str], number: int) -> bool:
    """One run; whether it reached its n-th point."""
    folder = scratch / str(number) / template.name
    folder.parent.mkdir()
    if template.exists():
        shutil.copytree(template, folder)
    words = [word.replace("{folder}", str(folder)) for word in argv]
    ended = kill(number, words) if mode == "kill" else fail(getattr(errno, mode), number, words)
    (operation, name), status, out, err = ended
    record: dict[str, Any] = {"n": number, "operation": operation, "name": name, "status": status}
    print(json.dumps({**record, "out": out, "err": err}), flush=True)
    return operation is not None


def run(mode: str, scratch: Path, template: Path, argv: list[str]) -> None:
    command(argv[0])
    vocabulary()
    number = 1
    while play(mode, scratch, template, argv, number):
        number += 1


if __name__ == "__main__":
    run(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])
