"""Who edits what when, by other processes, and correct work, which accuses nobody (docs/specs/acp.md §6)."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from core.acp import guided
from core.acp.check import check
from core.acp.history import EDITABLE
from core.acp.model import DOCUMENTS
from core.acp.reader import read
from core.acp.templates import initialize
from core.state import UserState
from tests.conftest import Collab, FixedClock
from tests.interop.test_reference import reference
from tests.unit.core.acp.test_guided import GATE, WAY

PEOPLE = ("server", "reader", "editor")
SITUATIONS = {
    "drafting": 0,
    "reviewing": 1,
    "one review": 2,
    "revising": 3,
    "decision_review": 5,
    "readiness_check": 9,
    "completed": 11,
    "blocked": -1,
}
ACCUSATIONS = {"log_rewritten", "log_truncated", "edit_out_of_turn"}

EDIT = """
import json, pathlib, sys
for name in sys.argv[1:]:
    path = pathlib.Path(name)
    text = path.read_text()
    if name == "protocol.json":
        path.write_text(json.dumps({**json.loads(text), "objective": "Something else"}))
    else:
        path.write_text("An edit.\\n" + text)
"""


def elsewhere(folder: Path, code: str, *argv: str) -> None:
    """Another process at work in the folder."""
    subprocess.run([sys.executable, "-c", code, *argv], cwd=folder, check=True, timeout=60)


def begin(place: Path, steps: int) -> Path:
    folder, clock = place / "talk", FixedClock()
    initialize(folder, "Agree on the cache.", PEOPLE, [GATE], clock)
    for act in WAY[: steps if steps >= 0 else 3]:
        clock.step(60)
        guided.commit(folder, act, clock)
    if steps < 0:
        guided.commit(folder, guided.block("reader", "No host"), clock)
    return folder


@pytest.fixture
def state(tmp_path: Path) -> UserState:
    return UserState(tmp_path / "state")


def accused(folder: Path, state: UserState | None = None) -> dict[str, str]:
    """Document or log to what is said of it."""
    return {item.where or "": item.cause for item in check(folder, state)[1] if item.code in ACCUSATIONS}


@pytest.mark.parametrize("witness", ["sidecar", "person"])
@pytest.mark.parametrize("situation", SITUATIONS)
def test_each_edit_in_each_phase(quick_path: Path, state: UserState, situation: str, witness: str) -> None:
    folder = begin(quick_path, SITUATIONS[situation])
    assert check(folder, state)[1] == []
    if witness == "person":
        # The sidecar went with the rewriting; what this person saw did not.
        elsewhere(folder, "import shutil; shutil.rmtree('.collab')")
    snapshot = read(folder)
    phase, seq = snapshot.state.phase, snapshot.state.seq
    elsewhere(folder, EDIT, *DOCUMENTS, "protocol.json")
    expected = {name for name in DOCUMENTS if phase not in EDITABLE[name]}
    if phase == "reviewing":
        expected.add("protocol.json")
    if situation == "revising" and witness == "person":
        # Right after a review its text may come; whoever knows only the old digest cannot tell it from an edit.
        expected.remove("review.md")
    for _ in range(2):
        assert accused(folder, state) == {
            name: f"{name} changed after seq {seq}, in phase {phase}, when nobody may edit it" for name in expected
        }


def test_a_window_in_the_past_is_named_for_good(quick_path: Path, collab: Collab) -> None:
    """The edit was made while the proposal was under review; later work does not wash it away."""
    folder = begin(quick_path, 1)
    elsewhere(folder, EDIT, "proposal.md", "decisions.md")
    for act in WAY[1:]:
        guided.commit(folder, act)
    done = collab("validate", "--folder", str(folder))
    assert done.returncode == 1
    warnings = [line for line in done.stdout.splitlines() if line.startswith("WARNING: ")]
    assert sorted(warnings) == [
        f"WARNING: {name} changed after seq 2 and before seq 3, in phase reviewing, when nobody may edit it"
        for name in ("decisions.md", "proposal.md")
    ]


def test_what_is_put_back_in_time_is_forgiven(quick_path: Path, state: UserState) -> None:
    folder = begin(quick_path, 1)
    before = (folder / "proposal.md").read_bytes()
    elsewhere(folder, EDIT, "proposal.md")
    for witness in (None, state):
        assert list(accused(folder, witness)) == ["proposal.md"]
    (folder / "proposal.md").write_bytes(before)
    for witness in (None, state):
        assert accused(folder, witness) == {}


def test_a_forged_log_is_no_evidence_for_who_comes_later(quick_path: Path, state: UserState) -> None:
    folder = begin(quick_path, 4)
    before = (folder / "events.jsonl").read_bytes()
    elsewhere(folder, "import pathlib; p = pathlib.Path('events.jsonl'); p.write_text(p.read_text().replace('I', 'J'))")
    assert list(accused(folder, state)) == ["events.jsonl"]
    (folder / "events.jsonl").write_bytes(before)
    assert accused(folder, state) == {}


def test_the_projection_is_nobodys_edit(quick_path: Path, state: UserState, collab: Collab) -> None:
    """What changes with every event is not what was agreed."""
    folder = begin(quick_path, 1)
    check(folder, state)
    raw = json.loads((folder / "protocol.json").read_text())
    stale = {**raw, "currentPhase": "drafting", "waitingFor": [], "proposalOwner": None, "updatedAt": "x"}
    (folder / "protocol.json").write_text(json.dumps(dict(reversed(stale.items()))))
    assert accused(folder, state) == {}
    assert collab("repair", "--folder", str(folder)).returncode == 0
    assert check(folder, state)[1] == []


def test_a_deleted_sidecar_and_a_forged_log(quick_path: Path, own_home: Path, collab: Collab) -> None:
    """Somebody forges the log and makes the sidecar agree with it: one who has looked before still sees it."""
    folder = begin(quick_path, 4)
    assert collab("validate", "--folder", str(folder)).returncode == 0
    forge = (
        "import shutil, pathlib; p = pathlib.Path('events.jsonl'); shutil.rmtree('.collab');"
        "p.write_text(p.read_text().replace('In favour', 'In favour!'))"
    )
    elsewhere(folder, forge)
    assert collab("propose", "--folder", str(folder), "--as", "server").returncode == 0
    done = collab("validate", "--folder", str(folder))
    assert done.returncode == 2
    assert "was rewritten at or before seq 5" in done.stdout
    # Somebody else, who sees the folder for the first time, cannot know.
    other = collab("validate", "--folder", str(folder), COLLAB_STATE=str(own_home / "other"))
    assert (other.returncode, other.stdout) == (0, "ACP validation passed\n")


def test_a_fork_is_noticed_by_both_sides(quick_path: Path, state: UserState, tmp_path: Path) -> None:
    """Two copies go on from the same event; then one is copied over the other."""
    folder = begin(quick_path, 1)
    fork = Path(shutil.copytree(folder, quick_path / "fork"))
    guided.commit(folder, WAY[1])
    check(folder, state)
    guided.commit(fork, WAY[2])
    elsewhere(folder, "import shutil, sys; shutil.copy(sys.argv[1] + '/events.jsonl', '.')", str(fork))
    assert list(accused(folder)) == ["events.jsonl"]
    assert list(accused(folder, state)) == ["events.jsonl"]
    shutil.rmtree(folder / ".collab")
    assert list(accused(folder, state)) == ["events.jsonl"]
    assert accused(folder, UserState(tmp_path / "other")) == {}


# Correct work of others


class Scripts:
    """The reference's scripts, one process an act."""

    def __init__(self, place: Path, folder: Path) -> None:
        self.place, self.folder = place, folder

    def run(self, name: str, *argv: str) -> str:
        done = subprocess.run(
            [sys.executable, str(self.place / name), "--folder", str(self.folder), *argv],
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done
        return done.stdout

    def append(self, who: str, event: str, doc: str) -> int:
        seq = (self.folder / "events.jsonl").read_bytes().count(b"\n")
        argv = ("--event", event, "--summary", "Done", "--doc", doc, "--reply-to", str(seq))
        said = self.run("append_event.py", "--participant", who, *argv)
        assert said == f"appended seq {seq + 1}: {event}\n"
        return seq + 1

    def heading(self, who: str, seq: int) -> None:
        """Written after the event, as its agents do."""
        with (self.folder / "review.md").open("a") as review:
            review.write(f"\n## 2026-03-01T09:00:00Z - {who} - seq {seq}\n\nPosition:\n- In favour.\n")


@pytest.fixture
def scripts(quick_path: Path) -> Scripts:
    return Scripts(reference(1), quick_path / "talk")


def clean(folder: Path, states: list[UserState], late: int = 0) -> None:
    """Nobody who looks, with a memory or without, sees an offence; `late` headings are still to come."""
    for state in (None, *states):
        codes = [item.code for item in check(folder, state)[1]]
        assert codes == ["review_heading_missing"] * late, codes


WATCHERS = ("nobody", "all the time")


@pytest.mark.parametrize("watcher", WATCHERS)
@pytest.mark.parametrize("starter", ["ours", "theirs"])
def test_theirs_and_ours_take_turns(
    quick_path: Path, scripts: Scripts, tmp_path: Path, starter: str, watcher: str, collab: Collab
) -> None:
    """Reviews by scripts, append first and write after, the last reviewer too; the rest by whoever comes."""
    folder = scripts.folder
    people = [word for who in PEOPLE for word in ("--participant", who)]
    argv = (*people, "--objective", "Cache", "--completion", GATE)
    if starter == "ours":
        assert collab("init", "--folder", str(folder), *argv).returncode == 0
    else:
        scripts.run("init_collaboration.py", *argv)
        readiness = folder / "readiness.md"
        readiness.write_text(readiness.read_text().replace("{gate_checks}", f"- [ ] {GATE}"))
    states = [UserState(tmp_path / "watcher")] if watcher == "all the time" else []
    # One who looks only now and then sees less, and must not make more of it.
    seldom = UserState(tmp_path / "seldom")
    clean(folder, [*states, seldom])
    (folder / "proposal.md").write_text("# Proposal\n\nUse a cache.\n")
    if starter == "ours":
        guided.commit(folder, guided.submit("server"))
    else:
        scripts.append("server", "proposal_submitted", "proposal.md")
    clean(folder, states)
    first = scripts.append("editor", "review_submitted", "review.md")
    clean(folder, states, late=1)
    scripts.heading("editor", first)
    clean(folder, states)
    last = scripts.append("reader", "review_submitted", "review.md")
    clean(folder, states, late=1)
    scripts.heading("reader", last)
    clean(folder, states)
    (folder / "proposal.md").write_text("# Proposal\n\nUse a small cache.\n")
    clean(folder, [*states, seldom])
    guided.commit(folder, guided.submit("server", revise=True))
    clean(folder, states)
    (folder / "decisions.md").write_text("# Decisions\n\n- One small cache.\n")
    scripts.append("server", "decision_proposed", "decisions.md")
    clean(folder, states)
    guided.commit(folder, WAY[5])
    clean(folder, states)
    scripts.append("reader", "decision_accepted", "decisions.md")
    scripts.append("server", "decision_accepted", "decisions.md")
    guided.commit(folder, guided.decisions("editor", None, accept=True))
    clean(folder, states)
    readiness = folder / "readiness.md"
    readiness.write_text(readiness.read_text().replace("- [ ]", "- [x]"))
    scripts.append("server", "readiness_passed", "readiness.md")
    clean(folder, states)
    guided.commit(folder, WAY[10])
    clean(folder, [*states, seldom])
    assert scripts.run("validate_collaboration.py") == "ACP validation passed\n"
    assert collab("validate", "--folder", str(folder)).returncode == 0


def test_an_owner_who_is_faster_than_the_last_heading(scripts: Scripts, tmp_path: Path, quick_path: Path) -> None:
    """Between the last reviewer's event and their text the owner revises already; both did right."""
    folder, state = scripts.folder, UserState(tmp_path / "watcher")
    begin(quick_path, 1)
    first = scripts.append("editor", "review_submitted", "review.md")
    last = scripts.append("reader", "review_submitted", "review.md")
    clean(folder, [state], late=2)
    guided.commit(folder, WAY[3])
    clean(folder, [state], late=2)
    scripts.heading("reader", last)
    clean(folder, [state], late=1)
    guided.commit(folder, WAY[4])
    scripts.heading("editor", first)
    clean(folder, [state])
    guided.commit(folder, WAY[5])
    clean(folder, [state])
    # But what was there before may not be changed in the name of a late text.
    review = folder / "review.md"
    review.write_text(review.read_text().replace("In favour", "Against"))
    assert list(accused(folder, state)) == ["review.md"]


def test_its_scripts_wake_our_waiters(scripts: Scripts, quick_path: Path) -> None:
    from tests.processes.test_guided import PATIENCE, waiting

    folder = begin(quick_path, 1)
    with waiting(folder, "server") as process:
        for who in ("editor", "reader"):
            scripts.heading(who, scripts.append(who, "review_submitted", "review.md"))
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (0, "")
    assert "ready: server is listed in waitingFor" in out.splitlines()
