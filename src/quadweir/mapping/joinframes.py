"""Both sides of a join of streams as one frame of records: keys, times, and the terms they bring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final, final

from pyspark.sql import functions as F

from quadweir import rows
from quadweir.errors import MappingError
from quadweir.mapping.generate import Generator
from quadweir.mapping.joins import KEY, SIDE, StreamTime, time_reference
from quadweir.mapping.model import JoinCondition, JoinWindow, Reference, RefObjectMap
from quadweir.mapping.records import Records
from quadweir.mapping.values import Terms
from quadweir.sources.records import event_time

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

OBJECT: Final = "_quadweir_object"
"""The column of the subject that a parent brings."""
REASONS: Final = "_quadweir_reasons"
"""Why a record cannot be used, or not wholly; NULL if it can."""
_BETWEEN: Final = "\x00"
LETTER: Final = (REASONS, rows.SOURCE, rows.PLACE, rows.RECORD)
"""What there is to tell of a record that cannot be used."""
_PART: Final = "_quadweir_key"
_ONLY_KEY: Final = "all records"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side of a join.

    Attributes:
        frame: its records.
        keys: the texts that are compared, one for each condition.
        time: event times; a record without one meets nothing.
        carried: the columns that it brings into a pair.
    """

    frame: DataFrame
    keys: Sequence[Terms]
    time: Column
    carried: Mapping[str, Column]


def join_keys(
    condition: JoinCondition, item: RefObjectMap, child: Generator, parent: Generator
) -> tuple[Terms, Terms]:
    """What both sides of a condition are compared by.

    In a window values are equal if their types are too, where both sources have types; plain texts
    otherwise, as in joins without a window.
    """
    mine, theirs = condition.child, condition.parent
    if item.window is not None and isinstance(mine, Reference) and isinstance(theirs, Reference):
        left, right = child.values[mine.reference], parent.values[theirs.reference]
        if left.is_typed and right.is_typed:
            return left.keyed(), right.keyed()
    texts = child.texts(mine).terms, parent.texts(theirs).terms
    if item.window is None:
        return texts
    left_texts, right_texts = (each.map(lambda text: F.concat(F.lit('"'), text)) for each in texts)
    return left_texts, right_texts


def time_of(
    records: Records, window: JoinWindow, known: StreamTime, *, is_parent: bool
) -> tuple[Column, Column | None]:
    """The event time of each record, and why it has none, if the record says its time.

    Raises:
        MappingError: nothing says the time of records.
    """
    reference = time_reference(window, is_parent=is_parent) or known.reference
    if reference is None:
        columns = [
            name for name in (rows.EVENT_TIME, rows.ARRIVAL) if name in records.frame.columns
        ]
        if not columns or not known.is_told:
            raise MappingError(
                f"the records of {records.shown} have no time to be joined in a window by",
                hint="Name the reference that holds it with qw:timestamp.",
                span=window.span,
            )
        return F.coalesce(*columns), None
    terms = records.values[reference].text()
    text = F.get(terms.column, 0) if terms.many else terms.column
    found = event_time(text)
    usable = records.reason.isNull() if records.reason is not None else F.lit(True)
    told = F.concat(
        F.lit(f"no event time in {reference}: "),
        F.coalesce(F.left(text, F.lit(40)), F.lit("nothing")),
    )
    return found, F.when(usable & found.isNull(), told)


def both(child: Side, parent: Side) -> DataFrame:
    """Put the records of both sides into one frame, in the form of `JoinInput`."""
    frames = []
    for number, side in enumerate((child, parent)):
        frame = side.frame.select(
            F.lit(number).cast("bigint").alias(SIDE),
            side.time.cast("bigint").alias(rows.EVENT_TIME),
            _arrival(side.frame).alias(rows.ARRIVAL),
            *[key.column.alias(f"{_PART}{place}") for place, key in enumerate(side.keys)],
            *[column.alias(name) for name, column in side.carried.items()],
            *_letter(side.frame),
        )
        for place, key in enumerate(side.keys):
            if key.many:
                frame = frame.withColumn(f"{_PART}{place}", F.explode_outer(f"{_PART}{place}"))
        # No record is left out here: Spark would move the filter below the parsing, and parse again
        # for each column that it asks for.
        frame = frame.withColumn(KEY, _key(len(side.keys)))
        frames.append(frame.drop(*[f"{_PART}{place}" for place in range(len(side.keys))]))
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)


def _letter(frame: DataFrame) -> list[Column]:
    if REASONS not in frame.columns:
        return []
    # As one text: on the way to Python Spark asks after every row how large the batch is by now, and
    # a column of arrays, most of them NULL, goes through all of its rows to tell.
    texts = F.transform(REASONS, lambda one: F.replace(one, F.lit(_BETWEEN), F.lit(" ")))
    return [F.array_join(texts, _BETWEEN).alias(REASONS), *(F.col(name) for name in LETTER[1:])]


def letter_reasons() -> Column:
    """Why a record that came through a join cannot be used, as an array; NULL if it can."""
    return F.split(REASONS, _BETWEEN)


def _arrival(frame: DataFrame) -> Column:
    if rows.ARRIVAL in frame.columns:
        return F.coalesce(F.col(rows.ARRIVAL), F.lit(0)).cast("bigint")
    return F.lit(0).cast("bigint")


def _key(count: int) -> Column:
    """One text of several, NULL if one of them is.

    Each is preceded by its length, so that no two lists of texts give the same.
    """
    if not count:
        return F.lit(_ONLY_KEY)
    parts = []
    for place in range(count):
        part = F.col(f"{_PART}{place}")
        parts += [F.length(part).cast("string"), F.lit(":"), part]
    return F.concat(*parts)
