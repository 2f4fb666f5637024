"""Packets in, answers, proposals: `collab signal`, `escalation`, `proposal` (docs/specs/workflows.md §9)."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from core.clock import SYSTEM
from core.finding import Refused, error

from tui.cli.base import DONE, Command, Out, Parser, as_argument, read_input, run_act, subverbs
from tui.cli.workflow import engine, finish, in_root, root_argument, root_of, who

if TYPE_CHECKING:
    from core.workflow.answers import Answer
    from core.workflow.state import World


def _signal_arguments(parser: Parser) -> None:
    parser.add_argument("--json", required=True, metavar="PACKET", help="the packet, or - for standard input")
    root_argument(parser)


def _signal(args: argparse.Namespace, out: Out) -> int:
    from core.files import Root
    from core.workflow.layout import SCRATCH
    from core.workflow.signals_in import signal

    text = read_input("-", "--json") if args.json == "-" else args.json
    try:
        packet = json.loads(text)
    except (ValueError, RecursionError):
        raise Refused(error("E_PACKET", "the packet is no JSON", None, "--json")) from None
    with Root(root_of(args), SCRATCH) as root:
        status, made_id = signal(root, packet, SYSTEM)
    out.line(f"{status}: {made_id}")
    out.put(status=status, id=made_id)
    return DONE


def _look(args: argparse.Namespace, whole: bool = False, entry: str | None = None) -> tuple[World, int]:
    """The world and this moment. `whole`: with every run that is over; `entry`: with that question, over or not."""
    from core.workflow import times, view

    with view.Reader(root_of(args), whole) as reader:
        reader.look()
        world = reader.with_evidence() if entry is None else reader.with_entries([entry])
        return world, max(times.of(SYSTEM.now()), world.last_at)


def _list_arguments(parser: Parser) -> None:
    parser.add_argument("--all", action="store_true", help="answered, expired, cancelled and snoozed ones too")
    root_argument(parser)


def _list(args: argparse.Namespace, out: Out) -> int:
    from core.workflow import times

    world, now = _look(args, whole=args.all)
    found = [
        entry for run in world.in_order() for name in run.entry_ids if (entry := run.entries.get(name)) is not None
    ]
    shown = [
        entry
        for entry in sorted(found, key=lambda one: (one.deadline_at or "~", one.opened_at, one.id))
        if args.all or (entry.state == "open" and (times.read(entry.snoozed_until) or 0) <= now)
    ]
    for entry in shown:
        late = "  overdue" if entry.overdue and entry.state == "open" else ""
        out.line(f"{entry.id}  {entry.kind:<13} {entry.state:<9} {entry.question}{late}")
        out.line(f"    {' | '.join(option.id for option in entry.options)}")
    if not shown:
        out.line("nothing waits for an answer here")
    out.put(escalations=[entry.public() for entry in shown])
    return DONE


def _one_arguments(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", help="the escalation")
    root_argument(parser)


def _show(args: argparse.Namespace, out: Out) -> int:
    from core.workflow import view
    from core.workflow.naming import Names

    world, _ = _look(args, entry=args.id)
    entry = world.entry(args.id)
    if entry is None:
        command = in_root(args, "collab escalation list")
        raise Refused(error("E_ESCALATION_UNKNOWN", f"there is no escalation {args.id!r}", command, args.id))
    made = view.entry_view(world, entry, args.root)
    code = Names(root_of(args)).entry(entry)
    out.line(f"{entry.id} ({entry.kind}, {entry.state}): {made.question}")
    for label, value in made.facts:
        out.line(f"  {label}: {value}")
    if code is not None:
        out.line(f"  code: {code} (collab triage list)")
    if made.deadline is not None:
        out.line(f"  deadline: {made.deadline}, then {made.at_deadline}{' (overdue)' if made.overdue else ''}")
    if made.rule is not None:
        out.line(f"  rule: {made.rule}")
    if made.answered is not None:
        out.line(f"  answered by {made.answered}")
    for option in made.options:
        mark = "* " if option.recommended else "  "
        out.line(f"{mark}{option.id}: {option.title}; {option.effect}")
        if entry.state == "open":
            out.line(f"      {option.command}")
    out.line("who answers is recorded as said (--as), not proven")
    out.put(escalation=entry.public(), facts=[list(pair) for pair in made.facts], alike=list(made.alike))
    out.put(triage_code=code)
    return DONE


def _shared_answer_arguments(parser: Parser) -> None:
    parser.add_argument("--note", help="why; kept with the answer")
    parser.add_argument("--channel", default="cli", help="where the answer comes from")
    parser.add_argument("--key", help="repeating an answer with the same key changes nothing")
    parser.add_argument("--token", help="the question's own token, for channels that hand out links")
    as_argument(parser)
    root_argument(parser)


def _decide_arguments(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", help="the escalation")
    parser.add_argument("option", nargs="?", metavar="OPTION", help="one of its options")
    parser.add_argument("--accept", action="store_true", help="the recommended option")
    parser.add_argument("--respond", metavar="TEXT", help="a new attempt with these words")
    parser.add_argument("--defer", metavar="SPAN", help="hide it until then, such as 2h; it stays open")
    parser.add_argument("--args", dest="option_args", metavar="JSON", help="arguments of the option")
    _shared_answer_arguments(parser)


def _decide(args: argparse.Namespace, out: Out) -> int:
    from core.workflow import times
    from core.workflow.answers import Answer

    ways = [args.option is not None, args.accept, args.respond is not None, args.defer is not None]
    if sum(ways) != 1:
        command = in_root(args, f"collab escalation show {args.id}")
        raise Refused(error("usage_wrong", "give one of OPTION, --accept, --respond, --defer", command, "OPTION"))
    defer = None
    if args.defer is not None:
        defer = times.span(args.defer)
        if not defer:
            raise Refused(
                error("usage_wrong", f"--defer wants a span of time such as 2h, not {args.defer!r}", None, "--defer")
            )
    answer = Answer(
        args.id,
        who(args),
        option=args.option,
        accept=args.accept,
        respond=args.respond,
        defer=defer,
        args=_json(args.option_args),
        note=args.note,
        channel=args.channel,
        key=args.key,
        token=args.token,
    )
    return _answer(args, answer, out)


def _json(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Refused(error("E_ARGS", "--args is no JSON", None, "--args")) from None


def _ack_arguments(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", help="the block, or what was only to be seen")
    _shared_answer_arguments(parser)


def _ack(args: argparse.Namespace, out: Out) -> int:
    from core.workflow.answers import Answer

    given = {"note": args.note, "channel": args.channel, "key": args.key, "token": args.token}
    return _answer(args, Answer(args.id, who(args), ack=True, **given), out)


def _answer(args: argparse.Namespace, answer: Answer, out: Out) -> int:
    with engine(args) as made:
        outcome = made.answer(answer)
        entry = made.world.entry(answer.entry)
        out.notes(made.left)
    if entry is not None:
        out.put(escalation=entry.public())
    done = f"{answer.entry} is hidden until then" if outcome.status == "deferred" else f"{answer.entry} is answered"
    return finish(args, outcome, out, f"{done}; the next tick applies it" if outcome.status == "accepted" else done)


def _proposals(args: argparse.Namespace, out: Out) -> int:
    from core.workflow import view_learning

    world, _ = _look(args)
    for item in view_learning.proposals(world):
        out.line(f"{item.id}  {item.kind:<12} {item.state:<8} until {item.expires_at}")
        for line in item.before:
            out.line(f"    - {line}")
        for line in item.after:
            out.line(f"    + {line}")
        for name, text in item.evidence:
            out.line(f"    evidence: {name}: {text}")
    rules = list(world.learning.rules.values())
    for rule in rules:
        uses = f"used {rule.uses} times, confidence {rule.confidence}"
        out.line(f"{rule.id}  {rule.state:<9} {rule.option_id}: {rule.pattern.workflow}, {rule.pattern.cause} ({uses})")
    if not (world.learning.proposals or rules):
        out.line("no proposals and no rules here")
    out.put(
        proposals=[item.plain() for item in world.learning.proposals.values()],
        rules=[rule.plain() for rule in rules],
        counts=view_learning.counts(world),
    )
    return DONE


def _approve_arguments(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", help="the proposal")
    parser.add_argument("--option", help="another learnable option than the proposed one")
    as_argument(parser)
    root_argument(parser)


def _reject_arguments(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", help="the proposal, or a rule to revoke")
    as_argument(parser)
    root_argument(parser)


def _approve(args: argparse.Namespace, out: Out) -> int:
    return _settle(args, out, True, args.option)


def _reject(args: argparse.Namespace, out: Out) -> int:
    return _settle(args, out, False, None)


def _settle(args: argparse.Namespace, out: Out, approve: bool, option: str | None) -> int:
    from core.workflow.answers import Settlement

    with engine(args) as made:
        outcome = made.settle(Settlement(args.id, who(args), approve, option))
        learning = made.world.learning
    proposal, rule = learning.proposals.get(args.id), learning.rules.get(args.id)
    made_rule = next((one for one in learning.rules.values() if one.proposal == args.id), None)
    out.put(proposal=None if proposal is None else proposal.plain())
    shown = rule or made_rule
    out.put(rule=None if shown is None else shown.plain())
    word = "approved" if approve else "revoked" if rule is not None else "rejected"
    return finish(
        args, outcome, out, f"{word} {args.id}" + (f": {made_rule.id}" if approve and made_rule is not None else "")
    )


def _escalation_arguments(parser: Parser) -> None:
    subverbs(
        parser,
        "escalation",
        (
            ("list", "what waits for an answer", _list_arguments, _list),
            ("show", "one question: facts, options and what each does", _one_arguments, _show),
            ("decide", "answer once; first wins", _decide_arguments, _decide),
            ("ack", "a block is unblocked, or seen", _ack_arguments, _ack),
        ),
    )


def _proposal_arguments(parser: Parser) -> None:
    subverbs(
        parser,
        "proposal",
        (
            ("list", "learned proposals, rules and counts", root_argument, _proposals),
            ("approve", "let a proposal become a rule", _approve_arguments, _approve),
            ("reject", "reject a proposal, or revoke a rule", _reject_arguments, _reject),
        ),
    )


COMMANDS = {
    "signal": Command("signal", "record a packet for the workflow engine", _signal_arguments, _signal),
    "escalation": Command("escalation", "what the workflow engine asks people", _escalation_arguments, run_act),
    "proposal": Command("proposal", "what the workflow engine proposes to learn", _proposal_arguments, run_act),
}
