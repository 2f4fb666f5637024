"""Plays `vectors/acp.json`: builds folders, fills documents, runs verbs and compares (docs/specs/acp.md).

A verb is run by a `Call`: `argv -> (exit status, stdout, stderr)`, in this process or in one of its own.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent / "vectors" / "acp.json").read_text(encoding="utf-8"))
STATE = ("currentPhase", "proposalOwner", "waitingFor")


@dataclass(frozen=True)
class Result:
    status: int
    out: str
    err: str


Call = Callable[[list[str]], Result]


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    made = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            made.pop(key, None)
        else:
            made[key] = merge_patch(made.get(key), value)
    return made


def _protocol(folder: str) -> str:
    return f"{folder}/protocol.json" if folder else "protocol.json"


def _change(files: dict[str, str], folder: str, changes: dict[str, Any]) -> dict[str, str]:
    for path, text in changes.get("files", {}).items():
        if text is None:
            del files[path]
        else:
            files[path] = text
    for path, pairs in changes.get("edit", {}).items():
        for old, new in pairs:
            assert old in files[path], f"{old!r} is not in {path}"
            files[path] = files[path].replace(old, new)
    if "patch" in changes:
        name = _protocol(folder)
        patched = merge_patch(json.loads(files[name]), changes["patch"])
        files[name] = json.dumps(patched, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
    if "events" in changes:
        name = f"{folder}/events.jsonl" if folder else "events.jsonl"
        lines = files[name].split("\n")
        for number, patch in changes["events"].items():
            record = merge_patch(json.loads(lines[int(number) - 1]), patch)
            lines[int(number) - 1] = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
        files[name] = "\n".join(lines)
    for path, text in changes.get("append", {}).items():
        files[path] = files.get(path, "") + text
    return files


def folder_files(name: str) -> tuple[dict[str, str], str]:
    """The files of a named folder and the collaboration folder below their root."""
    made = VECTORS["folders"][name]
    if "from" not in made:
        return dict(made["files"]), made.get("folder", "")
    files, folder = folder_files(made["from"])
    return _change(files, folder, made), folder


def write_files(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode("utf-8"))


def build(root: Path, name: str, changes: dict[str, Any] | None = None) -> Path:
    """Write a named folder below `root`, with changes; the collaboration folder."""
    files, folder = folder_files(name)
    write_files(root, _change(files, folder, changes or {}))
    return root / folder if folder else root


class Walk:
    """One walk, step by step, in a folder of its own."""

    def __init__(self, walk: dict[str, Any], root: Path) -> None:
        self.walk = walk
        self.folder = build(root, walk["folder"])

    def play(self, call: Call) -> None:
        for number, step in enumerate(self.walk["steps"], start=1):
            self.step(step, call, f"{self.walk['id']} step {number}")
        end = self.walk.get("end", {}).get("validate")
        if end is not None:
            check_validate(self.folder, call, end, self.walk["id"])

    def prepare(self, step: dict[str, Any]) -> list[str]:
        """Write the step's documents; the arguments of its command."""
        for variant in step.get("write", ()):
            self._write(variant, step)
        argv = ["append", "--folder", str(self.folder)]
        given = {**step, "summary": step.get("summary", f"Step: {step['event']}.")}
        if given.get("sha256") == "match":
            given["sha256"] = _digest(self._behind(step["doc"]))
        for key in ("participant", "event", "summary", "doc", "reply_to", "role", "sha256"):
            if given.get(key) is not None:
                argv += [f"--{key.replace('_', '-')}", str(given[key])]
        return argv

    def step(self, step: dict[str, Any], call: Call, label: str) -> None:
        argv = self.prepare(step)
        log_before, state_before = self.log(), self.state()
        result = call(argv)
        check_quiet(result, label)
        log_after = self.log()
        if step["outcome"] == "refused":
            assert result.status == 2, f"{label}: {result}"
            assert any(line.startswith("error: ") for line in result.err.splitlines()), f"{label}: {result}"
            assert log_after == log_before, label
            assert self.state() == state_before, label
            return
        assert result.status == 0, f"{label}: {result}"
        seq = len(log_before.splitlines()) + 1
        assert f"appended seq {seq}: {step['event']}" in result.out.splitlines(), f"{label}: {result}"
        assert log_after.startswith(log_before), label
        added = log_after[len(log_before) :].decode("utf-8")
        assert added.endswith("\n"), label
        assert added.count("\n") == 1, label
        wanted = {"seq": seq, "from": step["participant"], "event": step["event"], "summary": _of(argv, "--summary")}
        for key in ("doc", "reply_to", "role"):
            if step.get(key) is not None:
                wanted[key] = step[key]
        if step.get("sha256") is not None:
            wanted["sha256"] = _of(argv, "--sha256")
        record = json.loads(added)
        at = record.pop("at")
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", at), f"{label}: {at}"
        assert record == wanted, label
        assert self.state() == {key: step[key] for key in STATE}, label

    def log(self) -> bytes:
        return (self.folder / "events.jsonl").read_bytes()

    def state(self) -> dict[str, Any]:
        protocol = self._protocol()
        return {key: protocol.get(key) for key in STATE}

    def _protocol(self) -> dict[str, Any]:
        made: dict[str, Any] = json.loads((self.folder / "protocol.json").read_text(encoding="utf-8"))
        return made

    def _primary(self) -> tuple[str, str]:
        """(reference, type) of the primary deliverable; blank in schema 1."""
        declared = self._protocol().get("deliverables")
        if declared is None:
            return "", ""
        file = declared["primary"]["file"]
        external = declared["mode"] == "external"
        return (f"external:{file}" if external else f"{declared['dir']}/{file}"), declared["primary"]["type"]

    def _behind(self, ref: str) -> Path:
        if not ref.startswith("external:"):
            return self.folder / ref
        protocol = self._protocol()
        return self.folder / protocol["repoRoot"] / protocol["deliverables"]["dir"] / ref.removeprefix("external:")

    def _gates(self) -> list[str]:
        listed = self._protocol()["completionGates"]
        return [gate["text"] if isinstance(gate, dict) else gate for gate in listed]

    def _write(self, variant: str, step: dict[str, Any]) -> None:
        document = VECTORS["documents"][variant]
        text = self._fill(document["text"], step)
        file = self._fill(document["file"], step)
        target = self._behind(file)
        target.parent.mkdir(parents=True, exist_ok=True)
        data = text.encode("utf-8")
        if document.get("mode") == "append" and target.exists():
            data = target.read_bytes() + data
        target.write_bytes(data)

    def _fill(self, text: str, step: dict[str, Any]) -> str:
        last = len(self.log().splitlines())
        ref, kind = self._primary()
        gates = self._gates()
        for word, chosen in (("gates", gates), ("first_gate", gates[:1]), ("other_gates", gates[1:])):
            text = re.sub(
                rf"\{{\{{{word}:(.*?)\}}\}}",
                lambda match, chosen=chosen: "\n".join(match[1].replace("%", gate) for gate in chosen),
                text,
            )
        plain = {"seq": str(last + 1), "last": str(last), "participant": step["participant"], "ref": ref, "type": kind}
        for word, value in plain.items():
            text = text.replace("{{" + word + "}}", value)
        if "{{sha256}}" in text:
            text = text.replace("{{sha256}}", _digest(self._behind(ref)))
        assert "{{" not in text, text
        return text


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _of(argv: list[str], flag: str) -> str:
    return argv[argv.index(flag) + 1]


def check_quiet(result: Result, label: str) -> None:
    assert "Traceback" not in result.err, f"{label}: {result.err}"


def check_validate(folder: Path, call: Call, status: int, label: str) -> None:
    """`collab validate` gives the status, with a line of that severity; the folder stays as it was."""
    before = {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    result = call(["validate", "--folder", str(folder)])
    check_quiet(result, label)
    assert result.status == status, f"{label}: {result}"
    starts = {2: "ERROR: ", 1: "WARNING: "}.get(status)
    lines = result.out.splitlines()
    if starts is not None:
        assert any(line.startswith(starts) for line in lines), f"{label}: {result}"
    if status < 2:
        assert not any(line.startswith("ERROR: ") for line in lines), f"{label}: {result}"
    after = {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    assert after == before, f"{label}: validate wrote into the folder"
