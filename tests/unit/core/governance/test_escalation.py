"""From a valid status to the command that follows it (docs/specs/governance.md §6)."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.governance import escalation
from core.governance.escalation import Compiled
from tests.unit.core.governance.samples import CATALOG, data, done, status

ASK = "--repo local/agent-skills --target"
RUN = "skills/ask/run.sh"
FIXED = "'Answer with one probable cause and one command to run next.'"
REFS = [
    {"receipt_id": "rc-1", "expected_schema": "a.v1", "expected_producer": "desk"},
    {"receipt_id": "rc 2", "expected_schema": "b.v1", "expected_producer": "mill", "digest": None},
]


def compiled(document: Any, commands: Any = None) -> Compiled:
    raw = document if isinstance(document, bytes) else data(document)
    own = ("x.json", commands if isinstance(commands, bytes) else data(commands)) if commands is not None else None
    return escalation.compile_status("s.json", raw, Path(), CATALOG, own)


def own(argv: list[Any], directory: Any = None, state: str = "needs_agent") -> dict[str, Any]:
    template = {"reason": "own", "argv": argv}
    return {"schema": "collab.escalation_commands.v1", "directory": directory, "states": {state: template}}


AGENT = status("needs_agent", needs_agent={"handler": "bob", "question": "a b"})


WEB = (
    f"{RUN} tau-dag 'why?\n\nParent receipts: rc-1 (a.v1 from desk), rc 2 (b.v1 from mill)' {ASK} status-escalation "
    f"--immutable-goal {FIXED} --handler webgpt --execute --json"
)
TABLE = (
    f"{RUN} tau-dag q {ASK} status-roundtable --immutable-goal g --dag-template roundtable "
    "--handler a --handler b --handler 'c d' --topology concurrent --execute --json"
)
CONTEST = (
    f"{RUN} compete t {ASK} status-competition --immutable-goal g "
    "--handler a --handler b --criterion c --criterion d --execute --json"
)
PEER = f"{RUN} tau-dag 'a b' {ASK} status-escalation --immutable-goal {FIXED} --handler bob --execute --json"


@pytest.mark.parametrize(
    ("state", "payload", "reason", "command"),
    [
        (
            "needs_brave_search",
            {"queries": ["it's ink", "second"]},
            "escalation_rung_0",
            "skills/brave-search/run.sh web 'it'\"'\"'s ink' --count 5",
        ),
        ("needs_agent", {"handler": "bob", "question": "a b"}, "escalation_rung_1_cross_family", PEER),
        ("needs_webgpt", {"question": "why?", "parent_refs": REFS}, "escalation_rung_2_webgpt", WEB),
        (
            "needs_roundtable",
            {"immutable_goal": "g", "question": "q", "handlers": ["a", "b", "c d"]},
            "milestone_roundtable",
            TABLE,
        ),
        (
            "needs_competition",
            {"immutable_goal": "g", "task": "t", "handlers": ["a", "b"], "criteria": ["c", "d"]},
            "competition",
            CONTEST,
        ),
    ],
)
def test_the_templates_that_ship(state: str, payload: Any, reason: str, command: str) -> None:
    assert compiled(status(state, **{state: payload})) == Compiled(command, reason)


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (b"nope", "unparseable_status_json"),
        (b"\xff", "unparseable_status_json"),
        (b"[" * 5000, "unparseable_status_json"),
        (b'{"schema": "pi.agent_status.v1", "x": NaN}', "unparseable_status_json"),
        (b'{"x": -Infinity}', "unparseable_status_json"),
        (b'{"schema": "pi.agent_status.v1", "x": 1e999}', "invalid_agent_status_json"),
        (b'{"x": 1e999}', "wrong_schema"),
        (b"null", "wrong_schema"),
        (b"[1]", "wrong_schema"),
        (b"{}", "wrong_schema"),
        (b'{"schema": "x", "schema": "y"}', "wrong_schema"),
        (status("zzz"), "invalid_agent_status_json"),
        (status(changed=[]), "invalid_agent_status_json"),
        (done("none.txt"), "invalid_agent_status_json"),
        (data(status())[:-1] + b',"goal":"x"}', "invalid_agent_status_json"),
    ],
)
def test_what_compiles_to_nothing_is_refused(document: Any, reason: str) -> None:
    made = compiled(document)
    assert (made.command, made.reason) == (None, reason)
    assert any(item.severity == "error" for item in made.findings)


def test_a_continuing_turn_goes_on_verbatim() -> None:
    words = "  make 'b' && echo \"$X\"  "
    todo = [{"item": "a", "next_command": words}, {"item": "b", "next_command": "later"}]
    assert compiled(status("continuing", not_done=todo)) == Compiled(words, "continuing_next_command")


def test_terminal_and_human_states_have_no_command() -> None:
    assert compiled(status()) == Compiled(None, "terminal_or_human_state_needs_human")
    failed = status("failed", failure={"triage": {"code": "press_jam", "cause": "c"}})
    assert compiled(failed) == Compiled(None, "terminal_or_human_state_failed")
    made = compiled(done("https://x"))
    assert (made.command, made.reason) == (None, "terminal_or_human_state_done")
    assert [item.code for item in made.findings] == ["proof_not_checked"]


@pytest.mark.parametrize(
    ("argv", "command"),
    [
        (["ask", "--to", "{handler}", "--json={question}", "lit {{x}}"], "ask --to bob '--json=a b' 'lit {x}'"),
        (["{{{handler}}}"], "'{bob}'"),
        (["{handler}{handler}", ""], "bobbob ''"),
        (["x", "a\nb"], "x 'a\nb'"),
    ],
)
def test_places_are_filled(argv: list[str], command: str) -> None:
    assert compiled(AGENT, own(argv)).command == command


def test_lists_and_their_items() -> None:
    search = status("needs_brave_search", needs_brave_search={"queries": ["a", "b c"]})
    argv = ["{queries.1}", {"each": "queries", "argv": ["-q", "{item}", "{queries.0}"]}]
    assert (
        compiled(search, own(argv, "my skills", "needs_brave_search")).command
        == "cd 'my skills' && 'b c' -q a a -q 'b c' a"
    )
    web = status("needs_webgpt", needs_webgpt={"question": "q", "parent_refs": REFS})
    argv = ["{parent_refs.0}", {"each": "parent_refs", "argv": ["{item}"]}]
    assert (
        compiled(web, own(argv, None, "needs_webgpt")).command
        == "'rc-1 (a.v1 from desk)' 'rc-1 (a.v1 from desk)' 'rc 2 (b.v1 from mill)'"
    )


@pytest.mark.parametrize(
    "commands",
    [
        own(["{nope}"]),
        own(["{item}"]),
        own(["{handler.0}"]),
        own(["{}"]),
        own(["{handler"]),
        own(["handler}"]),
        own(["{ handler }"]),
        own([{"each": "handler", "argv": ["{item}"]}]),
        own([{"each": "nope", "argv": ["x"]}]),
        own([]),
        own([7]),
        own([{"each": "queries", "argv": ["x"], "more": 1}]),
        own(["x"], directory=" "),
        own(["x"], state="needs_webgpt"),
        {"schema": "x", "states": {}},
        {**own(["x"]), "more": 1},
    ],
)
def test_a_template_that_cannot_be_filled(commands: Any) -> None:
    made = compiled(AGENT, commands)
    assert (made.command, made.reason) == (None, "escalation_template_invalid")
    assert [item.code for item in made.findings][-1] == "escalation_template_invalid"


def test_a_list_index_beyond_its_end_names_nothing() -> None:
    search = status("needs_brave_search", needs_brave_search={"queries": ["a"]})
    assert compiled(search, own(["{queries.1}"], None, "needs_brave_search")).command is None
    assert compiled(search, own(["{queries}"], None, "needs_brave_search")).command is None


def test_templates_of_a_state_that_is_not_asked_for_do_not_matter() -> None:
    both = own(["{handler}"])
    both["states"]["needs_webgpt"] = {"reason": "r", "argv": ["{nope}"]}
    assert compiled(AGENT, both).command == "bob"


def test_templates_that_are_no_document() -> None:
    made = compiled(AGENT, b"{")
    assert (made.reason, [item.code for item in made.findings]) == ("escalation_template_invalid", ["json_malformed"])


VALUES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1).filter(str.strip)


@given(VALUES, VALUES)
def test_a_shell_gets_exactly_what_was_said(handler: str, question: str) -> None:
    made = compiled(status("needs_agent", needs_agent={"handler": handler, "question": question}))
    assert made.command is not None
    words = shlex.split(made.command)
    assert words[2] == question
    assert words[words.index("--handler") + 1] == handler
    assert len(words) == 13


def test_the_shipped_templates_are_valid() -> None:
    made = escalation.templates(*escalation.shipped())
    assert set(made.states) == {
        "needs_brave_search",
        "needs_agent",
        "needs_webgpt",
        "needs_roundtable",
        "needs_competition",
    }
    assert json.loads(escalation.shipped()[1])["directory"] is None
