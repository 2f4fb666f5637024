"""Immutable sequences and tables whose next version shares what did not change.

A run of ten thousand items is state that a pure function replaces for every event; copying it whole would make
the last item dearer than the first.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar, cast

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
_CHUNK = 128
_BUCKETS = 256


class Vector(Generic[T]):
    """A sequence: `with_item` and `added` cost a chunk and the list of chunks."""

    __slots__ = ("_chunks", "_length")

    def __init__(self, items: tuple[T, ...] = ()) -> None:
        self._chunks = tuple(items[at : at + _CHUNK] for at in range(0, len(items), _CHUNK))
        self._length = len(items)

    @classmethod
    def _made(cls, chunks: tuple[tuple[T, ...], ...], length: int) -> Vector[T]:
        made: Vector[T] = cls.__new__(cls)
        made._chunks, made._length = chunks, length
        return made

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> T:
        if not 0 <= index < self._length:
            raise IndexError(index)
        return self._chunks[index // _CHUNK][index % _CHUNK]

    def __iter__(self) -> Iterator[T]:
        for chunk in self._chunks:
            yield from chunk

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vector) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def with_item(self, index: int, item: T) -> Vector[T]:
        """A version with one item replaced."""
        if not 0 <= index < self._length:
            raise IndexError(index)
        at, inside = divmod(index, _CHUNK)
        old = self._chunks[at]
        chunk = (*old[:inside], item, *old[inside + 1 :])
        return self._made((*self._chunks[:at], chunk, *self._chunks[at + 1 :]), self._length)

    def added(self, item: T) -> Vector[T]:
        """A version with one item more."""
        if self._chunks and len(self._chunks[-1]) < _CHUNK:
            chunks = (*self._chunks[:-1], (*self._chunks[-1], item))
        else:
            chunks = (*self._chunks, (item,))
        return self._made(chunks, self._length + 1)


_EMPTY: tuple[dict[object, object], ...] = tuple({} for _ in range(_BUCKETS))


class Table(Generic[K, V]):
    """A mapping: `with_item` and `without` cost one bucket. Iteration has no order: sort where order matters."""

    __slots__ = ("_buckets", "_length")

    def __init__(self) -> None:
        self._buckets = cast("tuple[dict[K, V], ...]", _EMPTY)
        self._length = 0

    @classmethod
    def _made(cls, buckets: tuple[dict[K, V], ...], length: int) -> Table[K, V]:
        made: Table[K, V] = cls.__new__(cls)
        made._buckets, made._length = buckets, length
        return made

    def __len__(self) -> int:
        return self._length

    def __contains__(self, key: object) -> bool:
        return key in self._buckets[hash(key) % _BUCKETS]

    def __iter__(self) -> Iterator[K]:
        for bucket in self._buckets:
            yield from bucket

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and dict(self.items()) == dict(other.items())

    def __hash__(self) -> int:
        return hash(self._length)

    def get(self, key: K) -> V | None:
        return self._buckets[hash(key) % _BUCKETS].get(key)

    def items(self) -> Iterator[tuple[K, V]]:
        for bucket in self._buckets:
            yield from bucket.items()

    def values(self) -> Iterator[V]:
        for bucket in self._buckets:
            yield from bucket.values()

    def with_item(self, key: K, value: V) -> Table[K, V]:
        """A version with one key set."""
        at = hash(key) % _BUCKETS
        bucket = self._buckets[at]
        grown = self._length + (key not in bucket)
        return self._made((*self._buckets[:at], {**bucket, key: value}, *self._buckets[at + 1 :]), grown)

    def without(self, key: K) -> Table[K, V]:
        """A version without that key."""
        at = hash(key) % _BUCKETS
        bucket = self._buckets[at]
        if key not in bucket:
            return self
        rest = {name: value for name, value in bucket.items() if name != key}
        return self._made((*self._buckets[:at], rest, *self._buckets[at + 1 :]), self._length - 1)
