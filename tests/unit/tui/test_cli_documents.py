"""The verbs over documents as people use them: text, files, standard input, a terminal (docs/specs/governance.md)."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.governance_runner import Result, as_process, in_process
from tests.conftest import console_script
from tests.unit.core.governance.samples import GOAL, data, envelope, goal, status

PAYLOAD = json.dumps({"schema": "shop.parcel.v1", "weight": 3})


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*argv: str, stdin: str = "") -> Result:
    return in_process(list(argv), stdin)


def document(*argv: str, stdin: str = "") -> dict[str, Any]:
    made: dict[str, Any] = json.loads(run(*argv, "-o", "json", stdin=stdin).out)
    return made


def codes(*argv: str, stdin: str = "") -> list[tuple[str, str | None]]:
    return [(item["code"], item["where"]) for item in document(*argv, stdin=stdin)["findings"]]


def test_classify_for_people_and_as_a_bare_result() -> None:
    made = run("triage", "classify", "--text", "no space left on device")
    assert made.code == 0
    assert made.out.splitlines()[:3] == [
        "code: disk_full",
        "layer: files",
        "cause: No space is left on the disk; what was not acknowledged was taken back.",
    ]
    assert "findings" not in document("triage", "classify", "--text", "x")
    assert run("triage", "-o", "json", "classify", "--text", "x").out.startswith("{")
    assert run("triage", "classify", "-ojson", "--text", "x").out.startswith("{")


def test_a_hostile_signal_does_not_act_on_the_terminal() -> None:
    made = run("triage", "observe", "--text", "a\x1b]52;c;AAAA\x07\u202eb error\nsecond")
    assert "\x1b" not in made.out
    assert "\u202e" not in made.out
    assert "sightings: 1" in made.out
    assert "\x1b" not in run("triage", "list").out


def test_bytes_that_are_no_text_are_replaced() -> None:
    Path("r.txt").write_bytes(b"zz\xff")
    by_file = document("triage", "classify", "--receipt", "r.txt")["code"]
    by_flag = json.loads(as_process(["triage", "classify", "--text", "zz\udcff", "-o", "json"], "").out)["code"]
    assert by_file == by_flag


def test_what_is_said_about_files(here: Path) -> None:
    assert codes("triage", "classify", "--receipt", "none") == [("file_unreadable", "none")]
    assert codes("triage", "list", "--root", "none") == [("folder_missing", "--root")]
    assert codes("triage", "list", "--catalog", "none") == [("file_unreadable", "none")]
    assert codes("envelope", "validate") == [("usage_wrong", "FILE")]
    assert codes("envelope", "resolve", "x") == [("usage_wrong", "--receipts")]
    empty = '{"schema": "triage_error.catalog.v1", "codes": []}'
    assert codes("triage", "classify", "--receipt", "-", "--catalog", "-", stdin=empty) == [
        ("usage_wrong", "--receipt")
    ]
    assert codes("triage", "classify") == [("signal_empty", "--text")]
    assert codes("triage") == [("usage_wrong", None)]
    assert codes("members", "scan", "none") == [("folder_missing", "none")]


def test_refused_documents_still_say_what_they_must() -> None:
    assert document("envelope", "validate")["valid"] is False
    assert document("status", "render")["valid"] is False
    assert document("triage", "catalog", "--catalog", "none")["valid"] is False
    assert document("envelope", "resolve", "none")["trusted"] is False
    made = document("status", "compile", "none")
    assert (made["command"], made["reason"]) == (None, "unparseable_status_json")
    made = document("status", "check", "none")
    assert (made["decision"], made["reason_codes"]) == ("error", ["file_unreadable"])


def test_a_catalogue_by_standard_input() -> None:
    catalog = {
        "schema": "triage_error.catalog.v1",
        "codes": [
            {
                "code": "a_b",
                "layer": "l",
                "cause": "c",
                "match": ["zz"],
                "next_command": None,
                "recoverable": False,
                "not_this": ["x"],
            }
        ],
    }
    made = document("triage", "classify", "--text", "zz", "--catalog", "-", stdin=json.dumps(catalog))
    assert made["code"] == "a_b"
    shown = run("triage", "catalog", "--catalog", "-", stdin=json.dumps(catalog))
    assert (shown.code, shown.out.splitlines()[-1]) == (0, "1 codes in -")


def test_who_observed_comes_from_the_flag_else_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    run("triage", "observe", "--text", "one")
    monkeypatch.setenv("COLLAB_AS", "ada")
    run("triage", "observe", "--text", "two")
    run("triage", "observe", "--text", "three", "--as", "bob")
    lines = Path("triage/observations.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["by"] for line in lines] == [None, "ada", "bob"]


def test_promote_asks_headless_for_every_flag() -> None:
    run("triage", "observe", "--text", "gearbox coughs")
    minted = document("triage", "list")["codes"][0]["code"]
    assert codes("triage", "promote", minted) == [
        ("field_missing", flag) for flag in ("--code", "--layer", "--match", "--cause", "--next-command")
    ]
    assert codes("triage", "promote", "nope")[0] == ("minted_code_malformed", None)
    words = ["--code", "gearbox", "--layer", "press", "--match", "gearbox", "--cause", "c", "--no-next-command"]
    made = document("triage", "promote", minted, *words, "--not-recoverable", "--not-this", "a", "b")
    assert made["entry"] == {
        "code": "gearbox",
        "layer": "press",
        "cause": "c",
        "match": ["gearbox"],
        "next_command": None,
        "recoverable": False,
        "not_this": ["a", "b"],
    }
    assert document("triage", "classify", "--text", "a gearbox")["code"] == "gearbox"


def test_wrap_validates_and_never_overwrites(here: Path) -> None:
    Path("p.json").write_text(PAYLOAD)
    words = ["envelope", "wrap", "p.json", "--receipt-id", "rc-7", "--producer", "courier"]
    made = document(*words, "--at", "2026-09-01T13:00:00Z")
    assert made["path"] is None
    assert made["envelope"] == {
        "schema": "pi.receipt_envelope.v1",
        "receipt_id": "rc-7",
        "payload_schema": "shop.parcel.v1",
        "producer": "courier",
        "emitted_at": "2026-09-01T13:00:00Z",
        "payload": {"schema": "shop.parcel.v1", "weight": 3},
    }
    assert document(*words, "--out", "e.json")["path"] == "e.json"
    before = Path("e.json").read_bytes()
    assert codes(*words, "--out", "e.json") == [("file_exists", "--out")]
    assert Path("e.json").read_bytes() == before
    assert run("envelope", "validate", "e.json").code == 0
    assert sorted(os.listdir()) == ["e.json", "p.json"]


def test_wrap_with_parents_then_resolve() -> None:
    Path("receipts").mkdir()
    Path("receipts/a.json").write_bytes(data(envelope()))
    words = ["envelope", "wrap", "-", "--receipt-id", "rc-7", "--producer", "courier", "--parent", "receipts/a.json"]
    assert codes(*words, stdin=PAYLOAD) == [("parent_refs_require_goal_hash", "--goal-hash")]
    assert document(*words, "--goal-hash", GOAL, "--with-digest", "--out", "e.json", stdin=PAYLOAD)["path"] == "e.json"
    made = document("envelope", "resolve", "e.json", "--receipts", "receipts")
    assert made["trusted"] is True
    assert made["parents"][0]["checks"]["digest"] == "pass"
    Path("receipts/a.json").write_bytes(data(envelope()) + b"\n")
    again = run("envelope", "resolve", "e.json", "--receipts", "receipts")
    assert again.code == 2
    assert "rc-1: failed digest" in again.out


def test_wrap_names_the_flag_that_is_wrong() -> None:
    base = ["envelope", "wrap", "-", "--receipt-id", "r", "--producer", "p"]
    assert codes("envelope", "wrap", "-", stdin=PAYLOAD) == [
        ("field_missing", "--receipt-id"),
        ("field_missing", "--producer"),
    ]
    assert codes(*base, "--goal-hash", "x", "--at", "now", "--triage-code", "y", stdin=PAYLOAD) == [
        ("emitted_at_invalid", "--at"),
        ("hash_malformed", "--goal-hash"),
        ("ambiguous_failure_code", "--triage-code"),
    ]
    assert codes("envelope", "wrap", "-", "--receipt-id", "", "--producer", "", stdin=PAYLOAD) == [
        ("field_invalid", "--receipt-id"),
        ("field_invalid", "--producer"),
    ]
    assert codes(*base, stdin="{}") == [("payload_schema_missing", "-#/schema")]
    assert codes(*base, stdin='{"schema":7}') == [("field_invalid", "-#/schema")]
    Path("bad.json").write_text("{}")
    assert {code for code, _ in codes(*base, "--parent", "bad.json", stdin=PAYLOAD)} == {"field_missing"}


def test_only_one_of_many_writers_gets_the_file() -> None:
    words = [console_script(), "goal", "new", "--goal-id", "g", "--outcome", "o", "--proof-command", "c"]
    words += ["--proof-expected", "e", "--criterion", "c", "--scope", "s", "--drift", "d", "--retry-budget", "1"]
    words += ["--stop-condition", "s", "--out", "g.json"]
    writers = [subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(4)]
    assert sorted(writer.wait(timeout=60) for writer in writers) == [0, 2, 2, 2]
    assert os.listdir() == ["g.json"]


def test_a_goal_names_the_flag_that_is_wrong() -> None:
    words = ["goal", "new", "--goal-id", " ", "--outcome", "o", "--proof-command", "\t", "--proof-expected", "e"]
    words += ["--criterion", "c", "--criterion", " ", "--scope", "s", "--drift", "d", "--stop-condition", "s"]
    assert codes(*words, "--retry-budget", "3", "--must", "a=MUST", "--report-rule", " ") == [
        ("field_blank", "--goal-id"),
        ("field_blank", "--proof-command"),
        ("field_blank", "--criterion"),
        ("field_invalid", "--retry-budget"),
        ("field_blank", "--report-rule"),
    ]
    assert codes(*words, "--retry-budget", "two")[-1] == ("field_invalid", "--retry-budget")
    assert codes(*words, "--retry-budget", "1", "--must", "x") == [("field_invalid", "--must")]


def test_statuses_for_people() -> None:
    Path("s.json").write_bytes(data(status()))
    assert run("status", "render", "s.json").out.startswith("Status report\n- Goal: ship\n")
    assert run("status", "compile", "s.json").err == "terminal_or_human_state_needs_human\n"
    web = status("needs_agent", needs_agent={"handler": "h", "question": "one\ntwo"})
    Path("w.json").write_bytes(data(web))
    assert "tau-dag 'one\ntwo' --repo" in run("status", "compile", "w.json").out
    assert run("status", "check", stdin="prose").out == "pass: no_status_required_non_mutating_turn\n"
    assert run("status", "check", "--force", stdin="prose").code == 2


def test_a_pass_with_warnings_is_one() -> None:
    text = (
        "```json\n"
        + json.dumps(status("done", verified=[{"command": "a", "result": "b"}], proof=["https://x"]))
        + "\n```"
    )
    made = run("status", "check", "-o", "json", stdin=text)
    assert (made.code, json.loads(made.out)["decision"]) == (1, "pass")


def test_members_for_people() -> None:
    assert run("members", "validate").out == "a valid map of 16 members\n"
    assert run("members", "table").out.count("\n") == 18
    assert run("members", "graph", "--format", "mermaid").out.startswith("flowchart TB\n")
    Path("a").mkdir()
    Path("a/SKILL.md").write_text("## Ecosystem\nProduces: x\n")
    assert run("members", "scan", ".").out == "candidate  a  a/SKILL.md; its section lacks consumes, boundaries\n"


def test_goals_for_people() -> None:
    Path("g.json").write_bytes(data(goal()))
    assert run("goal", "validate", "g.json").out.startswith("a valid goal: spring-1, sha256:6fe1")
    Path("h.json").write_bytes(data(goal(goal_hash=GOAL)))
    made = run("goal", "hash", "h.json")
    assert (made.code, made.out.strip()) == (0, goal()["goal_hash"])
    assert made.err == f"the document declares {GOAL}\n"


def typed(words: Sequence[str], answers: Sequence[str]) -> tuple[int, str]:
    """Run a verb in a terminal of its own and answer what it asks; (exit code, everything that was shown)."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(console_script(), [console_script(), *words])
    shown, left, deadline = b"", list(answers), time.monotonic() + 60
    while time.monotonic() < deadline:
        if not select.select([fd], [], [], 0.2)[0]:
            continue
        try:
            piece = os.read(fd, 1 << 14)
        except OSError:
            break
        if not piece:
            break
        shown += piece
        if piece.rstrip(b" ").endswith(b":") and left:
            os.write(fd, left.pop(0).encode() + b"\n")
    _, ended = os.waitpid(pid, 0)
    os.close(fd)
    return os.waitstatus_to_exitcode(ended), shown.decode("utf-8", "replace")


def test_a_terminal_is_asked_for_what_is_missing() -> None:
    run("triage", "observe", "--text", "gearbox coughs", "--layer", "press")
    minted = document("triage", "list")["codes"][0]["code"]
    code, shown = typed(
        ["triage", "promote", minted, "--layer", "press"], ["gearbox", "gearbox coughs", "", "It is dry.", ""]
    )
    assert code == 0, shown
    entry = json.loads(Path("triage/failure_codes.json").read_text("utf-8"))["codes"][-1]
    assert (entry["code"], entry["match"], entry["cause"], entry["next_command"]) == (
        "gearbox",
        ["gearbox coughs"],
        "It is dry.",
        None,
    )


def test_a_terminal_is_asked_for_a_goal() -> None:
    words = [
        "goal",
        "new",
        "--goal-id",
        "g",
        "--outcome",
        "o",
        "--proof-command",
        "c",
        "--scope",
        "s",
        "--drift",
        "d",
        "--out",
        "g.json",
    ]
    code, shown = typed(words, ["e", "one", "two", "", "2", "stop"])
    assert code == 0, shown
    made = json.loads(Path("g.json").read_text("utf-8"))
    assert made["completion_criteria"] == ["one", "two"]
    assert made["retry_stop_rule"] == {"attempts_per_blocker": 2, "stop_condition": "stop"}
