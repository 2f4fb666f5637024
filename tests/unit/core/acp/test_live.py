"""A folder that is followed says at every moment what a fresh look says, whatever happened to it meanwhile."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.acp import guided, history, memory, seen, store
from core.acp.check import remembered
from core.acp.compose import ReviewText
from core.acp.declare import Declaration
from core.acp.judging import About
from core.acp.ledger import Ledger
from core.acp.live import Judged, Live
from core.acp.memory import Memory
from core.acp.model import DOCUMENTS, Event
from core.acp.reader import read
from core.acp.rules import evolve
from core.acp.templates import initialize
from core.acp.timeline import Timeline
from core.acp.view import default_draft, editable, options, people
from core.files import Root, sha256
from core.finding import Finding, Refused
from core.journal import encode
from core.state import UserState
from tests.conftest import FixedClock

PEOPLE = ("ana", "bob", "cleo")
GATE = "The cache is measured"
REF = "deliverables/adr.md"
HERE = "since it was first read here"
"""Only who was there can say this."""


class Folder:
    """A collaboration that things happen to. Every write leaves another signature, as a real one mostly does."""

    def __init__(self, path: Path, seed: int, clock: FixedClock) -> None:
        self.path, self.clock, self.pick = path, clock, random.Random(seed)
        self.two = seed % 3 == 0
        self._stamp = 10**9
        declared = Declaration("adr") if self.two else None
        initialize(path, "Follow", PEOPLE, (GATE,), clock, "en", declared=declared)

    def put(self, name: str, data: bytes) -> None:
        """Replace a file, or write into it."""
        place = self.path / name
        if self.pick.random() < 0.5 or not place.exists():
            place.write_bytes(data)
        else:
            with place.open("r+b") as handle:
                handle.write(data)
                handle.truncate()
        self._stamp += 10**9
        os.utime(place, ns=(self._stamp, self._stamp))

    def log(self) -> list[bytes]:
        return (self.path / "events.jsonl").read_bytes().splitlines(True)

    # What may happen.

    def act(self) -> None:
        """Somebody does what they may, most often by the guided verb or with the document."""
        self.clock.step(self.pick.choice((1, 60)))
        now = read(self.path)
        who = self.pick.choice(PEOPLE)
        legal = [one.draft.event for one in options(now, who, self.clock.now()) if one.legal]
        legal = [name for name in legal if name != "blocked" or self.pick.random() < 0.02]
        if not legal:
            return self.document()
        event, size = self.pick.choice(legal), len(self.log())
        try:
            if event == "review_submitted" and self.pick.random() < 0.5:
                guided.commit(self.path, guided.review(who, ReviewText("Yes")), self.clock)
            else:
                store.append(self.path, default_draft(now, who, event), clock=self.clock)
        except Refused:
            # Our verbs do not write into a log that is damaged; others do.
            raw = {"seq": size + 1, "from": who, "event": event, "at": "2026-03-03T10:00:00Z", "summary": "x"}
            self.put("events.jsonl", b"".join(self.log()) + encode({**raw, "reply_to": size}))
        if event == "review_submitted" and self.pick.random() < 0.5:
            self.heading(size + 1, who)
        return None

    def foreign(self) -> None:
        """A line of somebody who knows the rules, or not."""
        size = len(self.log())
        event: dict[str, Any] = {
            "seq": self.pick.choice((size + 1, size + 1, size + 1, size, 3, 99, None)),
            "from": self.pick.choice((*PEOPLE, "nobody", 5)),
            "event": self.pick.choice(
                ("review_submitted", "proposal_submitted", "deliverable_frozen", "dance", "blocked", 7)
            ),
            "at": self.pick.choice(("2026-03-01T10:00:00Z", "2026-03-02T10:00:00+02:00", "soon", None)),
            "summary": "x",
            "reply_to": self.pick.choice((size, 1, 44, None)),
        }  # fmt: skip
        if event["event"] == "deliverable_frozen":
            event |= {"doc": self.pick.choice((REF, REF, "x.md")), "role": self.pick.choice(("primary", "supporting"))}
            event["sha256"] = self.pick.choice(("0" * 64, "0" * 64, "1"))
        for name in [name for name in event if self.pick.random() < 0.05]:
            del event[name]
        ending = b"" if self.pick.random() < 0.2 else b"\n"
        self.put("events.jsonl", b"".join(self.log()) + encode(event).rstrip(b"\n") + ending)

    def ended(self) -> None:
        """The last line gets its line end."""
        data = b"".join(self.log())
        self.put("events.jsonl", data if data.endswith(b"\n") else data + b"\n")

    def damaged(self) -> None:
        lines = self.log()
        at = self.pick.randrange(len(lines) + 1)
        lines[at:at] = [self.pick.choice((b"rubbish\n", b"[]\n", b"\n", b'{"seq":\n'))]
        self.put("events.jsonl", b"".join(lines))

    def rewritten(self) -> None:
        lines = self.log() or [b""]
        at = self.pick.randrange(len(lines))
        lines[at] = lines[at].replace(b"bob", b"ana").replace(b"review", b"proposal")
        self.put("events.jsonl", b"".join(lines))

    def cut(self) -> None:
        lines = self.log()
        kept = b"".join(lines[: self.pick.randrange(len(lines)) + 1]) if lines else b""
        self.put("events.jsonl", kept[: -self.pick.choice((1, 9))])

    def document(self) -> None:
        name = self.pick.choice((*DOCUMENTS, *([REF] if self.two else [])))
        self.put(name, f"# {name}\n\nStatus: Frozen\n{self.pick.choice('abc')}\n".encode())

    def readiness(self) -> None:
        self.put("readiness.md", f"- [resolved] all\n- [x] {GATE}\n- [x] Ready to implement\n".encode())

    def heading(self, seq: int | None = None, who: str = "bob") -> None:
        seq = self.pick.randrange(1, len(self.log()) + 3) if seq is None else seq
        old = (self.path / "review.md").read_bytes() if (self.path / "review.md").exists() else b""
        self.put("review.md", old + f"\n## 2026-03-01T09:00:00Z - {who} - seq {seq}\n\n- yes\n".encode())

    def gone(self) -> None:
        (self.path / self.pick.choice(DOCUMENTS)).unlink(missing_ok=True)

    def setup(self) -> None:
        raw = json.loads((self.path / "protocol.json").read_bytes())
        change = self.pick.choice(({"currentPhase": "revising"}, {"participants": ["ana", "bob"]}, {"extra": 1}))
        self.put("protocol.json", json.dumps(raw | change).encode())

    def sidecar(self) -> None:
        """Records come and go, also such as nobody wrote."""
        place = self.path / ".collab/history.jsonl"
        lines = place.read_bytes().splitlines(True) if place.exists() else []
        whole, size = b"".join(self.log()), len(self.log())
        forged = {
            "seq": self.pick.choice((1, 3, size, size + 1, size + 2, size + 3, 99, -3)),
            "at": self.pick.choice(("2026-03-01T09:00:00Z", "2026-03-01T10:00:00Z", "2026-03-03T10:00:00Z")),
            "end": len(whole) if self.pick.random() < 0.8 else self.pick.choice((0, -5, 10**6)),
            "log": sha256(whole) if self.pick.random() < 0.9 else sha256(b""),
            "documents": {name: sha256(self.pick.choice((b"1", b"2"))) for name in self.pick.sample(DOCUMENTS, 3)},
        }
        change = self.pick.choice(("add", "add", "damage", "remove", "cut"))
        if change == "add":
            lines.append(encode(forged))
        elif change == "damage":
            lines.append(b"rubbish\n")
        elif lines and change == "remove":
            del lines[self.pick.randrange(len(lines))]
        else:
            lines = lines[:1]
        self.put(".collab/history.jsonl", b"".join(lines))

    def objects(self) -> None:
        for kept in sorted((self.path / ".collab/objects").iterdir()):
            if self.pick.random() < 0.3:
                kept.unlink()

    def forgotten(self) -> None:
        shutil.rmtree(self.path / ".collab", ignore_errors=True)
        (self.path / ".collab").mkdir()

    def mended(self) -> None:
        try:
            store.mend(self.path, self.clock)
        except Refused:
            return

    def happen(self) -> str:
        """One of it all."""
        usual: list[tuple[int, Callable[[], None]]] = [
            (40, self.act), (10, self.foreign), (4, self.ended), (4, self.document), (4, self.readiness),
            (6, self.heading), (1, self.damaged), (1, self.rewritten), (1, self.cut), (1, self.gone), (1, self.setup),
            (6, self.sidecar), (2, self.objects), (1, self.forgotten), (3, self.mended),
        ]  # fmt: skip
        (made,) = self.pick.choices([one for _, one in usual], [weight for weight, _ in usual])
        (self.path / ".collab/objects").mkdir(parents=True, exist_ok=True)
        made()
        return made.__name__


def fresh(path: Path, state: UserState) -> list[Finding]:
    """What `collab validate` says."""
    now = read(path)
    found = list(now.findings)
    if now.setup is not None:
        with Root(path) as root:
            found += [*remembered(now, root), *seen.findings(state, now, root)]
    return sorted(dict.fromkeys(found), key=lambda item: item.severity != "error")


def followed(judged: Judged) -> list[Finding]:
    return [item for item in judged.findings if HERE not in item.cause]


@pytest.mark.parametrize("seed", range(60))
def test_whatever_happens_a_follower_says_what_a_fresh_look_says(
    seed: int, quick_path: Path, clock: FixedClock
) -> None:
    folder = Folder(quick_path / "talk", seed, clock)
    path, state = folder.path, UserState(quick_path / "state")
    live, line = Live(path, state), None
    for step in range(50):
        what = f"step {step}: {folder.happen()}"
        now = live.refresh()
        judged = live.judge(now)
        assert followed(judged) == fresh(path, state), what
        told, wanted = judged.about, About.of(now.events, judged.findings)
        assert told.damaged == wanted.damaged, what
        assert {at: set(found) for at, found in told.lines.items()} == {
            at: set(found) for at, found in wanted.lines.items()
        }, what
        once = read(path)
        assert now.state == once.state, what
        assert now.events == once.events, what
        if now.setup is not None:
            assert people(now, judged.acts) == people(once), what
            for who in PEOPLE:
                mine = [at for at, one in enumerate(once.events) if (one.name, one.actor) == ("review_submitted", who)]
                assert judged.reviewed.get(who) == (mine[-1] if mine else None), what
                assert editable(now, who, judged.frozen) == editable(once, who), what
            line, then = Timeline(now, line, live.records), Timeline(once)
            for index in range(len(now.events)):
                assert line.digests(index) == then.digests(index), what
                assert line.state(index) == then.state(index), what
            assert list(line.known_moments()) == list(then.known_moments()), what
        if folder.pick.random() < 0.7:
            live.remember(now)
    live.close()


def test_the_stories_hold_what_the_property_is_about(quick_path: Path, clock: FixedClock) -> None:
    """The random folders come to damage, edits out of turn, lost and rewritten logs, late reviews, frozen files."""
    codes: set[str] = set()
    for seed in range(60):
        folder = Folder(quick_path / f"talk-{seed}", seed, clock)
        for _ in range(50):
            folder.happen()
            codes |= {item.code for item in fresh(folder.path, UserState(quick_path / "state"))}
        shutil.rmtree(folder.path)
    assert codes >= {
        "log_damaged", "log_torn", "log_truncated", "log_rewritten", "edit_out_of_turn", "review_heading_missing",
        "review_heading_orphan", "review_heading_mismatch", "review_heading_repeated", "event_unknown", "log_seq",
        "participant_unknown", "actor_not_expected", "deliverable_doc_wrong", "sha256_mismatch", "projection_stale",
        "event_time_malformed", "event_time_back", "reply_to_unknown", "file_missing",
    }  # fmt: skip


def long_log(path: Path, clock: FixedClock, count: int, sidecar: bool) -> None:
    """Rounds of proposal and review; with `sidecar` every event is remembered."""
    initialize(path, "Long", PEOPLE[:2], (GATE,), clock, "en")
    data = (path / "events.jsonl").read_bytes()
    documents = history.digests(list(read(path).documents.values()), {})
    rows, records = [data], []
    turns = (("ana", "proposal_submitted"), ("bob", "review_submitted"))
    size = len(data)
    for seq in range(2, count + 1):
        who, name = turns[seq % 2]
        made = {
            "seq": seq,
            "from": who,
            "event": name,
            "at": "2026-03-01T09:00:00Z",
            "summary": "s",
            "reply_to": seq - 1,
        }
        rows.append(encode(made))
        size += len(rows[-1])
        records.append(encode(history.make(Event.read(made), size, "0" * 64, documents)))
    (path / "events.jsonl").write_bytes(b"".join(rows))
    if sidecar:
        made = json.loads(records[-1]) | {"log": sha256(b"".join(rows))}
        (path / ".collab/history.jsonl").write_bytes(b"".join(records[:-1]) + encode(made))


def test_a_new_event_of_a_long_log_costs_no_more_than_of_a_short_one(
    quick_path: Path, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, state = quick_path / "long", UserState(quick_path / "state")
    long_log(path, clock, 2000, True)
    live = Live(path, state)
    live.judge(live.refresh())
    worked: list[int] = []

    def counted(real: Callable[..., Any], size: Callable[..., int]) -> Callable[..., Any]:
        def run(*words: Any) -> Any:
            worked.append(size(*words))
            return real(*words)

        return run

    monkeypatch.setattr(Ledger, "extend", counted(Ledger.extend, lambda _self, events: len(events)))
    monkeypatch.setattr(Event, "read", counted(Event.read, lambda *_: 1))
    monkeypatch.setattr(memory, "evolve", counted(evolve, lambda *_: 1))
    monkeypatch.setattr(history, "read_record", counted(history.read_record, lambda *_: 1))
    store.append(path, default_draft(read(path), "bob", "review_submitted"), clock=clock)
    worked.clear()
    now = live.refresh()
    judged = live.judge(now)
    assert judged.reviewed["bob"] == 2000
    assert 0 < sum(worked) <= 8
    worked.clear()
    live.judge(now)
    assert sum(worked) == 0
    live.close()


def test_what_was_written_after_a_look_is_judged_with_the_next(quick_path: Path, clock: FixedClock) -> None:
    """A writer who is quicker than the look does not make the log look shortened, nor its document touched."""
    path = quick_path / "talk"
    initialize(path, "Quick", PEOPLE, (GATE,), clock, "en")
    store.append(path, default_draft(read(path), "ana", "proposal_submitted"), clock=clock)
    before = read(path)
    guided.commit(path, guided.review("bob", ReviewText("Yes")), clock)
    with Root(path) as root:
        assert Memory().findings(before, root) == []


def test_a_stretch_is_judged_again_when_the_events_in_it_are_others(quick_path: Path, clock: FixedClock) -> None:
    """A record may speak of events that others wrote; they may write them anew while the records still stand."""
    path, state = quick_path / "talk", UserState(quick_path / "state")
    initialize(path, "Anew", PEOPLE, (GATE,), clock, "en")
    first = (path / "events.jsonl").read_bytes()
    record = json.loads((path / ".collab/history.jsonl").read_bytes())
    record |= {"seq": 3, "documents": {**record["documents"], "decisions.md": sha256(b"other")}}
    with (path / ".collab/history.jsonl").open("ab") as handle:
        handle.write(encode(record))
    live = Live(path, state)
    said = []
    for event in ("proposal_submitted", "proposal_revised"):
        raw = {"seq": 2, "from": "ana", "event": event, "at": "2026-03-01T10:00:00Z", "summary": "x", "reply_to": 1}
        (path / "events.jsonl").write_bytes(first + encode(raw))
        judged = live.judge(live.refresh())
        assert followed(judged) == fresh(path, state)
        said.append([item.cause for item in judged.findings if item.code == "edit_out_of_turn"])
    live.close()
    assert said[0][0].startswith("decisions.md changed after seq 1 and before seq 3, in phase drafting")
    assert not any("before seq 3" in cause for cause in said[1])
