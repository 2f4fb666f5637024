"""Answering what a workflow asks, alone or in a group, each recorded on its own (docs/specs/workflows.md §7)."""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

from core import journal
from core.clock import Clock
from core.finding import Finding, Refused, error
from core.governance.workflow_boundary import Leaver
from core.workflow import times, view
from core.workflow.answers import Answer
from core.workflow.desk import Workflows
from core.workflow.engine import Engine
from core.workflow.layout import log_file
from core.workflow.model import Entry
from core.workflow.planning import Planner
from core.workflow.view import EntryView
from tui.forms.confirm import Deed
from tui.forms.deeds import DeedForm
from tui.forms.drafts import Drafts, Saved
from tui.forms.fields import AreaField, Check, CheckField, Choice, ChoiceField, Field, LineField, ReadingField
from tui.when import when
from tui.widgets.glyphs import State

CHANNEL: Final = "console"
RESPOND, LATER = "=respond", "=later"
"""Answers that are no option; an option's id begins with neither."""
UNPROVEN: Final = "recorded as said, not proven"
_WRITES: Final = "Event, as a line of the log of "


@dataclass(frozen=True, slots=True)
class Given:
    """What a person says, to each of the questions alike. `key` makes a repeat harmless."""

    option: str | None = None
    respond: str | None = None
    defer: int | None = None
    args: Mapping[str, Any] | None = None
    note: str | None = None
    key: str = ""

    def answer(self, entry: str, by: str) -> Answer:
        """The same as one answer."""
        return Answer(
            entry,
            by,
            option=self.option,
            respond=self.respond,
            defer=self.defer,
            args=dict(self.args) if self.args else None,
            note=self.note,
            channel=CHANNEL,
            key=self.key or None,
        )

    def command(self, entry: str, by: str, root: Path) -> str:
        """The same as a command."""
        words = ["collab", "escalation", "decide", entry]
        if self.option is not None:
            words.append(self.option)
        words += ["--respond", self.respond] if self.respond is not None else []
        words += ["--defer", f"{self.defer}ms"] if self.defer is not None else []
        words += ["--args", journal.encode(dict(self.args)).decode().rstrip("\n")] if self.args else []
        words += ["--note", self.note] if self.note else []
        return shlex.join([*words, "--as", by, "--root", str(root)])


def asked_text(desk: Workflows, made: EntryView) -> str:
    """What is asked, with the engine's facts, in lines."""
    facts, code = dict(made.facts), desk.names.entry(made.entry)
    lines = [made.question]
    lines += [f"tried: {facts.pop('tried')}"] if "tried" in facts else []
    lines += [f"failure code: {code}"] if code is not None else []
    lines += [f"rule: {made.rule}"] if made.rule is not None else []
    if made.deadline is not None:
        due = when(made.deadline, desk.clock.now())
        lines.append(f"deadline: {due}, then {made.at_deadline}" + (" (overdue)" if made.overdue else ""))
    return "\n".join([*lines, "", *(f"{label}: {value}" for label, value in facts.items())])


class AnswerForm(DeedForm):
    """One answer to a question, or to several that share a cause."""

    HEADING: ClassVar[str] = "Answer"
    FORM: ClassVar[str] = "answer"
    DEFAULT_CSS = """
    AnswerForm ReadingField > LineView { max-height: 8; }
    """

    def __init__(self, desk: Workflows, entries: Sequence[Entry], by: str, drafts: Drafts) -> None:
        """`entries` is never empty; they share a cause, so that the first speaks for all."""
        many = f" and {len(entries) - 1} more" if len(entries) > 1 else ""
        super().__init__(desk.root, entries[0].id + many, drafts, desk.clock, by=by)
        self.desk, self.entries, self.by = desk, tuple(entries), by
        self._made = view.entry_view(desk.world, entries[0], desk.root)
        self._key = f"console-{secrets.token_hex(8)}"

    def fields(self) -> list[Field]:
        made = self._made
        found: list[Field] = [ReadingField("asked", "What is asked", asked_text(self.desk, made), "Nothing is asked.")]
        if len(self.entries) > 1:
            checks = [Check(one.id, f"{one.id}  {one.question}", ticked=True) for one in self.entries]
            found.append(CheckField("entries", "Answers these", checks, "space ticks; each is recorded on its own"))
        found.append(ChoiceField("answer", "Answer", self._choices(), where=(made.entry.id, "OPTION")))
        if made.may_respond:
            found.append(AreaField("words", "In words", "a new attempt with these words", ("--respond",)))
        if any(option.args for option in made.options):
            found.append(AreaField("args", "Arguments", "one a line: name = value", ("--args",)))
        found.append(LineField("until", "For how long", "30m, 2h, 1d", ("--defer",), value="2h"))
        found.append(LineField("note", "Note", "why; kept with the answer", ("--note",)))
        return found

    def _choices(self) -> list[Choice]:
        made = [
            Choice(
                option.id,
                option.title,
                option.effect + ("; recommended" if option.recommended else ""),
                state=State.MINE if option.recommended else None,
            )
            for option in self._made.options
        ]
        if self._made.may_respond:
            made.append(Choice(RESPOND, "Say it in words", "a new attempt with your words"))
        made.append(Choice(LATER, "Later", "hidden until then, then one reminder; it stays open"))
        return made

    def on_mount(self) -> None:
        super().on_mount()
        self._fit()

    def on_field_changed(self, event: Field.Changed) -> None:
        super().on_field_changed(event)
        self._fit()

    def restore(self, saved: Saved) -> None:
        super().restore(saved)
        self._fit()

    def _fit(self) -> None:
        """Only the fields that the chosen answer needs."""
        chosen = self._chosen()
        needs = {"words": chosen == RESPOND, "until": chosen == LATER, "args": bool(self._schema())}
        for field in self.query(Field):
            field.display = needs.get(field.key, True)
            if field.key == "args" and isinstance(field, AreaField) and not field.text.strip():
                field.restore("\n".join(f"{name} = " for name in self._schema()))

    def _chosen(self) -> str:
        choice = self.query_one("#field-answer", ChoiceField).choice
        return choice.id if choice is not None else ""

    def _schema(self) -> Mapping[str, str]:
        """The arguments of the chosen option: name to type."""
        chosen = self._chosen()
        return next((option.args for option in self._made.options if option.id == chosen), {})

    def problems(self) -> Mapping[str, str]:
        chosen, found = self._chosen(), {}
        if len(self.entries) > 1 and not self.query_one("#field-entries", CheckField).ticked:
            found["entries"] = "tick at least one question"
        if chosen == RESPOND and not self.query_one("#field-words", AreaField).text.strip():
            found["words"] = "say it in words"
        if chosen == LATER and not times.span(self.line("until")):
            found["until"] = "a span of time such as 30m, 2h or 1d"
        return found

    def deed(self) -> Callable[[], Deed]:
        chosen = self._chosen()
        note = self.line("note") or None
        entries = self.entries
        if len(entries) > 1:
            ticked = set(self.query_one("#field-entries", CheckField).ticked)
            entries = tuple(one for one in entries if one.id in ticked)
        if chosen == RESPOND:
            words = self.query_one("#field-words", AreaField).text.strip()
            given = partial(Given, respond=words, note=note, key=self._key)
        elif chosen == LATER:
            given = partial(Given, defer=times.span(self.line("until")), note=note)
        else:
            text, schema = self._args_text(), self._schema()
            given = partial(_with_args, chosen, text, schema, note, self._key)
        ids = [one.id for one in entries]
        return lambda: answering(self.root, ids, given(), self.by, self.clock)

    def _args_text(self) -> str:
        return self.query_one("#field-args", AreaField).text if self._schema() else ""


def _with_args(option: str, text: str, schema: Mapping[str, str], note: str | None, key: str) -> Given:
    return Given(option=option, args=read_args(text, schema) if schema else None, note=note, key=key)


def read_args(text: str, schema: Mapping[str, str]) -> dict[str, Any]:
    """`name = value` lines as arguments of the types that the option asks for. Raises Refused (`E_ARGS`)."""
    made: dict[str, Any] = {}
    for line in text.split("\n"):
        name, sign, value = (part.strip() for part in line.partition("="))
        if not (name or sign) or (name in schema and not value):
            continue
        kind = schema.get(name)
        if kind is None:
            offered = ", ".join(f"{key} ({one})" for key, one in schema.items())
            raise Refused(error("E_ARGS", f"the option has no argument {name!r}; there are {offered}", None, "--args"))
        made[name] = _typed(name, value, kind)
    return made


def _typed(name: str, value: str, kind: str) -> Any:
    try:
        if kind == "integer":
            return int(value)
        if kind == "number":
            return float(value)
    except ValueError:
        raise Refused(error("E_ARGS", f"args must be an object: {name!r} is no {kind}", None, "--args")) from None
    if kind == "boolean":
        words = {"true": True, "yes": True, "false": False, "no": False}
        if value.lower() not in words:
            raise Refused(error("E_ARGS", f"args must be an object: {name!r} is no {kind}", None, "--args"))
        return words[value.lower()]
    return value


def answering(root: Path, ids: Sequence[str], given: Given, by: str, clock: Clock) -> Deed:
    """Answers that would be accepted now. Raises Refused with every reason against them."""
    shown: list[Entry] = []
    lines: list[str] = []
    refused: list[Finding] = []
    with Planner(root, clock) as planner:
        for name in ids:
            entry = planner.world.entry(name)
            made = planner.decide(given.answer(name, by))
            if made.outcome.findings or entry is None:
                refused += made.outcome.findings
                continue
            shown.append(entry)
            planner.assume(made)
            lines += [journal.encode(dict(event.record)).decode("utf-8").rstrip("\n") for event in made.events]
        served = planner.served
    if not shown:
        raise Refused(*refused)
    sections: list[tuple[str, Sequence[str]]] = [
        (f"Events, as lines of {log_file(shown[0].run_id)}" if len(lines) > 1 else _WRITES + shown[0].run_id, lines),
        ("Effect", _effect(shown, given, served)),
        ("Decided by", (f"{by}: {UNPROVEN}",)),
    ]
    if refused:
        sections.insert(0, ("Not answered", [item.cause for item in refused]))
    commands = [given.command(entry.id, by, root) for entry in shown]
    return Deed(
        ", ".join(entry.id for entry in shown),
        sections,
        commands[0],
        partial(_answer, root, shown, given, by, clock),
        again=partial(answering, root, ids, given, by, clock),
        more=commands[1:],
    )


def _effect(shown: Sequence[Entry], given: Given, served: bool) -> list[str]:
    if given.defer is not None:
        return ["hidden until then, then one reminder; it stays open"]
    if given.respond is not None:
        what = "a new attempt with these words"
    else:
        option = next(one for one in shown[0].options if one.id == given.option)
        what = f"{option.title}: {option.effect}"
    then = (
        "the engine at work here applies it at once"
        if served
        else "the next tick applies it (u); no daemon is at work here"
    )
    each = f"each of the {len(shown)} questions on its own" if len(shown) > 1 else ""
    return [what, *([each] if each else []), then]


def _answer(root: Path, shown: Sequence[Entry], given: Given, by: str, clock: Clock) -> str:
    done: list[str] = []
    refused: list[Finding] = []
    left: list[Finding] = []
    with Engine(root, clock=clock, leave=Leaver(root).leave) as engine:
        for entry in shown:
            try:
                outcome = engine.answer(given.answer(entry.id, by), entry)
            except Refused as exc:
                refused += exc.findings
                continue
            refused += outcome.findings
            left += engine.left
            if not outcome.findings:
                done.append(entry.id)
    if not done:
        raise Refused(*refused)
    word = "hidden until then" if given.defer is not None else f"answered: {given.option or 'in words'}"
    return "; ".join([f"{', '.join(done)} {word}", *(item.cause for item in (*refused, *left))])
