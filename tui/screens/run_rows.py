"""The lines of a run unfolded: steps, moments, questions, spec, and each in detail (docs/specs/console.md §2)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from rich.text import Text

from core.clock import duration, local, parse
from core.sanitize import inert
from core.workflow.model import Entry
from core.workflow.state import Run, Step
from core.workflow.view_history import Lane, Moment, spec_lines
from tui.widgets.glyphs import Glyphs, Palette, State
from tui.widgets.pane import Sheet
from tui.widgets.progress import lane
from tui.widgets.text import fit, pad, wrap

RESULTS: Final = {
    "pending": (State.LIVE, "in flight"),
    "success": (State.DONE, "success"),
    "fail": (State.FAILED, "fail"),
    "error": (State.FAILED, "error"),
    "partial": (State.WARN, "partial"),
    "escalated": (State.WAITING, "asked"),
    "blocked": (State.FAILED, "blocked"),
}
TONES: Final = {
    "done": State.DONE,
    "running": State.LIVE,
    "failed": State.FAILED,
    "waits": State.WAITING,
    "note": State.UNKNOWN,
}
ENTRIES: Final = {
    "open": (State.MINE, "open"),
    "decided": (State.WAITING, "answered"),
    "applied": (State.DONE, "applied"),
    "expired": (State.WARN, "expired"),
    "cancelled": (State.UNKNOWN, "cancelled"),
}


def lane_room(width: int) -> int:
    """Cells that a step's piece of the line of time may take in a row of so many; 0 when there is no room."""
    room = min(24, max(0, width - (12 + min(28, max(10, width // 4)) + 2 + 5 + 11) - 22))
    return room if room >= 8 else 0


@dataclass(frozen=True, slots=True)
class Lines:
    """Makes lines in one look."""

    colours: Palette
    signs: Glyphs

    def step(self, step: Step, place: Lane | None, now: int, width: int) -> Text:
        """State, item, attempt, time taken (until `now`, in milliseconds), its piece of the line of time, cause."""
        state, word = RESULTS.get(step.result, (State.UNKNOWN, step.result))
        style = self.colours.state(state)
        made = Text.assemble((pad(f"{self.signs.state(state)} {word}", 12), style), end="", no_wrap=True)
        made.append(pad(inert(step.item), min(28, max(10, width // 4))) + "  ", self.colours.text)
        attempt = f"{step.attempt}" + (f".{step.resumes}" if step.resumes else "")
        open_for = now - step.spawned_at if step.result == "pending" else None
        spent = step.duration_ms if step.duration_ms is not None else open_for
        took = duration(spent / 1000) if spent is not None else ""
        made.append(f"{attempt:>4} {took:>9}  ", self.colours.muted)
        if place is not None:
            made.append_text(lane(place.start, place.length, lane_room(width), style, self.signs))
            made.append("  ")
        if step.cause:
            made.append(inert(step.cause), self.colours.text)
        return fit(made, width, self.signs.cut)

    def moment(self, moment: Moment, later: bool, width: int) -> Text:
        """An event in words; `later` than the moment that is shown."""
        state = TONES[moment.tone]
        text = self.colours.muted if later else self.colours.text
        clock = local(parse(moment.at), "%H:%M:%S", "--:--:--")
        made = Text(f"{moment.seq:>5} {clock}  ", self.colours.muted, end="", no_wrap=True)
        made.append(f"{self.signs.state(state)} ", self.colours.muted if later else self.colours.state(state))
        made.append(pad(inert(moment.item or ""), min(22, max(8, width // 5))) + "  ", text)
        made.append(inert(moment.text), text)
        return fit(made, width, self.signs.cut)

    def question(self, entry: Entry, width: int) -> Text:
        """A question and who answered what."""
        state, word = ENTRIES[entry.state]
        style = self.colours.state(state)
        made = Text.assemble((pad(f"{self.signs.state(state)} {word}", 13), style), end="", no_wrap=True)
        made.append(f"{entry.id}  ", self.colours.muted)
        made.append(inert(entry.question), self.colours.text)
        if entry.decision is not None:
            said = f"  {inert(entry.decision.decided_by)}: {inert(entry.decision.option_id or entry.decision.verb)}"
            made.append(said, self.colours.muted)
        return fit(made, width, self.signs.cut)

    def spec(self, run: Run) -> list[Text]:
        """The compiled spec; where the run stands and the route that it took last are marked."""
        made = []
        for line in spec_lines(run.spec, run):
            state = State.LIVE if line.current else State.DONE if line.taken else None
            sign = self.signs.state(state) if state is not None else " "
            style = self.colours.live if line.current else self.colours.strong if line.taken else self.colours.muted
            shown = inert(line.text).replace("→", self.signs.arrow)
            made.append(Text(f"{sign} {shown}", style, end="", no_wrap=True))
        return made

    def spec_beside(self, run: Run, width: int) -> list[Text]:
        """The same in few cells: what goes on stands below, further in."""
        made = [Text("Spec", self.colours.muted, end="")]
        for line in self.spec(run):
            indent = len(line.plain) - len(line.plain[1:].lstrip()) + 2
            first, *rest = wrap(line.plain, width)
            made.append(Text(first, line.style, end=""))
            below = wrap(" ".join(rest), max(8, width - indent)) if rest else []
            made += [Text(" " * indent + piece, line.style, end="") for piece in below]
        return made

    def say_step(self, made: Sheet, step: Step, code: str | None, packet: object) -> None:
        """What is known about a step: its answer, the code of its cause, the packet that was sent."""
        attempt = f"attempt {step.attempt}" + (f", resumed {step.resumes} times" if step.resumes else "")
        made.put("step", f"{step.item}, {attempt}", self.colours.strong)
        made.put("agent", step.agent)
        made.put("answer", f"{step.signal_in or 'none'}: {step.result}" + (f" by {step.by}" if step.by else ""))
        if step.cause:
            made.put("cause", step.cause)
        if code is not None:
            made.put("failure", code, self.colours.failed)
        if packet is not None:
            made.put("packet", json.dumps(packet, ensure_ascii=False))

    def say_event(self, made: Sheet, event: Mapping[str, Any]) -> None:
        """An event as it stands in the log, a field a line."""
        made.put("event", f"{event['seq']} {event['event']} at {event['at']}", self.colours.strong)
        for key, value in event.items():
            if key not in ("seq", "event", "at"):
                made.put(key[: made.LABEL], value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
