"""Column expressions that write rows as lines: N-Quads, timed lines, JSON Lines, answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from quadweir import rows
from quadweir.errors import UsageError
from quadweir.sinks.answerlines import csv_line, json_line, tsv_line
from quadweir.sinks.lineformat import LineFormat

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def to_lines(frame: DataFrame, form: LineFormat) -> DataFrame:
    """Return each row as a line, in the one column `rows.LINE`.

    Raises:
        UsageError: the rows lack a column that the format needs.
    """
    return with_line(frame, form).select(rows.LINE)


def with_line(frame: DataFrame, form: LineFormat) -> DataFrame:
    """Return the rows with their lines as one more column, `rows.LINE`."""
    return frame.withColumn(rows.LINE, line_of(frame, form))


def element_lines(frame: DataFrame, *, named: bool) -> DataFrame:
    """Return each element as timed lines: one row with all its lines, in the column `rows.LINE`.

    Args:
        frame: bounded statements, with all statements of each element. An element with statements
            in several graphs becomes one element for each graph.
        named: separate elements whose lines follow each other, as in a file. If an element has
            several statements in the default graph, they get a graph name of their own, and an
            empty line ends each element that is in a named graph.

    Returns:
        The columns of `rows.ELEMENT` that the frame has, and `rows.LINE`. Rows are sorted by event
        time in one partition, so that a reader finds no element late.
    """
    element = [name for name in rows.ELEMENT if name in frame.columns]
    triple = F.concat_ws(" ", *rows.TERMS[:3])
    # Sorted, so that the same element always gives the same text.
    triples = F.sort_array(F.collect_set(triple)).alias("triples")
    found = frame.groupBy(*element, rows.GRAPH).agg(triples)
    graph = F.col(rows.GRAPH)
    if named:
        own = F.concat(F.lit("_:e"), F.lower(F.hex(rows.POSITION)))
        graph = F.coalesce(graph, F.when(F.size("triples") > 1, own))
    found = found.withColumn(rows.GRAPH, graph)
    time = F.col(rows.EVENT_TIME).cast("string")
    lines = F.transform(
        "triples", lambda one: F.concat_ws(" ", time, one, F.col(rows.GRAPH), F.lit("."))
    )
    text = F.array_join(lines, "\n")
    if named:
        text = F.when(F.col(rows.GRAPH).isNotNull(), F.concat(text, F.lit("\n"))).otherwise(text)
    lined = found.select(*element, text.alias(rows.LINE))
    return lined.repartition(1).sortWithinPartitions(rows.EVENT_TIME, rows.POSITION)


def line_of(frame: DataFrame, form: LineFormat) -> Column:
    """Return the line of a row, as one column expression.

    Raises:
        UsageError: the rows lack a column that the format needs.
    """
    columns: tuple[str, ...]
    match form:
        case LineFormat.JSONL:
            every = F.struct(*[F.col(f"`{name}`") for name in frame.columns])
            return F.to_json(every, {"ignoreNullFields": "false"})
        case LineFormat.ANSWERS_JSONL:
            return json_line(frame)
        case LineFormat.ANSWERS_CSV:
            return csv_line(frame)
        case LineFormat.ANSWERS_TSV:
            return tsv_line(frame)
        case LineFormat.NQUADS:
            columns = rows.TERMS
        case LineFormat.NTRIPLES:
            columns = rows.TERMS[:3]
        case LineFormat.TIMED_LINES:
            columns = (rows.EVENT_TIME, *rows.TERMS)
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise UsageError(
            f"rows without {' and '.join(missing)} cannot be written as {form}",
            hint="Write them as jsonl.",
        )
    # concat_ws leaves out NULL, the graph name of the default graph.
    return F.concat_ws(" ", *[F.col(name).cast("string") for name in columns], F.lit("."))
