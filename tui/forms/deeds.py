"""Forms whose act is no event: fields with their errors, a draft, the editor, a preview (docs/specs/console.md §2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.message import Message
from textual.screen import ModalScreen
from textual.worker import Worker, WorkerState

from core.clock import Clock
from core.finding import Finding, Refused, error
from core.sanitize import inert
from tui.forms.bar import Bar, Button
from tui.forms.confirm import ConfirmScreen, Deed
from tui.forms.drafts import Drafts, Saved
from tui.forms.editor import edit_text
from tui.forms.fields import AreaField, Field, LineField
from tui.forms.preview import Headline
from tui.forms.problems import Problems

SAVE_AFTER: Final = 0.25
"""Seconds from a change to its draft on disk."""


class DeedForm(ModalScreen[str | None]):
    """Dismissed with what its deed said, or None. What is typed is kept as a draft, by folder, `FORM` and `subject`.

    A subclass gives `fields`, its own `problems`, and the `deed` that the fields describe.
    """

    HEADING: ClassVar[str] = ""
    FORM: ClassVar[str] = ""
    """The form's part of its draft's name."""
    VERTICAL_BREAKPOINTS = [(0, "-short"), (20, "-normal")]
    DEFAULT_CSS = """
    DeedForm { align: center middle; background: $background 60%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f2,ctrl+enter", "preview", "preview", id="deed.preview"),
        Binding("f3", "editor", "in your editor", id="deed.editor"),
        Binding("ctrl+n", "afresh", "start afresh", show=False, id="deed.afresh"),
        Binding("escape", "back", "back", id="deed.back"),
    ]

    class Checked(Message):
        """The answers were checked: a deed, or why there is none."""

        def __init__(self, deed: Deed | None, findings: Sequence[Finding]) -> None:
            super().__init__()
            self.deed, self.findings = deed, tuple(findings)

    class Restored(Message):
        """A draft was found."""

        def __init__(self, saved: Saved) -> None:
            super().__init__()
            self.saved = saved

    def __init__(
        self, root: Path, subject: str, drafts: Drafts, clock: Clock, place: str | None = None, by: str | None = None
    ) -> None:
        """`root` is the folder that it is about; `by` and `place`, else the subject, stand beside the heading."""
        super().__init__()
        self.root, self.subject, self.clock = root, subject, clock
        place = subject if place is None else place
        self._place, self._drafts = f"as {by}, {place}" if by else place, drafts
        self._count, self._pending, self._over, self._restored = 0, False, False, False
        self._dirty = False

    # What a form is.

    @property
    def form_id(self) -> str:
        """The name of this form's draft: what it is and what it is about."""
        return f"{self.FORM}:{self.subject}"

    def fields(self) -> list[Field]:
        """The fields as they begin."""
        return []

    def problems(self) -> Mapping[str, str]:
        """The form's own errors, field key to cause; empty when the answers can be checked."""
        return {}

    def deed(self) -> Callable[[], Deed]:
        """What the fields describe, to be checked in a thread. Raises Refused there."""
        raise Refused(error("nothing_to_do", f"the form {self.HEADING!r} describes no act"))

    def restore(self, saved: Saved) -> None:
        """Fill the fields from a draft."""
        for field in self.query(Field):
            field.restore(saved.fields.get(field.key))

    def line(self, key: str) -> str:
        """What a line field says."""
        return self.query_one(f"#field-{key}", LineField).text

    def items(self, key: str) -> tuple[str, ...]:
        """The entries of a list field."""
        return tuple(self.query_one(f"#field-{key}", AreaField).items)

    # Screen.

    def compose(self) -> ComposeResult:
        with Vertical(classes="form"):
            yield Headline(self.HEADING, self._place)
            yield Problems()
            with VerticalScroll(id="fields", can_focus=False):
                yield from self.fields()
            yield Bar()

    def on_mount(self) -> None:
        self._frame()
        self.query(Field).first().focus_control()
        self.run_worker(self._load, group="deed", thread=True, exit_on_error=False)

    def _frame(self, note: str = "") -> None:
        buttons = [Button("F2", "preview", "preview")]
        field = self._focused_field()
        if field is not None and field.text_editable:
            buttons.append(Button("F3", "editor", "editor"))
        self.query_one(Bar).show((*buttons, Button("Esc", "back", "back")), note)

    def _focused_field(self) -> Field | None:
        above = self.focused.ancestors_with_self if self.focused is not None else ()
        return next((node for node in above if isinstance(node, Field)), None)

    def on_descendant_focus(self) -> None:
        self._frame(self.query_one(Bar).note)

    # The draft.

    def _load(self) -> None:
        saved = self._drafts.load(self.root, self.form_id)
        if saved is not None:
            self.post_message(self.Restored(saved))

    def on_deed_form_restored(self, message: DeedForm.Restored) -> None:
        self._restored = True
        self.restore(message.saved)
        self._frame("draft restored; ctrl+n starts afresh")

    def on_field_changed(self, event: Field.Changed) -> None:
        event.stop()
        self._dirty = True
        if not self._pending:
            self._pending = True
            self.set_timer(SAVE_AFTER, self._save)

    def _save(self) -> None:
        """Keep what is typed; a form that was only looked at keeps nothing."""
        self._pending = False
        if not self._dirty or self._over or not self.is_attached:
            return
        self._dirty = False
        values = {field.key: field.value for field in self.query(Field) if field.value is not None}
        self._count += 1
        save = partial(self._drafts.save, self.root, self.form_id, values, {}, self.clock.now(), self._count)
        # The app outlives this screen.
        self.app.run_worker(save, group="drafts", thread=True, exit_on_error=False)

    def _forget(self) -> None:
        self._count += 1
        remove = partial(self._drafts.remove, self.root, self.form_id, self._count)
        self.app.run_worker(remove, group="drafts", thread=True, exit_on_error=False)

    async def action_afresh(self) -> None:
        """Throw the restored draft away and begin with blank fields."""
        if not self._restored:
            return
        self._restored = False
        body = self.query_one("#fields", VerticalScroll)
        await body.remove_children()
        await body.mount_all(self.fields())
        self._dirty = False
        self._forget()
        self.query(Field).first().focus_control()
        self._frame()

    # Acting.

    def action_back(self) -> None:
        self._save()
        self.dismiss(None)

    def action_editor(self) -> None:
        """Write the focused field in the person's editor."""
        field = self._focused_field()
        if not isinstance(field, LineField | AreaField):
            return
        text, problem = edit_text(self.app, field.text, f"{field.key}.md")
        if problem is not None:
            self.query_one(Problems).show([problem])
        elif text is not None and text.rstrip("\n") != field.text.rstrip("\n"):
            field.text = text.rstrip("\n")
            field.changed()
        field.focus_control()

    def action_preview(self) -> None:
        """Check the answers in a thread; what comes of it is shown."""
        for field in self.query(Field):
            field.fail(None)
        self.query_one(Problems).show([])
        wrong = self.problems()
        for key, cause in wrong.items():
            self.query_one(f"#field-{key}", Field).fail(cause)
        if wrong:
            self.query_one(f"#field-{next(iter(wrong))}", Field).focus_control()
            return
        make = self.deed()

        def check() -> None:
            try:
                self.post_message(self.Checked(make(), ()))
            except Refused as exc:
                self.post_message(self.Checked(None, exc.findings))

        self.run_worker(check, group="deed", thread=True, exclusive=True, exit_on_error=False)

    def on_deed_form_checked(self, message: DeedForm.Checked) -> None:
        if message.deed is not None:
            self.app.push_screen(ConfirmScreen(message.deed), self._confirmed)
            return
        rest, failed = [], []
        for finding in message.findings:
            field = next((one for one in self.query(Field) if finding.where in one.where and not one.failed), None)
            if field is None:
                rest.append(finding)
            else:
                field.fail(finding.cause)
                failed.append(field)
        self.query_one(Problems).show(rest)
        if failed:
            failed[0].focus_control()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        event.stop()
        if event.state is WorkerState.ERROR and event.worker.group == "deed":
            kind = type(event.worker.error).__name__
            cause = f"the form failed unexpectedly ({kind}: {inert(event.worker.error)}); what was typed is kept"
            self.post_message(self.Checked(None, (error("internal_error", cause),)))

    def _confirmed(self, said: str | None) -> None:
        if said is not None:
            self._over = True
            self._forget()
            self.dismiss(said)

    def on_bar_pressed(self, message: Bar.Pressed) -> None:
        message.stop()
        self.run_worker(self.run_action(message.action), group="bar", exit_on_error=False)
