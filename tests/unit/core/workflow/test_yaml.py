"""YAML with places: what is refused, where things are, bare templates."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.workflow.yaml_nodes import Mapping, Scalar, Sequence, parse, plain


def problems(text: str) -> list[tuple[int, int]]:
    return [(problem.line, problem.column) for problem in parse(text).problems]


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("a: 1\na: 2\n", [(2, 1)]),
        ("a: &x 1\nb: *x\n", [(2, 4)]),
        ("a: !t 1\n", [(1, 4)]),
        ("a: !!int '1'\n", [(1, 4)]),
        ("a: [1, 2\nb: 3\n", [(2, 2)]),
        ("a: 1\n---\nb: 2\n", [(2, 1)]),
        ("? [a]\n: 1\n", [(1, 3)]),
        ("a: \x07\n", [(1, 4)]),
        ("é: 1\né: 2\n", [(2, 1)]),
        ("{a: 1, a: 2, b: *c}", [(1, 8), (1, 17)]),
        ('a: 1\n"b\\ud800": "\\udfff"\n', [(2, 1), (2, 12)]),
    ],
)
def test_what_is_refused(text: str, places: list[tuple[int, int]]) -> None:
    assert problems(text) == places


def test_an_anchor_alone_harms_nobody() -> None:
    assert problems("a: &x 1\n") == []


def test_deep_nesting_is_refused_not_followed() -> None:
    assert parse("[" * 500 + "]" * 500).problems
    assert parse("- " * 5000).problems


def test_values_of_the_core_schema() -> None:
    text = "[1, -2, 0x1f, 0o17, 1.5, 1e3, true, False, null, ~, yes, no, 010, '1', \"true\", 2026-01-01, 1_000]"
    made = plain(parse(text).root or Scalar(1, 1, "", True))
    assert made == [
        1, -2, 31, 15, 1.5, 1000.0, True, False, None, None, "yes", "no", 10, "1", "true", "2026-01-01", "1_000",
    ]  # fmt: skip


def test_places_are_counted_in_characters() -> None:
    root = parse('# é\nclé: [ü, "→", {x: y}]\n').root
    assert isinstance(root, Mapping)
    ((key, listed),) = root.pairs
    assert (key.line, key.column, key.text) == (2, 1, "clé")
    assert isinstance(listed, Sequence)
    assert [(item.line, item.column) for item in listed.items] == [(2, 7), (2, 10), (2, 15)]


@pytest.mark.parametrize(
    ("text", "places", "value"),
    [
        ("a: [x/{{item}}.pem, y]", [(1, 5)], ["x/{{item}}.pem", "y"]),
        ("a: {{item}}", [(1, 4)], "{{item}}"),
        ("a: {{item}} of {{total}}  # {{no}}", [(1, 4)], "{{item}} of {{total}}"),
        ("a: '{{item}}'", [], "{{item}}"),
        ('a: "x {{item}}"', [], "x {{item}}"),
        ("a: it's {{item}}", [(1, 4)], "it's {{item}}"),
        ("a:\n  - {{item}}\n  - b", [(2, 5)], ["{{item}}", "b"]),
        ("a: |\n  {{item}}\n", [], "{{item}}\n"),
        ("a: {b: {{item}}, c: {{x}}}", [(1, 8), (1, 21)], {"b": "{{item}}", "c": "{{x}}"}),
        ("a: [{b: {{item}}}]", [(1, 9)], [{"b": "{{item}}"}]),
        ("a: plain", [], "plain"),
        ("a: { {{item}} : 1 }", [(1, 6)], {"{{item}}": 1}),
    ],
)
def test_bare_templates_are_quoted(text: str, places: list[tuple[int, int]], value: object) -> None:
    tree = parse(text)
    assert tree.problems == ()
    assert list(tree.unquoted) == places
    assert isinstance(tree.root, Mapping)
    assert plain(tree.root)["a"] == value


def test_places_after_a_quoted_template_are_as_written() -> None:
    root = parse("a: [it's {{x}}, second, {{y}}, third]\n").root
    assert isinstance(root, Mapping)
    listed = root.get("a")
    assert isinstance(listed, Sequence)
    assert [item.column for item in listed.items] == [5, 17, 25, 32]


@pytest.mark.parametrize(
    ("text", "offset", "place"),
    [
        ("a: one two", 4, (1, 8)),
        ("a: 'one two'", 4, (1, 9)),
        ('a: "\\u2192 two"', 2, (1, 12)),
        ("a: >\n  one\n  two", 4, (1, 4)),
    ],
)
def test_the_place_of_a_word_in_a_scalar(text: str, offset: int, place: tuple[int, int]) -> None:
    tree = parse(text)
    assert isinstance(tree.root, Mapping)
    scalar = tree.root.get("a")
    assert isinstance(scalar, Scalar)
    assert tree.place_in(scalar, offset) == place


@given(st.text(alphabet=st.sampled_from(list("ab:-?#&*!|>'\"[]{}, \n\t{}%@`é\x00\u2028")), max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    tree = parse(text)
    for problem in tree.problems:
        assert problem.line >= 1
        assert problem.column >= 1
    for line, column in tree.unquoted:
        assert "{{" in tree.lines[line - 1][column - 1 :]


@given(st.lists(st.sampled_from(["a", "{{item}}", "it's", "'q'", '"q"', "x{{i}}y", "1"]), max_size=8))
def test_quoting_changes_no_value(words: list[str]) -> None:
    tree = parse("a: [" + ", ".join(words) + "]")
    assert tree.problems == ()
    assert isinstance(tree.root, Mapping)
    listed = tree.root.get("a")
    assert isinstance(listed, Sequence)
    assert [item.text for item in listed.items if isinstance(item, Scalar)] == [
        word[1:-1] if word[0] in "'\"" else word for word in words
    ]


def test_what_is_no_number_or_text_elsewhere_is_none_here() -> None:
    """Half a character and a number without an end could not be written again."""
    tree = parse('a: "x\\ud800"\nb: 1e999\nc: ' + "9" * 5000 + "\nd: 0x" + "f" * 400)
    assert tree.root is not None
    assert plain(tree.root) == {"a": "x\ufffd", "b": "1e999", "c": "9" * 5000, "d": "0x" + "f" * 400}
