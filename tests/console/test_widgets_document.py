"""Documents: raw at once, rendered later, inert always."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from rich.cells import cell_len

from core.acp.model import Document
from core.files import sha256
from core.finding import error
from tests.console.hosts import HOSTILE, SIZES, is_inert, listen, running, settle
from tui.themes import theme_name
from tui.widgets import document, markdown
from tui.widgets.document import Changes, DocumentView

TEXT = """# Title

A paragraph with *words* in **it** and `code`, see [a page](https://example.org/page).

- first
- second
  - inner

1. one
2. two

```
def code(): return "x"
```

> quoted

| a | b |
|---|--:|
| 1 | 2 |

## Second

The end.
"""


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    document._kept.clear()
    yield
    document._kept.clear()


def doc(text: str | bytes, name: str = "proposal.md") -> Document:
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return Document(name, data, sha256(data))


async def test_raw_text_stands_there_at_once_and_the_rendering_follows() -> None:
    view = DocumentView()
    heard = listen(view, DocumentView.Rendered)
    async with running(view) as (app, pilot):
        view.show(doc(TEXT))
        written = [view.plain_at(index) for index in range(5)]
        assert written[:2] == ["# Title", ""]
        assert " ".join(written[2:4]) == TEXT.split("\n")[2]
        assert not view.whole
        await settle(pilot, lambda: view.whole)
        shown = app.shown()
        for text in ("# Title", "• first", "1. one", "▌ quoted", "def code()", "(https://example.org/page)"):
            assert text in shown
        assert "**" not in shown
        assert "```" not in shown
        assert not app.links(), "a link leads nowhere"
        assert [(item.name, item.whole) for item in heard if isinstance(item, DocumentView.Rendered)] == [
            ("proposal.md", True)
        ]


async def test_as_written_and_back() -> None:
    view = DocumentView()
    async with running(view) as (app, pilot):
        view.show(doc(TEXT))
        await settle(pilot, lambda: view.whole)
        view.toggle_raw()
        await pilot.pause()
        assert view.raw
        assert "**it**" in app.shown()
        view.toggle_raw()
        await pilot.pause()
        assert "**it**" not in app.shown()


def widths() -> set[int]:
    return {key[1] for key in document._kept.keys()}  # noqa: SIM118 - this cache cannot be iterated


async def test_a_rendered_document_is_kept_by_its_digest_and_width() -> None:
    view = DocumentView()
    async with running(view) as (_, pilot):
        view.show(doc(TEXT))
        await settle(pilot, lambda: view.whole)
        view.show(doc("other", "other.md"))
        await settle(pilot, lambda: view.whole)
        view.show(doc(TEXT))
        assert view.whole, "no thread is needed"
        assert widths() == {view.text_width}
        await pilot.resize_terminal(60, 15)
        await settle(pilot, lambda: view.whole)
        assert widths() == {view.text_width, view.text_width + 20}


@pytest.mark.parametrize("size", SIZES)
async def test_hostile_documents_are_inert(size: tuple[int, int]) -> None:
    tricks = [
        *HOSTILE,
        "&#27;[31m &#x202E; &#x9b;",
        "<script>alert(1)</script> <!-- said aloud -->",
        "![image \x1b](http://x\u202e/y)",
        "[\x1b]8;;http://evil\x07link\x1b]8;;\x07](javascript:alert(1))",
        "> " * 200 + "deep",
        'a [link](http://x "in a title")',
        "[used]: http://a.definition 'a definition'",
        "``` in the info\ncode\n```",
        "- " * 60 + "inmost",
        "|".join(f"cell {number}" for number in range(50)) + "\n" + "|".join(["-"] * 50),
        "[" * 3000,
        "|" * 3000,
        "x" * 4000,
        "界" * 3000,
    ]
    text = "\n\n".join(tricks) + "\n\n```\n" + "\n".join(tricks) + "\n```\n\n- " + "\n- ".join(tricks)
    view = DocumentView()
    async with running(view, size) as (app, pilot):
        view.focus()
        for raw in (False, True):
            view.raw = raw
            view.show(doc(text, f"{raw}.md"))
            await settle(pilot, lambda: view.whole)
            for index in range(view.line_count):
                assert is_inert(view.plain_at(index))
            seen = app.rows()
            for top in range(0, view.line_count, 10):
                view.scroll_to(y=top, animate=False, immediate=True)
                seen += ["".join(part.text for part in view.render_line(y)) for y in range(size[1])]
            assert all(is_inert(row) and cell_len(row) == size[0] for row in seen)
            assert not app.links()
            whole = " ".join(" ".join(view.plain_at(index).split()) for index in range(view.line_count))
            for part in ("said aloud", "deep", "in a title", "a definition", "in the info", "inmost", "cell 49"):
                assert part in whole, f"{part} is hidden"


async def test_bytes_that_are_no_text_are_shown_as_far_as_they_can_be() -> None:
    view = DocumentView()
    async with running(view) as (app, pilot):
        view.show(doc(b"good\xff\xfe bytes\n"))
        await settle(pilot, lambda: view.whole)
        assert "good�� bytes" in app.shown()


async def test_what_is_missing_says_so_and_what_would_be_here() -> None:
    view = DocumentView()
    async with running(view) as (app, pilot):
        problem = error("path_is_link", "review.md is a symbolic \x1b link", "collab show --folder talk")
        view.show(Document("review.md", None, None, problem), empty="Reviews will be here. Press r to write one.")
        await pilot.pause()
        shown = app.shown()
        assert "✕ review.md is a symbolic ␛ link" in shown
        assert "Press r to write one." in shown
        assert "collab show --folder talk" in shown
        view.show(doc("", "review.md"), empty="Press r to write one.")
        await settle(pilot)
        assert "review.md is empty." in app.shown()


async def test_the_same_document_keeps_its_place_and_another_begins_at_its_top() -> None:
    lines = [f"paragraph {number} {'**b** ' * 20}\n" for number in range(200)]
    view = DocumentView()
    async with running(view) as (app, pilot):
        view.focus()
        view.show(doc("\n".join(lines)))
        await settle(pilot, lambda: view.whole)
        await pilot.press("pagedown", "pagedown", "down")
        await pilot.pause()
        places = range(view.scroll_offset.y, view.scroll_offset.y + 4)
        top = next(" ".join(text.split()[:2]) for text in map(view.plain_at, places) if text.startswith("paragraph"))
        view.show(doc("\n".join([*lines, "one more\n"])))
        await settle(pilot, lambda: view.whole)
        assert top in " ".join(app.rows()[:5])
        view.toggle_raw()
        await pilot.pause()
        assert top in " ".join(app.rows()[:5])
        await pilot.resize_terminal(60, 15)
        await settle(pilot, lambda: view.whole)
        assert top in " ".join(app.rows()[:5])
        view.show(doc("\n".join(lines), "other.md"))
        await settle(pilot, lambda: view.whole)
        assert view.scroll_offset.y == 0


async def test_changes_are_marked_in_the_margin_and_counted() -> None:
    old = TEXT.replace("- second\n", "").replace("The end.", "An end.\nAnd more.")
    changes = Changes.between(old, TEXT)
    assert changes.title() == "+2 −2 since you last looked"
    view = DocumentView()
    async with running(view, (80, 40)) as (app, pilot):
        view.show(doc(TEXT), changes)
        for raw in (True, False):
            view.raw = raw
            view.show(doc(TEXT + " " * raw), Changes.between(old, TEXT))
            await settle(pilot, lambda: view.whole)
            marked = [row[2:].strip() for row in app.rows() if row.startswith("▎")]
            assert any("second" in row for row in marked)
            assert any("The end." in row for row in marked)
            assert not any("first" in row or "Title" in row for row in marked)
        assert view.changes_title.plain == "+2 −2 since you last looked"
        app.ascii_glyphs = True
        assert view.changes_title.plain == "+2 -2 since you last looked"
    assert Changes.between("a\n", "a\n").title() == "unchanged since you last looked"


async def test_a_large_document_is_rendered_section_by_section_while_keys_work() -> None:
    section = "## Part {0}\n\n" + "some words here " * 30 + "\n\n- point **{0}**\n\n"
    text = "".join(section.replace("{0}", str(number)) for number in range(600))
    assert len(text) > document.HEAD * 4
    view = DocumentView()
    heard: list[Any] = listen(view, DocumentView.Rendered)
    async with running(view) as (app, pilot):
        view.focus()
        view.show(doc(text))
        assert "## Part 0" in view.plain_at(0)
        await pilot.press("end", "home", "pagedown")
        await settle(pilot, lambda: view.whole)
        assert [item.whole for item in heard].count(True) == 1
        assert heard[-1].whole
        await pilot.press("end")
        await pilot.pause()
        assert "• point 599" in app.shown()


async def test_work_for_a_document_that_is_gone_is_dropped() -> None:
    view = DocumentView()
    async with running(view) as (app, pilot):
        view.show(doc("first *text*\n" * 3000, "one.md"))
        view.show(doc("second *text*", "two.md"))
        await settle(pilot, lambda: view.whole)
        assert "second text" in app.shown()
        assert "first" not in app.shown()


async def test_a_renderer_that_fails_leaves_the_text_as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    good = markdown.render

    def bad(lines: Any, first: int, width: int, palette: Any) -> Any:
        if any("poison" in line for line in lines):
            raise RecursionError("too deep")
        return good(lines, first, width, palette)

    monkeypatch.setattr(markdown, "render", bad)
    view = DocumentView()
    async with running(view) as (app, pilot):
        view.show(doc("# One\n\n**good**\n\n# Two\n\n**poison**\n"))
        await settle(pilot, lambda: view.whole)
        assert "**poison**" in app.shown()
        assert "**good**" not in app.shown()


async def test_another_theme_colours_the_document_anew() -> None:
    view = DocumentView()
    async with running(view) as (app, pilot):
        view.show(doc(TEXT))
        await settle(pilot, lambda: view.whole)

        def colours() -> set[str]:
            strips = app.screen._compositor.render_strips()
            return {str(part.style.color) for strip in strips for part in strip if part.text.strip() and part.style}

        dark = colours()
        app.theme = theme_name("light")
        await settle(pilot, lambda: view.whole and not (colours() & dark))


def test_sections_end_at_headings_outside_fences_and_cover_every_line() -> None:
    lines = ["# A", "", "```", "# no heading", "```", "text", "## B", *["word " * 50] * 400, "", "more", "~~~", "## C"]
    found = list(markdown.sections(lines))
    assert found[0] == (0, 6)
    assert [stop for _, stop in found] == [*(start for start, _ in found[1:]), len(lines)]
    assert len(found) > 2
    assert not any(start == len(lines) - 1 for start, _ in found)


def test_a_text_is_the_same_in_pieces_and_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["", "\n", "a", "a\r\nb\r\n\r\nc", "\t\x1b\x85x\u2028\n\n", "one\x0btwo\rthree\n" * 9, "no end" * 9]
    whole = [document._lines(text) for text in texts]
    for size in (1, 2, 3, 7):
        monkeypatch.setattr(document, "PIECE", size)
        assert [document._lines(text) for text in texts] == whole
