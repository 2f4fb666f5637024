"""Addons: what carries a delegate, whether it is switched on, and whether it is here (docs/specs/delegation.md §6).

Descriptors are shipped or brought by the repository; the registry switches them on; only detection runs anything.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import ValidationError

from core.delegation import canon
from core.delegation.model import ABILITIES, ADDON_KEY, Descriptor, RegistryEntry, fault
from core.delegation.place import read_anywhere, read_within, within
from core.delegation.process import NotFound, run
from core.sanitize import clip, inert

DETECT_TIMEOUT: Final = 10.0
DESCRIPTOR_CAP: Final = 256 * 1024
CONFIG_CAP: Final = 4 * 1024 * 1024
INTERFACE_CAP: Final = 64 * 1024
PACK: Final = ".agents/skills/deepworkplan/addons"

Source = Literal["repository", "user"]
Origin = Literal["shipped", "repository"]


@dataclass(frozen=True, slots=True)
class Addon:
    """A key that somebody could enable. `descriptor` is None when it is invalid; `problem` then says why."""

    key: str
    origin: Origin
    descriptor: Descriptor | None
    problem: str | None = None

    @property
    def transport(self) -> str | None:
        return self.descriptor.transport if self.descriptor is not None else None


def check_descriptor(raw: Any, key: str, origin: Origin) -> Addon:
    """A descriptor document as an addon."""
    try:
        made = Descriptor.model_validate(raw)
    except ValidationError as exc:
        return Addon(key, origin, None, fault(exc, "descriptor"))
    problem = _descriptor_problem(made, key, origin)
    return Addon(key, origin, None if problem else made, problem)


def _descriptor_problem(made: Descriptor, key: str, origin: Origin) -> str | None:
    detect = made.detect
    by_path = detect.paths is not None
    if made.key != key:
        return "descriptor.key is not the name of its folder"
    if by_path == bool(detect.command):
        return "descriptor.detect needs either a command or paths"
    if detect.legacy_paths is not None and not by_path:
        return "descriptor.detect.legacy_paths goes with paths only"
    if origin == "repository" and "/" in detect.command.split(" ")[0]:
        return "descriptor.detect.command begins with a path; a repository's addon is found on PATH only"
    if made.transport is not None:
        if "subagents" not in made.provides_abilities:
            return "descriptor.provides_abilities lacks subagents, which a transport provides"
        if "agent_delegation" not in made.requires_grants:
            return "descriptor.requires_grants lacks agent_delegation, which a transport requires"
    return None


@cache
def shipped() -> Mapping[str, Addon]:
    """The addons of `catalog/transports/`, by key."""
    found = {}
    for item in sorted(resources.files("catalog").joinpath("transports").iterdir(), key=lambda one: one.name):
        if item.name.endswith(".json"):
            key = item.name.removesuffix(".json")
            found[key] = check_descriptor(canon.parse_json(item.read_bytes()), key, "shipped")
    return found


def packed(repo: Path) -> dict[str, Addon]:
    """The addons that a repository brings; they add keys and cannot redefine ours."""
    found = {}
    try:
        names = sorted(os.listdir(repo / PACK))
    except OSError:
        names = []
    for key in names:
        if ADDON_KEY.fullmatch(key) and key not in shipped() and within(repo, f"{PACK}/{key}/addon.json") is not None:
            found[key] = _load_packed(repo, key)
    return found


def _load_packed(repo: Path, key: str) -> Addon:
    content = read_within(repo, f"{PACK}/{key}/addon.json", DESCRIPTOR_CAP)
    if content.data is None:
        return Addon(key, "repository", None, "its addon.json cannot be read")
    try:
        return check_descriptor(canon.parse_json(content.data), key, "repository")
    except ValueError as exc:
        return Addon(key, "repository", None, f"its addon.json is not JSON: {exc}")


def lookup(repo: Path, key: object) -> Addon | None:
    """The addon of a key, shipped before brought; None for anything that is no key or that nobody describes."""
    if not isinstance(key, str) or ADDON_KEY.fullmatch(key) is None:
        return None
    if key in shipped():
        return shipped()[key]
    return _load_packed(repo, key) if within(repo, f"{PACK}/{key}/addon.json") is not None else None


@dataclass(frozen=True, slots=True)
class Switch:
    """What the registry says about a key."""

    enabled: bool = False
    source: Source | None = None
    version: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Registry:
    """Both registry files as read: entries by file, what the host can, and what was wrong."""

    files: tuple[tuple[Source, Mapping[str, Any]], ...]
    host: Mapping[str, bool]
    warnings: tuple[str, ...]

    def switch(self, key: str) -> Switch:
        """The first file that names a key decides; a malformed entry decides for "not enabled"."""
        for source, entries in self.files:
            if key not in entries:
                continue
            try:
                entry = RegistryEntry.model_validate(entries[key])
            except ValidationError:
                return Switch(source=source)
            return Switch(entry.enabled, source, entry.version or None, entry.note or None)
        return Switch()

    def entry_problem(self, source: Source, key: str) -> str | None:
        """Why an entry of a file is malformed."""
        entries = dict(self.files)[source]
        try:
            RegistryEntry.model_validate(entries[key])
        except ValidationError as exc:
            return fault(exc, f"addons.{key}")
        return None


LABELS: Final[Mapping[Source, str]] = {"repository": "the repository's config.json", "user": "~/.dwp/config.json"}


def registry(repository_file: Path, home: Path | None, known: Mapping[str, Addon]) -> Registry:
    """Read both files; the user's comes second. `known` are the keys that somebody describes."""
    files: list[tuple[Source, Mapping[str, Any]]] = []
    host: dict[str, bool] = {}
    warnings: list[str] = []
    places: list[tuple[Source, Path]] = [("repository", repository_file)]
    if home is not None:
        places.append(("user", home / ".dwp" / "config.json"))
    for source, path in places:
        document, problem = _config(path)
        if problem is not None:
            warnings.append(f"{LABELS[source]} {problem}; it counts as absent")
        entries = document.get("addons", {})
        if not isinstance(entries, dict):
            warnings.append(f"{LABELS[source]}: addons is no object; it counts as absent")
            entries = {}
        warnings += [
            f"{LABELS[source]}: {clip(inert(name), 80)} is no addon that is described here; it is ignored"
            for name in sorted(entries)
            if name not in known
        ]
        files.append((source, {name: entry for name, entry in entries.items() if name in known}))
        host.update(_host(document.get("host", {}), source, warnings))
    made = Registry(tuple(files), host, ())
    for source, entries in made.files:
        problems = (made.entry_problem(source, key) for key in sorted(entries))
        warnings += [f"{LABELS[source]}: {problem}; it is not enabled" for problem in problems if problem]
    return replace(made, warnings=tuple(warnings))


def _config(path: Path) -> tuple[dict[str, Any], str | None]:
    content = read_anywhere(path, CONFIG_CAP)
    if content.data is None:
        return {}, None if content.missing else "cannot be read"
    try:
        document = canon.parse_json(content.data)
    except ValueError as exc:
        return {}, f"is not JSON ({exc})"
    return (document, None) if isinstance(document, dict) else ({}, "holds no JSON object")


def _host(said: Any, source: Source, warnings: list[str]) -> dict[str, bool]:
    if not isinstance(said, dict):
        warnings.append(f"{LABELS[source]}: host is no object; it is ignored")
        return {}
    odd = [name for name, value in said.items() if name not in ABILITIES or type(value) is not bool]
    warnings += [f"{LABELS[source]}: host.{clip(inert(name), 80)} is no ability with true or false" for name in odd]
    return {name: value for name, value in said.items() if name not in odd}


def capabilities(said: Any) -> dict[str, bool]:
    """`--caps`: an object of abilities; null is none. Raises ValueError naming what is wrong."""
    if said is None:
        return {}
    if not isinstance(said, dict):
        raise ValueError("--caps must be a JSON object or null")
    for name, value in said.items():
        if name not in ABILITIES:
            raise ValueError(f"--caps names {clip(inert(name), 80)}, which is no ability")
        if type(value) is not bool:
            raise ValueError(f"--caps.{name} must be true or false")
    return said


@dataclass(frozen=True, slots=True)
class Detection:
    """Whether an addon is here now, and which interface it speaks. `reason` says why it does not contribute."""

    detected: bool
    interface: int | None = None
    compatible: bool = False
    reason: str | None = None


def detect(addon: Addon, repo: Path, environ: Mapping[str, str]) -> Detection:
    """Run an addon's detection. The only function of this room that runs a command."""
    made = addon.descriptor
    if made is None:
        return Detection(False, reason=f"its descriptor is invalid: {addon.problem}")
    output = b""
    if made.detect.command:
        found, output, reason = _detect_command(made.detect.command, repo, environ)
    else:
        paths = [*(made.detect.paths or []), *(made.detect.legacy_paths or [])]
        found = any(_present(path, repo, environ) for path in paths)
        reason = None if found else "none of its paths exists"
    if not found:
        return Detection(False, reason=reason)
    pinned = made.product.interface if made.product is not None else 0
    if not pinned:
        return Detection(True, compatible=True)
    interface = read_interface(made.detect.interface_from, output, environ)
    if interface is None:
        return Detection(True, reason="its interface cannot be read")
    if interface != pinned:
        return Detection(True, interface, reason=f"it speaks interface {interface}, not {pinned}")
    return Detection(True, interface, compatible=True)


def absolute_path(environ: Mapping[str, str]) -> list[str]:
    """The absolute entries of PATH; a relative one would run what the current folder brings."""
    return [entry for entry in environ.get("PATH", "").split(os.pathsep) if os.path.isabs(entry)]


def _detect_command(command: str, repo: Path, environ: Mapping[str, str]) -> tuple[bool, bytes, str | None]:
    first, *rest = command.split()
    entries = absolute_path(environ)
    program = next((path for entry in entries if _runnable(path := os.path.join(entry, first))), None)
    if program is None:
        return False, b"", f"{first} is not on PATH"
    known = {**environ, "PATH": os.pathsep.join(entries)}
    try:
        ran = run([program, *rest], repo, known, DETECT_TIMEOUT, INTERFACE_CAP, errors=False)
    except NotFound as exc:
        return False, b"", str(exc)
    if ran.timed_out:
        return False, b"", f"{first} did not answer within {DETECT_TIMEOUT:g} s"
    return ran.exit_code == 0, ran.output, None if ran.exit_code == 0 else f"{first} ended with {ran.exit_code}"


def _runnable(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode) and os.access(path, os.X_OK)
    except (OSError, ValueError):
        return False


def home_of(environ: Mapping[str, str]) -> Path | None:
    """The person's home, None when it is not an absolute path."""
    home = environ.get("HOME", "")
    return Path(home) if os.path.isabs(home) else None


def _present(path: str, repo: Path, environ: Mapping[str, str]) -> bool:
    home = home_of(environ)
    base = home if path.startswith("~/") else repo
    return base is not None and os.path.exists(base / path.removeprefix("~/"))


def read_interface(source: str, output: bytes, environ: Mapping[str, str]) -> int | None:
    """The interface that `interface_from` names: `"1"` and `1.9` are 1; a boolean, null or nothing is none."""
    kind, _, rest = source.partition(":")
    try:
        value: Any = None
        if kind == "json":
            value = canon.parse_json(output).get(rest)
        elif kind == "regex":
            match = re.search(rest, output.decode("utf-8", "replace"))
            value = match.group(1) if match is not None else None
        elif kind == "file-json":
            path, _, name = rest.partition("#")
            home = home_of(environ)
            content = read_anywhere(home / path.removeprefix("~/"), CONFIG_CAP) if home is not None else None
            value = canon.parse_json(content.data or b"").get(name) if content is not None else None
        return None if value is None or isinstance(value, bool) else int(value)
    except (ValueError, TypeError, AttributeError, IndexError, OverflowError, re.error):
        return None


def subagent_sources(
    via: str, repo: Path, switches: Registry, caps: Mapping[str, bool], environ: Mapping[str, str]
) -> list[str]:
    """Where `subagents` comes from now: `host`, `addon:<key>`.

    `via` is detected first. When it contributes nothing else is run; else the other enabled addons that we ship are
    detected as well, so that the list is true. A repository's own command runs only when `via` names it.
    """
    host = {**switches.host, **caps}
    found = ["host"] if host.get("subagents") else []
    if _contributes(via, repo, switches, environ):
        return [*found, f"addon:{via}"]
    others = (key for key in shipped() if key != via and _contributes(key, repo, switches, environ))
    return [*found, *(f"addon:{key}" for key in others)]


def _contributes(key: str, repo: Path, switches: Registry, environ: Mapping[str, str]) -> bool:
    if not switches.switch(key).enabled:
        return False
    addon = lookup(repo, key)
    if addon is None or addon.descriptor is None or "subagents" not in addon.descriptor.provides_abilities:
        return False
    return detect(addon, repo, environ).compatible


def entry_json(entry: Mapping[str, Any]) -> str:
    """A registry entry on one line."""
    return json.dumps(dict(entry), sort_keys=True)
