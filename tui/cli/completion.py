"""Shell completion for every verb, made from the parsers themselves."""

from __future__ import annotations

import argparse

from tui.cli.base import DONE, Command, Out, Parser

SHELLS = ("bash", "zsh", "fish")


def _arguments(parser: Parser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell to complete in")


def _run(args: argparse.Namespace, out: Out) -> int:
    import shtab

    from tui.cli import parser

    text: str = shtab.complete(parser(), shell=args.shell)
    if not out.as_json:
        out.raw(text + "\n")
    out.put(shell=args.shell, script=text)
    return DONE


COMMANDS = {
    "completion": Command(
        "completion",
        "print shell completion",
        _arguments,
        _run,
    )
}
