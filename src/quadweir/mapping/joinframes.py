"""Both sides of a stream join as one frame of records: keys, times, and terms."""

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
    FunctionExecution,
    JoinCondition,
    JoinWindowMap,
    MapExpression,
    Reference,
    RefObjectMap,
)
from quadweir.mapping.records import Records
from quadweir.mapping.values import Terms
from quadweir.rowfilters import ahead_reason

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

OBJECT: Final = "_quadweir_object"
"""The column of a parent's subject."""
REASONS: Final = "_quadweir_reasons"
"""The reasons why a record cannot be used completely; NULL if it can."""
SEVERAL: Final = "_several"
"""The suffix of columns that hold all terms of records with more than one."""
_BETWEEN: Final = "\x00"
LETTER: Final = (REASONS, rows.SOURCE, rows.PLACE, rows.RECORD)
"""The columns that describe a record that cannot be used."""
_PART: Final = "_quadweir_key"
_ONLY_KEY: Final = "all records"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side of a join.

    Attributes:
        frame: its records.
        keys: the texts that are compared, one for each condition.
        time: event times; a record without one is never joined.
        carried: the columns that it adds to a pair.
    """

    frame: DataFrame
    keys: Sequence[Terms]
    time: Column
    carried: Mapping[str, Column]


def join_keys(
    condition: JoinCondition, item: RefObjectMap, child: Generator, parent: Generator
) -> tuple[Terms, Terms]:
    """The columns by which both sides of a condition are compared.

    In a window, equal values also have equal types, if both sources have types. Otherwise plain
    texts are compared, as in joins without a window.
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


def operands_of(item: RefObjectMap) -> tuple[list[MapExpression], list[MapExpression]]:
    """The operands of a join's conditions: the child's side and the parent's."""
    return [one.child for one in item.conditions], [one.parent for one in item.conditions]


def call_problems(maker: Generator, operands: Iterable[MapExpression]) -> Iterator[Column]:
    """The reasons why functions among the operands of a join cannot be computed."""
    for operand in operands:
        if isinstance(operand, FunctionExecution):
            yield from maker.texts(operand).problems


def time_of(
    records: Records, window: JoinWindowMap, known: StreamTime, *, is_parent: bool
) -> tuple[Column, Column | None]:
    """The event time of each record, and the reason if it has no usable one.

    Raises:
        MappingError: the records have no time.
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
    # One record from the far future would make all later records late.
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
        # No record is filtered here: Spark would move the filter below the parsing, and parse again
        # for each column of the filter.
        frame = frame.withColumn(KEY, _key(len(side.keys)))
        frames.append(frame.drop(*[f"{_PART}{place}" for place in range(len(side.keys))]))
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)


def _letter(frame: DataFrame) -> list[Column]:
    if REASONS not in frame.columns:
        return []
    # Arrays travel as one text: on the way to Python, Spark asks after every row for the size of
    # the batch, and a column of arrays visits all its rows to answer.
    texts = F.transform(REASONS, lambda one: F.replace(one, F.lit(_BETWEEN), F.lit(" ")))
    return [as_text(texts).alias(REASONS), *(F.col(name) for name in LETTER[1:])]


def as_text(texts: Column) -> Column:
    """An array of texts as one text, for the way through a join; an empty array becomes NULL."""
    return F.nullif(F.array_join(texts, _BETWEEN), F.lit(""))


def as_array(text: Column) -> Column:
    """The array of texts from which `as_text` made one text."""
    return F.split(text, _BETWEEN)


def letter_reasons() -> Column:
    """The reasons why a record from a join cannot be used, as an array; NULL if it can."""
    return as_array(F.col(REASONS))


def _arrival(frame: DataFrame) -> Column:
    if rows.ARRIVAL in frame.columns:
        return F.coalesce(F.col(rows.ARRIVAL), F.lit(0)).cast("bigint")
    return F.lit(0).cast("bigint")


def _key(count: int) -> Column:
    """One text from several; NULL if one of them is NULL.

    Each is preceded by its length, so that different lists give different texts.
    """
    if not count:
        return F.lit(_ONLY_KEY)
    parts = []
    for place in range(count):
        part = F.col(f"{_PART}{place}")
        parts += [F.length(part).cast("string"), F.lit(":"), part]
    return F.concat(*parts)
