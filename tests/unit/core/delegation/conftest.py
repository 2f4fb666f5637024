"""What the tests of the record layer stand on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.core.delegation.builders import Bench


@pytest.fixture
def bench(quick_path: Path) -> Bench:
    """A repository with a plan folder that nobody materialized yet."""
    return Bench(quick_path)
