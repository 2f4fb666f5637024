"""The words of documents in every language, from `catalog/vocabulary.json` (docs/specs/acp.md §4)."""

from __future__ import annotations

import json
import pkgutil
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

STATUSES = ("resolved", "deferred_nonblocking", "blocking", "unresolved")
INDENT = r"^[^\S\n]*"
_MARKED = re.compile("[^\u0300-\u036f\u3099\u309a][\u0300-\u036f\u3099\u309a]{1,8}")
OUTCOMES = ("proceed", "do_not_proceed", "defer", "blocked")


def nfc(text: str) -> str:
    """NFC as far as these words need it, in linear time: NFC of a long run of marks is quadratic."""
    return text if text.isascii() else _MARKED.sub(lambda match: unicodedata.normalize("NFC", match[0]), text)


def fold(text: str) -> str:
    """Composed, case-folded, every space an ordinary one: how localised words are compared."""
    return " ".join(nfc(nfc(text).casefold()).split())


def _alternatives(words: Iterable[str]) -> str:
    """A pattern for any of the words on composed text, spaces of any kind and number."""
    unique = sorted({unicodedata.normalize("NFC", word) for word in words}, key=lambda word: (-len(word), word))
    return "|".join(r"\s+".join(re.escape(part) for part in word.split()) for word in unique)


@dataclass(frozen=True)
class Vocabulary:
    """Compiled readers. English is read exactly as the reference does, other languages in any case."""

    status: dict[str, str]
    outcome: dict[str, str]
    heading: dict[str, str]
    status_line: re.Pattern[str]
    outcome_line: re.Pattern[str]
    reason: re.Pattern[str]
    ready: re.Pattern[str]
    placeholder: re.Pattern[str]
    review: dict[str, re.Pattern[str]]
    raw: dict[str, Any]

    def word(self, language: str, group: str, key: str) -> str:
        """The first spelling of a word in a language, for writing; English where that language has none.

        `key` does not matter for the groups that hold one word only (`reason`, `ready`).
        """
        for code in (language, "en"):
            words = self.raw["languages"].get(code, {}).get(group, {})
            found = words.get(key) if isinstance(words, dict) else words
            if found:
                return str(found[0])
        return key

    @property
    def languages(self) -> tuple[str, ...]:
        return tuple(self.raw["languages"])


@lru_cache(maxsize=1)
def vocabulary() -> Vocabulary:
    """The shipped vocabulary, compiled once a process."""
    data = pkgutil.get_data("catalog", "vocabulary.json")
    raw: dict[str, Any] = json.loads(data or b"{}")
    languages: dict[str, dict[str, Any]] = raw["languages"]
    status: dict[str, str] = {}
    outcome: dict[str, str] = {}
    heading: dict[str, str] = {}
    reasons: list[str] = []
    ready: list[str] = []
    words: list[str] = []
    anywhere: list[str] = []
    review: dict[str, list[str]] = {}
    for code, entry in languages.items():
        if code != "en":
            for table, group in ((status, "statuses"), (outcome, "outcomes"), (heading, "headings")):
                for key, spellings in entry[group].items():
                    table.update({fold(word): key for word in spellings})
            ready.extend(entry["ready"])
        reasons.extend(entry["reason"])
        words.extend(entry["placeholders"]["words"])
        anywhere.extend(entry["placeholders"]["anywhere"])
        for key, spellings in entry["review"].items():
            review.setdefault(key, []).extend(spellings)
    flags = re.MULTILINE | re.IGNORECASE
    return Vocabulary(
        status,
        outcome,
        heading,
        # A tag and its text stand on one line: what follows below is judged by its own tag.
        re.compile(rf"{INDENT}-\s*\[({_alternatives(status)})\][^\S\n]*(.*)$", flags),
        re.compile(rf"{INDENT}-\s*\[({_alternatives(outcome)})\][^\S\n]+(.+)$", flags),
        re.compile(rf"(?:{_alternatives(reasons)})\s*[:\uff1a]", re.IGNORECASE),
        re.compile(rf"{INDENT}-\s*\[[xX]\]\s*(?:{_alternatives(ready)})", flags),
        re.compile(rf"\b(?:{_alternatives(words)})\b|{_alternatives(anywhere)}", re.IGNORECASE),
        {key: re.compile(rf"(?:{_alternatives(spellings)})\s*[:\uff1a]", flags) for key, spellings in review.items()},
        raw,
    )


def say(language: str, phrase: str) -> str:
    """A phrase that we write into documents, in a language; English where that language has none."""
    return vocabulary().word(language, "phrases", phrase)
