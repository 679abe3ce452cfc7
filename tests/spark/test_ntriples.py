from __future__ import annotations

import re

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from quadweir import rows
from quadweir.errors import DataError
from quadweir.sinks.lineformat import LineFormat
from quadweir.sinks.lines import to_lines
from quadweir.sources.canonical import MAX_LINE_BYTES
from quadweir.sources.ntriples import check_terms, parse_lines
from quadweir.sources.statements import parse_statement
from quadweir.spelling import escape_lexical
from quadweir.terms import Quad, escape
from terms_strategy import QUADS, TEXT

pytestmark = pytest.mark.spark

# Odd but valid lines, wrong lines, and lines that say nothing.
ODD = [
    '<urn:a> <urn:b> "x"^^<http://www.w3.org/2001/XMLSchema#string> .',
    '<urn:a> <urn:b> "\\u0022\\u0041\\U0001F600\\u000a\\u007f" .',
    '<urn:a> <urn:b> "x"@en-US <urn:g>.',
    '<urn:a> <urn:b> "x"^^<urn:\\u0041> .',
    '<urn:a> <urn:b> "x" ^^ <urn:d> .',
    '<urn:a> <urn:b> "x" @en .',
    '<urn:a> <urn:b> "\x01\x7f" .',
    "<urn:a> <urn:b> _:a..b .",
    "_:a.b <urn:b> _:c.",
    '<urn:a><urn:b>"a . b\\\\"@EN<urn:g>. # hi',
    '  \t<urn:a>\t<urn:b> "#" . # "',
    '<urn:a> <urn:b> "a \\" b" .',
    '<urn:a> <urn:b> "\\\\\\" . # <urn:g> ." .',
    '<urn:a> <urn:b> "é\\t" <urn:g> .',
    "<urn:a> <urn:b> _:é _:g .",
    '<urn:a> <urn:b> "\\\\u0041" .',
    '<urn:a> <urn:b> "\ufffe" .',
    "<urn:> <a:> <a:#> .",
    '<urn:a> <urn:b> "' + "\\n" * 20_000 + '" .',
    '<urn:a> <urn:b> "' + "x\\t" * 100 + '" <urn:g> .',
    '<urn:a> <urn:b> "' + "x\\t" * 101 + '" _:g .',
    '<urn:a> <urn:b> "a \\" b"@en <urn:g> .',
    '<urn:a> <urn:b> "a . b" <urn:g> .',
    '<urn:a> <urn:b> "\\\\"^^<urn:d> .',
    '<urn:a> <urn:b> <<( <urn:c> <urn:d> "x" )>> .',
    '_:a <urn:b><<(_:c<urn:\\u0064>"x \\u0041 )>> _:y"@EN-us)>><urn:g>.# <<(',
    "<urn:a> <urn:b> <<( <urn:c> <urn:d> <<( _:é <urn:e>\t<urn:f> )>>)>> _:g .",
    '<urn:a> <urn:b> <<(<urn:c> <urn:d> "5"^^ <urn:int> )>> .',
    "<urn:a> <urn:b> " + "<<( <urn:c> <urn:d> " * 16 + '"x"' + ")>>" * 16 + " .",
]
WRONG = [
    '<urn:a> <urn:b> "x"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString> .',
    '<urn:a> <urn:b> "x"@1e .',
    "_:- <urn:b> _:a .",
    "<urn:a> _:p _:a .",
    '"x" <urn:b> _:a .',
    '<urn:a> <urn:b> <urn:c> "x" .',
    "<urn:a> <urn:b> <urn:c> . <urn:a> <urn:b> <urn:c> .",
    "<urn:a> <urn:b> <urn:c>",
    '<urn:a> <urn:b> "\\x" .',
    "<urn:a> <urn:b> 'x' .",
    "<urn:a>\t<urn:b>\u00a0<urn:c> .",
    "<urn:\\n> <urn:b> <urn:c> .",
    "<urn:\\u0020> <urn:b> <urn:c> .",
    '<urn:a> <urn:b> "\\uD83D\\uDE00" .',
    '<urn:a> <urn:b> "\\U00110000" .',
    '<rel> <urn:b> "x" .',
    "<urn:a> <urn:b{> <urn:c> .",
    '<urn:a> <urn:b> "open .',
    '<urn:a> <urn:b> "a"b" .',
    "<urn:a> <urn:b> <urn:c>@en .",
    '<urn:a> <urn:b> "\\" .',
    '<urn:a> <urn:b> "' + "\\\\" * 50_000 + " .",
    "!what",
    "<urn:a> <urn:b> <<( <urn:c> <urn:d> <urn:e> .",
    "<urn:a> <urn:b> <urn:c> )>> .",
    "<urn:a> <urn:b> <<( <urn:c> <urn:d> <urn:e> )>> )>> .",
    '<urn:a> <urn:b> <<( "c" <urn:d> <urn:e> )>> .',
    "<urn:a> <urn:b> <<( <urn:c> _:d <urn:e> )>> .",
    "<urn:a> <urn:b> <<( <rel> <urn:d> <urn:e> )>> .",
    "<urn:a> <urn:b> <<( <urn:\\u0020> <urn:d> <urn:e> )>> .",
    "<urn:a> <urn:b> <<( <urn:c> <urn:d> )>> .",
    "<urn:a> <urn:b> <urn:c> <<( <urn:c> <urn:d> <urn:e> )>> .",
]
QUIET = ["", "   ", "# a comment", "\t# <urn:a> <urn:b> <urn:c> ."]


def _parse(spark: SparkSession, lines: list[str | bytearray]) -> list[dict[str, str | None]]:
    kind = "binary" if any(isinstance(line, bytearray) for line in lines) else "string"
    frame = spark.createDataFrame([(line,) for line in lines], f"value {kind}")
    text = F.col("value").cast("string")
    parsed = parse_lines(frame, text).select(*rows.TERMS, rows.REASON)
    return [row.asDict() for row in parsed.collect()]


def _spelled(row: dict[str, str | None]) -> str:
    return " ".join(str(row[name]) for name in rows.TERMS if row[name] is not None) + " ."


def test_odd_lines_become_what_pyoxigraph_makes_of_them(spark: SparkSession) -> None:
    for line, row in zip(ODD, _parse(spark, ODD), strict=True):
        (quad,) = ox.parse(line, ox.RdfFormat.N_QUADS)
        assert row[rows.REASON] is None, line
        assert _spelled(row) == f"{quad} ."


def test_wrong_lines_have_a_reason_and_no_terms(spark: SparkSession) -> None:
    for line, row in zip(WRONG, _parse(spark, WRONG), strict=True):
        with pytest.raises(SyntaxError):
            list(ox.parse(line, ox.RdfFormat.N_QUADS))
        assert row[rows.REASON], line
        assert not any(row[name] for name in rows.TERMS), line


def test_triple_terms_that_rdf_does_not_have_are_named(spark: SparkSession) -> None:
    deep = "<urn:a> <urn:p> " + "<<( <urn:b> <urn:q> " * 20 + '"x"' + ")>>" * 20 + " ."
    lines = {
        "<<( <urn:b> <urn:q> <urn:c> )>> <urn:p> <urn:a> .": "a triple term <<( ... )>> can only",
        "<< <urn:b> <urn:q> <urn:c> >> <urn:p> <urn:a> <urn:g> .": "a quoted triple << ... >>",
        "<urn:a> <urn:p> << <urn:b> <urn:q> <urn:c> >> .": "a quoted triple << ... >>",
        deep: "more than 16 triple terms",
    }
    for (line, why), row in zip(lines.items(), _parse(spark, list(lines)), strict=True):
        assert str(row[rows.REASON]).startswith(why), line
        assert not any(row[name] for name in rows.TERMS), line
        with pytest.raises(DataError, match=re.escape(why)):
            parse_statement(line)


def test_both_readers_of_lines_say_the_same(spark: SparkSession) -> None:
    for line, row in zip(ODD, _parse(spark, ODD), strict=True):
        assert _spelled(row) == str(parse_statement(line)), line
    for line in WRONG:
        with pytest.raises(DataError):
            parse_statement(line)


def test_lines_that_say_nothing_have_neither(spark: SparkSession) -> None:
    for row in _parse(spark, QUIET):
        assert set(row.values()) == {None}


def test_bytes_that_are_not_text_have_a_reason(spark: SparkSession) -> None:
    bad, good = _parse(
        spark,
        [bytearray(b'<urn:a> <urn:b> "\xff\xfe" .'), bytearray('<urn:a> <urn:b> "é" .'.encode())],
    )
    assert bad[rows.REASON] == "not valid UTF-8"
    assert good[rows.OBJECT] == '"é"'


def test_a_line_beyond_the_limit_has_a_reason(spark: SparkSession) -> None:
    frame = spark.range(1).select(
        F.concat(
            F.lit('<urn:a> <urn:b> "'), F.repeat(F.lit("x"), MAX_LINE_BYTES), F.lit('" .')
        ).alias("value")
    )
    (row,) = parse_lines(frame, F.col("value")).select(*rows.TERMS, rows.REASON).collect()
    assert row[rows.REASON] == f"longer than {MAX_LINE_BYTES} bytes"
    assert row[rows.SUBJECT] is None


# One Spark job an example, so few examples of many quads each.
@settings(max_examples=4)
@given(st.lists(QUADS, min_size=40, max_size=120))
def test_round_trips_are_the_identity_and_pyoxigraphs_bytes(
    spark: SparkSession, quads: list[Quad]
) -> None:
    frame = spark.createDataFrame(
        [
            (
                str(quad.subject),
                str(quad.predicate),
                str(quad.object),
                quad.graph and str(quad.graph),
            )
            for quad in quads
        ],
        rows.QUAD_SCHEMA,
    )
    lines = to_lines(frame, LineFormat.NQUADS)
    again = parse_lines(lines, F.col(rows.LINE)).collect()
    assert [row[rows.REASON] for row in again] == [None] * len(quads)
    assert [_spelled(row.asDict()) for row in again] == [str(quad) for quad in quads]
    written = "".join(f"{row[rows.LINE]}\n" for row in again)
    theirs = ox.serialize(ox.parse(written, ox.RdfFormat.N_QUADS), format=ox.RdfFormat.N_QUADS)
    assert written == theirs.decode()


Terms = tuple[str | None, str | None, str | None, str | None]
ODD_TERMS: list[Terms] = [
    ("<urn:a>", "<urn:b>", '"x"^^<http://www.w3.org/2001/XMLSchema#string>', None),
    ("<urn:a>", "<urn:b>", '"\\u0022\\u0041\\U0001F600\\u000a\\u007f"', None),
    ("<urn:a>", "<urn:b>", '"x"@en-US', "<urn:g>"),
    ("<urn:\\u0061>", "<urn:b>", '"x"^^<urn:\\u0041>', "<urn:\\u0067>"),
    ("<urn:a>", "<urn:b>", '"\x01\x7f\t"', "_:g"),
    ("_:é", "<urn:é>", '"a \\" . <urn:x> é\\\\"@EN', "_:a..b"),
    ("<urn:a>", "<urn:b>", '"\ufffe"', None),
    ("<urn:a>", "<urn:b>", '"' + "\\n" * 20_000 + '"', None),
    ("<urn:a>", "<urn:b>", '<<( _:c <urn:d> "x y"@en )>>', "<urn:g>"),
    ("<urn:a>", "<urn:b>", "<<(<urn:\\u0061><urn:d> <<( _:c <urn:d> <urn:e>)>>)>>", None),
]
WRONG_TERMS: list[tuple[Terms, str]] = [
    ((None, "<urn:b>", "<urn:c>", None), "the subject"),
    (("<urn:a>", None, "<urn:c>", None), "the predicate"),
    (("<urn:a>", "<urn:b>", None, None), "the object"),
    (("urn:a", "<urn:b>", "<urn:c>", None), "the subject"),
    (('"x"', "<urn:b>", "<urn:c>", None), "the subject"),
    (("<urn:a>", "_:b", "<urn:c>", None), "the predicate"),
    (("<urn:a>", "<urn:b>", "c", None), "the object"),
    (("<urn:a>", "<urn:b>", '"x', None), "the object"),
    (("<urn:a>", "<urn:b>", '"x\ny"', None), "a line break"),
    (("<urn:a>", "<urn:b>", '"x"\n@en\n<urn:d>', None), "a line break"),
    (("<urn:a>", "<urn:b>", '"x\ry"', None), "the object"),
    (("<urn:a>", "<urn:b>", "<urn:c>@en", None), "the object"),
    (("<urn:a>", "<urn:b>", '"\\x"', None), "an escape"),
    (("<urn:a>", "<urn:b>", '"x"^^<d>', None), "<d> is not an absolute IRI"),
    (("<urn:a>", "<urn:b c>", "<urn:c>", None), "the predicate"),
    (("<urn:a\nb>", "<urn:b>", "<urn:c>", None), "a line break"),
    (("<urn:a>\n<urn:b>\n<urn:c>\n", "<urn:b>", "<urn:c>", None), "a line break"),
    (("<urn:a>\n<urn:b>", "", "<urn:c>", None), "a line break"),
    ((None, None, None, None), "the subject"),
    # Together they would be a statement.
    (("<urn:a> <urn:b>", "<urn:c>", "<urn:d>", None), "the subject"),
    (("<urn:a>", "<urn:b>", '"c" <urn:g>', None), "the object"),
    (("<urn:a>", "<urn:b>", "<urn:c> . #", None), "the object"),
    (("<urn:a>", "<urn:b>", "<urn:c>", ""), "the graph name"),
    (("<urn:a>", "<urn:b>", "<urn:c>", '"g"'), "the graph name"),
    (("<<( <urn:a> <urn:b> <urn:c> )>>", "<urn:b>", "<urn:c>", None), "the subject"),
    (("<urn:a>", "<urn:b>", "<<( <urn:a> <urn:b> <urn:c>", None), "the triple terms"),
    (("<urn:a>", "<urn:b>", "<< <urn:a> <urn:b> <urn:c> >>", None), "a quoted triple"),
]


def _check(spark: SparkSession, terms: list[Terms]) -> list[dict[str, str | None]]:
    names = ", ".join(f"{name} string" for name in rows.TERMS)
    frame = spark.createDataFrame([(*each, n) for n, each in enumerate(terms)], f"{names}, n int")
    checked = check_terms(frame)
    assert checked.columns == ["n", *rows.TERMS, rows.REASON]
    return [row.asDict() for row in checked.orderBy("n").collect()]


def test_terms_in_columns_become_what_pyoxigraph_makes_of_them(spark: SparkSession) -> None:
    for terms, row in zip(ODD_TERMS, _check(spark, ODD_TERMS), strict=True):
        line = " ".join(term for term in terms if term is not None) + " ."
        (quad,) = ox.parse(line, ox.RdfFormat.N_QUADS)
        assert row[rows.REASON] is None, line
        assert _spelled(row) == f"{quad} ."


def test_columns_that_hold_no_terms_have_a_reason(spark: SparkSession) -> None:
    for (terms, why), row in zip(
        WRONG_TERMS, _check(spark, [terms for terms, _ in WRONG_TERMS]), strict=True
    ):
        assert str(row[rows.REASON]).startswith(why), terms
        assert not any(row[name] for name in rows.TERMS), terms


@settings(max_examples=4)
@given(st.lists(QUADS, min_size=40, max_size=120))
def test_canonical_terms_in_columns_stay_as_they_are(
    spark: SparkSession, quads: list[Quad]
) -> None:
    terms: list[Terms] = [
        (str(each.subject), str(each.predicate), str(each.object), each.graph and str(each.graph))
        for each in quads
    ]
    for row, quad in zip(_check(spark, terms), quads, strict=True):
        assert row[rows.REASON] is None
        assert _spelled(row) == str(quad)


@settings(max_examples=4)
@given(st.lists(TEXT, min_size=50, max_size=150))
def test_columns_escape_as_terms_do(spark: SparkSession, texts: list[str]) -> None:
    frame = spark.createDataFrame([(text,) for text in texts], "raw string")
    escaped = frame.select(escape_lexical(F.col("raw")).alias("it")).collect()
    assert [row.it for row in escaped] == [escape(text) for text in texts]
