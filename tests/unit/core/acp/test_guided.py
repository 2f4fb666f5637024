"""Guided acts: a document and its event, decided together (docs/specs/acp.md §3, §6)."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from core.acp import guided, store
from core.acp.check import check
from core.acp.compose import Classification, ConclusionText, ReviewText
from core.acp.guided import Act
from core.acp.reader import read
from core.finding import Finding, Refused
from tests.conftest import FixedClock, MakeFolder
from tui.cli import main

GATE = "Measured (p95 < 5 ms) [cache]"
Files = dict[str, bytes]
Do = Callable[[Act], store.Appended]


@pytest.fixture
def folder(make_folder: MakeFolder) -> Path:
    return make_folder("talk", ("server", "reader", "editor"), gates=(GATE,))


@pytest.fixture
def do(folder: Path, clock: FixedClock) -> Do:
    def run(act: Act) -> store.Appended:
        clock.step(1)
        return guided.commit(folder, act, clock)

    return run


def files(folder: Path) -> Files:
    """Everything but the lock."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "lock"
    }


def refused(folder: Path, act: Act, clock: FixedClock) -> tuple[Finding, ...]:
    """Why it was refused; nothing was written."""
    before = files(folder)
    with pytest.raises(Refused) as caught:
        guided.commit(folder, act, clock)
    assert files(folder) == before
    with pytest.raises(Refused) as previewed:
        guided.prepare(act, read(folder), clock)
    assert previewed.value.findings == caught.value.findings
    return caught.value.findings


def codes(found: tuple[Finding, ...]) -> list[str]:
    return [item.code for item in found]


WAY: tuple[Act, ...] = (
    guided.submit("server", "# Proposal\n"),
    guided.review("reader", ReviewText("In favour", ["Slow"])),
    guided.review("editor", "In favour\n"),
    guided.submit("server", "# Proposal\n\nRevised.\n", revise=True),
    guided.decisions("server", "# Decisions\n\n- LRU.\n", accept=False),
    guided.classify("server", Classification(["Key layout"], [("Sizes", "later")])),
    guided.decisions("reader", None, accept=True),
    guided.decisions("server", None, accept=True),
    guided.decisions("editor", None, accept=True),
    guided.ready("server", tick_all=True),
    guided.complete("server", ConclusionText("proceed", "It fits.", "Open it.")),
)
"""One whole collaboration."""


def test_a_whole_collaboration(folder: Path, do: Do) -> None:
    for seq, act in enumerate(WAY, start=2):
        before = read(folder)
        made = do(act)
        assert made.event.seq == seq
        assert made.event.name == act.event
        assert made.event.reply_to == seq - 1
        assert made.warnings == ()
        assert check(folder)[1] == [], act
        if act.document is not None and act.text is not None:
            assert read(folder).document(act.document).sha256 != before.document(act.document).sha256
            assert made.event.doc == act.document
    end = read(folder)
    assert end.state.phase == "completed"
    assert "## Accepted Decisions\n\n- LRU.\n" in end.document("conclusion.md").text
    assert "- Sizes Reason: later" in end.document("conclusion.md").text
    assert "- Read `proposal.md` after event seq `2`." in end.document("review.md").text


def test_a_preview_is_what_is_done(folder: Path, do: Do, clock: FixedClock) -> None:
    for act in WAY:
        clock.step(1)
        plan = guided.prepare(act, read(folder), clock)
        before = files(folder)
        made = guided.commit(folder, act, clock, plan.expectation)
        assert made.event.raw == plan.event.raw
        assert made.state == plan.after
        if plan.document is not None:
            assert (folder / plan.document).read_bytes() == plan.new
            assert before[plan.document] == plan.old


def test_a_french_collaboration_stays_french(make_folder: MakeFolder, clock: FixedClock) -> None:
    folder = make_folder("discussion", ("server", "reader", "editor"), gates=("Mesuré",), language="fr")
    for act in WAY:
        guided.commit(folder, act, clock)
        assert check(folder)[1] == [], act
    review, readiness, conclusion = (
        (folder / f"{name}.md").read_text() for name in ("review", "readiness", "conclusion")
    )
    assert review.count("\nContexte :\n") == 3
    assert "Context:" not in review
    assert "- [résolu] Key layout\n- [différé_non_bloquant] Sizes Raison : later\n" in readiness
    assert "- [x] Prêt à implémenter" in readiness
    assert "## Résultat de la Décision\n\n- [procéder] It fits.\n" in conclusion
    assert "## Decision Outcome" not in conclusion


# Whose turn it is decides first

WRONG: tuple[Act, ...] = (
    *WAY,
    guided.review("reader", None),
    guided.review("reader", ""),
    guided.ready("server", ("no such line",)),
    guided.classify("server", Classification(["\n"])),
    guided.complete("server", "nothing"),
)


PHASES_OF = {
    "proposal_submitted": ("drafting", "revising"),
    "review_submitted": ("reviewing",),
    "proposal_revised": ("revising",),
    "decision_proposed": ("revising", "decision_review"),
    "question_classified": ("decision_review",),
    "decision_accepted": ("decision_review",),
    "readiness_passed": ("readiness_check",),
    "completed": ("readiness_check",),
}


def test_an_act_out_of_turn_is_told_so_whatever_its_text(folder: Path, do: Do, clock: FixedClock) -> None:
    """The protocol's own phrase comes first, not a fault of a document that nobody should have written yet."""
    asked: set[tuple[str, str | None]] = set()
    for step in (None, *WAY):
        if step is not None:
            do(step)
        phase = read(folder).state.phase
        for act in WRONG:
            if phase in PHASES_OF[act.event] or (act.event, phase) in asked:
                continue
            asked.add((act.event, phase))
            found = refused(folder, act, clock)
            phrase = f"{act.event} is not allowed from phase {phase}"
            if act.event == "completed":
                phrase = "completed requires a prior readiness_passed event"
            assert any(item.cause.startswith(phrase) for item in found), (act, found)
            assert all(item.where not in ("review.md", "--file", "readiness.md") for item in found), (act, found)
    assert len(asked) == sum(
        len({"drafting", *sum(PHASES_OF.values(), ()), "completed"} - {*PHASES_OF[one]}) for one in PHASES_OF
    )


@pytest.mark.parametrize(
    ("act", "cause"),
    [
        (guided.submit("reader", "x"), "proposal submission is reserved for server; got reader"),
        (guided.submit("nobody", "x"), "participant 'nobody' is not listed in protocol.json"),
        (guided.submit("", "x"), "participant '' is not listed in protocol.json"),
        (guided.submit("server", "x", summary="  "), "the summary is blank; one short sentence is needed"),
        (guided.submit("server", "x", summary="a\0b"), "--summary holds a NUL character"),
        (guided.submit("server", "x", summary="a\udcffb"), "--summary is not valid UTF-8"),
        (guided.submit("server", "a\udcffb"), "the text for proposal.md is not valid UTF-8"),
        (guided.block("nobody", "x"), "participant 'nobody' is not listed in protocol.json"),
    ],
)
def test_a_refusal_says_why(folder: Path, clock: FixedClock, act: Act, cause: str) -> None:
    assert cause in [item.cause for item in refused(folder, act, clock)]


def test_only_the_owner_writes_decisions(folder: Path, do: Do, clock: FixedClock) -> None:
    for act in WAY[:6]:
        do(act)
    found = refused(folder, guided.decisions("reader", "# Mine\n", accept=True), clock)
    assert codes(found) == ["document_not_yours"]
    assert found[0].cause == "decisions.md may not be edited by reader in phase decision_review"
    assert found[0].next_command == f"collab accept --folder {folder} --as reader"
    assert main(shlex.split(found[0].next_command or "")[1:]) == 0
    do(guided.decisions("server", "# Decisions\n\n- Mine.\n", accept=True))
    assert (folder / "decisions.md").read_text() == "# Decisions\n\n- Mine.\n"


# Documents


@pytest.mark.parametrize(
    ("text", "stands"),
    [
        ("a\r\nb\rc", "a\nb\nc\n"),
        ("a", "a\n"),
        ("a\n\n", "a\n\n"),
        ("", ""),
        ("a\x00\x1b[2J\u202eb\n", "a\x00\x1b[2J\u202eb\n"),
        ("x" * 1_000_000, "x" * 1_000_000 + "\n"),
    ],
    ids=range(6),
)
def test_a_whole_text_becomes_the_document(folder: Path, do: Do, text: str, stands: str) -> None:
    do(guided.submit("server", text))
    assert (folder / "proposal.md").read_bytes() == stands.encode()
    assert check(folder)[1] == []


def test_a_document_that_stays_as_it_is_is_not_written(folder: Path, do: Do) -> None:
    path = folder / "proposal.md"
    inode, objects = path.stat().st_ino, sorted(os.listdir(folder / ".collab/objects"))
    plan = guided.prepare(guided.submit("server", path.read_text()), read(folder))
    assert (plan.document, plan.new) == (None, None)
    assert do(guided.submit("server", path.read_text())).event.seq == 2
    assert path.stat().st_ino == inode
    assert sorted(os.listdir(folder / ".collab/objects")) == objects
    assert check(folder)[1] == []


@pytest.mark.parametrize(
    "act",
    [
        guided.submit("server"),
        guided.classify("server", None),
        guided.decisions("server", None, accept=True),
        guided.ready("server"),
        guided.complete("server", None),
    ],
)
def test_an_act_without_a_text_leaves_the_document_alone(folder: Path, act: Act) -> None:
    assert guided.change(act, read(folder)) is None


def test_a_review_that_stands_in_the_folder_gets_its_event(folder: Path, do: Do, clock: FixedClock) -> None:
    do(WAY[0])
    assert codes(refused(folder, guided.review("reader", None), clock)) == ["review_text_missing"]
    with (folder / "review.md").open("a") as review:
        review.write("\n## 2026-03-01T09:00:02Z - reader - seq 3\n\nPosition:\n- Yes.\n")
    inode = (folder / "review.md").stat().st_ino
    assert codes(refused(folder, guided.review("editor", None), clock)) == ["review_text_missing"]
    assert codes(refused(folder, guided.review("editor", "Yes"), clock)) == ["review_heading_repeated"]
    assert do(guided.review("reader", None)).event.seq == 3
    assert (folder / "review.md").stat().st_ino == inode
    assert check(folder)[1] == []


def test_a_link_in_the_place_of_a_document_leads_nowhere(folder: Path, tmp_path: Path, clock: FixedClock) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (folder / "proposal.md").unlink()
    (folder / "proposal.md").symlink_to(secret)
    assert codes(refused(folder, guided.submit("server", "x"), clock)) == ["path_is_link"]
    assert secret.read_text() == "secret"


def test_a_missing_document_is_written(folder: Path, do: Do) -> None:
    (folder / "proposal.md").unlink()
    do(guided.submit("server", "# Proposal\n"))
    assert check(folder)[1] == []


# Summaries


def test_a_review_is_summed_up_by_its_first_line(folder: Path, do: Do) -> None:
    do(WAY[0])
    assert do(guided.review("reader", ReviewText(" In favour \nbut"))).event.summary == "In favour"
    assert do(guided.review("editor", ReviewText("y" * 200_000))).event.summary == "y" * 119 + "…"


@pytest.mark.parametrize("text", [ReviewText(""), ReviewText(" \n"), "A text", None])
def test_without_a_position_the_usual_summary_stands(text: ReviewText | str | None) -> None:
    assert guided.review("reader", text).summary is None


def test_a_given_summary_stands(folder: Path, do: Do) -> None:
    assert do(guided.submit("server", summary="Mine")).event.summary == "Mine"


def test_a_block_needs_a_reason(folder: Path, do: Do) -> None:
    for reason in ("", " \n\t"):
        with pytest.raises(Refused) as caught:
            guided.block("reader", reason)
        assert codes(caught.value.findings) == ["reason_blank"]
    made = do(guided.block("reader", "No host\nuntil  Monday"))
    assert made.event.summary == "No host until Monday"
    assert made.state.phase == "blocked"


# Validation comes first


def at_the_end(do: Do) -> None:
    for act in WAY[:9]:
        do(act)


def break_heading(folder: Path) -> None:
    path = folder / "review.md"
    path.write_text(path.read_text().replace("- editor -", "- writer -"))


def break_history(folder: Path) -> None:
    path = folder / "events.jsonl"
    path.write_text(path.read_text().replace("Collaboration initialized", "Collaboration initialised"))


def forbidden(folder: Path) -> None:
    (folder / "state.log").write_text("")


BREAKS = {
    break_heading: "review_heading_mismatch",
    break_history: "log_rewritten",
    forbidden: "file_forbidden",
}


@pytest.mark.parametrize("damage", BREAKS)
@pytest.mark.parametrize("number", [9, 10])
def test_an_invalid_folder_is_neither_ready_nor_complete(
    folder: Path, do: Do, clock: FixedClock, damage: Callable[[Path], None], number: int
) -> None:
    for act in WAY[:number]:
        do(act)
    damage(folder)
    assert BREAKS[damage] in codes(refused(folder, WAY[number], clock))


def test_the_new_document_is_what_is_validated(folder: Path, do: Do, clock: FixedClock) -> None:
    at_the_end(do)
    assert codes(refused(folder, guided.ready("server"), clock)) == ["readiness_not_ticked"]
    do(guided.ready("server", ("Ready to implement",)))
    conclusion = ConclusionText("proceed", "It fits.", "Open it.")
    found = refused(folder, guided.complete("server", conclusion), clock)
    assert [(item.code, GATE in item.cause) for item in found] == [("gates_unticked", True)]
    path = folder / "readiness.md"
    path.write_text(path.read_text().replace("- [ ]", "- [x]"))
    found = refused(folder, guided.complete("server", None), clock)
    assert set(codes(found)) == {"conclusion_outcome_blocked", "conclusion_placeholder"}
    do(guided.complete("server", conclusion))
    assert check(folder)[1] == []


def test_a_warning_stops_nothing(folder: Path, do: Do) -> None:
    at_the_end(do)
    (folder / "proposal.md").write_text("changed too late")
    assert [item.code for item in check(folder)[1]] == ["edit_out_of_turn"]
    do(WAY[9])


def test_ticks_are_named_exactly(folder: Path, do: Do, clock: FixedClock) -> None:
    at_the_end(do)
    found = refused(folder, guided.ready("server", ("No such line",)), clock)
    assert found[0].cause == "readiness.md has no line '- [ ] No such line' to tick"
    assert found[0].next_command == f"collab show --folder {folder} --doc readiness.md"
    do(guided.ready("server", (GATE, "Ready to implement")))
    ticked = [line for line in (folder / "readiness.md").read_text().splitlines() if line.startswith("- [x]")]
    assert ticked == [f"- [x] {GATE}", "- [x] Ready to implement"]


# Folders that are none


@pytest.mark.parametrize("name", ["missing", "empty", "a file"])
def test_no_act_without_a_folder(tmp_path: Path, clock: FixedClock, name: str) -> None:
    place = tmp_path / name
    if name == "empty":
        place.mkdir()
    if name == "a file":
        place.write_text("x")
    for act in (WAY[0], guided.block("server", "x")):
        with pytest.raises(Refused) as caught:
            guided.commit(place, act, clock)
        assert caught.value.findings[0].code in ("folder_missing", "not_a_folder", "not_a_collaboration")
    assert files(tmp_path) == ({"a file": b"x"} if name == "a file" else {})


def test_a_damaged_log_takes_no_act(folder: Path, clock: FixedClock) -> None:
    with (folder / "events.jsonl").open("a") as log:
        log.write("rubbish\n")
    assert codes(refused(folder, WAY[0], clock)) == ["log_damaged"]


def test_an_unreadable_setup_takes_no_act(folder: Path, clock: FixedClock) -> None:
    (folder / "protocol.json").write_text("{")
    assert codes(refused(folder, WAY[0], clock)) == ["json_malformed"]


@pytest.mark.parametrize(
    "name", ["a folder", "it's", 'a "b"', "`id`", "$(id)", "{folder}", "{participant}", "-x", "é\udcff"]
)
def test_commands_name_any_folder(make_folder: MakeFolder, clock: FixedClock, name: str) -> None:
    folder = make_folder(name)
    (command,) = {item.next_command for item in refused(folder, WAY[1], clock)}
    assert shlex.split(command or "") == ["collab", "next", "--folder", str(folder), "--participant", "reader"]
    for act in (WAY[0], WAY[1], guided.submit("server", revise=True), guided.classify("server", Classification(["A"]))):
        guided.commit(folder, act, clock)
    (command,) = {item.next_command for item in refused(folder, guided.decisions("reader", "x", accept=True), clock)}
    assert shlex.split(command or "") == ["collab", "accept", "--folder", str(folder), "--as", "reader"]


def test_unknown_fields_of_others_are_kept(folder: Path, do: Do) -> None:
    raw = json.loads((folder / "protocol.json").read_text())
    (folder / "protocol.json").write_text(json.dumps({**raw, "theirs": {"a": ["é"]}}))
    do(WAY[0])
    assert json.loads((folder / "protocol.json").read_text())["theirs"] == {"a": ["é"]}
