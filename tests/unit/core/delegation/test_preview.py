"""A preview says what a verb will record, and records nothing (docs/specs/delegation.md §8, "Acting")."""

from __future__ import annotations

from typing import Any

import pytest

from core.delegation import preview, store
from core.delegation.store import CALLER, Delegating
from core.delegation.writer import Halt, Hold
from core.finding import Refused
from tests.unit.core.delegation.builders import DIGEST, Bench

ASKED = {"transport": "headless", "via": "agentkit", "prompt_digest": DIGEST, "delegation_id": "d1", "worktree": "../w"}


@pytest.fixture
def bench(bench: Bench) -> Bench:
    return bench.begin("T-mark")


def files(bench: Bench) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in bench.repo.rglob("*") if path.is_file()}


def written(bench: Bench, count: int) -> list[dict[str, Any]]:
    return bench.events()[-count:] if count else []


def test_a_launch(bench: Bench) -> None:
    asked = Delegating("T-mark", ASKED)
    before = files(bench)
    made = preview.launch(bench.place, bench.world, asked)
    assert files(bench) == before
    assert made.preview is not None
    assert all(check.met for check in made.checks)
    assert store.launch(bench.place, bench.world, asked, Hold(expect=made.preview.head)).ok
    assert written(bench, 1) == list(made.preview.events)
    assert bench.journal.read_text().splitlines()[-1:] == made.preview.lines
    again = preview.launch(bench.place, bench.world, asked)
    assert again.preview is None
    assert [check.check for check in again.checks if not check.met] == ["new-id"]


@pytest.mark.parametrize("operation", ["collect", "cancel"])
def test_an_end(bench: Bench, operation: str) -> None:
    bench.launch("d1", worktree="../w")
    (bench.plan / "r.md").write_text("x")
    payload = {"delegation_id": "d1", "note": "so it is"}
    payload |= {"state": "completed", "result_path": "r.md"} if operation == "collect" else {}
    asked = Delegating("T-mark", payload)
    before = files(bench)
    made = preview.end(bench.place, bench.world, operation, asked)
    assert files(bench) == before
    assert made.refusal is None
    store.end(bench.place, bench.world, operation, asked, Hold(expect=made.head))
    assert written(bench, 1) == list(made.events)


def test_an_end_that_will_be_refused(bench: Bench) -> None:
    made = preview.end(bench.place, bench.world, "cancel", Delegating("T-mark", {"delegation_id": "none"}))
    assert made.refusal is not None
    assert [event["type"] for event in made.events] == ["refusal"]
    asked = Delegating("T-mark", {"delegation_id": "none"})
    assert not store.end(bench.place, bench.world, "cancel", asked, Hold(expect=made.head)).ok
    assert written(bench, 1) == list(made.events)


def test_a_collect_without_a_state_is_an_error(bench: Bench) -> None:
    bench.launch("d1", worktree="../w")
    with pytest.raises(Refused) as caught:
        preview.end(bench.place, bench.world, "collect", Delegating("T-mark", {"delegation_id": "d1", "state": "x"}))
    assert caught.value.findings[0].code == "state_invalid"


def test_a_start(bench: Bench) -> None:
    made = preview.start(bench.place, bench.world, "T-plain", CALLER)
    store.start(bench.place, bench.world, "T-plain", CALLER, Hold(expect=made.head))
    assert written(bench, 1) == list(made.events)
    assert preview.start(bench.place, bench.world, "T-plain", CALLER).events == ()
    with pytest.raises(Refused) as caught:
        preview.start(bench.place, bench.world, "T-none", CALLER)
    assert caught.value.findings[0].code == "task_unknown"


def test_a_journal_that_is_mended_first(bench: Bench) -> None:
    with bench.journal.open("ab") as file:
        file.write(b'{"torn')
    asked = Delegating("T-mark", ASKED)
    made = preview.launch(bench.place, bench.world, asked)
    assert made.preview is not None
    assert made.preview.mends
    assert store.launch(bench.place, bench.world, asked, Hold(expect=made.preview.head)).ok
    assert bench.events()[-2]["type"] == "journal_repair"
    assert written(bench, 1) == list(made.preview.events)


def test_the_head_binds_it(bench: Bench) -> None:
    made = preview.launch(bench.place, bench.world, Delegating("T-mark", ASKED))
    assert made.preview is not None
    bench.launch("d2", worktree="../2")
    with pytest.raises(Halt) as caught:
        store.launch(bench.place, bench.world, Delegating("T-mark", ASKED), Hold(expect=made.preview.head))
    assert caught.value.finding.code == "head_moved"
    assert [event["delegation_id"] for event in preview.since(bench.place, made.preview.head)] == ["d2"]


def test_a_completion(bench: Bench) -> None:
    head, made = preview.complete(bench.place, "T-mark")
    assert head == 2
    assert made.reason is not None
    with pytest.raises(Refused):
        preview.complete(bench.place, "T-none")


def test_a_damaged_record_takes_nothing(bench: Bench) -> None:
    bench.journal.write_bytes(b"garbage\n" + bench.journal.read_bytes())
    for act in (
        lambda: preview.start(bench.place, bench.world, "T-mark", CALLER),
        lambda: preview.launch(bench.place, bench.world, Delegating("T-mark", ASKED)),
        lambda: preview.end(bench.place, bench.world, "cancel", Delegating("T-mark", {"delegation_id": "d1"})),
        lambda: preview.complete(bench.place, "T-mark"),
    ):
        with pytest.raises(Refused) as caught:
            act()
        assert caught.value.findings[0].code == "journal_damaged"
