"""An example: which files of a target are spoiled and how, and the verbs that are played; drawn, kept, replayed."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fuzz.mutate import Draws, encode, spoiled, structure, value
from tests.fuzz.oracle import steps
from tests.fuzz.stage import SPECIAL, Change, laid, sample
from tests.fuzz.targets import TARGETS, Target

CASES = Path(__file__).parent / "cases"
LAUNCH = {"transport": "headless", "via": "agentkit", "kind": "k", "profile": None, "target": "t", "worktree": "../w",
          "prompt_digest": "sha256:" + "0" * 64, "delegation_id": "d9", "note": "n"}  # fmt: skip
COLLECT = {"delegation_id": "d3", "state": "completed", "result_path": "results/d1.md", "note": "n"}


@dataclass(frozen=True)
class Example:
    target: str
    changes: Mapping[str, Change]
    reads: tuple[tuple[str, ...], ...]
    writes: tuple[tuple[str, ...], ...]
    about: str = ""

    def play(self) -> None:
        """Raises AssertionError, or whatever got out, when an oracle says no."""
        target = TARGETS[self.target]
        with laid(target.lays, self.changes) as stage:
            steps(stage, target.looks, self.reads, self.writes, target.exits)

    def as_json(self) -> str:
        made = {
            "about": self.about,
            "target": self.target,
            "changes": {name: _written(change) for name, change in self.changes.items()},
            "reads": self.reads,
            "writes": self.writes,
        }
        return json.dumps(made, indent=2) + "\n"


def _written(change: Change) -> Any:
    if isinstance(change, str):
        return {"kind": change}
    try:
        return change.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(change).decode("ascii")}


def _read(change: Any) -> Change:
    if isinstance(change, str):
        return change.encode("utf-8")
    if "repeat" in change:
        text, count = change["repeat"]
        return (text * count).encode("utf-8")
    return base64.b64decode(change["base64"]) if "base64" in change else str(change["kind"])


def load(path: Path) -> Example:
    """A kept example; `{"repeat": [text, n]}` stands for a long content."""
    raw = json.loads(path.read_text("utf-8"))
    verbs = [tuple(map(tuple, raw[kind])) for kind in ("reads", "writes")]
    changes = {name: _read(change) for name, change in raw["changes"].items()}
    return Example(raw["target"], changes, verbs[0], verbs[1], raw["about"])


def draw(target: Target, draws: Draws) -> Example:
    """One to three files spoiled, two verbs that read, one or two that write."""
    files = target.files(list(sample()))
    changes: dict[str, Change] = {}
    for _ in range(1 + draws.below(3)):
        name = files[draws.below(len(files))]
        kind = draws.below(16)
        if kind == 0:
            changes[name] = draws.of(SPECIAL)
        elif kind == 1:
            changes[name] = sample().get(files[draws.below(len(files))], b"")
        else:
            before = changes.get(name, sample().get(name, b"{}\n"))
            changes[name] = spoiled(name, before, draws) if isinstance(before, bytes) else before
    # A folder instead of a file has no files below it, and the other way round.
    above = [name for name in changes if any(other.startswith(f"{name}/") for other in (*changes, *sample()))]
    changes = {name: change for name, change in changes.items() if name not in above or change == "gone"}
    reads = tuple(_words(draws.of(target.reads), draws) for _ in range(2))
    writes = tuple(_words(draws.of(target.writes), draws) for _ in range(draws.below(3) if target.writes else 0))
    return Example(target.name, changes, reads, writes)


def _words(verb: str, draws: Draws) -> tuple[str, ...]:
    return tuple(_word(word, draws) for word in verb.split(" "))


def _word(word: str, draws: Draws) -> str:
    match word:
        case "{text}":
            return _argument(draws.text())
        case "{json}":
            return _argument(encode(value(draws)).decode("utf-8", "replace"))
        case "{launch}" | "{collect}":
            payload = LAUNCH if word == "{launch}" else COLLECT
            return _argument(
                encode(structure(payload, draws) if draws.below(2) else payload).decode("utf-8", "replace")
            )
        case "{packet}":
            packet = {"from": "porter", "signal": "RETURN", "run_id": _known("run"), "item_index": 4,
                      "payload": {"result": "ok"}}  # fmt: skip
            return _argument(encode(structure(packet, draws) if draws.below(3) else packet).decode("utf-8", "replace"))
        case "{run}" | "{entry}" | "{proposal}":
            return _known(word.strip("{}"))
    return word


def _argument(text: str) -> str:
    """As an operating system hands it over: no NUL, and what is no UTF-8 in surrogates of bytes."""
    return os.fsdecode(text.replace("\0", "").encode("utf-8", "surrogatepass")[:100_000])


def _known(what: str) -> str:
    """An id of the sample: the run under way, its open question, the proposal."""
    runs = sorted(name for name in sample() if name.startswith("ws/flow/ambient/runs/") and name.endswith(".jsonl"))
    if what == "run":
        return Path(runs[-1]).stem
    name, event, key = (runs[-1], "entry_opened", "id") if what == "entry" else (
        "ws/flow/ambient/learning.jsonl", "proposal_opened", "id")  # fmt: skip
    for line in sample()[name].splitlines():
        record = json.loads(line)
        for item in (record, *(one for one in record.values() if isinstance(one, dict))):
            if isinstance(item.get(key), str) and item[key].startswith(("esc-", "prop-")):
                found: str = item[key]
                return found
    raise LookupError(event)
