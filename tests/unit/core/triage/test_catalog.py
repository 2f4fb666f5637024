"""What a catalogue may be (docs/specs/governance.md §2)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.finding import Finding, Refused
from core.triage import rules, view
from core.triage.model import Catalog
from tests.unit.core.triage.conftest import catalog, document, entry

MINTED = "press_unclassified_4a60bf7d"


def faults(made: Any) -> list[Finding]:
    """Why a document is no catalogue."""
    with pytest.raises(Refused) as caught:
        rules.make_catalog("c.json", made)
    return list(caught.value.findings)


def told(made: Any) -> list[tuple[str, str | None]]:
    return [(item.code, item.where) for item in faults(made)]


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (document(entry(code=" ")), [("field_blank", "c.json#/codes/0/code")]),
        (document(entry(layer="\t")), [("field_blank", "c.json#/codes/0/layer")]),
        (document(entry(cause="")), [("field_blank", "c.json#/codes/0/cause")]),
        (document(entry(next_command=" ")), [("field_blank", "c.json#/codes/0/next_command")]),
        (document(entry(recoverable=1)), [("field_invalid", "c.json#/codes/0/recoverable")]),
        (document(entry(recoverable="true")), [("field_invalid", "c.json#/codes/0/recoverable")]),
        (document(entry(match="x")), [("field_invalid", "c.json#/codes/0/match")]),
        (document(entry(match=[None])), [("field_invalid", "c.json#/codes/0/match/0")]),
        (document(entry(not_this=None)), [("field_invalid", "c.json#/codes/0/not_this")]),
        (document(entry(more=1)), [("field_unknown", "c.json#/codes/0/more")]),
        ({**document(), "more": 1}, [("field_unknown", "c.json#/more")]),
        ({**document(), "note": None}, [("field_invalid", "c.json#/note")]),
        ({**document(), "aliases": None}, [("field_invalid", "c.json#/aliases")]),
        ({**document(), "aliases": {MINTED: 1}}, [("field_invalid", f"c.json#/aliases/{MINTED}")]),
        ({**document(), "schema": None}, [("catalog_schema_wrong", "c.json#/schema")]),
        ({"codes": []}, [("catalog_schema_wrong", "c.json#/schema")]),
        (document(entry(), entry()), [("catalog_code_duplicate", "c.json#/codes/1/code")]),
        (document(entry(code=" pass ")), [("catalog_code_forbidden", "c.json#/codes/0/code")]),
        (document(entry(code=MINTED)), [("catalog_code_minted_shape", "c.json#/codes/0/code")]),
        (document(entry(match=["ok", "\u3000"])), [("catalog_token_empty", "c.json#/codes/0/match/1")]),
        (document(entry(), aliases={"a~/b": "press_jam"}), [("catalog_alias_not_minted", "c.json#/aliases/a~0~1b")]),
        (document(entry(), aliases={MINTED: MINTED}), [("catalog_alias_target_unknown", f"c.json#/aliases/{MINTED}")]),
        (
            document(entry(), aliases={MINTED: "Blocked"}),
            [("catalog_alias_target_forbidden", f"c.json#/aliases/{MINTED}")],
        ),
    ],
)
def test_faults(made: Any, expected: list[tuple[str, str]]) -> None:
    assert told(made) == expected


def test_an_alias_of_an_alias_is_unknown() -> None:
    other = "vault_unclassified_00000000"
    made = document(entry(), aliases={MINTED: "press_jam", other: MINTED})
    assert told(made) == [("catalog_alias_target_unknown", f"c.json#/aliases/{other}")]


def test_all_field_faults_are_reported_and_no_others() -> None:
    broken = document(entry(code="", layer=3), entry(code="FAIL", match=[" "]), {"code": "x"})
    codes = [item.code for item in faults(broken)]
    assert codes == ["field_blank", "field_invalid", *["field_missing"] * 6]


def test_all_cross_field_faults_are_reported_in_the_order_of_the_rules() -> None:
    aliases = {MINTED: "PASS", "x": "nope"}
    broken = document(entry(match=[""]), entry(code=MINTED), entry(code="FAIL"), entry(), entry(), aliases=aliases)
    assert told(broken) == [
        ("catalog_code_duplicate", "c.json#/codes/3/code"),
        ("catalog_code_duplicate", "c.json#/codes/4/code"),
        ("catalog_code_forbidden", "c.json#/codes/2/code"),
        ("catalog_code_minted_shape", "c.json#/codes/1/code"),
        ("catalog_token_empty", "c.json#/codes/0/match/0"),
        ("catalog_alias_not_minted", "c.json#/aliases/x"),
        ("catalog_alias_target_unknown", "c.json#/aliases/x"),
        ("catalog_alias_target_forbidden", f"c.json#/aliases/{MINTED}"),
    ]


@pytest.mark.parametrize("token", ["two  spaces", "tab\tinside", "line\nbreak", "wide\u3000space", "  a"])
def test_a_token_that_never_matches_is_a_warning(token: str) -> None:
    made = catalog(entry(match=["fine", token]))
    assert [(item.code, item.severity, item.where) for item in made.warnings] == [
        ("catalog_token_unreachable", "warning", "c.json#/codes/0/match/1")
    ]


@pytest.mark.parametrize("token", [" low", "low ", "a b c", "x"])
def test_single_spaces_are_fine(token: str) -> None:
    assert catalog(entry(match=[token])).warnings == ()


def test_json_faults_come_first() -> None:
    with pytest.raises(Refused) as caught:
        rules.read_catalog("c.json", b'{"schema":"x","codes":[],"codes":[NaN]}')
    assert [item.code for item in caught.value.findings] == ["json_duplicate_key", "json_not_finite"]


def test_nothing_is_lost_when_an_entry_is_added() -> None:
    raw = {**document(entry(), aliases={MINTED: "press_jam"}), "note": "n"}
    made = rules.make_catalog("c.json", raw)
    wish = rules.Wish("b", "press", ("b token",), "Because.", None, False, ("not a",))
    assert rules.with_entry(made, wish) == {**raw, "codes": [*raw["codes"], wish.as_json()]}
    assert list(wish.as_json()) == ["code", "layer", "cause", "match", "next_command", "recoverable", "not_this"]
    assert rules.with_alias(made, "a_unclassified_00000000", "press_jam")["aliases"] == {
        MINTED: "press_jam",
        "a_unclassified_00000000": "press_jam",
    }


def test_the_browser_filters_by_layer_and_any_word(shop: Catalog) -> None:
    assert [item.code for item in view.entries(shop, "vault")] == ["vault_denied"]
    assert [item.code for item in view.entries(shop, None, "ROLLER")] == ["press_jam"]
    assert [item.code for item in view.entries(shop, "vault", "roller")] == []
    assert len(view.entries(shop)) == 3


def test_a_large_catalogue_is_read() -> None:
    made = document(*(entry(f"c{number}", "l", (f"token {number}",)) for number in range(2000)))
    known = rules.read_catalog("c.json", json.dumps(made).encode())
    assert rules.classify("the token 1999 broke", None, known).code == "c1"
    assert rules.classify("the  token 77", "l", known).matched_tokens == ("token 7",)
