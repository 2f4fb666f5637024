"""What is known about a run, a question, a proposal, a rule or a workflow, as lines (docs/specs/console.md §2).

A person first sees result, question, progress; attempts and packets stay folded until they are asked for.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.text import Text

from core.clock import duration
from core.workflow import times, view
from core.workflow.desk import Workflows
from core.workflow.loader import Loaded
from core.workflow.model import Entry, Rule
from core.workflow.state import Run
from core.workflow.view import RunRow
from core.workflow.view_learning import ProposalView
from tui.when import when
from tui.widgets.glyphs import Glyphs, Palette, State
from tui.widgets.pane import Sheet
from tui.widgets.progress import bar

OUTCOMES = {
    "waiting": (State.WAITING, "waiting"),
    "running": (State.LIVE, "running"),
    "success": (State.DONE, "done"),
    "partial": (State.WARN, "partial"),
    "failed": (State.FAILED, "failed"),
    "aborted": (State.FAILED, "stopped"),
}
COUNTED = ("success", "skipped", "partial", "fail", "error", "escalated", "blocked", "pending", "not_started")


def quoted(path: Path) -> str:
    """A path as a word of a command."""
    return shlex.quote(str(path))


def moment(desk: Workflows) -> datetime:
    """Engine time of this moment."""
    return datetime.fromtimestamp(desk.now / 1000, UTC)


def counts(row: RunRow) -> str:
    """`6 success, 1 fail, 3 not started`."""
    return ", ".join(f"{row.counts[name]} {name.replace('_', ' ')}" for name in COUNTED if row.counts.get(name))


def over(row: RunRow) -> str | None:
    """How a run ended; None while it goes on."""
    if row.outcome == "aborted":
        return "it was stopped"
    return row.outcome if row.completed_at is not None else None


def say_run(made: Sheet, desk: Workflows, row: RunRow, colours: Palette, signs: Glyphs) -> None:
    """Result, question, progress; the steps as one number."""
    state, word = OUTCOMES[row.outcome]
    line = Text(f"{'progress':<{made.LABEL}} ", colours.muted, end="")
    line.append_text(bar(row.done, row.total, min(30, max(8, made.width - 30)), colours.state(state), colours, signs))
    line.append(f" {row.done}/{row.total}  ", colours.text)
    line.append(f"{signs.state(state)} {word}", colours.state(state))
    made.lines.append(line)
    if row.result is not None or row.completed_at is not None:
        made.put("result", row.result or counts(row), colours.strong)
    for name in row.open_entries:
        entry = desk.world.entry(name)
        if entry is not None:
            made.put("waits", f"{entry.question} (a answers)", colours.strong)
    made.put("items", counts(row) or "none")
    if row.by_rule:
        made.put("by rule", f"{row.by_rule} questions were answered by a rule and not asked")
    if row.stopped_by is not None:
        made.put("stopped", f"by {row.stopped_by}")
    began, until = times.read(row.started_at) or 0, times.read(row.completed_at) or desk.now
    lasted = f"; it took {duration((until - began) / 1000)}" if row.completed_at is not None else ""
    made.put("started", f"{when(row.started_at, moment(desk))} by {row.by}, {row.mode} mode{lasted}")
    if row.spec_changed:
        made.put("spec", "the file changed since; the run keeps what it began with", colours.warn)
    made.put("run", row.run_id)
    made.put("folded", f"{row.steps} steps; enter unfolds them")


def say_entry(
    made: Sheet, desk: Workflows, entry: Entry, colours: Palette, signs: Glyphs, run: Run | None = None
) -> None:
    """What was asked, the engine's facts, each option with its effect, rule, deadline, who answered."""
    shown = view.entry_view(desk.world, entry, desk.root, run)
    made.put("asked", shown.question, colours.strong)
    code = desk.names.entry(entry)
    if shown.answered is not None:
        made.put("answered", f"by {shown.answered}", colours.strong)
    if code is not None:
        made.put("failure", code, colours.failed)
    facts = dict(shown.facts)
    if "tried" in facts:
        made.put("tried", facts.pop("tried"))
    for option in shown.options:
        mark = f"{signs.state(State.MINE)} " if option.recommended else ""
        wanted = f" ({', '.join(f'{name}: {kind}' for name, kind in option.args.items())})" if option.args else ""
        made.put("option", f"{mark}{option.id}: {option.title}{wanted}; {option.effect}")
    if shown.rule is not None:
        made.put("rule", shown.rule)
    if shown.deadline is not None:
        late = " (overdue)" if shown.overdue else ""
        due = when(shown.deadline, moment(desk))
        made.put("deadline", f"{due}, then {shown.at_deadline}{late}", colours.warn if late else None)
    for label, value in facts.items():
        made.put(label, value)
    if shown.alike:
        made.put("alike", f"{', '.join(shown.alike)}: the same cause; a folded row answers them together")
    if entry.state == "open":
        made.command("command", f"collab escalation show {entry.id} --root {quoted(desk.root)}")


def say_fold(
    made: Sheet, desk: Workflows, entries: Sequence[Entry], keys: tuple[str, str], colours: Palette, signs: Glyphs
) -> None:
    """A row that stands for several questions; `keys` answer and unfold them."""
    answers, unfolds = keys
    made.put("asked", [f"{one.id}  {one.question}" for one in entries], colours.strong)
    said = f"{len(entries)} questions share one cause: {answers} answers them together, each on its own"
    made.title(f"{said}; {unfolds} unfolds them")
    made.gap()
    say_entry(made, desk, entries[0], colours, signs)


def say_proposal(
    made: Sheet, desk: Workflows, item: ProposalView, proposed: str | None, colours: Palette, signs: Glyphs
) -> None:
    """Evidence, what approving would change, and which other options it could be approved as."""
    made.put("proposal", f"{item.id} ({item.state})", colours.strong)
    made.put("about", item.title)
    for line in item.before:
        made.put(signs.minus, line, colours.removed)
    for line in item.after:
        made.put("+", line, colours.added)
    others = [name for name in item.choices if name != proposed]
    if others:
        made.put("or instead", ", ".join(others))
    made.put("evidence", [f"{name}: {text}" for name, text in item.evidence])
    made.put("expires", when(item.expires_at, moment(desk)))


def say_rule(made: Sheet, desk: Workflows, rule: Rule, colours: Palette) -> None:
    """What a rule answers, how often it did, how well that went."""
    pattern = rule.pattern
    made.put("rule", f"{rule.id} ({rule.state})", colours.strong)
    made.put("when", f"{pattern.workflow}: {pattern.kind} of {pattern.agent}, cause {pattern.cause or 'none'}")
    made.put("answers", rule.option_id)
    made.put("used", f"{rule.uses} times; confidence {rule.confidence}")
    made.put("approved", f"by {rule.approved_by} {when(rule.approved_at, moment(desk))}, from {rule.proposal}")
    if rule.revoked_by is not None:
        made.put("revoked", f"by {rule.revoked_by}")
    if rule.state == "suspended":
        made.put("suspended", "its last answer did not work; it only recommends nothing now", colours.warn)


def say_workflow(made: Sheet, desk: Workflows, loaded: Loaded, colours: Palette) -> None:
    """What a spec file says, or what is wrong with it."""
    made.put("workflow", loaded.workflow, colours.strong)
    made.put("file", loaded.file)
    spec = loaded.spec
    if spec is not None:
        if spec.description:
            made.put("about", spec.description)
        made.put("work", f"{len(spec.items)} items, {spec.max_parallel} at once, by {', '.join(spec.agents)}")
        if spec.trigger is not None:
            every = spec.trigger.every
            made.put(
                "starts", "by itself: " + (f"every {duration(every / 1000)}" if every else "when its condition holds")
            )
        known = desk.readiness.get(loaded.workflow, {})
        words = [f"{mode} {'ended well' if known.get(mode) else 'not yet'}" for mode in ("manual", "assisted")]
        made.put("swarm", f"asks for both before: {', '.join(words)}")
    for item in loaded.findings:
        made.put(item.severity, f"{item.line}:{item.column} {item.cause} ({item.code})", colours.warn)
    made.command("command", f"collab workflow check {quoted(desk.root / loaded.file)}")
