"""Guided acts: what a person gives becomes a document and an event, decided together (docs/specs/acp.md §3, §6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from core.acp import compose, store, view
from core.acp.check import remembered
from core.acp.declare import with_status
from core.acp.model import DELIVERABLE_EVENTS, Draft, Event
from core.acp.reader import Snapshot, locate
from core.acp.rules import turn_findings
from core.clock import SYSTEM, Clock
from core.files import Root, sha256
from core.finding import Finding, Refused, error, errors
from core.lock import PATIENCE
from core.sanitize import clip

SUMMARY_WIDTH = 120
"""Cells of a summary that is taken from a text: one short sentence."""


@dataclass(frozen=True)
class Act:
    """One guided act: which event, in whose name, and the document that goes with it.

    `text` makes the new document from (event, old text, snapshot); None leaves the document as it is. An event of a
    deliverable names the `deliverable` by its reference, and that is its document; None is the primary one.
    """

    event: str
    participant: str
    summary: str | None = None
    document: str | None = None
    text: Callable[[Event, str, Snapshot], str] | None = None
    deliverable: str | None = None

    @property
    def validates(self) -> bool:
        """The protocol asks for a valid folder before these."""
        return self.event in ("readiness_passed", "completed")


def draft(act: Act, snapshot: Snapshot) -> Draft:
    """The event's draft: it answers the latest event, and says what is usual unless told otherwise."""
    made = view.default_draft(snapshot, act.participant, act.event)
    if act.event in DELIVERABLE_EVENTS:
        made = _named(act, snapshot, made)
    return made if act.summary is None else replace(made, summary=act.summary)


def _named(act: Act, snapshot: Snapshot, made: Draft) -> Draft:
    """The draft about the act's own deliverable; the digest of a freeze is that of the file as the freeze leaves it."""
    declared = snapshot.setup.deliverables if snapshot.setup is not None else None
    ref = act.deliverable or (declared.primary_ref if declared is not None else None)
    if declared is None or ref is None:
        return made
    if ref != declared.primary_ref:
        phrase = f"Supporting deliverable REF {act.event.removeprefix('deliverable_')}."
        made = replace(made, doc=ref, role="supporting", summary=view.said(snapshot, phrase, REF=ref))
    if act.event != "deliverable_frozen":
        return made
    data = snapshot.document(ref).data
    # Without a file the digest cannot matter: that it is missing is what the caller is to read.
    digest = sha256(with_status(data, "Frozen", ref)) if data is not None else "0" * 64
    return replace(made, sha256=digest)


def _declared_ref(act: Act, snapshot: Snapshot) -> str | None:
    """The deliverable of an act, where it is a declared one; of another, `decide` says what is wrong."""
    declared = snapshot.setup.deliverables if snapshot.setup is not None else None
    ref = draft(act, snapshot).doc
    return ref if declared is not None and ref is not None and declared.find(ref) is not None else None


def _freeze_change(act: Act, snapshot: Snapshot) -> store.Change | None:
    """`Status: Frozen` in the file, where it does not say so yet."""
    ref = draft(act, snapshot).doc
    data = snapshot.document(ref).data if ref is not None else None
    if ref is None or data is None:
        return None
    new = with_status(data, "Frozen", ref)
    if new == data:
        return None
    return change(replace(act, document=ref, text=lambda event, old, seen: new.decode("utf-8")), snapshot)


def change(act: Act, snapshot: Snapshot) -> store.Change | None:
    """The document part of an act."""
    make = act.text
    if act.event == "deliverable_frozen" and make is None:
        return _freeze_change(act, snapshot)
    if act.event in DELIVERABLE_EVENTS and act.document is None:
        act = replace(act, document=_declared_ref(act, snapshot))
    if make is None or act.document is None:
        return None

    def compose(event: Event, old: str) -> str:
        try:
            _may_write(act, snapshot)
            return make(event, old, snapshot)
        except Refused as exc:
            raise Refused(*(locate(item, snapshot.path) for item in exc.findings)) from None

    return store.Change(act.document, compose)


def _may_write(act: Act, snapshot: Snapshot) -> None:
    """Whose turn it is decides first; only then does the document matter."""
    if snapshot.setup is None:
        return
    found = turn_findings(snapshot.state, snapshot.setup, snapshot.events, draft(act, snapshot))
    if found:
        raise Refused(*found)
    if act.document not in view.editable(snapshot, act.participant):
        cause = f"{act.document} may not be edited by {act.participant} in phase {snapshot.state.phase}"
        command = view.command_for(snapshot, act.participant, act.event)
        raise Refused(error("document_not_yours", cause, command, act.document))


def valid_first(snapshot: Snapshot) -> list[Finding]:
    """Errors of the folder as it would be with the new document in it, its remembered history included."""
    with Root(snapshot.path) as root:
        return errors([*snapshot.findings, *remembered(snapshot, root)])


def prepare(act: Act, snapshot: Snapshot, clock: Clock = SYSTEM) -> store.Plan:
    """What the act would write, for a preview. Raises Refused."""
    check = valid_first if act.validates else None
    return store.plan(snapshot, draft(act, snapshot), clock, change(act, snapshot), check)


def commit(
    path: Path,
    act: Act,
    clock: Clock = SYSTEM,
    expect: store.Expectation | None = None,
    patience: float = PATIENCE,
) -> store.Appended:
    """Do it: document and event, both or neither, decided under the lock. Raises Refused."""
    return store.append_with(path, lambda snapshot: prepare(act, snapshot, clock), clock, expect, patience)


def replace_text(text: str) -> Callable[[Event, str, Snapshot], str]:
    """The document becomes exactly this text."""
    made = text.replace("\r\n", "\n").replace("\r", "\n")
    return lambda event, old, snapshot: made if made.endswith("\n") or not made else made + "\n"


def submit(participant: str, text: str | None = None, summary: str | None = None, revise: bool = False) -> Act:
    """proposal_submitted or proposal_revised, with proposal.md when a text is given."""
    event = "proposal_revised" if revise else "proposal_submitted"
    return Act(event, participant, summary, "proposal.md", replace_text(text) if text is not None else None)


def review(participant: str, text: compose.ReviewText | str | None, summary: str | None = None) -> Act:
    """review_submitted with its block in review.md; None: the block stands there already."""

    def make(event: Event, old: str, snapshot: Snapshot) -> str:
        if snapshot.setup is None:
            return old
        proposal = snapshot.last("proposal_submitted")
        read = proposal.seq if proposal is not None else None
        language = snapshot.language_of("review.md")
        return compose.add_review(old, event, snapshot.setup, text, read, language)

    if summary is None and isinstance(text, compose.ReviewText):
        first = text.position.strip().splitlines()[:1]
        summary = clip(first[0].strip(), SUMMARY_WIDTH) if first and first[0].strip() else None
    return Act("review_submitted", participant, summary, "review.md", make)


def classify(participant: str, answers: compose.Classification | str | None, summary: str | None = None) -> Act:
    """question_classified with readiness.md: a whole text, answers, or as it stands in the folder."""

    def make(event: Event, old: str, snapshot: Snapshot) -> str:
        if isinstance(answers, compose.Classification):
            return compose.classify(old, answers, snapshot.language_of("readiness.md"))
        return old

    text = replace_text(answers) if isinstance(answers, str) else make
    return Act("question_classified", participant, summary, "readiness.md", text if answers is not None else None)


def decisions(participant: str, text: str | None, accept: bool, summary: str | None = None) -> Act:
    """decision_accepted or decision_proposed, with decisions.md when a text is given."""
    event = "decision_accepted" if accept else "decision_proposed"
    return Act(event, participant, summary, "decisions.md", replace_text(text) if text is not None else None)


def ready(participant: str, ticks: tuple[str, ...] = (), tick_all: bool = False, summary: str | None = None) -> Act:
    """readiness_passed, with lines of readiness.md ticked; in v2 its snapshot line gets the frozen digest."""

    def make(event: Event, old: str, snapshot: Snapshot) -> str:
        ticked = compose.tick(old, ticks, tick_all)
        setup = snapshot.setup
        gates = setup.gates if tick_all and setup is not None else ()
        declared = setup.deliverables if setup is not None else None
        digest = snapshot.document(declared.primary_ref).sha256 if declared is not None else None
        gated = compose.add_gates(ticked, gates, snapshot.language_of("readiness.md"))
        return compose.snapshot(gated, digest)

    return Act("readiness_passed", participant, summary, "readiness.md", make if ticks or tick_all else None)


def deliver(
    snapshot: Snapshot,
    participant: str,
    deliverable: str | None = None,
    text: str | None = None,
    summary: str | None = None,
) -> Act:
    """deliverable_drafted, or deliverable_revised once that one was drafted; with its file when a text is given."""
    declared = snapshot.setup.deliverables if snapshot.setup is not None else None
    ref = deliverable or (declared.primary_ref if declared is not None else None)
    before = any(event.name == "deliverable_drafted" and event.doc == ref for event in snapshot.events)
    # The primary one cannot be revised while its proposal is drafted: it is drafted once more.
    again = before and (snapshot.state.phase != "drafting" or declared is None or ref != declared.primary_ref)
    event = "deliverable_revised" if again else "deliverable_drafted"
    made = replace_text(text) if text is not None else None
    return Act(event, participant, summary, text=made, deliverable=deliverable)


def freeze(participant: str, deliverable: str | None = None, summary: str | None = None) -> Act:
    """deliverable_frozen: `Status: Frozen` in the file and the digest of exactly those bytes, in one act."""
    return Act("deliverable_frozen", participant, summary, deliverable=deliverable)


def complete(participant: str, text: compose.ConclusionText | str | None, summary: str | None = None) -> Act:
    """completed, with conclusion.md as a whole text, composed from its parts, or as it stands."""

    def make(event: Event, old: str, snapshot: Snapshot) -> str:
        if snapshot.setup is None or not isinstance(text, compose.ConclusionText):
            return old
        declared = snapshot.setup.deliverables
        digest = snapshot.document(declared.primary_ref).sha256 if declared is not None else None
        return compose.conclusion(
            snapshot.setup,
            text,
            snapshot.document("decisions.md").text,
            snapshot.document("readiness.md").text,
            digest,
            snapshot.language_of("conclusion.md"),
        )

    made = replace_text(text) if isinstance(text, str) else make
    return Act("completed", participant, summary, "conclusion.md", made if text is not None else None)


def block(participant: str, reason: str) -> Act:
    """blocked, with the reason as its summary."""
    if not reason.strip():
        raise Refused(
            error("reason_blank", "a block needs a reason: what must be resolved, and by whom", None, "--reason")
        )
    return Act("blocked", participant, " ".join(reason.split()))
