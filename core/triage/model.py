"""What is on disk in a failure vocabulary, and what a classification says (docs/specs/governance.md §2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Final, Literal, NotRequired

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from core.finding import Finding
from core.strict import NonBlank

CATALOG_SCHEMA: Final = "triage_error.catalog.v1"
OBSERVATION_SCHEMA: Final = "collab.triage_observation.v1"
RESOLUTION_SCHEMA: Final = "collab.triage_resolution.v1"
SIDE_EFFECTS: Final = ("ticket", "eval_case", "memory")
LAYER_CAP: Final = 80
SIGNAL_CAP: Final = 4000


def _schema(value: object) -> str:
    if value != CATALOG_SCHEMA:
        raise PydanticCustomError("catalog_schema_wrong", "must be triage_error.catalog.v1")
    return CATALOG_SCHEMA


class Entry(BaseModel):
    """One code of a catalogue. Without `match` tokens it is reached by explicit code or alias only."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    code: NonBlank
    layer: NonBlank
    cause: NonBlank
    match: list[str]
    next_command: NonBlank | None
    recoverable: bool
    not_this: list[str]


class CatalogFile(BaseModel):
    """A catalogue as it is written; rules beyond its fields are `rules.catalog_findings`."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    schema_: Annotated[Any, AfterValidator(_schema)] = Field(alias="schema")
    note: str = ""
    codes: list[Entry]
    aliases: dict[str, str] = {}


class Observation(TypedDict):
    """One line of observations.jsonl: a signal that somebody met. Further fields are kept.

    A plain dictionary, because a workspace may have a hundred thousand of them.
    """

    __pydantic_config__ = ConfigDict(strict=True, extra="allow")  # type: ignore[misc]

    schema: Literal["collab.triage_observation.v1"]
    at: str
    by: NotRequired[str | None]
    code: str
    minted: str | None
    layer: str | None
    signal: str


class Resolution(BaseModel):
    """How a minted code was settled: promoted to an entry, or an alias of one."""

    model_config = ConfigDict(strict=True, frozen=True, extra="allow")

    schema_: Literal["collab.triage_resolution.v1"] = Field(alias="schema")
    code: str
    action: Literal["promoted", "aliased"]
    target: str
    by: str | None = None
    at: str


CATALOG_ADAPTER: TypeAdapter[CatalogFile] = TypeAdapter(CatalogFile)
OBSERVATION_ADAPTER: TypeAdapter[Observation] = TypeAdapter(Observation)
OBSERVATIONS_ADAPTER: TypeAdapter[list[Observation]] = TypeAdapter(list[Observation])
RESOLUTION_ADAPTER: TypeAdapter[Resolution] = TypeAdapter(Resolution)

_GRAM = 4
Numbers = list[int]


class Index:
    """Which entries match a text, without a look at every token of a large catalogue.

    A token of at least `_GRAM` characters is looked up by its first ones, then by its length; shorter tokens are
    looked for one by one.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.tokens = tuple(tuple(token.lower() for token in entry.match) for entry in entries)
        self._short: dict[str, Numbers] = {}
        self._long: dict[str, dict[int, dict[str, Numbers]]] = {}
        for number, tokens in enumerate(self.tokens):
            for token in tokens:
                if len(token) < _GRAM:
                    self._short.setdefault(token, []).append(number)
                else:
                    same = self._long.setdefault(token[:_GRAM], {}).setdefault(len(token), {})
                    same.setdefault(token, []).append(number)

    def matching(self, text: str) -> Numbers:
        """Numbers of the entries with a token inside a normalised text, in file order."""
        found = {number for token, numbers in self._short.items() if token in text for number in numbers}
        for at in range(len(text) - _GRAM + 1):
            lengths = self._long.get(text[at : at + _GRAM])
            if lengths is not None:
                for length, same in lengths.items():
                    found.update(same.get(text[at : at + length], ()))
        return sorted(found)


@dataclass(frozen=True)
class Catalog:
    """A valid catalogue in use. `name` is how findings call it, `raw` the document as it was written."""

    name: str
    entries: tuple[Entry, ...]
    aliases: Mapping[str, str]
    raw: Mapping[str, Any] = field(repr=False)
    index: Index = field(repr=False)
    warnings: tuple[Finding, ...] = ()

    @cached_property
    def by_code(self) -> Mapping[str, Entry]:
        return {entry.code: entry for entry in self.entries}


@dataclass(frozen=True, slots=True)
class Report:
    """What a signal is: an entry of the catalogue, or a minted code (`ambiguous`)."""

    code: str
    layer: str | None
    cause: str
    next_command: str | None
    recoverable: bool | None
    not_this: tuple[str, ...]
    ambiguous: bool
    matched_tokens: tuple[str, ...]
    aliased_from: str | None = None

    @property
    def minted(self) -> str | None:
        """The minted code of this signal, also when it is an alias of an entry."""
        return self.code if self.ambiguous else self.aliased_from

    @classmethod
    def of(cls, entry: Entry, tokens: Iterable[str], aliased_from: str | None = None) -> Report:
        return cls(
            entry.code,
            entry.layer,
            entry.cause,
            entry.next_command,
            entry.recoverable,
            tuple(entry.not_this),
            False,
            tuple(tokens),
            aliased_from,
        )

    def as_json(self) -> dict[str, Any]:
        """Exactly the keys of a classification; `aliased_from` only where there is one."""
        made: dict[str, Any] = {
            "code": self.code,
            "layer": self.layer,
            "cause": self.cause,
            "next_command": self.next_command,
            "recoverable": self.recoverable,
            "not_this": list(self.not_this),
            "ambiguous": self.ambiguous,
            "matched_tokens": list(self.matched_tokens),
        }
        return made if self.aliased_from is None else {**made, "aliased_from": self.aliased_from}


Status = Literal["recurring", "new", "promoted", "aliased"]
STATUSES: Final[tuple[Status, ...]] = ("recurring", "new", "promoted", "aliased")


@dataclass(frozen=True, slots=True)
class Seen:
    """A minted code and its sightings. `target` is what it was promoted to or is an alias of."""

    code: str
    layer: str | None
    status: Status
    sightings: int
    first_seen: str
    last_seen: str
    target: str | None
    signal: str = ""
    by: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "layer": self.layer,
            "status": self.status,
            "sightings": self.sightings,
            "first_seen": self.first_seen,
            "last_seen": self.last_seen,
            "target": self.target,
        }
