"""Starting and stopping a run (docs/specs/workflows.md §2, §4). Pure."""

from __future__ import annotations

from dataclasses import dataclass

from core.finding import Finding, error
from core.workflow import entries, times
from core.workflow.answers import Outcome, refused
from core.workflow.loader import Loaded
from core.workflow.matrix import Profiles, start_refusals
from core.workflow.model import OPERATOR, PARENT
from core.workflow.state import ENGINE_STREAM
from core.workflow.turn import Turn


@dataclass(frozen=True)
class StartRun:
    """`loaded` is the workflow's file as it is now, None when there is none; `profiles` the agents we have."""

    workflow: str
    loaded: Loaded | None
    profiles: Profiles
    mode: str = "manual"
    grant: bool = False
    parent: str | None = None
    by: str = OPERATOR


@dataclass(frozen=True)
class AbortRun:
    run: str
    by: str = OPERATOR
    note: str | None = None


def start(turn: Turn, command: StartRun) -> tuple[Outcome, str | None]:
    """A run begins, or every reason why not is noted."""
    found = _refusals(turn, command)
    if found:
        codes = list(dict.fromkeys(item.code for item in found))
        turn.emit(
            ENGINE_STREAM,
            "start_refused",
            workflow=command.workflow,
            codes=codes,
            causes=[item.cause for item in found],
            mode=command.mode,
            by=command.by,
        )
        return refused(*found), None
    loaded = command.loaded
    if loaded is None or loaded.spec is None:
        return refused(), None
    number = turn.world.started + 1
    run_id = f"{loaded.workflow}-{times.compact(turn.now)}-{turn.facts.suffix(number)}"
    agents = {name: profile for name in loaded.spec.agents if (profile := command.profiles(name)) is not None}
    turn.emit(
        run_id,
        "run_started",
        run_id=run_id,
        number=number,
        workflow=loaded.workflow,
        spec=loaded.spec.plain(),
        spec_hash=loaded.hash,
        mode=command.mode,
        grant=command.grant,
        parent=command.parent or PARENT,
        by=command.by,
        agents={name: profile.model_dump(mode="json") for name, profile in agents.items()},
    )
    return Outcome("accepted"), run_id


def _refusals(turn: Turn, command: StartRun) -> list[Finding]:
    loaded = command.loaded
    if loaded is None:
        cause = f"there is no workflow {command.workflow!r}"
        return [error("E_WORKFLOW_UNKNOWN", cause, "collab workflow status", command.workflow)]
    running = turn.world.open_run(loaded.workflow)
    run_open = None if running is None else running.run_id
    if loaded.spec is None:
        wrong = sum(item.severity == "error" for item in loaded.findings)
        cause = f"{loaded.file} has {wrong} error{'s' if wrong != 1 else ''}: this workflow is disabled"
        found = [error("E_SPEC_INVALID", cause, f"collab workflow check {loaded.file}", loaded.file)]
        if run_open is not None:
            found.append(error("E_RUN_OPEN", f"{run_open} is still open", f"collab workflow status {run_open}"))
        return found
    return start_refusals(loaded.spec, command.mode, command.profiles, run_open)


def abort(turn: Turn, command: AbortRun) -> Outcome:
    """Stop a run: nothing more is started, what is in flight is only recorded."""
    run = turn.world.runs.get(command.run)
    if run is None:
        cause = f"there is no run {command.run!r}"
        return refused(error("E_RUN_UNKNOWN", cause, "collab workflow status", command.run))
    if run.aborted is not None or not run.open:
        won = dict(run.aborted) if run.aborted is not None else None
        won = won or {"verb": run.outcome, "option_id": None, "decided_by": "ambient"}
        how = f"was aborted by {won['decided_by']}" if run.aborted is not None else f"has ended ({run.outcome})"
        found = error("E_GONE", f"{run.run_id} {how}", f"collab workflow status {run.run_id}", run.run_id)
        return Outcome("gone", (found,), won)
    entries.abort_run(turn, run.run_id, command.by, None, command.note)
    return Outcome("accepted")
