"""Typed hand-overs, turns, goals and members: `collab envelope|status|goal|members` (docs/specs/governance.md §3-8)."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.clock import SYSTEM, stamp
from core.finding import Finding, Refused, error, errors
from core.strict import at, parse

from tui.cli.base import DONE, Command, Out, Parser, subverbs
from tui.cli.sources import (
    Sources,
    answer,
    answers,
    asks,
    clean,
    finish,
    run_rooted,
    shared_arguments,
    texts_argument,
    write_new,
)


def _file(parser: Parser) -> None:
    parser.add_argument("file", nargs="?", metavar="FILE", help="the document, or - for standard input")


def _encode(document: Mapping[str, Any]) -> bytes:
    return (json.dumps(document, ensure_ascii=False, indent=2) + "\n").encode("utf-8", "backslashreplace")


def _wrap_arguments(parser: Parser) -> None:
    parser.add_argument("file", nargs="?", metavar="PAYLOAD", help="the payload with its schema, or -")
    parser.add_argument("--receipt-id", metavar="ID", help="how the receipt is called")
    parser.add_argument("--producer", metavar="P", help="who answers for it")
    parser.add_argument("--goal-hash", metavar="HASH", help="the goal that it serves")
    texts_argument(parser, "--parent", "a parent; repeat", "RECEIPT_FILE")
    parser.add_argument("--with-digest", action="store_true", help="refer to the parents' very bytes")
    parser.add_argument("--triage-code", metavar="CODE", help="the failure that it records")
    parser.add_argument("--at", metavar="TIME", help="when (default: now)")
    parser.add_argument("--out", metavar="FILE", help="write it there; never overwrites")


_WRAP_FLAGS = {
    "receipt_id": "--receipt-id",
    "producer": "--producer",
    "goal_hash": "--goal-hash",
    "parent_refs": "--parent",
    "triage_code": "--triage-code",
    "emitted_at": "--at",
}


WRAP_HELP = "collab envelope wrap --help"


def _wrap(args: argparse.Namespace, out: Out) -> int:
    from core.governance import rules

    sources = Sources()
    catalog = sources.place(args).load()
    lacking = [flag for flag in ("--receipt-id", "--producer") if getattr(args, _attribute(flag)) is None]
    name = args.file or ""
    parsed = parse(name, sources.read(args.file, "PAYLOAD"))
    found = [
        *parsed.findings,
        *(error("field_missing", f"a receipt needs {flag}", WRAP_HELP, flag) for flag in lacking),
    ]
    parents = []
    for file in args.parent:
        data = sources.read(file, "--parent")
        parent, _, faults = rules.envelope(file, data, catalog)
        found += faults
        if parent is not None:
            parents.append(_reference(parent, data if args.with_digest else None))
    if parsed.object is None or found:
        raise Refused(*found)

    def where(steps: Sequence[str | int]) -> str:
        if steps and steps[0] == "payload_schema":
            return at(name, ("schema",))
        if steps and steps[0] == "payload":
            return at(name, steps[1:])
        return _WRAP_FLAGS.get(str(steps[0]) if steps else "", at(name))

    made, found = rules.wrapped(
        parsed.object,
        where,
        catalog,
        receipt_id=clean(args.receipt_id),
        producer=clean(args.producer),
        emitted_at=args.at if args.at is not None else stamp(SYSTEM.now()),
        goal=args.goal_hash,
        parents=parents,
        triage_code=args.triage_code,
    )
    if found:
        raise Refused(*(_with_help(item) for item in found))
    data = _encode(made)
    path = write_new(args.out, data) if args.out else None
    if path is None:
        out.block(data.decode("utf-8"))
    else:
        out.line(f"receipt {made['receipt_id']} is in {path}")
    out.put(envelope=made, path=path)
    return DONE


def _with_help(item: Finding) -> Finding:
    """What is wrong with a flag is explained by the flags, where nothing else helps."""
    flags = item.next_command is None and (item.where or "").startswith("--")
    return replace(item, next_command=WRAP_HELP) if flags else item


def _attribute(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


def _reference(parent: Any, data: bytes | None) -> dict[str, Any]:
    from core.governance.hashing import hash_string

    made = {
        "receipt_id": parent.receipt_id,
        "expected_schema": parent.payload_schema,
        "expected_producer": parent.producer,
    }
    return made if data is None else {**made, "digest": hash_string(data)}


def _envelope_validate(args: argparse.Namespace, out: Out) -> int:
    from core.governance import rules

    out.put(valid=False, receipt_id=None, producer=None, payload_schema=None)
    sources = Sources()
    catalog = sources.place(args).load()
    made, _, found = rules.envelope(args.file or "", sources.read(args.file, "FILE"), catalog)
    if made is not None:
        out.put(valid=True, receipt_id=made.receipt_id, producer=made.producer, payload_schema=made.payload_schema)
        out.line(f"a valid receipt: {made.receipt_id} from {made.producer}, holding {made.payload_schema}")
    return finish(out, found)


def _resolve_arguments(parser: Parser) -> None:
    _file(parser)
    parser.add_argument("--receipts", metavar="DIR", help="the folder below which the receipts lie")


def _resolve(args: argparse.Namespace, out: Out) -> int:
    from core.governance import rules, store
    from core.governance.hashing import hash_string

    out.put(trusted=False, receipt_id=None, parents=[])
    if not args.receipts:
        raise Refused(error("usage_wrong", "say where the receipts are: --receipts DIR", None, "--receipts"))
    sources = Sources()
    catalog = sources.place(args).load()
    name, data = args.file or "", sources.read(args.file, "FILE")
    made, _, found = rules.envelope(name, data, catalog)
    if made is None:
        return finish(out, found)
    out.put(receipt_id=made.receipt_id)
    resolved = store.resolve(made, name, hash_string(data), store.receipts(Path(args.receipts), catalog))
    out.put(trusted=resolved.trusted, parents=[parent.as_json() for parent in resolved.parents])
    out.line(f"{made.receipt_id} is {'trusted' if resolved.trusted else 'NOT trusted'}")
    for parent in resolved.parents:
        failed = [check for check, result in parent.checks.items() if result == "fail"]
        out.line(f"  {parent.receipt_id}: " + (f"failed {', '.join(failed)}" if failed else f"trusted, {parent.file}"))
    return finish(out, resolved.findings)


def _check_arguments(parser: Parser) -> None:
    _file(parser)
    parser.add_argument("--mutating", action="store_true", help="the turn changed something")
    parser.add_argument("--force", action="store_true", help="ask for a status whatever the turn did")
    parser.add_argument("--strict", action="store_true", help="ask for a status, strictly")
    parser.add_argument("--ledger", metavar="FILE", help="the open work that a done must not leave")


def _check(args: argparse.Namespace, out: Out) -> int:
    from core.governance import turn

    sources, guard = Sources(), turn.Guard(args.mutating, args.force, args.strict)
    name = args.file or "-"
    features = {"force_status": args.force, "mutating_turn": args.mutating, "strict_status": args.strict}
    unread = turn.Verdict("error", ("file_unreadable",), features)
    out.put(**unread.as_json())
    catalog: Any
    try:
        catalog = sources.place(args).load()
    except Refused as exc:
        catalog = exc
    ledger = None
    if args.ledger is not None:
        ledger = turn.ledger_of(args.ledger, sources.read("-", "--ledger") if args.ledger == "-" else None)
    text = sources.read(name, "FILE").decode("utf-8", "replace")
    verdict = turn.check(text, name, guard, args.root, catalog, ledger)
    out.put(**verdict.as_json())
    out.line(f"{verdict.decision}: {', '.join(verdict.reason_codes)}")
    for failure in verdict.footer_failures:
        out.line(f"  {failure}")
    return finish(out, verdict.findings)


def _judged(args: argparse.Namespace, sources: Sources) -> tuple[Any, list[Finding]]:
    """(the status in FILE or None, every finding about it)."""
    from core.governance import rules, store

    place = sources.place(args)
    catalog = place.load()
    name = args.file or ""
    made, _, found = rules.status(name, sources.read(args.file, "FILE"), catalog)
    if made is not None:
        found = store.judged(made, name, place.root, catalog)
    return (None if errors(found) else made), found


def _status_validate(args: argparse.Namespace, out: Out) -> int:
    out.put(valid=False, state=None)
    made, found = _judged(args, Sources())
    if made is not None:
        out.put(valid=True, state=made.state)
        out.line(f"a valid status: {made.state}")
    return finish(out, found)


def _render(args: argparse.Namespace, out: Out) -> int:
    from core.governance import view

    out.put(valid=False, state=None)
    made, found = _judged(args, Sources())
    if made is not None:
        report = view.report(made)
        out.put(valid=True, state=made.state, report=report)
        out.block(report)
    return finish(out, found)


def _compile_arguments(parser: Parser) -> None:
    _file(parser)
    parser.add_argument("--commands", metavar="FILE", help="templates of your own instead of ours")


def _compile(args: argparse.Namespace, out: Out) -> int:
    from core.governance import escalation

    out.put(command=None, reason="unparseable_status_json")
    sources = Sources()
    data = sources.read(args.file, "FILE")
    out.put(reason="catalog_invalid")
    place = sources.place(args)
    catalog = place.load()
    out.put(reason="escalation_template_invalid")
    commands = (args.commands, sources.read(args.commands, "--commands")) if args.commands else None
    made = escalation.compile_status(args.file, data, place.root, catalog, commands)
    out.put(command=made.command, reason=made.reason)
    if made.command is not None:
        out.block(made.command)
    else:
        out.hint(made.reason)
    return finish(out, made.findings)


def _table_of(args: argparse.Namespace, out: Out) -> tuple[Any, list[Finding]]:
    """(the membership in FILE, else ours, or None; findings)."""
    from core.governance import members, rules

    name, data = (args.file, Sources().read(args.file, "FILE")) if args.file else members.shipped()
    made, _, found = rules.members(name, data)
    return made, found


def _members_validate(args: argparse.Namespace, out: Out) -> int:
    out.put(valid=False, schema=None, member_count=None)
    made, found = _table_of(args, out)
    if made is not None:
        out.put(valid=True, schema=made.schema_, member_count=len(made.members))
        out.line(f"a valid map of {len(made.members)} members")
    return finish(out, found)


def _table(args: argparse.Namespace, out: Out) -> int:
    from core.governance import view

    made, found = _table_of(args, out)
    if made is not None:
        text = view.table(made)
        out.put(table=text, members=[member.model_dump() for member in made.members])
        out.block(text)
    return finish(out, found)


def _graph_arguments(parser: Parser) -> None:
    parser.add_argument("--format", choices=("tree", "mermaid"), default="tree", help="how it is drawn")


def _graph(args: argparse.Namespace, out: Out) -> int:
    from core.governance import members, view

    graph = members.shipped_graph()
    text = view.mermaid(graph) if args.format == "mermaid" else view.tree(graph)
    out.put(
        nodes=[{"id": node, "group": group.name} for group in graph.groups for node in group.nodes],
        edges=[edge.model_dump(by_alias=True) for edge in graph.edges],
        text=text,
    )
    out.block(text)
    return DONE


def _scan_arguments(parser: Parser) -> None:
    parser.add_argument("dir", metavar="DIR", help="the folder below which the skills lie")


def _scan(args: argparse.Namespace, out: Out) -> int:
    from core.governance import members

    made = members.scan(Path(args.dir), members.shipped_members())
    for label, items in (("member", made.members), ("candidate", made.candidates)):
        for item in items:
            lacks = f"; its section lacks {', '.join(item.missing)}" if item.missing else ""
            out.line(f"{label:<9}  {item.component}  {item.path}{lacks}")
    if not made.members and not made.candidates:
        out.line("no skill here names its place in the ecosystem")
    out.put(members=[item.as_json() for item in made.members], candidates=[item.as_json() for item in made.candidates])
    return finish(out, made.findings)


def _goal_validate(args: argparse.Namespace, out: Out) -> int:
    from core.governance import rules

    out.put(valid=False, schema=None, goal_id=None, goal_hash=None)
    made, _, found = rules.goal(args.file or "", Sources().read(args.file, "FILE"))
    if made is not None:
        out.put(valid=True, schema=made.schema_, goal_id=made.goal_id, goal_hash=made.goal_hash)
        out.line(f"a valid goal: {made.goal_id}, {made.goal_hash}")
    return finish(out, found)


def _hash_arguments(parser: Parser) -> None:
    _file(parser)
    parser.add_argument("--rule", choices=("outcome", "canonical"), default="outcome", help="what is hashed")


def _hash(args: argparse.Namespace, out: Out) -> int:
    from core.governance import rules

    made, declared = rules.document_hash(args.file or "", Sources().read(args.file, "FILE"), args.rule)
    matches = rules.declared_matches(declared, made)
    out.put(rule=args.rule, goal_hash=made, declared=declared, matches=matches)
    out.line(made)
    if matches is False:
        out.hint(f"the document declares {declared}")
    return DONE


_GOAL_FLAGS: tuple[tuple[str, tuple[str | int, ...], bool, str], ...] = (
    ("--goal-id", ("goal_id",), False, "how the goal is called"),
    ("--outcome", ("outcome",), False, "what is true once it is reached"),
    ("--proof-command", ("primary_proof", "command"), False, "the command that proves it"),
    ("--proof-expected", ("primary_proof", "expected"), False, "what that command must say"),
    ("--criterion", ("completion_criteria",), True, "what completes it; repeat"),
    ("--scope", ("allowed_scope",), True, "what may be touched; repeat"),
    ("--drift", ("forbidden_drift",), True, "what must not happen on the way; repeat"),
    ("--retry-budget", ("retry_stop_rule", "attempts_per_blocker"), False, "attempts for one blocker: 1 or 2"),
    ("--stop-condition", ("retry_stop_rule", "stop_condition"), False, "when to stop"),
)
"""Flag, place in the goal, whether it repeats, help."""


def _new_arguments(parser: Parser) -> None:
    for flag, _, repeats, text in _GOAL_FLAGS:
        if repeats:
            texts_argument(parser, flag, text)
        else:
            parser.add_argument(flag, metavar="TEXT", help=text)
    parser.add_argument("--report-rule", metavar="TEXT", help="what the final report must say")
    texts_argument(parser, "--must", "what a component MUST do; repeat", "COMPONENT=TEXT")
    parser.add_argument("--out", metavar="FILE", help="write it there; never overwrites")


def _new(args: argparse.Namespace, out: Out) -> int:
    from core.governance import rules
    from core.governance.hashing import goal_hash

    lacking = [item for item in _GOAL_FLAGS if not getattr(args, _attribute(item[0]))]
    if lacking and asks(out):
        for flag, _, repeats, text in lacking:
            label = f"{flag.removeprefix('--').replace('-', ' ').capitalize()} ({text.removesuffix('; repeat')})"
            setattr(args, _attribute(flag), answers(label) if repeats else answer(f"{label}: "))
        lacking = [item for item in _GOAL_FLAGS if not getattr(args, _attribute(item[0]))]
    if lacking:
        raise Refused(
            *(error("field_missing", f"a goal needs {flag}", "collab goal new --help", flag) for flag, *_ in lacking)
        )
    made = _goal(args)
    made["goal_hash"] = goal_hash(made["goal_id"], made["outcome"])
    found = rules.goal_wish(made, _goal_flag)
    if found:
        raise Refused(*found)
    data = _encode(made)
    path = write_new(args.out, data) if args.out else None
    if path is None:
        out.block(data.decode("utf-8"))
    else:
        out.line(f"goal {made['goal_id']} is in {path}")
    out.put(goal=made, path=path)
    return DONE


def _goal(args: argparse.Namespace) -> dict[str, Any]:
    """The goal that the flags describe, keys in the order of the specification; the hash is filled in later."""
    budget = args.retry_budget.strip()
    made: dict[str, Any] = {
        "schema": "shame.immutable_goal.v1",
        "goal_id": clean(args.goal_id),
        "goal_hash": "",
        "outcome": clean(args.outcome),
        "primary_proof": {"command": clean(args.proof_command), "expected": clean(args.proof_expected)},
        "completion_criteria": [clean(item) for item in args.criterion],
        "allowed_scope": [clean(item) for item in args.scope],
        "forbidden_drift": [clean(item) for item in args.drift],
        "retry_stop_rule": {
            "attempts_per_blocker": int(budget)
            if budget.isascii() and budget.isdigit() and len(budget) < 9
            else budget,
            "stop_condition": clean(args.stop_condition),
        },
    }
    musts: dict[str, list[str]] = {}
    for item in args.must:
        component, equals, text = clean(item).partition("=")
        if not equals:
            raise Refused(error("field_invalid", f"--must is COMPONENT=TEXT, not {item!r}", None, "--must"))
        musts.setdefault(component, []).append(text)
    if musts:
        made["ecosystem_must"] = [{"component": component, "must": texts} for component, texts in musts.items()]
    if args.report_rule is not None:
        made["final_report_rule"] = clean(args.report_rule)
    return made


def _goal_flag(steps: Sequence[str | int]) -> str:
    """The flag that gave a place in a goal."""
    if steps and steps[0] == "ecosystem_must":
        return "--must"
    if steps and steps[0] == "final_report_rule":
        return "--report-rule"
    return next((flag for flag, place, *_ in _GOAL_FLAGS if tuple(steps[: len(place)]) == place), "--goal-id")


ENVELOPE = (
    ("wrap", "put an envelope around a payload", _wrap_arguments, _wrap),
    ("validate", "check a receipt by itself, not yet its trust", _file, _envelope_validate),
    ("resolve", "follow a receipt's references: may it be trusted?", _resolve_arguments, _resolve),
)
STATUS = (
    ("check", "judge how an assistant's text ends", _check_arguments, _check),
    ("validate", "check a status", _file, _status_validate),
    ("compile", "the exact command that follows a status", _compile_arguments, _compile),
    ("render", "a status as a report for people", _file, _render),
)
MEMBERS = (
    ("validate", "check the map of the ecosystem", _file, _members_validate),
    ("table", "the members as a table", _file, _table),
    ("graph", "the members as a drawing", _graph_arguments, _graph),
    ("scan", "who names a place in the ecosystem, and who would join it", _scan_arguments, _scan),
)
GOAL = (
    ("validate", "check an immutable goal and its hash", _file, _goal_validate),
    ("hash", "the hash of a goal", _hash_arguments, _hash),
    ("new", "write an immutable goal", _new_arguments, _new),
)

COMMANDS = {
    "envelope": Command(
        "envelope",
        "receipts: wrap, check and follow them",
        lambda parser: subverbs(parser, "envelope", ENVELOPE, shared_arguments),
        run_rooted,
    ),
    "status": Command(
        "status",
        "how a turn ended, as data",
        lambda parser: subverbs(parser, "status", STATUS, shared_arguments),
        run_rooted,
    ),
    "members": Command(
        "members",
        "the components of the ecosystem",
        lambda parser: subverbs(parser, "members", MEMBERS, shared_arguments),
        run_rooted,
    ),
    "goal": Command(
        "goal",
        "goals that nobody may change",
        lambda parser: subverbs(parser, "goal", GOAL, shared_arguments),
        run_rooted,
    ),
}
