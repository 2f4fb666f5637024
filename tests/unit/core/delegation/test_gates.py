"""Gates: what they refuse, what they record, when an earlier run answers, and what they never write."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from core.delegation import store
from core.delegation.gates import Gate, Gated, fingerprint, gate, parse_command
from core.delegation.process import Ran
from core.delegation.writer import Halt, Hold
from core.files import set_fault
from tests.unit.core.delegation.builders import HELPER, Bench, draft

TRUE = Gate("T-mark", "AC-one", ["true"])


def run(bench: Bench, asked: Gate = TRUE, **more: Any) -> Gated:
    return gate(bench.place, bench.world, asked, **more)


def with_command(command: Any, **changes: Any) -> Gate:
    return replace(TRUE, command=command, **changes)


def test_what_a_gate_records(bench: Bench) -> None:
    made = run(bench.begin(), with_command("echo hello; echo world >&2; true"))
    (event,) = made.events
    assert (made.exit, made.exit_code, made.reused, made.seq) == (0, 0, False, 3)
    assert event["actor"] == HELPER
    assert event["trust"] == "observed"
    assert event["command"] == "echo hello; echo world >&2; true"
    assert event["cwd"] == str(bench.repo)
    assert event["timeout_seconds"] == 600
    assert event["evidence_path"] == "gates/T-mark/003-echo-hello-echo-world-2-true.log"
    text = (bench.plan / event["evidence_path"]).read_text()
    assert "hello\nworld\n" in text
    assert text.endswith("--- exit 0 ---\n")
    (line,) = (bench.plan / "evidence.jsonl").read_text().splitlines()
    said = json.loads(line)
    assert said.keys() == {"fingerprint", "task", "criterion", "exit_code", "log", "seq", "ts"}
    assert not bench.locked()


def test_a_failing_gate_is_observed_too(bench: Bench) -> None:
    made = run(bench.begin(), with_command(["false"]))
    assert (made.exit, made.exit_code) == (1, 1)
    assert made.finding is not None
    assert made.finding.code == "gate_failed"
    assert made.events[0]["exit_code"] == 1
    made = run(bench, with_command(["sh", "-c", "exit 9"]))
    assert (made.exit, made.exit_code) == (1, 9)
    made = run(bench, with_command(["sh", "-c", "kill -9 $$"]))
    assert (made.exit, made.events[0]["exit_code"]) == (1, -9)


def test_an_array_needs_no_shell(bench: Bench) -> None:
    made = run(bench.begin(), with_command(["echo", "$HOME && true", "*"]))
    assert "$HOME && true *\n" in (bench.plan / made.log).read_text().splitlines(keepends=True)[1]
    assert made.events[0]["command"] == "echo $HOME && true *"


def test_time_is_up(bench: Bench) -> None:
    made = run(bench.begin(), with_command(["sleep", "60"], timeout=0.2))
    assert made.exit_code == 124
    assert made.events[0]["timeout_seconds"] == 0.2
    assert "time was up" in (bench.plan / made.log).read_text()


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (replace(TRUE, task="T-nope"), "task_unknown"),
        (replace(TRUE, task="T-plain", criterion="AC-two"), "task_not_started"),
        (replace(TRUE, criterion=""), "criterion_unknown"),
        (replace(TRUE, criterion="AC-two"), "criterion_unknown"),
        (replace(TRUE, criterion="AC-none"), "criterion_unknown"),
        (with_command("ls"), "command_not_allowed"),
        (with_command("X=1 true"), "command_not_allowed"),
        (with_command(["true\0"]), "command_not_allowed"),
        (with_command(["true", "a\0b"]), "text_has_nul"),
        (with_command(["/no/such/place/true"]), "command_missing"),
        (replace(TRUE, timeout=0), "event_invalid"),
        (replace(TRUE, timeout=float("nan")), "event_invalid"),
        (replace(TRUE, timeout=float("inf")), "event_invalid"),
    ],
)
def test_what_is_an_error_and_no_event(bench: Bench, asked: Gate, code: str) -> None:
    bench.begin()
    before = bench.journal.read_bytes()
    with pytest.raises(Halt) as caught:
        run(bench, asked)
    assert (caught.value.exit, caught.value.finding.code) == (1, code)
    assert bench.journal.read_bytes() == before
    assert not (bench.plan / "gates").exists()
    assert not bench.locked()


@pytest.mark.parametrize("text", ["", "true", "{}", '""', '"  "', "[]", '["true", ""]', '["true", 1]', "null", "5"])
def test_what_is_no_command(text: str) -> None:
    with pytest.raises(Halt) as caught:
        parse_command(text)
    assert caught.value.exit == 2


def test_what_is_a_command() -> None:
    assert parse_command('"true && x"') == "true && x"
    assert parse_command('["true", "x y"]') == ["true", "x y"]


# ---------------------------------------------------------------- reuse


def test_an_equal_run_of_the_window_answers(bench: Bench) -> None:
    bench.git()
    bench.begin()
    first = run(bench)
    again = run(bench)
    assert (again.reused, again.seq, again.log, again.events) == (True, first.seq, first.log, ())
    assert run(bench, replace(TRUE, reuse=False)).reused is False
    assert run(bench).seq == first.seq + 1


def test_what_makes_a_run_another_one(bench: Bench) -> None:
    bench.git()
    bench.begin()
    task = bench.record().chain.live.tasks["T-mark"]

    def mark(asked: Gate = TRUE, **environ: str) -> str:
        return fingerprint(bench.place, {**bench.environ, **environ}, task, asked)

    known = {mark()}
    assert mark() in known
    assert mark(PWD="/elsewhere", SHLVL="7", _="x") in known
    for made in (
        mark(with_command("true")),
        mark(with_command(["true", "x"])),
        mark(replace(TRUE, selection="fast")),
        mark(LANG="fr_FR.UTF-8"),
    ):
        assert made not in known
        known.add(made)
    assert mark(replace(TRUE, timeout=5, reuse=False)) in known
    for change in (
        lambda: (bench.repo / "src" / "a").write_text("a = 2\n"),
        lambda: (bench.repo / "src" / "new").write_text("n\n"),
        lambda: (bench.repo / "src" / "new").write_text("m\n"),
        (bench.repo / "src" / "b").unlink,
        lambda: (bench.repo / "src" / "link").symlink_to("a"),
        lambda: ((bench.repo / "src" / "link").unlink(), (bench.repo / "src" / "link").symlink_to("b")),
        bench.git,
    ):
        change()
        made = mark()
        assert made not in known
        known.add(made)


def test_the_ledgers_own_files_do_not_count(bench: Bench) -> None:
    (bench.repo / ".gitignore").write_text("")
    bench.git()
    bench.begin()
    assert run(bench).reused is False
    assert run(bench).reused is True
    store.append(bench.place, bench.world, store.Appending("observation", {"statement": "s", "trust": "asserted"}))
    assert run(bench).reused is True


@pytest.mark.parametrize("surface", ["src", "src/", "src/*", "src/**", "src/a", "."])
def test_the_touched_surface_counts_without_git_too(bench: Bench, surface: str) -> None:
    tasks = draft()["tasks"]
    tasks[0]["touched_surface"] = [surface]
    bench.begin(tasks=tasks)
    task = bench.record().chain.live.tasks["T-mark"]
    before = fingerprint(bench.place, bench.environ, task, TRUE)
    assert fingerprint(bench.place, bench.environ, task, TRUE) == before
    (bench.repo / "src" / "a").write_text("a = 2\n")
    assert fingerprint(bench.place, bench.environ, task, TRUE) != before


def test_a_surface_outside_the_repository_is_not_read(bench: Bench) -> None:
    outside = bench.root / "outside"
    outside.write_text("1")
    tasks = draft()["tasks"]
    tasks[0]["touched_surface"] = ["../outside", str(outside), "src/link"]
    bench.begin(tasks=tasks)
    (bench.repo / "src" / "link").symlink_to(outside)
    task = bench.record().chain.live.tasks["T-mark"]
    before = fingerprint(bench.place, bench.environ, task, TRUE)
    outside.write_text("2")
    assert fingerprint(bench.place, bench.environ, task, TRUE) == before


def test_a_new_window_needs_a_new_run(bench: Bench) -> None:
    bench.begin()
    first = run(bench)
    assert store.start(bench.place, bench.world, "T-mark", {"kind": "agent", "identity": "other"}).events
    again = run(bench)
    assert not again.reused
    assert again.seq > first.seq


def test_an_amendment_needs_a_new_run(bench: Bench) -> None:
    bench.begin()
    run(bench)
    body = {
        "original_criterion": "AC-one",
        "observed_finding": "f",
        "disposition": "d",
        "revised_criterion": "AC-one",
        "reason": "r",
        "authority": "a",
        "affected_tasks": [],
        "evidence_invalidated": ["AC-one"],
        "evidence_preserved": [],
    }
    store.append(bench.place, bench.world, store.Appending("amendment", body))
    assert not run(bench).reused


def test_a_forged_cache_answers_nothing(bench: Bench) -> None:
    """The cache is believed only as far as the journal bears it out."""
    bench.begin()
    made = run(bench, with_command(["false"]))
    path = bench.plan / "evidence.jsonl"
    said = json.loads(path.read_text())
    for forged in (
        {"exit_code": 0},
        {"seq": 99, "exit_code": 0},
        {"seq": 1, "exit_code": 0},
        {"seq": "3"},
        {"log": "x"},
    ):
        path.write_text(json.dumps({**said, **forged}) + "\nnot json\n[]\n")
        again = run(bench, with_command(["false"]))
        assert not again.reused
        assert again.exit_code == 1
    assert made.exit_code == 1


def test_a_run_that_cannot_be_remembered_has_happened(bench: Bench) -> None:
    bench.begin()
    (bench.plan / "evidence.jsonl").mkdir()
    assert run(bench).exit == 0
    assert store.complete(bench.place, bench.world, "T-mark").ok


# ---------------------------------------------------------------- interruptions


def test_live_output_and_cancelling(bench: Bench) -> None:
    bench.begin()
    before = bench.journal.read_bytes()
    cancel = threading.Event()
    heard = []

    def hear(piece: bytes) -> None:
        heard.append(piece)
        cancel.set()

    with pytest.raises(Halt) as caught:
        run(bench, with_command("echo live; sleep 60"), on_output=hear, cancel=cancel)
    assert caught.value.finding.code == "gate_cancelled"
    assert b"".join(heard) == b"live\n"
    assert bench.journal.read_bytes() == before
    assert not bench.locked()


def test_an_interruption_releases_the_lock(bench: Bench) -> None:
    bench.begin()

    def interrupt(_: bytes) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(bench, with_command("echo live; sleep 60"), on_output=interrupt)
    assert not bench.locked()


def test_somebody_wrote_while_the_gate_ran(bench: Bench) -> None:
    """A collision: what was observed is not written into a record that moved."""
    bench.begin()

    def write(_: bytes) -> None:
        with bench.journal.open("ab") as log:
            log.write(b"\n")

    with pytest.raises(Halt) as caught:
        run(bench, with_command("echo live; true"), on_output=write)
    assert (caught.value.exit, caught.value.finding.code) == (2, "journal_collision")
    assert len(bench.journal.read_bytes().split()) == 2
    assert not bench.locked()


def test_somebody_took_the_lock_while_the_gate_ran(bench: Bench) -> None:
    bench.begin()

    def take(_: bytes) -> None:
        assert store.append(
            bench.place,
            bench.world,
            store.Appending("observation", {"statement": "s", "trust": "asserted"}),
            Hold(force=True),
        ).ok

    with pytest.raises(Halt):
        run(bench, with_command("echo live; true"), on_output=take)
    assert [event["type"] for event in bench.events()] == ["approval", "task_start", "observation"]


def test_a_long_gate_keeps_its_lock_young(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    from core.delegation import gates

    bench.begin()
    owner = bench.plan / ".ledger.lock" / "owner.json"
    seen = []
    monkeypatch.setattr(gates, "_RENEW_SECONDS", 0.0)

    def turn(*_: Any, on_turn: Any, **__: Any) -> Ran:
        for _ in range(3):
            bench.clock.step(600)
            on_turn()
            seen.append(json.loads(owner.read_text())["epoch_ts"])
        return Ran(0, b"")

    monkeypatch.setattr(gates, "run", turn)
    assert run(bench).exit == 0
    assert [later - earlier for earlier, later in pairwise(seen)] == [600, 600]
    assert not bench.locked()


def test_no_value_of_the_environment_is_written(bench: Bench) -> None:
    secret = "s3cr3t-value-of-a-variable"
    bench.begin()
    world = store.World(bench.clock, {**bench.environ, "API_TOKEN": secret, "XYZZY": secret}, lambda: "000000")
    made = gate(bench.place, world, Gate("T-mark", "AC-one", "true # $API_TOKEN"))
    assert made.exit == 0
    with pytest.raises(Halt):
        gate(bench.place, world, Gate("T-mark", "AC-one", ["no-such-program"]))
    payload = {"transport": "headless", "via": "agentkit", "prompt_digest": "sha256:" + "0" * 64}
    assert store.launch(bench.place, world, store.Delegating("T-plain", payload)).exit == 5
    for path in bench.repo.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path


def test_a_full_disk_leaves_no_half_gate(bench: Bench) -> None:
    import errno

    bench.begin()
    before = bench.journal.read_bytes()

    def full(operation: str, name: str) -> None:
        if (operation, name) == ("write", "journal.ndjson"):
            raise OSError(errno.ENOSPC, "no space")

    set_fault(full)
    try:
        with pytest.raises(Halt) as caught:
            run(bench)
    finally:
        set_fault(None)
    assert caught.value.finding.code == "disk_full"
    assert bench.journal.read_bytes() == before
    assert not (bench.plan / "evidence.jsonl").exists()
    assert run(bench).exit == 0
