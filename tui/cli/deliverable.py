"""`collab deliverable add`: declares a supporting deliverable (docs/design.md §3)."""

from __future__ import annotations

import argparse

from core.acp import supporting

from tui.cli.base import DONE, Command, Out, Parser, as_argument, folder_argument, require_identity


def _arguments(parser: Parser) -> None:
    parser.add_argument("act", choices=("add",), help="add: declare a file and begin it")
    parser.add_argument("file", metavar="FILE", help="the Markdown file, relative to the deliverables' folder")
    parser.add_argument(
        "--type",
        required=True,
        help="adr, design-spec, implementation-plan, decision-memo, review-report, test-plan or custom",
    )
    parser.add_argument("--check", action="append", default=[], help="custom: a section that it must hold; repeat")
    folder_argument(parser)
    as_argument(parser)


def _run(args: argparse.Namespace, out: Out) -> int:
    who = require_identity(args, args.folder, "deliverable add")
    made, mended = supporting.add(args.folder, who, args.file, args.type, args.check)
    out.notes(mended)
    out.line(f"declared {made.ref}: {made.item.type}" + (", as it stands" if made.there else ""))
    out.put(ref=made.ref, type=made.item.type, created=not made.there)
    return DONE


COMMANDS = {
    "deliverable": Command(
        "deliverable",
        "declare a supporting deliverable (owner, in drafting or revising)",
        _arguments,
        _run,
    )
}
