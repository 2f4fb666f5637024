"""Packets: what each signal may carry, and what a result means (docs/specs/workflows.md §2)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.workflow.door import SIGNALS
from core.workflow.model import CAUSE_CAP, PAYLOAD, Option, Verdict

CARRIES: Mapping[str, frozenset[str]] = {
    "SPAWN": frozenset({"context"}),
    "RETURN": frozenset({"result"}),
    "CHECKPOINT": frozenset({"context"}),
    "HANDOFF": frozenset({"context", "decision"}),
    "BLOCKED_ON": frozenset({"context"}),
    "ESCALATE": frozenset({"options"}),
    "ERROR": frozenset({"context"}),
}
WORDS: Mapping[str, Verdict] = {
    "success": "success",
    "ok": "success",
    "done": "success",
    "fail": "fail",
    "failed": "fail",
    "partial": "partial",
}
SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
ARG_TYPES = ("string", "integer", "number", "boolean")
OPTIONS_CAP = 50


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet as it came in. `id` is its own or one that its place gives it; `raw` is kept only where it lies."""

    id: str
    sender: str
    signal: str
    in_reply_to: object
    run_id: object
    item_index: object
    attempt: object
    payload: object

    @classmethod
    def read(cls, raw: Mapping[str, Any], fallback_id: str) -> Packet | None:
        """The packet in a record, or None: a packet has a known signal and a sender."""
        signal, sender, given = raw.get("signal"), raw.get("from"), raw.get("id")
        if signal not in SIGNALS or not isinstance(sender, str) or not sender.strip():
            return None
        made_id = given if isinstance(given, str) and given else fallback_id
        return cls(
            made_id,
            sender,
            signal,
            raw.get("in_reply_to"),
            raw.get("run_id"),
            raw.get("item_index"),
            raw.get("attempt"),
            raw.get("payload"),
        )

    def carried(self) -> dict[str, Any] | None:
        """What the payload holds that counts (present and not null), or None when it is more than the table allows."""
        if self.payload is None:
            return {}
        if not isinstance(self.payload, dict):
            return None
        held = {key: value for key, value in self.payload.items() if value is not None}
        return held if held.keys() <= CARRIES[self.signal] & set(PAYLOAD) else None


def cause_text(value: object) -> str | None:
    """The text itself, or the first text among cause, message, reason, summary of a map; at most 500 characters."""
    if isinstance(value, str):
        return value[:CAUSE_CAP]
    if isinstance(value, Mapping):
        for key in ("cause", "message", "reason", "summary"):
            found = value.get(key)
            if isinstance(found, str):
                return found[:CAUSE_CAP]
    return None


def classify(result: object) -> tuple[Verdict, str | None, bool]:
    """(verdict, cause, whether the agent gave it) of a RETURN; never success by default."""
    word = result.get("status") if isinstance(result, Mapping) else result
    verdict = WORDS.get(word) if isinstance(word, str) else None
    if verdict is None:
        return "error", "unclassifiable_result", False
    if verdict == "success" or not isinstance(result, Mapping):
        return verdict, None, True
    return verdict, cause_text(result), True


def tests_verdict(result: object) -> str | None:
    """The gate `0-failures`: None when the tests of a success are clean, else the cause of its failure."""
    tests = result.get("tests") if isinstance(result, Mapping) else None
    failed = tests.get("failed") if isinstance(tests, Mapping) else None
    if failed is None:
        return "tests_missing"
    return None if type(failed) in (int, float) and failed == 0 else "tests_failed"


def files_modified(result: object) -> list[object]:
    """What a RETURN says it modified."""
    found = result.get("files_modified") if isinstance(result, Mapping) else None
    if found is None:
        return []
    return list(found) if isinstance(found, list) else [found]


def read_options(value: object) -> list[Option] | None:
    """The options of an ESCALATE (maybe none), or None when they are not what options may be."""
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > OPTIONS_CAP:
        return None
    made: list[Option] = []
    for item in value:
        option = _option(item)
        if option is None or any(known.id == option.id for known in made):
            return None
        made.append(option)
    return made


def _option(value: object) -> Option | None:
    raw: Mapping[str, Any] = {"id": value} if isinstance(value, str) else value if isinstance(value, dict) else {}
    name = raw.get("id")
    if not isinstance(name, str) or SLUG.fullmatch(name) is None:
        return None
    schema = raw.get("args_schema")
    if schema is not None and (
        not isinstance(schema, dict) or any(not isinstance(k, str) or v not in ARG_TYPES for k, v in schema.items())
    ):
        return None
    title, effect = raw.get("title"), raw.get("effect")
    return Option(
        id=name,
        title=title[:CAUSE_CAP] if isinstance(title, str) and title.strip() else name,
        effect=effect[:CAUSE_CAP] if isinstance(effect, str) and effect.strip() else "a new attempt with this choice",
        args_schema=schema or None,
        recommended=raw.get("recommended") is True,
    )


def check_args(args: object, schema: Mapping[str, str] | None) -> str | None:
    """Why args do not fit an option's schema, or None; types are kept, never converted."""
    if args is None:
        return None
    if not isinstance(args, dict):
        return "args must be an object"
    types: Mapping[str, tuple[type, ...]] = {
        "string": (str,),
        "integer": (int,),
        "number": (int, float),
        "boolean": (bool,),
    }
    for name, value in args.items():
        wanted = (schema or {}).get(name)
        if wanted is None:
            return f"the option has no argument {name!r}"
        if type(value) not in types[wanted]:
            return f"{name!r} must be a {wanted}"
    return None
