"""A packet recorded by an agent: `collab signal` (docs/specs/workflows.md §9).

A process of its own pays for this one, so that nothing of the engine is loaded and only the packets' file is read.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from core import journal
from core.clock import SYSTEM, Clock
from core.files import LINE_CAP, Root
from core.finding import Refused, error
from core.lock import PATIENCE, folder_lock
from core.workflow import times
from core.workflow.door import door
from core.workflow.layout import LOCK, SIGNALS, require_root

PACKET_CAP = LINE_CAP - 16 * 1024
_FILE_CAP = 1 << 32


@dataclass(frozen=True)
class Chance:
    """Everything random. `number` counts entries, runs and packets of this root from 1."""

    token: Callable[[int], str] = lambda number: secrets.token_urlsafe(18)
    suffix: Callable[[int], str] = lambda number: secrets.token_hex(2)
    packet: Callable[[int], str] = lambda number: f"sig-{secrets.token_hex(8)}"


def signal(
    root: Root,
    packet: object,
    clock: Clock = SYSTEM,
    chance: Chance | None = None,
    patience: float = PATIENCE,
) -> tuple[str, str]:
    """Record a packet; returns (`queued` or `duplicate`, its id). Raises Refused (`E_PACKET`, `E_ROOT`).

    A process of its own pays for this one: nothing of the logs is read but the packets' own file.
    """
    require_root(root)
    wrong = door(packet)
    if wrong is not None or not isinstance(packet, dict):
        raise Refused(error("E_PACKET", wrong or "a packet is a JSON object", None, "--json"))
    with folder_lock(root, LOCK, patience):
        made = dict(packet)
        known = root.read(SIGNALS, _FILE_CAP).data or b""
        made["id"] = made.get("id") or (chance or Chance()).packet(known.count(b"\n") + 1)
        if made.get("ts") is None:
            made["ts"] = times.text(times.of(clock.now()))
        try:
            line = journal.encode(made)
        except (ValueError, TypeError, RecursionError) as exc:
            raise Refused(error("E_PACKET", f"the packet is no JSON that can be kept: {exc}", None, "--json")) from None
        if len(line) > PACKET_CAP or journal.too_deep(line):
            raise Refused(error("E_PACKET", f"a packet has at most {PACKET_CAP} bytes and 200 levels", None, "--json"))
        if _has(known, made["id"]):
            return "duplicate", made["id"]
        root.append(SIGNALS, line, own_line=True)
        return "queued", made["id"]


def _has(data: bytes, packet_id: str) -> bool:
    """Whether a line of the file bears that id; only lines that hold its text are parsed."""
    wanted = journal.encode({"id": packet_id})[6:-2]
    if len(wanted) != len(packet_id) + 2:
        # Other writers may spell what is escaped or no ASCII in another way.
        lines = (journal.decode(line)[0] for line in data.split(b"\n"))
        return any(record is not None and record.get("id") == packet_id for record in lines)
    at = data.find(wanted)
    while at >= 0:
        start, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
        record, _ = journal.decode(data[start : end if end >= 0 else len(data)])
        if record is not None and record.get("id") == packet_id:
            return True
        at = data.find(wanted, end if end >= 0 else len(data))
    return False
