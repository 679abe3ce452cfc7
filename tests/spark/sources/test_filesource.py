"""Stream files in Spark give what the plain reader gives, whole or in parts, once or watched."""

from __future__ import annotations

import gzip
import random
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from quadweir import rows
from quadweir.errors import DeclarationError
from quadweir.sources.declare import (
    FileSource,
    FolderSource,
    Format,
    FromColumn,
    FromPredicate,
    MemorySource,
    StreamDeclaration,
)
from quadweir.sources.streamfiles import DeadLetter, Element, read_elements

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

IRI = "urn:s"
TRUNCATED = "the gzip file ends too early"
LINES = [
    "{t} <urn:a> <urn:p> <urn:g> .",
    '{t} <urn:a> <urn:p> "x . y # z"@EN .',
    "{t}\t<urn:a> <urn:p> <urn:o{n}> <urn:g> .",
    "{t} <urn:a> <urn:p> <urn:o{n}> <urn:g> . # why",
    "{t} <urn:a> <urn:p> <urn:o{n}> <urn:\\u0067> .",
    "{t}  <urn:a><urn:p>_:o.x _:g.",
    '{t} <urn:a> <urn:p> "a\\q" <urn:g> .',
    "{t} <urn:a> <urn:p> .",
    "# {t}",
    "",
    "   ",
    "{t} # {n}",
    "{t}",
    "soon <urn:a> <urn:p> <urn:o> .",
]
TIMES = ["1000", "1970-01-01T00:00:01Z", "2000", "-5"]


def timed_lines(seed: int) -> bytes:
    chance = random.Random(seed)
    end = chance.choice(["\n", "\r\n"])
    weights = [chance.choice([1, 1, 8]) for _ in LINES]
    lines = [
        line.format(t=chance.choice(TIMES[: 1 + seed % 4]), n=chance.randrange(3))
        for line in chance.choices(LINES, weights, k=chance.randrange(60))
    ]
    text = end.join(lines) + chance.choice(["", end])
    data = text.encode()
    if seed % 5 == 0:
        data = data.replace(b"soon", b"so\xffn")
    return gzip.compress(data) if seed % 7 == 0 else data


STATEMENTS = [
    "<urn:a> <urn:p> <urn:b> .",
    '<http://ex.org/a> <urn:p> "x"@en-GB <urn:g> .',
    "_:a <urn:p> _:b.c _:g .",
    '<urn:a> <urn:p> "a\\nb\\u00e9\\U0001F600"^^<http://www.w3.org/2001/XMLSchema#string> . # c',
    '<urn:a><urn:p>"x"^^<urn:d><urn:g>.',
    '<urn:\\u0061> <urn:p> "\\t\\"\\\\" .',
]
PIECES = [
    *' \t<>"\\._:@^#-aZ09é·\r\x0b\x00\x7f\x85\u2028\ufffe{}|`',
    *("\\u0041", "\\u", "\\U0000", "_:", "^^", "@en", "<urn:x>", " .", "http://", '"x"', "😀"),
]


def mutated_lines(count: int) -> bytes:
    """Lines with up to three pieces put in, taken out or replaced: near misses of every kind."""
    chance = random.Random(1)
    lines = []
    for number in range(count):
        text = list(chance.choice(STATEMENTS))
        for _ in range(chance.randrange(4)):
            at = chance.randrange(len(text))
            text[at : at + chance.randrange(2)] = chance.choice([[], [chance.choice(PIECES)]])
        lines.append(f"{number} {''.join(text)}\n")
    return "".join(lines).encode()


def declared(path: Path, written: Format, **options: Any) -> StreamDeclaration:
    time = options.pop("time", None)
    source = FolderSource(path=path, **options) if path.is_dir() else FileSource(path=path)
    given = {"time": time} if time else {}
    return StreamDeclaration(iri=IRI, source=source, format=written, **given)


def grouped(frame: DataFrame) -> tuple[Counter[tuple[Any, ...]], Counter[tuple[str, str]]]:
    found = frame.collect()
    names = rows.STATEMENT_SCHEMA.names
    good = Counter(tuple(row[name] for name in names) for row in found if row.reason is None)
    bad = Counter((row.source, row.place) for row in found if row.reason is not None)
    return good, bad


def plainly(
    path: Path, **options: Any
) -> tuple[Counter[tuple[Any, ...]], Counter[tuple[str, str]]]:
    letters: list[DeadLetter] = []
    elements = read_elements(path, stream=IRI, on_bad=letters.append, **options)
    good = Counter(row for element in elements for row in statement_rows(element))
    return good, Counter((letter.source, letter.place) for letter in letters)


def statement_rows(element: Element) -> list[tuple[Any, ...]]:
    return [
        (
            element.stream,
            element.event_time,
            element.position,
            str(quad.subject),
            str(quad.predicate),
            str(quad.object),
            str(quad.graph) if quad.graph else None,
        )
        for quad in element.quads
    ]


def test_timed_lines_are_the_same_to_spark_in_any_parts(
    spark: SparkSession, tmp_path: Path
) -> None:
    from quadweir.sources.filesource import open_statements

    for seed in range(20):
        (tmp_path / f"{seed:02}.stream").write_bytes(timed_lines(seed))
    # The comment is longer than the stretch in which a NUL would make a file binary.
    (tmp_path / "mutated.stream").write_bytes(b"#" * 9000 + b"\n" + mutated_lines(2000))
    expected = plainly(tmp_path, form=Format.TIMED_LINES)
    assert len(expected[0]) > 500
    assert len(expected[1]) > 500
    # Larger files are cut, smaller ones put together; `test_stream_files.py` tries every cut.
    frame = open_statements(spark, declared(tmp_path, Format.TIMED_LINES), part_bytes=8_000)
    assert grouped(frame) == expected


def test_hostile_files_cost_only_themselves(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    from quadweir.sources.filesource import open_statements

    good = b"1000 <urn:a> <urn:p> <urn:o> .\n"
    (tmp_path / "1.stream").write_bytes(good)
    (tmp_path / "2.stream.gz").write_bytes(gzip.compress(good * 50_000)[:-30])
    (tmp_path / "3.stream").write_bytes(bytes(range(256)) * 100)
    with (tmp_path / "4.stream").open("wb") as file:
        file.write(good)
        for _ in range(100):
            file.write(b"x" * 2**20)
        file.write(b"\n" + good)
    frame = open_statements(spark, declared(tmp_path, Format.TIMED_LINES))
    found = {
        (Path(row.source).name, row.reason): (row["count"], row.place)
        for row in frame.groupBy(rows.SOURCE, rows.REASON)
        .agg(F.count("*").alias("count"), F.min(rows.PLACE).alias("place"))
        .collect()
    }
    read, cut_short = found.pop(("2.stream.gz", None)), found.pop(("2.stream.gz", TRUNCATED))
    assert 40_000 < read[0] < 50_000
    assert cut_short[0] == 1
    # The gzip file may also end in the middle of a line, which is then no statement.
    left = {key: value for key, value in found.items() if key[0] != "2.stream.gz"}
    assert left == {
        ("1.stream", None): (1, "line 1"),
        ("3.stream", "a binary file, not text"): (1, "line 1"),
        ("4.stream", None): (2, "line 1"),
        ("4.stream", "a line of more than 4194304 bytes"): (1, "line 2"),
    }


def test_timed_graphs_and_timed_files(spark: SparkSession, tmp_path: Path) -> None:
    from quadweir.sources.filesource import open_statements

    graphs = tmp_path / "graphs.trig"
    graphs.write_text(
        "@prefix : <urn:x:> . @prefix prov: <http://www.w3.org/ns/prov#> ."
        ':g1 { :a :b [ :c 1 ] } :g1 prov:generatedAtTime "1970-01-01T00:00:02Z" .'
        ":g2 prov:generatedAtTime 3000 . :g2 { :a :b 2 } :g3 { :a :b 3 }"
    )
    assert grouped(open_statements(spark, declared(graphs, Format.TIMED_GRAPHS))) == plainly(graphs)

    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.ttl").write_text("<urn:a> <urn:at> 7000, 7000 .")
    (folder / "b.nt.gz").write_bytes(gzip.compress(b"<urn:a> <urn:at> <urn:c> .\n"))
    (folder / "c.ttl").write_text("<urn:a> <urn:b> ")
    (folder / "d.jsonld").write_text('{"@id": "urn:a", "urn:at": "8000"}')
    (folder / "e.pdf").write_text("what")
    stepped = declared(folder, Format.TIMED_FILES, start=500, step=timedelta(seconds=1))
    found = grouped(open_statements(spark, stepped))
    assert found == plainly(folder, start=500, step=timedelta(seconds=1))
    assert sorted({row[1] for row in found[0]}) == [500, 1500, 3500]
    by_predicate = declared(folder, Format.TIMED_FILES, time=FromPredicate("urn:at"))
    found = grouped(open_statements(spark, by_predicate))
    assert found == plainly(folder, form=Format.TIMED_FILES, predicate="urn:at")
    assert sorted({row[1] for row in found[0]}) == [7000, 8000]


def test_record_files(spark: SparkSession, tmp_path: Path) -> None:
    from quadweir.sources.filesource import open_records

    (tmp_path / "a.csv").write_text('at,name\n1,"two\nlines"\n\n2,x\n3,"open\n')
    frame = open_records(spark, declared(tmp_path, Format.CSV, time=FromColumn("at")))
    found = [(row.place, row.value, row.reason) for row in frame.collect()]
    assert found == [
        ("line 2", 'at,name\n1,"two\nlines"', None),
        ("line 5", "at,name\n2,x", None),
        ("line 6", '3,"open', "a row that breaks off"),
    ]


def test_a_watched_folder_gives_new_files_once_and_in_the_order_found(
    spark: SparkSession, tmp_path: Path
) -> None:
    from quadweir.sources.filesource import open_records

    folder = tmp_path / "in"
    folder.mkdir()
    # Records rather than statements: nothing is parsed, so the batches are quick.
    declaration = declared(
        folder, Format.JSONL, watch=True, pattern="*.jsonl", time=FromColumn("at")
    )

    def put(name: str, value: str) -> None:
        (folder / name).write_text(f"{value}\n")

    batches: list[list[tuple[int, str]]] = []

    def note(frame: DataFrame, _: int) -> None:
        batches.append(sorted((row.position, row.value) for row in frame.collect()))

    def run() -> None:
        frame = open_records(spark, declaration, max_files_per_batch=2)
        query = (
            frame.writeStream.foreachBatch(note)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    put("c.jsonl", "c")
    put("d.jsonl", "d")
    put("e.jsonl", "e")
    put("other.txt", "no")
    run()
    assert batches == [[(1, "c"), ((1 << 40) + 1, "d")], [((2 << 40) + 1, "e")]]
    # A name that sorts before those already read is not lost, and nothing comes twice.
    put("a.jsonl", "a")
    batches.clear()
    run()
    assert batches == [[((4 << 40) + 1, "a")]]


def test_a_file_that_changes_or_goes_is_a_dead_letter(tmp_path: Path) -> None:
    from quadweir.sources.filesource import StreamFiles

    for name in ("a", "b", "c"):
        (tmp_path / name).write_text("1 <urn:a> <urn:p> <urn:b> .\n")
    options = {"path": str(tmp_path), "stream": IRI, "format": "timed-lines"}
    reader = StreamFiles(options).streamReader(None)
    end = reader.latestOffset({"files": 0}, reader.getDefaultReadLimit())
    partitions = reader.partitions({"files": 0}, end)
    (tmp_path / "a").unlink()
    (tmp_path / "b").write_text("more than before, much more than before\n")
    found = [
        (Path(row["source"]).name, row["reason"])
        for partition in partitions
        for batch in reader.read(partition)
        for row in batch.to_pylist()
    ]
    assert found == [
        ("a", "the file was removed before it was read"),
        ("b", "the file changed after it was found; move finished files into the folder"),
        ("c", None),
    ]


def test_what_is_not_read_from_files_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    from quadweir.sources.filesource import open_records, open_statements

    memory = StreamDeclaration(iri=IRI, source=MemorySource(), format=Format.TIMED_LINES)
    records = declared(tmp_path, Format.JSONL, time=FromColumn("at"))
    for attempt in (
        lambda: open_statements(spark, memory),
        lambda: open_statements(spark, records),
        lambda: open_records(spark, memory),
    ):
        with pytest.raises(DeclarationError):
            attempt()
