"""A folder of receipts that is looked at again and again: the same as reading it, without reading it all."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from core.files import Root
from core.finding import Refused
from core.governance import store, view
from core.triage.model import Catalog
from tests.unit.core.governance.samples import CATALOG, data, envelope, ref, status


def put(folder: Path, name: str, document: object) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data(document))


def same(shelf: store.Shelf, folder: Path, catalog: Catalog = CATALOG) -> None:
    found, kept = shelf.look(catalog)
    assert found == store.receipts(folder, catalog)
    assert kept == store.statuses(folder, catalog, folder)
    assert view.trusts(found) == view.trusts(store.receipts(folder, catalog))


def test_it_comes_to_what_reading_comes_to(tmp_path: Path) -> None:
    shelf = store.Shelf(tmp_path, tmp_path)
    same(shelf, tmp_path)
    put(tmp_path, "a.json", envelope("a"))
    put(tmp_path, "deep/b.json", envelope("b", parent_refs=[ref("a")]))
    put(tmp_path, "s.json", status())
    put(tmp_path, "x.json", {"schema": "other"})
    (tmp_path / "torn.json").write_text("{")
    same(shelf, tmp_path)
    put(tmp_path, "a.json", envelope("a", emitted_at="2026-01-02T00:00:00Z"))
    same(shelf, tmp_path)
    put(tmp_path, "x.json", envelope("x", parent_refs=[ref("x")]))
    (tmp_path / "deep/b.json").unlink()
    put(tmp_path, "twice.json", envelope("a", parent_refs=[ref("a")]))
    same(shelf, tmp_path)


def test_only_what_changed_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        put(tmp_path, f"{name}.json", envelope(name))
    shelf, asked = store.Shelf(tmp_path, tmp_path), list[str]()
    read = Root.read

    def counted(root: Root, name: str, cap: int = 0) -> object:
        asked.append(name)
        return read(root, name, cap)

    monkeypatch.setattr(Root, "read", counted)
    shelf.look(CATALOG)
    assert asked == ["a.json", "b.json", "c.json"]
    asked.clear()
    shelf.look(CATALOG)
    assert asked == []
    put(tmp_path, "b.json", envelope("b", emitted_at="2026-01-02T00:00:00Z"))
    shelf.look(CATALOG)
    assert asked == ["b.json"]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Refused) as caught:
        store.Shelf(tmp_path / "none", tmp_path).look(CATALOG)
    assert caught.value.findings[0].code == "file_unreadable"


@pytest.mark.parametrize("shape", list(itertools.product([0, 1], repeat=6)))
def test_an_index_resolves_like_a_list(tmp_path: Path, shape: tuple[int, ...]) -> None:
    """Every way in which three receipts may refer to each other, with and without a twin."""
    names = "abc"
    for number, name in enumerate(names):
        others = [one for one in names if one != name]
        refs = [ref(one) for at, one in enumerate(others) if shape[2 * number + at]]
        put(tmp_path, f"{name}.json", envelope(name, parent_refs=refs))
    if sum(shape) % 2:
        put(tmp_path, "twin.json", envelope("b", emitted_at="2026-01-02T00:00:00Z"))
    found = store.receipts(tmp_path, CATALOG)
    known = store.Known(found)
    for item in found:
        if item.envelope is not None:
            assert store.resolve(item.envelope, item.file, item.digest, known) == store.resolve(
                item.envelope, item.file, item.digest, found
            )
