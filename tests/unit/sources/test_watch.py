"""The order in which a folder's files were found is written down once, for everybody."""

from __future__ import annotations

from pathlib import Path

import pytest

from quadweir.errors import SourceError
from quadweir.sources.watch import INDEX_NAME, FolderIndex


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_text(name)


def names(registry: FolderIndex, start: int, end: int) -> list[str]:
    return [found.name for found in registry.between(start, end)]


def test_new_files_follow_old_ones_whatever_their_names(tmp_path: Path) -> None:
    registry = FolderIndex(tmp_path)
    touch(tmp_path, "b", "c", ".hidden", "_mark")
    assert registry.scan() == 2
    touch(tmp_path, "a", "d")
    assert registry.scan() == 4
    assert registry.scan() == 4
    assert names(registry, 0, 4) == ["b", "c", "a", "d"]
    assert names(registry, 1, 3) == ["c", "a"]
    assert [found.size for found in registry.between(0, 1)] == [1]


def test_readers_share_one_order(tmp_path: Path) -> None:
    one, other = FolderIndex(tmp_path), FolderIndex(tmp_path)
    touch(tmp_path, "b")
    one.scan()
    touch(tmp_path, "a")
    other.scan()
    assert names(one, 0, 2) == names(other, 0, 2) == ["b", "a"]


def test_a_line_cut_short_by_a_crash_is_written_again(tmp_path: Path) -> None:
    touch(tmp_path, "a", "b")
    FolderIndex(tmp_path).scan()
    index = tmp_path / INDEX_NAME
    index.write_bytes(index.read_bytes()[:-5])
    registry = FolderIndex(tmp_path)
    assert registry.scan() == 2
    assert names(registry, 0, 2) == ["a", "b"]
    assert index.read_bytes().count(b"\n") == 2


def test_an_order_that_was_lost_is_not_made_up(tmp_path: Path) -> None:
    touch(tmp_path, "a")
    registry = FolderIndex(tmp_path)
    assert registry.scan() == 1
    with pytest.raises(SourceError):
        registry.between(0, 2)


def test_a_list_that_is_none_is_said(tmp_path: Path) -> None:
    (tmp_path / INDEX_NAME).write_text("[1]\n")
    with pytest.raises(SourceError):
        FolderIndex(tmp_path).scan()


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(SourceError):
        FolderIndex(tmp_path / "none").scan()
    folder = tmp_path / "data"
    folder.mkdir()
    touch(folder, "a")
    elsewhere = FolderIndex(folder, tmp_path / "index")
    assert elsewhere.scan() == 1
    assert not (folder / INDEX_NAME).exists()
