"""What a new collaboration is made from (docs/specs/acp.md §1, §5)."""

from __future__ import annotations

import os
import pkgutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core import journal
from core.acp import history
from core.acp.model import DOCUMENTS, FORBIDDEN_FILES, LOG, PROTOCOL, Document, Event, Setup, read_setup
from core.acp.reader import HISTORY, to_document
from core.acp.store import encode_setup
from core.acp.vocabulary import say
from core.clock import Clock, stamp
from core.files import Root, explain, sha256
from core.finding import Finding, Refused, error
from core.lock import folder_lock

if TYPE_CHECKING:
    from core.acp.declare import Declaration

LANGUAGES = ("en", "fr", "ja", "it", "zh")


def cleaned(values: Sequence[str]) -> list[str]:
    """Trimmed, blanks dropped, repeats collapsed, order kept."""
    return list(dict.fromkeys(value.strip() for value in values if value.strip()))


def check_init(
    objective: str, participants: Sequence[str], gates: Sequence[str], language: str, schema: int = 1
) -> list[Finding]:
    """What is missing or wrong in the answers for a new collaboration, its deliverables aside."""
    found: list[Finding] = []
    if not objective.strip():
        found.append(error("objective_blank", "--objective must not be blank", None, "--objective"))
    if not cleaned(participants):
        found.append(
            error("participant_missing", "at least one non-blank --participant is required", None, "--participant")
        )
    elif schema >= 2 and len(cleaned(participants)) < 2:
        cause = "at least two non-blank --participant values are required"
        found.append(error("participant_missing", cause, None, "--participant"))
    if not cleaned(gates):
        found.append(error("gate_missing", "at least one non-blank --completion is required", None, "--completion"))
    for gate in cleaned(gates):
        for name in FORBIDDEN_FILES:
            if name in gate:
                cause = f"completion gate must not reference obsolete file {name}"
                found.append(error("gate_obsolete", cause, None, "--completion"))
        if "\n" in gate or "\r" in gate:
            found.append(error("gate_multiline", "a completion gate must be one line", None, "--completion"))
    for name in cleaned(participants):
        if not name.isprintable() or " - " in name:
            cause = f"participant {name!r} must be printable and must not contain ' - ', which review headings use"
            found.append(error("participant_malformed", cause, None, "--participant"))
    for flag, values in (("--objective", [objective]), ("--participant", participants), ("--completion", gates)):
        for value in values:
            if "\0" in value or any(0xD800 <= ord(char) <= 0xDFFF for char in value):
                found.append(error("text_not_utf8", f"{flag} is not valid UTF-8 text", None, flag))
                break
    if language not in LANGUAGES:
        cause = f"there are no templates in {language!r}; there are {', '.join(LANGUAGES)}"
        found.append(error("language_unknown", cause, None, "--language"))
    return found


def render(name: str, language: str, values: dict[str, str], schema: int = 1) -> str:
    """A template with its `{{places}}` filled once; what is filled in is not looked at again.

    Lines between `{{if v1}}` or `{{if v2}}` and `{{end}}` stand for that schema only.
    """
    data = pkgutil.get_data("collab_templates", f"{language}/{name}")
    kept, wanted = [], True
    for line in (data or b"").decode("utf-8").splitlines(keepends=True):
        if line.startswith("{{if "):
            wanted = line.strip() == f"{{{{if v{schema}}}}}"
        elif line.startswith("{{end}}"):
            wanted = True
        elif wanted:
            kept.append(line)
    pieces = "".join(kept).split("{{")
    made = [pieces[0]]
    for piece in pieces[1:]:
        key, _, rest = piece.partition("}}")
        made.append(values.get(key, "{{" + key + "}}") + rest)
    return "".join(made)


def check(
    path: Path,
    objective: str,
    participants: Sequence[str],
    gates: Sequence[str],
    language: str,
    declared: Declaration | None = None,
) -> list[Finding]:
    """Everything that is missing or wrong in the answers for a new collaboration at `path`; looks at files."""
    found = check_init(objective, participants, gates, language, 1 if declared is None else 2)
    if declared is not None:
        from core.acp import declare

        found += declare.findings(declared, path)
        for name in FORBIDDEN_FILES:
            if name in declared.name or name in declared.dir:
                cause = f"completion gate must not reference obsolete file {name}"
                found.append(error("gate_obsolete", cause, None, "--primary-deliverable-file"))
    return found


def initialize(
    path: Path,
    objective: str,
    participants: Sequence[str],
    gates: Sequence[str],
    clock: Clock,
    language: str = "en",
    extra: dict[str, bytes] | None = None,
    notes: str = "",
    previous: Path | None = None,
    declared: Declaration | None = None,
    before: Callable[[Root], None] | None = None,
) -> None:
    """Create every file of a collaboration, v2 when deliverables are declared, and append `initialized`.

    `extra` are documents that replace the templates, `notes` are lines added to README.md, `previous` is the round
    before, which the sidecar remembers; `before` writes further files first. Raises Refused and writes nothing when
    an answer is wrong or the folder already holds a protocol.json.
    """
    found = check(path, objective, participants, gates, language, declared)
    if found:
        raise Refused(*found)
    people, wanted = cleaned(participants), cleaned(gates)
    now = stamp(clock.now())
    setup: dict[str, Any] = {
        "objective": objective.strip(),
        "participants": [{"id": name} for name in people],
        "completionGates": wanted,
        "currentPhase": "drafting",
        "proposalOwner": people[0],
        "waitingFor": [people[0]],
        "createdAt": now,
        "updatedAt": now,
        **(declared.keys(people[0], wanted) if declared is not None else {}),
    }
    agreed = read_setup(encode_setup(setup))[0]
    files = documents(setup, agreed, language)
    files["README.md"] += notes.encode("utf-8", "surrogateescape")
    files.update(extra or {})
    event = {
        "seq": 1,
        "from": people[0],
        "event": "initialized",
        "at": now,
        "summary": say(language, "Collaboration initialized."),
        "doc": PROTOCOL,
    }
    if os.path.exists(path / PROTOCOL):
        raise Refused(exists_finding(path))
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise Refused(explain(exc, str(path))) from None
    with Root(path) as root, folder_lock(root):
        if root.exists(PROTOCOL):
            raise Refused(exists_finding(path))
        line = journal.encode(event)
        if before is not None:
            before(root)
        # protocol.json makes a folder a collaboration, so it comes last: a crash before leaves none.
        for name, data in files.items():
            root.create(name, data)
        attributes = pkgutil.get_data("collab_templates", "gitattributes") or b""
        root.create(".gitattributes", attributes)
        drafts = _begin_deliverables(path, root, agreed, declared)
        _begin_log(root, line)
        # A document that stood there already is kept, so what is remembered is what is there.
        found_there = [*(to_document(root.read(name)) for name in DOCUMENTS), *drafts]
        for document in found_there:
            if document.data is not None:
                history.keep(root, document.data)
        digests = history.digests(found_there, setup)
        record = history.make(Event.read(event), len(line), sha256(line), digests)
        if previous is not None:
            record["previous"] = str(previous)
        root.replace(HISTORY, journal.encode(record))
        root.replace(PROTOCOL, encode_setup(setup))


def documents(raw: dict[str, Any], agreed: Setup | None, language: str) -> dict[str, bytes]:
    """README.md and the five documents of a new collaboration, in a language."""
    if agreed is None:
        return {}
    objective = raw.get("objectiveGates", raw["completionGates"])
    generated = [text for text in agreed.gates if text not in objective]
    declared = agreed.deliverables
    values = {
        "objective": agreed.objective,
        "participants": "\n".join(f"- `{name}`" for name in agreed.participants),
        "gates": "\n".join(f"- {gate}" for gate in objective),
        "gate_checks": "\n".join(f"- [ ] {gate}" for gate in objective),
        "generated_checks": "\n".join(f"- [ ] {gate}" for gate in generated),
        "ref": declared.primary_ref if declared is not None else "",
        "type": declared.primary.type if declared is not None else "",
    }
    return {name: render(name, language, values, agreed.schema).encode() for name in ("README.md", *DOCUMENTS)}


def _begin_deliverables(path: Path, root: Root, agreed: Setup | None, declared: Declaration | None) -> list[Document]:
    """Write the files that are not there yet, and those that are given; returns them as they are then."""
    if agreed is None or agreed.deliverables is None or declared is None:
        return []
    from core.acp import declare
    from core.acp.place import deliverables_root

    made = []
    with deliverables_root(path, agreed, root) as (base, prefix):
        for item in (agreed.deliverables.primary, *agreed.deliverables.supporting):
            name, given = f"{prefix}/{item.file}", declared.contents.get(item.file)
            if given is not None:
                base.replace(name, given)
            else:
                base.create(name, declare.begin(item, agreed.objective))
            made.append(to_document(base.read(name), agreed.deliverables.ref(item.file)))
    return made


def _begin_log(root: Root, line: bytes) -> None:
    """Write the first event; a log of somebody else's is never overwritten, one of an interrupted `init` is."""
    log = journal.read(root, LOG)
    events = [item.record.get("event") if item.record else None for item in log.lines]
    if root.exists(LOG) and (log.problem is not None or events not in ([], ["initialized"])):
        cause = f"the folder holds {LOG} with {len(events)} lines but no {PROTOCOL}; nothing is overwritten"
        raise Refused(error("log_exists", cause, None, LOG))
    root.replace(LOG, line)


def exists_finding(path: Path) -> Finding:
    """The refusal of `init` on a folder that is a collaboration already."""
    cause = "collaboration folder already contains protocol.json; use --resume to acknowledge it"
    return error("collaboration_exists", cause, None, str(path))
