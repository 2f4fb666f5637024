"""The shape of config.toml for pydantic; imported only when there is such a file (see `tui.settings`)."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class ConfigFile(BaseModel):
    """One field for each of `Settings`, with the same defaults; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    theme: Literal["dark", "light", "high-contrast", "plain"] = "dark"
    ascii: bool = False
    bell: bool = True
    osc9: bool = False
    reduced_motion: bool = False
    delegation_minutes: int = Field(default=30, ge=1, le=525600)
    editor: str | None = Field(default=None, min_length=1, max_length=1000)
    identity: str | None = Field(default=None, min_length=1, max_length=200)
    keymap: dict[str, str] = Field(default_factory=dict)
