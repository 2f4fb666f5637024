"""`{{name}}` in files and in a completion's payload: filled once, never read again (docs/specs/workflows.md §3)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from core.workflow.yaml_quoting import TEMPLATE

VARIABLES = (
    "item",
    "index",
    "total",
    "workflow",
    "run_id",
    "success_count",
    "fail_count",
    "error_count",
    "skipped_count",
)


def unknown(text: str) -> list[str]:
    """The names in a text that are no variables."""
    return [name for name in (match[1].strip() for match in TEMPLATE.finditer(text)) if name not in VARIABLES]


def fill(text: str, values: Mapping[str, object]) -> str:
    """The text with every variable replaced; what is filled in is not looked at again."""

    def one(match: re.Match[str]) -> str:
        name = match[1].strip()
        return str(values[name]) if name in values else match[0]

    return TEMPLATE.sub(one, text) if "{{" in text else text


def fill_all(value: Any, values: Mapping[str, object]) -> Any:
    """Every text inside plain data filled."""
    if isinstance(value, str):
        return fill(value, values)
    if isinstance(value, list):
        return [fill_all(item, values) for item in value]
    if isinstance(value, dict):
        return {key: fill_all(item, values) for key, item in value.items()}
    return value
