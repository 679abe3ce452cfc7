"""What one look at a file says about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from quadweir.mapping.formats import prescan
from quadweir.mapping.formats.prescan import CsvShape, look_at_csv, look_at_json


@pytest.fixture(params=[1, 2, 3, 7, 2**24], ids="chunks of {}".format)
def chunk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found must not depend on where a file is cut."""
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


def test_a_file_that_is_too_large_is_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prescan, "MOST_BYTES", 3)
    assert not look_at_json(write(tmp_path, b'{"a": 1}\n')).shape
