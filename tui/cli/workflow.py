"""`collab workflow`: check, start, tick, run, status, abort, simulate (docs/specs/workflows.md §9)."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.clock import SYSTEM
from core.finding import Finding, Refused, error

from tui.cli.base import (
    DONE,
    REFUSED,
    WARNED,
    Command,
    Out,
    Parser,
    as_argument,
    folder_path,
    read_input,
    run_act,
    subverbs,
)

if TYPE_CHECKING:
    from core.workflow.answers import Outcome
    from core.workflow.engine import Engine

OPERATOR = "operator"


def root_argument(parser: Parser) -> None:
    parser.add_argument(
        "--root", type=folder_path, default=None, metavar="DIR", help="the workflow root (default: here)"
    )


def root_of(args: argparse.Namespace) -> Path:
    root: Path | None = args.root
    return root if root is not None else Path.cwd()


def in_root(args: argparse.Namespace, command: str) -> str:
    """A command that also works from elsewhere."""
    return command if args.root is None else f"{command} --root {shlex.quote(str(args.root))}"


def who(args: argparse.Namespace) -> str:
    """Who acts, as recorded, not proven: `--as`, else COLLAB_AS, else operator."""
    return args.as_ or os.environ.get("COLLAB_AS") or OPERATOR


def engine(args: argparse.Namespace) -> Engine:
    """The engine of the root. Raises Refused."""
    from core.governance.workflow_boundary import Leaver
    from core.workflow.engine import Engine

    root = root_of(args)
    return Engine(root, clock=SYSTEM, leave=Leaver(root).leave)


def rooted(args: argparse.Namespace, findings: Iterable[Finding]) -> list[Finding]:
    """Findings whose commands work from here, when the root is elsewhere."""
    made = []
    for item in findings:
        command = item.next_command
        if command is not None and command.startswith("collab workflow check ") and args.root is not None:
            command = f"collab workflow check {shlex.quote(str(args.root / command.split(' ', 3)[3]))}"
        elif command is not None:
            command = in_root(args, command)
        made.append(replace(item, next_command=command))
    return made


def finish(args: argparse.Namespace, outcome: Outcome, out: Out, done: str) -> int:
    """Say what became of an act; 2 for everything but accepted and deferred."""
    out.put(status=outcome.status, codes=outcome.codes)
    if outcome.status in ("conflict", "gone"):
        out.put(winner=outcome.winner)
    if outcome.replay:
        out.put(replay=True)
        done = "the same answer was recorded already; nothing changed"
    if outcome.findings:
        out.notes(rooted(args, outcome.findings))
        return REFUSED
    out.line(done)
    return DONE


def _check_arguments(parser: Parser) -> None:
    parser.add_argument("spec", metavar="SPEC", help="a workflow file, or - for standard input")


def _check(args: argparse.Namespace, out: Out) -> int:
    from core.files import Root
    from core.workflow.layout import AGENTS
    from core.workflow.loader import load
    from core.workflow.specs import RootProfiles
    from core.workflow.view_history import route_text

    text = read_input(args.spec, "SPEC")
    path = Path(args.spec).expanduser()
    stem = None if args.spec == "-" else path.stem
    place = path.parent.resolve()
    base = place.parent if place.name == "workflows" else place
    if args.spec != "-" and (base / AGENTS).is_dir():
        with Root(base) as root:
            profiles = RootProfiles(root)
            loaded = load(text, args.spec, stem, lambda name: profiles(name) is not None)
    else:
        loaded = load(text, args.spec, stem)
    out.notes(loaded.placed())
    items: list[dict[str, Any]] = []
    shown: list[str] = []
    spec = loaded.spec
    if spec is not None:
        for index, item in enumerate(spec.items):
            work = spec.work(index)
            routes = {verdict: route_text(work.route(verdict)) for verdict in ("success", "fail", "partial", "error")}
            made = {"index": index, "item": item, "agent": work.agent, "zone": work.zone, "files": list(work.files)}
            items.append({**made, "before": work.before, "after": work.after, "routes": routes})
            shown.append(f"  {index:>4}  {item}  {work.agent}  {', '.join(work.files)}")
        out.line(f"{spec.workflow}: {spec.grammar}, {len(items)} items, {spec.max_parallel} at once")
        for line in shown:
            out.line(line)
    out.put(workflow=loaded.workflow, valid=spec is not None, spec_hash=loaded.hash, items=items)
    out.put(spec=None if spec is None else spec.plain())
    if spec is None:
        return REFUSED
    return WARNED if loaded.findings else DONE


def _start_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="the workflow")
    parser.add_argument("--mode", choices=("manual", "assisted", "swarm"), default="manual", help="who is asked when")
    parser.add_argument("--grant", action="store_true", help="swarm: answers the gate before the whole run")
    parser.add_argument("--parent", metavar="AGENT", help="who hears of errors and of the end (default: orchestrator)")
    as_argument(parser)
    root_argument(parser)


def _start(args: argparse.Namespace, out: Out) -> int:
    with engine(args) as made:
        done = made.start(args.name, args.mode, args.grant, args.parent, who(args))
    if done.run_id is None:
        out.notes(rooted(args, done.outcome.findings))
        out.put(status="refused", codes=done.outcome.codes, run_id=None)
        return REFUSED
    out.line(done.run_id)
    out.hint("the next tick begins it: " + in_root(args, "collab workflow tick"))
    out.put(status="started", codes=[], run_id=done.run_id)
    return DONE


def _tick(args: argparse.Namespace, out: Out) -> int:
    from core.workflow.daemon import one_tick

    made, findings = one_tick(root_of(args), SYSTEM)
    out.notes(findings)
    for event in made.events:
        out.line(f"{event.record['at']}  {event.stream}  {event.name}")
    if not made.events:
        out.line("nothing new")
    out.put(changed=bool(made.events), events=[{"stream": e.stream, **_short(e.record)} for e in made.events])
    return REFUSED if any(item.severity == "error" for item in findings) else DONE


def _short(record: Any) -> dict[str, Any]:
    return {
        key: record[key] for key in ("seq", "at", "event", "index", "entry") if isinstance(record.get(key), (int, str))
    }


def _run_arguments(parser: Parser) -> None:
    parser.add_argument(
        "--allow-commands", action="store_true", help="start the processes that ambient/agents.toml names"
    )
    parser.add_argument("--interval", default="5s", metavar="SPAN", help="look at least this often (default: 5s)")
    root_argument(parser)


def _run(args: argparse.Namespace, out: Out) -> int:
    from core.workflow import times
    from core.workflow.daemon import Daemon

    interval = times.span(args.interval)
    if not interval:
        raise Refused(
            error(
                "usage_wrong", f"--interval wants a span of time such as 5s, not {args.interval!r}", None, "--interval"
            )
        )
    with Daemon(root_of(args), args.allow_commands, interval, SYSTEM) as daemon:
        daemon.stop_on_signals()
        out.hint(f"the engine of {root_of(args)} runs; end it with ctrl+c or SIGTERM")
        ticks = daemon.run(out.notes)
    out.put(ticks=ticks)
    return DONE


def _status_arguments(parser: Parser) -> None:
    parser.add_argument("run_id", nargs="?", metavar="RUN", help="one run in detail")
    root_argument(parser)


def _status(args: argparse.Namespace, out: Out) -> int:
    from core.workflow import times, view, view_learning
    from core.workflow.naming import Names
    from core.workflow.record import record

    with view.Reader(root_of(args), whole=False) as reader:
        reader.look()
        world = reader.with_runs([args.run_id] if args.run_id is not None else [])
        now = max(times.of(SYSTEM.now()), world.last_at)
        out.notes(reader.problems)
        if args.run_id is not None:
            run = world.runs.get(args.run_id)
            if run is None:
                command = in_root(args, "collab workflow status")
                raise Refused(error("E_RUN_UNKNOWN", f"there is no run {args.run_id!r}", command, args.run_id))
            made = record(run, now)
            codes = Names(root_of(args)).of(step["cause"] for step in made["steps"])
            _say_run(view.run_row(run, now), made, codes, out)
            asked = [entry.public() for name in run.entry_ids if (entry := run.entries.get(name)) is not None]
            out.put(run=made, escalations=asked, codes=codes)
            return REFUSED if reader.problems else DONE
        rows = reader.rows(now)
        ready = view_learning.readiness(rows)
    for row in rows:
        waits = f"  waits: {row.waits}" if row.waits else ""
        out.line(f"{row.outcome:<8} {row.done:>5}/{row.total:<5} {row.run_id} ({row.mode}){waits}")
    if not rows:
        out.line("no runs here; `collab workflow start NAME` starts one")
    for workflow, modes in ready.items():
        words = ", ".join(f"{mode} {'ended well' if well else 'not yet'}" for mode, well in modes.items())
        out.line(f"before swarm, {workflow}: {words}")
    for item in world.refused[-20:]:
        out.line(f"refused start of {item['workflow']} at {item['at']}: {', '.join(item['codes'])}")
    for file, item in sorted(world.disabled.items()):
        out.line(f"disabled: {file}: {', '.join(dict.fromkeys(item['codes']))} (collab workflow check {file})")
    out.put(
        runs=[row.as_json() for row in rows],
        readiness=ready,
        refused_starts=[dict(item) for item in world.refused],
        disabled_specs=[dict(item) for _, item in sorted(world.disabled.items())],
        rejected=[dict(item) for item in world.stray],
    )
    return REFUSED if any(item.severity == "error" for item in out.findings) else DONE


def _say_run(row: Any, made: dict[str, Any], codes: dict[str, str], out: Out) -> None:
    out.line(f"{row.run_id}: {row.outcome}, {row.done} of {row.total} closed, {row.in_flight} in flight")
    if row.waits:
        out.line(f"waits: {row.waits}")
        out.line(f"answer: collab escalation show {row.open_entries[0]}")
    for step in made["steps"]:
        cause = f": {step['cause']} ({codes[step['cause']]})" if step["cause"] in codes else ""
        out.line(f"  {step['item']}  attempt {step['attempt']}  {step['result']}{cause}")


def _abort_arguments(parser: Parser) -> None:
    parser.add_argument("run_id", metavar="RUN", help="the run")
    parser.add_argument("--note", help="why")
    as_argument(parser)
    root_argument(parser)


def _abort(args: argparse.Namespace, out: Out) -> int:
    with engine(args) as made:
        outcome = made.abort(args.run_id, who(args), args.note)
        out.notes(made.left)
    return finish(args, outcome, out, f"aborted {args.run_id}; what is in flight is only recorded")


def _simulate_arguments(parser: Parser) -> None:
    parser.add_argument("spec", metavar="SPEC", help="a workflow file")
    parser.add_argument(
        "--script", required=True, metavar="SCRIPT", help="what happens when, YAML or JSON; - for stdin"
    )


def _simulate(args: argparse.Namespace, out: Out) -> int:
    from core.workflow.simulate import simulate

    script = read_input(args.script, "--script")
    played = simulate(read_input(args.spec, "SPEC"), Path(args.spec).name, script, args.script)
    out.notes(played.findings)
    made = played.output
    for answer in made["answers"]:
        codes = f" {', '.join(answer['codes'])}" if answer["codes"] else ""
        out.line(
            f"{answer['at']}  {answer['do']}: {answer['status']}{codes}{' (crashed)' if answer['crashed'] else ''}"
        )
    for run in made["runs"]:
        counts = ", ".join(
            f"{run[f'{name}_count']} {name}" for name in ("success", "fail", "error", "partial", "skipped")
        )
        out.line(f"{run['run_id']}: {run['outcome']} ({counts}; {run['total']} in all)")
        for step in run["steps"]:
            cause = f": {step['cause']}" if step["cause"] else ""
            out.line(f"  {step['item']}  {step['attempt']}  {step['result']}{cause}")
    for entry in made["escalations"]:
        out.line(f"{entry['id']} {entry['state']}: {entry['question']}")
    out.put(**made)
    return REFUSED if played.refused else DONE


def _arguments(parser: Parser) -> None:
    subverbs(
        parser,
        "workflow",
        (
            ("check", "findings with their places, and the compiled items", _check_arguments, _check),
            ("start", "start a run; the next tick begins it", _start_arguments, _start),
            ("tick", "let the engine look once", root_argument, _tick),
            ("run", "the daemon: one per root, woken by changes", _run_arguments, _run),
            ("status", "runs, refused starts, disabled specs", _status_arguments, _status),
            ("abort", "stop a run", _abort_arguments, _abort),
            ("simulate", "play a script under a virtual clock, in a temporary root", _simulate_arguments, _simulate),
        ),
    )


COMMANDS = {
    "workflow": Command(
        "workflow",
        "run batches of agent work from small YAML files",
        _arguments,
        run_act,
    ),
}
