"""Plays `vectors/delegation.json`: builds a stage for each case, runs its steps, compares (docs/specs/delegation.md).

A verb is run by a `Call`: `(argv, stage) -> (exit status, stdout, stderr)`, in this process or in one of its own.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tests.conformance.delegation_match import mismatch

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent / "vectors" / "delegation.json").read_text("utf-8"))
BASE = "https://deepworkplan.com/schema"
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
PACK = ".agents/skills/deepworkplan/addons"
HEAD = "23de43275bb92ff048baf70a2c023280f4cdadcd"


@dataclass(frozen=True)
class Result:
    status: int
    out: str
    err: str


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def identity(contract: dict[str, Any]) -> str:
    body = {key: value for key, value in contract.items() if key != "contract_id"}
    return hashlib.sha256(canonical(body).encode()).hexdigest()


def patched(document: Any, patch: dict[str, Any]) -> Any:
    """A copy with JSON pointers set and dropped; setting the entry after a list's last one appends."""
    made = copy.deepcopy(document)
    for pointer, value in patch.get("set", {}).items():
        spot, last = _walk(made, pointer)
        if isinstance(spot, list):
            spot[int(last) : int(last) + 1] = [copy.deepcopy(value)]
        else:
            spot[last] = copy.deepcopy(value)
    for pointer in patch.get("drop", []):
        spot, last = _walk(made, pointer)
        del spot[int(last) if isinstance(spot, list) else last]
    return made


def _walk(document: Any, pointer: str) -> tuple[Any, str]:
    *steps, last = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    for step in steps:
        document = document[int(step) if isinstance(document, list) else step]
    return document, last


def contract(spec: Any) -> dict[str, Any]:
    """A named contract or a patch of one."""
    if isinstance(spec, str):
        named = VECTORS["contracts"][spec]
        return contract(named) if "base" in named else copy.deepcopy(named)
    made: dict[str, Any] = patched(contract(spec["base"]), spec)
    return made


GIT = {
    "GIT_AUTHOR_NAME": "t",
    "GIT_AUTHOR_EMAIL": "t@t",
    "GIT_COMMITTER_NAME": "t",
    "GIT_COMMITTER_EMAIL": "t@t",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
}


def git(repo: Path, *words: str) -> str:
    environment = {**GIT, "PATH": SYSTEM_PATH, "HOME": str(repo)}
    done = subprocess.run(["git", *words], cwd=repo, env=environment, capture_output=True, encoding="utf-8", check=True)
    return done.stdout.strip()


@cache
def bare_repository(place: Path) -> Path:
    """The first commit, made once and copied."""
    repo = place / "repo"
    (repo / "src").mkdir(parents=True)
    (repo / ".gitignore").write_text(".dwp/\n")
    for name in ("a", "b"):
        (repo / "src" / name).write_text(f"{name} = 1\n")
    git(repo, "init", "-q", "-b", "main")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "step")
    assert git(repo, "rev-parse", "HEAD") == HEAD
    return repo


@dataclass
class Stage:
    """The scratch folder of one case."""

    work: Path
    setup: dict[str, Any]
    template: Path
    tokens: dict[str, str] = field(default_factory=dict)
    held: bytes | None = None

    def __post_init__(self) -> None:
        self.repo, self.home, self.bin = self.work / "repo", self.work / "home", self.work / "bin"
        self.contract = contract(self.setup.get("contract", "K"))
        self.name = self.setup.get("folder", self.contract["plan"])
        self.plan = self.work / self.setup.get("plan_at", "repo/.dwp/plans") / self.name
        self.draft = self.work / "draft.json"
        self.live = self.contract
        self.tokens = {
            "work": str(self.work),
            "repo": str(self.repo),
            "plan": str(self.plan),
            "home": str(self.home),
            "draft": str(self.draft),
            "name": self.name,
        }
        self._repository()
        self._programs()
        self._registries()
        if self.setup.get("plan") == "draft":
            self.draft.write_text(json.dumps(self.contract), "utf-8")
        else:
            self._materialized()

    # -- building

    def _repository(self) -> None:
        mode = self.setup.get("git", True)
        shutil.copytree(self.template, self.repo)
        self.home.mkdir()
        self.plan.mkdir(parents=True)
        readme = self.setup.get("readme", "# Goal\n\nDelegation.\n")
        if readme is not None:
            (self.plan / "README.md").write_text(readme, "utf-8")
        for name, text in self.setup.get("files", {}).items():
            self.write(name, text)
        for key, descriptor in self.setup.get("pack", {}).items():
            path = self.repo / PACK / key / "addon.json"
            path.parent.mkdir(parents=True)
            path.write_text(json.dumps(descriptor), "utf-8")
        if mode is not True:
            shutil.rmtree(self.repo / ".git")
        if mode == "unborn":
            git(self.repo, "init", "-q", "-b", "main")
        elif mode is True:
            if self.setup.get("pack") or any(name.startswith("repo/") for name in self.setup.get("files", {})):
                git(self.repo, "add", "-A")
                git(self.repo, "commit", "-q", "-m", "step")
            self.tokens["head"] = git(self.repo, "rev-parse", "HEAD")

    def _programs(self) -> None:
        programs: dict[str, Any] = {
            "ak": {"out": '{"interface": 1}'},
            "herdr-peers": {"out": "herdr-peers 0.1.0 (protocol 1)"},
            **self.setup.get("bin", {}),
        }
        place = self.repo / "relbin" if self.setup.get("bin_on_relative_path") else self.bin
        self.bin.mkdir()
        place.mkdir(exist_ok=True)
        for name, program in programs.items():
            if program is None:
                continue
            (self.work / f"{name}.out").write_text(program.get("out", "") + "\n", "utf-8")
            log = self.work / f"{name}.log"
            text = f'#!/bin/sh\necho "$@" >> "{log}"\ncat "{self.work}/{name}.out"\nexit {program.get("exit", 0)}\n'
            (place / name).write_text(text)
            (place / name).chmod(0o755)

    def _registries(self) -> None:
        given = self.setup.get("registry", {"addons": {"agentkit": {"enabled": True}}})
        for document, path in (
            (given, self.plan.parent.parent / "config.json"),
            (self.setup.get("user_registry"), self.home / ".dwp" / "config.json"),
        ):
            if document is None:
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(document if isinstance(document, str) else json.dumps(document), "utf-8")

    def _materialized(self) -> None:
        first = {**self.contract, "contract_id": identity(self.contract)}
        self.live = first
        manifest = {
            "schema": f"{BASE}/plan-manifest/{self.generation}.json",
            "plan": first["plan"],
            "contract": {"id": first["contract_id"], "path": "contract.json"},
        }
        self._json(self.plan / "manifest.json", manifest)
        self._json(self.plan / "contract.json", first)
        markdown = b"".join(path.read_bytes() for path in sorted(self.plan.glob("*.md"), key=lambda one: one.name))
        if self.setup.get("approved", True):
            approval = {
                "type": "approval",
                "authority": "vec",
                "mechanism": "plan_authorship",
                "plan_digest": hashlib.sha256(markdown).hexdigest(),
                "actor": {"kind": "human", "identity": "vec"},
            }
            self.journal([approval])
        for task in self.setup.get("started", ["T-mark"]):
            world = {"revision": self.tokens.get("head", "none"), "dirty": ""}
            self.journal([{"type": "task_start", "task": task, "fingerprint": world}])
        for patch in self.setup.get("revisions", []):
            parent = self.live
            body = {key: value for key, value in parent.items() if key != "contract_id"}
            made = patched(body, patch) | {
                "revision": parent["revision"] + 1,
                "parent_contract_id": parent["contract_id"],
            }
            self.live = {**made, "contract_id": identity(made)}
            self.tokens[f"id{self.live['revision']}"] = self.live["contract_id"]
            self._json(self.plan / "contracts" / f"contract.r{self.live['revision']}.json", self.live)
        self.journal(self.setup.get("journal", []))

    @property
    def generation(self) -> str:
        return "v6" if self.contract["schema"].endswith("/v6.json") else "v7"

    @staticmethod
    def _json(path: Path, document: Any) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document, sort_keys=True, indent=2) + "\n", "utf-8")

    # -- changing

    def path(self, name: str) -> Path:
        top, _, rest = self.filled(name).partition("/")
        if not top:
            return Path(self.filled(name))
        return {"plan": self.plan, "repo": self.repo, "home": self.home, "work": self.work}[top] / rest

    def filled(self, value: Any) -> Any:
        """Tokens replaced in every text."""
        if isinstance(value, str):
            for name, text in self.tokens.items():
                value = value.replace(f"{{{name}}}", text)
            return value
        if isinstance(value, list):
            return [self.filled(item) for item in value]
        if isinstance(value, dict):
            return {key: self.filled(item) for key, item in value.items()}
        return value

    def write(self, name: str, text: str) -> None:
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.filled(text).encode("utf-8"))

    def journal(self, lines: list[dict[str, Any]]) -> None:
        with (self.plan / "journal.ndjson").open("ab") as log:
            for line in lines:
                if "raw" in line:
                    log.write(self.filled(line["raw"]).encode("utf-8"))
                    continue
                seq = line.get("seq", head_seq(self.plan) + 1)
                event = {
                    "schema": f"{BASE}/journal-event/{self.generation}.json",
                    "seq": seq,
                    "ts": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1767225600 + seq - 1)),
                    "plan": self.live["plan"],
                    "contract_id": self.live["contract_id"],
                    "actor": {"kind": "agent", "identity": "caller"},
                    **self.filled(line),
                }
                if event["actor"] == "helper":
                    event["actor"] = {"kind": "helper", "identity": "dwp-ledger/7.0"}
                log.write(canonical(event).encode() + b"\n")
                log.flush()

    def do(self, acts: list[dict[str, Any]]) -> None:
        for act in acts:
            name = next(key for key in act if key not in ("text", "to", "bytes", "after", "set", "drop"))
            getattr(self, f"do_{name}")(act)

    def do_write(self, act: dict[str, Any]) -> None:
        self.write(act["write"], act["text"])

    def do_remove(self, act: dict[str, Any]) -> None:
        path = self.path(act["remove"])
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()

    def do_mkdir(self, act: dict[str, Any]) -> None:
        self.path(act["mkdir"]).mkdir(parents=True)

    def do_link(self, act: dict[str, Any]) -> None:
        path = self.path(act["link"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(self.filled(act["to"]))

    def do_tail(self, act: dict[str, Any]) -> None:
        with self.path(act["tail"]).open("ab") as log:
            log.write(self.filled(act["text"]).encode("utf-8"))

    def do_cut(self, act: dict[str, Any]) -> None:
        path = self.path(act["cut"])
        path.write_bytes(path.read_bytes()[: -act["bytes"]])

    def do_line(self, act: dict[str, Any]) -> None:
        path = self.path(act["line"])
        lines = path.read_bytes().splitlines(keepends=True)
        text = self.filled(act["text"]).encode("utf-8") if "text" in act else b"\xff\xfe"
        lines.insert(act["after"], text + b"\n")
        path.write_bytes(b"".join(lines))

    def do_edit(self, act: dict[str, Any]) -> None:
        path = self.path(act["edit"])
        self._json(path, patched(json.loads(path.read_text("utf-8")), self.filled(act)))

    def do_journal(self, act: dict[str, Any]) -> None:
        self.journal(act["journal"])

    def do_commit(self, _: dict[str, Any]) -> None:
        git(self.repo, "add", "-A")
        git(self.repo, "commit", "-q", "-m", "step")
        self.tokens["head"] = git(self.repo, "rev-parse", "HEAD")

    def do_lock(self, act: dict[str, Any]) -> None:
        kind = act["lock"]
        lock = self.plan / ".ledger.lock"
        lock.mkdir()
        if kind == "ownerless":
            return
        if kind == "unreadable":
            (lock / "owner.json").write_text("{nope")
            return
        pid = os.getppid() if kind in ("live", "old") else dead_pid()
        moment = time.time() - (901 if kind == "old" else 0)
        owner = {
            "identity": f"other pid:{pid}" if kind != "live" else f"other pid {pid}",
            "pid": pid,
            "ts": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment)),
            "epoch_ts": moment,
            "host": "elsewhere" if kind == "elsewhere" else os.uname().nodename,
        }
        (lock / "owner.json").write_text(json.dumps(owner, sort_keys=True))

    # -- running

    @property
    def environment(self) -> dict[str, str]:
        first = "relbin" if self.setup.get("bin_on_relative_path") else str(self.bin)
        return {
            "PATH": f"{first}:{SYSTEM_PATH}",
            "HOME": str(self.home),
            "GIT_CONFIG_NOSYSTEM": "1",
            "LC_ALL": "C.UTF-8",
        }

    def argv(self, step: dict[str, Any]) -> list[str]:
        words = [
            word if isinstance(word, str) else json.dumps(word, separators=(",", ":"))
            for word in self.filled(step.get("argv", step.get("addons")))
        ]
        if "addons" in step:
            return ["addons", *words, "--repo", str(self.repo)]
        if step.get("bare"):
            return ["ledger", *words]
        return ["ledger", "--plan", self.filled(step.get("plan", str(self.plan))), *words]


Call = Callable[[list[str], Stage], Result]


@cache
def dead_pid() -> int:
    ended = subprocess.Popen(["true"])
    ended.wait()
    return ended.pid


def lines_of(plan: Path, every: bool = True) -> list[bytes]:
    files = sorted(plan.glob("journal-archive-*.ndjson")) if every else []
    found = []
    for path in [*files, plan / "journal.ndjson"]:
        if path.exists():
            found += [line for line in path.read_bytes().split(b"\n") if line.strip()]
    return found


def head_seq(plan: Path) -> int:
    found = [0]
    for line in lines_of(plan):
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and type(event.get("seq")) is int:
            found.append(event["seq"])
    for path in plan.glob("journal-archive-*.ndjson"):
        found.append(int(path.stem.split("-")[3]))
    return max(found)


# ---------------------------------------------------------------- playing


def play(case: dict[str, Any], work: Path, template: Path, call: Call) -> None:
    stage = Stage(work, case.get("setup", {}), template)
    for number, step in enumerate(case["steps"]):
        if "do" in step:
            stage.do(step["do"])
        else:
            _step(stage, step, call, f"step {number + 1}")


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def _step(stage: Stage, step: dict[str, Any], call: Call, label: str) -> None:
    journal, owner = stage.plan / "journal.ndjson", stage.plan / ".ledger.lock" / "owner.json"
    before, held, top = _bytes(journal), _bytes(owner), head_seq(stage.plan)
    argv = stage.argv(step)
    result = call(argv, stage)
    expect = stage.filled(step["expect"])
    story = f"{label}: {argv}\n{result}\n"
    assert "Traceback" not in result.err + result.out, story
    assert "unexpected " not in result.err, story
    assert result.status == expect["exit"], f"{story} expected exit {expect['exit']}"
    for text in expect.get("stdout_contains", []):
        assert text in result.out, f"{story} stdout lacks {text!r}"
    for text in expect.get("stdout_lacks", []):
        assert text not in result.out, f"{story} stdout has {text!r}"
    for text in expect.get("stderr_contains", []):
        assert text in result.err, f"{story} stderr lacks {text!r}"
    if "stdout_json" in expect:
        found = mismatch(expect["stdout_json"], json.loads(result.out), "stdout")
        assert found is None, f"{story}{found}"
    events = _added(stage, before, top, rolled=argv[3:4] == ["roll"], story=story)
    if "new_events" in expect:
        if not expect["new_events"]:
            assert _bytes(journal) == before, f"{story} the journal changed"
        found = mismatch(expect["new_events"], events, "new_events")
        assert found is None, f"{story}{found}\n{events}"
    lock = stage.plan / ".ledger.lock"
    assert not lock.exists() or (held and _bytes(owner) == held), f"{story} the lock is still there"
    if result.status == 5 and not any(word in ("-o", "-ojson") for word in argv):
        last = json.loads(lines_of(stage.plan)[-1])
        assert f"REFUSED: delegation refused: {last['reason']}\n" in result.out, story
    for name, wanted in expect.get("files", {}).items():
        _file(stage, name, wanted, story)


def _added(stage: Stage, before: bytes, top: int, rolled: bool, story: str) -> list[dict[str, Any]]:
    """The events that a step added; earlier bytes are as they were, but for a mended last line."""
    journal = stage.plan / "journal.ndjson"
    after = _bytes(journal)
    if rolled and after != before:
        kept = b"".join(_bytes(path) for path in sorted(stage.plan.glob("journal-archive-*")))
        assert before in kept, f"{story} the archives do not hold what was rolled"
        assert after == b"", story
        return []
    if after.startswith(before):
        new = after[len(before) :]
        if before and not before.endswith(b"\n") and new:
            assert new.startswith(b"\n"), story
            new = new[1:]
    else:
        lines = before.rstrip().split(b"\n")
        good = b"\n".join(lines[:-1]) + b"\n"
        assert after.startswith(good), f"{story} earlier bytes changed"
        new = after[len(good) :]
    assert not new or new.endswith(b"\n"), story
    events = []
    for index, line in enumerate(new.split(b"\n")[:-1]):
        event = json.loads(line)
        assert canonical(event).encode() == line, f"{story} not canonical: {line!r}"
        assert event["schema"] == f"{BASE}/journal-event/{stage.generation}.json", story
        assert event["plan"] == stage.contract["plan"], story
        assert event["contract_id"] == _live(stage), story
        assert event["seq"] == top + 1 + index, story
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", event["ts"]), story
        events.append(event)
    return events


def _live(stage: Stage) -> str:
    if "contract_id" in stage.live:
        return str(stage.live["contract_id"])
    return str(json.loads((stage.plan / "contract.json").read_text("utf-8"))["contract_id"])


def _file(stage: Stage, name: str, wanted: dict[str, Any], story: str) -> None:
    path = stage.path(name)
    found = sorted(path.parent.glob(path.name)) if "*" in path.name else [path]
    if wanted.get("absent"):
        assert not any(one.exists() or one.is_symlink() for one in found), f"{story} {name} is there"
        return
    assert [one for one in found if one.exists()], f"{story} {name} is missing"
    text = found[0].read_text("utf-8")
    if "text" in wanted:
        assert text == wanted["text"], f"{story} {name} is {text!r}"
    if "re" in wanted:
        assert re.search(wanted["re"], text, re.MULTILINE), f"{story} {name} is {text!r}"
    if "json" in wanted:
        problem = mismatch(wanted["json"], json.loads(text), name)
        assert problem is None, f"{story}{problem}"
