"""Whether a plan's record is what it should be (docs/specs/delegation.md §8). Reads, runs nothing, mends nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from core.delegation import canon, reader
from core.delegation import place as places
from core.delegation.contract import Chain, Revision
from core.delegation.events import form_problem
from core.delegation.model import JOURNAL, MANIFEST, MANIFEST_URLS, Manifest
from core.delegation.place import Place
from core.delegation.progress import Entry, Progress, evolve, ordering, seq_of, status, unlawful
from core.files import DOCUMENT_CAP, Root
from core.finding import Finding, Refused, Severity

WARNINGS: Final = frozenset(
    {"journal-torn", "evidence-missing", "result-changed", "result-missing", "delegation-open-done"}
)
Spot = int | str


def code_of(rule: str) -> str:
    """The failure code of a rule."""
    return f"plan_{rule.replace('-', '_')}"


@dataclass
class Report:
    """What was found, by rule: `rules` holds seqs, line numbers or file names."""

    rules: dict[str, list[Spot]] = field(default_factory=dict)
    findings: list[tuple[str, Finding]] = field(default_factory=list)

    def add(self, rule: str, spot: Spot, cause: str, where: str | None = None) -> None:
        self.rules.setdefault(rule, []).append(spot)
        severity: Severity = "warning" if rule in WARNINGS else "error"
        self.findings.append((rule, Finding(code_of(rule), severity, cause, None, where)))

    def take(self, rule: str, finding: Finding) -> None:
        """A finding of another system about this plan."""
        self.rules.setdefault(rule, []).append(finding.where or "")
        self.findings.append((rule, finding))

    @property
    def exit(self) -> int:
        """0 valid, 1 warnings only, 2 errors."""
        if any(finding.severity == "error" for _, finding in self.findings):
            return 2
        return 1 if self.rules else 0

    def as_json(self) -> dict[str, Any]:
        """The document of `verify -o json`."""
        return {
            "ok": self.exit == 0,
            "exit": self.exit,
            "rules": self.rules,
            "findings": [finding.as_json() for _, finding in self.findings],
        }


def verify(place: Place) -> Report:
    """Check contract, manifest, journal, delegations and evidence of a plan."""
    report = Report()
    try:
        record = reader.read(place, keep=True)
    except Refused as exc:
        found = exc.findings[0]
        rule = "contract-invalid" if found.code == "contract_invalid" else "journal-damaged"
        report.add(rule, found.where or str(place.plan), found.cause, found.where)
        return report
    _manifest(place, record.chain, report)
    _damage(record, report)
    _Walk(place, record.chain, report).over(record.entries)
    live = record.chain.live
    if live.id not in record.progress.approvals:
        report.add("not-approved", live.name, f"nobody approved the live contract {live.id[:12]}", live.name)
    for known in record.progress.delegations.values():
        latest = known.sound_latest
        task = str(latest["task"]) if latest is not None and latest["state"] == "launched" else None
        if task in live.tasks and status(record.progress, live, task or "") == "completed":
            seq = seq_of(known.latest) or 0
            report.add(
                "delegation-open-done",
                seq,
                f"{known.id} is still open, although its task is completed: {task}",
                JOURNAL,
            )
    return report


def _manifest(place: Place, chain: Chain, report: Report) -> None:
    from pydantic import ValidationError

    with Root(place.plan) as root:
        content = root.read(MANIFEST, DOCUMENT_CAP)
    if content.data is None:
        cause = content.problem.cause if content.problem is not None else "missing"
        return report.add("manifest-mismatch", MANIFEST, cause, MANIFEST)
    try:
        made = Manifest.model_validate(canon.parse_json(content.data))
    except (ValueError, ValidationError):
        return report.add("manifest-mismatch", MANIFEST, f"{MANIFEST} is no manifest", MANIFEST)
    live = chain.live
    for wrong, cause in (
        (made.schema_ != MANIFEST_URLS[live.generation], f"{MANIFEST} is of another generation than the contract"),
        (made.plan != live.plan, f"{MANIFEST} names the plan {made.plan}, the contract {live.plan}"),
        (made.contract.id not in chain.by_id, f"{MANIFEST} points at no revision of the contract"),
    ):
        if wrong:
            return report.add("manifest-mismatch", MANIFEST, cause, MANIFEST)
    return None


def _damage(record: reader.Record, report: Report) -> None:
    for item in record.damaged:
        spot: Spot = item.line if item.file == JOURNAL else item.file
        report.add("journal-damaged", spot, item.sentence, item.file)
    torn = record.torn
    if torn is not None:
        report.add("journal-torn", torn.line, f"{torn.sentence}; the next writer cuts it", JOURNAL)
    elif record.unframed:
        report.add("journal-torn", JOURNAL, "the last line lacks its newline; the next writer restores it", JOURNAL)


class _Walk:
    """One pass over all events; what is known before an event judges it."""

    def __init__(self, place: Place, chain: Chain, report: Report) -> None:
        self._place, self._chain, self._report = place, chain, report
        self._before = Progress(chain)
        self._seq = 0

    def over(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self._event(entry)
            evolve(self._before, entry.event)

    def _event(self, entry: Entry) -> None:
        event, add = entry.event, self._report.add
        seq = seq_of(event)
        spot: Spot = seq if seq is not None else entry.line
        place = f"{entry.file}, line {entry.line}"
        if seq is not None:
            if seq <= self._seq:
                add(
                    "seq-order",
                    spot,
                    f"{place}: seq {seq} stands where a later one was due, after {self._seq}",
                    entry.file,
                )
            self._seq = max(self._seq, seq)
        judge = self._chain.judge(event.get("contract_id"))
        problem = form_problem(event, self._chain.live.generation) or _belongs(event, judge)
        if problem is not None:
            add("event-invalid", spot, f"{place}: {problem}", entry.file)
        known = self._chain.cited(event.get("contract_id"))
        if known is None and problem is None:
            add("contract-unknown", spot, f"{place}: it cites a contract outside the chain", entry.file)
        task = event.get("task")
        if isinstance(task, str) and task not in judge.tasks:
            add("task-unknown", spot, f"{place}: {task[:80]} is no task of the contract", entry.file)
        if event.get("type") == "observation" and event.get("trust") == "observed":
            add("evidence-minted", spot, f"{place}: an observation is never observed", entry.file)
        if problem is None:
            self._well_formed(event, spot, place)

    def _well_formed(self, event: Mapping[str, Any], spot: Spot, place: str) -> None:
        pointer = event.get("evidence_path")
        if event.get("trust") in ("observed", "imported") and places.evidence(self._place, str(pointer)) is None:
            self._report.add("evidence-missing", spot, f"{place}: the evidence is gone: {pointer}", str(pointer))
        if event["type"] == "delegation":
            self._delegation(event, spot)

    def _delegation(self, event: Mapping[str, Any], spot: Spot) -> None:
        name = event["delegation_id"]
        for rule in ordering(self._before.delegations.get(name), event):
            self._report.add(rule, spot, f"{name}: {_ORDER[rule]}", JOURNAL)
        if event["state"] == "launched":
            reason = self._unlawful(event)
            if reason is not None:
                self._report.add("delegation-unlawful", spot, f"{name}: {reason}", JOURNAL)
        elif event.get("result_path") is not None and event.get("result_digest") is not None:
            self._result(event, spot)

    def _unlawful(self, event: Mapping[str, Any]) -> str | None:
        contract = self._chain.cited(event["contract_id"])
        if contract is None:
            return None
        return unlawful(self._before, contract, event)

    def _result(self, event: Mapping[str, Any], spot: Spot) -> None:
        path = event["result_path"]
        now = places.hash_result(self._place, path)
        if now is None:
            self._report.add("result-missing", spot, f"{event['delegation_id']}: the result is gone: {path}", path)
        elif now != event["result_digest"]:
            self._report.add(
                "result-changed", spot, f"{event['delegation_id']}: {path} is not the result that was collected", path
            )


_ORDER: Final = {
    "delegation-no-launch": "it ends before or without a launch",
    "delegation-relaunched": "it is launched a second time",
    "delegation-second-end": "it ends a second time",
    "delegation-drift": "its task, transport or via differs from the launch",
}


def _belongs(event: Mapping[str, Any], contract: Revision) -> str | None:
    """What an event's form asks of the plan and of its task's gate_intent."""
    if event["plan"] != contract.plan:
        return f"event.plan is not {contract.plan}"
    if event["type"] != "gate_run" or event["task"] not in contract.tasks:
        return None
    if event["criterion"] not in contract.intents(event["task"]):
        return f"event.criterion is not in the gate_intent of {event['task']}"
    return None
