"""The values of a reference in a record, in the forms that Spark holds.

CSV and XML give texts; JSON gives typed values, and the type determines the natural datatype of a
literal. An array or an object is not a term, so the record is at fault. By the rules
of the older vocabulary values of JSON have no types, and an array stands for its elements.

Spec: https://kg-construct.github.io/rml-core/spec/docs/#natural-mapping
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final, final

from pyspark.sql import functions as F

from quadweir.mapping.literals import canonical_double, literal
from quadweir.vocab import XSD

if TYPE_CHECKING:
    from pyspark.sql import Column

_INTEGER: Final = f'"^^<{XSD.integer}>'
_DOUBLE: Final = f'"^^<{XSD.double}>'
_BOOLEAN: Final = f'"^^<{XSD.boolean}>'
# A variant keeps 1.0 as a decimal without fraction; whole numbers are decimals only beyond 64 bit.
_FRACTION: Final = r"^D(?!ECIMAL\((?:19|2[0-9]|3[0-9]),0\))"

TYPED: Final = "array<struct<text: string, kind: string>>"
"""The form in which Python returns the values of a JSONPath."""


class ColumnForm(Enum):
    """The type of a value's column."""

    TEXT = auto()
    TEXTS = auto()
    VARIANT = auto()
    VARIANTS = auto()
    TYPED = auto()


@final
@dataclass(frozen=True, slots=True)
class Terms:
    """A column of strings, or with `many` one of arrays of strings; NULL stands for none."""

    column: Column
    many: bool = False
    pieces: tuple[str | Column, ...] = ()
    """The pieces of the string, if known: fixed texts and columns."""
    several: Column | None = None
    """For records that seldom have more than one string: the array of all strings, if there may be
    several; NULL if `column` holds the only one. An array for every record would be expensive."""
    needs: frozenset[str] | None = None
    """The references that a record must have values of, which is all that it needs to have this
    term; None if that is not known."""

    @property
    def constant(self) -> str | None:
        """The string, if it is the same for every record."""
        fixed = [piece for piece in self.pieces if isinstance(piece, str)]
        return "".join(fixed) if fixed and len(fixed) == len(self.pieces) else None

    def map(self, each: Callable[[Column], Column]) -> Terms:
        """Apply a column expression to every string."""
        if self.many:
            return Terms(F.transform(self.column, each), many=True)
        several = F.transform(self.several, each) if self.several is not None else None
        return Terms(each(self.column), several=several)

    def when(self, condition: Column) -> Terms:
        """The same strings, only for records that meet a condition."""
        several = F.when(condition, self.several) if self.several is not None else None
        return Terms(F.when(condition, self.column), self.many, several=several)

    def between(self, before: str, after: str) -> Terms:
        """Put fixed texts around every string."""

        def each(one: Column) -> Column:
            return F.concat(F.lit(before), one, F.lit(after))

        if not self.pieces:
            return self.map(each)
        several = F.transform(self.several, each) if self.several is not None else None
        return replace(put_together(before, *self.pieces, after), several=several)

    def as_many(self) -> Terms:
        """The same strings, as an array for every record if some record may have several."""
        return self if self.several is None else Terms(self.to_array(), many=True)

    def to_array(self) -> Column:
        """The strings as an array without NULLs."""
        if self.many:
            return F.array_compact(F.coalesce(self.column, F.array().cast("array<string>")))
        one = F.array_compact(F.array(self.column))
        return one if self.several is None else F.coalesce(F.array_compact(self.several), one)


def has_several(parts: Iterable[Terms | None]) -> Column | None:
    """Whether a record may have several strings of some part; None if that is impossible."""
    found = [
        part.several.isNotNull() for part in parts if part is not None and part.several is not None
    ]
    return reduce(or_, found) if found else None


def put_together(*pieces: str | Column) -> Terms:
    """A string made of fixed texts and columns; NULL if one of the columns is."""
    columns = [F.lit(piece) if isinstance(piece, str) else piece for piece in pieces]
    return Terms(columns[0] if len(columns) == 1 else F.concat(*columns), pieces=pieces)


@final
@dataclass(frozen=True, slots=True)
class ReferenceValues:
    """The values of one reference in a record."""

    column: Column
    form: ColumnForm
    nulls: tuple[str, ...] = ()
    is_nested: Column | None = None
    """For a TEXT of JSON: whether it is the text of an array or object."""
    datatype: str | None = None
    """For a TEXT from a typed column: the IRI of its natural datatype."""
    plain: Column | None = None
    """The column of `text`, if it is already computed."""
    key: Column | None = None
    """The column of `keyed`, if it is already computed."""
    is_clean: bool = False
    """Whether texts are ASCII, without characters that a literal must escape."""
    is_scalar: bool = False
    """Whether it is known that no value is an array or an object."""
    is_plain: bool = False
    """Whether values have no types, and arrays stand for their elements."""
    elements: Column | None = None
    """For a TEXT of JSON: an array of variants, where it is the text of an array; else NULL."""
    rest: Column | None = None
    """The column of `several`, if it is already computed."""

    @property
    def many(self) -> bool:
        """Whether there may be several."""
        return self.form in (ColumnForm.TEXTS, ColumnForm.VARIANTS, ColumnForm.TYPED)

    def as_plain(self) -> ReferenceValues:
        """The same values without types, and arrays as their elements."""
        match self.form:
            case ColumnForm.VARIANTS:
                column = F.flatten(F.transform(self.column, _elements_or_self))
                return replace(self, column=column, is_plain=True)
            case ColumnForm.TYPED:
                column = F.flatten(F.transform(self.column, _typed_elements))
                return replace(self, column=column, is_plain=True)
            case _:
                return replace(self, is_plain=True)

    def several(self) -> Column | None:
        """The texts of the elements, where the value is an array that stands for them; else NULL."""
        if self.rest is not None:
            return self.rest
        elements = self._own_elements()
        if elements is None:
            return None
        return self._without_nulls(Terms(F.transform(elements, _variant_text), many=True)).column

    def _own_elements(self) -> Column | None:
        if not self.is_plain or self.is_scalar:
            return None
        return _elements(self.column) if self.form is ColumnForm.VARIANT else self.elements

    def text(self) -> Terms:
        """The values as plain text."""
        if self.plain is not None:
            return Terms(self.plain, self.many, several=self.several())
        match self.form:
            case ColumnForm.TEXT | ColumnForm.TEXTS:
                terms = Terms(self.column, self.many)
            case ColumnForm.VARIANT | ColumnForm.VARIANTS:
                terms = Terms(self.column, self.many).map(_variant_text)
            case ColumnForm.TYPED:
                terms = Terms(F.transform(self.column, _typed_text), many=True)
        return replace(self._without_nulls(terms), several=self.several())

    def _without_nulls(self, texts: Terms) -> Terms:
        if not self.nulls:
            return texts
        return texts.map(lambda text: F.when(~text.isin(*self.nulls), text))

    def natural(self) -> Terms:
        """The values as literals of their natural datatypes."""
        if self.is_plain:
            return self.text().map(lambda text: literal(text))
        match self.form:
            case ColumnForm.TEXT | ColumnForm.TEXTS:
                return self.text().map(
                    lambda text: literal(text, datatype=self.datatype, is_escaped=self.is_clean)
                )
            case ColumnForm.VARIANT | ColumnForm.VARIANTS:
                terms = Terms(self.column, self.many).map(
                    lambda value: _variant_literal(value, self.plain, self.is_clean)
                )
            case ColumnForm.TYPED:
                terms = Terms(F.transform(self.column, _typed_literal), many=True)
        if not self.nulls:
            return terms
        spelt = [f'"{null}"' for null in self.nulls]
        return terms.map(lambda term: F.when(~term.isin(*spelt), term))

    @property
    def is_typed(self) -> bool:
        """Whether values have types."""
        return self.datatype is not None or self.form not in (ColumnForm.TEXT, ColumnForm.TEXTS)

    def keyed(self) -> Terms:
        """The values as texts that are equal if the values and their types are equal."""
        if self.key is not None:
            return Terms(self.key, several=self._keyed_elements())
        match self.form:
            case ColumnForm.TEXT | ColumnForm.TEXTS:
                return self.text().map(lambda text: _keyed(F.lit(self.datatype is None), text))
            case ColumnForm.VARIANT:
                is_string = F.schema_of_variant(self.column) == "STRING"
                return Terms(_keyed(is_string, self.text().column), several=self._keyed_elements())
            case ColumnForm.VARIANTS:
                terms = Terms(self.column, self.many).map(_variant_key)
            case ColumnForm.TYPED:
                terms = Terms(
                    F.transform(
                        self.column, lambda one: _keyed(one["kind"] == "string", _typed_text(one))
                    ),
                    many=True,
                )
        if not self.nulls:
            return terms
        spelt = [f'"{null}' for null in self.nulls]
        return terms.map(lambda key: F.when(~key.isin(*spelt), key))

    def _keyed_elements(self) -> Column | None:
        elements = self._own_elements()
        return F.transform(elements, _variant_key) if elements is not None else None

    def fault(self) -> Column | None:
        """Whether some value is an array or an object; None if that cannot be.

        An array that stands for its elements does not count, unless one of its elements is an array
        or an object.
        """
        match self.form:
            case ColumnForm.TEXT | ColumnForm.VARIANT:
                is_nested = (
                    self.is_nested if self.form is ColumnForm.TEXT else _is_nested(self.column)
                )
                elements = self._own_elements()
                if elements is None or is_nested is None:
                    return is_nested
                inner = F.coalesce(F.exists(elements, _is_nested), F.lit(True))
                return F.when(is_nested, inner)
            case ColumnForm.TEXTS:
                return None
            case ColumnForm.VARIANTS:
                return F.exists(self.column, _is_nested)
            case ColumnForm.TYPED:
                return F.exists(self.column, lambda one: one["kind"].isin("array", "object"))


def _keyed(is_string: Column, text: Column) -> Column:
    # Texts of numbers and booleans are never equal.
    return F.concat(F.when(is_string, '"').otherwise(F.lit("=")), text)


def _elements(value: Column) -> Column:
    """The elements of a variant that is an array; NULL for any other."""
    return F.try_variant_get(value, "$", "array<variant>")


def _elements_or_self(value: Column) -> Column:
    return F.coalesce(_elements(value), F.array(value))


def _typed_elements(value: Column) -> Column:
    """The elements of a value that is an array, or the value itself, in the form of `TYPED`."""
    elements = F.transform(
        _elements(F.try_parse_json(value["text"])),
        lambda one: F.struct(
            F.when(_is_nested(one), F.lit("")).otherwise(_variant_text(one)).alias("text"),
            F.when(_is_nested(one), "object").otherwise(F.lit("string")).alias("kind"),
        ),
    )
    return F.when(value["kind"] == "array", elements).otherwise(F.array(value))


def _variant_key(value: Column) -> Column:
    return _keyed(F.schema_of_variant(value) == "STRING", _variant_text(value))


def _is_nested(value: Column) -> Column:
    kind = F.schema_of_variant(value)
    return kind.startswith("ARRAY") | kind.startswith("OBJECT")


def _variant_text(value: Column) -> Column:
    # Most are strings and whole numbers, which need no regular expression.
    kind, text = F.schema_of_variant(value), value.cast("string")
    return (
        F.when(kind == "STRING", text)
        .when(_is_nested(value), F.lit(None))
        .when(kind.startswith("D"), F.when(kind.rlike(_FRACTION), _double(value)).otherwise(text))
        .otherwise(text)
    )


def _variant_literal(value: Column, plain: Column | None = None, is_clean: bool = False) -> Column:
    kind = F.schema_of_variant(value)
    text = plain if plain is not None else value.cast("string")
    return (
        F.when(kind == "STRING", literal(text, is_escaped=is_clean))
        .when(kind.rlike("^[AOV]"), F.lit(None))
        .when(
            kind.rlike(_FRACTION),
            F.concat(
                F.lit('"'),
                canonical_double(plain if plain is not None else _double(value)),
                F.lit(_DOUBLE),
            ),
        )
        .otherwise(
            F.concat(
                F.lit('"'), text, F.when(kind == "BOOLEAN", _BOOLEAN).otherwise(F.lit(_INTEGER))
            )
        )
    )


def _double(value: Column) -> Column:
    return value.cast("double").cast("string")


def _typed_text(value: Column) -> Column:
    return F.when(~value["kind"].isin("array", "object"), value["text"])


def _typed_literal(value: Column) -> Column:
    kind, text = value["kind"], value["text"]
    return (
        F.when(kind == "string", literal(text))
        .when(kind == "integer", F.concat(F.lit('"'), text, F.lit(_INTEGER)))
        .when(kind == "double", F.concat(F.lit('"'), canonical_double(text), F.lit(_DOUBLE)))
        .when(kind == "boolean", F.concat(F.lit('"'), text, F.lit(_BOOLEAN)))
        .when(kind.contains(":"), literal(text, datatype=kind))
    )
