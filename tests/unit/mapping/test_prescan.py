"""The results of scanning a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from quadweir.mapping.formats import prescan
from quadweir.mapping.formats.prescan import CsvShape, look_at_csv, look_at_json


@pytest.fixture(params=[1, 2, 3, 7, 2**24], ids="chunks of {}".format)
def chunk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result must not depend on where a file is split."""
    monkeypatch.setattr(prescan, "_CHUNK", request.param)


def write(folder: Path, content: bytes) -> Path:
    path = folder / "file"
    path.write_bytes(content)
    return path


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize(
    ("content", "is_flat", "is_clean"),
    [
        (b'{"a": 1}\n{"a": "x y"}\n', True, True),
        (b'{"a": 1}\r\n\r\n{"a": 2}', True, True),
        (b'{"a": 1}\nbroken\n12\n', True, True),
        (b'{"a": "\\n"}\n', True, False),
        ('{"a": "é"}\n'.encode(), True, False),
        (b'{"a": "\x7f"}\n', True, False),
        (b'{"a": 1} {"a": 2}\n', False, False),
        (b'{"a": 1}{"a": 2}\n', False, False),
        (b'{"a": 1},{"a": 2}\n', False, False),
        (b'{"a": 1} more\n', False, False),
        (b'{"a": {"b": 1}}\n', False, False),
        (b'{"a": [1]}\n', False, False),
        (b'{"a": "[1]"}\n', False, False),
        (b'{"a": "{}"}\n', False, False),
        (b' {"a": 1}\n', False, False),
        (b'{"a": "\xff"}\n', False, False),
        (b'{"a": "\xc3', False, False),
    ],
)
def test_json(tmp_path: Path, content: bytes, is_flat: bool, is_clean: bool) -> None:
    look = look_at_json(write(tmp_path, content))
    assert (look.shape, look.is_clean) == (is_flat, is_clean)


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize(
    ("content", "shape", "is_clean"),
    [
        (b"id,v\n1,a\n2,b\n", CsvShape.PLAIN, True),
        (b"id,v\r\n1,a\r\n", CsvShape.PLAIN, True),
        (b"id,v\n1,a\\b\n", CsvShape.PLAIN, False),
        (b"id,v\n1,a\tb\n", CsvShape.PLAIN, False),
        ("id,v\n1,é\n".encode(), CsvShape.PLAIN, False),
        (b"id,v\n1,a\nid,v\n", CsvShape.LINES, False),
        (b'id,v\n1,"a,b"\n', CsvShape.LINES, False),
        (b'id,v\n1,"a\nb"\n', CsvShape.ANY, False),
        (b"\nid,v\n1,a\n", CsvShape.LINES, False),
        (b"\xef\xbb\xbfid,v\n1,a\n", CsvShape.LINES, False),
        (b"id,v\n1,\xff\n", CsvShape.ANY, False),
    ],
)
def test_csv(tmp_path: Path, content: bytes, shape: CsvShape, is_clean: bool) -> None:
    look = look_at_csv(write(tmp_path, content), '"')
    assert (look.shape, look.is_clean) == (shape, is_clean)


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize(
    ("content", "records"),
    [
        (b"id,v\n1,a\n2,b\n", 2),
        (b"id,v\n1,a\n2,b", 2),
        (b"id,v\n1,\n,b\n,\n", 3),
        (b"id,v\n", 0),
        (b"id\n1\n2\n", None),
        (b"id\n1\n\n2\n", None),
        (b"id\n1,2\n", None),
        (b"id,v\n1,a,x\n2\n", None),
        (b"id,v\n2\n1,a,x\n", None),
        (b"id,v\n1,a\n\n2,b\n", None),
        (b"id,v\n1,a\n2", None),
        (b"id,v\r\n1,a\r\n", None),
    ],
)
def test_rows_are_counted_if_all_are_as_wide_as_the_header(
    tmp_path: Path, content: bytes, records: int | None
) -> None:
    look = look_at_csv(write(tmp_path, content), '"', ",")
    assert (look.shape, look.records) == (CsvShape.PLAIN, records)


def test_a_delimiter_of_several_bytes_is_not_counted(tmp_path: Path) -> None:
    look = look_at_csv(write(tmp_path, "id§v\n1§2\n".encode()), '"', "§")
    assert (look.shape, look.records) == (CsvShape.PLAIN, None)


def test_a_file_that_is_too_large_is_not_scanned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prescan, "MOST_BYTES", 3)
    assert not look_at_json(write(tmp_path, b'{"a": 1}\n')).shape
