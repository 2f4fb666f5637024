"""The receipts that the runs of a workflow root leave, from their logs alone (docs/design.md §4).

An escalation opened, one decided (its parent is the escalation), a run ended (its parents are the decisions). What
failed is observed once, in the layer `workflow`, so that every failure that a person sees has a code.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from core import journal
from core.clock import parse, stamp
from core.files import Root
from core.finding import Finding, Refused, error, warning
from core.governance import boundary, failures
from core.governance.boundary import Receipt
from core.workflow.boundaries import LAYER, Boundary, Trail
from core.workflow.layout import RUNS, SCRATCH, log_file

CodeOf = Callable[[str, str | None, datetime], str]


class Receipts:
    """Makes the receipts of one root, each run's in the order of its log; remembers those that may be parents."""

    def __init__(self, path: Path, code_of: CodeOf) -> None:
        self.path, self._code_of = path, code_of
        self._goals: dict[str, str] = {}
        self._made: dict[str, dict[int, Receipt]] = {}

    def made(self, trail: Trail) -> bool:
        """Whether receipts of this run were asked for before."""
        return trail.run_id in self._made

    def new(self, trail: Trail) -> list[Receipt]:
        """The receipts of a run's boundaries after those that were asked for before."""
        made = self._made.setdefault(trail.run_id, {})
        found = []
        for item in trail.found[len(made) :]:
            made[item.seq] = self._receipt(trail, item, made)
            found.append(made[item.seq])
        return found

    def _receipt(self, trail: Trail, item: Boundary, made: Mapping[int, Receipt]) -> Receipt:
        moment = parse(item.at) or datetime.fromtimestamp(0, UTC)
        return boundary.workflow(
            item.run_id,
            item.seq,
            entry=item.entry,
            decision=None if item.decision is None else dict(item.decision),
            outcome=item.outcome,
            emitted_at=stamp(moment),
            goal=self._goal(trail),
            parents=[made[number] for number in item.parents],
            triage_code=None if item.failure is None else self._code_of(item.failure, item.by, moment),
        )

    def _goal(self, trail: Trail) -> str:
        if trail.run_id not in self._goals:
            with Root(self.path, SCRATCH) as root:
                self._goals[trail.run_id] = boundary.goal_of(root, trail.spec_hash, trail.description)
        return self._goals[trail.run_id]


class Leaver:
    """Writes, after the events of an engine, the receipts that follow from them. Never raises."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._trouble: list[Finding] = []
        self._receipts = Receipts(path, self._observed)

    def leave(self, trails: Iterable[Trail]) -> list[Finding]:
        """Write what is missing in these runs; what an earlier engine left undone too, the first time.

        What could not be done is a warning; the events stand whatever happens here.
        """
        self._trouble = []
        try:
            for trail in self._lacking(trails):
                boundary.write(self.path, boundary.missing(self.path, self._receipts.new(trail)))
        except Refused as exc:
            self._trouble += [failures.unwritten(item) for item in exc.findings]
        except (OSError, ValueError, RecursionError) as exc:
            cause = f"the receipt was not written: {type(exc).__name__}: {exc}"
            self._trouble.append(warning("receipt_not_written", cause, repair_command(self.path), str(self.path)))
        return self._trouble

    def _lacking(self, trails: Iterable[Trail]) -> list[Trail]:
        """Without those that are met for the first time and whose receipts are all there: nothing has to be made."""
        found = list(trails)
        if all(self._receipts.made(trail) for trail in found):
            return found
        with Root(self.path, SCRATCH) as root:
            there = set(root.names(boundary.RECEIPTS))

        def whole(trail: Trail) -> bool:
            return all(f"{boundary.workflow_id(trail.run_id, item.seq)}.json" in there for item in trail.found)

        return [trail for trail in found if self._receipts.made(trail) or not whole(trail)]

    def _observed(self, text: str, by: str | None, moment: datetime) -> str:
        return failures.observed(self.path, text, LAYER, by, moment, self._trouble)


def repair_command(path: Path) -> str:
    return f"collab repair --folder {shlex.quote(str(path))}"


def trails(path: Path) -> list[Trail]:
    """The boundaries of every run below a root, in the order of their names. Raises Refused."""
    found = []
    with Root(path, SCRATCH) as root:
        for name in sorted(root.names(RUNS)):
            if not name.endswith(".jsonl"):
                continue
            trail = Trail(name.removesuffix(".jsonl"))
            try:
                for line in journal.read(root, log_file(trail.run_id)).lines:
                    if line.record is None:
                        break
                    trail.add(line.record)
            except (KeyError, TypeError, AttributeError):
                # What is no log of ours is said by whoever reads runs.
                continue
            found.append(trail)
    return found


def _wanted(path: Path, code_of: CodeOf) -> list[Receipt]:
    receipts = Receipts(path, code_of)
    return [made for trail in trails(path) for made in receipts.new(trail)]


def rebuild(path: Path) -> list[Finding]:
    """What `collab repair` does in a workflow root: write the receipts that are missing and say so. Never raises."""
    trouble: list[Finding] = []
    try:
        wanted = _wanted(path, lambda text, by, moment: failures.observed(path, text, LAYER, by, moment, trouble))
        return [*boundary.rebuild(path, wanted), *trouble]
    except Refused as exc:
        return [*(failures.unwritten(item) for item in exc.findings), *trouble]
    except (OSError, ValueError, RecursionError) as exc:
        cause = f"the receipt was not written: {type(exc).__name__}: {exc}"
        return [warning("receipt_not_written", cause, repair_command(path), str(path)), *trouble]


def check(path: Path) -> list[Finding]:
    """What `collab validate --receipts` says of a workflow root: receipts missing, changed, or not trusted."""
    try:
        wanted = _wanted(path, lambda text, by, moment: failures.recorded(path, text, LAYER, by, moment))
        return boundary.check(path, wanted, repair_command(path))
    except (OSError, ValueError, RecursionError) as exc:
        return [error("file_unreadable", f"{path} cannot be read: {exc}", None, str(path))]
    except Refused as exc:
        return list(exc.findings)
