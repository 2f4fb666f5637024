"""Refusals and findings as people read them: sign, cause, place, the command that helps (docs/design.md §2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text
from textual.widget import Widget

from core.finding import Finding
from core.sanitize import inert
from tui.widgets.glyphs import Glyphs, Palette, State, glyphs, palette
from tui.widgets.panels import hanging
from tui.widgets.text import wrap, wrap_command


def finding_lines(finding: Finding, width: int, colours: Palette, signs: Glyphs, code: bool = True) -> Iterator[Text]:
    """A finding in lines of at most `width` cells; the command can be pasted as it stands."""
    state = State.FAILED if finding.severity == "error" else State.WARN
    yield from hanging(signs.state(state), colours.state(state), finding.cause, width, colours.text)
    if code:
        where = f" in {inert(finding.where)}" if finding.where else ""
        for piece in wrap(inert(finding.code) + where, width - 2):
            yield Text(f"  {piece}", style=colours.muted, end="")
    if finding.next_command:
        for piece in wrap_command(finding.next_command, max(2, width - 2)):
            yield Text(f"  {piece}", style=colours.code, end="")


class Problems(Widget):
    """Findings that belong to no field; as high as they are, up to a third of a screen."""

    DEFAULT_CSS = """
    Problems { height: auto; max-height: 8; padding: 0 2; margin: 1 0 0 0; display: none; }
    Problems.-shown { display: block; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._findings: tuple[Finding, ...] = ()

    def show(self, findings: Sequence[Finding]) -> None:
        """Show these, or nothing."""
        self._findings = tuple(findings)
        self.set_class(bool(findings), "-shown")
        self.refresh(layout=True)

    def body(self, width: int) -> Text:
        """All findings below each other."""
        colours, signs = palette(self.app), glyphs(self.app)
        lines = [
            line for item in self._findings for line in finding_lines(item, max(8, width), colours, signs, code=False)
        ]
        return Text("\n", end="").join(lines)

    def render(self) -> Text:
        return self.body(self.content_size.width)

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        return self.body(width).plain.count("\n") + 1


__all__ = ["Problems", "finding_lines"]
