"""Lines in bounded memory: what is no usable line becomes a fault, and the rest is read."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import pytest

from quadweir.errors import SourceError
from quadweir.sources import lines as module
from quadweir.sources.lines import Block, Fault, Line, read_blocks, read_lines


def write(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "f"
    path.write_bytes(data)
    return path


def numbered(path: Path, **options: int) -> list[tuple[int, str]]:
    return [
        (item.number, item.text if isinstance(item, Line) else item.reason)
        for item in read_lines(path, **options)
    ]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"\n", [(1, "")]),
        (b"a\r\nb\n\nc", [(1, "a"), (2, "b"), (3, ""), (4, "c")]),
        (b"\xef\xbb\xbfa\n", [(1, "a")]),
        (b"a\n\xff\nb", [(1, "a"), (2, "not UTF-8 at byte 1"), (3, "b")]),
        (b"a\x00b\n", [(1, "a binary file, not text")]),
        (b"1234567890\nok\n", [(1, "a line of more than 8 bytes"), (2, "ok")]),
        (b"12345678\nok", [(1, "12345678"), (2, "ok")]),
        (b"ok\n" + b"x" * 100, [(1, "ok"), (2, "a line of more than 8 bytes")]),
    ],
)
def test_lines_and_faults(tmp_path: Path, data: bytes, expected: list[tuple[int, str]]) -> None:
    assert numbered(write(tmp_path, data), max_line_bytes=8) == expected
    assert numbered(write(tmp_path, gzip.compress(data)), max_line_bytes=8) == expected


def test_gzip_members_follow_one_another(tmp_path: Path) -> None:
    data = gzip.compress(b"a\nb") + gzip.compress(b"c\n") + b"\0" * 20
    assert numbered(write(tmp_path, data)) == [(1, "a"), (2, "bc")]


@pytest.mark.parametrize("cut", [12, 200, -9, -1])
def test_a_truncated_gzip_gives_what_it_holds_and_says_so(tmp_path: Path, cut: int) -> None:
    whole = b"".join(b"line %d\n" % n for n in range(2000))
    found = numbered(write(tmp_path, gzip.compress(whole)[:cut]))
    assert found[-1][1] == "the gzip file ends too early"
    for number, text in found[:-2]:
        assert text == f"line {number - 1}"


def test_a_damaged_gzip_says_so(tmp_path: Path) -> None:
    data = gzip.compress(b"a\n") + b"rubbish"
    assert [number for number, _ in numbered(write(tmp_path, data))] == [1, 2]
    assert "damaged" in numbered(write(tmp_path, data))[1][1]


def test_a_missing_file_is_an_error_of_the_source(tmp_path: Path) -> None:
    with pytest.raises(SourceError):
        list(read_lines(tmp_path / "none"))
    with pytest.raises(SourceError):
        list(read_lines(tmp_path))


def test_a_huge_line_takes_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "huge"
    with path.open("wb") as file:
        for _ in range(40):
            file.write(b"x" * 2**20)
        file.write(b"\nok\n")
    tracemalloc.start()
    try:
        found = numbered(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found == [(1, f"a line of more than {module.MAX_LINE_BYTES} bytes"), (2, "ok")]
    assert peak < 5 * module.MAX_LINE_BYTES


def test_every_cut_gives_every_line_once(tmp_path: Path) -> None:
    data = b"ab\n\ncdefghijklm\r\nn\no"
    path = write(tmp_path, data)
    for cut in range(len(data) + 1):
        parts = [read_blocks(path, end=cut or None) if cut else [], read_blocks(path, start=cut)]
        found = b"".join(block.data for part in parts for block in part if isinstance(block, Block))
        assert found == data, cut


def test_a_long_line_belongs_to_the_part_it_begins_in(tmp_path: Path) -> None:
    path = write(tmp_path, b"a\n" + b"x" * 50 + b"\nb\n")
    first = list(read_blocks(path, end=10, max_line_bytes=8))
    second = list(read_blocks(path, start=10, number=3, max_line_bytes=8))
    assert [type(item) for item in first] == [Block, Fault]
    assert second == [Block(3, b"b\n")]
