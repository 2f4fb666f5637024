"""Ticks, headings, labels and placeholders in every spelling, case, composition and space (docs/specs/acp.md §4)."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Any

import pytest

from core.acp.documents import has_label, scan_conclusion, scan_readiness
from core.acp.model import CONCLUSION_V1, CONCLUSION_V2
from core.acp.vocabulary import vocabulary

LANGUAGES: dict[str, Any] = vocabulary().raw["languages"]
OTHERS = [code for code in LANGUAGES if code != "en"]
SPACES = {"ordinary": " ", "no-break": "\u00a0", "narrow no-break": "\u202f", "none": ""}
FORMS = ("as written", "upper case", "lower case", "title case", "composed", "decomposed", "no-break spaces")


def shaped(text: str, form: str) -> str:
    """A spelling as somebody's keyboard, shift key or file system may have made it."""
    match form:
        case "upper case":
            return text.upper()
        case "lower case":
            return text.lower()
        case "title case":
            return text.title()
        case "composed":
            return unicodedata.normalize("NFC", text)
        case "decomposed":
            return unicodedata.normalize("NFD", text)
        case "no-break spaces":
            return text.replace(" ", "\u00a0")
    return text


def spellings(group: str) -> Iterator[tuple[str, str, str]]:
    """(language, canonical word, spelling) of every language but English, which is read to the letter."""
    for code in OTHERS:
        for key, words in LANGUAGES[code][group].items():
            for word in words:
                yield code, key, word


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("language", OTHERS)
def test_the_final_tick_in_every_spelling(language: str, form: str) -> None:
    for word in LANGUAGES[language]["ready"]:
        assert scan_readiness(f"  - [x] {shaped(word, form)}\n").ready, word
        assert scan_readiness(f"- [X]{shaped(' ', form)}{shaped(word, form)}\n").ready, word
        assert not scan_readiness(f"- [ ] {shaped(word, form)}\n").ready, word


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("language", "key", "word"), [*spellings("headings")])
def test_a_heading_of_a_conclusion_in_every_spelling(language: str, key: str, word: str, form: str) -> None:
    assert scan_conclusion(f"##  {shaped(word, form)} \n\nx\n", (key,)).missing == ()
    assert scan_conclusion(f"### {shaped(word, form)}\n\nx\n", (key,)).missing == (key,)


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("language", OTHERS)
def test_a_label_of_a_review_in_every_spelling(language: str, form: str, space: str) -> None:
    for key, words in LANGUAGES[language]["review"].items():
        for word in words:
            for colon in (":", "\uff1a"):
                assert has_label(f"{shaped(word, form)}{space}{colon}\n- x\n", key), (word, colon)
            assert not has_label(f"{shaped(word, form)}{space}\n- x\n", key), word


WHOLE = [word for code in LANGUAGES for word in LANGUAGES[code]["placeholders"]["words"]]
ANYWHERE = [word for code in LANGUAGES for word in LANGUAGES[code]["placeholders"]["anywhere"]]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("word", WHOLE)
def test_a_placeholder_that_is_a_whole_word(word: str, form: str) -> None:
    for text in (shaped(word, form), f"({shaped(word, form)})", f"- {shaped(word, form)}: later"):
        assert scan_conclusion(f"{text}\n", ()).placeholders, text
    for text in (f"{shaped(word, form)}s", f"x{shaped(word, form)}", f"é{shaped(word, form)}"):
        assert not scan_conclusion(f"{text}\n", ()).placeholders, text


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("word", ANYWHERE)
def test_a_placeholder_anywhere(word: str, form: str) -> None:
    for text in (shaped(word, form), f"x{shaped(word, form)}x", f"。{shaped(word, form)}。"):
        assert scan_conclusion(f"{text}\n", ()).placeholders, text


@pytest.mark.parametrize("wanted", [CONCLUSION_V1, CONCLUSION_V2], ids=["v1", "v2"])
@pytest.mark.parametrize("language", OTHERS)
def test_a_heading_counts_once_whatever_its_language(language: str, wanted: tuple[str, ...]) -> None:
    """Twice the same heading, in two languages, is one; and one of them alone is enough."""
    words = {key: LANGUAGES[language]["headings"][key][0] for key in wanted}
    for key in wanted:
        mixed = "".join(f"## {name if name == key else words[name]}\n\nx\n\n" for name in wanted)
        assert scan_conclusion(mixed, wanted).missing == ()
        twice = mixed + f"## {words[key]}\n\nx\n"
        assert scan_conclusion(twice, wanted).missing == ()
        without = "".join(f"## {words[name]}\n\nx\n\n" for name in wanted if name != key)
        # One spelling may stand for two headings only in two languages, never in one.
        assert scan_conclusion(without, wanted).missing == (key,)


@pytest.mark.parametrize("second", list(LANGUAGES))
@pytest.mark.parametrize("first", list(LANGUAGES))
def test_each_line_is_judged_by_the_language_of_its_own_tag(first: str, second: str) -> None:
    """Tag and reason need not be of one language either."""
    for key in ("resolved", "blocking", "unresolved", "deferred_nonblocking"):
        lines = []
        for tagged, explained in ((first, second), (second, first)):
            tag, reason = LANGUAGES[tagged]["statuses"][key][-1], LANGUAGES[explained]["reason"][-1]
            lines.append(f"- [{tag}] Sizes. {reason} : later")
        scan = scan_readiness("\n".join(lines) + "\n")
        assert [item.status for item in scan.items] == [key, key]
        assert scan.without_reason == ()
    for key in ("proceed", "do_not_proceed", "defer", "blocked"):
        text = "".join(f"- [{LANGUAGES[code]['outcomes'][key][-1]}] x\n" for code in (first, second))
        # Two outcome lines are two, in whichever languages: a conclusion has exactly one.
        assert [one for one, _ in scan_conclusion(text, ()).outcomes] == [key, key]
