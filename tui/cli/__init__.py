"""The command line: one verb a process, nothing imported that the verb does not need (docs/design.md §3)."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui.cli.base import Command, Out, Parser

MODULES: Mapping[str, str] = {
    "init": "acp",
    "append": "acp",
    "next": "acp",
    "wait": "acp",
    "validate": "acp",
    "draft": "guided",
    "submit": "guided",
    "review": "guided",
    "revise": "guided",
    "classify": "guided",
    "propose": "guided",
    "accept": "guided",
    "freeze": "guided",
    "ready": "guided",
    "complete": "guided",
    "block": "guided",
    "show": "folder",
    "log": "folder",
    "diff": "folder",
    "repair": "folder",
    "new-round": "folder",
    "deliverable": "deliverable",
    "skill": "skill",
    "prompt": "folder",
    "list": "workspace",
    "inbox": "workspace",
    "triage": "triage",
    "envelope": "governance",
    "status": "governance",
    "members": "governance",
    "goal": "governance",
    "ledger": "ledger",
    "addons": "addons",
    "workflow": "workflow",
    "signal": "escalation",
    "escalation": "escalation",
    "proposal": "escalation",
    "demo": "demo",
    "completion": "completion",
}
"""Verb to the module that declares it."""

USAGE = """\
collab shows and drives agent collaborations that live in plain folders.

  collab [ROOT…] [--as ID]     open the console (here, if no ROOT is given)
  collab demo                  a live sample workspace
  collab VERB --help           what a verb does and its flags

"""


def command(verb: str) -> Command:
    """The declaration of a verb."""
    module = import_module(f"tui.cli.{MODULES[verb]}")
    found: Command = module.COMMANDS[verb]
    return found


def no_verb() -> Command:
    """The declaration of `collab` without a verb; the submodule has the name `console`."""
    from tui.cli.console import CONSOLE

    return CONSOLE


def parser() -> Parser:
    """All verbs in one parser: for help texts, completion and tests, never on the way of a verb."""
    from tui.cli.base import Parser
    from tui.cli.console import arguments

    whole = Parser(prog="collab", description="Agent collaborations in plain folders: the console and its verbs.")
    arguments(whole, roots=False)
    subparsers = whole.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser)
    for verb in MODULES:
        declared = command(verb)
        declared.fill(subparsers.add_parser(verb, help=declared.help, description=declared.help))
    return whole


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit code; every failure is a finding, none a traceback."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0] == "help" and words[1:] and words[1] in MODULES:
        words = [*words[1:], "--help"]
    if words and words[0] in MODULES:
        return _guarded(words, lambda out: _verb(words[0], words[1:], out))
    if words and words[0] in ("-h", "--help", "help"):
        return _guarded((), _help)
    if words and words[0] in ("-V", "--version"):
        return _guarded((), _version)
    return _guarded(words, lambda out: _verb("", words, out))


def _help(out: Out) -> int:
    out.raw(USAGE)
    for verb in MODULES:
        out.raw(f"  {verb:<12} {command(verb).help}\n")
    out.raw("\nThe console's keys: `?` inside it, or the README.\n")
    return 0


def _version(out: Out) -> int:
    from importlib.metadata import PackageNotFoundError, version

    try:
        number = version("collab-console")
    except PackageNotFoundError:
        number = "unknown"
    out.line(f"collab {number}")
    return 0


def _verb(verb: str, words: Sequence[str], out: Out) -> int:
    declared = command(verb) if verb else no_verb()
    args = declared.parser().parse_args(words)
    out.as_json = args.output == "json"
    said = (verb, getattr(args, "act", None), getattr(args, "operation", None))
    out.usage = " ".join(["collab", *(word for word in said if word), "--help"])
    return declared.run(args, out)


def _guarded(words: Sequence[str], act: Callable[[Out], int]) -> int:
    """Do it, and say whatever becomes of it; nothing gets past here but an exit code."""
    from core.finding import Refused, error

    from tui.cli.base import REFUSED, Out, folder_gone, format_finding

    out = Out(_wants_json(words))
    try:
        code = act(out)
    except Refused as exc:
        out.notes(exc.findings)
        code = REFUSED
    except KeyboardInterrupt:
        out.hint("interrupted")
        return 130
    except SystemExit as exc:
        # A help text was asked for: it is all there is to say, whatever else the words were.
        out.as_json, code = False, exc.code if isinstance(exc.code, int) else 0
    except BrokenPipeError:
        _silence_stdout()
        return 0
    except Exception as exc:  # noqa: BLE001 - the last line of defence: a sentence instead of a traceback
        gone = folder_gone() if isinstance(exc, FileNotFoundError) else None
        out.note(gone or error("internal_error", f"unexpected {type(exc).__name__}: {exc}; {_keep_trace(exc)}"))
        code = REFUSED
    try:
        out.close()
    except BrokenPipeError:
        _silence_stdout()
    except Refused as exc:
        _silence_stdout()
        if exc.findings[0] not in out.findings:
            sys.stderr.write(format_finding(exc.findings[0]))
        code = REFUSED
    return code


def _wants_json(words: Sequence[str]) -> bool:
    """Known before parsing, so that wrong usage is JSON too."""
    pairs = zip(words, [*words, ""][1:], strict=True)
    return any(
        word in ("-ojson", "--output=json", "-o=json") or (word in ("-o", "--output") and after == "json")
        for word, after in pairs
    )


def _silence_stdout() -> None:
    """The reader of our pipe went away: nothing to say, and nothing may complain at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _keep_trace(exc: Exception) -> str:
    import traceback

    from tui.cli.base import state_dir

    try:
        folder = state_dir()
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "last-error.txt"
        path.write_text("".join(traceback.format_exception(exc)), encoding="utf-8")
    except OSError:
        return "its details could not be kept"
    return f"details are in {path}"


def run() -> None:
    """Entry point of the console script."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # Closed by whoever started us; verbs need not know.
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - open to the end
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    sys.exit(main())
