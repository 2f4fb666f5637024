"""Texts that guided acts write: one review one heading, whatever stands in it (docs/specs/acp.md §3, §4)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.acp import compose
from core.acp.compose import Classification, ConclusionText, ReviewText
from core.acp.documents import (
    has_label,
    review_headings,
    scan_conclusion,
    scan_readiness,
)
from core.acp.model import Event, Setup
from core.acp.rules import conclusion_findings
from core.acp.templates import render
from core.acp.vocabulary import vocabulary
from core.finding import Refused
from tests.unit.core.acp.builders import REF, setup, setup2

AT = "2026-03-01T09:00:05Z"
EVENT = Event.read({"seq": 4, "from": "reader", "event": "review_submitted", "at": AT, "reply_to": 3})
HEADING = f"## {AT} - reader - seq 4"
OLD = "# Review\n\n## 2026-03-01T09:00:01Z - editor - seq 3\n\nPosition:\n- Yes.\n"
OTHER = "## 2026-03-01T09:00:09Z - editor - seq 9"
GATES = {"gate_checks": "- [ ] Measured"}
READINESS = render("readiness.md", "en", GATES)
LISTE = render("readiness.md", "fr", GATES)
REVUE = render("review.md", "fr", {})


def headings(text: str) -> list[tuple[int, str]]:
    return [(item.seq, item.participant) for item in review_headings(text)]


def refusal(function: object, *args: object) -> str:
    with pytest.raises(Refused) as refused:
        function(*args)  # type: ignore[operator]
    return refused.value.findings[0].code


def attempt(function: object, *args: object) -> tuple[str, str]:
    """(the text, "") or ("", why it was refused)."""
    try:
        return function(*args), ""  # type: ignore[operator]
    except Refused as exc:
        return "", exc.findings[0].code


def test_a_review_has_all_its_parts() -> None:
    text = ReviewText("In favour", ["Slow", "Dear"], ["Name the policy"])
    assert compose.review_block(EVENT, setup(), text, read=2) == (
        f"{HEADING}\n\nContext:\n- Read `proposal.md` after event seq `2`.\n\nPosition:\n- In favour\n\n"
        "Concerns:\n- Slow\n- Dear\n\nRequired Changes:\n- Name the policy\n\nQuestions:\n- None.\n"
    )


def test_a_review_of_a_deliverable_names_it_and_its_scope() -> None:
    block = compose.review_block(EVENT, setup2(), ReviewText("In favour"))
    assert f"- Reviewed primary deliverable: `{REF}`\n" in block
    assert "- Reviewed supporting deliverables: `deliverables/test-plan.md`.\n" in block
    assert "Review Scope:\n- Proposal coherence\n- Primary deliverable completeness\n" in block
    from_text = compose.review_from_text(EVENT, setup2(), "Position:\n- In favour.")
    assert REF in from_text
    assert "Primary deliverable completeness" in from_text


HOSTILE = {
    "another review's heading": f"Fine\n{OTHER}\nPosition:\n- No.",
    "the same heading again": f"Fine\n{HEADING}",
    "a heading after a vertical tab": f"Fine\x0b{OTHER}",
    "a heading after a line separator": f"Fine\u2028{OTHER}",
    "a heading after a lone CR": f"Fine\r{OTHER}",
    "headings of gates": "Fine\n## Decision Outcome\n- [do_not_proceed] No.\n## Next Action",
    "tags": "- [blocking] Everything\n- [x] Ready to implement\n* [ ] Measured",
    "a fence that stays open": "Fine\n```\ncode",
    "CRLF": "One\r\nTwo\r\n",
    "NUL and escapes": "One\x00\nTwo\x1b[2J\x9b31m",
    "markup": "[bold]x[/] [/nope <script>",
    "bidi": "a\u202eb\u200bc\ufeff",
    "a megabyte in one line": "x" * 1_000_000,
    "a megabyte in many lines": f"{OTHER}\n" * 22_000,
    "dashes": "- - - seq 4",
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("field", ["position", "concerns", "changes", "questions"])
def test_no_text_in_a_field_makes_a_second_heading(name: str, field: str) -> None:
    text = HOSTILE[name]
    fields = {"position": "In favour", field: text if field == "position" else ["First", text]}
    made = compose.add_review(OLD, EVENT, setup(), ReviewText(**fields))  # type: ignore[arg-type]
    assert made.startswith(OLD)
    assert headings(made) == [(3, "editor"), (4, "reader")]
    block = made[len(OLD) :]
    # Nothing is lost: every word is there, and no line but the heading and the labels begins at the margin.
    assert [w for w in text.removeprefix("- ").split() if w not in block] == []
    assert all(line[:2] in ("", "- ", "  ", "##") or line.endswith(":") for line in block.splitlines())
    assert sum(line.startswith("##") for line in block.splitlines()) == 1
    assert [item for item in scan_readiness(block).items if item.text != "Everything"] == []


ENDS = ["\n", "\r\n", "\r", "\x0b", "\u2028", "\x85"]
PIECES = st.sampled_from([*ENDS, "## ", " - ", "seq ", "4", "reader", "- ", "[blocking] ", " ", "<", "x"])
TEXTS = st.lists(PIECES, max_size=14).map("".join)


@given(TEXTS, st.lists(TEXTS, max_size=2))
def test_one_review_is_one_heading(position: str, concerns: list[str]) -> None:
    made = compose.add_review(OLD, EVENT, setup(), ReviewText(position, concerns))
    assert headings(made) == [(3, "editor"), (4, "reader")]


@given(TEXTS)
def test_a_review_from_a_file_is_one_heading_or_refused(text: str) -> None:
    made, refused = attempt(compose.add_review, OLD, EVENT, setup(), text)
    if refused:
        assert refused in ("review_text_missing", "review_text_heading")
        return
    assert headings(made) == [(3, "editor"), (4, "reader")]
    # Written to the folder and read again, line ends may have become others.
    assert headings(made.replace("\r\n", "\n").replace("\r", "\n")) == [(3, "editor"), (4, "reader")]


FILES = {
    "a plain text": ("I like it.\n", ["I like it."]),
    "a text with its parts": ("Position:\n- In favour\n", ["Position:", "- In favour"]),
    "its own heading": ("## today - me - seq 99\n\nPosition:\n- In favour\n", ["- In favour"]),
    "the template's heading": (
        "## <timestamp> - <participant_id> - seq <event seq>\n\nPosition:\n- In favour\n",
        ["- In favour"],
    ),
    "CRLF": ("Position:\r\n- In favour\r\n- Really\r\n", ["- In favour", "- Really"]),
    "NUL": ("Position:\n- In\x00favour\n", ["- In\x00favour"]),
    "no line end": ("Position:\n- In favour", ["- In favour"]),
    "a heading of its own": ("## What I think\n\nPosition:\n- In favour\n", ["## What I think", "- In favour"]),
}


@pytest.mark.parametrize("name", FILES)
def test_a_review_from_a_file(name: str) -> None:
    text, kept = FILES[name]
    made = compose.add_review(OLD, EVENT, setup(), text, read=2)
    assert made.startswith(OLD)
    block = made[len(OLD) :].strip("\n").split("\n")
    assert block[0] == HEADING
    assert all(line in block or f"- {line}" in block for line in kept)
    assert "Context:" in block
    assert "- Read `proposal.md` after event seq `2`." in block
    assert not any("\r" in line for line in block)
    assert headings(made) == [(3, "editor"), (4, "reader")]


def test_what_stands_before_a_template_heading_is_not_lost() -> None:
    text = "Position:\n- In favour\n\n## <timestamp> - <participant_id> - seq <event seq>\n\nConcerns:\n- None.\n"
    made = compose.add_review(OLD, EVENT, setup(), text)
    assert "- In favour" in made
    assert headings(made) == [(3, "editor"), (4, "reader")]


@pytest.mark.parametrize("line", [OTHER, HEADING, "##\u00a0then - editor - seq 9", "## x - y - seq 4"])
def test_a_file_that_holds_a_heading_is_refused(line: str) -> None:
    assert refusal(compose.add_review, OLD, EVENT, setup(), f"Position:\n- Yes.\n\n{line}\n") == "review_text_heading"


@pytest.mark.parametrize("text", ["", " \n\t\r\n", "\n\n\n"])
def test_a_blank_file_is_no_review(text: str) -> None:
    assert refusal(compose.add_review, OLD, EVENT, setup(), text) == "review_text_missing"


def test_a_review_that_stands_there_already() -> None:
    standing = f"{OLD}\n{HEADING}\n\nPosition:\n- Yes.\n"
    assert compose.add_review(standing, EVENT, setup(), None) == standing
    assert refusal(compose.add_review, OLD, EVENT, setup(), None) == "review_text_missing"
    for text in (ReviewText("Yes"), "Yes"):
        assert refusal(compose.add_review, standing, EVENT, setup(), text) == "review_heading_repeated"
    other = standing.replace("- reader -", "- editor -")
    assert refusal(compose.add_review, other, EVENT, setup(), None) == "review_text_missing"


def test_the_first_review_of_an_empty_document() -> None:
    for old in ("", "\n\n"):
        assert compose.add_review(old, EVENT, setup(), ReviewText("Yes")).startswith(HEADING)


def test_a_huge_document_takes_no_time() -> None:
    old = "# Review\n\n" + "- a line of text that says nothing at all\n" * 25_000
    made = compose.add_review(old, EVENT, setup(), "## " + " " * 500_000 + "x\n" + "Position: " + " " * 500_000)
    assert headings(made) == [(4, "reader")]


# Languages


@pytest.mark.parametrize("text", [ReviewText("D'accord", ["Trop lent"]), "D'accord\n", "Position :\n- D'accord\n"])
def test_a_french_document_stays_french(text: ReviewText | str) -> None:
    made = compose.add_review(REVUE, EVENT, setup(), text, read=2)
    block = made[len(REVUE) :]
    assert "Contexte :" in block
    assert "Position :" in block
    assert "Context:" not in block
    assert has_label(block, "Position")
    if not isinstance(text, str):
        assert "Préoccupations :\n- Trop lent" in block
        assert "Modifications Requises :" in block


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("", "en"),
        ("# Review\n\nPosition:\n- Yes.", "en"),
        ("Nothing that tells", "en"),
        (LISTE, "fr"),
        (REVUE, "fr"),
        (render("conclusion.md", "fr", {}), "fr"),
        (READINESS, "en"),
        ("- [未解決] x\n実装準備完了", "ja"),
        ("- [risolto] x\nPronto", "it"),
        # Decomposed letters are the same letters.
        ("- [re\u0301solue] x", "fr"),
    ],
)
def test_the_language_of_a_document(text: str, language: str) -> None:
    assert compose.language_of(text) == language


@pytest.mark.parametrize("language", vocabulary().languages)
def test_every_language_can_be_written_and_read_again(language: str) -> None:
    event = EVENT
    block = compose.review_block(event, setup(), ReviewText("x", ["y"]), language)
    for key in ("Context", "Position", "Concerns", "Required Changes", "Questions"):
        assert has_label(block, key), key
    words = vocabulary()
    text = "".join(f"- [{words.word(language, 'statuses', key)}] a\n" for key in ("unresolved", "resolved"))
    made = compose.classify(text * 3, Classification(["b"], [("c", "later")], ["d"]))
    found = {(item.text.split(" ")[0], item.status) for item in scan_readiness(made).items}
    assert {("b", "resolved"), ("c", "deferred_nonblocking"), ("d", "blocking")} <= found
    assert not scan_readiness(made).without_reason
    wanted = ConclusionText("proceed", "It fits.", "Do it.")
    conclusion = compose.conclusion(setup(), wanted, "", "", None, language)
    assert conclusion_findings(setup(), scan_conclusion(conclusion, setup().conclusion_headings)) == []


# Classification


def lines_with(text: str, *words: str) -> list[str]:
    return [line for line in text.split("\n") if any(word in line for word in words)]


def test_answers_take_the_placeholders_place() -> None:
    answers = Classification(["Key layout"], [("Sizes", "defaults will do")], ["Who pays"])
    made = compose.classify(READINESS, answers)
    added = "- [resolved] Key layout\n- [deferred_nonblocking] Sizes Reason: defaults will do\n- [blocking] Who pays\n"
    assert made == READINESS.replace("- [unresolved] TBD.\n", added)


def test_french_answers_are_french() -> None:
    made = compose.classify(LISTE, Classification(["Clés"], [("Tailles", "plus tard")], ["Qui paie"]))
    added = "- [résolu] Clés\n- [différé_non_bloquant] Tailles Raison : plus tard\n- [bloquant] Qui paie\n"
    assert made == LISTE.replace("- [non_résolue] À définir.\n", added)
    assert [item.status for item in scan_readiness(made).items] == ["resolved", "deferred_nonblocking", "blocking"]


ASKED = """\
# Readiness

  - [unresolved] Key layout?
- [blocking] Who pays for it: us or them?
- [deferred_nonblocking] Sizes. Reason: none yet
"""


@pytest.mark.parametrize(
    ("answers", "line", "now"),
    [
        (Classification(["Key layout"]), "  - [unresolved] Key layout?", "  - [resolved] Key layout"),
        (Classification(["KEY  Layout?"]), "  - [unresolved] Key layout?", "  - [resolved] KEY  Layout?"),
        # Named by its beginning: the question keeps its words.
        (
            Classification(["who pays"]),
            "- [blocking] Who pays for it: us or them?",
            "- [resolved] Who pays for it: us or them?",
        ),
        (Classification(["Sizes"]), "- [deferred_nonblocking] Sizes. Reason: none yet", "- [resolved] Sizes"),
        (
            Classification([], [("Sizes.", "later")]),
            "- [deferred_nonblocking] Sizes. Reason: none yet",
            "- [deferred_nonblocking] Sizes. Reason: later",
        ),
        (Classification([], [], ["Key layout"]), "  - [unresolved] Key layout?", "  - [blocking] Key layout"),
    ],
)
def test_a_line_that_asks_the_same_changes_its_status(answers: Classification, line: str, now: str) -> None:
    assert line in ASKED.split("\n")
    assert compose.classify(ASKED, answers).split("\n") == [now if one == line else one for one in ASKED.split("\n")]


@pytest.mark.parametrize("text", ["Key", "Key layouts", "Key lay", "pays for it", "layout?"])
def test_another_question_is_another_line(text: str) -> None:
    made = compose.classify(ASKED, Classification([text]))
    assert made == ASKED + f"- [resolved] {text}\n"


def test_a_beginning_that_names_two_questions_names_none() -> None:
    old = "- [unresolved] Cache size per node\n- [unresolved] Cache size in all\n"
    assert compose.classify(old, Classification(["Cache size"])) == old + "- [resolved] Cache size\n"


def test_a_question_that_still_says_tbd_is_said_anew() -> None:
    made = compose.classify("- [unresolved] Key layout, TBD\n", Classification(["Key layout"]))
    assert made == "- [resolved] Key layout\n"
    assert scan_readiness(made).clean


def test_regex_characters_are_only_text() -> None:
    text = r"Does .* match [a-z]+ (or \d{3})? $^|"
    old = f"- [unresolved] {text}\n- [unresolved] Does everything match\n"
    made = compose.classify(old, Classification([text]))
    assert made == f"- [resolved] {text}\n- [unresolved] Does everything match\n"


@pytest.mark.parametrize("old", ["", "no list\n", "# Readiness", "- [x] A tick\n", "\r\n"])
def test_a_document_without_questions_gets_some(old: str) -> None:
    made = compose.classify(old, Classification(["A"], [("B", "later")]))
    assert [item.status for item in scan_readiness(made).items] == ["resolved", "deferred_nonblocking"]
    assert all(line in made.split("\n") for line in old.split("\n"))


def test_no_answers_leave_the_document() -> None:
    assert compose.classify(READINESS, Classification()) == READINESS


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        (Classification([""]), "question_blank"),
        (Classification([" \t"]), "question_blank"),
        (Classification(["A\n- [blocking] B"]), "question_blank"),
        (Classification(["A\r- [blocking] B"]), "question_blank"),
        (Classification(["A\u2028- [blocking] B"]), "question_blank"),
        (Classification([], [("A", "x\n- [blocking] B")]), "question_blank"),
        (Classification([], [("A", "")]), "readiness_reason_missing"),
        (Classification([], [("A", "  ")]), "readiness_reason_missing"),
        (Classification(["A"], [], ["a."]), "question_repeated"),
        (Classification(["A", "A"]), "question_repeated"),
        (Classification(["A"], [("A", "later")]), "question_repeated"),
    ],
)
def test_blank_and_contradictory_answers_are_refused(answers: Classification, code: str) -> None:
    assert refusal(compose.classify, READINESS, answers) == code


@given(st.lists(TEXTS, min_size=1, max_size=3), TEXTS)
def test_answers_are_one_status_line_each_or_refused(resolved: list[str], blocking: str) -> None:
    before = scan_readiness(READINESS)
    made, refused = attempt(compose.classify, READINESS, Classification(resolved, [], [blocking]))
    if refused:
        assert refused in ("question_blank", "question_repeated")
        return
    scan = scan_readiness(made)
    assert len(scan.items) <= len(resolved) + 1
    assert len(scan.blocking) <= 1
    assert scan.ticks == before.ticks or len(scan.ticks) == len(before.ticks)
    assert not scan.ready


# Ticks

CHECKS = "- [ ] p95 < 5 ms (.*) [a|b]\n  -  [ ]  Two  spaces \n- [X] Done\n- [ ] Ready to implement\n* [ ] no tick\n"


def test_named_lines_are_ticked() -> None:
    made = compose.tick(CHECKS, ["p95 < 5 ms (.*) [a|b]", "Two spaces", "Done"], False)
    assert made.split("\n") == [
        "- [x] p95 < 5 ms (.*) [a|b]",
        "  -  [x]  Two  spaces ",
        "- [x] Done",
        "- [ ] Ready to implement",
        "* [ ] no tick",
        "",
    ]


def test_all_lines_are_ticked() -> None:
    made = compose.tick(CHECKS, [], True)
    assert "[ ]" not in made.replace("* [ ] no tick", "")
    assert scan_readiness(made).ready
    assert scan_readiness(made).gate_ticked("p95 < 5 ms (.*) [a|b]")
    assert compose.tick(made, [], True) == made


@pytest.mark.parametrize("text", [".*", "p95 < 5 ms", "Two", "no tick", "", "done", "Ready to implement\n- [x] Done"])
def test_a_line_that_is_not_there_cannot_be_ticked(text: str) -> None:
    assert refusal(compose.tick, CHECKS, [text], False) == "tick_unknown"
    assert refusal(compose.tick, CHECKS, ["Done", text], False) == "tick_unknown"


def test_no_ticks_leave_the_document() -> None:
    assert compose.tick(CHECKS, [], False) == CHECKS


# Conclusion

DECISIONS_V1 = "# Decisions\n\n## Accepted Decisions\n\n- LRU.\n- TBD.\n- [x] Topic\n- [defer] the rest\n"
DECISIONS_V2 = f"# Decisions\n\n### D1. LRU cache\n\n- Decision: yes\n- Reflected in: `{REF}`\n\n### D2. Topic\n"
LEFT = """\
- [resolved] A
- [deferred_nonblocking] Sizes. Reason: later
- [deferred_nonblocking] [proceed] anyway Reason: x
"""


def found(made: Setup, text: str) -> list[str]:
    return [item.code for item in conclusion_findings(made, scan_conclusion(text, made.conclusion_headings))]


RECEIPT = {
    "en": ("Primary", ":", "Supporting", "Attachments: none"),
    "fr": ("Principal", " :", "Complémentaires", "Fichiers joints : aucun"),
}


@pytest.mark.parametrize("outcome", ["proceed", "do_not_proceed", "defer"])
@pytest.mark.parametrize("language", ["en", "fr"])
@pytest.mark.parametrize("schema", [1, 2])
def test_a_conclusion_passes_its_gates(outcome: str, language: str, schema: int) -> None:
    made = setup() if schema == 1 else setup2()
    wanted = ConclusionText(outcome, "It fits.\nAll agree.", "Open the change.", "", ["Load stays", "\n"])
    decisions = DECISIONS_V1 if schema == 1 else DECISIONS_V2
    text = compose.conclusion(made, wanted, decisions, LEFT, "a" * 64, language)
    assert found(made, text) == []
    scan = scan_conclusion(text, made.conclusion_headings)
    assert scan.outcomes == ((outcome, "It fits."),)
    assert "- Sizes. Reason: later" in text.split("\n")
    assert "- Load stays" in text.split("\n")
    assert "Open the change." in text.split("\n")
    assert "It fits.\nAll agree." in text
    if schema == 1:
        assert "- LRU." in text.split("\n")
        assert "TBD" not in text
    else:
        assert "- D1. LRU cache\n- D2. Topic\n" in text
        primary, colon, others, files = RECEIPT[language]
        assert f"- {primary}{colon} `{REF}`\n- Type{colon} `design-spec`\n- SHA-256{colon} `{'a' * 64}`\n" in text
        assert f"- {others}{colon} deliverables/test-plan.md\n- {files}" in text
    if language == "fr":
        assert "## Résultat de la Décision" in text
        assert "## Decision Outcome" not in text


def test_what_was_not_given_says_so() -> None:
    text = compose.conclusion(setup(), ConclusionText("proceed", "Yes.", "Go."), "", "", None)
    assert found(setup(), text) == []
    assert "## Assumptions\n\n- None.\n" in text
    assert "## Implementation Approach\n\nAs the accepted decisions say.\n" in text


OUTCOME_LINES = ["- [defer] No.", "A\n  - [do_not_proceed] No.", "- [différer] Non", "-\n[blocked] x", "- [proceed]\nx"]


@pytest.mark.parametrize("line", OUTCOME_LINES)
@pytest.mark.parametrize("field", ["rationale", "next_action", "approach", "assumptions", "decisions"])
def test_a_conclusion_has_one_outcome_whatever_its_texts_say(line: str, field: str) -> None:
    fields = {"rationale": "Yes.", "next_action": "Go.", "approach": "So."}
    decisions = line if field == "decisions" else ""
    if field == "assumptions":
        fields["assumptions"] = [line]  # type: ignore[assignment]
    elif field != "decisions":
        fields[field] = line
    text = compose.conclusion(setup(), ConclusionText("proceed", **fields), decisions, "", None)  # type: ignore[arg-type]
    scan = scan_conclusion(text, setup().conclusion_headings)
    assert [outcome for outcome, _ in scan.outcomes] == ["proceed"]
    assert found(setup(), text) == []


def test_links_and_ticks_stay_what_they_are() -> None:
    text = compose.conclusion(
        setup(), ConclusionText("proceed", "- [a link](http://x)\n- [x] done", "Go."), "", "", None
    )
    assert "- [a link](http://x)\n- [x] done" in text


@given(TEXTS)
def test_a_bullet_is_one_entry(text: str) -> None:
    lines = compose.bullet(text).split("\n")
    assert lines[0].startswith("- ")
    assert all(line.startswith("  ") or line == "  " for line in lines[1:])
    assert compose.bullet(text).count("#") == text.count("#")
