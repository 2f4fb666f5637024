"""What a person configured: config.toml, the environment, and who they are in which folder (docs/design.md §3).

A wrong line never stops the console: it becomes a finding with its line and reason, and the default stands in.
Imports no Textual, so the command line may use it.
"""

from __future__ import annotations

import difflib
import re
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from core.files import open_named
from core.finding import Finding, warning
from core.state import UserState

CONFIG = "config.toml"
IDENTITY = "identity.json"
EVERYWHERE = "*"
_CAP = 1024 * 1024


@dataclass(frozen=True)
class Settings:
    """What config.toml says. Every key has a default; an unknown key is a finding.

    `tui.config` validates it with pydantic, which is imported only when there is a file.
    """

    theme: Literal["dark", "light", "high-contrast", "plain"] = "dark"
    ascii: bool = False
    bell: bool = True
    osc9: bool = False
    reduced_motion: bool = False
    delegation_minutes: int = 30
    """From when on an open delegation stands in the inbox."""
    editor: str | None = None
    identity: str | None = None
    keymap: dict[str, str] = field(default_factory=dict)


KNOWN = tuple(one.name for one in fields(Settings))


@dataclass(frozen=True)
class Loaded:
    """Settings that can be used whatever the file says, with what was wrong in it."""

    settings: Settings
    path: Path
    findings: tuple[Finding, ...] = ()
    found: bool = True


def expanded(text: str) -> Path:
    """A path with `~` filled in; as it is when there is no such home."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def config_path(environ: Mapping[str, str]) -> Path:
    """`COLLAB_CONFIG`, else config.toml in the platform's configuration folder."""
    named = environ.get("COLLAB_CONFIG")
    if named:
        return expanded(named)
    from platformdirs import user_config_path

    return user_config_path("collab", appauthor=False) / CONFIG


def state_path(environ: Mapping[str, str]) -> Path:
    """`COLLAB_STATE`, else the platform's state folder."""
    named = environ.get("COLLAB_STATE")
    if named:
        return expanded(named)
    from platformdirs import user_state_path

    return user_state_path("collab", appauthor=False)


def no_colour(environ: Mapping[str, str]) -> bool:
    """`NO_COLOR` counts when it is not empty."""
    return bool(environ.get("NO_COLOR"))


def load(path: Path) -> Loaded:
    """Read config.toml. A missing file is fine: `found` says so."""
    try:
        with open_named(path) as handle:
            data = handle.read(_CAP + 1)
    except FileNotFoundError:
        return Loaded(Settings(), path, found=False)
    except OSError as exc:
        cause = f"{path} cannot be read: {exc.strerror or exc}; the defaults are used"
        return Loaded(Settings(), path, (_finding(path, "config_unreadable", cause),))
    if len(data) > _CAP:
        cause = f"{path} has more than {_CAP} bytes; the defaults are used"
        return Loaded(Settings(), path, (_finding(path, "config_unreadable", cause),))
    text = data.decode("utf-8", "replace")
    try:
        data.decode("utf-8")
        raw = tomllib.loads(text)
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        return Loaded(Settings(), path, (_finding(path, "config_malformed", f"line {line}: not UTF-8; {_ALL}", line),))
    except tomllib.TOMLDecodeError as exc:
        reason = str(exc)
        found_line = re.search(r"at line (\d+)", reason)
        # "At end of document" has no number: it is the last line.
        line = int(found_line[1]) if found_line else text.rstrip("\n").count("\n") + 1
        cause = f"line {line}: {reason.splitlines()[0]}; {_ALL}"
        return Loaded(Settings(), path, (_finding(path, "config_malformed", cause, line),))
    except RecursionError:
        return Loaded(Settings(), path, (_finding(path, "config_malformed", f"nested too deeply; {_ALL}"),))
    except ValueError:
        # Says no line: Python makes no number of so many digits.
        return Loaded(Settings(), path, (_finding(path, "config_malformed", f"a number is too long; {_ALL}"),))
    settings, findings = _validate(raw, text, path)
    return Loaded(settings, path, tuple(findings))


_ALL = "no line of it is used"


def _validate(raw: dict[str, Any], text: str, path: Path) -> tuple[Settings, list[Finding]]:
    """Drop what is wrong, key by key, until the rest is valid."""
    from pydantic import ValidationError

    from tui.config import ConfigFile

    kept = {key: dict(value) if isinstance(value, dict) else value for key, value in raw.items()}
    findings: list[Finding] = []
    while True:
        try:
            return Settings(**ConfigFile.model_validate(kept).model_dump()), findings
        except ValidationError as exc:
            dropped = False
            for item in exc.errors(include_url=False):
                place = tuple(str(part) for part in item["loc"])
                line = line_of(text, place)
                cause = f"line {line}: {_reason(item, place)}"
                findings.append(_finding(path, "config_invalid", cause, line))
                table = kept.get(place[0])
                if len(place) > 1 and isinstance(table, dict):
                    dropped = table.pop(place[1], None) is not None or dropped
                else:
                    dropped = kept.pop(place[0], None) is not None or dropped
            if not dropped:
                return Settings(), findings


def _reason(item: Any, place: tuple[str, ...]) -> str:
    name = ".".join(place)
    if item["type"] == "extra_forbidden":
        close = difflib.get_close_matches(place[0], KNOWN, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(KNOWN)}"
        return f"there is no setting {name!r}{hint}"
    reason = str(item["msg"]).replace("Input should be", "it should be")
    return f"{name}: {reason}, not {item['input']!r}; the default is used"


def line_of(text: str, place: Sequence[str]) -> int:
    """The line on which a key of config.toml stands: `place` is ("theme",) or ("keymap", "review"); 1 if unsure."""
    table, key = (place[0], place[1]) if len(place) > 1 else ("", place[0])
    here, header = "", 1
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if opened := re.match(r"\[\[?\s*([^\]]+?)\s*\]", stripped):
            here = opened[1].strip("\"' ")
            if here == place[0]:
                header = number
                if len(place) == 1:
                    return number
            continue
        named = re.match(r"[\"']?([^\"'=]+?)[\"']?\s*=", stripped)
        if named and here == table and named[1].strip() == key:
            return number
        if named and not here and table and named[1].split(".")[0].strip() == table:
            return number
    return header


def _finding(path: Path, code: str, cause: str, line: int | None = None) -> Finding:
    where = f"{path}#line {line}" if line is not None else str(path)
    return warning(code, f"{path.name}: {cause}" if line is not None else cause, _edit(path), where)


def _edit(path: Path) -> str:
    return f"${{EDITOR:-vi}} {shlex.quote(str(path))}"


def keymap_finding(loaded: Loaded, action: str, reason: str) -> Finding:
    """A finding about one line of `[keymap]`; the registry knows what is wrong with it."""
    try:
        with open_named(loaded.path) as handle:
            text = handle.read(_CAP).decode("utf-8", "replace")
    except OSError:
        text = ""
    line = line_of(text, ("keymap", action))
    return _finding(loaded.path, "keymap_invalid", f"line {line}: keymap.{action}: {reason}", line)


@dataclass(frozen=True)
class Who:
    """Who this person is: what they chose now, else flag, environment, what they chose before, configuration.

    A source counts in a folder only when it names a participant there; otherwise the next one is asked, and when
    none is left nobody is guessed.
    """

    flag: str | None = None
    env: str | None = None
    remembered: Mapping[str, str] = field(default_factory=dict)
    config: str | None = None
    chosen: Mapping[str, str] = field(default_factory=dict)

    def anywhere(self) -> str | None:
        """Who this person is where no folder is open."""
        everywhere = (self.chosen.get(EVERYWHERE), self.flag, self.env, self.remembered.get(EVERYWHERE), self.config)
        return next((name for name in everywhere if name), None)

    def of(self, folder: Path, participants: Sequence[str]) -> str | None:
        """Who this person is in a folder, or None: then they are asked."""
        place = str(folder.absolute())
        sources = (
            self.chosen.get(place),
            self.chosen.get(EVERYWHERE),
            self.flag,
            self.env,
            self.remembered.get(place),
            self.remembered.get(EVERYWHERE),
            self.config,
        )
        return next((name for name in sources if name and name in participants), None)

    def choose(self, folder: Path | None, name: str) -> Who:
        """The same person with a choice made in this session; without a folder it holds everywhere."""
        place = str(folder.absolute()) if folder is not None else EVERYWHERE
        return replace(self, chosen={**self.chosen, place: name})

    @classmethod
    def gather(cls, flag: str | None, environ: Mapping[str, str], config: str | None, state: UserState) -> Who:
        """From `--as`, `COLLAB_AS`, identity.json and config.toml."""
        raw = state.load(IDENTITY)
        remembered = {place: name for place, name in raw.items() if isinstance(name, str)}
        return cls(flag or None, environ.get("COLLAB_AS") or None, remembered, config)


def remember(state: UserState, folder: Path | None, name: str) -> bool:
    """Keep a choice for the next session; False when the state folder cannot be written."""
    if folder is not None:
        return state.set_identity(folder, name)
    return state.update(IDENTITY, {EVERYWHERE: name})
