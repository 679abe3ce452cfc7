"""Both sides of a join of streams as one frame of records: keys, times, and the terms they bring."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final, final

from pyspark.sql import functions as F

from quadweir import rows
from quadweir.errors import MappingError
from quadweir.mapping.elements import record_time
from quadweir.mapping.generate import Generator
from quadweir.mapping.joins import KEY, SIDE, StreamTime, time_reference
from quadweir.mapping.model import (
    Expression,
    FunctionExecution,
    JoinCondition,
    JoinWindowMap,
    Reference,
    RefObjectMap,
)
from quadweir.mapping.records import Records
from quadweir.mapping.values import Terms
from quadweir.rowfilters import ahead_reason

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

OBJECT: Final = "_quadweir_object"
"""The column of the subject that a parent brings."""
REASONS: Final = "_quadweir_reasons"
"""Why a record cannot be used, or not wholly; NULL if it can."""
SEVERAL: Final = "_several"
"""How the names of columns end that hold all terms of records which have more than one."""
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
            return left.keyed().as_many(), right.keyed().as_many()
    texts = child.texts(mine).terms.as_many(), parent.texts(theirs).terms.as_many()
    if item.window is None:
        return texts
    left_texts, right_texts = (each.map(lambda text: F.concat(F.lit('"'), text)) for each in texts)
    return left_texts, right_texts


def operands_of(item: RefObjectMap) -> tuple[list[Expression], list[Expression]]:
    """What the conditions of a join compare: the child's side, and the parent's."""
    return [one.child for one in item.conditions], [one.parent for one in item.conditions]


def call_problems(maker: Generator, operands: Iterable[Expression]) -> Iterator[Column]:
    """Why functions among the operands of a join cannot be computed."""
    for operand in operands:
        if isinstance(operand, FunctionExecution):
            yield from maker.texts(operand).problems


def time_of(
    records: Records, window: JoinWindowMap, known: StreamTime, *, is_parent: bool
) -> tuple[Column, Column | None]:
    """The event time of each record, and why it has none that can be used, if that may be.

    Raises:
        MappingError: nothing says the time of records.
    """
    reference = time_reference(window, is_parent=is_parent) or known.reference
    found = record_time(records, reference, known)
    if found is None:
        raise MappingError(
            f"the records of {records.shown} have no time to be joined in a window by",
            hint="Name the reference that holds it with qw:timestamp.",
            span=window.span,
        )
    time, problem = found
    if known.ahead_ms is None:
        return found
    # One record from the far future would make all others late until that time has come.
    ahead = ahead_reason(time, known.ahead_ms)
    problem = ahead if problem is None else F.coalesce(problem, ahead)
    return F.when(ahead.isNull(), time), problem


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
    return [as_text(texts).alias(REASONS), *(F.col(name) for name in LETTER[1:])]


def as_text(texts: Column) -> Column:
    """An array of texts as one text, for the way through a join; none at all is NULL."""
    return F.nullif(F.array_join(texts, _BETWEEN), F.lit(""))


def as_array(text: Column) -> Column:
    """What `as_text` made one text of."""
    return F.split(text, _BETWEEN)


def letter_reasons() -> Column:
    """Why a record that came through a join cannot be used, as an array; NULL if it can."""
    return as_array(F.col(REASONS))


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
