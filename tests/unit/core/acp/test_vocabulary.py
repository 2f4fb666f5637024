"""The words of documents in every language (docs/specs/acp.md §4)."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.acp.model import CONCLUSION_V1, CONCLUSION_V2
from core.acp.vocabulary import OUTCOMES, STATUSES, fold, nfc, vocabulary

LANGUAGES = vocabulary().raw["languages"]
REVIEW = ("Context", "Position", "Concerns", "Required Changes", "Questions", "Review Scope")


@pytest.mark.parametrize("code", ["en", "fr", "ja", "it", "zh"])
def test_a_language_has_every_word(code: str) -> None:
    entry = LANGUAGES[code]
    assert set(entry["statuses"]) == set(STATUSES)
    assert set(entry["outcomes"]) == set(OUTCOMES)
    assert set(entry["headings"]) == {*CONCLUSION_V1, *CONCLUSION_V2}
    assert set(REVIEW) <= set(entry["review"])
    words = [
        word
        for group in ("statuses", "outcomes", "headings", "review")
        for spellings in entry[group].values()
        for word in spellings
    ]
    for word in (*words, *entry["ready"], *entry["reason"]):
        assert word == unicodedata.normalize("NFC", word).strip()
        assert word
    assert entry["reason"]
    assert entry["ready"]


@pytest.mark.parametrize("group", ["statuses", "outcomes", "headings"])
def test_no_word_means_two_things(group: str) -> None:
    meanings: dict[str, set[str]] = {}
    for entry in LANGUAGES.values():
        for key, spellings in entry[group].items():
            for word in spellings:
                meanings.setdefault(fold(word), set()).add(key)
    assert {word: keys for word, keys in meanings.items() if len(keys) > 1} == {}


def test_the_words_that_the_specification_lists() -> None:
    fr = LANGUAGES["fr"]
    assert set(fr["statuses"]["resolved"]) == {"résolu", "résolue"}
    assert set(fr["statuses"]["deferred_nonblocking"]) == {
        "différé_non_bloquant",
        "différée_non_bloquante",
        "différée_non_bloquant",
        "différé_non_bloquante",
    }
    assert set(fr["statuses"]["blocking"]) == {"bloquant", "bloquante"}
    assert set(fr["statuses"]["unresolved"]) == {"non_résolu", "non_résolue"}
    assert set(fr["outcomes"]["blocked"]) == {"bloqué", "bloquée"}
    found = [entry["placeholders"] for entry in LANGUAGES.values()]
    assert {word for one in found for word in one["words"]} == {"TBD", "TODO", "unresolved"}
    assert {word for one in found for word in one["anywhere"]} == {"待定", "未定", "à définir", "da definire"}


def test_folding() -> None:
    decomposed = unicodedata.normalize("NFD", "Prêt  à\u00a0Implémenter")
    assert fold(decomposed) == "prêt à implémenter"
    assert fold("STRASSE") == fold("straße")


CLUSTERS = st.tuples(
    st.sampled_from("eéàçocEフかab _[]\n漢"), st.text("\u0301\u0300\u0327\u0308\u3099\u309a", max_size=4)
)


@given(st.lists(CLUSTERS))
def test_composing_is_what_unicode_says(clusters: list[tuple[str, str]]) -> None:
    text = "".join(base + marks for base, marks in clusters)
    assert nfc(text) == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize("word", sorted({w for e in LANGUAGES.values() for s in e["statuses"].values() for w in s}))
def test_decomposed_words_come_back(word: str) -> None:
    assert nfc(unicodedata.normalize("NFD", word)) == unicodedata.normalize("NFC", word)


def test_writing_falls_back_to_english() -> None:
    words = vocabulary()
    assert words.word("fr", "statuses", "resolved") == "résolu"
    assert words.word("xx", "statuses", "resolved") == "resolved"
    assert words.word("fr", "headings", "No such heading") == "No such heading"
    assert set(words.languages) == {"en", "fr", "ja", "it", "zh"}
