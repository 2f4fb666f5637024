"""Reading and mending one folder: show log diff repair new-round prompt (docs/design.md §3)."""

from __future__ import annotations

import argparse
import difflib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.acp import reader, rounds, store, story, timeline, view
from core.acp.model import DOCUMENTS, Event
from core.acp.reader import Snapshot, locate
from core.acp.timeline import Timeline
from core.clock import SYSTEM, duration, parse
from core.finding import Finding, Refused, error, warning
from core.sanitize import clip

from tui.cli.acp import member
from tui.cli.base import (
    DONE,
    WARNED,
    Command,
    Out,
    Parser,
    as_argument,
    folder_argument,
    folder_path,
    identity,
    require_identity,
)

BESIDE, NARROWEST = 160, 40
"""Columns of a diff side by side where nobody says how wide it may be, and at the least."""

GLYPHS = {"done": "\u2713", "failed": "\u2715", "open": "\u25cb"}


def _show_arguments(parser: Parser) -> None:
    folder_argument(parser)
    as_argument(parser)
    parser.add_argument("--doc", help="print this document instead")
    parser.add_argument("--at", type=int, metavar="SEQ", help="as it was right after this event")


def _contents(line: Timeline, seq: int) -> dict[str, tuple[str | None, bytes | None]]:
    """Digest and, where it is kept, content of each document right after `seq`. Raises Refused."""
    index = line.index_of(seq)
    digests = line.digests(index) or {}
    return {name: (digests.get(name), one.data) for name, one in line.documents(index).items()}


def _show(args: argparse.Namespace, out: Out) -> int:
    snapshot = reader.require(args.folder)
    setup = snapshot.setup
    assert setup is not None  # noqa: S101 - require() raises otherwise; this tells the type checker
    past = None
    if args.at is not None:
        moments = Timeline(snapshot)
        past = _contents(moments, args.at)
        snapshot = moments.at(moments.index_of(args.at))
    state = snapshot.state
    if args.doc is not None:
        return _show_document(args, snapshot, past, out)
    out.notes(locate(item, args.folder) for item in (snapshot.problems if past is None else ()))
    out.line(setup.objective)
    out.line(f"folder: {args.folder}")
    if args.at is not None:
        out.line(f"as it was after seq {args.at}")
    out.line(f"phase: {state.phase}")
    out.line(f"proposal owner: {state.owner}")
    out.line("participants: " + ", ".join(setup.participants))
    out.line("waiting for: " + (", ".join(state.waiting) or "none"))
    code = _failure_code(args, snapshot)
    if code is not None:
        out.line(f"failure code: {code}")
    before = rounds.chain(args.folder)[1:]
    for path in before:
        out.line(f"previous round: {path}")
    documents = _document_lines(snapshot, past, out)
    made = view.gates(snapshot)
    if made:
        out.line()
        out.line("gates:")
        for gate in made:
            out.line(f"  {GLYPHS[gate.state]} {gate.text}")
    who = identity(args, args.folder)
    if who in setup.participants and args.at is None:
        action = view.next_action(snapshot, who or "")
        out.line()
        out.line(f"next action for {who}: {action.text}")
        if action.command is not None:
            out.line(f"command: {action.command}")
    out.put(
        protocol=dict(setup.raw),
        state={"phase": state.phase, "owner": state.owner, "waitingFor": list(state.waiting), "seq": state.seq},
        documents=documents,
        gates=[{"state": gate.state, "text": gate.text, "where": gate.where} for gate in made],
        rounds=[str(path) for path in before],
        **({"triage_code": code} if code is not None else {}),
    )
    return DONE


def _failure_code(args: argparse.Namespace, snapshot: Snapshot) -> str | None:
    """What the block is called, for a folder that is blocked now."""
    if args.at is not None or snapshot.state.phase != "blocked":
        return None
    from core.governance import acp_boundary

    return acp_boundary.code_of(args.folder)


def _document_lines(
    snapshot: Snapshot, past: dict[str, tuple[str | None, bytes | None]] | None, out: Out
) -> dict[str, dict[str, Any] | None]:
    out.line()
    out.line("documents:")
    made: dict[str, dict[str, Any] | None] = {}
    for name in (*DOCUMENTS, *snapshot.deliverables):
        if past is not None:
            digest, data = past.get(name, (None, None))
            size = len(data) if data is not None else None
        else:
            document = snapshot.document(name)
            digest, size = document.sha256, len(document.data) if document.data is not None else None
        if digest is None:
            document = snapshot.document(name)
            lost = past is not None and timeline.is_unknown(document)
            unknown = "unknown at that time" if lost else document.problem and document.problem.cause
            out.line(f"  {name:<16} {unknown}")
            made[name] = None
        else:
            shown = f"{size:>8} bytes" if size is not None else "content not kept"
            out.line(f"  {name:<16} {shown}  sha256 {digest[:12]}")
            made[name] = {"sha256": digest, "bytes": size}
    return made


def _known(snapshot: Snapshot, name: str) -> None:
    """Raises Refused for a name that is no document of the folder."""
    if name not in DOCUMENTS and name not in snapshot.deliverables:
        known = ", ".join((*DOCUMENTS, *snapshot.deliverables))
        cause = f"{name!r} is no document of this folder; there are {known}"
        raise Refused(error("document_unknown", cause, None, "--doc"))


def _show_document(
    args: argparse.Namespace, snapshot: Snapshot, past: dict[str, tuple[str | None, bytes | None]] | None, out: Out
) -> int:
    name: str = args.doc
    _known(snapshot, name)
    if past is None:
        document = snapshot.document(name)
        if document.data is None:
            raise Refused(document.problem or error("file_missing", f"missing {name}", None, name))
        text, digest, size = document.text, document.sha256, len(document.data)
    else:
        known_digest, data = past.get(name, (None, None))
        if data is None:
            problem = snapshot.document(name).problem
            assert problem is not None  # noqa: S101 - a document without data says why
            raise Refused(error(problem.code, problem.cause, None, name))
        text, digest, size = data.decode("utf-8", "replace"), known_digest, len(data)
    out.block(text)
    out.put(name=name, text=text, sha256=digest, bytes=size)
    return DONE


def _log_arguments(parser: Parser) -> None:
    folder_argument(parser)
    parser.add_argument("--from-seq", type=int, default=1, help="begin at this seq")
    parser.add_argument(
        "--story", metavar="SEQ", help="only what led to this event, or to a decision (D1, or how its text begins)"
    )


def _log(args: argparse.Namespace, out: Out) -> int:
    if args.story is not None:
        return _story(args, out)
    snapshot = reader.require(args.folder, documents=False)
    out.notes(locate(item, args.folder) for item in snapshot.problems)
    shown = [event for event in snapshot.events if (event.seq or 0) >= args.from_seq]
    width = max((len(str(event.seq)) for event in shown), default=1)
    who = max((len(event.actor or "?") for event in shown), default=1)
    for event in shown:
        out.line(log_line(event, width, min(who, 16)))
    out.put(events=[dict(event.raw) for event in shown])
    return DONE


def _story(args: argparse.Namespace, out: Out) -> int:
    """Only what led to an event or a decision: each event, and below it the documents that it changed."""
    snapshot = reader.require(args.folder)
    moments = Timeline(snapshot)
    wanted: str = args.story
    told = story.of(moments, int(wanted) if wanted.isdecimal() and len(wanted) < 16 else wanted)
    width = max(len(str(one.event.seq)) for one in told)
    who = max(len(one.event.actor or "?") for one in told)
    made = []
    for one in told:
        out.line(log_line(one.event, width, min(who, 16)))
        for text in story.change_lines(moments, one):
            out.line(f"{'':>{width}}  {text}")
        changed = None if one.changes is None else [change.name for change in one.changes]
        made.append({"event": dict(one.event.raw), "changed": changed})
    out.put(story=made, events=[dict(one.event.raw) for one in told])
    return DONE


def log_line(event: Event, width: int, who: int) -> str:
    """One event in one line: seq, time, who, what, summary, and what it answers."""
    reply = f"  \u21a9 {event.reply_to}" if event.reply_to is not None else ""
    doc = f"  [{event.doc}]" if event.doc else ""
    actor = clip(event.actor or "?", who)
    return f"{event.seq!s:>{width}}  {event.at}  {actor:<{who}}  {event.name}  {json_text(event.summary)}{doc}{reply}"


def json_text(text: str | None) -> str:
    """A summary in quotes, as data."""
    return json.dumps(text or "", ensure_ascii=False)


def _diff_arguments(parser: Parser) -> None:
    folder_argument(parser)
    as_argument(parser)
    parser.add_argument("--doc", action="append", default=[], help="only this document; repeat")
    parser.add_argument("--since", type=int, metavar="SEQ", help="what changed since this event")
    parser.add_argument("--until", type=int, metavar="SEQ", help="up to this event instead of now")
    parser.add_argument("--since-my-review", action="store_true", help="what changed since your last review")
    parser.add_argument(
        "--side-by-side", action="store_true", help="old and new beside each other, as wide as the terminal or COLUMNS"
    )


def _diff(args: argparse.Namespace, out: Out) -> int:
    snapshot = reader.require(args.folder)
    since = args.since
    for name in args.doc:
        _known(snapshot, name)
    if args.since_my_review:
        if since is not None:
            cause = "--since SEQ and --since-my-review contradict each other"
            raise Refused(error("usage_contradiction", cause, None, "--since"))
        who = require_identity(args, args.folder, "diff --since-my-review")
        mine = next((e for e in reversed(snapshot.events) if e.name == "review_submitted" and e.actor == who), None)
        if mine is None:
            raise Refused(
                error("review_none", f"{who} has not reviewed this collaboration yet", None, "--since-my-review")
            )
        since = mine.seq
    if since is None:
        raise Refused(error("usage_wrong", "say since when: --since SEQ or --since-my-review", None, "--since"))
    moments = Timeline(snapshot)
    old = _contents(moments, since)
    if args.until is not None:
        new = _contents(moments, args.until)
    else:
        everything = [*snapshot.documents.values(), *snapshot.deliverables.values()]
        new = {one.name: (one.sha256, one.data) for one in everything if one.data is not None}
    names = args.doc or [*DOCUMENTS, *snapshot.deliverables]
    hunks: list[dict[str, Any]] = []
    unknown: list[Finding] = []
    for name in names:
        problem = snapshot.document(name).problem
        if args.until is None and problem is not None:
            unknown.append(warning(problem.code, f"{name} cannot be read now: {problem.cause}", None, name))
            continue
        found = _document_diff(name, old.get(name), new.get(name), since, args.until, unknown)
        if found is None:
            continue
        hunks += found.hunks
        if args.side_by_side and not out.as_json:
            _print_beside(name, found, _moments(args, moments, since), out)
        else:
            out.block("\n".join(found.lines))
    out.notes(unknown)
    out.put(**{"from": since, "to": args.until, "hunks": hunks})
    if not hunks and not unknown:
        out.line(f"no document changed since seq {since}")
    return WARNED if unknown else DONE


@dataclass(frozen=True)
class Changed:
    """A document before and after, and its unified diff."""

    old: str
    new: str
    lines: list[str]
    hunks: list[dict[str, Any]]


def _document_diff(
    name: str,
    old: tuple[str | None, bytes | None] | None,
    new: tuple[str | None, bytes | None] | None,
    since: int,
    until: int | None,
    unknown: list[Finding],
) -> Changed | None:
    if old is not None and new is not None and old[0] is not None and old[0] == new[0]:
        return None
    if old is None or old[1] is None or new is None or new[1] is None:
        when = since if old is None or old[1] is None else until
        cause = f"the content of {name} at seq {when} is unknown: that event was not written by this tool"
        unknown.append(warning("content_unknown", cause, None, name))
        return None
    before, after = old[1].decode("utf-8", "replace"), new[1].decode("utf-8", "replace")
    label = f"{name} at seq {until}" if until is not None else f"{name} now"
    lines = list(
        difflib.unified_diff(before.splitlines(), after.splitlines(), f"{name} at seq {since}", label, lineterm="")
    )
    hunks: list[dict[str, Any]] = []
    for line in lines[2:]:
        if line.startswith("@@"):
            hunks.append({"document": name, "header": line, "lines": []})
        elif hunks:
            hunks[-1]["lines"].append(line)
    return Changed(before, after, lines, hunks)


def _moments(args: argparse.Namespace, line: Timeline, since: int) -> tuple[str, str]:
    """The two moments in the console's words."""
    who, events = identity(args, args.folder), line.events
    reviews = (at for at in range(len(events) - 1, -1, -1) if events[at].name == "review_submitted")
    mine = next((at for at in reviews if events[at].actor == who), None) if who else None

    def said(seq: int | None) -> str:
        at = line.index_of(seq) if seq is not None else None
        return timeline.moment(events[at] if at is not None else None, at is not None and at == mine)

    return f"since {said(since)}", f"until {said(args.until)}"


def _print_beside(name: str, changed: Changed, moments: tuple[str, str], out: Out) -> None:
    from tui.widgets import sides

    width = max(NARROWEST, shutil.get_terminal_size((BESIDE, 24)).columns)
    out.line(name)
    for line in sides.plain(_ended(changed.old), _ended(changed.new), *moments, sides.Look(width)):
        out.line(line)
    out.line()


def _ended(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _repair_arguments(parser: Parser) -> None:
    folder_argument(parser, required=False)
    parser.add_argument("--plan", metavar="DIR", help="a plan instead: its missing receipts")


def _repair(args: argparse.Namespace, out: Out) -> int:
    from core.workspace import is_workflow

    if (args.folder is None) == (args.plan is None):
        raise Refused(error("usage_wrong", "give one of --folder, --plan", "collab repair --help", "--folder"))
    if args.plan is not None:
        return _repair_plan(args, out)
    if is_workflow(args.folder):
        return _repair_workflows(args, out)
    reader.require(args.folder, documents=False)
    from core.governance import acp_boundary

    done = [*store.mend(args.folder), *acp_boundary.rebuild(args.folder)]
    for item in done:
        out.line(f"mended: {item.cause}")
    if not done:
        out.line("nothing to mend")
    left = [item for item in reader.read(args.folder).findings if item.severity == "error"]
    out.notes(left)
    out.put(mended=[item.as_json() for item in done])
    return DONE if not left else 2


def _repair_plan(args: argparse.Namespace, out: Out) -> int:
    """A plan: its writers mend its journal, so only receipts can be missing."""
    from core.delegation.place import find
    from core.governance import plan_boundary

    done = plan_boundary.rebuild(find(args.plan).plan)
    mended = [item for item in done if item.code == "receipt_rebuilt"]
    left = [item for item in done if item.code != "receipt_rebuilt"]
    for item in mended:
        out.line(f"mended: {item.cause}")
    if not done:
        out.line("nothing to mend")
    out.notes(left)
    out.put(mended=[item.as_json() for item in mended])
    return DONE if not left else 2


def _repair_workflows(args: argparse.Namespace, out: Out) -> int:
    """A workflow root: its engine mends its own logs, so only receipts can be missing."""
    from core.governance import workflow_boundary

    done = workflow_boundary.rebuild(args.folder)
    for item in done:
        out.line(f"mended: {item.cause}")
    if not done:
        out.line("nothing to mend")
    out.put(mended=[item.as_json() for item in done])
    return DONE


def _round_arguments(parser: Parser) -> None:
    parser.add_argument("--from", dest="source", required=True, type=folder_path, help="the folder that ended")
    folder_argument(parser)


def _round(args: argparse.Namespace, out: Out) -> int:
    target: Path = args.folder
    rounds.new_round(args.source, target, SYSTEM)
    out.line(f"new round in {target}, continuing {args.source}")
    out.put(folder=str(target), predecessor=str(args.source))
    return DONE


def _prompt_arguments(parser: Parser) -> None:
    folder_argument(parser)
    as_argument(parser)


def _prompt(args: argparse.Namespace, out: Out) -> int:
    from core.acp.prompt import prompt

    who = require_identity(args, args.folder, "prompt")
    text = prompt(member(args.folder, who), who)
    out.block(text)
    out.put(text=text)
    return DONE


def since_text(event: Event | None) -> str:
    """How long ago an event was."""
    moment = parse(event.at) if event is not None else None
    return "" if moment is None else duration((SYSTEM.now() - moment).total_seconds())


COMMANDS = {
    one.name: one
    for one in (
        Command("show", "a folder's state, documents and gates; one document with --doc", _show_arguments, _show),
        Command("log", "the events, one a line", _log_arguments, _log),
        Command(
            "diff",
            "what changed in the documents",
            _diff_arguments,
            _diff,
        ),
        Command("repair", "settle what a killed writer left", _repair_arguments, _repair),
        Command("new-round", "continue a blocked or completed collaboration", _round_arguments, _round),
        Command("prompt", "the text that launches a participant", _prompt_arguments, _prompt),
    )
}
