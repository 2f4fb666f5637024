"""What an agent needs to take part: SKILL.md and drop-in scripts of the reference's five names (docs/design.md §3)."""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path

from core.files import Root, explain, sha256
from core.finding import Refused, error

SCRIPTS = {
    "init_collaboration.py": "init",
    "append_event.py": "append",
    "next_action.py": "next",
    "wait_for_turn.py": "wait",
    "validate_collaboration.py": "validate",
}
"""The reference's script names, and the verb that does the same."""

_SEAL = re.compile(rb"(?:# |<!-- )collab skill, sha256 of what stands above: ([0-9a-f]{64})(?: -->)?\n\Z")


def files() -> dict[str, bytes]:
    """Relative path to content; each ends in a seal, by which a later install knows it as ours and unchanged."""
    text = _template("SKILL.md")
    made = {"SKILL.md": text + f"\n<!-- {_seal(text + chr(10).encode())} -->\n".encode()}
    body = _template("script.py").decode()
    for name, verb in SCRIPTS.items():
        script = body.replace("{{name}}", name).replace("{{verb}}", verb).encode()
        made[f"scripts/{name}"] = script + f"# {_seal(script)}\n".encode()
    return made


def _template(name: str) -> bytes:
    return pkgutil.get_data("collab_templates", f"skill/{name}") or b""


def _seal(data: bytes) -> str:
    return f"collab skill, sha256 of what stands above: {sha256(data)}"


def ours(data: bytes) -> bool:
    """Whether these bytes were installed by us, by any version, and not changed since."""
    match = _SEAL.search(data)
    return match is not None and sha256(data[: match.start()]) == match[1].decode()


def install(path: Path) -> list[str]:
    """Write every file below `path`; returns their names. Raises Refused, before anything is written, for a file of
    somebody else's, or one of ours that was edited.
    """
    made = files()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise Refused(explain(exc, str(path))) from None
    with Root(path, ".") as root:
        found = []
        for name, data in made.items():
            there = root.read(name)
            if there.data is None and not there.missing and there.problem is not None:
                found.append(there.problem)
            elif there.data is not None and there.data != data and not ours(there.data):
                cause = f"{name} is there already and is not ours, or was edited; it stays as it is"
                found.append(error("skill_file_foreign", cause, None, str(path / name)))
        if found:
            raise Refused(*found)
        root.sweep()
        for name, data in made.items():
            root.replace(name, data)
    for name in SCRIPTS:
        try:
            (path / "scripts" / name).chmod(0o755)
        except OSError as exc:
            raise Refused(explain(exc, f"scripts/{name}")) from None
    return list(made)
