"""Every past moment of a folder is what the folder was then; a story holds what led to an event and nothing else."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from core.acp import guided, store, story, timeline
from core.acp.compose import ConclusionText
from core.acp.history import content
from core.acp.model import DOCUMENTS, PHASES, Draft, State
from core.acp.reader import FolderReader, Snapshot, read
from core.acp.rules import evolve, fold
from core.acp.templates import initialize
from core.acp.timeline import Timeline, is_unknown
from core.acp.view import DEFAULTS, Gate, Person, default_draft, gates, options, people, phase_path
from core.files import Root
from core.finding import Refused
from tests.conftest import FixedClock, MakeFolder

PEOPLE = ("ana", "bob", "cleo")
CLEAN = "# Readiness\n\n- [resolved] all\n- [ ] The cache is measured\n- [{}] Ready to implement\n"
TICKED = CLEAN.format("x").replace("[ ]", "[x]")
OPEN = "# Readiness\n\n- [unresolved] who pays?\n- [ ] The cache is measured\n- [ ] Ready to implement\n"


@dataclass
class Seen:
    """What a folder showed right after an event."""

    state: State
    path: list[Any]
    documents: dict[str, bytes | None]
    gates: list[Gate]
    people: list[Person]
    recorded: bool


def look(path: Path, recorded: bool) -> Seen:
    now = read(path)
    texts = {name: now.document(name).data for name in DOCUMENTS}
    return Seen(now.state, phase_path(now.state), texts, gates(now), people(now), recorded)


def walk(path: Path, seed: int, clock: FixedClock, most: int = 24) -> list[Seen]:
    """A random collaboration by guided acts; now and then somebody appends without our sidecar, or edits in between."""
    pick = random.Random(seed)
    initialize(path, "Walk", PEOPLE, ("The cache is measured",), clock, "en")
    seen = [look(path, True)]
    while len(seen) < most:
        now = read(path)
        if now.state.terminal:
            break
        if pick.random() < 0.25:
            name = pick.choice(DOCUMENTS)
            text = (
                pick.choice((CLEAN.format("x"), OPEN)) if name == "readiness.md" else f"# {name}\n\n{pick.random()}\n"
            )
            (path / name).write_text(text, encoding="utf-8")
        clock.step(pick.choice((1, 60, 3600)))
        who = pick.choice(PEOPLE)
        legal = [one.draft.event for one in options(read(path), who, clock.now()) if one.legal]
        legal = [name for name in legal if name != "blocked" or pick.random() < 0.01]
        if now.state.phase == "readiness_check" and pick.random() < 0.5 and close(path, now, clock):
            seen.append(look(path, True))
            continue
        if not legal:
            (path / "readiness.md").write_text(CLEAN.format("x"), encoding="utf-8")
            continue
        event = pick.choice(legal)
        draft = default_draft(read(path), who, event)
        if pick.random() < 0.15:
            foreign(path, draft, len(seen) + 1, clock)
            seen.append(look(path, False))
            continue
        name = DEFAULTS[event][1]
        change = None
        if name in DOCUMENTS and pick.random() < 0.6:
            text = CLEAN.format("x") if name == "readiness.md" else f"# {name}\n\n{pick.random()}\n"
            change = store.Change(name, lambda _event, _old, text=text: text)
        try:
            store.append(path, draft, clock=clock, change=change)
        except Refused:
            continue
        seen.append(look(path, True))
    return seen


def close(path: Path, now: Snapshot, clock: FixedClock) -> bool:
    """Readiness, then the conclusion, as the guided verbs write them over tidy documents; False when refused."""
    owner = now.state.owner or ""
    reviews = [one for one in now.events if one.name == "review_submitted"]
    headings = "\n".join(f"## {one.at} - {one.actor} - seq {one.seq}\n" for one in reviews)
    (path / "review.md").write_text(f"# Review\n\n{headings}", encoding="utf-8")
    (path / "readiness.md").write_text(TICKED, encoding="utf-8")
    act = guided.ready(owner, tick_all=True)
    if now.state.readiness_passed:
        act = guided.complete(owner, ConclusionText("proceed", "It is enough.", "ana builds it."))
    try:
        guided.commit(path, act, clock)
    except Refused:
        return False
    return True


def foreign(path: Path, draft: Draft, seq: int, clock: FixedClock) -> None:
    """Another tool appends by the log alone."""
    raw = {"seq": seq, "from": draft.participant, "event": draft.event, "at": clock.now().isoformat()}
    raw |= {"summary": draft.summary, "reply_to": draft.reply_to}
    with (path / "events.jsonl").open("a", encoding="utf-8") as handle:
        handle.write(json.dumps(raw) + "\n")


SEEDS = range(50)


def test_the_walks_come_through_every_phase_to_both_ends(quick_path: Path) -> None:
    ends: Counter[str | None] = Counter()
    phases: set[str | None] = set()
    for seed in SEEDS:
        seen = walk(quick_path / str(seed), seed, FixedClock())
        ends[seen[-1].state.phase] += 1
        phases |= {one.state.phase for one in seen}
        shutil.rmtree(quick_path / str(seed))
    assert phases == set(PHASES)
    assert ends["completed"] >= 10
    assert ends["blocked"] >= 5


@pytest.mark.parametrize("seed", SEEDS)
def test_every_moment_is_what_the_folder_was(seed: int, quick_path: Path, clock: FixedClock) -> None:
    path = quick_path / "walk"
    seen = walk(path, seed, clock)
    now = read(path)
    line = Timeline(now)
    assert now.setup is not None
    assert len(now.events) == len(seen)
    order = list(range(len(seen)))
    random.Random(seed).shuffle(order)
    for index in [*range(len(seen)), *order]:
        was, past = seen[index], line.at(index)
        assert past.state == was.state == fold(now.setup, now.events[: index + 1]).state
        assert phase_path(past.state) == was.path
        assert [person.waited_for for person in people(past)] == [person.waited_for for person in was.people]
        assert [person.did for person in people(past)] == [person.did for person in was.people]
        for name in DOCUMENTS:
            assert is_unknown(past.document(name)) is not was.recorded
            assert past.document(name).data == (was.documents[name] if was.recorded else None)
        if was.recorded:
            assert gates(past) == was.gates
        else:
            unsure = [gate for gate in gates(past) if gate.where in DOCUMENTS]
            assert all(gate.state == "open" and gate.text.startswith("unknown then: ") for gate in unsure)
        assert timeline.at(now, now.events[index].seq or 0).state == was.state
    again = Timeline(read(path), line)
    assert [again.state(index) for index in range(len(seen))] == [one.state for one in seen]


def test_a_timeline_goes_on_where_the_log_has_grown(make_folder: MakeFolder, clock: FixedClock) -> None:
    path = make_folder()
    store.append(path, default_draft(read(path), "server", "proposal_submitted"), clock=clock)
    reader = FolderReader(path)
    first = Timeline(reader.refresh())
    first.state(len(first.events) - 1)
    store.append(path, default_draft(read(path), "reader", "review_submitted"), clock=clock)
    grown = Timeline(reader.refresh(), first)
    reader.close()
    assert len(grown.events) == len(first.events) + 1
    assert grown.state(len(grown.events) - 1) == read(path).state
    assert not is_unknown(grown.at(len(grown.events) - 1).document("proposal.md"))


def test_the_past_never_shows_the_present_text(make_folder: MakeFolder, clock: FixedClock) -> None:
    path = make_folder()
    store.append(path, default_draft(read(path), "server", "proposal_submitted"), clock=clock)
    (path / "proposal.md").write_text("# Later\n", encoding="utf-8")
    then = timeline.at(read(path), 2)
    assert then.document("proposal.md").data != b"# Later\n"
    for kept in (path / ".collab" / "objects").iterdir():
        kept.unlink()
    lost = timeline.at(read(path), 2).document("proposal.md")
    assert lost.data is None
    assert lost.problem is not None
    assert lost.problem.cause == (
        "the content of proposal.md at seq 2 is unknown: that event was not written by this tool"
    )


def test_a_document_that_was_not_there_is_not_unknown(make_folder: MakeFolder, clock: FixedClock) -> None:
    path = make_folder()
    (path / "conclusion.md").unlink()
    store.append(path, default_draft(read(path), "server", "proposal_submitted"), clock=clock)
    gone = timeline.at(read(path), 2).document("conclusion.md")
    assert gone.problem is not None
    assert gone.problem.code == "file_missing"


def test_a_record_of_another_log_counts_for_nothing(make_folder: MakeFolder, clock: FixedClock) -> None:
    path = make_folder()
    store.append(path, default_draft(read(path), "server", "proposal_submitted"), clock=clock)
    log = path / "events.jsonl"
    lines = log.read_text(encoding="utf-8").splitlines()
    second = json.loads(lines[1]) | {"at": "2026-03-01T11:11:11Z"}
    log.write_text(lines[0] + "\n" + json.dumps(second) + "\n", encoding="utf-8")
    assert is_unknown(timeline.at(read(path), 2).document("proposal.md"))


def test_a_seq_that_is_not_there_is_refused(make_folder: MakeFolder) -> None:
    with pytest.raises(Refused) as refused:
        timeline.at(read(make_folder()), 9)
    assert refused.value.findings[0].code == "seq_unknown"
    assert "the log ends at seq 1" in refused.value.findings[0].cause


def test_a_step_folds_a_small_part_of_a_long_log(
    tmp_path: Path, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "long"
    initialize(path, "Long", ("server", "reader"), ("Gate",), clock, "en")
    turns = (("server", "proposal_submitted"), ("reader", "review_submitted"))
    rows = [
        json.dumps(
            {"seq": seq, "from": turns[seq % 2][0], "event": turns[seq % 2][1], "at": "2026-03-01T09:00:00Z",
             "summary": "s", "reply_to": seq - 1}
        )
        for seq in range(2, 50_001)
    ]  # fmt: skip
    with (path / "events.jsonl").open("a", encoding="utf-8") as handle:
        handle.write("\n".join(rows) + "\n")
    now = read(path)
    line = Timeline(now)
    assert now.setup is not None
    assert line.at(49_999).state == fold(now.setup, now.events).state
    folded = 0

    def counted(*words: Any) -> State:
        nonlocal folded
        folded += 1
        return evolve(*words)

    monkeypatch.setattr(timeline, "evolve", counted)
    for index in (0, 777, 25_000, 49_998):
        folded = 0
        line.at(index)
        assert folded <= timeline.STRIDE


# Stories.


def play(
    path: Path, clock: FixedClock, *acts: tuple[str, str], texts: dict[int, dict[str, str]] | None = None
) -> Snapshot:
    """Acts in order; `texts[n]` are written before act n."""
    for number, (who, event) in enumerate(acts):
        for name, text in (texts or {}).get(number, {}).items():
            (path / name).write_text(text, encoding="utf-8")
        clock.step(60)
        store.append(path, default_draft(read(path), who, event), clock=clock)
    return read(path)


ROUND = (
    ("server", "proposal_submitted"),
    ("reader", "review_submitted"),
    ("server", "proposal_revised"),
    ("server", "question_classified"),
    ("server", "decision_accepted"),
    ("server", "decision_proposed"),
    ("server", "question_classified"),
    ("server", "decision_accepted"),
    ("reader", "decision_accepted"),
    ("server", "readiness_passed"),
)


def seqs(told: tuple[story.Moment, ...]) -> list[int | None]:
    return [one.event.seq for one in told]


def test_a_story_leaves_out_what_did_not_count(make_folder: MakeFolder, clock: FixedClock) -> None:
    path = make_folder()
    texts = {3: {"readiness.md": CLEAN.format("x")}, 5: {"decisions.md": "# Decisions\n\n- An hour.\n"}}
    line = Timeline(play(path, clock, *ROUND, texts=texts))
    # The first classification and its acceptance were made void by the decision that was proposed after them.
    assert seqs(story.of(line, 11)) == [1, 2, 3, 4, 7, 8, 9, 10, 11]
    assert seqs(story.of(line, 3)) == [1, 2, 3]
    assert seqs(story.of(line, 6)) == [1, 2, 3, 4, 5, 6]
    told = story.of(line, "An hour.")
    assert seqs(told) == [1, 2, 3, 4, 7, 8, 9, 10, 11]
    written = next(one for one in told if one.event.seq == 7)
    assert [change.name for change in written.changes or ()] == ["decisions.md"]
    change = (written.changes or ())[0]
    with Root(path) as root:
        assert content(root, change.after) == b"# Decisions\n\n- An hour.\n"
    before = read(make_folder("fresh")).document("decisions.md").text.splitlines()
    after = ["# Decisions", "", "- An hour."]
    assert story.change_lines(line, written) == [f"decisions.md  {story.counts(before, after)}"]
    assert story.counts(["a", "b", "b"], ["b", "c", "d"]) == "+2 -2"


def test_an_answer_that_reaches_back_is_part_of_the_story(make_folder: MakeFolder, clock: FixedClock) -> None:
    path = make_folder(participants=("server", "reader", "other"))
    play(path, clock, ("server", "proposal_submitted"), ("reader", "review_submitted"))
    draft = default_draft(read(path), "other", "blocked")
    store.append(path, Draft("other", "blocked", "no", None, 3), clock=clock)
    assert seqs(story.of(Timeline(read(path)), 4))[-1] == 4
    path = make_folder("far", participants=("server", "reader", "other"))
    play(path, clock, ("server", "proposal_submitted"), ("reader", "review_submitted"), ("other", "review_submitted"))
    store.append(path, Draft("other", draft.event, "no", None, 3), clock=clock)
    assert seqs(story.of(Timeline(read(path)), 5)) == [1, 2, 3, 5]


def test_decisions_are_named_by_number_or_by_text() -> None:
    assert [one.id for one in story.named("## Accepted Decisions\n\n### D1. Hour\n\n- a\n\n### D2. Topic\n")] == [
        "D1",
        "D2",
    ]
    assert [one.id for one in story.named("- Sessions live an hour.\n* Other\n")] == ["Sessions live an hour.", "Other"]
    assert story.named("") == ()


def test_a_decision_that_nobody_recorded_is_refused(make_folder: MakeFolder, clock: FixedClock) -> None:
    path = make_folder()
    now = play(path, clock, ("server", "proposal_submitted"))
    (path / "decisions.md").write_text("- Later.\n", encoding="utf-8")
    line = Timeline(read(path))
    with pytest.raises(Refused) as refused:
        story.of(line, "Later.")
    assert refused.value.findings[0].code == "content_unknown"
    with pytest.raises(Refused) as refused:
        story.of(line, "Nobody said that")
    assert refused.value.findings[0].code == "decision_unknown"
    shutil.rmtree(path / ".collab")
    assert [one.changes for one in story.of(Timeline(now), 2)] == [None, None]
