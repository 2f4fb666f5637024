"""Running a gate: what is run and how, a preview, its output as it comes (docs/specs/delegation.md §5)."""

from __future__ import annotations

import json
import shlex
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.screen import ModalScreen
from textual.worker import Worker, WorkerState, get_current_worker

from core.delegation import contract, gates, preview, store
from core.delegation.desk import PlanView
from core.delegation.gates import Gate, Gated
from core.delegation.place import Place
from core.delegation.view import TaskLine
from core.delegation.writer import Halt, Hold, World
from core.finding import Finding, Refused, error
from core.governance import plan_boundary
from core.sanitize import inert_block
from tui.forms.bar import Bar, Button
from tui.forms.confirm import OUTDATED, Deed
from tui.forms.deeds import DeedForm
from tui.forms.drafts import Drafts, Saved
from tui.forms.fields import Choice, ChoiceField, Field, LineField
from tui.forms.plan_deeds import Section, moved
from tui.forms.preview import Headline
from tui.forms.problems import Problems
from tui.widgets.glyphs import State, glyphs, palette
from tui.widgets.lines import LineView

LINES: Final = 2000
"""Lines of output that are kept on the screen; the log on disk holds more."""
WORDS, SHELL = "words", "shell"
_SHELL_SIGNS: Final = frozenset("|&;<>()$`*?[]#~=%{}!\n")


@dataclass(frozen=True, slots=True)
class Asked:
    """A gate to run in a plan, and the head seq that its preview was drawn from."""

    place: Place
    gate: Gate
    head: int


def needs_shell(check: str) -> bool:
    """Whether a check is more than a program and its words."""
    try:
        return bool(_SHELL_SIGNS & set(check)) or not shlex.split(check)
    except ValueError:
        return True


class GateForm(DeedForm):
    """Which criterion, by which command, for how long."""

    HEADING: ClassVar[str] = "Run a gate"
    FORM: ClassVar[str] = "gate"

    def __init__(self, view: PlanView, task: TaskLine, drafts: Drafts, world: World) -> None:
        super().__init__(view.path, task.id, drafts, world.clock, f"{task.id} of {view.name}")
        self._line, self.world = task, world
        self._plan, self._contract = view.place, view.contract
        self._filled = ""
        self.asked: Asked | None = None

    def _checks(self) -> dict[str, str]:
        known = self._contract.tasks.get(self._line.id) if self._contract is not None else None
        return {item.criterion: item.check for item in (known.gate_intent if known is not None else ())}

    def fields(self) -> list[Field]:
        states = sorted(self._line.criteria, key=lambda item: item.satisfied)
        choices = [
            Choice(
                item.criterion,
                item.criterion,
                "satisfied already" if item.satisfied else self._statement(item.criterion),
            )
            for item in states
        ]
        check = self._checks().get(states[0].criterion, "") if states else ""
        self._filled = check
        how = [
            Choice(WORDS, "as words", "the program itself, no shell"),
            Choice(SHELL, "by the shell", "pipes, variables, patterns"),
        ]
        again = [
            Choice("reuse", "reuse", "an equal run since the task's start answers"),
            Choice("run", "run", "whatever is known already"),
        ]
        return [
            ChoiceField("criterion", "Criterion", choices),
            LineField("command", "Command", "run in the repository", ("--json",), value=check),
            ChoiceField("how", "It runs", how, value=SHELL if needs_shell(check) else WORDS),
            LineField("timeout", "Seconds", "then its process group is ended", ("--timeout",), value="600"),
            ChoiceField("again", "If it ran before", again),
        ]

    def _statement(self, name: str) -> str:
        made = self._contract.criteria.get(name) if self._contract is not None else None
        return made.statement if made is not None else ""

    def restore(self, saved: Saved) -> None:
        super().restore(saved)
        self._filled = ""

    def on_field_changed(self, event: Field.Changed) -> None:
        super().on_field_changed(event)
        command = self.query_one("#field-command", LineField)
        if event.field.key == "criterion" and command.text == self._filled:
            check = self._checks().get(self._picked("criterion"), "")
            command.text = self._filled = check
            self.query_one("#field-how", ChoiceField).restore(SHELL if needs_shell(check) else WORDS)

    def _picked(self, key: str) -> str:
        choice = self.query_one(f"#field-{key}", ChoiceField).choice
        return choice.id if choice is not None else ""

    def problems(self) -> Mapping[str, str]:
        found = {}
        if not self.line("command"):
            found["command"] = "say what to run"
        elif self._picked("how") == WORDS:
            try:
                shlex.split(self.line("command"))
            except ValueError as exc:
                found["command"] = f"these are no words of a command: {exc}"
        try:
            if not 0 < float(self.line("timeout")) < float("inf"):
                found["timeout"] = "more than 0 seconds"
        except ValueError:
            found["timeout"] = "a number of seconds"
        return found

    def deed(self) -> Callable[[], Deed]:
        text = self.line("command")
        command = text if self._picked("how") == SHELL else shlex.split(text)
        reuse = self._picked("again") == "reuse"
        gate = Gate(self._line.id, self._picked("criterion"), command, float(self.line("timeout")), reuse)
        return partial(self._deed, gate)

    def _deed(self, gate: Gate, news: tuple[Section, ...] = ()) -> Deed:
        """In a thread. Raises Refused with what forbids it."""
        record = preview.read(self._plan)
        word = contract.head(gate.command)
        allowed = record.chain.live.document.scope.allowed_command_classes
        if word not in allowed:
            cause = f"{word} is no allowed command class of the contract; there are {', '.join(allowed)}"
            raise Refused(error("command_not_allowed", cause, None, "--json"))
        self.asked = Asked(self._plan, gate, record.head_seq)
        shell = isinstance(gate.command, str)
        run = [gates.joined(gate.command), "by /bin/sh" if shell else "as these words, without a shell"]
        run += [f"in {self._plan.repo}", f"for at most {gate.timeout:g} s, then its process group is ended"]
        sections = (
            *news,
            ("Runs", run),
            ("Writes", (f"one gate_run, observed, into {self._plan.plan / 'journal.ndjson'}", "its output, in gates/")),
            ("Effect", (f"exit 0 satisfies {gate.criterion} of {gate.task}; anything else does not",)),
        )
        words = ["gate", "--task", gate.task, "--criterion", gate.criterion, "--json", json.dumps(gate.command)]
        words += ["--timeout", f"{gate.timeout:g}"]
        words += [] if gate.reuse else ["--no-reuse"]
        return Deed(str(self._plan.plan), sections, store.command(self._plan, *words), lambda: "run", verb="run")


class Cancelling(threading.Event):
    """Set by the person, or when the console ends: then its workers are cancelled before their screens go."""

    worker: Worker[object] | None = None

    def is_set(self) -> bool:
        return super().is_set() or (self.worker is not None and self.worker.is_cancelled)


class Output(LineView):
    """What comes out of the gate, its end in view."""


class GateScreen(ModalScreen[str | None]):
    """The gate runs and its output comes; Esc ends it while it runs, and closes afterwards."""

    VERTICAL_BREAKPOINTS = [(0, "-short"), (20, "-normal")]
    DEFAULT_CSS = """
    GateScreen { align: center middle; background: $background 60%; }
    GateScreen Output { height: 1fr; margin: 1 0 0 0; padding: 0 1; }
    GateScreen.-short Output { margin: 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop", "cancel", id="gate.stop"),
        Binding("enter", "go", "close", id="gate.go"),
    ]

    class Came(Message):
        """Output came."""

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, GateScreen.Came)

    class Ended(Message):
        """The gate ended: what it did, or why it recorded nothing."""

        def __init__(self, made: Gated | None, said: str, problems: tuple[Finding, ...], news: tuple[str, ...]) -> None:
            super().__init__()
            self.made, self.said, self.problems, self.news = made, said, problems, news

    def __init__(self, asked: Asked, world: World) -> None:
        super().__init__()
        self.asked, self.world = asked, world
        self._cancel = Cancelling()
        self._came: deque[bytes] = deque()
        self._lines: deque[str] = deque(maxlen=LINES)
        self._rest = b""
        self._head: int | None = asked.head
        self._running = False
        self._said: str | None = None
        self._since = 0.0

    def compose(self) -> ComposeResult:
        with Vertical(classes="form"):
            yield Headline("Gate", f"{self.asked.gate.criterion} of {self.asked.gate.task}")
            yield Problems()
            yield Output(empty="It runs; nothing has come out of it yet.")
            yield Bar()

    def on_mount(self) -> None:
        self.query_one(Output).focus()
        self.set_interval(1.0, self._frame)
        self._begin()

    def on_unmount(self) -> None:
        self._cancel.set()

    def _begin(self) -> None:
        self._running = True
        self._cancel.clear()
        self._since = self.world.clock.now().timestamp()
        self._frame()
        self.run_worker(self._run, group="gate", thread=True, exit_on_error=False)

    def _frame(self) -> None:
        if not self.is_attached:
            return
        seconds = int(self.world.clock.now().timestamp() - self._since)
        if self._running:
            word = "ending it" if self._cancel.is_set() else f"running, {seconds} s of {self.asked.gate.timeout:g}"
            self.query_one(Bar).show((Button("Esc", "cancel", "stop", not self._cancel.is_set()),), word)
        elif self._said is None and self._head is not None and self._head < 0:
            self.query_one(Bar).show((Button("Enter", "run it now", "go"), Button("Esc", "back", "stop")))
        else:
            self.query_one(Bar).show((Button("Enter", "close", "go"),), (self._said or "").split("\n")[0])

    # In a thread.

    def _hear(self, piece: bytes) -> None:
        self._came.append(piece)
        self.post_message(self.Came())

    def _run(self) -> None:
        self._cancel.worker = get_current_worker()
        asked = self.asked
        head = self._head if self._head is not None and self._head >= 0 else None
        try:
            made = gates.gate(
                asked.place, self.world, asked.gate, Hold(expect=head), on_output=self._hear, cancel=self._cancel
            )
        except Halt as exc:
            news: tuple[str, ...] = ()
            if exc.finding.code in OUTDATED:
                news = tuple(line for _, lines in moved(asked.place, asked.head) for line in lines)
            self.post_message(self.Ended(None, exc.finding.cause, (exc.finding,), news))
            return
        left = plan_boundary.leave(asked.place.plan, frozenset(event["seq"] for event in made.events))
        found = (made.finding,) if made.finding is not None else ()
        self.post_message(self.Ended(made, made.message, (*found, *left.findings), ()))

    # From the thread.

    def on_gate_screen_came(self, message: GateScreen.Came) -> None:
        self._drain()

    def _drain(self) -> None:
        while self._came:
            *lines, self._rest = (self._rest + self._came.popleft()).split(b"\n")
            self._lines.extend(_shown(line) for line in lines)
        # A line that never ends is shown by its beginning and does not grow without bound.
        self._rest = self._rest[-65536:]
        shown = [*self._lines, *([_shown(self._rest)] if self._rest else [])]
        output = self.query_one(Output)
        output.set_lines(shown)
        output.action_line_end()

    def on_gate_screen_ended(self, message: GateScreen.Ended) -> None:
        self._running = False
        self._drain()
        colours, signs = palette(self.app), glyphs(self.app)
        outdated = any(item.code in OUTDATED for item in message.problems)
        if outdated:
            # What moved is shown, and it is asked again.
            self._head = -1
        cancelled = any(item.code == "gate_cancelled" for item in message.problems)
        self._said = None if message.made is None else message.said
        self.query_one(Problems).show(() if cancelled else message.problems)
        tail = list(message.news)
        if cancelled:
            tail.append("cancelled: its process group was ended, and nothing is recorded")
        elif message.made is not None:
            state = State.DONE if message.made.exit_code == 0 else State.FAILED
            tail.append(f"{signs.state(state)} {message.said}")
        output = self.query_one(Output)
        style = colours.strong
        output.set_lines([*self._lines, *(Text(inert_block(line), style, end="") for line in tail)])
        output.action_line_end()
        self._frame()

    def action_stop(self) -> None:
        if self._running:
            self._cancel.set()
            self._frame()
        else:
            self.dismiss(self._said)

    def action_go(self) -> None:
        if self._running:
            return
        if self._said is None and self._head is not None and self._head < 0:
            self.query_one(Problems).show(())
            self._begin()
        else:
            self.dismiss(self._said)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        event.stop()
        if event.state is WorkerState.ERROR and event.worker.group == "gate":
            kind = type(event.worker.error).__name__
            cause = f"the gate failed unexpectedly ({kind}: {event.worker.error}); look at the journal before you retry"
            self.post_message(self.Ended(None, cause, (error("internal_error", cause),), ()))

    def on_bar_pressed(self, message: Bar.Pressed) -> None:
        message.stop()
        self.run_worker(self.run_action(message.action), group="bar", exit_on_error=False)


def _shown(line: bytes) -> str:
    return inert_block(line.decode("utf-8", "replace").rstrip("\r")).replace("\n", " ")
