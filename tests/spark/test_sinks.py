from __future__ import annotations

import csv
import gzip
import io
import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException

from quadweir import rows
from quadweir.errors import SourceError, StateError, UsageError
from quadweir.sinks import oncefolder
from quadweir.sinks.answertext import answer_text
from quadweir.sinks.base import Batch
from quadweir.sinks.console import ConsoleSink
from quadweir.sinks.deadletters import with_dead_letters
from quadweir.sinks.files import FileSink
from quadweir.sinks.lineformat import LineFormat
from quadweir.sinks.lines import line_of, to_lines
from quadweir.sinks.memory import MemorySink
from quadweir.sinks.start import Call, Split, both, start
from quadweir.sources.declare import Format, StreamDeclaration, TcpSource
from quadweir.sources.records import parse_records
from quadweir.terms import IRI, BlankNode, Literal, TripleTerm
from quadweir.testing.answers import term_to_json
from quadweir.vocab import XSD

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

STREAM = "http://example.org/s"


@pytest.fixture(scope="module")
def statements(spark: SparkSession) -> Iterator[DataFrame]:
    found = [
        (STREAM, 5, 0, "<urn:a>", "<urn:p>", '"1 \\"\\n . "@en', None),
        (STREAM, 6, 1, "_:b", "<urn:p>", "<urn:o>", "<urn:g>"),
    ]
    frame = spark.createDataFrame(found, rows.STATEMENT_SCHEMA).coalesce(1).persist()
    yield frame
    frame.unpersist()


def cat(folder: Path) -> list[str]:
    """What `cat folder/*` shows."""
    return [
        line
        for file in sorted(folder.iterdir())
        if not file.name.startswith(".")
        for line in file.read_text().splitlines()
    ]


def test_each_format_writes_a_row_as_a_line(statements: DataFrame) -> None:
    def text(form: LineFormat) -> list[str]:
        return [row[0] for row in to_lines(statements, form).collect()]

    assert text(LineFormat.NQUADS) == [
        '<urn:a> <urn:p> "1 \\"\\n . "@en .',
        "_:b <urn:p> <urn:o> <urn:g> .",
    ]
    assert text(LineFormat.NTRIPLES)[1] == "_:b <urn:p> <urn:o> ."
    assert text(LineFormat.TIMED_LINES)[0] == '5 <urn:a> <urn:p> "1 \\"\\n . "@en .'
    assert [json.loads(line) for line in text(LineFormat.JSONL)] == [
        row.asDict() for row in statements.collect()
    ]


def test_rows_that_are_no_quads_cannot_be_nquads(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match="rows without subject and"):
        to_lines(spark.range(1), LineFormat.NQUADS)


TERMS = [
    Literal(""),
    Literal('say "hi"\n\t\b\f\r \x00\x7f\ufffe \\u0041 \\\\ é \U0001f600'),
    Literal('"@en', language="de-at"),
    Literal('{"v":"^^<x>"}\\', datatype=IRI(XSD.integer)),
    TripleTerm(
        BlankNode("x"), IRI("urn:p"), TripleTerm(IRI("urn:a"), IRI("urn:p"), Literal("<<("))
    ),
]


def test_terms_of_answers_are_written_as_json_and_csv_have_them(spark: SparkSession) -> None:
    kind = "t long, sign string, bindings struct<i:string,b:string,n:string,l:string>"
    found = [(1, "+", ("<urn:a>", "_:x", None, str(term))) for term in TERMS]
    frame = spark.createDataFrame(found, kind).coalesce(1)
    lines = to_lines(frame, LineFormat.ANSWERS_JSONL)
    written = [json.loads(row[0])["bindings"] for row in lines.collect()]
    lexical = [term.lexical for term in TERMS if isinstance(term, Literal)]
    assert [each["l"]["value"] for each in written[: len(lexical)]] == lexical
    # As one expression they are the same.
    at_once = frame.select(line_of(frame, LineFormat.ANSWERS_JSONL)).collect()
    assert [json.loads(row[0])["bindings"] for row in at_once] == written
    assert written[0] == {
        "i": {"type": "uri", "value": "urn:a"},
        "b": {"type": "bnode", "value": "x"},
        "l": {"type": "literal", "value": ""},
    }
    assert written[2]["l"]["xml:lang"] == "de-at"
    assert written[3]["l"]["datatype"] == XSD.integer
    assert [each["l"] for each in written] == [term_to_json(term) for term in TERMS]
    # A lambda's variable has another name each time it is written, and Spark compiles it again.
    classic: Any = lines
    assert "lambda" not in classic._jdf.queryExecution().analyzed().toString()
    table = [row[0] for row in to_lines(frame, LineFormat.ANSWERS_CSV).collect()]
    read = next(csv.reader(io.StringIO(table[1], newline="")))
    assert read[2:] == ["urn:a", "_:x", "", lexical[1]]


@pytest.mark.parametrize(
    "form", [LineFormat.ANSWERS_JSONL, LineFormat.ANSWERS_CSV, LineFormat.ANSWERS_TSV]
)
def test_few_answers_are_written_without_spark_as_with_it(
    spark: SparkSession, form: LineFormat
) -> None:
    generated = [_generated(number) for number in range(300)]
    found = [(number, "+-"[number % 2], terms) for number, terms in enumerate(generated)]
    kind = 't long, sign string, bindings struct<`z z`:string,b:string,`é"`:string>'
    frame = spark.createDataFrame(found, kind).coalesce(1)
    bound = dict(zip(("z z", "b", 'é"'), zip(*generated, strict=True), strict=True))
    t, sign = [each[0] for each in found], [each[1] for each in found]
    assert answer_text(form, t, sign, bound) == [row[0] for row in to_lines(frame, form).collect()]
    # There may be nothing to bind.
    nothing = frame.selectExpr("t", "sign", "named_struct() AS bindings")
    assert answer_text(form, t, sign, {}) == [row[0] for row in to_lines(nothing, form).collect()]
    assert answer_text(LineFormat.NQUADS, t, sign, bound) is None


def _generated(number: int) -> tuple[str | None, ...]:
    """Three terms, some of them none, with every character that has an escape."""
    dice = random.Random(number)
    characters = '\x00\x01\b\t\n\x0b\f\r\x1f "\\\x7f\x85\u2028\ufffe\U0001f600.<>#@^,aé'
    text = "".join(dice.choices(characters, k=dice.randrange(9)))
    kinds: list[object] = [
        None,
        IRI(f"urn:x:{number}é"),
        BlankNode(f"b{number}"),
        Literal(text),
        Literal(text, language="de-at"),
        Literal(text, datatype=IRI("urn:d")),
        TripleTerm(BlankNode("b"), IRI(f"urn:$1:{number}"), Literal(text, language="en")),
    ]
    kinds.append(TripleTerm(IRI("urn:x:é"), IRI("urn:p"), dice.choice(kinds[1:])))  # type: ignore[arg-type]
    return tuple(None if each is None else str(each) for each in dice.choices(kinds, k=3))


def test_rows_that_a_sink_cannot_write_are_refused_before_a_query_starts(
    spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="rows without subject and"):
        start(spark.readStream.format("rate").load(), FileSink(tmp_path), checkpoint=tmp_path / "c")


def test_files_hold_each_batch_once_and_only_whole(statements: DataFrame, tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "out")
    sink.prepare()
    expected = [row[0] for row in to_lines(statements, LineFormat.NQUADS).collect()]
    sink.write(statements, Batch(0, "q"))
    sink.write(statements, Batch(0, "q"))
    sink.write(statements.where("false"), Batch(1, "q"))
    sink.write(statements, Batch(2, "q"))
    assert cat(tmp_path / "out") == expected * 2
    assert [one.name for one in sorted((tmp_path / "out").glob("[!.]*"))] == [
        "00000000-0000.nq",
        "00000002-0000.nq",
    ]


class Crash(BaseException):
    """Stands for kill -9."""


@pytest.mark.parametrize("step", ["write_text", "rename", "replace", "rmtree", "rename-2"])
def test_a_crash_at_any_step_leaves_each_row_once(
    statements: DataFrame, tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two parts, so that a crash can fall between them."""
    out = tmp_path / "out"
    frame = statements.repartition(2, rows.EVENT_TIME).union(statements)
    expected = sorted(row[0] for row in to_lines(frame, LineFormat.NQUADS).collect())
    sink = FileSink(out)
    sink.prepare()
    sink.write(statements.where("false"), Batch(0, "q"))
    name, _, nth = step.partition("-")
    left = int(nth or 1)

    def crash(*_: object, **__: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise Crash
        monkeypatch.undo()
        try:
            getattr(Path, name)(*_, **__)
        finally:
            monkeypatch.setattr(Path, name, crash)

    monkeypatch.setattr(shutil if name == "rmtree" else Path, name, crash)
    with pytest.raises(Crash):
        sink.write(frame, Batch(1, "q"))
    monkeypatch.undo()
    FileSink(out).write(frame, Batch(1, "q"))
    FileSink(out).write(frame.where("false"), Batch(2, "q"))
    assert sorted(cat(out)) == expected


def test_compressed_files(statements: DataFrame, tmp_path: Path) -> None:
    sink = FileSink(tmp_path, LineFormat.NTRIPLES, compress=True)
    sink.write(statements, Batch(0, "q"))
    sink.write(statements.where("false"), Batch(1, "q"))
    (file,) = tmp_path.glob("*.nt.gz")
    assert gzip.decompress(file.read_bytes()).decode().splitlines()[1] == "_:b <urn:p> <urn:o> ."


def test_a_folder_with_another_querys_output_is_refused(
    statements: DataFrame, tmp_path: Path
) -> None:
    FileSink(tmp_path).write(statements, Batch(0, "q"))
    with pytest.raises(SourceError, match="holds the output of another query"):
        FileSink(tmp_path).write(statements, Batch(0, "other"))
    (tmp_path / oncefolder.LOG).unlink()
    with pytest.raises(SourceError, match="holds the output of another query"):
        FileSink(tmp_path).write(statements, Batch(0, "q"))
    with pytest.raises(UsageError, match="not a local path"):
        FileSink(Path("s3a://bucket/out"))


def test_console_prints_the_first_rows_plainly(statements: DataFrame) -> None:
    out = io.StringIO()
    ConsoleSink(most_rows=1, out=out).write(statements, Batch(7, "q"))
    assert out.getvalue().splitlines() == [
        '<urn:a> <urn:p> "1 \\"\\n . "@en .',
        "# batch 7: more than 1 rows",
    ]


def test_memory_keeps_the_latest_rows_and_ignores_repeated_batches(spark: SparkSession) -> None:
    sink = MemorySink(most_rows=3)
    assert sink.to_frame(spark) is None
    for number, first in ((0, 0), (1, 2), (1, 2)):
        sink.write(spark.range(first, first + 2), Batch(number, "q"))
    assert [row.id for row in sink.rows()] == [1, 2, 3]
    frame = sink.to_frame(spark)
    assert frame is not None and frame.count() == 3
    sink.clear()
    assert sink.rows() == []


def test_a_relative_checkpoint_is_in_the_folder_that_the_program_is_in(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java started in another folder."""
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path)
    stream = spark.readStream.text(str(tmp_path / "in"))
    start(stream, MemorySink(), checkpoint=Path("kept"), available_now=True).awaitTermination()
    assert (tmp_path / "kept" / "metadata").is_file()


def test_a_checkpoint_that_spark_cannot_read_is_a_clear_error(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    stream = spark.readStream.text(str(tmp_path / "in"))
    kept = tmp_path / "kept"
    start(stream, MemorySink(), checkpoint=kept, available_now=True).awaitTermination()
    (kept / "metadata").write_text("{}")
    with pytest.raises(StateError, match="Spark cannot read the checkpoint") as raised:
        start(stream, MemorySink(), checkpoint=kept, available_now=True)
    assert "ChecksumException" in str(raised.value.detail)


def test_several_sinks_see_a_batch_that_was_computed_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A random column would differ if the batch were computed for each of them."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_text("1\n2\n3\n")
    stream = spark.readStream.text(str(folder)).selectExpr("value", "rand() AS chance")
    one, two, even = MemorySink(), MemorySink(), MemorySink()
    sink = Split(lambda frame: [frame, frame.where("value = '2'")], [both(one, two), even])
    query = start(stream, sink, checkpoint=tmp_path / "checkpoint", available_now=True)
    query.awaitTermination()
    assert one.rows() == two.rows()
    assert even.rows() == [row for row in one.rows() if row.value == "2"]
    assert len(one.rows()) == 3


def test_bad_records_reach_the_dead_letters_with_place_and_reason(
    spark: SparkSession, tmp_path: Path
) -> None:
    declaration = StreamDeclaration(iri=STREAM, source=TcpSource(port=1), format=Format.TIMED_LINES)
    records = [
        ("tcp://h", "0", 1, "10 <urn:s> <urn:p> <urn:o> .", None),
        ("tcp://h", "1", 1, "10 <urn:s> <urn:p> .", None),
        ("tcp://h", "2", 1, "soon <urn:s> <urn:p> <urn:o> .", None),
        ("tcp://h", "3", 1, None, "the line is longer than 4 bytes"),
    ]
    frame = spark.createDataFrame(
        records, "source string, place string, arrival bigint, value string, reason string"
    )
    good, dead = MemorySink(), MemorySink()
    parsed = parse_records(frame, declaration)
    with_dead_letters(good, dead).write(parsed, Batch(0, "q"))
    assert [row.event_time for row in good.rows()] == [10]
    letters = {row.place: row for row in dead.rows()}
    assert set(letters) == {"1", "2", "3"}
    assert letters["1"].record == "10 <urn:s> <urn:p> ."
    assert letters["1"].reason
    assert "event time" in letters["2"].reason
    assert letters["3"].reason == "the line is longer than 4 bytes"
    assert {row.source for row in dead.rows()} == {"tcp://h"}


def test_a_function_of_the_users_gets_the_batch_and_its_errors_end_the_query(
    spark: SparkSession, tmp_path: Path
) -> None:
    stream = spark.readStream.format("rate").load()
    numbers: list[int] = []

    def fail(_: DataFrame, number: int) -> None:
        numbers.append(number)
        raise ValueError("mine")

    query = start(stream, Call(fail), checkpoint=tmp_path / "checkpoint")
    with pytest.raises(StreamingQueryException, match="mine"):
        query.awaitTermination(60)
    assert numbers == [0]


def test_a_frame_that_is_no_stream_is_refused(statements: DataFrame, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a stream"):
        start(statements, MemorySink(), checkpoint=tmp_path)
