"""A minted code gets a name, or means one that exists; a signal is recorded (docs/specs/governance.md §2)."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from core.clock import Clock
from core.finding import Refused, error
from core.triage import rules, store
from core.triage.model import Catalog, Seen
from core.triage.rules import Wish
from core.triage.store import OBSERVATIONS, RESOLUTION, TRIAGE, Place
from tui.forms.confirm import Deed
from tui.forms.deeds import DeedForm
from tui.forms.drafts import Drafts, Saved
from tui.forms.fields import AreaField, Choice, ChoiceField, Field, LineField

SHOWN: Final = 12
"""Entries that an alias may be chosen among at once; a longer list is narrowed by typing."""


class NamingForm(DeedForm):
    """About one minted code of a workspace. Dismissed with what was done, or None."""

    def __init__(self, root: Path, seen: Seen, catalog: Catalog, by: str | None, drafts: Drafts, clock: Clock) -> None:
        super().__init__(root, seen.code, drafts, clock, by=by)
        self.seen, self.catalog, self.by = seen, catalog, by


def telling(seen: Seen) -> str:
    """A text that the signals of this code contain: the first line that tells what went wrong, normalised."""
    return rules.normalise(rules.telling(seen.signal))[:120].strip()


class PromoteForm(NamingForm):
    """Code, layer, what its signals contain, cause, next command."""

    HEADING = "Promote an unknown failure"
    FORM = "promote"

    def fields(self) -> list[Field]:
        seen = self.seen
        yes_no = [Choice("yes", "yes", "trying again may help"), Choice("no", "no", "trying again is useless")]
        return [
            LineField("code", "Code", "its name from now on, words_with_underscores", ("--code",)),
            LineField("layer", "Layer", "where it belongs", ("--layer",), value=seen.layer or ""),
            AreaField("match", "Match", "one a line: texts that its signals contain", ("--match",), telling(seen)),
            LineField("cause", "Cause", "what is wrong, one sentence", ("--cause",)),
            LineField("next", "Next command", "exact and runnable; blank for none", ("--next-command",)),
            ChoiceField("recoverable", "Recoverable", yes_no, value="yes"),
            AreaField("not_this", "Not this", "one a line: what it is not", ("--not-this",)),
        ]

    def deed(self) -> Callable[[], Deed]:
        recoverable = self.query_one("#field-recoverable", ChoiceField).choice
        wish = Wish(
            self.line("code"),
            self.line("layer"),
            self.items("match"),
            self.line("cause"),
            self.line("next") or None,
            recoverable is None or recoverable.id == "yes",
            self.items("not_this"),
        )
        return partial(promotion, self.root, self.seen, wish, self.by, self.clock)


def promotion(root: Path, seen: Seen, wish: Wish, by: str | None, clock: Clock) -> Deed:
    """A promotion that would work now. Raises Refused with every reason against it."""
    place = Place(root)
    if not wish.match:
        raise Refused(error("field_missing", "a required field is missing: --match", None, "--match"))
    made = store.check_promotion(place, seen.code, wish)
    entry = [
        f"{key}: {', '.join(value) if isinstance(value, list) else value}" for key, value in wish.as_json().items()
    ]
    words = ["collab", "triage", "promote", seen.code, "--root", str(root), "--code", wish.code, "--layer", wish.layer]
    for text in wish.match:
        words += ["--match", text]
    words += ["--cause", wish.cause]
    words += ["--next-command", wish.next_command] if wish.next_command is not None else ["--no-next-command"]
    words += [] if wish.recoverable else ["--not-recoverable"]
    for text in wish.not_this:
        words += ["--not-this", text]

    def do() -> str:
        store.promote(place, seen.code, wish, by, clock)
        return f"{seen.code} is {wish.code} from now on"

    sections = (
        ("Writes", (made.catalog, str(root / TRIAGE / seen.code / RESOLUTION))),
        ("The last entry of the catalogue", entry),
        ("Effect", (f"{seen.sightings} recorded sightings of {seen.code} are {wish.code}; it waits no longer",)),
    )
    return Deed(seen.code, sections, shlex.join(words), do)


class AliasForm(NamingForm):
    """Choose the entry that a minted code means."""

    HEADING = "Alias of a code that exists"
    FORM = "alias"

    def fields(self) -> list[Field]:
        return [
            LineField("find", "Find a code", "narrows the list below"),
            ChoiceField("code", "It means", self._matching(""), where=(rules.CATALOG, "--code")),
        ]

    def _matching(self, text: str) -> list[Choice]:
        from core.triage.view import entries

        return [Choice(one.code, one.code, one.cause) for one in entries(self.catalog, None, text)[:SHOWN]]

    def on_field_changed(self, event: Field.Changed) -> None:
        if event.field.key == "find":
            self.query_one("#field-code", ChoiceField).set_choices(self._matching(self.line("find")))
        super().on_field_changed(event)

    def restore(self, saved: Saved) -> None:
        find = saved.fields.get("find")
        if isinstance(find, str):
            self.query_one("#field-code", ChoiceField).set_choices(self._matching(find.strip()))
        super().restore(saved)

    def deed(self) -> Callable[[], Deed]:
        choice = self.query_one("#field-code", ChoiceField).choice
        return partial(aliasing, self.root, self.seen, choice.id if choice is not None else "", self.by, self.clock)


def aliasing(root: Path, seen: Seen, code: str, by: str | None, clock: Clock) -> Deed:
    """An alias that would work now. Raises Refused with every reason against it."""
    place = Place(root)
    catalog = place.load()
    found = [
        error(fault, cause, None, "--code") for fault, cause in rules.alias_faults(seen.code, code, catalog.by_code)
    ]
    if found:
        raise Refused(*found)

    def do() -> str:
        store.alias(place, seen.code, code, by, clock)
        return f"{seen.code} means {code} from now on"

    sections = (
        ("Writes", (str(place.target()), str(root / TRIAGE / seen.code / RESOLUTION))),
        ("Alias", (f"{seen.code}: {code}", catalog.by_code[code].cause)),
        ("Effect", (f"its signals are {code}; it waits no longer",)),
    )
    words = ["collab", "triage", "alias", seen.code, code, "--root", str(root)]
    return Deed(seen.code, sections, shlex.join(words), do)


def recording(root: Path, signal: str, layer: str | None, catalog: Catalog, by: str | None, clock: Clock) -> Deed:
    """Observing a signal: one line, and what an unknown one leaves the first time. Raises Refused."""
    report = rules.classify(signal, layer, catalog)

    def do() -> str:
        made = store.observe(Place(root), signal, layer, by, clock)
        return f"{made.report.code}: {made.sightings} sighting{'s' if made.sightings != 1 else ''}"

    writes = [f"one line of {root / OBSERVATIONS}"]
    if report.ambiguous:
        writes.append(f"ticket, evaluation case and memory below {root / TRIAGE / report.code}, unless they are there")
    lines = signal.splitlines()
    shown = [*lines[:8], f"and {len(lines) - 8} more lines"] if len(lines) > 9 else lines
    words = ["collab", "triage", "observe", "--receipt", "-", "--root", str(root)]
    words += ["--layer", layer] if layer else []
    effect = (
        "one more sighting; from the second on the inbox asks for a name" if report.ambiguous else "one more sighting"
    )
    sections = (("Writes", writes), ("Signal", shown), ("Code", (report.code, report.cause)), ("Effect", (effect,)))
    return Deed(str(root), sections, shlex.join(words), do, ", given the signal on standard input")
