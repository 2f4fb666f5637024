"""Projections for people: report of a status, table and graph of the members (docs/specs/governance.md §6, §7)."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from core.clock import parse
from core.files import sha256
from core.finding import Finding, errors
from core.governance.model import AgentStatus, Edge, Graph, Membership
from core.governance.store import Kept, Known, Parent, Receipt, resolve
from core.sanitize import inert

if TYPE_CHECKING:
    from core.inbox import InboxItem

HEADER = ("| Component | Owns | Emits | Consumes | MUST |", "| --- | --- | --- | --- | --- |")


def report(made: AgentStatus) -> str:
    """A valid status as lines; every value is inert and stays on its own line."""
    lines = ["Status report", f"- Goal: {inert(made.goal)}", f"- State: {made.state}"]
    lines += [f"- Changed: {inert(item)}" for item in made.changed]
    lines += [f"- Verified: {inert(item.command)} -> {inert(item.result)}" for item in made.verified]
    lines += [f"- Proof: {inert(item)}" for item in made.proof]
    lines += [f"- Not done: {inert(item.item)} -> {inert(item.next_command)}" for item in made.not_done]
    if not made.not_done:
        lines.append("- Not done: none")
    if made.needs_human is not None:
        lines.append(f"- Needs human: {inert(made.needs_human.action)} ({inert(made.needs_human.reason)})")
    if made.failure is not None:
        lines.append(f"- Failure: {inert(made.failure.triage.code)}: {inert(made.failure.triage.cause)}")
    return _joined(lines)


def _joined(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def table(made: Membership) -> str:
    """The members as a Markdown table, a row each."""
    rows = [(item.component, item.owns, _list(item.emits), _list(item.consumes), item.must) for item in made.members]
    return _joined([*HEADER, *("| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows)])


def _list(items: list[str]) -> str:
    return ", ".join(items) or "none"


def _cell(text: str) -> str:
    # What ends the last line is a line break too.
    return " ".join(f"{text}\v".splitlines()).replace("|", "\\|")


def edges_of(graph: Graph, node: str) -> list[Edge]:
    """The edges that leave a component."""
    return [edge for edge in graph.edges if edge.from_ == node]


def tree(graph: Graph) -> str:
    """The ecosystem as indented text: group, component, what leaves it."""
    lines = []
    for group in graph.groups:
        lines.append(group.name)
        for node in group.nodes:
            lines.append(f"  {node}")
            leaving = edges_of(graph, node)
            for number, edge in enumerate(leaving):
                branch = "└" if number == len(leaving) - 1 else "├"
                arrow = "─▶" if edge.style == "solid" else "┄▷"
                lines.append(f"    {branch}{arrow} {edge.to}" + (f"  {edge.label}" if edge.label else ""))
    return _joined(lines)


def mermaid(graph: Graph) -> str:
    """The ecosystem for a Mermaid renderer."""
    lines = ["flowchart TB"]
    for group in graph.groups:
        lines.append(f'  subgraph group-{group.name}["{group.name}"]')
        lines += [f'    {node}["{node}"]' for node in group.nodes]
        lines.append("  end")
    for edge in graph.edges:
        arrow = "-->" if edge.style == "solid" else "-.->"
        label = f'|"{edge.label}"|' if edge.label else ""
        lines.append(f"  {edge.from_} {arrow}{label} {edge.to}")
    return _joined(lines)


Level = Literal["trusted", "untrusted", "invalid"]


@dataclass(frozen=True, slots=True)
class Trust:
    """A receipt of the workspace and how far it can be trusted: valid by itself, its references followed."""

    receipt: Receipt
    level: Level
    parents: tuple[Parent, ...]
    findings: tuple[Finding, ...]

    @property
    def why(self) -> str:
        """Why it is not trusted, or what is worth knowing; empty when there is nothing to say."""
        worst = next(iter(errors(self.findings)), next(iter(self.findings), None))
        return worst.cause if worst is not None else ""


def trusts(found: Sequence[Receipt]) -> list[Trust]:
    """Every receipt with its trust, in the order of the files."""
    known = Known(found)
    return [_trust(item, known) for item in found]


def _trust(item: Receipt, found: Known) -> Trust:
    if item.envelope is None:
        return Trust(item, "invalid", (), item.findings)
    resolved = resolve(item.envelope, item.file, item.digest, found)
    return Trust(item, "trusted" if resolved.trusted else "untrusted", resolved.parents, resolved.findings)


def inbox_items(root: Path, known: Sequence[Trust]) -> list[InboxItem]:
    """Receipts below `<root>/receipts` that nobody should trust, with the command that says why."""
    token = sha256(str(root).encode("utf-8", "surrogateescape"))[:12]
    return [_inbox_item(root, token, item) for item in known if item.level != "trusted"]


def _inbox_item(root: Path, token: str, item: Trust) -> InboxItem:
    from core.inbox import InboxItem

    made, folder = item.receipt.envelope, root / "receipts"
    file, below, at = (shlex.quote(str(path)) for path in (folder / item.receipt.file, folder, root))
    return InboxItem(
        f"rec-{token}-{item.receipt.digest[-12:]}",
        "receipt",
        "know",
        root,
        str(item.receipt.id or item.receipt.file),
        made.producer if made is not None else "",
        f"{item.level}: {item.why}",
        parse(made.emitted_at) if made is not None else None,
        None,
        "see why it is not trusted",
        f"collab envelope resolve {file} --receipts {below} --root {at}",
        f"receipt:{item.level}",
    )


def status_items(root: Path, known: Sequence[Kept]) -> list[InboxItem]:
    """What statuses below `<root>/receipts` ask of a person: valid ones that are `needs_human`, settled by doing it.

    An item goes when the file is replaced by a later status or taken away.
    """
    from core.inbox import InboxItem

    token = sha256(str(root).encode("utf-8", "surrogateescape"))[:12]
    made = []
    for item in known:
        if item.made is None or item.made.needs_human is None:
            continue
        asked = item.made.needs_human
        file, at = (shlex.quote(str(path)) for path in (root / "receipts" / item.file, root))
        made.append(
            InboxItem(
                f"sta-{token}-{item.digest[-12:]}",
                "status",
                "unblock",
                root,
                item.file,
                item.made.goal,
                asked.reason,
                item.since,
                None,
                asked.action,
                f"collab status render {file} --root {at}",
                f"status:{asked.action}",
            )
        )
    return made


@dataclass(frozen=True, slots=True)
class Branch:
    """One line of a receipt's ancestry. `trust` is None when no single receipt has the id; `again`: shown above."""

    depth: int
    receipt_id: str
    trust: Trust | None
    again: bool = False


def ancestry(receipt_id: str, known: Sequence[Trust]) -> list[Branch]:
    """A receipt and its parents as an indented tree: the way from a closure to its proofs, each receipt once."""
    by_id: dict[str, list[Trust]] = {}
    for item in known:
        if isinstance(item.receipt.id, str):
            by_id.setdefault(item.receipt.id, []).append(item)
    return _branches(receipt_id, by_id)


def _branches(top: str, by_id: Mapping[str, Sequence[Trust]]) -> list[Branch]:
    lines: list[Branch] = []
    shown: set[str] = set()
    waiting = [(0, top)]
    while waiting:
        depth, receipt_id = waiting.pop()
        named = by_id.get(receipt_id, ())
        trust = named[0] if len(named) == 1 else None
        lines.append(Branch(depth, receipt_id, trust, receipt_id in shown))
        if trust is not None and receipt_id not in shown:
            waiting += [(depth + 1, parent) for parent in reversed(trust.receipt.parents)]
        shown.add(receipt_id)
    return lines
