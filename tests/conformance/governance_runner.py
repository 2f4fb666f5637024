"""Runs the cases of `vectors/governance.json`: a fresh folder, a command, what comes out (docs/specs/governance.md)."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.triage.rules import is_minted
from core.triage.store import shipped
from tests.conftest import console_script
from tui.cli import main

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent / "vectors" / "governance.json").read_text("utf-8"))
KEYS = {"code", "severity", "cause", "next_command", "where"}


@dataclass(frozen=True)
class Result:
    """What a command left: exit code, stdout, stderr."""

    code: int
    out: str
    err: str


Call = Callable[[list[str], str], Result]


def lay(folder: Path, files: Mapping[str, Any]) -> None:
    """Write the files of a case."""
    for name, content in files.items():
        path = folder / name
        if isinstance(content, dict) and "$dir" in content:
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, dict) and "$symlink" in content:
            path.symlink_to(content["$symlink"])
        else:
            path.write_bytes(_bytes(content))


def _bytes(content: Any) -> bytes:
    if isinstance(content, str):
        return content.encode("utf-8")
    if isinstance(content, dict):
        if "$fixture" in content:
            return _bytes(VECTORS["fixtures"][content["$fixture"]])
        if "$hex" in content:
            return bytes.fromhex(content["$hex"])
        if "$repeat" in content:
            text, count = content["$repeat"]
            return (text * count).encode("utf-8")
    return (json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode("utf-8")


def in_process(argv: list[str], stdin: str) -> Result:
    """The verbs' own entry point, in this process and the current folder."""
    out = io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace", write_through=True)
    err = io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace", write_through=True)
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(stdin.encode("utf-8")), "utf-8")
    try:
        with redirect_stdout(out), redirect_stderr(err):
            code = main(argv)
    finally:
        sys.stdin = before
    return Result(code, _text(out), _text(err))


def _text(stream: io.TextIOWrapper) -> str:
    raw = stream.detach()
    assert isinstance(raw, io.BytesIO)
    return raw.getvalue().decode("utf-8")


def as_process(argv: list[str], stdin: str) -> Result:
    """The console script, as a process of its own."""
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    made = subprocess.run(
        [console_script(), *argv],
        input=stdin.encode("utf-8"),
        env=environment,
        capture_output=True,
        timeout=120,
        check=False,
    )
    return Result(made.returncode, made.stdout.decode("utf-8"), made.stderr.decode("utf-8"))


def play(case: Mapping[str, Any], folder: Path, call: Call) -> None:
    """One case in the current folder, which is `folder` and empty."""
    lay(folder, case.get("files", {}))
    for step in case.get("steps", [case]):
        argv = [*step["command"], "-o", "json"]
        stdin = step.get("stdin", "")
        if "parallel" in step:
            with ThreadPoolExecutor(step["parallel"]) as pool:
                results = list(pool.map(as_process, [argv] * step["parallel"], [stdin] * step["parallel"]))
        else:
            results = [call(argv, stdin)]
        for result in results:
            meets(result, step["expect"])
        for wanted in step.get("exactly", []):
            count = sum(not differences(json.loads(result.out), wanted["json"]) for result in results)
            assert count == wanted["count"], f"{count} outputs match {wanted['json']}"
    for name, wanted in case.get("after", {}).items():
        path = folder / name
        if wanted is None:
            assert not path.exists(), f"{name} must not exist"
        else:
            assert not (found := differences(_load(path), wanted)), f"{name}: {found}"


def _load(path: Path) -> Any:
    text = path.read_text("utf-8")
    if path.suffix == ".json":
        return json.loads(text)
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    return text


def meets(result: Result, expect: Mapping[str, Any]) -> None:
    """Exit code, output and everything that holds for every case."""
    told = f"exit {result.code}\n{result.out}\n{result.err}"
    codes = expect["exit"] if isinstance(expect["exit"], list) else [expect["exit"]]
    assert "Traceback" not in result.err, told
    assert result.code in codes, told
    if "json" not in expect:
        return
    document = json.loads(result.out)
    assert isinstance(document, dict), told
    found = differences(document, expect["json"])
    assert not found, f"{found}\n{told}"
    if set(expect["json"]) <= {"$text", "$not_text"}:
        return
    findings = document.get("findings", [])
    known = shipped().by_code
    for item in findings:
        assert set(item) == KEYS, told
        assert item["severity"] in ("error", "warning"), told
        assert item["code"] in known or is_minted(item["code"]), f"{item['code']} is in no catalogue\n{told}"
        assert item["cause"].strip(), told
        assert item["next_command"] is None or item["next_command"].strip(), told
    assert (result.code == 2) == any(item["severity"] == "error" for item in findings), told


def differences(actual: Any, wanted: Any, place: str = "") -> str | None:
    """Why a value does not match, or None when it does."""
    if isinstance(wanted, dict):
        if operators := {key: value for key, value in wanted.items() if key.startswith("$")}:
            found = next(
                (why for key, value in operators.items() if (why := _operator(key, value, actual, place))), None
            )
            if found is not None:
                return found
        plain = {key: value for key, value in wanted.items() if key not in operators}
        if plain and not isinstance(actual, dict):
            return f"{place} is no object: {actual!r}"
        for key, value in plain.items():
            if isinstance(value, dict) and value.get("$absent") is True:
                if key in actual:
                    return f"{place}/{key} must be absent"
            elif key not in actual:
                return f"{place}/{key} is missing"
            elif (why := differences(actual[key], value, f"{place}/{key}")) is not None:
                return why
        return None
    if isinstance(wanted, list):
        if not isinstance(actual, list) or len(actual) != len(wanted):
            return f"{place} is {actual!r}, not a list of {len(wanted)}"
        pairs = enumerate(zip(actual, wanted, strict=True))
        return next((why for n, (a, w) in pairs if (why := differences(a, w, f"{place}/{n}"))), None)
    same = actual == wanted and isinstance(actual, bool) == isinstance(wanted, bool)
    return None if same else f"{place} is {actual!r}, not {wanted!r}"


def _operator(name: str, wanted: Any, actual: Any, place: str) -> str | None:
    text = actual if isinstance(actual, str) else json.dumps(actual, ensure_ascii=False)
    texts = wanted if isinstance(wanted, list) else [wanted]
    items = actual if isinstance(actual, list) else []
    match name:
        case "$keys":
            good = isinstance(actual, dict) and sorted(actual) == sorted(wanted)
        case "$contains":
            good = isinstance(actual, list) and all(any(not differences(item, one) for item in items) for one in wanted)
        case "$lacks":
            good = isinstance(actual, list) and all(differences(item, wanted) for item in items)
        case "$first":
            good = bool(items) and not differences(items[0], wanted)
        case "$len":
            good = hasattr(actual, "__len__") and len(actual) == wanted
        case "$text":
            good = all(one in text for one in texts)
        case "$not_text":
            good = not any(one in text for one in texts)
        case "$any":
            good = any(not differences(actual, one) for one in wanted)
        case _:
            raise AssertionError(f"no such operator: {name}")
    return None if good else f"{place} {name} {wanted!r}: {actual!r}"
