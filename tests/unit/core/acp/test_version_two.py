"""Beginning, declaring, freezing and continuing deliverables (docs/specs/acp.md §5–§7)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core import files
from core.acp import guided, rounds, store, supporting
from core.acp.check import check
from core.acp.declare import Declaration, begin, with_status
from core.acp.model import DELIVERABLE_TYPES, Deliverable, Draft
from core.acp.prompt import prompt
from core.acp.reader import read
from core.acp.templates import initialize
from core.files import sha256
from core.finding import Refused
from tests.conftest import FixedClock, MakeFolder

PEOPLE = ("server", "reader")
REF = "deliverables/adr.md"
ADR = Declaration("adr")


def make(path: Path, declared: Declaration = ADR, people: tuple[str, ...] = PEOPLE) -> Path:
    initialize(path, "Agree", people, ["Measured"], FixedClock(), declared=declared)
    return path


def fill(file: Path, status: str = "In Review") -> None:
    file.write_text(
        file.read_text().replace("\n\n## ", "\n\nSo.\n\n## ").replace("Status: Draft", f"Status: {status}") + "\nSo.\n"
    )


def say(folder: Path, who: str, event: str, **more: Any) -> None:
    seq = len(read(folder).events)
    store.append(folder, Draft(who, event, "x", reply_to=seq, **more), clock=FixedClock())


def to_readiness(folder: Path, ref: str = REF) -> None:
    """Everything up to readiness_check; the primary deliverable is filled already."""
    say(folder, "server", "deliverable_drafted", doc=ref, role="primary")
    say(folder, "server", "proposal_submitted", doc="proposal.md")
    guided.commit(folder, guided.review("reader", guided.compose.ReviewText("Yes")), FixedClock())
    (folder / "decisions.md").write_text(f"# D\n\n### D1. A\n\n- Decision: B\n- Reflected in: `{ref}`\n")
    say(folder, "server", "proposal_revised", doc="proposal.md")
    guided.commit(folder, guided.classify("server", guided.compose.Classification(["Q"])), FixedClock())
    for who in PEOPLE:
        say(folder, who, "decision_accepted", doc="decisions.md")


def refused(call: Any, *argv: Any) -> str:
    with pytest.raises(Refused) as caught:
        call(*argv)
    return caught.value.findings[0].code


def tree(place: Path) -> dict[str, bytes]:
    return {str(one): one.read_bytes() for one in place.rglob("*") if one.is_file() and one.name != "lock"}


@pytest.mark.parametrize("kind", DELIVERABLE_TYPES)
def test_a_file_begins_with_every_section_and_none_that_could_be_frozen(tmp_path: Path, kind: str) -> None:
    checks = ("A", "B") if kind == "custom" else ()
    folder = make(tmp_path / "t", Declaration(kind, "x.md", checks))
    assert check(folder)[1] == []
    fill_only_status = with_status((folder / "deliverables/x.md").read_bytes(), "Frozen", "x")
    assert b"Status: Frozen" in fill_only_status


BAD = [
    (Declaration("novel"), "deliverable_type_unknown"),
    (Declaration("custom", checks=("A",)), "deliverable_file_missing"),
    (Declaration("custom", "a.md"), "deliverable_check_missing"),
    (Declaration("custom", "a.md", ("A\nB",)), "deliverable_check_malformed"),
    (Declaration("adr", "a.txt"), "deliverable_file_malformed"),
    (Declaration("adr", "../a.md"), "deliverable_file_malformed"),
    (Declaration("adr", "a`b.md"), "deliverable_file_malformed"),
    (Declaration("adr", dir="../x"), "deliverables_dir_malformed"),
    (Declaration("adr", dir=" "), "deliverables_dir_malformed"),
    (Declaration("adr", mode="else"), "deliverables_mode_unknown"),
    (Declaration("adr", mode="external"), "repo_root_wrong"),
    (Declaration("adr", mode="external", repo_root="/"), "repo_root_wrong"),
    (Declaration("adr", mode="external", repo_root="../none"), "repo_root_wrong"),
    (Declaration("adr", mode="external", repo_root="sub"), "repo_root_wrong"),
    (Declaration("adr", repo_root=".."), "repo_root_wrong"),
    (Declaration("adr", "proposal.md", dir="."), "deliverable_place_taken"),
    (Declaration("adr", "opinions.md"), "gate_obsolete"),
]


@pytest.mark.parametrize(("declared", "code"), BAD, ids=[f"{index}-{one[1]}" for index, one in enumerate(BAD)])
def test_a_wrong_declaration_writes_nothing(tmp_path: Path, declared: Declaration, code: str) -> None:
    assert refused(make, tmp_path / "t", declared) == code
    assert not (tmp_path / "t").exists()


def test_one_participant_is_too_few(tmp_path: Path) -> None:
    assert refused(make, tmp_path / "t", ADR, ("server",)) == "participant_missing"


def test_a_file_that_is_there_is_kept_or_refused(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    (folder / "deliverables").mkdir(parents=True)
    file = folder / REF
    file.write_text("# Theirs\n")
    assert refused(make, folder) == "deliverable_place_taken"
    assert [one.name for one in folder.rglob("*") if one.is_file()] == ["adr.md"]
    file.write_bytes(begin(Deliverable("adr", "adr.md"), "Theirs"))
    assert check(make(folder))[1] == []
    assert file.read_text().startswith("# Theirs\n")


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "docs").symlink_to(tmp_path / "elsewhere")
    declared = Declaration("adr", mode="external", repo_root="..", dir="docs")
    assert refused(make, tmp_path / "t", declared) == "path_is_link"
    assert not (tmp_path / "t").exists()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_freeze_is_status_digest_and_event_in_one(tmp_path: Path) -> None:
    folder = make(tmp_path / "t")
    fill(folder / REF)
    (folder / REF).write_bytes((folder / REF).read_bytes().replace(b"\n", b"\r\n"))
    before = (folder / REF).read_bytes()
    assert refused(guided.commit, folder, guided.freeze("server")) == "phase_not_allowed"
    assert (folder / REF).read_bytes() == before
    to_readiness(folder)
    assert refused(guided.commit, folder, guided.freeze("reader")) == "actor_not_expected"
    made = guided.commit(folder, guided.freeze("server"), FixedClock())
    frozen = (folder / REF).read_bytes()
    assert frozen == before.replace(b"In Review", b"Frozen")
    assert (made.event.sha256, made.event.role, made.event.doc) == (sha256(frozen), "primary", REF)
    assert refused(guided.commit, folder, guided.freeze("server")) == "freeze_repeated"
    assert check(folder)[1] == []


@pytest.mark.parametrize("fault", ["write", "fsync", "rename"])
def test_a_freeze_that_fails_leaves_the_draft(tmp_path: Path, fault: str) -> None:
    folder = make(tmp_path / "t")
    fill(folder / REF)
    to_readiness(folder)
    before, log = (folder / REF).read_bytes(), (folder / "events.jsonl").read_bytes()

    def hook(operation: str, name: str) -> None:
        if operation == fault and name == REF:
            raise OSError(28, "full")

    files._faults.append(hook)
    try:
        assert refused(guided.commit, folder, guided.freeze("server")) == "disk_full"
    finally:
        files._faults.remove(hook)
    assert ((folder / REF).read_bytes(), (folder / "events.jsonl").read_bytes()) == (before, log)
    assert guided.commit(folder, guided.freeze("server")).event.name == "deliverable_frozen"


def test_an_empty_section_or_a_missing_file_cannot_be_frozen(tmp_path: Path) -> None:
    folder = make(tmp_path / "t")
    to_readiness(folder)
    before = (folder / REF).read_bytes()
    assert refused(guided.commit, folder, guided.freeze("server")) == "deliverable_section_empty"
    assert (folder / REF).read_bytes() == before
    (folder / REF).unlink()
    assert refused(guided.commit, folder, guided.freeze("server")) == "file_missing"


def test_a_supporting_deliverable_is_declared_whole_or_not_at_all(tmp_path: Path) -> None:
    folder = make(tmp_path / "t")
    before = tree(folder)

    def hook(operation: str, name: str) -> None:
        if operation == "rename" and name == "protocol.json":
            raise OSError(28, "full")

    files._faults.append(hook)
    try:
        assert refused(supporting.add, folder, "server", "plan.md", "test-plan") == "disk_full"
    finally:
        files._faults.remove(hook)
    assert tree(folder) == before
    for argv, code in (
        (("reader", "plan.md", "test-plan"), "actor_not_expected"),
        (("nobody", "plan.md", "test-plan"), "participant_unknown"),
        (("server", "plan.txt", "test-plan"), "deliverable_file_malformed"),
        (("server", "plan.md", "novel"), "deliverable_type_unknown"),
        (("server", "plan.md", "custom"), "deliverable_check_missing"),
        (("server", "adr.md", "adr"), "deliverable_declared"),
    ):
        assert refused(supporting.add, folder, *argv) == code
    assert tree(folder) == before
    made, _ = supporting.add(folder, "server", "plan.md", "test-plan", (), FixedClock())
    assert made.ref == "deliverables/plan.md"
    assert check(folder)[1] == []
    fill(folder / REF)
    say(folder, "server", "deliverable_drafted", doc=REF, role="primary")
    say(folder, "server", "proposal_submitted", doc="proposal.md")
    assert refused(supporting.add, folder, "server", "more.md", "adr") == "phase_not_allowed"


def test_a_freeze_of_a_supporting_one_marks_it_and_raises_no_warning(tmp_path: Path) -> None:
    folder = make(tmp_path / "t")
    supporting.add(folder, "server", "plan.md", "test-plan", (), FixedClock())
    fill(folder / REF)
    fill(folder / "deliverables/plan.md", "Frozen")
    say(folder, "server", "deliverable_drafted", doc=REF, role="primary")
    say(folder, "server", "proposal_submitted", doc="proposal.md")
    guided.commit(folder, guided.freeze("server", "deliverables/plan.md"), FixedClock())
    guided.commit(folder, guided.review("reader", guided.compose.ReviewText("Yes")), FixedClock())
    assert json.loads((folder / "protocol.json").read_text())["deliverables"]["supporting"][0]["frozen"] is True
    assert check(folder)[1] == []


def test_what_another_tool_froze_without_marking_it_is_mended(tmp_path: Path) -> None:
    folder = make(tmp_path / "t")
    supporting.add(folder, "server", "plan.md", "test-plan", (), FixedClock())
    plan = folder / "deliverables/plan.md"
    fill(plan, "Frozen")
    event = {
        "seq": 2,
        "from": "server",
        "event": "deliverable_frozen",
        "at": "2026-03-01T09:00:00Z",
        "summary": "x",
        "doc": "deliverables/plan.md",
        "reply_to": 1,
        "role": "supporting",
        "sha256": sha256(plan.read_bytes()),
    }
    with (folder / "events.jsonl").open("a") as handle:
        handle.write(json.dumps(event, separators=(",", ":")) + "\n")
    assert [one.code for one in check(folder)[1]] == ["supporting_freeze_unmarked"]
    assert [one.code for one in store.mend(folder, FixedClock())] == ["projection_rebuilt"]
    assert check(folder)[1] == []


def test_which_event_a_deliverable_gets_follows_from_the_log(tmp_path: Path) -> None:
    folder = make(tmp_path / "t")
    supporting.add(folder, "server", "plan.md", "test-plan", clock=FixedClock())
    plan, made = "deliverables/plan.md", []

    def deliver(ref: str | None = None, text: str | None = None) -> None:
        guided.commit(folder, guided.deliver(read(folder), "server", ref, text), FixedClock())
        made.append(read(folder).events[-1])

    deliver(text="# Ours\n" + (folder / REF).read_text())
    deliver()
    deliver(plan)
    deliver(plan)
    say(folder, "server", "proposal_submitted", doc="proposal.md")
    guided.commit(folder, guided.review("reader", guided.compose.ReviewText("Yes")), FixedClock())
    deliver(REF)
    assert [(event.name, event.doc, event.role) for event in made] == [
        ("deliverable_drafted", REF, "primary"),
        ("deliverable_drafted", REF, "primary"),
        ("deliverable_drafted", plan, "supporting"),
        ("deliverable_revised", plan, "supporting"),
        ("deliverable_revised", REF, "primary"),
    ]
    assert (folder / REF).read_text().startswith("# Ours\n")
    assert check(folder)[1] == []


@pytest.mark.parametrize(
    ("who", "ref", "text", "code"),
    [
        ("reader", None, None, "actor_not_expected"),
        ("reader", None, "x", "actor_not_expected"),
        ("reader", "deliverables/plan.md", "x", "document_not_yours"),
        ("server", "deliverables/none.md", "x", "deliverable_doc_wrong"),
        ("server", "proposal.md", "x", "deliverable_doc_wrong"),
        ("server", "../../x.md", "x", "path_outside_folder"),
        ("nobody", None, "x", "participant_unknown"),
    ],
)
def test_a_deliverable_is_written_by_its_owner_alone(
    tmp_path: Path, who: str, ref: str | None, text: str | None, code: str
) -> None:
    folder = make(tmp_path / "t")
    supporting.add(folder, "server", "plan.md", "test-plan", clock=FixedClock())
    before = tree(tmp_path)
    assert refused(guided.commit, folder, guided.deliver(read(folder), who, ref, text), FixedClock()) == code
    assert tree(tmp_path) == before


def test_a_version_one_folder_has_no_deliverable_to_write(make_folder: MakeFolder) -> None:
    folder = make_folder()
    act = guided.deliver(read(folder), "server", None, "x")
    assert refused(guided.commit, folder, act, FixedClock()) == "event_unknown"


@pytest.mark.parametrize("mode", ["internal", "external"])
def test_a_new_round_takes_drafts_supporting_files_and_attachments_along(tmp_path: Path, mode: str) -> None:
    external = replace(ADR, mode="external", repo_root="..", dir="docs")
    folder = make(tmp_path / "t", ADR if mode == "internal" else external)
    base = folder / "deliverables" if mode == "internal" else tmp_path / "docs"
    supporting.add(folder, "server", "plan.md", "test-plan", (), FixedClock())
    raw = json.loads((folder / "protocol.json").read_text())
    raw["deliverables"]["attachments"] = [{"file": "chart.png"}]
    (folder / "protocol.json").write_text(json.dumps(raw))
    (base / "chart.png").write_bytes(b"\x89PNG")
    fill(base / "adr.md")
    to_readiness(folder, REF if mode == "internal" else "external:adr.md")
    guided.commit(folder, guided.freeze("server"), FixedClock())
    guided.commit(folder, guided.block("reader", "no host"), FixedClock())
    assert check(folder)[1] == []
    before = tree(folder), (base / "adr.md").read_bytes()
    second = tmp_path / "t-2"
    rounds.new_round(folder, second, FixedClock())
    assert (tree(folder), (base / "adr.md").read_bytes()) == before
    assert check(folder)[1] == []
    assert check(second)[1] == []
    new = json.loads((second / "protocol.json").read_text())
    assert (new["schemaVersion"], new["objectiveGates"]) == (2, ["Measured"])
    name = new["deliverables"]["primary"]["file"]
    assert name == ("adr.md" if mode == "internal" else "adr-2.md")
    there = (second / "deliverables" if mode == "internal" else base) / name
    assert there.read_bytes() == before[1].replace(b"Status: Frozen", b"Status: Draft")
    assert [one["file"] for one in new["deliverables"]["supporting"]] == ["plan.md"]
    assert f"{'deliverables/' if mode == 'internal' else 'external:'}{name}" in (second / "decisions.md").read_text()
    assert refused(rounds.new_round, second, tmp_path / "t-3", FixedClock()) == "round_not_over"
    if mode == "external":
        far = tmp_path.parent / f"{tmp_path.name}-far"
        assert refused(rounds.new_round, folder, far, FixedClock()) == "repo_root_wrong"
        assert not far.exists()


def test_the_prompt_speaks_of_the_deliverable(tmp_path: Path) -> None:
    folder = make(tmp_path / "t")
    text = prompt(read(folder), "server")
    assert f"fill every section of `{REF}`" in text
    assert "collab freeze" in text
    assert f"read proposal.md and `{REF}`" in prompt(read(folder), "reader")
