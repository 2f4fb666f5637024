"""What there is and what waits: list, inbox (docs/design.md §3)."""

from __future__ import annotations

import argparse
import os
import shlex
from datetime import timedelta
from pathlib import Path

from core import evidence, inbox
from core.clock import SYSTEM, duration, parse_duration, stamp
from core.finding import Refused, error
from core.sanitize import cells, clip, inert
from core.workspace import Summaries, discover

from tui.cli.base import DONE, Command, Out, Parser, as_argument, folder_path, user_state
from tui.settings import config_path, load

LONGEST = 3650 * 86400.0
"""Seconds that something may be snoozed for."""


def roots_argument(parser: Parser) -> None:
    parser.add_argument("roots", nargs="*", type=folder_path, metavar="ROOT", help="where to look (default: here)")


def roots_of(args: argparse.Namespace) -> list[Path]:
    """The roots, existing ones. Raises Refused for one that is not there."""
    given: list[Path] = args.roots or [Path.cwd()]
    for root in given:
        if not os.path.isdir(root):
            raise Refused(error("folder_missing", f"there is no folder {root}", None, str(root)))
    return given


def pad(text: str, width: int) -> str:
    """Inert text cut and filled to a width in cells."""
    shown = clip(inert(text), width)
    return shown + " " * (width - cells(shown))


def _list_arguments(parser: Parser) -> None:
    roots_argument(parser)
    as_argument(parser)


def _list(args: argparse.Namespace, out: Out) -> int:
    places = discover(roots_of(args))
    seen = evidence.Evidence()
    items = Summaries().items(place for place in places if place.kind == "acp")
    items += evidence.listed(seen.look(place for place in places if place.kind not in ("acp", "plan")))
    seen.close()
    plans = [place.path for place in places if place.kind == "plan"]
    if plans:
        from core.delegation.summary import summarise

        items += map(summarise, plans)
    now = SYSTEM.now()
    for item in items:
        age = duration((now - item.since).total_seconds()) if item.since is not None else "-"
        waits = ", ".join(item.waiting_for) or "nobody"
        health = "" if item.health == "ok" else f"  ! {item.health}: {item.problem.cause if item.problem else ''}"
        phase = item.phase or "unknown"
        out.line(f"{pad(phase, 16)} {age:>9}  {pad(item.title, 36)}  waits for {pad(waits, 20)} {item.path}{health}")
        if item.problem is not None:
            out.findings.append(item.problem)
    if not items:
        out.line("no collaborations here; `collab init --help` starts one, `collab demo` shows one")
    out.put(
        items=[
            {
                "kind": item.kind,
                "path": str(item.path),
                "title": item.title,
                "phase": item.phase,
                "waitingFor": list(item.waiting_for),
                "since": stamp(item.since) if item.since is not None else None,
                "health": item.health,
            }
            for item in items
        ]
    )
    return DONE


def _inbox_arguments(parser: Parser) -> None:
    roots_argument(parser)
    as_argument(parser)
    parser.add_argument("--snooze", metavar="ITEM", help="hide this item for a while")
    parser.add_argument("--for", dest="span", metavar="DURATION", help="how long: 30m, 2h, 1d")


def _inbox(args: argparse.Namespace, out: Out) -> int:
    state, now = user_state(), SYSTEM.now()
    again = " ".join(["collab inbox", *(shlex.quote(str(root)) for root in args.roots)])
    named = args.as_ or os.environ.get("COLLAB_AS")
    places = discover(roots_of(args))
    summaries = Summaries().items(place for place in places if place.kind == "acp")
    config = load(config_path(os.environ))
    out.notes(config.findings)
    minutes = config.settings.delegation_minutes
    seen = evidence.Evidence(open_age=timedelta(minutes=minutes))
    views = seen.look(place for place in places if place.kind != "acp")
    asked = evidence.inbox_items(views)
    everything = inbox.items(summaries, lambda item: named or state.identity(item.path), {}, now, asked)
    seen.close()
    for view in views:
        out.notes(view.findings)
    if args.snooze is not None:
        seconds = parse_duration(args.span or "")
        if seconds is None or not 0 < seconds <= LONGEST:
            raise Refused(error("duration_malformed", "say for how long: --for 30m, 2h or 1d", None, "--for"))
        if not any(one.id == args.snooze for one in everything):
            raise Refused(error("inbox_item_unknown", f"nothing with id {args.snooze!r} waits", again, "--snooze"))
        if not inbox.snooze(state, args.snooze, now + timedelta(seconds=seconds), now):
            raise Refused(error("state_unwritable", f"{state.folder} cannot be written", None, str(state.folder)))
    elif args.span is not None:
        raise Refused(error("usage_wrong", "--for belongs to --snooze ITEM", again, "--for"))
    hidden = inbox.snoozes(state)
    shown = [one for one in everything if one.id not in hidden or hidden[one.id] <= now]
    lane = None
    for one in shown:
        if one.lane != lane:
            out.line(one.lane.upper())
            lane = one.lane
        age = duration((now - one.since).total_seconds()) if one.since is not None else "-"
        out.line(f"  {one.title}  ({age})")
        out.line(f"    {one.action}: {one.why}")
        out.line(f"    {one.command}")
        out.line(f"    id {one.id}")
    if not shown:
        out.line("nothing waits" + (f" for {named}" if named else ""))
    out.put(items=[one.as_json() for one in shown])
    return DONE


COMMANDS = {
    one.name: one
    for one in (
        Command("list", "the collaborations below a folder", _list_arguments, _list),
        Command("inbox", "what waits for you, and why", _inbox_arguments, _inbox),
    )
}
