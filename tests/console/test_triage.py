"""Triage by keys alone: a pasted stack trace becomes a code and its inbox item goes (docs/specs/console.md §2)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from textual import events

from core.acp import guided
from core.triage import store, view
from core.triage.rules import mint
from core.triage.store import Place
from tests.conftest import console_script
from tui.app import ConsoleApp
from tui.forms.confirm import ConfirmScreen
from tui.forms.naming import AliasForm, PromoteForm
from tui.screens.ask import AskScreen
from tui.screens.choose import ChooseScreen
from tui.screens.inbox import InboxScreen
from tui.screens.triage import TriageScreen

TRACE = (
    "Traceback (most recent call last):\n"
    '  File "job.py", line 3, in <module>\n'
    "    run()\n"
    "FlangeError: the flange of the pump is loose"
)
CODE = mint(TRACE, None)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace that has met nothing yet."""
    root = tmp_path / "work"
    (root / "triage").mkdir(parents=True)
    return root


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


async def paste(pilot: Any, text: str) -> None:
    pilot.app.post_message(events.Paste(text))
    await pilot.pause()


def observe(root: Path, text: str = TRACE, layer: str | None = None) -> store.Observed:
    return store.observe(Place(root), text, layer, "server")


async def ready(pilot: Any, until: Any) -> TriageScreen:
    """The screen with its vocabulary read."""
    app = pilot.app
    await until(pilot, lambda: app.complete)
    await pilot.press("5")
    await until(pilot, lambda: isinstance(app.base, TriageScreen) and app.base.vocabulary is not None)
    screen = app.base
    assert isinstance(screen, TriageScreen)
    return screen


def classify(root: Path) -> dict[str, Any]:
    """What another process says of the trace now."""
    argv = ["triage", "classify", "--text", TRACE, "--root", str(root), "-o", "json"]
    done = subprocess.run([console_script(), *argv], capture_output=True, encoding="utf-8", check=True)
    return dict(json.loads(done.stdout))


def observe_elsewhere(root: Path) -> None:
    """Another process meets the trace."""
    argv = ["triage", "observe", "--text", TRACE, "--root", str(root)]
    subprocess.run([console_script(), *argv], capture_output=True, check=True)


def everything(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def codes(root: Path) -> dict[str, str]:
    return {seen.code: seen.status for seen in view.listing(Place(root)).codes}


async def test_a_pasted_trace_becomes_a_code_and_its_inbox_item_goes(
    workspace: Path, console: Any, until: Any, keys: Any, drawn: Any
) -> None:
    app: ConsoleApp = console(workspace, me="reader")
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        screen = await ready(pilot, until)
        await pilot.press("s")
        await paste(pilot, TRACE)
        await until(pilot, lambda: CODE in "\n".join(drawn(app)))
        assert "FlangeError: the flange of the pump is loose" in "\n".join(drawn(app))
        assert codes(workspace) == {}
        # Recorded twice: only then does it wait for a name.
        await keys(pilot, "f2", "preview", "enter")
        await until(pilot, lambda: codes(workspace) == {CODE: "new"})
        await until(pilot, lambda: app.base is screen and screen.rows.row is not None and CODE in screen.rows.row.id)
        assert [item.kind for item in app.waiting] == []
        await keys(pilot, "o", "preview", "enter")
        await until(pilot, lambda: codes(workspace) == {CODE: "recurring"})
        await until(pilot, lambda: [item.title for item in app.waiting] == [CODE])
        assert app.waiting_count == 1
        await pilot.press("1")
        await until(pilot, lambda: isinstance(app.base, InboxScreen) and CODE in "\n".join(drawn(app)))
        await pilot.press("enter")
        await until(pilot, lambda: app.base is screen and screen.subject() is not None)
        await pilot.press("p")
        await until(pilot, lambda: isinstance(app.screen, PromoteForm))
        assert "flangeerror: the flange of the pump is loose" in "\n".join(drawn(app))
        await pilot.press(*"flange_loose", "tab", *"pumps", "tab", "tab", *"The flange is loose.", "f2")
        await keys(pilot, "preview")
        shown = "\n".join(drawn(app))
        assert "flange_loose" in shown
        assert "collab triage promote" in shown
        assert codes(workspace) == {CODE: "recurring"}
        await pilot.press("enter")
        await until(pilot, lambda: codes(workspace) == {CODE: "promoted"})
        await until(pilot, lambda: app.waiting == ())
        assert app.waiting_count == 0
        await until(pilot, lambda: "flange_loose" in "\n".join(drawn(app)))
    report = classify(workspace)
    assert (report["code"], report["layer"], report["ambiguous"]) == ("flange_loose", "pumps", False)


async def test_an_alias_is_chosen_by_typing(workspace: Path, console: Any, until: Any, keys: Any, drawn: Any) -> None:
    observe(workspace), observe(workspace)
    app = console(workspace, me="reader")
    async with app.run_test(size=(100, 34), notifications=True) as pilot:
        screen = await ready(pilot, until)
        await until(pilot, lambda: screen.subject() is not None)
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, AliasForm))
        await pilot.press(*"no space left", "f2")
        await keys(pilot, "preview")
        assert "disk_full" in "\n".join(drawn(app))
        await pilot.press("enter")
        await until(pilot, lambda: codes(workspace) == {CODE: "aliased"})
        await until(pilot, lambda: app.waiting == ())
        await until(pilot, lambda: screen.context().settled == "it is aliased already: disk_full")
        await pilot.press("p")
        assert app.screen is screen


async def test_a_promotion_without_effect_says_so_at_its_field_and_keeps_the_draft(
    workspace: Path, console: Any, until: Any, drawn: Any
) -> None:
    observe(workspace), observe(workspace)
    app = console(workspace, me="reader")
    async with app.run_test(size=(100, 44), notifications=True) as pilot:
        screen = await ready(pilot, until)
        await until(pilot, lambda: screen.subject() is not None)
        await pilot.press("p")
        await until(pilot, lambda: isinstance(app.screen, PromoteForm))
        form = app.screen
        await pilot.press(*"PASS", "f2")
        await until(pilot, lambda: form.query_one("#field-code").failed)
        text = "\n".join(drawn(app))
        assert "it can be no code" in text
        assert "--layer must not be blank" in text
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen)
        await until(pilot, lambda: any((app.user_state.folder / "drafts").glob("*.json")))
        await pilot.press("p")
        await until(pilot, lambda: "PASS" in "\n".join(drawn(app)))
    assert codes(workspace) == {CODE: "recurring"}


async def test_the_screen_is_live_on_what_other_processes_meet(
    workspace: Path, console: Any, until: Any, drawn: Any
) -> None:
    app = console(workspace, me="reader")
    async with app.run_test(size=(120, 34), notifications=True) as pilot:
        await ready(pilot, until)
        for _ in range(2):
            observe_elsewhere(workspace)
        await until(pilot, lambda: CODE in "\n".join(drawn(app)) and "recurring" in "\n".join(drawn(app)))
        await until(pilot, lambda: app.waiting_count == 1)


async def test_layer_file_and_catalogue(workspace: Path, own_home: Path, console: Any, until: Any, drawn: Any) -> None:
    note = own_home / "note.txt"
    note.write_text("cannot write x: No space left on device\n", "utf-8")
    app = console(workspace, me="reader")
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        screen = await ready(pilot, until)
        await pilot.press("f")
        assert isinstance(app.screen, AskScreen)
        await pilot.press(*"~/note.txt", "enter")
        await until(pilot, lambda: "disk_full" in "\n".join(drawn(app)))
        assert "no space left" in "\n".join(drawn(app))
        await pilot.press("escape", "l")
        assert isinstance(app.screen, ChooseScreen)
        await pilot.press("down", "enter")
        await until(pilot, lambda: mint(note.read_text("utf-8"), "acp") in "\n".join(drawn(app)))
        await pilot.press("t", "slash", *"readiness_bl")
        await until(pilot, lambda: [row.id for row in screen.rows.rows] == ["entry:readiness_blocking"])
        await until(pilot, lambda: "blocking readiness items must be cleared" in "\n".join(drawn(app)))


async def test_no_single_key_writes(workspace: Path, console: Any, until: Any) -> None:
    observe(workspace)
    before = everything(workspace)
    app = console(workspace, me="reader")
    async with app.run_test(size=(100, 34), notifications=True) as pilot:
        screen = await ready(pilot, until)
        await pilot.press("s")
        await paste(pilot, TRACE)
        await until(pilot, lambda: screen.context().minted == CODE)
        await pilot.press("escape")
        for key in ("o", "p", "a", "f", "l", "t", "enter", "f2"):
            await pilot.press(key)
            await pilot.pause()
            if app.screen is not screen:
                await app.to_base()
                await until(pilot, lambda: app.screen is screen or getattr(app.screen, "deaf", False) is False)
                await app.to_base()
    assert everything(workspace) == before


async def test_a_verdict_is_refused_with_its_reason(workspace: Path, console: Any, until: Any, drawn: Any) -> None:
    app = console(workspace, me="reader")
    async with app.run_test(size=(100, 34), notifications=True) as pilot:
        screen = await ready(pilot, until)
        await pilot.press("s", *"blocked")
        await until(pilot, lambda: "is a verdict, not a cause" in "\n".join(drawn(app)))
        assert "is a verdict" in screen.context().obstacle


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (200, 50)])
async def test_a_hostile_signal_is_inert_at_every_size(
    size: tuple[int, int], workspace: Path, console: Any, until: Any, drawn: Any
) -> None:
    observe(workspace, "\x1b[2J[bold]x[/] \u202e evil\x07 [@click=app.quit]y[/]")
    app = console(workspace, me="reader")
    async with app.run_test(size=size, notifications=True) as pilot:
        screen = await ready(pilot, until)
        await until(pilot, lambda: screen.rows.row is not None)
        await pilot.press("enter", "t", "t")
        await pilot.pause()
        text = "\n".join(drawn(app))
        assert "\x1b" not in text
        assert "\u202e" not in text


async def test_a_broken_catalogue_is_said_and_nothing_dies(
    workspace: Path, console: Any, until: Any, drawn: Any
) -> None:
    (workspace / "triage" / "failure_codes.json").write_text("{", "utf-8")
    app = console(workspace, me="reader")
    async with app.run_test(size=(100, 34), notifications=True) as pilot:
        await ready(pilot, until)
        await until(pilot, lambda: "is not JSON" in "\n".join(drawn(app)))
        await pilot.press("s", "x")
        await pilot.pause()
        assert app.is_running


async def test_receipts_members_graph_and_status(
    tmp_path: Path, own_home: Path, make_folder: Any, console: Any, until: Any, drawn: Any, clock: Any
) -> None:
    (tmp_path / "receipts").mkdir()
    path = make_folder()
    clock.step(60)
    made = guided.commit(path, guided.block("reader", "The lease of the host ran out"), clock)
    app = console(me="reader")
    async with app.run_test(size=(140, 40), notifications=True) as pilot:
        await until(pilot, lambda: app.complete)
        await pilot.press("6")
        await until(pilot, lambda: "collab.acp_boundary.v1" in "\n".join(drawn(app)))
        text = "\n".join(drawn(app))
        assert made.code in text
        assert "trusted" in text
        assert [item.kind for item in app.waiting] == ["acp"]
        receipt = next((tmp_path / "receipts").glob("acp-*.json"))
        raw = json.loads(receipt.read_text("utf-8"))
        raw["parent_refs"] = [{"receipt_id": "gone", "expected_schema": "x", "expected_producer": "y", "digest": None}]
        receipt.write_text(json.dumps(raw), "utf-8")
        await until(pilot, lambda: "there is no receipt gone" in "\n".join(drawn(app)))
        await until(pilot, lambda: sorted(item.kind for item in app.waiting) == ["acp", "receipt"])
        await pilot.press("t")
        await until(pilot, lambda: "No status lies among the receipts" in "\n".join(drawn(app)))
        await pilot.press("t")
        await until(pilot, lambda: "triage-error" in "\n".join(drawn(app)))
        await pilot.press("t")
        await until(pilot, lambda: "▶" in "\n".join(drawn(app)))
        status = own_home / "s.json"
        status.write_text(
            json.dumps(
                {
                    "schema": "pi.agent_status.v1",
                    "goal": "Ship it",
                    "state": "continuing",
                    "changed": ["a"],
                    "not_done": [{"item": "b", "next_command": "make b"}],
                }
            ),
            "utf-8",
        )
        await pilot.press("f", *"~/s.json", "enter")
        await until(pilot, lambda: "make b" in "\n".join(drawn(app)) and "Goal: Ship it" in "\n".join(drawn(app)))


def status(state: str, **more: Any) -> str:
    return json.dumps({"schema": "pi.agent_status.v1", "goal": "Ship it", "state": state, "changed": ["a"], **more})


async def test_a_status_that_needs_a_human_waits_until_it_is_settled(
    tmp_path: Path, console: Any, until: Any, drawn: Any
) -> None:
    kept = tmp_path / "receipts"
    kept.mkdir()
    (kept / "go on.json").write_text(status("continuing", not_done=[{"item": "b", "next_command": "make b"}]))
    (kept / "wrong.json").write_text(status("needs_human"))
    asked = {"action": "Renew the certificate\x1b[2J", "reason": "The host refuses the old one [red]"}
    app: ConsoleApp = console(tmp_path, me="reader")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await until(pilot, lambda: app.complete)
        assert app.waiting == ()
        (kept / "stuck.json").write_text(status("needs_human", needs_human=asked))
        await until(
            pilot,
            lambda: (
                [(item.kind, item.lane, item.title) for item in app.waiting] == [("status", "unblock", "stuck.json")]
            ),
        )
        assert app.waiting_count == 1
        await until(pilot, lambda: "Renew the certificate" in "\n".join(drawn(app)))
        await pilot.press("enter")
        await until(pilot, lambda: "Needs human: Renew the certificate" in "\n".join(drawn(app)))
        text = "\n".join(drawn(app))
        assert "The host refuses the old one [red]" in text
        assert "\x1b" not in text
        assert text.index("needs_human") < text.index("continuing")
        assert "invalid" in text
        await pilot.press("end", "home", "down")
        await until(pilot, lambda: "make b" in "\n".join(drawn(app)))
        # What was asked for is done, and the agent says so.
        (kept / "stuck.json").write_text(status("continuing", not_done=[{"item": "c", "next_command": "make c"}]))
        await until(pilot, lambda: app.waiting == () and app.waiting_count == 0)
