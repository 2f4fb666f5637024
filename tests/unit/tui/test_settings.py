"""config.toml, environment and identity: whatever is wrong is a finding with its line, and the rest is used."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest

from core.state import UserState
from tui.actions import Keys
from tui.keymap import resolve
from tui.settings import Settings, Who, config_path, keymap_finding, load, no_colour, remember, state_path

GOOD = """\
theme = "light"
bell = false
editor = "nano -w"

[keymap]
review = "R"
"""


def write(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "config.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_good_file_is_used_whole(tmp_path: Path) -> None:
    loaded = load(write(tmp_path, GOOD))
    assert loaded.findings == ()
    assert loaded.found
    assert loaded.settings == Settings(theme="light", bell=False, editor="nano -w", keymap={"review": "R"})


def test_the_file_and_the_settings_have_the_same_keys_and_defaults() -> None:
    from tui.config import ConfigFile

    assert Settings(**ConfigFile().model_dump()) == Settings()
    assert set(ConfigFile.model_fields) == {one.name for one in fields(Settings)}


def test_a_missing_file_means_the_defaults(tmp_path: Path) -> None:
    loaded = load(tmp_path / "none.toml")
    assert loaded.settings == Settings()
    assert loaded.findings == ()
    assert not loaded.found


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ('bell = true\ntheme = "pink"\n', 2, "theme: it should be 'dark', 'light'"),
        ("bell = 1\n", 1, "bell: it should be a valid boolean, not 1"),
        ('bell = true\n\nthem = "dark"\n', 3, "there is no setting 'them'; did you mean 'theme'?"),
        ("bell = true\n[keymap]\nreview = 3\n", 3, "keymap.review"),
        ("bell = true\n[colours]\nred = 1\n", 2, "there is no setting 'colours'"),
        ("bell = true\ntheme = \n", 2, "no line of it is used"),
        ("bell = true\ntheme = 'dark", 2, "no line of it is used"),
        (b"bell = true\n# \xff\n", 2, "not UTF-8"),
        ("editor = ''\n", 1, "editor"),
    ],
)
def test_a_wrong_line_is_named_and_the_default_stands_in(
    tmp_path: Path, text: str | bytes, line: int, part: str
) -> None:
    loaded = load(write(tmp_path, text))
    (found,) = loaded.findings
    assert found.severity == "warning"
    assert found.where == f"{loaded.path}#line {line}"
    assert f"line {line}: " in found.cause
    assert part in found.cause
    assert found.next_command is not None
    assert loaded.settings.theme == "dark"
    assert loaded.settings.editor is None


def test_the_good_lines_of_a_file_with_wrong_ones_are_used(tmp_path: Path) -> None:
    loaded = load(write(tmp_path, 'theme = "light"\nbell = "yes"\nnope = 1\n[keymap]\nreview = "R"\nblock = 1\n'))
    assert loaded.settings == Settings(theme="light", keymap={"review": "R"})
    assert [found.where for found in loaded.findings] == [f"{loaded.path}#line {line}" for line in (2, 6, 3)]


def test_an_unreadable_file_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()
    loaded = load(tmp_path / "config.toml")
    assert [found.code for found in loaded.findings] == ["config_unreadable"]
    assert loaded.settings == Settings()


def test_a_keymap_finding_names_its_line(tmp_path: Path) -> None:
    loaded = load(write(tmp_path, '[keymap]\nreview = "R"\nblock = "ctrl+m"\n'))
    keys = Keys(loaded.settings.keymap)
    # R is the key of `ready`.
    assert [name for name, _ in keys.problems] == ["review", "block"] or [name for name, _ in keys.problems] == [
        "block",
        "review",
    ]
    found = keymap_finding(loaded, "block", dict(keys.problems)["block"])
    assert found.where == f"{loaded.path}#line 3"
    assert "ctrl+m is Enter" in found.cause


def test_places_follow_the_environment(tmp_path: Path) -> None:
    assert config_path({"COLLAB_CONFIG": str(tmp_path / "c")}) == tmp_path / "c"
    assert state_path({"COLLAB_STATE": str(tmp_path / "s")}) == tmp_path / "s"
    assert config_path({}).name == "config.toml"


@pytest.mark.parametrize(("environ", "expected"), [({}, False), ({"NO_COLOR": ""}, False), ({"NO_COLOR": "0"}, True)])
def test_an_empty_no_color_does_not_count(environ: dict[str, str], expected: bool) -> None:
    assert no_colour(environ) is expected


PEOPLE = ("server", "reader", "security")


def test_the_flag_goes_before_the_environment_before_memory_before_configuration(tmp_path: Path) -> None:
    place = str(tmp_path.absolute())
    everything = Who("server", "reader", {place: "security"}, "reader")
    assert everything.of(tmp_path, PEOPLE) == "server"
    assert Who(None, "reader", {place: "security"}, "server").of(tmp_path, PEOPLE) == "reader"
    assert Who(None, None, {place: "security"}, "server").of(tmp_path, PEOPLE) == "security"
    assert Who(None, None, {}, "server").of(tmp_path, PEOPLE) == "server"


def test_a_choice_of_this_session_goes_before_everything(tmp_path: Path) -> None:
    who = Who("server").choose(tmp_path, "reader")
    assert who.of(tmp_path, PEOPLE) == "reader"
    assert who.of(tmp_path / "other", PEOPLE) == "server"
    assert who.anywhere() == "server"


def test_a_name_that_is_no_participant_is_passed_over_and_nobody_is_guessed(tmp_path: Path) -> None:
    assert Who("stranger", None, {}, "reader").of(tmp_path, PEOPLE) == "reader"
    assert Who("stranger").of(tmp_path, PEOPLE) is None
    assert Who().of(tmp_path, ("only",)) is None


def test_choices_are_remembered(tmp_path: Path) -> None:
    state = UserState(tmp_path / "state")
    assert remember(state, tmp_path / "f", "reader")
    assert remember(state, None, "server")
    who = Who.gather(None, {"COLLAB_AS": ""}, None, state)
    assert who.of(tmp_path / "f", PEOPLE) == "reader"
    assert who.of(tmp_path / "g", PEOPLE) == "server"
    assert who.anywhere() == "server"


def test_the_settings_that_the_readme_shows_are_all_there_are(tmp_path: Path) -> None:
    readme = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")
    text = readme.split("```toml\n")[1].split("```")[0]
    loaded = load(write(tmp_path, text))
    assert loaded.findings == ()
    named = {line.split("=")[0].strip(" []") for line in text.splitlines() if line and not line.startswith("next")}
    assert {name.split("]")[0] for name in named} == {one.name for one in fields(Settings)}
    assert resolve(loaded.settings.keymap)[1] == []
    assert loaded.settings == replace(Settings(), editor="vi", identity="ana", keymap={"next-waiting": "j"})
