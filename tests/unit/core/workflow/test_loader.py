"""Specs: what is refused, where, and what the rest compiles to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.workflow.loader import Loaded, load, spec_hash
from core.workflow.model import Spec
from tests.unit.core.workflow.stage import chain, spec

HEAD = "workflow: w\nfor_each:\n  items: [a]\n  spawn: porter\n  scope: {zone: project, files: [f]}\n  on_return: {}\n"


def loaded(text: str) -> Loaded:
    return load(text, "w.yml", None, lambda name: name == "porter")


def found(text: str) -> list[tuple[str, int, int]]:
    return [(item.code, item.line, item.column) for item in loaded(text).findings]


def good(text: str) -> Spec:
    made = loaded(text)
    assert made.spec is not None, made.findings
    return made.spec


def test_the_smallest_for_each() -> None:
    made = good(HEAD)
    assert (made.grammar, made.workflow, made.items, made.max_parallel, made.timeout) == (
        "for_each",
        "w",
        ("a",),
        1,
        1_800_000,
    )
    assert made.on_complete is None
    assert made.external_effect is True
    assert made.on_escalate.options == ("retry", "skip", "resolve", "abort")
    assert made.works[0].error.control.do == "escalate"


@pytest.mark.parametrize(
    ("line", "finding"),
    [
        ("max_parallel: 0", ("E_VALUE", 7, 15)),
        ("max_parallel: '2'", ("E_TYPE", 7, 15)),
        ("max_parallel: [2]", ("E_TYPE", 7, 15)),
        ("max_parallel: {a: 1}", ("E_TYPE", 7, 1)),
        ("timeout: 30", ("E_VALUE", 7, 10)),
        ("timeout: 0s", ("E_VALUE", 7, 10)),
        ("timeout: [1s]", ("E_TYPE", 7, 10)),
        ("version: 2", ("E_VALUE", 7, 10)),
        ("reversible: yes", ("E_TYPE", 7, 13)),
        ("retry: {max: -1}", ("E_VALUE", 7, 14)),
        ("retry: {on: [success]}", ("E_VALUE", 7, 14)),
        ("retry: {on: []}", ("E_VALUE", 7, 13)),
        ("retry: 3", ("E_TYPE", 7, 8)),
        ("retry: {times: 1}", ("W_UNKNOWN_KEY", 7, 9)),
        ("trigger: hourly", ("E_VALUE", 7, 10)),
        ("trigger: {every: 24}", ("E_VALUE", 7, 18)),
        ("trigger: {every: 1h, when: {all: []}}", ("E_VALUE", 7, 1)),
        ("trigger: {when: {all: [{path: a.b, op: near}]}}", ("E_VALUE", 7, 40)),
        ("trigger: {when: {all: [{op: eq}]}}", ("E_KEY_MISSING", 7, 24)),
        ("on_complete: {signal: ERROR}", ("E_VALUE", 7, 23)),
        ("on_complete: {payload: {result: x, context: y}}", ("E_PAYLOAD", 7, 36)),
        ("on_complete: {payload: {result: '{{who}}'}}", ("E_TEMPLATE_VAR", 7, 33)),
        ("on_complete: {payload: done}", ("E_TYPE", 7, 24)),
        ("on_complete: {on_abort: 1}", ("E_TYPE", 7, 25)),
        ("on_escalate: {wait: forever}", ("E_VALUE", 7, 21)),
        ("on_escalate: {options: [retry, explode]}", ("E_VALUE", 7, 32)),
        ("on_escalate: {notify: pager}", ("E_TYPE", 7, 23)),
        ("on_escalate: {notify: [brain-ui, pager]}", ("W_CHANNEL_UNKNOWN", 7, 34)),
        ("on_escalate: {deadline: soon}", ("E_VALUE", 7, 25)),
        ("on_escalate: {on_deadline: approve}", ("E_VALUE", 7, 28)),
        ("on_escalate: {remind_every: 0s}", ("E_VALUE", 7, 29)),
        ("execution_mode: swarm", ("E_EXECUTION_MODE", 7, 1)),
        ("colour: red", ("W_UNKNOWN_KEY", 7, 1)),
        ("branch: x", ("W_UNKNOWN_KEY", 7, 1)),
        ("workflow: again", ("E_YAML", 7, 1)),
    ],
)
def test_one_wrong_line(line: str, finding: tuple[str, int, int]) -> None:
    assert found(HEAD + line + "\n") == [finding]


@pytest.mark.parametrize("line", ["on_escalate: {notify: [webhook, desktop, file]}", "trigger: manual", "retry: ~"])
def test_lines_that_are_right(line: str) -> None:
    assert found(HEAD + line + "\n") == []


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        ("", [("E_TYPE", 1, 1)]),
        ("just text", [("E_TYPE", 1, 1)]),
        ("- a\n", [("E_TYPE", 1, 1)]),
        ("workflow: w\n", [("E_GRAMMAR", 1, 1)]),
        ("x: [\n", [("E_YAML", 2, 1)]),
        ("workflow: w\nfor_each: {}\n", [("E_KEY_MISSING", 2, 1)] * 4),
        ("workflow: w\nfor_each: soon\n", [("E_TYPE", 2, 11)]),
        (
            "for_each: {items: [a], spawn: porter, scope: {zone: project, files: []}, on_return: {}}\n",
            [("E_KEY_MISSING", 1, 1)],
        ),
    ],
)
def test_whole_files(text: str, findings: list[tuple[str, int, int]]) -> None:
    made = found(text)
    assert sorted(set(made)) == sorted(set(findings))


def test_what_for_each_needs_and_what_it_may_hold() -> None:
    text = (
        "workflow: w\n"
        "for_each:\n"
        "  items: [a, [b], {c: d}, '', , ...]\n"
        "  spawn: broadcast\n"
        "  scope: {zone: moon}\n"
        "  on_return:\n"
        "    success: [next_item]\n"
        "    failure: next_item\n"
        "    error:\n"
        "  pace: slow\n"
    )
    assert found(text.replace(", ,", ",")) == [
        ("E_TYPE", 3, 14),
        ("E_TYPE", 3, 19),
        ("E_PLACEHOLDER_ITEM", 3, 31),
        ("E_VALUE", 4, 10),
        ("E_KEY_MISSING", 5, 3),
        ("E_VALUE", 5, 17),
        ("E_TYPE", 7, 14),
        ("E_VALUE", 8, 5),
        ("E_ROUTE_SHAPE", 9, 5),
        ("W_UNKNOWN_KEY", 10, 3),
    ]


@pytest.mark.parametrize(
    ("items", "path", "escapes"),
    [
        ("[a]", "../{{item}}", True),
        ("[a]", "/etc/{{item}}", True),
        ("[a, ../../b]", "f/{{item}}", True),
        ("[../b]", "f/{{item}}", False),
        ("[a]", "f/../g", False),
        ("[/a]", "{{item}}", True),
        ("[]", "../x", True),
    ],
)
def test_a_path_leaves_the_root_once(items: str, path: str, escapes: bool) -> None:
    text = spec(items).replace("f/{{item}}", path)
    made = [finding for finding in found(text) if finding[0] == "E_PATH_ESCAPE"]
    assert made == ([("E_PATH_ESCAPE", 5, 34)] if escapes else [])


def test_items_keep_their_written_text() -> None:
    assert good(spec("[01, 010, no, ~, 1.50, 'a b', \"\"]")).items == ("01", "010", "no", "~", "1.50", "a b", "")


@pytest.mark.parametrize("name", ["a/b", ".hidden", "two words", "a\\nb", "-x"])
def test_a_name_is_part_of_file_names(name: str) -> None:
    assert [code for code, _, _ in found(spec().replace("workflow: w", f'workflow: "{name}"'))] == ["E_VALUE"]


def test_file_names_are_compared_when_there_is_one() -> None:
    made = load(HEAD, "other.yml", "other", None)
    assert [(item.code, item.line, item.column) for item in made.findings] == [("W_NAME_STEM", 1, 11)]
    assert made.spec is not None


def test_an_agent_that_we_lack_is_a_warning() -> None:
    assert found(HEAD.replace("porter", "stranger")) == [("W_AGENT_UNKNOWN", 4, 10)]
    assert load(HEAD.replace("porter", "stranger"), "w.yml").findings == ()


def test_a_chain_compiles_to_the_same_model() -> None:
    made = good(
        chain(
            "type: code, scope: src/, story_angle: write, agents: [porter, scribe], on_done: trigger:3",
            "type: porter, gate: 0-failures",
            "type: porter, scope: x, gate: never, zone: kernel, on_fail: signal → ESCALATE pilote",
            more="branch: b\nswarm_ready: false\nstatus: draft\nnote: 3",
        )
    )
    assert made.items == ("step-1", "step-2", "step-3")
    assert [work.agent for work in made.works] == ["porter", "porter", "porter"]
    assert [work.files for work in made.works] == [("src/",), (), ("x",)]
    assert made.works[0].success.control.step == 2
    assert made.works[0].agents == ("porter", "scribe")
    assert made.works[1].after == "0-failures"
    assert made.works[2].zone == "kernel"
    assert made.works[2].error.control.do == "escalate"
    assert (made.branch, made.status, made.note) == ("b", "draft", "3")


@pytest.mark.parametrize(
    ("steps", "findings"),
    [
        (["type: porter, gate: later"], [("E_VALUE", 3, 35)]),
        (["type: porter", "type: porter, step: 1"], [("E_YAML", 4, 29)]),
        (["scope: x"], [("E_KEY_MISSING", 3, 5)]),
        (["type: porter, execution_mode: swarm"], [("E_EXECUTION_MODE", 3, 29)]),
        (["type: porter, gate: never", "type: porter"], [("W_AFTER_TERMINAL", 4, 5)]),
        (["type: porter, scope: ../x"], [("E_PATH_ESCAPE", 3, 36)]),
        (["type: porter, scope: 'x/{{who}}'"], [("E_TEMPLATE_VAR", 3, 36)]),
        (["type: porter, zone: moon"], [("E_VALUE", 3, 35)]),
        (["type: porter, on_fail: goto 1"], [("E_ROUTE_SHAPE", 3, 38)]),
        (["agents: [broadcast]"], [("E_VALUE", 3, 24)]),
        (["agents: porter, type: porter"], [("E_TYPE", 3, 23)]),
        (["agents: porter"], [("E_TYPE", 3, 23)]),
        (["agents: []"], [("E_KEY_MISSING", 3, 5)]),
        (["agents: ~"], [("E_KEY_MISSING", 3, 5)]),
        (["agents: [ghost, porter]"], [("W_AGENT_UNKNOWN", 3, 24)]),
    ],
)
def test_steps(steps: list[str], findings: list[tuple[str, int, int]]) -> None:
    assert found(chain(*steps)) == findings


def test_a_chain_ready_for_swarm_says_what_each_step_takes_in() -> None:
    text = chain("type: porter", "type: porter", "type: porter, input_contract: ~", more="swarm_ready: true")
    assert [(code, line) for code, line, _ in found(text)] == [("E_INPUT_CONTRACT", 4), ("E_INPUT_CONTRACT", 5)]


def test_labels_are_no_positions() -> None:
    made = good(
        "name: w\nchain:\n  - {step: 30, type: porter, on_done: goto 10}\n"
        "  - {step: 20, type: porter}\n  - {step: 10, type: porter}\n"
    )
    assert made.items == ("step-30", "step-20", "step-10")
    assert made.works[0].success.control.step == 2


def test_all_errors_come_sorted_and_once() -> None:
    text = "colour: 1\nfor_each: {items: 3, spawn: [x]}\nchain: {}\nworkflow: w\n"
    made = found(text)
    assert [place[1:] for place in made] == sorted(place[1:] for place in made)
    assert [code for code, _, _ in made].count("E_KEY_MISSING") == 2


def test_the_hash_is_over_the_normalised_spec() -> None:
    one = good(HEAD.replace("on_return: {}", "on_return: {fail: '→ retry(2)+ESCALATE'}"))
    same = good(
        "# a comment\nfor_each:\n  on_return: {fail: 'retry(2) + ESCALATE pilote', success: next_item}\n"
        "  spawn: porter\n  items:\n    - a\n  scope: {files: [f], zone: project}\nmax_parallel: 1\nworkflow: w\n"
    )
    other = good(HEAD)
    assert spec_hash(one) == spec_hash(same)
    assert spec_hash(one) != spec_hash(other)
    assert Spec.model_validate(one.plain(), strict=False) == one


KEYS = st.sampled_from(
    ["workflow", "name", "for_each", "chain", "items", "spawn", "scope", "on_return", "retry", "trigger", "on_escalate",
     "on_complete", "step", "type", "gate", "fail", "deadline", "files", "zone", "x"]
)  # fmt: skip
VALUES = st.recursive(
    st.sampled_from(["a", "1", "~", "true", "5m", "'{{item}}'", "{{x}}", "next_item", "human", "..."]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: "[" + ", ".join(items) + "]"),
        st.dictionaries(KEYS, inner, max_size=4).map(
            lambda pairs: "{" + ", ".join(f"{key}: {value}" for key, value in pairs.items()) + "}"
        ),
    ),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, VALUES, max_size=8))
def test_any_mapping_is_a_spec_or_says_why(pairs: dict[str, str]) -> None:
    made = loaded("".join(f"{key}: {value}\n" for key, value in pairs.items()))
    errors = [item for item in made.findings if item.severity == "error"]
    assert (made.spec is None) == bool(errors)
    assert (made.hash is None) == bool(errors)
    for item in made.findings:
        assert item.code.startswith("E_" if item.severity == "error" else "W_")
        assert 1 <= item.line <= len(pairs) + 1
