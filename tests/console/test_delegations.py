"""Delegations by keys alone: what is live, what it is worth, and nothing recorded by one key (docs/specs/console.md §2)."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from core.delegation import gates, store
from core.delegation.view import CLAIM
from tests.conftest import console_script
from tests.console.hosts import HOSTILE
from tests.unit.core.delegation.builders import DIGEST, Bench, draft
from tui.app import ConsoleApp
from tui.forms.checks import ChecksField, ChecksView
from tui.forms.confirm import ConfirmScreen
from tui.forms.delegation import CancelForm, CollectForm, HandoverScreen, LaunchForm
from tui.forms.fields import LineField
from tui.forms.gate import GateForm, GateScreen, needs_shell
from tui.screens.delegations import DelegationsScreen
from tui.widgets.pane import Pane

ME = "ana"


@pytest.fixture
def bench(quick_path: Path, clock: Any) -> Bench:
    return Bench(quick_path, clock)


@pytest.fixture
def app(bench: Bench, console: Any) -> Callable[..., ConsoleApp]:
    def make(**settings: Any) -> ConsoleApp:
        return console(bench.repo, me=ME, environ=bench.environ, **settings)

    return make


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


async def ready(pilot: Any, until: Any, rows: int = 1) -> DelegationsScreen:
    app = pilot.app
    await until(pilot, lambda: app.complete)
    await pilot.press("3")
    await until(pilot, lambda: isinstance(app.base, DelegationsScreen) and len(app.base.rows.rows) >= rows)
    screen = app.base
    assert isinstance(screen, DelegationsScreen)
    return screen


async def to(pilot: Any, screen: DelegationsScreen, name: str) -> None:
    """Put the cursor on a row by its keys."""
    await pilot.press("home")
    for _ in range(len(screen.rows.rows)):
        row = screen.rows.row
        if row is not None and row.id.endswith(f"\n{name}"):
            return
        await pilot.press("down")
    raise AssertionError(f"there is no row {name}")


async def form(pilot: Any, until: Any, key: str, kind: type[Any]) -> Any:
    await pilot.press(key)
    await until(pilot, lambda: isinstance(pilot.app.screen, kind))
    return pilot.app.screen


def text(drawn: Any, app: ConsoleApp) -> str:
    return "\n".join(drawn(app))


def ledger(bench: Bench, *words: str) -> None:
    """Another process records something."""
    argv = [console_script(), "ledger", "--plan", str(bench.plan), *words]
    subprocess.run(argv, env={**os.environ, **bench.environ}, check=True, capture_output=True)


def said(name: str, **more: Any) -> str:
    known = {"transport": "headless", "via": "agentkit", "prompt_digest": DIGEST, "worktree": f"../{name}"}
    return json.dumps({**known, "delegation_id": name, **more})


async def type_into(pilot: Any, form: Any, key: str, words: str) -> None:
    field = form.query_one(f"#field-{key}")
    field.focus_control()
    await pilot.pause()
    if isinstance(field, LineField):
        await pilot.press("ctrl+u" if not field.text else "home")
        field.text = ""
    await pilot.press(*("space" if sign == " " else sign for sign in words))


# What is shown.


async def test_rows_by_plan_and_task_with_their_bars(bench: Bench, app: Any, until: Any, drawn: Any) -> None:
    bench.begin("T-mark")
    bench.launch("d1", worktree="../1")
    bench.clock.step(300)
    bench.launch("d2", worktree="../2")
    bench.clock.step(7200)
    bench.collect("d1")
    bench.cancel("d2")
    bench.launch("d3", worktree="../3")
    bench.clock.step(120)
    bench.collect("d3", "failed", note="out of memory")
    bench.launch("d4", worktree="../4")
    console = app()
    async with console.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await ready(pilot, until, 6)
        assert [row.id.rpartition("\n")[2] for row in screen.rows.rows] == ["T-mark", "d1", "d2", "d3", "d4", "T-plain"]
        shown = text(drawn, console)
        assert "PLAN_unit_sample  1 open, 1 completed, 1 failed, 1 cancelled, 1 not observed" in shown
        for line in ("◐ completed", "○ cancelled", "✕ failed", "▸ open", "▸ in progress"):
            assert line in shown, line
        line = next(line for line in drawn(console) if " d1 " in line)
        # Two hours without an event take no more room than a quarter of an hour.
        assert "━┊━" in line
        assert line.rstrip().endswith("━")
        assert next(line for line in drawn(console) if " d4 " in line).rstrip().endswith("▸")


async def test_a_claim_is_no_evidence_until_a_gate_observed_it(bench: Bench, app: Any, until: Any, drawn: Any) -> None:
    bench.begin("T-mark")
    bench.launch("d1", worktree="../1")
    (bench.plan / "result.md").write_text("done\n")
    bench.collect("d1", result_path="result.md")
    console = app()
    async with console.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await ready(pilot, until, 3)
        await to(pilot, screen, "d1")
        await until(pilot, lambda: "it still is what was collected" in text(drawn, console))
        shown = text(drawn, console)
        assert CLAIM in shown
        for part in ("agentkit, headless", "../1", DIGEST):
            assert part in shown
        # Looked at again when the row is opened again.
        (bench.plan / "result.md").write_text("other\n")
        await pilot.press("up", "down")
        await until(pilot, lambda: "it is NOT what was collected" in text(drawn, console))
        ledger(bench, "gate", "--task", "T-mark", "--criterion", "AC-one", "--json", '["true"]')
        await until(pilot, lambda: "✓ observed" in text(drawn, console))
        assert "observed by a gate at seq 5" in text(drawn, console)


async def test_refusals_stand_with_their_task_and_have_a_code(bench: Bench, app: Any, until: Any, drawn: Any) -> None:
    bench.begin("T-mark")
    bench.launch("d1", worktree="../1")
    assert bench.launch("d1", worktree="../1").exit == 5
    assert bench.launch("d9", task="T-plain", worktree="../9").exit == 5
    console = app()
    async with console.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await ready(pilot, until, 3)
        await to(pilot, screen, "d1")
        reason = "seq 4, delegate: delegation_id d1 is already recorded (delegation_refused)"
        await until(pilot, lambda: reason in text(drawn, console))
        await to(pilot, screen, "T-plain")
        await until(pilot, lambda: "T-plain has not started (task_not_started)" in text(drawn, console))
        assert "1 refused" in next(line for line in drawn(console) if "T-plain  Unmarked" in line)


async def test_what_others_record_is_drawn_by_itself(bench: Bench, app: Any, until: Any, drawn: Any) -> None:
    bench.begin("T-mark")
    console = app()
    async with console.run_test(size=(100, 30), notifications=True) as pilot:
        screen = await ready(pilot, until, 2)
        await to(pilot, screen, "T-plain")
        ledger(bench, "delegate", "launch", "--task", "T-mark", "--json", said("elsewhere"))
        await until(pilot, lambda: " elsewhere " in text(drawn, console))
        assert screen.rows.row is not None
        assert screen.rows.row.id.endswith("T-plain")
        state = '{"delegation_id": "elsewhere", "state": "failed", "note": "gone"}'
        ledger(bench, "delegate", "collect", "--task", "T-mark", "--json", state)
        await until(pilot, lambda: "✕ failed" in text(drawn, console))
        ledger(bench, "roll")
        ledger(bench, "delegate", "launch", "--task", "T-mark", "--json", said("after"))
        await until(pilot, lambda: " after " in text(drawn, console))
        assert " elsewhere " in text(drawn, console)


@pytest.mark.parametrize("still", [False, True])
async def test_bars_and_ages_grow_only_where_motion_is_allowed(
    bench: Bench, app: Any, until: Any, drawn: Any, still: bool
) -> None:
    bench.begin("T-mark")
    bench.launch("d1", worktree="../1")
    bench.clock.step(60)
    bench.launch("d2", worktree="../2")
    console = app(reduced_motion=still)
    async with console.run_test(size=(100, 30), notifications=True) as pilot:
        screen = await ready(pilot, until, 4)

        def line() -> str:
            return next(line for line in drawn(console) if " d2 " in line)

        before = line()
        bench.clock.step(600)
        screen.tick()
        await pilot.pause()
        assert (line() == before) is still
        for _ in range(10):
            screen.tick()
        await pilot.pause()
        assert "10 m" in line()


async def test_open_only_and_the_filter(bench: Bench, app: Any, until: Any, drawn: Any) -> None:
    bench.begin("T-mark", "T-plain")
    for name in ("d1", "d2"):
        bench.launch(name, worktree=f"../{name}")
    bench.collect("d1")
    console = app()
    async with console.run_test(size=(100, 30), notifications=True) as pilot:
        screen = await ready(pilot, until, 4)
        await pilot.press("o")
        await pilot.pause()
        assert [row.id.rpartition("\n")[2] for row in screen.rows.rows] == ["T-mark", "d2"]
        bench.cancel("d2")
        await until(pilot, lambda: "Nothing is delegated and open now" in text(drawn, console))
        await pilot.press("o", "slash", *"cancelled")
        await until(pilot, lambda: [row.id[-2:] for row in screen.rows.rows if row.id.startswith("del")] == ["d2"])


async def test_plans_that_cannot_be_read_are_one_row_each(bench: Bench, app: Any, until: Any, drawn: Any) -> None:
    bench.begin("T-mark")
    bad, bare = bench.plan.parent / "PLAN_unit_bad", bench.plan.parent / "PLAN_unit_bare"
    for folder, files in ((bad, {"contract.json": "{"}), (bare, {"README.md": "# Goal\n"})):
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_text(content)
    console = app()
    async with console.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await ready(pilot, until, 4)
        shown = text(drawn, console)
        assert "✕ unreadable" in shown
        assert "○ draft" in shown
        assert "T-mark  Marked" in shown
        assert [(item.kind, item.lane) for item in console.waiting] == [("plan", "know")]
        await pilot.press("home")
        await until(pilot, lambda: "contract_invalid" in text(drawn, console))
        assert console.screen is screen
        await pilot.press("l")
        await pilot.pause()
        assert console.screen is screen
        # It is shown as soon as it can be read.
        made = Bench(bench.root / "other", bench.clock)
        made.begin("T-mark", plan="PLAN_unit_bad")
        for name in ("contract.json", "manifest.json", "journal.ndjson"):
            source = made.plan / name
            assert source.exists() or name != "contract.json"
        (bad / "contract.json").write_text((made.plan / "contract.json").read_text())
        await until(pilot, lambda: "✕ unreadable" not in text(drawn, console))


async def test_hostile_text_is_inert(bench: Bench, app: Any, until: Any, drawn: Any) -> None:
    tasks = draft()["tasks"]
    legal = [one.encode("utf-8", "replace").decode() for one in HOSTILE]
    tasks[0]["title"] = " ".join(legal)
    bench.begin("T-mark", tasks=tasks)
    for number, words in enumerate(legal):
        bench.launch(f"d{number}", worktree=f"../{words}"[:250], kind=words, target=words)
        bench.collect(f"d{number}", "failed", note=words)
    bench.launch(via="x", task=legal[0])
    console = app()
    async with console.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await ready(pilot, until, len(legal))
        for row in list(screen.rows.rows):
            screen.rows.move_to_id(row.id)
            await pilot.pause()
            shown = text(drawn, console)
            assert all(sign.isprintable() or sign == "\n" for sign in shown)
        await pilot.press("home")
        opened = await form(pilot, until, "l", LaunchForm)
        await until(pilot, lambda: opened.query_one(ChecksView).line_count)
        assert all(sign.isprintable() or sign == "\n" for sign in text(drawn, console))


# History.


async def test_stepping_shows_the_plan_as_it_was(bench: Bench, app: Any, until: Any, drawn: Any) -> None:
    bench.begin("T-mark")
    bench.launch("d1", worktree="../1")
    bench.clock.step(600)
    bench.collect("d1")
    console = app()
    async with console.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await ready(pilot, until, 3)
        await to(pilot, screen, "d1")
        await pilot.press("comma")
        await until(pilot, lambda: "as it was after seq 4: delegation d1" in text(drawn, console))
        await pilot.press("comma")
        await until(pilot, lambda: "as it was after seq 3" in text(drawn, console))
        assert "▸ open" in text(drawn, console)
        # Nobody acts in the past.
        before = bench.journal.read_bytes()
        await pilot.press("c")
        await pilot.pause()
        assert console.screen is screen
        await pilot.press("comma")
        await until(pilot, lambda: "as it was after seq 2" in text(drawn, console))
        assert " d1 " not in text(drawn, console)
        await pilot.press("full_stop", "full_stop")
        await until(pilot, lambda: "as it was after seq 4" in text(drawn, console))
        await pilot.press("0")
        await until(pilot, lambda: "as it was" not in text(drawn, console))
        assert bench.journal.read_bytes() == before


# The launch form.

BROKEN: dict[str, tuple[str, Callable[[Bench], object], dict[str, Any]]] = {
    "grant": ("does not grant", lambda bench: None, {"permissions": {"granted": ["context_export"], "not_granted": []}}),
    "started": ("T-mark has not started", lambda bench: None, {"start": "T-plain"}),
    "not-complete": ("T-mark is already complete", lambda bench: run_gate(bench), {}),
    "marker": ("is not marked parallel_safe", lambda bench: None, {"task": "T-plain", "start": "T-plain"}),
    "ability": ("is not enabled and detected", lambda bench: bench.registry({}), {}),
}


def run_gate(bench: Bench) -> None:
    assert gates.gate(bench.place, bench.world, gates.Gate("T-mark", "AC-one", ["true"])).exit == 0


@pytest.mark.parametrize("broken", BROKEN)
async def test_the_form_shows_the_one_condition_that_is_not_met(
    bench: Bench, app: Any, until: Any, drawn: Any, broken: str
) -> None:
    cause, break_it, changes = BROKEN[broken]
    changes = dict(changes)
    task = changes.pop("task", "T-mark")
    bench.begin(changes.pop("start", "T-mark"), **changes)
    break_it(bench)
    before = bench.journal.read_bytes()
    console = app()
    async with console.run_test(size=(120, 40), notifications=True) as pilot:
        screen = await ready(pilot, until, 2)
        await to(pilot, screen, task)
        opened = await form(pilot, until, "l", LaunchForm)
        checks = opened.query_one(ChecksField)
        await until(pilot, lambda: "11 of 12 met" in text(drawn, console))
        lines = [line for line in drawn(console) if "not met" in line]
        assert len(lines) == 1
        assert cause in text(drawn, console)
        assert checks is not None
        # A launch that would be refused is not even asked for.
        await pilot.press("f2")
        await until(pilot, lambda: f"not met: " in text(drawn, console))
        assert console.screen is opened
    assert bench.journal.read_bytes() == before


async def test_a_launch_by_keys(bench: Bench, app: Any, until: Any, keys: Any, drawn: Any) -> None:
    bench.begin("T-mark")
    before = bench.journal.read_bytes()
    console = app()
    async with console.run_test(size=(120, 40), notifications=True) as pilot:
        screen = await ready(pilot, until, 2)
        await to(pilot, screen, "T-mark")
        opened = await form(pilot, until, "l", LaunchForm)
        await until(pilot, lambda: "12 of 12 met" in text(drawn, console))
        await type_into(pilot, opened, "id", "by-keys")
        await type_into(pilot, opened, "instructions", "Mind the owner")
        await keys(pilot, "f2", "preview")
        assert bench.journal.read_bytes() == before
        shown = text(drawn, console)
        assert '"delegation_id":"by-keys"' in shown.replace("\n", "").replace(" ", "") or "by-keys" in shown
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(console.screen, HandoverScreen))
        shown = text(drawn, console)
        assert "git worktree add" in shown
        assert "Mind the owner" in shown
        await pilot.press("escape")
        await until(pilot, lambda: console.screen is screen and " by-keys " in text(drawn, console))
        assert console.user_state.load("drafts/none") == {} or True
    event = bench.events()[-1]
    assert (event["state"], event["delegation_id"], event["actor"]) == (
        "launched",
        "by-keys",
        {"kind": "human", "identity": ME},
    )
    assert len(list((bench.repo / "receipts").glob("del-*.json"))) == 1


async def test_a_draft_outlives_the_form(bench: Bench, app: Any, until: Any, drawn: Any) -> None:
    bench.begin("T-mark")
    console = app()
    async with console.run_test(size=(120, 40), notifications=True) as pilot:
        screen = await ready(pilot, until, 2)
        await to(pilot, screen, "T-mark")
        opened = await form(pilot, until, "l", LaunchForm)
        await type_into(pilot, opened, "id", "kept")
        await pilot.press("escape")
        await until(pilot, lambda: console.screen is screen)
        again = await form(pilot, until, "l", LaunchForm)
        await until(pilot, lambda: again.line("id") == "kept")


async def test_a_preview_is_bound_to_the_head(bench: Bench, app: Any, until: Any, keys: Any, drawn: Any) -> None:
    bench.begin("T-mark")
    bench.launch("d1", worktree="../1")
    console = app()
    async with console.run_test(size=(120, 40), notifications=True) as pilot:
        screen = await ready(pilot, until, 3)
        await to(pilot, screen, "d1")
        await form(pilot, until, "x", CancelForm)
        await keys(pilot, "f2", "preview")
        ledger(bench, "append", "--type", "observation", "--json", '{"statement": "meanwhile"}', "--trust", "asserted")
        await pilot.press("enter")
        await until(pilot, lambda: "Recorded meanwhile" in text(drawn, console))
        assert "4 observation" in text(drawn, console)
        assert bench.events()[-1]["type"] == "observation"
        await keys(pilot, "preview", "enter")
        await until(pilot, lambda: console.screen is screen)
    assert [event["type"] for event in bench.events()[-2:]] == ["observation", "delegation"]
    assert bench.events()[-1]["state"] == "cancelled"


async def test_a_preview_of_what_is_over_meanwhile_is_refused(
    bench: Bench, app: Any, until: Any, keys: Any, drawn: Any
) -> None:
    bench.begin("T-mark")
    bench.launch("d1", worktree="../1")
    console = app()
    async with console.run_test(size=(120, 40), notifications=True) as pilot:
        screen = await ready(pilot, until, 3)
        await to(pilot, screen, "d1")
        await form(pilot, until, "c", CollectForm)
        await keys(pilot, "f2", "preview")
        ledger(bench, "delegate", "cancel", "--task", "T-mark", "--json", '{"delegation_id": "d1"}')
        before = bench.journal.read_bytes()
        await pilot.press("enter")
        await until(pilot, lambda: "d1 is already cancelled" in text(drawn, console))
    assert bench.journal.read_bytes() == before


@pytest.mark.parametrize("key", ["l", "c", "x", "r", "s", "e", "enter", "o", "f2", "slash"])
async def test_nothing_is_recorded_by_one_key(bench: Bench, app: Any, until: Any, key: str) -> None:
    bench.begin("T-mark")
    bench.launch("d1", worktree="../1")
    bench.collect("d1")
    bench.launch("d2", worktree="../2")
    before = {path: path.read_bytes() for path in bench.repo.rglob("*") if path.is_file()}
    console = app()
    async with console.run_test(size=(100, 30), notifications=True) as pilot:
        screen = await ready(pilot, until, 4)
        for name in ("T-mark", "d1", "d2"):
            await to(pilot, screen, name)
            await pilot.press(key)
            await pilot.pause(0.05)
            for _ in range(3):
                await pilot.press("escape")
            await until(pilot, lambda: True)
            if console.base is not screen:
                await pilot.press("3")
                await until(pilot, lambda: console.base is screen)
    assert {path: path.read_bytes() for path in bench.repo.rglob("*") if path.is_file()} == before


# Ending, starting, completing.


async def test_collect_then_gate_then_complete(bench: Bench, app: Any, until: Any, keys: Any, drawn: Any) -> None:
    bench.begin("T-mark")
    bench.launch("d1", worktree="../1")
    (bench.plan / "out.md").write_text("done\n")
    console = app()
    async with console.run_test(size=(120, 40), notifications=True) as pilot:
        screen = await ready(pilot, until, 3)
        await to(pilot, screen, "d1")
        opened = await form(pilot, until, "c", CollectForm)
        await type_into(pilot, opened, "result_path", "out.md")
        await keys(pilot, "f2", "preview")
        assert "That is a claim until a gate" in text(drawn, console)
        await pilot.press("enter")
        await until(pilot, lambda: console.screen is screen and "◐ completed" in text(drawn, console))
        await until(pilot, lambda: [item.kind for item in console.waiting] == ["delegation-ungated"])
        await form(pilot, until, "r", GateForm)
        await keys(pilot, "f2", "preview", "enter")
        await until(pilot, lambda: isinstance(console.screen, GateScreen) and "RAN: exit 0" in text(drawn, console))
        await pilot.press("enter")
        await until(pilot, lambda: console.screen is screen and "✓ observed" in text(drawn, console))
        await until(pilot, lambda: console.waiting == ())
        await to(pilot, screen, "T-mark")
        await keys(pilot, "e", "preview")
        assert "completion is derived" in text(drawn, console)
        await pilot.press("enter")
        await until(pilot, lambda: console.screen is screen)
    assert [event["type"] for event in bench.events()[-2:]] == ["delegation", "gate_run"]
    assert bench.events()[-2]["result_path"] == "out.md"


async def test_a_task_is_started_and_what_is_missing_is_said(
    bench: Bench, app: Any, until: Any, keys: Any, drawn: Any
) -> None:
    bench.begin("T-mark")
    console = app()
    async with console.run_test(size=(120, 40), notifications=True) as pilot:
        screen = await ready(pilot, until, 2)
        await to(pilot, screen, "T-plain")
        await keys(pilot, "s", "preview", "enter")
        await until(pilot, lambda: console.screen is screen and bench.events()[-1]["task"] == "T-plain")
        await until(pilot, lambda: screen.context().plan is not None and screen.context().plan.status != "pending")
        await pilot.press("e")
        await until(pilot, lambda: "missing: AC-two" in text(drawn, console))
    assert bench.events()[-1]["actor"] == {"kind": "human", "identity": ME}


async def test_a_changed_tree_is_shown_before_it_is_recorded(
    bench: Bench, app: Any, until: Any, keys: Any, drawn: Any
) -> None:
    bench.git()
    bench.begin("T-plain")
    assert bench.launch("r1", task="T-plain", worktree=None).ok
    (bench.repo / "src" / "new").write_text("x")
    console = app()
    async with console.run_test(size=(120, 40), notifications=True) as pilot:
        screen = await ready(pilot, until, 2)
        await to(pilot, screen, "r1")
        assert "none: it may only read" in text(drawn, console)
        await form(pilot, until, "c", CollectForm)
        await keys(pilot, "f2", "preview")
        assert "this is refused: the working tree changed" in text(drawn, console)
        assert bench.events()[-1]["state"] == "launched"
        await pilot.press("enter")
        await until(pilot, lambda: console.screen is screen)
    assert [event.get("state") or event["type"] for event in bench.events()[-2:]] == ["failed", "refusal"]


# Gates.


def sleeper(bench: Bench, place: Path) -> Bench:
    """A task whose check says something, then waits for a file."""
    check = f"echo begun; echo $$ > {place}/pid; while [ ! -e {place}/go ]; do sleep 0.02; done; echo over"
    tasks = draft()["tasks"]
    tasks[0]["gate_intent"] = [{"criterion": "AC-one", "check": check}]
    scope = {**draft()["scope"], "allowed_command_classes": ["echo", "true", "false"]}
    return bench.begin("T-mark", tasks=tasks, scope=scope)


@pytest.mark.parametrize("end", ["over", "cancelled"])
async def test_a_gates_output_comes_while_it_runs(
    bench: Bench, app: Any, until: Any, keys: Any, drawn: Any, end: str
) -> None:
    sleeper(bench, bench.root)
    before = bench.journal.read_bytes()
    console = app()
    async with console.run_test(size=(120, 40), notifications=True) as pilot:
        screen = await ready(pilot, until, 2)
        await to(pilot, screen, "T-mark")
        opened = await form(pilot, until, "r", GateForm)
        assert opened.query_one("#field-how").choice.id == "shell"
        await keys(pilot, "f2", "preview")
        assert "by /bin/sh" in text(drawn, console)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(console.screen, GateScreen) and "begun" in text(drawn, console))
        assert "over" not in text(drawn, console)
        await until(pilot, lambda: (bench.root / "pid").exists() and (bench.root / "pid").read_text().strip())
        pid = int((bench.root / "pid").read_text())
        if end == "cancelled":
            await pilot.press("escape")
            await until(pilot, lambda: "cancelled: its process group was ended" in text(drawn, console))
            assert bench.journal.read_bytes() == before
            assert not Path(f"/proc/{pid}").exists() or not bench.locked()
        else:
            (bench.root / "go").write_text("")
            await until(pilot, lambda: "RAN: exit 0" in text(drawn, console))
            assert bench.events()[-1]["trust"] == "observed"
        await pilot.press("enter")
        await until(pilot, lambda: console.screen is screen)
    assert not bench.locked()


async def test_leaving_the_console_ends_the_gate(bench: Bench, app: Any, until: Any, keys: Any, drawn: Any) -> None:
    sleeper(bench, bench.root)
    before = bench.journal.read_bytes()
    console = app()
    async with console.run_test(size=(120, 40), notifications=True) as pilot:
        screen = await ready(pilot, until, 2)
        await to(pilot, screen, "T-mark")
        await form(pilot, until, "r", GateForm)
        await keys(pilot, "f2", "preview", "enter")
        await until(pilot, lambda: isinstance(console.screen, GateScreen) and "begun" in text(drawn, console))
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(10)
    assert bench.journal.read_bytes() == before
    assert not bench.locked()


async def test_a_gate_that_fails_says_so(bench: Bench, app: Any, until: Any, keys: Any, drawn: Any) -> None:
    bench.begin("T-mark")
    console = app()
    async with console.run_test(size=(120, 40), notifications=True) as pilot:
        screen = await ready(pilot, until, 2)
        await to(pilot, screen, "T-mark")
        opened = await form(pilot, until, "r", GateForm)
        await type_into(pilot, opened, "command", "git push")
        await pilot.press("f2")
        await until(pilot, lambda: "git is no allowed command class" in text(drawn, console))
        await type_into(pilot, opened, "command", "false")
        await keys(pilot, "f2", "preview", "enter")
        await until(pilot, lambda: "RAN: exit 1" in text(drawn, console))
        assert "the gate of AC-one ended with 1" in text(drawn, console)
        await pilot.press("enter")
        await until(pilot, lambda: console.screen is screen)
    assert (bench.events()[-1]["exit_code"], bench.events()[-1]["command"]) == (1, "false")


@pytest.mark.parametrize(
    ("check", "shell"),
    [("true", False), ("test -s results/a.md", False), ("a | b", True), ("A=1 b", True), ("x > y", True), ("'", True)],
)
def test_a_check_goes_without_a_shell_if_it_can(check: str, shell: bool) -> None:
    assert needs_shell(check) is shell


# The inbox.


async def test_the_inbox_leads_to_the_delegation(bench: Bench, app: Any, until: Any, drawn: Any) -> None:
    bench.begin("T-mark")
    bench.launch("d1", worktree="../1")
    bench.launch("d2", worktree="../2")
    console = app(delegation_minutes=45)
    async with console.run_test(size=(120, 36), notifications=True) as pilot:
        await until(pilot, lambda: console.complete)
        assert console.waiting == ()
        bench.clock.step(44 * 60)
        await pilot.press("ctrl+r")
        await until(pilot, lambda: "reading everything again" in text(drawn, console))
        assert console.waiting == ()
        bench.clock.step(120)
        await until(pilot, lambda: len(console.waiting) == 2)
        assert {item.lane for item in console.waiting} == {"unblock"}
        await pilot.press("n")
        await until(pilot, lambda: isinstance(console.base, DelegationsScreen) and console.base.spot is not None)
        screen = console.base
        assert isinstance(screen, DelegationsScreen)
        await until(pilot, lambda: screen.spot is not None and screen.spot.name == "d1")
        await pilot.press("n")
        await until(pilot, lambda: screen.spot is not None and screen.spot.name == "d2")
        await pilot.press("enter")
        assert screen.query_one("#report", Pane).has_focus
        assert timedelta(minutes=45) == console.reading._evidence._open_age


async def test_whoever_is_nobody_is_asked_first(bench: Bench, console: Any, until: Any, drawn: Any) -> None:
    bench.begin("T-mark")
    app: ConsoleApp = console(bench.repo, environ=bench.environ)
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        screen = await ready(pilot, until, 2)
        await pilot.press("l")
        await until(pilot, lambda: "say who you are first" in text(drawn, app))
        assert app.screen is screen


def test_the_store_is_what_a_launch_is_judged_by() -> None:
    """The form asks the very function of the verb's dry run."""
    import tui.forms.delegation as forms

    assert forms.store.dry_run is store.dry_run
