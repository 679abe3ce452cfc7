"""Records to statement rows: what every live source has in common, as column expressions.

A record is one line of a timed-lines stream, or the bare statements of one element; its time is
found as its stream declares (semantics S2). What cannot be used gets a reason (P5).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from quadweir import rows
from quadweir.errors import DeclarationError
from quadweir.rowfilters import dead_letters, event_time, good_statements
from quadweir.sources.declare import (
    Arrival,
    Envelope,
    Format,
    FromColumn,
    FromPredicate,
    StreamDeclaration,
)
from quadweir.sources.ntriples import parse_lines
from quadweir.times import MOST_DIGITS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Names that no source uses; they are gone from every frame that is returned.
_LINE: Final = "_record_line"
_WORD: Final = "_record_word"
_NUMBER: Final = "_record_number"
_PREFIX: Final = "_record_prefix"
_TIME: Final = "_record_time"
_TIMES: Final = "_record_times"
_EARLY: Final = "_record_reason"
_GIVEN: Final = "_record_given_reason"

_PREFIX_PATTERN: Final = "^[^ \\t]+[ \\t]+"
_QUIET: Final = "^[ \\t\\r]*(?:#|$)"


def statements(records: DataFrame, declaration: StreamDeclaration) -> tuple[DataFrame, DataFrame]:
    """Split records into the statements of a stream and the dead letters.

    Both frames read `records`: where that matters, keep `parse_records` and take
    `good_statements` and `dead_letters` of it inside one `foreachBatch`.

    Args:
        records: rows of `rows.RECORD_SCHEMA`. A column `rows.POSITION` gives positions, else the
            number at the end of the place does; a column `rows.EVENT_TIME` gives the envelope's
            time (a Kafka timestamp) for formats that have none of their own; a column
            `rows.REASON` marks records that are known to be of no use.
        declaration: the stream; its format must be RDF.

    Returns:
        Rows of `rows.STATEMENT_SCHEMA`, and rows of `rows.DEAD_LETTER_SCHEMA`.

    Raises:
        DeclarationError: the declaration asks for what these records cannot give.
    """
    parsed = parse_records(records, declaration)
    return good_statements(parsed), dead_letters(parsed)


def parse_records(records: DataFrame, declaration: StreamDeclaration) -> DataFrame:
    """Parse records into rows: statements, and dead letters, which have a reason.

    Raises:
        DeclarationError: the declaration asks for what these records cannot give.
    """
    if not declaration.format.is_rdf:
        raise DeclarationError(
            f"the records of <{declaration.iri}> are {declaration.format}, not RDF",
            hint="Map them with RML first.",
            span=declaration.span,
        )
    if declaration.format in (Format.TIMED_GRAPHS, Format.TIMED_FILES):
        raise DeclarationError(
            f"{declaration.format} of <{declaration.iri}> cannot be read record by record",
            hint="Send timed-lines, N-Triples or N-Quads.",
            span=declaration.span,
        )
    timed = declaration.format is Format.TIMED_LINES
    lines = records.select(
        rows.SOURCE,
        rows.PLACE,
        _position(records).alias(rows.POSITION),
        _given_reason(records).alias(_GIVEN),
        *([] if timed else _record_times(records, declaration)),
        # A record without text is a sign (a Kafka tombstone), not a mistake: it holds no lines.
        F.explode(_lines(_value(records))).alias(_LINE),
    ).where(F.col(_GIVEN).isNotNull() | _says_something(F.col(_LINE)))
    if timed:
        lines = _with_line_times(lines)
    parsed = parse_lines(lines, _without_time() if timed else F.col(_LINE))
    # A comment after an event time is no statement, though it is nothing wrong on its own.
    empty = F.when(F.col(rows.SUBJECT).isNull(), F.lit("no statement"))
    reason = F.coalesce(F.col(_GIVEN), F.col(_EARLY), F.col(rows.REASON), empty)
    graph_in_triples = F.lit(None).cast("string")
    if declaration.format is Format.NTRIPLES:
        has_graph = F.col(rows.GRAPH).isNotNull()
        graph_in_triples = F.when(has_graph, F.lit("a graph name in N-Triples"))
    return parsed.select(
        F.lit(declaration.iri).alias(rows.STREAM),
        F.col(_TIME).alias(rows.EVENT_TIME),
        rows.POSITION,
        *rows.TERMS,
        rows.SOURCE,
        rows.PLACE,
        F.coalesce(reason, graph_in_triples).alias(rows.REASON),
        F.left(_LINE, F.lit(rows.DEAD_LETTER_TEXT)).alias(rows.RECORD),
    )


def _position(records: DataFrame) -> Column:
    if rows.POSITION in records.columns:
        return F.col(rows.POSITION)
    number = F.regexp_extract(rows.PLACE, "([0-9]{1,18})$", 1).try_cast("bigint")
    return F.coalesce(number, F.lit(0).cast("bigint"))


def _given_reason(records: DataFrame) -> Column:
    nothing = F.lit(None).cast("string")
    return F.col(rows.REASON) if rows.REASON in records.columns else nothing


def _value(records: DataFrame) -> Column:
    if rows.REASON not in records.columns:
        return F.col(rows.VALUE)
    # One row for what is of no use, also where nothing is left to show.
    useless = F.regexp_replace(F.coalesce(rows.VALUE, F.lit("")), "[\r\n]+", " ")
    return F.when(F.col(rows.REASON).isNotNull(), useless).otherwise(F.col(rows.VALUE))


def _lines(value: Column) -> Column:
    # Spark cuts at one character several times as fast as at a pattern.
    unix = F.when(value.contains("\r"), F.replace(value, F.lit("\r\n"), F.lit("\n"))).otherwise(
        value
    )
    return F.split(unix, "\n")


def _begins_with_digit(line: Column) -> Column:
    """Tell so from the order of bytes, in which the colon follows the nine."""
    return (line >= "0") & (line < ":")


def _says_something(line: Column) -> Column:
    return F.when(_begins_with_digit(line), F.lit(True)).otherwise(~line.rlike(_QUIET))


def _with_line_times(lines: DataFrame) -> DataFrame:
    """Cut each line after its time; every step is named so that Spark takes it once.

    Most times are whole numbers with a space after them. They need no pattern: a number is one if it
    is spelled again as it was.
    """
    line, word, number = F.col(_LINE), F.col(_WORD), F.col(_NUMBER)
    first = F.when(_begins_with_digit(line), F.substring_index(line, " ", 1))
    cut = lines.withColumn(_WORD, first).withColumn(_NUMBER, word.try_cast("bigint"))
    usual = (
        (number.cast("string") == word)
        & (F.octet_length(word) <= MOST_DIGITS)
        & (F.octet_length(word) < F.octet_length(line))
    )
    cut = cut.withColumn(_NUMBER, F.when(usual, number))
    prefix = F.when(number.isNull(), F.regexp_extract(line, _PREFIX_PATTERN, 0))
    cut = cut.withColumn(_PREFIX, prefix)
    spelled = event_time(F.rtrim(F.col(_PREFIX), F.lit(" \t")))
    timed = cut.withColumn(_TIME, F.when(number.isNotNull(), number).otherwise(spelled))
    return timed.withColumn(
        _EARLY,
        F.when(F.col(_PREFIX) == "", F.lit("no event time before the statement")).when(
            F.col(_TIME).isNull(), F.lit("not an event time before the statement")
        ),
    )


def _without_time() -> Column:
    """The statement of a line that `_with_line_times` has cut."""
    # As bytes, since in a text Spark counts the characters.
    bare = F.substring(
        F.col(_LINE).cast("binary"), F.octet_length(_WORD) + 2, F.octet_length(_LINE)
    )
    return F.when(F.col(_NUMBER).isNotNull(), bare.cast("string")).otherwise(
        F.substr(_LINE, F.length(_PREFIX) + 1)
    )


def _record_times(records: DataFrame, declaration: StreamDeclaration) -> list[Column]:
    """The time of a whole record, and why it has none."""
    nothing = F.lit(None).cast("string").alias(_EARLY)
    match declaration.time:
        case Arrival():
            return [F.col(rows.ARRIVAL).alias(_TIME), nothing]
        case Envelope():
            if rows.EVENT_TIME not in records.columns:
                raise DeclarationError(
                    f"the records of <{declaration.iri}> carry no time",
                    hint='Choose time = "arrival" or a predicate, or send timed-lines.',
                    span=declaration.span,
                )
            return [F.col(rows.EVENT_TIME).alias(_TIME), nothing]
        case FromPredicate(predicate=predicate):
            found = F.array_distinct(
                F.regexp_extract_all(rows.VALUE, F.lit(_predicate_pattern(predicate)), F.lit(1))
            )
            time = F.when(F.size(found) == 1, event_time(found[0]))
            why = (
                F.when(F.size(found) == 0, F.lit(f"no time: <{predicate}> is missing"))
                .when(F.size(found) > 1, F.lit(f"two times: <{predicate}> stands twice"))
                .when(time.isNull(), F.concat(F.lit("not an event time: "), found[0]))
            )
            return [time.alias(_TIME), why.alias(_EARLY)]
        case FromColumn(column=column):
            raise DeclarationError(
                f'the statements of <{declaration.iri}> have no column "{column}"',
                span=declaration.span,
            )


def _predicate_pattern(predicate: str) -> str:
    """Find the lexical form of the predicate's literals at the place of an object only.

    Anchored at the subject: the same characters inside some other literal do not count.
    """
    quoted = re.escape(predicate)
    return (
        '(?m)^[ \\t]*+(?:<[^<>]*+>|_:[^\\s<>"]++)[ \\t]*+'
        f'<{quoted}>[ \\t]*+"((?:[^"\\\\]|\\\\.)*+)"'
    )
