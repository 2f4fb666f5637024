"""The receipts of a collaboration follow from its log (docs/design.md §4)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from core import journal
from core.acp import guided, reader
from core.acp.compose import Classification, ConclusionText, ReviewText
from core.governance import acp_boundary, boundary, rules, store
from core.governance.hashing import hash_string
from core.triage import store as triage
from core.triage import view
from core.triage.rules import Wish
from core.triage.store import Place
from tests.conftest import FixedClock, MakeFolder
from tests.unit.core.governance.samples import goal

Play = Callable[..., None]
REASON = "The lease of the staging host ran out"


@pytest.fixture
def talk(make_folder: MakeFolder, tmp_path: Path) -> Path:
    """A collaboration in a workspace that keeps receipts."""
    (tmp_path / "receipts").mkdir()
    return make_folder()


@pytest.fixture
def play(talk: Path, clock: FixedClock) -> Play:
    """`play()` to the end; `play(until="accepted")` up to the acceptance; `play(block=…)` blocks instead."""

    def do(act: guided.Act) -> None:
        clock.step(60)
        guided.commit(talk, act, clock)

    def run(until: str = "completed", block: str | None = None) -> None:
        do(guided.submit("server", "# Proposal\n\nCache it.\n"))
        do(guided.review("reader", ReviewText("Agreed.", [], [], [])))
        do(guided.submit("server", "# Proposal\n\nCache it for an hour.\n", revise=True))
        do(guided.classify("server", Classification(["How long?"], [], [])))
        do(guided.decisions("server", None, accept=True))
        if block is not None:
            do(guided.block("reader", block))
            return
        do(guided.decisions("reader", None, accept=True))
        if until == "accepted":
            return
        do(guided.ready("server", tick_all=True))
        do(guided.complete("server", ConclusionText("proceed", "It is measured.", "Roll it out.", "", [])))

    return run


def receipts(talk: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (talk.parent / "receipts").glob("*.json")}


def documents(data: bytes) -> set[str]:
    return set(json.loads(data)["payload"]["documents"])


def test_an_open_collaboration_leaves_none(talk: Path) -> None:
    assert acp_boundary.leave(talk).findings == ()
    assert receipts(talk) == {}
    assert acp_boundary.check(talk) == []


def test_acceptance_then_closure(talk: Path, play: Play) -> None:
    play(until="accepted")
    assert acp_boundary.leave(talk).findings == ()
    (first,) = receipts(talk).values()
    payload = json.loads(first)["payload"]
    assert (payload["seq"], payload["event"], payload["state"], payload["folder"]) == (
        7,
        "decision_accepted",
        "readiness_check",
        "talk",
    )
    assert documents(first) == {"proposal.md", "review.md", "decisions.md", "readiness.md", "conclusion.md"}


def test_a_finished_collaboration_is_trusted_and_says_so(talk: Path, play: Play) -> None:
    play()
    assert acp_boundary.leave(talk).findings == ()
    made = receipts(talk)
    assert sorted(name.rpartition("-")[2] for name in made) == ["7.json", "9.json"]
    assert acp_boundary.check(talk) == []
    catalog = Place(talk.parent).load()
    known = store.receipts(talk.parent / "receipts", catalog)
    for name, data in made.items():
        envelope, _, found = rules.envelope(name, data, catalog)
        assert envelope is not None, found
        resolved = store.resolve(envelope, name, hash_string(data), known)
        assert resolved.trusted
        assert len(resolved.parents) == (1 if name.endswith("-9.json") else 0)


def test_killed_between_event_and_receipt_repair_writes_the_very_same(talk: Path, play: Play) -> None:
    play()
    acp_boundary.leave(talk)
    before = receipts(talk)
    for name in before:
        (talk.parent / "receipts" / name).unlink()
        assert [item.code for item in acp_boundary.check(talk)].count("receipt_missing") == 1
        assert [item.code for item in acp_boundary.rebuild(talk)] == ["receipt_rebuilt"]
        assert receipts(talk) == before
    assert acp_boundary.rebuild(talk) == []


@pytest.mark.parametrize("name", ["proposal.md", "review.md", "decisions.md", "readiness.md", "conclusion.md"])
def test_one_changed_byte_is_named(name: str, talk: Path, play: Play) -> None:
    play()
    acp_boundary.leave(talk)
    path = talk / name
    data = path.read_bytes()
    path.write_bytes(data[:-2] + bytes([data[-2] ^ 1]) + data[-1:])
    found = acp_boundary.check(talk)
    assert [(item.code, item.severity, item.where) for item in found] == [("receipt_document_changed", "warning", name)]
    assert name in found[0].cause


def test_after_the_acceptance_only_what_nobody_may_edit_counts(talk: Path, play: Play) -> None:
    play(until="accepted")
    acp_boundary.leave(talk)
    for name in ("readiness.md", "conclusion.md"):
        (talk / name).write_text("rewritten, as one may", "utf-8")
    assert acp_boundary.check(talk) == []
    (talk / "decisions.md").write_text("rewritten", "utf-8")
    assert [item.where for item in acp_boundary.check(talk)] == ["decisions.md"]


def test_a_block_is_classified_observed_once_and_escalated(talk: Path, play: Play) -> None:
    play(block=REASON)
    assert acp_boundary.leave(talk).findings == ()
    root = talk.parent
    ((seen,),) = [view.listing(Place(root)).codes]
    assert (seen.sightings, seen.layer, seen.first_seen) == (1, "acp", "2026-03-01T09:06:00Z")
    made = receipts(talk)
    (escalation,) = [data for name, data in made.items() if name.startswith("acp-")]
    assert json.loads(escalation)["triage_code"] == seen.code
    assert f"tri-{seen.code}.json" in made
    assert acp_boundary.check(talk) == []
    assert acp_boundary.rebuild(talk) == []
    assert view.listing(Place(root)).codes[0].sightings == 1


def test_the_code_of_a_block_stays_what_it_was_when_it_happened(talk: Path, play: Play) -> None:
    play(block=REASON)
    acp_boundary.leave(talk)
    before = receipts(talk)
    root = talk.parent
    code = view.listing(Place(root)).codes[0].code
    triage.promote(Place(root), code, Wish("lease_lost", "acp", ("lease of the",), "The lease ran out.", None), "ada")
    assert acp_boundary.check(talk) == []
    for name in before:
        (root / "receipts" / name).unlink()
    acp_boundary.rebuild(talk)
    name = next(name for name in before if name.startswith("acp-"))
    assert receipts(talk)[name] == before[name]


@pytest.mark.parametrize("reason", ["Blocked", "FAIL"])
def test_a_verdict_as_a_reason_still_has_a_code(reason: str, talk: Path, play: Play) -> None:
    play(block=reason)
    assert acp_boundary.leave(talk).findings == ()
    (data,) = receipts(talk).values()
    assert json.loads(data)["triage_code"].startswith("acp_unclassified_")
    assert acp_boundary.check(talk) == []
    assert not (talk.parent / "triage" / "observations.jsonl").exists()


def test_a_reason_that_the_catalogue_knows(talk: Path, play: Play) -> None:
    play(block="conclusion.md must declare exactly one final outcome")
    acp_boundary.leave(talk)
    (data,) = receipts(talk).values()
    assert json.loads(data)["triage_code"] == "conclusion_outcome_count"
    assert acp_boundary.check(talk) == []


def test_a_broken_catalogue_does_not_hide_the_receipt(talk: Path, play: Play) -> None:
    (talk.parent / "triage").mkdir()
    (talk.parent / "triage" / "failure_codes.json").write_text("{", "utf-8")
    play(block=REASON)
    assert [(item.code, item.severity) for item in acp_boundary.leave(talk).findings] == [("json_malformed", "warning")]
    (data,) = receipts(talk).values()
    assert json.loads(data)["triage_code"].startswith("acp_unclassified_")


def test_events_that_were_not_legal_leave_no_receipt(talk: Path, play: Play) -> None:
    play(until="accepted")
    forged = {
        "seq": 8,
        "from": "stranger",
        "event": "blocked",
        "at": "2026-03-02T09:00:00Z",
        "summary": "x",
        "reply_to": 7,
    }
    with (talk / "events.jsonl").open("ab") as log:
        log.write(journal.encode(forged))
    acp_boundary.leave(talk)
    assert [name.rpartition("-")[2] for name in receipts(talk)] == ["7.json"]
    lines = (talk / "events.jsonl").read_bytes().splitlines(keepends=True)
    (talk / "events.jsonl").write_bytes(
        b"".join(lines[:-1]) + journal.encode({**forged, "from": "reader", "at": "later"})
    )
    acp_boundary.leave(talk)
    assert len(receipts(talk)) == 1


def test_an_acceptance_that_is_not_everybodys_is_none(talk: Path, play: Play, clock: FixedClock) -> None:
    play(block=REASON)
    acp_boundary.leave(talk)
    assert [
        json.loads(data)["payload"].get("event") for name, data in receipts(talk).items() if name.startswith("acp")
    ] == ["blocked"]


def test_a_goal_of_its_own(talk: Path, play: Play) -> None:
    (talk / "goal.json").write_text(json.dumps(goal()), "utf-8")
    play()
    acp_boundary.leave(talk)
    assert {json.loads(data)["goal_hash"] for data in receipts(talk).values()} == {goal()["goal_hash"]}
    assert acp_boundary.check(talk) == []


def test_without_a_goal_it_is_who_when_and_what_for(talk: Path, play: Play) -> None:
    play()
    acp_boundary.leave(talk)
    setup = json.loads((talk / "protocol.json").read_text("utf-8"))
    expected = boundary.goal_hash(f"{setup['createdAt']}server", setup["objective"])
    assert {json.loads(data)["goal_hash"] for data in receipts(talk).values()} == {expected}


def test_a_named_root(talk: Path, play: Play, tmp_path: Path) -> None:
    play()
    other = tmp_path / "elsewhere"
    other.mkdir()
    assert acp_boundary.leave(talk, other).findings == ()
    assert len(list((other / "receipts").glob("*.json"))) == 2
    assert json.loads(next((other / "receipts").glob("*-9.json")).read_bytes())["payload"]["folder"] == "../talk"


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    assert acp_boundary.leave(tmp_path / "none").findings == ()
    assert acp_boundary.check(tmp_path) == []


@pytest.fixture
def in_the_way(talk: Path) -> Path:
    """A workspace whose receipts cannot be written."""
    path = talk.parent / "receipts"
    path.rmdir()
    path.write_text("in the way", "utf-8")
    return path


def test_a_root_that_cannot_be_written_is_a_warning(in_the_way: Path, talk: Path, play: Play) -> None:
    play()
    found = acp_boundary.leave(talk).findings
    assert [(item.code, item.severity) for item in found] == [("not_a_folder", "warning")]
    assert reader.read(talk).state.phase == "completed"


def test_an_act_stands_whatever_happens_to_its_receipt(
    in_the_way: Path, talk: Path, play: Play, clock: FixedClock
) -> None:
    play(until="accepted")
    clock.step(60)
    made = guided.commit(talk, guided.block("server", REASON), clock)
    assert made.event.name == "blocked"
    assert (made.code or "").startswith("acp_unclassified_")
    assert {(item.code, item.severity) for item in made.warnings} == {("not_a_folder", "warning")}
    assert reader.read(talk).state.phase == "blocked"
    in_the_way.unlink()
    assert sorted(item.code for item in acp_boundary.rebuild(talk)) == ["receipt_rebuilt", "receipt_rebuilt"]
    assert acp_boundary.check(talk) == []


def test_the_writer_leaves_the_receipt_itself(talk: Path, play: Play) -> None:
    play(until="accepted")
    assert [name.rpartition("-")[2] for name in receipts(talk)] == ["7.json"]


def test_the_code_that_is_shown_is_the_one_on_the_receipt(talk: Path, play: Play) -> None:
    assert acp_boundary.code_of(talk) is None
    play(block=REASON)
    (escalation,) = [data for name, data in receipts(talk).items() if name.startswith("acp-")]
    assert acp_boundary.code_of(talk) == json.loads(escalation)["triage_code"]


def test_without_a_workspace_the_receipts_lie_beside_the_folder(
    tmp_path: Path, make_folder: MakeFolder, play: Play
) -> None:
    (tmp_path / "receipts").rmdir()
    play()
    assert len(list((tmp_path / "receipts").glob("acp-*.json"))) == 2


LOADED = """
import sys
from pathlib import Path
from core.acp import guided, reader
guided.commit(Path(sys.argv[1]), guided.submit("server", "# Proposal\\n\\nCache it.\\n"))
loaded = [name for name in sys.modules if name.startswith(("core.governance", "core.triage", "pydantic"))]
assert loaded == [], loaded
"""


def test_an_ordinary_act_loads_nothing_of_it(talk: Path) -> None:
    subprocess.run([sys.executable, "-c", LOADED, str(talk)], check=True)
