"""The guided forms: what a person gives becomes a document and its event in one act (docs/specs/console.md §2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar, Final

from core.acp import compose, guided, view
from core.acp.deliverables import frozen_refs
from core.acp.documents import scan_decisions, scan_readiness
from core.acp.reader import Snapshot
from core.acp.rules import conclusion_findings
from tui.forms.acts import GuidedAct, Writable
from tui.forms.answers import AnswersField
from tui.forms.append import AppendForm
from tui.forms.base import FormScreen
from tui.forms.fields import (
    AreaField,
    Check,
    CheckField,
    Choice,
    ChoiceField,
    Field,
    LineField,
    ReadingField,
    editable_text,
)

_PLACEHOLDERS: Final = frozenset({"", "tbd", "tbd.", "…", "..."})


def _flags(flag: str, values: list[str]) -> list[str]:
    return [word for value in values for word in (flag, value)]


class GuidedForm(FormScreen):
    """A form of one event with an optional summary; blank, the usual one is taken."""

    EVENT: ClassVar[str] = ""

    def summary_field(self, snapshot: Snapshot) -> Field:
        """The summary, not filled in: most people leave it."""
        usual = view.default_draft(snapshot, self.participant, self.EVENT).summary
        return LineField("summary", "Summary", "optional", ("--summary",), "", usual)

    @property
    def summary(self) -> str | None:
        """What was written, or None for the usual one."""
        return self.text_of("summary") or None

    def summary_words(self) -> list[str]:
        """The flag of the summary, when there is one."""
        return ["--summary", self.summary] if self.summary is not None else []

    def made(self, act: guided.Act, words: list[str]) -> Writable:
        """The act with the flags of its verb."""
        return GuidedAct(self.path, act, (*self.summary_words(), *words))


class ReviewForm(GuidedForm):
    """Position, concerns, required changes, questions: one block in review.md."""

    HEADING = "Write a review"
    FORM = "review"
    EVENT = "review_submitted"
    DOCUMENTS = ("proposal.md",)

    def fields(self, snapshot: Snapshot) -> list[Field]:
        return [
            AreaField(
                "position", "Position", "where you stand, the first line is the summary", ("--position", "--file")
            ),
            AreaField("concerns", "Concerns", "one a line"),
            AreaField("changes", "Required changes", "one a line"),
            AreaField("questions", "Questions", "one a line"),
            self.summary_field(snapshot),
        ]

    def problems(self) -> Mapping[str, str]:
        return {} if self.text_of("position").strip() else {"position": "a review needs a position, in a sentence"}

    def act(self, snapshot: Snapshot) -> Writable:
        position = self.text_of("position").strip()
        concerns, changes, questions = (self.items_of(key) for key in ("concerns", "changes", "questions"))
        text = compose.ReviewText(position, concerns, changes, questions)
        words = ["--position", position, *_flags("--concern", concerns), *_flags("--change", changes)]
        return self.made(guided.review(self.participant, text, self.summary), words + _flags("--question", questions))


class BlockForm(GuidedForm):
    """Why nothing goes on, and who must resolve it. It ends the round for everybody."""

    HEADING = "Block the collaboration"
    FORM = "block"
    EVENT = "blocked"

    def fields(self, snapshot: Snapshot) -> list[Field]:
        return [AreaField("reason", "Reason", "what must be resolved, and by whom", ("--reason", "--summary"))]

    def problems(self) -> Mapping[str, str]:
        cause = "a block needs a reason: what must be resolved, and by whom"
        return {} if self.text_of("reason").strip() else {"reason": cause}

    def act(self, snapshot: Snapshot) -> Writable:
        reason = " ".join(self.text_of("reason").split())
        return GuidedAct(self.path, guided.block(self.participant, reason), ("--reason", reason))


class ClassifyForm(GuidedForm):
    """Every question of readiness.md gets an answer; new ones are added below."""

    HEADING = "Classify the questions"
    FORM = "classify"
    EVENT = "question_classified"
    DOCUMENTS = ("readiness.md",)

    def fields(self, snapshot: Snapshot) -> list[Field]:
        items = scan_readiness(snapshot.document("readiness.md").text).items
        real = [item for item in items if item.text.strip().casefold() not in _PLACEHOLDERS]
        return [
            AnswersField("answers", "Questions in readiness.md", real, ("readiness.md",)),
            AreaField("resolved", "Also resolved", "one a line", ("--resolved", "--resolve")),
            AreaField("deferred", "Also deferred", "one a line, as: question :: reason", ("--defer",)),
            AreaField("blocking", "Also blocking", "one a line", ("--blocking",)),
            self.summary_field(snapshot),
        ]

    def problems(self) -> Mapping[str, str]:
        found: dict[str, str] = {}
        answers = self.field("answers")
        if isinstance(answers, AnswersField) and (text := answers.without_reason) is not None:
            found["answers"] = f"deferred without a reason: {text}"
        for line in self.items_of("deferred"):
            question, separator, reason = line.partition("::")
            if not separator or not reason.strip() or not question.strip():
                found["deferred"] = f"no reason: write it as question :: reason ({line})"
        return found

    def answers(self) -> compose.Classification:
        """All answers of the form."""
        field = self.field("answers")
        given = field.answers if isinstance(field, AnswersField) else {}
        deferred = [(text, reason) for text, (status, reason) in given.items() if status == "deferred_nonblocking"]
        for line in self.items_of("deferred"):
            question, _, reason = line.partition("::")
            deferred.append((question.strip(), reason.strip()))
        by_status = {
            status: [text for text, (given_status, _) in given.items() if given_status == status]
            for status in ("resolved", "blocking")
        }
        return compose.Classification(
            by_status["resolved"] + self.items_of("resolved"),
            deferred,
            by_status["blocking"] + self.items_of("blocking"),
        )

    def act(self, snapshot: Snapshot) -> Writable:
        answers = self.answers()
        words = _flags("--resolve", list(answers.resolved)) + _flags("--blocking", list(answers.blocking))
        words += _flags("--defer", [f"{text} :: {reason}" for text, reason in answers.deferred])
        return self.made(guided.classify(self.participant, None if answers.empty else answers, self.summary), words)


class DocumentForm(GuidedForm):
    """An event with the whole text of its document; an unchanged text changes nothing."""

    DOCUMENT: ClassVar[str] = ""

    @property
    def document(self) -> str:
        """The document whose text the form holds."""
        return self.DOCUMENT

    def document_field(self, snapshot: Snapshot) -> Field:
        """The document as it is now, to be edited."""
        return self.text_field(snapshot, self.document, (self.document, "--file"))

    def text_field(self, snapshot: Snapshot, label: str, where: Sequence[str]) -> Field:
        """The field of the document's text; `label` is ours, for it may hold markup."""
        text = snapshot.document(self.document).text
        pictured = editable_text(text) != text
        hint = "control characters are shown, and saved, as pictures" if pictured else "F3 opens your editor"
        return AreaField("text", label, hint, where, text, True)

    def new_text(self, snapshot: Snapshot) -> str | None:
        """The edited text, or None when it is as it was."""
        if not self.query("#field-text"):
            return None
        text, old = self.text_of("text").rstrip("\n"), snapshot.document(self.document)
        same = text in (old.text.rstrip("\n"), editable_text(old.text).rstrip("\n"))
        return None if same and old.data is not None else text + "\n"

    def problems(self) -> Mapping[str, str]:
        if self.query("#field-text") and not self.text_of("text").strip():
            return {"text": f"{self.document} would be empty"}
        return {}

    def words(self, text: str | None) -> list[str]:
        """The flag that gives the text on standard input."""
        return [] if text is None else ["--file", "-"]


class SubmitForm(DocumentForm):
    """proposal.md and its submission."""

    HEADING = "Submit the proposal"
    FORM = "submit"
    EVENT = "proposal_submitted"
    DOCUMENT = "proposal.md"
    DOCUMENTS: ClassVar[tuple[str, ...]] = ("proposal.md",)

    def fields(self, snapshot: Snapshot) -> list[Field]:
        return [self.document_field(snapshot), self.summary_field(snapshot)]

    def act(self, snapshot: Snapshot) -> Writable:
        text = self.new_text(snapshot)
        revise = self.EVENT == "proposal_revised"
        return self.made(guided.submit(self.participant, text, self.summary, revise), self.words(text))


class ReviseForm(SubmitForm):
    """proposal.md after the reviews."""

    HEADING = "Revise the proposal"
    FORM = "revise"
    EVENT = "proposal_revised"
    DOCUMENTS = ("proposal.md", "review.md")


class DecisionForm(DocumentForm):
    """What is decided, read once more; whoever may edit decisions.md now can do it here."""

    DOCUMENT = "decisions.md"
    DOCUMENTS = ("decisions.md",)

    def fields(self, snapshot: Snapshot) -> list[Field]:
        if self.DOCUMENT in view.editable(snapshot, self.participant):
            return [self.document_field(snapshot), self.summary_field(snapshot)]
        text = snapshot.document(self.DOCUMENT).text
        listed = "\n".join(f"{item.id or '-'} {item.title}\n{item.body.strip()}\n" for item in scan_decisions(text))
        shown = listed or "\n".join(compose.plain_decisions(text))
        reading = ReadingField("decisions", "Decisions", shown, "decisions.md names no decision yet.")
        return [reading, self.summary_field(snapshot)]

    def act(self, snapshot: Snapshot) -> Writable:
        text = self.new_text(snapshot)
        accept = self.EVENT == "decision_accepted"
        return self.made(guided.decisions(self.participant, text, accept, self.summary), self.words(text))


class ProposeForm(DecisionForm):
    """decisions.md is put before everybody."""

    HEADING = "Propose decisions"
    FORM = "propose"
    EVENT = "decision_proposed"


class AcceptForm(DecisionForm):
    """The decisions are accepted in this participant's name."""

    HEADING = "Accept the decisions"
    FORM = "accept"
    EVENT = "decision_accepted"


class DeliverableForm(DocumentForm):
    """The text of a deliverable, and that it was drafted or revised; which of both follows from the log."""

    HEADING = "Write a deliverable"
    FORM = "deliverable"
    EVENT = "deliverable_drafted"

    def fields(self, snapshot: Snapshot) -> list[Field]:
        self._texts: dict[str, str] = {}
        choices = _deliverables(snapshot)
        self._ref = next((one.id for one in choices if not one.reason), choices[0].id if choices else "")
        which = ChoiceField("doc", "Deliverable", choices, where=("--doc",), value=self._ref)
        return [which, self.document_field(snapshot), LineField("summary", "Summary", "optional", ("--summary",))]

    @property
    def document(self) -> str:
        return self._ref

    def about(self) -> Sequence[str]:
        return (self._ref,)

    def document_field(self, snapshot: Snapshot) -> Field:
        return self.text_field(snapshot, "Its text", (*(one.id for one in _deliverables(snapshot)), "--file"))

    def field_changed(self, field: Field) -> None:
        """Another deliverable shows its own text; what was typed for the one before is kept until the form closes."""
        text, ref = self.field("text"), str(field.value)
        if field.key != "doc" or ref == self._ref or self.snapshot is None or not isinstance(text, AreaField):
            return
        self._texts[self._ref] = text.text
        self._ref = ref
        text.restore(self._texts.get(ref, self.snapshot.document(ref).text))

    def problems(self) -> Mapping[str, str]:
        return super().problems() if self.field("doc").value else {"doc": "every deliverable is frozen"}

    def act(self, snapshot: Snapshot) -> Writable:
        text, ref = self.new_text(snapshot), self._ref
        declared = snapshot.setup.deliverables if snapshot.setup is not None else None
        primary = declared is not None and ref == declared.primary_ref
        act = guided.deliver(snapshot, self.participant, None if primary else ref, text, self.summary)
        return self.made(act, ([] if primary else ["--doc", ref]) + self.words(text))


def _deliverables(snapshot: Snapshot) -> list[Choice]:
    """The declared deliverables, those that are frozen with that reason."""
    declared = snapshot.setup.deliverables if snapshot.setup is not None else None
    refs = [declared.ref(item.file) for item in (declared.primary, *declared.supporting)] if declared else []
    frozen = frozen_refs(snapshot.events)
    return [
        Choice(ref, ref, reason="frozen already")
        if ref in frozen
        else Choice(ref, ref, "primary" if index == 0 else "supporting")
        for index, ref in enumerate(refs)
    ]


class FreezeForm(GuidedForm):
    """The primary deliverable, frozen for ever; its status line is set and the digest taken in the same act."""

    HEADING = "Freeze the deliverable"
    FORM = "freeze"
    EVENT = "deliverable_frozen"

    def fields(self, snapshot: Snapshot) -> list[Field]:
        choices = _deliverables(snapshot)
        refs = [one.id for one in choices]
        hint, chosen = "for ever: its status and its digest", refs[0] if refs else ""
        which = ChoiceField("doc", "Deliverable", choices, hint, ("--doc", *refs), chosen)
        return [which, self.summary_field(snapshot)]

    def problems(self) -> Mapping[str, str]:
        return {} if self.field("doc").value else {"doc": "nothing is left to freeze"}

    def act(self, snapshot: Snapshot) -> Writable:
        declared = snapshot.setup.deliverables if snapshot.setup is not None else None
        ref = str(self.field("doc").value)
        primary = declared is not None and ref == declared.primary_ref
        act = guided.freeze(self.participant, None if primary else ref, self.summary)
        return self.made(act, [] if primary else ["--doc", ref])


class ReadyForm(GuidedForm):
    """The lines of readiness.md that must be ticked."""

    HEADING = "Pass readiness"
    FORM = "ready"
    EVENT = "readiness_passed"
    DOCUMENTS = ("readiness.md",)

    def fields(self, snapshot: Snapshot) -> list[Field]:
        ticks = {tick.text: tick for tick in scan_readiness(snapshot.document("readiness.md").text).ticks}
        checks = [Check(text, text, tick.ticked, tick.ticked) for text, tick in ticks.items()]
        field = CheckField(
            "ticks", "Lines of readiness.md", checks, "space ticks, * ticks all", ("--tick", "readiness.md")
        )
        return [field, self.summary_field(snapshot)]

    def act(self, snapshot: Snapshot) -> Writable:
        field = self.field("ticks")
        ticks = field.ticked if isinstance(field, CheckField) else []
        return self.made(guided.ready(self.participant, tuple(ticks), False, self.summary), _flags("--tick", ticks))


class ConclusionForm(GuidedForm):
    """Outcome, reasons, approach, assumptions, next action; or conclusion.md as somebody wrote it."""

    HEADING = "Conclude"
    FORM = "conclude"
    EVENT = "completed"
    DOCUMENTS = ("conclusion.md", "decisions.md", "readiness.md")

    OUTCOMES: ClassVar[tuple[tuple[str, str], ...]] = (
        ("proceed", "carry out what was decided"),
        ("do_not_proceed", "leave it"),
        ("defer", "come back to it after the follow-ups"),
    )

    def fields(self, snapshot: Snapshot) -> list[Field]:
        setup = snapshot.setup
        missing = conclusion_findings(setup, snapshot.facts.conclusion) if setup is not None else []
        sources = [
            Choice("parts", "from these fields", "conclusion.md is written anew"),
            Choice("file", "as it stands", reason=missing[0].cause.removeprefix("conclusion.md "))
            if missing
            else Choice("file", "as it stands", "conclusion.md is complete"),
        ]
        outcomes = [Choice(name, name, note) for name, note in self.OUTCOMES]
        return [
            ChoiceField("source", "Conclusion", sources, value="parts" if missing else "file"),
            ChoiceField("outcome", "Outcome", outcomes, where=("--outcome",)),
            AreaField("rationale", "Rationale", "why", ("--rationale",)),
            AreaField("approach", "Implementation approach", "optional", ("--approach",)),
            AreaField("assumptions", "Assumptions", "one a line, optional", ("--assumption",)),
            AreaField("next", "Next action", "who does what next", ("--next",)),
            self.summary_field(snapshot),
        ]

    @property
    def composed(self) -> bool:
        """Whether conclusion.md is made from the fields."""
        return self.field("source").value != "file"

    def problems(self) -> Mapping[str, str]:
        if not self.composed:
            return {}
        found = {}
        for key, cause in (
            ("rationale", "a conclusion needs its reasons"),
            ("next", "a conclusion needs a next action"),
        ):
            if not self.text_of(key).strip():
                found[key] = cause
        return found

    def act(self, snapshot: Snapshot) -> Writable:
        if not self.composed:
            return self.made(guided.complete(self.participant, None, self.summary), [])
        outcome = str(self.field("outcome").value)
        rationale, approach, following = (self.text_of(key).strip() for key in ("rationale", "approach", "next"))
        assumptions = self.items_of("assumptions")
        text = compose.ConclusionText(outcome, rationale, following, approach, assumptions)
        words = ["--outcome", outcome, "--rationale", rationale, "--next", following]
        words += _flags("--approach", [approach] if approach else []) + _flags("--assumption", assumptions)
        return self.made(guided.complete(self.participant, text, self.summary), words)


FORMS: Final[Mapping[str, type[GuidedForm]]] = {
    form.EVENT: form
    for form in (
        DeliverableForm,
        SubmitForm,
        ReviewForm,
        ReviseForm,
        ClassifyForm,
        ProposeForm,
        AcceptForm,
        FreezeForm,
        ReadyForm,
        ConclusionForm,
        BlockForm,
    )
}
"""The guided form of each event that has one."""


def form_for(event: str) -> Callable[..., FormScreen]:
    """What makes the form of an event, called as `(path, participant, clock=…)`; others get the general form."""
    return FORMS.get("deliverable_drafted" if event == "deliverable_revised" else event) or partial(
        AppendForm, event=event
    )


__all__ = [
    "FORMS",
    "AcceptForm",
    "BlockForm",
    "ClassifyForm",
    "ConclusionForm",
    "DecisionForm",
    "DeliverableForm",
    "FreezeForm",
    "GuidedForm",
    "ProposeForm",
    "ReadyForm",
    "ReviewForm",
    "ReviseForm",
    "SubmitForm",
    "form_for",
]
