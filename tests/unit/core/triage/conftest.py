"""Catalogues and workspaces for the tests of triage."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.triage.model import Catalog
from core.triage.rules import make_catalog
from core.triage.store import CODES, Place


def entry(code: Any = "press_jam", layer: Any = "press", match: Any = ("Paper JAM",), **more: Any) -> Any:
    """One entry; further fields replace its own."""
    made: dict[str, Any] = {
        "code": code,
        "layer": layer,
        "cause": f"About {code}.",
        "match": list(match) if isinstance(match, tuple) else match,
        "next_command": None,
        "recoverable": True,
        "not_this": [],
    }
    return {**made, **more}


def document(*entries: Any, aliases: Any = None) -> dict[str, Any]:
    """A catalogue's document."""
    made: dict[str, Any] = {"schema": "triage_error.catalog.v1", "codes": list(entries)}
    return made if aliases is None else {**made, "aliases": aliases}


def catalog(*entries: Any, aliases: Any = None) -> Catalog:
    return make_catalog("c.json", document(*entries, aliases=aliases))


SHOP = document(
    entry("press_jam", "press", ("Paper JAM", "jam at roller")),
    entry("vault_denied", "vault", ("denied", "403")),
    entry("courier_gone", "courier", ()),
)


@pytest.fixture
def shop() -> Catalog:
    return make_catalog("shop.json", SHOP)


@pytest.fixture
def place(quick_path: Path) -> Place:
    """A workspace with a catalogue of its own."""
    (quick_path / "triage").mkdir()
    (quick_path / CODES).write_text(json.dumps(SHOP), "utf-8")
    return Place(quick_path)


Read = Callable[[str], Any]


@pytest.fixture
def load(quick_path: Path) -> Read:
    """`load(name)`: a JSON document of the workspace, or the records of a `.jsonl` file."""

    def read(name: str) -> Any:
        text = (quick_path / name).read_text("utf-8")
        return [json.loads(line) for line in text.splitlines()] if name.endswith(".jsonl") else json.loads(text)

    return read
