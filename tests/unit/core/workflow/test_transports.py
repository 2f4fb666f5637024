"""Agents that are processes: configuration, arguments, what their output comes to (docs/specs/workflows.md §6)."""

from __future__ import annotations

import pytest

from core.workflow.transports import fill_argv, read_config, reply_to

SPAWN = {"id": "r/0/1", "from": "ambient", "to": "porter"}


def test_a_configuration() -> None:
    made = read_config(
        b'[agents.porter]\ntransport = "command"\nargv = ["p", "{{item}}"]\nenv = ["PATH"]\n[agents.x]\n'
    )
    assert made.problem is None
    assert made.agents["porter"].argv == ("p", "{{item}}")
    assert made.agents["x"].transport == "file"


@pytest.mark.parametrize(
    "text",
    [
        b"[agents.porter]\ntransport = 'ssh'\n",
        b"[agents.porter]\ntransport = 'command'\n",
        b"[agents.porter]\ntransport = 'command'\nargv = ['']\n",
        b"[agents.porter]\nargv = 'p x'\n",
        b"[agents.porter]\nshell = true\n",
        b"agents = 3\n",
        b"[",
        b"\xff",
    ],
)
def test_a_configuration_that_is_wrong_knows_no_agent(text: bytes) -> None:
    made = read_config(text)
    assert made.agents == {}
    assert made.problem is not None
    assert made.problem.code == "E_TRANSPORT"


@pytest.mark.parametrize(
    ("argv", "item", "filled"),
    [
        (["p", "--item", "{{item}}"], "a", ["p", "--item", "a"]),
        (["p", "{{item}}"], "a; rm -rf / $(x) `y`", ["p", "a; rm -rf / $(x) `y`"]),
        (["p", "{{item}}"], "{{run_id}}", ["p", "{{run_id}}"]),
        (["p", "{{item}}"], "--force", None),
        (["p", "--item={{item}}"], "a", None),
        (["p", "x{{item}}"], "-a", ["p", "x-a"]),
        (["p", "{{item}}"], "a\0b", None),
        (["p", "--quiet", "{{odd}}"], "a", ["p", "--quiet", "{{odd}}"]),
    ],
)
def test_tokens_fill_one_argument_each(argv: list[str], item: str, filled: list[str] | None) -> None:
    assert fill_argv(argv, {"item": item, "index": 0, "attempt": 1, "run_id": "r"}) == filled


@pytest.mark.parametrize(
    ("output", "code", "signal", "payload"),
    [
        (b'{"signal": "RETURN", "payload": {"result": "ok"}}\n', 0, "RETURN", {"result": "ok"}),
        (b'\n {"signal": "RETURN", "from": "boss", "id": "x", "in_reply_to": "y"}', 3, "RETURN", {}),
        (b"", 0, "ERROR", {"context": "exit_0"}),
        (b"", 7, "ERROR", {"context": "exit_7"}),
        (b"done", 0, "ERROR", {"context": "exit_0"}),
        (b'{"signal": "RETURN"}\n{"signal": "RETURN"}', 0, "ERROR", {"context": "exit_0"}),
        (b'{"signal": "FLY"}', 0, "ERROR", {"context": "exit_0"}),
        (b"[1]", 2, "ERROR", {"context": "exit_2"}),
        (b"\xff\xfe", 2, "ERROR", {"context": "exit_2"}),
        (None, 1, "ERROR", {"context": "exit_1"}),
    ],
)
def test_what_a_process_comes_to(output: bytes | None, code: int, signal: str, payload: object) -> None:
    made = reply_to(SPAWN, output, code)
    assert made is not None
    assert (made["id"], made["in_reply_to"], made["from"]) == ("r/0/1/reply", "r/0/1", "porter")
    assert (made["signal"], made["payload"]) == (signal, payload)


def test_an_unknown_end_without_a_packet_is_no_reply() -> None:
    assert reply_to(SPAWN, b"", None) is None
    assert reply_to(SPAWN, b'{"signal": "ERROR"}', None) is not None
