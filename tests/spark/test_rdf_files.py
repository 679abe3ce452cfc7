from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from quadweir import rows
from quadweir.errors import SourceError, UsageError
from quadweir.jelly import write_jelly
from quadweir.sinks.rdf_files import write_rdf
from quadweir.sources.rdf_files import RdfFiles, read_rdf
from quadweir.terms import IRI, Literal, Quad

pytestmark = pytest.mark.spark

LINE = '<urn:s{0}> <urn:p> "o{0}" .\n'


def _quads(read: RdfFiles) -> list[str]:
    return sorted(" ".join(term for term in row if term) for row in read.quads.collect())


def _letters(read: RdfFiles) -> set[tuple[str, str, str]]:
    return {(Path(row.source).name, row.place, row.reason) for row in read.dead_letters.collect()}


def test_all_formats_hold_the_same_quads(spark: SparkSession, tmp_path: Path) -> None:
    pytest.importorskip("pyjelly")
    (tmp_path / "a.nt").write_text('<urn:s> <urn:p> "é"@EN .\n')
    (tmp_path / "b.ttl").write_text('<urn:s> <urn:p> "é"@en .')
    (tmp_path / "c.trig").write_text('<urn:s> <urn:p> "é"@en .')
    (tmp_path / "d.jsonld").write_text(
        '{"@id": "urn:s", "urn:p": {"@value": "é", "@language": "en"}}'
    )
    (tmp_path / "e.rdf").write_text(
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:u="urn:">'
        '<rdf:Description rdf:about="urn:s"><u:p xml:lang="en">é</u:p></rdf:Description></rdf:RDF>'
    )
    with gzip.open(tmp_path / "f.nq.gz", "wt") as file:
        file.write('<urn:s> <urn:p> "\\u00E9"@en .\n')
    quad = Quad(IRI("urn:s"), IRI("urn:p"), Literal("é", language="en"))
    (tmp_path / "g.jelly").write_bytes(b"".join(write_jelly([quad])))
    read = read_rdf(spark, tmp_path)
    assert _quads(read) == ['<urn:s> <urn:p> "é"@en'] * 7
    assert _letters(read) == set()


def test_bad_files_cost_only_themselves(spark: SparkSession, tmp_path: Path) -> None:
    """A truncated gzip, a binary file and a line of 100 MB; the rest is read."""
    packed = gzip.compress("".join(LINE.format(i) for i in range(5000)).encode(), mtime=0)
    (tmp_path / "truncated.nt.gz").write_bytes(packed[: len(packed) // 2])
    (tmp_path / "binary.nt").write_bytes(bytes(range(256)) * 4)
    with (tmp_path / "long.nt").open("w") as file:
        file.write(LINE.format("before"))
        file.write('<urn:s> <urn:p> "')
        for _ in range(100):
            file.write("x" * 2**20)
        file.write('" .\n')
        file.write(LINE.format("after"))
    (tmp_path / "good.nt").write_text(LINE.format("good"))
    (tmp_path / "notes.txt").write_text("not RDF")
    (tmp_path / "bomb.rdf").write_text(
        '<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><r>&b;</r>'
    )
    (tmp_path / "half.ttl").write_text('<urn:half> <urn:p> "o" . <urn:half> <urn:p ')
    read = read_rdf(spark, tmp_path)
    quads = _quads(read)
    for subject in ("before", "after", "good", "0"):
        assert f'<urn:s{subject}> <urn:p> "o{subject}"' in quads
    letters = _letters(read)
    reasons = {name: reason for name, _, reason in letters}
    # The line that the end cuts in two is a letter of its own.
    ends = {reason for name, _, reason in letters if name == "truncated.nt.gz"}
    assert "the gzip file ends too early" in ends
    assert reasons["notes.txt"] == "no RDF format has the suffix .txt"
    assert reasons["bomb.rdf"] == "the file has a document type declaration"
    assert reasons["half.ttl"].startswith("not Turtle")
    assert ("long.nt", "line 2", "longer than 16777216 bytes") in letters
    assert "binary.nt" in reasons


def test_dead_letters_carry_their_line_numbers_across_splits(
    spark: SparkSession, tmp_path: Path
) -> None:
    bad = {7, 1000, 4999}
    lines = ["wrong\n" if i in bad else LINE.format(i) for i in range(1, 5001)]
    for name in ("one.nt", "two words+.nt", "odd[1]*.nt"):
        (tmp_path / name).write_text("".join(lines))
    before = spark.conf.get("spark.sql.files.maxPartitionBytes")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "20000b")
    try:
        read = read_rdf(spark, tmp_path)
        assert read.quads.rdd.getNumPartitions() > 10
        letters = _letters(read)
        count = read.quads.count()
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", str(before))
    assert count == 3 * 4997
    assert {(name, place) for name, place, _ in letters} == {
        (name, f"line {number}")
        for name in ("one.nt", "two words+.nt", "odd[1]*.nt")
        for number in bad
    }


def test_labels_of_different_files_are_different_nodes(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("a.nt", "b.nt"):
        (tmp_path / name).write_text("_:x <urn:p> _:x .\n")
    subjects = {row.subject for row in read_rdf(spark, tmp_path).quads.collect()}
    assert len(subjects) == 2
    assert _quads(read_rdf(spark, tmp_path / "a.nt")) == ["_:x <urn:p> _:x"]


def test_graph_names_have_no_place_in_n_triples(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text("<urn:s> <urn:p> <urn:o> <urn:g> .\n")
    read = read_rdf(spark, tmp_path / "a.nt")
    assert _quads(read) == []
    assert _letters(read) == {("a.nt", "line 1", "a graph name in N-Triples")}


def test_nothing_there_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no such file or folder"):
        read_rdf(spark, tmp_path / "absent")
    assert _quads(read_rdf(spark, tmp_path)) == []


@pytest.mark.parametrize(
    "name", ["a.nt", "a.nq.gz", "a.ttl", "a.trig.gz", "a.rdf", "a.jsonld", "a.jelly"]
)
def test_what_is_written_reads_back(spark: SparkSession, tmp_path: Path, name: str) -> None:
    quads = [("<http://e.org/s>", "<http://e.org/p>", f'"o{i} é\\n"@en', None) for i in range(5)]
    frame = spark.createDataFrame(quads, rows.QUAD_SCHEMA).repartition(2)
    write_rdf(frame, tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    read = read_rdf(spark, tmp_path / name)
    assert _letters(read) == set()
    assert _quads(read) == sorted(" ".join(quad[:3]) for quad in quads)


def test_graphs_are_not_written_where_they_cannot_be(spark: SparkSession, tmp_path: Path) -> None:
    quads = [("<urn:s>", "<urn:p>", "<urn:o>", "<urn:g>")]
    frame = spark.createDataFrame(quads, rows.QUAD_SCHEMA)
    with pytest.raises(UsageError, match="named graphs"):
        write_rdf(frame, tmp_path / "a.ttl")
    assert list(tmp_path.iterdir()) == []
