"""From a signal to a code, pure (docs/specs/governance.md §2)."""

from __future__ import annotations

import hashlib
import json
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.finding import Refused
from core.governance import rules as governance
from core.triage import rules
from core.triage.model import Catalog, Report
from tests.unit.core.triage.conftest import catalog, entry

TEXTS = st.text(max_size=60)
WORDS = st.sampled_from(
    ["paper jam", "Paper  JAM", "denied", "403", "Straße", "ΟΔΟΣ", "İ", "\u2028", "x" * 50, "\t", "é"]
)
SIGNALS = st.one_of(TEXTS, st.lists(st.one_of(TEXTS, WORDS), max_size=6).map(" ".join))
LAYERS = st.one_of(st.none(), st.sampled_from(["press", "vault", "PRESS", "night-shift", "a.b", "é", "_"]), TEXTS)
TOKENS = st.lists(st.text("ab \t", min_size=1, max_size=6).filter(str.strip), max_size=4)


def outcome(text: str, layer: str | None, known: Catalog) -> Report | set[str]:
    """The report, or the codes of the refusal."""
    try:
        return rules.classify(text, layer, known)
    except Refused as exc:
        return {item.code for item in exc.findings}


@pytest.mark.parametrize(
    ("layer", "made"),
    [
        ("project-watchdog", "project_watchdog"),
        ("tau.project_dag", "tauproject_dag"),
        ("Layer 2/b", "layer_2b"),
        ("-a--b-", "a_b"),
        ("a__b", "a__b"),
        ("_x_", "x"),
        ("..", "unknown"),
        ("éè", "unknown"),
        ("Café-Nord", "caf_nord"),
        ("", "unknown"),
        (None, "unknown"),
    ],
)
def test_a_layer_becomes_the_prefix(layer: str | None, made: str) -> None:
    assert rules.prefix(layer) == made


@pytest.mark.parametrize(
    "code",
    [
        "__unclassified_d2e099a3",
        "_unclassified__unclassified_d2e099a3",
        "a_9_unclassified_00000000",
        "_unclassified_unclassified_d2e099a3",
    ],
)
def test_minted_shapes(code: str) -> None:
    assert rules.is_minted(code)


@pytest.mark.parametrize(
    "code",
    [
        "_unclassified_d2e099a3",
        "tau_unclassified_d2e099a",
        "tau_unclassified_d2e099a3f",
        "tau_unclassified_D2E099A3",
        "tau_unclassified_d2e099a3\n",
        "٣_unclassified_d2e099a3",
        "épress_unclassified_4a60bf7d",
        "Tau_unclassified_d2e099a3",
        "tau-x_unclassified_d2e099a3",
        "press_jam",
        "",
        None,
        7,
    ],
)
def test_other_shapes(code: object) -> None:
    assert not rules.is_minted(code)


def test_the_digest_is_of_the_normalised_text() -> None:
    digest = hashlib.sha256(b"novel gizmo exploded").hexdigest()[:8]
    assert rules.mint("\t Novel  GIZMO\r\nexploded ", "tau") == f"tau_unclassified_{digest}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("alpha\n  Error: beta \ngamma error", "Error: beta"),
        ("alpha\nnot Accepted by desk", "not Accepted by desk"),
        ("one\ntwo 404\n", "two 404"),
        ("only\nlines", "only\nlines"),
        ("  padded  ", "padded"),
        ("x" * 400, "x" * 300),
        ("a\n" + "timeout " * 60, ("timeout " * 60).strip()[:300]),
    ],
)
def test_the_cause_of_a_minted_code(text: str, told: str) -> None:
    assert rules.classify(text, None, catalog()).cause == f"Unclassified signal: {told}"


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"active_failure_code": "courier_gone", "failure_code": "press_jam"}, "active_failure_code"),
        ({"active_failure_code": "  ", "failure_code": "courier_gone"}, "failure_code"),
        ({"active_failure_code": 7, "failure_code": None, "code": " courier_gone\n"}, "code"),
        ({"report": {"code": "courier_gone"}}, "report.code"),
    ],
)
def test_an_explicit_code(document: Any, field: str, shop: Catalog) -> None:
    made = rules.classify(json.dumps(document), None, shop)
    assert (made.code, made.matched_tokens, made.ambiguous) == ("courier_gone", (f"{field}:courier_gone",), False)


@pytest.mark.parametrize(
    "text",
    [
        '{"failure_code": "nope", "code": "courier_gone"}',
        '{"code": "COURIER_GONE"}',
        '[{"code": "courier_gone"}]',
        '{"report": [{"code": "courier_gone"}]}',
        '{"result": {"code": "courier_gone"}}',
        '{"code": "courier_gone"',
        '{"code": "courier_gone"} and more',
        "[" * 100_000,
        '{"a":' * 5_000 + "1" + "}" * 5_000,
        '{"n": ' + "1" * 5_000 + "}",
    ],
)
def test_what_is_no_explicit_code_is_text(text: str, shop: Catalog) -> None:
    assert rules.classify(text, None, shop).ambiguous


def test_a_layer_shuts_out_an_explicit_code(shop: Catalog) -> None:
    made = rules.classify('{"code": "courier_gone"}', "vault", shop)
    assert made.ambiguous
    assert made.code.startswith("vault_unclassified_")


def test_a_verdict_is_refused_with_the_layer_in_the_command(shop: Catalog) -> None:
    with pytest.raises(Refused) as caught:
        rules.classify(" Needs_Attention\n", "night shift", shop)
    assert [item.code for item in caught.value.findings] == ["signal_is_verdict"]
    assert caught.value.findings[0].next_command == "collab triage classify --receipt - --layer 'night shift'"


def test_every_reason_against_a_signal_is_told(shop: Catalog) -> None:
    with pytest.raises(Refused) as caught:
        rules.classify(" ", "x" * 81, shop)
    assert [item.code for item in caught.value.findings] == ["layer_too_long", "signal_empty"]
    assert rules.classify("a", "x" * 80, shop).ambiguous


def test_an_alias_answers_for_its_minted_code_only() -> None:
    minted = rules.mint("gearbox coughs", "press")
    known = catalog(entry(), aliases={minted: "press_jam"})
    made = rules.classify("Gearbox  coughs", "press", known)
    assert (made.code, made.aliased_from, made.minted, made.ambiguous) == ("press_jam", minted, minted, False)
    assert made.as_json()["aliased_from"] == minted
    assert rules.classify("gearbox coughs", None, known).ambiguous
    assert "aliased_from" not in rules.classify("paper jam", None, known).as_json()


@given(SIGNALS, LAYERS, st.randoms(use_true_random=False))
def test_only_the_normalised_text_decides(text: str, layer: str | None, random: Any) -> None:
    """Other white space and other case that normalise alike give the same code, tokens and command."""
    known = catalog(entry(), entry("vault_denied", "vault", ("denied", "403")))
    spaces = [" ", "\t", "\n", "\u3000", "\x85", "  "]
    other = "".join(random.choice(spaces) if char.isspace() else char for char in text)
    cased = "".join(char.upper() if random.random() < 0.5 else char for char in other)
    for changed in (other, f"  {text}\n", cased):
        if rules.normalise(changed) == rules.normalise(text):
            first, second = outcome(text, layer, known), outcome(changed, layer, known)
            if isinstance(first, Report) and isinstance(second, Report):
                assert (first.code, first.layer, first.matched_tokens) == (
                    second.code,
                    second.layer,
                    second.matched_tokens,
                )
            else:
                assert first == second


@given(SIGNALS, LAYERS)
def test_the_same_signal_is_always_the_same(text: str, layer: str | None) -> None:
    first = outcome(text, layer, catalog(entry()))
    assert first == outcome(text, layer, catalog(entry()))
    if isinstance(first, Report) and first.ambiguous:
        assert first.code == rules.mint(text, layer)


@given(st.one_of(SIGNALS, st.sampled_from(rules.FORBIDDEN_WORDS)), LAYERS, st.sampled_from(["", " ", "\n\t"]))
def test_no_forbidden_label_comes_out(text: str, layer: str | None, around: str) -> None:
    known = catalog(entry("only_code", "x", ("pass", "fail", "blocked")))
    made = outcome(around + text + around, layer, known)
    if isinstance(made, Report):
        assert not rules.is_forbidden(made.code)
    if rules.is_forbidden(text):
        assert not isinstance(made, Report)
        assert "signal_is_verdict" in made


@given(SIGNALS, LAYERS)
def test_every_minted_code_passes_every_validator(text: str, layer: str | None) -> None:
    code = rules.mint(text, layer)
    known = catalog(entry("a", "a", ()), aliases={code: "a"})
    assert rules.is_minted(code)
    assert rules.is_legal(code, known)
    assert code.isascii()
    assert not rules.is_forbidden(code)
    envelope = {
        "schema": "pi.receipt_envelope.v1",
        "receipt_id": "r",
        "payload_schema": "p.v1",
        "producer": "p",
        "emitted_at": "2026-09-01T13:00:00Z",
        "triage_code": code,
        "payload": {"schema": "p.v1"},
    }
    made, _, found = governance.envelope("e", json.dumps(envelope).encode(), catalog())
    assert made is not None
    assert not found
    status = {
        "schema": "pi.agent_status.v1",
        "goal": "g",
        "state": "failed",
        "changed": ["x"],
        "failure": {"triage": {"code": code, "cause": "c"}},
    }
    judged, _, found = governance.status("s", json.dumps(status).encode(), catalog())
    assert judged is not None
    assert not found
    assert not governance.status_findings(judged, "s")


def naive(text: str, layer: str | None, known: Catalog) -> str | None:
    """The scan as the specification tells it, without an index."""
    normalised = rules.normalise(text)
    for item in known.entries:
        if (layer is None or item.layer == layer) and any(token.lower() in normalised for token in item.match):
            return item.code
    return None


@given(
    st.lists(st.tuples(st.sampled_from("xy"), TOKENS), max_size=8),
    st.text("ab \t", max_size=30),
    st.sampled_from([None, "x", "y"]),
)
def test_the_index_finds_what_a_plain_scan_finds(
    made: list[tuple[str, list[str]]], text: str, layer: str | None
) -> None:
    known = catalog(*(entry(f"c{number}", name, tuple(tokens)) for number, (name, tokens) in enumerate(made)))
    if text.strip():
        report = rules.classify(text, layer, known)
        assert (None if report.ambiguous else report.code) == naive(text, layer, known)


@given(st.text(string.printable, max_size=20))
def test_a_token_that_is_called_unreachable_never_matches(token: str) -> None:
    if not rules.reachable(token):
        assert token.lower() not in rules.normalise(f"a {token} b")


def test_any_text_gets_a_legal_code(shop: Catalog) -> None:
    for text in ("", "BLOCKED", "paper jam", "\ud800 broken", "novel"):
        assert rules.is_legal(rules.code_of(text, "acp", shop), shop)
