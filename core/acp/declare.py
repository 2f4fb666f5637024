"""Declaring deliverables: what `init` is told, the gates and the file that follow (docs/specs/acp.md §5, §7)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.acp import deliverables
from core.acp.model import DELIVERABLE_TYPES, REQUIRED_FILES, Deliverable, Deliverables, Document, Setup, read_setup
from core.acp.place import deliverables_root
from core.acp.reader import repo_root, to_document
from core.files import Root, parts_of
from core.finding import Finding, Refused, error

_STATUS = re.compile(r"^Status:\s*(Draft|In Review|Frozen)\s*$", re.MULTILINE)
_OURS = frozenset({*REQUIRED_FILES, "README.md", ".gitattributes"})


@dataclass(frozen=True, slots=True)
class Declaration:
    """The deliverables of a new collaboration. `contents` (by file) replace templates and files that stand there.

    `supporting` and `attachments` are objects as protocol.json holds them.
    """

    type: str
    file: str = ""
    checks: Sequence[str] = ()
    mode: str = "internal"
    dir: str = "deliverables"
    repo_root: str | None = None
    supporting: Sequence[Mapping[str, Any]] = ()
    attachments: Sequence[Any] = ()
    co_authors: Sequence[Any] = ()
    contents: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The file, `<type>.md` when none was given."""
        return self.file or f"{self.type}.md"

    @property
    def checklist(self) -> list[str]:
        """The checks, trimmed, blanks and repeats dropped."""
        return list(dict.fromkeys(text.strip() for text in self.checks if text.strip()))

    def keys(self, owner: str, gates: Sequence[str]) -> dict[str, Any]:
        """What protocol.json holds beyond version 1; `gates` are those of the objective."""
        made: dict[str, Any] = {
            "protocol": "acp",
            "schemaVersion": 2,
            "objectiveGates": list(gates),
            "deliverables": {
                "mode": self.mode,
                "dir": self.dir,
                "owner": owner,
                "coAuthors": list(self.co_authors),
                "primary": {"type": self.type, "file": self.name, "checklist": self.checklist},
                "supporting": [dict(item) for item in self.supporting],
                "attachments": list(self.attachments),
            },
        }
        if self.mode == "external":
            made["repoRoot"] = self.repo_root
        ref = (_setup(made).deliverables or _NONE).ref(self.name)
        made["completionGates"] = [
            *({"source": "objective", "text": text} for text in gates),
            *({"source": "generated", "text": text} for text in generated_gates(self.type, ref)),
        ]
        return made


def _setup(raw: Mapping[str, Any]) -> Setup:
    from core.acp.store import encode_setup

    setup, problem = read_setup(encode_setup(raw))
    if setup is None:
        raise Refused(*((problem,) if problem is not None else ()))
    return setup


_NONE = Deliverables("internal", "deliverables", None, Deliverable("", ""), (), ())


def generated_gates(kind: str, ref: str) -> list[str]:
    """The six gates that a declared primary deliverable brings (docs/specs/acp.md §7)."""
    return [
        f"Primary deliverable exists: `{ref}`",
        f"Primary deliverable has required `{kind}` sections",
        "Every accepted decision has `Reflected in`",
        "Every accepted decision is reflected in the primary deliverable",
        "Primary deliverable status is `Frozen`",
        "Primary deliverable SHA-256 snapshot recorded",
    ]


def findings(made: Declaration, folder: Path) -> list[Finding]:
    """What is wrong with a declaration for this folder, which need not be there yet; looks at files, writes nothing."""
    found = form_findings(made)
    if found:
        return found
    setup = _setup(made.keys("", ()))
    problem = repo_root(folder, setup)[1] if made.mode == "external" else None
    if problem is not None:
        return [error("repo_root_wrong", f"--repo-root {made.repo_root}: {problem}", None, "--repo-root")]
    found = [item for item in deliverables.setup_findings(setup, None) if "completionGates" not in item.cause]
    if not found and setup.deliverables is not None:
        every = (setup.deliverables.primary, *setup.deliverables.supporting)
        found = [item for one in every if (item := place_finding(folder, setup, one, made.contents)) is not None]
    return found


def form_findings(made: Declaration) -> list[Finding]:
    """What is wrong with the answers themselves, each under its flag."""
    found: list[Finding] = []
    kind, name = "--primary-deliverable-type", "--primary-deliverable-file"
    if made.type not in DELIVERABLE_TYPES:
        cause = f"{made.type!r} is no deliverable type; there are {', '.join(DELIVERABLE_TYPES)}"
        return [error("deliverable_type_unknown", cause, None, kind)]
    if made.type == "custom" and not made.file.strip():
        found.append(error("deliverable_file_missing", f"custom deliverables require {name}", None, name))
    elif (fault := file_fault(made.name)) is not None:
        found.append(error("deliverable_file_malformed", f"primary deliverable {fault}", None, name))
    found += checks_findings(made.type, made.checks, "--primary-deliverable-check")
    if made.mode not in ("internal", "external"):
        cause = f"--deliverables-mode must be internal or external, not {made.mode!r}"
        found.append(error("deliverables_mode_unknown", cause, None, "--deliverables-mode"))
    if not made.dir.strip() or path_fault(made.dir, folder=True) is not None:
        cause = f"--deliverables-dir {made.dir!r} must be relative and must not contain .."
        found.append(error("deliverables_dir_malformed", cause, None, "--deliverables-dir"))
    if made.mode == "external" and not (made.repo_root or "").strip():
        cause = "--repo-root is required when --deliverables-mode external"
        found.append(error("repo_root_wrong", cause, None, "--repo-root"))
    elif made.mode == "external" and (made.repo_root or "").startswith("/"):
        cause = "--repo-root must be relative to the collaboration folder"
        found.append(error("repo_root_wrong", cause, None, "--repo-root"))
    elif made.mode == "internal" and made.repo_root:
        cause = "--repo-root is only allowed when --deliverables-mode external"
        found.append(error("repo_root_wrong", cause, None, "--repo-root"))
    return found


def checks_findings(kind: str, checks: Sequence[str], flag: str) -> list[Finding]:
    """A custom deliverable needs its sections named; each is one heading."""
    wanted = [text.strip() for text in checks if text.strip()]
    if kind == "custom" and not wanted:
        return [error("deliverable_check_missing", f"custom deliverables require at least one {flag}", None, flag)]
    bad = next((text for text in wanted if not text.isprintable()), None)
    cause = f"{bad!r} is no heading of one line"
    return [] if bad is None else [error("deliverable_check_malformed", cause, None, flag)]


def file_fault(name: str) -> str | None:
    """What is wrong with the file name of a deliverable."""
    if not name.endswith(".md") or not name.rpartition("/")[2].removesuffix(".md"):
        return f"file {name!r} must end with .md"
    return path_fault(name)


def path_fault(name: str, folder: bool = False) -> str | None:
    """What is wrong with a relative path; `.` is a folder too."""
    if deliverables.escapes(name):
        return f"file {name!r} must be relative and must not contain .."
    if not name.isprintable() or "`" in name or name != name.strip():
        return f"file {name!r} holds characters that no reference can hold"
    if parts_of(name) is None and not (folder and name.strip("./") == ""):
        return f"file {name!r} is no path"
    return None


def place_finding(folder: Path, setup: Setup, item: Deliverable, contents: Mapping[str, bytes]) -> Finding | None:
    """Whether the file may begin, or go on, where it is declared: nothing that stands there is overwritten."""
    declared = setup.deliverables
    if declared is None:
        return None
    ref = declared.ref(item.file)
    base = repo_root(folder, setup)[0] if declared.mode == "external" else folder.resolve()
    inside = _inside(folder, (base or folder) / declared.dir / item.file)
    if inside is not None and (inside in _OURS or inside.split("/")[0] == ".collab"):
        cause = f"{ref} would be the collaboration's own {inside}"
        return error("deliverable_place_taken", cause, None, "--primary-deliverable-file")
    document = look(folder, setup, item)
    if document.data is None:
        problem = document.problem
        return None if problem is None or problem.code in ("file_missing", "folder_missing") else problem
    if item.file in contents:
        return None
    faults = list(deliverables.content_findings(item, ref, document.text, frozen=False))
    if not faults:
        return None
    cause = f"{ref} is there already and is not overwritten, but {faults[0].cause}"
    return error("deliverable_place_taken", cause, None, "--primary-deliverable-file")


def _inside(folder: Path, file: Path) -> str | None:
    try:
        return file.resolve().relative_to(folder.resolve()).as_posix()
    except (OSError, RuntimeError, ValueError):
        return None


def look(folder: Path, setup: Setup, item: Deliverable) -> Document:
    """The file of a deliverable as it is now; a folder that is not there holds none."""
    ref = setup.deliverables.ref(item.file) if setup.deliverables is not None else item.file
    try:
        with Root(folder if folder.is_dir() or setup.deliverables is None else _nearest(folder)) as root:
            if not folder.is_dir() and (setup.deliverables is None or setup.deliverables.mode != "external"):
                return Document(ref, None, None, error("file_missing", f"missing {ref}", where=ref))
            with deliverables_root(folder, setup, root) as (base, prefix):
                return to_document(base.read(f"{prefix}/{item.file}"), ref)
    except Refused as exc:
        return Document(ref, None, None, exc.findings[0])


def _nearest(folder: Path) -> Path:
    """The nearest folder above that exists."""
    return next((one for one in folder.parents if one.is_dir()), Path("/"))


def begin(item: Deliverable, title: str) -> bytes:
    """A deliverable's file as it begins: status Draft, every section of its type there and empty."""
    lines = [f"# {' '.join(title.split())}", "", f"Type: `{item.type}`"]
    if "Status" not in item.sections:
        lines.append("Status: Draft")
    for name in item.sections:
        lines += ["", f"## {name}"]
        if name == "Status":
            lines += ["", "Status: Draft"]
    return ("\n".join(lines) + "\n").encode()


def with_status(data: bytes, status: str, name: str) -> bytes:
    """The same bytes with this status; without a `Status:` line they stay as they are. Raises Refused."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused(error("document_not_utf8", f"{name} is not UTF-8", None, name)) from None
    # A lone CR ends a line for readers of text, so it does here.
    match = _STATUS.search(text.replace("\r", "\n"))
    if match is None or match[1] == status:
        return data
    return (text[: match.start(1)] + status + text[match.end(1) :]).encode("utf-8")
