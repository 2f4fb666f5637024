"""What is fuzzed: for each kind of untrusted input the files to spoil, the verbs, and the console's readers."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatch
from pathlib import Path

from core import evidence, inbox
from core.acp import reader, rounds, story, timeline, view
from core.acp.live import Live
from core.acp.model import DOCUMENTS
from core.sanitize import inert_block
from core.state import UserState
from core.workspace import Summaries, discover
from tests.fuzz.oracle import RAW
from tests.fuzz.stage import PLAN
from tui import keymap, settings
from tui.desk import look as desk_look
from tui.settings import Who

NOW = datetime(2026, 3, 2, tzinfo=UTC)
LEDGER = frozenset(range(6))
PLANS = PLAN.removeprefix("ws/")
Look = Callable[[Path], None]


@dataclass(frozen=True)
class Target:
    """A kind of input. `{text}` in a verb is replaced by a hostile text, `{ws}` by the workspace."""

    name: str
    lays: tuple[str, ...]
    spoils: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    looks: tuple[Look, ...] = ()
    exits: frozenset[int] = frozenset((0, 1, 2))

    def files(self, known: list[str]) -> list[str]:
        """The files that are spoiled, those of `spoils` that do not exist included."""
        laid = [name for name in known if name.startswith(self.lays)]
        found = [name for name in laid if any(fnmatch(name, pattern) for pattern in self.spoils)]
        return found + [name for name in self.spoils if "*" not in name and name not in found]


# ---------------------------------------------------------------- what the console reads


def workspace(stage: Path) -> None:
    """The list, the inbox and every view of stores and plans, as the reading thread makes them."""
    state = UserState(stage / "home" / "state")
    places = discover([stage / "ws"])
    items = Summaries().items(place for place in places if place.kind == "acp")
    seen = evidence.Evidence(open_age=timedelta(minutes=1), live=True)
    try:
        for _ in range(2):
            views = seen.look(place for place in places if place.kind != "acp")
            items = [*items, *evidence.listed(views)]
            asked = evidence.inbox_items(views)
            found = inbox.items(items, lambda item: state.identity(item.path), inbox.snoozes(state), NOW, asked)
            assert all(one.as_json() for one in found)
    finally:
        seen.close()


def collaboration(stage: Path) -> None:
    """Each folder as the console shows it to each of two people, now and at every moment of its past."""
    state = UserState(stage / "home" / "state")
    for place in discover([stage / "ws"]):
        if place.kind != "acp":
            continue
        live = Live(place.path, state)
        try:
            judged = live.judge(live.refresh())
            for me in ("server", "reader"):
                shown = desk_look(judged, Who(flag=me), NOW)
                assert shown.title is not None
            # A folder without a readable protocol.json has no past that could be shown.
            moments = timeline.Timeline(judged.snapshot)
            for index in range(len(moments.events) if judged.snapshot.setup is not None else 0):
                timeline.changes(moments, index)
                story.of_event(moments, index)
                view.phase_path(moments.at(index).state)
            live.judge(live.refresh())
        finally:
            live.close()
        rounds.chain(place.path)
        for name in DOCUMENTS:
            story.named(reader.read(place.path).document(name).text)


def person(stage: Path) -> None:
    """Settings and keymap, identity and snoozes."""
    loaded = settings.load(stage / "home" / "config.toml")
    keys, problems = keymap.resolve(loaded.settings.keymap)
    assert keys
    for action, reason in problems:
        settings.keymap_finding(loaded, action, reason)
    state = UserState(stage / "home" / "state")
    inbox.snoozes(state)
    Who.gather(None, os.environ, loaded.settings.identity, state).of(stage / "ws" / "talk", ("reader",))


def documents(stage: Path) -> None:
    """The texts of documents, drawn: Markdown by section, diffs in both forms."""
    from rich.style import Style

    from tui.widgets import diff, markdown, sides
    from tui.widgets.palette import Palette

    styles = {one.name: Style() for one in fields(Palette) if one.name not in ("name", "dark", "colour")}
    palette = Palette("plain", True, False, **styles)
    for path in sorted((stage / "ws" / "talk").glob("*.md")):
        if not path.is_file() or path.stat().st_size > 200_000:
            continue
        text = inert_block(path.read_bytes().decode("utf-8", "replace"))
        lines = text.split("\n")
        for start, stop in markdown.sections(lines):
            for width in (20, 80):
                for piece in markdown.render(lines[start:stop], start, width, palette):
                    shown = [row.plain for row in piece.lines]
                    assert all(RAW.search(row) is None and "\n" not in row for row in shown), shown
        old = (stage / "ws" / "ended" / path.name).read_text() if (stage / "ws" / "ended" / path.name).exists() else ""
        diff.unified(old, text)
        assert list(sides.plain(old, text, "then", "now", sides.Look(80))) or old == text


# ---------------------------------------------------------------- verbs


def _acp(folder: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    on = f"--folder {folder}"
    reads = (
        f"validate {on} -o json", f"validate {on} --receipts", f"next {on} --participant server",
        f"next {on} --participant reader -o json", f"show {on} --as reader", f"show {on} -o json",
        f"show {on} --at 3 -o json", f"show {on} --doc review.md", f"show {on} --doc {{text}}", f"log {on}",
        f"log {on} --story 4 -o json", f"log {on} --story D1", f"diff {on} --since 1 -o json",
        f"diff {on} --since 2 --until 4 --side-by-side", f"diff {on} --since-my-review --as reader",
        f"prompt {on} --as reader", f"wait {on} --participant reader --timeout 0.01 --interval 0.01", "list", "inbox",
        "list -o json", "inbox -o json --as reader",
    )  # fmt: skip
    writes = (
        f"repair {on}", f"repair {on} -o json", f"submit {on} --as server --summary {{text}}",
        f"review {on} --as reader --position {{text}} --change {{text}}", f"revise {on} --as server",
        f"classify {on} --as server --resolve {{text}} --defer {{text}}", f"accept {on} --as reader -o json",
        f"ready {on} --as server --tick-all", f"freeze {on} --as server -o json",
        f"complete {on} --as server --outcome proceed --rationale {{text}} --next x",
        f"block {on} --as reader --reason {{text}}", f"new-round --from {folder} --folder fresh",
        f"append {on} --participant server --event proposal_revised --summary {{text}} --reply-to 2 --doc {{text}}",
        f"deliverable add {{text}} --type adr {on} --as server", f"propose {on} --as server",
    )  # fmt: skip
    return reads, writes


_SIDECAR = ("protocol.json", "events.jsonl", "proposal.md", "review.md", "decisions.md", "readiness.md",
            "conclusion.md",
            ".collab/history.jsonl", ".collab/pending.json", ".collab/objects/*", ".collab", ".collab/lock",
            ".collab/damaged", "README.md")  # fmt: skip


def _folder(name: str, folder: str, *more: str) -> Target:
    reads, writes = _acp(folder)
    spoils = tuple(f"ws/{folder}/{part}" for part in _SIDECAR) + more
    return Target(name, (f"ws/{name}/", "ws/receipts/acp"), spoils, reads, writes, (workspace, collaboration))


_STATUS = ["status.json", "asks.json", "receipts/status.json"]
GOVERNANCE = Target(
    "governance",
    ("ws/receipts", "ws/status", "ws/asks", "ws/turn", "ws/ledger", "ws/escalation", "ws/members", "ws/goal",
     "ws/payload", "ws/skills", "ws/proof"),
    ("ws/receipts/*.json", "ws/status.json", "ws/asks.json", "ws/turn.txt", "ws/ledger.json",
     "ws/escalation_commands.json", "ws/members.json", "ws/goal.json", "ws/payload.json", "ws/skills/one/SKILL.md",
     "ws/proof.txt"),
    (
        "envelope validate receipts/child.json", "envelope resolve receipts/child.json --receipts receipts -o json",
        "envelope resolve receipts/child.json --receipts receipts", "status validate status.json -o json",
        "status validate status.json", "status check turn.txt --mutating --ledger ledger.json -o json",
        "status check turn.txt --ledger ledger.json", "status compile asks.json --commands escalation_commands.json",
        "status compile asks.json -o json", "status render status.json", "status render asks.json -o json",
        "members validate members.json", "members table members.json", "members scan . -o json", "members scan skills",
        "goal validate goal.json -o json", "goal hash goal.json --rule canonical", "goal hash goal.json", "inbox",
        "members graph --format mermaid",
    ),
    (
        "envelope wrap payload.json --receipt-id {text} --producer {text} -o json",
        "envelope wrap payload.json --receipt-id r --producer p --parent receipts/child.json --out r.json",
        "triage observe --receipt turn.txt --layer {text}",
    ),
    (workspace,),
)  # fmt: skip
TRIAGE = Target(
    "triage",
    ("ws/triage", "ws/catalog.json"),
    ("ws/triage/observations.jsonl", "ws/triage/*", "ws/catalog.json", "ws/triage/failure_codes.json",
     "ws/triage/.lock", "ws/triage"),
    (
        "triage list", "triage list -o json", "triage catalog -o json", "triage catalog --catalog catalog.json",
        "triage classify --text {text}", "triage classify --text {text} --catalog catalog.json -o json",
        "triage classify --receipt catalog.json --layer {text}", "inbox -o json",
    ),
    (
        "triage observe --text {text} --layer {text}", "triage observe --receipt catalog.json -o json",
        "triage promote unknown_unclassified_00000000 --code x --layer y --match {text} --cause c --no-next-command",
        "triage alias unknown_unclassified_00000000 {text}",
    ),
    (workspace,),
)  # fmt: skip
DELEGATION = Target(
    "delegation",
    ("ws/repo", "ws/draft.json"),
    (f"{PLAN}/*.json", f"{PLAN}/*.ndjson", f"{PLAN}/evidence.jsonl", f"{PLAN}/.ledger.lock/owner.json",
     f"{PLAN}/results/d1.md", f"{PLAN}/README.md", f"{PLAN}/contracts/contract.r2.json", f"{PLAN}/gates",
     "ws/repo/.dwp/config.json", "ws/repo/.agents/*.json", "ws/draft.json", "home/.dwp/config.json",
     "home/.own/v.json"),
    tuple(
        verb if verb.startswith(("addons", "list", "inbox")) else f"ledger --plan {PLANS} {verb}"
        for verb in (
            "inspect", "inspect -o json", "inspect --until 4 -o json", "verify", "verify -o json", "verify --receipts",
            "delegate observe", "delegate launch --task T-mark --dry-run -o json --json {launch}",
            "delegate launch --task T-mark --dry-run --json {launch}", "addons list --repo repo -o json",
            "addons list --repo repo --detect", "list", "inbox -o json",
        )
    ),
    tuple(
        verb if verb.startswith(("addons", "repair")) else f"ledger --plan {PLANS} --force {verb}"
        for verb in (
            "start --task T-plain", "complete --task T-mark -o json", "roll", "append --type observation --json {json}",
            "append --type {text} --json {json} --note {text}", "delegate launch --task T-mark --json {launch}",
            "delegate collect --task T-mark --json {collect} -o json", "delegate cancel --task T-mark --json {json}",
            "signoff --criterion AC-one --evidence-path {text} --authority {text}",
            "gate --task T-mark --criterion AC-one --json \"true\" -o json", "materialize --contract draft.json",
            "addons enable own --repo repo --note {text}", f"repair --plan {PLANS}",
        )
    ),
    (workspace,),
    LEDGER,
)  # fmt: skip
_FLOW = "--root flow"
WORKFLOW = Target(
    "workflow",
    ("ws/flow",),
    ("ws/flow/workflows/*.yml", "ws/flow/agents/*.md", "ws/flow/ambient/rules.yml", "ws/flow/ambient/agents.toml",
     "ws/flow/ambient/*.jsonl", "ws/flow/ambient/runs/*", "ws/flow/identity/me.yml", "ws/flow/script.json",
     "ws/flow/ambient/.pending.json", "ws/flow/ambient/.closed.jsonl", "ws/flow/ambient/.tmp",
     "ws/flow/ambient/.lock", "ws/flow/ambient/.daemon.lock"),
    (
        "workflow check flow/workflows/check-pages.yml", "workflow check flow/workflows/steps.yml -o json",
        "workflow simulate flow/workflows/check-pages.yml --script flow/script.json -o json",
        "workflow simulate flow/workflows/steps.yml --script flow/script.json", f"workflow status {_FLOW}",
        f"workflow status {_FLOW} -o json", f"workflow status {{run}} {_FLOW}",
        f"escalation list --all {_FLOW} -o json",
        f"escalation list {_FLOW}", f"escalation show {{entry}} {_FLOW}", f"proposal list {_FLOW}",
        f"proposal list {_FLOW} -o json", "list", "inbox",
    ),
    (
        f"workflow tick {_FLOW}", f"workflow tick {_FLOW} -o json", f"workflow start check-pages {_FLOW} --as {{text}}",
        f"workflow start steps --mode assisted {_FLOW} -o json", f"workflow abort {{run}} {_FLOW} --note {{text}}",
        f"signal --json {{packet}} {_FLOW}", f"signal --json {{json}} {_FLOW} -o json",
        f"escalation decide {{entry}} retry {_FLOW} --note {{text}}",
        f"escalation decide {{entry}} --respond {{text}} {_FLOW}",
        f"escalation decide {{entry}} --accept {_FLOW} --args {{json}}", f"escalation ack {{entry}} {_FLOW}",
        f"proposal approve {{proposal}} {_FLOW} --as ana", f"proposal reject {{text}} {_FLOW}",
        f"escalation decide {{entry}} --defer 999999999999999d {_FLOW}",
    ),
    (workspace,),
)  # fmt: skip
PERSON = Target(
    "person",
    ("ws/talk", "home"),
    ("home/config.toml", "home/state/identity.json", "home/state/snooze.json", "home/state/seen", "home/state"),
    ("list", "inbox", "inbox -o json", "show --folder talk", "prompt --folder talk", "triage list"),
    ("inbox --snooze {text} --for 2h", "review --folder talk --position {text}"),
    (person, workspace, collaboration),
)
DOCUMENTS_DRAWN = Target(
    "documents",
    ("ws/talk/", "ws/ended/"),
    ("ws/talk/*.md",),
    ("show --folder talk --doc proposal.md", "diff --folder talk --since 1 --side-by-side"),
    (),
    (documents,),
)
TARGETS = {
    target.name: target
    for target in (
        _folder("talk", "talk"),
        _folder("half", "half"),
        _folder("ended", "ended"),
        _folder("v2-support", "v2-support", "ws/v2-support/deliverables/*", "ws/v2-support/deliverables"),
        _folder("v2-external", "v2-external/.acp/run", "ws/v2-external/docs/*", "ws/v2-external/*"),
        TRIAGE,
        GOVERNANCE,
        DELEGATION,
        WORKFLOW,
        PERSON,
        DOCUMENTS_DRAWN,
    )
}
