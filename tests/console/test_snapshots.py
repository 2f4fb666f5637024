"""Every screen and form as it is drawn, committed from one version of Python and of Textual.

`pytest tests/console/test_snapshots.py --snapshot-update` draws them anew; look at each before committing it.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, TextArea

from core import clock as clocks
from core.acp import store, supporting
from core.acp.declare import Declaration
from core.acp.reader import read
from core.acp.templates import initialize
from core.acp.view import default_draft
from core.state import UserState
from core.triage import store as triage
from tests.console import workflow_root
from tests.unit.core.acp.test_version_two import fill, make, to_readiness
from tests.unit.core.workflow.stage import Stepped
from tui.app import ConsoleApp
from tui.cli import demo, demo_plan
from tui.forms.bar import Bar
from tui.forms.base import FormScreen
from tui.forms.checks import ChecksView
from tui.forms.confirm import ConfirmScreen
from tui.forms.delegation import LaunchForm
from tui.forms.escalation import AnswerForm
from tui.forms.fields import Field, LineField
from tui.forms.naming import PromoteForm
from tui.forms.preview import PreviewScreen
from tui.screens.changes import DiffScreen
from tui.screens.collaboration import CollaborationScreen
from tui.screens.declare import DeclareScreen
from tui.screens.new import NewScreen
from tui.screens.story import StoryScreen
from tui.settings import Loaded, Settings

PLACE = Path("/tmp/collab-snapshots")
"""Paths are in the pictures, so each test has a fixed one, which it holds alone while it runs."""

BEGIN = datetime(2026, 3, 2, 14, 2, tzinfo=UTC)
NOW = datetime(2026, 3, 2, 18, 30, tzinfo=UTC)
SIZES = ((60, 15), (120, 36), (200, 50))
PHASES = ("reviewing", "revising", "decision_review", "readiness_check")
TRACE = "Traceback (most recent call last):\nFlangeError: the flange of the pump is loose"
CJK = "提案：会话缓存の設計 한국어 ｆｕｌｌ幅"


class Steps:
    """A clock for the making of samples: three minutes an event."""

    def __init__(self) -> None:
        self.moment = BEGIN

    def now(self) -> datetime:
        self.moment += timedelta(minutes=3)
        return self.moment


class Still:
    """The moment at which everything is drawn."""

    def now(self) -> datetime:
        return NOW


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's workspace, one collaboration a phase, and folders that are empty, broken, long or in other scripts."""
    made = tmp_path_factory.mktemp("samples")
    steps = Steps()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clocks.SystemClock, "now", lambda _: steps.now())
        (made / "demo").mkdir()
        demo.build(made / "demo")
        for phase in PHASES:
            demo.play(made / phase / "log-format", demo.samples()[demo.DONE_ONE], phase)
    begin(made / "drafting" / "log-format", steps)
    begin(made / "cjk" / "talk", steps, f"{CJK} " * 3, ("所有者", "審査員"))
    (made / "cjk/talk/proposal.md").write_text(f"# {CJK}\n\n- {CJK * 6}\n\n| 列 | 値 |\n|---|---|\n| {CJK} | 1 |\n")
    submit(made / "cjk" / "talk", "所有者", steps, f"{CJK} " * 8)
    begin(
        made / "long" / "talk",
        steps,
        "An objective that goes on " * 12,
        tuple(f"participant-{n:03d}" for n in range(40)),
    )
    body = "".join(f"## Section {n}\n\n{'word ' * 60}\n\n" for n in range(60)) + "x" * 3000 + "\n"
    (made / "long/talk/proposal.md").write_text(f"# Long\n\n{body}")
    submit(made / "long" / "talk", "participant-000", steps, "said at length " * 40)
    begin(made / "broken" / "talk", steps)
    (made / "broken/talk/protocol.json").write_text("{not json")
    begin(made / "broken" / "damaged", steps)
    with (made / "broken/damaged/events.jsonl").open("a") as handle:
        handle.write('this is no event\n{"seq": 3, "from": "server"')
    begin(made / "unknown" / "talk", steps)
    submit(made / "unknown" / "talk", "server", steps, "Without our records")
    shutil.rmtree(made / "unknown/talk/.collab")
    (made / "empty").mkdir()
    second(made / "second" / "talk", steps)
    closing(made)
    met(made / "met")
    workflow_root.sample(made / "runs", Stepped(BEGIN))
    demo_plan.build(made / "plans", Still())
    return made


def closing(made: Path) -> None:
    """Collaborations of which the decisions can be accepted, the deliverable frozen, the conclusion written."""
    steps = Steps()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clocks.SystemClock, "now", lambda _: steps.now())
        for phase, sample, last in (
            ("decision_review", "accepting", "question_classified"),
            ("readiness_check", "concluding", "readiness_passed"),
        ):
            path, script = made / sample / "log-format", demo.samples()[demo.DONE_ONE]
            demo.play(path, script, phase)
            while read(path).events[-1].name != last:
                demo.Actor(path, "server", script).act()
    fill(make(made / "freezing" / "talk") / "deliverables/adr.md")
    to_readiness(made / "freezing" / "talk")


def met(root: Path) -> None:
    """A workspace with failures that were met, a trusted receipt, one that is not, and statuses."""
    (root / "receipts").mkdir(parents=True)
    steps = Steps()
    for signal, layer in ((TRACE, "pumps"), ("The gauge reads nothing", None), (TRACE, "pumps")):
        triage.observe(triage.Place(root), signal, layer, "server", clock=steps)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clocks.SystemClock, "now", lambda _: steps.now())
        demo.play(root / "log-format", demo.samples()[demo.DONE_ONE], "completed")
    statuses: dict[str, dict[str, Any]] = {
        "certificate": {"state": "needs_human", "needs_human": {"action": "Renew it", "reason": "It ends today"}},
        "migration": {"state": "continuing", "not_done": [{"item": "The index", "next_command": "make index"}]},
        "rollout": {"state": "done"},
    }
    for name, more in statuses.items():
        path = root / "receipts" / f"{name}.json"
        path.write_text(json.dumps({"schema": "pi.agent_status.v1", "goal": "Ship it", "changed": ["a"], **more}))
        os.utime(path, (BEGIN.timestamp(), BEGIN.timestamp()))
    closure = next(path for path in (root / "receipts").glob("acp-*.json") if b'"completed"' in path.read_bytes())
    untrusted = json.loads(closure.read_text()) | {"receipt_id": "copied"}
    untrusted["parent_refs"][0]["receipt_id"] = "gone"
    (root / "receipts" / "copied.json").write_text(json.dumps(untrusted))


def begin(
    path: Path, steps: Steps, objective: str = "Agree on one log format.", people: Any = ("server", "reader")
) -> None:
    initialize(path, objective, people, ("Field names are listed",), steps, "en")


def submit(path: Path, who: str, steps: Steps, summary: str) -> None:
    draft = default_draft(read(path), who, "proposal_submitted")
    made = type(draft)(who, draft.event, summary, draft.doc, draft.reply_to)
    store.append(path, made, clock=steps)


def second(path: Path, steps: Steps) -> None:
    """A schema 2 folder with deliverables, the supporting one just begun."""
    people, gates = ("server", "reader"), ("Field names are listed",)
    initialize(path, "Agree on one log format.", people, gates, steps, declared=Declaration("adr"))
    adr = path / "deliverables/adr.md"
    adr.write_text(adr.read_text().replace("\n\n## ", "\n\nSaid.\n\n## ") + "\nSaid.\n")
    supporting.add(path, "server", "plan.md", "test-plan", clock=steps)


@pytest.fixture
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of a fixed name for this test alone, as HOME; the machine's zone and colours do not count."""
    name = "".join(char if char.isalnum() else "-" for char in request.node.name.partition("[")[2].rstrip("]"))
    folder = PLACE / (name or request.node.name)
    PLACE.mkdir(exist_ok=True)
    with (PLACE / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        monkeypatch.setenv("HOME", str(folder))
        monkeypatch.setenv("TZ", "UTC")
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.delenv("TEXTUAL_THEME", raising=False)
        time.tzset()
        yield folder
        shutil.rmtree(folder, ignore_errors=True)
        monkeypatch.undo()
        time.tzset()


# What is done before the picture is taken.

Drive = Callable[[Pilot[int], ConsoleApp], Awaitable[None]]


async def until(pilot: Pilot[int], ready: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not ready():
        assert time.monotonic() < deadline, "it never came to what was to be drawn"
        await pilot.pause(0.01)


async def settled(pilot: Pilot[int]) -> None:
    """Until no thread prepares anything any more; nothing blinks, no toast lingers."""
    lasting = {"reading", "watching"}
    for _ in range(400):
        await pilot.pause()
        if all(one.is_finished or one.group in lasting for one in pilot.app.workers):
            break
        await pilot.pause(0.01)
    if isinstance(pilot.app.screen, PreviewScreen | ConfirmScreen):
        # A new preview ignores keys for a moment and shows its buttons grey meanwhile.
        await until(pilot, lambda: pilot.app.screen.query_one(Bar)._buttons[0].enabled)
    for field in pilot.app.screen.query(Input):
        field.cursor_blink = False
    for area in pilot.app.screen.query(TextArea):
        area.cursor_blink = False
    await pilot.pause()


def listed(*keys: str) -> Drive:
    async def drive(pilot: Pilot[int], app: ConsoleApp) -> None:
        await until(pilot, lambda: app.complete)
        await pilot.press(*keys)

    return drive


async def opened(pilot: Pilot[int], app: ConsoleApp, name: str) -> CollaborationScreen:
    await until(pilot, lambda: app.complete)
    path = next(item.path for item in app.items if item.path.name == name)
    await app.open_folder(path)
    await until(pilot, lambda: isinstance(app.screen, CollaborationScreen) and app.screen.view is not None)
    await settled(pilot)
    assert isinstance(app.screen, CollaborationScreen)
    return app.screen


def folder(name: str, tab: str | None = None, *keys: str) -> Drive:
    async def drive(pilot: Pilot[int], app: ConsoleApp) -> None:
        screen = await opened(pilot, app, name)
        if tab is not None:
            screen.go_tab(tab)
            await settled(pilot)
        await pilot.press(*keys)

    return drive


def form(name: str, key: str, *keys: str) -> Drive:
    async def drive(pilot: Pilot[int], app: ConsoleApp) -> None:
        await opened(pilot, app, name)
        await pilot.press(key)
        await until(pilot, lambda: isinstance(app.screen, FormScreen) and app.screen.all_fields)
        await settled(pilot)
        await pilot.press(*keys)

    return drive


def preview(name: str, key: str, *keys: str) -> Drive:
    async def drive(pilot: Pilot[int], app: ConsoleApp) -> None:
        await form(name, key, *keys, "f2")(pilot, app)
        await until(pilot, lambda: isinstance(app.screen, PreviewScreen) and app.screen.plan is not None)

    return drive


def diff(name: str, *keys: str) -> Drive:
    async def drive(pilot: Pilot[int], app: ConsoleApp) -> None:
        screen = await opened(pilot, app, name)
        screen.go_tab("proposal.md")
        await pilot.press("d")
        await until(pilot, lambda: isinstance(app.screen, DiffScreen) and app.screen.loaded)
        await settled(pilot)
        await pilot.press(*keys)

    return drive


def story(name: str, tab: str, *keys: str) -> Drive:
    async def drive(pilot: Pilot[int], app: ConsoleApp) -> None:
        screen = await opened(pilot, app, name)
        screen.go_tab(tab)
        await settled(pilot)
        await pilot.press("s")
        await settled(pilot)
        if not isinstance(app.screen, StoryScreen):
            await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, StoryScreen) and app.screen.moments)
        for key in keys:
            await settled(pilot)
            await pilot.press(key)

    return drive


def past(name: str, index: int, tab: str = "proposal.md") -> Drive:
    async def drive(pilot: Pilot[int], app: ConsoleApp) -> None:
        screen = await opened(pilot, app, name)
        screen.go_tab(tab)
        screen.step_to(index)
        await until(pilot, lambda: screen.past is not None)

    return drive


def new(*keys: str, to_preview: bool = False) -> Drive:
    async def drive(pilot: Pilot[int], app: ConsoleApp) -> None:
        await until(pilot, lambda: app.complete)
        await pilot.press("c")
        await until(pilot, lambda: isinstance(app.screen, NewScreen))
        await settled(pilot)
        await pilot.press(*keys)
        if to_preview:
            await pilot.press("f2")
            await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
            await settled(pilot)

    return drive


def declare(*keys: str) -> Drive:
    async def drive(pilot: Pilot[int], app: ConsoleApp) -> None:
        await opened(pilot, app, "talk")
        await pilot.press("D")
        await until(pilot, lambda: isinstance(app.screen, DeclareScreen))
        await settled(pilot)
        await pilot.press(*keys)

    return drive


def declaring(*keys: str, to_preview: bool = False) -> Drive:
    async def drive(pilot: Pilot[int], app: ConsoleApp) -> None:
        await declare(*keys, "f2")(pilot, app)
        if to_preview:
            await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
            await settled(pilot)
        else:
            await until(pilot, lambda: any(field.failed for field in app.screen.query(Field)))

    return drive


def opens(key: str, text: str, *keys: str) -> Drive:
    """A screen of the top row once it shows a text, and what is pressed then."""

    async def drive(pilot: Pilot[int], app: ConsoleApp) -> None:
        await until(pilot, lambda: app.complete)
        await pilot.press(key)
        await until(pilot, lambda: text in "\n".join(strip.text for strip in app.screen._compositor.render_strips()))
        await pilot.press(*keys)

    return drive


def promoting() -> Drive:
    async def drive(pilot: Pilot[int], app: ConsoleApp) -> None:
        await opens("5", "recurring", "p")(pilot, app)
        await until(pilot, lambda: isinstance(app.screen, PromoteForm))

    return drive


def runs(*keys: str) -> Drive:
    """The screen Workflows, and what is pressed there; a form's own key is the same in each picture."""

    async def drive(pilot: Pilot[int], app: ConsoleApp) -> None:
        await opens("4", "your turn")(pilot, app)
        for key in keys:
            await settled(pilot)
            await pilot.press(key)
            if isinstance(app.screen, AnswerForm):
                app.screen._key = "console-0123456789abcdef"
        await settled(pilot)

    return drive


def plans(*keys: str) -> Drive:
    """The screen Delegations, and what is pressed there; ids that are made up are the same in each picture."""

    async def drive(pilot: Pilot[int], app: ConsoleApp) -> None:
        await opens("3", "T-keys")(pilot, app)
        for key in keys:
            await settled(pilot)
            await pilot.press(key)
            if isinstance(app.screen, LaunchForm):
                await until(pilot, lambda: app.screen._picked("via") == "script")
                await until(pilot, lambda: app.screen.query_one(ChecksView).line_count)
                for name, text in (("id", "warm-3"), ("worktree", "../warm-3")):
                    app.screen.query_one(f"#field-{name}", LineField).text = text
        await settled(pilot)

    return drive


@dataclass(frozen=True)
class Shot:
    """A picture: which samples, who looks, what is done, how large, in which theme."""

    name: str
    drive: Drive
    sample: str = "demo"
    me: str | None = "reader"
    size: tuple[int, int] = (80, 24)
    theme: str = "dark"
    ascii: bool = False
    first: bool = False


DONE = "log-format"
FILLED = (*"Agree on retries", "f2", *"retries", "f2", *"Limits are named", "shift+tab", "pagedown", "end", *"server")
SCREENS: tuple[Shot, ...] = (
    Shot("inbox", listed()),
    Shot("inbox first time", listed(), first=True),
    Shot("inbox nobody", listed(), me=None),
    Shot("inbox empty", listed(), sample="empty"),
    Shot("inbox said", listed("f"), sample="readiness_check", me="server"),
    Shot("inbox filter", listed("/", *"queue")),
    Shot("inbox snooze", listed("z")),
    Shot("collaborations", listed("2")),
    Shot("collaborations empty", listed("2"), sample="empty"),
    Shot("collaborations broken", listed("2"), sample="broken"),
    Shot("collaboration", folder("cache-design")),
    Shot("collaboration completed", folder(DONE)),
    Shot("collaboration blocked", folder("queue-choice")),
    Shot("collaboration nobody", folder("cache-design"), me=None),
    Shot("tab review", folder("cache-design", "review.md")),
    Shot("tab decisions", folder(DONE, "decisions.md")),
    Shot("tab readiness", folder(DONE, "readiness.md")),
    Shot("tab conclusion", folder(DONE, "conclusion.md")),
    Shot("tab log", folder(DONE, "log")),
    Shot("tab findings none", folder(DONE, "findings")),
    Shot("tab findings", folder("damaged", "findings"), sample="broken"),
    Shot("tab now", folder("cache-design", "now")),
    Shot("tab deliverables", folder("talk", "deliverables"), sample="second", me="server"),
    Shot("find", folder("cache-design", None, "/", *"session")),
    Shot("log filter", folder(DONE, "log", "f", *"accepted")),
    Shot("as written", folder("cache-design", None, "x")),
    Shot("broken folder", folder("talk"), sample="broken"),
    Shot("help", folder("cache-design", None, "?")),
    Shot("help inbox", listed("?")),
    Shot("help form", form("cache-design", "r", "f1")),
    Shot("who", folder("cache-design", None, "w")),
    Shot("theme", listed("T")),
    Shot("palette", folder("cache-design", None, "ctrl+p")),
    Shot("not now", folder("cache-design", None, "y")),
    Shot("new", new()),
    Shot("new errors", new("f2")),
    Shot("new preview", new(*FILLED, to_preview=True)),
    Shot("form submit", form(DONE, "p"), sample="drafting", me="server"),
    Shot("form review", form(DONE, "r"), sample="reviewing"),
    Shot("form review errors", form(DONE, "r", "f2"), sample="reviewing"),
    Shot("form revise", form(DONE, "u"), sample="revising", me="server"),
    Shot("form classify", form(DONE, "c"), sample="decision_review", me="server"),
    Shot("form propose", form(DONE, "P"), sample="decision_review", me="server"),
    Shot("form ready", form(DONE, "R"), sample="readiness_check", me="server"),
    Shot("form block", form(DONE, "b"), sample="reviewing"),
    Shot("form append", form(DONE, "a"), sample="reviewing"),
    Shot("form deliverable", form("talk", "m"), sample="second", me="server"),
    Shot("declare errors", declaring(*"../plan.md"), sample="second", me="server"),
    Shot("declare preview", declaring(*"rollout.md", to_preview=True), sample="second", me="server"),
    Shot("preview", preview(DONE, "r", *"Fine", "tab", *"None"), sample="reviewing"),
    Shot("diff", diff(DONE)),
    Shot("diff side by side", diff(DONE, "t")),
    Shot("diff nothing", diff("cache-design"), me="security"),
    Shot("diff unknown", diff("talk"), sample="unknown"),
    Shot("diff since", diff(DONE, "f")),
    Shot("story", story(DONE, "log")),
    Shot("story decision", story(DONE, "decisions.md", "right", "right", "right", "right")),
    Shot("story unknown", story("talk", "log"), sample="unknown"),
    Shot("stepping", past(DONE, 3)),
    Shot("stepping log", past(DONE, 3, "log")),
    Shot("stepping unknown", past("talk", 0), sample="unknown"),
    Shot("cjk", folder("talk"), sample="cjk", me="審査員"),
    Shot("cjk inbox", listed(), sample="cjk", me="審査員"),
    Shot("cjk log", folder("talk", "log"), sample="cjk", me="審査員"),
    Shot("long", folder("talk", None, "pagedown"), sample="long", me="participant-001"),
    Shot("long log", folder("talk", "log"), sample="long", me="participant-001"),
    Shot("long inbox", listed(), sample="long", me="participant-001"),
)
SCREENS += (
    Shot("triage", opens("5", "recurring"), sample="met"),
    Shot("triage signal", opens("5", "recurring", "s", *"No space left on device"), sample="met"),
    Shot("triage promote", promoting(), sample="met"),
    Shot("triage empty", opens("5", "No unknown failure"), sample="empty"),
    Shot("ecosystem", opens("6", "untrusted"), sample="met"),
    Shot("ecosystem statuses", opens("6", "untrusted", "t"), sample="met"),
    Shot("ecosystem graph", opens("6", "untrusted", "t", "t", "t"), sample="met"),
)
SCREENS += (
    Shot("workflows", runs(), sample="runs"),
    Shot("workflows learned", runs("t"), sample="runs", size=(120, 36)),
    Shot("workflows specs", runs("t", "t", "end"), sample="runs"),
    Shot("run", runs("enter"), sample="runs", size=(120, 36)),
    Shot("run stepping", runs("enter", "t", "up", "comma"), sample="runs"),
    Shot("run questions", runs("enter", "t", "t"), sample="runs"),
    Shot("answer group", runs("a", "tab", "tab"), sample="runs"),
    Shot("answer preview", runs("a", "f2"), sample="runs"),
)
SCREENS += (
    Shot("delegations", plans("down"), sample="plans"),
    Shot("delegations task", plans("down", "down"), sample="plans", size=(120, 36)),
    Shot("delegations open", plans("o"), sample="plans"),
    Shot("delegations past", plans("comma", "comma", "comma"), sample="plans"),
    Shot("launch", plans("end", "l"), sample="plans", size=(120, 36)),
    Shot("launch preview", plans("down", "down", "l", "f2"), sample="plans", size=(120, 36)),
    Shot("collect", plans(*["down"] * 6, "c"), sample="plans"),
    Shot("gate", plans("down", "down", "r"), sample="plans"),
)
SCREENS += (
    Shot("form accept", form(DONE, "y"), sample="accepting"),
    Shot("form conclude", form(DONE, "C"), sample="concluding", me="server"),
    Shot("form freeze", form("talk", "Z"), sample="freezing", me="server"),
    Shot("declare", declare(), sample="second", me="server"),
)
MAIN = {shot.name: shot for shot in SCREENS if shot.name in ("inbox", "collaborations", "collaboration", "diff")}


def variants() -> list[Shot]:
    """The main screens in other sizes and other looks; previews and forms where there is hardly room."""
    made = list(SCREENS)
    for name, shot in MAIN.items():
        for width, height in SIZES:
            made.append(Shot(f"{name} {width}x{height}", shot.drive, shot.sample, shot.me, (width, height)))
        for theme in ("light", "high-contrast", "plain"):
            made.append(Shot(f"{name} {theme}", shot.drive, shot.sample, shot.me, theme=theme))
        made.append(Shot(f"{name} ascii", shot.drive, shot.sample, shot.me, theme="plain", ascii=True))
    small = {"form review", "preview", "stepping", "story decision"}
    made += [Shot(f"{one.name} 60x15", one.drive, one.sample, one.me, (60, 15)) for one in SCREENS if one.name in small]
    for one in SCREENS:
        if one.name in ("triage", "ecosystem", "workflows", "delegations"):
            made += [Shot(f"{one.name} {w}x{h}", one.drive, one.sample, one.me, (w, h)) for w, h in SIZES[:2]]
    made.append(Shot("stepping 120x36", past(DONE, 3), size=(120, 36)))
    made.append(
        Shot("story decision 120x36", story(DONE, "decisions.md", "right", "right", "right", "right"), size=(120, 36))
    )
    return made


SHOTS = variants()


def test_there_are_not_too_many() -> None:
    assert len(SHOTS) <= 150
    assert len({shot.name for shot in SHOTS}) == len(SHOTS)


@pytest.mark.parametrize("shot", SHOTS, ids=lambda shot: shot.name.replace(" ", "-"))
def test_it_looks_as_it_did(shot: Shot, place: Path, samples: Path, snap_compare: Any) -> None:
    root = place / "collabs"
    shutil.copytree(samples / shot.sample, root)
    state = UserState(place / "state")
    if not shot.first:
        state.save("hints.json", {"first": True})
    settings = Settings(theme=shot.theme, ascii=shot.ascii, reduced_motion=True)
    loaded = Loaded(settings, place / "config.toml", found=False)
    environ = {"COLLAB_STATE": str(place / "state"), "PATH": "/usr/bin:/bin", "EDITOR": "vi"}
    app = ConsoleApp([root], shot.me, loaded, clock=Still(), environ=environ, tick=0.2, monotonic=lambda: 0.0)

    # Whether this machine notifies of changes is not part of the picture.
    app._set_mode = lambda mode: None  # type: ignore[method-assign]
    # A slow machine must not lose what was said.
    app.NOTIFICATION_TIMEOUT = 600

    async def before(pilot: Pilot[int]) -> None:
        await shot.drive(pilot, app)
        await settled(pilot)

    assert snap_compare(app, terminal_size=shot.size, run_before=before)
