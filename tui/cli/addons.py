"""Addons that may carry a delegate: list, enable, disable (docs/specs/delegation.md §6)."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path
from typing import Any

from core.finding import warning

from tui.cli.base import DONE, Command, Out, Parser, folder_path


def _output(parser: Parser) -> None:
    """As every verb, but without a default that would undo what was said before the operation's name."""
    parser.add_argument(
        "-o", "--output", choices=("text", "json"), default=argparse.SUPPRESS, help="text for people, or JSON"
    )


def _arguments(parser: Parser) -> None:
    inner = parser.add_subparsers(dest="operation", metavar="list|enable|disable", parser_class=Parser, required=True)
    for name, text in (
        ("list", "what there is, what is switched on, and with --detect what is here now"),
        ("enable", "switch an addon on in the repository's .dwp/config.json"),
        ("disable", "switch an addon off in the repository's .dwp/config.json"),
    ):
        made = inner.add_parser(name, help=text, description=text)
        made.add_argument("--repo", type=folder_path, default=".", help="the repository (default: here)")
        if name == "list":
            made.add_argument("--detect", action="store_true", help="also run their detections")
        else:
            made.add_argument("key", metavar="KEY", help="the addon's key")
            made.add_argument("--version", help="the tag it was set up with, as v1.2.3")
            made.add_argument("--note", help="one line, up to 200 characters")
        _output(made)


def _run(args: argparse.Namespace, out: Out) -> int:
    out.offer = lambda command: command + _elsewhere(args.repo)
    if args.operation == "list":
        return _list(args, out)
    from core.delegation.addons import entry_json
    from core.delegation.switch import switch

    entry = switch(args.repo, args.key, args.operation == "enable", args.version, args.note)
    out.line(f"OK: addons.{args.key} = {entry_json(entry)}")
    out.put(key=args.key, entry=dict(entry))
    return DONE


def _elsewhere(repo: Path) -> str:
    return "" if repo == folder_path(".") else f" --repo {shlex.quote(str(repo))}"


def _list(args: argparse.Namespace, out: Out) -> int:
    from core.delegation import addons

    repo, environ = args.repo, os.environ
    known = {**addons.packed(repo), **addons.shipped()}
    registry = addons.registry(repo / ".dwp" / "config.json", addons.home_of(environ), known)
    listed = []
    for key in sorted(known):
        addon, switch = known[key], registry.switch(key)
        made = addon.descriptor
        item: dict[str, Any] = {
            "key": key,
            "enabled": switch.enabled,
            "source": switch.source,
            "version": switch.version,
            "note": switch.note,
            "from": addon.origin,
            "valid": made is not None,
            "transport": addon.transport,
            "provides_abilities": list(made.provides_abilities) if made is not None else [],
        }
        if args.detect:
            item.update(_detected(addon, switch.enabled or addon.origin == "shipped", args, environ))
        listed.append(item)
        out.line(_line(item))
    out.notes(warning("registry_odd", text) for text in registry.warnings)
    out.put(addons=listed, warnings=list(registry.warnings))
    return DONE


def _detected(addon: Any, allowed: bool, args: argparse.Namespace, environ: Any) -> dict[str, Any]:
    from core.delegation.addons import Detection, detect

    reason = "a repository's own command runs only once it is enabled"
    found = detect(addon, args.repo, environ) if allowed else Detection(False, reason=reason)
    return {
        "detected": found.detected,
        "interface": found.interface,
        "compatible": found.compatible,
        "reason": found.reason,
    }


def _line(item: dict[str, Any]) -> str:
    parts = [item["key"], "enabled" if item["enabled"] else "not enabled"]
    if item["source"]:
        parts.append(f"by the {item['source']}")
    parts.append(item["transport"] or "no transport")
    if not item["valid"]:
        parts.append("its descriptor is invalid")
    if "compatible" in item:
        parts.append("here" if item["compatible"] else f"not usable: {item['reason']}")
    return "  ".join(parts)


COMMANDS = {
    "addons": Command(
        "addons",
        "which addons may carry a delegate, and switching them on or off",
        _arguments,
        _run,
    )
}
