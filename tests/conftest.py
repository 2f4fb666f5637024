"""What every test stands on: a clock that stands still, folders made by the product, and nobody's home."""

from __future__ import annotations

import gc
import os
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from core.acp.templates import initialize

# The same examples on every machine, however busy it is.
settings.register_profile(
    "suite", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")

START = datetime(2026, 3, 1, 9, 0, 0, tzinfo=UTC)


class FixedClock:
    """Says the same moment until it is told another one."""

    def __init__(self, moment: datetime = START) -> None:
        self.moment = moment

    def now(self) -> datetime:
        return self.moment

    def step(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The next home, at hand at once: a folder of thousands is slow to look through for the next number."""
    top = tmp_path_factory.mktemp("homes")
    return (top / str(number) for number in count())


@pytest.fixture(autouse=True)
def own_home(homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """HOME, state and configuration of a person who has never run the product, shared by nothing."""
    home = next(homes)
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("COLLAB_STATE", str(home / "state"))
    monkeypatch.setenv("COLLAB_CONFIG", str(home / "config.toml"))
    for name in ("COLLAB_AS", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture(autouse=True)
def nothing_beside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A collaboration that is `tmp_path` itself leaves receipts beside it; the next test must not find them."""
    yield
    for name in ("receipts", "triage"):
        shutil.rmtree(tmp_path_factory.getbasetemp() / name, ignore_errors=True)


def pytest_collection_finish() -> None:
    """Thousands of collected tests are not looked through again by every full collection."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Whoever is done takes over what another still has to do: tests with a terminal take seconds, rules none."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def quick_path(tmp_path: Path) -> Iterator[Path]:
    """A scratch folder in memory where there is one: for tests that write and fsync thousands of times."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory, prefix="collab-tests-") as made:
        yield Path(made)


MakeFolder = Callable[..., Path]


@pytest.fixture
def make_folder(tmp_path: Path, clock: FixedClock) -> MakeFolder:
    """`make_folder(name, participants, gates, language)`: a fresh schema 1 collaboration."""

    def make(
        name: str = "talk",
        participants: Sequence[str] = ("server", "reader"),
        gates: Sequence[str] = ("The cache is measured",),
        language: str = "en",
        objective: str = "Agree on the session cache.",
    ) -> Path:
        path = tmp_path / name
        initialize(path, objective, participants, gates, clock, language)
        return path

    return make


def console_script() -> str:
    """The installed `collab`: beside this interpreter, else on PATH."""
    beside = Path(sys.executable).parent / "collab"
    found = str(beside) if beside.exists() else shutil.which("collab")
    assert found is not None, "the package is not installed: pip install -e '.[dev]'"
    return found


Collab = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def collab() -> Collab:
    """`collab(*argv, cwd=…)`: the console script as a process of its own, without a terminal."""
    program = console_script()

    def run(
        *argv: str, cwd: Path | None = None, stdin: str = "", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [program, *argv],
            cwd=cwd,
            input=stdin,
            env={**os.environ, **environment},
            capture_output=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )

    return run


def gone(pid: int) -> bool:
    """Whether a process has ended; the kernel says when."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], 10)[0])
    finally:
        os.close(handle)
