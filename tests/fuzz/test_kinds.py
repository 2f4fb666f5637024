"""Faults that were found once, looked for in the whole of the source: the kind, not the case."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from core.clock import local, parse
from tests.conftest import console_script
from tests.fuzz.oracle import call

HERE = Path(__file__).parents[2]
SOURCES = sorted(path for part in ("core", "tui") for path in (HERE / part).rglob("*.py"))
READS_ITSELF = {
    "core/files.py": "the one place that opens what is untrusted",
    "core/delegation/addons.py": "the descriptors that we ship",
    "tui/cli/__init__.py": "the null device",
    "tui/forms/editor.py": "its own temporary folder",
}
"""Files that may open a path plainly, which waits at a pipe and follows links."""
OWN_DATA = {
    "core/acp/vocabulary.py": "shipped",
    "core/strict.py": "`loads` says that it raises RecursionError, its callers are looked at here too",
    "tui/cli/demo.py": "shipped",
    "tui/cli/demo_plan.py": "shipped",
}
"""Files that parse what nobody else writes."""


@cache
def trees() -> tuple[tuple[str, ast.Module], ...]:
    """Every module of the product, by its path."""
    return tuple((str(path.relative_to(HERE)), ast.parse(path.read_text("utf-8"))) for path in SOURCES)


def calls(tree: ast.AST) -> Iterator[tuple[ast.Call, str, str]]:
    """(call, the object that it is a method of, name)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                yield node, ast.unparse(node.func.value), node.func.attr
            elif isinstance(node.func, ast.Name):
                yield node, "", node.func.id


def found(wrong: Callable[[ast.Call, str, str], bool], but: Mapping[str, str]) -> list[str]:
    """Where the product calls what it must not call, `but` for some files."""
    return [
        f"{path}:{node.lineno}: {owner}.{name}"
        for path, tree in trees()
        if path not in but
        for node, owner, name in calls(tree)
        if wrong(node, owner, name)
    ]


def test_no_path_is_opened_plainly() -> None:
    """A pipe in a file's place would be waited for, a link followed: paths are opened by `core.files` alone."""

    def plain(node: ast.Call, owner: str, name: str) -> bool:
        if name in ("read_bytes", "read_text"):
            return True
        if name != "open" or owner == "os":
            return False
        # Widgets and readers have methods of that name too.
        mode = node.args[0] if node.args else None
        return not owner or (isinstance(mode, ast.Constant) and mode.value in ("r", "rb", "w", "wb"))

    assert not found(plain, READS_ITSELF)


def test_whoever_parses_bears_depth() -> None:
    """JSON and TOML that nest deeply raise RecursionError, which is no ValueError."""
    borne = {
        id(inner)
        for _, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Try)
        for handler in node.handlers
        if handler.type is None or "RecursionError" in ast.unparse(handler.type)
        for part in node.body
        for inner in ast.walk(part)
    }

    def shallow(node: ast.Call, owner: str, name: str) -> bool:
        return name == "loads" and owner in ("json", "tomllib", "strict") and id(node) not in borne

    assert not found(shallow, OWN_DATA)


def test_whoever_parses_bears_long_numbers() -> None:
    """A number of more than 4300 digits raises ValueError itself, not the parser's own kind of it."""
    narrow = [
        f"{path}:{node.lineno}"
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Try)
        and any(
            name == "loads" and owner in ("json", "tomllib") for part in node.body for _, owner, name in calls(part)
        )
        and not any(
            handler.type is None or re.search(r"\bValueError\b|NOT_ONE", ast.unparse(handler.type))
            for handler in node.handlers
        )
    ]
    assert not narrow


def test_local_time_is_asked_of_one_place() -> None:
    """The first and last day of the calendar do not exist everywhere: `core.clock` bears that."""

    def local_time(node: ast.Call, owner: str, name: str) -> bool:
        local = name in ("astimezone", "localtime", "fromtimestamp")
        return local and not any("UTC" in ast.unparse(one) for one in node.args)

    assert not found(local_time, {"core/clock.py": "that place"})


def test_the_kinds_would_be_found() -> None:
    """Each rule on a line that breaks it."""
    bad = ast.parse("json.loads(x)\npath.read_bytes()\nopen(x)\npath.open('rb')\nmoment.astimezone()\n")
    assert [name for _, _, name in calls(bad)] == ["loads", "read_bytes", "open", "open", "astimezone"]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Pacific/Kiritimati", "Europe/Paris"])
@pytest.mark.parametrize("at", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-10-25T00:30:00Z"])
def test_every_moment_has_a_local_time(zone: str, at: str) -> None:
    assert re.fullmatch(r"\d\d:\d\d", local(parse(at), "%H:%M", zone=ZoneInfo(zone)))


def test_the_hour_that_comes_twice_keeps_its_order() -> None:
    """Two moments an hour apart look alike where clocks are put back; what is compared is UTC."""
    first, second = parse("2026-10-25T02:30:00+02:00"), parse("2026-10-25T02:30:00+01:00")
    assert first is not None
    assert second is not None
    assert (second - first).total_seconds() == 3600
    shown = [local(one, "%H:%M", zone=ZoneInfo("Europe/Paris")) for one in (first, second)]
    assert shown == ["02:30", "02:30"]


PIPED = (
    "envelope validate pipe",
    "envelope wrap pipe --receipt-id r --producer p",
    "envelope resolve pipe --receipts .",
    "status validate pipe",
    "status check pipe",
    "status check text --ledger pipe",
    "status compile text --commands pipe",
    "status render pipe",
    "goal validate pipe",
    "goal hash pipe",
    "members validate pipe",
    "triage classify --receipt pipe",
    "triage catalog --catalog pipe",
    "workflow check pipe",
    "workflow simulate text --script pipe",
    "submit --folder talk --as server --file pipe",
    "ledger --plan plan materialize --contract pipe",
    "ledger --plan plan delegate launch --task T --prompt-file pipe",
    "ledger --plan plan append --type note --json {} --actor-kind human --human-note pipe",
)


@pytest.mark.parametrize("verb", PIPED)
def test_no_verb_waits_for_a_pipe_that_stands_for_a_file(
    verb: str, make_folder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_folder()
    (tmp_path / "plan").mkdir()
    (tmp_path / "text").write_text("{}")
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)
    result = call(verb.split(" "))
    assert result.status in (1, 2)
    assert "named pipe" in result.out + result.err


def test_what_a_shell_substitutes_is_read(collab: Any, tmp_path: Path) -> None:
    read, write = os.pipe()
    os.write(write, b"tests timed out")
    os.close(write)
    script = [console_script(), "triage", "classify", "--receipt", f"/dev/fd/{read}", "-o", "json"]
    made = subprocess.run(script, pass_fds=[read], capture_output=True, encoding="utf-8", cwd=tmp_path, check=True)
    os.close(read)
    assert json.loads(made.stdout)["code"]
