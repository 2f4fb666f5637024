"""Every failure that the product can name is in its own catalogue (docs/design.md §2, docs/specs/governance.md §2)."""

from __future__ import annotations

import ast
import json
import pkgutil
import re
import shlex
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import core
import tui
from core.acp.check import check
from core.acp.model import EVENTS_V2, LOG, PROTOCOL
from core.finding import Finding
from tests.conformance.acp_runner import VECTORS, build
from tests.unit.core.acp.builders import PEOPLE, SITUATIONS, Talk, draft, setup, setup2
from tui.cli import parser

CATALOG: dict[str, Any] = json.loads(pkgutil.get_data("catalog", "failure_codes.json") or b"{}")
ENTRIES: list[dict[str, Any]] = CATALOG["codes"]
FORBIDDEN = {
    "needs_attention",
    "blocked",
    "browser_handler_timeout",
    "unknown_error",
    "generic_failure",
    "pass",
    "fail",
}
CODE = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+")


def sources() -> Iterator[Path]:
    for package in (core, tui):
        yield from Path(str(package.__file__)).parent.rglob("*.py")


def _constants(node: ast.expr) -> Iterator[str]:
    """The texts that an expression may be: a constant, or either branch of a choice."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from _constants(node.body)
        yield from _constants(node.orelse)


def used_codes() -> dict[str, str]:
    """Code to a place where a finding with it is made: `error("…", …)` and its like, `code = "…"`."""
    found: dict[str, str] = {}
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            texts: list[str] = []
            if isinstance(node, ast.Call) and node.args:
                name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
                if name in ("error", "warning", "Finding") or (name == "add" and len(node.args) > 1):
                    texts += _constants(node.args[0])
                if name == "append" and isinstance(node.args[0], ast.Tuple) and len(node.args[0].elts) == 2:
                    texts += _constants(node.args[0].elts[0])
            elif isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "code" for target in node.targets):
                texts += _constants(node.value)
            for text in texts:
                if CODE.fullmatch(text):
                    found.setdefault(text, f"{path.name}:{node.lineno}")
    return found


def _literal(node: ast.expr) -> str | None:
    """The text of a constant or f-string, `x` in its places; None for anything else."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(_place(part) for part in node.values)
    return None


def _place(part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    named = part.value.id if isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name) else ""
    return {"PROTOCOL": PROTOCOL, "LOG": LOG}.get(named, "x")


def written_causes() -> Iterator[tuple[str, str, str]]:
    """(code, cause, place) of every finding whose cause is written where it is made or just above."""
    for path in sources():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for function in ast.walk(tree):
            if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            cause: str | None = None
            for node in sorted(ast.walk(function), key=lambda one: getattr(one, "lineno", 0)):
                if isinstance(node, ast.Assign) and [getattr(one, "id", "") for one in node.targets] == ["cause"]:
                    cause = _literal(node.value)
                if not isinstance(node, ast.Call) or len(node.args) < 2:
                    continue
                name = node.func.id if isinstance(node.func, ast.Name) else ""
                code = _literal(node.args[0])
                if name not in ("error", "warning") or code is None or not CODE.fullmatch(code):
                    continue
                named = isinstance(node.args[1], ast.Name) and node.args[1].id == "cause"
                text = cause if named else _literal(node.args[1])
                if text is not None:
                    yield code, text, f"{path.name}:{node.lineno}"


def classify(text: str, layer: str | None = None) -> str | None:
    """The scan of the catalogue: the first entry with a token inside the normalised text."""
    normal = " ".join(text.lower().split())
    for entry in ENTRIES:
        if layer in (None, entry["layer"]) and any(token.lower() in normal for token in entry["match"]):
            return str(entry["code"])
    return None


def test_the_search_for_codes_finds_them() -> None:
    assert {
        "file_missing",
        "phase_not_allowed",
        "event_after_terminal",
        "log_seq",
        "usage_wrong",
    } <= used_codes().keys()


def test_every_code_in_use_has_an_entry() -> None:
    known = {entry["code"] for entry in ENTRIES}
    assert {code: place for code, place in used_codes().items() if code not in known} == {}


def test_the_catalogue_is_well_formed() -> None:
    assert set(CATALOG) == {"schema", "note", "codes", "aliases"}
    assert CATALOG["schema"] == "triage_error.catalog.v1"
    assert CATALOG["aliases"] == {}
    codes = [entry["code"] for entry in ENTRIES]
    assert len(set(codes)) == len(codes)
    for entry in ENTRIES:
        assert list(entry) == ["code", "layer", "cause", "match", "next_command", "recoverable", "not_this"]
        assert " ".join(entry["code"].lower().split()) not in FORBIDDEN
        assert not re.search(r"_unclassified_[0-9a-f]{8}$", entry["code"])
        assert CODE.fullmatch(entry["code"])
        assert entry["layer"].strip()
        assert entry["cause"].strip()
        assert entry["next_command"] is None or entry["next_command"].strip()
        assert type(entry["recoverable"]) is bool
        for text in (*entry["match"], *entry["not_this"]):
            assert text.strip()
        for token in entry["match"]:
            # A token that is not normalised itself never matches.
            assert token == " ".join(token.lower().split())


def test_every_entry_can_be_reached() -> None:
    """No token stands behind a shorter one of an earlier entry that always wins."""
    for entry in ENTRIES:
        assert entry["match"], entry["code"]
        assert any(classify(token) == entry["code"] for token in entry["match"]), entry["code"]


def test_every_command_is_one_of_ours() -> None:
    whole = parser()
    for entry in ENTRIES:
        if entry["next_command"] is None:
            continue
        words = shlex.split(entry["next_command"])
        assert words[0] == "collab"
        if words[-1] == "--help":
            assert main_help(words[1:]) == 0
        else:
            whole.parse_args(words[1:])


def main_help(words: list[str]) -> int:
    from tui.cli import main

    return main(words)


def test_what_the_source_says_classifies_as_what_it_is() -> None:
    written = list(written_causes())
    assert len(written) > 100
    # A text that is hardly more than its places says nothing without them.
    telling = [(code, cause, place) for code, cause, place in written if len(re.findall(r"\b[a-z]{2,}\b", cause)) > 4]
    layers = {entry["code"]: entry["layer"] for entry in ENTRIES}
    wrong = {
        place: (code, cause, classify(cause))
        for code, cause, place in telling
        if code not in (classify(cause), classify(cause, layers.get(code)))
    }
    assert wrong == {}


def observed() -> Iterator[tuple[str, str]]:
    """(code, cause) of what the rules say in every situation, to everybody, about every event."""
    for made, (steps, who, event) in product(
        (setup(), setup2()), product(SITUATIONS.values(), (*PEOPLE, "stranger"), (*EVENTS_V2, "nonsense"))
    ):
        drafted = (steps[0], ("server", "deliverable_drafted"), *steps[1:3]) if made.schema == 2 and steps else steps
        talk = Talk(made, *drafted)
        for documents in ({}, {"readiness_md": "- [blocking] A\n- [unresolved] B\n- [deferred_nonblocking] C\n"}):
            talk.facts = Talk(made, conclusion_md="- [blocked] TBD\n", **documents).facts
            for item in talk.decide(draft(who, event, len(talk.events)))[1]:
                yield item.code, item.cause


def test_what_the_rules_say_classifies_as_what_it_is() -> None:
    wrong = {(code, cause, classify(cause)) for code, cause in observed() if classify(cause) != code}
    assert wrong == set()


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> list[Finding]:
    """What validation says of the folders of the conformance cases."""
    found: list[Finding] = []
    for case in VECTORS["validate"]:
        found += check(build(tmp_path_factory.mktemp("case"), case["base"], case))[1]
    return found


def test_what_validation_says_classifies_as_what_it_is(findings: list[Finding]) -> None:
    assert len({item.code for item in findings}) > 30
    wrong = {(item.code, item.cause, classify(item.cause)) for item in findings if classify(item.cause) != item.code}
    assert wrong == set()
