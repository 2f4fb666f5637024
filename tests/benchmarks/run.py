"""The benchmark command: one table, each row beside its baseline in the same run.

.venv/bin/python tests/benchmarks/run.py              every row
.venv/bin/python tests/benchmarks/run.py --row append one row (or several)
.venv/bin/python tests/benchmarks/run.py --row validate --profile   where its time goes
COLLAB_TABLES=docs/held.md .venv/bin/python tests/benchmarks/run.py  every row, written there too
"""

from __future__ import annotations

import argparse
import cProfile
import os
import platform
import pstats
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))

import rows_acp
import rows_console
import rows_delegation
import rows_long
import rows_triage
import rows_workflow
from harness import Row

from tests.tables import publish

ROWS: dict[str, Callable[[], Row | list[Row]]] = {
    "append": rows_acp.append_row,
    "collaboration": rows_acp.collaboration_row,
    "wait": rows_acp.wait_row,
    "validate": rows_acp.validate_rows,
    "console": rows_console.many_rows,
    "live": rows_console.live_row,
    "document": rows_console.big_document_rows,
    "delegation": rows_delegation.delegation_rows,
    "long": rows_long.long_rows,
    "triage": rows_triage.triage_rows,
    "workflow": rows_workflow.workflow_rows,
}


def table(rows: Sequence[Row]) -> str:
    lines = ["| what | ours | baseline | ratio | budget | holds |", "|---|---|---|---|---|---|"]
    words = {True: "yes", False: "NO", None: "–"}
    lines += [f"| {r.name} | {r.ours} | {r.baseline} | {r.ratio} | {r.budget} | {words[r.holds]} |" for r in rows]
    return "\n".join(lines)


def machine() -> str:
    model = next((line.split(":", 1)[1].strip() for line in _cpuinfo() if line.startswith("model name")), "")
    return (
        f"{os.cpu_count()} cores {model or platform.machine()}, Python {platform.python_version()}, {platform.system()}"
    )


def _cpuinfo() -> list[str]:
    try:
        return Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--row", action="append", choices=sorted(ROWS), help="only this row; repeat")
    parser.add_argument("--profile", action="store_true", help="run the row under cProfile and print the top")
    args = parser.parse_args()
    made: list[Row] = []
    for name in args.row or ROWS:
        profile = cProfile.Profile() if args.profile else None
        if profile is not None:
            profile.enable()
        found = ROWS[name]()
        if profile is not None:
            profile.disable()
            pstats.Stats(profile).sort_stats("cumulative").print_stats(30)
        made += found if isinstance(found, list) else [found]
        print(f"  {name}: done", file=sys.stderr)
    shown = f"{table(made)}\n\n{machine()}"
    print(shown)
    if not args.row:
        publish("budgets", shown)
    return 1 if any(row.holds is False for row in made) else 0


if __name__ == "__main__":
    sys.exit(main())
