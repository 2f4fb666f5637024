"""Simulations write and fsync thousands of times: their temporary roots lie in memory where there is some."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def quick_temporary_roots(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Path("/dev/shm")
    if os.access(memory, os.W_OK):
        monkeypatch.setattr(tempfile, "tempdir", str(memory))
