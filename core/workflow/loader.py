"""A workflow file read, checked and compiled; every finding with its place (docs/specs/workflows.md §3)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from core.files import sha256
from core.workflow import grammar, paths, routes, templates
from core.workflow.fields import Fields, Place, is_null
from core.workflow.findings import Findings, Placed, SpecFinding
from core.workflow.model import ZONES, Route, Spec, Verdict, Work
from core.workflow.yaml_nodes import Mapping, Node, Scalar, Sequence, Tree, parse, plain

GATES = ("human", "human.DECISION", "human.REVIEW", "human.DEFINE", "human.CREDENTIALS", "0-failures", "never")
_TOP = (1, 1)
Known = Callable[[str], bool]


@dataclass(frozen=True)
class Loaded:
    """A spec file as read. `spec` and `hash` are None exactly when it has errors; `digest` is of the text."""

    workflow: str
    file: str
    spec: Spec | None
    findings: tuple[SpecFinding, ...]
    digest: str
    hash: str | None

    def placed(self) -> list[Placed]:
        """Its findings as every failure is shown."""
        return [item.finding(self.workflow, self.file) for item in self.findings]


def spec_hash(spec: Spec) -> str:
    """64 hex digits over the normalised spec: comments, order of keys and spelling of routes do not matter."""
    text = json.dumps(spec.plain(), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return sha256(text.encode())


def load(text: str, file: str, stem: str | None = None, known: Known | None = None) -> Loaded:
    """Check and compile. `stem`: the file's name is compared with the workflow's; `known`: which agents we have.

    Never raises: a text that is no YAML is E_YAML.
    """
    tree = parse(text)
    findings = Findings()
    for problem in tree.problems:
        findings.error("E_YAML", (problem.line, problem.column), problem.cause)
    for place in tree.unquoted:
        findings.warning("W_TEMPLATE_UNQUOTED", place, "a bare text with {{…}}: it is read as if it stood in quotes")
    workflow, arguments = None, None
    if isinstance(tree.root, Mapping):
        workflow, arguments = _document(tree, tree.root, findings, stem, known)
    elif not tree.problems:
        findings.error("E_TYPE", _TOP, "a workflow file holds a mapping")
    found = findings.sorted()
    spec = None
    if arguments is not None and not any(item.severity == "error" for item in found):
        spec = Spec(**arguments)
    named = workflow or _written_name(tree.root) or stem or file.rsplit("/", 1)[-1].removesuffix(".yml")
    made_hash = None if spec is None else spec_hash(spec)
    return Loaded(named, file, spec, found, sha256(text.encode("utf-8", "surrogatepass")), made_hash)


def _written_name(root: Node | None) -> str | None:
    for key in ("workflow", "name"):
        node = root.get(key) if isinstance(root, Mapping) else None
        if isinstance(node, Scalar) and grammar.NAME.fullmatch(node.text):
            return node.text
    return None


def _document(
    tree: Tree, root: Mapping, findings: Findings, stem: str | None, known: Known | None
) -> tuple[str | None, dict[str, Any] | None]:
    fields = Fields(root, _TOP, "", findings)
    each, chain = root.find("for_each"), root.find("chain")
    if (each is None) == (chain is None):
        which = "has both for_each and chain" if each is not None else "has neither for_each nor chain"
        place = _TOP if chain is None else (chain[0].line, chain[0].column)
        findings.error("E_GRAMMAR", place, f"a workflow file {which}")
    arguments = grammar.shared(fields)
    key = "name" if chain is not None and each is None else "workflow"
    if each is None and chain is None and root.find("workflow") is None and root.find("name") is not None:
        key = "name"
    name = grammar.name_of(fields, key)
    if name is not None and stem is not None and name != stem:
        cause = f"the file is called {stem!r}, the workflow {name!r}"
        findings.warning("W_NAME_STEM", fields.value_place(key), cause)
    made: dict[str, Any] | None = None
    if each is not None:
        made = _for_each(tree, fields, name or "", known)
    if chain is not None:
        compiled = _chain(tree, fields, name or "", known)
        made = compiled if made is None else made
    _top_keys(fields, each is not None, chain is not None)
    if made is None or name is None:
        return name, None
    return name, {**arguments, **made, "workflow": name}


def _top_keys(fields: Fields, each: bool, chain: bool) -> None:
    known = {*grammar.SHARED_KEYS, "for_each", "chain"}
    if each or not chain:
        known |= {"workflow", "description"}
    if chain or not each:
        known |= {"name", "branch", "pilote", "swarm_ready", "status", "note"}
    fields.unknown(known)


def _for_each(tree: Tree, top: Fields, name: str, known: Known | None) -> dict[str, Any] | None:
    description = top.written("description")
    fields = top.inner("for_each")
    if fields is None:
        if is_null(top.mapping.get("for_each")):
            top.wrong_type("for_each", "a mapping")
        return None
    fields.unknown(("items", "spawn", "scope", "on_return"))
    items = _items(fields)
    agent = _agent(fields, known)
    zone, files = _scope(fields)
    found = _on_return(tree, fields)
    texts = tuple(item.text for item in items)
    if items is not None:
        _escapes(files, texts, name, fields.findings)
    if agent is None:
        return None
    work = Work(
        agent=agent,
        zone=cast("Any", zone),
        files=tuple(item.text for item in files),
        success=found["success"],
        fail=found["fail"],
        partial=found["partial"],
        error=found["error"],
    )
    return {"grammar": "for_each", "items": texts, "works": (work,), "description": description}


def _items(fields: Fields) -> list[Scalar]:
    if not fields.require("items"):
        return []
    found = fields.scalars("items")
    if found is None:
        if is_null(fields.mapping.get("items")):
            fields.wrong_type("items", "a list of scalars")
        return []
    listed = fields.mapping.get("items")
    if isinstance(listed, Sequence) and not listed.items:
        fields.findings.warning("W_ITEMS_EMPTY", (listed.line, listed.column), "the list of items is empty")
    for item in found:
        if item.text == "...":
            cause = "'...' stands for items that are not written out"
            fields.findings.error("E_PLACEHOLDER_ITEM", (item.line, item.column), cause)
    return found


def _agent(fields: Fields, known: Known | None) -> str | None:
    if not fields.require("spawn"):
        return None
    agent = fields.text("spawn", required=True)
    if agent is not None:
        _check_agent(agent, fields.value_place("spawn"), fields.findings, known)
    return agent


def _check_agent(agent: str, place: Place, findings: Findings, known: Known | None) -> None:
    if agent == "broadcast":
        findings.error("E_VALUE", place, "one agent does an item; broadcast would do the work twice")
    elif known is not None and not known(agent):
        findings.warning("W_AGENT_UNKNOWN", place, f"there is no agents/{agent}.md; a start will be refused")


def _scope(fields: Fields) -> tuple[str, list[Scalar]]:
    if not fields.require("scope"):
        return "project", []
    scope = fields.inner("scope")
    if scope is None:
        if is_null(fields.mapping.get("scope")):
            fields.wrong_type("scope", "a mapping")
        return "project", []
    scope.unknown(("zone", "files"))
    zone = "project"
    if scope.require("zone"):
        zone = scope.choice("zone", ZONES, "project")
        if is_null(scope.mapping.get("zone")):
            scope.wrong_type("zone", "a zone")
    if not scope.require("files"):
        return zone, []
    files = scope.scalars("files")
    if files is None and is_null(scope.mapping.get("files")):
        scope.wrong_type("files", "a list of paths")
    return zone, [item for item in files or [] if grammar.variables(item, scope.findings)]


def _on_return(tree: Tree, fields: Fields) -> dict[str, Route]:
    given: dict[str, Route | None] = {}
    if fields.require("on_return"):
        inner = fields.inner("on_return")
        if inner is None and is_null(fields.mapping.get("on_return")):
            fields.wrong_type("on_return", "a mapping of verdicts to routes")
        for key, _ in inner.mapping.pairs if inner is not None else ():
            if key.text not in ("success", "fail", "partial", "error"):
                cause = f"{key.text!r} is no verdict: success, fail, partial, error"
                fields.findings.error("E_VALUE", (key.line, key.column), cause)
            elif inner is not None:
                verdict = cast("Verdict", key.text)
                given[verdict] = grammar.route(inner, tree, verdict, verdict, "for_each")
    return {
        verdict: given.get(verdict) or routes.default_route(verdict, "for_each")
        for verdict in ("success", "fail", "partial", "error")
    }


def _escapes(files: list[Scalar], items: tuple[str, ...], name: str, findings: Findings) -> None:
    """E_PATH_ESCAPE once at each path that leaves the root for some item."""
    usual = dict.fromkeys(templates.VARIABLES, "0")
    for scalar in files:
        for index, item in enumerate(items or ("",)) if "{{" in scalar.text else ((0, ""),):
            values = {**usual, "item": item, "index": index, "total": len(items), "workflow": name or "0"}
            if paths.normal(templates.fill(scalar.text, values)) is None:
                cause = f"{scalar.text!r} leaves the root" + (f" for the item {item!r}" if item else "")
                findings.error("E_PATH_ESCAPE", (scalar.line, scalar.column), cause)
                break


STEP_KEYS = (
    "step",
    "type",
    "scope",
    "story_angle",
    "agents",
    "gate",
    "input_contract",
    "zone",
    "on_done",
    "on_partial",
    "on_fail",
    "execution_mode",
)


def _chain(tree: Tree, top: Fields, name: str, known: Known | None) -> dict[str, Any] | None:
    swarm_ready = top.flag("swarm_ready", False)
    made = {key: top.written(key) for key in ("branch", "pilote", "status", "note")}
    listed = top.mapping.get("chain")
    if not isinstance(listed, Sequence):
        top.wrong_type("chain", "a list of steps")
        return None
    if not listed.items:
        top.findings.warning("W_ITEMS_EMPTY", (listed.line, listed.column), "the list of items is empty")
    steps = [_step_fields(item, top.findings) for item in listed.items]
    labels: dict[int, int] = {}
    for index, fields in enumerate(steps):
        label = _label(fields)
        if fields is not None and label is not None:
            if label in labels:
                top.findings.error("E_STEP", fields.value_place("step"), f"two steps are called {label}")
            labels.setdefault(label, index)
    works, ended = [], False
    for index, fields in enumerate(steps):
        if fields is None:
            continue
        if ended:
            top.findings.warning("W_AFTER_TERMINAL", fields.place, "an earlier step ends the run (gate: never)")
        work = _step(tree, fields, index, labels, known, name, len(steps))
        if swarm_ready and index and not fields.has("input_contract"):
            top.findings.error("E_INPUT_CONTRACT", fields.place, "swarm_ready needs an input_contract here")
        ended = ended or (work is not None and work.after == "never")
        works.append(work)
    numbers = {index: label for label, index in labels.items()}
    if None in works or len(works) != len(steps) or len(numbers) != len(steps):
        return None
    order = [numbers[index] for index in range(len(steps))]
    return {
        **made,
        "grammar": "chain",
        "items": tuple(f"step-{label}" for label in order),
        "labels": tuple(order),
        "works": tuple(works),
        "swarm_ready": swarm_ready,
    }


def _step_fields(node: Node, findings: Findings) -> Fields | None:
    if isinstance(node, Mapping):
        return Fields(node, (node.line, node.column), "step", findings)
    findings.error("E_TYPE", (node.line, node.column), "a step is a mapping")
    return None


def _label(fields: Fields | None) -> int | None:
    if fields is None or not fields.require("step"):
        return None
    node = fields.mapping.get("step")
    if isinstance(node, Scalar) and type(node.value) is int:
        return node.value
    fields.wrong_type("step", "an integer")
    return None


def _step(
    tree: Tree, fields: Fields, index: int, labels: dict[int, int], known: Known | None, name: str, total: int
) -> Work | None:
    fields.unknown(STEP_KEYS)
    grammar.execution_mode(fields)
    kind, task = fields.text("type"), fields.written("story_angle")
    listed = fields.scalars("agents")
    agents = listed or []
    agent = agents[0].text if agents else kind
    if agents:
        _check_agent(agents[0].text, (agents[0].line, agents[0].column), fields.findings, known)
    elif kind is not None:
        _check_agent(kind, fields.value_place("type"), fields.findings, known)
    elif not fields.has("type") and (listed is not None or not fields.has("agents")):
        fields.findings.error("E_KEY_MISSING", fields.place, "a step needs agents or a type")
    node = fields.mapping.get("scope")
    scope = node if fields.written("scope") is not None and isinstance(node, Scalar) else None
    files = [scope] if scope is not None and grammar.variables(scope, fields.findings) else []
    label = next((one for one, at in labels.items() if at == index), index)
    _escapes(files, tuple("0" if at != index else f"step-{label}" for at in range(total)), name, fields.findings)
    gate = fields.choice("gate", GATES, "") or None
    given = {
        verdict: grammar.route(fields, tree, key, cast("Verdict", verdict), "chain", index, labels)
        for key, verdict in (("on_done", "success"), ("on_partial", "partial"), ("on_fail", "fail"))
    }
    if agent is None:
        return None
    fail = given["fail"] or routes.default_route("fail", "chain")
    return Work(
        agent=agent,
        zone=cast("Any", fields.choice("zone", ZONES, "project")),
        files=tuple(item.text for item in files),
        success=given["success"] or routes.default_route("success", "chain"),
        partial=given["partial"] or routes.default_route("partial", "chain"),
        fail=fail,
        error=routes.default_route("error", "chain", fail),
        before=None
        if gate is None or not gate.startswith("human")
        else "credentials"
        if gate.endswith("CREDENTIALS")
        else "human",
        after=cast("Any", gate) if gate in ("0-failures", "never") else None,
        task=task,
        agents=tuple(item.text for item in agents),
        input_contract=_contract(fields),
    )


def _contract(fields: Fields) -> str | None:
    """Its text; a structured contract is kept as JSON."""
    node = fields.mapping.get("input_contract")
    if node is None or is_null(node):
        return None
    value = plain(node)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
