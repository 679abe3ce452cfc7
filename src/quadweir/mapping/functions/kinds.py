"""Values of functions as columns of a kind: conversions, and values that a kind cannot take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from pyspark.sql import Column
from pyspark.sql import functions as F

from quadweir.mapping.functions.columns import truth
from quadweir.mapping.functions.dateformats import DATE_FORMAT
from quadweir.mapping.functions.registry import Kind

_CASTS: Final = {Kind.INTEGER: "bigint", Kind.NUMBER: "double"}
_WANTED: Final = {
    Kind.INTEGER: "a whole number of 64 bits",
    Kind.NUMBER: "a number",
    Kind.DATE_FORMAT: "a date format",
}
_TEXTS: Final = (Kind.STRING, Kind.REGEX, Kind.DATE_FORMAT)
_SHOWN: Final = 200


@final
@dataclass(frozen=True, slots=True)
class TypedColumn:
    """The values of an expression: a column of a kind, or with `many` one of arrays of it.

    Each of `problems` is a nullable string that says why a record has no value.
    """

    column: Column
    kind: Kind
    many: bool
    constant: str | None = None
    problems: tuple[Column, ...] = ()


def as_kind(column: Column, have: Kind, want: Kind) -> Column:
    """Convert a value; a value that cannot be converted becomes NULL, and `misfit` has the
    reason.
    """
    if have is want:
        return column
    if want is Kind.BOOLEAN:
        return truth_of(column, have)
    if want in _CASTS:
        return column.try_cast(_CASTS[want])
    text = text_of(column, have)
    return F.when(text.rlike(DATE_FORMAT), text) if want is Kind.DATE_FORMAT else text


def can_misfit(have: Kind, want: Kind) -> bool:
    """Whether some values of a kind cannot be converted to another."""
    return want in _WANTED and have is not want and (have, want) != (Kind.INTEGER, Kind.NUMBER)


def misfit(column: Column, have: Kind, want: Kind, taker: str) -> Column:
    """The reason why a value cannot be converted to the kind of a parameter; NULL if it can."""
    is_bad = column.isNotNull() & as_kind(column, have, want).isNull()
    reason = f"' is not {_WANTED[want]}, as {taker} takes"
    return F.when(is_bad, F.concat(F.lit("'"), shown(column, have), F.lit(reason)))


def first_of(array: Column, each: Callable[[Column], Column]) -> Column:
    """The first text that is made of an element; NULL if there is none."""
    return F.try_element_at(F.array_compact(F.transform(array, each)), F.lit(1))


def shown(column: Column, kind: Kind) -> Column:
    """The beginning of a value, for a message."""
    return F.substring(text_of(column, kind), 1, _SHOWN)


def as_list(values: list[TypedColumn]) -> Column:
    """All values as one array."""
    arrays = []
    for value in values:
        if value.kind is Kind.LIST:
            arrays.append(value.column)
        elif value.many:
            arrays.append(texts_of(value.column, value.kind))
        else:
            arrays.append(F.array(text_of(value.column, value.kind)))
    if len(arrays) == 1:
        return arrays[0]
    return F.concat(*(F.coalesce(array, F.array().cast("array<string>")) for array in arrays))


def texts_of(array: Column, kind: Kind) -> Column:
    """Spell the elements of an array."""
    return array if kind is Kind.LIST else F.transform(array, lambda item: text_of(item, kind))


def truth_of(column: Column, kind: Kind) -> Column:
    """Take a value as true or false."""
    return column if kind is Kind.BOOLEAN else truth(text_of(column, kind))


def text_of(column: Column, kind: Kind) -> Column:
    """Spell a value; infinite numbers as XML Schema does."""
    if kind in _TEXTS or kind is Kind.LIST:
        return column
    text = column.cast("string")
    return F.replace(text, F.lit("Infinity"), F.lit("INF")) if kind is Kind.NUMBER else text
