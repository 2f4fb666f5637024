"""Canonical form, digests, identities and times of the record layer (docs/specs/delegation.md §1–§3). Pure."""

from __future__ import annotations

import calendar
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from core.files import sha256
from core.journal import too_deep

CHAIN_FIELDS = frozenset({"contract_id", "parent_contract_id", "revision"})
_SURROGATE = re.compile("[\ud800-\udfff]")


def _reject(token: str) -> Any:
    raise ValueError(f"{token} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_reject)


def parse_json(text: str | bytes) -> Any:
    """The value in a JSON text, UTF-8 if given as bytes. Raises ValueError with a short reason."""
    try:
        data = text.encode("utf-8") if isinstance(text, str) else text
        if too_deep(data):
            raise ValueError("nested too deeply")
        return _DECODER.decode(data.decode("utf-8"))
    except UnicodeError:
        raise ValueError("not UTF-8") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError as exc:
        raise ValueError(str(exc).splitlines()[0][:120]) from None


def canonical(value: Any) -> str:
    """Sorted keys, `,` and `:`, non-ASCII as `\\uXXXX`, numbers as Python prints them (§1). Raises ValueError."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def pretty(value: Any) -> bytes:
    """A JSON file as the ledger writes it: sorted keys, 2-space indent, non-ASCII escaped, final newline (§1)."""
    return (json.dumps(value, sort_keys=True, indent=2, allow_nan=False) + "\n").encode("ascii")


def line(event: Mapping[str, Any]) -> bytes:
    """One journal line: canonical form and `\\n` (§3)."""
    return canonical(dict(event)).encode("ascii") + b"\n"


def contract_id(contract: Mapping[str, Any]) -> str:
    """64 hex digits: the canonical contract without its own id (§1)."""
    return sha256(canonical({k: v for k, v in contract.items() if k != "contract_id"}).encode("ascii"))


def substance(contract: Mapping[str, Any]) -> str:
    """What a revision must change: everything but the three fields of the chain (§2)."""
    return canonical({k: v for k, v in contract.items() if k not in CHAIN_FIELDS})


def digest(data: bytes) -> str:
    """`sha256:` and 64 hex digits, as delegations record digests (§3)."""
    return f"sha256:{sha256(data)}"


def tree_fingerprint(head: str, status: str) -> str:
    """32 hex digits over HEAD and `git status --porcelain=v1 -uall`, both trimmed at both ends (§7)."""
    return sha256(f"{head.strip()}\n{status.strip()}".encode("utf-8", "surrogateescape"))[:32]


def legal(text: str, limit: int = 0) -> str:
    """A text that any journal can hold: lone surrogates replaced, cut at `limit` characters when one is given."""
    made = _SURROGATE.sub("\ufffd", text)
    return made[: limit - 1] + "\u2026" if limit and len(made) > limit else made


_STAMP = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt ]([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]+)?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)
_USUAL = ("-", "-", "T", ":", ":", "Z")


def moment(text: object) -> datetime | None:
    """An RFC 3339 time with zone as an aware UTC time, else None. A leap second counts as the one before it."""
    if not isinstance(text, str) or not text.isascii():
        return None
    if (
        len(text) == 20
        and text[10] == "T"
        and text[19] == "Z"
        and text[4] == text[7] == "-"
        and text[13] == text[16] == ":"
    ):
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            pass
    match = _STAMP.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(match[index]) for index in range(1, 7))
    over, minutes = int(match[9] or 0), int(match[10] or 0)
    if not 1 <= month <= 12 or year < 1 or second > 60 or over > 23 or minutes > 59:
        return None
    if not 1 <= day <= calendar.monthrange(year, month)[1] or hour > 23 or minute > 59:
        return None
    shift = timedelta(hours=over, minutes=minutes) * (-1 if match[8] == "-" else 1)
    micro = int(((match[7] or ".0")[1:] + "000000")[:6])
    try:
        return datetime(year, month, day, hour, minute, min(second, 59), micro, UTC) - shift
    except OverflowError:
        return None
