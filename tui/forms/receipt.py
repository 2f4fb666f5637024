"""A plan as a receipt: what is written, what it changes, what it would be as a command (docs/specs/console.md §4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.style import Style
from rich.text import Text

from core.acp import view
from core.acp.reader import Snapshot
from core.acp.store import Plan
from core.finding import Finding
from core.sanitize import inert, inert_block
from tui.forms.problems import finding_lines
from tui.widgets.diff import DiffLine, line_changes, unified
from tui.widgets.glyphs import State
from tui.widgets.lines import Line, LineView
from tui.widgets.panels import hanging
from tui.widgets.text import wrap, wrap_command

DIFF_CAP = 2000


@dataclass(frozen=True, slots=True)
class Moved:
    """What happened in a folder between two snapshots: new events as one-line texts, changed documents with counts."""

    events: tuple[str, ...]
    documents: tuple[str, ...]


def moved(before: Snapshot, after: Snapshot, minus: str = "−") -> Moved:
    """The events and document changes that a preview did not know of."""
    known = len(before.events)
    events = tuple(
        inert(f"{event.seq} {event.actor} {event.name} “{event.summary or ''}”") for event in after.events[known:]
    )
    documents = []
    for name in dict.fromkeys((*after.documents, *after.deliverables, *before.documents, *before.deliverables)):
        old, new = before.document(name), after.document(name)
        if old.sha256 != new.sha256:
            added, removed = line_changes(old.text, new.text)
            documents.append(f"{inert(name)} +{len(added)} {minus}{removed}")
    return Moved(events, tuple(documents))


@dataclass(frozen=True)
class Receipt:
    """Everything that the body of a preview shows."""

    plan: Plan | None
    command: str = ""
    refused: tuple[Finding, ...] = ()
    news: Moved | None = None


class ReceiptView(LineView):
    """The body of a preview: titled sections, scrolling, laid out anew for every width."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(empty="Reading the folder …", id=id)
        self._receipt: Receipt | None = None

    def show(self, receipt: Receipt) -> None:
        """Show a receipt from its top."""
        self._receipt = receipt
        self.resized(self.text_width)
        self._go(0)

    def resized(self, width: int) -> None:
        if self._receipt is not None and width > 0:
            self.set_lines(list(self._made(self._receipt, width)))

    def notify_style_update(self) -> None:
        super().notify_style_update()
        if self._receipt is not None and self.is_attached:
            self.resized(self.text_width)

    # Sections.

    def _made(self, receipt: Receipt, width: int) -> Iterator[Line | Text | str]:
        if receipt.news is not None:
            yield from self._news(receipt.news, width, receipt.plan is not None)
        if receipt.refused:
            yield from self._refused(receipt.refused, width, receipt.news is None)
        if receipt.plan is not None:
            yield from self._plan(receipt.plan, receipt.command, width)

    def _title(self, text: str) -> Text:
        return Text(text, style=self.colours.muted, end="")

    def _wrapped(self, text: str, width: int, style: Style | None = None, indent: int = 0) -> Iterator[Text]:
        for line in inert_block(text).split("\n"):
            for piece in wrap(line, max(2, width - indent)):
                yield Text(" " * indent + piece, style=style or self.colours.text, end="")

    def _command(self, command: str, width: int) -> Iterator[Text]:
        for piece in wrap_command(command, width):
            yield Text(piece, style=self.colours.code, end="")

    def _news(self, news: Moved, width: int, again: bool) -> Iterator[Text]:
        what = "The folder moved since this preview was made" + ("; this is what it would write now." if again else ".")
        warn = self.colours.warn
        yield from hanging(self.signs.state(State.WARN), warn, what, width, warn)
        for event in news.events[:8]:
            yield from self._wrapped(f"new event: {event}", width, indent=2)
        if len(news.events) > 8:
            yield from self._wrapped(f"and {len(news.events) - 8} more events", width, indent=2)
        for document in news.documents:
            yield from self._wrapped(f"changed: {document}", width, indent=2)
        if not news.events and not news.documents:
            yield from self._wrapped("the log was written anew", width, indent=2)
        yield Text("", end="")

    def _refused(self, findings: Sequence[Finding], width: int, nothing: bool) -> Iterator[Text]:
        """Why nothing was written, each with the command that helps."""
        yield self._title("Refused; nothing was written" if nothing else "Refused now")
        for finding in findings:
            yield from finding_lines(finding, width, self.colours, self.signs)
        yield Text("", end="")

    def _plan(self, plan: Plan, command: str, width: int) -> Iterator[Text]:
        yield self._title("Event, as this line of events.jsonl")
        yield from self._wrapped(plan.line.decode("utf-8", "replace").rstrip("\n"), width, self.colours.text)
        yield Text("", end="")
        yield self._title("Effect")
        effect = view.describe_effect(plan.before, plan.after).replace("→", self.signs.arrow)
        yield from self._wrapped(effect, width, self.colours.strong)
        yield Text("", end="")
        yield from self._document(plan, width)
        yield Text("", end="")
        given = ", given the new text on standard input" if command.endswith("--file -") else ""
        yield self._title("The same as a command" + given)
        yield from self._command(command, width)

    def _document(self, plan: Plan, width: int) -> Iterator[Text]:
        if plan.document is None or plan.new is None:
            yield self._title("Document")
            yield from self._wrapped("No document changes.", width)
            return
        old = (plan.old or b"").decode("utf-8", "replace").replace("\r\n", "\n")
        new = plan.new.decode("utf-8", "replace").replace("\r\n", "\n")
        added, removed = line_changes(old, new)
        name = f"Document {inert(plan.document)}  +{len(added)} {self.signs.minus}{removed}"
        yield self._title(name + ("  (new)" if plan.old is None else ""))
        for line in unified(old, new, cap=DIFF_CAP):
            yield from self._diff_line(line, width)

    def _diff_line(self, line: DiffLine, width: int) -> Iterator[Text]:
        sign, style = {
            "add": ("+", self.colours.added),
            "remove": (self.signs.minus, self.colours.removed),
            "same": (" ", self.colours.muted),
            "gap": (self.signs.cut, self.colours.muted),
        }[line.kind]
        for at, piece in enumerate(wrap(inert_block(line.text).replace("\n", " "), max(2, width - 2))):
            yield Text(f"{sign if at == 0 else ' '} {piece}", style=style, end="")


__all__ = ["Moved", "Receipt", "ReceiptView", "moved"]
