"""Failure codes and receipts of a workspace: found, read once, asked about (docs/design.md §3)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from core import inbox
from core.acp import guided
from core.evidence import Evidence, Receipts, Vocabulary, folders, inbox_items, receipts, vocabulary
from core.triage import store
from core.triage.rules import Wish, mint
from core.triage.store import Place as Workspace
from core.workspace import Place, discover, find, store_root
from tests.conftest import FixedClock, MakeFolder
from tests.unit.core.delegation.builders import Bench

SIGNAL = "FlangeError: the flange of the pump is loose"
CODE = mint(SIGNAL, "pumps")


def observe(root: Path, clock: FixedClock) -> None:
    clock.step(60)
    store.observe(Workspace(root), SIGNAL, "pumps", "server", clock)


def test_stores_are_found_beside_collaborations(tmp_path: Path, make_folder: MakeFolder, clock: FixedClock) -> None:
    talk = make_folder("ws/talk")
    (tmp_path / "ws/receipts").mkdir()
    (tmp_path / "ws/deep/triage").mkdir(parents=True)
    assert [place.kind for place in discover([tmp_path])] == ["receipts", "acp"]
    observe(tmp_path / "ws/deep", clock)
    made = discover([tmp_path])
    # A first sighting leaves its receipt in the workspace too.
    assert set(made) == {
        Place("receipts", tmp_path / "ws"),
        Place("receipts", tmp_path / "ws/deep"),
        Place("triage", tmp_path / "ws/deep"),
        Place("acp", talk),
    }
    assert find([tmp_path]) == [Place("acp", talk)]


def test_a_store_above_the_root_belongs_to_it(tmp_path: Path, clock: FixedClock) -> None:
    inside = tmp_path / "ws/collabs"
    inside.mkdir(parents=True)
    observe(tmp_path / "ws", clock)
    assert store_root(inside) == tmp_path / "ws"
    assert {place.kind for place in discover([inside])} == {"triage", "receipts"}
    assert {place.path for place in discover([inside])} == {tmp_path / "ws"}


def test_a_store_that_is_a_link_is_none(tmp_path: Path, clock: FixedClock) -> None:
    (tmp_path / "real").mkdir()
    observe(tmp_path / "real", clock)
    (tmp_path / "ws").mkdir()
    os.symlink(tmp_path / "real/triage", tmp_path / "ws/triage")
    assert Place("triage", tmp_path / "ws") not in discover([tmp_path / "ws"])


def test_an_unknown_failure_asks_at_its_second_sighting_until_it_has_a_name(tmp_path: Path, clock: FixedClock) -> None:
    seen = Evidence()

    def asked() -> list[inbox.InboxItem]:
        return inbox_items(seen.look([Place("triage", tmp_path)]))

    observe(tmp_path, clock)
    assert asked() == []
    observe(tmp_path, clock)
    (item,) = asked()
    assert (item.kind, item.lane, item.title, item.path) == ("triage", "decide", CODE, tmp_path)
    assert item.command.startswith(f"collab triage promote {CODE} --root ")
    observe(tmp_path, clock)
    assert [one.id for one in asked()] == [item.id]
    store.promote(
        Workspace(tmp_path), CODE, Wish("flange_loose", "pumps", ("flange of",), "Loose.", None), "ada", clock
    )
    assert asked() == []


def test_an_alias_settles_it_too(tmp_path: Path, clock: FixedClock) -> None:
    observe(tmp_path, clock)
    observe(tmp_path, clock)
    seen, places = Evidence(), [Place("triage", tmp_path)]
    assert len(inbox_items(seen.look(places))) == 1
    store.alias(Workspace(tmp_path), CODE, "disk_full", "ada", clock)
    assert inbox_items(seen.look(places)) == []


def test_what_did_not_change_is_not_read_again(tmp_path: Path, clock: FixedClock) -> None:
    observe(tmp_path, clock)
    seen, places = Evidence(), [Place("triage", tmp_path), Place("receipts", tmp_path)]
    first = seen.look(places)
    assert all(old is new for old, new in zip(first, seen.look(places), strict=True))
    observe(tmp_path, clock)
    again = seen.look(places)
    assert again[0] is not first[0]
    assert again[1] is first[1]


@pytest.fixture
def blocked(tmp_path: Path, make_folder: MakeFolder, clock: FixedClock) -> Path:
    """A workspace with one blocked collaboration."""
    (tmp_path / "receipts").mkdir()
    folder = make_folder()
    clock.step(60)
    guided.commit(folder, guided.block("reader", "The lease of the host ran out"), clock)
    return tmp_path


def test_a_receipt_that_cannot_be_trusted_is_said(blocked: Path) -> None:
    made = receipts(blocked)
    assert {item.level for item in made.known} == {"trusted"}
    assert made.inbox == []
    (path,) = (blocked / "receipts").glob("acp-*.json")
    raw = json.loads(path.read_text("utf-8"))
    raw["parent_refs"] = [{"receipt_id": "gone", "expected_schema": "x", "expected_producer": "y"}]
    path.write_text(json.dumps(raw), "utf-8")
    (item,) = receipts(blocked).inbox
    assert (item.kind, item.lane) == ("receipt", "know")
    assert "there is no receipt gone" in item.why
    assert item.command.startswith("collab envelope resolve ")


def test_what_cannot_be_read_is_a_finding(tmp_path: Path, clock: FixedClock) -> None:
    observe(tmp_path, clock)
    (tmp_path / "triage/failure_codes.json").write_text("{", "utf-8")
    for made in (vocabulary(tmp_path), receipts(tmp_path)):
        assert isinstance(made, Vocabulary | Receipts)
        assert [item.code for item in made.findings] == ["json_malformed"]
        assert made.inbox == []
    assert [item.code for item in receipts(tmp_path / "none").findings] == ["folder_missing"]


def test_plans_are_found_and_nothing_in_them(quick_path: Path, clock: FixedClock) -> None:
    bench = Bench(quick_path, clock).begin("T-mark")
    alone = quick_path / "elsewhere" / "PLAN_alone"
    alone.mkdir(parents=True)
    for name in ("contract.json", "journal.ndjson"):
        (alone / name).write_bytes((bench.plan / name).read_bytes())
    (bench.plan / "analysis_results/receipts").mkdir(parents=True)
    (bench.plan / "inside").mkdir()
    (bench.plan / "inside/protocol.json").write_text("{}")
    (bench.plan.parent / "PLAN_bare").mkdir()
    (bench.plan.parent / "notes.md").write_text("x")
    found = [place for place in discover([quick_path]) if place.kind == "plan"]
    assert [place.path for place in found] == [alone, bench.plan.parent / "PLAN_bare", bench.plan]
    assert find([quick_path]) == []


def test_a_plan_is_a_view_that_others_do_not_disturb(quick_path: Path, clock: FixedClock) -> None:
    bench = Bench(quick_path, clock).begin("T-mark")
    place, seen = Place("plan", bench.plan), Evidence(clock)
    (made,) = seen.look([place])
    assert seen.look([place]) == (made,)
    bench.launch("d1", worktree="../w")
    (second,) = seen.look([place])
    assert second is not made
    clock.step(31 * 60)
    assert [item.kind for item in inbox_items([second])] == ["delegation-open"]
    assert set(folders(place)) >= {bench.plan}
    assert seen.look([]) == ()
    seen.close()


def test_whoever_watches_leaves_alone_what_took_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([0.0, 0.0, 1.0, 1.0, 2.0, 5.9, 6.0, 6.0, 6.1, 6.1])
    monkeypatch.setattr("core.evidence.time.monotonic", lambda: next(moments))
    (tmp_path / "receipts").mkdir()
    place, seen = Place("receipts", tmp_path), Evidence(live=True)
    # It took a second, so it rests for five.
    (first,) = seen.look([place])
    (tmp_path / "receipts/a.json").write_text("{}")
    assert seen.look([place]) == (first,)
    assert seen.look([place]) == (first,)
    (second,) = seen.look([place])
    assert second is not first
