"""Receipts and failure codes by the verbs of a plan; plans in `list` and `inbox` (docs/design.md §3, §4)."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from core.clock import SYSTEM, stamp
from tests.unit.core.delegation.builders import Bench
from tui.cli import main

Said = tuple[int, str, str]
RECEIPTS = "receipts"


@pytest.fixture
def bench(quick_path: Any, monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench(quick_path).begin("T-mark")
    for name, value in made.environ.items():
        monkeypatch.setenv(name, value)
    return made


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Said]:
    def run(*argv: str) -> Said:
        monkeypatch.setattr(sys, "stdin", io.StringIO(""))
        capsys.readouterr()
        status = main(argv)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture
def ledger(bench: Bench, say: Callable[..., Said]) -> Callable[..., Said]:
    return lambda *argv: say("ledger", "--plan", str(bench.plan), *argv)


def payload(name: str, **more: Any) -> str:
    known = {"transport": "headless", "via": "agentkit", "prompt_digest": f"sha256:{'0' * 64}", "worktree": "../w"}
    return json.dumps({**known, "delegation_id": name, **more})


def names(bench: Bench) -> list[str]:
    return sorted(path.name for path in (bench.repo / RECEIPTS).glob("*.json"))


def test_each_verb_leaves_what_it_must(bench: Bench, ledger: Callable[..., Said]) -> None:
    task = ("--task", "T-mark")
    assert ledger("start", "--task", "T-plain")[0] == 0
    assert names(bench) == []
    assert ledger("delegate", "launch", *task, "--json", payload("d1"))[0] == 0
    assert len(names(bench)) == 1
    assert ledger("delegate", "collect", *task, "--json", '{"delegation_id": "d1", "state": "completed"}')[0] == 0
    assert len(names(bench)) == 2
    assert ledger("gate", *task, "--criterion", "AC-one", "--json", '["true"]')[0] == 0
    assert len(names(bench)) == 3
    assert ledger("complete", *task)[0] == 0
    assert ledger("roll")[0] == 0
    assert len(names(bench)) == 3
    assert ledger("verify", "--receipts")[0] == 0


def test_what_failed_or_was_refused_says_its_code(bench: Bench, ledger: Callable[..., Said]) -> None:
    task = ("--task", "T-mark")
    ledger("delegate", "launch", *task, "--json", payload("d1"))
    status, out, err = ledger("delegate", "launch", *task, "--json", payload("d1"))
    assert (status, out) == (5, "REFUSED: delegation refused: delegation_id d1 is already recorded\n")
    assert err.endswith("  failure code: delegation_refused\n")
    status, _, err = ledger("complete", *task)
    assert status == 4
    assert err.endswith("  failure code: task_not_complete\n")
    failed = '{"delegation_id": "d1", "state": "failed", "note": "The lease ran out"}'
    status, out, err = ledger("delegate", "collect", *task, "--json", failed)
    assert (status, out.startswith("OK: ")) == (0, True)
    assert err.startswith("  failure code: delegation_unclassified_")
    assert ledger("verify", "--receipts")[0] == 0


def test_verify_and_repair(bench: Bench, say: Callable[..., Said], ledger: Callable[..., Said]) -> None:
    ledger("delegate", "launch", "--task", "T-mark", "--json", payload("d1"))
    (name,) = names(bench)
    data = (bench.repo / RECEIPTS / name).read_bytes()
    (bench.repo / RECEIPTS / name).unlink()
    assert ledger("verify")[0] == 0
    status, out, _ = ledger("verify", "--receipts", "-o", "json")
    made = json.loads(out)
    assert (status, made["ok"], list(made["rules"])) == (2, False, ["receipt-missing"])
    assert made["findings"][0]["next_command"] == f"collab repair --plan {bench.plan}"
    status, out, _ = say("repair", "--plan", str(bench.plan), "-o", "json")
    assert (status, [item["code"] for item in json.loads(out)["mended"]]) == (0, ["receipt_rebuilt"])
    assert (bench.repo / RECEIPTS / name).read_bytes() == data
    assert say("repair", "--plan", str(bench.plan))[1] == "nothing to mend\n"
    assert ledger("verify", "--receipts")[0] == 0


@pytest.mark.parametrize("argv", [(), ("--plan", "a", "--folder", "b")])
def test_repair_takes_a_plan_or_a_folder(say: Callable[..., Said], argv: tuple[str, ...]) -> None:
    assert say("repair", *argv)[0] == 2


def test_repair_of_no_plan(say: Callable[..., Said]) -> None:
    status, _, err = say("repair", "--plan", "/nowhere")
    assert (status, "there is no plan at /nowhere" in err) == (2, True)


def test_a_place_that_cannot_be_written_is_a_warning(bench: Bench, ledger: Callable[..., Said]) -> None:
    (bench.repo / RECEIPTS).write_text("a file")
    status, out, err = ledger("delegate", "launch", "--task", "T-mark", "--json", payload("d1"))
    assert (status, out.startswith("OK: ")) == (0, True)
    assert err.startswith("WARNING: the receipt was not written")


def test_plans_in_list_and_inbox(bench: Bench, say: Callable[..., Said], ledger: Callable[..., Said]) -> None:
    ledger("delegate", "launch", "--task", "T-mark", "--json", payload("d1"))
    (made,) = json.loads(say("list", str(bench.repo), "-o", "json")[1])["items"]
    assert (made["kind"], made["path"], made["phase"], made["health"]) == ("plan", str(bench.plan), "active", "ok")
    assert json.loads(say("inbox", str(bench.repo), "-o", "json")[1])["items"] == []
    # Launched under the clock of the process; the builder's events are of another year.
    bench.launch("d2", worktree="../w")
    items = json.loads(say("inbox", str(bench.repo), "-o", "json")[1])["items"]
    assert [(one["kind"], one["lane"]) for one in items] == [("delegation-open", "unblock")]
    assert say(*items[0]["command"].split()[1:2], "--help")[0] == 0


def test_the_age_is_a_setting(
    bench: Bench, say: Callable[..., Said], ledger: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger("delegate", "launch", "--task", "T-mark", "--json", payload("d1"))
    journal = bench.journal.read_text().splitlines(keepends=True)
    earlier = stamp(SYSTEM.now() - timedelta(minutes=20))
    bench.journal.write_text("".join([*journal[:-1], journal[-1].replace(json.loads(journal[-1])["ts"], earlier)]))
    assert json.loads(say("inbox", str(bench.repo), "-o", "json")[1])["items"] == []
    config = bench.root / "config.toml"
    config.write_text("delegation_minutes = 15\n")
    monkeypatch.setenv("COLLAB_CONFIG", str(config))
    assert len(json.loads(say("inbox", str(bench.repo), "-o", "json")[1])["items"]) == 1
