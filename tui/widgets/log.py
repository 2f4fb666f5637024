"""The log: one row an event, in columns that do not move (docs/specs/console.md §2, docs/specs/acp.md §1)."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Any, ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.message import Message

from core.acp.judging import About
from core.acp.model import Event
from core.clock import local, parse
from core.finding import Finding
from core.sanitize import inert
from tui.widgets.glyphs import State
from tui.widgets.lines import LineView
from tui.widgets.logrows import Entry, Rows, entries
from tui.widgets.text import fit_str, pad

KNOWN = frozenset({"seq", "from", "event", "at", "summary", "doc", "reply_to", "role", "sha256"})
WHO_MAX = 14
EVENT_MAX = 19
FIELD_CAP = 400
"""Characters of a field in the details; more is cut and its length named."""

STATES: Mapping[str, State] = {
    "blocked": State.FAILED,
    "completed": State.DONE,
    "readiness_passed": State.DONE,
    "decision_accepted": State.DONE,
}
"""Events whose name carries a colour; all others are plain text."""


def describe(event: Event, findings: Sequence[Finding] = ()) -> list[str]:
    """Everything about an event, a field a line, inert: absolute time, document, what others added, findings."""
    raw: Mapping[str, Any] = event.raw
    lines = [f"seq {_value(raw.get('seq'))} · line {event.line}" if event.line else f"seq {_value(raw.get('seq'))}"]
    # What is read most comes first: there may be room for a few lines only.
    for key, label in (
        ("event", "event"),
        ("summary", "summary"),
        ("from", "from"),
        ("at", "at"),
        ("doc", "document"),
        ("reply_to", "replies to"),
        ("role", "role"),
        ("sha256", "sha256"),
    ):
        if key in raw:
            lines.append(f"{label}: {_value(raw[key])}")
    foreign = (key for key in raw if key not in KNOWN)
    lines += [f"{inert(key)}: {_value(raw[key])} (not part of the protocol)" for key in foreign]
    for finding in findings:
        lines.append(f"{finding.severity}: {inert(finding.cause)} [{inert(finding.code)}]")
    return lines


def _value(value: object) -> str:
    if isinstance(value, str):
        text = inert(value[: FIELD_CAP + 1])
    else:
        try:
            text = inert(json.dumps(value, ensure_ascii=False)[: FIELD_CAP + 1])
        except (ValueError, TypeError, RecursionError):
            text = "(a value that cannot be shown)"
    size = len(value) if isinstance(value, str) else len(text)
    return text if size <= FIELD_CAP else f"{text[:FIELD_CAP]}… ({size} characters)"


class LogView(LineView):
    """`seq  hh:mm  who  event  “summary”  ↩ reply`. At its end it follows new events, elsewhere it counts them."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "choose", "details", show=False, id="log.choose")]

    class EventSelected(Message):
        """The cursor stands on an event; `chosen` when it was picked. `seq` is None on a damaged line."""

        def __init__(self, view: LogView, seq: int | None, line: int, chosen: bool) -> None:
            super().__init__()
            self.view, self.seq, self.line, self.chosen = view, seq, line, chosen

        @property
        def control(self) -> LogView:
            return self.view

    class NewEvents(Message):
        """Events arrived below while the cursor stands elsewhere; 0 when the end is reached again."""

        def __init__(self, view: LogView, count: int) -> None:
            super().__init__()
            self.view, self.count = view, count

        @property
        def control(self) -> LogView:
            return self.view

    def __init__(
        self,
        *,
        zone: tzinfo | None = None,
        empty: str | Text = "No events yet.",
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        """`zone` is the time zone of the shown times; None for the machine's."""
        super().__init__(cursor=True, empty=empty, name=name, id=id, classes=classes)
        self._zone = zone
        self._rows = Rows()
        self._picked: list[int] | None = None
        self._sizes = (3, 1, 16, 1)
        self._filter: tuple[str | None, str | None, str | None] = (None, None, None)
        self._seen = 0
        self._told = 0

    # What is shown.

    def show(self, events: Sequence[Event], findings: Sequence[Finding] | About = ()) -> None:
        """The whole log as it is now. Follows the end when the cursor stands there, else counts what is new."""
        at_end, known, old = self.at_end, self.line_count, self._rows
        rows = Rows(events, findings) if isinstance(findings, About) else entries(events, findings)
        fresh = events
        if rows.grew_from(old):
            # A log only grows: what was laid out before stays as it is.
            fresh = events[len(old.events) :]
            picked = self._picked
            if picked is not None:
                picked = picked + self._pick(rows, len(old))
        else:
            self._sizes = (3, 1, 16, 1)
            picked = self._pick(rows, 0) if self.filtered else None
        digits = len(str(max((event.seq or 0 for event in events[-3:]), default=0)))
        who = max((cell_len(inert((name or "?")[:64])) for name in {event.actor for event in fresh}), default=1)
        names = max((cell_len(inert((name or "?")[:64])) for name in {event.name for event in fresh}), default=1)
        sizes = (
            max(3, digits),
            min(max(who, self._sizes[1]), WHO_MAX),
            min(max(names, self._sizes[2]), EVENT_MAX),
            digits,
        )
        same = fresh is not events and sizes == self._sizes and not (rows.about.lines or old.about.lines)
        self._sizes = sizes
        self._swap(rows, picked, same)
        if at_end or known == 0:
            self.follow()
        else:
            self._count_new()

    def filter(self, participant: str | None = None, event: str | None = None, text: str | None = None) -> None:
        """Show only events of a participant, of a name, or whose fields hold a text in any case; None for any."""
        self._filter = (participant or None, event or None, (text or "").casefold() or None)
        self._swap(self._rows, self._pick(self._rows, 0) if self.filtered else None)
        self._seen = self.line_count
        self._count_new()

    @property
    def filtered(self) -> bool:
        """Whether a filter hides something."""
        return any(self._filter)

    def _pick(self, rows: Rows, start: int) -> list[int]:
        """The rows from `start` on that the filter lets through."""
        return [index for index in range(start, len(rows)) if self._passes(rows[index])]

    def _swap(self, rows: Rows, picked: list[int] | None, grown: bool = False) -> None:
        def swap() -> None:
            self._rows, self._picked = rows, picked

        self.replace(swap, grown)

    def _row(self, index: int) -> int:
        """A line of this view as a row of the log."""
        return index if self._picked is None else self._picked[index]

    def _entry(self, index: int) -> Entry:
        return self._rows[self._row(index)]

    def _passes(self, entry: Entry) -> bool:
        participant, name, text = self._filter
        event = entry.event
        if event is None:
            return participant is None and name is None and (text is None or text in self._damage(entry).casefold())
        if participant is not None and event.actor != participant:
            return False
        if name is not None and event.name != name:
            return False
        return text is None or any(
            text in str(value).casefold()
            for value in (event.actor, event.name, event.summary, event.doc, event.seq)
            if value is not None
        )

    # Following.

    @property
    def at_end(self) -> bool:
        """Whether the cursor stands on the last row."""
        return self.cursor >= self.line_count - 1

    @property
    def new_events(self) -> int:
        """How many events came below since the cursor left the end."""
        return max(0, self.line_count - self._seen)

    @property
    def notice(self) -> Text:
        """`3 new events`, empty while following."""
        count = self.new_events
        return Text("" if not count else f"{count} new event{'s' if count > 1 else ''}", style=self.colours.accent)

    def follow(self) -> None:
        """Go to the last event and follow from there."""
        if self.line_count:
            self.move_cursor(self.line_count - 1)
        self._count_new()

    def _count_new(self) -> None:
        if self.at_end:
            self._seen = self.line_count
        if self.new_events != self._told:
            self._told = self.new_events
            self.post_message(self.NewEvents(self, self._told))

    def cursor_moved(self) -> None:
        entry = self.entry
        if entry is not None:
            seq = entry.event.seq if entry.event is not None else None
            self.post_message(self.EventSelected(self, seq, entry.line, False))
        if self.at_end and self.new_events:
            self._count_new()

    # The current row.

    @property
    def entry(self) -> Entry | None:
        """The current row: an event or a damaged line."""
        return self._entry(self.cursor) if 0 <= self.cursor < self.line_count else None

    @property
    def selected(self) -> Event | None:
        """The current event."""
        return self.entry.event if self.entry is not None else None

    def select(self, seq: int) -> bool:
        """Stand on the event of this seq; False when it is not shown."""
        named = (event for event in self._rows.events if event.seq == seq)
        found = (self.index_of(Entry(event.line, event).id) for event in named)
        index = next((index for index in found if index is not None), None)
        if index is not None:
            self.move_cursor(index)
        return index is not None

    @property
    def index(self) -> int | None:
        """Where the current event stands among the events of the log, however they are filtered."""
        return self._rows.event_index(self._row(self.cursor)) if 0 <= self.cursor < self.line_count else None

    def move_to_event(self, index: int) -> None:
        """Stand on an event by where it stands among the events; not when a filter hides it."""
        events = self._rows.events
        if 0 <= index < len(events):
            self.move_to_id(Entry(events[index].line, events[index]).id)

    def details(self) -> list[str]:
        """Everything about the current row, a field a line."""
        entry = self.entry
        if entry is None:
            return []
        if entry.event is None:
            found = [f"error: {inert(item.cause)} [{inert(item.code)}]" for item in entry.findings]
            return [f"line {entry.line} is no event", *found]
        return describe(entry.event, entry.findings)

    def action_choose(self) -> None:
        if self.entry is not None:
            self.choose(self.cursor)

    def choose(self, index: int) -> None:
        entry = self._entry(index)
        seq = entry.event.seq if entry.event is not None else None
        self.post_message(self.EventSelected(self, seq, entry.line, True))

    # Rows.

    @property
    def line_count(self) -> int:
        return len(self._rows) if self._picked is None else len(self._picked)

    def id_at(self, index: int) -> str | None:
        return self._entry(index).id

    def index_of(self, id: str) -> int | None:
        # Mostly the row stands where it stood, or where its line says; rows are in the order of the file.
        wanted = int(id) if id.isdecimal() else -1
        for at in (self.cursor, wanted - 1):
            if 0 <= at < self.line_count and self.id_at(at) == id:
                return at
        rows = range(self.line_count)
        if rows and self._entry(0).line == 0:
            # They stand in no file: such a log was made by hand and is short.
            return next((index for index in rows if self.id_at(index) == id), None)
        at = bisect_left(rows, wanted, key=lambda index: self._entry(index).line)
        return at if at < len(rows) and self.id_at(at) == id else None

    def selectable(self, index: int) -> bool:
        return True

    def plain_at(self, index: int) -> str:
        entry = self._entry(index)
        event = entry.event
        if event is None:
            return self._damage(entry)
        parts = (event.seq, event.actor, event.name, event.summary, event.doc)
        return inert(" ".join(str(part) for part in parts if part is not None))

    def _damage(self, entry: Entry) -> str:
        causes = "; ".join(item.cause.partition(f"line {entry.line}: ")[2] or item.cause for item in entry.findings)
        return f"line {entry.line}  {inert(causes)}"

    def line_at(self, index: int, width: int) -> Text:
        entry, colours, signs = self._entry(index), self.colours, self.signs
        seq_size, who_size, name_size, reply_size = self._sizes
        made = Text(end="", no_wrap=True)
        warn = signs.state(State.WARN) if entry.findings else " "
        event = entry.event
        if event is None:
            made.append(f"{pad(f'{entry.line}', seq_size, 'right')} ", colours.muted)
            made.append(f"{warn} damaged  ", colours.warn)
            made.append(fit_str(self._damage(entry), max(0, width - made.cell_len)), colours.muted)
            return made
        tight = width < 64
        who_size = min(who_size, 8 if tight else 10 if width < 84 else WHO_MAX)
        made.append(pad("?" if event.seq is None else str(event.seq), seq_size, "right"), colours.muted)
        made.append(f" {warn} ", colours.warn)
        if not tight:
            made.append(f"{self._clock(event)}  ", colours.muted)
        made.append(pad(inert(event.actor or "?"), who_size) + "  ", colours.text)
        state = STATES.get(event.name or "")
        made.append(pad(inert(event.name or "?"), name_size), colours.text if state is None else colours.state(state))
        made.append("  ")
        reply = "" if event.reply_to is None else f"{signs.reply} {event.reply_to}"
        tail = 0 if tight else reply_size + 4
        room = max(0, width - made.cell_len - tail)
        summary = inert((event.summary or "")[: 4 * width + 64])
        quoted = fit_str(summary, room - 2, signs.cut)
        made.append(pad(f"{signs.opening}{quoted}{signs.closing}" if room > 2 else "", room), colours.text)
        if tail:
            made.append(pad(fit_str(reply, reply_size + 2), tail, "right"), colours.muted)
        return made

    def _clock(self, event: Event) -> str:
        return local(parse(event.at), "%H:%M", "--:--", self._zone)
