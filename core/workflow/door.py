"""What may be recorded as a packet at all (docs/specs/workflows.md §9). Plain, because agents pay for its import."""

from __future__ import annotations

from typing import Final

SIGNALS: Final = ("SPAWN", "RETURN", "CHECKPOINT", "HANDOFF", "BLOCKED_ON", "ESCALATE", "ERROR")


def door(raw: object) -> str | None:
    """Why this is no packet that may be recorded, or None (`E_PACKET`)."""
    if not isinstance(raw, dict):
        return "a packet is a JSON object"
    if raw.get("signal") not in SIGNALS:
        return f"'signal' must be one of {', '.join(SIGNALS)}"
    sender = raw.get("from")
    if not isinstance(sender, str) or not sender.strip():
        return "'from' must name who sends it"
    given = raw.get("id")
    if given is not None and (not isinstance(given, str) or not given):
        return "'id' must be a text"
    return None
