"""What every verb shares: arguments, output, exit codes (docs/design.md §3).

stdout is data, stderr is diagnostics; all text for people leaves by `Out`, where it is made inert.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from core.finding import Finding, Refused, error
from core.sanitize import inert, inert_block
from core.state import UserState

DONE, WARNED, REFUSED = 0, 1, 2


class Parser(argparse.ArgumentParser):
    """Wrong usage is a finding like any other refusal, never a usage dump."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("allow_abbrev", False)
        kwargs.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(*args, **kwargs)

    def error(self, message: str) -> NoReturn:
        raise Refused(error("usage_wrong", message, f"{self.prog} --help"))

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Whatever a sub-verb does not know is refused by itself: the verb above knows nothing of its flags."""
        made, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error("unrecognized arguments: " + " ".join(unknown) + self._meant(unknown))
        return made, unknown

    def _meant(self, unknown: Sequence[str]) -> str:
        flags = [flag for flag in self._option_string_actions if flag.startswith("--")]
        meant = [near for word in unknown if word.startswith("-") and (near := alike(word.split("=")[0], flags))]
        return f" (did you mean {', '.join(dict.fromkeys(meant))}?)" if meant else ""

    def format_help(self) -> str:
        """With the examples of this verb or sub-verb at the end."""
        if self.epilog is None:
            from tui.cli.examples import EXAMPLES

            lines = EXAMPLES.get(self.prog.removeprefix("collab").strip())
            self.epilog = "examples:\n" + "\n".join(f"  {line}" for line in lines) if lines else None
        return super().format_help()

    def _print_message(self, message: str, file: Any = None) -> None:
        if not message:
            return
        try:
            (file or sys.stderr).write(inert_block(message))
        except BrokenPipeError:
            raise
        except OSError as exc:
            raise _unwritable(exc) from None


def alike(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant."""
    from difflib import get_close_matches

    found = get_close_matches(word, list(known), 1, 0.7)
    return found[0] if found else None


class Out:
    """Where a verb writes. In JSON mode text for people is dropped and one document is printed at the end."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.document: dict[str, Any] = {}
        self.findings: list[Finding] = []
        self.usage: str | None = None
        """The help of the verb in hand, which wrong usage leads to."""
        self.offer: Callable[[str], str] = lambda command: command
        """What makes a command that is offered work from here, when the verb was told of another place."""

    def line(self, text: str = "") -> None:
        """One line of data for people."""
        if not self.as_json:
            self.raw(inert(text) + "\n")

    def block(self, text: str) -> None:
        """Several lines of data for people, such as a document."""
        if not self.as_json:
            self.raw(inert_block(text).rstrip("\n") + "\n")

    def raw(self, text: str) -> None:
        """Text that is inert already. Raises Refused when standard output takes nothing, as on a full disk."""
        try:
            sys.stdout.write(text)
        except BrokenPipeError:
            raise
        except OSError as exc:
            raise _unwritable(exc) from None

    def flush(self) -> None:
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as exc:
            raise _unwritable(exc) from None

    def note(self, finding: Finding) -> None:
        """A finding: printed on stderr for people, collected for JSON."""
        if finding.next_command is None and finding.code.startswith("usage_"):
            finding = replace(finding, next_command=self.usage)
        elif finding.next_command is not None:
            finding = replace(finding, next_command=self.offer(finding.next_command))
        self.findings.append(finding)
        if not self.as_json:
            sys.stderr.write(format_finding(finding))

    def notes(self, findings: Iterable[Finding]) -> None:
        for item in findings:
            self.note(item)

    def hint(self, text: str) -> None:
        """A diagnostic line that is no finding."""
        if not self.as_json:
            sys.stderr.write(inert(text) + "\n")

    def put(self, **values: Any) -> None:
        """Keys of the JSON document."""
        self.document.update(values)

    def close(self) -> None:
        """Print the JSON document; findings come last. Only ASCII leaves, so that a terminal shows it safely."""
        if self.as_json:
            made = {**self.document, "findings": [item.as_json() for item in self.findings]}
            self.raw(json.dumps(made, indent=2, default=str) + "\n")
        self.flush()


def _unwritable(exc: OSError) -> Refused:
    cause = f"standard output cannot be written: {exc.strerror or exc}"
    return Refused(error("output_unwritable", cause, None, "stdout"))


def format_finding(finding: Finding, label: str | None = None) -> str:
    """`error: cause` and, on a line of its own, the command that helps."""
    text = f"{label or finding.severity}: {inert(finding.cause)}\n"
    return text + (f"  next: {inert(finding.next_command)}\n" if finding.next_command else "")


@dataclass(frozen=True)
class Command:
    """A verb: how its arguments are declared and what it does. `run` returns the exit code."""

    name: str
    help: str
    arguments: Callable[[Parser], None]
    run: Callable[[argparse.Namespace, Out], int]
    description: str = ""

    def parser(self) -> Parser:
        """A parser for this verb alone: a one-shot process builds no other."""
        made = Parser(prog=f"collab {self.name}", description=self.description or self.help)
        self.fill(made)
        return made

    def fill(self, parser: Parser) -> None:
        self.arguments(parser)
        output_argument(parser)


def output_argument(parser: Parser) -> None:
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="text for people, or JSON")


Act = Callable[[argparse.Namespace, Out], int]
SubVerb = tuple[str, str, Callable[[Parser], None], Act]
"""Its name, what it does, its flags, the act."""


def output_again(parser: Parser) -> None:
    """`-o` of a sub-verb; the verb itself takes it too, and a default here would hide what was said there."""
    text = "text for people, or JSON"
    parser.add_argument("-o", "--output", choices=("text", "json"), default=argparse.SUPPRESS, help=text)


def subverbs(
    parser: Parser, verb: str, acts: Iterable[SubVerb], shared: Callable[[Parser], None] = output_again
) -> None:
    """Declare the sub-verbs of a verb, each with its own flags, then the shared ones; `run_act` does the chosen one."""
    group = parser.add_subparsers(dest="act", metavar="ACT", parser_class=Parser, required=True, prog=f"collab {verb}")
    for name, text, declare, act in acts:
        made = group.add_parser(name, help=text, description=text)
        declare(made)
        shared(made)
        made.set_defaults(run=act)


def run_act(args: argparse.Namespace, out: Out) -> int:
    """What a verb with sub-verbs does."""
    act: Act = args.run
    return act(args, out)


def folder_argument(parser: Parser, required: bool = True) -> None:
    parser.add_argument("--folder", required=required, type=folder_path, help="the collaboration folder")


def as_argument(parser: Parser) -> None:
    parser.add_argument("--as", dest="as_", metavar="ID", help="who you are; else COLLAB_AS, else what you said last")


def folder_path(text: str) -> Path:
    """A folder as given, `~` expanded, absolute and with links of the way there resolved."""
    if not text.strip() or "\0" in text:
        raise argparse.ArgumentTypeError("the folder is blank")
    try:
        return Path(text).expanduser().resolve()
    except FileNotFoundError as exc:
        gone = folder_gone()
        if gone is not None:
            raise Refused(gone) from None
        raise argparse.ArgumentTypeError(f"{text!r} is no path: {exc}") from None
    except (OSError, RuntimeError, ValueError) as exc:
        raise argparse.ArgumentTypeError(f"{text!r} is no path: {exc}") from None


def folder_gone() -> Finding | None:
    """What to say when the folder that we are in was deleted under us; None while it is there."""
    try:
        os.getcwd()
    except OSError:
        return error("folder_missing", "the folder that you are in is gone; go to one that is there", "cd", ".")
    return None


def seconds(text: str) -> float:
    """A span on the command line, in seconds."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds") from None
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return value


def state_dir() -> Path:
    """The person's state folder: `COLLAB_STATE`, else the platform's."""
    named = os.environ.get("COLLAB_STATE")
    if named:
        return Path(os.path.expanduser(named))
    from platformdirs import user_state_path

    return user_state_path("collab", appauthor=False)


def user_state() -> UserState:
    return UserState(state_dir())


def identity(args: argparse.Namespace, folder: Path | None) -> str | None:
    """Who acts: `--as`, else `COLLAB_AS`, else what this person said last for that folder."""
    named = args.as_ or os.environ.get("COLLAB_AS")
    if named or folder is None:
        return named or None
    return user_state().identity(folder)


def require_identity(args: argparse.Namespace, folder: Path, verb: str) -> str:
    """Raises Refused when nobody said who acts; it is never guessed."""
    who = identity(args, folder)
    if not who:
        command = f"collab show --folder {shlex.quote(str(folder))}"
        cause = f"who are you? say it with --as ID, or set COLLAB_AS ({verb} never guesses)"
        raise Refused(error("identity_missing", cause, command, "--as"))
    return who


def read_input(name: str, flag: str) -> str:
    """Text from a file the caller named, or from standard input for `-`. Raises Refused."""
    from core.files import DOCUMENT_CAP, open_named

    if not name.strip() or "\0" in name:
        raise Refused(error("file_unreadable", f"{flag} names no file; - reads standard input", None, flag))
    try:
        if name == "-":
            data = sys.stdin.buffer.read(DOCUMENT_CAP + 1)
        else:
            with open_named(os.path.expanduser(name)) as handle:
                data = handle.read(DOCUMENT_CAP + 1)
    except OSError as exc:
        raise Refused(error("file_unreadable", f"{name}: {exc.strerror or exc}", None, flag)) from None
    if len(data) > DOCUMENT_CAP:
        raise Refused(error("file_too_large", f"{name} has more than {DOCUMENT_CAP} bytes", None, flag))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused(error("text_not_utf8", f"{name} is not UTF-8", None, flag)) from None
