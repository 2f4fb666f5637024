"""Document texts that guided acts write: reviews, classifications, ticks, conclusions (docs/specs/acp.md §3, §7).

Pure: old text in, new text out. What cannot be composed raises Refused with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from core.acp.documents import has_label, review_heading, review_headings, scan_decisions, scan_readiness
from core.acp.language import language_of
from core.acp.model import Deliverables, Event, Setup
from core.acp.vocabulary import nfc, say, vocabulary
from core.finding import Refused, error

_TEMPLATE_HEADING = re.compile(r"^##\s+<[^>\n]*>\s+-\s+<[^>\n]*>\s+-\s+seq\s+<[^>\n]*>\s*$", re.MULTILINE)
_LOOSE_HEADING = re.compile(r"^##\s+.+?\s+-\s+.+?\s+-\s+seq\s+\S.*$", re.MULTILINE)
_TAG = re.compile(r"^([^\S\n]*-\s*)(?=\[[^\W\d]{2,}\](?:\s|\Z))", re.MULTILINE)
_ENDS = " \t.,:;?!\u2026\u3002\uff1f\uff01"
_STATUS_LINE = re.compile(r"^(\s*-\s*\[)([^\W\d]+)(\]\s*)(.*)$")
_TICK_LINE = re.compile(r"^(\s*-\s*\[)([ xX])(\]\s*)(.*)$")


@dataclass(frozen=True, slots=True)
class ReviewText:
    """A structured review; each list holds one entry a point."""

    position: str
    concerns: Sequence[str] = ()
    changes: Sequence[str] = ()
    questions: Sequence[str] = ()


def review_block(event: Event, setup: Setup, review: ReviewText, language: str = "en", read: int | None = None) -> str:
    """The whole block of one review, its heading bearing the event's own seq and time; `read` is the proposal's seq."""
    words = vocabulary()
    lines = [review_heading(event.at or "", event.actor or "", event.seq or 0), ""]
    lines += _context(event, language, read)
    if setup.deliverables is not None:
        lines += _review_receipt(setup.deliverables, language)
    for key, entries in (
        ("Position", [review.position]),
        ("Concerns", review.concerns),
        ("Required Changes", review.changes),
        ("Questions", review.questions),
    ):
        lines += ["", words.word(language, "review", key) + colon(language)]
        lines += [bullet(text) for text in entries if text.strip()] or [_none(language)]
    return "\n".join(lines) + "\n"


def colon(language: str) -> str:
    """The colon after a label, as the language sets it."""
    return " :" if language == "fr" else "\uff1a" if language in ("ja", "zh") else ":"


def _none(language: str) -> str:
    return f"- {say(language, 'None.')}"


def _context(event: Event, language: str, read: int | None) -> list[str]:
    label = vocabulary().word(language, "review", "Context") + colon(language)
    text = say(language, "Read DOCUMENT after event seq SEQ.")
    named = text.replace("DOCUMENT", "`proposal.md`").replace("SEQ", f"`{read or event.reply_to}`")
    return [label, f"- {named}"]


def _review_receipt(declared: Deliverables, language: str) -> list[str]:
    words, mark = vocabulary(), colon(language)
    stop = "\u3002" if language in ("ja", "zh") else "."
    others = ", ".join(f"`{declared.ref(item.file)}`" for item in declared.supporting) or say(language, "none")
    return [
        f"- {words.word(language, 'review', 'Reviewed primary deliverable')}{mark} `{declared.primary_ref}`",
        f"- {words.word(language, 'review', 'Reviewed supporting deliverables')}{mark} {others}{stop}",
        "",
        words.word(language, "review", "Review Scope") + mark,
        f"- {say(language, 'Proposal coherence')}",
        # This entry is a key that every validator looks for, so it is never translated.
        "- Primary deliverable completeness",
        f"- {say(language, 'Accepted decision traceability')}",
        f"- {say(language, 'Implementation readiness')}",
    ]


def bullet(text: str) -> str:
    """A list entry; further lines are indented so that none of them can become a heading or a tag of its own."""
    lines = [line.rstrip() for line in text.strip().splitlines()]
    first = lines[0].removeprefix("- ").strip() if lines else ""
    return "\n".join([f"- {first}", *(f"  {line}" for line in lines[1:])])


def add_review(
    old: str,
    event: Event,
    setup: Setup,
    review: ReviewText | str | None,
    read: int | None = None,
    language: str | None = None,
) -> str:
    """review.md with this review at its end; None: its block must be there already. Raises Refused.

    Its labels are in `language`; None: in that of review.md.
    """
    language = language or language_of(old)
    seq, actor = event.seq or 0, event.actor or ""
    standing = [item for item in review_headings(old) if item.seq == seq]
    if review is None:
        if any(item.participant == actor for item in standing):
            return old
        heading = review_heading(event.at or "", actor, seq)
        cause = (
            f"there is no review text: give --file or --position, or write it into review.md under {heading!r} first"
        )
        raise Refused(error("review_text_missing", cause, None, "review.md"))
    if standing:
        cause = f"review.md already has a heading for seq {seq}"
        raise Refused(error("review_heading_repeated", cause, None, f"review.md#line {standing[0].line}"))
    block = (
        review_block(event, setup, review, language, read)
        if isinstance(review, ReviewText)
        else review_from_text(event, setup, review, language, read)
    )
    if [item.seq for item in review_headings(block)] != [seq]:
        cause = "the review's text holds a heading like those that begin a review; indent or reword it"
        raise Refused(error("review_text_heading", cause, None, "--file"))
    return old.rstrip("\n") + "\n\n" + block if old.strip() else block


def review_from_text(event: Event, setup: Setup, text: str, language: str = "en", read: int | None = None) -> str:
    """A review written in a file: its own heading, if it has one, is replaced by the right one."""
    body = text.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    if not body.strip():
        raise Refused(error("review_text_missing", "the review's text is blank", None, "--file"))
    heading = review_heading(event.at or "", event.actor or "", event.seq or 0)
    # The pattern is lazy three times: only a line of a heading's size is worth it.
    line = body.partition("\n")[0]
    if len(line) <= 300 and (_TEMPLATE_HEADING.match(line) or _LOOSE_HEADING.match(line)):
        body = body[len(line) :].strip("\n")
    if not has_label(body, "Position"):
        return review_block(event, setup, ReviewText(body), language, read)
    if setup.deliverables is not None and "Primary deliverable completeness" not in body:
        body = "\n".join(_review_receipt(setup.deliverables, language)) + "\n\n" + body
    if not has_label(body, "Context"):
        body = "\n".join(_context(event, language, read)) + "\n\n" + body
    return f"{heading}\n\n{body}\n"


@dataclass(frozen=True, slots=True)
class Classification:
    """Answers to open questions: resolved texts, (text, reason) pairs that can wait, texts that block."""

    resolved: Sequence[str] = ()
    deferred: Sequence[tuple[str, str]] = ()
    blocking: Sequence[str] = ()

    @property
    def empty(self) -> bool:
        return not (self.resolved or self.deferred or self.blocking)


def classify(old: str, answers: Classification, language: str | None = None) -> str:
    """readiness.md with these answers: a line that asks the same question changes its status, others are added.

    Placeholder lines of the template (`- [unresolved] TBD.`) go once there is a real answer. Raises Refused.
    """
    if answers.empty:
        return old
    words, language = vocabulary(), language or language_of(old)
    reason_word = words.word(language, "reason", "Reason")
    wanted: list[tuple[str, str, str]] = [("resolved", text, "") for text in answers.resolved]
    wanted += [("deferred_nonblocking", text, reason) for text, reason in answers.deferred]
    wanted += [("blocking", text, "") for text in answers.blocking]
    _check_answers(wanted)
    lines = old.split("\n")
    added: list[str] = []
    for status, text, reason in wanted:
        tag = words.word(language, "statuses", status)
        tail = f" {reason_word}{colon(language)} {reason.strip()}" if reason else ""
        spot, question = _same_question(lines, text.strip())
        made = f"- [{tag}] {question}{tail}"
        if spot is None:
            added.append(made)
        else:
            lines[spot] = lines[spot][: len(lines[spot]) - len(lines[spot].lstrip())] + made
    return _insert_items(lines, added)


def _check_answers(wanted: Sequence[tuple[str, str, str]]) -> None:
    flags = {"resolved": "--resolve", "deferred_nonblocking": "--defer", "blocking": "--blocking"}
    answered: set[str] = set()
    for status, text, reason in wanted:
        flag = flags[status]
        if not text.strip() or len(text.strip().splitlines()) > 1 or len(reason.strip().splitlines()) > 1:
            raise Refused(error("question_blank", "a question and its reason must be one line of text", None, flag))
        if status == "deferred_nonblocking" and not reason.strip():
            cause = f"{text!r} is deferred without a reason; write it as 'TEXT :: REASON'"
            raise Refused(error("readiness_reason_missing", cause, None, flag))
        if _asked(text) in answered:
            raise Refused(error("question_repeated", f"{text.strip()!r} is answered twice", None, flag))
        answered.add(_asked(text))


def _item(line: str) -> tuple[str, str] | None:
    """(canonical status, text) of a status line."""
    match = _STATUS_LINE.match(nfc(line))
    if match is None:
        return None
    from core.acp.vocabulary import STATUSES, fold

    key = match[2] if match[2] in STATUSES else vocabulary().status.get(fold(match[2]))
    return (key, match[4].strip()) if key is not None else None


def _asked(text: str) -> str:
    return " ".join(nfc(text).casefold().split()).rstrip(_ENDS)


def _blank(text: str) -> bool:
    """Whether a template's placeholder is all that stands there."""
    left = text.strip(_ENDS)
    return not left or vocabulary().placeholder.fullmatch(nfc(left)) is not None


def _same_question(lines: Sequence[str], text: str) -> tuple[int | None, str]:
    """(the line that asks this, how the question reads from now on); None for a new question.

    A question may be named by its beginning, if that names one only; it then keeps its own words.
    """
    wanted = _asked(text)
    begun: list[tuple[int, str]] = []
    for index, line in enumerate(lines):
        item = _item(line)
        if item is None:
            continue
        question = vocabulary().reason.split(item[1], maxsplit=1)[0].strip()
        asked = _asked(question)
        if asked == wanted:
            return index, text
        if len(wanted) > 3 and asked.startswith(wanted) and not asked[len(wanted)].isalnum():
            begun.append((index, text if vocabulary().placeholder.search(nfc(question)) else question))
    return begun[0] if len(begun) == 1 else (None, text)


def _insert_items(lines: list[str], added: list[str]) -> str:
    """New lines go where the questions stand; template placeholders among them go away."""
    spots = [index for index, line in enumerate(lines) if _item(line) is not None]
    empty = [index for index in spots if _blank((_item(lines[index]) or ("", "x"))[1])]
    at = (spots[-1] + 1) if spots else len(lines)
    if not spots and lines and lines[-1] == "":
        at = len(lines) - 1
    made = [*lines[:at], *added, *lines[at:]]
    return "\n".join(line for index, line in enumerate(made) if index not in empty)


def tick(old: str, texts: Sequence[str], everything: bool) -> str:
    """readiness.md with `- [ ] text` lines ticked. Raises Refused for a text that stands on no such line."""
    lines = old.split("\n")
    left = {" ".join(text.split()): False for text in texts}
    for index, line in enumerate(lines):
        match = _TICK_LINE.match(line)
        if match is None:
            continue
        name = " ".join(match[4].split())
        if everything or name in left:
            lines[index] = f"{match[1]}x{match[3]}{match[4]}"
            if name in left:
                left[name] = True
    missing = [text for text, found in left.items() if not found]
    if missing:
        cause = f"readiness.md has no line '- [ ] {missing[0]}' to tick"
        raise Refused(error("tick_unknown", cause, "collab show --folder {folder} --doc readiness.md", "--tick"))
    return "\n".join(lines)


def add_gates(text: str, gates: Sequence[str], language: str = "en") -> str:
    """readiness.md with a ticked line for every gate that has none; some templates of others leave them out."""
    scan = scan_readiness(text)
    missing = [gate for gate in gates if not scan.gate_ticked(gate)]
    if not missing:
        return text
    lines = "\n".join(f"- [x] {gate}" for gate in missing)
    return f"{text.rstrip()}\n\n## {say(language, 'Completion Gates')}\n\n{lines}\n".lstrip("\n")


_SNAPSHOT = re.compile(r"^(- SHA-256[^\S\n]?[:\uff1a])[^\S\n]*[0-9a-f]{0,64}[^\S\n]*$", re.MULTILINE)


def snapshot(old: str, digest: str | None) -> str:
    """readiness.md with the primary deliverable's digest on its `- SHA-256:` line; None blanks the line."""
    return _SNAPSHOT.sub(lambda match: f"{match[1]} {digest}" if digest else match[1], old, count=1)


def reopen(old: str) -> str:
    """readiness.md for a new round: nothing is ticked yet, and the digest of the round before is gone."""
    lines = old.split("\n")
    for index, line in enumerate(lines):
        match = _TICK_LINE.match(line)
        if match is not None:
            lines[index] = f"{match[1]} {match[3]}{match[4]}"
    return snapshot("\n".join(lines), None)


@dataclass(frozen=True, slots=True)
class ConclusionText:
    """The parts of a conclusion that a person gives; the rest follows from the other documents."""

    outcome: str
    rationale: str
    next_action: str
    approach: str = ""
    assumptions: Sequence[str] = ()


def conclusion(
    setup: Setup, text: ConclusionText, decisions: str, readiness: str, digest: str | None, language: str = "en"
) -> str:
    """conclusion.md in full: outcome, reasons, what was accepted, what is left."""
    words = vocabulary()

    def title(name: str) -> str:
        return "## " + words.word(language, "headings", name)

    def entries(lines: Sequence[str]) -> str:
        return _untagged("\n".join(lines)) or _none(language)

    mark = colon(language)
    first = next((line.strip() for line in text.rationale.splitlines() if line.strip()), "")
    accepted = [
        f"- {item.id + '. ' if item.id else ''}{item.title}" for item in scan_decisions(decisions)
    ] or plain_decisions(decisions)
    bodies: dict[str, str] = {
        "Decision Outcome": f"- [{words.word(language, 'outcomes', text.outcome)}] {first}",
        "Rationale": _untagged(text.rationale.strip()),
        "Accepted Decisions": entries(accepted),
        "Accepted Decisions Summary": entries(accepted),
        "Implementation Approach": _untagged(text.approach.strip()) or say(language, "As the accepted decisions say."),
        "Assumptions": entries([bullet(item) for item in text.assumptions if item.strip()]),
        "Deferred Follow-ups": entries(deferred_items(readiness)),
        "Implementation Blockers": _none(language),
        "Next Action": _untagged(text.next_action.strip()),
        "Readiness Result": "\n".join(
            (
                f"- {say(language, 'Objective gates')}{mark} {say(language, 'passed')}",
                f"- {say(language, 'Generated gates')}{mark} {say(language, 'passed')}",
                f"- {say(language, 'Readiness file')}{mark} `readiness.md`",
            )
        ),
    }
    declared = setup.deliverables
    if declared is not None:
        none = say(language, "none")
        others = ", ".join(declared.ref(item.file) for item in declared.supporting) or none
        attached = ", ".join(declared.attachments) or none
        bodies["Deliverable Receipt"] = "\n".join(
            (
                f"- {say(language, 'Primary')}{mark} `{declared.primary_ref}`",
                f"- {say(language, 'Type')}{mark} `{declared.primary.type}`",
                f"- SHA-256{mark} `{digest or say(language, 'unknown')}`",
                f"- {say(language, 'Supporting')}{mark} {others}",
                f"- {say(language, 'Attachments')}{mark} {attached}",
            )
        )
    parts = [f"# {say(language, 'Conclusion')}"]
    for name in setup.conclusion_headings:
        parts.append(f"{title(name)}\n\n{bodies[name]}")
    return "\n\n".join(parts) + "\n"


def _untagged(text: str) -> str:
    """Text whose list entries are no outcome lines of their own: `- \\[defer] …`."""
    return _TAG.sub(r"\1\\", text)


def plain_decisions(decisions: str) -> list[str]:
    """The list entries of a decisions.md without numbered headings."""
    found = [line.strip() for line in decisions.splitlines() if line.startswith("- ")]
    return [line for line in found if not _blank(line.removeprefix("- "))]


def deferred_items(readiness: str) -> list[str]:
    """What readiness.md leaves for later, as list entries."""
    made = []
    for line in readiness.splitlines():
        item = _item(line)
        if item is not None and item[0] == "deferred_nonblocking":
            made.append(f"- {item[1]}")
    return made
