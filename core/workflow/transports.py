"""Agents that are processes: the transport `command` (docs/specs/workflows.md §6).

One process per SPAWN, without a shell, the packet on its stdin, exactly one packet on its stdout. Both are files
below the root, and the file that it writes is locked as long as anything writes to it: so a reply outlives the
engine that started its process, and a process is never started twice.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import threading
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError

from core import journal
from core.clock import SYSTEM, Clock
from core.files import LINE_CAP, Root, Signature, sha256
from core.finding import Finding, Refused, error
from core.workflow import signals_in, templates, times
from core.workflow.door import door
from core.workflow.model import Strict
from core.workflow.turn import Commands

CONFIG = "ambient/agents.toml"
PROCESSES = "ambient/.processes"
GRACE = 2.0


class AgentConfig(Strict):
    """How an agent is reached; `env` are names that are passed on."""

    transport: Literal["file", "command"] = "file"
    argv: tuple[str, ...] = ()
    env: tuple[str, ...] = ()


@dataclass(frozen=True)
class Config:
    """`ambient/agents.toml` as read. With a problem nothing is known of any agent."""

    agents: Mapping[str, AgentConfig]
    problem: Finding | None = None


def read_config(data: bytes) -> Config:
    """The transports of `ambient/agents.toml`."""
    try:
        raw = tomllib.loads(data.decode("utf-8"))
        made = {str(k): AgentConfig.model_validate(v, strict=False) for k, v in dict(raw.get("agents") or {}).items()}
    except (ValueError, TypeError, RecursionError) as exc:
        reason = exc.errors()[0]["msg"] if isinstance(exc, ValidationError) else str(exc)
        return Config({}, error("E_TRANSPORT", f"{CONFIG}: {reason}", None, CONFIG))
    for name, agent in made.items():
        if agent.transport == "command" and not (agent.argv and agent.argv[0].strip()):
            return Config({}, error("E_TRANSPORT", f"{CONFIG}: the agent {name!r} has no argv", None, CONFIG))
    return Config(made)


class Configured:
    """The configuration of a root, read again when it changes."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._known: tuple[Signature | None, Config] = (None, Config({}))

    def get(self) -> Config:
        signature = self._root.signature(CONFIG)
        if signature != self._known[0]:
            data = self._root.read(CONFIG, LINE_CAP).data
            self._known = (signature, Config({}) if data is None else read_config(data))
        return self._known[1]


class NoCommands:
    """The transport of an engine that starts nothing: a one-shot tick.

    `running`: whether a daemon of this root is at work, which then serves the agents that are processes.
    """

    def __init__(self, root: Root, running: Callable[[], bool]) -> None:
        self._config, self._running = Configured(root), running

    def standing(self, agent: str) -> Commands:
        config = self._config.get()
        known = config.agents.get(agent)
        if config.problem is not None:
            return "elsewhere"
        if known is None or known.transport == "file":
            return "none"
        return "elsewhere" if self._running() else "refused"

    @property
    def problems(self) -> list[Finding]:
        problem = self._config.get().problem
        return [] if problem is None else [problem]

    def send(self, packet: Mapping[str, Any]) -> None:
        return

    def poll(self) -> Sequence[Mapping[str, Any]]:
        return ()


def fill_argv(argv: Sequence[str], values: Mapping[str, object]) -> list[str] | None:
    """The arguments with their tokens filled, once; None when a filled one begins with `-` or cannot be passed."""
    made = []
    for text in argv:
        filled = templates.fill(text, values)
        if "\0" in filled or (filled != text and filled.startswith("-")):
            return None
        made.append(filled)
    return made


def one_packet(data: bytes) -> dict[str, Any] | None:
    """The packet that is all of a process's output, or None."""
    record, _ = journal.decode(data.strip())
    return record


def reply_to(spawn: Mapping[str, Any], output: bytes | None, code: int | None) -> dict[str, Any] | None:
    """The packet that a process's end comes to: its own, or ERROR `exit_<n>`; None when not even that is known."""
    packet = None if output is None else one_packet(output)
    if packet is not None and door({**packet, "id": None, "from": spawn["to"]}) is None:
        return {**_reply_head(spawn), "signal": packet["signal"], "payload": packet.get("payload") or {}}
    return None if code is None else error_reply(spawn, f"exit_{code}")


def error_reply(spawn: Mapping[str, Any], cause: str) -> dict[str, Any]:
    """The ERROR that stands for a process without a packet."""
    return {**_reply_head(spawn), "signal": "ERROR", "payload": {"context": cause}}


def _reply_head(spawn: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "v": 1,
        "id": f"{spawn['id']}/reply",
        "in_reply_to": spawn["id"],
        "from": spawn["to"],
        "to": spawn["from"],
    }


class CommandTransport:
    """Starts processes for the agents that are commands, and brings back what they say."""

    def __init__(
        self, root: Root, allowed: bool, clock: Clock = SYSTEM, wake: Callable[[], None] | None = None
    ) -> None:
        self._root, self._allowed, self._clock = root, allowed, clock
        self._wake = wake or (lambda: None)
        self._config = Configured(root)
        self._threads: dict[str, threading.Thread] = {}
        self._closing = threading.Event()
        self._refused: list[dict[str, Any]] = []

    def standing(self, agent: str) -> Commands:
        config = self._config.get()
        if config.problem is not None:
            return "elsewhere"
        known = config.agents.get(agent)
        if known is None or known.transport == "file":
            return "none"
        return "allowed" if self._allowed else "refused"

    @property
    def problems(self) -> list[Finding]:
        problem = self._config.get().problem
        return [] if problem is None else [problem]

    def send(self, packet: Mapping[str, Any]) -> None:
        """Start the process of a SPAWN that has just entered the outbox; every other packet lies there to be read."""
        agent = self._config.get().agents.get(str(packet["to"]))
        if packet["signal"] != "SPAWN" or agent is None or agent.transport != "command" or not self._allowed:
            return
        context = packet["payload"]["context"]
        values = {"item": context["item"], "index": context["index"]}
        values.update(attempt=context["attempt"], run_id=packet["run_id"])
        argv = fill_argv(agent.argv, values)
        if argv is None:
            self._failed(packet, "argument_refused")
            return
        self._start(packet, argv, {name: os.environ[name] for name in agent.env if name in os.environ})

    def _start(self, packet: Mapping[str, Any], argv: list[str], env: dict[str, str]) -> None:
        name = _name(str(packet["id"]))
        about = {"packet": {key: packet[key] for key in ("id", "to", "from", "deadline")}, "pid": None}
        self._root.replace(f"{name}.json", json.dumps(about).encode())
        self._root.replace(f"{name}.in", journal.encode(dict(packet)))
        self._root.replace(f"{name}.out", b"")
        output = self._root.open_lock(f"{name}.out")
        given, _ = self._root.open_read(f"{name}.in")
        try:
            fcntl.flock(output, fcntl.LOCK_EX | fcntl.LOCK_NB)
            process = subprocess.Popen(
                argv,
                cwd=self._root.path,
                env=env,
                stdin=given,
                stdout=output,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as exc:
            self._clear(name)
            self._failed(packet, "exit_127" if isinstance(exc, FileNotFoundError) else "exit_126")
            return
        finally:
            os.close(output)
            os.close(given)
        self._root.replace(f"{name}.json", json.dumps({**about, "pid": process.pid}).encode())
        thread = threading.Thread(target=self._attend, args=(name, process, about["packet"]), daemon=True)
        self._threads[name] = thread
        thread.start()

    def _failed(self, packet: Mapping[str, Any], cause: str) -> None:
        """A process that could not be started; said at the next poll, because the engine holds its lock now."""
        self._refused.append(error_reply(packet, cause))
        self._wake()

    def _attend(self, name: str, process: subprocess.Popen[bytes], spawn: Mapping[str, Any]) -> None:
        """Wait for one process; end its group at the deadline, or when it says too much."""
        deadline = times.read(spawn["deadline"])
        while True:
            try:
                process.wait(timeout=0.5)
                break
            except subprocess.TimeoutExpired:
                late = deadline is not None and times.of(self._clock.now()) >= deadline
                if late or self._closing.is_set() or self._size(name) > LINE_CAP:
                    end_group(process.pid, process)
                    break
        late = deadline is not None and times.of(self._clock.now()) >= deadline
        code = process.returncode
        if (late or self._closing.is_set()) and code < 0:
            # Ended by us: the timeout decides, here or in the next engine.
            self._clear(name)
        else:
            self._finish(name, spawn, 128 - code if code < 0 else code)
        self._threads.pop(name, None)
        self._wake()

    def _size(self, name: str) -> int:
        signature = self._root.signature(f"{name}.out")
        return 0 if signature is None else signature.size

    def _finish(self, name: str, spawn: Mapping[str, Any], code: int | None) -> None:
        output = self._root.read(f"{name}.out", LINE_CAP).data
        try:
            self._reply(spawn, output, code)
        except Refused:
            # What cannot be written now is found by the next look at what lies there.
            return
        self._clear(name)

    def _reply(self, spawn: Mapping[str, Any], output: bytes | None, code: int | None) -> None:
        packet = reply_to(spawn, output, code)
        if packet is None:
            return
        try:
            signals_in.signal(self._root, packet, self._clock)
        except Refused as exc:
            if exc.findings[0].code != "E_PACKET":
                raise
            signals_in.signal(self._root, error_reply(spawn, "output_too_large"), self._clock)

    def _clear(self, name: str) -> None:
        for ending in (".json", ".in", ".out"):
            self._root.remove(f"{name}{ending}")

    def poll(self) -> Sequence[Mapping[str, Any]]:
        """What could not be started. All other replies enter as an agent's own: through `signals_in`."""
        found, self._refused = self._refused, []
        return found

    def adopt(self) -> bool:
        """Take in what processes of an ended engine wrote; end those past their deadline. True while some still run."""
        alive = False
        for entry in self._root.names(PROCESSES):
            name = f"{PROCESSES}/{entry.removesuffix('.json')}"
            if not entry.endswith(".json") or name in self._threads:
                continue
            try:
                about = json.loads(self._root.read(f"{name}.json", LINE_CAP).data or b"")
                spawn, pid = dict(about["packet"]), about["pid"]
                spawn["id"], spawn["to"], spawn["from"]
            except (ValueError, KeyError, TypeError, RecursionError):
                self._clear(name)
                continue
            if self._writes(name):
                alive = True
                deadline = times.read(spawn.get("deadline"))
                if deadline is not None and times.of(self._clock.now()) >= deadline:
                    # The number was read from a file that others may write: it ends nothing but what writes here.
                    if holds(pid, self._root.signature(f"{name}.out")):
                        end_group(pid)
                    self._clear(name)
                continue
            self._finish(name, spawn, None)
        return alive

    def _writes(self, name: str) -> bool:
        """Whether some process still has the output open: then it holds the lock that it was started with."""
        if self._root.signature(f"{name}.out") is None:
            return False
        fd = self._root.open_lock(f"{name}.out")
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(fd)
        return False

    def close(self, patience: float = GRACE) -> None:
        """Give what runs a moment to end by itself, then end it. No reply is made up for it."""
        deadline = time.monotonic() + patience
        for thread in list(self._threads.values()):
            thread.join(max(0.0, deadline - time.monotonic()))
        self._closing.set()
        for thread in list(self._threads.values()):
            thread.join(GRACE * 3)


def _name(packet_id: str) -> str:
    return f"{PROCESSES}/{sha256(packet_id.encode('utf-8', 'surrogatepass'))[:24]}"


def holds(group: Any, output: Signature | None, processes: str = "/proc") -> bool:
    """Whether a process of this group has the output open as its own.

    Where the system does not show that (`processes` is not there), the group must be a session of its own, as ours are.
    """
    if type(group) is not int or not 1 < group < 1 << 31 or output is None or group == os.getpgrp():
        return False
    if not os.path.isdir(f"{processes}/self/fd"):
        try:
            return os.getsid(group) == group
        except OSError:
            return False
    for name in filter(str.isdecimal, os.listdir(processes)):
        try:
            if os.getpgid(int(name)) == group and os.stat(f"{processes}/{name}/fd/1").st_ino == output.inode:
                return True
        except OSError:
            continue
    return False


def end_group(pid: int, process: subprocess.Popen[bytes] | None = None) -> None:
    """End a process group: asked first, forced after a moment."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(pid, number)
        except (ProcessLookupError, PermissionError):
            break
        if process is None:
            time.sleep(0.2)
            continue
        try:
            process.wait(timeout=GRACE)
        except subprocess.TimeoutExpired:
            continue
    if process is not None:
        process.wait()
