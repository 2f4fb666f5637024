"""The verbs of the workflow engine: flags, output, exit codes, and that real roots behave as simulate (§9)."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from core.workflow import simulate as simulation
from core.workflow.simulate import simulate
from tests.unit.core.workflow.stage import AGENTS, T0, Stepped, chain, lay, lines, spec
from tui.cli import main


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        made: dict[str, Any] = json.loads(self.out)
        return made

    @property
    def codes(self) -> list[str]:
        return [item["code"] for item in self.json["findings"]]


def run(*argv: str, stdin: str = "") -> Said:
    out, err = io.StringIO(), io.StringIO()
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(stdin.encode()), "utf-8")
    try:
        with redirect_stdout(out), redirect_stderr(err):
            code = main([*argv])
    finally:
        sys.stdin = before
    return Said(code, out.getvalue(), err.getvalue())


def ask(*argv: str, stdin: str = "") -> Said:
    return run(*argv, "-o", "json", stdin=stdin)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Stepped:
    made = Stepped()
    monkeypatch.setattr("tui.cli.workflow.SYSTEM", made)
    monkeypatch.setattr("tui.cli.escalation.SYSTEM", made)
    return made


@pytest.fixture
def root(quick_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Stepped) -> Path:
    made = lay(quick_path / "root", spec())
    monkeypatch.chdir(made)
    return made


Begin = Callable[..., str]


def begin(*flags: str) -> str:
    """A run in swarm mode that was ticked once; its id."""
    made = ask("workflow", "start", "w", "--mode", "swarm", "--grant", *flags)
    assert made.code == 0
    assert ask("workflow", "tick").code == 0
    run_id: str = made.json["run_id"]
    return run_id


def reply(run_id: str, index: int, result: Any, attempt: int = 1) -> None:
    packet = {
        "from": "porter",
        "signal": "RETURN",
        "in_reply_to": f"{run_id}/{index}/{attempt}",
        "payload": {"result": result},
    }
    assert ask("signal", "--json", json.dumps(packet)).json["status"] == "queued"
    assert ask("workflow", "tick").json["changed"] is True


def the_entry() -> str:
    made: str = ask("escalation", "list").json["escalations"][0]["id"]
    return made


@pytest.mark.parametrize(
    ("text", "code", "codes"),
    [
        (spec(), 0, []),
        (spec(more="colour: red"), 1, ["W_UNKNOWN_KEY"]),
        (spec(more="colour: red\nversion: 2"), 2, ["W_UNKNOWN_KEY", "E_VALUE"]),
        ("x: [", 2, ["E_YAML"]),
    ],
)
def test_check(tmp_path: Path, text: str, code: int, codes: list[str]) -> None:
    file = tmp_path / "w.yml"
    file.write_text(text)
    made = ask("workflow", "check", str(file))
    assert (made.code, made.codes) == (code, codes)
    assert made.json["valid"] is (code < 2)
    assert all({"line", "column", "workflow"} <= finding.keys() for finding in made.json["findings"])
    assert [item["item"] for item in made.json["items"]] == (["a", "b", "c"] if code < 2 else [])
    assert run("workflow", "check", "-", stdin=text).code == code


def test_check_compares_with_the_agents_beside_it(root: Path) -> None:
    assert run("workflow", "check", "workflows/w.yml").code == 0
    (root / "agents/porter.md").unlink()
    assert ask("workflow", "check", "workflows/w.yml").codes == ["W_AGENT_UNKNOWN"]
    assert ask("workflow", "check", "no.yml").codes == ["file_unreadable"]


def test_the_shipped_sample_checks_clean_and_plays_to_its_end() -> None:
    folder = files("collab_templates").joinpath("workflows")
    sample = str(folder.joinpath("deploy-batch.yml"))
    made = ask("workflow", "check", sample)
    assert (made.code, made.codes, len(made.json["items"])) == (0, [], 10)
    played = ask("workflow", "simulate", sample, "--script", str(folder.joinpath("scripts/deploy-batch.yml")))
    assert played.code == 0
    (record,) = played.json["runs"]
    assert (record["outcome"], record["total"], record["success_count"], record["retries"]) == ("success", 10, 10, 1)
    assert played.json["emitted"][-1]["payload"] == {"result": "10/10 instances deployed"}


SCRIPT: list[dict[str, Any]] = [
    {"at": 0, "start": {"mode": "swarm", "grant": True, "as": "ana"}},
    {"at": 1, "reply": {"index": 0, "result": "ok"}},
    {"at": 2, "reply": {"index": 1, "result": {"status": "fail", "cause": "no 5"}}},
    {"at": 3, "decide": {"escalation": 1, "option": "retry", "note": "again", "as": "bo", "key": "k"}},
    {"at": 4, "reply": {"index": 1, "signal": "BLOCKED_ON", "context": "no key"}},
    {"at": 5, "ack": {"escalation": 2, "as": "bo"}},
    {"at": 6, "reply": {"index": 1, "signal": "ESCALATE", "options": [{"id": "x", "args_schema": {"n": "integer"}}]}},
    {"at": 7, "decide": {"escalation": 3, "option": "x", "args": {"n": 1}, "as": "bo"}},
    {"at": 8, "reply": {"index": 1, "result": "partial"}},
    {"at": 9, "decide": {"escalation": 4, "defer": "2s", "as": "bo"}},
    {"at": 11, "tick": True},
    {"at": 13, "decide": {"escalation": 4, "respond": "more", "as": "bo"}},
    {"at": 14, "abort": {"as": "cy", "note": "enough"}},
    {"at": 15, "reply": {"index": 1, "result": "ok"}},
]


def test_real_verbs_write_what_simulate_writes(root: Path, clock: Stepped, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every verb of a scenario, played for real under a stepped clock: the same log, packets, notices, record."""
    logs: list[bytes] = []

    def kept(stage: Any, *args: Any) -> dict[str, Any]:
        logs.extend(file.read_bytes() for file in sorted(stage.path.glob("ambient/runs/*.jsonl")))
        return output(stage, *args)

    output = simulation._output
    monkeypatch.setattr(simulation, "_output", kept)
    played = simulate(spec(), "w.yml", json.dumps({"agents": AGENTS, "steps": SCRIPT})).output
    monkeypatch.setattr("core.workflow.signals_in.secrets", Dice())
    run_id, replies = "", 0
    for step, answer in zip(SCRIPT, played["answers"], strict=True):
        clock.moment = T0
        clock.step(step["at"])
        (do,) = (key for key in step if key != "at")
        value = step[do] if isinstance(step[do], dict) else {}
        who = ["--as", value.get("as", "operator")]
        entry = f"esc-20260401-{value.get('escalation', 0):04d}"
        if do == "start":
            made = ask("workflow", "start", "w", "--mode", "swarm", "--grant", *who)
            run_id = made.json["run_id"]
        elif do == "reply":
            replies += 1
            made = ask("signal", "--json", json.dumps(packet(root, value, replies)))
        elif do == "decide":
            flags = [value["option"]] if "option" in value else []
            for flag in ("defer", "respond", "note", "key"):
                flags += [f"--{flag}", value[flag]] if flag in value else []
            flags += ["--args", json.dumps(value["args"])] if "args" in value else []
            made = ask("escalation", "decide", entry, *flags, *who)
        elif do == "ack":
            made = ask("escalation", "ack", entry, *who)
        elif do == "abort":
            made = ask("workflow", "abort", run_id, "--note", value["note"], *who)
        else:
            made = Said(0, '{"status": "done"}', "")
        assert (made.code, made.json["status"]) == (0, answer["status"])
        assert ask("workflow", "tick").code == 0
    assert run_id == played["runs"][0]["run_id"]
    assert [(root / f"ambient/runs/{run_id}.jsonl").read_bytes()] == logs
    assert lines(root, "ambient/outbox.jsonl") == played["emitted"]
    assert lines(root, "ambient/notifications.jsonl") == played["notifications"]
    assert (root / f"ambient/runs/{run_id}.yml").read_text("utf-8") == played["records"][0]
    assert ask("workflow", "status", run_id).json["run"] == played["runs"][0]
    assert ask("escalation", "list", "--all").json["escalations"] == played["escalations"]


class Dice:
    """Throws what the simulation counts."""

    def __init__(self) -> None:
        self.runs = self.tokens = 0

    def token_hex(self, size: int) -> str:
        self.runs += 1
        return f"{self.runs:0{size * 2}x}"

    def token_urlsafe(self, size: int) -> str:
        self.tokens += 1
        return f"tok-{self.tokens}"


def packet(root: Path, value: dict[str, Any], number: int) -> dict[str, Any]:
    sent = [item for item in lines(root, "ambient/outbox.jsonl") if item["signal"] == "SPAWN"]
    spawn = [item for item in sent if item["item_index"] == value["index"]][-1]
    payload = {key: value[key] for key in ("result", "context", "options") if key in value}
    made = {"id": f"sim-{number}", "from": "porter", "to": "ambient", "signal": value.get("signal", "RETURN")}
    return {**made, "in_reply_to": spawn["id"], "payload": payload}


def test_start_refuses_with_every_reason(root: Path) -> None:
    assert ask("workflow", "start", "ghost").codes == ["E_WORKFLOW_UNKNOWN"]
    (root / "agents/porter.md").write_text(
        "---\nbrain: {ipc: {receives_from: [human], zone_access: [], signals: [SPAWN]}}\n---\n"
    )
    made = ask("workflow", "start", "w")
    assert (made.code, made.codes) == (2, ["E_MATRIX_RECEIVES", "E_MATRIX_ZONE", "E_MATRIX_SIGNAL"])
    assert made.json["status"] == "refused"
    shown = ask("workflow", "status").json
    assert [item["codes"] for item in shown["refused_starts"]] == [["E_WORKFLOW_UNKNOWN"], made.codes]
    assert shown["runs"] == []
    assert "refused start of w" in run("workflow", "status").out


def test_a_chain_that_is_not_ready_and_a_run_that_is_open(root: Path) -> None:
    (root / "workflows/w.yml").write_text(chain("type: porter"))
    assert ask("workflow", "start", "w", "--mode", "swarm").codes == ["E_SWARM_NOT_READY"]
    assert ask("workflow", "start", "w").code == 0
    made = ask("workflow", "start", "w", "--root", str(root))
    assert made.codes == ["E_RUN_OPEN"]
    assert made.json["findings"][0]["next_command"].endswith(f"--root {root}")


def test_a_disabled_spec_is_shown_with_the_command_that_helps(root: Path) -> None:
    (root / "workflows/bad.yml").write_text("workflow: bad\n")
    run("workflow", "tick")
    assert ask("workflow", "status").json["disabled_specs"][0]["codes"] == ["E_GRAMMAR"]
    made = ask("workflow", "start", "bad")
    assert made.codes == ["E_SPEC_INVALID"]
    assert made.json["findings"][0]["next_command"] == "collab workflow check workflows/bad.yml"
    assert run("workflow", "check", "workflows/bad.yml").code == 2


def test_answers_by_verbs(root: Path, clock: Stepped) -> None:
    run_id = begin()
    reply(run_id, 0, "fail")
    entry = the_entry()
    shown = run("escalation", "show", entry)
    assert shown.code == 0
    assert f"collab escalation decide {entry} retry" in shown.out
    for flags, code in (
        (["nope"], "E_OPTION"),
        (["--accept"], "E_NO_RECOMMENDATION"),
        (["skip", "--args", "{"], "E_ARGS"),
        (["skip", "--args", '{"a": 1}'], "E_ARGS"),
        (["skip", "--as", "porter"], "E_DECIDER"),
        (["skip", "--token", "x"], "E_TOKEN"),
        ([], "usage_wrong"),
        (["skip", "--accept"], "usage_wrong"),
        (["--defer", "soon"], "usage_wrong"),
    ):
        made = ask("escalation", "decide", entry, *flags)
        assert (made.code, made.codes) == (2, [code])
    assert ask("escalation", "decide", entry, "--defer", "1h").json["status"] == "deferred"
    assert ask("escalation", "list").json["escalations"] == []
    assert len(ask("escalation", "list", "--all").json["escalations"]) == 1
    assert ask("escalation", "decide", entry, "skip", "--key", "k", "--as", "ana").json["status"] == "accepted"
    assert ask("escalation", "decide", entry, "skip", "--key", "k").json["replay"] is True
    made = ask("escalation", "decide", entry, "retry")
    assert (made.code, made.json["status"], made.json["winner"]["decided_by"]) == (2, "conflict", "ana")
    assert "answered by ana: skip" in run("escalation", "show", entry).out
    assert ask("escalation", "show", "esc-0").codes == ["E_ESCALATION_UNKNOWN"]
    assert ask("escalation", "ack", "esc-0").codes == ["E_ESCALATION_UNKNOWN"]


def test_who_decides_may_come_from_the_environment(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reply(begin(), 0, "fail")
    monkeypatch.setenv("COLLAB_AS", "eva")
    entry = the_entry()
    ask("escalation", "decide", entry, "skip")
    decided = ask("escalation", "show", entry).json["escalation"]["decision"]
    assert (decided["decided_by"], decided["channel"]) == ("eva", "cli")


def test_abort_by_verb(root: Path) -> None:
    run_id = begin()
    assert ask("workflow", "abort", "ghost").codes == ["E_RUN_UNKNOWN"]
    assert ask("workflow", "abort", run_id, "--as", "ana").json["status"] == "accepted"
    made = ask("workflow", "abort", run_id)
    assert (made.code, made.codes, made.json["winner"]["decided_by"]) == (2, ["E_GONE"], "ana")
    assert ask("workflow", "status", "ghost").codes == ["E_RUN_UNKNOWN"]
    assert run("workflow", "status", run_id).out.startswith(f"{run_id}: aborted")


def test_proposals_by_verbs(root: Path, clock: Stepped) -> None:
    (root / "workflows/w.yml").write_text(spec("[a]", more="reversible: true\nexternal_effect: false"))
    for _ in range(2):
        run_id = begin()
        reply(run_id, 0, {"status": "fail", "cause": "c"})
        ask("escalation", "decide", the_entry(), "skip")
        run("workflow", "tick")
    listed = ask("proposal", "list").json
    assert [item["state"] for item in listed["proposals"]] == ["open"]
    assert listed["counts"][0]["count"] == 2
    name = listed["proposals"][0]["id"]
    assert ask("proposal", "approve", name, "--option", "abort").codes == ["E_OPTION"]
    assert ask("proposal", "approve", "prop-0").codes == ["E_PROPOSAL_UNKNOWN"]
    approved = ask("proposal", "approve", name, "--as", "ana").json
    rule = approved["rule"]["id"]
    assert approved["rule"]["state"] == "active"
    assert ask("proposal", "reject", name).json["status"] == "conflict"
    reply(begin(), 0, {"status": "fail", "cause": "c"})
    assert "used 1 times" in run("proposal", "list").out
    assert ask("proposal", "reject", rule).json["rule"]["state"] == "revoked"
    assert ask("proposal", "reject", rule).code == 2


def test_signals_by_verb(root: Path) -> None:
    begin()
    packet = json.dumps({"id": "x", "from": "porter", "signal": "RETURN"})
    assert ask("signal", "--json", packet).json == {"status": "queued", "id": "x", "findings": []}
    assert ask("signal", "--json", "-", stdin=packet).json["status"] == "duplicate"
    for wrong in ("{", "[]", "{}", '{"from": "a", "signal": "FLY"}', '{"signal": "RETURN"}'):
        made = ask("signal", "--json", wrong)
        assert (made.code, made.codes) == (2, ["E_PACKET"])
    assert ask("signal").codes == ["usage_wrong"]


@pytest.mark.parametrize(
    "argv",
    [
        ["workflow", "start", "w"],
        ["workflow", "tick"],
        ["workflow", "abort", "r"],
        ["escalation", "decide", "e", "skip"],
        ["proposal", "approve", "p"],
        ["signal", "--json", '{"from": "a", "signal": "RETURN"}'],
    ],
)
def test_where_there_is_no_root_nothing_is_made(
    argv: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert ask(*argv).codes == ["E_ROOT"]
    assert list(tmp_path.iterdir()) == []


def test_simulate_says_what_happened(root: Path) -> None:
    (root / "script.yml").write_text(
        "- {at: 0, start: {mode: swarm, grant: true}}\n- {at: 1, reply: {item: a, result: fail}}\n"
    )
    made = run("workflow", "simulate", "workflows/w.yml", "--script", "script.yml")
    assert made.code == 0
    assert "08:00:01.000Z  reply: queued" in made.out
    assert "esc-20260401-0001 open: 'a' failed. What now?" in made.out
    assert ask("workflow", "simulate", "workflows/w.yml", "--script", "-", stdin="3").codes == ["E_SCRIPT"]


def test_the_workflow_verbs_load_no_screen(root: Path) -> None:
    import subprocess

    code = (
        "import sys; from tui.cli import main; main(['workflow', 'status']); main(['signal', '--json', '{}']);"
        "sys.exit(any(name.split('.')[0] in ('textual', 'rich') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=root, check=False).returncode == 0


def test_a_signal_loads_neither_the_engine_nor_its_types(root: Path) -> None:
    import subprocess

    code = (
        'import sys; from tui.cli import main; main([\'signal\', \'--json\', \'{"from": "a", "signal": "ERROR"}\']);'
        "sys.exit(any(name in sys.modules for name in ('pydantic', 'ruamel', 'core.workflow.rules')))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=root, check=False).returncode == 0
