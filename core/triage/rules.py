"""From a signal to a code: normalised text, layer and catalogue decide, nothing else (docs/specs/governance.md §2)."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from core.files import sha256
from core.finding import Finding, Refused, error, errors, warning
from core.strict import at, fields, parse
from core.triage.model import CATALOG_ADAPTER, LAYER_CAP, Catalog, CatalogFile, Index, Observation, Report

FORBIDDEN_WORDS = (
    "NEEDS_ATTENTION",
    "BLOCKED",
    "browser_handler_timeout",
    "unknown_error",
    "generic_failure",
    "PASS",
    "FAIL",
)
MARKER = "_unclassified_"
CLASSIFY = "collab triage classify --receipt -"
CATALOG = "collab triage catalog"
_PREFIX = re.compile(r"[a-z0-9_]+")
_DIGITS = re.compile(r"[0-9a-f]{8}")
_DROPPED = re.compile(r"[^a-z0-9_]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_TELLING = ("error", "fail", "reject", "not accepted", "timeout", "404", "denied")
_FIELDS = ("active_failure_code", "failure_code", "code")
_CAUSE_CAP = 300
_RULES = (
    "catalog_code_duplicate",
    "catalog_code_forbidden",
    "catalog_code_minted_shape",
    "catalog_token_empty",
    "catalog_alias_not_minted",
    "catalog_alias_target_unknown",
    "catalog_alias_target_forbidden",
    "catalog_token_unreachable",
)


def clean(text: str) -> str:
    """Text that can be encoded: lone surrogates become U+FFFD."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def normalise(text: str) -> str:
    """Lower case, runs of white space one space, none at the ends. No case folding, no composition."""
    return " ".join(text.lower().split())


_FORBIDDEN = frozenset(normalise(word) for word in FORBIDDEN_WORDS)


def is_forbidden(text: str) -> bool:
    """Whether a text is exactly one of the words that name a verdict or nothing."""
    return normalise(text) in _FORBIDDEN


def is_minted(code: object) -> bool:
    """Whether a code has the shape of a minted one; nothing is looked up."""
    if not isinstance(code, str):
        return False
    prefix, marker, digits = code.rpartition(MARKER)
    return bool(marker) and _PREFIX.fullmatch(prefix) is not None and _DIGITS.fullmatch(digits) is not None


def is_legal(code: str, catalog: Catalog) -> bool:
    """Whether a decision may name this code: it is in the catalogue in use, or minted."""
    return code in catalog.by_code or is_minted(code)


def prefix(layer: str | None) -> str:
    """A layer as the beginning of a minted code: `project-watchdog` is `project_watchdog`."""
    words = normalise(layer or "").replace("-", " ").split()
    return _DROPPED.sub("", "_".join(words)).strip("_") or "unknown"


def mint(text: str, layer: str | None) -> str:
    """The code of a signal that no catalogue knows. The same signal and layer give the same code."""
    digest = sha256(normalise(clean(text)).encode("utf-8"))[:8]
    return f"{prefix(layer)}{MARKER}{digest}"


def classify(text: str, layer: str | None, catalog: Catalog) -> Report:
    """What a signal is. Raises Refused: `signal_empty`, `layer_too_long`, `signal_is_verdict`."""
    text, layer = clean(text), layer or None
    normalised = normalise(text)
    _askable(normalised, layer)
    return _explicit(text, layer, catalog) or _scan(normalised, layer, catalog) or _unknown(text, layer, catalog)


def _askable(normalised: str, layer: str | None) -> None:
    found = []
    again = CLASSIFY
    if layer is not None:
        again += f" --layer={shlex.quote(layer)}" if layer.startswith("-") else f" --layer {shlex.quote(layer)}"
        if len(layer) > LAYER_CAP:
            found.append(error("layer_too_long", f"a layer has at most {LAYER_CAP} characters", None, "--layer"))
            again = CLASSIFY
    if not normalised:
        cause = "the signal is empty; give the message of the failure with --text or --receipt"
        found.append(error("signal_empty", cause, again, "--text"))
    elif normalised in _FORBIDDEN:
        cause = f"{normalised!r} is a verdict, not a cause; give the signal behind it"
        found.append(error("signal_is_verdict", cause, again, None))
    if found:
        raise Refused(*found)


def _explicit(text: str, layer: str | None, catalog: Catalog) -> Report | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    named = _named_code(value) if isinstance(value, dict) else None
    if named is None:
        return None
    entry = catalog.by_code.get(named[1])
    if entry is None or (layer is not None and entry.layer != layer):
        return None
    return Report.of(entry, (f"{named[0]}:{named[1]}",))


def _named_code(value: Mapping[str, Any]) -> tuple[str, str] | None:
    """(field, code) that a receipt names: the first field that says anything, whether or not we know its code."""
    for name in _FIELDS:
        code = value.get(name)
        if isinstance(code, str) and code.strip():
            return name, code.strip()
    report = value.get("report")
    code = report.get("code") if isinstance(report, dict) else None
    return ("report.code", code.strip()) if isinstance(code, str) and code.strip() else None


def _scan(normalised: str, layer: str | None, catalog: Catalog) -> Report | None:
    index = catalog.index
    for number in index.matching(normalised):
        entry = catalog.entries[number]
        if layer is not None and entry.layer != layer:
            continue
        return Report.of(entry, (token for token in index.tokens[number] if token in normalised))
    return None


def _unknown(text: str, layer: str | None, catalog: Catalog) -> Report:
    code = mint(text, layer)
    target = catalog.by_code.get(catalog.aliases.get(code, ""))
    if target is not None:
        return Report.of(target, (f"alias:{code}",), code)
    return Report(code, layer, f"Unclassified signal: {telling(text)}", None, None, (), True, ())


def telling(text: str) -> str:
    """The first line that tells what went wrong, else the text."""
    for line in text.splitlines():
        lowered = line.lower()
        if any(word in lowered for word in _TELLING):
            return line.strip()[:_CAUSE_CAP]
    return text.strip()[:_CAUSE_CAP]


def code_of(text: str, layer: str | None, catalog: Catalog) -> str:
    """A legal code for any text whatever: what cannot be classified (blank, a verdict) is minted all the same."""
    try:
        return classify(text, layer, catalog).code
    except Refused:
        return mint(text, layer)


@lru_cache(maxsize=4)
def read_catalog(name: str, data: bytes) -> Catalog:
    """A catalogue from its bytes. Raises Refused with everything that is wrong with it."""
    parsed = parse(name, data)
    if parsed.object is None:
        raise Refused(*parsed.findings)
    return make_catalog(name, parsed.object)


def make_catalog(name: str, raw: Mapping[str, Any]) -> Catalog:
    """A catalogue from its document. Raises Refused with everything that is wrong with it."""
    # A missing schema is a wrong one.
    made, found = fields(CATALOG_ADAPTER, {**raw, "schema": raw.get("schema")}, name)
    if made is None:
        raise Refused(*found)
    found = catalog_findings(made, name)
    if errors(found):
        raise Refused(*errors(found))
    entries = tuple(made.codes)
    return Catalog(name, entries, made.aliases, raw, Index(entries), tuple(found))


def catalog_findings(made: CatalogFile, name: str) -> list[Finding]:
    """Rules across the fields of a catalogue in the order of the specification, then tokens that never match."""
    found: list[Finding] = []
    known: set[str] = set()
    for number, entry in enumerate(made.codes):
        found += [
            error(code, cause, None, at(name, ("codes", number, "code")))
            for code, cause in code_faults(entry.code, known)
        ]
        known.add(entry.code)
        found += token_findings(entry.match, partial(_token_place, name, number))
    for key, target in made.aliases.items():
        found += [
            error(code, cause, None, at(name, ("aliases", key))) for code, cause in alias_faults(key, target, known)
        ]
    return sorted(found, key=lambda item: _RULES.index(item.code))


def code_faults(code: str, known: Iterable[str]) -> list[tuple[str, str]]:
    """(code, cause) of what forbids a name to become an entry beside the known ones."""
    found = []
    if code in known:
        found.append(("catalog_code_duplicate", f"the catalogue has the code {code} already"))
    if is_forbidden(code):
        found.append(("catalog_code_forbidden", f"{code} is a verdict or says nothing; it can be no code"))
    if is_minted(code):
        found.append(("catalog_code_minted_shape", f"{code} has the shape of a minted code; give it a name"))
    return found


def alias_faults(key: str, target: str, known: Iterable[str]) -> list[tuple[str, str]]:
    """(code, cause) of what is wrong with an alias."""
    found = []
    if not is_minted(key):
        found.append(("catalog_alias_not_minted", f"{key} is no minted code; only those have aliases"))
    if is_forbidden(target):
        found.append(("catalog_alias_target_forbidden", f"{target} is a verdict or says nothing; it can be no target"))
    elif target not in known:
        found.append(("catalog_alias_target_unknown", f"{target} is no entry of the catalogue"))
    return found


def _token_place(name: str, entry: int, token: int) -> str:
    return at(name, ("codes", entry, "match", token))


def token_findings(tokens: Sequence[str], where: Callable[[int], str]) -> list[Finding]:
    """Tokens that would match everything (errors) and tokens that match nothing (warnings)."""
    found = []
    for number, token in enumerate(tokens):
        if not token.strip():
            cause = "a blank token would match every signal"
            found.append(error("catalog_token_empty", cause, None, where(number)))
        elif not reachable(token):
            cause = f"{token!r} never matches: white space other than single spaces is gone from a signal"
            found.append(warning("catalog_token_unreachable", cause, None, where(number)))
    return found


def reachable(token: str) -> bool:
    """Whether a token can occur in a normalised text at all, as far as white space goes."""
    lowered = token.lower()
    if lowered.isascii() and lowered.isprintable():
        return "  " not in lowered
    return "  " not in lowered and not any(char.isspace() and char != " " for char in lowered)


@dataclass(frozen=True, slots=True)
class Wish:
    """The entry that a minted code shall become."""

    code: str
    layer: str
    match: tuple[str, ...]
    cause: str
    next_command: str | None
    recoverable: bool = True
    not_this: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The entry, keys in the order of the specification."""
        return {
            "code": self.code,
            "layer": self.layer,
            "cause": self.cause,
            "match": list(self.match),
            "next_command": self.next_command,
            "recoverable": self.recoverable,
            "not_this": list(self.not_this),
        }


_FLAGS = (("code", "--code"), ("layer", "--layer"), ("cause", "--cause"), ("next_command", "--next-command"))


def wish_findings(wish: Wish, catalog: Catalog) -> list[Finding]:
    """What is wrong with the entry itself, by the flag that gave it."""
    found = []
    for name, flag in _FLAGS:
        value = getattr(wish, name)
        if value is not None and not value.strip():
            found.append(error("field_blank", f"{flag} must not be blank", None, flag))
    found += [error(code, cause, None, "--code") for code, cause in code_faults(wish.code, catalog.by_code)]
    found += token_findings(wish.match, lambda _: "--match")
    return found


def with_entry(catalog: Catalog, wish: Wish) -> dict[str, Any]:
    """The catalogue's document with one more entry at its end, so that nothing else changes class."""
    return {**catalog.raw, "codes": [*catalog.raw["codes"], wish.as_json()]}


def with_alias(catalog: Catalog, minted: str, target: str) -> dict[str, Any]:
    """The catalogue's document with one more alias."""
    return {**catalog.raw, "aliases": {**catalog.raw.get("aliases", {}), minted: target}}


def ineffective(sightings: Iterable[Observation], code: str, catalog: Catalog) -> Observation | None:
    """The first recorded sighting that would still not be this code, if there is one."""
    for item in sightings:
        try:
            if classify(item["signal"], item["layer"], catalog).code != code:
                return item
        except Refused:
            return item
    return None


def unresolved(minted: str, catalog: Catalog, resolved: bool) -> bool:
    """Whether a minted code still waits for a person."""
    return not resolved and minted not in catalog.aliases
