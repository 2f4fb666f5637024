"""`collab ledger` and `collab addons`: flags, texts, documents and exit codes (docs/specs/delegation.md §4–§8)."""

from __future__ import annotations

import io
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from core.delegation import canon
from tests.conftest import console_script, gone
from tests.unit.core.delegation.builders import DIGEST, Bench, draft
from tui.cli import main, parser

Said = tuple[int, str, str]
WHOLE = parser()


@pytest.fixture
def bench(quick_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench(quick_path)
    for name, value in made.environ.items():
        monkeypatch.setenv(name, value)
    return made


@pytest.fixture
def say(bench: Bench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Said]:
    """`say(verb, …)`: run `collab ledger --plan PLAN verb …` here."""

    def run(*argv: str, head: tuple[str, ...] | None = None) -> Said:
        monkeypatch.setattr(sys, "stdin", io.StringIO(""))
        capsys.readouterr()
        words = [*(("ledger", "--plan", str(bench.plan)) if head is None else head), *argv]
        status = main(words)
        captured = capsys.readouterr()
        assert "unexpected" not in captured.err
        for line in captured.err.splitlines():
            if line.startswith("  next: ") and "--help" not in line:
                WHOLE.parse_args(shlex.split(line.removeprefix("  next: "))[1:])
        return status, captured.out, captured.err

    return run


PAYLOAD = json.dumps({"transport": "headless", "via": "agentkit", "prompt_digest": DIGEST, "delegation_id": "d1"})


def test_a_plan_from_beginning_to_end(bench: Bench, say: Callable[..., Said]) -> None:
    path = bench.root / "draft.json"
    path.write_text(json.dumps(draft()))
    identity = canon.contract_id(draft())[:12]
    assert say("materialize", "--contract", str(path)) == (
        0,
        f"OK: materialized PLAN_unit_sample contract {identity}\n",
        "",
    )
    assert say("start", "--task", "T-mark") == (0, "OK: task_start T-mark at seq 2\n", "")
    status, out, err = say("delegate", "launch", "--task", "T-mark", "--json", PAYLOAD)
    assert (status, out, err) == (
        0,
        "OK: delegation d1 launched at seq 3 (asserted until a gate observes it)\n",
        "",
    )
    status, out, err = say("complete", "--task", "T-mark")
    assert (status, out) == (4, "")
    assert err.startswith("REFUSED: T-mark: delegations are still open: d1")
    assert (
        say("delegate", "collect", "--task", "T-mark", "--json", '{"delegation_id":"d1","state":"completed"}')[0] == 0
    )
    assert say("gate", "--task", "T-mark", "--criterion", "AC-one", "--json", '["false"]')[:2] == (
        1,
        "RAN: exit 1, seq 6, log gates/T-mark/006-false.log\n",
    )
    assert say("gate", "--task", "T-mark", "--criterion", "AC-one", "--json", '"true"')[0] == 0
    assert say("gate", "--task", "T-mark", "--criterion", "AC-one", "--json", '"true"') == (0, "REUSED: exit 0\n", "")
    assert say("complete", "--task", "T-mark") == (0, "OK: T-mark criteria satisfied: AC-one\n", "")
    assert say("verify") == (0, "OK: the plan's record is valid\n", "")
    status, out, _ = say("inspect")
    assert out.splitlines()[0] == f"plan PLAN_unit_sample contract {identity} (7 events)"
    assert out.splitlines()[1:4] == ["   1 approval", "   2 task_start T-mark", "   3 delegation T-mark"]
    status, out, _ = say("roll")
    assert out.startswith("OK: journal archived to ")
    assert say("roll")[0] == 1


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("frobnicate",),
        ("start",),
        ("start", "--task", ""),
        ("start", "--task", "T-mark", "--surplus"),
        ("gate", "--task", "T-mark"),
        ("gate", "--task", "T-mark", "--criterion", "AC-one", "--json", "{}"),
        ("gate", "--task", "T-mark", "--criterion", "AC-one", "--json", '"true"', "--timeout", "soon"),
        ("complete",),
        ("signoff", "--authority", "Ada"),
        ("append", "--type", "observation"),
        ("append", "--json", "{}"),
        ("append", "--type", "", "--json", "{}"),
        ("materialize",),
        ("delegate",),
        ("delegate", "poke", "--task", "T-mark"),
        ("delegate", "launch", "--json", "{}"),
        ("delegate", "collect"),
        ("inspect", "--until", "x"),
        ("inspect", "--until", "-1"),
        ("inspect", "--at", "noon"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_wrong_usage(bench: Bench, say: Callable[..., Said], argv: tuple[str, ...], as_json: bool) -> None:
    bench.begin()
    before = bench.journal.read_bytes()
    status, out, err = say(*argv, *(("-o", "json") if as_json else ()))
    assert status == 2
    if as_json:
        document = json.loads(out)
        assert (document["ok"], document["exit"], document["events"]) == (False, 2, [])
        assert document["finding"]["code"] == "usage_wrong"
        assert err == ""
    else:
        assert out == ""
        assert err.startswith("ERROR: ")
    assert bench.journal.read_bytes() == before


def test_where_the_plan_is(bench: Bench, say: Callable[..., Said], monkeypatch: pytest.MonkeyPatch) -> None:
    bench.begin()
    assert say("verify", head=("ledger",))[0] == 2
    assert say("verify", head=("ledger", "--plan", str(bench.root / "none")))[0] == 1
    assert say("verify", head=("ledger", "--plan", str(bench.repo / "src" / "a")))[0] == 1
    assert say("verify", head=("ledger", "--plan", str(bench.plan / "README.md")))[0] == 0
    assert say("--plan", str(bench.plan), head=("ledger", "verify"))[0] == 0
    monkeypatch.chdir(bench.plan)
    assert say("verify", head=("ledger", "--plan", "."))[0] == 0
    monkeypatch.chdir(bench.plan.parent)
    assert say("start", "--task", "T-plain", head=("ledger", "--plan", "PLAN_unit_sample/"))[0] == 0
    assert bench.events()[-1]["type"] == "task_start"


@pytest.mark.parametrize("place", ["before", "after"])
def test_the_output_flag_anywhere(bench: Bench, say: Callable[..., Said], place: str) -> None:
    bench.begin()
    plan = ("--plan", str(bench.plan))
    words = ("ledger", "-o", "json", *plan) if place == "before" else ("ledger", *plan)
    status, out, _ = say("verify", *(() if place == "before" else ("--output=json",)), head=words)
    assert (status, json.loads(out)["rules"]) == (0, {})


def test_documents_of_writing_verbs(bench: Bench, say: Callable[..., Said]) -> None:
    bench.begin()
    status, out, err = say("delegate", "launch", "--task", "T-mark", "--json", PAYLOAD, "-o", "json")
    document = json.loads(out)
    assert list(document) == ["ok", "exit", "events", "finding"]
    assert (document["ok"], document["events"][0]["seq"], document["finding"], err) == (True, 3, None, "")
    status, out, _ = say("delegate", "launch", "--task", "T-mark", "--json", PAYLOAD, "-o", "json")
    document = json.loads(out)
    assert (status, document["exit"], document["events"][0]["type"]) == (5, 5, "refusal")
    assert set(document["finding"]) == {"code", "severity", "cause", "next_command", "where"}
    status, out, _ = say("complete", "--task", "T-plain", "-o", "json")
    document = json.loads(out)
    assert (status, document["criteria"][0]["satisfied"]) == (4, False)
    status, out, _ = say("gate", "--task", "T-mark", "--criterion", "AC-one", "--json", '"false"', "-o", "json")
    document = json.loads(out)
    assert (status, document["ok"]) == (1, False)
    assert document["gate"] == {"reused": False, "exit_code": 1, "seq": 6, "log": "gates/T-mark/006-false.log"}
    assert document["finding"]["code"] == "gate_failed"
    status, out, _ = say("start", "--task", "T-nope", "-o", "json")
    assert (status, json.loads(out)["events"]) == (1, [])


def test_input_that_is_none(bench: Bench, say: Callable[..., Said]) -> None:
    bench.begin()
    before = bench.journal.read_bytes()
    launch = ("delegate", "launch", "--task", "T-mark")
    for argv in (
        (*launch, "--json", "{nope"),
        (*launch, "--json", "[]"),
        (*launch, "--json", "null"),
        (*launch, "--json", "5"),
        (*launch, "--json", PAYLOAD, "--caps", "5"),
        (*launch, "--json", PAYLOAD, "--caps", '{"fly": true}'),
        (*launch, "--json", PAYLOAD, "--caps", '{"subagents": 1}'),
        (*launch, "--json", PAYLOAD, "--caps", "{nope"),
        (*launch, "--json", PAYLOAD, "--prompt-file", str(bench.root / "none")),
        (*launch, "--json", PAYLOAD, "--prompt-file", str(bench.root)),
        ("append", "--type", "observation", "--json", "[1]"),
        ("append", "--type", "observation", "--json", "NaN"),
        ("append", "--type", "observation", "--json", "{}", "--actor-kind", "human"),
        ("append", "--type", "observation", "--json", "{}", "--actor-kind", "human", "--human-note", "none"),
        ("materialize", "--contract", str(bench.root / "none.json")),
        ("start", "--task", "T-plain", "--actor-kind", "helper"),
        ("start", "--task", "T-plain", "--actor-kind", "helper", "--actor-identity", "dwp-ledger/7.0"),
    ):
        status, out, err = say(*argv)
        assert (status, out) == (1, ""), argv
        assert err.startswith("ERROR: "), argv
    assert bench.journal.read_bytes() == before


def test_null_capabilities_and_an_empty_payload(bench: Bench, say: Callable[..., Said]) -> None:
    bench.begin()
    assert say("delegate", "launch", "--task", "T-mark", "--json", PAYLOAD, "--caps", "null")[0] == 0
    status, out, err = say("delegate", "launch", "--task", "T-mark", "--json", "")
    assert status == 5
    assert out.startswith("REFUSED: delegation refused: via is no addon key")
    assert err.startswith("  next: collab ledger --plan ")
    assert "--dry-run" in err


SEEN = '{"statement": "s", "trust": "asserted"}'
HUMAN = ("append", "--type", "observation", "--json", SEEN, "--actor-kind", "human")


def test_a_person_appends_with_a_note(bench: Bench, say: Callable[..., Said]) -> None:
    bench.begin()
    note = bench.root / "note.txt"
    note.write_text("I agree.")
    given = (
        "append",
        "--type",
        "observation",
        "--json",
        '{"statement":"s","trust":"asserted"}',
        "--actor-kind",
        "human",
    )
    assert say(*given, "--actor-identity", "Ada", "--human-note", str(note), "--note", "mine")[0] == 0
    event = bench.events()[-1]
    assert event["actor"] == {"kind": "human", "identity": "Ada"}
    assert event["note"] == f"mine | human note note.txt sha256:{canon.sha256(b'I agree.')[:16]}"


@pytest.mark.parametrize(("answer", "code"), [("yes, I authorize this\n", 0), ("yes\n", 1), ("", 1)])
def test_a_person_confirms_on_a_terminal(
    bench: Bench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, answer: str, code: int
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    bench.begin()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    argv = [
        "append",
        "--type",
        "observation",
        "--json",
        '{"statement":"s","trust":"asserted"}',
        "--actor-kind",
        "human",
    ]
    assert main(["ledger", "--plan", str(bench.plan), *argv]) == code
    assert "authorize" in capsys.readouterr().err
    assert (len(bench.events()) == 3) == (code == 0)


def test_a_dry_run_in_words(bench: Bench, say: Callable[..., Said]) -> None:
    bench.begin()
    before = bench.journal.read_bytes()
    status, out, _ = say("delegate", "launch", "--task", "T-plain", "--json", PAYLOAD, "--dry-run")
    assert status == 5
    assert "met     v7\n" in out
    assert "NOT MET started: T-plain has not started\n" in out
    assert "NOT MET marker: T-plain is not marked parallel_safe" in out
    assert bench.journal.read_bytes() == before


def test_the_prompt_file(bench: Bench, say: Callable[..., Said]) -> None:
    bench.begin()
    prompt = bench.root / "p.txt"
    prompt.write_bytes(b"prompt")
    payload = json.dumps({"transport": "headless", "via": "agentkit"})
    flags = ("--prompt-file", str(prompt))
    assert say("delegate", "launch", "--task", "T-mark", "--json", payload, *flags)[0] == 0
    assert bench.events()[-1]["prompt_digest"] == DIGEST
    assert say("delegate", "launch", "--task", "T-mark", "--json", json.dumps({"prompt_digest": "x"}), *flags)[0] == 1


def test_readers_name_what_they_cannot_read(bench: Bench, say: Callable[..., Said]) -> None:
    bench.begin()
    first, second = bench.journal.read_bytes().splitlines(keepends=True)
    bench.journal.write_bytes(first + b"garbage\n" + second + b"{torn")
    before = bench.journal.read_bytes()
    for argv in (("inspect",), ("inspect", "-o", "json"), ("delegate", "observe"), ("verify", "-o", "json")):
        _, _, err = say(*argv)
        assert "line 2" in err
        assert "line 4" in err
    status, out, _ = say("inspect")
    assert status == 0
    assert "(2 events; TORN TAIL)" in out
    status, out, _ = say("verify")
    assert status == 2
    assert "ERROR: journal-damaged: journal.ndjson, line 2" in out
    assert "WARNING: journal-torn: journal.ndjson, line 4" in out
    assert say("start", "--task", "T-plain")[0] == 1
    assert bench.journal.read_bytes() == before


def test_what_was_mended_is_in_the_document(bench: Bench, say: Callable[..., Said]) -> None:
    bench.begin()
    with bench.journal.open("ab") as log:
        log.write(b"{torn")
    status, out, _ = say("start", "--task", "T-nope", "-o", "json")
    assert (status, [event["type"] for event in json.loads(out)["events"]]) == (1, ["journal_repair"])


def test_hostile_text_is_made_inert(bench: Bench, say: Callable[..., Said]) -> None:
    bench.begin()
    evil = "T-\x1b]52;c;AAAA\x07\u202e\n"
    for argv in (
        ("start", "--task", evil),
        ("delegate", "launch", "--task", evil, "--json", PAYLOAD),
        ("delegate", "launch", "--task", "T-mark", "--json", json.dumps({"via": evil})),
        ("delegate", "collect", "--task", "T-mark", "--json", json.dumps({"delegation_id": evil})),
        ("inspect",),
        ("verify",),
    ):
        status, out, err = say(*argv)
        assert status in (0, 1, 5)
        assert "\x1b" not in out + err
        assert "\u202e" not in out + err
    reasons = [event["reason"] for event in bench.events() if event["type"] == "refusal"]
    assert len(reasons) == 3
    assert all(reason.isprintable() for reason in reasons)


def test_bytes_that_are_no_text(bench: Bench, say: Callable[..., Said]) -> None:
    bench.begin()
    status, _, _ = say("delegate", "launch", "--task", "T-\udcff", "--json", PAYLOAD)
    assert status == 5
    assert bench.events()[-1]["subject"] == "delegate T-\ufffd"
    assert say("delegate", "launch", "--task", "T-mark", "--json", '{"via":"\udcff"}')[0] == 1


def test_inspect_at_a_time_and_after_an_event(bench: Bench, say: Callable[..., Said]) -> None:
    bench.begin()
    bench.launch()
    document = json.loads(say("inspect", "-o", "json", "--at", "2026-03-01T10:00:00+01:00", "--until", "2")[1])
    assert (document["as_of"], document["until"], document["delegations"]) == ("2026-03-01T09:00:00Z", 2, [])
    document = json.loads(say("inspect", "-o", "json", "--at", "2026-03-01T10:00:00Z")[1])
    assert document["delegations"][0]["age_s"] == 3600
    _, out, _ = say("inspect", "--until", "1")
    assert len(out.splitlines()) == 2


def test_an_invalid_contract_in_a_document(bench: Bench, say: Callable[..., Said]) -> None:
    bench.begin()
    (bench.plan / "contract.json").write_text("{}")
    for argv in (("inspect",), ("delegate", "observe"), ("complete", "--task", "T-mark")):
        assert say(*argv)[0] == 1
        status, out, _ = say(*argv, "-o", "json")
        assert (status, json.loads(out)["finding"]["code"]) == (1, "contract_invalid")


# ---------------------------------------------------------------- addons


def test_addons(bench: Bench, say: Callable[..., Said]) -> None:
    def addons(*argv: str) -> Said:
        return say(*argv, "--repo", str(bench.repo), head=("addons",))

    assert addons("enable", "herdr", "--version", "v0.1.0") == (
        0,
        'OK: addons.herdr = {"enabled": true, "version": "v0.1.0"}\n',
        "",
    )
    document = json.loads(addons("list", "-o", "json")[1])
    assert set(document) == {"addons", "warnings", "findings"}
    assert [item["key"] for item in document["addons"]] == ["agentkit", "herdr"]
    assert document["addons"][1] == {
        "key": "herdr",
        "enabled": True,
        "source": "repository",
        "version": "v0.1.0",
        "note": None,
        "from": "shipped",
        "valid": True,
        "transport": "interactive",
        "provides_abilities": ["subagents", "cancel_children"],
    }
    assert not bench.ran("ak")
    document = json.loads(addons("list", "--detect", "-o", "json")[1])
    assert (document["addons"][0]["detected"], document["addons"][0]["interface"]) == (True, 1)
    assert document["addons"][0]["compatible"] is True
    assert addons("disable", "herdr")[1] == 'OK: addons.herdr = {"enabled": false}\n'
    status, out, _ = addons("list")
    assert "agentkit  enabled  by the repository  headless" in out
    for argv in (("enable", "teleport"), ("enable", "herdr", "--version", "1"), ("poke",), ()):
        assert addons(*argv)[0] == 2
    bench.registry("{nope")
    status, out, err = addons("list")
    assert status == 0
    assert "WARNING" in err.upper()
    assert len(json.loads(addons("list", "-o", "json")[1])["warnings"]) == 1


# ---------------------------------------------------------------- processes


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_gate_that_is_told_to_end_leaves_nothing(bench: Bench, number: int) -> None:
    """Its command's whole process group is gone, its lock is free, nothing is recorded."""
    bench.begin()
    before = bench.journal.read_bytes()
    marker = bench.root / "pids"
    os.mkfifo(marker)
    script = f"sleep 60 & echo $$ $! > '{marker}'; sleep 60"
    # Whoever started the suite may ignore it (nohup does), and children inherit that.
    inherited = signal.signal(number, signal.SIG_DFL)
    child = subprocess.Popen(
        [
            console_script(),
            *("ledger", "--plan", str(bench.plan), "gate", "--task", "T-mark", "--criterion", "AC-one"),
            *("--json", json.dumps(["sh", "-c", script])),
        ],
        env={**os.environ, "COLLAB_STATE": str(bench.root / "state")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    signal.signal(number, inherited)
    pids = [int(word) for word in marker.read_text().split()]
    assert (bench.plan / ".ledger.lock").exists()
    child.send_signal(number)
    err = child.communicate(timeout=30)[1]
    assert child.returncode == 128 + number, err
    assert b"Traceback" not in err
    assert not bench.locked()
    assert bench.journal.read_bytes() == before
    for pid in pids:
        assert gone(pid), f"{pid} is still there"


def test_the_verbs_start_without_screens(bench: Bench) -> None:
    bench.begin()
    argv = ["ledger", "--plan", str(bench.plan), "complete", "--task", "T-mark"]
    program = f"import sys, tui.cli; tui.cli.main({argv!r}); print(); print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True)
    loaded = {name.split(".")[0] for name in done.stdout.splitlines()[-1].split()}
    assert loaded & {"textual", "rich", "watchfiles", "ruamel", "shtab"} == set()
