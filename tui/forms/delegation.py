"""Launching, collecting and cancelling a delegate; what to hand over afterwards (docs/specs/delegation.md §7–§9)."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.screen import ModalScreen

from core.delegation import addons, brief, store
from core.delegation.addons import Addon
from core.delegation.brief import Brief, Handover
from core.delegation.desk import PlanView
from core.delegation.rules import Check
from core.delegation.store import Delegating
from core.delegation.view import CLAIM, Row, TaskLine
from core.delegation.writer import Halt, World
from core.finding import Refused, error
from core.sanitize import inert
from tui.forms import plan_deeds
from tui.forms.bar import Bar, Button
from tui.forms.checks import ChecksField
from tui.forms.confirm import Deed
from tui.forms.deeds import DeedForm
from tui.forms.drafts import Drafts, Saved
from tui.forms.fields import AreaField, Choice, ChoiceField, Field, LineField, ReadingField
from tui.forms.preview import Headline
from tui.widgets.glyphs import palette
from tui.widgets.pane import Pane, Sheet
from tui.widgets.text import wrap, wrap_command

SETTLE: Final = 0.25
"""Seconds without a change after which the conditions are asked again."""
READS, WRITES = "reads", "writes"


class LaunchForm(DeedForm):
    """What a delegate gets and how it is carried; every condition is shown before anything is recorded."""

    VERTICAL_BREAKPOINTS = [(0, "-short"), (20, "-normal"), (32, "-tall")]
    HEADING: ClassVar[str] = "Launch a delegate"
    FORM: ClassVar[str] = "launch"

    class Asked(Message):
        """The conditions as they are now, or why they cannot be judged."""

        def __init__(self, number: int, checks: Sequence[Check], problem: str) -> None:
            super().__init__()
            self.number, self.checks, self.problem = number, tuple(checks), problem

    class Carriers(Message):
        """Who could carry a delegate here."""

        def __init__(self, known: Mapping[str, Addon]) -> None:
            super().__init__()
            self.known = dict(known)

    def __init__(self, view: PlanView, task: str, me: str, drafts: Drafts, world: World) -> None:
        super().__init__(view.path, view.name, drafts, world.clock, view.name, me)
        self.view, self.me, self.world = view, me, world
        self._wanted, self._plan = task, view.place
        self._known: dict[str, Addon] = dict(addons.shipped())
        used = [row.via for row in view.timeline.rows if row.via] if view.timeline is not None else []
        self._usual = used[-1] if used else "agentkit"
        self._abilities = store.Abilities(self._plan, world, {})
        self._fresh_id = store.new_id(world)
        self._number = 0
        self._waits = False
        self.handover: tuple[tuple[str, str], ...] | None = None
        """What is to be done after the launch was recorded: title and command."""

    def _tasks(self) -> list[Choice]:
        timeline = self.view.timeline
        return [Choice(task.id, task.id, _task_note(task)) for task in (timeline.tasks if timeline is not None else ())]

    def _carriers(self) -> list[Choice]:
        return [
            Choice(key, key, f"{addon.transport}" if addon.transport else addon.problem or "carries no delegates")
            for key, addon in sorted(self._known.items())
        ]

    def fields(self) -> list[Field]:
        access = [
            Choice(WRITES, "writes", "only in a worktree of its own"),
            Choice(READS, "only reads", "if it changes anything it counts as failed"),
        ]
        return [
            ChecksField("checks", "Conditions"),
            ChoiceField("task", "Task", self._tasks(), value=self._wanted),
            ChoiceField("via", "Carried by", self._carriers(), value=self._usual),
            ChoiceField("access", "It", access, value=WRITES),
            LineField("worktree", "Worktree", "where it writes", ("worktree",), value=f"../{self._fresh_id}"),
            LineField("kind", "Agent", "headless: which agent", value="claude"),
            LineField("profile", "Profile", "headless: may stay blank"),
            LineField("target", "Target", "interactive: machine:pane"),
            AreaField("instructions", "What to do", "title, criteria and rules are in the brief by themselves"),
            LineField("id", "Id", "of this delegation", ("new-id",), value=self._fresh_id),
            LineField("note", "Note", "may stay blank"),
            ReadingField("rules", "Rules that no file proves", "\n".join(brief.RULES), ""),
        ]

    def on_mount(self) -> None:
        super().on_mount()
        self.call_after_refresh(self.query_one("#field-task", ChoiceField).focus_control)
        self.run_worker(self._look_around, group="carriers", thread=True, exit_on_error=False)
        self.call_after_refresh(self._ask)

    def _look_around(self) -> None:
        """In a thread: what the repository brings."""
        self.post_message(self.Carriers({**addons.packed(self._plan.repo), **addons.shipped()}))

    def on_launch_form_carriers(self, message: LaunchForm.Carriers) -> None:
        if message.known.keys() != self._known.keys():
            wanted = self._usual if self._usual not in self._known else self._picked("via")
            self._known = message.known
            self.query_one("#field-via", ChoiceField).set_choices(self._carriers(), wanted)
            self._fit()
            self._ask_soon()

    def restore(self, saved: Saved) -> None:
        super().restore(saved)
        if self._wanted:
            self.query_one("#field-task", ChoiceField).restore(self._wanted)
        self._fit()
        self._ask_soon()

    def on_field_changed(self, event: Field.Changed) -> None:
        super().on_field_changed(event)
        self._fit()
        self._ask_soon()

    def _fit(self) -> None:
        """Only a delegate that writes has a worktree; which agent and which target depends on the transport."""
        headless = self._transport() != "interactive"
        self.query_one("#field-worktree").display = self._picked("access") == WRITES
        self.query_one("#field-kind").display = headless
        self.query_one("#field-profile").display = headless

    def _picked(self, key: str) -> str:
        choice = self.query_one(f"#field-{key}", ChoiceField).choice
        return choice.id if choice is not None else ""

    def _transport(self) -> str:
        addon = self._known.get(self._picked("via"))
        return (addon.transport if addon is not None else None) or "headless"

    # The conditions.

    def _ask_soon(self) -> None:
        if not self._waits:
            self._waits = True
            self.set_timer(SETTLE, self._ask)

    def _ask(self) -> None:
        self._waits = False
        if not self.is_attached:
            return
        self._number += 1
        number, asked, abilities = self._number, self.asked()[0], self._abilities

        def ask() -> None:
            try:
                made = store.dry_run(self._plan, self.world, asked, abilities)
            except Halt as exc:
                self.post_message(self.Asked(number, (), exc.finding.cause))
                return
            self.post_message(self.Asked(number, made.checks, ""))

        self.run_worker(ask, group="checks", exclusive=True, thread=True, exit_on_error=False)

    def on_launch_form_asked(self, message: LaunchForm.Asked) -> None:
        if message.number == self._number:
            self.query_one(ChecksField).show(message.checks, message.problem)

    # What the fields say.

    def asked(self) -> tuple[Delegating, Brief | None]:
        """The request as it stands, and its brief; None while there is no task to write one about."""
        task, identity = self._picked("task"), self.line("id")
        reads = self._picked("access") == READS
        worktree = None if reads else self.line("worktree") or None
        payload: dict[str, Any] = {"transport": self._transport(), "via": self._picked("via")}
        payload.update({key: text for key in ("kind", "profile") if (text := self._shown(key))})
        payload.update({key: text for key in ("target", "note") if (text := self.line(key))})
        if reads or worktree is not None:
            payload["worktree"] = worktree
        payload["delegation_id"] = identity
        made: Brief | None = None
        contract = self.view.contract
        if contract is not None and task in contract.tasks:
            text = self.query_one("#field-instructions", AreaField).text
            made = brief.compose(contract, task, identity, worktree, text)
            payload["prompt_digest"] = made.digest
        return Delegating(task, payload, {}, plan_deeds.actor(self.me)), made

    def _shown(self, key: str) -> str:
        return self.line(key) if self.query_one(f"#field-{key}").display else ""

    def problems(self) -> Mapping[str, str]:
        found = {}
        if self._picked("access") == WRITES and not self.line("worktree"):
            found["worktree"] = "say where it may write; a delegate without a place of its own only reads"
        if self._transport() == "interactive" and not self.line("target"):
            found["target"] = "say whom to ask, as machine:pane"
        return found

    def deed(self) -> Callable[[], Deed]:
        asked, made = self.asked()
        if made is None:
            raise Refused(error("task_unknown", "there is no task to delegate in this contract"))
        worktree = asked.payload.get("worktree")
        handing = Handover(
            self._transport(),
            self.line("kind") or "claude",
            self._shown("profile") or None,
            self.line("target") or None,
            worktree,
        )
        commands = [("Hand it over", brief.handover_command(handing, made))]
        if worktree is not None:
            making = brief.worktree_command(self.view.name, asked.payload["delegation_id"], worktree)
            commands.insert(0, ("Make its worktree", making))
        results = brief.results_folder(asked.payload["delegation_id"])
        commands.append(("Its results go to", shlex.quote(str(self._plan.plan / results))))
        self.handover = tuple(commands)
        return partial(plan_deeds.launching, self._plan, self.world, asked, made)


def _task_note(task: TaskLine) -> str:
    words = {"pending": "not started", "in_progress": "in progress", "completed": "complete"}
    return f"{task.title}; {words[task.status]}" + ("" if task.parallel_safe else ", not parallel_safe")


class EndForm(DeedForm):
    """How one delegation ended."""

    OPERATION: ClassVar[str] = ""

    def __init__(self, view: PlanView, row: Row, me: str, drafts: Drafts, world: World) -> None:
        super().__init__(view.path, row.delegation_id, drafts, world.clock, row.delegation_id, me)
        self.row, self.me, self.world = row, me, world
        self._plan = view.place

    def payload(self) -> dict[str, Any]:
        """What the fields say, with the delegation's id."""
        made: dict[str, Any] = {"delegation_id": self.row.delegation_id}
        return {**made, "note": note} if (note := self.line("note")) else made

    def deed(self) -> Callable[[], Deed]:
        asked = Delegating(self.row.task or "", self.payload(), {}, plan_deeds.actor(self.me))
        return partial(plan_deeds.ending, self._plan, self.world, self.OPERATION, asked)


class CollectForm(EndForm):
    """Completed or failed, with what it left."""

    HEADING: ClassVar[str] = "Collect a delegate"
    FORM: ClassVar[str] = "collect"
    OPERATION: ClassVar[str] = "collect"

    def fields(self) -> list[Field]:
        states = [
            Choice("completed", "completed", "it says that it is done"),
            Choice("failed", "failed", "it ended without; the note says why"),
        ]
        return [
            ChoiceField("state", "It", states, value="completed"),
            LineField(
                "result_path",
                "Result",
                "relative to the plan, else to the repository",
                ("result_path",),
                placeholder=f"{brief.results_folder(self.row.delegation_id)}result.md",
            ),
            LineField("note", "Note", "why it failed, or blank"),
            ReadingField("claim", "What this is worth", CLAIM, ""),
        ]

    def payload(self) -> dict[str, Any]:
        choice = self.query_one("#field-state", ChoiceField).choice
        made = {**super().payload(), "state": choice.id if choice is not None else "completed"}
        return {**made, "result_path": path} if (path := self.line("result_path")) else made


class CancelForm(EndForm):
    """It is not wanted any more."""

    HEADING: ClassVar[str] = "Cancel a delegate"
    FORM: ClassVar[str] = "cancel"
    OPERATION: ClassVar[str] = "cancel"

    def fields(self) -> list[Field]:
        said = "This stops nothing. Stop what carries it first, then record here that it was cancelled."
        return [LineField("note", "Note", "may stay blank"), ReadingField("stops", "What this does", said, "")]


class HandoverScreen(ModalScreen[None]):
    """The launch is recorded; what is left to do is shown to be copied, and never run here."""

    VERTICAL_BREAKPOINTS = [(0, "-short"), (20, "-normal")]
    DEFAULT_CSS = """
    HandoverScreen { align: center middle; background: $background 60%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "copy", "copy", id="handover.copy"),
        Binding("escape,enter", "back", "back", id="handover.back"),
    ]

    def __init__(self, said: str, commands: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self.said, self.commands = said, tuple(commands)

    def compose(self) -> ComposeResult:
        with Vertical(classes="form"):
            yield Headline("Recorded. Now hand it over", self.said.split("\n")[0])
            yield Pane(id="receipt")
            yield Bar()

    def on_mount(self) -> None:
        pane = self.query_one(Pane)
        pane.show(self._lines)
        pane.focus()
        self.query_one(Bar).show((Button("Esc", "back", "back"), Button("y", "copy", "copy")))

    def _lines(self, width: int) -> list[Any]:
        colours = palette(self.app)
        made = Sheet(width, colours.muted, colours.text, colours.code)
        for title, command in self.commands:
            made.gap()
            made.title(title)
            # Of a command with a text in it only the copy is a command again; here it is read.
            lines = command.split("\n")
            pieces = wrap_command(command, made.width) if len(lines) == 1 else _wrapped(lines, made.width)
            made.lines += [made.plain(piece, code=True) for piece in pieces]
        made.gap()
        for rule in brief.RULES:
            made.lines += [made.plain(piece) for piece in wrap(rule, made.width)]
        return made.lines

    def action_copy(self) -> None:
        """Copy the commands; the terminal decides whether it may."""
        self.app.copy_to_clipboard("\n".join(command for _, command in self.commands[:-1]) + "\n")
        self.query_one(Bar).show((Button("Esc", "back", "back"), Button("y", "copy", "copy")), "copied")

    def action_back(self) -> None:
        self.dismiss(None)

    def on_bar_pressed(self, message: Bar.Pressed) -> None:
        message.stop()
        self.run_worker(self.run_action(message.action), group="bar", exit_on_error=False)


def _wrapped(lines: Sequence[str], width: int) -> list[str]:
    return [piece for line in lines for piece in wrap(inert(line), width)]
