"""Reading and mending one folder: show log diff repair new-round prompt (docs/design.md §3)."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from core.acp.model import DOCUMENTS
from core.acp.reader import read
from core.acp.timeline import Timeline, moment
from core.files import sha256
from core.sanitize import cells
from tests.unit.tui.cli.conftest import GATE, PEOPLE, At, Say, tree
from tests.unit.tui.cli.test_usage import runs
from tui.widgets.diffview import Compared, Wanted, _side
from tui.widgets.glyphs import UNICODE
from tui.widgets.palette import _plain

HYPHEN = replace(UNICODE, minus="-")
SITUATIONS = ("drafting", "reviewing", "one review", "revising", "classified", "accepted", "completed", "blocked")


# show


@pytest.mark.parametrize("situation", SITUATIONS)
def test_show(say: Say, at: At, situation: str) -> None:
    folder = at(situation)
    before = tree(folder)
    snapshot = read(folder)
    state = snapshot.state
    said = say("show", "--folder", str(folder))
    lines = said.out.splitlines()
    assert lines[:6] == [
        "Agree on the session cache.",
        f"folder: {folder}",
        f"phase: {state.phase}",
        "proposal owner: server",
        "participants: server, reader, editor",
        "waiting for: " + (", ".join(state.waiting) or "none"),
    ]
    assert any(line.endswith(f" {GATE}") for line in lines)
    assert not any("next action" in line for line in lines)
    made = say("show", "--folder", str(folder), "-o", "json")
    named = ["triage_code"] if state.phase == "blocked" else []
    assert list(made.document) == ["protocol", "state", "documents", "gates", "rounds", *named, "findings"]
    assert made.document["protocol"] == json.loads(before["protocol.json"])
    assert made.document["state"] == {
        "phase": state.phase,
        "owner": "server",
        "waitingFor": list(state.waiting),
        "seq": state.seq,
    }
    assert made.document["documents"] == {
        name: {"sha256": sha256(before[name]), "bytes": len(before[name])} for name in DOCUMENTS
    }
    assert all(set(gate) == {"state", "text", "where"} for gate in made.document["gates"])
    assert GATE in [gate["text"] for gate in made.document["gates"]]
    assert (said.status, made.status, made.findings, made.document["rounds"]) == (0, 0, [], [])
    assert tree(folder) == before


def test_show_tells_a_person_what_is_next(say: Say, at: At) -> None:
    folder = at("reviewing")
    said = say("show", "--folder", str(folder), "--as", "reader")
    assert "next action for reader: append a structured review" in said.out
    assert f"command: collab review --folder {folder} --as reader\n" in said.out
    assert "next action" not in say("show", "--folder", str(folder), "--as", "stranger").out


def test_show_one_document(say: Say, at: At) -> None:
    folder = at("classified")
    for name in DOCUMENTS:
        text = (folder / name).read_text()
        assert say("show", "--folder", str(folder), "--doc", name).out == text.rstrip("\n") + "\n"
        made = say("show", "--folder", str(folder), "--doc", name, "-o", "json").document
        data = (folder / name).read_bytes()
        assert made == {"name": name, "text": text, "sha256": sha256(data), "bytes": len(data), "findings": []}


@pytest.mark.parametrize(
    "name", ["", "proposal", "../talk/proposal.md", "/etc/passwd", "events.jsonl", ".collab/lock", "\x1b"]
)
def test_show_only_documents(say: Say, at: At, name: str) -> None:
    said = say("show", "--folder", str(at("drafting")), f"--doc={name}", "-o", "json")
    assert (said.status, said.codes) == (2, ["document_unknown"])
    assert "proposal.md" in said.findings[0]["cause"]


def test_show_a_document_that_is_none(say: Say, at: At) -> None:
    folder = at("drafting")
    (folder / "proposal.md").unlink()
    assert say("show", "--folder", str(folder), "--doc", "proposal.md", "-o", "json").codes == ["file_missing"]
    (folder / "proposal.md").symlink_to("/etc/passwd")
    said = say("show", "--folder", str(folder), "--doc", "proposal.md")
    assert (said.status, said.out) == (2, "")
    assert "symbolic link" in said.err
    made = say("show", "--folder", str(folder), "-o", "json").document
    assert made["documents"]["proposal.md"] is None
    assert "symbolic link" in say("show", "--folder", str(folder)).out


def test_show_as_it_was(say: Say, at: At) -> None:
    folder = at("completed")
    proposals = {
        1: "# Proposal\n\n## Purpose",
        2: "# Proposal\n",
        5: "# Proposal\n\nRevised.\n",
        12: "# Proposal\n\nRevised.\n",
    }
    phases = {
        1: "drafting",
        2: "reviewing",
        3: "reviewing",
        4: "revising",
        5: "decision_review",
        10: "readiness_check",
        12: "completed",
    }
    for seq, phase in phases.items():
        said = say("show", "--folder", str(folder), "--at", str(seq), "-o", "json")
        assert said.document["state"]["phase"] == phase
        assert said.document["state"]["seq"] == seq
        ready = next(gate for gate in said.document["gates"] if gate["text"] == "Ready to implement")
        assert ready["state"] == ("done" if phase == "completed" else "open")
        text = say("show", "--folder", str(folder), "--at", str(seq)).out
        assert f"as it was after seq {seq}\n" in text
    for seq, proposal in proposals.items():
        made = say("show", "--folder", str(folder), "--at", str(seq), "--doc", "proposal.md", "-o", "json").document
        assert made["text"].startswith(proposal)
        assert made["sha256"] == sha256(made["text"].encode())


def test_show_what_is_not_known_any_more(say: Say, at: At) -> None:
    folder = at("completed")
    shutil.rmtree(folder / ".collab")
    said = say("show", "--folder", str(folder), "--at", "2", "--doc", "proposal.md", "-o", "json")
    assert (said.status, said.codes) == (2, ["content_unknown"])
    made = say("show", "--folder", str(folder), "--at", "2", "-o", "json")
    assert (made.status, made.document["documents"]["proposal.md"]) == (0, None)
    assert "unknown at that time" in say("show", "--folder", str(folder), "--at", "2").out


def test_the_gates_of_a_moment_whose_documents_are_unknown_say_so(say: Say, at: At) -> None:
    folder = at("completed")
    shutil.rmtree(folder / ".collab")
    gates = say("show", "--folder", str(folder), "--at", "5", "-o", "json").document["gates"]
    of_documents = [gate for gate in gates if gate["where"].endswith(".md")]
    assert of_documents
    assert all(gate["state"] == "open" and gate["text"].startswith("unknown then: ") for gate in of_documents)


# log


def test_the_story_of_an_event_has_only_what_led_to_it(say: Say, at: At) -> None:
    folder = at("completed")
    whole = say("log", "--folder", str(folder), "-o", "json").document["events"]
    said = say("log", "--folder", str(folder), "--story", "5", "-o", "json")
    told = [one["event"]["seq"] for one in said.document["story"]]
    assert told[-1] == 5
    assert len(told) < len(whole)
    assert said.document["events"] == [event for event in whole if event["seq"] in told]
    revised = said.document["story"][-1]
    assert revised["event"]["event"] == "proposal_revised"
    assert revised["changed"] == ["proposal.md"]
    assert "proposal.md  +" in say("log", "--folder", str(folder), "--story", "5").out
    shutil.rmtree(folder / ".collab")
    assert "unknown" in say("log", "--folder", str(folder), "--story", "5").out


def test_the_story_of_what_is_not_there_is_refused(say: Say, at: At) -> None:
    folder = at("completed")
    assert say("log", "--folder", str(folder), "--story", "99", "-o", "json").codes == ["seq_unknown"]
    assert say("log", "--folder", str(folder), "--story", "D77", "-o", "json").codes == ["decision_unknown"]


@pytest.mark.parametrize("situation", SITUATIONS)
def test_log(say: Say, at: At, situation: str) -> None:
    folder = at(situation)
    raw = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    said = say("log", "--folder", str(folder))
    lines = said.out.splitlines()
    assert len(lines) == len(raw)
    for line, event in zip(lines, raw, strict=True):
        assert re.match(rf" *{event['seq']}  {event['at']}  {event['from']} *  {event['event']}  \"", line), line
        assert ("reply_to" in event) == line.endswith(f"\u21a9 {event.get('reply_to')}")
    made = say("log", "--folder", str(folder), "-o", "json")
    assert made.document == {"events": raw, "findings": []}


def test_log_from_a_seq_on(say: Say, at: At) -> None:
    folder = at("completed")
    made = say("log", "--folder", str(folder), "--from-seq", "11", "-o", "json")
    assert [event["seq"] for event in made.document["events"]] == [11, 12]
    assert say("log", "--folder", str(folder), "--from-seq", "99").out == ""


def test_log_of_a_damaged_file(say: Say, at: At) -> None:
    folder = at("reviewing")
    with (folder / "events.jsonl").open("a") as log:
        log.write('rubbish\n{"seq":9}\n{"seq":10,"fr')
    made = say("log", "--folder", str(folder), "-o", "json")
    assert [event.get("seq") for event in made.document["events"]] == [1, 2, 9]
    assert made.codes == ["log_damaged", "log_torn"]
    text = say("log", "--folder", str(folder))
    assert len(text.out.splitlines()) == 3
    assert text.err.count("error: events.jsonl line") == 2
    runs(say, made)


# diff


def test_diff_since_an_event(say: Say, at: At) -> None:
    folder = at("completed")
    before = tree(folder)
    said = say("diff", "--folder", str(folder), "--since", "2", "--doc", "proposal.md")
    assert said.out == "--- proposal.md at seq 2\n+++ proposal.md now\n@@ -1 +1,3 @@\n # Proposal\n+\n+Revised.\n"
    made = say("diff", "--folder", str(folder), "--since", "2", "--doc", "proposal.md", "-o", "json")
    assert made.document == {
        "from": 2,
        "to": None,
        "hunks": [{"document": "proposal.md", "header": "@@ -1 +1,3 @@", "lines": [" # Proposal", "+", "+Revised."]}],
        "findings": [],
    }
    everything = say("diff", "--folder", str(folder), "--since", "2", "-o", "json").document
    assert {hunk["document"] for hunk in everything["hunks"]} == set(DOCUMENTS)
    assert tree(folder) == before


def test_diff_between_two_events(say: Say, at: At) -> None:
    folder = at("completed")
    made = say("diff", "--folder", str(folder), "--since", "4", "--until", "7", "-o", "json").document
    assert (made["from"], made["to"]) == (4, 7)
    assert {hunk["document"] for hunk in made["hunks"]} == {"proposal.md", "decisions.md", "readiness.md"}
    assert "proposal.md at seq 7" in say("diff", "--folder", str(folder), "--since", "4", "--until", "7").out
    same = say("diff", "--folder", str(folder), "--since", "8", "--until", "9")
    assert (same.status, same.out) == (0, "no document changed since seq 8\n")
    back = say("diff", "--folder", str(folder), "--since", "5", "--until", "2", "--doc", "proposal.md", "-o", "json")
    assert back.document["hunks"][0]["lines"] == [" # Proposal", "-", "-Revised."]


def test_diff_since_my_review(say: Say, at: At, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = at("proposed")
    made = say("diff", "--folder", str(folder), "--as", "reader", "--since-my-review", "-o", "json").document
    assert made["from"] == 3
    assert {hunk["document"] for hunk in made["hunks"]} == {"proposal.md", "review.md", "decisions.md"}
    monkeypatch.setenv("COLLAB_AS", "editor")
    assert say("diff", "--folder", str(folder), "--since-my-review", "-o", "json").document["from"] == 4
    said = say("diff", "--folder", str(folder), "--as", "server", "--since-my-review", "-o", "json")
    assert (said.status, said.codes) == (2, ["review_none"])


@pytest.mark.parametrize("columns", [40, 72, 100, 200])
def test_diff_side_by_side_is_what_the_console_shows(
    say: Say, at: At, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = at("completed")
    now, line = read(folder), Timeline(read(folder))
    monkeypatch.setenv("COLUMNS", str(columns))
    before = tree(folder)
    words = ("diff", "--folder", str(folder), "--as", "reader", "--doc", "proposal.md", "--side-by-side")
    for since, until in ((2, 8), (5, 2)):
        said = say(*words, "--since", str(since), "--until", str(until))
        moments = [f"{word} {moment(now.events[seq - 1])}" for word, seq in (("since", since), ("until", until))]
        texts = [line.at(seq - 1).document("proposal.md").text for seq in (since, until)]
        wanted = Wanted(0, Compared("proposal.md", *texts, *moments), True, columns, _plain("", True), HYPHEN)
        assert said.out.splitlines() == ["proposal.md", *(row.plain.rstrip() for row in _side(wanted)), ""]
        assert all(cells(row) <= columns for row in said.out.splitlines())
    mine = say(*words, "--since-my-review").out.splitlines()
    assert "your review" in mine[1] or columns == 40
    assert any("unchanged lines" in row for row in say(*words[:-3], "--side-by-side", "--since", "2").out.splitlines())
    assert tree(folder) == before


def test_diff_side_by_side_pairs_a_line_with_what_became_of_it(
    say: Say, at: At, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = at("proposed")
    monkeypatch.setenv("COLUMNS", "60")
    old = (folder / "proposal.md").read_text()
    (folder / "proposal.md").write_text("\x1b[2J一二三四五六七八九十一二三四五六七八九十\n" + old)
    said = say("diff", "--folder", str(folder), "--since", "6", "--doc", "proposal.md", "--side-by-side")
    rows = said.out.splitlines()
    assert rows[0] == "proposal.md"
    assert rows[1].endswith("│ until now")
    assert [row.index("│") for row in rows[1:-1]] == [29] * len(rows[1:-1])
    assert rows[2].split("│")[1].startswith(" + ␛[2J一二三")
    assert rows[-2].split("│")[0].strip() == rows[-2].split("│")[1].strip() == "Revised."
    same = say("diff", "--folder", str(folder), "--since", "6", "--doc", "review.md", "--side-by-side")
    assert same.out == "no document changed since seq 6\n"
    document = say(
        "diff", "--folder", str(folder), "--since", "6", "--doc", "proposal.md", "--side-by-side", "-o", "json"
    ).document
    assert document["hunks"][0]["lines"][0].startswith("+\x1b[2J一二三"), "programs get the same hunks"


def test_diff_needs_to_know_since_when(say: Say, at: At) -> None:
    folder = str(at("proposed"))
    for argv in ((), ("--until", "3"), ("--doc", "proposal.md")):
        assert say("diff", "--folder", folder, *argv, "-o", "json").codes == ["usage_wrong"]
    said = say("diff", "--folder", folder, "--since", "2", "--since-my-review", "--as", "reader", "-o", "json")
    assert (said.status, said.codes) == (2, ["usage_contradiction"])


@pytest.mark.parametrize("name", ["", "nonsense.md", "../proposal.md", "events.jsonl"])
def test_diff_of_what_is_no_document(say: Say, at: At, name: str) -> None:
    said = say("diff", "--folder", str(at("proposed")), "--since", "2", f"--doc={name}", "-o", "json")
    assert (said.status, said.codes) == (2, ["document_unknown"])


def test_diff_of_what_is_not_known(say: Say, at: At) -> None:
    folder = at("proposed")
    shutil.rmtree(folder / ".collab/objects")
    said = say("diff", "--folder", str(folder), "--since", "2", "-o", "json")
    assert said.status == 1
    assert set(said.codes) == {"content_unknown"}
    assert "the content of proposal.md at seq 2 is unknown" in say("diff", "--folder", str(folder), "--since", "2").err


def test_diff_of_a_document_that_is_gone(say: Say, at: At) -> None:
    folder = at("proposed")
    (folder / "decisions.md").unlink()
    said = say("diff", "--folder", str(folder), "--since", "6", "-o", "json")
    assert said.status == 1
    assert [item["cause"] for item in said.findings] == ["decisions.md cannot be read now: missing decisions.md"]


def test_diff_of_a_huge_document_ends(say: Say, at: At) -> None:
    """Many lines, alike and in another order: what a quadratic comparison would not survive."""
    folder = at("proposed")
    path = folder / "decisions.md"
    path.write_text("".join(f"- {number % 50}\n" for number in range(40_000)))
    assert say("propose", "--folder", str(folder), "--as", "server").status == 0
    path.write_text("".join(f"- {number % 49}\n" for number in range(40_000)))
    made = say("diff", "--folder", str(folder), "--since", "7", "--doc", "decisions.md", "-o", "json")
    assert made.status == 0
    lines = [line for hunk in made.document["hunks"] for line in hunk["lines"]]
    assert lines


# repair


@pytest.mark.parametrize("situation", SITUATIONS)
def test_repair_of_a_whole_folder(say: Say, at: At, situation: str) -> None:
    folder = at(situation)
    before = tree(folder)
    # Its receipts did not come along.
    assert all(
        "the receipt" in item["cause"]
        for item in say("repair", "--folder", str(folder), "-o", "json").document["mended"]
    )
    said = say("repair", "--folder", str(folder))
    assert (said.status, said.out, said.err) == (0, "nothing to mend\n", "")
    assert say("repair", "--folder", str(folder), "-o", "json").document == {"mended": [], "findings": []}
    assert tree(folder) == before


def test_repair_says_what_it_did(say: Say, at: At) -> None:
    folder = at("reviewing")
    with (folder / "events.jsonl").open("a") as log:
        log.write('{"seq":3,"fr')
    setup = json.loads((folder / "protocol.json").read_text())
    (folder / "protocol.json").write_text(json.dumps({**setup, "currentPhase": "drafting"}))
    copy = Path(shutil.copytree(folder, folder.parent / "copy"))
    said = say("repair", "--folder", str(folder))
    assert said.status == 0
    assert [line.split(" ", 1)[0] for line in said.out.splitlines()] == ["mended:", "mended:"]
    made = say("repair", "--folder", str(copy), "-o", "json")
    assert [item["code"] for item in made.document["mended"]] == ["log_torn_mended", "projection_rebuilt"]
    assert made.findings == []
    for one in (folder, copy):
        assert say("validate", "--folder", str(one)).status == 0


def test_repair_says_what_it_cannot_mend(say: Say, at: At) -> None:
    folder = at("reviewing")
    (folder / "state.log").write_text("")
    said = say("repair", "--folder", str(folder), "-o", "json")
    assert (said.status, said.document["mended"], said.codes) == (2, [], ["file_forbidden"])


def test_what_repair_is_offered_for_it_mends(say: Say, at: At) -> None:
    folder = at("reviewing")
    with (folder / "events.jsonl").open("a") as log:
        log.write('{"seq":3,"fr')
    offered = say("validate", "--folder", str(folder), "-o", "json").commands
    assert offered == [["collab", "repair", "--folder", str(folder)]]
    assert say(*offered[0][1:]).status == 0
    assert say("validate", "--folder", str(folder)).status == 0


# new-round


@pytest.mark.parametrize("situation", ["blocked", "completed"])
def test_a_new_round(say: Say, at: At, situation: str) -> None:
    folder = at(situation, "it's over")
    target = folder.parent / "next `round`"
    said = say("new-round", "--from", str(folder), "--folder", str(target))
    assert (said.status, said.out) == (0, f"new round in {target}, continuing {folder}\n")
    assert say("validate", "--folder", str(target)).status == 0
    assert f"previous round: {folder}\n" in say("show", "--folder", str(target)).out
    assert say("show", "--folder", str(target), "-o", "json").document["rounds"] == [str(folder)]
    other = folder.parent / "other"
    made = say("new-round", "--from", str(folder), "--folder", str(other), "-o", "json")
    assert made.document == {"folder": str(other), "predecessor": str(folder), "findings": []}
    third = folder.parent / "third"
    assert say("block", "--folder", str(target), "--as", "server", "--reason", "x").status == 0
    assert say("new-round", "--from", str(target), "--folder", str(third)).status == 0
    rounds = say("show", "--folder", str(third), "-o", "json").document["rounds"]
    assert rounds == [str(target), str(folder)]


@pytest.mark.parametrize("situation", ["drafting", "revising", "accepted"])
def test_no_new_round_of_what_goes_on(say: Say, at: At, situation: str) -> None:
    folder = at(situation)
    target = folder.parent / "next"
    made = say("new-round", "--from", str(folder), "--folder", str(target), "-o", "json")
    assert (made.status, made.codes) == (2, ["round_not_over"])
    runs(say, made)
    assert not target.exists()


def test_the_command_that_a_block_offers_works_once(say: Say, at: At) -> None:
    folder = at("blocked", "a `talk`")
    words = say("next", "--folder", str(folder), "--participant", "reader", "-o", "json").document["command"]
    argv = shlex.split(words)[1:]
    assert say(*argv).status == 0
    assert say("next", "--folder", f"{folder}-2", "--participant", "server").status == 0
    again = say(*argv, "-o", "json")
    assert (again.status, again.codes) == (2, ["collaboration_exists"])
    runs(say, again)


def test_new_round_arguments(say: Say, at: At) -> None:
    folder = at("blocked")
    assert say("new-round", "--from", str(folder), "-o", "json").codes == ["usage_wrong"]
    assert say("new-round", "--folder", str(folder), "-o", "json").codes == ["usage_wrong"]
    assert say("new-round", "--from", "", "--folder", "x", "-o", "json").codes == ["usage_wrong"]
    assert say("new-round", "--from", str(folder), "--folder", str(folder), "-o", "json").codes == ["round_same_folder"]
    missing = say(
        "new-round", "--from", str(folder.parent / "missing"), "--folder", str(folder.parent / "x"), "-o", "json"
    )
    assert missing.codes == ["folder_missing"]
    for place in ("/proc/collab", "/dev/null/x"):
        assert say("new-round", "--from", str(folder), "--folder", place).status == 2
    assert os.listdir(folder.parent) == ["talk"]


# prompt


@pytest.mark.parametrize("who", PEOPLE)
def test_prompt(say: Say, at: At, who: str) -> None:
    folder = at("reviewing")
    said = say("prompt", "--folder", str(folder), "--as", who)
    assert said.status == 0
    assert said.out.startswith(f"You are {who}, a participant of an agent collaboration.")
    made = say("prompt", "--folder", str(folder), "--as", who, "-o", "json")
    assert set(made.document) == {"text", "findings"}
    assert made.document["text"].rstrip("\n") == said.out.rstrip("\n")
