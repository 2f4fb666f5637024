"""Addons: descriptors, registry, detection, and what switches them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.delegation import addons
from core.delegation.addons import Addon, capabilities, check_descriptor, detect, read_interface, registry, shipped
from core.delegation.switch import switch
from core.finding import Refused
from tests.unit.core.delegation.builders import BASE, Bench

RELAY: dict[str, Any] = {
    "schema": f"{BASE}/addon-descriptor/v1.json",
    "key": "relay",
    "detect": {"command": "relay --ok"},
    "provides_abilities": ["subagents"],
    "requires_grants": ["agent_delegation"],
    "transport": "headless",
}


def pack(bench: Bench, key: str = "relay", **changes: Any) -> Path:
    path = bench.repo / addons.PACK / key / "addon.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({**RELAY, "key": key, **changes}))
    return path


def test_what_we_ship_is_valid() -> None:
    assert list(shipped()) == ["agentkit", "herdr"]
    for key, transport in (("agentkit", "headless"), ("herdr", "interactive")):
        made = shipped()[key].descriptor
        assert made is not None
        assert made.transport == transport
        assert made.product is not None
        assert made.product.interface == 1
        assert {"subagents", "cancel_children"} <= set(made.provides_abilities)
        assert made.requires_grants == ["agent_delegation"]
    assert "model_routing" in (shipped()["agentkit"].descriptor or RELAY).provides_abilities  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({}, None),
        ({"key": "other"}, "folder"),
        ({"key": "Relay"}, "key"),
        ({"schema": f"{BASE}/addon-descriptor/v2.json"}, "schema"),
        ({"surplus": 1}, "surplus"),
        ({"detect": {}}, "either"),
        ({"detect": {"command": "relay", "paths": ["x"]}}, "either"),
        ({"detect": {"command": "tools/relay"}}, "path"),
        ({"detect": {"command": "relay | sh"}}, "command"),
        ({"detect": {"command": "relay\n"}}, "command"),
        ({"detect": {"command": "r" * 201}}, "command"),
        ({"detect": {"paths": []}}, "paths"),
        ({"detect": {"paths": ["../x"]}}, "paths"),
        ({"detect": {"paths": ["/etc/x"]}}, "paths"),
        ({"detect": {"paths": ["~/x", "y"], "legacy_paths": ["z"]}}, None),
        ({"detect": {"command": "relay", "legacy_paths": ["z"]}}, "legacy_paths"),
        ({"detect": {"command": "relay", "interface_from": "json:a"}}, None),
        ({"detect": {"command": "relay", "interface_from": "json:"}}, "interface_from"),
        ({"detect": {"command": "relay", "interface_from": "yaml:a"}}, "interface_from"),
        ({"detect": {"command": "relay", "interface_from": "regex:("}}, None),
        ({"detect": {"command": "relay", "interface_from": "file-json:~/a/b#c"}}, None),
        ({"detect": {"command": "relay", "interface_from": "file-json:~/../b#c"}}, "interface_from"),
        ({"detect": {"command": "relay", "interface_from": "file-json:/b#c"}}, "interface_from"),
        ({"product": {"repo": "o/n", "tag": "v1.2.3-beta.1", "interface": 1}}, None),
        ({"product": {"repo": "o/n", "tag": "main"}}, "tag"),
        ({"product": {"repo": "o/n", "tag": "v1.2.3\n"}}, "tag"),
        ({"product": {"repo": "o", "tag": "v1.2.3"}}, "repo"),
        ({"product": {"repo": "o/n", "tag": "v1.2.3", "interface": 0}}, "interface"),
        ({"product": {"repo": "o/n", "tag": "v1.2.3", "interface": True}}, "interface"),
        ({"product": None}, "product"),
        ({"provides_abilities": ["fly"]}, "provides_abilities"),
        ({"provides_abilities": []}, "subagents"),
        ({"provides_abilities": ["subagents", "subagents"]}, "provides_abilities"),
        ({"requires_grants": []}, "agent_delegation"),
        ({"requires_grants": ["root"]}, "requires_grants"),
        ({"transport": None}, "transport"),
        ({"transport": "pigeon"}, "transport"),
    ],
)
def test_a_descriptor_is_closed(changes: dict[str, Any], named: str | None) -> None:
    made = check_descriptor({**RELAY, **changes}, "relay", "repository")
    assert (made.descriptor is not None) == (named is None)
    assert named is None or named in (made.problem or "")


def test_an_addon_without_a_transport_needs_neither() -> None:
    made = {key: value for key, value in RELAY.items() if key != "transport"}
    assert check_descriptor({**made, "provides_abilities": [], "requires_grants": []}, "relay", "repository").descriptor


def test_a_repository_adds_keys_and_redefines_none(bench: Bench) -> None:
    pack(bench)
    pack(bench, "agentkit")
    pack(bench, "Odd")
    assert list(addons.packed(bench.repo)) == ["relay"]
    assert bench.addon("relay") == addons.packed(bench.repo)["relay"]
    found = bench.addon("agentkit")
    assert found is shipped()["agentkit"]
    for key in ("../relay", "Odd", "", "none", None, ["relay"], "relay/../relay"):
        assert bench.addon(key) is None  # type: ignore[arg-type]


def test_a_descriptor_that_leads_out_of_the_repository(bench: Bench) -> None:
    outside = bench.root / "outside.json"
    outside.write_text(json.dumps(RELAY))
    path = pack(bench)
    path.unlink()
    path.symlink_to(outside)
    assert bench.addon("relay") is None
    path.unlink()
    inside = bench.repo / "inside.json"
    inside.write_text(json.dumps(RELAY))
    path.symlink_to(inside)
    found = bench.addon("relay")
    assert found is not None
    assert found.descriptor is not None


@pytest.mark.parametrize("text", ["{nope", "[]", "\udcff"])
def test_a_descriptor_that_is_none(bench: Bench, text: str) -> None:
    path = pack(bench)
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    found = bench.addon("relay")
    assert found is not None
    assert found.descriptor is None
    assert found.problem


def entry(repository: Any, user: Any = None, bench: Bench | None = None) -> addons.Switch:
    assert bench is not None
    bench.registry(repository)
    path = bench.home / ".dwp" / "config.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(user if user is not None else {}))
    return registry(bench.repo / ".dwp/config.json", bench.home, shipped()).switch("agentkit")


def test_the_first_file_that_names_a_key_decides(bench: Bench) -> None:
    on, off = {"addons": {"agentkit": {"enabled": True}}}, {"addons": {"agentkit": {"enabled": False}}}
    assert entry(on, off, bench) == addons.Switch(True, "repository")
    assert entry(off, on, bench) == addons.Switch(False, "repository")
    assert entry({}, on, bench) == addons.Switch(True, "user")
    assert entry({"addons": {"agentkit": {"enabled": "yes"}}}, on, bench) == addons.Switch(False, "repository")
    assert entry({"addons": []}, on, bench) == addons.Switch(True, "user")
    assert entry("{nope", on, bench) == addons.Switch(True, "user")
    assert entry({}, {}, bench) == addons.Switch()


@pytest.mark.parametrize(
    ("value", "enabled"),
    [
        ({"enabled": True, "version": "v1.0.0", "note": "n"}, True),
        ({"enabled": True, "version": "1.0.0"}, False),
        ({"enabled": True, "version": None}, False),
        ({"enabled": True, "note": ""}, False),
        ({"enabled": True, "note": "n" * 201}, False),
        ({"enabled": True, "note": "a\nb"}, False),
        ({"enabled": True, "more": 1}, False),
        ({"enabled": 1}, False),
        ({}, False),
        (None, False),
        (True, False),
    ],
)
def test_an_entry_is_closed(bench: Bench, value: Any, enabled: bool) -> None:
    assert entry({"addons": {"agentkit": value}}, None, bench).enabled == enabled


def test_warnings_name_file_and_key(bench: Bench) -> None:
    bench.registry({"addons": {"agentkit": 5, "teleport": {"enabled": True}}, "host": {"fly": True, "subagents": 1}})
    found = registry(bench.repo / ".dwp/config.json", None, shipped())
    assert len(found.warnings) == 4
    assert found.host == {}
    assert any("teleport" in text for text in found.warnings)
    assert any("agentkit" in text for text in found.warnings)
    bench.registry("nope")
    assert len(registry(bench.repo / ".dwp/config.json", None, shipped()).warnings) == 1
    assert registry(bench.repo / "none.json", None, shipped()).warnings == ()


def test_the_host_of_the_user_goes_over_the_repository(bench: Bench) -> None:
    bench.registry({"host": {"subagents": True, "telemetry": True}})
    path = bench.home / ".dwp" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"host": {"subagents": False}}))
    found = registry(bench.repo / ".dwp/config.json", bench.home, shipped())
    assert found.host == {"subagents": False, "telemetry": True}


def test_capabilities() -> None:
    assert capabilities(None) == {}
    assert capabilities({"subagents": True}) == {"subagents": True}
    for wrong in (5, [], {"fly": True}, {"subagents": 1}, {"subagents": "yes"}):
        with pytest.raises(ValueError, match="--caps"):
            capabilities(wrong)


def found(bench: Bench, **changes: Any) -> addons.Detection:
    made = check_descriptor({**RELAY, **changes}, "relay", "repository")
    return detect(made, bench.repo, bench.environ)


def test_detection(bench: Bench) -> None:
    assert found(bench).reason == "relay is not on PATH"
    bench.program("relay", "fine")
    assert found(bench) == addons.Detection(True, compatible=True)
    bench.program("relay", "fine", 7)
    assert found(bench).reason == "relay ended with 7"
    (bench.bin / "relay").chmod(0o644)
    assert not found(bench).detected
    (bench.bin / "relay").unlink()
    (bench.bin / "relay").mkdir()
    assert not found(bench).detected


def test_a_relative_path_entry_is_no_place(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    (bench.repo / "relay").write_text("#!/bin/sh\ntouch ran\n")
    (bench.repo / "relay").chmod(0o755)
    monkeypatch.chdir(bench.repo)
    made = check_descriptor(RELAY, "relay", "repository")
    for path in (".", "", "relbin", f":{bench.bin}"):
        assert not detect(made, bench.repo, {**bench.environ, "PATH": path}).detected
    assert not (bench.repo / "ran").exists()


def test_a_detection_that_never_answers(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addons, "DETECT_TIMEOUT", 0.05)
    (bench.bin / "relay").write_text("#!/bin/sh\nsleep 60\n")
    (bench.bin / "relay").chmod(0o755)
    assert "did not answer" in (found(bench).reason or "")


def test_detection_by_path(bench: Bench) -> None:
    by_path = {"detect": {"paths": ["tool/x", "~/.tool"], "legacy_paths": ["old"]}}
    assert not found(bench, **by_path).detected
    (bench.repo / "old").write_text("")
    assert found(bench, **by_path).detected
    (bench.repo / "old").unlink()
    (bench.home / ".tool").mkdir()
    assert found(bench, **by_path).detected


@pytest.mark.parametrize(
    ("source", "output", "value"),
    [
        ("json:i", '{"i": 1}', 1),
        ("json:i", '{"i": "1"}', 1),
        ("json:i", '{"i": 1.9}', 1),
        ("json:i", '{"i": "1.9"}', None),
        ("json:i", '{"i": true}', None),
        ("json:i", '{"i": null}', None),
        ("json:i", '{"i": [1]}', None),
        ("json:i", '{"i": 1e999}', None),
        ("json:i", "[1]", None),
        ("json:i", "nope", None),
        ("regex:v([0-9]+)", "is v12.", 12),
        ("regex:v[0-9]+", "v1", None),
        ("regex:(", "v1", None),
        ("regex:(x)", "x", None),
        ("file-json:~/f.json#i", "", 3),
        ("file-json:~/none.json#i", "", None),
        ("", "1", None),
    ],
)
def test_the_interface(bench: Bench, source: str, output: str, value: int | None) -> None:
    (bench.home / "f.json").write_text('{"i": 3}')
    assert read_interface(source, output.encode(), bench.environ) == value


def test_a_pinned_interface_must_be_read(bench: Bench) -> None:
    bench.program("relay", "2")
    pinned = {"product": {"repo": "o/n", "tag": "v1.0.0", "interface": 1}}
    assert found(bench, **pinned).reason == "its interface cannot be read"
    by_regex = {"detect": {"command": "relay", "interface_from": "regex:([0-9])"}}
    assert found(bench, **pinned, **by_regex) == addons.Detection(True, 2, reason="it speaks interface 2, not 1")
    bench.program("relay", "1")
    assert found(bench, **pinned, **by_regex).compatible


def test_sources(bench: Bench) -> None:
    bench.registry({"addons": {"herdr": {"enabled": True}, "agentkit": {"enabled": True}}, "host": {"subagents": True}})
    known = registry(bench.repo / ".dwp/config.json", bench.home, shipped())

    def sources(via: str, **caps: bool) -> list[str]:
        return addons.subagent_sources(via, bench.repo, known, caps, bench.environ)

    assert sources("agentkit") == ["host", "addon:agentkit"]
    assert not bench.ran("herdr-peers")
    assert sources("agentkit", subagents=False) == ["addon:agentkit"]
    (bench.bin / "ak").unlink()
    assert sources("agentkit") == ["host", "addon:herdr"]


def test_a_packed_command_runs_only_when_it_is_named(bench: Bench) -> None:
    pack(bench)
    bench.program("relay", "fine")
    bench.registry({"addons": {"relay": {"enabled": True}}})
    known = registry(bench.repo / ".dwp/config.json", bench.home, {**addons.packed(bench.repo), **shipped()})
    assert addons.subagent_sources("agentkit", bench.repo, known, {}, bench.environ) == []
    assert not bench.ran("relay")
    assert addons.subagent_sources("relay", bench.repo, known, {}, bench.environ) == ["addon:relay"]


# ---------------------------------------------------------------- switching


def config(bench: Bench) -> Any:
    return json.loads((bench.repo / ".dwp" / "config.json").read_text())


def test_switching_keeps_all_else(bench: Bench) -> None:
    bench.registry({"addons": {"herdr": {"enabled": True, "note": "é"}}, "mine": [1, {"b": 1.5}]})
    assert switch(bench.repo, "agentkit", True, "v1.2.3", "ours") == {
        "enabled": True,
        "version": "v1.2.3",
        "note": "ours",
    }
    assert switch(bench.repo, "agentkit", False) == {"enabled": False}
    assert config(bench) == {
        "addons": {"herdr": {"enabled": True, "note": "é"}, "agentkit": {"enabled": False}},
        "mine": [1, {"b": 1.5}],
    }
    assert (bench.repo / ".dwp" / "config.json").read_bytes().isascii()


def test_switching_in_a_repository_that_has_nothing(tmp_path: Path) -> None:
    switch(tmp_path, "herdr", True)
    assert json.loads((tmp_path / ".dwp/config.json").read_text()) == {"addons": {"herdr": {"enabled": True}}}
    assert [path.name for path in (tmp_path / ".dwp").iterdir()] == ["config.json"]


@pytest.mark.parametrize(
    ("key", "version", "note", "text"),
    [
        ("teleport", None, None, "{}"),
        ("../agentkit", None, None, "{}"),
        ("agentkit", "1.0", None, "{}"),
        ("agentkit", "v1.0.0\n", None, "{}"),
        ("agentkit", None, "", "{}"),
        ("agentkit", None, "a\nb", "{}"),
        ("agentkit", None, "n" * 201, "{}"),
        ("agentkit", None, None, "{nope"),
        ("agentkit", None, None, "[]"),
        ("agentkit", None, None, '{"addons": []}'),
        ("agentkit", None, None, '{"mine": 1e999}'),
    ],
)
def test_what_is_not_switched(bench: Bench, key: str, version: Any, note: Any, text: str) -> None:
    bench.registry(text)
    with pytest.raises(Refused):
        switch(bench.repo, key, True, version, note)
    assert (bench.repo / ".dwp" / "config.json").read_text() == text


@pytest.mark.parametrize("dangling", [False, True])
def test_a_link_is_never_written_through(bench: Bench, dangling: bool) -> None:
    target = bench.root / "elsewhere.json"
    if not dangling:
        target.write_text("{}")
    path = bench.repo / ".dwp" / "config.json"
    path.unlink()
    path.symlink_to(target)
    with pytest.raises(Refused):
        switch(bench.repo, "agentkit", True)
    assert path.is_symlink()
    assert not target.exists() if dangling else target.read_text() == "{}"


def test_types_of_addons() -> None:
    assert Addon("x", "shipped", None, "p").transport is None
