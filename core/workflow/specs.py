"""What lies in `workflows/` and `agents/`, read again only when it changed (docs/specs/workflows.md §1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from core.files import Root, Signature
from core.finding import Finding, warning
from core.workflow.layout import AGENTS, WORKFLOWS
from core.workflow.loader import Known, Loaded, load
from core.workflow.matrix import front_matter
from core.workflow.model import Profile

_CAP = 4 * 1024 * 1024


class ProfileSource(Protocol):
    """Where access profiles come from."""

    def __call__(self, name: str) -> Profile | None:
        """The profile of an agent, or None when we have none of that name."""
        ...

    def names(self) -> frozenset[str]:
        """Every agent that we have."""
        ...


class RootProfiles:
    """`agents/<name>.md` below a root."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._known: dict[str, tuple[Signature | None, Profile | None]] = {}
        self.problems: dict[str, Finding] = {}

    def __call__(self, name: str) -> Profile | None:
        if "/" in name or name.startswith("."):
            return None
        file = f"{AGENTS}/{name}.md"
        signature = self._root.signature(file)
        known = self._known.get(name)
        if known is not None and known[0] == signature:
            return known[1]
        profile = None
        self.problems.pop(file, None)
        data = self._root.read(file, _CAP).data if signature is not None else None
        if data is not None:
            profile, problem = front_matter(data.decode("utf-8", "replace"))
            if problem is not None:
                self.problems[file] = warning("E_YAML", f"{file}: {problem.cause}", None, file)
        self._known[name] = (signature, profile)
        return profile

    def names(self) -> frozenset[str]:
        listed = [name.removesuffix(".md") for name in self._root.names(AGENTS) if name.endswith(".md")]
        return frozenset(name for name in listed if self(name) is not None)


class FixedProfiles:
    """Profiles given once; with `everyone` every other name has that one."""

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        everyone: Profile | None = None,
        named: frozenset[str] = frozenset(),
    ) -> None:
        self._profiles = dict(profiles)
        self._everyone = everyone
        self._named = named

    def __call__(self, name: str) -> Profile | None:
        return self._profiles.get(name, self._everyone)

    def names(self) -> frozenset[str]:
        return frozenset(self._profiles) | (self._named if self._everyone is not None else frozenset())


class Specs:
    """The workflow files below a root."""

    def __init__(self, root: Root, known: Known, stems: bool = True) -> None:
        """`known`: which agents we have, for W_AGENT_UNKNOWN; `stems`: whether file names are compared."""
        self._root, self._known_agent, self._stems = root, known, stems
        self._loaded: dict[str, tuple[Signature | None, Loaded]] = {}

    def all(self) -> dict[str, Loaded]:
        """Every `workflows/*.yml` by its path, sorted."""
        made = {}
        for name in self._root.names(WORKFLOWS):
            if not name.endswith(".yml") or name.startswith("."):
                continue
            file = f"{WORKFLOWS}/{name}"
            signature = self._root.signature(file)
            known = self._loaded.get(file)
            if known is None or known[0] != signature:
                content = self._root.read(file, _CAP)
                text = (content.data or b"").decode("utf-8", "replace")
                loaded = load(text, file, name.removesuffix(".yml") if self._stems else None, self._known_agent)
                known = (content.signature, loaded)
                self._loaded[file] = known
            made[file] = known[1]
        return made

    def find(self, workflow: str) -> Loaded | None:
        """The file of a workflow: the one that bears its name, else the first that says so."""
        found = [item for item in self.all().values() if item.workflow == workflow]
        named = [item for item in found if item.file == f"{WORKFLOWS}/{workflow}.yml"]
        if not found:
            found = [item for item in self.all().values() if item.file == f"{WORKFLOWS}/{workflow}.yml"]
        return next(iter((*named, *found)), None)

    def hashes(self) -> dict[str, str | None]:
        """Workflow to the hash of its file now, None for a broken file."""
        made: dict[str, str | None] = {}
        for item in self.all().values():
            if item.workflow not in made or item.file == f"{WORKFLOWS}/{item.workflow}.yml":
                made[item.workflow] = item.hash
        return made

    def broken(self) -> dict[str, dict[str, object]]:
        """Files with errors: `{file: {workflow, digest, codes}}`."""
        return {
            item.file: {
                "workflow": item.workflow,
                "digest": item.digest,
                "codes": [found.code for found in item.findings if found.severity == "error"],
            }
            for item in self.all().values()
            if item.spec is None
        }
