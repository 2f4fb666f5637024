"""A new round carries on what ended, and both are shown as one chain (docs/specs/acp.md §2)."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from core.acp import guided, rounds
from core.acp.check import check
from core.acp.documents import scan_readiness
from core.acp.model import DOCUMENTS
from core.acp.reader import read
from core.acp.templates import render
from core.finding import Refused
from tests.conftest import FixedClock, MakeFolder
from tests.unit.core.acp.test_guided import WAY
from tui.cli import main

PEOPLE = ("server", "reader", "editor")
GATE = "Measured (p95 < 5 ms) [cache]"
CARRIED = ("proposal.md", "decisions.md", "readiness.md")


@pytest.fixture
def blocked(make_folder: MakeFolder, clock: FixedClock) -> Path:
    folder = make_folder("talk", PEOPLE, (GATE,))
    for act in (*WAY[:6], guided.block("reader", "No host")):
        guided.commit(folder, act, clock)
    return folder


def tree(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def refusal(source: Path, target: Path, clock: FixedClock) -> tuple[str, str | None]:
    """(code, next command); nothing was written anywhere."""
    before = tree(source.parent)
    with pytest.raises(Refused) as caught:
        rounds.new_round(source, target, clock)
    assert tree(source.parent) == before
    return caught.value.findings[0].code, caught.value.findings[0].next_command


def test_what_was_agreed_and_written_is_carried_over(blocked: Path, tmp_path: Path, clock: FixedClock) -> None:
    before = tree(blocked)
    target = tmp_path / "rounds" / "talk-2"
    clock.step(3600)
    rounds.new_round(blocked, target, clock)
    assert tree(blocked) == before
    new, old = read(target), read(blocked)
    assert new.setup is not None
    assert old.setup is not None
    assert (new.setup.objective, new.setup.participants, new.setup.gates) == (
        old.setup.objective,
        old.setup.participants,
        old.setup.gates,
    )
    assert {name: before[name] for name in CARRIED} == {name: (target / name).read_bytes() for name in CARRIED}
    for name in ("review.md", "conclusion.md"):
        assert (target / name).read_text() == render(name, "en", {})
    assert (new.state.phase, new.state.waiting, len(new.events)) == ("drafting", ("server",), 1)
    assert check(target)[1] == []
    readme = (target / "README.md").read_text()
    assert f"\n## Round\n\n- Previous round: `{blocked}`\n- It ended blocked at seq 8.\n" in readme


def test_a_new_round_is_played_like_any_other(blocked: Path, tmp_path: Path, clock: FixedClock) -> None:
    target = tmp_path / "talk-2"
    rounds.new_round(blocked, target, clock)
    for act in WAY:
        guided.commit(target, act, clock)
        assert check(target)[1] == []
    third = tmp_path / "talk-3"
    rounds.new_round(target, third, clock)
    assert "It ended completed at seq 12." in (third / "README.md").read_text()
    assert rounds.chain(third) == [third, target, blocked]
    assert rounds.chain(target) == [target, blocked]
    assert rounds.chain(blocked) == [blocked]


def test_a_new_round_begins_with_nothing_ticked(make_folder: MakeFolder, tmp_path: Path, clock: FixedClock) -> None:
    """What was ticked was found in the round that ended; the new one has to look again. Answers stay."""
    folder = make_folder("talk", PEOPLE, (GATE,))
    for act in WAY:
        guided.commit(folder, act, clock)
    old = (folder / "readiness.md").read_text()
    assert scan_readiness(old).gate_ticked(GATE)
    rounds.new_round(folder, tmp_path / "next", clock)
    new = (tmp_path / "next" / "readiness.md").read_text()
    assert new == old.replace("- [x] ", "- [ ] ")
    scan = scan_readiness(new)
    assert [tick.text for tick in scan.ticks if tick.ticked] == []
    assert (scan.ready, scan.gate_ticked(GATE), bool(scan.items)) == (False, False, True)


@pytest.mark.parametrize(
    "name",
    [
        "a folder",
        "it's",
        'say "x"',
        "`id`",
        "a`b`",
        "$(id)",
        "{folder}",
        "new\nline",
        "é中",
        "\udcff",
        "- Previous round: `x`",
    ],
)
def test_the_chain_holds_whatever_the_folder_is_called(make_folder: MakeFolder, clock: FixedClock, name: str) -> None:
    folder = make_folder(name)
    guided.commit(folder, guided.block("server", "x"), clock)
    target = Path(f"{folder}-2")
    rounds.new_round(folder, target, clock)
    assert rounds.chain(target) == [target, folder]
    assert check(target)[1] == []
    if "\n" not in name:
        # Somebody who has no sidecar, as after a clone, reads it in README.md.
        shutil.rmtree(target / ".collab")
        assert rounds.chain(target) == [target, folder]


def test_an_objective_cannot_name_another_predecessor(make_folder: MakeFolder, clock: FixedClock) -> None:
    folder = make_folder(objective="Cache\n- Previous round: `/somewhere/else`")
    guided.commit(folder, guided.block("server", "x"), clock)
    target = Path(f"{folder}-2")
    rounds.new_round(folder, target, clock)
    shutil.rmtree(target / ".collab")
    assert rounds.chain(target)[1] == folder


def test_the_sidecar_is_enough(blocked: Path, tmp_path: Path, clock: FixedClock) -> None:
    target = tmp_path / "talk-2"
    rounds.new_round(blocked, target, clock)
    (target / "README.md").unlink()
    guided.commit(target, WAY[0], clock)
    assert rounds.chain(target) == [target, blocked]


def test_a_round_that_goes_on_is_not_continued(make_folder: MakeFolder, tmp_path: Path, clock: FixedClock) -> None:
    folder = make_folder("it's on", PEOPLE)
    for step in (None, *WAY[:5]):
        if step is not None:
            guided.commit(folder, step, clock)
        code, command = refusal(folder, tmp_path / "next", clock)
        assert code == "round_not_over"
        assert main(shlex.split(command or "")[1:]) == 0
    assert not (tmp_path / "next").exists()


def test_a_new_round_needs_a_folder_of_its_own(blocked: Path, make_folder: MakeFolder, clock: FixedClock) -> None:
    assert refusal(blocked, blocked, clock)[0] == "round_same_folder"
    other = make_folder("it's taken")
    code, command = refusal(blocked, other, clock)
    assert code == "collaboration_exists"
    assert main(shlex.split(command or "")[1:]) == 0


def test_nothing_that_stands_in_the_new_folder_is_mistaken_for_the_old(
    blocked: Path, tmp_path: Path, clock: FixedClock
) -> None:
    target = tmp_path / "talk-2"
    target.mkdir()
    (target / "notes.txt").write_text("mine")
    (target / "proposal.md").write_text("another proposal")
    assert refusal(blocked, target, clock)[0] == "round_folder_taken"
    (target / "proposal.md").unlink()
    rounds.new_round(blocked, target, clock)
    assert (target / "notes.txt").read_text() == "mine"
    assert (target / "proposal.md").read_bytes() == (blocked / "proposal.md").read_bytes()


def test_an_interrupted_start_is_taken_up(blocked: Path, tmp_path: Path, clock: FixedClock) -> None:
    """What a killed `new-round` left behind: documents, no protocol.json yet."""
    target = tmp_path / "talk-2"
    rounds.new_round(blocked, target, clock)
    (target / "protocol.json").unlink()
    rounds.new_round(blocked, target, clock)
    assert rounds.chain(target) == [target, blocked]
    assert check(target)[1] == []


@pytest.mark.parametrize("name", ["missing", "empty", "file"])
def test_a_source_that_is_none(tmp_path: Path, clock: FixedClock, name: str) -> None:
    if name == "empty":
        (tmp_path / name).mkdir()
    if name == "file":
        (tmp_path / name).write_text("x")
    assert refusal(tmp_path / name, tmp_path / "next", clock)[0] in (
        "folder_missing",
        "not_a_collaboration",
        "not_a_folder",
    )
    assert not (tmp_path / "next").exists()


def test_a_folder_of_others_may_hold_what_we_never_write(blocked: Path, tmp_path: Path, clock: FixedClock) -> None:
    raw = json.loads((blocked / "protocol.json").read_text())
    raw["participants"] = ["server", "reader", "a - b"]
    (blocked / "protocol.json").write_text(json.dumps(raw))
    assert refusal(blocked, tmp_path / "next", clock)[0] == "participant_malformed"
    assert not (tmp_path / "next").exists()


def test_a_document_that_cannot_be_read_starts_anew(blocked: Path, tmp_path: Path, clock: FixedClock) -> None:
    (blocked / "decisions.md").unlink()
    (blocked / "proposal.md").unlink()
    os.mkfifo(blocked / "proposal.md")
    target = tmp_path / "talk-2"
    rounds.new_round(blocked, target, clock)
    assert (target / "decisions.md").read_text() == render("decisions.md", "en", {})
    assert "Agree on the session cache." in (target / "proposal.md").read_text()
    assert (target / "readiness.md").read_bytes() == (blocked / "readiness.md").read_bytes()


# The chain against what others write


def named(folder: Path, text: str) -> Path | None:
    shutil.rmtree(folder / ".collab", ignore_errors=True)
    (folder / "README.md").unlink(missing_ok=True)
    (folder / "README.md").write_bytes(os.fsencode(text))
    return rounds.predecessor(read(folder))


def test_only_an_absolute_path_in_a_line_of_its_own_is_a_predecessor(make_folder: MakeFolder) -> None:
    folder = make_folder()
    assert named(folder, "- Previous round: `/a b/`c``\n") == Path("/a b/`c`")
    for text in (
        "",
        "- Previous round: ``\n",
        "- Previous round: `../up`\n",
        "x - Previous round: `/a`\n",
        "- Previous round: `/a\n`",
    ):
        assert named(folder, text) is None, text


@pytest.mark.parametrize("kind", ["missing", "link", "fifo", "huge"])
def test_a_readme_that_cannot_be_read_names_nobody(make_folder: MakeFolder, tmp_path: Path, kind: str) -> None:
    folder = make_folder()
    readme = folder / "README.md"
    readme.unlink()
    if kind == "link":
        (tmp_path / "outside").write_text("- Previous round: `/a`\n")
        readme.symlink_to(tmp_path / "outside")
    if kind == "fifo":
        os.mkfifo(readme)
    if kind == "huge":
        with readme.open("wb") as handle:
            handle.truncate(17 * 1024 * 1024)
    assert rounds.predecessor(read(folder)) is None
    assert rounds.chain(folder) == [folder]


def test_a_chain_of_rings_and_of_ruins_ends(make_folder: MakeFolder, tmp_path: Path) -> None:
    one, two = make_folder("one"), make_folder("two")
    for folder, before in ((one, two), (two, one)):
        named(folder, f"- Previous round: `{before}`\n")
    assert rounds.chain(one) == [one, two]
    gone = tmp_path / "gone"
    named(one, f"- Previous round: `{gone}`\n")
    assert rounds.chain(one) == [one, gone]
    named(one, "- Previous round: `/a\0b`\n")
    assert rounds.chain(one) == [one, Path("/a\0b")]


def test_a_long_chain_is_cut(make_folder: MakeFolder) -> None:
    folders = [make_folder(f"round-{number}") for number in range(5)]
    for before, folder in pairwise(folders):
        named(folder, f"- Previous round: `{before}`\n")
    assert rounds.chain(folders[-1]) == folders[::-1]
    assert rounds.chain(folders[-1], limit=3) == folders[:1:-1]


@pytest.mark.parametrize("previous", ["5", "null", '"relative"', '{"a":1}', '""'])
def test_a_sidecar_of_somebody_else_is_not_believed(make_folder: MakeFolder, previous: str) -> None:
    folder = make_folder()
    path = folder / ".collab/history.jsonl"
    path.write_text(path.read_text().replace("{", '{"previous":' + previous + ",", 1))
    assert rounds.predecessor(read(folder)) is None
    path.write_text("rubbish\n")
    assert rounds.predecessor(read(folder)) is None


def test_every_document_is_either_carried_or_new() -> None:
    assert set(DOCUMENTS) == {*CARRIED, "review.md", "conclusion.md"}
