"""The flags of `collab ledger`, which are those of the public pack's ledger (docs/specs/delegation.md §4–§8)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from core.finding import Refused

from tui.cli.base import Command, Parser

OPERATIONS = ("launch", "observe", "collect", "cancel")


class LedgerParser(Parser):
    """Wrong usage is reported in the ledger's own form, so it reaches the verb instead of ending the parsing."""

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        words: Sequence[str] = sys.argv[1:] if args is None else list(args)
        try:
            return super().parse_args(words, namespace)
        except Refused as exc:
            asked = "json" if any(_json_flag(words, index) for index in range(len(words))) else "text"
            return argparse.Namespace(output=asked, wrong=exc.findings[0])


def _json_flag(words: Sequence[str], index: int) -> bool:
    word, after = words[index], words[index + 1] if index + 1 < len(words) else ""
    return word in ("-ojson", "-o=json", "--output=json") or (word in ("-o", "--output") and after == "json")


class LedgerCommand(Command):
    """A command whose parser is a `LedgerParser`."""

    def parser(self) -> Parser:
        made = LedgerParser(prog=f"collab {self.name}", description=self.description or self.help)
        self.fill(made)
        return made


def arguments(parser: Parser) -> None:
    parser.add_argument("--plan", metavar="DIR", help="the plan folder, or a file directly in it")
    inner = parser.add_subparsers(dest="act", metavar="VERB", parser_class=Parser, required=True)

    def verb(name: str, text: str, writes: bool = True) -> Parser:
        made = inner.add_parser(name, help=text, description=text)
        _common(made, writes)
        return made

    made = verb("materialize", "make a plan of a draft contract: manifest, contract, approval")
    made.add_argument("--contract", metavar="FILE", help="the draft")
    made.add_argument("--authority", default="developer", help="who approves (default: developer)")
    made.add_argument("--mechanism", default="plan_authorship", help="plan_authorship or pre_authorization")
    made.add_argument("--note", help="up to 500 characters")
    made = verb("start", "record that a task begins; this opens its evidence window")
    made.add_argument("--task", help="a task of the contract")
    made = verb("gate", "run a command and record what was observed")
    made.add_argument("--task", help="a started task")
    made.add_argument("--criterion", help="a criterion of the task's gate_intent")
    made.add_argument("--json", metavar="CMD", help="a JSON string (for the shell) or array (run as it stands)")
    made.add_argument("--timeout", type=float, default=600, help="seconds (default: 600)")
    made.add_argument("--no-reuse", action="store_true", help="run it even if an equal run is known")
    made.add_argument("--selection", default="", help="a word that belongs to the run's fingerprint")
    made = verb("complete", "check that a task is complete")
    made.add_argument("--task", help="a task of the contract")
    made = verb("signoff", "a person's word for a criterion that accepts it")
    made.add_argument("--criterion", help="a criterion that accepts asserted evidence")
    made.add_argument("--evidence-path", metavar="P", help="what the word rests on: a file in the plan or repository")
    made.add_argument("--authority", metavar="WHO", help="who signs")
    made.add_argument("--task", help="the owning task (default: the first)")
    made = verb("append", "record an event as declared")
    made.add_argument("--type", help="the event's type")
    made.add_argument("--json", metavar="OBJ", help="its payload")
    made.add_argument("--trust", help="observed, imported or asserted")
    made.add_argument("--evidence-path", metavar="P", help="a file in the plan or the repository")
    made.add_argument("--note", help="up to 500 characters")
    made.add_argument("--idempotent", action="store_true", help="an equal earlier event answers")
    made.add_argument("--human-note", metavar="FILE", help="with --actor-kind human: the note that the person wrote")
    verb("roll", "move the live journal into an archive; nothing is deleted")
    made = verb("inspect", "show the plan's record", writes=False)
    made.add_argument("--until", type=int, metavar="SEQ", help="as it was after this event")
    made.add_argument("--at", metavar="TS", help="ages as of this time (default: now)")
    made = verb("verify", "check the plan's record", writes=False)
    made.add_argument("--receipts", action="store_true", help="also check the receipts that it must have left")
    _delegate(verb("delegate", "record what happens with a delegate", writes=False))


def _delegate(parser: Parser) -> None:
    inner = parser.add_subparsers(dest="operation", metavar="|".join(OPERATIONS), parser_class=Parser, required=True)
    for name, text in (
        ("launch", "record a launch, if nothing forbids it; then launch"),
        ("observe", "the latest state of each delegation"),
        ("collect", "record that a delegate completed or failed, with its result"),
        ("cancel", "record that a delegate was cancelled; stop it first"),
    ):
        made = inner.add_parser(name, help=text, description=text)
        _common(made, name != "observe")
        made.add_argument("--task", help="the task")
        made.add_argument("--json", metavar="OBJ", help="the payload")
        made.add_argument("--caps", metavar="OBJ", help="what the host can; null is nothing")
        if name == "launch":
            made.add_argument("--prompt-file", metavar="F", help="fills prompt_digest from the exact bytes to be sent")
            made.add_argument("--dry-run", action="store_true", help="judge every condition; write and lock nothing")


def _common(parser: Parser, writes: bool) -> None:
    # No default may undo what was said before the verb's name.
    parser.add_argument("--plan", metavar="DIR", default=argparse.SUPPRESS, help="the plan folder")
    parser.add_argument(
        "-o", "--output", choices=("text", "json"), default=argparse.SUPPRESS, help="text for people, or JSON"
    )
    if writes:
        parser.add_argument("--force", action="store_true", help="take the lock over; only when its holder is dead")
        parser.add_argument("--actor-kind", default="agent", help="agent or human (default: agent)")
        parser.add_argument("--actor-identity", default="caller", help="who acts (default: caller)")
