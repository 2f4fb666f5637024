"""What the verbs over documents share: files, the workspace, the catalogue in use (docs/specs/governance.md §1)."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

from core import strict
from core.finding import Finding, Refused, error, errors
from core.triage.store import Place

from tui.cli.base import DONE, REFUSED, WARNED, Out, Parser, as_argument, folder_gone, output_again, run_act, user_state


def shared_arguments(parser: Parser) -> None:
    """`-o json --root --catalog --as`, as every one of these verbs takes them."""
    output_again(parser)
    parser.add_argument("--root", type=folder, default=Path(), metavar="DIR", help="the workspace (default: here)")
    parser.add_argument("--catalog", metavar="FILE", help="the failure vocabulary; else the workspace's, else ours")
    as_argument(parser)


def run_rooted(args: argparse.Namespace, out: Out) -> int:
    """What a verb over documents does; the commands that it offers name its workspace and catalogue too."""
    root: Path = args.root
    words = "" if root == Path() else f" --root {shlex.quote(str(root))}"
    if args.catalog and args.catalog != "-":
        words += f" --catalog {shlex.quote(args.catalog)}"

    def offer(command: str) -> str:
        ours = command.startswith(("collab triage ", "collab members ", "collab status "))
        return command + words if ours and " --root " not in command and not command.endswith(" --help") else command

    out.offer = offer
    return run_act(args, out)


def folder(text: str) -> Path:
    """A folder as it was given, so that what is said about it can be read from here."""
    if not text or "\0" in text:
        raise argparse.ArgumentTypeError("the folder is blank")
    return Path(text)


def texts_argument(parser: Parser, flag: str, text: str, metavar: str = "TEXT") -> None:
    """A flag that takes one or more texts and may be repeated."""
    parser.add_argument(flag, action="extend", nargs="+", default=[], metavar=metavar, help=text)


class Sources:
    """Reads what the flags name. Standard input can be read once, whoever asks for it."""

    def __init__(self) -> None:
        self._taken: str | None = None

    def read(self, name: str | None, label: str, cap: int = strict.CAP) -> bytes:
        """The bytes of a file, or of standard input for `-`. Raises Refused."""
        if not name:
            raise Refused(
                error("usage_wrong", f"{label} is missing; it is a file, or - for standard input", None, label)
            )
        if name != "-":
            return strict.read(name, cap)
        if self._taken is not None:
            cause = f"standard input is {self._taken} already; it cannot be {label} as well"
            raise Refused(error("usage_wrong", cause, None, label))
        self._taken = label
        return strict.bounded(name, sys.stdin.buffer.read(cap + 1), cap)

    def place(self, args: argparse.Namespace) -> Place:
        """The workspace and the catalogue that the flags name. Raises Refused."""
        root: Path = args.root
        gone = None if root.is_absolute() else folder_gone()
        if gone is not None:
            raise Refused(gone)
        if not root.is_dir():
            raise Refused(error("folder_missing", f"there is no folder {root}", None, "--root"))
        if args.catalog == "-":
            return Place(root, "-", self.read("-", "--catalog"))
        return Place(root, args.catalog or None)


def clean(text: str) -> str:
    """An argument as text: bytes that were not UTF-8 become U+FFFD."""
    return text if text.isascii() else os.fsencode(text).decode("utf-8", "replace")


def who(args: argparse.Namespace) -> str | None:
    """Who acts, as far as anybody said; it is recorded, never guessed."""
    root: Path = args.root
    named = args.as_ or os.environ.get("COLLAB_AS") or user_state().identity(root)
    return clean(named) if named else None


def finish(out: Out, findings: Iterable[Finding]) -> int:
    """Say the findings; the exit code that they make."""
    found = list(findings)
    out.notes(found)
    if errors(found):
        return REFUSED
    return WARNED if found else DONE


def asks(out: Out) -> bool:
    """Whether somebody sits at a terminal and can be asked for what is missing."""
    return not out.as_json and sys.stdin.isatty() and sys.stderr.isatty()


def answer(label: str) -> str:
    """One line of an answer, stripped."""
    sys.stderr.write(label)
    sys.stderr.flush()
    return sys.stdin.readline().strip()


def answers(label: str) -> list[str]:
    """Lines until a blank one."""
    given = []
    while line := answer(f"{label} (a blank line ends): "):
        given.append(line)
    return given


def write_new(name: str, data: bytes) -> str:
    """Write a file that must not exist yet; returns its name as given. Raises Refused (`file_exists`)."""
    from core.files import Root

    path = Path(name)
    with Root(path.parent, ".") as root:
        root.sweep()
        if not path.name or not root.create(path.name, data):
            raise Refused(error("file_exists", f"{name} is there already; it is never overwritten", None, "--out"))
    return name
