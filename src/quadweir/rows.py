"""How terms, times and signs sit in Spark columns: the only file that spells a column name.

A *quad row* holds the four terms of a quad in their canonical spelling (`quadweir.terms`); a NULL
graph is the default graph. A *statement row* is a quad row of a stream: rows with equal stream,
event time and position form one element (`docs/semantics.md`, S1). A *record row* is raw input
before mapping or parsing. A *dead letter* is a record that could not be used, with the reason.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

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

QUAD_SCHEMA: StructType
"""A quad: four canonical spellings, the graph NULL for the default graph."""

STATEMENT_SCHEMA: StructType
"""A statement of a stream element: stream IRI (without brackets), event time in milliseconds since
1970, position in the stream, then the quad."""

RECORD_SCHEMA: StructType
"""A raw record: the file, topic or address it came from; where in it (line, or partition and
offset); when it arrived, in milliseconds; and its text."""

DEAD_LETTER_SCHEMA: StructType
"""A record that could not be used: its place, the reason, and its text, cut after
`DEAD_LETTER_TEXT` characters."""

DEAD_LETTER_TEXT: Final = 10_000

AHEAD: Final = "ahead: "
"""The start of a dead letter's reason if its time is too far ahead (S4)."""


_LONGS: Final = (EVENT_TIME, POSITION, ARRIVAL)
_MAY_BE_NULL: Final = (GRAPH, VALUE, RECORD)
_SCHEMAS: Final = {
    "QUAD_SCHEMA": TERMS,
    "STATEMENT_SCHEMA": (*ELEMENT, *TERMS),
    "RECORD_SCHEMA": (SOURCE, PLACE, ARRIVAL, VALUE),
    "DEAD_LETTER_SCHEMA": (SOURCE, PLACE, REASON, RECORD),
}


def __getattr__(name: str) -> StructType:
    # Made on first use: a query that runs without Spark is answered before pyspark is imported.
    if name not in _SCHEMAS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _schema(name)


@cache
def _schema(name: str) -> StructType:
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    return StructType(
        [
            StructField(
                column,
                LongType() if column in _LONGS else StringType(),
                nullable=column in _MAY_BE_NULL,
            )
            for column in _SCHEMAS[name]
        ]
    )


def select_quads(frame: DataFrame) -> DataFrame:
    """Keep the four term columns, in order."""
    return frame.select(*TERMS)


def select_statements(frame: DataFrame) -> DataFrame:
    """Keep the columns of `STATEMENT_SCHEMA`, in order."""
    return frame.select(*ELEMENT, *TERMS)
