"""The failure vocabulary of a workspace: catalogue, observations, what was settled (docs/specs/governance.md §2).

Everything is written under one lock, `<root>/triage/.lock`. A promotion or alias changes two files, the catalogue and
`resolution.json`; what a killed writer left between them is settled by the next one.
"""

from __future__ import annotations

import json
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from core import journal
from core.clock import SYSTEM, Clock, parse, stamp
from core.files import LINE_CAP, Root, sha256
from core.finding import Finding, Refused, error, errors, warning
from core.governance import boundary
from core.governance.boundary import Receipt
from core.lock import folder_lock
from core.strict import CAP, bounded, read
from core.triage import rules
from core.triage.model import (
    OBSERVATION_ADAPTER,
    OBSERVATION_SCHEMA,
    OBSERVATIONS_ADAPTER,
    RESOLUTION_ADAPTER,
    RESOLUTION_SCHEMA,
    SIDE_EFFECTS,
    SIGNAL_CAP,
    Catalog,
    Observation,
    Report,
    Resolution,
)
from core.triage.rules import Wish

TRIAGE = "triage"
CODES = f"{TRIAGE}/failure_codes.json"
OBSERVATIONS = f"{TRIAGE}/observations.jsonl"
LOCK = f"{TRIAGE}/.lock"
SCRATCH = f"{TRIAGE}/.tmp"
PENDING = f"{TRIAGE}/.pending.json"
SHIPPED = "catalog/failure_codes.json"
RESOLUTION = "resolution.json"


@dataclass(frozen=True, slots=True)
class Place:
    """A workspace and the catalogue that the caller named, if any. `data` is set when it came by standard input."""

    root: Path
    catalog: str | None = None
    data: bytes | None = None

    def load(self) -> Catalog:
        """The catalogue in use: the named one, else the workspace's, else the shipped one. Raises Refused."""
        if self.catalog is not None:
            return rules.read_catalog(self.catalog, self.data if self.data is not None else read(self.catalog))
        found = workspace_catalog(self.root)
        return rules.read_catalog(str(self.root / CODES), found) if found is not None else shipped()

    def target(self) -> Path:
        """The file that a promotion rewrites. Raises Refused for standard input."""
        if self.data is not None:
            cause = "the catalogue came by standard input; name a file that can be rewritten"
            raise Refused(error("usage_wrong", cause, None, "--catalog"))
        return Path(self.catalog) if self.catalog is not None else self.root / CODES


@lru_cache(maxsize=1)
def shipped() -> Catalog:
    """The product's own catalogue."""
    data = pkgutil.get_data("catalog", "failure_codes.json")
    if data is None:
        raise Refused(error("file_unreadable", f"{SHIPPED} is missing from this installation", None, SHIPPED))
    return rules.read_catalog(SHIPPED, data)


def workspace_catalog(root: Path) -> bytes | None:
    """The bytes of the workspace's own catalogue, or None when it has none. Raises Refused."""
    with Root(root) as folder:
        content = folder.read(CODES, CAP)
    if content.problem is None or content.missing:
        return content.data
    name = str(root / CODES)
    code = "file_too_large" if content.problem.code == "file_too_large" else "file_unreadable"
    raise Refused(error(code, content.problem.cause, None, name))


# The adapter's own method costs as much again as the validation, a hundred thousand times.
_VALIDATE: Callable[[bytes], Observation] = OBSERVATION_ADAPTER.validator.validate_json
_VALIDATE_ALL: Callable[[bytes], list[Observation]] = OBSERVATIONS_ADAPTER.validator.validate_json
_TWO_OBJECTS = re.compile(rb"\}\s*,\s*\{")


class Line(NamedTuple):
    """A line of observations.jsonl; `observation` is None when it is damaged."""

    number: int
    observation: Observation | None


def read_line(number: int, raw: bytes) -> Line:
    """One line as an observation."""
    try:
        return Line(number, _VALIDATE(raw))
    except (ValidationError, ValueError, RecursionError):
        return Line(number, None)


def _chunks(root: Root) -> Iterator[bytes]:
    """The observations in pieces of whole lines; an unfinished last one counts, as the next writer will end it."""
    if not root.exists(OBSERVATIONS):
        return
    rest = b""
    try:
        for piece in root.pieces(OBSERVATIONS, 0):
            whole, newline, rest_of = (rest + piece).rpartition(b"\n")
            # A line without an end is damaged whatever it holds; carrying all of it costs its length squared.
            rest = rest_of[: LINE_CAP + 1]
            if newline:
                yield whole
    except OSError as exc:
        raise Refused(root.explain(exc, OBSERVATIONS)) from None
    if rest:
        yield rest


def lines(root: Path) -> list[Line]:
    """Every line of a workspace's observations. Raises Refused when the file cannot be read."""
    found: list[Line] = []
    number = 1
    with Root(root) as folder:
        for chunk in _chunks(folder):
            raws = chunk.split(b"\n")
            found += _read_lines(chunk, [(at, raw) for at, raw in enumerate(raws, number) if raw.strip()])
            number += len(raws)
    return found


def _read_lines(chunk: bytes, raws: list[tuple[int, bytes]]) -> list[Line]:
    """The lines of a chunk: all at once when each is a whole observation by itself, else one by one."""
    # Without two objects on a line, as many objects as lines can only mean one on each.
    if not _TWO_OBJECTS.search(chunk):
        try:
            made = _VALIDATE_ALL(b"[" + b",".join(raw for _, raw in raws) + b"]")
        except (ValidationError, ValueError, RecursionError):
            made = []
        if len(made) == len(raws):
            return [Line(at, item) for (at, _), item in zip(raws, made, strict=True)]
    return [read_line(at, raw) for at, raw in raws]


def _lines_with(chunk: bytes, words: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a chunk that hold one of the words, in order."""
    starts = set()
    for word in words:
        at = chunk.find(word)
        while at >= 0:
            starts.add(chunk.rfind(b"\n", 0, at) + 1)
            end = chunk.find(b"\n", at)
            at = chunk.find(word, end) if end >= 0 else -1
    for start in sorted(starts):
        end = chunk.find(b"\n", start)
        yield chunk[start : end if end >= 0 else len(chunk)]


def sightings(root: Root, code: str, minted: bool) -> list[Observation]:
    """The recorded sightings of a minted code, or of a catalogue code.

    A code that could be written in more than one way makes every line worth reading, an escape its own line.
    """
    plain = code.isascii() and code.isprintable() and not set('"\\/') & set(code)
    found = []
    for chunk in _chunks(root):
        for raw in _lines_with(chunk, (code.encode("ascii"), b"\\u")) if plain else chunk.split(b"\n"):
            item = read_line(0, raw).observation
            if item is not None and (item["minted"] if minted else item["code"]) == code:
                found.append(item)
    return found


def recorded_code(root: Path, signal: str, layer: str, by: str | None, at: str) -> str | None:
    """The code that a signal had when it was observed by somebody at that moment, or None when it was not."""
    kept = rules.clean(signal)[:SIGNAL_CAP]
    wanted = (layer, by, at, kept)
    with Root(root) as folder:
        for chunk in _chunks(folder):
            for raw in _lines_with(chunk, (at.encode("utf-8"), b"\\u")):
                item = read_line(0, raw).observation
                if item is not None and (item["layer"], item.get("by"), item["at"], item["signal"]) == wanted:
                    return item["code"]
    return None


def resolution(root: Root, minted: str) -> Resolution | None:
    """How a minted code was settled, or None."""
    data = root.read(f"{TRIAGE}/{minted}/{RESOLUTION}", CAP).data
    try:
        return RESOLUTION_ADAPTER.validate_json(data) if data is not None else None
    except (ValidationError, ValueError, RecursionError):
        return None


def resolutions(root: Path, codes: list[str]) -> dict[str, Resolution]:
    """The settled ones among some minted codes."""
    with Root(root) as folder:
        found = ((code, resolution(folder, code)) for code in codes)
        return {code: item for code, item in found if item is not None}


@contextmanager
def _locked(root: Path) -> Iterator[Root]:
    """The workspace's folder with the triage lock held and a killed writer's work settled."""
    with Root(root, SCRATCH) as folder, folder_lock(folder, LOCK):
        folder.sweep(locked=True)
        _settle(folder)
        yield folder


def _encode(document: Mapping[str, Any]) -> bytes:
    """A document as it is kept: indent 2, non-ASCII kept, final newline."""
    text = json.dumps(document, ensure_ascii=False, indent=2) + "\n"
    return text.encode("utf-8", "backslashreplace")


@dataclass(frozen=True, slots=True)
class Observed:
    """What an observation changed. `warnings` say what could not be left behind; it is recorded all the same."""

    report: Report
    sightings: int
    recurrence: bool
    side_effects: Mapping[str, str]
    created: tuple[str, ...]
    warnings: tuple[Finding, ...] = ()


def observe(place: Place, text: str, layer: str | None, by: str | None, clock: Clock = SYSTEM) -> Observed:
    """Classify a signal and record that it was met. Raises Refused; then nothing is recorded."""
    layer = layer or None
    with _locked(place.root) as root:
        catalog = place.load()
        report = rules.classify(text, layer, catalog)
        minted = report.minted
        record = {
            "schema": OBSERVATION_SCHEMA,
            "at": stamp(clock.now()),
            "by": by,
            "code": report.code,
            "minted": minted,
            "layer": layer,
            "signal": rules.clean(text)[:SIGNAL_CAP],
        }
        root.append(OBSERVATIONS, journal.encode(record), own_line=True)
        seen = sightings(root, minted or report.code, minted is not None)
        open_ = report.ambiguous and resolution(root, report.code) is None
        if not open_:
            return Observed(report, len(seen), False, {}, ())
        created = [
            name for name in SIDE_EFFECTS if root.create(_side_effect(report.code, name), _record(name, seen[0]))
        ]
        paths = {name: str(place.root / _side_effect(report.code, name)) for name in SIDE_EFFECTS}
    trouble = _leave_receipt(place.root, seen[0])
    return Observed(report, len(seen), len(seen) > 1, paths, tuple(created), trouble)


def receipts(observations: Iterable[Observation]) -> list[Receipt]:
    """The receipts that minted codes must have left, from the first sighting of each (docs/design.md §4)."""
    first: dict[str, Observation] = {}
    for item in observations:
        if item["minted"] is not None and item["minted"] == item["code"]:
            first.setdefault(item["minted"], item)
    moments = ((code, item, parse(item["at"])) for code, item in first.items())
    return [
        boundary.triage(code, item["layer"], item["signal"], emitted_at=stamp(moment))
        for code, item, moment in moments
        if moment is not None and rules.is_minted(code)
    ]


def _leave_receipt(root: Path, first: Observation) -> tuple[Finding, ...]:
    try:
        lacking = boundary.missing(root, receipts([first]))
        if lacking:
            boundary.write(root, lacking)
    except Refused as exc:
        return tuple(
            warning(item.code, f"the receipt was not written: {item.cause}", item.next_command, item.where)
            for item in exc.findings
        )
    return ()


def _side_effect(code: str, name: str) -> str:
    return f"{TRIAGE}/{code}/{name}.json"


def _record(name: str, first: Observation) -> bytes:
    """What is handed on once about an unknown signal: the ticket, the evaluation case, the thing to remember."""
    made: dict[str, Any] = {"schema": f"collab.triage_{name}.v1", "code": first["code"], "layer": first["layer"]}
    made |= {"at": first["at"], "by": first.get("by"), "signal": first["signal"]}
    if name == "ticket":
        made["title"] = f"Unclassified failure {first['code']}"
        made["next_command"] = f"collab triage promote {first['code']}"
    elif name == "eval_case":
        made["expected"] = {"code": first["code"], "ambiguous": True}
    else:
        made["resolution"] = f"{TRIAGE}/{first['code']}/{RESOLUTION}"
    return _encode(made)


@dataclass(frozen=True, slots=True)
class Settled:
    """A minted code that was promoted or aliased; `catalog` is the rewritten file, as the caller can name it."""

    minted: str
    target: str
    changed: bool
    catalog: str
    warnings: tuple[Finding, ...] = ()


def malformed(minted: str) -> list[Finding]:
    """Why a text is no minted code."""
    if rules.is_minted(minted):
        return []
    cause = f"{minted} is no minted code; those end with {rules.MARKER} and 8 hex digits"
    return [error("minted_code_malformed", cause, "collab triage list")]


def _resolved(minted: str, how: str, target: str) -> Finding:
    return error("minted_code_resolved", f"{minted} is {how} already: {target}", "collab triage list")


def promote(place: Place, minted: str, wish: Wish, by: str | None, clock: Clock = SYSTEM) -> Settled:
    """Give a minted code a name and an entry, the catalogue's last. Raises Refused; then nothing changes."""
    target = place.target()
    if found := malformed(minted):
        raise Refused(*found)
    with _locked(place.root) as root:
        document, found = _promotion(root, place.load(), minted, wish)
        _resolve(root, target, document, minted, "promoted", wish.code, by, clock)
    return Settled(minted, wish.code, True, str(target), tuple(found))


def check_promotion(place: Place, minted: str, wish: Wish) -> Settled:
    """What `promote` would do now, for a preview. Raises Refused; writes nothing."""
    target = place.target()
    if found := malformed(minted):
        raise Refused(*found)
    with Root(place.root) as root:
        _, found = _promotion(root, place.load(), minted, wish)
    return Settled(minted, wish.code, True, str(target), tuple(found))


def _promotion(root: Root, catalog: Catalog, minted: str, wish: Wish) -> tuple[dict[str, Any], list[Finding]]:
    """(the catalogue with its new entry, warnings). Raises Refused with every reason against it."""
    found: list[Finding] = []
    seen = sightings(root, minted, True)
    done = resolution(root, minted)
    if done is not None:
        found.append(_resolved(minted, done.action, done.target))
    elif minted in catalog.aliases:
        found.append(_resolved(minted, "aliased", catalog.aliases[minted]))
    elif not seen:
        found.append(error("minted_code_unobserved", f"{minted} was never observed here", "collab triage list"))
    found += rules.wish_findings(wish, catalog)
    if errors(found):
        raise Refused(*errors(found))
    document = rules.with_entry(catalog, wish)
    missed = rules.ineffective(seen, wish.code, rules.make_catalog(catalog.name, document))
    if missed is not None:
        cause = f"a recorded sighting would still not be {wish.code}: {missed['signal'][:200]!r}; alias it instead"
        raise Refused(error("promotion_not_effective", cause, rules.CATALOG))
    return document, found


def alias(place: Place, minted: str, code: str, by: str | None, clock: Clock = SYSTEM) -> Settled:
    """Make a minted code mean an entry of the catalogue in use. Raises Refused; again the same changes nothing."""
    target = place.target()
    found = malformed(minted)
    if found:
        raise Refused(*found)
    with _locked(place.root) as root:
        catalog = place.load()
        found += [
            error(fault, cause, rules.CATALOG) for fault, cause in rules.alias_faults(minted, code, catalog.by_code)
        ]
        known, done = catalog.aliases.get(minted), resolution(root, minted)
        if known == code and not found:
            return Settled(minted, code, False, str(target))
        if known is not None and known != code:
            found.append(_resolved(minted, "aliased", known))
        elif done is not None and (done.action, done.target) != ("aliased", code):
            found.append(_resolved(minted, done.action, done.target))
        if found:
            raise Refused(*found)
        document = rules.with_alias(catalog, minted, code)
        rules.make_catalog(catalog.name, document)
        _resolve(root, target, document, minted, "aliased", code, by, clock)
    return Settled(minted, code, True, str(target))


def _resolve(
    root: Root,
    catalog: Path,
    document: Mapping[str, Any],
    minted: str,
    action: str,
    target: str,
    by: str | None,
    clock: Clock,
) -> None:
    """Write the catalogue, then the resolution; an intent says what must follow if this is interrupted."""
    data = bounded(str(catalog), _encode(document))
    record = {
        "schema": RESOLUTION_SCHEMA,
        "code": minted,
        "action": action,
        "target": target,
        "by": by,
        "at": stamp(clock.now()),
    }
    intent = {"catalog": str(catalog.absolute()), "after": sha256(data), "resolution": record}
    root.replace(PENDING, _encode(intent))
    if catalog == root.path / CODES:
        root.replace(CODES, data)
    else:
        with Root(catalog.parent, ".") as folder:
            folder.replace(catalog.name, data)
    root.replace(f"{TRIAGE}/{minted}/{RESOLUTION}", _encode(record))
    root.remove(PENDING)


def _settle(root: Root) -> None:
    """Finish what a killed writer began, if its catalogue was written; else it never happened."""
    data = root.read(PENDING, CAP).data
    if data is None:
        return
    try:
        intent = json.loads(data)
        record, catalog, after = intent["resolution"], intent["catalog"], intent["after"]
        done = RESOLUTION_ADAPTER.validate_python(record)
        written = sha256(read(catalog)) == after
    except (ValueError, RecursionError, KeyError, TypeError, ValidationError, Refused):
        root.remove(PENDING)
        return
    if written and rules.is_minted(done.code):
        root.create(f"{TRIAGE}/{done.code}/{RESOLUTION}", _encode(record))
    root.remove(PENDING)
