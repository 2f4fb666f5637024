"""Hash strings, without any model behind them (docs/specs/governance.md §1, §8)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from core.files import sha256

ENVELOPE_SCHEMA: Final = "pi.receipt_envelope.v1"


def hash_string(data: bytes) -> str:
    """`sha256:` and the digest."""
    return f"sha256:{sha256(data)}"


def goal_hash(goal_id: str, outcome: str) -> str:
    """The hash of a goal: over its id, a line feed, its outcome."""
    return hash_string(f"{goal_id}\n{outcome}".encode("utf-8", "surrogatepass"))


def canonical_hash(document: Mapping[str, Any]) -> str:
    """The hash over a whole document without its `goal_hash`: keys sorted, no spaces, non-ASCII kept, UTF-8.

    Raises UnicodeEncodeError when a text in it holds a lone surrogate.
    """
    kept = {key: value for key, value in document.items() if key != "goal_hash"}
    text = json.dumps(kept, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hash_string(text.encode("utf-8"))
