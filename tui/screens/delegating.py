"""What a person does on the screen Delegations: each act is a form or a preview first (docs/specs/console.md §2)."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

from textual.screen import ModalScreen

from core.delegation.desk import PlanView
from core.delegation.view import Row as Delegation
from core.delegation.view import TaskLine, Timeline
from core.delegation.writer import World
from tui.forms import plan_deeds
from tui.forms.delegation import CancelForm, CollectForm, HandoverScreen, LaunchForm
from tui.forms.drafts import Drafts
from tui.forms.gate import GateForm, GateScreen
from tui.screens.listing import ListScreen

Subject = tuple[PlanView, Timeline | None, TaskLine | None, Delegation | None]


class DelegatingScreen(ListScreen):
    """A list of delegations; a subclass says what the cursor stands on."""

    def subject(self) -> Subject | None:
        """Plan, timeline, task and delegation under the cursor."""
        return None

    @property
    def world(self) -> World:
        """Time, environment and chance for the acts of this person."""
        app = self.console_app
        return World(app.clock, app.environ, lambda: os.urandom(3).hex())

    @property
    def _drafts(self) -> Drafts:
        return Drafts(self.console_app.user_state)

    def _open(self, form: ModalScreen[str | None], then: Callable[[str | None], None]) -> None:
        self.app.clear_notifications()
        self.app.push_screen(form, then)

    def do_launch(self) -> None:
        found, me = self.subject(), self.me()
        if found is not None and me is not None:
            form = LaunchForm(found[0], found[2].id if found[2] is not None else "", me, self._drafts, self.world)
            self._open(form, partial(self._launched, form))

    def _launched(self, form: LaunchForm, said: str | None) -> None:
        if said is None or form.handover is None:
            self.done(said)
            return
        self.console_app.reading.look_again()
        self.app.push_screen(HandoverScreen(said, form.handover))

    def do_collect(self) -> None:
        found, me = self.subject(), self.me()
        if found is not None and found[3] is not None and me is not None:
            self._open(CollectForm(found[0], found[3], me, self._drafts, self.world), self.done)

    def do_cancel(self) -> None:
        found, me = self.subject(), self.me()
        if found is not None and found[3] is not None and me is not None:
            self._open(CancelForm(found[0], found[3], me, self._drafts, self.world), self.done)

    def do_run_gate(self) -> None:
        found = self.subject()
        if found is not None and found[2] is not None:
            form = GateForm(found[0], found[2], self._drafts, self.world)
            self._open(form, partial(self._gated, form))

    def _gated(self, form: GateForm, said: str | None) -> None:
        if said is not None and form.asked is not None:
            self.app.push_screen(GateScreen(form.asked, self.world), self.done)

    def do_begin_task(self) -> None:
        found, me = self.subject(), self.me()
        if found is not None and found[2] is not None and me is not None:
            self.confirm(partial(plan_deeds.starting, found[0].place, self.world, found[2].id, me))

    def do_complete_task(self) -> None:
        found = self.subject()
        if found is not None and found[2] is not None:
            self.confirm(partial(plan_deeds.completing, found[0].place, self.world, found[2].id))
