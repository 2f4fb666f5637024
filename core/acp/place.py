"""Where deliverables lie: inside the folder, or in the repository around it (docs/specs/acp.md §7)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core.acp.model import PROTOCOL, Setup
from core.acp.reader import repo_root
from core.files import Root
from core.finding import Refused, error


@contextmanager
def deliverables_root(folder: Path, setup: Setup, root: Root) -> Iterator[tuple[Root, str]]:
    """(open folder, path of the deliverables below it); `root` is the collaboration's own. Raises Refused."""
    declared = setup.deliverables
    if declared is None:
        raise Refused(error("deliverable_doc_wrong", "what is named is no declared deliverable", None, PROTOCOL))
    if declared.mode != "external":
        yield root, declared.dir
        return
    base, problem = repo_root(folder, setup)
    if base is None:
        raise Refused(error("setup_invalid", problem or "repoRoot is wrong", None, PROTOCOL))
    # Temporary files stay in the collaboration's own sidecar, where the next writer clears them away.
    inside = folder.resolve().relative_to(base)
    with Root(base, f"{inside}/.collab") as outside:
        yield outside, declared.dir
