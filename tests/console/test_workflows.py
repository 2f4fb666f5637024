"""The screen Workflows by real keys: what waits is seen, answered, applied (docs/specs/console.md §2, Workflows)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.finding import Refused
from core.workflow.planning import Planner
from tests.console.hosts import HOSTILE, SIZES, is_inert
from tests.console.workflow_root import FAILED, LEARNABLE, WorkflowRoot, learned
from tests.unit.core.workflow.stage import AGENTS, spec
from tui.app import ConsoleApp
from tui.forms.confirm import ConfirmScreen
from tui.forms.escalation import AnswerForm, Given, answering, read_args
from tui.forms.workflow import AbortForm, ApproveForm, StartForm
from tui.screens.inbox import InboxScreen
from tui.screens.workflows import WorkflowsScreen

WAIT_ITEM = "on_escalate: {wait: item, deadline: 2h}\n"
Shown = Callable[[ConsoleApp], str]


@pytest.fixture
def root(tmp_path: Path, clock: Any) -> WorkflowRoot:
    """A root with one workflow of three items that asks for each failed item."""
    return WorkflowRoot(tmp_path / "work", clock, more=WAIT_ITEM + "max_parallel: 3\n")


@pytest.fixture
def text(drawn: Any) -> Shown:
    """What stands on the screen as one text, its lines cut to single spaces."""
    return lambda app: " ".join(" ".join(drawn(app)).split())


@pytest.fixture
def keys(until: Any) -> Any:
    """`await keys(pilot, …)`: presses them; `preview` waits until a preview is there and listens."""

    async def press(pilot: Any, *names: str) -> None:
        for name in names:
            if name == "preview":
                await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen) and not pilot.app.screen.deaf)
            else:
                await pilot.press(name)

    return press


async def opened(pilot: Any, until: Any) -> WorkflowsScreen:
    """The screen with its root read."""
    app = pilot.app
    await until(pilot, lambda: app.complete)
    await pilot.press("4")
    await until(pilot, lambda: isinstance(app.base, WorkflowsScreen) and app.base.desks)
    screen = app.base
    assert isinstance(screen, WorkflowsScreen)
    return screen


def asking(app: ConsoleApp) -> int:
    """How many questions of workflows wait for this person."""
    return sum(item.kind == "workflow" for item in app.waiting_items)


async def to_form(pilot: Any, until: Any, kind: type, *keys: str) -> Any:
    await pilot.press(*keys)
    await until(pilot, lambda: isinstance(pilot.app.screen, kind))
    return pilot.app.screen


async def test_a_question_is_seen_understood_answered_and_applied(
    root: WorkflowRoot, console: Any, until: Any, keys: Any, text: Shown
) -> None:
    root.start()
    root.reply(0, "ok")
    root.reply(1, FAILED)
    app = console(root.path, me="ana")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await opened(pilot, until)
        await until(pilot, lambda: "'b' failed: port 443 is closed. What now?" in text(app))
        shown = text(app)
        for part in (
            "1 attempt by porter; last causes: port 443 is closed",
            "retry: Try again; a new attempt of this item",
        ):
            assert part in shown
        assert "workflow_unclassified_" in shown
        assert "due in 2 h" in shown
        assert "no engine is at work here" in shown
        assert asking(app) == 1
        await to_form(pilot, until, AnswerForm, "a")
        assert "tried: 1 attempt by porter" in text(app)
        await keys(pilot, "tab", "down", "tab", *"enough", "f2", "preview")
        shown = text(app)
        assert '"event":"entry_decided"' in shown.replace(" ", "")
        assert "Skip it: the item is closed as skipped" in shown
        assert "ana: recorded as said, not proven" in shown
        assert "collab escalation decide esc-20260301-0001 skip --note enough --as ana" in shown.replace("\\ ", "")
        assert root.decisions() == [None]
        await pilot.press("enter")
        await until(pilot, lambda: root.decisions() == [("ana", "skip", "enough", "console")])
        await until(pilot, lambda: app.screen is screen and asking(app) == 0)
        assert root.run().result(1) == "fail"
        await keys(pilot, "u", "preview")
        assert "entry applied (esc-20260301-0001)" in text(app)
        await pilot.press("enter")
        await until(pilot, lambda: root.run().result(1) == "skipped")
        await until(pilot, lambda: "2/3" in text(app) and "1 success, 1 skipped, 1 pending" in text(app))


async def test_questions_of_one_cause_fold_and_are_answered_together_each_on_its_own(
    root: WorkflowRoot, console: Any, until: Any, keys: Any, text: Shown
) -> None:
    root.start()
    for index in range(3):
        root.reply(index, FAILED)
    app = console(root.path, me="ana")
    async with app.run_test(size=(110, 44), notifications=True) as pilot:
        screen = await opened(pilot, until)
        await until(pilot, lambda: "+ 3: a, b, c" in text(app))
        await pilot.press("f")
        await until(pilot, lambda: len(screen.rows.rows) == 5)
        await pilot.press("f")
        await to_form(pilot, until, AnswerForm, "a")
        # The second of them is left out.
        await keys(pilot, "tab", "down", "space", "f2", "preview")
        shown = text(app)
        assert "each of the 2 questions on its own" in shown
        assert shown.count("collab escalation decide") == 2
        await pilot.press("enter")
        said = ("ana", "retry", "", "console")
        await until(pilot, lambda: root.decisions() == [said, None, said])
        await until(pilot, lambda: app.screen is screen and asking(app) == 1)


async def test_the_inbox_answers_a_folded_row_and_opens_a_question(
    root: WorkflowRoot, console: Any, until: Any, keys: Any, text: Shown
) -> None:
    root.start()
    root.reply(0, FAILED)
    root.reply(1, FAILED)
    app = console(root.path, me="ana")
    async with app.run_test(size=(110, 44), notifications=True) as pilot:
        await until(pilot, lambda: app.complete and "+ 2:" in text(app))
        assert isinstance(app.base, InboxScreen)
        await pilot.press("enter", "down", "enter")
        await until(pilot, lambda: isinstance(app.base, WorkflowsScreen))
        screen = app.base
        await until(pilot, lambda: screen.rows.row is not None and screen.rows.row.id.endswith("esc-20260301-0001"))
        await pilot.press("n")
        await until(pilot, lambda: screen.rows.row.id.endswith("esc-20260301-0002"))
        await pilot.press("1")
        await until(pilot, lambda: isinstance(app.base, InboxScreen))
        await pilot.press("home")
        await to_form(pilot, until, AnswerForm, "a")
        await keys(pilot, "f2", "preview", "enter")
        said = ("ana", "retry", "", "console")
        await until(pilot, lambda: root.decisions() == [said, said])
        await until(pilot, lambda: asking(app) == 0)


async def test_an_answer_in_words_and_one_for_later(
    root: WorkflowRoot, console: Any, until: Any, keys: Any, text: Shown
) -> None:
    root.start()
    root.reply(0, FAILED)
    root.reply(1, {"status": "fail", "cause": "no key"})
    app = console(root.path, me="ana")
    async with app.run_test(size=(110, 44), notifications=True) as pilot:
        screen = await opened(pilot, until)
        form = await to_form(pilot, until, AnswerForm, "a")
        await keys(pilot, "tab", "end", "up", "f2")
        await until(pilot, lambda: form.query_one("#field-words").failed)
        await keys(pilot, *"open the port", "f2", "preview", "enter")
        await until(pilot, lambda: root.decisions() == [("ana", "respond", "open the port", "console"), None])
        await until(pilot, lambda: app.screen is screen and "'b' failed: no key" in text(app))
        await to_form(pilot, until, AnswerForm, "a")
        await keys(pilot, "tab", "end", "tab", "end", "backspace", "x", "f2")
        await until(pilot, lambda: app.screen.query_one("#field-until").failed)
        await keys(pilot, "backspace", "h", "f2", "preview")
        assert "hidden until then, then one reminder; it stays open" in text(app)
        await pilot.press("enter")
        await until(pilot, lambda: root.entries()[1].snoozed_until is not None)
        await until(pilot, lambda: asking(app) == 0)
        assert root.entries()[1].state == "open"


OPTIONS = [
    {"id": "other-port", "title": "Another port", "effect": "the item uses it", "args_schema": {"port": "integer"}},
    {"id": "wait", "title": "Wait", "effect": "nothing is done"},
]


async def test_an_agents_own_options_with_typed_arguments(
    root: WorkflowRoot, console: Any, until: Any, keys: Any, text: Shown
) -> None:
    root.start()
    root.reply(0, None, signal="ESCALATE", payload={"options": OPTIONS})
    app = console(root.path, me="ana")
    async with app.run_test(size=(110, 44), notifications=True) as pilot:
        await opened(pilot, until)
        await until(pilot, lambda: "other-port: Another port (port: integer); the item uses it" in text(app))
        form = await to_form(pilot, until, AnswerForm, "a")
        await keys(pilot, "tab")
        assert form.query_one("#field-args").display
        await keys(pilot, "down")
        await until(pilot, lambda: not form.query_one("#field-args").display)
        await keys(pilot, "up")
        await until(pilot, lambda: form.query_one("#field-args").display)
        await keys(pilot, "tab", *"x", "f2")
        await until(pilot, lambda: "is no integer" in text(app))
        await keys(pilot, "backspace", *"8443", "f2", "preview", "enter")
        await until(pilot, lambda: root.entries()[0].decision is not None)
    assert root.entries()[0].decision.args == {"port": 8443}
    assert root.entries()[0].decision.verb == "edit"


def test_arguments_are_read_by_their_types() -> None:
    schema = {"n": "integer", "x": "number", "yes": "boolean", "name": "string"}
    assert read_args("n = 3\nx=1.5\n\nyes = no\nname = a = b\n", schema) == {
        "n": 3,
        "x": 1.5,
        "yes": False,
        "name": "a = b",
    }
    for wrong in ("n = x", "x = y", "yes = perhaps", "other = 1", "other ="):
        with pytest.raises(Refused) as refused:
            read_args(wrong, schema)
        assert refused.value.findings[0].code == "E_ARGS"


async def test_an_earlier_answer_of_somebody_else_is_shown_with_its_author(
    root: WorkflowRoot, console: Any, until: Any, keys: Any, text: Shown
) -> None:
    root.start()
    root.reply(0, FAILED)
    app = console(root.path, me="ana")
    async with app.run_test(size=(110, 44), notifications=True) as pilot:
        await opened(pilot, until)
        await to_form(pilot, until, AnswerForm, "a")
        await keys(pilot, "f2", "preview")
        root.answer("esc-20260301-0001", "skip")
        await pilot.press("enter")
        await until(pilot, lambda: "esc-20260301-0001 was answered already by ben: skip" in text(app))
        assert isinstance(app.screen, ConfirmScreen)
        await keys(pilot, "preview", "escape", "f2")
        await until(pilot, lambda: isinstance(app.screen, AnswerForm) and "already by ben: skip" in text(app))
    assert root.decisions() == [("ben", "skip", "", "cli")]


async def test_a_preview_that_is_outdated_says_so_and_asks_again(
    root: WorkflowRoot, console: Any, until: Any, keys: Any, text: Shown, clock: Any
) -> None:
    root.start()
    for index in (1, 2):
        root.reply(index, "ok")
    root.reply(0, FAILED)
    app = console(root.path, me="ana")
    async with app.run_test(size=(110, 44), notifications=True) as pilot:
        await opened(pilot, until)
        await to_form(pilot, until, AnswerForm, "a")
        await keys(pilot, "f2", "preview")
        clock.step(3 * 3600)
        root.tick()
        assert root.entries()[0].overdue
        await pilot.press("enter")
        await until(pilot, lambda: "is no longer as the preview showed it" in text(app))
        assert root.decisions() == [None]
        await keys(pilot, "preview", "enter")
        await until(pilot, lambda: root.decisions() == [("ana", "retry", "", "console")])


async def test_a_run_is_started_stopped_and_refused(
    root: WorkflowRoot, console: Any, until: Any, keys: Any, text: Shown
) -> None:
    app = console(root.path, me="ana")
    async with app.run_test(size=(110, 44), notifications=True) as pilot:
        screen = await opened(pilot, until)
        await until(pilot, lambda: "Nothing has run here yet" in text(app))
        form = await to_form(pilot, until, StartForm, "s")
        assert not form.query_one("#field-grant").display
        await keys(pilot, "tab", "end")
        await until(pilot, lambda: form.query_one("#field-grant").display)
        assert "no manual and no assisted run has ended well" in text(app)
        await keys(pilot, "tab", "space", "f2", "preview")
        shown = text(app)
        assert "3 items, 3 at once" in shown
        assert "it begins without asking" in shown
        assert "collab workflow start w --mode swarm --grant --as ana" in shown.replace("\\ ", "")
        assert root.world().order == ()
        await pilot.press("enter")
        await until(pilot, lambda: len(root.world().order) == 1)
        root.tick()
        await until(pilot, lambda: app.screen is screen and "0/3" in text(app))
        run = root.run()
        assert (run.by, run.mode, run.granted, len(run.flight)) == ("ana", "swarm", True, 3)
        await to_form(pilot, until, StartForm, "s")
        await keys(pilot, "f2")
        await until(pilot, lambda: "is still open" in text(app))
        await pilot.press("escape")
        await to_form(pilot, until, AbortForm, "x")
        await keys(pilot, *"no time", "f2", "preview")
        assert "3 in flight: awaited until a reply or the timeout, and only recorded" in text(app)
        await pilot.press("enter")
        await until(pilot, lambda: root.run().aborted is not None)
        assert root.run().aborted["decided_by"] == "ana"
        await until(pilot, lambda: app.screen is screen and screen.context().workflow.ended is not None)
        await pilot.press("x")
        await until(pilot, lambda: "this run is over: it was stopped" in text(app))
    assert root.world().refused == ()


async def test_a_changed_spec_outdates_the_preview_of_a_start(
    root: WorkflowRoot, console: Any, until: Any, keys: Any, text: Shown
) -> None:
    app = console(root.path, me="ana")
    async with app.run_test(size=(110, 44), notifications=True) as pilot:
        await opened(pilot, until)
        await to_form(pilot, until, StartForm, "s")
        await keys(pilot, "f2", "preview")
        (root.path / "workflows/w.yml").write_text(spec("[a, b, c, d]"))
        await pilot.press("enter")
        await until(pilot, lambda: "is no longer as the preview showed it" in text(app) and "4 items" in text(app))
        await keys(pilot, "preview", "enter")
        await until(pilot, lambda: len(root.world().order) == 1)
    assert root.run().total == 4


@pytest.fixture
def learning(tmp_path: Path, clock: Any) -> WorkflowRoot:
    """A root in which the same answer was given twice."""
    made = WorkflowRoot(tmp_path / "work", clock, more=LEARNABLE)
    learned(made)
    return made


async def test_a_proposal_is_modified_approved_applied_and_its_rule_revoked(
    learning: WorkflowRoot, console: Any, until: Any, keys: Any, text: Shown
) -> None:
    root = learning
    app = console(root.path, me="ana")
    async with app.run_test(size=(120, 44), notifications=True) as pilot:
        screen = await opened(pilot, until)
        await until(pilot, lambda: "learned 1" in text(app))
        await pilot.press("t")
        await until(pilot, lambda: "prop-20260301-001" in text(app))
        shown = text(app)
        assert "a person is asked" in shown
        assert "retry, by rule; a person is told" in shown
        assert shown.count("port 443 is closed, ben said retry") == 2
        await to_form(pilot, until, ApproveForm, "p")
        await keys(pilot, "tab", "down", "f2", "preview")
        assert "from now on a rule answers skip" in text(app)
        await pilot.press("enter")
        await until(pilot, lambda: [rule.option_id for rule in root.world().learning.rules.values()] == ["skip"])
        (rule,) = root.world().learning.rules.values()
        assert rule.approved_by == "ana"
        root.start()
        root.reply(0, FAILED)
        assert root.run().open_entries.get("x") is None
        assert root.run().auto_resolved == 1
        await until(pilot, lambda: "skip, used 1" in text(app))
        await pilot.press("down")
        await until(pilot, lambda: screen.context().workflow.rule)
        before = root.files()
        await keys(pilot, "r", "preview")
        assert "people are asked again" in text(app)
        assert root.files() == before
        await pilot.press("enter")
        await until(pilot, lambda: root.world().learning.rules[rule.id].state == "revoked")
        await until(pilot, lambda: "revoked by ana" in text(app))
        await pilot.press("r")
        await until(pilot, lambda: "it was revoked by ana" in text(app))


async def test_a_proposal_is_rejected(learning: WorkflowRoot, console: Any, until: Any, keys: Any, text: Shown) -> None:
    app = console(learning.path, me="ana")
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await opened(pilot, until)
        await pilot.press("t")
        await until(pilot, lambda: "prop-20260301-001" in text(app))
        await keys(pilot, "r", "preview", "enter")
        await until(pilot, lambda: learning.world().learning.proposals["prop-20260301-001"].state == "rejected")
        await until(pilot, lambda: "rejected" in text(app))
        await pilot.press("p")
        await until(pilot, lambda: "it is rejected by ana" in text(app))


async def test_it_is_live_on_what_others_do(
    root: WorkflowRoot, console: Any, until: Any, text: Shown, collab: Any
) -> None:
    root.start()
    app = console(root.path, me="ana")
    async with app.run_test(size=(110, 30), notifications=True) as pilot:
        await opened(pilot, until)
        await until(pilot, lambda: "0/3" in text(app))
        root.reply(0, "ok")
        await until(pilot, lambda: "1/3" in text(app))
        root.reply(1, FAILED)
        await until(pilot, lambda: asking(app) == 1 and "'b' failed" in text(app))
        done = collab("escalation", "decide", "esc-20260301-0001", "skip", "--as", "ben", "--root", str(root.path))
        assert done.returncode == 0, done.stderr
        await until(pilot, lambda: asking(app) == 0)


async def test_no_single_key_writes(root: WorkflowRoot, learning_keys: list[str], console: Any, until: Any) -> None:
    root.start()
    root.reply(0, FAILED)
    before = root.files()
    app = console(root.path, me="ana")
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        screen = await opened(pilot, until)
        for key in learning_keys:
            await pilot.press(key)
            await pilot.pause()
            if app.screen is not screen:
                await until(pilot, lambda: not getattr(app.screen, "deaf", False))
                await app.to_base()
                while app.base is not screen:
                    await app.pop_screen()
    assert root.files() == before


@pytest.fixture
def learning_keys() -> list[str]:
    """Every key that could do something here."""
    return ["a", "s", "x", "u", "p", "r", "t", "f", "enter", "f2", "space", "t", "a", "p", "r", "enter", "t"]


async def test_whoever_is_nobody_yet_is_told(root: WorkflowRoot, console: Any, until: Any, text: Shown) -> None:
    root.start()
    root.reply(0, FAILED)
    app = console(root.path)
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await opened(pilot, until)
        await pilot.press("a")
        await until(pilot, lambda: "say who you are first (w)" in text(app))
        await pilot.press("w", *"ana", "enter")
        await until(pilot, lambda: app.who.anywhere() == "ana")
        await to_form(pilot, until, AnswerForm, "a")


async def test_specs_that_are_broken_and_starts_that_were_refused_are_said(
    root: WorkflowRoot, console: Any, until: Any, text: Shown
) -> None:
    (root.path / "workflows/bad.yml").write_text("workflow: [\n")
    (root.path / "workflows/lone.yml").write_text(
        spec().replace("workflow: w", "workflow: lone").replace("porter", "nobody")
    )
    with root.engine() as made:
        assert made.start("lone").run_id is None
    app = console(root.path, me="ana")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await opened(pilot, until)
        await pilot.press("t", "t")
        await until(pilot, lambda: "Refused starts" in text(app))
        shown = text(app)
        assert "disabled" in shown
        assert "there is no profile of the agent 'nobody'" in shown
        form = await to_form(pilot, until, StartForm, "s")
        assert "1 errors in workflows/bad.yml" in text(app) or "errors in workflows/bad.yml" in text(app)
        await pilot.press("home", "f2")
        await until(pilot, lambda: form.query_one("#field-workflow").failed or "disabled" in text(app))


async def test_a_damaged_log_is_said_and_the_other_runs_are_there(
    root: WorkflowRoot, console: Any, until: Any, text: Shown
) -> None:
    first = root.start()
    root.reply(0, FAILED)
    (root.path / "ambient/runs" / "w-20260301T080000Z-beef.jsonl").write_text("{}\n")
    app = console(root.path, me="ana")
    async with app.run_test(size=(140, 30), notifications=True) as pilot:
        await opened(pilot, until)
        await until(pilot, lambda: "a run's log begins with run_started" in text(app))
        assert first.removeprefix("w-") in text(app)
        with (root.path / "ambient/runs" / f"{first}.jsonl").open("a") as handle:
            handle.write("not json\n")
        await until(pilot, lambda: "is damaged" in text(app))
        assert app.is_running


@pytest.mark.parametrize("size", SIZES)
async def test_hostile_texts_are_inert_at_every_size(
    size: tuple[int, int], tmp_path: Path, clock: Any, console: Any, until: Any, drawn: Any
) -> None:
    items = "[" + ", ".join(f'"{text}"' for text in ("x\\e[2J[bold]", "\\u202e y [/]", "[@click=app.quit]z[/]")) + "]"
    root = WorkflowRoot(tmp_path / "work", clock, items=items, more=WAIT_ITEM + "max_parallel: 3\n")
    root.start()
    root.reply(0, {"status": "fail", "cause": HOSTILE[0] + HOSTILE[6]})
    options = [{"id": "go", "title": HOSTILE[1] + HOSTILE[4], "effect": HOSTILE[7]}]
    root.reply(1, None, signal="ESCALATE", payload={"options": options})
    app = console(root.path, me="ana")
    async with app.run_test(size=size, notifications=True) as pilot:
        screen = await opened(pilot, until)
        await until(pilot, lambda: len(screen.rows.rows) >= 3)
        for key in ("down", "a", "escape", "down", "enter", "t", "t", "t", "escape", "t", "t", "t"):
            await pilot.press(key)
            await pilot.pause(0.05)
            assert is_inert("".join(drawn(app))), key
        assert app.is_running


@pytest.mark.parametrize("size", SIZES)
async def test_answering_works_at_every_size(
    size: tuple[int, int], root: WorkflowRoot, console: Any, until: Any, keys: Any, text: Shown
) -> None:
    root.start()
    root.reply(0, FAILED)
    app = console(root.path, me="ana")
    async with app.run_test(size=size, notifications=True) as pilot:
        await opened(pilot, until)
        await until(pilot, lambda: "'a' failed" in text(app))
        await to_form(pilot, until, AnswerForm, "a")
        assert "F2 preview" in text(app)
        await keys(pilot, "f2", "preview")
        assert "Enter write" in text(app)
        await pilot.press("enter")
        await until(pilot, lambda: root.decisions() == [("ana", "retry", "", "console")])


async def test_a_filter_narrows_the_rows(root: WorkflowRoot, console: Any, until: Any) -> None:
    root.start()
    root.reply(0, FAILED)
    root.reply(1, {"status": "fail", "cause": "no key"})
    app = console(root.path, me="ana")
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        screen = await opened(pilot, until)
        await until(pilot, lambda: len(screen.rows.rows) == 3)
        await pilot.press("slash", *"no key")
        await until(
            pilot, lambda: [row.cells[3].plain for row in screen.rows.rows] == ["'b' failed: no key. What now?"]
        )


def test_agents_and_the_engine_decide_nothing_here(root: WorkflowRoot, clock: Any) -> None:
    root.start()
    root.reply(0, FAILED)
    for name in (*AGENTS, "ambient", "rule:rule-1"):
        with pytest.raises(Refused) as refused:
            answering(root.path, ["esc-20260301-0001"], Given(option="skip"), name, clock)
        assert refused.value.findings[0].code == "E_DECIDER"
    with Planner(root.path, clock) as planner:
        made, starts = planner.tick()
    assert (made.events, starts) == ([], [])
