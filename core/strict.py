"""Strict JSON documents (docs/specs/governance.md §1): what decides is read to the letter, and every fault is named.

A document is UTF-8 JSON holding one object, without repeated keys, NaN, infinity or nesting beyond 200. Its fields
are checked against a pydantic model; `where` of each finding is the file as given, `#` and a JSON pointer.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, Field, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from core.files import open_named
from core.finding import Finding, Refused, error
from core.journal import too_deep

CAP = 8 * 1024 * 1024
_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_SURROGATE = re.compile("[\ud800-\udfff]")

Model = TypeVar("Model", bound=BaseModel)


def non_blank(text: str) -> str:
    """A text that says something, else `field_blank`; a lone surrogate is no text at all."""
    if not text.strip():
        raise PydanticCustomError("field_blank", "must not be blank")
    if _SURROGATE.search(text):
        raise PydanticCustomError("field_invalid", "holds a lone surrogate")
    return text


def _hash(text: str) -> str:
    if _HASH.fullmatch(text) is None:
        raise PydanticCustomError("hash_malformed", "must be sha256: and 64 hex digits")
    return text


NonBlank = Annotated[str, AfterValidator(non_blank)]
"""Not only white space."""
Text = Annotated[str, Field(min_length=1)]
"""At least one character; a space is one."""
Hash = Annotated[str, AfterValidator(_hash)]
"""`sha256:` and 64 of `0-9a-f`."""


def is_hash(value: object) -> bool:
    """Whether a value is a hash string."""
    return isinstance(value, str) and _HASH.fullmatch(value) is not None


class _Repeated(dict[str, Any]):
    """An object that named some of its keys twice; the last value of each is kept."""

    keys_twice: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Parsed:
    """Result of `parse`: the value as far as it could be read, and what is wrong with the document."""

    value: Any
    findings: tuple[Finding, ...]

    @property
    def object(self) -> dict[str, Any] | None:
        """The document, or None when anything is wrong with it."""
        return self.value if not self.findings and isinstance(self.value, dict) else None


def read(name: str, cap: int = CAP) -> bytes:
    """The bytes of a file that the caller named. Raises Refused (`file_unreadable`, `file_too_large`)."""
    try:
        with open_named(name) as handle:
            data = handle.read(cap + 1)
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
        raise Refused(error("file_unreadable", f"{name} cannot be read: {reason}", None, name)) from None
    return bounded(name, data, cap)


def bounded(name: str, data: bytes, cap: int = CAP) -> bytes:
    """The bytes, if there are not too many. Raises Refused (`file_too_large`)."""
    if len(data) > cap:
        raise Refused(error("file_too_large", f"{name} has more bytes than the {cap} that are read", None, name))
    return data


def pointer(steps: Sequence[str | int]) -> str:
    """A JSON pointer (RFC 6901)."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def at(name: str, steps: Sequence[str | int] = ()) -> str:
    """Where a finding is: the document's name, `#`, a JSON pointer."""
    return f"{name}#{pointer(steps)}"


def parse(name: str, data: bytes) -> Parsed:
    """The JSON object in a document; all repeated keys and all numbers that are none are reported."""
    if len(data) > CAP:
        return Parsed(
            None, (error("file_too_large", f"{name} has more bytes than the {CAP} that are read", None, name),)
        )
    if too_deep(data):
        return Parsed(None, (error("json_too_deep", f"{name} nests deeper than 200", None, at(name)),))
    try:
        value, odd = loads(data.decode("utf-8"))
    except UnicodeDecodeError:
        return Parsed(None, (error("json_malformed", f"{name} is not JSON: it is not UTF-8", None, at(name)),))
    except RecursionError:
        return Parsed(None, (error("json_too_deep", f"{name} nests too deeply", None, at(name)),))
    except ValueError as exc:
        reason = str(exc).splitlines()[0][:120]
        return Parsed(None, (error("json_malformed", f"{name} is not JSON: {reason}", None, at(name)),))
    found = list(_odd(name, value, ())) if odd else []
    if not isinstance(value, dict):
        found.insert(0, error("json_not_object", f"{name} must hold a JSON object", None, at(name)))
    return Parsed(value, tuple(found))


def loads(text: str, constants: bool = True) -> tuple[Any, bool]:
    """(value, whether it repeats a key or holds a number that is not finite). Raises ValueError, RecursionError.

    Without `constants` the words NaN and Infinity are no JSON.
    """
    odd = False

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal odd
        made = dict(items)
        if len(made) == len(items):
            return made
        odd = True
        repeated = _Repeated(made)
        counted = Counter(key for key, _ in items)
        repeated.keys_twice = tuple(key for key in made if counted[key] > 1)
        return repeated

    def number(text: str) -> float:
        nonlocal odd
        value = float(text)
        odd = odd or not math.isfinite(value)
        return value

    def constant(text: str) -> float:
        nonlocal odd
        if not constants:
            raise ValueError(f"{text} is no JSON")
        odd = True
        return float(text)

    value = json.loads(text, object_pairs_hook=pairs, parse_float=number, parse_constant=constant)
    return value, odd


def _odd(name: str, value: Any, steps: tuple[str | int, ...]) -> Iterator[Finding]:
    """Every repeated key and every number that is not finite, outermost first."""
    if isinstance(value, dict):
        if isinstance(value, _Repeated):
            for key in value.keys_twice:
                where = at(name, (*steps, key))
                yield error("json_duplicate_key", f"the key {key!r} stands there twice", None, where)
        for key, item in value.items():
            yield from _odd(name, item, (*steps, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _odd(name, item, (*steps, index))
    elif isinstance(value, float) and not math.isfinite(value):
        yield error("json_not_finite", "a number must be finite", None, at(name, steps))


_KNOWN = {"missing": "field_missing", "extra_forbidden": "field_unknown"}
_OWN = frozenset(
    {
        "field_blank",
        "field_invalid",
        "hash_malformed",
        "emitted_at_invalid",
        "ambiguous_failure_code",
        "catalog_schema_wrong",
    }
)
_WORDS = {"field_missing": "is missing", "field_unknown": "is no field of this schema"}
COMMANDS = {"ambiguous_failure_code": "collab triage classify --receipt -"}

Where = Callable[[tuple[str | int, ...]], str]


def fields(
    adapter: TypeAdapter[Model], value: Mapping[str, Any], name: str, context: Any = None, where: Where | None = None
) -> tuple[Model | None, list[Finding]]:
    """The document as its model, or all of its field faults. `where` renames places, for what came by flags."""
    try:
        return adapter.validate_python(value, context=context), []
    except ValidationError as exc:
        found = []
        for item in exc.errors(include_url=False, include_input=False):
            steps = tuple(item["loc"])
            kind = item["type"]
            code = _KNOWN.get(kind) or (kind if kind in _OWN else "field_invalid")
            label = ".".join(str(step) for step in steps) or "the document"
            message = item["msg"]
            text = _WORDS.get(code) or message[:1].lower() + message[1:]
            cause = f"{label} {text}" if kind in _OWN or code in _WORDS else f"{label}: {text}"
            place = where(steps) if where is not None else at(name, steps)
            found.append(error(code, cause, COMMANDS.get(code), place))
        return None, found


def load(
    adapter: TypeAdapter[Model], name: str, data: bytes, context: Any = None
) -> tuple[Model | None, dict[str, Any] | None, list[Finding]]:
    """(model, the object as it was written, findings). The model is None exactly when there is a finding."""
    parsed = parse(name, data)
    if parsed.object is None:
        return None, None, list(parsed.findings)
    model, found = fields(adapter, parsed.object, name, context)
    return model, parsed.object, found
