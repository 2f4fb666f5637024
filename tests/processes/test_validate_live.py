"""`collab validate` beside a writer at work: never half an act."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from core.acp.check import check

WRITER = """
import sys
from core import files
from core.acp import guided
from pathlib import Path
def hold(operation, name):
    # Between document and event: the folder is half an act until we are told to go on.
    if (operation, name) == ("write", "events.jsonl"):
        print("half", flush=True)
        sys.stdin.readline()
files.set_fault(hold)
guided.commit(Path(sys.argv[1]), guided.submit("server", "# Proposal\\n\\nWritten.\\n"))
"""


def test_a_look_waits_for_the_writer_in_the_middle(make_folder: Callable[..., Path]) -> None:
    path = make_folder()
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdin is not None
        assert writer.stdout.readline() == "half\n"
        _, found = check(path)
        assert [item.code for item in found] == ["intent_pending"], "a writer that hangs is said, not waited for"
        writer.stdin.write("\n")
        writer.stdin.flush()
        snapshot, found = check(path)
        assert writer.wait(timeout=20) == 0
    assert (found, snapshot.state.phase) in (([], "reviewing"), ([], "drafting"))
    assert check(path)[1] == []
