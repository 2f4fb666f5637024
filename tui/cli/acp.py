"""The protocol's own verbs, to the letter of the reference: init append next wait validate (docs/specs/acp.md §5)."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.acp import reader, store, view
from core.acp.model import EVENTS_V2, LOG, Draft
from core.acp.reader import Snapshot, locate
from core.clock import SYSTEM
from core.finding import Finding, Refused, error, errors

from tui.cli.base import (
    DONE,
    REFUSED,
    WARNED,
    Command,
    Out,
    Parser,
    folder_argument,
    format_finding,
    seconds,
    user_state,
)

if TYPE_CHECKING:
    from core.acp.declare import Declaration

DEFAULT_TIMEOUT = 1800.0
LONGEST_LOOK = 60.0
"""Seconds between two looks at most, where nothing notifies."""
GRACE = 2.0
"""Seconds that a waiter bears a folder that cannot be read: others write protocol.json in place."""


def _init_arguments(parser: Parser) -> None:
    folder_argument(parser)
    parser.add_argument("--participant", action="append", default=[], help="an id; the first owns the proposal; repeat")
    parser.add_argument("--objective", default="", help="what the collaboration shall decide")
    parser.add_argument("--completion", action="append", default=[], help="a completion gate; repeat")
    parser.add_argument("--language", default="en", help="language of the templates (en, fr, ja, it, zh)")
    parser.add_argument(
        "--primary-deliverable-type",
        metavar="TYPE",
        help="makes a schema 2 folder: adr, design-spec, implementation-plan, decision-memo, review-report, "
        "test-plan or custom",
    )
    parser.add_argument("--primary-deliverable-file", help="its Markdown file; <type>.md, custom needs one")
    parser.add_argument(
        "--primary-deliverable-check", action="append", default=[], help="custom: a section that it must hold; repeat"
    )
    parser.add_argument(
        "--deliverables-mode", help="internal: in this folder (default); external: in the repository around it"
    )
    parser.add_argument("--deliverables-dir", help="their folder (default: deliverables)")
    parser.add_argument("--repo-root", help="external: the repository, relative to the collaboration folder")
    parser.add_argument("--resume", action="store_true", help="succeed if the folder is a collaboration already")


def _init(args: argparse.Namespace, out: Out) -> int:
    from core.acp import templates

    folder: Path = args.folder
    if os.path.exists(folder / "protocol.json"):
        if not args.resume:
            raise Refused(templates.exists_finding(folder))
        out.line(f"Collaboration folder already exists: {folder}")
        out.put(folder=str(folder), schema=_schema(folder))
        return DONE
    declared = _declaration(args)
    _ask(args, out)
    templates.initialize(
        folder, args.objective, args.participant, args.completion, SYSTEM, args.language, declared=declared
    )
    out.line(f"Initialized ACP collaboration folder: {folder}")
    out.line("state seq: 1")
    out.put(folder=str(folder), schema=1 if declared is None else 2)
    return DONE


def _declaration(args: argparse.Namespace) -> Declaration | None:
    """The deliverable that the flags declare; without a type there is none, and then no other flag either."""
    given = {
        "--primary-deliverable-file": args.primary_deliverable_file,
        "--primary-deliverable-check": args.primary_deliverable_check,
        "--deliverables-mode": args.deliverables_mode,
        "--deliverables-dir": args.deliverables_dir,
        "--repo-root": args.repo_root,
    }
    if args.primary_deliverable_type is None:
        flag = next((name for name, value in given.items() if value), None)
        if flag is not None:
            cause = f"{flag} needs --primary-deliverable-type"
            raise Refused(error("deliverable_type_missing", cause, None, "--primary-deliverable-type"))
        return None
    from core.acp.declare import Declaration

    return Declaration(
        args.primary_deliverable_type,
        args.primary_deliverable_file or "",
        args.primary_deliverable_check,
        args.deliverables_mode or "internal",
        "deliverables" if args.deliverables_dir is None else args.deliverables_dir,
        args.repo_root,
    )


def _schema(folder: Path) -> int:
    setup = reader.require(folder, documents=False).setup
    return setup.schema if setup is not None else 1


def _ask(args: argparse.Namespace, out: Out) -> None:
    """In a terminal what is missing is asked for; gates are never invented."""
    if out.as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    if not args.objective.strip():
        args.objective = _answer("Objective: ")
    for flag, label in (("participant", "Participant (blank line ends): "), ("completion", "Gate (blank line ends): ")):
        given: list[str] = getattr(args, flag)
        if not any(value.strip() for value in given):
            while answer := _answer(label):
                given.append(answer)


def _answer(label: str) -> str:
    sys.stderr.write(label)
    sys.stderr.flush()
    return sys.stdin.readline().strip()


def _append_arguments(parser: Parser) -> None:
    folder_argument(parser)
    parser.add_argument("--participant", required=True, help="who writes the event")
    parser.add_argument("--event", required=True, choices=sorted(EVENTS_V2), metavar="EVENT", help="the event's name")
    parser.add_argument("--summary", required=True, help="one short sentence")
    parser.add_argument("--doc", help="the document, relative to the folder")
    parser.add_argument("--reply-to", type=int, help="seq of the earlier event that this one answers")
    parser.add_argument("--role", choices=("primary", "supporting"), help="deliverable events: which one")
    parser.add_argument("--sha256", help="deliverable_frozen: the file's digest, 64 hex digits")


def _append(args: argparse.Namespace, out: Out) -> int:
    draft = Draft(args.participant, args.event, args.summary, args.doc, args.reply_to, args.role, args.sha256)
    made = store.append(args.folder, draft)
    out.notes(made.mended)
    out.notes(made.warnings)
    if draft.event in ("readiness_passed", "completed"):
        out.notes(_as_warnings(reader.read(args.folder)))
    report(args.folder, made, out)
    return DONE


def _as_warnings(snapshot: Snapshot) -> list[Any]:
    """The protocol asks for a valid folder before these events; the reference lets them through, so we only say so."""
    from dataclasses import replace

    return [replace(item, severity="warning") for item in errors(snapshot.findings)]


def report(folder: Path, made: store.Appended, out: Out) -> None:
    """What every writing verb says of the event that it appended."""
    event, state = made.event, made.state
    out.line(f"appended seq {event.seq}: {event.name}")
    if made.code is not None:
        out.line(f"failure code: {made.code}")
    if out.as_json:
        action = view.next_action(reader.read(folder), event.actor or "")
        out.put(
            event=dict(event.raw),
            state={"phase": state.phase, "owner": state.owner, "waitingFor": list(state.waiting)},
            next={"participant": event.actor, "action": action.text, "command": action.command},
        )
        if made.code is not None:
            out.put(triage_code=made.code)


def _next_arguments(parser: Parser) -> None:
    folder_argument(parser)
    parser.add_argument("--participant", required=True, help="who asks")


def member(folder: Path, participant: str) -> Snapshot:
    """A readable folder of which `participant` is one. Raises Refused otherwise."""
    snapshot = reader.require(folder)
    known = snapshot.setup.participants if snapshot.setup is not None else ()
    if participant not in known:
        cause = f"participant {participant!r} is not listed in protocol.json ({', '.join(known)})"
        command = f"collab show --folder {shlex.quote(str(folder))}"
        raise Refused(error("participant_unknown", cause, command, "--participant"))
    broken = [item for item in snapshot.problems if item.severity == "error" and item.code != "log_torn"]
    if LOG not in snapshot.present:
        broken.append(error("file_missing", f"missing {LOG}", None, LOG))
    if broken:
        raise Refused(*(locate(item, folder) for item in broken))
    return snapshot


def print_next(snapshot: Snapshot, participant: str, out: Out) -> None:
    """The lines of `next`, and its JSON keys."""
    state, last = snapshot.state, snapshot.last()
    action = view.next_action(snapshot, participant)
    out.line(f"phase: {state.phase}")
    out.line(f"proposal owner: {state.owner}")
    out.line("waiting for: " + (", ".join(state.waiting) or "none"))
    if last is not None:
        out.line(f"last event: seq {last.seq} {last.name} from {last.actor}")
    out.line(f"next action: {action.text}")
    if action.command is not None:
        out.line(f"command: {action.command}")
    out.put(
        phase=state.phase,
        owner=state.owner,
        waitingFor=list(state.waiting),
        last_event=dict(last.raw) if last is not None else None,
        action=action.text,
        command=action.command,
    )
    out.flush()


def _next(args: argparse.Namespace, out: Out) -> int:
    snapshot = member(args.folder, args.participant)
    out.notes(locate(item, args.folder) for item in snapshot.problems)
    print_next(snapshot, args.participant, out)
    return DONE


def _wait_arguments(parser: Parser) -> None:
    folder_argument(parser)
    parser.add_argument("--participant", required=True, help="who waits")
    parser.add_argument("--interval", type=seconds, default=2.0, help="seconds between looks where nothing notifies")
    parser.add_argument("--timeout", type=seconds, help="seconds; 0 never times out (default 1800, none for schema 2)")


def _wait(args: argparse.Namespace, out: Out) -> int:
    return wait(args.folder, args.participant, args.interval, args.timeout, out)


def ready_reason(snapshot: Snapshot, participant: str) -> str | None:
    """Why a participant need not wait any longer, or None."""
    if snapshot.state.terminal:
        return f"phase is {snapshot.state.phase}"
    return f"{participant} is listed in waitingFor" if participant in snapshot.state.waiting else None


def wait(folder: Path, participant: str, interval: float, timeout: float | None, out: Out) -> int:
    """Return when it is this participant's turn or the collaboration is over; writes nothing."""
    from core.watch import Watcher

    started = time.monotonic()
    snapshot = member(folder, participant)
    if timeout is None:
        timeout = 0.0 if snapshot.setup is not None and snapshot.setup.schema >= 2 else DEFAULT_TIMEOUT
    stop = threading.Event()
    said = ""
    tick = max(0.05, min(max(interval, 0.1), timeout or interval, LONGEST_LOOK))
    looks = None
    unread = 0.0
    while True:
        reason = ready_reason(snapshot, participant)
        if reason is not None:
            out.line(f"ready: {reason}")
            out.put(ready=True)
            print_next(snapshot, participant, out)
            return DONE
        last = snapshot.last()
        waiting = f"waiting for {', '.join(snapshot.state.waiting) or 'none'}"
        told = waiting + (f" after seq {last.seq}" if last is not None else "")
        if told != said:
            out.line(f"waiting: {told}")
            out.flush()
            said = told
        if timeout and time.monotonic() - started >= timeout:
            out.hint(f"timeout: {told}")
            out.put(ready=False)
            if out.as_json:
                print_next(snapshot, participant, out)
            return WARNED
        if looks is None:
            # Armed before the next look, so that nothing between look and watch is missed for longer than a tick.
            looks = iter(Watcher(lambda: [folder], stop, tick))
        next(looks)
        try:
            snapshot, unread = member(folder, participant), 0.0
        except Refused:
            unread = unread or time.monotonic()
            if time.monotonic() - unread >= GRACE or not os.path.isdir(folder):
                raise


def _validate_arguments(parser: Parser) -> None:
    folder_argument(parser)
    parser.add_argument("--receipts", action="store_true", help="also check the receipts that its events left")


def _validate(args: argparse.Namespace, out: Out) -> int:
    from core.acp.check import check
    from core.workspace import is_workflow

    if args.receipts and is_workflow(args.folder):
        from core.governance import workflow_boundary

        return _judged(out, workflow_boundary.check(args.folder), "workflow receipts")
    _, findings = check(args.folder, user_state())
    if args.receipts:
        from core.governance import acp_boundary

        findings += acp_boundary.check(args.folder)
    return _judged(out, findings, "ACP validation")


def _judged(out: Out, findings: list[Finding], what: str) -> int:
    out.findings.extend(findings)
    bad = errors(findings)
    mild = [item for item in findings if item.severity == "warning"]
    if bad:
        out.line(f"{what} failed")
    else:
        out.line(f"{what} passed with warnings" if mild else f"{what} passed")
    if not out.as_json:
        for item in findings:
            out.raw(format_finding(item, item.severity.upper()))
    out.put(valid=not bad, errors=[item.cause for item in bad], warnings=[item.cause for item in mild])
    return REFUSED if bad else WARNED if mild else DONE


COMMANDS = {
    one.name: one
    for one in (
        Command(
            "init",
            "start a collaboration folder",
            _init_arguments,
            _init,
        ),
        Command(
            "append",
            "append one event, as the protocol's own script does",
            _append_arguments,
            _append,
        ),
        Command("next", "what a participant does next", _next_arguments, _next),
        Command("wait", "wait until it is a participant's turn", _wait_arguments, _wait),
        Command("validate", "check a folder: 0 valid, 1 warnings, 2 invalid", _validate_arguments, _validate),
    )
}
