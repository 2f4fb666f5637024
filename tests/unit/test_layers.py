"""What may import what, and that nothing of the folder one works in is ever run (docs/design.md §1)."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import core
import tui.cli
from tests.conftest import Collab, MakeFolder

SCREEN = ("textual", "rich", "tui")

PROBE = """
import importlib, json, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
print(json.dumps(sorted(sys.modules)))
"""


def loaded(*modules: str) -> set[str]:
    """Everything that a fresh interpreter has loaded after importing these."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *modules], capture_output=True, encoding="utf-8", check=True, timeout=60
    )
    return set(json.loads(done.stdout))


def offenders(found: set[str], *forbidden: str) -> set[str]:
    return {name for name in found if name.split(".")[0] in forbidden}


def modules_of(package: str, path: list[str]) -> list[str]:
    return [package, *(item.name for item in pkgutil.walk_packages(path, f"{package}."))]


def test_the_core_knows_no_screen() -> None:
    names = modules_of("core", list(core.__path__))
    assert "core.acp.store" in names
    assert offenders(loaded(*names), *SCREEN) == set()


@pytest.mark.parametrize("name", modules_of("tui.cli", list(tui.cli.__path__)))
def test_a_verb_starts_without_textual(name: str) -> None:
    assert offenders(loaded(name), "textual") == set()


HOT = ("append", "next", "validate")


@pytest.mark.parametrize("verb", HOT)
def test_the_verbs_that_agents_run_all_day_load_little(verb: str, make_folder: MakeFolder) -> None:
    """What costs more than the verb itself: models, screens, watchers, YAML."""
    folder = make_folder()
    argv = [verb, "--folder", str(folder)]
    if verb == "append":
        argv += ["--participant", "server", "--event", "proposal_submitted", "--summary", "Done", "--reply-to", "1"]
    if verb == "next":
        argv += ["--participant", "server"]
    program = f"import sys, tui.cli; assert tui.cli.main({argv!r}) == 0; print(); print(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True, timeout=60
    )
    found = set(done.stdout.splitlines()[-1].split())
    heavy = ("textual", "rich", "pydantic", "watchfiles", "ruamel", "platformdirs", "shtab", "asyncio")
    assert offenders(found, *heavy) == set()


HOSTILE = 'import os; open(os.environ["MARKER"], "a").write(__file__ + "\\n")\n'


@pytest.fixture
def workspace(tmp_path: Path, make_folder: MakeFolder) -> Path:
    """A collaboration that brings packages of our names, and of modules that we import, with it."""
    folder = make_folder("talk", ("server", "reader"))
    for name in (
        "core",
        "core/acp",
        "tui",
        "tui/cli",
        "catalog",
        "collab_templates",
        "json",
        "argparse",
        "platformdirs",
        "textual",
        "sitecustomize",
        "usercustomize",
    ):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "__init__.py").write_text(HOSTILE)
    for name in ("json.py", "argparse.py", "sitecustomize.py", "conftest.py"):
        (folder / name).write_text(HOSTILE)
    (folder / "catalog/vocabulary.json").write_text('{"languages": {}}')
    return folder


VERBS = (
    ("list",),
    ("inbox", "--as", "server"),
    ("validate", "--folder", "."),
    ("show", "--folder", "."),
    ("log", "--folder", "."),
    ("next", "--folder", ".", "--participant", "server"),
    ("wait", "--folder", ".", "--participant", "server"),
    ("repair", "--folder", "."),
    ("submit", "--folder", ".", "--as", "server", "--file", "proposal.md"),
    ("init", "--folder", "new", "--participant", "a", "--objective", "O", "--completion", "G"),
    ("completion", "bash"),
    ("--version",),
    ("--help",),
    (),
)


def test_nothing_of_a_hostile_workspace_runs(workspace: Path, tmp_path: Path, collab: Collab) -> None:
    marker = tmp_path / "marker"
    for argv in VERBS:
        done = collab(*argv, cwd=workspace, MARKER=str(marker), TERM="dumb")
        assert done.returncode == (0 if argv else 2), (argv, done)
        assert "Traceback" not in done.stderr
    assert not marker.exists(), marker.read_text()


def test_the_marker_would_have_told(workspace: Path, tmp_path: Path) -> None:
    """The same folder does run under `python -m`, which is why the product never offers that."""
    import os

    marker = tmp_path / "marker"
    subprocess.run(
        [sys.executable, "-m", "tui.cli", "--version"],
        cwd=workspace,
        env={**os.environ, "MARKER": str(marker)},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert marker.exists()
