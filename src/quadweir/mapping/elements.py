"""Records as elements of streams: their stream, time and position.

The quads that a mapping makes of one record in one graph are an element. Its time is that of the record.
A pair of two records with times makes another element, with the later of both times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, final

from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType

from quadweir import rows
from quadweir.errors import MappingError
from quadweir.mapping.joins import StreamTime
from quadweir.mapping.jsoncolumns import POSITION as PLACE_IN_TEXT
from quadweir.mapping.model import TermMap, TriplesMap
from quadweir.mapping.records import Records
from quadweir.mapping.sources import LogicalSource
from quadweir.rowfilters import event_time

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PARENT: Final = "_quadweir_parent_"
"""The column names of a parent's element, distinct from those of its child's."""
_TEXTS_READ_IN_PYTHON: Final = "_place"


@final
@dataclass(frozen=True, slots=True)
class ElementRule:
    """How the records of a mapping become elements.

    Attributes:
        stream: names the stream of a source's elements.
        times_inside: event times are read later from a predicate inside the elements, so records
        need none.
    """

    stream: Callable[[LogicalSource], str]
    times_inside: bool = False


def record_time(
    records: Records, reference: str | None, known: StreamTime
) -> tuple[Column, Column | None] | None:
    """The event time of each record, or the reason why it has none.

    Args:
        records: the records.
        reference: the reference that holds the time; None if the source itself has it.
        known: the known facts about the source's times.

    Returns:
        None if nothing says the time.
    """
    if reference is None:
        names = (rows.ARRIVAL,) if known.is_arrival else (rows.EVENT_TIME, rows.ARRIVAL)
        columns = [name for name in names if name in records.frame.columns]
        return (F.coalesce(*columns), None) if columns and known.has_own_time else None
    terms = records.values[reference].text()
    text = F.get(terms.column, 0) if terms.many else terms.column
    found = event_time(text)
    usable = records.reason.isNull() if records.reason is not None else F.lit(True)
    reason = F.concat(
        F.lit(f"no event time in {reference}: "),
        F.coalesce(F.left(text, F.lit(40)), F.lit("nothing")),
    )
    return found, F.when(usable & found.isNull(), reason)


def with_element(
    records: Records, known: StreamTime, stream: str, *, times_inside: bool
) -> tuple[Records, Column | None] | None:
    """Records with the columns of `rows.ELEMENT`, and the reason why some have no event time.

    Returns:
        None if nothing says the time of the records.
    """
    timed = record_time(records, known.reference, known)
    if timed is None and not times_inside:
        return None
    # If times are read later, all are 0 until then.
    time, problem = timed if timed is not None and not times_inside else (F.lit(0), None)
    columns = {
        rows.STREAM: F.lit(stream),
        rows.EVENT_TIME: time.cast("bigint"),
        rows.POSITION: _position(records),
    }
    return replace(records, frame=records.frame.withColumns(columns)), problem


def _position(records: Records) -> Column:
    """The position of each record: that of its message or line, if it is the only record there.

    Otherwise it is a hash of the record's place, or of the record itself if it has no place.
    """
    frame = records.frame
    has_position = rows.POSITION in frame.columns and isinstance(
        frame.schema[rows.POSITION].dataType, IntegralType
    )
    is_whole = PLACE_IN_TEXT not in frame.columns and _TEXTS_READ_IN_PYTHON not in frame.columns
    if has_position and is_whole:
        return F.col(rows.POSITION).cast("bigint")
    parts = [records.place]
    if has_position:
        parts.append(F.col(rows.POSITION))
    elif not records.is_placed:
        parts.append(records.text)
    return F.xxhash64(*parts)


def tell_sources_apart(records: Records, number: int) -> Records:
    """Make the positions of a source different from those of other sources."""
    position = F.xxhash64(F.lit(number), F.col(rows.POSITION))
    return replace(records, frame=records.frame.withColumn(rows.POSITION, position))


def pair_element(joined: DataFrame) -> DataFrame:
    """The element of a pair, from those of its child and its parent; both have times."""
    times = rows.EVENT_TIME, PARENT + rows.EVENT_TIME
    # A pair of a record without a time has none either; `greatest` alone would take the other's.
    later = F.when(F.col(times[0]).isNotNull() & F.col(times[1]).isNotNull(), F.greatest(*times))
    return joined.withColumns({rows.EVENT_TIME: later, rows.POSITION: pair_position()}).drop(
        *(PARENT + name for name in rows.ELEMENT)
    )


def pair_position() -> Column:
    """The position of a pair's element, from those of its child and its parent."""
    return F.xxhash64(F.col(rows.POSITION), F.col(PARENT + rows.POSITION))


def apart_by_graph(frame: DataFrame) -> DataFrame:
    """Set a position for each graph of a record's quads: one graph is one element (S1)."""
    position = F.xxhash64(F.col(rows.POSITION), F.col(rows.GRAPH))
    return frame.withColumn(rows.POSITION, position)


def has_several_graphs(triples_maps: Iterable[TriplesMap]) -> bool:
    """Whether the mapping allows a record to make quads in more than one graph."""
    found: set[TermMap | None] = set()
    for triples_map in triples_maps:
        own = triples_map.subject.graphs
        if triples_map.subject.classes:
            found.update(own or (None,))
        for pair in triples_map.predicate_objects:
            found.update((*own, *pair.graphs) or (None,))
    return len({None if one is None or one.is_default_graph else one for one in found}) > 1


def no_time(shown: str, logical: LogicalSource) -> MappingError:
    """The error for a source whose records have no event time."""
    return MappingError(
        f"the records of {shown} have no event time, so they cannot make a stream",
        hint=f"Name the reference that holds it: --time {shown}=REFERENCE; in Python "
        f'time={{"{shown}": "REFERENCE"}}.',
        span=logical.span,
    )
