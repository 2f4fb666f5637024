"""Completion scripts are valid in their shells and know every verb (docs/design.md §3)."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.unit.tui.cli.conftest import Say
from tui.cli import MODULES

SHELLS = ("bash", "zsh", "fish")


@pytest.mark.parametrize("shell", SHELLS)
def test_every_verb_and_flag_is_known(say: Say, shell: str) -> None:
    said = say("completion", shell)
    assert (said.status, said.err) == (0, "")
    for verb in MODULES:
        assert verb in said.out
    for flag in ("--folder", "--position", "--since-my-review", "--snooze"):
        assert flag.removeprefix("--") in said.out
    made = say("completion", shell, "-o", "json")
    assert made.document == {"shell": shell, "script": made.document["script"], "findings": []}
    assert made.document["script"] + "\n" == said.out


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_itself_reads_it(say: Say, quick_path: Path, shell: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"there is no {shell} here")
    script = quick_path / "completion"
    script.write_text(say("completion", shell).out)
    done = subprocess.run([program, "-n", str(script)], capture_output=True, encoding="utf-8", timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_bash_completes_a_verb(say: Say, quick_path: Path) -> None:
    program = shutil.which("bash")
    if program is None:
        pytest.skip("there is no bash here")
    script = quick_path / "completion"
    script.write_text(
        say("completion", "bash").out
        + "\nCOMP_WORDS=(collab va); COMP_CWORD=1; COMP_LINE='collab va'; COMP_POINT=9\n"
        + "$(complete -p collab | sed 's/.*-F \\([^ ]*\\) .*/\\1/') collab va collab\n"
        + 'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(
        [program, "--norc", str(script)], capture_output=True, encoding="utf-8", timeout=60, check=False
    )
    assert done.stdout.split() == ["validate"], done


def test_another_shell_is_refused(say: Say) -> None:
    for argv in ((), ("tcsh",), ("",), ("bash", "zsh")):
        said = say("completion", *argv, "-o", "json")
        assert (said.status, said.codes) == (2, ["usage_wrong"])
