"""Which language a document, or a folder, is written in (docs/specs/acp.md §4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from core.acp.vocabulary import nfc, vocabulary

ENOUGH = 65536
"""Characters of a document that are looked at: its tags and labels begin early."""

TELLING = ("readiness.md", "conclusion.md", "review.md", "decisions.md", "proposal.md")
"""Documents in the order in which their words tell the most."""


def language_of(text: str) -> str:
    """The language whose tags and labels a document uses most; English when nothing tells."""
    return _told(text) or "en"


def folder_language(documents: Callable[[str], str], first: str = TELLING[0]) -> str:
    """The language that a folder is written in, judged by one document and then by the others, by their names."""
    told = (_told(documents(name)) for name in dict.fromkeys((first, *TELLING)))
    return next((found for found in told if found is not None), "en")


def _told(text: str) -> str | None:
    """The language whose tags and labels a document uses most, or None when it uses none."""
    words = vocabulary()
    composed = nfc(text[:ENOUGH]).casefold()
    english = _count(composed, _labels(words.raw["languages"]["en"], tags=False))
    best, most = ("en" if english else None), english
    for code in words.languages:
        entry = words.raw["languages"][code]
        if code == "en":
            continue
        known = _labels(entry, tags=True)
        found = _count(composed, (word for word in known if len(word) > 3 or code in ("ja", "zh")))
        if found > most:
            best, most = code, found
    return best


def _labels(entry: dict[str, dict[str, list[str]]], tags: bool) -> list[str]:
    """Headings, labels and the final tick of a language; `tags` adds statuses and outcomes."""
    groups = ("headings", "review", *(("statuses", "outcomes") if tags else ()))
    return [*(word for group in groups for words in entry[group].values() for word in words), *entry["ready"]]


def _count(text: str, words: Iterable[str]) -> int:
    return sum(text.count(word.casefold()) for word in words)
