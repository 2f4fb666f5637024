"""One workspace with everything in it, made by the product, and examples laid out from it with some files spoiled.

A change of a file is bytes, or a word: `gone`, `folder`, `fifo`, `socket`, or `link:TARGET`.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from unittest.mock import patch

from core.files import sha256
from tests.conformance.acp_runner import folder_files
from tests.conformance.governance_runner import VECTORS as GOVERNANCE
from tests.console.workflow_root import sample as workflow_sample
from tests.unit.core.delegation.builders import Bench, draft
from tests.unit.core.governance.samples import GOAL
from tests.unit.core.workflow.stage import Stepped
from tui.cli import main

Change = bytes | str
PLAN = "ws/repo/.dwp/plans/PLAN_unit_sample"
SPECIAL = ("gone", "folder", "fifo", "socket", "link:../../outside/secret.txt", "link:../outside", "link:/dev/zero",
           "link:nowhere", "link:.", "link:/etc/passwd")  # fmt: skip
OUTSIDE = {"outside/secret.txt": b"secret\n", "outside/events.jsonl": b"", "secret.txt": b"secret\n"}


def memory() -> str | None:
    """Where files cost no disk."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@contextmanager
def place() -> Iterator[Path]:
    """An empty stage."""
    made = Path(tempfile.mkdtemp(dir=memory(), prefix="collab-fuzz-"))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def environment(stage: Path) -> Mapping[str, str]:
    """A person of this stage alone."""
    home = stage / "home"
    made = {"HOME": home, "COLLAB_STATE": home / "state", "COLLAB_CONFIG": home / "config.toml"}
    return {**{key: str(value) for key, value in made.items()}, "PATH": f"{stage / 'bin'}:/usr/local/bin:/usr/bin:/bin"}


def _done(*argv: str) -> None:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = main(argv)
    assert status == 0, f"{argv}: {said.getvalue()}"


@cache
def sample() -> Mapping[str, bytes]:
    """Every file of the stage, by its path in it."""
    with place() as stage, patch.dict(os.environ, environment(stage)):
        for make in (_collaborations, _triage, _governance, _plan, _workflows, _person):
            make(stage)
        found = {str(one.relative_to(stage)): one.read_bytes() for one in sorted(stage.rglob("*")) if one.is_file()}
    return {**found, **OUTSIDE}


def _collaborations(stage: Path) -> None:
    talk = stage / "ws" / "talk"
    (stage / "ws" / "receipts").mkdir(parents=True)
    people = ("--participant", "server", "--participant", "reader")
    _done("init", "--folder", str(talk), *people, "--objective", "Agree", "--completion", "Measured")
    (talk / "proposal.md").write_text(
        "# Proposal\n\nOne cache.\n\n```py\nx = 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    )
    on = ("--folder", str(talk), "--as")
    _done("submit", *on, "server")
    _done("review", *on, "reader", "--position", "Fine", "--change", "Name the owner", "--question", "Who?")
    (talk / "decisions.md").write_text("# Decisions\n\n### D1. One cache\n\n- Decision: yes.\n")
    _done("revise", *on, "server")
    _done("classify", *on, "server", "--resolve", "Who?", "--defer", "When :: later")
    _done("accept", *on, "server")
    shutil.copytree(talk, stage / "ws" / "ended")
    _done("accept", *on, "reader")
    _done("block", "--folder", str(stage / "ws" / "ended"), "--as", "reader", "--reason", "disk full, error 28")
    for name in ("v2-support@supported", "v2-external@readiness"):
        files, _ = folder_files(name)
        for path, text in files.items():
            target = stage / "ws" / name.partition("@")[0] / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text.encode())
    _interrupted(Path(shutil.copytree(stage / "ws" / "ended", stage / "ws" / "half")))


def _interrupted(folder: Path) -> None:
    """As a writer leaves it that was killed between document and event, in the middle of a line."""
    log = folder / "events.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:-1]) + b'{"seq":7,"from":"rea')
    old, new = (folder / "decisions.md").read_bytes(), b"# Decisions\n\nOthers.\n"
    (folder / "decisions.md").write_bytes(new)
    for data in (old, new):
        (folder / ".collab" / "objects" / sha256(data)).write_bytes(data)
    intent = {
        "seq": 7,
        "line": lines[-1].decode(),
        "document": "decisions.md",
        "before": sha256(old),
        "after": sha256(new),
    }
    (folder / ".collab" / "pending.json").write_text(json.dumps(intent))


def _triage(stage: Path) -> None:
    root = ("--root", str(stage / "ws"))
    for text in ("the frobnicator lost its marbles", "the frobnicator lost its marbles", "error 7: no ink"):
        _done("triage", "observe", "--text", text, *root)
    shop = GOVERNANCE["fixtures"]["shop"]
    (stage / "ws" / "catalog.json").write_text(json.dumps(shop, ensure_ascii=False, indent=2))
    codes = ("--code", "ink_empty", "--layer", "print", "--match", "no ink", "--cause", "The ink is empty")
    lines = (stage / "ws" / "triage" / "observations.jsonl").read_text().splitlines()
    minted = next(json.loads(line)["code"] for line in lines if "ink" in line)
    _done("triage", "promote", minted, *codes, "--next-command", "true", *root)


def _governance(stage: Path) -> None:
    ws = stage / "ws"
    base = {"schema": "pi.agent_status.v1", "goal": "g", "goal_id": "i", "goal_hash": GOAL, "changed": ["c"],
            "verified": [], "proof": [], "not_done": [], "failure": None, "needs_human": None,
            "needs_brave_search": None, "needs_agent": None, "needs_webgpt": None, "needs_roundtable": None,
            "needs_competition": None}  # fmt: skip
    done = {"state": "done", "verified": [{"command": "true", "result": "ok"}], "proof": ["proof.txt"]}
    agent = {"state": "needs_agent", "needs_agent": {"handler": "h", "question": "q?"}}
    (ws / "proof.txt").write_text("true\nok\n")
    (ws / "status.json").write_text(json.dumps({**base, **done}, indent=2))
    (ws / "asks.json").write_text(json.dumps({**base, **agent}, indent=2))
    (ws / "receipts" / "status.json").write_text(json.dumps({**base, **agent}, indent=2))
    (ws / "turn.txt").write_text(f"Words.\n\n```json\n{json.dumps({**base, **done})}\n```\n\nMore.\n")
    ledger = {"schema": "lazy_report_shame.continuation_guard.v1", "active": True, "target": "t",
              "tickets": [{"ref": "1", "state": "open", "labels": ["agent-work"], "next_command": "true"}],
              "gates": [{"id": "g", "status": "open", "proof": None, "next_command": None}],
              "obvious_next_steps": [], "next_command": None}  # fmt: skip
    (ws / "ledger.json").write_text(json.dumps(ledger, indent=2))
    shipped = Path(__file__).parents[2] / "catalog"
    for name in ("escalation_commands", "members"):
        shutil.copy(shipped / f"{name}.json", ws / f"{name}.json")
    (ws / "goal.json").write_text(json.dumps(GOVERNANCE["fixtures"]["goal"], indent=2))
    (ws / "payload.json").write_text(json.dumps({"schema": "a.b.v1", "x": [1, {"y": "z"}]}))
    skill = "---\nname: shame\n---\n# S\n\n## Ecosystem\n\nProduces: `pi.agent_status.v1`\nConsumes:\n- human labels\n"
    (ws / "skills" / "one").mkdir(parents=True)
    (ws / "skills" / "one" / "SKILL.md").write_text(skill + "Boundary events: none\n")
    parent = next((ws / "receipts").glob("acp-*.json"))
    goal = json.loads(parent.read_text())["goal_hash"]
    argv = (
        "--goal-hash",
        goal,
        "--receipt-id",
        "child",
        "--producer",
        "p",
        "--parent",
        str(parent),
        "--with-digest",
        "--root",
        str(ws),
    )
    _done("envelope", "wrap", str(ws / "payload.json"), *argv, "--out", str(ws / "receipts" / "child.json"))


def _plan(stage: Path) -> None:
    (stage / "bin").mkdir()
    bench = Bench(stage / "bench")
    bench.begin()
    assert bench.launch("d1", result_path="x").ok
    assert bench.launch("d2").ok
    assert bench.collect("d1", result_path="results/d1.md").ok
    assert bench.cancel("d2").ok
    assert bench.launch("d3").ok
    shutil.copytree(bench.repo, stage / "ws" / "repo")
    shutil.rmtree(stage / "bench")
    plan = stage / PLAN
    (plan / "results").mkdir()
    (plan / "results" / "d1.md").write_text("# Done\n")
    (plan / "gates").mkdir()
    lines = (plan / "journal.ndjson").read_text().splitlines(keepends=True)
    (plan / "journal-archive-000001-000002.ndjson").write_text("".join(lines[:2]))
    (plan / "journal.ndjson").write_text("".join(lines[2:]))
    (plan / "evidence.jsonl").write_text(json.dumps({"fingerprint": "f", "task": "T-mark", "criterion": "AC-one",
        "exit_code": 0, "log": "gates/x.log", "seq": 1, "ts": "2026-03-01T09:00:00Z"}) + "\n")  # fmt: skip
    (stage / "ws" / "draft.json").write_text(json.dumps(draft(), indent=2))
    pack = stage / "ws" / "repo" / ".agents" / "skills" / "deepworkplan" / "addons" / "own"
    pack.mkdir(parents=True)
    addon = json.loads((Path(__file__).parents[2] / "catalog" / "transports" / "agentkit.json").read_text())
    addon["key"] = "own"
    addon["detect"] = {"paths": ["src/a"], "legacy_paths": ["~/.own"], "interface_from": "file-json:~/.own/v.json#x"}
    (pack / "addon.json").write_text(json.dumps(addon, indent=2))
    lock = plan / ".ledger.lock"
    lock.mkdir()
    owner = {"identity": "other", "pid": 2**22 - 1, "ts": "2026-03-01T09:00:00Z", "epoch_ts": 0.0, "host": "h"}
    (lock / "owner.json").write_text(json.dumps(owner))


def _workflows(stage: Path) -> None:
    root = workflow_sample(stage / "ws" / "flow", Stepped()).path
    (root / "identity").mkdir()
    (root / "identity" / "me.yml").write_text("name: me\nage: 3\nseen: 2026-03-01T09:00:00.000Z\nlist: [a, b]\n")
    rules = (
        "rules:\n  - id: r1\n"
        "    when: {all: [{path: me.age, op: gt, value: 2}, {path: me.list, op: contains, value: a}]}\n"
        "    for: 1\n    do: [log, {start: check-pages}]\n"
        "    notify: {channels: [brain-ui], level: update, message: hi}\n"
        "    cooldown: 1h\n"
    )
    (root / "ambient" / "rules.yml").write_text(rules)
    agents = '[agents.porter]\ntransport = "file"\n\n[agents.other]\ntransport = "command"\n'
    agents += 'argv = ["true", "{{item}}"]\nenv = ["PATH"]\n'
    (root / "ambient" / "agents.toml").write_text(agents)
    chain = (
        "name: steps\nchain:\n  - {step: 1, type: porter, scope: a/b, story_angle: look, gate: human}\n"
        "  - {step: 2, agents: [porter], on_fail: '-> BLOCKED_ON pilote', on_done: trigger:next, gate: 0-failures}\n"
        "  - {step: 3, type: porter, on_done: '→ signal → RETURN pilote + log', on_partial: retry (2) + ESCALATE}\n"
        "trigger: {every: 24h}\ntimeout: 30m\nretry: {max: 1, backoff: 5s, on: [error]}\n"
    )
    (root / "workflows" / "steps.yml").write_text(chain)
    script = {"agents": {"porter": {"receives_from": ["*"], "sends_to": ["*"], "zone_access": ["*"], "signals": ["*"]}},
              "steps": [{"at": 0, "start": {"mode": "swarm", "grant": True}},
                        {"at": 1, "reply": {"item": "welcome", "result": {"status": "fail", "cause": "no"}}},
                        {"at": "2s", "decide": {"escalation": 1, "option": "retry"}},
                        {"at": 9, "jump": "-2h"}, {"tick": 2, "crash": "before_dispatch"},
                        {"restart": True}]}  # fmt: skip
    (root / "script.json").write_text(json.dumps(script, indent=2))
    run = next((root / "ambient" / "runs").glob("*.jsonl"))
    text = run.read_text()
    half = text[: len(text) // 2]
    pending = {"files": {f"ambient/runs/{run.name}": {"size": len(half), "text": text[len(half) :]}}}
    (root / "ambient" / ".pending.json").write_text(json.dumps(pending))


def _person(stage: Path) -> None:
    home = stage / "home"
    (home / "state" / "seen").mkdir(parents=True, exist_ok=True)
    config = 'theme = "dark"\nascii = false\ndelegation_minutes = 30\neditor = "vi"\nidentity = "reader"\n\n'
    (home / "config.toml").write_text(config + '[keymap]\nreview = "r"\nquit = "ctrl+q"\nnext = "n,f8"\n')
    (home / "state" / "identity.json").write_text(json.dumps({"*": "reader"}))
    (home / "state" / "snooze.json").write_text(json.dumps({"acp:x": "2027-03-01T09:00:00Z"}))


@contextmanager
def laid(prefixes: Sequence[str], changes: Mapping[str, Change]) -> Iterator[Path]:
    """A stage with the files below some paths, changed; this process stands in its workspace as its person."""
    with place() as stage:
        (stage / "bin").mkdir()
        for name, data in sample().items():
            if name.startswith((*prefixes, "outside/", "secret.txt")):
                _write(stage / name, changes.get(name, data))
        for name, change in changes.items():
            if name not in sample():
                _write(stage / name, change)
        for folder in ("ws/receipts", "ws/triage", "home/state"):
            with contextlib.suppress(OSError):
                (stage / folder).mkdir(parents=True, exist_ok=True)
        before = os.getcwd()
        os.chdir(stage / "ws")
        try:
            # Where the first and the last day of the calendar begin in another year.
            with patch.dict(os.environ, {**environment(stage), "TZ": "Pacific/Kiritimati"}):
                time.tzset()
                yield stage
        finally:
            os.chdir(before)
            time.tzset()


def _write(path: Path, change: Change) -> None:
    if change == "gone":
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(change, bytes):
        path.write_bytes(change)
    elif change == "folder":
        path.mkdir()
    elif change == "fifo":
        os.mkfifo(path)
    elif change == "socket":
        with socket.socket(socket.AF_UNIX) as made, contextlib.suppress(OSError):
            made.bind(str(path))
    else:
        path.symlink_to(change.removeprefix("link:"))
