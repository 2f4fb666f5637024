"""Any event that a participant may append now (docs/specs/console.md §2)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from core.acp import view
from core.acp.model import DELIVERABLE_EVENTS, Draft
from core.acp.reader import Snapshot
from core.clock import SYSTEM, Clock
from core.finding import Refused, error
from tui.forms.acts import Act, Writable
from tui.forms.base import FormScreen
from tui.forms.drafts import Drafts
from tui.forms.fields import Choice, ChoiceField, Field, LineField
from tui.widgets.glyphs import State


class AppendForm(FormScreen):
    """Participant, event, summary, document, reply; events that are not legal now are shown with their reason."""

    HEADING = "Append an event"
    FORM = "append"

    def __init__(
        self,
        path: Path,
        participant: str,
        *,
        event: str | None = None,
        clock: Clock = SYSTEM,
        monotonic: Callable[[], float] = time.monotonic,
        drafts: Drafts | None = None,
    ) -> None:
        """`event` is chosen already when the form opens."""
        super().__init__(path, participant, clock=clock, monotonic=monotonic, drafts=drafts)
        self._event = event
        self._options: dict[str, view.Option] = {}
        self._shown_for: tuple[str, str] = ("", "")

    @property
    def form_id(self) -> str:
        return f"{self.FORM}:{self.participant}:{self._event or 'any'}"

    def fields(self, snapshot: Snapshot) -> list[Field]:
        people = snapshot.setup.participants if snapshot.setup is not None else ()
        waiting = snapshot.state.waiting
        self._options = self._options_of(snapshot, self.participant)
        draft = self._start()
        choices = [Choice(name, name, "waited for" if name in waiting else "") for name in dict.fromkeys(people)]
        made: list[Field] = [
            ChoiceField("participant", "Participant", choices, where=("--participant",), value=self.participant),
            ChoiceField("event", "Event", self._choices(), where=("--event",), value=draft.event if draft else ""),
            LineField("summary", "Summary", "one short sentence", ("--summary",), draft.summary if draft else ""),
            LineField("doc", "Document", "a path inside the folder, or nothing", ("--doc",), self._doc(draft)),
            LineField(
                "reply_to",
                "Replies to",
                "the seq of an earlier event",
                ("--reply-to",),
                str(draft.reply_to) if draft and draft.reply_to is not None else "",
            ),
        ]
        if snapshot.setup is not None and snapshot.setup.deliverables is not None:
            role = (draft.role or "") if draft else ""
            hint = "primary or supporting, for deliverable events"
            made.append(LineField("role", "Role", hint, ("--role",), role))
        self._shown_for = (self.participant, draft.event if draft else "")
        return made

    @staticmethod
    def _doc(draft: Draft | None) -> str:
        return draft.doc or "" if draft is not None else ""

    def _options_of(self, snapshot: Snapshot, participant: str) -> dict[str, view.Option]:
        found = view.options(snapshot, participant, self.clock.now())
        return {option.draft.event: option for option in found}

    def _start(self) -> Draft | None:
        wanted = self._options.get(self._event or "")
        option = wanted or next(iter(self._options.values()), None)
        return option.draft if option is not None else None

    def _choices(self) -> list[Choice]:
        return [
            Choice(name, name, option.effect)
            if option.legal
            else Choice(name, name, reason=option.reasons[0].cause, state=State.UNKNOWN)
            for name, option in self._options.items()
        ]

    def field_changed(self, field: Field) -> None:
        if self.snapshot is None:
            return
        participant, event = self._who(), self._which()
        before = self._shown_for
        if field.key == "participant" and participant != before[0]:
            self._options = self._options_of(self.snapshot, participant)
            events = self.field("event")
            if isinstance(events, ChoiceField):
                events.set_choices(self._choices(), event)
            event = self._which()
        if field.key in ("participant", "event") and (participant, event) != before:
            self._refill(before[1], event)
            self._shown_for = (participant, event)

    def _refill(self, old: str, new: str) -> None:
        """Follow the event with the usual summary, document and role, unless the person wrote others."""
        usual, wanted = self._options.get(old), self._options.get(new)
        if wanted is None:
            return
        for field in self.all_fields:
            if isinstance(field, LineField) and field.key in ("summary", "doc", "role"):
                before = getattr(usual.draft, field.key) or "" if usual is not None else ""
                if field.text in ("", before):
                    field.restore(getattr(wanted.draft, field.key) or "")

    def _who(self) -> str:
        value = self.field("participant").value
        return value if isinstance(value, str) else self.participant

    def _which(self) -> str:
        value = self.field("event").value
        return value if isinstance(value, str) else ""

    def problems(self) -> Mapping[str, str]:
        found: dict[str, str] = {}
        option = self._options.get(self._which())
        if option is not None and not option.legal and self._usual(option.draft):
            found["event"] = option.reasons[0].cause
        if not self.text_of("summary"):
            found["summary"] = "the summary is blank; one short sentence is needed"
        reply = self.text_of("reply_to")
        if reply and not (reply.isascii() and reply.isdigit() and len(reply) < 16):
            found["reply_to"] = "this is no seq: a whole number is needed"
        return found

    def _usual(self, draft: Draft) -> bool:
        """Whether document and role are those that the reasons were given for."""
        return (self.text_of("doc") or None, self._role(draft)) == (draft.doc, draft.role)

    def _role(self, draft: Draft) -> str | None:
        if draft.event not in DELIVERABLE_EVENTS or not self.query("#field-role"):
            return draft.role
        return self.text_of("role") or None

    def act(self, snapshot: Snapshot) -> Writable:
        option = self._options.get(self._which())
        if option is None:
            raise Refused(error("event_unknown", "no event is chosen", None, "--event"))
        reply = self.text_of("reply_to")
        last = snapshot.last()
        number = int(reply) if reply else None
        doc = self.text_of("doc") or None
        digest = option.draft.sha256
        if digest is not None and doc is not None:
            digest = snapshot.document(doc).sha256
        draft = replace(
            option.draft,
            participant=self._who(),
            summary=self.text_of("summary"),
            doc=doc,
            reply_to=number,
            role=self._role(option.draft),
            sha256=digest,
        )
        follow = last is not None and number == last.seq
        return Act(self.path, draft, follow=follow)


__all__ = ["AppendForm"]
