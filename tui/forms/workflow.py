"""Starting, stopping and ticking runs, approving and revoking what was learned (docs/specs/workflows.md §8, §9)."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar, Final

from core import journal
from core.clock import Clock
from core.finding import Refused
from core.governance.workflow_boundary import Leaver
from core.workflow.acts import AbortRun
from core.workflow.answers import Settlement
from core.workflow.daemon import one_tick
from core.workflow.desk import Workflows
from core.workflow.engine import Engine
from core.workflow.layout import RUNS, log_file
from core.workflow.loader import Loaded
from core.workflow.model import Spec
from core.workflow.planning import Planner
from core.workflow.state import LEARNING_STREAM, Event
from core.workflow.view_history import event_words
from core.workflow.view_learning import ProposalView
from tui.forms.confirm import Deed
from tui.forms.deeds import DeedForm
from tui.forms.drafts import Drafts, Saved
from tui.forms.escalation import UNPROVEN
from tui.forms.fields import Check, CheckField, Choice, ChoiceField, Field, LineField, ReadingField

MODES: Final = (
    ("manual", "asks before every item"),
    ("assisted", "asks before what has effects outside"),
    ("swarm", "one gate before the whole run"),
)
_SHOWN: Final = 12


def engine(root: Path, clock: Clock) -> Engine:
    """An engine for one act of a person. Raises Refused."""
    return Engine(root, clock=clock, leave=Leaver(root).leave)


def _line(event: Event) -> str:
    return journal.encode(dict(event.record)).decode("utf-8").rstrip("\n")


class StartForm(DeedForm):
    """Which workflow, in which mode."""

    HEADING: ClassVar[str] = "Start a workflow"
    FORM: ClassVar[str] = "start"

    def __init__(self, desk: Workflows, by: str, drafts: Drafts, wanted: str = "") -> None:
        super().__init__(desk.root, desk.root.name, drafts, desk.clock, by=by)
        self.desk, self.by, self._wanted = desk, by, wanted

    def fields(self) -> list[Field]:
        known = {loaded.workflow: loaded for loaded in self.desk.specs.values()}
        return [
            ChoiceField(
                "workflow",
                "Workflow",
                [_workflow_choice(loaded) for _, loaded in sorted(known.items())],
                where=tuple(known),
                value=self._wanted,
            ),
            ChoiceField("mode", "Mode", self._modes(), where=("--mode",)),
            CheckField("grant", "Swarm", [Check("grant", "grant the gate before the whole run now")]),
            LineField("parent", "Reports to", "who hears of errors and of the end", placeholder="orchestrator"),
        ]

    def _modes(self, workflow: str = "") -> list[Choice]:
        known = self.desk.readiness.get(workflow, {})
        missing = [name for name in ("manual", "assisted") if not known.get(name)]
        asked = f"; no {' and no '.join(missing)} run has ended well" if missing else "; both others ended well"
        return [Choice(name, name, note + (asked if name == "swarm" else "")) for name, note in MODES]

    def on_mount(self) -> None:
        super().on_mount()
        self.call_after_refresh(self._fit, True)

    def on_field_changed(self, event: Field.Changed) -> None:
        super().on_field_changed(event)
        self._fit(event.field.key == "workflow")

    def restore(self, saved: Saved) -> None:
        super().restore(saved)
        self._fit(True)

    def _fit(self, other: bool) -> None:
        """Modes speak of the workflow that is chosen; only a swarm has a gate to grant."""
        mode = self._picked("mode")
        if other:
            self.query_one("#field-mode", ChoiceField).set_choices(self._modes(self._picked("workflow")), mode)
        self.query_one("#field-grant").display = mode == "swarm"

    def _picked(self, key: str) -> str:
        choice = self.query_one(f"#field-{key}", ChoiceField).choice
        return choice.id if choice is not None else ""

    def problems(self) -> Mapping[str, str]:
        return {} if self._picked("workflow") else {"workflow": "there is no workflow to start here"}

    def deed(self) -> Callable[[], Deed]:
        mode = self._picked("mode")
        grant = mode == "swarm" and bool(self.query_one("#field-grant", CheckField).ticked)
        name, parent = self._picked("workflow"), self.line("parent") or None
        return partial(starting, self.root, name, mode, grant, parent, self.by, self.clock)


def _workflow_choice(loaded: Loaded) -> Choice:
    wrong = sum(item.severity == "error" for item in loaded.findings)
    if loaded.spec is None:
        return Choice(loaded.workflow, loaded.workflow, reason=f"{wrong} errors in {loaded.file}")
    return Choice(loaded.workflow, loaded.workflow, loaded.spec.description or f"{len(loaded.spec.items)} items")


def starting(root: Path, name: str, mode: str, grant: bool, parent: str | None, by: str, clock: Clock) -> Deed:
    """A start that would be accepted now. Raises Refused with every reason against it."""
    with Planner(root, clock) as planner:
        loaded = planner.spec(name)
        made = planner.start(name, mode, grant, parent, by)
        served = planner.served
    if made.run_id is None or loaded is None or loaded.spec is None:
        raise Refused(*made.outcome.findings)
    spec, shown = loaded.spec, loaded.hash
    words = ["collab", "workflow", "start", name, "--mode", mode]
    words += ["--grant"] if grant else []
    words += ["--parent", parent] if parent else []

    def do() -> str:
        with engine(root, clock) as acting:
            started = acting.start(name, mode, grant, parent, by, shown)
        if started.run_id is None:
            raise Refused(*started.outcome.findings)
        return f"started {started.run_id}"

    sections = (
        ("Writes", (f"a new log {RUNS}/{name}-<now>-<4 hex digits>.jsonl; its first line is run_started",)),
        ("Work", _work_lines(spec)),
        ("Effect", (_gates(spec, mode, grant), _next_tick(served))),
        ("Started by", (f"{by}: {UNPROVEN}",)),
    )
    again = partial(starting, root, name, mode, grant, parent, by, clock)
    return Deed(str(root), sections, shlex.join([*words, "--as", by, "--root", str(root)]), do, again=again)


def _next_tick(served: bool) -> str:
    return (
        "the engine at work here begins it at once"
        if served
        else "the next tick begins it (u); no daemon is at work here"
    )


def _work_lines(spec: Spec) -> list[str]:
    parts = [f"{len(spec.items)} items, {spec.max_parallel} at once"]
    parts += [f"{agent} in the zone {zone}" for agent, zone in spec.zones]
    if spec.external_effect:
        parts.append("it has effects outside" + ("" if spec.reversible else ", which cannot be taken back"))
    return parts


def _gates(spec: Spec, mode: str, grant: bool) -> str:
    if mode == "swarm":
        return "it begins without asking" if grant else "one question opens before the whole run"
    if mode == "manual":
        return "a question opens before every item"
    return "a question opens before every item, for its effects outside" if spec.external_effect else "it begins"


class AbortForm(DeedForm):
    """Why a run is stopped."""

    HEADING: ClassVar[str] = "Stop a run"
    FORM: ClassVar[str] = "abort"

    def __init__(self, desk: Workflows, run_id: str, by: str, drafts: Drafts) -> None:
        super().__init__(desk.root, run_id, drafts, desk.clock, by=by)
        self.by = by

    def fields(self) -> list[Field]:
        return [LineField("note", "Note", "why; kept with the run", ("--note",))]

    def deed(self) -> Callable[[], Deed]:
        return partial(aborting, self.root, self.subject, self.line("note") or None, self.by, self.clock)


def aborting(root: Path, run_id: str, note: str | None, by: str, clock: Clock) -> Deed:
    """A stop that would be accepted now. Raises Refused when the run is over."""
    with Planner(root, clock) as planner:
        made = planner.decide(AbortRun(run_id, by, note))
        run = planner.world.runs.get(run_id)
    if made.outcome.findings or run is None:
        raise Refused(*made.outcome.findings)
    flying = len(run.flight)
    effect = ["nothing more is started"]
    effect += [f"{flying} in flight: awaited until a reply or the timeout, and only recorded"] if flying else []
    effect += [f"the open question {name} is cancelled" for name in sorted(run.open_entries)[:_SHOWN]]

    def do() -> str:
        with engine(root, clock) as acting:
            outcome = acting.abort(run_id, by, note)
        if outcome.findings:
            raise Refused(*outcome.findings)
        return f"stopped {run_id}"

    sections = (
        (f"Events, as lines of {log_file(run_id)}", [_line(event) for event in made.events[:_SHOWN]]),
        ("Effect", effect),
        ("Stopped by", (f"{by}: {UNPROVEN}",)),
    )
    words = ["collab", "workflow", "abort", run_id, *(["--note", note] if note else [])]
    return Deed(run_id, sections, shlex.join([*words, "--as", by, "--root", str(root)]), do)


def ticking(root: Path, clock: Clock) -> Deed:
    """One tick, with what it would do now. Raises Refused when the root cannot be read."""
    with Planner(root, clock) as planner:
        made, starts = planner.tick()
        served = planner.served
    lines = [f"{event.stream}: {event_words(event.record)}" for event in made.events[:_SHOWN]]
    if len(made.events) > _SHOWN:
        lines.append(f"and {len(made.events) - _SHOWN} more")
    lines += [f"{name} starts by itself" for name in starts]
    effect = "packets of these events go to their agents" if made.events else "nothing is appended"
    told = [effect] + (["a daemon is at work here; it ticks by itself"] if served else [])

    def do() -> str:
        done, findings = one_tick(root, clock)
        wrong = [item for item in findings if item.severity == "error"]
        if wrong:
            raise Refused(*wrong)
        return f"{len(done.events)} events" if done.events else "nothing new"

    sections = (("Events of a tick now", lines or ["none: there is no news"]), ("Effect", told))
    return Deed(str(root), sections, shlex.join(["collab", "workflow", "tick", "--root", str(root)]), do)


class ApproveForm(DeedForm):
    """A proposal with its evidence, and which option it shall become."""

    HEADING: ClassVar[str] = "Approve what was learned"
    FORM: ClassVar[str] = "approve"

    def __init__(self, desk: Workflows, proposal: ProposalView, by: str, drafts: Drafts) -> None:
        super().__init__(desk.root, proposal.id, drafts, desk.clock, by=by)
        self.desk, self.proposal, self.by = desk, proposal, by

    def fields(self) -> list[Field]:
        item = self.proposal
        lines = [item.title, "", *(f"- {line}" for line in item.before), *(f"+ {line}" for line in item.after), ""]
        lines += [f"evidence {name}: {text}" for name, text in item.evidence]
        found: list[Field] = [ReadingField("about", "Proposal", "\n".join(lines), "")]
        if item.kind == "rule":
            proposed = self.desk.world.learning.proposals[item.id].proposes.option_id or ""
            choices = [Choice(name, name, "as proposed" if name == proposed else "instead") for name in item.choices]
            found.append(ChoiceField("option", "It answers", choices, where=("--option",), value=proposed))
        return found

    def deed(self) -> Callable[[], Deed]:
        option: str | None = None
        if self.proposal.kind == "rule":
            choice = self.query_one("#field-option", ChoiceField).choice
            option = choice.id if choice is not None else None
        return partial(settling, self.root, self.proposal.id, True, option, self.by, self.clock)


def settling(root: Path, target: str, approve: bool, option: str | None, by: str, clock: Clock) -> Deed:
    """An approval, a rejection or a revocation that would be accepted now. Raises Refused."""
    with Planner(root, clock) as planner:
        made = planner.decide(Settlement(target, by, approve, option))
        learning = planner.world.learning
    if made.outcome.findings:
        raise Refused(*made.outcome.findings)
    rule, proposal = learning.rules.get(target), learning.proposals.get(target)
    if rule is not None:
        effect = [f"the rule answers {rule.option_id} no longer; people are asked again", "its count begins again at 0"]
    elif not approve:
        effect = ["nothing becomes automatic; the count begins again at 0"]
    elif proposal is not None and proposal.kind == "rule":
        effect = [
            f"from now on a rule answers {option or proposal.proposes.option_id}; people are told of each use",
            "only in the zone project, for work that can be taken back and has no effects outside; else it recommends",
        ]
    else:
        effect = ["it is noted that a person mends the workflow; the engine changes no file"]

    def do() -> str:
        with engine(root, clock) as acting:
            outcome = acting.settle(Settlement(target, by, approve, option))
            rules = acting.world.learning.rules
        if outcome.findings:
            raise Refused(*outcome.findings)
        word = "approved" if approve else "revoked" if rule is not None else "rejected"
        new = next((one.id for one in rules.values() if one.proposal == target), None)
        return f"{word} {target}" + (f": {new}" if approve and new is not None else "")

    sections = (
        (f"Events, as lines of {log_file(LEARNING_STREAM)}", [_line(event) for event in made.events]),
        ("Effect", effect),
        ("Decided by", (f"{by}: {UNPROVEN}",)),
    )
    words = ["collab", "proposal", "approve" if approve else "reject", target]
    words += ["--option", option] if approve and option is not None else []
    command = shlex.join([*words, "--as", by, "--root", str(root)])
    return Deed(target, sections, command, do)


__all__: Sequence[str] = ("AbortForm", "ApproveForm", "StartForm", "aborting", "settling", "starting", "ticking")
