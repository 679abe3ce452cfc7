"""Files that would fill memory or cannot be read: they become bad records, in bounded memory."""

from __future__ import annotations

import gzip
import io
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from quadweir.errors import LimitError
from quadweir.fileformats import Compression
from quadweir.mapping.files import BROKEN, open_members, open_text
from quadweir.mapping.formats import csvfile
from quadweir.mapping.formats.csvfile import header_of, read_rows
from quadweir.mapping.sources import CsvDialect


def test_a_small_gzip_of_one_long_line_takes_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(csvfile, "MAX_LINE_CHARACTERS", 2**18)
    path = tmp_path / "a.csv.gz"
    with gzip.open(path, "wb") as file:
        file.write(b"a,b\n")
        for _ in range(64):
            file.write(b"x" * 2**19)
        file.write(b",1\n1,2\n")
    tracemalloc.start()
    with (
        open_members(path, Compression.GZIP) as members,
        open_text(next(members), "utf-8") as text,
    ):
        rows = list(read_rows(text, CsvDialect(), ("a", "b")))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [row.values for row in rows] == [None, ("1", "2")]
    assert "a line is longer than 262,144 characters" in rows[0].reason
    # The line has 32 MiB.
    assert most < 8 * 2**20


def test_a_file_of_a_hundred_thousand_columns_is_refused():
    with pytest.raises(LimitError, match="100,000 columns, and the limit is 10,000"):
        header_of(io.StringIO(",".join(map(str, range(100_000)))), CsvDialect())


def test_an_encrypted_zip_says_so(tmp_path: Path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.csv", "a\n1\n")
    data = bytearray(path.read_bytes())
    # The bit that says encrypted, in the header of the member and in the directory.
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    with (
        open_members(path, Compression.ZIP) as members,
        pytest.raises(BROKEN, match=r"a\.csv is encrypted"),
    ):
        next(members)


def test_utf_16_without_a_mark_says_so(tmp_path: Path):
    path = tmp_path / "a.csv"
    path.write_bytes("a\n1\n".encode("utf-16-le"))
    with (
        open_members(path, Compression.NONE) as members,
        open_text(next(members), "utf-16") as text,
        pytest.raises(BROKEN, match="does not start with BOM"),
    ):
        text.read()
