"""The built-in functions as Spark column expressions.

Each builder takes the arguments of one call by parameter name and returns a column of the
function's kind. A NULL argument means "the record has no such value". Most expressions return NULL
for it, so no term is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from quadweir.errors import MappingError
from quadweir.mapping.functions.dateformats import UNQUOTED_YEAR
from quadweir.mapping.functions.escapes import ESCAPES, UNESCAPES
from quadweir.mapping.vocabulary import GREL, IDLAB

_WHITESPACE: Final = " \t\n\r\f\x0b\u00a0"
_BEYOND_LONG: Final = 2.0**63
_ACCENTED: Final = "àáâãäåçèéêëìíîïñòóôõöøùúûüýÿ"
_PLAIN: Final = "aaaaaaceeeeiiiinoooooouuuuyy"


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument: its column, of the parameter's kind, and its text if it is a constant."""

    column: Column
    constant: str | None = None


Arguments = dict[str, Argument]
ColumnBuilder = Callable[[Arguments], Column]
BUILDERS: Final[dict[str, ColumnBuilder]] = {}
"""The expression of every built-in function, by its IRI."""


def _builds(*iris: str) -> Callable[[ColumnBuilder], ColumnBuilder]:
    def keep(builder: ColumnBuilder) -> ColumnBuilder:
        for iri in iris:
            BUILDERS[iri] = builder
        return builder

    return keep


def _simple(iri: str, build: Callable[..., Column], *names: str) -> None:
    BUILDERS[iri] = lambda given: build(*(given[name].column for name in names))


def _trimmed(column: Column) -> Column:
    return F.btrim(column, F.lit(_WHITESPACE))


def _locate(sub: Column, text: Column) -> Column:
    return F.call_function("locate", sub, text)


def _last_index(text: Column, sub: Column) -> Column:
    found = _locate(F.reverse(sub), F.reverse(text))
    return F.when(found > 0, F.length(text) - found - F.length(sub) + 1).otherwise(F.lit(-1))


def _whole(number: Column, result: Column) -> Column:
    # Spark stops the run if a number does not fit into 64 bits.
    return F.when(F.abs(number) < F.lit(_BEYOND_LONG), result)


_simple(GREL.toUpperCase, F.upper, "value")
_simple(GREL.toLowerCase, F.lower, "value")
_simple(GREL.string_toTitlecase, F.initcap, "value")
_simple(GREL.toTitleCase, F.initcap, "value")
_simple(GREL.string_trim, _trimmed, "value")
_simple(GREL.string_strip, _trimmed, "value")
_simple(GREL.string_length, F.length, "value")
_simple(GREL.string_replace, F.replace, "value", "find", "replace")
_simple(GREL.string_contains, F.contains, "value", "sub")
_simple(GREL.string_startsWith, F.startswith, "value", "sub")
_simple(GREL.string_endsWith, F.endswith, "value", "sub")
_simple(GREL.string_lastIndexOf, _last_index, "value", "sub")
_simple(GREL.string_md5, F.md5, "value")
_simple(GREL.string_sha1, F.sha1, "value")
_simple(GREL.string_toString, lambda value: value, "value")
_simple(GREL.string_toNumber, lambda value: value.try_cast("double"), "value")
_simple(
    GREL.array_join,
    lambda array, separator: F.call_function("array_join", array, separator),
    "array",
    "separator",
)
_simple(GREL.array_length, F.size, "array")
_simple(GREL.array_reverse, F.reverse, "array")
_simple(GREL.array_sort, F.array_sort, "array")
_simple(GREL.array_uniques, F.array_distinct, "array")
_simple(GREL.boolean_not, lambda condition: ~condition, "condition")
_simple(GREL.controls_isNull, F.isnull, "value")
_simple(GREL.controls_isNotNull, F.isnotnull, "value")
_simple(
    GREL.controls_isBlank, lambda value: value.isNull() | (_trimmed(value) == F.lit("")), "value"
)
_simple(
    GREL.controls_isNonBlank,
    lambda value: value.isNotNull() & (_trimmed(value) != F.lit("")),
    "value",
)
_simple(GREL.controls_isNumeric, lambda value: value.try_cast("double").isNotNull(), "value")
_simple(GREL.math_floor, lambda number: _whole(number, F.floor(number)), "number")
_simple(GREL.math_ceil, lambda number: _whole(number, F.ceil(number)), "number")
# Halves are rounded up, also below zero, as in GREL and XPath; Spark's own round goes away from
# zero.
_simple(GREL.math_round, lambda number: _whole(number, F.floor(number + F.lit(0.5))), "number")
_simple(GREL.math_ln, lambda number: F.when(number > 0, F.ln(number)), "number")
_simple(GREL.math_log, lambda number: F.when(number > 0, F.log10(number)), "number")
_simple(GREL.math_exp, F.exp, "number")
_simple(GREL.math_pow, F.pow, "number", "exponent")
_simple(GREL.math_mod, lambda a, b: F.try_mod(a, b), "integer", "integer2")
_simple(GREL.date_now, lambda: F.date_format(F.current_timestamp(), _ISO_TIME))
_simple(IDLAB.equal, lambda a, b: a == b, "value", "value2")
_simple(IDLAB.notEqual, lambda a, b: a != b, "value", "value2")
_simple(IDLAB.isNull, F.isnull, "value")
_simple(IDLAB.trueCondition, lambda b, value: F.when(b, value), "condition", "value")
_simple(IDLAB.decide, lambda a, b, c: F.when(a == b, c), "value", "expected", "result")
_simple(IDLAB.listContainsElement, F.array_contains, "array", "value")
_simple(IDLAB.alwaysReturnsABC, lambda: F.lit("ABC"))
_simple(IDLAB.random, F.uuid)
_simple(IDLAB.inRange, lambda x, low, high: (x >= low) & (x < high), "number", "low", "high")

_ISO_TIME: Final = "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"


@_builds(GREL.string_chomp)
def _chomp(given: Arguments) -> Column:
    text, end = given["value"].column, given["separator"].column
    shorter = F.substring(text, F.lit(1), F.length(text) - F.length(end))
    return F.when(F.endswith(text, end), shorter).otherwise(text)


@_builds(GREL.string_substring, GREL.string_slice)
def _substring(given: Arguments) -> Column:
    """Positions count from 0, negative ones from the end; a start past the end has no result."""
    text = given["value"].column
    length = F.length(text)
    start, stop = _range(given, length)
    return F.when(start <= length, F.substring(text, start + 1, F.greatest(stop - start, F.lit(0))))


def _range(given: Arguments, length: Column) -> tuple[Column, Column]:
    # Not greatest() and least(): they would skip a position that is missing. Positions far outside
    # become ones just outside, so that none is too large to count with.
    def from_the_end(position: Column) -> Column:
        near = (
            F.when(position > length, length + 1)
            .when(position < -length, F.lit(0))
            .when(position < 0, length + position)
            .otherwise(position)
        )
        return near.cast("int")

    start = from_the_end(given["start"].column)
    if "end" not in given:
        return start, length
    end = from_the_end(given["end"].column)
    return start, F.when(end > length, length).otherwise(end)


@_builds(GREL.string_replaceChars)
def _replace_chars(given: Arguments) -> Column:
    return F.call_function(
        "translate", *(given[name].column for name in ("value", "find", "replace"))
    )


@_builds(GREL.string_indexOf)
def _index_of(given: Arguments) -> Column:
    return _locate(given["sub"].column, given["value"].column) - 1


@_builds(GREL.string_split)
def _split(given: Arguments) -> Column:
    return _split_at(given["value"].column, given["separator"].column)


def _split_at(text: Column, separator: Column) -> Column:
    # The separator is text, not a pattern; \E inside it would end the quotation.
    quoted = F.concat(
        F.lit("\\Q"), F.replace(separator, F.lit("\\E"), F.lit("\\E\\\\E\\Q")), F.lit("\\E")
    )
    return F.split(text, quoted, F.lit(-1))


@_builds(GREL.escape, GREL.string_escape)
def _escape(given: Arguments) -> Column:
    return _by_mode(given, ESCAPES)


@_builds(GREL.string_unescape)
def _unescape(given: Arguments) -> Column:
    return _by_mode(given, UNESCAPES)


def _by_mode(given: Arguments, modes: dict[str, Callable[[Column], Column]]) -> Column:
    text, mode = given["value"].column, given["mode"]
    if mode.constant is not None:
        chosen = modes.get(mode.constant.lower())
        if chosen is None:
            raise MappingError(
                f"{mode.constant!r} is not a mode of grel:escape",
                hint=f"Use one of {', '.join(modes)}.",
            )
        return chosen(text)
    result: Column | None = None
    for name, build in modes.items():
        matches = F.lower(mode.column) == F.lit(name)
        result = (
            F.when(matches, build(text)) if result is None else result.when(matches, build(text))
        )
    assert result is not None
    return result


@_builds(GREL.array_get, GREL.array_slice)
def _array_get(given: Arguments) -> Column:
    """Positions count from 0; `get` without an end takes one element, `slice` the rest."""
    array = given["array"].column
    length = F.size(array)
    start, stop = _range(given, length)
    return F.slice(array, start + 1, F.greatest(stop - start, F.lit(0)))


def _array_get_one(given: Arguments) -> Column:
    if "end" in given:
        return _array_get(given)
    array = given["array"].column
    start, _ = _range(given, F.size(array))
    return F.slice(array, start + 1, F.lit(1))


BUILDERS[GREL.array_get] = _array_get_one


@_builds(GREL.array_sum)
def _array_sum(given: Arguments) -> Column:
    return F.aggregate(
        given["array"].column, F.lit(0.0), lambda total, item: total + item.try_cast("double")
    )


def _truths(given: Arguments) -> Column:
    return F.transform(given["conditions"].column, truth)


def truth(text: Column) -> Column:
    """Read a boolean from text: `true` and `1`, in any case, are true; anything else is false."""
    return F.lower(_trimmed(text)).isin("true", "1")


@_builds(GREL.boolean_and)
def _and(given: Arguments) -> Column:
    return F.forall(_truths(given), lambda item: item)


@_builds(GREL.boolean_or)
def _or(given: Arguments) -> Column:
    return F.exists(_truths(given), lambda item: item)


@_builds(GREL.boolean_xor)
def _xor(given: Arguments) -> Column:
    return F.size(F.filter(_truths(given), lambda item: item)) == 1


@_builds(GREL.controls_if)
def _if(given: Arguments) -> Column:
    choice = F.when(given["condition"].column, given["then"].column)
    return choice.otherwise(given["otherwise"].column) if "otherwise" in given else choice


@_builds(GREL.other_coalesce)
def _coalesce(given: Arguments) -> Column:
    return F.get(F.array_compact(given["values"].column), F.lit(0))


@_builds(GREL.math_min)
def _min(given: Arguments) -> Column:
    # least() would skip a missing number.
    a, b = given["number"].column, given["number2"].column
    return F.when(a <= b, a).when(b < a, b)


@_builds(GREL.math_max)
def _max(given: Arguments) -> Column:
    a, b = given["number"].column, given["number2"].column
    return F.when(a >= b, a).when(b > a, b)


@_builds(GREL.date_toDate, IDLAB.normalizeDate)
def _to_date(given: Arguments) -> Column:
    return _signless(F.date_format(_parsed_time(given), "yyyy-MM-dd"))


@_builds(IDLAB.normalizeDateTime)
def _to_date_time(given: Arguments) -> Column:
    return _signless(F.date_format(_parsed_time(given), "yyyy-MM-dd'T'HH:mm:ss"))


def _signless(date: Column) -> Column:
    # Java writes years of five and more digits with a plus sign, which XML Schema does not know.
    return F.ltrim(date, F.lit("+"))


def _parsed_time(given: Arguments) -> Column:
    pattern = F.regexp_replace(given["pattern"].column, UNQUOTED_YEAR, "y")
    return F.try_to_timestamp(given["value"].column, pattern)


@_builds(IDLAB.stringContainsOtherString)
def _contains_other(given: Arguments) -> Column:
    text, other, delimiter = (given[name].column for name in ("value", "other", "delimiter"))
    parts = F.array_contains(_split_at(text, delimiter), other)
    return F.when(delimiter == F.lit(""), F.contains(text, other)).otherwise(parts)


@_builds(IDLAB.concat)
def _concat(given: Arguments) -> Column:
    middle = [given["delimiter"].column] if "delimiter" in given else []
    return F.concat(given["value"].column, *middle, given["other"].column)


@_builds(IDLAB.slugify)
def _slugify(given: Arguments) -> Column:
    plain = F.translate(F.lower(given["value"].column), _ACCENTED, _PLAIN)
    return F.btrim(F.regexp_replace(plain, "[^a-z0-9]+", "-"), F.lit("-"))


@_builds(IDLAB.toUpperCaseURL, GREL.toUpperCaseURL)
def _upper_url(given: Arguments) -> Column:
    url = F.upper(given["value"].column)
    return F.when(url.rlike("^HTTPS?://"), url).otherwise(F.concat(F.lit("http://"), url))


ALWAYS_GIVES: Final[dict[str, str]] = {
    GREL.math_floor: "it is NaN, infinite, or more than 64 bits hold",
    GREL.math_ceil: "it is NaN, infinite, or more than 64 bits hold",
    GREL.math_round: "it is NaN, infinite, or more than 64 bits hold",
    GREL.math_ln: "only numbers above 0 have a logarithm",
    GREL.math_log: "only numbers above 0 have a logarithm",
    GREL.math_mod: "nothing can be divided by 0",
    GREL.array_sum: "some element is not a number",
    GREL.string_toNumber: "it is not a number",
    GREL.escape: "there is no such mode",
    GREL.string_escape: "there is no such mode",
    GREL.string_unescape: "there is no such mode, or the text is not escaped in it",
    GREL.date_toDate: "the date does not fit the format",
    IDLAB.normalizeDate: "the date does not fit the format",
    IDLAB.normalizeDateTime: "the date does not fit the format",
}
"""Functions that may have no result for valid arguments, and the reason to report."""
