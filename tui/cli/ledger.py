"""A plan's record: contract, journal, gates, delegations (docs/specs/delegation.md §4–§8).

Flags, texts in capitals and exit codes are those of the public pack's ledger, which goes on with our plans and we with
its. Nothing here starts, stops or asks a delegate.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.clock import SYSTEM
from core.finding import Finding, Refused, error
from core.sanitize import inert

from tui.cli.base import Out, format_finding
from tui.cli.ledger_flags import LedgerCommand, arguments

if TYPE_CHECKING:
    from core.delegation.place import Place
    from core.delegation.reader import Record
    from core.delegation.store import Outcome
    from core.delegation.verify import Report
    from core.delegation.writer import Hold, World

CONFIRMATION = "yes, I authorize this"
Verb = Callable[[argparse.Namespace, Out], int]


# ---------------------------------------------------------------- output


def _print_json(document: Any) -> None:
    sys.stdout.write(json.dumps(document, indent=2, default=str) + "\n")


def _closed(out: Out) -> None:
    """The document is printed already, in the form of the ledger's own specification."""
    out.as_json = False
    sys.stdout.flush()


def _document(exit_code: int, events: Sequence[Mapping[str, Any]], finding: Finding | None) -> dict[str, Any]:
    return {
        "ok": exit_code == 0,
        "exit": exit_code,
        "events": [dict(event) for event in events],
        "finding": finding.as_json() if finding is not None else None,
    }


def _error(out: Out, exit_code: int, finding: Finding, events: Sequence[Mapping[str, Any]] = ()) -> int:
    if out.as_json:
        _print_json(_document(exit_code, events, finding))
        _closed(out)
    else:
        label = "COLLISION" if finding.code in ("journal_collision", "head_moved") else "ERROR"
        sys.stderr.write(format_finding(finding, label))
    return exit_code


def _outcome(place: Place, out: Out, made: Outcome) -> int:
    for text in made.warnings:
        sys.stderr.write(f"WARNING: {inert(text)}\n")
    codes = _left(place, made.events)
    if out.as_json:
        document = _document(made.exit, made.events, made.finding)
        if made.criteria is not None:
            document["criteria"] = [state.as_json() for state in made.criteria]
        _print_json(document)
        _closed(out)
    elif made.finding is None:
        out.line(made.message)
    elif made.exit == 5:
        out.line(f"REFUSED: {made.message}")
        _next(made.finding)
    else:
        sys.stderr.write(format_finding(made.finding, "REFUSED"))
    for code in codes:
        sys.stderr.write(f"  failure code: {inert(code)}\n")
    return made.exit


def _left(place: Place, events: Sequence[Mapping[str, Any]]) -> list[str]:
    """Leave the receipts of what was just written; the codes of what failed or was refused in it."""
    from core.governance import plan_boundary

    if not any(event["type"] in plan_boundary.EVENTS for event in events):
        return []
    made = plan_boundary.leave(place.plan, frozenset(event["seq"] for event in events))
    for item in made.findings:
        sys.stderr.write(format_finding(item, "WARNING"))
    return [made.codes[seq] for seq in sorted(made.codes)]


def _next(finding: Finding) -> None:
    if finding.next_command:
        sys.stderr.write(f"  next: {inert(finding.next_command)}\n")


def _damage(record: Record) -> None:
    """Readers show what can be read and name the rest."""
    for item in [*record.damaged, *([record.torn] if record.torn is not None else [])]:
        sys.stderr.write(f"WARNING: {inert(item.sentence)}\n")


# ---------------------------------------------------------------- input


class _Wrong(Exception):
    """An error before anything was read: exit code and finding."""

    def __init__(self, exit_code: int, finding: Finding) -> None:
        super().__init__(finding.cause)
        self.exit, self.finding = exit_code, finding


def _usage(cause: str, flag: str, args: argparse.Namespace) -> _Wrong:
    return _Wrong(2, error("usage_wrong", cause, f"collab ledger {args.act} --help", flag))


def _bad(code: str, cause: str, flag: str) -> _Wrong:
    return _Wrong(1, error(code, cause, None, flag))


def _needed(args: argparse.Namespace, *flags: str) -> None:
    for flag in flags:
        if not getattr(args, flag.replace("-", "_")):
            raise _usage(f"{args.act} needs --{flag}", f"--{flag}", args)


def _parsed(text: str, flag: str) -> Any:
    from core.delegation.canon import parse_json

    try:
        return parse_json(text)
    except ValueError as exc:
        raise _bad("json_malformed", f"{flag} is not JSON: {exc}", flag) from None


def _object(text: str | None) -> dict[str, Any]:
    value = _parsed(text, "--json") if text else {}
    if not isinstance(value, dict):
        raise _bad("json_not_object", "--json must be a JSON object", "--json")
    return value


def _caps(args: argparse.Namespace) -> dict[str, bool]:
    if not args.caps:
        return {}
    value = _parsed(args.caps, "--caps")
    from core.delegation.addons import capabilities

    try:
        return capabilities(value)
    except ValueError as exc:
        raise _bad("caps_invalid", str(exc), "--caps") from None


def _bytes(name: str, flag: str) -> bytes:
    from core.files import DOCUMENT_CAP, open_named

    try:
        with open_named(Path(name).expanduser()) as handle:
            data = handle.read(DOCUMENT_CAP + 1)
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
        raise _bad("file_unreadable", f"{name}: {reason}", flag) from None
    if len(data) > DOCUMENT_CAP:
        raise _bad("file_too_large", f"{name} has more than {DOCUMENT_CAP} bytes", flag)
    return data


def _place(args: argparse.Namespace) -> Place:
    from core.delegation.place import find

    if not args.plan:
        raise _usage("say which plan with --plan DIR", "--plan", args)
    try:
        return find(args.plan)
    except Refused as exc:
        raise _Wrong(1, exc.findings[0]) from None


def _world() -> World:
    from core.delegation.writer import World

    return World(SYSTEM, os.environ, lambda: os.urandom(3).hex())


def _hold(args: argparse.Namespace) -> Hold:
    from core.delegation.writer import Hold

    return Hold(force=args.force)


def _actor(args: argparse.Namespace) -> dict[str, str]:
    return {"kind": args.actor_kind, "identity": args.actor_identity}


# ---------------------------------------------------------------- verbs that write


def _materialize(args: argparse.Namespace, out: Out) -> int:
    from core.delegation.materialize import Beginning, materialize

    _needed(args, "contract")
    place = _place(args)
    asked = Beginning(_bytes(args.contract, "--contract"), args.authority, args.mechanism, args.note)
    return _outcome(place, out, materialize(place, _world(), asked, _hold(args)))


def _start(args: argparse.Namespace, out: Out) -> int:
    from core.delegation.store import start

    _needed(args, "task")
    place = _place(args)
    return _outcome(place, out, start(place, _world(), args.task, _actor(args), _hold(args)))


def _gate(args: argparse.Namespace, out: Out) -> int:
    from core.delegation.gates import Gate, gate, parse_command
    from core.delegation.writer import Halt

    _needed(args, "task", "json")
    command = parse_command(args.json)
    place = _place(args)
    asked = Gate(args.task, args.criterion or "", command, args.timeout, not args.no_reuse, args.selection)
    with _Told() as told:
        try:
            made = gate(place, _world(), asked, _hold(args), cancel=told.event)
        except Halt:
            if told.number:
                out.hint("interrupted; nothing is recorded")
                return 128 + told.number
            raise
    _left(place, made.events)
    if out.as_json:
        document = _document(made.exit, made.events, made.finding)
        document["gate"] = made.as_json()
        _print_json(document)
        _closed(out)
        return made.exit
    out.line(made.message)
    if made.finding is not None:
        _next(made.finding)
    return made.exit


class _Told:
    """Being told to end (SIGINT, SIGTERM, SIGHUP) cancels the gate, wherever it is: a signal that raised could strike
    before anybody knows the process that was just started."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.number = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _Told:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_IGN:
                continue
            try:
                self._before[number] = signal.signal(number, self._hear)
            except ValueError:
                # Not the main thread: whoever runs this there cancels it by other means.
                break
        return self

    def _hear(self, number: int, _: Any) -> None:
        self.number = number
        self.event.set()

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


def _complete(args: argparse.Namespace, out: Out) -> int:
    from core.delegation.store import complete

    _needed(args, "task")
    place = _place(args)
    return _outcome(place, out, complete(place, _world(), args.task, _hold(args)))


def _signoff(args: argparse.Namespace, out: Out) -> int:
    from core.delegation.store import signoff

    _needed(args, "criterion")
    who, where = args.authority, args.evidence_path
    place = _place(args)
    made = signoff(place, _world(), args.criterion, where, who, args.task, _hold(args))
    return _outcome(place, out, made)


def _append(args: argparse.Namespace, out: Out) -> int:
    from core.delegation.store import Appending, append

    _needed(args, "type", "json")
    place = _place(args)
    payload = _object(args.json)
    note = args.note
    if args.actor_kind == "human":
        marker = _authority(args.human_note)
        note = f"{note} | {marker}" if note else marker
    asked = Appending(
        args.type, payload, _actor(args), args.trust, args.evidence_path, note, idempotent=args.idempotent
    )
    return _outcome(place, out, append(place, _world(), asked, _hold(args)))


def _authority(note: str | None) -> str:
    """What makes a person's record explicit: a note that exists, or a typed confirmation (§4)."""
    from core.files import sha256

    if note:
        return f"human note {Path(note).name[:100]} sha256:{sha256(_bytes(note, '--human-note'))[:16]}"
    if sys.stdin.isatty():
        sys.stderr.write(f'Type "{CONFIRMATION}" to record this as yours: ')
        sys.stderr.flush()
        if sys.stdin.readline().strip() == CONFIRMATION:
            return "human authority: confirmed on a terminal"
    cause = "--actor-kind human needs --human-note FILE, or a confirmation typed on a terminal"
    raise _bad("human_note_missing", cause, "--human-note")


def _roll(args: argparse.Namespace, out: Out) -> int:
    from core.delegation.store import roll

    place = _place(args)
    return _outcome(place, out, roll(place, _world(), _hold(args)))


# ---------------------------------------------------------------- delegate


def _delegating(args: argparse.Namespace, out: Out) -> int:
    from core.delegation import store

    if args.operation == "observe":
        return _observe(args)
    _needed(args, "task")
    place = _place(args)
    payload = _object(args.json)
    caps = _caps(args)
    if args.operation == "launch":
        _prompt(args, payload)
    asked = store.Delegating(args.task, payload, caps, _actor(args))
    if args.operation != "launch":
        return _outcome(place, out, store.end(place, _world(), args.operation, asked, _hold(args)))
    if args.dry_run:
        return _dry_run(place, asked, out)
    return _outcome(place, out, store.launch(place, _world(), asked, _hold(args)))


def _prompt(args: argparse.Namespace, payload: dict[str, Any]) -> None:
    from core.delegation.canon import digest

    if args.prompt_file is None:
        return
    made = digest(_bytes(args.prompt_file, "--prompt-file"))
    if payload.get("prompt_digest", made) != made:
        raise _bad("usage_contradiction", "--json.prompt_digest is not the digest of --prompt-file", "--prompt-file")
    payload["prompt_digest"] = made


def _dry_run(place: Place, asked: Any, out: Out) -> int:
    from core.delegation.store import dry_run

    made = dry_run(place, _world(), asked)
    if out.as_json:
        checks = [check.as_json() for check in made.checks]
        _print_json({"ok": made.exit == 0, "exit": made.exit, "checks": checks})
        _closed(out)
        return made.exit
    for check in made.checks:
        out.line(f"{'met    ' if check.met else 'NOT MET'} {check.check}" + (f": {check.cause}" if check.cause else ""))
    return made.exit


def _observe(args: argparse.Namespace) -> int:
    from core.delegation.store import observe

    listed, record = observe(_place(args), args.task or None)
    _damage(record)
    _print_json(listed)
    return 0


# ---------------------------------------------------------------- verbs that read


def _inspect(args: argparse.Namespace, out: Out) -> int:
    from core.delegation import reader, view
    from core.delegation.canon import moment

    if args.until is not None and args.until < 0:
        raise _usage("--until must be a seq", "--until", args)
    as_of = moment(args.at) if args.at is not None else SYSTEM.now()
    if as_of is None:
        raise _usage(f"--at {args.at} is no RFC 3339 time with a zone", "--at", args)
    place = _place(args)
    try:
        record = reader.read(place, args.until, keep=not out.as_json)
    except Refused as exc:
        raise _Wrong(1, exc.findings[0]) from None
    _damage(record)
    if out.as_json:
        check = view.Results(place).state if args.until is None else None
        made = view.timeline(record, as_of, args.until, reader.lock_json(place, SYSTEM.now()), check)
        _print_json(made.as_json())
        _closed(out)
        return 0
    torn = "; TORN TAIL" if record.torn is not None else ""
    live = record.chain.live
    out.line(f"plan {live.plan} contract {live.id[:12]} ({record.progress.events} events{torn})")
    for entry in record.entries:
        event = entry.event
        about = event.get("task") or event.get("criterion") or ""
        out.line(f"{event.get('seq', 0)!s:>4} {event.get('type')} {about}".rstrip())
    return 0


def _verify(args: argparse.Namespace, out: Out) -> int:
    from core.delegation.verify import verify

    place = _place(args)
    report = verify(place)
    if args.receipts:
        _receipts(place, report)
    if out.as_json:
        for rule, finding in report.findings:
            if rule in ("journal-damaged", "journal-torn"):
                sys.stderr.write(f"WARNING: {inert(finding.cause)}\n")
        _print_json(report.as_json())
        _closed(out)
        return report.exit
    for rule, finding in report.findings:
        out.line(f"{finding.severity.upper()}: {rule}: {finding.cause}")
    if not report.findings:
        out.line("OK: the plan's record is valid")
    return report.exit


def _receipts(place: Place, report: Report) -> None:
    """The rules `receipt-…`: what the plan must have left, and what it says."""
    from core.governance import plan_boundary

    for finding in plan_boundary.check(place.plan):
        report.take(finding.code.replace("_", "-"), finding)


VERBS: Mapping[str, Verb] = {
    "materialize": _materialize,
    "start": _start,
    "gate": _gate,
    "complete": _complete,
    "signoff": _signoff,
    "append": _append,
    "roll": _roll,
    "delegate": _delegating,
    "inspect": _inspect,
    "verify": _verify,
}


def _run(args: argparse.Namespace, out: Out) -> int:
    wrong = getattr(args, "wrong", None)
    if wrong is not None:
        return _error(out, 2, wrong)
    from core.delegation.writer import Halt

    try:
        return VERBS[args.act](args, out)
    except (_Wrong, Halt) as exc:
        return _error(out, exc.exit, exc.finding, getattr(exc, "events", ()))


COMMANDS = {
    "ledger": LedgerCommand(
        "ledger",
        "a plan's record: contract, journal, gates, delegations",
        arguments,
        _run,
    )
}
