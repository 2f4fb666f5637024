"""A folder in each language from init to completed by verbs; spellings of every kind (docs/specs/acp.md §4)."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest

from core.acp import compose
from core.acp.documents import scan_conclusion, scan_readiness
from core.acp.model import CONCLUSION_V1, CONCLUSION_V2, DOCUMENTS
from core.acp.templates import LANGUAGES
from core.acp.vocabulary import vocabulary
from tests.unit.tui.cli.conftest import Say

GATE = "Measured"
NBSP, NARROW = "\u00a0", "\u202f"


def events(folder: Path) -> list[str]:
    return [json.loads(line)["event"] for line in (folder / "events.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("schema", [1, 2])
@pytest.mark.parametrize("language", LANGUAGES)
def test_from_init_to_completed_by_verbs(tmp_path: Path, say: Say, language: str, schema: int) -> None:
    folder = tmp_path / "talk"

    def done(verb: str, *argv: str) -> None:
        said = say(verb, "--folder", str(folder), *argv)
        assert said.status == 0, said.err
        checked = say("validate", "--folder", str(folder))
        assert checked.status == 0, (verb, checked.out)

    people = ("--participant", "ana", "--participant", "bo")
    more = ("--primary-deliverable-type", "adr") if schema == 2 else ()
    done("init", *people, "--objective", "O", "--completion", GATE, "--language", language, *more)
    if schema == 2:
        adr = folder / "deliverables/adr.md"
        adr.write_text(adr.read_text().replace("\n\n## ", "\n\nAgreed.\n\n## ") + "\nAgreed.\n")
        drafted = ("--event", "deliverable_drafted", "--role", "primary", "--doc", "deliverables/adr.md")
        done("append", "--participant", "ana", *drafted, "--summary", "Drafted", "--reply-to", "1")
    done("submit", "--as", "ana")
    done("review", "--as", "bo", "--position", "Gut", "--concern", "Teuer")
    if schema == 2:
        decided = "- Decision: So.\n- Reflected in: `deliverables/adr.md`\n"
        (folder / "decisions.md").write_text(f"# D\n\n### D1. Eine Stunde\n\n{decided}")
    done("revise", "--as", "ana")
    done("classify", "--as", "ana", "--resolve", "Wer zahlt", "--defer", "Wie viel :: spaeter")
    done("accept", "--as", "bo")
    done("accept", "--as", "ana")
    if schema == 2:
        done("freeze", "--as", "ana")
    done("ready", "--as", "ana", "--tick-all")
    done("complete", "--as", "ana", "--outcome", "defer", "--rationale", "Passt", "--next", "ana baut")
    assert events(folder)[-1] == "completed"
    written = {name: (folder / name).read_text() for name in ("review.md", "readiness.md", "conclusion.md")}
    assert {compose.language_of(text) for text in written.values()} == {language}
    words = vocabulary()
    assert f"- [{words.word(language, 'outcomes', 'defer')}] Passt" in written["conclusion.md"]
    assert f"- [{words.word(language, 'statuses', 'resolved')}] Wer zahlt" in written["readiness.md"]
    headings = CONCLUSION_V2 if schema == 2 else CONCLUSION_V1
    assert all(f"\n## {words.word(language, 'headings', name)}\n" in written["conclusion.md"] for name in headings)
    if language != "en":
        ours = written["conclusion.md"] + written["review.md"].split(" seq 3\n" if schema == 1 else " seq 4\n")[-1]
        for english in ("None.", "Objective gates", "Read `", "As the accepted", "Proposal coherence"):
            assert english not in ours
    if schema == 2:
        digest = next(json.loads(one) for one in (folder / "events.jsonl").read_text().splitlines() if "sha256" in one)
        assert digest["sha256"] in written["readiness.md"]
        assert digest["sha256"] in written["conclusion.md"]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("schema", [1, 2])
def test_every_template_says_its_language(tmp_path: Path, say: Say, language: str, schema: int) -> None:
    more = ("--primary-deliverable-type", "adr") if schema == 2 else ()
    people = ("--participant", "ana", "--participant", "bo")
    said = say("init", "--folder", str(tmp_path / "t"), *people, "--objective", "O", "--completion", GATE,
               "--language", language, *more)  # fmt: skip
    assert said.status == 0, said.err
    for name in DOCUMENTS[1:]:
        text = (tmp_path / "t" / name).read_text()
        assert compose.language_of(text) == language, name
        assert "{{" not in text


STATUSES = [
    (language, key, spelling)
    for language, entry in vocabulary().raw["languages"].items()
    for key, spellings in entry["statuses"].items()
    for spelling in spellings
]
NOT_ENGLISH = [one for one in STATUSES if one[0] != "en"]


def forms(text: str) -> dict[str, str]:
    return {
        "as written": text,
        "upper case": text.upper(),
        "title case": text.title(),
        "composed": unicodedata.normalize("NFC", text),
        "decomposed": unicodedata.normalize("NFD", text),
    }


@pytest.mark.parametrize(("language", "key", "spelling"), NOT_ENGLISH, ids=[f"{a}-{c}" for a, _, c in NOT_ENGLISH])
@pytest.mark.parametrize("form", ["as written", "upper case", "title case", "composed", "decomposed"])
def test_a_status_in_every_gender_case_and_composition(language: str, key: str, spelling: str, form: str) -> None:
    reason = vocabulary().word(language, "reason", "Reason")
    scan = scan_readiness(f"  - [{forms(spelling)[form]}] Sizes. {forms(reason)[form]}{NBSP}: later\n")
    assert [item.status for item in scan.items] == [key]
    assert scan.without_reason == ()


@pytest.mark.parametrize("space", ["", " ", NBSP, NARROW], ids=["none", "ordinary", "no-break", "narrow no-break"])
@pytest.mark.parametrize("word", ["Raison", "RAISON", "raison", "Motivo", "理由", "原因", "Reason"])
def test_any_space_may_stand_before_a_colon(space: str, word: str) -> None:
    assert scan_readiness(f"- [différée_non_bloquante] Tailles. {word}{space}: plus tard\n").without_reason == ()
    assert scan_readiness(f"- [différée_non_bloquante] Tailles. {word}{space} plus tard\n").without_reason != ()


OUTCOMES = [
    (language, key, spelling)
    for language, entry in vocabulary().raw["languages"].items()
    for key, spellings in entry["outcomes"].items()
    for spelling in spellings
    if language != "en"
]


@pytest.mark.parametrize(("language", "key", "spelling"), OUTCOMES, ids=[f"{a}-{c}" for a, _, c in OUTCOMES])
@pytest.mark.parametrize("form", ["as written", "upper case", "decomposed"])
def test_an_outcome_in_every_spelling(language: str, key: str, spelling: str, form: str) -> None:
    assert [one for one, _ in scan_conclusion(f"- [{forms(spelling)[form]}] Oui\n", ()).outcomes] == [key]


def test_a_document_may_mix_languages() -> None:
    text = "- [resolved] A\n- [bloquante] B\n- [未解決] C\n- [rinviata_non_bloccante] D. Reason: x\n- [已解决] E\n"
    found = scan_readiness(text + "- [x] Pronto per l’implementazione\n")
    assert [item.status for item in found.items] == [
        "resolved", "blocking", "unresolved", "deferred_nonblocking", "resolved",
    ]  # fmt: skip
    assert found.ready
    headings = [
        vocabulary().word(("en", "fr", "ja", "it", "zh")[index % 5], "headings", name)
        for index, name in enumerate(CONCLUSION_V2)
    ]
    # Canonical English stands as the reference reads it; the others in any form.
    shouted = [one if one in CONCLUSION_V2 else unicodedata.normalize("NFD", one).upper() for one in headings[1:]]
    body = "\n".join(f"## {one}\n\nx\n" for one in shouted)
    assert scan_conclusion(f"## {headings[0]}\n\n- [推进] y\n\n{body}", CONCLUSION_V2).missing == ()


def test_an_unknown_language_writes_nothing(tmp_path: Path, say: Say) -> None:
    said = say("init", "--folder", str(tmp_path / "t"), "--participant", "a", "--objective", "O", "--completion", "G",
               "--language", "xx", "-ojson")  # fmt: skip
    assert (said.status, said.codes) == (2, ["language_unknown"])
    assert not (tmp_path / "t").exists()
