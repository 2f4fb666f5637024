"""What makes a contract valid beyond its fields, a draft fit, and a chain whole (docs/specs/delegation.md §2).

Pure: documents come in as read, faults go out as sentences that name the field.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import ValidationError

from core.delegation import canon
from core.delegation.model import CONTRACT_URLS, CONTRACTS, Criterion, Document, TaskV6, fault


@dataclass(frozen=True)
class Revision:
    """A valid contract: the document as read, its types, its identity (64 hex digits) and its generation."""

    raw: Mapping[str, Any]
    document: Document
    id: str
    generation: str
    name: str

    @property
    def plan(self) -> str:
        return self.document.plan

    @property
    def number(self) -> int:
        return self.document.revision

    @cached_property
    def tasks(self) -> Mapping[str, TaskV6]:
        return {task.id: task for task in self.document.tasks}

    @cached_property
    def criteria(self) -> Mapping[str, Criterion]:
        return {item.id: item for item in self.document.acceptance.criteria}

    def accepted(self, criterion: str) -> list[str]:
        """The trust labels that may close a criterion."""
        found = self.criteria.get(criterion)
        return list(found.accepted_evidence) if found is not None else []

    def intents(self, task: str) -> list[str]:
        """The criteria that a task must satisfy, in order."""
        found = self.tasks.get(task)
        return [intent.criterion for intent in found.gate_intent] if found is not None else []

    def owners(self, criterion: str) -> list[str]:
        """The tasks whose gate_intent names a criterion, in order."""
        return [task for task in self.tasks if criterion in self.intents(task)]

    def grants(self, name: str) -> bool:
        return name in self.document.permissions.granted


class Invalid(ValueError):
    """A contract that is none; the text says why and names the field."""


def revision(raw: Any, name: str = "contract.json") -> Revision:
    """A contract document checked on its own, without its chain. Raises Invalid."""
    if not isinstance(raw, dict):
        raise Invalid("contract must be a JSON object")
    url = raw.get("schema")
    generation = CONTRACT_URLS.get(url) if isinstance(url, str) else None
    if generation is None:
        raise Invalid("contract.schema is no contract of generation v6 or v7")
    try:
        document = CONTRACTS[generation].model_validate(raw)
    except ValidationError as exc:
        raise Invalid(fault(exc, "contract")) from None
    try:
        computed = canon.contract_id(raw)
    except ValueError as exc:
        raise Invalid(f"contract has no canonical form: {exc}") from None
    for problem in _problems(document):
        raise Invalid(problem)
    if "contract_id" in raw and document.contract_id != computed:
        raise Invalid(f"contract.contract_id is not the identity of this text, which is {computed[:12]}…")
    if (document.revision > 1) != ("parent_contract_id" in raw):
        raise Invalid("contract.parent_contract_id is required above revision 1 and forbidden at 1")
    return Revision(raw, document, computed, generation, name)


def _twice(names: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _problems(document: Document) -> Iterable[str]:
    criteria = [item.id for item in document.acceptance.criteria]
    limits = document.resource_envelope.limits
    for label, names in (
        ("acceptance.criteria", criteria),
        ("invariants", [item.id for item in document.invariants]),
        ("tasks", [task.id for task in document.tasks]),
        ("resource_envelope.limits", [item.id for item in limits]),
    ):
        if (name := _twice(names)) is not None:
            yield f"contract.{label} names {name} twice"
    both = sorted(set(document.permissions.granted) & set(document.permissions.not_granted))
    if both:
        yield f"contract.permissions grants and denies {', '.join(both)}"
    for index, limit in enumerate(limits):
        place = f"contract.resource_envelope.limits.{index}"
        if limit.enforcement == "enforced" and not limit.metering_source:
            yield f"{place}.metering_source is required for an enforced limit"
        if limit.reserve > limit.limit:
            yield f"{place}.reserve is above its limit"
    for index, task in enumerate(document.tasks):
        for inner, intent in enumerate(task.gate_intent):
            if intent.criterion not in criteria:
                yield f"contract.tasks.{index}.gate_intent.{inner}.criterion names no criterion of this contract"
    yield from _graph(document)


def _graph(document: Document) -> Iterable[str]:
    before = {task.id: task.prerequisites for task in document.tasks}
    for index, task in enumerate(document.tasks):
        for name in task.prerequisites:
            if name not in before:
                yield f"contract.tasks.{index}.prerequisites names {name}, which does not exist"
    done: set[str] = set()
    while ready := [name for name, needs in before.items() if name not in done and all(n in done for n in needs)]:
        done.update(ready)
    stuck = [name for name in before if name not in done]
    if stuck:
        yield f"contract.tasks: the prerequisites of {', '.join(stuck[:5])} go in a circle"


def head(command: str | list[str]) -> str:
    """The command class of a command: the basename of its first word, blank when there is none (§2, §5)."""
    if isinstance(command, list):
        return posixpath.basename(command[0]) if command else ""
    words = command.split()
    return posixpath.basename(words[0]) if words else ""


def draft_problems(contract: Revision) -> tuple[list[str], list[str]]:
    """(errors, warnings) that only a contract about to begin must heed."""
    errors, warnings = [], []
    if contract.number != 1:
        errors.append("contract.revision must be 1 in a draft; what comes later is an amendment")
    classes = contract.document.scope.allowed_command_classes
    for item in contract.document.acceptance.criteria:
        owners = contract.owners(item.id)
        if not owners:
            warnings.append(f"no task owns {item.id}")
            continue
        if item.control is not None and item.control.kind != "exempt":
            continue
        if not {"observed", "asserted"} & set(item.accepted_evidence):
            errors.append(f"{item.id} accepts neither observed nor asserted evidence and has no control")
        if "observed" not in item.accepted_evidence:
            continue
        for owner in owners:
            for intent in contract.tasks[owner].gate_intent:
                if intent.criterion == item.id and head(intent.check) not in classes:
                    word = head(intent.check)
                    errors.append(f"the check of {item.id} in {owner} runs {word!r}, no allowed command class")
    return errors, warnings


@dataclass(frozen=True)
class Chain:
    """A plan's contracts, revision 1 first; the live one is the last."""

    revisions: tuple[Revision, ...]

    @property
    def live(self) -> Revision:
        return self.revisions[-1]

    @cached_property
    def by_id(self) -> Mapping[str, Revision]:
        return {item.id: item for item in self.revisions}

    def cited(self, identity: object) -> Revision | None:
        """The revision that an event cites, if it is one of this chain."""
        return self.by_id.get(identity) if isinstance(identity, str) else None

    def judge(self, identity: object) -> Revision:
        """The revision by which an event is judged: the one it cites, else the live one."""
        return self.cited(identity) or self.live


def chain(documents: Mapping[str, Any]) -> Chain:
    """The chain in a plan's contract documents, by file name. Raises Invalid.

    Documents of `contracts/` without an integer revision belong to nobody and are passed over (§1).
    """
    found: dict[int, Revision] = {}
    for name, raw in documents.items():
        number = raw.get("revision") if isinstance(raw, dict) else None
        if type(number) is not int and "/" in name:
            continue
        try:
            made = revision(raw, name)
        except Invalid as exc:
            raise Invalid(f"{name}: {exc}") from None
        known = found.setdefault(made.number, made)
        if known.id != made.id:
            raise Invalid(f"{known.name} and {name} are two revisions {made.number}")
    revisions = [found[number] for number in sorted(found)]
    if not revisions:
        raise Invalid("there is no contract.json")
    for index, item in enumerate(revisions):
        if item.number != index + 1:
            raise Invalid(f"{item.name}: revision {item.number} follows revision {index}")
        if index == 0:
            continue
        parent = revisions[index - 1]
        if item.document.parent_contract_id != parent.id:
            raise Invalid(f"{item.name}: parent_contract_id is not revision {parent.number}")
        if item.generation != parent.generation:
            raise Invalid(f"{item.name}: a plan never changes its generation")
        if canon.substance(item.raw) == canon.substance(parent.raw):
            raise Invalid(f"{item.name}: it changes nothing of revision {parent.number}")
    return Chain(tuple(revisions))
