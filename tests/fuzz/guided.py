"""Targets under a coverage-guided fuzzer: `python -m tests.fuzz.guided TARGET [libFuzzer flags]`.

Needs `pip install atheris` (Linux). Inputs are the choices of the same strategies as elsewhere; the modules of the
product are instrumented, so that inputs which reach new code are kept and varied. It ends at the first failure, which
is written as a case (`COLLAB_FUZZ_FOUND`), or after `-max_total_time=SECONDS`.
`python -m tests.fuzz.guided --all SECONDS` gives each target as long in a process of its own, and prints a table.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.tables import publish_row

HEAD = "| target | inputs tried | seconds | places reached | found |\n|---|---:|---:|---:|---:|"


def fuzz(name: str, flags: list[str]) -> None:
    """One target, until something is found or the time is over; ends the process."""
    import atheris  # type: ignore[import-not-found, unused-ignore]

    with atheris.instrument_imports(include=["core", "tui"]):
        from hypothesis import HealthCheck, given, settings
        from hypothesis import strategies as st

        from tests.fuzz.targets import TARGETS
        from tests.fuzz.test_fuzz import play
    if name not in TARGETS:
        sys.exit(f"which target? {', '.join(TARGETS)}")

    @settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def run(data: st.DataObject) -> None:
        play(data, name)

    with tempfile.TemporaryDirectory(prefix="collab-fuzz-home-") as home:
        os.environ.update(HOME=home, COLLAB_STATE=str(Path(home) / "state"), COLLAB_CONFIG=str(Path(home) / "config"))
        atheris.Setup(
            [sys.argv[0], "-len_control=0", "-max_len=2048", *flags],
            run.hypothesis.fuzz_one_input,  # type: ignore[attr-defined]
        )
        atheris.Fuzz()


def every(seconds: int) -> int:
    """All targets one after another; 1 when something was found."""
    from tests.fuzz.targets import TARGETS

    print(HEAD)
    found = 0
    for name in TARGETS:
        argv = [sys.executable, "-m", "tests.fuzz.guided", name, f"-max_total_time={seconds}"]
        ended = subprocess.run(argv, capture_output=True, encoding="utf-8", errors="replace", check=False)
        runs = re.search(r"Done (\d+) runs", ended.stderr)
        reached = re.findall(r" cov: (\d+) ", ended.stderr)
        row = f"| {name} | {runs[1] if runs else 0} | {seconds} | {reached[-1] if reached else '–'} | {int(not runs)} |"
        print(row, flush=True)
        if runs is None:
            found = 1
            sys.stderr.write(ended.stdout[-4000:] + ended.stderr[-4000:])
        publish_row("guided", row)
    return found


def main() -> int:
    words = sys.argv[1:]
    if words[:1] == ["--all"]:
        return every(int(words[1]) if words[1:] else 300)
    fuzz(words[0] if words else "", words[1:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
