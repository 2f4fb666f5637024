"""A folder in each language from init to completed by verbs; spellings of every kind (docs/specs/acp.md §4)."""

from __future__ import annotations

import json
import re
import shutil
import unicodedata
from pathlib import Path

import pytest

from core.acp import compose, rounds
from core.acp.documents import scan_conclusion, scan_readiness
from core.acp.model import CONCLUSION_V1, CONCLUSION_V2, DOCUMENTS
from core.acp.templates import LANGUAGES
from core.acp.vocabulary import vocabulary
from tests.unit.tui.cli.conftest import Say

GATE = "Measured"
PHRASES = vocabulary().raw["languages"]["en"]["phrases"]
"""What we write into documents and logs where nobody gave another text."""
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
    said = [json.loads(line)["summary"] for line in (folder / "events.jsonl").read_text().splitlines()]
    usual = {words.word(language, "phrases", one) for one in PHRASES}
    assert [one for one in said if one not in usual] == (["Gut"] if schema == 1 else ["Drafted", "Gut"])
    review = written["review.md"].split(f" seq {2 + schema}\n")[-1].replace("Primary deliverable completeness", "")
    for english in PHRASES:
        if words.word(language, "phrases", english) != english:
            assert not re.search(rf"(?<!\w){re.escape(english)}(?!\w)", written["conclusion.md"] + review), english
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
@pytest.mark.parametrize("form", ["as written", "upper case", "title case", "composed", "decomposed"])
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


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_phrase_is_said_in_every_language(language: str) -> None:
    entry = vocabulary().raw["languages"][language]["phrases"]
    assert set(entry) == set(PHRASES)
    same = {key for key, words in entry.items() if words[0] == key}
    assert same == (set(PHRASES) if language == "en" else {"Type", "Conclusion"} if language == "fr" else set())
    for key, words in entry.items():
        assert sorted(re.findall("[A-Z]{3,}", words[0])) == sorted(re.findall("[A-Z]{3,}", key)), key


@pytest.mark.parametrize("schema", [1, 2])
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_document_that_tells_no_language_is_written_in_the_folders_own(
    tmp_path: Path, say: Say, language: str, schema: int
) -> None:
    """Somebody emptied it; what the guided verbs put there is not English for that."""
    folder = tmp_path / "talk"
    words = vocabulary()

    def done(verb: str, *argv: str) -> None:
        said = say(verb, "--folder", str(folder), *argv)
        assert said.status == 0, said.err

    people = ("--participant", "ana", "--participant", "bo")
    more = ("--primary-deliverable-type", "adr") if schema == 2 else ()
    done("init", *people, "--objective", "O", "--completion", GATE, "--language", language, *more)
    if schema == 2:
        drafted = ("--event", "deliverable_drafted", "--role", "primary", "--doc", "deliverables/adr.md")
        done("append", "--participant", "ana", *drafted, "--summary", "Drafted", "--reply-to", "1")
    done("submit", "--as", "ana")
    (folder / "review.md").write_text("")
    done("review", "--as", "bo", "--position", "Gut")
    text = (folder / "review.md").read_text()
    assert words.word(language, "review", "Required Changes") in text
    assert words.word(language, "phrases", "None.") in text
    (folder / "readiness.md").write_text("")
    done("revise", "--as", "ana")
    done("classify", "--as", "ana", "--resolve", "Wer")
    status = words.word(language, "statuses", "resolved")
    assert f"- [{status}] Wer" in (folder / "readiness.md").read_text()


@pytest.mark.parametrize("language", LANGUAGES)
def test_missing_gates_and_a_blank_conclusion_are_written_in_the_folders_language(
    tmp_path: Path, say: Say, language: str
) -> None:
    folder = tmp_path / "talk"
    words = vocabulary()

    def done(verb: str, *argv: str) -> None:
        said = say(verb, "--folder", str(folder), *argv)
        assert said.status == 0, said.err

    people = ("--participant", "ana", "--participant", "bo")
    done("init", *people, "--objective", "O", "--completion", GATE, "--language", language)
    done("submit", "--as", "ana")
    done("review", "--as", "bo", "--position", "Gut")
    done("revise", "--as", "ana")
    (folder / "readiness.md").write_text(f"- [ ] {words.word(language, 'ready', '')}\n")
    done("classify", "--as", "ana")
    done("accept", "--as", "bo")
    done("accept", "--as", "ana")
    (folder / "conclusion.md").write_text("")
    done("ready", "--as", "ana", "--tick-all")
    assert (
        f"## {words.word(language, 'phrases', 'Completion Gates')}\n\n- [x] {GATE}"
        in (folder / "readiness.md").read_text()
    )
    done("complete", "--as", "ana", "--outcome", "proceed", "--rationale", "Passt", "--next", "bauen")
    text = (folder / "conclusion.md").read_text()
    assert text.startswith(f"# {words.word(language, 'phrases', 'Conclusion')}\n")
    assert words.word(language, "phrases", "None.") in text


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_new_round_goes_on_in_the_folders_language(tmp_path: Path, say: Say, language: str) -> None:
    folder, words = tmp_path / "talk", vocabulary()
    people = ("--participant", "ana", "--participant", "bo", "--language", language)
    assert say("init", "--folder", str(folder), *people, "--objective", "O", "--completion", GATE).status == 0
    assert say("block", "--folder", str(folder), "--as", "ana", "--reason", "Kein Platz").status == 0
    following = tmp_path / "next"
    assert say("new-round", "--from", str(folder), "--folder", str(following)).status == 0
    readme = (following / "README.md").read_text()
    assert f"## {words.word(language, 'phrases', 'Round')}\n" in readme
    assert f"- {words.word(language, 'phrases', 'Previous round')}" in readme
    assert f"`{folder}`" in readme
    assert compose.language_of((following / "conclusion.md").read_text()) == language
    # Without the sidecar the line of README.md tells, in whatever language it stands.
    shutil.rmtree(following / ".collab")
    assert rounds.chain(following) == [following, folder]
