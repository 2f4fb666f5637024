"""Observing, promoting, aliasing: what is written, once, whatever happens between (docs/specs/governance.md §2)."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.files import LINE_CAP, Root, set_fault
from core.finding import Refused
from core.governance import boundary
from core.triage import rules, store, view
from core.triage.rules import Wish
from core.triage.store import Place
from tests.conftest import FixedClock
from tests.unit.core.triage.conftest import SHOP, Read, document, entry
from tui.cli import parser

COUGH = "press_unclassified_1b14a65b"
WISH = Wish("press_gearbox", "press", ("GEARBOX coughs",), "The gearbox is dry.", "shop press oil")


def met(place: Place, text: str = "gearbox coughs", layer: str | None = "press") -> store.Observed:
    return store.observe(place, text, layer, "ada", FixedClock())


def refused(act: Any, *words: Any) -> list[str]:
    with pytest.raises(Refused) as caught:
        act(*words)
    return [item.code for item in caught.value.findings]


@pytest.fixture
def fault() -> Iterator[Any]:
    yield set_fault
    set_fault(None)


def test_the_first_sighting_leaves_everything_once(place: Place, load: Read) -> None:
    made = met(place)
    assert (made.sightings, made.recurrence, made.created) == (1, False, ("ticket", "eval_case", "memory"))
    assert load("triage/observations.jsonl") == [
        {
            "schema": "collab.triage_observation.v1",
            "at": "2026-03-01T09:00:00Z",
            "by": "ada",
            "code": COUGH,
            "minted": COUGH,
            "layer": "press",
            "signal": "gearbox coughs",
        }
    ]
    before = {name: Path(path).read_bytes() for name, path in made.side_effects.items()}
    assert {name: json.loads(data)["schema"] for name, data in before.items()} == {
        "ticket": "collab.triage_ticket.v1",
        "eval_case": "collab.triage_eval_case.v1",
        "memory": "collab.triage_memory.v1",
    }
    again = met(place, "  GEARBOX\tcoughs ")
    assert (again.sightings, again.recurrence, again.created) == (2, True, ())
    assert {name: Path(path).read_bytes() for name, path in again.side_effects.items()} == before


def test_a_lost_side_effect_is_made_again_from_the_first_sighting(place: Place, load: Read) -> None:
    made = met(place, "Gearbox coughs")
    ticket = Path(made.side_effects["ticket"])
    before = ticket.read_bytes()
    ticket.unlink()
    assert met(place, "gearbox  COUGHS").created == ("ticket",)
    assert ticket.read_bytes() == before


def test_the_receipt_of_a_minted_code_is_trusted_and_rebuilt_alike(place: Place) -> None:
    met(place)
    path = place.root / "receipts" / f"tri-{COUGH}.json"
    before = path.read_bytes()
    seen = [line.observation for line in store.lines(place.root) if line.observation is not None]
    wanted = store.receipts(seen)
    assert [item.data for item in wanted] == [before]
    assert boundary.check(place.root, wanted, "none") == []
    path.unlink()
    assert [item.code for item in boundary.check(place.root, wanted, "none")] == ["receipt_missing"]
    met(place)
    assert path.read_bytes() == before


def test_what_the_catalogue_knows_leaves_a_line_only(place: Place) -> None:
    made = met(place, "Paper jam again", None)
    assert (made.report.code, made.sightings, made.recurrence) == ("press_jam", 1, False)
    assert not made.side_effects
    assert not made.created
    assert met(place, "paper jam", "press").sightings == 2
    assert sorted(item.name for item in (place.root / "triage").iterdir() if not item.name.startswith(".")) == [
        "failure_codes.json",
        "observations.jsonl",
    ]
    assert not (place.root / "receipts").exists()


def test_a_refused_signal_is_not_recorded(place: Place) -> None:
    assert refused(met, place, "BLOCKED") == ["signal_is_verdict"]
    assert not (place.root / store.OBSERVATIONS).exists()


def test_a_broken_catalogue_stops_every_act(place: Place) -> None:
    (place.root / store.CODES).write_text("{", "utf-8")
    assert refused(met, place) == ["json_malformed"]
    assert refused(view.listing, place) == ["json_malformed"]
    assert refused(store.promote, place, COUGH, WISH, "ada") == ["json_malformed"]
    assert view.waiting(place.root) == []


def test_a_catalogue_behind_a_link_is_not_read(place: Place, tmp_path: Path) -> None:
    codes = place.root / store.CODES
    other = place.root / "elsewhere.json"
    codes.rename(other)
    codes.symlink_to(other)
    assert refused(met, place) == ["file_unreadable"]


def test_a_signal_is_kept_up_to_its_cap(place: Place, load: Read) -> None:
    met(place, "x" * 5000 + "\udcff")
    assert load("triage/observations.jsonl")[0]["signal"] == "x" * 4000


def test_damaged_lines_are_told_and_not_counted(place: Place) -> None:
    met(place)
    log = place.root / store.OBSERVATIONS
    good = log.read_text("utf-8")
    other = json.loads(good)
    bad = ["{", "[]", '"x"', json.dumps({**other, "schema": "x"}), json.dumps({**other, "minted": 7}), '{"a":' * 300]
    log.write_text(good + "\n".join(bad) + "\n\n" + good + good.rstrip("\n"), "utf-8")
    made = view.listing(place)
    assert [(item.code, item.severity) for item in made.findings] == [("observation_damaged", "warning")] * len(bad)
    assert [item.where for item in made.findings] == [f"triage/observations.jsonl#/{n}" for n in range(1, 7)]
    assert [(seen.code, seen.sightings, seen.status) for seen in made.codes] == [(COUGH, 3, "recurring")]
    # The unfinished last line is ended, not glued to the next one.
    assert met(place).sightings == 4


def test_a_torn_line_is_left_behind_as_damaged(place: Place) -> None:
    met(place)
    log = place.root / store.OBSERVATIONS
    log.write_bytes(log.read_bytes() + b'{"schema": "collab.tri')
    assert met(place).sightings == 2
    assert len(view.listing(place).findings) == 1


SIGHTING = json.dumps(
    {
        "schema": store.OBSERVATION_SCHEMA,
        "at": "t",
        "by": None,
        "code": "c",
        "minted": None,
        "layer": None,
        "signal": "s",
    }
)
PIECES = (
    SIGHTING, f"{SIGHTING},{SIGHTING}", f"{SIGHTING} , {SIGHTING}", SIGHTING[:-1] + ', "more": [{"x": 1}',
    '{"y": 2}]}', '{"y": 2},{"z": 3}]}', f"{SIGHTING},", f",{SIGHTING}", f"[{SIGHTING}]", "", "  ", "null", "]", "[",
    SIGHTING[:-1] + ', "x": [{"a": 1},{"b": 2}]}', "\udcff", SIGHTING.replace('"s"', '"},{"'),
)  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=12), st.integers(1, 40))
def test_lines_read_together_are_what_they_are_alone(pieces: list[str], size: int) -> None:
    """Whatever stands on other lines: a line is one whole observation, or it is damaged."""
    raws = [piece.encode("utf-8", "surrogateescape") for piece in pieces]
    numbered = list(enumerate(raws, size))
    together = store._read_lines(b"\n".join(raws), numbered)
    assert together == [store.read_line(at, raw) for at, raw in numbered]


def test_codes_written_with_escapes_are_counted(place: Place) -> None:
    met(place)
    log = place.root / store.OBSERVATIONS
    line = log.read_text("utf-8")
    log.write_text(line + line.replace("press_", "\\u0070ress_"), "utf-8")
    assert met(place).sightings == 3


def test_the_list_is_recurring_new_then_settled(place: Place) -> None:
    clock = FixedClock()
    for text in ("gearbox coughs", "ink boils", "lamp dark", "gearbox coughs", "belt slips", "belt slips"):
        store.observe(place, text, "press", None, clock)
        clock.step(60)
    store.alias(place, rules.mint("ink boils", "press"), "press_jam", "ada", clock)
    store.promote(place, COUGH, WISH, "ada", clock)
    listed = view.listing(place).codes
    assert [(seen.signal, seen.status, seen.sightings, seen.target) for seen in listed] == [
        ("belt slips", "recurring", 2, None),
        ("lamp dark", "new", 1, None),
        ("gearbox coughs", "promoted", 2, "press_gearbox"),
        ("ink boils", "aliased", 1, "press_jam"),
    ]
    assert [seen.signal for seen in view.waiting(place.root)] == ["belt slips"]
    assert (listed[0].first_seen, listed[0].last_seen) == ("2026-03-01T09:04:00Z", "2026-03-01T09:05:00Z")


def test_the_inbox_asks_from_the_second_sighting_until_it_is_settled(place: Place) -> None:
    met(place)
    assert view.inbox_items(place.root) == []
    met(place)
    (item,) = view.inbox_items(place.root)
    assert (item.kind, item.lane, item.title, item.who) == ("triage", "decide", COUGH, "ada")
    parser().parse_args(shlex.split(item.command)[1:])
    met(place)
    assert [one.id for one in view.inbox_items(place.root)] == [item.id]
    store.alias(place, COUGH, "press_jam", "ada")
    assert view.inbox_items(place.root) == []
    assert view.inbox_items(place.root / "none") == []


def test_a_token_that_cannot_match_is_told_when_it_is_promoted(place: Place) -> None:
    met(place)
    wish = Wish("press_gearbox", "press", ("gearbox", "two  spaces"), "c", None)
    made = store.promote(place, COUGH, wish, "ada")
    assert [(item.code, item.where) for item in made.warnings] == [("catalog_token_unreachable", "--match")]


def test_promotion_writes_catalogue_and_resolution(place: Place, load: Read) -> None:
    met(place)
    met(place, "Gearbox Coughs loudly")
    made = store.promote(place, COUGH, WISH, "ada", FixedClock())
    assert (made.target, made.catalog) == ("press_gearbox", str(place.root / store.CODES))
    assert load("triage/failure_codes.json") == {**SHOP, "codes": [*SHOP["codes"], WISH.as_json()]}
    assert load(f"triage/{COUGH}/resolution.json") == {
        "schema": "collab.triage_resolution.v1",
        "code": COUGH,
        "action": "promoted",
        "target": "press_gearbox",
        "by": "ada",
        "at": "2026-03-01T09:00:00Z",
    }
    assert met(place).report.code == "press_gearbox"
    assert not (place.root / store.PENDING).exists()


def test_a_promotion_that_would_miss_a_sighting_writes_nothing(place: Place) -> None:
    met(place)
    before = (place.root / store.CODES).read_bytes()
    for wish in (
        Wish("press_gearbox", "lint", ("gearbox",), "c", None),
        Wish("press_gearbox", "press", ("bearing",), "c", None),
        Wish("press_gearbox", "press", (), "c", None),
    ):
        assert refused(store.promote, place, COUGH, wish, "ada") == ["promotion_not_effective"]
    assert (place.root / store.CODES).read_bytes() == before
    assert not (place.root / "triage" / COUGH / "resolution.json").exists()


def test_promotion_refuses_with_every_reason(place: Place) -> None:
    met(place)
    wish = Wish("press_jam", " ", ("ok", " "), "", " ")
    assert refused(store.promote, place, rules.mint("never", "press"), wish, "ada") == [
        "minted_code_unobserved",
        *["field_blank"] * 3,
        "catalog_code_duplicate",
        "catalog_token_empty",
    ]
    assert refused(store.promote, place, "press_jam", WISH, "ada") == ["minted_code_malformed"]


def test_what_is_settled_stays_settled(place: Place) -> None:
    met(place)
    store.promote(place, COUGH, WISH, "ada")
    other = Wish("press_other", "press", ("gearbox",), "c", None)
    assert refused(store.promote, place, COUGH, other, "ada") == ["minted_code_resolved"]
    assert refused(store.alias, place, COUGH, "press_jam", "ada") == ["minted_code_resolved"]
    assert refused(store.alias, place, COUGH, "press_gearbox", "ada") == ["minted_code_resolved"]


def test_an_alias_again_changes_nothing(place: Place, load: Read) -> None:
    met(place)
    assert store.alias(place, COUGH, "courier_gone", "ada").changed
    before = (place.root / store.CODES).read_bytes()
    assert not store.alias(place, COUGH, "courier_gone", "bob").changed
    assert (place.root / store.CODES).read_bytes() == before
    assert refused(store.alias, place, COUGH, "press_jam", "ada") == ["minted_code_resolved"]
    assert refused(store.promote, place, COUGH, WISH, "ada") == ["minted_code_resolved"]
    made = met(place)
    assert (made.report.code, made.report.minted, made.recurrence, made.created) == ("courier_gone", COUGH, False, ())
    assert load("triage/observations.jsonl")[1]["minted"] == COUGH
    assert made.sightings == 2


def test_an_alias_needs_a_target_that_is_one(place: Place) -> None:
    assert refused(store.alias, place, COUGH, "nope", "ada") == ["catalog_alias_target_unknown"]
    assert refused(store.alias, place, COUGH, "Pass", "ada") == ["catalog_alias_target_forbidden"]
    assert refused(store.alias, place, "press_jam", "press_jam", "ada") == ["minted_code_malformed"]


def test_a_named_catalogue_is_the_one_that_is_rewritten(place: Place, tmp_path: Path) -> None:
    named = tmp_path / "mine.json"
    named.write_text(json.dumps(document(entry())), "utf-8")
    mine = Place(place.root, str(named))
    met(mine)
    assert store.promote(mine, COUGH, WISH, "ada").catalog == str(named)
    assert len(json.loads(named.read_text("utf-8"))["codes"]) == 2
    assert (place.root / store.CODES).read_text("utf-8") == json.dumps(SHOP)
    assert [item.name for item in tmp_path.iterdir() if item.name != "mine.json"] == []


def test_a_catalogue_from_standard_input_cannot_be_rewritten(place: Place) -> None:
    piped = Place(place.root, "-", json.dumps(SHOP).encode())
    met(piped)
    assert refused(store.promote, piped, COUGH, WISH, "ada") == ["usage_wrong"]


def test_the_shipped_catalogue_is_copied_into_the_workspace(quick_path: Path, load: Read) -> None:
    fresh = Place(quick_path)
    met(fresh)
    assert store.alias(fresh, COUGH, "disk_full", "ada").changed
    made = load("triage/failure_codes.json")
    assert [item["code"] for item in made["codes"]] == [item.code for item in store.shipped().entries]
    assert made["aliases"] == {COUGH: "disk_full"}


class Killed(BaseException):
    """The process ends here."""


def steps(place: Place, act: Any, fault: Any) -> int:
    """How many operations an act passes through the seam."""
    count = 0

    def hook(operation: str, name: str) -> None:
        nonlocal count
        count += 1

    fault(hook)
    act(place)
    fault(None)
    return count


@pytest.mark.parametrize("death", [Killed("now"), OSError(28, "No space left on device")])
@pytest.mark.parametrize("verb", ["promote", "alias"])
def test_interrupted_at_any_point_it_is_done_or_it_never_happened(
    verb: str, death: BaseException, tmp_path: Path, quick_path: Path, fault: Any
) -> None:
    def act(place: Place) -> None:
        if verb == "promote":
            store.promote(place, COUGH, WISH, "ada")
        else:
            store.alias(place, COUGH, "press_jam", "ada")

    def fresh(name: str) -> Place:
        root = quick_path / name
        (root / "triage").mkdir(parents=True)
        (root / store.CODES).write_text(json.dumps(SHOP), "utf-8")
        met(Place(root))
        return Place(root)

    total = steps(fresh("count"), act, fault)
    assert total > 8
    for number in range(total):
        place, seen = fresh(str(number)), 0

        def hook(operation: str, name: str, number: int = number) -> None:
            nonlocal seen
            seen += 1
            if seen > number:
                raise death

        fault(hook)
        with pytest.raises((Killed, Refused)):
            act(place)
        fault(None)
        # The next writer settles what was left.
        met(place, "another signal")
        written = json.loads((place.root / store.CODES).read_text("utf-8")) != SHOP
        settled = (place.root / "triage" / COUGH / "resolution.json").exists()
        assert written == settled
        assert not (place.root / store.PENDING).exists()
        assert not list((place.root / store.SCRATCH).iterdir())
        assert met(place).recurrence is not settled
        if not settled:
            act(place)


def test_an_observation_that_cannot_be_written_is_refused(place: Place, fault: Any) -> None:
    met(place)

    def hook(operation: str, name: str) -> None:
        if operation == "write" and name == store.OBSERVATIONS:
            raise OSError(28, "No space left on device")

    fault(hook)
    assert refused(met, place) == ["disk_full"]
    fault(None)
    assert met(place).sightings == 2


def test_a_receipt_that_cannot_be_written_is_a_warning(place: Place) -> None:
    (place.root / "receipts").write_text("in the way", "utf-8")
    made = met(place)
    assert [(item.code, item.severity) for item in made.warnings] == [("not_a_folder", "warning")]
    assert made.sightings == 1


def test_an_observation_without_an_end_costs_no_more_than_its_length(place: Place) -> None:
    met(place)
    log = place.root / store.OBSERVATIONS
    good = log.read_bytes()
    log.write_bytes(good + b"x" * (5 * LINE_CAP) + b"\n" + good)
    with Root(place.root) as root:
        assert max(len(chunk) for chunk in store._chunks(root)) < 3 * LINE_CAP
    assert [line.observation is None for line in store.lines(place.root)] == [False, True, False]
