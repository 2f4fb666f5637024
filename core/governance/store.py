"""Reading what decides: receipts and their references, the proofs of a done (docs/specs/governance.md §3, §4).

Nothing here writes. Links are not followed, and what cannot be read is a finding.
"""

from __future__ import annotations

import codecs
import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from core.files import Root
from core.finding import Finding, Refused, error, errors, warning
from core.governance import rules
from core.governance.hashing import ENVELOPE_SCHEMA, hash_string
from core.governance.model import STATUS_SCHEMA, AgentStatus, Envelope, Ref
from core.strict import CAP, at
from core.triage.model import Catalog

LINKS = ("http://", "https://", "sha256:")
TEXT_CAP = 200_000
_SCAN_CAP = 16 * 1024 * 1024
CHECKS = ("exists", "schema", "producer", "goal_hash", "digest")


@dataclass(frozen=True)
class Receipt:
    """A file that says it is a receipt. `envelope` is None when it is not a valid one."""

    file: str
    id: Any
    digest: str
    envelope: Envelope | None
    parents: tuple[str, ...]
    """The ids that it refers to, valid or not."""
    findings: tuple[Finding, ...] = ()


def lenient(data: bytes) -> dict[str, Any] | None:
    """A JSON object from observed bytes, or None; a repeated key's last value counts."""
    try:
        value = json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def walk(folder: Path, suffix: str) -> list[str]:
    """Paths of all regular files below a folder whose name ends so, sorted; links are not followed."""
    found, waiting = [], [""]
    while waiting:
        inside = waiting.pop()
        try:
            with os.scandir(folder / inside) as listing:
                entries = list(listing)
        except OSError:
            continue
        for entry in entries:
            path = f"{inside}/{entry.name}" if inside else entry.name
            if entry.is_dir(follow_symlinks=False):
                waiting.append(path)
            elif entry.name.endswith(suffix) and entry.is_file(follow_symlinks=False):
                found.append(path)
    return sorted(found)


def receipts(folder: Path, catalog: Catalog) -> list[Receipt]:
    """Every receipt anywhere below a folder. Raises Refused (`file_unreadable`) when there is no such folder."""
    return [_receipt(path, data, raw, catalog) for path, data, raw in _documents(folder, ENVELOPE_SCHEMA)]


def _receipt(path: str, data: bytes, raw: Mapping[str, Any], catalog: Catalog) -> Receipt:
    made, _, findings = rules.envelope(path, data, catalog)
    refs = raw.get("parent_refs")
    items = [item.get("receipt_id") for item in refs if isinstance(item, dict)] if isinstance(refs, list) else []
    parents = tuple(item for item in items if isinstance(item, str))
    return Receipt(path, raw.get("receipt_id"), hash_string(data), made, parents, tuple(findings))


@dataclass(frozen=True)
class Kept:
    """A status that somebody left beside the receipts; `made` is None when it is not valid.

    `since` is when the file was last written: a status says no time of its own.
    """

    file: str
    digest: str
    made: AgentStatus | None
    since: datetime | None
    findings: tuple[Finding, ...] = ()


def statuses(folder: Path, catalog: Catalog, root: Path) -> list[Kept]:
    """Every status anywhere below a folder; proofs are looked up in `root`. Raises Refused (`file_unreadable`)."""
    return [_kept(folder, path, data, catalog, root) for path, data, _ in _documents(folder, STATUS_SCHEMA)]


def _kept(folder: Path, path: str, data: bytes, catalog: Catalog, root: Path) -> Kept:
    made, _, findings = rules.status(path, data, catalog)
    if made is not None:
        findings = judged(made, path, root, catalog)
    kept = made if not errors(findings) else None
    return Kept(path, hash_string(data), kept, _written(folder / path), tuple(findings))


class Shelf:
    """The receipts and statuses below a folder, for whoever looks again and again: only what changed is read anew."""

    def __init__(self, folder: Path, root: Path) -> None:
        """Proofs of statuses are looked up in `root`. Reads nothing yet."""
        self._folder, self._root = folder, root
        self._catalog: Catalog | None = None
        self._known: dict[str, tuple[tuple[int, ...], Receipt | bytes | None]] = {}

    def look(self, catalog: Catalog) -> tuple[list[Receipt], list[Kept]]:
        """Both, in the order of the files. Raises Refused (`file_unreadable`) when there is no such folder."""
        if catalog is not self._catalog:
            self._catalog, self._known = catalog, {}
        with _opened(self._folder) as root:
            before, self._known = self._known, {}
            for path in walk(self._folder, ".json"):
                mark, known = _mark(self._folder / path), before.get(path)
                same = known is not None and mark is not None and known[0] == mark
                self._known[path] = (
                    known if same and known is not None else (mark or (), self._read(root, path, catalog))
                )
        items = [(path, item) for path, (_, item) in self._known.items()]
        return (
            [item for _, item in items if isinstance(item, Receipt)],
            # What a status is worth depends on other files too.
            [_kept(self._folder, path, item, catalog, self._root) for path, item in items if isinstance(item, bytes)],
        )

    def _read(self, root: Root, path: str, catalog: Catalog) -> Receipt | bytes | None:
        data = root.read(path, CAP).data
        raw = lenient(data) if data is not None else None
        if data is None or raw is None:
            return None
        if raw.get("schema") == ENVELOPE_SCHEMA:
            return _receipt(path, data, raw, catalog)
        return data if raw.get("schema") == STATUS_SCHEMA else None


def _mark(path: Path) -> tuple[int, ...] | None:
    try:
        info = os.lstat(path)
    except (OSError, ValueError):
        return None
    return info.st_ino, info.st_size, info.st_mtime_ns


def _written(path: Path) -> datetime | None:
    try:
        return datetime.fromtimestamp(os.lstat(path).st_mtime, UTC)
    except (OSError, ValueError, OverflowError):
        return None


def _documents(folder: Path, schema: str) -> Iterator[tuple[str, bytes, dict[str, Any]]]:
    """(path, bytes, object) of every JSON document of a schema below a folder. Raises Refused."""
    with _opened(folder) as root:
        for path in walk(folder, ".json"):
            data = root.read(path, CAP).data
            raw = lenient(data) if data is not None else None
            if data is not None and raw is not None and raw.get("schema") == schema:
                yield path, data, raw


def _opened(folder: Path) -> Root:
    try:
        return Root(folder)
    except Refused as exc:
        cause = f"the receipts in {folder} cannot be read: {exc.findings[0].cause}"
        raise Refused(error("file_unreadable", cause, None, str(folder))) from None


@dataclass(frozen=True, slots=True)
class Parent:
    """A reference and how it was checked; `file` is relative to the receipts' folder."""

    receipt_id: str
    file: str | None
    checks: Mapping[str, str]

    @property
    def trusted(self) -> bool:
        return all(value in ("pass", "not_given") for value in self.checks.values())

    def as_json(self) -> dict[str, Any]:
        return {
            "receipt_id": self.receipt_id,
            "file": self.file,
            "checks": dict(self.checks),
            "trusted": self.trusted,
        }


@dataclass(frozen=True, slots=True)
class Resolved:
    """Whether a receipt may be trusted, reference by reference."""

    receipt_id: str
    parents: tuple[Parent, ...]
    findings: tuple[Finding, ...]

    @property
    def trusted(self) -> bool:
        return not errors(self.findings)


class Known:
    """The receipts of a folder by their ids, made once for all that refer to them."""

    def __init__(self, found: Iterable[Receipt]) -> None:
        self.by_id: dict[str, list[Receipt]] = {}
        for item in found:
            if isinstance(item.id, str) and item.id:
                self.by_id.setdefault(item.id, []).append(item)
        self.doubled = [receipt_id for receipt_id, items in self.by_id.items() if len(items) > 1]


@dataclass(frozen=True, slots=True)
class _Others:
    """The same without the envelope itself, which `own` is the hash of."""

    known: Known
    own: str

    def get(self, receipt_id: str) -> list[Receipt]:
        return [item for item in self.known.by_id.get(receipt_id, ()) if item.digest != self.own]


def resolve(made: Envelope, name: str, own: str, found: Sequence[Receipt] | Known) -> Resolved:
    """Check every reference of a valid envelope against the receipts of a folder. All checks are made.

    `own` is the hash of the envelope's bytes: a receipt with the very same bytes is the envelope itself.
    """
    by_id = _Others(found if isinstance(found, Known) else Known(found), own)
    findings: list[Finding] = []
    parents = [
        _parent(made, ref, at(name, ("parent_refs", number)), by_id, findings)
        for number, ref in enumerate(made.parent_refs)
    ]
    cycle = _cycle(made, by_id)
    if cycle is not None:
        cause = f"the references go in a circle: {' -> '.join(cycle)}"
        findings.append(error("parent_ref_cycle", cause, None, at(name, ("parent_refs",))))
    findings += _duplicates(made, name, by_id)
    return Resolved(made.receipt_id, tuple(parents), tuple(findings))


def _parent(made: Envelope, ref: Ref, where: str, by_id: _Others, findings: list[Finding]) -> Parent:
    checks = dict.fromkeys(CHECKS, "not_run")
    named = by_id.get(ref.receipt_id)
    file = named[0].file if len(named) == 1 else None
    valid = [item for item in named if item.envelope is not None]

    def fail(check: str, code: str, cause: str) -> None:
        checks[check] = "fail"
        findings.append(error(code, cause, None, where))

    if ref.receipt_id == made.receipt_id:
        fail("exists", "parent_ref_self", f"{ref.receipt_id} refers to itself")
        return Parent(ref.receipt_id, None, checks)
    if not named:
        fail("exists", "parent_ref_receipt_missing", f"there is no receipt {ref.receipt_id}")
    elif len(named) > 1:
        files = ", ".join(item.file for item in named)
        fail("exists", "receipt_id_duplicate", f"{len(named)} receipts have the id {ref.receipt_id}: {files}")
    elif not valid:
        reason = named[0].findings[0].cause if named[0].findings else "it is malformed"
        cause = f"the receipt {ref.receipt_id} in {file} is no valid receipt: {reason}"
        fail("exists", "parent_ref_receipt_invalid", cause)
    if checks["exists"] == "fail" or valid[0].envelope is None:
        return Parent(ref.receipt_id, file, checks)
    parent, label = valid[0].envelope, f"the receipt {ref.receipt_id}"
    checks = {**dict.fromkeys(CHECKS, "pass"), "digest": "pass" if ref.digest is not None else "not_given"}
    if parent.payload_schema != ref.expected_schema:
        cause = f"{label} holds {parent.payload_schema!r}; its child expects the schema {ref.expected_schema!r}"
        fail("schema", "parent_ref_schema_mismatch", cause)
    if parent.producer != ref.expected_producer:
        cause = f"{label} is of {parent.producer!r}; its child expects the producer {ref.expected_producer!r}"
        fail("producer", "parent_ref_producer_mismatch", cause)
    if parent.goal_hash is None or parent.goal_hash != made.goal_hash:
        cause = f"{label} serves {parent.goal_hash or 'no goal'}; its child expects the goal {made.goal_hash}"
        fail("goal_hash", "parent_ref_goal_hash_mismatch", cause)
    if ref.digest is not None and valid[0].digest != ref.digest:
        fail("digest", "parent_ref_digest_mismatch", f"{label} in {file} has other bytes than were referred to")
    return Parent(ref.receipt_id, file, checks)


def _duplicates(made: Envelope, name: str, by_id: _Others) -> list[Finding]:
    """Ids that more than one receipt has; those that a reference met are said already."""
    referred = {ref.receipt_id for ref in made.parent_refs}
    found = []
    for receipt_id in dict.fromkeys((*by_id.known.doubled, made.receipt_id)):
        items = by_id.get(receipt_id)
        if not items:
            continue
        files = ", ".join(item.file for item in items)
        if receipt_id == made.receipt_id:
            cause = f"another receipt has the id {receipt_id} as well: {files}"
            found.append(error("receipt_id_duplicate", cause, None, at(name, ("receipt_id",))))
        elif len(items) > 1 and receipt_id not in referred:
            cause = f"{len(items)} receipts have the id {receipt_id}: {files}"
            found.append(warning("receipt_id_duplicate", cause, None, items[1].file))
    return found


def _cycle(made: Envelope, by_id: _Others) -> list[str] | None:
    """A path of ids that starts here and comes back to itself, or None. A parent met twice is no circle."""
    own = [ref.receipt_id for ref in made.parent_refs if ref.receipt_id != made.receipt_id]

    def after(receipt_id: str) -> Iterator[str]:
        if receipt_id == made.receipt_id:
            return iter(own)
        return iter([parent for item in by_id.get(receipt_id) for parent in item.parents])

    path, steps = [made.receipt_id], [after(made.receipt_id)]
    standing, done = {made.receipt_id}, set[str]()
    while steps:
        following = next(steps[-1], None)
        if following is None:
            steps.pop()
            standing.discard(path[-1])
            done.add(path.pop())
        elif following in standing:
            return [*path[path.index(following) :], following]
        elif following not in done:
            path.append(following)
            standing.add(following)
            steps.append(after(following))
    return None


@dataclass(frozen=True, slots=True)
class _Proof:
    """A local proof as read: its text, and its JSON object when it is one."""

    text: str
    data: bytes | None


def proof_findings(made: AgentStatus, root: Path, catalog: Catalog, name: str) -> list[Finding]:
    """What the proofs of a done say: there, inside the workspace, ready, and backing what was verified."""
    found: list[Finding] = []
    texts: list[str] = []
    local = False
    for number, proof in enumerate(made.proof):
        if proof.startswith(LINKS):
            continue
        local = True
        where = at(name, ("proof", number))
        read = _read_proof(root, proof, where)
        if isinstance(read, Finding):
            found.append(read)
            continue
        texts.append(read.text)
        fault = _known_proof(read, catalog) if read.data is not None else None
        if fault is not None:
            found.append(error(fault[0], f"{proof} proves nothing: {fault[1]}", None, where))
    together = "\n".join(texts)
    for number, item in enumerate(made.verified if texts else []):
        if item.command not in together or item.result not in together:
            cause = f"no proof shows {item.command!r} with {item.result!r}"
            found.append(error("verified_not_backed_by_proof", cause, None, at(name, ("verified", number))))
    if made.proof and not local:
        cause = "the proofs are links only; nothing was checked here"
        found.append(warning("proof_not_checked", cause, None, at(name, ("proof",))))
    return found


def _read_proof(root: Path, proof: str, where: str) -> _Proof | Finding:
    try:
        base = os.path.realpath(root)
        real = os.path.realpath(os.path.join(base, proof))
        inside = real == base or real.startswith(base.rstrip("/") + "/")
        if not inside:
            return error("proof_path_outside_root", f"{proof} leaves the workspace", None, where)
        info = os.stat(real)
        if stat.S_ISDIR(info.st_mode):
            return _Proof("\n".join(sorted(os.listdir(real))), None)
        if not stat.S_ISREG(info.st_mode):
            return error(
                "proof_path_missing", f"a proof is not there: {proof} is neither a file nor a folder", None, where
            )
        with Root(Path(base)) as folder:
            relative = os.path.relpath(real, base)
            return _Proof(_text(folder, relative), folder.read(relative, CAP).data)
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
        return error("proof_path_missing", f"a proof is not there: {proof} ({reason})", None, where)
    except Refused as exc:
        return error("proof_path_missing", f"a proof cannot be read: {proof} ({exc})", None, where)


def _text(root: Root, name: str) -> str:
    """The beginning of a file as text, undecodable bytes dropped."""
    decoder = codecs.getincrementaldecoder("utf-8")("ignore")
    text, read = "", 0
    for piece in root.pieces(name, 0):
        text += decoder.decode(piece)
        read += len(piece)
        if len(text) >= TEXT_CAP or read >= _SCAN_CAP:
            break
    return text[:TEXT_CAP]


def _known_proof(read: _Proof, catalog: Catalog) -> tuple[str, str] | None:
    """(code, why) when a proof of a known schema says that nothing is proved."""
    data = read.data or b""
    raw = lenient(data)
    match raw.get("schema") if raw is not None else None:
        case "agentic_evals.report.v2":
            return _evaluation(raw or {})
        case "lazy_report_shame.report_check.v2":
            decision = (raw or {}).get("decision")
            return None if decision == "pass" else ("status_check_proof_not_pass", f"its decision is {decision!r}")
        case "pi.receipt_envelope.v1":
            _, _, faults = rules.envelope("proof", data, catalog)
            return ("envelope_proof_invalid", faults[0].cause) if faults else None
        case "debugger.proof.v1":
            shown = any(key in (raw or {}) for key in ("breakpoints", "frames", "locals"))
            cause = "it holds neither breakpoints nor frames nor locals"
            return None if shown else ("debugger_proof_missing_runtime_evidence", cause)
    return None


def _evaluation(raw: Mapping[str, Any]) -> tuple[str, str] | None:
    counts = raw.get("outcome_counts", {})
    readiness = raw.get("readiness")
    if readiness != "READY":
        return "agentic_eval_proof_not_ready", f"its readiness is {readiness!r}"
    if not isinstance(counts, dict):
        return "agentic_eval_proof_not_ready", "its outcome_counts are no object"
    bad = [name for name in ("FAIL", "BLOCKED", "NOT_TESTED") if counts.get(name)]
    return ("agentic_eval_proof_not_ready", f"it counts {', '.join(bad)}") if bad else None


def judged(made: AgentStatus, name: str, root: Path, catalog: Catalog) -> list[Finding]:
    """Everything that binds the fields of a status, its proofs included."""
    found = rules.status_findings(made, name)
    return [*found, *proof_findings(made, root, catalog, name)] if made.state == "done" else found
