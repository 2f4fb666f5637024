"""The security page names tests that exist, and is found from the README."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parents[2]
PAGE = HERE / "docs" / "security.md"
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE.read_text("utf-8"))))


@pytest.mark.parametrize(("file", "name"), NAMED, ids=lambda text: text.rpartition("/")[2])
def test_a_named_test_exists(file: str, name: str) -> None:
    tree = ast.parse((HERE / file).read_text("utf-8"))
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_claim_names_one() -> None:
    """What cannot be done is shown by at least one test each."""
    part = PAGE.read_text("utf-8").partition("## What a writer of a folder cannot do")[2].partition("\n## ")[0]
    claims = re.split(r"\n\*\*(?=[A-Z])", part)[1:]
    assert len(claims) >= 10
    for claim in claims:
        assert re.search(r"`tests/[\w/]+\.py::\w+`", claim), claim.split("\n")[0]
    assert len(NAMED) > 50


def test_the_readme_leads_there() -> None:
    assert "(docs/security.md)" in (HERE / "README.md").read_text("utf-8")
