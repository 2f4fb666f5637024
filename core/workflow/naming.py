"""What failures of workflows are called in the vocabulary of their workspace (docs/design.md §4, `triage_code`)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from core.finding import Refused
from core.triage import rules
from core.triage.model import Catalog
from core.triage.store import Place
from core.workflow.boundaries import LAYER, failure_of
from core.workflow.model import Entry


class Names:
    """Codes by the catalogue in use at a root; there are none while that cannot be read."""

    def __init__(self, root: Path) -> None:
        try:
            self.catalog: Catalog | None = Place(root).load()
        except Refused:
            self.catalog = None

    def entry(self, entry: Entry) -> str | None:
        """The code of what an entry asks about; None when nothing failed."""
        text = failure_of(entry.kind, entry.cause, entry.question)
        return None if text is None else self._code(text)

    def cause(self, cause: str | None) -> str | None:
        """The code of a step's cause."""
        return self._code(failure_of("error", cause, "") or "") if cause else None

    def of(self, causes: Iterable[str | None]) -> dict[str, str]:
        """Codes by cause."""
        return {cause: code for cause in causes if cause and (code := self.cause(cause)) is not None}

    def _code(self, text: str) -> str | None:
        return None if self.catalog is None or not text else rules.code_of(text, LAYER, self.catalog)
