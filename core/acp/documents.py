"""Scanners of the Markdown documents: what the gates read (docs/specs/acp.md §3, §4, §7).

Canonical English is read by exactly the patterns of the reference implementation, so both readers agree on
every document; other languages are read besides, in any case, composed or decomposed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from core.acp.model import Deliverables
from core.acp.vocabulary import INDENT, OUTCOMES, STATUSES, fold, nfc, vocabulary

# The indent stays on its line and nothing is lazy before white space: a hostile text must not cost quadratic time.
_STATUS = re.compile(rf"{INDENT}-\s*\[([A-Za-z_]+)\]\s*(.*)$", re.MULTILINE)
_OUTCOME = re.compile(rf"{INDENT}-\s*\[([A-Za-z_]+)\]\s+(.+)$", re.MULTILINE)
_READY = re.compile(rf"{INDENT}-\s*\[[xX]\]\s*Ready to implement", re.MULTILINE)
_TICK = re.compile(rf"{INDENT}-\s*\[([ xX])\]\s*(.*)$", re.MULTILINE)
_HEADING = re.compile(r"^##\s+(?=(\S.*)$)", re.MULTILINE)
_DASH = re.compile(r"\s-\s")
_STATE = re.compile(r"^Status:\s*(Draft|In Review|Frozen)\s*$", re.MULTILINE)
_DECISION = re.compile(r"^###\s+(.+)$", re.MULTILINE)


def _lines(text: str, matches: Iterator[re.Match[str]]) -> Iterator[tuple[int, re.Match[str]]]:
    """(line of its first group, match), for matches in the order of the text."""
    line, seen = 1, 0
    for match in matches:
        line += text.count("\n", seen, match.start(1))
        seen = match.start(1)
        yield line, match


@dataclass(frozen=True, slots=True)
class Item:
    """A status line of readiness.md; `status` canonical, `line` from 1."""

    status: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Tick:
    """A tick line `- [x] text`."""

    text: str
    ticked: bool
    line: int


@dataclass(frozen=True, slots=True)
class Readiness:
    """readiness.md as the gates see it."""

    items: tuple[Item, ...]
    blocking: tuple[Item, ...]
    unresolved: tuple[Item, ...]
    without_reason: tuple[Item, ...]
    ready: bool
    ticks: tuple[Tick, ...]
    text: str

    @property
    def clean(self) -> bool:
        return not (self.blocking or self.unresolved or self.without_reason)

    def gate_ticked(self, gate: str) -> bool:
        """Whether `- [x] <gate>` stands on a line of its own, exactly."""
        return bool(re.search(INDENT + r"-\s*\[[xX]\]\s*" + re.escape(gate) + r"\s*$", self.text, re.MULTILINE))


def scan_readiness(text: str) -> Readiness:
    """Read readiness.md; any text is legal."""
    words = vocabulary()
    found: list[tuple[int, str, str]] = []
    for line, match in _lines(text, _STATUS.finditer(text)):
        if match[1] in STATUSES:
            found.append((line, match[1], match[2]))
    composed = nfc(text)
    for line, match in _lines(composed, words.status_line.finditer(composed)):
        key = words.status.get(fold(match[1]))
        if key is not None:
            found.append((line, key, match[2]))
    items = tuple(Item(status, body, line) for line, status, body in sorted(found))
    ticks = tuple(Tick(match[2].rstrip(), match[1] != " ", line) for line, match in _lines(text, _TICK.finditer(text)))
    return Readiness(
        items,
        tuple(item for item in items if item.status == "blocking"),
        tuple(item for item in items if item.status == "unresolved" or "TBD" in item.text),
        tuple(
            item for item in items if item.status == "deferred_nonblocking" and not words.reason.search(nfc(item.text))
        ),
        bool(_READY.search(text) or words.ready.search(composed)),
        ticks,
        text,
    )


def headings(text: str) -> Iterator[tuple[str, int]]:
    """(heading text, offset) of every `##` heading."""
    for match in _HEADING.finditer(text):
        yield match[1].rstrip(), match.start()


@dataclass(frozen=True, slots=True)
class Conclusion:
    """conclusion.md as `completed` sees it; `outcomes` are (canonical word, text) pairs."""

    missing: tuple[str, ...]
    outcomes: tuple[tuple[str, str], ...]
    placeholders: tuple[str, ...]
    text: str


def scan_conclusion(text: str, wanted: tuple[str, ...]) -> Conclusion:
    """Read conclusion.md against the headings that this schema wants."""
    words = vocabulary()
    composed = nfc(text)
    present = {name for name, _ in headings(text)}
    present |= {words.heading.get(fold(name), "") for name in present}
    outcomes = [(match.start(1), match[1], match[2]) for match in _OUTCOME.finditer(text) if match[1] in OUTCOMES]
    for match in words.outcome_line.finditer(composed):
        key = words.outcome.get(fold(match[1]))
        if key is not None:
            outcomes.append((match.start(1), key, match[2]))
    return Conclusion(
        tuple(name for name in wanted if name not in present),
        tuple((key, body) for _, key, body in sorted(outcomes)),
        tuple(match[0] for match in words.placeholder.finditer(composed)),
        text,
    )


@dataclass(frozen=True, slots=True)
class Heading:
    """A review heading `## <time> - <participant> - seq N`."""

    seq: int
    participant: str
    line: int


def review_headings(text: str) -> tuple[Heading, ...]:
    """Every review heading, in order; the template's `seq <event seq>` is none."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("##"):
            if plain := _PLAIN_HEADING.fullmatch(line):
                found.append(Heading(int(plain[2]), plain[1], number))
            elif (parts := _review_heading(line)) is not None:
                found.append(Heading(parts[1], parts[0], number))
    return tuple(found)


# What writers write; any other form is read with more care, and this one would be read alike.
_PLAIN_HEADING = re.compile(r"## [!-~]+ - ([!-~]+) - seq ([0-9]{1,18})")


def _review_heading(line: str) -> tuple[str, int] | None:
    """(participant, seq) of `## <time> - <participant> - seq N`, read from both ends in linear time.

    The same lines as the reference's `^##\\s+.+?\\s+-\\s+(.+?)\\s+-\\s+seq\\s+(\\d+)\\s*$`, whose three lazy parts
    take cubic time on a line of spaces.
    """
    head, found, digits = line[2:].rpartition("seq")
    digits = digits.strip() if digits[:1].isspace() else ""
    if not found or not head[:1].isspace() or not digits.isdecimal() or len(digits) > 18:
        return None
    left = head.rstrip()
    if len(left) == len(head) or not left.endswith("-"):
        return None
    left = left[:-1]
    body = left.rstrip()
    if len(body) == len(left):
        return None
    first = _DASH.search(body, 2)
    participant = body[first.end() :].strip() if first is not None else ""
    return (participant, int(digits)) if participant else None


def review_heading(at: str, participant: str, seq: int) -> str:
    """The exact heading line that an event at `seq` needs."""
    return f"## {at} - {participant} - seq {seq}"


def has_label(text: str, key: str) -> bool:
    """Whether a review label such as `Review Scope:` stands in the text, in any language."""
    pattern = vocabulary().review.get(key)
    return f"{key}:" in text or bool(pattern and pattern.search(nfc(text)))


def deliverable_status(text: str) -> str | None:
    """`Draft`, `In Review`, `Frozen`, or None when no `Status:` line says so."""
    match = _STATE.search(text)
    return match[1] if match else None


def section_filled(text: str, heading: str) -> bool | None:
    """Whether the section has content; None when its heading is missing."""
    if not re.search(r"^##\s+" + re.escape(heading) + r"\s*$", text, re.MULTILINE):
        return None
    match = re.search(r"^##\s+" + re.escape(heading) + r"\s*$([\s\S]*?)(?=^##\s+|\Z)", text, re.MULTILINE)
    return bool(match and match[1].strip())


@dataclass(frozen=True, slots=True)
class Decision:
    """An accepted decision of decisions.md: `id` is `D1` … or None, `body` the lines below its heading."""

    id: str | None
    title: str
    body: str
    line: int

    def reflected_in(self, declared: Deliverables) -> tuple[str, ...]:
        """The declared references that the decision names."""
        refs = [declared.ref(item.file) for item in (declared.primary, *declared.supporting)]
        return tuple(ref for ref in refs if ref and ref in self.body)


def scan_decisions(text: str) -> tuple[Decision, ...]:
    """Every `###` block of decisions.md."""
    found = list(_DECISION.finditer(text))
    result = []
    for index, (line, match) in enumerate(_lines(text, iter(found))):
        end = found[index + 1].start() if index + 1 < len(found) else len(text)
        named = re.match(r"(D\d+)\.\s+(.+)", match[1])
        result.append(
            Decision(
                named[1] if named else None,
                (named[2] if named else match[1]).strip(),
                text[match.end() : end],
                line,
            )
        )
    return tuple(result)
