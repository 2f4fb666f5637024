"""The shipped catalogue against the source: every code has an entry, every entry classifies its own texts."""

from __future__ import annotations

import shlex
from collections import Counter

import pytest

from core.triage import rules
from core.triage.store import shipped
from tests.unit.core.triage.source_codes import said
from tui.cli import parser

SAID = said()
CATALOG = shipped()
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
}
BY_ANOTHER_WAY = {
    "config_invalid": "tui.settings gives it by a name of its own",
    "config_malformed": "tui.settings gives it by a name of its own",
    "config_unreadable": "tui.settings gives it by a name of its own",
    "event_after_terminal": "core.acp.rules makes it of phase_terminal",
    "field_unknown": "core.strict makes it of the model's own fault",
}
REASONS = "status"
"""The layer whose remaining entries are reason codes of a check, not findings."""


def test_every_code_in_the_source_has_an_entry() -> None:
    missing = sorted({f"{item.code} ({item.where})" for item in SAID if item.sure and item.code not in CATALOG.by_code})
    assert not missing, "without an entry in catalog/failure_codes.json: " + ", ".join(missing)


def test_every_code_of_the_specification_has_an_entry_in_its_layer() -> None:
    for layer, codes in NAMED_BY_THE_SPECIFICATION.items():
        for code in codes.split():
            assert CATALOG.by_code[code].layer == layer, code


def test_entries_that_the_source_does_not_say_are_known() -> None:
    used = {item.code for item in SAID}
    named = {code for codes in NAMED_BY_THE_SPECIFICATION.values() for code in codes.split()}
    waiting = {entry.code: entry.layer for entry in CATALOG.entries if entry.code not in used | set(BY_ANOTHER_WAY)}
    unexplained = {code: layer for code, layer in waiting.items() if layer != REASONS or code not in named}
    assert not unexplained, f"entries that wait for a system: {unexplained}"


def test_it_loads_without_a_finding() -> None:
    assert CATALOG.warnings == ()
    assert CATALOG.aliases == {}


@pytest.mark.parametrize("command", sorted({entry.next_command for entry in CATALOG.entries if entry.next_command}))
def test_every_next_command_is_one(command: str) -> None:
    words = shlex.split(command)
    assert words[0] == "collab"
    if "--help" in words:
        with pytest.raises(SystemExit) as ended:
            parser().parse_args(words[1:])
        assert ended.value.code == 0
    else:
        parser().parse_args(words[1:])


MEANT_ALIKE = {("document_not_utf8", "text_not_utf8")}


def test_no_entry_steals_the_text_of_another() -> None:
    """What the source says is classified as what the source calls it, or not at all."""
    stolen, caught = [], Counter[bool]()
    for item in SAID:
        if item.text is None or item.code not in CATALOG.by_code or rules.is_forbidden(item.text):
            continue
        made = rules.classify(item.text, None, CATALOG)
        caught[not made.ambiguous] += 1
        if not made.ambiguous and made.code != item.code and (item.code, made.code) not in MEANT_ALIKE:
            stolen.append(f"{item.text!r} of {item.code} ({item.where}) is called {made.code}")
    assert not stolen, "\n".join(stolen)
    assert caught[True] > 3 * caught[False]


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
    assert rules.classify(text, None, CATALOG).code == code


def test_a_stack_trace_is_nobodys() -> None:
    trace = (
        'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\nZeroDivisionError: division by zero'
    )
    made = rules.classify(trace, None, CATALOG)
    assert made.ambiguous
    assert made.cause == "Unclassified signal: ZeroDivisionError: division by zero"
