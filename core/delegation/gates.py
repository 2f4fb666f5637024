"""Gates: the ledger itself runs a command, and only so is `observed` minted (docs/specs/delegation.md §5).

A command given as a string goes to the shell, an array runs as it stands. The environment is handed on to the command
and, hashed together with everything else, decides about reuse; none of its values is written anywhere.
"""

from __future__ import annotations

import glob
import hashlib
import json
import math
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core import journal
from core.delegation import canon, rules
from core.delegation.contract import head
from core.delegation.git import Git
from core.delegation.model import EVIDENCE, GATES, JOURNAL, LOCK, TaskV6
from core.delegation.place import Place, hash_file
from core.delegation.process import NotFound, Ran, run
from core.delegation.progress import window
from core.delegation.rules import Draft
from core.delegation.store import command as ledger_command
from core.delegation.writer import PLAIN, USAGE, Halt, Hold, World, Writer, halt, writing
from core.finding import Finding, Refused, error

TIMEOUT: Final = 600
SLUG_CAP: Final = 40
_RENEW_SECONDS: Final = 60.0
_VOLATILE: Final = frozenset({"_", "SHLVL", "PWD", "OLDPWD", "COLUMNS", "LINES", "WINDOWID"})
_SKIPPED: Final = frozenset({".git", "__pycache__", LOCK})

Command = str | list[str]


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate as asked for: its seconds, whether an equal earlier run may answer, a free word for the fingerprint."""

    task: str
    criterion: str
    command: Command
    timeout: float = TIMEOUT
    reuse: bool = True
    selection: str = ""


@dataclass(frozen=True)
class Gated:
    """How a gate ended. `exit` is 0 if the command's exit code was; `events` are those just written."""

    exit: int
    message: str
    reused: bool
    exit_code: int
    seq: int
    log: str
    events: tuple[Mapping[str, Any], ...]
    finding: Finding | None = None

    def as_json(self) -> dict[str, Any]:
        return {"reused": self.reused, "exit_code": self.exit_code, "seq": self.seq, "log": self.log}


def parse_command(text: str) -> Command:
    """A JSON string (for the shell) or array of strings (argv), not empty. Raises Halt (2)."""
    try:
        value = canon.parse_json(text)
    except ValueError:
        value = None
    if isinstance(value, str) and value.strip():
        return value
    if isinstance(value, list) and value and all(isinstance(word, str) and word.strip() for word in value):
        return value
    cause = "--json must be a JSON string (run by the shell) or a JSON array of words (run as it stands), not empty"
    raise Halt(USAGE, error("usage_wrong", cause, "collab ledger gate --help", "--json"))


def joined(command: Command) -> str:
    """The command as it is recorded."""
    return command if isinstance(command, str) else " ".join(command)


def gate(
    place: Place,
    world: World,
    asked: Gate,
    hold: Hold = PLAIN,
    *,
    on_output: Callable[[bytes], None] | None = None,
    cancel: threading.Event | None = None,
) -> Gated:
    """Run a gate and record what was observed, or answer with an equal run of the same window. Raises Halt.

    `on_output` gets the output as it comes, `cancel` ends the command; a cancelled gate is recorded nowhere.
    """
    with writing(place, world, hold) as writer:
        task = _allowed(writer, asked)
        mark = fingerprint(place, world.environ, task, asked)
        known = _reusable(writer, asked, mark) if asked.reuse else None
        if known is not None:
            code, seq, log = known["exit_code"], known["seq"], known["log"]
            finding = None if code == 0 else _failed(place, asked, code, log)
            return Gated(
                min(abs(code), 1), f"REUSED: exit {code}", True, code, seq, log, tuple(writer.written), finding
            )
        writer.check_position()
        ran = _run(place, world, writer, asked, on_output, cancel)
        log = f"{GATES}/{asked.task}/{writer.next_seq:03d}-{_slug(asked.command)}.log"
        writer.root.replace(log, _log_text(asked.command, ran))
        event = writer.commit(_draft(writer, asked, ran.exit_code, log))[0]
        _remember(writer, asked, mark, event)
        message = f"RAN: exit {ran.exit_code}, seq {event['seq']}, log {log}"
        finding = None if ran.exit_code == 0 else _failed(place, asked, ran.exit_code, log)
        code = ran.exit_code
        return Gated(min(abs(code), 1), message, False, code, event["seq"], log, tuple(writer.written), finding)


def _failed(place: Place, asked: Gate, code: int, log: str) -> Finding:
    cause = f"the gate of {asked.criterion} ended with {code}; its output is in {log}"
    again = asked.command if isinstance(asked.command, str) else list(asked.command)
    words = ("gate", "--task", asked.task, "--criterion", asked.criterion, "--no-reuse", "--json", json.dumps(again))
    return error("gate_failed", cause, ledger_command(place, *words), log)


def _allowed(writer: Writer, asked: Gate) -> TaskV6:
    """Everything that is an error before anything runs (§5). Raises Halt."""
    contract = writer.contract
    rules.known_task(contract, asked.task)
    if not asked.criterion:
        raise halt("criterion_unknown", "--criterion must name a criterion of the task's gate_intent", "--criterion")
    if asked.criterion not in contract.intents(asked.task):
        cause = f"{rules.shown(asked.criterion)} is not in the gate_intent of {asked.task}"
        raise halt("criterion_unknown", cause, "--criterion")
    if asked.task not in writer.progress.starts:
        begin = ledger_command(writer.place, "start", "--task", asked.task)
        raise halt("task_not_started", f"{asked.task} has not started", "--task", begin)
    word = head(asked.command)
    if word not in contract.document.scope.allowed_command_classes:
        raise halt("command_not_allowed", f"{rules.shown(word)} is no allowed command class of the contract", "--json")
    if "\0" in joined(asked.command):
        raise halt("text_has_nul", "--json holds a NUL character", "--json")
    if not math.isfinite(asked.timeout) or asked.timeout <= 0:
        raise halt("event_invalid", "--timeout must be above 0", "--timeout")
    return contract.tasks[asked.task]


def _run(
    place: Place,
    world: World,
    writer: Writer,
    asked: Gate,
    on_output: Callable[[bytes], None] | None,
    cancel: threading.Event | None,
) -> Ran:
    argv = ["/bin/sh", "-c", asked.command] if isinstance(asked.command, str) else asked.command
    renewed = [time.monotonic()]

    def keep_lock() -> None:
        if time.monotonic() - renewed[0] >= _RENEW_SECONDS:
            renewed[0] = time.monotonic()
            writer.lock.renew()

    try:
        ran = run(argv, place.repo, world.environ, asked.timeout, on_output=on_output, cancel=cancel, on_turn=keep_lock)
    except NotFound as exc:
        raise halt("command_missing", str(exc), "--json") from None
    if ran.cancelled:
        raise halt("gate_cancelled", "the gate was cancelled; nothing is recorded")
    return ran


def _slug(command: Command) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", joined(command))[:SLUG_CAP].strip("-.") or "gate"


def _log_text(command: Command, ran: Ran) -> bytes:
    ended = f"exit {ran.exit_code}" + (", time was up" if ran.timed_out else "")
    output = ran.output if not ran.output or ran.output.endswith(b"\n") else ran.output + b"\n"
    return f"$ {joined(command)}\n".encode("utf-8", "backslashreplace") + output + f"--- {ended} ---\n".encode()


def _draft(writer: Writer, asked: Gate, code: int, log: str) -> Draft:
    seconds = int(asked.timeout) if asked.timeout == int(asked.timeout) else asked.timeout
    body = {
        "command": joined(asked.command),
        "cwd": str(writer.place.repo),
        "timeout_seconds": seconds,
        "exit_code": code,
        "task": asked.task,
        "criterion": asked.criterion,
        "trust": "observed",
        "evidence_path": log,
    }
    return rules.own(writer.contract, "gate_run", body)


# ---------------------------------------------------------------- reuse


def _remember(writer: Writer, asked: Gate, mark: str, event: Mapping[str, Any]) -> None:
    """The cache is a convenience: a run that cannot be remembered has happened all the same."""
    said = {
        "fingerprint": mark,
        "task": asked.task,
        "criterion": asked.criterion,
        "exit_code": event["exit_code"],
        "log": event["evidence_path"],
        "seq": event["seq"],
        "ts": event["ts"],
    }
    try:
        writer.root.append(EVIDENCE, canon.line(said), own_line=True)
    except Refused:
        pass


def _reusable(writer: Writer, asked: Gate, mark: str) -> Mapping[str, Any] | None:
    """The latest equal run inside the evidence window, if the journal really holds it."""
    floor = window(writer.progress, asked.task, asked.criterion)
    runs = {
        entry.event["seq"]: entry.event
        for entry in writer.record.entries
        if entry.event.get("type") == "gate_run" and type(entry.event.get("seq")) is int
    }
    wanted = (mark, asked.task, asked.criterion)
    for item in reversed(journal.read(writer.root, EVIDENCE).lines):
        said = item.record or {}
        seq = said.get("seq")
        if (said.get("fingerprint"), said.get("task"), said.get("criterion")) != wanted or type(seq) is not int:
            continue
        event = runs.get(seq)
        if event is None or seq < floor or event.get("trust") != "observed":
            continue
        same = (event.get("task"), event.get("criterion"), event.get("exit_code"), event.get("evidence_path"))
        if same == (asked.task, asked.criterion, said.get("exit_code"), said.get("log")):
            return said
    return None


def fingerprint(place: Place, environ: Mapping[str, str], task: TaskV6, asked: Gate) -> str:
    """64 hex digits over what a run depends on: command, selection, environment, touched surface, HEAD, all changes."""
    git = Git(place.repo, environ)
    known = {name: value for name, value in environ.items() if name not in _VOLATILE}
    made = {
        "command": asked.command,
        "selection": asked.selection,
        "environment": known,
        "surface": {name: list(_surface(place.repo, name)) for name in task.touched_surface},
        "head": git.head(),
        "changed": list(_changed(place, git)),
    }
    text = json.dumps(made, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _changed(place: Place, git: Git) -> Iterator[tuple[str, str, str]]:
    """What git calls changed, with its content; the ledger's own files change with every gate and do not count."""
    top = git.top()
    if top is None:
        return
    plan = os.path.relpath(os.path.realpath(place.plan), os.path.realpath(top))
    own = tuple(f"{plan}/{name}" for name in (JOURNAL, EVIDENCE, f"{GATES}/", LOCK, "journal-archive-"))
    for state, path in git.changed():
        if not path.startswith(own):
            yield state, path, _content(top / path)


def _surface(repo: Path, name: str) -> Iterator[tuple[str, str]]:
    """(path, content) of a touched surface: a file, all of a folder, or what a pattern matches; never outside."""
    root = os.path.realpath(repo)
    pattern = os.path.join(root, name)
    found = [pattern] if os.path.lexists(pattern) else sorted(glob.glob(pattern, recursive=True))
    for path in found:
        real = os.path.realpath(path)
        if os.path.commonpath([real, root]) != root:
            yield os.path.relpath(path, root), "outside"
            continue
        if not os.path.isdir(path) or os.path.islink(path):
            yield os.path.relpath(path, root), _content(Path(path))
            continue
        for folder, folders, files in os.walk(path):
            folders[:] = sorted(one for one in folders if one not in _SKIPPED)
            for one in sorted([*files, *(inner for inner in folders if os.path.islink(os.path.join(folder, inner)))]):
                inside = os.path.join(folder, one)
                yield os.path.relpath(inside, root), _content(Path(inside))


def _content(path: Path) -> str:
    try:
        if path.is_symlink():
            return f"link {os.readlink(path)}"
        if path.is_dir():
            return "folder"
        if not path.exists():
            return "gone"
    except (OSError, ValueError):
        return "unreadable"
    return hash_file(path.parent, path.name) or "unreadable"
