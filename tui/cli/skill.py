"""`collab skill install`: what an agent needs to take part (docs/design.md §3)."""

from __future__ import annotations

import argparse

from core.acp import skill

from tui.cli.base import DONE, Command, Out, Parser, folder_path


def _arguments(parser: Parser) -> None:
    parser.add_argument("act", choices=("install",), help="install: write the skill")
    parser.add_argument("dir", metavar="DIR", type=folder_path, help="where; SKILL.md and scripts/ are made in it")


def _run(args: argparse.Namespace, out: Out) -> int:
    made = skill.install(args.dir)
    for name in made:
        out.line(f"wrote {args.dir / name}")
    out.put(folder=str(args.dir), files=made)
    return DONE


COMMANDS = {
    "skill": Command(
        "skill",
        "what an agent needs to take part: SKILL.md and scripts of the reference's names",
        _arguments,
        _run,
    )
}
