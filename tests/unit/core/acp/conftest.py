"""A folder of three participants and acts in it; a test file may have a folder of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.acp.model import Draft
from core.acp.store import Appended, Change, append
from core.files import set_fault
from tests.conftest import FixedClock, MakeFolder
from tests.unit.core.acp.acting import lines


@pytest.fixture(autouse=True)
def no_fault() -> Iterator[None]:
    yield
    set_fault(None)


@pytest.fixture
def folder(make_folder: MakeFolder) -> Path:
    return make_folder("talk", ("server", "reader", "editor"))


@pytest.fixture
def act(folder: Path, clock: FixedClock) -> Callable[..., Appended]:
    """`act(who, event, …)`: append to the folder, answering the latest event unless told otherwise."""

    def run(who: str, event: str, summary: str = "Done.", change: Change | None = None, **fields: Any) -> Appended:
        clock.step(1)
        if "reply_to" not in fields:
            fields["reply_to"] = len(lines(folder))
        return append(folder, Draft(who, event, summary, **fields), clock=clock, change=change)

    return run
