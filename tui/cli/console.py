"""`collab [ROOT…]`: opens the console, or says why it cannot here (docs/specs/console.md §3)."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path

from core.finding import Refused, error

from tui.cli.base import Command, Out, Parser, alike, output_argument
from tui.cli.workspace import roots_argument, roots_of


def arguments(parser: Parser, roots: bool = True) -> None:
    if roots:
        roots_argument(parser)
    parser.add_argument("--as", dest="as_", metavar="ID", help="who you are in these collaborations")
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII glyphs only")
    parser.add_argument("--theme", help="dark, light or high-contrast")


def terminal_finding() -> str | None:
    """Why no console can be drawn here, or None."""
    if os.environ.get("TERM", "") in ("dumb", ""):
        return f"TERM is {os.environ.get('TERM') or 'not set'!r}"
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return "this is not a terminal"
    return None


def _run(args: argparse.Namespace, out: Out) -> int:
    _mistyped(args.roots)
    roots = roots_of(args)
    reason = terminal_finding()
    if reason is not None or out.as_json:
        cause = f"the console needs a terminal, but {reason or 'JSON was asked for'}; the verbs work everywhere"
        command = " ".join(["collab inbox", *(shlex.quote(str(root)) for root in args.roots)])
        raise Refused(error("terminal_missing", cause, command))
    return open_console(roots, args.as_, args.ascii, args.theme)


def _mistyped(roots: list[Path]) -> None:
    """Raises Refused for a first word that is no folder, and so was rather meant as a verb."""
    from tui.cli import MODULES

    if not roots or os.path.isdir(roots[0]):
        return
    verb = alike(roots[0].name, MODULES)
    cause = f"there is no folder {roots[0]}, and {roots[0].name!r} is no verb"
    hint, command = (f"; did you mean {verb}?", f"collab {verb} --help") if verb else ("", "collab --help")
    raise Refused(error("folder_missing", cause + hint, command, str(roots[0])))


def open_console(roots: list[Path], me: str | None, ascii_only: bool = False, theme: str | None = None) -> int:
    """Import Textual only now, and run the console until it is left."""
    from tui.app import run

    return run(roots, me=me, ascii_only=ascii_only, theme=theme)


class _Console(Command):
    def parser(self) -> Parser:
        made = Parser(prog="collab", description=self.help)
        arguments(made)
        output_argument(made)
        return made


CONSOLE = _Console("", "open the console on one or many folders", arguments, _run)
