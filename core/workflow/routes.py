"""Routes: what a verdict leads to, as one line of text (docs/specs/workflows.md §3, "Routes").

Words are case-sensitive, `→` and `->` are one. Faults name the offset of the word in the text, or None for the whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from core.workflow.model import Control, Effect, Route, Verdict

Grammar = Literal["for_each", "chain"]
_TOKEN = re.compile(
    r'\s*(?:(→|->)|(\+)|"([^"]*)"|\'([^\']*)\'|(retry\s*\(\s*[^()\s+"\']*\s*\))|((?:(?!→|->)[^\s+"\'])+)|(.))'
)
_RETRY = re.compile(r"retry\s*\(\s*([0-9]{1,6})\s*\)")
_SIGNALLED = frozenset({"ESCALATE", "BLOCKED_ON", "ERROR", "CHECKPOINT"})
_NUMBER = re.compile(r"-?[0-9]{1,9}")
PILOTE = "pilote"


@dataclass(frozen=True, slots=True)
class Fault:
    """A broken route: `offset` of the word that offends for E_ROUTE_WORD, else None."""

    code: Literal["E_ROUTE_WORD", "E_ROUTE_SHAPE"]
    cause: str
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Token:
    kind: Literal["arrow", "plus", "text", "word"]
    text: str
    offset: int


def tokens(text: str) -> list[Token]:
    """The words of a route with their offsets."""
    made = []
    for match in _TOKEN.finditer(text):
        arrow, plus, double, single, retry, word, other = match.groups()
        start = match.start(match.lastindex or 0)
        if arrow:
            made.append(Token("arrow", arrow, start))
        elif plus:
            made.append(Token("plus", "+", start))
        elif double is not None or single is not None:
            made.append(Token("text", double if double is not None else single, start - 1))
        elif retry or word:
            made.append(Token("word", retry or word, start))
        elif other and not other.isspace():
            made.append(Token("word", other, start))
    return made


@dataclass
class _Parsed:
    effects: list[Effect] = field(default_factory=list)
    retry: int | None = None
    control: Control | None = None
    goto: int | None = None
    late_retry: bool = False
    controls: int = 0
    retries: int = 0
    faults: list[Fault] = field(default_factory=list)

    def word(self, token: Token, cause: str) -> None:
        self.faults.append(Fault("E_ROUTE_WORD", cause, token.offset))

    def shape(self, cause: str) -> None:
        self.faults.append(Fault("E_ROUTE_SHAPE", cause))

    def add(self, control: Control) -> None:
        self.controls += 1
        self.control = self.control or control

    def add_retry(self, times: int) -> None:
        self.retries += 1
        self.late_retry = self.late_retry or self.controls > 0
        self.retry = times if self.retry is None else self.retry


def _actions(text: str) -> list[list[Token]]:
    found = tokens(text)
    if found and found[0].kind == "arrow":
        found = found[1:]
    made: list[list[Token]] = [[]]
    for token in found:
        if token.kind == "plus":
            made.append([])
        else:
            made[-1].append(token)
    return made


def _action(parsed: _Parsed, action: list[Token]) -> None:
    """One action: its word, what belongs to it, and nothing else."""
    if not action:
        parsed.shape("an action is empty")
        return
    head, rest = action[0], action[1:]
    if head.kind != "word":
        parsed.word(head, f"{head.text!r} is no action")
        return
    name, _, bound = head.text.partition(":")
    if head.text == "signal" or (name == "signal" and bound):
        rest = _signal(parsed, head, bound, rest)
    elif name == "trigger" and bound:
        _trigger(parsed, head, bound)
    elif name == "notify":
        rest = _notify(parsed, bound, rest)
    elif head.text == "gate:human":
        rest = _gate(parsed, rest)
    else:
        rest = _plain(parsed, head, rest)
    for token in rest[:1]:
        parsed.word(token, f"{token.text!r} does not belong there")


def _target(rest: list[Token]) -> tuple[str, list[Token]]:
    """The one word that an action may name, pilote by default, and what is left."""
    if rest and rest[0].kind == "word":
        return rest[0].text, rest[1:]
    return PILOTE, rest


def _send(parsed: _Parsed, name: str, rest: list[Token]) -> list[Token]:
    if name == "ERROR":
        parsed.effects.append(Effect(do="ERROR"))
        return rest
    target, rest = _target(rest)
    if name == "CHECKPOINT":
        parsed.effects.append(Effect(do="CHECKPOINT", target=target))
    else:
        parsed.add(Control(do="escalate" if name == "ESCALATE" else "block", target=target))
    return rest


def _signal(parsed: _Parsed, head: Token, bound: str, rest: list[Token]) -> list[Token]:
    """`signal → X d` and `signal:X`."""
    if bound:
        if bound not in _SIGNALLED:
            parsed.word(head, f"{bound!r} is no signal that a route sends")
            return []
        _send(parsed, bound, [])
        return rest
    if rest and rest[0].kind == "arrow":
        rest = rest[1:]
    if not rest or rest[0].kind != "word":
        parsed.shape("signal names no signal")
        return rest
    if rest[0].text not in _SIGNALLED:
        parsed.word(rest[0], f"{rest[0].text!r} is no signal that a route sends")
        return []
    return _send(parsed, rest[0].text, rest[1:])


def _trigger(parsed: _Parsed, head: Token, bound: str) -> None:
    if bound == "next":
        parsed.add(Control(do="next"))
    elif _NUMBER.fullmatch(bound):
        parsed.goto = int(bound)
        parsed.add(Control(do="goto"))
    else:
        parsed.word(head, f"{head.text!r} triggers nothing known")


def _notify(parsed: _Parsed, bound: str, rest: list[Token]) -> list[Token]:
    if bound:
        parsed.effects.append(Effect(do="notify", target=bound))
        return rest
    if rest and rest[0].kind == "arrow":
        rest = rest[1:]
    target, rest = _target(rest)
    parsed.effects.append(Effect(do="notify", target=target))
    return rest


def _gate(parsed: _Parsed, rest: list[Token]) -> list[Token]:
    if rest and rest[0].kind == "arrow":
        rest = rest[1:]
        if not rest or rest[0].kind != "text":
            parsed.shape("gate:human → needs its question in quotes")
    text = None
    if rest and rest[0].kind == "text":
        text, rest = rest[0].text, rest[1:]
    parsed.add(Control(do="gate", text=text))
    return rest


def _plain(parsed: _Parsed, head: Token, rest: list[Token]) -> list[Token]:
    name = head.text
    if name in ("ESCALATE", "BLOCKED_ON", "ERROR", "CHECKPOINT"):
        return _send(parsed, name, rest)
    if name == "log":
        parsed.effects.append(Effect(do="log"))
    elif name in ("next_item", "next_step"):
        parsed.add(Control(do="next"))
    elif name == "abort":
        parsed.add(Control(do="abort"))
    elif name == "retry":
        parsed.add_retry(1)
    elif match := _RETRY.fullmatch(name):
        parsed.add_retry(int(match[1]))
    elif name == "goto":
        if not rest or rest[0].kind != "word":
            parsed.shape("goto names no step")
        elif _NUMBER.fullmatch(rest[0].text) is None:
            parsed.word(rest[0], f"{rest[0].text!r} is no step number")
            return []
        else:
            parsed.goto = int(rest[0].text)
            rest = rest[1:]
        parsed.add(Control(do="goto"))
    else:
        parsed.word(head, f"{name!r} is no word of a route")
        return []
    return rest


def default_control(verdict: Verdict, grammar: Grammar) -> Control:
    """Where a verdict leads when its route names no control (§3)."""
    if verdict == "success":
        return Control(do="next")
    if grammar == "chain" and verdict in ("fail", "error"):
        return Control(do="block", target=PILOTE)
    return Control(do="escalate", target=PILOTE)


def default_route(verdict: Verdict, grammar: Grammar, fail: Route | None = None) -> Route:
    """The route of a verdict that the file leaves out; `fail` is the step's fail route, for errors in a chain."""
    if verdict != "error":
        return Route(control=default_control(verdict, grammar))
    both = (Effect(do="ERROR"), Effect(do="log"))
    if fail is not None:
        return Route(effects=both + fail.effects, retry=fail.retry, control=fail.control)
    return Route(effects=both, control=default_control("error", grammar))


def parse(
    text: str, verdict: Verdict, grammar: Grammar, position: int = 0, labels: Mapping[int, int] | None = None
) -> tuple[Route | None, list[Fault]]:
    """The route of a verdict, or every fault. `labels`: step label to index; `position`: index of this step."""
    parsed = _Parsed()
    actions = _actions(text)
    if actions == [[]]:
        return None, [Fault("E_ROUTE_SHAPE", "the route is empty")]
    for action in actions:
        _action(parsed, action)
    if any(fault.code == "E_ROUTE_WORD" for fault in parsed.faults):
        return None, [fault for fault in parsed.faults if fault.code == "E_ROUTE_WORD"]
    control = parsed.control
    if not parsed.faults:
        _shape(parsed, verdict, grammar, position, labels or {})
    if parsed.faults:
        return None, parsed.faults[:1]
    if control is None:
        control = default_control(verdict, grammar)
    elif control.do == "goto":
        control = Control(do="goto", step=(labels or {}).get(parsed.goto or 0))
    elif control.do == "escalate" and verdict == "success":
        control = Control(do="gate", target=control.target)
    return Route(effects=tuple(parsed.effects), retry=parsed.retry, control=control), []


def _shape(parsed: _Parsed, verdict: Verdict, grammar: Grammar, position: int, labels: Mapping[int, int]) -> None:
    """Why the actions do not go together, if they do not; the first reason only."""
    control = parsed.control
    if parsed.controls > 1:
        parsed.shape("a route has at most one control")
    elif parsed.retries > 1 or parsed.late_retry:
        parsed.shape("a route has at most one retry, before its control")
    elif verdict == "success" and parsed.retry is not None:
        parsed.shape("retry is not for success")
    elif control is None and parsed.retry is None and verdict != "success":
        parsed.shape(f"a {verdict} route needs a control: it would end nowhere")
    elif control is not None and control.do == "block" and verdict == "success":
        parsed.shape("BLOCKED_ON is not for success")
    elif control is not None and control.do == "goto":
        if grammar != "chain":
            parsed.shape("goto is only for chains")
        elif parsed.goto is None or parsed.goto not in labels:
            parsed.shape(f"there is no step {parsed.goto}")
        elif labels[parsed.goto] <= position:
            parsed.shape(f"goto {parsed.goto} leads backward")
