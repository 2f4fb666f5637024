"""One failure, one code, one next command: `collab triage` (docs/specs/governance.md §2)."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from core.clock import SYSTEM
from core.finding import Finding, Refused, error

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
    who,
)


def _signal_arguments(parser: Parser) -> None:
    parser.add_argument("--text", help="the signal itself")
    parser.add_argument("--receipt", metavar="FILE", help="a file that holds the signal, or - for standard input")
    parser.add_argument("--layer", help="where it came from: only codes of this layer are tried")


def _signal(args: argparse.Namespace, sources: Sources) -> tuple[str, str | None]:
    """(text, layer) that the flags give; the text wins unless it is empty."""
    text = clean(args.text or "")
    if not text and args.receipt:
        text = sources.read(args.receipt, "--receipt").decode("utf-8", "replace")
    return text, clean(args.layer) if args.layer else None


def _classify(args: argparse.Namespace, out: Out) -> int:
    from core.triage import rules

    sources = Sources()
    catalog = sources.place(args).load()
    report = rules.classify(*_signal(args, sources), catalog).as_json()
    _say(report, out)
    if out.as_json:
        # The bare result and nothing beside it: this verb's contract.
        sys.stdout.write(json.dumps(report, indent=2) + "\n")
        out.as_json = False
    return DONE


def _say(report: dict[str, Any], out: Out) -> None:
    out.line(f"code: {report['code']}" + (" (new: nobody has named it yet)" if report["ambiguous"] else ""))
    out.line(f"layer: {report['layer'] or 'any'}")
    out.line(f"cause: {report['cause']}")
    if report["next_command"]:
        out.line(f"next: {report['next_command']}")
    if report["recoverable"] is not None:
        out.line("recoverable: " + ("yes" if report["recoverable"] else "no"))
    for item in report["not_this"]:
        out.line(f"not this: {item}")
    if report["matched_tokens"]:
        out.line("matched: " + ", ".join(report["matched_tokens"]))


def _observe(args: argparse.Namespace, out: Out) -> int:
    from core.triage import store

    sources = Sources()
    place = sources.place(args)
    text, layer = _signal(args, sources)
    made = store.observe(place, text, layer, who(args), SYSTEM)
    report = made.report.as_json()
    _say(report, out)
    out.line(f"sightings: {made.sightings}" + (", it waits for a name: promote or alias it" if made.recurrence else ""))
    for name in made.created:
        out.line(f"created: {made.side_effects[name]}")
    out.put(
        report=report,
        sightings=made.sightings,
        recurrence=made.recurrence,
        side_effects=dict(made.side_effects),
        created=list(made.created),
    )
    return finish(out, made.warnings)


def _nothing(parser: Parser) -> None:
    """No flags but the shared ones."""


def _list(args: argparse.Namespace, out: Out) -> int:
    from core.triage import store, view

    made = view.listing(Sources().place(args), str(args.root / store.OBSERVATIONS))
    for seen in made.codes:
        out.line(
            f"{seen.status:<9}  {seen.sightings:>6} ×  {seen.code}" + (f" -> {seen.target}" if seen.target else "")
        )
        out.line(f"           {seen.first_seen} to {seen.last_seen}: {seen.signal[:200]}")
    if not made.codes:
        out.line("no unknown signal was observed here")
    out.put(codes=[seen.as_json() for seen in made.codes])
    return finish(out, made.findings)


def _promote_arguments(parser: Parser) -> None:
    parser.add_argument("minted", metavar="MINTED", help="the minted code")
    parser.add_argument("--code", help="its name from now on")
    parser.add_argument("--layer", help="the layer that it belongs to")
    texts_argument(parser, "--match", "what its signals contain; repeat")
    parser.add_argument("--cause", help="what is wrong, one sentence")
    command = parser.add_mutually_exclusive_group()
    command.add_argument("--next-command", metavar="COMMAND", help="the exact command that helps")
    command.add_argument("--no-next-command", action="store_true", help="no command helps")
    parser.add_argument("--not-recoverable", action="store_true", help="trying again is useless")
    texts_argument(parser, "--not-this", "what it is not; repeat")


_WANTED = (("code", "--code"), ("layer", "--layer"), ("match", "--match"), ("cause", "--cause"))


def _missing(args: argparse.Namespace) -> list[tuple[str, str]]:
    """(attribute, flag) of what a promotion needs and nobody gave."""
    found = [(name, flag) for name, flag in _WANTED if not getattr(args, name)]
    if args.next_command is None and not args.no_next_command:
        found.append(("next_command", "--next-command"))
    return found


def _ask(args: argparse.Namespace) -> None:
    for name, flag in _missing(args):
        label = flag.removeprefix("--").replace("-", " ").capitalize()
        if name == "match":
            args.match = answers("Text that its signals contain")
        elif name == "next_command":
            args.next_command = answer("Next command (blank for none): ") or None
            args.no_next_command = args.next_command is None
        else:
            setattr(args, name, answer(f"{label}: "))


PROMOTE_HELP = "collab triage promote --help"


def _promote(args: argparse.Namespace, out: Out) -> int:
    from core.triage import rules, store

    place = Sources().place(args)
    if asks(out) and rules.is_minted(args.minted):
        _ask(args)
    lacking = _missing(args)
    if lacking:
        found: list[Finding] = store.malformed(args.minted)
        found += [error("field_missing", f"a promotion needs {flag}", PROMOTE_HELP, flag) for _, flag in lacking]
        raise Refused(*found)
    wish = rules.Wish(
        clean(args.code),
        clean(args.layer),
        tuple(clean(item) for item in args.match),
        clean(args.cause),
        clean(args.next_command) if args.next_command is not None else None,
        not args.not_recoverable,
        tuple(clean(item) for item in args.not_this),
    )
    made = store.promote(place, args.minted, wish, who(args), SYSTEM)
    out.line(f"{made.minted} is {made.target} from now on, in {made.catalog}")
    out.put(code=made.target, promoted_from=made.minted, catalog=made.catalog, entry=wish.as_json())
    return finish(out, made.warnings)


def _alias_arguments(parser: Parser) -> None:
    parser.add_argument("minted", metavar="MINTED", help="the minted code")
    parser.add_argument("code", metavar="CODE", help="the entry that it means")


def _alias(args: argparse.Namespace, out: Out) -> int:
    from core.triage import store

    made = store.alias(Sources().place(args), args.minted, clean(args.code), who(args), SYSTEM)
    out.line(f"{made.minted} means {made.target}" + (f", written to {made.catalog}" if made.changed else " already"))
    out.put(minted=made.minted, code=made.target, changed=made.changed, catalog=made.catalog)
    return DONE


def _catalog_arguments(parser: Parser) -> None:
    parser.add_argument("--layer", help="only codes of this layer")
    parser.add_argument("--filter", metavar="TEXT", help="only codes that speak of this")


def _catalog(args: argparse.Namespace, out: Out) -> int:
    from core.triage import view

    out.put(valid=False)
    catalog = Sources().place(args).load()
    shown = view.entries(catalog, args.layer or None, args.filter)
    for entry in shown:
        out.line(f"{entry.layer:<12} {entry.code}")
        out.line(f"             {entry.cause}")
        if entry.next_command:
            out.line(f"             next: {entry.next_command}")
    out.line(f"{len(shown)} codes in {catalog.name}")
    out.put(
        valid=True,
        count=len(shown),
        codes=[entry.model_dump() for entry in shown],
        aliases=dict(catalog.aliases),
    )
    return finish(out, catalog.warnings)


ACTS = (
    ("classify", "the code, cause and next command of a signal", _signal_arguments, _classify),
    ("observe", "classify a signal and record that it was met", _signal_arguments, _observe),
    ("list", "the unknown signals that were met here", _nothing, _list),
    ("promote", "give an unknown signal a name in the catalogue", _promote_arguments, _promote),
    ("alias", "make an unknown signal mean a code that exists", _alias_arguments, _alias),
    ("catalog", "check the catalogue in use and show its codes", _catalog_arguments, _catalog),
)

COMMANDS = {
    "triage": Command(
        "triage",
        "failures: from a signal to one code and one next command",
        lambda parser: subverbs(parser, "triage", ACTS, shared_arguments),
        run_rooted,
    )
}
