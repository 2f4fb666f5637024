"""How an assistant's turn ended: the last status in its text, and the work that a ledger still holds open.

Only a closed fenced block is read; prose never decides (docs/specs/governance.md §5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.finding import Finding, Refused, error, errors
from core.governance import rules, store
from core.governance.model import STATUS_SCHEMA
from core.journal import too_deep
from core.strict import at, loads, parse, read
from core.triage.model import Catalog

CHECK_SCHEMA = "lazy_report_shame.report_check.v2"
LEDGER_SCHEMA = "lazy_report_shame.continuation_guard.v1"
CHECKER_VERSION = "collab-1"
CLOSED = frozenset({"closed", "done", "complete", "completed", "merged"})
PASSED = frozenset({"pass", "passed", "ok", "complete", "completed", "closed"})
WORK = "agent-work"
HELD = frozenset(
    {
        "agent-active",
        "agent-blocked",
        "maintainer-active",
        "maintainer-blocked",
        "needs-human",
        "next:human",
        "status:deferred",
    }
)
_OPENERS = {"```json": "```", "~~~json": "~~~"}


@dataclass(frozen=True, slots=True)
class Block:
    """A closed fenced block: the text's lines, and the numbers of its opening and its closing one."""

    lines: Sequence[str] = field(repr=False)
    opened: int
    closed: int

    @property
    def body(self) -> str:
        return "\n".join(self.lines[self.opened + 1 : self.closed])

    @property
    def rest(self) -> str:
        """The text after the closing line."""
        return "\n".join(self.lines[self.closed + 1 :])


def blocks(text: str) -> list[Block]:
    """The closed `json` blocks of a text in order. A block that is never closed runs to the end and is none."""
    lines = text.split("\n")
    found, opened, marker = [], -1, ""
    for number, line in enumerate(lines):
        bare = line.strip()
        if opened < 0:
            marker = _OPENERS.get(bare, "")
            opened = number if marker else -1
        elif bare == marker:
            found.append(Block(lines, opened, number))
            opened = -1
    return found


def last_status(text: str) -> Block | None:
    """The last closed block that parses and says it is a status, valid or not."""
    for block in reversed(blocks(text)):
        try:
            value, _ = loads(block.body, constants=False)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and value.get("schema") == STATUS_SCHEMA:
            return block
    return None


@dataclass(frozen=True, slots=True)
class Ledger:
    """Open work, as a ledger tells it: why a done is not accepted, and the command that goes on."""

    active: bool
    failures: tuple[str, ...] = ()
    next_command: str | None = None
    open: tuple[str, ...] = ()


def read_ledger(name: str, data: bytes) -> Ledger:
    """A continuation ledger; unknown keys are left alone. Raises Refused (`continuation_ledger_invalid`)."""
    raw = None if too_deep(data) else store.lenient(data)
    if raw is None:
        raise _invalid(at(name), f"{name} is no JSON object")
    if raw.get("schema") != LEDGER_SCHEMA:
        raise _invalid(at(name, ("schema",)), f"{name} must say {LEDGER_SCHEMA}")
    tickets = _objects(raw, "tickets", name)
    gates = _objects(raw, "gates", name)
    labels = [_labels(ticket, name, number) for number, ticket in enumerate(tickets)]
    steps = _list(raw, "obvious_next_steps", at(name, ("obvious_next_steps",)))
    if raw.get("active") is False:
        return Ledger(False)
    work = [ticket for ticket, named in zip(tickets, labels, strict=True) if _open_ticket(ticket, named)]
    unmet = [gate for gate in gates if _word(gate.get("status")) not in PASSED]
    said = [step for step in steps if (step.strip() if isinstance(step, str) else step)]
    top = _command(raw)
    failures = []
    if work:
        failures.append("open_relevant_agent_work_ticket")
    if unmet:
        failures.append("unresolved_acceptance_gate")
    if said or top:
        failures.append("obvious_next_step_not_enacted")
    commands = [top, *map(_command, work), *map(_command, unmet), *(step for step in said if isinstance(step, str))]
    named = [*(_name(item, "ref", "a ticket") for item in work), *(_name(item, "id", "a gate") for item in unmet)]
    return Ledger(True, tuple(failures), next((item for item in commands if item), None), tuple(named))


def _invalid(where: str, cause: str) -> Refused:
    return Refused(error("continuation_ledger_invalid", cause, None, where))


def _list(raw: Mapping[str, Any], key: str, where: str) -> list[Any]:
    value = raw.get(key, [])
    if not isinstance(value, list):
        raise _invalid(where, f"{key} must be a list")
    return value


def _objects(raw: Mapping[str, Any], key: str, name: str) -> list[dict[str, Any]]:
    value = _list(raw, key, at(name, (key,)))
    for number, item in enumerate(value):
        if not isinstance(item, dict):
            raise _invalid(at(name, (key, number)), f"each of the {key} must be an object")
    return value


def _labels(ticket: Mapping[str, Any], name: str, number: int) -> frozenset[str]:
    items = _list(ticket, "labels", at(name, ("tickets", number, "labels")))
    return frozenset(_word(item.get("name") if isinstance(item, dict) else item) for item in items)


def _word(value: object) -> str:
    return value.strip().lower() if isinstance(value, str) else ""


def _command(item: Mapping[str, Any]) -> str | None:
    value = item.get("next_command")
    return value if isinstance(value, str) and value.strip() else None


def _name(item: Mapping[str, Any], key: str, otherwise: str) -> str:
    value = item.get(key)
    return value if isinstance(value, str) and value.strip() else otherwise


def _open_ticket(ticket: Mapping[str, Any], labels: frozenset[str]) -> bool:
    if _word(ticket.get("state")) in CLOSED or ticket.get("blocked_by"):
        return False
    return WORK in labels and not labels & HELD


@dataclass(frozen=True, slots=True)
class Guard:
    """What makes a turn one that must end in a status."""

    mutating: bool = False
    force: bool = False
    strict: bool = False

    @property
    def on(self) -> bool:
        return self.mutating or self.force or self.strict


@dataclass(frozen=True)
class Verdict:
    """What the check of a turn says; `as_json` is the report without its findings."""

    decision: str
    reason_codes: tuple[str, ...]
    features: Mapping[str, Any]
    findings: tuple[Finding, ...] = ()
    footer_failures: tuple[str, ...] = field(default=())

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": CHECK_SCHEMA,
            "checker_version": CHECKER_VERSION,
            "decision": self.decision,
            "reason_codes": list(self.reason_codes),
            "features": dict(self.features),
            "footer_failures": list(self.footer_failures),
        }


def check(
    text: str,
    name: str,
    guard: Guard,
    root: Path,
    catalog: Catalog | Refused,
    ledger: Ledger | Refused | None = None,
) -> Verdict:
    """Judge an assistant's text: the first situation of the table that applies. Reads the proofs of a done."""
    features: dict[str, Any] = {
        "force_status": guard.force,
        "mutating_turn": guard.mutating,
        "strict_status": guard.strict,
    }
    if isinstance(catalog, Refused) or isinstance(ledger, Refused):
        return _unusable(features, catalog, ledger)
    block = last_status(text)
    if block is None:
        if not (guard.on or (ledger is not None and ledger.active)):
            return Verdict("pass", ("no_status_required_non_mutating_turn",), features)
        return _reject("missing_agent_status_json", "the text holds no closed status block", name, features)
    parsed = parse(name, block.body.encode("utf-8", "surrogatepass"))
    if any(item.code == "json_duplicate_key" for item in parsed.findings):
        return Verdict("reject", ("duplicate_agent_status_key",), features, parsed.findings)
    if parsed.object is None:
        return Verdict("reject", ("invalid_agent_status_json",), features, parsed.findings)
    made, found = rules.status_fields(parsed.object, name, catalog)
    if made is not None:
        found = store.judged(made, name, root, catalog)
    if made is None or errors(found):
        said = {item.code for item in found}
        named = [code for code in ("proof_path_missing", "verified_not_backed_by_proof") if code in said]
        return Verdict("reject", (*named, "invalid_agent_status_json")[:1], features, tuple(found))
    features |= {
        "state": made.state,
        "status": parsed.object,
        "ignored_trailing_content_chars": len(block.rest.strip()),
    }
    if made.state == "done" and ledger is not None and ledger.failures:
        return _unresolved(ledger, name, features, found)
    return Verdict("pass", ("valid_agent_status_json",), features, tuple(found))


def _unusable(features: Mapping[str, Any], catalog: Catalog | Refused, ledger: Ledger | Refused | None) -> Verdict:
    codes, found = [], []
    if isinstance(catalog, Refused):
        codes.append("catalog_invalid")
        cause = "the catalogue in use is not valid, so no code can be judged"
        found += [error("catalog_invalid", cause, "collab triage catalog"), *catalog.findings]
    if isinstance(ledger, Refused):
        codes.append("continuation_ledger_invalid")
        found += ledger.findings
    return Verdict("error", tuple(codes), features, tuple(found))


def _reject(code: str, cause: str, name: str, features: Mapping[str, Any]) -> Verdict:
    return Verdict("reject", (code,), features, (error(code, cause, None, at(name)),))


def _unresolved(ledger: Ledger, name: str, features: dict[str, Any], found: Sequence[Finding]) -> Verdict:
    code = "continuation_guard_unresolved_work"
    left = ", ".join(ledger.open) or "a next step"
    cause = f"the turn says done while work is open: {left}"
    stopped = error(code, cause, ledger.next_command, at(name, ("state",)))
    features["next_command"] = ledger.next_command
    return Verdict("reject", (code,), features, (*found, stopped), ledger.failures)


def ledger_of(name: str, data: bytes | None = None) -> Ledger | Refused:
    """The ledger in a file that the caller named, or why it is none."""
    try:
        return read_ledger(name, data if data is not None else read(name))
    except Refused as exc:
        if exc.findings[0].code == "continuation_ledger_invalid":
            return exc
        return _invalid(name, exc.findings[0].cause)
