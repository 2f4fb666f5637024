"""What every form has: fields with their own errors, a draft, the editor, a preview (docs/specs/console.md §2).

The event loop never opens a file: reading, planning and keeping drafts happen in threads that post messages.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Static
from textual.worker import Worker

from core.acp.reader import Snapshot, require
from core.acp.store import Plan
from core.clock import SYSTEM, Clock, duration
from core.finding import Finding, Refused, error
from core.sanitize import inert, inert_block
from core.state import UserState
from tui.forms.acts import Writable
from tui.forms.bar import Bar, Button
from tui.forms.drafts import Drafts, Saved
from tui.forms.editor import edit_text
from tui.forms.fields import AreaField, Field, LineField
from tui.forms.preview import Headline, PreviewScreen, Result
from tui.forms.problems import Problems
from tui.settings import state_path
from tui.widgets.glyphs import palette

SAVE_AFTER: Final = 0.25
"""Seconds from a change to its draft on disk."""


class FormScreen(ModalScreen[Result]):
    """A form over one folder in one participant's name; dismissed with what was appended, or None.

    A subclass gives `fields`, its own `problems`, and the `act` that the fields describe.
    """

    VERTICAL_BREAKPOINTS = [(0, "-short"), (20, "-normal"), (32, "-tall")]

    HEADING: ClassVar[str] = ""
    FORM: ClassVar[str] = ""
    """The form's part of its draft's name."""
    DOCUMENTS: ClassVar[tuple[str, ...]] = ()
    """Documents that a draft of this form is about: a later change of one is said when the draft is restored."""

    DEFAULT_CSS = """
    FormScreen { align: center middle; background: $background 60%; }
    FormScreen > Vertical {
        width: 100%; max-width: 110; height: 100%; max-height: 48;
        background: $surface; padding: 1 0 0 0;
    }
    FormScreen #note { height: auto; padding: 0 2; color: $text-muted; display: none; }
    FormScreen #note.-shown { display: block; }
    FormScreen #fields { height: 1fr; padding: 0 1; margin: 1 0 0 0; scrollbar-size-vertical: 1; }
    FormScreen.-short > Vertical { padding: 0; }
    FormScreen.-short #fields { margin: 0; }
    FormScreen #reading { height: auto; padding: 0 1; color: $text-muted; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f2,ctrl+enter", "preview", "preview", id="form.preview"),
        Binding("f3", "editor", "in your editor", id="form.editor"),
        Binding("ctrl+n", "afresh", "start afresh", show=False, id="form.afresh"),
        Binding("escape", "back", "back", id="form.back"),
    ]

    class Loaded(Message):
        """The folder and the draft were read."""

        def __init__(self, snapshot: Snapshot, saved: Saved | None) -> None:
            super().__init__()
            self.snapshot, self.saved = snapshot, saved

    class Refusal(Message):
        """Reading or planning was refused."""

        def __init__(self, findings: tuple[Finding, ...]) -> None:
            super().__init__()
            self.findings = findings

    class Ready(Message):
        """The act was planned and can be shown."""

        def __init__(self, act: Writable, plan: Plan) -> None:
            super().__init__()
            self.act, self.plan = act, plan

    class Kept(Message):
        """A draft was saved, or could not be."""

        def __init__(self, done: bool) -> None:
            super().__init__()
            self.done = done

    def __init__(
        self,
        path: Path,
        participant: str,
        *,
        clock: Clock = SYSTEM,
        monotonic: Callable[[], float] = time.monotonic,
        drafts: Drafts | None = None,
    ) -> None:
        super().__init__()
        self.path, self.participant, self.clock = path, participant, clock
        self.snapshot: Snapshot | None = None
        self._monotonic = monotonic
        self._drafts = drafts
        self._count = 0
        self._dirty = False
        self._pending = False
        self._busy = ""
        self._restored = False

    # What a form is.

    @property
    def form_id(self) -> str:
        """The name of this form's draft: what it is and in whose name."""
        return f"{self.FORM}:{self.participant}"

    def fields(self, snapshot: Snapshot) -> list[Field]:
        """The fields, filled from the folder."""
        return []

    def about(self) -> Sequence[str]:
        """The documents that a draft of this form is about."""
        return self.DOCUMENTS

    def problems(self) -> Mapping[str, str]:
        """The form's own errors, field key to cause; empty when it can be previewed."""
        return {}

    def act(self, snapshot: Snapshot) -> Writable:
        """What the fields describe. Raises Refused."""
        raise Refused(error("nothing_to_do", f"the form {self.FORM!r} describes no act"))

    def field_changed(self, field: Field) -> None:
        """The person changed a field."""

    # Screen.

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Headline(self.HEADING, f"as {self.participant}, in {self.path}")
            yield Static(id="note")
            yield Problems()
            with VerticalScroll(id="fields", can_focus=False):
                yield Static(Text("Reading the folder …"), id="reading")
            yield Bar()

    def on_mount(self) -> None:
        if self._drafts is None:
            state = getattr(self.app, "user_state", None)
            self._drafts = Drafts(state if isinstance(state, UserState) else UserState(state_path(os.environ)))
        self._frame()
        self._work("Reading …", self._read)

    @property
    def all_fields(self) -> list[Field]:
        """The mounted fields, in order."""
        return list(self.query(Field))

    def field(self, key: str) -> Field:
        """The field of this key."""
        return self.query_one(f"#field-{key}", Field)

    def text_of(self, key: str) -> str:
        """The text of a line or area field."""
        field = self.field(key)
        return field.text if isinstance(field, LineField | AreaField) else ""

    def items_of(self, key: str) -> list[str]:
        """The entries of an area field that is a list."""
        field = self.field(key)
        return field.items if isinstance(field, AreaField) else []

    def _frame(self, note: str = "") -> None:
        ready = self.snapshot is not None and not self._busy
        focused = self._focused_field()
        editable = focused is not None and focused.text_editable
        buttons = [Button("F2", "preview", "preview", ready)]
        if editable:
            buttons.append(Button("F3", "editor", "editor"))
        buttons.append(Button("Esc", "back", "back"))
        self.query_one(Bar).show(buttons, self._busy or note)

    def _focused_field(self) -> Field | None:
        if self.focused is None:
            return None
        return next((node for node in self.focused.ancestors_with_self if isinstance(node, Field)), None)

    def on_descendant_focus(self) -> None:
        self._frame(self.query_one(Bar).note)

    def note(self, text: str) -> None:
        """Plain lines below the title; empty takes them away."""
        note = self.query_one("#note", Static)
        note.update(Text(inert_block(text), palette(self.app).muted))
        note.set_class(bool(text), "-shown")

    # Threads.

    def _work(self, busy: str, call: Callable[[], None]) -> None:
        self._busy = busy
        self._frame()
        self.run_worker(call, name=busy, group="form", exclusive=True, thread=True, exit_on_error=False)

    def _read(self) -> None:
        try:
            snapshot = require(self.path)
            saved = self._drafts.load(self.path, self.form_id) if self._drafts is not None else None
            self.post_message(self.Loaded(snapshot, saved))
        except Refused as exc:
            self.post_message(self.Refusal(exc.findings))

    async def on_form_screen_loaded(self, message: FormScreen.Loaded) -> None:
        self.snapshot = message.snapshot
        self._busy = ""
        await self._mount_fields(message.saved)

    async def _mount_fields(self, saved: Saved | None) -> None:
        """Put the fields up, filled from the folder and then from the draft."""
        if self.snapshot is None:
            return
        body = self.query_one("#fields", VerticalScroll)
        await body.remove_children()
        await body.mount_all(self.fields(self.snapshot))
        self._dirty = False
        self._restored = saved is not None
        if saved is not None:
            for field in self.all_fields:
                field.restore(saved.fields.get(field.key))
                self.field_changed(field)
            self.note(self._restored_note(saved))
        else:
            self.note("")
        first = next(iter(self.all_fields), None)
        if first is not None:
            first.focus_control()
        self._frame()

    def _restored_note(self, saved: Saved) -> str:
        age = f" from {duration((self.clock.now() - saved.at).total_seconds())} ago" if saved.at else ""
        text = f"draft{age} restored; ctrl+n starts afresh"
        if self.snapshot is not None:
            changed = [name for name, digest in saved.base.items() if self.snapshot.document(name).sha256 != digest]
            if changed:
                text += f"\n{', '.join(changed)} changed since it was written"
        return text

    def on_form_screen_refusal(self, message: FormScreen.Refusal) -> None:
        self._busy = ""
        if self.snapshot is None:
            self.query_one("#reading", Static).update(Text("This folder cannot be read."))
        self.show_findings(message.findings)
        self._frame()

    def show_findings(self, findings: Sequence[Finding]) -> None:
        """Each finding at the field that it is about, the rest above the fields; the first failed field is focused."""
        rest: list[Finding] = []
        failed: list[Field] = []
        for finding in findings:
            name = (finding.where or "").split("#")[0]
            owner = next((field for field in self.all_fields if name and name in field.where), None)
            if owner is None or owner.failed:
                rest.append(finding)
            else:
                owner.fail(finding.cause)
                failed.append(owner)
        self.query_one(Problems).show(rest)
        if failed:
            failed[0].focus_control()

    # Drafts.

    def on_field_changed(self, event: Field.Changed) -> None:
        event.stop()
        self.field_changed(event.field)
        self._dirty = True
        if not self._pending:
            self._pending = True
            self.set_timer(SAVE_AFTER, self._save)

    def _save(self) -> None:
        """Keep what is typed; the file is written by a thread of the app, which outlives this screen."""
        self._pending = False
        if not self._dirty or self._drafts is None or not self.is_attached:
            return
        self._dirty = False
        values = {field.key: field.value for field in self.all_fields if field.value is not None}
        self._count += 1
        drafts, number, now = self._drafts, self._count, self.clock.now()
        path, form = self.path, self.form_id
        shot = self.snapshot
        base = {name: shot.document(name).sha256 for name in self.about()} if shot is not None else {}

        def save() -> None:
            self.post_message(self.Kept(drafts.save(path, form, values, base, now, number)))

        self.app.run_worker(save, name="draft", group="drafts", thread=True, exit_on_error=False)

    def on_form_screen_kept(self, message: FormScreen.Kept) -> None:
        self._frame("draft saved" if message.done else "the draft could not be saved")

    def _forget(self) -> None:
        """The draft is no longer wanted; saves that are under way will not bring it back."""
        self._dirty = False
        if self._drafts is not None:
            self._count += 1
            drafts, number, path, form = self._drafts, self._count, self.path, self.form_id

            def forget() -> None:
                drafts.remove(path, form, number)

            self.app.run_worker(forget, name="draft", group="drafts", thread=True, exit_on_error=False)

    async def action_afresh(self) -> None:
        """Throw the restored draft away and begin with what the folder says."""
        if self._restored and self.snapshot is not None:
            self._forget()
            await self._mount_fields(None)

    # Acting.

    def action_back(self) -> None:
        self._save()
        self.workers.cancel_group(self, "form")
        self.dismiss(None)

    def action_editor(self) -> None:
        """Write the focused field in the person's editor."""
        field = self._focused_field()
        if not isinstance(field, LineField | AreaField):
            return
        self._save()
        text, problem = edit_text(self.app, field.text, f"{field.key}.md")
        if problem is not None:
            self.query_one(Problems).show([problem])
        elif text is not None and text.rstrip("\n") != field.text.rstrip("\n"):
            field.text = text if field.text.endswith("\n") or isinstance(field, LineField) else text.rstrip("\n")
            field.changed()
        field.focus_control()

    def action_preview(self) -> None:
        """Check the fields, plan the act, show it."""
        if self.snapshot is None or self._busy:
            return
        self.query_one(Problems).show([])
        for field in self.all_fields:
            field.fail(None)
        wrong = self.problems()
        if wrong:
            for key, cause in wrong.items():
                self.field(key).fail(cause)
            self.field(next(iter(wrong))).focus_control()
            return
        try:
            act = self.act(self.snapshot)
        except Refused as exc:
            self.show_findings(exc.findings)
            return
        self._work("Planning …", lambda: self._plan(act))

    def _plan(self, act: Writable) -> None:
        try:
            snapshot = require(self.path)
            self.post_message(self.Ready(act, act.plan(snapshot, self.clock)))
        except Refused as exc:
            self.post_message(self.Refusal(exc.findings))

    def on_form_screen_ready(self, message: FormScreen.Ready) -> None:
        self._busy = ""
        self._frame()
        screen = PreviewScreen(message.act, message.plan, clock=self.clock, monotonic=self._monotonic)
        self.app.push_screen(screen, self._previewed)

    def _previewed(self, result: Result) -> None:
        if result is not None:
            self._forget()
            self.dismiss(result)

    def on_bar_pressed(self, message: Bar.Pressed) -> None:
        message.stop()
        self.run_worker(self.run_action(message.action), group="bar", exit_on_error=False)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        event.stop()
        if event.state.name == "ERROR" and event.worker.group == "form":
            kind = type(event.worker.error).__name__
            cause = f"the form failed unexpectedly ({kind}: {inert(event.worker.error)}); what was typed is kept"
            self.post_message(self.Refusal((error("internal_error", cause),)))


__all__ = ["FormScreen", "Problems"]
