"""The story of an event or a decision: only the events that led to it, each with the documents that it changed.

What led to an event follows from the state machine (docs/specs/acp.md §2): a revision comes from the reviews of its
round, acceptances from their classification, readiness from acceptances and the freeze. An answer to an event that is
not the one just before it counts too; an answer to the one just before is what everybody writes and says nothing.
"""

from __future__ import annotations

import re
import shlex
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from core.acp.documents import scan_decisions
from core.acp.model import Event
from core.acp.reader import Snapshot
from core.acp.timeline import Change, Timeline, changes
from core.finding import Refused, error

DECISIONS: Final = "decisions.md"

CAUSES: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "deliverable_drafted": (("initialized",), ()),
    "proposal_submitted": (("proposal_submitted", "initialized"), ("review_submitted", "deliverable_drafted")),
    "review_submitted": (("proposal_submitted", "initialized"), ()),
    "proposal_revised": (("proposal_submitted", "initialized"), ("review_submitted", "deliverable_revised")),
    "deliverable_revised": (("proposal_submitted", "initialized"), ("review_submitted",)),
    "decision_proposed": (("proposal_revised", "proposal_submitted", "initialized"), ("review_submitted",)),
    "question_classified": (("decision_proposed", "proposal_revised", "proposal_submitted", "initialized"), ()),
    "decision_accepted": (("question_classified", "decision_proposed", "proposal_revised"), ()),
    "deliverable_frozen": (("question_classified",), ("decision_accepted", "deliverable_revised")),
    "readiness_passed": (("question_classified",), ("decision_accepted", "deliverable_frozen")),
    "completed": (("readiness_passed",), ()),
    "blocked": (
        ("proposal_submitted", "proposal_revised", "decision_proposed", "question_classified", "initialized"),
        (),
    ),
}
"""Event to (what it stands on, the latest of these; what came between that and it)."""

FOLLOWS: Final = ("decision_proposed", "question_classified", "decision_accepted", "deliverable_frozen")
AFTER: Final = (*FOLLOWS, "readiness_passed", "completed", "blocked")

_ENTRY = re.compile(r"^[-*][ \t]+(\S.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Moment:
    """One entry of a story: an event and the documents it changed; `changes` None when that is unknown."""

    index: int
    event: Event
    changes: tuple[Change, ...] | None


@dataclass(frozen=True, slots=True)
class Named:
    """A decision of decisions.md: `id` is `D1`, or the entry's own text where it has no number."""

    id: str
    text: str


def named(text: str) -> tuple[Named, ...]:
    """Every decision of a decisions.md: its numbered blocks, else the entries of its lists."""
    blocks = [Named(one.id or one.title, one.title) for one in scan_decisions(text)]
    if blocks:
        return tuple(dict.fromkeys(blocks))
    return tuple(dict.fromkeys(Named(item[1].strip(), item[1].strip()) for item in _ENTRY.finditer(text)))


def find_decision(snapshot: Snapshot, wanted: str) -> Named:
    """The decision that is called or begins so. Raises Refused."""
    known = named(snapshot.document(DECISIONS).text)
    folded = wanted.casefold()
    exact = [one for one in known if one.id.casefold() == folded]
    found = exact or [one for one in known if one.text.casefold().startswith(folded)]
    if len(found) == 1:
        return found[0]
    folder = shlex.quote(str(snapshot.path))
    what = "no" if not found else f"not one but {len(found)}"
    cause = f"there is {what} decision {wanted!r} in {DECISIONS}"
    raise Refused(error("decision_unknown", cause, f"collab show --folder {folder} --doc {DECISIONS}", DECISIONS))


def of_event(line: Timeline, index: int) -> tuple[Moment, ...]:
    """The story of the event at `index`: what led to it, in order, itself last."""
    return _moments(line, _closure(line, [index]))


def of_decision(line: Timeline, decision: Named) -> tuple[Moment, ...]:
    """Where the decision was first written, what led there, and what followed. Raises Refused when nothing is known."""
    first = _first(line, decision)
    if first is None:
        cause = f"where {decision.id!r} was first written is unknown: no recorded event has it in {DECISIONS}"
        command = f"collab log --folder {shlex.quote(str(line.snapshot.path))}"
        raise Refused(error("content_unknown", cause, command, DECISIONS))
    after = [at for at in range(first, len(line.events)) if line.events[at].name in AFTER]
    roots = [first, *after[-1:]]
    edits = [at for at in after if any(one.name == DECISIONS for one in changes(line, at) or ())]
    wanted = _closure(line, roots) | set(edits)
    return _moments(line, wanted)


def of(line: Timeline, what: int | str) -> tuple[Moment, ...]:
    """The story of a seq, or of a decision by its name. Raises Refused."""
    if isinstance(what, int):
        return of_event(line, line.index_of(what))
    return of_decision(line, find_decision(line.snapshot, what))


def _first(line: Timeline, decision: Named) -> int | None:
    seen: dict[str, bool] = {}
    for at in line.known_moments():
        digest = (line.digests(at) or {}).get(DECISIONS)
        if digest is None:
            continue
        if digest not in seen:
            data = line.content(DECISIONS, digest)
            text = data.decode("utf-8", "replace") if data is not None else ""
            seen[digest] = any(one.id == decision.id for one in named(text))
        if seen[digest]:
            return at
    return None


def _closure(line: Timeline, roots: list[int]) -> set[int]:
    places: dict[str | None, list[int]] = {}
    for at, event in enumerate(line.events):
        places.setdefault(event.name, []).append(at)
    found: set[int] = set()
    left = list(roots)
    while left:
        at = left.pop()
        if at not in found:
            found.add(at)
            left += _causes(line, places, at, direct=at in roots)
    return found


def _causes(line: Timeline, places: Mapping[str | None, Sequence[int]], index: int, direct: bool) -> Iterator[int]:
    """What the event at `index` stands on, and what came in between."""
    event = line.events[index]
    on, between = CAUSES.get(event.name or "", (("initialized",), ()))
    start = max((_before(places.get(name, ()), index) for name in on), default=-1)
    if start >= 0:
        yield start
    for name in between:
        known = places.get(name, ())
        yield from known[bisect_left(known, start) : bisect_left(known, index)]
    if event.reply_to is not None and event.reply_to != (event.seq or 0) - 1:
        try:
            answered = line.index_of(event.reply_to)
        except Refused:
            # It answers an event that nobody has: validation says so.
            return
        if answered < index and (direct or line.events[answered].name not in FOLLOWS):
            yield answered


def _before(places: Sequence[int], index: int) -> int:
    """The last of the places before `index`, or -1."""
    at = bisect_left(places, index)
    return places[at - 1] if at else -1


def _moments(line: Timeline, indexes: set[int]) -> tuple[Moment, ...]:
    return tuple(Moment(at, line.events[at], changes(line, at)) for at in sorted(indexes))


def change_lines(line: Timeline, moment: Moment) -> list[str]:
    """`proposal.md +12 -3` for each document that an entry changed, or that it is unknown."""
    if moment.changes is None:
        return ["documents: unknown, that event was not written by this tool"]
    made = []
    for change in moment.changes:
        old = line.content(change.name, change.before) if change.before is not None else b""
        new = line.content(change.name, change.after)
        if old is None or new is None:
            made.append(f"{change.name}  changed; its content was not kept")
            continue
        before, after = (data.decode("utf-8", "replace").splitlines() for data in (old, new))
        made.append(f"{change.name}  {counts(before, after)}")
    return made


def counts(before: Sequence[str], after: Sequence[str]) -> str:
    """`+12 -3`: how many lines came and went, whatever their order; costs no more than reading them."""
    came, went = Counter(after), Counter(before)
    return f"+{(came - went).total()} -{(went - came).total()}"


__all__ = ["Moment", "Named", "change_lines", "find_decision", "named", "of", "of_decision", "of_event"]
