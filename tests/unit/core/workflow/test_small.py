"""Times, persistent collections, paths, templates."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.workflow import templates, times
from core.workflow.paths import Held, covers, normal
from core.workflow.persistent import Table, Vector


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("250ms", 250), ("5s", 5000), ("30m", 1_800_000), ("2h", 7_200_000), ("1d", 86_400_000), ("0s", 0)],
)
def test_spans(text: str, milliseconds: int) -> None:
    assert times.span(text) == milliseconds


@pytest.mark.parametrize("text", ["", "5", "5 s", "-5s", "1.5h", "5S", "５s", "1w", "999999999999d"])
def test_no_spans(text: str) -> None:
    assert times.span(text) is None


@given(st.integers(0, 4_000_000_000_000))
def test_a_moment_survives_its_text_and_sorts_as_it(moment: int) -> None:
    assert times.read(times.text(moment)) == moment
    assert (times.text(moment) < times.text(moment + 1)) is True


def test_days_and_run_times() -> None:
    moment = times.read("2026-04-01T23:59:59.999Z")
    assert moment is not None
    assert times.compact(moment) == "20260401T235959Z"
    assert times.day(moment) == "20260401"
    assert times.day(moment + 1) == "20260402"


@given(st.lists(st.tuples(st.integers(0, 400), st.integers())))
def test_a_vector_is_a_list_whose_versions_stay(changes: list[tuple[int, int]]) -> None:
    model, vector = list(range(300)), Vector(tuple(range(300)))
    first = vector
    for index, value in changes:
        if index < len(model):
            model[index] = value
            vector = vector.with_item(index, value)
        else:
            model.append(value)
            vector = vector.added(value)
    assert list(vector) == model
    assert len(vector) == len(model)
    assert [vector[index] for index in range(len(model))] == model
    assert list(first) == list(range(300))


def test_a_vector_has_bounds() -> None:
    vector = Vector((1, 2))
    for index in (-1, 2):
        with pytest.raises(IndexError):
            vector[index]
        with pytest.raises(IndexError):
            vector.with_item(index, 0)
    assert vector == Vector((1, 2))
    assert hash(vector) == hash(Vector((1, 2)))


@given(st.lists(st.tuples(st.booleans(), st.text(max_size=2), st.integers())))
def test_a_table_is_a_dict_whose_versions_stay(changes: list[tuple[bool, str, int]]) -> None:
    model: dict[str, int] = {}
    table: Table[str, int] = Table()
    for keep, key, value in changes:
        if keep:
            model[key] = value
            table = table.with_item(key, value)
        else:
            model.pop(key, None)
            table = table.without(key)
    assert dict(table.items()) == model
    assert len(table) == len(model)
    assert sorted(table) == sorted(model)
    assert sorted(table.values()) == sorted(model.values())
    assert all(key in table and table.get(key) == value for key, value in model.items())
    assert Table() == Table().with_item("k", 1).without("k")


@pytest.mark.parametrize(
    ("path", "made"),
    [
        ("a/b", "a/b"),
        ("a//b/", "a/b"),
        ("./a/../b", "b"),
        ("a/..", "."),
        (".", "."),
        ("..", None),
        ("a/../../b", None),
        ("/etc", None),
        ("", None),
        ("a\0b", None),
    ],
)
def test_normal_paths(path: str, made: str | None) -> None:
    assert normal(path) == made


def test_a_folder_covers_what_lies_below_it() -> None:
    assert covers("certs", "certs/a")
    assert covers("certs", "certs")
    assert covers(".", "anything")
    assert not covers("certs", "certs2/a")
    assert not covers("certs/a", "certs")


@pytest.mark.parametrize(
    ("held", "path", "free"),
    [
        ("a/b", "a/b", False),
        ("a/b", "a", False),
        ("a/b", "a/b/c", False),
        ("a/b", "a/c", True),
        ("a/b", "a/bc", True),
        (".", "x", False),
        ("x", ".", False),
    ],
)
def test_held_paths(held: str, path: str, free: bool) -> None:
    locks = Held()
    locks.take([held])
    assert locks.free(path) is free


def test_templates_are_filled_once() -> None:
    values = {"item": "{{run_id}}", "run_id": "r", "index": 0}
    assert templates.fill("{{item}}/{{ index }}/{{odd}}", values) == "{{run_id}}/0/{{odd}}"
    assert templates.fill_all({"a": ["{{index}}", 1, None]}, values) == {"a": ["0", 1, None]}
    assert templates.unknown("{{item}} {{itm}} {{a b}}") == ["itm", "a b"]
