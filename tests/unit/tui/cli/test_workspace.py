"""What there is and what waits: list, inbox (docs/design.md §3)."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from core.state import UserState
from tests.unit.tui.cli.conftest import At, Say, tree
from tests.unit.tui.cli.test_usage import runs

ITEM_KEYS = ["kind", "path", "title", "phase", "waitingFor", "since", "health"]
INBOX_KEYS = [
    "id", "kind", "lane", "path", "title", "who", "why", "since", "deadline", "action", "command",
]  # fmt: skip


@pytest.fixture
def workspace(at: At) -> Path:
    """One for the reader, one for the owner, one blocked, one completed, one unreadable, one damaged."""
    root = at("reviewing", "ws/for reader").parent
    at("accepted", "ws/for server")
    at("blocked", "ws/stopped")
    at("completed", "ws/over")
    (at("drafting", "ws/unreadable") / "protocol.json").write_text("{")
    with (at("drafting", "ws/damaged") / "events.jsonl").open("a") as log:
        log.write("rubbish\n")
    return root


# list


def test_list(say: Say, workspace: Path) -> None:
    before = tree(workspace)
    said = say("list", str(workspace))
    lines = said.out.splitlines()
    assert (said.status, said.err, len(lines)) == (0, "", 6)
    assert all(
        line.split()[0] in ("drafting", "reviewing", "readiness_check", "completed", "blocked", "unknown")
        for line in lines
    )
    assert lines == sorted(lines, key=lambda line: line[line.index(str(workspace)) :])
    by_name = {line.partition(f"{workspace}/")[2].partition("  ! ")[0]: line for line in lines}
    assert "waits for editor, reader" in by_name["for reader"]
    assert "waits for nobody" in by_name["over"]
    assert by_name["damaged"].endswith(
        "! damaged: events.jsonl line 2: invalid JSON: Expecting value: line 1 column 1 (char 0)"
    )
    assert "! unreadable: invalid protocol.json" in by_name["unreadable"]
    assert tree(workspace) == before


def test_list_as_json(say: Say, workspace: Path) -> None:
    made = say("list", str(workspace), "-o", "json")
    assert set(made.document) == {"items", "findings"}
    items = {Path(item["path"]).name: item for item in made.document["items"]}
    assert all(list(item) == ITEM_KEYS for item in items.values())
    assert items["for reader"] == {
        "kind": "acp",
        "path": str(workspace / "for reader"),
        "title": "Agree on the session cache.",
        "phase": "reviewing",
        "waitingFor": ["editor", "reader"],
        "since": "2026-03-01T09:01:00Z",
        "health": "ok",
    }
    assert {name: item["health"] for name, item in items.items() if item["health"] != "ok"} == {
        "unreadable": "unreadable",
        "damaged": "damaged",
    }
    assert items["unreadable"]["phase"] is None
    assert sorted(made.codes) == ["json_malformed", "log_damaged"]
    assert made.status == 0


def test_list_where_nothing_is(say: Say, quick_path: Path) -> None:
    said = say("list", str(quick_path))
    assert (said.status, said.out.count("\n")) == (0, 1)
    assert "collab init --help" in said.out
    assert say("list", str(quick_path), "-o", "json").document == {"items": [], "findings": []}


def test_list_looks_here_and_in_many_places(say: Say, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace)
    assert len(say("list", "-o", "json").document["items"]) == 6
    given = ("for reader", ".", "over")
    assert len(say("list", *given, "-o", "json").document["items"]) == 6
    assert len(say("list", *given[::2], "-o", "json").document["items"]) == 2


@pytest.mark.parametrize("verb", ["list", "inbox"])
def test_a_root_that_is_none(say: Say, workspace: Path, verb: str) -> None:
    (workspace / "file").write_text("")
    for root in (workspace / "missing", workspace / "file"):
        made = say(verb, str(workspace), str(root), "-o", "json")
        assert (made.status, made.codes) == (2, ["folder_missing"])
        assert str(root) in made.findings[0]["cause"]
    assert say(verb, "", "-o", "json").codes == ["usage_wrong"]


def test_a_stale_folder_is_listed_by_its_log(say: Say, at: At) -> None:
    folder = at("reviewing")
    raw = json.loads((folder / "protocol.json").read_text())
    (folder / "protocol.json").write_text(json.dumps({**raw, "currentPhase": "drafting", "waitingFor": ["server"]}))
    made = say("list", str(folder), "-o", "json")
    assert made.document["items"][0]["phase"] == "reviewing"
    assert made.document["items"][0]["health"] == "stale"
    runs(say, made)
    assert say("validate", "--folder", str(folder)).status == 0


# inbox


def test_inbox_for_one(say: Say, workspace: Path) -> None:
    before = tree(workspace)
    said = say("inbox", str(workspace), "--as", "reader")
    lanes = [line for line in said.out.splitlines() if line.isupper()]
    assert lanes == ["DECIDE", "UNBLOCK", "KNOW"]
    made = say("inbox", str(workspace), "--as", "reader", "-o", "json")
    items = made.document["items"]
    assert set(made.document) == {"items", "findings"}
    assert all(list(item) == INBOX_KEYS for item in items)
    assert [(item["lane"], Path(item["path"]).name) for item in items] == [
        ("decide", "for reader"),
        ("unblock", "stopped"),
        ("know", "damaged"),
        ("know", "unreadable"),
    ]
    assert items[0]["command"] == f"collab review --folder '{workspace}/for reader' --as reader"
    assert items[1]["why"] == "No host until Monday"
    for item in items:
        assert f"    {item['command']}\n    id {item['id']}\n" in said.out
        words = shlex.split(item["command"])
        again = say(*words[1:], "-o", "json")
        assert "usage_wrong" not in again.codes
    assert tree(workspace / "for reader") == {
        name.removeprefix("for reader/"): data for name, data in before.items() if name.startswith("for reader/")
    }


def test_inbox_by_who_i_am(say: Say, workspace: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def decide(*argv: str) -> list[tuple[str, str]]:
        items = say("inbox", str(workspace), *argv, "-o", "json").document["items"]
        return [(Path(item["path"]).name, item["why"].split(":")[0]) for item in items if item["lane"] == "decide"]

    assert decide() == [("for reader", "waits for editor, reader"), ("for server", "waits for server")]
    UserState(own_home / "state").set_identity(workspace / "for reader", "editor")
    assert decide() == [("for reader", "reviewing"), ("for server", "waits for server")]
    monkeypatch.setenv("COLLAB_AS", "server")
    assert decide() == [("for server", "readiness_check")]
    assert decide("--as", "nobody") == []


def test_inbox_when_nothing_waits(say: Say, at: At) -> None:
    folder = at("completed")
    assert say("inbox", str(folder)).out == "nothing waits\n"
    assert say("inbox", str(folder), "--as", "reader").out == "nothing waits for reader\n"
    assert say("inbox", str(folder), "-o", "json").document == {"items": [], "findings": []}


def test_snooze(say: Say, workspace: Path) -> None:
    argv = ("inbox", str(workspace), "--as", "reader")
    items = say(*argv, "-o", "json").document["items"]
    made = say(*argv, "--snooze", items[0]["id"], "--for", "2h", "-o", "json")
    assert (made.status, made.document["items"]) == (0, items[1:])
    assert say(*argv, "-o", "json").document["items"] == items[1:]
    assert items[0]["id"] not in say(*argv).out
    # It may be put off again, and brought back soon.
    assert say(*argv, "--snooze", items[0]["id"], "--for", "1ms", "-o", "json").status == 0
    # Something else happened there: that has not been put off.
    folder = items[0]["path"]
    assert say(*argv, "--snooze", items[0]["id"], "--for", "365d").status == 0
    assert say("review", "--folder", folder, "--as", "editor", "--position", "x").status == 0
    assert Path(say(*argv, "-o", "json").document["items"][0]["path"]).name == "for reader"


@pytest.mark.parametrize(
    "span", ["", "2", "h", "2 weeks", "-2h", "0s", "0h", "soon", "999999999999999d", "99999999999999999999h", "3651d"]
)
def test_a_snooze_has_a_length(say: Say, workspace: Path, span: str) -> None:
    argv = ("inbox", str(workspace), "--as", "reader")
    one = say(*argv, "-o", "json").document["items"][0]["id"]
    made = say(*argv, "--snooze", one, f"--for={span}", "-o", "json")
    assert (made.status, made.codes) == (2, ["duration_malformed"])


def test_what_else_a_snooze_needs(say: Say, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    argv = ("inbox", str(workspace), "--as", "reader")
    one = say(*argv, "-o", "json").document["items"][0]["id"]
    assert say(*argv, "--snooze", one, "-o", "json").codes == ["duration_malformed"]
    assert say(*argv, "--for", "2h", "-o", "json").codes == ["usage_wrong"]
    for name in ("nonsense", "", "\x1b[2J"):
        made = say(*argv, f"--snooze={name}", "--for", "2h", "-o", "json")
        assert made.codes == ["inbox_item_unknown"]
        runs(say, made)
    monkeypatch.setenv("COLLAB_STATE", "/proc/collab-state")
    assert say(*argv, "--snooze", one, "--for", "2h", "-o", "json").codes == ["state_unwritable"]


@pytest.mark.parametrize("place", ["/proc/collab-state", "~nobody-of-that-name/state", "relative", ""])
def test_a_state_that_cannot_be_kept_stops_no_verb(
    say: Say, workspace: Path, monkeypatch: pytest.MonkeyPatch, quick_path: Path, place: str
) -> None:
    monkeypatch.chdir(quick_path)
    monkeypatch.setenv("COLLAB_STATE", place)
    folder = str(workspace / "for reader")
    assert say("validate", "--folder", folder).status == 0
    assert say("inbox", str(workspace)).status == 0
    assert say("review", "--folder", folder, "--position", "x", "-o", "json").codes == ["identity_missing"]
