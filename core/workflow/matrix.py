"""Who may be asked for what: access profiles and the reasons that refuse a start (docs/specs/workflows.md §2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from core.finding import Finding, error
from core.workflow.model import ENGINE, PARENT, Profile, Spec
from core.workflow.yaml_nodes import Mapping as YamlMapping
from core.workflow.yaml_nodes import Node, Problem, parse, plain

WILDCARDS = frozenset({"*", "any", "all"})
UPWARD = frozenset({"ERROR", "CHECKPOINT"})
Profiles = Callable[[str], Profile | None]


def names(listed: Sequence[str], *wanted: str) -> bool:
    """Whether a list of a profile holds one of the words, or a wildcard."""
    return any(word in WILDCARDS or word in wanted for word in listed)


def may_send(profile: Profile, signal: str) -> bool:
    """Whether an agent takes part in a signal; ERROR and CHECKPOINT are always allowed upward."""
    return signal in UPWARD or names(profile.signals, signal)


def read_profile(value: Any) -> Profile:
    """Observe `brain.ipc`: a list of texts, or one text; anything else in a list is left out."""
    given = value if isinstance(value, Mapping) else {}
    made: dict[str, Any] = {key: item for key, item in given.items() if isinstance(key, str)}
    for key in ("receives_from", "sends_to", "zone_access", "signals"):
        listed = given.get(key)
        found = [listed] if isinstance(listed, str) else listed if isinstance(listed, (list, tuple)) else []
        made[key] = tuple(item for item in found if isinstance(item, str))
    return Profile(**made)


def front_matter(text: str) -> tuple[Profile | None, Problem | None]:
    """The profile in an agent's file: `brain.ipc` of the YAML between its first two `---` lines."""
    lines = text.replace("\r\n", "\n").split("\n")
    if not lines or lines[0].rstrip() != "---":
        return None, None
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), None)
    if end is None:
        return None, Problem(1, 1, "the front matter does not end")
    tree = parse("\n".join(lines[1:end]), templates=False)
    if tree.root is None or not isinstance(tree.root, YamlMapping):
        return None, tree.problems[0] if tree.problems else None
    brain = tree.root.get("brain")
    ipc: Node | None = brain.get("ipc") if isinstance(brain, YamlMapping) else None
    return (None, None) if ipc is None else (read_profile(plain(ipc)), None)


def start_refusals(spec: Spec, mode: str, profiles: Profiles, run_open: str | None) -> list[Finding]:
    """Every reason against a start of a valid spec, in the order of §2."""
    found: dict[str, list[Finding]] = {}

    def refuse(code: str, cause: str, command: str | None = None) -> None:
        found.setdefault(code, []).append(error(code, cause, command, spec.workflow))

    known = {name: profiles(name) for name in spec.agents}
    for name, profile in known.items():
        if profile is None:
            refuse("E_AGENT_UNKNOWN", f"there is no profile of the agent {name!r} (agents/{name}.md)")
            continue
        if not names(profile.receives_from, PARENT, ENGINE):
            refuse("E_MATRIX_RECEIVES", f"{name!r} does not take work from {PARENT} or {ENGINE}")
        lacking = [signal for signal in ("SPAWN", "RETURN") if not names(profile.signals, signal)]
        if lacking:
            refuse("E_MATRIX_SIGNAL", f"{name!r} does not take part in {' and '.join(lacking)}")
    for name, zone in spec.zones:
        profile = known[name]
        if profile is not None and not names(profile.zone_access, zone):
            refuse("E_MATRIX_ZONE", f"{name!r} has no access to the zone {zone!r}")
    if run_open is not None:
        refuse("E_RUN_OPEN", f"{run_open} is still open", f"collab workflow status {run_open}")
    if mode == "swarm" and spec.grammar == "chain" and not spec.swarm_ready:
        refuse("E_SWARM_NOT_READY", f"{spec.workflow} is a chain that is not swarm_ready")
    order = (
        "E_AGENT_UNKNOWN",
        "E_MATRIX_RECEIVES",
        "E_MATRIX_ZONE",
        "E_MATRIX_SIGNAL",
        "E_RUN_OPEN",
        "E_SWARM_NOT_READY",
    )
    return [item for code in order for item in found.get(code, ())]
