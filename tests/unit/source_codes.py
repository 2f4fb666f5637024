"""Every failure code that the source can say, with the texts it says it with, read from the source itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path

from core.acp.model import LOG, PROTOCOL

TOP = Path(__file__).parents[2]
FINDINGS = {"error", "warning", "Finding", "_bad"}
REFUSALS = {"refuse", "halt", "NotAllowed", "Fault", "SpecFinding"}
CONSTRUCTORS = FINDINGS | REFUSALS | {"PydanticCustomError", "fail", "add", "wrong"}
CODE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)+|[EW]_[A-Z_]+")
RULE = re.compile(r"[a-z]+(-[a-z]+)+")
"""A rule of `ledger verify`, whose code is `plan_` and its name."""
CAUSES = {"_failed", "error_reply"}
"""They say why an agent's process gave no reply, in a word that is the code."""
PLACE = "X7"
"""Stands where a text has something that is known only when it is said."""
NAMED = {"PROTOCOL": PROTOCOL, "LOG": LOG}


@dataclass(frozen=True)
class Said:
    """A code and one text that it is said with; the text is None when it comes from elsewhere.

    `sure` when it is the code of a finding by itself, not a word that somebody may turn into one.
    """

    code: str
    text: str | None
    where: str
    sure: bool


def said(folders: tuple[str, ...] = ("core", "tui")) -> list[Said]:
    """All of them, in the order of the files."""
    found = []
    for folder in folders:
        for path in sorted((TOP / folder).rglob("*.py")):
            tree = ast.parse(path.read_text("utf-8"))
            for function in ast.walk(tree):
                if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                    found += list(_in(function, path.relative_to(TOP)))
            found += list(_sentences(tree, path.relative_to(TOP)))
    return list(dict.fromkeys(found))


def _in(function: ast.AST, path: Path) -> Iterator[Said]:
    causes: list[tuple[int, str]] = []
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "cause":
            text = _text(node.value)
            if text is not None:
                causes.append((node.lineno, text))
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and _name(node.func) in CONSTRUCTORS:
            words = [item for item in node.args if not isinstance(item, ast.Starred)]
            # `fail(check, code, cause)` says its code second.
            words = words[1:] if _name(node.func) == "fail" else words
            if _name(node.func) in REFUSALS:
                # The code may stand behind whom or what is refused.
                words = list(dropwhile(lambda word: not any(map(CODE.fullmatch, _choices(word))), words))
            for code in _choices(words[0]) if words else ():
                sure = _name(node.func) in FINDINGS | REFUSALS
                if CODE.fullmatch(code) or (code.isalnum() and code.islower()):
                    # A finding about a place in a text says the place second.
                    told = words[2:3] if isinstance(node.func, ast.Attribute) and code.isupper() else words[1:2]
                    yield Said(code, _cause(told, causes, node.lineno), f"{path}:{node.lineno}", sure)
                elif RULE.fullmatch(code) and path.stem == "verify":
                    yield Said(_of_rule(code), _cause(words[2:3], causes, node.lineno), f"{path}:{node.lineno}", True)
        elif isinstance(node, ast.Call) and _name(node.func) in CAUSES and path.parts[:2] == ("core", "workflow"):
            for code in _choices(node.args[1]):
                if CODE.fullmatch(code) and not code.startswith("exit_"):
                    yield Said(code, code, f"{path}:{node.lineno}", True)
        elif isinstance(node, ast.Assign):
            named = {getattr(target, "id", "") for target in node.targets}
            for code in _choices(node.value) if named & {"code", "rule"} else ():
                if "code" in named and "_" in code and code.replace("_", "").isalnum() and code.islower():
                    yield Said(code, None, f"{path}:{node.lineno}", True)
                elif "rule" in named and RULE.fullmatch(code):
                    yield Said(_of_rule(code), None, f"{path}:{node.lineno}", True)
        elif isinstance(node, ast.Tuple) and len(node.elts) == 2 and isinstance(node.elts[0], ast.Constant):
            code, text = node.elts[0].value, _text(node.elts[1])
            told = isinstance(code, str) and "_" in code and code.replace("_", "").isalnum() and text and " " in text
            if told and path.parts[0] == "core":
                yield Said(code, text, f"{path}:{node.lineno}", False)


def _of_rule(rule: str) -> str:
    return f"plan_{rule.replace('-', '_')}"


def _sentences(tree: ast.Module, path: Path) -> Iterator[Said]:
    """Rules of `ledger verify` that have their sentences in one table."""
    for node in ast.walk(tree) if path.stem == "verify" else ():
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                for rule in _choices(key) if key is not None else ():
                    if RULE.fullmatch(rule):
                        yield Said(_of_rule(rule), _text(value), f"{path}:{node.lineno}", True)


def _choices(node: ast.expr) -> Iterator[str]:
    """The texts that an expression may be: a constant, or either branch of a choice."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from _choices(node.body)
        yield from _choices(node.orelse)


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _cause(words: list[ast.expr], causes: list[tuple[int, str]], line: int) -> str | None:
    if not words:
        return None
    if isinstance(words[0], ast.Name) and words[0].id == "cause":
        before = [item for item in causes if item[0] <= line]
        return max(before)[1] if before else None
    return _text(words[0])


def _text(node: ast.expr) -> str | None:
    """A literal text with `PLACE` for what is filled in, or None."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(_part(item) for item in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left = _text(node.left)
        return None if left is None else left + (_text(node.right) or PLACE)
    return None


def _part(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    named = node.value.id if isinstance(node, ast.FormattedValue) and isinstance(node.value, ast.Name) else ""
    return NAMED.get(named, PLACE)
