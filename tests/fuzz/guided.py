"""One target under a coverage-guided fuzzer: `python -m tests.fuzz.guided TARGET [libFuzzer flags]`.

Needs `pip install atheris` (Linux). Inputs are the choices of the same strategies as elsewhere; the modules of the
product are instrumented, so that inputs which reach new code are kept and varied. It ends at the first failure, which
is written as a case (`COLLAB_FUZZ_FOUND`), or after `-max_total_time=SECONDS`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import atheris  # type: ignore[import-not-found, unused-ignore]

with atheris.instrument_imports(include=["core", "tui"]):
    from hypothesis import HealthCheck, given, settings
    from hypothesis import strategies as st

    from tests.fuzz.targets import TARGETS
    from tests.fuzz.test_fuzz import play


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in TARGETS:
        sys.exit(f"which target? {', '.join(TARGETS)}")

    @settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def run(data: st.DataObject) -> None:
        play(data, name)

    with tempfile.TemporaryDirectory(prefix="collab-fuzz-home-") as home:
        os.environ.update(HOME=home, COLLAB_STATE=str(Path(home) / "state"), COLLAB_CONFIG=str(Path(home) / "config"))
        flags = ["-len_control=0", "-max_len=2048", *sys.argv[2:]]
        atheris.Setup([sys.argv[0], *flags], run.hypothesis.fuzz_one_input)  # type: ignore[attr-defined]
        atheris.Fuzz()


if __name__ == "__main__":
    main()
