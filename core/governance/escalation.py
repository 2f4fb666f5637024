"""From a valid status to the exact command that follows it, mechanically (docs/specs/governance.md §6).

Templates are data; what a status says is filled in once, quoted word by word, and never run by us.
"""

from __future__ import annotations

import pkgutil
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.finding import Finding, Refused, error
from core.governance import rules, store
from core.governance.model import COMMANDS, STATUS_SCHEMA, AgentStatus, Each, EscalationCommands
from core.strict import at, fields, loads, parse
from core.triage.model import Catalog

SHIPPED = "catalog/escalation_commands.json"
QUIET = frozenset({"done", "failed", "needs_human"})
_PLACE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\.([0-9]{1,6}))?")


@dataclass(frozen=True, slots=True)
class Compiled:
    """The command that a status asks for, or None, and why."""

    command: str | None
    reason: str
    findings: tuple[Finding, ...] = ()


def templates(name: str, data: bytes) -> EscalationCommands:
    """The templates in a document. Raises Refused."""
    parsed = parse(name, data)
    if parsed.object is None:
        raise Refused(*parsed.findings)
    made, found = fields(COMMANDS, parsed.object, name)
    if made is None:
        raise Refused(*(error("escalation_template_invalid", item.cause, None, item.where) for item in found))
    return made


def shipped() -> tuple[str, bytes]:
    """(name, bytes) of the templates that come with the product."""
    return SHIPPED, pkgutil.get_data("catalog", "escalation_commands.json") or b""


def compile_status(
    name: str, data: bytes, root: Path, catalog: Catalog, commands: tuple[str, bytes] | None = None
) -> Compiled:
    """Validate a status, then say which command follows it. Never raises for what the status is."""
    parsed = parse(name, data)
    codes = {item.code for item in parsed.findings}
    unread = parsed.value is None and "json_too_deep" in codes
    if unread or codes & {"json_malformed", "file_too_large"} or _names_no_number(data, codes):
        return Compiled(None, "unparseable_status_json", parsed.findings)
    value = parsed.value
    if not isinstance(value, dict) or value.get("schema") != STATUS_SCHEMA:
        cause = f"{name} does not say {STATUS_SCHEMA}"
        return Compiled(
            None, "wrong_schema", parsed.findings or (error("field_invalid", cause, None, at(name, ("schema",))),)
        )
    if parsed.object is None:
        return Compiled(None, "invalid_agent_status_json", parsed.findings)
    made, found = rules.status_fields(parsed.object, name, catalog)
    if made is not None:
        found = store.judged(made, name, root, catalog)
    if made is None or any(item.severity == "error" for item in found):
        return Compiled(None, "invalid_agent_status_json", tuple(found))
    return follow(made, found, commands)


def _names_no_number(data: bytes, codes: Collection[str]) -> bool:
    """Whether a document holds the words NaN or Infinity, which are no JSON; 1e999 is JSON, and no legal status."""
    if "json_not_finite" not in codes:
        return False
    try:
        loads(data.decode("utf-8"), constants=False)
    except ValueError:
        return True
    return False


def follow(made: AgentStatus, found: Sequence[Finding], commands: tuple[str, bytes] | None = None) -> Compiled:
    """Which command follows a valid status; `found` are the warnings about it."""
    if made.state == "continuing":
        return Compiled(made.not_done[0].next_command, "continuing_next_command", tuple(found))
    if made.state in QUIET:
        return Compiled(None, f"terminal_or_human_state_{made.state}", tuple(found))
    return _escalate(made, commands or shipped(), found)


def _escalate(made: AgentStatus, commands: tuple[str, bytes], found: Sequence[Finding]) -> Compiled:
    try:
        known = templates(*commands)
        template = known.states.get(made.state)
        if template is None:
            raise _wrong(commands[0], f"there is no template for {made.state}")
        need = getattr(made, made.state)
        payload = _payload(need.model_dump())
        words: list[str] = []
        for item in template.argv:
            if isinstance(item, Each):
                words += _each(item, payload, commands[0])
            else:
                words.append(_fill(item, payload, commands[0]))
    except Refused as exc:
        return Compiled(None, "escalation_template_invalid", (*found, *exc.findings))
    command = " ".join(shlex.quote(word) for word in words)
    if known.directory is not None:
        command = f"cd {shlex.quote(known.directory)} && {command}"
    return Compiled(command, template.reason, tuple(found))


def _wrong(name: str, cause: str) -> Refused:
    return Refused(error("escalation_template_invalid", f"{name}: {cause}", None, at(name, ("states",))))


def _payload(raw: Mapping[str, Any]) -> dict[str, str | list[str]]:
    """The fields of a payload as words: a list of references reads as sentences."""
    return {
        key: [_reference(item) if isinstance(item, dict) else item for item in value]
        if isinstance(value, list)
        else value
        for key, value in raw.items()
    }


def _reference(raw: Mapping[str, Any]) -> str:
    return f"{raw['receipt_id']} ({raw['expected_schema']} from {raw['expected_producer']})"


def _each(item: Each, payload: Mapping[str, str | list[str]], name: str) -> list[str]:
    values = payload.get(item.each)
    if not isinstance(values, list):
        raise _wrong(name, f"{item.each!r} is no list of the payload")
    return [_fill(word, {**payload, "item": value}, name) for value in values for word in item.argv]


def _fill(text: str, payload: Mapping[str, str | list[str]], name: str) -> str:
    """A word with its places filled, once; what was filled in is not looked at again."""

    def one(match: re.Match[str]) -> str:
        if match[0] in ("{{", "}}"):
            return match[0][0]
        named = _NAME.fullmatch(match[1] or "")
        value = payload.get(named[1]) if named is not None else None
        if named is not None and named[2] is not None:
            value = value[int(named[2])] if isinstance(value, list) and int(named[2]) < len(value) else None
        elif named is not None and named[1] == "parent_refs" and isinstance(value, list):
            value = ", ".join(value)
        if not isinstance(value, str):
            raise _wrong(name, f"{match[0]} in {text!r} names nothing in the payload")
        return value

    return _PLACE.sub(one, text)
