"""Typed reading of a YAML mapping: a value or its default, and a finding for everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from core.workflow import times
from core.workflow.findings import Findings
from core.workflow.yaml_nodes import Mapping, Node, Scalar, Sequence, Unknown

Place = tuple[int, int]


def is_null(node: Node | None) -> bool:
    return node is None or (isinstance(node, Scalar) and node.value is None)


@dataclass(frozen=True)
class Fields:
    """A mapping with its name and the place that stands for it when something is missing from it."""

    mapping: Mapping
    place: Place
    name: str
    findings: Findings

    def has(self, key: str) -> bool:
        """Whether the key is there with something other than null."""
        return not is_null(self.mapping.get(key))

    def key_place(self, key: str) -> Place:
        found = self.mapping.find(key)
        return self.place if found is None else (found[0].line, found[0].column)

    def value_place(self, key: str) -> Place:
        """Of the scalar or list that offends; of the key when the value is a mapping or empty."""
        found = self.mapping.find(key)
        if found is None:
            return self.place
        node = found[1]
        empty = isinstance(node, Scalar) and node.bare and not node.text
        if isinstance(node, (Mapping, Unknown)) or empty:
            return found[0].line, found[0].column
        return node.line, node.column

    def unknown(self, known: Collection[str]) -> None:
        """Warn of every key that nobody reads."""
        for key, _ in self.mapping.pairs:
            if key.text not in known:
                cause = f"{self.name} has no key {key.text!r}; it is not read"
                self.findings.warning("W_UNKNOWN_KEY", (key.line, key.column), cause)

    def require(self, key: str) -> bool:
        """Whether a required key is there at all; E_KEY_MISSING otherwise."""
        if self.mapping.find(key) is None:
            self.findings.error("E_KEY_MISSING", self.place, f"{self.name} needs {key!r}")
            return False
        return True

    def wrong_type(self, key: str, wanted: str) -> None:
        if not isinstance(self.mapping.get(key), Unknown):
            self.findings.error("E_TYPE", self.value_place(key), f"{key!r} must be {wanted}")

    def wrong_value(self, key: str, cause: str) -> None:
        self.findings.error("E_VALUE", self.value_place(key), cause)

    def inner(self, key: str) -> Fields | None:
        """A mapping below this one; None when it is absent, null or (E_TYPE) something else."""
        node = self.mapping.get(key)
        if node is None:
            return None
        if isinstance(node, Mapping):
            return Fields(node, self.key_place(key), f"{self.name}.{key}" if self.name else key, self.findings)
        if not is_null(node):
            self.wrong_type(key, "a mapping")
        return None

    def text(self, key: str, required: bool = False) -> str | None:
        """A text; numbers and booleans are none."""
        node = self.mapping.get(key)
        if isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip():
            return node.value
        if node is not None and (required or not is_null(node)):
            self.wrong_type(key, "a text")
        return None

    def written(self, key: str) -> str | None:
        """The written text of any scalar."""
        node = self.mapping.get(key)
        if isinstance(node, Scalar) and not is_null(node):
            return node.text
        if not is_null(node):
            self.wrong_type(key, "a text")
        return None

    def flag(self, key: str, default: bool) -> bool:
        node = self.mapping.get(key)
        if isinstance(node, Scalar) and isinstance(node.value, bool):
            return node.value
        if not is_null(node):
            self.wrong_type(key, "true or false")
        return default

    def integer(self, key: str, default: int, least: int) -> int:
        node = self.mapping.get(key)
        if isinstance(node, Scalar) and type(node.value) is int:
            if node.value < least:
                self.wrong_value(key, f"{key!r} must be at least {least}")
            return max(node.value, least)
        if not is_null(node):
            self.wrong_type(key, "an integer")
        return default

    def span(self, key: str, default: int | None, least: int = 1) -> int | None:
        """Milliseconds of a duration."""
        node = self.mapping.get(key)
        if is_null(node):
            return default
        if not isinstance(node, Scalar):
            self.wrong_type(key, "a duration such as 30m")
            return default
        made = times.span(node.text)
        if made is None:
            self.wrong_value(key, f"{node.text!r} is no duration (an integer and ms, s, m, h or d)")
        elif made < least:
            self.wrong_value(key, f"{key!r} must be longer than 0")
            made = None
        return default if made is None else made

    def choice(self, key: str, allowed: Iterable[str], default: str) -> str:
        """A word of a closed list."""
        node = self.mapping.get(key)
        if is_null(node):
            return default
        if not isinstance(node, Scalar):
            self.wrong_type(key, "a word")
            return default
        words = tuple(allowed)
        if node.text not in words:
            self.wrong_value(key, f"{node.text!r} is not one of {', '.join(words)}")
            return default
        return node.text

    def scalars(self, key: str) -> list[Scalar] | None:
        """The scalars of a list, written text kept; None when absent, null or no such list (E_TYPE)."""
        node = self.mapping.get(key)
        if node is None or (is_null(node) and isinstance(node, Scalar)):
            return None
        if not isinstance(node, Sequence):
            self.wrong_type(key, "a list")
            return None
        made = []
        for item in node.items:
            if isinstance(item, Scalar) and (item.text or not item.bare):
                made.append(item)
            elif not isinstance(item, Unknown):
                self.findings.error("E_TYPE", (item.line, item.column), f"an entry of {key!r} must be a scalar")
        return made

    def words(self, key: str, allowed: Iterable[str], default: tuple[str, ...]) -> tuple[str, ...]:
        """A non-empty list of different words of a closed list."""
        found = self.scalars(key)
        if found is None:
            return default
        choice = tuple(allowed)
        for item in found:
            if item.text not in choice:
                cause = f"{item.text!r} is not one of {', '.join(choice)}"
                self.findings.error("E_VALUE", (item.line, item.column), cause)
        made = tuple(dict.fromkeys(item.text for item in found if item.text in choice))
        if not found:
            self.wrong_value(key, f"{key!r} is empty")
        return made or default
