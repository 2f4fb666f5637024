"""The map of the ecosystem as it ships, and who names itself in it (docs/specs/governance.md §7)."""

from __future__ import annotations

import os
import pkgutil
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.files import Root
from core.finding import Finding, Refused, error
from core.governance import rules
from core.governance.hashing import ENVELOPE_SCHEMA
from core.governance.model import GRAPHS, Graph, Membership
from core.governance.store import walk
from core.strict import CAP, load

SHIPPED = "catalog/members.json"
GRAPH = "catalog/ecosystem_graph.json"
OUTSIDE = frozenset({"ponytail", "Memory"})
"""Components whose row of the table keeps them out of the world of receipts."""
PARTS = ("produces", "consumes", "boundaries")
_LABELS = {"produces": "produces", "consumes": "consumes", "boundary events": "boundaries"}
_HEADING = re.compile(r"#{1,2}\s+(.*?)\s*#*\s*")
_LABEL = re.compile(
    r"(?:[-*+]\s+)?[*_]{0,2}(Produces|Consumes|Boundary events)[*_]{0,2}\s*:[*_]{0,2}\s*(.*)", re.IGNORECASE
)
_BULLET = re.compile(r"[-*+]\s+(.*)")
_NAME = re.compile(r"name:\s*(.+)")
_SCHEMA = re.compile(r"[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*\.v[0-9]+(?:/v[0-9]+)*")
_NOTHING = frozenset({"none", "nothing", "-", "n/a"})


def shipped() -> tuple[str, bytes]:
    """(name, bytes) of the map that comes with the product."""
    return SHIPPED, pkgutil.get_data("catalog", "members.json") or b""


def shipped_members() -> Membership:
    """The map that comes with the product. Raises Refused when it was damaged."""
    made, _, found = rules.members(*shipped())
    if made is None:
        raise Refused(*found)
    return made


def shipped_graph() -> Graph:
    """The drawing that comes with the product. Raises Refused when it was damaged."""
    made, _, found = load(GRAPHS, GRAPH, pkgutil.get_data("catalog", "ecosystem_graph.json") or b"")
    if made is None:
        raise Refused(*found)
    return made


@dataclass(frozen=True)
class Declared:
    """What a SKILL.md says about its place. `missing` are the lists that its section lacks."""

    path: str
    component: str
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(part for part in PARTS if part not in self.lists)

    def as_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "component": self.component,
            **{part: list(self.lists.get(part, ())) for part in PARTS},
            "missing": list(self.missing),
        }


@dataclass(frozen=True, slots=True)
class Scan:
    """Members and candidates below a folder, and schemas that the table denies to who names them."""

    members: tuple[Declared, ...]
    candidates: tuple[Declared, ...]
    findings: tuple[Finding, ...]


def scan(folder: Path, table: Membership) -> Scan:
    """Every SKILL.md below a folder against the table. Raises Refused when there is no such folder."""
    members: list[Declared] = []
    candidates: list[Declared] = []
    found: list[Finding] = []
    known = {item.component for item in table.members}
    with Root(folder) as root:
        for path in (item for item in walk(folder, "SKILL.md") if os.path.basename(item) == "SKILL.md"):
            content = root.read(path, CAP)
            if content.data is None:
                found += [content.problem] if content.problem is not None else []
                continue
            declared, joins = read_skill(path, content.data.decode("utf-8", "replace"))
            if declared.component in known:
                members.append(declared)
                found += denied(declared, table)
            elif joins:
                candidates.append(declared)
    return Scan(tuple(members), tuple(candidates), tuple(found))


def read_skill(path: str, text: str) -> tuple[Declared, bool]:
    """(what a SKILL.md says, whether it has an `## Ecosystem` section at all)."""
    lines = text.split("\n")
    component = _component(lines) or Path(path).parent.name
    section = _section(lines)
    return Declared(path, component, _lists(section or [])), section is not None


def _component(lines: list[str]) -> str | None:
    """The name in the front matter."""
    if not lines or lines[0].strip() != "---":
        return None
    for line in lines[1:]:
        if line.strip() == "---":
            break
        match = _NAME.fullmatch(line.strip())
        if match is not None:
            return match[1].strip().strip("\"'") or None
    return None


def _section(lines: list[str]) -> list[str] | None:
    """The lines below `## Ecosystem` up to the next heading of its rank."""
    begun: list[str] | None = None
    for line in lines:
        match = _HEADING.fullmatch(line.rstrip())
        if match is not None:
            if begun is not None:
                return begun
            if line.startswith("## ") and match[1].strip().lower() == "ecosystem":
                begun = []
        elif begun is not None:
            begun.append(line)
    return begun


def _lists(section: list[str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in section:
        text = line.strip()
        label, bullet = _LABEL.fullmatch(text), _BULLET.fullmatch(text)
        if label is not None:
            current = found.setdefault(_LABELS[label[1].lower()], [])
            current += _items(label[2].split(","))
        elif bullet is not None and current is not None:
            current += _items([bullet[1]])
        elif text and current is not None:
            current = None
    return {part: tuple(items) for part, items in found.items()}


def _items(parts: Iterable[str]) -> list[str]:
    stripped = (part.strip().strip("`").strip() for part in parts)
    return [part for part in stripped if part and part.lower().rstrip(".") not in _NOTHING]


def schemas(texts: Iterable[str]) -> list[str]:
    """The versioned schema ids that some texts name; `x.v1/v2` are two."""
    found = []
    for text in texts:
        for match in _SCHEMA.findall(text):
            first, *more = match.split("/")
            stem = first.rpartition(".")[0]
            found += [first, *(f"{stem}.{version}" for version in more)]
    return found


def denied(declared: Declared, table: Membership) -> list[Finding]:
    """Schemas that a known component claims although the table gives them to others, or keeps it out altogether."""
    owners: dict[str, list[str]] = {}
    for item in table.members:
        for schema in schemas(item.emits):
            owners.setdefault(schema, []).append(item.component)
    own = declared.component
    mine = {schema for item in table.members if item.component == own for schema in schemas([item.owns])}
    found = []
    for part in PARTS:
        for schema in dict.fromkeys(schemas(declared.lists.get(part, ()))):
            holders = owners.get(schema, [])
            if own in OUTSIDE and (schema in owners or schema == ENVELOPE_SCHEMA):
                cause = f"{own} stays out of the world of receipts; it may not name {schema}"
            elif part == "produces" and holders and own not in holders and schema not in mine | {ENVELOPE_SCHEMA}:
                cause = f"{own} may not produce {schema}; the map gives it to {', '.join(holders)}"
            else:
                continue
            found.append(error("membership_schema_denied", cause, "collab members table", declared.path))
    return found
