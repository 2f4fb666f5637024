"""Document and event in one act, one verb for each step of the protocol (docs/design.md §3)."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from core.acp import compose, guided
from core.acp.reader import require
from core.finding import Refused, error

from tui.cli.acp import report, wait
from tui.cli.base import (
    Command,
    Out,
    Parser,
    as_argument,
    folder_argument,
    read_input,
    require_identity,
    seconds,
)

Make = Callable[[argparse.Namespace, str], guided.Act]
REF = "a supporting deliverable, by its reference; else the primary one"


def _common(parser: Parser) -> None:
    folder_argument(parser)
    as_argument(parser)
    parser.add_argument("--summary", help="one short sentence; a sensible default exists")
    parser.add_argument("--wait", action="store_true", help="afterwards wait for the next turn, as `collab wait` does")
    parser.add_argument("--timeout", type=seconds, help="with --wait: seconds, 0 never times out")


def _file(parser: Parser, document: str) -> None:
    parser.add_argument("--file", help=f"the new text of {document}; - reads standard input; else it is in the folder")


def _text(args: argparse.Namespace) -> str | None:
    return None if args.file is None else read_input(args.file, "--file")


def _only_one(args: argparse.Namespace, *names: str) -> None:
    """`--file` and single parts contradict each other."""
    if args.file is not None:
        given = [name for name in names if getattr(args, name)]
        if given:
            cause = f"--file gives the whole text; --{given[0]} contradicts it"
            raise Refused(error("usage_contradiction", cause, None, f"--{given[0]}"))


def _review(args: argparse.Namespace, who: str) -> guided.Act:
    _only_one(args, "position", "concern", "change", "question")
    if args.file is not None:
        return guided.review(who, _text(args), args.summary)
    parts = compose.ReviewText(args.position or "", args.concern, args.change, args.question)
    if parts.position.strip():
        return guided.review(who, parts, args.summary)
    if args.position is not None or parts.concerns or parts.changes or parts.questions:
        raise Refused(error("position_missing", "a review needs --position", None, "--position"))
    return guided.review(who, None, args.summary)


def _review_arguments(parser: Parser) -> None:
    _common(parser)
    _file(parser, "this review")
    parser.add_argument("--position", help="where you stand, in a sentence")
    parser.add_argument("--concern", action="append", default=[], help="a concern; repeat")
    parser.add_argument("--change", action="append", default=[], help="a required change; repeat")
    parser.add_argument("--question", action="append", default=[], help="a question; repeat")


def _classify(args: argparse.Namespace, who: str) -> guided.Act:
    _only_one(args, "resolve", "defer", "blocking")
    if args.file is not None:
        return guided.classify(who, _text(args), args.summary)
    deferred = []
    for text in args.defer:
        question, separator, reason = text.partition("::")
        if not separator or not reason.strip():
            cause = f"{text!r} has no reason; write it as 'TEXT :: REASON'"
            raise Refused(error("readiness_reason_missing", cause, None, "--defer"))
        deferred.append((question.strip(), reason.strip()))
    answers = compose.Classification(args.resolve, deferred, args.blocking)
    return guided.classify(who, None if answers.empty else answers, args.summary)


def _classify_arguments(parser: Parser) -> None:
    _common(parser)
    _file(parser, "readiness.md")
    parser.add_argument("--resolve", action="append", default=[], metavar="TEXT", help="a resolved question; repeat")
    parser.add_argument(
        "--defer", action="append", default=[], metavar="TEXT::REASON", help="a question that can wait, and why; repeat"
    )
    parser.add_argument(
        "--blocking", action="append", default=[], metavar="TEXT", help="a question that blocks; repeat"
    )


def _ready(args: argparse.Namespace, who: str) -> guided.Act:
    return guided.ready(who, tuple(args.tick), args.tick_all, args.summary)


def _ready_arguments(parser: Parser) -> None:
    _common(parser)
    parser.add_argument("--tick", action="append", default=[], metavar="TEXT", help="tick this line; repeat")
    parser.add_argument("--tick-all", action="store_true", help="tick every line of readiness.md")


def _freeze(args: argparse.Namespace, who: str) -> guided.Act:
    return guided.freeze(who, args.doc, args.summary)


def _freeze_arguments(parser: Parser) -> None:
    _common(parser)
    parser.add_argument("--doc", metavar="REF", help=REF)


def _draft(args: argparse.Namespace, who: str) -> guided.Act:
    return guided.deliver(require(args.folder), who, args.doc, _text(args), args.summary)


def _draft_arguments(parser: Parser) -> None:
    _common(parser)
    _file(parser, "the deliverable")
    parser.add_argument("--doc", metavar="REF", help=REF)


def _complete(args: argparse.Namespace, who: str) -> guided.Act:
    _only_one(args, "outcome", "rationale", "next", "approach", "assumption")
    if args.file is not None:
        return guided.complete(who, _text(args), args.summary)
    if args.outcome is None:
        if args.rationale or args.next or args.approach or args.assumption:
            raise Refused(error("outcome_missing", "a conclusion needs --outcome", None, "--outcome"))
        return guided.complete(who, None, args.summary)
    for flag, value in (("--rationale", args.rationale), ("--next", args.next)):
        if not value or not value.strip():
            raise Refused(error("conclusion_part_missing", f"a conclusion needs {flag}", None, flag))
    parts = compose.ConclusionText(args.outcome, args.rationale, args.next, args.approach, args.assumption)
    return guided.complete(who, parts, args.summary)


def _complete_arguments(parser: Parser) -> None:
    _common(parser)
    _file(parser, "conclusion.md")
    parser.add_argument("--outcome", choices=("proceed", "do_not_proceed", "defer"), help="the decision")
    parser.add_argument("--rationale", help="why")
    parser.add_argument("--next", help="the next action")
    parser.add_argument("--approach", default="", help="how it will be carried out")
    parser.add_argument("--assumption", action="append", default=[], help="an assumption; repeat")


def _plain(document: str) -> Callable[[Parser], None]:
    def arguments(parser: Parser) -> None:
        _common(parser)
        _file(parser, document)

    return arguments


def _block_arguments(parser: Parser) -> None:
    _common(parser)
    parser.add_argument("--reason", required=True, help="what must be resolved, and by whom")


def _block(args: argparse.Namespace, who: str) -> guided.Act:
    said = (args.summary or "").strip()
    return guided.block(who, f"{said}: {args.reason}" if said and args.reason.strip() else args.reason)


def _verb(name: str, text: str, arguments: Callable[[Parser], None], make: Make) -> Command:
    def run(args: argparse.Namespace, out: Out) -> int:
        folder: Path = args.folder
        who = require_identity(args, folder, name)
        made = guided.commit(folder, make(args, who))
        out.notes(made.mended)
        out.notes(made.warnings)
        report(folder, made, out)
        out.flush()
        return wait(folder, who, 2.0, args.timeout, out) if args.wait else 0

    return Command(name, text, arguments, run)


COMMANDS = {
    one.name: one
    for one in (
        _verb(
            "draft",
            "record that a deliverable was drafted or revised, with its text if one is given",
            _draft_arguments,
            _draft,
        ),
        _verb(
            "submit",
            "submit the proposal for review",
            _plain("proposal.md"),
            lambda args, who: guided.submit(who, _text(args), args.summary),
        ),
        _verb(
            "review",
            "write a review: its text and its event together",
            _review_arguments,
            _review,
        ),
        _verb(
            "revise",
            "submit the revised proposal",
            _plain("proposal.md"),
            lambda args, who: guided.submit(who, _text(args), args.summary, revise=True),
        ),
        _verb(
            "classify",
            "answer the open questions in readiness.md",
            _classify_arguments,
            _classify,
        ),
        _verb(
            "propose",
            "propose decisions",
            _plain("decisions.md"),
            lambda args, who: guided.decisions(who, _text(args), False, args.summary),
        ),
        _verb(
            "accept",
            "accept the decisions",
            _plain("decisions.md"),
            lambda args, who: guided.decisions(who, _text(args), True, args.summary),
        ),
        _verb(
            "freeze",
            "freeze a deliverable for ever: its status and its digest together",
            _freeze_arguments,
            _freeze,
        ),
        _verb(
            "ready",
            "pass readiness, ticking the checklist; validates first",
            _ready_arguments,
            _ready,
        ),
        _verb(
            "complete",
            "conclude the collaboration; validates first",
            _complete_arguments,
            _complete,
        ),
        _verb("block", "stop the collaboration until a new round", _block_arguments, _block),
    )
}
