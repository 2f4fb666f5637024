"""Every failure that the product can name is in its own catalogue (docs/design.md §2, docs/specs/governance.md §2)."""

from __future__ import annotations

import json
import pkgutil
import re
import shlex
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from core.acp.check import check
from core.acp.model import EVENTS_V2
from core.delegation.boundary import failure_reason
from core.finding import Finding
from core.triage import rules
from core.triage.store import shipped
from core.workflow.boundaries import failure_text
from tests.conformance.acp_runner import VECTORS, build
from tests.unit.core.acp.builders import PEOPLE, SITUATIONS, Talk, draft, setup, setup2
from tests.unit.source_codes import CODE, said
from tui.cli import parser

CATALOG: dict[str, Any] = json.loads(pkgutil.get_data("catalog", "failure_codes.json") or b"{}")
ENTRIES: list[dict[str, Any]] = CATALOG["codes"]
FORBIDDEN = {
    "needs_attention",
    "blocked",
    "browser_handler_timeout",
    "unknown_error",
    "generic_failure",
    "pass",
    "fail",
}
NAMED_BY_THE_SPECIFICATION = {
    "files": "json_malformed json_not_object file_unreadable file_too_large json_too_deep json_duplicate_key "
    "json_not_finite field_missing field_unknown field_invalid field_blank hash_malformed ambiguous_failure_code",
    "triage": "catalog_schema_wrong catalog_code_duplicate catalog_code_forbidden catalog_code_minted_shape "
    "catalog_token_empty catalog_alias_not_minted catalog_alias_target_unknown catalog_alias_target_forbidden "
    "catalog_token_unreachable signal_is_verdict signal_empty layer_too_long observation_damaged "
    "promotion_not_effective minted_code_unobserved minted_code_malformed minted_code_resolved",
    "envelope": "emitted_at_invalid payload_schema_missing payload_schema_mismatch parent_refs_require_goal_hash "
    "file_exists parent_ref_receipt_missing parent_ref_receipt_invalid receipt_id_duplicate "
    "parent_ref_schema_mismatch parent_ref_producer_mismatch parent_ref_goal_hash_mismatch "
    "parent_ref_digest_mismatch parent_ref_self parent_ref_cycle membership_count membership_duplicate "
    "membership_mismatch goal_must_not_normative goal_hash_mismatch receipt_document_changed",
    "status": "failed_requires_triage failure_only_with_failed continuing_requires_not_done "
    "not_done_requires_continuing state_payload_missing state_payload_forbidden changed_required "
    "done_requires_verified done_requires_proof proof_path_outside_root proof_path_missing "
    "agentic_eval_proof_not_ready status_check_proof_not_pass envelope_proof_invalid "
    "debugger_proof_missing_runtime_evidence verified_not_backed_by_proof proof_not_checked catalog_invalid "
    "continuation_ledger_invalid missing_agent_status_json duplicate_agent_status_key invalid_agent_status_json "
    "continuation_guard_unresolved_work open_relevant_agent_work_ticket unresolved_acceptance_gate "
    "obvious_next_step_not_enacted unparseable_status_json wrong_schema escalation_template_invalid",
    "delegation": "delegation_failed",
    "workflow": "packet_violation unclassifiable_result scope_drift tests_failed tests_missing block_repeated "
    "block_escalated commands_not_allowed credentials_needed agent_exit circuit_break run_aborted run_failed "
    "item_timeout",
}
BY_ANOTHER_WAY = {
    "config_invalid": "tui.settings gives it by a name of its own",
    "config_malformed": "tui.settings gives it by a name of its own",
    "config_unreadable": "tui.settings gives it by a name of its own",
    "event_after_terminal": "core.acp.rules makes it of phase_terminal",
    "field_unknown": "core.strict makes it of the model's own fault",
}
REASONS = ("status", "delegation", "workflow")
"""Layers whose remaining entries are reason codes of a check, or what a failure of a plan or a run is classified as."""
MEANT_ALIKE = {("document_not_utf8", "text_not_utf8")}
LOADED = shipped()


def classify(text: str, layer: str | None = None) -> str | None:
    """The scan of the catalogue: the first entry with a token inside the normalised text."""
    normal = " ".join(text.lower().split())
    for entry in ENTRIES:
        if layer in (None, entry["layer"]) and any(token.lower() in normal for token in entry["match"]):
            return str(entry["code"])
    return None


SAID = said()


def test_the_search_for_codes_finds_them() -> None:
    assert {
        "file_missing",
        "phase_not_allowed",
        "event_after_terminal",
        "log_seq",
        "usage_wrong",
    } <= {item.code for item in SAID}


def test_every_code_in_use_has_an_entry() -> None:
    known = {entry["code"] for entry in ENTRIES}
    assert {item.code: item.where for item in SAID if item.sure and item.code not in known} == {}


def test_every_code_of_the_specification_has_an_entry_in_its_layer() -> None:
    for layer, codes in NAMED_BY_THE_SPECIFICATION.items():
        for code in codes.split():
            assert LOADED.by_code[code].layer == layer, code


def test_entries_that_the_source_does_not_say_are_known() -> None:
    used = {item.code for item in SAID}
    named = {code for codes in NAMED_BY_THE_SPECIFICATION.values() for code in codes.split()}
    waiting = {entry.code: entry.layer for entry in LOADED.entries if entry.code not in used | set(BY_ANOTHER_WAY)}
    unexplained = {code: layer for code, layer in waiting.items() if layer not in REASONS or code not in named}
    assert not unexplained, f"entries that wait for a system: {unexplained}"


def test_it_loads_without_a_finding() -> None:
    assert LOADED.warnings == ()


def test_the_catalogue_is_well_formed() -> None:
    assert set(CATALOG) == {"schema", "note", "codes", "aliases"}
    assert CATALOG["schema"] == "triage_error.catalog.v1"
    assert CATALOG["aliases"] == {}
    codes = [entry["code"] for entry in ENTRIES]
    assert len(set(codes)) == len(codes)
    for entry in ENTRIES:
        assert list(entry) == ["code", "layer", "cause", "match", "next_command", "recoverable", "not_this"]
        assert " ".join(entry["code"].lower().split()) not in FORBIDDEN
        assert not re.search(r"_unclassified_[0-9a-f]{8}$", entry["code"])
        assert CODE.fullmatch(entry["code"])
        assert entry["layer"].strip()
        assert entry["cause"].strip()
        assert entry["next_command"] is None or entry["next_command"].strip()
        assert type(entry["recoverable"]) is bool
        for text in (*entry["match"], *entry["not_this"]):
            assert text.strip()
        for token in entry["match"]:
            # A token that is not normalised itself never matches.
            assert token == " ".join(token.lower().split())


def test_every_entry_can_be_reached() -> None:
    """No token stands behind a shorter one of an earlier entry that always wins."""
    for entry in ENTRIES:
        assert entry["match"], entry["code"]
        assert any(classify(token) == entry["code"] for token in entry["match"]), entry["code"]


def test_every_command_is_one_of_ours() -> None:
    whole = parser()
    for entry in ENTRIES:
        if entry["next_command"] is None:
            continue
        words = shlex.split(entry["next_command"])
        assert words[0] == "collab"
        if words[-1] == "--help":
            assert main_help(words[1:]) == 0
        else:
            whole.parse_args(words[1:])


def main_help(words: list[str]) -> int:
    from tui.cli import main

    return main(words)


def test_what_the_source_says_classifies_as_what_it_is() -> None:
    """A text of some length is called what the source calls it; a short one that, or nothing: nobody steals it."""
    layers = {entry["code"]: entry["layer"] for entry in ENTRIES}
    wrong, telling = {}, 0
    for item in SAID:
        if item.text is None or item.code not in layers or rules.is_forbidden(item.text):
            continue
        made = classify(item.text)
        # A text that is hardly more than its places says nothing without them.
        tells = item.sure and len(re.findall(r"\b[a-z]{2,}\b", item.text)) > 4
        telling += tells
        allowed = {item.code} if tells else {item.code, None}
        if not allowed & {made, classify(item.text, layers[item.code])} and (item.code, made) not in MEANT_ALIKE:
            wrong[item.where] = (item.code, item.text, made)
    assert telling > 150
    assert wrong == {}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("OSError: [Errno 28] No space left on device: 'x'", "disk_full"),
        ("bash: ./run.sh: Permission denied", "permission_denied"),
        ("cp: cannot create regular file: Read-only file system", "folder_read_only"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'a'", "file_missing"),
        ("json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)", "json_malformed"),
        ("UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0", "text_not_utf8"),
        ("error: the folder is locked by pid 7 on host; waited 20 s", "lock_busy"),
        ("proposal.md is not UTF-8", "document_not_utf8"),
    ],
)
def test_typical_texts(text: str, code: str) -> None:
    assert rules.classify(text, None, LOADED).code == code


@pytest.mark.parametrize(
    ("cause", "code"),
    [
        ("timeout", "item_timeout"),
        ("credentials", "credentials_needed"),
        ("exit_1", "agent_exit"),
        ("exit_-9", "agent_exit"),
        ("the run ended as failed", "run_failed"),
        ("the run ended as aborted", "run_aborted"),
        ("3 failures in a row, the last at 'a'. Go on?", "circuit_break"),
        *((word, word) for word in ("packet_violation", "unclassifiable_result", "tests_failed", "tests_missing")),
        *((word, word) for word in ("block_repeated", "block_escalated", "commands_not_allowed", "scope_drift")),
    ],
)
def test_what_the_engine_gives_as_a_cause(cause: str, code: str) -> None:
    assert rules.classify(failure_text(cause), "workflow", LOADED).code == code
    assert rules.classify(failure_text(cause), None, LOADED).code == code


def test_what_a_collection_without_a_note_is() -> None:
    text = failure_reason({"type": "delegation", "delegation_id": "d1", "state": "failed"})
    assert rules.classify(text, "delegation", LOADED).code == "delegation_failed"


@pytest.mark.parametrize("said", ["connection timeout", "process did exit_group", "no credentials in the vault"])
def test_what_an_agent_says_is_not_taken_for_the_engines_word(said: str) -> None:
    assert rules.classify(failure_text(said), "workflow", LOADED).ambiguous


def test_a_stack_trace_is_nobodys() -> None:
    trace = (
        'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\nZeroDivisionError: division by zero'
    )
    made = rules.classify(trace, None, LOADED)
    assert made.ambiguous
    assert made.cause == "Unclassified signal: ZeroDivisionError: division by zero"


def observed() -> Iterator[tuple[str, str]]:
    """(code, cause) of what the rules say in every situation, to everybody, about every event."""
    for made, (steps, who, event) in product(
        (setup(), setup2()), product(SITUATIONS.values(), (*PEOPLE, "stranger"), (*EVENTS_V2, "nonsense"))
    ):
        drafted = (steps[0], ("server", "deliverable_drafted"), *steps[1:3]) if made.schema == 2 and steps else steps
        talk = Talk(made, *drafted)
        for documents in ({}, {"readiness_md": "- [blocking] A\n- [unresolved] B\n- [deferred_nonblocking] C\n"}):
            talk.facts = Talk(made, conclusion_md="- [blocked] TBD\n", **documents).facts
            for item in talk.decide(draft(who, event, len(talk.events)))[1]:
                yield item.code, item.cause


def test_what_the_rules_say_classifies_as_what_it_is() -> None:
    wrong = {(code, cause, classify(cause)) for code, cause in observed() if classify(cause) != code}
    assert wrong == set()


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> list[Finding]:
    """What validation says of the folders of the conformance cases."""
    found: list[Finding] = []
    for case in VECTORS["validate"]:
        found += check(build(tmp_path_factory.mktemp("case"), case["base"], case))[1]
    return found


def test_what_validation_says_classifies_as_what_it_is(findings: list[Finding]) -> None:
    assert len({item.code for item in findings}) > 30
    wrong = {(item.code, item.cause, classify(item.cause)) for item in findings if classify(item.cause) != item.code}
    assert wrong == set()
