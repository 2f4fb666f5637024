"""The operator's work in the demo, by keys alone in a real terminal (docs/specs/console.md §1, the operator)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.console.pty_driver import PtyConsole, environment
from tui.cli.demo_workflow import PLACE, WORKFLOW

QUESTION = "'webhooks' failed"


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[PtyConsole]:
    """The live demo, whose agent needs a moment for each page."""
    words = ("demo", "--speed", "25", "--folder", str(tmp_path / "demo"))
    console = PtyConsole(*words, environ=environment(tmp_path), size=(120, 40))
    yield console
    console.close()


def answer(demo: PtyConsole, run: int) -> None:
    """See what is asked and what was tried, answer it, see the run finish."""
    demo.sees("Waits for an answer", QUESTION)
    demo.press_until("g", lambda shown: "asked" in shown and "1 attempt by checker" in shown)
    demo.sees("the page links to /guide/setup, and nothing is there", "retry: Try again; a new attempt of this item")
    demo.press("a")
    demo.sees("What is asked", "tried: 1 attempt by checker", "Try again", "a new attempt of this item")
    demo.press("f2")
    demo.sees("entry_decided", "Try again: a new attempt of this item", "the engine at work here applies it at once")
    demo.listens("Enter write")
    demo.press("enter")
    ended(demo, run)


def ended(demo: PtyConsole, runs: int) -> None:
    """So many runs have come to their end, and nothing waits."""
    demo.until(lambda shown: shown.count("10/10") >= runs and "Under way" not in shown)


def start(demo: PtyConsole) -> None:
    """Another run, in assisted mode: nothing that it does has effects outside."""
    demo.press("s")
    demo.sees("Start a workflow", WORKFLOW, "assisted")
    demo.fill("tab", "down", "f2")
    demo.sees("10 items, 2 at once", "--mode assisted")
    demo.listens("Enter write")
    demo.press("enter")


def test_from_a_question_to_a_rule_and_back(demo: PtyConsole, tmp_path: Path) -> None:
    demo.sees("Inbox", QUESTION)
    demo.press("4")
    demo.sees("Waits for an answer", "7/10")
    answer(demo, 1)
    demo.sees("10 of 10 pages checked")
    # The same cause again, the same answer: it becomes a proposal, and nothing more.
    start(demo)
    answer(demo, 2)
    demo.sees("learned 1")
    demo.press("t")
    demo.sees("Proposals", "retry, by rule", "reader said retry")
    demo.press("p")
    demo.sees("Approve what was learned", "as proposed")
    demo.press("f2")
    demo.sees("from now on a rule answers retry")
    demo.listens("Enter write")
    demo.press("enter")
    demo.sees("Rules", "retry, used 0")
    # The third run meets the cause, and nobody is asked.
    start(demo)
    demo.sees("retry, used 1")
    demo.press_until("down", lambda shown: "by reader" in shown and "1 times; confidence" in shown)
    demo.sees("1 times; confidence 1")
    demo.press("r")
    demo.sees("people are asked again", "collab proposal reject")
    demo.listens("Enter write")
    demo.press("enter")
    demo.sees("○ revoked", "by reader")
    demo.press("t", "t")
    ended(demo, 3)
    assert QUESTION not in demo.text
    assert demo.end() == 0
    receipts = list((tmp_path / "demo" / PLACE / "receipts").glob("run-*.json"))
    assert len(receipts) == 3 + 2 * 2
