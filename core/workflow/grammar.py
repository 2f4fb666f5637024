"""What both grammars share: names, limits, triggers, completion, escalation, routes with their places (§3)."""

from __future__ import annotations

import re
from collections.abc import Mapping as MappingOf
from typing import Any, Literal, cast

from core.workflow import routes, templates
from core.workflow.fields import Fields, Place, is_null
from core.workflow.findings import Findings
from core.workflow.model import (
    CHANNELS,
    RESERVED_CHANNELS,
    Check,
    Condition,
    OnComplete,
    OnEscalate,
    Retry,
    Route,
    Trigger,
    Verdict,
)
from core.workflow.yaml_nodes import Mapping, Node, Scalar, Sequence, Tree, plain

NAME = re.compile(r"[^\W_][\w.-]{0,99}")
SHARED_KEYS = (
    "version",
    "max_parallel",
    "timeout",
    "retry",
    "idempotent",
    "reversible",
    "external_effect",
    "trigger",
    "on_complete",
    "on_escalate",
    "execution_mode",
)
OPS = ("eq", "ne", "lt", "le", "gt", "ge", "in", "contains", "exists", "age_gt")


def name_of(fields: Fields, key: str) -> str | None:
    """The workflow's name: it is part of file names and ids."""
    if not fields.require(key):
        return None
    made = fields.text(key, required=True)
    if made is not None and (NAME.fullmatch(made) is None or len(made.encode()) > 120):
        fields.wrong_value(key, f"{made!r} is no name: letters, digits, '_', '.', '-', at most 100")
        return None
    return made


def execution_mode(fields: Fields) -> None:
    if fields.mapping.find("execution_mode") is not None:
        cause = "the mode belongs to the start (--mode), never to the file"
        fields.findings.error("E_EXECUTION_MODE", fields.key_place("execution_mode"), cause)


def shared(fields: Fields) -> dict[str, Any]:
    """The added keys of both grammars, as arguments of Spec."""
    execution_mode(fields)
    if fields.integer("version", 1, 1) != 1:
        fields.wrong_value("version", "only version 1 is known")
    return {
        "max_parallel": fields.integer("max_parallel", 1, 1),
        "timeout": fields.span("timeout", 1_800_000),
        "retry": _retry(fields.inner("retry")),
        "idempotent": fields.flag("idempotent", False),
        "reversible": fields.flag("reversible", False),
        "external_effect": fields.flag("external_effect", True),
        "trigger": _trigger(fields),
        "on_complete": _on_complete(fields.inner("on_complete")),
        "on_escalate": _on_escalate(fields.inner("on_escalate")),
    }


def _retry(fields: Fields | None) -> Retry:
    if fields is None:
        return Retry()
    fields.unknown(("max", "backoff", "on"))
    return Retry(
        max=fields.integer("max", 0, 0),
        backoff=fields.span("backoff", 0, 0) or 0,
        on=cast("tuple[Verdict, ...]", fields.words("on", ("fail", "partial", "error"), ("error",))),
    )


def _trigger(fields: Fields) -> Trigger | None:
    node = fields.mapping.get("trigger")
    if is_null(node):
        return None
    if isinstance(node, Scalar):
        fields.choice("trigger", ("manual",), "manual")
        return None
    inner = fields.inner("trigger")
    if inner is None:
        return None
    inner.unknown(("every", "when"))
    if inner.has("every") == inner.has("when"):
        fields.wrong_value("trigger", "a trigger is manual, {every: …} or {when: …}")
        return None
    if inner.has("every"):
        every = inner.span("every", None)
        return None if every is None else Trigger(every=every)
    when = condition(inner, "when")
    return None if when is None else Trigger(when=when)


def condition(fields: Fields, key: str) -> Condition | None:
    """`{all|any: [{path, op, value}]}` (§11)."""
    inner = fields.inner(key)
    if inner is None:
        return None
    inner.unknown(("all", "any"))
    if inner.has("all") == inner.has("any"):
        fields.wrong_value(key, "a condition is {all: […]} or {any: […]}")
        return None
    match: Literal["all", "any"] = "all" if inner.has("all") else "any"
    listed = inner.mapping.get(match)
    if not isinstance(listed, Sequence) or not listed.items:
        inner.wrong_type(match, "a list of tests")
        return None
    tests = [made for item in listed.items if (made := _test(item, inner.findings)) is not None]
    return Condition(match=match, tests=tuple(tests)) if len(tests) == len(listed.items) else None


def _test(node: Node, findings: Findings) -> Check | None:
    place = (node.line, node.column)
    if not isinstance(node, Mapping):
        findings.error("E_TYPE", place, "a test is {path, op, value}")
        return None
    fields = Fields(node, place, "test", findings)
    fields.unknown(("path", "op", "value"))
    if not (fields.require("path") & fields.require("op")):
        return None
    path, op = fields.text("path", required=True), fields.choice("op", OPS, "")
    if path is None or not op:
        return None
    value = node.get("value")
    return Check(path=path, op=cast("Any", op), value=None if value is None else plain(value))


def _on_complete(fields: Fields | None) -> OnComplete | None:
    if fields is None:
        return None
    fields.unknown(("signal", "to", "payload", "on_abort"))
    fields.choice("signal", ("RETURN",), "RETURN")
    payload: dict[str, Any] = {}
    inner = fields.inner("payload")
    if inner is not None:
        for key, value in inner.mapping.pairs:
            if key.text != "result":
                cause = f"a RETURN carries its result only, not {key.text!r}"
                inner.findings.error("E_PAYLOAD", (key.line, key.column), cause)
                continue
            variables(value, inner.findings)
            payload["result"] = plain(value)
    return OnComplete(to=fields.text("to"), payload=payload, on_abort=fields.flag("on_abort", False))


def variables(node: Node, findings: Findings) -> bool:
    """Whether every `{{name}}` in it is a variable; E_TEMPLATE_VAR at each text where one is not."""
    if isinstance(node, Scalar):
        wrong = templates.unknown(node.text)
        if wrong:
            cause = f"there is no variable {wrong[0]!r}; there are {', '.join(templates.VARIABLES)}"
            findings.error("E_TEMPLATE_VAR", (node.line, node.column), cause)
        return not wrong
    inner = node.items if isinstance(node, Sequence) else ()
    values = [value for _, value in node.pairs] if isinstance(node, Mapping) else []
    found = [variables(item, findings) for item in (*inner, *values)]
    return all(found)


def _on_escalate(fields: Fields | None) -> OnEscalate:
    if fields is None:
        return OnEscalate()
    fields.unknown(
        ("notify", "wait", "deadline", "on_deadline", "remind_every", "options", "self_approval"),
    )
    usual = OnEscalate()
    channels = fields.scalars("notify")
    for item in channels or ():
        channel(item.text, (item.line, item.column), fields.findings)
    return OnEscalate(
        notify=usual.notify if channels is None else tuple(dict.fromkeys(item.text for item in channels)),
        wait=cast("Any", fields.choice("wait", ("human_decision", "item", "none"), usual.wait)),
        deadline=fields.span("deadline", None),
        on_deadline=cast("Any", fields.choice("on_deadline", ("remind", "skip", "abort"), usual.on_deadline)),
        remind_every=fields.span("remind_every", usual.remind_every) or usual.remind_every,
        options=cast("Any", fields.words("options", usual.options, usual.options)),
        self_approval=fields.flag("self_approval", True),
    )


def channel(name: str, place: Place, findings: Findings) -> None:
    """Warn of a channel that nobody serves."""
    if name not in CHANNELS and name not in RESERVED_CHANNELS:
        cause = f"nobody serves the channel {name!r}: its notifications are recorded and not delivered"
        findings.warning("W_CHANNEL_UNKNOWN", place, cause)


def route(
    fields: Fields,
    tree: Tree,
    key: str,
    verdict: Verdict,
    grammar: routes.Grammar,
    position: int = 0,
    labels: MappingOf[int, int] | None = None,
) -> Route | None:
    """The route below a key; None when the key is absent or its text is broken (then with findings)."""
    node = fields.mapping.get(key)
    if node is None:
        return None
    if not isinstance(node, Scalar):
        fields.wrong_type(key, "a route")
        return None
    made, faults = routes.parse(node.text, verdict, grammar, position, labels)
    for fault in faults:
        place = fields.value_place(key) if fault.offset is None else tree.place_in(node, fault.offset)
        fields.findings.error(fault.code, place, fault.cause)
    for effect in made.effects if made is not None else ():
        if effect.do == "notify" and effect.target not in ("pilote", "human"):
            channel(effect.target or "", (node.line, node.column), fields.findings)
    return made
