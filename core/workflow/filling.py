"""What `{{name}}` stands for in a run, and an item's files (docs/specs/workflows.md §3, "Variables")."""

from __future__ import annotations

from core.workflow import paths, templates
from core.workflow.state import Run


def files_of(run: Run, index: int) -> list[str]:
    """The item's files now, filled and normalised; a path that would leave the root is left out."""
    values = variables(run, index)
    made = (paths.normal(templates.fill(text, values)) for text in run.spec.work(index).files)
    return [path for path in made if path is not None]


def variables(run: Run, index: int | None) -> dict[str, object]:
    """What `{{name}}` stands for."""
    made: dict[str, object] = {
        "total": run.total,
        "workflow": run.workflow,
        "run_id": run.run_id,
        **{f"{name}_count": run.tally.get(name, 0) for name in ("success", "fail", "error", "skipped")},
    }
    if index is not None:
        made.update(item=run.spec.items[index], index=index)
    return made
