"""The guided forms: a whole collaboration written by keys alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from core.acp.check import check
from core.acp.model import SECTIONS
from core.acp.reader import read
from core.acp.store import Appended
from core.files import sha256
from core.finding import errors
from tests.console.hosts import SIZES, Host, is_inert, running, settle
from tui.forms.answers import AnswersField
from tui.forms.append import AppendForm
from tui.forms.base import FormScreen
from tui.forms.fields import CheckField, ChoiceField
from tui.forms.guided import (
    FORMS,
    BlockForm,
    ClassifyForm,
    ConclusionForm,
    DeliverableForm,
    FreezeForm,
    ReadyForm,
    form_for,
)
from tui.forms.preview import PreviewScreen

PROPOSAL = "# Proposal\n\nDo it.\n"
QUESTIONS = """# Readiness

- [unresolved] How long may it take?
- [unresolved] Who is paged \x1b[31m [/] at night?
- [resolved] Is it safe?

- [ ] The cache is measured
- [ ] Ready to implement
"""


class Later:
    """Always long enough after the last look for a preview to listen."""

    def __init__(self) -> None:
        self.value = 0.0

    def __call__(self) -> float:
        self.value += 1
        return self.value


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def talk(make_folder: Any) -> Path:
    folder: Path = make_folder()
    return folder


async def type_text(pilot: Pilot[object], text: str) -> None:
    await pilot.press(*({" ": "space", "\n": "enter", ".": "full_stop"}.get(char, char) for char in text))


async def open_form(app: Host, pilot: Pilot[object], form: FormScreen) -> FormScreen:
    app.open(form)
    await settle(pilot, lambda: form.all_fields)
    return form


async def append(app: Host, pilot: Pilot[object]) -> Appended:
    before = len(app.results)
    await pilot.press("f2")
    await settle(pilot, lambda: isinstance(app.screen, PreviewScreen))
    await pilot.press("enter")
    await settle(pilot, lambda: len(app.results) > before)
    made = app.results[-1]
    assert isinstance(made, Appended)
    return made


async def test_a_collaboration_from_proposal_to_conclusion(talk: Path, state: Path, clock: Any) -> None:
    async with running(size=(100, 44), state=state) as (app, pilot):

        async def form(event: str, who: str) -> FormScreen:
            clock.step(60)
            made = form_for(event)(talk, who, clock=clock, monotonic=Later())
            return await open_form(app, pilot, made)

        await form("proposal_submitted", "server")
        await type_text(pilot, "New. ")
        made = await append(app, pilot)
        assert (made.event.name, made.state.phase) == ("proposal_submitted", "reviewing")
        assert read(talk).document("proposal.md").text.startswith("New. # Proposal")

        await form("review_submitted", "reader")
        await type_text(pilot, "fine")
        assert (await append(app, pilot)).state.phase == "revising"

        await form("proposal_revised", "server")
        made = await append(app, pilot)
        assert (made.event.summary, made.state.phase) == ("Proposal revised after review.", "decision_review")
        (talk / "readiness.md").write_text(QUESTIONS)

        await form("decision_proposed", "server")
        await pilot.press("ctrl+a")
        await type_text(pilot, "# Decisions\n\n### D1. Cache it\n\n- Decision: yes\n")
        made = await append(app, pilot)
        assert made.event.name == "decision_proposed"
        assert "D1. Cache it" in read(talk).document("decisions.md").text

        classify = await form("question_classified", "server")
        answers = classify.field("answers")
        assert isinstance(answers, AnswersField)
        await pilot.press("r", "down", "d", "f2")
        await settle(pilot)
        assert answers.failed, "a deferred question needs its reason"
        await pilot.press("tab")
        await type_text(pilot, "later")
        await pilot.press("tab")
        await type_text(pilot, "One more")
        await append(app, pilot)
        readiness = read(talk).document("readiness.md").text
        assert "- [resolved] How long may it take?" in readiness
        assert "- [deferred_nonblocking] Who is paged \x1b[31m [/] at night? Reason: later" in readiness
        assert "- [resolved] One more" in readiness

        for who in ("reader", "server"):
            await form("decision_accepted", who)
            if who == "reader":
                await settle(pilot, lambda: "D1 Cache it" in app.shown())
            made = await append(app, pilot)
        assert made.state.phase == "readiness_check"

        ready = await form("readiness_passed", "server")
        ticks = ready.field("ticks")
        assert isinstance(ticks, CheckField)
        await pilot.press("asterisk", "space", "space")
        assert ticks.ticked == ["The cache is measured", "Ready to implement"]
        await append(app, pilot)
        assert "- [x] Ready to implement" in read(talk).document("readiness.md").text

        await form("completed", "server")
        await pilot.press("tab", "down", "up", "tab")
        await type_text(pilot, "It is measured.")
        await pilot.press("tab", "tab", "tab")
        await type_text(pilot, "Build it.")
        made = await append(app, pilot)
        assert made.state.phase == "completed"
        assert "- [proceed] It is measured." in read(talk).document("conclusion.md").text
    snapshot, found = check(talk)
    assert errors(found) == []
    assert [event.name for event in snapshot.events][-1] == "completed"
    assert not list((state / "drafts").glob("*.json"))


async def test_a_block_needs_a_reason(talk: Path, state: Path, clock: Any) -> None:
    async with running(size=(80, 24), state=state) as (app, pilot):
        form = await open_form(app, pilot, BlockForm(talk, "reader", clock=clock, monotonic=Later()))
        await pilot.press("f2")
        await settle(pilot)
        assert form.field("reason").failed
        await type_text(pilot, "no data\nask server")
        made = await append(app, pilot)
        assert (made.event.name, made.event.summary) == ("blocked", "no data ask server")


async def test_answers_go_round_and_come_back_from_a_draft(talk: Path, state: Path, clock: Any) -> None:
    (talk / "readiness.md").write_text(QUESTIONS)
    async with running(size=(80, 30), state=state) as (app, pilot):
        form = await open_form(app, pilot, ClassifyForm(talk, "server", clock=clock))
        field = form.field("answers")
        assert isinstance(field, AnswersField)
        seen = []
        for _ in range(4):
            await pilot.press("space")
            await pilot.pause()
            seen.append(dict(field.answers).get("How long may it take?", ("as it was", ""))[0])
        assert seen == ["resolved", "deferred_nonblocking", "blocking", "as it was"]
        await pilot.press("b", "down", "down", "b", "b")
        await pilot.press("escape")
        await settle(pilot, lambda: app.results)
        again = await open_form(app, pilot, ClassifyForm(talk, "server", clock=clock))
        restored = again.field("answers")
        assert isinstance(restored, AnswersField)
        assert restored.answers == {"How long may it take?": ("blocking", "")}
        restored.restore({"How long may it take?": ["nonsense", ""], "gone": ["resolved", ""], "x": 5})
        assert restored.answers == {"How long may it take?": ("blocking", "")}
        assert "✕ blocking" in app.shown()
        await pilot.press("tab", "tab")
        await type_text(pilot, "a question without reason")
        await pilot.press("f2")
        await settle(pilot)
        assert again.field("deferred").failed


async def test_a_conclusion_that_stands_is_taken_as_it_is_and_an_open_one_is_not(
    talk: Path, state: Path, clock: Any
) -> None:
    async with running(size=(100, 44), state=state) as (app, pilot):
        form = await open_form(app, pilot, ConclusionForm(talk, "server", clock=clock))
        source = form.field("source")
        assert isinstance(source, ChoiceField)
        assert source.value == "parts"
        await pilot.press("f2")
        await settle(pilot)
        assert form.field("rationale").failed
        assert form.field("next").failed
        await pilot.press("escape")
        await settle(pilot, lambda: app.screen is not form)
        headings = read(talk).facts.setup.conclusion_headings
        body = "\n\n".join(f"## {name}\n\n- None." for name in headings)
        (talk / "conclusion.md").write_text(body.replace("- None.", "- [proceed] yes", 1))
        form = await open_form(app, pilot, ConclusionForm(talk, "server", clock=clock))
        assert form.field("source").value == "file"
        await pilot.press("f2")
        await settle(pilot, lambda: "completed requires" in app.shown())


CASES = [(event, SIZES[0]) for event in sorted(FORMS)] + [("question_classified", size) for size in SIZES[1:]]


@pytest.mark.parametrize(("event", "size"), CASES)
async def test_every_form_fits_every_size_and_shows_hostile_documents_inert(
    event: str, size: tuple[int, int], talk: Path, state: Path, clock: Any, hostile: str
) -> None:
    for name in ("proposal.md", "decisions.md", "readiness.md", "conclusion.md"):
        (talk / name).write_bytes(hostile.encode("utf-8", "surrogatepass"))
    async with running(size=size, state=state) as (app, pilot):
        form = await open_form(app, pilot, form_for(event)(talk, "server", clock=clock))
        for _ in form.all_fields:
            await pilot.pause()
            rows = app.rows()
            assert all(is_inert(row) for row in rows)
            assert "F2 preview" in rows[-1]
            await pilot.press("tab")
        await pilot.press("f2")
        await settle(pilot)
        assert all(is_inert(row) for row in app.rows())


@pytest.fixture
def hostile() -> str:
    tricks = "\x1b]52;c;aGk=\x07 [/] [bold] \u202e 中文 \x9b31m\ttab"
    return f"# {tricks}\n\n- [unresolved] {tricks}\n- [ ] {tricks}\n\n### D1. {tricks}\n\n- Decision: {tricks}\n" * 20


async def test_a_freeze_carries_the_digest_of_the_deliverable(talk: Path, state: Path, clock: Any) -> None:
    raw = json.loads((talk / "protocol.json").read_text())
    raw |= {
        "protocol": "acp",
        "schemaVersion": 2,
        "deliverables": {
            "mode": "internal",
            "dir": "deliverables",
            "primary": {"type": "adr", "file": "adr.md"},
            "supporting": [{"type": "test-plan", "file": "plan.md"}],
        },
    }
    (talk / "protocol.json").write_text(json.dumps(raw))
    (talk / "deliverables").mkdir()
    (talk / "deliverables/adr.md").write_text("# Cache\n\nStatus: Draft\n")
    sections = "".join(f"## {name}\n\nSaid.\n\n" for name in SECTIONS["test-plan"])
    (talk / "deliverables/plan.md").write_text(f"# Plan\n\nStatus: Draft\n\n{sections}")
    async with running(size=(120, 50), state=state) as (app, pilot):
        form = await open_form(
            app, pilot, form_for("deliverable_drafted")(talk, "server", clock=clock, monotonic=Later())
        )
        assert form.field("doc").value == "deliverables/adr.md"
        made = await append(app, pilot)
        assert (made.event.name, made.event.role) == ("deliverable_drafted", "primary")
        form = await open_form(
            app, pilot, form_for("deliverable_frozen")(talk, "server", clock=clock, monotonic=Later())
        )
        await pilot.press("f2")
        await settle(pilot)
        assert "deliverable_frozen is not allowed from phase drafting" in "\n".join(app.rows())
        await pilot.press("down")
        assert form.field("doc").value == "deliverables/plan.md"
        made = await append(app, pilot)
        digest = sha256((talk / "deliverables/plan.md").read_bytes())
        assert (made.event.role, made.event.sha256) == ("supporting", digest)


def test_every_event_has_a_form(clock: Any, talk: Path) -> None:
    assert isinstance(form_for("deliverable_frozen")(talk, "server", clock=clock), FreezeForm)
    for event in ("deliverable_drafted", "deliverable_revised"):
        assert isinstance(form_for(event)(talk, "server", clock=clock), DeliverableForm)
    assert isinstance(form_for("initialized")(talk, "server", clock=clock), AppendForm)
    assert isinstance(form_for("readiness_passed")(talk, "server", clock=clock), ReadyForm)
