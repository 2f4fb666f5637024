"""How many faults were tried: `python -m tests.faults.table [WORDS]` prints a Markdown table (docs/held.md).

Each row is a writing verb; it is run again and again, killed or failed at each of its points in turn. `lost` counts
lines of logs that were there before, or were acknowledged, and are not there afterwards; for workflows and triage after
the next writer has mended what there was to mend. WORDS choose rows by their names; without any, all are run.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.faults import test_acp as acp
from tests.faults import test_ledger as ledger
from tests.faults.acts import ACTS, copied, filled, quiet
from tests.tables import publish

MODES = {"kill": "killed", "ENOSPC": "disk full", "EIO": "I/O error", "EACCES": "no permission"}


@dataclass
class Row:
    """What became of one verb: by mode the number of points, and what was lost."""

    system: str
    verb: str
    points: dict[str, int] = field(default_factory=dict)
    lost: int = 0

    def line(self) -> str:
        counts = (str(self.points.get(mode, "–")) for mode in MODES)
        return f"| {self.system} | {self.verb} | {' | '.join(counts)} | {self.lost} |"


def missing(before: list[Any], after: list[Any], wrote: int, acknowledged: bool) -> int:
    """Lines that are gone, or were said to be written and are not."""
    gone = sum(line not in after for line in before)
    return gone + (wrote if acknowledged and len(after) < len(before) + wrote else 0)


def in_modes(modes: tuple[str, ...], scratch: Path, run: Callable[[str], list[dict[str, Any]]]) -> Mapping[str, Any]:
    """All runs of a verb by mode, but the last of each, which is undisturbed."""
    for mode in modes:
        (scratch / mode).mkdir(parents=True)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return dict(zip(modes, (runs[:-1] for runs in pool.map(run, modes)), strict=True))


def collaborations(scratch: Path, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """The verbs of test_acp.py."""
    texts, folder = scratch / "texts", scratch / "way"
    texts.mkdir()
    for name, text in (("proposal", acp.PROPOSAL), ("revised", acp.PROPOSAL + "\nRevised.\n"),
                       ("decisions", acp.DECISIONS), ("accepted", acp.DECISIONS + "- And this.\n")):  # fmt: skip
        (texts / f"{name}.md").write_text(text)
    assert quiet([word.replace("{folder}", str(folder)) for word in acp.INIT]) == 0
    starts = {verb.name: folder for verb in acp.RAW}
    for verb in acp.WAY:
        starts[verb.name] = copied(folder, scratch / "at" / verb.name)
        assert quiet(acp.words(verb, texts, folder)) == 0
    starts |= {verb.name: copied(starts["submit"], scratch / "at" / verb.name) for verb in acp.RAW}
    new = copied(starts["submit"], scratch / "at" / "again")
    blocked = copied(starts["submit"], scratch / "at" / "blocked")
    assert quiet(["block", "--folder", str(blocked), "--as", "server", "--reason", "Over"]) == 0
    torn = copied(starts["submit"], scratch / "at" / "torn")
    with (torn / "events.jsonl").open("ab") as log:
        log.write(b'{"seq":2,')
    with contextlib.redirect_stdout(io.StringIO()):
        starts[acp.DRAFT.name] = acp.to_draft(scratch / "draft" / "talk", texts)
        for verb in acp.FREEZES:
            starts[verb.name] = acp.to_readiness(scratch / "v2" / verb.name / "whole", verb.place)
    verbs = (*acp.RAW, *acp.WAY, acp.DRAFT, *acp.FREEZES)
    acts = [(verb.name, starts[verb.name], verb.place, acp.words(verb, texts, "{folder}"), 1) for verb in verbs]
    acts += [
        ("init", scratch / "nothing", "", acp.INIT, 1),
        ("new round", new, "next", ["new-round", "--from", str(blocked), "--folder", "{folder}/next"], 1),
        ("deliverable add", starts["draft"], "", [acp.ADD[0], "--folder", "{folder}", *acp.ADD[1:]], 0),
        ("repair", torn, "", ["repair", "--folder", "{folder}"], 0),
    ]
    for name, start, inside, argv, wrote in acts:
        if not wanted(f"acp {name}"):
            continue
        row, place = Row("collaboration", name), scratch / "runs" / name
        played = in_modes(acp.MODES, place, lambda m, p=place, s=start, a=argv: acp.harness(m, p / m, s, a))
        before = lines(start / inside / "events.jsonl")
        for mode, runs in played.items():
            row.points[mode] = len(runs)
            for run in runs:
                after = lines(place / mode / str(run["n"]) / start.name / inside / "events.jsonl")
                row.lost += missing(before, after, wrote, run["status"] == 0)
        yield row


def plans(scratch: Path, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """The verbs of test_ledger.py."""
    for verb in ledger.TABLE:
        if not wanted(f"delegation {verb.name}"):
            continue
        row, place = Row("plan", verb.name), scratch / "plans" / verb.name
        template = ledger.stage(verb, made(place / "template"))
        argv = ("ledger", "--plan", f"{{stage}}/{ledger.PLAN}", *verb.argv)
        played = in_modes(ledger.MODES, place, lambda m, p=place, t=template, a=argv: ledger.harness(m, p / m, t, a))
        before = ledger.whole(template / ledger.PLAN)
        for mode, runs in played.items():
            row.points[mode] = len(runs)
            for run in runs:
                after = ledger.whole(place / mode / str(run["n"]) / ledger.PLAN)
                row.lost += missing(before, after, len(verb.types), run["status"] == verb.status)
        yield row


def others(scratch: Path, wanted: Callable[[str], bool]) -> Iterator[Row]:
    """Acts of the other systems, by the harness of collaborations."""
    for number, act in enumerate(ACTS):
        if not wanted(f"{act.system} {act.name}"):
            continue
        row, place, template = Row(act.system, act.name), scratch / str(number), scratch / f"start{number}" / "work"
        named = act.made(template)
        words = filled(act.argv, "{folder}", named)
        played = in_modes(acp.MODES, place, lambda m, p=place, t=template, w=words: acp.harness(m, p / m, t, w))
        before = every_line(template)
        for mode, runs in played.items():
            row.points[mode] = len(runs)
            for one in runs:
                folder = place / mode / str(one["n"]) / template.name
                assert quiet(filled(act.after or act.argv, folder, named)) in (0, 2)
                row.lost += missing(before, every_line(folder), 0, False)
        yield row


def every_line(root: Path) -> list[Any]:
    """The whole lines of all logs of a root; an index that can be made again is none."""
    return [(log.name, line) for log in sorted(root.rglob("*.jsonl")) if log.name[0] != "." for line in lines(log)]


def made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def lines(log: Path) -> list[Any]:
    """The whole lines of a log, if there is one; what a killed writer left of a line is none yet."""
    if not log.exists():
        return []
    return [json.loads(line) for line in log.read_bytes().split(b"\n")[:-1]]


def table(words: list[str]) -> int:
    """Print it; 1 when anything was lost."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    rows: list[Row] = []
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(dir=memory, prefix="collab-faults-"))
        home = {"HOME": scratch, "COLLAB_STATE": f"{scratch}/state", "COLLAB_CONFIG": f"{scratch}/config.toml"}
        stack.enter_context(patch.dict(os.environ, home))
        head = f"| system | verb | {' | '.join(MODES.values())} | lost |\n|---|---|{'---:|' * (len(MODES) + 1)}"
        print(head)

        def wanted(name: str) -> bool:
            return not words or any(word in name for word in words)

        for make in (collaborations, plans, others):
            for row in make(made(Path(scratch) / make.__name__), wanted):
                rows.append(row)
                print(row.line(), flush=True)
    sums = (str(sum(row.points.get(mode, 0) for row in rows)) for mode in MODES)
    lost = sum(row.lost for row in rows)
    last = f"| **all** | {len(rows)} verbs | {' | '.join(sums)} | {lost} |"
    print(last)
    if not words:
        publish("faults", "\n".join((head, *(row.line() for row in rows), last)))
    return int(lost > 0)


if __name__ == "__main__":
    sys.exit(table(sys.argv[1:]))
