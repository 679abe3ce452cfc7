"""Samples of records: the last that were pushed, or the first of a file."""

from __future__ import annotations

from pathlib import Path

from quadweir.service.pushlog import PushLog
from quadweir.service.samples import MOST_RECORDS, sample_records
from quadweir.sources.declare import (
    Arrival,
    FolderSource,
    Format,
    FromColumn,
    PushSource,
    ReplaySource,
    StreamDeclaration,
    TcpSource,
)


def test_the_last_pushed_records(tmp_path: Path) -> None:
    declared = StreamDeclaration(
        iri="urn:s", source=PushSource(), format=Format.JSONL, time=Arrival()
    )
    log = PushLog(tmp_path / "log", most_bytes=1 << 20, kept_bytes=1 << 20)
    assert sample_records(declared, log.folder) == []
    for n in range(30):
        log.append([f'{{"n": {n}}}'], [n], now_ms=n, key="", digest=b"")
    found = sample_records(declared, log.folder)
    log.close()
    assert found == [f'{{"n": {n}}}' for n in range(30 - MOST_RECORDS, 30)]


def test_the_first_records_of_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,v\n" + "".join(f"{n},{n}\n" for n in range(50)))
    declared = StreamDeclaration(
        iri="urn:s",
        source=ReplaySource(path=tmp_path / "a.csv"),
        format=Format.CSV,
        time=FromColumn("v"),
    )
    found = sample_records(declared, None)
    assert (len(found), found[0], found[-1]) == (MOST_RECORDS, "id,v\n0,0", "id,v\n9,9")


def test_a_cut_line_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"long": "' + "x" * 199_000 + '"}\n' + "y" * 9_000)
    declared = StreamDeclaration(
        iri="urn:s", source=FolderSource(path=tmp_path), format=Format.JSONL, time=FromColumn("t")
    )
    assert len(sample_records(declared, None)) == 1


def test_without_records_there_are_no_samples(tmp_path: Path) -> None:
    gone = FolderSource(path=tmp_path / "gone")
    for source, form in ((gone, Format.JSONL), (TcpSource(port=1), Format.JSONL)):
        declared = StreamDeclaration(iri="urn:s", source=source, format=form, time=FromColumn("t"))
        assert sample_records(declared, None) == []
    rdf = StreamDeclaration(iri="urn:s", source=gone, format=Format.TIMED_LINES)
    assert sample_records(rdf, None) == []
