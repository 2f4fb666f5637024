"""Valid documents that the tests of governance change."""

from __future__ import annotations

import json
from typing import Any

from core.triage.model import Catalog
from core.triage.rules import make_catalog

GOAL = "sha256:" + "a" * 64
OTHER = "sha256:" + "b" * 64
ENTRY = {
    "code": "press_jam",
    "layer": "press",
    "cause": "Paper is stuck.",
    "match": ["paper jam"],
    "next_command": None,
    "recoverable": True,
    "not_this": [],
}
CATALOG: Catalog = make_catalog("c.json", {"schema": "triage_error.catalog.v1", "codes": [ENTRY]})


def envelope(receipt_id: str = "rc-1", **more: Any) -> dict[str, Any]:
    made = {
        "schema": "pi.receipt_envelope.v1",
        "receipt_id": receipt_id,
        "payload_schema": "shop.order.v1",
        "producer": "desk",
        "emitted_at": "2026-09-01T12:00:00Z",
        "goal_hash": GOAL,
        "payload": {"schema": "shop.order.v1"},
    }
    return {**made, **more}


def ref(receipt_id: str = "rc-1", **more: Any) -> dict[str, Any]:
    return {"receipt_id": receipt_id, "expected_schema": "shop.order.v1", "expected_producer": "desk", **more}


def status(state: str = "needs_human", **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"schema": "pi.agent_status.v1", "goal": "ship", "changed": ["a page"], "state": state}
    if state == "needs_human":
        made["needs_human"] = {"action": "sign", "reason": "only the editor may"}
    return {**made, **more}


def done(*proof: str, command: str = "make proof", result: str = "12 sheets clean", **more: Any) -> dict[str, Any]:
    return status("done", verified=[{"command": command, "result": result}], proof=list(proof), **more)


def goal(**more: Any) -> dict[str, Any]:
    made = {
        "schema": "shame.immutable_goal.v1",
        "goal_id": "spring-1",
        "goal_hash": "sha256:6fe1ede64e25d2bc817a12ca2f5bb5d2bd86937e962d399b9e56305768a62deb",
        "outcome": "Ship the spring catalogue, été compris.",
        "primary_proof": {"command": "make proof", "expected": "12 sheets clean"},
        "completion_criteria": ["every page proofed"],
        "allowed_scope": ["pages/**"],
        "forbidden_drift": ["no new fonts"],
        "retry_stop_rule": {"attempts_per_blocker": 2, "stop_condition": "ask the editor"},
    }
    return {**made, **more}


def data(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")
