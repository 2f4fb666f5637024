"""The scanners of the Markdown documents (docs/specs/acp.md §3, §4, §7)."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.acp.documents import (
    Heading,
    deliverable_status,
    has_label,
    headings,
    review_heading,
    review_headings,
    scan_conclusion,
    scan_decisions,
    scan_readiness,
    section_filled,
)
from core.acp.model import CONCLUSION_V1, DOCUMENTS
from core.acp.templates import LANGUAGES, render
from core.acp.vocabulary import STATUSES, vocabulary
from tests.unit.core.acp.builders import CONCLUSION

NBSP, NNBSP = "\u00a0", "\u202f"


def items(text: str) -> list[tuple[str, str, int]]:
    return [(item.status, item.text, item.line) for item in scan_readiness(text).items]


def test_status_lines_in_english() -> None:
    text = (
        "# R\n\n- [resolved] One.\n  - [blocking] Two.\n\t-[unresolved]Three.\n- `[blocking]` said\n* [blocking] no\n"
    )
    assert items(text) == [("resolved", "One.", 3), ("blocking", "Two.", 4), ("unresolved", "Three.", 5)]


@pytest.mark.parametrize("line", ["- [Blocking] x", "- [BLOCKING] x", "- [block] x", "[blocking] x", "- (blocking) x"])
def test_canonical_english_is_read_as_the_reference_reads_it(line: str) -> None:
    assert items(line) == []


SPELLINGS = [
    (code, key, word)
    for code, entry in vocabulary().raw["languages"].items()
    for key, words in entry["statuses"].items()
    for word in words
]


@pytest.mark.parametrize(("code", "key", "word"), SPELLINGS)
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_every_spelling_of_every_status(code: str, key: str, word: str, form: str) -> None:
    spelled = [word] if code == "en" else [word, word.upper(), word.capitalize()]
    for one in spelled:
        written = unicodedata.normalize(form, one)  # type: ignore[arg-type]
        assert items(f"x\n  - [{written}] Question ?") == [(key, "Question ?", 2)]


OUTCOMES = [
    (key, word)
    for entry in vocabulary().raw["languages"].values()
    for key, words in entry["outcomes"].items()
    for word in words
]


@pytest.mark.parametrize(("key", "word"), OUTCOMES)
def test_every_spelling_of_every_outcome(key: str, word: str) -> None:
    for form in ("NFC", "NFD"):
        text = f"- [{unicodedata.normalize(form, word)}] Because.\n"  # type: ignore[arg-type]
        assert scan_conclusion(text, ()).outcomes == ((key, "Because."),)


@pytest.mark.parametrize(
    "reason",
    [
        "Reason: x",
        "reason: x",
        "REASON : x",
        "Raison : x",
        f"Raison{NBSP}: x",
        f"raison{NNBSP}: x",
        "RAISON: x",
        "理由：x",
        "理由: x",
        "Motivo: x",
        "原因：x",
        unicodedata.normalize("NFD", "Raison : é"),
    ],
)
def test_a_deferred_item_needs_its_reason_in_the_same_line(reason: str) -> None:
    for tag in ("deferred_nonblocking", "différée_non_bloquante", "延後_不阻塞"):
        assert scan_readiness(f"- [{tag}] Later. {reason}\n").clean
        assert not scan_readiness(f"- [{tag}] Later.\n").clean
    assert len(scan_readiness(f"- [différé_non_bloquant]\n  {reason}\n").without_reason) == 1


def test_a_tag_without_text_swallows_no_line_below_it() -> None:
    """Every line is judged by its own tag."""
    text = "- [résolu]\n- [bloquant] Un.\n- [résolue]\n- [blocking] Two.\n- [bloquant]\n"
    assert [(status, line) for status, _, line in items(text)] == [
        ("resolved", 1),
        ("blocking", 2),
        ("resolved", 3),
        ("blocking", 4),
        ("blocking", 5),
    ]


def test_placeholders_make_an_item_unresolved() -> None:
    scan = scan_readiness("- [resolved] TBD later.\n- [résolu] TBD\n- [other] TBD\n- [resolved] tbd\n")
    assert [item.line for item in scan.unresolved] == [1, 2]


def test_mixed_languages_in_one_document() -> None:
    scan = scan_readiness(
        "- [resolved] One.\n- [bloquant] Deux.\n- [未解決] 三.\n- [rinviato_non_bloccante] Quattro. Reason: later\n"
        "- [x] Prêt à implémenter\n"
    )
    assert [item.status for item in scan.items] == ["resolved", "blocking", "unresolved", "deferred_nonblocking"]
    assert scan.without_reason == ()
    assert scan.ready


@pytest.mark.parametrize(
    ("line", "ready"),
    [
        ("- [x] Ready to implement", True),
        ("  - [X] Ready to implement now", True),
        ("- [ ] Ready to implement", False),
        ("- [x] ready to implement", False),
        ("- [x] Prêt à implémenter", True),
        (unicodedata.normalize("NFD", "- [x] PRÊT À IMPLÉMENTER"), True),
        (f"- [x] Prêt{NBSP}à implémenter", True),
        ("- [ ] Prêt à implémenter", False),
        ("- [x] 実装準備完了", True),
        ("- [x] Pronto per l'implementazione", True),
        ("- [x] 实施准备就绪", True),
    ],
)
def test_the_final_tick(line: str, ready: bool) -> None:
    assert scan_readiness(f"text\n{line}\n").ready is ready
    assert scan_readiness(f"text\r\n{line}\r\n".replace("\r\n", "\n")).ready is ready


@pytest.mark.parametrize(
    "gate",
    [
        "p95 < 5 ms (measured) [cache] *every* a.b+c?",
        "Fini, et relu : 100 %",
        "- [x] nested",
        "^$|\\d+",
        "漢字",
        "a  b",
    ],
)
def test_a_gate_is_ticked_exactly(gate: str) -> None:
    assert scan_readiness(f"# R\n\n  - [X] {gate}  \n").gate_ticked(gate)
    for other in (f"- [ ] {gate}", f"- [x] {gate} and more", f"- [x] not {gate}", f"x - [x] {gate}", f"[x] {gate}"):
        assert not scan_readiness(other + "\n").gate_ticked(gate)


def test_ticks_with_their_lines() -> None:
    ticks = scan_readiness("# R\n- [x] One  \n\n  - [ ] Two\n- [X]\n").ticks
    assert [(tick.text, tick.ticked, tick.line) for tick in ticks] == [
        ("One", True, 2),
        ("Two", False, 4),
        ("", True, 5),
    ]


def test_conclusion_in_english() -> None:
    scan = scan_conclusion(CONCLUSION, CONCLUSION_V1)
    assert scan.missing == ()
    assert scan.outcomes == (("proceed", "Build it."),)
    assert scan.placeholders == ()


FRENCH = {
    "Decision Outcome": "Résultat de la Décision",
    "Rationale": "JUSTIFICATION",
    "Accepted Decisions": "décisions acceptées",
    "Implementation Approach": "Approche d’Implémentation",
    "Assumptions": "Hypothèses",
    "Deferred Follow-ups": f"Suivis{NBSP}Différés",
    "Implementation Blockers": "Blocages d'Implémentation",
    "Next Action": "Prochaine Action",
}


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_conclusion_in_french(form: str) -> None:
    text = "".join(f"## {unicodedata.normalize(form, name)}\n\nx\n\n" for name in FRENCH.values())  # type: ignore[arg-type]
    assert scan_conclusion(text, CONCLUSION_V1).missing == ()
    for english, french in FRENCH.items():
        mixed = CONCLUSION.replace(f"## {english}\n", f"## {french}\n")
        assert scan_conclusion(mixed, CONCLUSION_V1).missing == ()
        both = CONCLUSION + f"\n## {french}\n"
        assert scan_conclusion(both, CONCLUSION_V1).missing == ()
        neither = CONCLUSION.replace(f"## {english}\n", f"### {french}\n")
        assert scan_conclusion(neither, CONCLUSION_V1).missing == (english,)


def test_the_explained_outcomes_of_the_template_are_none() -> None:
    text = "- `[proceed]` go on.\n- [proceed] Yes.\n- `[defer]` later.\n- [maybe] x\n- [proceed]\n"
    assert [key for key, _ in scan_conclusion(text, ()).outcomes] == ["proceed"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("TBD", True),
        ("a todo here", True),
        ("Unresolved.", True),
        ("unresolvedly", False),
        ("mastodons", False),
        ("结论待定。", True),
        ("未定である", True),
        ("À définir", True),
        (unicodedata.normalize("NFD", "à définir plus tard"), True),
        (f"à{NBSP}définir", True),
        ("Da definire", True),
        ("resolved", False),
    ],
)
def test_placeholders(text: str, found: bool) -> None:
    assert bool(scan_conclusion(f"# C\n\n{text}\n", ()).placeholders) is found


def test_review_headings() -> None:
    text = (
        "# Review\n\n## 2026-03-01T09:00:00Z - reader - seq 3\n\nx\n"
        "##  2026-03-01T09:00:00Z   -  jean - paul  -  seq 12  \n"
        "## <timestamp> - <participant_id> - seq <event seq>\n"
        "### 2026-03-01T09:00:00Z - reader - seq 4\n"
        "- ## 2026-03-01T09:00:00Z - reader - seq 4\n"
        "## reader - seq 5\n## a - b - seq 6 now\n## a - b - sequence 7\n##a - b - seq 8\n"
        "## a - b - seq 1234567890123456789\n"
    )
    assert review_headings(text) == (Heading(3, "reader", 3), Heading(12, "jean - paul", 6))
    assert review_headings(review_heading("2026-03-01T09:00:00Z", "été", 7)) == (Heading(7, "été", 1),)


@settings(max_examples=400)
@given(
    st.lists(
        st.sampled_from(["#", " ", "  ", "-", " - ", "seq", "seq ", "12", "3", "٣", "a", "b c", "\t", NBSP, "x-y"]),
        max_size=14,
    )
)
def test_review_headings_are_those_of_the_reference(parts: list[str]) -> None:
    """Both ends agree with the one pattern that describes a heading."""
    line = "##" + "".join(parts)
    match = re.match(r"^##\s+.+?\s+-\s+(.+?)\s+-\s+seq\s+(\d+)\s*$", line)
    if match is not None and not match[1].strip():
        return
    expected = () if match is None else (Heading(int(match[2]), match[1].strip(), 1),)
    assert review_headings(line) == expected


SOUP = st.lists(
    st.sampled_from(
        [
            "\n",
            "\n\n",
            "-",
            "- ",
            " ",
            "\t",
            "[blocking]",
            "[resolved] ",
            "[deferred_nonblocking]",
            "[x] ",
            "[ ]",
            "Ready to implement",
            "Gate (1)",
            " TBD",
            "Reason: x",
            "## ",
            "text",
            "[proceed] ",
            "\x0b",
            "\u2028",
        ]
    ),
    max_size=24,
)


@settings(max_examples=400)
@given(SOUP)
def test_english_is_read_by_the_patterns_of_the_reference(parts: list[str]) -> None:
    text = "".join(parts)
    scan = scan_readiness(text)
    found = [
        (status, body)
        for status, body in re.findall(r"^\s*-\s*\[([A-Za-z_]+)\]\s*(.*)$", text, re.MULTILINE)
        if status in STATUSES
    ]
    assert [(item.status, item.text) for item in scan.items] == found
    assert scan.ready == bool(re.search(r"^\s*-\s*\[[xX]\]\s*Ready to implement", text, re.MULTILINE))
    gate = re.search(r"^\s*-\s*\[[xX]\]\s*" + re.escape("Gate (1)") + r"\s*$", text, re.MULTILINE)
    assert scan.gate_ticked("Gate (1)") == bool(gate)
    outcomes = re.findall(r"^\s*-\s*\[([A-Za-z_]+)\]\s+(.+)$", text, re.MULTILINE)
    assert list(scan_conclusion(text, ()).outcomes) == [pair for pair in outcomes if pair[0] == "proceed"]
    heading = re.search(r"^##\s+text\s*$", text, re.MULTILINE)
    assert ("text" in {name for name, _ in headings(text)}) == bool(heading)


SIZE = 300_000


@pytest.mark.parametrize(
    "text",
    [
        "\n" * SIZE,
        " " * SIZE,
        "- [x] a\n" * (SIZE // 8),
        "- [x] a" + " " * SIZE + "b",
        "- [" + "a" * SIZE,
        "-" + "\n" * SIZE + "[",
        "## " + " " * SIZE + "x",
        "## a" + " " * SIZE + "b",
        "## " + "a - " * (SIZE // 4),
        "## " + "a - b - seq " * (SIZE // 12) + "1x",
        "#" * SIZE,
        "##\n" * (SIZE // 3),
        "- [blocking]\n" * (SIZE // 13),
        "- [bloquant] x\n" * (SIZE // 15),
        "a" + "\u0301\u0316" * (SIZE // 2),
        "Raison " + " " * SIZE,
        "### D1. x\n" * (SIZE // 10),
        "Status:" + " " * SIZE + "x",
        "\u2028" * SIZE,
        "\0" * SIZE,
    ],
    ids=range(20),
)
def test_a_hostile_document_costs_no_more_than_its_size(text: str) -> None:
    """With quadratic patterns any of these takes minutes; the suite would not come to its end."""
    scan_readiness(text).gate_ticked("a")
    scan_conclusion(text, CONCLUSION_V1)
    review_headings(text)
    scan_decisions(text)
    section_filled(text, "a")
    deliverable_status(text)
    has_label(text, "Position")


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_templates_mean_what_they_should(language: str) -> None:
    """A new folder is open, not ready, and has no heading, outcome or decision of its own yet."""
    values = {"objective": "O", "participants": "- `a`", "gates": "- G", "gate_checks": "- [ ] G"}
    text = {name: render(name, language, values) for name in DOCUMENTS}
    readiness = scan_readiness(text["readiness.md"])
    assert not readiness.clean
    assert not readiness.ready
    assert not readiness.gate_ticked("G")
    assert [tick.text for tick in readiness.ticks].count("G") == 1
    assert scan_readiness(text["readiness.md"].replace("- [ ]", "- [x]")).ready
    conclusion = scan_conclusion(text["conclusion.md"], CONCLUSION_V1)
    assert conclusion.missing == ()
    assert len(conclusion.outcomes) <= 1
    assert conclusion.placeholders
    assert review_headings(text["review.md"]) == ()
    assert all("{{" not in one for one in text.values())


def test_labels_of_a_review() -> None:
    assert has_label("Position:\n- x", "Position")
    assert has_label(f"Préoccupations{NBSP}:\n", "Concerns")
    assert has_label(unicodedata.normalize("NFD", "modifications requises :"), "Required Changes")
    assert has_label("懸念：", "Concerns")
    assert not has_label("Position", "Position")


def test_decisions() -> None:
    text = (
        "## Accepted\n\n### D1. First\n\n- Decision: a\n- Reflected in: `deliverables/x.md`\n### Second\n### D3 Third\n"
    )
    found = scan_decisions(text)
    assert [(one.id, one.title, one.line) for one in found] == [
        ("D1", "First", 3),
        (None, "Second", 7),
        (None, "D3 Third", 8),
    ]
    assert "- Reflected in:" in found[0].body


def test_sections() -> None:
    text = "# T\n\nStatus: In Review\n\n## A\n\nx\n\n## B\n\n  \n## C"
    assert section_filled(text, "A") is True
    assert section_filled(text, "B") is False
    assert section_filled(text, "C") is False
    assert section_filled(text, "D") is None
    assert deliverable_status(text) == "In Review"
    assert deliverable_status("status: Draft\nStatus: Done\n") is None
