"""The collector keeps away from open folders with long logs, and from nothing else."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from tui.collector import Collector

ONE, OTHER = Path("/one"), Path("/other")


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.unfreeze()
    gc.enable()


def test_nothing_is_collected_while_a_log_is_read() -> None:
    collector = Collector()
    with collector.resting():
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    with collector.resting():
        assert not gc.isenabled()
    assert not gc.isenabled(), "whoever switched it off switches it on"


def test_what_an_open_folder_holds_is_not_looked_at() -> None:
    collector = Collector()
    kept = [[number] for number in range(1000)]
    collector.keep(ONE)
    assert gc.get_freeze_count() > len(kept)
    assert not any(one is kept[0] for one in gc.get_objects())
    collector.keep(OTHER)
    collector.let_go(ONE)
    assert gc.get_freeze_count() > len(kept), "another one is open"
    collector.let_go(ONE)
    collector.let_go(OTHER)
    assert gc.get_freeze_count() == 0
    assert any(one is kept[0] for one in gc.get_objects())
