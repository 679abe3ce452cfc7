"""How terms, times and signs sit in Spark columns: the only file that spells a column name.

A *quad row* holds the four terms of a quad in their canonical spelling (`quadweir.terms`); a NULL
graph is the default graph. A *statement row* is a quad row of a stream: rows with equal stream,
event time and position form one element (`docs/semantics.md`, S1). A *record row* is raw input
before mapping or parsing. A *dead letter* is a record that could not be used, with the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.types import LongType, StringType, StructField, StructType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SUBJECT: Final = "subject"
PREDICATE: Final = "predicate"
OBJECT: Final = "object"
GRAPH: Final = "graph"
TERMS: Final = (SUBJECT, PREDICATE, OBJECT, GRAPH)

STREAM: Final = "stream"
EVENT_TIME: Final = "event_time"
TIME_BITS: Final = 48
LAST_TIME_MS: Final = (1 << TIME_BITS) - 2
"""The greatest distance of event times from 1970, some 8,900 years."""
POSITION: Final = "position"
ELEMENT: Final = (STREAM, EVENT_TIME, POSITION)

VALUE: Final = "value"
SOURCE: Final = "source"
PLACE: Final = "place"
ARRIVAL: Final = "arrival"

REASON: Final = "reason"
RECORD: Final = "record"

LINE: Final = "line"

REPORT: Final = "t"
SIGN: Final = "sign"
BINDINGS: Final = "bindings"
TRIPLES: Final = "graph"
"""The triples of a CONSTRUCT answer."""
WHY: Final = "why"
"""The explanation of an answer, as JSON."""

QUAD_SCHEMA: Final = StructType(
    [
        StructField(SUBJECT, StringType(), nullable=False),
        StructField(PREDICATE, StringType(), nullable=False),
        StructField(OBJECT, StringType(), nullable=False),
        StructField(GRAPH, StringType(), nullable=True),
    ]
)
"""A quad: four canonical spellings, the graph NULL for the default graph."""

STATEMENT_SCHEMA: Final = StructType(
    [
        StructField(STREAM, StringType(), nullable=False),
        StructField(EVENT_TIME, LongType(), nullable=False),
        StructField(POSITION, LongType(), nullable=False),
        *QUAD_SCHEMA.fields,
    ]
)
"""A statement of a stream element: stream IRI (without brackets), event time in milliseconds since
1970, position in the stream, then the quad."""

RECORD_SCHEMA: Final = StructType(
    [
        StructField(SOURCE, StringType(), nullable=False),
        StructField(PLACE, StringType(), nullable=False),
        StructField(ARRIVAL, LongType(), nullable=False),
        StructField(VALUE, StringType(), nullable=True),
    ]
)
"""A raw record: the file, topic or address it came from; where in it (line, or partition and
offset); when it arrived, in milliseconds; and its text."""

DEAD_LETTER_SCHEMA: Final = StructType(
    [
        StructField(SOURCE, StringType(), nullable=False),
        StructField(PLACE, StringType(), nullable=False),
        StructField(REASON, StringType(), nullable=False),
        StructField(RECORD, StringType(), nullable=True),
    ]
)
"""A record that could not be used: its place, the reason, and its text, cut after
`DEAD_LETTER_TEXT` characters."""

DEAD_LETTER_TEXT: Final = 10_000

AHEAD: Final = "ahead: "
"""The start of a dead letter's reason if its time is too far ahead (S4)."""


def select_quads(frame: DataFrame) -> DataFrame:
    """Keep the four term columns, in order."""
    return frame.select(*TERMS)


def select_statements(frame: DataFrame) -> DataFrame:
    """Keep the columns of `STATEMENT_SCHEMA`, in order."""
    return frame.select(*ELEMENT, *TERMS)
